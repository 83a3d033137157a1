// SPDX-License-Identifier: Apache-2.0
// PyTorch memory snapshots: files of CPython's pickle, random histories of which a ring kept the end, what is wrong in
// a file, and files of ours read again. Runs from the top of the source tree.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "formats/exporter.h"
#include "formats/formats.h"
#include "formats/pickle_write.h"
#include "formats/torch_snapshot.h"
#include "formats/torch_snapshot_write.h"
#include "unit/trace_checks.h"

#define CORPUS       "tests/fuzz/corpus/torch_snapshot/"
#define COUNT(array) (sizeof(array) / sizeof *(array))

static trace read_file(const char *path)
{
    trace t;
    hr_err err = {0};
    hr_status status = trace_read(path, &t, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(t.format, "pytorch_snapshot");
    ck_assert_msg(trace_check(&t, &err) == HR_OK, "%s", err.sentence);
    return t;
}

// ---- files of CPython -----------------------------------------------------------------------------------------

typedef struct expected {
    uint8_t kind;
    uint64_t bytes;
    uint32_t block, row;
    const char *name;
    uint64_t time_ns;
    uint8_t device;
} expected;

static void check_events(const trace *t, const expected *wanted, size_t count)
{
    ck_assert_uint_eq(t->events.count, count);
    for (uint32_t k = 0; k < count; k++) {
        const trace_event *e = &t->events.data[k];
        const char *name = intern_text(&t->names, e->name);
        bool same = e->kind == wanted[k].kind && e->bytes == wanted[k].bytes && e->block == wanted[k].block &&
                    e->row == wanted[k].row && e->time_ns == wanted[k].time_ns &&
                    e->device == wanted[k].device;
        ck_assert_msg(same, "event %u", k);
        ck_assert_str_eq(name == NULL ? "" : name, wanted[k].name == NULL ? "" : wanted[k].name);
    }
}

static const char *const protocols[] = {"2", "4", "5"};

static trace read_sample(const char *name, int protocol)
{
    char path[128];
    snprintf(path, sizeof path, CORPUS "%s_%s.pickle", name, protocols[protocol]);
    return read_file(path);
}

START_TEST(a_refusal_behind_everything_is_the_heaps)
{
    trace t = read_sample("plain", _i);
    const heap_refusal *r = &t.heaps[0]->refusal;
    ck_assert(r->any && r->recorded && r->told);
    ck_assert_uint_eq(r->requested_bytes, 99);
    ck_assert_uint_eq(r->rounded_bytes, 512);
    ck_assert_uint_eq(r->device_free_bytes, 7);
    trace_deinit(&t);
}
END_TEST

START_TEST(entries_become_events)
{
    static const expected events[] = {
        {TRACE_GROW, 4096, HR_NO_ID, 0, NULL, 0, 0},
        {TRACE_ALLOC, 500, 0, 1, "model.py:31 forward", 1000, 0},
        {TRACE_ALLOC, 900, 1, 2, "step 1", 2000, 0},
        {TRACE_RETIRE, 500, 0, 3, NULL, 3000, 0},
        {TRACE_FREE, 500, 0, 4, NULL, 4000, 0},
        {TRACE_REFUSED, 99, HR_NO_ID, 6, NULL, 6000, 0}, // row 5 is a mark of PyTorch's own
    };
    trace t = read_sample("plain", _i);
    check_events(&t, events, COUNT(events));
    ck_assert_uint_eq(t.rows, 7);
    ck_assert_uint_eq(t.block_count, 2);
    const heap_snapshot *heap = t.heaps[0];
    ck_assert_str_eq(heap->source, "cuda:0");
    ck_assert_uint_eq(heap->chunks.count, 3);
    const heap_chunk *c = &heap->chunks.data[1];
    ck_assert(c->address == 0x1200 && c->size_bytes == 1024 && c->requested_bytes == 900 && c->in_use &&
              !c->pending);
    ck_assert(c->region_address == 0x1000 && c->region_bytes == 4096 && c->region_kind == HEAP_REGION_SMALL);
    ck_assert_str_eq(intern_text(&heap->names, c->tensor), "optim.py:7 step");
    ck_assert(!heap->chunks.data[0].in_use && heap->chunks.data[0].tensor == HR_NO_ID);
    ck_assert_uint_eq(heap->counters.pool_bytes, 4096);
    ck_assert_uint_eq(heap->counters.in_use_bytes, 1024);
    ck_assert_uint_eq(heap->counters.requested_bytes, 900);
    ck_assert_uint_eq(heap->counters.largest_free_bytes, 2560);
    trace_deinit(&t);
}
END_TEST

// Devices by time, rows by the file; what was forgotten comes first.
START_TEST(a_ring_of_two_devices_has_a_past)
{
    static const expected events[] = {
        {TRACE_ALLOC, 700, 0, TRACE_BEFORE, NULL, 0, 0},
        {TRACE_ALLOC, 9, 1, TRACE_BEFORE, NULL, 0, 0},
        {TRACE_ALLOC, 300, 2, TRACE_BEFORE, "model.py:31 forward", 0, 0},
        {TRACE_FREE, 700, 0, 0, NULL, 0, 0},
        {TRACE_ALLOC, 800, 0, 1, NULL, 1000, 0},
        {TRACE_ALLOC, 10, 3, 3, NULL, 2000, 1},
        {TRACE_GROW, 2048, HR_NO_ID, 4, NULL, 3000, 1},
        {TRACE_FREE, 10, 3, 5, NULL, 3000, 1}, // something else was allocated at its address
        {TRACE_ALLOC, 20, 3, 5, NULL, 3000, 1},
        {TRACE_RETIRE, 9, 1, 2, NULL, 4000, 0},
    };
    trace t = read_sample("ring", _i);
    check_events(&t, events, COUNT(events));
    ck_assert_uint_eq(t.device_count, 2);
    ck_assert_uint_eq(t.reused, 1);
    ck_assert_uint_eq(t.lost_frees, 0);
    ck_assert_uint_eq(t.events.data[2].stream, 1); // the second one that the file names
    ck_assert(t.heaps[0]->chunks.data[1].pending && t.heaps[0]->chunks.data[1].in_use);
    ck_assert_uint_eq(t.heaps[0]->chunks.data[0].region_kind, HEAP_REGION_LARGE);
    ck_assert_uint_eq(t.heaps[1]->chunks.data[0].region_kind, HEAP_REGION_EXPANDABLE);
    ck_assert_str_eq(t.heaps[1]->source, "cuda:1");
    trace_deinit(&t);
}
END_TEST

// Segments alone, blocks without addresses, their sizes and frames in a history.
START_TEST(the_form_of_1_13_is_read)
{
    trace t = read_sample("legacy", _i);
    static const expected events[] = {{TRACE_ALLOC, 300, 0, TRACE_BEFORE, "model.py:31 forward", 0, 0}};
    check_events(&t, events, COUNT(events));
    ck_assert_uint_eq(t.heaps[0]->chunks.count, 2);
    ck_assert_uint_eq(t.heaps[0]->chunks.data[0].requested_bytes, 300);
    ck_assert_uint_eq(t.heaps[0]->chunks.data[1].address, 0x1200);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_pickle_of_a_writer_in_c_is_read)
{
    trace t = read_file(CORPUS "by_hand.pickle");
    ck_assert_uint_eq(t.events.count, 59);
    ck_assert_uint_eq(t.block_count, 59);
    trace_deinit(&t);
}
END_TEST

// ---- random histories -----------------------------------------------------------------------------------------

enum { DEVICES = 3, SLOTS = 24, SLOT_BYTES = 1024, EVENTS = 600, FORMS = 60 };

#define SEGMENT_ADDRESS UINT64_C(0x7f0000000000) // of every device

typedef struct slot {
    uint64_t bytes; // 0: free
    bool pending;
} slot;

typedef struct happened {
    uint8_t kind;
    uint32_t slot;
    uint64_t bytes, time_us;
} happened;

typedef struct history {
    happened events[EVENTS];
    uint32_t first, count; // the ring kept events[first .. count)
    slot begin[SLOTS];     // at the first that was kept
    slot end[SLOTS];
} history;

static uint64_t seed;

static void live_on(history *h, uint64_t *time_us)
{
    slot now[SLOTS] = {0};
    *h = (history){.count = (uint32_t)below(&seed, EVENTS)};
    h->first = h->count == 0 ? 0 : (uint32_t)below(&seed, h->count + 1);
    for (uint32_t k = 0; k < h->count; k++) {
        if (k == h->first) {
            memcpy(h->begin, now, sizeof now);
        }
        uint32_t at = (uint32_t)below(&seed, SLOTS);
        slot *s = &now[at];
        happened *e = &h->events[k];
        *e = (happened){.slot = at, .bytes = s->bytes, .time_us = *time_us += below(&seed, 3)};
        if (s->bytes == 0) {
            e->kind = TRACE_ALLOC;
            e->bytes = s->bytes = 1 + below(&seed, SLOT_BYTES);
        } else {
            e->kind = s->pending ? TRACE_FREE : TRACE_RETIRE;
            *s = s->pending ? (slot){0} : (slot){s->bytes, true};
        }
    }
    if (h->first == h->count) {
        memcpy(h->begin, now, sizeof now);
    }
    memcpy(h->end, now, sizeof now);
}

static void put_whole(pickle_out *o, const char *key, uint64_t value)
{
    pickle_word(o, key);
    pickle_whole(o, (int64_t)value);
}

static void put_word(pickle_out *o, const char *key, const char *word)
{
    pickle_word(o, key);
    pickle_word(o, word);
}

static void put_trace(pickle_out *o, const history *h)
{
    pickle_open(o, '[');
    for (uint32_t k = h->first; k < h->count; k++) {
        const happened *e = &h->events[k];
        pickle_item(o, k - h->first);
        pickle_open(o, '{');
        put_word(o, "action",
                 e->kind == TRACE_ALLOC    ? "alloc"
                 : e->kind == TRACE_RETIRE ? "free_requested"
                                           : "free_completed");
        put_whole(o, "addr", SEGMENT_ADDRESS + SLOT_BYTES * e->slot);
        put_whole(o, "size", e->bytes);
        put_whole(o, "time_us", e->time_us);
        pickle_close(o, '}');
    }
    pickle_close(o, ']');
}

static void put_segment(pickle_out *o, const history *h, uint32_t device)
{
    pickle_open(o, '{');
    put_whole(o, "device", device);
    put_whole(o, "address", SEGMENT_ADDRESS);
    put_whole(o, "total_size", SLOTS * SLOT_BYTES);
    pickle_word(o, "blocks");
    pickle_open(o, '[');
    for (uint32_t k = 0; k < SLOTS; k++) {
        const slot *s = &h->end[k];
        pickle_item(o, k);
        pickle_open(o, '{');
        put_whole(o, "size", SLOT_BYTES);
        put_whole(o, "requested_size", s->bytes);
        put_word(o, "state",
                 s->bytes == 0 ? "inactive"
                 : s->pending  ? "active_pending_free"
                               : "active_allocated");
        pickle_close(o, '}');
    }
    pickle_close(o, ']');
    pickle_close(o, '}');
}

static void put_snapshot(pickle_out *o, const history *histories, uint32_t devices, bool segments_first)
{
    pickle_begin(o);
    pickle_open(o, '{');
    for (int part = 0; part < 2; part++) {
        bool segments = (part == 0) == segments_first;
        pickle_word(o, segments ? "segments" : "device_traces");
        pickle_open(o, '[');
        for (uint32_t d = 0; d < devices; d++) {
            if (segments) {
                put_segment(o, &histories[d], d);
            } else {
                put_trace(o, &histories[d]);
            }
        }
        pickle_close(o, ']');
    }
    pickle_close(o, '}');
    pickle_end(o);
}

// What lived when the ring began, by device and address, is allocated ahead of everything.
static uint32_t check_past(const trace *t, const history *histories, uint32_t devices,
                           uint32_t blocks[DEVICES][SLOTS])
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < devices; d++) {
        for (uint32_t k = 0; k < SLOTS; k++) {
            if (histories[d].begin[k].bytes == 0) {
                continue;
            }
            ck_assert_uint_lt(at, t->events.count);
            const trace_event *e = &t->events.data[at++];
            ck_assert(e->kind == TRACE_ALLOC && e->row == TRACE_BEFORE && e->device == d && e->time_ns == 0);
            ck_assert_uint_eq(e->bytes, histories[d].begin[k].bytes);
            blocks[d][k] = e->block;
        }
    }
    return at;
}

