// SPDX-License-Identifier: Apache-2.0
// One row per command of the program, one row per option: help, completion, parsing and dispatch are generated
// from the two tables. The commands' rows stand in main.c.
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

// X(ID, letter, "name", "VALUE", "line"): letter 0: no short form; VALUE NULL: a switch.
#define APP_OPTION_MAP(X)                                                                                    \
    X(SET, 's', "set", "KEY=VALUE", "turn a knob; may be given again (see `headroom knobs`)")                \
    X(AS, 0, "as", "FRAMEWORK", "whose rules decide what is held (execution.as), on whose allocator")        \
    X(STEPS, 0, "steps", "N", "training steps, counted from the beginning of the training")                  \
    X(JSON, 0, "json", NULL, "the result as JSON on stdout")                                                 \
    X(TRACE, 0, "trace", "FILE", "write every allocation and release to a file: .csv, .json, NAME:FILE")     \
    X(TIMES, 0, "times", "FILE", "write how long each instruction took and was planned to take, to a .csv")  \
    X(PLAIN, 0, "plain", NULL, "say everything in whole sentences, for logs and for ears")                   \
    X(LISTING, 0, "listing", NULL, "print the step program, every allocation an instruction")                \
    X(DIFF, 0, "diff", "KEY=VALUE", "with --listing: what turning that knob changes in it")                  \
    X(AT_PEAK, 0, "at-peak", NULL, "print all that is alive at the peak, or the heap as it is then")         \
    X(REPEAT, 0, "repeat", "N", "time N plans of one step, the i-th at batch.size + i mod 16")               \
    X(SCHEMA, 0, "schema", NULL, "a JSON schema for presets")                                                \
    X(MARKDOWN, 0, "markdown", NULL, "a table for a document")                                               \
    X(STUB, 0, "stub", NULL, "what recipes can call, with types, for the Lua language server")               \
    X(ORIGIN, 0, "origin", NULL, "say where each value comes from")                                          \
    X(TRUST, 0, "trust", NULL, "let the preset name files outside its own folder")                           \
    X(OPAQUE, 0, "opaque", NULL, "plan an ONNX file whose nodes are not all known, and say how much is not") \
    X(CALIBRATE, 0, "calibrate", NULL, "measure what this machine takes, so that plans for it say seconds")  \
    X(SECONDS, 0, "seconds", "S", "take at most so long")                                                    \
    X(ALLOCATOR, 0, "allocator", "A,B,C", "the allocators to play it on; all of them when none is named")    \
    X(SWEEP, 0, "sweep", "KEY=V1,V2", "a column for each value of an allocator's knob; may be given again")  \
    X(STYLE, 0, "style", "NAME", "at an out-of-memory, the heap as tensorflow or pytorch writes it down")    \
    X(CAPACITY, 0, "capacity", "SIZE", "enough when it fits that; without it as low as can be")              \
    X(SEED, 0, "seed", "N", "of what is drawn while searching")                                              \
    X(THEME, 0, "theme", "NAME", "colours of the workbench: auto, dark, light, safe, safe-light, mono")      \
    X(ASCII, 0, "ascii", NULL, "draw with ASCII only")                                                       \
    X(NO_COLOR, 0, "no-color", NULL, "draw without colours, as NO_COLOR does")                               \
    X(NO_MOUSE, 0, "no-mouse", NULL, "leave the mouse to the terminal")                                      \
    X(WAIT, 0, "wait", NULL, "until there is a training to watch")                                           \
    X(SCRIPT, 0, "script", "FILE",                                                                           \
      "play keys and commands from a file, on the device plan, without a terminal")                          \
    X(RECIPE, 0, "recipe", "RECIPE", "a recipe in Lua that begins with the training, beside it")             \
    X(SIZE, 0, "size", "WxH", "of the screen that --script plays on; 80x24 without it")                      \
    X(TERM, 0, "term", "NAME", "the type of that terminal; xterm-256color without it")                       \
    X(CAST, 0, "cast", "FILE", "with --script: what the terminal was sent, as an asciicast")                 \
    X(SORT, 0, "sort", "KEY", "by vram, bandwidth, flops or year, the most first; or by name")               \
    X(REVERSE, 'r', "reverse", NULL, "in the opposite order")                                                \
    X(FAMILY, 0, "family", "NAME", "only cards of a family, such as ampere")                                 \
    X(MIN_VRAM, 0, "min-vram", "SIZE", "only cards with at least so much memory")                            \
    X(FIT, 0, "fit", "PRESET",                                                                               \
      "which of the cards hold it, and how large a batch; of a trace, which hold that")                      \
    X(VRAM, 0, "vram", "SIZE", "what the allocator may take, such as 8GiB; the preset's own without it")     \
    X(CARD, 0, "card", "NAME", "of which card, with its rates (see `headroom cards`)")                       \
    X(KEEP, 0, "keep", "A,B", "leave these as they are: batch, precision, optimizer, a key, …")              \
    X(MAX, 0, "max", "KNOB", "how large it can be, and with what: batch.size, model.sequence, …")            \
    X(CARDS, 0, "cards", NULL, "which cards hold it, and which of the ways found is the fastest on each")    \
    X(SAVE, 0, "save", "FILE", "what was trained: a file that train.save wrote")                             \
    X(STRIP, 0, "strip", NULL, "weights and running statistics alone: so it is always")                      \
    X(QUANTIZE, 0, "quantize", "MODE",                                                                       \
      "weights of dense layers and tables as int8, int8_weights or int4_weights")                            \
    X(MERGE, 0, "merge", NULL,                                                                               \
      "what adapters learned goes into the weights: the model without compress.lora")                        \
    X(ADAPTERS, 0, "adapters", NULL, "the adapters alone, a few MB, and what they go with")                  \
    X(RANKS, 0, "ranks", NULL, "of each layer: bytes and error of its weights as factors of a lower rank")   \
    X(OUT, 'o', "out", "FILE", "write it there; without it, only say what it would be")                      \
    X(FORCE, 0, "force", NULL, "replace whatever file is there")                                             \
    X(APPLY, 0, "apply", "N", "play it again with fix N of those that it names")                             \
    X(BOOK, 0, "book", NULL, "the whole course as one document in Markdown")                                 \
    X(INTERACTIVE, 'i', "interactive", NULL, "type Lua line by line, on a PRESET or without one")

