// SPDX-License-Identifier: Apache-2.0
// Promises of base/compressed.h: bytes as the programs gzip and zstd would write, however they come.
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compressed.h"

enum { BYTES = 1 << 20 };

static uint8_t noise[BYTES], sparse[BYTES];

static void fill(void)
{
    uint64_t state = 1;
    for (int k = 0; k < BYTES; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        noise[k] = (uint8_t)(state >> 56);
        sparse[k] = k % 4 == 0 ? noise[k] : 0;
    }
}

static uint64_t size_of(compressed_kind kind, const uint8_t *data, size_t piece)
{
    compressed *c = NULL;
    uint64_t bytes = 0;
    hr_err err = {0};
    ck_assert_msg(compressed_open(kind, &c, &err) == HR_OK, "%s", err.sentence);
    for (size_t at = 0; at < BYTES; at += piece) {
        ck_assert_int_eq(compressed_add(c, data + at, BYTES - at < piece ? BYTES - at : piece, &err), HR_OK);
    }
    ck_assert_int_eq(compressed_end(c, &bytes, &err), HR_OK);
    return bytes;
}

START_TEST(noise_stays_and_zeros_go)
{
    const compressed_kind kind = (compressed_kind)_i;
    fill();
    const uint64_t all = size_of(kind, noise, BYTES), few = size_of(kind, sparse, BYTES);
    ck_assert_uint_ge(all, BYTES);
    ck_assert_uint_le(all, BYTES + 1024);
    ck_assert_uint_ge(few, BYTES / 4);
    ck_assert_uint_le(few, BYTES / 2);
}
END_TEST

START_TEST(pieces_make_no_difference)
{
    const compressed_kind kind = (compressed_kind)_i;
    fill();
    ck_assert_uint_eq(size_of(kind, sparse, BYTES), size_of(kind, sparse, 12345));
}
END_TEST

START_TEST(nothing_is_left_of_one_that_is_abandoned)
{
    compressed *c = NULL;
    compressed_abandon(NULL);
    ck_assert_int_eq(compressed_open(COMPRESSED_ZSTD, &c, NULL), HR_OK);
    compressed_abandon(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compressed");
    TCase *all = tcase_create("sizes");
    tcase_add_loop_test(all, noise_stays_and_zeros_go, 0, 2);
    tcase_add_loop_test(all, pieces_make_no_difference, 0, 2);
    tcase_add_test(all, nothing_is_left_of_one_that_is_abandoned);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
