// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and every other signal that ends a program but cannot take it by surprise (SIGINT, SIGTERM, SIGHUP of a line that
// hung up, SIGQUIT, SIGXCPU, SIGPIPE of a reader that went): the first is an invitation to end well. After it SIGINT and
// SIGQUIT, which a person types, end the program at once. What was to be ignored (nohup) stays so.
#ifndef APP_CLI_INTERRUPT_H
#define APP_CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_watch(void);
bool interrupt_seen(void);
// 128 and the number of the signal that was seen, as a shell would say it; 130 when none was.
int interrupt_exit_code(void);

#endif
