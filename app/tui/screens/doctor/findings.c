// SPDX-License-Identifier: Apache-2.0
// What can be found of a step that fits.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/feed/input_bound.h"
#include "app/tui/feed/measures.h"
#include "app/tui/screens/doctor/doctor.h"

#define NEARLY_FULL 0.9
#define FRAGMENTED  0.2
#define WASTEFUL    0.05
#define WAITING     0.1
#define SAVES_FROM  0.98 // of the present peak: less than that is worth a sentence
#define SAME_TIME   1.01 // of the present step time

// A lowered limit is told before the first step under it.
static uint64_t left_bytes(const run_state *m, uint64_t peak_bytes)
{
    return m->limit_bytes > peak_bytes ? m->limit_bytes - peak_bytes : 0;
}

static int say_growth(const feed *f, char *text)
{
    const run_state *m = feed_run_state(f);
    char each[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX];
    uint64_t slope = run_state_growth_bytes(m);
    if (slope == 0) {
        return 0;
    }
    return snprintf(
        text, FINDING_TEXT_MAX,
        "What stays after a step grew with each of the last steps, by %s: a leak. The %s that are left "
        "last for %" PRIu64 " steps. execution.retain and execution.tape decide what is kept.",
        hr_bytes_human(slope, each), hr_bytes_human(left_bytes(m, m->step_peak_bytes), left),
        left_bytes(m, m->step_peak_bytes) / slope);
}

static int say_nearly_full(const feed *f, char *text)
{
    const run_state *m = feed_run_state(f);
    char share[FORMAT_MAX], left[HR_BYTES_TEXT_MAX];
    double full = (double)m->epoch_peak_bytes / (double)m->limit_bytes;
    if (m->limit_bytes == 0 || !(full > NEARLY_FULL)) {
        return 0;
    }
    return snprintf(
        text, FINDING_TEXT_MAX,
        "The peak is %s of the limit: %s are left, and what other programs or a larger last batch take "
        "may be more.",
        format_percent(full, share), hr_bytes_human(left_bytes(m, m->epoch_peak_bytes), left));
}

static int say_fragmentation(const feed *f, char *text)
{
    const hr_report_memory *r = &f->report.memory;
    char share[FORMAT_MAX], largest[HR_BYTES_TEXT_MAX];
    if (!f->has_report || !(r->fragmentation > FRAGMENTED) || r->largest_free_bytes == HR_NONE ||
        measures_little_is_free(r)) {
        return 0;
    }
    return snprintf(
        text, FINDING_TEXT_MAX,
        "At the peak %s of the free pool is not in its largest piece, %s: a request beyond that makes the "
        "pool grow. 2 shows the holes.",
        format_percent(r->fragmentation, share), hr_bytes_human(r->largest_free_bytes, largest));
}

static int say_waste(const feed *f, char *text)
{
    const hr_report_memory *r = &f->report.memory;
    char share[FORMAT_MAX], waste[HR_BYTES_TEXT_MAX];
    double part = (double)r->waste_bytes / (double)r->peak_in_use_bytes;
    if (!f->has_report || r->peak_in_use_bytes == 0 || r->waste_bytes == HR_NONE || !(part > WASTEFUL)) {
        return 0;
    }
    return snprintf(
        text, FINDING_TEXT_MAX,
        "%s, %s of what is in use at the peak, were never asked for: rounding. allocator.kind decides how "
        "it rounds.",
        hr_bytes_human(r->waste_bytes, waste), format_percent(part, share));
}

static int say_retained(const feed *f, char *text)
{
    char bytes[HR_BYTES_TEXT_MAX];
    uint64_t retained = feed_run_state(f)->heap.band_bytes[HR_CATEGORY_RETAINED];
    if (retained == 0) {
        return 0;
    }
    return snprintf(text, FINDING_TEXT_MAX,
                    "%s are retained by earlier steps (R): execution.retain and execution.tape.",
                    hr_bytes_human(retained, bytes));
}

// A limit that another implementation obeys is named; there may be none.
static int say_workspace(const feed *f, char *text)
{
    const hr_report_memory *r = &f->report.memory;
    const hr_report_workspace *w = &r->at_peak.workspace;
    char bytes[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], less[HR_BYTES_TEXT_MAX];
    if (!f->has_report || !((double)w->bytes > WASTEFUL * (double)r->peak_in_use_bytes)) {
        return 0;
    }
    const int length = snprintf(text, FINDING_TEXT_MAX, "At the peak %s are the workspace of %.80s (%s).",
                                hr_bytes_human(w->bytes, bytes), w->name, w->implementation);
    if (length < 0 || r->at_peak.less_limit_bytes == HR_NONE) {
        return length;
    }
    return snprintf(text + length, FINDING_TEXT_MAX - (size_t)length,
                    " workspace.limit=%s has %s compute it, with %s.",
                    hr_bytes_exact(r->at_peak.less_limit_bytes, limit), r->at_peak.less_implementation,
                    hr_bytes_human(r->at_peak.less_bytes, less));
}

