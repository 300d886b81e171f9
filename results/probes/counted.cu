// Loads and stores for Nsight Compute to count, of what no description of a chip says and `predict` needs: how many lines can be on their way
// to a multiprocessor, how long lines stay in its L1, how often it reads lines that several of its warps load, which slices of the L2
// and channels of the memory lines belong to, which lines stay in the L2, which multiprocessors' reads are one to it, which banks of
// the L1's tags lines belong to, how often loads pass these that come together, what is read for lines that had to go while they were
// on their way, what is read and written back of lines that are stored to again and again, all multiprocessors in step or not, and how
// often a line goes that warps load from between stores. Nothing is timed.
//
//     nvcc -O3 -arch=native -o counted counted.cu, and ncu as in ../README.md

#include <cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

__device__ unsigned long long scramble(unsigned long long z) {
    z = (z + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93;
    return z ^ z >> 29;
}

// ---- Lines on their way: each lane loads from a line at random, and only then from the next. Where more lines would be on their
// way than the L1 has room for, loads pass its tags more often, since some of their lines have to wait.

__global__ void on_their_way(const float* zeros, unsigned lines, unsigned rounds, float* to) {
    unsigned long long thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        size_t line = scramble(thread << 16 | round) % lines;
        sum += zeros[32 * line + (sum != 0)];
    }
    if (sum != 0) *to = sum;
}

static void places(float* zeros, unsigned lines, int sms) {
    struct {
        int shared_percent, warps[12];
    } cases[] = {{0, {8, 16, 32, 40, 48, 52, 54, 56, 58, 60, 62, 64}},
                 {50, {4, 8, 16, 20, 22, 24, 26, 28, 30, 32, 36, 64}},
                 {100, {2, 4, 6, 8, 10, 12, 16, 24, 32, 40, 48, 64}}};
    for (auto& launches : cases) {
        CHECK(cudaFuncSetAttribute(on_their_way, cudaFuncAttributePreferredSharedMemoryCarveout, launches.shared_percent));
        // Two blocks a multiprocessor, of half of the warps each.
        for (int warps : launches.warps) on_their_way<<<2 * sms, 16 * warps>>>(zeros, lines, 256, zeros);
    }
}

// ---- Lines that stay in an L1: a warp loads 32 lines, so many bytes apart and so many times, then once more the 32 that it loaded so
// many rounds before, and goes on to the next 32. What it reads from the L2 beyond all lines once was gone.

__global__ void retention(const char* zeros, unsigned rounds, size_t apart, unsigned times, unsigned before, int* to) {
    int sum = 0;
    auto load = [&](unsigned round) { sum += *reinterpret_cast<const int*>(zeros + (round * 32 + threadIdx.x) * apart + (sum != 0)); };
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned time = 0; time < times; time++) load(round);
        if (round >= before) load(round - before);
    }
    if (sum != 0) *to = sum;
}

static void stay(char* zeros) {
    auto to = reinterpret_cast<int*>(zeros);
    for (size_t apart : {128, 65536, 16896}) {
        for (unsigned times : {1, 2, 8}) {
            for (unsigned before : {4, 8, 12, 16, 28, 32, 48}) retention<<<1, 32>>>(zeros, 256, apart, times, before, to);
        }
    }
}

// ---- Shared lines: so many warps in a row load the same 32 lines, and then the next, so many loads of each in flight. What they read
// from the L2 beyond all lines once a group was gone when the last of them came. Lines are at random and in the L2, one block a
// multiprocessor; or in a row and in memory, so many blocks of eight warps.

template <int IN_FLIGHT> __device__ float sum_of_lines(const float* zeros, unsigned group, unsigned loads, bool in_a_row) {
    unsigned lane = threadIdx.x % 32, of_group = (blockIdx.x * blockDim.x + threadIdx.x) / 32 / group;
    float sum = 0;
    for (unsigned i = 0; i < loads; i += IN_FLIGHT) {
        float loaded[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            unsigned number = (of_group * loads + i + k) * 32 + lane;
            // At random they are 2^17 lines, 16 MiB.
            size_t line = in_a_row ? number : number * 0x9E3779B1 >> 15;
            loaded[k] = zeros[32 * line + (sum != 0)];
        }
#pragma unroll
        for (float value : loaded) sum += value;
    }
    return sum;
}

