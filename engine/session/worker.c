// SPDX-License-Identifier: Apache-2.0
// The worker: the engine's loop on the main thread, a server for owner and watchers beside it.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "session/engine_loop.h"
#include "session/serve.h"
#include "session/server.h"

enum { RING_EVENTS = 1 << 14, SAID_NS = 50 * 1000 * 1000, SAID_POSTS = 8 };

typedef struct worker {
    open_request request;
    sigset_t endings;
    trace_ring *ring;
    server *server;
    engine_loop *loop;
    session_callbacks out;
    pthread_mutex_t said_lock; // of what follows
    said_log said;
    uint64_t said_ns, posted; // since when, and how much of it went out
    unsigned posts;           // since then
    bool owes;                // the server's thread knows of what did not
} worker;

// ---- the callbacks -----------------------------------------------------------------------------------------------

static void on_event(void *context, const hr_event *event)
{
    server_put(((worker *)context)->server, event);
}

static void on_report(void *context, const hr_report *report)
{
    wire_out body = {0};
    put_report(&body, report);
    server_post(((worker *)context)->server, MESSAGE_REPORT, &body);
}

static void on_error(void *context, const hr_err *err)
{
    wire_out body = {0};
    put_error(&body, err);
    server_post(((worker *)context)->server, MESSAGE_ERROR, &body);
}

// Without a save to write at the end a step that is cut short is not kept.
static void on_knobs(void *context, const hr_knobs *knobs)
{
    worker *w = context;
    wire_out body = {0};
    put_about(&body, w->request.preset, knobs);
    server_post(w->server, MESSAGE_ABOUT, &body);
    server_may_end(w->server, hr_knob_text(knobs, HR_KNOB_TRAIN_SAVE)[0] == '\0');
}

static void on_heap(void *context, const hr_session_heap *heap)
{
    wire_out body = {0};
    put_heap(&body, heap);
    server_post(((worker *)context)->server, MESSAGE_HEAP, &body);
}

static void post_said(worker *w)
{
    wire_out body = {0};
    put_said(&body, &w->said);
    server_post(w->server, MESSAGE_SAID, &body);
    w->posts++;
    w->posted = w->said.total;
    w->owes = false;
}

static void begin_period(worker *w, uint64_t now_ns)
{
    if (now_ns - w->said_ns >= SAID_NS) {
        w->said_ns = now_ns;
        w->posts = 0;
    }
}

// At once, as what says it may hang on its next line; but what is said by the thousand twenty times a second.
static void on_said(void *context, hr_guest_line kind, const char *text, size_t length, bool now)
{
    worker *w = context;
    pthread_mutex_lock(&w->said_lock);
    said_add(&w->said, kind, text, length);
    const bool any = w->said.total > w->posted;
    if (any) {
        begin_period(w, clock_now_ns());
    }
    const bool leaves = any && !now && w->posts >= SAID_POSTS, rings = leaves && !w->owes;
    w->owes = w->owes || leaves;
    if (any && !leaves) {
        post_said(w);
    }
    pthread_mutex_unlock(&w->said_lock);
    if (rings) {
        server_ring_bell(w->server);
    }
}

// On the server's thread: the guest may have hung behind its last word, or be silent for long.
static uint64_t look_at_said(void *context)
{
    worker *w = context;
    pthread_mutex_lock(&w->said_lock);
    if (w->owes) {
        begin_period(w, clock_now_ns());
    }
    if (w->owes && w->posts < SAID_POSTS) {
        post_said(w);
    }
    const uint64_t due_ns = w->owes ? w->said_ns + SAID_NS : UINT64_MAX;
    pthread_mutex_unlock(&w->said_lock);
    return due_ns;
}

static bool wants_heap(void *context)
{
    return server_wants_heap(((worker *)context)->server);
}

static bool take(void *context, hr_command *command)
{
    return server_take(((worker *)context)->server, command);
}

static bool wait(void *context, uint64_t until_ns)
{
    return server_wait(((worker *)context)->server, until_ns);
}

static void writing(void *context, bool begins)
{
    server_writing(((worker *)context)->server, begins);
}

// ---- the process ----------------------------------------------------------------------------------------------

