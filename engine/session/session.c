// SPDX-License-Identifier: Apache-2.0
// The public side of a session. Every function first takes in what has come, and leaves the descriptor readable as long
// as something waits to be taken.
#include "headroom/session.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "session/session_impl.h"

// ---- what all kinds have --------------------------------------------------------------------------------------

hr_status session_open(hr_session *s, const session_ops *ops, bool is_polled, hr_err *err)
{
    s->ops = ops;
    s->epoll_fd = s->flag_fd = -1;
    hr_knobs_init(&s->knobs);
    if (!is_polled) {
        return HR_OK;
    }
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->flag_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll_fd < 0 || s->flag_fd < 0 || !session_watch_fd(s, s->flag_fd, EPOLLIN)) {
        (void)HR_FAIL(err, STATE, "no descriptor to wait for a training was to be had: %s", strerror(errno));
        session_close(s);
        return HR_STATE;
    }
    return HR_OK;
}

void session_close(hr_session *s)
{
    if (s->flag_fd >= 0) {
        (void)close(s->flag_fd);
    }
    if (s->epoll_fd >= 0) {
        (void)close(s->epoll_fd);
    }
    s->flag_fd = s->epoll_fd = -1;
    hr_report_deinit(&s->report);
    hr_session_heap_deinit(&s->heap);
}

bool session_watch_fd(hr_session *s, int fd, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.fd = fd};
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &wanted) == 0 ||
           (errno == EEXIST && epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &wanted) == 0);
}

