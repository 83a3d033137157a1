// SPDX-License-Identifier: Apache-2.0
// batch.accumulate and optimizer.fused_backward as programs: where their instructions stand, what they hold, and that a
// loop over parts of a batch gives the gradients of the whole.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "device/executor.h"
#include "program/compile.h"
#include "program/model_from_text.h"

static const char cnn[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: cnn\n"
    "  input: {shape: [12, 12, 3]}\n"
    "  classes: 4\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: a, kind: separable_conv2d, filters: 8, kernel: 3, activation: relu}\n"
    "    - {kind: max_pool, size: 2}\n"
    "    - {name: b, kind: conv2d, filters: 8, kernel: 3, padding: 1, activation: relu}\n"
    "    - {name: c, kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "    - {name: sum, kind: add, inputs: [b, c], activation: relu}\n"
    "    - {kind: flatten}\n"
    "    - {kind: dense, units: 16, activation: relu}\n"
    "    - {kind: dense, units: 4}\n";
enum { PIXELS = 12 * 12 * 3, CLASSES = 4, BATCH = 8 };

static void set_all(hr_knobs *knobs, const char *const *pairs)
{
    hr_err err = {0};
    hr_knobs_init(knobs);
    ck_assert_int_eq(hr_knobs_set_pair(knobs, "device.vram=64MiB", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(knobs, "device.kind=reference", &err), HR_OK);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_knobs_validate(knobs, &err) == HR_OK, "%s", err.sentence);
}

static program *compile(const hr_model *model, const char *const *pairs)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_target target;
    program *p = NULL;
    set_all(&knobs, pairs);
    device_reference.target(NULL, &target);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN,
                                  (uint32_t)hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE), &target, &p,
                                  &err) == HR_OK,
                  "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static program *compile_text(const char *const *pairs)
{
    hr_model *model = model_from_text(cnn);
    program *p = compile(model, pairs);
    model_destroy(model);
    return p;
}

static uint64_t persistent_bytes(const program *p, hr_category category)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        sum += p->tensors[k].category == category ? p->tensors[k].bytes : 0;
    }
    return sum;
}

// ---- what it holds --------------------------------------------------------------------------------------------

static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};

START_TEST(accumulating_adds_one_sum_for_each_weight_and_nothing_else)
{
    program *one = compile_text((const char *[]){modes[_i], "batch.size=8", NULL});
    program *four = compile_text((const char *[]){modes[_i], "batch.size=8", "batch.accumulate=4", NULL});
    uint64_t weights = persistent_bytes(one, HR_CATEGORY_WEIGHTS);
    ck_assert_uint_eq(persistent_bytes(one, HR_CATEGORY_ACCUMULATORS), 0);
    ck_assert_uint_eq(persistent_bytes(four, HR_CATEGORY_ACCUMULATORS), weights);
    ck_assert_uint_eq(four->static_bytes, one->static_bytes + weights);
    ck_assert_uint_le(program_peak_bytes(four), program_peak_bytes(one) + weights);
    ck_assert_uint_eq(four->saved_for_backward_bytes, one->saved_for_backward_bytes);
    ck_assert_uint_eq(four->h2d_bytes, 4 * one->h2d_bytes);
    ck_assert_uint_eq(four->rounds, 4);
    program_destroy(one);
    program_destroy(four);
}
END_TEST

START_TEST(a_larger_batch_holds_what_the_rounds_do_not)
{
    program *large = compile_text((const char *[]){"batch.size=64", NULL});
    program *rounds = compile_text((const char *[]){"batch.size=8", "batch.accumulate=8", NULL});
    program *small = compile_text((const char *[]){"batch.size=8", NULL});
    uint64_t per_sample = (program_peak_bytes(large) - program_peak_bytes(small)) / 56;
    ck_assert_uint_lt(program_peak_bytes(rounds), program_peak_bytes(large));
    ck_assert_uint_ge(program_peak_bytes(large) - program_peak_bytes(rounds),
                      56 * per_sample - persistent_bytes(small, HR_CATEGORY_WEIGHTS));
    program_destroy(large);
    program_destroy(rounds);
    program_destroy(small);
}
END_TEST

// Requested bytes alive while instruction n runs.
static uint64_t live_at(const program *p, uint32_t at)
{
    uint64_t live = 0;
    for (uint32_t n = 0; n <= at; n++) {
        live = program_live_after(p, &p->instrs[n], live);
    }
    return live;
}

