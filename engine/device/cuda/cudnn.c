// SPDX-License-Identifier: Apache-2.0
#include "cudnn.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/shared_library.h"

cudnn_calls cudnn;

#ifdef __SANITIZE_ADDRESS__
// What NVIDIA's libraries keep for the life of a process is no leak of ours. A leak sanitizer asks by this name.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libcudnn\nleak:libcublasLt\nleak:libcuda\n";
}
#endif

enum {
    WORDS_MAX = 320,
    FIRST_VERSION = 90800, // that plans for the properties of a card
};

static bool shows_compiled;

static const shared_call calls[] = {
#define X(name) {#name, offsetof(cudnn_calls, name)},
    CUDNN_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof(cudnn_calls) == sizeof calls / sizeof *calls * sizeof(void *), "nothing but pointers");

static const char attempt[] = "install cuDNN 9 for CUDA 13 (NVIDIA's packages, or pip install "
                              "nvidia-cudnn-cu13 and build again), or -s "
                              "device.kind=plan";

static hr_status check_version(const void *table, hr_err *err)
{
    const size_t version = ((const cudnn_calls *)table)->cudnnGetVersion();
    if (version / 10000 == CUDNN_MAJOR && version >= FIRST_VERSION) {
        return HR_OK;
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' needed cuDNN %d.8 or a later %d, the library is %zu.%zu",
                  CUDNN_MAJOR, CUDNN_MAJOR, version / 10000, version / 100 % 100);
    hr_err_try(err, "%s", attempt);
    return HR_DEPENDENCY;
}

static shared_library library_at(const char *name)
{
    return (shared_library){.soname = name,
                            .needed_by = "device 'cuda'",
                            .attempt = attempt,
                            .calls = calls,
                            .call_count = sizeof calls / sizeof *calls,
                            .check = check_version};
}

// cuDNN opens libcuda.so.1 by its soname, and finds what already has it.
static bool find_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL ||
           (HEADROOM_CUDA_STUB[0] != '\0' && dlopen(HEADROOM_CUDA_STUB, RTLD_LAZY | RTLD_GLOBAL) != NULL);
}

static hr_status open_library(hr_err *err)
{
    const shared_library by_name = library_at(HEADROOM_CUDNN_SONAME),
                         by_path = library_at(HEADROOM_CUDNN_FILE);
    hr_err first = {0};
    shows_compiled = find_driver();
    const hr_status status = shared_library_load(&by_name, &cudnn, &first);
    if (status == HR_OK || shared_library_load(&by_path, &cudnn, NULL) == HR_OK) {
        return HR_OK;
    }
    if (err != NULL) {
        *err = first;
    }
    return status;
}

hr_status cudnn_need(hr_err *err)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool opened;
    if (atomic_load(&opened)) {
        return HR_OK;
    }
    pthread_mutex_lock(&opening);
    const hr_status status = atomic_load(&opened) ? HR_OK : open_library(err);
    atomic_store(&opened, status == HR_OK);
    pthread_mutex_unlock(&opening);
    return status;
}

bool cudnn_shows_compiled(void)
{
    return shows_compiled;
}

hr_status cudnn_check(cudnnStatus_t status, hr_err *err, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS) {
        return HR_OK;
    }
    char words[WORDS_MAX] = "";
    cudnn.cudnnGetLastErrorString(words, sizeof words);
    const char *name = cudnn.cudnnGetErrorString(status);
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
        return HR_FAIL(err, NOMEM, "%s: %s", what, name);
    }
    if (CUDNN_STATUS_CATEGORY((int)status) == CUDNN_STATUS_EXECUTION_FAILED) {
        return HR_FAIL(err, DEVICE_LOST, "%s: %s, %s", what, name, words);
    }
    return HR_FAIL(err, DEVICE, "%s: %s, %s", what, name, words);
}

// ---- descriptors ----------------------------------------------------------------------------------------------

cudnn_maker cudnn_make(cudnnBackendDescriptorType_t type)
{
    cudnn_maker m = {.descriptor = NULL};
    m.status = cudnn.cudnnBackendCreateDescriptor(type, &m.descriptor);
    return m;
}

void cudnn_set(cudnn_maker *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               int64_t count, const void *values)
{
    if (m->status == CUDNN_STATUS_SUCCESS) {
        m->status = cudnn.cudnnBackendSetAttribute(m->descriptor, name, type, count, values);
    }
}

hr_status cudnn_finish(cudnn_maker *m, const char *what, cudnnBackendDescriptor_t *out, hr_err *err)
{
    *out = NULL;
    if (m->status == CUDNN_STATUS_SUCCESS) {
        m->status = cudnn.cudnnBackendFinalize(m->descriptor);
    }
    if (m->status == CUDNN_STATUS_SUCCESS) {
        *out = m->descriptor;
        return HR_OK;
    }
    const hr_status status = cudnn_check(m->status, err, what);
    cudnn_destroy(m->descriptor);
    return status;
}

void cudnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor != NULL) {
        (void)cudnn.cudnnBackendDestroyDescriptor(descriptor);
    }
}
