// SPDX-License-Identifier: Apache-2.0
// Pass joined (execution.as=pytorch), behind checkpoint: the three products of a packed attention (passes/packed.c) stay three, and what is
// one tensor in PyTorch lies side by side in the bytes of one here:
//
//   queries, keys and values; the casts of their weights and biases; the gradients of these
//
// Beside that it holds what nn.MultiheadAttention makes on the way: the product's result, of which queries, keys and values are a copy; in
// backward, of each gradient a copy or two, and a tensor of all three in which the others are zeros.
//
//   attention_bwd → dq, dk, dv     becomes   attention_bwd → dq, dk, dv → copies, side by side
//
// What the second and third gradient of x add to the first is written over copies that have been read.
#include <string.h>

#include "headroom/event.h"

#include "ops/permute.h"
#include "program/draft.h"

enum { PARTS = 3, OPERANDS = 3, CLONES = 6, ALIGNED = 16 };

// The three parts of one gradient, in the order in which they are taken; indices of instructions, HR_NO_ID.
typedef struct trio {
    uint32_t part[PARTS];    // tensors: dv, dk, dq
    uint32_t weights[PARTS]; // the gradient of weights, and bias
    uint32_t data[PARTS];    // the gradient of x; HR_NO_ID in all three: x needs none
} trio;

typedef struct joiner {
    draft *d;
    instr_list list;
    uint32_t *weights, *data; // [tensors] the instruction that takes a product's gradient from it, HR_NO_ID
    uint32_t *cast;           // [tensors] the backward cast that reads it, HR_NO_ID
    uint32_t *readers;        // [tensors] instructions that read it
    uint32_t *writer;         // [tensors] the last instruction that writes it
    uint32_t *first; // [instructions] of a joined attention, forward or again: its first product; HR_NO_ID
} joiner;

static hr_status no_memory(const draft *d, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the joined products of %u instructions", d->instrs.count);
}

// ---- side by side ---------------------------------------------------------------------------------------------------

static bool is_alone(const draft *d, uint32_t id, uint64_t bytes)
{
    const tensor *t = &d->tensors.data[id];
    return !t->persistent && t->storage == id && t->bytes == bytes && t->padding_bytes == 0 &&
           t->bytes % ALIGNED == 0;
}

// The first one owns the bytes of all. Tensors that lie elsewhere already, or are not alike, stay as they are.
static bool lay_beside(draft *d, const uint32_t id[PARTS])
{
    const uint64_t bytes = d->tensors.data[id[0]].bytes;
    for (uint32_t k = 0; k < PARTS; k++) {
        if (id[k] == HR_NO_ID || !is_alone(d, id[k], bytes) || (k > 0 && id[k] == id[k - 1]) ||
            bytes > UINT64_MAX / PARTS) {
            return false;
        }
    }
    d->tensors.data[id[0]].bytes = PARTS * bytes;
    d->tensors.data[id[0]].padding_bytes = (PARTS - 1) * bytes;
    for (uint32_t k = 1; k < PARTS; k++) {
        d->tensors.data[id[k]].storage = id[0];
        d->tensors.data[id[k]].offset = k * bytes;
    }
    return true;
}

// ---- forward --------------------------------------------------------------------------------------------------------

static bool is_joined(const instr *i, hr_op op)
{
    return i->op == op && (i->phase == HR_PHASE_FORWARD || i->again) && (i->attr.flags & OP_FLAG_JOINED) != 0;
}

static void join_forward(const joiner *j, uint32_t n)
{
    draft *d = j->d;
    const instr *attention = &d->instrs.data[n], *product[PARTS];
    uint32_t first = HR_NO_ID;
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t at = j->writer[attention->in[k]];
        if (at == HR_NO_ID || !is_joined(&d->instrs.data[at], HR_OP_DENSE)) {
            return;
        }
        product[k] = &d->instrs.data[at];
        first = at < first ? at : first;
    }
    for (uint32_t operand = 1; operand < OPERANDS && operand < product[0]->in_count; operand++) {
        const uint32_t casts[] = {product[0]->in[operand], product[1]->in[operand], product[2]->in[operand]};
        (void)lay_beside(d, casts);
    }
    const bool copied = (attention->attr.flags & OP_FLAG_PACKED) != 0;
    j->first[n] = lay_beside(d, attention->in) && copied ? first : HR_NO_ID;
}

