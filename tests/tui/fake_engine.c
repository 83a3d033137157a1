// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "tests/tui/fake_engine_inside.h"

enum {
    STEPS_PER_EPOCH = 100,
    STEP_NS = 40000000, // at batch 128
    REPORT_EVERY = 6,   // steps
};

static bool is_manual;

void fake_engine_set_manual(bool manual)
{
    is_manual = manual;
}

void fake_put(hr_session *h, hr_event event)
{
    event.version = HR_EVENT_VERSION;
    event.step = h->step;
    event.seq = h->put;
    event.time_ns = h->time_ns;
    event.phase = (uint8_t)h->phase;
    h->ring[h->put++ % FAKE_RING] = event;
    uint64_t one = 1;
    (void)!write(h->fd, &one, sizeof one);
}

void fake_engine_refuse(hr_session *session, const hr_err *err)
{
    session->refusal = *err;
}

void fake_engine_say(hr_session *host, const hr_event *event)
{
    pthread_mutex_lock(&host->lock);
    fake_put(host, *event);
    pthread_mutex_unlock(&host->lock);
}

void fake_put_note(hr_session *h, hr_event_kind kind, uint64_t count, const char *text)
{
    hr_event e = {.kind = (uint8_t)kind, .instr = HR_NO_ID};
    e.u.note.count = count;
    snprintf(e.u.note.text, sizeof e.u.note.text, "%.*s", (int)sizeof e.u.note.text - 1, text);
    fake_put(h, e);
}

// ---- pieces of work -------------------------------------------------------------------------------------------

static void set_state(hr_session *h, hr_engine_state state, const char *why)
{
    if (h->state != state) {
        h->state = state;
        fake_put_note(h, HR_EVENT_STATE, state, why);
    }
}

// One step that says nothing. When it does not fit, the heap stands as it stood at the failure.
static bool try_step(hr_session *h)
{
    hr_session *tried = hr_calloc(1, sizeof *tried);
    if (tried == NULL) {
        return false;
    }
    *tried = *h;
    tried->dry = true;
    fake_run_program(tried);
    bool fits = !tried->failed;
    if (!fits) {
        h->failing = tried->failing;
        h->in_use = tried->in_use;
        h->tensor_count = tried->tensor_count;
        memcpy(h->tensors, tried->tensors, sizeof h->tensors);
    }
    hr_free(tried);
    return fits;
}

static void build(hr_session *h)
{
    fake_empty_heap(h);
    fake_set_limit(h);
    h->phase = HR_PHASE_BUILD;
    fake_put_note(h, HR_EVENT_BUILD, 0, h->step == 0 ? "start" : "a knob was turned");
    fake_allocate_weights(h);
    h->built = try_step(h);
    if (h->built) {
        return;
    }
    hr_event e = {.kind = HR_EVENT_OOM, .category = (uint8_t)h->failing.category};
    e.u.memory.requested_bytes = h->failing.requested_bytes;
    e.u.memory.largest_free_bytes = h->limit - h->in_use;
    fake_put(h, e);
    set_state(h, HR_ENGINE_OOM, "the step does not fit");
    snprintf(h->error.sentence, sizeof h->error.sentence, "the step does not fit");
    h->error.status = HR_OOM;
    h->error_version++;
    fake_publish_report(h);
}

static void finish_epoch(hr_session *h)
{
    fake_put_note(h, HR_EVENT_EPOCH, h->step / STEPS_PER_EPOCH, "");
    hr_event e = {.kind = HR_EVENT_EVAL};
    e.u.step.loss = 0.1 + 2.2 * exp(-(double)h->step / 300);
    e.u.step.accuracy = 1 - 0.9 * exp(-(double)h->step / 250);
    fake_put(h, e);
}

