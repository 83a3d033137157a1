// SPDX-License-Identifier: Apache-2.0
// The report for people. Every number that could have come about in more than one way has its letter: m measured,
// p planned, s simulated, e estimated.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/units.h"

#include "app/cli/report.h"
#include "app/cli/say.h"

enum { TOP_TENSORS = 8 };

static bool was_built(const hr_report *r)
{
    return r->step.instructions > 0;
}

// Workspaces of the plan device are estimates, and so is every sum with one of them in it.
static report_source letter_of_category(const hr_report *r, const report_style *style, hr_category category)
{
    bool simulated = strcmp(r->device.kind, "plan") == 0;
    if (category == HR_CATEGORY_TEMPORARIES && simulated) {
        return REPORT_ESTIMATED;
    }
    return style->ran && !simulated ? REPORT_MEASURED : REPORT_PLANNED;
}

// The driver's own pool is played by another one.
static bool guesses_pool(const report_style *style)
{
    return !style->ran && hr_knob_is(style->knobs, HR_KNOB_ALLOCATOR_KIND, "async_driver");
}

static report_source source_of_requests(const hr_report *r, const report_style *style)
{
    bool has_workspace = r->memory.at_peak.by_category[HR_CATEGORY_TEMPORARIES] > 0;
    return letter_of_category(r, style, has_workspace ? HR_CATEGORY_TEMPORARIES : HR_CATEGORY_WEIGHTS);
}

report_source report_source_of_sum(const hr_report *r, const report_style *style)
{
    return guesses_pool(style) ? REPORT_ESTIMATED : source_of_requests(r, style);
}

static void bytes_row(const char *label, uint64_t bytes, report_source letter, const char *note)
{
    char human[HR_BYTES_TEXT_MAX];
    printf("  %-20s %12s %c%s%s\n", label, hr_bytes_human(bytes, human), letter, note[0] != '\0' ? "  " : "",
           note);
}

// ---- what it is about -----------------------------------------------------------------------------------------

static void print_flops(uint64_t flops)
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
    double value = (double)flops;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    printf("%.3g %s", value, units[unit]);
}

static uint64_t limit_of(const hr_report *r)
{
    const bool of_device = r->oom.cause != HR_OOM_NONE && !r->oom.of_host;
    return was_built(r) || !of_device ? r->memory.limit_bytes : r->oom.limit_bytes;
}

// A simulated device calls itself by its card; the card is named once. Its own limit gives way to device.vram.
static void print_device(const hr_report *r, const hr_knobs *knobs)
{
    char limit[HR_BYTES_TEXT_MAX];
    bool has_card = r->device.card[0] != '\0';
    bool has_isa = r->device.isa[0] != '\0' && !(has_card && r->device.simulated);
    bool overruled = has_card && hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, HR_NONE) != HR_NONE;
    printf("  device               %s", r->device.kind);
    printf("%s%s", has_isa ? ", " : "", has_isa ? r->device.isa : "");
    printf("%s%s", has_card ? ", " : "", r->device.card);
    if (limit_of(r) == HR_NONE) {
        puts(", no limit: the pool grows as it is needed");
    } else {
        printf(", limit %s%s\n", hr_bytes_human(limit_of(r), limit), overruled ? " (device.vram)" : "");
    }
}

// Where memory is paid for with time: recomputation and offload.
static void print_ways(const hr_knobs *k)
{
    bool activations = hr_knob_is(k, HR_KNOB_OFFLOAD_ACTIVATIONS, "on");
    bool optimizer = hr_knob_is(k, HR_KNOB_OFFLOAD_OPTIMIZER, "on");
    if (!hr_knob_is(k, HR_KNOB_CHECKPOINT_STRATEGY, "none")) {
        printf(", recomputes (%s)", hr_knob_text(k, HR_KNOB_CHECKPOINT_STRATEGY));
    }
    if (activations || optimizer) {
        printf(", offloads %s%s%s", activations ? "activations" : "", activations && optimizer ? " and " : "",
               optimizer ? "optimizer" : "");
    }
    const char *teacher = hr_knob_text(k, HR_KNOB_COMPRESS_DISTILL);
    if (teacher[0] != '\0' && strcmp(teacher, "none") != 0) {
        printf(", taught by %s%s", teacher,
               hr_knob_is(k, HR_KNOB_COMPRESS_DISTILL_CACHE, "on") ? "'s answers on the host" : "");
    }
}

