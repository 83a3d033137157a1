// SPDX-License-Identifier: Apache-2.0
// FLOW: the way of a sample from its source to the device, as boxes, and in words who waits for whom.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/feed/input_bound.h"
#include "app/tui/screens/pipeline/pipeline.h"

enum {
    BOX_TEXT_MAX = 48,
    BOX_ROWS = 4 /* with its border */,
    BOXES_MAX = STAGE_VIEWS_MAX + 2,
    ARROW_WIDTH = 4,
    QUEUE_CELLS = 4,
    WORDS_ROWS = 4
};

#define WAITS_FROM 0.02 // share of a step from which on it is worth a sentence

typedef struct box {
    char name[BOX_TEXT_MAX], detail[BOX_TEXT_MAX];
    role as;
} box;

// ---- in words -------------------------------------------------------------------------------------------------

static bool plans_only(const feed *f)
{
    return hr_knob_is(&f->applied, HR_KNOB_DEVICE_KIND, "plan");
}

// The queue in front of the device: the last stage that has one.
static const stage_view *last_queue(const stage_view *views, size_t count)
{
    const stage_view *found = NULL;
    for (size_t i = 0; i < count; i++) {
        found = views[i].live && views[i].capacity > 0 ? &views[i] : found;
    }
    return found;
}

static int say_wait(const feed *f, const stage_view *queue, char *text, size_t size)
{
    char share_text[FORMAT_MAX];
    double share = run_state_wait_share(feed_run_state(f));
    if (isnan(share)) {
        return snprintf(text, size, "No step has ended yet.");
    }
    format_percent(share, share_text);
    if (share >= WAITS_FROM && queue == NULL) {
        return snprintf(
            text, size,
            "Training waits %s of a step for input: there is no queue, each batch is made when it is asked "
            "for; pipeline.prefetch makes one.",
            share_text);
    }
    if (share >= WAITS_FROM) {
        return snprintf(text, size,
                        "Training waits %s of a step for input: %s holds %" PRIu32 " of %" PRIu32 ".",
                        share_text, queue->name, queue->length, queue->capacity);
    }
    if (queue != NULL && queue->length >= queue->capacity) {
        return snprintf(text, size, "Input waits for training: %s is full, and a step waits %s for it.",
                        queue->name, share_text);
    }
    return snprintf(text, size, "Nobody waits much: a step waits %s for its input.", share_text);
}

// What is to blame, and what would help.
static int say_blame(const feed *f, char *text, size_t size)
{
    const input_bound b = input_bound_of(f);
    if (b.by != BOUND_INPUT || b.why[0] == '\0') {
        return 0;
    }
    return snprintf(text, size, " To blame: %s%s%s.", b.why, b.helps[0] == '\0' ? "" : ": try ", b.helps);
}

static int say_host(const feed *f, const stage_view *views, size_t count, char *text, size_t size)
{
    char now[HR_BYTES_TEXT_MAX], peak[HR_BYTES_TEXT_MAX];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += views[i].host_bytes == HR_NONE ? 0 : views[i].host_bytes;
    }
    bool has_peak = f->has_report && f->report.host.stage_count > 0;
    return snprintf(text, size, " The stages hold %s of host memory%s%s.", hr_bytes_human(sum, now),
                    has_peak ? ", at most " : "",
                    has_peak ? hr_bytes_human(f->report.host.peak_bytes, peak) : "");
}

static int say_copies(const feed *f, char *text, size_t size)
{
    char bytes[HR_BYTES_TEXT_MAX], rate[HR_BYTES_TEXT_MAX];
    uint64_t step_bytes = f->has_report ? f->report.h2d_bytes_per_step : 0;
    double per_second = (double)step_bytes * run_state_steps_per_second(feed_run_state(f));
    if (f->has_report && f->report.resident) {
        return snprintf(text, size, " One batch stays on the device: its data does not change.");
    }
    if (step_bytes == 0 || step_bytes == HR_NONE) {
        return 0;
    }
    hr_bytes_human(step_bytes, bytes);
    if (!(per_second > 0) || per_second > 1e18) {
        return snprintf(text, size, " Each step copies %s to the device.", bytes);
    }
    return snprintf(text, size, " Each step copies %s to the device, %s a second.", bytes,
                    hr_bytes_human((uint64_t)per_second, rate));
}

