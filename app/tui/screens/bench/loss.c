// SPDX-License-Identifier: Apache-2.0
// The loss: one line over all steps, and the numbers of the training beside it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/tui/screens/bench/bench.h"

enum { NUMBERS_WIDTH = 23, AXIS_WIDTH = 7, DOT_COLUMNS_MAX = 1024 };

// ---- the line -------------------------------------------------------------------------------------------------

typedef struct plot_range {
    double low, high;
} plot_range;

static plot_range range_of(const series *s)
{
    plot_range range = {(double)INFINITY, -(double)INFINITY};
    for (uint32_t i = 0; i < s->count; i++) {
        range.low = fmin(range.low, s->mean[i]);
        range.high = fmax(range.high, s->mean[i]);
    }
    if (!(range.high > range.low)) {
        range.low = s->count > 0 ? range.low - 0.5 : 0;
        range.high = range.low + 1;
    }
    return range;
}

// Mean of the part of the series that falls into column `x` of `columns`; NaN where it has not come yet.
static double value_at(const series *s, int x, int columns)
{
    uint32_t shown = s->count < (uint32_t)columns ? (uint32_t)columns : s->count;
    uint32_t first = (uint32_t)((uint64_t)x * shown / (uint64_t)columns);
    uint32_t end = (uint32_t)((uint64_t)(x + 1) * shown / (uint64_t)columns);
    double sum = 0;
    if (first >= s->count) {
        return UNKNOWN;
    }
    end = end > s->count ? s->count : end <= first ? first + 1 : end;
    for (uint32_t i = first; i < end; i++) {
        sum += s->mean[i];
    }
    return sum / (end - first);
}

static int level_of(plot_range range, double value, int levels)
{
    int level = (int)lround((value - range.low) / (range.high - range.low) * (levels - 1));
    return level < 0 ? 0 : level >= levels ? levels - 1 : level;
}

// Sets the dots of one dot column between two heights.
static void draw_braille(const canvas *c, const series *s, plot_range range)
{
    int columns = c->area.w * 2, levels = c->area.h * 4, last = -1;
    for (int x = 0; x < c->area.w; x++) {
        int from[2], to[2];
        for (int side = 0; side < 2; side++) {
            double value = value_at(s, 2 * x + side, columns);
            from[side] = to[side] = -1;
            if (!isnan(value)) {
                int level = level_of(range, value, levels);
                from[side] = last >= 0 && last < level ? last + 1 : level;
                to[side] = last > level ? last - 1 : level;
                last = level;
            }
        }
        for (int y = 0; y < c->area.h; y++) {
            unsigned dots = 0;
            for (int dot = 0; dot < 8; dot++) {
                int level = levels - 1 - (4 * y + dot / 2);
                dots |= level >= from[dot % 2] && level <= to[dot % 2] ? 1u << dot : 0u;
            }
            if (dots != 0) {
                paint_cell(c, y, x, theme_role(c->theme, ROLE_LINE), glyphs_dots(dots));
            }
        }
    }
}

static void draw_bars(const canvas *c, const series *s, plot_range range)
{
    for (int x = 0; x < c->area.w; x++) {
        double value = value_at(s, x, c->area.w);
        if (isnan(value)) {
            return;
        }
        bool ascii = c->glyphs->set == GLYPHS_ASCII;
        int level = ascii ? level_of(range, value, c->area.h) : 1 + level_of(range, value, 8 * c->area.h - 1);
        if (ascii) {
            paint_cell(c, c->area.h - 1 - level, x, theme_role(c->theme, ROLE_LINE), L'*');
        }
        for (int y = 0; y < c->area.h && !ascii; y++) {
            int eighths = level - 8 * (c->area.h - 1 - y);
            paint_cell(c, y, x, theme_role(c->theme, ROLE_LINE), glyphs_bar(c->glyphs, eighths));
        }
    }
}

static void draw_plot(const canvas *c, const series *s)
{
    plot_range range = range_of(s);
    if (c->glyphs->line_braille) {
        draw_braille(c, s, range);
    } else {
        draw_bars(c, s, range);
    }
}

