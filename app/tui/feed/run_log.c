// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/run_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"

#include "app/tui/feed/knob_edit.h"

static const char *const results[] = {
#define X(id, text) [RUN_##id] = text,
    RUN_RESULT_MAP(X)
#undef X
};

const char *run_result_name(run_result result)
{
    return results[result];
}

// ---- the log --------------------------------------------------------------------------------------------------

const run *run_log_at(const run_log *log, size_t row)
{
    return row < log->count ? &log->runs[row] : NULL;
}

const run *run_log_find(const run_log *log, uint32_t number)
{
    size_t row = 0;
    while (row < log->count && log->runs[row].number != number) {
        row++;
    }
    return run_log_at(log, row);
}

const run *run_log_newest(const run_log *log)
{
    return log->count == 0 ? NULL : &log->runs[log->count - 1];
}

const run *run_log_current(const run_log *log)
{
    return log->begun ? run_log_find(log, log->current) : NULL;
}

// While one has begun.
static run *current(run_log *log)
{
    size_t row = log->count - 1;
    while (row > 0 && log->runs[row].number != log->current) {
        row--;
    }
    return &log->runs[row];
}

// The first run is what all others are told against, and the pinned one is wanted.
static void make_room(run_log *log)
{
    size_t gone = 1;
    if (log->count < RUN_LOG_MAX) {
        return;
    }
    while (log->runs[gone].number == log->pinned || log->runs[gone].number == log->trained) {
        gone++;
    }
    memmove(&log->runs[gone], &log->runs[gone + 1], (log->count - gone - 1) * sizeof *log->runs);
    log->count--;
}

static run *begin(run_log *log, const hr_knobs *knobs, const char *preset)
{
    make_room(log);
    run *r = &log->runs[log->count++];
    memset(r, 0, sizeof *r);
    r->number = ++log->last;
    snprintf(r->preset, sizeof r->preset, "%s", preset);
    r->knobs = *knobs;
    r->measures = measures_unknown();
    log->current = r->number;
    log->open = log->begun = true;
    return r;
}

static bool is_same(const run *r, const hr_knobs *knobs, const char *preset)
{
    bool same = strcmp(r->preset, preset) == 0;
    for (int id = 0; same && id < HR_KNOB_COUNT; id++) {
        const hr_knob_value *one = &r->knobs.value[id], *other = &knobs->value[id];
        same = memcmp(one, other, sizeof *one) == 0 || !knob_edit_differs(&r->knobs, knobs, (hr_knob_id)id);
    }
    return same;
}

// The newest run of this configuration that can be gone on with; NULL: none.
static run *same_run(run_log *log, const hr_knobs *knobs, const char *preset)
{
    for (size_t row = log->count; row-- > 0;) {
        run *r = &log->runs[row];
        if (r->result != RUN_FAILED && is_same(r, knobs, preset)) {
            return r;
        }
    }
    return NULL;
}

static run *go_on(run_log *log, run *r)
{
    r->returns += r->number != log->trained && !isnan(r->measures.value[MEASURE_STEPS]);
    r->result = RUN_RUNNING;
    r->cause[0] = '\0';
    log->current = r->number;
    log->open = log->begun = true;
    return r;
}

static void close_with(run_log *log, run_result result)
{
    if (log->open) {
        current(log)->result = result;
        log->open = false;
        log->version++;
    }
}

void run_log_close(run_log *log)
{
    close_with(log, RUN_ENDED);
    log->begun = false;
}

void run_log_fail(run_log *log)
{
    close_with(log, RUN_FAILED);
    log->begun = false;
}

bool run_log_name(run_log *log, uint32_t number, const char *name)
{
    for (size_t row = 0; row < log->count; row++) {
        if (log->runs[row].number == number) {
            snprintf(log->runs[row].name, sizeof log->runs[row].name, "%s", name);
            log->version++;
            return true;
        }
    }
    return false;
}