static int say_fallback(const feed *f, char *text)
{
    const hr_report_fallback *first = &f->report.step.fallbacks[0];
    if (!f->has_report || f->report.step.fallback_count == 0) {
        return 0;
    }
    return snprintf(text, FINDING_TEXT_MAX,
                    "%" PRIu32 " of %" PRIu32 " %s run on kernels of our own, %.80s first: cuDNN %s.",
                    first->instructions, first->of, first->kind, first->first,
                    first->beyond_limit > 0     ? "needs more than workspace.limit"
                    : first->without_engine > 0 ? "has no engine for them"
                    : first->known_fault > 0    ? "of this version has a known fault there"
                    : first->without_driver > 0 ? "shows no engine where there is no driver"
                                                : "is not there");
}

static int say_prepared(const feed *f, char *text)
{
    const hr_report_prepared *p = &f->report.step.prepared[0];
    if (!f->has_report || f->report.step.prepared_count == 0) {
        return 0;
    }
    return snprintf(text, FINDING_TEXT_MAX,
                    "%" PRIu32
                    " instructions are computed otherwise than planned, %.60s first: %s, not %s%s%.120s.",
                    f->report.step.unplanned, p->first, p->implementation, p->planned,
                    p->reason[0] == '\0' ? "" : ": ", p->reason);
}

static int say_capture(const feed *f, char *text)
{
    const hr_report_capture *c = &f->report.step.capture;
    return !f->has_report || c->refused[0] == '\0'
               ? 0
               : snprintf(text, FINDING_TEXT_MAX, "Steps are not captured: %.200s.", c->refused);
}

static int say_search(const feed *f, char *text)
{
    const hr_report_search *s = &f->report.step.search;
    const bool told = f->has_report && s->refused[0] != '\0';
    if (f->has_report && s->unmeasured > 0 && !told) {
        return snprintf(text, FINDING_TEXT_MAX,
                        "Engines of %" PRIu32
                        " convolutions are not timed yet: this plan is not exact until a run on the card.",
                        s->unmeasured);
    }
    if (told && s->unmeasured == 0) {
        return snprintf(text, FINDING_TEXT_MAX, "Times of engines are not complete, or not kept: %.200s.",
                        s->refused);
    }
    return !told ? 0
                 : snprintf(text, FINDING_TEXT_MAX,
                            "Engines of %" PRIu32 " convolutions are timed, of %" PRIu32 " not: %.200s.",
                            s->known, s->unmeasured, s->refused);
}

static int say_waits(const feed *f, char *text)
{
    char share[FORMAT_MAX];
    double waits = run_state_wait_share(feed_run_state(f));
    if (!(waits > WAITING)) {
        return 0;
    }
    const input_bound b = input_bound_of(f);
    if (b.why[0] == '\0') {
        return snprintf(text, FINDING_TEXT_MAX, "Training waits %s of a step for input: 7 shows for what.",
                        format_percent(waits, share));
    }
    return snprintf(
        text, FINDING_TEXT_MAX,
        "Training waits %s of a step for its pipeline: %.160s%s%.60s. 7 shows the stages beside the step.",
        format_percent(waits, share), b.why, b.helps[0] == '\0' ? "" : ": try ", b.helps);
}

// Whether what is learned stays the same.
static bool keeps_results(hr_knob_id id)
{
    const char *key = hr_knob_rows(NULL)[id].key;
    return strncmp(key, "execution.", 10) == 0 || strncmp(key, "allocator.", 10) == 0 ||
           strncmp(key, "offload.", 8) == 0 || id == HR_KNOB_CHECKPOINT_STRATEGY ||
           id == HR_KNOB_OPTIMIZER_FUSED_BACKWARD || id == HR_KNOB_WORKSPACE_LIMIT;
}

// The turn that saves most among those that cost no time.
static int say_idle_knob(const feed *f, char *text)
{
    fix_row rows[FIX_ROWS_MAX];
    const whatif_cell *present = &f->answers.present;
    char words[HR_KNOB_TEXT_MAX], saved[HR_BYTES_TEXT_MAX];
    size_t count = doctor_has_oom(f) ? 0 : doctor_fixes(f, rows);
    double now = (double)present->plan.peak_in_use_bytes;
    for (size_t i = 0; i < count; i++) {
        bool smaller = (double)rows[i].peak_bytes < SAVES_FROM * now;
        if (smaller && keeps_results(rows[i].id) &&
            rows[i].seconds <= SAME_TIME * present->plan.step_seconds) {
            return snprintf(text, FINDING_TEXT_MAX, "An idle knob: %s would save %s and cost no time.",
                            doctor_fix_text(f, &rows[i], words),
                            hr_bytes_human(present->plan.peak_in_use_bytes - rows[i].peak_bytes, saved));
        }
    }
    return 0;
}

static int (*const says[FINDING_COUNT])(const feed *f, char *text) = {
    [FINDING_GROWTH] = say_growth,
    [FINDING_NEARLY_FULL] = say_nearly_full,
    [FINDING_FRAGMENTATION] = say_fragmentation,
    [FINDING_WASTE] = say_waste,
    [FINDING_RETAINED] = say_retained,
    [FINDING_WORKSPACE] = say_workspace,
    [FINDING_FALLBACK] = say_fallback,
    [FINDING_PREPARED] = say_prepared,
    [FINDING_CAPTURE] = say_capture,
    [FINDING_SEARCH] = say_search,
    [FINDING_WAITS] = say_waits,
    [FINDING_IDLE_KNOB] = say_idle_knob,
};

const char *doctor_finding(const feed *f, finding_kind kind, char text[FINDING_TEXT_MAX])
{
    text[0] = '\0';
    (void)says[kind](f, text);
    return text;
}
