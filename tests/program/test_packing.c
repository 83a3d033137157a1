// SPDX-License-Identifier: Apache-2.0
// From a program's allocs and frees to an executor over the static allocator, on programs written out by hand.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "device/executor.h"
#include "device/packing.h"

enum { PERSISTENT = 2, TENSORS = 7, INSTRS_MAX = 16 };

static tensor tensors[TENSORS];
static instr instrs[INSTRS_MAX];
static program p;
static backing source;
static allocator *heap;
static executor *x;
static hr_err err;

static void add(hr_op op, uint32_t id)
{
    instr *i = &instrs[p.instr_count++];
    *i = (instr){.op = op, .layer = HR_NO_ID, .workspace = HR_NO_ID};
    if (op == HR_OP_ALLOC) {
        i->out[i->out_count++] = id;
    } else {
        i->in[i->in_count++] = id;
    }
}

// Weights of 256 B and 1 KiB; below 2 and 3 never meet, 4 meets both, 5 has no bytes, 6 lies in 4's storage.
static void write_program(void)
{
    static const uint64_t bytes[TENSORS] = {256, 1000, 4096, 4096, 512, 0, 512};
    static const char *const names[TENSORS] = {"w", "v", "a", "b", "c", "nothing", "view"};
    for (uint32_t k = 0; k < TENSORS; k++) {
        tensors[k] =
            (tensor){.name = names[k], .bytes = bytes[k], .storage = k, .persistent = k < PERSISTENT};
    }
    tensors[6].storage = 4;
    p = (program){
        .tensors = tensors, .instrs = instrs, .tensor_count = TENSORS, .persistent_count = PERSISTENT};
    add(HR_OP_ALLOC, 2);
    add(HR_OP_ALLOC, 4);
    add(HR_OP_ALLOC, 5);
    add(HR_OP_FREE, 2);
    add(HR_OP_ALLOC, 3);
    add(HR_OP_FREE, 4);
    add(HR_OP_FREE, 5);
    add(HR_OP_FREE, 3);
}

static void open_heap(const char *kind, uint64_t limit_bytes)
{
    allocator_config config = {.kind = kind, .limit_bytes = limit_bytes};
    ck_assert_int_eq(backing_numbers_open(limit_bytes, 256, &source, NULL), HR_OK);
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &heap, NULL), HR_OK);
    ck_assert_int_eq(executor_create(NULL, NULL, heap, NULL, &x, NULL), HR_OK);
}

static void close_heap(void)
{
    executor_destroy(x);
    allocator_destroy(heap);
    backing_close(&source);
}

static void setup(void)
{
    err = (hr_err){0};
    write_program();
}

static hr_status plan(const program *other)
{
    const program *programs[] = {&p, NULL, other};
    return executor_plan(x, programs, 3, &err);
}

