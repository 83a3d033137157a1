// SPDX-License-Identifier: Apache-2.0
// Steps of the cuda device without an executor around them, instruction by instruction: what is on its way when a step
// ends, numbers of every round, steps that end early, break off or go on elsewhere, with graphs and without.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "card/reach.h"
#include "device/cuda/step.h"

enum { N = 512, ROUNDS = 2, SEEDS = 8, STEPS = 9, TENSORS = 4, INSTRS = 12, ALL_DONE = 77 };

static card_reach card;

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0}, *const err = &err_;                                                               \
        const hr_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == HR_OK, "%s: %s", hr_status_name(status_), err_.sentence);                   \
    } while (0)

// ---- a program and where its tensors lie --------------------------------------------------------------------------

typedef struct bench {
    cuda_device *device;
    backing memory;
    program p;
    tensor tensors[TENSORS];
    instr instrs[INSTRS];
    void *address[TENSORS];
    void *kernels;
    step_io io;
} bench;

static void open_bench(bench *b, bool capture)
{
    const device_options options = {.capture = capture};
    void *context = NULL;
    *b = (bench){0};
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    b->device = context;
    REQUIRE_OK(device_cuda.memory(context, 64 * HR_MIB, false, &b->memory, err));
    b->p.tensors = b->tensors;
    b->p.instrs = b->instrs;
}

static void close_bench(bench *b)
{
    device_cuda.unload(b->device, b->kernels);
    for (uint32_t k = 0; k < b->p.tensor_count; k++) {
        if (b->tensors[k].device == HR_DEVICE_HOST) {
            cuda_host_give_back(b->device, b->address[k]);
        } else {
            b->memory.give_back(b->memory.context, (uint64_t)(uintptr_t)b->address[k], b->tensors[k].bytes);
        }
    }
    backing_close(&b->memory);
    device_cuda.close(b->device);
}

static uint32_t add_tensor(bench *b, int64_t count, hr_dtype dtype, bool on_host)
{
    const uint32_t id = b->p.tensor_count++;
    tensor *t = &b->tensors[id];
    *t = (tensor){.name = "t",
                  .shape = shape_of(1, &count),
                  .dtype = dtype,
                  .bytes = (uint64_t)count * dtype_bytes(dtype),
                  .storage = id,
                  .layer = HR_NO_ID,
                  .param = HR_NO_ID,
                  .device = on_host ? HR_DEVICE_HOST : 0};
    if (on_host) {
        REQUIRE_OK(cuda_host_take(b->device, t->bytes, &b->address[id], err));
    } else {
        b->address[id] = (void *)(uintptr_t)b->memory.take(b->memory.context, t->bytes);
        ck_assert_ptr_nonnull(b->address[id]);
    }
    return id;
}

static instr *add(bench *b, hr_op op, hr_lane lane, int32_t slot)
{
    instr *i = &b->instrs[b->p.instr_count];
    *i = (instr){
        .id = b->p.instr_count++, .op = op, .lane = (uint8_t)lane, .layer = HR_NO_ID, .workspace = HR_NO_ID};
    i->attr.slot = slot;
    return i;
}

static void add_move(bench *b, hr_op op, hr_lane lane, uint32_t from, uint32_t to)
{
    instr *i = add(b, op, lane, 0);
    i->in[i->in_count++] = from;
    i->out[i->out_count++] = to;
}

static void load(bench *b, uint32_t rounds)
{
    b->p.rounds = rounds;
    REQUIRE_OK(device_cuda.load(b->device, &b->p, &b->kernels, err));
}

static void put(bench *b, uint32_t id, const void *values)
{
    REQUIRE_OK(device_cuda.copy_in(b->device, (uint64_t)(uintptr_t)b->address[id], values,
                                   b->tensors[id].bytes, err));
}

static void begin(bench *b, uint32_t round)
{
    REQUIRE_OK(device_cuda.begin_round(b->device, b->kernels, round, &b->io, err));
}

static void run(bench *b, uint32_t first, uint32_t behind)
{
    for (uint32_t at = first; at < behind; at++) {
        REQUIRE_OK(device_cuda.run(b->device, b->kernels, at, b->address, &b->io, err));
    }
}

static void end(bench *b)
{
    REQUIRE_OK(device_cuda.end_step(b->device, b->kernels, &b->io, err));
}

static void set_seed(int seed)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", seed);
    ck_assert_int_eq(setenv("CARD_SEED", text, 1), 0);
}

