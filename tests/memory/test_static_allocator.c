// SPDX-License-Identifier: Apache-2.0
// The static allocator: what was planned is served where it was planned, whatever else is asked for is refused, and
// the heap is sound after every operation and after every failure.
#include <string.h>

#include "base/host_mem.h"
#include "heap.h"

enum { RESIDENTS = 3, TENSORS = 40, STEPS = 2, POINTS_MAX = 400 };

// Two steps over the same residents; the second is smaller. Tags of a step begin behind those of the residents.
typedef struct steps_script {
    pack_buffer resident[RESIDENTS], step[STEPS][TENSORS];
    uint32_t resident_tags[RESIDENTS], step_tags[TENSORS];
    allocator_requests steps[STEPS];
    allocator_plan plan;
} steps_script;

static void script_init(steps_script *s)
{
    uint64_t seed = 3;
    *s = (steps_script){.resident = {{0, 1, 1000}, {0, 1, 4096}, {0, 1, 1}}, .resident_tags = {0, 1, 2}};
    for (uint32_t k = 0; k < TENSORS; k++) {
        s->step_tags[k] = RESIDENTS + k;
        for (uint32_t n = 0; n < STEPS; n++) {
            uint32_t birth = (uint32_t)random_between(&seed, 0, 80);
            s->step[n][k] = (pack_buffer){birth, birth + (uint32_t)random_between(&seed, 1, 40),
                                          random_between(&seed, 1, 64 * HR_KIB) >> n};
        }
    }
    for (uint32_t n = 0; n < STEPS; n++) {
        s->steps[n] = (allocator_requests){s->step[n], s->step_tags, TENSORS};
    }
    s->plan = (allocator_plan){{s->resident, s->resident_tags, RESIDENTS}, s->steps, STEPS};
}

static allocator_config static_config(uint64_t limit_bytes)
{
    return (allocator_config){.kind = "static", .limit_bytes = limit_bytes};
}

static heap_counters stats_of(const heap *h)
{
    return allocator_get_stats(h->allocator);
}