START_TEST(a_step_plays_in_exactly_the_height_of_what_meets)
{
    uint32_t slot = 0;
    step_io io = {0};
    open_heap("static", HR_MIB);
    ck_assert_int_eq(plan(NULL), HR_OK);
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, 256 + 1024 + 4096 + 512);
    ck_assert_int_eq(executor_build(x, &p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(x, &p, &slot, &err), HR_OK);
    uint64_t hash = heap->ops->hash(heap);
    for (int k = 0; k < 3; k++) {
        ck_assert_msg(executor_step(x, slot, &io, &err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_eq(executor_step_peak_bytes(x), 256 + 1024 + 4096 + 512);
        ck_assert_uint_eq(heap->ops->hash(heap), hash);
        ck_assert_int_eq(allocator_check(heap, &err), HR_OK);
    }
    ck_assert_uint_eq(executor_address(x, "v"), executor_address(x, "w") + 256);
    close_heap();
}
END_TEST

START_TEST(steps_of_two_programs_share_the_region_above_the_weights)
{
    instr fewer[] = {instrs[0], instrs[3]};
    program small = p;
    small.instrs = fewer;
    small.instr_count = 2;
    uint32_t slots[2] = {0, 0};
    step_io io = {0};
    open_heap("static", HR_MIB);
    ck_assert_int_eq(plan(&small), HR_OK);
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, 256 + 1024 + 4096 + 512);
    ck_assert_int_eq(executor_build(x, &p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(x, &small, &slots[0], &err), HR_OK);
    ck_assert_int_eq(executor_attach(x, &p, &slots[1], &err), HR_OK);
    for (int k = 0; k < 4; k++) {
        ck_assert_msg(executor_step(x, slots[k % 2], &io, &err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_eq(executor_step_peak_bytes(x), k % 2 == 0 ? 5376 : 5888);
    }
    close_heap();
}
END_TEST

START_TEST(a_tensor_allocated_twice_keeps_its_place_in_between)
{
    add(HR_OP_ALLOC, 2);
    add(HR_OP_FREE, 2);
    uint32_t slot = 0;
    step_io io = {0};
    open_heap("static", HR_MIB);
    ck_assert_int_eq(plan(NULL), HR_OK);
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, 256 + 1024 + 2 * 4096 + 512);
    ck_assert_int_eq(executor_build(x, &p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(x, &p, &slot, &err), HR_OK);
    ck_assert_msg(executor_step(x, slot, &io, &err) == HR_OK, "%s", err.sentence);
    close_heap();
}
END_TEST

START_TEST(a_leak_is_refused_with_its_name)
{
    add(HR_OP_ALLOC, 2);
    open_heap("static", HR_MIB);
    ck_assert_int_eq(plan(NULL), HR_CHECK);
    ck_assert_str_eq(err.sentence, "a is never freed: needed allocator.kind bfc, had static");
    ck_assert_str_eq(err.hint, "-s allocator.kind=bfc");
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, 0);
    close_heap();
}
END_TEST

START_TEST(a_program_that_was_not_planned_is_not_attached)
{
    program other = p;
    uint32_t slot = 0;
    open_heap("static", HR_MIB);
    ck_assert_int_eq(plan(NULL), HR_OK);
    ck_assert_int_eq(executor_build(x, &p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(x, &other, &slot, &err), HR_CHECK);
    ck_assert_str_eq(err.sentence, "a program for 0 samples is not among the 3 that were planned");
    ck_assert_int_eq(executor_attach(x, &p, &slot, &err), HR_OK);
    close_heap();
}
END_TEST

START_TEST(a_block_that_does_not_fit_is_recorded_whole)
{
    open_heap("static", 5887);
    ck_assert_int_eq(plan(NULL), HR_OOM);
    const executor_oom *oom = executor_last_oom(x);
    ck_assert(oom->happened && oom->block);
    ck_assert_uint_eq(oom->requested_bytes, 5888);
    ck_assert_uint_eq(oom->instr, HR_NO_ID);
    ck_assert_uint_eq(oom->stats.limit_bytes, 5887);
    ck_assert_uint_eq(oom->stats.in_use_bytes, 0);
    close_heap();
}
END_TEST

START_TEST(bfc_is_told_nothing_and_takes_any_program)
{
    uint32_t slot = 0;
    step_io io = {0};
    open_heap("bfc", HR_MIB);
    add(HR_OP_ALLOC, 2); // which static would refuse
    ck_assert_int_eq(plan(NULL), HR_OK);
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, 0);
    ck_assert_int_eq(executor_build(x, &p, &err), HR_OK);
    p.instr_count--;
    ck_assert_int_eq(executor_attach(x, &p, &slot, &err), HR_OK);
    ck_assert_int_eq(executor_step(x, slot, &io, &err), HR_OK);
    close_heap();
}
END_TEST

START_TEST(every_failed_host_allocation_is_said_and_leaves_nothing)
{
    int64_t live = hr_host_mem_live();
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        uint64_t needed_bytes = 0;
        const program *programs[] = {&p, &p};
        open_heap("static", HR_MIB);
        (void)hr_host_mem_fail_at(nth);
        hr_status status = packing_announce(heap, programs, 2, &needed_bytes, &err);
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert((status == HR_OK) == !failed_once);
        ck_assert(status == HR_OK || status == HR_NOMEM ||
                  status == HR_OOM); // OOM: of the backing's own books
        close_heap();
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("packing");
    TCase *cases = tcase_create("packing");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, a_step_plays_in_exactly_the_height_of_what_meets);
    tcase_add_test(cases, steps_of_two_programs_share_the_region_above_the_weights);
    tcase_add_test(cases, a_tensor_allocated_twice_keeps_its_place_in_between);
    tcase_add_test(cases, a_leak_is_refused_with_its_name);
    tcase_add_test(cases, a_program_that_was_not_planned_is_not_attached);
    tcase_add_test(cases, a_block_that_does_not_fit_is_recorded_whole);
    tcase_add_test(cases, bfc_is_told_nothing_and_takes_any_program);
    tcase_add_test(cases, every_failed_host_allocation_is_said_and_leaves_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
