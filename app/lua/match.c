// SPDX-License-Identifier: Apache-2.0
// string.find, match, gmatch and gsub over pattern.c; they behave as Lua 5.4's own.
#include <ctype.h>
#include <string.h>

#include "app/lua/pattern.h"
#include "app/lua/script.h"

// Offset of the place that a recipe calls `position`: from 1, or from the end when negative.
static size_t offset_of(lua_Integer position, size_t length)
{
    if (position > 0) {
        return (size_t)position - 1;
    }
    return position == 0 || position < -(lua_Integer)length ? 0 : length - (size_t)-position;
}

static bool has_specials(const char *text, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        if (text[k] != '\0' && strchr("^$*+?.([%-", text[k]) != NULL) {
            return true;
        }
    }
    return false;
}

static int find_plain(lua_State *L, size_t from)
{
    size_t subject_length = 0, length = 0;
    const char *subject = lua_tolstring(L, 1, &subject_length);
    const char *text = lua_tolstring(L, 2, &length);
    const char *found = memmem(subject + from, subject_length - from, text, length); // linear in glibc
    if (found == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - subject + 1);
    lua_pushinteger(L, found - subject + (ptrdiff_t)length);
    return 2;
}

// The first match at `from` or later: its captures, after its bounds when `find`; nil when there is none.
static int search(lua_State *L, bool find, size_t from)
{
    size_t subject_length = 0, length = 0;
    const char *subject = lua_tolstring(L, 1, &subject_length);
    const char *p = lua_tolstring(L, 2, &length);
    bool anchored = *p == '^';
    pattern m;
    pattern_init(&m, L, subject, subject_length, p + length);
    for (const char *s = subject + from; s <= m.end; s++) {
        const char *e = pattern_match(&m, s, p + anchored);
        if (e != NULL && find) {
            lua_pushinteger(L, s - subject + 1);
            lua_pushinteger(L, e - subject);
            return pattern_push_captures(&m, NULL, NULL) + 2;
        }
        if (e != NULL) {
            return pattern_push_captures(&m, s, e);
        }
        if (anchored) {
            break;
        }
    }
    lua_pushnil(L);
    return 1;
}

static int find_or_match(lua_State *L, bool find)
{
    size_t subject_length = 0, length = 0;
    (void)luaL_checklstring(L, 1, &subject_length);
    const char *p = luaL_checklstring(L, 2, &length);
    size_t from = offset_of(luaL_optinteger(L, 3, 1), subject_length);
    if (from > subject_length) {
        lua_pushnil(L);
        return 1;
    }
    bool plain = find && (lua_toboolean(L, 4) || !has_specials(p, length));
    return plain ? find_plain(L, from) : search(L, find, from);
}

static int find(lua_State *L)
{
    return find_or_match(L, true);
}

static int match(lua_State *L)
{
    return find_or_match(L, false);
}

// ---- gmatch -----------------------------------------------------------------------------------------------------------

enum { SUBJECT = 1, PATTERN, FROM, LAST_END, GMATCH_VALUES = LAST_END }; // upvalues; the last two are offsets

static int next_match(lua_State *L)
{
    size_t subject_length = 0, length = 0;
    const char *subject = lua_tolstring(L, lua_upvalueindex(SUBJECT), &subject_length);
    const char *p = lua_tolstring(L, lua_upvalueindex(PATTERN), &length);
    size_t from = (size_t)lua_tointeger(L, lua_upvalueindex(FROM));
    lua_Integer last_end = lua_tointeger(L, lua_upvalueindex(LAST_END));
    pattern m;
    pattern_init(&m, L, subject, subject_length, p + length);
    for (; from <= subject_length; from++) {
        const char *e = pattern_match(&m, subject + from, p);
        if (e != NULL && e - subject != last_end) {
            lua_pushinteger(L, e - subject);
            lua_copy(L, -1, lua_upvalueindex(FROM));
            lua_replace(L, lua_upvalueindex(LAST_END));
            return pattern_push_captures(&m, subject + from, e);
        }
    }
    return 0;
}

static int gmatch(lua_State *L)
{
    size_t length = 0;
    (void)luaL_checklstring(L, 1, &length);
    (void)luaL_checkstring(L, 2);
    size_t from = offset_of(luaL_optinteger(L, 3, 1), length);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)(from > length ? length + 1 : from));
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, GMATCH_VALUES);
    return 1;
}

// ---- gsub -------------------------------------------------------------------------------------------------------------

// The replacement text at 3 with its %0 to %9 and %%.
static void add_text(pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
    size_t left = 0;
    const char *text = lua_tolstring(m->L, 3, &left);
    for (const char *escape; (escape = memchr(text, '%', left)) != NULL;) {
        luaL_addlstring(b, text, (size_t)(escape - text));
        char what = escape[1];
        if (what == '%') {
            luaL_addchar(b, '%');
        } else if (what == '0') {
            luaL_addlstring(b, s, (size_t)(e - s));
        } else if (isdigit((unsigned char)what)) {
            pattern_push_capture(m, what - '1', s, e);
            luaL_addvalue(b);
        } else {
            (void)luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
        left -= (size_t)(escape + 2 - text);
        text = escape + 2;
    }
    luaL_addlstring(b, text, left);
}

// Adds what stands for the match [s, e): false when that is the match itself.
static bool add_value(pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
    lua_State *L = m->L;
    int type = lua_type(L, 3);
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, pattern_push_captures(m, s, e), 1);
    } else if (type == LUA_TTABLE) {
        pattern_push_capture(m, 0, s, e);
        (void)lua_gettable(L, 3);
    } else {
        add_text(m, b, s, e);
        return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, s, (size_t)(e - s));
        return false;
    }
    if (!lua_isstring(L, -1)) {
        (void)luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(b);
    return true;
}

static int gsub(lua_State *L)
{
    size_t subject_length = 0, length = 0;
    const char *s = luaL_checklstring(L, 1, &subject_length);
    const char *p = luaL_checklstring(L, 2, &length);
    int type = lua_type(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)subject_length + 1);
    bool known = type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE;
    luaL_argexpected(L, known, 3, "string/function/table");
    bool anchored = *p == '^', changed = false;
    const char *last_end = NULL;
    lua_Integer count = 0;
    luaL_Buffer b;
    pattern m;
    luaL_buffinit(L, &b);
    pattern_init(&m, L, s, subject_length, p + length);
    while (count < most) {
        const char *e = pattern_match(&m, s, p + anchored);
        if (e != NULL && e != last_end) {
            count++;
            changed = add_value(&m, &b, s, e) || changed;
            s = last_end = e;
        } else if (s < m.end) {
            luaL_addchar(&b, *s++);
        } else {
            break;
        }
        if (anchored) {
            break;
        }
    }
    luaL_addlstring(&b, s, (size_t)(m.end - s));
    luaL_pushresult(&b);
    if (!changed) {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, count);
    return 2;
}

void script_open_match(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
