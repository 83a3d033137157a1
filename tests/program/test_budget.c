// SPDX-License-Identifier: Apache-2.0
// checkpoint.strategy=budget, as a program: within the budget by whatever measure the place has, never higher under a smaller budget,
// and as cheap as the best of all choices of what a chain keeps.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "program/compile.h"
#include "program/drawn_network.h"

enum {
    BATCH = 64,
    CHAIN_MOST = 8,
    CHAINS = HEADROOM_SANITIZED ? 4 : 8,
    NETWORKS = HEADROOM_SANITIZED ? 40 : 200,
    OTHERS = HEADROOM_SANITIZED ? 12 : 60,
    FLOORS = HEADROOM_SANITIZED ? 4 : 20,
    PLACES = HEADROOM_SANITIZED ? 6 : 20,
    STEP = 20,
    LONG = 36
};

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_nothing(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

// A place where each program needs up to a quarter more than it asks for, as it comes.
static hr_status rough_judge(void *context, const program *p, target_judgement *out, hr_err *err)
{
    (void)context, (void)err;
    uint64_t hash = 1469598103934665603U;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        hash = (hash ^ (p->instrs[n].op + 31U * p->instrs[n].again)) * 1099511628211U;
    }
    const uint64_t asked = program_peak_bytes(p);
    *out = (target_judgement){asked + asked / 400 * ((hash >> 32) % 100), true};
    return HR_OK;
}

// A place of *context bytes.
static hr_status narrow_judge(void *context, const program *p, target_judgement *out, hr_err *err)
{
    (void)err;
    *out = (target_judgement){.peak_bytes = program_peak_bytes(p)};
    out->fits = out->peak_bytes <= *(const uint64_t *)context;
    return HR_OK;
}

// A place without a limit, whatever its context is for.
static hr_status wide_judge(void *context, const program *p, target_judgement *out, hr_err *err)
{
    (void)context, (void)err;
    *out = (target_judgement){program_peak_bytes(p), true};
    return HR_OK;
}

// A place that adds up what it is shown.
static hr_status counting_judge(void *context, const program *p, target_judgement *out, hr_err *err)
{
    (void)err;
    *(uint64_t *)context += p->instr_count;
    *out = (target_judgement){program_peak_bytes(p), true};
    return HR_OK;
}

static const target_judge rough = {.judge = rough_judge};
static const hr_target exact_target = {
    .name = "nothing", .key = 77, .ask = ask_nothing, .fuses = fuses_nothing};
static const hr_target rough_target = {
    .name = "nothing", .key = 77, .judge = &rough, .ask = ask_nothing, .fuses = fuses_nothing};

static hr_status compile_on_tape(const hr_model *model, const hr_target *target, const char *strategy,
                                 const char *tape, bool eager, program **out, hr_err *err)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategy, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_TAPE, tape, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_MODE, eager ? "eager" : "graph", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "optimizer.kind=sgd", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=64", NULL), HR_OK);
    return program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, target, out, err);
}

static hr_status try_compile(const hr_model *model, const hr_target *target, const char *strategy, bool eager,
                             program **out, hr_err *err)
{
    return compile_on_tape(model, target, strategy, "once", eager, out, err);
}

typedef struct measured {
    bool kept;
    uint64_t peak, cost;
} measured;

static measured measure(const hr_model *model, const hr_target *target, const char *strategy, bool eager)
{
    hr_err err = {0};
    program *p = NULL;
    measured m = {0};
    const hr_status status = try_compile(model, target, strategy, eager, &p, &err);
    if (status == HR_OK) {
        ck_assert_str_eq(err.sentence, "");
        ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
        m = (measured){.kept = true, .peak = program_peak_bytes(p)};
        if (target->judge != NULL) {
            target_judgement seen;
            ck_assert_int_eq(target->judge->judge(target->judge->context, p, &seen, NULL), HR_OK);
            m.peak = seen.peak_bytes;
        }
        for (uint32_t n = 0; n < p->instr_count; n++) {
            m.cost += p->instrs[n].again ? p->instrs[n].flops + 20 * p->instrs[n].bytes_moved : 0;
        }
    } else {
        ck_assert_msg(status == HR_CONSTRAINT, "%s", err.sentence);
        ck_assert_msg(strstr(err.sentence, "the smallest peak that was found is") != NULL, "%s",
                      err.sentence);
    }
    program_destroy(p);
    return m;
}

