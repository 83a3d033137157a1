// SPDX-License-Identifier: Apache-2.0
// Where a word stands says what may stand there: complete_scan.c tells where, complete_look.c what names mean, and
// complete_offer.c what there is.
#include "app/lua/complete.h"

#include <stdio.h>
#include <string.h>

#include "app/lua/complete_look.h"
#include "app/lua/complete_offer.h"
#include "app/lua/complete_scan.h"
#include "app/lua/events.h"
#include "app/lua/script.h"

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

typedef struct job {
    lua_State *L;
    scan at;
    offering offers;
    bool assigned; // an equals sign is the next behind the cursor
} job;

static look_thing find(job *j, const scan_path *path)
{
    const look_thing thing = look_find(j->L, path);
    lua_pop(j->L, 1);
    return thing;
}

// ---- what a row takes -------------------------------------------------------------------------------------------

// Of "trace, {allocators = list of names, …}" the argument `index`, as a part of the text.
static scan_span argument_of(const script_api_row *row, unsigned index)
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

static bool has(scan_span text, const char *part)
{
    const size_t length = strlen(part);
    for (size_t k = 0; text.at != NULL && k + length <= text.length; k++) {
        if (memcmp(text.at + k, part, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool takes_knobs(scan_span argument)
{
    return has(argument, "knob = ");
}

// The table that a row takes as argument `index`; where it takes none there, the last one that it takes.
static scan_span table_of(const script_api_row *row, unsigned index)
{
    scan_span found = argument_of(row, index), next = {NULL, 0};
    for (unsigned k = 0; !has(found, "{") && (next = argument_of(row, k)).at != NULL; k++) {
        if (has(next, "{")) {
            found = next;
        }
    }
    return found;
}

// Where two tables are taken, each has options of its own.
static bool is_option_of(const script_api_row *row, scan_span table, const char *name)
{
    const char *first = strchr(row->arguments, '{');
    const bool two = first != NULL && strchr(first + 1, '{') != NULL;
    return !two || has(table, name);
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

static place of_call(job *j, const scan_frame *f)
{
    const look_thing thing = find(j, &f->of);
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
static place of_key(const place *table, scan_span key)
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
    if (!takes_knobs(table_of(table->row, table->argument))) {
        return (place){.kind = PLACE_PLAIN};
    }
    return look_is_group(key) ? of_group(key) : of_knob("", key);
}

// A table that is assigned.
static place of_left(job *j, const scan_path *left)
{
    const look_thing thing = find(j, left);
    place p = {.kind = thing.kind == LOOK_GROUP ? PLACE_GROUP : PLACE_PLAIN};
    (void)snprintf(p.group, sizeof p.group, "%s", thing.group);
    return p;
}

static place of_table(job *j, const scan_frame *f, const scan_frame *outer, const place *around)
{
    if (f->left.count > 0) {
        return of_left(j, &f->left);
    }
    if (f->of.count == 0 && around->kind != PLACE_CALL) {
        return outer->open == '{' ? of_key(around, outer->key) : (place){.kind = PLACE_PLAIN};
    }
    place p = f->of.count > 0 ? of_call(j, f) : *around;
    p.argument = f->of.count > 0 ? 0 : outer->argument;
    p.kind = p.kind == PLACE_CALL ? PLACE_OPTIONS : PLACE_PLAIN;
    return p;
}

// Of the bracket at `depth`.
static place place_at(job *j, unsigned depth)
{
    place p = {.kind = PLACE_PLAIN};
    for (unsigned k = 1; k <= depth; k++) {
        const scan_frame *f = &j->at.frames[k];
        p = f->open == '{'   ? of_table(j, f, f - 1, &p)
            : f->open == '(' ? of_call(j, f)
                             : (place){.kind = PLACE_PLAIN};
    }
    return p;
}

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
    const scan_span argument = argument_of(row, index);
    if (has(argument, "name_or_path")) {
        offer_presets(o, NULL);
        offer_files(o, j->L, ".yaml");
    } else if (has(argument, "trace")) {
        offer_scenarios(o);
        offer_files(o, j->L, NULL);
    } else if (has(argument, "path")) {
        offer_files(o, j->L, NULL);
    } else if (has(argument, "event")) {
        offer_events(o);
    } else if (scan_is(argument, "name") && o->in_text) {
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
    const scan_span table = table_of(p->row, p->argument);
    for (const lua_script_field *f = p->row->options; f != NULL && f->name != NULL; f++) {
        if (is_option_of(p->row, table, f->name)) {
            offer(o, f->name, strlen(f->name), after);
        }
    }
    offer_named(o, table, after);
    if (takes_knobs(table)) {
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
    place p = place_at(j, j->at.depth);
    if (j->at.before == SCAN_EQUALS && j->at.left.count > 0) {
        const look_thing thing = find(j, &j->at.left);
        if (thing.kind == LOOK_KNOB) {
            offer_knob_value(j, thing.knob);
        }
    } else if (j->at.before == SCAN_EQUALS) {
        p = of_key(&p, f->key);
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
        const place p = place_at(j, j->at.depth - 1);
        (void)offer_keys(j, &p);
    } else {
        offer_expression(j);
    }
}

// hr.preset "…"
static void offer_bare_argument(job *j)
{
    static const scan_span require = {"require", sizeof "require" - 1};
    const look_thing thing = find(j, &j->at.path);
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
    place p = place_at(j, j->at.depth);
    if (j->at.before != SCAN_EQUALS) {
        return p.kind == PLACE_KNOB ? p.knob : NULL;
    }
    if (j->at.left.count > 0) {
        return find(j, &j->at.left).knob;
    }
    p = of_key(&p, f->key);
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
