// SPDX-License-Identifier: Apache-2.0
// Pass fuse_qkv (graph only), before fuse_sums: the dense layers that make an attention's queries, keys and values of one
// sequence become one product, where the target takes them side by side.
//
//   dense(x, wq), dense(x, wk), dense(x, wv)      become   concat(wq, wk, wv) → w, dense(x, w) → qkv
//   attention(q, k, v)                            becomes  attention(qkv), and its gradient makes dqkv
//   three gradients of weights                    become   one of w, and slices of it
//   three gradients of x and their sums           become   one, of all features at once
//
// Weights, their gradients and what is saved stay three tensors each. x is read once for three times, its gradient written
// once, and added up in float32 over all features.
#include <string.h>

#include "program/draft.h"

enum { PARTS = 3, APART_BWD = 6 };

// What an instruction is in its trio.
typedef enum role {
    ROLE_NONE,
    ROLE_DROPPED,
    ROLE_PRODUCT,
    ROLE_ATTENTION,
    ROLE_GRADIENT,
    ROLE_WEIGHTS,
    ROLE_DATA,
    ROLE_SUM
} role;

// Indices of instructions, HR_NO_ID where there is none; in the order of queries, keys, values.
typedef struct trio {
    uint32_t attention, gradient;
    uint32_t dense[PARTS], weights[PARTS], data[PARTS];
    uint32_t
        sum[PARTS];  // of the gradients of x, in program order; sum[0]: only where another one came before
    uint32_t before; // that gradient of x, a tensor
    uint32_t qkv, dqkv, w; // tensors
} trio;

typedef struct finder {
    draft *d;
    draft_uses uses;
    uint32_t *gradient, *weights, *data, *sum; // [tensors] their readers of that kind
    uint8_t *role;                             // [instrs]
    uint32_t *trio_of;                         // [instrs]
    VEC(trio) trios;
} finder;

static const instr *at(const finder *f, uint32_t n)
{
    return &f->d->instrs.data[n];
}

// ---- readers -------------------------------------------------------------------------------------------------------

static void note_readers(finder *f)
{
    for (uint32_t k = 0; k < f->d->tensors.count; k++) {
        f->gradient[k] = f->weights[k] = f->data[k] = f->sum[k] = HR_NO_ID;
    }
    for (uint32_t n = 0; n < f->d->instrs.count; n++) {
        const instr *i = at(f, n);
        if (i->op == HR_OP_ATTENTION_BWD && i->in_count == APART_BWD) {
            f->gradient[i->in[0]] = n;
        } else if (i->op == HR_OP_DENSE_BWD_WEIGHTS) {
            f->weights[i->in[1]] = n;
        } else if (i->op == HR_OP_DENSE_BWD_DATA) {
            f->data[i->in[0]] = n;
        } else if (i->op == HR_OP_ADD && i->attr.act == HR_ACT_NONE && i->in[0] != i->in[1]) {
            f->sum[i->in[0]] = f->sum[i->in[1]] = n;
        }
    }
}

static bool is_plain(const instr *i)
{
    return i->attr.act == HR_ACT_NONE && (i->attr.flags & (OP_FLAG_TRANSPOSE | OP_FLAG_ADDED)) == 0;
}

// ---- forward --------------------------------------------------------------------------------------------------------

static bool is_alike(const draft *d, uint32_t a, uint32_t b)
{
    const tensor *x = &d->tensors.data[a], *y = &d->tensors.data[b];
    return x->dtype == y->dtype && shape_equal(&x->shape, &y->shape) && x->category == y->category &&
           x->persistent == y->persistent;
}

