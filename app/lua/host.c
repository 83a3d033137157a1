// SPDX-License-Identifier: Apache-2.0
// The training of a workbench beside which a recipe runs (decision 67): hr.run turns its loop, so that keys are taken between two
// steps of the recipe's run as between all others.
#include <string.h>

#include "app/lua/script.h"
#include "app/lua/watch.h"

bool script_is_hosted(const script *s)
{
    return s->host != NULL && s->training != NULL && s->training == s->host->engine;
}

void script_advance(script *s, hr_engine *engine, bool *idle)
{
    bool goes_on = true;
    script_begin_engine(s);
    if (s->host != NULL && engine == s->host->engine) {
        goes_on = s->host->turn(s->host->context, idle);
    } else {
        hr_engine_advance(engine, idle);
        if (s->host != NULL) {
            s->host->say(s->host->context, HR_GUEST_NOTE, "", 0); // a sign of life
        }
    }
    script_end_engine(s);
    if (!goes_on) {
        script_interrupt(SIGTERM); // the session ends, and the recipe with it
    }
}

static void note(const script *s, const char *what)
{
    char text[SCRIPT_PATH_MAX + SCRIPT_TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "from here on %s: a training of the recipe's own, which the screen does not show", what);
    s->host->say(s->host->context, HR_GUEST_NOTE, text, strlen(text));
}

void script_leave_host(script *s, const char *what)
{
    if (script_is_hosted(s)) {
        s->training = NULL;
        if (what != NULL) {
            note(s, what);
        }
    }
}

bool script_waits_for_person(script *s, hr_engine_state state)
{
    if (!script_is_hosted(s) || state != HR_ENGINE_PAUSED) {
        return false;
    }
    script_begin_engine(s);
    const bool came = s->host->wait(s->host->context);
    script_end_engine(s);
    return came;
}