// The device whose next entry is due: the earliest, of equal ones the first.
static uint32_t due(const history *histories, uint32_t devices, const uint32_t *next)
{
    uint32_t found = devices;
    for (uint32_t d = 0; d < devices; d++) {
        bool left = next[d] < histories[d].count;
        if (left && (found == devices ||
                     histories[d].events[next[d]].time_us < histories[found].events[next[found]].time_us)) {
            found = d;
        }
    }
    return found;
}

static void check_history(const trace *t, const history *histories, uint32_t devices)
{
    uint32_t blocks[DEVICES][SLOTS] = {0}, next[DEVICES] = {0}, rows[DEVICES] = {0};
    uint32_t at = check_past(t, histories, devices, blocks);
    for (uint32_t d = 0; d < devices; d++) {
        next[d] = histories[d].first;
        rows[d] = d == 0 ? 0 : rows[d - 1] + histories[d - 1].count - histories[d - 1].first;
    }
    uint64_t first_us = UINT64_MAX;
    for (uint32_t d; (d = due(histories, devices, next)) < devices; at++) {
        const happened *h = &histories[d].events[next[d]++];
        ck_assert_uint_lt(at, t->events.count);
        const trace_event *e = &t->events.data[at];
        first_us = first_us == UINT64_MAX ? h->time_us : first_us;
        MUST(e->kind == h->kind && e->bytes == h->bytes && e->device == d && e->row == rows[d]++);
        MUST(e->time_ns == 1000 * (h->time_us - first_us));
        if (h->kind == TRACE_ALLOC) {
            blocks[d][h->slot] = e->block;
        }
        MUST(e->block == blocks[d][h->slot]);
    }
    ck_assert_uint_eq(at, t->events.count);
    ck_assert_uint_eq(t->lost_frees, 0);
    ck_assert_uint_eq(t->reused, 0);
}

