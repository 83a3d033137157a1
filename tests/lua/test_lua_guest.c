// SPDX-License-Identifier: Apache-2.0
// A recipe beside a session's training (headroom/guest.h): in this process, where the same calls give the same answers, and in
// a worker, which a recipe that hangs takes with it. This program is the worker too.
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/replay.h"
#include "headroom/session.h"

#include "app/lua/lua_script.h"
#include "lua/hostile.h"
#include "lua/recipe_run.h"

enum { SAID_MAX = 1 << 17, LOOK_US = 2000, STEPS_KEPT = 1024 };

typedef struct desk {
    recipe_run r;
    hr_preset *preset;
    hr_session *session;
    bool inline_;
    uint64_t cursor;
    size_t length;
    char said[SAID_MAX];
    unsigned steps;
    char knobs[512]; // that were turned, "batch.size=64 …"
} desk;

// ---- the session ------------------------------------------------------------------------------------------------

static void open_desk(desk *d, bool inline_, const char *pairs)
{
    hr_err err = {0};
    *d = (desk){.inline_ = inline_};
    recipe_make(&d->r);
    ck_assert_msg(hr_preset_open("demo", false, &d->preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(d->preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", &err), HR_OK);
    for (const char *at = pairs; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        char pair[96];
        (void)snprintf(pair, sizeof pair, "%.*s", (int)strcspn(at, " "), at);
        ck_assert_msg(hr_knobs_set_pair(&knobs, pair, &err) == HR_OK, "%s", err.sentence);
    }
    const hr_session_options options = {
        .preset = hr_preset_path(d->preset), .knobs = &knobs, .guest = &lua_script_guest};
    const hr_status status = inline_ ? hr_session_start_inline(&options, &d->session, &err)
                                     : hr_session_start(&options, &d->session, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
}

static void close_desk(desk *d)
{
    const hr_status status = hr_session_stop(d->session, NULL);
    (void)status; // of one that was killed
    hr_preset_close(d->preset);
    recipe_drop(&d->r);
}

static void take_events(desk *d)
{
    hr_event events[256];
    uint64_t lost = 0;
    size_t count = 0;
    while ((count = hr_session_events(d->session, events, 256, &lost)) > 0) {
        for (size_t k = 0; k < count; k++) {
            d->steps += events[k].kind == HR_EVENT_STEP;
            if (events[k].kind == HR_EVENT_KNOB) {
                (void)snprintf(d->knobs + strlen(d->knobs), sizeof d->knobs - strlen(d->knobs), "%s=%s ",
                               hr_knob_rows(NULL)[events[k].u.note.count].key, events[k].u.note.text);
            }
        }
    }
}

// One look; what the session does in this process it does here.
static void look(desk *d)
{
    if (d->inline_) {
        (void)hr_session_advance(d->session, 1);
    } else {
        (void)usleep(LOOK_US);
    }
    take_events(d);
    d->length += hr_session_said(d->session, &d->cursor, d->said + d->length, SAID_MAX - d->length);
}

static bool has_ended(desk *d, hr_session_end *end)
{
    return hr_session_get_life(d->session, end) == HR_SESSION_ENDED;
}

static void wait_for(desk *d, const char *line)
{
    hr_session_end end;
    const unsigned looks = d->inline_ ? 50 : 100000;
    for (unsigned k = 0; k < looks && strstr(d->said, line) == NULL && !has_ended(d, &end); k++) {
        look(d);
    }
    ck_assert_msg(strstr(d->said, line) != NULL, "'%s' was not said, but\n%s", line, d->said);
}

static void order(desk *d, hr_guest_order kind, const char *text)
{
    ck_assert(hr_session_order(d->session, kind, text));
}

static void forget(desk *d)
{
    d->length = 0;
    d->said[0] = d->knobs[0] = '\0';
    d->steps = 0;
}

// A recipe from a file, to its end or, where it waits for something, as far as `until`.
static void run_file(desk *d, const char *text, const char *until)
{
    forget(d);
    recipe_put(&d->r, "recipe.lua", text, strlen(text));
    order(d, HR_GUEST_FILE, d->r.file);
    wait_for(d, until);
}

// What a typed chunk came to: "o128\n", "e…".
static void check_typed(desk *d, const char *chunk, const char *answer)
{
    forget(d);
    order(d, HR_GUEST_CHUNK, chunk);
    wait_for(d, "sidle\n");
    ck_assert_msg(strstr(d->said, answer) != NULL, "%s\n-- wanted %s, had\n%s", chunk, answer, d->said);
}

static void send(desk *d, hr_command_kind kind, uint32_t knob, const char *text, uint64_t count)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .knob = knob, .count = count};
    (void)snprintf(c.text, sizeof c.text, "%s", text);
    ck_assert(hr_session_send(d->session, &c));
}

// ---- what it says -----------------------------------------------------------------------------------------------

START_TEST(what_is_printed_noted_and_drawn_comes_line_by_line)
{
    desk d;
    open_desk(&d, true, "");
    run_file(
        &d,
        "print('one\\ntwo', 3)\nhr.note 'seen'\n"
        "local p = hr.plot{title = 'up', x = {1, 2}, y = {1, 2}}\nprint(p)\nprint(hr.args.preset, #hr.args)",
        "sidle\n");
    ck_assert_ptr_nonnull(strstr(d.said, "srunning recipe.lua\n"));
    ck_assert_ptr_nonnull(strstr(d.said, "oone\notwo\t3\n"));
    ck_assert_ptr_nonnull(strstr(d.said, "\nnseen\n"));
    ck_assert_ptr_nonnull(strstr(d.said, "  up\np"));
    ck_assert_ptr_null(strstr(d.said, "up\no"));                         // it was drawn
    ck_assert_msg(strstr(d.said, "\nodemo\t0\n") != NULL, "%s", d.said); // the preset that is there
    close_desk(&d);
}
END_TEST

START_TEST(an_error_has_its_line_and_leaves_the_training_as_it_is)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "local function f()\n  error('no way')\nend\nhr.on('step', print)\nf()", "sidle\n");
    ck_assert_ptr_nonnull(strstr(d.said, "recipe.lua:2: no way\n"));
    ck_assert_ptr_nonnull(strstr(d.said, "e  >    2 |   error('no way')\n"));
    ck_assert_ptr_nonnull(strstr(d.said, "recipe.lua:5: in the main chunk\n"));
    ck_assert_ptr_null(strstr(d.said, "[C]"));
    send(&d, HR_COMMAND_RUN, 0, "", 3);
    look(&d);
    look(&d);
    look(&d);
    look(&d);
    ck_assert_uint_eq(d.steps, 3); // and its callback is gone
    ck_assert_ptr_null(strstr(d.said, "\no"));
    run_file(&d, "nonsense", "recipe.lua:1: ");
    close_desk(&d);
}
END_TEST

