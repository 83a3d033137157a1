// SPDX-License-Identifier: Apache-2.0
// Lua patterns whose work is counted. Lua's own matcher backtracks without end on some patterns, and no hook can
// interrupt it; this one looks at the recipe's clock every PATTERN_WORK units of work.
//
// The language of patterns, its limits and its errors are those of lstrlib.c in Lua 5.4 (Lua.org, PUC-Rio), which
// the tests compare it with.
#ifndef APP_LUA_PATTERN_H
#define APP_LUA_PATTERN_H

#include <lua.h>
#include <stddef.h>

enum { PATTERN_CAPTURES_MAX = 32, PATTERN_WORK = 100000 };

// Lengths that are no lengths.
#define PATTERN_OPEN     ((ptrdiff_t)-1) // a capture whose ')' has not come yet
#define PATTERN_POSITION ((ptrdiff_t)-2) // "()": the place itself

typedef struct pattern_capture {
    const char *at;
    ptrdiff_t length;
} pattern_capture;

typedef struct pattern {
    lua_State *L;            // raises the errors of malformed patterns, and the stop
    const char *begin, *end; // of the subject
    const char *pattern_end;
    unsigned work_left; // until the next look at the clock
    int depth_left;
    int captures;
    pattern_capture capture[PATTERN_CAPTURES_MAX];
} pattern;

// Both texts are borrowed as long as the pattern is used, and end in a NUL behind their length.
void pattern_init(pattern *m, lua_State *L, const char *subject, size_t subject_length,
                  const char *pattern_end);
// The end of the longest match of the pattern at `p` that begins at `s`; NULL when there is none. Forgets earlier
// captures.
const char *pattern_match(pattern *m, const char *s, const char *p);
// Pushes capture k (from 0), or the whole match [s, e) when the pattern has none and k is 0.
void pattern_push_capture(pattern *m, int k, const char *s, const char *e);
// Pushes all captures, or the whole match when there are none and s is not NULL. Returns how many.
int pattern_push_captures(pattern *m, const char *s, const char *e);

#endif
