// Twins: every kernel of the suite in CUDA C++, with the same name and parameters. A twin has no program of its own:
// busload launches it in place of its kernel, on the same cases and buffers, verifies it against the same reference,
// and measures it by the same rules.
//
//     nvcc -ptx -rdc=true -arch=sm_80 -o peers.ptx results/peers/peers.cu
//     busload bench --on gpu --ptx peers.ptx --json peers.json
//     busload bench --on gpu --json bench.json
//     busload compare peers.json bench.json
//
// Each does the accesses of its kernel, in the same order and at the same widths, and is otherwise written as is usual
// in CUDA C++. Two things follow. No pointer is `__restrict__`: its loads would take the read-only path. And where nvcc
// would do other accesses than the source says, merge neighbouring words of shared memory or drop a store that is
// overwritten, the array is volatile, as all of the suite's are.

#define KERNEL extern "C" __global__ void

// Half precision, moved and never computed with.
typedef unsigned short f16;

static __device__ size_t index_x() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ size_t count_x() { return (size_t)gridDim.x * blockDim.x; }

static __device__ size_t at(unsigned y, unsigned x, unsigned pitch) { return (size_t)y * pitch + x; }

static __device__ unsigned lane_id() { return (threadIdx.y * blockDim.x + threadIdx.x) % 32; }

// ---- copy

KERNEL copy_coalesced(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i];
}

KERNEL copy_grid_stride(const float* src, float* dst, size_t n) {
    for (size_t i = index_x(); i < n; i += count_x()) dst[i] = src[i];
}

// Elements as vectors, and those that fill no vector one by one.
template <typename Vector, typename T> static __device__ void copy_vectors(const T* src, T* dst, size_t n) {
    const unsigned parts = sizeof(Vector) / sizeof(T);
    size_t i = index_x();
    if (i < n / parts) ((Vector*)dst)[i] = ((const Vector*)src)[i];
    if (i < n % parts) dst[n - n % parts + i] = src[n - n % parts + i];
}

KERNEL copy_vec2(const float* src, float* dst, size_t n) { copy_vectors<float2>(src, dst, n); }

KERNEL copy_vec4(const float* src, float* dst, size_t n) { copy_vectors<float4>(src, dst, n); }

// ---- offset, strided

KERNEL offset_read(const float* src, float* dst, size_t n, size_t offset) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i + offset] * 2.0f;
}

KERNEL strided_read(const float* src, float* dst, size_t n, size_t stride) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i * stride] * 2.0f;
}

KERNEL strided_copy(const float* src, float* dst, size_t n, size_t stride) {
    for (size_t i = index_x(); i < n; i += count_x()) {
        size_t from = (i % 32) * stride + (i / 32) * 32 * stride;
        if (from < n * stride) dst[i] = src[from];
    }
}

// ---- pattern

KERNEL pattern_stride_1000(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) {
        size_t warp = i / 32, lane = i % 32;
        dst[i] = src[warp / 125 * 32000 + warp % 125 * 8 + lane * 1000];
    }
}

KERNEL pattern_random(const float* src, float* dst, size_t n, size_t range) {
    size_t i = index_x();
    if (i < n) {
        unsigned long long z = (i ^ i >> 31) * 0xBF58476D1CE4E5B9ull ^ 0x94D049BB133111EBull;
        z = (z ^ z >> 29) * 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 32) * 0xD6E8FEB86659FD93ull;
        dst[i] = src[__umul64hi(z ^ z >> 32, range)];
    }
}

KERNEL pattern_permuted(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i ^ 21];
}

KERNEL pattern_reversed(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[n - 1 - i];
}

KERNEL pattern_half_warp(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n && i % 32 < 16) dst[i] = src[i];
}

KERNEL pattern_one_lane(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n && i % 32 == 0) dst[i] = src[i];
}

KERNEL pattern_broadcast(const float* src, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i / 32];
}

// ---- dtype, vectorize

template <typename T> static __device__ void copy_strided(const T* src, T* dst, size_t n, size_t stride) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i * stride];
}

KERNEL dtype_i8(const char* src, char* dst, size_t n, size_t stride) { copy_strided(src, dst, n, stride); }

KERNEL dtype_f16(const f16* src, f16* dst, size_t n, size_t stride) { copy_strided(src, dst, n, stride); }

KERNEL dtype_f32(const float* src, float* dst, size_t n, size_t stride) { copy_strided(src, dst, n, stride); }

KERNEL dtype_f64(const double* src, double* dst, size_t n, size_t stride) { copy_strided(src, dst, n, stride); }

KERNEL dtype_f32x4(const float4* src, float4* dst, size_t n, size_t stride) { copy_strided(src, dst, n, stride); }

KERNEL vectorize_2_bytes(const f16* src, f16* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[i];
}

KERNEL vectorize_4_bytes(const f16* src, f16* dst, size_t n) { copy_vectors<float>(src, dst, n); }

KERNEL vectorize_8_bytes(const f16* src, f16* dst, size_t n) { copy_vectors<float2>(src, dst, n); }

KERNEL vectorize_16_bytes(const f16* src, f16* dst, size_t n) { copy_vectors<float4>(src, dst, n); }

// ---- cache_path

KERNEL cache_path_cached(const float* src, float* dst, size_t n, unsigned lanes) {
    size_t i = index_x();
    if (i < n && lane_id() < lanes) dst[i] = src[i];
}

KERNEL cache_path_cg(const float* src, float* dst, size_t n, unsigned lanes) {
    size_t i = index_x();
    if (i < n && lane_id() < lanes) dst[i] = __ldcg(src + i);
}

