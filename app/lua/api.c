// SPDX-License-Identifier: Apache-2.0
// The object hr: it has what the rows name, and nothing in it can be replaced.
#include "app/lua/api.h"

#include "headroom/words.h"

#include "app/lua/script.h"

enum { NAMES_MAX = 64 };

static const char hr_type[] = "hr";

bool lua_script_row_at(size_t index, lua_script_row *row)
{
    size_t count = 0;
    const script_api_row *r = script_api_rows(&count) + index;
    if (index >= count) {
        return false;
    }
    *row = (lua_script_row){r->name, r->arguments, r->result, r->line, r->example, r->options};
    return true;
}

static int raise_unknown_name(lua_State *L, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    hr_err err = {0};
    const script_api_row *rows = script_api_rows(&count);
    for (size_t k = 0; k < count; k++) {
        names[k] = rows[k].name;
    }
    const char *near = hr_word_nearest(name, names, count);
    (void)HR_FAIL(&err, LUA, "hr has no '%.64s'%s%s%s", name, near == NULL ? "" : " — did you mean '",
                  near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(&err, "hr.%s", near == NULL ? "plan{steps = 3}, hr.run{steps = 10}" : near);
    return script_raise(L, &err);
}

// hr is an object, not a table: nothing in it can be replaced, not even by rawset. Its values are the upvalue.
static int get_name(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    return lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL ? 1 : raise_unknown_name(L, name);
}

static int refuse_write(lua_State *L)
{
    return script_error(L,
                        "hr is read-only: '%s' cannot be set; knobs are turned as hr.knobs.group.key = value",
                        luaL_tolstring(L, 2, NULL));
}

static int hr_to_text(lua_State *L)
{
    lua_pushfstring(L, "hr (version %d)", SCRIPT_API_VERSION);
    return 1;
}

static void push_values(lua_State *L)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    lua_newtable(L);
    for (size_t k = 0; k < count; k++) {
        if (rows[k].arguments != NULL) {
            lua_pushcfunction(L, rows[k].function);
        } else {
            (void)rows[k].function(L);
        }
        lua_setfield(L, -2, rows[k].name);
    }
}

void script_open_api(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__newindex", refuse_write}, {"__tostring", hr_to_text}, {NULL, NULL}};
    (void)lua_newuserdatauv(L, 0, 0);
    (void)luaL_newmetatable(L, hr_type);
    luaL_setfuncs(L, methods, 0);
    push_values(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, SCRIPT_NAMES_KEY);
    lua_pushcclosure(L, get_name, 1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, hr_type);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "hr");
}
