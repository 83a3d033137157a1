// SPDX-License-Identifier: Apache-2.0
// The runtime of the cuda device over the emulated card: what a step asks of the driver, graphs against eager steps,
// lanes, memory, what the driver refuses, and a card that is lost. Programs are written out by hand: few operations, and
// all that moves.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "card/reach.h"
#include "device/cuda/device_impl.h"
#include "device/cuda/kernels/norm_args.h"
#include "device/executor.h"

enum { N = 1000, ROUNDS = 2, TENSORS = 8, INSTRS = 40, EVENTS = 4, ALL_DONE = 77 };

static card_reach card;

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0}, *const err = &err_;                                                               \
        const hr_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == HR_OK, "%s: %s", hr_status_name(status_), err_.sentence);                   \
    } while (0)

// ---- a program --------------------------------------------------------------------------------------------------------

enum { X, L, W, SUM, Y, HOST, Z };

typedef struct toy {
    program p;
    tensor tensors[TENSORS];
    instr instrs[INSTRS];
} toy;

static void add_tensor(toy *t, uint32_t id, const char *name, int64_t count, hr_dtype dtype,
                       hr_category category)
{
    t->tensors[id] = (tensor){.name = name,
                              .shape = shape_of(1, &count),
                              .dtype = dtype,
                              .category = category,
                              .bytes = (uint64_t)count * dtype_bytes(dtype),
                              .storage = id,
                              .layer = HR_NO_ID,
                              .param = HR_NO_ID,
                              .persistent = id <= SUM,
                              .device = id == HOST ? HR_DEVICE_HOST : 0};
    t->p.tensor_count++;
    t->p.persistent_count += id <= SUM;
}

static instr *add(toy *t, hr_op op, hr_lane lane)
{
    instr *i = &t->instrs[t->p.instr_count];
    *i = (instr){
        .id = t->p.instr_count++, .op = op, .lane = (uint8_t)lane, .layer = HR_NO_ID, .workspace = HR_NO_ID};
    return i;
}

static void add_in(instr *i, uint32_t id)
{
    i->in[i->in_count++] = id;
}

static void add_out(instr *i, uint32_t id)
{
    i->out[i->out_count++] = id;
}

static void add_move(toy *t, hr_op op, hr_lane lane, uint32_t from, uint32_t to)
{
    instr *i = add(t, op, lane);
    if (from != HR_NO_ID) {
        add_in(i, from);
    }
    if (to != HR_NO_ID) {
        add_out(i, to);
    }
}

static void add_order(toy *t, hr_op op, hr_lane lane, int32_t event)
{
    add(t, op, lane)->attr.slot = event;
}

static void add_input(toy *t, int32_t slot, uint32_t to)
{
    instr *i = add(t, HR_OP_INPUT, HR_LANE_H2D);
    i->attr.slot = slot;
    add_out(i, to);
}

// Of every round: relu(x) leaves the card, comes back to another place and is summed; then w -= rate * sum.
static void fill_loop(toy *t)
{
    add(t, HR_OP_REPEAT, HR_LANE_COMPUTE)->attr.count = ROUNDS;
    add_input(t, 0, X);
    add_input(t, 1, L);
    add_move(t, HR_OP_ALLOC, HR_LANE_COMPUTE, HR_NO_ID, Y);
    add_move(t, HR_OP_RELU, HR_LANE_COMPUTE, X, Y);
    add_order(t, HR_OP_RECORD, HR_LANE_COMPUTE, 0);
    add_order(t, HR_OP_WAIT, HR_LANE_D2H, 0);
    add_move(t, HR_OP_OFFLOAD, HR_LANE_D2H, Y, HOST);
    add_order(t, HR_OP_RECORD, HR_LANE_D2H, 1);
    add_order(t, HR_OP_WAIT, HR_LANE_COMPUTE, 1);
    add_move(t, HR_OP_ALLOC, HR_LANE_COMPUTE, HR_NO_ID, Z);
    add_move(t, HR_OP_FREE, HR_LANE_COMPUTE, Y, HR_NO_ID);
    add_order(t, HR_OP_RECORD, HR_LANE_COMPUTE, 2);
    add_order(t, HR_OP_WAIT, HR_LANE_H2D, 2);
    add_move(t, HR_OP_FETCH, HR_LANE_H2D, HOST, Z);
    add_order(t, HR_OP_RECORD, HR_LANE_H2D, 3);
    add_order(t, HR_OP_WAIT, HR_LANE_COMPUTE, 3);
    instr *sum = add(t, HR_OP_ACCUMULATE, HR_LANE_COMPUTE);
    add_in(sum, SUM);
    add_in(sum, Z);
    add_out(sum, SUM);
    add_move(t, HR_OP_READ, HR_LANE_D2H, L, HR_NO_ID);
    add_move(t, HR_OP_FREE, HR_LANE_COMPUTE, Z, HR_NO_ID);
    add(t, HR_OP_END, HR_LANE_COMPUTE);
}

