// SPDX-License-Identifier: Apache-2.0
// A session whose engine is in another process: our worker, or one that lets itself be watched.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "session/client_impl.h"
#include "session/end.h"

enum { COMMANDS_MAX = 64, STOP_POLL_MS = 100, TIMEOUT_SAVE_S = 60, LAST_ROUNDS = 1024 };

static const uint64_t second_ns = UINT64_C(1000000000);

static client_session *self(hr_session *s)
{
    return (client_session *)s; // its first member
}

static const client_session *self_of(const hr_session *s)
{
    return (const client_session *)s;
}

// ---- how it is ------------------------------------------------------------------------------------------------

static const trace_heartbeat_copy *heartbeat_of(const client_session *c, trace_heartbeat_copy *heartbeat)
{
    if (c->reader == NULL) {
        return NULL;
    }
    *heartbeat = trace_reader_heartbeat(c->reader);
    return heartbeat;
}

static bool has_moved(const trace_heartbeat_copy *a, const trace_heartbeat_copy *b)
{
    return a->beats != b->beats || a->instr != b->instr || a->step != b->step || a->commands != b->commands;
}

static bool is_busy(const client_session *c, const trace_heartbeat_copy *p)
{
    return p == NULL || p->state == HR_ENGINE_RUNNING || (c->owns && p->commands < c->sent);
}

static void watch_heartbeat(client_session *c)
{
    trace_heartbeat_copy now = {.instr = HR_NO_ID};
    const trace_heartbeat_copy *p = heartbeat_of(c, &now);
    if (c->silence.since_ns == 0 || c->silence.suspended || !is_busy(c, p) ||
        has_moved(&now, &c->silence.heartbeat)) {
        c->silence.since_ns = clock_now_ns();
        c->silence.heartbeat = now;
    }
}

// Whether a file of the user's is to be written before it ends.
static bool owes_save(const client_session *c, const trace_heartbeat_copy *p)
{
    return hr_knob_text(&c->base.knobs, HR_KNOB_TRAIN_SAVE)[0] != '\0' ||
           (p != NULL ? p->commands : 0) < c->save_sent;
}

// One that is to end and to save first does so after the instruction that it is in, however long that takes.
static uint64_t silent_ns(const client_session *c, const trace_heartbeat_copy *p)
{
    const bool saves = c->stopped_ns != 0 && owes_save(c, p);
    uint64_t timeout_s = p != NULL && p->timeout_s <= TRACE_TIMEOUT_MAX_S ? p->timeout_s : 0;
    timeout_s = saves && timeout_s < TIMEOUT_SAVE_S ? TIMEOUT_SAVE_S : timeout_s;
    uint64_t timeout_ns = timeout_s * second_ns;
    uint64_t passed_ns = clock_now_ns() - c->silence.since_ns;
    timeout_ns = timeout_ns > HR_SESSION_SILENT_NS ? timeout_ns : HR_SESSION_SILENT_NS;
    return passed_ns >= timeout_ns ? passed_ns : 0;
}

static void tidy_up(const client_session *c)
{
    const char *save = c->base.knows_about ? hr_knob_text(&c->base.knobs, HR_KNOB_TRAIN_SAVE) : "";
    if (c->socket_path[0] != '\0') {
        watch_remove(c->socket_path);
    }
    if (c->autosave_path[0] != '\0') {
        file_remove_leftovers(c->autosave_path);
    }
    if (save[0] != '\0') {
        file_remove_leftovers(save);
    }
}

static void note_child_end(client_session *c)
{
    trace_heartbeat_copy heartbeat;
    const bool lives = !c->child.reaped;
    for (int k = 0; k < LAST_ROUNDS && client_take_messages(c); k++) { // what it said before
    }
    c->end = (hr_session_end){.by_us = c->killed || c->broken};
    end_describe(&c->end, &c->child, heartbeat_of(c, &heartbeat), end_kernel_kills() > c->kernel_kills);
    if (lives) {
        c->end.exit_code = -1;
        (void)snprintf(c->end.sentence, sizeof c->end.sentence,
                       "the worker was killed, and the kernel does not let it go: process %ld waits for a "
                       "disk or a driver",
                       (long)c->child.pid);
    } else if (c->broken) {
        (void)text_copy(c->end.sentence, sizeof c->end.sentence,
                        "the worker was ended from here: what it said was broken");
    } else if (c->said_end && c->note.status != HR_OK && c->end.signal == 0) {
        (void)text_copy(c->end.sentence, sizeof c->end.sentence, c->note.err.sentence);
        c->end.device_lost = c->note.status == HR_DEVICE_LOST;
    }
    session_unwatch_fd(&c->base, c->child.pidfd);
    session_unwatch_fd(&c->base, wire_fd(c->wire));
    tidy_up(c);
    c->base.ended = true;
}

