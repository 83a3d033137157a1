// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/run_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/knobs.h"
#include "headroom/units.h"

#include "app/tui/base/format.h"

void run_state_init(run_state *m)
{
    memset(m, 0, sizeof *m);
    m->attributed = m->counted = true;
    m->loss = m->accuracy = m->eval_loss = m->eval_accuracy = UNKNOWN;
    m->parts = (hr_event_losses){.student = UNKNOWN, .distill = UNKNOWN};
    profile_clear(&m->step_now);
    profile_clear(&m->step_last);
}

void run_state_log(run_state *m, log_kind kind, const char *format, ...)
{
    log_line *line = &m->log[m->log_count++ % LOG_LENGTH];
    line->time_ns = m->any ? m->time_ns - m->first_ns : 0;
    line->kind = kind;
    va_list args;
    va_start(args, format);
    vsnprintf(line->text, sizeof line->text, format, args);
    va_end(args);
}

void run_state_log_once(run_state *m, log_kind kind, const char *text)
{
    enum { RECENT_LINES = 3 };
    uint64_t held = m->log_count < RECENT_LINES ? m->log_count : RECENT_LINES;
    for (uint64_t back = 1; back <= held; back++) {
        log_line *line = &m->log[(m->log_count - back) % LOG_LENGTH];
        size_t shown = strlen(line->text), said = strlen(text);
        if (said <= shown && strncmp(line->text, text, said) == 0) {
            return;
        }
        if (shown > 0 && strncmp(line->text, text, shown) == 0) {
            snprintf(line->text, sizeof line->text, "%s", text);
            return;
        }
    }
    run_state_log(m, kind, "%s", text);
}

bool run_state_is_training(const run_state *m)
{
    return m->state == HR_ENGINE_RUNNING;
}

// ---- memory ---------------------------------------------------------------------------------------------------

static void forget_bands(run_state *m)
{
    memset(m->heap.band_bytes, 0, sizeof m->heap.band_bytes);
    m->heap.requested_bytes = 0;
    m->attributed = m->counted = true;
}

// Chunks are larger than what is asked for: the rest is waste. After a gap the total is still exact, and what the known
// bands do not explain is in the rest too.
static void settle_unknown(run_state *m)
{
    uint64_t known = 0;
    for (unsigned i = 0; i < HR_CATEGORY_COUNT; i++) {
        known += m->heap.band_bytes[i];
    }
    if (known > m->heap.in_use_bytes) {
        memset(m->heap.band_bytes, 0, sizeof m->heap.band_bytes);
        known = 0;
        m->attributed = false;
    }
    m->heap.band_bytes[BAND_UNKNOWN] = m->heap.in_use_bytes - known;
}

static void take(uint64_t *from, uint64_t bytes)
{
    *from -= bytes < *from ? bytes : *from;
}

static void raise_peaks(run_state *m, uint64_t in_use_bytes)
{
    m->epoch_peak_bytes = in_use_bytes > m->epoch_peak_bytes ? in_use_bytes : m->epoch_peak_bytes;
    m->peak_bytes = in_use_bytes > m->peak_bytes ? in_use_bytes : m->peak_bytes;
}

static void on_memory(run_state *m, const hr_event *e)
{
    const hr_event_memory *memory = &e->u.memory;
    unsigned band = e->category < HR_CATEGORY_COUNT ? e->category : BAND_UNKNOWN;
    m->heap.in_use_bytes = memory->in_use_bytes;
    m->heap.pool_bytes = memory->pool_bytes;
    if (e->kind == HR_EVENT_ALLOC) {
        if (memory->in_use_bytes == memory->allocated_bytes) {
            forget_bands(m); // the first allocation of an empty heap: all is known again
        }
        m->heap.band_bytes[band] += memory->requested_bytes;
        m->heap.requested_bytes += memory->requested_bytes;
    } else if (e->kind == HR_EVENT_FREE && memory->in_use_bytes == 0) {
        forget_bands(m);
    } else if (e->kind == HR_EVENT_FREE) {
        take(&m->heap.band_bytes[band], memory->requested_bytes);
        take(&m->heap.requested_bytes, memory->requested_bytes);
    }
    m->attributed = m->attributed && band != BAND_UNKNOWN;
    settle_unknown(m);
    raise_peaks(m, memory->in_use_bytes);
    history_add(&m->history, m->time_ns, &m->heap, 0);
    profile_add(&m->step_now, &m->heap, e->phase);
}

