// SPDX-License-Identifier: Apache-2.0
// fit --cards: on every card the fastest of the ways that searches on some of them found.
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

// Cards that are searched on, from the smallest to the largest: ways differ with the limit, and little with the rates.
enum { SEARCHES = 6, WAYS_MAX = 512 };

typedef struct card_way {
    hr_card card;
    const hr_fit_way *way; // NULL: it holds none
    hr_whatif plan;        // of it
    bool was_looked_at;    // to the end, or it holds one: a signal may come before
} card_way;

typedef struct dealing {
    const cli_args *args;
    fit_answer *a;
    hr_knobs asked; // without a card
    card_way *cards;
    hr_fit_way *ways; // WAYS_MAX
    size_t count, way_count;
} dealing;

static int by_vram(const void *a, const void *b)
{
    const card_way *x = a, *y = b;
    const uint64_t one = x->card.vram_bytes, other = y->card.vram_bytes;
    return one > other ? 1 : one < other ? -1 : strcmp(x->card.name, y->card.name);
}

static hr_status load_cards(dealing *d, hr_err *err)
{
    hr_preset_entry *entries = NULL;
    size_t listed = 0;
    HR_TRY(hr_preset_list("cards", &entries, &listed, err));
    d->cards = calloc(listed + 1, sizeof *d->cards);
    d->ways = calloc(WAYS_MAX, sizeof *d->ways);
    for (size_t k = 0; d->cards != NULL && k < listed; k++) {
        hr_card *card = &d->cards[d->count].card;
        d->count += hr_card_load(entries[k].name, card, NULL) == HR_OK && !hr_limit_is_none(card->vram_bytes);
    }
    hr_preset_list_free(entries);
    if (d->cards == NULL || d->ways == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %zu cards", listed);
    }
    qsort(d->cards, d->count, sizeof *d->cards, by_vram);
    return HR_OK;
}

// ---- ways -----------------------------------------------------------------------------------------------------

// NULL: there is no room for it.
static const hr_fit_way *add_way(dealing *d, const hr_fit_way *way)
{
    for (size_t k = 0; k < d->way_count; k++) {
        if (strcmp(d->ways[k].point.knobs, way->point.knobs) == 0) {
            return &d->ways[k];
        }
    }
    if (d->way_count == WAYS_MAX) {
        return NULL;
    }
    d->ways[d->way_count] = *way;
    return &d->ways[d->way_count++];
}

// What nobody looked at to the end is not said to hold nothing.
static void end_look(card_way *c)
{
    c->was_looked_at = c->was_looked_at || c->way != NULL || !interrupt_seen();
}

// The card's own answer is one already.
static hr_status search_on(dealing *d, card_way *c, hr_err *err)
{
    d->a->knobs = d->asked;
    HR_TRY(hr_knobs_set(&d->a->knobs, HR_KNOB_DEVICE_CARD, c->card.name, err));
    HR_TRY(fit_find(d->a, err));
    for (uint32_t k = 0; k < d->a->found.count; k++) {
        const hr_fit_way *way = &d->a->found.ways[k];
        if (way->on_frontier || way->on_same_frontier) {
            (void)add_way(d, way);
        }
    }
    const hr_fit_way *fastest = hr_fit_fastest(&d->a->found, true);
    c->way = fastest != NULL ? add_way(d, fastest) : NULL;
    c->plan = fastest != NULL ? fastest->point.plan : c->plan;
    end_look(c);
    return HR_OK;
}

static hr_status find_ways(dealing *d, hr_err *err)
{
    for (size_t k = 0; k < SEARCHES && d->count > 0 && !interrupt_seen(); k++) {
        card_way *c = &d->cards[k * (d->count - 1) / (SEARCHES - 1)];
        (void)snprintf(d->a->doing, sizeof d->a->doing, "%.32s: ", c->card.name);
        HR_TRY(search_on(d, c, err));
    }
    return HR_OK;
}

// A card's library may want less, but hardly a fifth of all: what needs more than that is not planned.
static bool is_hopeless(const hr_fit_way *w, const hr_card *card)
{
    return (double)w->point.plan.peak_in_use_bytes > 1.25 * (double)card->vram_bytes;
}

