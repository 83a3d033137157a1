// SPDX-License-Identifier: Apache-2.0
// An open lesson: pages, questions, and the work, which is done with the knobs of the training that runs.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/learn/lesson_text.h"

void lesson_end(lesson_state *s)
{
    hr_lesson_end(s->table);
    hr_lesson_close(s->open);
    *s = (lesson_state){.serial = s->serial + 1};
}

hr_status lesson_begin(learn_state *l, const char *name, hr_err *err)
{
    hr_lesson *lesson = NULL;
    hr_lesson_table *table = NULL;
    HR_TRY(hr_lesson_open(name, &lesson, NULL, err));
    hr_status status = hr_lesson_begin(lesson, &(hr_lesson_watch){.goes_on = NULL}, &table, err);
    if (status != HR_OK) {
        hr_lesson_close(lesson);
        return status;
    }
    lesson_end(&l->lesson);
    l->lesson.open = lesson;
    l->lesson.table = table;
    if (l->lessons_path[0] != '\0') {
        hr_lesson_progress_read(l->lessons_path, hr_lesson_tell(lesson)->name, &l->lesson.progress);
    }
    return hr_lesson_knobs(lesson, "", &l->lesson.start, err);
}

// ---- judging --------------------------------------------------------------------------------------------------

static bool are_same(const hr_knobs *a, const hr_knobs *b)
{
    for (unsigned k = 0; k < HR_KNOB_COUNT; k++) {
        char of_a[HR_KNOB_TEXT_MAX], of_b[HR_KNOB_TEXT_MAX];
        if (strcmp(hr_knob_format(a, (hr_knob_id)k, of_a), hr_knob_format(b, (hr_knob_id)k, of_b)) != 0) {
            return false;
        }
    }
    return true;
}

// The lesson's situation is what trains: its preset, which began with its knobs.
void learn_follow(learn_state *l)
{
    lesson_state *s = &l->lesson;
    const bool works =
        s->open != NULL && s->phase == LESSON_WORKS && hr_lesson_starts_from(s->open, l->feed->preset);
    s->has_begun = works && (s->has_begun || are_same(&l->feed->knobs, &s->start));
}

static void pass(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_lesson_progress_pass(&s->progress, s->verdict.turned);
    s->phase = LESSON_AFTER;
    s->at = 0;
    s->top = 0;
}

// Knobs that are not to be turned are refused before a run is made of them, which may take the screen's time.
static bool play(lesson_state *s, hr_err *err)
{
    return !hr_lesson_judge_knobs(s->open, &s->judged, &s->verdict) ||
           (hr_lesson_try(s->table, &s->judged, err) == HR_OK &&
            hr_lesson_judge(s->open, hr_lesson_table_runs(s->table), &s->verdict, err) == HR_OK);
}

// The plan is the run: the knobs as they stand are played here, once each time that they were turned.
static void judge(learn_state *l)
{
    lesson_state *s = &l->lesson;
    hr_err err = {0};
    if (s->is_judged && are_same(&s->judged, &l->feed->knobs)) {
        return;
    }
    s->judged = l->feed->knobs;
    s->is_judged = play(s, &err);
    (void)snprintf(s->wrong, sizeof s->wrong, "%s", s->is_judged ? "" : err.sentence);
    s->is_judged = true;
    s->verdict.count = s->wrong[0] == '\0' ? s->verdict.count : 0;
    s->progress.runs++;
    if (s->wrong[0] == '\0' && s->verdict.passed) {
        pass(l);
    }
    lessons_note(l);
}

static pane_request settle(const pane_view *v, void *own)
{
    learn_state *l = own;
    (void)v;
    learn_follow(l);
    if (l->lesson.has_begun && !l->lesson.in_sandbox) {
        judge(l);
    }
    if (l->lesson.open != NULL) {
        lesson_write(&l->lesson);
    }
    return (pane_request){.kind = PANE_DONE};
}

// ---- keys -----------------------------------------------------------------------------------------------------

static pane_request begin_work(lesson_state *s)
{
    pane_request r = {.kind = PANE_BEGINS, .knobs = &s->start};
    s->phase = LESSON_WORKS;
    s->is_judged = s->has_begun = s->in_sandbox = false;
    (void)snprintf(r.text, sizeof r.text, "%s", hr_lesson_tell(s->open)->preset);
    return r;
}

