// SPDX-License-Identifier: Apache-2.0
#include "base/workers.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/host_mem.h"

// Polls before a sleep: about a tenth of a millisecond, longer than anything that lies between two kernels.
enum { POLLS = 200, PAUSES_PER_POLL = 8 };
// Ranges of a worker where they are cut fine: what is lost by a worker that stands still is one of them.
enum { PIECES = 4 };
// The gate's open bit; below it stands how many workers are inside.
static const uint32_t GATE_OPEN = UINT32_C(1) << 31;

typedef struct work {
    int64_t items, grain;
    uint32_t ranges;
    workers_body body;
    const void *argument;
} work;

//  caller   fills `work`, opens the gate, turns, takes ranges until none is free, closes the gate, waits for those inside
//  worker   sees the turn, goes in if the gate is open, takes ranges until none is free, goes out
//
// Whoever is held up before the gate, asleep or without a core, is not waited for: the others take its ranges.
struct workers {
    uint32_t count; // the caller included
    uint32_t started;
    work work;               // of this turn; written while the gate is closed and no worker inside
    _Atomic uint32_t turn;   // rises with every piece of work
    _Atomic uint32_t gate;   // GATE_OPEN and the workers inside
    _Atomic uint32_t asleep; // workers that wait for `turn` in the kernel
    _Atomic bool caller_asleep;
    _Atomic bool stop;
    _Atomic bool *taken; // of each range
    struct seat {
        workers *of;
        pthread_t thread;
        uint32_t number;
    } seat[];
};

// ---- waiting ----------------------------------------------------------------------------------------------

static void futex_wait(_Atomic uint32_t *word, uint32_t while_it_is)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void pause_briefly(void)
{
    for (int k = 0; k < PAUSES_PER_POLL; k++) {
#if defined(__SSE__)
        _mm_pause();
#endif
    }
    (void)sched_yield();
}

// True when the word has left `old` within the time that polling is worth.
static bool poll_for_change(_Atomic uint32_t *word, uint32_t old)
{
    for (int k = 0; k < POLLS; k++) {
        if (atomic_load(word) != old) {
            return true;
        }
        pause_briefly();
    }
    return false;
}

// ---- working ----------------------------------------------------------------------------------------------

static int64_t blocks_of(int64_t items, int64_t grain)
{
    return (items + grain - 1) / grain;
}

static uint32_t ranges_of(const workers *w, int64_t items, int64_t grain, uint32_t each)
{
    const int64_t blocks = blocks_of(items, grain), count = (int64_t)workers_count(w) * each;
    return blocks < 1 ? 1 : (uint32_t)(blocks < count ? blocks : count);
}

uint32_t workers_for_ranges(const workers *w, int64_t items, int64_t grain)
{
    return ranges_of(w, items, grain, 1);
}

static void run_range(const work *k, uint32_t range)
{
    const int64_t blocks = blocks_of(k->items, k->grain);
    const int64_t begin = blocks * range / k->ranges * k->grain;
    const int64_t end = blocks * (range + 1) / k->ranges * k->grain;
    k->body(k->argument, begin, end < k->items ? end : k->items, range);
}

// Those of its own first, whose data its core has seen; then what others have not begun.
static void take_ranges(workers *w, uint32_t number)
{
    const uint32_t ranges = w->work.ranges, first = (uint32_t)((uint64_t)ranges * number / w->count);
    for (uint32_t k = 0; k < ranges; k++) {
        const uint32_t range = (first + k) % ranges;
        if (!atomic_load(&w->taken[range]) && !atomic_exchange(&w->taken[range], true)) {
            run_range(&w->work, range);
        }
    }
}

static bool enter(workers *w)
{
    uint32_t gate = atomic_load(&w->gate);
    while ((gate & GATE_OPEN) != 0) {
        if (atomic_compare_exchange_weak(&w->gate, &gate, gate + 1)) {
            return true;
        }
    }
    return false;
}

static void leave(workers *w)
{
    if (atomic_fetch_sub(&w->gate, 1) == 1 && atomic_load(&w->caller_asleep)) {
        futex_wake_all(&w->gate);
    }
}

static void await_turn(workers *w, uint32_t old)
{
    while (!poll_for_change(&w->turn, old)) {
        atomic_fetch_add(&w->asleep, 1);
        futex_wait(&w->turn, old); // returns at once if the turn has come in between
        atomic_fetch_sub(&w->asleep, 1);
    }
}