KERNEL cache_path_nc(const float* src, float* dst, size_t n, unsigned lanes) {
    size_t i = index_x();
    if (i < n && lane_id() < lanes) dst[i] = __ldg(src + i);
}

KERNEL cache_path_cs(const float* src, float* dst, size_t n, unsigned lanes) {
    size_t i = index_x();
    if (i < n && lane_id() < lanes) dst[i] = __ldcs(src + i);
}

// ---- constant

template <typename Load>
static __device__ void sum_terms(const float* src, float* dst, size_t n, unsigned terms, Load load) {
    size_t i = index_x();
    if (i < n) {
        float x = src[i], sum = 0;
        for (unsigned k = 0; k < terms; k++) sum = fmaf(load(k), x, sum);
        dst[i] = sum;
    }
}

KERNEL constant_global(const float* src, const float* table, float* dst, size_t n, unsigned terms) {
    sum_terms(src, dst, n, terms, [=](unsigned k) { return table[k]; });
}

KERNEL constant_nc(const float* src, const float* table, float* dst, size_t n, unsigned terms) {
    sum_terms(src, dst, n, terms, [=](unsigned k) { return __ldg(table + k); });
}

// Filled before the launch, by these names: `-rdc=true` makes them visible.
extern "C" {
__constant__ float constant_uniform_table[64];
__constant__ float constant_divergent_table[64];
}

KERNEL constant_uniform(const float* src, float* dst, size_t n, unsigned terms) {
    sum_terms(src, dst, n, terms, [](unsigned k) { return constant_uniform_table[k]; });
}

KERNEL constant_divergent(const float* src, float* dst, size_t n, unsigned terms) {
    sum_terms(src, dst, n, terms, [](unsigned k) { return constant_divergent_table[(k + lane_id()) % 64]; });
}

// ---- transpose, transpose_types

KERNEL transpose_copy(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < width && y + j < height) dst[at(y + j, x, width)] = src[at(y + j, x, width)];
}

KERNEL transpose_naive(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) dst[at(x, y, height)] = src[at(y, x, width)];
}

KERNEL transpose_naive_strided_load(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < height && y < width) dst[at(y, x, height)] = src[at(x, y, width)];
}

// Through a tile of 32 by 32 whose rows are `pitch` elements apart.
template <unsigned pitch, typename T>
static __device__ void transpose_through(const T* src, T* dst, unsigned width, unsigned height) {
    __shared__ T tile[32][pitch];
    unsigned lane = threadIdx.x, row = threadIdx.y;
    unsigned x = blockIdx.x * 32 + lane, y = blockIdx.y * 32 + row;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[row + j][lane] = src[at(y + j, x, width)];
    __syncthreads();
    x = blockIdx.y * 32 + lane, y = blockIdx.x * 32 + row;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < height && y + j < width) dst[at(y + j, x, height)] = tile[lane][row + j];
}

KERNEL transpose_tiled(const float* src, float* dst, unsigned width, unsigned height) {
    transpose_through<32>(src, dst, width, height);
}

KERNEL transpose_padded(const float* src, float* dst, unsigned width, unsigned height) {
    transpose_through<33>(src, dst, width, height);
}

KERNEL transpose_types_f64(const double* src, double* dst, unsigned width, unsigned height) {
    transpose_through<33>(src, dst, width, height);
}

KERNEL transpose_types_f16(const f16* src, f16* dst, unsigned width, unsigned height) {
    transpose_through<34>(src, dst, width, height);
}

KERNEL transpose_types_i8(const char* src, char* dst, unsigned width, unsigned height) {
    transpose_through<36>(src, dst, width, height);
}

// ---- transpose_tiles

template <unsigned pitch>
static __device__ void transpose_through_16x16(const float* src, float* dst, unsigned width, unsigned height) {
    __shared__ float tile[16][pitch];
    unsigned column = threadIdx.x, row = threadIdx.y;
    unsigned x = blockIdx.x * 16 + column, y = blockIdx.y * 16 + row;
    if (x < width && y < height) tile[row][column] = src[at(y, x, width)];
    __syncthreads();
    x = blockIdx.y * 16 + column, y = blockIdx.x * 16 + row;
    if (x < height && y < width) dst[at(y, x, height)] = tile[column][row];
}

KERNEL transpose_tiles_16x16(const float* src, float* dst, unsigned width, unsigned height) {
    transpose_through_16x16<16>(src, dst, width, height);
}

KERNEL transpose_tiles_16x16_padded(const float* src, float* dst, unsigned width, unsigned height) {
    transpose_through_16x16<17>(src, dst, width, height);
}

KERNEL transpose_tiles_swizzled(const float* src, float* dst, unsigned width, unsigned height) {
    __shared__ float tile[32][32];
    unsigned lane = threadIdx.x, row = threadIdx.y;
    unsigned x = blockIdx.x * 32 + lane, y = blockIdx.y * 32 + row;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[row + j][lane ^ (row + j)] = src[at(y + j, x, width)];
    __syncthreads();
    x = blockIdx.y * 32 + lane, y = blockIdx.x * 32 + row;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < height && y + j < width) dst[at(y + j, x, height)] = tile[lane][lane ^ (row + j)];
}

