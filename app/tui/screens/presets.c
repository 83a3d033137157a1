// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/screens.h"

enum { NAME_WIDTH = 26 };

void screen_presets(const canvas *body, const app *a)
{
    int rows = body->area.h - 1;
    size_t selected = a->presets.selected;
    size_t top = rows > 0 && selected >= (size_t)rows ? selected - (size_t)rows + 1 : 0;
    paint_rule(body, true, "presets", "↑↓ choose · Enter opens · / narrows · Esc closes");
    if (app_preset_entry(a, 0) == NULL) {
        paint_text(body, 1, 1, body->area.w - 2, ROLE_TEXT,
                   a->presets.filter[0] == '\0' ? "no presets were found; :preset FILE.yaml opens a file"
                                                : "no preset matches: / and Enter show all again");
    }
    for (int y = 0; y < rows; y++) {
        const hr_preset_entry *entry = app_preset_entry(a, top + (size_t)y);
        if (entry == NULL) {
            return;
        }
        bool chosen = top + (size_t)y == selected;
        bool running = strcmp(entry->name, hr_preset_name(a->preset)) == 0;
        role r = chosen ? ROLE_SELECT : ROLE_TEXT;
        if (chosen) {
            paint_blank(body, 1 + y, 0, body->area.w, theme_role(body->theme, r));
        }
        paint_text(body, 1 + y, 1, 1, r, running ? "●" : "");
        paint_text(body, 1 + y, 3, NAME_WIDTH, r, entry->name);
        paint_text(body, 1 + y, 4 + NAME_WIDTH, body->area.w - NAME_WIDTH - 5, r, entry->title);
    }
}
