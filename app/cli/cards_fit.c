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
    hr_status status; // of planning; otherwise only `why` is there
    char why[HR_ERR_TEXT_MAX];
    hr_whatif plan;
    uint64_t largest_batch; // 0: not even one sample fits
} card_plan;

hr_status cards_knobs(hr_knobs *knobs, hr_err *err)
{
    if (!hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cuda")) {
        HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_KIND, "plan", err));
    }
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_VRAM, "", err));
    return hr_knobs_set(knobs, HR_KNOB_DEVICE_LOGICAL, "none", err);
}

static hr_status plan_on_card(const hr_planner *planner, const hr_knobs *subject, card_plan *out, hr_err *err)
{
    hr_knobs knobs = *subject;
    hr_largest largest;
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_DEVICE_CARD, out->card->name, err));
    HR_TRY(hr_planner_plan(planner, &knobs, &out->plan, err));
    HR_TRY(hr_planner_largest(planner, &knobs, HR_KNOB_BATCH_SIZE, &largest, err));
    out->largest_batch = largest.is_last ? HR_NONE : largest.value;
    return HR_OK;
}

// A card that the device does not do hides no other. Why none could be planned is *err.
static hr_status plan_cards(const hr_planner *planner, const hr_knobs *knobs, card_plan *plans, size_t count,
                            hr_err *err)
{
    bool any = count == 0;
    hr_err failure = {0};
    for (size_t k = 0; k < count; k++) {
        plans[k].status = plan_on_card(planner, knobs, &plans[k], &failure);
        any |= plans[k].status == HR_OK;
        (void)snprintf(plans[k].why, sizeof plans[k].why, "%s", failure.sentence);
    }
    if (!any) {
        *err = failure;
    }
    return any ? HR_OK : failure.status;
}

bool cards_smallest(const hr_planner *planner, const hr_knobs *knobs, uint64_t least_bytes, hr_card *card,
                    hr_whatif *plan)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_knobs on_card = *knobs;
    bool found = false;
    if (cards_knobs(&on_card, NULL) != HR_OK ||
        hr_knobs_set(&on_card, HR_KNOB_DEVICE_KIND, "plan", NULL) !=
            HR_OK || // eighty answers of a library take minutes
        hr_preset_list("cards", &entries, &count, NULL) != HR_OK) {
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        hr_card one;
        hr_whatif w;
        if (hr_card_load(entries[k].name, &one, NULL) == HR_OK && one.vram_bytes >= least_bytes &&
            !hr_limit_is_none(one.vram_bytes) && (!found || one.vram_bytes < card->vram_bytes) &&
            hr_knobs_set(&on_card, HR_KNOB_DEVICE_CARD, one.name, NULL) == HR_OK &&
            hr_planner_plan(planner, &on_card, &w, NULL) == HR_OK && w.fits) {
            *card = one;
            *plan = w;
            found = true;
        }
    }
    hr_preset_list_free(entries);
    return found;
}

// ---- what is said ---------------------------------------------------------------------------------------------

static size_t count_fitting(const card_plan *plans, size_t count)
{
    size_t fitting = 0;
    for (size_t k = 0; k < count; k++) {
        fitting += plans[k].status == HR_OK && plans[k].plan.fits;
    }
    return fitting;
}

enum { LEFT_TEXT_MAX = HR_BYTES_TEXT_MAX + 8 };

// "+ 3.10 GiB": free at the peak; "- 1.00 GiB": missing on the card, "host - 1.00 GiB": on the host.
static const char *left_text(const hr_whatif *w, char text[LEFT_TEXT_MAX])
{
    char bytes[HR_BYTES_TEXT_MAX];
    const uint64_t left = w->fits ? w->limit_bytes - w->peak_in_use_bytes : hr_whatif_missing_bytes(w);
    (void)snprintf(text, LEFT_TEXT_MAX, "%s %s",
                   hr_whatif_lacks_host(w) ? "host -"
                   : w->fits               ? "+"
                                           : "-",
                   hr_bytes_human(left, bytes));
    return w->fits && w->limit_bytes == 0 ? "" : text;
}

static void print_plan(const card_plan *p)
{
    const hr_whatif *w = &p->plan;
    char limit[HR_BYTES_TEXT_MAX], needs[HR_BYTES_TEXT_MAX], left[LEFT_TEXT_MAX], largest[24] = "";
    char seconds[REPORT_SECONDS_TEXT_MAX];
    if (p->status != HR_OK) {
        printf("%-21s %s\n", p->card->name, p->why);
        return;
    }
    if (p->largest_batch != HR_NONE) {
        (void)snprintf(largest, sizeof largest, "%" PRIu64, p->largest_batch);
    }
    printf("%-21s %10s %10s %15s %8s %9s\n", p->card->name,
           w->limit_bytes > 0 ? hr_bytes_human(w->limit_bytes, limit) : "none",
           hr_bytes_human(w->peak_in_use_bytes, needs), left_text(w, left), largest,
           w->fits && isfinite(w->step_seconds) ? report_seconds(w->step_seconds, seconds) : "");
}

static void print_plans(const cli_args *args, const hr_knobs *knobs, const card_plan *plans, size_t count)
{
    printf("%s at batch.size=%" PRId64 " fits %zu of %zu cards\n\n", args->value[APP_FIT],
           hr_knob_int(knobs, HR_KNOB_BATCH_SIZE), count_fitting(plans, count), count);
    printf("%-21s %10s %10s %15s %8s %9s\n", "name", "limit", "needs", "left", "largest", "step");
    for (size_t k = 0; k < count; k++) {
        print_plan(&plans[k]);
    }
    puts("\nlimit: what the allocator may take of the card, whatever device.vram of the preset\n"
         "says; needs: in use at the peak, or the smallest limit tried that holds it; left:\n"
         "+ free then, - missing; largest: the largest batch.size that fits; step: estimated\n"
         "from the card's datasheet. One of them whole:\n"
         "headroom plan PRESET -s device.card=NAME");
}

static void print_plans_json(const card_plan *plans, size_t count)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < count; k++) {
        const hr_whatif *w = &plans[k].plan;
        const bool planned = plans[k].status == HR_OK;
        emit_row(&e, NULL);
        emit_text(&e, "name", plans[k].card->name);
        emit_count(&e, "limit_bytes", planned && w->limit_bytes > 0 ? w->limit_bytes : HR_NONE);
        emit_bool(&e, "fits", planned && w->fits);
        emit_count(&e, "peak_in_use_bytes", planned ? w->peak_in_use_bytes : HR_NONE);
        emit_count(&e, "missing_bytes", planned ? hr_whatif_missing_bytes(w) : HR_NONE);
        emit_count(&e, "largest_batch", planned ? plans[k].largest_batch : HR_NONE);
        emit_real(&e, "step_seconds", planned ? w->step_seconds : (double)NAN, EMIT_EXACT);
        emit_text(&e, "error", planned ? NULL : plans[k].why);
        emit_end_object(&e);
    }
    emit_end_array(&e);
}

// ---- the command ----------------------------------------------------------------------------------------------

static hr_status plan_and_print(const cli_args *args, cli_subject *subject, card_plan *plans, size_t count,
                                hr_err *err)
{
    hr_planner *planner = NULL;
    HR_TRY(cards_knobs(&subject->knobs, err));
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
    const bool fits = status == HR_OK && count_fitting(plans, count) > 0;
    cli_close(&subject);
    free(plans);
    return status != HR_OK ? say_error(&err, cli_given(args, APP_JSON)) : fits ? 0 : 1;
}
