// SPDX-License-Identifier: Apache-2.0
#include "app/lua/console_show.h"

#include <stdlib.h>
#include <string.h>

#include "app/lua/script.h"

enum {
    NAMES_MAX = 256, // of one table
    ROWS_MAX = 60,
    COLUMNS_MAX = 12,
    CELL_MAX = 24,
    TEXT_MAX = 160,
    NAME_COLUMNS = 26,
};

// ---- one value ----------------------------------------------------------------------------------------------------

static bool says_itself(lua_State *L, int index)
{
    const bool has = luaL_getmetafield(L, index, "__tostring") != LUA_TNIL;
    lua_settop(L, has ? -2 : -1);
    return has;
}

static lua_Integer count_keys(lua_State *L, int index)
{
    lua_Integer count = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        lua_pop(L, 1);
        count++;
    }
    return count;
}

// Characters of UTF-8.
static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0U) != 0x80U;
    }
    return width;
}

// At most `columns` characters, without a control character or a line's end.
static void copy_plain(const char *text, size_t size, int columns, char *out)
{
    size_t used = 0;
    int shown = 0;
    for (; *text != '\0' && used + 8 < size; text++) {
        const bool begins = ((unsigned char)*text & 0xC0U) != 0x80U;
        if (begins && ++shown > columns) {
            memcpy(out + used - 1, "…", sizeof "…");
            used += sizeof "…" - 2;
            break;
        }
        out[used++] = (unsigned char)*text < ' ' || *text == 0x7F ? ' ' : *text;
    }
    out[used] = '\0';
}

// The list at `index` as {"a", 2}, where it is short and of plain values only.
static bool write_list(lua_State *L, int index, lua_Integer count, char out[TEXT_MAX])
{
    size_t used = 0;
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, index, k);
        const bool text = lua_type(L, -1) == LUA_TSTRING;
        const bool plain = text || lua_type(L, -1) == LUA_TNUMBER;
        char item[TEXT_MAX] = "";
        if (plain) {
            lua_pushvalue(L, -1); // whose number a text would become
            copy_plain(lua_tostring(L, -1), sizeof item, SHOW_COLUMNS, item);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        used += (size_t)snprintf(out + used, TEXT_MAX - used, "%s%s%.*s%s", k == 1 ? "{" : ", ",
                                 text ? "\"" : "", TEXT_MAX / 2, item, text ? "\"" : "");
        if (!plain || used > SHOW_COLUMNS - NAME_COLUMNS - 6) {
            return false;
        }
    }
    (void)snprintf(out + used, TEXT_MAX - used, "}");
    return true;
}

// The value at `index` within a line.
static void write_brief(lua_State *L, int index, bool quoted, char out[TEXT_MAX])
{
    if (lua_type(L, index) == LUA_TTABLE && !says_itself(L, index)) {
        const lua_Integer count = count_keys(L, index);
        if (count > 0 && count == (lua_Integer)lua_rawlen(L, index) && write_list(L, index, count, out)) {
            return;
        }
        (void)snprintf(out, TEXT_MAX, count == 0 ? "{}" : "{… %lld}", (long long)count);
        return;
    }
    if (lua_isfunction(L, index)) {
        (void)snprintf(out, TEXT_MAX, "function");
        return;
    }
    const char *text = luaL_tolstring(L, index, NULL);
    const bool in_quotes = quoted && lua_type(L, index) == LUA_TSTRING;
    if (strchr(text, '\n') != NULL && lua_type(L, index) != LUA_TSTRING) {
        text = "…"; // a whole picture or table
    }
    char plain[TEXT_MAX - 8];
    copy_plain(text, sizeof plain, SHOW_COLUMNS - NAME_COLUMNS - 4, plain);
    (void)snprintf(out, TEXT_MAX, "%s%s%s", in_quotes ? "\"" : "", plain, in_quotes ? "\"" : "");
    lua_pop(L, 1);
}

static void print_plain(FILE *to, const char *text)
{
    script_print_text(to, text, strlen(text));
}

// ---- names of a table -----------------------------------------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Names of the table at `index` in their order; borrowed from its keys. How many.
static unsigned take_names(lua_State *L, int index, const char **names)
{
    const int top = lua_gettop(L);
    unsigned count = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0 && count < NAMES_MAX) {
        if (lua_type(L, -2) == LUA_TSTRING) {
            names[count++] = lua_tostring(L, -2);
        }
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    qsort(names, count, sizeof *names, by_name);
    return count;
}

static void print_pair(lua_State *L, const char *name, FILE *to)
{
    char value[TEXT_MAX];
    write_brief(L, lua_gettop(L), true, value);
    const int width = width_of(name);
    fputs("  ", to);
    print_plain(to, name);
    fprintf(to, "%*s ", width < NAME_COLUMNS ? NAME_COLUMNS - width : 1, "");
    print_plain(to, value);
    fputc('\n', to);
}

static void show_names(lua_State *L, int index, FILE *to)
{
    const char *names[NAMES_MAX];
    const lua_Integer listed = (lua_Integer)lua_rawlen(L, index);
    const unsigned count = take_names(L, index, names);
    for (lua_Integer k = 1; k <= listed && k <= ROWS_MAX; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "[%lld]", (long long)k);
        lua_rawgeti(L, index, k);
        print_pair(L, name, to);
        lua_pop(L, 1);
    }
    for (unsigned k = 0; k < count; k++) {
        lua_pushstring(L, names[k]);
        lua_rawget(L, index);
        print_pair(L, names[k], to);
        lua_pop(L, 1);
    }
    if (count == 0 && listed == 0) {
        fputs("  {}\n", to);
    }
    if (listed > ROWS_MAX) {
        fprintf(to, "  … %lld more\n", (long long)(listed - ROWS_MAX));
    }
}

