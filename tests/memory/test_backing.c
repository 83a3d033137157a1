// SPDX-License-Identifier: Apache-2.0
// Numbers and pages: equal requests get equal offsets, ranges are aligned and apart, pages are usable and go back.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "heap.h"
#include "memory/backing.h"

enum { PAGE_BYTES = 4096, RANGES_MAX = 64 };

typedef struct range {
    uint64_t address, bytes;
} range;

static backing open_numbers(uint64_t capacity_bytes)
{
    backing b;
    ck_assert_int_eq(backing_numbers_open(capacity_bytes, PAGE_BYTES, &b, NULL), HR_OK);
    return b;
}

static backing open_pages(uint64_t capacity_bytes)
{
    backing b;
    ck_assert_int_eq(backing_pages_open(capacity_bytes, &b, NULL), HR_OK);
    return b;
}

static uint64_t take(backing *b, uint64_t bytes)
{
    return b->take(b->context, bytes);
}

static void give_back(backing *b, range r)
{
    b->give_back(b->context, r.address, r.bytes);
}

START_TEST(numbers_begin_high_and_are_aligned)
{
    backing b = open_numbers(HR_MIB);
    ck_assert_uint_eq(take(&b, 1), UINT64_C(1) << 40);
    ck_assert_uint_eq(take(&b, PAGE_BYTES + 1), (UINT64_C(1) << 40) + PAGE_BYTES);
    ck_assert_uint_eq(take(&b, 1), (UINT64_C(1) << 40) + 3 * PAGE_BYTES);
    ck_assert_uint_eq(b.granularity_bytes, PAGE_BYTES);
    ck_assert(!b.coalesces);
    backing_close(&b);
    backing_close(&b);
    backing_close(NULL);
}
END_TEST

START_TEST(the_capacity_holds_at_once_and_no_more)
{
    backing b = open_numbers(HR_MIB + 1); // rounded up to whole granules
    range whole = {take(&b, HR_MIB + 1), HR_MIB + 1};
    ck_assert_uint_ne(whole.address, 0);
    ck_assert_uint_eq(take(&b, 1), 0);
    give_back(&b, whole);
    ck_assert_uint_ne(take(&b, HR_MIB), 0);
    ck_assert_uint_eq(take(&b, 2 * PAGE_BYTES), 0);
    ck_assert_uint_ne(take(&b, 1), 0);
    ck_assert_uint_eq(take(&b, 0), 0);
    ck_assert_uint_eq(take(&b, UINT64_MAX), 0);
    backing_close(&b);
}
END_TEST

START_TEST(gaps_do_not_cost_capacity)
{
    backing b = open_numbers(64 * PAGE_BYTES);
    range small[32];
    for (int i = 0; i < 32; i++) {
        small[i] = (range){take(&b, 2 * PAGE_BYTES), 2 * PAGE_BYTES};
    }
    for (int i = 0; i < 32; i += 2) {
        give_back(&b, small[i]);
    }
    ck_assert_uint_ne(take(&b, 32 * PAGE_BYTES),
                      0); // 32 free granules, nowhere three together below the others
    ck_assert_uint_eq(take(&b, 1), 0);
    backing_close(&b);
}
END_TEST

// The same takes and returns on both; offsets from the first address must agree.
START_TEST(pages_and_numbers_place_alike)
{
    backing numbers = open_numbers(8 * HR_MIB), pages = open_pages(8 * HR_MIB);
    static range on_numbers[RANGES_MAX], on_pages[RANGES_MAX];
    uint64_t seed = 11, numbers_base = UINT64_C(1) << 40, pages_base = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t bytes = random_between(&seed, 1, 600 * HR_KIB);
        if (count < RANGES_MAX && next_random(&seed) % 2 == 0) {
            range n = {take(&numbers, bytes), bytes}, p = {take(&pages, bytes), bytes};
            pages_base = i == 0 || pages_base == 0 ? p.address : pages_base;
            MUST((n.address == 0) == (p.address == 0));
            MUST(n.address == 0 || n.address - numbers_base == p.address - pages_base);
            on_numbers[count] = n;
            on_pages[count] = p;
            count += n.address != 0;
        } else if (count > 0) {
            uint64_t at = next_random(&seed) % count;
            give_back(&numbers, on_numbers[at]);
            give_back(&pages, on_pages[at]);
            count--;
            on_numbers[at] = on_numbers[count];
            on_pages[at] = on_pages[count];
        }
    }
    backing_close(&numbers);
    backing_close(&pages);
}
END_TEST

