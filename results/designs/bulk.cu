// Transposes of 4-byte elements by bulk tensor copies: tile, stages, blocks an SM, order of tiles. nvcc -O3 -arch=sm_90a.
#include "transpose.cuh"
#include <cuda.h>

// A tile is R rows by C columns of the source. Both sides are boxes of 32 words a row, swizzled by 128 bytes: word chunk c of row r stands
// at chunk c ^ (r % 8).
static __device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ void wait(unsigned bar, unsigned parity) {
    asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(bar), "r"(parity) : "memory");
}
static __device__ __forceinline__ void load_box(unsigned to, const CUtensorMap* map, int x, int y, unsigned bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
static __device__ __forceinline__ void store_box(const CUtensorMap* map, int x, int y, unsigned from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}

template <int ORDER> static __device__ __forceinline__ void place(unsigned t, unsigned tx, unsigned ty, unsigned& x, unsigned& y) {
    if (ORDER == 0) { y = t % ty; x = t / ty; }                      // down the columns of tiles: neighbours write neighbours
    else if (ORDER == 1) { x = t % tx; y = t / tx; }                 // along the rows
    else { unsigned b = ORDER, per = b * tx; unsigned band = t / per, r = t % per; y = band * b + r % b; x = r / b; } // bands
}

template <int R, int C, int STAGES, int THREADS, int ORDER>
__global__ void __launch_bounds__(THREADS) bulk(const __grid_constant__ CUtensorMap src, const __grid_constant__ CUtensorMap dst, unsigned tx, unsigned ty) {
    extern __shared__ __align__(1024) unsigned char shared_[];
    const int BYTES = R * C * 4;
    unsigned char* in = shared_;
    unsigned char* out = shared_ + STAGES * BYTES;
    __shared__ __align__(8) unsigned long long bars[STAGES];
    unsigned tiles = tx * ty, step = gridDim.x;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(&bars[s])));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    auto begin = [&](unsigned t, int s) {
        unsigned x, y; place<ORDER>(t, tx, ty, x, y);
        unsigned bar = smem(&bars[s]);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(BYTES) : "memory");
        #pragma unroll
        for (int b = 0; b < C / 32; b++) load_box(smem(in + s * BYTES + b * R * 128), &src, x * C + b * 32, y * R, bar);
    };
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES && blockIdx.x + s * step < tiles; s++) begin(blockIdx.x + s * step, s);
    int s = 0, o = 0; unsigned parity = 0;
    for (unsigned t = blockIdx.x; t < tiles; t += step) {
        wait(smem(&bars[s]), parity);
        unsigned char* from = in + s * BYTES;
        unsigned char* to = out + o * BYTES;
        // The buffer that is stored into now was read from two stores ago.
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        const int BLOCKS = (R / 4) * (C / 4);
        #pragma unroll
        for (int i = 0; i < BLOCKS / THREADS; i++) {
            unsigned b = threadIdx.x + i * THREADS;
            // Eight by eight blocks of four by four are a square of 32; lanes go along its diagonals.
            unsigned square = b / 64, l = b % 8, d = b / 8 % 8;
            unsigned sq_y = square % (R / 32), sq_x = square / (R / 32);
            unsigned c = l, r = (l + d) % 8;
            float4 v[4];
            #pragma unroll
            for (int k = 0; k < 4; k++) {
                unsigned row = sq_y * 32 + r * 4 + k;
                v[k] = *(float4*)(from + sq_x * R * 128 + row * 128 + ((c ^ (row % 8)) * 16));
            }
            #pragma unroll
            for (int k = 0; k < 4; k++) {
                unsigned row = sq_x * 32 + c * 4 + k;
                float4 w = {((float*)&v[0])[k], ((float*)&v[1])[k], ((float*)&v[2])[k], ((float*)&v[3])[k]};
                *(float4*)(to + sq_y * C * 128 + row * 128 + ((r ^ (row % 8)) * 16)) = w;
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned x, y; place<ORDER>(t, tx, ty, x, y);
            #pragma unroll
            for (int b = 0; b < R / 32; b++) store_box(&dst, y * R + b * 32, x * C, smem(to + b * C * 128));
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (t + STAGES * step < tiles) begin(t + STAGES * step, s);
        }
        if (++s == STAGES) { s = 0; parity ^= 1; }
        o ^= 1;
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

static char *src, *dst;
static float copy_us;
typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;

static CUtensorMap map(void* base, unsigned n, unsigned rows, int l2) {
    CUtensorMap m;
    cuuint64_t dims[2] = {n, n}, strides[1] = {(cuuint64_t)n * 4};
    cuuint32_t box[2] = {32, rows}, one[2] = {1, 1};
    CUresult r = encode(&m, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, base, dims, strides, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        (CUtensorMapL2promotion)l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r) { printf("encode: %d\n", r); exit(1); }
    return m;
}

template <int R, int C, int STAGES, int THREADS, int ORDER> static void one(unsigned n, int per_sm, int l2 = 0) {
    unsigned tx = n / C, ty = n / R;
    size_t bytes = (size_t)n * n * 4, shared = (STAGES + 2) * R * C * 4;
    CUtensorMap a = map(src, n, R, l2), b = map(dst, n, C, 0);
    auto k = bulk<R, C, STAGES, THREADS, ORDER>;
    CHECK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    int most; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, k, THREADS, shared));
    int blocks = per_sm > 0 ? per_sm : most;
    if (blocks > most) return;
    unsigned grid = std::min(tx * ty, 132u * blocks);
    if (per_sm < 0) grid = tx * ty;   // a tile a block
    auto launch = [&] { k<<<grid, THREADS, shared>>>(a, b, tx, ty); };
    poison(dst, bytes);
    launch();
    CHECK(cudaGetLastError());
    unsigned long long bad = wrong_elements<4>(src, dst, n, n);
    float us = median_us(bytes >> 32 ? 7 : bytes >> 30 ? 11 : 21, launch);
    cudaFuncAttributes f; cudaFuncGetAttributes(&f, k);
    printf("B tile=%dx%d stages=%d thr=%d regs=%d order=%d blocks=%d%s l2=%d %ux%u %9.2f us %7.1f GB/s  %.3f of copy%s\n", R, C, STAGES, THREADS,
           f.numRegs, ORDER, blocks, per_sm < 0 ? " (a tile a block)" : "", l2, n, n, us, 2e-3 * bytes / us, copy_us / us, bad ? "  WRONG" : "");
    fflush(stdout);
}

