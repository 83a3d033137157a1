// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_FRAME_H
#define TUI_FRAME_H

#include "app/tui/shell/app.h"
#include "app/tui/shell/panes.h"

void screen_meter(const canvas *screen, const app *a, const layout *l);
void screen_line(const canvas *screen, const app *a);
void help_settle(app *a, rect area); // before a frame that shows it: it scrolls no farther than it has rows
void screen_help(const canvas *body, const app *a);
void screen_presets(const canvas *body, const app *a);
void screen_card(const canvas *body, const feed *f); // over the panes, which live on behind it
void screen_columns(const canvas *body, const app *a);

// What is being typed, and what can be, in rows above the line.
void frame_prompt(const canvas *c, const app *a);
void frame_candidates(const canvas *screen, rect line, const app *a);

// Title, strip (message, prompt, tip or log) and footer: the lines around every screen.
void frame_title(const canvas *c, const feed *f);
void frame_strip(const canvas *screen, rect strip, const app *a);
void frame_tabs(const canvas *c, const app *a); // of screens; in windows of one pane, of panes
void frame_footer(const canvas *c, const app *a);

#endif
