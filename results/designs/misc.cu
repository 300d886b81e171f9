// Reductions, gathers, scatters, embeddings, particles.
#include "common.cuh"
#include <cub/cub.cuh>

static int sms;

// ---- reduce
template <int T> static __device__ float block_sum(float s) {
    __shared__ float sums[T / 32];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    s = threadIdx.x < T / 32 ? sums[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    return s;
}
// U loads in flight a thread, a grid apart; or, TILED, a block's U lines of T vectors together.
template <int T, int U, int TILED> __global__ void __launch_bounds__(T) reduce(const float4* src, float* dst, size_t n4) {
    float s[4] = {};
    size_t lane_step = TILED ? T : (size_t)gridDim.x * T, step = (size_t)gridDim.x * T * U;
    size_t i = TILED ? (size_t)blockIdx.x * T * U + threadIdx.x : (size_t)blockIdx.x * T + threadIdx.x;
    for (; i + (U - 1) * lane_step < n4; i += step) {
        float4 v[U];
        #pragma unroll
        for (int u = 0; u < U; u++) v[u] = src[i + u * lane_step];
        #pragma unroll
        for (int u = 0; u < U; u++) s[u % 4] += (v[u].x + v[u].y) + (v[u].z + v[u].w);
    }
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + u * lane_step < n4) { float4 v = src[i + u * lane_step]; s[0] += (v.x + v.y) + (v.z + v.w); }
    float t = block_sum<T>((s[0] + s[1]) + (s[2] + s[3]));
    if (threadIdx.x == 0) atomicAdd(dst, t);
}

static float* big;
static float* out;
static float cub_us;
static void* temp;
static size_t temp_bytes;

template <int T, int U, int TILED> static void red(size_t n, int per_sm) {
    size_t n4 = n / 4, blocks = std::min<size_t>((n4 + (size_t)T * U - 1) / ((size_t)T * U), (size_t)per_sm * sms);
    auto launch = [&] { reduce<T, U, TILED><<<(unsigned)blocks, T>>>((float4*)big, out, n4); };
    CHECK(cudaMemset(out, 0, 4));
    launch();
    float got; CHECK(cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost));
    float us = median_us(n >= 1 << 28 ? 11 : 25, launch);
    printf("R T=%d U=%d tiled=%d per_sm=%d blocks=%zu n=2^%d %9.2f us %7.1f GB/s %.3f of CUB  (sum %g)\n", T, U, TILED, per_sm, blocks, (int)__builtin_ctzll(n), us,
           4e-3 * n / us, cub_us / us, got);
    fflush(stdout);
}

static void reductions() {
    size_t most = (size_t)1 << 30;
    CHECK(cudaMalloc(&big, most * 4)); CHECK(cudaMalloc(&out, 256));
    std::vector<float> ones(1 << 20, 1.0f / 1024);
    for (size_t i = 0; i < most; i += 1 << 20) CHECK(cudaMemcpy(big + i, ones.data(), 4 << 20, cudaMemcpyHostToDevice));
    cub::DeviceReduce::Sum(nullptr, temp_bytes, big, out, most);
    CHECK(cudaMalloc(&temp, temp_bytes));
    for (int e : {20, 22, 24, 26, 28, 30}) {
        size_t n = (size_t)1 << e;
        cub_us = median_us(n >= 1 << 28 ? 11 : 25, [&] { cub::DeviceReduce::Sum(temp, temp_bytes, big, out, n); });
        printf("CUB n=2^%d %.2f us %.1f GB/s\n", e, cub_us, 4e-3 * n / cub_us);
        red<256, 1, 0>(n, 8);   // as now
        red<256, 2, 0>(n, 8);
        red<256, 4, 0>(n, 8);
        red<256, 4, 1>(n, 8);
        red<256, 4, 0>(n, 4);
        red<256, 8, 0>(n, 4);
        red<256, 8, 1>(n, 4);
        red<256, 8, 0>(n, 2);
        red<256, 8, 1>(n, 8);
        red<512, 4, 0>(n, 4);
        red<512, 4, 1>(n, 4);
        red<512, 4, 0>(n, 2);
        red<512, 8, 1>(n, 2);
        red<512, 2, 0>(n, 4);
        red<1024, 4, 0>(n, 1);
        red<1024, 4, 0>(n, 2);
        red<1024, 2, 0>(n, 2);
        red<1024, 8, 1>(n, 1);
    }
    cudaFree(big);
}

