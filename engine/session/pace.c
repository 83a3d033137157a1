// SPDX-License-Identifier: Apache-2.0
#include "session/pace.h"

#include "base/clock.h"

enum {
    STEP_MIN_NS = 20 * 1000 * 1000, // of a simulated step, however fast the card
    AHEAD_NS = 4 * 1000 * 1000,     // what simulated time may be ahead of the clock
    BEAT_NS = 500 * 1000 * 1000     // waiting counts as progress: the heartbeat shows that nothing hangs
};

// False when a command came first.
static bool wait_until(const pace *p, uint64_t due_ns)
{
    for (uint64_t now_ns = clock_now_ns(); now_ns < due_ns; now_ns = clock_now_ns()) {
        uint64_t until_ns = due_ns - now_ns > BEAT_NS ? now_ns + BEAT_NS : due_ns;
        atomic_fetch_add_explicit(&p->out->heartbeat->beats, 1, memory_order_relaxed);
        if (p->out->wait(p->out->context, until_ns)) {
            return false;
        }
    }
    return true;
}

static void meet(pace *p, uint64_t simulated_ns)
{
    p->clock_ns = clock_now_ns();
    p->simulated_ns = p->last_ns = simulated_ns;
    p->hurried = false;
}

void pace_begin_step(pace *p)
{
    if (p->out != NULL) {
        meet(p, p->last_ns);
    }
}

// When an event of this simulated time is due by the clock.
static uint64_t keep(pace *p, uint64_t simulated_ns)
{
    p->last_ns = simulated_ns;
    if (p->hurried || simulated_ns < p->simulated_ns) {
        return clock_now_ns();
    }
    uint64_t due_ns = p->clock_ns + (simulated_ns - p->simulated_ns);
    if (due_ns > clock_now_ns() + AHEAD_NS && !wait_until(p, due_ns)) {
        p->hurried = true;
        return clock_now_ns();
    }
    return due_ns;
}

uint64_t pace_event(pace *p, const hr_event *event, bool simulates)
{
    if (p->out == NULL) {
        p->simulating = event->kind == HR_EVENT_BUILD ? simulates : p->simulating;
        p->told_ns = simulates && !p->simulating ? p->told_ns : event->time_ns;
        return p->told_ns;
    }
    if (event->kind == HR_EVENT_BUILD) {
        p->simulating = simulates;
        meet(p, event->time_ns);
    }
    uint64_t time_ns = p->simulating ? keep(p, event->time_ns) : event->time_ns;
    p->told_ns = time_ns > p->told_ns ? time_ns : p->told_ns;
    return p->told_ns;
}

void pace_end_step(pace *p)
{
    if (p->out != NULL && p->simulating && !p->hurried) {
        (void)wait_until(p, p->clock_ns + STEP_MIN_NS);
    }
}
