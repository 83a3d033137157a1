// SPDX-License-Identifier: Apache-2.0
// compare: two plans, reports or traces side by side: every knob that differs, every number with its change.
#include "app/cli/compare.h"

#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/say.h"
#include "app/tui/feed/knob_edit.h"

enum { VERDICT_MAX = 512, NAME_COLUMN = 27, CELL_COLUMN = 13, CELL_MAX = 2 * FORMAT_MAX };

static const char *const kinds[] = {
    [COMPARE_PLAN] = "plan", [COMPARE_REPORT] = "report", [COMPARE_TRACE] = "trace"};

static bool differs(const compare_side sides[2], hr_knob_id id)
{
    return sides[0].has_knobs && sides[1].has_knobs &&
           knob_edit_differs(&sides[0].knobs, &sides[1].knobs, id);
}

static bool is_known(const compare_side sides[2], int id)
{
    return !isnan(sides[0].measures.value[id]) || !isnan(sides[1].measures.value[id]);
}

static const char *verdict(const compare_side sides[2], char text[VERDICT_MAX])
{
    const char *cause[2];
    for (int side = 0; side < 2; side++) {
        cause[side] = sides[side].oom[0] != '\0' ? sides[side].oom : NULL;
    }
    return cause[0] == NULL && cause[1] == NULL
               ? measures_verdict(&sides[0].measures, &sides[1].measures, text, VERDICT_MAX)
               : measures_verdict_oom(cause[0], cause[1], text, VERDICT_MAX);
}

// What a technique costs is one thing, what it saves another: they are of different times.
static bool compresses_otherwise(const compare_side sides[2])
{
    bool any = false;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        any = any || (differs(sides, (hr_knob_id)id) &&
                      strncmp(hr_knob_rows(NULL)[id].key, "compress.", strlen("compress.")) == 0);
    }
    for (int side = 0; side < 2; side++) {
        const double *value = sides[side].measures.value;
        any = any && !isnan(value[MEASURE_PEAK] + value[MEASURE_DEPLOYED]);
    }
    return any;
}

static const char *bytes_text(const compare_side *side, measure_id id, char text[HR_BYTES_TEXT_MAX])
{
    return hr_bytes_human((uint64_t)side->measures.value[id], text);
}

// "While it trains b holds 60.97 MiB at the peak (a 58.32 MiB). Where the model is used it is 2.65 MiB, as a is."
static const char *phases(const compare_side sides[2], char text[VERDICT_MAX])
{
    char peak[2][HR_BYTES_TEXT_MAX], deployed[2][HR_BYTES_TEXT_MAX], other[HR_BYTES_TEXT_MAX + 16];
    for (int side = 0; side < 2; side++) {
        bytes_text(&sides[side], MEASURE_PEAK, peak[side]);
        bytes_text(&sides[side], MEASURE_DEPLOYED, deployed[side]);
    }
    const bool same = sides[0].measures.value[MEASURE_DEPLOYED] == sides[1].measures.value[MEASURE_DEPLOYED];
    if (same) {
        (void)snprintf(other, sizeof other, ", as a is");
    } else {
        (void)snprintf(other, sizeof other, " (a %s)", deployed[0]);
    }
    (void)snprintf(text, VERDICT_MAX,
                   "While it trains b holds %s at the peak (a %s). Where the model is used it is %s%s.",
                   peak[1], peak[0], deployed[1], other);
    return text;
}

// ---- as text --------------------------------------------------------------------------------------------------

static byte_unit unit_of(const compare_side sides[2])
{
    return measures_unit(&sides[0].measures, &sides[1].measures);
}

static const char *with_unit(measure_id id, byte_unit unit, const char *number, char text[CELL_MAX])
{
    bool has_own = strchr(number, ' ') != NULL; // "256 B"
    bool bytes = measure_row_of(id)->kind == MEASURE_AS_BYTES && strcmp(number, "—") != 0 && !has_own;
    (void)snprintf(text, CELL_MAX, "%s%s%s",
                   strcmp(number, "—") == 0    ? "-"
                   : strcmp(number, "±0") == 0 ? "0"
                                               : number,
                   bytes ? " " : "", bytes ? unit.name : "");
    return text;
}

static void print_knob(const compare_side sides[2], hr_knob_id id)
{
    char a[HR_KNOB_TEXT_MAX], b[HR_KNOB_TEXT_MAX];
    const char *key = hr_knob_rows(NULL)[id].key;
    hr_knob_format(&sides[0].knobs, id, a);
    hr_knob_format(&sides[1].knobs, id, b);
    if (strlen(a) > CELL_COLUMN || strlen(b) > CELL_COLUMN) { // a schedule, a file
        printf("%s\n  a  %s\n  b  %s\n", key, a, b);
    } else {
        printf("%-*s %*s %*s\n", NAME_COLUMN, key, CELL_COLUMN, a, CELL_COLUMN, b);
    }
}

