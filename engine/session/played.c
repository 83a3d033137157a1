// SPDX-License-Identifier: Apache-2.0
// A session that plays a trace: events are due by their times, from the first look on.
#include "session/played.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "formats/hrt.h"
#include "session/session_impl.h"

enum { SIGN_BYTES = 4096 };

typedef struct played_session {
    hr_session base;
    played_events events;
    uint32_t next;
    uint64_t begin_ns; // by the clock, when the first event was due
    int timer_fd;      // readable when the next one is
} played_session;

static played_session *self(hr_session *s)
{
    return (played_session *)s; // its first member
}

// ---- reading --------------------------------------------------------------------------------------------------

typedef struct reading {
    played_events *events;
    const input *in;
} reading;

static hr_status add_event(void *context, const hr_event *event, const char *tensor, hr_err *err)
{
    reading *r = context;
    hr_status status = HR_OK;
    (void)tensor;
    if (!event_is_valid(event)) {
        return HR_FAIL(err, READ, "%s: event %u is none of this version", r->in->name, r->events->count);
    }
    hr_event *e = played_push(r->events, r->in, &status, err);
    if (e != NULL) {
        *e = *event;
    }
    return status;
}

static hr_status read_trace(input *in, played_events *events, hr_err *err)
{
    const size_t bytes = input_ahead(in, SIGN_BYTES);
    reading r = {.events = events, .in = in};
    if (trace_format_hrt.recognise(input_here(in), bytes)) {
        return hrt_read_events(in, add_event, &r, err);
    }
    if (played_is_csv(input_here(in), bytes)) {
        return played_read_csv(in, events, err);
    }
    HR_TRY(input_status(in, err));
    (void)HR_FAIL(err, READ,
                  "%s: needed a trace of headroom (.hrt, .csv) or a watch socket, had something else",
                  in->name);
    hr_err_try(err, "headroom replay %s", in->name);
    return HR_READ;
}

// ---- playing --------------------------------------------------------------------------------------------------

// Times that run backwards are due at once.
static uint64_t due_ns(const played_session *p, uint32_t k)
{
    const uint64_t first_ns = p->events.data[0].time_ns, time_ns = p->events.data[k].time_ns;
    const uint64_t after_ns = time_ns > first_ns ? time_ns - first_ns : 0;
    return after_ns < UINT64_MAX - p->begin_ns ? p->begin_ns + after_ns : UINT64_MAX;
}

static bool is_due(const played_session *p)
{
    return p->next < p->events.count && due_ns(p, p->next) <= clock_now_ns();
}

static void set_timer(played_session *p)
{
    const uint64_t second_ns = UINT64_C(1000000000);
    struct itimerspec when = {{0, 0}, {0, 0}}; // off
    if (p->next < p->events.count) {
        uint64_t at_ns = due_ns(p, p->next);
        when.it_value.tv_sec = (time_t)(at_ns / second_ns);
        when.it_value.tv_nsec = (long)(at_ns % second_ns);
    }
    (void)timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static size_t take_events(hr_session *s, hr_event *out, size_t max, uint64_t *lost)
{
    played_session *p = self(s);
    size_t count = 0;
    *lost = 0;
    while (count < max && is_due(p)) {
        out[count++] = p->events.data[p->next++];
    }
    if (count > 0) {
        set_timer(p);
    }
    s->ended = p->next == p->events.count;
    return count;
}

static bool has_events(const hr_session *s)
{
    return is_due((const played_session *)s);
}

static hr_session_life get_life(hr_session *s, hr_session_end *end)
{
    played_session *p = self(s);
    if (!s->ended) {
        return HR_SESSION_LIVE;
    }
    const uint32_t count = p->events.count;
    *end = (hr_session_end){.step = count > 0 ? p->events.data[count - 1].step : 0,
                            .instr = HR_NO_ID,
                            .saved_step = HR_NONE,
                            .sentence = "the trace is over"};
    return HR_SESSION_ENDED;
}

static void close_played(played_session *p)
{
    if (p->timer_fd >= 0) {
        (void)close(p->timer_fd);
    }
    vec_deinit(&p->events);
}

static hr_status stop(hr_session *s, hr_err *err)
{
    (void)err;
    close_played(self(s));
    return HR_OK;
}

static const session_ops ops = {
    .events = take_events,
    .has_events = has_events,
    .life = get_life,
    .stop = stop,
};

static hr_status open_played(played_session *p, const char *path, hr_err *err)
{
    input in = {0};
    HR_TRY(session_open(&p->base, &ops, true, err));
    HR_TRY(input_open(&in, path, err));
    hr_status status = read_trace(&in, &p->events, err);
    input_close(&in);
    HR_TRY(status);
    p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (p->timer_fd < 0 || !session_watch_fd(&p->base, p->timer_fd, EPOLLIN)) {
        return HR_FAIL(err, STATE, "no clock to play a trace by was to be had: %s", strerror(errno));
    }
    p->begin_ns = clock_now_ns();
    p->base.ended = p->events.count == 0;
    set_timer(p);
    return HR_OK;
}

hr_status played_open(const char *path, hr_session **out, hr_err *err)
{
    played_session *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a session");
    }
    p->timer_fd = p->base.epoll_fd = p->base.flag_fd = -1;
    hr_status status = open_played(p, path, err);
    if (status != HR_OK) {
        close_played(p);
        session_close(&p->base);
        hr_free(p);
        return status;
    }
    *out = &p->base;
    return HR_OK;
}
