// SPDX-License-Identifier: Apache-2.0
#include "app/cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/file_kind.h"
#include "headroom/replay.h"
#include "headroom/scenario.h"
#include "headroom/words.h"

#include "app/cli/recipes.h"
#include "app/cli/say.h"
#include "app/tui/shell/script_words.h"

static const app_option rows[] = {
#define X(id, letter, name, value, line) [APP_##id] = {letter, name, value, line},
    APP_OPTION_MAP(X)
#undef X
};

static struct {
    const app_command *rows;
    unsigned count;
} commands;

void app_set_commands(const app_command *of, unsigned count)
{
    commands.rows = of;
    commands.count = count;
}

const app_command *app_commands(unsigned *count)
{
    *count = commands.count;
    return commands.rows;
}

const app_command *app_command_find(const char *name)
{
    for (unsigned k = 0; k < commands.count; k++) {
        if (strcmp(commands.rows[k].name, name) == 0) {
            return &commands.rows[k];
        }
    }
    return NULL;
}

const app_option *app_option_row(app_option_id id)
{
    return &rows[id];
}

bool app_command_takes(const app_command *command, app_option_id id)
{
    return (command->options >> id & 1U) != 0;
}

static const char *name_of(const app_command *command)
{
    return command->name[0] == '\0' ? "headroom" : command->name;
}

// ---- help -----------------------------------------------------------------------------------------------------

static void print_option(app_option_id id)
{
    const app_option *o = &rows[id];
    char words[48];
    char letter[8] = "    ";
    if (o->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    (void)snprintf(words, sizeof words, "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                   o->value != NULL ? o->value : "");
    printf("  %-22s ", words);
    say_paragraph(o->line, 25);
}

static void print_usage(const app_command *c)
{
    bool unnamed = c->name[0] == '\0';
    printf("headroom%s%s%s%s%s\n", unnamed ? "" : " ", c->name, c->arguments[0] != '\0' ? " " : "",
           c->arguments, c->options != 0 ? " [options]" : "");
}

static void print_options(const app_command *c)
{
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(c, (app_option_id)id)) {
            print_option((app_option_id)id);
        }
    }
}

// What can stand in a trace's place.
static void print_scenarios(void)
{
    size_t k = 0;
    puts("  TRACE is a file, or one of these:");
    for (const hr_scenario *s = hr_scenario_row(k); s != NULL; s = hr_scenario_row(++k)) {
        printf("  %-22s ", s->name);
        say_paragraph(s->line, 25);
    }
}

// What the lines of --script's FILE are.
static void print_script(void)
{
    size_t k = 0;
    puts("  a line of --script's FILE is a ':' command, a '#' comment, or one of these:");
    for (const script_word *w = script_word_row(k); w != NULL; w = script_word_row(++k)) {
        char words[48];
        (void)snprintf(words, sizeof words, "%s %s", w->word, w->example);
        printf("  %-22s ", words);
        say_paragraph(w->line, 25);
    }
}

static void help_of(const app_command *c, bool whole)
{
    fputs("usage: ", stdout);
    print_usage(c);
    fputs("  ", stdout);
    say_paragraph(c->line, 2);
    if (whole || c->options != 0) {
        print_options(c);
    }
    if (c->word == APP_TRACE_WORD) {
        print_scenarios();
    }
    if (c->word == APP_RECIPE_WORD) {
        recipes_print();
    }
    if (whole && app_command_takes(c, APP_SCRIPT)) {
        print_script();
    }
}

const cli_exit_row *cli_exit_rows(void)
{
    static const cli_exit_row codes[] = {{0, "ok"},
                                         {1, "a check failed or memory ran out"},
                                         {2, "usage or configuration"},
                                         {3, "Lua"},
                                         {4, "device or dependency"},
                                         {5, "a file cannot be read or written"},
                                         {130, "interrupted"},
                                         {0, NULL}};
    return codes;
}

