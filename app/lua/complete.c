// SPDX-License-Identifier: Apache-2.0
// Where a word stands says what may stand there: complete_scan.c tells where, complete_look.c what names mean, and
// complete_offer.c what there is.
#include "app/lua/complete.h"

#include <stdio.h>
#include <string.h>

#include "app/lua/complete_look.h"
#include "app/lua/complete_offer.h"
#include "app/lua/complete_place.h"
#include "app/lua/complete_scan.h"
#include "app/lua/events.h"
#include "app/lua/script.h"

typedef struct job {
    lua_State *L;
    scan at;
    offering offers;
    bool assigned; // an equals sign is the next behind the cursor
} job;

// ---- names ------------------------------------------------------------------------------------------------------

static bool is_identifier(const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t k = 0;
    while (k < length && name[k] != '\0' && strchr(letters, name[k]) != NULL) {
        k++;
    }
    return length > 0 && k == length && strchr(letters + sizeof letters - 11, name[0]) == NULL;
}

static void offer_key(lua_State *L, const char *name, size_t length, void *context)
{
    offering *o = context;
    (void)L;
    if (o->in_text && strpbrk(name, "\"'\\") == NULL) {
        const char after[] = {o->close, o->close != '\0' ? ']' : '\0', '\0'};
        offer(o, name, length, after);
    } else if (!o->in_text && is_identifier(name, length) && !scan_is_keyword(name)) {
        offer(o, name, length, "");
    }
}

static void offer_row_names(offering *o, bool functions, const char *after)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    for (size_t k = 0; k < count; k++) {
        if (!functions || rows[k].arguments != NULL) {
            offer(o, rows[k].name, strlen(rows[k].name), after);
        }
    }
}

// What stands behind `path` and a dot, a colon or a bracket.
static void offer_members(job *j, const scan_path *path, bool methods)
{
    offering *o = &j->offers;
    const char after[] = {o->in_text ? o->close : '\0', o->in_text && o->close != '\0' ? ']' : '\0', '\0'};
    const look_thing thing = look_find(j->L, path);
    if (thing.kind == LOOK_VALUE) {
        look_each(j->L, methods, offer_key, o);
    } else if (methods) { // none of ours has any
    } else if (thing.kind == LOOK_HR) {
        offer_row_names(o, false, after);
    } else if (thing.kind == LOOK_KNOBS) {
        offer_groups(o, after);
        if (o->in_text) {
            offer_knobs(o, "", after);
        }
    } else if (thing.kind == LOOK_GROUP) {
        offer_knobs(o, thing.group, after);
    } else if (thing.kind == LOOK_BYTES) {
        offer(o, "bytes", sizeof "bytes" - 1, after);
    }
    lua_pop(j->L, 1);
}

static void offer_expression(job *j)
{
    if (j->offers.in_text) {
        return;
    }
    (void)look_globals(j->L);
    look_each(j->L, false, offer_key, &j->offers);
    lua_pop(j->L, 1);
    for (size_t k = 0; j->offers.word.length > 0 && scan_keyword(k) != NULL; k++) {
        offer_bare(&j->offers, scan_keyword(k), "");
    }
}

// ---- texts ------------------------------------------------------------------------------------------------------

static void offer_events(offering *o)
{
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        offer_text(o, script_event_rows[k].name);
    }
}

// By what the rows call it.
static void offer_argument(job *j, const script_api_row *row, unsigned index)
{
    offering *o = &j->offers;
    const scan_span argument = place_argument(row, index);
    if (place_has(argument, "name_or_path")) {
        offer_presets(o, NULL);
        offer_files(o, j->L, ".yaml");
    } else if (place_has(argument, "trace")) {
        offer_scenarios(o);
        offer_files(o, j->L, NULL);
    } else if (place_has(argument, "path")) {
        offer_files(o, j->L, NULL);
    } else if (place_has(argument, "event")) {
        offer_events(o);
    } else if (strcmp(row->name, "has") == 0 && o->in_text) {
        const char after[2] = {o->close, '\0'};
        offer_row_names(o, false, after);
        offer_knobs(o, "", after);
    }
}

static void offer_option_values(job *j, scan_span option)
{
    offering *o = &j->offers;
    const char none[] = "";
    if (scan_is(option, "allocators")) {
        offer_values(o, &hr_knob_rows(NULL)[HR_KNOB_ALLOCATOR_KIND]);
    } else if (scan_is(option, "keep") && o->in_text) { // a list with commas
        size_t begin = o->word.length;
        while (begin > 0 && o->word.at[begin - 1] != ',') {
            begin--;
        }
        o->word = (scan_span){o->word.at + begin, o->word.length - begin};
        o->out->start += (uint32_t)begin;
        offer_groups(o, none);
        offer_knobs(o, "", none);
    }
}

