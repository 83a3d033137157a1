// SPDX-License-Identifier: Apache-2.0
// Calls that become one launch: how many launches there are, that none joins what it would disturb, and that nothing is
// held back when its memory goes. A program of updates and casts, written out by hand.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "card/reach.h"
#include "device/executor.h"

enum {
    VARIABLES = 70, // more than one launch takes
    STEPS = 3,
    LENGTH = 2500,
    WHOLE_TESTS_SKIPPED = 77,
};
enum { WEIGHTS = 0, SOURCES = VARIABLES, LETTERS = 2 * VARIABLES, LETTER_COUNT = 5 };
enum { A = LETTERS, B, C, D, F, GRADIENTS = LETTERS + LETTER_COUNT, TENSORS = GRADIENTS + VARIABLES };
enum { INSTRS = 4 * VARIABLES + 8 };

static card_reach card;

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0}, *const err = &err_;                                                               \
        const hr_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == HR_OK, "%s: %s", hr_status_name(status_), err_.sentence);                   \
    } while (0)

// ---- the program --------------------------------------------------------------------------------------------------

typedef struct rig {
    program p;
    tensor tensors[TENSORS];
    char names[TENSORS][8];
    instr instrs[INSTRS];
    void *context;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
} rig;

// Whole vectors, rests of them, and more than a block.
static int64_t length_of(uint32_t variable)
{
    return 1 + (int64_t)(variable * 71) % LENGTH;
}

static void add_tensors(rig *r)
{
    for (uint32_t id = 0; id < TENSORS; id++) {
        const bool letter = id >= LETTERS && id < GRADIENTS;
        const int64_t count = letter ? LENGTH : length_of((id < LETTERS ? id : id - GRADIENTS) % VARIABLES);
        (void)snprintf(r->names[id], sizeof r->names[id], "t%u", id);
        r->tensors[id] = (tensor){.name = r->names[id],
                                  .shape = shape_of(1, &count),
                                  .dtype = HR_F32,
                                  .category = HR_CATEGORY_WEIGHTS,
                                  .bytes = (uint64_t)count * sizeof(float),
                                  .storage = id,
                                  .layer = HR_NO_ID,
                                  .param = HR_NO_ID,
                                  .persistent = id < GRADIENTS};
    }
    r->p.tensor_count = TENSORS;
    r->p.persistent_count = GRADIENTS;
}

static instr *add(rig *r, hr_op op, uint32_t from, uint32_t to)
{
    instr *i = &r->instrs[r->p.instr_count];
    *i = (instr){.id = r->p.instr_count++, .op = op, .layer = HR_NO_ID, .workspace = HR_NO_ID};
    if (from != HR_NO_ID) {
        i->in[i->in_count++] = from;
    }
    if (to != HR_NO_ID) {
        i->out[i->out_count++] = to;
    }
    return i;
}

// Every gradient is freed behind its update, which may not have been launched by then.
static void add_updates(rig *r)
{
    for (uint32_t k = 0; k < VARIABLES; k++) {
        add(r, HR_OP_ALLOC, HR_NO_ID, GRADIENTS + k);
    }
    for (uint32_t k = 0; k < VARIABLES; k++) {
        add(r, HR_OP_CAST, SOURCES + k, GRADIENTS + k);
    }
    for (uint32_t k = 0; k < VARIABLES; k++) {
        instr *update = add(r, HR_OP_SGD, WEIGHTS + k, WEIGHTS + k);
        update->in[update->in_count++] = GRADIENTS + k;
        add(r, HR_OP_FREE, GRADIENTS + k, HR_NO_ID);
    }
}

// Of the five casts behind the updates, those in one bracket may be one launch.
enum { CAST_LAUNCHES_OF_UPDATES = 2, CAST_LAUNCHES = CAST_LAUNCHES_OF_UPDATES + 4 };
static void add_casts(rig *r)
{
    add(r, HR_OP_CAST, A, B); // [
    add(r, HR_OP_CAST, D, A); // ][ overwrites what the first reads
    add(r, HR_OP_CAST, B, C); //
    add(r, HR_OP_CAST, C, F); // ][ reads what the third writes
    add(r, HR_OP_CAST, D, F); // ][ writes what the fourth writes ]
}

static hr_status open_rig(rig *r, const char *allocator_kind, bool capture, hr_err *err)
{
    const device_options options = {.capture = capture};
    const allocator_config config = {.kind = allocator_kind, .limit_bytes = 512 * HR_MIB, .growth = true};
    *r = (rig){0};
    add_tensors(r);
    add_updates(r);
    add_casts(r);
    r->p.rounds = 1;
    r->p.batch = 1;
    r->p.tensors = r->tensors;
    r->p.instrs = r->instrs;
    HR_TRY(device_cuda.open(&options, &r->context, err));
    HR_TRY(device_cuda.memory(r->context, config.limit_bytes, false, &r->source, err));
    HR_TRY(allocator_create(&config, &r->source, NULL, &r->heap, err));
    HR_TRY(executor_create(&device_cuda, r->context, r->heap, NULL, &r->x, err));
    HR_TRY(executor_build(r->x, &r->p, err));
    return executor_attach(r->x, &r->p, &r->slot, err);
}

