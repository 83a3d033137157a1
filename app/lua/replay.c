// SPDX-License-Identifier: Apache-2.0
// hr.replay: a trace on allocators of choice, as a table with the names of "headroom.replay/1".
#include "headroom/replay.h"

#include <string.h>

#include "app/lua/fields.h"
#include "app/lua/script.h"

enum { HOLES_MAX = 8, KIND_MAX = 32 };

// ---- tables ---------------------------------------------------------------------------------------------------------

static const hr_field about_fields[] = {
    HR_FIELD(hr_replay_about, rows, "rows", COUNT),
    HR_FIELD(hr_replay_about, events, "events", COUNT),
    HR_FIELD(hr_replay_about, allocations, "allocations", COUNT),
    HR_FIELD(hr_replay_about, steps, "steps", COUNT),
    HR_FIELD(hr_replay_about, blocks, "blocks", COUNT),
    HR_FIELD(hr_replay_about, device_count, "devices", COUNT32),
    HR_FIELD(hr_replay_about, device, "device", COUNT32),
    HR_FIELD(hr_replay_about, lost_frees, "lost_frees", COUNT),
    HR_FIELD(hr_replay_about, refused, "refused", COUNT),
    HR_FIELD(hr_replay_about, peak_requested_bytes, "peak_requested_bytes", BYTES),
    HR_FIELD_END,
};
static const hr_field recorded_fields[] = {
    HR_FIELD(hr_replay_about, recorded.peak_pool_bytes, "peak_pool_bytes", BYTES),
    HR_FIELD(hr_replay_about, recorded.limit_bytes, "limit_bytes", BYTES),
    HR_FIELD(hr_replay_about, recorded.in_use_bytes, "in_use_bytes", BYTES),
    HR_FIELD(hr_replay_about, recorded.largest_free_bytes, "largest_free_bytes", BYTES),
    HR_FIELD(hr_replay_about, recorded.fragmentation, "fragmentation", REAL),
    HR_FIELD_END,
};
static const hr_field memory_fields[] = {
    HR_FIELD(hr_replay_memory, limit_bytes, "limit_bytes", BYTES),
    HR_FIELD(hr_replay_memory, peak_pool_bytes, "peak_pool_bytes", BYTES),
    HR_FIELD(hr_replay_memory, end_pool_bytes, "end_pool_bytes", BYTES),
    HR_FIELD(hr_replay_memory, peak_in_use_bytes, "peak_in_use_bytes", BYTES),
    HR_FIELD(hr_replay_memory, peak_requested_bytes, "peak_requested_bytes", BYTES),
    HR_FIELD(hr_replay_memory, waste_bytes, "waste_bytes", BYTES),
    HR_FIELD(hr_replay_memory, largest_free_bytes, "largest_free_bytes", BYTES),
    HR_FIELD(hr_replay_memory, fragmentation, "fragmentation", REAL),
    HR_FIELD(hr_replay_memory, allocations, "allocations", COUNT),
    HR_FIELD_END,
};
static const hr_field failure_fields[] = {
    HR_FIELD(hr_replay_failure, event, "event", COUNT),
    HR_FIELD(hr_replay_failure, step, "step", COUNT),
    HR_FIELD(hr_replay_failure, device, "device", COUNT32),
    HR_FIELD(hr_replay_failure, name, "name", TEXT),
    HR_FIELD(hr_replay_failure, requested_bytes, "requested_bytes", BYTES),
    HR_FIELD(hr_replay_failure, free_bytes, "free_bytes", BYTES),
    HR_FIELD(hr_replay_failure, largest_free_bytes, "largest_free_bytes", BYTES),
    HR_FIELD_END,
};
static const hr_field result_fields[] = {
    HR_FIELD(hr_replay_result, name, "name", TEXT),
    HR_FIELD(hr_replay_result, failures_total, "failures_total", COUNT),
    HR_FIELD(hr_replay_result, served, "served", COUNT),
    HR_FIELD_END,
};

