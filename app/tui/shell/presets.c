// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "app/tui/shell/frame.h"

enum { NAME_WIDTH = 26, DETAIL_MAX = ABOUT_MAX + 256, DETAIL_ROWS_MIN = 7 };

// What the chosen one is about, whole.
static const char *detail_of(const app *a, const hr_preset_entry *entry, char text[DETAIL_MAX])
{
    bool told = entry != NULL && strcmp(a->about.name, entry->name) == 0 && a->about.text[0] != '\0';
    text[0] = '\0';
    if (entry != NULL) {
        snprintf(text, DETAIL_MAX, "%s: %s%s%s", entry->name, entry->title, told ? "\n" : "",
                 told ? a->about.text : "");
    }
    return text;
}

static int detail_rows(const canvas *body, const char *text)
{
    size_t at = 0, start, length;
    int rows = 1, most = body->area.h * 2 / 3;
    while (rows < most && wrap_next(body->glyphs, text, body->area.w - 2, &at, &start, &length)) {
        rows++;
    }
    return rows > DETAIL_ROWS_MIN ? rows : DETAIL_ROWS_MIN;
}

void screen_presets(const canvas *body, const app *a)
{
    char text[DETAIL_MAX];
    int detail_height = detail_rows(body, detail_of(a, app_preset_entry(a, a->presets.selected), text));
    int rows = body->area.h - 1 - detail_height;
    size_t selected = a->presets.selected;
    size_t top = rows > 0 && selected >= (size_t)rows ? selected - (size_t)rows + 1 : 0;
    canvas later = *body;
    later.said_later = true; // below, when it is chosen
    paint_rule(body, true, "presets", ":preset FILE.yaml opens one of your own");
    if (app_preset_entry(a, 0) == NULL) {
        paint_text(body, 1, 1, body->area.w - 2, ROLE_TEXT,
                   a->presets.filter[0] == '\0' ? "no presets were found; :preset FILE.yaml opens a file"
                                                : "no preset matches: / and Enter show all again");
    }
    canvas detail = canvas_sub(body, 1 + rows, 1, detail_height, body->area.w - 2);
    paint_wrapped(&detail, 1, ROLE_FOCUS, text);
    for (int y = 0; y < rows; y++) {
        const hr_preset_entry *entry = app_preset_entry(a, top + (size_t)y);
        if (entry == NULL) {
            return;
        }
        bool chosen = top + (size_t)y == selected;
        bool running = strcmp(entry->name, hr_preset_name(a->feed.preset)) == 0;
        role r = chosen ? ROLE_SELECT : ROLE_TEXT;
        if (chosen) {
            paint_blank(body, 1 + y, 0, body->area.w, theme_role(body->theme, r));
        }
        paint_text(body, 1 + y, 1, 1, r, running ? "●" : "");
        paint_text(body, 1 + y, 3, NAME_WIDTH, r, entry->name);
        paint_text(&later, 1 + y, 4 + NAME_WIDTH, body->area.w - NAME_WIDTH - 5, r, entry->title);
    }
}
