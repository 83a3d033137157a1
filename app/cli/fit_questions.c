// SPDX-License-Identifier: Apache-2.0
// fit --max KNOB and fit --cards: the ways of the frontier, at other sizes and on other cards.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/cards_fit.h"
#include "app/cli/emit.h"
#include "app/cli/fit.h"
#include "app/cli/interrupt.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

// ---- how large ------------------------------------------------------------------------------------------------

typedef struct sized_way {
    const hr_fit_way *way;
    hr_largest largest;
    bool is_beaten; // another one is larger, or as large, and no slower for each of the knob's units
} sized_way;

static const hr_knob_row *row_of(const cli_args *args)
{
    return hr_knob_find(args->value[APP_MAX], NULL);
}

hr_status fit_keep_for_largest(const cli_args *args, fit_answer *a, hr_err *err)
{
    const char *near = NULL;
    const hr_knob_row *row = hr_knob_find(args->value[APP_MAX], &near);
    if (row == NULL || row->type != HR_KNOB_INT || !hr_knob_acts(&a->knobs, row->id)) {
        const hr_status status =
            HR_FAIL(err, USAGE, "--max needs a whole number of this model such as batch.size, had '%.64s'",
                    args->value[APP_MAX]);
        hr_err_try(err, "headroom fit %.64s --max %.64s", args->words[0] != NULL ? args->words[0] : "demo",
                   row == NULL && near != NULL ? near : "batch.size");
        return status;
    }
    a->wish.keeps[row->id] = true;
    return HR_OK;
}

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
static void mark_beaten(sized_way *sized, size_t count)
{
    double fastest = INFINITY;
    for (size_t k = 0; k < count; k++) {
        const double each = seconds_each(&sized[k]);
        const bool is_known = isfinite(each);
        sized[k].is_beaten = sized[k].largest.value == 0 || (is_known ? each >= fastest : k > 0);
        fastest = is_known ? fmin(fastest, each) : fastest;
    }
}

static hr_status size_ways(const cli_args *args, const fit_answer *a, sized_way *sized, size_t *count,
                           hr_err *err)
{
    *count = 0;
    for (size_t k = 0; k < a->found.count; k++) {
        hr_knobs turned;
        if (!a->found.ways[k].on_frontier && !a->found.ways[k].on_same_frontier) {
            continue;
        }
        if (interrupt_seen()) {
            return HR_FAIL(err, INTERRUPTED, "interrupted");
        }
        sized_way *s = &sized[*count];
        s->way = &a->found.ways[k];
        HR_TRY(hr_fit_knobs(&a->knobs, &s->way->point, &turned, err));
        *count += hr_planner_largest(a->planner, &turned, row_of(args)->id, &s->largest, NULL) == HR_OK;
    }
    qsort(sized, *count, sizeof *sized, by_value);
    mark_beaten(sized, *count);
    return HR_OK;
}

static void print_sized(const cli_args *args, const fit_answer *a, const sized_way *sized, size_t count)
{
    const hr_knob_row *row = row_of(args);
    char limit[HR_BYTES_TEXT_MAX], peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    bool any = false;
    printf("%s: the largest %s that fits %s, of %zu ways\n\n%9s %10s %10s  knobs\n", args->words[0], row->key,
           a->found.asked.limit_bytes > 0 ? hr_bytes_human(a->found.asked.limit_bytes, limit) : "", count,
           "largest", "peak", "step");
    for (size_t k = 0; k < count; k++) {
        const hr_largest *l = &sized[k].largest;
        if (!sized[k].is_beaten) {
            char value[32];
            (void)snprintf(value, sizeof value, "%s%" PRIu64, l->is_last ? ">= " : "", l->value);
            printf("%9s %10s %8s%s %s", value, hr_bytes_human(l->plan.peak_in_use_bytes, peak),
                   isfinite(l->plan.step_seconds) ? report_seconds(l->plan.step_seconds, seconds) : "",
                   isfinite(l->plan.step_seconds) ? " s" : "  ",
                   sized[k].way->changes[0] != '\0' ? "~" : " ");
            fit_print_knobs(sized[k].way, 33);
            any = true;
        }
    }
    puts(any ? "\nthe largest first; then what is smaller and faster for its size; peaks planned,\n"
               "times simulated (s); >=: no limit was met; ~ changes what is learned"
             : "not even the smallest fits");
}

static void print_sized_json(const cli_args *args, const fit_answer *a, const sized_way *sized, size_t count)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.fit/1");
    emit_text(&e, "preset", args->words[0]);
    emit_text(&e, "knob", row_of(args)->key);
    emit_count(&e, "limit_bytes", a->found.asked.limit_bytes > 0 ? a->found.asked.limit_bytes : HR_NONE);
    emit_array(&e, "points");
    for (size_t k = 0; k < count; k++) {
        const hr_largest *l = &sized[k].largest;
        emit_row(&e, NULL);
        fit_emit_knobs(&e, sized[k].way);
        emit_bool(&e, "frontier", !sized[k].is_beaten);
        emit_count(&e, "largest", l->value);
        emit_count(&e, "peak_in_use_bytes", l->plan.peak_in_use_bytes);
        emit_real(&e, "step_seconds", l->plan.step_seconds, EMIT_EXACT);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_end_object(&e);
}

hr_status fit_print_largest(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err)
{
    size_t count = 0;
    sized_way *sized = calloc(a->found.count, sizeof *sized);
    if (sized == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %" PRIu32 " ways", a->found.count);
    }
    const hr_status status = size_ways(args, a, sized, &count, err);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_sized_json(args, a, sized, count);
    } else if (status == HR_OK) {
        print_sized(args, a, sized, count);
    }
    *fits = count > 0 && sized[0].largest.value > 0;
    free(sized);
    return status;
}