// The next page, question or answer; behind the last of them the work begins.
static pane_request enter(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (s->open == NULL) {
        return pane_says("no lesson is open: Enter in the list opens one");
    }
    const hr_lesson_about *about = hr_lesson_tell(s->open);
    const uint32_t last_page = s->phase == LESSON_AFTER ? about->after.count : about->pages.count;
    s->top = 0;
    if (s->phase == LESSON_ASKS) {
        s->picked[s->at] = s->option;
        s->phase = LESSON_ANSWERS;
    } else if (s->phase == LESSON_ANSWERS) {
        s->at++;
        s->option = 0;
        s->phase = LESSON_ASKS;
        return s->at < about->question_count ? (pane_request){.kind = PANE_DONE} : begin_work(s);
    } else if (s->phase == LESSON_WORKS && !s->has_begun) {
        return begin_work(s);
    } else if (s->phase == LESSON_WORKS) {
        return pane_says("turn a knob until all of it says yes: 1 shows the Bench, h gives a hint");
    } else if (s->at + 1 < last_page) {
        s->at++;
    } else if (s->phase == LESSON_AFTER) {
        return pane_says("n opens the next lesson; stay, turn knobs and break it again");
    } else {
        s->at = 0;
        s->phase = LESSON_ASKS;
        return about->question_count > 0 ? (pane_request){.kind = PANE_DONE} : begin_work(s);
    }
    return (pane_request){.kind = PANE_DONE};
}

static int rows_of(const char *text)
{
    int rows = 0;
    for (; *text != '\0'; text++) {
        rows += *text == '\n';
    }
    return rows;
}

static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    if (s->open == NULL || columns != 0) {
        return (pane_request){.kind = columns != 0 ? PANE_ASKS_NOTHING : PANE_DONE};
    }
    if (s->phase == LESSON_ASKS) {
        const int last = (int)lesson_options(&hr_lesson_tell(s->open)->questions[s->at]) - 1;
        s->option = (uint32_t)layout_clamp((int)s->option + layout_clamp(rows, -last, last), 0, last);
    } else {
        // where lines are broken, a page has more rows than lines
        const bool is_whole = v->place.w >= HR_LESSON_PAGE_COLUMNS + 2 && s->phase != LESSON_WORKS;
        const int shown = is_whole ? v->place.h - 1 : 1;
        const int most = rows_of(s->text) - shown;
        s->top = layout_clamp(s->top + layout_clamp(rows, -100, 100), 0, most > 0 ? most : 0);
    }
    return (pane_request){.kind = PANE_DONE};
}

static pane_request hint(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (s->open == NULL || s->phase != LESSON_WORKS) {
        return pane_says("hints are for the work of a lesson: Enter goes on to it");
    }
    s->progress.hints = s->progress.hints < HR_LESSON_HINTS ? s->progress.hints + 1 : HR_LESSON_HINTS;
    s->hint = s->progress.hints;
    lessons_note(l);
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_LEARN};
}

static pane_request sandbox(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (s->open == NULL || (s->phase != LESSON_WORKS && !s->in_sandbox)) {
        return pane_says("a sandbox is left for the work of a lesson: Enter goes on to it");
    }
    s->in_sandbox = !s->in_sandbox;
    if (s->in_sandbox) {
        s->parked = l->feed->knobs;
        return pane_says("sandbox: turn whatever you like, nothing counts; s goes back to where you were");
    }
    pane_request r = {.kind = PANE_TURNS_ALL, .knobs = &s->parked};
    (void)snprintf(r.text, sizeof r.text, "back in the lesson, with its knobs as you left them");
    return r;
}

static pane_request next(const pane_view *v, void *own)
{
    learn_state *l = own;
    hr_err err;
    (void)v;
    if (l->lesson.open == NULL || !l->lesson.progress.done) {
        return pane_says("the next lesson opens when this one is done");
    }
    const char *name = hr_lesson_tell(l->lesson.open)->name;
    for (size_t k = 0; k + 1 < l->lesson_count; k++) {
        if (strcmp(l->lessons[k].name, name) == 0) {
            return lesson_begin(l, l->lessons[k + 1].name, &err) == HR_OK
                       ? (pane_request){.kind = PANE_FOCUSES, .pane = PANE_LESSON}
                       : pane_says("%s", err.sentence);
        }
    }
    return pane_says("that was the last lesson");
}