// ---- gather, scatter
static float *gs, *gd; static unsigned* gi;
__global__ void gather1(const float* s, const unsigned* x, float* d, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) d[i] = s[x[i]];
}
template <int U> __global__ void gather_strided(const float* s, const unsigned* x, float* d, size_t n) {   // 256 threads, U lines a block
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    unsigned a[U]; float v[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n) a[u] = x[i + 256 * u];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n) v[u] = s[a[u]];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n) d[i + 256 * u] = v[u];
}
template <int U> __global__ void gather_vec4(const float* s, const uint4* x, float4* d, size_t n4) {
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    uint4 a[U]; float4 v[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n4) a[u] = x[i + 256 * u];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n4) v[u] = make_float4(s[a[u].x], s[a[u].y], s[a[u].z], s[a[u].w]);
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n4) d[i + 256 * u] = v[u];
}
template <int U> __global__ void gather_vec2(const float* s, const uint2* x, float2* d, size_t n2) {
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    uint2 a[U]; float2 v[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n2) a[u] = x[i + 256 * u];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n2) v[u] = make_float2(s[a[u].x], s[a[u].y]);
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n2) d[i + 256 * u] = v[u];
}
__global__ void scatter1(const float* s, const unsigned* x, float* d, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) d[x[i]] = s[i];
}
template <int U> __global__ void scatter_strided(const float* s, const unsigned* x, float* d, size_t n) {
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    unsigned a[U]; float v[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n) { a[u] = x[i + 256 * u]; v[u] = s[i + 256 * u]; }
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n) d[a[u]] = v[u];
}
template <int U> __global__ void scatter_vec4(const float4* s, const uint4* x, float* d, size_t n4) {
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    uint4 a[U]; float4 v[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n4) { a[u] = x[i + 256 * u]; v[u] = s[i + 256 * u]; }
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + 256 * u < n4) { d[a[u].x] = v[u].x; d[a[u].y] = v[u].y; d[a[u].z] = v[u].z; d[a[u].w] = v[u].w; }
}
__global__ void indices(unsigned* x, size_t n, int order) {   // n a power of two, at least 2^21
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        unsigned m = order == 1 ? 255 : n - 1, v = i & m;
        if (order) { v = (v * 0x9E3779B1u + 12345) & m; v ^= v >> (order == 1 ? 4 : 13); v = v * 0x85EBCA6Bu & m; v ^= v >> (order == 1 ? 4 : 13); v = v * 0xC2B2AE35u & m; }
        x[i] = (i & ~(size_t)m) | v;
    }
}
static void gs_row(const char* name, int order, size_t n, const std::function<void()>& f) {
    float us = median_us(15, f);
    printf("I %-20s order=%d %9.2f us %7.1f GB/s of 12 bytes\n", name, order, us, 12e-3 * n / us);
    fflush(stdout);
}
static void gathers() {
    size_t n = 1 << 26;
    CHECK(cudaMalloc(&gs, n * 4)); CHECK(cudaMalloc(&gd, n * 4)); CHECK(cudaMalloc(&gi, n * 4));
    fill_hash<<<1024, 256>>>((unsigned*)gs, n);
    float us = median_us(15, [&] { CHECK(cudaMemcpyAsync(gd, gs, n * 4, cudaMemcpyDeviceToDevice)); });
    printf("I cudaMemcpy of 2^26 floats: %.1f GB/s\n", 8e-3 * n / us);
    for (int order : {0, 1, 2}) {
        indices<<<1024, 256>>>(gi, n, order);
#define GS(name, blocks, ...) gs_row(#name, order, n, [&] { name<<<(unsigned)(blocks), 256>>>(__VA_ARGS__); })
        GS(gather1, n / 256, gs, gi, gd, n);
        GS(gather_strided<2>, n / 512, gs, gi, gd, n);
        GS(gather_strided<4>, n / 1024, gs, gi, gd, n);
        GS(gather_strided<8>, n / 2048, gs, gi, gd, n);
        GS(gather_vec2<1>, n / 512, gs, (uint2*)gi, (float2*)gd, n / 2);
        GS(gather_vec2<2>, n / 1024, gs, (uint2*)gi, (float2*)gd, n / 2);
        GS(gather_vec4<1>, n / 1024, gs, (uint4*)gi, (float4*)gd, n / 4);
        GS(gather_vec4<2>, n / 2048, gs, (uint4*)gi, (float4*)gd, n / 4);
        GS(scatter1, n / 256, gs, gi, gd, n);
        GS(scatter_strided<2>, n / 512, gs, gi, gd, n);
        GS(scatter_strided<4>, n / 1024, gs, gi, gd, n);
        GS(scatter_strided<8>, n / 2048, gs, gi, gd, n);
        GS(scatter_vec4<1>, n / 1024, (float4*)gs, (uint4*)gi, gd, n / 4);
        GS(scatter_vec4<2>, n / 2048, (float4*)gs, (uint4*)gi, gd, n / 4);
    }
    cudaFree(gs); cudaFree(gd); cudaFree(gi);
}

