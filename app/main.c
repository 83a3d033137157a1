// SPDX-License-Identifier: Apache-2.0
// headroom: the command table, and the way into it.
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/file_kind.h"
#include "headroom/preset.h"
#include "headroom/session.h"
#include "headroom/status.h"
#include "headroom/words.h"

#include "app/cli/build_info.h"
#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/command.h"
#include "app/lua/console.h"
#include "app/lua/lua_script.h"

enum { PROGRAM_PATH_MAX = 4096 };

#define OF_A_PLAN   (OF_A_PRESET | APP_OPTION(OPAQUE))
#define OF_A_PRESET (APP_OPTION(SET) | APP_OPTION(AS) | APP_OPTION(TRUST))

// clang-format off
static const app_command commands[] = {
    {"", "[PRESET | TRACE]", "the workbench, on the last preset or the demo",
     OF_A_PRESET | APP_OPTION(THEME) | APP_OPTION(ASCII) | APP_OPTION(NO_COLOR) | APP_OPTION(NO_MOUSE) |
         APP_OPTION(RECIPE) | APP_OPTION(SCRIPT) | APP_OPTION(SIZE) | APP_OPTION(TERM) | APP_OPTION(CAST),
     APP_PRESET_WORD, NULL, cli_workbench},
    {"run", "PRESET", "train, and report what it took",
     OF_A_PRESET | APP_OPTION(STEPS) | APP_OPTION(JSON) | APP_OPTION(TRACE) | APP_OPTION(TIMES) | APP_OPTION(STYLE) |
         APP_OPTION(PLAIN),
     APP_PRESET_WORD, NULL, cli_run},
    {"plan", "PRESET", "say what a run would take, to the byte, without training, or what a recorded trace takes",
     OF_A_PLAN | APP_OPTION(STEPS) | APP_OPTION(JSON) | APP_OPTION(LISTING) | APP_OPTION(DIFF) | APP_OPTION(AT_PEAK) |
         APP_OPTION(REPEAT) | APP_OPTION(STYLE),
     APP_PRESET_WORD, NULL, cli_plan},
    {"fit", "PRESET", "search for the fastest way to run an update that fits, and for what memory costs in time",
     OF_A_PLAN | APP_OPTION(VRAM) | APP_OPTION(CARD) | APP_OPTION(KEEP) | APP_OPTION(MAX) | APP_OPTION(CARDS) |
         APP_OPTION(JSON),
     APP_PRESET_WORD, NULL, cli_fit},
    {"explain", "PRESET | LOG | SNAPSHOT",
     "say why it runs, or ran, out of memory: the cause, what shows it, and what was proved to help; exit code 1 when it did",
     OF_A_PLAN | APP_OPTION(STEPS) | APP_OPTION(ALLOCATOR) | APP_OPTION(APPLY) | APP_OPTION(JSON), APP_PRESET_WORD, NULL,
     cli_explain},
    {"compare", "A B",
     "two plans, reports or traces side by side: a PRESET, a PRESET,key=value,key=value, a report of --json, a trace",
     OF_A_PLAN | APP_OPTION(JSON), APP_PRESET_WORD, NULL, cli_compare},
    {"replay", "TRACE", "play a recorded trace on allocators, side by side; exit code 1 when none serves all of it",
     APP_OPTION(ALLOCATOR) | APP_OPTION(SET) | APP_OPTION(SWEEP) | APP_OPTION(AT_PEAK) | APP_OPTION(STYLE) |
         APP_OPTION(TRACE) | APP_OPTION(JSON) | APP_OPTION(ASCII),
     APP_TRACE_WORD, NULL, cli_replay},
    {"pack", "LIFETIMES.csv",
     "lay buffers into one block by their lifetimes; exit code 1 when nothing was found that fits",
     APP_OPTION(CAPACITY) | APP_OPTION(SECONDS) | APP_OPTION(SEED) | APP_OPTION(JSON) | APP_OPTION(ASCII), APP_FILE_WORD,
     NULL, cli_pack},
    {"export", "PRESET", "say what of a training is deployed, stripped or quantised, what it weighs and costs, and write it",
     OF_A_PRESET | APP_OPTION(SAVE) | APP_OPTION(STRIP) | APP_OPTION(QUANTIZE) | APP_OPTION(MERGE) |
         APP_OPTION(ADAPTERS) | APP_OPTION(RANKS) | APP_OPTION(OUT) | APP_OPTION(FORCE) | APP_OPTION(JSON),
     APP_PRESET_WORD, NULL, cli_export},
    {"script", "RECIPE [ARGUMENTS] | -i [PRESET]", "run a recipe in Lua: a FILE.lua, or one of ours by its name; or type one",
     APP_OPTION(INTERACTIVE) | APP_OPTION(MARKDOWN) | APP_OPTION(STUB), APP_RECIPE_WORD, NULL, cli_script},
    {"lesson", "[NAME | verify [NAME]]",
     "list the course, do a lesson, or verify that lessons keep what they promise; exit code 1 when one is left undone",
     APP_OPTION(BOOK), APP_LESSON_WORD, NULL, cli_lesson},
    {"presets", "[NAME]", "list the presets that can be named, or say what one is about",
     APP_OPTION(TRUST) | APP_OPTION(JSON), APP_PRESET_WORD, NULL, cli_presets},
    {"cards", "[NAME]", "list the cards whose memory a device can take on, or print one as a file",
     OF_A_PLAN | APP_OPTION(FIT) | APP_OPTION(SORT) | APP_OPTION(REVERSE) | APP_OPTION(FAMILY) | APP_OPTION(MIN_VRAM) |
         APP_OPTION(JSON),
     APP_NO_WORD, NULL, cli_cards},
    {"devices", "", "list what can run a step here", APP_OPTION(JSON), APP_NO_WORD, NULL, cli_devices},
    {"knobs", "[KEY]", "list every setting, or explain one",
     APP_OPTION(JSON) | APP_OPTION(SCHEMA) | APP_OPTION(MARKDOWN), APP_KNOB_WORD, NULL, cli_knobs},
    {"terms", "[NAME]", "say what a word on the screen means, and what others call it",
     APP_OPTION(JSON) | APP_OPTION(MARKDOWN),
     APP_TERM_WORD, NULL, cli_terms},
    {"config", "ACTION [PRESET [FORM]]", "check a preset or a card's file, show a preset resolved, export it as a preset or a framework's lines, or init: print one to begin with",
     OF_A_PLAN | APP_OPTION(ORIGIN) | APP_OPTION(JSON), APP_OWN_WORD, "check show export init", cli_config},
    {"doctor", "", "say what headroom finds here: terminal, devices, memory, files",
     APP_OPTION(CALIBRATE) | APP_OPTION(SECONDS) | APP_OPTION(SET) | APP_OPTION(JSON), APP_NO_WORD, NULL, cli_doctor},
    {"watch", "[SOCKET | TRACE]",
     "the workbench on a training elsewhere on this machine, read-only; without a name, the only one there is, or which",
     APP_OPTION(THEME) | APP_OPTION(ASCII) | APP_OPTION(NO_COLOR) | APP_OPTION(NO_MOUSE) | APP_OPTION(WAIT),
     APP_FILE_WORD, NULL, cli_watch},
    {"completion", "SHELL", "print a completion script for bash, zsh or fish", 0, APP_OWN_WORD, "bash zsh fish",
     cli_completion},
    {"manual", "[PAGE]", "print a page of the manual for man(1), or list the pages: `headroom manual headroom-plan.1 | man -l -`",
     0, APP_PAGE_WORD, NULL, cli_manual},
};
// clang-format on

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

