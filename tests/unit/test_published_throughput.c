// SPDX-License-Identifier: Apache-2.0
// Planned times on cards against what others published: every row of tests/bench/published/throughput.txt that counts is
// met within a quarter, and docs/published_throughput.md is what is planned today. HEADROOM_GOLDEN=write makes it anew.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/engine.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"

static const char rows_path[] = "tests/bench/published/throughput.txt";
static const char document_path[] = "docs/published_throughput.md";
static const double tolerance = 0.25;
enum { ROWS_MAX = 100, FIELDS = 11, FILE_BYTES = 1 << 20, TEXT = 1024 };

typedef enum field { USE, MODEL, CARD, BATCH, UNIT, UNITS, PUBLISHED, KNOBS, SOFTWARE, SOURCE, NOTE } field;

typedef struct published_row {
    const char *field[FIELDS];
    double published, planned, least, most; // a second
} published_row;

static char *data;
static published_row rows[ROWS_MAX];
static uint32_t row_count;

// ---- reading --------------------------------------------------------------------------------------------------

static void split_row(char *line, published_row *r)
{
    for (int k = 0; k < FIELDS; k++) {
        char *end = line == NULL ? NULL : strstr(line, " | ");
        r->field[k] = line == NULL ? "" : line;
        if (end != NULL) {
            *end = '\0';
        }
        line = end == NULL ? NULL : end + 3;
    }
    ck_assert_msg(text_to_real(r->field[PUBLISHED], &r->published), "%s: %s", r->field[MODEL],
                  r->field[PUBLISHED]);
}

static void read_rows(void)
{
    size_t bytes = 0;
    hr_err err = {0};
    ck_assert_msg(file_read(rows_path, FILE_BYTES, &data, &bytes, &err) == HR_OK, "%s", err.sentence);
    char *rest = NULL;
    for (char *line = strtok_r(data, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] != '#') {
            ck_assert_uint_lt(row_count, ROWS_MAX);
            split_row(line, &rows[row_count++]);
        }
    }
}

// ---- planning -------------------------------------------------------------------------------------------------

static bool counts(const published_row *r)
{
    return strcmp(r->field[USE], "fit") == 0 || strcmp(r->field[USE], "held out") == 0;
}

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[TEXT];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "%s%s%s", key, *key == '\0' ? "" : "=", value);
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static void set_all(hr_knobs *knobs, const published_row *r)
{
    char words[TEXT], *rest = words;
    ck_assert(text_copy(words, sizeof words, r->field[KNOBS]));
    set(knobs, "device.kind", "plan");
    set(knobs, "device.card", r->field[CARD]);
    set(knobs, "batch.size", r->field[BATCH]);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        set(knobs, "", word);
    }
}

static void plan_row(published_row *r)
{
    char path[TEXT];
    double units = 0;
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_whatif w = {0};
    (void)snprintf(path, sizeof path, "tests/bench/published/%s.yaml", r->field[MODEL]);
    const char *name = access(path, R_OK) == 0 ? path : r->field[MODEL];
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    set_all(&knobs, r);
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_plan(planner, &knobs, &w, &err) == HR_OK, "%s: %s", name, err.sentence);
    ck_assert_msg(text_to_real(r->field[UNITS], &units) && w.step_seconds > 0, "%s: %s", name,
                  r->field[UNITS]);
    const int64_t samples =
        hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE) * hr_knob_int(&knobs, HR_KNOB_BATCH_ACCUMULATE);
    r->planned = (double)samples * units / w.step_seconds;
    r->least = (double)samples * units / w.step_seconds_high;
    r->most = (double)samples * units / w.step_seconds_low;
    hr_planner_close(planner);
    hr_preset_close(preset);
}

static void plan_all(void)
{
    hr_preset_search_beside(".");
    row_count = 0;
    read_rows();
    for (uint32_t k = 0; k < row_count; k++) {
        plan_row(&rows[k]);
    }
}

static void forget_all(void)
{
    hr_free(data);
}

// ---- claims ---------------------------------------------------------------------------------------------------

static double ratio_of(const published_row *r)
{
    return r->planned / r->published;
}

static uint32_t count_of(const char *use)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < row_count; k++) {
        count += strcmp(rows[k].field[USE], use) == 0;
    }
    return count;
}

START_TEST(every_row_that_counts_is_planned_within_a_quarter)
{
    for (uint32_t k = 0; k < row_count; k++) {
        const published_row *r = &rows[k];
        ck_assert_msg(!counts(r) || fabs(ratio_of(r) - 1) <= tolerance,
                      "%s on %s, %s: %.0f %s/s published, %.0f planned", r->field[MODEL], r->field[CARD],
                      r->field[KNOBS], r->published, r->field[UNIT], r->planned);
    }
}
END_TEST

// A range that nothing falls out of says too little, one that most do too much.
START_TEST(most_rows_lie_in_the_range_that_is_planned)
{
    uint32_t count = 0, within = 0;
    for (uint32_t k = 0; k < row_count; k++) {
        const published_row *r = &rows[k];
        ck_assert(r->least < r->planned && r->planned < r->most && r->most < 2 * r->least);
        count += counts(r);
        within += counts(r) && r->least <= r->published && r->published <= r->most;
    }
    ck_assert_msg(4 * within >= 3 * count, "%u of %u", within, count);
}
END_TEST

