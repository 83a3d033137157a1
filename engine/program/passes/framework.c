// SPDX-License-Identifier: Apache-2.0
// Pass framework (execution.as), behind keep: what a framework asks for and our kernels do without (ops/framework.h).
//
//   results in a wider type get its bytes
//   hold → what an operation keeps beside its operands and results, behind the operation
//   hold → what it makes on the way, before the operation; what its gradient makes, before or behind the gradient
//   hold → in PyTorch the gradient of the loss by itself, which backward begins with and has to its end
//
// An operation whose rule is not known is refused by name, as is one in float64 for which PyTorch has another way.
#include "ops/pytorch.h"
#include "program/draft.h"

typedef struct holder {
    draft *d;
    instr_list list;
    const uint32_t
        *taken; // [instructions by id] forward: the last instruction that takes its gradient; 0: none
    uint32_t
        *forward; // [instructions by id] index of a forward instruction in the list before; HR_NO_ID once its
                  // gradient's extras are there
    uint32_t *place; // [instructions by id] index of it in the list before
    uint32_t *
        kept; // [instructions by id] of a forward one: the first tensor that it keeps beside its own; HR_NO_ID
    uint32_t *last_read; // [tensors] owners: id of the last instruction of backward that reads it; 0: none
    uint32_t last_backward, first_hold; // ids; first_hold: from it on instructions are this pass's
    uint32_t
        divided;  // the gradient of the loss over batch.accumulate, until the loss's own takes it; HR_NO_ID
    uint32_t way; // the first tensor that was asked for before the gradient at hand
    bool begun;   // backward has
} holder;

static hr_status no_memory(const draft *d, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for what a framework holds beside %u instructions",
                   d->instrs.count);
}

// `bytes` beside `like`, until `until`.
static hr_status add_hold(holder *h, const instr *at, uint32_t like, const char *name, uint64_t bytes,
                          uint32_t until, hr_err *err)
{
    draft *d = h->d;
    const bool kept = at->phase == HR_PHASE_FORWARD || at->again;
    const draft_held held = {.name = draft_suffixed(d, d->tensors.data[like].name, name),
                             .bytes = bytes,
                             .category = kept ? HR_CATEGORY_ACTIVATIONS : HR_CATEGORY_TEMPORARIES,
                             .phase = (hr_phase)at->phase,
                             .layer = at->layer,
                             .until = until};
    uint32_t id = 0;
    return draft_hold(d, &h->list, &held, &id, err);
}

static hr_status widen(draft *d, const framework_rule *rule, const instr *i, const op_query *q, hr_err *err)
{
    for (unsigned k = 0; rule->out_bytes != NULL && k < i->out_count; k++) {
        tensor *t = &d->tensors.data[i->out[k]];
        const uint64_t bytes = rule->out_bytes(q, k);
        if (bytes != 0 && bytes < t->bytes) {
            return HR_FAIL(err, MODEL, "%s has %llu B, as PyTorch has it %llu B", t->name,
                           (unsigned long long)t->bytes, (unsigned long long)bytes);
        }
        t->padding_bytes += bytes == 0 ? 0 : bytes - t->bytes;
        t->bytes = bytes == 0 ? t->bytes : bytes;
    }
    return HR_OK;
}

// A second time inside a segment that torch.utils.checkpoint runs again; the first time it keeps nothing.
static bool is_dropped(const draft *d, const instr *i)
{
    return !i->again && d->tensors.data[i->out[0]].dropped;
}

static hr_status add_kept_one(holder *h, const instr *i, const framework_extra *extra, uint64_t bytes,
                              hr_err *err)
{
    const uint32_t forward = i->again ? i->serves : i->id, id = h->d->tensors.count;
    HR_TRY(add_hold(h, i, i->out[0], extra->name, bytes,
                    extra->to_the_end ? h->last_backward : h->taken[forward], err));
    tensor *t = &h->d->tensors.data[id];
    if (is_dropped(h->d, i)) {
        t->held_until = extra->when == EXTRA_FIRST ? i->id : h->list.data[h->list.count - 1].id;
        return HR_OK;
    }
    t->saved = !extra->unseen && !i->again;
    h->kept[forward] = h->kept[forward] == HR_NO_ID ? id : h->kept[forward];
    return HR_OK;
}

// Of what was asked for since tensor `first`: what goes when this instruction is there.
static void let_go(holder *h, uint32_t first, uint32_t until)
{
    for (uint32_t k = first; k < h->d->tensors.count; k++) {
        h->d->tensors.data[k].held_until = until;
    }
}

static uint32_t last_id(const holder *h)
{
    return h->list.data[h->list.count - 1].id;
}

