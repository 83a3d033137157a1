// SPDX-License-Identifier: Apache-2.0
// hr.plan and hr.run: a recipe's calls of the engine.
#include <math.h>
#include <string.h>

#include "app/lua/script.h"

#define ENDLESS_STEPS (UINT64_C(1) << 40)

enum { PLAN_STEPS = 3 }; // with every slot allocated at build a heap repeats at the second step boundary

// ---- options --------------------------------------------------------------------------------------------------------

static uint64_t count_option(lua_State *L, int index, const char *name, uint64_t otherwise)
{
    if (lua_getfield(L, index, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return otherwise;
    }
    int whole = 0;
    lua_Integer count = lua_tointegerx(L, -1, &whole);
    if (!whole || count < 1) {
        (void)script_error(L, "%s needs a whole number from 1, had %s", name, luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return (uint64_t)count;
}

uint64_t script_steps_option(lua_State *L, int index, uint64_t otherwise)
{
    return count_option(L, index, "steps", otherwise);
}

void script_read_options(lua_State *L, const char *function, hr_knobs *knobs)
{
    script *s = script_of(L);
    hr_err err = {0};
    if (lua_isnone(L, 1)) {
        lua_newtable(L);
    }
    if (!lua_istable(L, 1)) {
        (void)script_error(L, "hr.%s takes a table such as {steps = 10}, had a %s", function,
                           luaL_typename(L, 1));
    }
    lua_settop(L, 1);
    if (s->preset == NULL) {
        (void)HR_FAIL(&err, LUA, "there is no model before a preset");
        hr_err_try(&err, "hr.preset \"demo\" above this line");
        (void)script_raise(L, &err);
    }
    *knobs = s->engine != NULL ? *hr_engine_knobs(s->engine) : s->knobs;
    script_apply_overrides(L, 1, function, knobs);
}

static void command(lua_State *L, hr_engine *engine, hr_command_kind kind, uint64_t count)
{
    script_command(L, engine,
                   &(hr_command){.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count});
}

void script_take_report(lua_State *L, hr_engine *engine)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_report_deinit(&s->report);
    hr_status status = hr_engine_report(engine, &s->report, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
}

// ---- hr.plan --------------------------------------------------------------------------------------------------------

int script_plan(lua_State *L)
{
    script *s = script_of(L);
    hr_knobs knobs;
    bool idle = false;
    hr_engine_options options = {.plan_only = true};
    script_read_options(L, "plan", &knobs);
    const uint64_t steps =
        script_steps_option(L, 1, PLAN_STEPS); // by the recipe's own __index, which may plan
    script_create_engine(L, &knobs, &options, &s->planner);
    command(L, s->planner, HR_COMMAND_RUN, steps);
    while (!idle) {
        script_begin_engine(s);
        hr_engine_advance(s->planner, &idle);
        script_end_engine(s);
        script_check_stop(L);
    }
    if (hr_engine_get_state(s->planner) == HR_ENGINE_FAILED) {
        return script_raise(L, hr_engine_error(s->planner));
    }
    script_take_report(L, s->planner);
    script_push_report(L, &s->report);
    return 1;
}

// ---- hr.run ---------------------------------------------------------------------------------------------------------

int script_end_run(lua_State *L)
{
    script *s = script_of(L);
    if (s->engine == NULL) {
        return script_error(L, "hr.stop ends a run from within its callbacks, and nothing runs");
    }
    s->wants_stop = true;
    return 0;
}

// Out of memory: true when a callback turned a knob so that the run can go on. Raises unless `may_end`.
static bool survives_oom(lua_State *L, bool may_end)
{
    script *s = script_of(L);
    script_take_report(L, s->engine);
    if (script_deliver_oom(L, &s->report.oom)) {
        if (hr_engine_get_state(s->engine) == HR_ENGINE_RUNNING) {
            return true;
        }
        (void)script_error(
            L, "an oom callback returned true but turned no knob: it would run out of memory again");
    }
    if (!may_end) {
        (void)script_raise(L, hr_engine_error(s->engine));
    }
    return false;
}

// Steps count from where the save ends that the first build read, which the engine counts from its beginning.
static void count_from_save(lua_State *L)
{
    script *s = script_of(L);
    if (s->built && s->wanted_steps > 0) {
        command(L, s->engine, HR_COMMAND_RUN, s->wanted_steps);
        s->last_step = script_is_hosted(s) ? hr_engine_steps(s->engine) + s->wanted_steps : UINT64_MAX;
        s->wanted_steps = 0;
    }
}

// Everything between two advances: callbacks, stops, an out-of-memory. Whether the run goes on.
static bool goes_on(lua_State *L, bool idle, bool until_oom)
{
    script *s = script_of(L);
    script_raise_from_step(L);
    script_deliver_events(L, idle);
    count_from_save(L);
    hr_engine_state state = hr_engine_get_state(s->engine);
    if (state == HR_ENGINE_OOM) {
        return survives_oom(L, until_oom);
    }
    if (state == HR_ENGINE_FAILED) {
        (void)script_raise(L, hr_engine_error(s->engine));
    }
    s->wants_stop = s->wants_stop || (s->wanted_epochs > 0 && s->epochs_ended >= s->wanted_epochs);
    if (s->wants_stop || script_is_interrupted(s)) {
        command(L, s->engine, HR_COMMAND_STOP, 0);
        script_check_stop(L);
        return false;
    }
    state = hr_engine_get_state(s->engine);
    if (hr_engine_steps(s->engine) >= s->last_step) { // also where the person went on without end
        return false;
    }
    return state == HR_ENGINE_RUNNING || script_waits_for_person(s, state);
}

// Stack: options. Drives the engine to the end of the run and pushes the result.
static int drive(lua_State *L)
{
    script *s = script_of(L);
    (void)lua_getfield(L, 1, "until_oom");
    bool until_oom = lua_toboolean(L, -1);
    bool idle = false;
    lua_settop(L, 1);
    script_deliver_train(L, false);
    do {
        script_deliver_begins(L);
        script_advance(s, s->engine, &idle);
    } while (goes_on(L, idle, until_oom));
    script_deliver_events(L, true); // a stop may have saved
    script_deliver_train(L, true);
    script_take_report(L, s->engine);
    script_push_report(L, &s->report);
    return 1;
}

// Epochs end where data is read.
static void check_epochs(lua_State *L, const hr_knobs *knobs)
{
    const bool plans = hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "plan");
    hr_err err = {0};
    if (plans || hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIDENT, "on")) {
        (void)HR_FAIL(&err, LUA, "hr.run{epochs = N} needs data that is read, and %s reads none",
                      plans ? "device.kind=plan" : "pipeline.resident=on");
        hr_err_try(&err, "hr.run{steps = 100}");
        (void)script_raise(L, &err);
    }
}

static uint64_t steps_to_run(lua_State *L, const hr_knobs *knobs)
{
    script *s = script_of(L);
    s->wanted_epochs = count_option(L, 1, "epochs", 0);
    s->epochs_ended = 0;
    if (s->wanted_epochs > 0) {
        check_epochs(L, knobs);
        return script_steps_option(L, 1, ENDLESS_STEPS);
    }
    (void)lua_getfield(L, 1, "until_oom");
    bool endless = lua_toboolean(L, -1);
    lua_pop(L, 1);
    uint64_t steps = script_steps_option(L, 1, (uint64_t)hr_knob_int(knobs, HR_KNOB_TRAIN_STEPS));
    if (steps == 0 && !endless) {
        hr_err err = {0};
        (void)HR_FAIL(&err, LUA, "hr.run needs a number of steps, and train.steps is 0");
        hr_err_try(&err, "hr.run{steps = 100}");
        (void)script_raise(L, &err);
    }
    return steps;
}

// A run that ends by an error, a stop or a limit keeps its steps as one that was interrupted, and the last line says so.
static void keep(script *s)
{
    const hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    const char *path = hr_knob_text(hr_engine_knobs(s->engine), HR_KNOB_TRAIN_SAVE);
    const unsigned long long steps = hr_engine_steps(s->engine);
    const bool computes = !hr_knob_is(hr_engine_knobs(s->engine), HR_KNOB_DEVICE_KIND, "plan");
    hr_err err = {0};
    if (!s->trained || !computes) {
        return;
    }
    if (path[0] == '\0') {
        (void)snprintf(s->kept, sizeof s->kept,
                       "headroom: ended after step %llu, nothing saved: train.save is not set.\n", steps);
    } else if (hr_engine_command(s->engine, &save, &err) != HR_OK) {
        (void)snprintf(s->kept, sizeof s->kept, "headroom: ended after step %llu, nothing saved: %s.\n",
                       steps, err.sentence);
    } else if (s->saved_steps == steps) {
        (void)snprintf(s->kept, sizeof s->kept, "headroom: ended after step %llu, saved to %s.\n", steps,
                       path);
    } else {
        (void)snprintf(
            s->kept, sizeof s->kept,
            "headroom: ended after step %llu, not saved: the step that broke off had begun to change the "
            "weights.\n",
            steps);
    }
}

static void reset_run(lua_State *L)
{
    script *s = script_of(L);
    s->event_count = 0;
    s->saved_steps = 0;
    s->kept[0] = '\0';
    s->trained = s->wants_stop = s->epoch_ended = s->built = s->raised_in_step = false;
    s->begun_step = 0;
    s->gradient_norm = (double)NAN;
    s->driving = L;
}

static bool flag_option(lua_State *L, const char *name)
{
    (void)lua_getfield(L, 1, name);
    const bool given = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return given;
}

// A save that will be read first says where it ends only then.
static bool resumes(const script *s)
{
    return s->takes_save && hr_knob_text(hr_engine_knobs(s->training), HR_KNOB_TRAIN_RESUME)[0] != '\0';
}

// The training stays; what broke off is paused, so that nothing but the next run goes on with it.
static void end_run(script *s, bool fine)
{
    const hr_command pause = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_PAUSE};
    script_begin_engine(s);
    if (!fine && !script_is_hosted(s)) { // that one goes on
        keep(s);
    }
    const hr_status paused = hr_engine_command(s->engine, &pause, NULL); // which is never refused
    (void)paused;
    s->engine = NULL;
    s->driving = NULL;
    script_end_engine(s);
}

