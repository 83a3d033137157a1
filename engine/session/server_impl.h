// SPDX-License-Identifier: Apache-2.0
// The server's inside, shared by server.c (the thread, and the engine's side) and server_clients.c.
#ifndef SESSION_SERVER_IMPL_H
#define SESSION_SERVER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "session/server.h"
#include "session/watch_socket.h"

enum { SERVER_QUEUE = 64, SERVER_CLIENTS = 17, FAREWELL_NS = 1000 * 1000 * 1000 };

// What was posted last of a kind. Bodies are handed to the thread under the lock and kept for later clients.
typedef struct post {
    wire_out body;
    uint64_t version; // 0: nothing yet
} post;

typedef struct client {
    wire *wire; // NULL: a free place
    bool owner;
    bool woken;                   // WAKE is under way
    bool wants_heap;              // asked, and has not got it
    uint64_t cursor;              // records that it has seen
    uint64_t seen[MESSAGE_KINDS]; // versions of posts
} client;

struct server {
    trace_ring *ring;
    char preset[HR_KNOB_TEXT_MAX];
    pthread_t thread;
    bool owned;
    void (*interrupt)(void);
    uint64_t (*look)(void *context);
    void *look_context;
    int event_fd, listening, signals; // −1: none
    atomic_int ended_by;
    char path[WATCH_PATH_MAX]; // "": no socket is listening
    uint64_t deaf_until_ns;    // descriptors were short: no client is admitted before; the thread's
    atomic_bool signalled;     // of events: event_fd was written since the thread last looked
    atomic_uint watchers;

    // The thread's own.
    client clients[SERVER_CLIENTS];
    post held[MESSAGE_KINDS];

    pthread_mutex_t lock; // of everything below
    pthread_cond_t wake;
    post posted[MESSAGE_KINDS]; // newer than held
    hr_command queue[SERVER_QUEUE];
    uint32_t queue_first, queue_count;
    bool heap_wanted, ending;
    bool obeying; // the engine has taken a command and not yet asked for the next

    pthread_mutex_t writing; // held while files are written
    atomic_bool may_end;
};

bool server_has_room(server *s);  // for another command
bool server_is_obeyed(server *s); // every command that came has been carried out

// server_clients.c: the thread's.
bool client_is_served(const client *c);   // nothing waits to be sent to it
void client_tell(server *s, client *c);   // what it has not seen yet, as long as it takes it
void client_greet(server *s, client *c);  // the ring, and all that is held
void client_attend(server *s, client *c); // reads what it says, or drops it
void server_admit(server *s);             // a client that connects
void server_hear_ending(server *s);       // a signal came

#endif
