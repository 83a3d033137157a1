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

hr_status pass_optimizer(draft *d, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (d->model->params[k].trainable && d->gradient[d->param_tensor[k]] != HR_NO_ID) {
            HR_TRY(add_update(d, k, err));
            HR_TRY(optimizer_averages(d->knobs) ? add_average(d, k, err) : HR_OK);
        }
    }
    return HR_OK;
}
