// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sentences.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/say.h"

enum { TOP_TENSORS = 3 };

static const char *word_of(report_source source)
{
    switch (source) {
    case REPORT_MEASURED:
        return "measured";
    case REPORT_PLANNED:
        return "planned";
    case REPORT_SIMULATED:
        return "simulated";
    case REPORT_ESTIMATED:
        break;
    }
    return "estimated";
}

static void end_sentence(const progress *p)
{
    fputs(".\n", p->out);
    (void)fflush(p->out);
}

static bool was_built(const hr_report *r)
{
    return r->step.instructions > 0;
}

static uint64_t limit_of(const hr_report *r)
{
    const bool of_device = r->oom.cause != HR_OOM_NONE && !r->oom.of_host;
    return of_device ? r->oom.limit_bytes : r->memory.limit_bytes;
}

// ---- before ---------------------------------------------------------------------------------------------------

static void say_model(const progress *p, const hr_report *r, const hr_knobs *knobs)
{
    char parameters[SAY_COUNT_TEXT_MAX], trained[SAY_COUNT_TEXT_MAX];
    const bool all = r->model.parameters == r->model.trainable_parameters;
    if (r->device.simulated) {
        fprintf(p->out, "Playing %s without arithmetic, so that nothing is trained", r->preset);
    } else {
        fprintf(p->out, "Training %s%s%s%s", r->preset, r->train.data[0] != '\0' ? " on " : "", r->train.data,
                r->train.data[0] != '\0' ? " data" : "");
    }
    fprintf(p->out, ": %s parameters, %s of them trained", say_count(r->model.parameters, parameters),
            all ? "all" : say_count(r->model.trainable_parameters, trained));
    fprintf(p->out, ", in batches of %" PRId64, hr_knob_int(knobs, HR_KNOB_BATCH_SIZE));
    if (hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE) > 1) {
        fprintf(p->out, " of which %" PRId64 " make one update",
                hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE));
    }
    fprintf(p->out, ", with %s, %s execution%s%s and the optimizer %s",
            hr_knob_text(knobs, HR_KNOB_PRECISION_POLICY), hr_knob_text(knobs, HR_KNOB_EXECUTION_MODE),
            say_framework(knobs), say_framework(knobs)[0] != '\0' ? "'s" : "",
            hr_knob_text(knobs, HR_KNOB_OPTIMIZER_KIND));
    end_sentence(p);
}

static void say_device(const progress *p, const hr_report *r)
{
    char limit[HR_BYTES_TEXT_MAX];
    const bool has_isa = r->device.isa[0] != '\0' && !(r->device.card[0] != '\0' && r->device.simulated);
    fprintf(p->out, "The device is %s", r->device.kind);
    fprintf(p->out, "%s%s", r->device.card[0] != '\0' ? " as " : "", r->device.card);
    fprintf(p->out, "%s%s%s", has_isa ? " (" : "", has_isa ? r->device.isa : "", has_isa ? ")" : "");
    if (r->device.threads > 1) {
        fprintf(p->out, " with %" PRIu32 " threads", r->device.threads);
    }
    if (limit_of(r) == HR_NONE) {
        fputs(", and has no limit", p->out);
    } else {
        fprintf(p->out, ", and may hold at most %s", hr_bytes_human(limit_of(r), limit));
    }
    end_sentence(p);
}

static void say_host(const progress *p, const hr_report *r)
{
    if (r->host.refused[0] != '\0') {
        fprintf(p->out, "Batches are in ordinary memory, from where the driver copies them twice: %s",
                r->host.refused);
        end_sentence(p);
    }
}

static void say_way(const progress *p, uint64_t done)
{
    char target[SAY_COUNT_TEXT_MAX], now[SAY_COUNT_TEXT_MAX];
    (void)say_count(p->target_steps, target);
    if (done >= p->target_steps) {
        fprintf(p->out, "It is already at step %s of %s, so that there is nothing to train",
                say_count(done, now), target);
    } else if (done > 0) {
        fprintf(p->out, "It goes on behind step %s, up to step %s", say_count(done, now), target);
    } else {
        fprintf(p->out, "It is to do %s step%s", target, p->target_steps == 1 ? "" : "s");
    }
    end_sentence(p);
}

void sentences_subject(const progress *p, const hr_report *r, const hr_knobs *knobs)
{
    say_model(p, r, knobs);
    say_device(p, r);
    say_host(p, r);
    say_way(p, r->train.steps);
}

// ---- memory ---------------------------------------------------------------------------------------------------

