// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/remember.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/files.h"

#include "app/tui/shell/act.h"
#include "app/tui/shell/panes.h"
#include "app/tui/shell/remember_turned.h"
#include "app/tui/term/terminal.h"

static const char heading[] = "# what the workbench remembers; nothing of it turns a knob by itself\n";

// ---- the file -------------------------------------------------------------------------------------------------

// The whole file, NUL-terminated; NULL when it cannot be read.
static char *read_file(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = file < 0 ? NULL : calloc(1, REMEMBER_BYTES_MAX + 1);
    size_t length = 0;
    ssize_t got = 1;
    while (text != NULL && got > 0 && length < REMEMBER_BYTES_MAX) {
        got = read(file, text + length, REMEMBER_BYTES_MAX - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        free(text);
        text = NULL;
    }
    if (file >= 0) {
        (void)close(file);
    }
    return text;
}

static bool replace_file(const char *path, const char *text)
{
    (void)hr_file_make_folders(path);
    return hr_file_write(path, text, strlen(text), HR_FILE_PRIVATE, NULL) == HR_OK;
}

// ---- what it says ---------------------------------------------------------------------------------------------

static const char *const pane_names[] = {
#define X(id, text) #id,
    PANE_MAP(X)
#undef X
};

// Relative names mean other files in another folder. "": it is no file that a line can name.
static const char *preset_path(const app *a, char whole[PATH_MAX])
{
    const char *path = hr_preset_path(a->feed.preset);
    if (path[0] == '\0' || realpath(path, whole) == NULL || strchr(whole, '\n') != NULL) {
        whole[0] = '\0';
    }
    return whole;
}

static void put_preset(FILE *out, const app *a)
{
    char path[PATH_MAX];
    if (preset_path(a, path)[0] != '\0') {
        fprintf(out, "preset %s\n", path);
    }
    remember_turned_put(out, &a->feed);
}

// "table PEAK hidden=dtype,shape". An order is of the moment: a table begins in its own.
static void put_table(FILE *out, const app *a, pane_id pane)
{
    const table_source *s = pane_ops_of(pane)->table;
    const table_view *v = &a->table[pane];
    if (s == NULL || v->hidden == 0) {
        return;
    }
    fprintf(out, "table %s", pane_names[pane]);
    for (unsigned i = 0, hidden = 0; i < s->column_count; i++) {
        if ((v->hidden >> i & 1) != 0) {
            fprintf(out, "%s%s", hidden++ == 0 ? " hidden=" : ",", s->columns[i].term);
        }
    }
    fputc('\n', out);
}

static void put_choice(FILE *out, const char *key, const char *chosen)
{
    if (chosen[0] != '\0') {
        fprintf(out, "%s %s\n", key, chosen);
    }
}

char *remember_text(const app *a)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fputs(heading, out);
    put_preset(out, a);
    put_choice(out, "theme", a->looks.chosen_theme);
    put_choice(out, "glyphs", a->looks.chosen_glyphs);
    put_choice(out, "mouse", a->looks.chosen_mouse);
    fputs(a->card_seen ? "card seen\n" : "", out);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        put_table(out, a, (pane_id)pane);
    }
    for (size_t i = 0; i < prompt_past(&a->prompt); i++) {
        fprintf(out, "line %s\n", prompt_past_line(&a->prompt, i));
    }
    for (size_t i = 0; i < prompt_past(&a->console.prompt); i++) {
        fprintf(out, "lua %s\n", prompt_past_line(&a->console.prompt, i));
    }
    bool whole = ferror(out) == 0;
    whole = fclose(out) == 0 && whole;
    if (!whole) {
        free(text);
        return NULL;
    }
    return text;
}

// ---- reading it -----------------------------------------------------------------------------------------------

static unsigned column_of(const table_source *s, const char *term, size_t length)
{
    unsigned i = 0;
    while (i < s->column_count &&
           (strlen(s->columns[i].term) != length || memcmp(s->columns[i].term, term, length) != 0)) {
        i++;
    }
    return i;
}

static void take_hidden(table_view *v, const table_source *s, const char *terms)
{
    while (*terms != '\0') {
        size_t length = strcspn(terms, ",");
        unsigned column = column_of(s, terms, length);
        if (column < s->column_count && (v->hidden >> column & 1) == 0) {
            table_toggle_column(v, s, column); // knows that the last one stays
        }
        terms += length + (terms[length] == ',');
    }
}

