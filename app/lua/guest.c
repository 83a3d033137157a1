// SPDX-License-Identifier: Apache-2.0
// A recipe as the guest of a worker (headroom/guest.h, decision 67): its Lua state lives from one `:lua FILE` to the next, beside
// the training that the workbench shows, and what it says goes there line by line.
#include "app/lua/guest.h"

#include <stdlib.h>
#include <string.h>

#include "app/lua/lua_script.h"
#include "app/lua/watch.h"

enum { CHUNKS_KEPT = 64, ANSWERS_MAX = 128 };

// ---- its state ------------------------------------------------------------------------------------------------------

static void close_script(guest *g)
{
    if (g->s != NULL) {
        script_watch_end();
        script_close(g->s);
        free(g->s);
        g->s = NULL;
    }
}

// Of a recorded step there is none: hr.preset opens one.
static hr_status take_home(script *s, const hr_guest_host *host, hr_err *err)
{
    if (host->engine == NULL) {
        return HR_OK;
    }
    HR_TRY(hr_preset_open(host->preset, host->trusts, &s->preset, NULL, err));
    (void)snprintf(s->home, sizeof s->home, "%s", hr_preset_path(s->preset));
    s->training = host->engine;
    s->knobs = *hr_engine_knobs(host->engine);
    return HR_OK;
}

// What is on the screen: by its name, where that is found.
static void name_shown(guest *g)
{
    script *s = g->s;
    hr_preset *named = NULL;
    if (s->preset == NULL) {
        return;
    }
    const char *name = hr_preset_name(s->preset);
    const bool found = hr_preset_open(name, false, &named, NULL, NULL) == HR_OK &&
                       strcmp(hr_preset_path(named), s->home) == 0;
    hr_preset_close(named);
    (void)snprintf(g->preset, sizeof g->preset, "%s", found ? name : s->home);
    s->shown = g->preset;
}

static hr_status open_script(guest *g, hr_err *err)
{
    g->s = calloc(1, sizeof *g->s);
    if (g->s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a recipe");
    }
    script_forget_interrupt();
    g->had_oom = false;
    *g->s = (script){.out = g->out,
                     .notes = g->notes,
                     .interrupted = script_interruption(),
                     .argc = g->argc,
                     .argv = g->argv,
                     .folder = ".",
                     .host = g->host};
    hr_status status = take_home(g->s, g->host, err);
    if (status == HR_OK) {
        name_shown(g);
    }
    status = status == HR_OK ? script_open(g->s, &script_default_limits, err) : status;
    status = status == HR_OK ? script_watch(g->s, -1, err) : status;
    if (status != HR_OK) {
        close_script(g);
    }
    return status;
}

// ---- one call of it -------------------------------------------------------------------------------------------------

// Says what became of it. A stop, or memory that was refused, leaves nothing that could go on.
static void conclude(guest *g, int status, bool lasts)
{
    script *s = g->s;
    const bool fine = status == LUA_OK && s->stop == SCRIPT_GOES_ON;
    (void)fflush(g->out);
    (void)fflush(g->notes);
    if (!fine) {
        (void)script_report_error(s, status, g->errors);
        (void)fflush(g->errors);
    } else if (s->check_failed) {
        guest_say(g, HR_GUEST_ERROR, s->check_text);
        s->check_failed = false;
    }
    lua_settop(s->L, 0);
    script_forget_shown(s);
    if (!fine && (!lasts || s->stop != SCRIPT_GOES_ON || status != LUA_ERRRUN)) {
        close_script(g);
    }
}

static int call(guest *g, lua_CFunction function, void *argument)
{
    lua_State *L = g->s->L;
    script_end_engine(g->s); // its time begins
    lua_pushcfunction(L, script_take_trace);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    const int status = lua_pcall(L, 1, 0, 1);
    script_begin_engine(g->s); // and stands still
    return status;
}

// ---- orders ---------------------------------------------------------------------------------------------------------

// Stack: the function, or an error. The knobs that were assigned, all of them together; then what it gave.
static int run_loaded(lua_State *L, int status)
{
    script *s = script_of(L);
    if (status != LUA_OK) {
        return lua_error(L);
    }
    lua_call(L, 0, LUA_MULTRET);
    if (script_is_hosted(s)) {
        script_take_training(L, &s->knobs, false);
    }
    return lua_gettop(L) > 0 ? script_show(L) : 0;
}

static int run_source(lua_State *L)
{
    const script_source *source = lua_touserdata(L, 1);
    lua_settop(L, 0);
    return run_loaded(L, script_load_source(L, source));
}

