// SPDX-License-Identifier: Apache-2.0
// The process in which the Lua of a console runs. Its lines are one source that grows: an error names the line as the prompt
// did, and a function of an earlier chunk keeps its lines.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "headroom/child.h"

#include "app/lua/api.h"
#include "app/lua/complete.h"
#include "app/lua/console.h"
#include "app/lua/console_wire.h"
#include "app/lua/watch.h"

typedef struct serving {
    script s; // the first: script_of gives both
    int socket;
    script_source *source; // of the console, among the script's
    uint32_t line;
    uint32_t own_globals; // of the sandbox
} serving;

// ---- source -------------------------------------------------------------------------------------------------------

// Every line up to the chunk is counted; the lines that came beyond the limit of a recipe are not shown by errors.
static hr_status begin_source(serving *c, hr_err *err)
{
    script_source *source = calloc(1, sizeof *source);
    char *text = malloc(SCRIPT_SOURCE_BYTES_MAX);
    if (source == NULL || text == NULL || c->line >= SCRIPT_SOURCE_BYTES_MAX) {
        free(source);
        free(text);
        return HR_FAIL(err, NOMEM, "no host memory for the lines of a console");
    }
    (void)snprintf(source->name, sizeof source->name, "%s", SCRIPT_CONSOLE);
    source->text = text;
    source->length = c->line - 1;
    memset(text, '\n', source->length);
    source->next = c->s.sources;
    c->s.sources = c->source = source;
    return HR_OK;
}

static void append_source(serving *c, const char *text, size_t length)
{
    script_source *source = c->source;
    for (size_t k = 0; k < length; k++) {
        c->line += text[k] == '\n';
    }
    if (length + 1 <= SCRIPT_SOURCE_BYTES_MAX - source->length) {
        memcpy(source->text + source->length, text, length);
        source->text[source->length + length] = '\n';
        source->length += length + 1;
    }
    c->line++;
}

// ---- running --------------------------------------------------------------------------------------------------------

static void forget_chunk(serving *c)
{
    script *s = &c->s;
    script_watch_forget();
    script_forget_stop(s);
    s->check_failed = s->refused_memory = false;
    s->trace_of = NULL;
    s->trace = s->refused_at = (script_trace){0};
    s->raised = (hr_err){0};
    s->raised_text[0] = s->kept[0] = '\0';
    lua_settop(s->L, 0);
    script_forget_shown(s);
}

static void say_stopped_training(const script *s)
{
    if (s->kept[0] != '\0' && s->training != NULL) {
        fprintf(s->notes, "headroom: the training stands after step %llu; hr.run goes on with it\n",
                (unsigned long long)hr_engine_steps(s->training));
    }
}

// Stack: handler, function. Calls it and shows what it gives.
static int run_compiled(serving *c)
{
    lua_State *L = c->s.L;
    int status = lua_pcall(L, 0, LUA_MULTRET, 1);
    if (status == LUA_OK && lua_gettop(L) > 1) {
        lua_pushcfunction(L, script_show);
        lua_insert(L, 2);
        status = lua_pcall(L, lua_gettop(L) - 2, 0, 1);
    }
    return status;
}

static void end_chunk(serving *c, int status, console_answer *answer)
{
    script *s = &c->s;
    (void)fflush(s->out);
    if (status != LUA_OK || s->stop != SCRIPT_GOES_ON) {
        answer->end = LUA_CONSOLE_FAILED;
        answer->code = script_report_error(s, status, s->notes);
        say_stopped_training(s);
    }
    (void)fflush(s->notes);
    forget_chunk(c);
    lua_gc(s->L, LUA_GCSTEP, 0);
}

static void run_chunk(serving *c, const char *text, size_t length, bool last, console_answer *answer)
{
    lua_State *L = c->s.L;
    forget_chunk(c);
    script_end_engine(&c->s);
    lua_pushcfunction(L, script_take_trace);
    const script_typed typed = {SCRIPT_CONSOLE, text, length, c->line - 1};
    int status = script_load_typed(L, &typed);
    if (!last && script_ends_early(L, status)) {
        answer->end = LUA_CONSOLE_MORE;
        forget_chunk(c);
    } else {
        append_source(c, text, length);
        status = status == LUA_OK ? run_compiled(c) : status;
        end_chunk(c, status, answer);
    }
    script_begin_engine(&c->s);
}

// ---- what a person has ------------------------------------------------------------------------------------------------

static uint32_t count_globals(lua_State *L)
{
    uint32_t count = 0;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        lua_pop(L, 1);
        count++;
    }
    lua_pop(L, 1);
    return count;
}

