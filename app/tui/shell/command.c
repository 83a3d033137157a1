// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "headroom/knob_export.h"

#include "app/tui/feed/run_export.h"
#include "app/tui/screens/runs/runs.h"
#include "app/tui/shell/act.h"
#include "app/tui/shell/panes.h"
#include "app/tui/term/terminal.h"

// ---- knobs and trainings --------------------------------------------------------------------------------------

// As a shell is told.
static void refuse_knob(feed *f, const char *key, const char *value)
{
    hr_knobs trial = f->knobs;
    char pair[2 * HR_KNOB_TEXT_MAX + 1];
    hr_err err;
    snprintf(pair, sizeof pair, "%s=%.*s", key, HR_KNOB_TEXT_MAX - 1, value);
    if (hr_knobs_set_pair(&trial, pair, &err) != HR_OK) {
        feed_say_error(f, &err);
    }
}

// "a.b=1 c.d=2": as a lesson's last hint says it.
static bool set_pairs(feed *f, const char *pairs)
{
    hr_knobs trial = f->knobs;
    const char *second = strchr(pairs, ' ');
    if (second == NULL || strchr(second, '=') == NULL || hr_knobs_set_pairs(&trial, pairs, NULL) != HR_OK) {
        return false;
    }
    if (app_turn_pairs(f, pairs)) {
        feed_say(f, MESSAGE_NOTE, "%s from the next step on; z turns it back", pairs);
    }
    return true;
}

// "key value" or "key=value", or several of the latter.
static void run_set(app *a, const char *argument)
{
    if (set_pairs(&a->feed, argument)) {
        return;
    }
    char key[HR_KNOB_TEXT_MAX];
    size_t length = strcspn(argument, " =");
    snprintf(key, sizeof key, "%.*s", (int)length, argument);
    const hr_knob_row *row = hr_knob_find(key, NULL);
    const char *value = argument + length + strspn(argument + length, " =");
    value = strcmp(value, "\"\"") == 0 ? "" : value; // as a preset and the help write it
    if (length == 0) {
        feed_say(&a->feed, MESSAGE_ERROR, "set needs a knob and its value\ntry: :set batch.size 64");
    } else if (row == NULL) {
        refuse_knob(&a->feed, key, value);
    } else {
        act_turn_to(&a->feed, row->id, value);
    }
}

static bool holds_with(const hr_knobs *to, const char *turned, const char *pair)
{
    char key[HR_KNOB_TEXT_MAX];
    hr_knobs both = *to;
    snprintf(key, sizeof key, "%.*s=", (int)strcspn(pair, "="), pair);
    return strstr(turned, key) == NULL && hr_knobs_set_pair(&both, pair, NULL) == HR_OK &&
           hr_knobs_validate(&both, NULL) == HR_OK;
}

// What is turned beside `turned` so that it all holds together: what the refusal advises, else another knob back.
static bool find_beside(const hr_knobs *to, const char *turned, const char *hint, char pair[HR_KNOB_TEXT_MAX])
{
    size_t count = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    const bool advised = strncmp(hint, "-s ", strlen("-s ")) == 0;
    snprintf(pair, HR_KNOB_TEXT_MAX, "%.*s", HR_KNOB_TEXT_MAX - 1, advised ? hint + strlen("-s ") : "");
    bool found = advised && holds_with(to, turned, pair);
    for (size_t k = 0; k < count && !found; k++) {
        const char *word = rows[k].preset_default[0] != '\0' ? rows[k].preset_default : "none";
        snprintf(pair, HR_KNOB_TEXT_MAX, "%s=%s", rows[k].key, word);
        found = hr_knob_is_set(to, rows[k].id) && holds_with(to, turned, pair);
    }
    return found;
}

// Turns that begin a training are typed in one line, with what has to be turned beside them.
static void refuse_turns(feed *f, const hr_knobs *to, const char *turned, hr_err *err)
{
    char pair[HR_KNOB_TEXT_MAX];
    if (err->status == HR_CONSTRAINT && find_beside(to, turned, err->hint, pair)) {
        feed_say(f, MESSAGE_ERROR, "%s failed: %s\ntry: :anew %s %s", hr_status_what(err->status),
                 err->sentence, turned, pair);
        return;
    }
    feed_say_error(f, err);
}