static measured within(const hr_model *model, const hr_target *target, uint64_t budget, bool eager)
{
    char strategy[48];
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", budget);
    const measured m = measure(model, target, strategy, eager);
    ck_assert_msg(!m.kept || m.peak <= budget, "%" PRIu64 " of %" PRIu64, m.peak, budget);
    return m;
}

// ---- chains -------------------------------------------------------------------------------------------------------

static hr_model *draw_chain(uint64_t seed, uint32_t layers)
{
    char text[DRAWN_TEXT];
    uint64_t state = seed;
    int at = snprintf(text, sizeof text,
                      "device: {vram: 1GiB}\nmodel:\n  input: {shape: [1, 1, 8]}\n  classes: 4\n"
                      "  layers:\n    - {kind: flatten}\n");
    for (uint32_t l = 0; l < layers; l++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "    - {name: d%" PRIu32 ", kind: dense, units: %" PRIu64 ", bias: false}\n", l,
                       l + 1 == layers ? 4 : 4 + draw(&state, 60));
    }
    return model_from_text(text);
}

static void name_kept(uint32_t kept, uint32_t layers, char *list, size_t size)
{
    int at = snprintf(list, size, "list:");
    for (uint32_t l = 0; l + 1 < layers; l++) {
        if ((kept >> l & 1) != 0) {
            at += snprintf(list + at, size - (size_t)at, "%sd%" PRIu32, at > 5 ? "," : "", l);
        }
    }
}

START_TEST(chains_are_as_cheap_as_the_best_of_all_lists_at_the_peak_of_each)
{
    static measured all[1 << CHAIN_MOST];
    const uint32_t layers = 3 + (uint32_t)_i % (CHAIN_MOST - 2), lists = 1U << (layers - 1);
    hr_model *model = draw_chain((uint64_t)_i + 3, layers);
    for (uint32_t kept = 1; kept < lists; kept++) {
        char list[128];
        name_kept(kept, layers, list, sizeof list);
        all[kept] = measure(model, &exact_target, list, false);
    }
    for (uint32_t at = 1; at < lists; at++) {
        uint64_t best = UINT64_MAX;
        for (uint32_t k = 1; k < lists; k++) {
            best = all[k].peak <= all[at].peak && all[k].cost < best ? all[k].cost : best;
        }
        const measured m = within(model, &exact_target, all[at].peak, false);
        ck_assert_msg(m.kept && m.cost <= best, "%" PRIu32 " layers, %" PRIu64 ": %" PRIu64 " not %" PRIu64,
                      layers, all[at].peak, m.cost, best);
    }
    model_destroy(model);
}
END_TEST

// ---- any network --------------------------------------------------------------------------------------------------

START_TEST(no_step_is_above_its_budget_and_none_is_higher_under_a_smaller_one)
{
    const hr_target *target = _i % 2 == 0 ? &exact_target : &rough_target;
    const bool eager = _i / 2 % 2 == 1;
    hr_model *model = draw_network((uint64_t)_i * 7 + 1);
    const measured plain = measure(model, target, "none", eager);
    measured before = {true, plain.peak, 0};
    for (uint64_t part = STEP; part > 0; part--) {
        const measured m = within(model, target, plain.peak / STEP * part, eager);
        ck_assert(!m.kept || (before.kept && m.peak <= before.peak));
        before = m.kept ? m : (measured){.kept = false};
    }
    model_destroy(model);
}
END_TEST

// By the plain step alone: what one of its instructions holds is held by that instruction in every way.
START_TEST(no_way_is_below_what_one_instruction_holds)
{
    const bool eager = _i % 2 == 1;
    const instr *widest;
    program *plain = NULL;
    hr_model *model = draw_network((uint64_t)_i * 13 + 4);
    ck_assert_int_eq(try_compile(model, &exact_target, "none", eager, &plain, NULL), HR_OK);
    const uint64_t floor_bytes = program_floor_bytes(plain, &widest);
    ck_assert_ptr_nonnull(widest);
    for (uint64_t part = STEP; part > 0; part--) {
        const measured m = within(model, &exact_target, program_peak_bytes(plain) / STEP * part, eager);
        ck_assert_msg(!m.kept || m.peak >= floor_bytes, "%" PRIu64 ", said %" PRIu64, m.peak, floor_bytes);
    }
    program_destroy(plain);
    model_destroy(model);
}
END_TEST

