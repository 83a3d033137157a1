// SPDX-License-Identifier: Apache-2.0
// The engine that outlives hr.run: the next run turns in it what was turned meanwhile and goes on with its weights. hr.save,
// hr.load and hr.eval act on it.
#include <math.h>
#include <string.h>

#include "headroom/save.h"

#include "app/lua/fields.h"
#include "app/lua/script.h"

// ---- calls of the engine --------------------------------------------------------------------------------------------

void script_create_engine(lua_State *L, const hr_knobs *knobs, const hr_engine_options *options,
                          hr_engine **out)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_engine_destroy(*out);
    *out = NULL;
    hr_status status = hr_engine_create(s->preset, knobs, options, out, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
}

void script_command(lua_State *L, hr_engine *engine, const hr_command *command)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_status status = hr_engine_command(engine, command, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
}

// ---- the training ---------------------------------------------------------------------------------------------------

static bool goes_on_rounds(void *context, uint32_t done, uint32_t rounds)
{
    (void)done;
    (void)rounds;
    return !script_is_interrupted(context);
}

static void begin_training(lua_State *L, const hr_knobs *knobs)
{
    script *s = script_of(L);
    const hr_engine_options options = {.sink = script_collect_event,
                                       .sink_context = s,
                                       .goes_on = goes_on_rounds,
                                       .goes_on_context = s,
                                       .before_update = script_tell_update,
                                       .before_update_context = s};
    script_leave_host(s, "fresh weights");
    s->takes_save = true;
    s->epoch_begins = true;
    s->written_steps = 0;
    script_create_engine(L, knobs, &options, &s->training);
}

// What it cannot go on with is how another one can begin.
static void go_on_training(lua_State *L, const hr_knobs *knobs)
{
    script *s = script_of(L);
    hr_err err = {0};
    const char *resume = hr_knob_text(knobs, HR_KNOB_TRAIN_RESUME);
    s->takes_save = strcmp(resume, hr_knob_text(hr_engine_knobs(s->training), HR_KNOB_TRAIN_RESUME)) != 0;
    script_begin_engine(s);
    const hr_status status = script_turn_engine(s->training, knobs, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        if (hr_knobs_validate(knobs, NULL) == HR_OK) {
            hr_err_try(&err, "hr.run{fresh = true, …} begins anew with it");
        }
        (void)script_raise(L, &err);
    }
}

void script_take_training(lua_State *L, const hr_knobs *knobs, bool fresh)
{
    if (fresh || script_of(L)->training == NULL) {
        begin_training(L, knobs);
    } else {
        go_on_training(L, knobs);
    }
}

void script_drop_training(script *s)
{
    script_leave_host(s, NULL);
    script_begin_engine(s);
    hr_engine_destroy(s->training);
    s->training = NULL;
    script_end_engine(s);
}

// ---- hr.save, hr.load -----------------------------------------------------------------------------------------------

// The path at 1 as the engine takes it.
static void path_argument(lua_State *L, bool writes, char path[SCRIPT_PATH_MAX])
{
    const script *s = script_of(L);
    const char *name = luaL_checkstring(L, 1);
    hr_err err = {0};
    const hr_status status =
        writes ? script_writable_path(s, name, path, &err) : script_readable_path(s, name, path, &err);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    if (strlen(path) >= HR_KNOB_TEXT_MAX) {
        (void)script_error(L, "needed a path of at most %d characters", HR_KNOB_TEXT_MAX - 1);
    }
}

int script_save(lua_State *L)
{
    script *s = script_of(L);
    char path[SCRIPT_PATH_MAX];
    hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    path_argument(L, true, path);
    script_check_may_ask(L);
    if (s->training == NULL) {
        hr_err err = {0};
        (void)HR_FAIL(&err, LUA, "there is no training to save before a run");
        hr_err_try(&err, "hr.run{steps = 100} above this line");
        return script_raise(L, &err);
    }
    (void)snprintf(save.text, sizeof save.text, "%.255s", path);
    script_command(L, s->training, &save);
    lua_pushstring(L, path);
    return 1;
}

// Before the training that is there goes for it.
static void check_save(lua_State *L, const char *path)
{
    hr_save_about about;
    hr_err err = {0};
    if (hr_save_look(path, &about, &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
}

int script_load(lua_State *L)
{
    script *s = script_of(L);
    char path[SCRIPT_PATH_MAX], text[HR_KNOB_TEXT_MAX];
    hr_err err = {0};
    path_argument(L, false, path);
    script_check_may_ask(L);
    (void)script_current_knobs(L);
    (void)snprintf(text, sizeof text, "%.255s", path);
    check_save(L, text);
    if (s->engine != NULL || script_is_hosted(s)) {
        hr_command load = {
            .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_TRAIN_RESUME};
        memcpy(load.text, text, sizeof load.text);
        script_command(L, s->training, &load);
    } else {
        script_drop_training(s);
    }
    if (hr_knobs_set(&s->knobs, HR_KNOB_TRAIN_RESUME, text, &err) != HR_OK) {
        return script_raise(L, &err);
    }
    return 0;
}

// ---- hr.eval --------------------------------------------------------------------------------------------------------

static void evaluate(lua_State *L)
{
    script *s = script_of(L);
    hr_engine_now now;
    bool idle = false;
    s->evaluated = false;
    script_command(L, s->training, &(hr_command){.version = HR_EVENT_VERSION, .kind = HR_COMMAND_EVALUATE});
    do {
        script_advance(s, s->training, &idle);
        script_check_stop(L);
        hr_engine_look(s->training, &now);
    } while (!s->evaluated && (now.next == HR_ENGINE_BUILDS || now.next == HR_ENGINE_EVALUATES));
    const hr_engine_state state = hr_engine_get_state(s->training);
    if (!s->evaluated && (state == HR_ENGINE_OOM || state == HR_ENGINE_FAILED)) {
        (void)script_raise(L, hr_engine_error(s->training));
    }
}

static const char *const evaluation_names[] = {"eval_loss", "eval_accuracy", "samples", NULL};

int script_eval(lua_State *L)
{
    script *s = script_of(L);
    script_check_may_ask(L);
    const hr_knobs *knobs = script_current_knobs(L);
    if (s->engine == NULL) {
        s->event_count = 0;
        script_take_training(L, knobs, false);
    }
    evaluate(L);
    if (!s->evaluated) {
        hr_err err = {0};
        (void)HR_FAIL(&err, LUA, "no samples are held out: there is nothing to evaluate");
        hr_err_try(&err, "a preset with data that has a test set, such as hr.preset \"demo\"");
        return script_raise(L, &err);
    }
    const hr_event_step evaluation = s->evaluation;
    if (s->engine == NULL) {
        script_deliver_events(L, false);
    }
    lua_createtable(L, 0, 3);
    script_push_real(L, evaluation.loss);
    lua_setfield(L, -2, "eval_loss");
    script_push_real(L, evaluation.accuracy);
    lua_setfield(L, -2, "eval_accuracy");
    script_push_count(L, evaluation.samples);
    lua_setfield(L, -2, "samples");
    script_guard_names(L, NULL, evaluation_names);
    return 1;
}