int main() {
    init();
    cudaDriverEntryPointQueryResult q;
    CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", (void**)&encode, cudaEnableDefault, &q));
    size_t most = (size_t)32768 * 32768 * 4;
    CHECK(cudaMalloc(&src, most)); CHECK(cudaMalloc(&dst, most));
    fill_hash<<<1024, 256>>>((uint32_t*)src, most / 4);
    for (unsigned n : {4096u, 8192u, 16384u, 32768u}) {
        size_t bytes = (size_t)n * n * 4;
        copy_us = median_us(11, [&] { CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice)); });
        printf("COPY E=4 %ux%u %.2f us %.1f GB/s\n", n, n, copy_us, 2e-3 * bytes / copy_us);
        one<64, 64, 1, 256, 0>(n, -1);
        one<64, 64, 1, 128, 0>(n, -1);
        one<64, 64, 2, 256, 0>(n, 0);
        one<64, 64, 2, 128, 0>(n, 0);
        one<64, 64, 3, 128, 0>(n, 0);
        one<64, 64, 4, 128, 0>(n, 2);
        one<64, 64, 2, 128, 1>(n, 0);
        one<64, 64, 2, 128, 16>(n, 0);
        one<64, 64, 2, 128, 64>(n, 0);
        one<64, 64, 2, 128, 0>(n, 0, 3);
        one<128, 64, 2, 256, 0>(n, 0);
        one<64, 128, 2, 256, 0>(n, 0);
        one<128, 128, 1, 256, 0>(n, 0);
        one<128, 32, 2, 128, 0>(n, 0);
        one<32, 32, 4, 64, 0>(n, 0);
        one<256, 32, 1, 256, 0>(n, 0);
        one<256, 64, 1, 256, 0>(n, 0);
    }
    return 0;
}
