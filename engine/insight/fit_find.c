// SPDX-License-Identifier: Apache-2.0
// A whole search, and what of it is on a frontier.
#include <stdlib.h>
#include <string.h>

#include "headroom/fit.h"

#include "base/clock.h"
#include "insight/fit_search.h"
#include "insight/planner.h"

static bool learns(const hr_fit_way *w)
{
    return w->changes[0] != '\0';
}

static bool is_beaten(const hr_fit_found *f, size_t at, bool may_learn)
{
    const hr_whatif *one = &f->ways[at].point.plan;
    for (uint32_t k = 0; k < f->count; k++) {
        const hr_whatif *other = &f->ways[k].point.plan;
        if (k != at && (may_learn || !learns(&f->ways[k])) && hr_fit_beats(other, one, k < at)) {
            return true;
        }
    }
    return false;
}

static int by_peak(const void *a, const void *b)
{
    const hr_fit_way *x = a, *y = b;
    const uint64_t one = x->point.plan.peak_in_use_bytes, other = y->point.plan.peak_in_use_bytes;
    return one < other ? 1 : one > other ? -1 : strcmp(x->point.knobs, y->point.knobs);
}

static void compare_all(hr_fit_found *f)
{
    for (uint32_t k = 0; k < f->count; k++) {
        f->ways[k].on_frontier = !is_beaten(f, k, true);
        f->ways[k].on_same_frontier = !learns(&f->ways[k]) && !is_beaten(f, k, false);
    }
}

// Whether what comes nearest is the answer, and this is of it.
static bool is_of_nearest(const hr_fit_found *f, const hr_fit_way *w)
{
    return (w->on_same_frontier && hr_fit_fastest(f, false) == NULL) ||
           (w->on_frontier && hr_fit_fastest(f, true) == NULL);
}

typedef struct interest {
    bool (*goes_on)(void *context); // NULL: it does
    void *context;
} interest;

static bool goes_on(const interest *i)
{
    return i->goes_on == NULL || i->goes_on(i->context);
}

// What cannot be planned stays what it is at least.
static bool plan_exactly(const hr_planner *planner, const hr_knobs *knobs, hr_fit_found *f, hr_fit_way *w)
{
    hr_knobs turned;
    hr_whatif plan;
    if (hr_fit_knobs(knobs, &w->point, &turned, NULL) != HR_OK ||
        hr_planner_plan(planner, &turned, &plan, NULL) != HR_OK) {
        return false;
    }
    w->point.plan = plan;
    w->missing_bytes = hr_whatif_missing_bytes(&plan);
    f->plans++;
    return true;
}

// What is the answer is planned to the byte; what then takes its place, too. As long as somebody wants it.
static void plan_nearest(const hr_planner *planner, const hr_knobs *knobs, const interest *i, hr_fit_found *f)
{
    bool was_tried[HR_FIT_POINTS_MAX] = {false}, any = true;
    while (any) {
        any = false;
        for (uint32_t k = 0; k < f->count; k++) {
            hr_fit_way *w = &f->ways[k];
            if (w->point.plan.is_at_least && !was_tried[k] && is_of_nearest(f, w)) {
                if (!goes_on(i)) {
                    return;
                }
                was_tried[k] = true;
                any = plan_exactly(planner, knobs, f, w) || any;
            }
        }
        compare_all(f);
    }
}

static void add(hr_fit_found *f, const hr_knobs *knobs, const hr_fit_point *point)
{
    hr_knobs turned;
    hr_fit_way *w = &f->ways[f->count++];
    w->point = *point;
    w->missing_bytes = hr_whatif_missing_bytes(&point->plan);
    if (hr_fit_knobs(knobs, point, &turned, NULL) == HR_OK) {
        (void)hr_fit_change(knobs, &turned, point->normalises_batches, w->changes);
    }
}