__global__ void shared_lines(const float* zeros, int in_flight, unsigned group, unsigned loads, bool in_a_row, float* to) {
    float sum = 0;
    if (in_flight == 1) sum = sum_of_lines<1>(zeros, group, loads, in_a_row);
    if (in_flight == 2) sum = sum_of_lines<2>(zeros, group, loads, in_a_row);
    if (in_flight == 4) sum = sum_of_lines<4>(zeros, group, loads, in_a_row);
    if (sum != 0) *to = sum;
}

static void groups(float* zeros, int sms) {
    const unsigned loads = 512;
    struct {
        int in_flight;
        unsigned warps, group;
    } cases[] = {{1, 32, 8}, {1, 32, 32}, {4, 8, 8}, {4, 16, 8}, {4, 32, 8}, {4, 32, 32}, {2, 32, 8}};
    for (int shared_percent : {0, 50, 100}) {
        CHECK(cudaFuncSetAttribute(shared_lines, cudaFuncAttributePreferredSharedMemoryCarveout, shared_percent));
        for (auto& launch : cases) {
            shared_lines<<<sms, 32 * launch.warps>>>(zeros, launch.in_flight, launch.group, loads, false, zeros);
        }
    }
    CHECK(cudaFuncSetAttribute(shared_lines, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (int in_flight : {4, 2, 1}) {
        for (unsigned blocks : {2, 3, 4, 5, 6, 8}) shared_lines<<<blocks * sms, 256>>>(zeros, in_flight, 8, 128, true, zeros);
    }
}

// ---- Slices and channels: sectors read again and again past the L1 by one block, which goes to one partition of the L2; then some
// once by all multiprocessors.

__global__ void sectors(const char* zeros, unsigned count, size_t stride, int rounds, int* to) {
    int sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            sum += __ldcg(reinterpret_cast<const int*>(zeros + i * stride));
        }
    }
    if (sum != 0) *to = sum;
}

static void slices(char* zeros, int sms) {
    auto to = reinterpret_cast<int*>(zeros);
    for (unsigned count : {4, 8, 16, 32, 64, 128, 512, 2048, 8192, 65536}) sectors<<<1, 256>>>(zeros, count, 32, 1 + 65536 / count, to);
    for (size_t stride = 128; stride <= 1 << 16; stride *= 2) sectors<<<1, 256>>>(zeros, 4096, stride, 16, to);
    sectors<<<sms, 256>>>(zeros, 1 << 21, 128, 1, to);
}

// ---- Circles: so many lines are read in order past the L1, 16 times: by each multiprocessor a part of its own, or each line by any one.

__global__ void in_a_circle(const float* zeros, unsigned lines, bool own, float* to) {
    unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32, part = lines / gridDim.x;
    float sum = 0;
    for (unsigned round = 0; round < 16; round++) {
        if (own) {
            for (unsigned i = warp; i < part; i += warps) sum += __ldcg(zeros + 32 * (size_t(blockIdx.x) * part + i) + lane);
        } else {
            for (unsigned i = blockIdx.x * warps + warp; i < lines; i += gridDim.x * warps) {
                sum += __ldcg(zeros + 32 * size_t((i + 12345 * round) % lines) + lane);
            }
        }
    }
    if (sum != 0) *to = sum;
}

static void circles(float* zeros, int sms) {
    for (bool own : {true, false}) {
        for (unsigned mebibytes : {24, 32, 40, 44, 48, 52, 56, 60, 64, 80}) in_a_circle<<<sms, 1024>>>(zeros, mebibytes << 13, own, zeros);
    }
}

// ---- Neighbours: some multiprocessors read the same lines at the same time, but for the last, which is so many cycles later.

struct Readers {
    unsigned long long among[4];
    unsigned count, last, later;
};

