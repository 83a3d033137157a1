// SPDX-License-Identifier: Apache-2.0
// Lessons: a folder with a lesson.yaml, and how what a learner did is judged (docs/decisions/0066-lessons.md; docs/lessons.md is
// the page for teachers). A lesson is read-only once it is open; any thread may use it.
#ifndef HEADROOM_LESSON_H
#define HEADROOM_LESSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/preset.h"
#include "headroom/report.h"

enum {
    HR_LESSON_PAGE_LINES = 20,
    HR_LESSON_PAGE_COLUMNS = 76,
    HR_LESSON_HINTS = 3,
    HR_LESSON_RUNS_MAX = 12,
    HR_LESSON_QUESTIONS_MAX = 8
};

typedef struct hr_lesson_text {
    const char *text;
    uint32_t line; // where it stands in the file
} hr_lesson_text;

typedef struct hr_lesson_texts {
    const hr_lesson_text *data;
    uint32_t count;
} hr_lesson_texts;

// A situation beside the start: the start's knobs and these, or another preset's ("preset=NAME a.b=1").
typedef struct hr_lesson_run {
    const char *name;
    const char *preset; // NULL: the lesson's own
    const char *pairs;  // "a.b=1 c.d=2"
} hr_lesson_run;

// Asked before anything is seen.
typedef struct hr_lesson_question {
    const char *question;
    hr_lesson_texts choices; // none: a number is asked for
    uint32_t choice;         // which of them is right, from 1; 0: there are none
    const char *answer;      // as it is written: a choice's number, or an expression
    const char *because;     // shown with the answer; "": nothing
    uint32_t line;           // where that stands in the file
    double within;           // of a number: how far it may be, as a share
} hr_lesson_question;

typedef struct hr_lesson_goal {
    const char *want; // as a learner reads it
    const char *that; // the condition
} hr_lesson_goal;

// What stands in the file, checked; all of it belongs to the lesson.
typedef struct hr_lesson_about {
    char name[64];            // of its folder: "05-batch-size"
    const char *title;        // "Batch size"
    const char *line;         // what it is about
    const char *preset;       // of the start
    const char *knobs;        // pairs
    uint32_t steps;           // that a run of it does
    uint32_t batch;           // samples an update has to see; 0: as many as at the start
    uint32_t par;             // knobs that the solution turns
    const char *solution;     // pairs
    hr_lesson_texts claims;   // of an article: their numbers in the list that the lesson is one of
    hr_lesson_texts fails;    // conditions: true of the start
    hr_lesson_texts facts;    // conditions: what its text claims
    hr_lesson_texts unlocked; // keys or groups
    hr_lesson_texts pages, after, hints, less;
    const hr_lesson_run *runs;
    uint32_t run_count;
    const hr_lesson_question *questions;
    uint32_t question_count;
    const hr_lesson_goal *goals;
    uint32_t goal_count;
} hr_lesson_about;

typedef struct hr_lesson hr_lesson;

// Opens LESSON: a name, the number or the end of one (05-batch-size, 5, batch-size), searched in the folders `lessons` where
// presets are searched (of a checkout: scripts/lessons), or a path with a '/': of the folder or of the file. USAGE error with
// the nearest name; READ; PRESET error with every problem of the file in *problems (NULL is fine; hr_preset_problems_free).
HR_MUST_CHECK hr_status hr_lesson_open(const char *lesson, hr_lesson **out, char **problems, hr_err *err);
void hr_lesson_close(hr_lesson *lesson); // NULL is fine
const hr_lesson_about *hr_lesson_tell(const hr_lesson *lesson);
// Whether this is the preset that its start is of.
bool hr_lesson_starts_from(const hr_lesson *lesson, const hr_preset *preset);

typedef struct hr_lesson_entry {
    char name[64];
    char title[64];
    char line[96];
} hr_lesson_entry;
// Every lesson that can be opened by name, in their order; one that cannot be read has an empty title. The caller frees *entries
// with hr_lesson_list_free. NOMEM.
HR_MUST_CHECK hr_status hr_lesson_list(hr_lesson_entry **entries, size_t *count, hr_err *err);
void hr_lesson_list_free(hr_lesson_entry *entries);

