// SPDX-License-Identifier: Apache-2.0
// Lets others watch an engine of this process: a ring and a server beside it. The engine's thread.
#include <unistd.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "session/server.h"
#include "session/watch_socket.h"

enum { RING_EVENTS = 1 << 14, REPORT_NS = 250 * 1000 * 1000 };

struct hr_watch_server {
    trace_ring *ring;
    server *server;
    uint64_t report_due_ns;
};

static hr_status open_watch(hr_watch_server *w, const char *preset, const hr_knobs *knobs, hr_err *err)
{
    HR_TRY(trace_ring_create(RING_EVENTS, &w->ring, err));
    const server_options options = {.ring = w->ring, .watchable = true, .preset = preset, .knobs = knobs};
    return server_start(&options, &w->server, err);
}

hr_status hr_watch_server_start(const char *preset, const hr_knobs *knobs, hr_watch_server **out, hr_err *err)
{
    char path[WATCH_PATH_MAX];
    *out = NULL;
    if (!watch_path(getpid(), path)) {
        return HR_OK;
    }
    hr_watch_server *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to serve watchers");
    }
    hr_status status = open_watch(w, preset, knobs, err);
    if (status != HR_OK) {
        hr_watch_server_stop(w);
        return status;
    }
    *out = w;
    return HR_OK;
}

void hr_watch_server_event(void *context, const hr_event *event)
{
    hr_watch_server *w = context;
    trace_heartbeat *p = trace_ring_heartbeat(w->ring);
    atomic_store_explicit(&p->position.step, event->step, memory_order_relaxed);
    atomic_store_explicit(&p->position.instr, event->instr, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->beats, 1, memory_order_relaxed);
    if (event->kind == HR_EVENT_STATE) {
        atomic_store_explicit(&p->state, (uint32_t)event->u.note.count, memory_order_relaxed);
    }
    server_put(w->server, event);
}

bool hr_watch_server_wants_report(hr_watch_server *w)
{
    return server_is_watched(w->server) && clock_now_ns() >= w->report_due_ns;
}

void hr_watch_server_report(hr_watch_server *w, const hr_report *report)
{
    wire_out body = {0};
    put_report(&body, report);
    server_post(w->server, MESSAGE_REPORT, &body);
    w->report_due_ns = clock_now_ns() + REPORT_NS;
}

void hr_watch_server_stop(hr_watch_server *w)
{
    if (w == NULL) {
        return;
    }
    if (w->server != NULL) {
        wire_out body = {0};
        put_ended(&body, HR_OK, &(hr_err){.status = HR_OK});
        server_post(w->server, MESSAGE_ENDED, &body);
    }
    server_stop(w->server);
    trace_ring_destroy(w->ring);
    hr_free(w);
}
