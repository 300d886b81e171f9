// Asynchronous copies for Nsight Compute to count: each launch is one warp's one `cp.async`, of lanes that share words or not, from and to banks
// in all orders. What each launch copies stands in its line: bytes a lane, the lanes that copy, and each lane's element of the source and
// of the tile. No two lanes copy to one element. Nothing is timed.
//
//     nvcc -O3 -arch=native -o copies copies.cu, and ncu as in ../README.md

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

constexpr int LANES = 32, BYTES_OF_TILE = 32768, BYTES_OF_SOURCE = 65536;

struct Pattern {
    unsigned active;
    unsigned short from[LANES], to[LANES];
};

template <int BYTES> __global__ void copies(const char* src, const __grid_constant__ Pattern pattern) {
    __shared__ __align__(128) char tile[BYTES_OF_TILE];
    unsigned lane = threadIdx.x;
    if (pattern.active >> lane & 1) {
        auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile + pattern.to[lane] * BYTES));
        auto from = src + pattern.from[lane] * BYTES;
        if constexpr (BYTES == 16) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        } else {
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

template <int BYTES> void launch(const char* src, const Pattern& pattern) {
    printf("%d\t0x%08x", BYTES, pattern.active);
    for (auto elements : {pattern.from, pattern.to}) {
        for (int lane = 0; lane < LANES; lane++) printf("%c%d", lane == 0 ? '\t' : ',', elements[lane]);
    }
    printf("\n");
    copies<BYTES><<<1, LANES>>>(src, pattern);
}

template <int BYTES> void all(const char* src, std::mt19937& random) {
    unsigned sources = BYTES_OF_SOURCE / BYTES, places = BYTES_OF_TILE / BYTES;
    auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
    auto line = [&](auto&& from, auto&& to, unsigned active) {
        Pattern pattern{active, {}, {}};
        for (int lane = 0; lane < LANES; lane++) {
            pattern.from[lane] = from(lane) % sources;
            pattern.to[lane] = to(lane) % places;
        }
        launch<BYTES>(src, pattern);
    };
    // So many neighbours share an element, so many lanes are a period; elements of the tile are so many apart.
    for (unsigned share : {1, 2, 4, 8, 32}) {
        line([&](int lane) { return lane / share; }, [](int lane) { return lane; }, ~0u);
        if (share > 1) line([&](int lane) { return lane % (LANES / share); }, [](int lane) { return lane; }, ~0u);
    }
    for (unsigned apart : {2, 3, 4, 8, 16, 32, 33}) {
        line([](int lane) { return lane; }, [&](int lane) { return lane * apart; }, ~0u);
        line([&](int lane) { return lane * apart; }, [](int lane) { return lane; }, ~0u);
        line([&](int lane) { return lane * apart; }, [&](int lane) { return lane * apart; }, ~0u);
        line([](int) { return 0; }, [&](int lane) { return lane * apart; }, ~0u);
    }
    line([](int lane) { return LANES - 1 - lane; }, [](int lane) { return lane; }, ~0u);
    line([](int lane) { return lane ^ 1; }, [](int lane) { return lane; }, ~0u);
    line([](int lane) { return lane * 33; }, [](int lane) { return lane * 2; }, ~0u);
    for (unsigned active : {0x1u, 0xffu, 0xffffu, 0xf0f0f0f0u, 0x55555555u}) {
        line([](int lane) { return lane; }, [](int lane) { return lane; }, active);
        line([](int) { return 0; }, [](int lane) { return lane; }, active);
        line([](int) { return 0; }, [](int lane) { return lane * 32; }, active);
    }
    // At random: elements of few or many lines, places of a small or a large part of the tile, all lanes or some.
    for (int round = 0; round < 40; round++) {
        unsigned window = 1u << (1 + below(9)), part = LANES << below(5), active = round % 3 == 2 ? random() : ~0u;
        unsigned short to[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            bool taken;
            do {
                to[lane] = below(part);
                taken = false;
                for (int other = 0; other < lane; other++) taken |= to[other] == to[lane];
            } while (taken);
        }
        bool in_order = round % 4 == 0;
        line([&](int) { return below(window); }, [&](int lane) { return in_order ? lane : to[lane]; }, active);
    }
}

int main() {
    char* src;
    CHECK(cudaMalloc(&src, BYTES_OF_SOURCE));
    CHECK(cudaMemset(src, 0, BYTES_OF_SOURCE));
    std::mt19937 random(1);
    all<4>(src, random);
    all<8>(src, random);
    all<16>(src, random);
    CHECK(cudaDeviceSynchronize());
}
