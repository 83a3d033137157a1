// SPDX-License-Identifier: Apache-2.0
// What comes from the other process, kind by kind.
#include <unistd.h>

#include "session/client_impl.h"

enum { AT_ONCE = 64 };

static bool take_ring(client_session *c, const wire_message *m)
{
    bool valid = m->fd >= 0 && m->bytes == 0 && c->reader == NULL;
    valid = valid && trace_reader_open(m->fd, &c->reader, NULL) == HR_OK;
    if (m->fd >= 0) {
        (void)close(m->fd);
    }
    return valid;
}

static bool take_about(client_session *c, const wire_message *m)
{
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    bool valid = get_about(m, preset, &knobs);
    if (valid) {
        session_set_about(&c->base, preset, &knobs);
    }
    return valid;
}

static bool take_report(client_session *c, const wire_message *m)
{
    hr_report report;
    bool valid = get_report(m, &report);
    if (valid) {
        session_set_report(&c->base, &report);
    }
    return valid;
}

static bool take_error(client_session *c, const wire_message *m)
{
    hr_err err;
    bool valid = get_error(m, &err);
    if (valid) {
        session_set_error(&c->base, &err);
    }
    return valid;
}

static bool take_heap(client_session *c, const wire_message *m)
{
    hr_session_heap heap;
    bool valid = get_heap(m, &heap);
    if (valid) {
        session_set_heap(&c->base, &heap);
    }
    return valid;
}

static bool take_said(client_session *c, const wire_message *m)
{
    return get_said(m, &c->base.said);
}

static bool take_wake(client_session *c, const wire_message *m)
{
    uint64_t put = 0;
    c->woken = true;
    return get_count(m, &put);
}

static bool take_ended(client_session *c, const wire_message *m)
{
    c->said_end = get_ended(m, &c->note);
    return c->said_end;
}

static bool take_message(client_session *c, const wire_message *m)
{
    static bool (*const take[MESSAGE_KINDS])(client_session * c, const wire_message *m) = {
        [MESSAGE_RING] = take_ring,     [MESSAGE_ABOUT] = take_about, [MESSAGE_WAKE] = take_wake,
        [MESSAGE_REPORT] = take_report, [MESSAGE_ERROR] = take_error, [MESSAGE_HEAP] = take_heap,
        [MESSAGE_ENDED] = take_ended,   [MESSAGE_SAID] = take_said,
    };
    if (m->fd >= 0 && m->kind != MESSAGE_RING) {
        (void)close(m->fd);
        return false;
    }
    return take[m->kind] != NULL && take[m->kind](c, m);
}

bool client_take_messages(client_session *c)
{
    wire_message m;
    int left = AT_ONCE;
    for (; left > 0 && !c->broken && wire_read(c->wire, &m); left--) {
        c->broken = !take_message(c, &m);
    }
    c->broken = c->broken || wire_is_broken(c->wire);
    wire_flush(c->wire);
    return left == 0;
}
