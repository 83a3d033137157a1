// SPDX-License-Identifier: Apache-2.0
// completion: scripts for three shells, generated from the tables of commands, options and knobs. Presets are asked
// of the program when a key is pressed, so that new ones are there at once.
#include <stdio.h>
#include <string.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/scenario.h"
#include "headroom/terms.h"

#include "app/cli/cli.h"
#include "app/cli/lesson.h"
#include "app/cli/manual.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

static const char ask_presets[] = "headroom presets 2>/dev/null | cut -d' ' -f1";

static void print_command_names(void)
{
    unsigned count = 0;
    const app_command *commands = app_commands(&count);
    for (unsigned k = 1; k < count; k++) {
        printf("%s%s", k > 1 ? " " : "", commands[k].name);
    }
}

static void print_option_words(const app_command *c)
{
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(c, (app_option_id)id)) {
            printf("--%s ", app_option_row((app_option_id)id)->name);
        }
    }
    fputs("--help", stdout);
}

// "optimizer.kind=sgd optimizer.kind=momentum … batch.size="
static void print_settings(void)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        if (rows[k].type != HR_KNOB_CHOICE) {
            printf("%s= ", rows[k].key);
        }
        for (int j = 0; rows[k].type == HR_KNOB_CHOICE && rows[k].choices[j] != NULL; j++) {
            printf("%s=%s ", rows[k].key, rows[k].choices[j]);
        }
    }
}

static void print_word(const char *name, void *context)
{
    (void)context;
    printf("%s ", name);
}

// The words that a command's bare words are taken from, as shell text.
static void print_words(const app_command *c)
{
    size_t count = 0;
    switch (c->word) {
    case APP_PRESET_WORD:
        printf("$(%s)", ask_presets);
        break;
    case APP_KNOB_WORD:
        for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
            printf("%s ", hr_knob_rows(NULL)[k].key);
        }
        break;
    case APP_TERM_WORD: {
        const hr_term *terms = hr_terms(&count);
        for (size_t k = 0; k < count; k++) {
            printf("%s ", terms[k].name);
        }
        break;
    }
    case APP_TRACE_WORD:
        for (const hr_scenario *s = hr_scenario_row(count); s != NULL; s = hr_scenario_row(++count)) {
            printf("%s ", s->name);
        }
        break;
    case APP_PAGE_WORD:
        manual_list_pages(print_word, NULL);
        break;
    case APP_RECIPE_WORD: // presets are for -i
        (void)hr_recipe_list(print_word, NULL);
        break;
    case APP_LESSON_WORD:
        fputs("verify ", stdout);
        lessons_list_names(print_word, NULL);
        break;
    case APP_OWN_WORD:
        fputs(c->words, stdout);
        break;
    case APP_NO_WORD:
    case APP_FILE_WORD:
        break;
    }
}

// ---- bash -----------------------------------------------------------------------------------------------------

static void bash_case(const app_command *c)
{
    printf("    %s)\n        words=\"", c->name[0] != '\0' ? c->name : "*");
    print_words(c);
    if (app_command_takes(c, APP_INTERACTIVE)) {
        printf("$(%s)", ask_presets);
    }
    fputs("\"\n        options=\"", stdout);
    print_option_words(c);
    fputs("\" ;;\n", stdout);
}

static void print_bash(void)
{
    unsigned count = 0;
    const app_command *commands = app_commands(&count);
    fputs(
        "# bash completion for headroom; source it, or put it into a bash-completion folder as `headroom`.\n"
        "_headroom() {\n"
        "    local cur prev words options commands settings\n"
        "    COMPREPLY=()\n"
        "    cur=${COMP_LINE:0:COMP_POINT}; cur=${cur##* }\n"
        "    prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    commands=\"",
        stdout);
    print_command_names();
    fputs("\"\n    settings=\"", stdout);
    print_settings();
    fputs("\"\n    case ${COMP_WORDS[1]} in\n", stdout);
    for (unsigned k = count; k-- > 0;) {
        if (commands[k].name[0] != '\0') {
            bash_case(&commands[k]);
        }
    }
    bash_case(&commands[0]);
    fputs("    esac\n"
          "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
          "        words=\"$commands $words\"\n"
          "    fi\n"
          "    if [[ $prev == -s || $prev == --set || $cur == *.*=* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$settings\" -- \"$cur\"))\n"
          "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
          "        # `=` parts words in bash: only what follows it is replaced\n"
          "        [[ $cur == *=* ]] && COMPREPLY=(\"${COMPREPLY[@]#*=}\")\n"
          "    elif [[ $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
          "    fi\n"
          "}\n"
          "complete -F _headroom headroom\n",
          stdout);
}

// ---- zsh ------------------------------------------------------------------------------------------------------