static void fill_toy(toy *t)
{
    *t = (toy){0};
    add_tensor(t, X, "x", N, HR_F32, HR_CATEGORY_INPUT);
    add_tensor(t, L, "l", 1, HR_F32, HR_CATEGORY_INPUT);
    add_tensor(t, W, "w", N, HR_F32, HR_CATEGORY_WEIGHTS);
    add_tensor(t, SUM, "sum", N, HR_F32, HR_CATEGORY_STATE);
    add_tensor(t, Y, "y", N, HR_F32, HR_CATEGORY_ACTIVATIONS);
    add_tensor(t, HOST, "y:host", N, HR_F32, HR_CATEGORY_ACTIVATIONS);
    add_tensor(t, Z, "z", N, HR_F32, HR_CATEGORY_ACTIVATIONS);
    add_move(t, HR_OP_ZEROS, HR_LANE_COMPUTE, HR_NO_ID, SUM);
    fill_loop(t);
    instr *update = add(t, HR_OP_SGD, HR_LANE_COMPUTE);
    add_in(update, W);
    add_in(update, SUM);
    add_out(update, W);
    t->p.rounds = ROUNDS;
    t->p.batch = N;
    t->p.tensors = t->tensors;
    t->p.instrs = t->instrs;
}

// ---- running it -------------------------------------------------------------------------------------------------------

typedef struct rig {
    toy toy;
    void *context;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
    pinned_memory pinned;
    float (*batch)[N], *losses; // of every round; pinned
    uint32_t round;
} rig;

static hr_status take_batches(rig *r, hr_err *err)
{
    void *batch = NULL, *losses = NULL;
    HR_TRY(device_cuda.pinned(r->context, &r->pinned, err));
    HR_TRY(r->pinned.take(r->pinned.context, sizeof *r->batch * ROUNDS, &batch, err));
    r->batch = batch;
    HR_TRY(r->pinned.take(r->pinned.context, sizeof *r->losses * ROUNDS, &losses, err));
    r->losses = losses;
    return HR_OK;
}

static void give_batches_back(rig *r)
{
    if (r->batch != NULL) {
        r->pinned.give_back(r->pinned.context, r->batch);
    }
    if (r->losses != NULL) {
        r->pinned.give_back(r->pinned.context, r->losses);
    }
    if (r->pinned.close != NULL) {
        r->pinned.close(r->pinned.context);
    }
    r->pinned = (pinned_memory){.take = NULL};
    r->batch = NULL;
    r->losses = NULL;
}

static hr_status open_rig_on(rig *r, const device_options *options, const allocator_config *config,
                             hr_err *err)
{
    memset(r, 0, sizeof *r);
    fill_toy(&r->toy);
    HR_TRY(device_cuda.open(options, &r->context, err));
    HR_TRY(take_batches(r, err));
    HR_TRY(device_cuda.memory(r->context, config->limit_bytes, false, &r->source, err));
    HR_TRY(allocator_create(config, &r->source, NULL, &r->heap, err));
    HR_TRY(executor_create(&device_cuda, r->context, r->heap, NULL, &r->x, err));
    HR_TRY(executor_build(r->x, &r->toy.p, err));
    static const float zeros[N];
    HR_TRY(device_cuda.copy_in(r->context, executor_address(r->x, "w"), zeros, sizeof zeros, err));
    return executor_attach(r->x, &r->toy.p, &r->slot, err);
}

static hr_status open_rig(rig *r, const device_options *options, hr_err *err)
{
    const allocator_config config = {.kind = "bfc", .limit_bytes = 64 * HR_MIB, .growth = true};
    return open_rig_on(r, options, &config, err);
}

static void close_rig(rig *r)
{
    executor_destroy(r->x);
    allocator_destroy(r->heap);
    backing_close(&r->source);
    if (r->context != NULL) {
        device_cuda.close(r->context);
    }
    give_batches_back(r);
}

static void give_round(rig *r, step_io *io)
{
    io->slot[0] = r->batch[r->round];
    io->slot[1] = &r->losses[r->round];
    io->loss_weight = 0.25 * (r->round + 1);
}

static hr_status next_round(void *context, step_io *io, hr_err *err)
{
    (void)err;
    rig *r = context;
    r->round++;
    give_round(r, io);
    return HR_OK;
}

static double rate_of(uint32_t step)
{
    return 0.5 / (step + 1);
}

static float drawn(uint32_t step, uint32_t round, uint32_t k)
{
    return sinf((float)(k * 7 + step * 3 + round));
}

static void draw_batches(rig *r, uint32_t step)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        r->losses[round] = (float)(step * ROUNDS + round);
        for (uint32_t k = 0; k < N; k++) {
            r->batch[round][k] = drawn(step, round, k);
        }
    }
}

static hr_status run_step(rig *r, uint32_t step, double *loss, hr_err *err)
{
    step_io io = {.learning_rate = rate_of(step), .update = step + 1, .next_round = next_round, .context = r};
    draw_batches(r, step);
    r->round = 0;
    give_round(r, &io);
    const hr_status status = executor_step(r->x, r->slot, &io, err);
    *loss = io.loss;
    return status;
}

static void read_weights(rig *r, float w[N])
{
    REQUIRE_OK(device_cuda.copy_out(r->context, executor_address(r->x, "w"), w, N * sizeof *w, err));
}

