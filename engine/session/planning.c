// SPDX-License-Identifier: Apache-2.0
// The asking side. Of every kind of question the newest is open until its last answer has been taken; what comes for any other
// is dropped. When the process ends, or says something that is no answer, another one is asked what is still open, from
// the beginning; a question that has ended two processes is answered by that.
#include "headroom/planning.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "session/planning_wire.h"
#include "session/spawn.h"

enum {
    TRIES = 2,
    ENDING_MS = 100,
    SILENT_S = 60, // it has what is left of the processor: an answer may take its time
    AT_ONCE = 64
};

typedef struct matter {
    bool open, lost; // lost: it will not be answered
    int tries;
    uint32_t next;  // index of the answer that comes next
    uint32_t taken; // answers that the caller has; an earlier process may have given more than this one
    uint32_t count; // answers at most
    planning_question q;
} matter;

struct hr_planning {
    planner_queue *queue; // in process; NULL: a process of its own
    child process;
    wire *w; // NULL: there is no process
    char preset[PLANNING_PRESET_MAX];
    bool trusts;
    uint64_t asked;                 // questions so far
    uint64_t heard_ns;              // when it last said anything, or was asked while it owed nothing
    char sentence[HR_ERR_TEXT_MAX]; // why the latest process ended
    matter matters[HR_QUESTION_COUNT];
};

// ---- the process ----------------------------------------------------------------------------------------------

static void send_body(hr_planning *p, planning_message kind, wire_out *body)
{
    if (!body->bad) {
        (void)wire_write(p->w, kind, body->data, (uint32_t)body->bytes, -1);
    }
    wire_out_deinit(body);
}

static void send_open(hr_planning *p)
{
    wire_out body = {0};
    if (p->w != NULL && p->preset[0] != '\0') {
        planning_put_open(&body, p->preset, p->trusts);
        send_body(p, PLANNING_OPEN, &body);
    }
}

static hr_status start_process(hr_planning *p, hr_err *err)
{
    HR_TRY(child_spawn(&(child_order){.role = "planner"}, &p->process, err));
    hr_status status = wire_create(p->process.socket, PLANNING_MESSAGES, &p->w, err);
    p->process.socket = -1; // the wire has it, or has closed it
    if (status != HR_OK) {
        child_close(&p->process);
        return status;
    }
    p->heard_ns = clock_now_ns();
    send_open(p);
    return HR_OK;
}

static void say_end(hr_planning *p, const char *offence)
{
    const child *c = &p->process;
    const char *line = child_last_line(c);
    char how[64];
    if (offence != NULL) {
        (void)text_copy(how, sizeof how, offence);
    } else if (c->signal != 0) {
        (void)snprintf(how, sizeof how, "signal %d ended it", c->signal);
    } else {
        (void)snprintf(how, sizeof how, "it ended with code %d", c->exit_code);
    }
    (void)snprintf(p->sentence, sizeof p->sentence, "the planner did not answer: %s%s%s", how,
                   line[0] != '\0' ? "; its last words: " : "", line);
}

static const char no_answer[] = "what it said was no answer";

// Of a process that has closed its socket, or has offended. One that ends of itself does so in no time.
static void end_process(hr_planning *p, const char *offence)
{
    struct pollfd gone = {.fd = p->process.pidfd, .events = POLLIN};
    wire_destroy(p->w);
    p->w = NULL;
    if (offence == NULL) {
        (void)poll(&gone, 1, ENDING_MS);
    }
    const bool ended = child_reap(&p->process);
    child_listen(&p->process);
    child_close(&p->process);
    say_end(p, offence != NULL || ended ? offence : no_answer);
}

static bool send_question(hr_planning *p, matter *m)
{
    wire_out body = {0};
    planning_put_question(&body, &m->q);
    const bool put = !body.bad;
    m->next = 0;
    m->tries++;
    send_body(p, PLANNING_ASK, &body);
    return put;
}

// Asks another process what the one that ended has left open.
static void resume(hr_planning *p)
{
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        matter *m = &p->matters[k];
        m->lost = m->open && (m->lost || m->tries == TRIES ||
                              (p->w == NULL && start_process(p, NULL) != HR_OK) || !send_question(p, m));
    }
}

