// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"
#include "insight/diagnose_heap.h"

// ---- causes of one heap ---------------------------------------------------------------------------------------

// Of a request that would fit if everything free were one piece, or that would not.
static hr_oom_cause cause_of_room(const heap_room *room)
{
    if (room->free_bytes < room->needed_bytes) {
        return room->free_bytes + room->waste_bytes < room->needed_bytes ? HR_OOM_CAPACITY : HR_OOM_ROUNDING;
    }
    if (room->elsewhere_bytes >= room->needed_bytes) {
        return HR_OOM_OTHER_STREAM;
    }
    return room->ungrown_bytes >= room->needed_bytes ? HR_OOM_ROUNDING : HR_OOM_FRAGMENTATION;
}

// There was room to grow, but not for what the allocator takes at once.
static bool is_step_too_large(const heap_room *room)
{
    return room->any && room->free_bytes >= room->needed_bytes && room->ungrown_bytes >= room->needed_bytes;
}

// "; conv/out, 1.00 MiB, stands between 6.10 MiB"; "" where nothing could go, or so much that it is no news.
static void say_window(const heap_window *w, const char *in_the_way, char *out, size_t size)
{
    out[0] = '\0';
    if (!w->found || w->used_chunks == 0 || w->used_bytes > w->bytes / 2) {
        return;
    }
    if (w->used_chunks == 1) {
        (void)snprintf(out, size, "; %s, %s, stands between %s",
                       in_the_way == NULL ? "one chunk" : in_the_way, human(w->used_bytes).text,
                       human(w->bytes - w->used_bytes).text);
    } else {
        (void)snprintf(out, size, "; at least %" PRIu32 " tensors, %s, stand between %s%s%s", w->used_chunks,
                       human(w->used_bytes).text, human(w->bytes - w->used_bytes).text,
                       in_the_way == NULL ? "" : ", the largest ", in_the_way == NULL ? "" : in_the_way);
    }
}

typedef struct refused {
    const char *tensor;
    uint64_t requested_bytes, free_bytes, largest_bytes;
} refused;

static void say_fragmentation(const refused *r, const heap_room *room, const char *in_the_way, char *out,
                              size_t size)
{
    char window[192] = "";
    if (room->any) {
        say_window(&room->window, in_the_way, window, sizeof window);
    }
    (void)snprintf(out, size,
                   "fragmentation: %s are free, but the largest piece is %s and %s needs %s in one%s",
                   human(r->free_bytes).text, human(r->largest_bytes).text, r->tensor,
                   human(r->requested_bytes).text, window);
}

static void say_other_stream(const refused *r, const heap_room *room, char *out, size_t size)
{
    (void)snprintf(
        out, size,
        "other_stream: %s needs %s in one piece and has %s; a piece of %s that nothing uses belongs to "
        "stream %" PRIu32 " or waits for it",
        r->tensor, human(r->requested_bytes).text, human(r->largest_bytes).text,
        human(room->elsewhere_bytes).text, room->elsewhere_stream);
}

// PyTorch takes 20 MiB for a block of 2, and maps more than it says that it asked for. Larger holes may be its other
// pool's, or another stream's.
static void say_step(const refused *r, const heap_room *room, char *out, size_t size)
{
    byte_words taken = human(room->driver_bytes);
    char hole[96] = "no hole is one that it may use";
    if (room->hole_bytes > 0) {
        (void)snprintf(hole, sizeof hole, "the largest hole that it may use is %s",
                       human(room->hole_bytes).text);
    }
    (void)snprintf(
        out, size,
        "rounding: %s needs %s, %s, and of the %s left to take from the device %s at once would be too much",
        r->tensor, human(r->requested_bytes).text, hole, human(room->ungrown_bytes).text,
        room->driver_bytes > room->ungrown_bytes ? taken.text : "what it takes");
}

