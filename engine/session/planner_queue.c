// SPDX-License-Identifier: Apache-2.0
#include "session/planner_queue.h"

#include <string.h>

#include "headroom/file_kind.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "insight/fit_search.h"
#include "insight/planner.h"
#include "insight/replay_plan.h"

// One kind's question while it is answered.
typedef struct matter {
    bool open;
    uint32_t next; // index of the next answer
    planning_question q;
} matter;

// What a plan came to, to be said more than once.
typedef struct finding {
    hr_status status;
    bool estimated;
    hr_whatif plan;
    char other_param[HR_PARAM_TEXT_MAX];
    hr_err err;
} finding;

struct planner_queue {
    char preset[PLANNING_PRESET_MAX];
    bool trusts;
    bool has_read;       // the preset, or tried to
    hr_preset *opened;   // what `planner` was read from
    hr_planner *planner; // NULL: it could not be read, `reading` says why, or it is a trace
    hr_replay *replay;   // a recorded step in a preset's place; NULL: it is none
    finding reading;
    matter matters[HR_QUESTION_COUNT];
    bool has_present; // of TURNS
    finding present;
    fit_search *search;            // of FIT; NULL: not begun
    bool turn_is_next;             // of TURNS and FIT, where both are open
    bool (*wanted)(void *context); // planner_queue_give_way
    void *wanted_context;
    bool may_give_way, gave_way; // what is answered now
};

hr_status planner_queue_create(planner_queue **out, hr_err *err)
{
    planner_queue *d = hr_calloc(1, sizeof *d);
    *out = d;
    return d != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for a planner's questions");
}

static void close_matter(planner_queue *d, hr_question_kind kind)
{
    d->matters[kind].open = false;
    if (kind == HR_QUESTION_TURNS) {
        d->has_present = false;
    } else if (kind == HR_QUESTION_FIT) {
        fit_search_destroy(d->search);
        d->search = NULL;
    }
}

static void close_preset(planner_queue *d)
{
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        close_matter(d, (hr_question_kind)k);
    }
    hr_planner_close(d->planner);
    hr_preset_close(d->opened);
    hr_replay_close(d->replay);
    d->replay = NULL;
    d->planner = NULL;
    d->opened = NULL;
    d->has_read = false;
}

void planner_queue_destroy(planner_queue *d)
{
    if (d != NULL) {
        close_preset(d);
        hr_free(d);
    }
}

void planner_queue_open(planner_queue *d, const char *preset, bool trusts)
{
    close_preset(d);
    (void)text_copy(d->preset, sizeof d->preset, preset);
    d->trusts = trusts;
}

void planner_queue_ask(planner_queue *d, const planning_question *q)
{
    matter *m = &d->matters[q->kind];
    close_matter(d, q->kind);
    m->q = *q;
    m->next = 0;
    m->open = true;
}

// ---- answers --------------------------------------------------------------------------------------------------

static void refuse(hr_answer *answer, hr_status status, const hr_err *err)
{
    answer->status = status;
    (void)text_copy(answer->sentence, sizeof answer->sentence, err->sentence);
}

static void plan(const planner_queue *d, const planning_question *q, const hr_knobs *knobs, finding *f)
{
    *f = (finding){.status = HR_OK};
    if (d->replay != NULL) {
        f->status = replay_whatif(d->replay, knobs, &f->plan, &f->err);
        return;
    }
    f->status = q->exact ? hr_planner_plan(d->planner, knobs, &f->plan, &f->err)
                         : planner_estimate(d->planner, knobs, &f->plan, &f->estimated, &f->err);
}

// The knobs as they are, planned once for a question.
static const finding *present_of(planner_queue *d, const planning_question *q)
{
    if (!d->has_present) {
        plan(d, q, &q->knobs, &d->present);
        d->has_present = true;
    }
    return &d->present;
}

static void find_other_param(const planner_queue *d, const planning_question *q, const hr_turn *turn,
                             const hr_knobs *turned, finding *f)
{
    if (f->status == HR_OK && d->replay == NULL && hr_knob_shapes_model(turn->knob)) {
        f->status = planner_other_param(d->planner, &q->knobs, turned, f->other_param, &f->err);
    }
}