// What `steps` steps make of w = 0.
static void expect_weights(uint32_t steps, float w[N])
{
    memset(w, 0, N * sizeof *w);
    for (uint32_t step = 0; step < steps; step++) {
        for (uint32_t k = 0; k < N; k++) {
            float sum = 0.0f;
            for (uint32_t round = 0; round < ROUNDS; round++) {
                sum += fmaxf(drawn(step, round, k), 0.0f);
            }
            w[k] -= (float)rate_of(step) * sum;
        }
    }
}

static void check_weights(const float *w, uint32_t steps)
{
    float expected[N];
    expect_weights(steps, expected);
    for (uint32_t k = 0; k < N; k++) {
        if (!(fabsf(w[k] - expected[k]) <= 1e-6f * (1.0f + fabsf(expected[k])))) {
            ck_abort_msg("w[%u] after %u steps: needed %g, had %g", k, steps, (double)expected[k],
                         (double)w[k]);
        }
    }
}

static void check_loss(double loss, uint32_t step)
{
    const double first = step * ROUNDS, expected = 0.25 * first + 0.5 * (first + 1);
    ck_assert_double_eq(loss, expected);
}

static void run_steps(rig *r, uint32_t first, uint32_t count)
{
    for (uint32_t step = first; step < first + count; step++) {
        double loss = 0;
        REQUIRE_OK(run_step(r, step, &loss, err));
        check_loss(loss, step);
    }
}

static device_options with_graphs(bool capture)
{
    return (device_options){.capture = capture};
}

static void open_or_fail(rig *r, bool capture)
{
    const device_options options = with_graphs(capture);
    REQUIRE_OK(open_rig(r, &options, err));
}

// ---- steps ------------------------------------------------------------------------------------------------------------

enum { STEPS = 12, SEEDS = 12 };

// Whatever order the card takes work of several streams in.
START_TEST(lanes_keep_their_order)
{
    static rig r;
    float w[N];
    char seed[16];
    (void)snprintf(seed, sizeof seed, "%d", _i / 2 + 1);
    ck_assert_int_eq(setenv("CARD_SEED", seed, 1), 0);
    open_or_fail(&r, _i % 2 == 1);
    run_steps(&r, 0, STEPS);
    read_weights(&r, w);
    check_weights(w, STEPS);
    close_rig(&r);
}
END_TEST

// Before the host makes the batch of a later round of an eager step it waits for the copy of the one before.
START_TEST(a_steady_step_waits_once_and_takes_nothing)
{
    static rig r;
    card_totals seen;
    open_or_fail(&r, _i == 1);
    run_steps(&r, 0, 6);
    card.card_reset();
    run_steps(&r, 6, 3);
    card.card_count(&seen);
    ck_assert_uint_eq(seen.allocations, 0);
    ck_assert_uint_eq(seen.synchronisations, _i == 1 ? 3 : 3 * ROUNDS);
    ck_assert_uint_eq(seen.graph_launches, _i == 1 ? 3 : 0);
    ck_assert_uint_eq(card.card_calls("cuLaunchKernel"), _i == 1 ? 0 : 3 * (2 * ROUNDS + 1));
    ck_assert_uint_eq(seen.to_card_bytes, 3 * (ROUNDS * (N + 1 + N) * sizeof(float) + ROUNDS * 32));
    ck_assert_uint_eq(seen.from_card_bytes, 3 * ROUNDS * (N + 1) * sizeof(float));
    close_rig(&r);
}
END_TEST

START_TEST(a_graph_gives_the_bits_of_eager_steps)
{
    static rig eager, graph;
    float a[N], b[N];
    open_or_fail(&eager, false);
    open_or_fail(&graph, true);
    run_steps(&eager, 0, STEPS);
    run_steps(&graph, 0, STEPS);
    read_weights(&eager, a);
    read_weights(&graph, b);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_uint_gt(card.card_calls("cuGraphLaunch"), STEPS / 2);
    close_rig(&eager);
    close_rig(&graph);
}
END_TEST

// What may not be done while a step is captured is told as if the card were gone; it is not, and the step goes on.
START_TEST(a_capture_that_fails_loses_no_card)
{
    static rig r;
    float w[N];
    open_or_fail(&r, true);
    run_steps(&r, 0, 3);
    ck_assert_uint_eq(card.card_calls("cuStreamBeginCapture_v2"), 0);
    card.card_fail("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_FAILED);
    run_steps(&r, 3, 17); // nor is it tried again
    ck_assert_uint_eq(card.card_calls("cuStreamBeginCapture_v2"), 1);
    ck_assert_uint_eq(card.card_calls("cuGraphLaunch"), 0);
    read_weights(&r, w);
    check_weights(w, 20);
    close_rig(&r);
}
END_TEST

static void launch_nothing(cuda_device *device, CUfunction function, uint32_t shared_bytes)
{
    const softmax_args none = {.rows = 0, .columns = 1, .height = 1};
    const instr i = {.op = HR_OP_SOFTMAX};
    const cuda_run run = {.device = device, .instr = &i};
    const cuda_grid grid = {.blocks_x = 1, .threads = 1024, .shared_bytes = shared_bytes};
    REQUIRE_OK(cuda_launch(&run, function, grid, &none, sizeof none, err));
}

START_TEST(kernels_are_on_the_card_before_the_first_step)
{
    enum { KERNELS = 3 }; // relu, accumulate, sgd; what else the toy does are copies
    static rig r;
    open_or_fail(&r, false);
    ck_assert_uint_eq(card.card_calls("cuFuncLoad"), KERNELS);
    ck_assert_uint_eq(card.card_calls("cuLaunchKernel"), 0);
    run_steps(&r, 0, 2);
    ck_assert_uint_eq(card.card_calls("cuFuncLoad"), KERNELS);
    close_rig(&r);
}
END_TEST

// A graph that was captured with much still finds it when less was asked for behind it.
START_TEST(shared_memory_of_a_kernel_is_not_taken_back)
{
    enum { MUCH = 200 * 1024, LESS = 60 * 1024 };
    const device_options options = {0};
    void *context = NULL;
    CUfunction f = NULL;
    int allowed = 0;
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    REQUIRE_OK(cuda_function(context, "softmax", "softmax_long_f32", &f, err));
    launch_nothing(context, f, LESS);
    launch_nothing(context, f, MUCH);
    launch_nothing(context, f, LESS);
    ck_assert_int_eq(
        cuda_driver.cuFuncGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f),
        CUDA_SUCCESS);
    ck_assert_int_eq(allowed, MUCH);
    device_cuda.close(context);
}
END_TEST