START_TEST(a_chunk_is_an_expression_or_statements_and_its_globals_stay)
{
    desk d;
    open_desk(&d, true, "");
    check_typed(&d, "1 + 1", "o2\n");
    check_typed(&d, "x = 20", "");
    check_typed(&d, "x * 2, 'b'", "o40\nob\n");
    check_typed(&d, "for k = 1, 2 do\nprint(k)\nend", "o1\no2\n");
    check_typed(&d, "hr.knobs.batch.size", "o128\n");
    check_typed(&d, "hr.knobs.batch.sise", "knob failed: console 6:1: ");
    check_typed(&d, "x", "o20\n"); // an error of a line is none of the next
    order(&d, HR_GUEST_END, "");
    wait_for(&d, "nthe recipe is ended");
    check_typed(&d, "x", "onil\n");
    close_desk(&d);
}
END_TEST

START_TEST(a_chunk_runs_by_its_own_name_and_a_file_keeps_its_lines)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "function f()\n  error('late')\nend\nhr.on('step', print)", "slistening recipe.lua\n");
    forget(&d);
    order(&d, HR_GUEST_CHUNK, "'first'");
    wait_for(&d, "slistening recipe.lua\n");
    ck_assert_msg(strstr(d.said, "srunning console 1\nofirst\n") != NULL, "%s", d.said);
    for (int k = 0; k < 100; k++) { // more than are kept of what was typed
        forget(&d);
        order(&d, HR_GUEST_CHUNK, "1");
        wait_for(&d, "slistening recipe.lua\n");
    }
    forget(&d);
    order(&d, HR_GUEST_CHUNK, "f()");
    wait_for(&d, "slistening recipe.lua\n");
    ck_assert_msg(strstr(d.said, "e  >    2 |   error('late')\n") != NULL, "%s", d.said);
    close_desk(&d);
}
END_TEST

