// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_TERM_INPUT_H
#define TUI_TERM_INPUT_H

// Keys beyond Unicode; a plain character is its own code.
enum input {
    INPUT_NONE = 0,
    INPUT_CTRL_C = 3,
    INPUT_TAB = 9,
    INPUT_ENTER = 10,
    INPUT_CTRL_L = 12,
    INPUT_ESCAPE = 27,
    INPUT_BACKSPACE = 127, // backspace
    INPUT_BEYOND_UNICODE = 0x200000,
    INPUT_UP,
    INPUT_DOWN,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_HOME,
    INPUT_END,
    INPUT_PAGE_UP,
    INPUT_PAGE_DOWN,
    INPUT_BACK_TAB,
    INPUT_DELETE,
    INPUT_RESIZED,
    INPUT_CLICK,
    INPUT_WHEEL_UP,
    INPUT_WHEEL_DOWN,
    INPUT_WORD_LEFT,
    INPUT_WORD_RIGHT,
    INPUT_UNKNOWN, // a function key that has no job
};

#endif
