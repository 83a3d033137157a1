// SPDX-License-Identifier: Apache-2.0
// cards --fit PRESET: which cards hold a step, with how much left, and how large a batch could be.
#include "app/cli/cards_fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

typedef struct card_plan {
    const hr_card *card;
    hr_whatif plan;
    uint64_t largest_batch; // 0: not even one sample fits
} card_plan;

// Limits of one's own are not the card's, and the machine's own processor is none.
static hr_status knobs_for_cards(hr_knobs *knobs, hr_err *err)
{
    if (!hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda")) {
        HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_KIND, "plan", err));
    }
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_VRAM, "", err));
    return hr_knobs_set(knobs, HR_KNOB_DEVICE_LOGICAL, "", err);
}

static hr_status plan_card(const hr_planner *planner, const hr_knobs *subject, card_plan *out, hr_err *err)
{
    hr_knobs knobs = *subject;
    hr_largest largest;
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_DEVICE_CARD, out->card->name, err));
    HR_TRY(hr_planner_plan(planner, &knobs, &out->plan, err));
    HR_TRY(hr_planner_largest(planner, &knobs, HR_KNOB_BATCH_SIZE, &largest, err));
    out->largest_batch = largest.value;
    return HR_OK;
}

static hr_status plan_cards(const hr_planner *planner, const hr_knobs *knobs, card_plan *plans, size_t count,
                            hr_err *err)
{
    for (size_t k = 0; k < count; k++) {
        HR_TRY(plan_card(planner, knobs, &plans[k], err));
    }
    return HR_OK;
}

bool cards_smallest(const hr_planner *planner, const hr_knobs *knobs, uint64_t least_bytes, hr_card *card,
                    hr_whatif *plan)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_knobs on_card = *knobs;
    bool found = false;
    if (knobs_for_cards(&on_card, NULL) != HR_OK ||
        hr_preset_list("cards", &entries, &count, NULL) != HR_OK) {
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        hr_card one;
        hr_whatif w;
        if (hr_card_load(entries[k].name, &one, NULL) == HR_OK && one.vram_bytes >= least_bytes &&
            (!found || one.vram_bytes < card->vram_bytes) &&
            hr_knobs_set(&on_card, HR_KNOB_DEVICE_CARD, one.name, NULL) == HR_OK &&
            hr_planner_plan(planner, &on_card, &w, NULL) == HR_OK && w.missing_bytes == 0) {
            *card = one;
            *plan = w;
            found = true;
        }
    }
    hr_preset_list_free(entries);
    return found;
}

// ---- what is said ---------------------------------------------------------------------------------------------

static uint64_t needed_bytes(const hr_whatif *w)
{
    return w->missing_bytes > 0 ? w->limit_bytes + w->missing_bytes : w->peak_in_use_bytes;
}

static void print_plan(const card_plan *p)
{
    const hr_whatif *w = &p->plan;
    char limit[HR_BYTES_TEXT_MAX], needs[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX],
        seconds[REPORT_SECONDS_TEXT_MAX];
    const uint64_t needed = needed_bytes(w);
    const bool fits = w->missing_bytes == 0;
    const uint64_t difference = fits ? w->limit_bytes - needed : w->missing_bytes;
    printf("%-21s %10s %10s %c%10s %9" PRIu64 " %9s\n", p->card->name, hr_bytes_human(w->limit_bytes, limit),
           hr_bytes_human(needed, needs), fits ? '+' : '-', hr_bytes_human(difference, left),
           p->largest_batch,
           fits && isfinite(w->step_seconds) ? report_seconds(w->step_seconds, seconds) : "");
}

static void print_plans(const cli_args *args, const hr_knobs *knobs, const card_plan *plans, size_t count)
{
    size_t fitting = 0;
    for (size_t k = 0; k < count; k++) {
        fitting += plans[k].plan.missing_bytes == 0;
    }
    printf("%s at batch.size=%" PRId64 " fits %zu of %zu cards\n\n", args->value[APP_FIT],
           hr_knob_int(knobs, HR_KNOB_BATCH_SIZE), fitting, count);
    printf("%-21s %10s %10s %11s %9s %9s\n", "name", "limit", "needs", "left", "largest", "step");
    for (size_t k = 0; k < count; k++) {
        print_plan(&plans[k]);
    }
    puts("\nlimit: what the allocator may take of the card; needs: in use at the peak, or the\n"
         "smallest limit tried that holds it; left: + free then, - missing; largest: the\n"
         "largest batch.size that fits; step: simulated by the card's rates. Planned, with\n"
         "estimated workspaces. One of them whole: headroom plan PRESET -s device.card=NAME");
}

static void print_plans_json(const card_plan *plans, size_t count)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < count; k++) {
        const hr_whatif *w = &plans[k].plan;
        emit_row(&e, NULL);
        emit_text(&e, "name", plans[k].card->name);
        emit_count(&e, "limit_bytes", w->limit_bytes);
        emit_bool(&e, "fits", w->missing_bytes == 0);
        emit_count(&e, "peak_in_use_bytes", needed_bytes(w));
        emit_count(&e, "missing_bytes", w->missing_bytes);
        emit_count(&e, "largest_batch", plans[k].largest_batch);
        emit_real(&e, "step_seconds", w->step_seconds, EMIT_EXACT);
        emit_end_object(&e);
    }
    emit_end_array(&e);
}

// ---- the command ----------------------------------------------------------------------------------------------

static bool any_fits(const card_plan *plans, size_t count)
{
    bool fits = false;
    for (size_t k = 0; k < count; k++) {
        fits |= plans[k].plan.missing_bytes == 0;
    }
    return fits;
}

static hr_status plan_and_print(const cli_args *args, cli_subject *subject, card_plan *plans, size_t count,
                                hr_err *err)
{
    hr_planner *planner = NULL;
    HR_TRY(knobs_for_cards(&subject->knobs, err));
    HR_TRY(hr_planner_open(subject->preset, &planner, err));
    const hr_status status = plan_cards(planner, &subject->knobs, plans, count, err);
    hr_planner_close(planner);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_plans_json(plans, count);
    } else if (status == HR_OK) {
        print_plans(args, &subject->knobs, plans, count);
    }
    return status;
}

int cards_fit(const cli_args *args, const hr_card *cards, size_t count)
{
    cli_subject subject = {.preset = NULL};
    hr_err err = {0};
    card_plan *plans = calloc(count + 1, sizeof *plans);
    hr_status status = plans != NULL ? HR_OK : HR_FAIL(&err, NOMEM, "no host memory for %zu cards", count);
    for (size_t k = 0; k < count && status == HR_OK; k++) {
        plans[k].card = &cards[k];
    }
    status = status == HR_OK ? cli_open(args, args->value[APP_FIT], &subject, &err) : status;
    status = status == HR_OK ? plan_and_print(args, &subject, plans, count, &err) : status;
    const bool fits = status == HR_OK && any_fits(plans, count);
    cli_close(&subject);
    free(plans);
    return status != HR_OK ? say_error(&err, cli_given(args, APP_JSON)) : fits ? 0 : 1;
}
