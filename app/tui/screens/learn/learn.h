// SPDX-License-Identifier: Apache-2.0
// Learn: what the words mean, and the situations that can be opened.
#ifndef TUI_SCREENS_LEARN_H
#define TUI_SCREENS_LEARN_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/lesson.h"
#include "headroom/preset.h"

#include "app/tui/pane/pane.h"

enum { ABOUT_MAX = 1024 };

// What a preset says of itself, read once while it is the selected one.
typedef struct preset_about {
    char name[HR_KNOB_TEXT_MAX];
    char text[ABOUT_MAX]; // its description; "": it says nothing
} preset_about;

// What of an open lesson is shown.
//
//   PAGES ──Enter──▶ ASKS ──Enter──▶ ANSWERS ──Enter──▶ WORKS ──goals reached──▶ AFTER ──n──▶ the next lesson
//                    (a page, a question, an answer at a time; without a question PAGES ──▶ WORKS)
typedef enum lesson_phase {
    LESSON_PAGES,
    LESSON_ASKS,
    LESSON_ANSWERS,
    LESSON_WORKS,
    LESSON_AFTER
} lesson_phase;

enum { LESSON_TEXT_MAX = 6144 };

typedef struct lesson_state {
    size_t serial;          // of what was opened or turned over: 1, 2, 3 …
    hr_lesson *open;        // owned; NULL: none is
    hr_lesson_table *table; // owned
    lesson_phase phase;
    uint32_t at;     // page, question
    uint32_t reread; // at work: pages back from the last one, which is 1; 0: the work itself
    uint32_t option; // under the cursor, of a question
    uint32_t picked[HR_LESSON_QUESTIONS_MAX];
    uint32_t hint; // that is shown, from 1; 0: none
    int top;       // rows scrolled
    hr_lesson_progress progress;
    hr_lesson_verdict verdict;
    hr_knobs judged; // the knobs that it is about
    bool begins;     // its runs are being played: nothing of it can be shown yet
    bool tries;      // `judged` are being played
    bool has_begun;  // its start was what trains
    bool is_judged, in_sandbox;
    bool is_broken;         // its runs could not be played: wrong says why
    bool tells;             // it has just been done, which no screen has said yet
    hr_knobs start, parked; // parked: where the sandbox was entered
    char wrong[HR_ERR_TEXT_MAX];
    char text[LESSON_TEXT_MAX]; // what is shown
} lesson_state;

typedef struct learn_state {
    const feed *feed;
    const table_view *table;   // of [situations]
    const preset_about *about; // of the selected one, once the shell has read it
    hr_preset_entry *entries;  // owned: presets/articles
    size_t count;
    bool looked;                    // whether the folder was read
    const table_view *lesson_table; // of [lessons]
    hr_lesson_entry *lessons;       // owned
    hr_lesson_progress *progress;   // owned, of each
    size_t lesson_count;
    lesson_state lesson;
    char lessons_path[HR_RECIPE_PATH_MAX]; // the file of progress; "": nothing is remembered
} learn_state;

extern const pane_ops pane_terms, pane_meaning, pane_situations, pane_lessons, pane_lesson;
void place_learn(layout *l, rect body, const layout_wish *wish);

// When the screen is shown: reads the folder, once.
HR_MUST_CHECK hr_status learn_open(learn_state *s, hr_err *err);
void learn_close(learn_state *s);

const hr_preset_entry *learn_situation(const learn_state *s); // the selected one; NULL: there is none

// The file of progress; NULL: nothing is remembered.
void learn_remember(learn_state *s, const char *path);

// ---- lessons_kept.c, lesson_work.c, lesson_text.c -----------------------------------------------------------------------

HR_MUST_CHECK hr_status lessons_read(learn_state *s, hr_err *err); // the list, with what was done
void lessons_free(learn_state *s);
void lessons_note(learn_state *s); // what was done of the open one: kept, and in the list
HR_MUST_CHECK hr_status lesson_begin(learn_state *s, const char *name, hr_err *err);
void lesson_end(lesson_state *s);
// When another training has taken the screen: whether it is the open lesson's, before a knob of it is turned.
void learn_follow(learn_state *s);
// Plays the knobs as they stand on a thread of its own, and judges what has been played, whichever screen is shown. True: something
// is new.
bool learn_take(learn_state *s);
bool learn_waits(const learn_state *s);             // something plays
const hr_lesson *learn_holds(const learn_state *s); // whose knobs stay as they are; NULL: nobody's
bool learn_is_at_work(const learn_state *s);        // what trains is the open lesson's
void learn_line(const learn_state *s, char *line,
                size_t size); // of that, for every other screen: what is wanted, and the way back

#endif
