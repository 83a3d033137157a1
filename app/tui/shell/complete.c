// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/complete.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/knob_export.h"
#include "headroom/terms.h"
#include "headroom/units.h"

#include "app/tui/shell/act.h"
#include "app/tui/shell/command.h"
#include "app/tui/shell/panes.h"

enum { NAMES_READ_MAX = 4096 }; // of a folder: a key is answered at once

typedef struct looking {
    const app *app;
    completion *c;
    char word[PROMPT_MAX]; // what is typed of it
    bool within;           // what has it inside, instead of what begins with it
} looking;

static candidate *offer(looking *l, const char *text, const char *note, bool goes_on)
{
    size_t length = strlen(text);
    bool begins = strncmp(text, l->word, strlen(l->word)) == 0;
    bool takes = l->within ? !begins && strcasestr(text, l->word) != NULL : begins;
    if (!takes || length >= CANDIDATE_TEXT_MAX || l->c->count == CANDIDATES_MAX) {
        return NULL;
    }
    candidate *new = &l->c->candidate[l->c->count++];
    memcpy(new->text, text, length + 1);
    snprintf(new->note, sizeof new->note, "%s", note);
    new->goes_on = goes_on;
    return new;
}

// ---- words ----------------------------------------------------------------------------------------------------

static void offer_commands(looking *l)
{
    size_t count, requests;
    const command_row *rows = command_rows(&count);
    const request_row *keys = request_rows(&requests);
    char note[CANDIDATE_NOTE_MAX];
    for (size_t i = 0; i < count; i++) {
        snprintf(note, sizeof note, "%s%s%s", rows[i].arguments, rows[i].arguments[0] == '\0' ? "" : "  ",
                 rows[i].line);
        offer(l, rows[i].name, note, rows[i].arguments[0] != '\0');
    }
    for (size_t i = 0; i < requests; i++) {
        if (command_find(keys[i].name, strlen(keys[i].name)) == NULL && i != REQUEST_COMMAND) {
            snprintf(note, sizeof note, "%s  %s", keys[i].shown, keys[i].line);
            offer(l, keys[i].name, note, false);
        }
    }
}

static void offer_knobs(looking *l)
{
    char now[HR_KNOB_TEXT_MAX], note[CANDIDATE_NOTE_MAX];
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[id];
        hr_knob_format(&l->app->feed.knobs, (hr_knob_id)id, now);
        snprintf(note, sizeof note, "%.40s%s%.80s", now, now[0] == '\0' ? "" : "  ", row->line);
        offer(l, row->key, note, true);
    }
}

static bool is_offered(const looking *l, const char *text)
{
    for (size_t i = 0; i < l->c->count; i++) {
        if (strcmp(l->c->candidate[i].text, text) == 0) {
            return true;
        }
    }
    return false;
}

// What is known of a value: that it is the present one, the default, what its plan says.
static void offer_value(looking *l, const hr_knob_row *row, const char *text)
{
    char now[HR_KNOB_TEXT_MAX], note[CANDIDATE_NOTE_MAX] = "", bytes[HR_BYTES_TEXT_MAX];
    if (is_offered(l, text) || text[0] == '\0') {
        return;
    }
    const char *title = knob_edit_word_title(row->id, text);
    if (strcmp(hr_knob_format(&l->app->feed.knobs, row->id, now), text) == 0) {
        snprintf(note, sizeof note, "as it is");
    } else if (strcmp(row->preset_default, text) == 0) {
        snprintf(note, sizeof note, "the default");
    } else {
        snprintf(note, sizeof note, "%s", title);
    }
    for (int side = 0; side < WHATIF_SIDES; side++) {
        const whatif_cell *cell = feed_whatif(&l->app->feed, row->id, side);
        if (cell != NULL && !cell->refused && strcmp(cell->value, text) == 0) {
            const bool host = hr_whatif_lacks_host(&cell->plan);
            hr_bytes_human(host ? cell->plan.host_bytes : cell->plan.peak_in_use_bytes, bytes);
            snprintf(note, sizeof note, "%s %s%s", cell->plan.fits ? "planned peak" : "does not fit: needs",
                     bytes, host ? " of the host" : "");
        }
    }
    offer(l, text, note, false);
}

