// SPDX-License-Identifier: Apache-2.0
#include "cublaslt.h"

#include "base/host_mem.h"
#include "base/shared_library.h"

cublaslt_calls cublaslt;

static const shared_call calls[] = {
#define X(name) {#name, offsetof(cublaslt_calls, name)},
    CUBLASLT_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof(cublaslt_calls) == sizeof calls / sizeof *calls * sizeof(void *),
               "nothing but pointers");

static const char hint[] = "apt install " HEADROOM_CUBLASLT_PACKAGE ", or -s device.kind=plan";

static hr_status check_version(const void *table, hr_err *err)
{
    const size_t version = ((const cublaslt_calls *)table)->cublasLtGetVersion();
    if (version / 10000 == CUBLAS_VER_MAJOR) {
        return HR_OK;
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cuda' needed cuBLASLt %d.x, the library is %zu.%zu",
                  CUBLAS_VER_MAJOR, version / 10000, version / 100 % 100);
    hr_err_try(err, "%s", hint);
    return HR_DEPENDENCY;
}

static shared_library library_at(const char *name)
{
    return (shared_library){.soname = name,
                            .needed_by = "device 'cuda'",
                            .hint = hint,
                            .calls = calls,
                            .call_count = sizeof calls / sizeof *calls,
                            .check = check_version};
}

hr_status cublaslt_need(hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    const shared_library by_name = library_at(HEADROOM_CUBLASLT_SONAME),
                         by_path = library_at(HEADROOM_CUBLASLT_FILE);
    const hr_status status = shared_library_need(&by_name, &state, &cublaslt, err);
    return status == HR_OK                                                   ? HR_OK
           : shared_library_need(&by_path, &state, &cublaslt, NULL) == HR_OK ? HR_OK
                                                                             : status;
}

hr_status cublaslt_check(cublasStatus_t status, hr_err *err, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) {
        return HR_OK;
    }
    const char *name = cublaslt.cublasLtGetStatusName(status);
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        return HR_FAIL(err, NOMEM, "%s: %s", what, name);
    }
    if (status == CUBLAS_STATUS_EXECUTION_FAILED && cuda_is_lost()) {
        return HR_FAIL(err, DEVICE_LOST, "%s: %s", what, name);
    }
    return HR_FAIL(err, DEVICE, "%s: %s", what, name);
}

// ---- handles ----------------------------------------------------------------------------------------------------

typedef struct owner {
    const cuda_device *device;
    cublasLtHandle_t handle;
    uint32_t users;
    struct owner *next;
} owner;

static pthread_mutex_t owning = PTHREAD_MUTEX_INITIALIZER;
static owner *owners;

static owner **place_of(const cuda_device *device)
{
    owner **at = &owners;
    while (*at != NULL && (*at)->device != device) {
        at = &(*at)->next;
    }
    return at;
}

static hr_status open_owner(const cuda_device *device, owner **at, hr_err *err)
{
    owner *o = hr_calloc(1, sizeof *o);
    if (o == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a handle of cuBLASLt");
    }
    const hr_status status = cublaslt_check(cublaslt.cublasLtCreate(&o->handle), err, "opening cuBLASLt");
    if (status != HR_OK) {
        hr_free(o);
        return status;
    }
    o->device = device;
    *at = o;
    return HR_OK;
}

hr_status cublaslt_handle_take(const cuda_device *device, cublasLtHandle_t *out, hr_err *err)
{
    HR_TRY(cublaslt_need(err));
    (void)pthread_mutex_lock(&owning);
    owner **at = place_of(device);
    const hr_status status = *at != NULL ? HR_OK : open_owner(device, at, err);
    if (status == HR_OK) {
        (*at)->users++;
        *out = (*at)->handle;
    }
    (void)pthread_mutex_unlock(&owning);
    return status;
}

void cublaslt_handle_leave(const cuda_device *device)
{
    (void)pthread_mutex_lock(&owning);
    owner **at = place_of(device), *o = *at;
    if (o != NULL && --o->users == 0) {
        *at = o->next;
        (void)cublaslt.cublasLtDestroy(o->handle);
        hr_free(o);
    }
    (void)pthread_mutex_unlock(&owning);
}
