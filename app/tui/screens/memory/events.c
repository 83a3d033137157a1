// SPDX-License-Identifier: Apache-2.0
// The events of a step as rows of a table: what the allocator was asked, one after the other.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/memory/memory.h"

enum { COLUMN_NUMBER, COLUMN_EVENT, COLUMN_TENSOR, COLUMN_REQUESTED, COLUMN_ALLOCATED, COLUMN_ADDRESS };

static const table_column columns[] = {
    [COLUMN_NUMBER] = {.term = "number", .width = 6, .number = true},
    [COLUMN_EVENT] = {.term = "event", .width = 7},
    [COLUMN_TENSOR] = {.term = "tensor", .middle = true},
    [COLUMN_REQUESTED] = {.term = "requested", .width = 9, .number = true},
    [COLUMN_ALLOCATED] = {.term = "allocated", .width = 9, .number = true, .from_width = 56},
    [COLUMN_ADDRESS] = {.term = "address", .width = 14, .number = true, .from_width = 64},
};

static size_t count(const void *of)
{
    const memory_state *mem = of;
    return heap_scene_rows(&mem->scene);
}

static bool is_region(const heap_change *c)
{
    return c->kind == HR_EVENT_GROW || c->kind == HR_EVENT_SHRINK;
}

static const char *event_name(const heap_scene *v, size_t row)
{
    const heap_change *c = heap_scene_row(v, row);
    if (heap_scene_row_is_refused(v, row)) {
        return "refused";
    }
    return c == NULL ? "begins" : hr_event_name((hr_event_kind)c->kind);
}

static void name_cell(const memory_state *mem, size_t row, char text[TABLE_CELL_MAX])
{
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    const heap_refused *r = &v->refused;
    char name[HR_NAME_MAX], step[MEMORY_TEXT];
    if (c == NULL && row == 0) {
        snprintf(text, TABLE_CELL_MAX, "%s", memory_step_text(v, step));
    } else if (c == NULL) {
        snprintf(text, TABLE_CELL_MAX, "%s",
                 memory_tensor_name(mem->feed, r->tensor, r->category, r->requested_bytes, name));
    } else if (is_region(c)) {
        snprintf(text, TABLE_CELL_MAX, "a region");
    } else {
        snprintf(text, TABLE_CELL_MAX, "%s",
                 memory_tensor_name(mem->feed, c->tensor, c->category, c->requested_bytes, name));
    }
}

// HR_NONE: there is none.
static uint64_t bytes_of(const heap_scene *v, size_t row, unsigned column)
{
    const heap_change *c = heap_scene_row(v, row);
    bool requested = column == COLUMN_REQUESTED;
    if (c == NULL) {
        return row > 0 && requested ? v->refused.requested_bytes : HR_NONE;
    }
    if (c->kind == HR_EVENT_OOM) {
        return requested ? c->requested_bytes : HR_NONE;
    }
    return !requested ? c->bytes : is_region(c) ? HR_NONE : c->requested_bytes;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const memory_state *mem = of;
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    char bytes[HR_BYTES_TEXT_MAX];
    uint64_t value;
    switch (column) {
    case COLUMN_NUMBER:
        snprintf(text, TABLE_CELL_MAX, "%" PRIu64, (uint64_t)row + v->step.missing);
        break;
    case COLUMN_EVENT:
        snprintf(text, TABLE_CELL_MAX, "%s", event_name(v, row));
        break;
    case COLUMN_TENSOR:
        name_cell(mem, row, text);
        break;
    case COLUMN_ADDRESS:
        if (c != NULL && c->kind != HR_EVENT_OOM) {
            snprintf(text, TABLE_CELL_MAX, "0x%" PRIx64, c->address);
        } else {
            snprintf(text, TABLE_CELL_MAX, "—");
        }
        break;
    default:
        value = bytes_of(v, row, column);
        snprintf(text, TABLE_CELL_MAX, "%s", value == HR_NONE ? "—" : hr_bytes_human(value, bytes));
    }
}

static double number(const void *of, size_t row, unsigned column)
{
    const memory_state *mem = of;
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    if (column == COLUMN_NUMBER) {
        return (double)row;
    }
    if (column == COLUMN_ADDRESS) {
        return c == NULL || c->kind == HR_EVENT_OOM ? UNKNOWN : (double)c->address;
    }
    uint64_t bytes = bytes_of(v, row, column);
    return bytes == HR_NONE ? UNKNOWN : (double)bytes;
}

static uint64_t version(const void *of)
{
    const memory_state *mem = of;
    return mem->scene.version + (mem->feed->step_plan_version << 32); // the step plan has the names
}

static int band(const void *of, size_t row)
{
    const memory_state *mem = of;
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    if (c == NULL) {
        return row > 0 ? (int)v->refused.category : -1;
    }
    return is_region(c) ? -1 : (int)c->category;
}

// The events of the chunk under the map's cursor stand out.
static role role_of(const void *of, size_t row)
{
    const memory_state *mem = of;
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    if (heap_scene_row_is_refused(v, row)) {
        return ROLE_BAD;
    }
    if (c == NULL) {
        return ROLE_DIM;
    }
    return c->address == v->address && !is_region(c) ? ROLE_KEY
           : c->kind == HR_EVENT_FREE                ? ROLE_DIM
                                                     : ROLE_TEXT;
}

const table_source memory_events = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .version = version,
    .band = band,
    .role_of = role_of,
    .selects = true,
    .empty = "No step has been done yet: its allocations and frees will stand here.",
};

const char *memory_event_text(const memory_state *mem, size_t row, char text[MEMORY_TEXT])
{
    const heap_scene *v = &mem->scene;
    const heap_change *c = heap_scene_row(v, row);
    char name[TABLE_CELL_MAX], asked[HR_BYTES_TEXT_MAX], got[HR_BYTES_TEXT_MAX];
    name_cell(mem, row, name);
    if (heap_scene_row_is_refused(v, row)) {
        uint64_t largest = v->refused.largest_free_bytes;
        snprintf(text, MEMORY_TEXT, "refused %s: %s · largest hole %s", name,
                 hr_bytes_human(v->refused.requested_bytes, asked), hr_bytes_human(largest, got));
    } else if (c == NULL) {
        snprintf(text, MEMORY_TEXT, "%s begins", name);
    } else if (is_region(c)) {
        snprintf(text, MEMORY_TEXT, "%s: %s of %s", event_name(v, row), name, hr_bytes_human(c->bytes, got));
    } else {
        snprintf(text, MEMORY_TEXT, "%s %c %s %s in %s", event_name(v, row), memory_letter(c->category), name,
                 hr_bytes_human(c->requested_bytes, asked), hr_bytes_human(c->bytes, got));
    }
    return text;
}
