// SPDX-License-Identifier: Apache-2.0
// A replay for people: the counters side by side, then where each allocator ran out, with its heap at that moment.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/replay.h"
#include "app/cli/say.h"

enum { CELL_TEXT_MAX = 48, CELL_LEAST = 11, LABEL_LEAST = 16 };

// How the numbers came about: those of an allocator are planned, those of the file were measured.
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
    {"pool at the end", ROW_BYTES, OF(end_pool_bytes)},
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

// What the file says, in the shape of the other columns; the largest free piece is that of the heap it shows.
static hr_replay_memory recorded_memory(const hr_replay_about *a)
{
    return (hr_replay_memory){
        .limit_bytes = a->recorded.limit_bytes,
        .peak_pool_bytes = a->recorded.peak_pool_bytes,
        .peak_in_use_bytes = a->is_heap ? a->recorded.peak_in_use_bytes : HR_NONE,
        .peak_requested_bytes = HR_NONE,
        .waste_bytes = HR_NONE,
        .end_pool_bytes = HR_NONE,
        .largest_free_bytes = a->is_heap ? a->recorded.largest_free_bytes : HR_NONE,
        .fragmentation = a->is_heap ? a->recorded.fragmentation : (double)NAN,
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
        l.label_columns = wider(l.label_columns, strlen(replay_knob_label(&t->sweeps[s])) + 1);
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
        printf("%-*s", (int)l->label_columns, replay_knob_label(&l->t->sweeps[s]));
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
    say_foreign(stdout, t->name, "");
    fputs("\n  ", stdout);
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
        printf("  of %" PRIu32 " devices this is about device %" PRIu32 "; --json has them all\n",
               a->device_count, a->device);
    }
    printf("  alive at the peak %s: no allocator can do with less\n",
           hr_bytes_human(a->peak_requested_bytes, peak));
    if (a->lost_frees > 0) {
        fputs("  ", stdout);
        print_count("frees of what was allocated before the trace began are left out\n", a->lost_frees);
    }
    if (a->is_heap) {
        fputs("  ", stdout);
        say_paragraph("one heap, and not how it came about: its blocks are packed anew, without its holes",
                      2);
    }
    if (a->damaged_regions > 0) {
        fputs("  the file was cut: ", stdout);
        print_count("regions of its heap are not shown whole\n", a->damaged_regions);
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

hr_status replay_print_text(const replay_table *t, const replay_page *page, hr_err *err)
{
    layout l = lay_out(t, page->columns);
    print_subject(t);
    print_table(&l);
    HR_TRY(replay_print_recorded(t, page, err));
    for (unsigned k = 0; k < t->column_count; k++) {
        HR_TRY(replay_print_peak(t, &t->columns[k], page, err));
        if (t->columns[k].result.failures_total > 0) {
            HR_TRY(replay_print_failure(t, &t->columns[k], page, err));
        }
    }
    print_verdict(t);
    if (has_static(t)) {
        puts("static knows the whole trace beforehand: what planning could save");
    }
    puts("peaks are those of what was served; p planned, m measured when it was recorded");
    return HR_OK;
}
