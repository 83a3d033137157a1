// SPDX-License-Identifier: Apache-2.0
// Pass prune (compress.prune), behind the optimizer: one PRUNE for each kernel that has a mask, and one for its average where there
// is one, behind all updates. So weights are masked whenever nobody computes: evaluations and saves see zeros where they will
// be, and the forward pass of the next step has the weights that tfmot gives it, which makes and applies masks as a step begins.
// Where the optimizer's kernel can, the update masks as it writes (TARGET_MASKS), and PRUNE has its turns alone.
//
// What tfmot does before the first step of all stands in front of the step, where the schedule has a turn there.
//
// Prunable is what tfmot's registry names: kernels of dense layers and convolutions (grouped, not depthwise), tables of embeddings,
// both kernels of recurrent layers; of them those that train, and of whole filters those that may go (model/channels.h): what follows
// them is masked with them.
#include "knobs/prune.h"

#include <string.h>

#include "model/channels.h"
#include "ops/prune.h"
#include "program/draft.h"
#include "program/optimizer_rules.h"

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
}

// ---- kernels ----------------------------------------------------------------------------------------------------

static bool is_depthwise(const model_node *node, const hr_shape *w)
{
    return node->op == HR_OP_CONV2D && node->attr.groups > 1 && w->dim[2] == 1;
}

// Is input 1 of such an operation a kernel?
static bool takes_kernel(hr_op op)
{
    return op == HR_OP_DENSE || op == HR_OP_CONV2D || op == HR_OP_CONV2D_TRANSPOSE || op == HR_OP_EMBEDDING ||
           op == HR_OP_LSTM || op == HR_OP_GRU;
}

static bool reads_as_kernel(const draft *d, const model_node *node, uint32_t param)
{
    return takes_kernel(node->op) && node->in_count > 1 && node->in[1].is_param &&
           node->in[1].index == param && !is_depthwise(node, &d->model->params[param].shape);
}

static bool is_prunable(const draft *d, const prune_choice *c, const model_channels *channels, uint32_t param)
{
    bool is_kernel = false;
    for (uint32_t n = 0; n < d->model->node_count; n++) {
        is_kernel = is_kernel || reads_as_kernel(d, &d->model->nodes[n], param);
    }
    return is_kernel && d->model->params[param].trainable &&
           (c->structure != PRUNE_BY_FILTER || channels->may_go[param]);
}

// Is output in front of input there: [O, I] of a transposed product, [kh, kw, O, I] of a transposed convolution?
static bool is_turned(const draft *d, uint32_t param)
{
    bool turned = false;
    for (uint32_t n = 0; n < d->model->node_count; n++) {
        const model_node *node = &d->model->nodes[n];
        const bool product = node->op == HR_OP_DENSE && (node->attr.flags & OP_FLAG_TRANSPOSE) != 0;
        turned =
            turned || (reads_as_kernel(d, node, param) && (product || node->op == HR_OP_CONV2D_TRANSPOSE));
    }
    return turned;
}

static int32_t filter_axis(const draft *d, uint32_t param)
{
    return (int32_t)d->model->params[param].shape.rank - (is_turned(d, param) ? 2 : 1);
}

// GROUPS lie along what is multiplied into one sum, but with transposed convolutions, as tfmot has it, along the outputs too.
static int32_t axis_of(const draft *d, const prune_choice *c, uint32_t param)
{
    const uint32_t rank = d->model->params[param].shape.rank;
    const bool turned = is_turned(d, param);
    if (c->structure == PRUNE_BY_FILTER) {
        return filter_axis(d, param);
    }
    return rank == 4 ? 2 : turned ? 1 : 0;
}

// ---- what a structure asks of a kernel --------------------------------------------------------------------------

