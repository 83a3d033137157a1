// SPDX-License-Identifier: Apache-2.0
// The reference of hr as Markdown: names with their examples, and the fields of a result.
#include <string.h>

#include "app/lua/api.h"
#include "app/lua/described.h"
#include "app/lua/events.h"

// A cell of a table: a bar would end it.
static void print_cell(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            fputc('\\', to);
        }
        fputc(*text, to);
    }
}

static void print_row(FILE *to, const char *name, const char *type, const char *line)
{
    fprintf(to, "| `%s` | ", name);
    print_cell(to, type);
    fputs(" | ", to);
    print_cell(to, line);
    fputs(" |\n", to);
}

static void print_list(FILE *to, const lua_script_field *fields)
{
    for (; fields->name != NULL; fields++) {
        print_row(to, fields->name, fields->type, fields->line);
    }
}

// ---- names --------------------------------------------------------------------------------------------------------

static void print_call(FILE *to, const script_api_row *row)
{
    const bool table_alone = row->arguments != NULL && row->arguments[0] == '{';
    if (row->arguments == NULL) {
        fprintf(to, "### hr.%s\n\n", row->name);
    } else if (table_alone) {
        fprintf(to, "### hr.%s%s\n\n", row->name, row->arguments);
    } else {
        fprintf(to, "### hr.%s(%s)\n\n", row->name, row->arguments);
    }
}

static void print_name(FILE *to, const script_api_row *row)
{
    print_call(to, row);
    fprintf(to, "%s%s", row->line, row->result[0] != '\0' ? "\n\nGives: `" : "");
    if (row->result[0] != '\0') {
        fprintf(to, "%s`", row->result);
    }
    fputs("\n\n", to);
    if (row->options != NULL) {
        fputs("| option | type | meaning |\n|---|---|---|\n", to);
        print_list(to, row->options);
        fputs("\n", to);
    }
    fprintf(to, "```lua\n%s\n```\n\n", row->example);
}

// ---- fields of a result -------------------------------------------------------------------------------------------

static void print_fields(FILE *to, const char *above, const hr_field *fields)
{
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        char name[DESCRIBED_NAME_MAX];
        if (f->name == NULL) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s%s%s", above, f->name,
                       f->kind == HR_FIELD_ROWS || f->kind == HR_FIELD_LIST ? "[k]" : "");
        if (described_is_table(f)) {
            (void)strncat(name, ".", sizeof name - strlen(name) - 1);
            print_fields(to, name, f->fields);
        } else {
            print_row(to, name, described_type(f), described_line(f->name));
        }
    }
}

static void print_results(FILE *to)
{
    fputs(
        "## Fields of a result\n\n"
        "What `hr.plan` and `hr.run` give: the names of `headroom run --json`. What does not apply is nil. "
        "A name that is "
        "not here is an error that says what was meant. `result.fits` is whether it did not run out of "
        "memory; a plan or "
        "run that did has `result.oom`, whose fixes `hr.apply` turns; then there is no peak "
        "(`memory.peak_in_use_bytes` is nil), and `result.oom.needed_bytes` is the memory that it needs.\n\n"
        "| field | type | meaning |\n|---|---|---|\n",
        to);
    print_fields(to, "", hr_report_fields());
}

// ---- events ---------------------------------------------------------------------------------------------------------

static void print_events(FILE *to)
{
    fputs("## Events\n\n"
          "Of `hr.on`. What an event does not have at the moment is nil; a name that is not here is an "
          "error.\n\n",
          to);
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        const script_event_row *row = &script_event_rows[k];
        fprintf(to, "### \"%s\"\n\n%s\n\n", row->name, row->line);
        if (row->fields == NULL) {
            fputs("Its fields are those of `result.oom`.\n\n", to);
            continue;
        }
        fputs("| field | type | meaning |\n|---|---|---|\n", to);
        print_list(to, row->fields);
        fputc('\n', to);
    }
    fputs("Every event but `oom` also has, looked up when it is read and only while the callback runs:\n\n"
          "| field | type | meaning |\n|---|---|---|\n",
          to);
    print_list(to, script_now_fields);
    fputc('\n', to);
}

static void print_training(FILE *to)
{
    fputs("## A training\n\n"
          "`hr.preset` brings a model and knobs, `hr.plan` says what a step of them takes, `hr.run` trains. "
          "`hr.run{steps = N}` does N steps, each with one update of the weights; `hr.run{epochs = N}` goes "
          "N times through the data. An epoch has as many steps as the data has samples divided by "
          "batch.size times batch.accumulate (the field `steps_per_epoch` of events); on the device `plan` "
          "no data is read, and there are none. A second `hr.run` goes on with the same weights.\n\n"
          "Events come in this order: `train_begin`, `rebuild`; for each epoch `epoch_begin`, for each of "
          "its steps `step_begin`, `before_update` and `step`, then `evaluation` and `epoch`; `train_end`. "
          "A knob that is turned in a function of `hr.on` holds from the next step on, one of `step_begin` "
          "for the step that begins.\n\n",
          to);
}

void lua_script_print_reference(FILE *to)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    fputs(
        "A recipe is a file of Lua 5.4 that `headroom script FILE.lua` runs, in a sandbox and a process of "
        "its own: "
        "`string`, `table`, `math`, `utf8` and `coroutine` are there, `io`, `os` and `debug` are not. It "
        "writes below "
        "`./headroom-out`. It reads what lies there under that name, else what lies below its own folder, "
        "else what was "
        "typed on the command line. Options are knobs (`batch = {size = 64}` or `[\"batch.size\"] = 64`) and "
        "the names of the tables here. Every example runs by itself.\n\n"
        "`headroom script -i [PRESET]` takes the same line by line. The value of an expression is shown, Tab "
        "completes what stands before the cursor and says how a function is called, Ctrl-C ends what runs "
        "and Ctrl-D the console. A `local` lasts as long as its chunk; paths count from the current "
        "folder.\n\n",
        to);
    print_training(to);
    fputs("## Names\n\n", to);
    for (size_t k = 0; k < count; k++) {
        print_name(to, &rows[k]);
    }
    print_events(to);
    print_results(to);
}
