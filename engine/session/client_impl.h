// SPDX-License-Identifier: Apache-2.0
// The inside of a session whose engine is in another process: client_open.c (its beginning), client_inbox.c (what comes)
// and client.c (all else).
#ifndef SESSION_CLIENT_IMPL_H
#define SESSION_CLIENT_IMPL_H

#include "events/ring.h"
#include "session/session_impl.h"
#include "session/spawn.h"
#include "session/watch_socket.h"

// What the heartbeat was when it last changed.
typedef struct client_silence {
    uint64_t since_ns;
    trace_heartbeat_copy heartbeat;
    bool suspended;
} client_silence;

typedef struct client_session {
    hr_session base;
    bool owns; // the child is ours
    child child;
    wire *wire;
    trace_reader *reader; // NULL until the ring has come
    bool woken;           // a WAKE is to be answered once the ring is empty
    bool broken;          // the other side has said what it may not
    bool killed;          // by us
    bool said_end;
    ended_note note;
    uint64_t sent;       // commands
    uint64_t save_sent;  // the last of them that is a save; 0: none is
    uint64_t stopped_ns; // when it was told to end; 0: not yet
    uint64_t kernel_kills;
    uint64_t killed_ns; // when it was first killed from here
    uint64_t closed_ns; // when its socket was found closed while it lives; 0: it is not
    client_silence silence;
    hr_session_end end;
    // What a worker that dies in the middle may leave: its socket, and a save that was being written.
    char socket_path[WATCH_PATH_MAX], autosave_path[MESSAGE_PATH_MAX];
} client_session;

// client.c
extern const session_ops client_own_worker, client_watched;
void client_close(client_session *c); // wire, reader and child

// client_inbox.c: takes messages that have come, a few at once: an engine that never stops sending cannot block the caller. True: perhaps
// there are more. What is not valid sets `broken` and ends it.
bool client_take_messages(client_session *c);

#endif