// As `headroom script -i` does, tests/cli/test_console.c.
START_TEST(values_are_shown_and_chunks_are_read_as_another_console_does)
{
    desk d;
    open_desk(&d, true, "");
    check_typed(&d, "{}", "o  {}\n");
    check_typed(&d, "{c = 2, b = 1, a = {1, 2}, [0] = true}",
                "o  a                          {1, 2}\no  b                          1\n"
                "o  c                          2\no  [0]                        true\n");
    check_typed(&d, "{{b = 1, name = 'x'}, {b = 22, name = 'longer'}}",
                "o  b   name\no  1   x\no  22  longer\n");
    check_typed(&d, "hr.knobs.batch", "o  size                       128\n");
    check_typed(&d, "hr.plot{title = 'up', x = {1, 2}, y = {1, 2}}", "  up\np");
    ck_assert_ptr_null(strstr(d.said, "up\no")); // it was drawn
    check_typed(&d, "\n = 1 + 1", "o2\n");
    check_typed(&d, "setmetatable({}, {__tostring = function() error 'never' end})", "never");
    check_typed(&d, "'on'", "oon\n");
    check_typed(&d, "error({})", "e  >    1 | error({})\n"); // as it was typed
    close_desk(&d);
}
END_TEST

START_TEST(a_chunk_that_is_not_whole_is_known)
{
    static const struct {
        const char *text;
        bool whole;
    } cases[] = {{"1 +", true}, // no beginning of a statement: Lua says what it lacks
                 {"x = 1", true},
                 {"hr.knobs.batch.size", true},
                 {"for k = 1, 2 do", false},
                 {"f(", false},
                 {"x = {", false},
                 {"x = [[", false},
                 {"if x then y()", false},
                 {"end", true},
                 {"= 1 + 1", true},
                 {"= 1 +", false},
                 {"x = = 1", true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ck_assert_msg(lua_script_guest.is_whole(cases[k].text) == cases[k].whole, "%s", cases[k].text);
    }
}
END_TEST

// ---- the training that is there ---------------------------------------------------------------------------------

START_TEST(a_run_is_the_sessions_own_and_turns_its_knobs)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d,
             "hr.on('step', function(e) if e.step == 2 then hr.knobs.batch.size = 64 end end)\n"
             "local r = hr.run{steps = 5}\nprint(r.train.steps, hr.knobs.batch.size)\n"
             "hr.run{steps = 2, optimizer = {kind = 'sgd'}}",
             "slistening recipe.lua\n");
    ck_assert_uint_eq(d.steps, 7);
    ck_assert_ptr_nonnull(strstr(d.said, "o5\t64\n"));
    ck_assert_ptr_nonnull(strstr(d.knobs, "batch.size=64 "));
    ck_assert_ptr_nonnull(strstr(d.knobs, "optimizer.kind=sgd "));
    close_desk(&d);
}
END_TEST

START_TEST(callbacks_stay_and_are_called_by_the_training_that_goes_on)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d,
             "seen, begun, updates = 0, 0, 0\nhr.on('step', function() seen = seen + 1 end)\n"
             "hr.on('step_begin', function() begun = begun + 1 end)\n"
             "hr.on('before_update', function() updates = updates + 1 end)",
             "slistening recipe.lua\n");
    send(&d, HR_COMMAND_RUN, 0, "", 4);
    for (int k = 0; k < 6; k++) {
        look(&d);
    }
    ck_assert_uint_eq(d.steps, 4);
    forget(&d);
    order(&d, HR_GUEST_CHUNK, "seen, begun");
    wait_for(&d, "o4\no4\n");
    order(&d, HR_GUEST_CHUNK, "hr.on('step', nil) hr.on('step_begin', nil) hr.on('before_update', nil)");
    wait_for(&d, "sidle\n");
    close_desk(&d);
}
END_TEST

