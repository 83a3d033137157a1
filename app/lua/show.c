// SPDX-License-Identifier: Apache-2.0
// What a typed expression came to: as print has it, but a table that has no text of its own by its fields.
#include "app/lua/script.h"

enum { FIELDS_MAX = 40, VALUE_MAX = 60 };

static void begin_line(lua_State *L, int key)
{
    script *s = script_of(L);
    size_t length = 0;
    const char *text = luaL_tolstring(L, key, &length);
    s->printing = 1;
    script_print_text(s->out, text, length);
    fputs(" = ", s->out);
    s->printing = 0;
    lua_pop(L, 1);
}

static void end_line(lua_State *L, int value)
{
    script *s = script_of(L);
    size_t length = 0;
    const bool opaque = lua_istable(L, value) && luaL_getmetafield(L, value, "__tostring") == LUA_TNIL;
    if (lua_istable(L, value) && !opaque) {
        lua_pop(L, 1);
    }
    const char *text = opaque ? "{...}" : luaL_tolstring(L, value, &length);
    length = opaque ? 5 : length < VALUE_MAX ? length : VALUE_MAX;
    s->printing = 1;
    script_print_text(s->out, text, length);
    fputc('\n', s->out);
    s->printing = 0;
    lua_pop(L, opaque ? 0 : 1);
}

static void show_fields(lua_State *L, int table)
{
    script *s = script_of(L);
    unsigned shown = 0, all = 0;
    lua_pushnil(L);
    for (; lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (all++ < FIELDS_MAX) {
            begin_line(L, lua_gettop(L) - 1);
            end_line(L, lua_gettop(L));
            shown++;
        }
    }
    if (all == 0 || all > shown) {
        s->printing = 1;
        fprintf(s->out, all == 0 ? "{}\n" : "and %u more\n", all - shown);
        s->printing = 0;
    }
}

int script_show(lua_State *L)
{
    const int count = lua_gettop(L);
    for (int k = 1; k <= count; k++) {
        const bool named = lua_istable(L, k) && luaL_getmetafield(L, k, "__tostring") != LUA_TNIL;
        lua_settop(L, count);
        if (lua_istable(L, k) && !named) {
            show_fields(L, k);
        } else {
            lua_pushcfunction(L, script_print);
            lua_pushvalue(L, k);
            lua_call(L, 1, 0);
        }
    }
    return 0;
}
