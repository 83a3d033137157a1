// SPDX-License-Identifier: Apache-2.0
#include "insight/replay_export.h"

// Tags are names, or events where everything was planned beforehand.
static void describe(void *context, const hr_event *event, event_context *out)
{
    const replay_player *p = ((const replay_export *)context)->player;
    uint32_t tag = event->u.memory.tensor;
    if (p->t != NULL) {
        out->tensor = p->tags_events ? replay_name(p->t, tag) : intern_text(&p->t->names, tag);
    }
}

static const char *counters(void *context, uint8_t device, heap_counters *out)
{
    const replay_player *p = ((const replay_export *)context)->player;
    if (device >= TRACE_DEVICES_MAX || p->devices[device].heap == NULL) {
        return NULL;
    }
    *out = allocator_get_stats(p->devices[device].heap);
    return p->devices[device].heap->ops->name;
}

static hr_status snapshot(void *context, uint8_t device, heap_snapshot *out, hr_err *err)
{
    const replay_player *p = ((const replay_export *)context)->player;
    *out = (heap_snapshot){0};
    return device < TRACE_DEVICES_MAX ? replay_snapshot(p, device, out, err) : HR_OK;
}

hr_status replay_export_open(replay_export *x, const char *file, replay_player *player, uint32_t device_count,
                             replay_setup *setup, hr_err *err)
{
    *x = (replay_export){.player = player};
    *player = (replay_player){0};
    if (file == NULL) {
        return HR_OK;
    }
    event_source source = {.describe = describe,
                           .counters = counters,
                           .snapshot = snapshot,
                           .context = x,
                           .device_count = device_count > 0 ? device_count : 1};
    HR_TRY(exporter_open(file, &source, &x->out, err));
    trace_bus_init(&x->bus);
    x->bus.simulated = true; // the clock is the trace's own
    (void)trace_attach(&x->bus, exporter_sink, x->out);
    setup->bus = &x->bus;
    return HR_OK;
}

hr_status replay_export_close(replay_export *x, hr_err *err)
{
    exporter *out = x->out;
    if (out == NULL) {
        return HR_OK;
    }
    trace_detach(&x->bus, exporter_sink, out);
    x->out = NULL;
    return exporter_close(out, err);
}

void replay_export_abandon(replay_export *x)
{
    if (x->out != NULL) {
        trace_detach(&x->bus, exporter_sink, x->out);
        exporter_abandon(x->out);
        x->out = NULL;
    }
}
