// SPDX-License-Identifier: Apache-2.0
// doctor: what headroom finds here, so that it is seen what is missing.
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "headroom/card.h"
#include "headroom/devices.h"
#include "headroom/files.h"
#include "headroom/machine.h"
#include "headroom/preset.h"
#include "headroom/save.h"
#include "headroom/units.h"

#include "app/cli/build_info.h"
#include "app/cli/calibrate.h"
#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/cli/state.h"
#include "app/tui/feed/autosave.h"

static void row(const char *label, const char *value)
{
    printf("  %-12s ", label);
    say_paragraph(value, 15);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "not set" : value[0] == '\0' ? "empty" : value;
}

// ---- terminal -------------------------------------------------------------------------------------------------

static void look_at_terminal(void)
{
    struct winsize size = {0};
    char text[64];
    const char *locale = setlocale(LC_CTYPE, "");
    puts("\nterminal");
    row("TERM", environment("TERM"));
    row("COLORTERM", environment("COLORTERM"));
    row("NO_COLOR", environment("NO_COLOR"));
    row("locale", locale != NULL ? locale : "the one in LANG or LC_ALL is not installed: C");
    row("characters", nl_langinfo(CODESET));
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        (void)snprintf(text, sizeof text, "%u x %u%s", size.ws_col, size.ws_row,
                       size.ws_col < 40 || size.ws_row < 10 ? ": the workbench needs 40 x 10" : "");
        row("size", text);
    } else {
        row("size", "stdout is no terminal");
    }
    row("braille", "⣀⣤⣶⣿⣿⣶⣤⣀  eight columns, rising and falling");
    row("blocks", "▁▂▃▄▅▆▇█  eight columns, rising");
    row("ASCII", "..::||##  what --ascii draws with");
}

// ---- machine --------------------------------------------------------------------------------------------------

static void look_at_machine(void)
{
    const uint64_t total_bytes = hr_machine_memory_bytes(), available_bytes = hr_machine_available_bytes();
    char text[96], total[HR_BYTES_TEXT_MAX], available[HR_BYTES_TEXT_MAX];
    puts("\nmachine");
    (void)snprintf(text, sizeof text, "%" PRIu32 " for this process", hr_machine_cores());
    row("cores", text);
    (void)snprintf(text, sizeof text, "%s, %s available",
                   total_bytes == UINT64_MAX ? "?" : hr_bytes_human(total_bytes, total),
                   available_bytes == UINT64_MAX ? "?" : hr_bytes_human(available_bytes, available));
    row("memory", text);
    row("waiting", environment("OMP_WAIT_POLICY"));
}

static void look_at_devices(void)
{
    hr_device_info devices[HR_DEVICES_MAX];
    size_t count = hr_devices(devices);
    puts("\ndevices");
    for (size_t k = 0; k < count; k++) {
        const hr_device_info *d = &devices[k];
        char text[128];
        (void)snprintf(text, sizeof text, "%s%s", d->isa[0] != '\0' ? d->isa : "works",
                       d->calibrated                 ? ", calibrated: plans say seconds"
                       : strcmp(d->name, "cpu") == 0 ? ", not calibrated: headroom doctor --calibrate"
                                                     : "");
        row(d->name, d->available ? text : d->reason.sentence);
        if (d->remark[0] != '\0') {
            row("", d->remark);
        }
        if (d->plans) {
            (void)snprintf(text, sizeof text, "plans work all the same: " CLI_PLANS_WITHOUT, d->name);
            row("", text);
        }
    }
    if (!HEADROOM_HAVE_CUDA) {
        row("cuda", "not in this build: the CUDA Toolkit with cuDNN 9 was not found when it was configured");
    }
}

// ---- files ----------------------------------------------------------------------------------------------------

