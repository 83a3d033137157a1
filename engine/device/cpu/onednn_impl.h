// SPDX-License-Identifier: Apache-2.0
// Private to onednn*.c, written for oneDNN 2.x (operation descriptors, value memory descriptors).
//
// The library is opened when a cpu device first is, not when the program starts: a process that only plans or shows
// maps neither oneDNN nor the runtimes of OpenMP, C++ and OpenCL behind it. `dnnl_memory_create(…)` is therefore
// written `dnnl.memory_create(…)`.
#ifndef DEVICE_CPU_ONEDNN_IMPL_H
#define DEVICE_CPU_ONEDNN_IMPL_H

#include <oneapi/dnnl/dnnl.h>

#include "onednn.h"
#include "onednn_calls.h"

_Static_assert(DNNL_VERSION_MAJOR == 2, "onednn*.c is written for oneDNN 2.x");

// The OpenMP functions are those of the runtime that oneDNN itself runs on.
typedef struct onednn_calls {
#define X(name) __typeof__(dnnl_##name) *name;
    ONEDNN_CALL_MAP(X)
#undef X
#define X(symbol, parameters) void(*symbol) parameters;
    ONEDNN_OPENMP_MAP(X)
#undef X
} onednn_calls;

extern onednn_calls dnnl; // whole once onednn_load has returned HR_OK, and never changed again

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

// The error for a call that oneDNN refused.
hr_status onednn_failed(hr_err *err, const char *call, dnnl_status_t status);
// Implementations named `ref` or `gemm` are slow or allocate behind the scratch.
bool onednn_is_acceptable(const char *name);

#define TRY_LIBRARY(err, call)                                                                               \
    do {                                                                                                     \
        dnnl_status_t library_status_ = (call);                                                              \
        if (library_status_ != dnnl_success) {                                                               \
            return onednn_failed(err, #call, library_status_);                                               \
        }                                                                                                    \
    } while (0)

#endif
