// SPDX-License-Identifier: Apache-2.0
// What the server says to its clients and hears of them. The server's thread.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/server_impl.h"

enum { FAREWELL_PIECE_MS = 50, AT_ONCE = 64, DEAF_NS = 500 * 1000 * 1000 };

// ---- clients --------------------------------------------------------------------------------------------------

bool server_has_room(server *s)
{
    pthread_mutex_lock(&s->lock);
    bool room = s->queue_count < SERVER_QUEUE;
    pthread_mutex_unlock(&s->lock);
    return room;
}

bool server_is_obeyed(server *s)
{
    pthread_mutex_lock(&s->lock);
    bool obeyed = s->queue_count == 0 && !s->obeying;
    pthread_mutex_unlock(&s->lock);
    return obeyed;
}

static void drop_client(server *s, client *c)
{
    wire_destroy(c->wire);
    if (!c->owner) {
        atomic_fetch_sub(&s->watchers, 1);
    }
    *c = (client){0};
}

static void end_process(server *s)
{
    (void)pthread_mutex_lock(&s->writing);
    if (s->path[0] != '\0') {
        (void)unlink(s->path);
    }
    _exit(0);
}

static void send_ended(server *s)
{
    wire_out body = {0};
    put_ended(&body, HR_OK, &(hr_err){.status = HR_OK});
    for (uint32_t k = 0; k < SERVER_CLIENTS && !body.bad; k++) {
        if (s->clients[k].wire != NULL) {
            (void)wire_write(s->clients[k].wire, MESSAGE_ENDED, body.data, (uint32_t)body.bytes, -1);
        }
    }
    wire_out_deinit(&body);
}

bool client_is_served(const client *c)
{
    return (wire_events(c->wire) & POLLOUT) == 0;
}

// A client that reads nothing is not woken: what is kept for it must not grow with what it sends.
static void wake(server *s, client *c)
{
    uint64_t put = trace_ring_put_count(s->ring);
    if (!c->woken && put != c->cursor && client_is_served(c)) {
        c->woken = wire_write(c->wire, MESSAGE_WAKE, &put, sizeof put, -1);
    }
}

// What it has not seen yet, as long as it takes it: reports that it is too slow for are never sent.
void client_tell(server *s, client *c)
{
    static const message_kind kinds[] = {MESSAGE_ABOUT, MESSAGE_REPORT, MESSAGE_ERROR,
                                         MESSAGE_HEAP,  MESSAGE_SAID,   MESSAGE_ENDED};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && client_is_served(c); k++) {
        const post *p = &s->held[kinds[k]];
        bool wanted = kinds[k] != MESSAGE_HEAP || c->wants_heap;
        if (p->version > c->seen[kinds[k]] && wanted) {
            (void)wire_write(c->wire, kinds[k], p->body.data, (uint32_t)p->body.bytes, -1);
            c->seen[kinds[k]] = p->version;
            c->wants_heap = c->wants_heap && kinds[k] != MESSAGE_HEAP;
        }
    }
    wake(s, c);
}

static client *find_place(server *s)
{
    for (uint32_t k = 0; k < SERVER_CLIENTS; k++) {
        if (s->clients[k].wire == NULL) {
            return &s->clients[k];
        }
    }
    return NULL;
}

// An old error is news only to a client that sees its state.
void client_greet(server *s, client *c)
{
    uint32_t state = atomic_load(&trace_ring_heartbeat(s->ring)->state);
    bool stands = state == HR_ENGINE_OOM || state == HR_ENGINE_FAILED;
    c->seen[MESSAGE_ERROR] = stands ? 0 : s->held[MESSAGE_ERROR].version;
    (void)wire_write(c->wire, MESSAGE_RING, NULL, 0, trace_ring_fd(s->ring));
    client_tell(s, c);
}