// A tile of 64 by 64 whose pieces of 4 words are swizzled; sizes count vectors of 4.
static __device__ void transpose_vectors(float4* tile, const float4* src, float4* dst, unsigned width,
                                         unsigned height) {
    unsigned column = threadIdx.x % 16, row = threadIdx.x / 16;
    unsigned x = blockIdx.y * 16 + column, y = blockIdx.x * 16 + row;
    if (x < width && y < height) {
        float4 a = src[at(4 * y, x, width)], b = src[at(4 * y + 1, x, width)];
        float4 c = src[at(4 * y + 2, x, width)], d = src[at(4 * y + 3, x, width)];
        float4* piece = tile + 4 * column * 16 + (row ^ column);
        piece[0] = make_float4(a.x, b.x, c.x, d.x);
        piece[16] = make_float4(a.y, b.y, c.y, d.y);
        piece[32] = make_float4(a.z, b.z, c.z, d.z);
        piece[48] = make_float4(a.w, b.w, c.w, d.w);
    }
    __syncthreads();
    x = blockIdx.x * 16 + column, y = blockIdx.y * 16 + row;
    if (x < height && y < width)
#pragma unroll
        for (unsigned k = 0; k < 4; k++) dst[at(4 * y + k, x, height)] = tile[(4 * row + k) * 16 + (column ^ row)];
}

static __device__ void transpose_elements(float* tile, const float* src, float* dst, unsigned width, unsigned height) {
    unsigned column = threadIdx.x % 64, row = threadIdx.x / 64;
    unsigned x = blockIdx.y * 64 + column, y = blockIdx.x * 64 + row;
#pragma unroll
    for (unsigned j = 0; j < 64; j += 4)
        if (x < width && y + j < height) tile[(row + j) * 64 + (column ^ (row + j))] = src[at(y + j, x, width)];
    __syncthreads();
    x = blockIdx.x * 64 + column, y = blockIdx.y * 64 + row;
#pragma unroll
    for (unsigned j = 0; j < 64; j += 4)
        if (x < height && y + j < width) dst[at(y + j, x, height)] = tile[column * 64 + (column ^ (row + j))];
}

KERNEL transpose_tiles_vec4_swizzled(const float* src, float* dst, unsigned width, unsigned height) {
    __shared__ float4 tile[64 * 16];
    if (width % 4 == 0 && height % 4 == 0)
        transpose_vectors(tile, (const float4*)src, (float4*)dst, width / 4, height / 4);
    else
        transpose_elements((float*)tile, src, dst, width, height);
}

// ---- particles

struct Particle {
    float x, y, z, vx, vy, vz, mass, charge;
};

struct Quad {
    float x, y, z, speed;
};

KERNEL particles_aos(Particle* particles, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        Particle* p = particles + i;
        float x = fmaf(p->vx, dt, p->x);
        float y = fmaf(p->vy, dt, p->y);
        float z = fmaf(p->vz, dt, p->z);
        p->x = x;
        p->y = y;
        p->z = z;
    }
}

KERNEL particles_aos_vec4(float* particles, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        float4 first = ((float4*)particles)[2 * i];
        float2 second = ((float2*)particles)[4 * i + 2];
        first.x = fmaf(first.w, dt, first.x);
        first.y = fmaf(second.x, dt, first.y);
        first.z = fmaf(second.y, dt, first.z);
        ((float4*)particles)[2 * i] = first;
    }
}

KERNEL particles_aos_pair(float* particles, size_t n, float dt) {
    size_t i = index_x();
    float4 half = make_float4(0, 0, 0, 0);
    if (i < 2 * n) half = ((float4*)particles)[i];
    float v = __shfl_down_sync(~0u, half.x, 1), w = __shfl_down_sync(~0u, half.y, 1);
    if (lane_id() % 2 == 0) {
        half.x = fmaf(half.w, dt, half.x);
        half.y = fmaf(v, dt, half.y);
        half.z = fmaf(w, dt, half.z);
    }
    if (i < 2 * n) ((float4*)particles)[i] = half;
}

KERNEL particles_aosoa(float* particles, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        float* p = particles + i / 32 * 256 + i % 32;
        float x = fmaf(p[96], dt, p[0]);
        float y = fmaf(p[128], dt, p[32]);
        float z = fmaf(p[160], dt, p[64]);
        p[0] = x;
        p[32] = y;
        p[64] = z;
    }
}

KERNEL particles_soa(float* x, float* y, float* z, const float* vx, const float* vy, const float* vz, size_t n,
                     float dt) {
    size_t i = index_x();
    if (i < n) {
        float px = x[i], py = y[i], pz = z[i];
        x[i] = fmaf(vx[i], dt, px);
        y[i] = fmaf(vy[i], dt, py);
        z[i] = fmaf(vz[i], dt, pz);
    }
}

KERNEL particles_quad_aos(Quad* particles, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        Quad* p = particles + i;
        float speed = p->speed;
        float x = fmaf(speed, dt, p->x);
        float y = fmaf(speed, dt, p->y);
        float z = fmaf(speed, dt, p->z);
        p->x = x;
        p->y = y;
        p->z = z;
    }
}

KERNEL particles_quad_aos_vec4(float4* particles, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        float4 p = particles[i];
        particles[i] = make_float4(fmaf(p.w, dt, p.x), fmaf(p.w, dt, p.y), fmaf(p.w, dt, p.z), p.w);
    }
}

KERNEL particles_quad_soa(float* x, float* y, float* z, const float* w, size_t n, float dt) {
    size_t i = index_x();
    if (i < n) {
        float px = x[i], py = y[i], pz = z[i], speed = w[i];
        x[i] = fmaf(speed, dt, px);
        y[i] = fmaf(speed, dt, py);
        z[i] = fmaf(speed, dt, pz);
    }
}

// ---- gather, scatter, embedding

KERNEL gather_indexed(const float* src, const unsigned* index, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[i] = src[index[i]];
}

