// SPDX-License-Identifier: Apache-2.0
// hr.bytes values: sizes that compare and add with each other, with numbers and with texts such as "3GiB", and that
// print as people read them. `==` is Lua's own and knows only two hr.bytes; a number stands in .bytes.
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "app/lua/script.h"

static const char bytes_type[] = "hr.bytes";

void script_push_bytes(lua_State *L, int64_t bytes)
{
    int64_t *value = lua_newuserdatauv(L, sizeof *value, 0);
    *value = bytes;
    luaL_setmetatable(L, bytes_type);
}

bool script_is_bytes(lua_State *L, int index, int64_t *bytes)
{
    const int64_t *value = luaL_testudata(L, index, bytes_type);
    if (value != NULL) {
        *bytes = *value;
    }
    return value != NULL;
}

static int64_t parse_text(lua_State *L, const char *text)
{
    uint64_t bytes = 0;
    if (!hr_bytes_parse(text, &bytes) || bytes > INT64_MAX) {
        (void)script_error(L, "'%s' is not a size such as \"512MiB\" or \"3GiB\"", text);
    }
    return (int64_t)bytes;
}

// An operand: hr.bytes, a whole number, or a text.
int64_t script_to_bytes(lua_State *L, int index)
{
    int64_t bytes = 0;
    int whole = 0;
    if (script_is_bytes(L, index, &bytes)) {
        return bytes;
    }
    if (lua_type(L, index) == LUA_TSTRING) {
        return parse_text(L, lua_tostring(L, index));
    }
    bytes = lua_tointegerx(L, index, &whole);
    if (!whole) {
        (void)script_error(L, "a size is a whole number of bytes or a text such as \"3GiB\", had %s",
                           luaL_tolstring(L, index, NULL));
    }
    return bytes;
}

int script_bytes(lua_State *L)
{
    luaL_checkany(L, 1);
    script_push_bytes(L, script_to_bytes(L, 1));
    return 1;
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

static int push_checked(lua_State *L, bool overflows, int64_t bytes)
{
    if (overflows) {
        return script_error(L, "the size does not fit 63 bits");
    }
    script_push_bytes(L, bytes);
    return 1;
}

static int add(lua_State *L)
{
    int64_t sum = 0;
    bool overflows = __builtin_add_overflow(script_to_bytes(L, 1), script_to_bytes(L, 2), &sum);
    return push_checked(L, overflows, sum);
}

static int subtract(lua_State *L)
{
    int64_t difference = 0;
    bool overflows = __builtin_sub_overflow(script_to_bytes(L, 1), script_to_bytes(L, 2), &difference);
    return push_checked(L, overflows, difference);
}

static int negate(lua_State *L)
{
    int64_t bytes = script_to_bytes(L, 1);
    return push_checked(L, bytes == INT64_MIN, bytes == INT64_MIN ? 0 : -bytes);
}

// A size times a number, rounded down to whole bytes.
static int multiply(lua_State *L)
{
    int size_index = luaL_testudata(L, 1, bytes_type) != NULL ? 1 : 2;
    int64_t bytes = script_to_bytes(L, size_index);
    if (lua_type(L, 3 - size_index) != LUA_TNUMBER) {
        return script_error(L, "a size is multiplied by a number, had %s", luaL_typename(L, 3 - size_index));
    }
    int whole = 0;
    int64_t product = lua_tointegerx(L, 3 - size_index, &whole);
    if (whole) {
        bool overflows = __builtin_mul_overflow(bytes, product, &product);
        return push_checked(L, overflows, product);
    }
    double real = floor((double)bytes * lua_tonumber(L, 3 - size_index));
    bool fits = real >= -0x1p62 && real <= 0x1p62; // false for NaN
    return push_checked(L, !fits, fits ? (int64_t)real : 0);
}

// By a size it is a ratio, by a number a size.
static int divide(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TNUMBER) {
        lua_pushnumber(L, (double)script_to_bytes(L, 1) / (double)script_to_bytes(L, 2));
        return 1;
    }
    double real = floor((double)script_to_bytes(L, 1) / lua_tonumber(L, 2));
    bool fits = real >= -0x1p62 && real <= 0x1p62;
    return push_checked(L, !fits, fits ? (int64_t)real : 0);
}

static int is_equal(lua_State *L)
{
    lua_pushboolean(L, script_to_bytes(L, 1) == script_to_bytes(L, 2));
    return 1;
}

static int is_less(lua_State *L)
{
    lua_pushboolean(L, script_to_bytes(L, 1) < script_to_bytes(L, 2));
    return 1;
}

static int is_at_most(lua_State *L)
{
    lua_pushboolean(L, script_to_bytes(L, 1) <= script_to_bytes(L, 2));
    return 1;
}

// ---- text -----------------------------------------------------------------------------------------------------------

static int to_text(lua_State *L)
{
    char text[HR_BYTES_TEXT_MAX];
    int64_t bytes = script_to_bytes(L, 1);
    uint64_t size = bytes < 0 ? UINT64_C(0) - (uint64_t)bytes : (uint64_t)bytes;
    lua_pushfstring(L, "%s%s", bytes < 0 ? "-" : "", hr_bytes_human(size, text));
    return 1;
}

static int concatenate(lua_State *L)
{
    (void)luaL_tolstring(L, 1, NULL);
    (void)luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

static int get_field(lua_State *L)
{
    const char *name = lua_tostring(L, 2);
    if (name == NULL || strcmp(name, "bytes") != 0) {
        return script_error(L, "a size has one field, .bytes, had '%s'", luaL_tolstring(L, 2, NULL));
    }
    lua_pushinteger(L, script_to_bytes(L, 1));
    return 1;
}

void script_open_bytes(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__add", add},          {"__sub", subtract},       {"__unm", negate},      {"__mul", multiply},
        {"__div", divide},       {"__eq", is_equal},        {"__lt", is_less},      {"__le", is_at_most},
        {"__tostring", to_text}, {"__concat", concatenate}, {"__index", get_field}, {NULL, NULL},
    };
    (void)luaL_newmetatable(L, bytes_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushstring(L, bytes_type);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