static int run_typed(lua_State *L)
{
    const script_source *source = lua_touserdata(L, 1);
    const script_typed typed = {source->name, source->text, source->length, 0};
    lua_settop(L, 0);
    return run_loaded(L, script_load_typed(L, &typed));
}

static void set_name(guest *g, const char *path)
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(g->name, sizeof g->name, "%.63s", slash == NULL ? path : slash + 1);
}

// A path, then words, a line each.
static void split_words(guest *g, const char *text)
{
    (void)snprintf(g->words, sizeof g->words, "%s", text);
    g->argc = 0;
    for (char *at = strchr(g->words, '\n'); at != NULL && g->argc < GUEST_ARGUMENTS_MAX;
         at = strchr(at, '\n')) {
        *at++ = '\0';
        g->argv[g->argc++] = at;
    }
}

static void take_file(guest *g, const char *text)
{
    const script_source *source = NULL;
    hr_err err = {0};
    close_script(g);
    split_words(g, text);
    set_name(g, g->words);
    hr_status status = open_script(g, &err);
    if (status == HR_OK) {
        script_set_folder(g->s, g->words);
        status = script_read_source(g->s, g->words, &source, &err);
    }
    if (status != HR_OK) {
        guest_say_error(g, &err);
        close_script(g);
        return;
    }
    guest_say_state(g, true);
    conclude(g, call(g, run_source, (void *)(uintptr_t)source), false);
}

static hr_status add_chunk(guest *g, const char *text, const script_source **out, hr_err *err)
{
    char name[GUEST_NAME_MAX];
    (void)snprintf(name, sizeof name, "console %u", ++g->chunks);
    const hr_status status = script_add_source(g->s, name, text, out, err);
    script_drop_sources(g->s, CHUNKS_KEPT);
    return status;
}

// By its own name; the file before it has the callbacks that are called afterwards.
static void say_chunk_runs(guest *g)
{
    char name[GUEST_NAME_MAX];
    memcpy(name, g->name, sizeof name);
    (void)snprintf(g->name, sizeof g->name, "console %u", g->chunks);
    guest_say_state(g, true);
    memcpy(g->name, name, sizeof name);
}

static void take_chunk(guest *g, const char *text)
{
    const script_source *source = NULL;
    hr_err err = {0};
    hr_status status = HR_OK;
    if (g->s == NULL) {
        g->argc = 0;
        set_name(g, "console");
        status = open_script(g, &err);
    }
    if (status == HR_OK && script_is_hosted(g->s)) {
        g->s->knobs = *hr_engine_knobs(g->s->training);
    }
    status = status == HR_OK ? add_chunk(g, text, &source, &err) : status;
    if (status != HR_OK) {
        guest_say_error(g, &err);
        return;
    }
    say_chunk_runs(g);
    conclude(g, call(g, run_typed, (void *)(uintptr_t)source), true);
}

// "NUMBER CURSOR\nCHUNK"
static void complete(guest *g, const char *text)
{
    char line[SCRIPT_HINT_MAX + 64], *end = NULL;
    hr_err err = {0};
    const unsigned long number = strtoul(text, &end, 10), cursor = strtoul(end, &end, 10);
    const char *chunk = *end == '\n' ? end + 1 : "";
    if (g->s == NULL) {
        g->argc = 0;
        set_name(g, "console");
    }
    if (g->s == NULL && open_script(g, &err) != HR_OK) {
        return;
    }
    script_completion *c = &g->completion;
    script_complete(g->s->L, chunk, strlen(chunk), cursor < strlen(chunk) ? cursor : strlen(chunk), c);
    (void)snprintf(line, sizeof line, "%lu %u %s", number, c->start, c->hint);
    guest_say(g, HR_GUEST_ANSWER, line);
    for (uint32_t k = 0; k < c->count && k < ANSWERS_MAX; k++) {
        (void)snprintf(line, sizeof line, "+%.256s\t%s", script_candidate(c, k), c->items[k].after);
        guest_say(g, HR_GUEST_ANSWER, line);
    }
}

static void take(void *self, hr_guest_order order, const char *text)
{
    guest *g = self;
    switch (order) {
    case HR_GUEST_FILE:
        take_file(g, text);
        break;
    case HR_GUEST_CHUNK:
        take_chunk(g, text);
        break;
    case HR_GUEST_COMPLETE:
        complete(g, text);
        return;
    case HR_GUEST_END:
    case HR_GUEST_ORDERS:
        if (g->s != NULL) {
            guest_say(g, HR_GUEST_NOTE, "the recipe is ended, and so are its callbacks");
        }
        close_script(g);
        break;
    }
    guest_say_state(g, false);
}

