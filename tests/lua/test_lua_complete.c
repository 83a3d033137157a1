// SPDX-License-Identifier: Apache-2.0
// Completion of a chunk that is being typed: what is offered where, that every name is reached, and that looking changes
// nothing, whatever the line is.
#include <stdbool.h>

#include "app/lua/api.h"
#include "app/lua/complete.h"
#include "app/lua/complete_scan.h"
#include "app/lua/events.h"
#include "base/host_mem.h"
#include "lua/recipe_run.h"

// ---- a state to look into ----------------------------------------------------------------------------------------------

static const char globals[] =
    "hits = 0\n"
    "local function hit() hits = hits + 1 end\n"
    "sizes = {small = 1, smaller = 2, ['not a name'] = 3, ['end'] = 4, [5] = 6, deep = {deeper = {deepest = "
    "true}}}\n"
    "trap = setmetatable({mine = 1}, {__index = hit, __pairs = hit, __len = hit, __tostring = hit, __call = "
    "hit, "
    "__name = 'x'})\n"
    "base = {greet = function(self, whom, ...) end, name = 'b'}\n"
    "object = setmetatable({own = 1}, {__index = base})\n"
    "loop = setmetatable({}, {}); getmetatable(loop).__index = loop; setmetatable(loop, {__index = loop})\n"
    "word = 'text'\n"
    "size = hr.bytes('1MiB')\n"
    "batch = hr.knobs.batch\n"
    "plan_it = hr.plan\n"
    "handle = hr.on('step', function() end)\n"
    "function add(first, second) return first + second end\n"
    "many = {}\n"
    "for k = 1, 2000 do many['key_' .. k] = k end\n";

typedef struct state {
    script s;
    char folder[64];
} state;

static uint64_t requests; // of Lua for memory

static void *count_requests(void *context, void *old, size_t old_bytes, size_t new_bytes)
{
    requests += new_bytes > 0;
    (void)context;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "%s", path);
    fputs(text, f);
    (void)fclose(f);
}

static void begin(state *t)
{
    char command[256];
    hr_err err;
    *t = (state){.s = {.out = stdout, .notes = stderr}, .folder = "/tmp/headroom-complete-XXXXXX"};
    hr_preset_search_beside(".");
    ck_assert_ptr_nonnull(mkdtemp(t->folder));
    (void)snprintf(command, sizeof command, "mkdir %s/sub && ln -s / %s/out", t->folder, t->folder);
    ck_assert_int_eq(system(command), 0);
    put(t->folder, "mine.yaml", "x: 1\n");
    put(t->folder, "helper.lua", "return 1\n");
    put(t->folder, "sub/trace.csv", "");
    put(t->folder, ".hidden.csv", "");
    (void)snprintf(t->s.folder, sizeof t->s.folder, "%s", t->folder);
    ck_assert_int_eq(script_open(&t->s, &test_limits, &err), HR_OK);
    lua_setallocf(t->s.L, count_requests, NULL);
    ck_assert_msg(luaL_dostring(t->s.L, globals) == LUA_OK, "%s", lua_tostring(t->s.L, -1));
    lua_gc(t->s.L, LUA_GCCOLLECT);
}

static void end(state *t)
{
    char command[256];
    script_close(&t->s);
    (void)snprintf(command, sizeof command, "rm -r %s", t->folder);
    ck_assert_int_eq(system(command), 0);
}

static script_completion found;

static lua_Integer hits(lua_State *L)
{
    lua_getglobal(L, "hits");
    const lua_Integer count = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return count;
}

