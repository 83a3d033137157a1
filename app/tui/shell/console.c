// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/console.h"

#include <stdio.h>
#include <string.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/app.h"

enum { WHOLE_BELOW = 44, PAGE = 10, TOLD_MAX = 2048 };

void console_open(app *a)
{
    a->overlay = OVERLAY_CONSOLE;
    a->console.told = a->feed.recipe.count;
    a->console.plots = a->feed.recipe.plots;
    a->console.back = 0;
    a->feed.message.kind = MESSAGE_NONE;
    complete_look(a);
}

// ---- orders ---------------------------------------------------------------------------------------------------

// Words at blanks, a line each behind the path.
static void join_words(const char *path, const char *words, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", path);
    while (*words != '\0' && length < size) {
        const size_t word = strcspn(words, " ");
        const int added = snprintf(text + length, size - length, "\n%.*s", (int)word, words);
        length += added > 0 ? (size_t)added : 0;
        words += word + strspn(words + word, " ");
    }
}

void console_run(app *a, const char *recipe, const char *words)
{
    char path[HR_RECIPE_PATH_MAX], text[HR_GUEST_TEXT_MAX], typed[PROMPT_MAX + 8];
    hr_err err;
    if (hr_recipe_find(recipe, path, &err) != HR_OK) {
        hr_err_try(&err, ":lua largest_batch");
        feed_say_error(&a->feed, &err);
        return;
    }
    join_words(path, words, text, sizeof text);
    snprintf(typed, sizeof typed, ":lua %s%s%s", recipe, words[0] == '\0' ? "" : " ", words);
    a->console.evaluates = false;
    if (feed_order_recipe(&a->feed, HR_GUEST_FILE, text, typed)) {
        console_open(a);
    }
}

void console_lua(app *a, const char *argument)
{
    char recipe[PROMPT_MAX];
    const size_t length = strcspn(argument, " ");
    if (argument[0] == '\0') {
        console_open(a);
    } else if (strcmp(argument, "stop") == 0) {
        feed_stop_recipe(&a->feed);
    } else {
        snprintf(recipe, sizeof recipe, "%.*s", (int)length, argument);
        console_run(a, recipe, argument + length + strspn(argument + length, " "));
    }
}

void console_evaluate(app *a, const char *text)
{
    a->console.told = a->feed.recipe.count;
    a->console.plots = a->feed.recipe.plots;
    if (text[strspn(text, " ")] == '\0') {
        feed_say(&a->feed, MESSAGE_ERROR, "= needs an expression\ntry: :=hr.knobs.batch.size");
    } else if (feed_order_recipe(&a->feed, HR_GUEST_CHUNK, text, text)) {
        a->console.told = a->feed.recipe.count;
        a->console.evaluates = true;
    }
}

// ---- what may stand at the cursor -----------------------------------------------------------------------------

void console_ask(app *a)
{
    const console_view *c = &a->console;
    char chunk[HR_GUEST_TEXT_MAX];
    a->completion.count = 0;
    a->completion.chosen = CANDIDATE_NONE;
    a->completion.hint[0] = '\0';
    const int length = snprintf(chunk, sizeof chunk, "%s%s", c->chunk, c->chunk[0] != '\0' ? "\n" : "");
    if (c->prompt.length > 0 && length >= 0 && (size_t)length + c->prompt.length < sizeof chunk) {
        memcpy(chunk + length, c->prompt.text, c->prompt.length + 1);
        feed_ask_recipe(&a->feed, chunk, (size_t)length + c->prompt.cursor);
    }
}

// One that is about the line as it stands.
static void take_answer(app *a)
{
    const recipe_answer *r = &a->feed.recipe.answer;
    completion *f = &a->completion;
    const size_t before = a->console.chunk[0] != '\0' ? strlen(a->console.chunk) + 1 : 0;
    const bool known = r->number == a->console.answered && r->count == a->console.answers;
    if (r->number != a->feed.recipe.asked || known || r->start < before ||
        r->start - before > a->console.prompt.cursor) {
        return;
    }
    a->console.answered = r->number;
    a->console.answers = r->count;
    f->count = r->count < CANDIDATES_MAX ? r->count : CANDIDATES_MAX;
    f->start = (size_t)r->start - before;
    f->chosen = CANDIDATE_NONE;
    for (size_t k = 0; k < f->count; k++) {
        f->candidate[k] = (candidate){.goes_on = false};
        snprintf(f->candidate[k].text, sizeof f->candidate[k].text, "%s", r->word[k]);
        snprintf(f->candidate[k].after, sizeof f->candidate[k].after, "%s", r->after[k]);
    }
    snprintf(f->hint, sizeof f->hint, "  %.*s", (int)sizeof f->hint - 3, r->hint);
}