static void print_exit_codes(void)
{
    char words[256] = "Exit codes:";
    for (const cli_exit_row *row = cli_exit_rows(); row->line != NULL; row++) {
        const size_t length = strlen(words);
        (void)snprintf(words + length, sizeof words - length, " %d %s%s", row->code, row->line,
                       row[1].line != NULL ? ";" : ".");
    }
    say_paragraph(words, 0);
}

static void help_of_all(bool whole)
{
    unsigned count = 0;
    const app_command *all = app_commands(&count);
    puts("headroom: see, predict and turn the memory of neural-network training\n");
    for (unsigned k = 0; k < count; k++) {
        if (whole) {
            help_of(&all[k], true);
            putchar('\n');
        } else {
            char words[64];
            (void)snprintf(words, sizeof words, "%s%s%s", all[k].name, all[k].name[0] != '\0' ? " " : "",
                           all[k].arguments);
            printf("  headroom %-22s ", words);
            if (strlen(words) > 22) { // its line of help begins below
                printf("\n%34s", "");
            }
            say_paragraph(all[k].line, 34);
        }
    }
    if (!whole) {
        puts("\n`headroom COMMAND -h` for one command, `headroom --help` for everything.");
        return;
    }
    puts("PRESET is a name from `headroom presets`, a path with '/' or .yaml, a config.json of Hugging Face "
         "or its folder, an .onnx file, a .keras file or to_json() of Keras, a .gguf file, or a .safetensors "
         "file beside its config.json.");
    print_exit_codes();
}

void cli_help(const app_command *command, bool whole)
{
    if (command == NULL) {
        help_of_all(whole);
    } else {
        help_of(command, whole);
    }
}

// ---- one word after the other ---------------------------------------------------------------------------------

typedef struct reader {
    int argc, next;
    char **argv;
    cli_args *args;
} reader;

static int option_named(const app_command *c, const char *name, size_t length)
{
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(c, (app_option_id)id) && strlen(rows[id].name) == length &&
            memcmp(rows[id].name, name, length) == 0) {
            return id;
        }
    }
    return APP_OPTION_COUNT;
}

// Points to the help of the command, and returns the status.
static hr_status advise(const app_command *c, hr_err *err)
{
    hr_err_try(err, "headroom%s%s -h", c->name[0] == '\0' ? "" : " ", c->name);
    return err->status;
}

// A knob that was typed as an option: "--batch-size 64". False: it is none either. `value`: NULL: none was seen.
static bool name_knob(const char *typed, const char *value, hr_err *err)
{
    char pair[2 * HR_KNOB_TEXT_MAX];
    hr_knobs trial;
    hr_err refused = {0};
    (void)snprintf(pair, sizeof pair, "%.64s%s%.*s", typed, value == NULL ? "" : "=", HR_KNOB_TEXT_MAX,
                   value == NULL ? "" : value);
    for (char *dash = strchr(pair, '-'); dash != NULL && dash < pair + strlen(typed);
         dash = strchr(dash, '-')) {
        *dash = '_';
    }
    hr_knobs_init(&trial);
    if (hr_knobs_set_pair(&trial, pair, &refused) == HR_OK) {
        hr_err_try(err, "-s %s", pair);
        return true;
    }
    const bool names = strncmp(refused.hint, "-s ", 3) == 0;
    if (names) {
        hr_err_try(err, "%s", refused.hint);
    }
    return names;
}

