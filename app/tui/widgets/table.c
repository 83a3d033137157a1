// SPDX-License-Identifier: Apache-2.0
// Who holds the memory at the peak: the tensors alive at that instruction, largest first.
#include <stdio.h>
#include <string.h>

#include "app/tui/widgets/widgets.h"

enum { BYTES_WIDTH = 9, DTYPE_WIDTH = 9, SHAPE_WIDTH = 18, SHAPE_MIN = 46, HEADED_MIN = 6 };

typedef struct table_columns {
    int name, bytes, dtype, shape; // widths; 0: no room
} table_columns;

static table_columns columns_of(int width)
{
    table_columns t = {.bytes = BYTES_WIDTH};
    t.shape = width >= SHAPE_MIN ? SHAPE_WIDTH : 0;
    t.dtype = width >= SHAPE_MIN + 24 ? DTYPE_WIDTH : 0;
    t.name = width - t.bytes - t.dtype - t.shape - 3;
    return t;
}

typedef struct table_row {
    const char *name, *bytes, *dtype, *shape;
} table_row;

static void draw_row(const canvas *c, int y, role r, table_columns t, table_row row)
{
    int x = 2;
    paint_middle(c, y, x, t.name, r, row.name);
    x += t.name;
    paint_right(c, y, x, t.bytes, r, row.bytes);
    x += t.bytes + 1;
    paint_text(c, y, x, t.dtype == 0 ? 0 : t.dtype - 1, r, row.dtype);
    x += t.dtype;
    paint_text(c, y, x, t.shape == 0 ? 0 : t.shape - 1, r, row.shape);
}

void widget_peak(const canvas *c, const app *a)
{
    char text[FORMAT_MAX], right[2 * HR_NAME_MAX];
    const hr_report_memory *memory = &a->report.memory;
    byte_unit unit = app_unit(a);
    size_t count = a->has_report ? memory->at_peak.tensor_count : 0;
    snprintf(right, sizeof right, "%s · %s", hr_phase_name(memory->at_peak.phase), memory->at_peak.name);
    paint_rule(c, a->focus == PANE_PEAK, pane_title(PANE_PEAK), count > 0 ? right : "no step yet");
    table_columns t = columns_of(c->area.w);
    int y = 1;
    if (c->area.h >= HEADED_MIN && count > 0) {
        draw_row(c, y++, ROLE_DIM, t, (table_row){"tensor", unit.name, "dtype", "shape"});
    }
    size_t top = a->table_top < count ? a->table_top : 0;
    for (size_t i = top; i < count && y < c->area.h; i++, y++) {
        const hr_report_tensor *tensor = &memory->at_peak.tensors[i];
        paint_cell(c, y, 0, theme_letter(c->theme, tensor->category),
                   (wchar_t)hr_category_letter(tensor->category));
        format_bytes(tensor->bytes, unit, text);
        draw_row(c, y, ROLE_TEXT, t, (table_row){tensor->name, text, tensor->dtype, tensor->shape});
    }
}
