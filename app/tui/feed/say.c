// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/feed/feed.h"

void feed_say(feed *f, message_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->message.text, sizeof f->message.text, format, args);
    va_end(args);
    f->message.kind = kind;
}

// "headroom demo -s " of the preset that is open: a training of its own, by one knob alone. Here the others stay turned.
static bool begins_anew(const char *preset, const char **hint)
{
    char shell[HR_KNOB_TEXT_MAX];
    const int length = snprintf(shell, sizeof shell, "headroom %s -s ", preset);
    const bool does = length > 0 && (size_t)length < sizeof shell &&
                      strncmp(*hint, shell, (size_t)length) == 0 && strstr(*hint + length, " -") == NULL;
    *hint += does ? length : 0;
    return does;
}

// What is typed in a shell, as it is typed here, where it begins at `hint`. Moves it behind that, and *key is whether a
// knob's key follows.
static const char *said_here(const char *preset, const char **hint, bool *key)
{
    static const struct {
        const char *shell, *here;
    } rows[] = {{"-s ", ":set "},
                {"headroom presets", ":preset"},
                {"headroom cards", "Tab after :set device.card"},
                {"headroom knobs", "Tab after :set"},
                {"headroom plan ", ":preset "}};
    if (begins_anew(preset, hint)) {
        *key = true;
        return ":anew ";
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].shell);
        bool plan = i + 1 == sizeof rows / sizeof *rows;
        const bool lists_cards =
            strcmp(rows[i].shell, "headroom cards") == 0; // one card is shown by the shell
        if (strncmp(*hint, rows[i].shell, length) == 0 && !(lists_cards && (*hint)[length] == ' ') &&
            !(plan && strchr(*hint + length, ' ') != NULL)) { // of a report; a preset alone can be opened
            *hint += length;
            *key = i == 0;
            return rows[i].here;
        }
    }
    return NULL;
}

// "-s KEY=VALUE" is ":set KEY VALUE"; without a value the '=' says so. What only a shell can do is a whole command, and stays one.
static void say_hint(const char *preset, const char *hint, char *text, size_t size)
{
    size_t length = 0;
    bool key = false; // its first '=' ends it
    bool in_shell = false;
    while (*hint != '\0' && length + 1 < size) {
        const char *here = in_shell ? NULL : said_here(preset, &hint, &key);
        in_shell = in_shell || (here == NULL && strncmp(hint, "headroom ", strlen("headroom ")) == 0);
        if (here != NULL) {
            int added = snprintf(text + length, size - length, "%s", here);
            length += added > 0 ? (size_t)added : 0;
            continue;
        }
        bool ends = key && *hint == '=';
        key = key && !ends && *hint != ' ';
        text[length++] = ends && hint[1] != ' ' && hint[1] != '\0' ? ' ' : *hint;
        hint++;
    }
    text[length < size ? length : size - 1] = '\0';
}

void feed_say_error(feed *f, const hr_err *err)
{
    char hint[HR_ERR_TEXT_MAX];
    say_hint(hr_preset_name(f->preset), err->hint[0] != '\0' ? err->hint : hr_status_try(err->status), hint,
             sizeof hint);
    feed_say(f, MESSAGE_ERROR, "%s failed: %s\ntry: %s", hr_status_what(err->status), err->sentence, hint);
    run_state_log_once(&f->live, LOG_BAD, err->sentence);
}
