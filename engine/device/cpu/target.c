// SPDX-License-Identifier: Apache-2.0
// What the passes are told: the same choice that load makes, without a kernel being made.
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "headroom/units.h"

#include "cpu.h"

// Whoever answers: what is summed behind a library's kernel counts as well.
static hr_status check_limit(const op_query *q, const target_answer *answer, uint64_t limit_bytes,
                             hr_err *err)
{
    uint64_t bytes = answer->workspace_bytes;
    for (uint32_t k = 0; k < answer->reorder_count; k++) {
        bytes += answer->reorder[k].bytes;
    }
    if (bytes > limit_bytes) {
        char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
        (void)HR_FAIL(err, DEVICE, "%s needs %s of workspace, workspace.limit is %s", op_name((hr_op)q->op),
                      hr_bytes_human(bytes, needed), hr_bytes_human(limit_bytes, had));
        hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(bytes, needed));
        return HR_DEVICE;
    }
    return HR_OK;
}

static hr_status answer(const cpu_device *device, const op_query *q, uint64_t workspace_limit,
                        target_answer *out, hr_err *err)
{
    const cpu_impl *impl = NULL;
    *out = (target_answer){0};
    if (!op_needs_kernel((hr_op)q->op)) {
        return HR_OK;
    }
    HR_TRY(cpu_pick(device, q, &impl, err));
    if (impl->ask != NULL) {
        HR_TRY(impl->ask(device, q, workspace_limit, out, err));
    } else {
        out->impl = strcmp(impl->name, CPU_LIBRARY) == 0 ? CPU_LIBRARY : target_impl_name("own", impl->name);
        out->workspace_bytes = impl->workspace == NULL ? 0 : impl->workspace(device, q);
    }
    return check_limit(q, out, workspace_limit, err);
}

// Planners ask on threads of their own; the library is asked by one at a time, for the run's number of threads.
static hr_status ask(void *context, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err)
{
    static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;
    const cpu_device *device = context;
    onednn_ask_for_threads(device->threads);
    pthread_mutex_lock(&library);
    const hr_status status = answer(device, q, workspace_limit, out, err);
    pthread_mutex_unlock(&library);
    return status;
}

static bool absorbs(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return (what == TARGET_GRADIENT && op == HR_OP_SOFTMAX_XENT_STREAM) ||
           (what == TARGET_MASKS && device_masks(op));
}

void cpu_fill_target(cpu_device *device, const char *name, hr_target *out)
{
    *out = (hr_target){.name = name,
                       .key = device->key,
                       .slow_to_ask = true,
                       .context = device,
                       .ask = ask,
                       .fuses = device_fuses,
                       .absorbs = absorbs};
}
