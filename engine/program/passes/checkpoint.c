// SPDX-License-Identifier: Apache-2.0
// Pass, checkpoint: results of the forward phase that backward reads are dropped, and computed again right before
// their first reader in backward from what was kept:
//
//   forward    conv1 → a, relu → b, conv2 → c …            a and b die after their last forward reader
//   backward   conv1 again → a', relu again → b',           b' is read in b's place
//              conv2_bwd_weights(b', dc) …
//
// A strategy only says which tensors are dropped. Layers lie in segments: what crosses from one segment into another
// is kept, what stays inside is dropped; the last segment is kept whole, since backward begins there. `selective`
// drops what is cheap to make again from what is kept anyway.
//
// The same instructions run on the same bytes: the weights are the same bit for bit. Batch normalisation is applied
// again with the statistics of its first time, which are kept: running statistics move once.
#include "knobs/checkpoint.h"

#include <math.h>
#include <string.h>

#include "program/checkpoint_again.h"
#include "program/checkpoint_evict.h"

typedef struct plan {
    uint32_t forward_count; // instructions before the first of backward
    uint32_t *writer;       // [tensors] index of the forward instruction that writes it, HR_NO_ID
    uint32_t *segment; // [layers] 1, 2, …; 0 of the teacher's, of which backward reads the logits alone
    uint8_t *keeps;    // [layers] segment_keeps
    bool *cheap;       // [tensors] what may be dropped because little makes it again
    uint32_t *again;   // [tensors] its second self, HR_NO_ID
    uint32_t *stack;   // [instructions] what is still to be followed
    bool *wanted;      // [instructions] of forward: to run again now
} plan;

static void plan_deinit(plan *p)
{
    hr_free(p->writer);
    hr_free(p->segment);
    hr_free(p->keeps);
    hr_free(p->cheap);
    hr_free(p->again);
    hr_free(p->stack);
    hr_free(p->wanted);
}

static hr_status plan_init(const draft *d, plan *p, hr_err *err)
{
    *p = (plan){.writer = hr_calloc(d->tensors.count, sizeof *p->writer),
                .segment = hr_calloc(d->model->layer_count + 1u, sizeof *p->segment),
                .keeps = hr_calloc(d->model->layer_count + 1u, sizeof *p->keeps),
                .cheap = hr_calloc(d->tensors.count, sizeof *p->cheap),
                .again = hr_calloc(d->tensors.count, sizeof *p->again),
                .stack = hr_calloc(d->instrs.count + 1u, sizeof *p->stack),
                .wanted = hr_calloc(d->instrs.count + 1u, sizeof *p->wanted)};
    if (p->writer == NULL || p->segment == NULL || p->keeps == NULL || p->cheap == NULL || p->again == NULL ||
        p->stack == NULL || p->wanted == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to plan the recomputation of %u instructions",
                       d->instrs.count);
    }
    memset(p->writer, 0xff, d->tensors.count * sizeof *p->writer);
    memset(p->again, 0xff, d->tensors.count * sizeof *p->again);
    while (p->forward_count < d->instrs.count &&
           d->instrs.data[p->forward_count].phase != HR_PHASE_BACKWARD) {
        const instr *i = &d->instrs.data[p->forward_count];
        for (uint32_t k = 0; k < i->out_count; k++) {
            p->writer[i->out[k]] = p->forward_count;
        }
        p->forward_count++;
    }
    return HR_OK;
}

static uint32_t layer_of_tensor(const draft *d, const plan *p, uint32_t id)
{
    return p->writer[id] == HR_NO_ID ? HR_NO_ID : d->instrs.data[p->writer[id]].layer;
}

// ---- segments -------------------------------------------------------------------------------------------------

static void cut_every(const draft *d, plan *p, uint32_t layers)
{
    for (uint32_t l = 0; l < d->model->own_layers; l++) {
        p->segment[l] = l / layers + 1;
    }
}

// cut[l]: a segment ends behind layer l.
static void cut_behind(const draft *d, plan *p, const bool *cut)
{
    uint32_t segment = 1;
    for (uint32_t l = 0; l < d->model->own_layers; l++) {
        p->segment[l] = segment;
        segment += cut[l];
    }
}

