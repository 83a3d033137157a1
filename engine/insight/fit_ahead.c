// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_ahead.h"

#include "headroom/machine.h"

#include "base/host_mem.h"
#include "base/workers.h"
#include "insight/planner.h"

enum { EACH = 4 }; // candidates for each of several threads: plans differ in what they take

struct fit_ahead {
    workers *team; // NULL: the caller alone
    const hr_planner *planner;
    fit_candidate *all;
    uint32_t room, count, next;
};

hr_status fit_ahead_create(uint32_t threads, fit_ahead **out, hr_err *err)
{
    fit_ahead *a = hr_calloc(1, sizeof *a);
    *out = a;
    if (a == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for plans of a search");
    }
    threads = threads == 0 ? hr_machine_cores() : threads;
    a->room = threads > 1 ? EACH * threads : 1;
    a->all = hr_calloc(a->room, sizeof *a->all);
    const hr_status status =
        a->all != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for %u plans of a search", a->room);
    if (status == HR_OK && threads > 1 && workers_create(threads, &a->team, NULL) != HR_OK) {
        a->team = NULL;
    }
    if (status != HR_OK) {
        fit_ahead_destroy(a);
        *out = NULL;
    }
    return status;
}

void fit_ahead_destroy(fit_ahead *a)
{
    if (a != NULL) {
        workers_destroy(a->team);
        hr_free(a->all);
        hr_free(a);
    }
}

fit_candidate *fit_ahead_place(fit_ahead *a)
{
    if (a->next > 0) {
        a->count = a->next = 0;
    }
    if (a->count == a->room) {
        return NULL;
    }
    a->all[a->count] = (fit_candidate){.planned = false};
    return &a->all[a->count++];
}

void fit_ahead_drop(fit_ahead *a)
{
    a->count--;
}

static void plan_one(const hr_planner *planner, fit_candidate *c)
{
    planner_rough rough = {.has_exact = false};
    const hr_status status = planner_plan_roughly(planner, &c->knobs, c->exact_below_bytes, &rough, NULL);
    c->given_up = status == HR_INTERRUPTED;
    c->planned = status == HR_OK;
    c->point.plan = rough.plan;
    c->exact = rough.exact;
    c->has_exact = rough.has_exact;
}

static void plan_range(const void *of, int64_t begin, int64_t end, uint32_t worker)
{
    const fit_ahead *a = of;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        plan_one(a->planner, &a->all[k]);
    }
}

void fit_ahead_plan(fit_ahead *a, const hr_planner *planner)
{
    a->planner = planner;
    workers_for_pieces(a->team, a->count, 1, plan_range, a);
}

const fit_candidate *fit_ahead_next(fit_ahead *a)
{
    if (a->next == a->count) {
        return NULL;
    }
    fit_candidate *c = &a->all[a->next];
    if (c->given_up && c->was_told) {
        plan_one(a->planner, c);
    }
    c->was_told = c->given_up;
    a->next += !c->given_up;
    return c;
}

uint32_t fit_ahead_left(const fit_ahead *a)
{
    return a->count - a->next;
}
