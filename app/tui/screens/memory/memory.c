// SPDX-License-Identifier: Apache-2.0
// Memory: which step is shown, where its cursors are, the pane of its events, and the places of all three.
#include "app/tui/screens/memory/memory.h"

#include <stdio.h>

#include "headroom/units.h"

// ---- what is shown --------------------------------------------------------------------------------------------

size_t memory_selected_row(const memory_state *mem)
{
    size_t row = table_selected(mem->events);
    return row < heap_scene_rows(&mem->scene) ? row : mem->scene.at;
}

static void put_cursor(memory_state *mem, size_t row)
{
    table_view *t = mem->events;
    table_settle(t, &memory_events, mem);
    for (size_t i = 0; i < t->count; i++) {
        if (t->order[i] == row) {
            t->cursor = i;
        }
    }
    table_move(t, &memory_events, mem, 0);
}

static void select_row(memory_state *mem, size_t row)
{
    put_cursor(mem, row);
    heap_scene_seek(&mem->scene, memory_selected_row(mem));
}

// What ran out of memory without having been run is shown as it was planned, once the plan has come.
static bool wants_plan(const feed *f)
{
    const hr_step_plan *p = feed_step_plan(f);
    return f->heap.refused.any && !f->heap.refused.is_recorded && p != NULL && !p->fits && p->event_count > 0;
}

static bool take_plan(memory_state *mem)
{
    heap_scene *v = &mem->scene;
    if (v->step.kind == HEAP_STEP_PLANNED && v->seen_plan == mem->feed->step_plan_version &&
        v->seen == mem->feed->heap.version) {
        return false;
    }
    v->seen_plan = mem->feed->step_plan_version;
    v->seen = mem->feed->heap.version;
    (void)heap_scene_plan(v, feed_step_plan(mem->feed), &mem->feed->knobs, &mem->feed->heap.refused);
    return true;
}

static bool take_newest(memory_state *mem)
{
    heap_scene *v = &mem->scene;
    if (wants_plan(mem->feed)) {
        return take_plan(mem);
    }
    if (v->seen == mem->feed->heap.version && v->step.kind != HEAP_STEP_PLANNED) {
        return false;
    }
    (void)heap_scene_take(v, &mem->feed->heap);
    return true;
}

// A step that is looked at stands still, or it would be gone with the next one.
static pane_request hold(const memory_state *mem)
{
    pane_request r = {.kind = PANE_DONE};
    char step[MEMORY_TEXT];
    if (!mem->feed->is_frozen && run_state_is_training(&mem->feed->live)) {
        r.kind = PANE_FREEZES;
        snprintf(r.text, sizeof r.text,
                 "%.80s is held while the training goes on; Space lets go, and End at its end",
                 memory_step_text(&mem->scene, step));
    }
    return r;
}

pane_request memory_settle(const pane_view *view, void *own)
{
    (void)view;
    memory_state *mem = own;
    heap_scene *v = &mem->scene;
    uint64_t address = v->address;
    if (!mem->events->settled) {
        put_cursor(mem, v->at); // another order or filter: the moment stays, where it is still shown
    }
    size_t row = table_selected(mem->events);
    if (row != SIZE_MAX && (row < v->count ? row : v->count) != v->at) {
        heap_scene_seek(v, row);
        v->is_kept = false; // the map's cursor goes with the event
        return hold(mem);
    }
    if ((!mem->feed->is_frozen || v->step.kind == HEAP_STEP_NONE) &&
        take_newest(mem)) { // frozen shows what there was
        size_t rows = heap_scene_rows(v);
        select_row(mem, v->refused.any && rows > 0 ? rows - 1 : v->peak);
        v->address = v->is_kept ? address : v->address;
    }
    return (pane_request){.kind = PANE_DONE};
}

// ---- what moves -----------------------------------------------------------------------------------------------