// Lua's stack is shallow between two steps, shrinks there and grows again as the table of an event is closed.
START_TEST(callbacks_of_every_block_are_called_for_thousands_of_steps)
{
    enum { STEPS = HEADROOM_SANITIZED ? 200 : 2000 };
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "seen = 0\nhr.on('alloc', function(e) seen = seen + 1 end)", "slistening recipe.lua\n");
    send(&d, HR_COMMAND_RUN, 0, "", STEPS);
    for (int k = 0; k < STEPS + 2; k++) {
        look(&d);
    }
    ck_assert_msg(d.steps == STEPS && strstr(d.said, "\ne") == NULL, "%u steps\n%s", d.steps, d.said);
    order(&d, HR_GUEST_CHUNK, "seen > 1000");
    wait_for(&d, "otrue\n");
    close_desk(&d);
}
END_TEST

START_TEST(an_error_of_a_callback_ends_the_recipe_and_not_the_training)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "hr.on('step', function(e)\n  if e.step == 2 then e.losss = e.losss + 1 end\nend)",
             "slistening");
    send(&d, HR_COMMAND_RUN, 0, "", 5);
    wait_for(&d, "sidle\n");
    ck_assert_ptr_nonnull(strstr(d.said, "recipe.lua:2: "));
    for (int k = 0; k < 6; k++) {
        look(&d);
    }
    ck_assert_uint_eq(d.steps, 5);
    close_desk(&d);
}
END_TEST

START_TEST(a_callback_turns_out_of_memory_into_a_run)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d,
             "hr.on('oom', function(o) hr.knobs.batch.size = 32 return true end)\n"
             "hr.knobs.batch.size = 1024",
             "slistening");
    send(&d, HR_COMMAND_RUN, 0, "", 3);
    for (int k = 0; k < 8; k++) {
        look(&d);
    }
    ck_assert_uint_eq(d.steps, 3);
    ck_assert_ptr_nonnull(strstr(d.knobs, "batch.size=32 "));
    close_desk(&d);
}
END_TEST

START_TEST(of_the_persons_turn_and_the_recipes_the_later_holds)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "hr.knobs.batch.size = 64", "sidle\n");
    ck_assert_str_eq(d.knobs, "batch.size=64 ");
    send(&d, HR_COMMAND_KNOB, HR_KNOB_BATCH_SIZE, "32", 0);
    look(&d);
    check_typed(&d, "hr.knobs.batch.size", "o32\n");
    check_typed(&d, "hr.run{steps = 1}.train.steps, hr.knobs.batch.size", "o1\no32\n");
    check_typed(&d, "hr.knobs.batch.size = 16", "");
    ck_assert_str_eq(d.knobs, "batch.size=16 ");
    close_desk(&d);
}
END_TEST

START_TEST(another_model_is_the_recipes_own)
{
    desk d;
    open_desk(&d, true, "");
    run_file(&d,
             "hr.preset 'mlp'\nhr.knobs.device.kind = 'plan'\nhr.run{steps = 3}\n"
             "hr.preset 'demo'\nhr.run{steps = 2}",
             "sidle\n");
    ck_assert_ptr_nonnull(strstr(d.said, "nfrom here on mlp: a training of the recipe's own"));
    ck_assert_uint_eq(d.steps, 2);
    run_file(&d, "hr.run{steps = 2, fresh = true}", "nfrom here on fresh weights: ");
    ck_assert_uint_eq(d.steps, 0);
    run_file(&d, "hr.knobs.device.kind = 'plan' local m = hr.model() hr.model(m) hr.run{steps = 2}",
             "sidle\n");
    ck_assert_msg(strstr(d.said, "nfrom here on a model of its own: ") != NULL, "%s", d.said);
    ck_assert_uint_eq(d.steps, 0);
    close_desk(&d);
}
END_TEST