// With the cursor where `line` has it; the state is as it was.
static void complete_at(state *t, const char *line, size_t length, size_t cursor)
{
    lua_State *L = t->s.L;
    const int top = lua_gettop(L);
    const lua_Integer before = hits(L);
    requests = 0;
    script_complete(L, line, length, cursor, &found);
    ck_assert_msg(requests == 0, "%s: Lua asked for memory %lu times", line, (unsigned long)requests);
    ck_assert_int_eq(lua_gettop(L), top);
    ck_assert_int_eq(hits(L), before);
    ck_assert_uint_le(found.start, cursor);
    for (uint32_t k = 0; k < found.count; k++) {
        const char *text = script_candidate(&found, k);
        ck_assert_msg(strncmp(text, line + found.start, cursor - found.start) == 0, "%s: %s", line, text);
        ck_assert_msg(k == 0 || strcmp(script_candidate(&found, k - 1), text) < 0, "%s: %s is out of order",
                      line, text);
    }
    ck_assert_ptr_null(strchr(found.hint, '\n'));
}

// `marked` has a bar where the cursor is.
static void complete(state *t, const char *marked)
{
    char line[1024];
    const char *bar = strchr(marked, '|');
    ck_assert_ptr_nonnull(bar);
    (void)snprintf(line, sizeof line, "%.*s%s", (int)(bar - marked), marked, bar + 1);
    complete_at(t, line, strlen(line), (size_t)(bar - marked));
}

static int place_of(const char *text)
{
    for (uint32_t k = 0; k < found.count; k++) {
        if (strcmp(script_candidate(&found, k), text) == 0) {
            return (int)k;
        }
    }
    return -1;
}

// ---- what is offered where ---------------------------------------------------------------------------------------------

#define ALONE " (alone)" // behind a wanted one: there is no other