// `next`: the word behind it; NULL: none.
static hr_status refuse_option(const app_command *c, const char *word, const char *next, hr_err *err)
{
    const char *names[APP_OPTION_COUNT + 1];
    size_t count = 0;
    char typed[64];
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(c, (app_option_id)id)) {
            names[count++] = rows[id].name;
        }
    }
    names[count++] = "help";
    (void)snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
                   word + strspn(word, "-"));
    const char *near = hr_word_nearest(typed, names, count);
    (void)HR_FAIL(err, USAGE, "%s has no option '%.64s'%s%s%s", name_of(c), word,
                  near == NULL ? "" : " — did you mean --", near == NULL ? "" : near,
                  near == NULL ? "" : "?");
    const char *equals = strchr(word, '=');
    const char *value = equals != NULL ? equals + 1 : next != NULL && next[0] != '-' ? next : NULL;
    const bool is_word = strlen(typed) > 1 && near == NULL && app_command_takes(c, APP_SET);
    return is_word && name_knob(typed, value, err) ? err->status : advise(c, err);
}

static const char *word_behind(const reader *r)
{
    return r->next < r->argc ? r->argv[r->next] : NULL;
}

static hr_status keep_pair(cli_args *args, const char *pair, hr_err *err)
{
    if (args->set_count == CLI_SETS_MAX) {
        return HR_FAIL(err, USAGE, "--set: at most %d knobs can be turned, had more", CLI_SETS_MAX);
    }
    args->sets[args->set_count++] = pair;
    return HR_OK;
}

// Was the knob of this pair turned before?
static bool is_turned(const cli_args *args, const char *pair)
{
    const size_t length = strcspn(pair, "=") + 1;
    for (unsigned k = 0; k < args->set_count; k++) {
        if (strncmp(args->sets[k], pair, length) == 0) {
            return true;
        }
    }
    return false;
}

// The framework's rules, and its mode and allocator unless others were named before; what is named later wins.
static hr_status keep_framework(cli_args *args, const char *value, hr_err *err)
{
    static const struct {
        const char *name, *pairs[2];
    } frameworks[] = {{"pytorch", {"execution.mode=eager", "allocator.kind=caching"}},
                      {"tensorflow", {"execution.mode=eager", "allocator.kind=bfc"}}};
    (void)snprintf(args->as, sizeof args->as, "execution.as=%s", value);
    HR_TRY(keep_pair(args, args->as, err));
    for (size_t k = 0; k < 2 * sizeof frameworks / sizeof *frameworks; k++) {
        const char *pair = frameworks[k / 2].pairs[k % 2];
        if (strcmp(value, frameworks[k / 2].name) == 0 && !is_turned(args, pair)) {
            HR_TRY(keep_pair(args, pair, err));
        }
    }
    return HR_OK;
}

static hr_status keep(cli_args *args, int id, const char *value, hr_err *err)
{
    args->given |= UINT64_C(1) << id;
    args->value[id] = value;
    if (id == APP_SWEEP && args->sweep_count == CLI_SWEEPS_MAX) {
        return HR_FAIL(err, USAGE, "--sweep: at most %d knobs can be swept, had more", CLI_SWEEPS_MAX);
    }
    if (id == APP_SWEEP) {
        args->sweeps[args->sweep_count++] = value;
    }
    return id == APP_AS    ? keep_framework(args, value, err)
           : id == APP_SET ? keep_pair(args, value, err)
                           : HR_OK;
}

// `attached`: the value that stood in the same word; NULL: none.
static hr_status take_option(reader *r, int id, const char *attached, hr_err *err)
{
    const app_option *o = &rows[id];
    if (o->value == NULL && attached != NULL) {
        (void)HR_FAIL(err, USAGE, "--%s takes no value, had '%.64s'", o->name, attached);
        return advise(r->args->command, err);
    }
    if (o->value != NULL && attached == NULL && r->next == r->argc) {
        (void)HR_FAIL(err, USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->value);
        return advise(r->args->command, err);
    }
    bool apart = o->value != NULL && attached == NULL;
    return keep(r->args, id, apart ? r->argv[r->next++] : attached, err);
}

static hr_status take_long(reader *r, const char *word, hr_err *err)
{
    size_t length = strcspn(word + 2, "=");
    int id = option_named(r->args->command, word + 2, length);
    if (id == APP_OPTION_COUNT) {
        return refuse_option(r->args->command, word, word_behind(r), err);
    }
    return take_option(r, id, word[2 + length] == '=' ? word + 3 + length : NULL, err);
}