static hr_status deal(const dealing *d, card_way *c, hr_err *err)
{
    (void)snprintf(d->a->doing, sizeof d->a->doing, "%.32s: ", c->card.name);
    (void)snprintf(d->a->so_far, sizeof d->a->so_far, "; tries the %zu ways that were found", d->way_count);
    for (size_t k = 0; k < d->way_count && fit_goes_on(d->a, k > 0); k++) {
        const hr_fit_way *w = &d->ways[k];
        hr_knobs turned;
        hr_whatif plan;
        if (is_hopeless(w, &c->card)) {
            continue;
        }
        HR_TRY(hr_fit_knobs(&d->asked, &w->point, &turned, err));
        HR_TRY(hr_knobs_set(&turned, HR_KNOB_DEVICE_CARD, c->card.name, err));
        if (hr_planner_plan(d->a->planner, &turned, &plan, NULL) == HR_OK && plan.fits &&
            (c->way == NULL || plan.step_seconds < c->plan.step_seconds)) {
            c->way = w;
            c->plan = plan;
        }
    }
    end_look(c);
    return HR_OK;
}

// ---- what is said ---------------------------------------------------------------------------------------------

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

static bool any_was_looked_at(const dealing *d)
{
    bool any = false;
    for (size_t k = 0; k < d->count; k++) {
        any = any || d->cards[k].was_looked_at;
    }
    return any;
}

static void print_ways(const dealing *d)
{
    unsigned next = 1;
    puts("\nway  knobs");
    for (size_t k = 0; k < d->count; k++) {
        const hr_fit_way *way = d->cards[k].way;
        if (way != NULL && number_of(d->cards, k) == next) {
            printf("%3u %s", next++, way->changes[0] != '\0' ? "~" : " ");
            fit_print_knobs(way, 5);
        }
    }
}

static void print_text(const dealing *d)
{
    size_t left_out = 0;
    if (d->count > 0 && !any_was_looked_at(d)) {
        printf("%s: no card was looked at to the end\n", d->args->words[0]);
        fit_print_cut();
        return;
    }
    char vram[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    printf("%s: %s of %zu ways that each card holds\n\n%-21s %10s %11s %9s  way\n", d->args->words[0],
           interrupt_seen() ? "the fastest so far" : "the fastest", d->way_count, "name", "vram", "left",
           "step");
    for (size_t k = 0; k < d->count; k++) {
        const card_way *c = &d->cards[k];
        if (!c->was_looked_at) {
            left_out++;
            continue;
        }
        printf("%-21s %10s ", c->card.name, hr_bytes_human(c->card.vram_bytes, vram));
        if (c->way == NULL) {
            puts("holds none");
        } else {
            printf("%11s %9s %4u\n", hr_bytes_human(c->plan.limit_bytes - c->plan.peak_in_use_bytes, left),
                   fit_seconds_text(c->plan.step_seconds, seconds), number_of(d->cards, k));
        }
    }
    if (left_out > 0) {
        printf("%zu more cards were not looked at to the end\n", left_out);
    }
    print_ways(d);
    fit_print_basis(HR_TIME_DATASHEET,
                    "peaks planned; ~ changes what is learned. A search for one card may find a "
                    "faster one: headroom fit PRESET --card NAME");
    fit_print_cut();
}

static void print_json(const dealing *d)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.fit.cards/1");
    emit_text(&e, "preset", d->args->words[0]);
    emit_bool(&e, "interrupted", interrupt_seen());
    emit_array(&e, "cards");
    for (size_t k = 0; k < d->count; k++) {
        const card_way *c = &d->cards[k];
        emit_row(&e, NULL);
        emit_text(&e, "name", c->card.name);
        emit_count(&e, "vram_bytes", c->card.vram_bytes);
        if (c->was_looked_at) {
            emit_bool(&e, "fits", c->way != NULL);
        } else {
            emit_null(&e, "fits");
        }
        if (c->way != NULL) {
            emit_pairs(&e, "knobs", c->way->point.knobs);
        } else {
            emit_null(&e, "knobs");
        }
        emit_count(&e, "peak_in_use_bytes", c->way != NULL ? c->plan.peak_in_use_bytes : HR_NONE);
        fit_emit_seconds(&e, c->way != NULL ? &c->plan : NULL);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_end_object(&e);
}

hr_status fit_cards(const cli_args *args, fit_answer *a, bool *fits, hr_err *err)
{
    dealing d = {.args = args, .a = a, .asked = a->knobs};
    hr_status status = cards_knobs(&d.asked, err);
    *fits = false;
    status = status == HR_OK ? load_cards(&d, err) : status;
    status = status == HR_OK ? find_ways(&d, err) : status;
    for (size_t k = 0; k < d.count && status == HR_OK && !interrupt_seen(); k++) {
        status = deal(&d, &d.cards[k], err);
        *fits = *fits || d.cards[k].way != NULL;
    }
    progress_clear(&a->line);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_json(&d);
    } else if (status == HR_OK) {
        print_text(&d);
    }
    free(d.cards);
    free(d.ways);
    return status;
}
