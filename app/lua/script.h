// SPDX-License-Identifier: Apache-2.0
// One recipe in its sandbox: a Lua state, the engine it drives, and what its errors will say.
//
//     recipe.lua ──▶ lua_State ──hr.*──▶ script ──hr_command──▶ hr_engine
//                        ▲                  │                       │
//                        └── callbacks ◀── queue ◀──hr_event sink───┘        (between two hr_engine_advance)
//
// Lua leaves C functions by longjmp when something fails. So whatever must be given back (engine, report, preset)
// belongs to the script and is freed by the next user of its place or by script_close, never by the function that
// made it. One thread.
#ifndef APP_LUA_SCRIPT_H
#define APP_LUA_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/engine.h"
#include "headroom/guest.h"
#include "headroom/model.h"
#include "headroom/replay.h"
#include "headroom/weight_stats.h"

#include "app/lua/events.h"

enum {
    SCRIPT_TEXT_MAX = 1024,
    SCRIPT_PATH_MAX = 1024,
    SCRIPT_FRAMES_MAX = 8, // of a traceback
    SCRIPT_FRAME_MAX = 160,
    SCRIPT_SOURCE_BYTES_MAX = 1 << 20,
};

typedef struct script_limits {
    uint64_t memory_bytes; // of everything Lua allocates
    uint64_t lua_ns;       // processor time of Lua between two calls of the engine
} script_limits;

extern const script_limits script_default_limits; // 256 MiB, 10 s

// Why the hook ends the script, whatever pcall says. It goes back to SCRIPT_GOES_ON only by script_forget_stop.
typedef enum script_stop { SCRIPT_GOES_ON, SCRIPT_TIME_IS_UP, SCRIPT_INTERRUPTED } script_stop;

// A chunk that was read from a file: the lines that errors show come from here and from nowhere else.
typedef struct script_source {
    struct script_source *next;
    char name[SCRIPT_PATH_MAX]; // as it was opened; Lua's chunk name is '@' and this
    char *text;
    size_t length;
    bool typed; // and no file
} script_source;

// Where an error came from, taken while the stack still stood.
typedef struct script_trace {
    char source[SCRIPT_PATH_MAX]; // of the innermost Lua function, without '@'; "" when there is none
    int line;
    char frames[SCRIPT_FRAMES_MAX][SCRIPT_FRAME_MAX];
    unsigned frame_count;
} script_trace;

