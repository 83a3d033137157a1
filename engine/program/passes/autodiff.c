// SPDX-License-Identifier: Apache-2.0
// Pass autodiff: backward instructions from the gradient rules of the operation rows, in reverse order.
//
// Gradients that reach a tensor on several ways are added in the order they are met.
#include <string.h>

#include "program/draft.h"

void draft_mark_watched(const draft *d, bool *needs)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        needs[d->param_tensor[k]] = d->model->params[k].trainable;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        bool any = false;
        for (uint32_t k = 0; k < i->in_count; k++) {
            any = any || needs[i->in[k]];
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            needs[i->out[k]] = any;
        }
    }
}

// What a kernel makes of weights that are frozen, beside what is needed, is nobody's gradient.
static hr_status gradient_tensor(draft *d, uint32_t primal, uint32_t *id, hr_err *err)
{
    const tensor *p = &d->tensors.data[primal];
    op_operand o = tensor_operand(p);
    const bool frozen = p->category == HR_CATEGORY_WEIGHTS && !d->model->params[p->param].trainable;
    bool of_weights = p->category == HR_CATEGORY_WEIGHTS && !frozen;
    uint32_t param = p->param;
    const char *name = draft_suffixed(d, p->name, "grad");
    // The gradient of a cast lives until it is cast back.
    const hr_category category = of_weights                                   ? HR_CATEGORY_GRADIENTS
                                 : frozen || p->category == HR_CATEGORY_CASTS ? HR_CATEGORY_TEMPORARIES
                                                                              : HR_CATEGORY_ACTIVATIONS;
    HR_TRY(draft_tensor(d, name, &o, category, p->layer, id, err));
    d->tensors.data[*id].param = of_weights ? param : HR_NO_ID;
    return HR_OK;
}

