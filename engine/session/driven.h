// SPDX-License-Identifier: Apache-2.0
// What an engine's loop drives: a training (driven_engine.c), or a recorded step that is played on an allocator
// (recorded.c). Both take commands, do one bounded piece of work at a time, and say what came of it as events and reports.
#ifndef SESSION_DRIVEN_H
#define SESSION_DRIVEN_H

#include "headroom/engine.h"

#include "memory/allocator.h"

typedef struct driven_ops {
    void (*destroy)(void *self);
    hr_status (*command)(void *self, const hr_command *command, hr_err *err);
    void (*advance)(void *self, bool *idle);
    hr_engine_state (*state)(const void *self);
    const hr_err *(*error)(const void *self); // of OOM and FAILED
    const hr_knobs *(*knobs)(const void *self);
    uint64_t (*steps)(const void *self);
    hr_status (*report)(void *self, hr_report *report, hr_err *err); // the caller deinits it
    bool (*needs_build)(const void *self);                           // the next advance may take long
    const allocator *(*heap)(const void *self);                      // NULL: nothing is built
    uint64_t (*next_seq)(const void *self);                          // of the next event
    // Of a chunk with this tag: the tensor in it, and its category.
    void (*holder)(const void *self, uint32_t tag, uint32_t *tensor, uint8_t *category);
} driven_ops;

typedef struct driven {
    const driven_ops *ops; // NULL: there is none
    void *self;
    hr_engine *engine; // the same, where it is a training that can be saved; else NULL
} driven;

typedef struct driven_options {
    const char *preset; // name or path; a trace's, where it is one (headroom/replay.h)
    bool trusts;
    const hr_knobs *knobs;
    hr_event_sink sink;
    void *sink_context;                   // borrowed until it is closed
    hr_position *position;                // kept up to date
    void (*before_update)(void *context); // of a training, as hr_engine_options has it; context is the sink's
} driven_options;

// Errors as hr_preset_open and hr_engine_create, or as hr_replay_open.
HR_MUST_CHECK hr_status driven_open(const driven_options *options, driven *out, hr_err *err);
void driven_close(driven *d); // also of none

// recorded.c
HR_MUST_CHECK hr_status recorded_open(const driven_options *options, driven *out, hr_err *err);

#endif