// Why the heap refused what it refused, into the table on top of the stack.
static void set_cause(lua_State *L, const hr_heap *heap)
{
    char sentence[SCRIPT_TEXT_MAX];
    hr_oom_cause cause = heap == NULL ? HR_OOM_NONE : hr_heap_diagnose(heap, sentence, sizeof sentence);
    if (cause != HR_OOM_NONE) {
        lua_pushstring(L, hr_oom_cause_name(cause));
        lua_setfield(L, -2, "cause");
        lua_pushstring(L, sentence);
        lua_setfield(L, -2, "sentence");
    }
}

// Beside the rows of each table.
static const char *const cause_names[] = {"cause", "sentence", NULL};
static const char *const trace_names[] = {"file", "format", "recorded", NULL};
static const char *const memory_names[] = {"at_peak", NULL};
static const char *const pin_names[] = {"name", NULL};
static const char *const result_names[] = {"memory", "devices",  "failures",   "holes",
                                           "cause",  "sentence", "statistics", NULL};
static const char *const replay_names[] = {"trace", "allocators", NULL};

static void push_trace(lua_State *L, const char *name, const hr_replay *replay)
{
    const hr_replay_about *about = hr_replay_get_about(replay);
    lua_newtable(L);
    script_set_fields(L, about_fields, about, NULL);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "file");
    lua_pushstring(L, about->format);
    lua_setfield(L, -2, "format");
    lua_newtable(L);
    script_set_fields(L, recorded_fields, about, NULL);
    set_cause(L, hr_replay_recorded_heap(replay));
    script_guard_names(L, recorded_fields, cause_names);
    lua_setfield(L, -2, "recorded");
    script_guard_names(L, about_fields, trace_names);
}

// Fields `memory` and, where there are several, `devices` of the table on top of the stack.
static void set_memory(lua_State *L, const hr_replay_result *r)
{
    lua_newtable(L);
    script_set_fields(L, memory_fields, &r->memory, NULL);
    lua_newtable(L);
    script_push_count(L, r->memory.peak_event);
    lua_setfield(L, -2, "event");
    lua_setfield(L, -2, "at_peak");
    script_guard_names(L, memory_fields, memory_names);
    lua_setfield(L, -2, "memory");
    if (r->device_count > 1) {
        script_set_list(L, "devices", memory_fields, r->devices, sizeof *r->devices, r->device_count);
    }
}

static const hr_field pin_fields[] = {
    HR_FIELD(hr_heap_pin, bytes, "bytes", BYTES),
    HR_FIELD(hr_heap_pin, joined_bytes, "joined_bytes", BYTES),
    HR_FIELD(hr_heap_pin, age, "age", COUNT),
    HR_FIELD_END,
};

static void set_pin(lua_State *L, const char *key, const hr_heap_pin *pin)
{
    if (pin->name == NULL) {
        return;
    }
    lua_newtable(L);
    script_set_fields(L, pin_fields, pin, NULL);
    if (pin->name[0] != '\0') {
        lua_pushstring(L, pin->name);
        lua_setfield(L, -2, "name");
    }
    script_guard_names(L, pin_fields, pin_names);
    lua_setfield(L, -2, key);
}

