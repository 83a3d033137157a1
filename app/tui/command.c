// SPDX-License-Identifier: Apache-2.0
// The ":" line: every request by its name, and the few commands that take words.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/tui/app.h"
#include "app/tui/paint.h"
#include "app/tui/run_export.h"

typedef struct command_row {
    const char *name, *arguments;
    void (*run)(app *a, const char *argument);
} command_row;

// "key value" or "key=value".
static void run_set(app *a, const char *argument)
{
    char key[HR_KNOB_TEXT_MAX];
    const char *suggestion = NULL;
    size_t length = strcspn(argument, " =");
    snprintf(key, sizeof key, "%.*s", (int)length, argument);
    const hr_knob_row *row = hr_knob_find(key, &suggestion);
    const char *value = argument + length + strspn(argument + length, " =");
    if (row == NULL && suggestion != NULL) {
        app_say(a, MESSAGE_ERROR, "no knob is called '%s'\ntry: :set %s %s", key, suggestion, value);
    } else if (row == NULL) {
        app_say(a, MESSAGE_ERROR, "no knob is called '%s'\ntry: Tab after :set", key);
    } else {
        app_turn(a, row->id, value);
    }
}

// "fix", "fix 2": what a dry run found to fit after the last out-of-memory.
static void run_fix(app *a, const char *argument)
{
    const hr_report_oom *oom = &a->report.oom;
    char pairs[sizeof oom->fixes[0].knobs], *end = NULL;
    size_t fixes = a->has_report && oom->fix_count <= HR_FIXES_MAX ? oom->fix_count : 0;
    unsigned long number = argument[0] == '\0' ? 1 : strtoul(argument, &end, 10);
    if (fixes == 0) {
        app_say(a, MESSAGE_ERROR, "nothing has run out of memory\ntry: :set batch.size 256");
    } else if (number < 1 || number > fixes || (end != NULL && *end != '\0')) {
        app_say(a, MESSAGE_ERROR, "fix needs a number from 1 to %zu, had '%.32s'\ntry: :fix 1", fixes,
                argument);
    } else {
        snprintf(pairs, sizeof pairs, "%.*s", (int)sizeof pairs - 1, oom->fixes[number - 1].knobs);
        app_turn_pairs(a, pairs);
    }
}

// A picture of the screen in text. Never replaces a file.
static void run_save_display(app *a, const char *argument)
{
    if (argument[0] == '\0') {
        app_say(a, MESSAGE_ERROR, "save-display needs a file name\ntry: :save-display bench.txt");
        return;
    }
    a->overlay = OVERLAY_NONE;
    app_draw(a);
    int fd = open(argument, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = out != NULL && paint_dump(out);
    written = out != NULL && fclose(out) == 0 && written;
    if (written) {
        app_say(a, MESSAGE_NOTE, "the screen is in %s", argument);
    } else {
        app_say(a, MESSAGE_ERROR, "writing failed: %s: %s\ntry: another file name", argument,
                strerror(errno));
    }
    if (out == NULL && fd >= 0) {
        close(fd);
    }
}

static void run_save(app *a, const char *argument)
{
    app_send(a, HR_COMMAND_SAVE, (hr_knob_id)0, argument);
}

static void run_preset(app *a, const char *argument)
{
    if (argument[0] == '\0') {
        app_request(a, REQUEST_PRESETS);
        return;
    }
    app_open_preset(a, argument);
}

// ":export-runs FILE.csv": the session's runs.
static void run_export_runs(app *a, const char *argument)
{
    hr_err err;
    if (run_export(&a->runs, argument, &err) == HR_OK) {
        app_say(a, MESSAGE_NOTE, "%zu runs are in %s", a->runs.count, argument);
    } else {
        app_say_error(a, &err);
    }
}

static void run_q(app *a, const char *argument)
{
    (void)argument;
    app_request(a, REQUEST_QUIT);
}

static const command_row commands[] = {
    {"set", "KEY VALUE", run_set},
    {"fix", "[NUMBER]", run_fix},
    {"save-display", "FILE", run_save_display},
    {"save", "[FILE]", run_save},
    {"preset", "NAME", run_preset},
    {"export-runs", "FILE.csv|FILE.json", run_export_runs},
    {"q", "", run_q},
};

void app_command(app *a, const char *line)
{
    char word[64];
    line += strspn(line, " :");
    size_t length = strcspn(line, " ");
    snprintf(word, sizeof word, "%.*s", (int)length, line);
    const char *argument = line + length + strspn(line + length, " ");
    if (word[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, word) == 0) {
            commands[i].run(a, argument);
            return;
        }
    }
    request r = request_of_name(word);
    if (r != REQUEST_NONE && r != REQUEST_COMMAND) {
        app_request(a, r);
    } else if (strchr(word, '.') != NULL) {
        run_set(a, line);
    } else {
        app_say(a, MESSAGE_ERROR, "no command is called '%s'\ntry: Tab after ':', or ? for all keys", word);
    }
}

