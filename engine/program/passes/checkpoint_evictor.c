// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/costs.h"
#include "program/evictor.h"

void evictor_deinit(evictor *e)
{
    void *all[] = {e->values,
                   e->value_of,
                   e->sibling,
                   e->writer,
                   e->uses,
                   e->cost,
                   e->operations,
                   e->until,
                   e->states,
                   e->listed,
                   e->there,
                   e->wanted,
                   e->stack,
                   e->seen,
                   e->sends.order,
                   e->sends.copies,
                   e->sends.sent,
                   e->sends.first_done,
                   e->sends.first_begin,
                   e->sends.next_done,
                   e->sends.next_begin};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        hr_free(all[k]);
    }
    vec_deinit(&e->steps);
}

hr_status evictor_no_memory(const evictor *e, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the ways to run %u instructions", e->d->instrs.count);
}

bool evict_is_first(const evictor *e, const instr *i, uint32_t k)
{
    for (uint32_t before = 0; before < k; before++) {
        if (e->value_of[evict_operand(i, before)] == e->value_of[evict_operand(i, k)]) {
            return false;
        }
    }
    return true;
}

static void add_result(evictor *e, uint32_t n, uint32_t t, bool may_drop)
{
    const draft *d = e->d;
    const uint32_t owner = draft_owner(d, t);
    if (d->tensors.data[owner].persistent) {
        return;
    }
    if (e->value_of[owner] == HR_NO_ID) {
        const bool waits = hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off") &&
                           hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) <= 1;
        e->value_of[owner] = e->value_count;
        e->values[e->value_count++] =
            (evict_value){.bytes = d->tensors.data[owner].bytes,
                          .first_tensor = HR_NO_ID,
                          .asked = HR_NO_ID,
                          .droppable = n < e->forward_count,
                          .stays = waits && d->tensors.data[owner].category == HR_CATEGORY_GRADIENTS};
    }
    evict_value *v = &e->values[e->value_of[owner]];
    v->droppable = v->droppable && may_drop;
    e->value_of[t] = e->value_of[owner];
    if (e->writer[t] == HR_NO_ID) {
        e->writer[t] = n;
        e->sibling[t] = v->first_tensor;
        v->first_tensor = t;
    }
}

static void find_values(evictor *e, const bool *may_drop)
{
    const draft *d = e->d;
    memset(e->value_of, 0xff, d->tensors.count * sizeof *e->value_of);
    memset(e->writer, 0xff, d->tensors.count * sizeof *e->writer);
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->out_count; k++) {
            add_result(e, n, i->out[k], may_drop[i->out[k]]);
        }
    }
}

static void find_uses(evictor *e)
{
    const draft *d = e->d;
    uint32_t room = 0;
    for (int counted = 0; counted < 2; counted++) {
        for (uint32_t n = 0; n < d->instrs.count; n++) {
            const instr *i = &d->instrs.data[n];
            for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
                const uint32_t v = e->value_of[evict_operand(i, k)];
                if (v == HR_NO_ID || !evict_is_first(e, i, k)) {
                    continue;
                }
                evict_value *x = &e->values[v];
                if (counted) {
                    e->uses[x->first_use + x->use_count] = n;
                    x->asked = n >= e->forward_count && x->asked == HR_NO_ID ? n : x->asked;
                }
                x->use_count++;
            }
        }
        for (uint32_t v = 0; v < e->value_count && !counted; v++) {
            e->values[v].first_use = room;
            room += e->values[v].use_count;
            e->values[v].use_count = 0;
        }
    }
}

static void keep_named(evictor *e, uint32_t value)
{
    const uint32_t v = e->value_of[e->d->value_tensor[value]];
    if (v != HR_NO_ID) {
        e->values[v].stays = true;
        e->values[v].droppable = false;
    }
}

// Behind an eager step's tape the loop has names for what the model answered.
static void find_named(evictor *e)
{
    const draft *d = e->d;
    const bool answers = !d->pytorch || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_ANSWER, "named");
    for (uint32_t k = 0; d->eager && answers && k < d->model->loss_count; k++) {
        keep_named(e, d->model->losses[k].prediction);
        keep_named(e, d->model->losses[k].value);
    }
}

