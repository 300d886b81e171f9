// One atomic a thread on element  (f(tid / group) * stride) & mask, medians of cold-L2 samples.
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
__device__ __forceinline__ unsigned mix(unsigned x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16; return x; }
enum { RED_U32, ATOM_U32, RED_F32, RED_U64, CAS_U32, RED_MAX };
template <int OP> __global__ void global_atomic(void* base, unsigned group, unsigned stride, unsigned mask, unsigned random, unsigned never, unsigned* out) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned i = t / group;
  if (random) i = mix(i + random);
  unsigned e = (i * stride) & mask;
  unsigned old = 0;
  if (OP == RED_U32) asm volatile("red.global.add.u32 [%0], %1;" :: "l"((unsigned*)base + e), "r"(1u) : "memory");
  if (OP == RED_MAX) asm volatile("red.global.max.u32 [%0], %1;" :: "l"((unsigned*)base + e), "r"(t) : "memory");
  if (OP == ATOM_U32) { unsigned o; asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"((unsigned*)base + e), "r"(0u) : "memory"); if (o == never) out[0] = o; }
  if (OP == RED_F32) asm volatile("red.global.add.f32 [%0], %1;" :: "l"((float*)base + e), "f"(1.0f) : "memory");
  if (OP == RED_U64) asm volatile("red.global.add.u64 [%0], %1;" :: "l"((unsigned long long*)base + e), "l"(1ull) : "memory");
  if (OP == CAS_U32) { unsigned o; asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(o) : "l"((unsigned*)base + e), "r"(0u), "r"(t) : "memory"); if (o == never) out[0] = o; }
}
// 64 shared atomics a thread.
template <int OP> __global__ void shared_atomic(unsigned group, unsigned stride, unsigned mask, unsigned random, unsigned rounds, unsigned* out, unsigned never) {
  __shared__ unsigned long long memory[1024];
  for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) memory[k] = 0;
  __syncthreads();
  unsigned address = (unsigned)__cvta_generic_to_shared(memory);
  unsigned lane = threadIdx.x / group;
  for (unsigned k = 0; k < rounds; k++) {
    unsigned i = random ? mix(lane + k * 8192 + random) : lane;
    unsigned e = (i * stride) & mask;
    if (OP == RED_U32) asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(address + 4 * e), "r"(1u) : "memory");
    if (OP == RED_MAX) asm volatile("red.shared.max.u32 [%0], %1;" :: "r"(address + 4 * e), "r"(k) : "memory");
    if (OP == ATOM_U32) { unsigned o; asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(o) : "r"(address + 4 * e), "r"(1u) : "memory"); if (o == never) out[1] = o; }
    if (OP == RED_F32) asm volatile("red.shared.add.f32 [%0], %1;" :: "r"(address + 4 * e), "f"(1.0f) : "memory");
    if (OP == RED_U64) asm volatile("red.shared.add.u64 [%0], %1;" :: "r"(address + 8 * e), "l"(1ull) : "memory");
    if (OP == CAS_U32) { unsigned o; asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(o) : "r"(address + 4 * e), "r"(0u), "r"(k) : "memory"); if (o == never) out[1] = o; }
  }
  __syncthreads();
  if (memory[threadIdx.x] == 0xdeadbeefcafeull) out[0] = 1;
}
static char* flush; static const size_t FLUSH = 512u << 20;
static cudaEvent_t a, b;
template <class F> float timed(F launch, int samples) {
  std::vector<float> t;
  for (int s = 0; s < samples; s++) {
    CHECK(cudaMemsetAsync(flush, s, FLUSH));
    CHECK(cudaEventRecord(a)); launch(); CHECK(cudaEventRecord(b)); CHECK(cudaEventSynchronize(b));
    float ms; CHECK(cudaEventElapsedTime(&ms, a, b)); t.push_back(ms);
  }
  CHECK(cudaGetLastError());
  std::sort(t.begin(), t.end()); return t[t.size() / 2];
}
static void* data; static unsigned* out;
template <int OP> void global_row(const char* name, unsigned n, unsigned group, unsigned stride, unsigned elements, unsigned random, int samples = 9) {
  float ms = timed([&] { global_atomic<OP><<<n / 256, 256>>>(data, group, stride, elements - 1, random, 0x7fffffffu, out); }, samples);
  printf("global\t%s\t%u\t256\t%u\t%u\t%u\t%u\t1\t%.5f\n", name, n, group, stride, elements, random, ms); fflush(stdout);
}
template <int OP> void shared_row(const char* name, unsigned blocks, unsigned threads, unsigned group, unsigned stride, unsigned elements, unsigned random, unsigned rounds) {
  float ms = timed([&] { shared_atomic<OP><<<blocks, threads>>>(group, stride, elements - 1, random, rounds, out, 0x7fffffffu); }, 9);
  printf("shared\t%s\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%.5f\n", name, blocks * threads, threads, group, stride, elements, random, rounds, ms); fflush(stdout);
}
int main() {
  CHECK(cudaMalloc(&flush, FLUSH)); CHECK(cudaMalloc(&data, 1u << 30)); CHECK(cudaMalloc(&out, 64)); CHECK(cudaMemset(data, 0, 1u << 30));
  CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  int clock; CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0)); cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  printf("# %s, %d SMs, %d kHz\nspace\toperation\tthreads\tblock\tgroup\tstride\telements\trandom\trounds\tms\n", p.name, p.multiProcessorCount, clock);
  const unsigned M = 1u << 20, N = 4 * M;
  // Lanes that share an address, each group with an element of its own, linear.
  for (unsigned g : {1u, 2u, 4u, 8u, 16u, 32u}) { global_row<RED_U32>("red.u32", N, g, 1, 256 * M / 4, 0); global_row<ATOM_U32>("atom.u32", N, g, 1, 256 * M / 4, 0); }
  for (unsigned g : {1u, 4u, 32u}) { global_row<RED_F32>("red.f32", N, g, 1, 64 * M, 0); global_row<RED_U64>("red.u64", N, g, 1, 64 * M, 0); global_row<CAS_U32>("cas.u32", N, g, 1, 64 * M, 0); global_row<RED_MAX>("red.max.u32", N, g, 1, 64 * M, 0); }
  // Strides: sectors a request.
  for (unsigned s : {2u, 4u, 8u, 16u, 32u, 64u}) global_row<RED_U32>("red.u32", N, 1, s, 256 * M, 0);
  for (unsigned s : {8u, 32u}) { global_row<ATOM_U32>("atom.u32", N, 1, s, 256 * M, 0); global_row<RED_F32>("red.f32", N, 1, s, 256 * M, 0); global_row<RED_U64>("red.u64", N, 1, s, 128 * M, 0); }
  // Few addresses, round robin over them: hot lines.
  for (unsigned e = 1; e <= M; e *= 4) { global_row<RED_U32>("red.u32", N, 1, 1, e, 0); }
  for (unsigned e : {1u, 32u, 1024u}) { global_row<ATOM_U32>("atom.u32", N, 1, 1, e, 0, 5); global_row<RED_F32>("red.f32", N, 1, 1, e, 0, 5); global_row<RED_U64>("red.u64", N, 1, 1, e, 0, 5); global_row<CAS_U32>("cas.u32", N, 1, 1, e, 0, 5); global_row<RED_MAX>("red.max.u32", N, 1, 1, e, 0, 5); }
  // One address a warp, of few: as after a reduction in the warp, but with 32 lanes.
  for (unsigned e : {1u, 8u, 64u, 1024u, 65536u}) global_row<RED_U32>("red.u32", N, 32, 1, e, 0);
  for (unsigned e : {8u, 64u, 512u, 4096u}) global_row<RED_U32>("red.u32", N, 32, 8, e, 0);
  for (unsigned e : {32u, 256u, 2048u, 16384u}) global_row<RED_U32>("red.u32", N, 32, 32, e, 0);
  // Random addresses.
  for (unsigned e = 16; e <= 64 * M; e *= 4) global_row<RED_U32>("red.u32", N, 1, 1, e, 7);
  for (unsigned e : {256u, 65536u, 16 * M}) { global_row<ATOM_U32>("atom.u32", N, 1, 1, e, 7); global_row<RED_F32>("red.f32", N, 1, 1, e, 7); global_row<RED_U64>("red.u64", N, 1, 1, e, 7); }
  // Sizes.
  for (unsigned n : {256u * 1024, 1024u * 1024, 16u * 1024 * 1024, 64u * 1024 * 1024}) { global_row<RED_U32>("red.u32", n, 1, 1, 64 * M, 0); global_row<RED_U32>("red.u32", n, 1, 1, 256, 7, 5); global_row<RED_U32>("red.u32", n, 1, 1, 16 * M, 7, 5); }
  // Shared: 1056 blocks of 256 (8 an SM), 64 rounds.
  for (unsigned g : {1u, 2u, 4u, 8u, 32u}) { shared_row<RED_U32>("red.u32", 1056, 256, g, 1, 1024, 0, 64); shared_row<ATOM_U32>("atom.u32", 1056, 256, g, 1, 1024, 0, 64); shared_row<RED_F32>("red.f32", 1056, 256, g, 1, 1024, 0, 64); shared_row<RED_U64>("red.u64", 1056, 256, g, 1, 1024, 0, 64); shared_row<CAS_U32>("cas.u32", 1056, 256, g, 1, 1024, 0, 64); shared_row<RED_MAX>("red.max.u32", 1056, 256, g, 1, 1024, 0, 64); }
  for (unsigned s : {2u, 4u, 8u, 16u, 32u}) { shared_row<RED_U32>("red.u32", 1056, 256, 1, s, 2048, 0, 64); shared_row<ATOM_U32>("atom.u32", 1056, 256, 1, s, 2048, 0, 64); shared_row<RED_F32>("red.f32", 1056, 256, 1, s, 2048, 0, 64); }
  for (unsigned e : {1u, 32u, 256u, 1024u}) { shared_row<RED_U32>("red.u32", 1056, 256, 1, 1, e, 7, 64); shared_row<ATOM_U32>("atom.u32", 1056, 256, 1, 1, e, 7, 64); shared_row<RED_F32>("red.f32", 1056, 256, 1, 1, e, 7, 64); shared_row<RED_U64>("red.u64", 1056, 256, 1, 1, e, 7, 64); }
  // One warp an SM: latency.
  for (unsigned g : {1u, 32u}) { shared_row<RED_U32>("red.u32", 132, 32, g, 1, 1024, 0, 256); shared_row<ATOM_U32>("atom.u32", 132, 32, g, 1, 1024, 0, 256); shared_row<RED_F32>("red.f32", 132, 32, g, 1, 1024, 0, 256); shared_row<CAS_U32>("cas.u32", 132, 32, g, 1, 1024, 0, 256); }
  return 0;
}