// Before the first product: PyTorch's result, which goes when it has been copied, as does what the product reads if that is a cast.
static hr_status hold_product(joiner *j, uint32_t n, hr_err *err)
{
    draft *d = j->d;
    const instr *i = &d->instrs.data[n];
    const uint32_t out = i->out[0], owner = draft_owner(d, out), copy = j->writer[i->in[0]];
    const draft_held held = {.name = draft_suffixed(d, d->tensors.data[out].name, "product"),
                             .bytes = d->tensors.data[owner].bytes,
                             .category = HR_CATEGORY_TEMPORARIES,
                             .phase = (hr_phase)i->phase,
                             .layer = i->layer,
                             .until = i->id};
    uint32_t id = 0;
    HR_TRY(draft_hold(d, &j->list, &held, &id, err));
    const instr *copied = copy == HR_NO_ID ? NULL : &d->instrs.data[copy];
    const uint32_t x = copied != NULL && copied->op == HR_OP_PERMUTE ? copied->in[0] : HR_NO_ID;
    if (x != HR_NO_ID && j->writer[x] != HR_NO_ID && d->instrs.data[j->writer[x]].op == HR_OP_CAST) {
        d->tensors.data[x].held_until = j->list.data[j->list.count - 1].id;
    }
    return HR_OK;
}

// ---- backward -------------------------------------------------------------------------------------------------------

static void sort(trio *t)
{
    for (uint32_t k = 1; k < PARTS; k++) {
        for (uint32_t o = k; o > 0 && t->weights[o] < t->weights[o - 1]; o--) {
            const trio before = *t;
            t->part[o] = before.part[o - 1], t->part[o - 1] = before.part[o];
            t->weights[o] = before.weights[o - 1], t->weights[o - 1] = before.weights[o];
            t->data[o] = before.data[o - 1], t->data[o - 1] = before.data[o];
        }
    }
}

// Each gradient is read by its product's gradients alone, of weights and then, if x needs one, of x, product by product.
static bool find_trio(const joiner *j, const instr *gradient, trio *t)
{
    for (uint32_t k = 0; k < PARTS; k++) {
        t->part[k] = gradient->out[k];
        t->weights[k] = j->weights[gradient->out[k]];
        t->data[k] = j->data[gradient->out[k]];
        const bool data = t->data[k] != HR_NO_ID;
        if (t->weights[k] == HR_NO_ID || data != (t->data[0] != HR_NO_ID) ||
            j->readers[gradient->out[k]] != (data ? 2 : 1)) {
            return false;
        }
    }
    sort(t);
    bool ordered = true;
    for (uint32_t k = 0; k + 1 < PARTS; k++) {
        const bool data = t->data[k] != HR_NO_ID;
        const uint32_t both = data && t->data[k] > t->weights[k] ? t->data[k] : t->weights[k];
        ordered = ordered && both < t->weights[k + 1] && both < t->data[k + 1];
    }
    return ordered;
}

// Is the gradient of x only added to another one, as its second operand?
static bool is_added(const joiner *j, uint32_t id)
{
    const draft *d = j->d;
    bool added = false;
    for (uint32_t n = j->writer[id] + 1; n < d->instrs.count && !added && j->readers[id] == 1; n++) {
        const instr *i = &d->instrs.data[n];
        added = i->op == HR_OP_ADD && i->in_count == 2 && i->in[1] == id && i->in[0] != id;
    }
    return added;
}

