// SPDX-License-Identifier: Apache-2.0
// The inside of a recipe beside a workbench: guest.c does what is ordered, guest_say.c sends what is said.
#ifndef APP_LUA_GUEST_H
#define APP_LUA_GUEST_H

#include "app/lua/complete.h"
#include "app/lua/script.h"

enum { GUEST_ARGUMENTS_MAX = 32, GUEST_NAME_MAX = 64 };

typedef struct guest guest;

typedef struct voice {
    const guest *g;
    hr_guest_line kind;
} voice;

struct guest {
    const hr_guest_host *host;
    script *s; // NULL: none
    voice voices[3];
    FILE *out, *notes, *errors;
    char name[GUEST_NAME_MAX]; // of what runs, or ran
    char words[HR_GUEST_TEXT_MAX], preset[SCRIPT_PATH_MAX];
    char *argv[GUEST_ARGUMENTS_MAX];
    int argc;
    unsigned chunks; // that were typed, ever
    bool had_oom;
    bool works, listens; // as was said last
    script_completion completion;
};

// Opens what print, notes and errors go to. NOMEM.
HR_MUST_CHECK hr_status guest_open_voices(guest *g, hr_err *err);
void guest_close_voices(guest *g);
void guest_say(const guest *g, hr_guest_line kind, const char *text);
void guest_say_error(const guest *g, const hr_err *err);
// Whether it is at work, where that is news; first all that waits to be said.
void guest_say_state(guest *g, bool works);

#endif
