// SPDX-License-Identifier: Apache-2.0
// Decision for decision: every address that PyTorch's own allocator gave for 1.2 million requests (golden_caching.h,
// made by tests/bench/peers/pytorch_caching from its own library), from ours; and its words when memory runs out.
#include <string.h>

#include "caching_streams.h"
#include "golden_caching.h"
#include "heap.h"
#include "memory/caching_config.h"
#include "memory/picture.h"
#include "trace/torch_oom.h"

// The driver of tests/bench/peers/fake_cuda.c: ranges from 1 << 40 and reservations from 1 << 44 upwards, never the
// same twice, as much as the card has.
typedef struct driver {
    uint64_t next_range, next_reservation, held_bytes, has_bytes;
} driver;

static bool hold(driver *d, uint64_t bytes)
{
    bool fits = d->held_bytes + bytes <= d->has_bytes;
    d->held_bytes += fits ? bytes : 0;
    return fits;
}

static uint64_t take(void *context, uint64_t bytes)
{
    driver *d = context;
    uint64_t address = d->next_range;
    if (!hold(d, bytes)) {
        return 0;
    }
    d->next_range += bytes;
    return address;
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    (void)address;
    ((driver *)context)->held_bytes -= bytes;
}

static uint64_t reserve(void *context, uint64_t bytes)
{
    driver *d = context;
    uint64_t address = d->next_reservation;
    d->next_reservation += (bytes + HR_GIB) & ~(HR_GIB - 1);
    return address;
}

static void release(void *context, uint64_t address, uint64_t bytes)
{
    (void)context, (void)address, (void)bytes;
}

static bool map(void *context, uint64_t address, uint64_t bytes)
{
    (void)address;
    return hold(context, bytes);
}

// ---- PyTorch's place ------------------------------------------------------------------------------------------

typedef struct asked {
    allocator *allocator;
    const driver *driver;
    const torch_conf *conf;
    bool has_fraction;
    uint64_t first_failure_bytes; // 0: none so far
    text first_message;
} asked;

static void note_failure(asked *a, uint64_t bytes)
{
    heap_picture picture;
    const torch_driver numbers = {
        .total_bytes = a->driver->has_bytes,
        .free_bytes = a->driver->has_bytes - a->driver->held_bytes,
        .allowed_bytes = a->has_fraction ? a->allocator->counters.limit_bytes : 0,
        .expandable_segments = a->conf->expandable_segments,
    };
    ck_assert_int_eq(heap_picture_of(a->allocator, &picture, NULL), HR_OK);
    torch_oom_write(&picture, &numbers, &a->first_message);
    a->first_failure_bytes = bytes;
    heap_picture_deinit(&picture);
}

static uint64_t ask(void *context, uint64_t bytes, uint32_t stream)
{
    asked *a = context;
    uint64_t address = 0;
    allocator_request request = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    hr_status status = allocator_serve(a->allocator, &request, &address, NULL);
    MUST(status == HR_OK || status == HR_OOM);
    if (status == HR_OOM && a->first_failure_bytes == 0) {
        note_failure(a, bytes);
    }
    return address;
}

static void give(void *context, uint64_t address)
{
    allocator_free(((asked *)context)->allocator, address);
}

static allocator_config config_of(const caching_stream *s, const torch_conf *conf)
{
    allocator_config c = allocator_config_of("caching", s->mix.limit_bytes);
    c.device_bytes = s->mix.limit_bytes;
    c.limit_is_fraction = s->fraction < 1;
    c.limit_bytes = (uint64_t)(s->fraction * (double)s->mix.limit_bytes);
    c.caching = caching_options_of(conf);
    return c;
}

typedef struct spoken {
    uint64_t allocated, reserved, requested, retries, device_allocs;
} spoken;

static void listen(void *context, const char *name, uint64_t value)
{
    spoken *s = context;
    const struct {
        const char *name;
        uint64_t *value;
    } wanted[] = {
        {"allocated_bytes.all.peak", &s->allocated}, {"reserved_bytes.all.peak", &s->reserved},
        {"requested_bytes.all.peak", &s->requested}, {"num_alloc_retries", &s->retries},
        {"num_device_alloc", &s->device_allocs},
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        if (strcmp(name, wanted[k].name) == 0) {
            *wanted[k].value = value;
        }
    }
}

static void statistics_must_be(const heap *h, const caching_golden *golden)
{
    spoken s = {0};
    h->allocator->ops->statistics(h->allocator, listen, &s);
    ck_assert_uint_eq(s.allocated, golden->peak_allocated_bytes);
    ck_assert_uint_eq(s.reserved, golden->peak_reserved_bytes);
    ck_assert_uint_eq(s.requested, golden->peak_requested_bytes);
    ck_assert_uint_eq(s.retries, golden->retries);
    ck_assert_uint_eq(s.device_allocs, golden->device_allocs);
}

START_TEST(gives_pytorchs_addresses)
{
    const caching_stream *s = &caching_streams[_i];
    const caching_golden *golden = &caching_goldens[_i];
    torch_conf conf;
    ck_assert_int_eq(torch_conf_parse(s->conf, &conf, NULL), HR_OK);
    driver d = {.next_range = UINT64_C(1) << 40,
                .next_reservation = UINT64_C(1) << 44,
                .has_bytes = s->mix.limit_bytes};
    backing source = {.context = &d,
                      .granularity_bytes = 512,
                      .alignment_bytes = 512,
                      .mapping_bytes = 2 * HR_MIB,
                      .take = take,
                      .give_back = give_back,
                      .reserve = reserve,
                      .release = release,
                      .map = map,
                      .unmap = give_back};
    allocator_config config = config_of(s, &conf);
    heap h = heap_over(&config, source, NULL);
    asked a = {.allocator = h.allocator, .driver = &d, .conf = &conf, .has_fraction = s->fraction < 1};
    request_subject subject = {&a, UINT64_C(1) << (conf.expandable_segments ? 44 : 40), ask, give};
    request_answer answer = requests_play(&s->mix, &subject);
    ck_assert_str_eq(golden->name, s->mix.name);
    ck_assert_uint_eq(answer.served, golden->served);
    ck_assert_uint_eq(answer.failed, golden->failed);
    statistics_must_be(&h, golden);
    ck_assert_uint_eq(answer.hash, golden->hash);
    ck_assert_uint_eq(a.first_failure_bytes, golden->first_failure_bytes);
    ck_assert_str_eq(a.first_message.data == NULL ? "" : a.first_message.data, golden->first_message);
    text_deinit(&a.first_message);
    heap_must_be_sound(&h);
    heap_close(&h);
    ck_assert_uint_eq(d.held_bytes, 0);
}
END_TEST

static Suite *streams_suite(void)
{
    Suite *suite = suite_create("caching against PyTorch");
    TCase *streams = tcase_create("streams");
    tcase_add_loop_test(streams, gives_pytorchs_addresses, 0,
                        sizeof caching_goldens / sizeof *caching_goldens);
    suite_add_tcase(suite, streams);
    return suite;
}

TEST_MAIN(streams_suite())