static void join_gradients(const joiner *j, const trio *t)
{
    draft *d = j->d;
    for (uint32_t result = 0; result < d->instrs.data[t->weights[0]].out_count; result++) {
        uint32_t made[PARTS], cast[PARTS];
        for (uint32_t k = 0; k < PARTS; k++) {
            made[k] = d->instrs.data[t->weights[k]].out[result];
            const uint32_t at = j->cast[made[k]];
            cast[k] = at == HR_NO_ID ? HR_NO_ID : d->instrs.data[at].out[0];
        }
        (void)lay_beside(d, made);
        (void)(cast[0] != HR_NO_ID && lay_beside(d, cast));
    }
}

static hr_status hold_briefly(joiner *j, const instr *at, const char *name, uint64_t bytes, uint32_t *id,
                              hr_err *err)
{
    draft *d = j->d;
    const draft_held held = {.name = draft_suffixed(d, d->tensors.data[at->out[0]].name, name),
                             .bytes = bytes,
                             .category = HR_CATEGORY_TEMPORARIES,
                             .phase = HR_PHASE_BACKWARD,
                             .layer = at->layer};
    return draft_hold(d, &j->list, &held, id, err);
}

static hr_status add_copy(joiner *j, const instr *at, uint32_t from, uint32_t to, hr_err *err)
{
    const uint32_t axes[] = {0, 1, 2};
    instr *i = draft_instr(j->d, &j->list, HR_OP_PERMUTE, HR_PHASE_BACKWARD, at->layer);
    if (i == NULL) {
        return no_memory(j->d, err);
    }
    i->attr.rule = permute_rule(axes, j->d->tensors.data[from].shape.rank);
    i->attr.flags = OP_FLAG_JOINED;
    instr_in(i, from);
    instr_out(i, to);
    return HR_OK;
}

// Three copies side by side. Of views that is all (cat). On the way nn.MultiheadAttention makes from the memory-efficient kernel's results two
// copies of each (heads were samples), then for each a tensor of all three (select_backward), and the sum of those in the product's order.
static hr_status add_copies(joiner *j, const instr *at, const trio *t, uint32_t copy[PARTS], hr_err *err)
{
    draft *d = j->d;
    const uint64_t bytes = d->tensors.data[t->part[0]].bytes;
    const bool copied = (at->attr.flags & OP_FLAG_PACKED) != 0;
    const bool efficient = copied && dtype_bytes(d->tensors.data[t->part[0]].dtype) > 2;
    uint32_t id = 0;
    for (uint32_t n = 0; efficient && n < CLONES; n++) {
        HR_TRY(hold_briefly(j, at, "by_heads", bytes, &id, err));
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        const op_operand o = tensor_operand(&d->tensors.data[t->part[k]]);
        HR_TRY(draft_tensor(d, draft_suffixed(d, d->tensors.data[t->part[k]].name, "joined"), &o,
                            HR_CATEGORY_ACTIVATIONS, at->layer, &copy[k], err));
    }
    if (!lay_beside(d, copy)) {
        return HR_FAIL(err, CHECK, "%s cannot lie beside others", d->tensors.data[copy[0]].name);
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t zeros = d->tensors.count;
        HR_TRY(k == 0 || !copied ? HR_OK : hold_briefly(j, at, "others", PARTS * bytes, &id, err));
        HR_TRY(add_copy(j, at, t->part[k], copy[k], err));
        if (zeros < d->tensors.count) {
            d->tensors.data[zeros].held_until = j->list.data[j->list.count - 1].id;
        }
    }
    return copied ? hold_briefly(j, at, "in_order", PARTS * bytes, &id, err) : HR_OK;
}

// The gradients read the copies; the second and third of x are written over the first and second copy.
static void read_copies(const joiner *j, const trio *t, const uint32_t copy[PARTS])
{
    draft *d = j->d;
    for (uint32_t k = 0; k < PARTS; k++) {
        d->instrs.data[t->weights[k]].in[1] = copy[k];
        if (t->data[k] == HR_NO_ID) {
            continue;
        }
        instr *data = &d->instrs.data[t->data[k]];
        data->in[0] = copy[k];
        tensor *x = &d->tensors.data[data->out[0]];
        if (k > 0 && x->bytes == d->tensors.data[copy[1]].bytes && is_alone(d, data->out[0], x->bytes) &&
            is_added(j, data->out[0])) {
            x->storage = copy[0];
            x->offset = (k - 1) * x->bytes;
        }
    }
}