static bool is_resident(uint64_t address)
{
    unsigned char flag = 0;
    ck_assert_int_eq(mincore((void *)(uintptr_t)address, PAGE_BYTES, &flag), 0);
    return (flag & 1) != 0;
}

START_TEST(pages_are_zero_usable_and_gone_when_given_back)
{
    backing b = open_pages(4 * HR_MIB);
    range r = {take(&b, HR_MIB), HR_MIB};
    ck_assert_uint_ne(r.address, 0);
    char *bytes = (char *)(uintptr_t)r.address;
    ck_assert(!is_resident(r.address)); // nothing is there before it is touched
    ck_assert_int_eq(bytes[0], 0);
    memset(bytes, 0x5a, HR_MIB);
    ck_assert(is_resident(r.address));
    give_back(&b, r);
    ck_assert(!is_resident(r.address));
    ck_assert_uint_eq(take(&b, HR_MIB), r.address);
    ck_assert_int_eq(bytes[HR_MIB - 1], 0);
    backing_close(&b);
}
END_TEST

// Asks the kernel, which answers where a touch of our own would end the program.
static bool is_readable(uint64_t address)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ssize_t written = write(ends[1], (const void *)(uintptr_t)address, 1);
    ck_assert(written == 1 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

// Is the mapping that begins at `address` or holds it marked for large pages ("hg" among its flags)?
static bool wants_large_pages(uint64_t address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(maps);
    char line[512];
    bool inside = false, marked = false;
    while (fgets(line, sizeof line, maps) != NULL) {
        uint64_t begin = 0, end = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
            inside = begin <= address && address < end;
        } else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            marked = strstr(line, " hg") != NULL;
        }
    }
    (void)fclose(maps);
    return marked;
}

START_TEST(pages_are_large_where_the_system_has_them)
{
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
        return; // a system without
    }
    backing b = open_pages(64 * HR_MIB);
    range r = {take(&b, 4 * HR_MIB), 4 * HR_MIB};
    ck_assert(wants_large_pages(r.address));
    give_back(&b, r);
    ck_assert(!wants_large_pages(r.address)); // what may be mapped otherwise is as it was
    const uint64_t reserved = b.reserve(b.context, b.mapping_bytes);
    ck_assert(b.map(b.context, reserved, b.mapping_bytes));
    ck_assert(wants_large_pages(reserved));
    backing_close(&b);
}
END_TEST

START_TEST(a_returned_page_cannot_be_touched)
{
    backing b = open_pages(4 * HR_MIB);
    range r = {take(&b, HR_MIB + 1), HR_MIB + 1}, behind = {take(&b, 1), 1};
    ck_assert(is_readable(r.address) && is_readable(r.address + HR_MIB));
    ck_assert(!is_readable(behind.address + PAGE_BYTES));
    give_back(&b, r);
    ck_assert(!is_readable(r.address) && !is_readable(r.address + HR_MIB));
    ck_assert(is_readable(behind.address));
    backing_close(&b);
}
END_TEST

START_TEST(what_cannot_be_had_is_an_error_with_numbers)
{
    backing b;
    hr_err err;
    ck_assert_int_eq(backing_pages_open(UINT64_MAX, &b, &err), HR_HOST_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed at most"));
    ck_assert_int_eq(backing_pages_open(UINT64_C(1) << 56, &b, &err), HR_HOST_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "address space"));
    ck_assert_int_eq(backing_numbers_open(UINT64_MAX, PAGE_BYTES, &b, NULL), HR_HOST_LIMIT);
    ck_assert_int_eq(backing_numbers_open(HR_MIB, 3000, &b, NULL), HR_DEVICE);
    ck_assert_ptr_null(b.context);
}
END_TEST

