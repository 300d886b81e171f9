// Launches one kernel of the corpus: launch PTX KERNEL GRID (3) BLOCK (3) PARAMETER…, where a parameter is filled:HEX, zero:BYTES,
// blank:BYTES or value:NUMBER. Each buffer is an allocation of its own, of exactly its size, and a blank one is not touched,
// so that a tool sees every access outside it and every read of what nobody wrote. With `launch PTX`, one for each line of standard
// input. Built by `run` and by `count`.

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

static void check(CUresult result, const char *call) {
    if (result == CUDA_SUCCESS) return;
    const char *name = "an unknown error";
    cuGetErrorName(result, &name);
    std::fprintf(stderr, "%s: %s\n", call, name);
    std::exit(1);
}
#define CHECK(call) check(call, #call)

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr pointer;
    CHECK(cuMemAlloc(&pointer, bytes));
    return pointer;
}

static unsigned long long parameter(const std::string &text) {
    const size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
    if (kind == "value") return std::stoull(rest);
    if (kind == "blank") return allocate(std::stoull(rest));
    if (kind == "zero") {
        const CUdeviceptr pointer = allocate(std::stoull(rest));
        CHECK(cuMemsetD8(pointer, 0, std::stoull(rest)));
        return pointer;
    }
    std::vector<unsigned char> bytes;
    for (size_t i = 0; i < rest.size(); i += 2) bytes.push_back(std::stoi(rest.substr(i, 2), nullptr, 16));
    const CUdeviceptr pointer = allocate(bytes.size());
    CHECK(cuMemcpyHtoD(pointer, bytes.data(), bytes.size()));
    return pointer;
}

static void launch(CUmodule module, const std::vector<std::string> &words_of_launch) {
    if (words_of_launch.size() < 7) {
        std::fprintf(stderr, "launch PTX [KERNEL GRID (3) BLOCK (3) PARAMETER...]\n");
        std::exit(2);
    }
    CUfunction kernel;
    CHECK(cuModuleGetFunction(&kernel, module, words_of_launch[0].c_str()));
    unsigned size[6];
    for (int i = 0; i < 6; i++) size[i] = std::stoul(words_of_launch[1 + i]);
    std::vector<unsigned long long> words;
    for (size_t i = 7; i < words_of_launch.size(); i++) words.push_back(parameter(words_of_launch[i]));
    std::vector<void *> parameters;
    for (auto &word : words) parameters.push_back(&word);
    CHECK(cuLaunchKernel(kernel, size[0], size[1], size[2], size[3], size[4], size[5], 0, nullptr, parameters.data(), nullptr));
    CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "launch PTX [KERNEL GRID (3) BLOCK (3) PARAMETER...]\n"), 2;
    std::ifstream file(argv[1]);
    const std::string ptx((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx.c_str()));
    if (argc > 2) return launch(module, {argv + 2, argv + argc}), 0;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        launch(module, {std::istream_iterator<std::string>(words), {}});
    }
}
