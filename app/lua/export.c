// SPDX-License-Identifier: Apache-2.0
// hr.export: a value of the recipe as a file below ./headroom-out, in the form that the name ends in. The text is collected in
// a list of Lua, so that nothing is open when Lua raises.
#include <string.h>

#include "headroom/files.h"

#include "app/lua/json.h"
#include "app/lua/script.h"

#define CALLER "hr.export"

enum { PATH_ARGUMENT = 1, VALUE_ARGUMENT = 2, OPTIONS_ARGUMENT = 3, PIECES = 4 };

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}

// ---- CSV ------------------------------------------------------------------------------------------------------------

static bool is_cell(lua_State *L, int index)
{
    int64_t bytes = 0;
    return lua_type(L, index) == LUA_TNUMBER || lua_type(L, index) == LUA_TSTRING ||
           lua_isboolean(L, index) || script_is_bytes(L, index, &bytes);
}

static void add_cell(lua_State *L, int index)
{
    char text[SCRIPT_PLAIN_MAX];
    if (script_plain_text(L, index, "", text)) {
        script_add_piece(L, PIECES, text);
        return;
    }
    const char *word = "";
    if (lua_type(L, index) == LUA_TSTRING) {
        script_check_text(L, index, CALLER, false);
        word = lua_tostring(L, index);
    }
    if (strpbrk(word, ",\"\r\n") == NULL) {
        script_add_piece(L, PIECES, word);
        return;
    }
    lua_pushfstring(L, "\"%s\"", luaL_gsub(L, word, "\"", "\"\""));
    script_add_top(L, PIECES);
    lua_pop(L, 1);
}

// Names that have a plain value in the row on top of the stack, into the table `seen`.
static void see_columns(lua_State *L, int seen)
{
    const int row = lua_gettop(L);
    lua_pushnil(L);
    while (lua_istable(L, row) && lua_next(L, row) != 0) {
        if (lua_type(L, -2) == LUA_TSTRING && is_cell(L, lua_gettop(L))) {
            lua_pushvalue(L, -2);
            lua_pushboolean(L, true);
            lua_rawset(L, seen);
        }
        lua_pop(L, 1);
    }
    lua_settop(L, row);
}

// Pushes the list of every name that has a plain value in one of the rows, in alphabetical order.
static void push_all_columns(lua_State *L)
{
    lua_newtable(L);
    const int seen = lua_gettop(L);
    const lua_Integer rows = (lua_Integer)lua_rawlen(L, VALUE_ARGUMENT);
    for (lua_Integer k = 1; k <= rows; k++) {
        lua_rawgeti(L, VALUE_ARGUMENT, k);
        see_columns(L, seen);
        lua_pop(L, 1);
    }
    (void)script_push_keys(L, seen, CALLER);
    lua_remove(L, seen);
}

// Pushes the value of column "memory.peak_in_use_bytes", or "batch.size" as a key of its own, of the row at `index`; nil where
// it has none. Whether that is settled: the value is there, or a table on the way raises for what it never has, as ours do.
static bool push_column(lua_State *L, int index, const char *column)
{
    bool knows = false;
    lua_pushstring(L, column);
    if (lua_rawget(L, index) != LUA_TNIL) {
        return true;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, index);
    while (lua_istable(L, -1) && *column != '\0') {
        const size_t length = strcspn(column, ".");
        if (luaL_getmetafield(L, -1, "__index") != LUA_TNIL) {
            knows = true;
            lua_pop(L, 1);
        }
        lua_pushlstring(L, column, length);
        (void)lua_gettable(L, -2);
        lua_remove(L, -2);
        column += length + (column[length] == '.');
    }
    if (*column != '\0') {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    return knows || !lua_isnil(L, -1);
}

// The same of row `row`, which lies behind `columns`, and of the name on top of the stack.
static bool push_checked_column(lua_State *L, int columns, lua_Integer row)
{
    if (!lua_istable(L, columns + 1)) {
        (void)script_error(L, "hr.export: row %I of a .csv needs a table, had a %s", (LUAI_UACINT)row,
                           luaL_typename(L, columns + 1));
    }
    if (lua_type(L, -1) != LUA_TSTRING) {
        (void)script_error(L, "hr.export: columns needs names, had a %s", luaL_typename(L, -1));
    }
    script_check_text(L, lua_gettop(L), CALLER, false);
    const char *name = lua_tostring(L, -1);
    const bool knows = push_column(L, columns + 1, name);
    if (!lua_isnil(L, -1) && !is_cell(L, lua_gettop(L))) {
        (void)script_error(L, "hr.export: column '%s' needs plain values, had a %s in row %I", name,
                           luaL_typename(L, -1), (LUAI_UACINT)row);
    }
    return knows;
}

// A column that no row has is a mistake: `column` is raised with those that there are.
static void refuse_column(lua_State *L, const char *column)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    push_all_columns(L);
    const size_t all = lua_rawlen(L, -1), count = all < NAMES_MAX ? all : NAMES_MAX;
    for (size_t k = 0; k < count; k++) {
        lua_rawgeti(L, -1, (lua_Integer)k + 1);
        names[k] = lua_tostring(L, -1); // kept by the list
        lua_pop(L, 1);
    }
    (void)script_raise_unknown(L, "hr.export: no row has the column '%s'", column, names, count);
}

