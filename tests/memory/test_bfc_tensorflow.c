// SPDX-License-Identifier: Apache-2.0
// TensorFlow's and XLA's own tests of this allocator, mirrored: each has its original's name, inputs and expectations.
//   1 gpu_bfc_allocator_test.cc (tensorflow/core/common_runtime/gpu)   2 bfc_allocator_test.cc (xla/tsl/framework)
// Not mirrored: alignment beyond 256 and the 23 tests of spatial partitions, both of 2026; annotations in dumps.
#include "heap.h"
#include "memory/bfc_impl.h"

enum { BLOCKS_MAX = 4096 };

static uint64_t blocks[BLOCKS_MAX];

static heap_counters stats_of(const heap *h)
{
    return allocator_get_stats(h->allocator);
}

static void free_blocks(heap *h, uint32_t from, uint32_t until, uint32_t step)
{
    for (uint32_t i = from; i < until; i += step) {
        heap_free(h, blocks[i]);
    }
}

static void alloc_random(heap *h, uint32_t from, uint32_t count, uint64_t low, uint64_t high, uint64_t *seed)
{
    for (uint32_t i = from; i < from + count; i++) {
        blocks[i] = heap_alloc(h, random_between(seed, low, high));
    }
}

// ---- 1 TensorFlow ---------------------------------------------------------------------------------------------

START_TEST(no_dups)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 1023; i++) {
        blocks[i] = heap_alloc(&h, i + 1);
    }
    heap_must_be_sound(&h); // tiling: all are distinct
    heap_counters s = stats_of(&h);
    ck_assert_uint_eq(s.allocations, 1023);
    ck_assert_uint_eq(s.in_use_bytes, 654336);
    ck_assert_uint_eq(s.peak_in_use_bytes, 654336);
    ck_assert_uint_eq(s.largest_allocation_bytes, 1024);
    free_blocks(&h, 0, 1023, 1);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 0);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 654336);
    heap_close(&h);
}
END_TEST

START_TEST(allocations_and_deallocations)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    uint64_t seed = 17;
    alloc_random(&h, 0, 255, 100, HR_MIB, &seed);
    free_blocks(&h, 1, 255, 2);
    ck_assert(heap_refuses(&h, HR_GIB + 1));
    alloc_random(&h, 255, 255, 100, HR_MIB, &seed);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(exercise_coalescing)
{
    static const uint64_t sizes[] = {4 * HR_KIB, 8 * HR_MIB, 16 * HR_KIB, 40 * HR_MIB};
    allocator_config config = bfc_config(64 * HR_GIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 4 * HR_KIB);
    heap_free(&h, first);
    uint64_t sum_bytes = 0;
    for (uint32_t i = 0; i < 4096; i++) {
        blocks[i] = heap_alloc(&h, sizes[i % 4]);
        sum_bytes += sizes[i % 4];
    }
    free_blocks(&h, 0, 4096, 1);
    heap_counters s = stats_of(&h);
    ck_assert_uint_eq(s.allocations, 4097);
    ck_assert_uint_eq(s.in_use_bytes, 0);
    ck_assert_uint_eq(s.peak_in_use_bytes, sum_bytes);
    ck_assert_uint_eq(s.largest_allocation_bytes, 41943040);
    ck_assert_uint_eq(heap_alloc(&h, 4 * HR_KIB), first);
    heap_close(&h);
}
END_TEST

START_TEST(allocate_zero_buf_size)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    ck_assert_uint_eq(heap_alloc(&h, 0), 0);
    heap_free(&h, 0);
    ck_assert_uint_eq(stats_of(&h).allocations, 0);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 0);
    heap_close(&h);
}
END_TEST

START_TEST(allocated_vs_requested)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    ck_assert_uint_eq(heap_alloc(&h, 4) % 256, 0);
    ck_assert_uint_eq(stats_of(&h).requested_bytes, 4);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 256);
    heap_close(&h);
}
END_TEST