hr_status hr_planner_fit(const hr_planner *planner, const hr_knobs *knobs, const hr_fit_wish *wish,
                         bool (*is_wanted)(void *context), void *context, hr_fit_found *out, hr_err *err)
{
    const interest i = {is_wanted, context};
    fit_search *s = NULL;
    hr_fit_point point;
    bool wanted = true;
    fit_search_result result = FIT_SEARCH_WORKED;
    hr_err refused = {0};
    const uint64_t begin_ns = clock_now_ns();
    bool normalises_batches = false;
    memset(out, 0, sizeof *out);
    HR_TRY(planner_normalises_batches(planner, knobs, &normalises_batches, err));
    HR_TRY(fit_search_create(knobs, wish, normalises_batches, &s, err));
    while (wanted && result != FIT_SEARCH_LAST && result != FIT_SEARCH_REFUSED) {
        result = fit_search_advance(s, planner, &point, &refused);
        out->plans += result == FIT_SEARCH_WORKED || result == FIT_SEARCH_POINT;
        if (result == FIT_SEARCH_POINT || result == FIT_SEARCH_LAST) {
            add(out, knobs, &point);
            wanted = goes_on(&i);
        }
    }
    fit_search_destroy(s);
    if (result == FIT_SEARCH_REFUSED) {
        if (err != NULL) {
            *err = refused;
        }
        return refused.status;
    }
    out->asked = out->ways[0].point.plan;
    compare_all(out);
    if (wanted) {
        plan_nearest(planner, knobs, &i, out);
    }
    qsort(out->ways, out->count, sizeof *out->ways, by_peak);
    out->seconds = 1e-9 * (double)(clock_now_ns() - begin_ns);
    return HR_OK;
}

const hr_fit_way *hr_fit_fastest(const hr_fit_found *f, bool may_learn)
{
    const hr_fit_way *best = NULL;
    for (uint32_t k = 0; k < f->count; k++) {
        const hr_fit_way *w = &f->ways[k];
        if (w->point.plan.fits && (may_learn || !learns(w)) &&
            (best == NULL || best->point.plan.step_seconds > w->point.plan.step_seconds ||
             (!(w->point.plan.step_seconds > best->point.plan.step_seconds) &&
              w->point.plan.peak_in_use_bytes < best->point.plan.peak_in_use_bytes))) {
            best = w;
        }
    }
    return best;
}

// ---- as it is shown -------------------------------------------------------------------------------------------

static const char *basis_word(uint32_t value)
{
    return hr_time_basis_name((hr_time_basis)value);
}

static const hr_field way_fields[] = {
    HR_FIELD(hr_fit_way, point.knobs, "knobs", PAIRS),
    HR_FIELD(hr_fit_way, point.plan.fits, "fits", FLAG),
    HR_FIELD(hr_fit_way, on_frontier, "frontier", FLAG),
    HR_FIELD(hr_fit_way, on_same_frontier, "frontier_same", FLAG),
    HR_FIELD(hr_fit_way, changes, "changes", TEXT),
    HR_FIELD(hr_fit_way, point.plan.peak_in_use_bytes, "peak_in_use_bytes", BYTES),
    HR_FIELD(hr_fit_way, missing_bytes, "missing_bytes", BYTES),
    HR_FIELD(hr_fit_way, point.plan.is_at_least, "missing_at_least", FLAG),
    HR_FIELD(hr_fit_way, point.plan.step_seconds, "step_seconds", REAL),
    HR_FIELD(hr_fit_way, point.plan.step_seconds_low, "step_seconds_low", REAL),
    HR_FIELD(hr_fit_way, point.plan.step_seconds_high, "step_seconds_high", REAL),
    {.name = "step_seconds_basis",
     .kind = HR_FIELD_WORD,
     .offset = offsetof(hr_fit_way, point.plan.step_basis),
     .size = sizeof(hr_time_basis),
     .word = basis_word,
     .most = HR_TIME_BASIS_COUNT},
    HR_FIELD_END,
};

static const hr_field fields[] = {
    HR_FIELD(hr_fit_found, plans, "plans", COUNT32),
    HR_FIELD(hr_fit_found, seconds, "seconds", REAL),
    {.name = "points",
     .kind = HR_FIELD_ROWS,
     .offset = offsetof(hr_fit_found, ways),
     .size = sizeof(hr_fit_way),
     .fields = way_fields,
     .count_offset = offsetof(hr_fit_found, count),
     .most = HR_FIT_POINTS_MAX},
    HR_FIELD_END,
};

const hr_field *hr_fit_way_fields(void)
{
    return way_fields;
}

const hr_field *hr_fit_fields(void)
{
    return fields;
}
