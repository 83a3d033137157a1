// SPDX-License-Identifier: Apache-2.0
#include "app/tui/pane/pane.h"

#include <stdarg.h>
#include <stdio.h>

// "[at_peak · 12 of 49 · /grad · by bytes▾]"
void pane_table_rule(const canvas *c, const pane_view *v, const char *right)
{
    char look[TABLE_LOOK_MAX], title[TABLE_LOOK_MAX + 32];
    table_look(&v->tables[v->pane], v->ops->table, v->rows, c->area.h - v->ops->table_y, c->area.w, look);
    snprintf(title, sizeof title, "%s%s", pane_title(v->pane), look);
    paint_rule(c, v->focused, title, right);
}

void pane_draw_table(const canvas *c, const pane_view *v, const char *right)
{
    pane_table_rule(c, v, right);
    table_draw(c, v->ops->table_y, v->rows, v->ops->table, &v->tables[v->pane], v->focused);
}

pane_request pane_says(const char *format, ...)
{
    pane_request r = {.kind = PANE_SAYS};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r.text, sizeof r.text, format, args);
    va_end(args);
    return r;
}
