// SPDX-License-Identifier: Apache-2.0
#include "app/cli/cards_fit_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/interrupt.h"
#include "app/cli/plan_trace.h"
#include "app/cli/say.h"

typedef struct card_replay {
    const hr_card *card;
    uint64_t limit_bytes; // HR_NONE: the card has none
    uint64_t needs_bytes; // in use at the peak; of a card that does not hold it, where there is no limit
    bool whole;
} card_replay;

// ---- each card ------------------------------------------------------------------------------------------------

// Those whose limit is below what lives at once need no replay.
static hr_status replay_on(hr_replay *replay, const hr_knobs *knobs, card_replay *out, hr_err *err)
{
    hr_knobs on_card = *knobs;
    hr_replay_memory memory;
    HR_TRY(hr_knobs_set(&on_card, HR_KNOB_DEVICE_CARD, out->card->name, err));
    HR_TRY(hr_device_limit_bytes(&on_card, out->card, &out->limit_bytes, err));
    if (out->limit_bytes < hr_replay_get_about(replay)->peak_requested_bytes) {
        return HR_OK;
    }
    HR_TRY(plan_trace_holds(replay, &on_card, &memory, &out->whole, err));
    out->needs_bytes = out->whole ? memory.peak_in_use_bytes : out->needs_bytes;
    return HR_OK;
}

// A share of a card's memory is none of a card without an end; a stated size goes before it.
static hr_status replay_without_limit(hr_replay *replay, const hr_knobs *knobs, card_replay *out, hr_err *err)
{
    hr_knobs free_of_limits = *knobs;
    hr_replay_memory memory;
    HR_TRY(hr_knobs_set(&free_of_limits, HR_KNOB_ALLOCATOR_FRACTION, "none", err));
    HR_TRY(hr_knobs_set(&free_of_limits, HR_KNOB_DEVICE_CARD, "unlimited", err));
    HR_TRY(hr_knobs_set(&free_of_limits, HR_KNOB_DEVICE_VRAM, "1024TiB", err));
    HR_TRY(plan_trace_holds(replay, &free_of_limits, &memory, &out->whole, err));
    out->limit_bytes = HR_NONE;
    out->needs_bytes =
        out->whole ? memory.peak_in_use_bytes : hr_replay_get_about(replay)->peak_requested_bytes;
    return HR_OK;
}

static hr_status replay_cards(hr_replay *replay, const hr_knobs *knobs, card_replay *rows, size_t count,
                              hr_err *err)
{
    card_replay without_limit = {0};
    HR_TRY(replay_without_limit(replay, knobs, &without_limit, err));
    for (size_t k = 0; k < count; k++) {
        const hr_card *card = rows[k].card;
        rows[k] = without_limit;
        rows[k].card = card;
        if (!hr_limit_is_none(card->vram_bytes)) {
            rows[k].whole = false;
            HR_TRY(replay_on(replay, knobs, &rows[k], err));
        }
    }
    return HR_OK;
}

// ---- what is said ---------------------------------------------------------------------------------------------

static size_t count_fitting(const card_replay *rows, size_t count)
{
    size_t fitting = 0;
    for (size_t k = 0; k < count; k++) {
        fitting += rows[k].whole;
    }
    return fitting;
}

// 0: there are enough, but in pieces.
static uint64_t missing_bytes(const card_replay *r)
{
    return r->whole || r->needs_bytes <= r->limit_bytes ? 0 : r->needs_bytes - r->limit_bytes;
}

static void print_row(const card_replay *r)
{
    char limit[HR_BYTES_TEXT_MAX], needs[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX];
    printf("%-21s %10s %10s ", r->card->name,
           r->limit_bytes == HR_NONE ? "none" : hr_bytes_human(r->limit_bytes, limit),
           hr_bytes_human(r->needs_bytes, needs));
    if (r->whole) {
        printf("%15s\n",
               r->limit_bytes == HR_NONE ? "" : hr_bytes_human(r->limit_bytes - r->needs_bytes, left));
    } else if (missing_bytes(r) > 0) {
        printf("    - %9s\n", hr_bytes_human(missing_bytes(r), left));
    } else {
        printf("%15s\n", "- in pieces");
    }
}

