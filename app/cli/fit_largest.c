// SPDX-License-Identifier: Apache-2.0
// fit --max KNOB: how large a knob can be, and with which of the others.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/fit.h"
#include "app/cli/interrupt.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

enum { ROUNDS = 3, LEANEST = 8, SIZED_MAX = 512 };

typedef struct sized_way {
    hr_fit_way way;
    hr_largest largest;
    bool is_beaten; // another one is larger, or as large, and no slower for each of the knob's units
} sized_way;

typedef struct sizing {
    const cli_args *args;
    fit_answer *a;
    const hr_knob_row *row;
    sized_way *sized; // SIZED_MAX
    size_t count;
    hr_err refused; // the last way that could not be planned
} sizing;

// What memory has to do with, and this model has.
static bool is_sizable(const hr_knob_row *row, const hr_knobs *knobs)
{
    return row != NULL && row->type == HR_KNOB_INT && hr_knob_acts(knobs, row->id) &&
           (strncmp(row->key, "batch.", 6) == 0 || strncmp(row->key, "model.", 6) == 0);
}

static hr_status find_row(sizing *s, hr_err *err)
{
    const char *near = NULL;
    const char *wanted = s->args->value[APP_MAX];
    s->row = hr_knob_find(wanted, &near);
    if (!is_sizable(s->row, &s->a->knobs)) {
        const hr_status status = HR_FAIL(
            err, USAGE, "--max needs a size of the batch or of this model such as batch.size, had '%.64s'",
            wanted);
        hr_err_try(err, "headroom fit %.64s --max %.64s",
                   s->args->words[0] != NULL ? s->args->words[0] : "demo",
                   s->row == NULL && near != NULL ? near : "batch.size");
        return status;
    }
    s->a->wish.keeps[s->row->id] = true;
    return HR_OK;
}

// Without one there is no largest.
static hr_status refuse_limitless(const sizing *s, hr_err *err)
{
    hr_whatif plan;
    HR_TRY(hr_planner_plan(s->a->planner, &s->a->knobs, &plan, err));
    if (plan.limit_bytes > 0) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, USAGE, "there is no limit, and so no largest %.32s: --max needs one", s->row->key);
    hr_err_try(err, "headroom fit %.64s --max %.32s --card rtx3060-12g", s->args->words[0], s->row->key);
    return status;
}

// ---- which ways -----------------------------------------------------------------------------------------------

