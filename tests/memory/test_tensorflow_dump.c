// SPDX-License-Identifier: Apache-2.0
// TensorFlow's dump of a heap: its lines to the letter, in each of its versions, and its map against one that is
// painted byte by byte. Figures with a date are from logs that people published.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/dump.h"
#include "formats/tensorflow_bytes.h"
#include "formats/tensorflow_dump.h"
#include "formats/tensorflow_log.h"
#include "formats/tensorflow_map.h"
#include "heap.h"
#include "memory/bfc.h"
#include "memory/heap_snapshot.h"

#define MUST_SAY(whole, part) ck_assert_msg(strstr(whole, part) != NULL, "no '%s' in\n%s", part, whole)

static heap_snapshot snapshot_of(const heap *h)
{
    heap_snapshot p;
    ck_assert_int_eq(heap_snapshot_of(h->allocator, &p, NULL), HR_OK);
    return p;
}

// Two regions, 2 MiB and 4 MiB: 1000 B and 600 B in the first with a hole of 768 B between, 3 MiB in the second; then
// 5000 B cannot be had of a limit that both have used up.
static heap small_heap(void)
{
    allocator_config config = bfc_config(6 * HR_MIB, true);
    scripted script = {0};
    static scripted kept;
    kept = script;
    heap h = heap_over(&config, scripted_backing(&kept, false), NULL);
    (void)heap_alloc(&h, 1000);
    uint64_t hole = heap_alloc(&h, 700);
    (void)heap_alloc(&h, 600);
    (void)heap_alloc(&h, 2 * HR_MIB - 1024 - 768 - 768);
    (void)heap_alloc(&h, 3 * HR_MIB);
    heap_free(&h, hole);
    ck_assert(heap_refuses(&h, 5000));
    return h;
}

static const char empty_bin[] =
    "Total Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use in bin. 0B "
    "client-requested in use in bin.\n";

// The part that all versions have in common.
static void expect_bins(text *expected)
{
    for (unsigned i = 0; i < 21; i++) {
        const char *sums =
            i == 1    ? "Total Chunks: 2, Chunks in use: 1. 1.5KiB allocated for chunks. 768B in use in bin. "
                        "600B client-requested in use in bin.\n"
            : i == 2  ? "Total Chunks: 1, Chunks in use: 1. 1.0KiB allocated for chunks. 1.0KiB in use in "
                        "bin. 1000B client-requested in use in bin.\n"
            : i == 12 ? "Total Chunks: 1, Chunks in use: 1. 2.00MiB allocated for chunks. 2.00MiB in use in "
                        "bin. 2.00MiB client-requested in use in bin.\n"
            : i == 14 ? "Total Chunks: 1, Chunks in use: 1. 4.00MiB allocated for chunks. 4.00MiB in use in "
                        "bin. 3.00MiB client-requested in use in bin.\n"
                      : empty_bin;
        text_append(expected, "Bin (%d): \t%s", 256 << i, sums);
    }
    text_append(expected, "Bin for 5.0KiB was 4.0KiB, Chunk State: \n");
}

static void expect_sizes(text *expected)
{
    text_append(expected, "     Summary of in-use Chunks by size: \n"
                          "1 Chunks of size 768 totalling 768B\n"
                          "1 Chunks of size 1024 totalling 1.0KiB\n"
                          "1 Chunks of size 2094592 totalling 2.00MiB\n"
                          "1 Chunks of size 4194304 totalling 4.00MiB\n"
                          "Sum Total of in-use chunks: 6.00MiB\n");
}

static const char map_of_small[] = "**************************************************"
                                   "**********************************xxxxxxxxxxxxxxxx\n";

static const char tensor_of_small[] = "OOM when allocating tensor with shape[50,25] and type float on "
                                      "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n";