static void run_step(hr_session *h)
{
    uint64_t batch = (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE), duration = STEP_NS * batch / 128;
    uint32_t noise = (h->step + 1) * 2654435761u;
    h->tick_ns = duration / 64;
    uint64_t start = h->time_ns;
    fake_run_program(h);
    h->step++;
    h->time_ns = start + duration;
    hr_event e = {.kind = HR_EVENT_STEP};
    e.u.step = (hr_event_step){.loss = 0.08 + 2.2 * exp(-(double)h->step / 300) + (noise >> 24) * 0.0004,
                               .accuracy = (double)NAN,
                               .duration_ns = duration,
                               .samples = batch,
                               .peak_in_use_bytes = h->peak,
                               .floor_in_use_bytes = h->floor};
    fake_put(h, e);
    hr_event stage = {.kind = HR_EVENT_PIPELINE};
    stage.u.stage = (hr_event_stage){.host_bytes = 3 * 12288 * batch, .queue_length = 2, .queue_capacity = 2};
    snprintf(stage.u.stage.name, sizeof stage.u.stage.name, "prefetch");
    fake_put(h, stage);
    if (h->step % STEPS_PER_EPOCH == 0) {
        finish_epoch(h);
    }
    if (h->step % REPORT_EVERY == 1) {
        fake_publish_report(h);
    }
}

static void take_knob(hr_session *h, const hr_command *c)
{
    hr_err err = h->refusal;
    h->refusal.status = HR_OK;
    if (err.status != HR_OK || hr_knobs_set(&h->knobs, (hr_knob_id)c->knob, c->text, &err) != HR_OK) {
        h->error = err;
        h->error_version++;
        return;
    }
    size_t count;
    fake_put_note(h, HR_EVENT_KNOB, c->knob, c->text);
    h->built = h->built && hr_knob_rows(&count)[c->knob].hot;
    if (h->state == HR_ENGINE_OOM || h->state == HR_ENGINE_FAILED) {
        set_state(h, HR_ENGINE_RUNNING, "");
    }
}

static void take_commands(hr_session *h)
{
    for (size_t i = 0; i < h->queue_count; i++) {
        const hr_command *c = &h->queue[i];
        switch ((hr_command_kind)c->kind) {
        case HR_COMMAND_RUN:
            set_state(h, HR_ENGINE_RUNNING, "");
            break;
        case HR_COMMAND_PAUSE:
        case HR_COMMAND_STOP:
            set_state(h, HR_ENGINE_PAUSED, "");
            break;
        case HR_COMMAND_KNOB:
            take_knob(h, c);
            break;
        case HR_COMMAND_SAVE:
            fake_put_note(h, HR_EVENT_SAVED, 0, c->text);
            break;
        case HR_COMMAND_KEEP:
        case HR_COMMAND_EVALUATE:
        case HR_COMMAND_GUEST:
        case HR_COMMAND_COUNT:
            break;
        case HR_COMMAND_RANKS:
            fake_put_ranks(h, c->text);
            break;
        case HR_COMMAND_QUIT:
            h->quits = true;
            break;
        }
    }
    h->queue_count = 0;
}

static void do_piece(hr_session *h)
{
    take_commands(h);
    if (h->state != HR_ENGINE_RUNNING) {
        return;
    }
    if (!h->built) {
        build(h);
    } else {
        run_step(h);
    }
}

void fake_engine_advance(hr_session *host, unsigned pieces)
{
    pthread_mutex_lock(&host->lock);
    take_commands(host);
    for (unsigned i = 0; i < pieces; i++) {
        do_piece(host);
    }
    pthread_mutex_unlock(&host->lock);
}

