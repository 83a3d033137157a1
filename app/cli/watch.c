// SPDX-License-Identifier: Apache-2.0
// watch: the workbench on a training of another process. Without a name, what can be watched.
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/session.h"
#include "headroom/words.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/cli/state.h"
#include "app/tui/base/format.h"
#include "app/tui/shell/tui.h"

enum { LOOKS = 400, LOOK_MS = 5, SOCKETS_MAX = 256, AGAIN_MS = 200, NOTHING = 1 };

typedef struct watched {
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
} watched;

// What is trained at the other side; false when it does not say so within two seconds.
static bool ask_about(const char *path, watched *w, hr_err *err)
{
    hr_session *session;
    hr_session_end end;
    if (hr_session_attach(path, &session, err) != HR_OK) {
        return false;
    }
    bool known = hr_session_about(session, w->preset, &w->knobs);
    for (int i = 0; i < LOOKS && !known && hr_session_get_life(session, &end) == HR_SESSION_LIVE; i++) {
        (void)poll(NULL, 0, LOOK_MS); // events of the training would end a wait for its socket at once
        known = hr_session_about(session, w->preset, &w->knobs);
    }
    (void)hr_session_stop(session, NULL);
    return known;
}

// ---- without a name -------------------------------------------------------------------------------------------

static int is_socket(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".sock") == 0;
}

// What was found, in the order of the names.
typedef struct found {
    char *path[SOCKETS_MAX]; // owned
    char preset[SOCKETS_MAX][HR_KNOB_TEXT_MAX];
    int count;
} found;

static void look_into(const char *folder, found *f)
{
    struct dirent **entries = NULL;
    static watched w;
    char path[PATH_MAX];
    int count = scandir(folder, &entries, is_socket, alphasort);
    for (int i = 0; i < count; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool fits = length > 0 && (size_t)length < sizeof path && f->count < SOCKETS_MAX;
        if (fits && ask_about(path, &w, NULL)) { // a socket without a training behind it is none
            f->path[f->count] = strdup(path);
            (void)snprintf(f->preset[f->count], sizeof f->preset[0], "%s", w.preset);
            f->count += f->path[f->count] != NULL;
        }
        free(entries[i]);
    }
    free(entries);
}

static void say_found(found *f, bool to_a_person)
{
    for (int i = 0; i < f->count; i++) {
        printf("%s  ", hr_plain_text(f->path[i], ""));
        puts(hr_plain_text(f->preset[i], ""));
    }
    if (f->count == 0) {
        puts("no training can be watched now; headroom, and headroom run, can be while they train");
    } else if (to_a_person) {
        printf("type: headroom watch %s\n", f->path[0]);
    }
}

static bool has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

// Until something is there: looks again a few times a second; Ctrl-C ends it.
static void look_until_found(const char *folder, bool waits, found *f)
{
    look_into(folder, f);
    if (f->count == 0 && waits) {
        fputs("waiting for a training; Ctrl-C ends it\n", stderr);
    }
    while (f->count == 0 && waits) {
        (void)poll(NULL, 0, AGAIN_MS);
        look_into(folder, f);
    }
}

// Without a folder that only this user can enter there is no socket, and none is found. Login sessions have one.
static int say_no_folder(void)
{
    hr_err err;
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/run/user/%lu", (unsigned long)geteuid());
    const bool there = access(folder, W_OK | X_OK) == 0;
    if (!there) {
        (void)snprintf(folder, sizeof folder, "/tmp/runtime-%lu", (unsigned long)geteuid());
    }
    (void)HR_FAIL(&err, READ,
                  "no training can be found: they listen below $XDG_RUNTIME_DIR, which is not set");
    hr_err_try(&err, "%s%s%sexport XDG_RUNTIME_DIR=%s # before the training too",
               there ? "" : "mkdir -pm 700 ", there ? "" : folder, there ? "" : " && ", folder);
    (void)say_error(&err, false);
    return NOTHING;
}

// The only one there is, where it can be watched at once; otherwise lists them, and only[] is "". The exit code of that.
static int record_oom_heap(bool waits, char only[PATH_MAX])
{
    static found f;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char folder[PATH_MAX];
    only[0] = '\0';
    if (runtime == NULL || runtime[0] != '/') {
        return say_no_folder();
    }
    (void)snprintf(folder, sizeof folder, "%s/headroom", runtime);
    look_until_found(folder, waits, &f);
    const int exit_code = f.count > 0 ? 0 : NOTHING;
    if (f.count == 1 && has_terminal()) {
        (void)snprintf(only, PATH_MAX, "%s", f.path[0]);
    } else {
        say_found(&f, isatty(STDOUT_FILENO));
    }
    while (f.count > 0) {
        free(f.path[--f.count]);
    }
    return exit_code;
}

// ---- with one -------------------------------------------------------------------------------------------------

// What cannot be known of a trace, or not be opened here, has the demo stand in its place, and is not shown.
static hr_status open_subject(const char *path, hr_preset **preset, hr_knobs *knobs, bool *unknown,
                              hr_err *err)
{
    static watched w;
    struct stat what;
    hr_err attach = {0};
    bool is_other = stat(path, &what) == 0 && S_ISSOCK(what.st_mode);
    bool known = is_other && ask_about(path, &w, &attach);
    if (is_other && !known && attach.status != HR_OK) {
        *err = attach;
        return err->status;
    }
    *unknown = !known || hr_preset_open(w.preset, false, preset, NULL, NULL) != HR_OK;
    if (*unknown) {
        HR_TRY(hr_preset_open("demo", false, preset, NULL, err));
    }
    *knobs = *unknown ? *hr_preset_knobs(*preset) : w.knobs;
    return HR_OK;
}

// Read once before the screen is taken, so that a sentence about a wrong file stands where it can be read.
static hr_status check_trace(const char *path, hr_err *err)
{
    hr_session *session;
    HR_TRY(hr_session_attach(path, &session, err));
    (void)hr_session_stop(session, NULL);
    return HR_OK;
}

static int watch(const cli_args *args)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_knobs knobs;
    char state[PATH_MAX], lessons[PATH_MAX];
    bool remembers = state_workbench_path(state, sizeof state);
    bool learns = state_lessons_path(lessons, sizeof lessons);
    tui_options options = {.ascii = cli_given(args, APP_ASCII),
                           .no_color = cli_given(args, APP_NO_COLOR),
                           .mouse = !cli_given(args, APP_NO_MOUSE),
                           .theme = args->value[APP_THEME],
                           .watched = args->words[0],
                           .state_path = remembers ? state : NULL,
                           .lessons_path = learns ? lessons : NULL};
    if (check_trace(args->words[0], &err) != HR_OK ||
        open_subject(args->words[0], &preset, &knobs, &options.unknown, &err) != HR_OK) {
        return say_error(&err, false);
    }
    int exit_code = tui_run(preset, &knobs, &options);
    hr_preset_close(preset);
    return exit_code;
}

int cli_watch(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    char only[PATH_MAX];
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, false);
    }
    if (args.words[0] == NULL) {
        const int exit_code = record_oom_heap(cli_given(&args, APP_WAIT), only);
        if (only[0] == '\0') {
            return exit_code;
        }
        args.words[0] = only;
    }
    while (cli_given(&args, APP_WAIT) && access(args.words[0], F_OK) != 0) {
        (void)poll(NULL, 0, AGAIN_MS);
    }
    if (!has_terminal()) {
        (void)HR_FAIL(&err, USAGE, "watching needs a terminal, had a pipe or a file");
        hr_err_try(&err, "headroom watch, for what can be watched");
        return say_error(&err, false);
    }
    return watch(&args);
}
