// SPDX-License-Identifier: Apache-2.0
// Many knobs at once: hr.with and hr.apply.
#include <string.h>

#include "app/lua/script.h"

// The recipe's knobs, and those of a run under way, become `wanted` where they differ from `known`.
static hr_status turn_to(script *s, const hr_knobs *wanted, const hr_knobs *known, hr_err *err)
{
    bool other[HR_KNOB_COUNT];
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        other[id] = !script_same_knob(wanted, known, id);
    }
    if (s->engine != NULL) {
        HR_TRY(script_may_ask(s, err));
        hr_knobs all = *hr_engine_knobs(s->engine);
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            all.value[id] = other[id] ? wanted->value[id] : all.value[id];
        }
        HR_TRY(script_turn_engine(s->engine, &all, err));
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (other[id]) {
            s->knobs.value[id] = wanted->value[id];
        }
    }
    return HR_OK;
}

static void turn_or_raise(lua_State *L, const hr_knobs *wanted, const hr_knobs *known)
{
    hr_err err = {0};
    if (turn_to(script_of(L), wanted, known, &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
}

// ---- hr.with --------------------------------------------------------------------------------------------------------

typedef struct kept_knobs {
    hr_knobs before;
    unsigned preset; // of which they are
} kept_knobs;

// Stack: knobs, kept_knobs, results… or knobs, kept_knobs, error.
static int end_with(lua_State *L, int status, lua_KContext context)
{
    script *s = script_of(L);
    const kept_knobs *kept = lua_touserdata(L, 2);
    hr_err err = {0};
    (void)context;
    const bool fine = status == LUA_OK || status == LUA_YIELD;
    const hr_status back =
        kept->preset == s->preset_number ? turn_to(s, &kept->before, script_current_knobs(L), &err) : HR_OK;
    if (!fine) {
        return lua_error(L);
    }
    return back == HR_OK ? lua_gettop(L) - 3 : script_raise(L, &err);
}

int script_with(lua_State *L)
{
    script *s = script_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    kept_knobs *kept = lua_newuserdatauv(L, sizeof *kept, 0);
    lua_insert(L, 2);
    kept->before = *script_current_knobs(L);
    kept->preset = s->preset_number;
    hr_knobs within = kept->before;
    script_apply_overrides(L, 1, NULL, &within);
    turn_or_raise(L, &within, &kept->before);
    lua_pushcfunction(L, script_take_trace);
    lua_insert(L, 3);
    return end_with(L, lua_pcallk(L, 0, LUA_MULTRET, 3, 0, end_with), 0);
}

// ---- hr.apply -------------------------------------------------------------------------------------------------------

// "a.b=1" at `index`.
static void apply_pair(lua_State *L, int index, hr_knobs *knobs)
{
    size_t length = 0;
    const char *pair = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &length) : NULL;
    const char *equals = pair == NULL ? NULL : strchr(pair, '=');
    if (equals == NULL) {
        (void)script_error(L, "hr.apply takes a fix, or a list of \"key=value\", had %s in it",
                           luaL_tolstring(L, index, NULL));
        return;
    }
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, pair, (size_t)(equals - pair));
    lua_pushstring(L, equals + 1);
    lua_rawset(L, -3);
    script_apply_overrides(L, lua_gettop(L), NULL, knobs);
    lua_pop(L, 1);
}

int script_apply(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushliteral(L, "knobs");
    lua_rawget(L, 1);
    const int list = lua_istable(L, 2) ? 2 : 1;
    hr_knobs *knobs = lua_newuserdatauv(L, 2 * sizeof *knobs, 0);
    knobs[0] = knobs[1] = *script_current_knobs(L);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    if (count == 0) {
        return script_error(L,
                            "hr.apply takes a fix such as result.oom.fixes[1], or a list of \"key=value\"");
    }
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, list, k);
        apply_pair(L, lua_gettop(L), &knobs[0]);
        lua_pop(L, 1);
    }
    turn_or_raise(L, &knobs[0], &knobs[1]);
    return 0;
}
