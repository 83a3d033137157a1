// SPDX-License-Identifier: Apache-2.0
// The bus stamps events (version, sequence, time, current step, instruction, phase) and hands them to its sinks
// in order. Producers: the engine's thread only. A NULL bus is silent and free.
#ifndef EVENTS_BUS_H
#define EVENTS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/event.h"

typedef void (*trace_sink)(void *context, const hr_event *event);

enum { TRACE_MAX_SINKS = 8 };

typedef struct trace_bus {
    struct {
        trace_sink sink;
        void *context;
    } sinks[TRACE_MAX_SINKS];
    uint32_t sink_count;
    uint32_t watch_count; // of them: need not hear of what repeats itself
    uint64_t seq;
    // What is going on, set by the executor, copied into every event:
    uint32_t step, instr;
    uint8_t phase, category, device;
    bool simulated; // time_ns is `now_ns`, advanced by the plan device
    uint64_t now_ns;
    hr_position *position; // kept by the executor beside what events are stamped with; NULL: nobody looks
} trace_bus;

void trace_bus_init(trace_bus *bus);
bool trace_attach(trace_bus *bus, trace_sink sink, void *context); // false when full
// As trace_attach, for a sink that is never detached and need not hear of rounds that repeat themselves.
bool trace_watch(trace_bus *bus, trace_sink sink, void *context);
bool trace_is_heard(const trace_bus *bus); // by a sink that hears of everything
void trace_detach(trace_bus *bus, trace_sink sink, void *context);
// Completes `event` (everything but kind and u, category if the caller left it 0 and kind is a memory event)
// and delivers it.
void trace_emit(trace_bus *bus, hr_event *event);
void trace_note(trace_bus *bus, hr_event_kind kind, uint64_t count, const char *text);

#endif