// A client that no descriptor can be had for waits, and the socket is not polled for a while.
void server_admit(server *s)
{
    int fd = watch_accept(s->listening);
    const bool short_of =
        fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    s->deaf_until_ns = short_of ? clock_now_ns() + DEAF_NS : 0;
    client *c = fd >= 0 ? find_place(s) : NULL;
    wire *w = NULL;
    if (c == NULL || wire_create(fd, MESSAGE_KINDS, &w, NULL) != HR_OK) {
        if (c == NULL && fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    *c = (client){.wire = w};
    atomic_fetch_add(&s->watchers, 1);
    client_greet(s, c);
}

// ---- what clients say -----------------------------------------------------------------------------------------

static bool queue_command(server *s, const hr_command *command)
{
    pthread_mutex_lock(&s->lock);
    bool room = s->queue_count < SERVER_QUEUE;
    if (room) {
        s->queue[(s->queue_first + s->queue_count++) % SERVER_QUEUE] = *command;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return room;
}

static void want_heap(server *s, client *c)
{
    c->wants_heap = true;
    c->seen[MESSAGE_HEAP] = s->held[MESSAGE_HEAP].version;
    pthread_mutex_lock(&s->lock);
    s->heap_wanted = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static bool quit(server *s, client *c)
{
    if (atomic_load(&s->may_end) && server_is_obeyed(s)) {
        const uint64_t until_ns = clock_now_ns() + FAREWELL_NS;
        send_ended(s);
        while (!client_is_served(c) && !wire_is_closed(c->wire) && clock_now_ns() < until_ns) {
            struct pollfd fd = {.fd = wire_fd(c->wire), .events = POLLOUT};
            (void)poll(&fd, 1, FAREWELL_PIECE_MS);
            wire_flush(c->wire);
        }
        end_process(s);
    }
    return queue_command(s, &(hr_command){.version = HR_EVENT_VERSION, .kind = HR_COMMAND_QUIT});
}

static void end_by(int number)
{
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
    (void)pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

// As its owner does to keep what was trained.
void server_hear_ending(server *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    const bool first = atomic_exchange(&s->ended_by, (int)info.ssi_signo) == 0;
    const hr_command keep = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KEEP},
                     leave = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_QUIT};
    if (!first || !queue_command(s, &keep) || !queue_command(s, &leave)) {
        end_by((int)info.ssi_signo);
    }
}

static bool take_cursor(server *s, client *c, const wire_message *m)
{
    uint64_t cursor = 0;
    if (!get_count(m, &cursor)) {
        return false;
    }
    c->cursor = cursor;
    c->woken = false;
    (void)atomic_exchange(&s->signalled, false); // from here on a new event rings the bell again
    wake(s, c);
    return true;
}

// False: it has said what it may not.
static bool hear(server *s, client *c, const wire_message *m)
{
    hr_command command;
    if (m->fd >= 0) {
        (void)close(m->fd);
        return false;
    }
    if (m->kind == MESSAGE_TAKEN) {
        return take_cursor(s, c, m);
    }
    if (m->kind == MESSAGE_ASK_HEAP && m->bytes == 0) {
        want_heap(s, c);
        return true;
    }
    if (c->owner && m->kind == MESSAGE_QUIT && m->bytes == 0) {
        return quit(s, c);
    }
    if (c->owner && m->kind == MESSAGE_INTERRUPT && m->bytes == 0) {
        if (s->interrupt != NULL) {
            s->interrupt();
        }
        return true;
    }
    return c->owner && m->kind == MESSAGE_COMMAND && get_command(m, &command) && queue_command(s, &command);
}

// A few at once: a watcher that never stops asking must not keep the others from being heard.
void client_attend(server *s, client *c)
{
    wire_message m;
    bool valid = true;
    for (int left = AT_ONCE; left > 0 && valid && (!c->owner || server_has_room(s)) && wire_read(c->wire, &m);
         left--) {
        valid = hear(s, c, &m);
    }
    wire_flush(c->wire);
    if (!valid || wire_is_closed(c->wire)) {
        if (c->owner) {
            end_process(s); // it is gone, and so are we
        }
        drop_client(s, c);
        return;
    }
    client_tell(s, c);
}
