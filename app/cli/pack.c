// SPDX-License-Identifier: Apache-2.0
// pack: where in one block every buffer lies, from its lifetime.
#include "headroom/pack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/units.h"

#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/page.h"
#include "app/cli/say.h"

enum { USUAL_SECONDS = 10, MAP_COLUMNS = 64, MAP_ROWS = 12 };

static double now_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// What was asked for, and how it went.
typedef struct search {
    const cli_args *args;
    hr_packing *packing;
    uint64_t capacity_bytes; // 0: none
    uint64_t seed;
    double end_seconds;
    double seconds;   // that it took
    bool ended_early; // before its time was up
    hr_packing_result result;
} search;

static bool is_over(void *context, const hr_packing_result *so_far)
{
    const search *s = context;
    (void)so_far;
    return interrupt_seen() || now_seconds() >= s->end_seconds;
}

static bool fits(const search *s)
{
    return s->capacity_bytes == 0 || s->result.height_bytes <= s->capacity_bytes;
}

// ---- what is printed ------------------------------------------------------------------------------------------

static void print_json(const search *s)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.pack/1");
    emit_count(&e, "height_bytes", s->result.height_bytes);
    emit_count(&e, "lower_bound_bytes", s->result.lower_bound_bytes);
    emit_bool(&e, "optimal", s->result.optimal);
    if (s->capacity_bytes > 0) {
        emit_count(&e, "capacity_bytes", s->capacity_bytes);
        emit_bool(&e, "fits", fits(s));
    } else {
        emit_null(&e, "capacity_bytes");
        emit_null(&e, "fits");
    }
    emit_real(&e, "seconds", s->seconds, EMIT_EXACT);
    emit_array(&e, "offsets");
    for (size_t k = 0; k < hr_packing_count(s->packing); k++) {
        emit_row(&e, NULL);
        emit_text(&e, "id", hr_packing_id(s->packing, k));
        emit_count(&e, "offset", hr_packing_offset(s->packing, k));
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_end_object(&e);
}

static void print_bytes(const char *label, uint64_t bytes, const char *note)
{
    char human[HR_BYTES_TEXT_MAX], count[SAY_COUNT_TEXT_MAX];
    printf("  %-12s %12s  %s B%s%s\n", label, hr_bytes_human(bytes, human), say_count(bytes, count),
           note[0] != '\0' ? "  " : "", note);
}

// The block over time: what is not filled is what the packing wastes, or what is not needed then.
static void print_map(const search *s)
{
    static double cells[MAP_COLUMNS * MAP_ROWS];
    bool blocks = page_draws_blocks(s->args);
    char height[HR_BYTES_TEXT_MAX];
    hr_packing_draw(s->packing, s->result.height_bytes, MAP_COLUMNS, MAP_ROWS, cells);
    for (int row = 0; row < MAP_ROWS; row++) {
        const char *label = row == 0              ? hr_bytes_human(s->result.height_bytes, height)
                            : row == MAP_ROWS - 1 ? "0 B"
                                                  : "";
        printf("%12s |", label);
        for (int column = 0; column < MAP_COLUMNS; column++) {
            fputs(page_shade(cells[row * MAP_COLUMNS + column], blocks, " "), stdout);
        }
        puts("|");
    }
    printf("%12s  time, from the first birth to the last death\n", "");
}

static void print_verdict(const search *s)
{
    char capacity[HR_BYTES_TEXT_MAX];
    const char *more =
        s->ended_early ? "; the search has nothing more to try" : "; more --seconds may find one";
    if (s->capacity_bytes == 0) {
        printf("\n%s%s\n", s->result.optimal ? "no packing is lower" : "there may be a lower one",
               s->result.optimal ? "" : more);
        return;
    }
    (void)hr_bytes_human(s->capacity_bytes, capacity);
    if (fits(s)) {
        printf("\nfits %s\n", capacity);
    } else if (s->result.lower_bound_bytes > s->capacity_bytes) {
        printf("\nno packing fits %s\n", capacity);
    } else {
        printf("\nnone was found that fits %s%s\n", capacity, more);
    }
}