static void look_at_presets(const char *label, const char *folder)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_err err;
    char text[64];
    if (hr_preset_list(folder, &entries, &count, &err) != HR_OK) {
        row(label, err.sentence);
        return;
    }
    (void)snprintf(text, sizeof text, "%zu found%s", count,
                   count == 0 ? ": set HEADROOM_DATA to the folder above" : "");
    row(label, text);
    hr_preset_list_free(entries);
}

static void look_at_folder(const char *label, const char *variable, const char *home_default)
{
    char folder[PATH_MAX];
    row(label, hr_file_xdg(variable, home_default, "", folder, sizeof folder) ? folder : "no HOME: not used");
}

static void say_autosave(const autosave_file *file)
{
    static hr_save_about about;
    char text[2 * PATH_MAX + 128], bytes[HR_BYTES_TEXT_MAX];
    const long minutes = (long)(time(NULL) - file->written) / 60;
    const long hours = minutes / 60;
    const bool known = hr_save_look(file->path, &about, NULL) == HR_OK;
    const char *slash = known ? strrchr(about.preset, '/') : NULL;
    (void)snprintf(text, sizeof text, "%s step %" PRIu64 ", %ld %s old, %s%s",
                   slash != NULL ? slash + 1
                   : known       ? about.model
                                 : "unknown,",
                   known ? about.steps : 0,
                   hours >= 48  ? hours / 24
                   : hours >= 2 ? hours
                                : minutes,
                   hours >= 48  ? "days"
                   : hours >= 2 ? "hours"
                                : "min",
                   hr_bytes_human(file->bytes, bytes), file->left ? ", not offered any more" : "");
    row("", text);
    (void)snprintf(text, sizeof text, "headroom %s -s train.resume=%s",
                   !known                    ? "PRESET"
                   : about.preset[0] != '\0' ? about.preset
                                             : about.model,
                   file->path);
    printf("  ");
    say_foreign(stdout, text, "");
    putchar('\n');
}

// Sessions of the workbench that ended without `q`.
static void look_at_autosaves(void)
{
    char state[PATH_MAX], text[64];
    autosave_file *files = malloc(AUTOSAVES_SEEN_MAX * sizeof *files);
    const size_t count =
        files != NULL && state_workbench_path(state, sizeof state) ? autosave_dead(state, files) : 0;
    (void)snprintf(text, sizeof text, count == 0 ? "none kept" : "%zu kept", count);
    row("sessions", text);
    for (size_t k = 0; k < count; k++) {
        say_autosave(&files[k]);
    }
    free(files);
}

static void look_at_files(void)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    puts("\nfiles");
    if (length > 0) {
        program[length] = '\0';
        row("program", program);
    }
    look_at_folder("own presets", "XDG_DATA_HOME", ".local/share");
    look_at_folder("state", "XDG_STATE_HOME", ".local/state");
    look_at_autosaves();
    row("HEADROOM_DATA", environment("HEADROOM_DATA"));
    look_at_presets("presets", NULL);
    look_at_presets("cards", "cards");
}

// Both say what a calibration measures, and nothing else.
static hr_status check_options(const cli_args *args, hr_err *err)
{
    static const app_option_id only[] = {APP_SET, APP_SECONDS, APP_JSON};
    const char *given = NULL;
    for (size_t k = 0; k < sizeof only / sizeof *only; k++) {
        given = cli_given(args, only[k]) ? app_option_row(only[k])->name : given;
    }
    if (cli_given(args, APP_CALIBRATE) || given == NULL) {
        return HR_OK;
    }
    (void)HR_FAIL(err, USAGE, "--%s belongs to doctor --calibrate", given);
    hr_err_try(err, "headroom doctor --calibrate");
    return HR_USAGE;
}

int cli_doctor(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 0, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    if (check_options(&args, &err) != HR_OK) {
        return say_error(&err, cli_given(&args, APP_JSON));
    }
    if (cli_given(&args, APP_CALIBRATE)) {
        return calibrate(&args);
    }
    build_info_print();
    look_at_terminal();
    look_at_machine();
    look_at_devices();
    look_at_files();
    return 0;
}
