// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/feed/feed.h"

enum { TAKEN_AT_ONCE = 16384, CHARACTER_MAX = 4 };

static recipe_line *new_line(recipe_log *r, char kind)
{
    recipe_line *line = &r->line[r->count++ % RECIPE_LINES];
    line->kind = kind;
    line->text[0] = '\0';
    return line;
}

// What is longer than a line goes on in the next, at a whole character.
static void add(recipe_log *r, char kind, const char *text)
{
    do {
        recipe_line *line = new_line(r, kind);
        size_t length = strlen(text);
        if (length >= RECIPE_LINE_MAX) {
            for (length = RECIPE_LINE_MAX - 1; length > RECIPE_LINE_MAX - CHARACTER_MAX &&
                                               ((unsigned char)text[length] & 0xC0U) == 0x80U;) {
                length--;
            }
        }
        memcpy(line->text, text, length);
        line->text[length] = '\0';
        for (char *c = line->text; *c != '\0'; c++) {
            *c = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
        }
        text += length;
    } while (*text != '\0');
}

const recipe_line *recipe_line_at(const recipe_log *r, uint64_t back)
{
    return back < r->count && back < RECIPE_LINES ? &r->line[(r->count - 1 - back) % RECIPE_LINES] : NULL;
}

// ---- orders ---------------------------------------------------------------------------------------------------

bool feed_order_recipe(feed *f, hr_guest_order order, const char *text, const char *typed)
{
    const char *why_not = feed_why_not_command(f);
    if (why_not == NULL && f->recipe.state == RECIPE_WORKS && order != HR_GUEST_END) {
        why_not = "a recipe is at work: ^C stops it";
    }
    if (why_not == NULL && f->guest == NULL) {
        why_not = "this workbench has no Lua";
    }
    if (why_not == NULL && f->lesson != NULL && order != HR_GUEST_END) {
        why_not = "Lua turns all knobs, which the lesson holds: s opens a sandbox for it";
    }
    if (why_not != NULL) {
        feed_say(f, MESSAGE_ERROR, "%s", why_not);
        return false;
    }
    if (typed != NULL) {
        add(&f->recipe, RECIPE_TYPED, typed);
    }
    if (!feed_engine_lives(f) || !hr_session_order(f->session, order, text)) {
        feed_say(f, MESSAGE_ERROR, "%s",
                 feed_engine_lives(f) ? "the engine is busy and took no order: try again"
                                      : "no engine runs: R starts it again, p chooses a preset");
        return false;
    }
    f->recipe.ordered = true;
    f->recipe.rested = f->live.state == HR_ENGINE_PAUSED ||
                       (f->live.state == HR_ENGINE_IDLE && f->live.steps > 0); // at first it is about to run
    f->recipe.stopping = false;
    return true;
}

void feed_ask_recipe(feed *f, const char *chunk, size_t cursor)
{
    char text[HR_GUEST_TEXT_MAX];
    f->recipe.asked++;
    const int length = snprintf(text, sizeof text, "%" PRIu64 " %zu\n%s", f->recipe.asked, cursor, chunk);
    if (length > 0 && (size_t)length < sizeof text && f->guest != NULL && feed_engine_lives(f) &&
        f->recipe.state != RECIPE_WORKS && feed_why_not_command(f) == NULL) {
        (void)hr_session_order(f->session, HR_GUEST_COMPLETE, text);
    }
}

void feed_stop_recipe(feed *f)
{
    if (f->session != NULL) {
        hr_session_interrupt(f->session);
        (void)hr_session_order(f->session, HR_GUEST_END, "");
        f->recipe.stopping = true;
    }
}

// ---- what it says ---------------------------------------------------------------------------------------------

static void take_state(recipe_log *r, const char *text)
{
    const char *name = strchr(text, ' ');
    r->state = strncmp(text, "running", 7) == 0     ? RECIPE_WORKS
               : strncmp(text, "listening", 9) == 0 ? RECIPE_LISTENS
                                                    : RECIPE_IDLE;
    r->stopping = r->stopping && r->state != RECIPE_IDLE;
    if (name != NULL) {
        (void)snprintf(r->name, sizeof r->name, "%s", name + 1);
    }
}

static void take_answer(recipe_answer *r, const char *text)
{
    char *end = NULL;
    if (text[0] != '+') {
        *r = (recipe_answer){.number = strtoull(text, &end, 10)};
        r->start = strtoull(end, &end, 10);
        (void)snprintf(r->hint, sizeof r->hint, "%s", *end == ' ' ? end + 1 : "");
        return;
    }
    const size_t length = strcspn(++text, "\t");
    if (r->count < RECIPE_ANSWERS && length > 0 && length < RECIPE_ANSWER_MAX) {
        (void)snprintf(r->word[r->count], RECIPE_ANSWER_MAX, "%.*s", (int)length, text);
        (void)snprintf(r->after[r->count], sizeof r->after[0], "%s",
                       text[length] == '\t' ? text + length + 1 : "");
        r->count++;
    }
}

static void take_line(feed *f, char kind, const char *text)
{
    recipe_log *r = &f->recipe;
    const bool begins = kind == HR_GUEST_ERROR && strncmp(text, "headroom: ", 10) == 0;
    if (kind == HR_GUEST_STATE) {
        take_state(r, text);
        return;
    }
    if (kind == HR_GUEST_ANSWER) {
        take_answer(&r->answer, text);
        return;
    }
    r->plots += kind == HR_GUEST_PLOT && !r->plot_goes_on;
    r->plot_goes_on = kind == HR_GUEST_PLOT;
    add(r, kind, text);
    if (kind == HR_GUEST_NOTE) {
        run_state_log(&f->live, LOG_NOTE, "%s", text);
    } else if (begins) {
        run_state_log(&f->live, LOG_BAD, "%s", text + 10);
    }
}

bool feed_take_recipe(feed *f)
{
    static char text[TAKEN_AT_ONCE];
    bool any = false;
    while (f->session != NULL && hr_session_said(f->session, &f->recipe.cursor, text, sizeof text) > 0) {
        any = true;
        for (char *line = text, *end = strchr(line, '\n'); end != NULL; end = strchr(line, '\n')) {
            *end = '\0';
            if (line[0] != '\0') {
                take_line(f, line[0], line + 1);
            }
            line = end + 1;
        }
    }
    return any;
}

void feed_forget_recipe(feed *f)
{
    f->recipe.cursor = 0;
    f->recipe.state = RECIPE_IDLE;
    f->recipe.stopping = f->recipe.ordered = f->recipe.plot_goes_on = false;
}
