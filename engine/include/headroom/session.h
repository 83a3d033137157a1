// SPDX-License-Identifier: Apache-2.0
// A training as seen from outside: commands in, events out, whoever runs it.
//
//   start          a worker process of ours: a direct child, exec'd, that dies with us; its death is never ours
//   start_inline   the engine in this process, without thread or clock: moves in hr_session_advance alone
//   attach         another process of this user that serves watchers, or a trace that is played: read-only
//
// The producer never waits for a reader. What comes out of a session is checked record by record: kinds and
// categories within their tables, texts terminated, counts within their arrays. All functions on one session belong
// to one thread.
#ifndef HEADROOM_SESSION_H
#define HEADROOM_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"
#include "headroom/event.h"
#include "headroom/guest.h"
#include "headroom/report.h"

typedef struct hr_session hr_session;

typedef struct hr_session_options {
    const char *preset; // name or path, as the worker opens it
    bool trusts;        // files above the preset's folder may be read (--trust)
    const hr_knobs *knobs;
    const char *resume_path; // a save to go on from; NULL: as train.resume says
    const char
        *autosave_path; // kept up to date between two steps, at a cost of at most 1 % of the time; NULL: none
    const hr_guest_ops
        *guest;     // of a session in this process; a worker has that of hr_session_serve. NULL: none
    bool watchable; // listens at $XDG_RUNTIME_DIR/headroom/PID.sock
} hr_session_options;

// Does not wait for the worker: what that finds wrong with preset or files comes as an error, and ends the session. By
// the thread that lives as long as the session: the worker dies with it. KNOB, CONSTRAINT errors; STATE when no process
// was to be had.
HR_MUST_CHECK hr_status hr_session_start(const hr_session_options *options, hr_session **out, hr_err *err);
// Here they come at once. Time is the plan device's alone where that is what runs: the same calls give the same events.
HR_MUST_CHECK hr_status hr_session_start_inline(const hr_session_options *options, hr_session **out,
                                                hr_err *err);
// `path`: a watch socket, or a trace (.hrt, .csv). READ error when it is neither.
HR_MUST_CHECK hr_status hr_session_attach(const char *path, hr_session **out, hr_err *err);
// QUIT, waits for the end, frees; a worker that has become silent is killed. Without train.save there is nothing to wait
// for: the step is cut short. With one it is given its time, and a minute of silence. NULL is fine. The status is that of
// the save that ended the training; STATE when it died instead; HR_OK when it had ended before, or was killed with nothing to
// save.
hr_status hr_session_stop(hr_session *s, hr_err *err);
// The same without blocking, call by call: QUIT the first time; true once hr_session_stop has nothing left to
// wait for. Between two calls the descriptor says when to look again, and hr_session_kill cuts it short.
bool hr_session_try_stop(hr_session *s);

// Inline: takes waiting commands and does up to `pieces` bounded pieces of work; false when idle before that. Other
// sessions: false.
bool hr_session_advance(hr_session *s, unsigned pieces);

bool hr_session_is_read_only(const hr_session *s);
// What is trained, as far as the other side has said: preset name and knobs of a watched session. False: not known yet.
bool hr_session_about(const hr_session *s, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs);
bool hr_session_send(hr_session *s,
                     const hr_command *command); // false: read-only, ended, or the queue is full

// Readable when anything waits: events, a report, an error, a heap, an end. Stays so until all of it was taken; what is
// never asked for keeps it so.
int hr_session_fd(const hr_session *s); // −1: inline
// Takes up to `max` events in order; *lost: how many were overwritten since the last call.
size_t hr_session_events(hr_session *s, hr_event *out, size_t max, uint64_t *lost);
// Newer than *version: copied out; the caller deinits the report.
bool hr_session_report(hr_session *s, uint64_t *version, hr_report *report);
bool hr_session_error(hr_session *s, uint64_t *version, hr_err *err);

// ---- the heap, chunk by chunk ---------------------------------------------------------------------------------

