// Transposes by asynchronous copies: what is loaded goes to shared memory as it is, is turned in registers on its way out, and is stored at once.
#include "transpose.cuh"

template <int HINT> static __device__ __forceinline__ void copy_async(uint4* to, const uint4* from) {
    unsigned s = (unsigned)__cvta_generic_to_shared(to);
    if (HINT == 0) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
    if (HINT == 1) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
    if (HINT == 2) asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
}

// E bytes an element. A tile is RB blocks of V rows by CX pieces of 16 bytes; THREADS threads; STAGES tiles on their way (1: a tile a block).
template <int E, int CX, int RB, int THREADS, int STAGES, int HINT, int LEAST>
__global__ void __launch_bounds__(THREADS, LEAST) turned(const uint4* src, uint4* dst, unsigned w, unsigned h, unsigned tiles_down, unsigned tiles) {
    const int V = 16 / E, PIECES = V * RB * CX;
    extern __shared__ uint4 shared_[];
    auto begin = [&](unsigned t, uint4* tile) {
        unsigned ty = t % tiles_down, tx = t / tiles_down;
        const uint4* from = src + at(ty * RB * V, tx * CX, w);
        #pragma unroll
        for (int i = 0; i < PIECES / THREADS; i++) {
            unsigned p = threadIdx.x + i * THREADS, c = p % CX, row = p / CX;
            copy_async<HINT>(tile + row * CX + (c ^ (row / V % CX & 7)), from + at(row, c, w));
        }
        asm volatile("cp.async.commit_group;");
    };
    auto end = [&](unsigned t, uint4* tile) {
        unsigned ty = t % tiles_down, tx = t / tiles_down;
        uint4* to = dst + at(tx * CX * V, ty * RB, h);
        #pragma unroll
        for (int i = 0; i < RB * CX / THREADS; i++) {
            unsigned p = threadIdx.x + i * THREADS, r = p % RB, c = p / RB;
            Block<E, 16> b;
            unsigned o[V][4];
            #pragma unroll
            for (int k = 0; k < V; k++) { uint4 v = tile[(V * r + k) * CX + (c ^ (r % CX & 7))]; memcpy(b.r[k], &v, 16); }
            b.transpose(o);
            #pragma unroll
            for (int k = 0; k < V; k++) { uint4 v; memcpy(&v, o[k], 16); to[at(V * c + k, r, h)] = v; }
        }
    };
    if (STAGES == 1) {
        begin(blockIdx.x, shared_);
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        end(blockIdx.x, shared_);
        return;
    }
    unsigned step = gridDim.x;
    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (blockIdx.x + s * step < tiles) begin(blockIdx.x + s * step, shared_ + s * PIECES);
        else asm volatile("cp.async.commit_group;");
    }
    int s = 0;
    for (unsigned t = blockIdx.x; t < tiles; t += step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
        __syncthreads();
        unsigned next = t + (STAGES - 1) * step;
        int n = s + STAGES - 1; if (n >= STAGES) n -= STAGES;
        if (next < tiles) begin(next, shared_ + n * PIECES);
        else asm volatile("cp.async.commit_group;");
        end(t, shared_ + s * PIECES);
        if (++s == STAGES) s = 0;
    }
}

static char *src, *dst;
static float copy_us;

// blocks: at most so many an SM, by shared memory that nobody uses; 0: as many as go.
template <int E, int CX, int RB, int THREADS, int STAGES, int HINT = 0, int LEAST = 1> static void one(unsigned n, int blocks = 0) {
    const int V = 16 / E;
    size_t bytes = (size_t)n * n * E, shared = (size_t)STAGES * V * RB * CX * 16;
    unsigned down = n / (V * RB), across = n / V / CX;
    if (blocks) { size_t room = 227 * 1024 / blocks - 1024; room &= ~(size_t)1023; if (room < shared) return; shared = room; }
    auto k = turned<E, CX, RB, THREADS, STAGES, HINT, LEAST>;
    CHECK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    CHECK(cudaFuncSetAttribute(k, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    int most; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, k, THREADS, shared));
    unsigned grid = STAGES == 1 ? down * across : std::min(down * across, 132u * most);
    auto launch = [&] { k<<<grid, THREADS, shared>>>((uint4*)src, (uint4*)dst, n / V, n / V, down, down * across); };
    poison(dst, bytes);
    launch();
    CHECK(cudaGetLastError());
    unsigned long long bad = wrong_elements<E>(src, dst, n, n);
    float us = median_us(bytes >> 32 ? 7 : bytes >> 30 ? 11 : 31, launch);
    cudaFuncAttributes a; cudaFuncGetAttributes(&a, k);
    printf("A E=%d tile=%dx%d thr=%d stages=%d hint=%d regs=%d blocks=%d %ux%u %9.2f us %7.1f GB/s  %.3f of copy%s\n", E, V * RB, V * CX, THREADS, STAGES,
           HINT, a.numRegs, most, n, n, us, 2e-3 * bytes / us, copy_us / us, bad ? "  WRONG" : "");
    fflush(stdout);
}

