// SPDX-License-Identifier: Apache-2.0
// The engine: devices, allocators, programs, pipeline and trainer behind commands in and events out.
//
//              open ──▶ IDLE ──RUN──▶ RUNNING ──PAUSE──▶ PAUSED ──RUN──▶ RUNNING
//                         ▲              │ steps done: IDLE                │
//                         │              ├─ does not fit ──▶ OOM ──KNOB / RUN (rebuild)──▶ RUNNING
//                         └──────────────┴─ anything else fails ──▶ FAILED ──KNOB──▶ rebuild
//
// A step is a transaction and a knob takes effect between two steps. The engine itself has no thread: whoever
// owns it calls hr_engine_advance, which does one bounded piece of work (a step, a batch of an evaluation or of a
// teacher that answers first, a build).
// A session (headroom/session.h) is the owner the workbench uses: in a process of its own, reached only through commands
// and events. All functions on one hr_engine belong to one thread.
#ifndef HEADROOM_ENGINE_H
#define HEADROOM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/report.h"
#include "headroom/status.h"
#include "headroom/time_basis.h"

// X(ID, "name")
#define HR_ENGINE_STATE_MAP(X)                                                                               \
    X(IDLE, "idle")                                                                                          \
    X(RUNNING, "running")                                                                                    \
    X(PAUSED, "paused")                                                                                      \
    X(OOM, "out of memory")                                                                                  \
    X(FAILED, "failed")

typedef enum hr_engine_state {
#define X(id, text) HR_ENGINE_##id,
    HR_ENGINE_STATE_MAP(X)
#undef X
        HR_ENGINE_STATE_COUNT
} hr_engine_state;

const char *hr_engine_state_name(hr_engine_state state);

// Numbers are what is sent: a new one goes to the end.
typedef enum hr_command_kind {
    HR_COMMAND_RUN,   // count: training steps to do from here; 0: as train.steps says
    HR_COMMAND_PAUSE, // after the current step
    HR_COMMAND_KNOB, // knob, text: takes effect before the next step; count 1: another follows, to be built together
    HR_COMMAND_SAVE,  // text: path; "" is train.save
    HR_COMMAND_STOP,  // finish the step, save when train.save is set, become IDLE with all steps done
    HR_COMMAND_KEEP,  // of a session: its autosave is brought up to date now; an engine alone has none
    HR_COMMAND_QUIT,  // STOP, and the loop around the engine ends
    HR_COMMAND_RANKS, // text: a layer's name. Events RANK follow at once, up to its full rank
    HR_COMMAND_EVALUATE, // what is held out, before anything else, as at the end of an epoch; then as it was before
    HR_COMMAND_GUEST, // of a session: a piece of an order to its guest (headroom/guest.h); knob: the order, count 1:
                      // another piece follows
    HR_COMMAND_COUNT
} hr_command_kind;

typedef struct hr_command {
    uint16_t version; // HR_EVENT_VERSION
    uint16_t kind;    // hr_command_kind
    uint32_t knob;    // hr_knob_id
    uint64_t count;
    char text[HR_KNOB_TEXT_MAX];
} hr_command;

// Called for every event, in order, on the engine's thread. Lossless. Must not call the engine.
typedef void (*hr_event_sink)(void *context, const hr_event *event);

typedef struct hr_engine hr_engine;

typedef struct hr_engine_options {
    bool plan_only; // no arithmetic, no data, no pages: the device's own plan (DESIGN "the plan is the run")
    hr_event_sink sink;      // may be NULL
    void *sink_context;      // borrowed until destroy
    bool keeps_failure_heap; // every chunk of the heap at an out-of-memory: hr_engine_failure_heap
    // Where hr_engine_write_times will write; copied. Every instruction of a training step is timed then, and none captured
    // into a graph. NULL: neither.
    const char *times_file;
    hr_position *position; // kept up to date from create on; borrowed until destroy; may be NULL
    // Between two rounds of an accumulated step, when `done` of them are; may be NULL, must not call the engine. False: the
    // step is left there and has never been, unless it has changed already what training goes on from (running statistics).
    bool (*goes_on)(void *context, uint32_t done, uint32_t rounds);
    void *goes_on_context; // borrowed until destroy
    // When a step's gradients are there, of all rounds, unscaled and not clipped yet, and nothing has been updated; may be NULL, must
    // not call the engine but for hr_engine_gradient_norm. Once a step; with optimizer.fused_backward when the first is there.
    void (*before_update)(void *context);
    void *before_update_context; // borrowed until destroy
} hr_engine_options;