// Inside a zsh specification in single quotes.
static void zsh_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else if (strchr("[]:\\", *text) != NULL) {
            printf("\\%c", *text);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_option(const app_option *o)
{
    const char *tail = o->value == NULL                    ? ""
                       : strncmp(o->value, "KEY", 3) == 0  ? ":knob:_headroom_settings"
                       : strncmp(o->value, "FILE", 4) == 0 ? ":file:_files"
                                                           : ":value:";
    if (o->letter != 0) {
        printf(" '*-%c[", o->letter);
        zsh_text(o->line);
        printf("]%s'", tail);
    }
    printf(" '%s--%s[", o->letter != 0 ? "*" : "", o->name);
    zsh_text(o->line);
    printf("]%s'", tail);
}

static void zsh_case(const app_command *c)
{
    printf("    %s) _arguments", c->name[0] != '\0' ? c->name : "*");
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        if (app_command_takes(c, (app_option_id)id)) {
            zsh_option(app_option_row((app_option_id)id));
        }
    }
    if (c->word == APP_PRESET_WORD) {
        fputs(" '*:preset:_headroom_presets' ;;\n", stdout);
        return;
    }
    fputs(" '*:word:{ local -a w; w=(", stdout);
    print_words(c);
    fputs("); compadd -a w; ", stdout);
    fputs(app_command_takes(c, APP_INTERACTIVE) ? "_headroom_presets }' ;;\n" : "_files }' ;;\n", stdout);
}

static void print_zsh(void)
{
    unsigned count = 0;
    const app_command *commands = app_commands(&count);
    fputs("#compdef headroom\n"
          "# zsh completion for headroom; put it into a folder of $fpath as `_headroom`.\n"
          "_headroom_settings() { local -a s; s=(",
          stdout);
    print_settings();
    printf("); compadd -S '' -a s }\n"
           "_headroom_presets() { local -a w; w=($(%s)); compadd -a w; _files }\n",
           ask_presets);
    fputs("_headroom() {\n"
          "  local -a commands\n"
          "  commands=(\n",
          stdout);
    for (unsigned k = 1; k < count; k++) {
        printf("    '%s:", commands[k].name);
        zsh_text(commands[k].line);
        fputs("'\n", stdout);
    }
    fputs("  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe command commands\n"
          "    _headroom_presets\n"
          "    return\n"
          "  fi\n"
          "  local command=$words[2]\n"
          "  shift words; (( CURRENT-- ))\n"
          "  case $command in\n",
          stdout);
    for (unsigned k = 1; k < count; k++) {
        zsh_case(&commands[k]);
    }
    zsh_case(&commands[0]);
    fputs("  esac\n}\n_headroom \"$@\"\n", stdout);
}

// ---- fish -----------------------------------------------------------------------------------------------------

// Inside single quotes.
static void fish_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
}

static void fish_condition(const app_command *c)
{
    if (c->name[0] == '\0') {
        fputs("complete -c headroom -n __fish_use_subcommand", stdout);
    } else {
        printf("complete -c headroom -n '__fish_seen_subcommand_from %s'", c->name);
    }
}

static void fish_command(const app_command *c)
{
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        const app_option *o = app_option_row((app_option_id)id);
        if (!app_command_takes(c, (app_option_id)id)) {
            continue;
        }
        fish_condition(c);
        if (o->letter != 0) {
            printf(" -s %c", o->letter);
        }
        printf(" -l %s -d '", o->name);
        fish_text(o->line);
        fputs("'", stdout);
        if (id == APP_SET) {
            fputs(" -x -a '", stdout);
            print_settings();
            fputs("'", stdout);
        } else if (o->value != NULL) {
            fputs(" -r", stdout);
        }
        putchar('\n');
    }
    if (c->word != APP_NO_WORD && c->word != APP_FILE_WORD) {
        const bool presets = c->word == APP_PRESET_WORD || app_command_takes(c, APP_INTERACTIVE);
        fish_condition(c);
        printf(" -a '%s", presets ? "(headroom presets 2>/dev/null | string split -f1 \" \") " : "");
        if (c->word != APP_PRESET_WORD) {
            print_words(c);
        }
        fputs("'\n", stdout);
    }
}

static void print_fish(void)
{
    unsigned count = 0;
    const app_command *commands = app_commands(&count);
    puts("# fish completion for headroom; put it into ~/.config/fish/completions/headroom.fish.");
    for (unsigned k = 1; k < count; k++) {
        printf("complete -c headroom -n __fish_use_subcommand -a %s -d '", commands[k].name);
        fish_text(commands[k].line);
        puts("'");
    }
    for (unsigned k = 0; k < count; k++) {
        fish_command(&commands[k]);
    }
}

// ---- which one ------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static hr_status complete(const char *shell, hr_err *err)
{
    for (size_t k = 0; shell != NULL && k < sizeof shells / sizeof *shells; k++) {
        if (strcmp(shells[k].name, shell) == 0) {
            shells[k].print();
            return HR_OK;
        }
    }
    hr_status status =
        HR_FAIL(err, USAGE, "completion needs bash, zsh or fish, had %s", shell == NULL ? "nothing" : shell);
    hr_err_try(err, "headroom completion bash");
    return status;
}

int cli_completion(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    hr_status status = next == CLI_GO_ON ? complete(args.words[0], &err) : HR_USAGE;
    return status == HR_OK ? 0 : say_error(&err, false);
}