static void say_rounding(const refused *r, const heap_room *room, uint64_t waste_bytes, char *out,
                         size_t size)
{
    if (is_step_too_large(room)) {
        say_step(r, room, out, size);
        return;
    }
    (void)snprintf(out, size,
                   "rounding: %s needs %s and would fit, but %s inside handed-out chunks are waste",
                   r->tensor, human(r->requested_bytes).text, human(waste_bytes).text);
}

// ---- a step's ------------------------------------------------------------------------------------------------

static hr_category largest_category(const hr_report_oom *oom)
{
    hr_category largest = HR_CATEGORY_WEIGHTS;
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        if (oom->by_category[k] > oom->by_category[largest]) {
            largest = (hr_category)k;
        }
    }
    return largest;
}

// " (58.50 MiB would hold it)", exact to the byte; "" where none was found.
static void say_limit(const step_needs *needs, char *out, size_t size)
{
    byte_words exact = human(needs->limit_bytes);
    uint64_t read_back = 0;
    out[0] = '\0';
    if (!hr_bytes_parse(exact.text, &read_back) || read_back != needs->limit_bytes) {
        (void)hr_bytes_exact(needs->limit_bytes, exact.text);
    }
    if (needs->limit_bytes > 0) {
        (void)snprintf(out, size, " (%s would hold it)", exact.text);
    }
}

static void say_capacity(const step_needs *needs, hr_report_oom *oom)
{
    char enough[64];
    const hr_category largest = largest_category(oom);
    const bool told = oom->by_category[largest] > 0; // a recorded step does not say what its blocks are for
    say_limit(needs, enough, sizeof enough);
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "capacity: the step asks for %s at its peak, the limit is %s%s; when %s was asked for, %s held %s",
        human(needs->asked_bytes).text, human(oom->limit_bytes).text, enough, oom->tensor,
        told ? hr_category_name(largest) : "others",
        human(told ? oom->by_category[largest] : oom->in_use_bytes).text);
}

static void say_own_limit(const step_needs *needs, hr_report_oom *oom)
{
    char enough[64];
    say_limit(needs, enough, sizeof enough);
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "limit: the step asks for %s at its peak%s, %s leaves %s; without it there would be %s",
                   human(needs->asked_bytes).text, enough, needs->limit_key, human(oom->limit_bytes).text,
                   human(needs->without_bytes).text);
}

// What earlier steps retain, with the waste in it.
static uint64_t retained_of(const heap_room *room, const hr_report_oom *oom)
{
    const uint64_t own_bytes = oom->by_category[HR_CATEGORY_RETAINED];
    return room->retained.held_bytes > own_bytes ? room->retained.held_bytes : own_bytes;
}

static void say_leak(const step_needs *needs, const heap_room *room, hr_report_oom *oom)
{
    if (oom->free_bytes >= oom->requested_bytes) {
        (void)snprintf(
            oom->sentence, sizeof oom->sentence,
            "leak: %s are free, but the largest piece is %s and %s needs %s in one; without the %s that "
            "earlier steps retain there would be a piece of %s",
            human(oom->free_bytes).text, human(oom->largest_free_bytes).text, oom->tensor,
            human(oom->requested_bytes).text, human(retained_of(room, oom)).text,
            human(room->retained.hole_bytes).text);
        return;
    }
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "leak: one step asks for %s and would fit into %s, but %s are retained by the steps so far "
        "and never freed; there was no room for %s",
        human(needs->asked_bytes).text, human(oom->limit_bytes).text, human(retained_of(room, oom)).text,
        oom->tensor);
}

// Bytes are short: where one of both causes is enough, the larger is. What is retained holds its own waste too.
static hr_oom_cause cause_of_shortage(const step_needs *needs, const heap_room *room,
                                      const hr_report_oom *oom)
{
    const uint64_t within_bytes = room->retained.waste_bytes;
    const uint64_t waste_bytes = needs->waste_bytes > within_bytes ? needs->waste_bytes - within_bytes : 0;
    return retained_of(room, oom) > waste_bytes ? HR_OOM_LEAK
           : waste_bytes > 0                    ? HR_OOM_ROUNDING
                                                : HR_OOM_CAPACITY;
}

