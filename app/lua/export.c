// SPDX-License-Identifier: Apache-2.0
// hr.export: a value of the recipe as a file below ./headroom-out, in the form that the name ends in. The text is collected in
// a list of Lua, so that nothing is open when Lua raises.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/lua/script.h"

enum { DEPTH_MAX = 16, PATH_ARGUMENT = 1, VALUE_ARGUMENT = 2, OPTIONS_ARGUMENT = 3, PIECES = 4 };

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}

// The text on top of the stack is the next piece.
static void add_top(lua_State *L)
{
    lua_rawseti(L, PIECES, (lua_Integer)lua_rawlen(L, PIECES) + 1);
}

static void add(lua_State *L, const char *text)
{
    lua_pushstring(L, text);
    add_top(L);
}

// ---- numbers --------------------------------------------------------------------------------------------------------

static void real_text(double value, const char *nothing, char text[40])
{
    (void)snprintf(text, 40, "%.15g", value);
    if (!isfinite(value)) {
        (void)snprintf(text, 40, "%s", nothing);
    } else if (strtod(text, NULL) != value) {
        (void)snprintf(text, 40, "%.17g", value);
    }
}

// The value at `index` where it is a number, a size or a boolean; `nothing`: for what is not finite.
static bool plain_text(lua_State *L, int index, const char *nothing, char text[40])
{
    int64_t bytes = 0;
    if (script_is_bytes(L, index, &bytes)) {
        (void)snprintf(text, 40, "%" PRId64, bytes);
    } else if (lua_isinteger(L, index)) {
        (void)snprintf(text, 40, "%lld", (long long)lua_tointeger(L, index));
    } else if (lua_type(L, index) == LUA_TNUMBER) {
        real_text(lua_tonumber(L, index), nothing, text);
    } else if (lua_isboolean(L, index)) {
        (void)snprintf(text, 40, "%s", lua_toboolean(L, index) ? "true" : "false");
    } else {
        return false;
    }
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Pushes a block with the keys of the table at `index`, sorted; the table keeps the texts.
static const char **push_keys(lua_State *L, int index, size_t *count)
{
    size_t room = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            (void)script_error(L, "hr.export: a table has a %s as key, which JSON has not",
                               luaL_typename(L, -2));
        }
        room++;
    }
    const char **keys = lua_newuserdatauv(L, (room + 1) * sizeof *keys, 0);
    *count = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        keys[(*count)++] = lua_tostring(L, -2);
    }
    qsort(keys, *count, sizeof *keys, by_text);
    return keys;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

static void add_json_text(lua_State *L, int index)
{
    size_t length = 0;
    const char *text = lua_tolstring(L, index, &length);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    luaL_addchar(&out, '"');
    for (size_t k = 0; k < length; k++) {
        char escaped[8];
        if ((unsigned char)text[k] < ' ') {
            (void)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)(unsigned char)text[k]);
            luaL_addstring(&out, escaped);
            continue;
        }
        if (text[k] == '"' || text[k] == '\\') {
            luaL_addchar(&out, '\\');
        }
        luaL_addchar(&out, text[k]);
    }
    luaL_addchar(&out, '"');
    luaL_pushresult(&out);
    add_top(L);
}

static void add_json(lua_State *L, int index, int depth);

// A table that is a list and has names, too, would lose them.
static void check_list(lua_State *L, int index, lua_Integer count)
{
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        const lua_Integer k = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        if (k < 1 || k > count) {
            (void)script_error(
                L, "hr.export: a table is a list of %I and has the key '%s', too, which JSON has not",
                (LUAI_UACINT)count, luaL_tolstring(L, -2, NULL));
        }
    }
}

static void add_json_list(lua_State *L, int index, int depth)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    check_list(L, index, count);
    add(L, "[");
    for (lua_Integer k = 1; k <= count; k++) {
        add(L, k > 1 ? ", " : "");
        lua_rawgeti(L, index, k);
        add_json(L, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
    }
    add(L, "]");
}

