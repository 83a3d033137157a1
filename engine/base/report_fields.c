// SPDX-License-Identifier: Apache-2.0
#include "headroom/report_fields.h"

#include <math.h>
#include <string.h>

#include "headroom/category.h"

// ---- where a field does not apply ---------------------------------------------------------------------------------

// Without a step program every counter of it is unknown.
static bool was_built(const hr_report *r)
{
    return r->step.instructions > 0;
}

static bool ran_out(const hr_report *r)
{
    return r->oom.cause != HR_OOM_NONE;
}

static bool has_limit(const hr_report *r)
{
    return was_built(r) || ran_out(r);
}

static bool is_timed(const hr_report *r)
{
    return !isnan(r->step.seconds);
}

static bool wants_capture(const hr_report *r)
{
    return r->step.capture.wanted;
}

static bool wants_search(const hr_report *r)
{
    return r->step.search.wanted;
}

static bool has_unserved(const hr_report *r)
{
    return r->step.unserved.instructions > 0;
}

static bool peaks_in_a_step(const hr_report *r)
{
    return r->memory.at_peak.phase != HR_PHASE_BUILD;
}

static bool has_workspace(const hr_report *r)
{
    return r->memory.at_peak.workspace.bytes > 0;
}

static bool knows_host(const hr_report *r)
{
    return r->host.stage_count > 0 && r->host.unknown[0] == '\0';
}

static bool was_repeated(const hr_report *r)
{
    return r->plan.distinct_peaks > 0;
}

// ---- words --------------------------------------------------------------------------------------------------------

static const char *category_word(uint32_t value)
{
    return hr_category_name((hr_category)value);
}

static const char *phase_word(uint32_t value)
{
    return hr_phase_name((hr_phase)value);
}

static const char *cause_word(uint32_t value)
{
    return hr_oom_cause_name((hr_oom_cause)value);
}

static const char *source_word(uint32_t value)
{
    return value != 0 ? "measured" : "simulated";
}

static const char *basis_word(uint32_t value)
{
    return hr_time_basis_name((hr_time_basis)value);
}

static bool is_estimated(const hr_report *r)
{
    return r->step.basis != HR_TIME_UNKNOWN;
}

// ---- rows ---------------------------------------------------------------------------------------------------------

#define IN(member, shown, of) HR_FIELD(hr_report, member, shown, of)
// One that is null unless `when`.
#define IN_IF(when, member, shown, of)                                                                       \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_##of, .offset = offsetof(hr_report, member),                       \
        .size = sizeof((hr_report *)NULL)->member, .applies = (when)                                         \
    }
#define WORD(type, member, shown, words, count, when)                                                        \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_WORD, .offset = offsetof(type, member),                            \
        .size = sizeof((type *)NULL)->member, .word = (words), .most = (count), .applies = (when)            \
    }
#define OBJECT(shown, of, when)                                                                              \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_OBJECT, .fields = (of), .applies = (when)                          \
    }
#define ROWS(type, member, counter, shown, of)                                                               \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_ROWS, .offset = offsetof(type, member),                            \
        .size = sizeof *((type *)NULL)->member, .fields = (of), .count_offset = offsetof(type, counter),     \
        .most = sizeof((type *)NULL)->member / sizeof *((type *)NULL)->member                                \
    }
#define LIST(type, member, counter, shown, of)                                                               \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_LIST, .offset = offsetof(type, member),                            \
        .size = sizeof *((type *)NULL)->member, .fields = (of), .count_offset = offsetof(type, counter)      \
    }

static const hr_field device[] = {
    IN(device.kind, "kind", NAME),
    IN(device.card, "card", TEXT),
    IN(device.isa, "isa", TEXT),
    IN(device.threads, "threads", COUNT32),
    IN(device.simulated, "simulated", FLAG),
    HR_FIELD_END,
};

static const hr_field layer[] = {
    HR_FIELD(hr_report_layer, name, "name", NAME),
    HR_FIELD(hr_report_layer, kind, "kind", NAME),
    HR_FIELD(hr_report_layer, output_shape, "output_shape", NAME),
    HR_FIELD(hr_report_layer, parameters, "parameters", COUNT),
    HR_FIELD(hr_report_layer, factor_error, "factor_error", REAL),
    HR_FIELD_END,
};

static const hr_field model[] = {
    IN(model.parameters, "parameters", COUNT),
    IN(model.trainable_parameters, "trainable_parameters", COUNT),
    IN(model.normalises_batches, "normalises_batches", FLAG),
    LIST(hr_report, model.layers, model.layer_count, "layers", layer),
    HR_FIELD_END,
};

static const hr_field implementation[] = {
    HR_FIELD(hr_report_implementation, name, "name", NAME),
    HR_FIELD(hr_report_implementation, instructions, "instructions", COUNT32),
    HR_FIELD_END,
};

