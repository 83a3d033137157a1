// SPDX-License-Identifier: Apache-2.0
// A library that has every function the cpu device asks for, and is a oneDNN of another major version. Nothing but its
// version is ever called.
#include <oneapi/dnnl/dnnl_types.h>
#include <oneapi/dnnl/dnnl_version.h>

#include "device_cpu/onednn_calls.h"

#define X(name)                                                                                              \
    const void *dnnl_##name(void);                                                                           \
    const void *dnnl_##name(void)                                                                            \
    {                                                                                                        \
        static const dnnl_version_t version = {.major = DNNL_VERSION_MAJOR + 1, .minor = 7};                 \
        return &version;                                                                                     \
    }
ONEDNN_CALL_MAP(X)
#undef X

#define X(name, parameters)                                                                                  \
    void name(void);                                                                                         \
    void name(void)                                                                                          \
    {                                                                                                        \
    }
ONEDNN_OPENMP_MAP(X)
#undef X
