// SPDX-License-Identifier: Apache-2.0
// Reservations and mapped granules, on numbers and on pages: equal requests get equal offsets and equal refusals, what
// is mapped counts as what is taken, mapped pages are zero and go back to the kernel.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "heap.h"
#include "memory/backing.h"

enum {
    PAGE_BYTES = 4096,
    GRANULE_BYTES = 2 << 20,
    GRANULES_MAX = 32,
    RESERVATIONS_MAX = 8, // never beyond what pages have addresses for, wherever the gaps are
    RANGES_MAX = 24
};

typedef struct both {
    backing numbers, pages;
    uint64_t numbers_base, pages_base; // first address of each
} both;

typedef struct place {
    uint64_t on_numbers, on_pages, bytes;
    bool mapped[GRANULES_MAX]; // of a reservation
} place;

static both open_both(uint64_t capacity_bytes)
{
    both b;
    ck_assert_int_eq(backing_numbers_open(capacity_bytes, PAGE_BYTES, &b.numbers, NULL), HR_OK);
    ck_assert_int_eq(backing_pages_open(capacity_bytes, &b.pages, NULL), HR_OK);
    b.numbers_base = UINT64_C(1) << 40;
    b.pages_base = b.pages.take(b.pages.context, 1);
    ck_assert_uint_ne(b.pages_base, 0);
    b.pages.give_back(b.pages.context, b.pages_base, 1);
    return b;
}

static void close_both(both *b)
{
    backing_close(&b->numbers);
    backing_close(&b->pages);
}

static bool are_alike(const both *b, const place *p)
{
    MUST((p->on_numbers == 0) == (p->on_pages == 0));
    MUST(p->on_numbers == 0 || p->on_numbers - b->numbers_base == p->on_pages - b->pages_base);
    return p->on_numbers != 0;
}

static bool take_both(both *b, uint64_t bytes, place *out)
{
    *out = (place){.on_numbers = b->numbers.take(b->numbers.context, bytes),
                   .on_pages = b->pages.take(b->pages.context, bytes),
                   .bytes = bytes};
    return are_alike(b, out);
}

static bool reserve_both(both *b, uint64_t bytes, place *out)
{
    *out = (place){.on_numbers = b->numbers.reserve(b->numbers.context, bytes),
                   .on_pages = b->pages.reserve(b->pages.context, bytes),
                   .bytes = bytes};
    bool served = are_alike(b, out);
    MUST(!served || (out->on_numbers % GRANULE_BYTES == 0 && out->on_pages % GRANULE_BYTES == 0));
    return served;
}

static bool map_both(both *b, const place *p, uint64_t first, uint64_t count)
{
    uint64_t offset = first * GRANULE_BYTES, bytes = count * GRANULE_BYTES;
    bool mapped = b->numbers.map(b->numbers.context, p->on_numbers + offset, bytes);
    MUST(mapped == b->pages.map(b->pages.context, p->on_pages + offset, bytes));
    return mapped;
}

static void unmap_both(both *b, const place *p, uint64_t first, uint64_t count)
{
    uint64_t offset = first * GRANULE_BYTES, bytes = count * GRANULE_BYTES;
    b->numbers.unmap(b->numbers.context, p->on_numbers + offset, bytes);
    b->pages.unmap(b->pages.context, p->on_pages + offset, bytes);
}

// ---- random requests ------------------------------------------------------------------------------------------

typedef struct world {
    both b;
    place ranges[RANGES_MAX], reservations[RESERVATIONS_MAX];
    uint32_t range_count, reservation_count;
    uint64_t capacity_bytes, held_bytes, seed;
} world;

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void take_or_give(world *w)
{
    if (w->range_count < RANGES_MAX && next_random(&w->seed) % 2 == 0) {
        uint64_t bytes = random_between(&w->seed, 1, 5 * HR_MIB);
        bool served = take_both(&w->b, bytes, &w->ranges[w->range_count]);
        MUST(served == (whole_pages(bytes) <= w->capacity_bytes - w->held_bytes));
        w->held_bytes += served ? whole_pages(bytes) : 0;
        w->range_count += served;
    } else if (w->range_count > 0) {
        place *p = &w->ranges[next_random(&w->seed) % w->range_count];
        w->b.numbers.give_back(w->b.numbers.context, p->on_numbers, p->bytes);
        w->b.pages.give_back(w->b.pages.context, p->on_pages, p->bytes);
        w->held_bytes -= whole_pages(p->bytes);
        *p = w->ranges[--w->range_count];
    }
}

