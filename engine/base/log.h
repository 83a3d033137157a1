// SPDX-License-Identifier: Apache-2.0
// The engine never prints: what it wants to say goes to the handler the program has set. Thread-safe; the
// handler runs on the caller's thread, one line at a time, and must not log itself.
#ifndef BASE_LOG_H
#define BASE_LOG_H

typedef void (*log_handler)(void *context, const char *line);

void log_set_handler(log_handler handler, void *context); // NULL: drop
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
