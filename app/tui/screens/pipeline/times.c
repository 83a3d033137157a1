// SPDX-License-Identifier: Apache-2.0
// The stages beside the step: how much of the time each is at work, and what pipeline.autotune decided.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/feed/input_bound.h"
#include "app/tui/screens/pipeline/pipeline.h"

enum { NAME_WIDTH = 14, CELLS = 24, CELLS_NARROW = 12, NARROW = 76, ROW_TEXT_MAX = 128 };

#define SEEN_FROM 0.005 // share from which on a stage has a row

static bool is_narrow(const canvas *c)
{
    return c->area.w < NARROW;
}

static int cells_of(const canvas *c)
{
    return is_narrow(c) ? CELLS_NARROW : CELLS;
}

static void draw_bar(const canvas *c, int y, int x, double share, role r)
{
    const int cells = cells_of(c), filled = (int)lround(share * cells);
    for (int k = 0; k < cells; k++) {
        paint_text(c, y, x + k, 1, k < filled ? r : ROLE_DIM, k < filled ? "●" : "·");
    }
}

static void draw_row(const canvas *c, int y, const char *name, double share, role r, const char *text)
{
    paint_text(c, y, 1, NAME_WIDTH - 1, r, name);
    draw_bar(c, y, 1 + NAME_WIDTH, share, r);
    const int x = 2 + NAME_WIDTH + cells_of(c);
    paint_text(c, y, x, c->area.w - x - 1, ROLE_TEXT, text);
}

static void draw_stage(const canvas *c, int y, const input_bound *b, const hr_event_stage *s, double busy,
                       double waits)
{
    char name[2 * HR_EVENT_STAGE_MAX], text[ROW_TEXT_MAX], share[FORMAT_MAX], bar[64];
    if (s->threads > 1) {
        snprintf(name, sizeof name, "%s ×%" PRIu32, s->name, s->threads);
    } else {
        snprintf(name, sizeof name, "%s", s->name);
    }
    if (s->queue_capacity > 0) {
        snprintf(text, sizeof text,
                 is_narrow(c) ? "waits %s, %s %" PRIu32 "/%" PRIu32
                              : "waits %s for room, %s %" PRIu32 "/%" PRIu32 " ready",
                 format_percent(waits, share), pipeline_bar(s->queue_length, s->queue_capacity, 4, bar),
                 s->queue_length, s->queue_capacity);
    } else {
        snprintf(text, sizeof text, "at work %s", format_percent(busy, share));
    }
    draw_row(c, y, name, s->queue_capacity > 0 ? 1 - waits : busy,
             strcmp(s->name, b->stage) == 0 ? ROLE_WARN : ROLE_TEXT, text);
}

static bool trains(const hr_event_stage *s)
{
    return strcmp(s->name, "evaluate") != 0;
}

int pipeline_time_rows(const feed *f)
{
    const run_state *m = feed_run_state(f);
    double busy, waits;
    int rows = 0;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        rows += trains(&m->stage[i]) && run_state_stage_shares(m, i, &busy, &waits) &&
                (busy >= SEEN_FROM || m->stage[i].queue_capacity > 0);
    }
    return rows == 0 ? 0 : rows + 1;
}

void pipeline_draw_times(const canvas *c, int y, const feed *f)
{
    const run_state *m = feed_run_state(f);
    const input_bound b = input_bound_of(f);
    char text[ROW_TEXT_MAX], computes[FORMAT_MAX], waited[FORMAT_MAX];
    double busy, waits;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const hr_event_stage *s = &m->stage[i];
        if (trains(s) && run_state_stage_shares(m, i, &busy, &waits) &&
            (busy >= SEEN_FROM || s->queue_capacity > 0)) {
            draw_stage(c, y++, &b, s, busy, waits);
        }
    }
    const double share = run_state_wait_share(m);
    snprintf(text, sizeof text, "computes %s, waits %s", format_percent(1 - share, computes),
             format_percent(share, waited));
    draw_row(c, y, "step", isnan(share) ? 0 : 1 - share, b.by == BOUND_COMPUTE ? ROLE_WARN : ROLE_TEXT, text);
}

// ---- autotune -------------------------------------------------------------------------------------------------

static int say_change(const char *what, uint32_t from, uint32_t to, bool always, char *text, size_t size)
{
    return from != to ? snprintf(text, size, " %s %" PRIu32 " → %" PRIu32 ",", what, from, to)
           : always   ? snprintf(text, size, " %s %" PRIu32 ",", what, to)
                      : 0;
}

const char *pipeline_decision(const hr_event_tune *t, bool figures, char *text, size_t size)
{
    char after[FORMAT_MAX], making[FORMAT_MAX], step[FORMAT_MAX], waits[FORMAT_MAX];
    const bool settles = t->threads_from == t->threads_to && t->prefetch_from == t->prefetch_to;
    size_t used = (size_t)snprintf(text, size, "%s %s:", format_seconds((double)t->after_ns * 1e-9, after),
                                   t->as_tensorflow ? "tensorflow" : "headroom");
    used +=
        (size_t)say_change("map_threads", t->threads_from, t->threads_to, settles, text + used, size - used);
    used += (size_t)say_change("prefetch", t->prefetch_from, t->prefetch_to, settles && t->prefetch_to > 0,
                               text + used, size - used);
    used += (size_t)snprintf(text + used, size - used, " %s", hr_tune_reason_text((hr_tune_reason)t->reason));
    if (figures && used < size) {
        snprintf(text + used, size - used, " (a batch takes %s to make, the step %s and waits %s)",
                 format_seconds((double)t->making_ns * 1e-9, making),
                 format_seconds((double)t->step_ns * 1e-9, step),
                 format_seconds((double)t->wait_ns * 1e-9, waits));
    }
    return text;
}

int pipeline_draw_decisions(const canvas *c, int y, int rows, const feed *f)
{
    const run_state *m = feed_run_state(f);
    const uint32_t held = m->tune_count < TUNES_LENGTH ? m->tune_count : TUNES_LENGTH;
    const uint32_t shown = rows > 0 && held > (uint32_t)rows ? (uint32_t)rows : rows > 0 ? held : 0;
    char text[DECISION_TEXT_MAX];
    for (uint32_t k = 0; k < shown; k++) {
        const hr_event_tune *t = &m->tunes[(m->tune_count - shown + k) % TUNES_LENGTH];
        paint_text(c, y + (int)k, 1, c->area.w - 2, k + 1 == shown ? ROLE_TEXT : ROLE_DIM,
                   pipeline_decision(t, c->area.w >= 150, text, sizeof text));
    }
    return (int)shown;
}
