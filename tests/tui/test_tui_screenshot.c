// SPDX-License-Identifier: Apache-2.0
// The made-up step plan tells one story with the scripted engine, and hangs together.
#include "headroom/engine.h"
#include "headroom/event.h"

#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/suite.h"

static hr_step_plan step_plan_at(const char *batch, const char *mode, hr_knobs *knobs)
{
    hr_step_plan p;
    *knobs = *hr_preset_knobs(fake_preset());
    ck_assert_int_eq(hr_knobs_set(knobs, HR_KNOB_BATCH_SIZE, batch, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(knobs, HR_KNOB_EXECUTION_MODE, mode, NULL), HR_OK);
    fake_step_plan_make(knobs, &p);
    return p;
}

static const struct {
    const char *batch, *mode;
} cases[] = {{"128", "eager"}, {"64", "graph"}, {"1", "eager"}, {"256", "eager"}, {"4096", "graph"}};

enum { CASES = sizeof cases / sizeof *cases };

START_TEST(its_peak_is_the_scripted_plans)
{
    for (int k = 0; k < CASES; k++) {
        hr_knobs knobs;
        hr_whatif plan;
        hr_step_plan p = step_plan_at(cases[k].batch, cases[k].mode, &knobs);
        ck_assert(fake_engine_plan(&knobs, &plan));
        ck_assert_int_eq(p.fits, plan.fits);
        ck_assert_uint_eq(p.missing_bytes, plan.missing_bytes);
        if (p.fits) {
            ck_assert_uint_eq(p.peak_in_use_bytes, plan.peak_in_use_bytes);
            ck_assert_uint_eq(p.peak_in_use_bytes, p.instrs[p.peak_instr].in_use_bytes);
        }
        hr_step_plan_deinit(&p);
    }
}
END_TEST

START_TEST(bytes_asked_for_are_those_of_the_tensors_alive)
{
    for (int k = 0; k < CASES; k++) {
        hr_knobs knobs;
        hr_step_plan p = step_plan_at(cases[k].batch, cases[k].mode, &knobs);
        for (uint32_t i = 0; i < p.instr_count; i++) {
            uint64_t sum = 0, sums[HR_CATEGORY_COUNT] = {0};
            for (size_t t = 0; t < p.tensor_count; t++) {
                const hr_step_plan_tensor *x = &p.tensors[t];
                if ((x->born == HR_NO_ID || x->born <= i) && (x->died == HR_NO_ID || i < x->died)) {
                    sum += x->bytes;
                    sums[x->category] += x->bytes;
                }
            }
            ck_assert_uint_eq(p.instrs[i].requested_bytes, sum);
            ck_assert_mem_eq(p.instrs[i].by_category, sums, sizeof sums);
        }
        hr_step_plan_deinit(&p);
    }
}
END_TEST

START_TEST(its_events_are_a_heap_that_can_be)
{
    for (int k = 0; k < CASES; k++) {
        hr_knobs knobs;
        hr_step_plan p = step_plan_at(cases[k].batch, cases[k].mode, &knobs);
        uint64_t in_use = 0, pool = 0;
        for (size_t e = 0; e < p.event_count; e++) {
            const hr_event *event = &p.events[e];
            const hr_event_memory *m = &event->u.memory;
            in_use += event->kind == HR_EVENT_ALLOC ? m->allocated_bytes : 0;
            in_use -= event->kind == HR_EVENT_FREE ? m->allocated_bytes : 0;
            pool += event->kind == HR_EVENT_GROW ? m->allocated_bytes : 0;
            ck_assert_uint_eq(m->in_use_bytes, in_use);
            ck_assert_uint_eq(m->pool_bytes, pool);
            ck_assert_uint_le(in_use, pool);
            ck_assert_uint_le(pool, p.limit_bytes);
            ck_assert_int_eq(e < p.build_events, event->instr == HR_NO_ID);
            ck_assert_int_eq(event->kind == HR_EVENT_OOM, !p.fits && e + 1 == p.event_count);
        }
        hr_step_plan_deinit(&p);
    }
}
END_TEST

SUITE_MAIN("tui step_plan", its_peak_is_the_scripted_plans, bytes_asked_for_are_those_of_the_tensors_alive,
           its_events_are_a_heap_that_can_be)
