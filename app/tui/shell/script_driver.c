// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/script_driver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/command.h"
#include "app/tui/shell/requests.h"
#include "app/tui/shell/script_cast.h"
#include "app/tui/shell/script_keys.h"
#include "app/tui/shell/script_size.h"
#include "app/tui/shell/script_words.h"
#include "app/tui/term/glyphs.h"
#include "app/tui/term/paint.h"
#include "app/tui/term/terminal.h"

enum { LINE_MAX_BYTES = 1024, IDLE_PIECES_MAX = 4, SECONDS_MAX = 86400 };

static const uint64_t second_ns = 1000000000, frame_ns = 250000000, untimed_step_ns = 20000000;
static const unsigned long pieces_max = 1000000; // of one wait: a training that never gets there

typedef struct script {
    app *app;
    const script_stage *stage;
    script_cast cast;
    unsigned line;
    uint64_t pace_ns;
    bool visible_only;
    char *screen; // as text, of the last frame; owned
} script;

// ---- frames and time ------------------------------------------------------------------------------------------

static void show(script *s)
{
    bool more;
    if (s->stage->hands->settle != NULL) {
        s->stage->hands->settle(s->app);
    }
    do {
        (void)app_drain(s->app, &more);
    } while (more);
    app_draw(s->app);
    script_cast_frame(&s->cast, s->app->now_ns - s->app->started_ns);
}

static void advance_clock(script *s, uint64_t by_ns)
{
    s->app->now_ns += by_ns;
}

// One piece of work; the clock follows what the engine says. False: it had none.
static bool advance(script *s)
{
    bool more;
    uint64_t before_ns = s->app->feed.live.time_ns, steps = s->app->feed.live.steps;
    bool any = s->stage->hands->advance(s->app);
    do {
        (void)app_drain(s->app, &more);
    } while (more);
    uint64_t after_ns = s->app->feed.live.time_ns;
    bool timed = after_ns > before_ns && before_ns > 0;
    // A plan without a card has no time: its steps take what the shortest take in a workbench.
    advance_clock(s, timed ? after_ns - before_ns : s->app->feed.live.steps > steps ? untimed_step_ns : 0);
    return any;
}

// Advances until `steps` more are done or the clock says `until_ns`; frames in between, as a terminal would have had.
static void wait_for(script *s, uint64_t steps, uint64_t until_ns)
{
    app *a = s->app;
    uint64_t end = a->feed.live.steps + steps, frame_due_ns = a->now_ns + frame_ns;
    unsigned idle = 0;
    for (unsigned long i = 0; i < pieces_max && idle < IDLE_PIECES_MAX; i++) {
        bool reached = until_ns == UINT64_MAX ? a->feed.live.steps >= end : a->now_ns >= until_ns;
        if (reached) {
            break;
        }
        idle = advance(s) ? 0 : idle + 1;
        if (a->now_ns >= frame_due_ns) {
            show(s);
            frame_due_ns = a->now_ns + frame_ns;
        }
    }
    if (until_ns != UINT64_MAX && a->now_ns < until_ns) {
        a->now_ns = until_ns; // nothing happens any more
    }
    show(s);
}

// ---- errors ---------------------------------------------------------------------------------------------------

static hr_status refuse(const script *s, const char *why, const char *line, hr_err *err)
{
    hr_status status = HR_FAIL(err, USAGE, "%s:%u: %s: %.200s", s->stage->name, s->line, why, line);
    hr_err_try(
        err,
        "keys, type, :COMMAND, wait steps N, wait seconds S, expect TEXT, resize WxH, save-display FILE, "
        "pace S, visible on");
    return status;
}

static hr_status read_screen(script *s, hr_err *err)
{
    size_t size;
    free(s->screen);
    s->screen = NULL;
    FILE *out = open_memstream(&s->screen, &size);
    bool read = out != NULL && paint_dump(out);
    if (out == NULL || fclose(out) != 0 || !read) {
        return HR_FAIL(err, NOMEM, "no memory for the screen as text");
    }
    return HR_OK;
}

// The screen is written for debugging.
static hr_status fail_check(const script *s, hr_err *err, const char *what, const char *text)
{
    if (s->stage->failed != NULL) {
        fputs(s->screen, s->stage->failed);
    }
    hr_status status = HR_FAIL(err, CHECK, "%s:%u: %s '%.200s'", s->stage->name, s->line, what, text);
    hr_err_try(err, "look at the screen above, as it was then");
    return status;
}

