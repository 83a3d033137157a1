// SPDX-License-Identifier: Apache-2.0
// Pass optimizer: one update per trainable variable in canonical order, its average behind it.
#include "program/draft.h"
#include "program/optimizer_rules.h"

// w ← its gradient, with the slots of its rule, which are updated like w itself.
static hr_status add_update(draft *d, uint32_t param, hr_err *err)
{
    const uint32_t variable = d->param_tensor[param];
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[param].shape);
    instr *i = draft_instr(d, &d->instrs, rule->op, HR_PHASE_UPDATE, d->tensors.data[variable].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr = optimizer_attr(rule, d->knobs);
    instr_in(i, variable);
    instr_in(i, d->gradient[variable]);
    instr_out(i, variable);
    for (unsigned s = 0; s < optimizer_slot_count(rule); s++) {
        instr_in(i, d->first_slot[param] + s);
        instr_out(i, d->first_slot[param] + s);
    }
    draft_mask_update(d, param, i);
    if (d->scaling.dynamic) {
        instr_in(i, d->scaling.finite);
    }
    return HR_OK;
}

// The average of a variable, which is its last slot, follows it.
static hr_status add_average(draft *d, uint32_t param, hr_err *err)
{
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[param].shape);
    const uint32_t average = d->first_slot[param] + optimizer_slot_count(rule);
    instr *i = draft_instr(d, &d->instrs, HR_OP_EMA, HR_PHASE_UPDATE, d->model->params[param].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr.momentum = hr_knob_real(d->knobs, HR_KNOB_OPTIMIZER_EMA);
    instr_in(i, average);
    instr_in(i, d->param_tensor[param]);
    instr_out(i, average);
    if (d->scaling.dynamic) {
        instr_in(i, d->scaling.finite);
    }
    return HR_OK;
}

// ---- execution.as=pytorch: what torch.optim makes on the way (adam.py, rmsprop.py, sgd.py of 2.15) --------------

// As large as a variable: its gradient with the decay added to it, the root of its second moment, and that over a correction.
typedef enum on_the_way { DECAYED, ROOT, DENOMINATOR, WAYS } on_the_way;
static const char *const ways[WAYS] = {"decayed", "root", "denominator"};

static bool optimizes_as(const draft *d, const char *kind)
{
    return hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_KIND, kind);
}

static bool is_made(const draft *d, on_the_way what)
{
    const bool loop = hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_IMPLEMENTATION, "loop");
    const bool adam = optimizes_as(d, "adam") || optimizes_as(d, "adamw");
    if (!d->pytorch || hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_IMPLEMENTATION, "fused")) {
        return false;
    }
    switch (what) {
    case DECAYED: { // AdamW takes it from the variable, in place
        const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[0].shape);
        return !optimizes_as(d, "adamw") && optimizer_attr(rule, d->knobs).rate != 0;
    }
    case ROOT:
        return adam || optimizes_as(d, "rmsprop");
    case DENOMINATOR:
        return adam && loop;
    case WAYS:
        break;
    }
    return false;
}

// Has torch.optim a tensor of its own for it?
static bool is_one(const draft *d, uint32_t param)
{
    return !d->pytorch || d->pack[param] != 0;
}

static bool is_updated(const draft *d, uint32_t param)
{
    return d->model->params[param].trainable && d->gradient[d->param_tensor[param]] != HR_NO_ID;
}

static uint32_t last_id(const draft *d)
{
    return d->instrs.data[d->instrs.count - 1].id;
}

static hr_status add_on_the_way(draft *d, uint32_t param, const char *name, uint32_t *id, hr_err *err)
{
    const tensor *variable = &d->tensors.data[d->param_tensor[param]];
    const draft_held held = {.name = draft_suffixed(d, variable->name, name),
                             .bytes = variable->bytes * (d->pytorch ? d->pack[param] : 1),
                             .category = HR_CATEGORY_TEMPORARIES,
                             .phase = HR_PHASE_UPDATE,
                             .layer = variable->layer};
    return draft_hold(d, &d->instrs, &held, id, err);
}

