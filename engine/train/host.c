// SPDX-License-Identifier: Apache-2.0
// The engine on a thread of its own, for a workbench: commands through a queue, events through a ring with an
// eventfd, reports and errors as copies under a lock. The engine never waits for its reader.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "headroom/engine.h"

#include "base/clock.h"
#include "base/host_mem.h"
#include "trace/ring.h"

enum {
    HOST_QUEUE = 64,
    HOST_RING_EVENTS = 8192,
    HOST_REPORT_NS = 250 * 1000 * 1000,
    HOST_STEP_MIN_NS = 20 * 1000 * 1000, // of a simulated step, however fast the card
    HOST_AHEAD_NS = 4 * 1000 * 1000,     // what simulated time may be ahead of the clock
};

// A simulated step takes no time of its own: people watch it at the pace of the card. Every event waits until it is
// due; a command ends the waiting for the rest of the step. Engine's thread.
typedef struct pace {
    uint64_t clock_ns, simulated_ns; // where the two met: the beginning of the step
    uint64_t last_ns;                // simulated time of the last event
    uint64_t told_ns;                // time that the last event was told with: no later one has less
    bool simulating, hurried;        // simulating: the build at hand has no clock of its own
} pace;

struct hr_engine_host {
    hr_engine *engine;
    pthread_t thread;
    trace_ring *ring;
    trace_reader *reader;
    int event_fd;
    atomic_bool signalled; // event_fd was written since the reader last looked

    pthread_mutex_t lock; // of everything below
    pthread_cond_t wake;
    hr_command queue[HOST_QUEUE];
    uint32_t queue_first, queue_count;
    hr_report report;
    uint64_t report_version;
    hr_err error;
    uint64_t error_version;

    pace pace;
    uint64_t last_report_ns; // engine's thread
    bool state_changed;      // engine's thread: since the last report, and at the beginning
    hr_status quit_status;   // of the QUIT command; read once the thread has ended
    hr_err quit_error;
};

static void signal_events(hr_engine_host *h)
{
    if (!atomic_exchange(&h->signalled, true)) {
        uint64_t one = 1;
        ssize_t written = write(h->event_fd, &one, sizeof one);
        (void)written; // the counter is far from full
    }
}

// False when a command came first.
static bool wait_until(hr_engine_host *h, uint64_t due_ns)
{
    const uint64_t second_ns = 1000000000;
    const struct timespec until = {.tv_sec = (time_t)(due_ns / second_ns),
                                   .tv_nsec = (long)(due_ns % second_ns)};
    int status = 0;
    pthread_mutex_lock(&h->lock);
    while (h->queue_count == 0 && status == 0) {
        status = pthread_cond_timedwait(&h->wake, &h->lock, &until);
    }
    bool quiet = h->queue_count == 0;
    pthread_mutex_unlock(&h->lock);
    return quiet;
}

static void begin_pace(hr_engine_host *h, uint64_t simulated_ns)
{
    h->pace.clock_ns = clock_now_ns();
    h->pace.simulated_ns = h->pace.last_ns = simulated_ns;
    h->pace.hurried = false;
}

// Waits until an event of this simulated time is due. Returns when that is by the clock.
static uint64_t keep_pace(hr_engine_host *h, uint64_t simulated_ns)
{
    pace *p = &h->pace;
    p->last_ns = simulated_ns;
    if (p->hurried || simulated_ns < p->simulated_ns) {
        return clock_now_ns();
    }
    uint64_t due_ns = p->clock_ns + (simulated_ns - p->simulated_ns);
    if (due_ns > clock_now_ns() + HOST_AHEAD_NS && !wait_until(h, due_ns)) {
        p->hurried = true;
        return clock_now_ns();
    }
    return due_ns;
}

static void end_pace(hr_engine_host *h)
{
    if (h->pace.simulating && !h->pace.hurried) {
        (void)wait_until(h, h->pace.clock_ns + HOST_STEP_MIN_NS);
    }
}

