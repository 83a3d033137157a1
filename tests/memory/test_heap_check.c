// SPDX-License-Identifier: Apache-2.0
// The checker itself: it passes a sound heap and names the first offence of each unsound one.
#include <string.h>

#include "heap.h"

enum { CHUNKS_MAX = 5 };

// An allocator that only shows what it was told to show.
typedef struct puppet {
    allocator base;
    heap_chunk chunk[CHUNKS_MAX];
    int count;
} puppet;

static void puppet_walk(const allocator *a, heap_visitor visit, void *context)
{
    const puppet *p = (const puppet *)a;
    for (int i = 0; i < p->count && visit(context, &p->chunk[i]); i++) {
    }
}

static uint64_t puppet_largest_free(const allocator *a)
{
    return a->counters.largest_free_bytes;
}

static const allocator_ops puppet_ops = {
    .name = "puppet", .walk = puppet_walk, .largest_free = puppet_largest_free};

static heap_chunk used(uint64_t region, uint64_t region_bytes, uint64_t address, uint64_t bytes)
{
    return (heap_chunk){.address = address,
                        .size_bytes = bytes,
                        .requested_bytes = bytes - 1,
                        .region_address = region,
                        .region_bytes = region_bytes,
                        .allocation_id = address,
                        .in_use = true};
}

static heap_chunk unused(uint64_t region, uint64_t region_bytes, uint64_t address, uint64_t bytes)
{
    return (heap_chunk){.address = address,
                        .size_bytes = bytes,
                        .region_address = region,
                        .region_bytes = region_bytes,
                        .tensor = HR_NO_ID};
}

// Two regions, 1000 … 2024 and 4000 … 4512: used 256, free 512, used 256 | free 256, used 256.
static puppet sound(void)
{
    puppet p = {.base.ops = &puppet_ops, .count = 5};
    p.chunk[0] = used(1000, 1024, 1000, 256);
    p.chunk[1] = unused(1000, 1024, 1256, 512);
    p.chunk[2] = used(1000, 1024, 1768, 256);
    p.chunk[3] = unused(4000, 512, 4000, 256);
    p.chunk[4] = used(4000, 512, 4256, 256);
    p.base.counters = (heap_counters){.requested_bytes = 765,
                                      .in_use_bytes = 768,
                                      .pool_bytes = 1536,
                                      .limit_bytes = 2048,
                                      .peak_in_use_bytes = 768,
                                      .peak_pool_bytes = 1536,
                                      .peak_requested_bytes = 765,
                                      .largest_free_bytes = 512};
    return p;
}

static void must_offend(const puppet *p, const char *word)
{
    hr_err err = {0};
    ck_assert_int_eq(allocator_check(&p->base, &err), HR_CHECK);
    ck_assert_msg(strstr(err.sentence, word) != NULL, "'%s' does not say '%s'", err.sentence, word);
}

START_TEST(a_sound_heap_passes)
{
    puppet p = sound();
    ck_assert_int_eq(allocator_check(&p.base, NULL), HR_OK);
    p = (puppet){.base.ops = &puppet_ops};
    ck_assert_int_eq(allocator_check(&p.base, NULL), HR_OK);
}
END_TEST

START_TEST(tiling_is_checked)
{
    puppet p = sound();
    p.chunk[1].address += 256; // a gap
    must_offend(&p, "needed to begin at");
    p = sound();
    p.chunk[2].address -= 256; // an overlap
    must_offend(&p, "needed to begin at");
    p = sound();
    p.chunk[2].size_bytes += 256;
    must_offend(&p, "behind its region");
    p = sound();
    p.chunk[2].size_bytes -= 1;
    must_offend(&p, "belong to no chunk");
    p = sound();
    p.chunk[4].size_bytes -= 1;
    must_offend(&p, "belong to no chunk");
    p = sound();
    p.chunk[0].size_bytes = 0;
    must_offend(&p, "has a size of 0");
}
END_TEST

START_TEST(regions_are_in_order_and_apart)
{
    puppet p = sound();
    p.chunk[3] = unused(1900, 512, 1900, 256);
    p.chunk[4] = used(1900, 512, 2156, 256);
    must_offend(&p, "begins before");
}
END_TEST

START_TEST(free_neighbours_are_found)
{
    puppet p = sound();
    p.chunk[2] = unused(1000, 1024, 1768, 256);
    must_offend(&p, "as the one before it");
}
END_TEST

START_TEST(a_chunk_is_either_used_or_free)
{
    puppet p = sound();
    p.chunk[0].allocation_id = 0;
    must_offend(&p, "chunk 0");
    p = sound();
    p.chunk[0].requested_bytes = 257;
    must_offend(&p, "chunk 0");
    p = sound();
    p.chunk[1].requested_bytes = 1;
    must_offend(&p, "chunk 1");
}
END_TEST

START_TEST(counters_are_the_sums)
{
    static const struct {
        size_t offset;
        const char *word;
    } fields[] = {
        {offsetof(heap_counters, requested_bytes), "requested"},
        {offsetof(heap_counters, in_use_bytes), "in use"},
        {offsetof(heap_counters, pool_bytes), "pool"},
        {offsetof(heap_counters, largest_free_bytes), "largest free"},
        {offsetof(heap_counters, peak_in_use_bytes), "peak"},
        {offsetof(heap_counters, peak_pool_bytes), "peak"},
        {offsetof(heap_counters, peak_requested_bytes), "peak"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        puppet p = sound();
        *(uint64_t *)(void *)((char *)&p.base.counters + fields[i].offset) -= 1;
        must_offend(&p, fields[i].word);
    }
    puppet p = sound();
    p.base.counters.limit_bytes = 1024;
    must_offend(&p, "pool beyond limit");
}
END_TEST

START_TEST(an_expandable_pool_passes_its_limit_by_less_than_a_region)
{
    puppet p = sound();
    p.chunk[3].region_kind = p.chunk[4].region_kind = HEAP_REGION_EXPANDABLE; // of 512 bytes
    p.base.counters.limit_bytes = 1536 - 511;
    ck_assert_int_eq(allocator_check(&p.base, NULL), HR_OK);
    p.base.counters.limit_bytes = 1536 - 512;
    must_offend(&p, "pool beyond limit");
}
END_TEST

static Suite *check_suite(void)
{
    Suite *suite = suite_create("heap checker");
    TCase *offences = tcase_create("offences");
    tcase_add_test(offences, a_sound_heap_passes);
    tcase_add_test(offences, tiling_is_checked);
    tcase_add_test(offences, regions_are_in_order_and_apart);
    tcase_add_test(offences, free_neighbours_are_found);
    tcase_add_test(offences, a_chunk_is_either_used_or_free);
    tcase_add_test(offences, counters_are_the_sums);
    tcase_add_test(offences, an_expandable_pool_passes_its_limit_by_less_than_a_region);
    suite_add_tcase(suite, offences);
    return suite;
}

TEST_MAIN(check_suite())
