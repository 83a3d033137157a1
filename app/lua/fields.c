// SPDX-License-Identifier: Apache-2.0
#include "app/lua/fields.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/event.h"

#include "app/lua/script.h"

enum { NAMES_MAX = 64 };

void script_push_count(lua_State *L, uint64_t count)
{
    if (count <= INT64_MAX) {
        lua_pushinteger(L, (lua_Integer)count);
    } else {
        lua_pushnil(L); // HR_NONE
    }
}

void script_push_bytes_or_nil(lua_State *L, uint64_t bytes)
{
    if (bytes <= INT64_MAX) {
        script_push_bytes(L, (int64_t)bytes);
    } else {
        lua_pushnil(L);
    }
}

void script_push_real(lua_State *L, double value)
{
    if (isfinite(value)) {
        lua_pushnumber(L, value);
    } else {
        lua_pushnil(L);
    }
}

static void push_text(lua_State *L, const char *text)
{
    if (*text != '\0') {
        lua_pushstring(L, text);
    } else {
        lua_pushnil(L);
    }
}

static void push_hash(lua_State *L, uint64_t hash)
{
    char text[20];
    (void)snprintf(text, sizeof text, "%016" PRIx64, hash);
    lua_pushstring(L, text);
}

// "a.b=1 c.d=2" as a list.
static void push_pairs(lua_State *L, const char *pairs)
{
    lua_newtable(L);
    for (lua_Integer k = 1; *pairs != '\0'; k++) {
        size_t length = strcspn(pairs, " ");
        (void)lua_pushlstring(L, pairs, length);
        lua_rawseti(L, -2, k);
        pairs += length + (pairs[length] == ' ');
    }
}

void script_push_by_category(lua_State *L, const uint64_t *by_category)
{
    lua_newtable(L);
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        script_push_bytes(L, (int64_t)by_category[k]);
        lua_setfield(L, -2, hr_category_name((hr_category)k));
    }
}

// ---- names ------------------------------------------------------------------------------------------------------------

// Names of the rows, then of `more`, which may be NULL.
static size_t names_of(const hr_field *fields, const char *const *more, const char *names[NAMES_MAX])
{
    size_t count = 0;
    for (const hr_field *f = fields; f != NULL && !hr_field_is_end(f) && count < NAMES_MAX; f++) {
        if (f->name != NULL) {
            names[count++] = f->name;
        }
    }
    for (; more != NULL && *more != NULL && count < NAMES_MAX; more++) {
        names[count++] = *more;
    }
    return count;
}

// __index of a result: what does not apply is nil, what it never has is a mistake.
static int get_missing(lua_State *L)
{
    const hr_field *fields = lua_touserdata(L, lua_upvalueindex(1));
    const char *const *more = lua_touserdata(L, lua_upvalueindex(2));
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    const char *names[NAMES_MAX];
    const size_t count = name == NULL ? 0 : names_of(fields, more, names);
    size_t k = 0;
    while (k < count && strcmp(names[k], name) != 0) {
        k++;
    }
    if (name != NULL && k == count) {
        return script_raise_unknown(L, "no field of a result is called '%s' here", name, names, count);
    }
    lua_pushnil(L);
    return 1;
}

bool script_push_guard(lua_State *L, const void *key, const char *type)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) != LUA_TNIL) {
        return false;
    }
    lua_pop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, type);
    lua_setfield(L, -2, "__metatable");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    return true;
}

void script_guard_names(lua_State *L, const hr_field *fields, const char *const *more)
{
    const void *key = more != NULL ? (const void *)more : fields;
    if (script_push_guard(L, key, "hr.result")) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)fields);
        lua_pushlightuserdata(L, (void *)(uintptr_t)more);
        lua_pushcclosure(L, get_missing, 2);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
}

void script_guard_fields(lua_State *L, const hr_field *fields)
{
    script_guard_names(L, fields, NULL);
}

// ---- values -----------------------------------------------------------------------------------------------------------

static void push_records(lua_State *L, const hr_field *f, const void *record, const hr_report *report)
{
    size_t count = 0;
    const char *first = hr_field_records(f, record, &count);
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_newtable(L);
        script_set_fields(L, f->fields, first + k * f->size, report);
        script_guard_fields(L, f->fields);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

static void push_number(lua_State *L, const hr_field *f, const void *at)
{
    switch ((int)f->kind) {
    case HR_FIELD_BYTES:
        script_push_bytes_or_nil(L, *(const uint64_t *)at);
        break;
    case HR_FIELD_COUNT32:
        script_push_count(L, *(const uint32_t *)at == HR_NO_ID ? HR_NONE : *(const uint32_t *)at);
        break;
    case HR_FIELD_FLAG:
        lua_pushboolean(L, *(const bool *)at);
        break;
    case HR_FIELD_HASH:
        push_hash(L, *(const uint64_t *)at);
        break;
    case HR_FIELD_COUNT:
        script_push_count(L, *(const uint64_t *)at);
        break;
    default:
        script_push_real(L, *(const double *)at);
    }
}

static void push_field(lua_State *L, const hr_field *f, const void *record, const hr_report *report)
{
    const void *at = (const char *)record + f->offset;
    switch ((int)f->kind) {
    case HR_FIELD_OBJECT:
        lua_newtable(L);
        script_set_fields(L, f->fields, at, report);
        script_guard_fields(L, f->fields);
        break;
    case HR_FIELD_ROWS:
    case HR_FIELD_LIST:
        push_records(L, f, record, report);
        break;
    case HR_FIELD_BY_CATEGORY:
        script_push_by_category(L, at);
        break;
    case HR_FIELD_PAIRS:
        push_pairs(L, at);
        break;
    case HR_FIELD_WORD:
        lua_pushstring(L, f->word(hr_field_word_value(f, record)));
        break;
    case HR_FIELD_TEXT:
    case HR_FIELD_NAME:
        push_text(L, at);
        break;
    default:
        push_number(L, f, at);
    }
}

void script_set_fields(lua_State *L, const hr_field *fields, const void *record, const hr_report *report)
{
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        if (f->name != NULL && (f->applies == NULL || f->applies(report))) {
            push_field(L, f, record, report);
            lua_setfield(L, -2, f->name);
        }
    }
}

void script_set_list(lua_State *L, const char *name, const hr_field *fields, const void *first, size_t stride,
                     size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_newtable(L);
        script_set_fields(L, fields, (const char *)first + k * stride, NULL);
        script_guard_fields(L, fields);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, name);
}
