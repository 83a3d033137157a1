// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/widgets/widgets.h"

static role role_of(log_kind kind)
{
    static const role roles[] = {
        [LOG_NOTE] = ROLE_TEXT, [LOG_GOOD] = ROLE_GOOD, [LOG_WARN] = ROLE_WARN, [LOG_BAD] = ROLE_BAD};
    return roles[kind];
}

void widget_log(const canvas *c, const app *a)
{
    const model *m = app_model(a);
    char right[64] = "", clock[FORMAT_MAX];
    if (m->lost_events > 0) {
        snprintf(right, sizeof right, "%" PRIu64 " events lost", m->lost_events);
    }
    paint_rule(c, a->focus == PANE_LOG, pane_title(PANE_LOG), right);
    uint64_t held = m->log_count < LOG_LENGTH ? m->log_count : LOG_LENGTH;
    uint64_t rows = (uint64_t)(c->area.h > 1 ? c->area.h - 1 : 0);
    uint64_t back = a->log_back + rows <= held ? a->log_back : held > rows ? held - rows : 0;
    uint64_t shown = held - back < rows ? held - back : rows;
    for (uint64_t i = 0; i < shown; i++) {
        const log_line *line = &m->log[(m->log_count - back - shown + i) % LOG_LENGTH];
        int y = 1 + (int)i;
        int used = paint_text(c, y, 0, 8, ROLE_DIM, format_clock(line->time_ns, clock));
        paint_text(c, y, used + 1, c->area.w - used - 1, role_of(line->kind), line->text);
    }
}
