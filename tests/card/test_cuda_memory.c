// SPDX-License-Identifier: Apache-2.0
// Memory of the cuda device over the emulated card: what is held is what the card has lost, what fails half-way leaves
// nothing, and nothing goes while work may still use it.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "card/reach.h"
#include "device/cuda/device_impl.h"

enum { ALL_DONE = 77, HELD_MAX = 12, REQUESTS = 600 };
#define GRANULE        (2 * HR_MIB)
#define CAPACITY_BYTES (64 * HR_MIB)

static card_reach card;
static cuda_device *device;
static backing memory;

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0}, *const err = &err_;                                                               \
        const hr_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == HR_OK, "%s: %s", hr_status_name(status_), err_.sentence);                   \
    } while (0)

static void open_device(void)
{
    const device_options options = {0};
    void *context = NULL;
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    REQUIRE_OK(device_cuda.memory(context, CAPACITY_BYTES, false, &memory, err));
    device = context;
}

static void close_device(void)
{
    backing_close(&memory);
    device_cuda.close(device);
}

static uint64_t process_bytes(void)
{
    card_memory now;
    card.card_memory_now(&now);
    return now.process_bytes;
}

// ---- what is held -----------------------------------------------------------------------------------------------

typedef struct held {
    uint64_t address, bytes, mapped_bytes;
    bool reservation;
} held;

static uint64_t chance;

static uint64_t any(uint64_t below)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chance >> 33) % below;
}

static bool take_any(held *h)
{
    *h = (held){.reservation = any(2) == 0, .bytes = 1 + any(7 * HR_MIB)};
    h->bytes = h->reservation ? (h->bytes / GRANULE + 1) * GRANULE : h->bytes;
    h->address =
        h->reservation ? memory.reserve(memory.context, h->bytes) : memory.take(memory.context, h->bytes);
    return h->address != 0;
}

static void map_more(held *h)
{
    const uint64_t left = (h->bytes - h->mapped_bytes) / GRANULE,
                   bytes = left == 0 ? 0 : (1 + any(left)) * GRANULE;
    if (bytes > 0 && memory.map(memory.context, h->address + h->mapped_bytes, bytes)) {
        h->mapped_bytes += bytes;
    }
}

static void drop(const held *h)
{
    if (!h->reservation) {
        memory.give_back(memory.context, h->address, h->bytes);
        return;
    }
    if (h->mapped_bytes > 0) {
        memory.unmap(memory.context, h->address, h->mapped_bytes);
    }
    memory.release(memory.context, h->address, h->bytes);
}

// Now and then the card has nothing to give.
START_TEST(what_is_held_is_what_the_card_has_lost)
{
    static const char *const calls[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess"};
    held list[HELD_MAX];
    uint64_t count = 0;
    const uint64_t before = process_bytes();
    chance = (uint64_t)_i + 1;
    for (uint32_t n = 0; n < REQUESTS; n++) {
        const uint64_t which = count == 0 ? 0 : any(count), what = any(4);
        if (any(5) == 0) {
            card.card_fail(calls[any(3)], 1 + any(3), CUDA_ERROR_OUT_OF_MEMORY);
        }
        if (what == 0 && count < HELD_MAX) {
            count += take_any(&list[count]);
        } else if (what < 3 && count > 0 && list[which].reservation) {
            map_more(&list[which]);
        } else if (count > 0) {
            drop(&list[which]);
            list[which] = list[--count];
        }
        ck_assert_uint_eq(device->held_bytes, process_bytes() - before);
    }
    while (count > 0) {
        drop(&list[--count]);
    }
    for (int k = 0; k < 3; k++) {
        card.card_fail(calls[k], 0, CUDA_SUCCESS);
    }
    ck_assert_uint_eq(device->held_bytes, 0);
    const held all = {.address = memory.take(memory.context, CAPACITY_BYTES), .bytes = CAPACITY_BYTES};
    ck_assert_uint_ne(all.address, 0); // no address is lost either
    drop(&all);
}
END_TEST

START_TEST(the_pool_counts_what_was_asked_of_it)
{
    const backing *pool = memory.pool;
    ck_assert_ptr_nonnull(pool);
    const uint64_t half = CAPACITY_BYTES / 2, one = pool->take(pool->context, 1),
                   most = pool->take(pool->context, half);
    ck_assert(one != 0 && most != 0);
    ck_assert_uint_eq(device->held_bytes, half + pool->granularity_bytes);
    ck_assert_uint_eq(pool->take(pool->context, half), 0);
    const uint64_t rest = pool->take(pool->context, half - pool->granularity_bytes);
    ck_assert_uint_ne(rest, 0);
    pool->give_back(pool->context, rest, half - pool->granularity_bytes);
    pool->give_back(pool->context, most, half);
    pool->give_back(pool->context, one, 1);
    ck_assert_uint_eq(device->held_bytes, 0);
}
END_TEST

// What it keeps may change when it is there.
START_TEST(the_pool_keeps_what_it_is_told_to)
{
    const backing *pool = memory.pool;
    backing_look seen = {0};
    for (int k = 0; k < 2; k++) {
        pool->keep(pool->context, k == 0 ? CAPACITY_BYTES : 0);
        const uint64_t address = pool->take(pool->context, 8 * HR_MIB);
        pool->give_back(pool->context, address, 8 * HR_MIB);
        REQUIRE_OK(cuda_settle(device, err));
        ck_assert(pool->look(pool->context, &seen));
        ck_assert_uint_eq(seen.used_bytes, 0);
        ck_assert_uint_eq(seen.reserved_bytes > 0, k == 0);
    }
}
END_TEST

// ---- what is waited for -----------------------------------------------------------------------------------------

typedef enum way { GIVE_BACK, UNMAP, HOST, POOL_IS_FULL } way;
enum { WAYS = POOL_IS_FULL + 1 };

// What goes waits; so does the driver where it frees pinned memory, and what a full pool's block leaves behind.
static const uint64_t waits[WAYS] = {1, 1, 2, 2};

static void give(way w, uint64_t address, void *host)
{
    switch (w) {
    case GIVE_BACK:
        memory.give_back(memory.context, address, GRANULE);
        break;
    case UNMAP:
        memory.unmap(memory.context, address, GRANULE);
        memory.release(memory.context, address, GRANULE);
        break;
    case HOST:
        cuda_host_give_back(device, host);
        memory.give_back(memory.context, address, GRANULE);
        break;
    case POOL_IS_FULL:
        card.card_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY);
        memory.pool->give_back(memory.pool->context, memory.pool->take(memory.pool->context, HR_MIB), HR_MIB);
        memory.give_back(memory.context, address, GRANULE);
        break;
    }
}

