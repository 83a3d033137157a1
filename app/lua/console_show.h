// SPDX-License-Identifier: Apache-2.0
// Values as a person at a console reads them.
#ifndef APP_LUA_CONSOLE_SHOW_H
#define APP_LUA_CONSOLE_SHOW_H

#include <lua.h>
#include <stdio.h>

enum { SHOW_COLUMNS = 80 };

// A line for each value on the stack from `first` on: what has a __tostring says itself, a list of rows is a table with a
// heading, another table has a line for each name. Raises, as a __tostring may.
void console_show(lua_State *L, int first, FILE *to);

#endif