// What is taken from the heap between steps moves the temporaries of the next.
START_TEST(a_graph_is_left_when_addresses_move)
{
    static rig r;
    float w[N];
    uint64_t address = 0;
    open_or_fail(&r, true);
    run_steps(&r, 0, 6);
    const uint64_t launched = card.card_calls("cuGraphLaunch");
    ck_assert_uint_gt(launched, 0);
    REQUIRE_OK(allocator_alloc(r.heap, N * sizeof(float), HR_NO_ID, &address, err));
    run_steps(&r, 6, 1);
    ck_assert_uint_eq(card.card_calls("cuGraphLaunch"), launched);
    run_steps(&r, 7, 10);
    ck_assert_uint_gt(card.card_calls("cuGraphLaunch"), launched);
    read_weights(&r, w);
    check_weights(w, 17);
    allocator_free(r.heap, address);
    run_steps(&r, 17, 1);
    read_weights(&r, w);
    check_weights(w, 18);
    close_rig(&r);
}
END_TEST

// Allocators that take and give back in the middle of steps: what uses memory has run before it goes.
static const struct {
    const char *kind;
    bool capture;
} giving[] = {
    {"direct", false}, {"direct", true}, {"async", true}, {"async_driver", false}, {"async_driver", true}};
enum { GIVING = sizeof giving / sizeof *giving };

START_TEST(memory_that_goes_back_is_waited_for)
{
    static rig r;
    float w[N];
    const device_options options = with_graphs(giving[_i].capture);
    const allocator_config config = {.kind = giving[_i].kind, .limit_bytes = 64 * HR_MIB};
    REQUIRE_OK(open_rig_on(&r, &options, &config, err));
    ck_assert_str_eq(r.heap->ops->name, giving[_i].kind);
    run_steps(&r, 0, STEPS);
    read_weights(&r, w);
    check_weights(w, STEPS);
    if (strcmp(giving[_i].kind, "async") !=
        0) { // whoever takes in the middle of a step puts nothing off to its end
        ck_assert_uint_eq(card.card_calls("cuGraphLaunch"), 0);
    }
    close_rig(&r);
}
END_TEST

// Two bytes a float are what the pipeline made of it; nothing else is pinned for a batch.
START_TEST(a_batch_is_copied_from_where_it_lies)
{
    static rig r;
    static toy t;
    pinned_memory pinned;
    void *kernels = NULL, *lies = NULL;
    uint16_t narrow[N];
    open_or_fail(&r, false);
    add_tensor(&t, 0, "x", N, _i == 0 ? HR_F16 : HR_BF16, HR_CATEGORY_INPUT);
    add_input(&t, 2, 0);
    t.p.tensors = t.tensors;
    t.p.instrs = t.instrs;
    REQUIRE_OK(device_cuda.pinned(r.context, &pinned, err));
    REQUIRE_OK(pinned.take(pinned.context, sizeof narrow, &lies, err));
    for (uint32_t k = 0; k < N; k++) {
        ((uint16_t *)lies)[k] = (uint16_t)(k * 31);
    }
    void *address[1] = {(void *)(uintptr_t)executor_address(r.x, "x")};
    step_io io = {.slot = {NULL, NULL, lies}};
    card.card_reset();
    REQUIRE_OK(device_cuda.load(r.context, &t.p, &kernels, err));
    ck_assert_uint_eq(card.card_calls("cuMemHostAlloc"), 0);
    REQUIRE_OK(device_cuda.begin_round(r.context, kernels, 0, &io, err));
    REQUIRE_OK(device_cuda.run(r.context, kernels, 0, address, &io, err));
    REQUIRE_OK(device_cuda.end_step(r.context, kernels, &io, err));
    REQUIRE_OK(device_cuda.copy_out(r.context, executor_address(r.x, "x"), narrow, sizeof narrow, err));
    ck_assert_mem_eq(narrow, lies, sizeof narrow);
    device_cuda.unload(r.context, kernels);
    close_rig(&r); // the memory outlives the device
    memset(lies, 1, sizeof narrow);
    pinned.give_back(pinned.context, lies);
    pinned.close(pinned.context);
}
END_TEST