// ---- completion -----------------------------------------------------------------------------------------------

// Keeps in `best` what all candidates that begin with `word` have in common; counts them.
typedef struct completion {
    const char *word;
    size_t length, found;
    char best[HR_KNOB_TEXT_MAX];
    char all[256]; // the candidates, as far as they fit
} completion;

static void offer(completion *c, const char *candidate)
{
    if (strncmp(candidate, c->word, c->length) != 0) {
        return;
    }
    size_t listed = strlen(c->all);
    snprintf(c->all + listed, sizeof c->all - listed, "%s ", candidate);
    if (c->found++ == 0) {
        snprintf(c->best, sizeof c->best, "%s", candidate);
        return;
    }
    size_t same = 0;
    while (c->best[same] != '\0' && c->best[same] == candidate[same]) {
        same++;
    }
    c->best[same] = '\0';
}

static void offer_commands(completion *c)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    for (size_t i = 0; i < count; i++) {
        offer(c, rows[i].name);
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        offer(c, commands[i].name);
    }
}

static void offer_knobs(completion *c)
{
    size_t count;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; i < count; i++) {
        offer(c, rows[i].key);
    }
}

static void offer_choices(completion *c, const char *key, size_t length)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, key);
    const hr_knob_row *row = hr_knob_find(name, NULL);
    for (size_t i = 0; row != NULL && row->type == HR_KNOB_CHOICE && row->choices[i] != NULL; i++) {
        offer(c, row->choices[i]);
    }
}

void app_complete(app *a)
{
    char line[PROMPT_MAX];
    size_t blanks = strspn(a->prompt.text, " ");
    blanks = blanks < a->prompt.cursor ? blanks : a->prompt.cursor;
    snprintf(line, sizeof line, "%.*s", (int)(a->prompt.cursor - blanks), a->prompt.text + blanks);
    const char *space = strrchr(line, ' ');
    size_t start = space == NULL ? 0 : (size_t)(space - line) + 1;
    completion c = {.word = line + start, .length = strlen(line + start)};
    bool sets = strncmp(line, "set ", 4) == 0;
    const char *second = sets ? strchr(line + 4, ' ') : NULL;
    if (a->overlay == OVERLAY_EDIT) {
        size_t count;
        const char *key = hr_knob_rows(&count)[app_knob(a)].key;
        offer_choices(&c, key, strlen(key));
    } else if (start == 0) {
        offer_commands(&c);
    } else if (second != NULL) {
        offer_choices(&c, line + 4, (size_t)(second - line - 4));
    } else if (sets) {
        offer_knobs(&c);
    }
    if (c.found == 1 && a->overlay == OVERLAY_COMMAND && second == NULL) {
        strncat(c.best, " ", sizeof c.best - strlen(c.best) - 1);
    }
    if (c.found > 0) {
        prompt_complete(&a->prompt, blanks + start, c.best);
    }
    snprintf(a->candidates, sizeof a->candidates, "%s", c.found > 1 ? c.all : "");
}