// Words that something is typed behind.
static const struct {
    hr_knob_id id;
    const char *word, *note;
} open_words[] = {
    {HR_KNOB_CHECKPOINT_STRATEGY, "every:", "every:K, segments of K layers each"},
    {HR_KNOB_CHECKPOINT_STRATEGY, "list:", "list:LAYER,LAYER, the layers whose results are kept"},
    {HR_KNOB_CHECKPOINT_STRATEGY, "budget:", "budget:SIZE, as little again as keeps the peak below SIZE"},
};

// All that a knob takes by name.
static void offer_named(looking *l, const hr_knob_row *row)
{
    const char *words[KNOB_EDIT_WORDS_MAX];
    const size_t count = knob_edit_words(row->id, words);
    for (size_t i = 0; row->type == HR_KNOB_CHOICE && row->choices[i] != NULL; i++) {
        offer_value(l, row, row->choices[i]);
    }
    for (size_t i = 0; i < count; i++) {
        offer_value(l, row, words[i]);
    }
    for (size_t i = 0; i < sizeof open_words / sizeof *open_words; i++) {
        if (open_words[i].id == row->id) {
            offer(l, open_words[i].word, open_words[i].note, false);
        }
    }
}

static void offer_values(looking *l, const hr_knob_row *row)
{
    char text[HR_KNOB_TEXT_MAX];
    offer_named(l, row);
    l->within = row->type == HR_KNOB_CHOICE || row->type == HR_KNOB_TEXT;
    if (l->within) {
        offer_named(l, row); // a card is known by its number
    }
    l->within = false;
    if (row->type == HR_KNOB_CHOICE) {
        return;
    }
    uint64_t unset_bytes = l->app->feed.live.limit_bytes;
    if (knob_edit_neighbour(&l->app->feed.knobs, row->id, KNOB_EDIT_LESS, unset_bytes, text)) {
        offer_value(l, row, text);
    }
    offer_value(l, row, hr_knob_format(&l->app->feed.knobs, row->id, text));
    if (knob_edit_neighbour(&l->app->feed.knobs, row->id, KNOB_EDIT_MORE, unset_bytes, text)) {
        offer_value(l, row, text);
    }
    offer_value(l, row, row->preset_default);
}

static void offer_fixes(looking *l)
{
    const hr_report_oom *oom = &l->app->feed.report.oom;
    size_t fixes = l->app->feed.has_report && oom->fix_count <= HR_FIXES_MAX ? oom->fix_count : 0;
    char number[24], note[CANDIDATE_NOTE_MAX], bytes[HR_BYTES_TEXT_MAX];
    for (size_t i = 0; i < fixes; i++) {
        snprintf(number, sizeof number, "%zu", i + 1);
        snprintf(note, sizeof note, "%.80s: peak %s", oom->fixes[i].knobs,
                 hr_bytes_human(oom->fixes[i].peak_bytes, bytes));
        offer(l, number, note, false);
    }
}

static void offer_columns(looking *l)
{
    const table_source *s = pane_ops_of(l->app->focus)->table;
    for (unsigned i = 0; s != NULL && i < s->column_count; i++) {
        offer(l, s->columns[i].term, table_column_line(&s->columns[i]), false);
    }
}

static void offer_presets(looking *l)
{
    for (size_t f = 0; f < PRESET_FOLDERS; f++) {
        hr_preset_entry *entries = NULL;
        size_t count = 0;
        if (hr_preset_list(preset_folders[f], &entries, &count, NULL) == HR_OK) {
            for (size_t i = 0; i < count; i++) {
                offer(l, entries[i].name, entries[i].title, false);
            }
            hr_preset_list_free(entries);
        }
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const candidate *)a)->text, ((const candidate *)b)->text);
}

// "folder/be" → every name in folder that begins with "be".
static void offer_files(looking *l)
{
    char folder[PROMPT_MAX], path[2 * PROMPT_MAX];
    const char *slash = strrchr(l->word, '/');
    size_t head = slash == NULL ? 0 : (size_t)(slash - l->word) + 1;
    snprintf(folder, sizeof folder, "%.*s", (int)head, l->word);
    DIR *names = opendir(head == 0 ? "." : folder);
    struct dirent *name;
    struct stat what;
    for (int i = 0; names != NULL && i < NAMES_READ_MAX && (name = readdir(names)) != NULL; i++) {
        bool plain =
            name->d_name[strcspn(name->d_name, "\n\033")] == '\0'; // the line is kept in a file of lines
        bool hidden = !plain || (name->d_name[0] == '.' && l->word[head] != '.');
        snprintf(path, sizeof path, "%s%s", folder, name->d_name);
        candidate *new = hidden ? NULL : offer(l, path, "", false);
        if (new != NULL && stat(path, &what) == 0 && S_ISDIR(what.st_mode) &&
            strlen(path) + 1 < CANDIDATE_TEXT_MAX) {
            strcat(new->text, "/");
            snprintf(new->note, sizeof new->note, "a folder");
        }
    }
    if (names != NULL) {
        closedir(names);
        qsort(l->c->candidate, l->c->count, sizeof *l->c->candidate, by_text);
    }
}