// ---- memory -----------------------------------------------------------------------------------------------------------

typedef struct held {
    uint64_t address[2], bytes;
    bool reservation;
    uint64_t mapped; // granules from the front
} held;

enum { HELD_MAX = 24, REQUESTS = 3000 };
#define CAPACITY_BYTES (96 * HR_MIB)

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool take_one(backing b[2], const uint64_t base[2], held *h, uint64_t *random)
{
    h->reservation = next_random(random) % 3 == 0;
    h->bytes = 1 + next_random(random) % (12 * HR_MIB);
    h->bytes = h->reservation ? (h->bytes / (2 * HR_MIB) + 1) * 2 * HR_MIB : h->bytes;
    for (uint32_t k = 0; k < 2; k++) {
        h->address[k] =
            h->reservation ? b[k].reserve(b[k].context, h->bytes) : b[k].take(b[k].context, h->bytes);
    }
    ck_assert_int_eq(h->address[0] == 0, h->address[1] == 0);
    ck_assert(h->address[0] == 0 || h->address[0] - base[0] == h->address[1] - base[1]);
    return h->address[0] != 0;
}

static void map_more(backing b[2], held *h)
{
    const uint64_t granule = 2 * HR_MIB, at = h->mapped * granule;
    bool done[2];
    for (uint32_t k = 0; k < 2; k++) {
        done[k] = b[k].map(b[k].context, h->address[k] + at, granule);
    }
    ck_assert_int_eq(done[0], done[1]);
    h->mapped += done[0];
}

static void drop_one(backing b[2], const held *h)
{
    for (uint32_t k = 0; k < 2; k++) {
        if (!h->reservation) {
            b[k].give_back(b[k].context, h->address[k], h->bytes);
            continue;
        }
        if (h->mapped > 0) {
            b[k].unmap(b[k].context, h->address[k], h->mapped * 2 * HR_MIB);
        }
        b[k].release(b[k].context, h->address[k], h->bytes);
    }
}

// The card's memory and a plan's numbers place equal requests at equal offsets, and refuse the same.
START_TEST(memory_lies_where_a_plan_has_it)
{
    const device_options options = {0};
    void *context = NULL;
    backing b[2];
    held list[HELD_MAX];
    uint64_t base[2], random = 77, count = 0;
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    card_memory before, after;
    card.card_memory_now(&before);
    for (uint32_t k = 0; k < 2; k++) {
        REQUIRE_OK(device_cuda.memory(context, CAPACITY_BYTES, k == 1, &b[k], err));
        base[k] = b[k].take(b[k].context, 1);
        b[k].give_back(b[k].context, base[k], 1);
    }
    ck_assert_uint_eq(b[0].granularity_bytes, b[1].granularity_bytes);
    ck_assert_uint_eq(b[0].alignment_bytes, b[1].alignment_bytes);
    ck_assert_uint_eq(b[0].mapping_bytes, b[1].mapping_bytes);
    for (uint32_t n = 0; n < REQUESTS; n++) {
        const uint64_t which = count == 0 ? 0 : next_random(&random) % count, what = next_random(&random) % 4;
        if (what < 2 && count < HELD_MAX) {
            list[count] = (held){0};
            count += take_one(b, base, &list[count], &random);
        } else if (count > 0 && what == 2 && list[which].reservation &&
                   list[which].mapped * 2 * HR_MIB < list[which].bytes) {
            map_more(b, &list[which]);
        } else if (count > 0) {
            drop_one(b, &list[which]);
            list[which] = list[--count];
        }
    }
    while (count > 0) {
        drop_one(b, &list[--count]);
    }
    card.card_memory_now(&after);
    ck_assert_uint_eq(before.process_bytes, after.process_bytes);
    backing_close(&b[0]);
    backing_close(&b[1]);
    device_cuda.close(context);
}
END_TEST

START_TEST(memory_is_there)
{
    const device_options options = {0};
    void *context = NULL;
    backing b;
    enum { BYTES = 5 * 1024 * 1024 };
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    REQUIRE_OK(device_cuda.memory(context, CAPACITY_BYTES, false, &b, err));
    uint8_t *in = malloc(BYTES), *out = malloc(BYTES);
    ck_assert(in != NULL && out != NULL);
    for (uint32_t k = 0; k < BYTES; k++) {
        in[k] = (uint8_t)(k * 31 >> 5);
    }
    const uint64_t taken = b.take(b.context, BYTES), reserved = b.reserve(b.context, 3 * 2 * HR_MIB);
    ck_assert_uint_ne(taken, 0);
    ck_assert(reserved != 0 && b.map(b.context, reserved, 2 * HR_MIB) &&
              b.map(b.context, reserved + 2 * HR_MIB, 4 * HR_MIB));
    for (uint32_t k = 0; k < 2; k++) {
        REQUIRE_OK(device_cuda.copy_in(context, k == 0 ? taken : reserved, in, BYTES, err));
        REQUIRE_OK(device_cuda.copy_out(context, k == 0 ? taken : reserved, out, BYTES, err));
        ck_assert_mem_eq(in, out, BYTES);
    }
    b.unmap(b.context, reserved, 6 * HR_MIB);
    b.release(b.context, reserved, 6 * HR_MIB);
    b.give_back(b.context, taken, BYTES);
    backing_close(&b);
    free(in);
    free(out);
    device_cuda.close(context);
}
END_TEST