// What instruction i keeps beside its own, of the kind, when it computes for the gradient.
static hr_status add_kept(holder *h, const instr *i, int when, hr_err *err)
{
    const framework_rule *rule = draft_rule(h->d, i->op);
    const uint32_t forward = i->again ? i->serves : i->id;
    uint32_t brief = HR_NO_ID;
    op_query q;
    draft_query(h->d, i, &q);
    for (unsigned k = 0; k < FRAMEWORK_MAX_EXTRAS && h->taken[forward] != 0; k++) {
        const framework_extra *extra = &rule->extra[k];
        const uint64_t bytes = extra->name == NULL || (int)extra->when != when ? 0 : extra->bytes(&q);
        for (unsigned n = 0; bytes != 0 && (n == 0 || n < extra->copies); n++) {
            brief = extra->brief && when == EXTRA_KEPT ? h->d->tensors.count : brief;
            HR_TRY(add_kept_one(h, i, extra, bytes, err));
        }
    }
    if (brief != HR_NO_ID) {
        h->d->tensors.data[brief].held_until = last_id(h);
    }
    return HR_OK;
}

// What instruction i asks for before its results, and gives back when they are there.
static hr_status add_now(holder *h, const instr *i, hr_err *err)
{
    const framework_rule *rule = draft_rule(h->d, i->op);
    const uint32_t first = h->d->tensors.count;
    op_query q;
    draft_query(h->d, i, &q);
    for (unsigned k = 0; k < FRAMEWORK_MAX_EXTRAS; k++) {
        const framework_extra *extra = &rule->extra[k];
        const uint64_t bytes = extra->name == NULL || extra->when != EXTRA_NOW ? 0 : extra->bytes(&q);
        HR_TRY(bytes == 0 ? HR_OK : add_hold(h, i, i->out[0], extra->name, bytes, i->id, err));
    }
    let_go(h, first, i->id);
    return HR_OK;
}

static bool has_within(const framework_rule *rule, const op_query *q)
{
    bool within = false;
    for (unsigned k = 0; k < FRAMEWORK_MAX_EXTRAS; k++) {
        const framework_extra *extra = &rule->extra[k];
        within = within || (extra->name != NULL && extra->when == EXTRA_WITHIN && extra->bytes(q) != 0);
    }
    return within;
}

// What gradient i is made of lives to see `until`.
static void extend(holder *h, const instr *i, const instr *forward, uint32_t until)
{
    tensor *tensors = h->d->tensors.data;
    const uint32_t taken = h->taken[forward->id];
    for (uint32_t k = 0; k < i->in_count; k++) {
        tensor *t = &tensors[i->in[k]];
        t->held_until = t->held_until <= i->id || t->held_until >= h->first_hold ? until : t->held_until;
    }
    for (uint32_t k = h->kept[forward->id]; k < h->d->tensors.count; k++) {
        tensors[k].held_until = tensors[k].held_until == taken ? until : tensors[k].held_until;
    }
}

// Behind i, the gradient of `forward`.
static hr_status add_within(holder *h, const instr *i, const instr *forward, hr_err *err)
{
    const framework_rule *rule = draft_rule(h->d, forward->op);
    const uint32_t first = h->d->tensors.count;
    uint32_t lasting = first;
    op_query q;
    draft_query(h->d, forward, &q);
    for (unsigned k = 0; k < FRAMEWORK_MAX_EXTRAS; k++) {
        const framework_extra *extra = &rule->extra[k];
        const uint64_t bytes = extra->name == NULL || extra->when != EXTRA_WITHIN ? 0 : extra->bytes(&q);
        if (bytes == 0) {
            continue;
        }
        HR_TRY(add_hold(h, i, forward->out[0], extra->name, bytes, i->id, err));
        lasting += extra->brief;
        if (lasting + 1 == h->d->tensors.count) { // the first that is not brief
            let_go(h, first, last_id(h));
        }
    }
    if (h->d->tensors.count > first) {
        let_go(h, lasting, last_id(h));
        extend(h, i, forward, last_id(h));
    }
    return HR_OK;
}

// Does nobody read the gradient of its result when `forward`'s has been taken?
static bool goes(const holder *h, const instr *forward)
{
    const uint32_t gradient = h->d->gradient[forward->out[0]];
    return gradient != HR_NO_ID && h->last_read[draft_owner(h->d, gradient)] <= h->taken[forward->id];
}