KERNEL scatter_indexed(const float* src, const unsigned* index, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n) dst[index[i]] = src[i];
}

KERNEL gather_vec4(const float* src, const unsigned* index, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n / 4) {
        uint4 from = ((const uint4*)index)[i];
        ((float4*)dst)[i] = make_float4(src[from.x], src[from.y], src[from.z], src[from.w]);
    }
    if (i < n % 4) {
        size_t last = n - n % 4 + i;
        dst[last] = src[index[last]];
    }
}

KERNEL scatter_vec4(const float* src, const unsigned* index, float* dst, size_t n) {
    size_t i = index_x();
    if (i < n / 4) {
        uint4 to = ((const uint4*)index)[i];
        float4 value = ((const float4*)src)[i];
        dst[to.x] = value.x;
        dst[to.y] = value.y;
        dst[to.z] = value.z;
        dst[to.w] = value.w;
    }
    if (i < n % 4) {
        size_t last = n - n % 4 + i;
        dst[index[last]] = src[last];
    }
}

KERNEL embedding_thread_a_row(const float* table, const unsigned* indices, float* dst, size_t n, size_t width,
                              size_t pitch) {
    size_t i = index_x();
    if (i < n) {
        size_t row = indices[i];
        for (size_t x = 0; x < width; x++) dst[i * pitch + x] = table[row * pitch + x];
    }
}

// A warp copies row `row` of a table to row `i`, 32 elements at a time.
template <typename T>
static __device__ void copy_row(const T* table, T* dst, size_t i, size_t row, size_t width, size_t pitch) {
    for (size_t first = 0; first < width; first += 32) {
        size_t x = first + lane_id();
        if (x < width) dst[i * pitch + x] = table[row * pitch + x];
    }
}

KERNEL embedding_warp_a_row(const float* table, const unsigned* indices, float* dst, size_t n, size_t width,
                            size_t pitch) {
    size_t i = index_x() / 32;
    if (i < n) copy_row(table, dst, i, indices[i], width, pitch);
}

KERNEL embedding_warp_a_row_vec4(const float* table, const unsigned* indices, float* dst, size_t n, size_t vectors) {
    size_t i = index_x() / 32;
    if (i < n) copy_row((const float4*)table, (float4*)dst, i, indices[i], vectors, vectors);
}

// Four rows a half warp, all on their way at a time.
KERNEL embedding_half_warp_a_row_vec4(const float* table, const unsigned* indices, float* dst, size_t n,
                                      size_t vectors) {
    const float4* from = (const float4*)table;
    float4* to = (float4*)dst;
    size_t first = (size_t)blockIdx.x * 64 + threadIdx.x / 16, rows[4];
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
        if (first + 16 * k < n) rows[k] = indices[first + 16 * k];
    for (size_t x = threadIdx.x % 16; x < vectors; x += 16) {
        float4 values[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            if (first + 16 * k < n) values[k] = from[rows[k] * vectors + x];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            if (first + 16 * k < n) to[(first + 16 * k) * vectors + x] = values[k];
    }
}

// ---- matrix

// The sum of the warp's values, in its lane 0.
static __device__ float warp_sum(float sum) {
#pragma unroll
    for (unsigned delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(~0u, sum, delta);
    return sum;
}

KERNEL matrix_row_sums_thread(const float* src, float* dst, size_t width, size_t height) {
    size_t y = index_x();
    if (y < height) {
        float sum = 0;
        for (size_t x = 0; x < width; x++) sum += src[y * width + x];
        dst[y] = sum;
    }
}

KERNEL matrix_row_sums_warp(const float* src, float* dst, size_t width, size_t height) {
    size_t y = index_x() / 32;
    if (y < height) {
        float sum = 0;
        for (size_t first = 0; first < width; first += 32) {
            size_t x = first + lane_id();
            if (x < width) sum += src[y * width + x];
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) dst[y] = sum;
    }
}

KERNEL matrix_column_sums_warp(const float* src, float* dst, size_t width, size_t height) {
    size_t x = index_x() / 32;
    if (x < width) {
        float sum = 0;
        for (size_t first = 0; first < height; first += 32) {
            size_t y = first + lane_id();
            if (y < height) sum += src[y * width + x];
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) dst[x] = sum;
    }
}

KERNEL matrix_column_sums_thread(const float* src, float* dst, size_t width, size_t height) {
    size_t x = index_x();
    if (x < width) {
        float sum = 0;
        for (size_t y = 0; y < height; y++) sum += src[y * width + x];
        dst[x] = sum;
    }
}

KERNEL matrix_column_sums_block(const float* src, float* dst, size_t width, size_t height) {
    __shared__ float parts[8][32];
    unsigned lane = threadIdx.x, row = threadIdx.y;
    size_t x = (size_t)blockIdx.x * 32 + lane, first = (size_t)blockIdx.y * 256;
    size_t end = height < first + 256 ? height : first + 256;
    float sum = 0;
    if (x < width)
        for (size_t y = first + row; y < end; y += 8) sum += src[y * width + x];
    parts[row][lane] = sum;
    __syncthreads();
    if (row == 0 && x < width) {
        float sum = 0;
        for (unsigned part = 0; part < 8; part++) sum += parts[part][lane];
        atomicAdd(dst + x, sum);
    }
}

KERNEL matrix_column_copy(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y;
    if (x < width && y < height) dst[at(y, x, width)] = src[at(y, x, width)];
}

KERNEL matrix_strided_copy(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8)
        if (x < height && y + j < width) dst[at(y + j, x, height)] = src[at(x, y + j, width)];
}

// ---- batched

KERNEL batched_batch_on_x(const float* a, const float* b, float* c, size_t batch) {
    size_t product = (size_t)blockIdx.x * 32 + threadIdx.x, element = (size_t)blockIdx.y * 8 + threadIdx.y;
    if (product < batch) {
        size_t first = product * 1024, row = element / 32, column = element % 32;
        float sum = 0;
        for (size_t k = 0; k < 32; k++) sum = fmaf(a[first + row * 32 + k], b[first + k * 32 + column], sum);
        c[first + element] = sum;
    }
}

KERNEL batched_batch_last(const float* a, const float* b, float* c, size_t batch) {
    size_t i = index_x();
    size_t product = i / 1024, row = i / 32 % 32, column = i % 32;
    if (product < batch) {
        size_t first = product * 1024;
        float sum = 0;
        for (size_t k = 0; k < 32; k++) sum = fmaf(a[first + row * 32 + k], b[first + k * 32 + column], sum);
        c[i] = sum;
    }
}

KERNEL batched_interleaved(const float* a, const float* b, float* c, size_t batch) {
    size_t product = (size_t)blockIdx.x * 32 + threadIdx.x, element = (size_t)blockIdx.y * 8 + threadIdx.y;
    if (product < batch) {
        size_t row = element / 32, column = element % 32;
        float sum = 0;
        for (size_t k = 0; k < 32; k++)
            sum = fmaf(a[(row * 32 + k) * batch + product], b[(k * 32 + column) * batch + product], sum);
        c[element * batch + product] = sum;
    }
}

// ---- bank

// Shared accesses of a lane that stay as they are: C++ has no volatile vectors.
static __device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

static __device__ float load_shared(const float* p) {
    float v;
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(v) : "r"(shared_address(p)) : "memory");
    return v;
}

