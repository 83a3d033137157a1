// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/pack.h: offsets for a file's buffers, images of them, and nothing leaked whatever fails.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/pack.h"

#include "base/host_mem.h"

static char path[64];

static void write_file(const char *text)
{
    strcpy(path, "/tmp/headroom-pack-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const char two_and_one[] = "id,lower,upper,size\n"
                                  "first,0,5,100\n"
                                  "second,5,9,60\n"
                                  "both,0,9,28\n";

static hr_packing *open_packing(const char *text)
{
    hr_packing *p = NULL;
    hr_err err;
    write_file(text);
    hr_status status = hr_packing_open(path, &p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    unlink(path);
    return p;
}

START_TEST(buffers_of_a_file_get_offsets)
{
    hr_packing_result r;
    hr_packing_options options = {.seed = 1};
    hr_packing *p = open_packing(two_and_one);
    ck_assert_uint_eq(hr_packing_count(p), 3);
    ck_assert_str_eq(hr_packing_id(p, 1), "second");
    ck_assert_int_eq(hr_packing_search(p, &options, &r, NULL), HR_OK);
    ck_assert_uint_eq(r.height_bytes, 128);
    ck_assert_uint_eq(r.lower_bound_bytes, 128);
    ck_assert(r.optimal);
    uint64_t first = hr_packing_offset(p, 0), both = hr_packing_offset(p, 2);
    ck_assert(first + 100 <= both || both + 28 <= first);
    hr_packing_close(p);
}
END_TEST

START_TEST(the_largest_alignment_is_everybodys)
{
    hr_packing_result r;
    hr_packing_options options = {.seed = 1};
    hr_packing *p = open_packing("id,lower,upper,size,alignment\n1,0,5,100,1\n2,0,5,10,64\n");
    ck_assert_int_eq(hr_packing_search(p, &options, &r, NULL), HR_OK);
    ck_assert_uint_eq(hr_packing_offset(p, 0) % 64, 0);
    ck_assert_uint_eq(hr_packing_offset(p, 1) % 64, 0);
    ck_assert_uint_eq(r.height_bytes, 192);
    hr_packing_close(p);
    hr_err err;
    write_file("id,lower,upper,size,alignment\nodd,0,5,100,3\n");
    ck_assert_int_eq(hr_packing_open(path, &p, &err), HR_USAGE);
    ck_assert_ptr_nonnull(
        strstr(err.sentence, "buffer odd: needed an alignment that is a power of two, had 3"));
    ck_assert_ptr_null(p);
    unlink(path);
}
END_TEST

// Instants are those at which something changes: there are two here, of 128 and of 88 bytes.
START_TEST(a_drawn_packing_covers_what_its_buffers_cover)
{
    hr_packing_result r;
    hr_packing_options options = {.seed = 1};
    double cells[3 * 32], sum = 0;
    hr_packing *p = open_packing(two_and_one);
    ck_assert_int_eq(hr_packing_search(p, &options, &r, NULL), HR_OK);
    hr_packing_draw(p, r.height_bytes, 3, 32, cells); // two thirds of an instant a column
    for (int k = 0; k < 3 * 32; k++) {
        ck_assert_double_ge(cells[k], 0);
        ck_assert_double_le(cells[k], 1);
        sum += cells[k];
    }
    hr_packing_draw(p, r.height_bytes, 2, 32, cells);
    double first_half = 0, second_half = 0;
    for (int row = 0; row < 32; row++) {
        first_half += cells[2 * row];
        second_half += cells[2 * row + 1];
    }
    ck_assert_double_eq_tol(first_half * 4, 128, 1e-9);
    ck_assert_double_eq_tol(second_half * 4, 88, 1e-9);
    ck_assert_double_eq_tol(sum * 4 / 3, (128 + 88) / 2.0, 1e-9);
    hr_packing_draw(p, 0, 2, 2, cells);
    ck_assert(cells[0] == 0 && cells[3] == 0);
    hr_packing_close(p);
}
END_TEST

static bool stop_at_once(void *context, const hr_packing_result *so_far)
{
    ck_assert_uint_ge(so_far->height_bytes, so_far->lower_bound_bytes);
    ++*(int *)context;
    return true;
}

START_TEST(a_stopped_search_has_a_packing)
{
    int asked = 0;
    hr_packing_result r;
    hr_packing_options options = {.stop = stop_at_once, .stop_context = &asked};
    char text[4096] = "id,lower,upper,size\n";
    for (int k = 0; k < 100; k++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d,%d,%d\n", k, k * 37 % 50,
                 k * 37 % 50 + 1 + k % 17, 1 + k * 7919 % 1000);
    }
    hr_packing *p = open_packing(text);
    ck_assert_int_eq(hr_packing_search(p, &options, &r, NULL), HR_OK);
    ck_assert_uint_gt(r.height_bytes, 0);
    ck_assert(asked > 0 || r.optimal);
    hr_packing_close(p);
}
END_TEST

START_TEST(every_host_memory_failure_is_said_and_nothing_leaks)
{
    hr_status status = HR_NOMEM;
    uint64_t failed = 0;
    write_file(two_and_one);
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_packing *p = NULL;
        hr_packing_result r;
        hr_packing_options options = {.seed = 1};
        int64_t live = hr_host_mem_live();
        (void)hr_host_mem_fail_at(nth);
        status = hr_packing_open(path, &p, NULL);
        if (status == HR_OK) {
            status = hr_packing_search(p, &options, &r, NULL);
        }
        (void)hr_host_mem_fail_at(0);
        ck_assert(status == HR_OK || status == HR_NOMEM);
        failed += status == HR_NOMEM;
        hr_packing_close(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_uint_gt(failed, 5);
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pack run");
    tcase_add_test(tests, buffers_of_a_file_get_offsets);
    tcase_add_test(tests, the_largest_alignment_is_everybodys);
    tcase_add_test(tests, a_drawn_packing_covers_what_its_buffers_cover);
    tcase_add_test(tests, a_stopped_search_has_a_packing);
    tcase_add_test(tests, every_host_memory_failure_is_said_and_nothing_leaks);
    Suite *suite = suite_create("pack run");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
