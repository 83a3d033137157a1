// SPDX-License-Identifier: Apache-2.0
// A part of the program in a process of its own, which stands in for this one: this program exec'd again as
// `headroom @ROLE WORDS…`, with our standard streams, process group, ignored and blocked signals, and one end of a socket
// pair. It dies with the thread that started it. All functions on one child belong to that thread.
#ifndef HEADROOM_CHILD_H
#define HEADROOM_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

typedef struct hr_child hr_child;

// `words` ends with NULL. STATE error when no process was to be had.
HR_MUST_CHECK hr_status hr_child_start(const char *role, char *const *words, hr_child **out, hr_err *err);
int hr_child_socket(const hr_child *c); // ours; reads as ended once the child has
// With a value for its handler (si_value). What has ended hears nothing.
void hr_child_signal(const hr_child *c, int number, int value);
bool hr_child_wait(hr_child *c, int timeout_ms); // until it has ended; false: it had not by then
void hr_child_kill(hr_child *c);                 // at once
// Once it has ended: its exit code; −1 when a signal ended it, and *signal is that.
int hr_child_exit_code(const hr_child *c, int *signal);
// What ended it, in words: "ended by SIGSEGV: it touched memory that is not its own".
void hr_child_describe_end(const hr_child *c, char *text, size_t size);
void hr_child_destroy(hr_child *c); // kills what lives; NULL is fine

// In the child: binds its life to its parent's. Returns the socket; −1: it was not started by hr_child_start.
int hr_child_begin(void);

#endif