static void *run_thread(void *context)
{
    hr_session *h = context;
    for (bool quits = false; !quits;) {
        struct timespec now, pause = {0, 0};
        pthread_mutex_lock(&h->lock);
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        h->time_ns = clock_ns > h->time_ns ? clock_ns : h->time_ns;
        do_piece(h);
        pause.tv_nsec = h->time_ns > clock_ns ? (long)((h->time_ns - clock_ns) % 1000000000u) : 2000000;
        quits = h->quits;
        pthread_mutex_unlock(&h->lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

// ---- hr_session_* -----------------------------------------------------------------------------------------

hr_status hr_session_start(const hr_session_options *options, hr_session **out, hr_err *err)
{
    *out = NULL;
    hr_session *h = hr_calloc(1, sizeof *h);
    if (h == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for the scripted engine");
    }
    h->knobs = *options->knobs;
    h->time_ns = 1000000000;
    h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&h->lock, NULL);
    fake_set_limit(h);
    h->threaded = !is_manual;
    if (h->threaded && pthread_create(&h->thread, NULL, run_thread, h) != 0) {
        hr_free(h);
        return HR_FAIL(err, STATE, "no thread for the scripted engine");
    }
    *out = h;
    return HR_OK;
}

bool hr_session_try_stop(hr_session *host)
{
    host->looks_left -= host->looks_left > 0;
    return host->looks_left == 0 || host->life == HR_SESSION_ENDED;
}

void fake_engine_save_long(hr_session *host, unsigned looks)
{
    host->looks_left = looks;
}

hr_status hr_session_stop(hr_session *host, hr_err *err)
{
    (void)err;
    if (host == NULL) {
        return HR_OK;
    }
    pthread_mutex_lock(&host->lock);
    host->quits = true;
    pthread_mutex_unlock(&host->lock);
    if (host->threaded) {
        pthread_join(host->thread, NULL);
    }
    pthread_mutex_destroy(&host->lock);
    close(host->fd);
    hr_report_deinit(&host->report);
    hr_free(host);
    return HR_OK;
}

bool hr_session_send(hr_session *host, const hr_command *command)
{
    if (host->read_only) {
        return false;
    }
    pthread_mutex_lock(&host->lock);
    bool room = host->queue_count < FAKE_QUEUE;
    if (room) {
        host->queue[host->queue_count++] = *command;
    }
    pthread_mutex_unlock(&host->lock);
    return room;
}

size_t hr_session_events(hr_session *host, hr_event *out, size_t max, uint64_t *lost)
{
    size_t count = 0;
    pthread_mutex_lock(&host->lock);
    *lost = host->put - host->taken > FAKE_RING ? host->put - host->taken - FAKE_RING : 0;
    host->taken += *lost;
    while (count < max && host->taken < host->put) {
        out[count++] = host->ring[host->taken++ % FAKE_RING];
    }
    uint64_t wakes;
    if (host->taken == host->put) {
        (void)!read(host->fd, &wakes, sizeof wakes);
    }
    pthread_mutex_unlock(&host->lock);
    return count;
}

int hr_session_fd(const hr_session *host)
{
    return host->fd;
}

bool hr_session_report(hr_session *host, uint64_t *version, hr_report *report)
{
    pthread_mutex_lock(&host->lock);
    bool newer = host->report_version > *version;
    if (newer) {
        *version = host->report_version;
        *report = host->report;
        host->report = (hr_report){0}; // its tensors are the caller's now
    }
    pthread_mutex_unlock(&host->lock);
    return newer;
}

// Its addresses are made up: there is no heap to take a snapshot of.
void hr_session_ask_heap(hr_session *session)
{
    (void)session;
}

bool hr_session_heap_now(hr_session *session, uint64_t *version, hr_session_heap *heap)
{
    (void)session, (void)version, (void)heap;
    return false;
}

void hr_session_heap_deinit(hr_session_heap *heap)
{
    *heap = (hr_session_heap){0};
}

bool hr_session_error(hr_session *host, uint64_t *version, hr_err *err)
{
    pthread_mutex_lock(&host->lock);
    bool newer = host->error_version > *version;
    if (newer) {
        *version = host->error_version;
        *err = host->error;
    }
    pthread_mutex_unlock(&host->lock);
    return newer;
}

hr_status hr_session_start_inline(const hr_session_options *options, hr_session **out, hr_err *err)
{
    return hr_session_start(options, out, err);
}

// Whatever the path: the demo, as somebody else trains it.
hr_status hr_session_attach(const char *path, hr_session **out, hr_err *err)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN};
    const hr_session_options options = {.preset = path, .knobs = hr_preset_knobs(fake_preset())};
    HR_TRY(hr_session_start(&options, out, err));
    (void)hr_session_send(*out, &run);
    (*out)->read_only = true;
    return HR_OK;
}

bool hr_session_about(const hr_session *host, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs)
{
    preset[0] = '\0';
    *knobs = host->knobs;
    return !host->read_only;
}

bool hr_session_is_read_only(const hr_session *host)
{
    return host->read_only;
}

hr_session_life hr_session_get_life(hr_session *host, hr_session_end *end)
{
    if (host->life != HR_SESSION_LIVE) {
        *end = host->end;
    }
    return host->life;
}

void hr_session_kill(hr_session *host)
{
    fake_engine_end(host, HR_SESSION_ENDED,
                    &(hr_session_end){.signal = 9, .exit_code = -1, .saved_step = HR_NONE});
}

void fake_engine_end(hr_session *host, hr_session_life life, const hr_session_end *end)
{
    host->life = life;
    host->end = *end;
}

void hr_session_suspend(hr_session *host, bool suspend)
{
    (void)host, (void)suspend;
}