START_TEST(a_history_is_found_whole_in_what_a_ring_has_kept)
{
    static history histories[DEVICES];
    for (int form = 0; form < FORMS; form++) {
        uint32_t devices = 1 + (uint32_t)form % DEVICES;
        seed = 100 + (uint64_t)form;
        for (uint32_t d = 0; d < devices; d++) {
            uint64_t time_us = 1000000;
            live_on(&histories[d], &time_us);
        }
        text bytes = {0};
        pickle_out o = {.to = &bytes};
        put_snapshot(&o, histories, devices, form % 2 == 0);
        pickle_out_deinit(&o);
        trace t;
        hr_err err = {0};
        ck_assert_msg(read_bytes(bytes.data, bytes.length, &t, &err) == HR_OK, "%s", err.sentence);
        ck_assert_msg(trace_check(&t, &err) == HR_OK, "%s", err.sentence);
        check_history(&t, histories, devices);
        trace_deinit(&t);
        text_deinit(&bytes);
    }
}
END_TEST

// ---- what is wrong --------------------------------------------------------------------------------------------

// JSON-like: one digit or word a value, so that a wrong one is short to write.
static void put_value(pickle_out *o, const char **at)
{
    static char word[64];
    const char c = **at;
    if (c == '{' || c == '[') {
        pickle_open(o, c);
        for (++*at; **at != '}' && **at != ']';) {
            if (**at == ',' || **at == ':' || **at == ' ') {
                ++*at;
            } else {
                put_value(o, at);
            }
        }
        pickle_close(o, **at);
        ++*at;
        return;
    }
    size_t length = strcspn(*at, ",:]} ");
    snprintf(word, sizeof word, "%.*s", (int)length, *at);
    *at += length;
    if (strcmp(word, "True") == 0) {
        pickle_truth(o, true);
    } else if (word[0] == '-' || (word[0] >= '0' && word[0] <= '9')) {
        pickle_whole(o, strtoll(word, NULL, 0));
    } else {
        pickle_word(o, word);
    }
}