typedef struct script {
    lua_State *L;
    script_limits limits;
    FILE *out, *notes; // borrowed
    const volatile sig_atomic_t *interrupted;
    bool typed; // line by line at a console: what failed is typed again, and what stood before it stays

    // Read by watch.c between any two instructions:
    volatile sig_atomic_t in_engine; // a call of the engine: Lua's time stands still
    volatile sig_atomic_t printing;  // `out` is being written
    volatile sig_atomic_t stretch;   // of Lua between two calls of the engine, counted
    lua_State *volatile running;     // the innermost coroutine
    volatile uint64_t lua_began_ns;  // processor time at the end of the last call of the engine
    uint64_t opened_ns;              // by the clock, for hr.time

    size_t lua_bytes;        // held by Lua now
    bool refused_memory;     // Lua asked for more than it may have;
    script_trace refused_at; // there
    script_stop stop;
    char stop_text[SCRIPT_TEXT_MAX];  // the sentence; its place is in trace
    bool check_failed;                // an hr.expect, caught by pcall or not, and
    char check_text[SCRIPT_TEXT_MAX]; // what it said

    hr_err raised;                     // the last error that came from the engine, and
    char raised_text[SCRIPT_TEXT_MAX]; // the Lua message it became
    script_trace trace;                // of the error under way, and
    const void *trace_of;              // the error object it belongs to

    char folder[SCRIPT_PATH_MAX]; // of the recipe; "." for the current one
    script_source *sources;       // the recipe itself is the last
    unsigned source_count;
    int argc; // borrowed
    char **argv;

    const hr_guest_host *host;       // of a workbench, whose training is the recipe's; NULL: it is alone
    char home[SCRIPT_PATH_MAX];      // the preset of that
    const char *shown;               // what hr.preset takes for it, borrowed; NULL: nothing is shown
    hr_preset *preset;               // NULL before hr.preset
    unsigned preset_number;          // how many were opened
    hr_knobs knobs;                  // the recipe's; while a run goes on, the engine's are the ones seen
    hr_engine *training;             // goes on from one hr.run to the next; NULL before the first
    hr_engine *engine;               // the same while a run is under way, NULL otherwise
    hr_engine *planner;              // of the last hr.plan
    bool wants_stop;                 // hr.stop
    uint64_t saved_steps;            // of the last save of this run; 0: none
    uint64_t written_steps;          // of the last save of the training, wherever it lies; 0: none
    bool trained;                    // this run has done a step
    char kept[HR_ERR_TEXT_MAX + 80]; // the last line, once a run has failed: what is kept of it; ""
    hr_event *events;                // since the last advance of the engine, owned
    unsigned event_count, event_room;
    bool lost_events;     // there was no room for one
    uint32_t listens;     // bit k: somebody does to event k (events.h)
    uint64_t alloc_above; // the smallest allocation that one of them wants
    bool wants_norm;      // a function of step wants the gradients' norm, and
    double gradient_norm; // that of the last step; NaN: not known
    bool epoch_ended;     // and what comes after it is not known yet
    hr_event epoch;
    bool epoch_begins;         // with the next step
    uint64_t begun_step;       // the last that step_begin told of
    bool takes_save;           // train.resume of the training was not read before this run
    bool built;                // since it was set to false
    bool evaluated;            // the same, and
    hr_event_step evaluation;  // what came of it
    uint64_t wanted_epochs;    // after which a run ends; 0: steps say when
    uint64_t epochs_ended;     // of it
    uint64_t wanted_steps;     // of a run, from where a save that it resumes ends; 0: that is settled
    uint64_t last_step;        // of a run beside a workbench; UINT64_MAX: it counts none
    lua_State *driving;        // on which the run under way was called
    bool in_step;              // a callback runs within a step: the engine cannot be asked for anything
    bool raised_in_step;       // and it failed: with the user value of registry[address of this]
    hr_report report;          // being turned into a table
    hr_replay *replay;         // of the last hr.replay, and
    hr_replay_result replayed; // the run of it that is being turned into a table
    hr_weight_stats weights;   // of the last hr.weights, and
    hr_weight_values values;   // of one of them
    hr_model_layers layers;    // of the last hr.model
    char *picture;             // of the last hr.plot, owned
    FILE *showing;             // values that are being shown, and
    char *showing_text;        // their text, owned
    size_t showing_length;
} script;

static inline script *script_of(lua_State *L)
{
    return *(script **)lua_getextraspace(L);
}

// ---- lua_script.c: a whole recipe -----------------------------------------------------------------------------

typedef struct script_options {
    script_limits limits;
    FILE *out, *notes; // print; hr.note and errors
    const volatile sig_atomic_t
        *interrupted; // the signal that ends the recipe, once it is not 0; may be NULL
    int watcher;      // the socket of the process that ends a hanging recipe (watch.h); 0: none
} script_options;

// In this process, as lua_script_run.
int script_main(const char *file, int argc, char **argv, const script_options *options);
void script_set_folder(script *s, const char *file); // that of the file

// ---- recipe_process.c: it, watched from outside ----------------------------------------------------------------

// As lua_script_run, with these limits.
int script_run_process(const char *file, int argc, char **argv, const script_limits *limits);

// ---- console_serve.c: lines of a person ---------------------------------------------------------------------------

#define SCRIPT_CONSOLE "console" // the name of their source

// ---- typed.c, show.c: a chunk that a person types, wherever the console is ------------------------------------------------

