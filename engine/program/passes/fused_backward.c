// SPDX-License-Identifier: Apache-2.0
// Pass fused_backward (optimizer.fused_backward on): every update moves from the end of the step to the place where it
// can first be made: behind the last instruction that reads or writes one of its operands, which is the one that
// completes the gradient or, where the gradient of the layer's input still needs the variable, the one that reads it
// last. Liveness then frees the gradient there, in eager mode too: there is no list of gradients.
//
// Operands, values and order of the updates of one variable stay as they are, so the weights are the same bit for bit.
#include <string.h>

#include "program/draft.h"

static bool is_update(const instr *i)
{
    return i->phase == HR_PHASE_UPDATE && op_needs_kernel(i->op) && i->op != HR_OP_READ;
}

// place[n] of an update: the instruction outside the updates behind which it goes. Updates are in order, so one that
// reads what another wrote (a moving average) can stand behind the same instruction.
static void find_places(const draft *d, uint32_t *touched, uint32_t *place)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        uint32_t last = 0;
        for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
            uint32_t owner = draft_owner(d, k < i->in_count ? i->in[k] : i->out[k - i->in_count]);
            last = touched[owner] > last ? touched[owner] : last;
        }
        place[n] = is_update(i) ? last : n;
        for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
            touched[draft_owner(d, k < i->in_count ? i->in[k] : i->out[k - i->in_count])] = place[n];
        }
    }
}

// A stable counting sort by place, updates behind the instruction itself.
static void reorder(const draft *d, const uint32_t *place, uint32_t *first, instr *sorted)
{
    uint32_t count = d->instrs.count;
    for (uint32_t n = 0; n < count; n++) {
        first[place[n] + 1]++;
    }
    for (uint32_t n = 0; n < count; n++) {
        first[n + 1] += first[n];
    }
    for (int updates = 0; updates < 2; updates++) {
        for (uint32_t n = 0; n < count; n++) {
            if (is_update(&d->instrs.data[n]) == (updates == 1)) {
                sorted[first[place[n]]++] = d->instrs.data[n];
            }
        }
    }
}

hr_status pass_fused_backward(draft *d, hr_err *err)
{
    if (hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off")) {
        return HR_OK;
    }
    uint32_t *touched = hr_calloc(d->tensors.count, sizeof *touched);
    uint32_t *place = hr_calloc(d->instrs.count, sizeof *place);
    uint32_t *first = hr_calloc(d->instrs.count + 1u, sizeof *first);
    instr *sorted = hr_calloc(d->instrs.count, sizeof *sorted);
    hr_status status = HR_OK;
    if (touched == NULL || place == NULL || first == NULL || sorted == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to move %u instructions", d->instrs.count);
    } else {
        find_places(d, touched, place);
        reorder(d, place, first, sorted);
        memcpy(d->instrs.data, sorted, d->instrs.count * sizeof *sorted);
    }
    hr_free(touched);
    hr_free(place);
    hr_free(first);
    hr_free(sorted);
    return status;
}
