// SPDX-License-Identifier: Apache-2.0
// config: check a preset or a card, show it with every value resolved, or print one to begin with.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "headroom/card.h"
#include "headroom/engine.h"
#include "headroom/knob_export.h"

#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/knobs.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

static hr_status check_card(const cli_args *args, const char *file, hr_err *err)
{
    char *problems = NULL;
    if (args->set_count > 0) {
        hr_status status = HR_FAIL(err, USAGE, "%.200s is a card, which has no knobs to set", file);
        hr_err_try(err, "headroom config check %.200s", file);
        return status;
    }
    hr_status status = hr_card_check(file, &problems, err);
    if (status == HR_OK) {
        printf("%s: nothing is wrong with it: -s device.card=%s%s takes it\n", file,
               strchr(file, '/') == NULL ? "./" : "", file);
    }
    if (problems != NULL) {
        cli_show_problems(args, file, problems,
                          "edit the lines shown; headroom cards a100-80g prints a card to begin with", err);
        hr_preset_problems_free(problems);
    }
    return status;
}

// Everything that can be wrong with a preset before its first step: the file, its model, its combination of knobs, its
// program. Whether it fits is the plan's to say.
static hr_status check(const cli_args *args, const char *name, hr_err *err)
{
    cli_subject subject;
    if (hr_card_is_file(name)) {
        return check_card(args, name, err);
    }
    HR_TRY(cli_open(args, name, &subject, err));
    hr_status status = hr_engine_rehearse_plan(subject.preset, &subject.knobs, err);
    cli_close(&subject);
    if (status == HR_OK) {
        printf("%s: nothing is wrong with it\n", name);
    }
    return status;
}

// ---- show -----------------------------------------------------------------------------------------------------

// The value as YAML: a text in double quotes, everything else as it would be typed.
static void yaml_value(const hr_knobs *knobs, const hr_knob_row *row, char *text, size_t size)
{
    char value[HR_KNOB_TEXT_MAX];
    size_t length = 0;
    (void)hr_knob_format(knobs, row->id, value);
    if (row->type != HR_KNOB_TEXT) {
        (void)snprintf(text, size, "%s", value);
        return;
    }
    text[length++] = '"';
    for (const char *c = value; *c != '\0' && length + 6 < size; c++) {
        bool special = *c == '"' || *c == '\\';
        bool control = (unsigned char)*c < ' ';
        length += (size_t)snprintf(text + length, size - length,
                                   control   ? "\\x%02x"
                                   : special ? "\\%c"
                                             : "%c",
                                   (unsigned char)*c);
    }
    text[length++] = '"';
    text[length] = '\0';
}

// Where a value that was not taken from the table comes from.
static void origin_of(const cli_subject *s, const hr_knob_row *row, bool turned, char *text, size_t size)
{
    const hr_origin *o = hr_preset_origin(s->preset, row->id);
    if (turned) {
        (void)snprintf(text, size, "--set");
    } else if (o->file[0] == '\0') {
        (void)snprintf(text, size, "default");
    } else if (o->line == 0) {
        (void)snprintf(text, size, "%s", o->file);
    } else {
        (void)snprintf(text, size, "%s:%u:%u", o->file, o->line, o->column);
    }
}

static bool was_turned(const cli_args *args, const hr_knob_row *row)
{
    size_t length = strlen(row->key);
    for (unsigned k = 0; k < args->set_count; k++) {
        if (strncmp(args->sets[k], row->key, length) == 0 && args->sets[k][length] == '=') {
            return true;
        }
    }
    return false;
}

static void show_row(const cli_args *args, const cli_subject *s, const hr_knob_row *row)
{
    char value[4 * HR_KNOB_TEXT_MAX];
    char origin[2 * HR_KNOB_TEXT_MAX];
    yaml_value(&s->knobs, row, value, sizeof value);
    if (cli_given(args, APP_ORIGIN)) {
        origin_of(s, row, was_turned(args, row), origin, sizeof origin);
        printf("  %s: %-*s # %s\n", knob_leaf(row), (int)(26 - strlen(knob_leaf(row))), value, origin);
    } else {
        printf("  %s: %s\n", knob_leaf(row), value);
    }
}