// ck_assert_str_eq cannot say texts of this length.
static void must_be(const char *said, const char *expected)
{
    size_t line = 0, same = 0;
    for (; said[same] != '\0' && said[same] == expected[same]; same++) {
        line = said[same] == '\n' ? same + 1 : line;
    }
    ck_assert_msg(said[same] == expected[same], "says\n%.200s\ninstead of\n%.200s", said + line,
                  expected + line);
}

static void must_dump(tensorflow_version version, text *expected)
{
    heap h = small_heap();
    heap_snapshot p = snapshot_of(&h);
    text said = {0};
    tensorflow_dump_options o = {.version = version,
                                 .allocator = "GPU_0_bfc",
                                 .op = "conv1/Conv2D",
                                 .shape = "50,25",
                                 .type = "float",
                                 .growth = true};
    tensorflow_dump(&p, &o, &said);
    ck_assert(!said.failed && !expected->failed);
    must_be(said.data, expected->data);
    text_deinit(&said);
    text_deinit(expected);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}

START_TEST(the_dump_of_2_13)
{
    text e = {0};
    text_append(
        &e,
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.9KiB (rounded to 5120)requested by op "
        "conv1/Conv2D\nIf the cause is memory fragmentation maybe the environment variable "
        "'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \n"
        "Current allocation summary follows.\nCurrent allocation summary follows.\n"
        "BFCAllocator dump for GPU_0_bfc\n");
    expect_bins(&e);
    text_append(&e, "Next region of size 2097152\n"
                    "InUse at 10000000000 of size 1024 next 1\n"
                    "Free  at 10000000400 of size 768 next 2\n"
                    "InUse at 10000000700 of size 768 next 3\n"
                    "InUse at 10000000a00 of size 2094592 next 18446744073709551615\n"
                    "Next region of size 4194304\n"
                    "InUse at 10000200000 of size 4194304 next 18446744073709551615\n");
    expect_sizes(&e);
    text_append(&e,
                "Total bytes in pool: 6291456 memory_limit_: 6291456 available bytes: 0 "
                "curr_region_allocation_bytes_: 8388608\n"
                "Stats: \n"
                "Limit:                         6291456\n"
                "InUse:                         6290688\n"
                "MaxInUse:                      6291456\n"
                "NumAllocs:                           5\n"
                "MaxAllocSize:                  4194304\n"
                "Reserved:                            0\n"
                "PeakReserved:                        0\n"
                "LargestFreeBlock:                    0\n"
                "\n%s%s",
                map_of_small, tensor_of_small);
    must_dump(TENSORFLOW_2_13, &e);
}
END_TEST

START_TEST(the_dump_of_2_2)
{
    text e = {0};
    text_append(
        &e, "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.9KiB (rounded to 5120).  Current "
            "allocation summary follows.\n");
    expect_bins(&e);
    text_append(&e, "Next region of size 2097152\n"
                    "InUse at 0x10000000000 next 1 of size 1024\n"
                    "Free  at 0x10000000400 next 2 of size 768\n"
                    "InUse at 0x10000000700 next 3 of size 768\n"
                    "InUse at 0x10000000a00 next 18446744073709551615 of size 2094592\n"
                    "Next region of size 4194304\n"
                    "InUse at 0x10000200000 next 18446744073709551615 of size 4194304\n");
    expect_sizes(&e);
    text_append(&e,
                "total_region_allocated_bytes_: 6291456 memory_limit_: 6291456 available bytes: 0 "
                "curr_region_allocation_bytes_: 8388608\n"
                "Stats: \n"
                "Limit:                         6291456\n"
                "InUse:                         6290688\n"
                "MaxInUse:                      6291456\n"
                "NumAllocs:                           5\n"
                "MaxAllocSize:                  4194304\n"
                "\n%s%s",
                map_of_small, tensor_of_small);
    must_dump(TENSORFLOW_2_2, &e);
}
END_TEST

