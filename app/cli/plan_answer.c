// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/cards_fit.h"
#include "app/cli/plan_play.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

// ---- the largest batch, the longest sequence -------------------------------------------------------------------

// Each batch or card that is too small for a budget is compiled in every way before it is refused: a search of them takes from ten
// seconds to minutes.
static bool has_budget(const hr_knobs *knobs)
{
    return strncmp(hr_knob_text(knobs, HR_KNOB_CHECKPOINT_STRATEGY), "budget:", strlen("budget:")) == 0;
}

static bool find_largest(const hr_planner *planner, const hr_knobs *knobs, hr_knob_id id, hr_largest *largest)
{
    return hr_knob_acts(knobs, id) && hr_planner_largest(planner, knobs, id, largest, NULL) == HR_OK;
}

// A line of its own, whole, so that it can be copied.
static void print_command_for_largest(const cli_args *args)
{
    fputs("  under a budget the largest batch.size takes a while to find:\n  headroom fit ", stdout);
    say_word(stdout, args->words[0] != NULL ? args->words[0] : "demo");
    printf(" --max batch.size%s%s", cli_given(args, APP_TRUST) ? " --trust" : "",
           cli_given(args, APP_OPAQUE) ? " --opaque" : "");
    for (unsigned k = 0; k < args->set_count; k++) {
        fputs(" -s ", stdout);
        say_word(stdout, args->sets[k]);
    }
    putchar('\n');
}

static void print_largest(const cli_args *args, const hr_planner *planner, const hr_knobs *knobs)
{
    hr_largest largest;
    if (has_budget(knobs)) {
        print_command_for_largest(args);
        return;
    }
    if (find_largest(planner, knobs, HR_KNOB_BATCH_SIZE, &largest) && !largest.is_last) {
        if (largest.value == 0) {
            puts("  not even batch.size=1 fits");
        } else {
            printf("  the largest batch.size that fits is %" PRIu64 "\n", largest.value);
        }
    }
    if (find_largest(planner, knobs, HR_KNOB_MODEL_SEQUENCE, &largest) && largest.value > 0 &&
        !largest.is_last) {
        printf("  the longest model.sequence that fits is %" PRIu64 "\n", largest.value);
    }
}

// ---- a smaller card -------------------------------------------------------------------------------------------

// What cards are sold with.
static const uint32_t sizes_gib[] = {2, 3, 4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141};
enum { SIZES = sizeof sizes_gib / sizeof *sizes_gib };

static hr_status knobs_of_size(const hr_knobs *knobs, uint32_t gib, hr_knobs *out)
{
    char card[HR_KNOB_TEXT_MAX];
    *out = *knobs;
    (void)snprintf(card, sizeof card, "%.160s,vram=%" PRIu32 "GiB", hr_knob_text(knobs, HR_KNOB_DEVICE_CARD),
                   gib);
    return hr_knobs_set(out, HR_KNOB_DEVICE_CARD, card, NULL);
}

// The largest size that does not hold it; 0: there is none.
static uint32_t size_too_small(const hr_planner *planner, const hr_knobs *knobs, uint64_t vram_bytes)
{
    for (size_t k = SIZES; k-- > 0;) {
        hr_knobs smaller;
        hr_whatif plan;
        if ((sizes_gib[k] + UINT64_C(1)) * HR_GIB < vram_bytes && // 23.99 GiB are sold as 24
            knobs_of_size(knobs, sizes_gib[k], &smaller) == HR_OK &&
            hr_planner_plan(planner, &smaller, &plan, NULL) == HR_OK && plan.missing_bytes > 0) {
            return sizes_gib[k];
        }
    }
    return 0;
}

static void print_fix(const hr_report_fix *fix, const hr_report *before, uint32_t gib)
{
    const double more = fix->seconds / before->step.seconds - 1;
    printf("  on a card of %" PRIu32 " GiB it would need %s", gib, fix->knobs);
    if (isfinite(more) && fabs(more) >= 0.005) {
        printf(" (a step takes %.0f %% %s)", 100 * fabs(more), more < 0 ? "less" : "more");
    }
    putchar('\n');
}

// An engine that plans names what was proved to fit.
static void print_smaller(const hr_preset *preset, const hr_knobs *knobs, const hr_report *before,
                          uint32_t gib)
{
    const hr_engine_options options = {.plan_only = true};
    hr_engine *engine = NULL;
    hr_knobs smaller;
    hr_report r;
    if (knobs_of_size(knobs, gib, &smaller) != HR_OK ||
        hr_engine_create(preset, &smaller, &options, &engine, NULL) != HR_OK) {
        return;
    }
    if (plan_play(engine, 1, NULL) == HR_OK && hr_engine_report(engine, &r, NULL) == HR_OK) {
        if (r.oom.fix_count > 0 && strncmp(r.oom.fixes[0].knobs, "device.", 7) != 0) { // not another card
            print_fix(&r.oom.fixes[0], before, gib);
        }
        hr_report_deinit(&r);
    }
    hr_engine_destroy(engine);
}

