// SPDX-License-Identifier: Apache-2.0
// A replay for people: the counters side by side, then where each allocator ran out, with its heap at that moment.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/replay.h"
#include "app/cli/say.h"

enum {
    CELL_TEXT_MAX = 48,
    CELL_LEAST = 11,
    LABEL_LEAST = 15,
    MAP_MAX = 200,
    HOLES_SHOWN = 4,
    NAME_SHOWN = 40
};

// How the numbers came about: those of an allocator are planned, those of the file were measured by somebody.
static const char planned[] = "p", measured[] = "m";

// ---- cells ----------------------------------------------------------------------------------------------------

typedef enum row_kind { ROW_BYTES, ROW_COUNT, ROW_SHARE, ROW_LIMIT } row_kind;

#define OF(member) offsetof(hr_replay_memory, member)

static const struct {
    const char *label;
    row_kind kind;
    size_t offset;
} rows[] = {
    {"limit", ROW_LIMIT, OF(limit_bytes)},
    {"peak in use", ROW_BYTES, OF(peak_in_use_bytes)},
    {"peak requested", ROW_BYTES, OF(peak_requested_bytes)},
    {"waste", ROW_BYTES, OF(waste_bytes)},
    {"peak pool", ROW_BYTES, OF(peak_pool_bytes)},
    {"largest free", ROW_BYTES, OF(largest_free_bytes)},
    {"fragmentation", ROW_SHARE, OF(fragmentation)},
    {"allocations", ROW_COUNT, OF(allocations)},
    {"failures", ROW_COUNT, OF(failures)},
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *say_cell(row_kind kind, const void *value, char text[CELL_TEXT_MAX])
{
    uint64_t number = HR_NONE;
    double share = (double)NAN;
    memcpy(kind == ROW_SHARE ? (void *)&share : (void *)&number, value, sizeof number);
    if (kind == ROW_SHARE ? isnan(share) : number == HR_NONE) {
        return strcpy(text, kind == ROW_LIMIT ? "none" : "-");
    }
    if (kind == ROW_COUNT) {
        return say_count(number, text);
    }
    if (kind == ROW_SHARE) {
        (void)snprintf(text, CELL_TEXT_MAX, "%.4f", share);
        return text;
    }
    return hr_bytes_human(number, text);
}

_Static_assert((int)CELL_TEXT_MAX >= (int)SAY_COUNT_TEXT_MAX && (int)CELL_TEXT_MAX >= (int)HR_BYTES_TEXT_MAX,
               "numbers fit a cell");
_Static_assert(sizeof(double) == sizeof(uint64_t), "a cell is read from eight bytes");

// What the file says, in the shape of the other columns.
static hr_replay_memory recorded_memory(const hr_replay_about *a)
{
    return (hr_replay_memory){
        .limit_bytes = a->recorded.limit_bytes,
        .peak_pool_bytes = a->recorded.peak_pool_bytes,
        .peak_in_use_bytes = a->is_heap ? a->recorded.in_use_bytes : HR_NONE,
        .peak_requested_bytes = HR_NONE,
        .waste_bytes = HR_NONE,
        .largest_free_bytes = a->recorded.largest_free_bytes,
        .fragmentation = a->recorded.fragmentation,
        .allocations = a->allocations,
        .failures = a->refused,
    };
}

// ---- the table ------------------------------------------------------------------------------------------------

typedef struct layout {
    const replay_table *t;
    unsigned label_columns, cell_columns, cells; // cells: in one line
    hr_replay_memory recorded;
    unsigned has_recorded; // 1: it is the first column
} layout;

static const char *knob_label(const replay_sweep *s)
{
    const char *key = hr_knob_rows(NULL)[s->id].key, *dot = strchr(key, '.');
    return dot == NULL ? key : dot + 1;
}

static unsigned wider(unsigned columns, size_t words)
{
    return words > columns ? (unsigned)words : columns;
}

static layout lay_out(const replay_table *t, unsigned columns)
{
    layout l = {.t = t, .label_columns = LABEL_LEAST, .cell_columns = CELL_LEAST};
    l.has_recorded = t->about->recorded.peak_pool_bytes != HR_NONE;
    l.recorded = recorded_memory(t->about);
    for (unsigned s = 0; s < t->sweep_count; s++) {
        l.label_columns = wider(l.label_columns, strlen(knob_label(&t->sweeps[s])) + 1);
    }
    for (unsigned k = 0; k < t->column_count; k++) {
        l.cell_columns = wider(l.cell_columns, strlen(t->columns[k].kind) + sizeof planned + 1);
        for (unsigned s = 0; s < t->sweep_count; s++) {
            const char *value = t->columns[k].value[s];
            l.cell_columns = wider(l.cell_columns, value == NULL ? 0 : strlen(value) + 1);
        }
    }
    unsigned room = columns > l.label_columns ? columns - l.label_columns : 0;
    l.cells = room / l.cell_columns > 0 ? room / l.cell_columns : 1;
    return l;
}

static void print_cell(const layout *l, const char *text)
{
    printf("%*s", (int)l->cell_columns, text);
}

// Column k of the whole table; NULL: what was recorded.
static const replay_column *column_at(const layout *l, unsigned k)
{
    return k < l->has_recorded ? NULL : &l->t->columns[k - l->has_recorded];
}

static void print_heads(const layout *l, unsigned first, unsigned end)
{
    printf("%-*s", (int)l->label_columns, "");
    for (unsigned k = first; k < end; k++) {
        const replay_column *c = column_at(l, k);
        char head[CELL_TEXT_MAX];
        (void)snprintf(head, sizeof head, "%s %s", c == NULL ? "recorded" : c->kind,
                       c == NULL ? measured : planned);
        print_cell(l, head);
    }
    putchar('\n');
    for (unsigned s = 0; s < l->t->sweep_count; s++) {
        printf("%-*s", (int)l->label_columns, knob_label(&l->t->sweeps[s]));
        for (unsigned k = first; k < end; k++) {
            const replay_column *c = column_at(l, k);
            print_cell(l, c == NULL || c->value[s] == NULL ? "-" : c->value[s]);
        }
        putchar('\n');
    }
}

static void print_rows(const layout *l, unsigned first, unsigned end)
{
    for (int r = 0; r < ROWS; r++) {
        printf("%-*s", (int)l->label_columns, rows[r].label);
        for (unsigned k = first; k < end; k++) {
            char text[CELL_TEXT_MAX];
            const replay_column *c = column_at(l, k);
            const hr_replay_memory *m = c == NULL ? &l->recorded : &c->result.memory;
            print_cell(l, say_cell(rows[r].kind, (const char *)m + rows[r].offset, text));
        }
        putchar('\n');
    }
}

static void print_table(const layout *l)
{
    unsigned count = l->t->column_count + l->has_recorded;
    for (unsigned first = 0; first < count; first += l->cells) {
        unsigned end = first + l->cells < count ? first + l->cells : count;
        putchar('\n');
        print_heads(l, first, end);
        print_rows(l, first, end);
    }
}

// ---- what it is about -----------------------------------------------------------------------------------------

static void print_count(const char *words, uint64_t count)
{
    char text[SAY_COUNT_TEXT_MAX];
    printf("%s %s", say_count(count, text), words);
}

// What a situation of our own stands for.
static void print_scenario(const hr_scenario *s)
{
    fputs("  as in ", stdout);
    say_paragraph(s->complaint, 2);
    fputs("  ", stdout);
    say_paragraph(s->explanation, 2);
    fputs("  look at: ", stdout);
    say_paragraph(s->look_at, 11);
}

static void print_subject(const replay_table *t)
{
    const hr_replay_about *a = t->about;
    char peak[HR_BYTES_TEXT_MAX];
    printf("%s\n  ", t->name);
    say_paragraph(a->format_line, 2);
    if (a->scenario != NULL) {
        print_scenario(a->scenario);
    }
    fputs("  ", stdout);
    print_count("events: ", a->events);
    print_count("allocations, at most ", a->allocations);
    print_count("alive at once", a->blocks);
    if (a->steps > 0) {
        fputs(", ", stdout);
        print_count("steps", a->steps);
    }
    putchar('\n');
    if (a->device_count > 1) {
        printf("  device %" PRIu32 ", the fullest of %" PRIu32 "; --json has them all\n", a->device,
               a->device_count);
    }
    printf("  alive at the peak %s: no allocator can do with less\n",
           hr_bytes_human(a->peak_requested_bytes, peak));
    if (a->lost_frees > 0) {
        fputs("  ", stdout);
        print_count("frees of what was allocated before the trace began are left out\n", a->lost_frees);
    }
    if (a->is_heap) {
        puts("  a heap, and not how it came about: its blocks are packed anew, without its holes");
    }
}

// ---- where it ran out -----------------------------------------------------------------------------------------

// A name from a stranger's file: at most so many characters, and none that a terminal obeys.
static void print_name(const char *name)
{
    size_t length = strlen(name);
    if (length > NAME_SHOWN) {
        fputs("...", stdout);
        name += length - (NAME_SHOWN - 3);
        name += strspn(name,
                       "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94"
                       "\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9"
                       "\xaa\xab\xac\xad\xae\xaf\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xbb\xbc\xbd\xbe"
                       "\xbf");
    }
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        putchar(c >= ' ' && c < 0x7F ? c : '?');
    }
}

