// SPDX-License-Identifier: Apache-2.0
// Pass liveness: every tensor that is not persistent gets an `alloc` before its first writer and a `free`
// behind the last instruction it must live for; results take the storage of an input that dies there, where the
// operation allows it.
//
// graph: a tensor lives until its last use.
// eager: TensorFlow's semantics (reference tensorflow.md D3): what the tape keeps lives until the last gradient
// has been taken (execution.tape persistent: until the step ends), logits and loss until the step ends, the gradient
// list until the last update. Inside a loop, the step is the round.
// eager, execution.as: what the framework keeps lives until the gradient of its operation has been taken; as=pytorch:
// gradients of weights until the step ends, when zero_grad lets go of them; as=tensorflow: nothing is done in place, as Python
// still names the operands.
#include <string.h>

#include "program/draft.h"

typedef struct lifetimes {
    uint32_t *release;             // [tensors] for owners: index of the last instruction it lives for
    uint32_t *birth;               // [tensors] for owners: index of the first instruction that writes it
    bool *born;                    // [tensors]
    uint32_t loop_begin, loop_end; // REPEAT and END; equal: there is no loop
} lifetimes;

static void first_writes(const draft *d, lifetimes *l)
{
    for (uint32_t n = d->instrs.count; n-- > 0;) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->out_count; k++) {
            l->birth[draft_owner(d, i->out[k])] = n;
        }
        if (i->workspace != HR_NO_ID) {
            l->birth[i->workspace] = n;
        }
        l->loop_begin = i->op == HR_OP_REPEAT ? n : l->loop_begin;
        l->loop_end = i->op == HR_OP_END ? n : l->loop_end;
    }
}

static void last_uses(const draft *d, lifetimes *l)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            l->release[draft_owner(d, i->in[k])] = n;
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            l->release[draft_owner(d, i->out[k])] = n;
        }
        if (i->workspace != HR_NO_ID) {
            l->release[i->workspace] = n;
        }
    }
}

static void hold(const draft *d, lifetimes *l, uint32_t id, uint32_t until)
{
    uint32_t owner = draft_owner(d, id);
    if (l->release[owner] < until) {
        l->release[owner] = until;
    }
}

static uint32_t last_of_phase(const draft *d, hr_phase phase)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        last = d->instrs.data[n].phase == phase ? n : last;
    }
    return last;
}

// Where the list of gradients is let go: behind the last instruction that reads one of them.
static uint32_t last_gradient_use(const draft *d)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            last = d->tensors.data[i->in[k]].category == HR_CATEGORY_GRADIENTS ? n : last;
        }
    }
    return last;
}

// What a tape of its own holds (of a segment; in a framework of every operation), until its gradients have been taken.
static hr_status hold_segment_tapes(const draft *d, lifetimes *l, hr_err *err)
{
    uint32_t *index = hr_calloc(d->next_instr_id, sizeof *index); // by id
    if (index == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the places of %u instructions", d->next_instr_id);
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        index[d->instrs.data[n].id] = n;
    }
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        if (d->tensors.data[k].held_until != 0 && l->release[draft_owner(d, k)] != 0) {
            hold(d, l, k, index[d->tensors.data[k].held_until]);
        }
    }
    hr_free(index);
    return HR_OK;
}

static void hold_as_eager(const draft *d, lifetimes *l)
{
    uint32_t step_end = d->instrs.count - 1;
    bool persistent = hr_knob_is(d->knobs, HR_KNOB_EXECUTION_TAPE, "persistent");
    uint32_t tape = persistent ? step_end : last_of_phase(d, HR_PHASE_BACKWARD);
    const bool summed =
        d->pytorch && hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) > 1; // in .grad, at once
    bool listed = hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off") && !summed;
    uint32_t update = d->pytorch ? step_end : last_gradient_use(d);
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        const tensor *t = &d->tensors.data[k];
        const bool by_rules = d->pytorch || (d->tensorflow && t->held_until != 0);
        if (t->saved && (!by_rules || persistent)) {
            hold(d, l, k, tape);
        }
        if (listed && t->category == HR_CATEGORY_GRADIENTS && l->release[k] > 0) {
            hold(d, l, k, update);
        }
    }
    // An argument lives as long as the call: until the loss is there.
    const bool dropped = d->pytorch && hr_knob_is(d->knobs, HR_KNOB_EXECUTION_ANSWER, "dropped");
    const uint32_t answered = dropped ? last_of_phase(d, HR_PHASE_FORWARD) : step_end;
    for (uint32_t k = 0; k < d->model->loss_count; k++) {
        hold(d, l, d->value_tensor[d->model->losses[k].prediction], answered);
        hold(d, l, d->value_tensor[d->model->losses[k].value], step_end);
    }
}

