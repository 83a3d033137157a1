// SPDX-License-Identifier: Apache-2.0
// Random requests on several streams, served by the caching allocator and by a naive second one: every address,
// refusal and counter is equal. A million requests in all.
#include "heap.h"
#include "memory/caching.h"
#include "naive_caching.h"
#include "refusing.h"

enum { LIVE_MAX = 300, REQUESTS = 1000, SOUND_REQUESTS = 600, REFUSE_EVERY = 7, EPISODES = 63 };

#define NO_LIMIT UINT64_MAX

typedef struct situation {
    const char *name;
    uint64_t limit_bytes, device_bytes; // 0: the limit is not a fraction
    uint64_t max_split_bytes, large_segment_bytes;
    double gc_threshold;
    uint32_t divisions; // roundup_power2_divisions for every size
    bool expandable, refuses_early;
    uint32_t streams;
    uint64_t large_bytes; // of the largest request
    uint32_t live;        // blocks held in the long run
    bool moody;           // every REFUSE_EVERY-th range or mapping is refused by the backing
    caching_order order;
} situation;

static const situation situations[] = {
    {"as it comes", HR_GIB, 0, NO_LIMIT, 20, 0, 0, false, false, 1, 64 * HR_MIB, 40, false,
     CACHING_BY_SEGMENT},
    {"full", 100 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, false, 1, 30 * HR_MIB, 20, false,
     CACHING_BY_SEGMENT},
    {"small blocks, full", 7 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, false, 2, HR_MIB, 60, false,
     CACHING_BY_SEGMENT},
    {"four streams, full", 160 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, false, 4, 24 * HR_MIB, 30, false,
     CACHING_BY_SEGMENT},
    {"max_split", 300 * HR_MIB, 0, 24, 20, 0, 0, false, false, 2, 70 * HR_MIB, 20, false, CACHING_BY_SEGMENT},
    {"max_split, fraction", 300 * HR_MIB, HR_GIB, 40, 12, 0, 0, false, false, 1, 90 * HR_MIB, 20, false,
     CACHING_BY_SEGMENT},
    {"collection", 200 * HR_MIB, HR_GIB, NO_LIMIT, 20, 0.4, 0, false, false, 3, 40 * HR_MIB, 12, false,
     CACHING_BY_SEGMENT},
    {"collection, max_split", 400 * HR_MIB, HR_GIB, 20, 20, 0.6, 0, false, true, 1, 60 * HR_MIB, 16, false,
     CACHING_BY_SEGMENT},
    {"roundup", 200 * HR_MIB, 0, NO_LIMIT, 20, 0, 4, false, false, 1, 30 * HR_MIB, 30, false,
     CACHING_BY_SEGMENT},
    {"refuses early", 150 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, true, 2, 30 * HR_MIB, 20, false,
     CACHING_BY_SEGMENT},
    {"refused ranges", 300 * HR_MIB, 0, 30, 20, 0, 8, false, false, 2, 60 * HR_MIB, 20, true,
     CACHING_BY_SEGMENT},
    {"expandable", HR_GIB, 0, NO_LIMIT, 20, 0, 0, true, false, 1, 64 * HR_MIB, 40, false, CACHING_BY_SEGMENT},
    {"expandable, full", 200 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, true, false, 1, 40 * HR_MIB, 30, false,
     CACHING_BY_SEGMENT},
    {"expandable, streams", 120 * HR_MIB, 0, NO_LIMIT, 4, 0, 0, true, false, 3, 12 * HR_MIB, 40, false,
     CACHING_BY_SEGMENT},
    {"expandable, fraction", 130 * HR_MIB, 500 * HR_MIB, NO_LIMIT, 20, 0, 2, true, true, 2, 30 * HR_MIB, 30,
     false, CACHING_BY_SEGMENT},
    {"expandable, max_split", 300 * HR_MIB, 0, 40, 20, 0, 0, true, false, 2, 90 * HR_MIB, 20, false,
     CACHING_BY_SEGMENT},
    {"expandable, refused", 200 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, true, false, 2, 40 * HR_MIB, 30, true,
     CACHING_BY_SEGMENT},
    {"order by block", 100 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, false, 1, 30 * HR_MIB, 20, false,
     CACHING_BY_BLOCK},
    {"order by address", 100 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, false, false, 2, 30 * HR_MIB, 20, false,
     CACHING_BY_ADDRESS},
    {"order by block, collection", 200 * HR_MIB, HR_GIB, 40, 20, 0.4, 0, false, false, 1, 40 * HR_MIB, 12,
     false, CACHING_BY_BLOCK},
    {"order by block, expandable", 200 * HR_MIB, 0, NO_LIMIT, 20, 0, 0, true, false, 1, 40 * HR_MIB, 30,
     false, CACHING_BY_BLOCK},
    {"order by address, expandable", 120 * HR_MIB, 0, NO_LIMIT, 4, 0, 0, true, false, 3, 12 * HR_MIB, 40,
     false, CACHING_BY_ADDRESS},
};

