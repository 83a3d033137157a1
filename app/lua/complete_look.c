// SPDX-License-Identifier: Apache-2.0
#include "app/lua/complete_look.h"

#include <stdio.h>
#include <string.h>

enum {
    KEYS_MAX = 100000, // of one table that are looked at
    CHAIN_MAX = 8,     // of metatables, one behind the other
};

// ---- tables as they are -----------------------------------------------------------------------------------------

// Replaces the table on top of the stack by its value under `name`, or by nil. lua_rawget would make a text of Lua's first.
static void get_raw(lua_State *L, scan_span name)
{
    size_t length = 0;
    unsigned seen = 0;
    lua_pushnil(L);
    while (seen++ < KEYS_MAX && lua_next(L, -2) != 0) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &length) : NULL;
        if (key != NULL && length == name.length && memcmp(key, name.at, length) == 0) {
            lua_replace(L, -3);
            lua_pop(L, 1);
            return;
        }
        lua_pop(L, 1);
    }
    lua_settop(L, seen > KEYS_MAX ? -3 : -2);
    lua_pushnil(L);
}

static void get_registered(lua_State *L, const char *name)
{
    lua_pushvalue(L, LUA_REGISTRYINDEX);
    get_raw(L, (scan_span){name, strlen(name)});
}

// Replaces the value on top of the stack by the table in which it looks for what it has not itself.
static bool go_behind(lua_State *L)
{
    static const char key[] = "__index";
    if (!lua_getmetatable(L, -1)) {
        return false;
    }
    get_raw(L, (scan_span){key, sizeof key - 1});
    lua_replace(L, -2);
    return lua_istable(L, -1);
}

static bool is_of_type(lua_State *L, const char *type)
{
    if (!lua_isuserdata(L, -1) || !lua_getmetatable(L, -1)) {
        return false;
    }
    get_registered(L, type);
    const bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

// ---- what a value is --------------------------------------------------------------------------------------------

static void become_nil(lua_State *L)
{
    lua_pop(L, 1);
    lua_pushnil(L);
}

static const script_api_row *row_of(lua_State *L)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    const lua_CFunction function = lua_iscfunction(L, -1) ? lua_tocfunction(L, -1) : NULL;
    for (size_t k = 0; function != NULL && k < count; k++) {
        if (rows[k].arguments != NULL && rows[k].function == function) {
            return &rows[k];
        }
    }
    return NULL;
}

// Of the value on top of the stack, which becomes nil where it is one of ours.
static look_thing identify(lua_State *L)
{
    look_thing thing = {.kind = lua_isnil(L, -1) ? LOOK_NOTHING : LOOK_VALUE, .row = row_of(L)};
    if (thing.row != NULL) {
        thing.kind = LOOK_ROW;
    } else if (is_of_type(L, "hr")) {
        thing.kind = LOOK_HR;
    } else if (is_of_type(L, "hr.knobs")) {
        thing.kind = LOOK_KNOBS;
    } else if (is_of_type(L, "hr.knobs.group")) {
        thing.kind = LOOK_GROUP;
        (void)snprintf(thing.group, sizeof thing.group, "%s", (const char *)lua_touserdata(L, -1));
    } else if (is_of_type(L, "hr.bytes")) {
        thing.kind = LOOK_BYTES;
    }
    if (thing.kind != LOOK_VALUE) {
        become_nil(L);
    }
    return thing;
}

bool look_is_group(scan_span name)
{
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        if (strcspn(key, ".") == name.length && memcmp(key, name.at, name.length) == 0) {
            return true;
        }
    }
    return false;
}

static look_thing knob_called(const char *group, scan_span name)
{
    char key[2 * LOOK_GROUP_MAX + SCAN_NAMES_MAX];
    (void)snprintf(key, sizeof key, "%s%s%.*s", group, group[0] != '\0' ? "." : "",
                   (int)(name.length < LOOK_GROUP_MAX ? name.length : LOOK_GROUP_MAX), name.at);
    const hr_knob_row *knob = hr_knob_find(key, NULL);
    return (look_thing){.kind = knob == NULL ? LOOK_NOTHING : LOOK_KNOB, .knob = knob};
}

// ---- one name further -------------------------------------------------------------------------------------------