// ---- embedding: U rows a group of G lanes; rows of V vectors, V a multiple of G
__global__ void emb_now(const float4* t, const unsigned* x, float4* d, size_t n, size_t vectors) {
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (i < n) { size_t row = x[i]; for (size_t f = threadIdx.x % 32; f < vectors; f += 32) d[i * vectors + f] = t[row * vectors + f]; }
}
template <int G, int U> __global__ void emb(const float4* t, const unsigned* x, float4* d, size_t n, unsigned vectors) {
    unsigned g = threadIdx.x / G, c = threadIdx.x % G; const unsigned R = 256 / G;
    size_t i = (size_t)blockIdx.x * R * U + g;
    size_t row[U];
    #pragma unroll
    for (int u = 0; u < U; u++) row[u] = i + u * R < n ? x[i + u * R] : 0;
    for (unsigned f = c; f < vectors; f += G) {
        float4 v[U];
        #pragma unroll
        for (int u = 0; u < U; u++) v[u] = t[row[u] * vectors + f];
        #pragma unroll
        for (int u = 0; u < U; u++) if (i + u * R < n) d[(i + u * R) * vectors + f] = v[u];
    }
}
__global__ void lookups(unsigned* x, size_t n, size_t rows, int sorted) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) x[i] = sorted ? i * rows / n : hash32(i) % rows;
}
static void embeddings() {
    size_t n = 1 << 20, most = n * 128 * 4;
    float4 *t, *d; unsigned* x;
    CHECK(cudaMalloc(&t, most)); CHECK(cudaMalloc(&d, most)); CHECK(cudaMalloc(&x, n * 4));
    fill_hash<<<1024, 256>>>((unsigned*)t, most / 4);
    for (unsigned width : {64, 128}) for (size_t rows : {(size_t)1 << 14, (size_t)1 << 20}) for (int sorted : {0, 1}) {
        lookups<<<1024, 256>>>(x, n, rows, sorted);
        unsigned v = width / 4;
        float copy = median_us(15, [&] { CHECK(cudaMemcpyAsync(d, t, n * width * 4, cudaMemcpyDeviceToDevice)); });
        auto row = [&](const char* name, const std::function<void()>& f) {
            float us = median_us(15, f);
            printf("E %-12s width=%u rows=%zu sorted=%d %9.2f us %7.1f GB/s (memcpy %7.1f)\n", name, width, rows, sorted, us, 1e-3 * (n * width * 8 + 4 * n) / us, 8e-3 * n * width / copy);
            fflush(stdout);
        };
        row("now", [&] { emb_now<<<(unsigned)(n / 8), 256>>>(t, x, d, n, v); });
#define E(G, U) row("G=" #G " U=" #U, [&] { emb<G, U><<<(unsigned)(n * G / 256 / U), 256>>>(t, x, d, n, v); })
        E(32, 1); E(32, 2); E(32, 4); E(16, 1); E(16, 2); E(16, 4); E(16, 8); E(8, 2); E(8, 4);
    }
    cudaFree(t); cudaFree(d); cudaFree(x);
}