static void take_table(app *a, char *value)
{
    char *rest = NULL;
    const char *name = strtok_r(value, " ", &rest);
    int pane = 0;
    while (pane < PANE_FOCUS_COUNT && (name == NULL || strcmp(pane_names[pane], name) != 0)) {
        pane++;
    }
    const table_source *s = pane < PANE_FOCUS_COUNT ? pane_ops_of((pane_id)pane)->table : NULL;
    table_view *v = s == NULL ? NULL : &a->table[pane];
    for (char *word = strtok_r(NULL, " ", &rest); s != NULL && word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        if (strncmp(word, "hidden=", 7) == 0) {
            take_hidden(v, s, word + 7);
        }
    }
}

// What this terminal cannot show is remembered all the same.
static void take_glyphs(app *a, const char *name, bool given)
{
    for (int set = 0; set < GLYPHS_COUNT; set++) {
        if (strcmp(glyphs_name((glyph_set)set), name) == 0) {
            snprintf(a->looks.chosen_glyphs, sizeof a->looks.chosen_glyphs, "%s", name);
            if (!given) {
                (void)act_take_glyphs(a, (glyph_set)set);
            }
        }
    }
}

static void take_theme(app *a, const char *name, bool given)
{
    theme known;
    if (theme_make(&known, name, 0, true)) {
        snprintf(a->looks.chosen_theme, sizeof a->looks.chosen_theme, "%s", name);
        if (!given) {
            (void)act_take_theme(a, name);
        }
    }
}

static void take_mouse(app *a, const char *value, bool given)
{
    bool on = strcmp(value, "on") == 0;
    if (on || strcmp(value, "off") == 0) {
        snprintf(a->looks.chosen_mouse, sizeof a->looks.chosen_mouse, "%s", value);
        if (!given) {
            terminal_mouse(on);
        }
    }
}

static void take_typed(prompt *p, const char *line)
{
    prompt_begin(p, "");
    prompt_paste(p, line); // only characters come in
    prompt_remember(p);
    prompt_begin(p, "");
}

static void take_line(app *a, const char *key, char *value, remember_given given)
{
    if (strcmp(key, "theme") == 0) {
        take_theme(a, value, given.theme);
    } else if (strcmp(key, "glyphs") == 0) {
        take_glyphs(a, value, given.glyphs);
    } else if (strcmp(key, "mouse") == 0) {
        take_mouse(a, value, given.mouse);
    } else if (strcmp(key, "card") == 0) {
        a->card_seen = true;
    } else if (strcmp(key, "table") == 0) {
        take_table(a, value);
    } else if (strcmp(key, "line") == 0) {
        take_typed(&a->prompt, value);
    } else if (strcmp(key, "lua") == 0) {
        take_typed(&a->console.prompt, value);
    }
}

// The next line of *text as key and value; false at the end. Lines without a value are passed over.
static bool next_line(char **text, char **key, char **value)
{
    while (**text != '\0') {
        char *line = *text, *end = line + strcspn(line, "\n");
        *text = *end == '\0' ? end : end + 1;
        *end = '\0';
        char *blank = strchr(line, ' ');
        if (blank != NULL && line[0] != '#') {
            *blank = '\0';
            *key = line;
            *value = blank + 1;
            return true;
        }
    }
    return false;
}

// Turns are of the preset that they were made of, and of no other's training.
static void take_turned(app *a, const char *pairs, const char *preset)
{
    char path[PATH_MAX];
    if (pairs != NULL && a->feed.watched == NULL && strcmp(preset_path(a, path), preset) == 0) {
        remember_turned_take(&a->feed, pairs);
    }
}

void remember_read(app *a, const char *path, remember_given given)
{
    char *text = read_file(path), *rest = text, *key, *value;
    const char *preset = "", *turned = NULL;
    free(a->remembered.text);
    a->remembered.text = text == NULL ? NULL : strdup(text);
    while (text != NULL && next_line(&rest, &key, &value)) {
        preset = strcmp(key, "preset") == 0 ? value : preset;
        turned = strcmp(key, "turned") == 0 ? value : turned;
        take_line(a, key, value, given);
    }
    take_turned(a, turned, preset);
    free(text);
}

bool remember_preset(const char *path, char *preset, size_t size)
{
    char *text = read_file(path), *rest = text, *key, *value;
    bool found = false;
    while (!found && text != NULL && next_line(&rest, &key, &value)) {
        if (strcmp(key, "preset") == 0 && value[0] != '\0' && strlen(value) < size) {
            snprintf(preset, size, "%s", value);
            found = true;
        }
    }
    free(text);
    return found;
}

bool remember_write(app *a, const char *path)
{
    char *text = remember_text(a);
    if (text == NULL || (a->remembered.text != NULL && strcmp(text, a->remembered.text) == 0)) {
        free(text);
        return text != NULL;
    }
    bool written = replace_file(path, text);
    if (!written) {
        free(text);
        return false;
    }
    free(a->remembered.text);
    a->remembered.text = text;
    return true;
}
