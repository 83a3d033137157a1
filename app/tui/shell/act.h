// SPDX-License-Identifier: Apache-2.0
// What requests do, by topic. act.c holds the table.
#ifndef TUI_ACT_H
#define TUI_ACT_H

#include "app/tui/pane/pane.h"
#include "app/tui/shell/app.h"

// act_knobs.c
void act_turn(app *a, int direction); // KNOB_EDIT_LESS, KNOB_EDIT_MORE: the selected knob
void act_turn_to(feed *f, hr_knob_id id, const char *text); // what was typed; says what became of it
void act_select_knob(app *a, int rows);
void act_step_back(app *a, int forward); // undo, redo
void act_edit(app *a);

// act_training.c
void act_run_or_pause(app *a, int unused);
void act_restart(app *a, int unused);
void act_pin(app *a, int pinned);
void act_quit(app *a, int unused);
void act_interrupt(app *a, int unused);
void act_presets(app *a, int unused);
const char *act_why_not_edit(const feed *f);
void act_edit_preset(app *a, int unused); // asks for it: the terminal has to be lent
// It was in the editor; `changed`: its file is another one now.
void act_preset_was_edited(app *a, bool changed);
void act_choose_preset(app *a);
extern const char *const preset_folders[PRESET_FOLDERS]; // below the one of all presets

// act_view.c
void act_freeze(app *a, int unused);
void act_focus_next(app *a, int direction);
void act_move_rows(app *a, int rows);
void act_move_columns(app *a, int columns);
void act_enter(app *a, int unused);
void act_apply(app *a, int unused);
void act_permit(app *a, int unused); // the next of what Fit may change
void act_hint(app *a, int unused);
void act_sandbox(app *a, int unused);
void act_next(app *a, int direction); // of a lesson, or as act_match
pane_id act_apply_pane(const app *a); // whose selected row `a` applies; PANE_COUNT: none of this screen
void act_zoom(app *a, int direction);
void act_settle_pane(app *a, pane_id pane);       // as the next frame will show it
bool act_for_pane(app *a, const pane_request *r); // does it; false: it asks for nothing
void act_back(app *a, int unused);
void act_screen(app *a, int screen);
void act_list_lessons(app *a, int unused); // Learn; once more: its list
void act_expand(app *a, int unused);
void act_glyphs(app *a, int unused);
void act_help(app *a, int unused);
void act_command(app *a, int unused);
void act_console(app *a, int unused);
void act_redraw(app *a, int unused);
void act_say(app *a, int unused);

// act_looks.c
void act_theme(app *a, int unused);
void act_mouse(app *a, int unused);
void act_copy(app *a, int unused);
void act_save_screen(app *a, int unused); // headroom-1.svg, headroom-2.svg … in the folder it was started in
bool act_can_copy(const app *a);
bool act_take_theme(app *a, const char *name);   // false: no theme is called so
bool act_take_glyphs(app *a, glyph_set set);     // false: richer than what the terminal shows
bool act_choose_theme(app *a, const char *name); // the same, and to be remembered
bool act_choose_glyphs(app *a, glyph_set set);
void act_choose_mouse(app *a, bool on);
hr_status act_save_display(app *a, const char *path, bool replaces,
                           hr_err *err); // a frame without line, list and message

// act_table.c: of the focused table
void act_filter(app *a, int unused);
void act_filter_typed(app *a); // what stands in the line now
void act_filter_with(app *a, const char *text);
void act_filter_move(app *a, int rows); // while it is typed: the next row, the next knob that matches
void act_filter_counts(const app *a, size_t *shown, size_t *all); // of what the line looks through
void act_find_typed(app *a);                                      // the same for the help
void act_narrow_typed(app *a);                                    // and for the presets
// What was looked for in the list that has the keys: in the help, among presets, rows or knobs; "": nothing.
const char *act_looks_for(const app *a);
void act_match(app *a, int direction); // the next that has it
void act_sort(app *a, int unused);
void act_reverse(app *a, int unused);
void act_columns(app *a, int unused);
void act_toggle_column(app *a);
void act_follow(app *a, int unused);
void act_mark(app *a, int unused);

#endif