// ---- events ---------------------------------------------------------------------------------------------------

static void take_profile(run *r, const profile *p)
{
    r->profile_count = p->count > 0 ? RUN_PROFILE : 0;
    for (uint32_t i = 0; i < r->profile_count; i++) {
        r->profile[i] = profile_column(p, i, RUN_PROFILE)->in_use_bytes;
    }
}

static double raised(double highest, double value)
{
    return isnan(highest) || value > highest ? value : highest;
}

static void take_step(run *r, const run_state *m, const hr_event_step *step)
{
    double *value = r->measures.value;
    double steps = isnan(value[MEASURE_STEPS]) ? 1 : value[MEASURE_STEPS] + 1;
    r->seconds += (double)step->duration_ns * 1e-9;
    value[MEASURE_STEPS] = steps;
    value[MEASURE_SECONDS] = r->seconds > 0 ? r->seconds / steps : UNKNOWN;
    value[MEASURE_PEAK] = raised(value[MEASURE_PEAK], (double)step->peak_in_use_bytes);
    value[MEASURE_LIMIT] = m->limit_bytes > 0 ? (double)m->limit_bytes : UNKNOWN;
    value[MEASURE_EXAMPLES] = r->seconds > 0 ? (double)step->samples * steps / r->seconds : UNKNOWN;
    if (!isnan(step->loss)) {
        value[MEASURE_LOSS_FIRST] = r->losses.count == 0 ? step->loss : value[MEASURE_LOSS_FIRST];
        value[MEASURE_LOSS_LAST] = step->loss;
        series_add(&r->losses, step->loss);
    }
    take_profile(r, &m->step_last);
}

// The weights of a step that is not the training's first are those of the run that made the step before it.
static run *begin_with(run_log *log, const hr_knobs *knobs, const char *preset, const hr_event *step)
{
    const bool anew = step->step <= 1;
    run *same = same_run(log, knobs, preset);
    if (same != NULL && (!anew || isnan(same->measures.value[MEASURE_STEPS]))) {
        return go_on(log, same);
    }
    const run *from = run_log_find(log, log->trained);
    const bool known = from != NULL && strcmp(from->preset, preset) == 0;
    run *r = begin(log, knobs, preset);
    r->began_at = anew ? 0 : step->step - 1;
    r->goes_on_from = !anew && known ? log->trained : 0;
    return r;
}

// The run that a step of these knobs belongs to.
static run *run_of_step(run_log *log, const hr_knobs *knobs, const char *preset, const hr_event *step)
{
    run *r = log->open ? current(log) : begin_with(log, knobs, preset, step);
    log->trained = r->number;
    return r;
}

static void end_badly(run_log *log, const hr_knobs *knobs, const char *preset, run_result result)
{
    if (!log->open && log->begun) {
        return; // it has been told
    }
    run *same = log->open ? NULL : same_run(log, knobs, preset);
    if (same != NULL && same->result == RUN_OOM) { // asked again, it is the same that does not fit
        log->current = same->number;
        log->begun = true;
        return;
    }
    if (same != NULL) {
        (void)go_on(log, same);
    } else if (!log->open) {
        (void)begin(log, knobs, preset);
    }
    close_with(log, result);
}

static void follow_state(run_log *log, uint64_t state, const hr_knobs *knobs, const char *preset)
{
    if (state == HR_ENGINE_OOM) {
        end_badly(log, knobs, preset, RUN_OOM);
    } else if (state == HR_ENGINE_FAILED) {
        end_badly(log, knobs, preset, RUN_FAILED);
    }
}