static void *work_until_stopped(void *argument)
{
    struct seat *seat = argument;
    workers *w = seat->of;
    (void)workers_flush_denormals();
    for (uint32_t seen = 0;;) {
        await_turn(w, seen);
        seen = atomic_load(&w->turn);
        if (atomic_load(&w->stop)) {
            return NULL;
        }
        if (enter(w)) {
            take_ranges(w, seat->number);
            leave(w);
        }
    }
}

static void begin_turn(workers *w)
{
    atomic_fetch_add(&w->turn, 1);
    if (atomic_load(&w->asleep) > 0) {
        futex_wake_all(&w->turn);
    }
}

static void close_gate(workers *w)
{
    (void)atomic_fetch_and(&w->gate, ~GATE_OPEN);
    for (;;) {
        uint32_t inside = atomic_load(&w->gate);
        if (inside == 0) {
            return;
        }
        if (!poll_for_change(&w->gate, inside)) {
            atomic_store(&w->caller_asleep, true);
            inside = atomic_load(&w->gate);
            if (inside != 0) {
                futex_wait(&w->gate, inside);
            }
            atomic_store(&w->caller_asleep, false);
        }
    }
}

static void run_in(workers *w, const work *k)
{
    if (k->ranges == 1) {
        k->body(k->argument, 0, k->items, 0);
        return;
    }
    w->work = *k;
    for (uint32_t range = 0; range < k->ranges; range++) {
        atomic_store_explicit(&w->taken[range], false, memory_order_relaxed);
    }
    atomic_store(&w->gate, GATE_OPEN);
    begin_turn(w);
    take_ranges(w, 0);
    close_gate(w);
}

void workers_for(workers *w, int64_t items, int64_t grain, workers_body body, const void *argument)
{
    run_in(w, &(work){items, grain, workers_for_ranges(w, items, grain), body, argument});
}

void workers_for_few(workers *w, int64_t items, uint32_t most, workers_body body, const void *argument)
{
    const uint32_t ranges = workers_for_ranges(w, items, 1), few = most > 1 ? most : 1;
    run_in(w, &(work){items, 1, ranges < few ? ranges : few, body, argument});
}

void workers_for_pieces(workers *w, int64_t items, int64_t grain, workers_body body, const void *argument)
{
    const uint32_t each = workers_count(w) == 1 ? 1 : PIECES;
    run_in(w, &(work){items, grain, ranges_of(w, items, grain, each), body, argument});
}

// ---- threads ----------------------------------------------------------------------------------------------

int thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(thread, NULL, run, context);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

hr_status workers_create(uint32_t threads, workers **out, hr_err *err)
{
    *out = NULL;
    workers *w = hr_calloc(1, sizeof *w + threads * sizeof w->seat[0]);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %u worker threads", threads);
    }
    w->taken = hr_calloc((size_t)threads * PIECES, sizeof *w->taken);
    if (w->taken == NULL) {
        hr_free(w);
        return HR_FAIL(err, NOMEM, "no host memory for %u worker threads", threads);
    }
    w->count = threads;
    for (uint32_t k = 1; k < threads; k++) {
        w->seat[k] = (struct seat){.of = w, .number = k};
        const int failure = thread_start(&w->seat[k].thread, work_until_stopped, &w->seat[k]);
        if (failure != 0) {
            workers_destroy(w);
            return HR_FAIL(err, DEVICE, "needed %u worker threads, the system gave %u (error %d)", threads, k,
                           failure);
        }
        w->started++;
    }
    *out = w;
    return HR_OK;
}

void workers_destroy(workers *w)
{
    if (w == NULL) {
        return;
    }
    atomic_store(&w->stop, true);
    begin_turn(w);
    for (uint32_t k = 1; k <= w->started; k++) {
        (void)pthread_join(w->seat[k].thread, NULL);
    }
    hr_free(w->taken);
    hr_free(w);
}

uint32_t workers_count(const workers *w)
{
    return w == NULL ? 1 : w->count;
}

#if defined(__SSE__)
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

uint32_t workers_flush_denormals(void)
{
    const uint32_t before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return before;
}

void workers_restore(uint32_t mode)
{
    _mm_setcsr(mode);
}
#else
uint32_t workers_flush_denormals(void)
{
    return 0;
}

void workers_restore(uint32_t mode)
{
    (void)mode;
}
#endif