// What a save's weights lost when they became factors.
static void print_factors(const hr_report *r)
{
    const hr_report_layer *worst = NULL;
    size_t count = 0;
    for (size_t k = 0; k < r->model.layer_count; k++) {
        const hr_report_layer *layer = &r->model.layers[k];
        count += isnan(layer->factor_error) ? 0 : 1;
        worst = !isnan(layer->factor_error) && (worst == NULL || layer->factor_error > worst->factor_error)
                    ? layer
                    : worst;
    }
    if (worst != NULL) {
        printf("  factors              of %zu layers of the save, at most %.2f %% off (%s)\n", count,
               100 * worst->factor_error, worst->name);
    }
}

static void print_subject(const hr_report *r, const report_style *style)
{
    const hr_knobs *k = style->knobs;
    char parameters[SAY_COUNT_TEXT_MAX];
    char trained[SAY_COUNT_TEXT_MAX];
    int64_t batch = hr_knob_int(k, HR_KNOB_BATCH_SIZE);
    int64_t rounds = hr_knob_int(k, HR_KNOB_BATCH_ACCUMULATE);
    printf("%s: batch %" PRId64, r->preset, batch);
    if (rounds > 1) {
        printf(" x %" PRId64 " = %" PRId64, rounds, batch * rounds);
    }
    printf(", %s, %s%s, %s", hr_knob_text(k, HR_KNOB_PRECISION_POLICY),
           hr_knob_text(k, HR_KNOB_EXECUTION_MODE), say_framework(k),
           hr_knob_text(k, HR_KNOB_OPTIMIZER_KIND));
    print_ways(k);
    putchar('\n');
    print_device(r, k);
    printf("  parameters           %s, %s of them trained\n", say_count(r->model.parameters, parameters),
           say_count(r->model.trainable_parameters, trained));
    print_factors(r);
    if (was_built(r)) {
        printf("  step                 %" PRIu32 " instructions, ", r->step.instructions);
        print_flops(r->step.flops);
        putchar('\n');
        report_print_implementations(r);
        report_print_left_out(r, k);
    }
}

// A plan's time is simulated; what a machine took for other programs makes an estimate.
report_source report_source_of_time(const hr_report *r)
{
    return r->step.measured ? REPORT_MEASURED : r->device.simulated ? REPORT_SIMULATED : REPORT_ESTIMATED;
}

// "0.213 s", "12.4 ms": as a step takes it.
const char *report_seconds(double s, char text[REPORT_SECONDS_TEXT_MAX])
{
    double unit = s >= 1 ? 1 : s >= 1e-3 ? 1e3 : 1e6;
    (void)snprintf(text, REPORT_SECONDS_TEXT_MAX, "%.3g %s", s * unit,
                   s >= 1      ? "s"
                   : s >= 1e-3 ? "ms"
                               : "us");
    return text;
}

static void print_time(const hr_report *r)
{
    double s = r->step.seconds;
    char seconds[REPORT_SECONDS_TEXT_MAX];
    if (isnan(s) || s <= 0) {
        return;
    }
    // In words: "s" is a unit too.
    printf("  step time            %s%s", report_seconds(s, seconds), r->step.measured ? " measured" : "");
    if (r->step.seconds_high > 0) {
        char range[HR_SECONDS_RANGE_MAX];
        printf(", %s as a rule", hr_seconds_range(r->step.seconds_low, r->step.seconds_high, range));
    }
    putchar('\n');
    if (r->step.basis != HR_TIME_UNKNOWN) {
        printf("%23s", "");
        say_paragraph(hr_time_basis_sentence(r->step.basis), 23);
    }
    if (!isnan(r->host.stall)) {
        char input[REPORT_SECONDS_TEXT_MAX];
        printf("  batches              %s a step, estimated: %s",
               report_seconds(r->host.input_seconds, input),
               r->host.stall > 0 ? "input-bound" : "compute-bound");
        if (r->host.stall > 0) {
            printf(", waits %.1f %% of its time", r->host.stall * 100);
        }
        putchar('\n');
    }
}

