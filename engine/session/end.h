// SPDX-License-Identifier: Apache-2.0
// What is known of a child's end, in a sentence: what ended it, why that probably was, where it stood, what it said last.
#ifndef SESSION_END_H
#define SESSION_END_H

#include "headroom/session.h"

#include "events/ring.h"
#include "session/spawn.h"

// How often the kernel has killed for want of memory since it started; 0 where it does not say.
uint64_t end_kernel_kills(void);

// Fills exit_code, signal, step, instr, saved_step and the sentence; by_us has been set. `heartbeat`: NULL where there never
// was one.
void end_describe(hr_session_end *end, const child *c, const trace_heartbeat_copy *heartbeat,
                  bool kernel_killed);
// "killed by the kernel (SIGKILL): out of host memory", of one that was reaped. A kill that is not by us is the kernel's
// when it has just counted one.
void end_write_what(char *what, size_t size, const child *c, bool by_us, bool kernel_killed);
// Of one that lives and does nothing.
void end_describe_silence(hr_session_end *end, const trace_heartbeat_copy *heartbeat, uint64_t silent_ns);
// Step, instruction and save, and where that is in words.
void end_set_place(hr_session_end *end, const trace_heartbeat_copy *heartbeat);

#endif
