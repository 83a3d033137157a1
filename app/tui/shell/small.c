// SPDX-License-Identifier: Apache-2.0
// Screens too small for panes: the meter, and below that one line.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"

#include "app/tui/shell/frame.h"

// "VRAM 3.61/4.00 GiB (90%)": the peak of the present step against the limit, shorter where there is less room.
static void vram_text(const feed *f, int width, char text[96])
{
    const run_state *m = feed_run_state(f);
    char peak[FORMAT_MAX], limit[FORMAT_MAX];
    byte_unit unit = feed_unit(f);
    if (!m->any || m->limit_bytes == 0) {
        snprintf(text, 96, "VRAM —");
        return;
    }
    unit.decimals = 2;
    format_bytes(m->epoch_peak_bytes, unit, peak);
    format_bytes(m->limit_bytes, unit, limit);
    // Rounded, as "0.0% left" is where there is room for that.
    int percent = (int)(100 * (double)m->epoch_peak_bytes / (double)m->limit_bytes + 0.5);
    int length = snprintf(text, 96, "VRAM %s/%s %s (%d%%)", peak, limit, unit.name, percent);
    if (length > width) {
        length = snprintf(text, 96, "%s/%s %s %d%%", peak, limit, unit.name, percent);
    }
    if (length > width) {
        snprintf(text, 96, "%d%%", percent);
    }
}

void screen_line(const canvas *screen, const app *a)
{
    char text[96];
    if (app_is_typing(a)) {
        frame_prompt(screen, a);
        return;
    }
    if (a->overlay == OVERLAY_QUIT) {
        snprintf(text, sizeof text, "leave? s/y/n");
    } else if (a->overlay == OVERLAY_OFFER) {
        snprintf(text, sizeof text, "resume step %" PRIu64 "? y/n", a->offer.about.steps);
    } else if (a->overlay == OVERLAY_SWITCH) {
        snprintf(text, sizeof text,
                 app_begins_anew(a) ? "end and begin anew? y/n" : "end and open %.64s? y/n", a->next.preset);
    } else if (feed_run_state(&a->feed)->state >= HR_ENGINE_OOM) {
        snprintf(text, sizeof text, "%s",
                 hr_engine_state_name((hr_engine_state)feed_run_state(&a->feed)->state));
    } else {
        vram_text(&a->feed, screen->area.w, text);
    }
    paint_text(screen, 0, 0, screen->area.w, ROLE_TEXT, text);
}

// The stack on its side, at the newest peak.
static void draw_bar(const canvas *c, int y, const feed *f)
{
    const run_state *m = feed_run_state(f);
    const history_bucket *bucket = history_at(&m->history, 1, 0);
    bool letters = c->glyphs->fills_by_letter || theme_fills_by_letter(c->theme);
    double filled = 0;
    int x = 0;
    for (int i = 0; i < BAND_COUNT && bucket != NULL && m->limit_bytes > 0; i++) {
        unsigned band = band_stack[i];
        filled += (double)bucket->band_bytes[band] / (double)m->limit_bytes * c->area.w;
        wchar_t letter = band < HR_CATEGORY_COUNT ? (wchar_t)hr_category_letter((hr_category)band)
                         : m->attributed          ? L'%'
                                                  : L'?';
        for (int first = x; x < (int)(filled + 0.5) && x < c->area.w; x++) {
            bool stamped = !letters && x == first;
            style s = stamped ? theme_letter(c->theme, band) : theme_band(c->theme, band);
            paint_cell(c, y, x, s, letters || stamped ? letter : glyphs_bar(c->glyphs, 8));
        }
    }
    for (; x < c->area.w; x++) {
        paint_cell(c, y, x, theme_role(c->theme, ROLE_DIM), c->glyphs->pool);
    }
}

void screen_meter(const canvas *screen, const app *a, const layout *l)
{
    const run_state *m = feed_run_state(&a->feed);
    canvas c = canvas_of(screen, l->pane[PANE_METER]);
    canvas knobs = canvas_of(screen, l->pane[PANE_KNOBS]);
    char text[96], loss[FORMAT_MAX], rate[FORMAT_MAX];
    const char *state = hr_engine_state_name((hr_engine_state)m->state);
    vram_text(&a->feed, c.area.w - (int)strlen(state) - 1, text);
    int used = paint_text(&c, 0, 0, c.area.w, ROLE_BAR, text);
    paint_right(&c, 0, used + 1, c.area.w - used - 1, m->state >= HR_ENGINE_OOM ? ROLE_BAD : ROLE_DIM, state);
    draw_bar(&c, 1, &a->feed);
    if (run_state_answers(m, text, sizeof text)) {
        paint_text(&c, 2, 0, c.area.w, ROLE_DIM, text);
    } else {
        paint_format(&c, 2, 0, c.area.w, ROLE_DIM, "step %llu · loss %s · %s", (unsigned long long)m->steps,
                     format_loss(m->loss, loss), format_rate(run_state_steps_per_second(m), "it/s", rate));
    }
    const pane_view v = pane_view_of(a, PANE_KNOBS);
    v.ops->draw(&knobs, &v);
}