typedef struct told {
    uint64_t reserved, used_high;
} told;

static void hear(void *context, const char *name, uint64_t value)
{
    told *t = context;
    t->reserved = strcmp(name, "reserved_mem_current") == 0 ? value : t->reserved;
    t->used_high = strcmp(name, "used_mem_high") == 0 ? value : t->used_high;
}

// The driver's pool: its own figures, its threshold, and a request that is served once it has been emptied.
START_TEST(the_drivers_pool_is_looked_at)
{
    static rig r;
    const device_options options = {0};
    const allocator_config config = {
        .kind = "async_driver", .limit_bytes = 7 * HR_GIB, .release_threshold_bytes = 7 * HR_GIB};
    uint64_t address[3];
    told now = {0};
    card_memory before, after;
    REQUIRE_OK(open_rig_on(&r, &options, &config, err));
    card.card_memory_now(&before);
    REQUIRE_OK(allocator_alloc(r.heap, 3 * HR_GIB, 0, &address[0], err));
    REQUIRE_OK(allocator_alloc(r.heap, 3 * HR_GIB, 1, &address[1], err));
    allocator_free(r.heap, address[0]);
    allocator_free(r.heap, address[1]);
    card.card_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_OK(allocator_alloc(r.heap, 5 * HR_GIB, 2, &address[2], err)); // neither of the two is enough
    r.heap->ops->statistics(r.heap, hear, &now);
    ck_assert_uint_ge(now.reserved, 5 * HR_GIB);
    ck_assert_uint_lt(now.reserved, 6 * HR_GIB);
    ck_assert_uint_ge(now.used_high, 6 * HR_GIB);
    ck_assert_uint_eq(card.card_calls("cuMemPoolTrimTo"), 1);
    ck_assert_uint_eq(allocator_get_stats(r.heap).requested_bytes % HR_GIB, 4 * N * 3 + 4);
    allocator_free(r.heap, address[2]);
    close_rig(&r);
    card.card_memory_now(&after);
    ck_assert_uint_lt(after.process_bytes, before.process_bytes);
}
END_TEST

// Without mapping every region is a range of the driver's own, of whole pieces; its plan knows.
START_TEST(a_driver_that_cannot_map_serves_all_the_same)
{
    static const char *const kinds[] = {"bfc", "caching", "direct"};
    static rig r;
    float w[N];
    backing numbers;
    hr_err refused = {0};
    card_memory before, after;
    const device_options options = {0};
    const allocator_config mapped = {.kind = "async", .limit_bytes = 64 * HR_MIB};
    allocator_config config = allocator_config_of(kinds[_i], 64 * HR_MIB);
    config.growth = true;
    ck_assert_int_eq(setenv("CARD_PIECE", "0", 1), 0);
    REQUIRE_OK(open_rig_on(&r, &options, &config, err));
    run_steps(&r, 0, STEPS);
    read_weights(&r, w);
    check_weights(w, STEPS);
    card.card_memory_now(&before);
    ck_assert_uint_eq(card.card_calls("cuMemCreate"), 0);
    ck_assert_uint_gt(card.card_calls("cuMemAlloc_v2"), 1);
    REQUIRE_OK(device_cuda.memory(r.context, 64 * HR_MIB, true, &numbers, err));
    const backing *both[] = {&r.source, &numbers};
    for (int k = 0; k < 2; k++) {
        ck_assert_uint_eq(both[k]->granularity_bytes, 2 * HR_MIB);
        ck_assert_uint_eq(both[k]->mapping_bytes, 0);
        ck_assert(both[k]->reserve == NULL && both[k]->release == NULL && both[k]->map == NULL &&
                  both[k]->unmap == NULL);
    }
    allocator *none = NULL;
    ck_assert_int_eq(allocator_create(&mapped, &numbers, NULL, &none, &refused), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(refused.sentence, "maps memory"));
    backing_close(&numbers);
    // The limit is the card's: whole pieces, and not one more.
    const uint64_t pool_bytes = allocator_get_stats(r.heap).pool_bytes;
    const uint64_t piece = r.source.take(r.source.context, 1);
    ck_assert_uint_ne(piece, 0);
    card.card_memory_now(&after);
    ck_assert_uint_eq(after.process_bytes, before.process_bytes + 2 * HR_MIB);
    ck_assert_uint_eq(r.source.take(r.source.context, 64 * HR_MIB - pool_bytes), 0);
    r.source.give_back(r.source.context, piece, 1);
    close_rig(&r);
    card.card_memory_now(&after);
    ck_assert_uint_eq(after.process_bytes, 0);
}
END_TEST

