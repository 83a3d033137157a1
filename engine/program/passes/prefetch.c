// SPDX-License-Identifier: Apache-2.0
// Pass prefetch (pipeline.device_prefetch K): the batch of a round was copied to the device K rounds earlier.
//
//   compute   advance x:ahead1 → x, record a, … the round …                              wait b
//   h2d       wait a, advance x:ahead2 → x:ahead1 …, prefetch x:aheadK ← host, record b
//
// The batches held ahead move up one place in every round, so that no address changes from step to step: a step stays a
// list that can be captured, and a copy within the device takes a small part of the one from the host. That one
// stands at the end of the list, though it may begin when the lane is free: the device that enqueues it has then put everything
// else on its way, and reads the batch while the device computes.
#include <string.h>

#include "program/draft.h"

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
}

// The first event that is free.
static int32_t free_event(const draft *d)
{
    int32_t event = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        event = i->op == HR_OP_RECORD && i->attr.slot >= event ? i->attr.slot + 1 : event;
    }
    return event;
}

static uint32_t ahead_tensor(const draft *d, uint32_t place, uint32_t slot)
{
    return d->first_ahead + (place - 1) * d->model->slot_count + slot;
}

static hr_status add_order(draft *d, instr_list *list, hr_op op, hr_phase phase, hr_lane lane, int32_t event,
                           hr_err *err)
{
    instr *i = draft_instr(d, list, op, phase, HR_NO_ID);
    if (i == NULL) {
        return no_memory(err);
    }
    i->lane = (uint8_t)lane;
    i->attr.slot = event;
    return HR_OK;
}

static hr_status add_advance(draft *d, instr_list *list, hr_lane lane, uint32_t from, uint32_t to,
                             hr_err *err)
{
    instr *i = draft_instr(d, list, HR_OP_ADVANCE, HR_PHASE_INPUT, HR_NO_ID);
    if (i == NULL) {
        return no_memory(err);
    }
    i->lane = (uint8_t)lane;
    instr_in(i, from);
    instr_out(i, to);
    return HR_OK;
}

// Every batch moves up one place; the last place is free then.
static hr_status add_shifts(draft *d, instr_list *list, hr_err *err)
{
    for (uint32_t place = 1; place < d->ahead; place++) {
        for (uint32_t k = 0; k < d->model->slot_count; k++) {
            HR_TRY(add_advance(d, list, HR_LANE_H2D, ahead_tensor(d, place + 1, k), ahead_tensor(d, place, k),
                               err));
        }
    }
    return HR_OK;
}

static hr_status add_copies(draft *d, instr_list *list, hr_phase phase, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->slot_count; k++) {
        instr *i = draft_instr(d, list, HR_OP_PREFETCH, phase, HR_NO_ID);
        if (i == NULL) {
            return no_memory(err);
        }
        i->lane = HR_LANE_H2D;
        i->attr.slot = (int32_t)k;
        instr_out(i, ahead_tensor(d, d->ahead, k));
    }
    return HR_OK;
}

// In the place of the round's inputs.
static hr_status add_begin(draft *d, instr_list *list, int32_t event, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->slot_count; k++) {
        HR_TRY(add_advance(d, list, HR_LANE_COMPUTE, ahead_tensor(d, 1, k), d->first_input + k, err));
    }
    HR_TRY(add_order(d, list, HR_OP_RECORD, HR_PHASE_INPUT, HR_LANE_COMPUTE, event, err));
    HR_TRY(add_order(d, list, HR_OP_WAIT, HR_PHASE_INPUT, HR_LANE_H2D, event, err));
    return add_shifts(d, list, err);
}

// Behind everything else of the round.
static hr_status add_end(draft *d, instr_list *list, int32_t event, hr_err *err)
{
    const hr_phase phase = (hr_phase)list->data[list->count - 1].phase;
    HR_TRY(add_copies(d, list, phase, err));
    HR_TRY(add_order(d, list, HR_OP_RECORD, phase, HR_LANE_H2D, event, err));
    return add_order(d, list, HR_OP_WAIT, phase, HR_LANE_COMPUTE, event, err);
}

static hr_status copy_instr(instr_list *list, const instr *i, hr_err *err)
{
    instr *place = vec_push(list);
    if (place == NULL) {
        return no_memory(err);
    }
    *place = *i;
    return HR_OK;
}

static hr_status write_round(draft *d, instr_list *list, hr_err *err)
{
    const int32_t event = free_event(d);
    bool looped = false;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->op == HR_OP_END) {
            looped = true;
            HR_TRY(add_end(d, list, event + 1, err));
        }
        if (i->op != HR_OP_INPUT) {
            HR_TRY(copy_instr(list, i, err));
        } else if (i->attr.slot == 0) { // the first of them
            HR_TRY(add_begin(d, list, event, err));
        }
    }
    return looped ? HR_OK : add_end(d, list, event + 1, err);
}

static hr_status write_feed(draft *d, instr_list *list, hr_err *err)
{
    HR_TRY(add_shifts(d, list, err));
    return add_copies(d, list, HR_PHASE_INPUT, err);
}

hr_status pass_prefetch(draft *d, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    if (d->ahead == 0) {
        return HR_OK;
    }
    const hr_status status = d->mode == PROGRAM_FEED ? write_feed(d, &list, err) : write_round(d, &list, err);
    if (status != HR_OK) {
        vec_deinit(&list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return HR_OK;
}
