// SPDX-License-Identifier: Apache-2.0
// The heap as a map: what holds most of each cell, in its colour and by its letter. A region begins in a row of its own,
// with its size (and address) before it; where there are more regions than rows they follow each other, and the cell
// where one begins is underlined.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/memory/cells.h"
#include "app/tui/screens/memory/memory.h"

enum {
    GUTTER = 11,      // size of the region, or how far into it a row begins
    GUTTER_WIDE = 26, // its address too
    GUTTER_WIDE_MIN = 96,
    HEAD_ROWS = 2, // title, and the event
};

static int gutter_of(const heap_scene *v, int height, int width)
{
    bool close = v->heap.region_count > (size_t)(height > HEAD_ROWS ? height - HEAD_ROWS : 0);
    bool wide = width >= GUTTER_WIDE_MIN;
    return close ? (wide ? GUTTER : 0) : wide ? GUTTER_WIDE : GUTTER;
}

// ---- drawing --------------------------------------------------------------------------------------------------

static bool by_letter(const canvas *c)
{
    return c->glyphs->fills_by_letter || c->theme->tier == TIER_MONO || theme_fills_by_letter(c->theme);
}

static wchar_t letter_of(const canvas *c, unsigned kind)
{
    switch (kind) {
    case KIND_FREE:
        return glyphs_fold(c->glyphs, L'·');
    case KIND_WASTE:
        return c->glyphs->set == GLYPHS_FULL || c->glyphs->set == GLYPHS_BLOCK ? L'▒' : L'%';
    case KIND_PENDING:
        return L'~';
    case KIND_NONE:
        return L' ';
    default:
        return (wchar_t)memory_letter((uint8_t)kind);
    }
}

static bool is_band(unsigned kind)
{
    return kind < BAND_COUNT;
}

static style style_of(const canvas *c, const map_half *h, bool stamped)
{
    if (h->kind == KIND_FREE || h->band >= BAND_COUNT) {
        return theme_role(c->theme, ROLE_DIM);
    }
    return stamped ? theme_letter(c->theme, h->band) : theme_band(c->theme, h->band);
}

// Two halves of different kinds in one cell; false: this terminal cannot.
static bool draw_halves(const canvas *c, int y, int x, const map_half *left, const map_half *right)
{
    bool can = (c->glyphs->set == GLYPHS_FULL || c->glyphs->set == GLYPHS_BLOCK) && !by_letter(c);
    bool both = is_band(left->kind) && is_band(right->kind);
    bool one = (is_band(left->kind) && right->kind >= KIND_FREE) ||
               (is_band(right->kind) && left->kind >= KIND_FREE);
    if (!can || left->kind == right->kind || (!both && !one)) {
        return false;
    }
    bool shows_left = is_band(left->kind);
    style s = theme_band(c->theme, shows_left ? left->kind : right->kind);
    s.background = both ? theme_band(c->theme, right->kind).foreground : s.background;
    paint_cell(c, y, x, s, shows_left ? L'▌' : L'▐');
    return true;
}

// `before` is the address of the cell to the left: a block's first cell bears its letter.
// `chosen`: which of both halves are under the cursor.
static uint64_t draw_cell(const canvas *c, int y, int x, const map_half *left, const map_half *right,
                          const bool chosen[2], uint64_t before)
{
    const map_half *shown = left->kind == KIND_NONE ? right : left;
    bool stamped = is_band(shown->kind) && (by_letter(c) || shown->address != before);
    if (chosen[0] || chosen[1]) {
        const map_half *of = chosen[0] ? left : right;
        style s = theme_role(c->theme, ROLE_SELECT);
        paint_cell(c, y, x, s, letter_of(c, of->kind));
        return shown->address;
    }
    if (!draw_halves(c, y, x, left, right)) {
        style s = style_of(c, shown, stamped && !by_letter(c));
        s.attributes |= left->begins_region || right->begins_region ? STYLE_UNDERLINE : 0;
        bool letter = stamped || !is_band(shown->kind);
        paint_cell(c, y, x, s, letter ? letter_of(c, shown->kind) : glyphs_bar(c->glyphs, 8));
    }
    return shown->address;
}

// How far into its region, or the pool, a row begins.
static void draw_offset(const canvas *c, int y, int gutter, uint64_t at)
{
    char bytes[HR_BYTES_TEXT_MAX], offset[HR_BYTES_TEXT_MAX + 1];
    snprintf(offset, sizeof offset, "+%s", hr_bytes_human(at, bytes));
    paint_right(c, y, gutter - GUTTER, GUTTER - 1, ROLE_DIM, offset);
}

