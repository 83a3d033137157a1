// SPDX-License-Identifier: Apache-2.0
#include "data/tuner.h"

#include <string.h>

#include "headroom/machine.h"

#include "base/clock.h"
#include "data/stages.h"

#define NS_PER_MS 1000000u

static tuner_mark mark_of(const tuner *t)
{
    return (tuner_mark){.time_ns = clock_now_ns(),
                        .wait_ns = t->wait_ns,
                        .batches = t->batches,
                        .batch = stage_times_now(&t->batch->times),
                        .making = stage_times_now(&t->batch->making)};
}

static autotune_measures measures_since(const tuner *t, const tuner_mark *since)
{
    const tuner_mark now = mark_of(t);
    return (autotune_measures){.batches = now.batches - since->batches,
                               .elapsed_ns = now.time_ns - since->time_ns,
                               .wait_ns = now.wait_ns - since->wait_ns,
                               .made = now.batch.items - since->batch.items,
                               .draw_ns = now.batch.busy_ns - since->batch.busy_ns,
                               .making_ns = now.making.busy_ns - since->making.busy_ns,
                               .wall_ns = now.batch.wall_ns - since->batch.wall_ns};
}

// What was made ready before a change says nothing of it: as many batches are passed over.
static void measure_anew(tuner *t)
{
    uint32_t ready = 0, capacity = 0;
    if (t->prefetch != NULL) {
        t->prefetch->ops->queue(t->prefetch, &ready, &capacity);
    }
    t->skip = ready + 1;
}

static void apply(tuner *t, autotune_setting to)
{
    if (to.threads != t->now.threads) {
        stage_batch_use_threads(t->batch, to.threads);
    }
    if (t->prefetch != NULL && to.prefetch != t->now.prefetch) {
        stage_prefetch_use(t->prefetch, to.prefetch);
    }
    t->now = to;
}

static void tell(tuner *t, const autotune_decision *d, const autotune_measures *m)
{
    const uint64_t taken = m->batches > 0 ? m->batches : 1, made = m->made > 0 ? m->made : 1;
    if (t->count == TUNER_DECISIONS) {
        return;
    }
    t->decisions[t->count++] =
        (hr_event_tune){.threads_from = d->from.threads,
                        .threads_to = d->to.threads,
                        .prefetch_from = d->from.prefetch,
                        .prefetch_to = d->to.prefetch,
                        .reason = d->reason,
                        .as_tensorflow = t->by == TUNED_BY_TENSORFLOW,
                        .making_ns = m->wall_ns / made,
                        .step_ns = m->elapsed_ns > m->wait_ns ? (m->elapsed_ns - m->wait_ns) / taken : 0,
                        .wait_ns = m->wait_ns / taken,
                        .after_ns = clock_now_ns() - t->begun.time_ns};
}

void tuner_begin(tuner *t, const data_tuned *tuned, uint64_t batch_bytes, uint64_t sample_bytes,
                 data_stage *batch, data_stage *prefetch)
{
    const autotune_setting most = {tuned->threads, tuned->prefetch};
    const autotune_setting least = {tuned->threads_auto ? 1 : most.threads,
                                    tuned->prefetch_auto ? 1 : most.prefetch};
    *t = (tuner){.by = tuned->by,
                 .limits = {.least = least,
                            .most = most,
                            .cores = hr_machine_cores(),
                            .budget_bytes = tuned->budget_bytes,
                            .batch_bytes = batch_bytes,
                            .sample_bytes = sample_bytes},
                 .batch = batch,
                 .prefetch = prefetch,
                 .buffer = {.limit = least.prefetch},
                 .period_ns = (uint64_t)AUTOTUNE_FIRST_PERIOD_MS * NS_PER_MS,
                 .now = most};
    if (t->by == TUNED_BY_NOBODY) {
        return;
    }
    t->state = autotune_begin(&t->limits);
    apply(t, least);
    t->begun = mark_of(t);
    t->due_ns = t->begun.time_ns + t->period_ns;
    measure_anew(t);
}

// ---- tensorflow -----------------------------------------------------------------------------------------------

static void watch_buffer(tuner *t)
{
    uint32_t ready = 0, capacity = 0;
    const uint64_t used_bytes =
        t->now.threads * t->limits.sample_bytes + t->buffer.limit * t->limits.batch_bytes;
    if (t->prefetch == NULL || t->limits.least.prefetch == t->limits.most.prefetch) {
        return;
    }
    t->prefetch->ops->queue(t->prefetch, &ready, &capacity);
    if (autotune_consumed(&t->buffer, ready, t->limits.most.prefetch, t->limits.batch_bytes, used_bytes,
                          t->limits.budget_bytes)) {
        const autotune_decision d = {
            .from = t->now, .to = {t->now.threads, (uint32_t)t->buffer.limit}, .reason = HR_TUNE_DRAINED};
        const autotune_measures m = measures_since(t, &t->begun);
        apply(t, d.to);
        tell(t, &d, &m);
    }
}

static void climb_when_due(tuner *t)
{
    const autotune_measures m = measures_since(t, &t->begun);
    if (clock_now_ns() < t->due_ns || m.made == 0) {
        return;
    }
    const uint64_t longest_ns = (uint64_t)AUTOTUNE_LAST_PERIOD_MS * NS_PER_MS;
    t->period_ns = t->period_ns * 2 < longest_ns ? t->period_ns * 2 : longest_ns;
    t->due_ns = clock_now_ns() + t->period_ns;
    autotune_decision d = {.from = t->now, .to = t->now};
    d.to.threads = autotune_climb(&t->limits, &m, t->now.prefetch, &d.reason);
    if (d.to.threads != d.from.threads) {
        apply(t, d.to);
        tell(t, &d, &m);
    }
}

// ---- headroom -------------------------------------------------------------------------------------------------

static void decide_when_known(tuner *t)
{
    const autotune_measures m = measures_since(t, &t->since);
    autotune_decision d[2];
    if (t->skip > 0 || !autotune_knows(&t->state, &m)) {
        return;
    }
    const uint32_t count = autotune_decide(&t->state, &t->limits, &m, d);
    for (uint32_t k = 0; k < count; k++) {
        tell(t, &d[k], &m);
    }
    const autotune_setting before = t->now;
    apply(t, t->state.now);
    if (memcmp(&before, &t->now, sizeof before) != 0) {
        measure_anew(t);
    } else {
        t->since = mark_of(t);
    }
}

// ---- between two batches --------------------------------------------------------------------------------------

void tuner_before(tuner *t)
{
    if (t->by == TUNED_BY_HEADROOM) {
        decide_when_known(t);
    } else if (t->by == TUNED_BY_TENSORFLOW) {
        climb_when_due(t);
        watch_buffer(t);
    }
}

void tuner_after(tuner *t, uint64_t waited_ns)
{
    if (t->by == TUNED_BY_NOBODY) {
        return;
    }
    t->wait_ns += waited_ns;
    t->batches++;
    if (t->skip > 0 && --t->skip == 0) {
        t->since = mark_of(t);
    }
}

void tuner_interrupt(tuner *t)
{
    if (t->by != TUNED_BY_NOBODY) {
        measure_anew(t);
    }
}

uint32_t tuner_take(tuner *t, hr_event_tune *out)
{
    const uint32_t count = t->count;
    memcpy(out, t->decisions, count * sizeof *out);
    t->count = 0;
    return count;
}
