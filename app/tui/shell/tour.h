// SPDX-License-Identifier: Apache-2.0
// The first five minutes: a card that is shown once ever, and a tour that says one key at a time and goes on when it
// was pressed. Neither stands in the way of the training.
#ifndef TUI_TOUR_H
#define TUI_TOUR_H

#include "app/tui/shell/app.h"

// A choice of the card: its key, and what it brings. But for Enter, which begins the tour, these keys do what they do
// everywhere.
typedef struct card_choice {
    const char *shown, *line;
} card_choice;

const card_choice *card_choices(size_t *count);
void card_show(app *a); // unless it has been seen, or cannot be remembered to have been
// Closes the card. False: the key is still to be taken as everywhere.
bool card_key(app *a, int key);

void tour_begin(app *a);
void tour_follow(app *a, request done);
const char *tour_line(const app *a); // what to press now; NULL: no tour

#endif