static const hr_field fallback[] = {
    HR_FIELD(hr_report_fallback, kind, "kind", NAME),
    HR_FIELD(hr_report_fallback, first, "first", NAME),
    HR_FIELD(hr_report_fallback, instructions, "instructions", COUNT32),
    HR_FIELD(hr_report_fallback, of, "of", COUNT32),
    HR_FIELD(hr_report_fallback, beyond_limit, "beyond_limit", COUNT32),
    HR_FIELD(hr_report_fallback, without_engine, "without_engine", COUNT32),
    HR_FIELD(hr_report_fallback, without_driver, "without_driver", COUNT32),
    HR_FIELD(hr_report_fallback, without_library, "without_library", COUNT32),
    HR_FIELD(hr_report_fallback, known_fault, "known_fault", COUNT32),
    HR_FIELD_END,
};

static const hr_field unserved[] = {
    IN(step.unserved.first, "first", NAME),
    IN(step.unserved.instructions, "instructions", COUNT32),
    IN(step.unserved.without_driver, "without_driver", COUNT32),
    HR_FIELD_END,
};

static const hr_field prepared[] = {
    HR_FIELD(hr_report_prepared, first, "first", NAME),
    HR_FIELD(hr_report_prepared, planned, "planned", NAME),
    HR_FIELD(hr_report_prepared, implementation, "implementation", NAME),
    HR_FIELD(hr_report_prepared, instructions, "instructions", COUNT32),
    HR_FIELD(hr_report_prepared, reason, "reason", TEXT),
    HR_FIELD_END,
};

static const hr_field capture[] = {
    IN(step.capture.wanted, NULL, FLAG),
    IN(step.capture.replays, "replays", COUNT),
    IN(step.capture.refused, "refusal", TEXT),
    HR_FIELD_END,
};

static const hr_field search[] = {
    IN(step.search.wanted, NULL, FLAG),
    IN(step.search.known, "graphs_known", COUNT32),
    IN(step.search.measured, "graphs_measured", COUNT32),
    IN(step.search.unmeasured, "graphs_unmeasured", COUNT32),
    IN(step.search.seconds, "seconds", REAL),
    IN(step.search.refused, "refusal", TEXT),
    HR_FIELD_END,
};

static const hr_field step[] = {
    IN_IF(was_built, step.instructions, "instructions", COUNT32),
    IN_IF(was_built, step.effective_batch, "effective_batch", COUNT),
    IN_IF(was_built, step.flops, "flops", COUNT),
    IN(step.seconds, "seconds", REAL),
    IN(step.seconds_low, "seconds_low", REAL),
    IN(step.seconds_high, "seconds_high", REAL),
    WORD(hr_report, step.measured, "seconds_source", source_word, 2, is_timed),
    WORD(hr_report, step.basis, "seconds_basis", basis_word, HR_TIME_BASIS_COUNT, is_estimated),
    ROWS(hr_report, step.implementations, step.implementation_count, "implementations", implementation),
    ROWS(hr_report, step.fallbacks, step.fallback_count, "fallbacks", fallback),
    OBJECT("unserved", unserved, has_unserved),
    ROWS(hr_report, step.prepared, step.prepared_count, "prepared", prepared),
    IN(step.unplanned, "unplanned", COUNT32),
    OBJECT("capture", capture, wants_capture),
    OBJECT("search", search, wants_search),
    HR_FIELD_END,
};

static const hr_field workspace[] = {
    HR_FIELD(hr_report_workspace, instruction, "instruction", COUNT32),
    HR_FIELD(hr_report_workspace, name, "name", NAME),
    HR_FIELD(hr_report_workspace, implementation, "implementation", TEXT),
    HR_FIELD(hr_report_workspace, bytes, "bytes", BYTES),
    HR_FIELD_END,
};

static const hr_field workspace_at_peak[] = {
    IN(memory.at_peak.workspace.instruction, "instruction", COUNT32),
    IN(memory.at_peak.workspace.name, "name", NAME),
    IN(memory.at_peak.workspace.implementation, "implementation", TEXT),
    IN(memory.at_peak.workspace.bytes, "bytes", BYTES),
    IN(memory.at_peak.less_limit_bytes, "less_limit_bytes", BYTES),
    IN(memory.at_peak.less_bytes, "less_bytes", BYTES),
    IN(memory.at_peak.less_implementation, "less_implementation", TEXT),
    HR_FIELD_END,
};

static const hr_field tensor[] = {
    HR_FIELD(hr_report_tensor, name, "name", NAME),
    WORD(hr_report_tensor, category, "category", category_word, HR_CATEGORY_COUNT + 1, NULL),
    HR_FIELD(hr_report_tensor, dtype, "dtype", NAME),
    HR_FIELD(hr_report_tensor, shape, "shape", NAME),
    HR_FIELD(hr_report_tensor, bytes, "bytes", BYTES),
    HR_FIELD_END,
};

