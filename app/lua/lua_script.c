// SPDX-License-Identifier: Apache-2.0
#include "app/lua/lua_script.h"

#include <string.h>

#include "app/lua/script.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static int say(const hr_err *err, FILE *to)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    fputs(text, to);
    return hr_status_exit_code(err->status);
}

static void set_folder(script *s, const char *file)
{
    const char *slash = strrchr(file, '/');
    if (slash == NULL) {
        (void)snprintf(s->folder, sizeof s->folder, ".");
    } else {
        (void)snprintf(s->folder, sizeof s->folder, "%.*s", slash == file ? 1 : (int)(slash - file), file);
    }
}

static int end_of_script(script *s, int lua_status)
{
    bool fine = lua_status == LUA_OK && s->stop == SCRIPT_GOES_ON;
    (void)fflush(s->out);
    if (!fine) {
        return script_report_error(s, lua_status, s->notes);
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
    set_folder(&s, file);
    hr_status status = script_read_source(&s, file, &source, &err);
    if (status == HR_OK) {
        status = script_open(&s, &options->limits, &err);
    }
    int code = status == HR_OK ? end_of_script(&s, script_run_source(&s, source)) : say(&err, options->notes);
    script_close(&s);
    return code;
}

int lua_script_run(const char *file, int argc, char **argv)
{
    struct sigaction before;
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    script_options options = {script_default_limits, stdout, stderr, &interrupted};
    interrupted = 0;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, &before);
    int code = script_main(file, argc, argv, &options);
    (void)sigaction(SIGINT, &before, NULL);
    return code;
}