START_TEST(test_custom_memory_limit)
{
    allocator_config config = bfc_config(2 * HR_MIB, true);
    heap h = heap_open(&config);
    (void)heap_alloc(&h, 256);
    ck_assert(heap_refuses(&h, 8 * HR_MIB));
    ck_assert(heap_refuses(&h, UINT64_MAX));
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(allocations_and_deallocations_with_growth)
{
    allocator_config config = bfc_config(2 * HR_GIB, true);
    heap h = heap_open(&config);
    uint64_t seed = 3;
    alloc_random(&h, 0, 9, 1, 128 * HR_MIB, &seed);
    free_blocks(&h, 1, 9, 2);
    alloc_random(&h, 9, 9, 1, 64 * HR_MIB, &seed);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// What TensorFlow's get_bin_debug_info counts.
typedef struct bin_info {
    uint32_t chunks, chunks_in_use;
    uint64_t bytes, bytes_in_use, requested_bytes_in_use;
} bin_info;

static bool count_in_bin(void *context, const heap_chunk *c)
{
    bin_info *info = &((bin_info *)context)[bins_of(c->size_bytes)];
    info->chunks++;
    info->bytes += c->size_bytes;
    info->chunks_in_use += c->in_use;
    info->bytes_in_use += c->in_use ? c->size_bytes : 0;
    info->requested_bytes_in_use += c->requested_bytes;
    return true;
}

static void bin_must_be(const bin_info *info, uint32_t count, uint32_t in_use, uint64_t size)
{
    ck_assert_uint_eq(info->chunks, count);
    ck_assert_uint_eq(info->chunks_in_use, in_use);
    ck_assert_uint_eq(info->bytes, count * size);
    ck_assert_uint_eq(info->bytes_in_use, in_use * size);
    ck_assert_uint_eq(info->requested_bytes_in_use, in_use * size);
}

START_TEST(bin_debug_info)
{
    allocator_config config = bfc_config(HR_GIB, false);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 5; i++) {
        blocks[2 * i] = heap_alloc(&h, UINT64_C(256) << i);
        blocks[2 * i + 1] = heap_alloc(&h, UINT64_C(256) << i);
    }
    bin_info info[BIN_COUNT] = {0};
    h.allocator->ops->walk(h.allocator, count_in_bin, info);
    ck_assert_uint_eq(heap_look(&h).chunks, 11);
    for (uint32_t i = 0; i < BIN_COUNT - 1; i++) {
        bin_must_be(&info[i], i < 5 ? 2 : 0, i < 5 ? 2 : 0, UINT64_C(256) << i);
    }
    ck_assert_uint_eq(info[BIN_COUNT - 1].chunks, 1);
    ck_assert_uint_eq(info[BIN_COUNT - 1].chunks_in_use, 0);
    free_blocks(&h, 0, 10, 2);
    bin_info after[BIN_COUNT] = {0};
    h.allocator->ops->walk(h.allocator, count_in_bin, after);
    for (uint32_t i = 0; i < 5; i++) {
        bin_must_be(&after[i], 2, 1, UINT64_C(256) << i);
    }
    heap_close(&h);
}
END_TEST

// Their Log2FloorNonZero chooses the bin; 0 has none there, and nothing of 0 bytes comes that far.
START_TEST(log2_floor)
{
    static const struct {
        uint64_t number;
        unsigned log2;
    } cases[] = {{1, 0}, {2, 1}, {3, 1}, {1023, 9}, {1024, 10}, {1025, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_uint_eq(bins_of(cases[i].number * BIN_MIN_BYTES), cases[i].log2);
    }
}
END_TEST

static uint64_t next_region_of(bool growth)
{
    allocator_config config = bfc_config(2 * HR_GIB, growth);
    heap h = heap_open(&config);
    uint64_t bytes = h.allocator->ops->next_region(h.allocator);
    (void)heap_alloc(&h, 1);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, bytes);
    heap_close(&h);
    return bytes;
}

// TF_FORCE_GPU_ALLOW_GROWTH overrides the configuration there. A plan of ours is the same on every machine, so nothing
// here reads the environment: the four cases of the original differ only in the `growth` that comes of them.
START_TEST(force_allow_growth)
{
    ck_assert_uint_eq(next_region_of(true), 2 * HR_MIB);
    ck_assert_uint_eq(next_region_of(false), 2 * HR_GIB);
    ck_assert_int_eq(setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true", 1), 0);
    ck_assert_uint_eq(next_region_of(false), 2 * HR_GIB);
    ck_assert_int_eq(setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false", 1), 0);
    ck_assert_uint_eq(next_region_of(true), 2 * HR_MIB);
    ck_assert_int_eq(unsetenv("TF_FORCE_GPU_ALLOW_GROWTH"), 0);
}
END_TEST

static heap with_128_blocks(uint64_t limit_bytes, scripted *script, bool coalesces)
{
    allocator_config config = bfc_config(limit_bytes, true);
    heap h = heap_over(&config, scripted_backing(script, coalesces), NULL);
    for (uint32_t i = 0; i < 128; i++) {
        blocks[i] = heap_alloc(&h, 4 * HR_MIB);
    }
    free_blocks(&h, 0, 127, 1);
    return h;
}

START_TEST(physical_allocator_ooms_fragmentation)
{
    scripted physical = {0};
    heap h = with_128_blocks(512 * HR_MIB, &physical, false);
    ck_assert(heap_refuses(&h, 508 * HR_MIB));
    ck_assert_uint_eq(physical.gives, 0); // in vain, so no region went back
    heap_close(&h);
}
END_TEST

START_TEST(virtual_allocator_promotes_reuse)
{
    scripted virtual = {0};
    heap h = with_128_blocks(512 * HR_MIB, &virtual, true);
    ck_assert(!heap_refuses(&h, 508 * HR_MIB));
    heap_must_be_sound(&h);
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    heap_close(&h);
    ck_assert_uint_eq(virtual.held_bytes, 0);
}
END_TEST

START_TEST(test_region_deallocation)
{
    scripted script = {0};
    heap h = with_128_blocks(2 * HR_GIB, &script, false);
    ck_assert_uint_gt(heap_look(&h).regions, 1);
    ck_assert(bfc_collect(bfc_of(h.allocator), 0));
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    ck_assert_uint_eq(heap_look(&h).free_chunks, 1);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(test_no_region_deallocation)
{
    scripted script = {0};
    heap h = with_128_blocks(2 * HR_GIB, &script, true);
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    ck_assert(!bfc_collect(bfc_of(h.allocator), 0));
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    heap_close(&h);
}
END_TEST

// ---- 2 XLA ----------------------------------------------------------------------------------------------------

START_TEST(allocate_and_free)
{
    scripted script = {0};
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    uint64_t address = heap_alloc(&h, 1024);
    ck_assert_uint_eq(address, UINT64_C(1) << 40);
    heap_free(&h, address);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 0);
    heap_close(&h);
}
END_TEST

START_TEST(default_alignment)
{
    scripted script = {0};
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(heap_alloc(&h, 1) % 64, 0);
    }
    heap_close(&h);
}
END_TEST

START_TEST(extend_terminates_when_sub_allocator_always_fails)
{
    scripted script = {.fail_at = 1, .always_refuses = true};
    allocator_config config = bfc_config(2048, false);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    ck_assert(heap_refuses(&h, 1));
    ck_assert_uint_le(script.takes, 1000);
    ck_assert_uint_eq(script.last_bytes, 256);
    ck_assert_uint_eq(h.allocator->refusal.driver_bytes, 256);
    ck_assert_uint_eq(h.allocator->refusal.rounded_bytes, 256);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(stress_alloc_free)
{
    allocator_config config = bfc_config(16 * HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t seed = 42;
    for (uint32_t round = 0; round < 20; round++) {
        alloc_random(&h, 0, 350, 1, 16 * HR_KIB, &seed);
        heap_must_be_sound(&h);
        for (uint32_t i = 350; i > 0; i--) {
            uint64_t at = random_between(&seed, 0, i - 1), freed = blocks[at];
            blocks[at] = blocks[i - 1];
            heap_free(&h, freed);
        }
        ck_assert_uint_eq(heap_look(&h).chunks, 1);
    }
    heap_close(&h);
}
END_TEST

START_TEST(get_and_clear_memory_stats)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 1024);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 1024);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 1024);
    uint64_t second = heap_alloc(&h, 2048);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 3072);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 3072);
    heap_free(&h, second);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 1024);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 3072);
    allocator_clear_peaks(h.allocator);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 1024);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 1024);
    ck_assert_uint_eq(stats_of(&h).allocations, 0);
    ck_assert_uint_eq(stats_of(&h).largest_allocation_bytes, 0);
    heap_free(&h, first);
    heap_close(&h);
}
END_TEST

