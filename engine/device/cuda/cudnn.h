// SPDX-License-Identifier: Apache-2.0
// cuDNN as a table of functions, opened when it is first needed: under its soname, else where the build found it. Only
// its graph interface and its handle are used. Which engines it shows depends on libcuda.so.1 being there: without it,
// or the CUDA Toolkit's stub of it, those that are compiled at run time are missing.
#ifndef DEVICE_CUDA_CUDNN_H
#define DEVICE_CUDA_CUDNN_H

#include <cudnn_graph.h>
#include <stdbool.h>

#include "headroom/status.h"

#include "base/last_words.h"

#define CUDNN_CALL_MAP(X)                                                                                    \
    X(cudnnGetVersion)                                                                                       \
    X(cudnnGetErrorString)                                                                                   \
    X(cudnnGetLastErrorString)                                                                               \
    X(cudnnCreate)                                                                                           \
    X(cudnnDestroy)                                                                                          \
    X(cudnnSetStream)                                                                                        \
    X(cudnnBackendCreateDescriptor)                                                                          \
    X(cudnnBackendDestroyDescriptor)                                                                         \
    X(cudnnBackendSetAttribute)                                                                              \
    X(cudnnBackendGetAttribute)                                                                              \
    X(cudnnBackendFinalize)                                                                                  \
    X(cudnnBackendExecute)

typedef struct cudnn_calls {
#define X(name) __typeof__(name) *name;
    CUDNN_CALL_MAP(X)
#undef X
} cudnn_calls;

extern cudnn_calls cudnn; // filled by cudnn_need

// DEPENDENCY errors: no cuDNN, or another major version than that of the build. Thread-safe.
HR_MUST_CHECK hr_status cudnn_need(hr_err *err);

// Does it show engines that are compiled at run time? After cudnn_need.
bool cudnn_shows_compiled(void);

// Around what may make cuDNN open more of its libraries: a sentence where one of them ends the process. Planning for a card
// that is not there, cuDNN 9.19 does so beside an older one (an H100, for 10.0): then hiding that one helps.
void cudnn_begin(last_words *w, bool for_other_card);

// Once cuDNN has opened them for a question: are its libraries of one installation? DEPENDENCY error when one of them is
// something else, or when they lie in several folders or say several versions in their names. cuDNN does not look, and
// answers as if it had fewer engines.
HR_MUST_CHECK hr_status cudnn_check_parts(hr_err *err);

// HR_OK for CUDNN_STATUS_SUCCESS. Else an error whose sentence is "WHAT: CUDNN_STATUS_NAME, cuDNN's words": NOMEM for
// host memory, DEPENDENCY when it could not open one of its libraries, DEVICE_LOST when
// execution failed and the card is lost, DEVICE for the rest, "not supported" among it.
HR_MUST_CHECK hr_status cudnn_check(cudnnStatus_t status, hr_err *err, const char *what);

// ---- descriptors ----------------------------------------------------------------------------------------------

// A descriptor while its attributes are set: the first failure is kept, what comes after it does nothing.
typedef struct cudnn_maker {
    cudnnBackendDescriptor_t descriptor; // NULL after a failure at the beginning
    cudnnStatus_t status;
} cudnn_maker;

cudnn_maker cudnn_make(cudnnBackendDescriptorType_t type);
void cudnn_set(cudnn_maker *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               int64_t count, const void *values);
// The finalized descriptor, the caller's to destroy; NULL and the error of whatever failed.
HR_MUST_CHECK hr_status cudnn_finish(cudnn_maker *m, const char *what, cudnnBackendDescriptor_t *out,
                                     hr_err *err);
void cudnn_destroy(cudnnBackendDescriptor_t descriptor); // NULL is fine

#endif