static const struct {
    const char *line, *wanted, *after, *unwanted;
} offers[] = {
    {"hr.pl|", "plan", "", "preset"},
    {"hr.|", "knobs", "", NULL},
    {"print(hr.kn|)", "knobs" ALONE, "", NULL},
    {"local x <const> = 1; hr.e|", "explain", "", NULL},
    {"x = {hr.plan(), hr.pl|", "plot", "", NULL},
    {"-- hr.pl|", NULL, NULL, "plan"},
    {"--[[ x ]] hr.pl|", "plan", "", NULL},
    {"--[==[ x ]] hr.pl|", NULL, NULL, "plan"},
    {"x = [[ hr.pl|", NULL, NULL, "plan"},
    {"x = 12|", NULL, NULL, "plan"},
    {"hr:pl|", NULL, NULL, "plan"},
    {"nothing.pl|", NULL, NULL, "plan"},
    {"hr.knobs.|", "batch", "", "batch.size"},
    {"hr.knobs.batch.|", "size", "", "kind"},
    {"hr.knobs.batch.s|", "size" ALONE, "", NULL},
    {"hr.knobs['batch'].s|", "size" ALONE, "", NULL},
    {"batch.s|", "size" ALONE, "", NULL},
    {"hr.knobs[\"batch.s|", "batch.size" ALONE, "\"]", NULL},
    {"hr.knobs['batch.s|", "batch.size" ALONE, "']", NULL},
    {"hr.knobs['batch.s|']", "batch.size" ALONE, "", NULL},
    {"hr.knobs.execution.mode = |", "\"graph\"", "", "graph"},
    {"hr.knobs.execution.mode = \"gr|", "graph" ALONE, "\"", NULL},
    {"hr.knobs.execution.mode == 'gr|", "graph" ALONE, "'", NULL},
    {"if hr.knobs.execution.mode ~= 'gr|", "graph" ALONE, "'", NULL},
    {"hr.knobs.execution.mode = \"gr|\"", "graph" ALONE, "", NULL},
    {"hr.knobs[\"execution.mode\"] = \"gr|", "graph" ALONE, "\"", NULL},
    {"hr.knobs.execution = {mo|", "mode" ALONE, " = ", NULL},
    {"hr.knobs.execution = {mode = '|", "eager", "'", NULL},
    {"hr.knobs.allocator.growth = |", "true", "", "\"on\""},
    {"hr.knobs.device.card = 'rtx3070-8|", "rtx3070-8g" ALONE, "'", NULL},
    {"hr.knobs.pipeline.path = 'sub/|", "sub/trace.csv" ALONE, "'", NULL},
    {"hr.run{|", "until_oom", " = ", "columns"},
    {"hr.run{un| = true}", "until_oom" ALONE, "", NULL},
    {"hr.run{un|= true}", "until_oom" ALONE, "", NULL},
    {"hr.run({un|", "until_oom" ALONE, " = ", NULL},
    {"hr.run{steps = 3, fr|", "fresh" ALONE, " = ", NULL},
    {"hr.run{steps = hr.pl|", "plan", "", NULL},
    {"hr.run{bat|", "batch" ALONE, " = ", NULL},
    {"hr.run{batch = {si|", "size" ALONE, " = ", NULL},
    {"hr.run{['batch.si|", "batch.size" ALONE, "']", NULL},
    {"hr.run{['execution.mode'] = |", "\"eager\"", "", NULL},
    {"hr.run{execution = {mode = 'e|", "eager" ALONE, "'", NULL},
    {"plan_it{st|", "steps" ALONE, " = ", NULL},
    {"hr.plot{|", "log_x", " = ", "batch"},
    {"hr.with({ba|", "batch" ALONE, " = ", NULL},
    {"hr.sweep{['execution.mode'] = {'eager', |", "\"graph\"", "", NULL},
    {"hr.sweep{['execution.mode'] = {'eager', 'g|", "graph" ALONE, "'", NULL},
    {"hr.sweep({ba|", "batch" ALONE, " = ", NULL},
    {"hr.sweep({}, {s|", "steps" ALONE, " = ", NULL},
    {"hr.sweep({s|", NULL, NULL, "steps"},
    {"hr.explain{st|", "steps" ALONE, " = ", NULL},
    {"hr.explain('growth_boundary', {st|", "steps" ALONE, " = ", NULL},
    {"hr.explain('growth_b|", "growth_boundary" ALONE, "'", NULL},
    {"hr.replay('growth_b|", "growth_boundary" ALONE, "'", NULL},
    {"hr.replay('sub/|", "sub/trace.csv" ALONE, "'", NULL},
    {"hr.replay('.hid|", ".hidden.csv" ALONE, "'", NULL},
    {"hr.replay('|", "sub/", "", ".hidden.csv"},
    {"hr.replay('x', {allocators = {'bf|", "bfc" ALONE, "'", NULL},
    {"hr.replay('../|", NULL, NULL, NULL},
    {"hr.load('out/|", NULL, NULL, NULL},
    {"hr.load('/|", NULL, NULL, NULL},
    {"hr.load 'mine|", "mine.yaml" ALONE, "'", NULL},
    {"hr.preset \"dem|", "demo" ALONE, "\"", NULL},
    {"hr.preset(\"dem|\")", "demo" ALONE, "", NULL},
    {"hr.preset \"min|", "mine.yaml" ALONE, "\"", NULL},
    {"hr.preset \"hel|", NULL, NULL, "helper.lua"},
    {"require \"hel|", "helper" ALONE, "\"", NULL},
    {"require('hel|", "helper" ALONE, "'", NULL},
    {"hr.on('epoch_|", "epoch_begin" ALONE, "'", NULL},
    {"hr.on('step', function(s) hr.st|", "stop" ALONE, "", NULL},
    {"hr.has 'batch.si|", "batch.size" ALONE, "'", NULL},
    {"hr.has 'expl|", "explain" ALONE, "'", NULL},
    {"hr.fit{keep = 'prec|", "precision", "", NULL},
    {"hr.fit{keep = 'batch,preci|", "precision", "", NULL},
    {"hr.apply{'batch.si|", "batch.size" ALONE, "=", NULL},
    {"sizes.|", "small", "", "not a name"},
    {"sizes.|", "deep", "", "end"},
    {"sizes['not|", "not a name" ALONE, "']", NULL},
    {"sizes.deep.deeper.d|", "deepest" ALONE, "", NULL},
    {"sizes['deep'].deeper['d|", "deepest" ALONE, "']", NULL},
    {"x = 1\nsizes.smalle|", "smaller" ALONE, "", NULL},
    {"print(sizes.small, siz|", "sizes", "", NULL},
    {"trap.|", "mine" ALONE, "", NULL},
    {"trap.other.|", NULL, NULL, NULL},
    {"object.|", "name", "", NULL},
    {"object:|", "greet" ALONE, "", NULL},
    {"loop.|", NULL, NULL, NULL},
    {"loop.x.y|", NULL, NULL, NULL},
    {"word:up|", "upper" ALONE, "", NULL},
    {"string.gs|", "gsub" ALONE, "", NULL},
    {"size.|", "bytes" ALONE, "", NULL},
    {"handle:|", "off" ALONE, "", NULL},
    {"_G.siz|", "size", "", NULL},
    {"wh|", "while" ALONE, "", NULL},
    {"x = |", "sizes", "", NULL},
    {"hr.pl|an", "plan", "", NULL},
    {"f(function(a, b) return hr.pl|", "plan", "", NULL},
    {"x = 'a\nhr.pl|", "plan", "", NULL},
    {"x = 'a\\'' .. hr.pl|", "plan", "", NULL},
    {"hr . pl|", "plan", "", NULL},
    {"many.key_2000|", "key_2000" ALONE, "", NULL},
};

