// SPDX-License-Identifier: Apache-2.0
#include "session/server.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "session/server_impl.h"

enum { FIRST_CLIENT = 3 }; // behind the bell, the door and the signals

void server_ring_bell(server *s)
{
    uint64_t one = 1;
    ssize_t written = write(s->event_fd, &one, sizeof one);
    (void)written; // the counter is far from full
}

// ---- the thread -----------------------------------------------------------------------------------------------

// Takes over what was posted. True once the end was.
static bool take_posts(server *s)
{
    uint64_t count = 0;
    ssize_t got = read(s->event_fd, &count, sizeof count);
    (void)got;
    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < MESSAGE_KINDS; k++) {
        if (s->posted[k].version > s->held[k].version) {
            wire_out_deinit(&s->held[k].body);
            s->held[k] = s->posted[k];
            s->posted[k].body = (wire_out){0};
        }
    }
    bool ending = s->ending;
    pthread_mutex_unlock(&s->lock);
    return ending;
}

static bool has_sleepers(const server *s)
{
    bool any = false;
    for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
        any = any || (s->clients[k].wire != NULL && !s->clients[k].woken);
    }
    return any;
}

// While all clients have been woken and none has come back, events need not ring.
static void tell_all(server *s)
{
    if (has_sleepers(s)) {
        (void)atomic_exchange(&s->signalled, false);
    }
    for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
        if (s->clients[k].wire != NULL) {
            client_tell(s, &s->clients[k]);
        }
    }
}

// While the engine has commands enough its owner waits, and that it has hung up must not wake us either; server_take
// rings.
static short wanted_of(server *s, const client *c)
{
    const short events = wire_events(c->wire);
    return c->owner && !server_has_room(s) ? (short)(events & ~POLLIN) : events;
}

// 0: connections are accepted.
static int deaf_ms(const server *s)
{
    const uint64_t now_ns = s->deaf_until_ns != 0 ? clock_now_ns() : 0;
    return s->deaf_until_ns > now_ns ? (int)((s->deaf_until_ns - now_ns) / 1000000) + 1 : 0;
}

// Until when nothing has to be looked at; −1: for ever.
static int rest_ms(const server *s)
{
    const int deaf = deaf_ms(s);
    const uint64_t due_ns = s->look != NULL ? s->look(s->look_context) : UINT64_MAX;
    const uint64_t now_ns = due_ns != UINT64_MAX ? clock_now_ns() : 0;
    const int due = due_ns == UINT64_MAX ? INT_MAX
                    : due_ns > now_ns    ? (int)((due_ns - now_ns) / 1000000) + 1
                                         : 0;
    const int rest = deaf > 0 && deaf < due ? deaf : due;
    return rest == INT_MAX ? -1 : rest;
}

static uint32_t fill_polls(server *s, struct pollfd *fds, client **who)
{
    uint32_t count = 0;
    fds[count++] = (struct pollfd){.fd = s->event_fd, .events = POLLIN};
    // −1 is passed over
    fds[count++] = (struct pollfd){.fd = deaf_ms(s) > 0 ? -1 : s->listening, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
        if (s->clients[k].wire != NULL) {
            const short wanted = wanted_of(s, &s->clients[k]);
            who[count] = &s->clients[k];
            fds[count++] =
                (struct pollfd){.fd = wanted != 0 ? wire_fd(s->clients[k].wire) : -1, .events = wanted};
        }
    }
    return count;
}

// Everything that is held goes out, as far as its reader takes it in time.
static void bid_farewell(server *s)
{
    const uint64_t until_ns = clock_now_ns() + FAREWELL_NS;
    bool pending = true;
    while (pending && clock_now_ns() < until_ns) {
        pending = false;
        for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
            client *c = &s->clients[k];
            if (c->wire != NULL && !wire_is_closed(c->wire)) {
                wire_flush(c->wire);
                client_tell(s, c);
                pending = pending || !client_is_served(c) ||
                          c->seen[MESSAGE_ENDED] < s->held[MESSAGE_ENDED].version;
            }
        }
        if (pending) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
}

static void *serve_clients(void *context)
{
    server *s = context;
    struct pollfd fds[SERVER_CLIENTS + FIRST_CLIENT];
    client *who[SERVER_CLIENTS + FIRST_CLIENT] = {NULL};
    for (;;) {
        uint32_t count = fill_polls(s, fds, who);
        if (poll(fds, count, rest_ms(s)) < 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            if (take_posts(s)) {
                bid_farewell(s);
                return NULL;
            }
            tell_all(s);
        }
        if (fds[2].revents != 0) {
            server_hear_ending(s);
        }
        for (uint32_t k = FIRST_CLIENT; k < count; k++) {
            if (fds[k].revents != 0) {
                client_attend(s, who[k]);
            }
        }
        if (fds[1].revents != 0) {
            server_admit(s);
        }
    }
}

// ---- start, stop ----------------------------------------------------------------------------------------------

// Waits by the monotonic clock: setting the wall clock must not stop anything.
static void init_locks(server *s)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->writing, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_server(server *s)
{
    for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
        wire_destroy(s->clients[k].wire);
    }
    for (uint32_t k = 0; k < MESSAGE_KINDS; k++) {
        wire_out_deinit(&s->held[k].body);
        wire_out_deinit(&s->posted[k].body);
    }
    if (s->listening >= 0) {
        (void)close(s->listening);
        (void)unlink(s->path);
    }
    if (s->event_fd >= 0) {
        (void)close(s->event_fd);
    }
    if (s->signals >= 0) {
        (void)close(s->signals);
    }
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->writing);
    pthread_mutex_destroy(&s->lock);
    hr_free(s);
}

