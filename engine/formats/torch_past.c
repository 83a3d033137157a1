// SPDX-License-Identifier: Apache-2.0
// What lived before the first event of a snapshot. PyTorch keeps the latest events only, and all segments.
#include <stdlib.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "formats/torch_parts.h"

enum { FIRST_SPOTS = 1024 };

typedef enum spot_state { NOT_KNOWN, DEAD, LIVES } spot_state;

// Addresses that the trace of a device spoke of: 9 bytes a place, because there may be one for every entry.
typedef struct spots {
    uint64_t *addresses; // open addressing, at most three quarters full
    uint8_t *states;     // spot_state
    uint32_t capacity, count;
} spots;

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "snapshot: needed host memory for what lives in it, had none");
}

static void clear(spots *s)
{
    hr_free(s->addresses);
    hr_free(s->states);
    *s = (spots){0};
}

// Where the address is, or belongs.
static uint32_t find(const spots *s, uint64_t address)
{
    uint32_t at = (uint32_t)hash64_mix(address, 0) & (s->capacity - 1);
    while (s->states[at] != NOT_KNOWN && s->addresses[at] != address) {
        at = (at + 1) & (s->capacity - 1);
    }
    return at;
}

static bool grow(spots *s)
{
    spots grown = {.capacity = s->capacity == 0 ? FIRST_SPOTS : s->capacity * 2, .count = s->count};
    if (grown.capacity == 0) {
        return false;
    }
    grown.addresses = hr_realloc(NULL, grown.capacity, sizeof *grown.addresses);
    grown.states = hr_calloc(grown.capacity, sizeof *grown.states);
    if (grown.addresses == NULL || grown.states == NULL) {
        clear(&grown);
        return false;
    }
    for (uint32_t k = 0; k < s->capacity; k++) {
        if (s->states[k] != NOT_KNOWN) {
            uint32_t at = find(&grown, s->addresses[k]);
            grown.addresses[at] = s->addresses[k];
            grown.states[at] = s->states[k];
        }
    }
    clear(s);
    *s = grown;
    return true;
}

// The state of the address, DEAD from now on where it was not known: *is_new. NULL when host memory is short.
static uint8_t *touch(spots *s, uint64_t address, bool *is_new)
{
    if (4 * ((uint64_t)s->count + 1) > 3 * (uint64_t)s->capacity && !grow(s)) {
        return NULL;
    }
    uint32_t at = find(s, address);
    *is_new = s->states[at] == NOT_KNOWN;
    if (*is_new) {
        s->addresses[at] = address;
        s->states[at] = DEAD;
        s->count++;
    }
    return &s->states[at];
}

static hr_status add(torch_past *past, const torch_earlier *e, hr_err *err)
{
    torch_earlier *added = vec_push(&past->blocks);
    if (added == NULL) {
        return no_memory(err);
    }
    *added = *e;
    return HR_OK;
}

static hr_status follow(spots *s, const torch_row *row, torch_past *past, hr_err *err)
{
    bool is_new = false, begins = row->kind == TRACE_ALLOC;
    if ((!begins && row->kind != TRACE_FREE && row->kind != TRACE_RETIRE) || row->bytes == 0) {
        return HR_OK;
    }
    uint8_t *here = touch(s, row->address, &is_new);
    if (here == NULL) {
        return no_memory(err);
    }
    past->reused += begins && *here == LIVES;
    bool lives = begins || (row->kind == TRACE_RETIRE && (is_new || *here == LIVES));
    *here = lives ? LIVES : DEAD;
    if (!is_new || begins) {
        return HR_OK;
    }
    torch_earlier e = {row->address, row->bytes, HR_NO_ID, row->stream, row->device};
    return add(past, &e, err);
}

// Blocks that no event speaks of.
static hr_status add_silent(torch_parts *parts, spots *s, const torch_segment *segment, torch_past *past,
                            hr_err *err)
{
    uint64_t address = segment->address;
    for (uint32_t k = segment->first_block; k != TORCH_NONE; k = parts->blocks.data[k].next) {
        const torch_block *b = &parts->blocks.data[k];
        bool is_new = false;
        if (b->state != TORCH_FREE && touch(s, address, &is_new) == NULL) {
            return no_memory(err);
        }
        if (is_new) {
            torch_earlier e = {address, b->requested_bytes, HR_NO_ID, segment->stream, segment->device};
            HR_TRY(torch_block_name(parts, b, &e.name, err));
            HR_TRY(add(past, &e, err));
        }
        address += b->bytes;
    }
    return HR_OK;
}

static hr_status find_of_device(torch_parts *parts, uint32_t device, const torch_run *run, spots *s,
                                torch_past *past, hr_err *err)
{
    for (uint32_t k = 0; run != NULL && k < run->count; k++) {
        HR_TRY(follow(s, &parts->rows.data[run->first + k], past, err));
    }
    for (uint32_t k = 0; k < parts->segments.count; k++) {
        if (parts->segments.data[k].device == device) {
            HR_TRY(add_silent(parts, s, &parts->segments.data[k], past, err));
        }
    }
    return HR_OK;
}

static int by_device_and_address(const void *a, const void *b)
{
    const torch_earlier *x = a, *y = b;
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    return x->address < y->address ? -1 : x->address > y->address;
}

hr_status torch_find_past(torch_parts *parts, torch_past *past, hr_err *err)
{
    uint32_t next = parts->first_run;
    for (uint32_t device = 0; device < TRACE_DEVICES_MAX; device++) {
        const torch_run *run = next == TORCH_NONE ? NULL : &parts->runs.data[next];
        if (run != NULL && run->device == device) {
            next = run->next;
        } else {
            run = NULL;
        }
        spots s = {0};
        hr_status status = find_of_device(parts, device, run, &s, past, err);
        clear(&s);
        HR_TRY(status);
    }
    if (past->blocks.count > 0) {
        qsort(past->blocks.data, past->blocks.count, sizeof *past->blocks.data, by_device_and_address);
    }
    return HR_OK;
}
