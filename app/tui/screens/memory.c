// SPDX-License-Identifier: Apache-2.0
// What the panes of the Memory screen share: which step is shown, where its cursors are, and their places.
#include "app/tui/screens/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/shell/act.h"

// ---- words ----------------------------------------------------------------------------------------------------

char memory_letter(uint8_t category)
{
    return category < HR_CATEGORY_COUNT ? hr_category_letter((hr_category)category) : '?';
}

// The step plan may be of other knobs than what runs: a tensor of it is the same one where category and bytes are.
const hr_step_plan_tensor *memory_tensor(const feed *f, uint32_t tensor, uint8_t category,
                                         uint64_t requested_bytes)
{
    const hr_step_plan *p = feed_step_plan(f);
    if (p == NULL || tensor >= p->tensor_count) {
        return NULL;
    }
    const hr_step_plan_tensor *t = &p->tensors[tensor];
    return t->category == category && t->bytes == requested_bytes ? t : NULL;
}

const char *memory_tensor_name(const feed *f, uint32_t tensor, uint8_t category, uint64_t requested_bytes,
                               char text[HR_NAME_MAX])
{
    const hr_step_plan_tensor *t = memory_tensor(f, tensor, category, requested_bytes);
    if (t != NULL) {
        snprintf(text, HR_NAME_MAX, "%s", hr_step_plan_text(feed_step_plan(f), t->name));
    } else if (tensor != HR_NO_ID) {
        snprintf(text, HR_NAME_MAX, "tensor %" PRIu32, tensor);
    } else {
        snprintf(text, HR_NAME_MAX, "%s",
                 category < HR_CATEGORY_COUNT ? hr_category_name((hr_category)category) : "unknown");
    }
    return text;
}

const char *memory_step_text(const heap_scene *v, char text[MEMORY_TEXT])
{
    switch (v->step.kind) {
    case HEAP_STEP_BUILD:
        snprintf(text, MEMORY_TEXT, "build");
        break;
    case HEAP_STEP_TRAINED:
        snprintf(text, MEMORY_TEXT, "step %" PRIu64, v->step.number);
        break;
    case HEAP_STEP_REFUSED:
        snprintf(text, MEMORY_TEXT, "refused in step %" PRIu64, v->step.number + 1);
        break;
    case HEAP_STEP_PLANNED:
        snprintf(text, MEMORY_TEXT, "refused, planned");
        break;
    case HEAP_STEP_NONE:
        snprintf(text, MEMORY_TEXT, "no step yet");
        break;
    }
    return text;
}

// ---- what is shown --------------------------------------------------------------------------------------------

size_t memory_selected_row(const app *a)
{
    size_t row = table_selected(&a->table[PANE_EVENTS]);
    return row < heap_scene_rows(&a->heap_scene) ? row : a->heap_scene.at;
}

static void put_cursor(app *a, size_t row)
{
    table_view *t = &a->table[PANE_EVENTS];
    table_settle(t, &memory_events, a);
    for (size_t i = 0; i < t->count; i++) {
        if (t->order[i] == row) {
            t->cursor = i;
        }
    }
    table_move(t, &memory_events, a, 0);
}

static void select_row(app *a, size_t row)
{
    put_cursor(a, row);
    heap_scene_seek(&a->heap_scene, memory_selected_row(a));
}

// What ran out of memory without having been run is shown as it was planned, once the plan has come.
static bool wants_plan(const feed *f)
{
    const hr_step_plan *p = feed_step_plan(f);
    return f->heap.refused.any && !f->heap.refused.is_recorded && p != NULL && !p->fits && p->event_count > 0;
}

static bool take_plan(app *a)
{
    heap_scene *v = &a->heap_scene;
    if (v->step.kind == HEAP_STEP_PLANNED && v->seen_plan == a->feed.step_plan_version &&
        v->seen == a->feed.heap.version) {
        return false;
    }
    v->seen_plan = a->feed.step_plan_version;
    v->seen = a->feed.heap.version;
    (void)heap_scene_plan(v, feed_step_plan(&a->feed), &a->feed.knobs, &a->feed.heap.refused);
    return true;
}

static bool take_newest(app *a)
{
    heap_scene *v = &a->heap_scene;
    if (wants_plan(&a->feed)) {
        return take_plan(a);
    }
    if (v->seen == a->feed.heap.version && v->step.kind != HEAP_STEP_PLANNED) {
        return false;
    }
    (void)heap_scene_take(v, &a->feed.heap);
    return true;
}

