// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_snapshot_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/pickle_write.h"
#include "formats/row_file.h"

// Ours begins with a key that PyTorch's has not.
static const char sign[] = "\x80\x02}(X\x08\x00\x00\x00headroom";

#define NO_STACK UINT32_MAX // an enumerator is an int

enum { NS_PER_US = 1000, DEVICES = 256, GROWS_LOOKED_AT = 64 };

typedef struct entry {
    const char *action;
    uint64_t address, bytes, time_us; // the address of an OOM: free bytes of the device
    uint32_t stream, stack;           // number of the stack, NO_STACK: not known
    uint8_t device;
} entry;

// A stack of one frame: its texts, and where the pickle has it already.
typedef struct stack {
    uint32_t name, file; // in `names`
    uint32_t place;      // NO_STACK: not written yet
} stack;

typedef struct snapshot_writer {
    row_file file;
    const event_source *source;
    pickle_out out;
    intern names, stack_keys;
    VEC(stack) stacks;      // numbered as their keys
    VEC(entry) later;       // of other devices than 0
    uint64_t entries;       // in the list that is open
    uint8_t grows[DEVICES]; // looked at so far
    bool maps[DEVICES];     // the heap grows by pieces that are mapped beside the others
} snapshot_writer;

static void run_short(snapshot_writer *w)
{
    hr_err err;
    hr_status status = HR_FAIL(&err, NOMEM, "snapshot: needed host memory for an entry, had none");
    row_file_fail(&w->file, status, &err);
}

// ---- stacks ---------------------------------------------------------------------------------------------------

static uint32_t number_name(snapshot_writer *w, const char *name)
{
    return intern_add(&w->names, name == NULL ? "" : name, name == NULL ? 0 : strlen(name));
}

// The number of the stack that says tensor and operation.
static uint32_t stack_of(snapshot_writer *w, const char *tensor, const char *op)
{
    if (tensor == NULL && op == NULL) {
        return NO_STACK;
    }
    stack s = {number_name(w, tensor), number_name(w, op), NO_STACK};
    char key[32];
    int length = snprintf(key, sizeof key, "%x %x", s.name, s.file);
    uint32_t number = intern_add(&w->stack_keys, key, (size_t)length);
    if (s.name == INTERN_NONE || s.file == INTERN_NONE || number == INTERN_NONE) {
        run_short(w);
        return NO_STACK;
    }
    if (number == w->stacks.count) {
        stack *added = vec_push(&w->stacks);
        if (added == NULL) {
            run_short(w);
            return NO_STACK;
        }
        *added = s;
    }
    return number;
}

static void put_stack(snapshot_writer *w, uint32_t number)
{
    pickle_out *o = &w->out;
    if (number >= w->stacks.count) {
        pickle_open(o, '[');
        pickle_close(o, ']');
        return;
    }
    stack *s = &w->stacks.data[number];
    if (s->place != NO_STACK) {
        pickle_again(o, s->place);
        return;
    }
    s->place = pickle_open_shared(o);
    pickle_open(o, '{');
    pickle_word(o, "name");
    pickle_word(o, intern_text(&w->names, s->name));
    pickle_word(o, "filename");
    pickle_word(o, intern_text(&w->names, s->file));
    pickle_word(o, "line");
    pickle_whole(o, 0);
    pickle_close(o, '}');
    pickle_close(o, ']');
}

// ---- entries --------------------------------------------------------------------------------------------------

static void put_whole(pickle_out *o, const char *key, uint64_t value)
{
    pickle_word(o, key);
    pickle_whole(o, (int64_t)value);
}

static void put_entry(snapshot_writer *w, const entry *e)
{
    pickle_out *o = &w->out;
    pickle_item(o, w->entries++);
    pickle_open(o, '{');
    pickle_word(o, "action");
    pickle_word(o, e->action);
    put_whole(o, strcmp(e->action, "oom") == 0 ? "device_free" : "addr", e->address);
    put_whole(o, "size", e->bytes);
    put_whole(o, "stream", e->stream);
    put_whole(o, "time_us", e->time_us);
    pickle_word(o, "frames");
    put_stack(w, e->stack);
    pickle_close(o, '}');
    row_file_put(&w->file);
}

static void tell(snapshot_writer *w, const entry *e)
{
    if (e->device == 0) {
        put_entry(w, e);
    } else if (e->device < w->source->device_count) {
        entry *kept = vec_push(&w->later);
        if (kept == NULL) {
            run_short(w);
        } else {
            *kept = *e;
        }
    }
}

static uint64_t device_free(const snapshot_writer *w, const hr_event *event)
{
    heap_counters c = {0};
    bool known = w->source->counters != NULL && w->source->counters(w->source->context, event->device, &c);
    return known && c.limit_bytes > c.pool_bytes ? c.limit_bytes - c.pool_bytes : 0;
}

static const heap_chunk *chunk_at(const heap_snapshot *p, uint64_t address)
{
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        if (address >= c->region_address && address - c->region_address < c->region_bytes) {
            return c;
        }
    }
    return NULL;
}