static __device__ float2 load_shared(const float2* p) {
    float2 v;
    asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y) : "r"(shared_address(p)) : "memory");
    return v;
}

static __device__ float4 load_shared(const float4* p) {
    float4 v;
    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(shared_address(p)) : "memory");
    return v;
}

static __device__ void store_shared(float* p, float v) {
    asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(shared_address(p)), "f"(v) : "memory");
}

static __device__ void store_shared(float2* p, float2 v) {
    asm volatile("st.volatile.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared_address(p)), "f"(v.x), "f"(v.y) : "memory");
}

static __device__ void store_shared(float4* p, float4 v) {
    asm volatile("st.volatile.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 ::"r"(shared_address(p)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

static __device__ float total(float v) { return v; }
static __device__ float total(float2 v) { return v.x + v.y; }
static __device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// As many of the values as an element has places.
template <typename T> static __device__ T element(float x, float y, float z, float w);
template <> __device__ float element<float>(float x, float, float, float) { return x; }
template <> __device__ float2 element<float2>(float x, float y, float, float) { return make_float2(x, y); }
template <> __device__ float4 element<float4>(float x, float y, float z, float w) { return make_float4(x, y, z, w); }

extern __shared__ float4 dynamic_shared[];

// 64 loads of element `first` of a tile of `size`, `step` elements further on each time.
template <typename T>
static __device__ void load_repeatedly(float* dst, size_t n, unsigned size, unsigned first, unsigned step) {
    T* tile = (T*)dynamic_shared;
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) store_shared(tile + i, element<T>(i, 1, 2, 3));
    __syncthreads();
    size_t i = index_x();
    if (i < n) {
        float sum = 0;
        for (unsigned time = 0; time < 64; time++) sum += total(load_shared(tile + first + time * step));
        dst[i] = sum;
    }
}

KERNEL bank_broadcast(float* dst, size_t n, unsigned words) { load_repeatedly<float>(dst, n, 64 * words, 0, words); }

KERNEL bank_multicast(float* dst, size_t n, unsigned words) {
    load_repeatedly<float>(dst, n, words + 64, min(lane_id(), words - 1), 1);
}

KERNEL bank_multicast_one_bank(float* dst, size_t n, unsigned words) {
    load_repeatedly<float>(dst, n, 32 * 32 + 3 * 64, 32 * min(lane_id(), words - 1), 3);
}

KERNEL bank_load(float* dst, size_t n, unsigned words) {
    load_repeatedly<float>(dst, n, 31 * words + 64, lane_id() * words, 1);
}

KERNEL bank_load_vec2(float* dst, size_t n, unsigned words) {
    load_repeatedly<float2>(dst, n, 31 * words + 64, lane_id() * words, 1);
}

KERNEL bank_load_vec4(float* dst, size_t n, unsigned words) {
    load_repeatedly<float4>(dst, n, 31 * words + 64, lane_id() * words, 1);
}

// 64 stores, lanes `words` elements apart, each warp into elements of its own.
template <typename T> static __device__ void store_repeatedly(float* dst, size_t n, unsigned words) {
    size_t i = index_x();
    unsigned own = threadIdx.x * words;
    T* place = (T*)dynamic_shared + own;
    for (unsigned time = 0; time < 64; time++) {
        if (i < n) store_shared(place, element<T>(sizeof(T) == 4 ? own + time : own, time, 1, 2));
        __syncwarp();
    }
    if (i < n) dst[i] = total(load_shared(place));
}

KERNEL bank_store(float* dst, size_t n, unsigned words) { store_repeatedly<float>(dst, n, words); }

KERNEL bank_store_vec2(float* dst, size_t n, unsigned words) { store_repeatedly<float2>(dst, n, words); }

KERNEL bank_store_vec4(float* dst, size_t n, unsigned words) { store_repeatedly<float4>(dst, n, words); }

// ---- padding

// Rows of 32 words turned into columns, word `x` of row `y` at `place(y, x)` of the tile.
template <typename Place> static __device__ void turn_rows(const float* src, float* dst, unsigned rows, Place place) {
    volatile float* tile = (float*)dynamic_shared;
    size_t first = (size_t)blockIdx.x * (32 * rows);
    for (unsigned k = threadIdx.x; k < 32 * rows; k += 256) tile[place(k / 32, k % 32)] = src[first + k];
    __syncthreads();
    for (unsigned x = threadIdx.x / 32; x < 32; x += 8)
        for (unsigned y = lane_id(); y - lane_id() < rows; y += 32)
            if (y < rows) dst[first + at(x, y, rows)] = tile[place(y, x)];
}

KERNEL padding_none(const float* src, float* dst, unsigned rows) {
    turn_rows(src, dst, rows, [](unsigned y, unsigned x) { return y * 32 + x; });
}

KERNEL padding_word(const float* src, float* dst, unsigned rows) {
    turn_rows(src, dst, rows, [](unsigned y, unsigned x) { return y * 33 + x; });
}

KERNEL padding_swizzled(const float* src, float* dst, unsigned rows) {
    turn_rows(src, dst, rows, [](unsigned y, unsigned x) { return y * 32 + (x ^ y % 32); });
}

// ---- latency

// The multiprocessor's clock, which no access passes.
static __device__ unsigned long long clock_between() {
    unsigned long long ticks;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks)::"memory");
    return ticks;
}