// NVML's list has everybody; who has just ended is missing from it, and in a container nobody has a figure.
START_TEST(others_are_told_apart_whoever_is_listed)
{
    static const char *const lists[] = {"1", "7", "300", "0", "-3"};
    static rig r;
    device_outside seen;
    card_memory now;
    ck_assert_int_eq(setenv("CARD_PROCESSES", lists[_i], 1), 0);
    open_or_fail(&r, false);
    card.card_others(3 * HR_GIB, 0, 0);
    card.card_memory_now(&now);
    device_cuda.outside(r.context, &seen);
    ck_assert(seen.known);
    ck_assert_uint_eq(seen.process_bytes, now.process_bytes);
    ck_assert_uint_eq(seen.others_bytes, 3 * HR_GIB);
    card.card_others(0, 0, 0); // they have ended
    device_cuda.outside(r.context, &seen);
    ck_assert_uint_eq(seen.process_bytes, now.process_bytes);
    ck_assert_uint_eq(seen.others_bytes, 0);
    close_rig(&r);
}
END_TEST

START_TEST(others_are_told_apart)
{
    static rig r;
    device_outside seen;
    hr_err refused = {0};
    open_or_fail(&r, false);
    card_memory now;
    card.card_others(3 * HR_GIB, 0, 0);
    card.card_memory_now(&now);
    device_cuda.outside(r.context, &seen);
    ck_assert(seen.known);
    ck_assert_uint_eq(seen.others_bytes, 3 * HR_GIB);
    ck_assert_uint_eq(seen.process_bytes, now.process_bytes);
    ck_assert_uint_eq(seen.context_bytes + allocator_get_stats(r.heap).pool_bytes, now.process_bytes);
    const uint64_t left = now.total_bytes - now.others_bytes - seen.context_bytes;
    REQUIRE_OK(device_cuda.admit(r.context, left, left, err));
    ck_assert_int_eq(device_cuda.admit(r.context, 0, left + 1, NULL), HR_HOST_LIMIT);
    ck_assert_int_eq(device_cuda.admit(r.context, left + 1, 0, &refused), HR_HOST_LIMIT);
    ck_assert_ptr_nonnull(strstr(refused.sentence, "other processes hold 3.00 GiB"));
    ck_assert_ptr_nonnull(strstr(refused.hint, "-s device.vram="));
    close_rig(&r);
}
END_TEST

// ---- what fails -------------------------------------------------------------------------------------------------------

enum { FAULT_STEPS = 5 };

// Everything once; the first failure ends it.
static hr_status whole_life(rig *r, const char *kind, bool graphs, hr_err *err)
{
    const device_options options = with_graphs(graphs);
    const allocator_config config = {.kind = kind, .limit_bytes = 64 * HR_MIB, .growth = true};
    HR_TRY(open_rig_on(r, &options, &config, err));
    for (uint32_t step = 0; step < FAULT_STEPS; step++) {
        double loss = 0;
        HR_TRY(run_step(r, step, &loss, err));
    }
    float w[N];
    HR_TRY(device_cuda.copy_out(r->context, executor_address(r->x, "w"), w, sizeof w, err));
    check_weights(w, FAULT_STEPS);
    return HR_OK;
}

static const char *const driver_calls[] = {
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemGetAllocationGranularity",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncLoad",
    "cuLaunchKernel",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolSetAttribute",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
};
enum { DRIVER_CALL_COUNT = sizeof driver_calls / sizeof *driver_calls };