// ---- the training that goes on --------------------------------------------------------------------------------------

static bool is_called(const guest *g)
{
    return g->s != NULL && g->s->listens != 0 && script_is_hosted(g->s);
}

// As within a run, which the callbacks are in for once.
static void call_between_steps(guest *g, lua_CFunction function, void *argument)
{
    script *s = g->s;
    s->engine = s->training;
    s->driving = s->L;
    const int status = call(g, function, argument);
    s->engine = NULL;
    s->driving = NULL;
    if (s->wants_stop && status == LUA_OK) {
        const hr_command pause = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_PAUSE};
        const hr_status paused = hr_engine_command(s->training, &pause, NULL);
        (void)paused; // which is never refused
    }
    s->wants_stop = false;
    if (status != LUA_OK || s->stop != SCRIPT_GOES_ON) {
        conclude(g, status, false);
    }
    guest_say_state(g, false);
}

static int begin_step(lua_State *L)
{
    script_deliver_begins(L);
    return 0;
}

static void begin_turn(void *self)
{
    guest *g = self;
    const uint32_t begins = 1U << SCRIPT_EVENT_STEP_BEGIN | 1U << SCRIPT_EVENT_EPOCH_BEGIN;
    if (is_called(g) && (g->s->listens & begins) != 0) {
        call_between_steps(g, begin_step, NULL);
    }
    if (is_called(g)) {
        g->s->driving = g->s->L; // before_update comes within the step
        g->s->engine = g->s->training;
    }
}

static void on_event(void *self, const hr_event *event)
{
    guest *g = self;
    if (g->s == NULL) {
        return;
    }
    const bool is_heard = script_is_hosted(g->s) && (g->s->listens != 0 || g->s->engine != NULL);
    if (is_heard || event->kind == HR_EVENT_EVAL) { // for an evaluation hr.eval waits
        script_collect_event(g->s, event);
    }
}

static void before_update(void *self)
{
    guest *g = self;
    if (g->s != NULL && script_is_hosted(g->s) && g->s->driving != NULL) {
        script_tell_update(g->s);
    }
}

static int end_step(lua_State *L)
{
    script *s = script_of(L);
    const bool *oom = lua_touserdata(L, 1);
    lua_settop(L, 0);
    script_raise_from_step(L);
    script_deliver_events(L, false);
    if (*oom) {
        script_take_report(L, s->engine);
        (void)script_deliver_oom(L, &s->report.oom);
    }
    return 0;
}

static void end_turn(void *self, bool idle)
{
    guest *g = self;
    (void)idle;
    if (g->s == NULL) {
        return;
    }
    g->s->engine = NULL;
    g->s->driving = NULL;
    if (!is_called(g)) {
        g->s->event_count = 0;
        return;
    }
    const bool is_oom = hr_engine_get_state(g->s->training) == HR_ENGINE_OOM;
    bool oom = is_oom && !g->had_oom && script_listens(g->s, SCRIPT_EVENT_OOM);
    g->had_oom = is_oom;
    if (g->s->event_count > 0 || oom || g->s->raised_in_step) {
        call_between_steps(g, end_step, &oom);
    }
}

static void turned(void *self, hr_knob_id id, const char *text)
{
    guest *g = self;
    if (g->s != NULL && script_is_hosted(g->s)) {
        const hr_status status = hr_knobs_set(&g->s->knobs, id, text, NULL);
        (void)status; // the engine took it
    }
}

// ---- life -----------------------------------------------------------------------------------------------------------

static void close_guest(void *self)
{
    guest *g = self;
    close_script(g);
    guest_close_voices(g);
    free(g);
}

static hr_status open_guest(const hr_guest_host *host, void **out, hr_err *err)
{
    guest *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for recipes");
    }
    g->host = host;
    const hr_status status = guest_open_voices(g, err);
    if (status != HR_OK) {
        close_guest(g);
        return status;
    }
    *out = g;
    return HR_OK;
}

static void interrupt(void)
{
    script_interrupt(SIGINT);
}

const hr_guest_ops lua_script_guest = {
    .open = open_guest,
    .close = close_guest,
    .take = take,
    .turned = turned,
    .begin_turn = begin_turn,
    .event = on_event,
    .before_update = before_update,
    .end_turn = end_turn,
    .is_whole = script_is_whole,
    .interrupt = interrupt,
};