static bool find_products(const finder *f, trio *t)
{
    const instr *attention = at(f, t->attention);
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t made = attention->in[k];
        t->dense[k] = f->uses.writer[made];
        const instr *i = t->dense[k] == HR_NO_ID ? NULL : at(f, t->dense[k]);
        if (i == NULL || i->op != HR_OP_DENSE || i->out_count != 1 || !is_plain(i) ||
            (k > 0 && t->dense[k] == t->dense[0])) {
            return false;
        }
        const instr *first = at(f, t->dense[0]);
        if (i->in[0] != first->in[0] || i->in_count != first->in_count ||
            !is_alike(f->d, i->in[1], first->in[1]) ||
            f->uses.readers[made] != (t->gradient == HR_NO_ID ? 1u : 2u)) {
            return false;
        }
    }
    return t->dense[1] != t->dense[2];
}

// ---- backward -------------------------------------------------------------------------------------------------------

// The gradients of weights: all of them or none.
static bool find_weights(const finder *f, trio *t)
{
    const instr *gradient = at(f, t->gradient);
    for (uint32_t k = 0; k < PARTS; k++) {
        t->weights[k] = f->weights[gradient->out[k]];
        if ((t->weights[k] == HR_NO_ID) != (t->weights[0] == HR_NO_ID)) {
            return false;
        }
        if (t->weights[k] == HR_NO_ID) {
            continue;
        }
        const instr *i = at(f, t->weights[k]), *first = at(f, t->weights[0]);
        if (!is_plain(i) || i->in[0] != first->in[0] || i->out_count != first->out_count ||
            !is_alike(f->d, i->out[0], first->out[0])) {
            return false;
        }
    }
    return true;
}

static uint32_t other_of(const instr *sum, uint32_t one)
{
    return sum->in[0] == one ? sum->in[1] : sum->in[0];
}

static bool passes(const finder *f, uint32_t tensor_id)
{
    return draft_is_passing(f->d, &f->uses, tensor_id) && f->sum[tensor_id] != HR_NO_ID;
}

// The chain of sums: [before +] first, + second, + third, in the order of the program.
static bool find_sums(const finder *f, trio *t)
{
    uint32_t made[PARTS];
    for (uint32_t k = 0; k < PARTS; k++) {
        made[k] = at(f, t->data[k])->out[0];
        if (!passes(f, made[k])) {
            return false;
        }
    }
    t->before = HR_NO_ID;
    t->sum[0] = HR_NO_ID;
    t->sum[1] = f->sum[made[1]];
    t->sum[2] = f->sum[made[2]];
    const uint32_t left = other_of(at(f, t->sum[1]), made[1]), last = other_of(at(f, t->sum[2]), made[2]);
    if (left != made[0]) {
        t->sum[0] = f->sum[made[0]];
        t->before = other_of(at(f, t->sum[0]), made[0]);
        if (at(f, t->sum[0])->out[0] != left || !passes(f, left)) {
            return false;
        }
    }
    return last == at(f, t->sum[1])->out[0] && passes(f, last);
}

static void sort_data(trio *t)
{
    for (uint32_t k = 0; k < PARTS; k++) {
        for (uint32_t o = k + 1; o < PARTS; o++) {
            if (t->data[o] < t->data[k]) {
                const uint32_t later = t->data[k];
                t->data[k] = t->data[o];
                t->data[o] = later;
            }
        }
    }
}

static bool find_data(const finder *f, trio *t)
{
    const instr *gradient = at(f, t->gradient);
    uint32_t found = 0;
    for (uint32_t k = 0; k < PARTS; k++) {
        t->data[k] = f->data[gradient->out[k]];
        const uint32_t readers = (uint32_t)(t->data[k] != HR_NO_ID) + (uint32_t)(t->weights[k] != HR_NO_ID);
        if (f->uses.readers[gradient->out[k]] != readers ||
            (t->data[k] != HR_NO_ID &&
             (!is_plain(at(f, t->data[k])) || at(f, t->data[k])->in[1] != at(f, t->dense[k])->in[1]))) {
            return false;
        }
        found += t->data[k] != HR_NO_ID;
    }
    sort_data(t);
    return found == 0 || (found == PARTS && find_sums(f, t));
}

// ---- roles ----------------------------------------------------------------------------------------------------------