START_TEST(what_may_stand_there_is_offered)
{
    state t;
    begin(&t);
    for (size_t k = 0; k < sizeof offers / sizeof *offers; k++) {
        complete(&t, offers[k].line);
        if (offers[k].wanted != NULL) {
            char wanted[128];
            const char *alone = strstr(offers[k].wanted, ALONE);
            (void)snprintf(wanted, sizeof wanted, "%.*s",
                           alone == NULL ? (int)strlen(offers[k].wanted) : (int)(alone - offers[k].wanted),
                           offers[k].wanted);
            const int at = place_of(wanted);
            ck_assert_msg(at >= 0, "%s: no %s among %u, the first is %s", offers[k].line, wanted, found.count,
                          found.count > 0 ? script_candidate(&found, 0) : "");
            ck_assert_msg(strcmp(found.items[at].after, offers[k].after) == 0, "%s: '%s'", offers[k].line,
                          found.items[at].after);
            ck_assert_msg(alone == NULL || found.count == 1, "%s: %s too", offers[k].line,
                          script_candidate(&found, at == 0));
        }
        if (offers[k].unwanted != NULL) {
            ck_assert_msg(place_of(offers[k].unwanted) < 0, "%s", offers[k].line);
        }
        if (offers[k].wanted == NULL && offers[k].unwanted == NULL) {
            ck_assert_msg(found.count == 0, "%s: %s", offers[k].line, script_candidate(&found, 0));
        }
    }
    end(&t);
}
END_TEST

static const struct {
    const char *line, *hint;
} hints[] = {
    {"hr.plan{|", "hr.plan{steps = N, knob = value, …} → hr.Result"},
    {"hr.plan({steps = |", "hr.plan{steps = N, knob = value, …} → hr.Result"},
    {"hr.sweep|", "hr.sweep({knob = list of values, …}, {steps = N}) → table[]"},
    {"hr.on('step', |", "hr.on(event, function, options) → hr.Handler"},
    {"hr.preset 'de|", "hr.preset(name_or_path) → string"},
    {"hr.note(sizes.|", "hr.note(text)"},
    {"add(1, |", "add(first, second)"},
    {"object.greet(|", "greet(self, whom, …)"},
    {"hr.note(add(1, |", "add(first, second)"},
    {"hr.note(add(1, 2), |", "hr.note(text)"},
    {"hr.note(add(1, 2)) |", ""},
    {"x = |", ""},
    {"function add(|", ""},
};

