// SPDX-License-Identifier: Apache-2.0
// Why it ran out of memory: cause, sentence, numbers, holes, who holds what. Of a step that fits: what was found.
#include "app/tui/screens/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

enum {
    BAR_WIDTH = 24,
    NAME_WIDTH = 14,
    BYTES_WIDTH = 9,
    NUMBERS = 6,
    NUMBERS_FIRST = 4,
    NUMBERS_ROWS = 3,
    HOLES_ROWS = 2
};

// The first `count` of them: what stands last, the sentence and the other panes say too.
static int draw_numbers(const canvas *c, int y, const hr_report_oom *oom, size_t count)
{
    const struct {
        const char *label;
        uint64_t bytes;
    } numbers[] = {
        {"asked", oom->requested_bytes}, {"free", oom->free_bytes}, {"largest_free", oom->largest_free_bytes},
        {"in_use", oom->in_use_bytes},   {"pool", oom->pool_bytes}, {"limit", oom->limit_bytes}};
    char text[HR_BYTES_TEXT_MAX];
    int x = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && i < count; i++) {
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

enum { CLOSE_EACH = 24, CLOSE_NAME = 13 };

// Rounding up to the allocator's grain, so that the rows add up to in_use.
static uint64_t waste_of(const hr_report_oom *oom)
{
    uint64_t sum_bytes = 0;
    for (unsigned i = 0; i < HR_CATEGORY_COUNT; i++) {
        sum_bytes += oom->by_category[i];
    }
    return oom->in_use_bytes > sum_bytes ? oom->in_use_bytes - sum_bytes : 0;
}

// Of a recorded step no category is told, and all of it is the rest.
static const char *rest_name(const hr_report_oom *oom)
{
    return waste_of(oom) < oom->in_use_bytes ? "waste" : "unknown";
}

// One cell; what has no letter is a sum of others.
static void draw_close(const canvas *c, int y, int x, unsigned band, const char *name, const char *bytes)
{
    if (band < BAND_COUNT) {
        const wchar_t letter = band < BAND_UNKNOWN ? (wchar_t)hr_category_letter((hr_category)band) : L'%';
        paint_cell(c, y, x, theme_letter(c->theme, band), letter);
    }
    paint_text(c, y, x + 2, CLOSE_NAME, ROLE_DIM, name);
    paint_right(c, y, x + 2 + CLOSE_NAME, CLOSE_EACH - CLOSE_NAME - 3, ROLE_TEXT, bytes);
}

// Bands in the order of their bytes, the largest first; those that hold nothing are left out. Returns how many.
static int order_bands(const hr_report_oom *oom, uint64_t bytes[BAND_COUNT], unsigned order[BAND_COUNT])
{
    int count = 0;
    memcpy(bytes, oom->by_category, HR_CATEGORY_COUNT * sizeof *bytes);
    bytes[BAND_UNKNOWN] = waste_of(oom);
    for (unsigned band = 0; band < BAND_COUNT; band++) {
        int at = count;
        for (; at > 0 && bytes[order[at - 1]] < bytes[band]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = band;
        count += bytes[band] > 0;
    }
    return count;
}

// One beside the other and without their bars, where there is no room for a row each. What has no room is summed up.
static void draw_categories_close(const canvas *c, int y, const hr_report_oom *oom, byte_unit unit)
{
    uint64_t bytes[BAND_COUNT], others_bytes = 0;
    unsigned order[BAND_COUNT];
    char text[FORMAT_MAX];
    const int count = order_bands(oom, bytes, order),
              beside = c->area.w >= CLOSE_EACH ? c->area.w / CLOSE_EACH : 1, room = beside * (c->area.h - y),
              shown = count <= room ? count : room - 1;
    for (int i = shown; i >= 0 && i < count; i++) {
        others_bytes += bytes[order[i]];
    }
    for (int i = 0; i < shown; i++) {
        const unsigned band = order[i];
        draw_close(c, y + i / beside, i % beside * CLOSE_EACH, band,
                   band < BAND_UNKNOWN ? hr_category_name((hr_category)band) : rest_name(oom),
                   format_bytes(bytes[band], unit, text));
    }
    if (others_bytes > 0 && shown >= 0) {
        draw_close(c, y + shown / beside, shown % beside * CLOSE_EACH, BAND_COUNT, "others",
                   format_bytes(others_bytes, unit, text));
    }
}

static int category_rows(const hr_report_oom *oom)
{
    int rows = 1; // waste
    for (unsigned i = 0; i < HR_CATEGORY_COUNT; i++) {
        rows += oom->by_category[i] > 0;
    }
    return rows;
}

static int draw_categories(const canvas *c, int y, const hr_report_oom *oom, byte_unit unit)
{
    uint64_t largest = 1;
    char text[FORMAT_MAX];
    for (unsigned i = 0; i < HR_CATEGORY_COUNT; i++) {
        largest = oom->by_category[i] > largest ? oom->by_category[i] : largest;
    }
    for (int i = BAND_COUNT - 1; i >= 0; i--) {
        unsigned band = band_stack[i];
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
                       c->glyphs->fills_by_letter || theme_fills_by_letter(c->theme)
                           ? L'='
                           : glyphs_bar(c->glyphs, 8));
        }
        y++;
    }
    paint_text(c, y, 2, NAME_WIDTH, ROLE_DIM, rest_name(oom));
    paint_right(c, y, 2 + NAME_WIDTH, BYTES_WIDTH, ROLE_TEXT, format_bytes(waste_of(oom), unit, text));
    return y + 1;
}

