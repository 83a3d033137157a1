// SPDX-License-Identifier: Apache-2.0
// Images that travel as bytes or as float64 become on the cuda device what the host would have sent.
#include "numeric/travelled.h"

START_TEST(the_card_makes_what_the_host_would)
{
    op_device card = op_device_open(&device_cuda, 1);
    travel_all(card, (size_t)_i);
    op_device_close(&card);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_travelled");
    TCase *all = tcase_create("travelled");
    tcase_add_loop_test(all, the_card_makes_what_the_host_would, 0, 3);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
