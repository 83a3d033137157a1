// SPDX-License-Identifier: Apache-2.0
// Where a replayed allocator ran out of memory, for people: what was needed, the heap as a line, the largest holes and
// what pins them.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/page.h"
#include "app/cli/replay.h"
#include "app/cli/say.h"

enum { SENTENCE_MAX = 512, MAP_MAX = 200, HOLES_SHOWN = 4, NAME_SHOWN = 30 };

static bool is_plain(unsigned char c)
{
    return c >= ' ' && c < 0x7F;
}

// A name from an untrusted file: at most so many characters, and none that a terminal obeys.
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
        putchar(is_plain(c) ? c : '?');
    }
}

// The column; a line of its own where sweeps make it long.
static void print_title(const replay_table *t, const replay_column *c)
{
    bool swept = false;
    printf("\n%s", c->kind);
    for (unsigned s = 0; s < t->sweep_count; s++) {
        if (c->value[s] != NULL) {
            printf(" %s=%s", replay_knob_label(&t->sweeps[s]), c->value[s]);
            swept = true;
        }
    }
    fputs(swept ? "\n " : "", stdout);
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

// The cause in a sentence; without names that a terminal would obey.
static void print_cause(const hr_heap *heap)
{
    char sentence[SENTENCE_MAX];
    if (hr_heap_diagnose(heap, sentence, sizeof sentence) == HR_OOM_NONE) {
        return;
    }
    for (char *c = sentence; *c != '\0'; c++) {
        *c = is_plain((unsigned char)*c) ? *c : '?';
    }
    fputs("  ", stdout);
    say_paragraph(sentence, 2);
}

static void print_need(const hr_replay_failure *f)
{
    char need[HR_BYTES_TEXT_MAX], free_text[HR_BYTES_TEXT_MAX], largest[HR_BYTES_TEXT_MAX];
    printf("  needed %s", hr_bytes_human(f->requested_bytes, need));
    if (f->name[0] != '\0') {
        fputs(" for ", stdout);
        print_name(f->name);
    }
    printf("\n  had %s free, the largest piece in the pool %s\n", hr_bytes_human(f->free_bytes, free_text),
           hr_bytes_human(f->largest_free_bytes, largest));
}

static void print_map(const hr_heap *heap, unsigned columns, bool glyphs)
{
    hr_heap_cell cells[MAP_MAX];
    char each[HR_BYTES_TEXT_MAX];
    unsigned count = columns - 4 < MAP_MAX ? columns - 4 : MAP_MAX;
    hr_heap_map(heap, cells, count);
    fputs("  [", stdout);
    for (unsigned k = 0; k < count; k++) {
        fputs(page_shade(cells[k].used, glyphs, glyphs ? "·" : "."), stdout);
    }
    printf("]\n  the pool by address: %s free, %s in use, a character is %s\n", glyphs ? "·" : ".",
           glyphs ? "█" : "#", hr_bytes_human(hr_heap_pool_bytes(heap) / count, each));
}

// "attention/scores (1.5 MiB, 40 requests old)\n"
static void print_pin(const hr_heap_pin *pin)
{
    char text[HR_BYTES_TEXT_MAX], age[SAY_COUNT_TEXT_MAX];
    if (pin->name == NULL) {
        puts("the end of its region");
        return;
    }
    print_name(pin->name[0] != '\0' ? pin->name : "a block");
    printf(" (%s", hr_bytes_human(pin->bytes, text));
    if (pin->age != HR_NONE) {
        printf(", %s request%s old", say_count(pin->age, age), pin->age == 1 ? "" : "s");
    }
    puts(")");
}

static hr_status print_holes(const hr_heap *heap, hr_err *err)
{
    hr_heap_hole holes[HOLES_SHOWN];
    size_t count = 0;
    HR_TRY(hr_heap_holes(heap, holes, HOLES_SHOWN, &count, err));
    for (size_t k = 0; k < count; k++) {
        char bytes[HR_BYTES_TEXT_MAX];
        printf("  hole of %s\n    behind ", hr_bytes_human(holes[k].bytes, bytes));
        print_pin(&holes[k].before);
        fputs("    before ", stdout);
        print_pin(&holes[k].after);
    }
    return HR_OK;
}

static void print_unplanned(const hr_replay_failure *f)
{
    char need[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    printf(" has a plan that does not fit\n  needed %s in one block, had a limit of %s\n",
           f->requested_bytes == HR_NONE ? "more than 8 EiB" : hr_bytes_human(f->requested_bytes, need),
           hr_bytes_human(f->limit_bytes, limit));
}

static hr_status print_heap(const hr_heap *heap, const replay_page *page, hr_err *err)
{
    if (hr_heap_pool_bytes(heap) == 0) {
        return HR_OK;
    }
    print_map(heap, page->columns, page->glyphs);
    return print_holes(heap, err);
}

hr_status replay_print_peak(const replay_table *t, const replay_column *c, const replay_page *page,
                            hr_err *err)
{
    const hr_heap *heap = c->result.peak_heap;
    char text[SAY_COUNT_TEXT_MAX], chunks[SAY_COUNT_TEXT_MAX];
    if (heap == NULL) {
        return HR_OK;
    }
    print_title(t, c);
    fputs(" at its peak", stdout);
    if (c->result.memory.peak_event != HR_NONE) {
        printf(", event %s", say_count(c->result.memory.peak_event, text));
    }
    printf(": %s chunks\n", say_count(hr_heap_chunk_count(heap), chunks));
    return print_heap(heap, page, err);
}

hr_status replay_print_recorded(const replay_table *t, const replay_page *page, hr_err *err)
{
    const hr_replay_about *a = t->about;
    if (!a->is_heap || t->recorded == NULL) {
        return HR_OK;
    }
    uint64_t requested_bytes = hr_heap_refused_bytes(t->recorded);
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX], largest[HR_BYTES_TEXT_MAX];
    uint64_t free_bytes = hr_heap_pool_bytes(t->recorded) - a->recorded.in_use_bytes;
    printf("\nrecorded heap: %s free in the pool, largest piece %s\n", hr_bytes_human(free_bytes, had),
           hr_bytes_human(a->recorded.largest_free_bytes, largest));
    if (requested_bytes > 0) {
        printf("  ran out of memory, needed %s\n", hr_bytes_human(requested_bytes, needed));
        print_cause(t->recorded);
    }
    return print_heap(t->recorded, page, err);
}

hr_status replay_print_failure(const replay_table *t, const replay_column *c, const replay_page *page,
                               hr_err *err)
{
    const hr_replay_result *r = &c->result;
    const hr_replay_failure *f = &r->failures[0];
    print_title(t, c);
    if (r->memory.peak_in_use_bytes == HR_NONE && f->event == HR_NONE) {
        print_unplanned(f);
        return HR_OK;
    }
    fputs(" ran out of memory", stdout);
    print_moment(f, t->about);
    print_need(f);
    if (r->failure_heap == NULL) {
        return HR_OK;
    }
    print_cause(r->failure_heap);
    HR_TRY(print_heap(r->failure_heap, page, err));
    if (page->style == NULL) {
        return HR_OK;
    }
    printf("\nin the words of %s:\n", page->style);
    return hr_heap_write(r->failure_heap, page->style, stdout, err);
}
