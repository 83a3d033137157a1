// SPDX-License-Identifier: Apache-2.0
#include "app/cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "headroom/units.h"

#include "app/cli/say.h"

enum { LINE_MAX_COLUMNS = 160, LOSS_TEXT_MAX = 40, REST_TEXT_MAX = 32 };
static const uint64_t terminal_pause_ns = 100 * UINT64_C(1000000);
static const uint64_t log_pause_ns = 1000 * UINT64_C(1000000);
// Sentences: one each minute, and at an epoch's end when the last is not that fresh.
static const uint64_t sentence_pause_ns = 60 * UINT64_C(1000000000),
                      epoch_pause_ns = 10 * UINT64_C(1000000000);

uint64_t progress_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void progress_begin(progress *p, FILE *out, uint64_t target_steps)
{
    *p = (progress){.out = out, .terminal = isatty(STDERR_FILENO) != 0, .target_steps = target_steps};
    p->losses = (hr_event_losses){.student = (double)NAN, .distill = (double)NAN};
    p->shown_ns = progress_now_ns();
}

static double examples_per_second(const progress *p)
{
    return p->busy_ns > 0 ? (double)p->samples / ((double)p->busy_ns * 1e-9) : 0;
}

static void begin_interval(progress *p)
{
    p->samples = p->busy_ns = 0;
    p->shown_ns = progress_now_ns();
}

// "step 120 of 400"
static int print_steps(const progress *p, const char *word, char *text, size_t size)
{
    char steps[SAY_COUNT_TEXT_MAX];
    char target[SAY_COUNT_TEXT_MAX];
    (void)say_count(p->steps, steps);
    if (p->target_steps == 0) {
        return snprintf(text, size, "%s %s", word, steps);
    }
    return snprintf(text, size, "%s %s of %s", word, steps, say_count(p->target_steps, target));
}

// "nan" without the sign that some of them have.
static const char *loss_text(double loss, char text[LOSS_TEXT_MAX])
{
    (void)snprintf(text, LOSS_TEXT_MAX, "%.6f", isnan(loss) ? (double)NAN : loss);
    return text;
}

// On a terminal over the line before.
static void write_line(progress *p, const char *line)
{
    if (p->terminal) {
        unsigned columns = (unsigned)strlen(line);
        fprintf(stderr, "\r%s%*s", line, columns < p->columns ? (int)(p->columns - columns) : 0, "");
        p->columns = columns;
    } else {
        fprintf(stderr, "%s\n", line);
    }
    (void)fflush(stderr);
}

// Behind what stands there; what has no room is cut off.
__attribute__((format(printf, 2, 3))) static void append(char line[LINE_MAX_COLUMNS], const char *format, ...)
{
    const size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line + used, LINE_MAX_COLUMNS - used, format, arguments);
    va_end(arguments);
}

// What the loss is made of, where there is a teacher.
static bool append_parts(const progress *p, char line[LINE_MAX_COLUMNS])
{
    const bool student = !isnan(p->losses.student), distill = !isnan(p->losses.distill);
    if (student) {
        append(line, "  student %.4f", p->losses.student);
    }
    if (distill) {
        append(line, "  distill %.4f", p->losses.distill);
    }
    return student || distill;
}

static void show_line(progress *p)
{
    char line[LINE_MAX_COLUMNS];
    char loss[LOSS_TEXT_MAX];
    char peak[HR_BYTES_TEXT_MAX];
    (void)print_steps(p, "step", line, sizeof line);
    if (p->has_loss) {
        append(line, "  loss %s", loss_text(p->last.loss, loss));
    }
    const bool has_parts = append_parts(p, line);
    if (p->busy_ns > 0 && !has_parts) { // a terminal's line has no more room
        append(line, "  %.0f examples/s", examples_per_second(p));
    }
    append(line, "  peak %s", hr_bytes_human(p->last.peak_in_use_bytes, peak));
    write_line(p, line);
    begin_interval(p);
}

// "about 3 minutes"
static const char *rest_text(double seconds, char text[REST_TEXT_MAX])
{
    const bool minutes = seconds >= 90, hours = seconds >= 5400;
    (void)snprintf(text, REST_TEXT_MAX, "about %.0f %s",
                   ceil(seconds / (hours     ? 3600
                                   : minutes ? 60
                                             : 1)),
                   hours     ? "hours"
                   : minutes ? "minutes"
                             : "seconds");
    return text;
}

static void say_rest(const progress *p, uint64_t now_ns)
{
    char rest[REST_TEXT_MAX];
    const uint64_t done = p->steps - p->said_steps;
    if (p->target_steps <= p->steps || done == 0) {
        return;
    }
    const double seconds =
        (double)(now_ns - p->said_ns) * 1e-9 / (double)done * (double)(p->target_steps - p->steps);
    fprintf(p->out, "; %s are left", rest_text(seconds, rest));
}

