// SPDX-License-Identifier: Apache-2.0
// hr.on: events of the engine are collected while it works, and the recipe's functions are called between two of its
// steps, so that a knob they turn holds from the next step on.
#include <math.h>
#include <string.h>

#include "app/lua/script.h"

static const char handlers_key[] = "headroom.handlers"; // in the registry: event → list of functions

static const char *const event_names[] = {"step", "epoch", "oom", NULL};

// hr.on(event, fn): another function for the event; nil instead of a function takes all of them away.
int script_on(lua_State *L)
{
    const char *event = event_names[luaL_checkoption(L, 1, NULL, event_names)];
    bool clear = lua_isnil(L, 2);
    if (!clear) {
        luaL_checktype(L, 2, LUA_TFUNCTION);
    }
    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, handlers_key);
    if (clear) {
        lua_pushnil(L);
        lua_setfield(L, -2, event);
        return 0;
    }
    (void)luaL_getsubtable(L, -1, event);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    return 0;
}

void script_collect_event(void *context, const hr_event *event)
{
    script *s = context;
    bool wanted =
        event->kind == HR_EVENT_STEP || event->kind == HR_EVENT_EPOCH || event->kind == HR_EVENT_EVAL;
    s->trained = s->trained || event->kind == HR_EVENT_STEP;
    s->saved_steps = event->kind == HR_EVENT_SAVED ? event->u.note.count : s->saved_steps;
    if (wanted && s->event_count < SCRIPT_EVENTS_MAX) {
        s->events[s->event_count++] = *event;
    }
}

// Calls every function for `event` with the table on top of the stack, and takes the table away. Returns whether one
// of them returned something true. A handler list that changes meanwhile holds from the next event on.
static bool call_handlers(lua_State *L, const char *event)
{
    int argument = lua_gettop(L);
    bool agreed = false;
    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, handlers_key);
    if (lua_getfield(L, -1, event) == LUA_TTABLE) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
        for (lua_Integer k = 1; k <= count; k++) {
            lua_rawgeti(L, argument + 2, k);
            lua_pushvalue(L, argument);
            lua_call(L, 1, 1);
            agreed = lua_toboolean(L, -1) || agreed;
            lua_pop(L, 1);
        }
    }
    lua_settop(L, argument - 1);
    return agreed;
}

static void set_real(lua_State *L, const char *name, double value)
{
    if (isfinite(value)) {
        lua_pushnumber(L, value);
        lua_setfield(L, -2, name);
    }
}

static void set_integer(lua_State *L, const char *name, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static void set_bytes(lua_State *L, const char *name, uint64_t bytes)
{
    script_push_bytes(L, (int64_t)bytes);
    lua_setfield(L, -2, name);
}

static void deliver_step(lua_State *L, const hr_event *event)
{
    const hr_event_step *step = &event->u.step;
    lua_newtable(L);
    set_integer(L, "step", event->step);
    set_real(L, "loss", step->loss);
    set_integer(L, "samples", step->samples);
    set_real(L, "seconds", (double)step->duration_ns * 1e-9);
    set_real(L, "wait_seconds", (double)step->wait_ns * 1e-9);
    set_bytes(L, "peak_in_use_bytes", step->peak_in_use_bytes);
    set_bytes(L, "floor_in_use_bytes", step->floor_in_use_bytes);
    (void)call_handlers(L, "step");
}

// `evaluation` is NULL when none followed the epoch.
static void deliver_epoch(lua_State *L, script *s, const hr_event_step *evaluation)
{
    if (!s->epoch_ended) {
        return;
    }
    s->epoch_ended = false;
    lua_newtable(L);
    set_integer(L, "epoch", s->epoch.u.note.count);
    set_integer(L, "step", s->epoch.step);
    set_real(L, "loss", hr_engine_loss(s->engine));
    if (evaluation != NULL) {
        set_real(L, "eval_loss", evaluation->loss);
        set_real(L, "eval_accuracy", evaluation->accuracy);
    }
    (void)call_handlers(L, "epoch");
}

static void deliver(lua_State *L, script *s, const hr_event *event)
{
    if (event->kind == HR_EVENT_EPOCH) {
        s->epoch = *event;
        s->epoch_ended = true;
    } else if (event->kind == HR_EVENT_EVAL) {
        deliver_epoch(L, s, &event->u.step);
    } else {
        deliver_epoch(L, s, NULL);
        deliver_step(L, event);
    }
}

void script_deliver_events(lua_State *L, bool last)
{
    script *s = script_of(L);
    for (unsigned k = 0; k < s->event_count; k++) {
        hr_event event = s->events[k];
        deliver(L, s, &event);
    }
    s->event_count = 0;
    if (last) {
        deliver_epoch(L, s, NULL);
    }
}

bool script_deliver_oom(lua_State *L, const hr_report_oom *oom)
{
    script_push_oom(L, oom);
    return call_handlers(L, "oom");
}