const char *pipeline_words(const feed *f, char *text, size_t size)
{
    stage_view views[STAGE_VIEWS_MAX];
    size_t count = pipeline_views(f, views), used;
    if (plans_only(f)) {
        used = (size_t)snprintf(
            text, size,
            "The plan device moves no data: a step is planned with its input in place, and what a "
            "run would read and queue is not known here.");
    } else {
        used = (size_t)say_wait(f, last_queue(views, count), text, size);
        used += used < size ? (size_t)say_blame(f, text + used, size - used) : 0;
        used += used < size && count > 0 ? (size_t)say_host(f, views, count, text + used, size - used) : 0;
    }
    if (used < size) {
        used += (size_t)say_copies(f, text + used, size - used);
    }
    if (used < size && f->has_report && f->report.host.refused[0] != '\0') {
        snprintf(text + used, size - used, " Batches are not pinned: %s.", f->report.host.refused);
    }
    return text;
}

// ---- the boxes ------------------------------------------------------------------------------------------------

static void stage_box(const stage_view *v, box *b)
{
    char bar[64], bytes[HR_BYTES_TEXT_MAX];
    snprintf(b->name, sizeof b->name, "%.*s", BOX_TEXT_MAX - 1, v->name);
    b->as = ROLE_TEXT;
    if (v->capacity > 0) {
        snprintf(b->detail, sizeof b->detail, "%s %" PRIu32 "/%" PRIu32,
                 pipeline_bar(v->length, v->capacity, QUEUE_CELLS, bar), v->length, v->capacity);
        b->as = v->length == 0 ? ROLE_WARN : ROLE_GOOD;
    } else if (v->host_bytes > 0 && v->host_bytes != HR_NONE) {
        snprintf(b->detail, sizeof b->detail, "%s", hr_bytes_human(v->host_bytes, bytes));
    }
}

// Stages, then the slots on the device that the batch is copied into, then what trains on it.
static size_t make_boxes(const feed *f, box boxes[BOXES_MAX])
{
    stage_view views[STAGE_VIEWS_MAX];
    char bytes[HR_BYTES_TEXT_MAX], wait[FORMAT_MAX];
    const run_state *m = feed_run_state(f);
    size_t count = 0, rows = pipeline_views(f, views);
    memset(boxes, 0, BOXES_MAX * sizeof *boxes);
    for (size_t i = 0; i < rows; i++) {
        const bool beside = strcmp(views[i].name, "evaluate") == 0 || // it feeds the held-out set alone
                            strcmp(views[i].name, "answers") == 0;    // map takes them along
        if (views[i].live && !beside) {
            stage_box(&views[i], &boxes[count++]);
        }
    }
    if (count == 0) {
        boxes[0] = (box){"source", "", ROLE_DIM};
        snprintf(boxes[0].detail, BOX_TEXT_MAX, "%.*s", BOX_TEXT_MAX - 1,
                 hr_knob_text(&f->applied, HR_KNOB_PIPELINE_SOURCE));
        count = 1;
    }
    box *slots = &boxes[count++], *device = &boxes[count++];
    uint64_t slot_bytes = m->heap.band_bytes[HR_CATEGORY_INPUT];
    *slots = (box){"input", "", ROLE_TEXT};
    snprintf(slots->detail, sizeof slots->detail, "%s",
             slot_bytes > 0 ? hr_bytes_human(slot_bytes, bytes) : "—");
    *device = (box){"device", "", ROLE_TEXT};
    snprintf(device->name, sizeof device->name, "%.*s", BOX_TEXT_MAX - 1,
             hr_knob_text(&f->applied, HR_KNOB_DEVICE_KIND));
    double share = run_state_wait_share(m);
    snprintf(device->detail, sizeof device->detail, "waits %s",
             format_percent(plans_only(f) ? UNKNOWN : share, wait));
    device->as = share >= WAITS_FROM && !plans_only(f) ? ROLE_WARN : ROLE_TEXT;
    return count;
}

static int box_width(const canvas *c, const box *b)
{
    int name = glyphs_width(c->glyphs, b->name), detail = glyphs_width(c->glyphs, b->detail);
    return 4 + (name > detail ? name : detail);
}