// `sizes: {sequence: 512, depth: 12}` as they stand.
static void show_sizes(const cli_subject *s)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    const char *between = "  sizes: {";
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (hr_knob_is_size(rows[k].id) && hr_knob_is_set(&s->knobs, rows[k].id)) {
            char value[HR_KNOB_TEXT_MAX];
            printf("%s%s: %s", between, knob_leaf(&rows[k]), hr_knob_format(&s->knobs, rows[k].id, value));
            between = ", ";
        }
    }
    puts("}");
}

// Another program's file as the preset that it is read as: what is printed can be saved, and is one.
static void show_imported(const cli_subject *s, const char *imported)
{
    for (const char *line = imported; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (strncmp(line, "  sizes: ", strlen("  sizes: ")) == 0) {
            show_sizes(s);
        } else {
            printf("%.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
}

// `model: NAME`, or with its sizes a mapping.
static void show_model(const cli_args *args, const cli_subject *s)
{
    if (hr_preset_imported(s->preset) != NULL) {
        show_imported(s, hr_preset_imported(s->preset));
        return;
    }
    const hr_knob_row *rows = hr_knob_rows(NULL);
    bool sized = false;
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        sized = sized || (hr_knob_is_size(rows[k].id) && hr_knob_is_set(&s->knobs, rows[k].id));
    }
    printf(sized ? "model:\n  like: " : "model: ");
    say_foreign(stdout, args->words[1], "");
    putchar('\n');
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (hr_knob_is_size(rows[k].id) && hr_knob_is_set(&s->knobs, rows[k].id)) {
            show_row(args, s, &rows[k]);
        }
    }
}

static void show_yaml(const cli_args *args, const cli_subject *s)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    show_model(args, s);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char group[KNOB_GROUP_MAX];
        if (hr_knob_is_size(rows[k].id)) {
            continue;
        }
        if (knob_begins_group(&rows[k])) {
            knob_group(&rows[k], group);
            printf("\n%s:\n", group);
        }
        show_row(args, s, &rows[k]);
    }
}

static void show_json(const cli_args *args, const cli_subject *s)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "preset", hr_preset_name(s->preset));
    emit_object(&e, "knobs");
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[HR_KNOB_TEXT_MAX];
        char origin[2 * HR_KNOB_TEXT_MAX];
        emit_row(&e, rows[k].key);
        emit_text(&e, "value", hr_knob_format(&s->knobs, rows[k].id, value));
        origin_of(s, &rows[k], was_turned(args, &rows[k]), origin, sizeof origin);
        emit_text(&e, "origin", origin);
        emit_end_object(&e);
    }
    emit_end_object(&e);
    emit_end_object(&e);
}

static hr_status show(const cli_args *args, const char *name, hr_err *err)
{
    cli_subject subject;
    HR_TRY(cli_open(args, name, &subject, err));
    if (cli_given(args, APP_JSON)) {
        show_json(args, &subject);
    } else {
        show_yaml(args, &subject);
    }
    cli_close(&subject);
    return HR_OK;
}

// ---- init -----------------------------------------------------------------------------------------------------

static const char opening[] = "# A preset: a model, and the knobs that decide what a training step takes.\n"
                              "#   headroom config check FILE.yaml    is it right?\n"
                              "#   headroom plan FILE.yaml            what would it take?\n"
                              "#   headroom FILE.yaml                 watch it train\n"
                              "# Every knob stands here with its default; take away what you do not change.\n"
                              "title: My network\n"
                              "model:\n"
                              "  input: {shape: [32, 32, 3]} # height, width, channels of one sample\n"
                              "  classes: 10\n"
                              "  loss: softmax_cross_entropy\n"
                              "  layers:\n"
                              "    - {name: conv, kind: conv2d, filters: 32, kernel: 3, activation: relu}\n"
                              "    - {name: pool, kind: max_pool, size: 2}\n"
                              "    - {name: flatten, kind: flatten}\n"
                              "    - {name: classify, kind: dense, units: 10}\n";

