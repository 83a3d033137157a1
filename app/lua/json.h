// SPDX-License-Identifier: Apache-2.0
// Values of a recipe as text, collected piece by piece in a list of Lua, so that nothing is open when Lua raises. A list lies at
// the index `pieces`.
#ifndef APP_LUA_JSON_H
#define APP_LUA_JSON_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_PLAIN_MAX = 40 };

void script_add_piece(lua_State *L, int pieces, const char *text);
void script_add_top(lua_State *L, int pieces); // the text on top of the stack, which goes
// Pushes all of them as one text.
const char *script_push_pieces(lua_State *L, int pieces, size_t *length);
// The value at `index` as JSON: keys in alphabetical order, sizes as numbers, what is not finite null.
// Raises for what JSON has not, also for a text that is no UTF-8, in the name of `caller` ("hr.export").
void script_add_json(lua_State *L, int pieces, int index, const char *caller);
// The same as YAML: but for bare "$width*4", which a preset would read as a text otherwise, it is JSON.
void script_add_yaml(lua_State *L, int pieces, int index, const char *caller);
// The value at `index` where it is a number, a size or a boolean; `nothing`: for what is not finite.
bool script_plain_text(lua_State *L, int index, const char *nothing, char text[SCRIPT_PLAIN_MAX]);
// Raises, in the name of `caller`, where the text at `index` is no UTF-8 or, unless `takes_nul`, has a NUL.
void script_check_text(lua_State *L, int index, const char *caller, bool takes_nul);
// Pushes the keys of the table at `index` as a list in alphabetical order; returns how many. Raises where one is no text.
lua_Integer script_push_keys(lua_State *L, int index, const char *caller);

#endif