// ---- training -------------------------------------------------------------------------------------------------

// A loss as the progress of the run prints it: no sign in front of "nan".
static void print_loss(double loss)
{
    if (isnan(loss)) {
        fputs("nan", stdout);
    } else {
        printf("%.9g", loss);
    }
}

static void print_losses(const hr_report *r, const report_style *style)
{
    char slower[SAY_TRY_TEXT_MAX];
    fputs("  loss                 ", stdout);
    print_loss(r->train.loss_first);
    fputs(" at first, ", stdout);
    print_loss(r->train.loss_last);
    puts(" at last");
    if (!isnan(r->train.loss_student)) {
        fputs("  made of              ", stdout);
        print_loss(r->train.loss_student);
        fputs(" from the labels, ", stdout);
        print_loss(r->train.loss_distill);
        puts(" from the teacher");
    }
    if (!isfinite(r->train.loss_last)) {
        printf("  the loss is no longer a number\n    try: %s\n", say_slower(style->knobs, slower));
    }
}

// Under dynamic loss scaling a step whose gradients overflow updates nothing.
static void print_scaling(const hr_report *r)
{
    char steps[SAY_COUNT_TEXT_MAX];
    if (!isnan(r->train.loss_scale)) {
        printf("  loss scale           %g, %s steps skipped\n", r->train.loss_scale,
               say_count(r->train.skipped_steps, steps));
    }
}

static void print_sparsity(const hr_report *r)
{
    char update[SAY_COUNT_TEXT_MAX];
    if (isnan(r->train.sparsity)) {
        return;
    }
    printf("  sparsity             %.2f %% of the pruned weights are zero\n", r->train.sparsity * 100);
    if (r->train.updates < r->train.first_masks) {
        printf("                       masks begin with update %s: BEGIN and FREQUENCY of\n"
               "                       compress.prune\n",
               say_count(r->train.first_masks, update));
    }
}

static void print_training(const hr_report *r, const report_style *style)
{
    char steps[SAY_COUNT_TEXT_MAX];
    if (r->device.simulated) {
        puts("\nplayed on the plan device: no arithmetic, nothing trained");
    } else {
        printf("\ntraining%s%s%s\n", r->train.data[0] != '\0' ? " on " : "", r->train.data,
               r->train.data[0] != '\0' ? " data" : "");
    }
    printf("  steps                %s\n", say_count(r->train.steps, steps));
    if (r->step.measured && was_built(r)) {
        print_losses(r, style);
        print_scaling(r);
    }
    if (!isnan(r->train.eval_accuracy)) {
        printf("  accuracy             %.2f %% of the held-out samples\n", r->train.eval_accuracy * 100);
    }
    print_sparsity(r);
    if (!isnan(r->train.examples_per_second) && r->train.examples_per_second > 0) {
        printf("  examples/s           %.1f %s\n", r->train.examples_per_second,
               r->step.measured ? "measured" : "simulated");
    }
    print_time(r);
    if (r->train.weights_sha256[0] != '\0') {
        printf("  weights_sha256\n    %s\n", r->train.weights_sha256);
    }
}

static void print_no_steps(const hr_report *r, const report_style *style)
{
    char steps[SAY_COUNT_TEXT_MAX];
    printf(style->interrupted ? "\ninterrupted at step %s, before the next one was done\n"
                              : "\nalready at step %s: nothing to train; --steps counts from the beginning\n",
           say_count(r->train.steps, steps));
}

