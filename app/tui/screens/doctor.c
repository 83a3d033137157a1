// SPDX-License-Identifier: Apache-2.0
// Why it ran out of memory: cause, sentence, numbers, what to turn, and which turns are planned to fit.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/say.h"
#include "app/tui/screens/screens.h"

enum { BAR_WIDTH = 24, NAME_WIDTH = 14, BYTES_WIDTH = 9 };

static int draw_numbers(const canvas *c, int y, const hr_report_oom *oom)
{
    const struct {
        const char *label;
        uint64_t bytes;
    } numbers[] = {
        {"asked", oom->requested_bytes}, {"free", oom->free_bytes}, {"largest_free", oom->largest_free_bytes},
        {"in_use", oom->in_use_bytes},   {"pool", oom->pool_bytes}, {"limit", oom->limit_bytes}};
    char text[HR_BYTES_TEXT_MAX];
    int x = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (x + 22 > c->area.w) {
            x = 0;
            y++;
        }
        paint_text(c, y, x, 12, ROLE_DIM, numbers[i].label);
        paint_right(c, y, x + 12, 10, ROLE_TEXT, hr_bytes_human(numbers[i].bytes, text));
        x += 24;
    }
    return y + 1;
}

static int draw_categories(const canvas *c, int y, const hr_report_oom *oom, byte_unit unit)
{
    uint64_t largest = 1, sum_bytes = 0;
    char text[FORMAT_MAX];
    for (unsigned i = 0; i < HR_CATEGORY_COUNT; i++) {
        largest = oom->by_category[i] > largest ? oom->by_category[i] : largest;
    }
    for (int i = BAND_COUNT - 1; i >= 0; i--) {
        unsigned band = graph_stack[i];
        if (band >= HR_CATEGORY_COUNT || oom->by_category[band] == 0) {
            continue;
        }
        uint64_t bytes = oom->by_category[band];
        int eighths = (int)((double)bytes / (double)largest * BAR_WIDTH * 8);
        paint_cell(c, y, 0, theme_letter(c->theme, band), (wchar_t)hr_category_letter((hr_category)band));
        paint_text(c, y, 2, NAME_WIDTH, ROLE_DIM, hr_category_name((hr_category)band));
        paint_right(c, y, 2 + NAME_WIDTH, BYTES_WIDTH, ROLE_TEXT, format_bytes(bytes, unit, text));
        // Bars lie on their side: only whole cells, and the last one by its letter's colour.
        for (int x = 0; x < (eighths + 7) / 8; x++) {
            paint_cell(c, y, 4 + NAME_WIDTH + BYTES_WIDTH + x, theme_band(c->theme, band),
                       c->glyphs->fills_by_letter || c->theme->tier == TIER_MONO ? L'='
                                                                                 : glyphs_bar(c->glyphs, 8));
        }
        sum_bytes += bytes;
        y++;
    }
    // Rounding up to the allocator's grain, so that the rows add up to in_use.
    uint64_t waste_bytes = oom->in_use_bytes > sum_bytes ? oom->in_use_bytes - sum_bytes : 0;
    paint_text(c, y, 2, NAME_WIDTH, ROLE_DIM, "waste");
    paint_right(c, y, 2 + NAME_WIDTH, BYTES_WIDTH, ROLE_TEXT, format_bytes(waste_bytes, unit, text));
    return y + 1;
}

// Turns of a single knob whose plan fits, as the planner found them.
static int draw_turns(const canvas *c, int y, const app *a, byte_unit unit)
{
    size_t count, rows;
    const hr_knob_id *panel = turn_panel(&count);
    const hr_knob_row *row = hr_knob_rows(&rows);
    char text[FORMAT_MAX], now[HR_KNOB_TEXT_MAX];
    int first = y;
    for (size_t i = 0; i < 2 * count; i++) {
        hr_knob_id id = panel[i / 2];
        const whatif_cell *cell = app_whatif(a, id, i % 2 == 0 ? WHATIF_LESS : WHATIF_MORE);
        bool trains = id != HR_KNOB_EXECUTION_TAPE; // a step that takes no gradients is no way out
        if (cell == NULL || cell->refused || !cell->plan.fits || !trains) {
            continue;
        }
        if (y == first) {
            paint_text(c, y++, 0, c->area.w, ROLE_DIM, "one turn that is planned to fit:");
        }
        paint_format(c, y++, 2, c->area.w - 2, ROLE_GOOD, "%s %s → %s, peak %s %s p", row[id].key,
                     hr_knob_format(&a->knobs, id, now), cell->value,
                     format_bytes(cell->plan.peak_in_use_bytes, unit, text), unit.name);
    }
    return y;
}