static void print_title(const replay_table *t, const replay_column *c)
{
    printf("\n%s", c->kind);
    for (unsigned s = 0; s < t->sweep_count; s++) {
        if (c->value[s] != NULL) {
            printf(" %s=%s", knob_label(&t->sweeps[s]), c->value[s]);
        }
    }
}

static void print_moment(const hr_replay_failure *f, const hr_replay_about *a)
{
    char text[SAY_COUNT_TEXT_MAX];
    if (f->event == HR_NONE) {
        fputs(" at the beginning of the trace", stdout);
    } else {
        printf(" at event %s", say_count(f->event, text));
    }
    if (a->steps > 0) {
        printf(", in step %s", say_count(f->step + 1, text));
    }
    if (a->device_count > 1) {
        printf(", on device %" PRIu32, f->device);
    }
    putchar('\n');
}

static void print_need(const hr_replay_failure *f)
{
    char need[HR_BYTES_TEXT_MAX], free_text[HR_BYTES_TEXT_MAX], largest[HR_BYTES_TEXT_MAX];
    char grow[HR_BYTES_TEXT_MAX], had[160];
    uint64_t growth = f->limit_bytes > f->pool_bytes ? f->limit_bytes - f->pool_bytes : 0;
    printf("  needed %s", hr_bytes_human(f->requested_bytes, need));
    if (f->name[0] != '\0') {
        fputs(" for ", stdout);
        print_name(f->name);
    }
    (void)snprintf(had, sizeof had, "had %s free, largest piece %s, left to grow %s: %s",
                   hr_bytes_human(f->free_bytes, free_text), hr_bytes_human(f->largest_free_bytes, largest),
                   hr_bytes_human(growth, grow),
                   f->requested_bytes > f->free_bytes ? "too little" : "enough, but in pieces");
    fputs("\n  ", stdout);
    say_paragraph(had, 2);
}

