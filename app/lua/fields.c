// SPDX-License-Identifier: Apache-2.0
#include "app/lua/fields.h"

#include <math.h>

#include "headroom/category.h"
#include "headroom/report.h"

#include "app/lua/script.h"

static void push_count(lua_State *L, uint64_t count)
{
    if (count <= INT64_MAX) {
        lua_pushinteger(L, (lua_Integer)count);
    } else {
        lua_pushnil(L); // HR_NONE
    }
}

void script_push_field(lua_State *L, script_field_kind kind, const void *at)
{
    switch (kind) {
    case FIELD_BYTES:
        if (*(const uint64_t *)at <= INT64_MAX) {
            script_push_bytes(L, (int64_t) * (const uint64_t *)at);
        } else {
            lua_pushnil(L);
        }
        break;
    case FIELD_COUNT:
        push_count(L, *(const uint64_t *)at);
        break;
    case FIELD_COUNT32:
        push_count(L, *(const uint32_t *)at == HR_NO_ID ? HR_NONE : *(const uint32_t *)at);
        break;
    case FIELD_REAL:
        if (isfinite(*(const double *)at)) {
            lua_pushnumber(L, *(const double *)at);
        } else {
            lua_pushnil(L);
        }
        break;
    case FIELD_TEXT:
        if (*(const char *)at != '\0') {
            lua_pushstring(L, at);
        } else {
            lua_pushnil(L);
        }
        break;
    case FIELD_FLAG:
        lua_pushboolean(L, *(const bool *)at);
        break;
    case FIELD_CATEGORY:
        lua_pushstring(L, hr_category_name(*(const hr_category *)at));
        break;
    }
}

void script_set_fields(lua_State *L, const script_field *fields, const void *from)
{
    for (const script_field *f = fields; f->name != NULL; f++) {
        script_push_field(L, f->kind, (const char *)from + f->offset);
        lua_setfield(L, -2, f->name);
    }
}

void script_set_list(lua_State *L, const char *name, const script_field *fields, const void *first,
                     size_t stride, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_newtable(L);
        script_set_fields(L, fields, (const char *)first + k * stride);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, name);
}
