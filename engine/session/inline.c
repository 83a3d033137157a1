// SPDX-License-Identifier: Apache-2.0
// A session without process, thread or clock: the engine moves when it is advanced, and the same calls give the same
// events. For scripts and tests.
#include <string.h>

#include "base/host_mem.h"
#include "base/vec.h"
#include "session/end.h"
#include "session/engine_loop.h"
#include "session/session_impl.h"

enum { COMMANDS_MAX = 64, EVENTS_MAX = 1 << 20 }; // beyond these the oldest events are lost

typedef struct inline_session {
    hr_session base;
    open_request request;
    session_callbacks out;
    trace_heartbeat heartbeat;
    engine_loop *loop;
    const hr_guest_ops *guest;
    hr_command commands[COMMANDS_MAX];
    uint32_t first_command, command_count;
    VEC(hr_event) events;
    uint32_t first_event; // those before were taken
    uint64_t lost;
    bool heap_wanted, over;
} inline_session;

static inline_session *self(hr_session *s)
{
    return (inline_session *)s; // its first member
}

// ---- the callbacks -----------------------------------------------------------------------------------------------

// What was taken makes room; when nothing was and there is too much, the older half goes.
static void make_room(inline_session *s)
{
    uint32_t count = s->events.count - s->first_event;
    if (s->first_event == 0 && count >= EVENTS_MAX) {
        s->first_event = count / 2;
        s->lost += count / 2;
        count -= count / 2;
    }
    if (s->first_event > 0 && s->events.count == s->events.capacity) {
        memmove(s->events.data, s->events.data + s->first_event, count * sizeof *s->events.data);
        s->events.count = count;
        s->first_event = 0;
    }
}

static void on_event(void *context, const hr_event *event)
{
    inline_session *s = context;
    make_room(s);
    hr_event *place = vec_push(&s->events);
    if (place != NULL) {
        *place = *event;
    } else {
        s->lost++;
    }
}

static void on_report(void *context, const hr_report *report)
{
    hr_report copy;
    if (session_copy_report(report, &copy) == HR_OK) {
        session_set_report(context, &copy);
    }
}

static void on_error(void *context, const hr_err *err)
{
    session_set_error(context, err);
}

static void on_knobs(void *context, const hr_knobs *knobs)
{
    inline_session *s = context;
    session_set_about(&s->base, s->request.preset, knobs);
}

static void on_heap(void *context, const hr_session_heap *heap)
{
    hr_session_heap copy;
    if (session_copy_heap(heap, &copy) == HR_OK) {
        session_set_heap(context, &copy);
    }
}

static void on_said(void *context, hr_guest_line kind, const char *text, size_t length, bool now)
{
    inline_session *s = context;
    (void)now;
    said_add(&s->base.said, kind, text, length);
}

static bool wants_heap(void *context)
{
    inline_session *s = context;
    bool wanted = s->heap_wanted;
    s->heap_wanted = false;
    return wanted;
}

static bool take(void *context, hr_command *command)
{
    inline_session *s = context;
    if (s->command_count == 0) {
        return false;
    }
    *command = s->commands[s->first_command];
    s->first_command = (s->first_command + 1) % COMMANDS_MAX;
    s->command_count--;
    return true;
}

// ---- the session ----------------------------------------------------------------------------------------------

static size_t take_events(hr_session *session, hr_event *out, size_t max, uint64_t *lost)
{
    inline_session *s = self(session);
    size_t count = s->events.count - s->first_event;
    count = count < max ? count : max;
    for (size_t k = 0; k < count; k++) {
        out[k] = s->events.data[s->first_event++];
    }
    *lost = s->lost;
    s->lost = 0;
    return count;
}

static bool has_events(const hr_session *session)
{
    const inline_session *s = (const inline_session *)session;
    return s->first_event < s->events.count;
}

static bool send_command(hr_session *session, const hr_command *command)
{
    inline_session *s = self(session);
    if (s->command_count == COMMANDS_MAX) {
        return false;
    }
    s->commands[(s->first_command + s->command_count++) % COMMANDS_MAX] = *command;
    return true;
}

static void ask_heap(hr_session *session)
{
    self(session)->heap_wanted = true;
}

static void interrupt(hr_session *session)
{
    if (self(session)->guest != NULL) {
        self(session)->guest->interrupt();
    }
}

// A report after every advance that did something: as often as a caller may want one, whatever the clock.
static bool advance(hr_session *session, unsigned pieces)
{
    inline_session *s = self(session);
    bool idle = false;
    for (unsigned k = 0; k < pieces && !idle && !s->over; k++) {
        s->over = !engine_loop_turn(s->loop, &idle);
    }
    session->ended = session->ended || s->over;
    if (!idle && !s->over) {
        engine_loop_report(s->loop);
    }
    return !idle && !s->over;
}

static hr_session_life get_life(hr_session *session, hr_session_end *end)
{
    if (!session->ended) {
        return HR_SESSION_LIVE;
    }
    *end = (hr_session_end){.by_us = true,
                            .step = engine_loop_steps(self(session)->loop),
                            .instr = HR_NO_ID,
                            .saved_step = HR_NONE,
                            .sentence = "the training was ended"};
    return HR_SESSION_ENDED;
}

static void close_inline(inline_session *s)
{
    engine_loop_destroy(s->loop);
    vec_deinit(&s->events);
}

static hr_status stop(hr_session *session, hr_err *err)
{
    inline_session *s = self(session);
    bool idle = false;
    s->command_count = 0;
    (void)send_command(session, &(hr_command){.version = HR_EVENT_VERSION, .kind = HR_COMMAND_QUIT});
    while (!s->over) {
        s->over = !engine_loop_turn(s->loop, &idle);
    }
    hr_status status = engine_loop_ending(s->loop, err);
    close_inline(s);
    return status;
}

static const session_ops ops = {
    .events = take_events,
    .has_events = has_events,
    .send = send_command,
    .ask_heap = ask_heap,
    .interrupt = interrupt,
    .advance = advance,
    .life = get_life,
    .stop = stop,
};

static hr_status open_inline(inline_session *s, const hr_session_options *options, hr_err *err)
{
    s->out = (session_callbacks){.context = s,
                                 .event = on_event,
                                 .report = on_report,
                                 .error = on_error,
                                 .knobs = on_knobs,
                                 .heap = on_heap,
                                 .wants_heap = wants_heap,
                                 .take = take,
                                 .said = on_said,
                                 .heartbeat = &s->heartbeat};
    HR_TRY(session_open(&s->base, &ops, false, err));
    s->guest = options->guest;
    HR_TRY(session_request(options, &s->request, err));
    HR_TRY(engine_loop_create(&s->request, &s->out, options->guest, &s->loop, err));
    on_knobs(s, engine_loop_knobs(s->loop));
    engine_loop_report(s->loop);
    return HR_OK;
}

hr_status hr_session_start_inline(const hr_session_options *options, hr_session **out, hr_err *err)
{
    inline_session *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a session");
    }
    hr_status status = open_inline(s, options, err);
    if (status != HR_OK) {
        close_inline(s);
        session_close(&s->base);
        hr_free(s);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}