static hr_status refuse(const draft *d, uint32_t param, const char *needs, hr_err *err)
{
    const model_param *p = &d->model->params[param];
    char shape[64];
    const hr_status status = HR_FAIL(err, CONSTRAINT, "compress.prune_structure %s needs %s, and %s is %s",
                                     hr_knob_text(d->knobs, HR_KNOB_COMPRESS_PRUNE_STRUCTURE), needs, p->name,
                                     shape_text(&p->shape, shape, sizeof shape));
    hr_err_try(err, "-s compress.prune_structure=element");
    return status;
}

static hr_status check_structure(const draft *d, const prune_choice *c, uint32_t param, hr_err *err)
{
    const hr_shape *w = &d->model->params[param].shape;
    if (c->structure == PRUNE_BY_BLOCK && w->rank != 2) {
        return refuse(d, param, "kernels that are matrices", err);
    }
    if (c->structure == PRUNE_BY_BLOCK && (c->rows > w->dim[0] || c->columns > w->dim[1])) {
        return refuse(d, param, "kernels at least as large as a block", err);
    }
    if (c->structure == PRUNE_BY_GROUP && w->rank != 2 && w->rank != 4) {
        return refuse(d, param, "kernels of two or four dimensions", err);
    }
    return HR_OK;
}

static hr_status add_mask(draft *d, uint32_t param, hr_err *err)
{
    const op_operand kernel = tensor_operand(&d->tensors.data[d->param_tensor[param]]);
    const char *name = draft_suffixed(d, d->model->params[param].name, "mask");
    HR_TRY(draft_tensor(d, name, &kernel, HR_CATEGORY_STATE, d->model->params[param].layer, &d->mask[param],
                        err));
    d->tensors.data[d->mask[param]].initial = 1;
    return HR_OK;
}

// Factors stand where kernels with filters stood: what is missing is by the knobs, not of the model.
static hr_status refuse_factors(const draft *d, hr_err *err)
{
    const hr_status status =
        HR_FAIL(err, CONSTRAINT,
                "compress.prune_structure=filter prunes filters that only other kernels read, and factors "
                "keep theirs: under compress.low_rank=%s %s has none",
                hr_knob_text(d->knobs, HR_KNOB_COMPRESS_LOW_RANK), d->model->name);
    hr_err_try(err, "-s compress.low_rank=none, or -s compress.prune_structure=element");
    return status;
}

static bool has_factors(const hr_model *m)
{
    bool has = false;
    for (uint32_t k = 0; k < m->own_params && !has; k++) {
        has = m->params[k].factor != MODEL_FACTOR_NONE;
    }
    return has;
}

static hr_status refuse_unprunable(const draft *d, const prune_choice *c, hr_err *err)
{
    const bool by_filter = c->structure == PRUNE_BY_FILTER;
    if (by_filter && has_factors(d->model)) {
        return refuse_factors(d, err);
    }
    const hr_status status =
        HR_FAIL(err, CONSTRAINT, "compress.prune needs a layer with a kernel that trains%s, and %s has none",
                by_filter ? " and whose filters only other kernels read" : "", d->model->name);
    hr_err_try(err, by_filter ? "-s compress.prune_structure=element" : "-s compress.prune=none");
    return status;
}

static hr_status add_masks(draft *d, const prune_choice *c, const model_channels *channels, hr_err *err)
{
    bool any = false;
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (is_prunable(d, c, channels, k)) {
            any = true;
            HR_TRY(check_structure(d, c, k, err));
            HR_TRY(add_mask(d, k, err));
        }
    }
    return any ? HR_OK : refuse_unprunable(d, c, err);
}

hr_status draft_add_masks(draft *d, hr_err *err)
{
    prune_choice c;
    model_channels channels;
    (void)prune_choice_of(d->knobs, &c);
    if (!c.prunes || !d->recorded) {
        return HR_OK;
    }
    hr_status status = model_channels_of(d->model, &channels, err);
    status = status == HR_OK ? add_masks(d, &c, &channels, err) : status;
    model_channels_deinit(&channels);
    return status;
}

// ---- instructions -----------------------------------------------------------------------------------------------

