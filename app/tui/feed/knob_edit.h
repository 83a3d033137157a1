// SPDX-License-Identifier: Apache-2.0
// Turning knobs: which ones the panel shows, what lies left and right of a value, and the way back.
#ifndef TUI_FEED_KNOB_EDIT_H
#define TUI_FEED_KNOB_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/knobs.h"

enum {
    KNOB_EDIT_LESS = -1,
    KNOB_EDIT_MORE = 1,
    KNOB_EDIT_UNDO_MAX = 64,
    KNOB_EDIT_FRONT = 15,
    KNOB_EDIT_WORDS_MAX = 128
};

// The knobs of the panel, in its order: all that have more than one value, the KNOB_EDIT_FRONT that decide most first.
const hr_knob_id *knob_edit_panel(size_t *count);

// The value next to the present one, as it would be typed: the next choice, doubled or halved counts, an eighth
// more or less of a size, the 1-2-5 row of a real number, the usual words and numbers of others. `when_unset_bytes` is where a size that is not set
// starts from. False at the end of the range and for file names.
bool knob_edit_neighbour(const hr_knobs *knobs, hr_knob_id id, int direction, uint64_t when_unset_bytes,
                         char text[HR_KNOB_TEXT_MAX]);

// The value that a key turns to: the neighbour; where that is one of a list and refused beside the other knobs, the first
// behind it that is not, or that one other knob lets stand (knob_edit_both). Where there is none, the neighbour again.
// `passed` receives what lies between, "a, b", or ""; it may be NULL.
bool knob_edit_reach(const hr_knobs *knobs, hr_knob_id id, int direction, uint64_t when_unset_bytes,
                     char text[HR_KNOB_TEXT_MAX], char passed[HR_KNOB_TEXT_MAX]);

// What lets knobs stand that were refused because `id` was turned: the one turn of another knob that the constraint they
// break names. *broken is that constraint. False: there is none.
bool knob_edit_both(const hr_knobs *refused, hr_knob_id id, hr_knobs *both, const hr_constraint **broken);

// The usual words and numbers of a knob that takes more than a range or a list of choices, and all cards of device.card.
// Returns how many; the words last.
size_t knob_edit_words(hr_knob_id id, const char *words[KNOB_EDIT_WORDS_MAX]);
// What one of these words is, "NVIDIA A100 80 GB"; "" where nothing is known but the word.
const char *knob_edit_word_title(hr_knob_id id, const char *word);

// Sets one knob on a copy and checks the whole. On failure *knobs is as it was.
HR_MUST_CHECK hr_status knob_edit_set(hr_knobs *knobs, hr_knob_id id, const char *text, hr_err *err);

bool knob_edit_differs(const hr_knobs *a, const hr_knobs *b, hr_knob_id id);
bool knob_edit_same(const hr_knobs *a, const hr_knobs *b);
// The knobs in which `from` and `to` differ, in an order in which they can be turned one after the other: every set on
// the way is legal, because the engine takes them one by one. CONSTRAINT error when `to` is not legal, or no such order
// was found.
HR_MUST_CHECK hr_status knob_edit_order(const hr_knobs *from, const hr_knobs *to,
                                        hr_knob_id order[HR_KNOB_COUNT], size_t *count, hr_err *err);

// Whether the device can be made so: a card by that name, no more memory than it has. Reads the card's file.
HR_MUST_CHECK hr_status knob_edit_check_device(const hr_knobs *knobs, hr_err *err);

typedef struct knob_edit_step {
    hr_knob_id id;
    hr_knob_value before, after;
    bool joined; // with the step before it: they are undone and redone together
} knob_edit_step;

// What was turned, oldest first; steps from `done` on are undone and can be redone.
typedef struct knob_edit_log {
    size_t count, done;
    knob_edit_step step[KNOB_EDIT_UNDO_MAX];
} knob_edit_log;

void knob_edit_log_add(knob_edit_log *log, hr_knob_id id, const hr_knob_value *before,
                       const hr_knob_value *after);
void knob_edit_log_join(knob_edit_log *log, size_t count);    // the last `count` steps become one
const knob_edit_step *knob_edit_log_undo(knob_edit_log *log); // NULL: nothing to undo
const knob_edit_step *knob_edit_log_redo(knob_edit_log *log);
// Forgets the newest steps that these knobs do not show: they were refused.
void knob_edit_log_settle(knob_edit_log *log, const hr_knobs *knobs);

#endif