static void give(finder *f, uint32_t n, role what)
{
    f->role[n] = (uint8_t)what;
    f->trio_of[n] = f->trios.count - 1;
}

static uint32_t edge_of(const uint32_t n[PARTS], bool last)
{
    uint32_t edge = n[0];
    for (uint32_t k = 1; k < PARTS; k++) {
        edge = (n[k] > edge) == last ? n[k] : edge;
    }
    return edge;
}

// The product of weights stands where the last of them is there, their gradient where the first one was wanted.
static void give_roles(finder *f, const trio *t)
{
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t all[] = {t->dense[k], t->weights[k], t->data[k], t->sum[k]};
        for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
            if (all[n] != HR_NO_ID) {
                give(f, all[n], ROLE_DROPPED);
            }
        }
    }
    give(f, edge_of(t->dense, true), ROLE_PRODUCT);
    give(f, t->attention, ROLE_ATTENTION);
    if (t->gradient != HR_NO_ID) {
        give(f, t->gradient, ROLE_GRADIENT);
    }
    if (t->weights[0] != HR_NO_ID) {
        give(f, edge_of(t->weights, false), ROLE_WEIGHTS);
    }
    if (t->data[0] != HR_NO_ID) {
        give(f, t->data[PARTS - 1], ROLE_DATA);
    }
    if (t->before != HR_NO_ID) {
        give(f, t->sum[PARTS - 1], ROLE_SUM);
    }
}

static hr_status find_trios(finder *f, hr_err *err)
{
    for (uint32_t n = 0; n < f->d->instrs.count; n++) {
        trio t;
        memset(&t, 0xff, sizeof t);
        t.attention = n;
        if (at(f, n)->op != HR_OP_ATTENTION || at(f, n)->in_count != PARTS) {
            continue;
        }
        t.gradient = f->gradient[at(f, n)->in[0]];
        const bool same = t.gradient == HR_NO_ID ||
                          memcmp(at(f, t.gradient)->in, at(f, n)->in, PARTS * sizeof(uint32_t)) == 0;
        if (!same || !find_products(f, &t) ||
            (t.gradient != HR_NO_ID && (!find_weights(f, &t) || !find_data(f, &t)))) {
            continue;
        }
        trio *placed = vec_push(&f->trios);
        if (placed == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the products of %u instructions",
                           f->d->instrs.count);
        }
        *placed = t;
        give_roles(f, placed);
    }
    return HR_OK;
}

// ---- one for three ----------------------------------------------------------------------------------------------

// A tensor like `one` with three times as much on its last axis.
static hr_status wide_tensor(draft *d, uint32_t one, hr_category category, uint32_t *id, hr_err *err)
{
    const tensor *t = &d->tensors.data[one];
    const bool saved = t->saved;
    op_operand o = tensor_operand(t);
    o.shape.dim[o.shape.rank - 1] *= PARTS;
    HR_TRY(draft_tensor(d, draft_suffixed(d, t->name, "joined"), &o, category, t->layer, id, err));
    d->tensors.data[*id].saved = saved;
    return HR_OK;
}

static hr_category category_of(const draft *d, uint32_t id)
{
    return d->tensors.data[id].category;
}

static hr_status add_like(draft *d, instr_list *list, hr_op op, const instr *like, instr **out, hr_err *err)
{
    *out = draft_instr(d, list, op, (hr_phase)like->phase, like->layer);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    (*out)->again = like->again;
    return HR_OK;
}

