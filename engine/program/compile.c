// SPDX-License-Identifier: Apache-2.0
#include "program/compile.h"

#include <string.h>

#include "headroom/units.h"

#include "knobs/checkpoint.h"
#include "program/draft.h"

enum { LIMITS_MAX = 64 }; // that are tried for an advice

typedef hr_status (*pass)(draft *d, hr_err *err);

static hr_status skip(draft *d, hr_err *err)
{
    (void)d, (void)err;
    return HR_OK;
}

// The one order of passes. An evaluation, or a step without a tape, has nothing to differentiate; what only feeds has
// nothing to compute.
// clang-format off
static const struct {
    pass recorded, unrecorded, feeding;
} passes[] = {
    {pass_build, pass_build, pass_build},
    {pass_fake_quantize, pass_fake_quantize, skip},
    {pass_pads, pass_pads, skip},
    {pass_packed, skip, skip},
    {skip, pass_quantize, skip},
    {pass_precision, pass_precision, skip},
    {pass_packed_copies, skip, skip},
    {pass_autodiff, skip, skip},
    {pass_scale_loss, skip, skip},
    {pass_mask, skip, skip},
    {pass_dedup, pass_dedup, skip},
    {pass_checkpoint, skip, skip},
    {pass_joined, skip, skip},
    {pass_keep, skip, skip},
    {pass_dequantize, pass_dequantize, skip},
    {pass_framework, skip, skip},
    {pass_read, pass_read, skip},
    {pass_accumulate, skip, skip},
    {pass_unscale, skip, skip},
    {pass_clip, skip, skip},
    {pass_optimizer, skip, skip},
    {pass_prune, skip, skip},
    {pass_rescale, skip, skip},
    {pass_fused_backward, skip, skip},
    {pass_retain, pass_retain, skip},
    {pass_fuse, pass_fuse, skip},
    {pass_fuse_wide, skip, skip},
    {pass_fuse_qkv, pass_fuse_qkv, skip},
    {pass_fuse_sums, pass_fuse_sums, skip},
    {pass_fuse_norms, pass_fuse_norms, skip},
    {pass_fuse_cuts, skip, skip},
    {pass_fuse_loss, skip, skip},
    {pass_fuse_gelu, pass_fuse_gelu, skip},
    {pass_pad_rows, pass_pad_rows, skip},
    {pass_lower, pass_lower, skip},
    {pass_offload, skip, skip},
    {pass_prefetch, pass_prefetch, pass_prefetch},
    {pass_resident, pass_resident, skip},
    {pass_liveness, pass_liveness, pass_liveness},
    {pass_late, pass_late, skip},
};
// clang-format on

static hr_status run_passes(draft *d, hr_err *err)
{
    for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
        const pass run = d->mode == PROGRAM_FEED ? passes[k].feeding
                         : d->recorded           ? passes[k].recorded
                                                 : passes[k].unrecorded;
        HR_TRY(run(d, err));
    }
    return HR_OK;
}

// Workspaces are no state.
static bool is_static(const tensor *t)
{
    return t->category != HR_CATEGORY_INPUT && t->category != HR_CATEGORY_TEMPORARIES && !tensor_on_host(t);
}

// With fused_backward gradients come and go like activations, and as PyTorch has them the sums of several rounds are all there are.
static uint64_t static_bytes(const draft *d)
{
    uint64_t sum = 0;
    const bool summed = d->pytorch && hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) > 1;
    bool holds_gradients =
        d->recorded && !summed && hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off");
    for (uint32_t k = 0; k < d->persistent_count; k++) {
        const tensor *t = &d->tensors.data[k];
        if (is_static(t)) {
            (void)hr_add_bytes(sum, t->bytes, &sum);
        }
        const bool trains = t->param != HR_NO_ID && d->model->params[t->param].trainable;
        if (t->category == HR_CATEGORY_WEIGHTS && holds_gradients && trains) {
            (void)hr_add_bytes(sum, t->bytes, &sum); // its gradient
        }
    }
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        if (d->tensors.data[k].category == HR_CATEGORY_CASTS) {
            (void)hr_add_bytes(sum, d->tensors.data[k].bytes, &sum);
        }
    }
    return sum;
}