// hr.knobs and its groups: what pairs() goes through.
static bool show_pairs(lua_State *L, int index, FILE *to)
{
    if (!lua_isuserdata(L, index) || luaL_getmetafield(L, index, "__pairs") == LUA_TNIL) {
        return false;
    }
    lua_pushvalue(L, index);
    lua_call(L, 1, 3); // next, value, key
    for (;;) {
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 2);
        if (lua_isnil(L, -2)) {
            lua_pop(L, 5);
            return true;
        }
        print_pair(L, lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?", to);
        lua_pop(L, 1);
        lua_replace(L, -2);
    }
}

// ---- a list of rows -------------------------------------------------------------------------------------------------

typedef struct row_column {
    const char *name;
    int width;
} row_column;

static bool is_list_of_rows(lua_State *L, int index)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    bool rows = count > 0;
    for (lua_Integer k = 1; rows && k <= count && k <= ROWS_MAX; k++) {
        lua_rawgeti(L, index, k);
        rows = lua_istable(L, -1) && lua_rawlen(L, -1) == 0 && !says_itself(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return rows && count_keys(L, index) == count;
}

// Of row `k`; "" where it has none, or one that does not go into a line.
static void cell(lua_State *L, int index, lua_Integer k, const char *name, char out[TEXT_MAX])
{
    out[0] = '\0';
    lua_rawgeti(L, index, k);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1) && (!lua_istable(L, -1) || says_itself(L, lua_gettop(L)))) {
        char text[TEXT_MAX];
        write_brief(L, lua_gettop(L), false, text);
        copy_plain(text, TEXT_MAX, CELL_MAX, out);
    }
    lua_pop(L, 2);
}

// The widest cell of a column; 0: it has none.
static int width_of_column(lua_State *L, int index, lua_Integer rows, const char *name)
{
    char text[TEXT_MAX];
    int widest = 0;
    for (lua_Integer k = 1; k <= rows; k++) {
        cell(L, index, k, name, text);
        widest = width_of(text) > widest ? width_of(text) : widest;
    }
    return widest == 0 || widest > width_of(name) ? widest : width_of(name);
}

// Columns that go into a line, of the names of the first row; *left: those that do not.
static unsigned choose_columns(lua_State *L, int index, lua_Integer rows, row_column columns[COLUMNS_MAX],
                               unsigned *left)
{
    const char *names[NAMES_MAX];
    unsigned count = 0;
    int used = 0;
    lua_rawgeti(L, index, 1);
    const unsigned named = take_names(L, lua_gettop(L), names);
    for (unsigned k = 0; k < named; k++) {
        const int width = width_of_column(L, index, rows, names[k]);
        if (width > 0 && count < COLUMNS_MAX && used + width + 2 <= SHOW_COLUMNS - 2) {
            columns[count++] = (row_column){names[k], width};
            used += width + 2;
        } else {
            *left += 1;
        }
    }
    lua_pop(L, 1);
    return count;
}

static void print_cell(FILE *to, const char *text, int width, bool last)
{
    fputs("  ", to);
    print_plain(to, text);
    fprintf(to, "%*s", last ? 0 : width - width_of(text), "");
}

static void say_left(FILE *to, unsigned names, lua_Integer rows)
{
    if (rows > 0) {
        fprintf(to, "  … %lld more row%s\n", (long long)rows, rows == 1 ? "" : "s");
    }
    if (names > 0) {
        fprintf(to, "  … %u more name%s in each: [1] shows one\n", names, names == 1 ? "" : "s");
    }
}

static void show_rows(lua_State *L, int index, FILE *to)
{
    row_column columns[COLUMNS_MAX];
    unsigned left = 0;
    const lua_Integer all = (lua_Integer)lua_rawlen(L, index);
    const lua_Integer rows = all < ROWS_MAX ? all : ROWS_MAX;
    const unsigned count = choose_columns(L, index, rows, columns, &left);
    for (lua_Integer k = 0; k <= rows; k++) {
        for (unsigned c = 0; c < count; c++) {
            char text[TEXT_MAX];
            (void)snprintf(text, sizeof text, "%.150s", columns[c].name);
            if (k > 0) {
                cell(L, index, k, columns[c].name, text);
            }
            print_cell(to, text, columns[c].width, c + 1 == count);
        }
        fputc('\n', to);
    }
    say_left(to, left, all - rows);
}

// ---- all of them ----------------------------------------------------------------------------------------------------

static void show(lua_State *L, int index, FILE *to)
{
    size_t length = 0;
    if (show_pairs(L, index, to)) {
        return;
    }
    if (!lua_istable(L, index) || says_itself(L, index)) {
        const char *text = luaL_tolstring(L, index, &length);
        script_print_text(to, text, length);
        fputc('\n', to);
        lua_pop(L, 1);
    } else if (is_list_of_rows(L, index)) {
        show_rows(L, index, to);
    } else {
        show_names(L, index, to);
    }
}

void console_show(lua_State *L, int first, FILE *to)
{
    const int last = lua_gettop(L);
    luaL_checkstack(L, 16, "values of a console");
    for (int k = first; k <= last; k++) {
        show(L, k, to);
    }
}
