// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as a table of functions, opened when it is first needed, under its soname, else where the build found it; and
// its handle of a device. A handle needs a card: it
// is made when the first product is prepared and given back with the last one.
#ifndef DEVICE_CUDA_CUBLASLT_H
#define DEVICE_CUDA_CUBLASLT_H

#include <cublasLt.h>

#include "cuda_device.h"

#define CUBLASLT_CALL_MAP(X)                                                                                 \
    X(cublasLtGetVersion)                                                                                    \
    X(cublasLtGetStatusName)                                                                                 \
    X(cublasLtCreate)                                                                                        \
    X(cublasLtDestroy)                                                                                       \
    X(cublasLtMatrixLayoutCreate)                                                                            \
    X(cublasLtMatrixLayoutDestroy)                                                                           \
    X(cublasLtMatrixLayoutSetAttribute)                                                                      \
    X(cublasLtMatmulDescCreate)                                                                              \
    X(cublasLtMatmulDescDestroy)                                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                                        \
    X(cublasLtMatmulPreferenceCreate)                                                                        \
    X(cublasLtMatmulPreferenceDestroy)                                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                        \
    X(cublasLtMatmul)

typedef struct cublaslt_calls {
#define X(name) __typeof__(name) *name;
    CUBLASLT_CALL_MAP(X)
#undef X
} cublaslt_calls;

extern cublaslt_calls cublaslt; // filled by cublaslt_need

// DEPENDENCY errors: no cuBLASLt, or another major version than that of the build. Thread-safe.
HR_MUST_CHECK hr_status cublaslt_need(hr_err *err);

// HR_OK for CUBLAS_STATUS_SUCCESS. Else an error whose sentence is "WHAT: CUBLAS_STATUS_NAME": NOMEM for memory,
// DEVICE_LOST when execution failed and the card is lost, DEVICE for the rest, what the library has no algorithm for among it.
HR_MUST_CHECK hr_status cublaslt_check(cublasStatus_t status, hr_err *err, const char *what);

// One of the device's users more, and one less. The device's context is current.
HR_MUST_CHECK hr_status cublaslt_handle_take(const cuda_device *device, cublasLtHandle_t *out, hr_err *err);
void cublaslt_handle_leave(const cuda_device *device);

#endif
