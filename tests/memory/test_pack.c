// SPDX-License-Identifier: Apache-2.0
// The packer on random lifetimes: judged by the checker, by a plain first fit that looks at everything, and on small
// cases by the best of all orders. The checker itself on packings that were spoiled on purpose.
#include <string.h>

#include "base/host_mem.h"
#include "heap.h"
#include "memory/pack_items.h"

enum { ALIGNMENT = 256, MANY = 20000, FEW = 300 };

static pack_buffer buffers[MANY];
static uint64_t offsets[MANY], plain[MANY];

static uint64_t room_of(const pack_buffer *b)
{
    return (b->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool meet(const pack_buffer *a, const pack_buffer *b)
{
    return a->birth < b->death && b->birth < a->death;
}

static uint64_t packed(uint32_t count)
{
    uint64_t height = 0;
    hr_err err;
    if (pack_offsets(buffers, count, ALIGNMENT, offsets, &height, &err) != HR_OK ||
        pack_check(buffers, count, ALIGNMENT, offsets, height, &err) != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return height;
}

static uint64_t bound(uint32_t count)
{
    uint64_t bytes = 0;
    ck_assert_int_eq(pack_lower_bound(buffers, count, ALIGNMENT, &bytes, NULL), HR_OK);
    return bytes;
}

// Sizes over many magnitudes, equal ones among them; lifetimes long and short; now and then nothing at all.
static void draw(uint64_t *seed, uint32_t count)
{
    uint32_t instants = (uint32_t)random_between(seed, 1, 2 * count);
    uint32_t longest = (uint32_t)random_between(seed, 1, instants);
    unsigned magnitude = (unsigned)random_between(seed, 1, 30);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t birth = (uint32_t)random_between(seed, 0, instants);
        buffers[k] =
            (pack_buffer){birth, birth + (uint32_t)random_between(seed, 1, longest),
                          random_between(seed, 0, UINT64_C(1) << random_between(seed, 0, magnitude))};
    }
}

// A training step: what forward leaves lives until its backward, with temporaries in between.
static void draw_step(uint64_t *seed, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        bool saved = k < count / 2 && k % 2 == 0;
        buffers[k] = (pack_buffer){k, saved ? count - k : k + (uint32_t)random_between(seed, 1, 6),
                                   random_between(seed, 1, 4 * HR_MIB)};
    }
}

// ---- against plainer ways -------------------------------------------------------------------------------------

// The lowest offset for buffer k among the placed ones: try zero and the end of each.
static uint64_t plain_offset(const bool *placed, uint32_t count, uint32_t k)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t candidate = 0; candidate <= count; candidate++) {
        if (candidate < count && (!placed[candidate] || !meet(&buffers[candidate], &buffers[k]))) {
            continue;
        }
        uint64_t at = candidate == count ? 0 : plain[candidate] + room_of(&buffers[candidate]);
        bool is_free = at < best;
        for (uint32_t j = 0; is_free && j < count; j++) {
            is_free = !placed[j] || !meet(&buffers[j], &buffers[k]) ||
                      plain[j] >= at + room_of(&buffers[k]) || plain[j] + room_of(&buffers[j]) <= at;
        }
        best = is_free ? at : best;
    }
    return best;
}

static bool goes_before(uint32_t a, uint32_t b)
{
    uint64_t rooms[] = {room_of(&buffers[a]), room_of(&buffers[b])};
    uint32_t lengths[] = {buffers[a].death - buffers[a].birth, buffers[b].death - buffers[b].birth};
    return rooms[0] != rooms[1]       ? rooms[0] > rooms[1]
           : lengths[0] != lengths[1] ? lengths[0] > lengths[1]
                                      : a < b;
}

static void pack_plainly(uint32_t count)
{
    bool placed[FEW] = {false};
    for (uint32_t n = 0; n < count; n++) {
        uint32_t next = UINT32_MAX;
        for (uint32_t k = 0; k < count; k++) {
            next = !placed[k] && (next == UINT32_MAX || goes_before(k, next)) ? k : next;
        }
        plain[next] = buffers[next].bytes == 0 ? 0 : plain_offset(placed, count, next);
        placed[next] = true;
    }
}

