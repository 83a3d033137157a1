// SPDX-License-Identifier: Apache-2.0
// The emulated driver: its start, its one card, its errors, and what tests see of it.
#include "driver.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace card
{
namespace
{

thread_local bool has_context;

uint64_t bytes_of(const char *text, const char **end)
{
    char *rest = nullptr;
    uint64_t bytes = strtoull(text, &rest, 10);
    const int shift = *rest == 'K' ? 10 : *rest == 'M' ? 20 : *rest == 'G' ? 30 : 0;
    *end = rest + (shift != 0);
    return bytes << shift;
}

uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name), *end = nullptr;
    return text == nullptr ? otherwise : bytes_of(text, &end);
}

void read_others(settings &set)
{
    const char *text = getenv("CARD_OTHERS");
    if (text == nullptr) {
        return;
    }
    const char *end = nullptr;
    set.others = bytes_of(text, &end);
    if (*end == ',') {
        set.others_later = bytes_of(end + 1, &end);
        set.others_at = *end == '@' ? strtoull(end + 1, nullptr, 10) : 1;
    }
}

bool faults_are_ours()
{
    const char *path = getenv("CARD_FAIL_ONCE");
    if (path == nullptr) {
        return true;
    }
    const int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) {
        close(file);
    }
    return file >= 0;
}

void read_faults(state &s)
{
    const char *text = getenv("CARD_FAIL");
    s.set.lose_at = setting("CARD_LOSE_AT", 0);
    if ((text == nullptr && s.set.lose_at == 0) || !faults_are_ours()) {
        s.set.lose_at = 0;
        return;
    }
    while (text != nullptr && *text != 0) {
        char name[64];
        unsigned long long nth = 0;
        int result = 0, length = 0;
        if (sscanf(text, "%63[^:]:%llu:%d%n", name, &nth, &result, &length) != 3) {
            (void)fprintf(stderr, "card: CARD_FAIL needs FUNCTION:NTH:RESULT, had \"%s\"\n", text);
            abort();
        }
        s.faults[name] = {nth, result};
        text += length;
        text += *text == ',';
    }
}

state *made()
{
    auto *s = new state();
    s->set.vram = setting("CARD_VRAM", 8ull << 30);
    s->set.context_bytes = setting("CARD_CONTEXT", 256ull << 20);
    s->set.multiprocessors = (int)setting("CARD_MULTIPROCESSORS", 4);
    s->set.piece_bytes = setting("CARD_PIECE", GRANULE);
    s->set.devices = (int)setting("CARD_DEVICES", 1);
    s->set.version = (int)setting("CARD_DRIVER", CUDA_VERSION);
    s->set.guard = setting("CARD_GUARD", 1) != 0;
    s->rng = setting("CARD_SEED", 1);
    read_others(s->set);
    read_faults(*s);
    return s;
}

} // namespace

state &the()
{
    static state *s = made();
    return *s;
}

uint64_t draw()
{
    return draw_next(the().rng);
}

bool lost()
{
    return the().lost != CUDA_SUCCESS;
}

void lose(CUresult result)
{
    if (!lost()) {
        the().lost = result;
    }
}

// The result that a test wants of this call; 0: none.
int due(const char *name)
{
    state &s = the();
    const auto fault = s.faults.find(name);
    if (fault == s.faults.end() || --fault->second.after != 0) {
        return 0;
    }
    const int result = fault->second.result;
    s.faults.erase(fault);
    return result;
}

static CUresult refusal(const char *name, unsigned flags)
{
    state &s = the();
    s.totals.calls++;
    s.calls[name]++;
    const int fault = due(name);
    if (fault != 0) {
        return (CUresult)fault;
    }
    if ((flags & BEFORE_INIT) == 0 && (!s.started || s.pid != getpid())) {
        return CUDA_ERROR_NOT_INITIALIZED; // a context does not survive fork
    }
    if ((flags & WHEN_LOST) == 0 && lost()) {
        return s.lost;
    }
    if ((flags & (BEFORE_INIT | WITHOUT_CONTEXT)) == 0 && (!has_context || s.contexts == 0)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if ((flags & NOT_IN_CAPTURE) != 0 && capturing()) {
        break_captures();
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
}

call::call(const char *name, unsigned flags) : held(the().lock)
{
    refused = refusal(name, flags);
}

} // namespace card

using namespace card;

// ---- the card -------------------------------------------------------------------------------------------------------

struct CUctx_st {
    int unused;
};
static CUctx_st the_context;

EXPORTED CUresult cuInit(unsigned)
{
    ENTER(cuInit, BEFORE_INIT | WHEN_LOST)
    if (the().set.devices == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    the().started = true;
    the().pid = getpid();
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, BEFORE_INIT | WHEN_LOST)
    *version = the().set.version;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, WITHOUT_CONTEXT | WHEN_LOST)
    *count = the().set.devices;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet, WITHOUT_CONTEXT | WHEN_LOST)
    *device = ordinal;
    return ordinal >= 0 && ordinal < the().set.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuDeviceGetName(char *name, int length, CUdevice)
{
    ENTER(cuDeviceGetName, WITHOUT_CONTEXT | WHEN_LOST)
    (void)snprintf(name, (size_t)length, "Emulated Card");
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice)
{
    ENTER(cuDeviceGetUuid_v2, WITHOUT_CONTEXT | WHEN_LOST)
    memcpy(uuid->bytes, "\xca\x4d\x00\x01\x00\x00\x40\x00\x80\x00\x00\x00\x00\x00\x00\x01", 16);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice)
{
    ENTER(cuDeviceGetPCIBusId, WITHOUT_CONTEXT | WHEN_LOST)
    (void)snprintf(id, (size_t)length, "0000:CA:00.0");
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice)
{
    ENTER(cuDeviceTotalMem_v2, WITHOUT_CONTEXT | WHEN_LOST)
    *bytes = the().set.vram;
    return CUDA_SUCCESS;
}