typedef struct script_typed {
    const char *name; // of its source
    const char *text; // ends with a NUL, which `length` does not count
    size_t length;
    uint32_t lines_before; // of that source
} script_typed;

// Compiles it: behind a "=", or where it can be one, as an expression; else as statements. Pushes the function, or the error.
// A Lua status.
int script_load_typed(lua_State *L, const script_typed *typed);
// Whether that status, its error on top of the stack, is by Lua's own rule one that a further line may mend.
bool script_ends_early(lua_State *L, int status);
// The same of a text, in a state of its own: no further line is needed.
bool script_is_whole(const char *text);
// Writes all values on the stack, a line or a table each; raises, as a __tostring may, and has written nothing then.
int script_show(lua_State *L);
void script_forget_shown(script *s); // what an error in there left

// ---- script.c: life; limits.c: limits -------------------------------------------------------------------------------------

// Borrows argv, out, notes and interrupted until script_close, which a failure needs too.
HR_MUST_CHECK hr_status script_open(script *s, const script_limits *limits, hr_err *err);
void script_close(script *s);
// Compiles and runs `source` (of files.c) with the traceback taken. A Lua status.
int script_run_source(script *s, const script_source *source);
bool script_is_interrupted(const script *s);
// Around every call of the engine that may take time; at its end Lua's time starts anew.
void script_begin_engine(script *s);
void script_end_engine(script *s);
uint64_t script_lua_ns(const script *s); // processor time since then
void script_write_stop(const script *s, script_stop why,
                       char text[SCRIPT_TEXT_MAX]); // the sentence of a stop
void script_hook(lua_State *L, lua_Debug *ar);      // a lua_Hook: raises the stop when there is one
void script_arm_hook(lua_State *L);                 // so that it is called now and then
// What a console's line stopped is no matter of the next one.
void script_forget_stop(script *s);
// Raises the stop when there is one; looks at the clock too.
void script_check_stop(lua_State *L);

// ---- host.c: the training of a workbench -------------------------------------------------------------------------

// Whether the training is the one that the workbench shows.
bool script_is_hosted(const script *s);
// One piece of the engine's work: by the workbench's loop where it is its training, which takes keys meanwhile.
void script_advance(script *s, hr_engine *engine, bool *idle);
// From here on the training is one of the recipe's own; `what` says why, NULL: nothing is said.
void script_leave_host(script *s, const char *what);
// Of a run that the person has paused: waits until it goes on, and whether it does.
bool script_waits_for_person(script *s, hr_engine_state state);

// ---- trace.c, blame.c: errors -----------------------------------------------------------------------------------

// The innermost Lua function into *trace. Allocates nothing and may be called wherever Lua asks for memory.
void script_trace_line(lua_State *L, script_trace *trace);
// With its callers.
void script_trace_stack(lua_State *L, script_trace *trace);
// Message handler of lua_pcall: takes the trace, leaves the error object as it is.
int script_take_trace(lua_State *L);
// Pushes "recipe.lua:12: " for the innermost Lua function, or "".
void script_push_where(lua_State *L);
// luaL_error with the place of the innermost Lua function, which need not be the caller: pcall(hr.run, 3).
int script_error(lua_State *L, const char *format, ...);
// LUA error: `format` with `name` in it, what was meant, and all that there are.
int script_raise_unknown(lua_State *L, const char *format, const char *name, const char *const *names,
                         size_t count);
// Every key of the table at `index` is an option of hr.FUNCTION. Raises.
void script_check_options(lua_State *L, int index, const char *function);
// The text `name` of the table at `index`, which keeps it and is pushed; `otherwise` where it has none. Raises.
const char *script_text_option(lua_State *L, int index, const char *name, const char *otherwise);
// The error on top of the stack as a text, without the place in front.
void script_strip_place(lua_State *L);
// Raises an engine's error at the recipe's line; remembers its status and its `try:` line.
int script_raise(lua_State *L, const hr_err *err);
// The whole message for a failed script_run_source (its error object lies on top of the stack), with source lines,
// `try:` and the traceback. Returns the exit code.
int script_report_error(script *s, int lua_status, FILE *to);

