// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/tui/shell/app.h"
#include "app/tui/shell/script_driver.h"
#include "app/tui/term/terminal.h"

enum { SCRIPT_BYTES_MAX = 1 << 20 };

static const char cast_mark[] = "{\"version\": 2";

// ---- files ----------------------------------------------------------------------------------------------------

static hr_status read_script(const char *path, char **text, hr_err *err)
{
    FILE *in = fopen(path, "re");
    *text = in == NULL ? NULL : calloc(1, SCRIPT_BYTES_MAX + 1);
    if (*text == NULL) {
        hr_status status = HR_FAIL(err, READ, "%.400s: %s", path, strerror(errno));
        hr_err_try(err, "ls -l '%.200s'", path);
        if (in != NULL) {
            fclose(in);
        }
        return status;
    }
    size_t length = fread(*text, 1, SCRIPT_BYTES_MAX + 1, in);
    bool failed = ferror(in) != 0;
    fclose(in);
    const bool whole = memchr(*text, '\0', length) == NULL; // it would be the end
    if (!failed && length <= SCRIPT_BYTES_MAX && whole) {
        return HR_OK;
    }
    free(*text);
    *text = NULL;
    return failed   ? HR_FAIL(err, READ, "%.400s: %s", path, strerror(EIO))
           : !whole ? HR_FAIL(err, READ, "%.400s: a script is text, this has a NUL in it", path)
                    : HR_FAIL(err, READ, "%.400s: a script has at most %d bytes", path, SCRIPT_BYTES_MAX);
}

// What stands there is replaced when it is a cast.
static hr_status may_replace(const char *path, hr_err *err)
{
    char head[sizeof cast_mark] = "";
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return HR_OK;
    }
    size_t length = fread(head, 1, sizeof cast_mark - 1, in);
    fclose(in);
    if (length == sizeof cast_mark - 1 && memcmp(head, cast_mark, length) == 0) {
        return HR_OK;
    }
    return HR_FAIL(err, WRITE, "%.400s is no cast, and stays", path);
}

typedef struct cast_file {
    const char *path; // NULL: none is made
    char fresh[PATH_MAX];
    FILE *out;
} cast_file;

static hr_status open_cast(cast_file *c, hr_err *err)
{
    if (c->path == NULL) {
        return HR_OK;
    }
    HR_TRY(may_replace(c->path, err));
    int length = snprintf(c->fresh, sizeof c->fresh, "%s.%ld.new", c->path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof c->fresh) {
        return HR_FAIL(err, WRITE, "%.200s: the name is too long", c->path);
    }
    c->out = fopen(c->fresh, "wxe");
    return c->out != NULL ? HR_OK : HR_FAIL(err, WRITE, "%.400s: %s", c->path, strerror(errno));
}

// Takes the place of the old one when all went well.
static hr_status close_cast(cast_file *c, bool keep, hr_err *err)
{
    if (c->out == NULL) {
        return HR_OK;
    }
    bool written = ferror(c->out) == 0 && fflush(c->out) == 0 && fsync(fileno(c->out)) == 0;
    written = fclose(c->out) == 0 && written;
    if (keep && written && rename(c->fresh, c->path) == 0) {
        return HR_OK;
    }
    int why = errno;
    (void)unlink(c->fresh);
    return keep ? HR_FAIL(err, WRITE, "%.400s: %s", c->path, strerror(why)) : HR_OK;
}

// ---- what moves beside the keys -------------------------------------------------------------------------------

static bool advance(app *a)
{
    return a->feed.session != NULL && hr_session_advance(a->feed.session, 1);
}

static const script_hands hands = {advance, NULL};

// ---- the stage ------------------------------------------------------------------------------------------------

// The same characters on every machine.
static void take_locale(void)
{
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {
        (void)setlocale(LC_ALL, "");
    }
    setlocale(LC_NUMERIC, "C");
}

static hr_status open_stage(const tui_script *script, FILE **screen, FILE **keys, hr_err *err)
{
    *screen = tmpfile();
    *keys = fopen("/dev/null", "re");
    if (*screen == NULL || *keys == NULL) {
        return HR_FAIL(err, STATE, "no temporary file for the screen: %s", strerror(errno));
    }
    if (!terminal_open_on(script->type, *screen, *keys, script->rows, script->columns)) {
        hr_status status =
            HR_FAIL(err, TERMINAL, "no terminal that can place its cursor is called %.64s", script->type);
        hr_err_try(err, "--term xterm-256color");
        return status;
    }
    return HR_OK;
}

static void look(app *a, const tui_options *options, const tui_script *script)
{
    const char *name = options->theme == NULL ? "dark" : options->theme; // "auto" asks the environment
    a->looks.no_color = options->no_color;
    theme_make(&a->looks.theme, name, terminal_colors(), a->looks.no_color);
    a->looks.richest_glyphs = options->ascii ? GLYPHS_ASCII : GLYPHS_FULL;
    a->looks.glyphs = glyphs_make(a->looks.richest_glyphs);
    a->rows = script->rows;
    a->columns = script->columns;
}

static hr_status play(app *a, const tui_script *script, const char *text, FILE *screen, hr_err *err)
{
    cast_file cast = {.path = script->cast};
    HR_TRY(open_cast(&cast, err));
    script_stage stage = {script->path, script->type, screen, cast.out, script->last, stderr, &hands};
    hr_status status = script_drive(a, text, &stage, err);
    hr_status kept = close_cast(&cast, status == HR_OK, status == HR_OK ? err : NULL);
    return status == HR_OK ? kept : status;
}

static hr_status play_text(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options,
                           const tui_script *script, const char *text, hr_err *err)
{
    FILE *screen = NULL, *keys = NULL;
    app *a = app_create(preset, knobs);
    hr_status status = a == NULL ? HR_FAIL(err, NOMEM, "the workbench needed %zu bytes", sizeof *a)
                                 : open_stage(script, &screen, &keys, err);
    if (status == HR_OK) {
        a->feed.scripted = true;
        a->feed.guest = options->guest;
        look(a, options, script);
        feed_start_planner(&a->feed);
        feed_start_engine(&a->feed);
        if (options->recipe != NULL) {
            console_run(a, options->recipe, "");
        }
        status = play(a, script, text, screen, err);
        (void)feed_stop_engine(&a->feed, NULL);
        terminal_close_on();
    }
    app_destroy(a);
    if (screen != NULL) {
        fclose(screen);
    }
    if (keys != NULL) {
        fclose(keys);
    }
    return status;
}

hr_status tui_play(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options,
                   const tui_script *script, hr_err *err)
{
    char *text;
    take_locale();
    HR_TRY(tui_check_theme(options->theme, err));
    HR_TRY(read_script(script->path, &text, err));
    hr_status status = play_text(preset, knobs, options, script, text, err);
    free(text);
    return status;
}

hr_status tui_picture(const hr_preset *preset, const hr_knobs *knobs, const char *script, char **picture,
                      hr_err *err)
{
    size_t size;
    const tui_options options = {.no_color = true};
    tui_script played = {.path = "picture", .type = "xterm-256color", .rows = 24, .columns = 80};
    *picture = NULL;
    take_locale();
    played.last = open_memstream(picture, &size);
    if (played.last == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for a picture of the screen");
    }
    hr_status status = play_text(preset, knobs, &options, &played, script, err);
    if (fclose(played.last) != 0 && status == HR_OK) {
        status = HR_FAIL(err, NOMEM, "no memory for a picture of the screen");
    }
    if (status != HR_OK) {
        free(*picture);
        *picture = NULL;
    }
    return status;
}
