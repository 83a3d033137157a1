// SPDX-License-Identifier: Apache-2.0
// Pass keep: forward tensors that live on for backward are marked `saved`.
//
// eager: by rules, operation by operation, whether backward will read them or not: those of TensorFlow's tape (op_row.keep_in
// and keep_out, reference tensorflow.md D3), which records only operations that a variable flows into; or those of the
// framework of execution.as (ops/framework.h). There each is held until the gradient of its operation has been taken, where
// without a framework the tape holds all to the end of backward.
// graph: what backward instructions really read.
#include "program/draft.h"

typedef struct keeper {
    draft *d;
    bool *forward;   // [tensors] a forward instruction writes it
    bool *watched;   // [tensors] a variable flows into it
    uint32_t *taken; // [instructions by id] forward: the last instruction that takes its gradient; 0: none
    uint32_t *made;  // [tensors] the last backward instruction that writes it; 0: none
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

// The last backward instruction of i. An operation that hands its gradient on has none: it is done with when that is there.
static uint32_t gradient_taken(const keeper *k, const instr *i)
{
    const uint32_t taken = k->taken[i->again ? i->serves : i->id];
    if (taken != 0 || i->again || i->out_count == 0) { // results that came behind autodiff have no gradient
        return taken;
    }
    const uint32_t gradient = k->d->gradient[i->out[0]];
    return gradient == HR_NO_ID ? 0 : k->made[gradient];
}

static unsigned results_of(const draft *d, const framework_rule *rule, const instr *i)
{
    op_query q;
    draft_query(d, i, &q);
    return rule->keep_out | (rule->keeps_result != NULL && rule->keeps_result(&q) ? 0x1u : 0);
}

static void keep_by_rules(const keeper *k, const instr *i)
{
    const op_row *row = op_row_of(i->op);
    const framework_rule *rule = draft_rule(k->d, i->op);
    const unsigned in = rule != NULL ? rule->keep_in : row->keep_in;
    const unsigned out = rule != NULL ? results_of(k->d, rule, i) : row->keep_out;
    const uint32_t until = rule != NULL ? gradient_taken(k, i) : 0;
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
        const framework_rule *rule = computes ? draft_rule(k->d, i->op) : NULL;
        const bool promoted = i->op == HR_OP_CAST && (i->attr.flags & OP_FLAG_PROMOTED) != 0;
        if (rule != NULL && (rule->view || promoted)) {
            k->whole[i->out[0]] = i->in[0];
        }
    }
}

static void note_makers(const keeper *k)
{
    for (uint32_t n = 0; n < k->d->instrs.count; n++) {
        const instr *i = &k->d->instrs.data[n];
        for (uint32_t o = 0; i->phase == HR_PHASE_BACKWARD && o < i->out_count; o++) {
            k->made[i->out[o]] = i->id;
        }
    }
}

// Is it the result of a layer of Keras'? Products take their activation with them; in front of any other it is a layer of its own.
static bool is_returned(const draft *d, uint32_t n)
{
    const instr *i = &d->instrs.data[n];
    const bool product = i->op == HR_OP_DENSE || i->op == HR_OP_CONV2D || i->op == HR_OP_CONV2D_TRANSPOSE;
    const bool last = n + 1 == d->instrs.count || d->instrs.data[n + 1].layer != i->layer;
    return last || !product;
}

// Keras' Functional has a dictionary of what its layers return, until it returns itself.
static void hold_layers(const draft *d)
{
    uint32_t end = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        end = i->phase == HR_PHASE_FORWARD && i->layer != HR_NO_ID ? i->id : end;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->phase == HR_PHASE_FORWARD && i->layer != HR_NO_ID && is_returned(d, n)) {
            tensor *t = &d->tensors.data[i->out[0]];
            t->held_until = t->held_until > end || t->saved ? t->held_until : end;
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
    if (d->eager && !d->pytorch && !d->tensorflow) {
        keep_inputs(d);
    }
    if (d->tensorflow) {
        hold_layers(d);
    }
}

hr_status pass_keep(draft *d, hr_err *err)
{
    keeper k = {.d = d,
                .forward = hr_calloc(d->tensors.count, sizeof *k.forward),
                .watched = hr_calloc(d->tensors.count, sizeof *k.watched),
                .taken = draft_gradients_taken(d),
                .made = hr_calloc(d->tensors.count, sizeof *k.made),
                .whole = hr_calloc(d->tensors.count, sizeof *k.whole)};
    hr_status status = HR_OK;
    if (k.forward == NULL || k.watched == NULL || k.taken == NULL || k.made == NULL || k.whole == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for %u tensors", d->tensors.count);
    } else {
        draft_mark_watched(d, k.watched);
        note_views(&k);
        note_makers(&k);
        keep_all(&k);
    }
    hr_free(k.forward);
    hr_free(k.watched);
    hr_free(k.taken);
    hr_free(k.made);
    hr_free(k.whole);
    return status;
}
