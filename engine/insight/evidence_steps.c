// SPDX-License-Identifier: Apache-2.0
#include "insight/evidence_steps.h"

#include "base/host_mem.h"
#include "base/vec.h"

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

// Half of the deepest fall; 0 where nothing falls far enough to be the end of a step.
static uint64_t swing_of(curve c, const trace *t, uint32_t end)
{
    uint64_t peak_bytes = 0, fall_bytes = 0;
    for (uint32_t k = 0; k < end; k++) {
        follow(&c, &t->events.data[k]);
        peak_bytes = c.live_bytes > peak_bytes ? c.live_bytes : peak_bytes;
        fall_bytes = peak_bytes - c.live_bytes > fall_bytes ? peak_bytes - c.live_bytes : fall_bytes;
    }
    return fall_bytes / 2 >= peak_bytes / SWING_SHARE ? fall_bytes / 2 : 0;
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
    hr_free(c.bytes);
    *out = (evidence_steps){found.data, found.count, marked};
    return done ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the steps of a record");
}

void evidence_steps_deinit(evidence_steps *s)
{
    vec_free_(s->ends);
    *s = (evidence_steps){0};
}