static hr_status take_short(reader *r, const char *word, hr_err *err)
{
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(r->args->command, (app_option_id)id) && rows[id].letter == word[1]) {
            return take_option(r, id, word[2] != '\0' ? word + 2 : NULL, err);
        }
    }
    return refuse_option(r->args->command, word, word_behind(r), err);
}

static hr_status take_word(reader *r, const char *word, unsigned max_words, hr_err *err)
{
    cli_args *args = r->args;
    const char *name = name_of(args->command);
    if (args->word_count < max_words) {
        args->words[args->word_count++] = word;
        return HR_OK;
    }
    if (max_words == 0) {
        (void)HR_FAIL(err, USAGE, "%s takes no argument, had '%.64s'", name, word);
    } else {
        (void)HR_FAIL(err, USAGE, "%s takes at most %u argument%s, had '%.64s' too", name, max_words,
                      max_words == 1 ? "" : "s", word);
    }
    const char *set = args->set_count == 0 ? "=" : args->sets[args->set_count - 1];
    hr_status status = advise(args->command, err);
    if (strchr(set, '=') == NULL) {
        hr_err_try(err, "-s %.64s=%.64s", set, word); // a blank stands where '=' belongs
    }
    return status;
}

bool cli_asks_for_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

// An error in any word of a command line with --json is said in JSON, wherever that stands.
static void look_for_json(const reader *r)
{
    for (int k = 1; k < r->argc; k++) {
        if (app_command_takes(r->args->command, APP_JSON) && strcmp(r->argv[k], "--json") == 0) {
            r->args->given |= APP_OPTION(JSON);
        }
    }
}

cli_next cli_parse(int argc, char **argv, unsigned max_words, cli_args *args, hr_err *err)
{
    bool only_words = false;
    reader r = {.argc = argc, .next = 1, .argv = argv, .args = args};
    *args = (cli_args){.command = app_command_find(argv[0])};
    look_for_json(&r);
    while (r.next < argc) {
        const char *word = argv[r.next++];
        hr_status status = HR_OK;
        if (!only_words && cli_asks_for_help(word)) {
            cli_help(args->command, word[1] == '-');
            return CLI_DONE;
        }
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (only_words || word[0] != '-' || word[1] == '\0') {
            status = take_word(&r, word, max_words, err);
        } else {
            status = word[1] == '-' ? take_long(&r, word, err) : take_short(&r, word, err);
        }
        if (status != HR_OK) {
            return CLI_WRONG;
        }
    }
    return CLI_GO_ON;
}

bool cli_given(const cli_args *args, app_option_id id)
{
    return (args->given >> id & 1U) != 0;
}

hr_status cli_count(const cli_args *args, app_option_id id, uint64_t otherwise, uint64_t *count, hr_err *err)
{
    const char *text = args->value[id];
    char *end = NULL;
    if (text == NULL) {
        *count = otherwise;
        return HR_OK;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < 1) {
        hr_status status =
            HR_FAIL(err, USAGE, "--%s needs a whole number of at least 1, had '%.64s'", rows[id].name, text);
        hr_err_try(err, "--%s 1", rows[id].name);
        return status;
    }
    *count = (uint64_t)number;
    return HR_OK;
}

// ---- the preset -----------------------------------------------------------------------------------------------

static hr_status turn_knobs(const cli_args *args, hr_knobs *knobs, hr_err *err)
{
    for (unsigned k = 0; k < args->set_count; k++) {
        HR_TRY(hr_knobs_set_pair(knobs, args->sets[k], err));
    }
    return HR_OK;
}

static const hr_knob_row *row_of_pair(const char *pair)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(pair, "="), pair);
    return hr_knob_find(key, NULL);
}