static void begin_sentence_interval(progress *p, uint64_t now_ns)
{
    p->said_ns = now_ns;
    p->said_steps = p->steps;
    p->peak_bytes = 0;
    begin_interval(p);
}

static void say_parts(const progress *p)
{
    if (!isnan(p->losses.student) && !isnan(p->losses.distill)) {
        fprintf(p->out, "of which the student's own is %.6f and its distance from the teacher %.6f, ",
                p->losses.student, p->losses.distill);
    }
}

static void say_step(progress *p, uint64_t now_ns)
{
    char steps[80];
    char loss[LOSS_TEXT_MAX];
    char rate[SAY_COUNT_TEXT_MAX];
    char peak[HR_BYTES_TEXT_MAX];
    (void)print_steps(p, "Step", steps, sizeof steps);
    fprintf(p->out, "%s: ", steps);
    if (p->has_loss) {
        fprintf(p->out, "the loss is %s, ", loss_text(p->last.loss, loss));
        say_parts(p);
    }
    if (p->busy_ns > 0) {
        fprintf(p->out, "%s examples pass in a second, and ",
                say_count((uint64_t)llround(examples_per_second(p)), rate));
    }
    fprintf(p->out, "a step takes at most %s", hr_bytes_human(p->peak_bytes, peak));
    say_rest(p, now_ns);
    fputs(".\n", p->out);
    (void)fflush(p->out);
    begin_sentence_interval(p, now_ns);
}

static bool is_time(const progress *p)
{
    return progress_now_ns() - p->shown_ns >= (p->terminal ? terminal_pause_ns : log_pause_ns);
}

static bool is_due(const progress *p)
{
    return p->steps == p->target_steps || is_time(p);
}

static void on_step(progress *p, const hr_event *event)
{
    p->last = event->u.step;
    p->steps = event->step;
    p->samples += p->last.samples;
    p->busy_ns += p->last.duration_ns;
    p->peak_bytes = p->last.peak_in_use_bytes > p->peak_bytes ? p->last.peak_in_use_bytes : p->peak_bytes;
    if (p->out == NULL) {
        if (is_due(p)) {
            show_line(p);
        }
    } else if (p->said_ns == 0) { // the first step has sentences of its own
        begin_sentence_interval(p, event->time_ns);
    } else if (event->time_ns - p->said_ns >= sentence_pause_ns && p->steps != p->target_steps) {
        say_step(p, event->time_ns);
    }
}

static void on_epoch(progress *p, const hr_event *event)
{
    if (p->out != NULL && p->said_ns != 0 && event->time_ns - p->said_ns >= epoch_pause_ns) {
        fprintf(p->out, "Epoch %" PRIu64 " has ended. ", event->u.note.count);
        say_step(p, event->time_ns);
    }
}

static void on_eval(progress *p, const hr_event *event)
{
    const hr_event_step *s = &event->u.step;
    char samples[SAY_COUNT_TEXT_MAX];
    FILE *out = p->out != NULL ? p->out : stderr;
    progress_end(p);
    (void)say_count(s->samples, samples);
    if (isnan(s->accuracy)) { // a loss over values: nothing is right or wrong
        fprintf(out,
                p->out != NULL ? "Evaluation %" PRIu32 ": over %s held-out samples the loss is %.6f.\n"
                               : "evaluation %" PRIu32 "  %s held-out samples  loss %.6f\n",
                s->count + 1, samples, s->loss);
    } else if (p->out != NULL) {
        fprintf(out,
                "Evaluation %" PRIu32 ": %.2f %% of %s held-out samples are right, with a loss of %.6f.\n",
                s->count + 1, s->accuracy * 100, samples, s->loss);
    } else {
        fprintf(out, "evaluation %" PRIu32 "  accuracy %.2f %% of %s held-out samples  loss %.6f\n",
                s->count + 1, s->accuracy * 100, samples, s->loss);
    }
}

// ", 310 a second, about 3 minutes are left", where there is more to come behind a first batch; "".
static void answers_left(const hr_event_answers *a, char text[LINE_MAX_COLUMNS])
{
    char rest[REST_TEXT_MAX];
    text[0] = '\0';
    if (a->answered == 0 || a->answered >= a->samples || a->spent_ns == 0) {
        return;
    }
    const double per_second = (double)a->answered / ((double)a->spent_ns * 1e-9);
    (void)snprintf(text, LINE_MAX_COLUMNS, ", %.*f a second, %s are left", per_second < 10 ? 1 : 0,
                   per_second, rest_text((double)(a->samples - a->answered) / per_second, rest));
}