static look_thing step_into_hr(lua_State *L, scan_span name)
{
    get_registered(L, SCRIPT_NAMES_KEY);
    lua_replace(L, -2);
    if (!lua_istable(L, -1)) {
        become_nil(L);
        return (look_thing){0};
    }
    get_raw(L, name);
    return identify(L);
}

static look_thing step_into_knobs(scan_span name)
{
    look_thing thing = {.kind = LOOK_GROUP};
    if (!look_is_group(name)) {
        return knob_called("", name);
    }
    (void)snprintf(thing.group, sizeof thing.group, "%.*s", (int)name.length, name.at);
    return thing;
}

static look_thing step_into_value(lua_State *L, scan_span name)
{
    for (unsigned k = 0; k < CHAIN_MAX; k++) {
        if (lua_istable(L, -1)) {
            lua_pushvalue(L, -1);
            get_raw(L, name);
            if (!lua_isnil(L, -1)) {
                lua_replace(L, -2);
                return identify(L);
            }
            lua_pop(L, 1);
        }
        if (!go_behind(L)) {
            break;
        }
    }
    become_nil(L);
    return (look_thing){0};
}

static look_thing step(lua_State *L, const look_thing *of, scan_span name)
{
    if (of->kind == LOOK_HR) {
        return step_into_hr(L, name);
    }
    if (of->kind == LOOK_KNOBS) {
        return step_into_knobs(name);
    }
    if (of->kind == LOOK_GROUP) {
        return knob_called(of->group, name);
    }
    if (of->kind == LOOK_VALUE) {
        return step_into_value(L, name);
    }
    become_nil(L);
    return (look_thing){0};
}

look_thing look_globals(lua_State *L)
{
    if (!lua_checkstack(L, LOOK_STACK)) {
        return (look_thing){0};
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    return (look_thing){.kind = LOOK_VALUE};
}

look_thing look_find(lua_State *L, const scan_path *path)
{
    look_thing thing = {0};
    if (path->count == 0) {
        lua_pushnil(L);
        return thing;
    }
    thing = look_globals(L);
    for (unsigned k = 0; k < path->count; k++) {
        thing = step(L, &thing, path->names[k]);
    }
    return thing;
}

// ---- names ------------------------------------------------------------------------------------------------------

static void each_of_table(lua_State *L, bool functions,
                          void (*visit)(lua_State *L, const char *name, size_t length, void *context),
                          void *context)
{
    size_t length = 0;
    unsigned seen = 0;
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (lua_type(L, -2) == LUA_TSTRING && (!functions || lua_isfunction(L, -1))) {
            const char *name = lua_tolstring(L, -2, &length);
            visit(L, name, length, context);
        }
        lua_pop(L, 1);
        if (++seen == KEYS_MAX) {
            lua_pop(L, 1);
            return;
        }
    }
}

void look_each(lua_State *L, bool functions,
               void (*visit)(lua_State *L, const char *name, size_t length, void *context), void *context)
{
    lua_pushvalue(L, -1);
    for (unsigned k = 0; k < CHAIN_MAX; k++) {
        if (lua_istable(L, -1)) {
            each_of_table(L, functions, visit, context);
        }
        if (!go_behind(L)) {
            break;
        }
    }
    lua_pop(L, 1);
}

bool look_signature(lua_State *L, scan_span name, char *text, size_t size)
{
    lua_Debug ar;
    if (!lua_isfunction(L, -1) || lua_iscfunction(L, -1)) {
        return false;
    }
    lua_pushvalue(L, -1);
    (void)lua_getinfo(L, ">u", &ar);
    size_t used = (size_t)snprintf(text, size, "%.*s(", (int)(name.length < 64 ? name.length : 64), name.at);
    for (int k = 1; k <= ar.nparams && used < size; k++) {
        const char *parameter = lua_getlocal(L, NULL, k);
        used += (size_t)snprintf(text + used, size - used, "%s%.40s", k > 1 ? ", " : "",
                                 parameter == NULL ? "?" : parameter);
    }
    if (used < size) {
        (void)snprintf(text + used, size - used, "%s)", !ar.isvararg ? "" : ar.nparams > 0 ? ", …" : "…");
    }
    return true;
}
