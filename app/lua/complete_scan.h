// SPDX-License-Identifier: Apache-2.0
// What stands before a cursor in a chunk of Lua that need not be whole: the word under it, the names that lead to that
// word, and the brackets it stands in. Text alone; nothing is looked up.
#ifndef APP_LUA_COMPLETE_SCAN_H
#define APP_LUA_COMPLETE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum { SCAN_NAMES_MAX = 8, SCAN_FRAMES_MAX = 32 };

// A part of the chunk.
typedef struct scan_span {
    const char *at; // NULL: there is none
    size_t length;
} scan_span;

// hr.knobs["batch"].size as its four names.
typedef struct scan_path {
    scan_span names[SCAN_NAMES_MAX];
    unsigned count; // 0: nothing, or what cannot be named, such as the value of a call
} scan_path;

// The last that stands before the word.
typedef enum scan_before {
    SCAN_OTHER,
    SCAN_VALUE, // a name or a value, so that what follows calls or indexes it
    SCAN_DOT,
    SCAN_COLON,
    SCAN_OPEN, // a bracket
    SCAN_COMMA,
    SCAN_EQUALS, // also == and ~=
} scan_before;

// A bracket that is open at the cursor.
typedef struct scan_frame {
    char open;         // '(', '{', '['; '\0' for the whole chunk, the first of all
    scan_path of;      // what is called or indexed by it
    scan_path left;    // of '{' behind '=': what it becomes
    unsigned argument; // commas in it so far
    scan_span key;     // of '{': of the value that is being written
} scan_frame;

typedef struct scan {
    scan_frame frames[SCAN_FRAMES_MAX];
    unsigned depth; // of the innermost one
    scan_before before;
    scan_path path;  // behind SCAN_DOT, SCAN_COLON and SCAN_VALUE: what it follows
    scan_path left;  // behind SCAN_EQUALS: what is assigned or compared
    scan_span word;  // up to the cursor; may be empty
    char quote;      // it stands in a text that this began; '\0': it does not
    bool nowhere;    // in a comment, a number, a long text, or too deep: there is nothing to say
    bool head;       // between `function` and its parameters
    unsigned beyond; // brackets open that found no room
} scan;

// Reads text[0, cursor).
void scan_read(const char *text, size_t cursor, scan *out);

// Whether the span is exactly `word`, or begins it.
bool scan_is(scan_span span, const char *word);
bool scan_begins(scan_span span, const char *word);
bool scan_is_keyword(const char *word);
const char *scan_keyword(size_t index); // NULL behind the last

#endif