// Whether `argument`, "KEY VALUE" or "KEY=VALUE …", could be set beside the other knobs; a refusal has been said.
static bool read_turns(feed *f, const char *argument, hr_knobs *to)
{
    char pair[HR_KNOB_TEXT_MAX], turned[HR_ERR_TEXT_MAX] = "";
    hr_err err;
    const size_t key = strcspn(argument, " =");
    const bool typed = argument[key] == ' ' && strchr(argument, '=') == NULL;
    hr_status status = HR_OK;
    for (*to = f->knobs; *argument != '\0' && status == HR_OK;) {
        const size_t length = typed ? strlen(argument) : strcspn(argument, " ");
        snprintf(pair, sizeof pair, "%.*s", (int)length, argument);
        if (typed && key < sizeof pair) {
            pair[key] = '=';
        }
        snprintf(turned + strlen(turned), sizeof turned - strlen(turned), "%s%s",
                 turned[0] == '\0' ? "" : " ", pair);
        status = hr_knobs_set_pair(to, pair, &err);
        argument += length + strspn(argument + length, " ");
    }
    if (status != HR_OK) {
        feed_say_error(f, &err);
        return false;
    }
    status = hr_knobs_validate(to, &err);
    if (status != HR_OK) {
        refuse_turns(f, to, turned, &err);
    }
    return status == HR_OK;
}

// "anew compress.lora 16": what a training cannot be turned to, because its weights would be others.
static void run_anew(app *a, const char *argument)
{
    hr_knobs to;
    const char *why_not = feed_why_not_command(&a->feed);
    if (why_not != NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", why_not);
    } else if (hr_preset_path(a->feed.preset)[0] == '\0') {
        feed_say(&a->feed, MESSAGE_ERROR,
                 "this preset is no file\ntry: :export preset mine.yaml, then :preset ./mine.yaml");
    } else if (read_turns(&a->feed, argument, &to)) {
        app_begin_anew(a, &to);
    }
}

// "card rtx3070-8g vram=12GiB": as device.card has it, with commas between.
static void run_card(app *a, const char *argument)
{
    char text[HR_KNOB_TEXT_MAX];
    size_t length = 0;
    if (argument[0] == '\0') {
        feed_say(&a->feed, MESSAGE_ERROR,
                 "card needs a name, and beside it what differs\ntry: :card rtx3070-8g vram=12GiB");
        return;
    }
    for (const char *c = argument; *c != '\0' && length + 1 < sizeof text; c++) {
        const bool follows = *c == ' ' || *c == ',';
        if (!follows || (length > 0 && text[length - 1] != ',')) {
            text[length++] = follows ? ',' : *c;
        }
    }
    text[length] = '\0';
    act_turn_to(&a->feed, HR_KNOB_DEVICE_CARD, text);
}

// "fix", "fix 2": what a dry run found to fit after the last out-of-memory.
static void run_fix(app *a, const char *argument)
{
    const hr_report_oom *oom = &a->feed.report.oom;
    char pairs[sizeof oom->fixes[0].knobs], *end = NULL;
    size_t fixes = a->feed.has_report && oom->fix_count <= HR_FIXES_MAX ? oom->fix_count : 0;
    unsigned long number = argument[0] == '\0' ? 1 : strtoul(argument, &end, 10);
    if (fixes == 0) {
        feed_say(&a->feed, MESSAGE_ERROR, "nothing has run out of memory\ntry: :set batch.size 256");
    } else if (number < 1 || number > fixes || (end != NULL && *end != '\0')) {
        feed_say(&a->feed, MESSAGE_ERROR, "fix needs a number from 1 to %zu, had '%.32s'\ntry: :fix 1", fixes,
                 argument);
    } else {
        snprintf(pairs, sizeof pairs, "%.*s", (int)sizeof pairs - 1, oom->fixes[number - 1].knobs);
        if (app_turn_pairs(&a->feed, pairs)) {
            feed_say(&a->feed, MESSAGE_NOTE, "%s from the next step on; z turns it back", pairs);
        }
    }
}

// "run" is the key; "run 50" does so many steps from here.
static void run_run(app *a, const char *argument)
{
    char *end;
    errno = 0;
    unsigned long long steps = strtoull(argument, &end, 10);
    if (argument[0] == '\0') {
        app_request(a, REQUEST_RUN);
    } else if (argument[0] < '0' || argument[0] > '9' || *end != '\0' || errno != 0 || steps == 0) {
        feed_say(&a->feed, MESSAGE_ERROR, "run needs a number of steps, had '%.32s'\ntry: :run 50", argument);
    } else {
        feed_send_plain(&a->feed, HR_COMMAND_RUN, steps);
    }
}