static uint64_t plan(heap *h, const steps_script *s)
{
    uint64_t needed = 0;
    hr_err err;
    if (allocator_plan_ahead(h->allocator, &s->plan, &needed, &err) != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return needed;
}

static hr_status ask(heap *h, uint32_t tensor, uint64_t bytes, uint64_t *address)
{
    return allocator_alloc(h->allocator, bytes, tensor, address, NULL);
}

static uint64_t must_get(heap *h, uint32_t tensor, uint64_t bytes)
{
    uint64_t address = 0;
    hr_err err;
    if (allocator_alloc(h->allocator, bytes, tensor, &address, &err) != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return address;
}

static void build(heap *h, const steps_script *s)
{
    for (uint32_t k = 0; k < RESIDENTS; k++) {
        (void)must_get(h, k, s->resident[k].bytes);
    }
}

// One step as its lifetimes say; every address into `addresses`. Sound after every operation.
static void play_step(heap *h, const steps_script *s, uint32_t n, uint64_t addresses[TENSORS])
{
    MUST(allocator_follow(h->allocator, n, NULL) == HR_OK);
    for (uint32_t instant = 0; instant <= 120; instant++) {
        for (uint32_t k = 0; k < TENSORS; k++) {
            if (s->step[n][k].death == instant) {
                allocator_free(h->allocator, addresses[k]);
                heap_must_be_sound(h);
            }
        }
        for (uint32_t k = 0; k < TENSORS; k++) {
            if (s->step[n][k].birth == instant) {
                addresses[k] = must_get(h, RESIDENTS + k, s->step[n][k].bytes);
                heap_must_be_sound(h);
            }
        }
    }
}

// ---- what is planned ------------------------------------------------------------------------------------------

START_TEST(the_pool_is_the_residents_and_the_highest_step_exactly)
{
    steps_script s;
    script_init(&s);
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_open(&config);
    uint64_t offsets[TENSORS], highest = 0;
    for (uint32_t n = 0; n < STEPS; n++) {
        uint64_t height = 0;
        ck_assert_int_eq(pack_offsets(s.step[n], TENSORS, 256, offsets, &height, NULL), HR_OK);
        highest = height > highest ? height : highest;
    }
    ck_assert(allocator_plans(h.allocator));
    ck_assert_uint_eq(plan(&h, &s), 1024 + 4096 + 256 + highest);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 1024 + 4096 + 256 + highest);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 0);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(residents_lie_at_the_bottom_in_order_and_steps_where_they_were_packed)
{
    steps_script s;
    script_init(&s);
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_open(&config);
    uint64_t offsets[TENSORS], addresses[TENSORS], height = 0;
    (void)plan(&h, &s);
    uint64_t bottom = must_get(&h, 0, 1000);
    ck_assert_uint_eq(must_get(&h, 1, 4096), bottom + 1024);
    ck_assert_uint_eq(must_get(&h, 2, 1), bottom + 1024 + 4096);
    uint64_t hash = h.allocator->ops->hash(h.allocator);
    for (uint32_t n = STEPS; n-- > 0;) {
        play_step(&h, &s, n, addresses);
        ck_assert_int_eq(pack_offsets(s.step[n], TENSORS, 256, offsets, &height, NULL), HR_OK);
        for (uint32_t k = 0; k < TENSORS; k++) {
            ck_assert_uint_eq(addresses[k], bottom + 1024 + 4096 + 256 + offsets[k]);
        }
        ck_assert_uint_eq(h.allocator->ops->hash(h.allocator), hash);
    }
    heap_close(&h);
}
END_TEST

START_TEST(counters_are_whole_256_bytes_and_peaks_clear)
{
    steps_script s;
    script_init(&s);
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_open(&config);
    uint64_t addresses[TENSORS], bound = 0;
    (void)plan(&h, &s);
    build(&h, &s);
    ck_assert_uint_eq(stats_of(&h).requested_bytes, 5097);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 5376);
    play_step(&h, &s, 0, addresses);
    ck_assert_int_eq(pack_lower_bound(s.step[0], TENSORS, 256, &bound, NULL), HR_OK);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 5376 + bound);
    ck_assert_uint_eq(stats_of(&h).allocations, RESIDENTS + TENSORS);
    allocator_clear_peaks(h.allocator);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 5376);
    ck_assert_uint_eq(stats_of(&h).allocations, 0);
    ck_assert_uint_eq(stats_of(&h).peak_pool_bytes, stats_of(&h).pool_bytes);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(zero_bytes_are_nowhere_and_an_empty_plan_takes_nothing)
{
    allocator_config config = static_config(HR_MIB);
    heap h = heap_open(&config);
    uint64_t needed = 1;
    allocator_plan nothing = {.step_count = 0};
    ck_assert_int_eq(allocator_plan_ahead(h.allocator, &nothing, &needed, NULL), HR_OK);
    ck_assert_uint_eq(needed, 0);
    ck_assert_uint_eq(must_get(&h, 5, 0), 0);
    allocator_free(h.allocator, 0);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 0);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------

static void must_say(hr_status status, hr_status expected, const hr_err *err, const char *sentence)
{
    ck_assert_int_eq(status, expected);
    ck_assert_str_eq(err->sentence, sentence);
}