// Behind every residual block; without any, as sqrt.
static hr_status cut_blocks(const draft *d, plan *p, hr_err *err)
{
    bool *cut = hr_calloc(d->model->layer_count + 1u, sizeof *cut);
    if (cut == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the blocks of %u layers", d->model->layer_count);
    }
    const hr_status status = draft_cut_blocks(d, p->writer, p->forward_count, cut, err);
    if (status == HR_OK && memchr(cut, true, d->model->own_layers) != NULL) {
        cut_behind(d, p, cut);
    } else if (status == HR_OK) {
        cut_every(d, p, (uint32_t)ceil(sqrt((double)d->model->own_layers)));
    }
    hr_free(cut);
    return status;
}

static hr_status cut_named(const draft *d, const char *name, size_t length, bool *cut, hr_err *err)
{
    for (uint32_t l = 0; l < d->model->own_layers; l++) {
        const char *layer = d->model->layers[l].name;
        if (strlen(layer) == length && memcmp(layer, name, length) == 0) {
            cut[l] = true;
            return HR_OK;
        }
    }
    hr_status status =
        HR_FAIL(err, KNOB, "checkpoint.strategy=list names a layer '%.*s' that the model does not have",
                (int)length, name);
    hr_err_try(err,
               "headroom plan PRESET --listing shows the layers; -s checkpoint.strategy=sqrt needs none");
    return status;
}

static hr_status cut_list(const draft *d, plan *p, const char *names, hr_err *err)
{
    bool *cut = hr_calloc(d->model->layer_count + 1u, sizeof *cut);
    hr_status status = cut == NULL ? HR_FAIL(err, NOMEM, "no host memory for the segments of %u layers",
                                             d->model->layer_count)
                                   : HR_OK;
    while (status == HR_OK && *names != '\0') {
        const size_t length = strcspn(names, ",");
        status = cut_named(d, names, length, cut, err);
        names += length + (names[length] == ',');
    }
    if (status == HR_OK) {
        cut_behind(d, p, cut);
    }
    hr_free(cut);
    return status;
}

static void cut_as(const draft *d, plan *p, const checkpoint_way *way)
{
    for (uint32_t l = 0; l < d->model->own_layers; l++) {
        p->segment[l] = way->segment[l];
        p->keeps[l] = way->keeps[l];
    }
}

// Backward begins in the last one.
static void keep_last_whole(const draft *d, plan *p)
{
    for (uint32_t l = 0; l < d->model->own_layers; l++) {
        const bool last = p->segment[l] == p->segment[d->model->own_layers - 1];
        p->keeps[l] = last ? KEEPS_ALL : KEEPS_NOTHING;
    }
}

static hr_status cut_segments(const draft *d, plan *p, const checkpoint_strategy *s, hr_err *err)
{
    switch (s->kind) {
    case CHECKPOINT_NONE:
    case CHECKPOINT_BUDGET:
        return HR_OK;
    case CHECKPOINT_EVERY:
        cut_every(d, p, s->layers);
        return HR_OK;
    case CHECKPOINT_SQRT:
        cut_every(d, p, (uint32_t)ceil(sqrt((double)d->model->own_layers)));
        return HR_OK;
    case CHECKPOINT_SELECTIVE:
        cut_every(d, p, 1);
        return HR_OK;
    case CHECKPOINT_BLOCKS:
        return cut_blocks(d, p, err);
    case CHECKPOINT_LIST:
        return cut_list(d, p, s->names, err);
    }
    return HR_OK;
}

// ---- what is dropped ------------------------------------------------------------------------------------------

static bool may_drop(const draft *d, const plan *p, uint32_t id)
{
    const uint32_t writer = p->writer[id];
    if (writer == HR_NO_ID || d->tensors.data[id].persistent) {
        return false;
    }
    const instr *i = &d->instrs.data[writer];
    const bool statistics = i->op == HR_OP_BATCH_NORM && id != i->out[0];
    return i->phase == HR_PHASE_FORWARD && i->layer < d->model->own_layers && !statistics;
}

// Probabilities that an eager tape would hold to the end of backward, beside the logits that they are made of.
static bool may_drop_loss(const draft *d, const plan *p, uint32_t id)
{
    const uint32_t writer = p->writer[id];
    return d->eager && !d->pytorch && !d->tensorflow && writer != HR_NO_ID &&
           d->instrs.data[writer].op == HR_OP_SOFTMAX_XENT && id == d->instrs.data[writer].out[0];
}

// Does its segment let go of it?
static bool goes(const draft *d, const plan *p, uint32_t id)
{
    const uint8_t keeps = p->keeps[layer_of_tensor(d, p, id)];
    return keeps == KEEPS_NOTHING || (keeps == KEEPS_COSTLY && p->cheap[id]);
}