START_TEST(memory_goes_behind_the_work_that_uses_it)
{
    const way w = (way)_i;
    void *host = NULL;
    REQUIRE_OK(cuda_host_take(device, GRANULE, &host, err));
    const uint64_t address =
        w == UNMAP ? memory.reserve(memory.context, GRANULE) : memory.take(memory.context, GRANULE);
    ck_assert(w != UNMAP || memory.map(memory.context, address, GRANULE));
    REQUIRE_OK(CUDA_CALL(err, cuMemcpyHtoDAsync_v2, address, host, GRANULE, device->lane[HR_LANE_H2D]));
    device->busy = true;
    card_totals before, after;
    card.card_count(&before);
    give(w, address, host);
    card.card_count(&after);
    ck_assert_uint_eq(after.synchronisations, before.synchronisations + waits[w]);
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_SUCCESS); // no address was used that was gone
    if (w != HOST) {
        cuda_host_give_back(device, host);
    }
}
END_TEST

// Also to and from memory that the card reads and writes when it likes.
START_TEST(a_copy_that_returns_is_done)
{
    void *host = NULL;
    REQUIRE_OK(cuda_host_take(device, GRANULE, &host, err));
    uint32_t *words = host;
    const uint64_t address = memory.take(memory.context, GRANULE);
    for (uint32_t round = 1; round < 9; round++) {
        words[0] = words[GRANULE / sizeof *words - 1] = round;
        REQUIRE_OK(device_cuda.copy_in(device, address, host, GRANULE, err));
        words[0] = words[GRANULE / sizeof *words - 1] = 0;
        REQUIRE_OK(device_cuda.copy_out(device, address, host, GRANULE, err));
        ck_assert_uint_eq(words[0], round);
        ck_assert_uint_eq(words[GRANULE / sizeof *words - 1], round);
    }
    memory.give_back(memory.context, address, GRANULE);
    cuda_host_give_back(device, host);
}
END_TEST

// Who has nothing on its way waits for nobody, and what the pool has been given back is on its way.
START_TEST(an_idle_card_is_not_waited_for)
{
    card_totals before, after;
    const uint64_t address = memory.take(memory.context, GRANULE);
    card.card_count(&before);
    memory.give_back(memory.context, address, GRANULE);
    card.card_count(&after);
    ck_assert_uint_eq(after.synchronisations, before.synchronisations);
    const uint64_t of_pool = memory.pool->take(memory.pool->context, GRANULE);
    REQUIRE_OK(cuda_settle(device, err));
    ck_assert(!device->busy);
    memory.pool->give_back(memory.pool->context, of_pool, GRANULE);
    ck_assert(device->busy);
}
END_TEST

// ---- where the driver cannot map ----------------------------------------------------------------------------------

static void open_without_maps(void)
{
    ck_assert_int_eq(setenv("CARD_PIECE", "0", 1), 0);
    open_device();
}