// At backward instruction i, the first that takes the gradient of `forward`: before it, or behind it and at once given back.
static hr_status add_on_the_way(holder *h, const instr *i, const instr *forward, int when, hr_err *err)
{
    const framework_rule *rule = draft_rule(h->d, forward->op);
    op_query q;
    draft_query(h->d, forward, &q);
    const bool within = has_within(rule, &q);
    for (unsigned k = 0; k < FRAMEWORK_MAX_EXTRAS; k++) {
        const framework_extra *extra = &rule->extra[k];
        const uint64_t bytes = extra->name == NULL || (int)extra->when != when ? 0 : extra->bytes(&q);
        if (bytes == 0) {
            continue;
        }
        HR_TRY(add_hold(h, i, forward->out[0], extra->name, bytes, h->taken[forward->id], err));
        const uint32_t here = last_id(h);
        if (when == EXTRA_BEHIND || (when == EXTRA_INSTEAD && goes(h, forward))) {
            h->d->tensors.data[h->d->tensors.count - 1].held_until = here;
        }
        if (h->divided != HR_NO_ID) {
            h->d->tensors.data[h->divided].held_until = here;
            h->divided = HR_NO_ID;
        }
        if (h->kept[forward->id] != HR_NO_ID && !within) { // the extras of forward are done with
            h->d->tensors.data[h->kept[forward->id]].held_until = here;
        }
    }
    return HR_OK;
}

// Before the first instruction of backward: the gradient of the loss. A loss of several rounds is divided by their number.
static hr_status begin(holder *h, const instr *i, hr_err *err)
{
    draft *d = h->d;
    const uint32_t loss = d->value_tensor[d->model->losses[0].value];
    const uint64_t bytes = d->tensors.data[loss].bytes;
    const bool divides = hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) > 1;
    instr forward = *i;
    forward.phase = HR_PHASE_FORWARD;
    h->begun = true;
    if (divides) { // the loss before goes then: as many bytes
        HR_TRY(add_hold(h, &forward, loss, "divided", bytes, 0, err));
        d->tensors.data[d->tensors.count - 1].held_until = h->list.data[h->list.count - 1].id;
    }
    HR_TRY(add_hold(h, i, loss, "grad", bytes, h->last_backward, err));
    if (divides) {
        h->divided = d->tensors.count;
        HR_TRY(add_hold(h, i, loss, "divided:grad", bytes, i->id, err));
    }
    return HR_OK;
}

static hr_status add_before(holder *h, const instr *i, hr_err *err)
{
    const draft *d = h->d;
    if (i->phase != HR_PHASE_BACKWARD) {
        return HR_OK;
    }
    HR_TRY(h->begun || d->tensorflow ? HR_OK : begin(h, i, err));
    const uint32_t at = h->forward[i->serves];
    if (i->serves == 0 || i->again || at == HR_NO_ID) {
        return HR_OK;
    }
    const instr forward = d->instrs.data[at];
    h->way = d->tensors.count;
    HR_TRY(add_on_the_way(h, i, &forward, EXTRA_GRADIENT, err));
    return add_on_the_way(h, i, &forward, EXTRA_INSTEAD, err);
}

// A bias's gradient, behind the product's: what the sum over all rows takes (ops/pytorch.h). Of three side by side there is one.
static hr_status add_sums(holder *h, const instr *i, const instr *forward, hr_err *err)
{
    const draft *d = h->d;
    const hr_target *card = d->target;
    if (!d->pytorch || i->op != HR_OP_DENSE_BWD_WEIGHTS || i->out_count < 2 ||
        d->tensors.data[i->out[1]].storage != i->out[1]) {
        return HR_OK;
    }
    const tensor *bias = &d->tensors.data[i->out[1]], *gradient = &d->tensors.data[i->in[1]];
    const hr_shape *s = &gradient->shape;
    uint64_t elements = 0;
    (void)shape_elements(s, &elements);
    const pytorch_sums sums =
        pytorch_column_sums(elements / (uint64_t)s->dim[s->rank - 1], bias->bytes / dtype_bytes(bias->dtype),
                            gradient->dtype, card->compute_major, card->compute_minor, card->multiprocessors);
    const uint32_t first = h->d->tensors.count, like = i->out[1];
    if (sums.found_bytes != 0) {
        HR_TRY(add_hold(h, i, like, "sums", sums.found_bytes, i->id, err));
        HR_TRY(add_hold(h, i, like, "counters", sums.counter_bytes, i->id, err));
        let_go(h, first, last_id(h));
        extend(h, i, forward, last_id(h));
    }
    return HR_OK;
}

static hr_status add_behind(holder *h, const instr *i, hr_err *err)
{
    if (i->phase == HR_PHASE_FORWARD || i->again) {
        op_query q;
        draft_query(h->d, i, &q);
        HR_TRY(widen(h->d, draft_rule(h->d, i->op), i, &q, err));
        return add_kept(h, i, EXTRA_KEPT, err);
    }
    const uint32_t made = h->place[i->serves];
    if (i->phase == HR_PHASE_BACKWARD && i->serves != 0) {
        const instr forward = h->d->instrs.data[made];
        HR_TRY(add_sums(h, i, &forward, err));
    }
    uint32_t *at = &h->forward[i->serves];
    if (i->phase != HR_PHASE_BACKWARD || i->serves == 0 || *at == HR_NO_ID) {
        return HR_OK;
    }
    const instr forward = h->d->instrs.data[*at];
    const uint32_t way_end = h->d->tensors.count;
    *at = HR_NO_ID;
    HR_TRY(add_within(h, i, &forward, err));
    for (uint32_t k = h->way; h->d->tensors.count > way_end && k < way_end; k++) {
        h->d->tensors.data[k].held_until = last_id(h);
    }
    return add_on_the_way(h, i, &forward, EXTRA_BEHIND, err);
}

