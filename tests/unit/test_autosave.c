// SPDX-License-Identifier: Apache-2.0
// When the engine's loop keeps a save of what runs, by a clock that is turned instead of waited for.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 1000}\n"                                                                     \
    "    - {kind: dense, units: 10}\n"
#include "base/clock.h"
#include "session/autosave.h"
#include "unit/small_engine.h"

static const uint64_t second_ns = UINT64_C(1000000000);

static void advance_to(hr_engine *e, uint64_t steps)
{
    bool idle = false;
    for (int k = 0; k < 100 && !idle && hr_engine_steps(e) < steps; k++) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_uint_eq(hr_engine_steps(e), steps);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_RUNNING);
}

START_TEST(the_first_one_comes_as_soon_as_it_is_cheap_and_the_next_after_the_usual_time)
{
    static const save_origin origin = {.preset = ""};
    static const session_callbacks out = {.context = NULL};
    static trace_heartbeat heartbeat;
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 10};
    char path[128];
    autosave a;
    hr_engine *e = create((const char *[]){"device.vram=1GiB", NULL}, NULL);
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    advance_to(e, 1);
    ck_assert_uint_gt(engine_save_bytes(e), 12000000); // 3 seconds until that is a hundredth of the time
    autosave_begin(&a, file_in("auto.save", path), &origin);
    autosave_keep(&a, e, &out);
    ck_assert_int_ne(access(path, F_OK), 0);
    a.begin_ns -= 10 * second_ns; // half of the usual time has passed
    autosave_keep(&a, e, &out);
    ck_assert_int_eq(access(path, F_OK), 0);
    autosave_note(&a, 1, &heartbeat); // as the loop does when it is written
    ck_assert_int_eq(unlink(path), 0);
    advance_to(e, 2);
    autosave_keep(&a, e, &out);
    ck_assert_int_ne(access(path, F_OK), 0);
    a.due_ns = clock_now_ns();
    autosave_keep(&a, e, &out);
    ck_assert_int_eq(access(path, F_OK), 0);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autosave");
    TCase *cases = tcase_create("autosave");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_test(cases, the_first_one_comes_as_soon_as_it_is_cheap_and_the_next_after_the_usual_time);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
