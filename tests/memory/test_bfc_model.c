// SPDX-License-Identifier: Apache-2.0
// Random requests, served by the allocator and by a naive second one: every address, refusal, counter and number of a
// chunk is equal. A million requests.
#include <inttypes.h>

#include "base/hash.h"
#include "heap.h"
#include "memory/bfc.h"
#include "naive_bfc.h"

enum {
    SHARE = 4,
    LIVE_MAX = 600,
    REQUESTS = 2000,
    SOUND_REQUESTS = 1500,
    REFUSE_EVERY = 7,
    LOOK_EVERY = 128
};

typedef struct situation {
    const char *name;
    uint64_t limit_bytes;
    bool growth, collect;
    uint64_t small_bytes, large_bytes; // requests lie between them, most of them small
    uint32_t live;                     // blocks held in the long run
    bool refuses;                      // every REFUSE_EVERY-th range is refused by the backing
    uint32_t delay;  // releases that the safe frontier lags behind at most; 0: no timestamps
    double fraction; // fragmentation_fraction
    uint32_t episodes;
    uint64_t golden; // hash of every address that was given
} situation;

// clang-format off
static const situation situations[] = {
    {"one region", 64 * HR_MIB, false, true, 1, 256 * HR_KIB, 400, false, 0, 0, 40, 0x46c0ec3e01c1c495},
    {"one region, full", 4 * HR_MIB, false, true, 1, 64 * HR_KIB, 600, false, 0, 0, 40, 0xe62356984709af47},
    {"growth", 256 * HR_MIB, true, false, 1, HR_MIB, 300, false, 0, 0, 40, 0xc9c52b4506ef446f},
    {"growth, full, odd limit", 30 * HR_MIB + 12345, true, false, 1, 2 * HR_MIB, 200, false, 0, 0, 40, 0x9fb73e81b2eb0393},
    {"growth with collection", 40 * HR_MIB + 777, true, true, 256, 12 * HR_MIB, 24, false, 0, 0, 60, 0x395df567769a82ab},
    {"growth with collection, few", 64 * HR_MIB, true, true, 1, 40 * HR_MIB, 6, false, 0, 0, 60, 0x5e0cb29e53de6505},
    {"growth, refused regions", 100 * HR_MIB, true, true, 1, 24 * HR_MIB, 16, true, 0, 0, 40, 0xca4edda42f476c20},
    {"large blocks", 24 * HR_GIB, false, true, HR_MIB, 4 * HR_GIB, 40, false, 0, 0, 40, 0xc668a8c72c2ddba4},
    {"a few pages", 4321, true, true, 1, 1500, 6, false, 0, 0, 40, 0x17b7dce194cdfb41},
    {"a fraction is split off", 24 * HR_GIB, false, true, HR_MIB, 4 * HR_GIB, 40, false, 0, 0.01, 20, 0x9c67447a434e4866},
    {"stamps, close behind", 2 * HR_MIB, false, true, 1, 256 * HR_KIB, 100, false, 8, 0, 20, 0xc47ffa2a51ee09e5},
    {"stamps, far behind", 4 * HR_MIB, false, true, 1, 256 * HR_KIB, 150, false, 200, 0, 20, 0x32017c281a7a0906},
    {"stamps, full", 2 * HR_MIB, false, true, 1, 512 * HR_KIB, 40, false, 60, 0, 30, 0xe54ca486e90e61e0},
    {"stamps, growth with collection", 40 * HR_MIB + 777, true, true, 256, 12 * HR_MIB, 24, false, 20, 0, 30, 0xf086391c7fc51379},
    {"stamps, refused regions", 60 * HR_MIB, true, true, 1, 24 * HR_MIB, 16, true, 40, 0.05, 30, 0x7c33c74a2b598ebd},
};
// clang-format on

enum { SITUATION_COUNT = sizeof situations / sizeof situations[0] };

// A numbers backing that refuses every REFUSE_EVERY-th take.
typedef struct moody {
    backing numbers;
    uint64_t takes;
    bool refuses;
} moody;

