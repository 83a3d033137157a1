// SPDX-License-Identifier: Apache-2.0
// Records of the engine as Lua tables: one row per field. Names are those of the JSON, null is nil, sizes are hr.bytes.
#ifndef APP_LUA_FIELDS_H
#define APP_LUA_FIELDS_H

#include <lua.h>
#include <stddef.h>

typedef enum script_field_kind {
    FIELD_BYTES,    // uint64_t
    FIELD_COUNT,    // uint64_t
    FIELD_COUNT32,  // uint32_t, HR_NO_ID is nil
    FIELD_REAL,     // double
    FIELD_TEXT,     // char[], "" is nil
    FIELD_FLAG,     // bool
    FIELD_CATEGORY, // hr_category
} script_field_kind;

typedef struct script_field {
    const char *name;
    script_field_kind kind;
    size_t offset;
} script_field;

#define FIELD_IN(type, member, name, kind)                                                                   \
    {                                                                                                        \
        name, kind, offsetof(type, member)                                                                   \
    }
#define FIELD_END                                                                                            \
    {                                                                                                        \
        NULL, FIELD_COUNT, 0                                                                                 \
    }

// What lies at `at`.
void script_push_field(lua_State *L, script_field_kind kind, const void *at);
// Into the table on top of the stack.
void script_set_fields(lua_State *L, const script_field *fields, const void *from);
// A list of `count` records of `stride` bytes, as field `name` of the table on top of the stack.
void script_set_list(lua_State *L, const char *name, const script_field *fields, const void *first,
                     size_t stride, size_t count);

#endif