int script_run(lua_State *L)
{
    script *s = script_of(L);
    hr_knobs knobs;
    if (s->engine != NULL) {
        return script_error(L, "hr.run within a callback of hr.run: one run at a time");
    }
    script_read_options(L, "run", &knobs);
    const bool fresh = flag_option(L, "fresh");
    if (fresh) { // a save that was loaded is no beginning, one that the options name is
        knobs = s->knobs;
        knobs.value[HR_KNOB_TRAIN_RESUME] = (hr_knob_value){0};
        script_apply_overrides(L, 1, "run", &knobs);
    }
    const uint64_t steps = steps_to_run(L, &knobs);
    const bool counts = script_steps_option(L, 1, 0) > 0;
    reset_run(L);
    script_take_training(L, &knobs, fresh);
    if (fresh) {
        s->knobs.value[HR_KNOB_TRAIN_RESUME] = (hr_knob_value){0};
    }
    s->wanted_steps = counts && resumes(s) ? steps : 0;
    s->last_step = script_is_hosted(s) && steps > 0 ? hr_engine_steps(s->training) + steps : UINT64_MAX;
    command(L, s->training, HR_COMMAND_RUN, steps);
    s->engine = s->training;
    lua_pushcfunction(L, script_take_trace);
    lua_pushcfunction(L, drive);
    lua_pushvalue(L, 1);
    const int status = lua_pcall(L, 1, 1, 2);
    end_run(s, status == LUA_OK);
    return status == LUA_OK ? 1 : lua_error(L);
}
