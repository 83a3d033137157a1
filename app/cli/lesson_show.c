// SPDX-License-Identifier: Apache-2.0
#include "app/cli/lesson_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "app/cli/interrupt.h"
#include "app/cli/say.h"

enum { BANDS_SHOWN = 3 };

static bool goes_on(void *unused)
{
    (void)unused;
    return !interrupt_seen();
}

const hr_lesson_watch lesson_until_signal = {.goes_on = goes_on};

hr_status lesson_show_page(const char *page, const hr_lesson_runs *runs, hr_err *err)
{
    char *filled = NULL;
    HR_TRY(hr_lesson_fill(page, runs, &filled, err));
    for (const char *at = filled; *at != '\0';) {
        const size_t bytes = strcspn(at, "\n");
        printf("%s%.*s\n", bytes > 0 ? "  " : "", (int)bytes, at);
        at += bytes + (at[bytes] == '\n');
    }
    putchar('\n');
    hr_lesson_text_free(filled);
    return HR_OK;
}

void lesson_show_goals(const hr_lesson_about *about)
{
    puts("  Wanted:");
    for (uint32_t k = 0; k < about->goal_count; k++) {
        fputs("    - ", stdout);
        say_paragraph(about->goals[k].want, 6);
    }
}

void lesson_show_knobs(const hr_lesson *lesson, const hr_knobs *knobs, bool in_sandbox)
{
    hr_knobs start;
    if (hr_lesson_knobs(lesson, "", &start, NULL) != HR_OK) {
        return;
    }
    for (unsigned k = 0; k < HR_KNOB_COUNT; k++) {
        char before[HR_KNOB_TEXT_MAX], now[HR_KNOB_TEXT_MAX];
        const hr_knob_id id = (hr_knob_id)k;
        const bool turned = strcmp(hr_knob_format(&start, id, before), hr_knob_format(knobs, id, now)) != 0;
        if (in_sandbox ? turned : hr_lesson_unlocks(lesson, id)) {
            printf("    %s=%s%s%s\n", hr_knob_rows(NULL)[k].key, now, turned ? "   at the start " : "",
                   turned ? before : "");
        }
    }
}

hr_status lesson_show_knob(const hr_knobs *knobs, const char *key, hr_err *err)
{
    const char *near = NULL;
    char now[HR_KNOB_TEXT_MAX], values[1024] = "";
    const hr_knob_row *row = hr_knob_find(key, &near);
    if (row == NULL) {
        const hr_status status = HR_FAIL(err, KNOB, "there is no knob '%.64s'", key);
        hr_err_try(err, "knobs %s", near == NULL ? "# those that may be turned" : near);
        return status;
    }
    printf("    %s=%s\n      ", row->key, hr_knob_format(knobs, row->id, now));
    say_paragraph(row->line, 6);
    fputs("      ", stdout);
    say_paragraph(row->explanation, 6);
    for (int k = 0; row->type == HR_KNOB_CHOICE && row->choices[k] != NULL; k++) {
        const size_t used = strlen(values);
        (void)snprintf(values + used, sizeof values - used, "%s%s", k > 0 ? ", " : "", row->choices[k]);
    }
    if (values[0] != '\0') {
        fputs("      one of ", stdout);
        say_paragraph(values, 13);
    }
    return HR_OK;
}

// ---- a run ----------------------------------------------------------------------------------------------------

static void print_bands(const uint64_t by_category[HR_CATEGORY_COUNT])
{
    bool shown[HR_CATEGORY_COUNT] = {false};
    fputs("    at the peak: ", stdout);
    for (int n = 0; n < BANDS_SHOWN; n++) {
        char size[HR_BYTES_TEXT_MAX];
        int largest = -1;
        for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
            if (!shown[k] && by_category[k] > 0 && (largest < 0 || by_category[k] > by_category[largest])) {
                largest = k;
            }
        }
        if (largest < 0) {
            break;
        }
        shown[largest] = true;
        printf("%s%s %s", n > 0 ? ", " : "", hr_category_name((hr_category)largest),
               hr_bytes_human(by_category[largest], size));
    }
    putchar('\n');
}

static void print_time(const hr_report *r)
{
    if (!isnan(r->step.seconds)) {
        printf("    a step takes %.3g ms (%s)", 1e3 * r->step.seconds,
               r->step.measured ? "measured" : "simulated");
    } else {
        fputs("    no step time: the card is not known", stdout);
    }
    if (!isnan(r->train.loss_last)) {
        printf("; the loss goes from %.4g to %.4g", r->train.loss_first, r->train.loss_last);
    }
    putchar('\n');
}

static void print_host(const hr_report *r)
{
    char host[HR_BYTES_TEXT_MAX], copied[HR_BYTES_TEXT_MAX];
    if (r->host.peak_bytes != HR_NONE && r->host.stage_count > 0 && r->host.unknown[0] == '\0') {
        printf("    the host holds %s, %s are copied to the device a step\n",
               hr_bytes_human(r->host.peak_bytes, host), hr_bytes_human(r->h2d_bytes_per_step, copied));
    }
}

static void print_fitting(const hr_report *r)
{
    char peak[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], pool[HR_BYTES_TEXT_MAX];
    const bool limited = r->memory.limit_bytes < HR_UNLIMITED_BYTES;
    printf("    it fits%s%s: %s in use at the peak, %s taken\n", limited ? " " : "",
           limited ? hr_bytes_human(r->memory.limit_bytes, limit) : "",
           hr_bytes_human(r->memory.peak_in_use_bytes, peak),
           hr_bytes_human(r->memory.peak_pool_bytes, pool));
    print_bands(r->memory.at_peak.by_category);
    print_host(r);
    print_time(r);
}

void lesson_show_run(const hr_lesson_seen *seen)
{
    const hr_report *r = &seen->report;
    if (!hr_oom_cause_refuses(r->oom.cause)) {
        print_fitting(r);
        return;
    }
    printf("    out of memory in step %" PRIu64 "\n    ", seen->events.steps + 1);
    say_paragraph(r->oom.sentence, 4);
    print_bands(r->oom.by_category);
}

// ---- a verdict ------------------------------------------------------------------------------------------------

void lesson_show_verdict(const hr_lesson_verdict *verdict)
{
    for (uint32_t k = 0; k < verdict->count; k++) {
        const hr_lesson_row *row = &verdict->rows[k];
        char said[2 * HR_LESSON_ROW_TEXT_MAX + 16];
        (void)snprintf(said, sizeof said, "%s%s%s%s", row->want, row->have[0] == '\0' ? "" : " (now ",
                       row->have, row->have[0] == '\0' ? "" : ")");
        printf("    %s ", row->holds ? "yes" : "NO ");
        say_paragraph(said, 8);
    }
}