static void reserve_or_release(world *w)
{
    if (w->reservation_count < RESERVATIONS_MAX && next_random(&w->seed) % 2 == 0) {
        uint64_t bytes = random_between(&w->seed, 1, GRANULES_MAX * (uint64_t)GRANULE_BYTES);
        w->reservation_count += reserve_both(&w->b, bytes, &w->reservations[w->reservation_count]);
    } else if (w->reservation_count > 0) {
        place *p = &w->reservations[next_random(&w->seed) % w->reservation_count];
        for (uint64_t k = 0; k < GRANULES_MAX; k++) {
            if (p->mapped[k]) {
                unmap_both(&w->b, p, k, 1);
                w->held_bytes -= GRANULE_BYTES;
            }
        }
        w->b.numbers.release(w->b.numbers.context, p->on_numbers, p->bytes);
        w->b.pages.release(w->b.pages.context, p->on_pages, p->bytes);
        *p = w->reservations[--w->reservation_count];
    }
}

// A run of granules in one state, cut where neither call began or ended.
static void map_or_unmap(world *w)
{
    if (w->reservation_count == 0) {
        return;
    }
    place *p = &w->reservations[next_random(&w->seed) % w->reservation_count];
    uint64_t granules = (p->bytes + GRANULE_BYTES - 1) / GRANULE_BYTES;
    uint64_t first = next_random(&w->seed) % granules, count = 1;
    uint64_t most = random_between(&w->seed, 1, 8);
    while (count < most && first + count < granules && p->mapped[first + count] == p->mapped[first]) {
        count++;
    }
    bool was_mapped = p->mapped[first], done = true;
    if (was_mapped) {
        unmap_both(&w->b, p, first, count);
        w->held_bytes -= count * GRANULE_BYTES;
    } else {
        done = map_both(&w->b, p, first, count);
        MUST(done == (count * GRANULE_BYTES <= w->capacity_bytes - w->held_bytes));
        w->held_bytes += done ? count * GRANULE_BYTES : 0;
    }
    for (uint64_t k = first; done && k < first + count; k++) {
        p->mapped[k] = !was_mapped;
    }
}

static bool overlap(const place *a, const place *b)
{
    return a->on_numbers < b->on_numbers + b->bytes && b->on_numbers < a->on_numbers + a->bytes;
}

static void must_be_apart(const world *w)
{
    for (uint32_t k = 0; k < w->reservation_count; k++) {
        for (uint32_t j = 0; j < k; j++) {
            MUST(!overlap(&w->reservations[k], &w->reservations[j]));
        }
        for (uint32_t j = 0; j < w->range_count; j++) {
            MUST(!overlap(&w->reservations[k], &w->ranges[j]));
        }
    }
}

START_TEST(random_requests_are_answered_alike)
{
    static world w;
    w = (world){.capacity_bytes = 64 * HR_MIB + PAGE_BYTES, .seed = 77 + (uint64_t)_i};
    w.b = open_both(w.capacity_bytes);
    for (uint32_t n = 0; n < 4000; n++) {
        switch (next_random(&w.seed) % 4) {
        case 0:
            take_or_give(&w);
            break;
        case 1:
            reserve_or_release(&w);
            break;
        default:
            map_or_unmap(&w);
        }
        must_be_apart(&w);
    }
    close_both(&w.b);
}
END_TEST

// ---- capacity -------------------------------------------------------------------------------------------------

START_TEST(what_is_mapped_counts_and_what_is_reserved_does_not)
{
    both b = open_both(8 * HR_MIB);
    place large, small, taken;
    ck_assert(reserve_both(&b, 9 * HR_MIB, &large)); // 1 1/8 of the card, as PyTorch asks
    ck_assert(reserve_both(&b, 9 * HR_MIB, &small));
    ck_assert(take_both(&b, 5 * HR_MIB, &taken));
    ck_assert(map_both(&b, &large, 1, 1));
    ck_assert(!map_both(&b, &large, 2, 1)); // 1 MiB is left
    ck_assert(!take_both(&b, HR_MIB + 1, &(place){0}));
    unmap_both(&b, &large, 1, 1);
    ck_assert(take_both(&b, 3 * HR_MIB, &taken));
    ck_assert(!map_both(&b, &small, 0, 1));
    close_both(&b);
}
END_TEST

START_TEST(pages_have_addresses_for_sixteen_times_the_capacity)
{
    backing b;
    uint64_t p[12];
    ck_assert_int_eq(backing_pages_open(8 * HR_MIB, &b, NULL), HR_OK);
    for (int k = 0; k < 12; k++) {
        p[k] = b.reserve(b.context, 9 * HR_MIB); // 10 MiB in granules, of 128
        ck_assert_uint_ne(p[k], 0);
    }
    ck_assert_uint_eq(b.reserve(b.context, 9 * HR_MIB), 0);
    ck_assert_uint_ne(b.reserve(b.context, 8 * HR_MIB), 0);
    ck_assert_uint_eq(b.reserve(b.context, 1), 0);
    ck_assert_uint_eq(b.reserve(b.context, 0), 0);
    ck_assert_uint_eq(b.reserve(b.context, UINT64_MAX), 0);
    b.release(b.context, p[3], 9 * HR_MIB);
    ck_assert_uint_eq(b.reserve(b.context, 10 * HR_MIB), p[3]);
    backing_close(&b);
}
END_TEST