// Predictions that are retained are activations until then.
static bool is_activation(const tensor *t)
{
    return t->category == HR_CATEGORY_ACTIVATIONS || t->category == HR_CATEGORY_RETAINED;
}

// Of a tensor that is saved. As a framework counts, everything but parameters and buffers; else activations and images.
static bool counts_as_saved(const draft *d, const tensor *t)
{
    const bool image = t->category == HR_CATEGORY_INPUT && dtype_is_real(t->dtype);
    return d->pytorch || d->tensorflow ? t->category == HR_CATEGORY_INPUT || !t->persistent
                                       : image || is_activation(t);
}

// Each storage once; weights, labels and statistics are not counted (DESIGN §4), labels and statistics of a batch under
// execution.as pytorch and tensorflow are.
static hr_status saved_bytes(const draft *d, uint64_t *sum, hr_err *err)
{
    bool *counted = hr_calloc(d->tensors.count, sizeof *counted);
    if (counted == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %u tensors", d->tensors.count);
    }
    *sum = 0;
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        const tensor *t = &d->tensors.data[k];
        uint32_t owner = draft_owner(d, k);
        if (t->saved && !counted[owner] && counts_as_saved(d, &d->tensors.data[owner])) {
            counted[owner] = true;
            (void)hr_add_bytes(*sum, d->tensors.data[owner].bytes, sum);
        }
    }
    hr_free(counted);
    return HR_OK;
}

static void count_costs(draft *d, program *p)
{
    uint64_t rounds = 1;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        op_query q;
        draft_query(d, i, &q);
        i->flops = op_flops(&q);
        i->bytes_moved = op_bytes_moved(&q);
        rounds = i->op == HR_OP_REPEAT ? (uint64_t)i->attr.count : i->op == HR_OP_END ? 1 : rounds;
        p->flops += rounds * i->flops;
        p->h2d_bytes += i->lane == HR_LANE_H2D && i->op != HR_OP_ADVANCE ? rounds * i->bytes_moved : 0;
    }
}

static hr_status finish(draft *d, program **out, hr_err *err)
{
    program_owner *o = hr_calloc(1, sizeof *o);
    if (o == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a program");
    }
    hr_status status = saved_bytes(d, &o->p.saved_for_backward_bytes, err);
    if (status != HR_OK) {
        hr_free(o);
        return status;
    }
    o->p.mode = d->mode;
    o->p.resident = d->mode == PROGRAM_TRAIN && hr_knob_is(d->knobs, HR_KNOB_PIPELINE_RESIDENT, "on");
    o->p.eager = d->eager;
    o->p.late = d->pytorch;
    o->p.batch = d->batch;
    o->p.rounds = d->recorded ? (uint32_t)hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) : 1;
    o->p.static_bytes = static_bytes(d);
    count_costs(d, &o->p);
    o->p.tensors = d->tensors.data;
    o->p.tensor_count = d->tensors.count;
    o->p.instrs = d->instrs.data;
    o->p.instr_count = d->instrs.count;
    o->p.persistent_count = d->persistent_count;
    o->p.next_instr_id = d->next_instr_id;
    o->p.layer_names = d->layer_names;
    o->p.layer_count = d->model->layer_count;
    o->p.owner = o;
    o->names = d->names;
    d->names = (arena){NULL};
    d->tensors.data = NULL;
    d->instrs.data = NULL;
    *out = &o->p;
    return HR_OK;
}

static hr_status start(draft *d, hr_err *err)
{
    d->param_tensor = hr_calloc(d->model->param_count + 1u, sizeof *d->param_tensor);
    d->first_part = hr_calloc(d->model->param_count + 1u, sizeof *d->first_part);
    d->first_slot = hr_calloc(d->model->param_count + 1u, sizeof *d->first_slot);
    d->accumulator = hr_calloc(d->model->param_count + 1u, sizeof *d->accumulator);
    d->pack = hr_calloc(d->model->param_count + 1u, sizeof *d->pack);
    d->mask = hr_calloc(d->model->param_count + 1u, sizeof *d->mask);
    d->value_tensor = hr_calloc(d->model->value_count, sizeof *d->value_tensor);
    d->layer_names = arena_take(&d->names, d->model->layer_count, sizeof *d->layer_names);
    if (d->param_tensor == NULL || d->first_part == NULL || d->first_slot == NULL || d->accumulator == NULL ||
        d->pack == NULL || d->mask == NULL || d->value_tensor == NULL || d->layer_names == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a program of %u operations", d->model->node_count);
    }
    memset(d->pack, 1, d->model->param_count);
    memset(d->first_part, 0xff, d->model->param_count * sizeof *d->first_part);
    memset(d->mask, 0xff, d->model->param_count * sizeof *d->mask);
    for (uint32_t k = 0; k < d->model->layer_count; k++) {
        d->layer_names[k] = draft_name(d, d->model->layers[k].name);
        if (d->layer_names[k] == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the names of %u layers", d->model->layer_count);
        }
    }
    return HR_OK;
}

