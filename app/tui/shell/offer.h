// SPDX-License-Identifier: Apache-2.0
// A session that ended without `q` is offered again before another one starts: one line, one key: `y` goes on, `n` starts
// anew and never asks again, Esc starts anew and asks again, `q` leaves. Other keys do nothing. A start with a preset or settings is
// offered nothing else: a line says that it waits.
#ifndef TUI_OFFER_H
#define TUI_OFFER_H

#include "app/tui/shell/app.h"

enum { OFFER_NAME_MAX = 64 };

void offer_look(app *a);         // OVERLAY_OFFER where there is one
bool offer_key(app *a, int key); // false: the key was no answer, and is still to be done
const char *offer_name(const hr_save_about *about, char text[OFFER_NAME_MAX]); // of its preset

#endif