// ---- lines ----------------------------------------------------------------------------------------------------

static hr_status press(script *s, int key, hr_err *err)
{
    app *a = s->app;
    if (s->visible_only && !app_is_typing(a)) {
        char name[8] = "";
        HR_TRY(read_screen(s, err));
        if (!script_key_is_shown(s->screen, key)) {
            name[key < 0x80 ? 1 : utf8_put((wchar_t)key, name)] = '\0';
            name[0] = key < 0x80 ? (char)key : name[0];
            const request_row *rows = request_rows(&(size_t){0});
            request r = request_of_key(key);
            return fail_check(s, err, "the screen does not show the key",
                              r == REQUEST_NONE ? name : rows[r].shown);
        }
    }
    app_key(a, key);
    while (a->next.work != PENDING_NONE && !a->quits) {
        show(s); // it says what it waits for
        app_work(a);
    }
    advance_clock(s, s->pace_ns);
    show(s);
    return HR_OK;
}

static hr_status press_keys(script *s, const char *keys, hr_err *err)
{
    const char *at = keys;
    for (int key = script_key_next(&at); key != INPUT_NONE; key = script_key_next(&at)) {
        if (key == INPUT_RESIZED) {
            hr_status status = refuse(s, "no key is called so", keys, err);
            hr_err_try(err, "%s", script_key_names());
            return status;
        }
        HR_TRY(press(s, key, err));
        if (s->app->quits) {
            break;
        }
    }
    return HR_OK;
}

static hr_status type_text(script *s, const char *text, hr_err *err)
{
    while (*text != '\0' && !s->app->quits) {
        HR_TRY(press(s, (int)utf8_next(&text), err));
    }
    return HR_OK;
}

static bool is_command(const char *text)
{
    char word[64];
    const size_t length = strcspn(text, " ");
    (void)snprintf(word, sizeof word, "%.*s", (int)length, text);
    return text[0] == '=' ||
           (length < sizeof word && (command_find(text, length) != NULL ||
                                     request_of_name(word) != REQUEST_NONE || strchr(word, '.') != NULL));
}

static hr_status do_command(script *s, const char *text, hr_err *err)
{
    text += strspn(text, " :");
    if (!is_command(text)) {
        return refuse(s, "no command is called so", text, err);
    }
    HR_TRY(press(s, ':', err));
    HR_TRY(type_text(s, text, err));
    return press(s, INPUT_ENTER, err);
}

// A number from `text` to its end; UNKNOWN: it is none.
static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    bool is_number = end != text && *end == '\0' && isfinite(value) && value >= 0;
    return is_number ? value : UNKNOWN;
}

static hr_status do_wait(script *s, const char *argument, hr_err *err)
{
    bool steps = strncmp(argument, "steps ", 6) == 0, seconds = strncmp(argument, "seconds ", 8) == 0;
    double count = steps ? number(argument + 6) : seconds ? number(argument + 8) : UNKNOWN;
    if (isnan(count) || count > (seconds ? (double)SECONDS_MAX : 1e9)) {
        return refuse(s, "wait needs steps or seconds, and how many", argument, err);
    }
    if (steps) {
        wait_for(s, (uint64_t)count, UINT64_MAX);
    } else {
        wait_for(s, 0, s->app->now_ns + (uint64_t)(count * (double)second_ns));
    }
    return HR_OK;
}

static hr_status do_expect(script *s, const char *argument, hr_err *err)
{
    bool wanted = strncmp(argument, "not ", 4) != 0;
    const char *text = wanted ? argument : argument + 4;
    HR_TRY(read_screen(s, err));
    if ((strstr(s->screen, text) != NULL) == wanted) {
        return HR_OK;
    }
    return fail_check(s, err, wanted ? "the screen does not show" : "the screen shows", text);
}

static hr_status do_resize(script *s, const char *argument, hr_err *err)
{
    int rows, columns;
    if (!script_size(argument, &rows, &columns)) {
        return refuse(s, "resize needs a size, as 80x24", argument, err);
    }
    terminal_resize(rows, columns);
    show(s);
    return HR_OK;
}

