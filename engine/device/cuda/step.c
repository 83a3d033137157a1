// SPDX-License-Identifier: Apache-2.0
// A step: what is reached is enqueued, the host waits once, at the end.
#include "step.h"

#include <string.h>

uint8_t *cuda_host_of(const cuda_loaded *l, uint32_t at, uint32_t round)
{
    return l->pinned + round * l->round_bytes + l->instrs[at].host_at;
}

static uint8_t *scalars_of(const cuda_loaded *l, uint32_t round)
{
    return l->pinned + round * l->round_bytes;
}

hr_lane cuda_lane_of(const instr *i)
{
    const bool is_batch = i->op == HR_OP_INPUT || i->op == HR_OP_READ;
    return is_batch ? HR_LANE_COMPUTE : (hr_lane)i->lane;
}

static hr_status enqueue_instr(cuda_loaded *l, const cuda_call *call, step_io *io, hr_err *err)
{
    const instr *i = &l->source->instrs[call->instr];
    const cuda_prepared *k = &l->instrs[call->instr];
    cuda_run r = {.device = l->device,
                  .program = l->source,
                  .query = &k->query,
                  .instr = i,
                  .state = k->state,
                  .function = k->stage[0],
                  .stage = k->stage,
                  .stream = l->device->lane[cuda_lane_of(i)],
                  .workspace = call->address[CALL_WORKSPACE],
                  .workspace_bytes = k->workspace_bytes,
                  .as_is = k->as_is,
                  .io = io};
    memcpy(r.in, call->address, sizeof r.in);
    memcpy(r.out, call->address + OP_MAX_IN, sizeof r.out);
    if (k->scalar_slot != HR_NO_ID) {
        r.scalars = l->device->small + (CUdeviceptr)k->scalar_slot * CUDA_SCALAR_BYTES;
    }
    if (k->impl->host_bytes != NULL && (l->stages || !k->impl->is_batch)) {
        r.host = cuda_host_of(l, call->instr, call->round);
    }
    if (k->impl->is_batch) {
        r.batch = l->stages ? r.host : io->slot[i->attr.slot];
    }
    if (i->op == HR_OP_RECORD || i->op == HR_OP_WAIT) {
        r.event = l->events[i->attr.slot];
    }
    if (k->impl->run_group != NULL) {
        return cuda_group_add(&l->group, k->impl, &r, err);
    }
    HR_TRY(cuda_group_launch(&l->group, err));
    HR_TRY(cuda_mark_begin(l, &r, 1, err));
    HR_TRY(k->impl->run(&r, err));
    HR_TRY(cuda_mark_end(l, &r, err));
    return k->impl->is_batch && l->read != NULL ? CUDA_CALL(err, cuEventRecord, l->read, r.stream) : HR_OK;
}

hr_status cuda_enqueue(cuda_loaded *l, const cuda_call *call, step_io *io, hr_err *err)
{
    l->device->busy = true;
    if (call->instr != HR_NO_ID) {
        return enqueue_instr(l, call, io, err);
    }
    HR_TRY(cuda_group_launch(&l->group, err));
    return CUDA_CALL(err, cuMemcpyHtoDAsync_v2, l->device->small, scalars_of(l, call->round),
                     (size_t)l->scalar_count * CUDA_SCALAR_BYTES, l->device->lane[HR_LANE_COMPUTE]);
}

hr_status cuda_join(cuda_loaded *l, hr_err *err)
{
    CUstream compute = l->device->lane[HR_LANE_COMPUTE];
    HR_TRY(cuda_group_launch(&l->group, err));
    for (uint32_t k = HR_LANE_COMPUTE + 1; k < HR_LANE_COUNT; k++) {
        if (l->uses[k]) {
            HR_TRY(CUDA_CALL(err, cuEventRecord, l->join[k], l->device->lane[k]));
            HR_TRY(CUDA_CALL(err, cuStreamWaitEvent, compute, l->join[k], CU_EVENT_WAIT_DEFAULT));
        }
    }
    return HR_OK;
}

// One more call of this step.
static hr_status add_call(cuda_loaded *l, const cuda_call *call, step_io *io, hr_err *err)
{
    if (l->failed != HR_OK) {
        return hr_err_set(err, l->failed, __FILE__, __LINE__, "what a captured step had put off failed");
    }
    if (l->call_count == l->call_room) {
        return HR_FAIL(err, STATE, "a step of %u calls goes on behind its end", l->call_room);
    }
    cuda_call *place = &l->calls[l->call_count];
    const bool same = l->call_count < l->last_count && memcmp(place, call, sizeof *call) == 0;
    const bool captured = l->call_count >= l->first && l->call_count < l->last;
    if (!same && captured && l->mode != STEP_EAGER) {
        HR_TRY(cuda_divert(l, io, err));
    }
    if (!same && l->call_count < l->last_count && l->moved == HR_NO_ID) {
        l->moved = call->instr;
    }
    l->alike = l->alike && same;
    *place = *call;
    l->call_count++;
    return l->mode == STEP_EAGER || !captured ? cuda_enqueue(l, call, io, err) : HR_OK;
}

// ---- what the executor calls --------------------------------------------------------------------------------------

static void begin_step(cuda_loaded *l)
{
    const bool capture = l->device->capture && !l->never && l->times == NULL && l->steady >= l->capture_after;
    l->mode = l->replay != NULL ? STEP_REPLAY : capture ? STEP_DEFERRED : STEP_EAGER;
    l->device->under_way = l;
    l->group.count = 0;
    l->failed = HR_OK;
    l->alike = true;
    l->moved = HR_NO_ID;
    l->call_count = 0;
}

