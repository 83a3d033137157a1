// SPDX-License-Identifier: Apache-2.0
// Records of the engine as Lua tables, by rows of headroom/report_fields.h: names are those of the JSON, null is nil,
// sizes are hr.bytes.
#ifndef APP_LUA_FIELDS_H
#define APP_LUA_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "headroom/report_fields.h"

void script_push_bytes_or_nil(lua_State *L, uint64_t bytes); // HR_NONE: nil
void script_push_count(lua_State *L, uint64_t count);        // HR_NONE: nil
void script_push_real(lua_State *L, double value);           // not finite: nil
void script_push_by_category(lua_State *L, const uint64_t *by_category);
// Into the table on top of the stack. `report` answers what applies; NULL where no row asks.
void script_set_fields(lua_State *L, const hr_field *fields, const void *record, const hr_report *report);
// Reading a name that no row of `fields` has from the table on top of the stack is an error at the recipe's line.
void script_guard_fields(lua_State *L, const hr_field *fields);
// The same, where the table has names beside the rows, or no rows: `more` ends with NULL and stays where it is.
void script_guard_names(lua_State *L, const hr_field *fields, const char *const *more);
// Pushes the metatable that is kept under `key`, for tables whose names are fixed. True: it is new, and the caller gives it
// __index.
bool script_push_guard(lua_State *L, const void *key, const char *type);
// A list of `count` records of `stride` bytes, as field `name` of the table on top of the stack.
void script_set_list(lua_State *L, const char *name, const hr_field *fields, const void *first, size_t stride,
                     size_t count);

#endif
