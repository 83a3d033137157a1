// SPDX-License-Identifier: Apache-2.0
// The emulated card does what CUDA documents, and catches what CUDA forbids: it is what every other test of the cuda
// device stands on.
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card/misuse_args.h"
#include "card/reach.h"
#include "device/cuda/driver.h"

enum { COUNT = 1000, GRANULE = 2 * 1024 * 1024, MORE_THAN_48K = 60 * 1024 };

static card_reach card;
static CUmodule module;

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)

static void open_card(void)
{
    static const uint32_t fatbin[4] = {0xba55ed50};
    hr_err err = {0};
    CUcontext context;
    ck_assert_msg(cuda_driver_need(&err) == HR_OK, "%s", err.sentence);
    ck_assert(card_is_emulated(&card));
    OK(cuda_driver.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuda_driver.cuCtxSetCurrent(context));
    OK(cuda_driver.cuModuleLoadData(&module, fatbin));
}

static void close_card(void)
{
    (void)cuda_driver.cuModuleUnload(module);
    (void)cuda_driver.cuDevicePrimaryCtxRelease_v2(0);
}

static CUdeviceptr memory_of(size_t bytes)
{
    CUdeviceptr at = 0;
    OK(cuda_driver.cuMemAlloc_v2(&at, bytes));
    return at;
}

static CUstream stream_of(void)
{
    CUstream stream = NULL;
    OK(cuda_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static CUresult launch(const char *name, uint32_t blocks, uint32_t threads, uint32_t shared_bytes,
                       CUdeviceptr out, int64_t count, CUstream stream)
{
    CUfunction f = NULL;
    misuse_args a = {(float *)out, count};
    void *parameters[] = {&a};
    OK(cuda_driver.cuModuleGetFunction(&f, module, name));
    if (shared_bytes > 48 * 1024) {
        OK(cuda_driver.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          (int)shared_bytes));
    }
    return cuda_driver.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, parameters, NULL);
}

// ---- memory -----------------------------------------------------------------------------------------------------

START_TEST(new_memory_holds_nan_in_every_type)
{
    unsigned char bytes[64];
    const CUdeviceptr at = memory_of(5 * GRANULE + 13);
    OK(cuda_driver.cuMemcpyDtoH_v2(bytes, at + 4 * GRANULE, sizeof bytes));
    for (size_t k = 0; k < sizeof bytes; k++) {
        ck_assert_uint_eq(bytes[k], 0xff);
    }
    OK(cuda_driver.cuMemFree_v2(at));
}
END_TEST

START_TEST(copies_stay_inside_of_what_was_allocated)
{
    static unsigned char bytes[COUNT + 1];
    const CUdeviceptr at = memory_of(COUNT);
    OK(cuda_driver.cuMemcpyHtoD_v2(at, bytes, COUNT));
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(at, bytes, COUNT + 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(bytes, at - 1, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuda_driver.cuMemFree_v2(at));
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(at, bytes, 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuda_driver.cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_is_counted_in_granules_and_runs_out)
{
    size_t free_before = 0, free_now = 0, total = 0;
    OK(cuda_driver.cuMemGetInfo_v2(&free_before, &total));
    const CUdeviceptr at = memory_of(GRANULE + 1);
    OK(cuda_driver.cuMemGetInfo_v2(&free_now, &total));
    ck_assert_uint_eq(free_before - free_now, 2 * GRANULE);
    CUdeviceptr more = 0;
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&more, free_now + 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuda_driver.cuMemAlloc_v2(&more, free_now)); // of gigabytes that this machine need not have
    card.card_others(GRANULE, 0, 0);
    OK(cuda_driver.cuMemFree_v2(more));
    OK(cuda_driver.cuMemGetInfo_v2(&free_now, &total));
    ck_assert_uint_eq(free_before - free_now, 3 * GRANULE);
    OK(cuda_driver.cuMemFree_v2(at));
}
END_TEST

static void map(CUdeviceptr at, CUmemGenericAllocationHandle piece, bool access)
{
    const CUmemAccessDesc how = {{.type = CU_MEM_LOCATION_TYPE_DEVICE}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuda_driver.cuMemMap(at, GRANULE, 0, piece, 0));
    if (access) {
        OK(cuda_driver.cuMemSetAccess(at, GRANULE, &how, 1));
    }
}

START_TEST(a_piece_keeps_its_content_at_another_address)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle piece[2];
    CUdeviceptr at = 0;
    int got[2] = {1, 1};
    const int sent[2] = {17, 4};
    OK(cuda_driver.cuMemAddressReserve(&at, 8 * GRANULE, 0, 0, 0));
    for (int k = 0; k < 2; k++) {
        OK(cuda_driver.cuMemCreate(&piece[k], GRANULE, &prop, 0));
        map(at + (CUdeviceptr)k * GRANULE, piece[k], true);
    }
    const CUdeviceptr between = at + GRANULE - sizeof sent[0]; // across two pieces
    OK(cuda_driver.cuMemcpyHtoD_v2(between, sent, sizeof sent));
    ck_assert_int_eq(cuda_driver.cuMemAddressFree(at, 8 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuda_driver.cuMemUnmap(at, 2 * GRANULE));
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(got, between, 4), CUDA_ERROR_INVALID_VALUE);
    map(at + 4 * GRANULE, piece[1], true);
    map(at + 5 * GRANULE, piece[0], false);
    ck_assert(!card.card_holds(at + 5 * GRANULE, 4)); // mapped, no access
    OK(cuda_driver.cuMemcpyDtoH_v2(got, at + 4 * GRANULE, sizeof got));
    ck_assert_int_eq(got[0], sent[1]);
    ck_assert_int_eq(got[1], -1);
    OK(cuda_driver.cuMemUnmap(at + 4 * GRANULE, 2 * GRANULE));
    OK(cuda_driver.cuMemRelease(piece[0]));
    OK(cuda_driver.cuMemRelease(piece[1]));
    OK(cuda_driver.cuMemAddressFree(at, 8 * GRANULE));
}
END_TEST

