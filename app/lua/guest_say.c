// SPDX-License-Identifier: Apache-2.0
// What a recipe beside a workbench says: print, notes and errors become lines of their kinds.
#include <string.h>

#include "app/lua/guest.h"

void guest_say(const guest *g, hr_guest_line kind, const char *text)
{
    g->host->say(g->host->context, kind, text, strlen(text));
}

static ssize_t speak(void *context, const char *text, size_t length)
{
    static const char note[] = "note: ";
    const voice *v = context;
    const bool named =
        v->kind == HR_GUEST_NOTE && length >= sizeof note - 1 && strncmp(text, note, sizeof note - 1) == 0;
    const size_t passed = named ? sizeof note - 1 : 0;
    v->g->host->say(v->g->host->context, v->kind, text + passed, length - passed);
    return (ssize_t)length;
}

static FILE *open_voice(guest *g, size_t which, hr_guest_line kind)
{
    g->voices[which] = (voice){g, kind};
    FILE *to = fopencookie(&g->voices[which], "w", (cookie_io_functions_t){.write = speak});
    if (to != NULL) {
        (void)setvbuf(to, NULL, _IOLBF, BUFSIZ);
    }
    return to;
}

void guest_say_state(guest *g, bool works)
{
    char text[GUEST_NAME_MAX + 16];
    const bool listens = g->s != NULL && g->s->listens != 0;
    (void)fflush(g->out);
    (void)fflush(g->notes);
    (void)fflush(g->errors);
    if (works == g->works && listens == g->listens && !works) {
        return;
    }
    g->works = works;
    g->listens = listens;
    (void)snprintf(text, sizeof text, "%s%s%s",
                   works     ? "running"
                   : listens ? "listening"
                             : "idle",
                   works || listens ? " " : "", works || listens ? g->name : "");
    guest_say(g, HR_GUEST_STATE, text);
}

void guest_say_error(const guest *g, const hr_err *err)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    guest_say(g, HR_GUEST_ERROR, text);
}

hr_status guest_open_voices(guest *g, hr_err *err)
{
    g->out = open_voice(g, 0, HR_GUEST_PRINTED);
    g->notes = open_voice(g, 1, HR_GUEST_NOTE);
    g->errors = open_voice(g, 2, HR_GUEST_ERROR);
    return g->out != NULL && g->notes != NULL && g->errors != NULL
               ? HR_OK
               : HR_FAIL(err, NOMEM, "no host memory for what recipes say");
}

void guest_close_voices(guest *g)
{
    FILE *const files[] = {g->out, g->notes, g->errors};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        if (files[k] != NULL) {
            (void)fclose(files[k]);
        }
    }
}