static void draw_region(const canvas *c, int y, int gutter, const heap_region *r)
{
    char bytes[HR_BYTES_TEXT_MAX];
    paint_right(c, y, gutter - GUTTER, GUTTER - 1, ROLE_TEXT, hr_bytes_human(r->bytes, bytes));
    if (gutter == GUTTER_WIDE) {
        paint_format(c, y, 0, gutter - GUTTER, ROLE_DIM, "0x%" PRIx64, r->address);
    }
}

static void draw_gutters(const canvas *c, const heap_mirror *m, const map_scale *s, int gutter)
{
    uint64_t row = 0, end = s->top + (uint64_t)s->rows;
    end = end < s->all_rows ? end : s->all_rows;
    for (uint64_t at = s->top; s->close && gutter > 0 && at < end; at++) {
        draw_offset(c, HEAD_ROWS + (int)(at - s->top), gutter, at * s->row_bytes);
    }
    for (size_t i = 0; !s->close && i < m->region_count; i++) {
        uint64_t rows = map_rows_of(s, &m->regions[i]);
        for (uint64_t k = row < s->top ? s->top - row : 0; k < rows && row + k < end; k++) {
            int y = HEAD_ROWS + (int)(row + k - s->top);
            if (k == 0) {
                draw_region(c, y, gutter, &m->regions[i]);
            } else {
                draw_offset(c, y, gutter, k * s->row_bytes);
            }
        }
        row += rows;
    }
}

static void draw_cells(const canvas *c, const heap_scene *v, const map_scale *s, int gutter)
{
    const map_half *halves = map_halves(s, v);
    uint64_t before = UINT64_MAX, first, end, k = 0;
    map_selected(s, v, &first, &end);
    for (int y = 0; halves != NULL && y < s->rows; y++) {
        for (int x = 0; x < s->width; x++, k += 2) {
            map_half left = halves[k], right = halves[k + 1];
            const bool chosen[] = {k >= first && k < end, k + 1 >= first && k + 1 < end};
            left.begins_region = s->close && left.begins_region; // else the gutter says so
            right.begins_region = s->close && right.begins_region;
            if (left.kind != KIND_NONE || right.kind != KIND_NONE) {
                before = draw_cell(c, HEAD_ROWS + y, gutter + x, &left, &right, chosen, before);
            }
        }
    }
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw_title(const canvas *c, const memory_state *mem, bool focused)
{
    enum { AROUND = 16 }; // the title itself
    const heap_mirror *m = &mem->scene.heap;
    byte_unit unit = byte_unit_for(m->pool_bytes);
    char right[MEMORY_TEXT], pool[FORMAT_MAX], used[FORMAT_MAX], hole[HR_BYTES_TEXT_MAX];
    const char *kind = mem->scene.step.allocator;
    format_bytes(m->pool_bytes, unit, pool);
    format_bytes(m->in_use_bytes, unit, used);
    hr_bytes_human(heap_mirror_largest_free(m), hole);
    double share = 100 * heap_mirror_fragmentation(m);
    snprintf(right, sizeof right, "%s · pool %s · in_use %s %s · frag %.0f%% · hole %s", kind, pool, used,
             unit.name, share, hole);
    if (glyphs_width(c->glyphs, right) + AROUND > c->area.w) {
        snprintf(right, sizeof right, "%s %s of %s %s · frag %.0f%% · hole %s", kind, used, pool, unit.name,
                 share, hole);
    }
    if (glyphs_width(c->glyphs, right) + AROUND > c->area.w) {
        snprintf(right, sizeof right, "%s of %s %s · hole %s", used, pool, unit.name, hole);
    }
    paint_rule(c, focused, pane_title(PANE_HEAP), right);
}

// The selected event, and what the cells mean as far as there is room.
static void draw_event(const canvas *c, const memory_state *mem, const map_scale *s)
{
    char event[MEMORY_TEXT], text[MEMORY_TEXT + 24], cell[HR_BYTES_TEXT_MAX], key[2][96];
    size_t row = memory_selected_row(mem);
    snprintf(text, sizeof text, "%zu %s", row, memory_event_text(mem, row, event));
    role r = heap_scene_row_is_refused(&mem->scene, row) ? ROLE_BAD : ROLE_TEXT;
    int used = paint_parts(c, 1, 0, c->area.w, r, text);
    hr_bytes_human(s->cell_bytes, cell);
    snprintf(key[1], sizeof key[1], "cell %s", cell);
    snprintf(key[0], sizeof key[0], "cell %s · free %s waste", cell,
             letter_of(c, KIND_WASTE) == L'%' ? "%" : "▒");
    for (int i = 0; i < 2; i++) {
        int width = glyphs_width(c->glyphs, key[i]);
        if (used + 2 + width <= c->area.w) {
            paint_right(c, 1, c->area.w - width, width, ROLE_DIM, key[i]);
            return;
        }
    }
}

// Why there is no map of this moment; NULL: there is one.
static const char *why_no_map(const memory_state *mem, bool scaled)
{
    const heap_scene *v = &mem->scene;
    size_t rows = heap_scene_rows(v), row = memory_selected_row(mem);
    if (rows == 0 && mem->feed->heap.broken && mem->feed->heap.now.is_full) {
        return "The heap has more than 2,097,152 blocks or 65,536 regions, which is all that the map keeps "
               "of one.";
    }
    if (rows == 0 && mem->feed->heap.broken) {
        return "Events were lost or contradict each other: the map comes back with a step that is whole.";
    }
    if (rows == 0) {
        return "No step has been done yet, so there is no heap to show.";
    }
    if (row > v->count) {
        return "A dry run was refused, before anything of it was built. The heap that it met is shown here "
               "once it "
               "is planned; one event up is the end of the step before.";
    }
    return v->heap.region_count == 0 ? "The pool is empty." : scaled ? NULL : "There is no room for a map.";
}

static void draw(const canvas *c, const pane_view *view)
{
    const memory_state *mem = view->rows;
    const heap_scene *v = &mem->scene;
    map_scale s;
    int gutter = gutter_of(v, c->area.h, c->area.w);
    const char *why = why_no_map(mem, map_scale_make(&s, v, c->area.h - HEAD_ROWS, c->area.w - gutter));
    if (why != NULL) {
        paint_rule(c, view->focused, pane_title(PANE_HEAP), "");
        canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&words, 0, ROLE_DIM, why);
        return;
    }
    draw_title(c, mem, view->focused);
    draw_event(c, mem, &s);
    draw_gutters(c, &v->heap, &s, gutter);
    draw_cells(c, v, &s, gutter);
}