// Copies what it needs of the preset. Nothing is built until the first advance in RUNNING. WRITE error when train.save
// or times_file could not be written.
HR_MUST_CHECK hr_status hr_engine_create(const hr_preset *preset, const hr_knobs *knobs,
                                         const hr_engine_options *options, hr_engine **out, hr_err *err);
void hr_engine_destroy(hr_engine *engine);

// Whether a training of these would stand, found as its first build finds it: model, knobs, train.save, train.resume, data
// and device are looked at and the step is dry-run; nothing is trained, and everything is given back. What does not fit
// stands, as a training that says so. Whether this machine has memory to spare is not asked: another training may be about to
// give it back.
HR_MUST_CHECK hr_status hr_engine_rehearse(const hr_preset *preset, const hr_knobs *knobs, hr_err *err);
// The same of its plan: files of weights and data and this machine's devices are not looked at.
HR_MUST_CHECK hr_status hr_engine_rehearse_plan(const hr_preset *preset, const hr_knobs *knobs, hr_err *err);

// Takes one command. A refused one leaves everything as it was.
HR_MUST_CHECK hr_status hr_engine_command(hr_engine *engine, const hr_command *command, hr_err *err);

// Does one bounded piece of work. *idle is true when nothing is left to do until a command comes. An
// out-of-memory or failure is a state, not an error of this call: see hr_engine_error.
void hr_engine_advance(hr_engine *engine, bool *idle);

hr_engine_state hr_engine_get_state(const hr_engine *engine);
const hr_err *hr_engine_error(const hr_engine *engine); // of OOM and FAILED; borrowed
const hr_knobs *hr_engine_knobs(const hr_engine *engine);
// The heap as it was when the request was refused that led to OOM, to be shown or written down (headroom/replay.h).
// NULL in other states, without keeps_failure_heap, and when host memory was short. Borrowed until the next command.
typedef struct hr_heap hr_heap;
const hr_heap *hr_engine_failure_heap(const hr_engine *engine);
uint64_t hr_engine_steps(const hr_engine *engine);

// Where a training stands between two advances. What is not known, because nothing is built, is HR_NONE or NaN.
typedef enum hr_engine_next {
    HR_ENGINE_WAITS, // not running
    HR_ENGINE_BUILDS,
    HR_ENGINE_EVALUATES, // a batch
    HR_ENGINE_TRAINS,    // a step
    HR_ENGINE_ENDS,      // the epoch, or the run
} hr_engine_next;
typedef struct hr_engine_now {
    hr_engine_next next;  // what an advance would do
    uint64_t epoch;       // epochs of data that have ended
    uint64_t epoch_steps; // of a whole one; HR_NONE where no data is read
    double learning_rate; // of the next update
    double loss_scale;    // after the last step; NaN: none is used
    uint64_t in_use_bytes, pool_bytes, largest_free_bytes;
    double fragmentation;
    uint64_t by_category[HR_CATEGORY_COUNT]; // requested bytes
} hr_engine_now;
void hr_engine_look(const hr_engine *engine, hr_engine_now *now);
// Losses of the last training step, NaN before the first.
double hr_engine_loss(const hr_engine *engine);

// While before_update runs: the 2-norm of all gradients together, as the updates will take them, before optimizer.clip_norm. NaN where
// it cannot be had: nothing is computed, optimizer.fused_backward, steps that are captured into a graph. Reads every gradient. NOMEM and
// the device's errors.
HR_MUST_CHECK hr_status hr_engine_gradient_norm(const hr_engine *engine, double *norm, hr_err *err);

// The whole report of the current counter epoch; the caller deinits it. Works in every state.
HR_MUST_CHECK hr_status hr_engine_report(hr_engine *engine, hr_report *report, hr_err *err);
// The same, and where nothing was refused, but the pool went back to its device again and again, that as its `oom`
// (HR_OOM_RETRIES), with settings under which a step never does.
HR_MUST_CHECK hr_status hr_engine_explain(hr_engine *engine, hr_report *report, hr_err *err);