static void check_columns(lua_State *L, int columns)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, columns);
    const lua_Integer rows = (lua_Integer)lua_rawlen(L, VALUE_ARGUMENT);
    for (lua_Integer k = 1; k <= count; k++) {
        bool known = rows == 0;
        for (lua_Integer row = 1; row <= rows && !known; row++) {
            lua_rawgeti(L, VALUE_ARGUMENT, row);
            lua_rawgeti(L, columns, k);
            known = push_checked_column(L, columns, row);
            lua_settop(L, columns);
        }
        if (!known) {
            lua_rawgeti(L, columns, k);
            refuse_column(L, lua_tostring(L, -1));
        }
    }
}

static void add_csv(lua_State *L)
{
    const int columns = PIECES + 1;
    if (lua_getfield(L, OPTIONS_ARGUMENT, "columns") == LUA_TNIL) {
        lua_pop(L, 1);
        push_all_columns(L);
    }
    if (!lua_istable(L, columns) || lua_rawlen(L, columns) == 0) {
        (void)script_error(
            L, "hr.export: a .csv is made of a list of tables with plain values, or of columns = {names}");
    }
    check_columns(L, columns);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, columns);
    const lua_Integer rows = (lua_Integer)lua_rawlen(L, VALUE_ARGUMENT);
    for (lua_Integer row = 0; row <= rows; row++) {
        lua_rawgeti(L, VALUE_ARGUMENT, row);
        for (lua_Integer k = 1; k <= count; k++) {
            lua_rawgeti(L, columns, k);
            if (row > 0) {
                (void)push_checked_column(L, columns, row);
            }
            add_cell(L, lua_gettop(L));
            script_add_piece(L, PIECES, k < count ? "," : "\n");
            lua_settop(L, columns + 1);
        }
        lua_settop(L, columns);
    }
}

// ---- the file -------------------------------------------------------------------------------------------------------

static void add_value(lua_State *L, const char *path)
{
    if (ends_in(path, ".csv")) {
        luaL_checktype(L, VALUE_ARGUMENT, LUA_TTABLE);
        add_csv(L);
    } else if (ends_in(path, ".json")) {
        script_add_json(L, PIECES, VALUE_ARGUMENT, CALLER);
        script_add_piece(L, PIECES, "\n");
    } else if (ends_in(path, ".svg") && lua_istable(L, VALUE_ARGUMENT)) {
        if (lua_getfield(L, VALUE_ARGUMENT, "svg") != LUA_TSTRING) {
            (void)script_error(L, "hr.export: a .svg is made of a plot or of a text, had another table");
        }
        script_add_top(L, PIECES);
    } else if (ends_in(path, ".txt") || ends_in(path, ".svg") || ends_in(path, ".md")) {
        (void)luaL_tolstring(L, VALUE_ARGUMENT, NULL);
        script_add_top(L, PIECES);
    } else {
        (void)script_error(L, "hr.export writes .csv, .json, .svg, .txt and .md, had '%s'", path);
    }
}

// What lies below ./headroom-out is the recipe's own; of what was typed it replaces nothing.
static hr_file_rule rule_for(const char *path)
{
    static const char own[] = SCRIPT_OUT_FOLDER "/";
    return strncmp(path, own, sizeof own - 1) == 0 ? HR_FILE_REPLACES : HR_FILE_NEW;
}

int script_export(lua_State *L)
{
    const char *name = luaL_checkstring(L, PATH_ARGUMENT);
    char path[SCRIPT_PATH_MAX];
    hr_err err = {0};
    luaL_checkany(L, VALUE_ARGUMENT);
    if (lua_isnoneornil(L, OPTIONS_ARGUMENT)) {
        lua_settop(L, VALUE_ARGUMENT);
        lua_newtable(L);
    }
    lua_settop(L, OPTIONS_ARGUMENT);
    script_check_options(L, OPTIONS_ARGUMENT, "export");
    lua_newtable(L);
    add_value(L, name);
    size_t length = 0;
    const char *text = script_push_pieces(L, PIECES, &length);
    if (script_writable_path(script_of(L), name, path, &err) != HR_OK ||
        hr_file_write(path, text, length, rule_for(path), &err) != HR_OK) {
        return script_raise(L, &err);
    }
    lua_pushstring(L, path);
    return 1;
}