static bool fits_without_ahead(const step_needs *needs, const hr_report_oom *oom)
{
    return needs->ahead_bytes > 0 && needs->limit_bytes - oom->limit_bytes <= needs->ahead_bytes;
}

static void say_ahead(const step_needs *needs, hr_report_oom *oom)
{
    char enough[64];
    say_limit(needs, enough, sizeof enough);
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "pipeline: the step asks for %s at its peak%s, the limit is %s; %s holds %s of batches "
                   "ahead, and without them it would fit",
                   human(needs->asked_bytes).text, enough, human(oom->limit_bytes).text, needs->ahead_key,
                   human(needs->ahead_bytes).text);
}

// The step is known: what it asks for in all decides first.
static hr_oom_cause cause_of(const step_needs *needs, const heap_room *room, const hr_report_oom *oom)
{
    if (needs->asked_bytes > oom->limit_bytes && needs->limit_bytes > 0 && fits_without_ahead(needs, oom)) {
        return HR_OOM_PIPELINE;
    }
    if (needs->asked_bytes > oom->limit_bytes) {
        return needs->limit_key != NULL ? HR_OOM_LIMIT : HR_OOM_CAPACITY;
    }
    if (oom->free_bytes < oom->requested_bytes) {
        return cause_of_shortage(needs, room, oom);
    }
    if (oom->by_category[HR_CATEGORY_RETAINED] > 0 && room->any &&
        room->retained.hole_bytes >= room->needed_bytes) {
        return HR_OOM_LEAK;
    }
    hr_oom_cause cause = room->any ? cause_of_room(room) : HR_OOM_FRAGMENTATION;
    return cause == HR_OOM_CAPACITY ? HR_OOM_FRAGMENTATION : cause;
}

static uint64_t needed_of(const step_needs *needs)
{
    return needs->limit_bytes > 0 ? needs->limit_bytes : HR_NONE;
}

void diagnose_oom(const step_needs *needs, const heap_room *room, const char *in_the_way, hr_report_oom *oom)
{
    const refused r = {oom->tensor, oom->requested_bytes, oom->free_bytes, oom->largest_free_bytes};
    const uint64_t short_bytes =
        needs->asked_bytes > oom->limit_bytes ? needs->asked_bytes - oom->limit_bytes : 0;
    oom->needed_bytes = needed_of(needs);
    if (needs->shown != NULL && diagnose_evidence(needs->shown, room, short_bytes, oom)) {
        return;
    }
    oom->cause = cause_of(needs, room, oom);
    if (oom->cause == HR_OOM_LEAK && needs->shown == NULL) {
        oom->needed_bytes = HR_NONE; // what holds a step is filled later, too
    }
    if (oom->cause == HR_OOM_PIPELINE) {
        say_ahead(needs, oom);
    } else if (oom->cause == HR_OOM_FRAGMENTATION) {
        say_fragmentation(&r, room, in_the_way, oom->sentence, sizeof oom->sentence);
    } else if (oom->cause == HR_OOM_OTHER_STREAM) {
        say_other_stream(&r, room, oom->sentence, sizeof oom->sentence);
    } else if (oom->cause == HR_OOM_LIMIT) {
        say_own_limit(needs, oom);
    } else if (oom->cause == HR_OOM_LEAK) {
        say_leak(needs, room, oom);
    } else if (oom->cause == HR_OOM_ROUNDING) {
        say_rounding(&r, room, needs->waste_bytes, oom->sentence, sizeof oom->sentence);
    } else {
        say_capacity(needs, oom);
    }
}

void diagnose_outside(uint64_t context_bytes, uint64_t others_bytes, hr_report_oom *oom)
{
    oom->needed_bytes = HR_NONE;
    oom->cause = HR_OOM_OUTSIDE;
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "outside: %s needs %s, the limit would allow it, and the card has no more to give: the pool "
        "holds %s of it, our context and libraries %s, other processes %s",
        oom->tensor, human(oom->requested_bytes).text, human(oom->pool_bytes).text, human(context_bytes).text,
        human(others_bytes).text);
}