// How a process that is not our child ended is known from itself alone.
static void note_watched_end(client_session *c)
{
    trace_heartbeat_copy heartbeat;
    c->end = (hr_session_end){.exit_code = c->said_end ? hr_status_exit_code(c->note.status) : -1};
    end_set_place(&c->end, heartbeat_of(c, &heartbeat));
    (void)text_copy(c->end.sentence, sizeof c->end.sentence,
                    c->broken                 ? "what the watched process said was broken"
                    : !c->said_end            ? "it was killed: its process is gone without a word"
                    : c->note.status != HR_OK ? c->note.err.sentence
                                              : "the training was ended");
    session_unwatch_fd(&c->base, wire_fd(c->wire));
    c->base.ended = true;
}

static void kill_child(hr_session *s)
{
    client_session *c = self(s);
    c->killed = true;
    c->killed_ns = c->killed_ns == 0 ? clock_now_ns() : c->killed_ns;
    child_signal(&c->child, SIGKILL);
}

static bool is_beyond_killing(const client_session *c)
{
    const uint64_t timeout_ns = (uint64_t)CHILD_TIMEOUT_MS * 1000000;
    return c->killed_ns != 0 && clock_now_ns() - c->killed_ns > timeout_ns;
}

// The child's end is yet to come; one that goes on without being reached is killed.
static void outlive_socket(client_session *c)
{
    const uint64_t now_ns = clock_now_ns();
    if (c->child.pidfd >= 0) {
        session_unwatch_fd(&c->base, wire_fd(c->wire));
    }
    c->closed_ns = c->closed_ns == 0 ? now_ns : c->closed_ns;
    if (now_ns - c->closed_ns > HR_SESSION_SILENT_NS) {
        kill_child(&c->base);
    }
}

