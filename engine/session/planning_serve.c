// SPDX-License-Identifier: Apache-2.0
#include "session/planning_serve.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "base/text.h"
#include "session/planning_wire.h"

typedef struct server {
    wire *w;
    planner_queue *queue;
    planning_question question; // the one being read
    bool offended;
} server;

static void step_back(void)
{
    const struct sched_param none = {.sched_priority = 0};
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
}

static bool take_open(server *s, wire_in *body)
{
    char preset[PLANNING_PRESET_MAX];
    bool trusts = false;
    const bool good = planning_get_open(body, preset, &trusts);
    if (good) {
        planner_queue_open(s->queue, preset, trusts);
    }
    return good;
}

static bool take_question(server *s, wire_in *body)
{
    const bool good = planning_get_question(body, &s->question);
    if (good) {
        planner_queue_ask(s->queue, &s->question);
    }
    return good;
}

static void take_messages(server *s)
{
    wire_message m;
    while (!s->offended && wire_read(s->w, &m)) {
        wire_in body = {.data = m.body, .bytes = m.bytes};
        s->offended = m.fd >= 0 || !(m.kind == PLANNING_OPEN  ? take_open(s, &body)
                                     : m.kind == PLANNING_ASK ? take_question(s, &body)
                                                              : false);
    }
}

// What does not go into a message is refused instead.
static void put_refusal(wire_out *o, const hr_answer *answer)
{
    hr_answer refusal = {
        .kind = answer->kind, .number = answer->number, .index = answer->index, .last = true};
    hr_err err = {0};
    refusal.status = HR_FAIL(&err, HOST_LIMIT,
                             "the answer does not go into a message: needed at most %d MiB of host memory",
                             WIRE_BODY_MAX >> 20);
    (void)text_copy(refusal.sentence, sizeof refusal.sentence, err.sentence);
    planning_put_answer(o, &refusal);
}

static void send_answer(server *s, const hr_answer *answer)
{
    wire_out body = {0};
    planning_put_answer(&body, answer);
    if (body.bad) {
        wire_out_deinit(&body);
        put_refusal(&body, answer);
    }
    if (!body.bad) {
        (void)wire_write(s->w, PLANNING_ANSWER, body.data, (uint32_t)body.bytes, -1);
    }
    wire_out_deinit(&body);
}

// One plan, unless the other side has yet to take what was answered. False: there is nothing to do until it speaks.
static bool work(server *s)
{
    hr_answer answer;
    if ((wire_events(s->w) & POLLOUT) != 0) {
        return false;
    }
    const planning_work done = planner_queue_work(s->queue, &answer);
    if (done == PLANNING_ANSWERED) {
        send_answer(s, &answer);
    }
    hr_answer_deinit(&answer);
    return done != PLANNING_IDLE;
}

// Has the other side spoken?
static bool is_spoken_to(void *context)
{
    const server *s = context;
    struct pollfd ready = {.fd = wire_fd(s->w), .events = (short)(wire_events(s->w) & POLLIN)};
    return ready.events != 0 && poll(&ready, 1, 0) > 0;
}

static void serve(server *s)
{
    bool busy = true;
    while (!s->offended && !wire_is_closed(s->w)) {
        struct pollfd ready = {.fd = wire_fd(s->w), .events = wire_events(s->w)};
        (void)poll(&ready, 1, busy ? 0 : -1);
        wire_flush(s->w);
        take_messages(s);
        busy = !wire_is_closed(s->w) && work(s);
    }
}

int planning_serve(int socket)
{
    step_back();
    return planning_serve_eagerly(socket);
}

int planning_serve_eagerly(int socket)
{
    static server s;
    s = (server){.w = NULL};
    if (wire_create(socket, PLANNING_MESSAGES, &s.w, NULL) != HR_OK) {
        return hr_status_exit_code(HR_NOMEM);
    }
    if (planner_queue_create(&s.queue, NULL) == HR_OK) {
        planner_queue_give_way(s.queue, is_spoken_to, &s);
        serve(&s);
    }
    const bool failed = s.queue == NULL || s.offended;
    planner_queue_destroy(s.queue);
    wire_destroy(s.w);
    return failed ? hr_status_exit_code(HR_STATE) : 0;
}