START_TEST(the_dump_of_2026)
{
    text e = {0};
    text_append(
        &e,
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.9KiB (rounded to 5120) from the lower "
        "end "
        "requested by op conv1/Conv2D\nIf this is caused by memory fragmentation, the environment variable "
        "'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation.\n"
        "Current allocation summary follows.\n"
        "BFCAllocator dump for GPU_0_bfc\n");
    expect_bins(&e);
    text_append(&e, "Next region of size 2097152\n"
                    "InUse at 10000000000 of size 1024 tag lower next 1\n"
                    "Free  at 10000000400 of size 768 tag lower next 2\n"
                    "InUse at 10000000700 of size 768 tag lower next 3\n"
                    "InUse at 10000000a00 of size 2094592 tag lower next 18446744073709551615\n"
                    "Next region of size 4194304\n"
                    "InUse at 10000200000 of size 4194304 tag lower next 18446744073709551615\n");
    expect_sizes(&e);
    text_append(&e,
                "Allocator memory summary: rounded request 5.0KiB, total free in pool 768B, largest free "
                "chunk usable "
                "by lower end 768B, unallocated bytes 0B, pool size 6.00MiB, pool limit 6.00MiB\n"
                "Allocator region growth hint: next region allocation target 8.00MiB (growth enabled).\n"
                "Stats: \n"
                "Limit:                         6.00MiB\n"
                "InUse:                         6.00MiB\n"
                "MaxInUse:                      6.00MiB\n"
                "NumAllocs:                           5\n"
                "MaxAllocSize:                  4.00MiB\n"
                "Reserved:                           0B\n"
                "PeakReserved:                       0B\n"
                "LargestFreeBlock:                 768B\n"
                "\n%s%s",
                map_of_small, tensor_of_small);
    must_dump(TENSORFLOW_2026, &e);
}
END_TEST

