// SPDX-License-Identifier: Apache-2.0
#include "session/loop_guest.h"

#include <string.h>

static bool is_there(const loop_guest *g)
{
    return g->ops != NULL && g->self != NULL;
}

// A record that is shown has no engine.
static hr_engine_state state_of(const loop_guest *g)
{
    return g->host.engine == NULL ? HR_ENGINE_FAILED : hr_engine_get_state(g->host.engine);
}

void loop_guest_begin(loop_guest *g, const hr_guest_ops *ops, const hr_guest_host *host)
{
    hr_err err;
    g->ops = ops;
    g->host = *host;
    if (ops != NULL && ops->open(&g->host, &g->self, &err) != HR_OK) {
        host->say(host->context, HR_GUEST_ERROR, err.sentence, strlen(err.sentence));
        g->self = NULL;
    }
}

void loop_guest_end(loop_guest *g)
{
    if (is_there(g)) {
        g->ops->close(g->self);
    }
    g->self = NULL;
}

static void refuse(const loop_guest *g, const char *why)
{
    g->host.say(g->host.context, HR_GUEST_ERROR, why, strlen(why));
}

// An order of which a piece cannot be taken is refused when its last has come: no rest of one is done as if it were whole.
static void take_piece(loop_guest *g, const hr_command *piece, size_t length)
{
    const bool fits = g->length + length < sizeof g->text, begins = g->length == 0;
    if (g->refused != NULL) {
        return;
    }
    if (!is_there(g) || piece->knob >= HR_GUEST_ORDERS) {
        g->refused = "there is no Lua beside this training";
    } else if (g->works) {
        g->refused = "a recipe is at work: ^C stops it";
    } else if (!fits || (!begins && g->order != (hr_guest_order)piece->knob)) {
        g->refused = fits ? "an order to the recipe was cut" : "an order to the recipe was too long";
    } else {
        g->order = (hr_guest_order)piece->knob;
        memcpy(g->text + g->length, piece->text, length);
        g->length += length;
        g->text[g->length] = '\0';
    }
}

bool loop_guest_collect(loop_guest *g, const hr_command *piece)
{
    const size_t length = strnlen(piece->text, sizeof piece->text);
    const bool ends = piece->knob == HR_GUEST_END;
    const bool last = piece->count == 0;
    if (is_there(g) && g->works && ends) {
        g->ops->interrupt();
        return false;
    }
    take_piece(g, piece, length);
    if (!last) {
        return false;
    }
    const char *why = g->refused;
    const bool whole = why == NULL;
    if (!whole && piece->knob != HR_GUEST_COMPLETE) {
        refuse(g, why);
    }
    g->refused = NULL;
    g->length = whole ? g->length : 0;
    return whole;
}

// A training that ran goes on.
static void go_on(loop_guest *g, bool ran)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN};
    const hr_engine_state state = state_of(g);
    if (ran && !g->paused && (state == HR_ENGINE_IDLE || state == HR_ENGINE_PAUSED)) {
        const hr_status status = hr_engine_command(g->host.engine, &run, NULL);
        (void)status; // RUN is never refused
    }
}

void loop_guest_take(loop_guest *g)
{
    const bool ran = state_of(g) == HR_ENGINE_RUNNING;
    g->length = 0;
    g->works = true;
    g->paused = false;
    g->ops->take(g->self, g->order, g->text);
    g->works = false;
    go_on(g, ran);
}

void loop_guest_obeyed(loop_guest *g, const hr_command *command)
{
    if (!is_there(g)) {
        return;
    }
    if (command->kind == HR_COMMAND_KNOB) {
        g->ops->turned(g->self, (hr_knob_id)command->knob, command->text);
    }
    const bool runs = command->kind == HR_COMMAND_RUN;
    g->paused = !runs && (g->paused || command->kind == HR_COMMAND_PAUSE || command->kind == HR_COMMAND_STOP);
}

void loop_guest_event(loop_guest *g, const hr_event *event)
{
    if (is_there(g)) {
        g->ops->event(g->self, event);
    }
}

void loop_guest_before_update(loop_guest *g)
{
    if (is_there(g)) {
        g->ops->before_update(g->self);
    }
}

void loop_guest_begin_turn(loop_guest *g)
{
    if (is_there(g) && !g->works) {
        g->works = true;
        g->ops->begin_turn(g->self);
        g->works = false;
    }
}

void loop_guest_end_turn(loop_guest *g, bool *idle)
{
    if (is_there(g) && g->host.engine != NULL && !g->works) {
        g->works = true;
        g->ops->end_turn(g->self, *idle);
        g->works = false;
        *idle = *idle && state_of(g) != HR_ENGINE_RUNNING;
    }
}
