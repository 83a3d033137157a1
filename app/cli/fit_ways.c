// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/engine.h"

#include "app/cli/cards_fit.h"
#include "app/cli/fit.h"
#include "app/cli/interrupt.h"
#include "app/cli/say.h"

static bool take(void *context, const hr_fit_point *point)
{
    fit_answer *a = context;
    hr_knobs turned;
    char change[HR_FIT_CHANGE_MAX];
    fit_way *w = &a->ways[a->count++];
    w->point = *point;
    w->learns = hr_fit_knobs(&a->knobs, point, &turned, NULL) == HR_OK &&
                hr_fit_change(&a->knobs, &turned, change)[0] != '\0';
    return !interrupt_seen();
}

static double now_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Times that are not known are alike.
static bool is_slower(const hr_whatif *a, const hr_whatif *b)
{
    return a->step_seconds > b->step_seconds;
}

static bool beats(const hr_whatif *a, const hr_whatif *b, bool comes_first)
{
    const bool is_better = a->peak_in_use_bytes < b->peak_in_use_bytes || is_slower(b, a);
    return a->peak_in_use_bytes <= b->peak_in_use_bytes && !is_slower(a, b) && (is_better || comes_first);
}

// What fits is not beaten by what does not.
static bool is_beaten(const fit_answer *a, size_t at, bool may_learn)
{
    const hr_whatif *one = &a->ways[at].point.plan;
    for (size_t k = 0; k < a->count; k++) {
        const hr_whatif *other = &a->ways[k].point.plan;
        if (k != at && (may_learn || !a->ways[k].learns) && other->fits >= one->fits &&
            beats(other, one, k < at)) {
            return true;
        }
    }
    return false;
}

static void find_frontiers(fit_answer *a)
{
    for (size_t k = 0; k < a->count; k++) {
        a->ways[k].on_frontier = !is_beaten(a, k, true);
        a->ways[k].on_same_frontier = !a->ways[k].learns && !is_beaten(a, k, false);
    }
}

static int by_peak(const void *a, const void *b)
{
    const fit_way *x = a, *y = b;
    const uint64_t one = x->point.plan.peak_in_use_bytes, other = y->point.plan.peak_in_use_bytes;
    return one < other ? 1 : one > other ? -1 : strcmp(x->point.knobs, y->point.knobs);
}

hr_status fit_find_ways(fit_answer *a, hr_err *err)
{
    const double begin = now_seconds();
    HR_TRY(hr_planner_fit(a->planner, &a->knobs, &a->wish, take, a, &a->plans, err));
    a->seconds = now_seconds() - begin;
    a->asked = a->ways[0].point.plan;
    find_frontiers(a);
    qsort(a->ways, a->count, sizeof *a->ways, by_peak);
    return HR_OK;
}

const fit_way *fit_fastest(const fit_answer *a, bool may_learn)
{
    const fit_way *best = NULL;
    for (size_t k = 0; k < a->count; k++) {
        const fit_way *w = &a->ways[k];
        if (w->point.plan.fits && (may_learn || !w->learns) &&
            (best == NULL || is_slower(&best->point.plan, &w->point.plan) ||
             (!is_slower(&w->point.plan, &best->point.plan) &&
              w->point.plan.peak_in_use_bytes < best->point.plan.peak_in_use_bytes))) {
            best = w;
        }
    }
    return best;
}

void fit_print_knobs(const fit_way *w, unsigned indent)
{
    say_paragraph(w->point.knobs[0] == '\0' ? "as it is" : w->point.knobs, indent);
}

hr_status fit_turn_to_card(const char *card, hr_knobs *knobs, hr_err *err)
{
    HR_TRY(cards_knobs(knobs, err));
    return hr_knobs_set(knobs, HR_KNOB_DEVICE_CARD, card, err);
}
