// SPDX-License-Identifier: Apache-2.0
// What an engine's process and those who look at it say to each other (session/wire.h). The reader checks: a body
// that is not wholly what it should be is refused as a whole, and nothing of it is kept.
//
//   owner ──OPEN──▶ worker            OPEN is the first and comes once; only the owner may send it, COMMAND and QUIT
//         ──COMMAND, ASK_HEAP, QUIT──▶
//         ◀──RING (descriptor), ABOUT, REPORT, ERROR, HEAP, ENDED──
//         ──INTERRUPT──▶  ◀──SAID──     of a guest (headroom/guest.h)
//         ◀──WAKE──  ──TAKEN──▶        events wait; the reader has seen so many. One WAKE is under way at most.
#ifndef SESSION_MESSAGES_H
#define SESSION_MESSAGES_H

#include "headroom/session.h"

#include "session/said.h"
#include "session/wire.h"

typedef enum message_kind {
    MESSAGE_OPEN,
    MESSAGE_COMMAND,
    MESSAGE_ASK_HEAP,
    MESSAGE_QUIT,
    MESSAGE_TAKEN,
    MESSAGE_RING,
    MESSAGE_ABOUT,
    MESSAGE_WAKE,
    MESSAGE_REPORT,
    MESSAGE_ERROR,
    MESSAGE_HEAP,
    MESSAGE_ENDED,
    MESSAGE_INTERRUPT,
    MESSAGE_SAID,
    MESSAGE_KINDS
} message_kind;

enum { MESSAGE_PATH_MAX = 4096 };

typedef struct open_request {
    char preset[MESSAGE_PATH_MAX], resume_path[MESSAGE_PATH_MAX], autosave_path[MESSAGE_PATH_MAX]; // "": none
    bool trusts, watchable;
    hr_knobs knobs;
} open_request;

// Of a worker that ended on its own: the status of the save that ended the training, or why there was no training.
typedef struct ended_note {
    hr_status status;
    hr_err err;
} ended_note;

// Writing: `bad` in *out says that host memory was short. Reading: false when it is not exactly that; what was
// allocated has been freed then.
void put_open(wire_out *out, const open_request *request);
bool get_open(const wire_message *m, open_request *request);
void put_command(wire_out *out, const hr_command *command);
bool get_command(const wire_message *m, hr_command *command);
void put_about(wire_out *out, const char *preset, const hr_knobs *knobs);
bool get_about(const wire_message *m, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs);
void put_report(wire_out *out, const hr_report *report);
bool get_report(const wire_message *m, hr_report *report); // the caller deinits it
void put_error(wire_out *out, const hr_err *err);
bool get_error(const wire_message *m, hr_err *err);
void put_heap(wire_out *out, const hr_session_heap *heap);
bool get_heap(const wire_message *m, hr_session_heap *heap); // the caller deinits it
void put_ended(wire_out *out, hr_status status, const hr_err *err);
bool get_ended(const wire_message *m, ended_note *note);
void put_said(wire_out *out, const said_log *said);
bool get_said(const wire_message *m, said_log *said);   // replaces it; not on failure
bool get_count(const wire_message *m, uint64_t *count); // of TAKEN and WAKE: one number

// Knobs as the pairs that differ from the table's defaults.
void put_knobs(wire_out *out, const hr_knobs *knobs);
void get_knobs(wire_in *in, hr_knobs *knobs);

// Of a record of the ring: kinds, categories and phases within their tables, texts terminated. False: not an event.
bool event_is_valid(const hr_event *event);

#endif
