// SPDX-License-Identifier: Apache-2.0
// Pass fuse_casts (graph only): a cast between two-byte activations and an operation that works in float32 is left out where
// the target's kernel casts what it reads and writes by itself. The float32 copies of a language model's logits and of
// their gradient are the largest tensors of its step. The values are the same, bit for bit.
#include "program/draft.h"

static bool casts_itself(const draft *d, const instr *i)
{
    return target_absorbs(d->target, TARGET_CASTS, i->op);
}

static void count_willing(const draft *d, uint32_t *willing)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; casts_itself(d, i) && k < i->in_count; k++) {
            willing[i->in[k]]++;
        }
    }
}

static bool is_half(const tensor *t)
{
    return t->dtype == HR_F16 || t->dtype == HR_BF16;
}

static bool is_wide_activation(const tensor *t)
{
    return t->dtype == HR_F32 && t->category == HR_CATEGORY_ACTIVATIONS && !t->persistent && !t->saved;
}

// Can all that read the float32 copy read the original?
static bool is_read_willingly(const draft *d, const draft_uses *u, const uint32_t *willing, const instr *cast)
{
    const uint32_t wide = cast->out[0];
    return is_half(&d->tensors.data[cast->in[0]]) && is_wide_activation(&d->tensors.data[wide]) &&
           u->readers[wide] > 0 && willing[wide] == u->readers[wide];
}

// What writes a float32 gradient for nothing but this cast writes the cast's result.
static bool write_result(draft *d, const draft_uses *u, const instr *cast)
{
    const uint32_t wide = cast->in[0];
    if (u->writer[wide] == HR_NO_ID || !is_half(&d->tensors.data[cast->out[0]]) || u->readers[wide] != 1 ||
        !is_wide_activation(&d->tensors.data[wide])) {
        return false;
    }
    instr *writer = &d->instrs.data[u->writer[wide]];
    if (writer->phase != HR_PHASE_BACKWARD || writer->out_count != 1 || !casts_itself(d, writer)) {
        return false;
    }
    writer->out[0] = cast->out[0];
    return true;
}

static void leave_out(draft *d, const draft_uses *u, const uint32_t *willing, uint32_t *original)
{
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        original[k] = k;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            i->in[k] = original[i->in[k]];
        }
        if (i->op == HR_OP_CAST && is_read_willingly(d, u, willing, i)) {
            original[i->out[0]] = i->in[0];
            i->op = HR_OP_COUNT;
        } else if (i->op == HR_OP_CAST && write_result(d, u, i)) {
            i->op = HR_OP_COUNT;
        }
    }
    draft_close_gaps(d);
}

hr_status pass_fuse_casts(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    uint32_t *willing = hr_calloc(d->tensors.count, sizeof *willing);
    uint32_t *original = hr_calloc(d->tensors.count, sizeof *original);
    const bool enough = willing != NULL && original != NULL;
    if (enough) {
        count_willing(d, willing);
        leave_out(d, &u, willing, original);
    }
    hr_free(willing);
    hr_free(original);
    draft_uses_deinit(&u);
    return enough ? HR_OK
                  : HR_FAIL(err, NOMEM, "no host memory for the casts of %u tensors", d->tensors.count);
}
