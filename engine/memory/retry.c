// SPDX-License-Identifier: Apache-2.0
#include "memory/retry.h"

#include <time.h>

#include "base/clock.h"
#include "base/host_mem.h"

#define NS_PER_S UINT64_C(1000000000)

struct retry {
    allocator *heap;
    retry_clock clock;
    pthread_mutex_t lock;
    pthread_cond_t freed;
};

static uint64_t system_now_ns(void *context)
{
    (void)context;
    return clock_now_ns();
}

static void system_sleep(void *context, pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until_ns)
{
    (void)context;
    struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
    (void)pthread_cond_timedwait(wake, lock, &until);
}

static const retry_clock system_clock = {.now_ns = system_now_ns, .sleep = system_sleep};

static bool init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(condition, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return made;
}

hr_status retry_open(allocator *heap, const retry_clock *clock, retry **out, hr_err *err)
{
    *out = NULL;
    retry *r = hr_calloc(1, sizeof *r);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "retry: needed %zu bytes of host memory, had none", sizeof *r);
    }
    r->heap = heap;
    r->clock = clock == NULL ? system_clock : *clock;
    if (!init_condition(&r->freed)) {
        hr_free(r);
        return HR_FAIL(err, NOMEM, "retry: needed a condition to wait for, the system gave none");
    }
    (void)pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return HR_OK;
}

void retry_close(retry *r)
{
    if (r != NULL) {
        (void)pthread_cond_destroy(&r->freed);
        (void)pthread_mutex_destroy(&r->lock);
        hr_free(r);
    }
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return b < (uint64_t)INT64_MAX - a ? a + b : (uint64_t)INT64_MAX;
}

// The attempts before the last one, which no bus hears of. OOM when there is no time left.
static hr_status attempt(retry *r, const allocator_request *request, uint64_t wait_ns, uint64_t *address,
                         hr_err *err)
{
    uint64_t until_ns = 0;
    for (bool first = true;; first = false) {
        hr_status status = r->heap->ops->alloc(r->heap, request, address, err);
        if (status != HR_OOM) {
            return status;
        }
        uint64_t now_ns = r->clock.now_ns(r->clock.context);
        until_ns = first ? add_capped(now_ns, wait_ns) : until_ns;
        if (now_ns >= until_ns) {
            return HR_OOM;
        }
        r->clock.sleep(r->clock.context, &r->freed, &r->lock, until_ns);
    }
}

hr_status retry_serve(retry *r, const allocator_request *request, uint64_t wait_ns, uint64_t *address,
                      hr_err *err)
{
    hr_status status = HR_OOM;
    *address = 0;
    (void)pthread_mutex_lock(&r->lock);
    if (wait_ns > 0 && request->bytes > 0) {
        status = attempt(r, request, wait_ns, address, err);
    }
    if (status != HR_OK) {
        status = allocator_serve(r->heap, request, address, err);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}

void retry_free(retry *r, uint64_t address)
{
    (void)pthread_mutex_lock(&r->lock);
    allocator_free(r->heap, address);
    (void)pthread_cond_broadcast(&r->freed);
    (void)pthread_mutex_unlock(&r->lock);
}

void retry_act(retry *r, void (*act)(allocator *heap, void *context), void *context)
{
    (void)pthread_mutex_lock(&r->lock);
    act(r->heap, context);
    (void)pthread_cond_broadcast(&r->freed);
    (void)pthread_mutex_unlock(&r->lock);
}
