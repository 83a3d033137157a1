// SPDX-License-Identifier: Apache-2.0
// Pass accumulate (batch.accumulate N): the step so far becomes the round of a loop, and the optimizer behind it sees
// the mean of N gradients in the place of one (reference tensorflow.md E2).
//
//   zeros sum …
//   repeat N
//     input, forward, backward, read
//     accumulate sum, gradient
//   end
//   scale sum …          by 1/N
//
// The sums are persistent, one for each variable in its type. eager adds when it has the whole list of gradients, as a
// call of the optimizer does; graph adds each as soon as it is complete, so that it is freed there, and so does
// execution.as=pytorch, where the sums are .grad: what PyTorch has of it from the second round on.
#include <string.h>

#include "program/draft.h"

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
}

static bool has_gradient(const draft *d, uint32_t param)
{
    return d->model->params[param].trainable && d->gradient[d->param_tensor[param]] != HR_NO_ID;
}

static uint32_t layer_of(const draft *d, uint32_t param)
{
    return d->model->params[param].layer;
}

static hr_status add_zeros(draft *d, instr_list *list, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (!has_gradient(d, k)) {
            continue;
        }
        instr *i = draft_instr(d, list, HR_OP_ZEROS, HR_PHASE_INPUT, layer_of(d, k));
        if (i == NULL) {
            return no_memory(err);
        }
        instr_out(i, d->accumulator[k]);
    }
    return HR_OK;
}

static hr_status add_sum(draft *d, instr_list *list, uint32_t param, hr_err *err)
{
    instr *i = draft_instr(d, list, HR_OP_ACCUMULATE, HR_PHASE_UPDATE, layer_of(d, param));
    if (i == NULL) {
        return no_memory(err);
    }
    instr_in(i, d->accumulator[param]);
    instr_in(i, d->gradient[d->param_tensor[param]]);
    instr_out(i, d->accumulator[param]);
    return HR_OK;
}

static hr_status add_mean(draft *d, instr_list *list, uint32_t param, int32_t rounds, hr_err *err)
{
    instr *i = draft_instr(d, list, HR_OP_SCALE, HR_PHASE_UPDATE, layer_of(d, param));
    if (i == NULL) {
        return no_memory(err);
    }
    i->attr.scale = 1.0 / rounds;
    instr_in(i, d->accumulator[param]);
    instr_out(i, d->accumulator[param]);
    return HR_OK;
}

static hr_status add_control(draft *d, instr_list *list, hr_op op, hr_phase phase, int32_t rounds,
                             hr_err *err)
{
    instr *i = draft_instr(d, list, op, phase, HR_NO_ID);
    if (i == NULL) {
        return no_memory(err);
    }
    i->attr.count = rounds;
    return HR_OK;
}

// Which variables a tensor is the gradient of: first[tensor], then next[param], HR_NO_ID behind the last.
typedef struct owners {
    uint32_t *first, *next;
} owners;

static bool find_owners(const draft *d, owners *o)
{
    o->first = hr_calloc(d->tensors.count, sizeof *o->first);
    o->next = hr_calloc(d->model->param_count + 1u, sizeof *o->next);
    if (o->first == NULL || o->next == NULL) {
        return false;
    }
    memset(o->first, 0xff, d->tensors.count * sizeof *o->first);
    for (uint32_t k = d->model->param_count; k-- > 0;) {
        if (has_gradient(d, k)) {
            uint32_t gradient = d->gradient[d->param_tensor[k]];
            o->next[k] = o->first[gradient];
            o->first[gradient] = k;
        }
    }
    return true;
}

// What the round did before, each gradient added where it is complete, or (eager) all behind the last.
static hr_status add_round(draft *d, instr_list *list, const owners *o, hr_err *err)
{
    const bool at_once = !d->eager || d->pytorch;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr i = d->instrs.data[n];
        instr *place = vec_push(list);
        if (place == NULL) {
            return no_memory(err);
        }
        *place = i;
        for (uint32_t k = 0; at_once && k < i.out_count; k++) {
            for (uint32_t p = o->first[i.out[k]]; p != HR_NO_ID; p = o->next[p]) {
                HR_TRY(add_sum(d, list, p, err));
            }
        }
    }
    for (uint32_t k = 0; !at_once && k < d->model->param_count; k++) {
        if (has_gradient(d, k)) {
            HR_TRY(add_sum(d, list, k, err));
        }
    }
    return HR_OK;
}

static hr_status add_means(draft *d, instr_list *list, int32_t rounds, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (has_gradient(d, k)) {
            HR_TRY(add_mean(d, list, k, rounds, err));
            d->gradient[d->param_tensor[k]] = d->accumulator[k];
        }
    }
    return HR_OK;
}

static hr_status write_loop(draft *d, instr_list *list, const owners *o, hr_err *err)
{
    int32_t rounds = (int32_t)hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE);
    HR_TRY(add_zeros(d, list, err));
    HR_TRY(add_control(d, list, HR_OP_REPEAT, HR_PHASE_INPUT, rounds, err));
    HR_TRY(add_round(d, list, o, err));
    HR_TRY(add_control(d, list, HR_OP_END, HR_PHASE_UPDATE, 0, err));
    return add_means(d, list, rounds, err);
}

hr_status pass_accumulate(draft *d, hr_err *err)
{
    owners o = {NULL, NULL};
    instr_list list = {NULL, 0, 0};
    if (hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) == 1) {
        return HR_OK;
    }
    hr_status status = find_owners(d, &o) ? write_loop(d, &list, &o, err) : no_memory(err);
    if (status == HR_OK) {
        vec_deinit(&d->instrs);
        d->instrs = list;
    } else {
        vec_deinit(&list);
    }
    hr_free(o.first);
    hr_free(o.next);
    return status;
}
