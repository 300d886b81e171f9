// What the searches of transposes share: blocks that a thread turns in its registers, and the check.
#include "common.cuh"

static __device__ __forceinline__ size_t at(unsigned y, unsigned x, unsigned p) { return (size_t)y * p + x; }

template <int BYTES> struct Vec;
template <> struct Vec<16> { using T = uint4; static const int W = 4; };
template <> struct Vec<8> { using T = uint2; static const int W = 2; };
template <> struct Vec<4> { using T = uint; static const int W = 1; };

// V rows of VB bytes each of elements of E bytes, V = VB / E: transposed in registers.
template <int E, int VB> struct Block {
    static const int V = VB / E, W = VB / 4;
    unsigned r[V][W];
    __device__ void transpose(unsigned (&o)[V][W]) {
        if (E == 8) {
            #pragma unroll
            for (int i = 0; i < V; i++)
                #pragma unroll
                for (int j = 0; j < V; j++) { o[j][2 * i] = r[i][2 * j]; o[j][2 * i + 1] = r[i][2 * j + 1]; }
        } else if (E == 4) {
            #pragma unroll
            for (int i = 0; i < V; i++)
                #pragma unroll
                for (int j = 0; j < V; j++) o[j][i] = r[i][j];
        } else if (E == 2) {
            #pragma unroll
            for (int i = 0; i < V; i += 2)
                #pragma unroll
                for (int j = 0; j < V; j += 2) {
                    o[j][i / 2] = __byte_perm(r[i][j / 2], r[i + 1][j / 2], 0x5410);
                    o[j + 1][i / 2] = __byte_perm(r[i][j / 2], r[i + 1][j / 2], 0x7632);
                }
        } else {
            #pragma unroll
            for (int i = 0; i < V; i += 4)
                #pragma unroll
                for (int j = 0; j < V; j += 4) {
                    unsigned a = r[i][j / 4], b = r[i + 1][j / 4], c = r[i + 2][j / 4], d = r[i + 3][j / 4];
                    unsigned ab0 = __byte_perm(a, b, 0x5140), ab1 = __byte_perm(a, b, 0x7362);
                    unsigned cd0 = __byte_perm(c, d, 0x5140), cd1 = __byte_perm(c, d, 0x7362);
                    o[j][i / 4] = __byte_perm(ab0, cd0, 0x5410);
                    o[j + 1][i / 4] = __byte_perm(ab0, cd0, 0x7632);
                    o[j + 2][i / 4] = __byte_perm(ab1, cd1, 0x5410);
                    o[j + 3][i / 4] = __byte_perm(ab1, cd1, 0x7632);
                }
        }
    }
};

template <typename T> __global__ void check(const T* src, const T* dst, unsigned width, unsigned height, unsigned long long* wrong) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)width * height; i += (size_t)gridDim.x * blockDim.x) {
        size_t y = i / width, x = i % width;
        if (dst[x * height + y] != src[i]) atomicAdd(wrong, 1ull);
    }
}

// Elements of E bytes of an n by w matrix that are wrong in its transpose.
template <int E> static unsigned long long wrong_elements(const void* src, const void* dst, unsigned w, unsigned n) {
    if (E == 1) check<<<1024, 256>>>((const uint8_t*)src, (const uint8_t*)dst, w, n, wrong_d);
    if (E == 2) check<<<1024, 256>>>((const uint16_t*)src, (const uint16_t*)dst, w, n, wrong_d);
    if (E == 4) check<<<1024, 256>>>((const uint32_t*)src, (const uint32_t*)dst, w, n, wrong_d);
    if (E == 8) check<<<1024, 256>>>((const uint64_t*)src, (const uint64_t*)dst, w, n, wrong_d);
    return wrong();
}
