// SPDX-License-Identifier: Apache-2.0
// The stages as the engine tells of them now, and those that it only reports.
#include <string.h>

#include "app/tui/screens/pipeline/pipeline.h"

static uint64_t peak_of(const feed *f, const char *name)
{
    const size_t most = sizeof f->report.host.stages / sizeof *f->report.host.stages;
    for (size_t i = 0; f->has_report && i < f->report.host.stage_count && i < most; i++) {
        if (strcmp(f->report.host.stages[i].name, name) == 0) {
            return f->report.host.stages[i].peak_bytes;
        }
    }
    return HR_NONE;
}

static bool is_live(const run_state *m, const char *name)
{
    uint32_t i = 0;
    while (i < m->stage_count && strcmp(m->stage[i].name, name) != 0) {
        i++;
    }
    return i < m->stage_count;
}

size_t pipeline_views(const feed *f, stage_view views[STAGE_VIEWS_MAX])
{
    const run_state *m = feed_run_state(f);
    const size_t most = sizeof f->report.host.stages / sizeof *f->report.host.stages;
    size_t count = 0;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const hr_event_stage *s = &m->stage[i];
        views[count++] = (stage_view){s->name,           true,          s->queue_length,
                                      s->queue_capacity, s->host_bytes, peak_of(f, s->name)};
    }
    for (size_t i = 0; f->has_report && i < f->report.host.stage_count && i < most; i++) {
        const char *name = f->report.host.stages[i].name;
        if (!is_live(m, name)) {
            views[count++] =
                (stage_view){.name = name, .host_bytes = HR_NONE, .peak_bytes = peak_of(f, name)};
        }
    }
    return count;
}

const char *pipeline_bar(uint32_t length, uint32_t capacity, int width, char text[64])
{
    int filled = capacity == 0 ? 0 : (int)((uint64_t)length * (uint64_t)width / capacity);
    text[0] = '\0';
    for (int i = 0; i < width && i < 16; i++) {
        strcat(text, i < filled ? "●" : "·");
    }
    return text;
}