enum { SITUATION_COUNT = sizeof situations / sizeof situations[0] };

static allocator_config config_of(const situation *s)
{
    allocator_config c = allocator_config_of("caching", s->limit_bytes);
    c.device_bytes = s->device_bytes;
    c.limit_is_fraction = s->device_bytes != 0;
    c.caching.max_split_bytes = s->max_split_bytes == NO_LIMIT ? NO_LIMIT : s->max_split_bytes * HR_MIB;
    c.caching.large_segment_bytes = s->large_segment_bytes * HR_MIB;
    c.caching.gc_threshold = s->gc_threshold;
    c.caching.expandable_segments = s->expandable;
    c.caching.refuses_early = s->refuses_early;
    c.caching.order = s->order;
    for (int k = 0; k < CACHING_ROUNDUP_SIZES; k++) {
        c.caching.roundup_divisions[k] = s->divisions;
    }
    return c;
}

static backing open_backing(refusing *r, const situation *s)
{
    *r = (refusing){.every = s->moody ? REFUSE_EVERY : 0};
    return refusing_open(r, s->device_bytes != 0 ? s->device_bytes : s->limit_bytes, true);
}

// ---- two allocators in step -----------------------------------------------------------------------------------

typedef struct pair {
    refusing sources[2];
    backing model_source;
    heap heap;
    uint64_t live[LIVE_MAX];
    uint32_t count;
    naive_caching model;
} pair;

static pair both;

static void open_both(pair *p, const situation *s)
{
    allocator_config config = config_of(s);
    p->count = 0;
    p->heap = heap_over(&config, open_backing(&p->sources[0], s), NULL);
    p->model_source = open_backing(&p->sources[1], s);
    naive_init(&p->model, &config, &p->model_source);
}

static void close_both(pair *p)
{
    heap_close(&p->heap);
    MUST(p->sources[0].held_bytes == 0 && p->sources[0].reserved_bytes == 0);
    backing_close(&p->model_source);
}

static void request_of_both(pair *p, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    allocator_request r = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    hr_status status = allocator_serve(p->heap.allocator, &r, &address, NULL);
    MUST(status == (address == 0 ? HR_OOM : HR_OK));
    MUST(address == naive_alloc(&p->model, bytes, stream));
    if (address != 0) {
        p->live[p->count++] = address;
    }
}

static void free_of_both(pair *p, const situation *s, uint64_t *seed)
{
    uint64_t at = random_between(seed, 0, p->count - 1), address = p->live[at];
    p->live[at] = p->live[--p->count];
    for (uint32_t others = s->streams; others > 1 && random_between(seed, 0, 3) == 0; others--) {
        uint32_t stream = (uint32_t)random_between(seed, 0, s->streams - 1);
        MUST(caching_record_stream(p->heap.allocator, address, stream, NULL) == HR_OK);
        naive_record(&p->model, address, stream);
    }
    heap_free(&p->heap, address);
    naive_free(&p->model, address);
}

static uint64_t next_request(uint64_t *seed, const situation *s)
{
    uint64_t span = s->large_bytes >> random_between(seed, 0, 16); // sizes of every magnitude
    return 1 + next_random(seed) % span;
}

static void event_of_both(pair *p, const situation *s, uint64_t *seed)
{
    uint32_t stream = (uint32_t)random_between(seed, 0, s->streams - 1);
    caching_events_done(p->heap.allocator, stream);
    naive_events(&p->model, (int)stream);
}

// One request or release; now and then a burst of releases and a large request, as between two steps.
static void act_on_both(pair *p, const situation *s, uint64_t *seed)
{
    uint32_t stream = (uint32_t)random_between(seed, 0, s->streams - 1);
    if (s->streams > 1 && random_between(seed, 0, 9) == 0) {
        event_of_both(p, s, seed);
    }
    if (p->count > 0 && random_between(seed, 0, 199) == 0) {
        uint64_t left = p->count * random_between(seed, 0, 3) / 4;
        while (p->count > left) {
            free_of_both(p, s, seed);
        }
        request_of_both(p, random_between(seed, s->large_bytes / 2, 2 * s->large_bytes), stream);
    } else if (p->count == 0 || (p->count < LIVE_MAX && random_between(seed, 0, 2 * s->live) >= p->count)) {
        request_of_both(p, next_request(seed, s), stream);
    } else {
        free_of_both(p, s, seed);
    }
}