// ---- drawing --------------------------------------------------------------------------------------------------

static const char *key_of(const lesson_state *s)
{
    static const char *const keys[] = {[LESSON_PAGES] = "Enter goes on",
                                       [LESSON_ASKS] = "Enter answers",
                                       [LESSON_ANSWERS] = "Enter goes on",
                                       [LESSON_WORKS] = "h hint · s sandbox",
                                       [LESSON_AFTER] = "n next lesson"};
    return keys[s->phase];
}

static role role_of_line(const char *line)
{
    return strncmp(line, "  yes ", 6) == 0  ? ROLE_GOOD
           : strncmp(line, "  NO ", 5) == 0 ? ROLE_WARN
           : strncmp(line, " > ", 3) == 0   ? ROLE_SELECT
                                            : ROLE_TEXT;
}

// Where a row of goals goes on in the next row of the screen: below its words.
static int indent_of(const char *line)
{
    return strncmp(line, "  yes ", 6) == 0 || strncmp(line, "  NO  ", 6) == 0 ||
                   strncmp(line, "  -   ", 6) == 0
               ? 6
               : (int)strspn(line, " ");
}

static int draw_hanging(const canvas *words, int y, const char *line)
{
    const int indent = indent_of(line);
    char head[8];
    (void)snprintf(head, sizeof head, "%.*s", indent, line);
    canvas rest = canvas_sub(words, y, indent, words->area.h - y, words->area.w - indent);
    paint_text(words, y, 0, indent, role_of_line(line), head);
    return paint_wrapped(&rest, 0, role_of_line(line), line + strlen(head));
}

// A page stands as it was written; what was put together here is broken where the screen ends.
static void draw_page(const canvas *c, const lesson_state *s)
{
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    int y = -s->top;
    for (const char *at = s->text; *at != '\0' && y < words.area.h;) {
        char line[TABLE_CELL_MAX];
        const size_t bytes = strcspn(at, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)bytes, at);
        const bool is_indented = strncmp(line, "  ", 2) == 0, is_long = (int)strlen(line) > words.area.w;
        if (y >= 0 && is_long && (!is_indented || s->phase == LESSON_WORKS)) {
            y += draw_hanging(&words, y, line);
        } else {
            if (y >= 0) {
                paint_text(&words, y, 0, words.area.w, role_of_line(line), line);
            }
            y++;
        }
        at += bytes + (at[bytes] == '\n');
    }
}

// Beside the list: what is open, or what the list is for.
static void draw_small(const canvas *c, const lesson_state *s)
{
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    const char *said = s->open == NULL
                           ? "A lesson is a situation that does not do what is wanted. Enter opens one."
                           : hr_lesson_tell(s->open)->line;
    const int y = paint_wrapped(&words, 0, ROLE_TEXT, said);
    if (s->open != NULL && y < words.area.h) {
        canvas rest = canvas_sub(&words, y, 0, words.area.h - y, words.area.w);
        paint_wrapped(&rest, 0, ROLE_DIM, "Shift-Tab goes on with it.");
    }
}

static void draw(const canvas *c, const pane_view *v)
{
    const learn_state *l = v->rows;
    const lesson_state *s = &l->lesson;
    char title[96] = "lesson";
    if (s->open != NULL) {
        (void)snprintf(title, sizeof title, "lesson · %s", hr_lesson_tell(s->open)->title);
    }
    paint_rule(c, v->focused, title, v->focused && s->open != NULL ? key_of(s) : "");
    if (v->focused && s->open != NULL) {
        draw_page(c, s);
    } else {
        draw_small(c, s);
    }
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const learn_state *l = v->rows;
    (void)snprintf(text, PANE_TEXT_MAX, "%.*s", PANE_TEXT_MAX - 1,
                   l->lesson.open == NULL ? "No lesson is open: Enter in the list opens one."
                                          : l->lesson.text);
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    const learn_state *l = v->rows;
    (void)snprintf(text, size, "%s", l->lesson.text);
    return l->lesson.open != NULL;
}

const pane_ops pane_lesson = {.draw = draw,
                              .settle = settle,
                              .move = move,
                              .enter = enter,
                              .enter_does = "go on",
                              .hint = hint,
                              .sandbox = sandbox,
                              .next = next,
                              .say = say,
                              .copy = copy,
                              .term = "lesson"};
