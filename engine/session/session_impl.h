// SPDX-License-Identifier: Apache-2.0
// A session's inside: what all kinds have in common (session.c), and what each kind does (client.c, inline.c, played.c).
#ifndef SESSION_IMPL_H
#define SESSION_IMPL_H

#include "session/messages.h"

typedef struct session_ops {
    void (*pump)(hr_session *s); // takes in what has come; never waits. NULL: nothing comes
    size_t (*events)(hr_session *s, hr_event *out, size_t max, uint64_t *lost);
    bool (*has_events)(const hr_session *s);
    bool (*send)(hr_session *s, const hr_command *command); // NULL: read-only
    void (*ask_heap)(hr_session *s);                        // NULL: there is none to be had
    void (*interrupt)(hr_session *s);                       // of its guest; NULL: there is none
    bool (*advance)(hr_session *s, unsigned pieces);        // NULL: moves by itself
    hr_session_life (*life)(hr_session *s, hr_session_end *end);
    void (*kill)(hr_session *s);                  // NULL: not ours
    void (*suspend)(hr_session *s, bool suspend); // NULL: not ours
    bool (*try_stop)(hr_session *s);              // NULL: stopping it never waits
    hr_status (*stop)(hr_session *s,
                      hr_err *err); // ends it and frees what is the kind's; the session itself is not
} session_ops;

// Versions count up from 1; `taken` is the newest that somebody has.
struct hr_session {
    const session_ops *ops;
    int epoll_fd; // −1: inline
    int flag_fd;  // an eventfd in it: something that has come in is yet to be taken
    bool flagged;

    bool knows_about;
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;

    hr_report report;
    hr_err error;
    hr_session_heap heap;
    said_log said;
    uint64_t said_taken; // as far as somebody has read
    uint64_t report_version, report_taken, error_version, error_taken, heap_version, heap_taken;
    bool ended, end_taken;
};

// Makes epoll_fd and flag_fd. STATE error.
HR_MUST_CHECK hr_status session_open(hr_session *s, const session_ops *ops, bool is_polled, hr_err *err);
void session_close(hr_session *s); // frees what is common, but not the session
void session_flag(hr_session *s);  // the descriptor says whether something waits to be taken
bool session_watch_fd(hr_session *s, int fd,
                      uint32_t events); // adds it to epoll_fd, or changes what is waited for
void session_unwatch_fd(hr_session *s, int fd);
void session_set_about(hr_session *s, const char *preset, const hr_knobs *knobs);
void session_set_report(hr_session *s, hr_report *report); // takes it over
void session_set_error(hr_session *s, const hr_err *err);
void session_set_heap(hr_session *s, hr_session_heap *heap); // takes it over
HR_MUST_CHECK hr_status session_copy_report(const hr_report *from, hr_report *to);
HR_MUST_CHECK hr_status session_copy_heap(const hr_session_heap *from, hr_session_heap *to);

// played.c
HR_MUST_CHECK hr_status played_open(const char *path, hr_session **out, hr_err *err);
// client_open.c
// What is asked of an engine, checked. USAGE, KNOB, CONSTRAINT errors.
HR_MUST_CHECK hr_status session_request(const hr_session_options *options, open_request *request,
                                        hr_err *err);
HR_MUST_CHECK hr_status client_watch(const char *path, hr_session **out, hr_err *err);

#endif