typedef enum app_option_id {
#define X(id, letter, name, value, line) APP_##id,
    APP_OPTION_MAP(X)
#undef X
        APP_OPTION_COUNT
} app_option_id;

typedef struct app_option {
    char letter;
    const char *name;  // "set", without dashes
    const char *value; // "KEY=VALUE"; NULL: a switch
    const char *line;
} app_option;

// What a command's bare words are, for completion.
typedef enum app_word {
    APP_NO_WORD,
    APP_PRESET_WORD,
    APP_FILE_WORD,
    APP_TRACE_WORD,  // a file, or a scenario's name
    APP_RECIPE_WORD, // a file, or a recipe's name
    APP_LESSON_WORD, // a folder, or a lesson's name
    APP_TERM_WORD,
    APP_KNOB_WORD,
    APP_PAGE_WORD, // of the manual
    APP_OWN_WORD
} app_word;

typedef struct app_command {
    const char *name;      // "plan"; "" is the workbench, started without a command
    const char *arguments; // "PRESET", before the options; "": none
    const char *line;      // one line of help
    uint64_t options;      // set of APP_OPTION(id)
    app_word word;
    const char *words;                 // APP_OWN_WORD: "check show init"; NULL elsewhere
    int (*run)(int argc, char **argv); // argv[0] is the command's name; returns the exit code
} app_command;

#define APP_OPTION(id) (UINT64_C(1) << APP_##id)
_Static_assert(APP_OPTION_COUNT <= 64, "options fit the set");

// The rows, borrowed until the program ends; before anything asks for them.
void app_set_commands(const app_command *rows, unsigned count);
const app_command *app_commands(unsigned *count);
const app_command *app_command_find(const char *name); // NULL when there is none
bool app_command_takes(const app_command *command, app_option_id id);
const app_option *app_option_row(app_option_id id);

#endif
