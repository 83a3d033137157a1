// SPDX-License-Identifier: Apache-2.0
// The hr table, one row a name: the table itself, the stub, the reference page and the manual are walks over these rows.
#ifndef APP_LUA_API_H
#define APP_LUA_API_H

#include <lua.h>
#include <stddef.h>

#include "app/lua/lua_script.h"

enum { SCRIPT_API_VERSION = 1 };

#define SCRIPT_NAMES_KEY "headroom.names" // in the registry: what hr has, by name

typedef struct script_api_row {
    const char *name; // "plan": hr.plan
    const char *
        arguments; // as a person writes them, and completion reads them: "{steps = N, knob = value, …}"; NULL: a field
    const char *parameters;          // the same as LuaLS has it: "options?: hr.plan.Options"; NULL: a field
    const char *result;              // its type, or that of the field; "" for nothing
    const char *line;                // one line of meaning
    const lua_script_field *options; // of the table it takes, beside knobs; NULL: it takes none
    const char *example;             // whole lines of Lua that run by themselves; tests run every one
    lua_CFunction function;          // of a field: pushes its value once, when the table is made
} script_api_row;

const script_api_row *script_api_rows(size_t *count);

// Makes the global `hr`. Raises.
void script_open_api(lua_State *L);

#endif