// A storage that some later segment reads is kept, and with it every tensor that lies in it.
static hr_status drop_inside_segments(draft *d, const plan *p, hr_err *err)
{
    bool *crosses = hr_calloc(d->tensors.count, sizeof *crosses);
    if (crosses == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the segments of %u tensors", d->tensors.count);
    }
    for (uint32_t n = 0; n < p->forward_count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            const uint32_t from = layer_of_tensor(d, p, i->in[k]);
            crosses[draft_owner(d, i->in[k])] |=
                from == HR_NO_ID || i->layer == HR_NO_ID || p->segment[from] != p->segment[i->layer];
        }
    }
    for (uint32_t t = d->persistent_count; t < d->tensors.count; t++) {
        d->tensors.data[t].dropped = may_drop(d, p, t) && goes(d, p, t) && !crosses[draft_owner(d, t)];
    }
    hr_free(crosses);
    return HR_OK;
}

static void mark_backward_reads(const draft *d, const plan *p, bool *needed)
{
    for (uint32_t n = p->forward_count; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            needed[i->in[k]] = true;
        }
    }
}

// Are all inputs there in backward: kept for their own sake, or made again themselves?
static bool can_be_made(const draft *d, const instr *i, const bool *there)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        if (!d->tensors.data[i->in[k]].persistent && !there[i->in[k]]) {
            return false;
        }
    }
    return true;
}

// What is cheap is dropped where nothing has to be kept in its stead: a normalised convolution, because the
// normalisation keeps the convolution's result; a residual sum of such; but not a sum of dense results, which nobody
// else keeps.
static hr_status find_cheap(const draft *d, const plan *p, hr_err *err)
{
    bool *there = hr_calloc(d->tensors.count, sizeof *there); // needed in backward; then: there in backward
    if (there == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to choose among %u tensors", d->tensors.count);
    }
    mark_backward_reads(d, p, there);
    for (uint32_t n = 0; n < p->forward_count; n++) {
        const instr *i = &d->instrs.data[n];
        const bool again = op_row_of(i->op)->traits.recompute == OP_CHEAP && can_be_made(d, i, there);
        for (uint32_t k = 0; k < i->out_count; k++) {
            p->cheap[i->out[k]] = again && may_drop(d, p, i->out[k]);
            there[i->out[k]] |= again || i->phase == HR_PHASE_INPUT;
        }
    }
    hr_free(there);
    return HR_OK;
}

static void drop_what_is_cheap(draft *d, const plan *p)
{
    for (uint32_t t = 0; t < d->tensors.count; t++) {
        d->tensors.data[t].dropped = p->cheap[t];
    }
}

// ---- running again --------------------------------------------------------------------------------------------

// Marks the forward instructions that must run again so that `id` exists again; returns the first of them.
static uint32_t want(const draft *d, plan *p, uint32_t id)
{
    uint32_t depth = 0;
    uint32_t first = p->writer[id];
    p->stack[depth++] = first;
    p->wanted[first] = true;
    while (depth > 0) {
        const uint32_t n = p->stack[--depth];
        const instr *i = &d->instrs.data[n];
        first = n < first ? n : first;
        for (uint32_t k = 0; k < i->in_count; k++) {
            const uint32_t t = i->in[k];
            if (d->tensors.data[t].dropped && p->again[t] == HR_NO_ID && !p->wanted[p->writer[t]]) {
                p->wanted[p->writer[t]] = true;
                p->stack[depth++] = p->writer[t];
            }
        }
    }
    return first;
}

// Makes `id` again, and before it everything that it takes.
static hr_status make_again(draft *d, plan *p, uint32_t id, instr_list *list, hr_err *err)
{
    for (uint32_t n = want(d, p, id); n <= p->writer[id]; n++) {
        if (p->wanted[n]) {
            p->wanted[n] = false;
            HR_TRY(draft_run_again(d, n, &(draft_again){.self = p->again}, list, err));
        }
    }
    return HR_OK;
}

static hr_status place(draft *d, plan *p, instr i, bool forward, instr_list *list, hr_err *err)
{
    for (uint32_t k = 0; k < i.in_count; k++) {
        const uint32_t t = i.in[k];
        if (forward || !d->tensors.data[t].dropped) {
            continue;
        }
        if (p->again[t] == HR_NO_ID) {
            HR_TRY(make_again(d, p, t, list, err));
        }
        i.in[k] = p->again[t];
    }
    instr *placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    return HR_OK;
}