static bool holes_matter(const hr_report_oom *oom)
{
    return oom->hole_count > 0 && (oom->cause == HR_OOM_FRAGMENTATION || oom->cause == HR_OOM_OTHER_STREAM);
}

// Where enough was free, but not in one piece: how many pieces there were, and the largest.
static int draw_holes(const canvas *c, int y, const hr_report_oom *oom)
{
    char text[256], bytes[HR_BYTES_TEXT_MAX];
    if (!holes_matter(oom)) {
        return y;
    }
    int used = snprintf(text, sizeof text, "%" PRIu32 " holes:", oom->hole_count);
    for (uint32_t i = 0; i < oom->hole_count && i < HR_HOLES_MAX; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %s", i == 0 ? "" : ",",
                         hr_bytes_human(oom->hole_bytes[i], bytes));
    }
    snprintf(text + used, sizeof text - (size_t)used, "%s", oom->hole_count > HR_HOLES_MAX ? " …" : "");
    return y + paint_wrapped(c, y, ROLE_TEXT, text);
}

// Of the host: its stages, the one that crosses the limit in the colour of what is wrong.
static int draw_host_stages(const canvas *c, int y, const feed *f)
{
    const hr_report *r = &f->report;
    byte_unit unit = feed_unit(f);
    char text[FORMAT_MAX];
    uint64_t largest = 1;
    for (uint32_t i = 0; i < r->host.stage_count; i++) {
        largest = r->host.stages[i].peak_bytes > largest ? r->host.stages[i].peak_bytes : largest;
    }
    for (uint32_t i = 0; i < r->host.stage_count; i++) {
        const hr_report_stage *stage = &r->host.stages[i];
        const role as = strcmp(stage->name, r->oom.tensor) == 0 ? ROLE_BAD : ROLE_DIM;
        const int cells = (int)((double)stage->peak_bytes / (double)largest * BAR_WIDTH + 0.99);
        if (stage->peak_bytes == 0) {
            continue;
        }
        paint_text(c, y, 2, NAME_WIDTH, as, stage->name);
        paint_right(c, y, 2 + NAME_WIDTH, BYTES_WIDTH, ROLE_TEXT,
                    format_bytes(stage->peak_bytes, unit, text));
        for (int x = 0; x < cells; x++) {
            paint_cell(c, y, 4 + NAME_WIDTH + BYTES_WIDTH + x, theme_role(c->theme, as),
                       glyphs_bar(c->glyphs, 8));
        }
        y++;
    }
    paint_text(c, y, 2, NAME_WIDTH, ROLE_DIM, "host");
    paint_right(c, y, 2 + NAME_WIDTH, BYTES_WIDTH, ROLE_TEXT, format_bytes(r->host.peak_bytes, unit, text));
    paint_format(c, y, 4 + NAME_WIDTH + BYTES_WIDTH, c->area.w, ROLE_DIM, "limit %s",
                 format_bytes(r->oom.limit_bytes, unit, text));
    return y + 1;
}

// Returns the row behind it.
static int draw_verdict(const canvas *c, const feed *f)
{
    const hr_report_oom *oom = &f->report.oom;
    byte_unit unit = feed_unit(f);
    int y = 1;
    int x = paint_text(c, y, 0, c->area.w, ROLE_BAD, "OUT OF MEMORY");
    const char *cause = hr_oom_cause_name(oom->cause);
    bool says_cause = strncmp(oom->sentence, cause, strlen(cause)) == 0;
    paint_format(c, y++, x + 2, c->area.w - x - 2, ROLE_TEXT, "%s%s",
                 says_cause ? "" : "cause: ", says_cause ? "" : cause);
    y += paint_wrapped(c, y, ROLE_TEXT, oom->sentence);
    if (oom->of_host) {
        return draw_host_stages(c, y, f);
    }
    int air = c->area.h >= 18 ? 1 : 0;
    const int holes_rows = holes_matter(oom) ? HOLES_ROWS : 0;
    const bool is_close = y + NUMBERS_ROWS + holes_rows + (category_rows(oom) + 1) / 2 > c->area.h;
    y = draw_numbers(c, y + air, oom, is_close ? NUMBERS_FIRST : NUMBERS);
    y = draw_holes(c, y, oom);
    if (y + air + category_rows(oom) > c->area.h) {
        draw_categories_close(c, y + air, oom, unit);
        return c->area.h;
    }
    return draw_categories(c, y + air, oom, unit);
}

