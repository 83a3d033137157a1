// SPDX-License-Identifier: Apache-2.0
// "headroom.report/1": one shape for plan and run, null where it does not apply.
#include <inttypes.h>
#include <string.h>

#include "headroom/category.h"

#include "app/cli/emit.h"
#include "app/cli/report.h"

static const char *text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static void print_device(emitter *e, const hr_report *r)
{
    emit_object(e, "device");
    emit_text(e, "kind", r->device.kind);
    emit_text(e, "card", text_or_null(r->device.card));
    emit_text(e, "isa", text_or_null(r->device.isa));
    emit_count(e, "threads", r->device.threads);
    emit_bool(e, "simulated", r->device.simulated);
    emit_end_object(e);
}

static void print_model(emitter *e, const hr_report *r)
{
    emit_object(e, "model");
    emit_count(e, "parameters", r->model.parameters);
    emit_count(e, "trainable_parameters", r->model.trainable_parameters);
    emit_array(e, "layers");
    for (size_t k = 0; k < r->model.layer_count; k++) {
        const hr_report_layer *layer = &r->model.layers[k];
        emit_row(e, NULL);
        emit_text(e, "name", layer->name);
        emit_text(e, "kind", layer->kind);
        emit_text(e, "output_shape", layer->output_shape);
        emit_count(e, "parameters", layer->parameters);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_end_object(e);
}

// Whether a step program stands behind the report; without one every counter of it is unknown.
static bool was_built(const hr_report *r)
{
    return r->step.instructions > 0;
}

static uint64_t if_built(const hr_report *r, uint64_t count)
{
    return was_built(r) ? count : HR_NONE;
}

static void print_implementations(emitter *e, const hr_report *r)
{
    emit_array(e, "implementations");
    for (uint32_t k = 0; k < r->step.implementation_count; k++) {
        emit_row(e, NULL);
        emit_text(e, "name", r->step.implementations[k].name);
        emit_count(e, "instructions", r->step.implementations[k].instructions);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_array(e, "fallbacks");
    for (uint32_t k = 0; k < r->step.fallback_count; k++) {
        const hr_report_fallback *f = &r->step.fallbacks[k];
        emit_row(e, NULL);
        emit_text(e, "kind", f->kind);
        emit_text(e, "first", f->first);
        emit_count(e, "instructions", f->instructions);
        emit_count(e, "of", f->of);
        emit_count(e, "beyond_limit", f->beyond_limit);
        emit_count(e, "without_engine", f->without_engine);
        emit_count(e, "without_driver", f->without_driver);
        emit_count(e, "without_library", f->without_library);
        emit_count(e, "known_fault", f->known_fault);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static void print_loaded(emitter *e, const hr_report *r)
{
    emit_array(e, "prepared");
    for (uint32_t k = 0; k < r->step.prepared_count; k++) {
        const hr_report_prepared *p = &r->step.prepared[k];
        emit_row(e, NULL);
        emit_text(e, "first", p->first);
        emit_text(e, "planned", p->planned);
        emit_text(e, "implementation", p->implementation);
        emit_count(e, "instructions", p->instructions);
        emit_text(e, "reason", p->reason[0] == '\0' ? NULL : p->reason);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_count(e, "unplanned", r->step.unplanned);
    if (!r->step.capture.wanted) {
        emit_text(e, "capture", NULL);
        return;
    }
    emit_object(e, "capture");
    emit_count(e, "replays", r->step.capture.replays);
    emit_text(e, "refusal", r->step.capture.refused[0] == '\0' ? NULL : r->step.capture.refused);
    emit_end_object(e);
}

static void print_step(emitter *e, const hr_report *r)
{
    bool timed = r->step.seconds == r->step.seconds;
    emit_object(e, "step");
    emit_count(e, "instructions", if_built(r, r->step.instructions));
    emit_count(e, "effective_batch", if_built(r, r->step.effective_batch));
    emit_count(e, "flops", if_built(r, r->step.flops));
    emit_real(e, "seconds", r->step.seconds, EMIT_EXACT);
    emit_real(e, "seconds_low", r->step.seconds_low, EMIT_EXACT);
    emit_real(e, "seconds_high", r->step.seconds_high, EMIT_EXACT);
    emit_text(e, "seconds_source", !timed ? NULL : r->step.measured ? "measured" : "simulated");
    print_implementations(e, r);
    print_loaded(e, r);
    emit_end_object(e);
}

static void print_by_category(emitter *e, const uint64_t by_category[HR_CATEGORY_COUNT])
{
    emit_object(e, "by_category");
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        emit_count(e, hr_category_name((hr_category)k), by_category[k]);
    }
    emit_end_object(e);
}

static void print_workspace_fields(emitter *e, const hr_report_workspace *w)
{
    emit_count(e, "instruction", w->instruction);
    emit_text(e, "name", w->name);
    emit_text(e, "implementation", text_or_null(w->implementation));
    emit_count(e, "bytes", w->bytes);
}

static void print_workspace_at_peak(emitter *e, const hr_report_memory *m)
{
    if (m->at_peak.workspace.bytes == 0) {
        emit_null(e, "workspace");
        return;
    }
    emit_object(e, "workspace");
    print_workspace_fields(e, &m->at_peak.workspace);
    emit_count(e, "less_limit_bytes", m->at_peak.less_limit_bytes);
    emit_count(e, "less_bytes", m->at_peak.less_bytes);
    emit_text(e, "less_implementation", text_or_null(m->at_peak.less_implementation));
    emit_end_object(e);
}

static void print_workspaces(emitter *e, const hr_report_memory *m)
{
    emit_array(e, "workspaces");
    for (uint32_t k = 0; k < m->workspace_count; k++) {
        emit_row(e, NULL);
        print_workspace_fields(e, &m->workspaces[k]);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static void print_at_peak(emitter *e, const hr_report *r)
{
    const hr_report_memory *m = &r->memory;
    if (!was_built(r)) {
        emit_null(e, "at_peak");
        return;
    }
    emit_object(e, "at_peak");
    emit_count(e, "instruction", m->at_peak.phase == HR_PHASE_BUILD ? HR_NONE : m->at_peak.instruction);
    emit_text(e, "name", m->at_peak.name);
    emit_text(e, "phase", hr_phase_name(m->at_peak.phase));
    print_by_category(e, m->at_peak.by_category);
    print_workspace_at_peak(e, m);
    emit_array(e, "tensors");
    for (size_t k = 0; k < m->at_peak.tensor_count; k++) {
        const hr_report_tensor *t = &m->at_peak.tensors[k];
        emit_row(e, NULL);
        emit_text(e, "name", t->name);
        emit_text(e, "category", hr_category_name(t->category));
        emit_text(e, "dtype", t->dtype);
        emit_text(e, "shape", t->shape);
        emit_count(e, "bytes", t->bytes);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_end_object(e);
}

static void print_memory(emitter *e, const hr_report *r)
{
    const hr_report_memory *m = &r->memory;
    char hash[20];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, m->heap_hash);
    emit_object(e, "memory");
    emit_count(e, "limit_bytes",
               was_built(r) || r->oom.cause == HR_OOM_NONE ? m->limit_bytes : r->oom.limit_bytes);
    emit_count(e, "peak_pool_bytes", if_built(r, m->peak_pool_bytes));
    emit_count(e, "peak_in_use_bytes", if_built(r, m->peak_in_use_bytes));
    emit_count(e, "peak_requested_bytes", if_built(r, m->peak_requested_bytes));
    emit_count(e, "waste_bytes", if_built(r, m->waste_bytes));
    emit_count(e, "saved_for_backward_bytes", if_built(r, m->saved_for_backward_bytes));
    emit_count(e, "library_saved_bytes", if_built(r, m->library_saved_bytes));
    emit_count(e, "static_bytes", if_built(r, m->static_bytes));
    emit_count(e, "largest_free_bytes", if_built(r, m->largest_free_bytes));
    if (was_built(r)) {
        emit_real(e, "fragmentation", m->fragmentation, EMIT_EXACT);
    } else {
        emit_null(e, "fragmentation");
    }
    emit_text(e, "heap_hash", was_built(r) ? hash : NULL);
    print_workspaces(e, m);
    print_at_peak(e, r);
    emit_end_object(e);
}

static void print_surroundings(emitter *e, const hr_report *r)
{
    emit_object(e, "evaluation");
    emit_count(e, "peak_in_use_bytes", r->evaluation.peak_in_use_bytes);
    emit_end_object(e);
    emit_object(e, "driver");
    emit_count(e, "outside_bytes", r->driver.outside_bytes);
    emit_count(e, "process_bytes", r->driver.process_bytes);
    emit_count(e, "others_bytes", r->driver.others_bytes);
    emit_end_object(e);
    emit_object(e, "transfer");
    emit_count(e, "h2d_bytes_per_step", if_built(r, r->h2d_bytes_per_step));
    emit_end_object(e);
    emit_object(e, "host");
    emit_count(e, "peak_bytes", r->host.stage_count > 0 ? r->host.peak_bytes : HR_NONE);
    emit_array(e, "stages");
    for (size_t k = 0; k < r->host.stage_count; k++) {
        emit_row(e, NULL);
        emit_text(e, "name", r->host.stages[k].name);
        emit_count(e, "peak_bytes", r->host.stages[k].peak_bytes);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_end_object(e);
}

static void print_train(emitter *e, const hr_report *r)
{
    emit_object(e, "train");
    emit_count(e, "steps", r->train.steps);
    emit_count(e, "updates", r->train.updates);
    emit_count(e, "skipped_steps", r->train.skipped_steps);
    emit_real(e, "loss_scale", r->train.loss_scale, EMIT_EXACT);
    emit_real(e, "examples_per_second", r->train.examples_per_second, EMIT_EXACT);
    emit_real(e, "loss_first", r->train.loss_first, EMIT_LOSS);
    emit_real(e, "loss_last", r->train.loss_last, EMIT_LOSS);
    emit_real(e, "eval_accuracy", r->train.eval_accuracy, EMIT_EXACT);
    emit_text(e, "weights_sha256", text_or_null(r->train.weights_sha256));
    emit_text(e, "data", text_or_null(r->train.data));
    emit_end_object(e);
}

static void print_plan(emitter *e, const hr_report *r)
{
    emit_object(e, "plan");
    emit_real(e, "seconds_median", r->plan.seconds_median, EMIT_EXACT);
    emit_real(e, "seconds_max", r->plan.seconds_max, EMIT_EXACT);
    emit_count(e, "distinct_peaks", r->plan.distinct_peaks > 0 ? r->plan.distinct_peaks : HR_NONE);
    emit_end_object(e);
}

// "a.b=1 c.d=2" as a list.
static void print_pairs(emitter *e, const char *pairs)
{
    emit_array(e, "knobs");
    while (*pairs != '\0') {
        char pair[sizeof((hr_report_fix *)NULL)->knobs];
        size_t length = strcspn(pairs, " ");
        (void)snprintf(pair, sizeof pair, "%.*s", (int)length, pairs);
        pairs += length + (pairs[length] == ' ');
        emit_text(e, NULL, pair);
    }
    emit_end_array(e);
}

static void print_fixes(emitter *e, const hr_report_oom *o)
{
    emit_array(e, "fixes");
    for (uint32_t k = 0; k < o->fix_count; k++) {
        emit_row(e, NULL);
        print_pairs(e, o->fixes[k].knobs);
        emit_count(e, "peak_bytes", o->fixes[k].peak_bytes);
        emit_count(e, "limit_bytes", o->fixes[k].limit_bytes);
        emit_real(e, "seconds", o->fixes[k].seconds, EMIT_EXACT);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static void print_oom(emitter *e, const hr_report *r)
{
    const hr_report_oom *o = &r->oom;
    if (o->cause == HR_OOM_NONE) {
        emit_null(e, "oom");
        return;
    }
    emit_object(e, "oom");
    emit_text(e, "cause", hr_oom_cause_name(o->cause));
    emit_text(e, "tensor", o->tensor);
    emit_count(e, "instruction", o->instruction == UINT32_MAX ? HR_NONE : o->instruction);
    emit_text(e, "name", o->instruction_name);
    emit_count(e, "requested_bytes", o->requested_bytes);
    emit_count(e, "free_bytes", o->free_bytes);
    emit_count(e, "largest_free_bytes", o->largest_free_bytes);
    print_by_category(e, o->by_category);
    emit_text(e, "sentence", o->sentence);
    emit_text(e, "try", o->hint);
    print_fixes(e, o);
    emit_end_object(e);
}

void report_print_json(const hr_report *r, FILE *out)
{
    emitter e = {.out = out};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.report/1");
    emit_text(&e, "preset", r->preset);
    print_device(&e, r);
    print_model(&e, r);
    print_step(&e, r);
    print_memory(&e, r);
    print_surroundings(&e, r);
    print_train(&e, r);
    print_plan(&e, r);
    print_oom(&e, r);
    emit_end_object(&e);
}