static uint64_t moody_take(void *context, uint64_t bytes)
{
    moody *m = context;
    m->takes++;
    return m->refuses && m->takes % REFUSE_EVERY == 0 ? 0 : m->numbers.take(m->numbers.context, bytes);
}

static void moody_give_back(void *context, uint64_t address, uint64_t bytes)
{
    moody *m = context;
    m->numbers.give_back(m->numbers.context, address, bytes);
}

static backing moody_open(moody *m, const situation *s)
{
    *m = (moody){.refuses = s->refuses};
    ck_assert_int_eq(backing_numbers_open(s->limit_bytes, 4096, &m->numbers, NULL), HR_OK);
    backing b = m->numbers;
    b.context = m;
    b.take = moody_take;
    b.give_back = moody_give_back;
    b.close = NULL;
    return b;
}

static uint64_t next_request(uint64_t *seed, const situation *s)
{
    uint64_t span = s->large_bytes - s->small_bytes;
    span >>= random_between(seed, 0, 11); // sizes of every magnitude
    return s->small_bytes + next_random(seed) % (span + 1);
}

typedef struct pair {
    moody moods[2];
    backing model_source;
    heap heap;
    uint64_t live[LIVE_MAX];
    uint32_t count;
    bfc_counter counter;
    uint64_t addresses; // hash
    naive_bfc model;
} pair;

static pair both;

static void open_both(pair *p, const situation *s)
{
    allocator_config config = {.kind = "bfc",
                               .limit_bytes = s->limit_bytes,
                               .growth = s->growth,
                               .garbage_collection = s->collect,
                               .timestamped = s->delay > 0,
                               .fragmentation_fraction = s->fraction};
    p->count = 0;
    p->counter = (bfc_counter){0};
    p->heap = heap_over(&config, moody_open(&p->moods[0], s), NULL);
    bfc_share_counter(p->heap.allocator, &p->counter);
    p->model_source = moody_open(&p->moods[1], s);
    naive_init(&p->model, &config, &p->model_source);
}

static void close_both(pair *p)
{
    heap_close(&p->heap);
    backing_close(&p->moods[0].numbers);
    backing_close(&p->moods[1].numbers);
}

static void request_of_both(pair *p, uint64_t bytes, uint64_t freed_before)
{
    uint64_t address = 0;
    allocator_request r = {.bytes = bytes, .freed_before = freed_before, .tensor = HR_NO_ID};
    hr_status status = allocator_serve(p->heap.allocator, &r, &address, NULL);
    MUST(status == (address == 0 ? HR_OOM : HR_OK));
    MUST(address == naive_alloc(&p->model, bytes, freed_before));
    p->addresses = hash64_mix(p->addresses, address);
    if (address != 0) {
        p->live[p->count++] = address;
    }
}

static void free_of_both(pair *p, uint64_t *seed)
{
    uint64_t at = random_between(seed, 0, p->count - 1), address = p->live[at];
    p->live[at] = p->live[--p->count];
    heap_free(&p->heap, address);
    naive_free(&p->model, address);
}

static void compare_counters(const pair *p)
{
    heap_counters s = allocator_get_stats(p->heap.allocator);
    uint64_t largest = 0;
    for (int i = 0; i < p->model.count; i++) {
        const naive_chunk *c = &p->model.chunk[i];
        largest = !c->used && c->size > largest ? c->size : largest;
    }
    MUST(s.in_use_bytes == p->model.in_use);
    MUST(s.pool_bytes == p->model.pool);
    MUST(s.peak_in_use_bytes == p->model.peak_in_use);
    MUST(s.largest_free_bytes == largest);
}

typedef struct comparison {
    const naive_bfc *model;
    int at;
} comparison;

static bool compare_chunk(void *context, const heap_chunk *seen)
{
    comparison *c = context;
    MUST(c->at < c->model->count);
    const naive_chunk *n = &c->model->chunk[c->at++];
    MUST(seen->address == n->address && seen->size_bytes == n->size && seen->requested_bytes == n->requested);
    MUST(seen->region_address == n->region && seen->region_bytes == n->region_size);
    MUST(seen->in_use == n->used && seen->freed_at == (n->used ? 0 : n->stamp));
    MUST(seen->handle == (uint32_t)n->handle);
    return true;
}

