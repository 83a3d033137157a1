// SPDX-License-Identifier: Apache-2.0
// The guest of an engine's loop (headroom/guest.h): its orders come in pieces, and a training that ran before an order goes on
// after it, unless a person has paused it meanwhile.
#ifndef SESSION_LOOP_GUEST_H
#define SESSION_LOOP_GUEST_H

#include "headroom/guest.h"

typedef struct loop_guest {
    const hr_guest_ops *ops; // NULL: there is none
    hr_guest_host host;
    void *self;          // NULL: it could not be opened
    bool works;          // an order is being done: it turns the loop itself
    bool paused;         // by a person, since the order came
    size_t length;       // of the pieces of an order that have come
    const char *refused; // why the order that comes is not taken; NULL: it is
    hr_guest_order order;
    char text[HR_GUEST_TEXT_MAX];
} loop_guest;

// One that cannot be opened says so, and there is none then.
void loop_guest_begin(loop_guest *g, const hr_guest_ops *ops, const hr_guest_host *host);
void loop_guest_end(loop_guest *g);
// Of a command GUEST. True: the order is whole. What comes while another one is being done is refused, in words, but for END:
// that interrupts.
bool loop_guest_collect(loop_guest *g, const hr_command *piece);
void loop_guest_take(loop_guest *g);
void loop_guest_obeyed(loop_guest *g, const hr_command *command); // of a person, by the engine
void loop_guest_event(loop_guest *g, const hr_event *event);
void loop_guest_before_update(loop_guest *g);
void loop_guest_begin_turn(loop_guest *g);
void loop_guest_end_turn(loop_guest *g, bool *idle); // a callback may have given the engine work

#endif
