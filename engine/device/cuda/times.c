// SPDX-License-Identifier: Apache-2.0
// How long instructions take on the card: an event before and one behind what each of them enqueues, on its own stream. A
// step that is timed is never captured. Where the card has nothing left to do, a time has the host's launch in it.
#include "base/host_mem.h"
#include "step.h"

hr_status cuda_time(void *context, void *kernels, hr_err *err)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    HR_TRY(cuda_enter(device, err));
    l->times = hr_calloc(l->source->instr_count, sizeof *l->times);
    if (l->times == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the times of %u instructions", l->source->instr_count);
    }
    for (uint32_t k = 0; k < l->source->instr_count; k++) {
        cuda_timed *t = &l->times[k];
        t->head = HR_NO_ID;
        if (l->instrs[k].impl != NULL) {
            HR_TRY(cuda_noted(device, CUDA_CALL(err, cuEventCreate, &t->begin, CU_EVENT_DEFAULT)));
            HR_TRY(cuda_noted(device, CUDA_CALL(err, cuEventCreate, &t->end, CU_EVENT_DEFAULT)));
        }
    }
    return HR_OK;
}

void cuda_drop_times(cuda_loaded *l)
{
    for (uint32_t k = 0; l->times != NULL && k < l->source->instr_count; k++) {
        if (l->times[k].begin != NULL) {
            (void)cuda_driver.cuEventDestroy_v2(l->times[k].begin);
        }
        if (l->times[k].end != NULL) {
            (void)cuda_driver.cuEventDestroy_v2(l->times[k].end);
        }
    }
    hr_free(l->times);
}

hr_status cuda_mark_begin(cuda_loaded *l, const cuda_run *runs, uint32_t count, hr_err *err)
{
    if (l->times == NULL) {
        return HR_OK;
    }
    const uint32_t head = (uint32_t)(runs[0].instr - l->source->instrs);
    l->times[head].bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        l->times[runs[k].instr - l->source->instrs].head = head;
        l->times[head].bytes += runs[k].instr->bytes_moved;
    }
    return CUDA_CALL(err, cuEventRecord, l->times[head].begin, runs[0].stream);
}

hr_status cuda_mark_end(cuda_loaded *l, const cuda_run *runs, hr_err *err)
{
    return l->times == NULL ? HR_OK
                            : CUDA_CALL(err, cuEventRecord, l->times[runs[0].instr - l->source->instrs].end,
                                        runs[0].stream);
}

hr_status cuda_took(void *kernels, uint32_t at, uint64_t *ns, hr_err *err)
{
    const cuda_loaded *l = kernels;
    const uint32_t head = l->times[at].head;
    float ms = 0;
    *ns = 0;
    if (head == HR_NO_ID) {
        return HR_OK;
    }
    HR_TRY(CUDA_CALL(err, cuEventElapsedTime_v2, &ms, l->times[head].begin, l->times[head].end));
    const uint64_t mine = l->source->instrs[at].bytes_moved, all = l->times[head].bytes;
    const double share = all == 0 ? (double)(at == head) : (double)mine / (double)all;
    *ns = (uint64_t)((double)ms * 1e6 * share);
    return HR_OK;
}
