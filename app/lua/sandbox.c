// SPDX-License-Identifier: Apache-2.0
// The environment of a recipe: what it may see of Lua's own libraries. A hook that counts instructions ends a recipe
// gently, so the ways of Lua code round it that were found in Lua 5.4.4 are closed here:
//
//   __gc                   runs without hooks                   setmetatable refuses it
//   xpcall's handler       runs inside the hook that raises     it runs after the stack is unwound
//   coroutine.wrap         runs __close of a coroutine that a   it leaves a stopped coroutine alone
//                          hook broke, without hooks
//   pcall, resume          catch the stop                       they raise it again at once
//   bytecode               breaks the machine                   load takes text only, string.dump is gone
//
// Functions of C that do not come back (table.insert at a border near 2^62, a pattern that backtracks for hours) are as Lua
// has them: a timer finds them, and the recipe's process ends (watch.h).
#include <lualib.h>
#include <string.h>

#include "app/lua/script.h"

// ---- errors are caught, the stop is not -----------------------------------------------------------------------------

static void raise_again_if_stopped(lua_State *L)
{
    if (script_of(L)->stop != SCRIPT_GOES_ON) {
        script_check_stop(L);
    }
}

// Lua says where a wrong argument was given by its caller, and pcall(hr.run, 3) has none.
static void place_error(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TSTRING && strncmp(lua_tostring(L, -1), "bad argument", 12) == 0) {
        script_push_where(L);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
}

// Stack: true, results… or true, error. `context`: a function of C was called.
static int finish_pcall(lua_State *L, int status, lua_KContext context)
{
    if (status == LUA_OK || status == LUA_YIELD) {
        return lua_gettop(L);
    }
    raise_again_if_stopped(L);
    if (context != 0) {
        place_error(L);
    }
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int safe_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, true);
    lua_insert(L, 1);
    const lua_KContext of_c = lua_iscfunction(L, 2);
    return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, of_c, finish_pcall), of_c);
}

// Stack: handler, false, results… or handler, false, error.
static int finish_handler(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status != LUA_OK && status != LUA_YIELD) {
        raise_again_if_stopped(L);
    }
    return lua_gettop(L) - 1;
}

// Stack: handler, true, results… or handler, true, error.
static int finish_xpcall(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD) {
        return lua_gettop(L) - 1;
    }
    raise_again_if_stopped(L);
    lua_pushboolean(L, false);
    lua_replace(L, 2);
    lua_pushvalue(L, 1);
    lua_insert(L, 3);
    return finish_handler(L, lua_pcallk(L, 1, LUA_MULTRET, 0, 0, finish_handler), 0);
}

static int safe_xpcall(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushboolean(L, true);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2); // function, handler, true, function, arguments…
    lua_remove(L, 1);
    return finish_xpcall(L, lua_pcallk(L, lua_gettop(L) - 3, LUA_MULTRET, 0, 0, finish_xpcall), 0);
}

// The functions below stand before one of Lua's own, their upvalue, and end by calling it in their own frame, so
// that its errors name the recipe's line and the right function.
static int go_on(lua_State *L)
{
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int safe_resume(lua_State *L)
{
    script *s = script_of(L);
    s->running = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
    int count = go_on(L);
    s->running = L;
    raise_again_if_stopped(L);
    return count;
}

// ---- coroutine.wrap -------------------------------------------------------------------------------------------------

static int raise_from_coroutine(lua_State *L, lua_State *co, int status)
{
    raise_again_if_stopped(L);
    if (status != LUA_OK && status != LUA_YIELD) {
        status = lua_resetthread(co); // runs its __close, which may leave another error
    }
    lua_xmove(co, L, 1);
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int call_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int count = lua_gettop(L);
    if (!lua_checkstack(co, count)) {
        return luaL_error(L, "too many arguments to resume");
    }
    if (lua_status(co) == LUA_OK && lua_gettop(co) == 0) {
        return luaL_error(L, "cannot resume dead coroutine");
    }
    lua_xmove(L, co, count);
    script_of(L)->running = co;
    int status = lua_resume(co, L, count, &count);
    script_of(L)->running = L;
    if (status != LUA_OK && status != LUA_YIELD) {
        return raise_from_coroutine(L, co, status);
    }
    if (!lua_checkstack(L, count)) {
        return luaL_error(L, "too many results to resume");
    }
    lua_xmove(co, L, count);
    return count;
}

static int safe_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

// ---- base -----------------------------------------------------------------------------------------------------------

static int safe_setmetatable(lua_State *L)
{
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) {
            return luaL_error(L, "a recipe may not set __gc");
        }
        lua_pop(L, 1);
    }
    return go_on(L);
}

static int safe_load(lua_State *L)
{
    if (strchr(luaL_optstring(L, 3, "t"), 't') == NULL) {
        return luaL_error(L, "load takes text only, had mode '%s'", lua_tostring(L, 3));
    }
    if (lua_gettop(L) < 3) {
        lua_settop(L, 3);
    }
    lua_pushliteral(L, "t");
    lua_replace(L, 3);
    return go_on(L);
}