// ---- the pane -------------------------------------------------------------------------------------------------

static int draw_number(const canvas *c, int y, const char *label, const char *value, const char *delta)
{
    if (y < c->area.h) {
        paint_text(c, y, 0, 13, ROLE_DIM, label);
        paint_right(c, y, 8, c->area.w - 8 - (c->area.w >= 32 ? 9 : 0), ROLE_TEXT, value);
        if (c->area.w >= 32) {
            paint_right(c, y, c->area.w - 9, 9, ROLE_BASELINE, delta);
        }
    }
    return y + 1;
}

static const char *source_letter(const feed *f)
{
    return f->has_report && f->report.device.simulated && !f->report.step.measured ? "s" : "m";
}

// With a teacher, what the loss is made of.
static int draw_parts(const canvas *c, int y, const run_state *m)
{
    char value[FORMAT_MAX];
    if (!isnan(m->parts.student)) {
        y = draw_number(c, y, "loss_student", format_loss(m->parts.student, value), "");
    }
    if (!isnan(m->parts.distill)) {
        y = draw_number(c, y, "loss_distill", format_loss(m->parts.distill, value), "");
    }
    return y;
}

// Under loss scaling, what it is, and what it cost; where float16 would flush or overflow, the worst layer's share.
static int draw_scaling(const canvas *c, int y, const run_state *m)
{
    char value[2 * FORMAT_MAX], text[FORMAT_MAX];
    if (m->loss_scale > 0) {
        snprintf(value, sizeof value, "%g", m->loss_scale);
        y = draw_number(c, y, "loss scale", value, "");
    }
    if (m->skipped > 0) {
        snprintf(value, sizeof value, "%" PRIu64, m->skipped);
        y = draw_number(c, y, "skipped", value, "");
    }
    if (m->worst.layer[0] != '\0') {
        bool overflows = m->worst.overflowing > 0;
        y = draw_number(c, y, overflows ? "overflowing" : "flushed",
                        format_percent((double)(overflows ? m->worst.overflowing : m->worst.flushed), text),
                        "");
    }
    return y;
}

// Of a simulated step: between which times it lies on the card.
static int draw_range(const canvas *c, int y, const feed *f)
{
    char range[HR_SECONDS_RANGE_MAX], value[sizeof range + 8];
    if (!f->has_report || !f->report.device.simulated || !(f->report.step.seconds_high > 0)) {
        return y;
    }
    snprintf(value, sizeof value, "%s e",
             hr_seconds_range(f->report.step.seconds_low, f->report.step.seconds_high, range));
    return draw_number(c, y, "", value, "");
}

// The most wanted first: a small pane has room for two or three.
static void draw_numbers(const canvas *c, const bench_state *bench)
{
    const run_state *m = feed_run_state(bench->feed);
    char text[FORMAT_MAX], value[2 * FORMAT_MAX], delta[FORMAT_MAX];
    double seconds = run_state_step_seconds(m), slope = run_state_loss_per_second(m);
    bool pinned = bench->baseline.pinned;
    double slower = seconds - bench->baseline.step_seconds;
    int y = 0;
    snprintf(value, sizeof value, "%s %s", format_seconds(seconds, text), source_letter(bench->feed));
    y = draw_number(c, y, "step", value, pinned ? format_delta(slower * 1e3, " ms", delta) : "");
    y = draw_range(c, y, bench->feed);
    y = draw_parts(c, y, m);
    y = draw_scaling(c, y, m);
    y = draw_number(c, y, "eval_accuracy", format_percent(m->eval_accuracy, text), "");
    snprintf(value, sizeof value, "%s/s", isnan(slope) ? "—" : format_delta(slope, "", text));
    y = draw_number(c, y, "loss rate", value,
                    pinned ? format_delta(slope - bench->baseline.loss_per_second, "", delta) : "");
    y = draw_number(c, y, "examples/s", format_rate(run_state_examples_per_second(m), "", text), "");
    if (!isnan(m->accuracy)) {
        y = draw_number(c, y, "accuracy", format_percent(m->accuracy, text), "");
    }
    snprintf(value, sizeof value, "%" PRIu64, m->epoch);
    y = draw_number(c, y, "epoch", value, "");
    for (uint32_t i = 0; i < m->stage_count; i++) {
        snprintf(value, sizeof value, "%" PRIu32 "/%" PRIu32, m->stage[i].queue_length,
                 m->stage[i].queue_capacity);
        if (m->stage[i].queue_capacity > 0) {
            y = draw_number(c, y, m->stage[i].name, value, "");
        }
    }
}