// What was trained before it is no step of the recipe's, and nothing listens when it is done.
START_TEST(a_recipe_that_ships_counts_its_own_steps)
{
    static const struct {
        const char *file, *says;
    } recipes[] = {{"scripts/recipes/largest_batch.lua", "nstep 200 of 200\no200 steps, peak "},
                   {"scripts/recipes/grow_batch.lua", "oended with batch "},
                   {"scripts/recipes/recover_oom.lua", "otrained 10 steps as batch "},
                   {"scripts/recipes/switch_precision.lua", "omixed_bfloat16   steps to 47 "},
                   {"scripts/recipes/compare_allocators.lua", "odemo: a step of batch 128 under "}};
    desk d;
    open_desk(&d, true, "");
    run_file(&d, "hr.run{steps = 7}", "sidle\n");
    forget(&d);
    order(&d, HR_GUEST_FILE, recipes[_i].file);
    wait_for(&d, "sidle\n");
    ck_assert_msg(strstr(d.said, recipes[_i].says) != NULL, "%s", d.said);
    ck_assert_msg(strstr(d.said, "failed") == NULL, "%s", d.said);
    close_desk(&d);
}
END_TEST

// It has no training: models are opened beside it.
START_TEST(beside_a_recorded_step_lua_plans)
{
    desk d = {.inline_ = true};
    hr_err err = {0};
    static const char step[] = "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n"
                               "0,0,alloc,4096,1024,1024,a/w\n1000,0,free,4096,1024,1024,a/w\n";
    char path[96];
    recipe_make(&d.r);
    recipe_put(&d.r, "step.csv", step, sizeof step - 1);
    (void)snprintf(path, sizeof path, "%s/step.csv", d.r.folder);
    ck_assert_msg(hr_replay_open_preset(path, false, &d.preset, NULL, &err) == HR_OK, "%s", err.sentence);
    const hr_session_options options = {
        .preset = hr_preset_path(d.preset), .knobs = hr_preset_knobs(d.preset), .guest = &lua_script_guest};
    ck_assert_msg(hr_session_start_inline(&options, &d.session, &err) == HR_OK, "%s", err.sentence);
    send(&d, HR_COMMAND_RUN, 0, "", 0);
    look(&d);
    check_typed(&d, "1 + 1", "o2\n");
    check_typed(&d, "hr.plan()", "there is no model before a preset");
    check_typed(&d, "hr.preset 'demo'", "odemo\n");
    check_typed(&d, "hr.plan{device = {kind = 'plan'}}.fits", "otrue\n");
    close_desk(&d);
}
END_TEST

START_TEST(what_may_stand_at_a_cursor_comes_from_the_live_state)
{
    desk d;
    open_desk(&d, true, "");
    check_typed(&d, "quantity = {first = 1, fourth = 4}", "");
    forget(&d);
    order(&d, HR_GUEST_COMPLETE, "7 10\nquantity.f");
    wait_for(&d, "c7 9 ");
    ck_assert_ptr_nonnull(strstr(d.said, "\nc+first\t\nc+fourth\t\n"));
    close_desk(&d);
}
END_TEST

// ---- in a worker ------------------------------------------------------------------------------------------------

START_TEST(a_person_pauses_a_recipes_run_and_its_steps_stay_what_they_were)
{
    desk d;
    open_desk(&d, false, "");
    send(&d, HR_COMMAND_RUN, 0, "", 0);
    run_file(&d, "hr.note 'begins' hr.run{steps = 40} hr.note 'ends'", "nbegins\n");
    for (unsigned from = d.steps; d.steps < from + 5;) {
        look(&d);
    }
    send(&d, HR_COMMAND_PAUSE, 0, "", 0);
    for (unsigned before = UINT32_MAX; before != d.steps;) {
        before = d.steps;
        for (int k = 0; k < 100; k++) {
            look(&d);
        }
    }
    ck_assert_ptr_null(strstr(d.said, "nends\n"));
    order(&d, HR_GUEST_CHUNK, "1");
    wait_for(&d, "ea recipe is at work");
    send(&d, HR_COMMAND_RUN, 0, "", 0);
    wait_for(&d, "nends\n");
    const unsigned done = d.steps;
    while (d.steps < done + 10) { // what ran before goes on
        look(&d);
    }
    close_desk(&d);
}
END_TEST

