// SPDX-License-Identifier: Apache-2.0
// From the engine's events to the tables that callbacks get.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/lua/events.h"
#include "app/lua/fields.h"
#include "app/lua/script.h"

enum { EVENTS_AT_FIRST = 64 };

// ---- collecting, on the engine's stack ------------------------------------------------------------------------------

static bool has_room(script *s)
{
    if (s->event_count < s->event_room) {
        return true;
    }
    const unsigned room = s->event_room == 0 ? EVENTS_AT_FIRST : 2 * s->event_room;
    hr_event *more = realloc(s->events, room * sizeof *more);
    if (more == NULL) {
        s->lost_events = true;
        return false;
    }
    s->events = more;
    s->event_room = room;
    return true;
}

static bool is_wanted(const script *s, const hr_event *event)
{
    switch (event->kind) {
    case HR_EVENT_ALLOC:
        return script_listens(s, SCRIPT_EVENT_ALLOC) && event->u.memory.requested_bytes >= s->alloc_above;
    case HR_EVENT_BUILD:
        return script_listens(s, SCRIPT_EVENT_REBUILD);
    case HR_EVENT_SAVED:
        return script_listens(s, SCRIPT_EVENT_SAVE);
    case HR_EVENT_SCALE:
    case HR_EVENT_STEP:
    case HR_EVENT_EPOCH:
    case HR_EVENT_EVAL:
        return true;
    default:
        return false;
    }
}

// Of the run's own save, not of one that hr.save wrote elsewhere.
static bool is_kept(const script *s, const hr_event *event)
{
    const char *text = event->u.note.text; // cut where the path is longer
    return event->kind == HR_EVENT_SAVED &&
           strncmp(text, hr_knob_text(hr_engine_knobs(s->training), HR_KNOB_TRAIN_SAVE),
                   sizeof event->u.note.text - 1) == 0;
}

void script_collect_event(void *context, const hr_event *event)
{
    script *s = context;
    s->trained = s->trained || event->kind == HR_EVENT_STEP;
    s->saved_steps = is_kept(s, event) ? event->u.note.count : s->saved_steps;
    s->written_steps = event->kind == HR_EVENT_SAVED ? event->u.note.count : s->written_steps;
    s->built = s->built || event->kind == HR_EVENT_BUILD;
    if (event->kind == HR_EVENT_EVAL) {
        s->evaluated = true;
        s->evaluation = event->u.step;
    }
    if (is_wanted(s, event) && has_room(s)) {
        s->events[s->event_count++] = *event;
    }
}

// ---- the table ------------------------------------------------------------------------------------------------------

static void set_real(lua_State *L, const char *name, double value)
{
    if (isfinite(value)) {
        lua_pushnumber(L, value);
        lua_setfield(L, -2, name);
    }
}

static void set_integer(lua_State *L, const char *name, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static void set_bytes(lua_State *L, const char *name, uint64_t bytes)
{
    script_push_bytes_or_nil(L, bytes);
    lua_setfield(L, -2, name);
}

// nil where no engine is.
static void push_now(lua_State *L, const char *name)
{
    const script *s = script_of(L);
    const hr_engine *engine = s->engine != NULL ? s->engine : s->training;
    hr_engine_now now;
    if (engine == NULL) {
        lua_pushnil(L);
        return;
    }
    hr_engine_look(engine, &now);
    if (strcmp(name, "by_category") == 0) {
        script_push_by_category(L, now.by_category);
    } else if (strcmp(name, "steps_per_epoch") == 0) {
        script_push_count(L, now.epoch_steps);
    } else if (strcmp(name, "in_use_bytes") == 0) {
        script_push_bytes_or_nil(L, now.in_use_bytes);
    } else if (strcmp(name, "pool_bytes") == 0) {
        script_push_bytes_or_nil(L, now.pool_bytes);
    } else if (strcmp(name, "largest_free_bytes") == 0) {
        script_push_bytes_or_nil(L, now.largest_free_bytes);
    } else {
        const double value = strcmp(name, "learning_rate") == 0 ? now.learning_rate
                             : strcmp(name, "loss_scale") == 0  ? now.loss_scale
                                                                : now.fragmentation;
        script_push_real(L, value);
    }
}

static bool has_field(const lua_script_field *fields, const char *name)
{
    while (fields->name != NULL && strcmp(fields->name, name) != 0) {
        fields++;
    }
    return fields->name != NULL;
}

static int raise_unknown_field(lua_State *L, script_event event, const char *name)
{
    enum { NAMES_MAX = 32 };
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const lua_script_field *f = script_event_rows[event].fields; f->name != NULL; f++) {
        names[count++] = f->name;
    }
    for (const lua_script_field *f = script_now_fields; f->name != NULL; f++) {
        names[count++] = f->name;
    }
    char what[96];
    (void)snprintf(what, sizeof what, "the event %s has no field '%%s'", script_event_rows[event].name);
    return script_raise_unknown(L, what, name, names, count);
}

