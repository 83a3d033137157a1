// SPDX-License-Identifier: Apache-2.0
// Two passes about attention that is `packed` (execution.as=pytorch): it has one product for queries, keys and values. Those are views of
// the product's result (`packed: views`), or nn.MultiheadAttention copies them (`packed: true`) and works with places before samples.
//
// Before types are decided, pass_packed finds such attention and marks what PyTorch copies because of that order: the input of
// the product, the gradient of attention's result, and, where a sum of residuals begins with such a result, what
// normalisations read from there on (PyTorch's sums lie as their first operand does).
//
// Behind that, pass_packed_copies writes two of these copies down, which autograd keeps:
//
//   dense(x, wq), dense(x, wk), dense(x, wv)     become   x → copy, dense(copy, wq), dense(copy, wk), dense(copy, wv)
//   attention → y, dense(y, wo)                  becomes  attention → y → copy, dense(copy, wo)   (the flash kernel's y lies so)
//
// and brings the casts of the three weights and biases together. What is one there and three here is pass_joined's.
#include <string.h>

#include "ops/permute.h"
#include "program/draft.h"

enum { PARTS = 3, OPERANDS = 3, ALIGNED = 16 };

static bool is_joined(const instr *i, hr_op op)
{
    return i->op == op && i->phase == HR_PHASE_FORWARD && (i->attr.flags & OP_FLAG_JOINED) != 0;
}

static hr_status no_memory(const draft *d, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the packed attention of %u instructions", d->instrs.count);
}

// ---- what is packed -------------------------------------------------------------------------------------------------

typedef struct finder {
    draft *d;
    draft_uses uses;
    bool *turned;     // [tensors] PyTorch has places before samples in it
    uint32_t *reader; // [tensors] the last instruction that reads it
} finder;

// The instruction that makes part k of attention, if it is a product like that of part 0, of the same input.
static instr *product_of(const finder *f, const instr *attention, uint32_t k)
{
    const draft *d = f->d;
    const uint32_t made = attention->in[k], at = f->uses.writer[made];
    instr *i = at == HR_NO_ID ? NULL : &d->instrs.data[at];
    if (i == NULL || i->op != HR_OP_DENSE || i->attr.act != HR_ACT_NONE ||
        (i->attr.flags & OP_FLAG_TRANSPOSE) != 0 || f->uses.readers[made] != 1 ||
        d->tensors.data[made].bytes % ALIGNED != 0) {
        return NULL;
    }
    const instr *first = &d->instrs.data[f->uses.writer[attention->in[0]]];
    const bool alike = i->in[0] == first->in[0] && i->in_count == first->in_count &&
                       d->tensors.data[i->in[1]].bytes == d->tensors.data[first->in[1]].bytes;
    return alike && (k == 0 || i != first) ? i : NULL;
}

static void mark(const finder *f, instr *attention, instr *const product[PARTS])
{
    draft *d = f->d;
    const tensor *x = &d->tensors.data[product[0]->in[0]];
    const uint32_t out = f->reader[attention->out[0]], normed = f->uses.writer[product[0]->in[0]];
    const bool copied = (attention->attr.flags & OP_FLAG_PACKED) != 0; // else views of the product's result
    const bool turns = copied && x->shape.dim[0] > 1 && x->shape.dim[1] > 1;
    const bool copies = turns && !f->turned[product[0]->in[0]];
    for (uint32_t k = 0; k < PARTS; k++) {
        product[k]->attr.flags |= OP_FLAG_JOINED | (copies ? OP_FLAG_TURNED : 0);
        for (uint32_t operand = 1; operand < OPERANDS && operand < product[k]->in_count; operand++) {
            const uint32_t param = d->tensors.data[product[k]->in[operand]].param;
            if (param != HR_NO_ID) {
                d->pack[param] = k == 0 ? PARTS : 0;
            }
        }
    }
    attention->attr.flags |= OP_FLAG_JOINED | (turns ? OP_FLAG_TURNED_BACK : 0);
    if (out != HR_NO_ID && turns && d->instrs.data[out].op == HR_OP_DENSE) {
        d->instrs.data[out].attr.flags |= OP_FLAG_TURNED_BACK;
        f->turned[d->instrs.data[out].out[0]] = true;
    }
    if (normed != HR_NO_ID && copies && d->instrs.data[normed].op == HR_OP_LAYER_NORM &&
        f->uses.readers[product[0]->in[0]] == PARTS) {
        d->instrs.data[normed].attr.flags |= OP_FLAG_TURNED_BACK;
    }
}