static hr_status compile_as(const draft_request *r, program **out, hr_err *err)
{
    const hr_knobs *knobs = r->knobs;
    draft d = {
        .model = r->model,
        .knobs = knobs,
        .target = r->target,
        .mode = r->mode,
        .eager = hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "eager"),
        .pytorch = hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch"),
        .tensorflow = hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "tensorflow"),
        .recorded = r->mode == PROGRAM_TRAIN && !hr_knob_is(knobs, HR_KNOB_EXECUTION_TAPE, "none"),
        .batch = r->batch,
        .way = r->way,
        .ways = r->ways,
        .sends_all = r->sends_all,
        .ahead = r->mode == PROGRAM_EVALUATE ? 0 : hr_knob_batches_ahead(knobs),
    };
    *out = NULL;
    precision_types(knobs, &d.real, &d.compute);
    hr_status status = start(&d, err);
    if (status == HR_OK) {
        status = run_passes(&d, err);
    }
    if (status == HR_OK) {
        status = finish(&d, out, err);
    }
    vec_deinit(&d.tensors);
    vec_deinit(&d.instrs);
    arena_deinit(&d.names);
    hr_free(d.param_tensor);
    hr_free(d.first_part);
    hr_free(d.first_slot);
    hr_free(d.accumulator);
    hr_free(d.pack);
    hr_free(d.mask);
    hr_free(d.value_tensor);
    hr_free(d.gradient);
    hr_free(d.range);
    return status;
}

static hr_status compile(const hr_model *model, const hr_knobs *knobs, program_mode mode, uint32_t batch,
                         const hr_target *target, program **out, hr_err *err)
{
    const draft_request r = {.model = model,
                             .knobs = knobs,
                             .mode = mode,
                             .batch = batch,
                             .target = target,
                             .sends_all = hr_knob_is(knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on")};
    checkpoint_strategy s;
    *out = NULL;
    HR_TRY(checkpoint_strategy_of(knobs, &s, err));
    return s.kind == CHECKPOINT_BUDGET && mode == PROGRAM_TRAIN
               ? draft_compile_within(&r, compile_as, s.budget_bytes, out, err)
               : compile_as(&r, out, err);
}

// Each operation says what it needs itself: the advice becomes a limit that all of them obey.
static void advise_limit(const hr_model *model, const hr_knobs *knobs, program_mode mode, uint32_t batch,
                         const hr_target *target, hr_err *err)
{
    static const char advice[] = "-s workspace.limit=";
    hr_knobs raised = *knobs;
    hr_err next = *err;
    for (int k = 0;
         k < LIMITS_MAX && next.status == HR_DEVICE && strncmp(next.hint, advice, sizeof advice - 1) == 0 &&
         hr_knobs_set_pair(&raised, next.hint + 3, NULL) == HR_OK;
         k++) {
        program *p = NULL;
        hr_err_try(err, "%s", next.hint);
        (void)compile(model, &raised, mode, batch, target, &p, &next);
        program_destroy(p);
        if (p != NULL) {
            return;
        }
    }
}

hr_status program_compile(const hr_model *model, const hr_knobs *knobs, program_mode mode, uint32_t batch,
                          const hr_target *target, program **out, hr_err *err)
{
    const hr_status status = compile(model, knobs, mode, batch, target, out, err);
    if (status == HR_DEVICE && err != NULL) {
        advise_limit(model, knobs, mode, batch, target, err);
    }
    return status;
}
