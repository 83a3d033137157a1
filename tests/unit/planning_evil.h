// SPDX-License-Identifier: Apache-2.0
// Planners that lie or die, for test_planning_process.c: each reads what it is asked and does one thing wrong.
#ifndef TESTS_PLANNING_EVIL_H
#define TESTS_PLANNING_EVIL_H

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/planning_wire.h"

static const struct {
    const char *name, *said;
} planning_evils[] = {
    {"killed", "signal 9 ended it"},
    {"broken", "signal 6 ended it"},
    {"leaving", "it ended with code 7; its last words: out of ideas"},
    {"babbling", "code 7; its last words: the very last"}, // behind more than a pipe holds
    {"noise", "no answer"},                                // no message at all
    {"another kind", "no answer"},                         // a message of another kind
    {"hollow", "no answer"},                               // an answer without a body
    {"skipping", "no answer"},                             // the second answer first
    {"endless", "no answer"},                              // goes on behind the last
    {"foretelling", "no answer"},                          // to a question that nobody has asked
};
enum { PLANNING_EVILS = sizeof planning_evils / sizeof *planning_evils };

static inline void planning_evil_send(wire *w, const hr_answer *answer)
{
    wire_out o = {0};
    planning_put_answer(&o, answer);
    (void)wire_write(w, PLANNING_ANSWER, o.data, (uint32_t)o.bytes, -1);
    wire_out_deinit(&o);
}

static inline void planning_evil_answer(wire *w, const char *how, const planning_question *q)
{
    hr_answer a = {.kind = q->kind, .number = q->number};
    if (strcmp(how, "another kind") == 0) {
        (void)wire_write(w, PLANNING_OPEN, "", 0, -1);
    } else if (strcmp(how, "hollow") == 0) {
        (void)wire_write(w, PLANNING_ANSWER, "", 0, -1);
    } else if (strcmp(how, "skipping") == 0) {
        a.index = 1;
        planning_evil_send(w, &a);
    } else if (strcmp(how, "endless") == 0) {
        a.kind = HR_QUESTION_STEP_PLAN; // one answer, and it is not the last
        a.status = HR_KNOB;
        a.number = q->number + 1;
        planning_evil_send(w, &a);
    } else {
        a.number = UINT64_C(1) << 40;
        planning_evil_send(w, &a);
    }
}

// Reads the first question; false: the other side has gone.
static inline bool planning_evil_read(wire *w, planning_question *q)
{
    wire_message m;
    while (!wire_is_closed(w)) {
        struct pollfd ready = {.fd = wire_fd(w), .events = POLLIN};
        (void)poll(&ready, 1, -1);
        while (wire_read(w, &m)) {
            wire_in in = {.data = m.body, .bytes = m.bytes};
            if (m.kind == PLANNING_ASK && planning_get_question(&in, q)) {
                return true;
            }
        }
    }
    return false;
}

// Answers for good what nobody asks any more, which is no offence.
static inline void planning_evil_flood(wire *w)
{
    const hr_answer stale = {.kind = HR_QUESTION_FIT, .number = 1, .status = HR_KNOB, .last = true};
    while (!wire_is_closed(w)) {
        planning_evil_send(w, &stale);
        while ((wire_events(w) & POLLOUT) != 0) {
            wire_flush(w);
        }
    }
}

// Goes on to write once that was read, and is gone.
static inline void planning_evil_babble(wire *w)
{
    static const char words[] = "a line that says nothing\n";
    const hr_answer stale = {.kind = HR_QUESTION_FIT, .number = 1, .status = HR_KNOB, .last = true};
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    while (write(STDERR_FILENO, words, sizeof words - 1) > 0) {
    }
    planning_evil_send(w, &stale);
    (void)poll(&room, 1, 10000);
    fputs("the very last\n", stderr);
}

static inline int planning_evil(const char *how, int socket)
{
    static planning_question q;
    wire *w = NULL;
    if (wire_create(socket, PLANNING_MESSAGES, &w, NULL) != HR_OK || !planning_evil_read(w, &q)) {
        return 1;
    }
    if (strcmp(how, "killed") == 0 || strcmp(how, "broken") == 0) {
        raise(how[0] == 'k' ? SIGKILL : SIGABRT);
    } else if (strcmp(how, "leaving") == 0) {
        fputs("out of ideas\n", stderr);
        wire_destroy(w);
        return 7;
    } else if (strcmp(how, "babbling") == 0) {
        planning_evil_babble(w);
        wire_destroy(w);
        return 7;
    } else if (strcmp(how, "flooding") == 0) {
        planning_evil_flood(w);
    } else if (strcmp(how, "noise") == 0) {
        static const char noise[64] = "\xff\xff\xff\xff\xff\xff\xff\xff what?";
        (void)!write(socket, noise, sizeof noise);
    } else if (strcmp(how, "silent") != 0) {
        planning_evil_answer(w, how, &q);
    }
    (void)pause(); // until it is killed
    return 0;
}

#endif