// The listing of the training program under the present knobs, whether it fits or not.
HR_MUST_CHECK hr_status hr_engine_listing(hr_engine *engine, FILE *out, hr_err *err);
// What turning `pair` ("key=value") would change in it: the lines that go ('-') and come ('+'), in listing order. The
// engine stays as it is. KNOB and CONSTRAINT errors as for the command.
HR_MUST_CHECK hr_status hr_engine_listing_diff(hr_engine *engine, const char *pair, FILE *out, hr_err *err);
// What the instructions of the training program took, one a line (insight/times.h), into options' times_file. STATE error
// where nothing was timed: on a device that computes nothing, before the second step, after a failure. WRITE errors.
HR_MUST_CHECK hr_status hr_engine_write_times(hr_engine *engine, hr_err *err);
// Every distinct peak of `repeat` one-step plans at batch.size + i mod 16; fills report->plan.
HR_MUST_CHECK hr_status hr_engine_plan_repeat(hr_engine *engine, uint32_t repeat, hr_report *report,
                                              hr_err *err);

// What-if: knobs in, answer out, nothing else touched.
typedef struct hr_whatif {
    bool fits;            // on the device, and on the host by pipeline.ram_limit
    uint64_t limit_bytes; // 0: there is none
    uint64_t static_bytes, saved_for_backward_bytes;
    uint64_t peak_in_use_bytes; // when it fits on the device; otherwise limit + missing bytes
    uint64_t missing_bytes; // from the limit to the smallest that was tried and holds it with this allocator
    bool is_at_least;       // of a search: no limit was tried, only what is asked for: it may miss more
    double step_seconds;    // simulated
    double step_seconds_low,
        step_seconds_high;       // between which it lies as a rule
    hr_time_basis step_basis;    // what these are made from; UNKNOWN: all three are NaN
    uint64_t host_bytes;         // that the host holds for it; HR_NONE: its data set cannot be read
    uint64_t host_missing_bytes; // of them, beyond pipeline.ram_limit; 0: it is kept, or none is set
    uint64_t h2d_bytes;          // copied to the device, a step
    double input_seconds;        // estimated: to make the batches of a step; NaN: not known
    double stall;                // estimated: the share of a step in which it waits for them; NaN: not known
} hr_whatif;
// What is missing where it does not fit: of the device, or, where that would do, of the host.
static inline uint64_t hr_whatif_missing_bytes(const hr_whatif *w)
{
    return w->missing_bytes > 0 ? w->missing_bytes : w->host_missing_bytes;
}
static inline bool hr_whatif_lacks_host(const hr_whatif *w)
{
    return w->missing_bytes == 0 && w->host_missing_bytes > 0;
}
typedef struct hr_planner hr_planner;
// Reads the preset's model, and again where a size of it is turned; the preset may be closed. Its plans may be made by
// several threads at once, beside every engine. What the cpu device's library says of its workspaces is kept on disk from
// one planner to the next ($XDG_CACHE_HOME/headroom).
HR_MUST_CHECK hr_status hr_planner_open(const hr_preset *preset, hr_planner **out, hr_err *err);
void hr_planner_close(hr_planner *planner); // NULL is fine
HR_MUST_CHECK hr_status hr_planner_plan(const hr_planner *planner, const hr_knobs *knobs, hr_whatif *out,
                                        hr_err *err);
// The same with one knob at another value.
HR_MUST_CHECK hr_status hr_planner_turn(const hr_planner *planner, const hr_knobs *knobs, hr_knob_id id,
                                        const char *value, hr_whatif *out, hr_err *err);

// The largest value of a whole number such as batch.size that fits, all else as it is: the next one does not. (An allocator that
// packs a larger one better is not looked for.)
typedef struct hr_largest {
    uint64_t value; // 0: its smallest does not fit
    bool is_last;   // the knob or the model goes no further, or there is no limit
    hr_whatif plan; // under it; with value 0 under the smallest
    uint32_t plans; // that were made
} hr_largest;
// `id` is an INT; begins at its value. The errors of hr_planner_plan.
HR_MUST_CHECK hr_status hr_planner_largest(const hr_planner *planner, const hr_knobs *knobs, hr_knob_id id,
                                           hr_largest *out, hr_err *err);

#endif
