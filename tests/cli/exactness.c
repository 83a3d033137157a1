// SPDX-License-Identifier: Apache-2.0
#include "exactness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

static hr_status find_out(const hr_preset *preset, const hr_knobs *knobs, bool plan_only, findings *out,
                          hr_err *err)
{
    hr_engine *engine = NULL;
    hr_engine_options options = {.plan_only = plan_only};
    HR_TRY(hr_engine_create(preset, knobs, &options, &engine, err));
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

// The host ledger, stage by stage; the run's was counted.
static bool same_host(const hr_report *a, const hr_report *b, char *why, size_t size)
{
    if (a->host.measured || b->host.measured != b->step.measured || a->host.unknown[0] != '\0') {
        snprintf(why, size, "host: measured in the run %d, in the plan %d, %s", b->host.measured,
                 a->host.measured, a->host.unknown);
        return false;
    }
    for (uint32_t k = 0; k < a->host.stage_count || k < b->host.stage_count; k++) {
        const hr_report_stage *x = &a->host.stages[k], *y = &b->host.stages[k];
        if (strcmp(x->name, y->name) != 0 || x->peak_bytes != y->peak_bytes) {
            snprintf(why, size, "host stage %u: plan %s %" PRIu64 ", run %s %" PRIu64, k, x->name,
                     x->peak_bytes, y->name, y->peak_bytes);
            return false;
        }
    }
    return a->host.peak_bytes == b->host.peak_bytes;
}

// After how many steps the heap is the same again; 0: it need not be. Not with a leak on purpose, which is another heap every
// time, and not where a segment that has become whole is too large to be split again: the next steps then take more of them.
// PyTorch 2.12 chooses among equal blocks by when they were made: a step makes the one that it did not choose anew, so that two
// heaps take turns, or the first is never seen again.
static int period_of(const hr_knobs *knobs)
{
    const bool caching = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching");
    const bool grows = caching && hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_MAX_SPLIT);
    const bool takes_turns = caching && hr_knob_is(knobs, HR_KNOB_ALLOCATOR_VERSION, "2.12");
    return grows || takes_turns || !hr_knob_is(knobs, HR_KNOB_EXECUTION_RETAIN, "none") ? 0 : 1;
}

static bool same_heaps(const findings *plan, const findings *run, int period, char *why, size_t size)
{
    for (int k = 0; k < EXACTNESS_STEPS; k++) {
        const uint64_t before = period > 0 ? run->hashes[k % period] : run->hashes[k];
        if (run->hashes[k] != before || plan->hashes[k] != run->hashes[k]) {
            snprintf(why, size,
                     "heap hash after step %d: plan %016" PRIx64 ", run %016" PRIx64 ", before %016" PRIx64,
                     k + 1, plan->hashes[k], run->hashes[k], before);
            return false;
        }
    }
    return true;
}

// An evaluation between two steps, which a plan has apart, makes blocks of its own: where blocks are chosen by when they were
// made, it changes whose turn it is. So no epoch ends here.
static hr_knobs without_evaluation(const hr_knobs *knobs)
{
    hr_knobs longer = *knobs;
    if (hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching") &&
        hr_knob_is(knobs, HR_KNOB_ALLOCATOR_VERSION, "2.12") &&
        hr_knob_is_set(knobs, HR_KNOB_PIPELINE_SAMPLES)) {
        const int64_t update =
            hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) * hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
        char samples[32];
        snprintf(samples, sizeof samples, "%" PRId64, update * (EXACTNESS_STEPS + 1));
        (void)!hr_knobs_set(&longer, HR_KNOB_PIPELINE_SAMPLES, samples, NULL);
    }
    return longer;
}

