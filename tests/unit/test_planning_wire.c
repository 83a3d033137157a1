// SPDX-License-Identifier: Apache-2.0
// Questions and answers as bytes: they come over as they are; garbled ones are refused or harmless.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "session/planning_wire.h"
#include "unit/planning_use.h"

static uint64_t random_state = 20261121;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void draw_knobs(hr_knobs *knobs)
{
    static const char *const words[] = {"none",  "",  "7", "0.5", "64MiB", "on",      "off",
                                        "graph", "a", "4", "1",   "0",     "caching", "sqrt"};
    hr_knobs_init(knobs);
    for (int k = 0; k < 200; k++) {
        const char *word = words[draw(sizeof words / sizeof *words)];
        (void)!hr_knobs_set(knobs, (hr_knob_id)draw(HR_KNOB_COUNT), word, NULL);
    }
}

START_TEST(questions_come_over_as_they_are)
{
    static planning_question q, r;
    for (int round = 0; round < 200; round++) {
        wire_out o = {0};
        q = (planning_question){.kind = (hr_question_kind)draw(HR_QUESTION_COUNT), .number = draw(1000)};
        q.permission =
            q.kind == HR_QUESTION_FIT ? (hr_fit_permission)draw(HR_PERMISSION_COUNT) : HR_PERMIT_NOTHING;
        draw_knobs(&q.knobs);
        draw_knobs(&q.after);
        q.turn_count = q.kind == HR_QUESTION_TURNS ? 1 + draw(HR_TURNS_MAX) : 0;
        for (uint32_t k = 0; k < q.turn_count; k++) {
            q.turns[k] = turns[draw(TURNS)];
        }
        planning_put_question(&o, &q);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert(planning_get_question(&in, &r));
        ck_assert(r.kind == q.kind && r.number == q.number && r.turn_count == q.turn_count &&
                  r.permission == q.permission);
        ck_assert_mem_eq(&r.knobs, &q.knobs, sizeof q.knobs);
        ck_assert(q.kind != HR_QUESTION_DIFF || memcmp(&r.after, &q.after, sizeof q.after) == 0);
        for (uint32_t k = 0; k < q.turn_count; k++) {
            ck_assert(r.turns[k].knob == q.turns[k].knob && strcmp(r.turns[k].value, q.turns[k].value) == 0);
        }
        for (int k = 0; k < 50; k++) { // of a garbled one nothing is believed
            wire_in cut = {.data = o.data, .bytes = draw((uint32_t)o.bytes)};
            ck_assert(!planning_get_question(&cut, &r));
            o.data[draw((uint32_t)o.bytes)] ^= (uint8_t)(1 + draw(255));
            wire_in garbled = {.data = o.data, .bytes = o.bytes};
            (void)planning_get_question(&garbled, &r);
        }
        wire_out_deinit(&o);
    }
}
END_TEST

START_TEST(a_permission_that_there_is_not_is_refused)
{
    static planning_question q = {.kind = HR_QUESTION_FIT, .number = 1}, r;
    hr_knobs_init(&q.knobs);
    for (uint32_t permission = 0; permission < HR_PERMISSION_COUNT + 3u; permission++) {
        wire_out o = {0};
        q.permission = (hr_fit_permission)permission;
        planning_put_question(&o, &q);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert_int_eq(planning_get_question(&in, &r), permission < HR_PERMISSION_COUNT);
        wire_out_deinit(&o);
    }
    hr_planning *p = started(true);
    ck_assert_uint_eq(hr_planning_ask_fit(p, &q.knobs, HR_PERMISSION_COUNT), 0);
    hr_planning_stop(p);
}
END_TEST