// The last to arrive says when all begin, by the GPU's clock.
__device__ void begin_together(unsigned count, unsigned* arrived, unsigned long long* when) {
    unsigned long long now;
    if (atomicAdd(arrived, 1) == count - 1) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        atomicExch(when, now + 20000);
    }
    unsigned long long begin;
    while ((begin = atomicAdd(when, 0ull)) == 0) __nanosleep(500);
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now < begin);
}

__global__ void neighbours(const float4* from, Readers readers, unsigned rounds, unsigned* arrived, unsigned long long* when, float* to) {
    // So much of it that a multiprocessor has room for one block.
    extern __shared__ float room[];
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    if ((readers.among[number / 64] >> number % 64 & 1) == 0) return;
    if (threadIdx.x == 0) begin_together(readers.count, arrived, when);
    __syncthreads();
    long long next = clock64() + 2000 + (number == readers.last ? readers.later : 0);
    float sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        while (clock64() < next) {}
        float4 value = __ldg(from + round * blockDim.x + threadIdx.x);
        sum += value.x + value.y + value.z + value.w;
        __syncthreads();
        next += 6000;
    }
    if (sum != 0) *to = sum + room[0];
}

static void neighbours_of(const char* zeros, int sms) {
    const unsigned rounds = 64, threads = 256, room = 160 << 10;
    unsigned* arrived;
    unsigned long long* when;
    CHECK(cudaMalloc(&arrived, sizeof *arrived));
    CHECK(cudaMalloc(&when, sizeof *when));
    CHECK(cudaFuncSetAttribute(neighbours, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    size_t begun = 0;
    auto read = [&](std::vector<unsigned> among, unsigned later, bool has_l2) {
        Readers readers = {{}, unsigned(among.size()), among.back(), later};
        for (unsigned number : among) readers.among[number / 64] |= 1ull << number % 64;
        CHECK(cudaMemset(arrived, 0, sizeof *arrived));
        CHECK(cudaMemset(when, 0, sizeof *when));
        auto lines = reinterpret_cast<const float4*>(zeros);
        // Others each time, or always the first, which the L2 has by now.
        if (!has_l2) lines += (begun += rounds * threads);
        neighbours<<<sms, threads, room>>>(lines, readers, rounds, arrived, when, const_cast<float*>(&lines->x));
        CHECK(cudaDeviceSynchronize());
        printf("neighbours:");
        for (unsigned number : among) printf(" %u", number);
        printf(", the last %u cycles later, lines of %s:\n", later, has_l2 ? "the L2" : "memory");
    };
    for (unsigned other = 1; other < unsigned(sms); other++) read({0, other}, 0, false);
    // Those that the launches before show to be neighbours of the first, on GPUs with 132.
    const std::vector<unsigned> group = {0, 1, 16, 17, 32, 33, 48, 49};
    for (size_t count = 1; count <= group.size(); count++) read({group.begin(), group.begin() + count}, 0, false);
    for (unsigned later = 0; later <= 1500; later += 100) read({0, 1}, later, false);
    read({0, 1}, 0, true);
    for (unsigned later = 0; later <= 160; later += 10) read({0, 1}, later, true);
}

// ---- Banks of the tags: a warp loads from two lines, or from 32 that lie so far apart. Lines of one bank pass the tags one after another.

struct Lines {
    unsigned of_lane[32];
};

__global__ void one_load(const float* zeros, Lines lines, float* to) {
    float value = zeros[32 * size_t(lines.of_lane[threadIdx.x])];
    if (value != 0) *to = value;
}

static void banks(float* zeros) {
    // Where the lowest 21 bits of a line's number are zero.
    const size_t aligned = size_t(1) << 28;
    auto from = reinterpret_cast<float*>((reinterpret_cast<size_t>(zeros) + aligned - 1) / aligned * aligned);
    Lines lines;
    for (unsigned bit = 9; bit < 21; bit++) {
        // One of each bank.
        for (unsigned other : {0, 1, 2, 16}) {
            for (unsigned lane = 0; lane < 32; lane++) lines.of_lane[lane] = lane % 2 ? 1 << bit : other;
            printf("banks: lines %u and %u:\n", other, 1 << bit);
            one_load<<<1, 32>>>(from, lines, zeros);
        }
    }
    for (unsigned apart : {33, 511, 513, 1025, 4095, 4097, 8193, 16385, 32769, 65535}) {
        for (unsigned lane = 0; lane < 32; lane++) lines.of_lane[lane] = lane * apart;
        printf("banks: 32 lines, %u apart:\n", apart);
        one_load<<<1, 32>>>(from, lines, zeros);
    }
}

// ---- Loads that come together: after a barrier so many warps of a block load from 32 lines each, once all lines that they loaded before
// are here, all together or some cycles after one another. The L2 has the lines. They are any, or any of which each bank of the tags has
// eight, or 32 in a row: one for each lane in turn, or for every thirteenth; or any of a quarter of the sets.

enum Kind { ANY, EIGHT_A_BANK, IN_A_ROW, EVERY_THIRTEENTH, A_QUARTER, EIGHT_A_BANK_OF_A_QUARTER };

__device__ unsigned parity(unsigned bits) { return __popc(bits) & 1; }

__device__ unsigned bank_of(unsigned line) { return parity(line & 0x15EF7AB5) | parity(line & 0x1B55AF6F) << 1; }

// Whether it belongs to the first of four quarters of the sets of its bank.
__device__ bool is_of_quarter(unsigned line) { return !parity(line & 0x0F3F8804) && !parity(line & 0x1E2DB408); }

__global__ void bursts(const float* zeros, unsigned lines, Kind kind, unsigned warps, unsigned apart, unsigned rounds, float* to) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool even = kind == EIGHT_A_BANK || kind == EIGHT_A_BANK_OF_A_QUARTER, quarter = kind >= A_QUARTER;
    bool found = false;
    for (unsigned round = 0; round < rounds; round++) {
        const unsigned long long load = (round << 5 | warp) << 5;
        const unsigned turn = kind == EVERY_THIRTEENTH ? lane * 13 % 32 : lane;
        const bool row = kind == IN_A_ROW || kind == EVERY_THIRTEENTH;
        unsigned line = (row ? scramble(load) * 32 + turn : scramble(load + lane)) % lines;
        for (unsigned long long other = 1; even && bank_of(line) != lane % 4 || quarter && !is_of_quarter(line); other++) {
            line = scramble(other << 32 | load + lane) % lines;
        }
        const float* from = zeros + 32 * size_t(line) + found;
        __syncthreads();
        if (warp < warps) {
            unsigned begin, now;
            asm volatile("mov.u32 %0, %%clock;" : "=r"(begin) :: "memory");
            do asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
            while (now - begin < apart * warp);
            float value;
            asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
            // Waits for all of them.
            found = __any_sync(~0u, value != 0);
        }
    }
    if (found) *to = 1;
}

static void together(float* zeros) {
    auto load = [&](int shared_percent, Kind kind, unsigned warps, unsigned apart, unsigned rounds) {
        const char* kinds[] = {"any lines", "eight lines a bank", "lines in a row", "lines in a row, mixed",
                               "any lines of a quarter of the sets", "eight lines a bank of a quarter of the sets"};
        CHECK(cudaFuncSetAttribute(bursts, cudaFuncAttributePreferredSharedMemoryCarveout, shared_percent));
        printf("bursts: %d %% shared, %u warps %u cycles apart, %u loads of %s:\n", shared_percent, warps, apart, rounds, kinds[kind]);
        bursts<<<1, 1024>>>(zeros, 1 << 18, kind, warps, apart, rounds, zeros);
    };
    for (int shared_percent : {0, 7, 14, 28, 58, 100}) {
        for (Kind kind : {ANY, EIGHT_A_BANK, IN_A_ROW, EVERY_THIRTEENTH, A_QUARTER, EIGHT_A_BANK_OF_A_QUARTER}) {
            for (unsigned warps : {1, 2, 3, 4, 8, 16, 32}) load(shared_percent, kind, warps, 0, 256);
        }
    }
    for (unsigned rounds : {4, 6, 7, 8, 10, 16}) load(14, ANY, 8, 0, rounds);
    for (int shared_percent : {14, 58}) {
        for (unsigned apart : {8, 16, 24, 32, 40, 48, 64}) load(shared_percent, EIGHT_A_BANK, 8, apart, 256);
    }
    for (unsigned apart : {4, 8, 16, 24, 32, 40, 48, 64}) load(58, ANY, 2, apart, 256);
}

// ---- Lines lost on their way: of eight lines of a set of the L1, which one load asks for, four have to go for the others. A second load,
// at once, is of these four or of the others. All of it so many times; from the second time on the L2 has the lines.

__global__ void lost(const char* lines, const unsigned* of_a_set, bool gone, unsigned times, int* to) {
    const unsigned own = of_a_set[threadIdx.x % 8], again = of_a_set[threadIdx.x % 4 + (gone ? 0 : 4)];
    int sum = 0;
    for (unsigned time = 0; time < times; time++) {
        for (unsigned round = 0; round < 4096; round++) {
            const unsigned base = scramble(round) % (1 << 21);
            const char* from = lines + (sum != 0);
            int first, second;
            asm volatile("ld.global.ca.s8 %0, [%1];" : "=r"(first) : "l"(from + size_t(128) * (base ^ own)) : "memory");
            asm volatile("ld.global.ca.s8 %0, [%1];" : "=r"(second) : "l"(from + size_t(128) * (base ^ again)) : "memory");
            sum += first + second;
        }
    }
    if (sum != 0) *to = sum;
}

static void losing(char* zeros) {
    // Differences of a line's number that leave its set the same.
    const unsigned same[] = {625, 1051, 2422};
    unsigned* of_a_set;
    CHECK(cudaMallocManaged(&of_a_set, 8 * sizeof *of_a_set));
    for (unsigned i = 0; i < 8; i++) of_a_set[i] = (i & 1 ? same[0] : 0) ^ (i & 2 ? same[1] : 0) ^ (i & 4 ? same[2] : 0);
    // Where the lowest 21 bits of a line's number are zero.
    const size_t to = size_t(1) << 28;
    auto aligned = reinterpret_cast<char*>((reinterpret_cast<size_t>(zeros) + to - 1) / to * to);
    CHECK(cudaFuncSetAttribute(lost, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
    for (bool gone : {false, true}) {
        for (unsigned times : {1, 2, 3}) lost<<<1, 32>>>(aligned, of_a_set, gone, times, reinterpret_cast<int*>(zeros));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(of_a_set));
}

// ---- Lines stored to again and again, in the same order: a sector or all four of every so manieth line, as a whole or the next four
// bytes of it each time. The L2 was empty before. Where all lines have room in it, what is read of memory completes sectors.

template <bool whole>
__global__ void again(unsigned* zeros, size_t sectors, unsigned of_a_line, unsigned apart, unsigned rounds) {
    const unsigned lanes = whole ? 8 : 1;
    const size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x, threads = gridDim.x * size_t(blockDim.x);
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = thread; i < lanes * sectors; i += threads) {
            const size_t sector = i / lanes, word = whole ? i % lanes : round % 8;
            asm volatile("st.global.u32 [%0], %1;" ::"l"(zeros + sector / of_a_line * apart * 32 + sector % of_a_line * 8 + word), "r"(0)
                         : "memory");
        }
    }
}

static void stored_again(char* zeros, int sms) {
    const unsigned rounds = 16;
    auto store = [=](bool whole, unsigned mebibytes, unsigned of_a_line, unsigned apart) {
        const size_t sectors = (size_t(mebibytes) << 13) * of_a_line;
        auto to = reinterpret_cast<unsigned*>(zeros);
        printf("again: %u rounds, %s of each of %zu sectors, %u a line, of every %u. line:\n", rounds, whole ? "all" : "4 bytes", sectors,
               of_a_line, apart);
        if (whole) {
            again<true><<<8 * sms, 256>>>(to, sectors, of_a_line, apart, rounds);
        } else {
            again<false><<<8 * sms, 256>>>(to, sectors, of_a_line, apart, rounds);
        }
        CHECK(cudaDeviceSynchronize());
    };
    for (bool whole : {false, true}) {
        for (unsigned of_a_line : {1, 4}) {
            for (unsigned mebibytes : {8, 12, 16, 24, 32, 40, 48, 56, 64, 96, 128}) store(whole, mebibytes, of_a_line, 1);
        }
    }
    for (unsigned apart : {2, 3, 4, 8}) store(false, 32, 1, apart);
}

// ---- Lines that all multiprocessors come back to in step, so that each comes back to them after as many others: of two circles of lines
// every thread has another one at each step, and no multiprocessor goes on to the next step before all others have.

enum class Access { none, load, part, whole };

__device__ void access(Access what, unsigned* zeros, size_t line, unsigned apart, unsigned word) {
    const unsigned lane = threadIdx.x % 32;
    unsigned* of = zeros + 32 * line * apart;
    if (what == Access::load) {
        unsigned value;
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(of) : "memory");
    } else if (what == Access::part) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(of + word), "r"(0) : "memory");
    } else if (what == Access::whole) {
        // A warp stores to its 32 lines one after another, four at a time.
        for (unsigned i = 0; i < 32; i += 4) {
            unsigned* to = zeros + 32 * (line - lane + i + lane / 8) * apart + lane % 8 * 4;
            asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(to), "r"(0) : "memory");
        }
    }
}

