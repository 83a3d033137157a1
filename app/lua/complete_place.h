// SPDX-License-Identifier: Apache-2.0
// What the bracket is for in which a word stands: arguments of a row of hr, its options, knobs, values of one.
#ifndef APP_LUA_COMPLETE_PLACE_H
#define APP_LUA_COMPLETE_PLACE_H

#include "app/lua/complete_look.h"
#include "app/lua/complete_scan.h"

// What a bracket is for.
typedef enum place_kind {
    PLACE_PLAIN,
    PLACE_CALL,    // arguments of `row`
    PLACE_OPTIONS, // a table that `row` takes
    PLACE_GROUP,   // a table of knobs of `group`
    PLACE_KNOB,    // a table of values of `knob`
    PLACE_VALUES,  // a table that an option of `row` is
} place_kind;

typedef struct place {
    place_kind kind;
    const script_api_row *row;
    unsigned argument; // of the row that the table is
    char group[LOOK_GROUP_MAX];
    const hr_knob_row *knob;
    scan_span option;
} place;

// What a path means, with nothing left on the stack.
look_thing place_find(lua_State *L, const scan_path *path);
// Of the bracket at `depth` of what was scanned.
place place_at(lua_State *L, const scan *at, unsigned depth);
// What stands under a key of a table.
place place_of_key(const place *table, scan_span key);

// Of "trace, {allocators = list of names, …}" the argument `index`, as a part of the text.
scan_span place_argument(const script_api_row *row, unsigned index);
// The table that a row takes as argument `index`; where it takes none there, the last one that it takes.
scan_span place_table(const script_api_row *row, unsigned index);
bool place_takes_knobs(scan_span argument);
// Where two tables are taken, each has options of its own.
bool place_takes_option(const script_api_row *row, scan_span table, const char *name);
bool place_has(scan_span text, const char *part);

#endif