// ---- on which card --------------------------------------------------------------------------------------------

typedef struct card_way {
    hr_card card;
    const hr_fit_way *way; // NULL: it holds none
    hr_whatif plan;        // of it
} card_way;

static int by_vram(const void *a, const void *b)
{
    const card_way *x = a, *y = b;
    const uint64_t one = x->card.vram_bytes, other = y->card.vram_bytes;
    return one > other ? 1 : one < other ? -1 : strcmp(x->card.name, y->card.name);
}

static hr_status load_cards(card_way **out, size_t *count, hr_err *err)
{
    hr_preset_entry *entries = NULL;
    size_t listed = 0;
    *count = 0;
    HR_TRY(hr_preset_list("cards", &entries, &listed, err));
    card_way *cards = calloc(listed + 1, sizeof *cards);
    for (size_t k = 0; cards != NULL && k < listed; k++) {
        hr_card *card = &cards[*count].card;
        *count += hr_card_load(entries[k].name, card, NULL) == HR_OK && !hr_limit_is_none(card->vram_bytes);
    }
    hr_preset_list_free(entries);
    if (cards == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %zu cards", listed);
    }
    qsort(cards, *count, sizeof *cards, by_vram);
    *out = cards;
    return HR_OK;
}

// A card's library may want less, but hardly a fifth of all: what needs more than that is not planned.
static bool is_hopeless(const hr_fit_way *w, const hr_card *card)
{
    return (double)w->point.plan.peak_in_use_bytes > 1.25 * (double)card->vram_bytes;
}

static hr_status find_way(const fit_answer *a, card_way *c, hr_err *err)
{
    for (size_t k = 0; k < a->found.count; k++) {
        const hr_fit_way *w = &a->found.ways[k];
        hr_knobs turned;
        hr_whatif plan;
        if ((!w->on_frontier && !w->on_same_frontier) || is_hopeless(w, &c->card)) {
            continue;
        }
        HR_TRY(hr_fit_knobs(&a->knobs, &w->point, &turned, err));
        HR_TRY(cards_knobs(&turned, err));
        HR_TRY(hr_knobs_set(&turned, HR_KNOB_DEVICE_CARD, c->card.name, err));
        if (hr_planner_plan(a->planner, &turned, &plan, NULL) == HR_OK && plan.fits &&
            (c->way == NULL || plan.step_seconds < c->plan.step_seconds)) {
            c->way = w;
            c->plan = plan;
        }
    }
    return interrupt_seen() ? HR_FAIL(err, INTERRUPTED, "interrupted") : HR_OK;
}

// The number under which a way stands below the table: in the order in which cards first take it.
static unsigned number_of(const card_way *cards, size_t at)
{
    unsigned number = 1;
    for (size_t k = 0; k < at && cards[k].way != cards[at].way; k++) {
        bool is_first = cards[k].way != NULL;
        for (size_t j = 0; j < k && is_first; j++) {
            is_first = cards[j].way != cards[k].way;
        }
        number += is_first;
    }
    return number;
}

static void print_ways(const card_way *cards, size_t count)
{
    unsigned next = 1;
    puts("\nway  knobs");
    for (size_t k = 0; k < count; k++) {
        if (cards[k].way != NULL && number_of(cards, k) == next) {
            printf("%3u %s", next++, cards[k].way->changes[0] != '\0' ? "~" : " ");
            fit_print_knobs(cards[k].way, 5);
        }
    }
}

static void print_cards(const cli_args *args, const card_way *cards, size_t count)
{
    char vram[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    printf("%s: the fastest way of the frontier that each card holds\n\n%-21s %10s %11s %9s    way\n",
           args->words[0], "name", "vram", "left", "step");
    for (size_t k = 0; k < count; k++) {
        const card_way *c = &cards[k];
        printf("%-21s %10s ", c->card.name, hr_bytes_human(c->card.vram_bytes, vram));
        if (c->way == NULL) {
            puts("holds none");
        } else {
            printf("%11s %9s s %4u\n", hr_bytes_human(c->plan.limit_bytes - c->plan.peak_in_use_bytes, left),
                   report_seconds(c->plan.step_seconds, seconds), number_of(cards, k));
        }
    }
    print_ways(cards, count);
    puts("\npeaks planned, times simulated (s); ~ changes what is learned. All that one card\n"
         "can do: headroom fit PRESET --card NAME");
}

static void print_cards_json(const cli_args *args, const card_way *cards, size_t count)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.fit/1");
    emit_text(&e, "preset", args->words[0]);
    emit_array(&e, "cards");
    for (size_t k = 0; k < count; k++) {
        const card_way *c = &cards[k];
        emit_row(&e, NULL);
        emit_text(&e, "name", c->card.name);
        emit_count(&e, "vram_bytes", c->card.vram_bytes);
        emit_bool(&e, "fits", c->way != NULL);
        if (c->way != NULL) {
            fit_emit_knobs(&e, c->way);
        } else {
            emit_null(&e, "knobs");
        }
        emit_count(&e, "peak_in_use_bytes", c->way != NULL ? c->plan.peak_in_use_bytes : HR_NONE);
        emit_real(&e, "step_seconds", c->way != NULL ? c->plan.step_seconds : (double)NAN, EMIT_EXACT);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_end_object(&e);
}

hr_status fit_print_cards(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err)
{
    card_way *cards = NULL;
    size_t count = 0;
    hr_status status = load_cards(&cards, &count, err);
    for (size_t k = 0; k < count && status == HR_OK; k++) {
        status = find_way(a, &cards[k], err);
        *fits = *fits || cards[k].way != NULL;
    }
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_cards_json(args, cards, count);
    } else if (status == HR_OK) {
        print_cards(args, cards, count);
    }
    free(cards);
    return status;
}