static void print_text(const search *s)
{
    const hr_packing_result *r = &s->result;
    char count[SAY_COUNT_TEXT_MAX];
    double gap = r->lower_bound_bytes == 0
                     ? 0
                     : (double)(r->height_bytes - r->lower_bound_bytes) / (double)r->lower_bound_bytes;
    printf("%s: %s buffers, %.3f s\n\n", s->args->words[0], say_count(hr_packing_count(s->packing), count),
           s->seconds);
    print_map(s);
    putchar('\n');
    print_bytes("height", r->height_bytes, "");
    print_bytes("lower bound", r->lower_bound_bytes, "proven: no packing is lower");
    if (r->alignment_bytes > 1) {
        print_bytes("alignment", r->alignment_bytes, "offsets and rooms are multiples of it");
    }
    printf("  %-12s %10.4f %%\n", "gap", 100 * gap);
    print_verdict(s);
}

// ---- the command ----------------------------------------------------------------------------------------------

static hr_status take_seconds(const cli_args *args, double *seconds, hr_err *err)
{
    const char *text = args->value[APP_SECONDS];
    char *end = NULL;
    *seconds = USUAL_SECONDS;
    if (text == NULL) {
        return HR_OK;
    }
    *seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*seconds) || *seconds < 0) {
        hr_status status = HR_FAIL(err, USAGE, "--seconds needs a number from 0, had '%.64s'", text);
        hr_err_try(err, "--seconds %d", USUAL_SECONDS);
        return status;
    }
    return HR_OK;
}

static hr_status take_capacity(const cli_args *args, uint64_t *bytes, hr_err *err)
{
    const char *text = args->value[APP_CAPACITY];
    *bytes = 0;
    if (text != NULL && (!hr_bytes_parse(text, bytes) || *bytes == 0)) {
        hr_status status = HR_FAIL(err, USAGE, "--capacity needs a size, had '%.64s'", text);
        hr_err_try(err, "--capacity 1MiB");
        return status;
    }
    return HR_OK;
}

// 0 is a seed like any other.
static hr_status take_seed(const cli_args *args, uint64_t *seed, hr_err *err)
{
    const char *text = args->value[APP_SEED];
    char *end = NULL;
    *seed = 0;
    if (text == NULL) {
        return HR_OK;
    }
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        return HR_FAIL(err, USAGE, "--seed needs a whole number from 0, had '%.64s'", text);
    }
    return HR_OK;
}

static hr_status search_on(search *s, double seconds, hr_err *err)
{
    double begin_seconds = now_seconds();
    s->end_seconds = begin_seconds + seconds;
    hr_packing_options options = {
        .capacity_bytes = s->capacity_bytes, .seed = s->seed, .stop = is_over, .stop_context = s};
    HR_TRY(hr_packing_search(s->packing, &options, &s->result, err));
    s->seconds = now_seconds() - begin_seconds;
    s->ended_early = !interrupt_seen() && s->seconds < seconds;
    if (cli_given(s->args, APP_JSON)) {
        print_json(s);
    } else {
        print_text(s);
    }
    return HR_OK;
}

static hr_status pack(search *s, hr_err *err)
{
    double seconds = 0;
    const char *path = s->args->words[0];
    if (path == NULL) {
        hr_status status = HR_FAIL(err, USAGE, "pack needs a file of lifetimes or a trace, had none");
        hr_err_try(err, "headroom run demo --trace lifetimes:demo.csv && headroom pack demo.csv");
        return status;
    }
    HR_TRY(take_seconds(s->args, &seconds, err));
    HR_TRY(take_capacity(s->args, &s->capacity_bytes, err));
    HR_TRY(take_seed(s->args, &s->seed, err));
    HR_TRY(hr_packing_open(path, &s->packing, err));
    interrupt_watch();
    return search_on(s, seconds, err);
}

// Interrupted, the answer is the best so far, as it is when the time is up; one that is proven was not cut short.
static int exit_code_of(const search *s)
{
    const bool cut_short = interrupt_seen() && !s->result.optimal;
    if (cut_short) {
        (void)fflush(stdout);
        fputs("headroom: interrupted: this is the best so far.\n", stderr);
    }
    return cut_short ? interrupt_exit_code() : fits(s) ? 0 : hr_status_exit_code(HR_CHECK);
}

int cli_pack(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    search s = {.args = &args};
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    hr_status status = pack(&s, &err);
    hr_packing_close(s.packing);
    return status == HR_OK ? exit_code_of(&s) : say_error(&err, cli_given(&args, APP_JSON));
}
