// SPDX-License-Identifier: Apache-2.0
// What shows the verdict, as `headroom explain` has it behind its first lines: evidence and the largest tensors, scrolled.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/doctor/doctor.h"

enum { TENSORS_SHOWN = 12, LINE_MAX_BYTES = 256 };

typedef struct line {
    role as;
    char text[LINE_MAX_BYTES];
} line;

// Number `at` of them; false behind the last one.
static bool line_at(const feed *f, size_t at, line *l)
{
    const hr_report_oom *oom = &f->report.oom;
    const size_t shown = oom->evidence_count < HR_EVIDENCE_MAX ? oom->evidence_count : HR_EVIDENCE_MAX;
    const size_t there = f->report.memory.at_peak.tensor_count;
    const size_t tensors =
        oom->of_host || there == 0 ? 0 : 1 + (there < TENSORS_SHOWN ? there : TENSORS_SHOWN);
    char bytes[HR_BYTES_TEXT_MAX];
    if (at > shown + tensors || (at == 0 && shown + tensors == 0)) {
        return false;
    }
    l->as = at == 0 || at == shown + 1 ? ROLE_DIM : ROLE_TEXT;
    if (at == 0) {
        snprintf(l->text, sizeof l->text, "what shows it");
    } else if (at <= shown) {
        snprintf(l->text, sizeof l->text, "· %.*s", (int)sizeof oom->evidence[0].line - 1,
                 oom->evidence[at - 1].line);
    } else if (at == shown + 1) {
        snprintf(l->text, sizeof l->text, "largest at the peak of what was served");
    } else {
        const hr_report_tensor *t = &f->report.memory.at_peak.tensors[at - shown - 2];
        snprintf(l->text, sizeof l->text, "%10s  %.200s", hr_bytes_human(t->bytes, bytes), t->name);
    }
    return true;
}

size_t doctor_evidence_rows(const doctor_state *s, int width)
{
    line l;
    size_t rows = 0;
    for (size_t k = 0; line_at(s->feed, k, &l); k++) {
        size_t at = 0, start, length;
        while (wrap_next(s->glyphs, l.text, width, &at, &start, &length)) {
            rows++;
        }
    }
    return rows;
}

void doctor_draw_evidence(const canvas *c, int y, const doctor_state *s, size_t first)
{
    canvas scrolled = *c;
    line l;
    size_t row = 0;
    scrolled.said_later = true; // what has no room is scrolled to
    for (size_t k = 0; line_at(s->feed, k, &l); k++) {
        size_t at = 0, start, length;
        for (; wrap_next(c->glyphs, l.text, c->area.w, &at, &start, &length); row++) {
            if (row >= first && y < c->area.h) {
                paint_format(&scrolled, y++, 0, c->area.w, l.as, "%.*s", (int)length, l.text + start);
            }
        }
    }
}