static void set_holes(lua_State *L, const hr_heap *heap)
{
    hr_heap_hole holes[HOLES_MAX];
    size_t count = 0;
    hr_err err = {0};
    if (heap != NULL && hr_heap_holes(heap, holes, HOLES_MAX, &count, &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_newtable(L);
        script_push_count(L, holes[k].address);
        lua_setfield(L, -2, "address");
        script_push_bytes_or_nil(L, holes[k].bytes);
        lua_setfield(L, -2, "bytes");
        set_pin(L, "before", &holes[k].before);
        set_pin(L, "after", &holes[k].after);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "holes");
}

static void set_statistics(lua_State *L, const hr_replay_result *r)
{
    lua_newtable(L);
    for (uint32_t k = 0; k < r->statistic_count; k++) {
        script_push_count(L, r->statistics[k].value);
        lua_setfield(L, -2, r->statistics[k].name);
    }
    lua_setfield(L, -2, "statistics");
}

static void push_result(lua_State *L, const hr_replay_result *r)
{
    lua_newtable(L);
    script_set_fields(L, result_fields, r, NULL);
    set_memory(L, r);
    script_set_list(L, "failures", failure_fields, r->failures, sizeof *r->failures, r->failure_count);
    set_holes(L, r->failure_heap);
    set_cause(L, r->failure_heap);
    set_statistics(L, r);
    script_guard_names(L, result_fields, result_names);
}

// ---- options --------------------------------------------------------------------------------------------------------

// By a scenario's name, or by path from below the recipe's folder, unless the person typed the path.
void script_open_trace(lua_State *L, const char *name)
{
    script *s = script_of(L);
    char path[SCRIPT_PATH_MAX];
    hr_err err = {0};
    bool is_scenario = hr_scenario_find(name, NULL) != NULL;
    script_begin_engine(s);
    hr_replay_close(s->replay);
    s->replay = NULL;
    hr_status status = is_scenario ? HR_OK : script_readable_path(s, name, path, &err);
    if (status == HR_OK) {
        status = hr_replay_open(is_scenario ? name : path, &s->replay, &err);
    }
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
}

static bool is_turned(const hr_knobs *knobs, hr_knob_id id)
{
    char value[HR_KNOB_TEXT_MAX], default_value[HR_KNOB_TEXT_MAX];
    hr_knobs usual;
    hr_replay_knobs_init(&usual);
    return strcmp(hr_knob_format(knobs, id, value), hr_knob_format(&usual, id, default_value)) != 0;
}

// Whether the options say allocator.kind, be it the default: then it is no matter what it was before.
static bool says_kind(lua_State *L)
{
    static const char *const before[] = {"bfc", "static"};
    const char *after[2];
    hr_knobs knobs;
    hr_err err = {0};
    for (size_t k = 0; k < 2; k++) {
        hr_replay_knobs_init(&knobs);
        if (hr_knobs_set(&knobs, HR_KNOB_ALLOCATOR_KIND, before[k], &err) != HR_OK) {
            (void)script_raise(L, &err);
        }
        script_apply_overrides(L, 2, "replay", &knobs);
        after[k] = hr_knob_text(&knobs, HR_KNOB_ALLOCATOR_KIND); // a word of the table
    }
    return strcmp(after[0], after[1]) == 0;
}

void script_check_replay_knobs(lua_State *L, const hr_knobs *knobs, const hr_knobs *usual)
{
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char value[HR_KNOB_TEXT_MAX], before[HR_KNOB_TEXT_MAX];
        const bool turned = strcmp(hr_knob_format(knobs, (hr_knob_id)id, value),
                                   hr_knob_format(usual, (hr_knob_id)id, before)) != 0;
        if (turned && id != HR_KNOB_ALLOCATOR_KIND && !hr_replay_knob_applies((hr_knob_id)id)) {
            (void)script_error(L, "%s changes nothing in a replay", hr_knob_rows(NULL)[id].key);
        }
    }
}

// The options' knobs.
static void read_knobs(lua_State *L, hr_knobs *knobs)
{
    hr_knobs usual;
    hr_replay_knobs_init(&usual);
    *knobs = usual;
    script_apply_overrides(L, 2, "replay", knobs);
    script_check_replay_knobs(L, knobs, &usual);
    if (says_kind(L)) {
        (void)script_error(
            L, "a replay's allocators are named by allocators = {\"bfc\", …}, had allocator.kind");
    }
}

// The knobs of one allocator: of those that were turned, the ones that it listens to.
static void knobs_for(lua_State *L, const hr_knobs *turned, const char *kind, hr_knobs *out)
{
    hr_err err = {0};
    hr_replay_knobs_init(out);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (hr_replay_knob_concerns((hr_knob_id)id, kind)) {
            out->value[id] = turned->value[id];
        }
    }
    if (hr_knobs_set(out, HR_KNOB_ALLOCATOR_KIND, kind, &err) != HR_OK) {
        (void)script_raise(L, &err);
    }
}

static bool is_interrupted(void *context)
{
    return script_is_interrupted(context);
}