// Means and shares begin anew.
static void forget_marks(run_state *m)
{
    m->marks[0].count = m->marks[1].count = m->marked = 0;
}

static void forget_recent(run_state *m)
{
    m->recent_count = 0;
    forget_marks(m);
    m->stage_ns = 0;
}

// The first sentence of an out-of-memory; the whole verdict comes with the report.
static void on_oom(run_state *m, const hr_event *e)
{
    char asked[HR_BYTES_TEXT_MAX], largest[HR_BYTES_TEXT_MAX];
    m->oom_count++;
    m->oom_requested_bytes = e->u.memory.requested_bytes;
    m->oom_largest_free_bytes = e->u.memory.largest_free_bytes;
    m->oom_category = e->category;
    history_add(&m->history, m->time_ns, &m->heap, MARK_OOM);
    run_state_log(m, LOG_BAD, "out of memory: asked %s for %s, largest free piece %s",
                  hr_bytes_human(m->oom_requested_bytes, asked), hr_category_name((hr_category)e->category),
                  hr_bytes_human(m->oom_largest_free_bytes, largest));
}

void run_state_lost(run_state *m, uint64_t events)
{
    m->lost_events += events;
    m->attributed = m->counted = false;
}

void run_state_restart(run_state *m)
{
    forget_bands(m);
    m->heap.in_use_bytes = m->heap.pool_bytes = 0;
    m->state = HR_ENGINE_IDLE;
    m->answering = (hr_event_answers){.samples = 0};
    forget_recent(m);
    profile_clear(&m->step_now);
    history_add(&m->history, m->time_ns, &m->heap, MARK_BUILD);
}

// ---- training -------------------------------------------------------------------------------------------------

static void note_peak(run_state *m, const hr_event_step *step)
{
    char now[HR_BYTES_TEXT_MAX], more[HR_BYTES_TEXT_MAX];
    uint64_t known = m->step_peak_bytes;
    m->step_floor_bytes = step->floor_in_use_bytes;
    m->step_peak_bytes = step->peak_in_use_bytes;
    raise_peaks(m, step->peak_in_use_bytes); // what was lost on the way here was seen by the engine
    if (known == step->peak_in_use_bytes) {
        return;
    }
    hr_bytes_human(step->peak_in_use_bytes, now);
    if (known == 0) {
        run_state_log(m, LOG_NOTE, "a step peaks at %s", now);
    } else {
        bool grew = step->peak_in_use_bytes > known;
        hr_bytes_human(grew ? step->peak_in_use_bytes - known : known - step->peak_in_use_bytes, more);
        run_state_log(m, LOG_NOTE, "a step now peaks at %s (%s%s)", now, grew ? "+" : "-", more);
    }
}

// Every step ends with the same heap: where it does, the categories of the last clean boundary hold again.
static void settle_boundary(run_state *m)
{
    if (m->attributed) {
        m->boundary = m->heap;
    } else if (m->boundary.in_use_bytes == m->heap.in_use_bytes && m->boundary.in_use_bytes > 0) {
        uint64_t pool_bytes = m->heap.pool_bytes;
        m->heap = m->boundary;
        m->heap.pool_bytes = pool_bytes;
        m->attributed = m->counted = true;
    }
}

enum { STEPS_A_MARK = 32 };

static void mark_stages(run_state *m)
{
    m->marks[0] = m->marks[1];
    m->marks[1] = (stage_mark){.time_ns = m->stage_ns, .count = m->stage_count};
    memcpy(m->marks[1].stage, m->stage, sizeof m->stage);
    m->marks[0] = m->marks[0].count == 0 ? m->marks[1] : m->marks[0];
    m->marked = 0;
}