static void fit_by_size(uint32_t count)
{
    pack_items items;
    uint64_t height = 0;
    memset(offsets, 0, count * sizeof *offsets);
    ck_assert_int_eq(pack_items_init(&items, buffers, count, ALIGNMENT, NULL), HR_OK);
    pack_items_sort(&items, PACK_BY_SIZE);
    MUST(pack_first_fit(&items, offsets, &height));
    pack_items_deinit(&items);
    ck_assert_int_eq(pack_check(buffers, count, ALIGNMENT, offsets, height, NULL), HR_OK);
}

START_TEST(first_fit_by_size_is_that_buffer_for_buffer)
{
    uint64_t seed = 11;
    for (int round = 0; round < 150; round++) {
        uint32_t count = (uint32_t)random_between(&seed, 1, 60);
        draw(&seed, count);
        fit_by_size(count);
        pack_plainly(count);
        for (uint32_t k = 0; k < count; k++) {
            MUST(offsets[k] == plain[k]);
        }
    }
}
END_TEST

// The lowest height that first fit reaches in any order: the optimum, since some order reaches it.
static uint64_t best_of_all_orders(bool *placed, uint32_t count, uint32_t left, uint64_t height)
{
    if (left == 0) {
        return height;
    }
    uint64_t best = UINT64_MAX;
    for (uint32_t k = 0; k < count; k++) {
        if (placed[k]) {
            continue;
        }
        plain[k] = plain_offset(placed, count, k);
        uint64_t end = plain[k] + room_of(&buffers[k]);
        placed[k] = true;
        uint64_t reached = best_of_all_orders(placed, count, left - 1, end > height ? end : height);
        placed[k] = false;
        best = reached < best ? reached : best;
    }
    return best;
}

START_TEST(small_cases_are_packed_at_their_optimum)
{
    uint64_t seed = 12;
    for (int round = 0; round < 120; round++) {
        bool placed[FEW] = {false};
        uint32_t count = (uint32_t)random_between(&seed, 1, 6);
        for (uint32_t k = 0; k < count; k++) {
            uint32_t birth = (uint32_t)random_between(&seed, 0, 8);
            buffers[k] = (pack_buffer){birth, birth + (uint32_t)random_between(&seed, 1, 5),
                                       ALIGNMENT * random_between(&seed, 1, 5)};
        }
        uint64_t height = packed(count), best = best_of_all_orders(placed, count, count, 0);
        MUST(bound(count) <= best && height == best);
    }
}
END_TEST

// ---- properties -----------------------------------------------------------------------------------------------

START_TEST(random_lifetimes_pass_the_checker_between_bound_and_sum)
{
    uint64_t seed = 13;
    for (int round = 0; round < 300; round++) {
        uint32_t count = (uint32_t)random_between(&seed, 0, FEW);
        if (count > 0) {
            draw(&seed, count);
        }
        uint64_t sum = 0, height = packed(count);
        for (uint32_t k = 0; k < count; k++) {
            sum += room_of(&buffers[k]);
        }
        MUST(bound(count) <= height && height <= sum);
    }
}
END_TEST

static uint64_t alive_at(uint32_t instant, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        bytes += buffers[k].birth <= instant && instant < buffers[k].death ? room_of(&buffers[k]) : 0;
    }
    return bytes;
}

START_TEST(the_bound_is_the_largest_sum_alive)
{
    uint64_t seed = 14;
    for (int round = 0; round < 60; round++) {
        uint32_t count = (uint32_t)random_between(&seed, 1, 50);
        uint64_t most = 0;
        draw(&seed, count);
        for (uint32_t k = 0; k < count; k++) {
            uint64_t bytes = alive_at(buffers[k].birth, count);
            most = bytes > most ? bytes : most;
        }
        MUST(bound(count) == most);
    }
}
END_TEST