START_TEST(the_call_around_the_cursor_is_said)
{
    state t;
    char begins[128];
    begin(&t);
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++) {
        complete(&t, hints[k].line);
        ck_assert_msg(strcmp(found.hint, hints[k].hint) == 0, "%s: %s", hints[k].line, found.hint);
    }
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[k];
        char line[128];
        (void)snprintf(begins, sizeof begins, "%s: %.40s", row->key, row->line);
        (void)snprintf(line, sizeof line, "hr.knobs.%s = |", row->key);
        complete(&t, line);
        ck_assert_msg(strncmp(found.hint, begins, strlen(begins)) == 0, "%s: %s", line, found.hint);
        (void)snprintf(line, sizeof line, "hr.plan{['%s'] = |", row->key);
        complete(&t, line);
        ck_assert_msg(strncmp(found.hint, begins, strlen(begins)) == 0, "%s: %s", line, found.hint);
    }
    end(&t);
}
END_TEST

// ---- every name is reached ---------------------------------------------------------------------------------------------

// Whichever part of the name is typed behind `before`.
static void is_reached(state *t, const char *before, const char *name)
{
    char line[256];
    for (size_t k = 0; k <= strlen(name); k++) {
        (void)snprintf(line, sizeof line, "%s%.*s", before, (int)k, name);
        complete_at(t, line, strlen(line), strlen(line));
        ck_assert_msg(place_of(name) >= 0, "%s: no %s", line, name);
        ck_assert_uint_eq(found.start, strlen(before));
    }
}

static void knob_is_reached(state *t, const hr_knob_row *row)
{
    char before[128];
    const char *dot = strchr(row->key, '.');
    (void)snprintf(before, sizeof before, "hr.knobs.%.*s.", (int)(dot - row->key), row->key);
    is_reached(t, before, dot + 1);
    is_reached(t, "hr.knobs['", row->key);
    is_reached(t, "hr.run{['", row->key);
    (void)snprintf(before, sizeof before, "hr.run{%.*s = {", (int)(dot - row->key), row->key);
    is_reached(t, before, dot + 1);
    (void)snprintf(before, sizeof before, "hr.knobs.%s = '", row->key);
    for (int k = 0; row->type == HR_KNOB_CHOICE && row->choices[k] != NULL; k++) {
        is_reached(t, before, row->choices[k]);
    }
}

START_TEST(every_name_option_knob_and_choice_is_reached)
{
    state t;
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    begin(&t);
    for (size_t k = 0; k < count; k++) {
        is_reached(&t, "hr.", rows[k].name);
        for (const lua_script_field *f = rows[k].options; f != NULL && f->name != NULL; f++) {
            char before[64];
            const bool second = strcmp(rows[k].name, "sweep") == 0;
            (void)snprintf(before, sizeof before, "hr.%s%s{", rows[k].name, second ? "({}, " : "");
            is_reached(&t, before, f->name);
        }
    }
    for (int k = 0; k < HR_KNOB_COUNT; k += HEADROOM_SANITIZED ? 5 : 1) {
        knob_is_reached(&t, &hr_knob_rows(NULL)[k]);
    }
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        is_reached(&t, "hr.on('", script_event_rows[k].name);
    }
    end(&t);
}
END_TEST

// ---- whatever the line is ----------------------------------------------------------------------------------------------

static uint64_t seed = 20;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static const char *const parts[] = {
    "hr",        ".",    ":",       "knobs",     "batch",  "size",     "=",      "==",        "{",
    "}",         "(",    ")",       "[",         "]",      "\"",       "'",      ",",         ";",
    "\n",        " ",    "--",      "--[[",      "]]",     "[==[",     "plan",   "run",       "preset",
    "sweep",     "trap", "sizes",   "loop",      "word",   "..",       "...",    "::",        "1e5",
    "0x",        "\\",   "~=",      "local ",    "end",    "é",        "\t",     "nil",       "#",
    "/",         "../",  "demo",    "add",       "object", "many",     "_G",     "steps",     "batch.size",
    "execution", "mode", "require", "function ", "\1",     "\xC2\x9B", "handle", "hr.with({", "key_",
};