// Before the stages of this step are told.
static void mark_when_due(run_state *m)
{
    m->marked++;
    if (m->stage_ns > 0 && (m->marks[1].count == 0 || m->marked >= STEPS_A_MARK)) {
        mark_stages(m);
    }
}

static void on_step(run_state *m, const hr_event *e)
{
    const hr_event_step *step = &e->u.step;
    m->steps = e->step;
    m->loss = step->loss;
    mark_when_due(m);
    m->accuracy = step->accuracy;
    settle_boundary(m);
    note_peak(m, step);
    m->recent[m->recent_count++ % RECENT_LENGTH] =
        (recent_step){(double)step->duration_ns * 1e-9, step->loss, (double)step->wait_ns * 1e-9,
                      step->samples, step->floor_in_use_bytes};
    if (!isnan(step->loss)) {
        series_add(&m->losses, step->loss);
    }
    m->worst = (hr_event_health){.layer = ""}; // its layers are told behind the step
    m->step_last = m->step_now;
    profile_clear(&m->step_now);
}

static void on_scale(run_state *m, const hr_event_scale *scale)
{
    m->loss_scale = scale->scale;
    m->skipped = scale->skipped;
}

static void on_health(run_state *m, const hr_event_health *health)
{
    float share = health->flushed + health->overflowing;
    if (m->worst.layer[0] == '\0' || share > m->worst.flushed + m->worst.overflowing) {
        m->worst = *health;
        m->worst.layer[sizeof health->layer - 1] = '\0';
    }
}

static void on_eval(run_state *m, const hr_event_step *step)
{
    char loss[FORMAT_MAX], accuracy[FORMAT_MAX];
    m->eval_loss = step->loss;
    m->eval_accuracy = step->accuracy;
    if (isnan(step->accuracy)) {
        run_state_log(m, LOG_GOOD, "held-out: loss %s", format_loss(step->loss, loss));
    } else {
        run_state_log(m, LOG_GOOD, "held-out: accuracy %s, loss %s", format_percent(step->accuracy, accuracy),
                      format_loss(step->loss, loss));
    }
    profile_clear(&m->step_now); // evaluation is a program of its own
}

bool run_state_answers(const run_state *m, char *text, size_t size)
{
    const hr_event_answers *a = &m->answering;
    char rate[FORMAT_MAX], left[FORMAT_MAX];
    if (a->samples > 0) {
        snprintf(text, size, "teacher answers %" PRIu64 " of %" PRIu64, a->answered, a->samples);
    }
    if (a->answered > 0 && a->answered < a->samples && a->spent_ns > 0) {
        const double each = (double)a->spent_ns * 1e-9 / (double)a->answered;
        const size_t used = strlen(text);
        snprintf(text + used, size - used, ", %s, %s left", format_rate(1 / each, "a second", rate),
                 format_seconds(each * (double)(a->samples - a->answered), left));
    }
    return a->samples > 0;
}

static void on_answers(run_state *m, const hr_event_answers *a)
{
    char peak[HR_BYTES_TEXT_MAX];
    m->answering = *a;
    if (a->answered == 0) {
        run_state_log(m, LOG_NOTE, "the teacher answers %" PRIu64 " samples before the first step",
                      a->samples);
    } else if (a->answered == a->samples) {
        run_state_log(m, LOG_NOTE, "the teacher has answered, with a peak of %s",
                      hr_bytes_human(a->peak_in_use_bytes, peak));
    }
}

static void on_stage(run_state *m, const hr_event_stage *stage, uint64_t time_ns)
{
    m->stage_ns = time_ns;
    for (uint32_t i = 0; i < STAGES_MAX; i++) {
        if (i == m->stage_count) {
            m->stage_count++;
        } else if (strncmp(m->stage[i].name, stage->name, sizeof stage->name) != 0) {
            continue;
        }
        if (stage->busy_ns < m->stage[i].busy_ns || stage->items < m->stage[i].items) {
            forget_marks(m); // its chain was opened anew
        }
        m->stage[i] = *stage;
        m->stage[i].name[sizeof stage->name - 1] = '\0';
        return;
    }
}

// ---- notes ----------------------------------------------------------------------------------------------------

