// Launches one kernel of the corpus: launch PTX KERNEL GRID (3) BLOCK (3) PARAMETER…, where a parameter is filled:HEX, zero:BYTES,
// blank:BYTES or value:NUMBER. Each buffer is an allocation of its own, of exactly its size, and a blank one is not touched,
// so that a tool sees every access outside it and every read of what nobody wrote. Built by `run`.

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
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

int main(int argc, char **argv) {
    if (argc < 9) {
        std::fprintf(stderr, "launch PTX KERNEL GRID (3) BLOCK (3) PARAMETER...\n");
        return 2;
    }
    std::ifstream file(argv[1]);
    const std::string ptx((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx.c_str()));
    CHECK(cuModuleGetFunction(&kernel, module, argv[2]));
    unsigned size[6];
    for (int i = 0; i < 6; i++) size[i] = std::stoul(argv[3 + i]);
    std::vector<unsigned long long> words;
    for (int i = 9; i < argc; i++) words.push_back(parameter(argv[i]));
    std::vector<void *> parameters;
    for (auto &word : words) parameters.push_back(&word);
    CHECK(cuLaunchKernel(kernel, size[0], size[1], size[2], size[3], size[4], size[5], 0, nullptr, parameters.data(), nullptr));
    CHECK(cuCtxSynchronize());
}