// What readers get has the clock's time, whatever the device: they may see one after the other.
static void on_event(void *context, const hr_event *event)
{
    hr_engine_host *h = context;
    hr_event timed = *event;
    if (event->kind == HR_EVENT_BUILD) {
        h->pace.simulating = hr_knob_is(hr_engine_knobs(h->engine), HR_KNOB_DEVICE_KIND, "plan");
        begin_pace(h, event->time_ns);
    }
    if (h->pace.simulating) {
        timed.time_ns = keep_pace(h, event->time_ns);
    }
    timed.time_ns = timed.time_ns > h->pace.told_ns ? timed.time_ns : h->pace.told_ns;
    h->pace.told_ns = timed.time_ns;
    trace_ring_put(h->ring, &timed);
    h->state_changed = h->state_changed || event->kind == HR_EVENT_STATE;
    signal_events(h);
}

static void publish_error(hr_engine_host *h, const hr_err *err)
{
    pthread_mutex_lock(&h->lock);
    h->error = *err;
    h->error_version++;
    pthread_mutex_unlock(&h->lock);
    signal_events(h);
}

static void publish_report(hr_engine_host *h)
{
    hr_report fresh;
    if (hr_engine_report(h->engine, &fresh, NULL) != HR_OK) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    hr_report_deinit(&h->report);
    h->report = fresh;
    h->report_version++;
    pthread_mutex_unlock(&h->lock);
    signal_events(h);
}

// A knob may lead from one out-of-memory straight to the next: what counts is that the state moved.
static void publish(hr_engine_host *h)
{
    hr_engine_state state = hr_engine_get_state(h->engine);
    uint64_t now_ns = clock_now_ns();
    bool changed = h->state_changed;
    if (changed && (state == HR_ENGINE_OOM || state == HR_ENGINE_FAILED)) {
        publish_error(h, hr_engine_error(h->engine));
    }
    if (changed || (state == HR_ENGINE_RUNNING && now_ns - h->last_report_ns >= HOST_REPORT_NS)) {
        publish_report(h);
        h->last_report_ns = now_ns;
        h->state_changed = false;
    }
}

// Takes the next command; waits for one when `wait`. False when there is none.
static bool take_command(hr_engine_host *h, bool wait, hr_command *out)
{
    pthread_mutex_lock(&h->lock);
    while (wait && h->queue_count == 0) {
        pthread_cond_wait(&h->wake, &h->lock);
    }
    bool any = h->queue_count > 0;
    if (any) {
        *out = h->queue[h->queue_first];
        h->queue_first = (h->queue_first + 1) % HOST_QUEUE;
        h->queue_count--;
    }
    pthread_mutex_unlock(&h->lock);
    return any;
}

static void *run_host(void *context)
{
    hr_engine_host *h = context;
    bool idle = true;
    for (;;) {
        hr_command command;
        while (take_command(h, idle, &command)) {
            hr_err err = {0};
            hr_status status = hr_engine_command(h->engine, &command, &err);
            if (status != HR_OK) {
                publish_error(h, &err);
            }
            if (command.kind == HR_COMMAND_QUIT) {
                h->quit_status = status;
                h->quit_error = err;
                return NULL;
            }
            idle = false;
        }
        begin_pace(h, h->pace.last_ns);
        hr_engine_advance(h->engine, &idle);
        publish(h);
        if (!idle) {
            end_pace(h);
        }
    }
}

static void free_host(hr_engine_host *h)
{
    hr_engine_destroy(h->engine);
    trace_reader_close(h->reader);
    trace_ring_destroy(h->ring);
    if (h->event_fd >= 0) {
        (void)close(h->event_fd);
    }
    hr_report_deinit(&h->report);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
    hr_free(h);
}

// Waits by the monotonic clock: setting the wall clock must not stop a simulation.
static void init_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static hr_status start_host(hr_engine_host *h, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    hr_engine_options options = {.sink = on_event, .sink_context = h};
    HR_TRY(trace_ring_create(HOST_RING_EVENTS, &h->ring, err));
    HR_TRY(trace_reader_of(h->ring, &h->reader, err));
    h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->event_fd < 0) {
        return HR_FAIL(err, STATE, "no event descriptor was to be had");
    }
    HR_TRY(hr_engine_create(preset, knobs, &options, &h->engine, err));
    if (pthread_create(&h->thread, NULL, run_host, h) != 0) {
        return HR_FAIL(err, STATE, "no thread for the engine was to be had");
    }
    return HR_OK;
}