// ---- files.c: what a recipe may open ----------------------------------------------------------------------------

// Reads a chunk and keeps it in s->sources. READ errors.
HR_MUST_CHECK hr_status script_read_source(script *s, const char *path, const script_source **out,
                                           hr_err *err);
// The same of a text that was typed, under that name; it counts as no file.
HR_MUST_CHECK hr_status script_add_source(script *s, const char *name, const char *text,
                                          const script_source **out, hr_err *err);
void script_drop_sources(script *s, unsigned kept); // the oldest that were typed, but for so many
const script_source *script_find_source(const script *s, const char *name);
// Pushes the compiled chunk, or an error. A Lua status.
int script_load_source(lua_State *L, const script_source *source);
// Whether the person typed this word behind the recipe's name.
bool script_was_typed(const script *s, const char *word);
// Turns a path as the recipe says it into one that it may read: what lies below ./headroom-out under that name, else below
// its own folder; or word for word an argument that the person typed.
HR_MUST_CHECK hr_status script_readable_path(const script *s, const char *path, char out[SCRIPT_PATH_MAX],
                                             hr_err *err);
// The same for writing: below ./headroom-out, which is made.
HR_MUST_CHECK hr_status script_writable_path(const script *s, const char *path, char out[SCRIPT_PATH_MAX],
                                             hr_err *err);
// Whether a path that the engine would use as it is lies below the recipe's folder or was typed.
HR_MUST_CHECK hr_status script_check_below(const script *s, const char *path, hr_err *err);
int script_require(lua_State *L);
#define SCRIPT_OUT_FOLDER "headroom-out" // of the current folder

// ---- sandbox.c: the environment ---------------------------------------------------------------------------------

void script_open_sandbox(lua_State *L);
int script_print(lua_State *L); // print
// Writes text without control characters other than newline and tab.
void script_print_text(FILE *to, const char *text, size_t length);

// ---- the hr table -----------------------------------------------------------------------------------------------

// basics.c
int script_preset(lua_State *L);
int script_expect(lua_State *L);
int script_note(lua_State *L);
int script_push_version(lua_State *L);
int script_push_args(lua_State *L);
int script_has(lua_State *L);
int script_time(lua_State *L);
int script_rng(lua_State *L);
uint64_t script_clock_ns(void); // monotonic

// bytes.c: hr.bytes values
void script_open_bytes(lua_State *L);
void script_push_bytes(lua_State *L, int64_t bytes);
bool script_is_bytes(lua_State *L, int index, int64_t *bytes); // an hr.bytes value
int64_t script_to_bytes(lua_State *L, int index);              // the same, a whole number or a text. Raises
int script_bytes(lua_State *L);

// knobs.c
void script_open_knobs(lua_State *L);
int script_push_knobs(lua_State *L); // pushes hr.knobs
// The recipe's, or those of the run under way. Raises where there is no preset.
const hr_knobs *script_current_knobs(lua_State *L);
// Turns the knobs that the table at `index` names, as `batch = {size = 64}` or `["batch.size"] = 64`; the
// options of hr.FUNCTION (NULL: of none) are not knobs. Raises.
void script_apply_overrides(lua_State *L, int index, const char *function, hr_knobs *knobs);
// That `key` is a knob, and, where it has words to choose from, each value of the list on top of the stack one of them. Raises.
void script_check_axis(lua_State *L, const char *key);
// knob_paths.c: where the knob names a file, replaces what the recipe says by what the engine gets.
HR_MUST_CHECK hr_status script_confine_knob(const script *s, hr_knob_id id, char text[HR_KNOB_TEXT_MAX],
                                            hr_err *err);
// Lets the path knobs of a preset from below the recipe's folder through the rules of files.c.
HR_MUST_CHECK hr_status script_confine_knobs(const script *s, hr_knobs *knobs, hr_err *err);