static void offer_recipe(const char *name, void *context)
{
    offer(context, name, "", true);
}

static void offer_recipes(looking *l)
{
    if (strchr(l->word, '/') == NULL && strchr(l->word, '.') == NULL) {
        (void)hr_recipe_list(offer_recipe, l);
        offer(l, "stop", "end the recipe and its callbacks", false);
    }
    if (l->c->count == 0) {
        offer_files(l);
    }
}

static void offer_forms(looking *l)
{
    for (size_t i = 0; hr_knob_export_form(i) != NULL; i++) {
        offer(l, hr_knob_export_form(i), "", false);
    }
}

static void offer_cards(looking *l)
{
    offer_named(l, &hr_knob_rows(NULL)[HR_KNOB_DEVICE_CARD]);
}

static void offer_themes(looking *l)
{
    size_t count;
    const char *const *themes = theme_names(&count);
    for (size_t i = 0; i < count; i++) {
        offer(l, themes[i], "", false);
    }
}

static void offer_glyphs(looking *l)
{
    for (int set = 0; set < GLYPHS_COUNT; set++) {
        offer(l, glyphs_name((glyph_set)set), "", false);
    }
}

static void offer_on_off(looking *l)
{
    offer(l, "on", "", false);
    offer(l, "off", "", false);
}

static void offer_words(looking *l, command_word word)
{
    static void (*const offers[])(looking * l) = {
        [WORD_NONE] = NULL,           [WORD_SETTING] = NULL, // begun elsewhere: it has two words
        [WORD_FIX] = offer_fixes,     [WORD_FILE] = offer_files,     [WORD_RECIPE] = offer_recipes,
        [WORD_FORM] = offer_forms,    [WORD_PRESET] = offer_presets, [WORD_CARD] = offer_cards,
        [WORD_THEME] = offer_themes,  [WORD_GLYPHS] = offer_glyphs,  [WORD_ON_OFF] = offer_on_off,
        [WORD_COLUMN] = offer_columns};
    if (offers[word] != NULL) {
        offers[word](l);
    }
}

// ---- the line -------------------------------------------------------------------------------------------------

static void begin_word(looking *l, const char *line, size_t start, size_t cursor)
{
    l->c->start = start;
    snprintf(l->word, sizeof l->word, "%.*s", (int)(cursor - start), line + start);
}

// "now 128; 1 to 65536 samples"
static void hint_value(completion *c, const feed *f, const hr_knob_row *row)
{
    char now[HR_KNOB_TEXT_MAX];
    int length = snprintf(c->hint, sizeof c->hint, "now %.40s",
                          hr_knob_is_set(&f->knobs, row->id) || row->preset_default[0] != '\0'
                              ? hr_knob_format(&f->knobs, row->id, now)
                              : "not set");
    if ((row->type == HR_KNOB_INT || row->type == HR_KNOB_REAL) && row->max < 1e15) {
        snprintf(c->hint + length, sizeof c->hint - (size_t)length, "; %g to %.10g%s%s", row->min, row->max,
                 row->unit[0] == '\0' ? "" : " ", row->unit);
    }
}

static void look_at_setting(looking *l, const char *line, size_t start, size_t cursor)
{
    char key[HR_KNOB_TEXT_MAX];
    size_t length = strcspn(line + start, " =");
    if (start + length >= cursor) {
        begin_word(l, line, start, cursor);
        offer_knobs(l);
        snprintf(l->c->hint, sizeof l->c->hint, "%s", l->word[0] == '\0' ? "KEY VALUE" : "");
        return;
    }
    snprintf(key, sizeof key, "%.*s", (int)length, line + start);
    const hr_knob_row *row = hr_knob_find(key, NULL);
    size_t value = start + length + strspn(line + start + length, " =");
    begin_word(l, line, value, cursor);
    if (row == NULL) {
        snprintf(l->c->hint, sizeof l->c->hint, "no knob is called so");
        return;
    }
    offer_values(l, row);
    if (l->word[0] == '\0') {
        hint_value(l->c, &l->app->feed, row);
    }
}