START_TEST(short_host_memory_refuses_a_range_and_leaks_nothing)
{
    int64_t live = hr_host_mem_live();
    backing b;
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(backing_numbers_open(HR_MIB, PAGE_BYTES, &b, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(backing_pages_open(HR_MIB, &b, NULL), HR_NOMEM);
    b = open_pages(HR_MIB);
    (void)hr_host_mem_fail_at(1);
    ck_assert_uint_eq(take(&b, PAGE_BYTES), 0);
    (void)hr_host_mem_fail_at(0);
    ck_assert_uint_ne(take(&b, HR_MIB), 0); // the refused range holds no capacity
    backing_close(&b);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// ---- heaps over them ------------------------------------------------------------------------------------------

START_TEST(equal_heaps_on_pages_and_numbers_have_equal_hashes)
{
    allocator_config config = bfc_config(24 * HR_MIB, _i == 0);
    heap on_numbers = heap_over(&config, open_numbers(config.limit_bytes), NULL);
    heap on_pages = heap_over(&config, open_pages(config.limit_bytes), NULL);
    static range live[256];
    uint64_t seed = 23;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        if (count < 256 && next_random(&seed) % 3 != 0) {
            uint64_t bytes = random_between(&seed, 1, UINT64_C(1) << random_between(&seed, 8, 22));
            range both = {0};
            hr_status expected = allocator_alloc(on_numbers.allocator, bytes, i, &both.address, NULL);
            hr_status status = allocator_alloc(on_pages.allocator, bytes, i, &both.bytes, NULL);
            MUST(status == expected);
            live[count] = both;
            count += status == HR_OK;
        } else {
            for (uint32_t left = count * (uint32_t)(next_random(&seed) % 4) / 4; count > left; count--) {
                heap_free(&on_numbers, live[count - 1].address);
                heap_free(&on_pages, live[count - 1].bytes);
            }
        }
        MUST(on_numbers.allocator->ops->hash(on_numbers.allocator) ==
             on_pages.allocator->ops->hash(on_pages.allocator));
    }
    heap_must_be_sound(&on_pages);
    heap_close(&on_numbers);
    heap_close(&on_pages);
}
END_TEST

START_TEST(the_hash_tells_heaps_apart_and_repeats_with_them)
{
    allocator_config config = bfc_config(24 * HR_MIB, true);
    heap h = heap_open(&config);
    const allocator_ops *ops = h.allocator->ops;
    uint64_t empty = ops->hash(h.allocator);
    uint64_t kept = heap_alloc(&h, 1000);
    uint64_t one = ops->hash(h.allocator);
    uint64_t other = heap_alloc(&h, 1000);
    ck_assert_uint_ne(one, empty);
    ck_assert_uint_ne(ops->hash(h.allocator), one);
    heap_free(&h, other);
    ck_assert_uint_eq(ops->hash(h.allocator), one);
    other = heap_alloc(&h, 2000);
    ck_assert_uint_ne(ops->hash(h.allocator), one);
    heap_free(&h, other);
    heap_free(&h, kept);
    kept = heap_alloc(&h, 1024); // other bytes asked for, the same chunk
    ck_assert_uint_eq(ops->hash(h.allocator), one);
    heap_close(&h);
}
END_TEST

static Suite *backing_suite(void)
{
    Suite *suite = suite_create("backings");
    TCase *ranges = tcase_create("ranges");
    tcase_add_test(ranges, numbers_begin_high_and_are_aligned);
    tcase_add_test(ranges, the_capacity_holds_at_once_and_no_more);
    tcase_add_test(ranges, gaps_do_not_cost_capacity);
    tcase_add_test(ranges, pages_and_numbers_place_alike);
    tcase_add_test(ranges, pages_are_zero_usable_and_gone_when_given_back);
    tcase_add_test(ranges, pages_are_large_where_the_system_has_them);
    tcase_add_test(ranges, a_returned_page_cannot_be_touched);
    tcase_add_test(ranges, what_cannot_be_had_is_an_error_with_numbers);
    tcase_add_test(ranges, short_host_memory_refuses_a_range_and_leaks_nothing);
    suite_add_tcase(suite, ranges);
    TCase *heaps = tcase_create("heaps");
    tcase_add_loop_test(heaps, equal_heaps_on_pages_and_numbers_have_equal_hashes, 0, 2);
    tcase_add_test(heaps, the_hash_tells_heaps_apart_and_repeats_with_them);
    suite_add_tcase(suite, heaps);
    return suite;
}

TEST_MAIN(backing_suite())