static size_t draw_line(char line[512])
{
    size_t length = 0;
    for (uint64_t k = 1 + draw(24); k > 0; k--) {
        const char *part = parts[draw(sizeof parts / sizeof *parts)];
        if (draw(40) == 0 && length < 500) {
            line[length++] = (char)draw(256);
        } else if (length + strlen(part) < 500) {
            memcpy(line + length, part, strlen(part));
            length += strlen(part);
        }
    }
    line[length] = '\0';
    return length;
}

// A candidate that is put in its place is still offered there, for every part of it that is typed.
static void stays_offered(state *t, const char *line, size_t cursor)
{
    char with[1024], text[512];
    const size_t start = found.start;
    (void)snprintf(text, sizeof text, "%s", script_candidate(&found, (uint32_t)draw(found.count)));
    if (found.more) {
        return;
    }
    for (size_t k = cursor - start; k <= strlen(text); k++) {
        if (((unsigned char)text[k] & 0xC0U) == 0x80U) {
            continue;
        }
        memcpy(with, line, start);
        memcpy(with + start, text, k);
        with[start + k] = '\0';
        complete_at(t, with, start + k, start + k);
        ck_assert_msg(place_of(text) >= 0, "%s: %s was offered before\n", with, text);
        if (text[0] == '"' || text[0] == '\'') {
            return; // behind its first sign it is a text
        }
    }
}

START_TEST(no_line_changes_the_state_and_what_is_offered_is_valid)
{
    state t;
    char line[512];
    uint64_t offered = 0;
    begin(&t);
    for (unsigned k = 0; k < (HEADROOM_SANITIZED ? 1000 : 5000); k++) {
        const size_t length = draw_line(line), cursor = draw(4) == 0 ? draw(length + 1) : length;
        complete_at(&t, line, length, cursor);
        offered += found.count > 0;
        if (found.count > 0 && memchr(line, '\0', cursor) == NULL) {
            line[cursor] = '\0';
            complete_at(&t, line, cursor, cursor);
            if (found.count > 0) {
                stays_offered(&t, line, cursor);
            }
        }
    }
    ck_assert_uint_gt(offered, HEADROOM_SANITIZED ? 100 : 500);
    end(&t);
}
END_TEST

START_TEST(every_request_of_the_engine_may_fail)
{
    static const char line[] = "hr.preset 'dem";
    state t;
    begin(&t);
    complete_at(&t, line, sizeof line - 1, sizeof line - 1);
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1;; nth += 1 + nth / 4) {
        (void)hr_host_mem_fail_at(nth);
        complete_at(&t, line, sizeof line - 1, sizeof line - 1);
        const bool passed = hr_host_mem_fail_at(0) < nth;
        ck_assert_int_eq(hr_host_mem_live(), live);
        if (passed) {
            break;
        }
    }
    ck_assert_int_ge(place_of("demo"), 0);
    end(&t);
}
END_TEST

START_TEST(more_than_there_is_room_for_is_said)
{
    state t;
    begin(&t);
    complete(&t, "many.|");
    ck_assert_uint_eq(found.count, SCRIPT_CANDIDATES_MAX);
    ck_assert(found.more);
    ck_assert_uint_eq(script_common_bytes(&found), 4);
    complete(&t, "many.key_19|");
    ck_assert_uint_eq(found.count, 111);
    ck_assert(!found.more);
    end(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_complete");
    TCase *tc = tcase_create("complete");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, what_may_stand_there_is_offered);
    tcase_add_test(tc, the_call_around_the_cursor_is_said);
    tcase_add_test(tc, every_name_option_knob_and_choice_is_reached);
    tcase_add_test(tc, no_line_changes_the_state_and_what_is_offered_is_valid);
    tcase_add_test(tc, every_request_of_the_engine_may_fail);
    tcase_add_test(tc, more_than_there_is_room_for_is_said);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