void session_unwatch_fd(hr_session *s, int fd)
{
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void session_set_about(hr_session *s, const char *preset, const hr_knobs *knobs)
{
    (void)text_copy(s->preset, sizeof s->preset, preset);
    s->knobs = *knobs;
    s->knows_about = true;
}

void session_set_report(hr_session *s, hr_report *report)
{
    hr_report_deinit(&s->report);
    s->report = *report;
    s->report_version++;
}

void session_set_error(hr_session *s, const hr_err *err)
{
    s->error = *err;
    s->error_version++;
}

void session_set_heap(hr_session *s, hr_session_heap *heap)
{
    hr_session_heap_deinit(&s->heap);
    s->heap = *heap;
    s->heap_version++;
}

static bool has_news(const hr_session *s)
{
    return s->report_version > s->report_taken || s->error_version > s->error_taken ||
           s->heap_version > s->heap_taken || s->said.total > s->said_taken || (s->ended && !s->end_taken) ||
           s->ops->has_events(s);
}

void session_flag(hr_session *s)
{
    const bool news = s->flag_fd >= 0 && has_news(s);
    uint64_t count = 1;
    ssize_t done = 0;
    if (news && !s->flagged) {
        done = write(s->flag_fd, &count, sizeof count);
    } else if (!news && s->flagged) {
        done = read(s->flag_fd, &count, sizeof count);
    }
    (void)done; // a counter of 0 and 1 takes both
    s->flagged = news;
}

static void pump(hr_session *s)
{
    if (s->ops->pump != NULL) {
        s->ops->pump(s);
    }
}

// ---- starting and ending --------------------------------------------------------------------------------------

hr_status hr_session_stop(hr_session *s, hr_err *err)
{
    if (s == NULL) {
        return HR_OK;
    }
    hr_status status = s->ops->stop(s, err);
    session_close(s);
    hr_free(s);
    return status;
}

bool hr_session_try_stop(hr_session *s)
{
    return s->ops->try_stop == NULL || s->ops->try_stop(s);
}

bool hr_session_advance(hr_session *s, unsigned pieces)
{
    return s->ops->advance != NULL && s->ops->advance(s, pieces);
}

// ---- asking ---------------------------------------------------------------------------------------------------

bool hr_session_is_read_only(const hr_session *s)
{
    return s->ops->send == NULL;
}

bool hr_session_about(const hr_session *s, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs)
{
    if (s->knows_about) {
        (void)text_copy(preset, HR_KNOB_TEXT_MAX, s->preset);
        *knobs = s->knobs;
    }
    return s->knows_about;
}

bool hr_session_send(hr_session *s, const hr_command *command)
{
    pump(s);
    bool sent = s->ops->send != NULL && !s->ended && s->ops->send(s, command);
    session_flag(s);
    return sent;
}

int hr_session_fd(const hr_session *s)
{
    return s->epoll_fd;
}

size_t hr_session_events(hr_session *s, hr_event *out, size_t max, uint64_t *lost)
{
    uint64_t gone = 0;
    pump(s);
    size_t count = s->ops->events(s, out, max, &gone);
    if (lost != NULL) {
        *lost = gone;
    }
    session_flag(s);
    return count;
}

hr_status session_copy_report(const hr_report *from, hr_report *to)
{
    const size_t layers = from->model.layer_count, tensors = from->memory.at_peak.tensor_count;
    *to = *from;
    to->model.layers = hr_calloc(layers, sizeof *to->model.layers);
    to->memory.at_peak.tensors = hr_calloc(tensors, sizeof *to->memory.at_peak.tensors);
    if ((layers > 0 && to->model.layers == NULL) || (tensors > 0 && to->memory.at_peak.tensors == NULL)) {
        hr_report_deinit(to);
        return HR_NOMEM;
    }
    for (size_t k = 0; k < layers; k++) {
        to->model.layers[k] = from->model.layers[k];
    }
    for (size_t k = 0; k < tensors; k++) {
        to->memory.at_peak.tensors[k] = from->memory.at_peak.tensors[k];
    }
    return HR_OK;
}

bool hr_session_report(hr_session *s, uint64_t *version, hr_report *report)
{
    pump(s);
    bool newer = s->report_version > *version && session_copy_report(&s->report, report) == HR_OK;
    if (newer) {
        *version = s->report_taken = s->report_version;
    }
    session_flag(s);
    return newer;
}

bool hr_session_error(hr_session *s, uint64_t *version, hr_err *err)
{
    pump(s);
    bool newer = s->error_version > *version;
    if (newer) {
        *err = s->error;
        *version = s->error_taken = s->error_version;
    }
    session_flag(s);
    return newer;
}

void hr_session_ask_heap(hr_session *s)
{
    if (s->ops->ask_heap != NULL && !s->ended) {
        s->ops->ask_heap(s);
    }
}

hr_status session_copy_heap(const hr_session_heap *from, hr_session_heap *to)
{
    *to = (hr_session_heap){.seq = from->seq, .chunks = hr_calloc(from->count, sizeof *to->chunks)};
    if (to->chunks == NULL && from->count > 0) {
        return HR_NOMEM;
    }
    to->count = from->count;
    for (size_t k = 0; k < to->count; k++) {
        to->chunks[k] = from->chunks[k];
    }
    return HR_OK;
}

bool hr_session_heap_now(hr_session *s, uint64_t *version, hr_session_heap *heap)
{
    pump(s);
    bool newer = s->heap_version > *version && session_copy_heap(&s->heap, heap) == HR_OK;
    if (newer) {
        *version = s->heap_taken = s->heap_version;
    }
    session_flag(s);
    return newer;
}

// ---- the guest ------------------------------------------------------------------------------------------------

bool hr_session_order(hr_session *s, hr_guest_order order, const char *words)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_GUEST, .knob = (uint32_t)order};
    size_t left = strlen(words);
    bool sent = left < HR_GUEST_TEXT_MAX && s->ops->interrupt != NULL;
    do {
        const size_t piece = left < sizeof c.text - 1 ? left : sizeof c.text - 1;
        memcpy(c.text, words, piece);
        c.text[piece] = '\0';
        words += piece;
        left -= piece;
        c.count = left > 0;
        sent = sent && hr_session_send(s, &c);
    } while (sent && left > 0);
    return sent;
}

void hr_session_interrupt(hr_session *s)
{
    if (s->ops->interrupt != NULL && !s->ended) {
        s->ops->interrupt(s);
    }
}

size_t hr_session_said(hr_session *s, uint64_t *cursor, char *out, size_t size)
{
    pump(s);
    const size_t bytes = said_read(&s->said, cursor, out, size);
    s->said_taken = *cursor > s->said_taken ? *cursor : s->said_taken;
    session_flag(s);
    return bytes;
}

// ---- life and death -------------------------------------------------------------------------------------------

hr_session_life hr_session_get_life(hr_session *s, hr_session_end *end)
{
    hr_session_end unread;
    pump(s);
    hr_session_life life = s->ops->life(s, end != NULL ? end : &unread);
    s->end_taken = s->end_taken || life == HR_SESSION_ENDED;
    session_flag(s);
    return life;
}

void hr_session_kill(hr_session *s)
{
    if (s->ops->kill != NULL && !s->ended) {
        s->ops->kill(s);
    }
}

void hr_session_suspend(hr_session *s, bool suspend)
{
    if (s->ops->suspend != NULL && !s->ended) {
        s->ops->suspend(s, suspend);
    }
}