static uint64_t most_gradients(const program *p)
{
    uint64_t live = 0;
    uint64_t most = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const tensor *t = i->op == HR_OP_ALLOC  ? &p->tensors[i->out[0]]
                          : i->op == HR_OP_FREE ? &p->tensors[i->in[0]]
                                                : NULL;
        if (t != NULL && t->category == HR_CATEGORY_GRADIENTS) {
            live = i->op == HR_OP_ALLOC ? live + t->bytes : live - t->bytes;
        }
        most = live > most ? live : most;
    }
    return most;
}

START_TEST(fused_backward_holds_the_gradients_of_one_layer)
{
    program *off = compile_text((const char *[]){modes[_i], "batch.size=8", NULL});
    program *on =
        compile_text((const char *[]){modes[_i], "batch.size=8", "optimizer.fused_backward=on", NULL});
    uint64_t weights = persistent_bytes(off, HR_CATEGORY_WEIGHTS);
    uint64_t largest = 0; // layer: its weights and bias are completed by one instruction
    for (uint32_t k = 0; k + 1 < on->persistent_count; k++) {
        const tensor *t = &on->tensors[k];
        bool bias = t[1].category == HR_CATEGORY_WEIGHTS && t[1].layer == t->layer;
        uint64_t bytes = t->bytes + (bias ? t[1].bytes : 0);
        largest = t->category == HR_CATEGORY_WEIGHTS && bytes > largest ? bytes : largest;
    }
    ck_assert_uint_eq(most_gradients(off), weights);
    ck_assert_uint_eq(most_gradients(on), largest);
    ck_assert_uint_eq(on->instr_count, off->instr_count);
    ck_assert_uint_eq(on->static_bytes + weights, off->static_bytes);
    ck_assert_uint_lt(program_peak_bytes(on), program_peak_bytes(off) + 1);
    program_destroy(off);
    program_destroy(on);
}
END_TEST

START_TEST(an_update_stands_behind_all_that_read_its_variable)
{
    program *p =
        compile_text((const char *[]){modes[_i], "batch.size=8", "optimizer.fused_backward=on", NULL});
    unsigned updates = 0;
    uint32_t last_backward = 0;
    uint32_t first_update = p->instr_count;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        last_backward = i->phase == HR_PHASE_BACKWARD && op_needs_kernel(i->op) ? n : last_backward;
        if (i->op != HR_OP_ADAM) {
            continue;
        }
        updates++;
        first_update = n < first_update ? n : first_update;
        for (uint32_t m = n + 1; m < p->instr_count; m++) {
            for (uint32_t k = 0; k < p->instrs[m].in_count; k++) {
                ck_assert_uint_ne(p->instrs[m].in[k], i->in[0]);
            }
        }
    }
    ck_assert_uint_eq(updates, 11);
    ck_assert_uint_lt(first_update, last_backward);
    program_destroy(p);
}
END_TEST

// ---- the checker ------------------------------------------------------------------------------------------------

static bool accepts(const program *p, const instr *instrs)
{
    program copy = *p;
    copy.instrs = instrs;
    return program_check(&copy, NULL) == HR_OK;
}

START_TEST(the_checker_notices_a_loop_that_does_not_balance)
{
    program *p = compile_text((const char *[]){modes[_i], "batch.size=4", "batch.accumulate=3", NULL});
    instr *instrs = hr_calloc(p->instr_count, sizeof *instrs);
    unsigned moved = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        begin = p->instrs[n].op == HR_OP_REPEAT ? n : begin;
        end = p->instrs[n].op == HR_OP_END ? n : end;
    }
    ck_assert_uint_lt(begin, end);
    for (uint32_t n = begin + 1; n < end; n++) { // out of the loop, by its nearer end
        bool birth = p->instrs[n].op == HR_OP_ALLOC;
        if (!birth && p->instrs[n].op != HR_OP_FREE) {
            continue;
        }
        memcpy(instrs, p->instrs, p->instr_count * sizeof *instrs);
        if (birth) {
            memmove(&instrs[begin + 1], &instrs[begin], (n - begin) * sizeof *instrs);
            instrs[begin] = p->instrs[n];
        } else {
            memmove(&instrs[n], &instrs[n + 1], (end - n) * sizeof *instrs);
            instrs[end] = p->instrs[n];
        }
        ck_assert_msg(!accepts(p, instrs), "instruction %u", n);
        moved++;
    }
    ck_assert_uint_gt(moved, 20);
    memcpy(instrs, p->instrs, p->instr_count * sizeof *instrs);
    ck_assert(accepts(p, instrs));
    instrs[begin].attr.count = 0;
    ck_assert(!accepts(p, instrs));
    instrs[begin] = p->instrs[end];
    ck_assert(!accepts(p, instrs));
    hr_free(instrs);
    program_destroy(p);
}
END_TEST