// ---- what was seen of a run -------------------------------------------------------------------------------------

// What the event stream adds to a report. Zero-initialised.
typedef struct hr_lesson_events {
    uint64_t steps;       // that were seen
    uint64_t done;        // the engine's own count: a plan whose heap repeats is not played to its end
    uint64_t allocations; // of the last step
    uint64_t since_step;  // allocations, so far
    uint64_t first_floor_bytes, last_floor_bytes; // smallest in use, of the first and of the last step
    uint64_t update_bytes;                        // most in use while weights are updated, of the last step
    uint64_t updating_bytes;                      // the same of the step under way
    bool lost_loss;                               // a loss was no number
} hr_lesson_events;
// `computes`: steps have a loss.
void hr_lesson_see(hr_lesson_events *events, const hr_event *event, bool computes);

typedef struct hr_lesson_seen {
    char name[32]; // "start" or a run's; the learner's is "now" by its place
    hr_knobs knobs;
    hr_report report;
    hr_lesson_events events;
} hr_lesson_seen;

void hr_lesson_seen_deinit(hr_lesson_seen *seen);

// Knobs of the start with `pairs` turned ("": the start itself). KNOB and CONSTRAINT errors.
HR_MUST_CHECK hr_status hr_lesson_knobs(const hr_lesson *lesson, const char *pairs, hr_knobs *out,
                                        hr_err *err);
// The runs that a condition may speak of: the first is the learner's, whose name need not be said.
typedef struct hr_lesson_runs {
    hr_lesson_seen *seen[HR_LESSON_RUNS_MAX + 2];
    uint32_t count;
} hr_lesson_runs;

// A lesson under way: what was seen of the start, of its named runs, and of the learner's knobs.
typedef struct hr_lesson_table hr_lesson_table;
// Asked between two steps, which a run of a lesson that is left does not go on with: INTERRUPTED. NULL: to the end.
typedef struct hr_lesson_watch {
    bool (*goes_on)(void *context);
    void *context;
} hr_lesson_watch;
// Plays the start and the named runs, on the caller's thread, each the lesson's steps: on the plan device nothing is computed. Out of
// memory is a result. The learner's run is the start's. `lesson` is borrowed until end.
HR_MUST_CHECK hr_status hr_lesson_begin(const hr_lesson *lesson, const hr_lesson_watch *watch,
                                        hr_lesson_table **out, hr_err *err);
// Plays the learner's knobs; on failure what was seen before stays. A run of a lesson saves nothing.
HR_MUST_CHECK hr_status hr_lesson_try(hr_lesson_table *table, const hr_knobs *knobs, hr_err *err);
const hr_lesson_runs *hr_lesson_table_runs(const hr_lesson_table *table); // [0] the learner's, [1] the start
void hr_lesson_end(hr_lesson_table *table); // NULL is fine; what plays beside it is left

// The same two on a thread of their own, one play at a time. A table that begins has no runs until it is done; while it tries its runs
// stay what they were.
HR_MUST_CHECK hr_status hr_lesson_begin_beside(const hr_lesson *lesson, hr_lesson_table **out, hr_err *err);
HR_MUST_CHECK hr_status hr_lesson_try_beside(hr_lesson_table *table, const hr_knobs *knobs, hr_err *err);
// Whether the play has ended (`waits`: until it has), and how: what hr_lesson_begin and hr_lesson_try return. Nothing plays: true, OK.
bool hr_lesson_is_done(hr_lesson_table *table, bool waits, hr_status *status, hr_err *err);

// ---- conditions ---------------------------------------------------------------------------------------------------

typedef enum hr_lesson_kind {
    HR_LESSON_UNKNOWN, // it does not apply
    HR_LESSON_REAL,
    HR_LESSON_COUNT,
    HR_LESSON_BYTES,
    HR_LESSON_SHARE,
    HR_LESSON_WORD,
} hr_lesson_kind;