// The owner's first word. It may take its time: until then nothing is done.
static bool wait_for_open(wire *owner, open_request *request)
{
    wire_message m;
    while (!wire_read(owner, &m)) {
        struct pollfd fd = {.fd = wire_fd(owner), .events = POLLIN};
        if (wire_is_closed(owner)) {
            return false;
        }
        (void)poll(&fd, 1, -1);
    }
    return m.kind == MESSAGE_OPEN && m.fd < 0 && get_open(&m, request);
}

// Blocked from here on in all threads that come.
static void block_endings(sigset_t *endings)
{
    static const int numbers[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU};
    (void)sigemptyset(endings);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        (void)sigaddset(endings, numbers[k]);
    }
    (void)pthread_sigmask(SIG_BLOCK, endings, NULL);
}

// Whoever asks how it ended is told so.
static void end_as_told(int number, const sigset_t *endings)
{
    if (number != 0) {
        (void)raise(number);
        (void)pthread_sigmask(SIG_UNBLOCK, endings, NULL);
    }
}

static hr_status open_worker(worker *w, wire *owner, const hr_guest_ops *guest, hr_err *err)
{
    hr_status status = trace_ring_create(RING_EVENTS, &w->ring, err);
    if (status != HR_OK) {
        wire_destroy(owner);
        return status;
    }
    const server_options options = {.ring = w->ring,
                                    .owner = owner,
                                    .endings = &w->endings,
                                    .interrupt = guest != NULL ? guest->interrupt : NULL,
                                    .look = look_at_said,
                                    .look_context = w,
                                    .watchable = w->request.watchable,
                                    .preset = w->request.preset,
                                    .knobs = &w->request.knobs};
    w->out = (session_callbacks){.context = w,
                                 .event = on_event,
                                 .report = on_report,
                                 .error = on_error,
                                 .knobs = on_knobs,
                                 .heap = on_heap,
                                 .wants_heap = wants_heap,
                                 .take = take,
                                 .wait = wait,
                                 .said = on_said,
                                 .writing = writing,
                                 .heartbeat = trace_ring_heartbeat(w->ring)};
    return server_start(&options, &w->server, err);
}

static hr_status work(worker *w, const hr_guest_ops *guest, hr_err *err)
{
    hr_status status = engine_loop_create(&w->request, &w->out, guest, &w->loop, err);
    if (status != HR_OK) {
        on_error(w, err);
        return status;
    }
    on_knobs(w, engine_loop_knobs(w->loop));
    engine_loop_report(w->loop);
    engine_loop_run(w->loop);
    return engine_loop_ending(w->loop, err);
}

static void say_end(worker *w, hr_status status, const hr_err *err)
{
    wire_out body = {0};
    put_ended(&body, status, err);
    server_post(w->server, MESSAGE_ENDED, &body);
}

int worker_serve(int socket, const hr_guest_ops *guest)
{
    worker *w = hr_calloc(1, sizeof *w);
    wire *owner = NULL;
    hr_err err = {0};
    if (w == NULL || wire_create(socket, MESSAGE_KINDS, &owner, &err) != HR_OK) {
        hr_free(w);
        return hr_status_exit_code(HR_NOMEM);
    }
    if (!wait_for_open(owner, &w->request)) {
        wire_destroy(owner);
        hr_free(w);
        return hr_status_exit_code(HR_USAGE);
    }
    block_endings(&w->endings);
    pthread_mutex_init(&w->said_lock, NULL);
    hr_status status = open_worker(w, owner, guest, &err);
    if (status == HR_OK) {
        status = work(w, guest, &err);
        say_end(w, status, &err);
    } else {
        (void)fprintf(stderr, "%s\n", err.sentence); // there is no other way to say it
    }
    const int ended_by = w->server == NULL ? 0 : server_ended_by(w->server);
    const sigset_t endings = w->endings;
    engine_loop_destroy(w->loop);
    server_stop(w->server);
    trace_ring_destroy(w->ring);
    pthread_mutex_destroy(&w->said_lock);
    hr_free(w);
    end_as_told(ended_by, &endings);
    return hr_status_exit_code(status);
}