static void look_at_command(looking *l, const char *line, size_t start, size_t cursor)
{
    size_t length = strcspn(line + start, " ");
    const command_row *row = command_find(line + start, length);
    if (start + length >= cursor) {
        begin_word(l, line, start, cursor);
        offer_commands(l);
        if (row != NULL && row->arguments[0] != '\0') {
            snprintf(l->c->hint, sizeof l->c->hint, " %s", row->arguments);
        }
        return;
    }
    size_t argument = start + length + strspn(line + start + length, " ");
    if (row != NULL && row->word == WORD_SETTING) {
        look_at_setting(l, line, argument, cursor);
    } else if (row != NULL) {
        begin_word(l, line, argument, cursor);
        offer_words(l, row->word);
        snprintf(l->c->hint, sizeof l->c->hint, "%s", l->word[0] == '\0' ? row->arguments : "");
    } else if (memchr(line + start, '.', length) != NULL) {
        look_at_setting(l, line, start, cursor);
    }
}

void complete_look(app *a)
{
    completion *c = &a->completion;
    looking l = {.app = a, .c = c};
    char line[PROMPT_MAX];
    if (a->overlay == OVERLAY_CONSOLE) {
        console_ask(a);
        return;
    }
    c->count = 0;
    c->chosen = CANDIDATE_NONE;
    c->hint[0] = '\0';
    snprintf(line, sizeof line, "%.*s", (int)a->prompt.cursor, a->prompt.text);
    if (a->overlay == OVERLAY_EDIT) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[feed_knob(&a->feed)];
        begin_word(&l, line, 0, a->prompt.selected ? 0 : a->prompt.cursor);
        offer_values(&l, row);
        return;
    }
    size_t start = strspn(line, " :");
    if (line[start] == '=') {
        return;
    }
    if (a->overlay == OVERLAY_COMMAND && line[start + strcspn(line + start, " =")] == '=') {
        look_at_setting(&l, line, start, a->prompt.cursor);
    } else if (a->overlay == OVERLAY_COMMAND) {
        look_at_command(&l, line, start, a->prompt.cursor);
    }
    if (a->prompt.cursor < a->prompt.length) {
        c->hint[0] = '\0'; // it would stand over what is there
    }
}

// ---- Tab ------------------------------------------------------------------------------------------------------

// What all candidates begin with.
static size_t common_length(const completion *c)
{
    size_t same = strlen(c->candidate[0].text);
    for (size_t i = 1; i < c->count; i++) {
        for (size_t k = 0; k < same; k++) {
            if (c->candidate[i].text[k] != c->candidate[0].text[k]) {
                same = k;
            }
        }
    }
    return same;
}

void complete_next(app *a, int direction)
{
    completion *c = &a->completion;
    prompt *p = a->overlay == OVERLAY_CONSOLE ? &a->console.prompt : &a->prompt;
    char text[CANDIDATE_TEXT_MAX + sizeof c->candidate[0].after];
    if (c->count == 0) {
        return;
    }
    size_t typed = p->cursor - c->start, same = common_length(c);
    bool only = c->count == 1;
    if (c->chosen == CANDIDATE_NONE && !p->selected && (same > typed || only)) {
        snprintf(text, sizeof text, "%.*s%s", (int)same, c->candidate[0].text,
                 !only                     ? ""
                 : c->candidate[0].goes_on ? " "
                                           : c->candidate[0].after);
        prompt_complete(p, c->start, text);
        complete_look(a);
        return;
    }
    size_t last = c->count - 1, first = direction > 0 ? 0 : last;
    size_t next = direction > 0 ? c->chosen + 1 : c->chosen - 1;
    bool around = c->chosen == CANDIDATE_NONE || (direction > 0 ? c->chosen == last : c->chosen == 0);
    c->chosen = around ? first : next;
    c->hint[0] = '\0';
    prompt_complete(p, c->start, c->candidate[c->chosen].text);
}