typedef struct hr_session_chunk {
    uint64_t address, size_bytes, requested_bytes; // requested 0 when free
    uint64_t region_address, region_bytes;
    uint32_t tensor; // HR_NO_ID when free
    uint8_t category;
    bool in_use, pending; // pending: freed, but not yet to be had
} hr_session_chunk;

typedef struct hr_session_heap {
    uint64_t seq;             // events before this one are in the snapshot, this one and later ones are not
    hr_session_chunk *chunks; // by region, by address
    size_t count;
} hr_session_heap;

// Asks for the heap as it is between two steps: how a reader that lost events recovers.
void hr_session_ask_heap(hr_session *s);
bool hr_session_heap_now(hr_session *s, uint64_t *version, hr_session_heap *heap); // the caller deinits it
void hr_session_heap_deinit(hr_session_heap *heap);

// ---- a guest beside the engine (headroom/guest.h) ----------------------------------------------------------------

// False: it was not taken, as hr_session_send; an order longer than HR_GUEST_TEXT_MAX never is.
bool hr_session_order(hr_session *s, hr_guest_order order, const char *text);
void hr_session_interrupt(hr_session *s); // what it does at this moment
// What it has said since *cursor (0: all that is held): whole lines, each with the letter of its kind in front, a NUL behind the last.
// Returns their bytes, 0: nothing more.
size_t hr_session_said(hr_session *s, uint64_t *cursor, char *out, size_t size);

// ---- life and death -------------------------------------------------------------------------------------------

typedef enum hr_session_life {
    HR_SESSION_LIVE,
    HR_SESSION_SILENT, // has work and has done none of it for HR_SESSION_SILENT_NS (a minute while it builds or
                       // saves): it hangs, or was stopped
    HR_SESSION_ENDED,
} hr_session_life;

#define HR_SESSION_SILENT_NS UINT64_C(5000000000)

typedef struct hr_session_end {
    int exit_code;       // −1: a signal ended it
    int signal;          // 0: it exited
    bool by_us;          // hr_session_kill, or what it said was broken
    uint64_t step;       // steps done, as it last said
    uint32_t instr;      // that it was in; HR_NO_ID: between two steps
    uint64_t saved_step; // of the autosave; HR_NONE: there is none
    bool device_lost;    // the device's context is gone: a new worker has a new one
    char sentence
        [HR_ERR_TEXT_MAX]; // "killed by the kernel (SIGKILL): out of host memory?", with the last of its stderr
} hr_session_end;

hr_session_life hr_session_get_life(hr_session *s,
                                    hr_session_end *end); // *end is filled when SILENT or ENDED
void hr_session_kill(hr_session *s);                      // at once; HR_SESSION_ENDED follows
void hr_session_suspend(hr_session *s, bool suspend);     // with the terminal's ^Z and fg: SIGSTOP, SIGCONT

// ---- serving --------------------------------------------------------------------------------------------------

// The worker's and the planner's main: what `headroom` does when it is exec'd by hr_session_start and
// hr_planning_start. `role` is the word that they passed. `guest`: of workers; NULL: none. Returns the exit code.
int hr_session_serve(const char *role, const hr_guest_ops *guest);

// Lets others watch an engine of this process: a sink to chain before hr_engine_create, told of reports as they are
// made; it outlives the engine. NULL *out when there is no $XDG_RUNTIME_DIR; where no socket can be opened, there are no watchers.
typedef struct hr_watch_server hr_watch_server;
HR_MUST_CHECK hr_status hr_watch_server_start(const char *preset, const hr_knobs *knobs,
                                              hr_watch_server **out, hr_err *err);
void hr_watch_server_event(void *server, const hr_event *event); // an hr_event_sink
bool hr_watch_server_wants_report(hr_watch_server *server);      // at most 4 a second, and someone watches
void hr_watch_server_report(hr_watch_server *server, const hr_report *report);
void hr_watch_server_stop(hr_watch_server *server); // NULL is fine; removes the socket

#endif
