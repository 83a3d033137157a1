// SPDX-License-Identifier: Apache-2.0
// One value within a line of a console, and what of its text goes into columns.
#ifndef APP_LUA_CONSOLE_VALUE_H
#define APP_LUA_CONSOLE_VALUE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    VALUE_TEXT_MAX = 160,
    NAME_COLUMNS = 26, // in front of it
};

bool value_says_itself(lua_State *L, int index); // it has a __tostring
lua_Integer value_count_keys(lua_State *L, int index);
int value_width(const char *text); // characters of UTF-8
// At most `columns` characters, each of them whole, without a control character or a line's end.
void value_copy_plain(const char *text, size_t size, int columns, char *out);
// The value at `index`; a text in quotes if `quoted`. Raises, as a __tostring may.
void value_write_brief(lua_State *L, int index, bool quoted, char out[VALUE_TEXT_MAX]);

#endif