// ---- copies at both ends ------------------------------------------------------------------------------------------

// The first instruction is a copy that waits for nobody, the last is one that nobody waits for but the step's end.
START_TEST(a_step_ends_when_its_copies_have)
{
    bench b;
    set_seed(_i / 2 + 1);
    open_bench(&b, _i % 2 == 1);
    const uint32_t in = add_tensor(&b, N, HR_F32, true), x = add_tensor(&b, N, HR_F32, false),
                   y = add_tensor(&b, N, HR_F32, false), out = add_tensor(&b, N, HR_F32, true);
    add_move(&b, HR_OP_FETCH, HR_LANE_H2D, in, x);
    add(&b, HR_OP_RECORD, HR_LANE_H2D, 0);
    add(&b, HR_OP_WAIT, HR_LANE_COMPUTE, 0);
    add_move(&b, HR_OP_RELU, HR_LANE_COMPUTE, x, y);
    add(&b, HR_OP_RECORD, HR_LANE_COMPUTE, 1);
    add(&b, HR_OP_WAIT, HR_LANE_D2H, 1);
    add_move(&b, HR_OP_OFFLOAD, HR_LANE_D2H, y, out);
    load(&b, 1);
    float *from = b.address[in], *to = b.address[out];
    for (int step = 0; step < STEPS; step++) {
        for (int k = 0; k < N; k++) {
            from[k] = (float)((k * 7 + step * 3) % 11 - 5);
            to[k] = -1.0f;
        }
        begin(&b, 0);
        run(&b, 0, b.p.instr_count);
        end(&b);
        for (int k = 0; k < N; k++) {
            ck_assert(to[k] == (from[k] > 0.0f ? from[k] : 0.0f));
        }
    }
    ck_assert_int_eq(card.card_calls("cuGraphLaunch") > 0, _i % 2 == 1);
    close_bench(&b);
}
END_TEST

// Copies that a program orders itself pass by what is computed; nothing orders a batch and a result but the lane.
START_TEST(only_batches_and_results_join_the_compute_lane)
{
    for (int lane = 0; lane < HR_LANE_COUNT; lane++) {
        for (int op = 0; op < HR_OP_COUNT; op++) {
            const instr i = {.op = (hr_op)op, .lane = (uint8_t)lane};
            const bool joins = op == HR_OP_INPUT || op == HR_OP_READ;
            ck_assert_int_eq((int)cuda_lane_of(&i), joins ? HR_LANE_COMPUTE : lane);
        }
    }
}
END_TEST

// ---- updates in every round ---------------------------------------------------------------------------------------

enum { W, G, OTHER };

// w -= rate · g in every round; g is all ones.
static void open_updates(bench *b, bool capture)
{
    float values[N];
    open_bench(b, capture);
    for (uint32_t id = W; id <= OTHER; id++) {
        ck_assert_uint_eq(add_tensor(b, N, HR_F32, false), id);
        for (int k = 0; k < N; k++) {
            values[k] = id == G ? 1.0f : 0.0f;
        }
        put(b, id, values);
    }
    add(b, HR_OP_REPEAT, HR_LANE_COMPUTE, 0)->attr.count = ROUNDS;
    instr *update = add(b, HR_OP_SGD, HR_LANE_COMPUTE, 0);
    update->in[update->in_count++] = W;
    update->in[update->in_count++] = G;
    update->out[update->out_count++] = W;
    add(b, HR_OP_END, HR_LANE_COMPUTE, 0);
    load(b, ROUNDS);
}

// Rates 1 and 1/4.
static void run_rounds(bench *b, uint32_t rounds)
{
    for (uint32_t round = 0; round < rounds; round++) {
        b->io.learning_rate = round == 0 ? 1.0 : 0.25;
        begin(b, round);
        run(b, 0, b->p.instr_count);
    }
}

static void run_steps(bench *b, int steps)
{
    for (int step = 0; step < steps; step++) {
        run_rounds(b, ROUNDS);
        end(b);
    }
}

// All of them are the same.
static double weight(bench *b, uint32_t id)
{
    float w[N];
    REQUIRE_OK(device_cuda.copy_out(b->device, (uint64_t)(uintptr_t)b->address[id], w, sizeof w, err));
    for (int k = 1; k < N; k++) {
        ck_assert(w[k] == w[0]);
    }
    return (double)w[0];
}