static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 * 1024 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xca},
};

EXPORTED CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice)
{
    ENTER(cuDeviceGetAttribute, WITHOUT_CONTEXT | WHEN_LOST)
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? the().set.multiprocessors
             : attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
                 ? the().set.piece_bytes != 0
                 : 0;
    for (const auto &row : attributes) {
        if (row.attribute == attribute) {
            *value = row.value;
        }
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice)
{
    ENTER(cuDevicePrimaryCtxRetain, WITHOUT_CONTEXT)
    if (the().contexts == 0 && free_bytes() < the().set.context_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    the().contexts++;
    *context = &the_context;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice)
{
    ENTER(cuDevicePrimaryCtxRelease_v2, WITHOUT_CONTEXT | WHEN_LOST)
    if (the().contexts == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    the().contexts--;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent, WITHOUT_CONTEXT | WHEN_LOST)
    if (context != nullptr && (context != &the_context || the().contexts == 0)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    has_context = context != nullptr;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize, NOT_IN_CAPTURE)
    the().totals.synchronisations++;
    wait_for_all();
    return the().lost;
}

// ---- errors ---------------------------------------------------------------------------------------------------------

static const struct {
    CUresult result;
    const char *name, *words;
} results[] = {
#define ROW(id, words) {id, #id, words},
    ROW(CUDA_SUCCESS, "no error") ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument")
        ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory") ROW(CUDA_ERROR_NOT_INITIALIZED, "initialization error")
            ROW(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected") ROW(CUDA_ERROR_INVALID_DEVICE,
                                                                                "invalid device ordinal")
                ROW(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid") ROW(
                    CUDA_ERROR_INVALID_CONTEXT, "invalid device context") ROW(CUDA_ERROR_INVALID_HANDLE,
                                                                              "invalid resource handle")
                    ROW(CUDA_ERROR_NOT_FOUND, "named symbol not found") ROW(CUDA_ERROR_NOT_READY,
                                                                            "device not ready")
                        ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
                            ROW(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure") ROW(
                                CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")
                                ROW(CUDA_ERROR_NOT_SUPPORTED, "operation not supported") ROW(
                                    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                    "operation not permitted when stream is capturing")
                                    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                        "operation failed due to a previous error during capture")
                                        ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                                            "capturing stream has unjoined work")
                                            ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                                "capture was not initiated in this stream")
                                                ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                                    "dependency created on uncaptured work in another stream")
                                                    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                                        "operation would make the legacy stream depend on a "
                                                        "capturing blocking stream")
                                                        ROW(CUDA_ERROR_CAPTURED_EVENT,
                                                            "operation not permitted on an event last "
                                                            "recorded in a capturing stream")
                                                            ROW(CUDA_ERROR_UNKNOWN, "unknown error")
#undef ROW
};

EXPORTED CUresult cuGetErrorName(CUresult result, const char **name)
{
    ENTER(cuGetErrorName, BEFORE_INIT | WHEN_LOST)
    *name = nullptr;
    for (const auto &row : results) {
        *name = row.result == result ? row.name : *name;
    }
    return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORTED CUresult cuGetErrorString(CUresult result, const char **words)
{
    ENTER(cuGetErrorString, BEFORE_INIT | WHEN_LOST)
    *words = nullptr;
    for (const auto &row : results) {
        *words = row.result == result ? row.words : *words;
    }
    return *words == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// ---- for tests ------------------------------------------------------------------------------------------------------

typedef std::lock_guard<std::recursive_mutex> locked;

EXPORTED int card_fault(const char *function)
{
    locked held(the().lock);
    the().calls[function]++;
    return due(function);
}

EXPORTED void card_reset(void)
{
    locked held(the().lock);
    the().totals = {};
    the().calls.clear();
    the().launches.clear();
}

EXPORTED void card_count(card_totals *out)
{
    locked held(the().lock);
    *out = the().totals;
}

EXPORTED uint64_t card_calls(const char *function)
{
    locked held(the().lock);
    return the().calls[function];
}

EXPORTED uint64_t card_launches(const char *kernel)
{
    locked held(the().lock);
    return the().launches[kernel];
}

EXPORTED void card_fail(const char *function, uint64_t nth, CUresult result)
{
    locked held(the().lock);
    the().faults[function] = {nth, (int)result};
}

EXPORTED void card_lose_at(uint64_t nth)
{
    locked held(the().lock);
    the().set.lose_at = the().launches_begun + nth;
}

EXPORTED void card_others(uint64_t bytes, uint64_t later_bytes, uint64_t nth)
{
    locked held(the().lock);
    the().set.others = bytes;
    the().set.others_later = later_bytes;
    the().set.others_at = nth == 0 ? 0 : the().launches_begun + nth;
}

EXPORTED void card_memory_now(card_memory *out)
{
    locked held(the().lock);
    *out = {};
    out->present = the().set.devices > 0;
    out->total_bytes = the().set.vram;
    out->others_bytes = others_bytes();
    out->process_bytes = the().used_bytes + (the().contexts > 0 ? the().set.context_bytes : 0);
}