// A knob that changes between two steps needs no other build: the plan stays the present one.
static void plan_turn(planner_queue *d, const planning_question *q, const hr_turn *turn, finding *f)
{
    hr_knobs turned = q->knobs;
    *f = (finding){.status = HR_OK};
    if (turn->knob == HR_KNOB_COUNT) {
        *f = *present_of(d, q);
        return;
    }
    f->status = d->replay == NULL ? HR_OK : hr_replay_check_turn(turn->knob, turn->value, &f->err);
    f->status = f->status == HR_OK ? hr_knobs_set(&turned, turn->knob, turn->value, &f->err) : f->status;
    if (f->status != HR_OK) {
        return;
    }
    const bool hot = hr_knob_rows(NULL)[turn->knob].hot;
    if (!hot || present_of(d, q)->status != HR_OK) {
        plan(d, q, &turned, f);
        find_other_param(d, q, turn, &turned, f);
        return;
    }
    f->status = hr_knobs_validate(&turned, &f->err);
    f->plan = d->present.plan;
    f->estimated = d->present.estimated;
}

static planning_work answer_stands(planner_queue *d, matter *m, hr_answer *answer)
{
    hr_err err = {0};
    const hr_status status = d->replay != NULL ? hr_knobs_validate(&m->q.knobs, &err)
                                               : hr_engine_rehearse(d->opened, &m->q.knobs, &err);
    refuse(answer, status, &err);
    answer->last = true;
    return PLANNING_ANSWERED;
}

static planning_work answer_turn(planner_queue *d, matter *m, hr_answer *answer)
{
    finding f;
    plan_turn(d, &m->q, &m->q.turns[m->next], &f);
    refuse(answer, f.status, &f.err);
    answer->whatif = f.plan;
    (void)text_copy(answer->other_param, sizeof answer->other_param, f.other_param);
    answer->estimated = f.estimated;
    answer->last = m->next + 1 == m->q.turn_count;
    return PLANNING_ANSWERED;
}

static planning_work answer_step_plan(planner_queue *d, matter *m, hr_answer *answer)
{
    hr_err err = {0};
    hr_status status = d->replay != NULL ? replay_step_plan(d->replay, &m->q.knobs, &answer->step_plan, &err)
                       : m->q.exact ? hr_planner_step_plan(d->planner, &m->q.knobs, &answer->step_plan, &err)
                                    : planner_estimate_step_plan(d->planner, &m->q.knobs, &answer->step_plan,
                                                                 &answer->estimated, &err);
    refuse(answer, status, &err);
    answer->last = true;
    return PLANNING_ANSWERED;
}

// What needs a program: its listing, and what trades memory for time.
static planning_work refuse_recorded(hr_answer *answer)
{
    hr_err err = {0};
    refuse(
        answer,
        HR_FAIL(&err, STATE,
                "a recorded step has no program to be turned into another one: 1 and 4 show what cards and "
                "allocators would do"),
        &err);
    answer->last = true;
    return PLANNING_ANSWERED;
}

static planning_work answer_diff(planner_queue *d, matter *m, hr_answer *answer)
{
    hr_err err = {0};
    if (d->replay != NULL) {
        return refuse_recorded(answer);
    }
    hr_status status = hr_planner_diff(d->planner, &m->q.knobs, &m->q.after, &answer->text, &err);
    refuse(answer, status, &err);
    answer->last = true;
    return PLANNING_ANSWERED;
}

static hr_status begin_search(planner_queue *d, const matter *m, hr_err *err)
{
    // Of one thread: one plan at a time, so that what a key asks is answered between two, and a training keeps its cores.
    const hr_fit_wish wish = {.permission = m->q.permission, .threads = 1};
    bool normalises_batches = false;
    HR_TRY(planner_normalises_batches(d->planner, &m->q.knobs, &normalises_batches, err));
    return fit_search_create(&m->q.knobs, &wish, normalises_batches, &d->search, err);
}

static planning_work answer_fit(planner_queue *d, matter *m, hr_answer *answer)
{
    hr_err err = {0};
    if (d->replay != NULL) {
        return refuse_recorded(answer);
    }
    hr_status status = d->search == NULL ? begin_search(d, m, &err) : HR_OK;
    fit_search_result result = FIT_SEARCH_REFUSED;
    if (status == HR_OK) {
        result = fit_search_advance(d->search, d->planner, &answer->point, &err);
        status = result == FIT_SEARCH_REFUSED ? err.status : HR_OK;
    }
    refuse(answer, status, &err);
    answer->last = result == FIT_SEARCH_LAST || result == FIT_SEARCH_REFUSED;
    return result == FIT_SEARCH_WORKED ? PLANNING_WORKED : PLANNING_ANSWERED;
}

