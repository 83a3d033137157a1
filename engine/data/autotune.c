// SPDX-License-Identifier: Apache-2.0
#include "data/autotune.h"

#include <math.h>

#define HIDDEN     0.02  // share of its time that a step may wait: nothing is gained below
#define SOONER     0.98  // of a batch's time: what is kept of threads makes it at most so long
#define AS_SOON    1.005 // of it: what is kept of fewer threads makes it at most so long
#define WAITS_LESS 0.85  // of the wait: what is kept of prefetch makes it at most so long
#define ROOM       0.95  // of the step: making is to take no longer, so that what varies is hidden too
#define WORSE      0.05  // share by which the wait grows until the search begins anew
#define SECOND_NS  1000000000.0

// A setting is measured for at least so much, the second where batches are slow, and four times as many where they are uneven:
// what a fuller buffer gains is seen in the mean of many. A search ends in time.
enum { BATCHES = 24, BATCHES_SLOW = 4, UNEVEN = 4, FULLER = 2 };
#define WINDOW_NS        400000000u
#define WINDOW_SLOW_NS   1000000000u
#define WINDOW_UNEVEN_NS 1800000000u
#define WATCH_NS         5000000000u
#define SEARCH_NS        9000000000u

autotune_state autotune_begin(const autotune_limits *limits)
{
    return (autotune_state){.phase = AUTOTUNE_MAKING, .now = limits->least, .before = limits->least};
}

bool autotune_knows(const autotune_state *s, const autotune_measures *m)
{
    if (s->phase == AUTOTUNE_SETTLED) {
        return m->elapsed_ns >= WATCH_NS && m->batches >= BATCHES;
    }
    const uint32_t times = s->phase == AUTOTUNE_READY ? UNEVEN : 1;
    const uint64_t slow_ns = s->phase == AUTOTUNE_READY ? WINDOW_UNEVEN_NS : WINDOW_SLOW_NS;
    return m->made > 0 && ((m->batches >= BATCHES * times && m->elapsed_ns >= WINDOW_NS) ||
                           (m->batches >= BATCHES_SLOW * times && m->elapsed_ns >= slow_ns) ||
                           (m->batches > 0 && s->spent_ns + m->elapsed_ns >= SEARCH_NS));
}

// ---- what was measured, a batch -------------------------------------------------------------------------------

typedef struct costs {
    double batch, waits, step; // from one batch to the next, of it waiting, and not waiting
    double draw, making, wall;
} costs;

static costs costs_of(const autotune_measures *m)
{
    const double taken = m->batches > 0 ? (double)m->batches : 1, made = m->made > 0 ? (double)m->made : 1;
    costs c = {.batch = (double)m->elapsed_ns / taken,
               .waits = (double)m->wait_ns / taken,
               .draw = (double)m->draw_ns / made,
               .making = (double)m->making_ns / made,
               .wall = (double)m->wall_ns / made};
    c.step = c.batch > c.waits ? c.batch - c.waits : 0;
    return c;
}

static bool is_hidden(const costs *c)
{
    return c->waits <= HIDDEN * c->batch;
}

// The fewest threads that would make a batch within the step if they shared it evenly; `most` where none would.
static uint32_t threads_for(const autotune_limits *limits, const costs *c, bool overlaps)
{
    const double left = ROOM * c->step - c->draw;
    if (!overlaps || !(left > 0)) {
        return limits->most.threads;
    }
    const double wanted = ceil(c->making / left);
    return wanted >= limits->most.threads ? limits->most.threads : wanted < 1 ? 1 : (uint32_t)wanted;
}

// ---- the search -----------------------------------------------------------------------------------------------

static autotune_decision change(autotune_state *s, const costs *c, autotune_setting to, hr_tune_reason reason)
{
    const autotune_decision d = {.from = s->now, .to = to, .reason = reason};
    s->before = s->now;
    s->batch_ns = c->batch;
    s->waits_ns = c->waits;
    s->now = to;
    s->tries = true;
    return d;
}

static autotune_decision settle(autotune_state *s, const costs *c, hr_tune_reason reason)
{
    const autotune_decision d = {.from = s->now, .to = s->now, .reason = reason};
    s->phase = AUTOTUNE_SETTLED;
    s->tries = false;
    s->settled_share = c->batch > 0 ? c->waits / c->batch : 0;
    s->spent_ns = 0;
    return d;
}