static text pickle_of(const char *value)
{
    text bytes = {0};
    pickle_out o = {.to = &bytes};
    pickle_begin(&o);
    put_value(&o, &value);
    pickle_end(&o);
    pickle_out_deinit(&o);
    return bytes;
}

static const struct {
    const char *value, *sentence;
} wrong[] = {
    {"{a:1}", "needed a memory snapshot with 'segments' or 'device_traces', had neither"},
    {"[]", "needed a memory snapshot with 'segments' or 'device_traces', had neither"},
    {"5", "needed a memory snapshot with 'segments' or 'device_traces', had neither"},
    {"{segments:5}", "needed a list for 'segments', had a whole number"},
    {"{segments:{}}", "needed a list for 'segments', had a dictionary"},
    {"{device_traces:[[{action:5}]]}", "needed a text for 'action', had a whole number"},
    {"{device_traces:[[{action:alloc,addr:x}]]}", "needed a whole number for 'addr', had a text"},
    {"{device_traces:[{action:alloc}]}", "'device_traces' is a list of something else"},
    {"{segments:[[]]}", "'segments' is a list of something else"},
    {"{device_traces:[[{action:alloc,addr:1,size:-1}]]}", "needed at most 2^50 bytes for 'size', had -1"},
    {"{device_traces:[[{action:alloc,addr:1,size:1,time_us:-5}]]}",
     "needed microseconds below 2^53 for 'time_us', had -5"},
    {"{device_traces:[[{action:alloc},{total_size:1}]]}", "needed a list of one kind of thing, had several"},
    {"{segments:[{device:64,total_size:1}]}", "needed a device below 64, had 64"},
    {"{segments:[{device:-1,total_size:1}]}", "needed a device below 64, had -1"},
    {"{segments:[{address:0x100,total_size:8}]}", "the segment at 0x100 needed blocks of 8 bytes, had 0"},
    {"{segments:[{address:0x100,total_size:8,blocks:[{size:4,state:inactive}]}]}",
     "the segment at 0x100 needed blocks of 8 bytes, had 4"},
    {"{segments:[{address:0x100,total_size:8,blocks:[{size:9,state:inactive}]}]}",
     "the segment at 0x100 of 8 bytes needed a block at byte 0, had 9 bytes at 0x0"},
    {"{segments:[{address:0x100,total_size:8,blocks:[{address:0x104,size:8,state:inactive}]}]}",
     "the segment at 0x100 of 8 bytes needed a block at byte 0, had 8 bytes at 0x104"},
    {"{segments:[{address:-4,total_size:8,blocks:[{size:8,state:inactive}]}]}",
     "the segment at 0xfffffffffffffffc reaches beyond all addresses"},
    {"{segments:[{address:4,total_size:8,blocks:[{size:8,state:inactive}]},"
     "{address:8,total_size:8,blocks:[{size:8,state:inactive}]}]}",
     "the segments at 0x4 and 0x8 overlap"},
};