// Input `operand` of the three layers side by side, beside instruction `like`.
static hr_status add_concat(finder *f, instr_list *list, const trio *t, uint32_t operand, const instr *like,
                            uint32_t *id, hr_err *err)
{
    draft *d = f->d;
    instr *i = NULL;
    const uint32_t one = at(f, t->dense[0])->in[operand];
    const bool cast = category_of(d, one) == HR_CATEGORY_CASTS;
    HR_TRY(wide_tensor(d, one, cast ? HR_CATEGORY_CASTS : HR_CATEGORY_TEMPORARIES, id, err));
    HR_TRY(add_like(d, list, HR_OP_CONCAT, like, &i, err));
    i->attr = (op_attr){.axis = (int32_t)d->tensors.data[one].shape.rank - 1};
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t part = at(f, t->dense[k])->in[operand];
        instr_in(i, part);
        d->tensors.data[part].category = cast ? HR_CATEGORY_TEMPORARIES : category_of(d, part);
    }
    instr_out(i, *id);
    return HR_OK;
}

static hr_status add_product(finder *f, instr_list *list, trio *t, const instr *like, hr_err *err)
{
    instr *i = NULL;
    uint32_t bias = HR_NO_ID;
    const instr first = *at(f, t->dense[0]);
    HR_TRY(add_concat(f, list, t, 1, like, &t->w, err));
    if (first.in_count > 2) {
        HR_TRY(add_concat(f, list, t, 2, like, &bias, err));
    }
    HR_TRY(wide_tensor(f->d, first.out[0], category_of(f->d, first.out[0]), &t->qkv, err));
    for (uint32_t k = 0; k < PARTS; k++) {
        f->d->tensors.data[at(f, t->dense[k])->out[0]].saved = false; // they are not born
    }
    HR_TRY(add_like(f->d, list, HR_OP_DENSE, like, &i, err));
    i->attr = first.attr;
    instr_in(i, first.in[0]);
    instr_in(i, t->w);
    if (bias != HR_NO_ID) {
        instr_in(i, bias);
    }
    instr_out(i, t->qkv);
    return HR_OK;
}

static hr_status add_slices(finder *f, instr_list *list, const trio *t, uint32_t result, uint32_t joined,
                            hr_err *err)
{
    for (uint32_t k = 0; k < PARTS; k++) {
        const instr *part = at(f, t->weights[k]);
        const hr_shape *s = &f->d->tensors.data[part->out[result]].shape;
        const int32_t axis = (int32_t)s->rank - 1, extent = (int32_t)s->dim[axis];
        instr *i = NULL;
        HR_TRY(add_like(f->d, list, HR_OP_SLICE, part, &i, err));
        i->attr = (op_attr){.axis = axis, .offset = (int32_t)k * extent, .count = extent};
        instr_in(i, joined);
        instr_out(i, part->out[result]);
    }
    return HR_OK;
}

static hr_status add_weights(finder *f, instr_list *list, const trio *t, const instr *like, hr_err *err)
{
    uint32_t joined[OP_MAX_OUT] = {0};
    instr *i = NULL;
    for (uint32_t k = 0; k < like->out_count; k++) {
        HR_TRY(wide_tensor(f->d, at(f, t->weights[0])->out[k], HR_CATEGORY_TEMPORARIES, &joined[k], err));
    }
    HR_TRY(add_like(f->d, list, HR_OP_DENSE_BWD_WEIGHTS, like, &i, err));
    i->attr = like->attr;
    instr_in(i, like->in[0]);
    instr_in(i, t->dqkv);
    for (uint32_t k = 0; k < like->out_count; k++) {
        instr_out(i, joined[k]);
    }
    for (uint32_t k = 0; k < like->out_count; k++) {
        HR_TRY(add_slices(f, list, t, k, joined[k], err));
    }
    return HR_OK;
}

static hr_status add_data(finder *f, instr_list *list, const trio *t, const instr *like, hr_err *err)
{
    instr *i = NULL;
    HR_TRY(add_like(f->d, list, HR_OP_DENSE_BWD_DATA, like, &i, err));
    i->attr = like->attr;
    instr_in(i, t->dqkv);
    instr_in(i, t->w);
    instr_out(i, t->before != HR_NO_ID ? like->out[0] : at(f, t->sum[PARTS - 1])->out[0]);
    return HR_OK;
}