void diagnose_block(const step_needs *needs, hr_report_oom *oom)
{
    oom->needed_bytes = needed_of(needs);
    if (needs->asked_bytes > oom->limit_bytes && needs->limit_key != NULL) {
        oom->cause = HR_OOM_LIMIT;
        say_own_limit(needs, oom);
        return;
    }
    oom->cause = needs->asked_bytes > oom->limit_bytes ? HR_OOM_CAPACITY : HR_OOM_FRAGMENTATION;
    (void)snprintf(oom->sentence, sizeof oom->sentence,
                   "%s: the step asks for %s at its peak, laid out in one block %s; the limit is %s",
                   hr_oom_cause_name(oom->cause), human(needs->asked_bytes).text,
                   human(oom->requested_bytes).text, human(oom->limit_bytes).text);
}

// ---- a snapshot's ----------------------------------------------------------------------------------------------

// The name of the largest chunk in use within the window.
static const char *name_in_window(const heap_snapshot *p, const heap_window *w)
{
    uint32_t tensor = HR_NO_ID;
    uint64_t largest_bytes = 0;
    for (uint32_t k = 0; k < w->count; k++) {
        const heap_chunk *c = &p->chunks.data[w->first + k];
        if (c->in_use && c->size_bytes > largest_bytes) {
            largest_bytes = c->size_bytes;
            tensor = c->tensor;
        }
    }
    return intern_text(&p->names, tensor);
}

static void say_room(const heap_snapshot *p, const heap_room *room, hr_report_oom *oom)
{
    const refused r = {oom->tensor, oom->requested_bytes, room->free_bytes, room->largest_bytes};
    char *sentence = oom->sentence;
    const size_t size = sizeof oom->sentence;
    oom->cause = cause_of_room(room);
    if (oom->cause == HR_OOM_FRAGMENTATION) {
        say_fragmentation(&r, room, name_in_window(p, &room->window), sentence, size);
    } else if (oom->cause == HR_OOM_OTHER_STREAM) {
        say_other_stream(&r, room, sentence, size);
    } else if (oom->cause == HR_OOM_ROUNDING) {
        say_rounding(&r, room, room->waste_bytes, sentence, size);
    } else {
        (void)snprintf(sentence, size, "capacity: %s needs %s, and %s of %s are free", r.tensor,
                       human(r.requested_bytes).text, human(room->free_bytes).text,
                       human(room->limit_bytes).text);
    }
}

void diagnose_record(const heap_snapshot *p, const oom_evidence *shown, hr_report_oom *oom)
{
    const heap_room room = heap_room_of(p, NULL, NULL);
    const char *name = intern_text(&p->names, p->refusal.tensor);
    *oom = (hr_report_oom){.instruction = HR_NO_ID, .needed_bytes = HR_NONE};
    if (!room.any) {
        return;
    }
    oom->requested_bytes = p->refusal.requested_bytes;
    oom->free_bytes = room.free_bytes;
    oom->largest_free_bytes = room.largest_bytes;
    oom->in_use_bytes = p->counters.in_use_bytes;
    oom->pool_bytes = p->counters.pool_bytes;
    oom->limit_bytes = room.limit_bytes;
    oom->hole_count = room.hole_count;
    memcpy(oom->hole_bytes, room.holes, sizeof oom->hole_bytes);
    (void)text_copy(oom->tensor, sizeof oom->tensor, name == NULL ? "the request" : name);
    (void)text_copy(oom->instruction_name, sizeof oom->instruction_name, oom->tensor);
    if (!diagnose_driver(p, &room, oom) && !diagnose_evidence(shown, &room, 0, oom)) {
        say_room(p, &room, oom);
    }
    diagnose_lines(shown, &room, oom);
    diagnose_heap(p, heap_own_name, p, oom);
}