static hr_status do_pace(script *s, const char *argument, hr_err *err)
{
    double seconds = number(argument);
    if (isnan(seconds) || seconds > SECONDS_MAX) {
        return refuse(s, "pace needs seconds", argument, err);
    }
    s->pace_ns = (uint64_t)(seconds * (double)second_ns);
    return HR_OK;
}

static hr_status do_visible(script *s, const char *argument, hr_err *err)
{
    s->visible_only = strcmp(argument, "on") == 0;
    return s->visible_only || strcmp(argument, "off") == 0 ? HR_OK
                                                           : refuse(s, "visible is on or off", argument, err);
}

static hr_status do_save(script *s, const char *argument, hr_err *err)
{
    return paint_save(&s->app->looks.theme, argument, false, err);
}

static const struct {
    script_word row;
    hr_status (*run)(script *s, const char *argument, hr_err *err);
} words[] = {
    {{"keys", "<Right> z <Tab>", "press keys, blanks between them"}, press_keys},
    {{"type", "64", "type text as it stands"}, type_text},
    {{"wait", "steps 20", "let the training do steps, or `wait seconds 2.5`"}, do_wait},
    {{"expect", "TEXT", "fail where the screen does not show it; `expect not TEXT`"}, do_expect},
    {{"resize", "120x36", "columns and rows"}, do_resize},
    {{"save-display", "FILE", "write the screen: .txt, .ans or .svg"}, do_save},
    {{"pace", "0.2", "seconds that every key takes from here on"}, do_pace},
    {{"visible", "on", "a key that the screen does not show is an error"}, do_visible},
};

const script_word *script_word_row(size_t index)
{
    return index < sizeof words / sizeof *words ? &words[index].row : NULL;
}

static bool is_text(const char *line)
{
    enum { REPLACEMENT = 0xFFFD };
    while (*line != '\0') {
        line += strspn(line, "\t");
        if (*line != '\0' && utf8_next(&line) == REPLACEMENT) {
            return false;
        }
    }
    return true;
}

static hr_status do_line(script *s, const char *line, hr_err *err)
{
    line += strspn(line, " \t");
    if (line[0] == '\0' || line[0] == '#') {
        return HR_OK;
    }
    if (!is_text(line)) {
        return refuse(s, "the line has bytes that are no text", line, err);
    }
    if (s->app->quits) {
        return HR_FAIL(err, CHECK, "%s:%u: the workbench was left before this line", s->stage->name, s->line);
    }
    if (line[0] == ':') {
        return do_command(s, line + 1, err);
    }
    size_t length = strcspn(line, " ");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].row.word) == length && memcmp(words[i].row.word, line, length) == 0) {
            return line[length] == '\0' || line[length + 1] == '\0'
                       ? refuse(s, "something is missing", line, err)
                       : words[i].run(s, line + length + 1, err);
        }
    }
    return refuse(s, "this line means nothing", line, err);
}

bool script_size(const char *text, int *rows, int *columns)
{
    enum { SIZE_MAX_CELLS = 500 };
    char *end;
    long w = strtol(text, &end, 10);
    long h = *end == 'x' && end != text ? strtol(end + 1, &end, 10) : 0;
    *columns = (int)w;
    *rows = (int)h;
    return *end == '\0' && w >= 1 && h >= 1 && w <= SIZE_MAX_CELLS && h <= SIZE_MAX_CELLS;
}

hr_status script_drive(app *a, const char *text, const script_stage *stage, hr_err *err)
{
    script s = {.app = a, .stage = stage};
    char line[LINE_MAX_BYTES];
    hr_status status = HR_OK;
    a->started_ns = a->now_ns = second_ns;
    script_cast_begin(&s.cast, stage->screen, stage->cast, a->rows, a->columns, stage->type);
    show(&s);
    while (status == HR_OK && *text != '\0') {
        size_t length = strcspn(text, "\n");
        s.line++;
        int kept = snprintf(line, sizeof line, "%.*s", (int)length, text);
        line[strcspn(line, "\r")] = '\0';
        status = (size_t)kept < sizeof line ? do_line(&s, line, err)
                                            : refuse(&s, "the line is too long", line, err);
        text += length + (text[length] == '\n');
    }
    if (status == HR_OK && stage->last != NULL) {
        status = read_screen(&s, err);
        fputs(status == HR_OK ? s.screen : "", stage->last);
    }
    free(s.screen);
    return status;
}
