// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "app/cli/interrupt.h"
#include "app/cli/page.h"
#include "app/cli/replay.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

// ---- other cards, other allocators ----------------------------------------------------------------------------

hr_status plan_trace_holds(hr_replay *replay, const hr_knobs *knobs, hr_replay_memory *memory, bool *whole,
                           hr_err *err)
{
    const hr_replay_options options = {.stop = replay_is_interrupted};
    hr_replay_result result;
    HR_TRY(hr_replay_run(replay, knobs, &options, &result, err));
    *memory = result.memory;
    *whole = result.failures_total == 0;
    hr_replay_result_deinit(&result);
    return HR_OK;
}

static const hr_replay_options interruptible = {.stop = replay_is_interrupted};

static hr_status print_remedy(hr_replay *replay, const replay_column *c, hr_err *err)
{
    hr_replay_fix fix;
    uint32_t count = 0;
    char left[HR_BYTES_TEXT_MAX];
    HR_TRY(hr_replay_remedies(replay, &c->knobs, &interruptible, &fix, 1, &count, err));
    if (count > 0) {
        printf("  with %s it fits, and %s are left\n", fix.pair,
               hr_bytes_human(fix.memory.limit_bytes - fix.memory.peak_in_use_bytes, left));
    }
    return HR_OK;
}

static hr_status print_smallest_card(hr_replay *replay, const replay_table *t, hr_err *err)
{
    hr_replay_fix fix;
    bool serves = false;
    char left[HR_BYTES_TEXT_MAX];
    HR_TRY(hr_replay_smallest_card(replay, &t->columns[0].knobs, &interruptible, &fix, &serves, err));
    if (!serves) {
        puts("  no card of `headroom cards` holds it");
        return HR_OK;
    }
    printf("  the smallest card that holds it is %s, with %s left\n", strchr(fix.pair, '=') + 1,
           hr_bytes_human(fix.memory.limit_bytes - fix.memory.peak_in_use_bytes, left));
    return HR_OK;
}

// ---- the answer -----------------------------------------------------------------------------------------------

static void print_shortfall(const replay_table *t, const hr_replay_result *r)
{
    const hr_replay_failure *f = &r->failures[0];
    char a[HR_BYTES_TEXT_MAX], b[HR_BYTES_TEXT_MAX], c[HR_BYTES_TEXT_MAX];
    if (t->about->peak_requested_bytes > f->limit_bytes) {
        printf("does not fit: %s are alive at once, %s more than the limit of %s\n",
               hr_bytes_human(t->about->peak_requested_bytes, a),
               hr_bytes_human(t->about->peak_requested_bytes - f->limit_bytes, b),
               hr_bytes_human(f->limit_bytes, c));
    } else {
        printf("does not fit: a request of %s is refused with %s of %s in use\n",
               hr_bytes_human(f->requested_bytes, a), hr_bytes_human(f->in_use_bytes, b),
               hr_bytes_human(f->limit_bytes, c));
    }
}

static hr_status print_answer(hr_replay *replay, const replay_table *t, hr_err *err)
{
    const hr_replay_result *r = &t->columns[0].result;
    char peak[HR_BYTES_TEXT_MAX];
    if (r->failures_total > 0) {
        print_shortfall(t, r);
        HR_TRY(print_remedy(replay, &t->columns[0], err));
    } else if (r->memory.limit_bytes == HR_NONE) {
        printf(
            "no limit: at its peak it has %s in use; -s device.card=NAME or device.vram=SIZE says what there "
            "is\n",
            hr_bytes_human(r->memory.peak_in_use_bytes, peak));
    } else {
        report_print_fits(r->memory.limit_bytes, r->memory.peak_in_use_bytes);
    }
    HR_TRY(print_smallest_card(replay, t, err));
    putchar('\n');
    return HR_OK;
}

// ---- the command ----------------------------------------------------------------------------------------------

// A trace is the step's memory and nothing else of it.
static hr_status check_options(const cli_args *args, hr_err *err)
{
    const uint64_t of_a_program =
        APP_OPTION(LISTING) | APP_OPTION(DIFF) | APP_OPTION(REPEAT) | APP_OPTION(STEPS);
    if ((args->given & of_a_program) == 0) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(
        err, USAGE, "%.200s is a trace, and --listing, --diff, --repeat and --steps are about a preset",
        args->words[0]);
    hr_err_try(err, "headroom plan %.200s", args->words[0]);
    return status;
}

// Whose memory it was. Other traces do not say; theirs is the knob's default.
static const char *kind_of(const hr_replay_about *about)
{
    return strcmp(about->format, "pytorch_snapshot") == 0 ? "caching" : "bfc";
}

hr_status plan_trace_open(const cli_args *args, const char *name, hr_replay **replay, replay_table *t,
                          hr_err *err)
{
    HR_TRY(hr_replay_open(name, replay, err));
    t->name = name;
    t->about = hr_replay_get_about(*replay);
    t->recorded = hr_replay_recorded_heap(*replay);
    t->kind_unnamed = kind_of(t->about);
    HR_TRY(hr_replay_check_requests(*replay, name, err));
    return replay_make_columns(args, t, err);
}

static hr_status print_plan(const cli_args *args, hr_replay *replay, replay_table *t, hr_err *err)
{
    const char *style = NULL;
    HR_TRY(replay_check_options(args, t, &style, err));
    HR_TRY(replay_run_columns(replay, args, t, err));
    if (cli_given(args, APP_JSON)) {
        return replay_print_json(t, err);
    }
    const replay_page page = {page_columns(), page_draws_blocks(args), style};
    HR_TRY(print_answer(replay, t, err));
    return replay_print_text(t, &page, err);
}

int plan_trace(const cli_args *args)
{
    static replay_table t;
    hr_replay *replay = NULL;
    hr_err err;
    interrupt_watch();
    hr_status status = check_options(args, &err);
    status = status == HR_OK ? plan_trace_open(args, args->words[0], &replay, &t, &err) : status;
    status = status == HR_OK ? print_plan(args, replay, &t, &err) : status;
    int exit_code = status == HR_OK ? replay_exit_code(&t) : say_error(&err, cli_given(args, APP_JSON));
    exit_code = status == HR_INTERRUPTED ? interrupt_exit_code() : exit_code;
    replay_table_deinit(&t);
    hr_replay_close(replay);
    return exit_code;
}