// End behind the last event goes on to the newest step.
static bool lets_go(const memory_state *mem, int rows)
{
    enum { END_ROWS = 1 << 20 };
    return rows >= END_ROWS && mem->feed->is_frozen &&
           memory_selected_row(mem) + 1 == heap_scene_rows(&mem->scene);
}

pane_request memory_move(const pane_view *v, void *own, int rows, int columns)
{
    memory_state *mem = own;
    (void)v;
    if (columns != 0) {
        heap_scene_move(&mem->scene, columns);
    }
    if (lets_go(mem, rows)) {
        return (pane_request){.kind = PANE_THAWS};
    }
    if (rows != 0) {
        table_move(mem->events, &memory_events, mem, rows);
    }
    return (pane_request){.kind = PANE_DONE};
}

// From a chunk to the event that made it; from there to the one that ends it.
pane_request memory_enter(const pane_view *v, void *own)
{
    memory_state *mem = own;
    const heap_scene *scene = &mem->scene;
    heap_piece piece;
    (void)v;
    if (!heap_scene_piece(scene, &piece)) {
        return pane_says("there is no heap to show yet");
    }
    size_t made = heap_scene_made(scene, &piece), ended = heap_scene_ended(scene, &piece);
    bool goes_on = made != SIZE_MAX && made + 1 == scene->at;
    if (!goes_on && made == SIZE_MAX) {
        return pane_says("this chunk is older than the step");
    }
    if (goes_on && ended == SIZE_MAX) {
        return pane_says("this chunk stays as it is to the end of the step");
    }
    const pane_request r = hold(mem);
    select_row(mem, 1 + (goes_on ? ended : made));
    return r;
}

pane_request memory_zoom(const pane_view *v, void *own, int direction)
{
    enum { ZOOM_MAX = 24 };
    memory_state *mem = own;
    unsigned zoom = mem->scene.zoom;
    (void)v;
    if (heap_scene_rows(&mem->scene) == 0) {
        return pane_says("there is no heap to show yet");
    }
    mem->scene.zoom = direction < 0 ? (zoom < ZOOM_MAX ? zoom + 1 : zoom) : zoom > 0 ? zoom - 1 : 0;
    return (pane_request){.kind = PANE_DONE};
}

// ---- the events, which decide what the others show -------------------------------------------------------------

static void draw(const canvas *c, const pane_view *view)
{
    const memory_state *mem = view->rows;
    const heap_scene *v = &mem->scene;
    char right[MEMORY_TEXT], step[MEMORY_TEXT];
    size_t at = memory_selected_row(mem);
    snprintf(right, sizeof right, "%s · %zu/%zu", memory_step_text(v, step), at,
             heap_scene_rows(&mem->scene) == 0 ? 0 : heap_scene_rows(&mem->scene) - 1);
    pane_table_rule(c, view, right);
    table_draw(c, 1, mem, &memory_events, mem->events, true);
}

static void say(const pane_view *view, char text[PANE_TEXT_MAX])
{
    const memory_state *mem = view->rows;
    char event[MEMORY_TEXT], step[MEMORY_TEXT], in_use[HR_BYTES_TEXT_MAX];
    const heap_scene *v = &mem->scene;
    if (heap_scene_rows(&mem->scene) == 0) {
        snprintf(text, PANE_TEXT_MAX, "No step has been done yet, so there are no events to show.");
        return;
    }
    snprintf(text, PANE_TEXT_MAX, "Event %zu of %zu of %s: %s; %s are in use after it.",
             memory_selected_row(mem), heap_scene_rows(&mem->scene) - 1, memory_step_text(v, step),
             memory_event_text(mem, memory_selected_row(mem), event),
             hr_bytes_human(v->heap.in_use_bytes, in_use));
}

const pane_ops pane_events = {.draw = draw,
                              .table = &memory_events,
                              .table_y = 1,
                              .move = memory_move,
                              .enter = memory_enter,
                              .enter_does = "its event",
                              .zoom = memory_zoom,
                              .settle = memory_settle,
                              .say = say};

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
