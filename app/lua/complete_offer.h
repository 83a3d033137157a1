// SPDX-License-Identifier: Apache-2.0
// Candidates as they are found, for complete.c: those that the word under the cursor begins, sorted at the end.
#ifndef APP_LUA_COMPLETE_OFFER_H
#define APP_LUA_COMPLETE_OFFER_H

#include <lua.h>

#include "headroom/knobs.h"

#include "app/lua/complete.h"
#include "app/lua/complete_scan.h"
#include "app/lua/lua_script.h"

typedef struct offering {
    script_completion *out;
    scan_span word;
    char
        close; // a text that the candidate ends: its quote; '\0' elsewhere, and where the quote stands behind the cursor
    bool in_text;
} offering;

void offer(offering *o, const char *text, size_t length, const char *after);
// A whole text: bare where the cursor is in one, "quoted" elsewhere.
void offer_text(offering *o, const char *text);
void offer_bare(offering *o, const char *name, const char *after); // where names are names, not texts
void offer_sort(offering *o);

// Keys of all knobs, or of a group without it; as names, or in ["…"] as texts.
void offer_knobs(offering *o, const char *group, const char *after);
void offer_groups(offering *o, const char *after);
void offer_fields(offering *o, const lua_script_field *fields, const char *after);
// What the knob can be.
void offer_values(offering *o, const hr_knob_row *knob);
void offer_presets(offering *o, const char *folder);
void offer_scenarios(offering *o);

// complete_files.c: below the recipe's folder and ./headroom-out, those whose names end so; NULL: all.
void offer_files(offering *o, lua_State *L, const char *ending);
void offer_modules(offering *o, lua_State *L);

#endif
