// SPDX-License-Identifier: Apache-2.0
// What may stand at a cursor in a chunk of Lua that is being typed, and how what is called there is called. Names come from
// the live state, from the rows of hr and from the table of knobs; the state is read and never changed, no code of a script
// runs, and Lua allocates nothing.
#ifndef APP_LUA_COMPLETE_H
#define APP_LUA_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lua_State;

enum {
    SCRIPT_CANDIDATES_MAX = 512,
    SCRIPT_CANDIDATES_BYTES = 24576,
    SCRIPT_AFTER_MAX = 4,
    SCRIPT_HINT_MAX = 512,
};

// No pointers in it, so that it may be handed to another process.
typedef struct script_completion {
    uint32_t start; // candidates take the place of the bytes from here to the cursor
    uint32_t count; // of candidates, in the order of their bytes, each once
    bool more;      // there were more than there is room for
    struct {
        uint32_t at;                  // of its text in `text`
        char after[SCRIPT_AFTER_MAX]; // what a person types next where it is the only one: "\"", " = "; or ""
    } items[SCRIPT_CANDIDATES_MAX];
    uint32_t used;
    char text[SCRIPT_CANDIDATES_BYTES];
    char hint
        [SCRIPT_HINT_MAX]; // one line: the call that the cursor stands in, or the knob whose value is next; ""
} script_completion;

// The chunk is text[0, length), with earlier lines in it where it has several; the cursor is at most `length`. `L` is a state of
// script_open in which nothing runs. Presets and files are looked for where the script may read them.
void script_complete(struct lua_State *L, const char *text, size_t length, size_t cursor,
                     script_completion *out);

static inline const char *script_candidate(const script_completion *c, uint32_t index)
{
    return c->text + c->items[index].at;
}

// Bytes that all candidates begin with.
size_t script_common_bytes(const script_completion *c);

#endif