// "activations 44.20 MiB, optimizer 5.31 MiB and waste 7.42 MiB": the largest first; together what is in use.
static void say_categories(const progress *p, const char *when, const uint64_t by_category[HR_CATEGORY_COUNT],
                           uint64_t in_use_bytes)
{
    bool said[HR_CATEGORY_COUNT] = {false};
    char human[HR_BYTES_TEXT_MAX];
    uint64_t waste_bytes = in_use_bytes; // what they leave of it
    int count = 0;
    for (;; count++) {
        int largest = -1;
        for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
            if (!said[k] && by_category[k] > 0 && (largest < 0 || by_category[k] > by_category[largest])) {
                largest = k;
            }
        }
        if (largest < 0) {
            break;
        }
        said[largest] = true;
        waste_bytes -= by_category[largest] < waste_bytes ? by_category[largest] : waste_bytes;
        fprintf(p->out, "%s%s %s", count == 0 ? when : ", ", hr_category_name((hr_category)largest),
                hr_bytes_human(by_category[largest], human));
    }
    if (count > 0 && waste_bytes > 0) {
        fprintf(p->out, " and waste %s", hr_bytes_human(waste_bytes, human));
    }
    if (count > 0) {
        end_sentence(p);
    }
}

static void say_tensors(const progress *p, const hr_report *r)
{
    const size_t count =
        r->memory.at_peak.tensor_count < TOP_TENSORS ? r->memory.at_peak.tensor_count : TOP_TENSORS;
    char human[HR_BYTES_TEXT_MAX];
    for (size_t k = 0; k < count; k++) {
        const hr_report_tensor *t = &r->memory.at_peak.tensors[k];
        fprintf(p->out, "%s%s (%s, %s %s) with %s",
                k == 0          ? "The largest tensors there are "
                : k + 1 < count ? ", "
                                : " and ",
                t->name, hr_category_name(t->category), t->dtype, t->shape, hr_bytes_human(t->bytes, human));
    }
    if (count > 0) {
        end_sentence(p);
    }
}

static void say_left(const progress *p, const hr_report *r)
{
    const uint64_t limit_bytes = r->memory.limit_bytes, peak_bytes = r->memory.peak_in_use_bytes;
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], share[REPORT_SHARE_TEXT_MAX];
    if (limit_bytes == HR_NONE) {
        return;
    }
    if (peak_bytes >= limit_bytes) { // expandable segments may pass it by a handle
        fprintf(p->out, "At the peak, nothing of the limit of %s is left",
                hr_bytes_human(limit_bytes, limit));
        end_sentence(p);
        return;
    }
    const uint64_t left_bytes = limit_bytes - peak_bytes;
    fprintf(p->out, "At the peak, %s (%s) of the limit of %s are left", hr_bytes_human(left_bytes, left),
            report_share((double)left_bytes / (double)limit_bytes, share),
            hr_bytes_human(limit_bytes, limit));
    end_sentence(p);
}

void sentences_first_step(const progress *p, const hr_report *r, const hr_knobs *knobs)
{
    const report_style style = {.ran = true, .knobs = knobs};
    const hr_report_memory *m = &r->memory;
    char peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    fputs("The first step took ", p->out);
    if (p->last.duration_ns > 0) {
        fprintf(p->out, "%s (%s) and ", report_seconds((double)p->last.duration_ns * 1e-9, seconds),
                word_of(report_source_of_time(r)));
    }
    fprintf(p->out, "%s at its peak (%s), which is at %s in the %s phase",
            hr_bytes_human(m->peak_in_use_bytes, peak), word_of(report_source_of_sum(r, &style)),
            m->at_peak.name, hr_phase_name(m->at_peak.phase));
    end_sentence(p);
    say_left(p, r);
    say_categories(p, "By kind, the peak holds ", m->at_peak.by_category, m->peak_in_use_bytes);
    say_tensors(p, r);
}

// ---- the end --------------------------------------------------------------------------------------------------

static void say_fixes(const progress *p, const hr_report *r)
{
    for (uint32_t k = 0; k < r->oom.fix_count; k++) {
        const hr_report_fix *fix = &r->oom.fixes[k];
        char peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
        fputs(k == 0 ? "It fits with" : "It also fits with", p->out);
        for (const char *pair = fix->knobs; *pair != '\0';) {
            const size_t length = strcspn(pair, " ");
            fprintf(p->out, " -s %.*s", (int)length, pair);
            pair += length + (pair[length] == ' ');
        }
        fprintf(p->out, ", in %s at the peak (planned)", hr_bytes_human(fix->peak_bytes, peak));
        if (fix->host_bytes != HR_NONE) {
            fprintf(p->out, ", %s on the host (planned)", hr_bytes_human(fix->host_bytes, peak));
        }
        if (isfinite(fix->seconds)) {
            fprintf(p->out, " and %s a step (%s)", report_seconds(fix->seconds, seconds),
                    word_of(r->device.simulated ? REPORT_SIMULATED : REPORT_ESTIMATED));
        }
        fprintf(p->out, ": %s", fix->cost);
        end_sentence(p);
    }
}

static void say_oom(const progress *p, const hr_report *r)
{
    if (r->oom.of_host) {
        fputs("It ran out of the host's memory before the pipeline was opened", p->out);
    } else {
        fprintf(p->out, "It ran out of memory at %s", r->oom.instruction_name);
    }
    end_sentence(p);
    fprintf(p->out, "The cause is %s", r->oom.sentence); // "capacity: the step asks for …"
    end_sentence(p);
    say_categories(p, "By kind, it then held ", r->oom.by_category, r->oom.in_use_bytes);
    say_fixes(p, r);
}