// One dense layer of 512 by 4 without bias, of 64 samples. Weights, samples and labels stay; the gradient of the weights is made from
// that of the result.
START_TEST(the_floor_of_one_layer_is_what_is_worked_out_by_hand)
{
    const uint64_t weights = 512 * 4 * sizeof(float), results = BATCH * 4 * sizeof(float);
    const uint64_t stays = weights + BATCH * 512 * sizeof(float) + BATCH * sizeof(int32_t);
    const instr *widest;
    char name[96];
    program *p = NULL;
    hr_model *model =
        model_from_text("device: {vram: 1GiB}\nmodel:\n  input: {shape: [1, 1, 512]}\n  classes: 4\n"
                        "  layers:\n    - {kind: flatten}\n"
                        "    - {name: only, kind: dense, units: 4, bias: false}\n");
    ck_assert_int_eq(try_compile(model, &exact_target, "none", _i == 1, &p, NULL), HR_OK);
    ck_assert_uint_eq(program_floor_bytes(p, &widest), stays + weights + results);
    ck_assert_str_eq(program_instr_name(p, widest, name, sizeof name), "only/dense_bwd_weights");
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// All that was judged was compiled, and drafts that ways are found in are not judged.
START_TEST(what_is_found_within_a_budget_says_how_much_was_compiled_for_it)
{
    uint64_t judged = 0;
    const target_judge counting = {.judge = counting_judge, .context = &judged};
    hr_target target = exact_target;
    program *plain = NULL, *kept = NULL;
    char strategy[48];
    target.judge = &counting;
    hr_model *model = draw_network(4);
    ck_assert_int_eq(try_compile(model, &target, "none", false, &plain, NULL), HR_OK);
    ck_assert_uint_eq(plain->tried_instrs, 0);
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", program_peak_bytes(plain) / 8 * 7);
    judged = 0;
    ck_assert_int_eq(try_compile(model, &target, strategy, false, &kept, NULL), HR_OK);
    ck_assert_uint_gt(judged, kept->instr_count);
    ck_assert_uint_gt(kept->tried_instrs + kept->instr_count, judged);
    program_destroy(plain);
    program_destroy(kept);
    model_destroy(model);
}
END_TEST

// Whatever the place counts, and however little the lowest way fuses.
START_TEST(what_is_refused_says_what_one_instruction_needs)
{
    hr_err err = {0};
    program *below = NULL;
    const hr_target *target = _i / 2 % 2 == 0 ? &exact_target : &rough_target;
    hr_model *model = draw_network((uint64_t)_i * 13 + 4);
    ck_assert_int_eq(try_compile(model, target, "budget:1B", _i % 2 == 1, &below, &err), HR_CONSTRAINT);
    ck_assert_msg(strstr(err.sentence, " alone needs ") != NULL, "%s", err.sentence);
    ck_assert_msg(strstr(err.sentence, ", weights, gradients and optimizer state included") != NULL, "%s",
                  err.sentence);
    ck_assert_msg(strstr(err.hint, ", -s optimizer.fused_backward=on, or a smaller batch.size") != NULL, "%s",
                  err.hint);
    model_destroy(model);
}
END_TEST

static uint64_t smallest(const hr_model *model, bool eager)
{
    hr_err err = {0};
    program *p = NULL;
    uint64_t bytes = 0;
    char typed[64];
    ck_assert_int_eq(try_compile(model, &exact_target, "budget:1B", eager, &p, &err), HR_CONSTRAINT);
    const char *said = strstr(err.hint, "budget:");
    ck_assert_msg(said != NULL, "%s", err.hint);
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(said + 7, ","), said + 7);
    ck_assert(hr_bytes_parse(typed, &bytes));
    return bytes;
}

// Recomputing each layer once needs two roots of the layers at least; what recomputes at any depth needs fewer, and each value that it
// has let go of it makes again before it is read (program_check, in measure).
START_TEST(a_long_chain_comes_below_all_that_recompute_a_layer_once)
{
    const bool eager = _i % 2 == 1;
    char text[DRAWN_TEXT];
    int at = snprintf(text, sizeof text,
                      "device: {vram: 1GiB}\nmodel:\n  input: {shape: [1, 1, 64]}\n  classes: 64\n"
                      "  layers:\n    - {kind: flatten}\n");
    for (uint32_t l = 0; l < LONG; l++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "    - {name: d%" PRIu32 ", kind: dense, units: 64, bias: false, activation: tanh}\n",
                       l);
    }
    hr_model *model = model_from_text(text);
    uint64_t once = UINT64_MAX;
    for (uint32_t layers = 1; layers < LONG; layers++) {
        char strategy[32];
        snprintf(strategy, sizeof strategy, "every:%" PRIu32, layers);
        const measured m = measure(model, &exact_target, strategy, eager);
        once = m.peak < once ? m.peak : once;
    }
    const uint64_t least = smallest(model, eager);
    ck_assert_msg(least < once, "%" PRIu64 ", not below %" PRIu64, least, once);
    const measured m = within(model, &exact_target, least, eager);
    ck_assert(m.kept && m.peak <= least);
    model_destroy(model);
}
END_TEST

