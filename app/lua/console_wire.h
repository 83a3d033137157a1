// SPDX-License-Identifier: Apache-2.0
// What the two processes of a console say to each other. They are of one build: structs go as they are.
#ifndef APP_LUA_CONSOLE_WIRE_H
#define APP_LUA_CONSOLE_WIRE_H

#include <stdint.h>

#include "app/lua/script.h"

typedef struct console_setup {
    script_limits limits;
    uint32_t line; // the number of the first line
} console_setup;

typedef enum console_kind {
    CONSOLE_RUN = 100,
    CONSOLE_COMPLETE
} console_kind; // not a script_stop, with which a hang begins

typedef struct console_request {
    int32_t kind;
    uint32_t length; // of the text behind it
    uint32_t cursor;
    uint32_t last;
} console_request;

typedef struct console_answer {
    int32_t kind;
    int32_t end;  // a lua_console_end
    int32_t code; // an exit code
    uint32_t line;
    uint32_t globals; // that the person has made
    uint64_t steps;   // of the training whose weights are at hand; 0: there is none
} console_answer;

#endif