static void find_packed(const finder *f, instr *attention)
{
    instr *product[PARTS] = {NULL};
    for (uint32_t k = 0; k < PARTS; k++) {
        if (attention->in_count != PARTS) {
            return;
        }
        product[k] = product_of(f, attention, k);
        if (product[k] == NULL) {
            return;
        }
    }
    if (product[1] != product[2] && (product[0]->attr.flags & OP_FLAG_PACKED) != 0) {
        mark(f, attention, product);
    }
}

// Results of operations on each element lie as their first operand does.
static bool keeps_order(hr_op op)
{
    return op == HR_OP_ADD || op == HR_OP_DROPOUT || op == HR_OP_DROP_PATH || op == HR_OP_RELU ||
           op == HR_OP_GELU || op == HR_OP_SILU || op == HR_OP_SCALE;
}

static void find_all(const finder *f)
{
    for (uint32_t n = 0; n < f->d->instrs.count; n++) {
        instr *i = &f->d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            f->reader[i->in[k]] = n;
        }
    }
    for (uint32_t n = 0; n < f->d->instrs.count; n++) {
        instr *i = &f->d->instrs.data[n];
        if (i->op == HR_OP_ATTENTION) {
            find_packed(f, i);
        } else if (i->in_count > 0 && f->turned[i->in[0]]) {
            i->attr.flags |= i->op == HR_OP_LAYER_NORM ? OP_FLAG_TURNED : 0;
            f->turned[i->out[0]] |= keeps_order(i->op);
        }
    }
}

hr_status pass_packed(draft *d, hr_err *err)
{
    finder f = {.d = d};
    if (!d->pytorch) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &f.uses, err));
    f.turned = hr_calloc(d->tensors.count, sizeof *f.turned);
    f.reader = hr_calloc(d->tensors.count, sizeof *f.reader);
    const hr_status status = f.turned == NULL || f.reader == NULL ? no_memory(d, err) : HR_OK;
    if (status == HR_OK) {
        memset(f.reader, 0xff, d->tensors.count * sizeof *f.reader);
        find_all(&f);
    }
    draft_uses_deinit(&f.uses);
    hr_free(f.turned);
    hr_free(f.reader);
    return status;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

typedef struct copier {
    draft *d;
    draft_uses uses;
    instr_list list;
    bool *moved;       // [instructions] it stands further up
    uint32_t *brings;  // [instructions] [2] casts that stand behind it now, HR_NO_ID
    uint32_t *module;  // [instructions] of a product: the attention it is a part of, HR_NO_ID
    uint32_t *input;   // [instructions] of attention: the copy of its input, its own; HR_NO_ID
    uint32_t *replace; // [tensors] of attention's result: the copy that is read instead, HR_NO_ID
} copier;

static hr_status push(copier *c, const instr *i, hr_err *err)
{
    instr *placed = vec_push(&c->list);
    if (placed == NULL) {
        return no_memory(c->d, err);
    }
    *placed = *i;
    return HR_OK;
}

static hr_status add_copy(copier *c, const instr *at, uint32_t from, uint32_t *copy, hr_err *err)
{
    draft *d = c->d;
    const op_operand o = tensor_operand(&d->tensors.data[from]);
    const uint32_t axes[] = {0, 1, 2};
    HR_TRY(draft_tensor(d, draft_suffixed(d, d->tensors.data[from].name, "places_first"), &o,
                        HR_CATEGORY_ACTIVATIONS, at->layer, copy, err));
    instr *i = draft_instr(d, &c->list, HR_OP_PERMUTE, (hr_phase)at->phase, at->layer);
    if (i == NULL) {
        return no_memory(d, err);
    }
    i->attr.rule = permute_rule(axes, o.shape.rank);
    i->attr.flags = OP_FLAG_JOINED;
    instr_in(i, from);
    instr_out(i, *copy);
    return HR_OK;
}

static uint32_t cast_of(const copier *c, uint32_t tensor_id)
{
    const uint32_t at = c->uses.writer[tensor_id];
    return at != HR_NO_ID && c->d->instrs.data[at].op == HR_OP_CAST ? at : HR_NO_ID;
}

// The casts of all weights behind the first one's, those of all biases too.
static void bring_casts(const copier *c, const instr *attention)
{
    const draft *d = c->d;
    const instr *first = &d->instrs.data[c->uses.writer[attention->in[0]]];
    for (uint32_t operand = 1; operand < OPERANDS && operand < first->in_count; operand++) {
        const uint32_t to = cast_of(c, first->in[operand]);
        for (uint32_t k = 1; to != HR_NO_ID && k < PARTS; k++) {
            const instr *i = &d->instrs.data[c->uses.writer[attention->in[k]]];
            const uint32_t from = cast_of(c, i->in[operand]);
            if (from != HR_NO_ID && from > to) {
                c->moved[from] = true;
                c->brings[2 * to + k - 1] = from;
            }
        }
    }
}