static const char *cell_glyph(const hr_heap_cell *c, bool glyphs)
{
    static const char *const blocks[] = {"·", "░", "▒", "▓", "█"};
    static const char *const ascii[] = {".", ":", "+", "%", "#"};
    int level = c->used < 0.001 ? 0 : c->used > 0.999 ? 4 : 1 + (int)(c->used * 3);
    return glyphs ? blocks[level] : ascii[level];
}

static void print_map(const hr_heap *heap, unsigned columns, bool glyphs)
{
    hr_heap_cell cells[MAP_MAX];
    char each[HR_BYTES_TEXT_MAX];
    unsigned count = columns - 4 < MAP_MAX ? columns - 4 : MAP_MAX;
    hr_heap_map(heap, cells, count);
    fputs("  [", stdout);
    for (unsigned k = 0; k < count; k++) {
        fputs(cell_glyph(&cells[k], glyphs), stdout);
    }
    printf("]\n  the pool by address: %s free, %s in use, a character is %s\n", glyphs ? "·" : ".",
           glyphs ? "█" : "#", hr_bytes_human(hr_heap_pool_bytes(heap) / count, each));
}

static void print_pin(const char *name, uint64_t bytes)
{
    char text[HR_BYTES_TEXT_MAX];
    if (name == NULL) {
        fputs("the end of its region", stdout);
        return;
    }
    print_name(name[0] != '\0' ? name : "a block");
    printf(" (%s)", hr_bytes_human(bytes, text));
}