// `gradient` becomes (or is added to) the gradient of `primal`.
static hr_status contribute(draft *d, uint32_t primal, uint32_t gradient, hr_err *err)
{
    uint32_t before = d->gradient[primal];
    if (before == HR_NO_ID) {
        d->gradient[primal] = gradient;
        return HR_OK;
    }
    uint32_t sum = 0;
    HR_TRY(gradient_tensor(d, primal, &sum, err));
    instr *i = draft_instr(d, &d->instrs, HR_OP_ADD, HR_PHASE_BACKWARD, d->tensors.data[primal].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_in(i, before);
    instr_in(i, gradient);
    instr_out(i, sum);
    d->gradient[primal] = sum;
    return HR_OK;
}

// What a copy of a variable passes on is the variable's.
static void claim(draft *d, uint32_t primal, uint32_t gradient)
{
    const tensor *p = &d->tensors.data[primal];
    tensor *t = &d->tensors.data[gradient];
    if (p->category == HR_CATEGORY_WEIGHTS && t->category == HR_CATEGORY_TEMPORARIES) {
        t->category = HR_CATEGORY_GRADIENTS;
        t->param = p->param;
    }
}

static uint32_t operand_of(const draft *d, const instr *forward, op_grad_operand o)
{
    const framework_rule *rule = draft_rule(d, forward->op);
    switch ((op_source)o.source) {
    case OP_SRC_IN:
        return forward->in[o.index];
    case OP_SRC_OUT:
        if (rule != NULL && rule->gradient_of_in && o.index == 0) {
            return forward->in[0];
        }
        return forward->out[o.index];
    case OP_SRC_GRAD:
        return d->gradient[forward->out[o.index]];
    }
    return HR_NO_ID;
}

static bool rule_applies(const op_grad *rule, const instr *forward, const bool *needs)
{
    if (rule->when_outputs != 0 && rule->when_outputs != forward->out_count) {
        return false;
    }
    for (uint32_t k = 0; k < rule->result_count; k++) {
        if (rule->result[k] < forward->in_count && needs[forward->in[rule->result[k]]]) {
            return true;
        }
    }
    return false;
}

// What the gradients of one instruction's results give to its inputs.
typedef struct contributions {
    uint32_t primal[OP_MAX_GRADS * OP_MAX_OUT], gradient[OP_MAX_GRADS * OP_MAX_OUT];
    uint32_t count;
} contributions;

static hr_status contribute_all(draft *d, contributions *c, hr_err *err)
{
    for (uint32_t k = 0; k < c->count; k++) {
        HR_TRY(contribute(d, c->primal[k], c->gradient[k], err));
    }
    c->count = 0;
    return HR_OK;
}

static hr_status emit_rule(draft *d, const op_grad *rule, const instr *forward, const bool *needs,
                           contributions *c, hr_err *err)
{
    uint32_t out[OP_MAX_OUT];
    uint32_t out_count = 0;
    for (uint32_t k = 0; k < rule->result_count && rule->result[k] < forward->in_count; k++) {
        HR_TRY(gradient_tensor(d, forward->in[rule->result[k]], &out[out_count++], err));
    }
    instr *i = draft_instr(d, &d->instrs, rule->op, HR_PHASE_BACKWARD, forward->layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->serves = forward->id;
    i->attr = forward->attr;
    if (rule->attr != NULL) {
        op_query q;
        draft_query(d, forward, &q);
        rule->attr(&q, &i->attr);
    }
    for (uint32_t k = 0; k < rule->operand_count; k++) {
        if (rule->operand[k].source != OP_SRC_IN || rule->operand[k].index < forward->in_count) {
            instr_in(i, operand_of(d, forward, rule->operand[k]));
        }
    }
    for (uint32_t k = 0; k < out_count; k++) {
        instr_out(i, out[k]);
    }
    if (op_row_of(rule->op)->view) {
        d->tensors.data[out[0]].storage = draft_owner(d, i->in[0]);
    }
    for (uint32_t k = 0; k < out_count; k++) {
        uint32_t primal = forward->in[rule->result[k]];
        if (needs[primal]) {
            c->primal[c->count] = primal;
            c->gradient[c->count++] = out[k];
        }
    }
    return HR_OK;
}

// A loss is where a chain begins: it needs no gradient of its own.
static bool writes_loss(const draft *d, const instr *forward)
{
    for (uint32_t k = 0; k < d->model->loss_count; k++) {
        uint32_t loss = d->value_tensor[d->model->losses[k].value];
        for (uint32_t o = 0; o < forward->out_count; o++) {
            if (forward->out[o] == loss && d->model->losses[k].weight > 0) {
                return true;
            }
        }
    }
    return false;
}

static bool comes_before(const op_grad *a, const op_grad *b, bool first_is_last)
{
    const bool before = a->result[0] < b->result[0];
    return first_is_last && (a->result[0] == 0 || b->result[0] == 0) ? !before : before;
}

// As they stand in the row, which leaves most room for work in place; PyTorch makes gradients in the order of the inputs.
static void order_rules(const draft *d, const instr *forward, uint8_t order[OP_MAX_GRADS])
{
    const op_row *row = op_row_of(forward->op);
    const framework_rule *rule = draft_rule(d, forward->op);
    op_query q;
    draft_query(d, forward, &q);
    const bool last = rule != NULL && rule->first_gradient_last != NULL && rule->first_gradient_last(&q);
    for (uint8_t k = 0; k < row->grad_count; k++) {
        uint8_t at = k;
        while (d->pytorch && at > 0 && comes_before(&row->grad[k], &row->grad[order[at - 1]], last)) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = k;
    }
}

static hr_status differentiate(draft *d, const instr *forward, const bool *needs, hr_err *err)
{
    const op_row *row = op_row_of(forward->op);
    bool reached = forward->out_count > 0 && d->gradient[forward->out[0]] != HR_NO_ID;
    if (!reached && !writes_loss(d, forward)) {
        return HR_OK;
    }
    for (uint32_t k = 0; k < forward->in_count; k++) {
        if ((row->passes_gradient >> k & 1) != 0 && needs[forward->in[k]]) {
            claim(d, forward->in[k], d->gradient[forward->out[0]]);
            HR_TRY(contribute(d, forward->in[k], d->gradient[forward->out[0]], err));
        }
    }
    if (forward->op == HR_OP_PERMUTE && (forward->attr.flags & OP_FLAG_JOINED) != 0) { // a copy's is the same
        return needs[forward->in[0]] ? contribute(d, forward->in[0], d->gradient[forward->out[0]], err)
                                     : HR_OK;
    }
    contributions given = {.count = 0};
    uint8_t order[OP_MAX_GRADS];
    order_rules(d, forward, order);
    for (uint32_t k = 0; k < row->grad_count; k++) {
        if (rule_applies(&row->grad[order[k]], forward, needs)) {
            HR_TRY(emit_rule(d, &row->grad[order[k]], forward, needs, &given, err));
            // PyTorch adds up when all gradients of an operation are there.
            HR_TRY(d->pytorch ? HR_OK : contribute_all(d, &given, err));
        }
    }
    return contribute_all(d, &given, err);
}

hr_status pass_autodiff(draft *d, hr_err *err)
{
    uint32_t forward_count = d->instrs.count;
    uint32_t forward_tensors = d->tensors.count;
    bool *needs = hr_calloc(forward_tensors, sizeof *needs);
    d->gradient = hr_calloc(forward_tensors, sizeof *d->gradient);
    if (needs == NULL || d->gradient == NULL) {
        hr_free(needs);
        return HR_FAIL(err, NOMEM, "no host memory for the gradients of %u tensors", forward_tensors);
    }
    memset(d->gradient, 0xff, forward_tensors * sizeof *d->gradient);
    draft_mark_watched(d, needs);
    hr_status status = HR_OK;
    for (uint32_t n = forward_count; n-- > 0 && status == HR_OK;) {
        instr forward = d->instrs.data[n];
        status = differentiate(d, &forward, needs, err);
    }
    hr_free(needs);
    return status;
}