START_TEST(memory_without_maps_is_held_and_waited_for)
{
    const uint64_t before = process_bytes(), half = CAPACITY_BYTES / 2;
    card_totals seen;
    ck_assert(memory.reserve == NULL && memory.pool == NULL);
    const uint64_t one = memory.take(memory.context, 1), most = memory.take(memory.context, half);
    ck_assert(one != 0 && most != 0);
    ck_assert_uint_eq(memory.take(memory.context, half), 0);
    ck_assert_uint_eq(device->held_bytes, half + GRANULE);
    ck_assert_uint_eq(device->held_bytes, process_bytes() - before);
    REQUIRE_OK(CUDA_CALL(err, cuMemsetD8Async, most, 0, half, device->lane[HR_LANE_D2H]));
    device->busy = true;
    card.card_reset();
    memory.give_back(memory.context, most, half);
    card.card_count(&seen);
    ck_assert_uint_eq(seen.synchronisations, 2); // ours, and cuMemFree's own
    const uint64_t rest = memory.take(memory.context, CAPACITY_BYTES - GRANULE);
    ck_assert_uint_ne(rest, 0);
    memory.give_back(memory.context, rest, CAPACITY_BYTES - GRANULE);
    memory.give_back(memory.context, one, 1);
    ck_assert_uint_eq(device->held_bytes, 0);
    ck_assert_uint_eq(process_bytes(), before);
}
END_TEST

START_TEST(pieces_of_another_size_are_refused)
{
    const device_options options = {0};
    void *context = NULL;
    hr_err refused = {0};
    ck_assert_int_eq(setenv("CARD_PIECE", "4M", 1), 0);
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    ck_assert_int_eq(device_cuda.memory(context, CAPACITY_BYTES, false, &memory, &refused), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(refused.sentence, "needed pieces of 2 MiB"));
    device_cuda.close(context);
}
END_TEST

// ---- who has it -------------------------------------------------------------------------------------------------

// The last byte that is free fits; a device that only plans admits everything.
START_TEST(a_step_that_fits_to_the_byte_is_admitted)
{
    const device_options plans = {.plan_only = true};
    const uint64_t address = memory.take(memory.context, 6 * HR_MIB);
    hr_err refused = {0};
    void *planner = NULL;
    size_t left = 0, all = 0;
    REQUIRE_OK(CUDA_CALL(err, cuMemGetInfo_v2, &left, &all));
    REQUIRE_OK(device_cuda.admit(device, left, left + 6 * HR_MIB, err));
    ck_assert_int_eq(device_cuda.admit(device, left, left + 6 * HR_MIB + 1, &refused), HR_HOST_LIMIT);
    REQUIRE_OK(device_cuda.open(&plans, &planner, err));
    REQUIRE_OK(device_cuda.admit(planner, UINT64_MAX, UINT64_MAX, err));
    device_cuda.close(planner);
    memory.give_back(memory.context, address, 6 * HR_MIB);
}
END_TEST

// What libraries take behind our back NVML tells; without it everything is reckoned from what is free.
START_TEST(what_is_ours_is_told_with_nvml_and_without)
{
    enum { LIBRARY_BYTES = 64 * 1024 * 1024 };
    device_outside seen;
    CUdeviceptr library = 0;
    const uint64_t address = memory.take(memory.context, 6 * HR_MIB);
    card.card_others(3 * HR_GIB, 0, 0);
    card.card_fail("cuDeviceGetUuid_v2", 1, CUDA_ERROR_UNKNOWN);
    device_cuda.outside(device, &seen);
    ck_assert(seen.known);
    ck_assert_uint_eq(seen.process_bytes, device->context_bytes + device->held_bytes);
    ck_assert_uint_eq(seen.context_bytes, device->context_bytes);
    ck_assert_uint_eq(seen.others_bytes, 3 * HR_GIB);
    REQUIRE_OK(CUDA_CALL(err, cuMemAlloc_v2, &library, LIBRARY_BYTES));
    device_cuda.outside(device, &seen);
    ck_assert_uint_eq(seen.process_bytes, process_bytes());
    ck_assert_uint_eq(seen.context_bytes, device->context_bytes + LIBRARY_BYTES);
    ck_assert_uint_eq(seen.others_bytes, 3 * HR_GIB);
    REQUIRE_OK(CUDA_CALL(err, cuMemFree_v2, library));
    memory.give_back(memory.context, address, 6 * HR_MIB);
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda memory");
    TCase *tests = tcase_create("memory");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, open_device, close_device);
    tcase_add_loop_test(tests, what_is_held_is_what_the_card_has_lost, 0, 4);
    tcase_add_test(tests, the_pool_counts_what_was_asked_of_it);
    tcase_add_test(tests, the_pool_keeps_what_it_is_told_to);
    tcase_add_loop_test(tests, memory_goes_behind_the_work_that_uses_it, 0, WAYS);
    tcase_add_test(tests, a_copy_that_returns_is_done);
    tcase_add_test(tests, an_idle_card_is_not_waited_for);
    tcase_add_test(tests, what_is_ours_is_told_with_nvml_and_without);
    tcase_add_test(tests, a_step_that_fits_to_the_byte_is_admitted);
    TCase *plain = tcase_create("without maps"), *refused = tcase_create("refused");
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, refused);
    tcase_add_checked_fixture(plain, open_without_maps, close_device);
    tcase_add_test(plain, memory_without_maps_is_held_and_waited_for);
    tcase_add_test(refused, pieces_of_another_size_are_refused);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