__global__ void __launch_bounds__(256)
    in_step(unsigned* zeros, unsigned* others, Access what, Access then, unsigned round, unsigned other, unsigned apart, unsigned steps) {
    const size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x, threads = gridDim.x * size_t(blockDim.x);
    for (unsigned step = 0; step < steps; step++) {
        access(what, zeros, step % round * threads + thread, apart, step / round % 8);
        access(then, others, step % other * threads + thread, 1, step / other % 8);
        cooperative_groups::this_grid().sync();
    }
}

static void back_in_step(char* zeros, size_t bytes, unsigned sms) {
    const char* names[] = {"nothing", "loads", "4 bytes stored", "whole lines stored"};
    const double step = 256.0 * sms / (1 << 13);
    auto steps_of = [=](double mebibytes) { return unsigned(mebibytes / step + 0.5); };
    auto run = [=](Access what, double of, Access then, double of_others, unsigned apart, unsigned steps) {
        unsigned round = steps_of(of), other = steps_of(of_others);
        auto lines = reinterpret_cast<unsigned*>(zeros), others = reinterpret_cast<unsigned*>(zeros + bytes / 2);
        printf("in step: %s, %u lines, of every %u., and %s, %u lines, %u steps of %u:\n", names[int(what)], round * 256 * sms, apart,
               names[int(then)], then == Access::none ? 0 : other * 256 * sms, steps, 256 * sms);
        void* arguments[] = {&lines, &others, &what, &then, &round, &other, &apart, &steps};
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(in_step), sms, 256, arguments, 0, nullptr));
        CHECK(cudaDeviceSynchronize());
    };
    for (Access what : {Access::load, Access::part, Access::whole}) {
        for (unsigned apart : {1, 4}) {
            for (double of : {16, 24, 32, 40, 44, 48, 52, 56, 64, 80}) {
                run(what, of, Access::none, step, apart, 16 * steps_of(of));
            }
        }
    }
    // Few lines that all come back to, and others that nobody does.
    for (double of : {4, 16}) {
        for (Access what : {Access::load, Access::part, Access::whole}) {
            for (Access then : {Access::load, Access::part, Access::whole}) run(what, of, then, 480, 1, steps_of(480));
        }
    }
    for (double of : {16, 24, 28, 32, 40}) run(Access::load, of, Access::part, of, 1, 16 * steps_of(of));
}