// A chase of `hops` loads from element `i` on, each naming the next.
template <typename Load> static __device__ unsigned chase(unsigned i, unsigned hops, Load load) {
    for (unsigned hop = 0; hop < hops; hop++) i = load(i);
    return i;
}

template <typename Load>
static __device__ void time_chase(unsigned i, unsigned* dst, float* cycles, unsigned hops, Load load) {
    unsigned long long start = clock_between();
    i = chase(i, hops, load);
    cycles[0] = (float)(clock_between() - start);
    dst[0] = i;
}

KERNEL latency_global(const unsigned* next, unsigned* dst, float* cycles, unsigned hops) {
    time_chase(0, dst, cycles, hops, [=](unsigned i) { return next[i]; });
}

KERNEL latency_l2(const unsigned* next, unsigned* dst, float* cycles, unsigned hops) {
    auto load = [=](unsigned i) { return __ldcg(next + i); };
    time_chase(chase(0, hops, load), dst, cycles, hops, load);
}

KERNEL latency_l1(const unsigned* next, unsigned* dst, float* cycles, unsigned hops) {
    auto load = [=](unsigned i) { return next[i]; };
    time_chase(chase(0, hops, load), dst, cycles, hops, load);
}

KERNEL latency_shared(const unsigned* next, unsigned* dst, float* cycles, unsigned hops) {
    __shared__ volatile unsigned ring[1024];
    for (unsigned k = 0; k < 1024; k++) ring[k] = next[k];
    time_chase(0, dst, cycles, hops, [=](unsigned i) { return ring[i]; });
}

// Eight loads from shared memory over and over, lanes `stride` words apart, `step` words further on each time.
template <unsigned stride, unsigned step>
static __device__ void time_loads(float* dst, float* cycles, unsigned times) {
    __shared__ volatile float tile[1024];
    tile[threadIdx.x] = threadIdx.x;
    float sum = 0;
    __syncthreads();
    unsigned long long start = clock_between();
    for (unsigned time = 0; time < times; time++)
#pragma unroll
        for (unsigned k = 0; k < 8; k++) sum += tile[stride * lane_id() + step * k];
    __syncthreads();
    if (threadIdx.x == 0) cycles[0] = (float)(clock_between() - start);
    dst[threadIdx.x] = sum;
}

KERNEL latency_shared_throughput(float* dst, float* cycles, unsigned times) { time_loads<1, 32>(dst, cycles, times); }

KERNEL latency_shared_conflict(float* dst, float* cycles, unsigned times) { time_loads<32, 1>(dst, cycles, times); }

// ---- reduce

KERNEL reduce_interleaved(const float* src, float* dst, size_t n) {
    __shared__ volatile float tile[256];
    unsigned thread = threadIdx.x;
    size_t i = index_x();
    tile[thread] = i < n ? src[i] : 0;
#pragma unroll
    for (unsigned step = 1; step < 256; step *= 2) {
        __syncthreads();
        unsigned own = 2 * step * thread;
        if (own < 256) tile[own] = tile[own] + tile[own + step];
    }
    if (thread == 0) dst[blockIdx.x] = tile[0];
}

KERNEL reduce_sequential(const float* src, float* dst, size_t n) {
    __shared__ volatile float tile[256];
    unsigned thread = threadIdx.x;
    size_t i = index_x();
    tile[thread] = i < n ? src[i] : 0;
#pragma unroll
    for (unsigned step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (thread < step) tile[thread] = tile[thread] + tile[thread + step];
    }
    if (thread == 0) dst[blockIdx.x] = tile[0];
}

static __device__ float strided_sum(const float* src, size_t n) {
    float sum = 0;
    for (size_t i = index_x(); i < n; i += count_x()) sum += src[i];
    return sum;
}

static __device__ float strided_sum_vec4(const float* src, size_t n) {
    float sum = 0;
    for (size_t i = index_x(); i < n / 4; i += count_x()) sum += total(((const float4*)src)[i]);
    if (index_x() < n % 4) sum += src[n - n % 4 + index_x()];
    return sum;
}