// What a product of packed attention reads is there until the attention's module returns: until its last product.
static void hold_input(const copier *c, const instr *product, uint32_t attention_out)
{
    const draft *d = c->d;
    const uint32_t cast = cast_of(c, product->in[0]);
    const uint32_t x = cast == HR_NO_ID ? product->in[0] : d->instrs.data[cast].in[0];
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->op == HR_OP_DENSE && i->in[0] == attention_out) {
            d->tensors.data[x].held_until = i->id;
            return;
        }
    }
}

// The copy that a product reads instead of its input, which the first of a module makes.
static hr_status copy_input(copier *c, uint32_t n, instr *product, hr_err *err)
{
    uint32_t *copy = &c->input[c->module[n]];
    if (*copy == HR_NO_ID) {
        HR_TRY(add_copy(c, product, product->in[0], copy, err));
    }
    product->in[0] = *copy;
    return HR_OK;
}

static hr_status add_one(copier *c, uint32_t n, hr_err *err)
{
    instr i = c->d->instrs.data[n];
    if (c->moved[n]) {
        return HR_OK;
    }
    if (i.op == HR_OP_DENSE && (i.attr.flags & OP_FLAG_TURNED_BACK) != 0 && c->replace[i.in[0]] != HR_NO_ID) {
        i.in[0] = c->replace[i.in[0]];
    }
    if (c->module[n] != HR_NO_ID && (i.attr.flags & OP_FLAG_TURNED) != 0) {
        HR_TRY(copy_input(c, n, &i, err));
    }
    HR_TRY(push(c, &i, err));
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t cast = c->brings[2 * n + k];
        HR_TRY(cast == HR_NO_ID ? HR_OK : push(c, &c->d->instrs.data[cast], err));
    }
    const hr_dtype type = i.out_count == 0 ? HR_F32 : c->d->tensors.data[i.out[0]].dtype;
    if (is_joined(&i, HR_OP_ATTENTION) && (i.attr.flags & OP_FLAG_TURNED_BACK) != 0 &&
        dtype_bytes(type) > 2) {
        return add_copy(c, &i, i.out[0], &c->replace[i.out[0]], err);
    }
    return HR_OK;
}

static bool take_arrays(copier *c)
{
    const uint32_t tensors = c->d->tensors.count, instrs = c->d->instrs.count + 1u;
    c->moved = hr_calloc(instrs, sizeof *c->moved);
    c->brings = hr_calloc(2 * instrs, sizeof *c->brings);
    c->module = hr_calloc(instrs, sizeof *c->module);
    c->input = hr_calloc(instrs, sizeof *c->input);
    c->replace = hr_calloc(tensors, sizeof *c->replace);
    if (c->moved == NULL || c->brings == NULL || c->module == NULL || c->input == NULL ||
        c->replace == NULL) {
        return false;
    }
    memset(c->brings, 0xff, 2 * instrs * sizeof *c->brings);
    memset(c->module, 0xff, instrs * sizeof *c->module);
    memset(c->input, 0xff, instrs * sizeof *c->input);
    memset(c->replace, 0xff, tensors * sizeof *c->replace);
    return true;
}

static hr_status copy_all(copier *c, hr_err *err)
{
    const draft *d = c->d;
    bool any = false;
    if (!take_arrays(c)) {
        return no_memory(d, err);
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (is_joined(i, HR_OP_ATTENTION)) {
            any = true;
            for (uint32_t k = 0; k < PARTS; k++) {
                c->module[c->uses.writer[i->in[k]]] = n;
            }
            bring_casts(c, i);
            hold_input(c, &d->instrs.data[c->uses.writer[i->in[0]]], i->out[0]);
        }
    }
    for (uint32_t n = 0, count = any ? d->instrs.count : 0; n < count; n++) {
        HR_TRY(add_one(c, n, err));
    }
    return HR_OK;
}

hr_status pass_packed_copies(draft *d, hr_err *err)
{
    copier c = {.d = d};
    if (!d->pytorch) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &c.uses, err));
    const hr_status status = copy_all(&c, err);
    draft_uses_deinit(&c.uses);
    hr_free(c.moved);
    hr_free(c.brings);
    hr_free(c.module);
    hr_free(c.input);
    hr_free(c.replace);
    if (status != HR_OK || c.list.count == 0) {
        vec_deinit(&c.list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = c.list;
    return HR_OK;
}
