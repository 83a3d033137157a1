// SPDX-License-Identifier: Apache-2.0
// presets, devices: what can be named.
#include <stdio.h>
#include <string.h>

#include "headroom/devices.h"
#include "headroom/preset.h"
#include "headroom/words.h"

#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/tui/base/format.h"

// Reads the command line of a command that takes so many words. *exit_code is what to return when there is no going on.
static bool begin(int argc, char **argv, unsigned words, cli_args *args, int *exit_code)
{
    hr_err err;
    cli_next next = cli_parse(argc, argv, words, args, &err);
    *exit_code = next == CLI_WRONG ? say_error(&err, cli_given(args, APP_JSON)) : 0;
    return next == CLI_GO_ON;
}

// ---- presets --------------------------------------------------------------------------------------------------

enum { NAME_COLUMNS = 25 };

static void print_presets(const hr_preset_entry *entries, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        char name[sizeof entries[k].name];
        memcpy(name, entries[k].name, sizeof name);
        printf("%-*s ", NAME_COLUMNS, hr_plain_text(name, ""));
        if (strlen(name) > NAME_COLUMNS) { // its title begins below it
            printf("\n%*s", NAME_COLUMNS + 1, "");
        }
        say_paragraph(entries[k].title, NAME_COLUMNS + 1);
    }
}

static void print_presets_json(const hr_preset_entry *entries, size_t count)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < count; k++) {
        emit_row(&e, NULL);
        emit_text(&e, "name", entries[k].name);
        emit_text(&e, "title", entries[k].title);
        emit_text(&e, "folder", entries[k].folder);
        emit_end_object(&e);
    }
    emit_end_array(&e);
}

// Only what its files turn: the rest is the table's.
static void print_turned(const hr_preset *preset)
{
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[HR_KNOB_TEXT_MAX];
        if (hr_preset_origin(preset, (hr_knob_id)k)->file[0] != '\0') {
            printf("  %s=", hr_knob_rows(NULL)[k].key);
            say_foreign(stdout, hr_knob_format(hr_preset_knobs(preset), (hr_knob_id)k, value), "");
            putchar('\n');
        }
    }
}

static void print_about(const hr_preset *preset)
{
    say_paragraph(hr_preset_title(preset)[0] != '\0' ? hr_preset_title(preset) : hr_preset_name(preset), 0);
    if (hr_preset_description(preset)[0] != '\0') {
        putchar('\n');
        say_paragraph(hr_preset_description(preset), 0);
    }
    if (hr_preset_note(preset)[0] != '\0') {
        putchar('\n');
        say_paragraph(hr_preset_note(preset), 0);
    }
    printf("\n");
    say_foreign(stdout, hr_preset_path(preset), "");
    puts(" turns");
    print_turned(preset);
}

static void print_about_json(const hr_preset *preset)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "name", hr_preset_name(preset));
    emit_text(&e, "title", hr_preset_title(preset));
    emit_text(&e, "description", hr_preset_description(preset));
    emit_text(&e, "note", hr_preset_note(preset));
    emit_text(&e, "file", hr_preset_path(preset));
    emit_object(&e, "knobs");
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[HR_KNOB_TEXT_MAX];
        if (hr_preset_origin(preset, (hr_knob_id)k)->file[0] != '\0') {
            emit_text(&e, hr_knob_rows(NULL)[k].key,
                      hr_knob_format(hr_preset_knobs(preset), (hr_knob_id)k, value));
        }
    }
    emit_end_object(&e);
    emit_end_object(&e);
}

static int about(const cli_args *args)
{
    cli_subject subject;
    hr_err err;
    if (cli_open(args, args->words[0], &subject, &err) != HR_OK) {
        return say_error(&err, cli_given(args, APP_JSON));
    }
    if (cli_given(args, APP_JSON)) {
        print_about_json(subject.preset);
    } else {
        print_about(subject.preset);
    }
    cli_close(&subject);
    return 0;
}

int cli_presets(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    int exit_code = 0;
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    if (!begin(argc, argv, 1, &args, &exit_code)) {
        return exit_code;
    }
    if (args.word_count > 0) {
        return about(&args);
    }
    if (hr_preset_list(NULL, &entries, &count, &err) != HR_OK) {
        return say_error(&err, cli_given(&args, APP_JSON));
    }
    if (cli_given(&args, APP_JSON)) {
        print_presets_json(entries, count);
    } else {
        print_presets(entries, count);
    }
    hr_preset_list_free(entries);
    return 0;
}

// ---- devices --------------------------------------------------------------------------------------------------

static void print_device_json(emitter *e, const hr_device_info *d)
{
    emit_row(e, NULL);
    emit_text(e, "name", d->name);
    emit_text(e, "line", d->line);
    emit_bool(e, "simulated", d->simulated);
    emit_bool(e, "available", d->available);
    emit_text(e, "isa", d->available && d->isa[0] != '\0' ? d->isa : NULL);
    emit_text(e, "isa_remark", d->remark[0] != '\0' ? d->remark : NULL);
    emit_bool(e, "plans", d->available || d->plans);
    emit_text(e, "reason", d->available ? NULL : d->reason.sentence);
    emit_end_object(e);
}

static void print_device(const hr_device_info *d)
{
    printf("%-12s ", d->name);
    say_paragraph(d->line, 13);
    if (!d->available) {
        printf("%13snot available: ", "");
        say_paragraph(d->reason.sentence, 28);
        if (d->plans) {
            printf("%13splans work all the same: " CLI_PLANS_WITHOUT "\n", "", d->name);
        }
    } else if (d->isa[0] != '\0') {
        printf("%13scomputes with %s\n", "", d->isa);
        if (d->remark[0] != '\0') {
            printf("%13s", "");
            say_paragraph(d->remark, 13);
        }
    }
}

int cli_devices(int argc, char **argv)
{
    cli_args args;
    int exit_code = 0;
    hr_device_info devices[HR_DEVICES_MAX];
    emitter e = {.out = stdout};
    if (!begin(argc, argv, 0, &args, &exit_code)) {
        return exit_code;
    }
    size_t count = hr_devices(devices);
    bool is_json = cli_given(&args, APP_JSON);
    if (is_json) {
        emit_array(&e, NULL);
    }
    for (size_t k = 0; k < count; k++) {
        if (is_json) {
            print_device_json(&e, &devices[k]);
        } else {
            print_device(&devices[k]);
        }
    }
    if (is_json) {
        emit_end_array(&e);
    }
    return 0;
}