static void offer_knob_value(job *j, const hr_knob_row *knob)
{
    const hr_knob_id id = knob->id;
    offer_values(&j->offers, knob);
    if (id == HR_KNOB_PIPELINE_PATH || id == HR_KNOB_TRAIN_RESUME || id == HR_KNOB_TRAIN_SAVE ||
        id == HR_KNOB_PIPELINE_CACHE_PATH || id == HR_KNOB_COMPRESS_DISTILL_WEIGHTS) {
        offer_files(&j->offers, j->L, NULL);
    }
}

// ---- the cursor's own place -------------------------------------------------------------------------------------

// The names in "{steps = N, knob = value, …}" that stand for themselves.
static void offer_named(offering *o, scan_span table, const char *after)
{
    for (size_t k = 0; k + 3 < table.length; k++) {
        size_t begin = k;
        if (memcmp(table.at + k, " = ", 3) != 0) {
            continue;
        }
        while (begin > 0 && is_identifier(table.at + begin - 1, 1)) {
            begin--;
        }
        const scan_span name = {table.at + begin, k - begin};
        if (!scan_is(name, "knob")) {
            offer(o, name.at, name.length, after);
        }
    }
}

// Keys of a table of options or of knobs; whether it is one.
static bool offer_keys(job *j, const place *p)
{
    offering *o = &j->offers;
    const char *after = o->in_text ? (o->close != '\0' ? (o->close == '"' ? "\"]" : "']") : "") : " = ";
    after = j->assigned ? "" : after;
    if (p->kind == PLACE_GROUP) {
        offer_knobs(o, p->group, after);
        return true;
    }
    if (p->kind != PLACE_OPTIONS) {
        return false;
    }
    const scan_span table = place_table(p->row, p->argument);
    for (const lua_script_field *f = p->row->options; f != NULL && f->name != NULL; f++) {
        if (place_takes_option(p->row, table, f->name)) {
            offer(o, f->name, strlen(f->name), after);
        }
    }
    offer_named(o, table, after);
    if (place_takes_knobs(table)) {
        offer_groups(o, after);
        if (o->in_text) {
            offer_knobs(o, "", after);
        }
    }
    return true;
}

static void offer_place(job *j, const place *p)
{
    if (p->kind == PLACE_KNOB) {
        offer_knob_value(j, p->knob);
    } else if (p->kind == PLACE_VALUES) {
        offer_option_values(j, p->option);
    }
}

// Behind a bracket, a comma or an equals sign.
static void offer_value(job *j)
{
    const scan_frame *f = &j->at.frames[j->at.depth];
    place p = place_at(j->L, &j->at, j->at.depth);
    if (j->at.before == SCAN_EQUALS && j->at.left.count > 0) {
        const look_thing thing = place_find(j->L, &j->at.left);
        if (thing.kind == LOOK_KNOB) {
            offer_knob_value(j, thing.knob);
        }
    } else if (j->at.before == SCAN_EQUALS) {
        p = place_of_key(&p, f->key);
        offer_place(j, &p);
    } else if (p.kind == PLACE_CALL) {
        offer_argument(j, p.row, f->argument);
    } else if (f->open == '{' && !j->offers.in_text && offer_keys(j, &p)) {
        return;
    } else if (p.kind == PLACE_OPTIONS && p.row->options == NULL &&
               j->offers.in_text) { // hr.apply{"key=value"}
        offer_knobs(&j->offers, "", "=");
    } else {
        offer_place(j, &p);
    }
    if (j->offers.out->count == 0) {
        offer_expression(j);
    }
}

// In the brackets behind a table, or of a key of one that is written.
static void offer_index(job *j)
{
    const scan_frame *f = &j->at.frames[j->at.depth];
    if (f->of.count > 0 && j->offers.in_text) {
        offer_members(j, &f->of, false);
    } else if (f[-1].open == '{' && f->of.count == 0 && j->offers.in_text) {
        const place p = place_at(j->L, &j->at, j->at.depth - 1);
        (void)offer_keys(j, &p);
    } else {
        offer_expression(j);
    }
}

// hr.preset "…"
static void offer_bare_argument(job *j)
{
    static const scan_span require = {"require", sizeof "require" - 1};
    const look_thing thing = place_find(j->L, &j->at.path);
    if (thing.kind == LOOK_ROW) {
        offer_argument(j, thing.row, 0);
    } else if (j->at.path.count == 1 && scan_is(j->at.path.names[0], require.at)) {
        offer_modules(&j->offers, j->L);
    }
}

static bool calls_require(const scan_frame *f)
{
    return f->open == '(' && f->argument == 0 && f->of.count == 1 && scan_is(f->of.names[0], "require");
}