// turn_engine.c
bool script_same_knob(const hr_knobs *a, const hr_knobs *b, int id);
// Turns what differs from `wanted`, in an order that is legal if there is one. The errors of HR_COMMAND_KNOB, of the first that
// cannot be turned; none is then.
HR_MUST_CHECK hr_status script_turn_engine(hr_engine *engine, const hr_knobs *wanted, hr_err *err);

// turning.c
int script_with(lua_State *L);
int script_apply(lua_State *L);

// result.c
void script_push_report(lua_State *L, const hr_report *report);
void script_push_oom(lua_State *L, const hr_report_oom *oom);

// run.c
// The table at 1, or an empty one that comes there: the recipe's knobs with those turned that it names beside the options of
// hr.FUNCTION. Raises, also where there is no preset.
void script_read_options(lua_State *L, const char *function, hr_knobs *knobs);
// The whole number `steps` of the table at `index`, from 1; `otherwise` when it names none. Raises.
uint64_t script_steps_option(lua_State *L, int index, uint64_t otherwise);
int script_plan(lua_State *L);
int script_run(lua_State *L);
int script_on(lua_State *L);
int script_end_run(lua_State *L); // hr.stop
// LUA error within a step, where the engine cannot be asked for anything.
HR_MUST_CHECK hr_status script_may_ask(const script *s, hr_err *err);
void script_check_may_ask(lua_State *L); // the same, raised

// model.c
int script_model(lua_State *L);

// weights.c
int script_weights(lua_State *L);
int script_set_weights(lua_State *L);

// sweep.c, compare.c, export.c, plot.c
int script_sweep(lua_State *L);
int script_compare(lua_State *L);
int script_export(lua_State *L);
int script_plot(lua_State *L);
bool script_is_plot(lua_State *L, int index);

// training.c: the engine that outlives hr.run
// It is there, with these knobs: a new one where there is none or `fresh` is asked for. Raises.
void script_take_report(lua_State *L, hr_engine *engine); // into s->report. Raises
void script_take_training(lua_State *L, const hr_knobs *knobs, bool fresh);
void script_drop_training(script *s); // by hr.preset
// One call of the engine between script_begin_engine and script_end_engine. Raises.
void script_command(lua_State *L, hr_engine *engine, const hr_command *command);
void script_create_engine(lua_State *L, const hr_knobs *knobs, const hr_engine_options *options,
                          hr_engine **out);
int script_save(lua_State *L);
int script_load(lua_State *L);
int script_eval(lua_State *L);

// fit.c
int script_fit(lua_State *L);

// explain.c
int script_explain(lua_State *L);

// replay.c
void script_open_trace(lua_State *L, const char *name); // s->replay; raises
// A knob that differs from `usual`, allocator.kind aside, and that no replay listens to is an error at the recipe's line.
void script_check_replay_knobs(lua_State *L, const hr_knobs *knobs, const hr_knobs *usual);
int script_replay(lua_State *L);

// callbacks.c
void script_open_callbacks(lua_State *L);
static inline bool script_listens(const script *s, script_event event)
{
    return (s->listens >> event & 1U) != 0;
}
// Calls what hr.on registered with the table on top of the stack, and takes that away. Whether one returned something true.
// `bytes`: of an allocation.
bool script_call_handlers(lua_State *L, script_event event, uint64_t bytes);

// deliver.c
void script_collect_event(void *context, const hr_event *event); // an hr_event_sink
// Calls what hr.on registered for the events collected since.
void script_deliver_events(lua_State *L, bool last); // last: the run ends here
// Out of memory: whether a callback turned a knob and said to go on.
bool script_deliver_oom(lua_State *L, const hr_report_oom *oom);
void script_deliver_train(lua_State *L, bool end);
void script_deliver_begins(lua_State *L);  // of the epoch and of the step, where one is next
void script_tell_update(void *context);    // hr_engine_options.before_update
void script_raise_from_step(lua_State *L); // what a callback raised there

#endif