// Keys in alphabetical order, so that one value is one text.
static void add_json_object(lua_State *L, int index, int depth)
{
    size_t count = 0;
    const char **keys = push_keys(L, index, &count);
    add(L, "{");
    for (size_t k = 0; k < count; k++) {
        add(L, k > 0 ? ", " : "");
        lua_pushstring(L, keys[k]);
        add_json_text(L, lua_gettop(L));
        add(L, ": ");
        lua_rawget(L, index);
        add_json(L, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
    }
    add(L, "}");
    lua_pop(L, 1);
}

static void add_json(lua_State *L, int index, int depth)
{
    char text[40];
    if (depth > DEPTH_MAX) {
        (void)script_error(L, "hr.export: tables lie in each other more than %d deep", DEPTH_MAX);
    }
    luaL_checkstack(L, 8, "tables within tables");
    if (plain_text(L, index, "null", text)) {
        add(L, text);
    } else if (lua_type(L, index) == LUA_TSTRING) {
        add_json_text(L, index);
    } else if (lua_isnil(L, index)) {
        add(L, "null");
    } else if (!lua_istable(L, index)) {
        (void)script_error(L, "hr.export: JSON has no %s", luaL_typename(L, index));
    } else if (lua_rawlen(L, index) > 0) {
        add_json_list(L, index, depth);
    } else {
        add_json_object(L, index, depth);
    }
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
    char text[40];
    if (plain_text(L, index, "", text)) {
        add(L, text);
        return;
    }
    const char *word = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "";
    if (strpbrk(word, ",\"\r\n") == NULL) {
        add(L, word);
        return;
    }
    lua_pushfstring(L, "\"%s\"", luaL_gsub(L, word, "\"", "\"\""));
    add_top(L);
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
    lua_newtable(L);
    const int list = lua_gettop(L) - 1, seen = list + 1;
    const lua_Integer rows = (lua_Integer)lua_rawlen(L, VALUE_ARGUMENT);
    for (lua_Integer k = 1; k <= rows; k++) {
        lua_rawgeti(L, VALUE_ARGUMENT, k);
        see_columns(L, seen);
        lua_pop(L, 1);
    }
    size_t count = 0;
    const char **names = push_keys(L, seen, &count);
    for (size_t k = 0; k < count; k++) {
        lua_pushstring(L, names[k]);
        lua_rawseti(L, list, (lua_Integer)k + 1);
    }
    lua_settop(L, list);
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
            add(L, k < count ? "," : "\n");
            lua_settop(L, columns + 1);
        }
        lua_settop(L, columns);
    }
}

// ---- the file -------------------------------------------------------------------------------------------------------

// A new file beside `path`, under a name that was nobody's, in the mode that any new file gets.
static FILE *open_beside(const char *path, char beside[SCRIPT_PATH_MAX + 8])
{
    (void)snprintf(beside, SCRIPT_PATH_MAX + 8, "%s.XXXXXX", path);
    const int fd = mkstemp(beside);
    if (fd < 0) {
        return NULL;
    }
    const mode_t mask = umask(0);
    (void)umask(mask);
    FILE *file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        (void)close(fd);
        (void)unlink(beside);
    }
    return file;
}

// Writes what is there at once and takes its name then, when it is on the disk. Nothing in it raises.
static hr_status write_pieces(lua_State *L, const char *path, hr_err *err)
{
    char beside[SCRIPT_PATH_MAX + 8];
    FILE *file = open_beside(path, beside);
    if (file == NULL) {
        return HR_FAIL(err, WRITE, "%s: %s", path, strerror(errno));
    }
    const lua_Integer count = (lua_Integer)lua_rawlen(L, PIECES);
    for (lua_Integer k = 1; k <= count; k++) {
        size_t length = 0;
        lua_rawgeti(L, PIECES, k);
        const char *text = lua_tolstring(L, -1, &length);
        (void)fwrite(text, 1, length, file);
        lua_pop(L, 1);
    }
    const bool failed = ferror(file) != 0 || fflush(file) != 0 || fsync(fileno(file)) != 0;
    const int reason = errno; // closing may set another
    const bool closed = fclose(file) == 0;
    if (failed || !closed || rename(beside, path) != 0) {
        const hr_status status = HR_FAIL(err, WRITE, "%s: %s", path, strerror(failed ? reason : errno));
        (void)unlink(beside);
        return status;
    }
    return HR_OK;
}

static void add_value(lua_State *L, const char *path)
{
    if (ends_in(path, ".csv")) {
        luaL_checktype(L, VALUE_ARGUMENT, LUA_TTABLE);
        add_csv(L);
    } else if (ends_in(path, ".json")) {
        add_json(L, VALUE_ARGUMENT, 0);
        add(L, "\n");
    } else if (ends_in(path, ".svg") && lua_istable(L, VALUE_ARGUMENT)) {
        if (lua_getfield(L, VALUE_ARGUMENT, "svg") != LUA_TSTRING) {
            (void)script_error(L, "hr.export: a .svg is made of a plot or of a text, had another table");
        }
        add_top(L);
    } else if (ends_in(path, ".txt") || ends_in(path, ".svg") || ends_in(path, ".md")) {
        (void)luaL_tolstring(L, VALUE_ARGUMENT, NULL);
        add_top(L);
    } else {
        (void)script_error(L, "hr.export writes .csv, .json, .svg, .txt and .md, had '%s'", path);
    }
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
    if (script_writable_path(script_of(L), name, path, &err) != HR_OK ||
        write_pieces(L, path, &err) != HR_OK) {
        return script_raise(L, &err);
    }
    lua_pushstring(L, path);
    return 1;
}