hr_status hr_engine_host_start(const hr_preset *preset, const hr_knobs *knobs, hr_engine_host **out,
                               hr_err *err)
{
    hr_engine_host *h = hr_calloc(1, sizeof *h);
    *out = NULL;
    if (h == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the engine's thread");
    }
    h->event_fd = -1;
    h->state_changed = true;
    pthread_mutex_init(&h->lock, NULL);
    init_wake(&h->wake);
    hr_status status = start_host(h, preset, knobs, err);
    if (status != HR_OK) {
        free_host(h);
        return status;
    }
    *out = h;
    return HR_OK;
}

bool hr_engine_host_send(hr_engine_host *h, const hr_command *command)
{
    pthread_mutex_lock(&h->lock);
    bool room = h->queue_count < HOST_QUEUE;
    if (room) {
        h->queue[(h->queue_first + h->queue_count++) % HOST_QUEUE] = *command;
        pthread_cond_signal(&h->wake);
    }
    pthread_mutex_unlock(&h->lock);
    return room;
}

hr_status hr_engine_host_stop(hr_engine_host *h, hr_err *err)
{
    if (h == NULL) {
        return HR_OK;
    }
    hr_command quit = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_QUIT};
    while (!hr_engine_host_send(h, &quit)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    (void)pthread_join(h->thread, NULL);
    hr_status status = h->quit_status;
    if (status != HR_OK && err != NULL) {
        *err = h->quit_error;
    }
    free_host(h);
    return status;
}

size_t hr_engine_host_events(hr_engine_host *h, hr_event *out, size_t max, uint64_t *lost)
{
    (void)atomic_exchange(&h->signalled, false); // takes over what was put before the signal
    size_t count = trace_reader_take(h->reader, out, max, lost);
    if (count == max) {
        signal_events(h); // there may be more
    }
    return count;
}

int hr_engine_host_event_fd(const hr_engine_host *h)
{
    return h->event_fd;
}

static hr_status copy_report(const hr_report *from, hr_report *to)
{
    *to = *from;
    to->model.layers = NULL;
    to->memory.at_peak.tensors = NULL;
    to->model.layers = hr_calloc(from->model.layer_count, sizeof *to->model.layers);
    to->memory.at_peak.tensors =
        hr_calloc(from->memory.at_peak.tensor_count, sizeof *to->memory.at_peak.tensors);
    bool ok = (to->model.layers != NULL || from->model.layer_count == 0) &&
              (to->memory.at_peak.tensors != NULL || from->memory.at_peak.tensor_count == 0);
    for (size_t k = 0; ok && k < from->model.layer_count; k++) {
        to->model.layers[k] = from->model.layers[k];
    }
    for (size_t k = 0; ok && k < from->memory.at_peak.tensor_count; k++) {
        to->memory.at_peak.tensors[k] = from->memory.at_peak.tensors[k];
    }
    return ok ? HR_OK : HR_NOMEM;
}

bool hr_engine_host_report(hr_engine_host *h, uint64_t *version, hr_report *report)
{
    pthread_mutex_lock(&h->lock);
    bool newer = h->report_version > *version;
    if (newer && copy_report(&h->report, report) != HR_OK) {
        hr_report_deinit(report);
        newer = false;
    }
    if (newer) {
        *version = h->report_version;
    }
    pthread_mutex_unlock(&h->lock);
    return newer;
}

bool hr_engine_host_error(hr_engine_host *h, uint64_t *version, hr_err *err)
{
    pthread_mutex_lock(&h->lock);
    bool newer = h->error_version > *version;
    if (newer) {
        *err = h->error;
        *version = h->error_version;
    }
    pthread_mutex_unlock(&h->lock);
    return newer;
}
