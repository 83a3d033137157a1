// SPDX-License-Identifier: Apache-2.0
#include "events/bus.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void trace_bus_init(trace_bus *bus)
{
    *bus = (trace_bus){.instr = HR_NO_ID};
}

bool trace_attach(trace_bus *bus, trace_sink sink, void *context)
{
    if (bus->sink_count == TRACE_MAX_SINKS) {
        return false;
    }
    bus->sinks[bus->sink_count].sink = sink;
    bus->sinks[bus->sink_count].context = context;
    bus->sink_count++;
    return true;
}

bool trace_watch(trace_bus *bus, trace_sink sink, void *context)
{
    const bool attached = trace_attach(bus, sink, context);
    bus->watch_count += attached;
    return attached;
}

bool trace_is_heard(const trace_bus *bus)
{
    return bus->sink_count > bus->watch_count;
}

void trace_detach(trace_bus *bus, trace_sink sink, void *context)
{
    for (uint32_t i = 0; i < bus->sink_count; i++) {
        if (bus->sinks[i].sink == sink && bus->sinks[i].context == context) {
            bus->sink_count--;
            memmove(&bus->sinks[i], &bus->sinks[i + 1], (bus->sink_count - i) * sizeof bus->sinks[0]);
            return;
        }
    }
}

static bool is_memory(uint8_t kind)
{
    return kind >= HR_EVENT_ALLOC && kind <= HR_EVENT_OOM;
}

void trace_emit(trace_bus *bus, hr_event *event)
{
    if (bus == NULL) {
        return;
    }
    uint64_t seq = bus->seq++;
    if (bus->sink_count == 0) {
        return;
    }
    event->version = HR_EVENT_VERSION;
    event->phase = bus->phase;
    event->device = bus->device;
    event->reserved = 0;
    event->step = bus->step;
    event->instr = bus->instr;
    event->seq = seq;
    event->time_ns = bus->simulated ? bus->now_ns : clock_now_ns();
    if (event->category == 0 && is_memory(event->kind)) {
        event->category = bus->category;
    }
    for (uint32_t i = 0; i < bus->sink_count; i++) {
        bus->sinks[i].sink(bus->sinks[i].context, event);
    }
}

void trace_note(trace_bus *bus, hr_event_kind kind, uint64_t count, const char *text)
{
    hr_event event = {.kind = (uint8_t)kind, .u.note.count = count};
    (void)snprintf(event.u.note.text, sizeof event.u.note.text, "%s", text == NULL ? "" : text); // cut to fit
    trace_emit(bus, &event);
}