void run_log_event(run_log *log, const run_state *m, const hr_knobs *knobs, const char *preset,
                   const hr_event *e)
{
    if (e->version != HR_EVENT_VERSION) {
        return;
    }
    switch ((int)e->kind) { // the others change nothing of a run
    case HR_EVENT_KNOB:
    case HR_EVENT_BUILD:
        run_log_close(log);
        break;
    case HR_EVENT_STEP:
        take_step(run_of_step(log, knobs, preset, e), m, &e->u.step);
        log->version++;
        break;
    case HR_EVENT_EVAL:
        if (log->open) {
            current(log)->measures.value[MEASURE_ACCURACY] = e->u.step.accuracy;
            log->version++;
        }
        break;
    case HR_EVENT_STATE:
        follow_state(log, e->u.note.count, knobs, preset);
        break;
    default:
        break;
    }
}

// ---- the report -----------------------------------------------------------------------------------------------

// What the steps themselves have said stays.
static void take_rest(run *r, const hr_report *report)
{
    measures all = measures_of_report(report);
    for (int id = 0; id < MEASURE_ALL; id++) {
        bool told = id == MEASURE_PEAK || id == MEASURE_STEPS || id == MEASURE_SECONDS ||
                    id == MEASURE_EXAMPLES || id == MEASURE_LOSS_FIRST || id == MEASURE_LOSS_LAST ||
                    id == MEASURE_ACCURACY;
        r->measures.value[id] = told ? r->measures.value[id] : all.value[id];
    }
}

void run_log_report(run_log *log, const hr_report *report)
{
    if (log->count == 0 || !log->begun) {
        return;
    }
    run *r = current(log);
    bool is_oom = report->oom.cause != HR_OOM_NONE && report->oom.cause < HR_OOM_CAUSE_COUNT;
    if (r->result == RUN_OOM && is_oom) {
        snprintf(r->cause, sizeof r->cause, "%s", hr_oom_cause_name(report->oom.cause));
        if (!report->oom.of_host) { // whose limit is the host's
            r->measures.value[MEASURE_LIMIT] = (double)report->oom.limit_bytes;
        }
        log->version++;
    } else if (log->open && (double)report->memory.peak_in_use_bytes == r->measures.value[MEASURE_PEAK]) {
        take_rest(r, report);
        log->version++;
    }
}

// ---- two of them ----------------------------------------------------------------------------------------------

double run_steps_per_second(const run *r)
{
    double seconds = r->measures.value[MEASURE_SECONDS];
    return seconds > 0 ? 1 / seconds : UNKNOWN;
}

// Nearly all are the same bytes: their texts need not be made.
bool run_knob_differs(const run *a, const run *b, hr_knob_id id)
{
    const hr_knob_value *one = &a->knobs.value[id], *other = &b->knobs.value[id];
    return memcmp(one, other, sizeof *one) != 0 && knob_edit_differs(&a->knobs, &b->knobs, id);
}

typedef struct run_changes {
    hr_knob_id id[HR_KNOB_COUNT];
    size_t count;
} run_changes;

static void changes_of(const run *from, const run *r, run_changes *c)
{
    c->count = 0;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (run_knob_differs(from, r, (hr_knob_id)id)) {
            c->id[c->count++] = (hr_knob_id)id;
        }
    }
}

