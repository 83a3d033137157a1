// SPDX-License-Identifier: Apache-2.0
// What TensorFlow logs of cudaMallocAsync, to the letter.
#include <string.h>

#include "base/host_mem.h"
#include "formats/dump.h"
#include "heap.h"
#include "memory/heap_snapshot.h"

static heap full_heap(void)
{
    allocator_config config = allocator_config_of("async", 6 * HR_MIB);
    heap h = heap_open(&config);
    uint64_t gone = heap_alloc(&h, 1000);
    (void)heap_alloc(&h, HR_MIB);
    (void)heap_alloc(&h, 1000);
    (void)heap_alloc(&h, HR_MIB);
    (void)heap_alloc(&h, HR_MIB);
    heap_free(&h, gone);
    ck_assert(heap_refuses(&h, 4 * HR_MIB));
    return h;
}

static const char expected[] =
    "gpu_async_1 cuMemAllocAsync failed to allocate 4194304 bytes: CUDA error: out of memory "
    "(CUDA_ERROR_OUT_OF_MEMORY)\n"
    " Reported by CUDA: Free memory/Total memory: 3145728/8388608\n"
    "Stats: Limit:                         6291456\n"
    "InUse:                         3146728\n"
    "MaxInUse:                      3147728\n"
    "NumAllocs:                           5\n"
    "MaxAllocSize:                  1048576\n"
    "Reserved:                            0\n"
    "PeakReserved:                        0\n"
    "LargestFreeBlock:                    0\n"
    "\n"
    "Histogram of current allocation: (allocation_size_in_bytes, nb_allocation_of_that_sizes), ...;\n"
    "1000, 1\n"
    "1048576, 3\n"
    "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: 4194304\n"
    "CU_MEMPOOL_ATTR_USED_MEM_CURRENT: 3146752\n"
    "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: 4194304\n"
    "CU_MEMPOOL_ATTR_USED_MEM_HIGH: 3147776\n";

START_TEST(the_style_of_tensorflow_knows_its_async_allocator)
{
    heap h = full_heap();
    heap_snapshot p;
    text out = {0};
    ck_assert_int_eq(heap_snapshot_of(h.allocator, &p, NULL), HR_OK);
    dump_facts facts = {.device = 1, .device_bytes = 8 * HR_MIB, .outside_bytes = HR_MIB};
    dump_style_find("tensorflow")->write(&p, &facts, &out);
    ck_assert_str_eq(out.data, expected);
    text_deinit(&out);
    out = (text){0};
    facts.shape = "32,30";
    facts.type = "float";
    dump_style_find("tensorflow")->write(&p, &facts, &out);
    ck_assert_str_eq(out.data + strlen(expected),
                     "OOM when allocating tensor with shape[32,30] and type float on "
                     "/job:localhost/replica:0/task:0/device:GPU:1 by allocator gpu_async_1\n");
    text_deinit(&out);
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

START_TEST(short_host_memory_is_said)
{
    heap h = full_heap();
    heap_snapshot p;
    dump_facts facts = {.device = 1};
    ck_assert_int_eq(heap_snapshot_of(h.allocator, &p, NULL), HR_OK);
    for (uint64_t fail_at = 1; fail_at <= 4; fail_at++) {
        text out = {0};
        (void)hr_host_mem_fail_at(fail_at);
        dump_style_find("tensorflow")->write(&p, &facts, &out);
        (void)hr_host_mem_fail_at(0);
        ck_assert(out.failed || fail_at > 2);
        text_deinit(&out);
    }
    heap_snapshot_deinit(&p);
    heap_close(&h);
}
END_TEST

static Suite *async_suite(void)
{
    Suite *suite = suite_create("TensorFlow's async log");
    TCase *cases = tcase_create("dump");
    tcase_add_test(cases, the_style_of_tensorflow_knows_its_async_allocator);
    tcase_add_test(cases, short_host_memory_is_said);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(async_suite())