// What is born in a round dies in it; what a round reads of before lives until the last one is over.
static void settle_loop(const draft *d, lifetimes *l)
{
    for (uint32_t k = d->persistent_count; l->loop_begin < l->loop_end && k < d->tensors.count; k++) {
        bool inside = l->birth[k] > l->loop_begin && l->birth[k] < l->loop_end;
        if (inside && l->release[k] >= l->loop_end) {
            l->release[k] = l->loop_end - 1;
        } else if (!inside && l->release[k] > l->loop_begin && l->release[k] < l->loop_end) {
            l->release[k] = l->loop_end;
        }
    }
}

// Both operands of x + x: writing over one would write over the other.
static bool reads_twice(const draft *d, const instr *i, uint32_t owner)
{
    unsigned count = 0;
    for (uint32_t k = 0; k < i->in_count; k++) {
        count += draft_owner(d, i->in[k]) == owner;
    }
    return count > 1;
}

static bool may_overwrite(const draft *d, const lifetimes *l, uint32_t n, uint32_t owner, const tensor *to)
{
    const tensor *from = &d->tensors.data[owner];
    return !from->persistent && l->release[owner] == n && from->bytes == to->bytes &&
           from->layout == to->layout && to->category != HR_CATEGORY_RETAINED &&
           (from->category != HR_CATEGORY_TEMPORARIES || to->category == HR_CATEGORY_TEMPORARIES) &&
           !reads_twice(d, &d->instrs.data[n], owner);
}

// Is the gradient a view there? That of the rows of a sequence is the product's result, in another shape.
static bool is_viewed(const draft *d, const lifetimes *l, const instr *sum)
{
    const tensor *t = &d->tensors.data[sum->in[0]];
    const instr *i = &d->instrs.data[l->birth[draft_owner(d, sum->in[0])]];
    const bool joined = d->tensors.data[sum->in[1]].storage != sum->in[1]; // all three are one product there
    return i->op == HR_OP_DENSE_BWD_DATA && t->shape.rank > 2 && !joined;
}

// PyTorch's networks say which of their operations work in place; gradients that meet are added up in place, unless the first is
// a view, whose storage somebody else may have.
static bool pytorch_overwrites(const draft *d, const lifetimes *l, const instr *i, bool off)
{
    const framework_rule *rule = i->phase == HR_PHASE_FORWARD || i->again ? draft_rule(d, i->op) : NULL;
    return rule != NULL
               ? (rule->in_place && !off) || (i->attr.flags & OP_FLAG_IN_PLACE) != 0
               : i->phase == HR_PHASE_BACKWARD && i->op == HR_OP_ADD && i->serves == 0 && !is_viewed(d, l, i);
}

// A result takes over the storage of an input that is not needed after this instruction.
static void share_storage(draft *d, lifetimes *l)
{
    const bool off = hr_knob_is(d->knobs, HR_KNOB_EXECUTION_INPLACE, "off");
    if (d->tensorflow || (off && !d->pytorch)) {
        return;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        int8_t k = !d->pytorch || pytorch_overwrites(d, l, i, off) ? op_row_of(i->op)->in_place : -1;
        uint32_t result = i->out_count == 0 ? HR_NO_ID : i->out[op_row_of(i->op)->in_place_out];
        if (k < 0 || result == HR_NO_ID || d->tensors.data[result].storage != result ||
            d->tensors.data[result].persistent) {
            continue;
        }
        uint32_t owner = draft_owner(d, i->in[k]);
        if (may_overwrite(d, l, n, owner, &d->tensors.data[result])) {
            d->tensors.data[result].storage = owner;
            l->release[owner] = l->release[result];
        }
    }
}