static void draw(const canvas *c, const pane_view *v)
{
    const bench_state *bench = v->rows;
    const run_state *m = feed_run_state(bench->feed);
    char text[96], loss[FORMAT_MAX], rate[FORMAT_MAX], end[FORMAT_MAX];
    int numbers = c->area.w >= 2 * NUMBERS_WIDTH ? NUMBERS_WIDTH : 0;
    if (bench->baseline.pinned && numbers > 0 && c->area.w >= 60) {
        numbers = 33;
    }
    snprintf(text, sizeof text, "%s · %s", format_loss(m->loss, loss),
             format_rate(run_state_steps_per_second(m), "it/s", rate));
    paint_rule(c, v->focused, pane_title(PANE_LOSS), text);
    canvas plot = canvas_sub(c, 1, AXIS_WIDTH, c->area.h - 1, c->area.w - AXIS_WIDTH - numbers - 1);
    canvas beside = canvas_sub(c, 1, c->area.w - numbers, c->area.h - 1, numbers);
    if (m->losses.count > 0) {
        plot_range range = range_of(&m->losses);
        paint_right(c, 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_loss(range.high, end));
        if (c->area.h > 2) {
            paint_right(c, c->area.h - 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_loss(range.low, end));
        }
        draw_plot(&plot, &m->losses);
    }
    draw_numbers(&beside, bench);
}

static void say_parts(const run_state *m, char *text, size_t size)
{
    char student[FORMAT_MAX], distill[FORMAT_MAX];
    text[0] = '\0';
    if (!isnan(m->parts.student) && !isnan(m->parts.distill)) {
        snprintf(text, size, ", made of %s from the labels and %s from the teacher,",
                 format_loss(m->parts.student, student), format_loss(m->parts.distill, distill));
    }
}

static void say_scaling(const run_state *m, char *text, size_t size)
{
    char flushed[FORMAT_MAX], overflowing[FORMAT_MAX];
    int length = 0;
    text[0] = '\0';
    if (m->loss_scale > 0) {
        length = snprintf(text, size, " The loss scale is %g, %" PRIu64 " steps were skipped.", m->loss_scale,
                          m->skipped);
    }
    if (m->worst.layer[0] != '\0') {
        snprintf(text + length, size - (size_t)length,
                 " In %s float16 would flush %s of the gradients and overflow in %s.", m->worst.layer,
                 format_percent((double)m->worst.flushed, flushed),
                 format_percent((double)m->worst.overflowing, overflowing));
    }
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const run_state *m = feed_run_state(v->feed);
    char loss[FORMAT_MAX], rate[FORMAT_MAX], accuracy[FORMAT_MAX], scaling[160], parts[96];
    double slope = run_state_loss_per_second(m);
    say_parts(m, parts, sizeof parts);
    say_scaling(m, scaling, sizeof scaling);
    snprintf(text, PANE_TEXT_MAX,
             "After %" PRIu64 " steps the loss is %s%s and %s, at %s; held-out accuracy is %s.%s", m->steps,
             format_loss(m->loss, loss), parts,
             isnan(slope) ? "its slope is not known yet"
             : slope < 0  ? "falling"
                          : "not falling",
             format_rate(run_state_steps_per_second(m), "it/s", rate),
             isnan(m->eval_accuracy) ? "not known yet" : format_percent(m->eval_accuracy, accuracy), scaling);
}

const pane_ops pane_loss = {.draw = draw, .say = say, .term = "loss"};
