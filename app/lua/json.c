// SPDX-License-Identifier: Apache-2.0
#include "app/lua/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/json.h"

#include "app/lua/script.h"

enum { DEPTH_MAX = 16 };

// ---- pieces ---------------------------------------------------------------------------------------------------------

void script_add_top(lua_State *L, int pieces)
{
    lua_rawseti(L, pieces, (lua_Integer)lua_rawlen(L, pieces) + 1);
}

void script_add_piece(lua_State *L, int pieces, const char *text)
{
    lua_pushstring(L, text);
    script_add_top(L, pieces);
}

const char *script_push_pieces(lua_State *L, int pieces, size_t *length)
{
    luaL_Buffer whole;
    const lua_Integer count = (lua_Integer)lua_rawlen(L, pieces);
    luaL_buffinit(L, &whole);
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, pieces, k);
        luaL_addvalue(&whole);
    }
    luaL_pushresult(&whole);
    return lua_tolstring(L, -1, length);
}

// ---- numbers --------------------------------------------------------------------------------------------------------

static void real_text(double value, const char *nothing, char text[SCRIPT_PLAIN_MAX])
{
    (void)snprintf(text, SCRIPT_PLAIN_MAX, "%.15g", value);
    if (!isfinite(value)) {
        (void)snprintf(text, SCRIPT_PLAIN_MAX, "%s", nothing);
    } else if (strtod(text, NULL) != value) {
        (void)snprintf(text, SCRIPT_PLAIN_MAX, "%.17g", value);
    }
}

bool script_plain_text(lua_State *L, int index, const char *nothing, char text[SCRIPT_PLAIN_MAX])
{
    int64_t bytes = 0;
    if (script_is_bytes(L, index, &bytes)) {
        (void)snprintf(text, SCRIPT_PLAIN_MAX, "%" PRId64, bytes);
    } else if (lua_isinteger(L, index)) {
        (void)snprintf(text, SCRIPT_PLAIN_MAX, "%lld", (long long)lua_tointeger(L, index));
    } else if (lua_type(L, index) == LUA_TNUMBER) {
        real_text(lua_tonumber(L, index), nothing, text);
    } else if (lua_isboolean(L, index)) {
        (void)snprintf(text, SCRIPT_PLAIN_MAX, "%s", lua_toboolean(L, index) ? "true" : "false");
    } else {
        return false;
    }
    return true;
}

// ---- texts ----------------------------------------------------------------------------------------------------------

// Where the first byte is that belongs to no character; `length`: nowhere.
static size_t find_stray(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    while (at < end) {
        char form[HR_JSON_CHAR_MAX];
        const char *from = at;
        if (hr_json_char(&at, end, form) == HR_JSON_CHAR_MAX && memcmp(form, "\\ufffd", sizeof form) == 0) {
            return (size_t)(from - text);
        }
    }
    return length;
}

void script_check_text(lua_State *L, int index, const char *caller, bool takes_nul)
{
    size_t length = 0;
    hr_err err = {0};
    const char *text = lua_tolstring(L, index, &length);
    const char *nul = takes_nul ? NULL : memchr(text, '\0', length);
    const size_t at = nul != NULL ? (size_t)(nul - text) : find_stray(text, length);
    if (at < length) {
        (void)HR_FAIL(&err, LUA, "%s: byte %zu of a text is 0x%02x, which %s", caller, at + 1,
                      (unsigned)(unsigned char)text[at],
                      nul != NULL ? "it cannot have here" : "belongs to no character of UTF-8");
        hr_err_try(&err, "text:gsub('[\\0\\x80-\\xff]', '?')");
        (void)script_raise(L, &err);
    }
}

typedef struct key {
    const char *text; // the table's
    size_t length;
} key;

static int by_text(const void *a, const void *b)
{
    const key *one = a, *other = b;
    const size_t least = one->length < other->length ? one->length : other->length;
    const int order = memcmp(one->text, other->text, least);
    return order != 0 ? order : (one->length > other->length) - (one->length < other->length);
}

