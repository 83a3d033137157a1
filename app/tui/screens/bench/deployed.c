// SPDX-License-Identifier: Apache-2.0
// What training holds beside what is left of it where the model is used, where a technique of compress.* is on.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/bench/bench.h"
#include "app/tui/view/bar.h"

enum { BARS_FROM = 15, LABEL_WIDTH = 9, NUMBER_WIDTH = 12, BAR_MAX = 400 };

typedef struct parts {
    const char *name[3];
    uint64_t bytes[3];
    char letter[3];
} parts;

bool bench_compresses(const feed *f)
{
    return hr_knobs_compress(&f->knobs) && f->has_report && f->report.deploy.stripped_bytes != HR_NONE;
}

static parts parts_of(const feed *f)
{
    const run_state *m = feed_run_state(f);
    const bool ran = m->any && m->epoch_peak_bytes > 0, counted = ran && !f->report.device.simulated;
    return (parts){.name = {"training", "stripped", "deployed"},
                   .bytes = {ran ? m->epoch_peak_bytes : f->report.memory.peak_in_use_bytes,
                             f->report.deploy.stripped_bytes, f->report.deploy.deployed_bytes},
                   .letter = {counted ? 'm' : 'p', 'p', 'p'}};
}

static double share(const parts *p, int k)
{
    return p->bytes[0] == HR_NONE || p->bytes[0] == 0 ? 0 : (double)p->bytes[k] / (double)p->bytes[0];
}

static void draw_bars(const canvas *c, const feed *f, const parts *p)
{
    const int room = c->area.w - LABEL_WIDTH - NUMBER_WIDTH - 1;
    char bar[BAR_MAX], bytes[FORMAT_MAX], number[FORMAT_MAX + 4];
    for (int k = 0; k < 3; k++) {
        paint_text(c, k, 0, LABEL_WIDTH, ROLE_TEXT, p->name[k]);
        paint_text(c, k, LABEL_WIDTH, room, ROLE_FOCUS, bar_text(c->glyphs, share(p, k), room, bar, BAR_MAX));
        snprintf(number, sizeof number, "%s %c", format_cell_bytes(p->bytes[k], feed_unit(f), bytes),
                 p->letter[k]);
        paint_right(c, k, c->area.w - NUMBER_WIDTH, NUMBER_WIDTH, ROLE_TEXT, number);
    }
}

static void draw_line(const canvas *c, const feed *f, const parts *p)
{
    char bytes[3][FORMAT_MAX], text[160];
    for (int k = 0; k < 3; k++) {
        format_cell_bytes(p->bytes[k], feed_unit(f), bytes[k]);
    }
    static const char *const between[] = {" | ", " "}; // where that is too wide
    for (int k = 0; k < 2 && (k == 0 || glyphs_width(c->glyphs, text) > c->area.w); k++) {
        snprintf(text, sizeof text, "%s %s %c%s%s %s%s%s %s %c", p->name[0], bytes[0], p->letter[0],
                 between[k], p->name[1], bytes[1], between[k], p->name[2], bytes[2], p->letter[2]);
    }
    paint_text(c, 0, 0, c->area.w, ROLE_FOCUS, text);
}

canvas bench_draw_deployed(const canvas *c, const feed *f)
{
    const int rows = c->area.h >= BARS_FROM ? 3 : 1;
    if (!bench_compresses(f) || c->area.h < 6) {
        return *c;
    }
    const parts p = parts_of(f);
    const canvas below = canvas_sub(c, c->area.h - rows, 0, rows, c->area.w);
    if (rows > 1) {
        draw_bars(&below, f, &p);
    } else {
        draw_line(&below, f, &p);
    }
    return canvas_sub(c, 0, 0, c->area.h - rows, c->area.w);
}

void bench_say_deployed(const feed *f, char *text, size_t size)
{
    char stripped[HR_BYTES_TEXT_MAX], deployed[HR_BYTES_TEXT_MAX];
    text[0] = '\0';
    if (bench_compresses(f)) {
        snprintf(text, size, " Where the model is used, %s are left of it, and %s %s.",
                 hr_bytes_human(f->report.deploy.stripped_bytes, stripped),
                 hr_bytes_human(f->report.deploy.deployed_bytes, deployed),
                 hr_knobs_quantize(&f->knobs) ? "as compress.quantize has it" : "when it is exported");
    }
}
