// SPDX-License-Identifier: Apache-2.0
// What a path of names means in a live state, found by reading tables as they are: no code of a script runs, no metamethod is
// called, and Lua allocates nothing.
#ifndef APP_LUA_COMPLETE_LOOK_H
#define APP_LUA_COMPLETE_LOOK_H

#include <lua.h>

#include "headroom/knobs.h"

#include "app/lua/api.h"
#include "app/lua/complete_scan.h"

enum { LOOK_GROUP_MAX = 32, LOOK_STACK = 12 /* places of the stack that are needed */ };

typedef enum look_kind {
    LOOK_NOTHING,
    LOOK_HR,
    LOOK_KNOBS, // hr.knobs
    LOOK_GROUP, // hr.knobs.batch
    LOOK_KNOB,  // hr.knobs.batch.size: `knob`
    LOOK_BYTES, // a size
    LOOK_ROW,   // a function of hr
    LOOK_VALUE, // what else there is, on top of the stack
} look_kind;

typedef struct look_thing {
    look_kind kind;
    char group[LOOK_GROUP_MAX];
    const hr_knob_row *knob;
    const script_api_row *row;
} look_thing;

// Pushes one value, which is nil unless the kind is LOOK_VALUE.
look_thing look_find(lua_State *L, const scan_path *path);
// The same of the global table itself.
look_thing look_globals(lua_State *L);
// Calls `visit` with each text key of the value on top of the stack, and of what its metatable's __index has where that is
// a table; `functions`: of functions alone. The value itself is on top of the stack during the call.
void look_each(lua_State *L, bool functions,
               void (*visit)(lua_State *L, const char *name, size_t length, void *context), void *context);
// "name(a, b, …)" of the Lua function on top of the stack; false for another value.
bool look_signature(lua_State *L, scan_span name, char *text, size_t size);
// Whether there is a group of knobs that is called so.
bool look_is_group(scan_span name);

#endif
