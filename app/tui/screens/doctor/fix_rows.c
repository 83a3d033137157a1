// SPDX-License-Identifier: Apache-2.0
// The turns that are known to help: which, and in what order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "app/tui/screens/doctor/doctor.h"

bool doctor_has_oom(const feed *f)
{
    const run_state *m = feed_run_state(f);
    bool out = f->has_report && f->report.oom.cause != HR_OOM_NONE;
    return out && (m->state == HR_ENGINE_OOM || m->oom_count > 0);
}

bool doctor_misses(const feed *f)
{
    const hr_whatif *plan = feed_waiting_plan(f);
    return plan != NULL && !plan->fits && !doctor_has_oom(f);
}

bool doctor_is_of_host(const feed *f)
{
    const hr_whatif *plan = feed_waiting_plan(f);
    return doctor_has_oom(f) ? f->report.oom.of_host : plan != NULL && hr_whatif_lacks_host(plan);
}

// Of a turn that is planned: what decides whether it fits. There is no share of a limit where it is the host's.
static void take_plan(const feed *f, const hr_whatif *plan, fix_row *row)
{
    const bool host = doctor_is_of_host(f);
    row->peak_bytes = host ? plan->host_bytes : plan->peak_in_use_bytes;
    row->limit_bytes = host ? 0 : plan->limit_bytes;
    row->seconds = plan->step_seconds > 0 ? plan->step_seconds : UNKNOWN;
}

static const whatif_cell *present_of(const feed *f)
{
    const whatif_cell *present = &f->answers.present;
    bool known = f->answers.question == f->question && present->known && !present->refused;
    return known ? present : NULL;
}

// From the knobs as they stand; what cannot be set costs the most.
static hr_turn_cost cost_of(const feed *f, const fix_row *row)
{
    char pairs[HR_KNOB_TEXT_MAX];
    hr_knobs turned = f->knobs;
    return hr_knobs_set_pairs(&turned, doctor_fix_text(f, row, pairs), NULL) != HR_OK
               ? HR_TURN_COST_LIMIT
               : hr_turn_cost_of(&f->knobs, &turned, f->has_report && f->report.model.normalises_batches);
}

const char *doctor_fix_cost(const feed *f, const fix_row *row, char text[HR_TURN_WORDS_MAX])
{
    const whatif_cell *present = present_of(f);
    if (row->dry_run >= 0) {
        snprintf(text, HR_TURN_WORDS_MAX, "%.*s", HR_TURN_WORDS_MAX - 1,
                 f->report.oom.fixes[row->dry_run].cost);
        return text;
    }
    return hr_turn_words(row->cost, present == NULL ? UNKNOWN : present->plan.step_seconds, row->seconds,
                         text);
}

static size_t add_dry_runs(const feed *f, fix_row rows[FIX_ROWS_MAX])
{
    const hr_report_oom *oom = &f->report.oom;
    size_t count = 0;
    for (; count < oom->fix_count && count < HR_FIXES_MAX; count++) {
        const hr_report_fix *fix = &oom->fixes[count];
        rows[count] = (fix_row){
            .dry_run = (int)count,
            .point = -1,
            .peak_bytes = doctor_is_of_host(f) ? fix->host_bytes : fix->peak_bytes,
            .limit_bytes = fix->limit_bytes == HR_NONE || doctor_is_of_host(f) ? 0 : fix->limit_bytes,
            .seconds = fix->seconds};
        rows[count].cost = cost_of(f, &rows[count]);
    }
    return count;
}

static bool is_told(const feed *f, const fix_row *rows, size_t count, const fix_row *row)
{
    char text[HR_KNOB_TEXT_MAX], told[HR_KNOB_TEXT_MAX];
    doctor_fix_text(f, row, text);
    size_t i = 0;
    while (i < count && strcmp(doctor_fix_text(f, &rows[i], told), text) != 0) {
        i++;
    }
    return i < count;
}

static int by_peak(const void *left, const void *right)
{
    const fix_row *a = left, *b = right;
    return a->peak_bytes < b->peak_bytes ? -1 : a->peak_bytes > b->peak_bytes;
}

// A step that takes no gradients is no way out; and of a step that fits another device is none.
static bool helps(const feed *f, hr_knob_id id, int side, uint64_t below_bytes)
{
    const whatif_cell *cell = feed_whatif(f, id, side);
    return cell != NULL && !cell->refused && cell->plan.fits && hr_turn_helps(&f->knobs, id) &&
           id != HR_KNOB_EXECUTION_TAPE && cell->plan.peak_in_use_bytes < below_bytes &&
           (below_bytes == UINT64_MAX || strncmp(hr_knob_rows(NULL)[id].key, "device.", 7) != 0);
}

static int pairs_of(const char *text)
{
    int pairs = *text != '\0';
    for (; *text != '\0'; text++) {
        pairs += *text == ' ';
    }
    return pairs;
}

