// SPDX-License-Identifier: Apache-2.0
#include "app/cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "headroom/units.h"

#include "app/cli/say.h"

enum { SENTENCES_PER_RUN = 10, SENTENCE_STEPS = 50, LINE_MAX_COLUMNS = 160, LOSS_TEXT_MAX = 40 };
static const uint64_t terminal_pause_ns = 100 * UINT64_C(1000000);
static const uint64_t log_pause_ns = 1000 * UINT64_C(1000000);

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void progress_begin(progress *p, bool sentences, uint64_t target_steps)
{
    *p = (progress){
        .sentences = sentences, .terminal = isatty(STDERR_FILENO) != 0, .target_steps = target_steps};
    p->shown_ns = now_ns();
}

static double examples_per_second(const progress *p)
{
    return p->busy_ns > 0 ? (double)p->samples / ((double)p->busy_ns * 1e-9) : 0;
}

static void begin_interval(progress *p)
{
    p->samples = p->busy_ns = 0;
    p->shown_ns = now_ns();
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

static void show_line(progress *p)
{
    char line[LINE_MAX_COLUMNS];
    char loss[LOSS_TEXT_MAX];
    char peak[HR_BYTES_TEXT_MAX];
    int length = print_steps(p, "step", line, sizeof line);
    if (p->has_loss) {
        length +=
            snprintf(line + length, sizeof line - (size_t)length, "  loss %s", loss_text(p->last.loss, loss));
    }
    if (p->busy_ns > 0) {
        length += snprintf(line + length, sizeof line - (size_t)length, "  %.0f examples/s",
                           examples_per_second(p));
    }
    (void)snprintf(line + length, sizeof line - (size_t)length, "  peak %s",
                   hr_bytes_human(p->last.peak_in_use_bytes, peak));
    if (p->terminal) {
        unsigned columns = (unsigned)strlen(line);
        fprintf(stderr, "\r%s%*s", line, columns < p->columns ? (int)(p->columns - columns) : 0, "");
        p->columns = columns;
    } else {
        fprintf(stderr, "%s\n", line);
    }
    (void)fflush(stderr);
    begin_interval(p);
}

static void say_step(progress *p)
{
    char steps[80];
    char loss[LOSS_TEXT_MAX];
    char rate[SAY_COUNT_TEXT_MAX];
    char peak[HR_BYTES_TEXT_MAX];
    (void)print_steps(p, "Step", steps, sizeof steps);
    fprintf(stderr, "%s: ", steps);
    if (p->has_loss) {
        fprintf(stderr, "the loss is %s, ", loss_text(p->last.loss, loss));
    }
    if (p->busy_ns > 0) {
        fprintf(stderr, "%s examples pass in a second, and ",
                say_count((uint64_t)llround(examples_per_second(p)), rate));
    }
    fprintf(stderr, "the step took at most %s.\n", hr_bytes_human(p->last.peak_in_use_bytes, peak));
    begin_interval(p);
}

static bool is_due(const progress *p)
{
    if (p->steps == p->target_steps) {
        return true;
    }
    if (p->sentences) {
        uint64_t tenth = p->target_steps / SENTENCES_PER_RUN;
        uint64_t every = p->target_steps == 0 ? SENTENCE_STEPS : tenth > 0 ? tenth : 1;
        return p->steps == 1 || p->steps % every == 0;
    }
    return now_ns() - p->shown_ns >= (p->terminal ? terminal_pause_ns : log_pause_ns);
}

static void on_step(progress *p, const hr_event *event)
{
    p->last = event->u.step;
    p->steps = event->step;
    p->samples += p->last.samples;
    p->busy_ns += p->last.duration_ns;
    if (!is_due(p)) {
        return;
    }
    if (p->sentences) {
        say_step(p);
    } else {
        show_line(p);
    }
}

static void on_eval(progress *p, const hr_event *event)
{
    const hr_event_step *s = &event->u.step;
    char samples[SAY_COUNT_TEXT_MAX];
    progress_end(p);
    (void)say_count(s->samples, samples);
    if (isnan(s->accuracy)) { // a loss over values: nothing is right or wrong
        fprintf(stderr,
                p->sentences ? "Evaluation %" PRIu32 ": over %s held-out samples the loss is %.6f.\n"
                             : "evaluation %" PRIu32 "  %s held-out samples  loss %.6f\n",
                s->count + 1, samples, s->loss);
    } else if (p->sentences) {
        fprintf(stderr,
                "Evaluation %" PRIu32 ": %.2f %% of %s held-out samples are right, with a loss of %.6f.\n",
                s->count + 1, s->accuracy * 100, samples, s->loss);
    } else {
        fprintf(stderr, "evaluation %" PRIu32 "  accuracy %.2f %% of %s held-out samples  loss %.6f\n",
                s->count + 1, s->accuracy * 100, samples, s->loss);
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
    fprintf(stderr, p->sentences ? "Saved to %s after step %" PRIu64 ".\n" : "saved %s  step %" PRIu64 "\n",
            event->u.note.text, event->u.note.count);
}

void progress_event(void *context, const hr_event *event)
{
    progress *p = context;
    if (event->kind == HR_EVENT_STEP) {
        on_step(p, event);
    } else if (event->kind == HR_EVENT_EVAL) {
        on_eval(p, event);
    } else if (event->kind == HR_EVENT_SAVED) {
        on_saved(p, event);
    }
}

void progress_end(progress *p)
{
    if (p->columns > 0) {
        fputc('\n', stderr);
        p->columns = 0;
    }
}
