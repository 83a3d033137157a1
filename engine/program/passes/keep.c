// SPDX-License-Identifier: Apache-2.0
// Pass keep: forward tensors that live on for backward are marked `saved`.
//
// eager: by the framework's rules, operation by operation, whether backward will read them or not: those of TensorFlow's
// tape (op_row.keep_in and keep_out, reference tensorflow.md D3), which records only operations that a variable flows into; or
// under execution.as=pytorch those of ops/pytorch.h. There each is held until the gradient of its operation has been taken,
// where the tape holds all to the end of backward.
// graph: what backward instructions really read.
#include "ops/pytorch.h"
#include "program/draft.h"

typedef struct keeper {
    draft *d;
    bool *forward;   // [tensors] a forward instruction writes it
    bool *watched;   // [tensors] a variable flows into it
    uint32_t *taken; // [instructions by id] forward: the last instruction that takes its gradient; 0: none
    uint32_t *whole; // [tensors] owners: what PyTorch has a view of, where ours is a copy; HR_NO_ID
} keeper;

static void keep(const keeper *k, uint32_t id, uint32_t until, bool again)
{
    uint32_t owner = draft_owner(k->d, id);
    while (k->whole[owner] != HR_NO_ID) {
        id = k->whole[owner];
        owner = draft_owner(k->d, id);
    }
    tensor *t = &k->d->tensors.data[id];
    if (t->dropped && k->d->pytorch) { // torch.utils.checkpoint's hooks keep nothing of it
        return;
    }
    t->saved |= !t->dropped && !again;
    t->held_until =
        until > t->held_until ? until : t->held_until; // backward ids rise in the order of the list
}

static bool is_recorded(const keeper *k, const instr *i)
{
    bool watched = false;
    for (uint32_t n = 0; n < i->in_count; n++) {
        watched = watched || k->watched[i->in[n]];
    }
    return k->d->pytorch ? k->taken[i->again ? i->serves : i->id] != 0 : watched;
}

static void keep_by_rules(const keeper *k, const instr *i)
{
    const op_row *row = op_row_of(i->op);
    const pytorch_rule *rule = k->d->pytorch ? pytorch_rule_of(i->op) : NULL;
    const unsigned in = rule != NULL ? rule->keep_in : row->keep_in;
    const unsigned out = rule != NULL ? rule->keep_out : row->keep_out;
    const uint32_t until = rule != NULL ? k->taken[i->again ? i->serves : i->id] : 0;
    for (uint32_t n = 0; n < i->in_count; n++) {
        if ((in >> n & 1) != 0) {
            keep(k, i->in[n], until, i->again);
        }
    }
    for (uint32_t n = 0; n < i->out_count; n++) {
        if ((out >> n & 1) != 0) {
            keep(k, i->out[n], until, i->again);
        }
    }
}

static bool is_model_input(const draft *d, uint32_t tensor_id)
{
    const uint32_t slot = tensor_id - d->first_input;
    return tensor_id >= d->first_input && slot < d->model->slot_count && !d->model->slots[slot].is_label;
}

// In eager mode x lives until the next step whatever the tape records, and is counted among what is saved; where a
// cast alone reads it, the tape's copy is the cast's result.
static void keep_inputs(draft *d)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; i->phase == HR_PHASE_FORWARD && i->op != HR_OP_CAST && k < i->in_count; k++) {
            d->tensors.data[i->in[k]].saved |= is_model_input(d, i->in[k]);
        }
    }
}

static void note_views(const keeper *k)
{
    for (uint32_t n = 0; n < k->d->tensors.count; n++) {
        k->whole[n] = HR_NO_ID;
    }
    for (uint32_t n = 0; k->d->pytorch && n < k->d->instrs.count; n++) {
        const instr *i = &k->d->instrs.data[n];
        const bool computes = i->phase == HR_PHASE_FORWARD || i->again;
        const pytorch_rule *rule = computes ? pytorch_rule_of(i->op) : NULL;
        const bool promoted = i->op == HR_OP_CAST && (i->attr.flags & OP_FLAG_PROMOTED) != 0;
        if (rule != NULL && (rule->view || promoted)) {
            k->whole[i->out[0]] = i->in[0];
        }
    }
}

// What the gradient of each instruction's results needs, in the order of the list.
static void keep_all(const keeper *k)
{
    draft *d = k->d;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        const bool computes = i->phase == HR_PHASE_FORWARD || (i->again && d->pytorch);
        if (computes && d->eager && is_recorded(k, i)) {
            keep_by_rules(k, i);
        }
        for (uint32_t o = 0; o < i->out_count; o++) {
            k->forward[i->out[o]] |= i->phase == HR_PHASE_INPUT || i->phase == HR_PHASE_FORWARD;
        }
        for (uint32_t o = 0; i->phase == HR_PHASE_BACKWARD && !d->eager && o < i->in_count; o++) {
            d->tensors.data[i->in[o]].saved |= k->forward[i->in[o]];
        }
    }
    if (d->eager && !d->pytorch) {
        keep_inputs(d);
    }
}

hr_status pass_keep(draft *d, hr_err *err)
{
    keeper k = {.d = d,
                .forward = hr_calloc(d->tensors.count, sizeof *k.forward),
                .watched = hr_calloc(d->tensors.count, sizeof *k.watched),
                .taken = draft_gradients_taken(d),
                .whole = hr_calloc(d->tensors.count, sizeof *k.whole)};
    hr_status status = HR_OK;
    if (k.forward == NULL || k.watched == NULL || k.taken == NULL || k.whole == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for %u tensors", d->tensors.count);
    } else {
        draft_mark_watched(d, k.watched);
        note_views(&k);
        keep_all(&k);
    }
    hr_free(k.forward);
    hr_free(k.watched);
    hr_free(k.taken);
    hr_free(k.whole);
    return status;
}