static const char no_limit[] = ":card NAME or :set device.vram SIZE says how much there is.";

// Of knobs that wait.
static const char *waiting_text(const hr_whatif *plan, char text[256])
{
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    hr_bytes_human(plan->limit_bytes, limit);
    if (hr_whatif_lacks_host(plan)) {
        snprintf(text, 256,
                 "The knobs as they are turned do not fit: the host would hold %s p, %s beyond "
                 "pipeline.ram_limit. No "
                 "step has been done with them.",
                 hr_bytes_human(plan->host_bytes, limit), hr_bytes_human(plan->host_missing_bytes, left));
    } else if (plan->limit_bytes == 0) {
        snprintf(text, 256,
                 "The knobs as they are turned have no limit. No step has been done with them: r does.");
    } else if (plan->fits) {
        snprintf(
            text, 256,
            "The knobs as they are turned fit: at its peak a step will leave %s of %s p. No step has been "
            "done with them: r does.",
            hr_bytes_human(plan->limit_bytes - plan->peak_in_use_bytes, left), limit);
    } else {
        snprintf(text, 256,
                 "The knobs as they are turned do not fit: %s beyond the %s are missing p. No step has been "
                 "done with them.",
                 hr_bytes_human(plan->missing_bytes, left), limit);
    }
    return text;
}

// Before a first step, of a device that is not there for instance, only the plan can say it.
static const char *unstarted_text(const feed *f, char text[256])
{
    const whatif_cell *present = &f->answers.present;
    const bool known = f->answers.question == f->question && present->known && !present->refused;
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    if (known && hr_whatif_lacks_host(&present->plan)) {
        snprintf(text, 256,
                 "Nothing has run. It would not fit: the host would hold %s p, %s beyond pipeline.ram_limit.",
                 hr_bytes_human(present->plan.host_bytes, limit),
                 hr_bytes_human(present->plan.host_missing_bytes, left));
    } else if (known && present->plan.limit_bytes == 0) {
        snprintf(text, 256, "Nothing has run, and there is no limit: %s", no_limit);
    } else if (known && present->plan.fits) {
        snprintf(text, 256, "Nothing has run. It would fit: at its peak a step leaves %s of %s p.",
                 hr_bytes_human(present->plan.limit_bytes - present->plan.peak_in_use_bytes, left),
                 hr_bytes_human(present->plan.limit_bytes, limit));
    } else if (known) {
        snprintf(text, 256, "Nothing has run. It would not fit: %s beyond the %s are missing p.",
                 hr_bytes_human(present->plan.missing_bytes, left),
                 hr_bytes_human(present->plan.limit_bytes, limit));
    } else {
        snprintf(text, 256, "Nothing has run out of memory.");
    }
    return text;
}

static const char *headroom_text(const feed *f, char text[256])
{
    const run_state *m = feed_run_state(f);
    char left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    if (feed_waiting_plan(f) != NULL) {
        return waiting_text(feed_waiting_plan(f), text);
    }
    if (m->epoch_peak_bytes == 0) {
        return unstarted_text(f, text);
    }
    if (m->limit_bytes == 0) {
        snprintf(text, 256, "Nothing has run out of memory, and there is no limit: %s", no_limit);
        return text;
    }
    uint64_t free_bytes = m->limit_bytes > m->epoch_peak_bytes ? m->limit_bytes - m->epoch_peak_bytes : 0;
    snprintf(text, 256, "Nothing has run out of memory. At its peak a step leaves %s of %s.",
             hr_bytes_human(free_bytes, left), hr_bytes_human(m->limit_bytes, limit));
    return text;
}

static void draw_healthy(const canvas *c, const feed *f)
{
    char text[256], finding[FINDING_TEXT_MAX];
    int y = 1 + paint_wrapped(c, 1, doctor_misses(f) ? ROLE_BAD : ROLE_TEXT, headroom_text(f, text)),
        found = 0;
    if (feed_waiting_plan(f) != NULL) {
        return; // what was found is of steps with other knobs
    }
    int air = c->area.h >= 18 ? 1 : 0;
    for (int kind = 0; kind < FINDING_COUNT; kind++) {
        if (doctor_finding(f, (finding_kind)kind, finding)[0] != '\0' && y + air < c->area.h) {
            canvas words = canvas_sub(c, y + air, 2, c->area.h - y - air, c->area.w - 2);
            paint_text(c, y + air, 0, 1, ROLE_WARN, "●");
            y += air + paint_wrapped(&words, 0, ROLE_WARN, finding);
            found++;
        }
    }
    if (found == 0) {
        paint_wrapped(c, y + air, ROLE_GOOD,
                      feed_run_state(f)->steps == 0 ? "No step has ended yet." : "Nothing else was found.");
    }
}