START_TEST(endless_lua_is_stopped_and_the_worker_lives)
{
    static const char *const endless[] = {
        READY "while true do pcall(function() while true do end end) end",
        READY "local function f() return pcall(f) and f() or f() end f()",
        READY "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do "
              "co() end",
        READY "setmetatable(_G, {__index = function(t, k) return t[k .. 'x'] end}) while true do "
              "pcall(function() return y end) end",
        READY "hr.run{steps = 100000000}",
    };
    desk d;
    open_desk(&d, false, "");
    for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
        run_file(&d, endless[k], "nready\n");
        hr_session_interrupt(d.session);
        wait_for(&d, "sidle\n");
        ck_assert_msg(strstr(d.said, "recipe.lua:3: by Ctrl-C\n") != NULL, "%s\n%s", endless[k], d.said);
    }
    check_typed(&d, "'alive'", "oalive\n");
    close_desk(&d);
}
END_TEST

// Its process goes, or a hook came first; either way with the line.
START_TEST(what_does_not_come_back_gives_way_with_its_line)
{
    desk d;
    hr_session_end end = {0};
    open_desk(&d, false, "");
    run_file(&d, hostile[_i], "nready\n");
    (void)usleep(20000);
    hr_session_interrupt(d.session);
    while (!has_ended(&d, &end) && strstr(d.said, "sidle\n") == NULL) {
        look(&d);
    }
    if (has_ended(&d, &end)) {
        ck_assert_msg(end.exit_code == 3 && strstr(end.sentence, "recipe.lua:3: ") != NULL, "%d %s",
                      end.exit_code, end.sentence);
    } else {
        ck_assert_msg(strstr(d.said, "recipe.lua:3: ") != NULL, "%s", d.said);
    }
    close_desk(&d);
}
END_TEST

// More than goes out at once: the rest follows while it hangs.
START_TEST(what_was_said_before_it_hung_is_all_there)
{
    desk d;
    hr_session_end end = {0};
    open_desk(&d, false, "");
    run_file(&d, "for k = 1, 40 do\n  print('line ' .. k)\nend\nstring.rep('', 1 << 62)", "oline 40\n");
    hr_session_interrupt(d.session);
    while (!has_ended(&d, &end)) {
        look(&d);
    }
    ck_assert_msg(strstr(end.sentence, "recipe.lua:4: ") != NULL, "%s", end.sentence);
    close_desk(&d);
}
END_TEST

// Longer than an instruction may be silent.
START_TEST(a_recipe_that_computes_for_long_is_waited_for)
{
    desk d;
    hr_session_end end = {0};
    open_desk(&d, false, "");
    send(&d, HR_COMMAND_RUN, 0, "", 0);
    while (d.steps == 0) {
        look(&d);
    }
    run_file(&d, "print 'begins'\nstring.rep('', 1 << 62)", "obegins\n");
    for (uint64_t ns = 0; ns < HR_SESSION_SILENT_NS + 500000000; ns += LOOK_US * 1000) {
        look(&d);
        ck_assert_int_eq(hr_session_get_life(d.session, &end), HR_SESSION_LIVE);
    }
    hr_session_interrupt(d.session);
    while (!has_ended(&d, &end)) {
        look(&d);
    }
    close_desk(&d);
}
END_TEST

START_TEST(a_callback_of_a_training_that_goes_on_hangs_no_longer_than_others)
{
    desk d;
    hr_session_end end = {0};
    open_desk(&d, false, "");
    run_file(&d, "hr.on('step', function()\n  hr.note 'ready'\n  string.rep('', 1 << 62)\nend)",
             "slistening");
    send(&d, HR_COMMAND_RUN, 0, "", 5);
    wait_for(&d, "nready\n");
    hr_session_interrupt(d.session);
    while (!has_ended(&d, &end)) {
        look(&d);
    }
    ck_assert_msg(strstr(end.sentence, "recipe.lua:3: ") != NULL, "%s", end.sentence);
    close_desk(&d);
}
END_TEST

