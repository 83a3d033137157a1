// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/act_place.h"

// What a movement at an end says; NULL: this request is none.
static const char *end_of(request r)
{
    switch ((int)r) { // the others move nothing
    case REQUEST_UP:
    case REQUEST_PAGE_UP:
    case REQUEST_FIRST:
        return "nothing is above this";
    case REQUEST_DOWN:
    case REQUEST_PAGE_DOWN:
    case REQUEST_LAST:
        return "nothing is below this";
    case REQUEST_LEFT:
        return "nothing is left of this";
    case REQUEST_RIGHT:
        return "nothing is right of this";
    case REQUEST_KNOB_ABOVE:
        return "this is the first knob";
    case REQUEST_KNOB_BELOW:
        return "this is the last knob";
    case REQUEST_NEXT_MATCH:
    case REQUEST_MATCH_BEFORE:
        return "nothing further matches";
    case REQUEST_ZOOM_IN:
        return "this is the finest view";
    case REQUEST_ZOOM_OUT:
        return "this is the longest view";
    default:
        return NULL;
    }
}

act_place act_place_of(const app *a)
{
    act_place p = {.frozen = a->feed.is_frozen,
                   .zooms = {a->bench.zoom, a->memory.scene.zoom, (unsigned)a->step.zoom},
                   .turns = {a->feed.turned.done, a->feed.turned.count},
                   .at = {a->feed.knob, a->bench.counter, a->column, a->bench.log_back, a->help.top,
                          a->presets.selected, (size_t)a->learn.lesson.top, a->learn.lesson.option,
                          a->learn.lesson.serial},
                   .instr = a->step.cursor,
                   .change = a->memory.scene.at,
                   .address = a->memory.scene.address};
    for (size_t i = 0; i < PANE_FOCUS_COUNT; i++) {
        p.row[i] = a->table[i].cursor;
    }
    return p;
}

static bool is_same_place(const act_place *one, const act_place *other)
{
    bool same = one->frozen == other->frozen && one->instr == other->instr && one->change == other->change &&
                one->address == other->address;
    for (size_t i = 0; i < sizeof one->zooms / sizeof *one->zooms; i++) {
        same = same && one->zooms[i] == other->zooms[i];
    }
    for (size_t i = 0; i < sizeof one->turns / sizeof *one->turns; i++) {
        same = same && one->turns[i] == other->turns[i];
    }
    for (size_t i = 0; i < sizeof one->at / sizeof *one->at; i++) {
        same = same && one->at[i] == other->at[i];
    }
    for (size_t i = 0; i < PANE_FOCUS_COUNT; i++) {
        same = same && one->row[i] == other->row[i];
    }
    return same;
}

void act_say_stood(app *a, request r, const act_place *before)
{
    const act_place now = act_place_of(a);
    const char *end = end_of(r);
    if (end != NULL && a->feed.message.kind == MESSAGE_NONE && is_same_place(before, &now)) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", end);
    }
}