START_TEST(what_was_not_planned_is_refused_with_its_reason)
{
    steps_script s;
    script_init(&s);
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_open(&config);
    hr_err err = {0};
    uint64_t address = 0, needed = 0;
    allocator *a = h.allocator;
    must_say(allocator_alloc(a, 1000, 0, &address, &err), HR_STATE, &err,
             "static allocator: tensor 0 needs 1000 bytes before anything is planned");
    (void)plan(&h, &s);
    must_say(allocator_plan_ahead(a, &s.plan, &needed, &err), HR_STATE, &err,
             "static allocator: has a plan already");
    must_say(allocator_alloc(a, 1001, 0, &address, &err), HR_CHECK, &err,
             "static allocator: tensor 0 needs 1001 bytes, 1000 are planned for it");
    must_say(allocator_alloc(a, 256, 999, &address, &err), HR_CHECK, &err,
             "static allocator: tensor 999 needs 256 bytes, 0 are planned for it");
    must_say(allocator_alloc(a, 256, RESIDENTS, &address, &err), HR_CHECK, &err,
             "static allocator: tensor 3 needs 256 bytes, 0 are planned for it"); // of a step, before it
    must_say(allocator_alloc(a, 256, HR_NO_ID, &address, &err), HR_CHECK, &err,
             "static allocator: tensor 4294967295 needs 256 bytes, 0 are planned for it");
    (void)must_get(&h, 0, 1000);
    must_say(allocator_alloc(a, 1000, 0, &address, &err), HR_CHECK, &err,
             "static allocator: the place of tensor 0, 1000 bytes at 0, is not free");
    must_say(allocator_follow(a, STEPS, &err), HR_STATE, &err,
             "static allocator: step 2 of 2 was not planned");
    ck_assert_int_eq(allocator_follow(a, 0, NULL), HR_OK);
    uint64_t held = must_get(&h, RESIDENTS, s.step[0][0].bytes);
    ck_assert_int_eq(allocator_follow(a, 1, &err), HR_STATE);
    allocator_free(a, held);
    ck_assert_int_eq(allocator_follow(a, 1, &err), HR_OK);
    ck_assert_uint_eq(stats_of(&h).allocations, 2);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(a_tensor_that_is_planned_twice_is_refused)
{
    steps_script s;
    script_init(&s);
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_open(&config);
    hr_err err = {0};
    uint64_t needed = 0;
    s.step_tags[7] = s.step_tags[3];
    must_say(allocator_plan_ahead(h.allocator, &s.plan, &needed, &err), HR_CHECK, &err,
             "static allocator: tensor 6 is planned twice");
    script_init(&s);
    (void)plan(&h, &s); // nothing of the failed one is left
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

static void note(void *context, const hr_event *event)
{
    hr_event *last = context;
    *last = *event;
}

START_TEST(a_block_above_the_limit_is_out_of_memory_with_its_size)
{
    steps_script s;
    script_init(&s);
    hr_event last = {0};
    trace_bus bus;
    trace_bus_init(&bus);
    ck_assert(trace_attach(&bus, note, &last));
    allocator_config config = static_config(64 * HR_MIB);
    heap wide = heap_open(&config);
    uint64_t block = plan(&wide, &s), needed = 0;
    heap_close(&wide);
    scripted script = {0};
    config.limit_bytes = block;
    heap exact = heap_over(&config, scripted_backing(&script, false), &bus);
    ck_assert_uint_eq(plan(&exact, &s), block);
    ck_assert_uint_eq(script.last_bytes, block);
    ck_assert_int_eq(last.kind, HR_EVENT_GROW);
    heap_close(&exact);
    ck_assert_int_eq(last.kind, HR_EVENT_SHRINK);
    ck_assert_uint_eq(script.held_bytes, 0);
    config.limit_bytes = block - 1;
    heap narrow = heap_over(&config, scripted_backing(&script, false), &bus);
    ck_assert_int_eq(allocator_plan_ahead(narrow.allocator, &s.plan, &needed, NULL), HR_OOM);
    ck_assert_uint_eq(needed, block);
    ck_assert_int_eq(last.kind, HR_EVENT_OOM);
    ck_assert_uint_eq(last.u.memory.requested_bytes, block);
    ck_assert_uint_eq(stats_of(&narrow).pool_bytes, 0);
    heap_must_be_sound(&narrow);
    heap_close(&narrow);
}
END_TEST

// ---- failures -------------------------------------------------------------------------------------------------

START_TEST(a_failed_host_allocation_changes_nothing_and_the_next_try_works)
{
    steps_script s;
    script_init(&s);
    for (uint32_t k = 0; k < TENSORS; k++) { // all at once, so that none is in another's way
        s.step[0][k].birth = 0;
        s.step[0][k].death = 200;
    }
    int64_t live = hr_host_mem_live();
    allocator_config config = static_config(64 * HR_MIB);
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        ck_assert_uint_lt(nth, POINTS_MAX);
        scripted script = {0};
        heap h = heap_over(&config, scripted_backing(&script, false), NULL);
        uint64_t needed = 0, address = 0;
        uint32_t failures = 0;
        (void)hr_host_mem_fail_at(nth);
        while (allocator_plan_ahead(h.allocator, &s.plan, &needed, NULL) != HR_OK) {
            ck_assert_uint_eq(script.held_bytes, 0);
            failures++;
        }
        MUST(allocator_follow(h.allocator, 0, NULL) == HR_OK);
        for (uint32_t k = 0; k < TENSORS; k++) {
            uint64_t hash = h.allocator->ops->hash(h.allocator);
            hr_status status = ask(&h, RESIDENTS + k, s.step[0][k].bytes, &address);
            if (status == HR_NOMEM) {
                MUST(h.allocator->ops->hash(h.allocator) == hash && address == 0);
                failures++;
                status = ask(&h, RESIDENTS + k, s.step[0][k].bytes, &address);
            }
            MUST(status == HR_OK);
            heap_must_be_sound(&h);
        }
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert_uint_eq(failures, failed_once ? 1 : 0);
        heap_close(&h);
        ck_assert_uint_eq(script.held_bytes, 0);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_refused_range_is_out_of_memory_and_can_be_tried_again)
{
    steps_script s;
    script_init(&s);
    scripted script = {.fail_at = 1};
    allocator_config config = static_config(64 * HR_MIB);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    uint64_t needed = 0, addresses[TENSORS];
    ck_assert_int_eq(allocator_plan_ahead(h.allocator, &s.plan, &needed, NULL), HR_OOM);
    ck_assert_uint_eq(plan(&h, &s), needed);
    build(&h, &s);
    play_step(&h, &s, 0, addresses);
    heap_close(&h);
    ck_assert_uint_eq(script.held_bytes, 0);
}
END_TEST

START_TEST(a_failed_creation_and_a_wrong_alignment_leave_nothing)
{
    int64_t live = hr_host_mem_live();
    scripted script = {0};
    backing source = scripted_backing(&script, false);
    allocator_config config = static_config(HR_MIB);
    allocator *a = NULL;
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_ptr_null(a);
    source.alignment_bytes = 128;
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_DEVICE);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(an_allocator_that_plans_nothing_is_not_asked)
{
    steps_script s;
    script_init(&s);
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t needed = 1;
    ck_assert(!allocator_plans(h.allocator));
    ck_assert_int_eq(allocator_plan_ahead(h.allocator, &s.plan, &needed, NULL), HR_OK);
    ck_assert_uint_eq(needed, 0);
    ck_assert_int_eq(allocator_follow(h.allocator, 17, NULL), HR_OK);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 0);
    heap_close(&h);
}
END_TEST

static Suite *static_suite(void)
{
    Suite *suite = suite_create("static allocator");
    TCase *cases = tcase_create("static allocator");
    tcase_add_test(cases, the_pool_is_the_residents_and_the_highest_step_exactly);
    tcase_add_test(cases, residents_lie_at_the_bottom_in_order_and_steps_where_they_were_packed);
    tcase_add_test(cases, counters_are_whole_256_bytes_and_peaks_clear);
    tcase_add_test(cases, zero_bytes_are_nowhere_and_an_empty_plan_takes_nothing);
    tcase_add_test(cases, what_was_not_planned_is_refused_with_its_reason);
    tcase_add_test(cases, a_tensor_that_is_planned_twice_is_refused);
    tcase_add_test(cases, a_block_above_the_limit_is_out_of_memory_with_its_size);
    tcase_add_test(cases, a_failed_host_allocation_changes_nothing_and_the_next_try_works);
    tcase_add_test(cases, a_refused_range_is_out_of_memory_and_can_be_tried_again);
    tcase_add_test(cases, a_failed_creation_and_a_wrong_alignment_leave_nothing);
    tcase_add_test(cases, an_allocator_that_plans_nothing_is_not_asked);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(static_suite())