// ---- particles
__global__ void aos_now(float4* p, size_t n, float dt) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 a = p[2 * i]; float2 b = ((float2*)p)[4 * i + 2];
        a.x = fmaf(a.w, dt, a.x); a.y = fmaf(b.x, dt, a.y); a.z = fmaf(b.y, dt, a.z);
        p[2 * i] = a;
    }
}
__global__ void aos_whole(float4* p, size_t n, float dt) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 a = p[2 * i], b = p[2 * i + 1];
        a.x = fmaf(a.w, dt, a.x); a.y = fmaf(b.x, dt, a.y); a.z = fmaf(b.y, dt, a.z);
        p[2 * i] = a; p[2 * i + 1] = b;
    }
}
// Two lanes a particle; WHOLE: both store. U particles a thread.
template <int WHOLE, int U> __global__ void aos_pair(float4* p, size_t n, float dt) {
    size_t i = (size_t)blockIdx.x * 256 * U + threadIdx.x;
    float4 a[U];
    #pragma unroll
    for (int u = 0; u < U; u++) if (i + u * 256 < 2 * n) a[u] = p[i + u * 256];
    #pragma unroll
    for (int u = 0; u < U; u++) {
        float vy = __shfl_down_sync(~0u, a[u].x, 1), vz = __shfl_down_sync(~0u, a[u].y, 1);
        if (threadIdx.x % 2 == 0) { a[u].x = fmaf(a[u].w, dt, a[u].x); a[u].y = fmaf(vy, dt, a[u].y); a[u].z = fmaf(vz, dt, a[u].z); }
        if ((WHOLE || threadIdx.x % 2 == 0) && i + u * 256 < 2 * n) p[i + u * 256] = a[u];
    }
}
__global__ void soa(float* x, float* y, float* z, const float* vx, const float* vy, const float* vz, size_t n, float dt) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float px = x[i], py = y[i], pz = z[i]; x[i] = fmaf(vx[i], dt, px); y[i] = fmaf(vy[i], dt, py); z[i] = fmaf(vz[i], dt, pz); }
}
__global__ void soa4(float4* x, float4* y, float4* z, const float4* vx, const float4* vy, const float4* vz, size_t n, float dt) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 a = x[i], b = y[i], c = z[i], d = vx[i], e = vy[i], f = vz[i];
        x[i] = make_float4(fmaf(d.x, dt, a.x), fmaf(d.y, dt, a.y), fmaf(d.z, dt, a.z), fmaf(d.w, dt, a.w));
        y[i] = make_float4(fmaf(e.x, dt, b.x), fmaf(e.y, dt, b.y), fmaf(e.z, dt, b.z), fmaf(e.w, dt, b.w));
        z[i] = make_float4(fmaf(f.x, dt, c.x), fmaf(f.y, dt, c.y), fmaf(f.z, dt, c.z), fmaf(f.w, dt, c.w));
    }
}
__global__ void in_place(float4* p, size_t n) { size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float4 a = p[i]; a.x += 1; p[i] = a; } }
static void particles() {
    size_t n = 1 << 25; float4* p;
    CHECK(cudaMalloc(&p, n * 32));
    CHECK(cudaMemset(p, 0, n * 32));
    float* f = (float*)p;
    auto row = [&](const char* name, double bytes, const std::function<void()>& g) {
        float us = median_us(15, g);
        printf("P %-20s %9.2f us %7.1f GB/s of 36 bytes, %7.1f of sectors\n", name, us, 36e-3 * n / us, bytes * 1e-3 * n / us);
        fflush(stdout);
    };
    row("in place, all", 64, [&] { in_place<<<(unsigned)(n * 2 / 256), 256>>>(p, 2 * n); });
    row("aos_now", 64, [&] { aos_now<<<(unsigned)(n / 256), 256>>>(p, n, 0.001f); });
    row("aos_whole", 64, [&] { aos_whole<<<(unsigned)(n / 256), 256>>>(p, n, 0.001f); });
    row("aos_pair<0,1>", 64, [&] { aos_pair<0, 1><<<(unsigned)(n * 2 / 256), 256>>>(p, n, 0.001f); });
    row("aos_pair<1,1>", 64, [&] { aos_pair<1, 1><<<(unsigned)(n * 2 / 256), 256>>>(p, n, 0.001f); });
    row("aos_pair<0,2>", 64, [&] { aos_pair<0, 2><<<(unsigned)(n * 2 / 512), 256>>>(p, n, 0.001f); });
    row("aos_pair<1,2>", 64, [&] { aos_pair<1, 2><<<(unsigned)(n * 2 / 512), 256>>>(p, n, 0.001f); });
    row("aos_pair<0,4>", 64, [&] { aos_pair<0, 4><<<(unsigned)(n * 2 / 1024), 256>>>(p, n, 0.001f); });
    row("aos_pair<1,4>", 64, [&] { aos_pair<1, 4><<<(unsigned)(n * 2 / 1024), 256>>>(p, n, 0.001f); });
    row("soa", 36, [&] { soa<<<(unsigned)(n / 256), 256>>>(f, f + n, f + 2 * n, f + 3 * n, f + 4 * n, f + 5 * n, n, 0.001f); });
    row("soa4", 36, [&] { soa4<<<(unsigned)(n / 1024), 256>>>((float4*)f, (float4*)(f + n), (float4*)(f + 2 * n), (float4*)(f + 3 * n), (float4*)(f + 4 * n), (float4*)(f + 5 * n), n / 4, 0.001f); });
    cudaFree(p);
}

int main() {
    init();
    cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); sms = p.multiProcessorCount;
    gathers(); embeddings(); particles(); reductions();
}