static const char *say_changes(const run *r, const run_changes *c, char *text, size_t size)
{
    size_t used = 0;
    char value[HR_KNOB_TEXT_MAX];
    const hr_knob_row *rows = hr_knob_rows(NULL);
    text[0] = '\0';
    for (size_t i = 0; i < c->count && used < size; i++) {
        int length = snprintf(text + used, size - used, "%s%s=%s", used > 0 ? " " : "", rows[c->id[i]].key,
                              hr_knob_format(&r->knobs, c->id[i], value));
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}

const char *run_pairs(const run *from, const run *r, char *text, size_t size)
{
    run_changes c;
    changes_of(from, r, &c);
    return say_changes(r, &c, text, size);
}

static size_t runs_with(const run_log *log, const run *r, hr_knob_id id)
{
    size_t count = 0;
    for (size_t row = 0; row < log->count; row++) {
        count += !run_knob_differs(&log->runs[row], r, id);
    }
    return count;
}

const char *run_distinction(const run_log *log, const run *r, char *text, size_t size)
{
    run_changes c;
    size_t shared[HR_KNOB_COUNT];
    changes_of(&log->runs[0], r, &c);
    for (size_t i = 0; i < c.count; i++) {
        const hr_knob_id id = c.id[i];
        const size_t with = runs_with(log, r, id);
        size_t at = i;
        for (; at > 0 && shared[at - 1] > with; at--) {
            c.id[at] = c.id[at - 1];
            shared[at] = shared[at - 1];
        }
        c.id[at] = id;
        shared[at] = with;
    }
    return say_changes(r, &c, text, size);
}

run_pair run_log_pair(const run_log *log, const uint64_t *marked, unsigned marks, uint32_t selected)
{
    const run *one = marks > 0 ? run_log_find(log, (uint32_t)marked[0]) : NULL;
    const run *other = marks > 1 ? run_log_find(log, (uint32_t)marked[1]) : NULL;
    const run *chosen = run_log_find(log, selected), *pinned = run_log_find(log, log->pinned);
    chosen = chosen == NULL ? run_log_newest(log) : chosen;
    if (one != NULL && other != NULL) {
        return one->number < other->number ? (run_pair){one, other} : (run_pair){other, one};
    }
    one = one != NULL ? one : other; // the one that is still there
    const run *against = one != NULL && one != chosen         ? one
                         : pinned != NULL && pinned != chosen ? pinned
                         : run_log_at(log, 0) != chosen       ? run_log_at(log, 0)
                                                              : NULL;
    return against == NULL ? (run_pair){chosen, NULL} : (run_pair){against, chosen};
}

// ---- in words -------------------------------------------------------------------------------------------------

static bool is_timed(const run *r)
{
    return r->measures.value[MEASURE_STEPS] >= RUN_TIMED_STEPS;
}

// Its losses are not those of a training from its beginning.
static bool goes_on(const run *r)
{
    return r->began_at > 0 || r->returns > 0;
}

static void add_weights(const run_pair *pair, char *text, size_t size)
{
    const bool is_b = goes_on(pair->b);
    const run *later = is_b ? pair->b : pair->a;
    const size_t used = strlen(text);
    if (later->returns > 0) {
        snprintf(text + used, size - used, " %s was gone back to after another: the losses do not compare.",
                 is_b ? "b" : "a");
    } else if (later->goes_on_from > 0) {
        snprintf(text + used, size - used,
                 " %s goes on from run %" PRIu32 "'s weights: the losses do not compare.", is_b ? "b" : "a",
                 later->goes_on_from);
    } else {
        snprintf(text + used, size - used,
                 " %s goes on from weights of step %" PRIu64 ": the losses do not compare.", is_b ? "b" : "a",
                 later->began_at);
    }
}

static const char *compare_fitting(const run_pair *pair, char *text, size_t size)
{
    measures a = pair->a->measures, b = pair->b->measures;
    const bool fair = !goes_on(pair->a) && !goes_on(pair->b);
    const bool timed = is_timed(pair->a) && is_timed(pair->b);
    a.value[MEASURE_SECONDS] = timed ? a.value[MEASURE_SECONDS] : UNKNOWN;
    a.value[MEASURE_LOSS_LAST] = fair ? a.value[MEASURE_LOSS_LAST] : UNKNOWN;
    measures_verdict(&a, &b, text, size);
    if (!fair && strlen(text) < size) {
        add_weights(pair, text, size);
    }
    return text;
}

const char *run_verdict(const run_pair *pair, char *text, size_t size)
{
    const run *a = pair->a, *b = pair->b;
    if (a->result != RUN_OOM && b->result != RUN_OOM) {
        return compare_fitting(pair, text, size);
    }
    return measures_verdict_oom(a->result == RUN_OOM ? a->cause : NULL,
                                b->result == RUN_OOM ? b->cause : NULL, text, size);
}
