// Transposes: element size, vector, tile, order of blocks.
#include "transpose.cuh"

// CX vectors a row of the source's tile, RY blocks of rows; U blocks a thread. Grid: x within a band of tile rows, y tile columns, z bands.
template <int E, int VB, int CX, int RY, int U>
__global__ void __launch_bounds__(CX * RY / U) tiles(const void* src_, void* dst_, unsigned width, unsigned height) {
    using T = typename Vec<VB>::T;
    const int V = VB / E, W = VB / 4, STEP = RY / U;
    const int MASK = (VB == 16 ? 7 : VB == 8 ? 15 : 31);
    const T* src = (const T*)src_; T* dst = (T*)dst_;
    extern __shared__ uint4 shared_[];
    T* tile = (T*)shared_;
    unsigned ty = blockIdx.z * gridDim.x + blockIdx.x, tx = blockIdx.y;
    unsigned w = width / V, h = height / V;
    {
        unsigned c = threadIdx.x % CX, r0 = threadIdx.x / CX;
        unsigned x = tx * CX + c;
        #pragma unroll
        for (int u = 0; u < U; u++) {
            unsigned r = r0 + u * STEP, y = ty * RY + r;
            if (x < w && y < h) {
                Block<E, VB> b;
                unsigned o[V][W];
                #pragma unroll
                for (int k = 0; k < V; k++) { T v = src[at(V * y + k, x, w)]; memcpy(b.r[k], &v, VB); }
                b.transpose(o);
                #pragma unroll
                for (int k = 0; k < V; k++) { T v; memcpy(&v, o[k], VB); tile[(V * c + k) * RY + (r ^ (c & MASK & (RY - 1)))] = v; }
            }
        }
    }
    __syncthreads();
    {
        const int STEPC = CX / U;
        unsigned r = threadIdx.x % RY, c0 = threadIdx.x / RY;
        unsigned y = ty * RY + r;
        #pragma unroll
        for (int u = 0; u < U; u++) {
            unsigned c = c0 + u * STEPC, x = tx * CX + c;
            if (x < w && y < h)
                #pragma unroll
                for (int k = 0; k < V; k++) dst[at(V * x + k, y, h)] = tile[(V * c + k) * RY + (r ^ (c & MASK & (RY - 1)))];
        }
    }
}

static char *src, *dst;
static float copy_us;

template <int E, int VB, int CX, int RY, int U> static void one(unsigned n, unsigned band, unsigned w = 0) {
    const int V = VB / E;
    if (!w) w = n;
    unsigned tx = (w / V + CX - 1) / CX, ty = (n / V + RY - 1) / RY;
    if (band == 0 || band > ty) band = ty;
    dim3 grid(band, tx, (ty + band - 1) / band);
    size_t bytes = (size_t)n * w * E, shared = CX * V * RY * VB;
    auto k = tiles<E, VB, CX, RY, U>;
    CHECK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    auto launch = [&] { k<<<grid, CX * RY / U, shared>>>(src, dst, w, n); };
    poison(dst, bytes);
    launch();
    CHECK(cudaGetLastError());
    unsigned long long bad = wrong_elements<E>(src, dst, w, n);
    float us = median_us(bytes >> 32 ? 7 : bytes >> 30 ? 11 : 21, launch);
    cudaFuncAttributes a; cudaFuncGetAttributes(&a, k);
    printf("T E=%d VB=%d tile=%dx%d U=%d thr=%d regs=%d band=%-5u %ux%u %9.2f us %7.1f GB/s  %.3f of copy%s\n", E, VB, RY * V, CX * V, U,
           CX * RY / U, a.numRegs, band, n, w, us, 2e-3 * bytes / us, copy_us / us, bad ? "  WRONG" : "");
    fflush(stdout);
}

static void copy(unsigned n, int e, unsigned w = 0) {
    if (!w) w = n;
    size_t bytes = (size_t)n * w * e;
    copy_us = median_us(11, [&] { CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice)); });
    printf("COPY E=%d %ux%u %.2f us %.1f GB/s\n", e, n, w, copy_us, 2e-3 * bytes / copy_us);
}