START_TEST(at_least_ten_count_and_four_of_them_were_held_out)
{
    ck_assert_uint_ge(count_of("fit") + count_of("held out"), 10);
    ck_assert_uint_ge(count_of("held out"), 4);
    ck_assert_uint_eq(count_of("fit") + count_of("held out") + count_of("not met") + count_of("elsewhere"),
                      row_count);
}
END_TEST

START_TEST(every_row_says_where_it_was_published_and_why_it_is_not_compared)
{
    for (uint32_t k = 0; k < row_count; k++) {
        const published_row *r = &rows[k];
        ck_assert_msg(strncmp(r->field[SOURCE], "https://", 8) == 0, "%s", r->field[SOURCE]);
        ck_assert_msg(strcmp(r->field[USE], "elsewhere") != 0 || r->field[NOTE][0] != '\0', "%s",
                      r->field[MODEL]);
    }
}
END_TEST

// ---- the document ---------------------------------------------------------------------------------------------

static void add_head(text *out)
{
    text_append(out,
                "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
                "# Planned times on cards, against published ones\n\n"
                "Made by `tests/unit/test_published_throughput.c` from `%s`; a change of either is met by "
                "running it\n"
                "with `HEADROOM_GOLDEN=write`. Nothing here was measured by headroom: *published* is what "
                "the source says, "
                "*planned*\nis `headroom plan` with these knobs.\n\n",
                rows_path);
    text_append(out,
                "%u rows are compared: %u held out, %u with which the efficiencies of "
                "`engine/device/card_rates.c` and "
                "`card_time.c`\nwere chosen, %u beyond 25 %%. All others are within 25 %%, and the test "
                "fails when one is "
                "not.\n\n",
                count_of("fit") + count_of("held out") + count_of("not met"), count_of("held out"),
                count_of("fit"), count_of("not met"));
    text_append(
        out,
        "Eager PyTorch is planned as `execution.mode=eager execution.fuse=off`; torch.compile, XLA, MXNet's "
        "fused "
        "kernels and llm.c\nas graph mode. Where a figure is of one card of several, its communication is in "
        "it and not in the plan.\n\n");
}

static const char *rate_text(double a_second, char out[32])
{
    (void)snprintf(out, 32, a_second >= 100 ? "%.0f" : "%.3g", a_second);
    return out;
}

static void add_row(text *out, const published_row *r)
{
    char published[32], planned[32], least[32], most[32];
    const char *precision = strstr(r->field[KNOBS], "mixed_float16") != NULL    ? "mixed_float16"
                            : strstr(r->field[KNOBS], "mixed_bfloat16") != NULL ? "mixed_bfloat16"
                            : strstr(r->field[KNOBS], "tf32=on") != NULL        ? "TF32"
                                                                                : "float32";
    text_append(out, "| %s | %s | %s | %s | [%s](%s) | %s %s | %s (%s to %s) | %+.0f %% | %s |\n",
                r->field[MODEL], r->field[CARD], precision, r->field[BATCH], r->field[SOFTWARE],
                r->field[SOURCE], rate_text(r->published, published), r->field[UNIT],
                rate_text(r->planned, planned), rate_text(r->least, least), rate_text(r->most, most),
                (ratio_of(r) - 1) * 100, r->field[USE]);
}

static void write_document(text *out)
{
    add_head(out);
    text_append(
        out, "| model | card | precision | batch | software | published a second | planned | error | use |\n"
             "|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t k = 0; k < row_count; k++) {
        if (strcmp(rows[k].field[USE], "elsewhere") != 0) {
            add_row(out, &rows[k]);
        }
    }
    text_append(out, "\nNot compared, because another program was run than the one that is planned:\n\n");
    for (uint32_t k = 0; k < row_count; k++) {
        const published_row *r = &rows[k];
        char published[32], planned[32];
        if (strcmp(r->field[USE], "elsewhere") == 0) {
            text_append(out, "- %s on %s, [%s](%s): %s %s a second, planned %s: %s.\n", r->field[MODEL],
                        r->field[CARD], r->field[SOFTWARE], r->field[SOURCE],
                        rate_text(r->published, published), r->field[UNIT], rate_text(r->planned, planned),
                        r->field[NOTE]);
        }
    }
}

START_TEST(the_document_is_what_is_planned_today)
{
    text out = {0};
    const char *mode = getenv("HEADROOM_GOLDEN");
    const bool writes = mode != NULL && strcmp(mode, "write") == 0;
    write_document(&out);
    ck_assert(!out.failed);
    if (writes) {
        FILE *f = fopen(document_path, "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(out.data, f), 0);
        ck_assert_int_eq(fclose(f), 0);
    } else {
        char *written = NULL;
        size_t bytes = 0;
        hr_err err = {0};
        ck_assert_msg(file_read(document_path, FILE_BYTES, &written, &bytes, &err) == HR_OK, "%s",
                      err.sentence);
        ck_assert_msg(bytes == out.length && memcmp(written, out.data, bytes) == 0,
                      "%s is not what is planned: HEADROOM_GOLDEN=write makes it anew", document_path);
        hr_free(written);
    }
    text_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("published_throughput");
    TCase *all = tcase_create("published");
    tcase_add_unchecked_fixture(all, plan_all, forget_all);
    tcase_add_test(all, every_row_that_counts_is_planned_within_a_quarter);
    tcase_add_test(all, most_rows_lie_in_the_range_that_is_planned);
    tcase_add_test(all, at_least_ten_count_and_four_of_them_were_held_out);
    tcase_add_test(all, every_row_says_where_it_was_published_and_why_it_is_not_compared);
    tcase_add_test(all, the_document_is_what_is_planned_today);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