static void compare_chunks(const pair *p)
{
    comparison c = {.model = &p->model};
    p->heap.allocator->ops->walk(p->heap.allocator, compare_chunk, &c);
    MUST(c.at == p->model.count);
}

// Most requests take anything; some name a stamp of the recent past, or of the future.
static uint64_t next_stamp(const pair *p, const situation *s, uint64_t *seed)
{
    if (s->delay == 0 || random_between(seed, 0, 3) > 0) {
        return 0;
    }
    uint64_t now = p->counter.last + 2, back = random_between(seed, 0, 2 * s->delay);
    return back < now ? now - back : 1;
}

static void advance_frontier(pair *p, const situation *s, uint64_t *seed)
{
    uint64_t lag = random_between(seed, 0, s->delay);
    if (s->delay > 0 && random_between(seed, 0, s->delay / 4) == 0 && p->counter.last > lag) {
        uint64_t frontier = p->counter.last - lag;
        bfc_set_safe_frontier(p->heap.allocator, frontier);
        p->model.frontier = frontier > p->model.frontier ? frontier : p->model.frontier;
    }
}

// One request or release; now and then a burst of releases and a large request, as between two steps.
static void act_on_both(pair *p, const situation *s, uint64_t *seed)
{
    if (p->count > 0 && random_between(seed, 0, 399) == 0) {
        uint64_t left = p->count * random_between(seed, 0, 3) / 4;
        while (p->count > left) {
            free_of_both(p, seed);
        }
        request_of_both(p, random_between(seed, s->large_bytes / 2, s->large_bytes), next_stamp(p, s, seed));
    } else if (p->count == 0 || (p->count < LIVE_MAX && random_between(seed, 0, 2 * s->live) >= p->count)) {
        request_of_both(p, next_request(seed, s), next_stamp(p, s, seed));
    } else {
        free_of_both(p, seed);
    }
    advance_frontier(p, s, seed);
}

// Many short lives rather than a long one: a heap that has been collected once settles on a single region.
START_TEST(every_address_is_the_naive_allocators)
{
    const situation *s = &situations[_i];
    uint64_t seed = 1000 + (uint64_t)_i;
    uint64_t forced = 0;
    both.addresses = 0;
    for (uint32_t episode = 0; episode < s->episodes; episode++) {
        open_both(&both, s);
        for (uint32_t i = 0; i < REQUESTS; i++) {
            act_on_both(&both, s, &seed);
            compare_counters(&both);
            if (i % LOOK_EVERY == 0) {
                compare_chunks(&both);
            }
        }
        heap_must_be_sound(&both.heap);
        forced += both.model.forced;
        close_both(&both);
    }
    ck_assert_msg(both.addresses == s->golden, "%s: the addresses hash to 0x%016" PRIx64, s->name,
                  both.addresses);
    ck_assert_msg((forced > 0) == (s->delay > 0), "%s: %" PRIu64 " forced merges", s->name, forced);
}
END_TEST

START_TEST(the_heap_is_sound_after_every_operation)
{
    const situation *s = &situations[_i];
    uint64_t seed = 2000 + (uint64_t)_i;
    open_both(&both, s);
    for (uint32_t i = 0; i < SOUND_REQUESTS; i++) {
        act_on_both(&both, s, &seed);
        heap_must_be_sound(&both.heap);
        compare_counters(&both);
        compare_chunks(&both);
    }
    close_both(&both);
}
END_TEST

static Suite *model_suite(void)
{
    Suite *suite = suite_create("bfc against a naive model");
    TCase *random = tcase_create("random requests");
    tcase_add_loop_test(random, every_address_is_the_naive_allocators, 0, SITUATION_COUNT);
    tcase_add_loop_test(random, the_heap_is_sound_after_every_operation, 0, SITUATION_COUNT);
    suite_add_tcase(suite, random);
    return suite;
}

TEST_MAIN(model_suite())