START_TEST(what_is_wrong_is_said)
{
    text bytes = pickle_of(wrong[_i].value);
    trace t;
    hr_err err = {0};
    ck_assert_int_eq(read_bytes(bytes.data, bytes.length, &t, &err), HR_READ);
    ck_assert_msg(strstr(err.sentence, wrong[_i].sentence) != NULL, "%s", err.sentence);
    ck_assert_int_eq(strncmp(err.sentence, "file: ", 6), 0);
    text_deinit(&bytes);
}
END_TEST

#define TEXT(length, word) "X" length "\0\0\0" word
#define ENTRY                                                                                                \
    "(" TEXT("\x06", "action") TEXT("\x05", "alloc")                                                         \
        TEXT("\x04", "addr") "K\x01" TEXT("\x04", "size") "K\x01u"

// Python pickles an object that stands in a list twice once, and refers to it: [e, e] and [[e], t, t] with t the first.
START_TEST(an_entry_that_stands_twice_is_refused)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *sentence;
    } cases[] = {
#define CASE(words, sentence) {words, sizeof(words) - 1, sentence}
        CASE("\x80\x02}" TEXT("\x0d", "device_traces") "]](}q\0" ENTRY "h\0"
                                                       "eas.",
             "needed a dictionary of its own"),
        CASE("\x80\x02}" TEXT("\x0d", "device_traces") "](]q\0(}" ENTRY "eh\0"
                                                       "es.",
             "needed a list of its own"),
#undef CASE
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        trace t;
        hr_err err = {0};
        ck_assert_int_eq(read_bytes(cases[k].bytes, cases[k].count, &t, &err), HR_READ);
        ck_assert_msg(strstr(err.sentence, cases[k].sentence) != NULL, "%s", err.sentence);
    }
}
END_TEST