// Follows everything that may be followed, as a screen would.
static uint64_t walk(const hr_answer *a)
{
    const hr_step_plan *p = &a->step_plan;
    uint64_t sum = strlen(a->sentence) + strlen(a->point.knobs) + a->whatif.fits + a->point.plan.fits;
    sum += a->text != NULL ? strlen(a->text) : 0;
    for (size_t n = 0; n < p->instr_count; n++) {
        const hr_step_plan_instr *i = &p->instrs[n];
        sum += strlen(hr_step_plan_text(p, i->name)) + strlen(hr_step_plan_text(p, i->line)) + i->is_alloc +
               i->is_free + i->again + strlen(hr_phase_name((hr_phase)i->phase));
        sum += i->layer == HR_NO_ID ? 0 : p->layers[i->layer].flops;
        sum += i->tensor == HR_NO_ID ? 0 : p->tensors[i->tensor].bytes;
        sum += i->event < p->event_count ? p->events[i->event].seq : 0;
    }
    for (size_t k = 0; k < p->tensor_count; k++) {
        const hr_step_plan_tensor *t = &p->tensors[k];
        sum += strlen(hr_step_plan_text(p, t->name)) + strlen(hr_step_plan_text(p, t->dtype)) +
               t->persistent + t->saved + strlen(hr_step_plan_text(p, t->shape)) +
               strlen(hr_category_name((hr_category)t->category));
        sum += p->tensors[t->owner].bytes + (t->layer == HR_NO_ID ? 0 : p->layers[t->layer].flops);
        sum += t->born == HR_NO_ID ? 0 : p->instrs[t->born].flops;
        sum += t->died == HR_NO_ID ? 0 : p->instrs[t->died].flops;
    }
    for (size_t k = 0; k < p->layer_count; k++) {
        sum += strlen(hr_step_plan_text(p, p->layers[k].name)) +
               strlen(hr_step_plan_text(p, p->layers[k].output_shape));
    }
    for (size_t k = 0; k < p->event_count; k++) {
        sum += strlen(hr_event_name((hr_event_kind)p->events[k].kind));
        sum += p->events[k].u.memory.tensor == HR_NO_ID ? 0 : p->tensors[p->events[k].u.memory.tensor].bytes;
    }
    sum += p->instrs == NULL || p->peak_instr == HR_NO_ID ? 0 : p->instrs[p->peak_instr].flops;
    return sum;
}

// Garbles what `o` holds, a little or a lot; what is still believed can be followed.
static void garble(const wire_out *o, uint32_t rounds)
{
    const int64_t live = hr_host_mem_live();
    uint8_t *copy = malloc(o->bytes);
    uint64_t sum = 0;
    ck_assert_ptr_nonnull(copy);
    for (uint32_t round = 0; round < rounds; round++) {
        hr_answer b;
        const size_t bytes = draw(8) == 0 ? draw((uint32_t)o->bytes) : o->bytes;
        memcpy(copy, o->data, o->bytes);
        for (uint32_t k = 0; k < 1 + draw(4); k++) {
            const uint32_t near = draw(2) == 0 ? 160 : (uint32_t)o->bytes; // heads decide most
            copy[draw(near < o->bytes ? near : (uint32_t)o->bytes)] =
                draw(3) == 0 ? 0xff : (uint8_t)draw(256);
        }
        uint8_t *exact = malloc(bytes + 1); // so that a sanitizer sees the end
        memcpy(exact, copy, bytes);
        wire_in in = {.data = exact, .bytes = bytes};
        if (planning_get_answer(&in, &b)) {
            sum += walk(&b);
            hr_answer_deinit(&b);
        }
        free(exact);
        if (hr_host_mem_live() != live) {
            ck_abort_msg("round %u leaves memory", round);
        }
    }
    free(copy);
    ck_assert_uint_gt(sum + 1, 0);
}

START_TEST(garbled_answers_are_refused_or_harmless)
{
    hr_planning *p = started(true);
    hr_answer a;
    bool seen[HR_QUESTION_COUNT] = {false};
    ask_everything(p, 1);
    while (next_answer(p, &a)) {
        wire_out o;
        hr_answer b;
        put_answer(&o, &a);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert(planning_get_answer(&in, &b));
        ck_assert_uint_eq(walk(&a), walk(&b));
        hr_answer_deinit(&b);
        if (!seen[a.kind] || a.kind == HR_QUESTION_TURNS) {
            garble(&o, a.kind == HR_QUESTION_STEP_PLAN ? 600 : 200);
        }
        seen[a.kind] = true;
        wire_out_deinit(&o);
        hr_answer_deinit(&a);
    }
    ck_assert(seen[HR_QUESTION_TURNS] && seen[HR_QUESTION_STEP_PLAN] && seen[HR_QUESTION_DIFF] &&
              seen[HR_QUESTION_FIT]);
    hr_planning_stop(p);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, questions_come_over_as_they_are);
    tcase_add_test(tests, a_permission_that_there_is_not_is_refused);
    tcase_add_test(tests, garbled_answers_are_refused_or_harmless);
}

int main(int argc, char **argv)
{
    return planning_tests(argc, argv, add, planning_serve_demo);
}