static void print_plans(const hr_report *r)
{
    if (!isnan(r->plan.seconds_median)) {
        printf("\nplans of one step\n  median               %.3f ms m\n  longest              %.3f ms m\n"
               "  distinct peaks       %" PRIu64 "\n",
               r->plan.seconds_median * 1e3, r->plan.seconds_max * 1e3, r->plan.distinct_peaks);
    }
}

// ---- memory ---------------------------------------------------------------------------------------------------

static void print_categories(const hr_report *r, const report_style *style,
                             const uint64_t by_category[HR_CATEGORY_COUNT])
{
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        char label[24];
        hr_category category = (hr_category)k;
        (void)snprintf(label, sizeof label, "%c %s", hr_category_letter(category),
                       hr_category_name(category));
        if (by_category[k] > 0) {
            bytes_row(label, by_category[k], letter_of_category(r, style, category), "");
        }
    }
}

// What the step program keeps there is planned like the rest of it; what a pipeline that ran held was measured.
static void print_host(const hr_report *r, report_source own)
{
    uint64_t pipeline = 0;
    size_t stages = 0;
    for (size_t k = 0; k < r->host.stage_count; k++) {
        if (strcmp(r->host.stages[k].name, "offload") == 0) {
            bytes_row("offloaded to host", r->host.stages[k].peak_bytes, own, "");
        } else if (strcmp(r->host.stages[k].name, "pinned") == 0) {
            bytes_row("pinned for batches", r->host.stages[k].peak_bytes, own, "");
        } else {
            pipeline += r->host.stages[k].peak_bytes;
            stages++;
        }
    }
    if (stages > 0) {
        bytes_row("host pipeline peak", pipeline, r->host.measured ? REPORT_MEASURED : REPORT_PLANNED, "");
    }
    if (r->host.unknown[0] != '\0') {
        printf("  host pipeline        ");
        say_paragraph(r->host.unknown, 23);
    }
    if (r->host.bad_samples > 0) {
        printf("  bad samples          %" PRIu64 " that could not be read, replaced by others\n",
               r->host.bad_samples);
    }
    if (r->host.refused[0] != '\0') {
        char line[sizeof r->host.refused + 96];
        (void)snprintf(line, sizeof line,
                       "batches are in ordinary memory, from where the driver copies them twice: %s",
                       r->host.refused);
        printf("  not pinned           ");
        say_paragraph(line, 23);
    }
}

static void print_driver(const hr_report *r)
{
    if (r->driver.process_bytes == HR_NONE) {
        return;
    }
    puts("\nthe driver's view");
    bytes_row("process", r->driver.process_bytes, REPORT_MEASURED, "pool, context and libraries");
    bytes_row("outside", r->driver.outside_bytes, REPORT_MEASURED, "of it context and libraries, at start");
    bytes_row("others", r->driver.others_bytes, REPORT_MEASURED, "who else is on the card");
}

static const char *where_from(const report_style *style)
{
    const bool drivers = hr_knob_is(style->knobs, HR_KNOB_ALLOCATOR_KIND, "async_driver");
    return !drivers     ? "taken from the device"
           : style->ran ? "taken from the driver's pool, which may hold more"
                        : "as allocator.kind async: the driver's pool is not to be planned";
}

// Where something is compressed: what of it is left where the model is used.
static void print_deployed(const hr_report *r, const report_style *style, report_source own)
{
    const bool less = r->deploy.deployed_bytes != r->deploy.stripped_bytes;
    const bool quantizes = less && hr_knobs_quantize(style->knobs);
    if (hr_knobs_compress(style->knobs)) {
        char note[64];
        (void)snprintf(note, sizeof note, "weights and state%s%.4s",
                       quantizes ? ", quantised to "
                       : less    ? ", filters that stay"
                                 : " alone",
                       quantizes ? hr_knob_text(style->knobs, HR_KNOB_COMPRESS_QUANTIZE) : "");
        bytes_row("deployed", r->deploy.deployed_bytes, own, note);
    }
}