// Keys that are missing, that nobody knows, and shapes that a newer PyTorch may write.
START_TEST(what_is_not_known_is_passed_over)
{
    static const char *const values[] = {
        "{segments:[]}",
        "{device_traces:[]}",
        "{device_traces:[[],[],[]]}",
        "{device_traces:[[{action:never_heard_of},{action:alloc},{action:oom}]]}",
        "{device_traces:[[{}]],segments:[{}]}",
        "{segments:[],more:[[[5]],{a:{b:[{state:x,size:1}]}}],external_annotations:[{name:a,stage:START,time_"
        "us:5}]}",
        "{segments:[{total_size:8,address:0,blocks:[{size:8,state:never_heard_of,frames:[]}],frames:[a,b]}]}",
        "{segments:[{total_size:8,is_expandable:1,blocks:[{size:8,state:inactive,history:[]}]}]}",
        "{segments:[],frames:[{name:a,filename:b,line:1},text,{name:c}]}",
    };
    for (size_t k = 0; k < COUNT(values); k++) {
        text bytes = pickle_of(values[k]);
        trace t;
        hr_err err = {0};
        ck_assert_msg(read_bytes(bytes.data, bytes.length, &t, &err) == HR_OK, "%s: %s", values[k],
                      err.sentence);
        ck_assert_uint_eq(t.events.count, 0);
        trace_deinit(&t);
        text_deinit(&bytes);
    }
}
END_TEST