// OpenMP comes with oneDNN when a cpu device is opened, and reads its environment then. Its default keeps every core
// spinning between two operations. A value of the user's own stays.
static void wait_passively(void)
{
    (void)setenv("OMP_WAIT_POLICY", "passive", 0);
}

static void find_presets(void)
{
    char path[PROGRAM_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        *strrchr(path, '/') = '\0';
        hr_preset_search_beside(path);
    }
}

// A word that is no command may be a preset for the workbench.
static bool names_preset(const char *word)
{
    size_t count = 0;
    bool found = hr_preset_is_path(word) || hr_file_kind_of(word) == HR_FILE_TRACE;
    hr_preset_entry *entries = NULL;
    if (found || hr_preset_list(NULL, &entries, &count, NULL) != HR_OK) {
        return found;
    }
    for (size_t k = 0; k < count && !found; k++) {
        found = strcmp(entries[k].name, word) == 0;
    }
    hr_preset_list_free(entries);
    return found;
}

// Words that others have for what a command of ours does.
static const char *named_elsewhere(const char *word)
{
    static const char *const rows[][2] = {{"train", "run"}, {"estimate", "plan"}, {"predict", "plan"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(word, rows[k][0]) == 0) {
            return rows[k][1];
        }
    }
    return NULL;
}