static void print_bill(const hr_report *r, const report_style *style)
{
    const hr_report_memory *m = &r->memory;
    report_source sum = report_source_of_sum(r, style);
    report_source own = letter_of_category(r, style, HR_CATEGORY_WEIGHTS);
    puts("\nmemory at the peak");
    print_categories(r, style, m->at_peak.by_category);
    bytes_row("requested", m->peak_requested_bytes, source_of_requests(r, style), "");
    bytes_row("waste", m->waste_bytes, sum, "rounding inside chunks");
    bytes_row("peak in use", m->peak_in_use_bytes, sum, "");
    bytes_row("peak pool", m->peak_pool_bytes, sum, where_from(style));
    bytes_row("largest free", m->largest_free_bytes, sum, "");
    printf("  %-20s %12.4f %c\n", "fragmentation", m->fragmentation, sum);
    puts("\nmemory of a step");
    bytes_row("static", m->static_bytes, own, "weights, gradients, slots, casts, state");
    print_deployed(r, style, own);
    bytes_row("saved for backward", m->saved_for_backward_bytes, own, "");
    if (m->library_saved_bytes > 0) {
        bytes_row("saved by libraries", m->library_saved_bytes, own, "");
    }
    bytes_row("host to device", r->h2d_bytes_per_step, own,
              r->resident ? "one batch stays on the device: its data does not change" : "");
    if (r->evaluation.peak_in_use_bytes != HR_NONE) {
        bytes_row("evaluation peak", r->evaluation.peak_in_use_bytes, own, "a program of its own");
    }
    if (r->answers.peak_in_use_bytes != HR_NONE) {
        bytes_row("answering peak", r->answers.peak_in_use_bytes, own,
                  "the teacher's, before the first step");
    }
    print_host(r, own);
    print_driver(r);
}

static void print_tensors(const hr_report *r, const report_style *style)
{
    const hr_report_memory *m = &r->memory;
    size_t count = m->at_peak.tensor_count;
    size_t shown = style->all_peak || count < TOP_TENSORS ? count : TOP_TENSORS;
    printf("\npeak at %s, %s", m->at_peak.name, hr_phase_name(m->at_peak.phase));
    if (m->at_peak.phase != HR_PHASE_BUILD) {
        printf(", instruction %" PRIu32, m->at_peak.instruction);
    }
    printf("\n  %s%zu of %zu tensors\n", shown < count ? "the largest " : "", shown, count);
    for (size_t k = 0; k < shown; k++) {
        const hr_report_tensor *t = &m->at_peak.tensors[k];
        char human[HR_BYTES_TEXT_MAX];
        printf("  %c %10s  %-8s %-18s %s\n", hr_category_letter(t->category), hr_bytes_human(t->bytes, human),
               t->dtype, t->shape, t->name);
    }
}

const char *report_share(double share, char text[REPORT_SHARE_TEXT_MAX])
{
    if (share < 1 && share >= 0.9995) {
        return strcpy(text, "more than 99.9 %");
    }
    (void)snprintf(text, REPORT_SHARE_TEXT_MAX, "%.1f %%", 100 * share);
    return text;
}

void report_print_fits(uint64_t limit_bytes, uint64_t peak_bytes)
{
    const uint64_t left_bytes = limit_bytes > peak_bytes ? limit_bytes - peak_bytes : 0;
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], share[REPORT_SHARE_TEXT_MAX];
    printf("fits: %s of %s are left at the peak (%s)\n", hr_bytes_human(left_bytes, left),
           hr_bytes_human(limit_bytes, limit), report_share((double)left_bytes / (double)limit_bytes, share));
}

void report_print_verdict(const hr_report *r)
{
    const hr_report_memory *m = &r->memory;
    char peak[HR_BYTES_TEXT_MAX];
    if (m->limit_bytes != HR_NONE) {
        report_print_fits(m->limit_bytes, m->peak_in_use_bytes);
        return;
    }
    printf("no limit: at its peak a step has %s in use; -s device.card=NAME or device.vram=SIZE says "
           "what there is\n",
           hr_bytes_human(m->peak_in_use_bytes, peak));
}