static void on_state(run_state *m, uint64_t state, const char *why)
{
    m->state = state < HR_ENGINE_STATE_COUNT ? (uint32_t)state : HR_ENGINE_FAILED;
    snprintf(m->state_text, sizeof m->state_text, "%s", why);
    const char *name = hr_engine_state_name((hr_engine_state)m->state);
    if (m->state == HR_ENGINE_OOM) {
        history_add(&m->history, m->time_ns, &m->heap, MARK_OOM); // a dry run may say no more than this
    }
    if (m->state >= HR_ENGINE_OOM) {
        run_state_log_once(m, LOG_BAD, why[0] == '\0' ? name : why);
    } else {
        run_state_log(m, LOG_NOTE, why[0] == '\0' ? "%s" : "%s: %s", name, why);
    }
}

static void on_note(run_state *m, const hr_event *e)
{
    char words[sizeof e->u.note.text + 1] = "", loss[FORMAT_MAX];
    memcpy(words, e->u.note.text, sizeof e->u.note.text);
    size_t knob_count;
    const hr_knob_row *rows = hr_knob_rows(&knob_count);
    uint64_t count = e->u.note.count;
    switch (e->kind) {
    case HR_EVENT_BUILD:
        forget_recent(m);
        m->parts = (hr_event_losses){.student = UNKNOWN, .distill = UNKNOWN};
        m->answering = (hr_event_answers){.samples = 0};
        m->loss_scale = 0;
        m->skipped = 0;
        m->worst = (hr_event_health){.layer = ""};
        m->epoch_peak_bytes = m->heap.in_use_bytes;
        profile_clear(&m->step_now);
        history_add(&m->history, m->time_ns, &m->heap, MARK_BUILD);
        run_state_log(m, LOG_NOTE, strcmp(words, "built") == 0 ? "%s" : "built: %s", words);
        break;
    case HR_EVENT_STATE:
        on_state(m, count, words);
        break;
    case HR_EVENT_KNOB:
        history_add(&m->history, m->time_ns, &m->heap, MARK_KNOB);
        run_state_log(m, LOG_NOTE, "%s is now %s", count < knob_count ? rows[count].key : "?", words);
        break;
    case HR_EVENT_EPOCH:
        m->epoch = count;
        run_state_log(m, LOG_NOTE, "epoch %" PRIu64 " ended, loss %s", count, format_loss(m->loss, loss));
        break;
    case HR_EVENT_SAVED: // said where its owner is known
        break;
    default:
        run_state_log_once(m, LOG_NOTE, words);
    }
}

void run_state_feed(run_state *m, const hr_event *e)
{
    if (e->version != HR_EVENT_VERSION) {
        return;
    }
    if (!m->any) {
        m->any = true;
        m->first_ns = m->time_ns = e->time_ns;
    }
    m->time_ns = e->time_ns > m->time_ns ? e->time_ns : m->time_ns;
    switch ((hr_event_kind)e->kind) {
    case HR_EVENT_ALLOC:
    case HR_EVENT_FREE:
    case HR_EVENT_GROW:
    case HR_EVENT_SHRINK:
        on_memory(m, e);
        break;
    case HR_EVENT_OOM:
        on_oom(m, e);
        break;
    case HR_EVENT_STEP:
        on_step(m, e);
        break;
    case HR_EVENT_EVAL:
        on_eval(m, &e->u.step);
        break;
    case HR_EVENT_PIPELINE:
        on_stage(m, &e->u.stage, e->time_ns);
        break;
    case HR_EVENT_TUNE:
        m->tunes[m->tune_count++ % TUNES_LENGTH] = e->u.tune;
        break;
    case HR_EVENT_EPOCH:
    case HR_EVENT_BUILD:
    case HR_EVENT_STATE:
    case HR_EVENT_KNOB:
    case HR_EVENT_SAVED:
    case HR_EVENT_LOG:
        on_note(m, e);
        break;
    case HR_EVENT_SCALE:
        on_scale(m, &e->u.scale);
        break;
    case HR_EVENT_HEALTH:
        on_health(m, &e->u.health);
        break;
    case HR_EVENT_ANSWERS:
        on_answers(m, &e->u.answers);
        break;
    case HR_EVENT_LOSSES:
        m->parts = e->u.losses;
        break;
    case HR_EVENT_RANK:
    case HR_EVENT_NONE:
    case HR_EVENT_COUNT:
        break;
    }
}

