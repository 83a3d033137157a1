// SPDX-License-Identifier: Apache-2.0
// The dump against TensorFlow's own: the heap that tests/bench/peers/tensorflow_bfc.cc makes, refused the same request,
// gives golden_dump.txt line for line.
#include "base/file.h"
#include "base/host_mem.h"
#include "formats/formats.h"
#include "formats/tensorflow_dump.h"
#include "heap.h"
#include "memory/heap_snapshot.h"

enum { BLOCKS = 40, GOLDEN_MAX_BYTES = 1 << 20 };

static const uint64_t sizes[] = {1, 300, 5000, 70000, 1 << 20, 3 << 20, 5000000, 256, 1500, 700};

static uint64_t take(void *context, uint64_t bytes)
{
    uint64_t *next = context, address = *next;
    *next += bytes;
    return address;
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    (void)context, (void)address, (void)bytes;
}

static void make_heap(heap *h)
{
    uint64_t blocks[BLOCKS];
    for (uint32_t k = 0; k < BLOCKS; k++) {
        blocks[k] = heap_alloc(h, sizes[k % 10] + k);
    }
    for (uint32_t k = 0; k < BLOCKS; k += 3) {
        heap_free(h, blocks[k]);
    }
    (void)heap_alloc(h, 2500000);
    ck_assert(heap_refuses(h, 60 * HR_MIB));
}

// The next line of a text, which it is cut from.
static char *next_line(char **rest)
{
    char *line = *rest, *end = line == NULL ? NULL : strchr(line, '\n');
    *rest = end == NULL ? NULL : end + 1;
    if (end != NULL) {
        *end = '\0';
    }
    return line;
}

START_TEST(is_tensorflows_own_line_for_line)
{
    uint64_t next = UINT64_C(1) << 40;
    backing source = {.context = &next,
                      .granularity_bytes = 256,
                      .alignment_bytes = 256,
                      .take = take,
                      .give_back = give_back};
    allocator_config config = allocator_config_of("bfc", 64 * HR_MIB);
    config.growth = true;
    heap h = heap_over(&config, source, NULL);
    make_heap(&h);
    heap_snapshot snapshot;
    text dump = {0};
    ck_assert_int_eq(heap_snapshot_of(h.allocator, &snapshot, NULL), HR_OK);
    tensorflow_dump(&snapshot,
                    &(tensorflow_dump_options){.version = TENSORFLOW_2_21, .allocator = "GPU_0_bfc"}, &dump);
    char *golden = NULL;
    size_t bytes = 0;
    ck_assert_int_eq(file_read("tests/memory/golden_dump.txt", GOLDEN_MAX_BYTES, &golden, &bytes, NULL),
                     HR_OK);
    char *ours = dump.data, *theirs = golden;
    for (uint32_t line = 1; theirs != NULL && *theirs != '\0'; line++) {
        const char *our_line = next_line(&ours), *their_line = next_line(&theirs);
        ck_assert_msg(our_line != NULL && strcmp(our_line, their_line) == 0, "line %u: |%s| is not |%s|",
                      line, our_line == NULL ? "" : our_line, their_line);
    }
    ck_assert_msg(ours == NULL || *ours == '\0', "a line more: |%s|", ours);
    hr_free(golden);
    text_deinit(&dump);
    heap_snapshot_deinit(&snapshot);
    heap_close(&h);
}
END_TEST

// All but the requested bytes of each chunk.
START_TEST(is_read_back)
{
    uint64_t next = UINT64_C(1) << 40;
    backing source = {.context = &next,
                      .granularity_bytes = 256,
                      .alignment_bytes = 256,
                      .take = take,
                      .give_back = give_back};
    allocator_config config = allocator_config_of("bfc", 64 * HR_MIB);
    config.growth = true;
    heap h = heap_over(&config, source, NULL);
    make_heap(&h);
    heap_snapshot snapshot;
    trace log;
    ck_assert_int_eq(heap_snapshot_of(h.allocator, &snapshot, NULL), HR_OK);
    ck_assert_int_eq(trace_read("tests/memory/golden_dump.txt", &log, NULL), HR_OK);
    const heap_snapshot *read = log.heaps[0];
    ck_assert_ptr_nonnull(read);
    ck_assert_str_eq(read->source, "GPU_0_bfc");
    ck_assert_uint_eq(read->chunks.count, snapshot.chunks.count);
    for (uint32_t k = 0; k < read->chunks.count; k++) {
        const heap_chunk *a = &snapshot.chunks.data[k], *b = &read->chunks.data[k];
        ck_assert_uint_eq(a->address, b->address);
        ck_assert_uint_eq(a->size_bytes, b->size_bytes);
        ck_assert_uint_eq(a->region_bytes, b->region_bytes);
        ck_assert_int_eq(a->in_use, b->in_use);
    }
    ck_assert_uint_eq(read->refusal.requested_bytes, 60 * HR_MIB);
    ck_assert_uint_eq(read->counters.limit_bytes, 64 * HR_MIB);
    ck_assert_uint_eq(read->counters.pool_bytes, snapshot.counters.pool_bytes);
    ck_assert_uint_eq(read->counters.in_use_bytes, snapshot.counters.in_use_bytes);
    ck_assert_uint_eq(read->counters.allocations, snapshot.counters.allocations);
    ck_assert_uint_eq(read->next_region_bytes, snapshot.next_region_bytes);
    trace_deinit(&log);
    heap_snapshot_deinit(&snapshot);
    heap_close(&h);
}
END_TEST

static Suite *dump_suite(void)
{
    Suite *suite = suite_create("dump against TensorFlow");
    TCase *dumps = tcase_create("dump");
    tcase_add_test(dumps, is_tensorflows_own_line_for_line);
    tcase_add_test(dumps, is_read_back);
    suite_add_tcase(suite, dumps);
    return suite;
}

TEST_MAIN(dump_suite())
