// SPDX-License-Identifier: Apache-2.0
// Pages of section 1: the program, and one a command.
#include <stdio.h>
#include <string.h>

#include "headroom/scenario.h"

#include "app/cli/manual.h"
#include "app/cli/options.h"
#include "app/cli/roff.h"
#include "app/tui/shell/script_words.h"

enum { WORDS_MAX = 96 };

static void print_synopsis(const app_command *c)
{
    char usage[WORDS_MAX + 48];
    roff_section("synopsis");
    (void)snprintf(usage, sizeof usage, "headroom%s%s%s%s%s", c->name[0] != '\0' ? " " : "", c->name,
                   c->arguments[0] != '\0' ? " " : "", c->arguments, c->options != 0 ? " [options]" : "");
    roff_example(usage);
    if (c->name[0] == '\0') {
        roff_example("headroom COMMAND [arguments] [options]");
    }
}

static void print_options(const app_command *c)
{
    if (c->options == 0) {
        return;
    }
    roff_section("options");
    for (int id = 0; id < APP_OPTION_COUNT; id++) {
        const app_option *o = app_option_row((app_option_id)id);
        char words[WORDS_MAX];
        char letter[8] = "";
        if (!app_command_takes(c, (app_option_id)id)) {
            continue;
        }
        if (o->letter != 0) {
            (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
        }
        (void)snprintf(words, sizeof words, "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                       o->value != NULL ? o->value : "");
        roff_item(words, o->line);
    }
}

static void print_scenarios(void)
{
    roff_section("scenarios");
    roff_paragraph("TRACE is a file, or one of these situations, made anew each time:");
    for (size_t k = 0; hr_scenario_row(k) != NULL; k++) {
        const hr_scenario *s = hr_scenario_row(k);
        roff_item(s->name, s->line);
        roff_more("why", s->explanation);
        roff_more("look at", s->look_at);
    }
}

static void print_script(void)
{
    char words[WORDS_MAX];
    roff_section("script files");
    roff_paragraph("A line of the FILE behind --script is a ':' command, a '#' comment, or one of these:");
    for (size_t k = 0; script_word_row(k) != NULL; k++) {
        const script_word *w = script_word_row(k);
        (void)snprintf(words, sizeof words, "%s %s", w->word, w->example);
        roff_item(words, w->line);
    }
}

// ---- what only the program's own page has -----------------------------------------------------------------------

static void print_commands(void)
{
    unsigned count = 0;
    const app_command *commands = app_commands(&count);
    roff_section("commands");
    for (unsigned k = 1; k < count; k++) {
        char words[WORDS_MAX];
        (void)snprintf(words, sizeof words, "%s%s%s", commands[k].name,
                       commands[k].arguments[0] != '\0' ? " " : "", commands[k].arguments);
        roff_item(words, commands[k].line);
    }
}

typedef struct line {
    const char *name;
    const char *text;
} line;

static void print_lines(const char *heading, const line *lines, size_t count)
{
    roff_section(heading);
    for (size_t k = 0; k < count; k++) {
        roff_item(lines[k].name, lines[k].text);
    }
}

static void print_console(void)
{
    static const line keys[] = {
        {"Tab", "completes names of live tables, methods, options, knobs, their values, presets and files; "
                "where there is nothing to add, it lists them and says how the function around the cursor is "
                "called, or what the knob is"},
        {"Ctrl-C", "drops the line; while a chunk runs it ends that and keeps variables and the training. A "
                   "second one ends the process, another takes its place, and what was lost is said"},
        {"Ctrl-D", "on an empty line ends the console"},
        {"Ctrl-P, Ctrl-N, Ctrl-R", "lines that were typed before, those of earlier starts too. Other keys "
                                   "are those of editrc(5)"},
    };
    roff_section("console");
    roff_paragraph(
        "With -i Lua is typed line by line, under the limits of a recipe; paths count from the "
        "current folder. The value of an expression is shown. A chunk that is not whole goes on "
        "behind the prompt '|'. Errors name the line that the prompt had. Without a terminal there "
        "is no prompt, and the first error ends the console with the exit code of a recipe.");
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        roff_item(keys[k].name, keys[k].text);
    }
}

static void print_surroundings(void)
{
    static const line variables[] = {
        {"HEADROOM_DATA", "a folder with presets/, recipes/ and lessons/ that are found by name, before "
                          "those that were installed"},
        {"XDG_DATA_HOME",
         "headroom/presets, headroom/presets/cards, headroom/recipes and headroom/lessons in it are yours; "
         "~/.local/share without it"},
        {"XDG_STATE_HOME", "headroom/ in it has looks, history, lessons that were done and automatic saves; "
                           "~/.local/state without it"},
        {"XDG_CACHE_HOME", "headroom/ in it has what libraries answered and what this machine was measured "
                           "at; ~/.cache without it"},
        {"XDG_RUNTIME_DIR", "headroom/ in it has the sockets that `headroom watch` looks for"},
        {"NO_COLOR", "draw without colours, whatever its value is"},
        {"ONEDNN_MAX_CPU_ISA", "the most that the cpu device may use of the processor"},
        {"OMP_WAIT_POLICY", "passive unless you set it"},
    };
    static const line files[] = {
        {"share/headroom/presets",
         "presets, models and articles; cards/ with properties of cards that were dumped from them"},
        {"share/headroom/recipes", "recipes in Lua, for `headroom script`"},
        {"share/headroom/lessons", "the course, a folder a lesson, for `headroom lesson` and for Learn"},
        {"share/headroom/export", "torch_to_headroom.py and keras_to_headroom.py write a preset of a module "
                                  "or a model, with the Python that has it"},
    };
    print_lines("environment", variables, sizeof variables / sizeof *variables);
    print_lines("files", files, sizeof files / sizeof *files);
}

static void print_program(void)
{
    roff_paragraph("headroom shows what a training step of a neural network holds in memory, when, and why "
                   "it does not fit. "
                   "It plans the step to the byte, trains it, and shows both in a terminal.");
    roff_paragraph("PRESET is a name from `headroom presets`, a path with '/' or .yaml, a config.json of "
                   "Hugging Face or the folder that holds it, an .onnx file, a model of Keras (.keras, or "
                   "the .json of model.to_json()), a .gguf file, or a .safetensors file beside its "
                   "config.json; these are read as presets. "
                   "Without a command, PRESET is opened in the workbench, and so is a trace that "
                   "`headroom plan` takes: of a recorded step its card and its allocator can be turned.");
    print_commands();
}

// ---- one page ---------------------------------------------------------------------------------------------------

static void print_exit_codes(void)
{
    char code[16];
    roff_section("exit status");
    for (const cli_exit_row *row = cli_exit_rows(); row->line != NULL; row++) {
        (void)snprintf(code, sizeof code, "%d", row->code);
        roff_item(code, row->line);
    }
}

static void print_see_also(const app_command *c)
{
    const bool unnamed = c->name[0] == '\0';
    const roff_page pages[] = {{unnamed ? "headroom-plan" : "headroom", 1},
                               {"headroom-presets", 5},
                               {"headroom-lua", 3},
                               {"headroom-terms", 7},
                               {NULL, 0}};
    roff_see_also(pages);
}

void manual_print_command(const app_command *command)
{
    char name[MANUAL_NAME_MAX];
    const bool unnamed = command->name[0] == '\0';
    (void)snprintf(name, sizeof name, "headroom%s%s", unnamed ? "" : "-", command->name);
    roff_title(name, 1,
               unnamed ? "see, predict and turn the memory of neural-network training" : command->line);
    print_synopsis(command);
    roff_section("description");
    roff_paragraph(command->line);
    if (unnamed) {
        print_program();
    }
    print_options(command);
    if (command->word == APP_TRACE_WORD) {
        print_scenarios();
    }
    if (app_command_takes(command, APP_SCRIPT)) {
        print_script();
    }
    if (app_command_takes(command, APP_INTERACTIVE)) {
        print_console();
    }
    if (unnamed) {
        print_surroundings();
    }
    print_exit_codes();
    print_see_also(command);
}
