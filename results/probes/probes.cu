// What the descriptions of chips leave open and `predict` needs: how fast blocks are launched, what stores and atomics cost
// the L2, how latencies differ from place to place, how often a load passes an L1 that has its data, and which warps go first.
//
//     nvcc -O3 -arch=native -o probes probes.cu && ./probes > probes.txt

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

// The median of several launches in milliseconds, each after 256 MiB that are written to flush the L2.
template <class Launch> static float median_ms(Launch launch) {
    static char* flush = nullptr;
    if (!flush) CHECK(cudaMalloc(&flush, 256 << 20));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> samples;
    for (int i = 0; i < 15; i++) {
        CHECK(cudaMemset(flush, i, 256 << 20));
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        samples.push_back(ms);
    }
    CHECK(cudaGetLastError());
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
}

// ---- Launches: blocks that do nothing.

__global__ void nothing() {}

static void launches() {
    const int blocks = 1 << 18;
    for (int threads : {32, 256, 512, 1024}) {
        float ms = median_ms([=] { nothing<<<blocks, threads>>>(); });
        printf("launch: %4d threads a block: %.0f blocks/us\n", threads, blocks / ms / 1e3);
    }
}

// ---- Stores: each lane K times in a row, a word further each time, lanes `stride` bytes apart.

template <int K> __global__ void stores(char* to, size_t stride, size_t regions) {
    size_t warp = (blockIdx.x * size_t(blockDim.x) + threadIdx.x) / 32, warps = gridDim.x * size_t(blockDim.x) / 32;
    for (; warp < regions; warp += warps) {
        char* lane = to + (warp * 32 + threadIdx.x % 32) * stride;
#pragma unroll
        for (int k = 0; k < K; k++) *(volatile float*)(lane + 4 * k) = warp;
    }
}

template <int K> static void stores_of(char* to, size_t bytes, size_t stride, int sms) {
    size_t regions = bytes / 32 / stride;
    float ms = median_ms([=] { stores<K><<<8 * sms, 256>>>(to, stride, regions); });
    printf("stores: %d in a row, lanes %3zu bytes apart: %.4f ms for %zu warps\n", K, stride, ms, regions);
}

// ---- Atomics: a lane of each warp adds, all to one address, or a block to each of as many lines.

__global__ void additions(float* to, int apart) {
    if (threadIdx.x % 32 != 0) return;
    for (int i = 0; i < 64; i++) atomicAdd(to + blockIdx.x * size_t(apart), 1.0f);
}

static void atomics(char* to, int sms) {
    for (int apart : {0, 32}) {
        float ms = median_ms([=] { additions<<<8 * sms, 256>>>((float*)to, apart); });
        const char* where = apart ? "a line a block" : "one address";
        printf("atomics: to %s: %.0f additions/us\n", where, 64.0 * 8 * 8 * sms / ms / 1e3);
    }
}

// ---- Latencies: one lane follows a chain through lines in random order.

__global__ void chase(const unsigned* chain, unsigned at, int hops, unsigned* cycles, unsigned* end) {
    for (int hop = 0; hop < hops; hop++) {
        unsigned before = clock();
        at = __ldcg(chain + at);
        if (at == ~0u) break;
        cycles[hop] = clock() - before;
    }
    *end = at;
}