// Lists of all variables, in front of the first update; *first is their first tensor.
static hr_status add_lists(draft *d, uint32_t *first, hr_err *err)
{
    *first = d->tensors.count;
    for (on_the_way what = DECAYED; what < DENOMINATOR; what++) {
        for (uint32_t k = 0; is_made(d, what) && k < d->model->param_count; k++) {
            uint32_t id = 0;
            HR_TRY(is_updated(d, k) && is_one(d, k) ? add_on_the_way(d, k, ways[what], &id, err) : HR_OK);
        }
    }
    return HR_OK;
}

// For one variable. What has a name in the loop lives until the next one has it: before[WAYS] are those of the variable before.
static hr_status add_for_one(draft *d, uint32_t param, uint32_t before[WAYS], hr_err *err)
{
    for (on_the_way what = DECAYED; what < WAYS; what++) {
        if (!is_made(d, what)) {
            continue;
        }
        uint32_t id = 0;
        HR_TRY(add_on_the_way(d, param, ways[what], &id, err));
        if (before[what] != HR_NO_ID && what != DECAYED) {
            d->tensors.data[before[what]].held_until = last_id(d);
        }
        before[what] = id;
    }
    if (is_made(d, DENOMINATOR)) {
        d->tensors.data[before[ROOT]].held_until = last_id(d); // it has no name
        before[ROOT] = HR_NO_ID;
    }
    return HR_OK;
}

static void hold_to_here(draft *d, uint32_t before[WAYS], on_the_way first, on_the_way end)
{
    for (on_the_way what = first; what < end; what++) {
        if (before[what] != HR_NO_ID) {
            d->tensors.data[before[what]].held_until = last_id(d);
        }
    }
}

// ---- execution.as=tensorflow: an optimizer of Keras' is arithmetic of Python's, operation by operation -----------

// Results as large as the variable that are alive at once, at most (keras/src/optimizers of 3.15).
static unsigned keras_makes(const draft *d, uint32_t param)
{
    static const struct {
        const char *kind;
        unsigned results;
    } rows[] = {{"sgd", 1}, {"momentum", 3}, {"rmsprop", 4}, {"adam", 3}, {"adamw", 3}, {"lion", 3}};
    enum {
        DECAYING = 2
    }; // variable * weight_decay * learning_rate, of all variables before the first update
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[param].shape);
    const unsigned least = optimizer_attr(rule, d->knobs).rate != 0 ? DECAYING : 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (optimizes_as(d, rows[k].kind)) {
            return rows[k].results > least ? rows[k].results : least;
        }
    }
    return least;
}

// The update of one variable, and what is made on the way.
static hr_status add_keras_update(draft *d, uint32_t param, hr_err *err)
{
    const uint32_t first = d->tensors.count;
    for (unsigned n = keras_makes(d, param); n > 0; n--) {
        uint32_t id = 0;
        HR_TRY(add_on_the_way(d, param, "result", &id, err));
    }
    const uint32_t end = d->tensors.count;
    HR_TRY(add_update(d, param, err));
    for (uint32_t k = first; k < end; k++) {
        d->tensors.data[k].held_until = last_id(d);
    }
    return HR_OK;
}

hr_status pass_optimizer(draft *d, hr_err *err)
{
    const bool loop = hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_IMPLEMENTATION, "loop");
    uint32_t first = d->tensors.count, before[WAYS] = {HR_NO_ID, HR_NO_ID, HR_NO_ID};
    HR_TRY(loop ? HR_OK : add_lists(d, &first, err));
    const uint32_t end = d->tensors.count;
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (is_updated(d, k)) {
            HR_TRY(loop && is_one(d, k) ? add_for_one(d, k, before, err) : HR_OK);
            HR_TRY(d->tensorflow ? add_keras_update(d, k, err) : add_update(d, k, err));
            hold_to_here(d, before, DECAYED, ROOT);
            HR_TRY(optimizer_averages(d->knobs) ? add_average(d, k, err) : HR_OK);
        }
    }
    hold_to_here(d, before, ROOT, WAYS);
    for (uint32_t k = first; k < end; k++) {
        d->tensors.data[k].held_until = last_id(d);
    }
    return HR_OK;
}
