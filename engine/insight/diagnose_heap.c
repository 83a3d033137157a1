// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "events/heap_holes.h"
#include "insight/diagnose_evidence.h"

enum { LARGEST = 6, HOLES = 2, NAME_SHOWN = 40 };

const char *heap_own_name(const void *snapshot, const heap_chunk *c)
{
    const heap_snapshot *p = snapshot;
    const char *name = intern_text(&p->names, c->tensor);
    return name == NULL || name[0] == '\0' ? NULL : name;
}

// ---- who holds it ---------------------------------------------------------------------------------------------

typedef struct largest {
    const heap_chunk *chunk[LARGEST]; // the largest first
    uint32_t count, of;
} largest;

static void take(largest *l, const heap_chunk *c)
{
    uint32_t at = l->count < LARGEST ? l->count++ : LARGEST;
    for (; at > 0 && l->chunk[at - 1]->requested_bytes < c->requested_bytes; at--) {
        if (at < LARGEST) {
            l->chunk[at] = l->chunk[at - 1];
        }
    }
    if (at < LARGEST) {
        l->chunk[at] = c;
    }
    l->of++;
}

static void show_largest(const heap_snapshot *p, heap_namer name, const void *context, hr_report_oom *oom)
{
    char line[sizeof oom->evidence[0].line] = "";
    largest l = {.count = 0};
    size_t used = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        if (p->chunks.data[k].in_use && !p->chunks.data[k].pending) {
            take(&l, &p->chunks.data[k]);
        }
    }
    for (uint32_t k = 0; k < l.count; k++) {
        const char *own = name(context, l.chunk[k]);
        char part[NAME_SHOWN + HR_BYTES_TEXT_MAX + 8];
        const int length = snprintf(part, sizeof part, "%s%.*s %s", k == 0 ? "" : ", ", NAME_SHOWN,
                                    own == NULL ? "a block" : own, human(l.chunk[k]->requested_bytes).text);
        if (length < 0 ||
            used + (size_t)length + sizeof "the largest of 4294967295 in use: " >= sizeof line) {
            break;
        }
        memcpy(line + used, part, (size_t)length + 1);
        used += (size_t)length;
    }
    if (used > 0) {
        diagnose_add(oom, "the largest of %" PRIu32 " in use: %s", l.of, line);
    }
}

// ---- what pins it ---------------------------------------------------------------------------------------------

static const char *say_pin(const heap_snapshot *p, const heap_pin *pin, heap_namer name, const void *context,
                           char out[NAME_SHOWN + HR_BYTES_TEXT_MAX + 8])
{
    if (pin->chunk == HR_NO_ID) {
        return "an end of its region";
    }
    const heap_chunk *c = &p->chunks.data[pin->chunk];
    const char *own = name(context, c);
    (void)snprintf(out, NAME_SHOWN + HR_BYTES_TEXT_MAX + 8, "%.*s (%s)", NAME_SHOWN,
                   own == NULL ? "a block" : own, human(c->size_bytes).text);
    return out;
}

static void show_hole(const heap_snapshot *p, const heap_hole *hole, heap_namer name, const void *context,
                      hr_report_oom *oom)
{
    char below[NAME_SHOWN + HR_BYTES_TEXT_MAX + 8], above[NAME_SHOWN + HR_BYTES_TEXT_MAX + 8];
    const heap_pin *better =
        hole->below.joined_bytes > hole->above.joined_bytes ? &hole->below : &hole->above;
    const char *words[] = {say_pin(p, &hole->below, name, context, below),
                           say_pin(p, &hole->above, name, context, above)};
    char joined[HR_BYTES_TEXT_MAX + 24] = "";
    if (better->joined_bytes > hole->bytes) {
        (void)snprintf(joined, sizeof joined, "; without the %s %s",
                       better == &hole->below ? "first" : "second", human(better->joined_bytes).text);
    }
    diagnose_add(oom, "%s free between %s and %s%s", human(hole->bytes).text, words[0], words[1], joined);
}

void diagnose_heap(const heap_snapshot *p, heap_namer name, const void *context, hr_report_oom *oom)
{
    heap_holes holes;
    show_largest(p, name, context, oom);
    if (oom->free_bytes < oom->requested_bytes || heap_holes_of(p, &holes, NULL) != HR_OK) {
        return;
    }
    for (uint32_t k = 0; k < holes.list.count && k < HOLES; k++) {
        show_hole(p, &holes.list.data[k], name, context, oom);
    }
    heap_holes_deinit(&holes);
}