START_TEST(bytes_are_cut_as_tensorflow_cuts_them)
{
    static const struct {
        uint64_t bytes;
        const char *words;
    } cases[] = {
        {0, "0B"},
        {1023, "1023B"},
        {1024, "1.0KiB"},
        {115200, "112.5KiB"},     // 2020-06-23
        {589212672, "561.92MiB"}, // 2023-10-02
        {614400000, "585.94MiB"}, // 2023-10-02
        {UINT64_C(13200000000), "12.29GiB"},
        {UINT64_C(26400000000), "24.59GiB"}, // 2024-07-12
        {1048575, "1024.0KiB"},              // rounded only after the last division
        {1048576, "1.00MiB"},
        {1572863, "1.50MiB"}, // 1535.999 KiB counts as 1535
        {UINT64_C(1) << 60, "1.00EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buffer[TENSORFLOW_BYTES_TEXT_MAX];
        ck_assert_str_eq(tensorflow_bytes(cases[i].bytes, buffer), cases[i].words);
    }
}
END_TEST

// 2023-10-02: the same numbers give the same lines.
START_TEST(statistics_stand_in_20_columns)
{
    heap_snapshot p = {.counters = {.in_use_bytes = 589212672,
                                    .pool_bytes = UINT64_C(3502964736),
                                    .limit_bytes = UINT64_C(3502964736),
                                    .peak_in_use_bytes = UINT64_C(3288551168),
                                    .largest_allocation_bytes = 1228800000,
                                    .allocations = 469363},
                       .next_region_bytes = UINT64_C(7005929472),
                       .refusal = {.any = true, .requested_bytes = 614400000}};
    text said = {0};
    tensorflow_dump(&p, &(tensorflow_dump_options){.allocator = "GPU_0_bfc", .op = "_EagerConst"}, &said);
    MUST_SAY(said.data, "Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.94MiB (rounded to "
                        "614400000)requested by op _EagerConst\n");
    MUST_SAY(said.data, "Bin for 585.94MiB was 256.00MiB, Chunk State: \n");
    MUST_SAY(said.data, "Total bytes in pool: 3502964736 memory_limit_: 3502964736 available bytes: 0 "
                        "curr_region_allocation_bytes_: 7005929472\n"
                        "Stats: \n"
                        "Limit:                      3502964736\n"
                        "InUse:                       589212672\n"
                        "MaxInUse:                   3288551168\n"
                        "NumAllocs:                      469363\n"
                        "MaxAllocSize:               1228800000\n"
                        "Reserved:                            0\n"
                        "PeakReserved:                        0\n"
                        "LargestFreeBlock:                    0\n"
                        "\n<allocator contains no memory>\n");
    text_deinit(&said);
}
END_TEST

// 2020-06-23, 2023-10-02 and 2024-07-12.
START_TEST(with_a_time_every_line_has_its_prefix)
{
    heap h = small_heap();
    heap_snapshot p = snapshot_of(&h);
    text said = {0};
    tensorflow_dump_options o = {
        .time = "2023-10-02 16:36:14.402881", .shape = "32,256,62,62", .type = "float"};
    o.kernel = "conv_ops_fused_impl.h:568";
    tensorflow_dump(&p, &o, &said);
    MUST_SAY(
        said.data,
        "2023-10-02 16:36:14.402881: W tensorflow/tsl/framework/bfc_allocator.cc:485] Allocator (bfc) ran ");
    MUST_SAY(
        said.data,
        "2023-10-02 16:36:14.402881: I tensorflow/tsl/framework/bfc_allocator.cc:1095] InUse at 1000000");
    MUST_SAY(said.data, "2023-10-02 16:36:14.402881: W tensorflow/tsl/framework/bfc_allocator.cc:497] ****");
    MUST_SAY(
        said.data,
        "op_kernel.cc:1828] OP_REQUIRES failed at conv_ops_fused_impl.h:568 : RESOURCE_EXHAUSTED: OOM when "
        "allocating tensor with shape[32,256,62,62] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator bfc\n");
    said.length = 0;
    o = (tensorflow_dump_options){.version = TENSORFLOW_2_2, .time = "2020-06-23 19:38:17.893582"};
    tensorflow_dump(&p, &o, &said);
    MUST_SAY(said.data,
             "2020-06-23 19:38:17.893582: W tensorflow/core/common_runtime/bfc_allocator.cc:419] Allocator");
    MUST_SAY(said.data, "tensorflow/core/common_runtime/bfc_allocator.cc:905] InUse at 0x");
    text_deinit(&said);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

START_TEST(the_bin_that_should_have_served_shows_its_free_chunks_with_their_neighbours)
{
    allocator_config config = bfc_config(64 * HR_KIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 1024), between = heap_alloc(&h, 300), second = heap_alloc(&h, 1280);
    (void)heap_alloc(&h, 64 * HR_KIB - 1024 - 512 - 1280);
    heap_free(&h, second);
    heap_free(&h, first);
    (void)between;
    ck_assert(heap_refuses(&h, 1500));
    heap_snapshot p = snapshot_of(&h);
    text said = {0};
    tensorflow_dump(&p, &(tensorflow_dump_options){0}, &said);
    MUST_SAY(
        said.data,
        "Bin for 1.5KiB was 1.0KiB, Chunk State: \n"
        "  Size: 1.0KiB | Requested Size: 0B | in_use: 0 | bin_num: 2, next:   Size: 512B | Requested Size: "
        "300B | "
        "in_use: 1 | bin_num: -1\n"
        "  Size: 1.2KiB | Requested Size: 0B | in_use: 0 | bin_num: 2, prev:   Size: 512B | Requested Size: "
        "300B | "
        "in_use: 1 | bin_num: -1, next:   Size: 61.2KiB | Requested Size: 61.2KiB | in_use: 1 | bin_num: -1\n"
        "Next region of size 65536\n");
    text_deinit(&said);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

START_TEST(timestamps_and_names_stand_where_debug_builds_have_them)
{
    allocator_config config = bfc_config(4 * HR_KIB, false);
    config.timestamped = true;
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 1024);
    (void)heap_alloc(&h, 3072);
    heap_free(&h, first);
    heap_snapshot p = snapshot_of(&h);
    uint32_t name = intern_add(&p.names, "conv1/Relu", 10);
    p.chunks.data[1].tensor = name;
    text said = {0};
    tensorflow_dump(&p, &(tensorflow_dump_options){.timestamped = true, .by_op = true}, &said);
    MUST_SAY(said.data, "of size 1024 by op UNUSED action_count 0 step 0 next 1 freed_at_count 1\n");
    MUST_SAY(
        said.data,
        "of size 3072 by op conv1/Relu action_count 2 step 0 next 18446744073709551615 freed_at_count 0\n");
    text_deinit(&said);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

// ---- the map --------------------------------------------------------------------------------------------------

enum { PAINTED_MAX = 1 << 17, PAINTED_HEAPS = 60 };

// Every byte for itself, in the order of painting.
static void paint_bytes(const heap_snapshot *p, char map[TENSORFLOW_MAP_COLUMNS + 1])
{
    uint64_t total = p->counters.pool_bytes, before = 0;
    MUST(total < PAINTED_MAX);
    memset(map, '_', TENSORFLOW_MAP_COLUMNS);
    map[TENSORFLOW_MAP_COLUMNS] = '\0';
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        for (uint64_t i = c->requested_bytes; c->in_use && i < c->size_bytes; i++) {
            map[100 * (before + i) / total] = 'x';
        }
        for (uint64_t i = 0; c->in_use && i < c->requested_bytes; i++) {
            map[100 * (before + i) / total] = '*';
        }
        before += c->size_bytes; // chunks tile regions, and regions follow each other in the map
    }
}

static heap random_heap(uint64_t *seed, uint32_t requests, uint64_t limit_bytes, bool growth)
{
    uint64_t live[64];
    uint32_t count = 0;
    allocator_config config = bfc_config(limit_bytes, growth);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < requests; i++) {
        if (count == 64 || (count > 0 && random_between(seed, 0, 2) == 0)) {
            uint64_t at = random_between(seed, 0, count - 1);
            heap_free(&h, live[at]);
            live[at] = live[--count];
        } else {
            uint64_t address = 0;
            uint64_t bytes = random_between(seed, 1, limit_bytes >> random_between(seed, 2, 8));
            if (allocator_alloc(h.allocator, bytes, i, &address, NULL) == HR_OK) {
                live[count++] = address;
            }
        }
    }
    return h;
}

START_TEST(the_map_is_painted_byte_by_byte)
{
    uint64_t seed = 11;
    for (int i = 0; i < PAINTED_HEAPS; i++) {
        char map[TENSORFLOW_MAP_COLUMNS + 1], bytes[TENSORFLOW_MAP_COLUMNS + 1];
        heap h = random_heap(&seed, 100, random_between(&seed, 1000, 100000), false);
        heap_snapshot p = snapshot_of(&h);
        if (p.chunks.count > 0) {
            ck_assert(tensorflow_map(&p, map));
            paint_bytes(&p, bytes);
            ck_assert_str_eq(map, bytes);
        }
        heap_snapshot_deinit(&p);
        heap_close(&h);
    }
}
END_TEST

START_TEST(a_map_of_impossible_sizes_stays_within_its_columns)
{
    heap_snapshot p = {0};
    char map[TENSORFLOW_MAP_COLUMNS + 1];
    heap_chunk *c = vec_push(&p.chunks);
    MUST(c != NULL);
    *c = (heap_chunk){.address = UINT64_MAX - 10,
                      .size_bytes = UINT64_MAX,
                      .requested_bytes = UINT64_MAX,
                      .region_address = 1,
                      .region_bytes = UINT64_MAX,
                      .in_use = true};
    ck_assert(tensorflow_map(&p, map)); // what lies outside its region is not painted
    ck_assert_uint_eq(strspn(map, "_"), TENSORFLOW_MAP_COLUMNS);
    c->address = 1;
    ck_assert(tensorflow_map(&p, map));
    ck_assert_uint_eq(strspn(map, "*"), TENSORFLOW_MAP_COLUMNS);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- read back ------------------------------------------------------------------------------------------------

enum { READ_BACK_HEAPS = 40 };

static void chunk_must_be(const heap_chunk *read, const heap_chunk *was, bool first)
{
    MUST(read->address == was->address && read->size_bytes == was->size_bytes);
    MUST(read->region_address == was->region_address && read->region_bytes == was->region_bytes);
    MUST(read->in_use == was->in_use);
    MUST(read->requested_bytes == (was->in_use ? was->size_bytes : 0)); // a log does not say it
    MUST(first || read->handle == was->handle);
}

static void snapshot_must_be(const heap_snapshot *read, const heap_snapshot *was, bool exact)
{
    const heap_counters *r = &read->counters, *w = &was->counters;
    ck_assert_str_eq(read->source, "GPU_0_bfc");
    ck_assert_uint_eq(read->chunks.count, was->chunks.count);
    for (uint32_t k = 0; k < was->chunks.count; k++) {
        const heap_chunk *c = &was->chunks.data[k];
        chunk_must_be(&read->chunks.data[k], c, k == 0 || c->region_address != (c - 1)->region_address);
    }
    ck_assert_uint_eq(r->in_use_bytes, w->in_use_bytes);
    ck_assert_uint_eq(r->pool_bytes, w->pool_bytes);
    ck_assert_uint_eq(r->largest_free_bytes, w->largest_free_bytes);
    ck_assert_uint_eq(r->allocations, w->allocations);
    ck_assert_uint_eq(read->refusal.rounded_bytes, was->refusal.rounded_bytes);
    if (exact) { // from 2.20 on these are printed for people
        ck_assert_uint_eq(r->limit_bytes, w->limit_bytes);
        ck_assert_uint_eq(r->peak_in_use_bytes, w->peak_in_use_bytes);
        ck_assert_uint_eq(r->largest_allocation_bytes, w->largest_allocation_bytes);
        ck_assert_uint_eq(read->next_region_bytes, was->next_region_bytes);
    }
}

static void must_read_back(const heap_snapshot *p, tensorflow_version version, const char *time)
{
    text said = {0};
    trace t = {0};
    input in;
    hr_err err;
    tensorflow_dump(
        p,
        &(tensorflow_dump_options){.version = version, .allocator = "GPU_0_bfc", .op = "a/b", .time = time},
        &said);
    ck_assert(!said.failed);
    input_of_memory(&in, "a dump of ours", said.data, said.length);
    hr_status status = trace_format_tensorflow.read(&in, &t, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_ptr_nonnull(t.heaps[0]);
    snapshot_must_be(t.heaps[0], p, version != TENSORFLOW_2_21 && version != TENSORFLOW_2026);
    input_close(&in);
    trace_deinit(&t);
    text_deinit(&said);
}

START_TEST(what_is_dumped_can_be_read_back)
{
    uint64_t seed = 23 + (uint64_t)_i;
    for (int i = 0; i < READ_BACK_HEAPS; i++) {
        heap h = random_heap(&seed, 150, random_between(&seed, 100000, 100 * HR_MIB), i % 2 == 0);
        ck_assert(heap_refuses(&h, 100 * HR_MIB));
        heap_snapshot p = snapshot_of(&h);
        if (p.chunks.count > 0) {
            must_read_back(&p, (tensorflow_version)_i, i % 3 == 0 ? "2026-11-21 17:07:13.000042" : NULL);
        }
        heap_snapshot_deinit(&p);
        heap_close(&h);
    }
}
END_TEST

// ---- the table ------------------------------------------------------------------------------------------------

START_TEST(the_style_names_the_allocator_by_its_card)
{
    heap h = small_heap();
    heap_snapshot p = snapshot_of(&h);
    text said = {0};
    ck_assert_ptr_null(dump_style_find("jax"));
    const dump_style *style = dump_style_find("tensorflow");
    ck_assert_ptr_nonnull(style);
    style->write(&p, &(dump_facts){.op = "conv1", .shape = "7", .type = "float", .device = 3}, &said);
    MUST_SAY(said.data, "Allocator (GPU_3_bfc) ran out of memory");
    MUST_SAY(said.data, "requested by op conv1\n");
    MUST_SAY(said.data, "on /job:localhost/replica:0/task:0/device:GPU:3 by allocator GPU_3_bfc\n");
    text_deinit(&said);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

START_TEST(pytorch_is_told_what_the_card_has_left)
{
    heap h = small_heap();
    heap_snapshot p = snapshot_of(&h);
    text said = {0};
    const dump_style *style = dump_style_find("pytorch");
    ck_assert_ptr_nonnull(style);
    style->write(&p, &(dump_facts){.device = 1, .device_bytes = 8 * HR_GIB, .outside_bytes = HR_GIB}, &said);
    MUST_SAY(said.data, "CUDA out of memory. Tried to allocate 5.00 KiB. ");
    MUST_SAY(said.data, "GPU 1 has a total capacity of 8.00 GiB of which 6.99 GiB is free.");
    MUST_SAY(said.data, "f the allocated memory 6.00 MiB is allocated by PyTorch");
    ck_assert(strstr(said.data, "allowed") == NULL);
    said.length = 0;
    style->write(&p, &(dump_facts){.limit_is_fraction = true}, &said);
    MUST_SAY(said.data, "has a total capacity of 6.00 MiB of which 0 bytes is free.");
    MUST_SAY(said.data, "6.00 MiB allowed; ");
    text_deinit(&said);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

START_TEST(a_dump_that_finds_no_host_memory_says_so)
{
    heap h = small_heap();
    heap_snapshot p = snapshot_of(&h);
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        text said = {0};
        (void)hr_host_mem_fail_at(nth);
        tensorflow_dump(&p, &(tensorflow_dump_options){0}, &said);
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(said.failed, failed_once);
        text_deinit(&said);
        ck_assert_uint_lt(nth, 100);
    }
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

static Suite *dump_suite(void)
{
    Suite *suite = suite_create("tensorflow's dump");
    TCase *lines = tcase_create("lines");
    tcase_add_test(lines, the_dump_of_2_13);
    tcase_add_test(lines, the_dump_of_2_2);
    tcase_add_test(lines, the_dump_of_2026);
    tcase_add_test(lines, bytes_are_cut_as_tensorflow_cuts_them);
    tcase_add_test(lines, statistics_stand_in_20_columns);
    tcase_add_test(lines, with_a_time_every_line_has_its_prefix);
    tcase_add_test(lines, the_bin_that_should_have_served_shows_its_free_chunks_with_their_neighbours);
    tcase_add_test(lines, timestamps_and_names_stand_where_debug_builds_have_them);
    suite_add_tcase(suite, lines);
    TCase *map = tcase_create("map");
    tcase_add_test(map, the_map_is_painted_byte_by_byte);
    tcase_add_test(map, a_map_of_impossible_sizes_stays_within_its_columns);
    suite_add_tcase(suite, map);
    TCase *back = tcase_create("read back");
    tcase_add_loop_test(back, what_is_dumped_can_be_read_back, 0, TENSORFLOW_VERSIONS);
    suite_add_tcase(suite, back);
    TCase *table = tcase_create("table");
    tcase_add_test(table, the_style_names_the_allocator_by_its_card);
    tcase_add_test(table, pytorch_is_told_what_the_card_has_left);
    tcase_add_test(table, a_dump_that_finds_no_host_memory_says_so);
    suite_add_tcase(suite, table);
    return suite;
}

TEST_MAIN(dump_suite())