// Its own refusal names one that was meant, or the list.
static void name_near_preset(const char *word, hr_err *err)
{
    static const char plan[] = "headroom plan ";
    hr_preset *opened = NULL;
    hr_err refused = {0};
    if (hr_preset_open(word, false, &opened, NULL, &refused) == HR_OK) {
        hr_preset_close(opened);
    } else if (strncmp(refused.hint, plan, sizeof plan - 1) == 0) {
        hr_err_try(err, "headroom %s", refused.hint + sizeof plan - 1);
    }
}

// `next`: the word behind it; NULL: none.
static int refuse(const char *word, const char *next)
{
    const char *names[COMMAND_COUNT];
    hr_err err;
    for (unsigned k = 0; k < COMMAND_COUNT; k++) {
        names[k] = commands[k].name;
    }
    const char *near = hr_word_nearest(word, names + 1, COMMAND_COUNT - 1);
    (void)HR_FAIL(&err, USAGE, "there is no command or preset '%.64s'%s%s%s", word,
                  near == NULL ? "" : " — did you mean '", near == NULL ? "" : near,
                  near == NULL ? "" : "'?");
    const char *other = named_elsewhere(word);
    if (near != NULL) {
        hr_err_try(&err, "headroom %s -h", near);
    } else if (other != NULL) {
        hr_err_try(&err, "headroom %s %.64s", other, next == NULL ? "demo" : next);
    } else {
        name_near_preset(word, &err);
    }
    return say_error(&err, false);
}

static int dispatch(int argc, char **argv)
{
    static char unnamed[] = "";
    const char *word = argc > 1 ? argv[1] : "";
    const app_command *command = word[0] == '\0' ? NULL : app_command_find(word);
    if (command != NULL) {
        return command->run(argc - 1, argv + 1);
    }
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0) {
        cli_help(NULL, strcmp(word, "--help") == 0);
        return 0;
    }
    if (strcmp(word, "--version") == 0) {
        build_info_print();
        return 0;
    }
    if (argc > 1 && word[0] != '-' && !names_preset(word)) {
        return refuse(word, argc > 2 && argv[2][0] != '-' ? argv[2] : NULL);
    }
    argv[0] = unnamed;
    return cli_workbench(argc, argv);
}

// A plan takes and gives back a few megabytes, hundreds of them a second: they stay with the program, where glibc
// would give them to the kernel and ask again (GPT-2 1.5B: 10 ms a plan, 2 with this).
static void keep_memory(void)
{
#ifdef __GLIBC__
    enum { KEPT_BYTES = 64 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

// Our parent may have it ignored, and then a child's exit status is lost.
static void watch_children(void)
{
    (void)signal(SIGCHLD, SIG_DFL);
}

// A file that becomes larger than allowed (ulimit -f) is a call that fails, and says which file; the signal would end the
// program before a handler is set.
static void outlive_large_files(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
}

static bool speaks_json;

static void say_at_end(const hr_err *err)
{
    (void)say_error(err, speaks_json);
    (void)fflush(stdout);
}

// The last that is said, where a library ends the process, is said as every error is.
static void speak_at_end(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        speaks_json = speaks_json || strcmp(argv[k], "--json") == 0;
    }
    hr_err_at_end(say_at_end);
}

int main(int argc, char **argv)
{
    app_set_commands(commands, COMMAND_COUNT);
    watch_children();
    outlive_large_files();
    wait_passively();
    keep_memory();
    find_presets();
    if (argc > 1 && strcmp(argv[1], "@recipe") == 0) {
        speak_at_end(0, NULL);
        return say_done(lua_script_serve(argc - 2, argv + 2));
    }
    if (argc > 1 && strcmp(argv[1], "@console") == 0) {
        speak_at_end(0, NULL);
        return say_done(lua_console_serve(argc - 2, argv + 2));
    }
    if (argc > 1 && argv[1][0] == '@') { // a process of ours, spawned by another
        return hr_session_serve(argv[1] + 1, &lua_script_guest);
    }
    speak_at_end(argc, argv);
    return say_done(dispatch(argc, argv));
}