// The sum of the values of the block's warps, in its thread 0.
template <unsigned warps = 8> static __device__ float block_sum(float sum) {
    __shared__ float sums[warps];
    sum = warp_sum(sum);
    if (lane_id() == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    return warp_sum(threadIdx.x < warps ? sums[threadIdx.x] : 0);
}

KERNEL reduce_grid_stride(const float* src, float* dst, size_t n) {
    float sum = warp_sum(strided_sum(src, n));
    if (lane_id() == 0) atomicAdd(dst, sum);
}

KERNEL reduce_vec4(const float* src, float* dst, size_t n) {
    float sum = warp_sum(strided_sum_vec4(src, n));
    if (lane_id() == 0) atomicAdd(dst, sum);
}

KERNEL reduce_vec4_block(const float* src, float* dst, size_t n) {
    float sum = block_sum(strided_sum_vec4(src, n));
    if (threadIdx.x == 0) atomicAdd(dst, sum);
}

KERNEL reduce_partials(const float* src, float* dst, size_t n) {
    float sum = block_sum(strided_sum_vec4(src, n));
    if (threadIdx.x == 0) dst[blockIdx.x] = sum;
}

KERNEL reduce_final(const float* src, float* dst, size_t n) {
    float sum = block_sum(strided_sum(src, n));
    if (threadIdx.x == 0) dst[0] = sum;
}

KERNEL reduce_vec4_tiles(const float* src, float* dst, size_t n) {
    float sum = 0;
    for (size_t first = (size_t)2048 * blockIdx.x; first < n / 4; first += (size_t)2048 * gridDim.x) {
        float4 vectors[4] = {};
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            size_t i = first + 512 * k + threadIdx.x;
            if (i < n / 4) vectors[k] = ((const float4*)src)[i];
        }
        sum += (total(vectors[0]) + total(vectors[1])) + (total(vectors[2]) + total(vectors[3]));
    }
    if (index_x() < n % 4) sum += src[n - n % 4 + index_x()];
    sum = block_sum<16>(sum);
    if (threadIdx.x == 0) atomicAdd(dst, sum);
}

// ---- sync

KERNEL sync_tiled(const float* src, float* dst, size_t n) {
    __shared__ float tile[256 + 1];
    unsigned thread = threadIdx.x;
    size_t i = index_x();
    float value = i < n ? src[i] : 0;
    tile[thread] = value;
    if (thread == 0) tile[256] = 0;
    for (unsigned round = 0; round < 8; round++) {
        __syncthreads();
        value += tile[thread + 1];
        __syncthreads();
        tile[thread] = value;
    }
    __syncthreads();
    if (i < n) dst[i] = tile[255 - thread];
}

KERNEL sync_double_buffered(const float* src, float* dst, size_t n) {
    __shared__ float tiles[2][256 + 1];
    unsigned thread = threadIdx.x;
    size_t i = index_x();
    float value = i < n ? src[i] : 0;
    tiles[0][thread] = value;
    if (thread < 2) tiles[thread][256] = 0;
    for (unsigned round = 0; round < 8; round++) {
        __syncthreads();
        value += tiles[round % 2][thread + 1];
        tiles[(round + 1) % 2][thread] = value;
    }
    __syncthreads();
    if (i < n) dst[i] = tiles[0][255 - thread];
}

// ---- matmul

static __device__ void multiply(const float* a, const float* b, float* c, unsigned row, unsigned column, unsigned m,
                                unsigned n, unsigned depth) {
    if (row < m && column < n) {
        float sum = 0;
        for (unsigned k = 0; k < depth; k++) sum = fmaf(a[at(row, k, depth)], b[at(k, column, n)], sum);
        c[at(row, column, n)] = sum;
    }
}

KERNEL matmul_uncoalesced(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    unsigned row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
    multiply(a, b, c, row, column, m, n, depth);
}

KERNEL matmul_swapped(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    unsigned row = blockIdx.x * 32 + threadIdx.x % 32, column = blockIdx.y * 32 + threadIdx.x / 32;
    multiply(a, b, c, row, column, m, n, depth);
}

KERNEL matmul_naive(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    unsigned row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    multiply(a, b, c, row, column, m, n, depth);
}

KERNEL matmul_remapped(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    unsigned row = blockIdx.y * 32 + threadIdx.x / 32, column = blockIdx.x * 32 + threadIdx.x % 32;
    multiply(a, b, c, row, column, m, n, depth);
}

// B's element at step `k`, column `x` of the tile stands at `x * x_pitch + k * k_pitch` of `size` words.
template <unsigned x_pitch, unsigned k_pitch, unsigned size>
static __device__ void multiply_tiled(const float* a, const float* b, float* c, unsigned m, unsigned n,
                                      unsigned depth) {
    __shared__ float4 a_tile[32][8];
    __shared__ volatile float b_tile[size];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0;
    for (unsigned first = 0; first < depth; first += 32) {
        bool a_is_inside = row < m && first + x < depth, b_is_inside = first + y < depth && column < n;
        ((float*)a_tile[y])[x] = a_is_inside ? a[at(row, first + x, depth)] : 0;
        b_tile[x * x_pitch + y * k_pitch] = b_is_inside ? b[at(first + y, column, n)] : 0;
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < 32; k += 4) {
            float4 a_words = a_tile[y][k / 4];
            sum = fmaf(a_words.x, b_tile[x * x_pitch + k * k_pitch], sum);
            sum = fmaf(a_words.y, b_tile[x * x_pitch + (k + 1) * k_pitch], sum);
            sum = fmaf(a_words.z, b_tile[x * x_pitch + (k + 2) * k_pitch], sum);
            sum = fmaf(a_words.w, b_tile[x * x_pitch + (k + 3) * k_pitch], sum);
        }
        __syncthreads();
    }
    if (row < m && column < n) c[at(row, column, n)] = sum;
}