START_TEST(what_is_large_enough_for_the_plain_step_is_the_plain_step)
{
    hr_model *model = draw_network((uint64_t)_i + 5);
    const measured plain = measure(model, &exact_target, "none", _i % 2 == 1);
    const measured same = within(model, &exact_target, plain.peak, _i % 2 == 1);
    ck_assert(same.kept && same.cost == 0 && same.peak == plain.peak);
    model_destroy(model);
}
END_TEST

START_TEST(at_the_peak_of_another_strategy_it_is_kept_and_no_dearer)
{
    static const char *const others[] = {"selective", "blocks", "sqrt", "every:2", "every:4"};
    const hr_target *target = _i % 2 == 0 ? &exact_target : &rough_target;
    const bool eager = _i / 2 % 2 == 1;
    hr_model *model = draw_network((uint64_t)_i * 11 + 2);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const measured other = measure(model, target, others[k], eager);
        const measured m = within(model, target, other.peak, eager);
        ck_assert_msg(m.kept && m.cost <= other.cost, "%s: %" PRIu64 ", not %" PRIu64, others[k], m.cost,
                      other.cost);
    }
    model_destroy(model);
}
END_TEST

START_TEST(a_budget_above_what_there_is_does_as_well_as_one_of_that)
{
    uint64_t limit = 0;
    const bool eager = _i % 2 == 1;
    const target_judge narrow = {.judge = narrow_judge, .context = &limit};
    hr_target target = exact_target;
    target.judge = &narrow;
    hr_model *model = draw_network((uint64_t)_i + 5);
    const measured plain = measure(model, &exact_target, "none", eager);
    limit = plain.peak / 20 * 18;
    const measured tight = within(model, &target, limit, eager);
    const measured wide = within(model, &target, 2 * plain.peak, eager);
    ck_assert(wide.kept && (!tight.kept || (wide.peak <= limit && wide.cost == tight.cost)));
    // Where nothing fits it is what needs least, and whoever holds it says so.
    limit = 1;
    const measured least = within(model, &target, plain.peak, eager);
    ck_assert(least.kept && !within(model, &target, least.peak - 1, eager).kept);
    model_destroy(model);
}
END_TEST

// A place where one operation takes a thousand times as long as any other.
static uint64_t one_takes_long(void *context, const program *p, const instr *i)
{
    (void)p;
    return i->op == *(const hr_op *)context ? 1000 : 1;
}

static uint64_t time_again(const target_judge *judge, const program *p)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].again ? judge->duration_ns(judge->context, p, &p->instrs[n]) : 0;
    }
    return sum;
}

// Slow instructions that run again at place k, of the step that is compiled for it, and of the one for the other place.
typedef struct slow_again {
    uint64_t own, others;
} slow_again;

static void compare_places(uint64_t seed, bool eager, slow_again out[2])
{
    static hr_op slow[] = {HR_OP_BATCH_NORM_APPLY, HR_OP_CONV2D};
    target_judge judges[2];
    program *p[2];
    char strategy[48];
    hr_model *model = draw_network(seed);
    const measured plain = measure(model, &exact_target, "none", eager);
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", plain.peak / 8 * 7);
    for (int k = 0; k < 2; k++) {
        hr_target target = exact_target;
        judges[k] = (target_judge){.judge = wide_judge, .context = &slow[k], .duration_ns = one_takes_long};
        target.judge = &judges[k];
        (void)try_compile(model, &target, strategy, eager, &p[k], NULL);
    }
    for (int k = 0; k < 2; k++) {
        const bool both = p[0] != NULL && p[1] != NULL;
        out[k].own = both ? time_again(&judges[k], p[k]) / 1000 : 0;
        out[k].others = both ? time_again(&judges[k], p[1 - k]) / 1000 : 0;
    }
    program_destroy(p[0]);
    program_destroy(p[1]);
    model_destroy(model);
}

// However many operations it has.
START_TEST(what_takes_long_at_a_place_is_not_made_again_there)
{
    uint32_t better = 0;
    for (uint64_t seed = 40; seed < 40 + PLACES; seed++) {
        slow_again seen[2];
        compare_places(seed, seed % 2 == 1, seen);
        for (int k = 0; k < 2; k++) {
            ck_assert_msg(seen[k].own <= seen[k].others, "%" PRIu64 ": %" PRIu64 ", %" PRIu64 " of the other",
                          seed, seen[k].own, seen[k].others);
            better += seen[k].own < seen[k].others;
        }
    }
    ck_assert_uint_gt(better, PLACES / 4);
}
END_TEST