// Refused before it is asked: a training without train.save has nowhere to be saved to.
static void run_save(app *a, const char *argument)
{
    if (argument[0] == '\0' && hr_knob_text(&a->feed.knobs, HR_KNOB_TRAIN_SAVE)[0] == '\0') {
        feed_say(&a->feed, MESSAGE_ERROR,
                 "save needs a file: train.save names none\ntry: :save weights.safetensors");
    } else {
        a->feed.awaits_save = feed_send_text(&a->feed, HR_COMMAND_SAVE, (hr_knob_id)0, argument);
    }
}

static void run_preset(app *a, const char *argument)
{
    if (argument[0] == '\0' || feed_why_not_command(&a->feed) != NULL) {
        app_request(a, REQUEST_PRESETS);
        return;
    }
    app_open_preset(a, argument);
}

// What a command was about to write: where a file stands in its way, the command with a `!` replaces it.
static void say_not_written(feed *f, const char *command, const char *argument, const char *file, hr_err *err)
{
    struct stat there;
    const bool in_the_way = lstat(file, &there) == 0 && S_ISREG(there.st_mode);
    if (err->status == HR_WRITE && in_the_way && strchr(command, '!') == NULL) {
        hr_err_try(err, ":%s! %s", command, argument);
    }
    feed_say_error(f, err);
}

// ":export-runs FILE.csv": the session's runs.
static void write_runs(feed *f, const char *command, const char *argument)
{
    hr_err err;
    if (run_export(&f->runs, argument, strchr(command, '!') != NULL, &err) == HR_OK) {
        feed_say(f, MESSAGE_NOTE, "%zu run%s in %s", f->runs.count, f->runs.count == 1 ? " is" : "s are",
                 argument);
    } else {
        say_not_written(f, command, argument, argument, &err);
    }
}

static void run_export_runs(app *a, const char *argument)
{
    write_runs(&a->feed, "export-runs", argument);
}

static void run_export_runs_over(app *a, const char *argument)
{
    write_runs(&a->feed, "export-runs!", argument);
}

// ":export pytorch FILE.py": what is turned now, to be kept.
static void write_knobs(feed *f, const char *command, const char *argument)
{
    char form[16];
    hr_err err;
    const size_t length = strcspn(argument, " ");
    const char *file = argument + length + strspn(argument + length, " ");
    snprintf(form, sizeof form, "%.*s", (int)length, argument);
    if (file[0] == '\0') {
        feed_say(f, MESSAGE_ERROR,
                 "export needs preset, pytorch or keras, and a file\ntry: :export preset mine.yaml");
    } else if (hr_knob_export_file(form, f->preset, &f->knobs, file, strchr(command, '!') != NULL, &err) !=
               HR_OK) {
        say_not_written(f, command, argument, file, &err);
    } else if (strcmp(form, "preset") == 0) {
        feed_say(f, MESSAGE_NOTE, "these knobs are in %s: headroom %s%s opens it", file,
                 strchr(file, '/') == NULL ? "./" : "", file);
    } else {
        feed_say(f, MESSAGE_NOTE, "what %s has for these knobs is in %s", form, file);
    }
}

static void run_export_knobs(app *a, const char *argument)
{
    write_knobs(&a->feed, "export", argument);
}

static void run_export_knobs_over(app *a, const char *argument)
{
    write_knobs(&a->feed, "export!", argument);
}

// Of the selected run of Runs; from elsewhere of the one that goes on. "" takes its name away.
static void run_name(app *a, const char *name)
{
    const run *r = a->screen == SCREEN_RUNS ? runs_selected(&a->runs) : run_log_current(feed_runs(&a->feed));
    if (r == NULL) {
        feed_say(&a->feed, MESSAGE_ERROR, "there is no run to name yet\ntry: 5, select a run, and :name %s",
                 name);
        return;
    }
    const uint32_t number = r->number;
    (void)run_log_name(&a->feed.runs, number, name);
    if (a->feed.frozen_runs != NULL) {
        (void)run_log_name(a->feed.frozen_runs, number, name);
    }
    if (name[0] == '\0') {
        feed_say(&a->feed, MESSAGE_NOTE, "run %" PRIu32 " has no name any more", number);
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "run %" PRIu32 " is called %s", number, name);
    }
}