// ---- together with the other passes -----------------------------------------------------------------------------

static const char *const columns[][4] = {
    {"execution.mode=eager", "execution.mode=graph"},
    {"batch.accumulate=1", "batch.accumulate=3"},
    {"optimizer.fused_backward=off", "optimizer.fused_backward=on"},
    {"execution.tape=once", "execution.tape=none", "execution.tape=persistent"},
    {"execution.retain=none", "execution.retain=losses", "execution.retain=predictions",
     "execution.retain=variables"},
    {"execution.inplace=on", "execution.inplace=off"},
    {"checkpoint.strategy=none", "checkpoint.strategy=sqrt", "checkpoint.strategy=selective"},
    {"offload.activations=off", "offload.activations=on"},
    {"offload.optimizer=off", "offload.optimizer=on"},
    {"precision.policy=float32", "precision.policy=mixed_float16", "precision.policy=bfloat16"},
};
enum { COLUMNS = sizeof columns / sizeof *columns, COMBINATIONS = 2000 };

static hr_status compile_combination(const hr_model *model, const hr_knobs *knobs, hr_err *err)
{
    hr_target target;
    void *context = NULL;
    program *p = NULL;
    const device_options options = {.card = NULL};
    HR_TRY(device_plan.open(&options, &context, err));
    device_plan.target(context, &target);
    hr_status status = program_compile(model, knobs, PROGRAM_TRAIN, 8, &target, &p, err);
    if (status == HR_OK) {
        status = program_check(p, err);
        program_destroy(p);
    }
    device_plan.close(context);
    return status;
}

START_TEST(every_legal_combination_of_passes_passes_the_checker)
{
    hr_model *model = model_from_text(cnn);
    uint32_t state = 99;
    unsigned legal = 0;
    for (int n = 0; n < COMBINATIONS; n++) {
        hr_knobs knobs;
        hr_err err = {0};
        char tried[512] = "";
        hr_knobs_init(&knobs);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", &err), HR_OK);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=64MiB", &err), HR_OK);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=8", &err), HR_OK);
        for (int c = 0; c < COLUMNS; c++) {
            uint32_t choices = 0;
            while (choices < 4 && columns[c][choices] != NULL) {
                choices++;
            }
            state = state * 1664525u + 1013904223u;
            const char *pair = columns[c][(state >> 16) % choices];
            ck_assert_msg(hr_knobs_set_pair(&knobs, pair, &err) == HR_OK, "%s", err.sentence);
            (void)snprintf(tried + strlen(tried), sizeof tried - strlen(tried), " %s", pair);
        }
        if (hr_knobs_validate(&knobs, NULL) != HR_OK) {
            continue;
        }
        legal++;
        ck_assert_msg(compile_combination(model, &knobs, &err) == HR_OK, "%s:%s", err.sentence, tried);
    }
    ck_assert_uint_gt(legal, 150);
    model_destroy(model);
}
END_TEST

// ---- numbers ----------------------------------------------------------------------------------------------------

static float images[BATCH * PIXELS];
static double wide_images[BATCH * PIXELS]; // as a program of float64 takes them
static int32_t labels[BATCH];

static void make_batch(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < BATCH * PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        images[i] = (float)(state >> 8) / 16777216.0f;
        wide_images[i] = (double)images[i];
    }
    for (int n = 0; n < BATCH; n++) {
        labels[n] = (n * 3 + 1) % CLASSES;
    }
}

typedef struct rig {
    hr_model *model;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
} rig;

