#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
    printf("FAILED %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); fflush(stdout); exit(1); } } while (0)

static char* flush_buffer;
static const size_t FLUSH = 256 << 20;

static float median_us(int samples, const std::function<void()>& launch) {
    static cudaEvent_t a, b;
    if (!a) { CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b)); }
    std::vector<float> times;
    for (int i = 0; i < samples + 2; i++) {
        CHECK(cudaMemsetAsync(flush_buffer, i, FLUSH));
        CHECK(cudaEventRecord(a));
        launch();
        CHECK(cudaEventRecord(b));
        CHECK(cudaEventSynchronize(b));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, a, b));
        if (i >= 2) times.push_back(ms * 1000);
    }
    CHECK(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

__host__ __device__ inline uint32_t hash32(uint64_t i) {
    uint64_t z = (i + 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;
    z ^= z >> 29; z *= 0x94D049BB133111EBull; z ^= z >> 32;
    return (uint32_t)z;
}
template <typename T> __global__ void fill_hash(T* p, size_t n) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = (T)hash32(i);
}
static void poison(void* p, size_t bytes) { CHECK(cudaMemset(p, 0x5A, bytes)); }
static unsigned long long* wrong_d;
static unsigned long long wrong() {
    unsigned long long w;
    CHECK(cudaMemcpy(&w, wrong_d, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(wrong_d, 0, 8));
    return w;
}
static void init() {
    CHECK(cudaMalloc(&flush_buffer, FLUSH));
    CHECK(cudaMalloc(&wrong_d, 8));
    CHECK(cudaMemset(wrong_d, 0, 8));
}