lua_Integer script_push_keys(lua_State *L, int index, const char *caller)
{
    size_t room = 0, count = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            (void)script_error(L, "%s: a table has a %s as key, which it cannot have here", caller,
                               luaL_typename(L, -2));
        }
        room++;
    }
    key *keys = lua_newuserdatauv(L, (room + 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        keys[count].text = lua_tolstring(L, -2, &keys[count].length);
        count++;
    }
    qsort(keys, count, sizeof *keys, by_text);
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_pushlstring(L, keys[k].text, keys[k].length);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_remove(L, -2);
    return (lua_Integer)count;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

typedef struct json_writer {
    lua_State *L;
    int pieces;
    const char *caller;
    bool sizes_bare;
} json_writer;

// "$width*4"
static bool is_size(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$*/";
    return strchr(text, '$') != NULL && strspn(text, letters) == length;
}

static void add_text(const json_writer *w, int index)
{
    size_t length = 0;
    const char *text = lua_tolstring(w->L, index, &length);
    luaL_Buffer out;
    if (w->sizes_bare && is_size(text, length)) {
        script_add_piece(w->L, w->pieces, text);
        return;
    }
    script_check_text(w->L, index, w->caller, true);
    luaL_buffinit(w->L, &out);
    luaL_addchar(&out, '"');
    for (const char *end = text + length; text < end;) {
        char form[HR_JSON_CHAR_MAX];
        const size_t bytes = hr_json_char(&text, end, form);
        luaL_addlstring(&out, form, bytes);
    }
    luaL_addchar(&out, '"');
    luaL_pushresult(&out);
    script_add_top(w->L, w->pieces);
}

static void add_value(const json_writer *w, int index, int depth);

// A table that is a list and has names, too, would lose them.
static void check_list(const json_writer *w, int index, lua_Integer count)
{
    lua_State *L = w->L;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        const lua_Integer k = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        if (k < 1 || k > count) {
            (void)script_error(
                L, "%s: a table is a list of %I and has the key '%s', too, which it cannot have here",
                w->caller, (LUAI_UACINT)count, luaL_tolstring(L, -2, NULL));
        }
    }
}

static void add_list(const json_writer *w, int index, int depth)
{
    lua_State *L = w->L;
    const lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    check_list(w, index, count);
    script_add_piece(L, w->pieces, "[");
    for (lua_Integer k = 1; k <= count; k++) {
        script_add_piece(L, w->pieces, k > 1 ? ", " : "");
        lua_rawgeti(L, index, k);
        add_value(w, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
    }
    script_add_piece(L, w->pieces, "]");
}

static void add_object(const json_writer *w, int index, int depth)
{
    lua_State *L = w->L;
    const lua_Integer count = script_push_keys(L, index, w->caller);
    const int keys = lua_gettop(L);
    script_add_piece(L, w->pieces, "{");
    for (lua_Integer k = 1; k <= count; k++) {
        script_add_piece(L, w->pieces, k > 1 ? ", " : "");
        lua_rawgeti(L, keys, k);
        add_text(w, keys + 1);
        script_add_piece(L, w->pieces, ": ");
        lua_rawget(L, index);
        add_value(w, keys + 1, depth + 1);
        lua_pop(L, 1);
    }
    script_add_piece(L, w->pieces, "}");
    lua_pop(L, 1);
}

static void add_value(const json_writer *w, int index, int depth)
{
    lua_State *L = w->L;
    char text[SCRIPT_PLAIN_MAX];
    if (depth > DEPTH_MAX) {
        (void)script_error(L, "%s: tables lie in each other more than %d deep", w->caller, DEPTH_MAX);
    }
    luaL_checkstack(L, 8, "tables within tables");
    if (script_plain_text(L, index, "null", text)) {
        script_add_piece(L, w->pieces, text);
    } else if (lua_type(L, index) == LUA_TSTRING) {
        add_text(w, index);
    } else if (lua_isnil(L, index)) {
        script_add_piece(L, w->pieces, "null");
    } else if (!lua_istable(L, index)) {
        (void)script_error(L, "%s: a %s cannot be written", w->caller, luaL_typename(L, index));
    } else if (lua_rawlen(L, index) > 0) {
        add_list(w, index, depth);
    } else {
        add_object(w, index, depth);
    }
}

void script_add_json(lua_State *L, int pieces, int index, const char *caller)
{
    add_value(&(json_writer){L, pieces, caller, false}, index, 0);
}

void script_add_yaml(lua_State *L, int pieces, int index, const char *caller)
{
    add_value(&(json_writer){L, pieces, caller, true}, index, 0);
}