// A setting without effect is told; the workbench says it beside the knob.
static void say_idle_knobs(const cli_args *args, const hr_knobs *knobs)
{
    for (unsigned k = 0; k < args->set_count && args->command->name[0] != '\0'; k++) {
        const hr_knob_row *row = row_of_pair(args->sets[k]);
        if (row != NULL && row->applies != NULL && !hr_knob_acts(knobs, row->id)) {
            (void)fprintf(stderr, "headroom: %s has no effect here: it applies %s.\n", row->key,
                          row->applies);
        }
    }
}

// What the preset itself wants to be known; the workbench says it with its description.
static void say_note(const cli_args *args, const hr_preset *preset)
{
    const char *note = hr_preset_note(preset);
    if (args->command->name[0] != '\0' && note[0] != '\0') {
        fputs("headroom: note: ", stderr);
        say_foreign(stderr, note, "");
        fputc('\n', stderr);
    }
}

void cli_show_problems(const cli_args *args, const char *name, const char *problems, const char *edit,
                       hr_err *err)
{
    say_foreign(stderr, problems, "\n\t");
    if (!cli_given(args, APP_JSON)) {
        (void)hr_err_set(err, err->status, err->file, err->line, "%.200s: see the lines above", name);
    }
    hr_err_try(err, "%s", edit);
}

static void show_problems(const cli_args *args, const char *name, const char *problems, hr_err *err)
{
    bool is_check = args->words[1] == name; // "config check NAME"
    const char *verb = is_check ? "config check" : args->command->name;
    bool needs_trust = strstr(problems, "--trust") != NULL && !cli_given(args, APP_TRUST);
    const char *edit = err->status == HR_MODEL
                           ? "edit the lines shown; headroom config init prints a model to begin with"
                           : "edit the line shown; headroom knobs lists every setting";
    cli_show_problems(args, name, problems, edit, err);
    if (needs_trust) {
        hr_err_try(err, "headroom %s%s%.400s --trust", verb, verb[0] != '\0' ? " " : "", name);
    }
}

// What is wrong with the file, then what is wrong with the model in it.
static hr_status open_preset(const cli_args *args, const char *name, hr_preset **out, hr_err *err)
{
    char *problems = NULL;
    hr_status status = (cli_given(args, APP_OPAQUE) ? hr_preset_open_opaque : hr_preset_open)(
        name, cli_given(args, APP_TRUST), out, &problems, err);
    if (status == HR_OK) {
        status = hr_preset_check_model(*out, &problems, err);
    }
    if (problems != NULL) {
        show_problems(args, name, problems, err);
        hr_preset_problems_free(problems);
    }
    return status;
}

hr_status cli_open(const cli_args *args, const char *name, cli_subject *out, hr_err *err)
{
    *out = (cli_subject){0};
    if (name == NULL) {
        hr_status status = HR_FAIL(err, USAGE, "%s needs a PRESET, had none", name_of(args->command));
        hr_err_try(err, "headroom %s demo", args->command->name);
        return status;
    }
    if (hr_file_kind_of(name) == HR_FILE_TRACE && hr_replay_recognises(name)) {
        hr_status status = HR_FAIL(err, USAGE, "%s needs a PRESET, and %.200s is read as a trace",
                                   name_of(args->command), name);
        hr_err_try(err, "headroom plan %.200s", name);
        return status;
    }
    hr_status status = open_preset(args, name, &out->preset, err);
    if (status == HR_OK) {
        out->knobs = *hr_preset_knobs(out->preset);
        status = turn_knobs(args, &out->knobs, err);
    }
    if (status == HR_OK) {
        say_note(args, out->preset);
        say_idle_knobs(args, &out->knobs);
    }
    if (status != HR_OK) {
        cli_close(out);
    }
    return status;
}

void cli_close(cli_subject *subject)
{
    hr_preset_close(subject->preset);
    subject->preset = NULL;
}
