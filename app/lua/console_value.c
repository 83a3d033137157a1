// SPDX-License-Identifier: Apache-2.0
#include "app/lua/console_value.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "app/lua/console_show.h"

bool value_says_itself(lua_State *L, int index)
{
    const bool has = luaL_getmetafield(L, index, "__tostring") != LUA_TNIL;
    lua_settop(L, has ? -2 : -1);
    return has;
}

lua_Integer value_count_keys(lua_State *L, int index)
{
    lua_Integer count = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        lua_pop(L, 1);
        count++;
    }
    return count;
}

int value_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0U) != 0x80U;
    }
    return width;
}

// Of the character of UTF-8 at `text`; of bytes that are none, those that go together.
static size_t bytes_of(const char *text)
{
    size_t bytes = 1;
    while (bytes < 4 && ((unsigned char)text[bytes] & 0xC0U) == 0x80U) {
        bytes++;
    }
    return bytes;
}

void value_copy_plain(const char *text, size_t size, int columns, char *out)
{
    size_t used = 0, last = 0;
    for (int shown = 0; *text != '\0'; shown++) {
        const size_t bytes = bytes_of(text);
        if (shown == columns || used + bytes + sizeof "…" > size) {
            memcpy(out + last, "…", sizeof "…");
            return;
        }
        last = used;
        memcpy(out + used, text, bytes);
        out[used] = (char)((unsigned char)*text < ' ' || *text == 0x7F ? ' ' : *text);
        used += bytes;
        text += bytes;
    }
    out[used] = '\0';
}

// The list at `index` as {"a", 2}, where it is short and of plain values only.
static bool write_list(lua_State *L, int index, lua_Integer count, char out[VALUE_TEXT_MAX])
{
    size_t used = 0;
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, index, k);
        const bool text = lua_type(L, -1) == LUA_TSTRING;
        const bool plain = text || lua_type(L, -1) == LUA_TNUMBER;
        char item[VALUE_TEXT_MAX] = "";
        if (plain) {
            lua_pushvalue(L, -1); // whose number a text would become
            value_copy_plain(lua_tostring(L, -1), sizeof item, SHOW_COLUMNS, item);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        used += (size_t)snprintf(out + used, VALUE_TEXT_MAX - used, "%s%s%.*s%s", k == 1 ? "{" : ", ",
                                 text ? "\"" : "", VALUE_TEXT_MAX / 2, item, text ? "\"" : "");
        if (!plain || used > SHOW_COLUMNS - NAME_COLUMNS - 6) {
            return false;
        }
    }
    (void)snprintf(out + used, VALUE_TEXT_MAX - used, "}");
    return true;
}

void value_write_brief(lua_State *L, int index, bool quoted, char out[VALUE_TEXT_MAX])
{
    if (lua_type(L, index) == LUA_TTABLE && !value_says_itself(L, index)) {
        const lua_Integer count = value_count_keys(L, index);
        if (count > 0 && count == (lua_Integer)lua_rawlen(L, index) && write_list(L, index, count, out)) {
            return;
        }
        (void)snprintf(out, VALUE_TEXT_MAX, count == 0 ? "{}" : "{… %lld}", (long long)count);
        return;
    }
    if (lua_isfunction(L, index)) {
        (void)snprintf(out, VALUE_TEXT_MAX, "function");
        return;
    }
    const char *text = luaL_tolstring(L, index, NULL);
    const bool in_quotes = quoted && lua_type(L, index) == LUA_TSTRING;
    if (strchr(text, '\n') != NULL && lua_type(L, index) != LUA_TSTRING) {
        text = "…"; // a whole picture or table
    }
    char plain[VALUE_TEXT_MAX - 8];
    value_copy_plain(text, sizeof plain, SHOW_COLUMNS - NAME_COLUMNS - 4, plain);
    (void)snprintf(out, VALUE_TEXT_MAX, "%s%s%s", in_quotes ? "\"" : "", plain, in_quotes ? "\"" : "");
    lua_pop(L, 1);
}