// A run that cannot be watched is a run all the same.
static void listen_for_watchers(server *s)
{
    if (!watch_path(getpid(), s->path) || watch_listen(s->path, &s->listening, NULL) != HR_OK) {
        s->path[0] = '\0';
    }
}

// Signals are the process's own thread's, but for those of a crash.
static bool start_thread(server *s)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t held, before;
    (void)sigfillset(&held);
    for (size_t k = 0; k < sizeof crashes / sizeof *crashes; k++) {
        (void)sigdelset(&held, crashes[k]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &held, &before);
    const bool started = pthread_create(&s->thread, NULL, serve_clients, s) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static hr_status open_server(server *s, const server_options *options, hr_err *err)
{
    wire_out about = {0};
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event_fd < 0) {
        return HR_FAIL(err, STATE, "no event descriptor was to be had: %s", strerror(errno));
    }
    if (options->endings != NULL) {
        s->signals = signalfd(-1, options->endings, SFD_CLOEXEC | SFD_NONBLOCK);
        if (s->signals < 0) { // the engine's thread holds these signals back: no other thread would get them
            return HR_FAIL(err, STATE, "no descriptor for signals was to be had: %s", strerror(errno));
        }
    }
    if (options->watchable) {
        listen_for_watchers(s);
    }
    (void)text_copy(s->preset, sizeof s->preset, options->preset);
    put_about(&about, s->preset, options->knobs);
    server_post(s, MESSAGE_ABOUT, &about);
    (void)take_posts(s);
    if (s->clients[0].wire != NULL) {
        client_greet(s, &s->clients[0]);
    }
    return start_thread(s) ? HR_OK : HR_FAIL(err, STATE, "no thread to serve watchers was to be had");
}

hr_status server_start(const server_options *options, server **out, hr_err *err)
{
    server *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        wire_destroy(options->owner);
        return HR_FAIL(err, NOMEM, "no host memory to serve watchers");
    }
    s->ring = options->ring;
    s->event_fd = s->listening = s->signals = -1;
    s->owned = options->owner != NULL;
    s->interrupt = options->interrupt;
    s->look = options->look;
    s->look_context = options->look_context;
    s->clients[0] = (client){.wire = options->owner, .owner = options->owner != NULL};
    init_locks(s);
    hr_status status = open_server(s, options, err);
    if (status != HR_OK) {
        free_server(s);
        return status;
    }
    *out = s;
    return HR_OK;
}

int server_ended_by(server *s)
{
    return atomic_load(&s->ended_by);
}

void server_stop(server *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_mutex_unlock(&s->lock);
    server_ring_bell(s);
    (void)pthread_join(s->thread, NULL);
    free_server(s);
}

// ---- the engine's thread --------------------------------------------------------------------------------------

void server_put(server *s, const hr_event *event)
{
    trace_ring_put(s->ring, event);
    if (!atomic_exchange(&s->signalled, true)) {
        server_ring_bell(s);
    }
}

void server_post(server *s, message_kind kind, wire_out *body)
{
    if (body->bad) {
        wire_out_deinit(body);
        return;
    }
    pthread_mutex_lock(&s->lock);
    wire_out_deinit(&s->posted[kind].body);
    s->posted[kind].body = *body;
    s->posted[kind].version++;
    pthread_mutex_unlock(&s->lock);
    *body = (wire_out){0};
    server_ring_bell(s);
}

bool server_is_watched(server *s)
{
    return s->owned || atomic_load(&s->watchers) > 0;
}

bool server_wants_heap(server *s)
{
    pthread_mutex_lock(&s->lock);
    bool wanted = s->heap_wanted;
    s->heap_wanted = false;
    pthread_mutex_unlock(&s->lock);
    return wanted;
}

bool server_take(server *s, hr_command *command)
{
    pthread_mutex_lock(&s->lock);
    bool any = s->queue_count > 0, was_full = s->queue_count == SERVER_QUEUE;
    s->obeying = any;
    if (any) {
        *command = s->queue[s->queue_first];
        s->queue_first = (s->queue_first + 1) % SERVER_QUEUE;
        s->queue_count--;
    }
    pthread_mutex_unlock(&s->lock);
    if (was_full) {
        server_ring_bell(s);
    }
    return any;
}

bool server_wait(server *s, uint64_t until_ns)
{
    const uint64_t second_ns = 1000000000;
    const bool forever = until_ns == UINT64_MAX;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / second_ns),
                                   .tv_nsec = (long)(until_ns % second_ns)};
    int status = 0;
    pthread_mutex_lock(&s->lock);
    while (s->queue_count == 0 && status == 0 && !(forever && s->heap_wanted)) {
        status = forever ? pthread_cond_wait(&s->wake, &s->lock)
                         : pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
    bool any = s->queue_count > 0;
    pthread_mutex_unlock(&s->lock);
    return any;
}

void server_may_end(server *s, bool may)
{
    atomic_store(&s->may_end, may);
}

void server_writing(server *s, bool begins)
{
    (void)(begins ? pthread_mutex_lock(&s->writing) : pthread_mutex_unlock(&s->writing));
}