static void print_measure(const compare_side sides[2], measure_id id, byte_unit unit)
{
    char number[FORMAT_MAX], a[CELL_MAX], b[CELL_MAX], delta[CELL_MAX], percent[FORMAT_MAX];
    double before = sides[0].measures.value[id], after = sides[1].measures.value[id];
    with_unit(id, unit, measure_format(id, before, unit, number), a);
    with_unit(id, unit, measure_format(id, after, unit, number), b);
    with_unit(id, unit, measure_format_delta(id, before, after, unit, number), delta);
    measure_format_percent(before, after, percent);
    printf("%-*s %*s %*s %*s%*s\n", NAME_COLUMN, measure_row_of(id)->term, CELL_COLUMN, a, CELL_COLUMN, b,
           CELL_COLUMN, delta, percent[0] == '\0' ? 0 : CELL_COLUMN - 3, percent);
}

static void print_text(const compare_side sides[2])
{
    char text[VERDICT_MAX];
    byte_unit unit = unit_of(sides);
    for (int side = 0; side < 2; side++) {
        printf("%c  ", 'a' + side);
        say_foreign(stdout, sides[side].word, "");
        printf(": %s of %s%s%s\n", kinds[sides[side].kind], sides[side].name,
               sides[side].oom[0] != '\0' ? ", out of memory by " : "", sides[side].oom);
    }
    printf("\n%-*s %*s %*s %*s %*s\n", NAME_COLUMN, "name", CELL_COLUMN, "a", CELL_COLUMN, "b", CELL_COLUMN,
           "delta", CELL_COLUMN - 4, "percent");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (differs(sides, (hr_knob_id)id)) {
            print_knob(sides, (hr_knob_id)id);
        }
    }
    for (int id = 0; id < MEASURE_ALL; id++) {
        if (measures_tell((measure_id)id, &sides[0].measures, &sides[1].measures)) {
            print_measure(sides, (measure_id)id, unit);
        }
    }
    putchar('\n');
    say_paragraph(verdict(sides, text), 0);
    if (compresses_otherwise(sides)) {
        say_paragraph(phases(sides, text), 0);
    }
}

// ---- as JSON --------------------------------------------------------------------------------------------------

static void emit_side(emitter *e, const char *key, const compare_side *side)
{
    emit_row(e, key);
    emit_text(e, "name", side->word);
    emit_text(e, "kind", kinds[side->kind]);
    emit_text(e, "cause", side->oom[0] != '\0' ? side->oom : NULL);
    emit_end_object(e);
}

static void emit_knobs(emitter *e, const compare_side sides[2])
{
    char value[HR_KNOB_TEXT_MAX];
    emit_array(e, "knobs");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (differs(sides, (hr_knob_id)id)) {
            emit_row(e, NULL);
            emit_text(e, "name", hr_knob_rows(NULL)[id].key);
            emit_text(e, "a", hr_knob_format(&sides[0].knobs, (hr_knob_id)id, value));
            emit_text(e, "b", hr_knob_format(&sides[1].knobs, (hr_knob_id)id, value));
            emit_end_object(e);
        }
    }
    emit_end_array(e);
}

static void emit_value(emitter *e, const char *key, measure_id id, double value)
{
    measure_kind kind = measure_row_of(id)->kind;
    bool whole = (kind == MEASURE_AS_BYTES || kind == MEASURE_AS_COUNT) && value >= 0;
    if (whole) {
        emit_count(e, key, (uint64_t)value);
    } else {
        emit_real(e, key, value, EMIT_EXACT);
    }
}

static void emit_measures(emitter *e, const compare_side sides[2])
{
    emit_array(e, "measures");
    for (int id = 0; id < MEASURE_ALL; id++) {
        double a = sides[0].measures.value[id], b = sides[1].measures.value[id];
        if (is_known(sides, id)) {
            emit_row(e, NULL);
            emit_text(e, "name", measure_row_of((measure_id)id)->term);
            emit_value(e, "a", (measure_id)id, a);
            emit_value(e, "b", (measure_id)id, b);
            emit_value(e, "delta", (measure_id)id, b - a);
            emit_real(e, "percent", a > 0 ? 100 * (b - a) / a : UNKNOWN, EMIT_EXACT);
            emit_end_object(e);
        }
    }
    emit_end_array(e);
}

static void print_json(const compare_side sides[2])
{
    char text[VERDICT_MAX];
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.compare/1");
    emit_side(&e, "a", &sides[0]);
    emit_side(&e, "b", &sides[1]);
    emit_knobs(&e, sides);
    emit_measures(&e, sides);
    emit_text(&e, "sentence", verdict(sides, text));
    emit_end_object(&e);
}

// ---- the command ----------------------------------------------------------------------------------------------

static hr_status compare(const cli_args *args, compare_side sides[2], hr_err *err)
{
    if (args->word_count < 2) {
        hr_status status = HR_FAIL(err, USAGE, "compare needs two things, had %s",
                                   args->word_count == 0 ? "none" : args->words[0]);
        hr_err_try(err, "headroom compare %.200s demo,execution.mode=graph",
                   args->word_count == 0 ? "demo" : args->words[0]);
        return status;
    }
    HR_TRY(compare_open(args, args->words[0], &sides[0], err));
    HR_TRY(compare_open(args, args->words[1], &sides[1], err));
    return HR_OK;
}

int cli_compare(int argc, char **argv)
{
    static compare_side sides[2];
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 2, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    hr_status status = compare(&args, sides, &err);
    if (status != HR_OK) {
        return say_error(&err, cli_given(&args, APP_JSON));
    }
    if (cli_given(&args, APP_JSON)) {
        print_json(sides);
    } else {
        print_text(sides);
    }
    return 0;
}