static void rig_init(rig *r, const char *const *pairs)
{
    hr_err err = {0};
    const allocator_config config = {.kind = "bfc", .limit_bytes = 1 << 26, .growth = true};
    *r = (rig){.model = model_from_text(cnn)};
    r->p = compile(r->model, pairs);
    ck_assert_int_eq(device_reference.memory(NULL, 1 << 26, false, &r->source, &err), HR_OK);
    ck_assert_int_eq(allocator_create(&config, &r->source, NULL, &r->heap, &err), HR_OK);
    ck_assert_int_eq(executor_create(&device_reference, NULL, r->heap, NULL, &r->x, &err), HR_OK);
    ck_assert_int_eq(executor_build(r->x, r->p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(r->x, r->p, &r->slot, &err), HR_OK);
    for (uint32_t k = 0; k < r->p->persistent_count; k++) {
        const tensor *t = &r->p->tensors[k];
        void *at = (void *)(uintptr_t)executor_address(r->x, t->name);
        memset(at, t->category == HR_CATEGORY_ACCUMULATORS ? 0xa5 : 0, t->bytes); // sums begin with rubbish
        float *initial = calloc(t->bytes, 1);
        uint64_t count = 0;
        ck_assert_ptr_nonnull(initial);
        ck_assert(shape_elements(&t->shape, &count));
        if (t->category == HR_CATEGORY_WEIGHTS) {
            model_init_param(r->model, t->param, 7, initial);
        }
        for (uint64_t i = 0; t->category == HR_CATEGORY_WEIGHTS && i < count; i++) {
            if (t->dtype == HR_F64) {
                ((double *)at)[i] = (double)initial[i];
            } else {
                ((float *)at)[i] = initial[i];
            }
        }
        free(initial);
    }
}

static void rig_deinit(rig *r)
{
    executor_destroy(r->x);
    allocator_destroy(r->heap);
    backing_close(&r->source);
    program_destroy(r->p);
    model_destroy(r->model);
}

typedef struct feed {
    uint32_t batch, rounds;
    bool wide;
} feed;

// The images of part `part`, in the type of the program's input.
static const void *images_of(const feed *f, uint32_t part)
{
    const size_t at = (size_t)part * f->batch * PIXELS;
    return f->wide ? (const void *)(wide_images + at) : images + at;
}

static hr_status next_part(void *context, step_io *io, hr_err *err)
{
    feed *f = context;
    (void)err;
    f->rounds++;
    io->slot[0] = images_of(f, f->rounds);
    io->slot[1] = labels + (size_t)f->rounds * f->batch;
    return HR_OK;
}

static bool has_wide_input(const program *p)
{
    bool wide = false;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        wide = wide || (p->tensors[k].category == HR_CATEGORY_INPUT && p->tensors[k].dtype == HR_F64);
    }
    return wide;
}

