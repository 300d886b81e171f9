// What the descriptions of chips leave open and `predict` needs: how fast blocks are launched, and where, which multiprocessors run more of
// them, what stores and atomics cost the L2, how latencies differ from place to place, how often a load passes an L1 that has its data,
// which lines stay there, which reads the L2 serves as one, how much of it there is for lines that all read, what of it stays dirty, what
// lines that lie apart cost the memory, which warps and blocks go first, when the load/store unit turns to another, how long it looks lines
// up, what reads of the L2 wait for, how long the memory takes, alone and among others, how many loads wait for it, when loads that came
// back have their turn, and which of them first, what shares the data of the L1, in which order requests are served, which lines a load
// holds, when blocks begin, what a flush of the L2 costs the launch that follows, what conflicts and barriers cost, which set of the L1 a
// line belongs to, which of its lines goes for another, how long loads wait for stores that the L2 has not taken, which warps go on
// while all wait, whether warps that stay on lines stay abreast, how many stores leave a warp at once, how many reads are on their way, when
// blocks begin that take the place of others, how far apart warps are that read the same, and what the memory needs for accesses anywhere.
//
//     nvcc -O3 -arch=native -o probes probes.cu && ./probes > probes.txt

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

// Reads a sector of each line, a thread each; no buffer has this value.
__global__ void a_sector_a_line(const float* lines, size_t count, float* out) {
    size_t line = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (line < count && lines[line * 32] == 1.5f) *out = 1;
}