static bool is_known(const sizing *s, const hr_fit_way *way)
{
    for (size_t k = 0; k < s->count; k++) {
        if (strcmp(s->sized[k].way.point.knobs, way->point.knobs) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t largest_of(const sizing *s)
{
    uint64_t value = 0;
    for (size_t k = 0; k < s->count; k++) {
        value = s->sized[k].largest.value > value ? s->sized[k].largest.value : value;
    }
    return value;
}

static void say_largest(sizing *s)
{
    char value[24] = "none";
    if (largest_of(s) > 0) {
        (void)snprintf(value, sizeof value, "%" PRIu64, largest_of(s));
    }
    (void)snprintf(s->a->so_far, sizeof s->a->so_far, "; largest %.24s so far: %s", s->row->key, value);
}

static hr_status size_way(sizing *s, const hr_fit_way *way, hr_err *err)
{
    hr_knobs turned;
    sized_way *one = &s->sized[s->count];
    *one = (sized_way){.way = *way}; // the place may be that of one that could not be planned
    HR_TRY(hr_fit_knobs(&s->a->knobs, &way->point, &turned, err));
    if (hr_planner_largest(s->a->planner, &turned, s->row->id, &one->largest, &s->refused) == HR_OK) {
        s->count++;
        say_largest(s);
    }
    (void)fit_goes_on(s->a, one->largest.plans);
    return HR_OK;
}

// Of its own limit: allocators differ in that too.
static double share_of_limit(const hr_fit_way *w)
{
    const hr_whatif *plan = &w->point.plan;
    return plan->limit_bytes > 0 ? (double)plan->peak_in_use_bytes / (double)plan->limit_bytes : 1;
}

// Whether fewer than LEANEST others take a smaller share, of those that learn the same or of all.
static bool is_lean(const hr_fit_found *f, const hr_fit_way *w)
{
    unsigned leaner = 0, same_leaner = 0;
    for (uint32_t k = 0; k < f->count; k++) {
        const bool is_leaner = share_of_limit(&f->ways[k]) < share_of_limit(w);
        leaner += is_leaner;
        same_leaner += is_leaner && f->ways[k].changes[0] == '\0';
    }
    return leaner < LEANEST || (w->changes[0] == '\0' && same_leaner < LEANEST);
}

static hr_status size_found(sizing *s, hr_err *err)
{
    const hr_fit_found *f = &s->a->found;
    for (uint32_t k = 0; k < f->count && s->count < SIZED_MAX && !(s->count > 0 && interrupt_seen()); k++) {
        const hr_fit_way *way = &f->ways[k];
        if ((way->on_frontier || way->on_same_frontier || is_lean(f, way)) && !is_known(s, way)) {
            HR_TRY(size_way(s, way, err));
        }
    }
    return HR_OK;
}

// What is lean at one size may not be at another: so the search goes on from the largest that was found.
static hr_status size_ways(sizing *s, hr_err *err)
{
    char value[24];
    uint64_t before = UINT64_MAX;
    HR_TRY(size_found(s, err));
    for (int round = 1; round < ROUNDS && largest_of(s) > 0 && largest_of(s) != before && !interrupt_seen();
         round++) {
        before = largest_of(s);
        (void)snprintf(value, sizeof value, "%" PRIu64, before);
        HR_TRY(hr_knobs_set(&s->a->knobs, s->row->id, value, err));
        HR_TRY(fit_find(s->a, err));
        HR_TRY(size_found(s, err));
    }
    if (s->count == 0) {
        *err = s->refused;
        return err->status;
    }
    return HR_OK;
}

// ---- in which order -------------------------------------------------------------------------------------------

static double seconds_each(const sized_way *s)
{
    return s->largest.plan.step_seconds / (double)s->largest.value;
}

static int by_value(const void *a, const void *b)
{
    const sized_way *x = a, *y = b;
    if (x->largest.value != y->largest.value) {
        return x->largest.value < y->largest.value ? 1 : -1;
    }
    return seconds_each(x) > seconds_each(y) ? 1 : seconds_each(x) < seconds_each(y) ? -1 : 0;
}

// Sorted by value: what is smaller has to be faster than all that is larger.
static void put_in_order(sizing *s)
{
    double fastest = INFINITY;
    qsort(s->sized, s->count, sizeof *s->sized, by_value);
    for (size_t k = 0; k < s->count; k++) {
        const double each = seconds_each(&s->sized[k]);
        s->sized[k].is_beaten = s->sized[k].largest.value == 0 || (isfinite(each) ? each >= fastest : k > 0);
        fastest = isfinite(each) ? fmin(fastest, each) : fastest;
    }
}

// ---- what is said ---------------------------------------------------------------------------------------------

static void print_row(const sized_way *s)
{
    char peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX], value[32];
    const hr_largest *l = &s->largest;
    (void)snprintf(value, sizeof value, "%s%" PRIu64, l->is_last ? ">= " : "", l->value);
    printf("%9s %10s %10s %s", value, hr_bytes_human(l->plan.peak_in_use_bytes, peak),
           fit_seconds_text(l->plan.step_seconds, seconds), s->way.changes[0] != '\0' ? "~" : " ");
    fit_print_knobs(&s->way, 33);
}

// The first that leaves alone what is learned; s->count: there is none.
static size_t largest_same(const sizing *s)
{
    size_t k = 0;
    while (k < s->count && s->sized[k].way.changes[0] != '\0') {
        k++;
    }
    return k;
}

static void print_command(const sizing *s, const sized_way *w)
{
    char value[24];
    (void)snprintf(value, sizeof value, "%" PRIu64, w->largest.value);
    if (hr_knobs_set(&s->a->knobs, s->row->id, value, NULL) == HR_OK) {
        fit_print_command(s->args, s->a, w->way.point.knobs);
    }
}

static void print_commands(const sizing *s)
{
    const size_t same = largest_same(s);
    if (same < s->count && s->sized[same].largest.value > 0) {
        puts("\nthe largest, with all that is learned left alone:");
        print_command(s, &s->sized[same]);
    }
    if (same > 0) {
        puts("\nthe largest, whatever is learned:");
        print_command(s, &s->sized[0]);
    }
}

// Of the largest: allocators take more or less of what there is.
static uint64_t limit_of(const sizing *s)
{
    return s->count > 0 ? s->sized[0].largest.plan.limit_bytes : s->a->found.asked.limit_bytes;
}

static bool is_shown(const sizing *s, size_t at)
{
    return !s->sized[at].is_beaten || at == largest_same(s);
}

// Where a row that is shown has another limit than the first.
static void print_limits(const sizing *s)
{
    char limit[HR_BYTES_TEXT_MAX];
    uint64_t least_bytes = limit_of(s), most_bytes = least_bytes;
    for (size_t k = 0; k < s->count; k++) {
        const uint64_t bytes = is_shown(s, k) ? s->sized[k].largest.plan.limit_bytes : least_bytes;
        least_bytes = bytes < least_bytes ? bytes : least_bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    if (least_bytes != most_bytes) {
        printf("limits differ with the allocator: %s to ", hr_bytes_human(least_bytes, limit));
        printf("%s; above is the largest's\n", hr_bytes_human(most_bytes, limit));
    }
}

static const sized_way *nearest(const sizing *s)
{
    const sized_way *least = &s->sized[0];
    for (size_t k = 1; k < s->count; k++) {
        least =
            hr_whatif_missing_bytes(&s->sized[k].largest.plan) < hr_whatif_missing_bytes(&least->largest.plan)
                ? &s->sized[k]
                : least;
    }
    return least;
}

// A search that was cut short has not shown that none fits.
static void print_none(const sizing *s)
{
    const sized_way *least = nearest(s);
    const bool was_cut = interrupt_seen();
    printf(was_cut ? "%s: of %zu tried so far none fits with the smallest %s\n"
                   : "%s: none of %zu ways fits, not even with the smallest %s\n",
           s->args->words[0], s->count, s->row->key);
    fit_print_nearest(s->args, hr_whatif_missing_bytes(&least->largest.plan),
                      hr_whatif_lacks_host(&least->largest.plan), &least->way,
                      was_cut ? NULL : " --cards, or a smaller model");
    fit_print_cut();
}

static void print_text(const sizing *s)
{
    char limit[HR_BYTES_TEXT_MAX];
    if (largest_of(s) == 0) {
        print_none(s);
        return;
    }
    printf("%s: the largest %s that fits %s, of %zu ways\n\n%9s %10s %10s  knobs\n", s->args->words[0],
           s->row->key, hr_bytes_human(limit_of(s), limit), s->count, "largest", "peak", "step");
    for (size_t k = 0; k < s->count; k++) {
        if (is_shown(s, k)) {
            print_row(&s->sized[k]);
        }
    }
    fit_print_basis(
        s->sized[0].largest.plan.step_basis,
        "peaks planned; the largest first, then what is smaller and faster for its size; >=: no limit "
        "was met; ~ changes what is learned");
    print_limits(s);
    print_commands(s);
    fit_print_cut();
}

static void print_json(const sizing *s)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.fit.largest/1");
    emit_text(&e, "preset", s->args->words[0]);
    emit_text(&e, "knob", s->row->key);
    emit_count(&e, "limit_bytes", limit_of(s) > 0 ? limit_of(s) : HR_NONE);
    emit_bool(&e, "interrupted", interrupt_seen());
    emit_array(&e, "points");
    for (size_t k = 0; k < s->count; k++) {
        const hr_largest *l = &s->sized[k].largest;
        emit_row(&e, NULL);
        emit_pairs(&e, "knobs", s->sized[k].way.point.knobs);
        emit_bool(&e, "frontier", !s->sized[k].is_beaten);
        emit_count(&e, "largest", l->value);
        emit_count(&e, "peak_in_use_bytes", l->plan.peak_in_use_bytes);
        emit_count(&e, "limit_bytes", l->plan.limit_bytes > 0 ? l->plan.limit_bytes : HR_NONE);
        fit_emit_seconds(&e, &l->plan);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_end_object(&e);
}

hr_status fit_largest(const cli_args *args, fit_answer *a, bool *fits, hr_err *err)
{
    sizing s = {.args = args, .a = a};
    HR_TRY(find_row(&s, err));
    HR_TRY(refuse_limitless(&s, err));
    say_largest(&s);
    HR_TRY(fit_find(a, err));
    s.sized = calloc(SIZED_MAX, sizeof *s.sized);
    if (s.sized == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %d ways", (int)SIZED_MAX);
    }
    const hr_status status = size_ways(&s, err);
    progress_clear(&a->line);
    put_in_order(&s);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_json(&s);
    } else if (status == HR_OK) {
        print_text(&s);
    }
    *fits = largest_of(&s) > 0;
    free(s.sized);
    return status;
}
