// SPDX-License-Identifier: Apache-2.0
// Decision for decision: every address that PyTorch's own allocator gave for a million requests, and what it said when
// it first ran out (golden_caching.h, made by tests/bench/peers/pytorch_caching), from ours.
#include "caching_streams.h"
#include "golden_caching.h"
#include "heap.h"
#include "memory/caching_config.h"
#include "memory/picture.h"
#include "trace/torch_oom.h"

#define MAPPING_BYTES (2 * HR_MIB)
#define NEVER_MAPPED  (UINT64_C(1) << 44) // reservations begin here

// As tests/bench/peers/fake_cuda.c: nothing is ever given twice.
typedef struct driver {
    uint64_t next, next_reservation, held_bytes, has_bytes;
} driver;

static bool hold(driver *d, uint64_t bytes)
{
    bool has = d->held_bytes + bytes <= d->has_bytes;
    d->held_bytes += has ? bytes : 0;
    return has;
}

static uint64_t take(void *context, uint64_t bytes)
{
    driver *d = context;
    uint64_t address = d->next;
    if (!hold(d, bytes)) {
        return 0;
    }
    d->next += bytes;
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
    MUST(address >= NEVER_MAPPED && address % MAPPING_BYTES == 0 && bytes % MAPPING_BYTES == 0);
    return hold(context, bytes);
}

typedef struct asked {
    const caching_stream *stream;
    const driver *driver;
    allocator *allocator;
    bool limit_is_fraction;
    uint64_t first_failure_bytes;
    text first_message;
} asked;

static void keep_message(asked *a, uint64_t bytes)
{
    const caching_stream *s = a->stream;
    torch_driver d = {.total_bytes = s->mix.limit_bytes,
                      .free_bytes = s->mix.limit_bytes - a->driver->held_bytes,
                      .allowed_bytes = a->limit_is_fraction ? a->allocator->counters.limit_bytes : 0,
                      .refuses_early = strstr(s->conf, "throw_on_cudamalloc_oom:True") != NULL,
                      .expandable_segments = strstr(s->conf, "expandable_segments:True") != NULL};
    heap_picture picture;
    MUST(heap_picture_of(a->allocator, &picture, NULL) == HR_OK);
    torch_oom_write(&picture, &d, &a->first_message);
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
    if (status == HR_OOM && a->first_message.length == 0) {
        keep_message(a, bytes);
    }
    return address;
}

static void give(void *context, uint64_t address)
{
    allocator_free(((asked *)context)->allocator, address);
}

static allocator_config config_of(const caching_stream *s)
{
    allocator_config config = allocator_config_of("caching", 0);
    hr_err err;
    torch_conf conf = torch_conf_default();
    if (s->conf[0] != '\0' && torch_conf_parse(s->conf, &conf, &err) != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    const double fraction = conf.fraction < 1 ? conf.fraction : s->fraction;
    config.limit_bytes = (uint64_t)(fraction * (double)s->mix.limit_bytes);
    config.device_bytes = s->mix.limit_bytes;
    config.limit_is_fraction = fraction < 1;
    config.caching = caching_options_of(&conf);
    return config;
}

static void keep_retries(void *context, const char *name, uint64_t value)
{
    uint64_t *kept = context;
    kept[0] = strcmp(name, "num_alloc_retries") == 0 ? value : kept[0];
    kept[1] = strcmp(name, "num_device_alloc") == 0 ? value : kept[1];
}

START_TEST(gives_pytorchs_addresses)
{
    const caching_stream *s = &caching_streams[_i];
    const caching_golden *golden = &caching_goldens[_i];
    driver d = {.next = UINT64_C(1) << 40, .next_reservation = NEVER_MAPPED, .has_bytes = s->mix.limit_bytes};
    backing source = {.context = &d,
                      .granularity_bytes = 512,
                      .alignment_bytes = 512,
                      .mapping_bytes = MAPPING_BYTES,
                      .take = take,
                      .give_back = give_back,
                      .reserve = reserve,
                      .release = release,
                      .map = map,
                      .unmap = give_back};
    allocator_config config = config_of(s);
    heap h = heap_over(&config, source, NULL);
    asked about = {
        .stream = s, .driver = &d, .allocator = h.allocator, .limit_is_fraction = config.limit_is_fraction};
    request_subject subject = {&about, config.caching.expandable_segments ? NEVER_MAPPED : UINT64_C(1) << 40,
                               ask, give};
    request_answer answer = requests_play(&s->mix, &subject);
    heap_counters counters = allocator_get_stats(h.allocator);
    uint64_t kept[2] = {0};
    h.allocator->ops->statistics(h.allocator, keep_retries, kept);
    ck_assert_str_eq(golden->name, s->mix.name);
    ck_assert_uint_eq(answer.served, golden->served);
    ck_assert_uint_eq(answer.failed, golden->failed);
    ck_assert_uint_eq(counters.peak_in_use_bytes, golden->peak_allocated_bytes);
    ck_assert_uint_eq(counters.peak_pool_bytes, golden->peak_reserved_bytes);
    ck_assert_uint_eq(counters.peak_requested_bytes, golden->peak_requested_bytes);
    ck_assert_uint_eq(kept[0], golden->retries);
    ck_assert_uint_eq(kept[1], golden->device_allocs);
    ck_assert_uint_eq(answer.hash, golden->hash);
    ck_assert_uint_eq(about.first_failure_bytes, golden->first_failure_bytes);
    ck_assert_str_eq(about.first_message.length == 0 ? "" : about.first_message.data, golden->first_message);
    text_deinit(&about.first_message);
    heap_must_be_sound(&h);
    heap_close(&h);
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