KERNEL matmul_tiled_transposed(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    multiply_tiled<32, 1, 32 * 32>(a, b, c, m, n, depth);
}

KERNEL matmul_tiled_padded(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    multiply_tiled<33, 1, 33 * 32>(a, b, c, m, n, depth);
}

KERNEL matmul_tiled(const float* a, const float* b, float* c, unsigned m, unsigned n, unsigned depth) {
    multiply_tiled<1, 32, 32 * 32>(a, b, c, m, n, depth);
}

// ---- attention

KERNEL attention_naive(const float* q, const float* k, float* scores, unsigned tokens) {
    unsigned key = blockIdx.x * 32 + threadIdx.x, query = blockIdx.y * 32 + threadIdx.y;
    if (key < tokens && query < tokens) {
        float score = 0;
        for (unsigned d = 0; d < 64; d++) score = fmaf(q[at(query, d, 64)], k[at(key, d, 64)], score);
        scores[at(query, key, tokens)] = score;
    }
}

template <unsigned pitch>
static __device__ void score_through(const float* q, const float* k, float* scores, unsigned tokens) {
    __shared__ volatile float tile[32][pitch];
    unsigned lane = threadIdx.x, row = threadIdx.y, first = blockIdx.x * 32;
    if (first + row < tokens) {
        tile[row][lane] = k[at(first + row, lane, 64)];
        tile[row][lane + 32] = k[at(first + row, lane + 32, 64)];
    }
    __syncthreads();
    unsigned key = first + lane, query = blockIdx.y * 32 + row;
    if (key < tokens && query < tokens) {
        float score = 0;
        for (unsigned d = 0; d < 64; d++) score = fmaf(q[at(query, d, 64)], tile[lane][d], score);
        scores[at(query, key, tokens)] = score;
    }
}

KERNEL attention_tiled(const float* q, const float* k, float* scores, unsigned tokens) {
    score_through<64>(q, k, scores, tokens);
}

KERNEL attention_padded(const float* q, const float* k, float* scores, unsigned tokens) {
    score_through<65>(q, k, scores, tokens);
}

// ---- nchw

KERNEL nchw_to_nhwc_naive(const float* src, float* dst, size_t pixels, unsigned channels) {
    size_t pixel = index_x();
    unsigned channel = blockIdx.y * blockDim.y + threadIdx.y;
    if (pixel < pixels && channel < channels) {
        size_t image = (size_t)blockIdx.z * channels * pixels;
        dst[image + pixel * channels + channel] = src[image + channel * pixels + pixel];
    }
}

KERNEL nchw_to_nhwc_tiled(const float* src, float* dst, size_t pixels, unsigned channels) {
    __shared__ float tile[32][33];
    unsigned lane = threadIdx.x, row = threadIdx.y, first_channel = blockIdx.y * 32;
    size_t first_pixel = (size_t)blockIdx.x * 32, image = (size_t)blockIdx.z * channels * pixels;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8) {
        size_t pixel = first_pixel + lane;
        unsigned channel = first_channel + row + j;
        if (pixel < pixels && channel < channels) tile[row + j][lane] = src[image + channel * pixels + pixel];
    }
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8) {
        size_t pixel = first_pixel + row + j;
        unsigned channel = first_channel + lane;
        if (pixel < pixels && channel < channels) dst[image + pixel * channels + channel] = tile[lane][row + j];
    }
}

KERNEL nchw_from_nhwc_naive(const float* src, float* dst, size_t pixels, unsigned channels) {
    size_t pixel = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    unsigned channel = blockIdx.y * 32 + threadIdx.x;
    if (pixel < pixels && channel < channels) {
        size_t image = (size_t)blockIdx.z * channels * pixels;
        dst[image + channel * pixels + pixel] = src[image + pixel * channels + channel];
    }
}

KERNEL nchw_from_nhwc_tiled(const float* src, float* dst, size_t pixels, unsigned channels) {
    __shared__ float tile[32][33];
    unsigned lane = threadIdx.x, row = threadIdx.y, first_channel = blockIdx.y * 32;
    size_t first_pixel = (size_t)blockIdx.x * 32, image = (size_t)blockIdx.z * channels * pixels;
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8) {
        size_t pixel = first_pixel + row + j;
        unsigned channel = first_channel + lane;
        if (pixel < pixels && channel < channels) tile[row + j][lane] = src[image + pixel * channels + channel];
    }
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < 32; j += 8) {
        size_t pixel = first_pixel + lane;
        unsigned channel = first_channel + row + j;
        if (pixel < pixels && channel < channels) dst[image + channel * pixels + pixel] = tile[lane][row + j];
    }
}

KERNEL nchw_im2col(const float* src, float* dst, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    size_t plane = blockIdx.z, size = (size_t)width * height;
    if (x < width && y < height)
#pragma unroll
        for (unsigned tap = 0; tap < 9; tap++) {
            // The neighbour, one further down and to the right, so that no index is negative.
            unsigned right = x + tap % 3, down = y + tap / 3;
            bool inside = 1 <= right && right <= width && 1 <= down && down <= height;
            dst[(plane * 9 + tap) * size + at(y, x, width)] =
                inside ? src[plane * size + at(down - 1, right - 1, width)] : 0;
        }
}
