// SPDX-License-Identifier: Apache-2.0
#include "insight/evidence_steps.h"

#include "headroom/report.h"

#include "base/host_mem.h"
#include "base/vec.h"
#include "insight/near_full.h"

enum { SWING_SHARE = 20 }; // of the peak: what lives swings by more from step to step

typedef VEC(uint32_t) events;

// The bytes that live, event by event.
typedef struct curve {
    uint64_t *bytes; // [block_count]
    uint64_t live_bytes;
    uint32_t device;
} curve;

static void follow(curve *c, const trace_event *e)
{
    if (e->device != c->device) {
        return;
    }
    if (e->kind == TRACE_ALLOC) {
        c->bytes[e->block] = e->bytes;
        c->live_bytes += e->bytes;
    } else if (e->kind == TRACE_FREE) {
        c->live_bytes -= c->bytes[e->block];
        c->bytes[e->block] = 0;
    }
}

// The deepest falls, deepest first.
typedef struct deepest {
    uint64_t bytes[LEAK_STEPS + 1];
    uint32_t count;
} deepest;

static void note_fall(deepest *f, uint64_t bytes)
{
    uint32_t at = f->count;
    while (at > 0 && f->bytes[at - 1] < bytes) {
        at--;
    }
    for (uint32_t k = LEAK_STEPS; k > at; k--) {
        f->bytes[k] = f->bytes[k - 1];
    }
    if (at <= LEAK_STEPS) {
        f->bytes[at] = bytes;
        f->count += f->count <= LEAK_STEPS;
    }
}

static uint64_t peak_of(curve c, const trace *t, uint32_t begin, uint32_t end)
{
    uint64_t peak_bytes = 0;
    for (uint32_t k = 0; k < end; k++) {
        follow(&c, &t->events.data[k]);
        peak_bytes = k >= begin && c.live_bytes > peak_bytes ? c.live_bytes : peak_bytes;
    }
    return peak_bytes;
}

// The deepest falls between `begin` and `end` that are at least `least_bytes`.
static deepest falls_of(curve c, const trace *t, uint32_t begin, uint32_t end, uint64_t least_bytes)
{
    uint64_t top_bytes = 0, low_bytes = 0;
    deepest f = {.count = 0};
    for (uint32_t k = 0; k < end; k++) {
        follow(&c, &t->events.data[k]);
        const uint64_t live_bytes = c.live_bytes;
        const bool fell = top_bytes - low_bytes >= least_bytes;
        if (k <= begin || live_bytes > top_bytes || (fell && live_bytes >= low_bytes + least_bytes)) {
            if (fell && top_bytes > low_bytes) {
                note_fall(&f, top_bytes - low_bytes);
            }
            top_bytes = low_bytes = live_bytes;
        }
        low_bytes = live_bytes < low_bytes ? live_bytes : low_bytes;
    }
    if (top_bytes - low_bytes >= least_bytes && top_bytes > low_bytes) {
        note_fall(&f, top_bytes - low_bytes);
    }
    return f;
}

// Half of the deepest fall that comes as often as a leak needs steps; of the record's second half where it comes there, for a first
// step may be far larger than the others. Of fewer falls half of the deepest. 0 where nothing falls far enough to end a step.
static uint64_t swing_of(curve c, const trace *t, uint32_t end)
{
    const uint32_t middle = end / 2;
    deepest f = falls_of(c, t, middle, end, peak_of(c, t, middle, end) / SWING_SHARE * 2);
    if (f.count <= LEAK_STEPS) {
        f = falls_of(c, t, 0, end, peak_of(c, t, 0, end) / SWING_SHARE * 2);
    }
    return f.bytes[f.count > LEAK_STEPS ? LEAK_STEPS : 0] / 2;
}

// A trough is the lowest point between a fall and a rise by the swing. False when host memory is short.
static bool add_troughs(curve c, const trace *t, uint32_t end, uint64_t swing_bytes, events *out)
{
    uint64_t extreme_bytes = 0;
    uint32_t lowest = 0;
    bool falls = false;
    for (uint32_t k = 0; k < end; k++) {
        follow(&c, &t->events.data[k]);
        if (falls && c.live_bytes < extreme_bytes) {
            extreme_bytes = c.live_bytes;
            lowest = k;
        } else if (falls && c.live_bytes >= extreme_bytes + swing_bytes) {
            uint32_t *added = vec_push(out);
            if (added == NULL) {
                return false;
            }
            *added = lowest;
            falls = false;
            extreme_bytes = c.live_bytes;
        } else if (!falls && c.live_bytes > extreme_bytes) {
            extreme_bytes = c.live_bytes;
        } else if (!falls && c.live_bytes + swing_bytes <= extreme_bytes) {
            falls = true;
            extreme_bytes = c.live_bytes;
            lowest = k;
        }
    }
    return true;
}

static bool add_marks(const trace *t, uint32_t end, events *out)
{
    bool done = true;
    for (uint32_t k = 0; k < end && done; k++) {
        if (t->events.data[k].kind == TRACE_STEP) {
            uint32_t *added = vec_push(out);
            done = added != NULL;
            if (done) {
                *added = k;
            }
        }
    }
    return done;
}

hr_status evidence_find_steps(const trace *t, uint32_t device, uint32_t end, evidence_steps *out, hr_err *err)
{
    events found = {0};
    curve c = {.bytes = hr_calloc((size_t)t->block_count + 1, sizeof *c.bytes), .device = device};
    bool done = c.bytes != NULL && add_marks(t, end, &found);
    const bool marked = found.count > 0;
    if (done && !marked) {
        const uint64_t swing_bytes = swing_of(c, t, end);
        done = swing_bytes == 0 || add_troughs(c, t, end, swing_bytes, &found);
    }
    *out = (evidence_steps){found.data, found.count, marked, .last_peak_bytes = HR_NONE};
    if (done && found.count > 1) {
        out->last_peak_bytes = peak_of(c, t, found.data[found.count - 2], end);
    }
    hr_free(c.bytes);
    return done ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the steps of a record");
}

void evidence_steps_deinit(evidence_steps *s)
{
    vec_free_(s->ends);
    *s = (evidence_steps){0};
}