// Weights that are no casts are laid side by side once more: nothing of them lives from forward to backward. Here, because
// with optimizer.fused_backward one of them may be updated before the last of their gradients is asked for.
static hr_status add_attention(finder *f, instr_list *list, trio *t, const instr *like, hr_err *err)
{
    const bool backward = like->op == HR_OP_ATTENTION_BWD;
    instr whole = *like;
    if (backward && t->data[0] != HR_NO_ID && category_of(f->d, t->w) != HR_CATEGORY_CASTS) {
        HR_TRY(add_concat(f, list, t, 1, like, &t->w, err));
    }
    whole.in[0] = t->qkv;
    for (uint32_t k = PARTS; k < like->in_count; k++) {
        whole.in[k - PARTS + 1] = like->in[k];
    }
    whole.in_count = (uint8_t)(like->in_count - PARTS + 1);
    if (backward) {
        HR_TRY(wide_tensor(f->d, like->out[0], category_of(f->d, like->out[0]), &t->dqkv, err));
        whole.out[0] = t->dqkv;
        whole.out_count = 1;
    }
    instr *placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = whole;
    return HR_OK;
}

static hr_status add_one(finder *f, instr_list *list, uint32_t n, hr_err *err)
{
    const instr i = *at(f, n);
    trio *t = f->role[n] == ROLE_NONE ? NULL : &f->trios.data[f->trio_of[n]];
    instr *placed = NULL;
    switch ((role)f->role[n]) {
    case ROLE_PRODUCT:
        return add_product(f, list, t, &i, err);
    case ROLE_ATTENTION:
    case ROLE_GRADIENT:
        return add_attention(f, list, t, &i, err);
    case ROLE_WEIGHTS:
        return add_weights(f, list, t, &i, err);
    case ROLE_DATA:
        return add_data(f, list, t, &i, err);
    case ROLE_DROPPED:
        return HR_OK;
    case ROLE_SUM:
    case ROLE_NONE:
        break;
    }
    placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    if (f->role[n] == ROLE_SUM) {
        placed->in[placed->in[0] == at(f, t->data[PARTS - 1])->out[0]] = t->before;
    }
    return HR_OK;
}

static hr_status rewrite(finder *f, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t n = 0; n < f->d->instrs.count && status == HR_OK; n++) {
        status = add_one(f, &list, n, err);
    }
    if (status == HR_OK) {
        vec_deinit(&f->d->instrs);
        f->d->instrs = list;
    } else {
        vec_deinit(&list);
    }
    return status;
}

static hr_status join(finder *f, hr_err *err)
{
    const uint32_t tensors = f->d->tensors.count, instrs = f->d->instrs.count;
    f->gradient = hr_calloc(tensors, sizeof *f->gradient);
    f->weights = hr_calloc(tensors, sizeof *f->weights);
    f->data = hr_calloc(tensors, sizeof *f->data);
    f->sum = hr_calloc(tensors, sizeof *f->sum);
    f->role = hr_calloc(instrs, sizeof *f->role);
    f->trio_of = hr_calloc(instrs, sizeof *f->trio_of);
    if (f->gradient == NULL || f->weights == NULL || f->data == NULL || f->sum == NULL || f->role == NULL ||
        f->trio_of == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the readers of %u tensors", tensors);
    }
    note_readers(f);
    HR_TRY(find_trios(f, err));
    return f->trios.count == 0 ? HR_OK : rewrite(f, err);
}

hr_status pass_fuse_qkv(draft *d, hr_err *err)
{
    finder f = {.d = d};
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off") ||
        !target_absorbs(d->target, TARGET_JOINS, HR_OP_ATTENTION)) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &f.uses, err));
    const hr_status status = join(&f, err);
    draft_uses_deinit(&f.uses);
    hr_free(f.gradient);
    hr_free(f.weights);
    hr_free(f.data);
    hr_free(f.sum);
    hr_free(f.role);
    hr_free(f.trio_of);
    vec_deinit(&f.trios);
    return status;
}
