// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_SCREENS_LEARN_LESSON_TEXT_H
#define TUI_SCREENS_LEARN_LESSON_TEXT_H

#include "app/tui/screens/learn/learn.h"

uint32_t lesson_options(const hr_lesson_question *q); // that are offered
void lesson_write(lesson_state *s);                   // what is shown, as its phase is

#endif