// ---- keys -----------------------------------------------------------------------------------------------------

void console_scroll(app *a, int rows)
{
    console_view *c = &a->console;
    const uint64_t held = a->feed.recipe.count < RECIPE_LINES ? a->feed.recipe.count : RECIPE_LINES;
    const int64_t to = (int64_t)c->back - rows;
    c->back = to < 0 || held == 0 ? 0 : (uint64_t)to < held ? (uint64_t)to : held - 1;
}

// A chunk that is not whole waits for its next line; an empty line gives it up as it is, so that Lua says what it lacks.
static void enter(app *a)
{
    console_view *c = &a->console;
    const size_t length = strlen(c->chunk);
    const bool blank = c->prompt.text[strspn(c->prompt.text, " ")] == '\0';
    char chunk[HR_GUEST_TEXT_MAX];
    if (blank && length == 0) {
        return;
    }
    const int all = snprintf(chunk, sizeof chunk, "%s%s%s", c->chunk, length > 0 ? "\n" : "", c->prompt.text);
    const bool room = all >= 0 && (size_t)all < sizeof chunk; // else Lua says that it is cut
    prompt_remember(&c->prompt);
    prompt_begin(&c->prompt, "");
    c->back = 0;
    const bool whole = a->feed.guest == NULL || blank || !room || a->feed.guest->is_whole(chunk);
    if (!whole) {
        memcpy(c->chunk, chunk, sizeof chunk);
        return;
    }
    c->chunk[0] = '\0';
    (void)feed_order_recipe(&a->feed, HR_GUEST_CHUNK, chunk, chunk);
}

static void stop_or_close(app *a)
{
    console_view *c = &a->console;
    if (a->feed.recipe.state != RECIPE_IDLE) {
        feed_stop_recipe(&a->feed);
    } else if (c->prompt.length > 0 || c->chunk[0] != '\0') {
        c->chunk[0] = '\0';
        prompt_begin(&c->prompt, "");
    } else {
        a->overlay = OVERLAY_NONE;
    }
}

void console_key(app *a, int key)
{
    a->feed.message.kind = key == INPUT_ENTER ? MESSAGE_NONE : a->feed.message.kind;
    switch (key) {
    case INPUT_ENTER:
        enter(a);
        break;
    case INPUT_ESCAPE:
        a->overlay = OVERLAY_NONE;
        break;
    case INPUT_CTRL_C:
        stop_or_close(a);
        break;
    case INPUT_PAGE_UP:
    case INPUT_PAGE_DOWN:
        console_scroll(a, key == INPUT_PAGE_UP ? -PAGE : PAGE);
        break;
    case INPUT_TAB:
    case INPUT_BACK_TAB:
        complete_next(a, key == INPUT_TAB ? 1 : -1);
        return;
    default:
        prompt_key(&a->console.prompt, key);
    }
    if (a->overlay == OVERLAY_CONSOLE && key != INPUT_PAGE_UP && key != INPUT_PAGE_DOWN) {
        complete_look(a);
    }
}

// ---- what is said while it is closed --------------------------------------------------------------------------

// A line of an error that has been said in part: its source lines, its callers.
static bool goes_on(const feed *f, const recipe_line *line)
{
    return f->message.kind == MESSAGE_ERROR && line->kind == HR_GUEST_ERROR && line->text[0] == ' ';
}

static bool is_told(const console_view *c, const recipe_line *line)
{
    return line->kind == HR_GUEST_ERROR || (c->evaluates && line->kind == HR_GUEST_PRINTED);
}

void console_follow(app *a)
{
    console_view *c = &a->console;
    const recipe_log *r = &a->feed.recipe;
    char text[TOLD_MAX] = "";
    size_t length = 0;
    bool fails = false;
    if (a->overlay == OVERLAY_CONSOLE) {
        take_answer(a);
        c->told = r->count;
        c->plots = r->plots;
        return;
    }
    if (r->plots > c->plots && a->overlay == OVERLAY_NONE) {
        console_open(a);
        return;
    }
    for (uint64_t back = r->count - c->told; back-- > 0;) {
        const recipe_line *line = recipe_line_at(r, back);
        if (line != NULL && is_told(c, line)) {
            if (length == 0 && goes_on(&a->feed, line)) {
                length = (size_t)snprintf(text, sizeof text, "%.*s", TOLD_MAX / 2, a->feed.message.text);
            }
            const char *words = strncmp(line->text, "headroom: ", 10) == 0 ? line->text + 10 : line->text;
            const int added =
                snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? "\n" : "", words);
            length += added > 0 ? (size_t)added : 0;
            length = length < sizeof text ? length : sizeof text - 1;
            fails = fails || line->kind == HR_GUEST_ERROR;
        }
    }
    if (r->state != RECIPE_WORKS) {
        c->told = r->count; // until then more may follow
    }
    if (length > 0) {
        feed_say(&a->feed, fails ? MESSAGE_ERROR : MESSAGE_NOTE, "%s", text);
    }
}