static uint64_t waste_when_out(const hr_report_oom *o)
{
    uint64_t requested = 0;
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        requested += o->by_category[k];
    }
    return o->in_use_bytes - requested;
}

// Every change that a dry run found to fit; what it would take is a comment to the shell.
static void print_fixes(const hr_report *r)
{
    for (uint32_t k = 0; k < r->oom.fix_count; k++) {
        const hr_report_fix *fix = &r->oom.fixes[k];
        char peak[HR_BYTES_TEXT_MAX];
        char seconds[REPORT_SECONDS_TEXT_MAX];
        fputs(k == 0 ? "  try: " : "   or: ", stdout);
        say_options(fix->knobs);
        putchar(' ');
        printf("# peak %s p", hr_bytes_human(fix->peak_bytes, peak));
        if (fix->host_bytes != HR_NONE) {
            printf(", host %s p", hr_bytes_human(fix->host_bytes, peak));
        }
        if (isfinite(fix->seconds)) {
            printf(", a step %s estimated", report_seconds(fix->seconds, seconds));
        }
        printf("; %s\n", fix->cost);
    }
}

// The host's ledger, stage by stage as it would have been.
static void print_host_oom(const hr_report *r)
{
    const hr_report_oom *o = &r->oom;
    puts("\nhost memory that it would hold");
    for (size_t k = 0; k < r->host.stage_count; k++) {
        const hr_report_stage *stage = &r->host.stages[k];
        bytes_row(stage->name, stage->peak_bytes, REPORT_PLANNED,
                  strcmp(stage->name, o->tensor) == 0 ? "crosses the limit" : "");
    }
    bytes_row("all stages", r->host.peak_bytes, REPORT_PLANNED, "");
    bytes_row("limit", o->limit_bytes, REPORT_PLANNED, "pipeline.ram_limit");
    fputs("\ndoes not fit: ", stdout);
    say_paragraph(o->sentence, 14);
    print_fixes(r);
}

static void print_oom(const hr_report *r, const report_style *style)
{
    const hr_report_oom *o = &r->oom;
    report_source own = letter_of_category(r, &(report_style){.knobs = style->knobs}, HR_CATEGORY_WEIGHTS);
    puts("\nmemory when it ran out");
    print_categories(r, style, o->by_category);
    bytes_row("waste", waste_when_out(o), own, "rounding inside chunks");
    bytes_row("in use", o->in_use_bytes, own, "");
    bytes_row("pool", o->pool_bytes, own, "");
    bytes_row("limit", o->limit_bytes, own, "");
    bytes_row("free", o->free_bytes, own, "");
    bytes_row("largest free", o->largest_free_bytes, own, "");
    bytes_row("requested", o->requested_bytes, own, o->tensor);
    printf("  at %s\n\ndoes not fit: ", o->instruction_name);
    say_paragraph(o->sentence, 14);
    print_fixes(r);
}

void report_print_text(const hr_report *r, const report_style *style)
{
    print_subject(r, style);
    if (style->no_steps) {
        print_no_steps(r, style);
        return;
    }
    if (style->ran) {
        print_training(r, style);
    } else {
        print_time(r);
    }
    print_plans(r);
    if (was_built(r)) {
        print_bill(r, style);
        print_tensors(r, style);
        report_print_workspaces(r, letter_of_category(r, style, HR_CATEGORY_TEMPORARIES));
    }
    if (r->oom.of_host) {
        print_host_oom(r);
    } else if (r->oom.cause != HR_OOM_NONE) {
        print_oom(r, style);
    } else if (was_built(r) && style->ran) {
        putchar('\n');
        report_print_verdict(r);
    }
    puts("\nm measured, p planned, s simulated, e estimated");
}