static void copy(unsigned n, int e) {
    size_t bytes = (size_t)n * n * e;
    copy_us = median_us(31, [&] { CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice)); });
    printf("COPY E=%d %ux%u %.2f us %.1f GB/s\n", e, n, n, copy_us, 2e-3 * bytes / copy_us);
}

int main(int argc, char** argv) {
    int which = argc > 1 ? atoi(argv[1]) : 0;
    init();
    size_t most = which == 4 ? (size_t)32768 * 32768 * 4 : (size_t)16384 * 16384 * 8;
    CHECK(cudaMalloc(&src, most)); CHECK(cudaMalloc(&dst, most));
    fill_hash<<<1024, 256>>>((uint32_t*)src, most / 4);
    std::vector<unsigned> sizes = {4096, 8192, 16384};
    if (which == 4) sizes.push_back(32768);
    for (unsigned n : sizes) {
        copy(n, which);
        if (which == 4) {
            one<4, 16, 16, 256, 1>(n);
            for (int b : {2, 3, 4, 5, 6, 7}) one<4, 16, 16, 256, 1>(n, b);
            one<4, 16, 16, 128, 1>(n);
            for (int b : {4, 6, 8}) one<4, 16, 16, 128, 1>(n, b);
            one<4, 16, 16, 256, 1, 2>(n);
            one<4, 16, 16, 256, 1, 1>(n);
            one<4, 16, 16, 256, 2>(n);
            one<4, 16, 16, 256, 3>(n);
            one<4, 16, 16, 128, 2>(n);
            one<4, 8, 16, 128, 1>(n);
            one<4, 16, 8, 128, 1>(n);
            one<4, 8, 8, 64, 1>(n);
            one<4, 16, 32, 256, 1>(n);
            one<4, 16, 32, 512, 1>(n);
            one<4, 32, 16, 256, 1>(n);
            one<4, 32, 16, 512, 1>(n);
            one<4, 32, 32, 512, 1>(n);
            one<4, 32, 32, 1024, 1>(n);
            one<4, 8, 64, 512, 1>(n);
        }
        if (which == 2) {
            one<2, 16, 16, 256, 1>(n);
            for (int b : {2, 3, 4, 5}) one<2, 16, 16, 256, 1>(n, b);
            one<2, 16, 16, 128, 1>(n);
            one<2, 8, 16, 128, 1>(n);
            one<2, 16, 8, 128, 1>(n);
            one<2, 8, 8, 64, 1>(n);
            one<2, 16, 16, 256, 1, 0, 4>(n);
            one<2, 16, 16, 256, 2>(n);
        }
        if (which == 1) {
            one<1, 16, 16, 256, 1>(n);
            for (int b : {1, 2}) one<1, 16, 16, 256, 1>(n, b);
            one<1, 16, 16, 128, 1>(n);
            one<1, 8, 16, 128, 1>(n);
            one<1, 16, 8, 128, 1>(n);
            one<1, 8, 8, 64, 1>(n);
            one<1, 16, 16, 256, 1, 0, 3>(n);
            one<1, 8, 16, 128, 1, 0, 6>(n);
        }
        if (which == 8) {
            one<8, 16, 16, 256, 1>(n);
            for (int b : {4, 5, 6, 7}) one<8, 16, 16, 256, 1>(n, b);
            one<8, 16, 16, 128, 1>(n);
            one<8, 32, 16, 256, 1>(n);
            one<8, 16, 32, 256, 1>(n);
            one<8, 32, 32, 512, 1>(n);
        }
    }
    return 0;
}