static void check(bench *b, uint32_t id, double expected)
{
    ck_assert_double_eq(weight(b, id), expected);
}

static void move_weights(bench *b)
{
    void *const place = b->address[W];
    b->address[W] = b->address[OTHER];
    b->address[OTHER] = place;
}

#define OF_A_STEP (-1.25)

START_TEST(every_round_has_its_own_numbers)
{
    bench b;
    set_seed(_i / 2 + 1);
    open_updates(&b, _i % 2 == 1);
    run_steps(&b, STEPS);
    check(&b, W, STEPS * OF_A_STEP);
    close_bench(&b);
}
END_TEST

START_TEST(a_step_that_ends_early_runs_what_was_reached)
{
    bench b;
    open_updates(&b, true);
    run_steps(&b, STEPS);
    ck_assert_uint_gt(card.card_calls("cuGraphLaunch"), 0);
    run_rounds(&b, 1);
    end(&b);
    check(&b, W, STEPS * OF_A_STEP - 1.0);
    run_steps(&b, STEPS);
    check(&b, W, 2 * STEPS * OF_A_STEP - 1.0);
    close_bench(&b);
}
END_TEST

// Step 3 is captured, step 5 replayed, step 1 neither. What was reached may have run or not.
START_TEST(a_step_that_breaks_off_leaves_nothing_on_its_way)
{
    bench b;
    card_totals before, after;
    const int steps = 2 * _i + 1;
    open_updates(&b, true);
    run_steps(&b, steps);
    run_rounds(&b, 1);
    const bool eager = ((const cuda_loaded *)b.kernels)->mode == STEP_EAGER;
    ck_assert_int_eq(eager, steps == 1);
    card.card_count(&before);
    device_cuda.abandon_step(b.device, b.kernels);
    card.card_count(&after);
    ck_assert_uint_eq(after.synchronisations - before.synchronisations, eager);
    ck_assert_ptr_null(b.device->under_way);
    const double done = weight(&b, W);
    ck_assert(done == steps * OF_A_STEP || (eager && done == steps * OF_A_STEP - 1.0));
    REQUIRE_OK(cuda_settle(b.device, err));
    check(&b, W, done);
    run_steps(&b, STEPS);
    check(&b, W, done + STEPS * OF_A_STEP);
    close_bench(&b);
}
END_TEST

// Who waits between two steps makes nothing run twice.
START_TEST(a_step_that_is_over_is_not_run_again)
{
    bench b;
    open_updates(&b, _i == 1);
    for (int step = 1; step <= STEPS; step++) {
        run_steps(&b, 1);
        ck_assert(!b.device->busy);
        REQUIRE_OK(cuda_settle(b.device, err));
        check(&b, W, step * OF_A_STEP);
    }
    ck_assert_int_eq(card.card_calls("cuGraphLaunch") > 0, _i == 1);
    close_bench(&b);
}
END_TEST

// What was captured of other addresses is never launched again.
START_TEST(a_graph_is_of_its_addresses_alone)
{
    bench b;
    open_updates(&b, true);
    run_steps(&b, STEPS);
    move_weights(&b);
    run_steps(&b, STEPS + 1);
    check(&b, OTHER, STEPS * OF_A_STEP);
    check(&b, W, (STEPS + 1) * OF_A_STEP);
    close_bench(&b);
}
END_TEST

// Capturing costs more than a step: who is disappointed waits twice as long.
START_TEST(addresses_that_keep_moving_are_captured_ever_less)
{
    enum { MOVES = 16 };
    bench b;
    open_updates(&b, true);
    for (int k = 0; k < MOVES; k++) {
        run_steps(&b, STEPS);
        move_weights(&b);
    }
    ck_assert_uint_ge(card.card_calls("cuStreamBeginCapture_v2"), 2);
    ck_assert_uint_le(card.card_calls("cuStreamBeginCapture_v2"), 4);
    check(&b, W, MOVES / 2 * STEPS * OF_A_STEP);
    check(&b, OTHER, MOVES / 2 * STEPS * OF_A_STEP);
    close_bench(&b);
}
END_TEST

