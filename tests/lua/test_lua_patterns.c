// SPDX-License-Identifier: Apache-2.0
// string.find, match, gmatch and gsub of the sandbox against Lua's own, on seeded random subjects, patterns and
// replacements: the same results, the same errors.
#include <check.h>
#include <lualib.h>
#include <stdint.h>

#include "app/lua/script.h"

enum { CASES = 4000, SEEDS = 8, TEXT_MAX = 512 };

static uint64_t random_state;

static unsigned below(unsigned count) // splitmix64
{
    uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (unsigned)((z ^ (z >> 31)) % count);
}

typedef struct piece {
    const char *text;
    size_t length;
} piece;

#define PIECE(text)                                                                                          \
    {                                                                                                        \
        text, sizeof(text) - 1                                                                               \
    }
#define COUNT(list) ((unsigned)(sizeof(list) / sizeof *(list)))

static const piece subjects[] = {
    PIECE("a"), PIECE("a"), PIECE("b"), PIECE("A"),  PIECE("1"),    PIECE(" "), PIECE("("),  PIECE(")"),
    PIECE("%"), PIECE("-"), PIECE("]"), PIECE("\0"), PIECE("\xe9"), PIECE("z"), PIECE("aa"), PIECE("^"),
};
static const piece patterns[] = {
    PIECE("a"),     PIECE("b"),     PIECE("."),       PIECE("*"),    PIECE("+"),     PIECE("-"),
    PIECE("?"),     PIECE("%a"),    PIECE("%d"),      PIECE("%s"),   PIECE("%w"),    PIECE("%A"),
    PIECE("%z"),    PIECE("%%"),    PIECE("[ab]"),    PIECE("[^a]"), PIECE("[a-z]"), PIECE("[%a-]"),
    PIECE("[]]"),   PIECE("[^]]"),  PIECE("["),       PIECE("("),    PIECE(")"),     PIECE("()"),
    PIECE("(a)"),   PIECE("(.-)"),  PIECE("%1"),      PIECE("%2"),   PIECE("%b()"),  PIECE("%bab"),
    PIECE("%b"),    PIECE("%f[a]"), PIECE("%f[^%w]"), PIECE("%f"),   PIECE("%"),     PIECE("^"),
    PIECE("$"),     PIECE("\0"),    PIECE("[\0]"),    PIECE("[%"),   PIECE("%0"),    PIECE("[a-]"),
    PIECE("[%]]"),  PIECE("a*"),    PIECE(".*"),      PIECE("%l"),   PIECE("%u"),    PIECE("%p"),
    PIECE("%x"),    PIECE("%g"),    PIECE("%c"),      PIECE("%S"),   PIECE("[^%s]"), PIECE("(a*)"),
    PIECE("(%a+)"), PIECE("z"),
};
static const piece replacements[] = {
    PIECE("x"),  PIECE("%0"), PIECE("%1"), PIECE("%2"), PIECE("%%"),
    PIECE("%a"), PIECE("%"),  PIECE("<"),  PIECE("\0"),
};

static size_t put_random(const piece *pieces, unsigned count, unsigned most, char text[TEXT_MAX])
{
    size_t length = 0;
    for (unsigned k = below(most + 1); k > 0; k--) {
        const piece *p = &pieces[below(count)];
        memcpy(text + length, p->text, p->length);
        length += p->length;
    }
    return length;
}

typedef struct trial {
    char subject[TEXT_MAX], pattern[TEXT_MAX], replacement[TEXT_MAX];
    size_t subject_length, pattern_length, replacement_length;
    lua_Integer number;
    bool has_number, plain;
    unsigned replaces; // with a text, a table, or a function
} trial;

static trial random_trial(void)
{
    trial t = {.number = (lua_Integer)below(30) - 15, .has_number = below(3) == 0, .plain = below(8) == 0};
    t.subject_length = put_random(subjects, COUNT(subjects), 10, t.subject);
    t.pattern_length = put_random(patterns, COUNT(patterns), 5, t.pattern);
    t.replacement_length = put_random(replacements, COUNT(replacements), 3, t.replacement);
    t.replaces = below(3);
    return t;
}

// ---- one state --------------------------------------------------------------------------------------------------------

static int in_brackets(lua_State *L)
{
    if (lua_rawequal(L, 1, 2)) {
        lua_pushboolean(L, false);
    } else {
        lua_pushfstring(L, "[%s]", luaL_tolstring(L, 1, NULL));
    }
    return 1;
}

static void push_replacement(lua_State *L, const trial *t)
{
    if (t->replaces == 0) {
        lua_pushlstring(L, t->replacement, t->replacement_length);
    } else if (t->replaces == 1) {
        lua_newtable(L);
        lua_pushliteral(L, "yes");
        lua_setfield(L, -2, "a");
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "b");
    } else {
        lua_pushcfunction(L, in_brackets);
    }
}