START_TEST(a_session_ends_while_a_recipe_works)
{
    desk d;
    open_desk(&d, false, "");
    run_file(&d, READY "hr.run{steps = 100000000}", "nready\n");
    ck_assert_int_eq(hr_session_stop(d.session, NULL), HR_OK);
    d.session = NULL;
    close_desk(&d);
}
END_TEST

// A record that is shown has no engine, and Lua beside it all the same.
START_TEST(a_record_is_shown_to_its_end_beside_lua)
{
    static const char record[] = "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n"
                                 "1,0,alloc,4096,1024,1024,w\n"
                                 "2,0,step,0,0,0,\n"
                                 "3,1,free,4096,1024,1024,w\n";
    static desk d;
    hr_knobs knobs;
    hr_err err = {0};
    hr_session_end end;
    char path[sizeof d.r.folder + 16];
    d = (desk){.inline_ = _i == 0};
    recipe_make(&d.r);
    (void)snprintf(path, sizeof path, "%s/record.csv", d.r.folder);
    recipe_put(&d.r, "record.csv", record, strlen(record));
    hr_replay_knobs_init(&knobs);
    const hr_session_options options = {.preset = path, .knobs = &knobs, .guest = &lua_script_guest};
    const hr_status status = d.inline_ ? hr_session_start_inline(&options, &d.session, &err)
                                       : hr_session_start(&options, &d.session, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    send(&d, HR_COMMAND_RUN, 0, "", 0);
    for (int k = 0; k < 20; k++) {
        look(&d);
    }
    check_typed(&d, "1 + 1", "o2\n");
    ck_assert(!has_ended(&d, &end));
    close_desk(&d);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '@') {
        hr_preset_search_beside(".");
        return hr_session_serve(argv[1] + 1, &lua_script_guest);
    }
    hr_preset_search_beside(".");
    Suite *s = suite_create("lua guest");
    TCase *c = tcase_create("lua guest");
    tcase_add_test(c, what_is_printed_noted_and_drawn_comes_line_by_line);
    tcase_add_test(c, an_error_has_its_line_and_leaves_the_training_as_it_is);
    tcase_add_test(c, a_chunk_is_an_expression_or_statements_and_its_globals_stay);
    tcase_add_test(c, a_chunk_runs_by_its_own_name_and_a_file_keeps_its_lines);
    tcase_add_test(c, values_are_shown_and_chunks_are_read_as_another_console_does);
    tcase_add_test(c, a_chunk_that_is_not_whole_is_known);
    tcase_add_test(c, a_run_is_the_sessions_own_and_turns_its_knobs);
    tcase_add_test(c, callbacks_stay_and_are_called_by_the_training_that_goes_on);
    tcase_add_test(c, callbacks_of_every_block_are_called_for_thousands_of_steps);
    tcase_add_test(c, an_error_of_a_callback_ends_the_recipe_and_not_the_training);
    tcase_add_test(c, a_callback_turns_out_of_memory_into_a_run);
    tcase_add_test(c, of_the_persons_turn_and_the_recipes_the_later_holds);
    tcase_add_test(c, another_model_is_the_recipes_own);
    tcase_add_loop_test(c, a_recipe_that_ships_counts_its_own_steps, 0, HEADROOM_SANITIZED ? 2 : 5);
    tcase_add_test(c, beside_a_recorded_step_lua_plans);
    tcase_add_test(c, what_may_stand_at_a_cursor_comes_from_the_live_state);
    tcase_add_test(c, a_person_pauses_a_recipes_run_and_its_steps_stay_what_they_were);
    tcase_add_test(c, endless_lua_is_stopped_and_the_worker_lives);
    tcase_add_loop_test(c, what_does_not_come_back_gives_way_with_its_line, 0,
                        HEADROOM_SANITIZED ? 4 : (int)(sizeof hostile / sizeof *hostile));
    tcase_add_test(c, what_was_said_before_it_hung_is_all_there);
    tcase_add_test(c, a_recipe_that_computes_for_long_is_waited_for);
    tcase_add_test(c, a_callback_of_a_training_that_goes_on_hangs_no_longer_than_others);
    tcase_add_test(c, a_session_ends_while_a_recipe_works);
    tcase_add_loop_test(c, a_record_is_shown_to_its_end_beside_lua, 0, 2);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