static void offer_here(job *j)
{
    const scan *at = &j->at;
    const scan_frame *f = &at->frames[at->depth];
    const bool of_value = at->before == SCAN_OPEN || at->before == SCAN_COMMA || at->before == SCAN_EQUALS;
    if (at->quote == '\0' && (at->before == SCAN_DOT || at->before == SCAN_COLON)) {
        offer_members(j, &at->path, at->before == SCAN_COLON);
    } else if (at->quote != '\0' && at->before == SCAN_VALUE) {
        offer_bare_argument(j);
    } else if (f->open == '[' && at->before == SCAN_OPEN) {
        offer_index(j);
    } else if (at->quote != '\0' && at->before == SCAN_OPEN && calls_require(f)) {
        offer_modules(&j->offers, j->L);
    } else if (of_value) {
        offer_value(j);
    } else {
        offer_expression(j);
    }
}

// ---- hints ------------------------------------------------------------------------------------------------------

static void hint_row(const script_api_row *row, char hint[SCRIPT_HINT_MAX])
{
    const bool table_alone = row->arguments[0] == '{' && strstr(row->arguments, "},") == NULL;
    (void)snprintf(hint, SCRIPT_HINT_MAX, "hr.%s%s%s%s%s%s", row->name, table_alone ? "" : "(",
                   row->arguments, table_alone ? "" : ")", row->result[0] != '\0' ? " → " : "", row->result);
}

static void hint_knob(const hr_knob_row *knob, char hint[SCRIPT_HINT_MAX])
{
    const bool set = knob->preset_default[0] != '\0';
    (void)snprintf(hint, SCRIPT_HINT_MAX, "%s: %s%s%s%s", knob->key, knob->line, set ? " (" : "",
                   set ? knob->preset_default : "", set ? " without a preset)" : "");
}

// Of what a path names: a call; whether there is one.
static bool hint_call(job *j, const scan_path *path)
{
    char *hint = j->offers.out->hint;
    const look_thing thing = look_find(j->L, path);
    bool said = thing.kind == LOOK_ROW;
    if (said) {
        hint_row(thing.row, hint);
    } else if (thing.kind == LOOK_VALUE) {
        said = look_signature(j->L, path->names[path->count - 1], hint, SCRIPT_HINT_MAX);
    }
    lua_pop(j->L, 1);
    return said;
}

// The knob whose value stands at the cursor.
static const hr_knob_row *knob_here(job *j)
{
    const scan_frame *f = &j->at.frames[j->at.depth];
    place p = place_at(j->L, &j->at, j->at.depth);
    if (j->at.before != SCAN_EQUALS) {
        return p.kind == PLACE_KNOB ? p.knob : NULL;
    }
    if (j->at.left.count > 0) {
        return place_find(j->L, &j->at.left).knob;
    }
    p = place_of_key(&p, f->key);
    return p.kind == PLACE_KNOB ? p.knob : NULL;
}

static void find_hint(job *j)
{
    const hr_knob_row *knob = knob_here(j);
    if (knob != NULL) {
        hint_knob(knob, j->offers.out->hint);
        return;
    }
    scan_path whole = j->at.path;
    if (j->at.quote == '\0' && j->at.before != SCAN_VALUE && j->at.word.length > 0 &&
        whole.count + 1 < SCAN_NAMES_MAX) {
        whole.names[whole.count++] = j->at.word;
        if (hint_call(j, &whole)) {
            return;
        }
    }
    if (j->at.quote != '\0' && j->at.before == SCAN_VALUE && hint_call(j, &j->at.path)) {
        return;
    }
    for (unsigned k = j->at.depth; k > 0; k--) {
        if (j->at.frames[k].open != '[' && hint_call(j, &j->at.frames[k].of)) {
            return;
        }
    }
}

// ---- all of it --------------------------------------------------------------------------------------------------

static bool next_is_equals(const char *text, size_t length)
{
    size_t k = 0;
    while (k < length && text[k] == ' ') {
        k++;
    }
    return k < length && text[k] == '=';
}

void script_complete(lua_State *L, const char *text, size_t length, size_t cursor, script_completion *out)
{
    const int top = lua_gettop(L);
    const char behind = cursor < length ? text[cursor] : '\0';
    job j = {.L = L, .assigned = next_is_equals(text + cursor, length - cursor)};
    out->start = (uint32_t)cursor;
    out->count = out->used = 0;
    out->more = false;
    out->hint[0] = '\0';
    scan_read(text, cursor, &j.at);
    if (j.at.nowhere || !lua_checkstack(L, LOOK_STACK)) {
        return;
    }
    out->start = (uint32_t)(cursor - j.at.word.length);
    j.offers = (offering){.out = out,
                          .word = j.at.word,
                          .close = behind == j.at.quote ? '\0' : j.at.quote,
                          .in_text = j.at.quote != '\0'};
    find_hint(&j);
    offer_here(&j);
    offer_sort(&j.offers);
    lua_settop(L, top);
}