// ---- giving way -----------------------------------------------------------------------------------------------

void planner_queue_give_way(planner_queue *d, bool (*wanted)(void *context), void *context)
{
    d->wanted = wanted;
    d->wanted_context = context;
}

static bool gives_way(void *context)
{
    planner_queue *d = context;
    const bool gives = d->may_give_way && d->wanted != NULL && d->wanted(d->wanted_context);
    d->gave_way |= gives;
    return gives;
}

// ---- work -----------------------------------------------------------------------------------------------------

static void read_preset(planner_queue *d)
{
    char *problems = NULL;
    finding *f = &d->reading;
    *f = (finding){.status = HR_OK};
    d->has_read = true;
    if (hr_file_kind_of(d->preset) == HR_FILE_TRACE) {
        f->status = replay_open_step(d->preset, &d->replay, &f->err);
        return;
    }
    f->status = hr_preset_open(d->preset, d->trusts, &d->opened, &problems, &f->err);
    hr_preset_problems_free(problems);
    if (f->status == HR_OK) {
        f->status = hr_planner_open(d->opened, &d->planner, &f->err);
    }
    if (f->status == HR_OK) {
        planner_stop_when(d->planner, gives_way, d);
    }
}

static bool is_urgent(const matter *m)
{
    return m->open && m->next < HR_TURNS_FIRST;
}

// NULL: nothing is asked.
static matter *most_urgent(planner_queue *d)
{
    matter *stands = &d->matters[HR_QUESTION_STANDS];
    matter *turns = &d->matters[HR_QUESTION_TURNS];
    matter *step_plan = &d->matters[HR_QUESTION_STEP_PLAN];
    matter *diff = &d->matters[HR_QUESTION_DIFF];
    matter *fit = &d->matters[HR_QUESTION_FIT];
    return stands->open                                     ? stands
           : is_urgent(turns)                               ? turns
           : step_plan->open                                ? step_plan
           : diff->open                                     ? diff
           : turns->open && (d->turn_is_next || !fit->open) ? turns
           : fit->open                                      ? fit
                                                            : NULL;
}

static planning_work answer_one(planner_queue *d, matter *m, hr_answer *answer)
{
    static planning_work (*const answers[])(planner_queue * d, matter * m, hr_answer * answer) = {
        [HR_QUESTION_STANDS] = answer_stands,
        [HR_QUESTION_TURNS] = answer_turn,
        [HR_QUESTION_STEP_PLAN] = answer_step_plan,
        [HR_QUESTION_DIFF] = answer_diff,
        [HR_QUESTION_FIT] = answer_fit,
    };
    if (d->planner == NULL && d->replay == NULL) {
        refuse(answer, d->reading.status, &d->reading.err);
        answer->last = true;
        return PLANNING_ANSWERED;
    }
    return answers[m->q.kind](d, m, answer);
}

planning_work planner_queue_work(planner_queue *d, hr_answer *answer)
{
    matter *m = most_urgent(d);
    *answer = (hr_answer){.kind = HR_QUESTION_TURNS};
    d->turn_is_next = m == &d->matters[HR_QUESTION_FIT];
    if (m == NULL) {
        return PLANNING_IDLE;
    }
    if (!d->has_read) {
        read_preset(d);
    }
    answer->kind = m->q.kind;
    answer->number = m->q.number;
    answer->index = m->next;
    d->may_give_way = m->q.kind != HR_QUESTION_STANDS && !(m->q.kind == HR_QUESTION_TURNS && is_urgent(m));
    d->gave_way = false;
    const planning_work work = answer_one(d, m, answer);
    if (d->gave_way) {
        d->has_present = d->has_present && d->present.status != HR_INTERRUPTED;
        return PLANNING_WORKED;
    }
    m->next += work == PLANNING_ANSWERED;
    if (work == PLANNING_ANSWERED && answer->last) {
        close_matter(d, m->q.kind);
        planner_keep_answers();
    }
    return work;
}