static void latencies(size_t bytes, bool from_l2) {
    const int hops = 20000;
    size_t lines = bytes / 128;
    std::vector<unsigned> order(lines), chain(bytes / 4);
    for (size_t i = 0; i < lines; i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < lines; i++) chain[order[i] * size_t(32)] = order[(i + 1) % lines] * 32;
    unsigned *on_gpu, *cycles, *end;
    CHECK(cudaMalloc(&on_gpu, bytes));
    CHECK(cudaMalloc(&cycles, hops * sizeof(unsigned)));
    CHECK(cudaMalloc(&end, sizeof(unsigned)));
    CHECK(cudaMemcpy(on_gpu, chain.data(), bytes, cudaMemcpyHostToDevice));
    if (from_l2) chase<<<1, 1>>>(on_gpu, 0, int(lines), cycles, end);
    chase<<<1, 1>>>(on_gpu, order[0] * 32, hops, cycles, end);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> samples(hops);
    CHECK(cudaMemcpy(samples.data(), cycles, hops * sizeof(unsigned), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (unsigned sample : samples) sum += sample;
    std::sort(samples.begin(), samples.end());
    printf("latency: %s: mean %.0f cycles", from_l2 ? "L2" : "memory", sum / hops);
    for (int percent : {0, 5, 25, 50, 75, 90, 95, 99}) printf(", %d %% %u", percent, samples[hops / 100 * percent]);
    printf("\n");
}

// ---- The L1: loads of words that it has, lanes `stride` bytes apart. The address changes from round to round, so that no
// load can be taken out of the loop.

__global__ void hits(const char* from, int stride, int rounds, long long* cycles, unsigned* out) {
    unsigned sum = 0;
    for (int i = 4 * threadIdx.x; i < 16384; i += 4 * blockDim.x) sum += *(const volatile unsigned*)(from + i);
    __syncthreads();
    long long before = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        const char* lane = from + threadIdx.x % 32 * stride + (round & 1) * 2048;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            unsigned word;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(lane + 128 * k));
            sum ^= word;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x == 0) *cycles = clock64() - before;
    if (sum == 12345) *out = sum;
}

static void l1(const char* from, int sms) {
    const int rounds = 400, warps = 32;
    long long *on_gpu, cycles;
    unsigned* out;
    CHECK(cudaMalloc(&on_gpu, sizeof cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    for (int stride : {0, 4, 8, 16, 32, 128, 132}) {
        for (int i = 0; i < 3; i++) hits<<<sms, 32 * warps>>>(from, stride, rounds, on_gpu, out);
        CHECK(cudaMemcpy(&cycles, on_gpu, sizeof cycles, cudaMemcpyDeviceToHost));
        printf("L1: lanes %3d bytes apart: %.3f cycles a request\n", stride, double(cycles) / rounds / 16 / warps);
    }
}

// ---- The order of warps: all of a block wait for the load/store unit, lanes `stride` bytes apart, and say when they end.

__global__ void race(const char* from, int stride, int rounds, long long* ends, unsigned* out) {
    unsigned sum = 0;
    for (int i = 4 * threadIdx.x; i < 16384; i += 4 * blockDim.x) sum += *(const volatile unsigned*)(from + i);
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        const char* lane = from + threadIdx.x % 32 * stride + (round & 1) * 64;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            unsigned word;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(lane + 4 * k));
            sum ^= word;
        }
    }
    if (sum == 12345) *out = sum;
    if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = clock64() - begin;
}

static void order(const char* from) {
    const int rounds = 400, warps = 32;
    long long *on_gpu, ends[warps];
    unsigned* out;
    CHECK(cudaMalloc(&on_gpu, sizeof ends));
    CHECK(cudaMalloc(&out, sizeof *out));
    for (int stride : {4, 128}) {
        for (int i = 0; i < 3; i++) race<<<1, 32 * warps>>>(from, stride, rounds, on_gpu, out);
        CHECK(cudaMemcpy(ends, on_gpu, sizeof ends, cudaMemcpyDeviceToHost));
        printf("order: lanes %3d bytes apart, 32 warps end after thousands of cycles:", stride);
        for (long long end : ends) printf(" %.1f", end / 1e3);
        printf("\n");
    }
}

int main() {
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    printf("%s, %d multiprocessors\n", gpu.name, gpu.multiProcessorCount);
    int sms = gpu.multiProcessorCount;
    size_t bytes = size_t(1) << 30;
    char* buffer;
    CHECK(cudaMalloc(&buffer, bytes));
    CHECK(cudaMemset(buffer, 0, bytes));
    launches();
    for (size_t stride : {4, 16, 32, 64, 128}) stores_of<1>(buffer, bytes, stride, sms);
    stores_of<4>(buffer, bytes, 16, sms);
    for (size_t stride : {32, 128}) {
        stores_of<2>(buffer, bytes, stride, sms);
        stores_of<8>(buffer, bytes, stride, sms);
    }
    atomics(buffer, sms);
    latencies(16 << 20, true);
    latencies(bytes, false);
    l1(buffer, sms);
    order(buffer);
}
