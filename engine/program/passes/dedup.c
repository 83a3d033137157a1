// SPDX-License-Identifier: Apache-2.0
// Pass dedup (graph only): of operations that compute the same from the same operands, the first stays and the others'
// readers read its results, as a graph optimizer does that knows the whole step (reference tensorflow.md D1, D5).
//
// It stands behind autodiff, not before it: a layer that is called a hundred times then still adds up its hundred equal
// gradients, in the order in which eager does, and the weights stay the same bit for bit. It stands before checkpoint,
// whose repeated operations are meant to be repeated.
#include <string.h>

#include "base/hash.h"
#include "program/draft.h"

typedef struct dedup {
    uint32_t *same;  // [tensors] the tensor that has its value; its own id at first
    uint32_t *table; // open addressing: index of an instruction that stayed, HR_NO_ID
    uint32_t mask;   // capacity - 1
} dedup;

// What has no effect but its results, and the same results for the same operands.
static bool is_pure(const draft *d, const instr *i)
{
    bool computes = i->phase == HR_PHASE_FORWARD || i->phase == HR_PHASE_BACKWARD;
    const op_row *row = op_row_of(i->op);
    if (!computes || row->control || row->updates != 0 || row->moves_state) {
        return false;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        if (d->tensors.data[i->out[k]].persistent) {
            return false;
        }
    }
    return i->out_count > 0 && i->op != HR_OP_INPUT;
}

static uint64_t hash_of(const instr *i)
{
    uint64_t hash = hash64_mix(i->op, (uint64_t)i->in_count << 8 | i->out_count);
    hash = hash64_mix(hash, (uint64_t)(uint32_t)i->attr.offset << 32 | (uint32_t)i->attr.count); // of slices
    for (uint32_t k = 0; k < i->in_count; k++) {
        hash = hash64_mix(hash, i->in[k]);
    }
    return hash;
}

static bool have_equal_results(const draft *d, const instr *a, const instr *b)
{
    for (uint32_t k = 0; k < a->out_count; k++) {
        const tensor *x = &d->tensors.data[a->out[k]];
        const tensor *y = &d->tensors.data[b->out[k]];
        if (x->dtype != y->dtype || x->category != y->category || !shape_equal(&x->shape, &y->shape)) {
            return false;
        }
    }
    return true;
}

static bool are_equal(const draft *d, const instr *a, const instr *b)
{
    return a->op == b->op && a->in_count == b->in_count && a->out_count == b->out_count &&
           memcmp(a->in, b->in, a->in_count * sizeof *a->in) == 0 &&
           memcmp(&a->attr, &b->attr, sizeof a->attr) == 0 && have_equal_results(d, a, b);
}

// The instruction before n that does the same; n itself, remembered, when there is none.
static uint32_t find_first(const draft *d, dedup *u, uint32_t n)
{
    const instr *i = &d->instrs.data[n];
    uint32_t at = (uint32_t)hash_of(i) & u->mask;
    while (u->table[at] != HR_NO_ID && !are_equal(d, &d->instrs.data[u->table[at]], i)) {
        at = (at + 1) & u->mask;
    }
    if (u->table[at] == HR_NO_ID) {
        u->table[at] = n;
    }
    return u->table[at];
}

static void read_the_first(const dedup *u, instr *i)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        i->in[k] = u->same[i->in[k]];
    }
}

static void remap(const dedup *u, uint32_t *ids, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        ids[k] = ids[k] == HR_NO_ID ? HR_NO_ID : u->same[ids[k]];
    }
}

static void remove_repeated(draft *d, dedup *u)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        d->instrs.data[kept] = d->instrs.data[n];
        instr *i = &d->instrs.data[kept];
        read_the_first(u, i);
        const instr *first = is_pure(d, i) ? &d->instrs.data[find_first(d, u, kept)] : i;
        for (uint32_t k = 0; k < i->out_count; k++) {
            u->same[i->out[k]] = first->out[k];
            d->tensors.data[i->out[k]].bytes *= first == i; // the others are never born
        }
        kept += first == i;
    }
    d->instrs.count = kept;
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        d->tensors.data[k].storage = u->same[d->tensors.data[k].storage];
    }
    remap(u, d->value_tensor, d->model->value_count);
    for (uint32_t k = 0; d->recorded && k < d->model->param_count; k++) {
        remap(u, &d->gradient[d->param_tensor[k]], 1);
    }
}

hr_status pass_dedup(draft *d, hr_err *err)
{
    if (d->eager) {
        return HR_OK;
    }
    dedup u = {.mask = 1};
    while (u.mask < 2 * d->instrs.count) {
        u.mask = 2 * u.mask + 1;
    }
    u.same = hr_calloc(d->tensors.count, sizeof *u.same);
    u.table = hr_calloc(u.mask + 1u, sizeof *u.table);
    hr_status status = HR_OK;
    if (u.same == NULL || u.table == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to compare %u instructions", d->instrs.count);
    } else {
        memset(u.table, 0xff, (u.mask + 1u) * sizeof *u.table);
        for (uint32_t k = 0; k < d->tensors.count; k++) {
            u.same[k] = k;
        }
        remove_repeated(d, &u);
    }
    hr_free(u.same);
    hr_free(u.table);
    return status;
}
