// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: the first signal (SIGINT, SIGTERM) is an invitation to end well, the second ends the program at once.
#ifndef APP_CLI_INTERRUPT_H
#define APP_CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_watch(void);
bool interrupt_seen(void);

#endif
