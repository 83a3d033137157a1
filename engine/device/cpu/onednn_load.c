// SPDX-License-Identifier: Apache-2.0
#include "isa.h"
#include "onednn_impl.h"

onednn_calls dnnl;

static const shared_call calls[] = {
#define X(name) {"dnnl_" #name, offsetof(onednn_calls, name)},
    ONEDNN_CALL_MAP(X)
#undef X
#define X(symbol, parameters) {#symbol, offsetof(onednn_calls, symbol)},
        ONEDNN_OPENMP_MAP(X)
#undef X
};
_Static_assert(sizeof(onednn_calls) == sizeof calls / sizeof *calls * sizeof(void *), "nothing but pointers");

static const char hint[] = "apt install " HEADROOM_ONEDNN_PACKAGE ", or -s device.kind=reference";

static isa_decision decision; // made while the library is loaded, which happens once

const char *onednn_isa_remark(void)
{
    return decision.remark;
}

// Before its first answer: what it has once looked at stays.
static hr_status keep_from_tiles(const onednn_calls *library, hr_err *err)
{
    const isa_reader reader = isa_reader_here(library->version()->minor);
    decision = isa_decide(&reader);
    if (!decision.without_tiles || library->set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success) {
        return HR_OK;
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cpu' needed oneDNN %s, the library refused", decision.remark);
    hr_err_try(err, "-s device.kind=reference");
    return HR_DEPENDENCY;
}

static hr_status check(const void *table, hr_err *err)
{
    const dnnl_version_t *v = ((const onednn_calls *)table)->version();
    if (v->major == DNNL_VERSION_MAJOR) {
        return keep_from_tiles(table, err);
    }
    (void)HR_FAIL(err, DEPENDENCY, "device 'cpu' needed oneDNN %d.x, the library is %d.%d",
                  DNNL_VERSION_MAJOR, v->major, v->minor);
    hr_err_try(err, "%s", hint);
    return HR_DEPENDENCY;
}

const shared_library onednn_library = {.soname = HEADROOM_ONEDNN_SONAME,
                                       .needed_by = "device 'cpu'",
                                       .hint = hint,
                                       .calls = calls,
                                       .call_count = sizeof calls / sizeof *calls,
                                       .check = check};

hr_status onednn_load(hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    return shared_library_need(&onednn_library, &state, &dnnl, err);
}