static void run_quit(app *a, const char *argument)
{
    (void)argument;
    app_request(a, REQUEST_QUIT);
}

// ---- the focused table ----------------------------------------------------------------------------------------

// The table that has the focus; NULL: the reason has been said.
static const table_source *focused_table(app *a, request r)
{
    const char *why_not = app_why_not(a, r);
    if (why_not != NULL) {
        feed_say(&a->feed, MESSAGE_ERROR, "%s", why_not);
        return NULL;
    }
    return pane_ops_of(a->focus)->table;
}

static void run_filter(app *a, const char *argument)
{
    if (argument[0] == '\0') {
        app_request(a, REQUEST_FILTER);
    } else {
        act_filter_with(a, argument);
    }
}

// The column called `name`; column_count: none, and that has been said.
static unsigned column_named(feed *f, const table_source *s, const char *name, const char *command)
{
    unsigned column = 0;
    while (column < s->column_count && strcasecmp(s->columns[column].term, name) != 0) {
        column++;
    }
    if (column == s->column_count) {
        feed_say(f, MESSAGE_ERROR, "this table has no column '%.32s'\ntry: :%s %s", name, command,
                 s->columns[0].term);
    }
    return column;
}

// The column it is sorted by already turns round, as a click on its heading does.
static void run_sort(app *a, const char *argument)
{
    const table_source *s = focused_table(a, REQUEST_SORT);
    if (s == NULL) {
        return;
    }
    if (argument[0] == '\0') {
        app_request(a, REQUEST_SORT);
        return;
    }
    unsigned column = column_named(&a->feed, s, argument, "sort");
    if (column < s->column_count) {
        table_view *v = &a->table[a->focus];
        v->reversed = v->sort == (int)column && !v->reversed;
        v->sort = (int)column;
        v->settled = false;
    }
}

static void run_columns(app *a, const char *argument)
{
    const table_source *s = focused_table(a, REQUEST_COLUMNS);
    if (s == NULL) {
        return;
    }
    if (argument[0] == '\0') {
        app_request(a, REQUEST_COLUMNS);
        return;
    }
    unsigned column = column_named(&a->feed, s, argument, "columns");
    if (column < s->column_count) {
        table_toggle_column(&a->table[a->focus], s, column);
    }
}

// ---- looks ----------------------------------------------------------------------------------------------------

static void run_theme(app *a, const char *argument)
{
    if (argument[0] == '\0') {
        app_request(a, REQUEST_THEME);
    } else if (!act_choose_theme(a, argument)) {
        feed_say(&a->feed, MESSAGE_ERROR, "no theme is called '%.32s'\ntry: Tab after :theme", argument);
    }
}

static void run_glyphs(app *a, const char *argument)
{
    if (argument[0] == '\0') {
        app_request(a, REQUEST_GLYPHS);
        return;
    }
    for (int set = 0; set < GLYPHS_COUNT; set++) {
        if (strcasecmp(glyphs_name((glyph_set)set), argument) == 0) {
            if (!act_choose_glyphs(a, (glyph_set)set)) {
                feed_say(&a->feed, MESSAGE_ERROR, "this terminal cannot show %s\ntry: :glyphs %s", argument,
                         glyphs_name(a->looks.richest_glyphs));
            }
            return;
        }
    }
    feed_say(&a->feed, MESSAGE_ERROR, "no set of glyphs is called '%.32s'\ntry: Tab after :glyphs", argument);
}

static void run_mouse(app *a, const char *argument)
{
    bool on = strcmp(argument, "on") == 0;
    if (argument[0] == '\0') {
        app_request(a, REQUEST_MOUSE);
    } else if (!on && strcmp(argument, "off") != 0) {
        feed_say(&a->feed, MESSAGE_ERROR, "mouse is on or off, had '%.32s'\ntry: :mouse off", argument);
    } else {
        act_choose_mouse(a, on);
    }
}

static void write_display(app *a, const char *command, const char *argument)
{
    hr_err err;
    if (argument[0] == '\0') {
        feed_say(&a->feed, MESSAGE_ERROR, "save-display needs a file name\ntry: :save-display bench.svg");
    } else if (act_save_display(a, argument, strchr(command, '!') != NULL, &err) != HR_OK) {
        say_not_written(&a->feed, command, argument, argument, &err);
    }
}