typedef struct hr_lesson_value {
    hr_lesson_kind kind;
    double number;
    char word[64];
} hr_lesson_value;

enum { HR_LESSON_VALUE_TEXT_MAX = 64 };

// The value of an expression. PRESET errors say what is wrong with it; nothing else fails.
HR_MUST_CHECK hr_status hr_lesson_evaluate(const char *expression, const hr_lesson_runs *runs,
                                           hr_lesson_value *out, hr_err *err);
HR_MUST_CHECK hr_status hr_lesson_holds(const char *condition, const hr_lesson_runs *runs, bool *holds,
                                        hr_err *err);
// As text: "3.61 GiB", "1,234", "12.5 %", "0.75", a word; "unknown". Returns said.
const char *hr_lesson_say(const hr_lesson_value *value, char said[HR_LESSON_VALUE_TEXT_MAX]);
// What a learner typed for a number: "3.6GiB", "12", "40%". False: it is none.
bool hr_lesson_read_number(const char *typed, double *number);
// The page with every {expression} as text, its paragraphs broken anew at HR_LESSON_PAGE_COLUMNS (lines that begin with a blank or have two side by side stay), {% expression} as a percentage, {expression|10} with blanks up to ten columns; the caller frees it with hr_lesson_text_free. On failure *out is NULL.
HR_MUST_CHECK hr_status hr_lesson_fill(const char *page, const hr_lesson_runs *runs, char **out, hr_err *err);
void hr_lesson_text_free(char *page);
// Of a line of so many bytes, UTF-8: what HR_LESSON_PAGE_COLUMNS counts.
size_t hr_lesson_columns(const char *line, size_t bytes);

// ---- judging --------------------------------------------------------------------------------------------------------

enum { HR_LESSON_ROWS_MAX = 16, HR_LESSON_ROW_TEXT_MAX = 160 };

typedef struct hr_lesson_row {
    char want[HR_LESSON_ROW_TEXT_MAX];
    char have[HR_LESSON_ROW_TEXT_MAX]; // where it does not hold: what there is; "": no more to say
    bool holds;
    bool is_guard;
} hr_lesson_row;

typedef struct hr_lesson_verdict {
    hr_lesson_row rows[HR_LESSON_ROWS_MAX]; // the goals, then guards that do not hold
    uint32_t count;
    uint32_t turned; // knobs that are not as at the start
    bool passed;
} hr_lesson_verdict;

// Judges runs->seen[0]. The errors of hr_lesson_holds.
HR_MUST_CHECK hr_status hr_lesson_judge(const hr_lesson *lesson, const hr_lesson_runs *runs,
                                        hr_lesson_verdict *out, hr_err *err);
// Of knobs that were not played: what stays as it is and was turned, as rows; true: nothing, and they may be played.
bool hr_lesson_judge_knobs(const hr_lesson *lesson, const hr_knobs *knobs, hr_lesson_verdict *out);
// Whether a learner may turn it: named, or of a group that is named, which does not unlock what is learned from (source, path, samples,
// filter, resident).
bool hr_lesson_unlocks(const hr_lesson *lesson, hr_knob_id knob);

// ---- progress -------------------------------------------------------------------------------------------------------

typedef struct hr_lesson_progress {
    bool done;
    uint32_t hints;  // that were shown
    uint32_t runs;   // that were made
    uint32_t turned; // knobs turned when it was passed, the fewest so far
} hr_lesson_progress;

// A run with this many knobs turned has reached the goals.
void hr_lesson_progress_pass(hr_lesson_progress *progress, uint32_t turned);
// Kept in a file of one line a lesson. What cannot be read is no progress, what cannot be written is lost: neither is an error. A
// file that is there and cannot be read whole stays as it is.
void hr_lesson_progress_read(const char *path, const char *name, hr_lesson_progress *out);
void hr_lesson_progress_write(const char *path, const char *name, const hr_lesson_progress *progress);

#endif