static op_attr schedule_of(const draft *d, const prune_choice *c, uint32_t param)
{
    static const op_prune_rule rules[] = {[PRUNE_BY_ELEMENT] = PRUNE_ELEMENTS,
                                          [PRUNE_BY_BLOCK] = PRUNE_BLOCKS,
                                          [PRUNE_BY_GROUP] = PRUNE_GROUPS,
                                          [PRUNE_BY_FILTER] = PRUNE_FILTERS};
    return (op_attr){.offset = c->begin,
                     .count = c->end,
                     .stride_h = c->frequency,
                     .epsilon = c->from,
                     .momentum = c->to,
                     .base = c->power,
                     .rule = (int32_t)rules[c->structure],
                     .kernel_h = c->rows,
                     .kernel_w = c->columns,
                     .axis = axis_of(d, c, param)};
}

// An update of float32 whose kernel masks leaves to PRUNE the turns on which a mask is made. Not where each instruction shall be seen
// by itself.
static bool update_masks(const draft *d, uint32_t param)
{
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[param].shape);
    return d->mask[param] != HR_NO_ID && d->tensors.data[d->param_tensor[param]].dtype != HR_F64 &&
           d->gradient[d->param_tensor[param]] != HR_NO_ID && !d->tensorflow &&
           !hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off") &&
           target_absorbs(d->target, TARGET_MASKS, rule->op);
}

void draft_mask_update(const draft *d, uint32_t param, instr *i)
{
    prune_choice c;
    if (!update_masks(d, param)) {
        return;
    }
    (void)prune_choice_of(d->knobs, &c);
    const op_attr schedule = schedule_of(d, &c, param);
    i->attr.offset = schedule.offset;
    i->attr.count = schedule.count;
    i->attr.stride_h = schedule.stride_h;
    i->attr.rule = schedule.rule;
    i->attr.slot = 1;
    i->attr.flags |= OP_FLAG_MASKED;
    instr_in(i, d->mask[param]);
}

static instr *add_prune(draft *d, instr_list *list, hr_phase phase, uint32_t param, uint32_t of)
{
    instr *i = draft_instr(d, list, HR_OP_PRUNE, phase, d->model->params[param].layer);
    if (i != NULL) {
        instr_in(i, of);
        instr_in(i, d->mask[param]);
        instr_out(i, of);
        instr_out(i, d->mask[param]);
    }
    return i;
}

static hr_status add_behind(draft *d, const op_attr *attr, uint32_t param, uint32_t of, hr_err *err)
{
    instr *i = add_prune(d, &d->instrs, HR_PHASE_UPDATE, param, of);
    if (i == NULL) {
        return no_memory(err);
    }
    i->attr = *attr;
    i->attr.slot = 1;
    if (d->scaling.dynamic) {
        instr_in(i, d->scaling.finite);
    }
    return HR_OK;
}

// The average has the mask that its variable has by now.
static hr_status add_for_kernel(draft *d, const prune_choice *c, uint32_t param, hr_err *err)
{
    op_attr attr = schedule_of(d, c, param);
    attr.flags = update_masks(d, param) ? OP_FLAG_MASKED : 0;
    HR_TRY(add_behind(d, &attr, param, d->param_tensor[param], err));
    attr.stride_h = attr.flags = 0;
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[param].shape);
    const uint32_t average = d->first_slot[param] + optimizer_slot_count(rule);
    return optimizer_averages(d->knobs) ? add_behind(d, &attr, param, average, err) : HR_OK;
}

// ---- what follows a kernel --------------------------------------------------------------------------------------

static hr_status add_follower(draft *d, instr_list *list, hr_phase phase, const channel_part *part,
                              uint32_t of, hr_err *err)
{
    instr *i = draft_instr(d, list, HR_OP_PRUNE_CHANNELS, phase, d->model->params[part->param].layer);
    if (i == NULL) {
        return no_memory(err);
    }
    instr_in(i, of);
    instr_in(i, d->mask[part->kernel]);
    instr_out(i, of);
    i->attr.axis = filter_axis(d, part->kernel);
    i->attr.offset = (int32_t)part->offset;
    i->attr.count = (int32_t)part->each;
    i->attr.stride_w = (int32_t)part->pitch;
    return HR_OK;
}

