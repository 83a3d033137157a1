// SPDX-License-Identifier: Apache-2.0
// The Timeline: live bytes against program order, the map below it, and what lives at the cursor.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"

void place_timeline(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    int extra = body.h - 19; // beyond what 80×24 leaves
    l->pane[PANE_ALIVE] = cut_bottom(&body, 5 + extra * 2 / 5);
    l->pane[PANE_MINIMAP] = cut_bottom(&body, 4 + layout_clamp(extra / 6, 0, 4));
    l->pane[PANE_STACK] = body;
}

// ---- shared ---------------------------------------------------------------------------------------------------

byte_unit step_unit(const step_view *step)
{
    return byte_unit_for(step->highest > 0 ? step->highest : feed_run_state(step->feed)->limit_bytes);
}

const char *step_delta(double bytes, byte_unit unit, char text[FORMAT_MAX])
{
    snprintf(text, FORMAT_MAX, bytes == 0 ? "" : "%+.*f", unit.decimals, bytes / unit.bytes);
    return text;
}

byte_unit step_tensor_unit(const step_view *step)
{
    return byte_unit_for(step->largest);
}

void step_tensor_cell(const step_view *step, const hr_step_plan_tensor *t, const char *term, double number,
                      char text[TABLE_CELL_MAX])
{
    char words[FORMAT_MAX];
    if (strcmp(term, "tensor") == 0) {
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(&step->feed->step_plan, t->name));
    } else if (strcmp(term, "bytes") == 0) {
        snprintf(text, TABLE_CELL_MAX, "%s", format_cell_bytes(t->bytes, step_tensor_unit(step), words));
    } else if (strcmp(term, "dtype") == 0) {
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(&step->feed->step_plan, t->dtype));
    } else if (strcmp(term, "shape") == 0) {
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(&step->feed->step_plan, t->shape));
    } else {
        snprintf(text, TABLE_CELL_MAX, isnan(number) ? "—" : "%.0f", number);
    }
}

const char *step_nothing(const feed *f)
{
    return feed_step_plan(f) == NULL ? "The step is being planned." : "The planned step has no instructions.";
}

bool step_is_there(const canvas *c, const feed *f)
{
    const hr_step_plan *p = feed_step_plan(f);
    if (p != NULL && p->instr_count > 0) {
        return true;
    }
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    paint_wrapped(&words, 0, ROLE_DIM, step_nothing(f));
    return false;
}

const char *step_verdict(const feed *f, char *text, size_t size)
{
    const hr_step_plan *p = feed_step_plan(f);
    char missing[HR_BYTES_TEXT_MAX], at[16] = "building";
    text[0] = '\0';
    if (p != NULL && !p->fits) {
        if (p->refused_instr != HR_NO_ID) {
            snprintf(at, sizeof at, "%" PRIu32, p->refused_instr);
        }
        snprintf(text, size, "Does not fit: refused at %s, %s are missing.", at,
                 hr_bytes_human(p->missing_bytes, missing));
    }
    return text;
}

void step_bands(const hr_step_plan_instr *i, uint64_t band_bytes[BAND_COUNT])
{
    uint64_t sum = 0;
    for (unsigned k = 0; k < HR_CATEGORY_COUNT; k++) {
        band_bytes[k] = i->by_category[k];
        (void)hr_add_bytes(sum, i->by_category[k], &sum);
    }
    band_bytes[BAND_UNKNOWN] = i->in_use_bytes > sum ? i->in_use_bytes - sum : 0;
}
