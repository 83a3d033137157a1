// SPDX-License-Identifier: Apache-2.0
// A report as a message: every field of headroom/report.h in its order, in one walk for both ways.
#include <float.h>
#include <string.h>

#include "session/codec.h"
#include "session/messages.h"

enum {
    LAYER_WIRE_BYTES = 3 * 4 + 8, // with empty texts
    TENSOR_WIRE_BYTES = 4 * 4 + 8,
    REPORT_BYTES_MAX = 16 << 20 // a row of 20 bytes becomes one of 200
};

static void walk_device(codec *c, hr_report *r)
{
    codec_text(c, r->preset, sizeof r->preset);
    codec_text(c, r->device.kind, sizeof r->device.kind);
    codec_text(c, r->device.card, sizeof r->device.card);
    codec_text(c, r->device.isa, sizeof r->device.isa);
    codec_u32(c, &r->device.threads);
    codec_bool(c, &r->device.simulated);
}

static void walk_model(codec *c, hr_report *r)
{
    void *layers = r->model.layers;
    codec_u64(c, &r->model.parameters);
    codec_u64(c, &r->model.trainable_parameters);
    codec_array(c, &r->model.layer_count, &layers, sizeof *r->model.layers, LAYER_WIRE_BYTES);
    r->model.layers = layers;
    for (size_t k = 0; k < r->model.layer_count && !codec_is_bad(c); k++) {
        hr_report_layer *layer = &r->model.layers[k];
        codec_text(c, layer->name, sizeof layer->name);
        codec_text(c, layer->kind, sizeof layer->kind);
        codec_text(c, layer->output_shape, sizeof layer->output_shape);
        codec_u64(c, &layer->parameters);
    }
}

static void walk_implementations(codec *c, hr_report *r)
{
    codec_row(c, &r->step.implementation_count, HR_LIBRARIES_MAX + 1);
    for (uint32_t k = 0; k < r->step.implementation_count; k++) {
        hr_report_implementation *i = &r->step.implementations[k];
        codec_text(c, i->name, sizeof i->name);
        codec_u32(c, &i->instructions);
    }
    codec_row(c, &r->step.fallback_count, HR_FALLBACKS_MAX + 1);
    for (uint32_t k = 0; k < r->step.fallback_count; k++) {
        hr_report_fallback *f = &r->step.fallbacks[k];
        codec_text(c, f->kind, sizeof f->kind);
        codec_text(c, f->first, sizeof f->first);
        codec_u32(c, &f->instructions);
        codec_u32(c, &f->of);
        codec_u32(c, &f->beyond_limit);
        codec_u32(c, &f->without_engine);
        codec_u32(c, &f->without_driver);
        codec_u32(c, &f->without_library);
        codec_u32(c, &f->known_fault);
    }
}

static void walk_loaded(codec *c, hr_report *r)
{
    codec_row(c, &r->step.prepared_count, HR_PREPARED_MAX + 1);
    for (uint32_t k = 0; k < r->step.prepared_count; k++) {
        hr_report_prepared *p = &r->step.prepared[k];
        codec_text(c, p->first, sizeof p->first);
        codec_text(c, p->planned, sizeof p->planned);
        codec_text(c, p->implementation, sizeof p->implementation);
        codec_u32(c, &p->instructions);
        codec_text(c, p->reason, sizeof p->reason);
    }
    codec_u32(c, &r->step.unplanned);
    codec_bool(c, &r->step.capture.wanted);
    codec_u64(c, &r->step.capture.replays);
    codec_text(c, r->step.capture.refused, sizeof r->step.capture.refused);
}

static void walk_step(codec *c, hr_report *r)
{
    walk_implementations(c, r);
    walk_loaded(c, r);
    codec_u32(c, &r->step.instructions);
    codec_u64(c, &r->step.effective_batch);
    codec_u64(c, &r->step.flops);
    codec_amount(c, &r->step.seconds, DBL_MAX);
    codec_amount(c, &r->step.seconds_low, DBL_MAX);
    codec_amount(c, &r->step.seconds_high, DBL_MAX);
    codec_bool(c, &r->step.measured);
}

static void walk_categories(codec *c, uint64_t by_category[HR_CATEGORY_COUNT])
{
    for (uint32_t k = 0; k < HR_CATEGORY_COUNT; k++) {
        codec_u64(c, &by_category[k]);
    }
}

static void walk_tensor(codec *c, hr_report_tensor *t)
{
    uint32_t category = t->category;
    codec_text(c, t->name, sizeof t->name);
    codec_row(c, &category, HR_CATEGORY_COUNT);
    codec_text(c, t->dtype, sizeof t->dtype);
    codec_text(c, t->shape, sizeof t->shape);
    codec_u64(c, &t->bytes);
    t->category = (hr_category)category;
}

static void walk_workspace(codec *c, hr_report_workspace *w)
{
    codec_u32(c, &w->instruction);
    codec_text(c, w->name, sizeof w->name);
    codec_text(c, w->implementation, sizeof w->implementation);
    codec_u64(c, &w->bytes);
}

static void walk_workspaces(codec *c, hr_report_memory *m)
{
    walk_workspace(c, &m->at_peak.workspace);
    codec_u64(c, &m->at_peak.less_limit_bytes);
    codec_u64(c, &m->at_peak.less_bytes);
    codec_text(c, m->at_peak.less_implementation, sizeof m->at_peak.less_implementation);
    codec_row(c, &m->workspace_count, HR_WORKSPACES_MAX + 1);
    for (uint32_t k = 0; k < m->workspace_count; k++) {
        walk_workspace(c, &m->workspaces[k]);
    }
}