// ---- Lines that an L1 loses to stores: each lane copies a row of its own, one float after another, from a row that so many lanes share.
// What a warp has loaded a float of it comes back to once it and all others have stored to 32 lines each, or with four floats a round, as
// compilers unroll such a loop, after the fourth.

template <bool stores, unsigned a_round>
__global__ void __launch_bounds__(256) rows(const float* zeros, float* to, unsigned width, unsigned lanes) {
    const size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    const float* from = zeros + thread / lanes * width;
    float* row = to + thread * width;
    float sum = 0;
#pragma unroll 1
    for (unsigned round = 0; round < width; round += a_round) {
#pragma unroll
        for (unsigned i = round; i < round + a_round; i++) {
            float value;
            asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(value) : "l"(from + i) : "memory");
            if (stores) asm volatile("st.global.f32 [%0], %1;" ::"l"(row + i), "f"(value) : "memory");
            sum += value;
        }
    }
    if (sum != 0) *to = sum;
}

static void lost_to_stores(char* zeros, int sms) {
    auto from = reinterpret_cast<const float*>(zeros);
    auto to = reinterpret_cast<float*>(zeros + (size_t(256) << 20));
    const unsigned blocks = 8 * sms;
    auto run = [&](auto kernel, const char* does) {
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 14));
        for (unsigned width : {64, 96, 128}) {
            for (unsigned lanes : {16, 32, 64, 128, 256}) {
                printf("rows: of %u floats, %u lanes load one, %u warps %s:\n", width, lanes, 8 * blocks, does);
                kernel<<<blocks, 256>>>(from, to, width, lanes);
                CHECK(cudaDeviceSynchronize());
            }
        }
    };
    run(rows<false, 1>, "store nothing");
    run(rows<true, 1>, "copy them");
    run(rows<true, 4>, "copy four floats a round");
}