int main(int argc, char** argv) {
    int which = argc > 1 ? atoi(argv[1]) : 0;
    init();
    size_t most = which == 4 ? (size_t)32768 * 32768 * 4 : (size_t)16384 * 16384 * 8;
    CHECK(cudaMalloc(&src, most)); CHECK(cudaMalloc(&dst, most));
    fill_hash<<<1024, 256>>>((uint32_t*)src, most / 4);
    std::vector<unsigned> sizes = {4096, 8192, 16384};
    if (which == 4) sizes.push_back(32768);
    if (which == 4) {
        // Images: 128 channels by 2 * 256 * 256 pixels, and back.
        for (int back : {0, 1}) {
            unsigned h = back ? 131072 : 128, w = back ? 128 : 131072;
            copy(h, 4, w);
            one<4, 16, 16, 16, 1>(h, 0, w);
            one<4, 16, 16, 16, 1>(h, 1, w);
            one<4, 16, 16, 16, 1>(h, 16, w);
            one<4, 16, 16, 16, 2>(h, 0, w);
            one<4, 16, 8, 32, 1>(h, 0, w);
            one<4, 16, 8, 32, 2>(h, 0, w);
            one<4, 16, 8, 32, 1>(h, 1, w);
            one<4, 16, 16, 32, 2>(h, 0, w);
            one<4, 16, 16, 32, 2>(h, 1, w);
            one<4, 16, 8, 16, 1>(h, 0, w);
            one<4, 16, 8, 8, 1>(h, 0, w);
            one<4, 16, 32, 8, 1>(h, 0, w);
            one<4, 16, 32, 8, 1>(h, 1, w);
            one<4, 16, 32, 16, 2>(h, 0, w);
            one<4, 16, 32, 16, 2>(h, 1, w);
        }
    }
    for (unsigned n : sizes) {
        copy(n, which);
        if (which == 1) {
            one<1, 16, 8, 8, 1>(n, 0);     // 128x128, 64 threads
            one<1, 16, 8, 16, 1>(n, 0);    // 256 rows x 128 columns: writes 256 bytes
            one<1, 16, 8, 16, 1>(n, 16);
            one<1, 16, 16, 16, 1>(n, 0);   // 256x256, 64 KiB
            one<1, 8, 16, 16, 1>(n, 0);    // 128x128, 8 bytes, 256 threads
            one<1, 8, 16, 32, 1>(n, 0);    // 256x128, 8 bytes, 512 threads
            one<1, 8, 16, 32, 2>(n, 0);    // the same, 256 threads
            one<1, 4, 32, 32, 4>(n, 0);    // 128x128, 4 bytes, 256 threads
            one<1, 4, 32, 32, 2>(n, 0);
            one<1, 4, 32, 64, 8>(n, 0);
        }
        if (which == 2) {
            one<2, 16, 16, 16, 1>(n, 0);   // 128x128, 256 threads
            one<2, 16, 8, 16, 1>(n, 0);    // 128 rows x 64 columns, 128 threads
            one<2, 16, 8, 16, 1>(n, 16);
            one<2, 16, 8, 8, 1>(n, 0);     // 64x64, 64 threads
            one<2, 8, 16, 16, 1>(n, 0);    // 64x64, 8 bytes, 256 threads
            one<2, 8, 16, 32, 1>(n, 0);    // 128x64, 512 threads
            one<2, 8, 16, 32, 2>(n, 0);    // 128x64, 256 threads
            one<2, 8, 32, 32, 4>(n, 0);    // 128x128, 256 threads
            one<2, 4, 32, 64, 8>(n, 0);    // 128x64, 4 bytes, 256 threads
        }
        if (which == 4) {
            one<4, 16, 16, 16, 1>(n, 0);   // as now: 64x64, 256 threads
            one<4, 16, 16, 16, 1>(n, 16);
            one<4, 16, 16, 16, 1>(n, 32);
            one<4, 16, 16, 16, 1>(n, 64);
            one<4, 16, 16, 16, 2>(n, 0);
            one<4, 16, 16, 16, 2>(n, 32);
            one<4, 16, 8, 16, 1>(n, 0);    // 64 rows x 32 columns
            one<4, 16, 8, 16, 1>(n, 32);
            one<4, 16, 8, 32, 1>(n, 0);    // 128 rows x 32 columns
            one<4, 16, 8, 32, 2>(n, 0);
            one<4, 16, 16, 32, 2>(n, 0);   // 128 x 64
            one<4, 16, 16, 32, 2>(n, 16);
            one<4, 16, 8, 8, 1>(n, 0);     // 32x32, 64 threads
            one<4, 16, 8, 64, 2>(n, 0);    // 256 x 32
            one<4, 8, 16, 32, 2>(n, 0);    // 8 bytes: 64 x 32
        }
        if (which == 8) {
            one<8, 16, 16, 16, 1>(n, 0);   // 32x32, 256 threads
            one<8, 16, 16, 16, 1>(n, 32);
            one<8, 16, 16, 16, 2>(n, 0);
            one<8, 16, 16, 32, 2>(n, 0);   // 64x32, 256 threads
            one<8, 16, 16, 32, 2>(n, 16);
            one<8, 16, 16, 32, 4>(n, 0);
            one<8, 16, 32, 32, 4>(n, 0);   // 64x64, 256 threads
            one<8, 16, 32, 32, 4>(n, 16);
            one<8, 16, 8, 16, 1>(n, 0);    // 32x16
            one<8, 16, 8, 32, 2>(n, 0);    // 64x16
            one<8, 8, 32, 32, 4>(n, 0);    // 8 bytes, 32x32
            one<8, 8, 32, 32, 8>(n, 0);
        }
    }
}
