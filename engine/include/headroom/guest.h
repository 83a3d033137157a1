// SPDX-License-Identifier: Apache-2.0
// What lives beside an engine in the process of a session, on its thread, between two of its steps: Lua. The engine's loop
// gives it its turns, and a guest that is at work gives the loop turns.
//
//   loop ──take(order)──▶ guest ──turn──▶ loop     (a recipe that runs some steps)
//   loop ──begin_turn, event, before_update, end_turn──▶ guest     (callbacks of a training that goes on)
//
// A guest says itself what becomes of its orders. All functions belong to the loop's thread, `interrupt` apart.
#ifndef HEADROOM_GUEST_H
#define HEADROOM_GUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/engine.h"

// X(ID, letter): what a line that a guest says is. The letter is what is sent.
#define HR_GUEST_LINE_MAP(X)                                                                                               \
    X(PRINTED, 'o')                                                                                                        \
    X(NOTE, 'n')                                                                                                           \
    X(PLOT, 'p')                                                                                                           \
    X(ERROR, 'e')                                                                                                          \
    X(ANSWER,                                                                                                              \
      'c') /* to COMPLETE: its number, where the word begins, the hint; then candidates, a '+' before each, and behind a \
                      tab what follows it where it is the only one */ \
    X(STATE, 's') /* "idle", "running NAME" or "listening NAME" */

typedef enum hr_guest_line {
#define X(id, letter) HR_GUEST_##id = letter,
    HR_GUEST_LINE_MAP(X)
#undef X
} hr_guest_line;

typedef enum hr_guest_order {
    HR_GUEST_FILE,     // text: a path, then words behind it, each on a line of its own
    HR_GUEST_CHUNK,    // text: an expression or statements
    HR_GUEST_END,      // it forgets everything
    HR_GUEST_COMPLETE, // text: a number, the cursor's byte and a line break, then a chunk that is being typed
    HR_GUEST_ORDERS
} hr_guest_order;

enum { HR_GUEST_TEXT_MAX = 8192 }; // of an order

typedef struct hr_guest_host {
    void *context;
    const char *preset; // as the session was opened with it
    bool trusts;
    hr_engine *engine; // the training of the session; NULL: it has none
    // Takes the commands that wait, does one piece of the engine's work, says what came of it. False: the session ends.
    bool (*turn)(void *context, bool *idle);
    bool (*wait)(void *context); // until a command has come; false: none will
    // Of one or more lines.
    void (*say)(void *context, hr_guest_line kind, const char *text, size_t length);
} hr_guest_host;

typedef struct hr_guest_ops {
    // Borrows the host until close.
    hr_status (*open)(const hr_guest_host *host, void **guest, hr_err *err);
    void (*close)(void *guest);
    void (*take)(void *guest, hr_guest_order order, const char *text); // returns when that is done
    void (*turned)(void *guest, hr_knob_id id, const char *text); // by the person, and the engine took it
    void (*begin_turn)(void *guest);
    void (*event)(void *guest, const hr_event *event); // of the session's engine; must not call it
    void (*before_update)(void *guest);                // within a step; must not call the engine
    void (*end_turn)(void *guest, bool idle);
    bool (*is_whole)(
        const char *text);   // a chunk that needs no further line, be it wrong. Of no guest, from any process
    void (*interrupt)(void); // from any thread: what is at work ends, if need be with the process
} hr_guest_ops;

#endif