static void find_tape(evictor *e)
{
    for (uint32_t n = 0; n < e->forward_count && e->d->eager; n++) {
        const instr *i = &e->d->instrs.data[n];
        const op_row *row = op_row_of(i->op);
        for (uint32_t k = 0; i->phase == HR_PHASE_FORWARD && k < (uint32_t)i->in_count + i->out_count; k++) {
            const uint32_t v = e->value_of[evict_operand(i, k)];
            const unsigned kept =
                k < i->in_count ? (unsigned)row->keep_in >> k : (unsigned)row->keep_out >> (k - i->in_count);
            if (v != HR_NO_ID) {
                e->values[v].taped |= (kept & 1) != 0;
            }
        }
    }
}

void evictor_weigh(evictor *e, const uint64_t *weight)
{
    e->weight = weight;
    for (uint32_t n = 0; n < e->d->instrs.count; n++) {
        e->until[n + 1] = e->until[n] + weight[n];
    }
}

static bool make_room(evictor *e)
{
    const uint32_t instrs = e->d->instrs.count + 1u, tensors = e->d->tensors.count + 1u;
    e->values = hr_calloc(tensors, sizeof *e->values);
    e->value_of = hr_calloc(tensors, sizeof *e->value_of);
    e->sibling = hr_calloc(tensors, sizeof *e->sibling);
    e->writer = hr_calloc(tensors, sizeof *e->writer);
    e->uses = hr_calloc(instrs, (OP_MAX_IN + OP_MAX_OUT) * sizeof *e->uses);
    e->cost = hr_calloc(instrs, sizeof *e->cost);
    e->operations = hr_calloc(instrs, sizeof *e->operations);
    e->until = hr_calloc(instrs, sizeof *e->until);
    e->states = hr_calloc(tensors, sizeof *e->states);
    e->listed = hr_calloc(tensors, sizeof *e->listed);
    e->there = hr_calloc(tensors, sizeof *e->there);
    e->wanted = hr_calloc(instrs, sizeof *e->wanted);
    e->stack = hr_calloc(instrs, sizeof *e->stack);
    e->seen = hr_calloc(instrs, sizeof *e->seen);
    e->sends.sent = hr_calloc(tensors, sizeof *e->sends.sent);
    return e->values != NULL && e->value_of != NULL && e->sibling != NULL && e->writer != NULL &&
           e->uses != NULL && e->cost != NULL && e->operations != NULL && e->until != NULL &&
           e->states != NULL && e->listed != NULL && e->there != NULL && e->wanted != NULL &&
           e->stack != NULL && e->seen != NULL && e->sends.sent != NULL;
}

hr_status evictor_init(evictor *e, const draft *d, uint32_t forward_count, const bool *may_drop, hr_err *err)
{
    *e = (evictor){.d = d,
                   .forward_count = forward_count,
                   .in_place = !hr_knob_is(d->knobs, HR_KNOB_EXECUTION_INPLACE, "off")};
    if (!make_room(e)) {
        return evictor_no_memory(e, err);
    }
    find_values(e, may_drop);
    find_uses(e);
    find_tape(e);
    find_named(e);
    HR_TRY(draft_costs(d, e->cost, err));
    return draft_operations(d, e->operations, err);
}

// ---- what it costs to have a value again ------------------------------------------------------------------------

static void look_at(evictor *e, uint32_t n, uint32_t *depth)
{
    if (e->seen[n] != e->looks) {
        e->seen[n] = e->looks;
        e->stack[(*depth)++] = n;
    }
}

// Has what makes operand t to run again, too, so that v is there again?
static bool is_missing(const evictor *e, uint32_t t, uint32_t v)
{
    const uint32_t from = e->value_of[t];
    const bool made_anyway = e->apart && from != HR_NO_ID && e->values[from].asked != HR_NO_ID;
    const bool there = from == HR_NO_ID || e->there[t] || e->states[from].away;
    return from == v || (!there && !made_anyway);
}

uint64_t evict_cost_again(evictor *e, uint32_t v, uint64_t most)
{
    uint64_t sum = 0;
    uint32_t depth = 0;
    e->looks++;
    for (uint32_t t = e->values[v].first_tensor; t != HR_NO_ID; t = e->sibling[t]) {
        look_at(e, e->writer[t], &depth);
    }
    while (depth > 0 && sum <= most) {
        const uint32_t n = e->stack[--depth];
        const instr *i = &e->d->instrs.data[n];
        sum += e->weight[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            if (is_missing(e, i->in[k], v)) {
                look_at(e, e->writer[i->in[k]], &depth);
            }
        }
    }
    return sum;
}
