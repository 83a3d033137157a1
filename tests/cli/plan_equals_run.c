// SPDX-License-Identifier: Apache-2.0
#include "plan_equals_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const models[EXACTNESS_MODELS] = {"cifar10_separable_cnn", "mlp", "resnet18_cifar"};
static const char *const batches[EXACTNESS_BATCHES] = {"1", "16", "48", "128"};
static const char *const modes[EXACTNESS_MODES] = {"eager", "graph"};
static const char *const growths[EXACTNESS_GROWTHS] = {"on", "off"};
static const char *const optimizers[EXACTNESS_OPTIMIZERS] = {"sgd", "momentum", "adam"};

exactness_case exactness_case_number(unsigned number)
{
    exactness_case c = {.is_static = false};
    c.optimizer = number % EXACTNESS_OPTIMIZERS;
    number /= EXACTNESS_OPTIMIZERS;
    c.growth = number % EXACTNESS_GROWTHS;
    number /= EXACTNESS_GROWTHS;
    c.mode = number % EXACTNESS_MODES;
    number /= EXACTNESS_MODES;
    c.batch = number % EXACTNESS_BATCHES;
    c.model = number / EXACTNESS_BATCHES;
    return c;
}

bool exactness_can_be_static(const exactness_case *c)
{
    return strcmp(modes[c->mode], "graph") == 0 && strcmp(growths[c->growth], "off") == 0;
}

const char *exactness_name(const exactness_case *c, char *text, size_t size)
{
    snprintf(text, size, "%s batch %s %s growth=%s %s%s", models[c->model], batches[c->batch], modes[c->mode],
             growths[c->growth], optimizers[c->optimizer], c->is_static ? " static" : "");
    return text;
}

// ---- one engine -----------------------------------------------------------------------------------------------

static hr_status turn_knobs(const exactness_case *c, hr_knobs *knobs, hr_err *err)
{
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_VRAM, "6GiB", err));
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_BATCH_SIZE, batches[c->batch], err));
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_EXECUTION_MODE, modes[c->mode], err));
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_ALLOCATOR_GROWTH, growths[c->growth], err));
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_ALLOCATOR_KIND, c->is_static ? "static" : "bfc", err));
    return hr_knobs_set(knobs, HR_KNOB_OPTIMIZER_KIND, optimizers[c->optimizer], err);
}

// What one engine had to say after each step, the last one in full.
typedef struct findings {
    uint64_t hashes[EXACTNESS_STEPS];
    hr_report report;
} findings;

static hr_status watch_steps(hr_engine *engine, findings *out, hr_err *err)
{
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = EXACTNESS_STEPS};
    HR_TRY(hr_engine_command(engine, &run, err));
    uint64_t seen = 0;
    for (bool idle = false; !idle && seen < EXACTNESS_STEPS;) {
        hr_engine_advance(engine, &idle);
        uint64_t steps = hr_engine_steps(engine);
        if (steps == seen) {
            continue;
        }
        hr_report_deinit(&out->report);
        HR_TRY(hr_engine_report(engine, &out->report, err));
        for (; seen < steps; seen++) { // a plan skips the steps that repeat
            out->hashes[seen] = out->report.memory.heap_hash;
        }
    }
    if (seen == EXACTNESS_STEPS) {
        return HR_OK;
    }
    *err = *hr_engine_error(engine);
    return err->status != HR_OK ? err->status : HR_STATE;
}

static hr_status find_out(const exactness_case *c, const hr_preset *preset, bool plan_only, findings *out,
                          hr_err *err)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_engine *engine = NULL;
    hr_engine_options options = {.plan_only = plan_only};
    HR_TRY(turn_knobs(c, &knobs, err));
    HR_TRY(hr_engine_create(preset, &knobs, &options, &engine, err));
    hr_status status = watch_steps(engine, out, err);
    hr_engine_destroy(engine);
    return status;
}

// ---- equal in every field -------------------------------------------------------------------------------------

