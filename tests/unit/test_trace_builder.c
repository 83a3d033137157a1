// SPDX-License-Identifier: Apache-2.0
// Rows of a file become events over block numbers: against a plain table of what lives, and the checker against traces
// with one thing wrong.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "formats/trace.h"

enum { DEVICES = 3, PLACES = 97, ROWS = 30000 };

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg("%s", #condition);                                                                  \
        }                                                                                                    \
    } while (0)

// What lives where, one place for each address that the test draws.
typedef struct place {
    uint64_t bytes; // 0: nothing
    uint32_t block;
    bool retired;
} place;

typedef struct model {
    place places[DEVICES][PLACES];
    uint64_t lost_frees, reused;
    uint64_t first_ns, last_ns;
    uint32_t live, most_live;
} model;

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = hash64_mix(state, 9);
    return state % below;
}

static uint64_t address_of(uint64_t which)
{
    return which == 0 ? 0 : which % 2 == 0 ? which << 40 : which * 512; // address 0 is one as well
}

// The event that a row should have made, one of those that trace_add has pushed since *at.
static void expect(const trace *t, uint32_t *at, const trace_event *row, uint8_t kind, uint64_t bytes)
{
    MUST(*at < t->events.count);
    const trace_event *e = &t->events.data[(*at)++];
    MUST(e->kind == kind && e->bytes == bytes && e->device == row->device && e->row == row->row);
    MUST(e->stream == row->stream && e->name == (kind == TRACE_ALLOC ? row->name : HR_NO_ID));
}

static void follow_alloc(model *m, const trace *t, uint32_t *at, const trace_event *row, place *p)
{
    if (row->bytes == 0) {
        return;
    }
    if (p->bytes != 0) {
        expect(t, at, row, TRACE_FREE, p->bytes);
        MUST(t->events.data[*at - 1].block == p->block);
        m->reused++;
        m->live--;
    }
    expect(t, at, row, TRACE_ALLOC, row->bytes);
    *p = (place){row->bytes, t->events.data[*at - 1].block, false};
    m->live++;
    m->most_live = m->live > m->most_live ? m->live : m->most_live;
}

static void follow_end(model *m, const trace *t, uint32_t *at, const trace_event *row, place *p)
{
    if (p->bytes == 0 || (row->kind == TRACE_RETIRE && p->retired)) {
        m->lost_frees++;
        return;
    }
    expect(t, at, row, row->kind, p->bytes);
    MUST(t->events.data[*at - 1].block == p->block);
    p->retired = true;
    if (row->kind == TRACE_FREE) {
        *p = (place){0};
        m->live--;
    }
}

static trace_event draw_row(uint32_t number)
{
    static const uint8_t kinds[] = {TRACE_ALLOC,  TRACE_ALLOC, TRACE_ALLOC, TRACE_FREE,    TRACE_FREE,
                                    TRACE_RETIRE, TRACE_GROW,  TRACE_STEP,  TRACE_REFUSED, TRACE_SHRINK};
    trace_event row = {.kind = kinds[draw(sizeof kinds)],
                       .device = (uint8_t)draw(DEVICES),
                       .row = number,
                       .stream = (uint16_t)draw(4),
                       .name = HR_NO_ID,
                       .bytes = draw(10) == 0 ? 0 : 1 + draw(1u << 20),
                       .time_ns = 1000000 + 10 * (uint64_t)number};
    row.time_ns -= draw(5) == 0 ? draw(1000) : 0; // not quite in order
    row.name = row.kind == TRACE_ALLOC ? (uint32_t)draw(2) : HR_NO_ID;
    return row;
}

static void follow_row(model *m, trace_builder *b, const trace_event *row, uint64_t which)
{
    const trace *t = b->t;
    uint32_t at = t->events.count;
    place *p = &m->places[row->device][which];
    MUST(trace_live_bytes(b, row->device, address_of(which)) == p->bytes);
    MUST(trace_add(b, *row, address_of(which), NULL) == HR_OK);
    if (row->kind == TRACE_ALLOC) {
        follow_alloc(m, t, &at, row, p);
    } else if (row->kind == TRACE_FREE || row->kind == TRACE_RETIRE) {
        follow_end(m, t, &at, row, p);
    } else {
        expect(t, &at, row, row->kind, row->bytes);
    }
    MUST(at == t->events.count);
    MUST(trace_live_bytes(b, row->device, address_of(which)) == p->bytes);
}

// Times begin at 0 with the first row and never run backwards.
static void check_times(const trace *t, const uint64_t *times)
{
    uint64_t last_ns = 0;
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        uint64_t since_ns = times[e->row] < times[0] ? 0 : times[e->row] - times[0];
        MUST(e->time_ns == (since_ns > last_ns ? since_ns : last_ns));
        last_ns = e->time_ns;
    }
}