// Both refuse, and in the same words?
static exactness compare_refusals(const hr_err *plan, const hr_err *run, char *why, size_t size)
{
    if (plan->status == run->status && strcmp(plan->sentence, run->sentence) == 0) {
        snprintf(why, size, "%s", plan->sentence);
        return EXACTNESS_REFUSED;
    }
    snprintf(why, size, "plan: %s; run: %s", plan->status == HR_OK ? "fits" : plan->sentence,
             run->status == HR_OK ? "fits" : run->sentence);
    return EXACTNESS_BROKEN;
}

// The first run times engines (workspace.search) and keeps the times: it is the plan behind it that must be exact.
static void measure_engines(const hr_preset *preset, const hr_knobs *knobs)
{
    findings run = {0};
    hr_err refusal = {0}; // said again by what follows
    if (hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda") && hr_knob_is(knobs, HR_KNOB_WORKSPACE_SEARCH, "on")) {
        (void)find_out(preset, knobs, false, &run, &refusal);
        hr_report_deinit(&run.report);
    }
}

// Of a teacher that answers first.
static bool same_answers(const hr_report *plan, const hr_report *run, char *why, size_t size)
{
    const uint64_t planned = plan->answers.peak_in_use_bytes, ran = run->answers.peak_in_use_bytes;
    if (planned != ran) {
        (void)snprintf(why, size, "the peak of answering: %" PRIu64 " planned, %" PRIu64 " run", planned,
                       ran);
    }
    return planned == ran;
}

exactness exactness_of(const hr_preset *preset, const hr_knobs *wanted, uint64_t *peak_bytes, char *why,
                       size_t size)
{
    const hr_knobs longer = without_evaluation(wanted), *knobs = &longer;
    findings plan = {0}, run = {0};
    hr_err plan_err = {0}, run_err = {0};
    exactness found = EXACTNESS_HOLDS;
    measure_engines(preset, knobs);
    const hr_status planned = find_out(preset, knobs, true, &plan, &plan_err);
    const hr_status ran = find_out(preset, knobs, false, &run, &run_err);
    if (planned != HR_OK || ran != HR_OK) {
        found = compare_refusals(&plan_err, &run_err, why, size);
    } else if (!same_memory(&plan.report.memory, &run.report.memory, why, size) ||
               !same_answers(&plan.report, &run.report, why, size) ||
               !same_host(&plan.report, &run.report, why, size) ||
               !same_heaps(&plan, &run, period_of(knobs), why, size)) {
        found = EXACTNESS_BROKEN;
    }
    *peak_bytes = run.report.memory.peak_in_use_bytes;
    hr_report_deinit(&plan.report);
    hr_report_deinit(&run.report);
    return found;
}

exactness exactness_without_refused(const hr_preset *preset, hr_knobs knobs, uint64_t *peak_bytes, char *why,
                                    size_t size)
{
    static const struct {
        const char *says;
        hr_knob_id id;
        const char *without;
    } refusals[] = {{" has no rule for ", HR_KNOB_EXECUTION_AS, "headroom"},
                    {"workspace.limit is ", HR_KNOB_WORKSPACE_LIMIT, "none"},
                    {"compress.prune_structure", HR_KNOB_COMPRESS_PRUNE_STRUCTURE, "element"},
                    {"compress.distill compares ", HR_KNOB_COMPRESS_DISTILL, "none"},
                    {"compress.prune needs ", HR_KNOB_COMPRESS_PRUNE, "none"},
                    {"checkpoint.strategy=budget:", HR_KNOB_CHECKPOINT_STRATEGY, "none"}};
    enum { REFUSALS = sizeof refusals / sizeof *refusals };
    exactness found = exactness_of(preset, &knobs, peak_bytes, why, size);
    for (int k = 0; k < REFUSALS && found == EXACTNESS_REFUSED; k++) {
        int which = 0;
        while (which < REFUSALS && strstr(why, refusals[which].says) == NULL) {
            which++;
        }
        if (which == REFUSALS ||
            hr_knobs_set(&knobs, refusals[which].id, refusals[which].without, NULL) != HR_OK) {
            break;
        }
        found = exactness_of(preset, &knobs, peak_bytes, why, size);
    }
    return found;
}
