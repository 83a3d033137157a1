// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { LOG_LINE_MAX = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static log_handler current;
static void *current_context;

void log_set_handler(log_handler handler, void *context)
{
    pthread_mutex_lock(&lock);
    current = handler;
    current_context = context;
    pthread_mutex_unlock(&lock);
}

void log_line(const char *format, ...)
{
    char line[LOG_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    // Called under the lock, so that a handler is never entered after log_set_handler has replaced it.
    pthread_mutex_lock(&lock);
    if (current != NULL) {
        current(current_context, line);
    }
    pthread_mutex_unlock(&lock);
}