static void print_text(const cli_args *args, const replay_table *t, const card_replay *rows, size_t count)
{
    say_foreign(stdout, t->name, "");
    printf(" on %s fits %zu of %zu cards\n\n", t->columns[0].kind, count_fitting(rows, count), count);
    printf("%-21s %10s %10s %15s\n", "name", "limit", "needs", "left");
    for (size_t k = 0; k < count; k++) {
        print_row(&rows[k]);
    }
    puts("\nlimit: what the allocator may take of the card; needs: in use at the peak, where\n"
         "it does not fit that without a limit; left: - missing, `in pieces`: enough, but\n"
         "no piece is large enough. One of them whole:");
    fputs("  headroom plan TRACE -s device.card=NAME", stdout);
    for (unsigned k = 0; k < args->set_count; k++) {
        fputs(" -s ", stdout);
        say_foreign(stdout, args->sets[k], "");
    }
    putchar('\n');
}

static void print_json(const card_replay *rows, size_t count)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < count; k++) {
        emit_row(&e, NULL);
        emit_text(&e, "name", rows[k].card->name);
        emit_count(&e, "limit_bytes", rows[k].limit_bytes);
        emit_bool(&e, "fits", rows[k].whole);
        emit_count(&e, "peak_in_use_bytes", rows[k].needs_bytes);
        emit_count(&e, "missing_bytes", missing_bytes(&rows[k]));
        emit_count(&e, "largest_batch", HR_NONE); // a trace is of one batch
        emit_real(&e, "step_seconds", (double)NAN, EMIT_EXACT);
        emit_text(&e, "error", NULL);
        emit_end_object(&e);
    }
    emit_end_array(&e);
}

// ---- the command ----------------------------------------------------------------------------------------------

// One answer a card: of one allocator.
static hr_status check_columns(const cli_args *args, const replay_table *t, hr_err *err)
{
    if (t->column_count == 1) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, USAGE, "--fit of a trace is about one allocator, had %u", t->column_count);
    hr_err_try(err, "headroom cards --fit '%.200s' -s allocator.kind=%s", args->value[APP_FIT],
               t->columns[0].kind);
    return status;
}

static hr_status fit(const cli_args *args, card_replay *rows, size_t count, hr_err *err)
{
    static replay_table t;
    hr_replay *replay = NULL;
    hr_status status = plan_trace_open(args, args->value[APP_FIT], &replay, &t, err);
    status = status == HR_OK ? check_columns(args, &t, err) : status;
    status = status == HR_OK ? replay_cards(replay, &t.columns[0].knobs, rows, count, err) : status;
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        print_json(rows, count);
    } else if (status == HR_OK) {
        print_text(args, &t, rows, count);
    }
    replay_table_deinit(&t);
    hr_replay_close(replay);
    return status;
}

int cards_fit_trace(const cli_args *args, const hr_card *cards, size_t count)
{
    hr_err err;
    card_replay *rows = calloc(count + 1, sizeof *rows);
    hr_status status = rows != NULL ? HR_OK : HR_FAIL(&err, NOMEM, "no host memory for %zu cards", count);
    interrupt_watch();
    for (size_t k = 0; k < count && status == HR_OK; k++) {
        rows[k].card = &cards[k];
    }
    status = status == HR_OK ? fit(args, rows, count, &err) : status;
    const bool fits = status == HR_OK && count_fitting(rows, count) > 0;
    free(rows);
    return status == HR_INTERRUPTED ? interrupt_exit_code()
           : status != HR_OK        ? say_error(&err, cli_given(args, APP_JSON))
           : fits                   ? 0
                                    : 1;
}
