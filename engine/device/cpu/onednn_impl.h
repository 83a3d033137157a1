// SPDX-License-Identifier: Apache-2.0
// Private to onednn*.c, written for oneDNN 2.x (operation descriptors, value memory descriptors).
#ifndef DEVICE_CPU_ONEDNN_IMPL_H
#define DEVICE_CPU_ONEDNN_IMPL_H

#include <oneapi/dnnl/dnnl.h>

#include "onednn.h"

_Static_assert(DNNL_VERSION_MAJOR == 2, "onednn.c is written for oneDNN 2.x");

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