// They are half of what it reads, and an eager tape that is read from holds them to the end of backward: made again from the logits,
// which have a name, they are on no tape.
START_TEST(an_eager_step_makes_its_probabilities_again)
{
    program *p = NULL;
    hr_err err = {0};
    uint32_t again = 0;
    char strategy[48];
    hr_model *model =
        model_from_text("device: {vram: 1GiB}\nmodel:\n  input: {shape: [1, 1, 8]}\n  classes: 2048\n"
                        "  layers:\n    - {kind: flatten}\n    - {name: a, kind: dense, units: 1024}\n"
                        "    - {name: b, kind: dense, units: 8}\n"
                        "    - {name: out, kind: dense, units: 2048}\n");
    const measured plain = measure(model, &exact_target, "none", true);
    const uint64_t probabilities = BATCH * 2048 * sizeof(float);
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", plain.peak - probabilities / 4 * 3);
    const hr_status status = try_compile(model, &exact_target, strategy, true, &p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        again += p->instrs[n].op == HR_OP_SOFTMAX_XENT && p->instrs[n].again;
    }
    ck_assert_uint_eq(again, 1);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// It keeps nothing for backward: there is nothing to drop.
START_TEST(a_step_without_a_tape_is_as_it_is_or_refused)
{
    const bool eager = _i % 2 == 1;
    char strategy[48];
    hr_err err = {0};
    program *plain = NULL, *same = NULL, *below = NULL;
    hr_model *model = draw_network((uint64_t)_i + 5);
    ck_assert_int_eq(compile_on_tape(model, &exact_target, "none", "none", eager, &plain, NULL), HR_OK);
    const uint64_t peak = program_peak_bytes(plain);
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", peak);
    ck_assert_int_eq(compile_on_tape(model, &exact_target, strategy, "none", eager, &same, NULL), HR_OK);
    ck_assert_uint_eq(program_peak_bytes(same), peak);
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", peak - 1);
    ck_assert_int_eq(compile_on_tape(model, &exact_target, strategy, "none", eager, &below, &err),
                     HR_CONSTRAINT);
    ck_assert_ptr_null(below);
    program_destroy(plain);
    program_destroy(same);
    model_destroy(model);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = draw_chain(3, 3);
    const measured plain = measure(model, &exact_target, "none", _i == 1);
    char strategy[48];
    snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", plain.peak / 8 * 7);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status == HR_NOMEM; nth++) {
        program *p = NULL;
        hr_host_mem_fail_at(nth);
        status = try_compile(model, &exact_target, strategy, _i == 1, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status == HR_NOMEM, nth <= seen);
        program_destroy(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget");
    TCase *tests = tcase_create("budget");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, chains_are_as_cheap_as_the_best_of_all_lists_at_the_peak_of_each, 0, CHAINS);
    tcase_add_loop_test(tests, no_step_is_above_its_budget_and_none_is_higher_under_a_smaller_one, 0,
                        NETWORKS);
    tcase_add_loop_test(tests, no_way_is_below_what_one_instruction_holds, 0, FLOORS);
    tcase_add_loop_test(tests, the_floor_of_one_layer_is_what_is_worked_out_by_hand, 0, 2);
    tcase_add_test(tests, what_is_found_within_a_budget_says_how_much_was_compiled_for_it);
    tcase_add_loop_test(tests, what_is_refused_says_what_one_instruction_needs, 0, FLOORS);
    tcase_add_loop_test(tests, a_long_chain_comes_below_all_that_recompute_a_layer_once, 0, 2);
    tcase_add_loop_test(tests, what_is_large_enough_for_the_plain_step_is_the_plain_step, 0, 20);
    tcase_add_loop_test(tests, at_the_peak_of_another_strategy_it_is_kept_and_no_dearer, 0, OTHERS);
    tcase_add_loop_test(tests, a_budget_above_what_there_is_does_as_well_as_one_of_that, 0, 20);
    tcase_add_test(tests, what_takes_long_at_a_place_is_not_made_again_there);
    tcase_add_test(tests, an_eager_step_makes_its_probabilities_again);
    tcase_add_loop_test(tests, a_step_without_a_tape_is_as_it_is_or_refused, 0, 4);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
