// SPDX-License-Identifier: Apache-2.0
// Pass fuse_wide (graph only): under a mixed policy a product of two-byte values writes the gradients of its weights in
// float32, as its sums are, where the target can.
//
//   dense_bwd_weights → dw, db in two bytes, cast(dw), cast(db)     becomes   dense_bwd_weights → dw, db in float32
//
// The two-byte copies are never born, and what they would have rounded away stays.
#include "program/draft.h"

// widened[t]: the instruction that casts t to float32, and nothing else reads t; HR_NO_ID: there is none.
static void find_casts(const draft *d, const draft_uses *u, uint32_t *widened)
{
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        widened[k] = HR_NO_ID;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->op == HR_OP_CAST && i->phase == HR_PHASE_BACKWARD && draft_is_passing(d, u, i->in[0]) &&
            d->tensors.data[i->out[0]].dtype == HR_F32) {
            widened[i->in[0]] = n;
        }
    }
}

static void widen_results(draft *d, const uint32_t *widened, instr *product)
{
    for (uint32_t k = 0; k < product->out_count; k++) {
        if (widened[product->out[k]] == HR_NO_ID) {
            return; // all of them or none
        }
    }
    for (uint32_t k = 0; k < product->out_count; k++) {
        instr *cast = &d->instrs.data[widened[product->out[k]]];
        product->out[k] = cast->out[0];
        cast->op = HR_OP_COUNT;
    }
}

hr_status pass_fuse_wide(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    uint32_t *widened = hr_calloc(d->tensors.count, sizeof *widened);
    const bool enough = widened != NULL;
    if (enough) {
        find_casts(d, &u, widened);
    }
    for (uint32_t n = 0; enough && n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        if (i->op < HR_OP_COUNT && target_absorbs(d->target, TARGET_WIDENS, i->op)) {
            widen_results(d, widened, i);
        }
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    hr_free(widened);
    return enough ? HR_OK
                  : HR_FAIL(err, NOMEM, "no host memory for the casts of %u tensors", d->tensors.count);
}
