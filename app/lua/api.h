// SPDX-License-Identifier: Apache-2.0
// The hr table, one row per name: the table itself, and later the stub file, the reference page and the `:`
// commands of the workbench, are generated from these rows.
#ifndef APP_LUA_API_H
#define APP_LUA_API_H

#include <lua.h>
#include <stddef.h>

typedef struct script_api_row {
    const char *name;       // "plan": hr.plan
    const char *arguments;  // "{steps = N, knob = value, …}"; NULL: a field, not a function
    const char *result;     // type of what it returns, or of the field; "" for nothing
    const char *line;       // one line of meaning
    const char *example;    // whole lines of Lua that run by themselves; tests run every one
    lua_CFunction function; // of a field: pushes its value once, when the table is made
} script_api_row;

const script_api_row *script_api_rows(size_t *count);

// Makes the global `hr`. Raises.
void script_open_api(lua_State *L);

#endif