// Scrolled, what shows it has the pane; else it stands where the verdict leaves room.
static void draw_oom(const canvas *c, const pane_view *v)
{
    const doctor_state *s = v->rows;
    const bool has_more = doctor_evidence_rows(s, c->area.w) > 0;
    if (s->top > 0) {
        paint_rule(c, v->focused, pane_title(v->pane), "what shows it · PgUp");
        doctor_draw_evidence(c, 1, s, s->top - 1);
        return;
    }
    paint_rule(c, v->focused, pane_title(v->pane),
               has_more ? "as it was refused · PgDn" : "as it was refused");
    doctor_draw_evidence(c, draw_verdict(c, v->feed) + 1, s, 0);
}

static void draw(const canvas *c, const pane_view *v)
{
    if (doctor_has_oom(v->feed)) {
        draw_oom(c, v);
    } else {
        paint_rule(c, v->focused, pane_title(v->pane), "Doctor");
        draw_healthy(c, v->feed);
    }
}

// Another verdict is read from its beginning.
static void begin_verdict(const pane_view *v, doctor_state *s)
{
    if (s->report != v->feed->report_version || !doctor_has_oom(v->feed)) {
        s->top = 0;
        s->report = v->feed->report_version;
    }
}

static pane_request settle(const pane_view *v, void *own)
{
    begin_verdict(v, own);
    return (pane_request){0};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const hr_report_oom *oom = &v->feed->report.oom;
    char headroom[256], finding[FINDING_TEXT_MAX] = "";
    if (doctor_has_oom(v->feed)) {
        snprintf(text, PANE_TEXT_MAX, "Out of memory by %s: %s", hr_oom_cause_name(oom->cause),
                 oom->sentence);
        return;
    }
    bool waits = feed_waiting_plan(v->feed) != NULL;
    for (int kind = 0; !waits && kind < FINDING_COUNT && finding[0] == '\0'; kind++) {
        doctor_finding(v->feed, (finding_kind)kind, finding);
    }
    snprintf(text, PANE_TEXT_MAX, "%s%s%s", headroom_text(v->feed, headroom), finding[0] == '\0' ? "" : " ",
             finding);
}

// As far as the last row of what shows it stands in the last row of the pane.
static void scroll(const pane_view *v, doctor_state *s, int rows)
{
    const int64_t all = (int64_t)doctor_evidence_rows(s, v->place.w), room = v->place.h - 1;
    const int64_t last = all == 0 ? 0 : all > room ? 1 + all - room : 1;
    const int64_t to = (int64_t)s->top + (rows > 0 && s->top == 0 ? 1 : rows);
    s->top = to < 0 ? 0 : (size_t)(to < last ? to : last);
}

// A row is one of the cursor of [fixes], which stand below; more at once scroll.
static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    if (columns != 0) {
        return (pane_request){0};
    }
    if ((rows == 1 || rows == -1) || !doctor_has_oom(v->feed)) {
        return (pane_request){.kind = PANE_MOVES_TABLE, .pane = PANE_FIXES, .rows = rows};
    }
    begin_verdict(v, own);
    scroll(v, own, rows);
    return (pane_request){.kind = PANE_DONE};
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    const feed *f = v->feed;
    char words[256];
    snprintf(text, size, "%s", doctor_has_oom(f) ? f->report.oom.sentence : headroom_text(f, words));
    return true;
}

const pane_ops pane_doctor = {
    .draw = draw, .settle = settle, .move = move, .say = say, .term = "out_of_memory", .copy = copy};

// ---- its place ------------------------------------------------------------------------------------------------

void place_doctor(layout *l, rect body, const layout_wish *wish)
{
    place_knobs_and_counters(l, cut_left(&body, layout_clamp(body.w * 3 / 8, 30, 60)), wish);
    l->pane[PANE_VRAM] = cut_top(&body, body.h >= 30 ? body.h / 3 : 0);
    l->pane[PANE_LOG] = cut_bottom(&body, body.h >= 26 ? layout_clamp(body.h / 6, 4, 8) : 0);
    l->pane[PANE_FIXES] = cut_bottom(&body, layout_clamp(body.h - 13, 7, 14));
    l->pane[PANE_DOCTOR] = body;
}