static hr_status join_backward(joiner *j, const instr *gradient, hr_err *err)
{
    trio t;
    uint32_t copy[PARTS] = {0};
    if (!find_trio(j, gradient, &t) || !is_alone(j->d, t.part[0], j->d->tensors.data[t.part[1]].bytes)) {
        return HR_OK;
    }
    join_gradients(j, &t);
    HR_TRY(add_copies(j, gradient, &t, copy, err));
    read_copies(j, &t, copy);
    return HR_OK;
}

// ---- the list -------------------------------------------------------------------------------------------------------

static void note_reader(const joiner *j, uint32_t n)
{
    const instr *i = &j->d->instrs.data[n];
    for (uint32_t k = 0; k < i->in_count; k++) {
        j->readers[i->in[k]]++;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        j->writer[i->out[k]] = n;
    }
    if (i->op == HR_OP_DENSE_BWD_WEIGHTS) {
        j->weights[i->in[1]] = n;
    } else if (i->op == HR_OP_DENSE_BWD_DATA) {
        j->data[i->in[0]] = n;
    } else if (i->op == HR_OP_CAST && i->phase == HR_PHASE_BACKWARD) {
        j->cast[i->in[0]] = n;
    }
}

static hr_status join_all(joiner *j, hr_err *err)
{
    const draft *d = j->d;
    const uint32_t count = d->instrs.count;
    uint32_t *hold = j->first + count; // [instructions] a product is held before it
    bool any = false;
    for (uint32_t n = 0; n < count; n++) {
        note_reader(j, n);
    }
    for (uint32_t n = 0; n < count; n++) {
        if (is_joined(&d->instrs.data[n], HR_OP_ATTENTION)) {
            join_forward(j, n);
            any = true;
        }
        if (j->first[n] != HR_NO_ID) {
            hold[j->first[n]] = n;
        }
    }
    for (uint32_t n = 0; any && n < count; n++) {
        HR_TRY(hold[n] == HR_NO_ID ? HR_OK : hold_product(j, n, err));
        instr *placed = vec_push(&j->list);
        if (placed == NULL) {
            return no_memory(d, err);
        }
        *placed = d->instrs.data[n];
        const instr i = d->instrs.data[n];
        const bool joined = i.op == HR_OP_ATTENTION_BWD && (i.attr.flags & OP_FLAG_JOINED) != 0;
        HR_TRY(joined && i.out_count == PARTS ? join_backward(j, &i, err) : HR_OK);
    }
    return HR_OK;
}

static bool take_arrays(joiner *j)
{
    const uint32_t tensors = j->d->tensors.count, instrs = j->d->instrs.count;
    uint32_t **const all[] = {&j->weights, &j->data, &j->cast, &j->writer};
    bool taken = true;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        *all[k] = hr_calloc(tensors + 1u, sizeof **all[k]);
        taken = taken && *all[k] != NULL;
        if (*all[k] != NULL) {
            memset(*all[k], 0xff, (tensors + 1u) * sizeof **all[k]);
        }
    }
    j->readers = hr_calloc(tensors + 1u, sizeof *j->readers);
    j->first = hr_calloc(2 * (instrs + 1u), sizeof *j->first);
    if (j->first != NULL) {
        memset(j->first, 0xff, 2 * (instrs + 1u) * sizeof *j->first);
    }
    return taken && j->readers != NULL && j->first != NULL;
}

hr_status pass_joined(draft *d, hr_err *err)
{
    joiner j = {.d = d};
    if (!d->pytorch) {
        return HR_OK;
    }
    const hr_status status = take_arrays(&j) ? join_all(&j, err) : no_memory(d, err);
    hr_free(j.weights);
    hr_free(j.data);
    hr_free(j.cast);
    hr_free(j.writer);
    hr_free(j.readers);
    hr_free(j.first);
    if (status != HR_OK || j.list.count == 0) {
        vec_deinit(&j.list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = j.list;
    return HR_OK;
}