#define FIELDS(X)                                                                                            \
    X(limit_bytes)                                                                                           \
    X(peak_pool_bytes)                                                                                       \
    X(peak_in_use_bytes)                                                                                     \
    X(peak_requested_bytes)                                                                                  \
    X(waste_bytes)                                                                                           \
    X(saved_for_backward_bytes)                                                                              \
    X(library_saved_bytes)                                                                                   \
    X(static_bytes)                                                                                          \
    X(largest_free_bytes)                                                                                    \
    X(heap_hash)                                                                                             \
    X(at_peak.instruction)                                                                                   \
    X(at_peak.phase)                                                                                         \
    X(at_peak.tensor_count)

static bool same_tensor(const hr_report_tensor *a, const hr_report_tensor *b)
{
    return strcmp(a->name, b->name) == 0 && a->category == b->category && strcmp(a->dtype, b->dtype) == 0 &&
           strcmp(a->shape, b->shape) == 0 && a->bytes == b->bytes;
}

static bool same_peak(const hr_report_memory *a, const hr_report_memory *b, char *why, size_t size)
{
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        if (a->at_peak.by_category[k] != b->at_peak.by_category[k]) {
            snprintf(why, size, "%s at the peak: plan %" PRIu64 ", run %" PRIu64,
                     hr_category_name((hr_category)k), a->at_peak.by_category[k], b->at_peak.by_category[k]);
            return false;
        }
    }
    for (size_t k = 0; k < a->at_peak.tensor_count; k++) {
        if (!same_tensor(&a->at_peak.tensors[k], &b->at_peak.tensors[k])) {
            snprintf(why, size, "tensor %zu at the peak: plan %s, run %s", k, a->at_peak.tensors[k].name,
                     b->at_peak.tensors[k].name);
            return false;
        }
    }
    if (strcmp(a->at_peak.name, b->at_peak.name) != 0) {
        snprintf(why, size, "peak at: plan %s, run %s", a->at_peak.name, b->at_peak.name);
        return false;
    }
    return true;
}

static bool same_memory(const hr_report_memory *a, const hr_report_memory *b, char *why, size_t size)
{
#define X(field)                                                                                             \
    if (a->field != b->field) {                                                                              \
        snprintf(why, size, "%s: plan %" PRIu64 ", run %" PRIu64, #field, (uint64_t)a->field,                \
                 (uint64_t)b->field);                                                                        \
        return false;                                                                                        \
    }
    FIELDS(X)
#undef X
    if (memcmp(&a->fragmentation, &b->fragmentation, sizeof a->fragmentation) != 0) {
        snprintf(why, size, "fragmentation: plan %.17g, run %.17g", a->fragmentation, b->fragmentation);
        return false;
    }
    return same_peak(a, b, why, size);
}

static bool heap_repeats(const findings *plan, const findings *run, char *why, size_t size)
{
    for (int k = 0; k < EXACTNESS_STEPS; k++) {
        if (run->hashes[k] != run->hashes[0] || plan->hashes[k] != run->hashes[k]) {
            snprintf(why, size,
                     "heap hash after step %d: plan %016" PRIx64 ", run %016" PRIx64 ", first %016" PRIx64,
                     k + 1, plan->hashes[k], run->hashes[k], run->hashes[0]);
            return false;
        }
    }
    return true;
}

bool exactness_holds(const exactness_case *c, uint64_t *peak_bytes, char *why, size_t size)
{
    hr_preset *preset = NULL;
    findings plan = {0};
    findings run = {0};
    hr_err err = {0};
    hr_status status = hr_preset_open(models[c->model], false, &preset, NULL, &err);
    if (status == HR_OK) {
        status = find_out(c, preset, true, &plan, &err);
    }
    if (status == HR_OK) {
        status = find_out(c, preset, false, &run, &err);
    }
    if (status != HR_OK) {
        snprintf(why, size, "%s", err.sentence);
    }
    bool holds = status == HR_OK && same_memory(&plan.report.memory, &run.report.memory, why, size) &&
                 heap_repeats(&plan, &run, why, size);
    *peak_bytes = run.report.memory.peak_in_use_bytes;
    hr_report_deinit(&plan.report);
    hr_report_deinit(&run.report);
    hr_preset_close(preset);
    return holds;
}
