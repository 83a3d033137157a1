// SPDX-License-Identifier: Apache-2.0
// The memory over time, and within the last step.
#include <stdio.h>

#include "headroom/units.h"

#include "app/tui/pane/graph.h"
#include "app/tui/screens/bench/bench.h"

static void draw_step(const canvas *c, const pane_view *v)
{
    char text[64], peak[FORMAT_MAX];
    const run_state *m = feed_run_state(v->feed);
    format_bytes(m->step_peak_bytes, feed_unit(v->feed), peak);
    snprintf(text, sizeof text, "last step · peak %s %s", m->steps > 0 ? peak : "—", feed_unit(v->feed).name);
    paint_rule(c, v->focused, pane_title(PANE_STEP), text);
    graph_step(c, v->feed, v->pinned_bytes);
}

static void draw_vram(const canvas *c, const pane_view *v)
{
    const bench_state *bench = v->rows;
    const run_state *m = feed_run_state(v->feed);
    char text[160], in_use[FORMAT_MAX], peak[FORMAT_MAX], limit[FORMAT_MAX];
    byte_unit unit = feed_unit(v->feed);
    format_bytes(m->any ? m->heap.in_use_bytes : HR_NONE, unit, in_use);
    const hr_whatif *plan = feed_waiting_plan(v->feed);
    uint64_t limit_bytes = plan != NULL ? plan->limit_bytes : m->limit_bytes;
    format_bytes(plan != NULL ? plan->peak_in_use_bytes : m->any ? m->epoch_peak_bytes : HR_NONE, unit, peak);
    format_bytes(limit_bytes > 0 ? limit_bytes : HR_NONE, unit, limit);
    snprintf(text, sizeof text, "now %s · peak %s of %s %s%s", in_use, peak, limit, unit.name,
             plan != NULL ? " p" : "");
    paint_rule(c, v->focused, pane_title(PANE_VRAM), text);
    const canvas graph = bench_draw_deployed(c, v->feed);
    if (bench->zoom == 0) {
        graph_step(&graph, v->feed, v->pinned_bytes);
    } else {
        graph_time(&graph, v->feed, v->pinned_bytes, bench->zoom - 1);
    }
}

static pane_request settle_vram(const pane_view *v, void *own)
{
    bench_state *bench = own;
    const int columns = graph_plot_width(v->place.w);
    bench->graph_columns = columns > 0 ? (uint32_t)columns : 1;
    return (pane_request){.kind = PANE_DONE};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const run_state *m = feed_run_state(v->feed);
    char in_use[HR_BYTES_TEXT_MAX], peak[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], share[FORMAT_MAX];
    char deployed[200];
    unsigned largest = 0;
    bench_say_deployed(v->feed, deployed, sizeof deployed);
    for (unsigned i = 1; i < HR_CATEGORY_COUNT; i++) {
        largest = m->heap.band_bytes[i] > m->heap.band_bytes[largest] ? i : largest;
    }
    hr_bytes_human(m->heap.in_use_bytes, in_use);
    hr_bytes_human(m->epoch_peak_bytes, peak);
    hr_bytes_human(m->limit_bytes, limit);
    format_percent((double)m->epoch_peak_bytes / (double)m->limit_bytes, share);
    snprintf(text, PANE_TEXT_MAX,
             "Memory in use is %s and has peaked at %s of %s, which is %s; the largest part now is %s.%s",
             in_use, peak, limit, share, hr_category_name((hr_category)largest), deployed);
}

const pane_ops pane_step = {.draw = draw_step, .say = say, .term = "peak_in_use_bytes"};
const pane_ops pane_vram = {.settle = settle_vram, .draw = draw_vram, .say = say, .term = "in_use_bytes"};