START_TEST(short_host_memory_refuses_a_reservation)
{
    int64_t live = hr_host_mem_live();
    both b = open_both(8 * HR_MIB);
    (void)hr_host_mem_fail_at(1);
    ck_assert_uint_eq(b.pages.reserve(b.pages.context, HR_MIB), 0);
    (void)hr_host_mem_fail_at(1);
    ck_assert_uint_eq(b.numbers.reserve(b.numbers.context, HR_MIB), 0);
    (void)hr_host_mem_fail_at(0);
    place p;
    ck_assert(reserve_both(&b, HR_MIB, &p));
    ck_assert(map_both(&b, &p, 0, 1));
    close_both(&b);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(a_card_of_large_granules_maps_in_them)
{
    backing b;
    ck_assert_int_eq(backing_numbers_open(64 * HR_MIB, 8 * HR_MIB, &b, NULL), HR_OK);
    ck_assert_uint_eq(b.mapping_bytes, 8 * HR_MIB);
    backing_close(&b);
    ck_assert_int_eq(backing_numbers_open(64 * HR_MIB, 512, &b, NULL), HR_OK);
    ck_assert_uint_eq(b.mapping_bytes, GRANULE_BYTES);
    backing_close(&b);
    ck_assert_int_eq(backing_numbers_open(UINT64_C(1) << 60, 2 * HR_MIB, &b, NULL), HR_OK);
    ck_assert_uint_ne(b.reserve(b.context, (UINT64_C(9) << 60) / 8), 0); // the largest card there may be
    backing_close(&b);
}
END_TEST

// ---- pages ----------------------------------------------------------------------------------------------------

static bool is_resident(uint64_t address)
{
    unsigned char flag = 0;
    ck_assert_int_eq(mincore((void *)(uintptr_t)address, PAGE_BYTES, &flag), 0);
    return (flag & 1) != 0;
}

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

static bool is_zero(const unsigned char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && bytes[at] == 0) {
        at++;
    }
    return at == count;
}

START_TEST(mapped_pages_are_zero_usable_and_gone_when_unmapped)
{
    backing b;
    ck_assert_int_eq(backing_pages_open(16 * HR_MIB, &b, NULL), HR_OK);
    uint64_t address = b.reserve(b.context, 16 * HR_MIB);
    unsigned char *bytes = (unsigned char *)(uintptr_t)address;
    ck_assert_uint_ne(address, 0);
    ck_assert(!is_readable(address));
    ck_assert(b.map(b.context, address, 6 * HR_MIB));
    ck_assert(!is_resident(address));
    ck_assert(is_zero(bytes, 6 * HR_MIB));
    memset(bytes, 0x5a, 6 * HR_MIB);
    b.unmap(b.context, address + 2 * HR_MIB, 2 * HR_MIB); // the middle of what was mapped at once
    ck_assert(!is_readable(address + 2 * HR_MIB) && !is_readable(address + 4 * HR_MIB - 1));
    ck_assert(!is_resident(address + 2 * HR_MIB));
    ck_assert_uint_eq(bytes[2 * HR_MIB - 1], 0x5a);
    ck_assert_uint_eq(bytes[4 * HR_MIB], 0x5a);
    ck_assert(b.map(b.context, address + 2 * HR_MIB, 2 * HR_MIB));
    ck_assert(is_zero(bytes + 2 * HR_MIB, 2 * HR_MIB));
    b.unmap(b.context, address, 6 * HR_MIB);
    b.release(b.context, address, 16 * HR_MIB);
    ck_assert(!is_readable(address));
    ck_assert_uint_eq(b.reserve(b.context, HR_MIB), address);
    ck_assert(b.map(b.context, address, 2 * HR_MIB));
    ck_assert(is_zero(bytes, 2 * HR_MIB));
    backing_close(&b);
}
END_TEST

static Suite *mapping_suite(void)
{
    Suite *suite = suite_create("mapping");
    TCase *requests = tcase_create("requests");
    tcase_add_loop_test(requests, random_requests_are_answered_alike, 0, 3);
    tcase_add_test(requests, what_is_mapped_counts_and_what_is_reserved_does_not);
    tcase_add_test(requests, pages_have_addresses_for_sixteen_times_the_capacity);
    tcase_add_test(requests, short_host_memory_refuses_a_reservation);
    tcase_add_test(requests, a_card_of_large_granules_maps_in_them);
    suite_add_tcase(suite, requests);
    TCase *pages = tcase_create("pages");
    tcase_add_test(pages, mapped_pages_are_zero_usable_and_gone_when_unmapped);
    suite_add_tcase(suite, pages);
    return suite;
}

TEST_MAIN(mapping_suite())