hr_status cuda_begin_round(void *context, void *kernels, uint32_t round, step_io *io, hr_err *err)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    HR_TRY(cuda_enter(device, err));
    if (round >= l->rounds) {
        return HR_FAIL(err, STATE, "a step of %u rounds began round %u", l->rounds, round);
    }
    if (round == 0) {
        begin_step(l);
    }
    l->round = round;
    for (uint32_t n = 0; l->scalar_count > 0 && n < l->source->instr_count; n++) {
        const cuda_prepared *k = &l->instrs[n];
        if (k->scalar_slot != HR_NO_ID) {
            unsigned char *slot = scalars_of(l, round) + (size_t)k->scalar_slot * CUDA_SCALAR_BYTES;
            k->impl->scalars(&k->query, io, slot);
        }
    }
    const cuda_call call = {.instr = HR_NO_ID, .round = round};
    return l->scalar_count == 0 ? HR_OK : cuda_noted(device, add_call(l, &call, io, err));
}

// What was put off or held back is on its way before a batch for a later step is staged.
static hr_status launch_before_tail(cuda_loaded *l, step_io *io, hr_err *err)
{
    if (l->call_count != l->last || l->failed != HR_OK) {
        return HR_OK;
    }
    if (l->mode == STEP_EAGER) {
        return cuda_group_launch(&l->group, err);
    }
    HR_TRY(cuda_launch_step(l, io, err));
    l->mode = STEP_EAGER;
    return HR_OK;
}

static cuda_call call_of(const cuda_loaded *l, uint32_t at, void *const *address)
{
    const instr *i = &l->source->instrs[at];
    cuda_call call = {.instr = at, .round = l->round};
    for (uint32_t n = 0; n < i->in_count; n++) {
        call.address[n] = (CUdeviceptr)(uintptr_t)address[i->in[n]];
    }
    for (uint32_t n = 0; n < i->out_count; n++) {
        call.address[OP_MAX_IN + n] = (CUdeviceptr)(uintptr_t)address[i->out[n]];
    }
    if (i->workspace != HR_NO_ID) {
        call.address[CALL_WORKSPACE] = (CUdeviceptr)(uintptr_t)address[i->workspace];
    }
    return call;
}

hr_status cuda_run_instr(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                         hr_err *err)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    const cuda_prepared *k = &l->instrs[at];
    if (k->impl == NULL) {
        return HR_OK;
    }
    if (l->mode == STEP_IDLE) {
        return HR_FAIL(err, STATE, "an instruction outside of a step");
    }
    if (k->impl->stage != NULL) {
        HR_TRY(cuda_noted(device, launch_before_tail(l, io, err)));
    }
    if (k->impl->stage != NULL && (l->stages || !k->impl->is_batch)) {
        k->impl->stage(&k->query, io, cuda_host_of(l, at, l->round));
    }
    const cuda_call call = call_of(l, at, address);
    return cuda_noted(device, add_call(l, &call, io, err));
}

hr_status cuda_batch_read(void *context, void *kernels, hr_err *err)
{
    cuda_device *device = context;
    const cuda_loaded *l = kernels;
    if (l->read == NULL) {
        return HR_OK;
    }
    HR_TRY(cuda_enter(device, err));
    return cuda_noted(
        device, cuda_check(cuda_driver.cuEventSynchronize(l->read), err, "waiting for the copy of a batch"));
}

static void collect(const cuda_loaded *l, step_io *io)
{
    for (uint32_t k = 0; k < l->call_count; k++) {
        const cuda_call *call = &l->calls[k];
        const cuda_prepared *prepared = call->instr == HR_NO_ID ? NULL : &l->instrs[call->instr];
        if (prepared != NULL && prepared->impl->collect != NULL) {
            prepared->impl->collect(&prepared->query, cuda_host_of(l, call->instr, call->round), io);
        }
    }
}

static hr_status finish(cuda_loaded *l, step_io *io, hr_err *err)
{
    if (l->failed != HR_OK) {
        return hr_err_set(err, l->failed, __FILE__, __LINE__, "what a captured step had put off failed");
    }
    if (l->mode != STEP_EAGER) {
        HR_TRY(cuda_launch_step(l, io, err));
    }
    if (l->mode == STEP_EAGER) {
        HR_TRY(cuda_join(l, err));
    }
    return cuda_check(cuda_driver.cuStreamSynchronize(l->device->lane[HR_LANE_COMPUTE]), err,
                      "waiting for the end of the step");
}

hr_status cuda_end_step(void *context, void *kernels, step_io *io, hr_err *err)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    HR_TRY(cuda_enter(device, err));
    HR_TRY(cuda_noted(device, finish(l, io, err)));
    device->busy = false;
    device->under_way = NULL;
    l->steady = l->alike && l->call_count == l->last_count ? l->steady + 1 : 0;
    l->last_count = l->call_count;
    l->mode = STEP_IDLE;
    collect(l, io);
    return HR_OK;
}

void cuda_abandon_step(void *context, void *kernels)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    if (l->mode == STEP_EAGER) { // its calls are no longer those of the last whole step
        l->last_count = l->steady = 0;
    }
    device->under_way = NULL;
    l->mode = STEP_IDLE;
    (void)cuda_settle(device, NULL);
}

hr_status cuda_settle(cuda_device *device, hr_err *err)
{
    HR_TRY(cuda_enter(device, err));
    if (device->under_way != NULL) {
        HR_TRY(cuda_noted(device, cuda_catch_up(device->under_way, err)));
    }
    if (!device->busy) {
        return HR_OK;
    }
    HR_TRY(cuda_noted(device, cuda_check(cuda_driver.cuCtxSynchronize(), err, "waiting for the card")));
    device->busy = false;
    return HR_OK;
}
