// SPDX-License-Identifier: Apache-2.0
// A whole recipe, from its file to its exit code, in the process that it is for.
#include "app/lua/lua_script.h"

#include <string.h>
#include <sys/socket.h>

#include "headroom/child.h"

#include "app/lua/watch.h"

static int say(const hr_err *err, FILE *to)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    fputs(text, to);
    return hr_status_exit_code(err->status);
}

void script_set_folder(script *s, const char *file)
{
    const char *slash = strrchr(file, '/');
    if (slash == NULL) {
        (void)snprintf(s->folder, sizeof s->folder, ".");
    } else {
        (void)snprintf(s->folder, sizeof s->folder, "%.*s", slash == file ? 1 : (int)(slash - file), file);
    }
}

enum { BY_SIGNAL = 128 }; // of an exit code, as a shell says it

static int end_of_script(script *s, int lua_status)
{
    bool fine = lua_status == LUA_OK && s->stop == SCRIPT_GOES_ON;
    (void)fflush(s->out);
    if (!fine) {
        int code = script_report_error(s, lua_status, s->notes);
        const int number = s->interrupted == NULL ? 0 : *s->interrupted;
        fputs(s->kept, s->notes);
        return code == hr_status_exit_code(HR_INTERRUPTED) && number != 0 ? BY_SIGNAL + number : code;
    }
    if (s->check_failed) { // in a pcall
        fputs("headroom: check failed: ", s->notes);
        script_print_text(s->notes, s->check_text, strlen(s->check_text));
        fputc('\n', s->notes);
    }
    return s->check_failed ? hr_status_exit_code(HR_CHECK) : 0;
}

int script_main(const char *file, int argc, char **argv, const script_options *options)
{
    script s = {.out = options->out,
                .notes = options->notes,
                .interrupted = options->interrupted,
                .argc = argc,
                .argv = argv};
    hr_err err = {0};
    const script_source *source = NULL;
    script_set_folder(&s, file);
    hr_status status = script_read_source(&s, file, &source, &err);
    if (status == HR_OK) {
        status = script_open(&s, &options->limits, &err);
    }
    if (status == HR_OK && options->watcher > 0) {
        status = script_watch(&s, options->watcher, &err);
    }
    int code = status == HR_OK ? end_of_script(&s, script_run_source(&s, source)) : say(&err, options->notes);
    script_watch_end();
    script_close(&s);
    return code;
}

int lua_script_serve(int argc, char **argv)
{
    const int socket = hr_child_begin();
    script_options options = {
        .out = stdout, .notes = stderr, .interrupted = script_hear_interrupts(), .watcher = socket};
    if (socket < 0 || argc < 1 ||
        recv(socket, &options.limits, sizeof options.limits, MSG_WAITALL) != sizeof options.limits) {
        return hr_status_exit_code(HR_USAGE);
    }
    return script_main(argv[0], argc - 1, argv + 1, &options);
}
