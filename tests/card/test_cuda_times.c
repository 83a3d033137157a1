// SPDX-License-Identifier: Apache-2.0
// What instructions took, as the events around them say, over the emulated card: every instruction that costs something has
// a time, those of one launch share it, nothing is captured, the weights are those of a training that nobody times, and
// no event is left.
#include "card/reach.h"
#include "insight/times.h"
#include "unit/small_engine.h"

enum { STEPS = 6, COLUMNS = 16, ALL_DONE = 77 };
enum { PHASE = 1, STEPS_AT = 12, TOOK = 13, LEAST = 14, ESTIMATED = 15 };

static card_reach card;

static const char *const on_card[] = {
    "device.kind=cuda",      "device.vram=64MiB",       "optimizer.kind=adam",    "execution.mode=graph",
    "allocator.kind=static", "execution.cuda_graph=on", "device.card=rtx3070-8g", NULL};

// Fields of a line; commas within quotes are no ends. `line` is cut up.
static unsigned split(char *line, char *field[COLUMNS])
{
    unsigned count = 0;
    bool quoted = false;
    line[strcspn(line, "\n")] = '\0';
    field[count++] = line;
    for (char *c = line; *c != '\0'; c++) {
        quoted = *c == '"' ? !quoted : quoted;
        if (*c == ',' && !quoted) {
            ck_assert_uint_lt(count, COLUMNS);
            *c = '\0';
            field[count++] = c + 1;
        }
    }
    return count;
}

static unsigned check_table(const char *path, unsigned *updates)
{
    char line[1024], *field[COLUMNS];
    unsigned rows = 0;
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, in));
    ck_assert_str_eq(line, TIMES_HEADINGS);
    for (; fgets(line, sizeof line, in) != NULL; rows++) {
        ck_assert_uint_eq(split(line, field), COLUMNS);
        ck_assert_int_eq(atoi(field[STEPS_AT]), STEPS - 1);
        ck_assert_msg(atoll(field[LEAST]) > 0 && atoll(field[LEAST]) <= atoll(field[TOOK]),
                      "row %u: %s of %s", rows, field[LEAST], field[2]);
        ck_assert_int_gt(atoll(field[ESTIMATED]), 0);
        *updates += strcmp(field[PHASE], "update") == 0;
    }
    ck_assert_int_eq(fclose(in), 0);
    return rows;
}

START_TEST(every_instruction_has_a_time_and_nothing_else_changes)
{
    char path[128], plain[HR_SHA256_TEXT_MAX], timed[HR_SHA256_TEXT_MAX];
    hr_err err = {0};
    card_totals totals;
    hr_engine *e = create(on_card, NULL);
    card.card_reset();
    run_steps(e, STEPS);
    weights_of(e, plain);
    card.card_count(&totals);
    ck_assert_uint_gt(totals.graph_launches, 0);
    const uint64_t launches = totals.launches;
    hr_engine_destroy(e);

    const hr_engine_options options = {.times_file = file_in("times.csv", path)};
    card.card_reset();
    e = create(on_card, &options);
    run_steps(e, STEPS);
    card.card_count(&totals);
    ck_assert_uint_eq(totals.graph_launches, 0);
    ck_assert_uint_eq(totals.launches, launches); // what goes together still does
    weights_of(e, timed);
    ck_assert_str_eq(timed, plain);
    ck_assert_msg(hr_engine_write_times(e, &err) == HR_OK, "%s", err.sentence);
    unsigned updates = 0;
    ck_assert_uint_gt(check_table(path, &updates), 20);
    ck_assert_uint_gt(updates, 4); // one launch of several
    hr_engine_destroy(e);
    ck_assert_uint_eq(card.card_calls("cuEventCreate"), card.card_calls("cuEventDestroy_v2"));
}
END_TEST

// Whichever event is refused, the build says so and leaves none behind.
START_TEST(an_event_that_is_refused_is_told)
{
    char path[128];
    const hr_engine_options options = {.times_file = file_in("times.csv", path)};
    hr_engine *e = create(on_card, &options);
    card.card_reset();
    card.card_fail(_i == 0 ? "cuEventElapsedTime_v2" : "cuEventCreate", _i == 0 ? 3 : 40,
                   CUDA_ERROR_INVALID_VALUE);
    run_steps(e, 2);
    ck_assert_int_ne(hr_engine_get_state(e), HR_ENGINE_IDLE);
    ck_assert_ptr_nonnull(
        strstr(hr_engine_error(e)->sentence, _i == 0 ? "cuEventElapsedTime_v2" : "cuEventCreate"));
    hr_engine_destroy(e);
    ck_assert_uint_eq(card.card_calls("cuEventCreate") - (_i == 1), card.card_calls("cuEventDestroy_v2"));
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda times");
    TCase *tests = tcase_create("times");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_test(tests, every_instruction_has_a_time_and_nothing_else_changes);
    tcase_add_loop_test(tests, an_event_that_is_refused_is_told, 0, 2);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