START_TEST(events_are_those_of_a_plain_table)
{
    static uint64_t times[ROWS];
    int64_t live = hr_host_mem_live();
    model m = {0};
    trace t = {0};
    trace_builder b;
    hr_err err = {0};
    state = 1 + (uint64_t)_i;
    trace_builder_init(&b, &t);
    ck_assert_uint_eq(intern_add(&t.names, "a", 1), 0);
    ck_assert_uint_eq(intern_add(&t.names, "b", 1), 1);
    for (uint32_t k = 0; k < ROWS; k++) {
        trace_event row = draw_row(k);
        times[k] = row.time_ns;
        follow_row(&m, &b, &row, draw(PLACES));
    }
    ck_assert_uint_eq(t.lost_frees, m.lost_frees);
    ck_assert_uint_eq(t.reused, m.reused);
    ck_assert_uint_eq(t.block_count, m.most_live); // numbers are used again before new ones are
    ck_assert_uint_eq(t.device_count, DEVICES);
    ck_assert(t.has_times);
    ck_assert_msg(trace_check(&t, &err) == HR_OK, "%s", err.sentence);
    check_times(&t, times);
    trace_builder_deinit(&b);
    trace_deinit(&t);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// ---- failures -------------------------------------------------------------------------------------------------

static hr_status add_some(trace *t, trace_builder *b, uint32_t *added)
{
    for (*added = 0; *added < 500; ++*added) {
        uint32_t k = *added;
        trace_event row = {
            .kind = k % 3 == 2 ? TRACE_FREE : TRACE_ALLOC, .row = k, .bytes = 64, .name = HR_NO_ID};
        uint32_t before = t->events.count, blocks = b->live_count;
        hr_status status = trace_add(b, row, 512 * (uint64_t)(k - (k % 3 == 2)), NULL);
        if (status != HR_OK) {
            ck_assert_uint_eq(t->events.count, before); // nothing has changed
            ck_assert_uint_eq(b->live_count, blocks);
            return status;
        }
    }
    return HR_OK;
}

START_TEST(every_failing_request_is_told_and_changes_nothing)
{
    int64_t live = hr_host_mem_live();
    bool failed = true;
    uint64_t nth = 1;
    for (; failed; nth++) {
        trace t = {0};
        trace_builder b;
        uint32_t added = 0;
        trace_builder_init(&b, &t);
        (void)hr_host_mem_fail_at(nth);
        hr_status status = add_some(&t, &b, &added);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(trace_check(&t, NULL), HR_OK);
        trace_builder_deinit(&b);
        trace_deinit(&t);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_uint_gt(nth, 10);
}
END_TEST

START_TEST(a_device_beyond_the_last_is_refused)
{
    trace t = {0};
    trace_builder b;
    hr_err err = {0};
    trace_builder_init(&b, &t);
    trace_event row = {.kind = TRACE_ALLOC, .bytes = 1, .device = TRACE_DEVICES_MAX, .row = 5};
    ck_assert_int_eq(trace_add(&b, row, 0, &err), HR_READ);
    ck_assert_str_eq(err.sentence, "trace: row 5: needed a device below 64, had 64");
    row.device--;
    ck_assert_int_eq(trace_add(&b, row, 0, &err), HR_OK);
    ck_assert_uint_eq(t.device_count, TRACE_DEVICES_MAX);
    trace_builder_deinit(&b);
    trace_deinit(&t);
}
END_TEST

// ---- the checker ----------------------------------------------------------------------------------------------

// alloc 0, alloc 1, retire 0, free 0, step, free 1
static trace small_trace(void)
{
    trace t = {0};
    trace_builder b;
    static const struct {
        uint8_t kind;
        uint64_t address;
    } rows[] = {{TRACE_ALLOC, 1}, {TRACE_ALLOC, 2}, {TRACE_RETIRE, 1},
                {TRACE_FREE, 1},  {TRACE_STEP, 0},  {TRACE_FREE, 2}};
    trace_builder_init(&b, &t);
    for (uint32_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        trace_event row = {.kind = rows[k].kind, .bytes = 8, .time_ns = k, .row = k, .name = HR_NO_ID};
        ck_assert_int_eq(trace_add(&b, row, rows[k].address, NULL), HR_OK);
    }
    trace_builder_deinit(&b);
    return t;
}

static void offends(trace *t, const char *sentence)
{
    hr_err err = {0};
    ck_assert_int_eq(trace_check(t, &err), HR_CHECK);
    ck_assert_str_eq(err.sentence, sentence);
    trace_deinit(t);
}

START_TEST(the_checker_finds_every_offence)
{
    trace t = small_trace();
    ck_assert_int_eq(trace_check(&t, NULL), HR_OK);
    t.events.data[0].kind = TRACE_KINDS;
    offends(&t, "trace: event 0 (row 0) is of no known kind or device");
    t = small_trace();
    t.events.data[1].device = 1;
    offends(&t, "trace: event 1 (row 1) is of no known kind or device");
    t = small_trace();
    t.events.data[4].time_ns = 2;
    offends(&t, "trace: event 4 (row 4) lies before the one ahead of it");
    t = small_trace();
    t.events.data[1].name = 0;
    offends(&t, "trace: event 1 (row 1) has a name that the table does not");
    t = small_trace();
    t.events.data[1].block = 2;
    offends(&t, "trace: event 1 (row 1) has no block, or one that it should not have");
    t = small_trace();
    t.events.data[4].block = 0;
    offends(&t, "trace: event 4 (row 4) has no block, or one that it should not have");
    t = small_trace();
    t.events.data[1].block = 0;
    offends(&t, "trace: event 1 (row 1) allocates a living block, or nothing");
    t = small_trace();
    t.events.data[1].bytes = 0;
    offends(&t, "trace: event 1 (row 1) allocates a living block, or nothing");
    t = small_trace();
    t.events.data[5].block = 0;
    offends(&t, "trace: event 5 (row 5) frees what does not live");
    t = small_trace();
    t.events.data[3].kind = TRACE_RETIRE;
    offends(&t, "trace: event 3 (row 3) retires what does not live");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trace_builder");
    tcase_add_loop_test(tests, events_are_those_of_a_plain_table, 0, 4);
    tcase_add_test(tests, every_failing_request_is_told_and_changes_nothing);
    tcase_add_test(tests, a_device_beyond_the_last_is_refused);
    tcase_add_test(tests, the_checker_finds_every_offence);
    Suite *suite = suite_create("trace_builder");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
