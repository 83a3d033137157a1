// SPDX-License-Identifier: Apache-2.0
#include "app/lua/console_show.h"

#include <string.h>

#include "app/lua/console_value.h"
#include "app/lua/script.h"

enum {
    NAMES_MAX = 256, // of one table
    ROWS_MAX = 60,
    COLUMNS_MAX = 12,
    CELL_MAX = 24,
};

static void print_plain(FILE *to, const char *text)
{
    script_print_text(to, text, strlen(text));
}

// ---- keys of a table ------------------------------------------------------------------------------------------------

// The first keys of a table in their order: names, then numbers, then others. What a person's __tostring does to the table
// leaves them as they are: a list of Lua's, at the stack's index `list`, holds them.
typedef struct table_key {
    int kind; // LUA_TSTRING before LUA_TNUMBER before others
    lua_Number number;
    const char *name;  // borrowed from the list's; "" of other kinds
    lua_Integer place; // in the list
} table_key;

typedef struct table_keys {
    table_key at[NAMES_MAX];
    int list;
    unsigned count;
    lua_Integer more; // that have no room
} table_keys;

static int rank_of(int kind)
{
    return kind == LUA_TSTRING ? 0 : kind == LUA_TNUMBER ? 1 : 2 + kind;
}

static bool is_before(const table_key *a, const table_key *b)
{
    if (rank_of(a->kind) != rank_of(b->kind)) {
        return rank_of(a->kind) < rank_of(b->kind);
    }
    return a->kind == LUA_TSTRING ? strcmp(a->name, b->name) < 0 : a->number < b->number;
}

static table_key describe_key(lua_State *L, int index)
{
    table_key key = {.kind = lua_type(L, index), .name = ""};
    if (key.kind == LUA_TSTRING) {
        key.name = lua_tostring(L, index);
    } else {
        key.number = key.kind == LUA_TNUMBER ? lua_tonumber(L, index) : lua_toboolean(L, index);
    }
    return key;
}

// Stack: the key, which goes away.
static void add_key(lua_State *L, table_keys *keys)
{
    table_key key = describe_key(L, -1);
    unsigned at = keys->count;
    key.place = at + 1;
    if (at == NAMES_MAX) {
        keys->more++;
        at--;
        if (!is_before(&key, &keys->at[at])) {
            lua_pop(L, 1);
            return;
        }
        key.place = keys->at[at].place;
    } else {
        keys->count++;
    }
    for (; at > 0 && is_before(&key, &keys->at[at - 1]); at--) {
        keys->at[at] = keys->at[at - 1];
    }
    keys->at[at] = key;
    lua_rawseti(L, keys->list, key.place);
}

// Of the table at `index` all but 1 … `listed`. Pushes their list. Calls nothing of a person's.
static void take_keys(lua_State *L, int index, lua_Integer listed, table_keys *keys)
{
    lua_createtable(L, NAMES_MAX, 0);
    keys->list = lua_gettop(L);
    keys->count = 0;
    keys->more = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        lua_pop(L, 1);
        int is_whole = 0;
        const lua_Integer k = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &is_whole) : 0;
        if (!is_whole || k < 1 || k > listed) {
            lua_pushvalue(L, -1);
            add_key(L, keys);
        }
    }
}

// ---- names of a table -----------------------------------------------------------------------------------------------

// Stack: the key, the value. A name as it is, another key in brackets.
static void print_pair(lua_State *L, FILE *to)
{
    const int value = lua_gettop(L), key = value - 1;
    const bool named = lua_type(L, key) == LUA_TSTRING;
    char name[VALUE_TEXT_MAX], text[VALUE_TEXT_MAX];
    value_write_brief(L, value, true, text);
    value_copy_plain(luaL_tolstring(L, key, NULL), VALUE_TEXT_MAX - 2, SHOW_COLUMNS, name);
    lua_pop(L, 1);
    const int width = value_width(name) + (named ? 0 : 2);
    fputs(named ? "  " : "  [", to);
    print_plain(to, name);
    fprintf(to, "%s%*s ", named ? "" : "]", width < NAME_COLUMNS ? NAME_COLUMNS - width : 1, "");
    print_plain(to, text);
    fputc('\n', to);
}

static void say_more(FILE *to, lua_Integer count)
{
    if (count > 0) {
        fprintf(to, "  … %lld more\n", (long long)count);
    }
}

static void show_names(lua_State *L, int index, FILE *to)
{
    table_keys keys;
    const lua_Integer border = (lua_Integer)lua_rawlen(L, index);
    const lua_Integer listed = border <= value_count_keys(L, index) ? border : 0; // else one with holes
    take_keys(L, index, listed, &keys);
    for (lua_Integer k = 1; k <= listed && k <= ROWS_MAX; k++) {
        lua_pushinteger(L, k);
        lua_rawgeti(L, index, k);
        print_pair(L, to);
        lua_pop(L, 2);
    }
    for (unsigned k = 0; k < keys.count; k++) {
        lua_rawgeti(L, keys.list, keys.at[k].place);
        lua_pushvalue(L, -1);
        lua_rawget(L, index);
        print_pair(L, to);
        lua_pop(L, 2);
    }
    if (keys.count == 0 && listed == 0) {
        fputs("  {}\n", to);
    }
    say_more(to, keys.more + (listed > ROWS_MAX ? listed - ROWS_MAX : 0));
    lua_pop(L, 1);
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
        print_pair(L, to);
        lua_pop(L, 1);
        lua_replace(L, -2);
    }
}