static void pump(hr_session *s)
{
    client_session *c = self(s);
    if (s->ended) {
        return;
    }
    (void)client_take_messages(c);
    if (c->owns) {
        child_listen(&c->child);
        if (c->broken) {
            kill_child(s);
        }
        if (child_reap(&c->child) || is_beyond_killing(c)) {
            note_child_end(c);
            return;
        }
    } else if (c->broken || wire_is_closed(c->wire)) {
        note_watched_end(c);
        return;
    }
    if (wire_is_closed(c->wire)) {
        outlive_socket(c);
    } else {
        const bool waits = (wire_events(c->wire) & POLLOUT) != 0;
        (void)session_watch_fd(s, wire_fd(c->wire), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    watch_heartbeat(c);
}

// ---- what is asked --------------------------------------------------------------------------------------------

// Records that are none are left out, and count as lost.
static size_t leave_out_invalid(hr_event *events, size_t count, uint64_t *lost)
{
    size_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        if (event_is_valid(&events[k])) {
            if (kept != k) {
                events[kept] = events[k];
            }
            kept++;
        }
    }
    *lost += count - kept;
    return kept;
}

static size_t take_events(hr_session *s, hr_event *out, size_t max, uint64_t *lost)
{
    client_session *c = self(s);
    if (c->reader == NULL) {
        return 0;
    }
    size_t count = trace_reader_take(c->reader, out, max, lost);
    if (c->woken && count < max) {
        uint64_t cursor = trace_reader_taken(c->reader);
        c->woken = !wire_write(c->wire, MESSAGE_TAKEN, &cursor, sizeof cursor, -1);
    }
    return leave_out_invalid(out, count, lost);
}

static bool has_events(const hr_session *s)
{
    const client_session *c = self_of(s);
    return c->reader != NULL && trace_reader_waits(c->reader);
}

static uint64_t commands_under_way(const client_session *c)
{
    trace_heartbeat_copy heartbeat;
    const trace_heartbeat_copy *p = heartbeat_of(c, &heartbeat);
    uint64_t done = p != NULL ? p->commands : 0;
    return done < c->sent ? c->sent - done : 0;
}

static bool send_command(hr_session *s, const hr_command *command)
{
    client_session *c = self(s);
    wire_out body = {0};
    if (commands_under_way(c) >= COMMANDS_MAX) {
        return false;
    }
    put_command(&body, command);
    bool sent = !body.bad && wire_write(c->wire, MESSAGE_COMMAND, body.data, (uint32_t)body.bytes, -1);
    wire_out_deinit(&body);
    c->sent += sent;
    const bool writes = command->kind == HR_COMMAND_SAVE || command->kind == HR_COMMAND_KEEP;
    c->save_sent = sent && writes ? c->sent : c->save_sent;
    return sent;
}

static void ask_heap(hr_session *s)
{
    (void)wire_write(self(s)->wire, MESSAGE_ASK_HEAP, NULL, 0, -1);
}

static void interrupt(hr_session *s)
{
    (void)wire_write(self(s)->wire, MESSAGE_INTERRUPT, NULL, 0, -1);
}

static hr_session_life get_life(hr_session *s, hr_session_end *end)
{
    client_session *c = self(s);
    trace_heartbeat_copy heartbeat;
    if (s->ended) {
        *end = c->end;
        return HR_SESSION_ENDED;
    }
    const trace_heartbeat_copy *p = heartbeat_of(c, &heartbeat);
    uint64_t passed_ns = silent_ns(c, p);
    if (passed_ns == 0) {
        return HR_SESSION_LIVE;
    }
    end_describe_silence(end, p, passed_ns);
    return HR_SESSION_SILENT;
}

static void suspend_child(hr_session *s, bool suspend)
{
    client_session *c = self(s);
    child_signal(&c->child, suspend ? SIGSTOP : SIGCONT);
    c->silence.suspended = suspend;
    watch_heartbeat(c);
}

// ---- ending ---------------------------------------------------------------------------------------------------

// With nothing to write it ends in no time; when it goes on all the same it has not listened.
static bool is_overdue(const client_session *c)
{
    trace_heartbeat_copy heartbeat;
    return !owes_save(c, heartbeat_of(c, &heartbeat)) &&
           clock_now_ns() - c->stopped_ns > HR_SESSION_SILENT_NS;
}

static void tell_to_end(client_session *c)
{
    suspend_child(&c->base, false);
    (void)wire_write(c->wire, MESSAGE_QUIT, NULL, 0, -1);
    c->sent++;
    c->stopped_ns = clock_now_ns();
}

static bool try_stop(hr_session *s)
{
    client_session *c = self(s);
    hr_session_end quiet;
    pump(s);
    if (!s->ended && c->stopped_ns == 0) {
        tell_to_end(c);
    }
    if (!s->ended && (is_overdue(c) || get_life(s, &quiet) == HR_SESSION_SILENT)) {
        kill_child(s);
    }
    return s->ended;
}

// What is not taken any more must not keep it awake.
static void wait_for_end(client_session *c)
{
    session_unwatch_fd(&c->base, c->base.flag_fd);
    while (!try_stop(&c->base)) {
        struct pollfd fd = {.fd = c->base.epoll_fd, .events = POLLIN};
        (void)poll(&fd, 1, STOP_POLL_MS);
    }
}

static hr_status stop_child(client_session *c, hr_err *err)
{
    trace_heartbeat_copy heartbeat;
    wait_for_end(c);
    if (c->stopped_ns == 0) {
        return HR_OK; // its end was told
    }
    if (c->said_end) {
        if (c->note.status != HR_OK && err != NULL) {
            *err = c->note.err;
        }
        return c->note.status;
    }
    if (c->killed && !owes_save(c, heartbeat_of(c, &heartbeat))) {
        return HR_OK; // on a machine with much to do it did not end in time, and nothing of it was waited for
    }
    return HR_FAIL(err, STATE, "%s", c->end.sentence);
}

void client_close(client_session *c)
{
    wire_destroy(c->wire);
    trace_reader_close(c->reader);
    if (c->owns) {
        child_close(&c->child);
    }
}

static hr_status stop(hr_session *s, hr_err *err)
{
    client_session *c = self(s);
    hr_status status = c->owns ? stop_child(c, err) : HR_OK;
    client_close(c);
    return status;
}

const session_ops client_own_worker = {
    .pump = pump,
    .events = take_events,
    .has_events = has_events,
    .send = send_command,
    .ask_heap = ask_heap,
    .interrupt = interrupt,
    .life = get_life,
    .kill = kill_child,
    .suspend = suspend_child,
    .try_stop = try_stop,
    .stop = stop,
};

const session_ops client_watched = {
    .pump = pump,
    .events = take_events,
    .has_events = has_events,
    .ask_heap = ask_heap,
    .life = get_life,
    .stop = stop,
};