// Whether a heap grows within its regions: the region is then larger than what has just come. An allocator that does
// so shows it early; others, which may grow at every request, are not asked for their heap each time.
static bool grows_by_mapping(snapshot_writer *w, const hr_event *event)
{
    const uint8_t d = event->device;
    heap_snapshot p = {0};
    hr_err err;
    if (w->maps[d] || w->grows[d] == GROWS_LOOKED_AT || w->source->snapshot == NULL) {
        return w->maps[d];
    }
    w->grows[d]++;
    if (w->source->snapshot(w->source->context, d, &p, &err) != HR_OK) {
        run_short(w);
    }
    const heap_chunk *c = chunk_at(&p, event->u.memory.address);
    w->maps[d] = c != NULL && (c->region_kind == HEAP_REGION_EXPANDABLE ||
                               c->region_bytes > event->u.memory.allocated_bytes);
    heap_snapshot_deinit(&p);
    return w->maps[d];
}

static const char *action_of(snapshot_writer *w, const hr_event *event)
{
    switch (event->kind) {
    case HR_EVENT_ALLOC:
        return "alloc";
    case HR_EVENT_GROW:
        return grows_by_mapping(w, event) ? "segment_map" : "segment_alloc";
    case HR_EVENT_SHRINK:
        return w->maps[event->device] ? "segment_unmap" : "segment_free";
    case HR_EVENT_OOM:
        return "oom";
    default:
        return "free_completed";
    }
}

static void snapshot_sink(void *writer, const hr_event *event)
{
    snapshot_writer *w = writer;
    if (!trace_is_memory(event) || w->file.status != HR_OK) {
        return;
    }
    const hr_event_memory *m = &event->u.memory;
    const bool of_region = event->kind == HR_EVENT_GROW || event->kind == HR_EVENT_SHRINK;
    event_context s = {0};
    if (!of_region && w->source->describe != NULL) {
        w->source->describe(w->source->context, event, &s);
    }
    entry e = {.action = action_of(w, event),
               .address = event->kind == HR_EVENT_OOM ? device_free(w, event) : m->address,
               .bytes = of_region ? m->allocated_bytes : m->requested_bytes,
               .time_us = event->time_ns / NS_PER_US,
               .stream = m->stream,
               .stack = stack_of(w, s.tensor, s.op),
               .device = event->device};
    if (event->kind == HR_EVENT_FREE) {
        entry requested = e;
        requested.action = "free_requested";
        tell(w, &requested);
    }
    tell(w, &e);
}

// ---- segments -------------------------------------------------------------------------------------------------

// Chunks of one region.
typedef struct region {
    const heap_chunk *first;
    uint32_t count;
} region;

static int by_address(const void *a, const void *b)
{
    const region *x = a, *y = b;
    return x->first->region_address < y->first->region_address
               ? -1
               : x->first->region_address > y->first->region_address;
}

static uint32_t stack_of_chunk(snapshot_writer *w, const heap_snapshot *p, const heap_chunk *c,
                               uint8_t device)
{
    event_context s = {.tensor = intern_text(&p->names, c->tensor)};
    if (s.tensor == NULL && w->source->describe != NULL && c->tensor != HR_NO_ID) {
        const hr_event event = {.kind = HR_EVENT_ALLOC,
                                .device = device,
                                .instr = HR_NO_ID,
                                .u.memory = {.address = c->address,
                                             .requested_bytes = c->requested_bytes,
                                             .allocated_bytes = c->size_bytes,
                                             .tensor = c->tensor}};
        w->source->describe(w->source->context, &event, &s);
    }
    return stack_of(w, s.tensor, s.op);
}

static void put_block(snapshot_writer *w, const heap_snapshot *p, const heap_chunk *c, uint8_t device)
{
    pickle_out *o = &w->out;
    pickle_open(o, '{');
    put_whole(o, "address", c->address);
    put_whole(o, "size", c->size_bytes);
    put_whole(o, "requested_size", c->in_use ? c->requested_bytes : 0);
    pickle_word(o, "state");
    pickle_word(o, !c->in_use ? "inactive" : c->pending ? "active_pending_free" : "active_allocated");
    pickle_word(o, "frames");
    put_stack(w, c->in_use ? stack_of_chunk(w, p, c, device) : NO_STACK);
    pickle_close(o, '}');
    row_file_put(&w->file);
}

static void put_sums(pickle_out *o, const region *r)
{
    uint64_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        const heap_chunk *c = &r->first[k];
        active_bytes += c->in_use ? c->size_bytes : 0;
        allocated_bytes += c->in_use && !c->pending ? c->size_bytes : 0;
        requested_bytes += c->in_use ? c->requested_bytes : 0;
    }
    put_whole(o, "total_size", r->first->region_bytes);
    put_whole(o, "allocated_size", allocated_bytes);
    put_whole(o, "active_size", active_bytes);
    put_whole(o, "requested_size", requested_bytes);
}