// A launch that nobody could wait for is still under way.
START_TEST(a_wait_that_fails_is_made_up_for)
{
    bench b;
    hr_err refused = {0};
    open_updates(&b, _i == 1);
    run_steps(&b, STEPS);
    run_rounds(&b, ROUNDS);
    card.card_fail("cuStreamSynchronize", 1, CUDA_ERROR_UNKNOWN);
    ck_assert_int_ne(device_cuda.end_step(b.device, b.kernels, &b.io, &refused), HR_OK);
    ck_assert(b.device->busy);
    device_cuda.abandon_step(b.device, b.kernels);
    ck_assert(!b.device->busy);
    close_bench(&b);
}
END_TEST

START_TEST(what_is_no_part_of_a_step_is_refused)
{
    bench b;
    hr_err refused = {0};
    open_updates(&b, false);
    ck_assert_int_eq(device_cuda.run(b.device, b.kernels, 1, b.address, &b.io, &refused), HR_STATE);
    ck_assert_int_eq(device_cuda.begin_round(b.device, b.kernels, ROUNDS, &b.io, &refused), HR_STATE);
    run_rounds(&b, ROUNDS);
    ck_assert_int_eq(device_cuda.run(b.device, b.kernels, 1, b.address, &b.io, &refused), HR_STATE);
    device_cuda.abandon_step(b.device, b.kernels);
    close_bench(&b);
}
END_TEST

// ---- what a step tells --------------------------------------------------------------------------------------------

enum { CORRECT, FINITE, SCALE, HEALTH };

static void add_read(bench *b, int32_t slot, uint32_t first, uint32_t behind)
{
    instr *i = add(b, HR_OP_READ, HR_LANE_D2H, slot);
    for (uint32_t id = first; id < behind; id++) {
        i->in[i->in_count++] = id;
    }
}

START_TEST(results_reach_the_host)
{
    static const float health[] = {1.0f, 0.0f, 640.0f, 3.0f, 2.0f, 64.0f};
    const int32_t correct = 7, finite = _i % 2;
    const float scale = 4096.0f;
    bench b;
    open_bench(&b, _i / 2 == 1);
    (void)add_tensor(&b, 1, HR_I32, false);
    (void)add_tensor(&b, 1, HR_I32, false);
    (void)add_tensor(&b, 1, HR_F32, false);
    (void)add_tensor(&b, sizeof health / sizeof *health, HR_F32, false);
    put(&b, CORRECT, &correct);
    put(&b, FINITE, &finite);
    put(&b, SCALE, &scale);
    put(&b, HEALTH, health);
    add(&b, HR_OP_REPEAT, HR_LANE_COMPUTE, 0)->attr.count = ROUNDS;
    add_read(&b, READ_CORRECT, CORRECT, FINITE);
    add(&b, HR_OP_END, HR_LANE_COMPUTE, 0);
    add_read(&b, READ_FINITE, FINITE, HEALTH);
    add_read(&b, READ_HEALTH, HEALTH, HEALTH + 1);
    load(&b, ROUNDS);
    for (int step = 0; step < STEPS; step++) {
        b.io = (step_io){0};
        begin(&b, 0);
        run(&b, 0, 3);
        begin(&b, 1);
        run(&b, 0, 5);
        end(&b);
        ck_assert_int_eq(b.io.correct, ROUNDS * correct);
        ck_assert_int_eq(b.io.nonfinite, finite == 0);
        ck_assert_double_eq((double)b.io.loss_scale, (double)scale);
        ck_assert_mem_eq(b.io.health, health, sizeof health);
    }
    close_bench(&b);
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda lanes");
    TCase *steps = tcase_create("steps");
    suite_add_tcase(suite, steps);
    tcase_add_loop_test(steps, a_step_ends_when_its_copies_have, 0, 2 * SEEDS);
    tcase_add_test(steps, only_batches_and_results_join_the_compute_lane);
    tcase_add_loop_test(steps, every_round_has_its_own_numbers, 0, 2 * SEEDS);
    tcase_add_test(steps, a_step_that_ends_early_runs_what_was_reached);
    tcase_add_loop_test(steps, a_step_that_breaks_off_leaves_nothing_on_its_way, 0, 3);
    tcase_add_loop_test(steps, a_step_that_is_over_is_not_run_again, 0, 2);
    tcase_add_test(steps, a_graph_is_of_its_addresses_alone);
    tcase_add_test(steps, addresses_that_keep_moving_are_captured_ever_less);
    tcase_add_loop_test(steps, a_wait_that_fails_is_made_up_for, 0, 2);
    tcase_add_test(steps, what_is_no_part_of_a_step_is_refused);
    tcase_add_loop_test(steps, results_reach_the_host, 0, 4);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
