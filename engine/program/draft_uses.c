// SPDX-License-Identifier: Apache-2.0
// The writers and readers of a draft's tensors: for the passes that leave instructions out.
#include "program/draft.h"

static void count(const draft *d, draft_uses *u)
{
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        u->writer[k] = HR_NO_ID;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            u->readers[i->in[k]]++;
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            u->writer[i->out[k]] = n;
        }
    }
}

hr_status draft_count_uses(const draft *d, draft_uses *out, hr_err *err)
{
    *out = (draft_uses){.writer = hr_calloc(d->tensors.count, sizeof *out->writer),
                        .readers = hr_calloc(d->tensors.count, sizeof *out->readers)};
    if (out->writer == NULL || out->readers == NULL) {
        draft_uses_deinit(out);
        return HR_FAIL(err, NOMEM, "no host memory for the uses of %u tensors", d->tensors.count);
    }
    count(d, out);
    return HR_OK;
}

void draft_uses_deinit(draft_uses *u)
{
    hr_free(u->writer);
    hr_free(u->readers);
    *u = (draft_uses){NULL, NULL};
}

bool draft_is_passing(const draft *d, const draft_uses *u, uint32_t tensor_id)
{
    const tensor *t = &d->tensors.data[tensor_id];
    return u->readers[tensor_id] == 1 && !t->persistent && !t->saved;
}

void draft_close_gaps(draft *d)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (d->instrs.data[n].op != HR_OP_COUNT) {
            d->instrs.data[kept++] = d->instrs.data[n];
        }
    }
    d->instrs.count = kept;
}

uint32_t *draft_gradients_taken(const draft *d)
{
    uint32_t *taken = hr_calloc(d->next_instr_id + 1u, sizeof *taken);
    for (uint32_t n = 0; taken != NULL && n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->serves != 0 && !i->again) {
            taken[i->serves] = i->id;
        }
    }
    return taken;
}
