// SPDX-License-Identifier: Apache-2.0
// Decision for decision: every address that TensorFlow's own allocator gave for a million requests
// (golden_bfc.h, made by tests/bench/peers/tensorflow_bfc from its CPU build), from ours.
#include "bfc_streams.h"
#include "golden_bfc.h"
#include "heap.h"

// As tests/bench/peers/tensorflow_bfc.cc: addresses from 1 << 40 upwards, up to what the driver has.
typedef struct driver {
    number_places places;
    uint64_t held_bytes, has_bytes;
} driver;

static uint64_t take(void *context, uint64_t bytes)
{
    driver *d = context;
    if (d->held_bytes + bytes > d->has_bytes) {
        return 0;
    }
    d->held_bytes += bytes;
    return numbers_take(&d->places, bytes);
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    driver *d = context;
    for (uint64_t freed = 0; freed < bytes;) { // what was coalesced was taken as several ranges
        const uint64_t range = numbers_give(&d->places, address + freed);
        MUST(range > 0);
        freed += range;
    }
    d->held_bytes -= bytes;
}

static uint64_t ask(void *context, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    allocator_request request = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    hr_status status = allocator_serve(context, &request, &address, NULL);
    MUST(status == HR_OK || status == HR_OOM);
    return address;
}

static void give(void *context, uint64_t address)
{
    allocator_free(context, address);
}

START_TEST(gives_tensorflows_addresses)
{
    const bfc_stream *s = &bfc_streams[_i];
    const bfc_golden *golden = &bfc_goldens[_i];
    driver d = {.places = numbers_from(UINT64_C(1) << 40, s->policy), .has_bytes = s->backing_bytes};
    backing source = {.context = &d,
                      .granularity_bytes = 256,
                      .alignment_bytes = 256,
                      .coalesces = s->coalesces,
                      .take = take,
                      .give_back = give_back};
    allocator_config config = allocator_config_of("bfc", s->mix.limit_bytes);
    config.growth = s->growth;
    config.garbage_collection = s->collects;
    heap h = heap_over(&config, source, NULL);
    request_subject subject = {h.allocator, UINT64_C(1) << 40, ask, give};
    request_answer answer = requests_play(&s->mix, &subject);
    heap_counters counters = allocator_get_stats(h.allocator);
    ck_assert_str_eq(golden->name, s->mix.name);
    ck_assert_uint_eq(answer.served, golden->served);
    ck_assert_uint_eq(answer.failed, golden->failed);
    ck_assert_uint_eq(counters.peak_in_use_bytes, golden->peak_in_use_bytes);
    ck_assert_uint_eq(counters.largest_allocation_bytes, golden->largest_allocation_bytes);
    ck_assert_uint_eq(counters.in_use_bytes, 0);
    ck_assert_uint_eq(answer.hash, golden->hash);
    heap_must_be_sound(&h);
    heap_close(&h);
    numbers_deinit(&d.places);
}
END_TEST

static Suite *streams_suite(void)
{
    Suite *suite = suite_create("bfc against TensorFlow");
    TCase *streams = tcase_create("streams");
    tcase_add_loop_test(streams, gives_tensorflows_addresses, 0, sizeof bfc_goldens / sizeof *bfc_goldens);
    suite_add_tcase(suite, streams);
    return suite;
}

TEST_MAIN(streams_suite())
