// SPDX-License-Identifier: Apache-2.0
// Images that travel as bytes or as float64 become on the cpu device what the host would have sent, and on the judge.
#include "numeric/travelled.h"

START_TEST(the_judge_makes_what_the_host_would)
{
    op_device judge = op_device_open(&device_reference, 1);
    travel_all(judge, (size_t)_i);
    op_device_close(&judge);
}
END_TEST

START_TEST(the_cpu_makes_what_the_host_would)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        op_device cpu = op_device_open(&device_cpu, threads);
        travel_all(cpu, (size_t)_i);
        op_device_close(&cpu);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_travelled");
    TCase *all = tcase_create("travelled");
    tcase_add_loop_test(all, the_judge_makes_what_the_host_would, 0, 4);
    tcase_add_loop_test(all, the_cpu_makes_what_the_host_would, 0, 3);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