// What dry runs found to fit, and the command that turns it.
static int draw_fixes(const canvas *c, int y, const app *a, byte_unit unit)
{
    const hr_report_oom *oom = &a->report.oom;
    bool simulated = strcmp(a->report.device.kind, "plan") == 0;
    for (uint32_t i = 0; i < oom->fix_count && i < HR_FIXES_MAX; i++) {
        const hr_report_fix *fix = &oom->fixes[i];
        char line[sizeof fix->knobs + 4 * FORMAT_MAX], peak[FORMAT_MAX], seconds[FORMAT_MAX];
        int length = snprintf(line, sizeof line, "%s :fix %u: %.*s, peak %s %s p", i == 0 ? "try" : " or",
                              i + 1, (int)sizeof fix->knobs - 1, fix->knobs,
                              format_bytes(fix->peak_bytes, unit, peak), unit.name);
        if (isfinite(fix->seconds)) {
            snprintf(line + length, sizeof line - (size_t)length, ", %s %s",
                     format_seconds(fix->seconds, seconds), simulated ? "s" : "e");
        }
        y += paint_wrapped(c, y, ROLE_GOOD, line);
    }
    return y;
}

static void draw_verdict(const canvas *c, const app *a)
{
    const hr_report_oom *oom = &a->report.oom;
    byte_unit unit = app_unit(a);
    int y = 1;
    int x = paint_text(c, y, 0, c->area.w, ROLE_BAD, "OUT OF MEMORY");
    const char *cause = hr_oom_cause_name(oom->cause);
    bool says_cause = strncmp(oom->sentence, cause, strlen(cause)) == 0;
    paint_format(c, y++, x + 2, c->area.w - x - 2, ROLE_TEXT, "%s%s",
                 says_cause ? "" : "cause: ", says_cause ? "" : cause);
    y += paint_wrapped(c, y, ROLE_TEXT, oom->sentence);
    y = draw_fixes(c, y, a, unit);
    int air = c->area.h >= 18 ? 1 : 0;
    y = draw_numbers(c, y + air, oom);
    y = draw_categories(c, y + air, oom, unit);
    draw_turns(c, y + air, a, unit);
}

static void draw(const canvas *c, const app *a)
{
    const model *m = app_model(a);
    bool out = a->has_report && a->report.oom.cause != HR_OOM_NONE;
    paint_rule(c, a->focus == PANE_DOCTOR, pane_title(PANE_DOCTOR), "Doctor");
    if (out && (m->state == HR_ENGINE_OOM || m->oom_count > 0)) {
        draw_verdict(c, a);
        return;
    }
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], text[256];
    uint64_t free_bytes = m->limit_bytes > m->epoch_peak_bytes ? m->limit_bytes - m->epoch_peak_bytes : 0;
    snprintf(text, sizeof text, "Nothing has run out of memory. At its peak a step leaves %s of %s.",
             hr_bytes_human(free_bytes, left), hr_bytes_human(m->limit_bytes, limit));
    paint_wrapped(c, 1, ROLE_TEXT, text);
}

static const char *term(const app *a)
{
    (void)a;
    return "out_of_memory";
}

const pane_ops pane_doctor = {.draw = draw, .say = say_doctor, .term = term};

// ---- its place ------------------------------------------------------------------------------------------------

void place_doctor(layout *l, rect body, const layout_wish *wish)
{
    place_knobs_and_counters(l, cut_left(&body, layout_clamp(body.w * 3 / 8, 30, 44)), wish);
    l->pane[PANE_VRAM] = cut_top(&body, body.h >= 30 ? body.h / 3 : 0);
    l->pane[PANE_LOG] = cut_bottom(&body, body.h >= 26 ? layout_clamp(body.h / 6, 4, 8) : 0);
    l->pane[PANE_DOCTOR] = body;
}