// ---- drawing --------------------------------------------------------------------------------------------------

static const char *text_of(const recipe_line *line)
{
    return line->kind == HR_GUEST_ERROR && strncmp(line->text, "headroom: ", 10) == 0 ? line->text + 10
                                                                                      : line->text;
}

// Pictures and what fits stand as they are.
static int rows_of(const canvas *c, const recipe_line *line)
{
    const char *text = text_of(line);
    size_t start, length;
    int rows = 0;
    if (line->kind == HR_GUEST_PLOT || glyphs_width(c->glyphs, text) <= c->area.w - 2) {
        return 1;
    }
    while (wrap_row(c->glyphs, text, c->area.w - 2, rows, &start, &length)) {
        rows++;
    }
    return rows > 0 ? rows : 1;
}

static role role_of(const recipe_line *line)
{
    switch (line->kind) {
    case RECIPE_TYPED:
        return ROLE_KEY;
    case HR_GUEST_NOTE:
        return ROLE_GOOD;
    case HR_GUEST_ERROR:
        return ROLE_BAD;
    case HR_GUEST_PLOT:
        return ROLE_LINE;
    default:
        return ROLE_TEXT;
    }
}

static void draw_line(const canvas *c, int y, const recipe_line *line)
{
    const char *text = text_of(line);
    if (line->kind == RECIPE_TYPED) {
        paint_text(c, y, 0, 2, ROLE_DIM, "> ");
    }
    if (rows_of(c, line) == 1) {
        paint_text(c, y, line->kind == HR_GUEST_PLOT ? 0 : 2,
                   c->area.w - (line->kind == HR_GUEST_PLOT ? 0 : 2), role_of(line), text);
        return;
    }
    canvas part = canvas_sub(c, y, 2, c->area.h - y, c->area.w - 2);
    paint_wrapped(&part, 0, role_of(line), text);
}

static void draw_lines(const canvas *c, const app *a)
{
    const recipe_log *r = &a->feed.recipe;
    uint64_t count = 0;
    int used = 0;
    for (;; count++) {
        const recipe_line *line = recipe_line_at(r, a->console.back + count);
        const int rows = line == NULL ? 0 : rows_of(c, line);
        if (line == NULL || used + rows > c->area.h) {
            break;
        }
        used += rows;
    }
    for (int y = 0; count-- > 0;) {
        const recipe_line *line = recipe_line_at(r, a->console.back + count);
        draw_line(c, y, line);
        y += rows_of(c, line);
    }
}

static void state_text(const recipe_log *r, char text[RECIPE_NAME_MAX + 64])
{
    snprintf(text, RECIPE_NAME_MAX + 64, "%s%s%s",
             r->state == RECIPE_WORKS     ? "runs "
             : r->state == RECIPE_LISTENS ? "is called by "
                                          : "",
             r->state == RECIPE_IDLE ? "" : r->name,
             r->state == RECIPE_IDLE ? ""
             : r->stopping           ? " · stops"
                                     : " · ^C stops it");
}

void screen_console(const canvas *body, const app *a)
{
    char text[RECIPE_NAME_MAX + 64];
    const int rows = body->area.h < WHOLE_BELOW ? body->area.h : body->area.h / 2;
    canvas c = canvas_sub(body, body->area.h - rows, 0, rows, body->area.w);
    for (int y = 0; y < rows; y++) {
        paint_blank(&c, y, 0, c.area.w, theme_role(c.theme, ROLE_TEXT));
    }
    state_text(&a->feed.recipe, text);
    paint_rule(&c, true, a->console.back > 0 ? "lua, scrolled" : "lua", text);
    canvas lines = canvas_sub(&c, 1, 0, rows - 1, c.area.w);
    if (a->feed.recipe.count == 0) {
        paint_wrapped(
            &lines, 0, ROLE_DIM,
            "Lua beside this training: an expression shows its value, hr.knobs.batch.size = 64 turns a "
            "knob, hr.on(\"step\", function(e) ... end) listens. :lua FILE runs a recipe here.");
        return;
    }
    draw_lines(&lines, a);
}