// What changes what is learned stays there.
static size_t add_points(const feed *f, fix_row rows[FIX_ROWS_MAX], size_t count)
{
    enum { PAIRS_MAX = 6 };
    const fit_points *fit = &f->fit;
    size_t points = knob_edit_same(&fit->knobs, &f->knobs) ? fit->count : 0;
    for (size_t i = 0; i < PAIRS_MAX * points && count < FIX_ROWS_MAX; i++) {
        const uint16_t point = fit->order[i % points];
        const hr_fit_point *p = &fit->point[point];
        fix_row row = {.dry_run = -1, .point = point};
        take_plan(f, &p->plan, &row);
        if (p->plan.fits && pairs_of(p->knobs) == 1 + (int)(i / points) && !fit->learns[point] &&
            !is_told(f, rows, count, &row)) {
            row.cost = cost_of(f, &row);
            rows[count++] = row;
        }
    }
    return count;
}

static size_t add_turns(const feed *f, fix_row rows[FIX_ROWS_MAX], size_t count, uint64_t below_bytes)
{
    const size_t dry_runs = count;
    size_t panel_count;
    const hr_knob_id *panel = knob_edit_panel(&panel_count);
    for (size_t i = 0; i < 2 * panel_count && count < FIX_ROWS_MAX; i++) {
        fix_row row = {
            .dry_run = -1, .point = -1, .id = panel[i / 2], .side = i % 2 == 0 ? WHATIF_LESS : WHATIF_MORE};
        // another framework's step is another question, no remedy
        if (row.id != HR_KNOB_EXECUTION_AS && helps(f, row.id, row.side, below_bytes) &&
            !is_told(f, rows, dry_runs, &row)) {
            take_plan(f, &feed_whatif(f, row.id, row.side)->plan, &row);
            row.cost = cost_of(f, &row);
            rows[count++] = row;
        }
    }
    return count;
}

// As the engine puts its own in order; of equals the one that stood first stays so.
static void put_cheapest_first(fix_row *rows, size_t count)
{
    for (size_t k = 1; k < count; k++) {
        const fix_row row = rows[k];
        size_t at = k;
        for (; at > 0 && hr_turn_goes_before(row.cost, row.seconds, rows[at - 1].cost, rows[at - 1].seconds);
             at--) {
            rows[at] = rows[at - 1];
        }
        rows[at] = row;
    }
}

static uint64_t limit_of(const feed *f)
{
    const hr_whatif *plan = feed_waiting_plan(f);
    return doctor_has_oom(f) ? f->report.oom.limit_bytes
           : plan != NULL    ? plan->limit_bytes
                             : feed_run_state(f)->limit_bytes;
}

static bool is_lift(const feed *f, const fix_row *row)
{
    static const char of_host[] = "pipeline.ram_limit=";
    const uint64_t limit_bytes = limit_of(f);
    char text[HR_KNOB_TEXT_MAX];
    return doctor_is_of_host(f)
               ? strncmp(doctor_fix_text(f, row, text), of_host, sizeof of_host - 1) == 0
               : limit_bytes > 0 && (row->limit_bytes == 0 || row->limit_bytes > limit_bytes);
}

// Who set a limit wants to fit into it. The order is kept otherwise.
static void put_lifts_last(const feed *f, fix_row rows[FIX_ROWS_MAX], size_t count)
{
    fix_row lifts[FIX_ROWS_MAX];
    size_t kept = 0, lifted = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_lift(f, &rows[i])) {
            lifts[lifted++] = rows[i];
        } else {
            rows[kept++] = rows[i];
        }
    }
    memcpy(rows + kept, lifts, lifted * sizeof *lifts);
}

size_t doctor_fixes(const feed *f, fix_row rows[FIX_ROWS_MAX])
{
    const whatif_cell *present = present_of(f);
    const bool oom = doctor_has_oom(f), misses = doctor_misses(f);
    const uint64_t below_bytes = oom || misses     ? UINT64_MAX
                                 : present == NULL ? 0
                                                   : present->plan.peak_in_use_bytes;
    const size_t dry_runs = oom ? add_dry_runs(f, rows) : 0;
    size_t count = add_turns(f, rows, dry_runs, below_bytes);
    if (misses) {
        count = add_points(f, rows, count);
    }
    if (oom || misses) {
        put_cheapest_first(rows + dry_runs, count - dry_runs);
        put_lifts_last(f, rows, count);
    } else {
        qsort(rows, count, sizeof *rows, by_peak);
    }
    return count;
}

const char *doctor_fix_text(const feed *f, const fix_row *row, char text[HR_KNOB_TEXT_MAX])
{
    if (row->dry_run >= 0) {
        const hr_report_fix *fix = &f->report.oom.fixes[row->dry_run];
        snprintf(text, HR_KNOB_TEXT_MAX, "%.*s", (int)sizeof fix->knobs - 1, fix->knobs);
    } else if (row->point >= 0) {
        snprintf(text, HR_KNOB_TEXT_MAX, "%.*s", HR_KNOB_TEXT_MAX - 1, f->fit.point[row->point].knobs);
    } else {
        const whatif_cell *cell = feed_whatif(f, row->id, row->side);
        snprintf(text, HR_KNOB_TEXT_MAX, "%s=%s", hr_knob_rows(NULL)[row->id].key,
                 cell == NULL ? "" : cell->value);
    }
    return text;
}