// The median of so many launches in milliseconds, each after 256 MiB that are written to flush the L2 and, if it is to be clean, read.
template <class Launch> static float median_ms(Launch launch, int launches = 15, bool clean = false) {
    static char* flush = nullptr;
    if (!flush) CHECK(cudaMalloc(&flush, 256 << 20));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> samples;
    for (int i = 0; i < launches; i++) {
        CHECK(cudaMemset(flush, i, 256 << 20));
        if (clean) a_sector_a_line<<<(2 << 20) / 256, 256>>>((const float*)flush, 2 << 20, (float*)flush);
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

// ---- Where blocks are launched: each says which multiprocessor it is on, and ends after any time up to `longest` cycles. In the first
// blocks, of which each multiprocessor has room for one, a group of multiprocessors begins where the number falls.

__device__ unsigned mixed(unsigned number) {
    number = (number ^ number >> 16) * 0x7feb352du;
    number = (number ^ number >> 15) * 0x846ca68bu;
    return number ^ number >> 16;
}

__device__ unsigned this_multiprocessor() {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

__global__ void where(unsigned longest, unsigned* multiprocessors) {
    long long begin = clock64(), takes = mixed(blockIdx.x) % longest;
    if (threadIdx.x == 0) multiprocessors[blockIdx.x] = this_multiprocessor();
    while (clock64() - begin < takes) {}
}

// The multiprocessor of each block.
static std::vector<unsigned> launched(int blocks, unsigned longest, unsigned shared_bytes) {
    std::vector<unsigned> multiprocessors(blocks);
    unsigned* on_gpu;
    CHECK(cudaMalloc(&on_gpu, blocks * sizeof *on_gpu));
    CHECK(cudaFuncSetAttribute(where, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    where<<<blocks, 256, shared_bytes>>>(longest, on_gpu);
    CHECK(cudaMemcpy(multiprocessors.data(), on_gpu, blocks * sizeof *on_gpu, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(on_gpu));
    return multiprocessors;
}

static std::vector<unsigned> groups_of(int sms) {
    std::vector<unsigned> groups(sms), first = launched(sms, 100000, 160 << 10);
    unsigned group = 0;
    for (int i = 0; i < sms; i++) {
        group += i > 0 && first[i] < first[i - 1];
        groups[first[i]] = group;
    }
    return groups;
}

static void rounds(int sms) {
    printf("rounds: the first blocks, one a multiprocessor, are on");
    for (unsigned multiprocessor : launched(sms, 100000, 160 << 10)) printf(" %u", multiprocessor);
    printf("\n");
    auto groups = groups_of(sms);
    for (unsigned longest : {1000, 2000, 4000, 16000}) {
        const int blocks = 1 << 16, skipped = 1 << 13;
        auto at = launched(blocks, longest, 0);
        int same = 0, neighbour = 0, group = 0, count = blocks - skipped - 1;
        for (int i = skipped; i + 1 < blocks; i++) {
            unsigned here = at[i], next = at[i + 1];
            same += next == here;
            neighbour += next == (here ^ 1);
            group += next != here && next != (here ^ 1) && groups[next] == groups[here];
        }
        printf("rounds: of blocks of up to %5u cycles the next is on the same multiprocessor for %.1f %%, on its neighbour for %.1f %%, "
               "on another of the group for %.1f %%\n",
               longest, 100.0 * same / count, 100.0 * neighbour / count, 100.0 * group / count);
    }
}

// ---- Shares: blocks of 256 threads, each of which reads a sector of a line at random, or the next 16 bytes, of as many KiB as there
// are. How many of these blocks each multiprocessor ran, as a multiple of the mean, in the order of their numbers.

template <bool AT_RANDOM> __global__ void reads_of_all(const char* zeros, size_t bytes, unsigned* blocks) {
    const size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    const size_t at = AT_RANDOM ? mixed(unsigned(thread)) * size_t(128) : thread * 16;
    const int4 value = *reinterpret_cast<const int4*>(zeros + at % bytes);
    if ((value.x | value.y | value.z | value.w) != 0 || threadIdx.x == 0) atomicAdd(blocks + 32 * this_multiprocessor(), 1u);
}

template <bool AT_RANDOM> static void shares(const char* zeros, size_t kib, int sms) {
    const unsigned blocks = 1 << 18;
    unsigned* on_gpu;
    std::vector<unsigned> counted(32 * sms);
    CHECK(cudaMalloc(&on_gpu, counted.size() * sizeof *on_gpu));
    CHECK(cudaMemset(on_gpu, 0, counted.size() * sizeof *on_gpu));
    reads_of_all<AT_RANDOM><<<blocks, 256>>>(zeros, kib << 10, on_gpu);
    CHECK(cudaMemcpy(counted.data(), on_gpu, counted.size() * sizeof *on_gpu, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(on_gpu));
    printf("shares: of blocks that read %s of %zu KiB each multiprocessor ran", AT_RANDOM ? "at random" : "in a row", kib);
    for (int i = 0; i < sms; i++) printf(" %.2f", double(counted[32 * i]) * sms / blocks);
    printf("\n");
}

// ---- Ways: one multiprocessor after another loads lines, one at a time, that only memory has, or its side of the L2 has. How long it
// takes beyond what this multiprocessor's loads, and loads of this line by those of its side, take on average, and how much of that is
// the same for others; what takes more than 100 cycles more, or fewer, left out.

__global__ void loads_of_one(const char* zeros, unsigned lines, int rounds, unsigned multiprocessor, unsigned* cycles, int* out) {
    // So much of it that a multiprocessor has room for one block.
    extern __shared__ float room[];
    if (this_multiprocessor() != multiprocessor || threadIdx.x != 0) return;
    int sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < lines; i++) {
            unsigned begin = clock();
            sum += __ldcg(reinterpret_cast<const int*>(zeros + size_t(i) * 33 * 128 + sum));
            if (sum != 0) break;
            cycles[i] = unsigned(clock()) - begin;
        }
    }
    if (sum != 0) *out = sum + int(room[0]);
}

static void ways(char* buffer, size_t bytes, int sms, bool from_memory) {
    const unsigned lines = 1024, room = 160 << 10;
    unsigned* cycles;
    int* out;
    CHECK(cudaMalloc(&cycles, lines * sizeof *cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaFuncSetAttribute(loads_of_one, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    std::vector<std::vector<double>> took(sms, std::vector<double>(lines));
    std::vector<unsigned> host(lines);
    for (int sm = 0; sm < sms; sm++) {
        std::fill(took[sm].begin(), took[sm].end(), 1e9);
        // The least of five: now and then something else is in the way.
        for (int launch = 0; launch < 5; launch++) {
            if (from_memory) CHECK(cudaMemset(buffer + bytes / 2, 0, bytes / 2));
            loads_of_one<<<sms, 32, room>>>(buffer, lines, from_memory ? 1 : 2, sm, cycles, out);
            CHECK(cudaMemcpy(host.data(), cycles, lines * sizeof *cycles, cudaMemcpyDeviceToHost));
            for (unsigned i = 0; i < lines; i++) took[sm][i] = std::min(took[sm][i], double(host[i]));
        }
    }
    auto less_means_of_lines = [&](auto is_one) {
        for (unsigned i = 0; i < lines; i++) {
            double sum = 0, count = 0;
            for (int sm = 0; sm < sms; sm++) if (is_one(sm)) sum += took[sm][i], count++;
            for (int sm = 0; sm < sms; sm++) if (is_one(sm)) took[sm][i] -= sum / count;
        }
    };
    auto covariance = [&](int a, int b) {
        double sum = 0;
        for (unsigned i = 0; i < lines; i++) sum += took[a][i] * took[b][i];
        return sum / lines;
    };
    // Those that something else was in the way of each time say nothing of ways.
    double late = 0;
    auto leave_late_out = [&] {
        for (auto& of_one : took) {
            for (double& cycles : of_one) if (std::abs(cycles) > 100) late++, cycles = 0;
        }
    };
    std::vector<double> means(sms);
    double mean = 0, of_multiprocessors = 0;
    for (int sm = 0; sm < sms; sm++) {
        for (double cycles : took[sm]) means[sm] += cycles / lines;
        for (double& cycles : took[sm]) cycles -= means[sm];
        mean += means[sm] / sms;
    }
    for (double of_one : means) of_multiprocessors += (of_one - mean) * (of_one - mean) / sms;
    less_means_of_lines([](int) { return true; });
    // Where a line is near for those of one side, it is far for the others.
    std::vector<bool> is_of_first_side(sms);
    for (int sm = 0; sm < sms; sm++) is_of_first_side[sm] = covariance(0, sm) > 0;
    for (bool side : {false, true}) less_means_of_lines([&](int sm) { return is_of_first_side[sm] == side; });
    leave_late_out();
    auto groups = groups_of(sms);
    double sums[4] = {}, counts[4] = {};
    for (int a = 0; a < sms; a++) {
        for (int b = 0; b < sms; b++) {
            if (is_of_first_side[a] != is_of_first_side[b]) continue;
            int kind = a == b ? 0 : a == (b ^ 1) ? 1 : groups[a] == groups[b] ? 2 : 3;
            sums[kind] += covariance(a, b), counts[kind]++;
        }
    }
    printf("ways: from %s: mean %.1f cycles, by multiprocessor a standard deviation of %.1f, by line and multiprocessor beyond that a "
           "variance of %.0f but for %.1f %%: covariance of neighbours %.0f, of others of a group %.0f, of others of a side %.0f\n",
           from_memory ? "memory" : "the L2", mean, std::sqrt(of_multiprocessors), sums[0] / counts[0], 100 * late / sms / lines,
           sums[1] / counts[1], sums[2] / counts[2], sums[3] / counts[3]);
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
    CHECK(cudaMalloc(&cycles, std::max(lines, size_t(hops)) * sizeof(unsigned)));
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

// ---- Lines that stay in an L1: some are read three times, others once, and then the first again.

__device__ static unsigned read(const char* from) {
    unsigned value;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__global__ void come_and_go(const char* zeros, unsigned lines, unsigned others, unsigned* there) {
    unsigned sum = 0, count = 0;
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < lines; i++) sum += read(zeros + 128 * i);
    }
    for (unsigned i = lines; i < lines + others; i++) sum += read(zeros + 128 * i);
    for (unsigned i = 0; i < lines; i++) {
        unsigned begin = clock();
        // The branch waits for the load: from the L2 it takes 200 cycles at least.
        if (read(zeros + 128 * i) != 0) break;
        count += unsigned(clock()) - begin < 120;
    }
    there[0] = count;
    there[1] = sum;
}

static void stay(char* buffer) {
    unsigned *counts, there[2];
    CHECK(cudaMalloc(&counts, sizeof there));
    CHECK(cudaMemset(buffer, 0, 128 * 16384));
    CHECK(cudaFuncSetAttribute(come_and_go, cudaFuncAttributePreferredSharedMemoryCarveout, 0));
    for (unsigned lines : {1024, 1536, 1792, 2048, 3072}) {
        for (unsigned others : {0, 512, 8192}) {
            come_and_go<<<1, 1>>>(buffer, lines, others, counts);
            CHECK(cudaMemcpy(there, counts, sizeof there, cudaMemcpyDeviceToHost));
            printf("stay: of %4u lines read three times, %4u are in the L1 after %4u others\n", lines, there[0], others);
        }
    }
}

// ---- Reads of the same lines by all multiprocessors, all of them at a time or each at another. How many sectors the L2 sends
// for them, and how many arrive, is for Nsight Compute to say (../README.md).

__global__ void read_all(const uint4* from, size_t n, size_t step, unsigned* to) {
    unsigned sum = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        uint4 value = __ldcg(from + (i + blockIdx.x * step) % n);
        sum += value.x ^ value.y ^ value.z ^ value.w;
    }
    if (sum == 1) *to = sum;
}

static void together(char* buffer, int sms) {
    const size_t n = 1 << 20;
    for (size_t step : {size_t(0), n / sms}) {
        auto from = reinterpret_cast<const uint4*>(buffer);
        auto to = reinterpret_cast<unsigned*>(buffer);
        float ms = median_ms([=] { read_all<<<sms, 1024>>>(from, n, step, to); });
        const char* when = step ? "each at another" : "all at a time";
        printf("together: %zu bytes by every multiprocessor, %s: %.0f GB/s\n", 16 * n, when, 16e-6 * n * sms / ms);
    }
}

// ---- The L2 as it is filled by reads of whole lines at random, eight lanes a line: of all multiprocessors anywhere, of each in a
// part of its own, or of all anywhere while each warp stores as much elsewhere. What the L2 misses, what one of its partitions
// asks of the other and what memory is read for it, is for Nsight Compute to say (../README.md).

enum class Reads { Anywhere, InItsPart, AnywhereAndStores };

__host__ __device__ unsigned long long scramble(unsigned long long z) {
    z = (z + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93;
    return z ^ z >> 29;
}

__global__ void random_lines(const uint4* from, unsigned lines, Reads reads, unsigned rounds, uint4* to, size_t room) {
    size_t eighths = gridDim.x * size_t(blockDim.x) / 8, eighth = (blockIdx.x * size_t(blockDim.x) + threadIdx.x) / 8;
    unsigned part = lines / gridDim.x, lane = threadIdx.x % 8, sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned long long drawn = scramble(round * eighths + eighth);
        size_t line = reads == Reads::InItsPart ? blockIdx.x * part + drawn % part : drawn % lines;
        uint4 value = __ldcg(from + 8 * line + lane);
        sum += value.x ^ value.y ^ value.z ^ value.w;
        if (reads == Reads::AnywhereAndStores) to[8 * ((round * eighths + eighth) % room) + lane] = value;
    }
    if (sum == 1) to[0].x = sum;
}

static void partitions(char* buffer, size_t bytes, int sms) {
    auto from = reinterpret_cast<const uint4*>(buffer);
    auto to = reinterpret_cast<uint4*>(buffer + bytes / 2);
    const char* how[] = {"anywhere", "in its own part", "anywhere, and stores as much"};
    for (Reads reads : {Reads::Anywhere, Reads::InItsPart, Reads::AnywhereAndStores}) {
        for (unsigned mebibytes : {8, 16, 24, 28, 32, 40, 48, 64}) {
            unsigned lines = mebibytes << 13, rounds = 16 * lines / (sms * 128);
            auto launch = [=] { random_lines<<<sms, 1024>>>(from, lines, reads, rounds, to, bytes / 2 / 128); };
            float ms = median_ms(launch, 1);
            double read = 128.0 * 128 * sms * rounds;
            printf("partitions: every multiprocessor reads of %2u MiB %s: %.0f GB/s, %.0f sectors\n", mebibytes, how[int(reads)],
                   read / ms / 1e6, read / 32);
        }
    }
}

// ---- What stays dirty: every sector of so many MiB is stored to, as a whole, or 4 bytes of it in each round. What is written back
// and what is read for that is for Nsight Compute to say (../README.md).

__global__ void store_rounds(char* to, size_t sectors, int bytes, int rounds) {
    size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x, threads = gridDim.x * size_t(blockDim.x);
    for (int round = 0; round < rounds; round++) {
        if (bytes == 4) {
            for (size_t i = thread; i < sectors; i += threads) *reinterpret_cast<int*>(to + 32 * i + 4 * round) = round;
        } else {
            for (size_t i = thread; i < 2 * sectors; i += threads) reinterpret_cast<int4*>(to)[i] = make_int4(round, 0, 0, 0);
        }
    }
}

static void write_backs(char* buffer, int sms) {
    for (int bytes : {4, 32}) {
        for (int rounds : {1, 2, 4}) {
            for (unsigned mebibytes : {8, 16, 24, 28, 32, 40, 48, 64, 256}) {
                size_t sectors = size_t(mebibytes) << 15;
                float ms = median_ms([=] { store_rounds<<<2 * sms, 1024>>>(buffer, sectors, bytes, rounds); }, 1);
                printf("write-backs: %2d bytes of each sector of %3u MiB, %d times: %zu sectors, %.1f us\n", bytes, mebibytes, rounds,
                       sectors, 1e3 * ms);
            }
        }
    }
}

// ---- Pages of memory: all pieces of so many lines are moved once, of one window after another first every so manieth, then those that
// follow these, and so on.

template <bool STORES, unsigned LINES> __global__ void apart(int4* pieces, size_t window, size_t every, int* out) {
    constexpr unsigned VECTORS = 8 * LINES;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        size_t vector = (blockIdx.x * size_t(4) + i) * blockDim.x + threadIdx.x;
        size_t first = vector / VECTORS / window * window, turn = vector / VECTORS % window, sweep = window / every;
        int4* place = pieces + (first + turn % sweep * every + turn / sweep) * VECTORS + vector % VECTORS;
        if (STORES) {
            *place = make_int4(i, 0, 0, 0);
        } else {
            sum += place->x;
        }
    }
    if (sum == 12345) *out = sum;
}

template <unsigned LINES> static void pages(char* buffer, size_t bytes, size_t window, size_t every) {
    auto pieces = reinterpret_cast<int4*>(buffer);
    auto out = reinterpret_cast<int*>(buffer);
    unsigned blocks = bytes / 16 / 1024;
    float load = median_ms([=] { apart<false, LINES><<<blocks, 256>>>(pieces, window / LINES, every, out); });
    float store = median_ms([=] { apart<true, LINES><<<blocks, 256>>>(pieces, window / LINES, every, out); });
    printf("pages: pieces of %u lines, every %3zu. of windows of %7zu lines: loads %.0f GB/s, stores %.0f GB/s\n", LINES, every, window,
           bytes / load / 1e6, bytes / store / 1e6);
}

// ---- Who goes on first: eight blocks of a multiprocessor whose loads find all 32 lines in the L1 and wait for the load/store unit
// alone, or have lines of their own, which the L2 has, each warp with so many of them in flight. Says how far the blocks have come, the
// oldest first, when that has made half.

constexpr unsigned PARTS = 32;

template <int IN_FLIGHT, bool AT_HAND> __global__ void loads(const float* zeros, unsigned rounds, long long* times, unsigned* sm, float* out) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    if (threadIdx.x == 0) sm[blockIdx.x] = number;
    // The L2 is one multiprocessor's own.
    if (!AT_HAND && number != 0) return;
    float sum = 0;
#pragma unroll 1
    for (unsigned part = 0; part < PARTS; part++) {
#pragma unroll 1
        for (unsigned round = 0; round < rounds / PARTS; round += IN_FLIGHT) {
            float loaded[IN_FLIGHT];
            // No address is known before all that was loaded is here.
            for (int i = 0; i < IN_FLIGHT; i++) {
                unsigned own = ((warp * rounds + part * (rounds / PARTS) + round + i) * 0x9E3779B1u >> 20) * 32;
                loaded[i] = zeros[((AT_HAND ? 0 : own) + lane) * 32 + (round + i) % 8 * 4 + (sum != 0)];
            }
            for (int i = 0; i < IN_FLIGHT; i++) sum += loaded[i];
        }
        if (lane == 0) times[PARTS * warp + part] = clock64();
    }
    if (sum != 0) *out = sum;
}

template <int IN_FLIGHT, bool AT_HAND> static void queues(const char* zeros, unsigned sms) {
    const unsigned blocks = 8 * sms, of_a_block = 8 * PARTS;
    std::vector<long long> times(blocks * of_a_block);
    std::vector<unsigned> sm(blocks);
    long long* times_on_gpu;
    unsigned* sm_on_gpu;
    float* out;
    CHECK(cudaMalloc(&times_on_gpu, times.size() * sizeof times[0]));
    CHECK(cudaMalloc(&sm_on_gpu, blocks * sizeof sm[0]));
    CHECK(cudaMalloc(&out, sizeof *out));
    // All of the L2 has the lines after the first launch.
    for (int launch = 0; launch < 2; launch++) {
        loads<IN_FLIGHT, AT_HAND><<<blocks, 256>>>(reinterpret_cast<const float*>(zeros), 512, times_on_gpu, sm_on_gpu, out);
    }
    CHECK(cudaMemcpy(times.data(), times_on_gpu, times.size() * sizeof times[0], cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sm.data(), sm_on_gpu, blocks * sizeof sm[0], cudaMemcpyDeviceToHost));
    auto passed = [&](unsigned block, long long at) {
        auto first = times.begin() + block * of_a_block;
        return std::count_if(first, first + of_a_block, [=](long long time) { return time <= at; });
    };
    unsigned oldest = std::find(sm.begin(), sm.end(), 0) - sm.begin();
    long long half = times[oldest * of_a_block];
    while (passed(oldest, half) < of_a_block / 2) half += 100;
    printf("queues: %d in flight of lines that the %s has, blocks have made %%:", IN_FLIGHT, AT_HAND ? "L1" : "L2");
    for (unsigned block = 0; block < blocks; block++) {
        if (sm[block] == 0) printf(" %.1f", 100.0 * passed(block, half) / of_a_block);
    }
    printf("\n");
}

// ---- Turns: one warp loads lines that the L2 has and the L1 has not, while others, of the same multiprocessor, read lines that the L1
// has, of which each load passes the data `wide` times. The first one's lines are `apart` lines from one another.

__device__ float sum_of_line(const float* zeros, unsigned line, float sum) { return sum + zeros[size_t(line) * 32 + (sum != 0)]; }

__global__ void misses_among_hits(const float* zeros, unsigned lines, unsigned apart, unsigned wide, unsigned loads, long long* cycles, float* out) {
    __shared__ volatile bool done;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = sum_of_line(zeros, lane, 0);
    if (threadIdx.x == 0) done = false;
    __syncthreads();
    if (warp == 0) {
        long long begin = clock64();
        for (unsigned i = 1; i <= loads; i++) {
            if (lane < lines) sum = sum_of_line(zeros, (32 * i + lane) * apart, sum);
            __syncwarp();
        }
        if (lane == 0) *cycles = clock64() - begin;
        done = true;
    } else {
        while (!done) {
            for (int i = 0; i < 16; i++) {
                if (lane < wide) sum = sum_of_line(zeros, lane, sum);
            }
        }
    }
    if (sum != 0) *out = sum;
}

static void turns(const char* zeros, unsigned lines, unsigned apart, unsigned wide) {
    const unsigned loads = 256;
    long long* cycles;
    float* out;
    CHECK(cudaMalloc(&cycles, sizeof *cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    printf("turns: %2u lines, %2u apart, a load, by warps that pass the data %2u times each:", lines, apart, wide);
    for (unsigned others : {0, 4, 8, 16, 28}) {
        long long took;
        // The L2 has the lines after the first launch.
        for (int launch = 0; launch < 2; launch++) {
            misses_among_hits<<<1, 32 * (1 + others)>>>(
                reinterpret_cast<const float*>(zeros), lines, apart, wide, loads, cycles, out
            );
            CHECK(cudaMemcpy(&took, cycles, sizeof took, cudaMemcpyDeviceToHost));
        }
        printf(" %2u: %.0f cycles", others, double(took) / loads);
    }
    printf("\n");
}

// ---- Lookups: so many warps load 32 lines of memory each at a time, each its own or all the same, and a hundred cycles later another warp
// loads a line that the L1 has: when that is there, from when the first of the others began.

__device__ unsigned load(const float* from) {
    unsigned bits;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(bits) : "l"(from) : "memory");
    return bits;
}

__device__ unsigned cycles_now() {
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles) : : "memory");
    return cycles;
}

__global__ void hit_after_others(const float* zeros, unsigned others, bool same, unsigned rounds, uint2* spans, float* out) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = load(zeros);
    for (unsigned round = 0; round < rounds; round++) {
        const float* from = warp == 31 ? zeros : zeros + (size_t(round + 1) * 1024 + (same ? 0 : 32 * warp) + lane) * 32;
        from += bits;
        // What was on its way before is here.
        for (unsigned begin = cycles_now(); cycles_now() - begin < 4000;) {}
        __syncthreads();
        if (warp < others || warp == 31) {
            unsigned begin = cycles_now();
            while (warp == 31 && cycles_now() - begin < 100) {}
            bits |= load(from);
            if (bits != 0) *out = 1;
            unsigned end = cycles_now();
            if (lane == 0) spans[warp * rounds + round] = {begin, end};
        }
    }
}

static void lookups(const char* zeros, bool same) {
    const unsigned rounds = 64;
    uint2* spans;
    float* out;
    CHECK(cudaMalloc(&spans, 32 * rounds * sizeof *spans));
    CHECK(cudaMalloc(&out, sizeof *out));
    printf("lookups: a line that the L1 has, after so many loads of 32 lines of memory, %s:", same ? "all of the same" : "each of its own");
    for (unsigned others : {0, 4, 8, 16, 24, 28}) {
        std::vector<uint2> host(32 * rounds);
        // With cold code the first launch takes longer.
        for (int launch = 0; launch < 2; launch++) {
            // Lines that no launch before had.
            auto from = reinterpret_cast<const float*>(zeros) + size_t(16 * launch + 8 * same + others / 4) * (rounds + 1) * 1024 * 32;
            hit_after_others<<<1, 1024>>>(from, others, same, rounds, spans, out);
            CHECK(cudaMemcpy(host.data(), spans, host.size() * sizeof host[0], cudaMemcpyDeviceToHost));
        }
        std::vector<unsigned> took;
        for (unsigned round = 0; round < rounds; round++) {
            int earlier = 0;
            unsigned begin = host[31 * rounds + round].x, end = host[31 * rounds + round].y;
            for (unsigned warp = 0; warp < others; warp++) earlier = std::max(earlier, int(begin - host[warp * rounds + round].x));
            took.push_back(end - begin + earlier);
        }
        std::sort(took.begin(), took.end());
        printf(" %2u: %u cycles", others, took[rounds / 2]);
    }
    printf("\n");
}

// ---- Groups: eight warps each load the same 32 lines at a time, which the L2 has, so many loads of a warp in flight: how long a load takes.

template <int IN_FLIGHT> __global__ void groups_of_eight(const float* zeros, unsigned lines, unsigned loads, unsigned* ends, float* out) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (unsigned i = 0; i < loads; i += IN_FLIGHT) {
        float loaded[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            unsigned line = (((i + k) * 32 + lane) * 513 + warp / 8 * 131) % lines;
            loaded[k] = zeros[size_t(line) * 32 + warp % 8 + (sum != 0)];
        }
#pragma unroll
        for (float value : loaded) sum += value;
        unsigned end = clock() + (sum != 0);
        if (lane == 0) ends[warp * (loads / IN_FLIGHT) + i / IN_FLIGHT] = end;
    }
    if (sum != 0) *out = sum;
}

template <int IN_FLIGHT> static void groups(const char* zeros, int sms, unsigned warps) {
    const unsigned loads = 512, lines = 1 << 17, each = loads / IN_FLIGHT, skipped = 16;
    unsigned* ends;
    float* out;
    CHECK(cudaMalloc(&ends, sms * warps * each * sizeof *ends));
    CHECK(cudaMalloc(&out, sizeof *out));
    // Both partitions of the L2 have the lines after the first launch.
    for (int launch = 0; launch < 2; launch++) {
        groups_of_eight<IN_FLIGHT><<<sms, 32 * warps>>>(reinterpret_cast<const float*>(zeros), lines, loads, ends, out);
    }
    std::vector<unsigned> host(warps * each), took;
    CHECK(cudaMemcpy(host.data(), ends, host.size() * sizeof *ends, cudaMemcpyDeviceToHost));
    for (unsigned warp = 0; warp < warps; warp++) {
        for (unsigned i = skipped; i < each; i++) took.push_back((host[warp * each + i] - host[warp * each + i - 1]) / IN_FLIGHT);
    }
    std::sort(took.begin(), took.end());
    printf("groups: %2u warps, %d in flight: cycles a load at 5, 25, 50, 75 and 95 %%:", warps, IN_FLIGHT);
    for (int percent : {5, 25, 50, 75, 95}) printf(" %u", took[percent * (took.size() - 1) / 100]);
    printf("\n");
    CHECK(cudaFree(ends));
}

// ---- Overtaking: one multiprocessor's loads of lines that all of the L2 has, one after another, while so many warps of others load a line
// each that only memory has, at random. Those that take more than `late` cycles are counted.

__global__ void read_lines(const float* zeros, unsigned lines, float* out) {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < lines; i += blockDim.x) sum += __ldcg(zeros + size_t(i) * 32);
    if (sum != 0) *out = sum;
}

__global__ void hits_among_misses(
    const float* zeros, unsigned known, unsigned unknown, unsigned seed, unsigned loads, unsigned late, volatile unsigned* done, unsigned* counted, float* out
) {
    // So much of it that a multiprocessor has room for one block.
    extern __shared__ float room[];
    float sum = 0;
    if (blockIdx.x == 0) {
        if (threadIdx.x != 0) return;
        // The others have begun.
        for (long long begin = clock64(); clock64() - begin < 50000;) {}
        for (unsigned i = 0; i < loads; i++) {
            unsigned begin = clock();
            sum = sum_of_line(zeros, (seed / 512 + i) * 1057 % known, sum);
            unsigned took = clock() - begin + (sum != 0);
            counted[0] += took > late;
            counted[1] += took;
        }
        *done = 1;
    } else {
        unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        for (unsigned i = seed; i % 8 != 0 || !*done; i++) {
            if (threadIdx.x % 32 == 0) sum = sum_of_line(zeros, known + mixed(mixed(i) + warp) % unknown, sum);
        }
    }
    if (sum != 0) *out = sum + int(room[0]);
}

static void overtaking(const char* buffer, size_t bytes, int sms) {
    const unsigned known = 1 << 15, unknown = unsigned(bytes / 128) - known, loads = 128, room = 160 << 10;
    const float* zeros = reinterpret_cast<const float*>(buffer);
    unsigned *done, *counted;
    float* out;
    CHECK(cudaMalloc(&done, sizeof *done));
    CHECK(cudaMalloc(&counted, 2 * sizeof *counted));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaFuncSetAttribute(hits_among_misses, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    unsigned seed = 0, late = 0;
    for (unsigned others : {0, 4, 16, 64, 128, 512, 1024}) {
        unsigned blocks = others < 128 ? others : 128, warps = others < 128 ? 1 : others / 128;
        unsigned sums[2] = {0, 0};
        // Few loads each, so that the L2 has what it had to the end.
        const int launches = 64;
        for (int launch = 0; launch < launches; launch++) {
            unsigned counts[2];
            read_lines<<<sms, 1024, 0>>>(zeros, known, out);
            CHECK(cudaMemset(done, 0, sizeof *done));
            CHECK(cudaMemset(counted, 0, sizeof counts));
            hits_among_misses<<<1 + blocks, 32 * warps, room>>>(zeros, known, unknown, seed += 1 << 16, loads, late, done, counted, out);
            CHECK(cudaMemcpy(counts, counted, sizeof counts, cudaMemcpyDeviceToHost));
            for (int i = 0; i < 2; i++) sums[i] += counts[i];
        }
        double mean = double(sums[1]) / launches / loads;
        if (others == 0) late = unsigned(mean) + 130;
        else printf("overtaking: %4u reads of memory on their way: a read that the L2 has takes %.0f cycles, %.1f %% above %u\n", others, mean, 100.0 * sums[0] / launches / loads, late);
    }
}

// ---- Lateness: loads of so many lines at random, one after another.

__global__ void random_loads(const float* zeros, unsigned all, unsigned lines, unsigned seed, unsigned loads, unsigned* cycles, float* out) {
    float sum = 0;
    for (unsigned i = 0; i < loads; i++) {
        unsigned line = mixed(32 * (seed + i) + threadIdx.x) % all + unsigned(sum);
        __syncwarp();
        unsigned begin = clock();
        if (threadIdx.x < lines) sum = sum_of_line(zeros, line, sum);
        __syncwarp();
        unsigned took = clock() - begin + (sum != 0);
        if (threadIdx.x == 0) cycles[i] = took;
    }
    if (sum != 0) *out = sum;
}

static void lateness(const char* buffer, size_t bytes, unsigned lines) {
    const unsigned loads = 1 << 14;
    unsigned* on_gpu;
    float* out;
    CHECK(cudaMalloc(&on_gpu, loads * sizeof *on_gpu));
    CHECK(cudaMalloc(&out, sizeof *out));
    std::vector<unsigned> cycles(loads);
    random_loads<<<1, 32>>>(reinterpret_cast<const float*>(buffer), unsigned(bytes / 128), lines, lines << 20, loads, on_gpu, out);
    CHECK(cudaMemcpy(cycles.data(), on_gpu, loads * sizeof *on_gpu, cudaMemcpyDeviceToHost));
    std::sort(cycles.begin(), cycles.end());
    printf("lateness: %2u lines at random: cycles at 1, 10, 20, … 90 and 99 %%:", lines);
    for (int percent : {1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99}) printf(" %u", cycles[size_t(percent) * loads / 100]);
    printf("\n");
}

// ---- Waits: so many warps of every multiprocessor load 32 lines at random, one load after another, but for every sixteenth of them,
// which loads one line: at random too, or the next after that of the warp sixteen before, or the next after the one that it loaded before.

enum Place { AT_RANDOM, IN_ONE_ROW, IN_ROWS };

__global__ void loads_among_others(const float* zeros, unsigned all, unsigned loads, Place place, unsigned* cycles, float* out) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32, lane = threadIdx.x % 32;
    unsigned apart = place == IN_ONE_ROW ? warps / 16 : 1, first = place == IN_ONE_ROW ? warp / 16 : warp / 16 * loads;
    float sum = 0;
    for (unsigned i = 0; i < loads; i++) {
        unsigned line = mixed(mixed(warp * loads + i) + (warp % 16 == 0 ? 0 : lane)) % all + unsigned(sum);
        if (place != AT_RANDOM && warp % 16 == 0) line = first + i * apart + unsigned(sum);
        __syncwarp();
        unsigned begin = clock();
        sum = sum_of_line(zeros, line, sum);
        __syncwarp();
        unsigned took = clock() - begin + (sum != 0);
        if (lane == 0) cycles[warp * loads + i] = took;
    }
    if (sum != 0) *out = sum;
}

static void waits(const char* buffer, size_t bytes, int sms, unsigned warps, Place place) {
    const unsigned loads = 128, skipped = 32, count = sms * warps;
    unsigned* on_gpu;
    float* out;
    CHECK(cudaMalloc(&on_gpu, count * loads * sizeof *on_gpu));
    CHECK(cudaMalloc(&out, sizeof *out));
    loads_among_others<<<count / 8, 256>>>(reinterpret_cast<const float*>(buffer), unsigned(bytes / 128), loads, place, on_gpu, out);
    std::vector<unsigned> host(count * loads), took[2];
    CHECK(cudaMemcpy(host.data(), on_gpu, host.size() * sizeof *on_gpu, cudaMemcpyDeviceToHost));
    for (unsigned warp = 0; warp < count; warp++) {
        // Not while all begin, nor while they end.
        for (unsigned i = skipped; i < loads - skipped; i++) took[warp % 16 == 0].push_back(host[warp * loads + i]);
    }
    for (bool of_one : {true, false}) {
        auto& cycles = took[of_one];
        double mean = 0;
        for (unsigned of_load : cycles) mean += double(of_load) / cycles.size();
        std::sort(cycles.begin(), cycles.end());
        const char* where = !of_one || place == AT_RANDOM ? "" : place == IN_ONE_ROW ? " in one row" : " in a row";
        printf("waits: %2u warps, a load of %2d lines%s: mean %.0f cycles, at 1, 5, 25, 50, 75, 95 and 99 %%:", warps, of_one ? 1 : 32, where, mean);
        for (int percent : {1, 5, 25, 50, 75, 95, 99}) printf(" %u", cycles[size_t(percent) * cycles.size() / 100]);
        printf("\n");
    }
    CHECK(cudaFree(on_gpu));
}

// ---- Pending: so many loads of the same lines of memory wait for them, long, since all other multiprocessors load from memory as well.
// How long a load of a line that the L1 has takes meanwhile: until the others are done if they are too many.

__device__ volatile bool enough;

__global__ void hit_after_pending(
    const float* zeros, unsigned all, unsigned loads, unsigned first, unsigned apart, unsigned lines, unsigned rounds, unsigned* cycles,
    float* out
) {
    const unsigned most = 12, others = 31;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = load(zeros);
    if (blockIdx.x > 0) {
        for (unsigned i = 0; i % 16 != 0 || !enough; i++) {
            bits |= load(zeros + size_t(mixed(mixed(blockIdx.x << 20 | i) + threadIdx.x) % all) * 32 + bits);
        }
    } else {
        for (unsigned round = 1; round <= rounds; round++) {
            // What was on its way before is here, and all others are at work.
            for (unsigned begin = cycles_now(); cycles_now() - begin < 60000;) {}
            __syncthreads();
            unsigned begin = cycles_now(), loaded[most] = {};
            if (warp < others) {
                // The same banks of the tags in each round.
                const float* from = zeros + ((size_t(round) << 14) + first + apart * (lane % lines)) * 32;
#pragma unroll
                for (unsigned i = 0; i < most; i++) {
                    if (i * others + warp < loads) loaded[i] = load(from);
                }
            } else {
                bits |= load(zeros + bits);
                while (cycles_now() - begin < 2000 + bits) {}
                begin = cycles_now();
                bits |= load(zeros + bits);
                unsigned end = cycles_now() + bits;
                if (lane == 0) cycles[round - 1] = end - begin;
            }
#pragma unroll
            for (unsigned of_load : loaded) bits |= of_load;
        }
        enough = true;
    }
    if (bits != 0) *out = bits;
}

static void pending(const char* zeros, size_t bytes, int sms, unsigned first, unsigned apart, unsigned lines, std::vector<unsigned> counts) {
    const unsigned rounds = 32;
    unsigned* cycles;
    float* out;
    CHECK(cudaMalloc(&cycles, rounds * sizeof *cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    printf("pending: a line that the L1 has, while loads of the same %2u lines wait, %2u apart:", lines, apart);
    for (unsigned loads : counts) {
        bool no = false;
        CHECK(cudaMemcpyToSymbol(enough, &no, sizeof no));
        auto from = reinterpret_cast<const float*>(zeros);
        hit_after_pending<<<sms, 1024>>>(from, bytes / 128, loads, first, apart, lines, rounds, cycles, out);
        std::vector<unsigned> host(rounds);
        CHECK(cudaMemcpy(host.data(), cycles, host.size() * sizeof host[0], cudaMemcpyDeviceToHost));
        std::sort(host.begin(), host.end());
        printf(" %u: %u cycles", loads, host[rounds / 2]);
    }
    printf("\n");
    CHECK(cudaFree(cycles));
    CHECK(cudaFree(out));
}

// ---- Beginnings: when the blocks of a launch begin, eight on a multiprocessor, and when the first that each loads is there.

__global__ void beginning(const float* zeros, size_t apart, unsigned* multiprocessors, unsigned* begun, unsigned* loaded, float* out) {
    unsigned begin = cycles_now(), multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    unsigned bits = load(zeros + (size_t(blockIdx.x) * 32 + threadIdx.x % 32) * apart + threadIdx.x / 32);
    if (bits != 0) *out = bits;
    unsigned there = cycles_now();
    if (threadIdx.x == 0) multiprocessors[blockIdx.x] = multiprocessor, begun[blockIdx.x] = begin, loaded[blockIdx.x] = there;
}

static void beginnings(const char* zeros, size_t bytes, int sms) {
    const unsigned each = 8, blocks = each * sms;
    unsigned* on_gpu;
    char* flush;
    float* out;
    CHECK(cudaMalloc(&on_gpu, 3 * blocks * sizeof *on_gpu));
    CHECK(cudaMalloc(&flush, 256 << 20));
    CHECK(cudaMalloc(&out, sizeof *out));
    std::vector<unsigned> host(3 * blocks), begun[each], loaded[each];
    for (int launch = 0; launch < 9; launch++) {
        CHECK(cudaMemset(flush, launch, 256 << 20));
        beginning<<<blocks, 256>>>(reinterpret_cast<const float*>(zeros), bytes / 4 / (32 * blocks), on_gpu, on_gpu + blocks, on_gpu + 2 * blocks, out);
        CHECK(cudaMemcpy(host.data(), on_gpu, host.size() * sizeof *on_gpu, cudaMemcpyDeviceToHost));
        for (int multiprocessor = 0; multiprocessor < sms; multiprocessor++) {
            std::vector<unsigned> begins, ends;
            for (unsigned block = 0; block < blocks; block++) {
                if (host[block] != unsigned(multiprocessor)) continue;
                begins.push_back(host[blocks + block]), ends.push_back(host[2 * blocks + block]);
            }
            if (begins.size() != each || launch == 0) continue;
            std::sort(begins.begin(), begins.end());
            std::sort(ends.begin(), ends.end());
            for (unsigned i = 0; i < each; i++) begun[i].push_back(begins[i] - begins[0]), loaded[i].push_back(ends[i] - begins[0]);
        }
    }
    for (auto cycles : {begun, loaded}) {
        printf("beginnings: of eight blocks of a multiprocessor %s after so many cycles, in the median:", cycles == begun ? "one begins" : "one has loaded");
        for (unsigned i = 0; i < each; i++) {
            std::sort(cycles[i].begin(), cycles[i].end());
            printf(" %u", cycles[i][cycles[i].size() / 2]);
        }
        printf("\n");
    }
    CHECK(cudaFree(on_gpu));
    CHECK(cudaFree(flush));
    CHECK(cudaFree(out));
}

// ---- Flushes: how long a sector of each of so many lines takes to read after 256 MiB were written, and once these were read as well.

static void flushes(const char* zeros, float* out) {
    for (unsigned mebibytes : {4, 16, 32, 64, 128, 256, 512, 1024}) {
        size_t lines = size_t(mebibytes) << 13;
        auto launch = [=] { a_sector_a_line<<<lines / 256, 256>>>((const float*)zeros, lines, out); };
        float dirty = median_ms(launch), clean = median_ms(launch, 15, true);
        printf("flushes: a sector of each line of %4u MiB: %.1f us after 256 MiB were written, %.1f us once they were read\n", mebibytes,
               1e3 * dirty, 1e3 * clean);
    }
}

// ---- Conflicts: one load of each warp after another, of words of shared memory, or of lines that the L1 has, so many of which are in
// a bank.

__global__ void of_shared(unsigned ways, unsigned hops, unsigned long long* cycles, unsigned* out) {
    __shared__ unsigned tile[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = i;
    __syncthreads();
    unsigned lane = threadIdx.x % 32, at = lane % ways * 32 + lane / ways;
    long long before = clock64();
#pragma unroll 8
    for (unsigned hop = 0; hop < hops; hop++) at = tile[at];
    __syncthreads();
    if (threadIdx.x == 0) *cycles = clock64() - before;
    if (at == 12345) *out = at;
}

// `from` holds nothing but zeros: the offset that comes back is added.
__global__ void of_l1(const char* from, unsigned ways, unsigned hops, unsigned long long* cycles, unsigned* out) {
    unsigned lane = threadIdx.x % 32;
    const char* at = from + 4 * (lane % ways * 32 + lane / ways);
    at += *(const volatile unsigned*)at;
    __syncthreads();
    long long before = clock64();
#pragma unroll 8
    for (unsigned hop = 0; hop < hops; hop++) {
        unsigned offset;
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(offset) : "l"(at));
        at += offset;
    }
    __syncthreads();
    if (threadIdx.x == 0) *cycles = clock64() - before;
    if (at == from + 12345) *out = 1;
}

static void conflicts(const char* from) {
    const unsigned hops = 4096;
    unsigned long long *on_gpu, cycles;
    unsigned* out;
    CHECK(cudaMalloc(&on_gpu, sizeof cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    for (bool shared : {true, false}) {
        for (unsigned warps : {1, 4, 8, 32}) {
            printf("conflicts: %2u warps load from %s, in 1, 2, 4, 8, 16 and 32 ways, for", warps, shared ? "shared memory" : "lines of the L1");
            for (unsigned ways : {1, 2, 4, 8, 16, 32}) {
                for (int i = 0; i < 3; i++) {
                    if (shared) of_shared<<<1, 32 * warps>>>(ways, hops, on_gpu, out);
                    else of_l1<<<1, 32 * warps>>>(from, ways, hops, on_gpu, out);
                }
                CHECK(cudaMemcpy(&cycles, on_gpu, sizeof cycles, cudaMemcpyDeviceToHost));
                printf(" %.1f", double(cycles) / hops);
            }
            printf(" cycles each\n");
        }
    }
    CHECK(cudaFree(on_gpu));
    CHECK(cudaFree(out));
}

// ---- Barriers: one after another, of all warps of a block; and between two of them a step of a tree in shared memory, by the first
// threads. Blocks of a multiprocessor do not take equally long: in their mean.

__global__ void meetings(unsigned rounds, unsigned long long* cycles) {
    __syncthreads();
    long long before = clock64();
#pragma unroll 8
    for (unsigned round = 0; round < rounds; round++) __syncthreads();
    if (threadIdx.x == 0) atomicAdd(cycles, (unsigned long long)(clock64() - before));
}

__global__ void tree(unsigned ways, unsigned active, unsigned rounds, unsigned long long* cycles, unsigned* out) {
    __shared__ volatile unsigned tile[8 * 512];
    for (unsigned i = threadIdx.x; i < 8 * 512; i += blockDim.x) tile[i] = 0;
    __syncthreads();
    unsigned lane = threadIdx.x % 32, at = threadIdx.x / 32 * 512 + lane % ways * 32 + lane / ways;
    long long before = clock64();
#pragma unroll 4
    for (unsigned round = 0; round < rounds; round++) {
        __syncthreads();
        if (threadIdx.x < active) tile[at] = tile[at] + tile[at ^ 256];
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(cycles, (unsigned long long)(clock64() - before));
    if (tile[at] == 12345) *out = at;
}

static void barriers(int sms) {
    const unsigned rounds = 4096;
    unsigned long long *on_gpu, cycles;
    unsigned* out;
    CHECK(cudaMalloc(&on_gpu, sizeof cycles));
    CHECK(cudaMalloc(&out, sizeof *out));
    auto mean = [&](auto launch, unsigned blocks) {
        for (int i = 0; i < 3; i++) {
            CHECK(cudaMemset(on_gpu, 0, sizeof cycles));
            launch(blocks * sms);
        }
        CHECK(cudaMemcpy(&cycles, on_gpu, sizeof cycles, cudaMemcpyDeviceToHost));
        return double(cycles) / rounds / blocks / sms;
    };
    for (unsigned blocks : {1, 2, 4, 8}) {
        for (unsigned warps = 1; warps <= 32 && blocks * warps <= 64; warps *= 2) {
            double each = mean([=](unsigned all) { meetings<<<all, 32 * warps>>>(rounds, on_gpu); }, blocks);
            printf("barriers: %u blocks of %2u warps: %.1f cycles each\n", blocks, warps, each);
        }
    }
    CHECK(cudaFuncSetAttribute(tree, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    for (unsigned blocks : {1, 2, 4}) {
        for (unsigned warps : {8, 4, 2, 1}) {
            printf("barriers: %u blocks of 8 warps, of which %u add, in 1, 2, 4 and 8 ways:", blocks, warps);
            for (unsigned ways : {1, 2, 4, 8}) {
                printf(" %.1f", mean([=](unsigned all) { tree<<<all, 256>>>(ways, 32 * warps, rounds, on_gpu, out); }, blocks));
            }
            printf(" cycles a step\n");
        }
    }
    CHECK(cudaFree(on_gpu));
    CHECK(cudaFree(out));
}

// ---- Returns: loads of the same lines of the host, four of each of eight warps, come back at a time, while others load lines that the L1
// has in 32 wavefronts each, so many of a warp in flight: how long it takes from one of the former to the next.

// Until then the others are at work.
constexpr unsigned until = 12000;

template <int IN_FLIGHT> __global__ void passing_by(const float* host, const float* known, unsigned lines, unsigned hitters, unsigned rounds, unsigned* ends, float* out) {
    const unsigned each = 4, waiters = 8, warps = 32;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = 0;
    for (unsigned round = 0; round < rounds; round++) {
        bool hits = warp >= warps - hitters;
        if (hits) bits |= load(known + lane * 32 + bits);
        for (unsigned begin = cycles_now(); cycles_now() - begin < 6000 + bits;) {}
        __syncthreads();
        unsigned begin = cycles_now();
        if (warp < waiters) {
            unsigned loaded[each], end[each];
            // Each another word: of loads from one address ptxas makes one.
            const float* from = host + (size_t(round) * 32 + lane % lines) * 32 + bits;
#pragma unroll
            for (unsigned i = 0; i < each; i++) loaded[i] = load(from + i);
#pragma unroll
            for (unsigned i = 0; i < each; i++) bits |= loaded[i], end[i] = cycles_now() + bits - begin;
#pragma unroll
            for (unsigned i = 0; i < each; i++) {
                if (lane == 0) ends[(round * waiters + warp) * each + i] = end[i];
            }
        } else if (hits) {
            // The others have looked their lines up, which are not here yet.
            while (cycles_now() - begin < 1300 + bits) {}
            while (cycles_now() - begin < until + bits) {
                unsigned loaded[IN_FLIGHT];
#pragma unroll
                for (unsigned i = 0; i < IN_FLIGHT; i++) loaded[i] = load(known + lane * 32 + i + bits);
#pragma unroll
                for (unsigned value : loaded) bits |= value;
            }
        }
        __syncthreads();
    }
    if (bits != 0) *out = bits;
}

template <int IN_FLIGHT> static void returns(const char* zeros, unsigned hitters, unsigned lines) {
    const unsigned rounds = 64, each = 32;
    size_t bytes = rounds * 32 * 128;
    unsigned* ends;
    float *host, *out;
    CHECK(cudaHostAlloc(&host, bytes, cudaHostAllocMapped));
    memset(host, 0, bytes);
    CHECK(cudaMalloc(&ends, rounds * each * sizeof *ends));
    CHECK(cudaMalloc(&out, sizeof *out));
    passing_by<IN_FLIGHT><<<1, 1024>>>(host, reinterpret_cast<const float*>(zeros), lines, hitters, rounds, ends, out);
    std::vector<unsigned> came(rounds * each), took;
    CHECK(cudaMemcpy(came.data(), ends, came.size() * sizeof came[0], cudaMemcpyDeviceToHost));
    // The first has cold code.
    for (unsigned round = 1; round < rounds; round++) {
        auto first = came.begin() + round * each;
        std::sort(first, first + each);
        // While all others are at work.
        auto last = std::lower_bound(first, first + each, until);
        for (auto next = first + 1; next < last; next++) took.push_back(next[0] - next[-1]);
    }
    std::sort(took.begin(), took.end());
    printf("returns: %2u others with %d in flight, %2u lines: cycles from one load that came back to the next at 10, 25, 50, 75 and 90 %%:", hitters, IN_FLIGHT, lines);
    for (int percent : {10, 25, 50, 75, 90}) printf(" %u", took.empty() ? 0 : took[percent * (took.size() - 1) / 100]);
    printf("\n");
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(ends));
    CHECK(cudaFree(out));
}

// ---- Streams: so many warps, each of the next part of the multiprocessor or all of one, load 32 lines that the L1 has, in 32 wavefronts
// and with so many loads of each in flight: how long a load takes.

template <int IN_FLIGHT> __global__ void loads_at_hand(const float* zeros, unsigned warps, unsigned apart, unsigned* cycles, float* out) {
    const unsigned rounds = 64;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = 0;
    const float* from[IN_FLIGHT];
    for (unsigned k = 0; k < IN_FLIGHT; k++) bits |= load(from[k] = zeros + (k * 32 + lane) * 32);
    __syncthreads();
    if (warp % apart != 0 || warp / apart >= warps) return;
    for (unsigned begin = cycles_now(); cycles_now() - begin < 4000 + bits;) {}
    unsigned begin = cycles_now();
    for (unsigned round = 0; round < rounds; round++) {
        unsigned loaded[IN_FLIGHT];
#pragma unroll
        for (unsigned k = 0; k < IN_FLIGHT; k++) loaded[k] = load(from[k] + bits);
#pragma unroll
        for (unsigned value : loaded) bits |= value;
    }
    unsigned end = cycles_now() + bits;
    if (lane == 0) cycles[warp / apart] = (end - begin) / (rounds * IN_FLIGHT);
    if (bits != 0) *out = bits;
}

template <int IN_FLIGHT> static void streams(const char* zeros) {
    for (unsigned apart : {1, 4}) {
        printf("streams: %d in flight, cycles a load of so many warps of %s:", IN_FLIGHT, apart == 1 ? "several parts" : "one part");
        for (unsigned warps : {1, 2, 3, 4, 8}) {
            std::vector<unsigned> cycles(warps);
            unsigned* on_gpu;
            float* out;
            CHECK(cudaMalloc(&on_gpu, warps * sizeof *on_gpu));
            CHECK(cudaMalloc(&out, sizeof *out));
            for (int launch = 0; launch < 2; launch++) {
                loads_at_hand<IN_FLIGHT><<<1, 1024>>>(reinterpret_cast<const float*>(zeros), warps, apart, on_gpu, out);
            }
            CHECK(cudaMemcpy(cycles.data(), on_gpu, warps * sizeof *on_gpu, cudaMemcpyDeviceToHost));
            std::sort(cycles.begin(), cycles.end());
            printf(" %u: %u", warps, cycles[warps / 2]);
            CHECK(cudaFree(on_gpu));
            CHECK(cudaFree(out));
        }
        printf("\n");
    }
}

// ---- Arrivals: warps of three parts of a multiprocessor make so many loads of 32 wavefronts at a time, and so many cycles later one of the
// fourth makes one of a single wavefront, all of lines that the L1 has: how long that takes.

__global__ void last_to_come(const float* zeros, unsigned warps, unsigned later, unsigned rounds, unsigned* cycles, float* out) {
    const unsigned in_flight = 4;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = 0;
    __shared__ unsigned when;
    const float* from[in_flight];
    for (unsigned k = 0; k < in_flight; k++) bits |= load(from[k] = zeros + (k * 32 + lane) * 32);
    for (unsigned round = 0; round < rounds; round++) {
        __syncthreads();
        if (threadIdx.x == 0) when = cycles_now() + 4000 + bits;
        __syncthreads();
        unsigned begin = *(volatile unsigned*)&when;
        while (int(cycles_now() - begin) < 0) {}
        if (warp % 4 != 3 && warp / 4 * 3 + warp % 4 < warps) {
            unsigned loaded[in_flight];
#pragma unroll
            for (unsigned k = 0; k < in_flight; k++) loaded[k] = load(from[k] + bits);
#pragma unroll
            for (unsigned value : loaded) bits |= value;
        } else if (warp == 3) {
            while (int(cycles_now() - begin) < int(later)) {}
            unsigned since = cycles_now();
            bits |= load(zeros + bits);
            unsigned end = cycles_now() + bits;
            if (lane == 0) cycles[round] = end - since;
        }
    }
    if (bits != 0) *out = bits;
}

static void arrivals(const char* zeros, unsigned warps) {
    const unsigned rounds = 65;
    printf("arrivals: after %2u warps of other parts, so many cycles later:", warps);
    for (unsigned later : {50, 100, 200, 400, 800}) {
        std::vector<unsigned> cycles(rounds);
        unsigned* on_gpu;
        float* out;
        CHECK(cudaMalloc(&on_gpu, rounds * sizeof *on_gpu));
        CHECK(cudaMalloc(&out, sizeof *out));
        last_to_come<<<1, 1024>>>(reinterpret_cast<const float*>(zeros), warps, later, rounds, on_gpu, out);
        CHECK(cudaMemcpy(cycles.data(), on_gpu, rounds * sizeof *on_gpu, cudaMemcpyDeviceToHost));
        // The first has cold code.
        std::sort(cycles.begin() + 1, cycles.end());
        printf(" %u: %u", later, cycles[1 + rounds / 2]);
        CHECK(cudaFree(on_gpu));
        CHECK(cudaFree(out));
    }
    printf("\n");
}

// ---- Leaders: warps that begin 60 cycles apart make four loads of the same 4 x 32 lines each, which the L2 has and the first of them asks
// for, in 32 wavefronts: as which of all the first warp's loads are done, in the mean, and how long all take.

__global__ void one_asks(const float* zeros, unsigned warps, unsigned rounds, unsigned* ends, float* out) {
    const unsigned in_flight = 4;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = 0;
    __shared__ unsigned when;
    for (unsigned round = 0; round < rounds; round++) {
        __syncthreads();
        if (threadIdx.x == 0) when = cycles_now() + 4000 + bits;
        __syncthreads();
        unsigned begin = *(volatile unsigned*)&when;
        while (int(cycles_now() - begin) < int(60 * warp)) {}
        unsigned loaded[in_flight], end[in_flight];
        const float* from = zeros + (size_t(round) * in_flight * 32 + lane) * 32 + warp % 8 + bits;
#pragma unroll
        for (unsigned k = 0; k < in_flight; k++) loaded[k] = load(from + k * 1024);
#pragma unroll
        for (unsigned k = 0; k < in_flight; k++) bits |= loaded[k], end[k] = cycles_now() + bits - begin;
#pragma unroll
        for (unsigned k = 0; k < in_flight; k++) {
            if (lane == 0) ends[(round * warps + warp) * in_flight + k] = end[k];
        }
    }
    if (bits != 0) *out = bits;
}

static void leaders(const char* zeros, unsigned warps) {
    const unsigned rounds = 65, in_flight = 4, each = warps * in_flight;
    unsigned* ends;
    float* out;
    CHECK(cudaMalloc(&ends, rounds * each * sizeof *ends));
    CHECK(cudaMalloc(&out, sizeof *out));
    auto from = reinterpret_cast<const float*>(zeros);
    // All of the L2 has the lines after the first launch.
    for (int launch = 0; launch < 3; launch++) one_asks<<<1, 32 * warps>>>(from, warps, rounds, ends, out);
    std::vector<unsigned> host(rounds * each), spans;
    CHECK(cudaMemcpy(host.data(), ends, host.size() * sizeof host[0], cudaMemcpyDeviceToHost));
    double places[in_flight] = {};
    // The first has cold code.
    for (unsigned round = 1; round < rounds; round++) {
        auto first = host.begin() + round * each;
        for (unsigned k = 0; k < in_flight; k++) {
            places[k] += std::count_if(first, first + each, [&](unsigned end) { return end < first[k]; }) + 1;
        }
        spans.push_back(*std::max_element(first, first + each) - *std::min_element(first, first + each));
    }
    std::sort(spans.begin(), spans.end());
    printf("leaders: of %u warps' loads those of the first are done as number", warps);
    for (double place : places) printf(" %.1f", place / (rounds - 1));
    printf(" of %u, from the first to the last in %u cycles\n", each, spans[spans.size() / 2]);
    CHECK(cudaFree(ends));
    CHECK(cudaFree(out));
}

// ---- Held: loads of 31 lines each wait for one more, of the host, while two warps load more lines than a small L1 has room for. What is
// left of the 31 when the first of the loads is done, by who asked for them, and whether the two warps had to wait until then.

enum Asked { BY_ITSELF, BY_ANOTHER, BEFORE };

// Warps that may wait; as many ask for their lines, and two more load others.
constexpr unsigned most_late = 8;

struct Late {
    unsigned load, again, others;
};

__global__ void one_line_is_late(const float* zeros, const float* host, Asked asked, unsigned loads, unsigned others, unsigned rounds, Late* cycles, float* out) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, bits = 0;
    for (unsigned round = 0; round < rounds; round++) {
        size_t number = round * most_late + warp % most_late;
        const float* from = lane < 31 ? zeros + (number * 32 + lane) * 32 : host + number * 32;
        bool asks = warp < loads && lane < 31;
        if (asks && asked == BEFORE) bits |= load(from + bits);
        for (unsigned begin = cycles_now(); cycles_now() - begin < 6000 + bits;) {}
        __syncthreads();
        unsigned begin = cycles_now();
        if (asks && asked == BY_ANOTHER) bits |= load(from + bits);
        if (warp >= most_late && warp < most_late + loads) {
            while (cycles_now() - begin < 100 + bits) {}
            unsigned since = cycles_now();
            bits |= load(from + bits);
            unsigned done = cycles_now() + bits;
            if (lane < 31) bits |= load(from + bits);
            unsigned again = cycles_now() + bits;
            if (warp == most_late && lane == 0) cycles[round].load = done - since, cycles[round].again = again - done;
        } else if (warp >= 2 * most_late) {
            while (cycles_now() - begin < 600 + bits) {}
            for (unsigned i = warp - 2 * most_late; i < others / 32; i += 2) {
                bits |= load(zeros + ((rounds * most_late + round * others / 32 + i) * 32 + lane) * 32 + bits);
            }
            unsigned done = cycles_now() + bits;
            if (warp == 2 * most_late && lane == 0) cycles[round].others = done - begin;
        }
        __syncthreads();
    }
    if (bits != 0) *out = bits;
}

static void held(const char* zeros, Asked asked, unsigned loads) {
    const unsigned rounds = 64, others = 192, shared = 200 << 10;
    const char* by[] = {"it asked for", "another had just asked for", "were here before"};
    auto from = reinterpret_cast<const float*>(zeros);
    size_t bytes = rounds * most_late * 128;
    float *host, *out;
    Late* on_gpu;
    CHECK(cudaHostAlloc(&host, bytes, cudaHostAllocMapped));
    memset(host, 0, bytes);
    CHECK(cudaMalloc(&on_gpu, rounds * sizeof *on_gpu));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaFuncSetAttribute(one_line_is_late, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    read_lines<<<1, 1024>>>(from, rounds * (most_late * 32 + others), out);
    one_line_is_late<<<1, 32 * (2 * most_late + 2), shared>>>(from, host, asked, loads, others, rounds, on_gpu, out);
    std::vector<Late> cycles(rounds);
    CHECK(cudaMemcpy(cycles.data(), on_gpu, rounds * sizeof *on_gpu, cudaMemcpyDeviceToHost));
    auto median = [&](unsigned Late::*of) {
        std::sort(cycles.begin(), cycles.end(), [=](const Late& a, const Late& b) { return a.*of < b.*of; });
        return cycles[rounds / 2].*of;
    };
    printf("held: %u loads of lines that %s take %u cycles, of one the same lines again %u; %u others are here after %u\n", loads, by[asked],
           median(&Late::load), median(&Late::again), others, median(&Late::others));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(on_gpu));
    CHECK(cudaFree(out));
}

// ---- Sets of the L1: a warp touches lines one after another, all lanes the same, in an L1 that was empty when the launch began, and says
// of each load whether the line was there. Each multiprocessor has a block, which touches lines of its own.

enum Touch { ONCE, TWICE, STORE };

// The number of a line, one of its sectors, and how it is touched: loaded once, or twice at a time, or stored to, in part.
static unsigned touch(unsigned number, unsigned sector, Touch how) { return number | sector << 21 | how << 24; }

const unsigned TOUCHES = 256;

__global__ void touches(char* lines, const unsigned* numbers, unsigned count, unsigned* was_here) {
    __shared__ unsigned number[TOUCHES], took[TOUCHES];
    for (unsigned i = threadIdx.x; i < count; i += 32) number[i] = __ldcg(numbers + size_t(blockIdx.x) * count + i);
    __syncwarp();
    bool found = false;
    for (unsigned i = 0; i < count; i++) {
        char* from = lines + size_t(128) * (number[i] % (1 << 21)) + 32 * (number[i] >> 21 & 3) + found;
        const unsigned how = number[i] >> 24;
        unsigned before, after, value, again = 0;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(before) :: "memory");
        if (how == STORE) {
            if (threadIdx.x == 0) asm volatile("st.global.u8 [%0], %1;" :: "l"(from), "r"(0) : "memory");
            __syncwarp();
            do asm volatile("mov.u32 %0, %%clock;" : "=r"(after) :: "memory");
            while (after - before < 3000);
        } else {
            asm volatile("ld.global.ca.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
            if (how == TWICE) asm volatile("ld.global.ca.u8 %0, [%1];" : "=r"(again) : "l"(from + 1) : "memory");
            found = __any_sync(~0u, value + again != 0);
            asm volatile("mov.u32 %0, %%clock;" : "=r"(after) :: "memory");
        }
        took[i] = after - before + found;
    }
    __syncwarp();
    for (unsigned i = threadIdx.x; i < count; i += 32) was_here[size_t(blockIdx.x) * count + i] = took[i] < 170;
}

static std::vector<unsigned> here(char* lines, const std::vector<unsigned>& numbers, unsigned count, int sms) {
    unsigned *from, *to;
    size_t bytes = numbers.size() * sizeof(unsigned);
    CHECK(cudaMalloc(&from, bytes));
    CHECK(cudaMalloc(&to, bytes));
    CHECK(cudaMemcpy(from, numbers.data(), bytes, cudaMemcpyHostToDevice));
    // The L1 has 224 KiB.
    CHECK(cudaFuncSetAttribute(touches, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (size_t first = 0; first < numbers.size(); first += size_t(sms) * count) {
        size_t blocks = std::min(size_t(sms), (numbers.size() - first) / count);
        touches<<<blocks, 32>>>(lines, from + first, count, to + first);
    }
    std::vector<unsigned> was_here(numbers.size());
    CHECK(cudaMemcpy(was_here.data(), to, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
    return was_here;
}

// Bits of a line's number of which each set has an even or an odd number, one bit of the set for each.
static const unsigned OF_A_SET[] = {0x1D24F601, 0x04610C02, 0x0F3F8804, 0x1E2DB408, 0x0F92AE10, 0x1AB96A20, 0x1691DA40, 0x12DFC080, 0x1F2AD900};

// A line that differs from that of number 0 in this bit, the ninth or higher, and in some of those below, and belongs to its set.
static unsigned same_set(unsigned bit) {
    unsigned number = 1u << bit;
    for (unsigned low = 0; low < 9; low++) number |= (OF_A_SET[low] >> bit & 1) << low;
    return number;
}

// Where the lowest 21 bits of a line's number are zero.
static char* aligned(char* lines) {
    const size_t to = size_t(1) << 28;
    return reinterpret_cast<char*>((reinterpret_cast<size_t>(lines) + to - 1) / to * to);
}

// Of lines that differ in one bit of their numbers above the eighth: whether the first is still there after three others of its set, after
// four, and after four of each set that differs in one bit from it.
static void sets(char* lines, int sms) {
    for (unsigned bit = 9; bit < 21; bit++) {
        const unsigned own = same_set(bit), one = same_set(bit < 11 ? 11 : 9), other = same_set(bit < 11 ? 12 : 10);
        const unsigned four[] = {own, own ^ one, own ^ other, own ^ one ^ other};
        std::vector<unsigned> numbers;
        auto add = [&](unsigned count, unsigned differs) {
            numbers.push_back(0);
            for (unsigned i = 0; i < 4; i++) numbers.push_back(i < count ? four[i] ^ differs : 0);
            numbers.push_back(0);
        };
        add(3, 0);
        add(4, 0);
        for (unsigned low = 0; low < 9; low++) add(4, 1u << low);
        auto was_here = here(aligned(lines), numbers, 6, sms);
        unsigned of_others = 0;
        for (unsigned low = 0; low < 9; low++) of_others += was_here[6 * (2 + low) + 5];
        printf("sets: lines 0 and %u: there after three such %u, after four %u, after four of 9 other sets %u\n", own, was_here[5],
               was_here[11], of_others);
    }
}

// A set of four lines, one touch after another: those that the last two touches found stay, and of the others the one goes that came or
// stopped being one of those longest ago. One of which a sector is read that was stored to in part, but is not here, loses its others.
struct Staying {
    struct Line {
        unsigned number, valid, stored;
    };
    std::vector<Line> stay, come;

    // Whether it is here, which it then is, with no sectors if it was not.
    Line& find(unsigned number) {
        for (auto* lines : {&stay, &come}) {
            for (size_t i = 0; i < lines->size(); i++) {
                if ((*lines)[i].number != number) continue;
                Line line = (*lines)[i];
                lines->erase(lines->begin() + i);
                // The same once more: no other stays.
                const size_t others = lines == &stay && i == 0 ? 0 : 1;
                while (stay.size() > others) {
                    come.insert(come.begin(), stay.back());
                    stay.pop_back();
                }
                stay.insert(stay.begin(), line);
                return stay[0];
            }
        }
        come.insert(come.begin(), {number, 0, 0});
        come.resize(std::min(come.size(), 4 - stay.size()));
        return come[0];
    }

    bool touch(unsigned touch) {
        Line& line = find(touch % (1 << 21));
        const unsigned sector = 1 << (touch >> 21 & 3);
        bool is_here = line.valid & sector;
        if (touch >> 24 == STORE) {
            line.stored |= is_here ? 0 : sector;
            return true;
        }
        if (!is_here && line.stored & sector) line.valid = line.stored = 0;
        line.valid |= sector;
        if (touch >> 24 == TWICE) find(touch % (1 << 21));
        return is_here;
    }
};

// How many loads of a set's lines, at random, find them as a set of four does that has the last ones touched, and as one does in which
// those stay that the last two touches found.
static void staying(char* lines, int sms) {
    std::mt19937 random(1);
    const char* kinds[] = {"loads", "loads of any sectors", "loads, some twice at a time", "loads and stores", "loads and stores of any sectors"};
    for (unsigned kind = 0; kind < 5; kind++) {
        for (unsigned of : {5, 8, 16}) {
            const unsigned sequences = 264, length = 240;
            std::vector<unsigned> numbers;
            for (unsigned i = 0; i < sequences * length; i++) {
                // Some more often than others.
                unsigned which = std::min(random() % of, random() % of), number = 0;
                for (unsigned bit = 0; bit < 4; bit++) number ^= which >> bit & 1 ? same_set(9 + bit) : 0;
                Touch how = kind == 2 && random() % 2 ? TWICE : kind >= 3 && random() % 3 == 0 ? STORE : ONCE;
                numbers.push_back(touch(number, kind == 1 || kind == 4 ? random() % 4 : 0, how));
            }
            auto was_here = here(aligned(lines), numbers, length, sms);
            unsigned loads = 0, hits = 0, as_last = 0, as_staying = 0, whole = 0;
            for (unsigned first = 0; first < numbers.size(); first += length) {
                std::vector<unsigned> last;
                Staying staying;
                unsigned wrong = 0;
                for (unsigned i = first; i < first + length; i++) {
                    unsigned line = numbers[i] % (1 << 21);
                    auto place = std::find(last.begin(), last.end(), line);
                    bool is_last = place != last.end(), is_here = staying.touch(numbers[i]);
                    if (is_last) last.erase(place);
                    last.insert(last.begin(), line);
                    last.resize(std::min<size_t>(last.size(), 4));
                    if (numbers[i] >> 24 == STORE) continue;
                    loads++;
                    hits += was_here[i];
                    as_last += is_last == was_here[i];
                    as_staying += is_here == was_here[i];
                    wrong += is_here != was_here[i];
                }
                whole += wrong == 0;
            }
            const double all = loads / 100.0;
            printf("staying: %s of %u lines of a set: %.1f %% find them; as the last four do %.1f %%, as if two stay %.2f %%, %u of %u sequences\n",
                   kinds[kind], of, hits / all, as_last / all, as_staying / all, whole, sequences);
        }
    }
}

// Loads of a warp, all in flight: so many lines of a set in one load, then the first of them again, or the last, after so many cycles.
__global__ void lost(const char* lines, const unsigned* numbers, unsigned count, unsigned again, unsigned after, unsigned* took) {
    const unsigned number = __ldcg(numbers + threadIdx.x % count);
    const char* second = lines + size_t(128) * __ldcg(numbers + again);
    unsigned begin, before, now, value, other;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(begin) : "r"(number) : "memory");
    asm volatile("ld.global.ca.u8 %0, [%1];" : "=r"(value) : "l"(lines + size_t(128) * number) : "memory");
    do asm volatile("mov.u32 %0, %%clock;" : "=r"(before) :: "memory");
    while (before - begin < after);
    asm volatile("ld.global.ca.u8 %0, [%1];" : "=r"(other) : "l"(second) : "memory");
    bool found = __any_sync(~0u, other != 0);
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
    found |= __any_sync(~0u, value != 0);
    *took = now - before + found;
}

static void losing(char* lines) {
    unsigned *numbers, *took;
    CHECK(cudaMallocManaged(&numbers, 8 * sizeof *numbers));
    CHECK(cudaMallocManaged(&took, sizeof *took));
    CHECK(cudaFuncSetAttribute(lost, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (unsigned i = 0; i < 8; i++) numbers[i] = (i & 1 ? same_set(9) : 0) ^ (i & 2 ? same_set(10) : 0) ^ (i & 4 ? same_set(11) : 0);
    for (unsigned count : {4, 5, 8}) {
        for (unsigned again : {0u, count - 1}) {
            printf("losing: %u lines of a set in one load, then number %u again, after so many cycles for as many:", count, again);
            for (unsigned after : {60, 100, 150, 200, 300, 500, 1000}) {
                unsigned least = ~0u;
                for (unsigned i = 0; i < 8; i++) {
                    lost<<<1, 32>>>(aligned(lines), numbers, count, again, after, took);
                    CHECK(cudaDeviceSynchronize());
                    least = std::min(least, *took);
                }
                printf(" %u %u%s", after, least, after == 1000 ? "\n" : ",");
            }
        }
    }
    CHECK(cudaFree(numbers));
    CHECK(cudaFree(took));
}

// A warp of each block reads so many lines in a row, then again a few of its own, and counts those that are there.
__global__ void once(const char* lines, unsigned count, unsigned* left) {
    bool found = false;
    unsigned hits = 0;
    auto read = [&](unsigned i) {
        unsigned before, after, value;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(before) :: "memory");
        asm volatile("ld.global.ca.u8 %0, [%1];" : "=r"(value) : "l"(lines + size_t(128) * i + found) : "memory");
        found = __any_sync(~0u, value != 0);
        asm volatile("mov.u32 %0, %%clock;" : "=r"(after) :: "memory");
        return after - before + found < 150;
    };
    if (threadIdx.x >= 32) return;
    for (unsigned i = 0; i < count; i++) read(i);
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) hits += read(i);
    if (threadIdx.x == 0) atomicAdd(left, hits);
}

static void left(const char* lines, int sms) {
    unsigned* there;
    CHECK(cudaMallocManaged(&there, sizeof *there));
    struct {
        int shared_percent;
        unsigned counts[6];
    } cases[] = {{0, {1856, 1920, 1952, 1984, 2048, 2304}}, {14, {1664, 1728, 1760, 1792, 1856, 2048}},
                 {58, {608, 672, 704, 736, 800, 1024}}, {100, {96, 160, 192, 224, 288, 512}}};
    for (auto& one : cases) {
        CHECK(cudaFuncSetAttribute(once, cudaFuncAttributePreferredSharedMemoryCarveout, one.shared_percent));
        printf("left: with %d %% shared, of", one.shared_percent);
        for (unsigned count : one.counts) {
            *there = 0;
            once<<<sms, 1024>>>(lines, count, there);
            CHECK(cudaDeviceSynchronize());
            printf(" %u lines in a row %u%s", count, *there, count == one.counts[5] ? "\n" : ",");
        }
    }
    CHECK(cudaFree(there));
}

// ---- A backlog of stores: a warp of each block loads one line after another, which the L1 has or the L2, or 32 that the L2 has, while others
// store to 32 rows of 64 floats each, a lane a row, as fast as they can. There is one block a multiprocessor.

enum Loads { OF_L1, OF_L2, OF_L2_32 };

__global__ void behind_stores(float* rows, unsigned rounds, const char* lines, Loads loads, unsigned count, unsigned* took) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, storing = blockDim.x / 32 - 1;
    bool found = false;
    for (unsigned i = 0; warp == 0 && i < count; i++) {
        const unsigned random = scramble((blockIdx.x * count + i) * 32 + (loads == OF_L2_32 ? lane : 0)) % (1 << 17);
        const char* from = lines + (loads == OF_L1 ? 0 : size_t(128) * random) + 4 * found;
        unsigned before, after, value;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(before) : "l"(from) : "memory");
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
        found = __any_sync(~0u, value != 0);
        asm volatile("mov.u32 %0, %%clock;" : "=r"(after) :: "memory");
        took[blockIdx.x * count + i] = after - before + found;
    }
    for (unsigned round = 0; warp > 0 && round < rounds; round++) {
        const size_t first = ((size_t(round) * gridDim.x + blockIdx.x) * storing + warp - 1) * 32;
        float* row = rows + (first + lane) * 64;
        for (unsigned x = 0; x < 64; x++) asm volatile("st.global.f32 [%0], %1;" :: "l"(row + x), "f"(0.f) : "memory");
    }
}

static void backlog(char* buffer, size_t bytes, int sms) {
    // The first 16 MiB are the loads', the rest the stores'.
    const size_t of_loads = 16 << 20;
    const unsigned count = 256;
    unsigned* took;
    CHECK(cudaMallocManaged(&took, sizeof *took * sms * count));
    CHECK(cudaFuncSetAttribute(behind_stores, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (unsigned storing : {0, 1, 3, 7, 15, 31}) {
        for (Loads loads : {OF_L1, OF_L2, OF_L2_32}) {
            const char* of[] = {"a line of the L1", "a line of the L2", "32 lines of the L2"};
            // As long as the loads take, and longer.
            const unsigned rounds = storing ? std::min(size_t(840 / storing), (bytes - of_loads) / (size_t(sms) * storing * 32 * 256)) : 0;
            for (int time = 0; time < 2; time++) {
                behind_stores<<<sms, 32 * (storing + 1)>>>((float*)(buffer + of_loads), rounds, buffer, loads, count, took);
            }
            CHECK(cudaDeviceSynchronize());
            // Those of the middle, during which all warps are at it.
            std::vector<unsigned> cycles;
            for (int sm = 0; sm < sms; sm++) cycles.insert(cycles.end(), took + sm * count + 8, took + sm * count + 108);
            std::sort(cycles.begin(), cycles.end());
            printf("backlog: while %2u warps store, a load of %s takes", storing, of[loads]);
            for (int percent : {10, 25, 50, 75, 90}) printf(" %u", cycles[cycles.size() * percent / 100]);
            printf(" cycles at 10, 25, 50, 75 and 90 %%\n");
        }
    }
    CHECK(cudaFree(took));
}

// ---- Who goes on while all wait for room: how often warps of eight blocks of a multiprocessor, eight warps each, do the same in a while, by
// the age of their block. Rows are of 64 floats, a lane a row; lines of the L1 are 32 that all warps load.

enum Does { STORES_ROWS, STORES_A_LINE, LOADS_FOUR, LOADS_AND_STORES, COPIES_ROWS };

__global__ void __launch_bounds__(256) by_age(float* rows, const float* lines, Does does, unsigned cycles, unsigned* times, unsigned* began, unsigned* sms) {
    const unsigned lane = threadIdx.x % 32, thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned begin, now, sm, n = 0;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(begin) :: "memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) sms[blockIdx.x] = sm, began[blockIdx.x] = begin;
    bool found = false;
    do {
        const size_t row = n / 64 % 4 * size_t(gridDim.x * blockDim.x) + thread;
        float *to = rows + row * 64 + n % 64, value = 0;
        if (does == LOADS_FOUR) {
            float values[4];
            for (int i = 0; i < 4; i++) {
                asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(values[i]) : "l"(lines + 32 * lane + i + found) : "memory");
            }
            found = __any_sync(~0u, values[0] + values[1] + values[2] + values[3] != 0);
        } else {
            const float* from = does == COPIES_ROWS ? lines + row * 64 + n % 64 : lines + 32 * lane;
            if (does >= LOADS_AND_STORES) asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
            if (does == STORES_A_LINE) to = rows + thread;
            asm volatile("st.global.f32 [%0], %1;" :: "l"(to), "f"(value) : "memory");
        }
        n++;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
    } while (now - begin < cycles);
    if (lane == 0) times[thread / 32] = n + found;
}

static void ages(char* buffer, size_t bytes, int sms) {
    const unsigned blocks = 8 * sms, warps = 8;
    unsigned *times, *began, *on;
    CHECK(cudaMallocManaged(&times, sizeof *times * blocks * warps));
    CHECK(cudaMallocManaged(&began, sizeof *began * blocks));
    CHECK(cudaMallocManaged(&on, sizeof *on * blocks));
    CHECK(cudaFuncSetAttribute(by_age, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (Does does : {STORES_ROWS, STORES_A_LINE, LOADS_FOUR, LOADS_AND_STORES, COPIES_ROWS}) {
        const char* said[] = {"stores to rows", "stores to a line", "loads four times 32 lines of the L1", "loads 32 lines of the L1 and stores to rows", "copies rows"};
        for (int time = 0; time < 2; time++) {
            by_age<<<blocks, 32 * warps>>>((float*)(buffer + bytes / 2), (float*)buffer, does, 1500000, times, began, on);
            CHECK(cudaDeviceSynchronize());
        }
        double mean[8] = {};
        unsigned least[8], most[8] = {}, used = 0;
        std::fill(least, least + 8, ~0u);
        for (int sm = 0; sm < sms; sm++) {
            std::vector<unsigned> of;
            for (unsigned block = 0; block < blocks; block++) {
                if (on[block] == unsigned(sm)) of.push_back(block);
            }
            if (of.size() != 8) continue;
            used++;
            std::sort(of.begin(), of.end(), [&](unsigned a, unsigned b) { return int(began[a] - began[b]) < 0; });
            for (unsigned i = 0; i < 8 * warps; i++) {
                const unsigned n = times[of[i / warps] * warps + i % warps];
                mean[i / warps] += n / double(warps);
                least[i / warps] = std::min(least[i / warps], n);
                most[i / warps] = std::max(most[i / warps], n);
            }
        }
        printf("ages: a warp %s so often, on %u multiprocessors, the oldest block first:", said[does], used);
        for (int i = 0; i < 8; i++) printf(" %.1f (%u to %u)%s", mean[i] / used, least[i], most[i], i < 7 ? "," : "\n");
    }
    CHECK(cudaFree(times));
    CHECK(cudaFree(began));
    CHECK(cudaFree(on));
}

// ---- Whether warps that stay on lines stay abreast: each lane of eight blocks a multiprocessor copies a row of its own, one float at a
// time past the L1 so that it goes back to the same two lines 32 times, or four a round through the L1, as `embedding_thread_a_row` does.
// When warps are half-way and done, how far those of a block are apart, and by age.

struct Reached {
    unsigned long long begin, half, end;
    unsigned sm;
};

template <unsigned a_round>
__global__ void __launch_bounds__(256) copy_rows(const float* from, const unsigned* rows, float* to, unsigned width, Reached* reached) {
    const size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    auto now = [] {
        unsigned long long at;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(at) :: "memory");
        return at;
    };
    Reached mine;
    mine.begin = now();
    asm volatile("mov.u32 %0, %%smid;" : "=r"(mine.sm));
    const float* row = from + size_t(rows[thread]) * width;
    auto copy = [&](unsigned first, unsigned last) {
#pragma unroll 1
        for (unsigned round = first; round < last; round += a_round) {
#pragma unroll
            for (unsigned i = round; i < round + a_round; i++) {
                float value;
                if (a_round == 1) {
                    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(row + i) : "memory");
                } else {
                    asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(value) : "l"(row + i) : "memory");
                }
                asm volatile("st.global.f32 [%0], %1;" :: "l"(to + thread * width + i), "f"(value) : "memory");
            }
        }
    };
    copy(0, width / 2);
    mine.half = now();
    copy(width / 2, width);
    mine.end = now();
    if (threadIdx.x % 32 == 0) reached[thread / 32] = mine;
}

template <unsigned a_round>
static void abreast(char* buffer, size_t bytes, int sms) {
    const unsigned blocks = 8 * sms, warps = 8, threads = 32 * warps * blocks;
    unsigned* rows;
    Reached* reached;
    CHECK(cudaMallocManaged(&rows, sizeof *rows * threads));
    CHECK(cudaMallocManaged(&reached, sizeof *reached * blocks * warps));
    CHECK(cudaFuncSetAttribute(copy_rows<a_round>, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (unsigned width : {64, 128}) {
        for (bool random : {true, false}) {
            const unsigned of = bytes / 2 / 4 / width;
            for (unsigned i = 0; i < threads; i++) rows[i] = random ? scramble(i) % of : i * size_t(of) / threads;
            for (int time = 0; time < 2; time++) {
                copy_rows<a_round><<<blocks, 32 * warps>>>((const float*)buffer, rows, (float*)(buffer + bytes / 2), width, reached);
                CHECK(cudaDeviceSynchronize());
            }
            auto first = reached[0].begin;
            for (unsigned warp = 0; warp < blocks * warps; warp++) first = std::min(first, reached[warp].begin);
            std::vector<double> half, end, within;
            std::vector<std::vector<unsigned>> of_sm(sms);
            for (unsigned block = 0; block < blocks; block++) {
                of_sm[reached[block * warps].sm].push_back(block);
                double least = 1e30, most = 0;
                for (unsigned warp = block * warps; warp < (block + 1) * warps; warp++) {
                    const double took = (reached[warp].end - first) / 1e3;
                    half.push_back((reached[warp].half - first) / 1e3);
                    end.push_back(took);
                    least = std::min(least, took), most = std::max(most, took);
                }
                within.push_back(100 * (most / least - 1));
            }
            printf("abreast: rows of %3u floats %s%s:", width, random ? "at random" : "in order", a_round == 1 ? "" : ", four a round");
            for (auto* of : {&half, &end}) {
                std::sort(of->begin(), of->end());
                printf(" %s", of == &half ? "half-way" : "done");
                for (int percent : {0, 10, 25, 50, 75, 90, 100}) printf(" %.0f", (*of)[(of->size() - 1) * percent / 100]);
                printf(",");
            }
            std::sort(within.begin(), within.end());
            printf(" us at 0, 10, 25, 50, 75, 90 and 100 %%; the last warp of a block %.1f %% later than the first, of a tenth %.1f %%;",
                   within[within.size() / 2], within[within.size() * 9 / 10]);
            // Those of a multiprocessor are as old as their numbers say: in one wave blocks are launched in order.
            double half_by_age[8] = {}, end_by_age[8] = {};
            for (auto& of : of_sm) {
                for (size_t age = 0; age < of.size() && age < 8; age++) {
                    for (unsigned warp = of[age] * warps; warp < (of[age] + 1) * warps; warp++) {
                        half_by_age[age] += (reached[warp].half - first) / 1e3 / warps / sms;
                        end_by_age[age] += (reached[warp].end - first) / 1e3 / warps / sms;
                    }
                }
            }
            printf(" in the mean of a multiprocessor's blocks, the oldest first, half-way");
            for (double at : half_by_age) printf(" %.0f", at);
            printf(" and done");
            for (double at : end_by_age) printf(" %.0f", at);
            printf(" us\n");
        }
    }
    CHECK(cudaFree(rows));
    CHECK(cudaFree(reached));
}

// ---- Stores that leave a warp at once: one warp of each of so many parts of a multiprocessor stores to 32 lines of its own, one store
// after another. Says how many cycles pass from each to the next.

__global__ void go_out(char* lines, unsigned parts, unsigned* cycles) {
    constexpr unsigned STORES = 48;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= parts) return;
    unsigned when[STORES + 1];
    char* at = lines + (size_t(warp) << 20) + 128 * lane;
#pragma unroll
    for (unsigned i = 0; i <= STORES; i++) {
        asm volatile("mov.u32 %0, %%clock;" : "=r"(when[i]) :: "memory");
        if (i < STORES) asm volatile("st.global.u32 [%0], %1;" :: "l"(at + 4096 * i), "r"(0) : "memory");
    }
    for (unsigned i = 0; i < STORES && lane == 0; i++) cycles[warp * STORES + i] = when[i + 1] - when[i];
}

static void fills(char* buffer) {
    unsigned* cycles;
    CHECK(cudaMallocManaged(&cycles, sizeof *cycles * 4 * 48));
    for (unsigned parts : {1, 2, 4}) {
        for (int time = 0; time < 2; time++) go_out<<<1, 128>>>(buffer, parts, cycles);
        CHECK(cudaDeviceSynchronize());
        printf("fills: of %u warps that store, the first takes", parts);
        for (int i = 0; i < 48; i++) printf(" %u", cycles[i]);
        printf(" cycles for each store\n");
    }
    CHECK(cudaFree(cycles));
}

// ---- Reads on their way: warps of one multiprocessor, of two that are neighbours, or of all, load 32 lines anywhere, one load after
// another, which memory has or the L2. Says how many lines each reads in a cycle.

__global__ void __launch_bounds__(1024) reads_at_once(const char* from, size_t lines, unsigned run, unsigned active, unsigned loads, unsigned* cycles) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= active) return;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool found = false;
    __syncthreads();
    const unsigned begin = clock();
    for (unsigned i = 0; i < loads; i++) {
        const size_t drawn = scramble(((((size_t(run) << 10) + sm) * 32 + warp) * loads + i) * 32 + lane) & (lines - 1);
        unsigned value;
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(from + 128 * drawn + 4 * found) : "memory");
        found = __any_sync(~0u, value != 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) cycles[sm] = clock() - begin + found;
}

static void on_their_way(const char* buffer, size_t bytes, int sms) {
    const unsigned loads = 64;
    unsigned *cycles, run = 0;
    CHECK(cudaMallocManaged(&cycles, sizeof *cycles * sms));
    for (bool memory : {false, true}) {
        for (int active : {1, 2, sms}) {
            printf("on their way: each of %d multiprocessors reads of the %s, a cycle,", active, memory ? "memory" : "L2");
            for (unsigned warps : {1, 4, 8, 16, 24, 32}) {
                const size_t lines = memory ? bytes / 128 : 1 << 16;
                // Nearly all of the L2 has the lines after two launches; of memory it has few.
                const int times = memory ? 1 : 3;
                for (int time = 0; time < times; time++) {
                    reads_at_once<<<sms, 32 * warps>>>(buffer, lines, ++run, time + 1 < times ? sms : active, loads, cycles);
                }
                CHECK(cudaDeviceSynchronize());
                double sum = 0;
                for (int sm = 0; sm < active; sm++) sum += cycles[sm];
                printf(" %.3f%s", 32.0 * warps * loads * active / sum, warps == 32 ? " lines with 1, 4, 8, 16, 24 and 32 warps\n" : ",");
            }
        }
    }
    CHECK(cudaFree(cycles));
}

// ---- Accesses anywhere in so much memory: what one costs that has no neighbours. A load of a pair is of 4 bytes: memory sends the pair
// of sectors that they lie in. A part is 4 bytes of a sector.

enum Access { LOAD_PAIRS, LOAD_LINES, STORE_PARTS, STORE_SECTORS, STORE_PAIRS, STORE_LINES };

__global__ void __launch_bounds__(1024) random_accesses(char* buffer, size_t lines, Access access, unsigned vectors, unsigned rounds, unsigned run) {
    const unsigned lane = threadIdx.x % 32;
    const size_t warp = blockIdx.x * 32 + threadIdx.x / 32, warps = gridDim.x * 32;
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        const size_t drawn = scramble((size_t(run) << 40) + (round * warps + warp) * 32 + lane / vectors);
        // Of the bytes of a line, some that begin at a multiple of what is accessed.
        const unsigned of_access = vectors == 1 ? 32 : 16 * vectors, place = (drawn >> 40) % (128 / of_access) * of_access;
        char* at = buffer + 128 * (drawn & (lines - 1)) + place;
        uint4* vector = (uint4*)at + lane % vectors;
        if (access == LOAD_PAIRS) {
            sum ^= __ldcg((const unsigned*)at);
        } else if (access == LOAD_LINES) {
            uint4 value = __ldcg(vector);
            sum ^= value.x ^ value.y ^ value.z ^ value.w;
        } else if (access == STORE_PARTS) {
            __stcg((unsigned*)at, 0u);
        } else {
            __stcg(vector, make_uint4(0, 0, 0, 0));
        }
    }
    if (sum != 0) *(unsigned*)buffer = 0;
}

static void anywhere(int sms) {
    const size_t bytes = size_t(8) << 30;
    char* buffer;
    CHECK(cudaMalloc(&buffer, bytes));
    CHECK(cudaMemset(buffer, 0, bytes));
    const char* what[] = {"loads of pairs", "loads of lines", "stores to parts", "stores to sectors", "stores to pairs", "stores to lines"};
    const unsigned vectors[] = {1, 8, 1, 2, 4, 8};
    unsigned run = 0;
    for (Access access : {LOAD_PAIRS, LOAD_LINES, STORE_PARTS, STORE_SECTORS, STORE_PAIRS, STORE_LINES}) {
        printf("anywhere: %s:", what[access]);
        for (size_t mebibytes : {256, 1024, 8192}) {
            const unsigned rounds = 150 * vectors[access];
            float ms = median_ms([&] { random_accesses<<<sms, 1024>>>(buffer, mebibytes << 13, access, vectors[access], rounds, ++run); });
            const double accesses = sms * 32.0 * rounds * 32 / vectors[access];
            printf(" %.2f%s", accesses / ms / 1e6, mebibytes == 8192 ? " a nanosecond in 256, 1024 and 8192 MiB\n" : ",");
        }
    }
    CHECK(cudaFree(buffer));
}

// ---- Successors: all blocks that multiprocessors have room for end at a time, and others take their place, several times. How many cycles
// after the end of those of its multiprocessor a block begins, by its number among them, in sixteenths: the median of each; and within how
// many of one another sixteen in a row begin.

__global__ void end_at_a_time(unsigned* multiprocessors, unsigned* begun, unsigned* ended) {
    unsigned begin = cycles_now(), multiprocessor;
    unsigned long long before, now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before)::"memory");
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    while (now >> 13 == before >> 13);
    unsigned end = cycles_now();
    if (threadIdx.x == 0) multiprocessors[blockIdx.x] = multiprocessor, begun[blockIdx.x] = begin, ended[blockIdx.x] = end;
}

static unsigned median(std::vector<unsigned> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

static void successors(int sms, unsigned threads, unsigned each) {
    const unsigned times = 6, room = each * sms, blocks = times * room;
    unsigned* on_gpu;
    CHECK(cudaMalloc(&on_gpu, 3 * blocks * sizeof *on_gpu));
    std::vector<unsigned> host(3 * blocks), after[16], apart;
    for (int launch = 0; launch < 3; launch++) {
        end_at_a_time<<<blocks, threads>>>(on_gpu, on_gpu + blocks, on_gpu + 2 * blocks);
        CHECK(cudaMemcpy(host.data(), on_gpu, host.size() * sizeof *on_gpu, cudaMemcpyDeviceToHost));
        for (unsigned time = 1; launch > 0 && time < times; time++) {
            std::vector<std::vector<unsigned>> ends(sms);
            for (unsigned block = (time - 1) * room; block < time * room; block++) ends[host[block]].push_back(host[2 * blocks + block]);
            std::vector<unsigned> began;
            for (unsigned block = time * room; block < (time + 1) * room; block++) {
                // A multiprocessor's own clock.
                if (ends[host[block]].empty()) continue;
                began.push_back(host[blocks + block] - median(ends[host[block]]));
                after[(block - time * room) * 16 / room].push_back(began.back());
            }
            for (size_t i = 0; i + 16 <= began.size(); i += 16) {
                auto [least, most] = std::minmax_element(began.begin() + i, began.begin() + i + 16);
                apart.push_back(*most - *least);
            }
        }
    }
    printf("successors: %u blocks of %u threads begin after so many cycles:", room, threads);
    for (auto cycles : after) printf(" %u", median(cycles));
    printf(", sixteen in a row within %u\n", median(apart));
    CHECK(cudaFree(on_gpu));
}

// ---- Companions: each lane copies a row of 128 floats, one by one, and the lanes of two warps the same one, as `embedding_thread_a_row`
// does with lookups in order. How far apart in cycles two such warps are once they have copied so many, of the blocks that begin first
// and of others: the quartiles.

__global__ void companions_copy(const float* table, float* out, unsigned* done) {
    size_t i = blockIdx.x * 256 + threadIdx.x;
    const float* from = table + i / 64 * 128;
    float* to = out + i * 128;
    for (unsigned part = 0; part < 8; part++) {
#pragma unroll
        for (unsigned x = 0; x < 16; x++) to[16 * part + x] = from[16 * part + x];
        unsigned now = cycles_now();
        if (threadIdx.x % 32 == 0) done[i / 32 * 8 + part] = now;
    }
}

static void companions(const char* table, char* out, int sms) {
    const unsigned blocks = 4096, warps = 8 * blocks;
    unsigned* on_gpu;
    CHECK(cudaMalloc(&on_gpu, 8 * warps * sizeof *on_gpu));
    std::vector<unsigned> host(8 * warps), apart[2][8];
    for (int launch = 0; launch < 3; launch++) {
        companions_copy<<<blocks, 256>>>(reinterpret_cast<const float*>(table), reinterpret_cast<float*>(out), on_gpu);
        CHECK(cudaMemcpy(host.data(), on_gpu, host.size() * sizeof *on_gpu, cudaMemcpyDeviceToHost));
        for (unsigned i = 0; i < 4 * blocks; i++) {
            for (unsigned part = 0; launch > 0 && part < 8; part++) {
                int lag = host[16 * i + part] - host[16 * i + 8 + part];
                apart[i / 4 >= unsigned(sms)][part].push_back(std::abs(lag));
            }
        }
    }
    for (unsigned others : {0, 1}) {
        for (unsigned part : {0, 3, 7}) {
            std::vector<unsigned>& all = apart[others][part];
            std::sort(all.begin(), all.end());
            printf("companions: %s, %u floats: %u, %u, %u cycles apart\n", others ? "others" : "the first blocks", 16 * part + 16, all[all.size() / 4], all[all.size() / 2], all[all.size() * 3 / 4]);
        }
    }
    CHECK(cudaFree(on_gpu));
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
    rounds(sms);
    for (size_t kib : {1 << 20, 8 << 10, 128}) shares<true>(buffer, kib, sms);
    shares<false>(buffer, 1 << 20, sms);
    for (bool from_memory : {false, true}) ways(buffer, bytes, sms, from_memory);
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
    stay(buffer);
    together(buffer, sms);
    partitions(buffer, bytes, sms);
    write_backs(buffer, sms);
    for (size_t every : {1, 2, 4, 8, 16, 32, 64, 256}) pages<1>(buffer, bytes, bytes / 128, every);
    for (size_t every : {1, 2, 4, 8, 16, 32, 64, 256}) pages<2>(buffer, bytes, bytes / 128, every);
    for (size_t every : {4, 32, 256}) {
        for (size_t window = 1 << 15; window < bytes / 128; window *= 2) pages<1>(buffer, bytes, window, every);
    }
    for (size_t window = 1 << 15; window < bytes / 128; window *= 2) pages<2>(buffer, bytes, window, 256);
    order(buffer);
    queues<1, true>(buffer, sms);
    queues<2, true>(buffer, sms);
    queues<4, true>(buffer, sms);
    queues<1, false>(buffer, sms);
    queues<2, false>(buffer, sms);
    queues<4, false>(buffer, sms);
    for (unsigned lines : {1, 4, 8, 16, 32}) turns(buffer, lines, 4, 32);
    turns(buffer, 32, 4, 8);
    for (bool same : {false, true}) lookups(buffer, same);
    for (unsigned warps : {8, 16, 32}) {
        groups<1>(buffer, sms, warps);
        groups<2>(buffer, sms, warps);
        groups<4>(buffer, sms, warps);
    }
    overtaking(buffer, bytes, sms);
    for (unsigned lines : {1, 2, 4, 8, 16, 32}) lateness(buffer, bytes, lines);
    for (Place place : {AT_RANDOM, IN_ONE_ROW, IN_ROWS}) {
        for (unsigned warps : {8, 16, 32, 64}) waits(buffer, bytes, sms, warps, place);
    }
    pending(buffer, bytes, sms, 0, 1, 32, {64, 96, 112, 120, 124, 128, 132, 136, 144, 160});
    pending(buffer, bytes, sms, 3175, 33, 8, {64, 96, 112, 120, 124, 128, 132, 136, 144, 160});
    pending(buffer, bytes, sms, 0, 1, 16, {128, 192, 240, 248, 256, 264, 280, 320});
    for (unsigned hitters : {8, 16, 24}) {
        for (unsigned lines : {1, 4, 8, 16, 32}) returns<1>(buffer, hitters, lines);
        for (unsigned lines : {1, 4, 8, 16, 32}) returns<4>(buffer, hitters, lines);
    }
    streams<1>(buffer);
    streams<2>(buffer);
    streams<4>(buffer);
    for (unsigned warps : {0, 3, 6, 12, 18}) arrivals(buffer, warps);
    for (unsigned warps : {2, 3, 4, 8}) leaders(buffer, warps);
    for (Asked asked : {BY_ITSELF, BY_ANOTHER, BEFORE}) {
        for (unsigned loads : {1, 4, 6}) held(buffer, asked, loads);
    }
    beginnings(buffer, bytes, sms);
    flushes(buffer, (float*)buffer);
    conflicts(buffer);
    barriers(sms);
    sets(buffer, sms);
    staying(buffer, sms);
    losing(buffer);
    left(buffer, sms);
    backlog(buffer, bytes, sms);
    ages(buffer, bytes, sms);
    abreast<1>(buffer, bytes, sms);
    abreast<4>(buffer, bytes, sms);
    fills(buffer);
    on_their_way(buffer, bytes, sms);
    successors(sms, 256, 8);
    successors(sms, 32, 32);
    companions(buffer, buffer + bytes / 2, sms);
    anywhere(sms);
}