START_TEST(host_code_may_not_touch_the_cards_memory)
{
    volatile float *at = (volatile float *)memory_of(GRANULE);
    ck_assert(signal(SIGSEGV, SIG_DFL) != SIG_ERR); // a sanitizer would answer it
    *at = 1.0f;
}
END_TEST

START_TEST(a_context_does_not_survive_fork)
{
    size_t free_now = 0, total = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(cuda_driver.cuMemGetInfo_v2(&free_now, &total) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_pool_keeps_what_its_threshold_says)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool;
    CUstream stream = stream_of(), other = stream_of();
    CUdeviceptr at = 0, again = 0;
    uint64_t threshold = 4 * GRANULE, reserved = 0, used = 0;
    OK(cuda_driver.cuMemPoolCreate(&pool, &props));
    OK(cuda_driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    OK(cuda_driver.cuMemAllocFromPoolAsync(&at, 3 * GRANULE, pool, stream));
    OK(cuda_driver.cuMemFreeAsync(at, stream));
    OK(cuda_driver.cuMemAllocFromPoolAsync(&again, 3 * GRANULE, pool, stream));
    ck_assert_uint_eq(at, again); // in the stream's order
    OK(cuda_driver.cuMemAllocFromPoolAsync(&again, 3 * GRANULE - 600, pool, other));
    ck_assert_uint_ne(at, again);
    OK(cuda_driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    OK(cuda_driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(reserved, 6 * GRANULE);
    ck_assert_uint_eq(used, 6 * GRANULE - 512);
    OK(cuda_driver.cuMemFreeAsync(at, stream));
    OK(cuda_driver.cuMemFreeAsync(again, other));
    OK(cuda_driver.cuCtxSynchronize());
    OK(cuda_driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    ck_assert_uint_eq(reserved, 3 * GRANULE);
    OK(cuda_driver.cuMemPoolDestroy(pool));
}
END_TEST

// ---- order ------------------------------------------------------------------------------------------------------

// One stream writes, another reads: how often, of 64 times, has it read what was written?
static int times_right(bool waits)
{
    enum { TIMES = 64 };
    CUstream writer = stream_of(), reader = stream_of();
    CUevent written = NULL;
    const CUdeviceptr from = memory_of(4), to = memory_of(4);
    int right = 0;
    OK(cuda_driver.cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    for (int k = 0; k < TIMES; k++) {
        int got = -1;
        OK(cuda_driver.cuMemsetD8Async(from, (unsigned char)k, 4, writer));
        OK(cuda_driver.cuEventRecord(written, writer));
        if (waits) {
            OK(cuda_driver.cuStreamWaitEvent(reader, written, 0));
        }
        OK(cuda_driver.cuMemcpyDtoDAsync_v2(to, from, 4, reader));
        OK(cuda_driver.cuStreamSynchronize(reader));
        OK(cuda_driver.cuMemcpyDtoH_v2(&got, to, 4));
        right += got == k * 0x01010101;
        OK(cuda_driver.cuCtxSynchronize());
    }
    return right;
}

START_TEST(streams_keep_their_order_and_no_other)
{
    ck_assert_int_eq(times_right(true), 64);
    const int by_chance = times_right(false);
    ck_assert_msg(by_chance > 4 && by_chance < 60, "%d of 64", by_chance);
}
END_TEST

START_TEST(copies_of_pinned_memory_are_late_and_others_wait)
{
    int *pinned = NULL, pageable = 1, got = 0, late = 0;
    CUstream stream = stream_of();
    const CUdeviceptr at = memory_of(4);
    OK(cuda_driver.cuMemHostAlloc((void **)&pinned, sizeof *pinned, 0));
    ck_assert_int_eq(*pinned, -1);
    for (int k = 0; k < 32; k++) {
        *pinned = k;
        OK(cuda_driver.cuMemcpyHtoDAsync_v2(at, pinned, 4, stream));
        *pinned = -k - 1; // too early
        OK(cuda_driver.cuStreamSynchronize(stream));
        OK(cuda_driver.cuMemcpyDtoH_v2(&got, at, 4));
        late += got == -k - 1;
        pageable = k;
        OK(cuda_driver.cuMemcpyHtoDAsync_v2(at, &pageable, 4, stream));
        pageable = -1;
        OK(cuda_driver.cuMemcpyDtoH_v2(&got, at, 4));
        ck_assert_int_eq(got, k);
    }
    ck_assert_int_gt(late, 8);
    OK(cuda_driver.cuMemFreeHost(pinned));
}
END_TEST

START_TEST(events_tell_time_once_they_have_happened)
{
    CUstream stream = stream_of();
    CUevent from, to;
    float ms = -1;
    OK(cuda_driver.cuEventCreate(&from, 0));
    OK(cuda_driver.cuEventCreate(&to, 0));
    ck_assert_int_eq(cuda_driver.cuEventElapsedTime_v2(&ms, from, to), CUDA_ERROR_INVALID_HANDLE);
    OK(cuda_driver.cuEventRecord(from, stream));
    OK(cuda_driver.cuEventRecord(to, stream));
    OK(cuda_driver.cuEventSynchronize(to));
    OK(cuda_driver.cuEventElapsedTime_v2(&ms, from, to));
    ck_assert(ms >= 0);
}
END_TEST

// ---- graphs -----------------------------------------------------------------------------------------------------

START_TEST(a_captured_graph_reads_host_memory_when_it_runs)
{
    CUstream main_stream = stream_of(), side = stream_of();
    CUevent fork_event, join_event;
    CUgraph graph;
    CUgraphExec exec;
    int *sent = NULL, got = 0;
    const CUdeviceptr at = memory_of(4), copy = memory_of(4);
    OK(cuda_driver.cuMemHostAlloc((void **)&sent, 4, 0));
    OK(cuda_driver.cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
    OK(cuda_driver.cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
    OK(cuda_driver.cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuda_driver.cuMemcpyHtoDAsync_v2(at, sent, 4, main_stream));
    OK(cuda_driver.cuEventRecord(fork_event, main_stream));
    OK(cuda_driver.cuStreamWaitEvent(side, fork_event, 0));
    OK(cuda_driver.cuMemcpyDtoDAsync_v2(copy, at, 4, side));
    OK(cuda_driver.cuEventRecord(join_event, side));
    OK(cuda_driver.cuStreamWaitEvent(main_stream, join_event, 0));
    OK(cuda_driver.cuStreamEndCapture(main_stream, &graph));
    OK(cuda_driver.cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuda_driver.cuGraphDestroy(graph));
    OK(cuda_driver.cuMemcpyDtoH_v2(&got, copy, 4));
    ck_assert_int_eq(got, -1); // nothing has run
    for (int k = 0; k < 20; k++) {
        *sent = k;
        OK(cuda_driver.cuGraphLaunch(exec, main_stream));
        OK(cuda_driver.cuStreamSynchronize(main_stream));
        OK(cuda_driver.cuMemcpyDtoH_v2(&got, copy, 4));
        ck_assert_int_eq(got, k);
    }
    OK(cuda_driver.cuGraphExecDestroy(exec));
}
END_TEST

START_TEST(captures_refuse_what_waits_and_what_is_not_joined)
{
    CUstream main_stream = stream_of(), side = stream_of();
    CUevent event;
    CUgraph graph = NULL;
    CUdeviceptr at = memory_of(4), more = 0;
    OK(cuda_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuda_driver.cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ck_assert_int_eq(cuda_driver.cuStreamSynchronize(main_stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuda_driver.cuStreamEndCapture(main_stream, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuda_driver.cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&more, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuda_driver.cuStreamEndCapture(main_stream, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuda_driver.cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuda_driver.cuEventRecord(event, main_stream));
    OK(cuda_driver.cuStreamWaitEvent(side, event, 0));
    OK(cuda_driver.cuMemsetD8Async(at, 0, 4, side));
    ck_assert_int_eq(cuda_driver.cuStreamEndCapture(main_stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(cuda_driver.cuMemsetD8Async(at, 0, 4, side)); // out of the capture again
    OK(cuda_driver.cuCtxSynchronize());
}
END_TEST

// ---- kernels ----------------------------------------------------------------------------------------------------

START_TEST(blocks_have_barriers_shuffles_and_shared_memory)
{
    enum { BLOCKS = 70, THREADS = 256 };
    float sums[BLOCKS];
    const CUdeviceptr out = memory_of(sizeof sums);
    OK(launch("sums_of_blocks", BLOCKS, THREADS, 0, out, 0, NULL));
    OK(cuda_driver.cuMemcpyDtoH_v2(sums, out, sizeof sums));
    for (int k = 0; k < BLOCKS; k++) {
        const double threads = THREADS * (THREADS - 1) / 2;
        ck_assert_double_eq((double)sums[k], k * THREADS + threads + (THREADS - 1) + threads);
    }
    ck_assert_uint_eq(card.card_launches("sums_of_blocks"), 1);
}
END_TEST

START_TEST(dynamic_shared_memory_has_a_size)
{
    enum { FLOATS = MORE_THAN_48K / 4 };
    static float values[FLOATS];
    const CUdeviceptr out = memory_of(sizeof values);
    OK(launch("misuse_dynamic", 1, 128, MORE_THAN_48K, out, FLOATS, NULL));
    OK(cuda_driver.cuMemcpyDtoH_v2(values, out, sizeof values));
    for (int k = 0; k < FLOATS; k++) {
        ck_assert_double_eq((double)values[k], FLOATS - 1 - k);
    }
    ck_assert_int_eq(launch("sums_of_blocks", 1, 1056, 0, out, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(launch("misuse_dynamic", 1, 128, 3996, out, 1000,
              NULL)); // up to the next sixteen bytes nobody sees it
    OK(cuda_driver.cuCtxSynchronize());
    OK(launch("misuse_dynamic", 1, 128, 3996, out, 1001, NULL));
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

static const struct {
    const char *kernel;
    uint32_t threads;
    CUresult result;
} misuses[] = {
    {"misuse_barrier", 64, CUDA_ERROR_LAUNCH_FAILED},   {"misuse_shuffle", 64, CUDA_ERROR_LAUNCH_FAILED},
    {"misuse_part_warp", 48, CUDA_ERROR_LAUNCH_FAILED}, {"misuse_mixed_words", 32, CUDA_ERROR_LAUNCH_FAILED},
    {"misuse_address", 64, CUDA_ERROR_ILLEGAL_ADDRESS},
};

START_TEST(what_cuda_forbids_loses_the_card)
{
    const CUdeviceptr out = memory_of(1024);
    size_t free_now = 0, total = 0;
    OK(launch(misuses[_i].kernel, 2, misuses[_i].threads, 0, out, 0, NULL));
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), misuses[_i].result);
    ck_assert_int_eq(cuda_driver.cuMemGetInfo_v2(&free_now, &total), misuses[_i].result); // and stays so
}
END_TEST

START_TEST(kernels_may_not_be_handed_host_memory)
{
    static float on_host[32];
    ck_assert_int_eq(launch("sums_of_blocks", 1, 32, 0, (CUdeviceptr)on_host, 0, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_missing_barrier_is_seen)
{
    enum { THREADS = 128 };
    float got[THREADS];
    const CUdeviceptr out = memory_of(sizeof got);
    OK(launch("misuse_race", 1, THREADS, 0, out, 0, NULL));
    OK(cuda_driver.cuMemcpyDtoH_v2(got, out, sizeof got));
    int wrong = 0;
    for (int k = 0; k < THREADS; k++) {
        wrong += isnan(got[k]);
    }
    ck_assert_int_eq(wrong, THREADS / 2);
}
END_TEST

// One warp runs ahead of the others in half of the blocks.
START_TEST(a_missing_barrier_behind_a_sum_is_seen)
{
    enum { BLOCKS = 32, THREADS = 128, SUMS = 5 };
    float got[BLOCKS * THREADS];
    const CUdeviceptr out = memory_of(sizeof got);
    OK(launch("misuse_room", BLOCKS, THREADS, 0, out, SUMS, NULL));
    OK(cuda_driver.cuMemcpyDtoH_v2(got, out, sizeof got));
    int wrong = 0;
    for (int k = 0; k < BLOCKS * THREADS; k++) {
        wrong += got[k] != (float)(THREADS * SUMS * (SUMS + 1) / 2);
    }
    ck_assert_int_gt(wrong, BLOCKS * THREADS / 8);
    ck_assert_int_lt(wrong, BLOCKS * THREADS / 2 + BLOCKS * THREADS / 4);
}
END_TEST

START_TEST(memory_that_is_unmapped_under_a_kernel_loses_the_card)
{
    CUstream stream = stream_of();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle piece;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUresult result = CUDA_SUCCESS;
    OK(cuda_driver.cuMemAddressReserve(&at, GRANULE, 0, 0, 0));
    OK(cuda_driver.cuMemCreate(&piece, GRANULE, &prop, 0));
    for (int k = 0; k < 16 && result == CUDA_SUCCESS; k++) {
        map(at, piece, true);
        OK(launch("sums_of_blocks", 1, 32, 0, at, 0, stream));
        OK(cuda_driver.cuMemUnmap(at, GRANULE)); // too early, unless it has run by chance
        result = cuda_driver.cuCtxSynchronize();
    }
    ck_assert_int_eq(result, CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

// ---- faults -----------------------------------------------------------------------------------------------------

START_TEST(the_nth_call_fails_and_the_nth_launch_is_the_last)
{
    const CUdeviceptr out = memory_of(1024);
    CUdeviceptr at = 0;
    card.card_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuda_driver.cuMemAlloc_v2(&at, 4));
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&at, 4), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuda_driver.cuMemAlloc_v2(&at, 4));
    card.card_lose_at(2);
    OK(launch("sums_of_blocks", 1, 32, 0, out, 0, NULL));
    OK(cuda_driver.cuCtxSynchronize());
    OK(launch("sums_of_blocks", 1, 32, 0, out, 0, NULL));
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(calls_and_bytes_are_counted)
{
    int value = 0;
    card_totals t;
    card.card_reset();
    const CUdeviceptr at = memory_of(4);
    OK(cuda_driver.cuMemcpyHtoD_v2(at, &value, 4));
    OK(cuda_driver.cuMemcpyDtoH_v2(&value, at, 2));
    card.card_count(&t);
    ck_assert_uint_eq(t.allocations, 1);
    ck_assert_uint_eq(t.to_card_bytes, 4);
    ck_assert_uint_eq(t.from_card_bytes, 2);
    ck_assert_uint_eq(t.synchronisations, 2);
    ck_assert_uint_eq(t.calls, 3);
    ck_assert_uint_eq(card.card_calls("cuMemcpyHtoD_v2"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("emulated_card");
    TCase *tc = tcase_create("the emulated card");
    tcase_add_checked_fixture(tc, open_card, close_card);
    tcase_add_test(tc, new_memory_holds_nan_in_every_type);
    tcase_add_test(tc, copies_stay_inside_of_what_was_allocated);
    tcase_add_test(tc, memory_is_counted_in_granules_and_runs_out);
    tcase_add_test(tc, a_piece_keeps_its_content_at_another_address);
    tcase_add_test_raise_signal(tc, host_code_may_not_touch_the_cards_memory, SIGSEGV);
    tcase_add_test(tc, a_context_does_not_survive_fork);
    tcase_add_test(tc, a_pool_keeps_what_its_threshold_says);
    tcase_add_test(tc, streams_keep_their_order_and_no_other);
    tcase_add_test(tc, copies_of_pinned_memory_are_late_and_others_wait);
    tcase_add_test(tc, events_tell_time_once_they_have_happened);
    tcase_add_test(tc, a_captured_graph_reads_host_memory_when_it_runs);
    tcase_add_test(tc, captures_refuse_what_waits_and_what_is_not_joined);
    tcase_add_test(tc, blocks_have_barriers_shuffles_and_shared_memory);
    tcase_add_test(tc, dynamic_shared_memory_has_a_size);
    tcase_add_loop_test(tc, what_cuda_forbids_loses_the_card, 0, (int)(sizeof misuses / sizeof *misuses));
    tcase_add_test(tc, kernels_may_not_be_handed_host_memory);
    tcase_add_test(tc, a_missing_barrier_is_seen);
    tcase_add_test(tc, a_missing_barrier_behind_a_sum_is_seen);
    tcase_add_test(tc, memory_that_is_unmapped_under_a_kernel_loses_the_card);
    tcase_add_test(tc, the_nth_call_fails_and_the_nth_launch_is_the_last);
    tcase_add_test(tc, calls_and_bytes_are_counted);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
