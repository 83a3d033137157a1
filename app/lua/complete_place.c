// SPDX-License-Identifier: Apache-2.0
#include "app/lua/complete_place.h"

#include <stdio.h>
#include <string.h>

look_thing place_find(lua_State *L, const scan_path *path)
{
    const look_thing thing = look_find(L, path);
    lua_pop(L, 1);
    return thing;
}

// ---- what a row takes -------------------------------------------------------------------------------------------

// Of "trace, {allocators = list of names, …}" the argument `index`, as a part of the text.
scan_span place_argument(const script_api_row *row, unsigned index)
{
    int depth = 0;
    const char *begin = row->arguments, *p = begin;
    for (; p != NULL && *p != '\0'; p++) {
        depth += (*p == '{') - (*p == '}');
        if (*p != ',' || depth > 0) {
            continue;
        }
        if (index-- == 0) {
            break;
        }
        begin = p + 1;
    }
    return p != NULL && (index == 0 || *p != '\0') ? (scan_span){begin, (size_t)(p - begin)}
                                                   : (scan_span){NULL, 0};
}

bool place_has(scan_span text, const char *part)
{
    const size_t length = strlen(part);
    for (size_t k = 0; text.at != NULL && k + length <= text.length; k++) {
        if (memcmp(text.at + k, part, length) == 0) {
            return true;
        }
    }
    return false;
}

bool place_takes_knobs(scan_span argument)
{
    return place_has(argument, "knob = ");
}

// The table that a row takes as argument `index`; where it takes none there, the last one that it takes.
scan_span place_table(const script_api_row *row, unsigned index)
{
    scan_span found = place_argument(row, index), next = {NULL, 0};
    for (unsigned k = 0; !place_has(found, "{") && (next = place_argument(row, k)).at != NULL; k++) {
        if (place_has(next, "{")) {
            found = next;
        }
    }
    return found;
}

// Where two tables are taken, each has options of its own.
bool place_takes_option(const script_api_row *row, scan_span table, const char *name)
{
    const char *first = strchr(row->arguments, '{');
    const bool two = first != NULL && strchr(first + 1, '{') != NULL;
    return !two || place_has(table, name);
}

static bool is_option(const script_api_row *row, scan_span name)
{
    const lua_script_field *f = row->options;
    while (f != NULL && f->name != NULL && !scan_is(name, f->name)) {
        f++;
    }
    return f != NULL && f->name != NULL;
}

// ---- where the cursor is ----------------------------------------------------------------------------------------

static place of_call(lua_State *L, const scan_frame *f)
{
    const look_thing thing = place_find(L, &f->of);
    return (place){.kind = thing.kind == LOOK_ROW ? PLACE_CALL : PLACE_PLAIN, .row = thing.row};
}

static place of_knob(const char *group, scan_span name)
{
    char key[2 * LOOK_GROUP_MAX + 2];
    (void)snprintf(key, sizeof key, "%s%s%.*s", group, group[0] != '\0' ? "." : "",
                   (int)(name.length < LOOK_GROUP_MAX ? name.length : LOOK_GROUP_MAX), name.at);
    const hr_knob_row *knob = hr_knob_find(key, NULL);
    return (place){.kind = knob != NULL ? PLACE_KNOB : PLACE_PLAIN, .knob = knob};
}

static place of_group(scan_span name)
{
    place p = {.kind = PLACE_GROUP};
    (void)snprintf(p.group, sizeof p.group, "%.*s", (int)name.length, name.at);
    return p;
}

// What stands under a key of a table.
place place_of_key(const place *table, scan_span key)
{
    if (key.at == NULL || (table->kind != PLACE_OPTIONS && table->kind != PLACE_GROUP)) {
        return (place){.kind = PLACE_PLAIN};
    }
    if (table->kind == PLACE_GROUP) {
        return of_knob(table->group, key);
    }
    if (is_option(table->row, key)) {
        return (place){.kind = PLACE_VALUES, .row = table->row, .option = key};
    }
    if (!place_takes_knobs(place_table(table->row, table->argument))) {
        return (place){.kind = PLACE_PLAIN};
    }
    return look_is_group(key) ? of_group(key) : of_knob("", key);
}

// A table that is assigned.
static place of_left(lua_State *L, const scan_path *left)
{
    const look_thing thing = place_find(L, left);
    place p = {.kind = thing.kind == LOOK_GROUP ? PLACE_GROUP : PLACE_PLAIN};
    (void)snprintf(p.group, sizeof p.group, "%s", thing.group);
    return p;
}

static place of_table(lua_State *L, const scan_frame *f, const scan_frame *outer, const place *around)
{
    if (f->left.count > 0) {
        return of_left(L, &f->left);
    }
    if (f->of.count == 0 && around->kind != PLACE_CALL) {
        return outer->open == '{' ? place_of_key(around, outer->key) : (place){.kind = PLACE_PLAIN};
    }
    place p = f->of.count > 0 ? of_call(L, f) : *around;
    p.argument = f->of.count > 0 ? 0 : outer->argument;
    p.kind = p.kind == PLACE_CALL ? PLACE_OPTIONS : PLACE_PLAIN;
    return p;
}

// Of the bracket at `depth`.
place place_at(lua_State *L, const scan *at, unsigned depth)
{
    place p = {.kind = PLACE_PLAIN};
    for (unsigned k = 1; k <= depth; k++) {
        const scan_frame *f = &at->frames[k];
        p = f->open == '{'   ? of_table(L, f, f - 1, &p)
            : f->open == '(' ? of_call(L, f)
                             : (place){.kind = PLACE_PLAIN};
    }
    return p;
}
