// SPDX-License-Identifier: Apache-2.0
// Kernels of the emulated card. A module's bytes are machine code for another processor: only that they are such is
// looked at. Its kernels are found by name in the libraries beside libcuda.so.1 in kernels/, which hold the same sources
// compiled for this processor.
#include <algorithm>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver.hpp"

struct CUmod_st {
    int unused;
};
struct CUfunc_st {
    const card_kernel *kernel;
    const card_module_info *module;
    unsigned shared_max; // dynamic, that a launch may ask for
};

namespace card
{
namespace
{

// Where a process has code, heap, maps and stacks. Below lie two small numbers side by side and a sanitizer's shadow.
constexpr uint64_t HOST_BEGIN = 0x500000000000, HOST_END = (uint64_t)1 << 47;
enum : unsigned { FATBIN_MAGIC = 0xba55ed50, SHARED_MAX = 49152, SHARED_OPTIN_MAX = 232448 };

std::map<std::string, CUfunc_st> functions;
std::set<std::string> ambiguous;
std::set<CUmodule> modules;
bool searched;

void add_module(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        (void)fprintf(stderr, "card: %s\n", dlerror());
        return;
    }
    const auto *info = (const card_module_info *)dlsym(library, "card_module");
    for (size_t k = 0; info != nullptr && k < info->count; k++) {
        const std::string name = info->kernels[k].name;
        if (!functions.emplace(name, CUfunc_st{&info->kernels[k], info, SHARED_MAX}).second) {
            ambiguous.insert(name);
        }
    }
}

void search()
{
    Dl_info self = {};
    if (searched || dladdr((void *)&search, &self) == 0) {
        return;
    }
    searched = true;
    const std::string file = self.dli_fname, folder = file.substr(0, file.rfind('/') + 1) + "kernels/";
    DIR *entries = opendir(folder.c_str());
    for (dirent *e = entries == nullptr ? nullptr : readdir(entries); e != nullptr; e = readdir(entries)) {
        const size_t length = strlen(e->d_name);
        if (length > 3 && strcmp(e->d_name + length - 3, ".so") == 0) {
            add_module((folder + e->d_name).c_str());
        }
    }
    if (entries != nullptr) {
        closedir(entries);
    }
}

bool fits_card(const grid &g, CUfunction f)
{
    const card_index b = g.blocks, t = g.threads;
    return b.x > 0 && b.y > 0 && b.z > 0 && b.x <= 0x7fffffff && b.y <= 65535 && b.z <= 65535 && t.x > 0 &&
           t.y > 0 && t.z > 0 && (uint64_t)t.x * t.y * t.z <= 1024 && t.z <= 64 &&
           g.shared_bytes <= f->shared_max;
}

// What a launch hands over: by pointers to parameters, of which there is one, or as bytes.
bool read_arguments(CUfunction f, void **parameters, void **extra, std::vector<unsigned char> &out)
{
    const size_t bytes = f->kernel->argument_bytes;
    const void *from = parameters == nullptr ? nullptr : parameters[0];
    size_t given = bytes;
    for (void **e = extra; parameters == nullptr && e != nullptr && *e != CU_LAUNCH_PARAM_END; e += 2) {
        from = *e == CU_LAUNCH_PARAM_BUFFER_POINTER ? e[1] : from;
        given = *e == CU_LAUNCH_PARAM_BUFFER_SIZE ? *(const size_t *)e[1] : given;
    }
    if (from == nullptr || given != bytes) {
        return false;
    }
    out.assign((const unsigned char *)from, (const unsigned char *)from + bytes);
    return true;
}

// Can host code read there? The kernel of this machine is asked, which answers where a read would end the process.
bool readable(uint64_t at)
{
    static int ends[2] = {-1, -1};
    if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    char byte = 0;
    return write(ends[1], (const void *)at, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

// A kernel that is handed an address of the host would work here and not on a card.
bool hands_over_host_memory(const card_kernel &kernel, const std::vector<unsigned char> &arguments)
{
    for (size_t k = 0; k + sizeof(uint64_t) <= arguments.size(); k += sizeof(uint64_t)) {
        uint64_t word = 0;
        (void)memcpy(&word, &arguments[k], sizeof word);
        const bool like_address = word >= HOST_BEGIN && word < HOST_END;
        if (like_address && !holds(word, 1) && !pinned((const void *)word, 1) && readable(word)) {
            (void)fprintf(stderr, "card: kernel %s: what it is given at byte %zu is an address of the host\n",
                          kernel.name, k);
            return true;
        }
    }
    return false;
}

bool is_the_one_to_lose()
{
    state &s = the();
    return ++s.launches_begun == s.set.lose_at;
}

void run_launch(CUfunction f, const grid &g, const std::vector<unsigned char> &arguments)
{
    // Kernels read their arguments where a vector of sixteen bytes may stand.
    alignas(64) unsigned char placed[4096];
    (void)memcpy(placed, arguments.data(), arguments.size());
    the().totals.launches++;
    the().launches[f->kernel->name]++;
    const CUresult result = is_the_one_to_lose() ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                 : run_kernel(*f->kernel, *f->module, g, placed, draw());
    if (result != CUDA_SUCCESS) {
        lose(result);
    }
}

} // namespace
} // namespace card

using namespace card;

EXPORTED CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    ENTER(cuModuleLoadData, NOT_IN_CAPTURE)
    unsigned magic = 0;
    (void)memcpy(&magic, image, sizeof magic);
    if (magic != FATBIN_MAGIC) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *out = new CUmod_st{};
    modules.insert(*out);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleUnload(CUmodule module)
{
    ENTER(cuModuleUnload, NOT_IN_CAPTURE | WHEN_LOST)
    if (modules.erase(module) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    delete module;
    return the().lost;
}

EXPORTED CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    ENTER(cuModuleGetFunction, 0)
    *out = nullptr;
    if (modules.count(module) == 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    search();
    const auto f = functions.find(name);
    if (f == functions.end() || ambiguous.count(name) != 0) {
        (void)fprintf(stderr, "card: %s kernel is called %s\n", f == functions.end() ? "no" : "more than one",
                      name);
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = &f->second;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuFuncLoad(CUfunction f)
{
    ENTER(cuFuncLoad, 0)
    return f == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Of what a function has, its limit alone is known.
EXPORTED CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction f)
{
    ENTER(cuFuncGetAttribute, 0)
    if (f == nullptr || attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (int)f->shared_max;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
    ENTER(cuFuncSetAttribute, 0)
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > (int)SHARED_OPTIN_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->shared_max = std::max((unsigned)value, (unsigned)SHARED_MAX);
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuLaunchKernel(CUfunction f, unsigned bx, unsigned by, unsigned bz, unsigned tx,
                                 unsigned ty, unsigned tz, unsigned shared_bytes, CUstream stream,
                                 void **parameters, void **extra)
{
    ENTER(cuLaunchKernel, 0)
    const grid g = {{bx, by, bz}, {tx, ty, tz}, shared_bytes};
    std::vector<unsigned char> arguments;
    if (f == nullptr || !fits_card(g, f) || !read_arguments(f, parameters, extra, arguments) ||
        hands_over_host_memory(*f->kernel, arguments)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return enqueue(stream, [f, g, arguments] { run_launch(f, g, arguments); });
}

EXPORTED CUresult card_enqueue(CUstream stream, void (*function)(void *), const void *arguments, size_t bytes)
{
    ENTER(card_enqueue, 0)
    const auto *first = (const unsigned char *)arguments;
    const std::vector<unsigned char> kept(first, first + bytes);
    return enqueue(stream, [function, kept] {
        std::vector<unsigned char> copy = kept; // new for every run of a graph
        the().totals.library_runs++;
        const CUresult result = run_work("library", [&] { function(copy.data()); });
        if (result != CUDA_SUCCESS) {
            lose(result);
        }
    });
}