// Of the step under way.
static void push_norm(lua_State *L)
{
    script *s = script_of(L);
    hr_err err = {0};
    double norm = 0;
    script_begin_engine(s);
    const hr_status status = hr_engine_gradient_norm(s->engine, &norm, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    script_push_real(L, norm);
}

// __index of an event's table: what does not apply is nil, what is of this moment is looked up while it lasts.
static int get_missing(lua_State *L)
{
    const script_event event = (script_event)lua_tointeger(L, lua_upvalueindex(1));
    const bool lasts = lua_toboolean(L, lua_upvalueindex(2));
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    if (event == SCRIPT_EVENT_BEFORE_UPDATE && lasts && name != NULL && strcmp(name, "gradient_norm") == 0) {
        push_norm(L);
        return 1;
    }
    if (name == NULL || has_field(script_event_rows[event].fields, name)) {
        lua_pushnil(L);
        return 1;
    }
    if (!has_field(script_now_fields, name)) {
        return raise_unknown_field(L, event, name);
    }
    if (lasts) {
        push_now(L, name);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

static void guard(lua_State *L, script_event event, bool lasts);

// __close of an event's table, which is closed when its handlers are done, also by an error.
static int end_moment(lua_State *L)
{
    lua_settop(L, 1);
    guard(L, (script_event)lua_tointeger(L, lua_upvalueindex(1)), false);
    return 0;
}

// Of the table on top of the stack. Two of them for each event, in the registry.
static void guard(lua_State *L, script_event event, bool lasts)
{
    static const char keys[SCRIPT_EVENT_COUNT][2];
    if (script_push_guard(L, &keys[event][lasts], "hr.event")) {
        lua_pushinteger(L, event);
        lua_pushcclosure(L, end_moment, 1);
        lua_setfield(L, -2, "__close");
        lua_pushinteger(L, event);
        lua_pushboolean(L, lasts);
        lua_pushcclosure(L, get_missing, 2);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
}

// The recipe may keep the table: what is of the moment of its event is in it no more.
static void call(lua_State *L, script_event event, uint64_t bytes)
{
    guard(L, event, true);
    lua_toclose(L, -1);
    lua_pushvalue(L, -1);
    (void)script_call_handlers(L, event, bytes);
    lua_closeslot(L, -1); // lua_pop alone, in Lua 5.4.4, goes on in the old stack when the close moved it
    lua_pop(L, 1);
}

// ---- one event ------------------------------------------------------------------------------------------------------

static void deliver_step(lua_State *L, const hr_event *event)
{
    const hr_event_step *step = &event->u.step;
    const double seconds = (double)step->duration_ns * 1e-9;
    if (!script_listens(script_of(L), SCRIPT_EVENT_STEP)) {
        return;
    }
    lua_createtable(L, 0, 8);
    set_integer(L, "step", event->step);
    set_real(L, "loss", step->loss);
    set_integer(L, "samples", step->samples);
    set_real(L, "seconds", seconds);
    set_real(L, "wait_seconds", (double)step->wait_ns * 1e-9);
    set_real(L, "examples_per_second", (double)step->samples / seconds);
    set_bytes(L, "peak_in_use_bytes", step->peak_in_use_bytes);
    set_bytes(L, "floor_in_use_bytes", step->floor_in_use_bytes);
    set_real(L, "gradient_norm", script_of(L)->gradient_norm);
    call(L, SCRIPT_EVENT_STEP, 0);
}

static void deliver_nonfinite(lua_State *L, uint32_t step, double loss, bool skipped)
{
    if (script_listens(script_of(L), SCRIPT_EVENT_NONFINITE)) {
        lua_createtable(L, 0, 3);
        set_integer(L, "step", step);
        lua_pushnumber(L, loss);
        lua_setfield(L, -2, "loss");
        lua_pushboolean(L, skipped);
        lua_setfield(L, -2, "skipped");
        call(L, SCRIPT_EVENT_NONFINITE, 0);
    }
}

static void deliver_scale(lua_State *L, const hr_event *event)
{
    const script *s = script_of(L);
    if (script_listens(s, SCRIPT_EVENT_SCALE)) {
        lua_createtable(L, 0, 3);
        set_integer(L, "step", event->step);
        set_real(L, "loss_scale", event->u.scale.scale);
        set_integer(L, "skipped_steps", event->u.scale.skipped);
        call(L, SCRIPT_EVENT_SCALE, 0);
    }
    if (event->u.scale.happened == 0) {
        deliver_nonfinite(L, event->step, hr_engine_loss(s->engine), true);
    }
}

// `evaluation` is NULL when none followed the epoch.
static void deliver_epoch(lua_State *L, script *s, const hr_event_step *evaluation)
{
    if (!s->epoch_ended) {
        return;
    }
    s->epoch_ended = false;
    s->epoch_begins = true;
    s->epochs_ended++;
    if (!script_listens(s, SCRIPT_EVENT_EPOCH)) {
        return;
    }
    lua_createtable(L, 0, 5);
    set_integer(L, "epoch", s->epoch.u.note.count);
    set_integer(L, "step", s->epoch.step);
    set_real(L, "loss", hr_engine_loss(s->engine));
    if (evaluation != NULL) {
        set_real(L, "eval_loss", evaluation->loss);
        set_real(L, "eval_accuracy", evaluation->accuracy);
    }
    call(L, SCRIPT_EVENT_EPOCH, 0);
}

static void deliver_evaluation(lua_State *L, script *s, const hr_event *event)
{
    if (script_listens(s, SCRIPT_EVENT_EVALUATION)) {
        lua_createtable(L, 0, 4);
        set_integer(L, "step", event->step);
        set_real(L, "eval_loss", event->u.step.loss);
        set_real(L, "eval_accuracy", event->u.step.accuracy);
        set_integer(L, "samples", event->u.step.samples);
        call(L, SCRIPT_EVENT_EVALUATION, 0);
    }
    if (s->engine != NULL) {
        deliver_epoch(L, s, &event->u.step);
    }
}

static void deliver_alloc(lua_State *L, const hr_event *event)
{
    const hr_event_memory *m = &event->u.memory;
    lua_createtable(L, 0, 7);
    set_integer(L, "step", event->step);
    set_bytes(L, "requested_bytes", m->requested_bytes);
    set_bytes(L, "allocated_bytes", m->allocated_bytes);
    set_bytes(L, "in_use_bytes", m->in_use_bytes);
    set_bytes(L, "pool_bytes", m->pool_bytes);
    lua_pushstring(L, hr_category_name((hr_category)event->category));
    lua_setfield(L, -2, "category");
    lua_pushstring(L, hr_phase_name((hr_phase)event->phase));
    lua_setfield(L, -2, "phase");
    call(L, SCRIPT_EVENT_ALLOC, m->requested_bytes);
}

// Of BUILD and SAVED.
static void deliver_note(lua_State *L, const hr_event *event)
{
    lua_createtable(L, 0, 2);
    set_integer(L, "step", event->step);
    if (event->kind == HR_EVENT_BUILD) {
        set_integer(L, "instructions", event->u.note.count);
        call(L, SCRIPT_EVENT_REBUILD, 0);
    } else {
        lua_pushstring(L, event->u.note.text);
        lua_setfield(L, -2, "path");
        call(L, SCRIPT_EVENT_SAVE, 0);
    }
}

static void deliver(lua_State *L, script *s, const hr_event *event)
{
    switch (event->kind) {
    case HR_EVENT_ALLOC:
        deliver_alloc(L, event);
        break;
    case HR_EVENT_BUILD:
    case HR_EVENT_SAVED:
        deliver_note(L, event);
        break;
    case HR_EVENT_SCALE:
        deliver_scale(L, event);
        break;
    case HR_EVENT_EPOCH:
        s->epoch = *event;
        s->epoch_ended = true;
        break;
    case HR_EVENT_EVAL:
        deliver_evaluation(L, s, event);
        break;
    default:
        deliver_epoch(L, s, NULL);
        deliver_step(L, event);
        if (!isfinite(event->u.step.loss) &&
            !hr_knob_is(hr_engine_knobs(s->engine), HR_KNOB_DEVICE_KIND, "plan")) {
            deliver_nonfinite(L, event->step, event->u.step.loss, false);
        }
    }
}

// ---- between two advances -------------------------------------------------------------------------------------------

void script_deliver_events(lua_State *L, bool last)
{
    script *s = script_of(L);
    if (s->lost_events) {
        hr_err err = {0};
        s->lost_events = false;
        (void)HR_FAIL(&err, NOMEM, "no host memory for the events of a step");
        (void)script_raise(L, &err);
    }
    for (unsigned k = 0; k < s->event_count; k++) { // a callback that evaluates adds some
        const hr_event event = s->events[k];
        deliver(L, s, &event);
    }
    s->event_count = 0;
    if (last && s->engine != NULL) {
        deliver_epoch(L, s, NULL);
    }
}

bool script_deliver_oom(lua_State *L, const hr_report_oom *oom)
{
    script_push_oom(L, oom);
    return script_call_handlers(L, SCRIPT_EVENT_OOM, 0);
}

static void deliver_number(lua_State *L, script_event event, uint64_t step)
{
    if (script_listens(script_of(L), event)) {
        lua_createtable(L, 0, 2);
        set_integer(L, "step", step);
        if (event == SCRIPT_EVENT_TRAIN_END) {
            set_real(L, "loss", hr_engine_loss(script_of(L)->engine));
        }
        call(L, event, 0);
    }
}

void script_deliver_train(lua_State *L, bool end)
{
    deliver_number(L, end ? SCRIPT_EVENT_TRAIN_END : SCRIPT_EVENT_TRAIN_BEGIN,
                   hr_engine_steps(script_of(L)->engine));
}

void script_deliver_begins(lua_State *L)
{
    script *s = script_of(L);
    hr_engine_now now;
    hr_engine_look(s->engine, &now);
    const uint64_t step = hr_engine_steps(s->engine) + 1;
    if (now.next != HR_ENGINE_TRAINS || s->begun_step == step) { // a knob that is turned here builds anew
        return;
    }
    s->begun_step = step;
    const bool epoch_begins = s->epoch_begins;
    s->epoch_begins = false;
    if (epoch_begins) {
        deliver_number(L, SCRIPT_EVENT_EPOCH_BEGIN, step - 1);
    }
    deliver_number(L, SCRIPT_EVENT_STEP_BEGIN, step);
}

// ---- within a step --------------------------------------------------------------------------------------------------

static int call_before_update(lua_State *L)
{
    deliver_number(L, SCRIPT_EVENT_BEFORE_UPDATE, hr_engine_steps(script_of(L)->engine) + 1);
    return 0;
}

// Lua leaves by longjmp, which must not cross the engine: what is raised is raised again when the step is over.
void script_tell_update(void *context)
{
    script *s = context;
    lua_State *L = s->driving;
    hr_err err = {0};
    s->gradient_norm = (double)NAN;
    if (s->wants_norm && hr_engine_gradient_norm(s->engine, &s->gradient_norm, &err) != HR_OK) {
        s->gradient_norm = (double)NAN; // a device that fails says so in the step itself
    }
    if (!script_listens(s, SCRIPT_EVENT_BEFORE_UPDATE) || s->raised_in_step || !lua_checkstack(L, 4)) {
        return;
    }
    const int top = lua_gettop(L);
    script_end_engine(s);
    s->in_step = true;
    lua_pushcfunction(L, script_take_trace);
    lua_pushcfunction(L, call_before_update);
    if (lua_pcall(L, 0, 0, top + 1) != LUA_OK) {
        s->raised_in_step = true;
        (void)lua_rawgetp(L, LUA_REGISTRYINDEX, &s->raised_in_step);
        lua_insert(L, -2);
        (void)lua_setiuservalue(L, -2, 1); // which needs no memory
    }
    lua_settop(L, top);
    s->in_step = false;
    script_begin_engine(s);
}

void script_raise_from_step(lua_State *L)
{
    script *s = script_of(L);
    if (s->raised_in_step) {
        s->raised_in_step = false;
        (void)lua_rawgetp(L, LUA_REGISTRYINDEX, &s->raised_in_step);
        (void)lua_getiuservalue(L, -1, 1);
        (void)lua_error(L);
    }
}