static hr_status rebuild(draft *d, plan *p, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t n = 0; n < d->instrs.count && status == HR_OK; n++) {
        status = place(d, p, d->instrs.data[n], n < p->forward_count, &list, err);
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return status;
}

// ---- the tape of a segment (eager) ----------------------------------------------------------------------------
//
// What runs again is recorded on a tape of its own, which goes when the segment's gradients have been taken.

static uint32_t segment_of(const plan *p, const instr *i)
{
    return i->layer == HR_NO_ID ? 0 : p->segment[i->layer];
}

static void hold_until(draft *d, const uint32_t *tensors, uint32_t count, uint8_t kept, uint32_t last)
{
    for (uint32_t k = 0; k < count; k++) {
        tensor *t = &d->tensors.data[tensors[k]];
        if ((kept >> k & 1) != 0 && !t->persistent) {
            t->held_until = last;
        }
    }
}

static hr_status hold_tapes(draft *d, const plan *p, hr_err *err)
{
    uint32_t *last = hr_calloc(d->model->layer_count + 2u, sizeof *last); // by segment: instruction id
    if (last == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the tapes of %u layers", d->model->layer_count);
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->phase == HR_PHASE_BACKWARD && !i->again) {
            last[segment_of(p, i)] = i->id;
        }
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->again) {
            const op_row *row = op_row_of(i->op);
            hold_until(d, i->in, i->in_count, row->keep_in, last[segment_of(p, i)]);
            hold_until(d, i->out, i->out_count, row->keep_out, last[segment_of(p, i)]);
        }
    }
    hr_free(last);
    return HR_OK;
}

static hr_status drop_and_make_again(draft *d, plan *p, const checkpoint_strategy *s, hr_err *err)
{
    if (s->kind == CHECKPOINT_BUDGET && d->way->steps != NULL) {
        return evictions_replay(d, d->way, p->again, err);
    }
    HR_TRY(cut_segments(d, p, s, err));
    if (s->kind == CHECKPOINT_BUDGET) {
        HR_TRY(find_cheap(d, p, err));
        cut_as(d, p, d->way);
    } else {
        keep_last_whole(d, p);
    }
    if (s->kind == CHECKPOINT_SELECTIVE) {
        HR_TRY(find_cheap(d, p, err));
        drop_what_is_cheap(d, p);
    } else {
        HR_TRY(drop_inside_segments(d, p, err));
    }
    HR_TRY(rebuild(d, p, err));
    return d->eager && !d->pytorch ? hold_tapes(d, p, err) : HR_OK; // keep does it by the rules of PyTorch
}

// The step stays as it is: what comes of it is the ways.
static hr_status find_ways(draft *d, const plan *p, uint64_t budget_bytes, hr_err *err)
{
    bool *droppable = hr_calloc(d->tensors.count, sizeof *droppable);
    segments *s = NULL;
    if (droppable == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to choose among %u tensors", d->tensors.count);
    }
    for (uint32_t t = 0; t < d->tensors.count; t++) {
        droppable[t] = may_drop(d, p, t) || (d->ways->by_value && may_drop_loss(d, p, t));
    }
    hr_status status = HR_OK;
    if (d->ways->by_value) {
        status = evictions_find(d, p->forward_count, droppable, budget_bytes, d->ways, err);
        hr_free(droppable);
        return status;
    }
    status = find_cheap(d, p, err);
    if (status == HR_OK) {
        status = segments_create(d, p->forward_count, droppable, p->cheap, &s, err);
    }
    if (status == HR_OK) {
        status = checkpoint_ways_find(d, s, budget_bytes, d->ways, err);
    }
    segments_destroy(s);
    hr_free(droppable);
    return status;
}

hr_status pass_checkpoint(draft *d, hr_err *err)
{
    checkpoint_strategy s;
    HR_TRY(checkpoint_strategy_of(d->knobs, &s, err));
    const bool finds = d->ways != NULL && s.kind == CHECKPOINT_BUDGET;
    if (s.kind == CHECKPOINT_NONE || (s.kind == CHECKPOINT_BUDGET && d->way == NULL && !finds)) {
        return HR_OK;
    }
    plan p = {0};
    hr_status status = plan_init(d, &p, err);
    if (status == HR_OK) {
        status = finds ? find_ways(d, &p, s.budget_bytes, err) : drop_and_make_again(d, &p, &s, err);
    }
    plan_deinit(&p);
    return status;
}