// Of a step that fits a card that was named, and is bounded by nothing else, no budget either.
static void print_smaller_card(const hr_preset *preset, const hr_planner *planner, const hr_knobs *knobs,
                               const hr_report *r)
{
    hr_card card;
    const bool has_own_limit =
        hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM) || hr_knob_is_set(knobs, HR_KNOB_DEVICE_LOGICAL);
    if (has_own_limit || has_budget(knobs) || hr_card_of(knobs)[0] == '\0' ||
        hr_card_load(hr_card_of(knobs), &card, NULL) != HR_OK || hr_limit_is_none(card.vram_bytes)) {
        return;
    }
    const uint32_t gib = size_too_small(planner, knobs, card.vram_bytes);
    if (gib > 0) {
        print_smaller(preset, knobs, r, gib);
    }
}

// ---- any card -------------------------------------------------------------------------------------------------

static void print_smallest_card(const hr_planner *planner, const hr_knobs *knobs, const hr_report *r)
{
    hr_card card;
    hr_whatif plan;
    char left[HR_BYTES_TEXT_MAX];
    if (cards_smallest(planner, knobs, r->memory.peak_requested_bytes, &card, &plan)) {
        printf("  the smallest card that holds it is %s, with %s left\n", card.name,
               hr_bytes_human(plan.limit_bytes - plan.peak_in_use_bytes, left));
    } else {
        puts("  no card of `headroom cards` holds it");
    }
}

// ---- the answer -----------------------------------------------------------------------------------------------

// What only later steps or an evaluation lack is in the sentence alone.
static void print_shortfall(const cli_args *args, const hr_planner *planner, const hr_knobs *knobs,
                            const hr_report *r)
{
    hr_whatif plan;
    char missing[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    if (hr_planner_plan(planner, knobs, &plan, NULL) != HR_OK || plan.fits) {
        fputs("does not fit: ", stdout);
        say_paragraph(r->oom.sentence, 14);
        return;
    }
    if (hr_whatif_lacks_host(&plan)) {
        printf("does not fit: the host would hold %s, %s more than pipeline.ram_limit\n",
               hr_bytes_human(plan.host_bytes, limit), hr_bytes_human(plan.host_missing_bytes, missing));
    } else {
        printf("does not fit: %s more than the limit of %s are needed\n",
               hr_bytes_human(plan.missing_bytes, missing), hr_bytes_human(plan.limit_bytes, limit));
    }
    print_largest(args, planner, knobs);
}

// What they would keep is all that is thought of; what they make for themselves is in neither number.
static void print_opaque(const hr_report *r)
{
    char least[HR_BYTES_TEXT_MAX], most[HR_BYTES_TEXT_MAX];
    uint32_t count = 0;
    for (size_t k = 0; k < r->model.layer_count; k++) {
        count += strcmp(r->model.layers[k].kind, "opaque") == 0 ? 1 : 0;
    }
    if (count == 0 || r->memory.at_peak.opaque_bytes == HR_NONE) {
        return;
    }
    if (r->oom.cause != HR_OOM_NONE) {
        printf("  %" PRIu32
               " opaque layer%s thought to keep all that they read and give, and may keep less\n",
               count, count > 1 ? "s are" : " is");
        return;
    }
    (void)hr_bytes_human(r->memory.peak_in_use_bytes, most);
    printf("  with %" PRIu32 " opaque layer%s: ", count, count > 1 ? "s" : "");
    if (r->memory.at_peak.opaque_bytes == 0) {
        printf("none of the peak of %s is what they may keep;\n  ", most);
    } else {
        printf("between %s and %s at the peak, as they keep nothing or all that they read\n  and give; ",
               hr_bytes_human(r->memory.peak_in_use_bytes - r->memory.at_peak.opaque_bytes, least), most);
    }
    puts("what they need while they compute is not known, and of their time the bytes alone are counted");
}

void plan_answer_print(const cli_args *args, const hr_preset *preset, const hr_knobs *knobs,
                       const hr_report *report)
{
    hr_planner *planner = NULL;
    const bool fits = report->oom.cause == HR_OOM_NONE;
    if (fits) {
        report_print_verdict(report);
        print_opaque(report);
    }
    if (hr_planner_open(preset, &planner, NULL) != HR_OK) {
        putchar('\n');
        return;
    }
    if (!fits) {
        print_shortfall(args, planner, knobs, report);
        print_opaque(report);
    } else if (report->memory.limit_bytes == HR_NONE) {
        print_smallest_card(planner, knobs, report);
    } else {
        print_largest(args, planner, knobs);
        print_smaller_card(preset, planner, knobs, report);
    }
    hr_planner_close(planner);
    putchar('\n');
}
