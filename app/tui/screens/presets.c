// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/screens.h"

enum { NAME_WIDTH = 26 };

// What the chosen one is about, whole.
static void draw_detail(const canvas *c, const hr_preset_entry *entry)
{
    char text[sizeof entry->name + sizeof entry->title + 8];
    if (entry != NULL) {
        snprintf(text, sizeof text, "%s: %s", entry->name, entry->title);
        paint_wrapped(c, 1, ROLE_FOCUS, text);
    }
}

void screen_presets(const canvas *body, const app *a)
{
    enum { DETAIL_ROWS = 5 };
    int rows = body->area.h - 1 - DETAIL_ROWS;
    size_t selected = a->presets.selected;
    size_t top = rows > 0 && selected >= (size_t)rows ? selected - (size_t)rows + 1 : 0;
    canvas later = *body;
    later.said_later = true; // below, when it is chosen
    paint_rule(body, true, "presets", "");
    if (app_preset_entry(a, 0) == NULL) {
        paint_text(body, 1, 1, body->area.w - 2, ROLE_TEXT,
                   a->presets.filter[0] == '\0' ? "no presets were found; :preset FILE.yaml opens a file"
                                                : "no preset matches: / and Enter show all again");
    }
    canvas detail = canvas_sub(body, 1 + rows, 1, DETAIL_ROWS, body->area.w - 2);
    draw_detail(&detail, app_preset_entry(a, selected));
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
        paint_text(&later, 1 + y, 4 + NAME_WIDTH, body->area.w - NAME_WIDTH - 5, r, entry->title);
    }
}
