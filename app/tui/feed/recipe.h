// SPDX-License-Identifier: Apache-2.0
// The recipe beside the training (headroom/guest.h): orders to it, and what it has said, line by line.
#ifndef TUI_FEED_RECIPE_H
#define TUI_FEED_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/guest.h"

enum { RECIPE_ANSWERS = 128, RECIPE_ANSWER_MAX = 96, RECIPE_HINT_MAX = 256 };
enum { RECIPE_LINES = 2000, RECIPE_LINE_MAX = 256, RECIPE_NAME_MAX = 80, RECIPE_TYPED = '>' };

typedef struct recipe_line {
    char kind; // a hr_guest_line, or RECIPE_TYPED: an order as it was given
    char text[RECIPE_LINE_MAX];
} recipe_line;

// What may stand at the cursor of a chunk that is being typed.
typedef struct recipe_answer {
    uint64_t number; // of the question; 0: none came
    uint64_t start;  // the byte of the chunk where their word begins
    size_t count;
    char word[RECIPE_ANSWERS][RECIPE_ANSWER_MAX], after[RECIPE_ANSWERS][8];
    char hint[RECIPE_HINT_MAX];
} recipe_answer;

typedef enum recipe_state {
    RECIPE_IDLE,
    RECIPE_LISTENS, // its callbacks are called by the training that goes on
    RECIPE_WORKS,
} recipe_state;

typedef struct recipe_log {
    uint64_t cursor; // of what the session says
    recipe_state state;
    char name[RECIPE_NAME_MAX]; // of what works or listens; "" before the first
    bool ordered;               // some time in this session
    bool stopping;              // it was told to stop
    bool rested;                // the training, when the order was given
    uint64_t asked;             // the number of the last question
    recipe_answer answer;
    uint64_t plots;    // that have begun
    bool plot_goes_on; // the newest line was one of a plot
    uint64_t count;    // lines ever; line i is line[i % RECIPE_LINES]
    recipe_line line[RECIPE_LINES];
} recipe_log;

typedef struct feed feed;

// False: it was not taken, and why has been said; a lesson that holds its knobs takes none. `text`: as hr_session_order has it;
// `typed`: as the person gave it.
bool feed_order_recipe(feed *f, hr_guest_order order, const char *text, const char *typed);
// What may stand at that byte of a chunk: the answer has f->recipe.asked as its number. Nothing is asked while a recipe works.
void feed_ask_recipe(feed *f, const char *chunk, size_t cursor);
void feed_stop_recipe(feed *f); // what it does at this moment, and its callbacks
// Takes what it has said. True when there was something.
bool feed_take_recipe(feed *f);
// The session is a new one.
void feed_forget_recipe(feed *f);
const recipe_line *recipe_line_at(const recipe_log *r,
                                  uint64_t back); // 0: the newest; NULL beyond the oldest

#endif
