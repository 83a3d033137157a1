// SPDX-License-Identifier: Apache-2.0
#include "headroom/status.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *what, *hint;
    int exit_code;
} rows[] = {
#define X(name, exit_code, what, hint) [HR_##name] = {#name, what, hint, exit_code},
    HR_STATUS_MAP(X)
#undef X
};
_Static_assert(sizeof rows / sizeof *rows == HR_STATUS_COUNT, "a row for every status");

hr_status hr_err_set(hr_err *err, hr_status status, const char *file, int line, const char *format, ...)
{
    if (err == NULL) {
        return status;
    }
    char sentence[HR_ERR_TEXT_MAX]; // apart, because the arguments may point into *err
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    err->status = status;
    err->file = file;
    err->line = line;
    memcpy(err->sentence, sentence, sizeof sentence);
    err->hint[0] = '\0';
    return status;
}

void hr_err_try(hr_err *err, const char *format, ...)
{
    if (err == NULL) {
        return;
    }
    char hint[HR_ERR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(hint, sizeof hint, format, arguments);
    va_end(arguments);
    memcpy(err->hint, hint, sizeof hint);
}

static hr_status known(hr_status status)
{
    return (unsigned)status < HR_STATUS_COUNT ? status : HR_STATE;
}

const char *hr_status_name(hr_status status)
{
    return rows[known(status)].name;
}

const char *hr_status_what(hr_status status)
{
    return rows[known(status)].what;
}

const char *hr_status_try(hr_status status)
{
    return rows[known(status)].hint;
}

int hr_status_exit_code(hr_status status)
{
    return rows[known(status)].exit_code;
}

// Whether a sentence that ends in `last` still wants its full stop.
static int wants_stop(char last)
{
    return isalnum((unsigned char)last) || last == ')' || last == '"' || last == '\'';
}

int hr_err_format(const hr_err *err, char *text, uint32_t size)
{
    size_t length = strlen(err->sentence);
    const char *stop = length > 0 && wants_stop(err->sentence[length - 1]) ? "." : "";
    const char *hint = err->hint[0] != '\0' ? err->hint : hr_status_try(err->status);
    // What a person has ended did not fail.
    return err->status == HR_INTERRUPTED
               ? snprintf(text, size, "headroom: interrupted %s%s\n  try: %s\n", err->sentence, stop, hint)
               : snprintf(text, size, "headroom: %s failed: %s%s\n  try: %s\n", hr_status_what(err->status),
                          err->sentence, stop, hint);
}