// autocast lets go of its casts when it ends, behind the loss; those that autograd keeps live on.
static void hold_casts(holder *h)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < h->list.count; n++) {
        last = h->list.data[n].phase == HR_PHASE_FORWARD ? h->list.data[n].id : last;
    }
    for (uint32_t k = 0; k < h->d->tensors.count; k++) {
        tensor *t = &h->d->tensors.data[k];
        t->held_until = t->category == HR_CATEGORY_CASTS && t->held_until == 0 ? last : t->held_until;
    }
}

static hr_status check_known(const draft *d, const instr *i, hr_err *err)
{
    const framework_rule *rule = draft_rule(d, i->op);
    const bool too_wide = rule != NULL && rule->not_float64 && d->tensors.data[i->out[0]].dtype == HR_F64;
    if (rule != NULL && !too_wide) {
        return HR_OK;
    }
    const char *layer = i->layer == HR_NO_ID ? "the loss" : d->model->layers[i->layer].name;
    const hr_status status = HR_FAIL(err, MODEL, "execution.as=%s has no rule for %s%s (%s)",
                                     hr_knob_text(d->knobs, HR_KNOB_EXECUTION_AS), op_name(i->op),
                                     too_wide ? " in float64" : "", layer);
    hr_err_try(err, "-s %s", too_wide ? "precision.policy=float32" : "execution.as=headroom");
    return status;
}

static hr_status add_all(holder *h, hr_err *err)
{
    for (uint32_t n = 0; n < h->d->instrs.count; n++) {
        const instr i = h->d->instrs.data[n];
        const bool held = i.op == HR_OP_HOLD; // by a pass before
        const bool computes = i.phase == HR_PHASE_FORWARD && !held;
        HR_TRY(computes ? check_known(h->d, &i, err) : HR_OK);
        HR_TRY(add_before(h, &i, err));
        HR_TRY(computes || i.again ? add_kept(h, &i, EXTRA_FIRST, err) : HR_OK);
        HR_TRY(computes || i.again ? add_now(h, &i, err) : HR_OK);
        instr *placed = vec_push(&h->list);
        if (placed == NULL) {
            return no_memory(h->d, err);
        }
        *placed = i;
        HR_TRY(held ? HR_OK : add_behind(h, &i, err));
    }
    if (h->d->pytorch) {
        hold_casts(h);
    }
    return HR_OK;
}

static void note_places(holder *h)
{
    for (uint32_t n = 0; n < h->d->instrs.count; n++) {
        const instr *i = &h->d->instrs.data[n];
        h->forward[i->id] = h->place[i->id] = n;
        h->kept[i->id] = HR_NO_ID;
        h->last_backward = i->phase == HR_PHASE_BACKWARD ? i->id : h->last_backward;
        for (uint32_t k = 0; i->phase == HR_PHASE_BACKWARD && k < i->in_count; k++) {
            h->last_read[draft_owner(h->d, i->in[k])] = i->id;
        }
    }
}

hr_status pass_framework(draft *d, hr_err *err)
{
    if (!d->pytorch && !d->tensorflow) {
        return HR_OK;
    }
    uint32_t *taken = draft_gradients_taken(d);
    holder h = {.d = d,
                .taken = taken,
                .forward = hr_calloc(d->next_instr_id + 1u, sizeof *h.forward),
                .place = hr_calloc(d->next_instr_id + 1u, sizeof *h.place),
                .kept = hr_calloc(d->next_instr_id + 1u, sizeof *h.kept),
                .last_read = hr_calloc(d->tensors.count + 1u, sizeof *h.last_read),
                .first_hold = d->next_instr_id,
                .divided = HR_NO_ID};
    hr_status status = HR_OK;
    if (taken == NULL || h.forward == NULL || h.place == NULL || h.kept == NULL || h.last_read == NULL) {
        status = no_memory(d, err);
    } else {
        note_places(&h);
        status = add_all(&h, err);
    }
    hr_free(taken);
    hr_free(h.forward);
    hr_free(h.place);
    hr_free(h.kept);
    hr_free(h.last_read);
    if (status != HR_OK) {
        vec_deinit(&h.list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = h.list;
    return HR_OK;
}
