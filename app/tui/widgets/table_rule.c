// SPDX-License-Identifier: Apache-2.0
// The title line of a table: "[at_peak · 12 of 49 · /grad · by bytes▾]".
#include <stdio.h>

#include "app/tui/widgets/widgets.h"

void widget_table_rule(const canvas *c, const app *a, pane_id pane, const char *right)
{
    const pane_ops *ops = pane_ops_of(pane);
    char look[TABLE_LOOK_MAX], title[TABLE_LOOK_MAX + 32];
    table_look(&a->table[pane], ops->table, pane_rows(a, pane), c->area.h - ops->table_y, c->area.w, look);
    snprintf(title, sizeof title, "%s%s", pane_title(pane), look);
    paint_rule(c, a->focus == pane, title, right);
}