// Without a card the limit has to be said: the one knob that cannot stay at its default.
static const char init_vram[] = "256MiB";

static void print_init_row(const hr_knobs *knobs, const hr_knob_row *row)
{
    char value[4 * HR_KNOB_TEXT_MAX];
    char range[KNOB_RANGE_MAX];
    yaml_value(knobs, row, value, sizeof value);
    printf("  # %s (%s)\n", row->line, knob_range(row, range));
    printf("  %s: %s\n", knob_leaf(row), row->id == HR_KNOB_DEVICE_VRAM ? init_vram : value);
}

static hr_status init(const cli_args *args, hr_err *err)
{
    if (args->words[1] != NULL) {
        hr_status status = HR_FAIL(err, USAGE, "config init takes no PRESET, had '%.64s'", args->words[1]);
        hr_err_try(err, "headroom config show %.64s", args->words[1]);
        return status;
    }
    const hr_knob_row *rows = hr_knob_rows(NULL);
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    fputs(opening, stdout);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char group[KNOB_GROUP_MAX];
        if (hr_knob_is_size(rows[k].id)) {
            continue; // the model above has none
        }
        if (knob_begins_group(&rows[k])) {
            knob_group(&rows[k], group);
            printf("\n%s:\n", group);
        }
        print_init_row(&knobs, &rows[k]);
    }
    return HR_OK;
}

// ---- export ---------------------------------------------------------------------------------------------------

// preset, pytorch or keras, on stdout.
static hr_status export(const cli_args *args, const char *name, hr_err *err)
{
    cli_subject subject;
    char *text = NULL;
    HR_TRY(cli_open(args, name, &subject, err));
    hr_status status = hr_knob_export(args->words[2] == NULL ? "" : args->words[2], subject.preset,
                                      &subject.knobs, NULL, &text, err);
    if (status == HR_OK) {
        say_foreign(stdout, text, "\n");
    } else if (status == HR_USAGE) {
        const bool keras = args->words[2] != NULL && strncasecmp(args->words[2], "tensorflow", 2) == 0;
        hr_err_try(err, "headroom config export %.200s %s", name, keras ? "keras" : "pytorch");
    }
    hr_knob_export_free(text);
    cli_close(&subject);
    return status;
}

// ---- which one ------------------------------------------------------------------------------------------------

static hr_status refuse(const char *word, hr_err *err)
{
    hr_status status = HR_FAIL(err, USAGE, "config needs check, show, export or init, had '%.64s'", word);
    hr_err_try(err, "headroom config -h");
    return status;
}

static hr_status configure(const cli_args *args, hr_err *err)
{
    const char *word = args->words[0] != NULL ? args->words[0] : "";
    if (strcmp(word, "init") == 0) {
        return init(args, err);
    }
    if (strcmp(word, "check") != 0 && strcmp(word, "show") != 0 && strcmp(word, "export") != 0) {
        return refuse(word, err);
    }
    if (word[0] != 'e' && args->words[1] != NULL && args->words[2] != NULL) {
        hr_status status =
            HR_FAIL(err, USAGE, "config %s needs one PRESET, had '%.64s' too", word, args->words[2]);
        hr_err_try(err, "headroom config %s %.200s", word, args->words[1]);
        return status;
    }
    if (args->words[1] == NULL) {
        hr_status status = HR_FAIL(err, USAGE, "config %s needs a PRESET, had none", word);
        hr_err_try(err, "headroom config %s demo", word);
        return status;
    }
    return word[0] == 'c'   ? check(args, args->words[1], err)
           : word[0] == 'e' ? export(args, args->words[1], err)
                            : show(args, args->words[1], err);
}

int cli_config(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 3, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    hr_status status = next == CLI_GO_ON ? configure(&args, &err) : HR_USAGE;
    return status == HR_OK ? 0 : say_error(&err, cli_given(&args, APP_JSON));
}
