// SPDX-License-Identifier: Apache-2.0
// The loop around an engine, or what stands in its place (driven.h), for a worker and for a session in this process alike: takes commands, lets the engine do
// one piece of work, says what came of it, keeps the autosave. One thread.
#ifndef SESSION_ENGINE_LOOP_H
#define SESSION_ENGINE_LOOP_H

#include "session/callbacks.h"
#include "session/messages.h"

typedef struct engine_loop engine_loop;

// Opens the preset and creates the engine; callbacks and guest (NULL: none) are borrowed until destroy. Errors as driven_open.
HR_MUST_CHECK hr_status engine_loop_create(const open_request *request, const session_callbacks *out,
                                           const hr_guest_ops *guest, engine_loop **loop, hr_err *err);
void engine_loop_destroy(engine_loop *loop); // NULL is fine

// Takes the commands that wait and does one piece of work. False once it was told to quit.
bool engine_loop_turn(engine_loop *loop, bool *idle);
// Turn after turn, waiting where there is nothing to do, until it is told to quit.
void engine_loop_run(engine_loop *loop);
// Tells of a report whatever the time.
void engine_loop_report(engine_loop *loop);
uint64_t engine_loop_steps(const engine_loop *loop);
const hr_knobs *engine_loop_knobs(const engine_loop *loop);
// Of the QUIT command: the save that ended the training.
hr_status engine_loop_ending(const engine_loop *loop, hr_err *err);

#endif
