// SPDX-License-Identifier: Apache-2.0
// hr.compare: where two results differ, field by field, as a table that prints itself.
#include <math.h>
#include <string.h>

#include "app/lua/described.h"
#include "app/lua/fields.h"
#include "app/lua/script.h"

static const char difference_type[] = "hr.difference";

// The number of a value, or of a size; false for everything else.
static bool number_of(lua_State *L, int index, double *value)
{
    int64_t bytes = 0;
    if (script_is_bytes(L, index, &bytes)) {
        *value = (double)bytes;
        return true;
    }
    *value = lua_tonumber(L, index);
    return lua_type(L, index) == LUA_TNUMBER;
}

static bool is_equal(lua_State *L)
{
    double a = 0, b = 0;
    return number_of(L, -2, &a) && number_of(L, -1, &b) ? a == b : lua_rawequal(L, -2, -1);
}

static const char *const row_names[] = {"name", "a", "b", "change", NULL};

// Stack: …, a, b: values of the field `name`. Adds a row to the list at 3 where they differ; takes them away.
static void add_row(lua_State *L, const char *name)
{
    double a = 0, b = 0;
    const bool numbers = number_of(L, -2, &a) && number_of(L, -1, &b);
    if (is_equal(L)) {
        lua_pop(L, 2);
        return;
    }
    lua_createtable(L, 0, 4);
    lua_insert(L, -3);
    lua_setfield(L, -3, "b");
    lua_setfield(L, -2, "a");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    if (numbers && a != 0) {
        lua_pushnumber(L, b / a - 1);
        lua_setfield(L, -2, "change");
    }
    script_guard_names(L, NULL, row_names);
    lua_rawseti(L, 3, (lua_Integer)lua_rawlen(L, 3) + 1);
}

static void get_raw(lua_State *L, int table, const char *name)
{
    if (lua_istable(L, table)) {
        lua_pushstring(L, name);
        lua_rawget(L, table);
    } else {
        lua_pushnil(L);
    }
}

// Stack: …, a, b: tables with these fields, or nil. Lists are not gone into.
static void walk(lua_State *L, const char *above, const hr_field *fields)
{
    const int a = lua_gettop(L) - 1;
    luaL_checkstack(L, 8, "fields within fields");
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        char name[DESCRIBED_NAME_MAX];
        const bool list = f->kind == HR_FIELD_ROWS || f->kind == HR_FIELD_LIST || f->kind == HR_FIELD_PAIRS ||
                          f->kind == HR_FIELD_BY_CATEGORY;
        if (f->name == NULL || list) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s%s%s", above, above[0] != '\0' ? "." : "", f->name);
        get_raw(L, a, f->name);
        get_raw(L, a + 1, f->name);
        if (f->kind == HR_FIELD_OBJECT) {
            walk(L, name, f->fields);
            lua_pop(L, 2);
        } else {
            add_row(L, name);
        }
    }
}

enum { CELL_MAX = 40 };

// The value on top of the stack. A number is rounded, not cut: a cut one may have lost its exponent.
static void write_cell(lua_State *L, char cell[CELL_MAX])
{
    if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1)) {
        (void)snprintf(cell, CELL_MAX, "%.7g", lua_tonumber(L, -1));
    } else {
        (void)snprintf(cell, CELL_MAX, "%.16s", luaL_tolstring(L, -1, NULL));
    }
}

// One line a row: name, both values, the change in per cent.
static int difference_to_text(lua_State *L)
{
    lua_settop(L, 1);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    lua_pushstring(L, count > 0 ? "" : "no difference");
    for (lua_Integer k = 1; k <= count; k++) {
        char line[192], a[CELL_MAX], b[CELL_MAX], change[24] = "";
        lua_rawgeti(L, 1, k);
        (void)lua_getfield(L, 3, "change");
        if (lua_isnumber(L, -1)) {
            const double grown = lua_tonumber(L, -1);
            (void)snprintf(change, sizeof change, fabs(grown) < 10 ? " %+8.1f %%" : " %8.3g x",
                           fabs(grown) < 10 ? 100 * grown : 1 + grown);
        }
        (void)lua_getfield(L, 3, "a");
        write_cell(L, a);
        (void)lua_getfield(L, 3, "b");
        write_cell(L, b);
        (void)lua_getfield(L, 3, "name");
        (void)snprintf(line, sizeof line, "%-33.33s %16s %16s%s%s", luaL_tolstring(L, -1, NULL), a, b, change,
                       k < count ? "\n" : "");
        lua_settop(L, 2);
        lua_pushstring(L, line);
        lua_concat(L, 2);
    }
    return 1;
}

static void check_result(lua_State *L, int index)
{
    get_raw(L, index, "memory");
    if (!lua_istable(L, -1)) {
        (void)script_error(L, "hr.compare takes two results of hr.plan or hr.run, the %s is none",
                           index == 1 ? "first" : "second");
    }
    lua_pop(L, 1);
}

int script_compare(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    check_result(L, 1);
    check_result(L, 2);
    lua_newtable(L);
    if (luaL_newmetatable(L, difference_type)) {
        lua_pushcfunction(L, difference_to_text);
        lua_setfield(L, -2, "__tostring");
        lua_pushstring(L, difference_type);
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, 3);
    get_raw(L, 1, "fits");
    get_raw(L, 2, "fits");
    add_row(L, "fits");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    walk(L, "", hr_report_fields());
    lua_settop(L, 3);
    return 1;
}
