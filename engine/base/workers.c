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

typedef struct work {
    int64_t items, grain;
    uint32_t ranges;
    cpu_body body;
    const void *argument;
} work;

struct workers {
    uint32_t count; // the caller included
    uint32_t started;
    work work;                   // of this turn; written while every worker waits
    _Atomic uint32_t turn;       // rises with every piece of work
    _Atomic uint32_t unfinished; // workers that have not done theirs
    _Atomic uint32_t asleep;     // workers that wait for `turn` in the kernel
    _Atomic bool caller_asleep;
    _Atomic bool stop;
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

uint32_t cpu_for_ranges(const workers *w, int64_t items, int64_t grain)
{
    const int64_t blocks = blocks_of(items, grain);
    if (blocks < 1) {
        return 1;
    }
    const uint32_t count = workers_count(w);
    return blocks < (int64_t)count ? (uint32_t)blocks : count;
}

static void run_range(const work *k, uint32_t worker)
{
    if (worker >= k->ranges) {
        return;
    }
    const int64_t blocks = blocks_of(k->items, k->grain);
    const int64_t begin = blocks * worker / k->ranges * k->grain;
    const int64_t end = blocks * (worker + 1) / k->ranges * k->grain;
    k->body(k->argument, begin, end < k->items ? end : k->items, worker);
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
    for (uint32_t turn = 0;;) {
        await_turn(w, turn);
        turn++;
        if (atomic_load(&w->stop)) {
            return NULL;
        }
        run_range(&w->work, seat->number);
        if (atomic_fetch_sub(&w->unfinished, 1) == 1 && atomic_load(&w->caller_asleep)) {
            futex_wake_all(&w->unfinished);
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

static void await_workers(workers *w)
{
    for (;;) {
        uint32_t left = atomic_load(&w->unfinished);
        if (left == 0) {
            return;
        }
        if (!poll_for_change(&w->unfinished, left)) {
            atomic_store(&w->caller_asleep, true);
            left = atomic_load(&w->unfinished);
            if (left != 0) {
                futex_wait(&w->unfinished, left);
            }
            atomic_store(&w->caller_asleep, false);
        }
    }
}

void cpu_for(workers *w, int64_t items, int64_t grain, cpu_body body, const void *argument)
{
    const uint32_t ranges = cpu_for_ranges(w, items, grain);
    if (ranges == 1) {
        body(argument, 0, items, 0);
        return;
    }
    w->work = (work){items, grain, ranges, body, argument};
    atomic_store(&w->unfinished, w->started);
    begin_turn(w);
    run_range(&w->work, 0);
    await_workers(w);
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