// ---- life -----------------------------------------------------------------------------------------------------

hr_status hr_planning_start(bool in_process, hr_planning **out, hr_err *err)
{
    hr_planning *p = hr_calloc(1, sizeof *p);
    *out = NULL;
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a planner");
    }
    hr_status status = in_process ? planner_queue_create(&p->queue, err) : start_process(p, err);
    if (status != HR_OK) {
        hr_free(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

void hr_planning_stop(hr_planning *p)
{
    if (p == NULL) {
        return;
    }
    if (p->w != NULL) {
        wire_destroy(p->w);
        child_close(&p->process);
    }
    planner_queue_destroy(p->queue);
    hr_free(p);
}

void hr_planning_open(hr_planning *p, const char *preset, bool trusts)
{
    if (p == NULL) {
        return;
    }
    (void)text_copy(p->preset, sizeof p->preset, preset);
    p->trusts = trusts;
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        p->matters[k].open = false;
    }
    if (p->queue != NULL) {
        planner_queue_open(p->queue, preset, trusts);
    }
    send_open(p);
}

// ---- asking ---------------------------------------------------------------------------------------------------

static bool pass_on(hr_planning *p, matter *m)
{
    if (p->queue != NULL) {
        planner_queue_ask(p->queue, &m->q);
        return true;
    }
    return (p->w != NULL || start_process(p, NULL) == HR_OK) && send_question(p, m);
}

static uint64_t ask(hr_planning *p, hr_question_kind kind, const hr_knobs *knobs, uint32_t count, bool exact)
{
    matter *m = &p->matters[kind];
    p->heard_ns = hr_planning_is_busy(p) ? p->heard_ns : clock_now_ns();
    m->q.kind = kind;
    m->q.number = p->asked + 1;
    m->q.knobs = *knobs;
    m->q.exact = exact;
    m->count = count;
    m->tries = 0;
    m->taken = m->next = 0;
    m->lost = false;
    m->open = p->preset[0] != '\0' && pass_on(p, m);
    p->asked += m->open;
    return m->open ? m->q.number : 0;
}

uint64_t hr_planning_ask_turns(hr_planning *p, const hr_knobs *knobs, const hr_turn *turns, size_t count)
{
    if (p == NULL || count == 0 || count > HR_TURNS_MAX) {
        return 0;
    }
    planning_question *q = &p->matters[HR_QUESTION_TURNS].q;
    q->turn_count = (uint32_t)count;
    memcpy(q->turns, turns, count * sizeof *turns);
    return ask(p, HR_QUESTION_TURNS, knobs, (uint32_t)count, false);
}

uint64_t hr_planning_ask_step_plan(hr_planning *p, const hr_knobs *knobs)
{
    return p == NULL ? 0 : ask(p, HR_QUESTION_STEP_PLAN, knobs, 1, false);
}

uint64_t hr_planning_refine(hr_planning *p, hr_question_kind kind)
{
    if (p == NULL || (kind != HR_QUESTION_TURNS && kind != HR_QUESTION_STEP_PLAN)) {
        return 0;
    }
    const hr_knobs knobs = p->matters[kind].q.knobs;
    return ask(p, kind, &knobs, p->matters[kind].count, true);
}

uint64_t hr_planning_ask_stands(hr_planning *p, const hr_knobs *knobs)
{
    return p == NULL ? 0 : ask(p, HR_QUESTION_STANDS, knobs, 1, true);
}

uint64_t hr_planning_ask_diff(hr_planning *p, const hr_knobs *before, const hr_knobs *after)
{
    if (p == NULL) {
        return 0;
    }
    p->matters[HR_QUESTION_DIFF].q.after = *after;
    return ask(p, HR_QUESTION_DIFF, before, 1, true);
}

uint64_t hr_planning_ask_fit(hr_planning *p, const hr_knobs *knobs, hr_fit_permission permission)
{
    if (p == NULL || permission >= HR_PERMISSION_COUNT) {
        return 0;
    }
    p->matters[HR_QUESTION_FIT].q.permission = permission;
    return ask(p, HR_QUESTION_FIT, knobs, HR_FIT_POINTS_MAX, true);
}

// ---- answers --------------------------------------------------------------------------------------------------

static bool take_here(hr_planning *p, hr_answer *answer)
{
    planning_work work = PLANNING_WORKED;
    while (work == PLANNING_WORKED) {
        work = planner_queue_work(p->queue, answer);
    }
    if (work == PLANNING_ANSWERED && answer->last) {
        p->matters[answer->kind].open = false;
    }
    return work == PLANNING_ANSWERED;
}

// The next in order, the last one where it must be; only a sweep and a refusal may end before.
static bool is_expected(const matter *m, const hr_answer *answer)
{
    const bool may_end =
        m->next + 1 == m->count || answer->kind == HR_QUESTION_FIT || answer->status != HR_OK;
    return answer->index == m->next && m->next < m->count &&
           (answer->last ? may_end : m->next + 1 < m->count);
}

// True: *answer is for the caller. Answers to earlier questions are dropped, and no offence.
static bool accept(hr_planning *p, hr_answer *answer, bool *offended)
{
    matter *m = &p->matters[answer->kind];
    if (!m->open || answer->number != m->q.number) {
        *offended = answer->number == 0 || answer->number > p->asked;
        return false;
    }
    *offended = !is_expected(m, answer);
    if (*offended || m->next++ < m->taken) {
        return false;
    }
    m->taken = m->next;
    m->open = !answer->last;
    return true;
}

static bool read_answer(hr_planning *p, const wire_message *message, hr_answer *answer, bool *offended)
{
    wire_in body = {.data = message->body, .bytes = message->bytes};
    *offended = message->kind != PLANNING_ANSWER || message->fd >= 0 || !planning_get_answer(&body, answer);
    if (*offended) {
        return false;
    }
    const bool accepted = accept(p, answer, offended);
    if (!accepted) {
        hr_answer_deinit(answer);
    }
    return accepted;
}

static bool is_silent(const hr_planning *p)
{
    return hr_planning_is_busy(p) && clock_now_ns() - p->heard_ns > SILENT_S * UINT64_C(1000000000);
}

// Looks at a few messages: a flood of answers to no question cannot block the caller.
static bool take_there(hr_planning *p, hr_answer *answer)
{
    wire_message message;
    bool offended = false;
    child_listen(&p->process);
    wire_flush(p->w);
    for (int left = AT_ONCE; left > 0 && !offended && wire_read(p->w, &message); left--) {
        p->heard_ns = clock_now_ns();
        if (read_answer(p, &message, answer, &offended)) {
            return true;
        }
    }
    const bool silent = is_silent(p);
    if (offended || silent || wire_is_closed(p->w)) {
        end_process(p, offended ? no_answer : silent ? "it was silent for a minute" : NULL);
        resume(p);
    }
    return false;
}

static bool take_lost(hr_planning *p, hr_answer *answer)
{
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        matter *m = &p->matters[k];
        if (m->open && m->lost) {
            m->open = false;
            *answer = (hr_answer){.kind = (hr_question_kind)k,
                                  .number = m->q.number,
                                  .index = m->taken,
                                  .last = true,
                                  .status = HR_STATE};
            (void)text_copy(answer->sentence, sizeof answer->sentence, p->sentence);
            return true;
        }
    }
    return false;
}

bool hr_planning_take(hr_planning *p, hr_answer *answer)
{
    *answer = (hr_answer){.kind = HR_QUESTION_TURNS};
    if (p == NULL) {
        return false;
    }
    if (p->queue != NULL) {
        return take_here(p, answer);
    }
    return (p->w != NULL && take_there(p, answer)) || take_lost(p, answer);
}

int hr_planning_fd(const hr_planning *p)
{
    return p == NULL || p->w == NULL ? -1 : wire_fd(p->w);
}

bool hr_planning_is_busy(const hr_planning *p)
{
    bool busy = false;
    for (int k = 0; p != NULL && k < HR_QUESTION_COUNT; k++) {
        busy = busy || p->matters[k].open;
    }
    return busy;
}