// ---- a list of rows -------------------------------------------------------------------------------------------------

typedef struct row_column {
    lua_Integer place; // of its name in the list of keys
    int width;
} row_column;

typedef struct row_table {
    int index; // of the list of rows
    lua_Integer rows;
    table_keys keys; // of the first row, whose names head the columns
    row_column columns[COLUMNS_MAX];
    unsigned count, left; // of columns, and of names that are none
} row_table;

static bool is_list_of_rows(lua_State *L, int index)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    bool rows = count > 0;
    for (lua_Integer k = 1; rows && k <= count && k <= ROWS_MAX; k++) {
        lua_rawgeti(L, index, k);
        rows = lua_istable(L, -1) && lua_rawlen(L, -1) == 0 && !value_says_itself(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return rows && value_count_keys(L, index) == count;
}

// Of row `k`; "" where it has none, or one that does not go into a line. Row 0 is the heading.
static void cell(lua_State *L, const row_table *t, lua_Integer k, lua_Integer place, char out[VALUE_TEXT_MAX])
{
    char text[VALUE_TEXT_MAX];
    const int top = lua_gettop(L);
    out[0] = '\0';
    lua_rawgeti(L, t->index, k); // which a __tostring may have taken away
    lua_rawgeti(L, t->keys.list, place);
    if (k == 0) {
        value_copy_plain(lua_tostring(L, -1), VALUE_TEXT_MAX, SHOW_COLUMNS, out);
    } else if (lua_istable(L, -2)) {
        lua_rawget(L, -2);
        if (!lua_isnil(L, -1) && (!lua_istable(L, -1) || value_says_itself(L, lua_gettop(L)))) {
            value_write_brief(L, lua_gettop(L), false, text);
            value_copy_plain(text, VALUE_TEXT_MAX, CELL_MAX, out);
        }
    }
    lua_settop(L, top);
}

// The widest cell of a column; 0: it has none.
static int width_of_column(lua_State *L, const row_table *t, lua_Integer place)
{
    char text[VALUE_TEXT_MAX];
    int widest = 0;
    for (lua_Integer k = 1; k <= t->rows; k++) {
        cell(L, t, k, place, text);
        widest = value_width(text) > widest ? value_width(text) : widest;
    }
    cell(L, t, 0, place, text);
    return widest == 0 || widest > value_width(text) ? widest : value_width(text);
}

// Columns that go into a line, of the names of the first row.
static void choose_columns(lua_State *L, row_table *t)
{
    int used = 0;
    for (unsigned k = 0; k < t->keys.count; k++) {
        const table_key *key = &t->keys.at[k];
        const int width = key->kind == LUA_TSTRING ? width_of_column(L, t, key->place) : 0;
        if (width > 0 && t->count < COLUMNS_MAX && used + width + 2 <= SHOW_COLUMNS - 2) {
            t->columns[t->count++] = (row_column){key->place, width};
            used += width + 2;
        } else {
            t->left++;
        }
    }
}

static void print_cell(FILE *to, const char *text, int width, bool last)
{
    fputs("  ", to);
    print_plain(to, text);
    fprintf(to, "%*s", last ? 0 : width - value_width(text), "");
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

// Whether there is a column at all.
static bool show_rows(lua_State *L, int index, FILE *to)
{
    row_table t = {.index = index};
    const int top = lua_gettop(L);
    const lua_Integer all = (lua_Integer)lua_rawlen(L, index);
    t.rows = all < ROWS_MAX ? all : ROWS_MAX;
    lua_rawgeti(L, index, 1);
    take_keys(L, top + 1, 0, &t.keys);
    choose_columns(L, &t);
    for (lua_Integer k = 0; t.count > 0 && k <= t.rows; k++) {
        for (unsigned c = 0; c < t.count; c++) {
            char text[VALUE_TEXT_MAX];
            cell(L, &t, k, t.columns[c].place, text);
            print_cell(to, text, t.columns[c].width, c + 1 == t.count);
        }
        fputc('\n', to);
    }
    if (t.count > 0) {
        say_left(to, t.left + (unsigned)t.keys.more, all - t.rows);
    }
    lua_settop(L, top);
    return t.count > 0;
}

// ---- all of them ----------------------------------------------------------------------------------------------------

static void show(lua_State *L, int index, FILE *to)
{
    size_t length = 0;
    if (show_pairs(L, index, to)) {
        return;
    }
    if (!lua_istable(L, index) || value_says_itself(L, index)) {
        const char *text = luaL_tolstring(L, index, &length);
        script_print_text(to, text, length);
        fputc('\n', to);
        lua_pop(L, 1);
    } else if (!is_list_of_rows(L, index) || !show_rows(L, index, to)) {
        show_names(L, index, to);
    }
}

void console_show(lua_State *L, int first, FILE *to)
{
    const int last = lua_gettop(L);
    luaL_checkstack(L, 24, "values of a console");
    for (int k = first; k <= last; k++) {
        if (script_of(L)->host == NULL || !script_is_plot(L, k)) { // else the workbench has drawn it
            show(L, k, to);
        }
    }
}