void script_print_text(FILE *to, const char *text, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        unsigned char byte = (unsigned char)text[k];
        bool c1 = byte == 0xC2 && k + 1 < length && ((unsigned char)text[k + 1] & 0xE0U) == 0x80U;
        if (c1 || byte == 0x7F || (byte < ' ' && byte != '\n' && byte != '\t')) {
            fputc('?', to);
            k += c1;
        } else {
            fputc(byte, to);
        }
    }
}

int script_print(lua_State *L)
{
    script *s = script_of(L);
    int count = lua_gettop(L);
    if (s->host != NULL && count == 1 && script_is_plot(L, 1)) {
        return 0; // the workbench has drawn it
    }
    for (int k = 1; k <= count; k++) {
        size_t length = 0;
        const char *text = luaL_tolstring(L, k, &length);
        s->printing = 1;
        if (k > 1) {
            fputc('\t', s->out);
        }
        script_print_text(s->out, text, length);
        s->printing = 0;
        lua_pop(L, 1);
    }
    s->printing = 1;
    fputc('\n', s->out);
    s->printing = 0;
    return 0;
}

// ---- the environment ------------------------------------------------------------------------------------------------

typedef struct guard {
    const char *name;
    lua_CFunction function;
} guard;

static const guard base_guards[] = {
    {"load", safe_load},
    {"setmetatable", safe_setmetatable},
    {NULL, NULL},
};
static const guard coroutine_guards[] = {{"resume", safe_resume}, {NULL, NULL}};

static const char *const base_names[] = {
    "assert", "error",  "getmetatable", "ipairs",       "load",     "next",     "pairs", "rawequal", "rawget",
    "rawlen", "rawset", "select",       "setmetatable", "tonumber", "tostring", "type",  "_VERSION", NULL,
};
static const char *const string_names[] = {
    "byte", "char",     "find", "format",  "gmatch", "gsub",   "len",   "lower", "match",
    "pack", "packsize", "rep",  "reverse", "sub",    "unpack", "upper", NULL,
};
static const char *const table_names[] = {
    "concat", "insert", "move", "pack", "remove", "sort", "unpack", NULL,
};
static const char *const coroutine_names[] = {
    "close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield", NULL,
};
static const char *const math_names[] = {
    "abs",        "acos", "asin", "atan",       "ceil",      "cos",        "deg",  "exp", "floor", "fmod",
    "huge",       "log",  "max",  "maxinteger", "min",       "mininteger", "modf", "pi",  "rad",   "random",
    "randomseed", "sin",  "sqrt", "tan",        "tointeger", "type",       "ult",  NULL,
};
static const char *const utf8_names[] = {
    "char", "charpattern", "codepoint", "codes", "len", "offset", NULL,
};

// Copies the allowed names of the table on top of the stack into a new one, which takes its place.
static void keep_names(lua_State *L, const char *const *names, const guard *guards)
{
    lua_newtable(L);
    for (size_t k = 0; names[k] != NULL; k++) {
        lua_getfield(L, -2, names[k]);
        lua_setfield(L, -2, names[k]);
    }
    for (const guard *g = guards; g != NULL && g->name != NULL; g++) {
        lua_getfield(L, -1, g->name);
        lua_pushcclosure(L, g->function, 1);
        lua_setfield(L, -2, g->name);
    }
    lua_remove(L, -2);
}

static void open_library(lua_State *L, const char *name, lua_CFunction open, const char *const *names,
                         const guard *guards)
{
    lua_pushcfunction(L, open);
    lua_call(L, 0, 1);
    keep_names(L, names, guards);
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, name);
}

// Methods of strings come from the table on top of the stack, and their metatable cannot be reached.
static void protect_strings(lua_State *L)
{
    lua_pushliteral(L, "");
    (void)lua_getmetatable(L, -1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "string");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

static void seed_random(lua_State *L)
{
    lua_getfield(L, 1, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, 1);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

void script_open_sandbox(lua_State *L)
{
    static const luaL_Reg own[] = {
        {"pcall", safe_pcall}, {"xpcall", safe_xpcall}, {"print", script_print}, {"require", script_require},
        {NULL, NULL},
    };
    lua_settop(L, 0);
    lua_pushcfunction(L, luaopen_base); // fills the global table that is thrown away below, and returns it
    lua_call(L, 0, 1);
    keep_names(L, base_names, base_guards);
    luaL_setfuncs(L, own, 0);
    lua_pushvalue(L, 1);
    lua_setfield(L, 1, "_G");
    open_library(L, "coroutine", luaopen_coroutine, coroutine_names, coroutine_guards);
    lua_pushcfunction(L, safe_wrap);
    lua_setfield(L, -2, "wrap");
    open_library(L, "table", luaopen_table, table_names, NULL);
    open_library(L, "math", luaopen_math, math_names, NULL);
    open_library(L, "utf8", luaopen_utf8, utf8_names, NULL);
    open_library(L, "string", luaopen_string, string_names, NULL);
    protect_strings(L);
    seed_random(L);
    lua_pushvalue(L, 1);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_settop(L, 0);
}
