// SPDX-License-Identifier: Apache-2.0
// Private to the runtime of the cuda device: what is open, and what a program has on the card.
#ifndef DEVICE_CUDA_DEVICE_IMPL_H
#define DEVICE_CUDA_DEVICE_IMPL_H

#include <pthread.h>

#include "cuda_device.h"
#include "device/card_time.h"

enum { CUDA_MODULES_MAX = 64, CUDA_ISA_MAX = 160, CUDA_TITLE_MAX = 128 };

struct cuda_loaded; // step.h

struct cuda_device {
    cuda_traits traits;
    char title[CUDA_TITLE_MAX]; // "NVIDIA H200"; "": only its generation is known
    char isa[CUDA_ISA_MAX];     // "sm_90 NVIDIA H200"
    uint64_t key;               // of every answer
    bool plan_only, tf32, deterministic, capture, search;
    card_time speed; // of the card that is named
    bool lost;       // a call said so: nothing is waited for any more
    pthread_mutex_t asking;
    struct graph_library *graphs; // graph_library.h
    // The rest is of a card that is there.
    CUdevice ordinal;
    CUcontext context;
    CUstream lane[HR_LANE_COUNT];
    CUmodule module[CUDA_MODULES_MAX];
    CUdeviceptr small;      // CUDA_SMALL_BYTES beside the allocator: what scalars are read from
    uint64_t held_bytes;    // by backings
    uint64_t context_bytes; // by what was made at open and at load, as far as it could be seen
    // Since the last wait something was enqueued that may still run.
    bool busy;
    struct cuda_loaded *under_way; // a step of it has begun and may hold calls back; NULL: none
};

#define CUDA_SMALL_BYTES (2 * 1024 * 1024)

void cuda_fill_target(cuda_device *device, const char *name, hr_target *out); // target.c
void cuda_kernels_close(cuda_device *device);                                 // kernels.c

// The device's context is the calling thread's from here on. DEVICE error on a device that plans, DEVICE_LOST on one
// that is lost.
hr_status cuda_enter(cuda_device *device, hr_err *err);
// `status` again; remembers that the device is lost.
hr_status cuda_noted(cuda_device *device, hr_status status);
// Pinned host memory, zeroed; NOMEM error.
HR_MUST_CHECK hr_status cuda_host_take(void *context, uint64_t bytes, void **out, hr_err *err);
void cuda_host_give_back(void *context, void *memory);
// device_ops.pinned; DEVICE error.
HR_MUST_CHECK hr_status cuda_pinned_open(void *context, pinned_memory *out, hr_err *err);
// What `isa` tells from now on: the driver had addresses without memory for so many capacities only.
void cuda_say_addresses(cuda_device *device, uint64_t times);
// Waits until everything that was enqueued is done.
hr_status cuda_settle(cuda_device *device, hr_err *err);

#endif
