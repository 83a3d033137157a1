// SPDX-License-Identifier: Apache-2.0
// "." — panes of Bench and Doctor in a sentence.
#ifndef TUI_SAY_H
#define TUI_SAY_H

#include "app/tui/app.h"

void say_memory(app *a);
void say_knob(app *a);
void say_loss(app *a);
void say_log(app *a);
void say_counter(app *a);

#endif