static void say_losses(const progress *p, const hr_report *r, const hr_knobs *knobs)
{
    char slower[SAY_TRY_TEXT_MAX];
    if (!isfinite(r->train.loss_last)) {
        fprintf(p->out, "The loss is no longer a number; try %s", say_slower(knobs, slower));
    } else {
        fprintf(p->out, "The loss went from %.6f to %.6f", r->train.loss_first, r->train.loss_last);
        if (isfinite(r->train.loss_student) && isfinite(r->train.loss_distill)) {
            fprintf(p->out, ", made of %.6f from the labels and %.6f from the teacher", r->train.loss_student,
                    r->train.loss_distill);
        }
    }
    if (!isnan(r->train.eval_accuracy)) {
        fprintf(p->out, ", and %.2f %% of the held-out samples are right", r->train.eval_accuracy * 100);
    }
    end_sentence(p);
}

static void say_training(const progress *p, const hr_report *r, const report_style *style)
{
    char steps[SAY_COUNT_TEXT_MAX], rate[SAY_COUNT_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    fprintf(p->out, "%s after step %s", style->interrupted ? "It was interrupted" : "It is done",
            say_count(r->train.steps, steps));
    if (!isnan(r->step.seconds) && r->step.seconds > 0 && !isnan(r->train.examples_per_second)) {
        fprintf(p->out, ": a step took %s, and %s examples passed in a second (%s)",
                report_seconds(r->step.seconds, seconds),
                say_count((uint64_t)llround(r->train.examples_per_second), rate),
                word_of(report_source_of_time(r)));
    }
    end_sentence(p);
    if (r->step.measured) {
        say_losses(p, r, style->knobs);
    }
}

static void say_bill(const progress *p, const hr_report *r, const report_style *style)
{
    char peak[HR_BYTES_TEXT_MAX], own[HR_BYTES_TEXT_MAX], saved[HR_BYTES_TEXT_MAX];
    fprintf(
        p->out,
        "No step took more than %s (%s), of which %s are there in every moment and %s are saved for backward",
        hr_bytes_human(r->memory.peak_in_use_bytes, peak), word_of(report_source_of_sum(r, style)),
        hr_bytes_human(r->memory.static_bytes, own),
        hr_bytes_human(r->memory.saved_for_backward_bytes, saved));
    end_sentence(p);
    say_left(p, r);
    if (r->train.weights_sha256[0] != '\0') {
        fprintf(p->out, "The SHA-256 of the weights is %s", r->train.weights_sha256);
        end_sentence(p);
    }
}

void sentences_end(const progress *p, const hr_report *r, const report_style *style)
{
    if (r->oom.cause != HR_OOM_NONE) {
        say_oom(p, r);
    } else if (style->no_steps) {
        fputs(style->interrupted ? "It was interrupted before a step was done" : "Nothing was trained",
              p->out);
        end_sentence(p);
    } else if (was_built(r)) {
        say_training(p, r, style);
        say_bill(p, r, style);
    }
}

// ---- what if --------------------------------------------------------------------------------------------------

static void say_answer(const progress *p, const char *batch, const hr_whatif *w, bool simulated)
{
    char peak[HR_BYTES_TEXT_MAX], rest[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    if (hr_whatif_lacks_host(w)) {
        fprintf(
            p->out,
            "With -s batch.size=%s it would not fit: the host would hold %s (planned), %s beyond its limit",
            batch, hr_bytes_human(w->host_bytes, peak), hr_bytes_human(w->host_missing_bytes, rest));
    } else if (!w->fits) {
        fprintf(p->out,
                "With -s batch.size=%s it would not fit: that needs %s (planned), %s more than there are",
                batch, hr_bytes_human(w->limit_bytes + w->missing_bytes, peak),
                hr_bytes_human(w->missing_bytes, rest));
    } else {
        fprintf(p->out, "With -s batch.size=%s it would still fit, in %s at the peak (planned)", batch,
                hr_bytes_human(w->peak_in_use_bytes, peak));
        if (w->limit_bytes > 0) {
            fprintf(p->out, ", with %s left", hr_bytes_human(w->limit_bytes - w->peak_in_use_bytes, rest));
        }
    }
    if (w->fits && isfinite(w->step_seconds)) {
        fprintf(p->out, ", and a step would take %s (%s)", report_seconds(w->step_seconds, seconds),
                word_of(simulated ? REPORT_SIMULATED : REPORT_ESTIMATED));
    }
    end_sentence(p);
}

void sentences_whatif(const progress *p, const hr_preset *preset, const hr_knobs *knobs)
{
    hr_planner *planner = NULL;
    hr_whatif answer;
    char batch[HR_KNOB_TEXT_MAX];
    (void)snprintf(batch, sizeof batch, "%" PRId64, 2 * hr_knob_int(knobs, HR_KNOB_BATCH_SIZE));
    if (hr_planner_open(preset, &planner, NULL) == HR_OK &&
        hr_planner_turn(planner, knobs, HR_KNOB_BATCH_SIZE, batch, &answer, NULL) == HR_OK) {
        say_answer(p, batch, &answer, hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "plan"));
    }
    hr_planner_close(planner);
}