// ---- Atomics in shared memory: the lanes of a warp add to one word, to two, to a few, or to one each; integers and floats, and what
// stood there is used or not. An integer sum that nobody uses the compiler may put together before it leaves the warp.

template <typename T, bool used>
__global__ void shared_atomics(unsigned words, unsigned apart, T* to) {
    __shared__ T bins[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += 32) bins[i] = 0;
    __syncwarp();
    T old = atomicAdd(&bins[threadIdx.x % words * apart], T(threadIdx.x));
    __syncwarp();
    to[threadIdx.x] = bins[threadIdx.x] + (used ? old : T(0));
}

static void add_in_shared_memory(char* zeros) {
    auto run = [&](auto kernel, auto* to, const char* what) {
        const unsigned bins[][2] = {{1, 1}, {2, 1}, {2, 32}, {4, 1}, {8, 1}, {32, 1}, {32, 2}, {32, 32}};
        for (auto& [words, apart] : bins) {
            printf("shared atomics: %s, %u words %u apart:\n", what, words, apart);
            kernel<<<1, 32>>>(words, apart, to);
            CHECK(cudaDeviceSynchronize());
        }
    };
    run(shared_atomics<unsigned, false>, reinterpret_cast<unsigned*>(zeros), "integers, not used");
    run(shared_atomics<unsigned, true>, reinterpret_cast<unsigned*>(zeros), "integers, used");
    run(shared_atomics<float, false>, reinterpret_cast<float*>(zeros), "floats, not used");
    run(shared_atomics<float, true>, reinterpret_cast<float*>(zeros), "floats, used");
    run(shared_atomics<unsigned long long, true>, reinterpret_cast<unsigned long long*>(zeros), "64-bit integers, used");
}

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const size_t bytes = size_t(1) << 30;
    char* zeros;
    CHECK(cudaMalloc(&zeros, bytes));
    CHECK(cudaMemset(zeros, 0, bytes));
    places(reinterpret_cast<float*>(zeros), (256 << 20) / 128, properties.multiProcessorCount);
    stay(zeros);
    groups(reinterpret_cast<float*>(zeros), properties.multiProcessorCount);
    slices(zeros, properties.multiProcessorCount);
    circles(reinterpret_cast<float*>(zeros), properties.multiProcessorCount);
    neighbours_of(zeros, properties.multiProcessorCount);
    banks(reinterpret_cast<float*>(zeros));
    together(reinterpret_cast<float*>(zeros));
    losing(zeros);
    stored_again(zeros, properties.multiProcessorCount);
    lost_to_stores(zeros, properties.multiProcessorCount);
    back_in_step(zeros, bytes, properties.multiProcessorCount);
    add_in_shared_memory(zeros);
    CHECK(cudaDeviceSynchronize());
}