static Suite *tensorflow_suite(void)
{
    Suite *suite = suite_create("bfc as tensorflow tests it");
    TCase *gpu = tcase_create("gpu_bfc_allocator_test");
    tcase_add_test(gpu, no_dups);
    tcase_add_test(gpu, allocations_and_deallocations);
    tcase_add_test(gpu, exercise_coalescing);
    tcase_add_test(gpu, allocate_zero_buf_size);
    tcase_add_test(gpu, allocated_vs_requested);
    tcase_add_test(gpu, test_custom_memory_limit);
    tcase_add_test(gpu, allocations_and_deallocations_with_growth);
    tcase_add_test(gpu, bin_debug_info);
    tcase_add_test(gpu, log2_floor);
    tcase_add_test(gpu, force_allow_growth);
    tcase_add_test(gpu, physical_allocator_ooms_fragmentation);
    tcase_add_test(gpu, virtual_allocator_promotes_reuse);
    tcase_add_test(gpu, test_region_deallocation);
    tcase_add_test(gpu, test_no_region_deallocation);
    suite_add_tcase(suite, gpu);
    TCase *xla = tcase_create("bfc_allocator_test");
    tcase_add_test(xla, allocate_and_free);
    tcase_add_test(xla, default_alignment);
    tcase_add_test(xla, extend_terminates_when_sub_allocator_always_fails);
    tcase_add_test(xla, stress_alloc_free);
    tcase_add_test(xla, get_and_clear_memory_stats);
    suite_add_tcase(suite, xla);
    return suite;
}

TEST_MAIN(tensorflow_suite())
