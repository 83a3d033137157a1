// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1: opened, asked for its version, started; and what its results mean.
#include "driver.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/shared_library.h"

cuda_driver_calls cuda_driver;

// What must be known before the table can be filled: an older driver lacks some of its functions.
typedef struct early_calls {
    __typeof__(cuDriverGetVersion) *cuDriverGetVersion;
} early_calls;

enum { VERSION_MAJOR = 1000, VERSION_MINOR = 10 }; // CUDA_VERSION is 1000 * major + 10 * minor

static const char soname[] = "libcuda.so.1", needed_by[] = "device 'cuda'";
static const char hint_driver[] = "headroom plan with the same options, which needs no driver; or -s "
                                  "device.kind=plan; or install NVIDIA's driver "
                                  "for this card (apt install nvidia-driver), then nvidia-smi shows it";
static const char hint_card[] = "nvidia-smi -L, which lists the cards; env -u CUDA_VISIBLE_DEVICES headroom "
                                "doctor; or -s device.kind=plan";

static hr_status check_version(const void *table, hr_err *err)
{
    int version = 0;
    const CUresult result = ((const early_calls *)table)->cuDriverGetVersion(&version);
    if (result == CUDA_SUCCESS && version / VERSION_MAJOR >= CUDA_VERSION / VERSION_MAJOR) {
        return HR_OK;
    }
    (void)HR_FAIL(err, DEPENDENCY,
                  "device 'cuda' needed a driver for CUDA %d, the one that is installed is for CUDA %d.%d",
                  CUDA_VERSION / VERSION_MAJOR, version / VERSION_MAJOR,
                  version % VERSION_MAJOR / VERSION_MINOR);
    hr_err_try(err,
               "-s device.kind=plan; or install a newer driver (nvidia-smi shows what it is for), or build "
               "headroom with the CUDA Toolkit that fits it");
    return HR_DEPENDENCY;
}

static const shared_call early_list[] = {
    {"cuDriverGetVersion", offsetof(early_calls, cuDriverGetVersion)},
};
static const shared_library early_library = {.soname = soname,
                                             .needed_by = needed_by,
                                             .hint = hint_driver,
                                             .calls = early_list,
                                             .call_count = sizeof early_list / sizeof *early_list,
                                             .check = check_version};

static const struct {
    CUresult result;
    const char *sentence;
} start_failures[] = {
    {CUDA_ERROR_NO_DEVICE, "needed an NVIDIA card, the driver sees none"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "needed the driver's library and its kernel module to be of one "
                                        "version: was it updated without a reboot"},
    {CUDA_ERROR_STUB_LIBRARY, "needed the driver, libcuda.so.1 is the CUDA Toolkit's stub"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "needed a card that is free, the card is held by another process"},
};

static hr_status refuse_start(CUresult result, hr_err *err)
{
    for (size_t k = 0; k < sizeof start_failures / sizeof *start_failures; k++) {
        if (start_failures[k].result == result) {
            (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' %s", start_failures[k].sentence);
            hr_err_try(err, "%s", hint_card);
            return HR_DEPENDENCY;
        }
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' needed the driver to start, cuInit says %d", (int)result);
    hr_err_try(err, "%s", hint_card);
    return HR_DEPENDENCY;
}

static hr_status start(const void *table, hr_err *err)
{
    const cuda_driver_calls *calls = table;
    const CUresult result = calls->cuInit(0);
    int count = 0;
    if (result != CUDA_SUCCESS) {
        return refuse_start(result, err);
    }
    return calls->cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0
               ? HR_OK
               : refuse_start(CUDA_ERROR_NO_DEVICE, err);
}

static const shared_call driver_list[] = {
#define X(name) {#name, offsetof(cuda_driver_calls, name)},
    CUDA_DRIVER_MAP(X)
#undef X
};
static const shared_library driver_library = {.soname = soname,
                                              .needed_by = needed_by,
                                              .hint = hint_driver,
                                              .calls = driver_list,
                                              .call_count = sizeof driver_list / sizeof *driver_list,
                                              .check = start};

hr_status cuda_driver_need(hr_err *err)
{
    static shared_state early_state = SHARED_STATE_INIT, driver_state = SHARED_STATE_INIT;
    static early_calls early;
    HR_TRY(shared_library_need(&early_library, &early_state, &early, err));
    return shared_library_need(&driver_library, &driver_state, &cuda_driver, err);
}

// ---- results ----------------------------------------------------------------------------------------------------

// After one of these every further call on the context fails (cuda.h: "the context cannot be used").
static bool loses_device(CUresult result)
{
    static const CUresult list[] = {
        CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_CONTAINED,
        CUDA_ERROR_EXTERNAL_DEVICE,
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        if (list[k] == result) {
            return true;
        }
    }
    return false;
}

bool cuda_is_lost(void)
{
    return cuda_driver.cuCtxSynchronize != NULL && loses_device(cuda_driver.cuCtxSynchronize());
}

hr_status cuda_check(CUresult result, hr_err *err, const char *what, ...)
{
    if (result == CUDA_SUCCESS) {
        return HR_OK;
    }
    char doing[128];
    va_list arguments;
    va_start(arguments, what);
    (void)vsnprintf(doing, sizeof doing, what, arguments);
    va_end(arguments);
    const char *name = NULL, *words = NULL;
    (void)cuda_driver.cuGetErrorName(result, &name);
    (void)cuda_driver.cuGetErrorString(result, &words);
    name = name == NULL ? "an error without a name" : name;
    words = words == NULL ? "the driver has no words for it" : words;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return HR_FAIL(err, OOM, "%s: %s, %s", doing, name, words);
    }
    return loses_device(result) ? HR_FAIL(err, DEVICE_LOST, "%s: %s, %s", doing, name, words)
                                : HR_FAIL(err, DEVICE, "%s: %s, %s", doing, name, words);
}