// A terminal may come to see them, and JSON.
START_TEST(names_are_fit_to_print)
{
    static const struct {
        const char *said, *name;
    } names[] = {
        {"plain", "plain"},
        {"\x1b[31mred\x07", "?[31mred?"},
        {"\xc2\x9b"
         "31m",
         "??31m"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"half\xc3", "half\xef\xbf\xbd"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t k = 0; k < COUNT(names); k++) {
        text bytes = {0};
        const size_t length = strlen(names[k].said);
        pickle_out o = {.to = &bytes};
        pickle_begin(&o);
        const char *value = "{device_traces:[[{action:alloc,addr:1,size:1}]]}";
        put_value(&o, &value);
        bytes.length -= 4; // "ueeu", to put one key more into the entry
        text_append_bytes(&bytes, "\x8c\ruser_metadata\x8c", 16);
        text_append(&bytes, "%c%sueeu.", (int)length, names[k].said);
        pickle_out_deinit(&o);
        trace t;
        hr_err err = {0};
        ck_assert_msg(read_bytes(bytes.data, bytes.length, &t, &err) == HR_OK, "%s", err.sentence);
        ck_assert_str_eq(name_at(&t, 0), names[k].name);
        trace_deinit(&t);
        text_deinit(&bytes);
    }
}
END_TEST

START_TEST(damage_and_short_memory_are_survived)
{
    static const char *const names[] = {"plain_4", "ring_2", "legacy_4"};
    char path[128], *bytes;
    size_t count;
    snprintf(path, sizeof path, CORPUS "%s.pickle", names[_i]);
    ck_assert_int_eq(file_read(path, 1 << 20, &bytes, &count, NULL), HR_OK);
    survives_damage(&trace_format_torch_snapshot, bytes, count);
    survives_short_memory(bytes, count);
    survives_failing_files(bytes, count);
    hr_free(bytes);
}
END_TEST

// ---- files of ours --------------------------------------------------------------------------------------------

enum { TENSORS = 40, STEPS = 4000 };

typedef struct told {
    heap_snapshot heap;
    uint64_t in_use_bytes;
    bool lives[TENSORS];
} told;

static uint64_t place_of(uint32_t tensor)
{
    return SEGMENT_ADDRESS + (uint64_t)tensor * SLOT_BYTES;
}

static uint64_t size_of(uint32_t tensor)
{
    return SLOT_BYTES - 7 * tensor;
}

static void describe(void *context, const hr_event *event, event_context *out)
{
    static char name[32];
    (void)context;
    // one name is no UTF-8
    snprintf(name, sizeof name, event->u.memory.tensor == 3 ? "bad\xff%u" : "layer%u/weights",
             event->u.memory.tensor);
    out->tensor = name;
    out->op = event->instr == HR_NO_ID ? NULL : "matmul";
}

static hr_status draw_heap(void *context, uint8_t device, heap_snapshot *out, hr_err *err)
{
    const told *w = context;
    (void)err;
    snprintf(out->source, sizeof out->source, "caching");
    for (uint32_t k = 0; k < TENSORS; k++) {
        heap_chunk *c = vec_push(&out->chunks);
        ck_assert_ptr_nonnull(c);
        bool lives = w->lives[k] && device == 0;
        *c = (heap_chunk){.address = place_of(k),
                          .size_bytes = SLOT_BYTES,
                          .requested_bytes = lives ? size_of(k) : 0,
                          .region_address = SEGMENT_ADDRESS,
                          .region_bytes = TENSORS * SLOT_BYTES,
                          .tensor = lives ? k : HR_NO_ID,
                          .handle = HR_NO_ID,
                          .region_kind = HEAP_REGION_LARGE,
                          .in_use = lives};
    }
    return HR_OK;
}

static void tell(exporter *e, told *w, hr_event_kind kind, uint32_t tensor, uint64_t time_ns)
{
    bool region = kind == HR_EVENT_GROW;
    hr_event event = {.kind = (uint8_t)kind,
                      .time_ns = time_ns,
                      .u.memory = {.address = region ? SEGMENT_ADDRESS : place_of(tensor),
                                   .requested_bytes = region ? 0 : size_of(tensor),
                                   .allocated_bytes = region ? TENSORS * SLOT_BYTES : SLOT_BYTES,
                                   .tensor = region ? HR_NO_ID : tensor}};
    if (kind == HR_EVENT_ALLOC || kind == HR_EVENT_FREE) {
        w->lives[tensor] = kind == HR_EVENT_ALLOC;
    }
    exporter_sink(e, &event);
}

START_TEST(what_we_write_is_read_again)
{
    static told w;
    char path[] = "/tmp/headroom-snapshot-XXXXXX", file[64];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    unlink(path);
    snprintf(file, sizeof file, "pytorch_snapshot:%s", path);
    event_source source = {.describe = describe, .snapshot = draw_heap, .context = &w, .device_count = 1};
    exporter *e = NULL;
    hr_err err = {0};
    ck_assert_msg(exporter_open(file, &source, &e, &err) == HR_OK, "%s", err.sentence);
    seed = 5;
    w = (told){.in_use_bytes = 0};
    static uint32_t tensors[STEPS];
    tell(e, &w, HR_EVENT_GROW, 0, 0);
    for (uint32_t k = 0; k < STEPS; k++) {
        tensors[k] = (uint32_t)below(&seed, TENSORS);
        tell(e, &w, w.lives[tensors[k]] ? HR_EVENT_FREE : HR_EVENT_ALLOC, tensors[k], 2000 * (uint64_t)k);
    }
    tell(e, &w, HR_EVENT_OOM, 5, 2000 * STEPS);
    ck_assert_msg(exporter_close(e, &err) == HR_OK, "%s", err.sentence);

    trace t = read_file(path);
    bool lives[TENSORS] = {false};
    uint32_t at = 1;
    ck_assert_uint_eq(t.events.data[0].kind, TRACE_GROW);
    ck_assert_uint_eq(t.events.data[0].bytes, TENSORS * SLOT_BYTES);
    for (uint32_t k = 0; k < STEPS; k++) {
        uint32_t n = tensors[k];
        const trace_event *event = &t.events.data[at];
        MUST(event->bytes == size_of(n) && event->time_ns == 2000 * (uint64_t)k);
        MUST(event->kind == (lives[n] ? TRACE_RETIRE : TRACE_ALLOC));
        if (!lives[n]) {
            event_context s;
            describe(NULL, &(hr_event){.u.memory.tensor = n}, &s);
            const char *wanted = n == 3 ? "bad\xef\xbf\xbd"
                                          "3"
                                        : s.tensor;
            MUST(strcmp(intern_text(&t.names, event->name), wanted) == 0);
        }
        MUST(!lives[n] || t.events.data[at + 1].kind == TRACE_FREE);
        at += lives[n] ? 2 : 1;
        lives[n] = !lives[n];
    }
    ck_assert_uint_eq(t.events.data[at].kind, TRACE_REFUSED);
    ck_assert_uint_eq(t.events.count, at + 1);
    ck_assert_uint_eq(t.heaps[0]->chunks.count, TENSORS);
    for (uint32_t k = 0; k < TENSORS; k++) {
        const heap_chunk *c = &t.heaps[0]->chunks.data[k];
        MUST(c->in_use == lives[k] && c->address == place_of(k));
        MUST(c->requested_bytes == (lives[k] ? size_of(k) : 0));
    }
    trace_deinit(&t);

    ck_assert_int_eq(exporter_open(file, &source, &e, NULL), HR_OK); // an older one of ours is replaced
    exporter_abandon(e);
    char *bytes;
    size_t count;
    ck_assert_int_eq(file_read(CORPUS "plain_2.pickle", 1 << 20, &bytes, &count, NULL), HR_OK);
    ck_assert(!trace_writer_torch_snapshot.is_own(bytes, count)); // one of PyTorch's is not
    hr_free(bytes);
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("torch_snapshot");
    tcase_add_loop_test(tests, a_refusal_behind_everything_is_the_heaps, 0, COUNT(protocols));
    tcase_add_loop_test(tests, entries_become_events, 0, COUNT(protocols));
    tcase_add_loop_test(tests, a_ring_of_two_devices_has_a_past, 0, COUNT(protocols));
    tcase_add_loop_test(tests, the_form_of_1_13_is_read, 0, COUNT(protocols));
    tcase_add_test(tests, a_pickle_of_a_writer_in_c_is_read);
    tcase_add_test(tests, a_history_is_found_whole_in_what_a_ring_has_kept);
    tcase_add_loop_test(tests, what_is_wrong_is_said, 0, COUNT(wrong));
    tcase_add_test(tests, an_entry_that_stands_twice_is_refused);
    tcase_add_test(tests, what_is_not_known_is_passed_over);
    tcase_add_test(tests, names_are_fit_to_print);
    tcase_add_loop_test(tests, damage_and_short_memory_are_survived, 0, 3);
    tcase_add_test(tests, what_we_write_is_read_again);
    Suite *suite = suite_create("torch_snapshot");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