static void put_segment(snapshot_writer *w, const heap_snapshot *p, const region *r, uint8_t device)
{
    pickle_out *o = &w->out;
    pickle_open(o, '{');
    put_whole(o, "device", device);
    put_whole(o, "address", r->first->region_address);
    put_sums(o, r);
    put_whole(o, "stream", r->first->stream);
    pickle_word(o, "segment_type");
    pickle_word(o, r->first->region_kind == HEAP_REGION_SMALL ? "small" : "large");
    pickle_word(o, "segment_pool_id");
    pickle_pair(o, 0, 0);
    pickle_word(o, "is_expandable");
    pickle_truth(o, w->maps[device] || r->first->region_kind == HEAP_REGION_EXPANDABLE);
    pickle_word(o, "frames");
    put_stack(w, NO_STACK);
    pickle_word(o, "blocks");
    pickle_open(o, '[');
    for (uint32_t k = 0; k < r->count; k++) {
        pickle_item(o, k);
        put_block(w, p, &r->first[k], device);
    }
    pickle_close(o, ']');
    pickle_close(o, '}');
}

// Regions of the snapshot by address, in *out (hr_free); false when host memory is short.
static bool find_regions(const heap_snapshot *p, region **out, uint32_t *count)
{
    *count = 0;
    *out = p->chunks.count == 0 ? NULL : hr_calloc(p->chunks.count, sizeof **out);
    for (uint32_t k = 0; *out != NULL && k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        if (k == 0 || c->region_address != c[-1].region_address) {
            (*out)[(*count)++].first = c;
        }
        (*out)[*count - 1].count++;
    }
    if (*count > 1) {
        qsort(*out, *count, sizeof **out, by_address);
    }
    return *out != NULL || p->chunks.count == 0;
}

static void put_segments(snapshot_writer *w, const heap_snapshot *heaps)
{
    uint64_t index = 0;
    pickle_word(&w->out, "segments");
    pickle_open(&w->out, '[');
    for (uint32_t d = 0; d < w->source->device_count; d++) {
        region *regions = NULL;
        uint32_t count = 0;
        if (!find_regions(&heaps[d], &regions, &count)) {
            run_short(w);
        }
        for (uint32_t k = 0; k < count; k++) {
            pickle_item(&w->out, index++);
            put_segment(w, &heaps[d], &regions[k], (uint8_t)d);
        }
        hr_free(regions);
    }
    pickle_close(&w->out, ']');
}

static void put_settings(snapshot_writer *w, const heap_snapshot *heaps)
{
    pickle_word(&w->out, "allocator_settings");
    pickle_open(&w->out, '{');
    pickle_word(&w->out, "headroom_allocator");
    pickle_word(&w->out, heaps[0].source);
    pickle_word(&w->out, "expandable_segments");
    pickle_truth(&w->out, w->maps[0]);
    pickle_close(&w->out, '}');
}

// ---- the file -------------------------------------------------------------------------------------------------

static bool is_own(const char *start, size_t bytes)
{
    return bytes >= sizeof sign - 1 && memcmp(start, sign, sizeof sign - 1) == 0;
}

static hr_status snapshot_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    snapshot_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a snapshot, had none", path, sizeof *w);
    }
    hr_status status = row_file_open(&w->file, path, err);
    if (status != HR_OK) {
        hr_free(w);
        return status;
    }
    w->source = source;
    w->out.to = &w->file.row;
    pickle_begin(&w->out);
    pickle_open(&w->out, '{');
    pickle_word(&w->out, "headroom");
    pickle_whole(&w->out, 1);
    pickle_word(&w->out, "device_traces");
    pickle_open(&w->out, '[');
    pickle_open(&w->out, '[');
    row_file_put(&w->file);
    *out = w;
    return HR_OK;
}

static void put_rest(snapshot_writer *w, const heap_snapshot *heaps)
{
    pickle_close(&w->out, ']');
    for (uint32_t d = 1; d < w->source->device_count; d++) {
        w->entries = 0;
        pickle_open(&w->out, '[');
        for (uint32_t k = 0; k < w->later.count; k++) {
            if (w->later.data[k].device == d) {
                put_entry(w, &w->later.data[k]);
            }
        }
        pickle_close(&w->out, ']');
    }
    pickle_close(&w->out, ']');
    put_segments(w, heaps);
    put_settings(w, heaps);
    pickle_close(&w->out, '}');
    pickle_end(&w->out);
    row_file_put(&w->file);
}

static hr_status snapshot_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    snapshot_writer *w = writer;
    if (!give_up) {
        put_rest(w, heaps);
    }
    hr_status status = row_file_close(&w->file, give_up, err);
    pickle_out_deinit(&w->out);
    intern_deinit(&w->names);
    intern_deinit(&w->stack_keys);
    vec_deinit(&w->stacks);
    vec_deinit(&w->later);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_torch_snapshot = {
    .about = {"pytorch_snapshot", ".pickle", "PyTorch memory snapshot, for pytorch.org/memory_viz"},
    .is_own = is_own,
    .wants_heaps = true,
    .open = snapshot_open,
    .sink = snapshot_sink,
    .failure = row_file_failure,
    .close = snapshot_close,
};