static void walk_peak(codec *c, hr_report_memory *m)
{
    uint32_t phase = m->at_peak.phase;
    void *tensors = m->at_peak.tensors;
    codec_u32(c, &m->at_peak.instruction);
    codec_text(c, m->at_peak.name, sizeof m->at_peak.name);
    codec_row(c, &phase, HR_PHASE_COUNT);
    m->at_peak.phase = (hr_phase)phase;
    walk_categories(c, m->at_peak.by_category);
    codec_array(c, &m->at_peak.tensor_count, &tensors, sizeof *m->at_peak.tensors, TENSOR_WIRE_BYTES);
    m->at_peak.tensors = tensors;
    for (size_t k = 0; k < m->at_peak.tensor_count && !codec_is_bad(c); k++) {
        walk_tensor(c, &m->at_peak.tensors[k]);
    }
}

static void walk_memory(codec *c, hr_report_memory *m)
{
    codec_u64(c, &m->limit_bytes);
    codec_u64(c, &m->peak_pool_bytes);
    codec_u64(c, &m->peak_in_use_bytes);
    codec_u64(c, &m->peak_requested_bytes);
    codec_u64(c, &m->waste_bytes);
    codec_u64(c, &m->saved_for_backward_bytes);
    codec_u64(c, &m->library_saved_bytes);
    codec_u64(c, &m->static_bytes);
    codec_u64(c, &m->largest_free_bytes);
    codec_amount(c, &m->fragmentation, 1);
    codec_u64(c, &m->heap_hash);
    walk_peak(c, m);
    walk_workspaces(c, m);
}

static void walk_host(codec *c, hr_report *r)
{
    const uint32_t most = sizeof r->host.stages / sizeof *r->host.stages;
    uint32_t stages = (uint32_t)r->host.stage_count;
    codec_u64(c, &r->evaluation.peak_in_use_bytes);
    codec_u64(c, &r->driver.outside_bytes);
    codec_u64(c, &r->driver.process_bytes);
    codec_u64(c, &r->driver.others_bytes);
    codec_u64(c, &r->h2d_bytes_per_step);
    codec_u64(c, &r->host.peak_bytes);
    codec_row(c, &stages, most + 1);
    r->host.stage_count = stages;
    for (uint32_t k = 0; k < stages; k++) {
        codec_text(c, r->host.stages[k].name, sizeof r->host.stages[k].name);
        codec_u64(c, &r->host.stages[k].peak_bytes);
    }
}

static void walk_train(codec *c, hr_report *r)
{
    codec_u64(c, &r->train.steps);
    codec_u64(c, &r->train.updates);
    codec_u64(c, &r->train.skipped_steps);
    codec_amount(c, &r->train.loss_scale, DBL_MAX);
    codec_amount(c, &r->train.examples_per_second, DBL_MAX);
    codec_real(c, &r->train.loss_first);
    codec_real(c, &r->train.loss_last);
    codec_amount(c, &r->train.eval_accuracy, 1);
    codec_text(c, r->train.weights_sha256, sizeof r->train.weights_sha256);
    codec_text(c, r->train.data, sizeof r->train.data);
    codec_amount(c, &r->plan.seconds_median, DBL_MAX);
    codec_amount(c, &r->plan.seconds_max, DBL_MAX);
    codec_u64(c, &r->plan.distinct_peaks);
}

static void walk_oom(codec *c, hr_report_oom *oom)
{
    uint32_t cause = oom->cause;
    codec_row(c, &cause, HR_OOM_CAUSE_COUNT);
    oom->cause = (hr_oom_cause)cause;
    codec_text(c, oom->tensor, sizeof oom->tensor);
    codec_u32(c, &oom->instruction);
    codec_text(c, oom->instruction_name, sizeof oom->instruction_name);
    codec_u64(c, &oom->requested_bytes);
    codec_u64(c, &oom->free_bytes);
    codec_u64(c, &oom->largest_free_bytes);
    codec_u64(c, &oom->in_use_bytes);
    codec_u64(c, &oom->pool_bytes);
    codec_u64(c, &oom->limit_bytes);
    walk_categories(c, oom->by_category);
    codec_u32(c, &oom->hole_count);
    for (uint32_t k = 0; k < HR_HOLES_MAX; k++) {
        codec_u64(c, &oom->hole_bytes[k]);
    }
    codec_text(c, oom->sentence, sizeof oom->sentence);
    codec_text(c, oom->hint, sizeof oom->hint);
    codec_row(c, &oom->fix_count, HR_FIXES_MAX + 1);
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        codec_text(c, oom->fixes[k].knobs, sizeof oom->fixes[k].knobs);
        codec_u64(c, &oom->fixes[k].peak_bytes);
        codec_u64(c, &oom->fixes[k].limit_bytes);
        codec_amount(c, &oom->fixes[k].seconds, DBL_MAX);
    }
}

static void walk_report(codec *c, hr_report *r)
{
    walk_device(c, r);
    walk_model(c, r);
    walk_step(c, r);
    walk_memory(c, &r->memory);
    walk_host(c, r);
    walk_train(c, r);
    walk_oom(c, &r->oom);
}

void put_report(wire_out *out, const hr_report *report)
{
    hr_report copy = *report;
    walk_report(&(codec){.out = out}, &copy);
}

bool get_report(const wire_message *m, hr_report *report)
{
    wire_in in = {.data = m->body, .bytes = m->bytes, .bad = m->bytes > REPORT_BYTES_MAX};
    *report = (hr_report){0};
    walk_report(&(codec){.in = &in}, report);
    if (!wire_in_is_done(&in)) {
        hr_report_deinit(report);
        return false;
    }
    return true;
}
