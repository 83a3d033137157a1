// SPDX-License-Identifier: Apache-2.0
// The chunk under the cursor: what it holds, what it wastes, when it comes and goes, what lies beside it. At a refused
// request: why no hole was good enough.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/memory/memory.h"

enum { LABEL_WIDTH = 10, LINES_MAX = 32 };

// What stands there, as lines of a label and a value; drawn, said and copied from here.
typedef struct block_line {
    const char *label; // a term
    char text[MEMORY_TEXT];
} block_line;

typedef struct block_lines {
    int count;
    block_line line[LINES_MAX];
} block_lines;

static void add(block_lines *l, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(block_lines *l, const char *label, const char *format, ...)
{
    if (l->count < LINES_MAX) {
        va_list args;
        va_start(args, format);
        l->line[l->count].label = label;
        vsnprintf(l->line[l->count].text, MEMORY_TEXT, format, args);
        va_end(args);
        l->count++;
    }
}

// ---- lines ----------------------------------------------------------------------------------------------------

// "57 forward conv1/conv2d": an event of the step and the instruction that asked.
static const char *event_text(const memory_state *mem, size_t change, char text[MEMORY_TEXT])
{
    const heap_scene *v = &mem->scene;
    const hr_step_plan *p = feed_step_plan(mem->feed);
    const heap_change *c = &v->changes[change];
    bool named = memory_tensor(mem->feed, c->tensor, c->category, c->requested_bytes) != NULL;
    bool known = named && c->instr < p->instr_count;
    snprintf(text, MEMORY_TEXT, "%zu %s%s%s", change + 1 + (size_t)v->step.missing,
             hr_phase_name((hr_phase)c->phase), known ? " · " : "",
             known ? hr_step_plan_text(p, p->instrs[c->instr].name) : "");
    return text;
}

static void add_life(block_lines *l, const memory_state *mem, const heap_piece *piece)
{
    char text[MEMORY_TEXT];
    size_t made = heap_scene_made(&mem->scene, piece), ended = heap_scene_ended(&mem->scene, piece);
    add(l, "born", "%s", made == SIZE_MAX ? "before this step" : event_text(mem, made, text));
    add(l, "dies", "%s", ended == SIZE_MAX ? "not in this step" : event_text(mem, ended, text));
}

static void add_neighbour(block_lines *l, const memory_state *mem, const char *label, uint64_t address,
                          size_t region)
{
    heap_piece beside;
    char bytes[HR_BYTES_TEXT_MAX], name[HR_NAME_MAX];
    const heap_block *b;
    if (!heap_mirror_at(&mem->scene.heap, address, &beside) || beside.region != region) {
        add(l, label, "end of the region");
    } else if ((b = beside.block) == NULL) {
        add(l, label, "free %s", hr_bytes_human(beside.bytes, bytes));
    } else {
        add(l, label, "%c %s · %s", memory_letter(b->category), hr_bytes_human(beside.bytes, bytes),
            memory_tensor_name(mem->feed, b->tensor, b->category, b->requested_bytes, name));
    }
}

static void add_place(block_lines *l, const memory_state *mem, const heap_piece *piece)
{
    add(l, "address", "0x%" PRIx64, piece->address);
    add_life(l, mem, piece);
    add_neighbour(l, mem, "before", piece->address - 1, piece->region);
    add_neighbour(l, mem, "after", piece->address + piece->bytes, piece->region);
}

static void describe_block(block_lines *l, const memory_state *mem, const heap_piece *piece)
{
    const heap_block *b = piece->block;
    const hr_step_plan_tensor *t = memory_tensor(mem->feed, b->tensor, b->category, b->requested_bytes);
    char name[HR_NAME_MAX], asked[HR_BYTES_TEXT_MAX], got[HR_BYTES_TEXT_MAX], share[FORMAT_MAX];
    add(l, "tensor", "%c %s", memory_letter(b->category),
        memory_tensor_name(mem->feed, b->tensor, b->category, b->requested_bytes, name));
    if (t != NULL) {
        add(l, "shape", "%s %s", hr_step_plan_text(feed_step_plan(mem->feed), t->shape),
            hr_step_plan_text(feed_step_plan(mem->feed), t->dtype));
    }
    add(l, "requested", "%s", hr_bytes_human(b->requested_bytes, asked));
    add(l, "allocated", "%s, waste %s", hr_bytes_human(b->bytes, got),
        format_percent((double)(b->bytes - b->requested_bytes) / (double)b->bytes, share));
    if (b->pending) {
        add(l, "state", "freed, a stream has not got there yet");
    }
    add_place(l, mem, piece);
}

static void describe_hole(block_lines *l, const memory_state *mem, const heap_piece *piece)
{
    const heap_mirror *m = &mem->scene.heap;
    char bytes[HR_BYTES_TEXT_MAX], free_text[HR_BYTES_TEXT_MAX];
    uint64_t free_bytes = m->pool_bytes - m->in_use_bytes;
    bool largest = piece->bytes == heap_mirror_largest_free(m);
    add(l, "free", "%s of %s%s", hr_bytes_human(piece->bytes, bytes), hr_bytes_human(free_bytes, free_text),
        largest ? " · the largest hole" : "");
    add_place(l, mem, piece);
}

// The allocator may take more than was asked for, and the step may ask for more behind it: what holds it all is the
// planner's answer, as on the other screens.
static void add_missing(block_lines *l, const feed *f, uint64_t least_bytes)
{
    const hr_step_plan *p = feed_step_plan(f);
    char bytes[HR_BYTES_TEXT_MAX];
    if (p != NULL && !p->fits && p->missing_bytes > 0) {
        add(l, "missing", "%s p for the step", hr_bytes_human(p->missing_bytes, bytes));
    } else {
        add(l, "missing", "at least %s", hr_bytes_human(least_bytes, bytes));
    }
}

// The request that could not be served, against what there was.
static void describe_refused(block_lines *l, const memory_state *mem)
{
    const heap_scene *v = &mem->scene;
    const heap_refused *r = &v->refused;
    char name[HR_NAME_MAX], asked[HR_BYTES_TEXT_MAX], hole[HR_BYTES_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX];
    uint64_t limit = feed_run_state(mem->feed)->limit_bytes > r->pool_bytes
                         ? feed_run_state(mem->feed)->limit_bytes
                         : r->pool_bytes;
    uint64_t largest = r->largest_free_bytes, grows = limit - r->pool_bytes;
    uint64_t free_bytes = limit > r->in_use_bytes ? limit - r->in_use_bytes : 0;
    uint64_t piece = grows > largest ? grows : largest; // the largest that there was or could have been
    add(l, "tensor", "%c %s", memory_letter(r->category),
        memory_tensor_name(mem->feed, r->tensor, r->category, r->requested_bytes, name));
    add(l, "requested", "%s in one piece", hr_bytes_human(r->requested_bytes, asked));
    add(l, "holes", largest == 0 ? "none" : "%s at most", hr_bytes_human(largest, hole));
    add(l, "limit", "%s left to grow", hr_bytes_human(grows, bytes));
    if (piece < r->requested_bytes) {
        add_missing(l, mem->feed, r->requested_bytes - piece);
    }
    add(l, "free", "%s, %s", hr_bytes_human(free_bytes, bytes),
        free_bytes >= r->requested_bytes ? "in pieces" : "not enough");
    if (v->heap.in_use_bytes == r->in_use_bytes) { // the heap that it met is the one that is shown
        uint64_t waste_bytes = v->heap.in_use_bytes - v->heap.requested_bytes;
        add(l, "waste", "%s of in_use", hr_bytes_human(waste_bytes, bytes));
    }
    add(l, "in_use", "%s", hr_bytes_human(r->in_use_bytes, bytes));
    add(l, "pool", "%s", hr_bytes_human(r->pool_bytes, bytes));
    if (!r->is_recorded && v->step.kind != HEAP_STEP_PLANNED) {
        add(l, "planned", "by a dry run");
    }
}

static bool shows_refused(const memory_state *mem)
{
    return heap_scene_row_is_refused(&mem->scene, memory_selected_row(mem)) && mem->scene.refused.any;
}

static void describe(block_lines *l, const memory_state *mem)
{
    heap_piece piece;
    l->count = 0;
    if (heap_scene_rows(&mem->scene) == 0) {
        return;
    }
    if (shows_refused(mem)) {
        describe_refused(l, mem);
    } else if (heap_scene_piece(&mem->scene, &piece) && piece.block != NULL) {
        describe_block(l, mem, &piece);
    } else if (heap_scene_piece(&mem->scene, &piece)) {
        describe_hole(l, mem, &piece);
    }
}

// ---- what holds the heap ----------------------------------------------------------------------------------------

static void draw_sum(const canvas *c, int y, const char *label, uint64_t bytes)
{
    char text[HR_BYTES_TEXT_MAX];
    if (y < c->area.h) {
        paint_text(c, y, 2, c->area.w - 2, ROLE_DIM, label);
        paint_right(c, y, 16, 10, ROLE_TEXT, hr_bytes_human(bytes, text));
    }
}

// Allocated bytes by category, and what is free: together the pool.
static void draw_categories(const canvas *c, int y, const memory_state *mem)
{
    const heap_mirror *m = &mem->scene.heap;
    const uint64_t *bytes = m->category_bytes;
    _Static_assert(BAND_COUNT == HR_CATEGORY_COUNT + 1, "a band for each category, and one for the unknown");
    for (int i = BAND_COUNT - 1; i >= 0 && y < c->area.h; i--) {
        unsigned band = band_stack[i];
        if (bytes[band] > 0) {
            paint_cell(c, y, 0, theme_letter(c->theme, band), (wchar_t)memory_letter((uint8_t)band));
            draw_sum(c, y++, band < HR_CATEGORY_COUNT ? hr_category_name((hr_category)band) : "unknown",
                     bytes[band]);
        }
    }
    draw_sum(c, y, "free", m->pool_bytes - m->in_use_bytes);
    draw_sum(c, y + 1, "waste", m->in_use_bytes - m->requested_bytes);
}

// ---- the pane -------------------------------------------------------------------------------------------------

static const char *title_of(const memory_state *mem, char text[MEMORY_TEXT])
{
    const heap_mirror *m = &mem->scene.heap;
    heap_piece piece;
    char bytes[HR_BYTES_TEXT_MAX];
    text[0] = '\0';
    if (shows_refused(mem)) {
        return "refused";
    }
    if (heap_scene_rows(&mem->scene) > 0 && heap_scene_piece(&mem->scene, &piece)) {
        snprintf(text, MEMORY_TEXT, "region %zu/%zu %s", piece.region + 1, m->region_count,
                 hr_bytes_human(m->regions[piece.region].bytes, bytes));
    }
    return text;
}

static bool names_neighbour(const block_line *line)
{
    return strcmp(line->label, "before") == 0 || strcmp(line->label, "after") == 0;
}

static void draw(const canvas *c, const pane_view *view)
{
    const memory_state *mem = view->rows;
    block_lines l;
    char right[MEMORY_TEXT];
    describe(&l, mem);
    paint_rule(c, view->focused, pane_title(PANE_BLOCK), title_of(mem, right));
    int y = 1;
    for (int i = 0; i < l.count && y < c->area.h; i++, y++) {
        canvas words = canvas_sub(c, y, LABEL_WIDTH, c->area.h - y, c->area.w - LABEL_WIDTH);
        paint_text(c, y, 0, LABEL_WIDTH, ROLE_DIM, l.line[i].label);
        if (names_neighbour(&l.line[i])) {
            words.said_later = true; // whole when the map's cursor is there
            paint_middle(&words, 0, 0, words.area.w, ROLE_TEXT, l.line[i].text);
        } else if (strcmp(l.line[i].label, "tensor") == 0) {
            int rows = paint_wrapped(&words, 0, ROLE_TEXT, l.line[i].text);
            y += rows > 1 ? rows - 1 : 0;
        } else {
            paint_parts(&words, 0, 0, words.area.w, ROLE_TEXT, l.line[i].text);
        }
    }
    if (l.count > 0) {
        draw_categories(c, y + 1, mem);
    }
}

static void say(const pane_view *view, char text[PANE_TEXT_MAX])
{
    block_lines l;
    size_t used = 0;
    describe(&l, view->rows);
    if (l.count == 0) {
        snprintf(text, PANE_TEXT_MAX, "There is no heap to show yet.");
    }
    for (int i = 0; i < l.count && used < PANE_TEXT_MAX; i++) {
        int length = snprintf(text + used, PANE_TEXT_MAX - used, "%s%s %s", i == 0 ? "" : ", ",
                              l.line[i].label, l.line[i].text);
        used += length > 0 ? (size_t)length : 0;
    }
}

static bool copy(const pane_view *view, char *text, size_t size)
{
    block_lines l;
    size_t used = 0;
    describe(&l, view->rows);
    text[0] = '\0';
    for (int i = 0; i < l.count && used < size; i++) {
        int length = snprintf(text + used, size - used, "%s\t%s\n", l.line[i].label, l.line[i].text);
        used += length > 0 ? (size_t)length : 0;
    }
    return l.count > 0;
}

const pane_ops pane_block = {.draw = draw,
                             .move = memory_move,
                             .enter = memory_enter,
                             .enter_does = "its event",
                             .zoom = memory_zoom,
                             .settle = memory_settle,
                             .say = say,
                             .copy = copy};