static const hr_field at_peak[] = {
    IN_IF(peaks_in_a_step, memory.at_peak.instruction, "instruction", COUNT32),
    IN(memory.at_peak.name, "name", NAME),
    WORD(hr_report, memory.at_peak.phase, "phase", phase_word, HR_PHASE_COUNT + 1, NULL),
    IN(memory.at_peak.by_category, "by_category", BY_CATEGORY),
    OBJECT("workspace", workspace_at_peak, has_workspace),
    IN(memory.at_peak.opaque_bytes, "opaque_bytes", BYTES),
    LIST(hr_report, memory.at_peak.tensors, memory.at_peak.tensor_count, "tensors", tensor),
    HR_FIELD_END,
};

static const hr_field memory[] = {
    IN_IF(has_limit, memory.limit_bytes, "limit_bytes", BYTES),
    IN_IF(was_built, memory.peak_pool_bytes, "peak_pool_bytes", BYTES),
    IN_IF(was_built, memory.peak_in_use_bytes, "peak_in_use_bytes", BYTES),
    IN_IF(was_built, memory.peak_requested_bytes, "peak_requested_bytes", BYTES),
    IN_IF(was_built, memory.waste_bytes, "waste_bytes", BYTES),
    IN_IF(was_built, memory.saved_for_backward_bytes, "saved_for_backward_bytes", BYTES),
    IN_IF(was_built, memory.library_saved_bytes, "library_saved_bytes", BYTES),
    IN_IF(was_built, memory.static_bytes, "static_bytes", BYTES),
    IN_IF(was_built, memory.largest_free_bytes, "largest_free_bytes", BYTES),
    IN_IF(was_built, memory.fragmentation, "fragmentation", SHARE),
    IN_IF(was_built, memory.heap_hash, "heap_hash", HASH),
    ROWS(hr_report, memory.workspaces, memory.workspace_count, "workspaces", workspace),
    OBJECT("at_peak", at_peak, was_built),
    HR_FIELD_END,
};

static const hr_field evaluation[] = {IN(evaluation.peak_in_use_bytes, "peak_in_use_bytes", BYTES),
                                      HR_FIELD_END};

static const hr_field answers[] = {IN(answers.peak_in_use_bytes, "peak_in_use_bytes", BYTES), HR_FIELD_END};

static const hr_field deploy[] = {
    IN(deploy.stripped_bytes, "stripped_bytes", BYTES),
    IN(deploy.deployed_bytes, "deployed_bytes", BYTES),
    HR_FIELD_END,
};

static const hr_field driver[] = {
    IN(driver.outside_bytes, "outside_bytes", BYTES),
    IN(driver.process_bytes, "process_bytes", BYTES),
    IN(driver.others_bytes, "others_bytes", BYTES),
    HR_FIELD_END,
};

static const hr_field transfer[] = {IN_IF(was_built, h2d_bytes_per_step, "h2d_bytes_per_step", BYTES),
                                    IN(resident, "resident", FLAG), HR_FIELD_END};

static const hr_field stage[] = {
    HR_FIELD(hr_report_stage, name, "name", NAME),
    HR_FIELD(hr_report_stage, peak_bytes, "peak_bytes", BYTES),
    HR_FIELD(hr_report_stage, busy_seconds, "busy_seconds", REAL),
    HR_FIELD(hr_report_stage, wait_seconds, "wait_seconds", REAL),
    HR_FIELD_END,
};

static const hr_field host[] = {
    IN_IF(knows_host, host.peak_bytes, "peak_bytes", BYTES),
    IN(host.measured, "measured", FLAG),
    IN(host.input_seconds, "input_seconds", REAL),
    IN(host.stall, "stall", SHARE),
    ROWS(hr_report, host.stages, host.stage_count, "stages", stage),
    IN(host.unknown, "unknown", TEXT),
    IN(host.bad_samples, "bad_samples", COUNT),
    IN(host.refused, "refusal", TEXT),
    HR_FIELD_END,
};

static const hr_field train[] = {
    IN(train.steps, "steps", COUNT),
    IN(train.updates, "updates", COUNT),
    IN(train.skipped_steps, "skipped_steps", COUNT),
    IN(train.loss_scale, "loss_scale", REAL),
    IN(train.examples_per_second, "examples_per_second", REAL),
    IN(train.loss_first, "loss_first", LOSS),
    IN(train.loss_last, "loss_last", LOSS),
    IN(train.loss_student, "loss_student", LOSS),
    IN(train.loss_distill, "loss_distill", LOSS),
    IN(train.eval_accuracy, "eval_accuracy", SHARE),
    IN(train.sparsity, "sparsity", SHARE),
    IN(train.weights_sha256, "weights_sha256", TEXT),
    IN(train.data, "data", TEXT),
    HR_FIELD_END,
};