// Returns the loss; `parts`: the rounds see one part of the batch after the other.
static double rig_step(rig *r, bool parts)
{
    hr_err err = {0};
    feed f = {.batch = r->p->batch, .wide = has_wide_input(r->p)};
    step_io io = {.slot = {images_of(&f, 0), labels},
                  .update = 1,
                  .learning_rate = 1,
                  .loss_weight = 1.0 / r->p->rounds,
                  .next_round = parts ? next_part : NULL,
                  .context = &f};
    ck_assert_msg(executor_step(r->x, r->slot, &io, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(f.rounds, parts ? r->p->rounds - 1 : 0);
    return io.loss;
}

static double value_at(const rig *r, const tensor *t, uint64_t i)
{
    const void *at = (const void *)(uintptr_t)executor_address(r->x, t->name);
    return t->dtype == HR_F64 ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

// The largest |a - b| in a tensor of `category` over the largest |b - start|, over all such tensors.
static double worst_difference(const rig *a, const rig *b, const rig *start, hr_category category)
{
    double worst = 0;
    for (uint32_t k = 0, j = 0; k < a->p->persistent_count; k++, j++) {
        const tensor *t = &a->p->tensors[k];
        if (t->category != category) {
            continue;
        }
        while (strcmp(b->p->tensors[j].name, t->name) != 0) {
            j++;
        }
        uint64_t count = 0;
        double difference = 0;
        double scale = 0;
        ck_assert(shape_elements(&t->shape, &count));
        for (uint64_t i = 0; i < count; i++) {
            double before = start == NULL ? 0 : value_at(start, t, i);
            difference = fmax(difference, fabs(value_at(a, t, i) - value_at(b, &b->p->tensors[j], i)));
            scale = fmax(scale, fabs(value_at(b, &b->p->tensors[j], i) - before));
        }
        ck_assert_double_gt(scale, 1e-4); // there is a gradient at all
        worst = fmax(worst, difference / scale);
    }
    return worst;
}

static const struct {
    const char *size, *accumulate;
} splits[] = {{"batch.size=4", "batch.accumulate=2"},
              {"batch.size=2", "batch.accumulate=4"},
              {"batch.size=1", "batch.accumulate=8"}};

START_TEST(rounds_update_as_the_large_batch_does)
{
    static const char sgd[] = "optimizer.kind=sgd";
    static const char f64[] = "precision.policy=float64";
    const char *const parts[] = {
        splits[_i / 2].size, splits[_i / 2].accumulate, sgd, f64, modes[_i % 2], NULL};
    rig start, large, small;
    rig_init(&start, (const char *[]){"batch.size=8", sgd, f64, NULL});
    rig_init(&large, (const char *[]){"batch.size=8", sgd, f64, modes[_i % 2], NULL});
    rig_init(&small, parts);
    double expected = rig_step(&large, false);
    double got = rig_step(&small, true);
    ck_assert_double_eq_tol(got, expected, 1e-12);
    ck_assert_double_lt(worst_difference(&small, &large, &start, HR_CATEGORY_WEIGHTS), 1e-12);
    rig_deinit(&start);
    rig_deinit(&large);
    rig_deinit(&small);
}
END_TEST

START_TEST(float32_sums_are_the_large_batchs_gradient_to_one_millionth)
{
    const char *const parts[] = {splits[_i / 2].size, splits[_i / 2].accumulate, modes[_i % 2], NULL};
    rig large, small;
    rig_init(&large,
             (const char *[]){"batch.size=8", "batch.accumulate=2", NULL}); // twice the same batch: its mean
    rig_init(&small, parts);
    (void)rig_step(&large, false);
    (void)rig_step(&small, true);
    ck_assert_double_lt(worst_difference(&small, &large, NULL, HR_CATEGORY_ACCUMULATORS), 1e-6);
    rig_deinit(&large);
    rig_deinit(&small);
}
END_TEST

START_TEST(fused_backward_changes_no_bit)
{
    static const char *const kinds[] = {"optimizer.kind=sgd", "optimizer.kind=momentum",
                                        "optimizer.kind=adam"};
    rig off, on;
    rig_init(&off, (const char *[]){"batch.size=8", kinds[_i / 2], modes[_i % 2], NULL});
    rig_init(&on, (const char *[]){"batch.size=8", kinds[_i / 2], modes[_i % 2],
                                   "optimizer.fused_backward=on", NULL});
    for (int step = 0; step < 2; step++) {
        double a = rig_step(&off, false);
        double b = rig_step(&on, false);
        ck_assert(a == b);
    }
    for (uint32_t k = 0; k < off.p->persistent_count; k++) {
        const tensor *t = &off.p->tensors[k];
        ck_assert_mem_eq((void *)(uintptr_t)executor_address(off.x, t->name),
                         (void *)(uintptr_t)executor_address(on.x, t->name), t->bytes);
    }
    rig_deinit(&off);
    rig_deinit(&on);
}
END_TEST

START_TEST(the_listing_indents_the_loop)
{
    program *p = compile_text((const char *[]){"batch.size=4", "batch.accumulate=3", NULL});
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(f);
    program_print(p, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_ptr_nonnull(strstr(text, "B  repeat 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "B    reference                  step/input"));
    ck_assert_ptr_nonnull(strstr(text, "B  end\n"));
    ck_assert_ptr_nonnull(strstr(text, "B  reference                  a/scale"));
    ck_assert_uint_eq(live_at(p, p->instr_count - 1), 0);
    free(text);
    program_destroy(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loops");
    TCase *cases = tcase_create("loops");
    make_batch();
    tcase_add_loop_test(cases, accumulating_adds_one_sum_for_each_weight_and_nothing_else, 0, 2);
    tcase_add_test(cases, a_larger_batch_holds_what_the_rounds_do_not);
    tcase_add_loop_test(cases, fused_backward_holds_the_gradients_of_one_layer, 0, 2);
    tcase_add_loop_test(cases, an_update_stands_behind_all_that_read_its_variable, 0, 2);
    tcase_add_loop_test(cases, the_checker_notices_a_loop_that_does_not_balance, 0, 2);
    tcase_add_test(cases, every_legal_combination_of_passes_passes_the_checker);
    tcase_add_loop_test(cases, rounds_update_as_the_large_batch_does, 0, 6);
    tcase_add_loop_test(cases, float32_sums_are_the_large_batchs_gradient_to_one_millionth, 0, 6);
    tcase_add_loop_test(cases, fused_backward_changes_no_bit, 0, 6);
    tcase_add_test(cases, the_listing_indents_the_loop);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
