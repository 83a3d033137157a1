// SPDX-License-Identifier: Apache-2.0
// Decision for decision: every address that PyTorch's own allocator gave for a million requests, and what it said when
// it first ran out (golden_caching.h, made by tests/bench/peers/pytorch_caching), from ours.

#include "caching_peer.h"
#include "golden_caching.h"
#include "heap.h"
#include "memory/caching_parts.h"

static const caching_stream *stream_of(const char *name)
{
    for (size_t k = 0; k < sizeof caching_streams / sizeof *caching_streams; k++) {
        if (strcmp(caching_streams[k].mix.name, name) == 0) {
            return &caching_streams[k];
        }
    }
    ck_abort_msg("golden_caching.h knows a stream '%s' that there is not", name);
    return NULL;
}

static void must_be(const caching_answer *answer, const caching_golden *golden)
{
    const char *message = answer->first_message.length == 0 ? "" : answer->first_message.data;
    ck_assert_uint_eq(answer->requests.served, golden->served);
    ck_assert_uint_eq(answer->requests.failed, golden->failed);
    ck_assert_uint_eq(answer->peak_allocated_bytes, golden->peak_allocated_bytes);
    ck_assert_uint_eq(answer->peak_reserved_bytes, golden->peak_reserved_bytes);
    ck_assert_uint_eq(answer->peak_requested_bytes, golden->peak_requested_bytes);
    ck_assert_uint_eq(answer->retries, golden->retries);
    ck_assert_uint_eq(answer->device_allocs, golden->device_allocs);
    ck_assert_uint_eq(answer->requests.hash, golden->hash);
    ck_assert_uint_eq(answer->first_failure_bytes, golden->first_failure_bytes);
    ck_assert_str_eq(message, golden->first_message == NULL ? message : golden->first_message);
}

START_TEST(gives_pytorchs_addresses)
{
    const caching_golden *golden = &caching_goldens[_i];
    caching_answer answer =
        caching_peer_answer(stream_of(golden->name), caching_order_of_version(golden->version), NULL);
    must_be(&answer, golden);
    text_deinit(&answer.first_message);
}
END_TEST

// There are 24 bits of numbers for segments and blocks; here they are used up soon after the beginning.
static void numbers_are_nearly_used_up(allocator *a)
{
    caching_of(a)->next_order = CHUNK_ORDERS - 40;
}

START_TEST(order_outlives_its_numbers)
{
    static const char *const names[] = {"full: lowest gap", "collects, full: last freed",
                                        "expandable, streams, full: lowest gap"};
    for (size_t k = 0; k < sizeof caching_goldens / sizeof *caching_goldens; k++) {
        const caching_golden *golden = &caching_goldens[k];
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            if (strcmp(golden->name, names[n]) == 0) {
                caching_answer answer =
                    caching_peer_answer(stream_of(golden->name), caching_order_of_version(golden->version),
                                        numbers_are_nearly_used_up);
                must_be(&answer, golden);
                text_deinit(&answer.first_message);
            }
        }
    }
}
END_TEST

static Suite *streams_suite(void)
{
    Suite *suite = suite_create("caching against PyTorch");
    TCase *streams = tcase_create("streams");
    tcase_add_loop_test(streams, gives_pytorchs_addresses, 0,
                        sizeof caching_goldens / sizeof *caching_goldens);
    tcase_add_test(streams, order_outlives_its_numbers);
    suite_add_tcase(suite, streams);
    return suite;
}

TEST_MAIN(streams_suite())