// What trains alone: running statistics of what is always 0 say so by themselves.
static bool follows(const draft *d, const channel_part *part)
{
    return part->role == CHANNEL_FOLLOWS && d->mask[part->kernel] != HR_NO_ID &&
           d->model->params[part->param].trainable;
}

static hr_status add_followers(draft *d, instr_list *list, hr_phase phase, hr_err *err)
{
    model_channels channels;
    hr_status status = model_channels_of(d->model, &channels, err);
    for (uint32_t k = 0; status == HR_OK && k < channels.parts.count; k++) {
        const channel_part *part = &channels.parts.data[k];
        if (!follows(d, part)) {
            continue;
        }
        const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[part->param].shape);
        status = add_follower(d, list, phase, part, d->param_tensor[part->param], err);
        if (status == HR_OK && phase == HR_PHASE_UPDATE && optimizer_averages(d->knobs)) {
            const uint32_t average = d->first_slot[part->param] + optimizer_slot_count(rule);
            status = add_follower(d, list, phase, part, average, err);
        }
    }
    model_channels_deinit(&channels);
    return status;
}

// ---- in front of the step ---------------------------------------------------------------------------------------

// Where the step's own work begins: behind the copies of its batch, or in front of the rounds.
static uint32_t first_place(const draft *d)
{
    uint32_t n = 0;
    while (n < d->instrs.count && d->instrs.data[n].phase == HR_PHASE_INPUT &&
           d->instrs.data[n].op != HR_OP_REPEAT) {
        n++;
    }
    return n;
}

static hr_status add_before(draft *d, const prune_choice *c, instr_list *list, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (d->mask[k] == HR_NO_ID) {
            continue;
        }
        instr *i = add_prune(d, list, HR_PHASE_INPUT, k, d->param_tensor[k]);
        if (i == NULL) {
            return no_memory(err);
        }
        // Its only turn is that of update 1, with the sparsity that the schedule has there.
        const op_attr whole = schedule_of(d, c, k);
        i->attr = whole;
        i->attr.offset = i->attr.count = 1;
        i->attr.epsilon = i->attr.momentum = (double)prune_sparsity32(&whole, 1);
    }
    return c->structure == PRUNE_BY_FILTER ? add_followers(d, list, HR_PHASE_INPUT, err) : HR_OK;
}

static hr_status insert_before(draft *d, const prune_choice *c, hr_err *err)
{
    const uint32_t place = first_place(d);
    instr_list list = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t n = 0; status == HR_OK && n <= d->instrs.count; n++) {
        status = n == place ? add_before(d, c, &list, err) : HR_OK;
        instr *to = status == HR_OK && n < d->instrs.count ? vec_push(&list) : NULL;
        if (to != NULL) {
            *to = d->instrs.data[n];
        } else if (status == HR_OK && n < d->instrs.count) {
            status = no_memory(err);
        }
    }
    if (status != HR_OK) {
        vec_deinit(&list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return HR_OK;
}

hr_status pass_prune(draft *d, hr_err *err)
{
    prune_choice c;
    (void)prune_choice_of(d->knobs, &c);
    for (uint32_t k = 0; c.prunes && k < d->model->param_count; k++) {
        HR_TRY(d->mask[k] == HR_NO_ID ? HR_OK : add_for_kernel(d, &c, k, err));
    }
    HR_TRY(c.prunes && c.structure == PRUNE_BY_FILTER ? add_followers(d, &d->instrs, HR_PHASE_UPDATE, err)
                                                      : HR_OK);
    const op_attr first = {.offset = c.begin,
                           .count = c.end,
                           .stride_h = c.frequency,
                           .rule = c.structure == PRUNE_BY_GROUP ? PRUNE_GROUPS : PRUNE_ELEMENTS};
    return c.prunes && prune_act_at(&first, 1) == PRUNE_MAKE ? insert_before(d, &c, err) : HR_OK;
}