START_TEST(stacks_and_equal_sizes_are_packed_without_loss)
{
    for (uint32_t k = 0; k < FEW; k++) { // one within the other
        buffers[k] = (pack_buffer){k, 2 * FEW - k, 1000 * (k % 7 + 1)};
    }
    ck_assert_uint_eq(packed(FEW), bound(FEW));
    for (uint32_t k = 0; k < FEW; k++) { // one behind the other
        buffers[k] = (pack_buffer){k, k + 1, 1000 * (k % 7 + 1)};
    }
    ck_assert_uint_eq(packed(FEW), 7168);
    for (uint32_t k = 0; k < FEW; k++) { // the ends touch, the half-open lifetimes do not meet
        buffers[k] = (pack_buffer){3 * k, 3 * k + 6, 4096};
    }
    ck_assert_uint_eq(packed(FEW), 2 * 4096);
}
END_TEST

START_TEST(twenty_thousand_buffers_of_a_step_come_close_to_the_bound)
{
    uint64_t seed = 15;
    draw_step(&seed, MANY);
    uint64_t height = packed(MANY), least = bound(MANY);
    ck_assert_uint_ge(height, least);
    ck_assert_uint_lt(height - least, least / 50);
    draw(&seed, MANY);
    ck_assert_uint_ge(packed(MANY), bound(MANY));
}
END_TEST