static hr_status emit(draft *d, instr_list *list, hr_op op, const instr *at, uint32_t id, hr_err *err)
{
    instr *i = draft_instr(d, list, op, (hr_phase)at->phase, d->tensors.data[id].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    if (op == HR_OP_ALLOC) {
        instr_out(i, id);
    } else {
        instr_in(i, id);
    }
    return HR_OK;
}

static hr_status emit_births(draft *d, lifetimes *l, instr_list *list, const instr *i, hr_err *err)
{
    const framework_rule *rule = draft_rule(d, i->op);
    const bool mm = d->pytorch && i->op == HR_OP_DENSE_BWD_WEIGHTS && (i->attr.flags & OP_FLAG_TURNED) != 0;
    const bool last_first =
        (rule != NULL && rule->last_first) || mm; // a bias that was added has its gradient first
    for (uint32_t k = 0; k < i->out_count; k++) {
        uint32_t owner = draft_owner(d, i->out[last_first ? i->out_count - 1 - k : k]);
        const tensor *t = &d->tensors.data[owner];
        if (!t->persistent && !tensor_on_host(t) && !l->born[owner]) {
            l->born[owner] = true;
            HR_TRY(emit(d, list, HR_OP_ALLOC, i, owner, err));
        }
    }
    if (i->workspace == HR_NO_ID || l->born[i->workspace]) {
        return HR_OK;
    }
    l->born[i->workspace] = true;
    return emit(d, list, HR_OP_ALLOC, i, i->workspace, err);
}

// A copy that is made in the workspace of a later instruction: first the results of that one, as without the copy.
static hr_status emit_births_behind(draft *d, lifetimes *l, instr_list *list, uint32_t n, hr_err *err)
{
    const instr *i = &d->instrs.data[n];
    const uint32_t owner = i->op == HR_OP_REORDER ? draft_owner(d, i->out[0]) : HR_NO_ID;
    if (owner == HR_NO_ID || owner == i->out[0] || l->born[owner]) {
        return HR_OK;
    }
    for (uint32_t k = n + 1; k < d->instrs.count; k++) {
        if (d->instrs.data[k].workspace == owner) {
            return emit_births(d, l, list, &d->instrs.data[k], err);
        }
    }
    return HR_OK;
}

// Owners in the order of their release, ascending ids within one instruction: a counting sort. Afterwards those
// released at instruction n are order[first[n + 1] .. first[n + 2]).
static void order_by_release(const draft *d, const lifetimes *l, uint32_t *first, uint32_t *order)
{
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        first[l->release[k] + 1] += d->tensors.data[k].storage == k;
    }
    for (uint32_t n = 0; n <= d->instrs.count; n++) {
        first[n + 1] += first[n];
    }
    for (uint32_t k = d->tensors.count; k-- > d->persistent_count;) {
        if (d->tensors.data[k].storage == k) {
            order[--first[l->release[k] + 1]] = k;
        }
    }
}

static hr_status emit_all(draft *d, lifetimes *l, const uint32_t *first, const uint32_t *order, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    const uint32_t owners = first[d->instrs.count + 1]; // each is born once and released once
    hr_status status = vec_reserve(&list, d->instrs.count + 2 * owners)
                           ? HR_OK
                           : HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    for (uint32_t n = 0; n < d->instrs.count && status == HR_OK; n++) {
        instr i = d->instrs.data[n];
        status = emit_births_behind(d, l, &list, n, err);
        status = status == HR_OK ? emit_births(d, l, &list, &i, err) : status;
        instr *placed = status == HR_OK ? vec_push(&list) : NULL;
        if (placed == NULL) {
            status = status != HR_OK ? status
                                     : HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
            break;
        }
        *placed = i;
        for (uint32_t k = first[n + 1]; k < first[n + 2] && status == HR_OK; k++) {
            bool freed = d->tensors.data[order[k]].category != HR_CATEGORY_RETAINED;
            if (freed && l->born[order[k]]) {
                status = emit(d, &list, HR_OP_FREE, &i, order[k], err);
            }
        }
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return status;
}

hr_status pass_liveness(draft *d, hr_err *err)
{
    lifetimes l = {.release = hr_calloc(d->tensors.count, sizeof *l.release),
                   .birth = hr_calloc(d->tensors.count, sizeof *l.birth),
                   .born = hr_calloc(d->tensors.count, sizeof *l.born)};
    uint32_t *first = hr_calloc(d->instrs.count + 2u, sizeof *first);
    uint32_t *order = hr_calloc(d->tensors.count, sizeof *order);
    hr_status status = HR_OK;
    if (l.release == NULL || l.birth == NULL || l.born == NULL || first == NULL || order == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the lifetimes of %u tensors", d->tensors.count);
    } else {
        first_writes(d, &l);
        last_uses(d, &l);
        if (d->eager && d->mode == PROGRAM_TRAIN) {
            hold_as_eager(d, &l);
            status = hold_segment_tapes(d, &l, err);
        }
        if (status == HR_OK) {
            settle_loop(d, &l);
            share_storage(d, &l);
            order_by_release(d, &l, first, order);
            status = emit_all(d, &l, first, order, err);
        }
    }
    hr_free(l.release);
    hr_free(l.birth);
    hr_free(l.born);
    hr_free(first);
    hr_free(order);
    return status;
}