// `y` is the row of its name; its border takes the rows above and below, where there is room for one.
static void draw_box(const canvas *c, int y, int x, int width, bool bordered, const box *b)
{
    for (int i = 1; bordered && i < width - 1; i++) {
        paint_cell(c, y - 1, x + i, theme_role(c->theme, ROLE_RULE), c->glyphs->rule);
        paint_cell(c, y + 2, x + i, theme_role(c->theme, ROLE_RULE), c->glyphs->rule);
    }
    for (int row = 0; row < 2; row++) {
        paint_cell(c, y + row, x, theme_role(c->theme, ROLE_RULE), c->glyphs->separator);
        paint_cell(c, y + row, x + width - 1, theme_role(c->theme, ROLE_RULE), c->glyphs->separator);
    }
    paint_text(c, y, x + 2, width - 4, b->as, b->name);
    paint_text(c, y + 1, x + 2, width - 4, ROLE_DIM, b->detail);
}

static int line_width(const canvas *c, const box *boxes, size_t count)
{
    int line = 1;
    for (size_t i = 0; i < count; i++) {
        line += box_width(c, &boxes[i]) + (i > 0 ? ARROW_WIDTH - 1 : 0);
    }
    return line;
}

// In rows of boxes that fit the width. Returns the rows of cells used.
static int draw_boxes(const canvas *c, const box *boxes, size_t count)
{
    const int line = line_width(c, boxes, count);
    bool bordered = line <= c->area.w || c->area.h >= 4 * BOX_ROWS;
    int rows = bordered ? BOX_ROWS : 3, x = 1, y = bordered ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        int width = box_width(c, &boxes[i]);
        if (x > 1 && x + width > c->area.w) {
            x = 1 + ARROW_WIDTH;
            y += rows;
            paint_text(c, y, 1, ARROW_WIDTH - 1, ROLE_KEY, "──▸");
        }
        if (y + 2 > c->area.h) {
            break;
        }
        draw_box(c, y, x, width, bordered, &boxes[i]);
        x += width;
        bool last = i + 1 == count;
        if (!last && x + ARROW_WIDTH - 1 + box_width(c, &boxes[i + 1]) <= c->area.w) {
            paint_text(c, y, x, ARROW_WIDTH, ROLE_KEY, "──▸");
        }
        x += ARROW_WIDTH - 1;
    }
    return y + rows - (bordered ? 1 : 0);
}

// ---- the pane -------------------------------------------------------------------------------------------------

static const char *verdict(const feed *f, char *text, size_t size)
{
    char share[FORMAT_MAX];
    const input_bound b = input_bound_of(f);
    snprintf(text, size, "%swait %s of a step",
             b.by == BOUND_INPUT     ? "input-bound: "
             : b.by == BOUND_COMPUTE ? "compute-bound: "
                                     : "",
             format_percent(b.waits, share));
    return text;
}

static void draw(const canvas *c, const pane_view *v)
{
    box boxes[BOXES_MAX];
    char words[768], right[64];
    paint_rule(c, v->focused, pane_title(PANE_FLOW), verdict(v->feed, right, sizeof right));
    const int rows = pipeline_time_rows(v->feed);
    const size_t count = make_boxes(v->feed, boxes);
    const bool has_room =
        line_width(c, boxes, count) <= c->area.w && c->area.h >= rows + BOX_ROWS + WORDS_ROWS;
    int y = rows == 0 || has_room ? draw_boxes(c, boxes, count) : 1;
    if (rows > 0) {
        pipeline_draw_times(c, y, v->feed);
        y += rows;
        y += pipeline_draw_decisions(c, y, c->area.h - y - WORDS_ROWS, v->feed);
    }
    canvas text = canvas_sub(c, y, 1, c->area.h > y ? c->area.h - y : 0, c->area.w - 2);
    if (text.area.h > 0) {
        paint_wrapped(&text, 0, ROLE_TEXT, pipeline_words(v->feed, words, sizeof words));
    }
}

void pipeline_say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    pipeline_words(v->feed, text, PANE_TEXT_MAX);
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    pipeline_words(v->feed, text, size);
    return true;
}

const pane_ops pane_flow = {.draw = draw, .say = pipeline_say, .copy = copy};