// ---- what has to be equal -------------------------------------------------------------------------------------

typedef struct sums {
    uint64_t requested, active, active_count, allocated, allocated_count, pool, largest, idle, idle_count;
} sums;

static sums sums_of(const naive_caching *m)
{
    sums s = {0};
    for (int i = 0; i < m->count; i++) {
        const naive_block *b = &m->block[i];
        const bool is_active = b->state == NAIVE_USED || b->state == NAIVE_PENDING;
        const bool is_idle = b->state == NAIVE_FREE && !b->expandable && naive_split(m, i);
        s.pool += b->state == NAIVE_UNMAPPED ? 0 : b->size;
        s.requested += is_active ? b->requested : 0;
        s.active += is_active ? b->size : 0;
        s.active_count += is_active ? 1 : 0;
        s.allocated += b->state == NAIVE_USED ? b->size : 0;
        s.allocated_count += b->state == NAIVE_USED ? 1 : 0;
        s.idle += is_idle ? b->size : 0;
        s.idle_count += is_idle ? 1 : 0;
        s.largest = b->state == NAIVE_FREE && b->size > s.largest ? b->size : s.largest;
    }
    MUST(s.pool == m->pool);
    return s;
}

typedef struct spoken {
    const pair *p;
    sums sums;
    int matched;
} spoken;

static void compare_one(void *context, const char *name, uint64_t value)
{
    spoken *s = context;
    const struct {
        const char *name;
        uint64_t value;
    } expected[] = {
        {"active.all.current", s->sums.active_count},
        {"active_bytes.all.current", s->sums.active},
        {"allocated_bytes.all.current", s->sums.allocated},
        {"allocation.all.current", s->sums.allocated_count},
        {"inactive_split.all.current", s->sums.idle_count},
        {"inactive_split_bytes.all.current", s->sums.idle},
        {"num_alloc_retries", s->p->model.retries},
        {"num_oom_rejections", s->p->model.rejections},
        {"num_ooms", s->p->model.ooms},
        {"requested_bytes.all.current", s->sums.requested},
        {"reserved_bytes.all.current", s->sums.pool},
    };
    if (s->matched < (int)(sizeof expected / sizeof *expected) &&
        strcmp(name, expected[s->matched].name) == 0) {
        MUST(value == expected[s->matched].value);
        s->matched++;
    }
}

static void compare_counters(const pair *p)
{
    const heap_counters c = allocator_get_stats(p->heap.allocator);
    const sums s = sums_of(&p->model);
    MUST(c.requested_bytes == s.requested && c.in_use_bytes == s.active);
    MUST(c.pool_bytes == s.pool && c.largest_free_bytes == s.largest);
}

static void compare_statistics(const pair *p)
{
    spoken s = {.p = p, .sums = sums_of(&p->model)};
    p->heap.allocator->ops->statistics(p->heap.allocator, compare_one, &s);
    MUST(s.matched == 11);
}

START_TEST(every_address_is_the_naive_allocators)
{
    const situation *s = &situations[_i];
    uint64_t seed = 3000 + (uint64_t)_i;
    for (int episode = 0; episode < EPISODES; episode++) {
        open_both(&both, s);
        for (uint32_t i = 0; i < REQUESTS; i++) {
            act_on_both(&both, s, &seed);
            compare_counters(&both);
        }
        compare_statistics(&both);
        heap_must_be_sound(&both.heap);
        close_both(&both);
    }
}
END_TEST

START_TEST(the_heap_is_sound_after_every_operation)
{
    const situation *s = &situations[_i];
    uint64_t seed = 4000 + (uint64_t)_i;
    open_both(&both, s);
    for (uint32_t i = 0; i < SOUND_REQUESTS; i++) {
        act_on_both(&both, s, &seed);
        heap_must_be_sound(&both.heap);
        compare_counters(&both);
        compare_statistics(&both);
    }
    close_both(&both);
}
END_TEST

static Suite *model_suite(void)
{
    Suite *suite = suite_create("caching against a naive model");
    TCase *random = tcase_create("random requests");
    tcase_add_loop_test(random, every_address_is_the_naive_allocators, 0, SITUATION_COUNT);
    tcase_add_loop_test(random, the_heap_is_sound_after_every_operation, 0, SITUATION_COUNT);
    suite_add_tcase(suite, random);
    return suite;
}

TEST_MAIN(model_suite())