static pane_request click(const pane_view *view, void *own, int y, int x)
{
    memory_state *mem = own;
    heap_scene *v = &mem->scene;
    map_scale s;
    int gutter = gutter_of(v, view->place.h, view->place.w);
    if (y >= HEAD_ROWS && x >= gutter &&
        map_scale_make(&s, v, view->place.h - HEAD_ROWS, view->place.w - gutter)) {
        v->is_kept = map_address(&s, &v->heap, y - HEAD_ROWS, x - gutter, &v->address);
    }
    return (pane_request){.kind = PANE_DONE};
}

static void say(const pane_view *view, char text[PANE_TEXT_MAX])
{
    const memory_state *mem = view->rows;
    const heap_mirror *m = &mem->scene.heap;
    char in_use[HR_BYTES_TEXT_MAX], pool[HR_BYTES_TEXT_MAX], hole[HR_BYTES_TEXT_MAX], share[FORMAT_MAX];
    char step[MEMORY_TEXT];
    if (heap_scene_rows(&mem->scene) == 0) {
        snprintf(text, PANE_TEXT_MAX, "No step has been done yet, so there is no heap to show.");
        return;
    }
    snprintf(text, PANE_TEXT_MAX,
             "After event %zu of %s, %s of a pool of %s, in %zu region%s, are in use by %zu chunks; the "
             "largest hole is %s and fragmentation %s.",
             mem->scene.at, memory_step_text(&mem->scene, step), hr_bytes_human(m->in_use_bytes, in_use),
             hr_bytes_human(m->pool_bytes, pool), m->region_count, m->region_count == 1 ? "" : "s",
             m->block_count, hr_bytes_human(heap_mirror_largest_free(m), hole),
             format_percent(heap_mirror_fragmentation(m), share));
}

static bool copy(const pane_view *view, char *text, size_t size)
{
    const memory_state *mem = view->rows;
    const heap_mirror *m = &mem->scene.heap;
    snprintf(text, size,
             "pool_bytes\t%" PRIu64 "\tin_use_bytes\t%" PRIu64 "\trequested_bytes\t%" PRIu64
             "\tlargest_free_bytes\t%" PRIu64 "\tfragmentation\t%.6f",
             m->pool_bytes, m->in_use_bytes, m->requested_bytes, heap_mirror_largest_free(m),
             heap_mirror_fragmentation(m));
    return heap_scene_rows(&mem->scene) > 0;
}

const pane_ops pane_heap = {.draw = draw,
                            .move = memory_move,
                            .enter = memory_enter,
                            .enter_does = "its event",
                            .zoom = memory_zoom,
                            .settle = memory_settle,
                            .say = say,
                            .term = "heap",
                            .copy = copy,
                            .click = click};