static const hr_field plan[] = {
    IN(plan.seconds_median, "seconds_median", REAL),
    IN(plan.seconds_max, "seconds_max", REAL),
    IN_IF(was_repeated, plan.distinct_peaks, "distinct_peaks", COUNT),
    HR_FIELD_END,
};

static const hr_field fix[] = {
    HR_FIELD(hr_report_fix, knobs, "knobs", PAIRS),
    HR_FIELD(hr_report_fix, cost, "cost", NAME),
    HR_FIELD(hr_report_fix, peak_bytes, "peak_bytes", BYTES),
    HR_FIELD(hr_report_fix, limit_bytes, "limit_bytes", BYTES),
    HR_FIELD(hr_report_fix, host_bytes, "host_bytes", BYTES),
    HR_FIELD(hr_report_fix, seconds, "seconds", REAL),
    WORD(hr_report_fix, basis, "seconds_basis", basis_word, HR_TIME_BASIS_COUNT, NULL),
    HR_FIELD_END,
};

static const hr_field evidence[] = {HR_FIELD(hr_report_evidence, line, "sentence", NAME), HR_FIELD_END};

static const hr_field oom[] = {
    WORD(hr_report_oom, cause, "cause", cause_word, HR_OOM_CAUSE_COUNT, NULL),
    HR_FIELD(hr_report_oom, of_host, NULL, FLAG),
    HR_FIELD(hr_report_oom, tensor, "tensor", NAME),
    HR_FIELD(hr_report_oom, instruction, "instruction", COUNT32),
    HR_FIELD(hr_report_oom, instruction_name, "name", NAME),
    HR_FIELD(hr_report_oom, requested_bytes, "requested_bytes", BYTES),
    HR_FIELD(hr_report_oom, free_bytes, "free_bytes", BYTES),
    HR_FIELD(hr_report_oom, largest_free_bytes, "largest_free_bytes", BYTES),
    HR_FIELD(hr_report_oom, in_use_bytes, "in_use_bytes", BYTES),
    HR_FIELD(hr_report_oom, pool_bytes, "pool_bytes", BYTES),
    HR_FIELD(hr_report_oom, limit_bytes, "limit_bytes", BYTES),
    HR_FIELD(hr_report_oom, needed_bytes, "needed_bytes", BYTES),
    HR_FIELD(hr_report_oom, by_category, "by_category", BY_CATEGORY),
    HR_FIELD(hr_report_oom, hole_count, NULL, COUNT32),
    HR_FIELD(hr_report_oom, hole_bytes, NULL, AMOUNTS),
    HR_FIELD(hr_report_oom, sentence, "sentence", NAME),
    HR_FIELD(hr_report_oom, hint, "try", NAME),
    ROWS(hr_report_oom, evidence, evidence_count, "evidence", evidence),
    ROWS(hr_report_oom, fixes, fix_count, "fixes", fix),
    HR_FIELD_END,
};

static const hr_field report[] = {
    IN(preset, "preset", NAME),
    OBJECT("device", device, NULL),
    OBJECT("model", model, NULL),
    OBJECT("step", step, NULL),
    OBJECT("memory", memory, NULL),
    OBJECT("evaluation", evaluation, NULL),
    OBJECT("answers", answers, NULL),
    OBJECT("deploy", deploy, NULL),
    OBJECT("driver", driver, NULL),
    OBJECT("transfer", transfer, NULL),
    OBJECT("host", host, NULL),
    OBJECT("train", train, NULL),
    OBJECT("plan", plan, NULL),
    {.name = "oom",
     .kind = HR_FIELD_OBJECT,
     .offset = offsetof(hr_report, oom),
     .fields = oom,
     .applies = ran_out},
    HR_FIELD_END,
};

const hr_field *hr_report_fields(void)
{
    return report;
}

const hr_field *hr_oom_fields(void)
{
    return oom;
}

uint32_t hr_field_word_value(const hr_field *field, const void *record)
{
    const char *at = (const char *)record + field->offset;
    uint32_t value = 0;
    if (field->size == sizeof(bool)) {
        return *(const bool *)at;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

const void *hr_field_records(const hr_field *field, const void *record, size_t *count)
{
    const char *from = record;
    if (field->kind == HR_FIELD_LIST) {
        *count = *(const size_t *)(const void *)(from + field->count_offset);
        return *(const void *const *)(const void *)(from + field->offset);
    }
    *count = *(const uint32_t *)(const void *)(from + field->count_offset);
    return from + field->offset;
}