static uint64_t steps_at_hand(const script *s)
{
    const bool computes =
        s->training != NULL && !hr_knob_is(hr_engine_knobs(s->training), HR_KNOB_DEVICE_KIND, "plan");
    const uint64_t steps = computes ? hr_engine_steps(s->training) : 0;
    return steps > s->written_steps ? steps : 0;
}

static bool answer_with(serving *c, console_answer *answer)
{
    const uint32_t globals = count_globals(c->s.L);
    answer->line = c->line;
    answer->globals = globals > c->own_globals ? globals - c->own_globals : 0;
    answer->steps = steps_at_hand(&c->s);
    return send(c->socket, answer, sizeof *answer, MSG_NOSIGNAL) == (ssize_t)sizeof *answer;
}

// ---- requests ---------------------------------------------------------------------------------------------------------

static bool complete(serving *c, const console_request *request, const char *text)
{
    static script_completion found;
    console_answer answer = {.kind = CONSOLE_COMPLETE};
    const uint32_t cursor = request->cursor < request->length ? request->cursor : request->length;
    script_complete(c->s.L, text, request->length, cursor, &found);
    return answer_with(c, &answer) &&
           send(c->socket, &found, sizeof found, MSG_NOSIGNAL) == (ssize_t)sizeof found;
}

static bool serve_one(serving *c)
{
    console_request request;
    if (recv(c->socket, &request, sizeof request, MSG_WAITALL) != (ssize_t)sizeof request ||
        request.length > SCRIPT_SOURCE_BYTES_MAX) {
        return false;
    }
    char *text = calloc(1, (size_t)request.length + 1);
    bool goes_on = text != NULL && (request.length == 0 || recv(c->socket, text, request.length,
                                                                MSG_WAITALL) == (ssize_t)request.length);
    if (goes_on && request.kind == CONSOLE_COMPLETE) {
        goes_on = complete(c, &request, text);
    } else if (goes_on) {
        console_answer answer = {.kind = CONSOLE_RUN};
        run_chunk(c, text, request.length, request.last != 0, &answer);
        goes_on = answer_with(c, &answer);
    }
    free(text);
    return goes_on;
}

// ---- life -------------------------------------------------------------------------------------------------------------

// Stack: the name.
static int open_preset(lua_State *L)
{
    (void)lua_getfield(L, LUA_REGISTRYINDEX, SCRIPT_NAMES_KEY);
    (void)lua_getfield(L, -1, "preset");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 0);
    return 0;
}

static void begin_preset(serving *c, const char *preset, console_answer *answer)
{
    lua_State *L = c->s.L;
    script_end_engine(&c->s);
    lua_pushcfunction(L, script_take_trace);
    lua_pushcfunction(L, open_preset);
    lua_pushstring(L, preset);
    const int status = lua_pcall(L, 1, 0, 1);
    const hr_status why = c->s.raised.status;
    end_chunk(c, status, answer);
    if (answer->end != LUA_CONSOLE_FINE && why != HR_OK) { // a word of the command line, no line of a script
        answer->code = hr_status_exit_code(why);
    }
    script_begin_engine(&c->s);
}

static hr_status begin(serving *c, const script_limits *limits, hr_err *err)
{
    HR_TRY(script_open(&c->s, limits, err));
    HR_TRY(script_watch(&c->s, c->socket, err));
    HR_TRY(begin_source(c, err));
    c->own_globals = count_globals(c->s.L);
    script_begin_engine(&c->s);
    return HR_OK;
}

static void say(const hr_err *err)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    fputs(text, stderr);
}

int lua_console_serve(int argc, char **argv)
{
    static serving c;
    console_setup setup;
    console_answer answer = {.kind = CONSOLE_RUN};
    hr_err err = {0};
    c.socket = hr_child_begin();
    c.s = (script){.out = stdout,
                   .notes = stderr,
                   .interrupted = script_hear_interrupts(),
                   .typed = isatty(STDIN_FILENO) != 0,
                   .folder = ".",
                   .argc = argc,
                   .argv = argv};
    if (c.socket < 0 || recv(c.socket, &setup, sizeof setup, MSG_WAITALL) != (ssize_t)sizeof setup) {
        return hr_status_exit_code(HR_USAGE);
    }
    c.line = setup.line;
    if (begin(&c, &setup.limits, &err) == HR_OK) {
        if (argc > 0) {
            begin_preset(&c, argv[0], &answer);
        }
        for (bool goes_on = answer_with(&c, &answer); goes_on;) {
            goes_on = serve_one(&c);
        }
    } else {
        say(&err);
    }
    script_watch_end();
    script_close(&c.s);
    return err.status == HR_OK ? 0 : hr_status_exit_code(err.status);
}