// Plays it, and adds the result as element k of the list on top of the stack. False, and nothing added, when this
// machine lacks what the allocator needs and `may_lack` it.
static bool add_run(lua_State *L, const hr_knobs *knobs, lua_Integer k, bool may_lack)
{
    script *s = script_of(L);
    hr_err err = {0};
    hr_replay_options options = {.stop = is_interrupted, .stop_context = s};
    script_begin_engine(s);
    hr_replay_result_deinit(&s->replayed);
    hr_status status = hr_replay_run(s->replay, knobs, &options, &s->replayed, &err);
    script_end_engine(s);
    if (status == HR_INTERRUPTED) {
        script_check_stop(L);
    }
    if (status == HR_DEPENDENCY && may_lack) {
        return false;
    }
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    push_result(L, &s->replayed);
    lua_rawseti(L, -2, k);
    return true;
}

// The names as a list of our own, so that nothing of the recipe runs between the trace that is opened and its use.
// Stack: name, options, names.
static void copy_names(lua_State *L)
{
    const lua_Integer count = luaL_len(L, 3);
    lua_newtable(L);
    for (lua_Integer k = 1; k <= count; k++) {
        if (lua_geti(L, 3, k) != LUA_TSTRING) {
            (void)script_error(L,
                               "allocators is a list of names, such as {\"bfc\", \"static\"}, had a %s in it",
                               luaL_typename(L, -1));
        }
        lua_rawseti(L, -2, k);
    }
    lua_replace(L, 3);
}

// The knobs of the k-th allocator that is named. Stack: name, options, names.
static void knobs_at(lua_State *L, lua_Integer k, const hr_knobs *turned, hr_knobs *out)
{
    char kind[KIND_MAX];
    lua_rawgeti(L, 3, k);
    (void)snprintf(kind, sizeof kind, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    knobs_for(L, turned, kind, out);
}

// A knob that no allocator of those that are named listens to is an error at the recipe's line.
static void check_heard(lua_State *L, const hr_knobs *turned)
{
    bool heard[HR_KNOB_COUNT] = {false};
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 3);
    for (lua_Integer k = 1; k <= count; k++) {
        hr_knobs knobs;
        knobs_at(L, k, turned, &knobs);
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            heard[id] |=
                hr_replay_knob_concerns((hr_knob_id)id, hr_knob_text(&knobs, HR_KNOB_ALLOCATOR_KIND));
        }
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (!heard[id] && is_turned(turned, (hr_knob_id)id)) {
            (void)script_error(L, "%s: none of these allocators listens to it", hr_knob_rows(NULL)[id].key);
        }
    }
}

// Stack: name, options, names. Pushes the list of results.
static void run_named(lua_State *L, const hr_knobs *turned)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 3);
    lua_newtable(L);
    for (lua_Integer k = 1; k <= count; k++) {
        hr_knobs knobs;
        knobs_at(L, k, turned, &knobs);
        (void)add_run(L, &knobs, k, false);
    }
}

static void run_all(lua_State *L, const hr_knobs *turned)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[HR_KNOB_ALLOCATOR_KIND];
    lua_newtable(L);
    lua_Integer count = 0;
    for (int k = 0; row->choices[k] != NULL; k++) {
        hr_knobs knobs;
        if (hr_replay_plays(row->choices[k])) {
            knobs_for(L, turned, row->choices[k], &knobs);
            count += add_run(L, &knobs, count + 1, true);
        }
    }
}

int script_replay(lua_State *L)
{
    hr_knobs turned;
    const char *name = luaL_checkstring(L, 1);
    if (lua_isnoneornil(L, 2)) {
        lua_settop(L, 1);
        lua_newtable(L);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    read_knobs(L, &turned);
    if (lua_getfield(L, 2, "allocators") != LUA_TNIL) {
        luaL_checktype(L, 3, LUA_TTABLE);
        copy_names(L);
        check_heard(L, &turned);
    }
    script_open_trace(L, name);
    lua_newtable(L);
    push_trace(L, name, script_of(L)->replay);
    lua_setfield(L, -2, "trace");
    if (lua_isnil(L, 3)) {
        run_all(L, &turned);
    } else {
        run_named(L, &turned);
    }
    lua_setfield(L, -2, "allocators");
    script_guard_names(L, NULL, replay_names);
    return 1;
}