// ---- means over the recent steps ------------------------------------------------------------------------------

typedef struct recent_sum {
    double steps, seconds, samples, wait_seconds;
    double x, y, xx, xy; // least squares: x training seconds, y loss
} recent_sum;

static recent_sum sum_recent(const run_state *m)
{
    recent_sum sum = {0};
    uint32_t held = m->recent_count < RECENT_LENGTH ? m->recent_count : RECENT_LENGTH;
    for (uint32_t i = m->recent_count - held; i != m->recent_count; i++) {
        const recent_step *step = &m->recent[i % RECENT_LENGTH];
        sum.steps += 1;
        sum.seconds += step->seconds;
        sum.samples += (double)step->samples;
        sum.wait_seconds += step->wait_seconds;
        sum.x += sum.seconds;
        sum.y += step->loss;
        sum.xx += sum.seconds * sum.seconds;
        sum.xy += sum.seconds * step->loss;
    }
    return sum;
}

double run_state_step_seconds(const run_state *m)
{
    recent_sum sum = sum_recent(m);
    return sum.steps > 0 && sum.seconds > 0 ? sum.seconds / sum.steps : UNKNOWN; // 0: the device tells none
}

double run_state_steps_per_second(const run_state *m)
{
    if (!run_state_is_training(m)) {
        return UNKNOWN;
    }
    recent_sum sum = sum_recent(m);
    return sum.seconds > 0 ? sum.steps / sum.seconds : UNKNOWN;
}

uint64_t run_state_growth_bytes(const run_state *m)
{
    enum { RUNNING = 3 };
    uint32_t held = m->recent_count < RECENT_LENGTH ? m->recent_count : RECENT_LENGTH, rises = 0;
    uint64_t newest = held == 0 ? 0 : m->recent[(m->recent_count - 1) % RECENT_LENGTH].floor_bytes,
             oldest = newest;
    for (uint32_t back = 2; back <= held; back++, rises++) {
        uint64_t floor = m->recent[(m->recent_count - back) % RECENT_LENGTH].floor_bytes;
        if (floor >= oldest) {
            break;
        }
        oldest = floor;
    }
    return rises >= RUNNING ? (newest - oldest) / rises : 0;
}

double run_state_wait_share(const run_state *m)
{
    recent_sum sum = sum_recent(m);
    return sum.seconds > 0 ? sum.wait_seconds / sum.seconds : UNKNOWN;
}

bool run_state_stage_shares(const run_state *m, uint32_t stage, double *busy, double *waits)
{
    const stage_mark *from = &m->marks[0];
    if (stage >= from->count || stage >= m->stage_count || m->stage_ns <= from->time_ns) {
        return false;
    }
    const hr_event_stage *now = &m->stage[stage], *then = &from->stage[stage];
    const double elapsed_ns = (double)(m->stage_ns - from->time_ns);
    const double threads = now->threads > 1 ? now->threads : 1;
    if (now->busy_ns < then->busy_ns || now->wait_ns < then->wait_ns) {
        return false;
    }
    *busy = fmin((double)(now->busy_ns - then->busy_ns) / (elapsed_ns * threads), 1);
    *waits = fmin((double)(now->wait_ns - then->wait_ns) / elapsed_ns, 1);
    return true;
}

double run_state_examples_per_second(const run_state *m)
{
    recent_sum sum = sum_recent(m);
    return sum.seconds > 0 ? sum.samples / sum.seconds : UNKNOWN;
}

double run_state_loss_per_second(const run_state *m)
{
    recent_sum sum = sum_recent(m);
    double spread = sum.steps * sum.xx - sum.x * sum.x;
    return sum.steps >= 8 && spread > 0 ? (sum.steps * sum.xy - sum.x * sum.y) / spread : UNKNOWN;
}