// Every call of one function failing once: an error with a sentence or a step that went on as well; nothing is left, and
// the next life is whole.
START_TEST(every_call_may_fail)
{
    static rig r;
    const char *function = driver_calls[_i];
    const bool of_pool = strstr(function, "Pool") != NULL || strcmp(function, "cuMemFreeAsync") == 0;
    const char *kind = of_pool ? "async_driver" : "bfc";
    const bool graphs = strcmp(function, "cuEventSynchronize") != 0; // a graph copies its batches first
    hr_err err = {0};
    ck_assert_msg(whole_life(&r, kind, graphs, &err) == HR_OK, "%s", err.sentence);
    close_rig(&r);
    const uint64_t calls = card.card_calls(function);
    const int64_t live = hr_host_mem_live();
    ck_assert_uint_gt(calls, 0);
    for (uint64_t nth = 1; nth <= calls; nth += 1 + nth / 16) {
        err = (hr_err){0};
        card.card_fail(function, nth, CUDA_ERROR_UNKNOWN);
        const hr_status status = whole_life(&r, kind, graphs, &err);
        close_rig(&r);
        card.card_fail(function, 0, CUDA_SUCCESS);
        ck_assert_msg(status == HR_OK || err.sentence[0] != '\0', "%s, call %llu", function,
                      (unsigned long long)nth);
        ck_assert_int_ne(status, HR_DEVICE_LOST);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_msg(whole_life(&r, kind, graphs, &err) == HR_OK, "%s", err.sentence);
    close_rig(&r);
}
END_TEST

// From then on everything says so, and nothing waits.
START_TEST(a_lost_card_is_told_and_left)
{
    static rig r;
    hr_err err = {0};
    double loss = 0;
    open_or_fail(&r, _i % 2 == 1);
    card.card_lose_at(1 + (uint64_t)_i * 3);
    hr_status status = HR_OK;
    for (uint32_t step = 0; status == HR_OK && step < 40; step++) {
        status = run_step(&r, step, &loss, &err);
    }
    ck_assert_int_eq(status, HR_DEVICE_LOST);
    ck_assert_int_ne(err.sentence[0], '\0');
    card_totals before, after;
    card.card_count(&before);
    ck_assert_int_eq(run_step(&r, 0, &loss, &err), HR_DEVICE_LOST);
    float w[N];
    ck_assert_int_eq(device_cuda.copy_out(r.context, executor_address(r.x, "w"), w, sizeof w, &err),
                     HR_DEVICE_LOST);
    device_outside seen;
    device_cuda.outside(r.context, &seen);
    ck_assert(!seen.known);
    card.card_count(&after);
    ck_assert_uint_eq(after.calls, before.calls); // nobody asks it anything any more
    close_rig(&r);
}
END_TEST

static void refuse_open(const char *name, const char *value, hr_status needed, const char *words)
{
    const device_options options = {0};
    void *context = NULL;
    hr_err err = {0};
    ck_assert_int_eq(setenv(name, value, 1), 0);
    ck_assert_int_eq(device_cuda.open(&options, &context, &err), needed);
    ck_assert_ptr_null(context);
    ck_assert_msg(strstr(err.sentence, words) != NULL, "%s", err.sentence);
    ck_assert_ptr_nonnull(strstr(err.hint, "-s device.kind=plan"));
}

START_TEST(a_driver_that_is_too_old_is_told)
{
    refuse_open("CARD_DRIVER", "12040", HR_DEPENDENCY, "the one that is installed is for CUDA 12.4");
}
END_TEST

START_TEST(no_card_is_told)
{
    refuse_open("CARD_DEVICES", "0", HR_DEPENDENCY, "needed an NVIDIA card");
}
END_TEST

START_TEST(a_full_card_is_told)
{
    refuse_open("CARD_OTHERS", "8000M", HR_DEVICE, "other processes hold it");
}
END_TEST

START_TEST(a_plan_needs_no_driver_and_runs_nothing)
{
    const device_options options = {.plan_only = true};
    void *context = NULL, *kernels = NULL;
    hr_err refused = {0};
    backing b;
    static toy t;
    fill_toy(&t);
    ck_assert_int_eq(setenv("CARD_DEVICES", "0", 1), 0);
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    REQUIRE_OK(device_cuda.memory(context, CAPACITY_BYTES, true, &b, err));
    ck_assert_uint_eq(b.granularity_bytes, 2 * HR_MIB);
    ck_assert_int_eq(device_cuda.load(context, &t.p, &kernels, &refused), HR_DEVICE);
    backing_close(&b);
    device_cuda.close(context);
}
END_TEST

// Answers are remembered by it: what becomes a plan is the driver's affair too.
START_TEST(another_driver_is_another_key)
{
    const device_options options = {0};
    int pipes[2];
    uint64_t key[2] = {0, 0};
    void *context = NULL;
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        hr_err err;
        const bool done = setenv("CARD_DRIVER", "13010", 1) == 0 &&
                          device_cuda.open(&options, &context, &err) == HR_OK &&
                          write(pipes[1], &((cuda_device *)context)->key, sizeof key[0]) == sizeof key[0];
        _exit(done ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ck_assert_int_eq(read(pipes[0], &key[0], sizeof key[0]), sizeof key[0]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    REQUIRE_OK(device_cuda.open(&options, &context, err));
    key[1] = ((cuda_device *)context)->key;
    ck_assert_uint_ne(key[0], key[1]);
    device_cuda.close(context);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *c = tcase_create(name);
    suite_add_tcase(suite, c);
    return c;
}

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda runtime");
    TCase *steps = add_case(suite, "steps"), *memory = add_case(suite, "memory"),
          *faults = add_case(suite, "faults");
    tcase_add_loop_test(steps, lanes_keep_their_order, 0, 2 * SEEDS);
    tcase_add_loop_test(steps, a_steady_step_waits_once_and_takes_nothing, 0, 2);
    tcase_add_test(steps, a_graph_gives_the_bits_of_eager_steps);
    tcase_add_test(steps, kernels_are_on_the_card_before_the_first_step);
    tcase_add_test(steps, a_capture_that_fails_loses_no_card);
    tcase_add_test(steps, shared_memory_of_a_kernel_is_not_taken_back);
    tcase_add_test(steps, a_graph_is_left_when_addresses_move);
    tcase_add_loop_test(steps, memory_that_goes_back_is_waited_for, 0, GIVING);
    tcase_add_test(memory, the_drivers_pool_is_looked_at);
    tcase_add_loop_test(steps, a_batch_is_copied_from_where_it_lies, 0, 2);
    tcase_add_test(memory, memory_lies_where_a_plan_has_it);
    tcase_add_test(memory, memory_is_there);
    tcase_add_loop_test(memory, a_driver_that_cannot_map_serves_all_the_same, 0, 3);
    tcase_add_test(memory, others_are_told_apart);
    tcase_add_loop_test(memory, others_are_told_apart_whoever_is_listed, 0, 5);
    tcase_add_loop_test(faults, every_call_may_fail, 0, DRIVER_CALL_COUNT);
    tcase_add_loop_test(faults, a_lost_card_is_told_and_left, 0, 24);
    tcase_add_test(faults, a_driver_that_is_too_old_is_told);
    tcase_add_test(faults, no_card_is_told);
    tcase_add_test(faults, a_full_card_is_told);
    tcase_add_test(faults, another_driver_is_another_key);
    tcase_add_test(faults, a_plan_needs_no_driver_and_runs_nothing);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
