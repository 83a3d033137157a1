// SPDX-License-Identifier: Apache-2.0
// The bus: completes events, delivers them in order to every sink, costs nothing without one.
#include <check.h>
#include <string.h>

#include "events/bus.h"

typedef struct seen {
    hr_event last;
    uint32_t count;
    uint64_t order; // of the delivery among all sinks
} seen;

static uint64_t deliveries;

static void see(void *context, const hr_event *event)
{
    seen *s = context;
    s->last = *event;
    s->count++;
    s->order = ++deliveries;
}

START_TEST(an_event_is_completed_from_what_is_going_on)
{
    trace_bus bus;
    trace_bus_init(&bus);
    ck_assert_uint_eq(bus.instr, HR_NO_ID);
    bus.step = 3;
    bus.instr = 14;
    bus.phase = HR_PHASE_BACKWARD;
    bus.category = HR_CATEGORY_GRADIENTS;
    bus.device = 1;
    bus.simulated = true;
    bus.now_ns = 777;
    seen s = {0};
    ck_assert(trace_attach(&bus, see, &s));
    hr_event e = {.kind = HR_EVENT_ALLOC, .u.memory.address = 5};
    trace_emit(&bus, &e);
    ck_assert_uint_eq(s.last.version, HR_EVENT_VERSION);
    ck_assert_uint_eq(s.last.step, 3);
    ck_assert_uint_eq(s.last.instr, 14);
    ck_assert_uint_eq(s.last.phase, HR_PHASE_BACKWARD);
    ck_assert_uint_eq(s.last.category, HR_CATEGORY_GRADIENTS);
    ck_assert_uint_eq(s.last.device, 1);
    ck_assert_uint_eq(s.last.time_ns, 777);
    ck_assert_uint_eq(s.last.seq, 0);
    ck_assert_uint_eq(s.last.u.memory.address, 5);
    e = (hr_event){.kind = HR_EVENT_FREE, .category = HR_CATEGORY_STATE};
    trace_emit(&bus, &e);
    ck_assert_uint_eq(s.last.category, HR_CATEGORY_STATE);
    ck_assert_uint_eq(s.last.seq, 1);
    e = (hr_event){.kind = HR_EVENT_STEP};
    trace_emit(&bus, &e);
    ck_assert_uint_eq(s.last.category, 0);
}
END_TEST

START_TEST(real_time_does_not_go_back)
{
    trace_bus bus;
    trace_bus_init(&bus);
    seen s = {0};
    ck_assert(trace_attach(&bus, see, &s));
    uint64_t last_ns = 0;
    for (int i = 0; i < 100; i++) {
        trace_note(&bus, HR_EVENT_LOG, 0, "tick");
        ck_assert_uint_ge(s.last.time_ns, last_ns);
        last_ns = s.last.time_ns;
    }
    ck_assert_uint_gt(last_ns, 0);
}
END_TEST

START_TEST(sinks_hear_in_the_order_they_came)
{
    trace_bus bus;
    trace_bus_init(&bus);
    seen s[TRACE_MAX_SINKS + 1] = {0};
    for (int i = 0; i < TRACE_MAX_SINKS; i++) {
        ck_assert(trace_attach(&bus, see, &s[i]));
    }
    ck_assert(!trace_attach(&bus, see, &s[TRACE_MAX_SINKS]));
    trace_detach(&bus, see, &s[2]);
    trace_detach(&bus, see, &s[2]); // not there any more
    trace_note(&bus, HR_EVENT_LOG, 0, "");
    ck_assert_uint_eq(s[2].count, 0);
    ck_assert_uint_lt(s[1].order, s[3].order);
    ck_assert_uint_lt(s[3].order, s[TRACE_MAX_SINKS - 1].order);
    ck_assert(trace_attach(&bus, see, &s[2]));
    trace_note(&bus, HR_EVENT_LOG, 0, "");
    ck_assert_uint_eq(s[2].count, 1);
    ck_assert_uint_eq(s[0].count, 2);
}
END_TEST

START_TEST(a_note_is_cut_to_its_field)
{
    trace_bus bus;
    trace_bus_init(&bus);
    seen s = {0};
    ck_assert(trace_attach(&bus, see, &s));
    char words[200];
    memset(words, 'x', sizeof words);
    words[sizeof words - 1] = '\0';
    trace_note(&bus, HR_EVENT_KNOB, 12, words);
    ck_assert_uint_eq(s.last.u.note.count, 12);
    ck_assert_uint_eq(strlen(s.last.u.note.text), sizeof s.last.u.note.text - 1);
    trace_note(&bus, HR_EVENT_KNOB, 12, NULL);
    ck_assert_str_eq(s.last.u.note.text, "");
}
END_TEST

START_TEST(no_bus_and_no_sink_are_silent)
{
    hr_event e = {.kind = HR_EVENT_ALLOC};
    trace_emit(NULL, &e);
    trace_note(NULL, HR_EVENT_LOG, 0, "nobody hears");
    trace_bus bus;
    trace_bus_init(&bus);
    trace_emit(&bus, &e);
    seen s = {0};
    ck_assert(trace_attach(&bus, see, &s));
    trace_emit(&bus, &e);
    ck_assert_uint_eq(s.last.seq, 1); // numbers count what was produced, heard or not
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bus");
    TCase *bus = tcase_create("events");
    tcase_add_test(bus, an_event_is_completed_from_what_is_going_on);
    tcase_add_test(bus, real_time_does_not_go_back);
    tcase_add_test(bus, sinks_hear_in_the_order_they_came);
    tcase_add_test(bus, a_note_is_cut_to_its_field);
    tcase_add_test(bus, no_bus_and_no_sink_are_silent);
    suite_add_tcase(suite, bus);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