static void close_rig(rig *r)
{
    executor_destroy(r->x);
    allocator_destroy(r->heap);
    backing_close(&r->source);
    device_cuda.close(r->context);
}

// ---- what it makes ------------------------------------------------------------------------------------------------

static float first_value(uint32_t id, int64_t k)
{
    return sinf((float)(id * 13 + (uint32_t)k));
}

static void fill(rig *r)
{
    for (uint32_t id = 0; id < GRADIENTS; id++) {
        float values[LENGTH];
        for (int64_t k = 0; k < LENGTH; k++) {
            values[k] = first_value(id, k);
        }
        REQUIRE_OK(device_cuda.copy_in(r->context, executor_address(r->x, r->names[id]), values,
                                       r->tensors[id].bytes, err));
    }
}

static void run_steps(rig *r)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        step_io io = {.learning_rate = 0.25, .update = step + 1};
        REQUIRE_OK(executor_step(r->x, r->slot, &io, err));
    }
}

static void expect(rig *r, uint32_t id, uint32_t from, uint32_t minus, double times)
{
    float values[LENGTH];
    const int64_t count = (int64_t)(r->tensors[id].bytes / sizeof(float));
    REQUIRE_OK(device_cuda.copy_out(r->context, executor_address(r->x, r->names[id]), values,
                                    r->tensors[id].bytes, err));
    for (int64_t k = 0; k < count; k++) {
        const double needed = (double)first_value(from, k) - times * (double)first_value(minus, k);
        ck_assert_msg(fabs((double)values[k] - needed) <= 1e-5, "%s[%lld]: needed %g, had %g", r->names[id],
                      (long long)k, needed, (double)values[k]);
    }
}

static void check_values(rig *r)
{
    for (uint32_t k = 0; k < VARIABLES; k++) {
        expect(r, WEIGHTS + k, WEIGHTS + k, SOURCES + k, 0.25 * STEPS);
    }
    // Behind the first step A holds D's values, from the second on all others do too.
    for (uint32_t letter = A; letter <= F; letter++) {
        expect(r, letter, D, D, 0);
    }
}

// ---- the tests ----------------------------------------------------------------------------------------------------

START_TEST(what_touches_nothing_of_each_others_is_one_launch)
{
    static rig r;
    REQUIRE_OK(open_rig(&r, "bfc", _i == 1, err));
    fill(&r);
    card.card_reset();
    run_steps(&r);
    check_values(&r);
    ck_assert_uint_eq(card.card_launches("sgd_f32"), 2 * STEPS);
    ck_assert_uint_eq(card.card_launches("cast_f32_f32"), CAST_LAUNCHES * STEPS);
    close_rig(&r);
}
END_TEST

// Values of the first step tell orders apart, those of later ones are all the same.
START_TEST(what_disturbs_another_waits_for_it)
{
    static rig r;
    REQUIRE_OK(open_rig(&r, "bfc", false, err));
    fill(&r);
    step_io io = {.learning_rate = 0, .update = 1};
    REQUIRE_OK(executor_step(r.x, r.slot, &io, err));
    expect(&r, A, D, D, 0);
    expect(&r, B, A, A, 0);
    expect(&r, C, A, A, 0);
    expect(&r, F, D, D, 0);
    close_rig(&r);
}
END_TEST

START_TEST(nothing_is_held_back_when_its_memory_goes)
{
    static rig r;
    REQUIRE_OK(open_rig(&r, "direct", _i == 1, err));
    fill(&r);
    run_steps(&r);
    check_values(&r);
    close_rig(&r);
}
END_TEST

START_TEST(a_launch_that_fails_is_told)
{
    static rig r;
    hr_err refused = {0};
    step_io io = {.learning_rate = 0.25, .update = 1};
    REQUIRE_OK(open_rig(&r, "bfc", false, err));
    fill(&r);
    card.card_fail("cuLaunchKernel", CAST_LAUNCHES_OF_UPDATES + 2, CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(executor_step(r.x, r.slot, &io, &refused), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(refused.sentence, "launching"));
    close_rig(&r);
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return WHOLE_TESTS_SKIPPED;
    }
    Suite *suite = suite_create("cuda group");
    TCase *c = tcase_create("group");
    suite_add_tcase(suite, c);
    tcase_add_loop_test(c, what_touches_nothing_of_each_others_is_one_launch, 0, 2);
    tcase_add_test(c, what_disturbs_another_waits_for_it);
    tcase_add_loop_test(c, nothing_is_held_back_when_its_memory_goes, 0, 2);
    tcase_add_test(c, a_launch_that_fails_is_told);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