// Whether what was tried is kept.
static bool has_gained(const autotune_state *s, const costs *c)
{
    return s->phase == AUTOTUNE_READY   ? c->waits <= WAITS_LESS * s->waits_ns
           : s->phase == AUTOTUNE_FEWER ? c->batch <= AS_SOON * s->batch_ns
                                        : c->batch <= SOONER * s->batch_ns;
}

static uint32_t fuller(const autotune_limits *limits, uint32_t prefetch)
{
    return prefetch * FULLER < limits->most.prefetch ? prefetch * FULLER : limits->most.prefetch;
}

// The next change from where the search stands; false: there is none.
static bool propose(autotune_state *s, const autotune_limits *limits, const costs *c, autotune_decision *out)
{
    autotune_setting to = s->now;
    if (s->phase == AUTOTUNE_MAKING) {
        const uint32_t wanted = threads_for(limits, c, s->now.prefetch > 0);
        to.threads = wanted > s->now.threads ? wanted : s->now.threads;
        if (to.threads != s->now.threads) {
            *out = change(s, c, to, HR_TUNE_MAKING);
            return true;
        }
        s->phase = AUTOTUNE_READY;
    }
    if (s->phase == AUTOTUNE_READY) {
        to.prefetch = fuller(limits, s->now.prefetch);
        if (to.prefetch > s->now.prefetch) {
            *out = change(s, c, to, HR_TUNE_UNEVEN);
            return true;
        }
        s->phase = AUTOTUNE_MORE;
    }
    if (s->phase == AUTOTUNE_MORE) {
        to = s->now;
        to.threads += to.threads < limits->most.threads ? 1 : 0;
        to.prefetch = fuller(limits, s->now.prefetch);
        if (to.threads > s->now.threads) {
            *out = change(s, c, to, HR_TUNE_WAITS);
            return true;
        }
    }
    return false;
}

// Threads that take cores from the step may cost more than they hide: one less is tried until batches come later.
static bool propose_fewer(autotune_state *s, const autotune_limits *limits, const costs *c,
                          autotune_decision *out)
{
    autotune_setting to = s->now;
    if (s->phase == AUTOTUNE_SETTLED || !is_hidden(c) || s->now.threads == limits->least.threads) {
        return false;
    }
    s->phase = AUTOTUNE_FEWER;
    to.threads--;
    *out = change(s, c, to, HR_TUNE_FEWER);
    return true;
}

// What was tried goes, and what was measured before it holds again. The search goes on behind its phase.
static autotune_decision take_back(autotune_state *s, costs *c)
{
    const autotune_decision d = {.from = s->now, .to = s->before, .reason = HR_TUNE_NO_GAIN};
    s->now = s->before;
    c->batch = s->batch_ns;
    c->waits = s->waits_ns;
    return d;
}

static autotune_phase behind(autotune_phase phase)
{
    return phase == AUTOTUNE_MAKING  ? AUTOTUNE_READY
           : phase == AUTOTUNE_READY ? AUTOTUNE_MORE
           : phase == AUTOTUNE_MORE  ? AUTOTUNE_FEWER
                                     : AUTOTUNE_SETTLED;
}

// Of a pipeline that has settled: the search begins anew, from the least, when the step waits for more of its time.
static uint32_t watch(autotune_state *s, const autotune_limits *limits, const costs *c,
                      autotune_decision *out)
{
    s->spent_ns = 0;
    if (c->waits <= (s->settled_share + WORSE) * c->batch) {
        return 0;
    }
    *out = (autotune_decision){.from = s->now, .to = limits->least, .reason = HR_TUNE_ANEW};
    *s = autotune_begin(limits);
    return 1;
}

uint32_t autotune_decide(autotune_state *s, const autotune_limits *limits, const autotune_measures *m,
                         autotune_decision out[2])
{
    costs c = costs_of(m);
    uint32_t count = 0;
    if (s->phase == AUTOTUNE_SETTLED) {
        return watch(s, limits, &c, out);
    }
    s->spent_ns += m->elapsed_ns;
    if (s->tries && !has_gained(s, &c)) {
        out[count++] = take_back(s, &c);
        s->phase = behind(s->phase);
    }
    s->tries = false;
    if (s->spent_ns < SEARCH_NS && ((!is_hidden(&c) && propose(s, limits, &c, &out[count])) ||
                                    propose_fewer(s, limits, &c, &out[count]))) {
        return count + 1;
    }
    out[count++] = settle(s, &c,
                          is_hidden(&c)              ? HR_TUNE_HIDDEN
                          : s->spent_ns >= SEARCH_NS ? HR_TUNE_TIME
                                                     : HR_TUNE_MOST);
    return count;
}
