// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/base/format.h"

void fit_begin(fit_points *fit, const hr_knobs *knobs, uint64_t question)
{
    fit->asked = *knobs;
    fit->asked_with = fit->permission;
    fit->question = question;
    fit->asks = question != 0;
    fit->version++;
}

void fit_forget(fit_points *fit)
{
    uint64_t version = fit->version;
    memset(fit, 0, sizeof *fit);
    fit->version = version + 1;
}

// ---- judging them ---------------------------------------------------------------------------------------------

double fit_seconds(const hr_fit_point *p)
{
    return p->plan.step_seconds > 0 ? p->plan.step_seconds : UNKNOWN;
}

double fit_slowdown(const fit_points *fit, const hr_fit_point *p)
{
    return fit->count == 0 ? UNKNOWN : fit_seconds(p) / fit_seconds(&fit->point[0]);
}

size_t fit_best_count(const fit_points *fit)
{
    size_t count = 0;
    for (size_t i = 0; i < fit->count; i++) {
        count += fit->best[i];
    }
    return count;
}

static bool beats(const hr_fit_point *a, const hr_fit_point *b, bool comes_first)
{
    return a->plan.fits && hr_fit_beats(&a->plan, &b->plan, comes_first);
}

// The newest point, beside those before it. Whether it takes the place of one of them.
static bool find_best(fit_points *fit)
{
    const size_t newest = fit->count - 1;
    bool beat = false;
    fit->best[newest] = fit->point[newest].plan.fits;
    for (size_t i = 0; i < newest; i++) {
        const bool loses = fit->best[i] && beats(&fit->point[newest], &fit->point[i], false);
        fit->best[i] = fit->best[i] && !loses;
        fit->best[newest] = fit->best[newest] && !beats(&fit->point[i], &fit->point[newest], true);
        beat = beat || loses;
    }
    return beat;
}

// What no other point beats, then what fits, both the fastest first; then what misses, the least first.
static bool stands_before(const fit_points *fit, size_t one, size_t other)
{
    const hr_fit_point *a = &fit->point[one], *b = &fit->point[other];
    if (fit->best[one] != fit->best[other]) {
        return fit->best[one];
    }
    if (a->plan.fits != b->plan.fits) {
        return a->plan.fits;
    }
    if (!a->plan.fits) {
        return hr_whatif_missing_bytes(&a->plan) < hr_whatif_missing_bytes(&b->plan);
    }
    double slower = fit_seconds(a) - fit_seconds(b);
    return slower < 0 || (!(slower > 0) && a->plan.peak_in_use_bytes < b->plan.peak_in_use_bytes);
}

// Equals keep their order.
static void put_in_order(fit_points *fit, size_t point)
{
    size_t at = point;
    for (; at > 0 && stands_before(fit, point, fit->order[at - 1]); at--) {
        fit->order[at] = fit->order[at - 1];
    }
    fit->order[at] = (uint16_t)point;
}

// A new point may take others' place on the frontier: then all are sorted anew.
static void take_place(fit_points *fit)
{
    for (size_t point = find_best(fit) ? 0 : fit->count - 1; point < fit->count; point++) {
        put_in_order(fit, point);
    }
}

// ---- taking them ----------------------------------------------------------------------------------------------

bool fit_take(fit_points *fit, const hr_answer *answer)
{
    char change[HR_FIT_CHANGE_MAX];
    if (answer->kind != HR_QUESTION_FIT || answer->number != fit->question) {
        return false;
    }
    if (answer->index == 0) {
        fit->count = 0;
        fit->knobs = fit->asked;
        fit->refused[0] = '\0';
    }
    if (answer->status != HR_OK && fit->count == 0) {
        snprintf(fit->refused, sizeof fit->refused, "%s", answer->sentence);
    } else if (answer->status == HR_OK && fit->count < FIT_POINTS_MAX) {
        hr_fit_point *p = &fit->point[fit->count];
        *p = answer->point;
        p->knobs[sizeof p->knobs - 1] = '\0';
        fit->learns[fit->count] = fit_change(fit, fit->count, change)[0] != '\0';
        fit->count++;
        take_place(fit);
    }
    fit->asks = !answer->last;
    fit->version++;
    return true;
}

bool fit_knobs(const fit_points *fit, size_t point, hr_knobs *knobs, hr_err *err)
{
    return hr_fit_knobs(&fit->knobs, &fit->point[point], knobs, err) == HR_OK;
}

const char *fit_change(const fit_points *fit, size_t point, char text[HR_FIT_CHANGE_MAX])
{
    hr_knobs to;
    text[0] = '\0';
    return fit_knobs(fit, point, &to, NULL)
               ? hr_fit_change(&fit->knobs, &to, fit->point[point].normalises_batches, text)
               : text;
}