static void say_answers(progress *p, const hr_event_answers *a, uint64_t time_ns)
{
    char answered[SAY_COUNT_TEXT_MAX], samples[SAY_COUNT_TEXT_MAX], peak[HR_BYTES_TEXT_MAX];
    char rest[LINE_MAX_COLUMNS];
    (void)say_count(a->samples, samples);
    if (a->answered == 0) {
        fprintf(p->out, "The teacher answers %s samples before the first step.\n", samples);
    } else if (a->answered == a->samples) {
        fprintf(p->out, "The teacher has answered all of them, which took %s at its peak.\n",
                hr_bytes_human(a->peak_in_use_bytes, peak));
    } else if (time_ns - p->answers_ns >= sentence_pause_ns) {
        answers_left(a, rest);
        fprintf(p->out, "The teacher has answered %s of %s samples%s.\n", say_count(a->answered, answered),
                samples, rest);
    } else {
        return;
    }
    p->answers_ns = time_ns;
    (void)fflush(p->out);
}

static void on_answers(progress *p, const hr_event *event)
{
    const hr_event_answers *a = &event->u.answers;
    char line[LINE_MAX_COLUMNS], rest[LINE_MAX_COLUMNS], answered[SAY_COUNT_TEXT_MAX],
        samples[SAY_COUNT_TEXT_MAX];
    p->answering = true;
    if (p->out != NULL) {
        say_answers(p, a, event->time_ns);
    } else if (a->answered == 0 || a->answered == a->samples || is_time(p)) {
        answers_left(a, rest);
        (void)snprintf(line, sizeof line, "teacher answers %s of %s%.80s", say_count(a->answered, answered),
                       say_count(a->samples, samples), rest);
        write_line(p, line);
        p->shown_ns = progress_now_ns();
    }
}

// The last step's save may also be the one that ends the run.
static void on_saved(progress *p, const hr_event *event)
{
    if (p->has_saved && p->saved_step == event->u.note.count &&
        strcmp(p->saved_to, event->u.note.text) == 0) {
        return;
    }
    p->has_saved = true;
    p->saved_step = event->u.note.count;
    (void)snprintf(p->saved_to, sizeof p->saved_to, "%s", event->u.note.text);
    progress_end(p);
    fprintf(p->out != NULL ? p->out : stderr,
            p->out != NULL ? "Saved to %s after step %" PRIu64 ".\n" : "saved %s  step %" PRIu64 "\n",
            event->u.note.text, event->u.note.count);
}

static void on_log(progress *p, const hr_event *event)
{
    if (event->u.note.count != 1) {
        return;
    }
    progress_end(p);
    fprintf(p->out != NULL ? p->out : stderr, p->out != NULL ? "Note: %s.\n" : "note  %s\n",
            event->u.note.text);
}

void progress_event(void *context, const hr_event *event)
{
    progress *p = context;
    if (event->kind == HR_EVENT_STEP) {
        on_step(p, event);
    } else if (event->kind == HR_EVENT_EVAL) {
        on_eval(p, event);
    } else if (event->kind == HR_EVENT_EPOCH) {
        on_epoch(p, event);
    } else if (event->kind == HR_EVENT_ANSWERS) {
        on_answers(p, event);
    } else if (event->kind == HR_EVENT_LOSSES) {
        p->losses = event->u.losses;
    } else if (event->kind == HR_EVENT_BUILD && p->answering) {
        p->answering = false;
        progress_end(p); // steps are another line
    } else if (event->kind == HR_EVENT_SAVED) {
        on_saved(p, event);
    } else if (event->kind == HR_EVENT_LOG) {
        on_log(p, event);
    }
}

void progress_round(progress *p, uint32_t done, uint32_t rounds)
{
    char line[LINE_MAX_COLUMNS], step[SAY_COUNT_TEXT_MAX], round[SAY_COUNT_TEXT_MAX], all[SAY_COUNT_TEXT_MAX];
    const uint64_t now = progress_now_ns();
    if (now - p->shown_ns < (p->out == NULL ? log_pause_ns : sentence_pause_ns)) {
        return;
    }
    (void)snprintf(line, sizeof line, p->out == NULL ? "step %s  round %s of %s" : "Step %s: round %s of %s.",
                   say_count(p->steps + 1, step), say_count(done, round), say_count(rounds, all));
    p->shown_ns = now;
    if (p->out != NULL) {
        fprintf(p->out, "%s\n", line);
        (void)fflush(p->out);
    } else {
        write_line(p, line);
    }
}

void progress_line(progress *p, const char *line)
{
    if (p->terminal && is_time(p)) {
        write_line(p, line);
        p->shown_ns = progress_now_ns();
    }
}

void progress_clear(progress *p)
{
    if (p->columns > 0) {
        fprintf(stderr, "\r%*s\r", (int)p->columns, "");
        (void)fflush(stderr);
        p->columns = 0;
    }
}

void progress_end(progress *p)
{
    if (p->columns > 0) {
        fputc('\n', stderr);
        p->columns = 0;
    }
}
