// SPDX-License-Identifier: Apache-2.0
// A thread that shows an engine to others: its owner at the other end of a socket pair, watchers at a socket of the
// file system. The engine's thread hands over what it has to say and goes on; a slow client misses what is older than the
// newest.
//
//   engine's thread ──put, post──▶ server ──RING, WAKE, REPORT …──▶ owner, watchers
//                   ◀──commands──         ◀──COMMAND, QUIT …── owner
#ifndef SESSION_SERVER_H
#define SESSION_SERVER_H

#include <signal.h>

#include "events/ring.h"
#include "session/messages.h"

typedef struct server server;

typedef struct server_options {
    trace_ring *ring; // borrowed until stop
    wire *owner;      // taken in any case; NULL: there is none
    const sigset_t *
        endings; // signals, blocked in every thread, that end the engine well: the first is KEEP and QUIT, the
                 // second what it always was; NULL: none
    void (*interrupt)(void); // on the server's thread, when the owner says so; NULL: nothing is to be
    // On the server's thread, whenever it has been woken: may post. Returns when it is to be called at the latest, by the
    // monotonic clock; UINT64_MAX: when the bell rings. It may be called before server_start returns. NULL: nothing is to be.
    uint64_t (*look)(void *context);
    void *look_context;
    bool watchable;     // listens, where there is an $XDG_RUNTIME_DIR
    const char *preset; // borrowed for the call
    const hr_knobs *knobs;
} server_options;

HR_MUST_CHECK hr_status server_start(const server_options *options, server **out, hr_err *err);
// Sends what it still has to send, for a second at most, ends the thread, removes the socket, frees. NULL is fine.
void server_stop(server *s);
int server_ended_by(server *s); // the signal; 0: none came

// ---- the engine's thread ----------------------------------------------------------------------------------------

void server_put(server *s, const hr_event *event); // into the ring, and wakes the server's thread
void server_ring_bell(server *s);                  // wakes it
// ABOUT, REPORT, ERROR, HEAP, ENDED, SAID: takes the body's memory.
void server_post(server *s, message_kind kind, wire_out *body);
bool server_is_watched(server *s); // whether a client is there to read a report
bool server_wants_heap(server *s); // since the last time
bool server_take(server *s, hr_command *command);
// As callbacks.wait.
bool server_wait(server *s, uint64_t until_ns);
// A training whose end nobody keeps is ended at once when its owner says so (and every command before that has been
// carried out) or is gone, in the middle of a step, but not while `writing`. The process ends then.
void server_may_end(server *s, bool may);
void server_writing(server *s, bool begins);

#endif