START_TEST(it_is_never_higher_than_first_fit_by_size)
{
    uint64_t seed = 18, lower = 0;
    for (int round = 0; round < 100; round++) {
        uint32_t count = (uint32_t)random_between(&seed, 1, FEW);
        draw(&seed, count);
        uint64_t height = packed(count), first = 0;
        pack_plainly(count);
        for (uint32_t k = 0; k < count; k++) {
            uint64_t end = plain[k] + (buffers[k].bytes == 0 ? 0 : room_of(&buffers[k]));
            first = end > first ? end : first;
        }
        MUST(height <= first);
        lower += height < first;
    }
    ck_assert_uint_gt(lower, 20);
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------

static void must_refuse(hr_status status, const hr_err *err, const char *sentence)
{
    ck_assert_int_eq(status, HR_CHECK);
    ck_assert_str_eq(err->sentence, sentence);
}

START_TEST(impossible_lifetimes_and_sums_are_refused)
{
    hr_err err = {0};
    uint64_t height = 1;
    buffers[0] = (pack_buffer){3, 3, 10};
    must_refuse(pack_offsets(buffers, 1, ALIGNMENT, offsets, &height, &err), &err,
                "buffer 0 is born at 3 and gone at 3");
    must_refuse(pack_lower_bound(buffers, 1, ALIGNMENT, &height, &err), &err,
                "buffer 0 is born at 3 and gone at 3");
    buffers[0] = buffers[1] = (pack_buffer){0, 1, UINT64_C(1) << 62};
    must_refuse(pack_offsets(buffers, 2, ALIGNMENT, offsets, &height, &err), &err,
                "buffer 1 of 4611686018427387904 bytes: all of them need more than 63 bits");
    buffers[0].bytes = UINT64_MAX;
    must_refuse(pack_offsets(buffers, 1, ALIGNMENT, offsets, &height, &err), &err,
                "buffer 0 of 18446744073709551615 bytes: all of them need more than 63 bits");
}
END_TEST

static void must_find(uint32_t count, uint64_t height, const char *sentence)
{
    hr_err err = {0};
    must_refuse(pack_check(buffers, count, ALIGNMENT, offsets, height, &err), &err, sentence);
}

START_TEST(the_checker_names_the_first_offence)
{
    const pack_buffer good[] = {{0, 4, 300}, {1, 3, 256}, {3, 6, 256}};
    const uint64_t places[] = {0, 512, 512};
    memcpy(buffers, good, sizeof good);
    memcpy(offsets, places, sizeof places);
    ck_assert_int_eq(pack_check(buffers, 3, ALIGNMENT, offsets, 768, NULL), HR_OK);
    must_find(3, 512, "buffer 1: 256 bytes at 512 reach beyond the height of 512");
    must_find(3, 1024, "the height is 1024, the highest buffer ends at 768");
    offsets[1] = 500;
    must_find(3, 768, "buffer 1: needed an offset in whole 256 bytes, had 500");
    offsets[1] = 256;
    must_find(3, 768, "instant 1: buffer 1 at 256 lies in the 300 bytes of buffer 0 at 0");
    offsets[1] = 0;
    must_find(3, 768, "instant 1: buffer 0 at 0 lies in the 256 bytes of buffer 1 at 0");
    offsets[1] = UINT64_MAX - 255;
    must_find(3, 768, "buffer 1: 256 bytes at 18446744073709551360 reach beyond the height of 768");
    offsets[1] = 512;
    buffers[1].death = 4;
    must_find(3, 768, "instant 3: buffer 1 at 512 lies in the 256 bytes of buffer 2 at 512");
    buffers[1].death = 1;
    must_find(3, 768, "buffer 1 is born at 1 and gone at 1");
}
END_TEST

START_TEST(the_checker_finds_one_buffer_moved_among_many)
{
    uint64_t seed = 16;
    for (int round = 0; round < 200; round++) {
        uint32_t count = (uint32_t)random_between(&seed, 2, 60);
        draw(&seed, count);
        uint64_t height = packed(count);
        uint32_t moved = (uint32_t)random_between(&seed, 0, count - 1);
        uint64_t room = room_of(&buffers[moved]);
        offsets[moved] =
            room > height ? 0 : random_between(&seed, 0, (height - room) / ALIGNMENT) * ALIGNMENT;
        bool overlaps = false;
        uint64_t reached = 0;
        for (uint32_t k = 0; k < count; k++) {
            uint64_t end = buffers[k].bytes == 0 ? 0 : offsets[k] + room_of(&buffers[k]);
            reached = end > reached ? end : reached;
            overlaps =
                overlaps ||
                (k != moved && room > 0 && buffers[k].bytes > 0 && meet(&buffers[k], &buffers[moved]) &&
                 offsets[k] < offsets[moved] + room && offsets[moved] < offsets[k] + room_of(&buffers[k]));
        }
        bool good = !overlaps && reached == height;
        MUST((pack_check(buffers, count, ALIGNMENT, offsets, height, NULL) == HR_OK) == good);
    }
}
END_TEST

START_TEST(every_failed_host_allocation_is_said_and_leaves_nothing)
{
    uint64_t seed = 17, height = 0;
    int64_t live = hr_host_mem_live();
    draw(&seed, 20);
    buffers[0].bytes = 1; // something to place
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        (void)hr_host_mem_fail_at(nth);
        hr_status status = pack_offsets(buffers, 20, ALIGNMENT, offsets, &height, NULL);
        status = status == HR_OK ? pack_lower_bound(buffers, 20, ALIGNMENT, &height, NULL) : status;
        uint64_t top = height;
        status = status == HR_OK ? pack_offsets(buffers, 20, ALIGNMENT, offsets, &top, NULL) : status;
        status = status == HR_OK ? pack_check(buffers, 20, ALIGNMENT, offsets, top, NULL) : status;
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed_once ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

static Suite *pack_suite(void)
{
    Suite *suite = suite_create("pack");
    TCase *cases = tcase_create("pack");
    tcase_add_test(cases, first_fit_by_size_is_that_buffer_for_buffer);
    tcase_add_test(cases, small_cases_are_packed_at_their_optimum);
    tcase_add_test(cases, random_lifetimes_pass_the_checker_between_bound_and_sum);
    tcase_add_test(cases, the_bound_is_the_largest_sum_alive);
    tcase_add_test(cases, stacks_and_equal_sizes_are_packed_without_loss);
    tcase_add_test(cases, twenty_thousand_buffers_of_a_step_come_close_to_the_bound);
    tcase_add_test(cases, it_is_never_higher_than_first_fit_by_size);
    tcase_add_test(cases, impossible_lifetimes_and_sums_are_refused);
    tcase_add_test(cases, the_checker_names_the_first_offence);
    tcase_add_test(cases, the_checker_finds_one_buffer_moved_among_many);
    tcase_add_test(cases, every_failed_host_allocation_is_said_and_leaves_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(pack_suite())