// Calls string.<name> and leaves, from index `base` on, a status and all results.
static void call(lua_State *L, const char *name, const trial *t)
{
    int base = lua_gettop(L) + 1;
    lua_pushnil(L);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_pushlstring(L, t->subject, t->subject_length);
    lua_pushlstring(L, t->pattern, t->pattern_length);
    int arguments = 2;
    if (strcmp(name, "gsub") == 0) {
        push_replacement(L, t);
        arguments++;
    }
    if (t->has_number) {
        lua_pushinteger(L, t->number);
        arguments++;
        if (strcmp(name, "find") == 0 && t->plain) {
            lua_pushboolean(L, true);
            arguments++;
        }
    }
    lua_pushinteger(L, lua_pcall(L, arguments, LUA_MULTRET, 0));
    lua_replace(L, base);
}

// gmatch gives a function: calls it to the end and leaves all its results.
static void call_gmatch(lua_State *L, const trial *t)
{
    int base = lua_gettop(L) + 1;
    call(L, "gmatch", t);
    if (lua_tointeger(L, base) != LUA_OK) {
        return;
    }
    int iterator = base + 1;
    for (int k = 0; k < 40; k++) {
        int before = lua_gettop(L);
        lua_pushvalue(L, iterator);
        int status = lua_pcall(L, 0, LUA_MULTRET, 0);
        if (status != LUA_OK || lua_gettop(L) == before) {
            break;
        }
    }
    lua_remove(L, iterator);
}

static void same_results(lua_State *ours, lua_State *lua, const char *name, const trial *t)
{
    ck_assert_msg(lua_gettop(ours) == lua_gettop(lua), "%s('%s', '%s') gives %d values, not %d", name,
                  t->subject, t->pattern, lua_gettop(ours), lua_gettop(lua));
    for (int k = 1; k <= lua_gettop(ours); k++) {
        size_t our_length = 0, length = 0;
        const char *our_text = luaL_tolstring(ours, k, &our_length);
        const char *text = luaL_tolstring(lua, k, &length);
        ck_assert_msg(lua_type(ours, k) == lua_type(lua, k) && our_length == length &&
                          memcmp(our_text, text, length) == 0,
                      "%s('%s', '%s', '%s', %d): value %d is '%s', not '%s'", name, t->subject, t->pattern,
                      t->replacement, (int)t->number, k, our_text, text);
        lua_pop(ours, 1);
        lua_pop(lua, 1);
    }
    lua_settop(ours, 0);
    lua_settop(lua, 0);
}

static script sandbox;
static lua_State *stock;

static void open_both(void)
{
    hr_err err = {0};
    ck_assert_msg(script_open(&sandbox, &script_default_limits, &err) == HR_OK, "%s", err.sentence);
    stock = luaL_newstate();
    ck_assert_ptr_nonnull(stock);
    lua_pushcfunction(stock, luaopen_string);
    lua_call(stock, 0, 1);
    lua_setglobal(stock, "string");
}

static void close_both(void)
{
    lua_close(stock);
    script_close(&sandbox);
}

START_TEST(patterns_mean_what_they_mean_in_lua)
{
    static const char *const names[] = {"find", "match", "gsub"};
    random_state = (uint64_t)_i;
    for (int k = 0; k < CASES; k++) {
        trial t = random_trial();
        for (unsigned n = 0; n < COUNT(names); n++) {
            call(sandbox.L, names[n], &t);
            call(stock, names[n], &t);
            same_results(sandbox.L, stock, names[n], &t);
        }
        call_gmatch(sandbox.L, &t);
        call_gmatch(stock, &t);
        same_results(sandbox.L, stock, "gmatch", &t);
    }
}
END_TEST

// The limits of both matchers, too long to come up at random.
START_TEST(patterns_have_the_limits_of_lua)
{
    static const piece repeated[] = {PIECE("()"), PIECE("(a"), PIECE("a?"),
                                     PIECE("a-"), PIECE("%1"), PIECE("(a)")};
    trial t = {.subject_length = 300};
    memset(t.subject, 'a', t.subject_length);
    for (unsigned k = 0; k < COUNT(repeated); k++) {
        for (unsigned times = 30; times < 34 || (times >= 196 && times < 204);
             times = times == 33 ? 196 : times + 1) {
            t.pattern_length = 0;
            for (unsigned n = 0; n < times && t.pattern_length + 3 < TEXT_MAX; n++) {
                memcpy(t.pattern + t.pattern_length, repeated[k].text, repeated[k].length);
                t.pattern_length += repeated[k].length;
            }
            t.pattern[t.pattern_length] = '\0';
            call(sandbox.L, "match", &t);
            call(stock, "match", &t);
            same_results(sandbox.L, stock, "match", &t);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_patterns");
    TCase *tc = tcase_create("patterns");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, open_both, close_both);
    tcase_add_loop_test(tc, patterns_mean_what_they_mean_in_lua, 0, SEEDS);
    tcase_add_test(tc, patterns_have_the_limits_of_lua);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