static void run_lua(app *a, const char *argument)
{
    console_lua(a, argument);
}

static void run_save_display(app *a, const char *argument)
{
    write_display(a, "save-display", argument);
}

static void run_save_display_over(app *a, const char *argument)
{
    write_display(a, "save-display!", argument);
}

// ---- the table ------------------------------------------------------------------------------------------------

// clang-format off
static const command_row commands[] = {
    {"set", "KEY VALUE", WORD_SETTING, "turn a knob", run_set, NULL},
    {"run", "[STEPS]", WORD_NONE, "train so many steps more; without a number, run or pause", run_run, NULL},
    {"preset", "NAME", WORD_PRESET, "open another preset, or a file", run_preset, NULL},
    {"anew", "[KEY VALUE]", WORD_SETTING, "train from the beginning, with this knob turned", run_anew, NULL},
    {"card", "NAME [KEY=VALUE …]", WORD_CARD, "another card, or one like it: vram=12GiB …", run_card, NULL},
    {"fix", "[NUMBER]", WORD_FIX, "turn the knobs that the Doctor found to fit", run_fix, NULL},
    {"lua", "RECIPE [ARGUMENTS]|stop", WORD_RECIPE, "run a recipe on this training; stop ends it and its callbacks", run_lua, NULL},
    {"save", "[FILE]", WORD_FILE, "save the training", run_save, NULL},
    {"save-display", "FILE", WORD_FILE, "save the screen: .txt, .ans or .svg", run_save_display, run_save_display_over},
    {"export-runs", "FILE.csv|FILE.json", WORD_FILE, "write the session's runs to a file", run_export_runs, run_export_runs_over},
    {"export", "preset|pytorch|keras FILE", WORD_FORM, "keep these knobs: as a preset, or as lines of a framework", run_export_knobs, run_export_knobs_over},
    {"name", "[TEXT]", WORD_NONE, "name the selected run, from other screens the one that goes on", run_name, NULL},
    {"filter", "[TEXT]", WORD_NONE, "show the rows of the table that match; !text: those that do not", run_filter, NULL},
    {"sort", "[COLUMN]", WORD_COLUMN, "sort the table; again: the other way round", run_sort, NULL},
    {"columns", "[COLUMN]", WORD_COLUMN, "show or hide a column of the table", run_columns, NULL},
    {"theme", "[NAME]", WORD_THEME, "other colours", run_theme, NULL},
    {"glyphs", "[NAME]", WORD_GLYPHS, "blocks, braille or ASCII", run_glyphs, NULL},
    {"mouse", "[on|off]", WORD_ON_OFF, "off leaves selecting text to the terminal", run_mouse, NULL},
    {"q", "", WORD_NONE, "leave", run_quit, NULL},
};
// clang-format on

const command_row *command_rows(size_t *count)
{
    *count = sizeof commands / sizeof *commands;
    return commands;
}

const command_row *command_find(const char *name, size_t length)
{
    const bool over = length > 0 && name[length - 1] == '!';
    length -= over;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if ((!over || commands[i].over != NULL) && strlen(commands[i].name) == length &&
            memcmp(commands[i].name, name, length) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

void app_command(app *a, const char *line)
{
    char word[64], argument[PROMPT_MAX];
    app_follow_lesson(a);
    line += strspn(line, " :");
    size_t length = strcspn(line, " ");
    snprintf(word, sizeof word, "%.*s", (int)length, line);
    snprintf(argument, sizeof argument, "%s", line + length + strspn(line + length, " "));
    for (size_t end = strlen(argument); end > 0 && argument[end - 1] == ' '; end--) {
        argument[end - 1] = '\0';
    }
    const command_row *row = command_find(line, length);
    request r = request_of_name(word);
    if (word[0] == '=') {
        console_evaluate(a, line + 1);
        return;
    }
    if (word[0] == '\0') {
        return;
    }
    if (row != NULL) {
        (word[strlen(word) - 1] == '!' ? row->over : row->run)(a, argument);
    } else if (r != REQUEST_NONE && r != REQUEST_COMMAND) {
        app_request(a, r);
    } else if (strchr(word, '.') != NULL) {
        run_set(a, line);
    } else {
        feed_say(&a->feed, MESSAGE_ERROR, "no command is called '%s'\ntry: Tab after ':', or ? for all keys",
                 word);
    }
}
