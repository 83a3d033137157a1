// SPDX-License-Identifier: Apache-2.0
// First fit among ranges, against an array that is searched from end to end.
#include <string.h>

#include "base/host_mem.h"
#include "heap.h"
#include "memory/range_tree.h"

enum { RANGES_MAX = 400 };

static const uint64_t LOW = 1000, HIGH = 40000;

typedef struct naive {
    struct {
        uint64_t address, bytes;
    } ranges[RANGES_MAX]; // by address
    uint32_t count;
} naive;

static uint64_t naive_enter(naive *n, uint64_t bytes)
{
    uint64_t at = LOW;
    uint32_t k = 0;
    while (k < n->count && n->ranges[k].address - at < bytes) {
        at = n->ranges[k].address + n->ranges[k].bytes;
        k++;
    }
    if (n->count == RANGES_MAX || (k == n->count && HIGH - at < bytes)) {
        return 0;
    }
    memmove(&n->ranges[k + 1], &n->ranges[k], (n->count - k) * sizeof *n->ranges);
    n->ranges[k].address = at;
    n->ranges[k].bytes = bytes;
    n->count++;
    return at;
}

static void naive_leave(naive *n, uint32_t k)
{
    n->count--;
    memmove(&n->ranges[k], &n->ranges[k + 1], (n->count - k) * sizeof *n->ranges);
}

static void must_agree(range_tree *t, const naive *n, uint64_t address)
{
    const range_node *found = range_tree_at(t, address);
    uint32_t k = 0;
    while (k < n->count &&
           !(address >= n->ranges[k].address && address < n->ranges[k].address + n->ranges[k].bytes)) {
        k++;
    }
    MUST((found == NULL) == (k == n->count));
    MUST(found == NULL || (found->address == n->ranges[k].address && found->bytes == n->ranges[k].bytes));
}

START_TEST(random_ranges_lie_where_an_array_puts_them)
{
    static naive n;
    n = (naive){.count = 0};
    range_tree t;
    uint64_t seed = 40 + (uint64_t)_i, refused = 0;
    range_tree_init(&t, LOW, HIGH);
    for (int turn = 0; turn < 20000; turn++) {
        bool fills = turn / 2000 % 2 == 0;
        if (n.count < RANGES_MAX && next_random(&seed) % 10 < (fills ? 7 : 4)) {
            uint64_t bytes = random_between(&seed, 1, 60 + 700 * (uint64_t)_i);
            uint64_t expected = naive_enter(&n, bytes);
            MUST(range_tree_enter(&t, bytes) == expected);
            refused += expected == 0;
        } else if (n.count > 0) {
            uint32_t k = (uint32_t)(next_random(&seed) % n.count);
            range_node gone = range_tree_leave(&t, n.ranges[k].address);
            MUST(gone.address == n.ranges[k].address && gone.bytes == n.ranges[k].bytes);
            naive_leave(&n, k);
        }
        must_agree(&t, &n, random_between(&seed, LOW - 10, HIGH + 10));
    }
    ck_assert(_i == 0 || refused > 0);
    while (n.count > 0) {
        (void)range_tree_leave(&t, n.ranges[n.count - 1].address);
        naive_leave(&n, n.count - 1);
    }
    ck_assert_uint_eq(range_tree_enter(&t, HIGH - LOW), LOW);
    ck_assert_uint_eq(range_tree_enter(&t, 1), 0);
    range_tree_deinit(&t);
}
END_TEST

START_TEST(a_range_keeps_what_is_written_into_it)
{
    range_tree t;
    range_tree_init(&t, LOW, HIGH);
    uint64_t first = range_tree_enter(&t, 10);
    range_tree_at(&t, first + 9)->mapped_bytes = 7;
    for (int k = 0; k < 100; k++) {
        (void)range_tree_enter(&t, 1);
    }
    ck_assert_uint_eq(range_tree_at(&t, first)->mapped_bytes, 7);
    ck_assert_uint_eq(range_tree_leave(&t, first).mapped_bytes, 7);
    ck_assert_uint_eq(range_tree_enter(&t, 10), first);
    ck_assert_uint_eq(range_tree_at(&t, first)->mapped_bytes, 0);
    range_tree_deinit(&t);
}
END_TEST

START_TEST(short_host_memory_refuses)
{
    range_tree t;
    int64_t live = hr_host_mem_live();
    range_tree_init(&t, LOW, HIGH);
    (void)hr_host_mem_fail_at(1);
    ck_assert_uint_eq(range_tree_enter(&t, 10), 0);
    (void)hr_host_mem_fail_at(0);
    ck_assert_uint_eq(range_tree_enter(&t, 10), LOW);
    range_tree_deinit(&t);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

static Suite *ranges_suite(void)
{
    Suite *suite = suite_create("range tree");
    TCase *cases = tcase_create("ranges");
    tcase_add_loop_test(cases, random_ranges_lie_where_an_array_puts_them, 0, 3);
    tcase_add_test(cases, a_range_keeps_what_is_written_into_it);
    tcase_add_test(cases, short_host_memory_refuses);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(ranges_suite())