// A step that is looked at stands still, or it would be gone with the next one.
static void hold(app *a)
{
    char step[MEMORY_TEXT];
    if (!a->feed.is_frozen && run_state_is_training(&a->feed.live)) {
        act_freeze(a, 0);
        feed_say(&a->feed, MESSAGE_NOTE,
                 "%s is held while the training goes on; Space lets go, and End at its end",
                 memory_step_text(&a->heap_scene, step));
    }
}

void memory_settle(app *a)
{
    heap_scene *v = &a->heap_scene;
    uint64_t address = v->address;
    if (!a->table[PANE_EVENTS].settled) {
        put_cursor(a, v->at); // another order or filter: the moment stays, where it is still shown
    }
    size_t row = table_selected(&a->table[PANE_EVENTS]);
    if (row != SIZE_MAX && (row < v->count ? row : v->count) != v->at) {
        heap_scene_seek(v, row);
        v->is_kept = false; // the map's cursor goes with the event
        hold(a);
    } else if ((!a->feed.is_frozen || v->step.kind == HEAP_STEP_NONE) &&
               take_newest(a)) { // frozen shows what there was
        size_t rows = heap_scene_rows(v);
        select_row(a, v->refused.any && rows > 0 ? rows - 1 : v->peak);
        v->address = v->is_kept ? address : v->address;
    }
}

// ---- what moves -----------------------------------------------------------------------------------------------

// End behind the last event goes on to the newest step.
static bool lets_go(const app *a, int rows)
{
    enum { END_ROWS = 1 << 20 };
    return rows >= END_ROWS && a->feed.is_frozen &&
           memory_selected_row(a) + 1 == heap_scene_rows(&a->heap_scene);
}

bool memory_move(app *a, int rows, int columns)
{
    if (lets_go(a, rows)) {
        act_freeze(a, 0);
    } else if (rows != 0) {
        table_move(&a->table[PANE_EVENTS], &memory_events, a, rows);
    }
    if (columns != 0) {
        heap_scene_move(&a->heap_scene, columns);
    }
    return true;
}

// From a chunk to the event that made it; from there to the one that ends it.
void memory_enter(app *a)
{
    const heap_scene *v = &a->heap_scene;
    heap_piece piece;
    if (!heap_scene_piece(v, &piece)) {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no heap to show yet");
        return;
    }
    size_t made = heap_scene_made(v, &piece), ended = heap_scene_ended(v, &piece);
    bool goes_on = made != SIZE_MAX && made + 1 == v->at;
    if (!goes_on && made == SIZE_MAX) {
        feed_say(&a->feed, MESSAGE_NOTE, "this chunk is older than the step");
    } else if (goes_on && ended == SIZE_MAX) {
        feed_say(&a->feed, MESSAGE_NOTE, "this chunk stays as it is to the end of the step");
    } else {
        hold(a);
        select_row(a, 1 + (goes_on ? ended : made));
    }
}

void memory_zoom(app *a, int direction)
{
    enum { ZOOM_MAX = 24 };
    unsigned zoom = a->heap_scene.zoom;
    if (heap_scene_rows(&a->heap_scene) == 0) {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no heap to show yet");
        return;
    }
    a->heap_scene.zoom = direction < 0 ? (zoom < ZOOM_MAX ? zoom + 1 : zoom) : zoom > 0 ? zoom - 1 : 0;
}

// ---- places ---------------------------------------------------------------------------------------------------

enum { WIDE_MIN = 120, BLOCK_WIDTH = 40, BLOCK_WIDTH_WIDE = 44 };

void place_memory(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    if (body.w >= WIDE_MIN) {
        rect left = cut_left(&body, body.w - layout_clamp(body.w / 3, BLOCK_WIDTH_WIDE, 60) - 1);
        l->pane[PANE_HEAP] = cut_top(&left, left.h / 2 + 1);
        l->pane[PANE_EVENTS] = left;
        l->pane[PANE_BLOCK] = body;
        return;
    }
    l->pane[PANE_HEAP] = cut_top(&body, body.h * 9 / 19);
    l->pane[PANE_EVENTS] = cut_left(&body, body.w - BLOCK_WIDTH - 1);
    l->pane[PANE_BLOCK] = body;
}