static void print_holes(const hr_heap *heap)
{
    hr_heap_hole holes[HOLES_SHOWN];
    size_t count = hr_heap_holes(heap, holes, HOLES_SHOWN);
    for (size_t k = 0; k < count; k++) {
        char bytes[HR_BYTES_TEXT_MAX];
        printf("  hole of %10s, pinned by ", hr_bytes_human(holes[k].bytes, bytes));
        print_pin(holes[k].before, holes[k].before_bytes);
        fputs("\n                         and ", stdout);
        print_pin(holes[k].after, holes[k].after_bytes);
        putchar('\n');
    }
}

static void print_unplanned(const hr_replay_failure *f)
{
    char need[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    printf(": the plan does not fit\n  needed %s in one block, had a limit of %s\n",
           f->requested_bytes == HR_NONE ? "more than 8 EiB" : hr_bytes_human(f->requested_bytes, need),
           hr_bytes_human(f->limit_bytes, limit));
}

static void print_failure(const replay_table *t, const replay_column *c, unsigned columns, bool glyphs)
{
    const hr_replay_result *r = &c->result;
    const hr_replay_failure *f = &r->failures[0];
    print_title(t, c);
    if (r->memory.peak_in_use_bytes == HR_NONE && f->event == HR_NONE) {
        print_unplanned(f);
        return;
    }
    fputs(" ran out of memory", stdout);
    print_moment(f, t->about);
    print_need(f);
    if (r->failure_heap != NULL && hr_heap_pool_bytes(r->failure_heap) > 0) {
        print_map(r->failure_heap, columns, glyphs);
        print_holes(r->failure_heap);
    }
}

// ---- all of it ------------------------------------------------------------------------------------------------

static bool has_static(const replay_table *t)
{
    for (unsigned k = 0; k < t->column_count; k++) {
        if (strcmp(t->columns[k].kind, "static") == 0) {
            return true;
        }
    }
    return false;
}

static void print_verdict(const replay_table *t)
{
    unsigned failed = 0;
    for (unsigned k = 0; k < t->column_count; k++) {
        failed += t->columns[k].result.failures_total > 0;
    }
    if (failed == 0) {
        printf("\nserves the whole trace: %s\n",
               t->column_count == 1 ? t->columns[0].kind : "every one of them");
    } else if (failed == t->column_count) {
        puts("\nnone of them serves the whole trace");
    } else {
        printf("\n%u of %u serve the whole trace\n", t->column_count - failed, t->column_count);
    }
}

void replay_print_text(const replay_table *t, unsigned columns, bool glyphs)
{
    layout l = lay_out(t, columns);
    print_subject(t);
    print_table(&l);
    for (unsigned k = 0; k < t->column_count; k++) {
        if (t->columns[k].result.failures_total > 0) {
            print_failure(t, &t->columns[k], columns, glyphs);
        }
    }
    print_verdict(t);
    if (has_static(t)) {
        puts("static knows the whole trace beforehand: what planning could save");
    }
    puts("peaks are those of what was served; p planned, m measured when it was recorded");
}
