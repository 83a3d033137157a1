// SPDX-License-Identifier: Apache-2.0
// hr.on: events of the engine are collected while it works, and the recipe's functions are called between two of its
// advances, so that a knob they turn holds from the next step on. before_update alone comes from within a step.
//
// registry[address of an event's row] = list of handlers; a list is never changed but replaced, so that one that is walked
// stays whole.
#include <string.h>

#include "headroom/words.h"

#include "app/lua/events.h"
#include "app/lua/fields.h"
#include "app/lua/script.h"

typedef struct handler {
    script_event event;
    bool off;
    uint64_t above_bytes; // of alloc
    bool norm;            // of step
} handler;                // its user value is the function

static const char handler_type[] = "hr.handler";

// ---- the lists ------------------------------------------------------------------------------------------------------

static void push_list(lua_State *L, script_event event)
{
    (void)lua_rawgetp(L, LUA_REGISTRYINDEX, &script_event_rows[event]);
}

// Every handler of the event that is on, in their order, and `more` at the end where it is an index; replaces the list.
static void renew_list(lua_State *L, script_event event, int more)
{
    script *s = script_of(L);
    lua_Integer count = 0;
    uint64_t least = UINT64_MAX;
    bool norm = false;
    lua_newtable(L);
    push_list(L, event);
    const lua_Integer old = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    for (lua_Integer k = 1; k <= old + (more != 0); k++) {
        if (k <= old) {
            lua_rawgeti(L, -1, k);
        } else {
            lua_pushvalue(L, more);
        }
        const handler *h = lua_touserdata(L, -1);
        if (h->off) {
            lua_pop(L, 1);
            continue;
        }
        least = h->above_bytes < least ? h->above_bytes : least;
        norm = norm || h->norm;
        lua_rawseti(L, -3, ++count);
    }
    lua_pop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_event_rows[event]);
    s->listens = count > 0 ? s->listens | 1U << event : s->listens & ~(1U << event);
    if (event == SCRIPT_EVENT_ALLOC) {
        s->alloc_above = least;
    }
    s->wants_norm = event == SCRIPT_EVENT_STEP ? norm : s->wants_norm;
}

static int turn_off(lua_State *L)
{
    handler *h = luaL_checkudata(L, 1, handler_type);
    if (!h->off) {
        h->off = true;
        renew_list(L, h->event, 0);
    }
    return 0;
}

static void turn_all_off(lua_State *L, script_event event)
{
    push_list(L, event);
    const lua_Integer count = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, -1, k);
        ((handler *)lua_touserdata(L, -1))->off = true;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    renew_list(L, event, 0);
}

// ---- hr.on ----------------------------------------------------------------------------------------------------------

static script_event event_named(lua_State *L, const char *name)
{
    const char *names[SCRIPT_EVENT_COUNT];
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        names[k] = script_event_rows[k].name;
        if (strcmp(names[k], name) == 0) {
            return (script_event)k;
        }
    }
    (void)script_raise_unknown(L, "there is no event '%s'", name, names, SCRIPT_EVENT_COUNT);
    return SCRIPT_EVENT_COUNT;
}

// An option is of one event.
static void read_options(lua_State *L, handler *h)
{
    if (lua_isnoneornil(L, 3)) {
        return;
    }
    luaL_checktype(L, 3, LUA_TTABLE);
    script_check_options(L, 3, "on");
    if (lua_getfield(L, 3, "above") != LUA_TNIL) {
        const int64_t bytes = script_to_bytes(L, lua_gettop(L));
        h->above_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
    }
    (void)lua_getfield(L, 3, "gradient_norm");
    h->norm = lua_toboolean(L, -1);
    const char *wrong = h->above_bytes > 0 && h->event != SCRIPT_EVENT_ALLOC
                            ? "above is an option of \"alloc\""
                        : h->norm && h->event != SCRIPT_EVENT_STEP ? "gradient_norm is an option of \"step\""
                                                                   : NULL;
    if (wrong != NULL) {
        (void)script_error(L, "hr.on: %s, had it with \"%s\"", wrong, script_event_rows[h->event].name);
    }
    lua_pop(L, 2);
}

int script_on(lua_State *L)
{
    const script_event event = event_named(L, luaL_checkstring(L, 1));
    luaL_checkany(L, 2);
    if (lua_isnil(L, 2)) {
        turn_all_off(L, event);
        return 0;
    }
    luaL_checktype(L, 2, LUA_TFUNCTION);
    handler read = {.event = event};
    read_options(L, &read);
    handler *h = lua_newuserdatauv(L, sizeof *h, 1);
    *h = read;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, handler_type);
    renew_list(L, event, lua_gettop(L));
    return 1;
}

static int handler_to_text(lua_State *L)
{
    const handler *h = luaL_checkudata(L, 1, handler_type);
    lua_pushfstring(L, "hr.on(\"%s\", …)%s", script_event_rows[h->event].name, h->off ? ", off" : "");
    return 1;
}

void script_open_callbacks(lua_State *L)
{
    static const luaL_Reg methods[] = {{"off", turn_off}, {NULL, NULL}};
    (void)luaL_newmetatable(L, handler_type);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, handler_to_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, handler_type);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    (void)lua_newuserdatauv(L, 0, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_of(L)->raised_in_step);
}

// ---- calling --------------------------------------------------------------------------------------------------------

// Stack: …, event's table, list. Calls handler k, unless it is off or wants larger ones; whether it returned true.
static bool call_one(lua_State *L, lua_Integer k, uint64_t bytes)
{
    const int table = lua_gettop(L) - 1;
    lua_rawgeti(L, -1, k);
    const handler *h = lua_touserdata(L, -1);
    bool agreed = false;
    if (!h->off && bytes >= h->above_bytes) {
        (void)lua_getiuservalue(L, -1, 1);
        lua_pushvalue(L, table);
        lua_call(L, 1, 1);
        agreed = lua_toboolean(L, -1);
    }
    lua_settop(L, table + 1);
    return agreed;
}

bool script_call_handlers(lua_State *L, script_event event, uint64_t bytes)
{
    const int table = lua_gettop(L);
    bool agreed = false;
    luaL_checkstack(L, 8, "callbacks within callbacks");
    push_list(L, event);
    const lua_Integer count = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    for (lua_Integer k = 1; k <= count; k++) {
        agreed = call_one(L, k, bytes) || agreed;
    }
    lua_settop(L, table - 1);
    return agreed;
}
