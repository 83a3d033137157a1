// SPDX-License-Identifier: Apache-2.0
// What the precision policies promise of a program: two-byte tensors take two bytes, every weight is cast once, losses
// and statistics stay float32, mixed precision costs and saves what the reference says (tensorflow.md B1), what a
// target cannot do in two bytes is done in float32 between visible casts, and a dynamic loss scale holds back updates.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "ops/loss_scale.h"
#include "program/compile.h"
#include "program/model_from_text.h"

static const char separable_cnn[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: separable\n"
    "  input: {shape: [32, 32, 3]}\n"
    "  classes: 10\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {kind: separable_conv2d, filters: 32, kernel: 3, activation: relu}\n"
    "    - {kind: max_pool, size: 2}\n"
    "    - {kind: separable_conv2d, filters: 64, kernel: 3, activation: relu}\n"
    "    - {kind: flatten}\n"
    "    - {kind: dense, units: 64, activation: relu}\n"
    "    - {kind: dense, units: 10}\n";

static const char normalised[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: normalised\n"
    "  input: {shape: [16, 16, 3]}\n"
    "  classes: 4\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn0, kind: batch_norm, activation: relu}\n"
    "    - {name: a, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn1, kind: batch_norm}\n"
    "    - {name: sum, kind: add, inputs: [bn1, bn0], activation: relu}\n"
    "    - {name: gap, kind: global_avg_pool}\n"
    "    - {name: out, kind: dense, units: 4}\n";

static const char *const models[] = {separable_cnn, normalised};
static const char *const policies[] = {"float32",        "float64", "mixed_float16",
                                       "mixed_bfloat16", "float16", "bfloat16"};
enum { POLICIES = sizeof policies / sizeof *policies, PARAMETERS = 695493 };

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool is_half(uint32_t dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16;
}

static bool fuses(void *context, hr_op op, hr_act act)
{
    (void)context;
    return act == HR_ACT_RELU && (op == HR_OP_CONV2D || op == HR_OP_DENSE || op == HR_OP_ADD);
}

static const hr_target native = {.name = "native", .key = 91, .ask = ask_nothing, .fuses = fuses};

static program *compile(const char *model_text, const char *policy, const char *const *pairs,
                        program_mode mode, uint32_t batch, const hr_target *target)
{
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    char pair[64];
    hr_model *model = model_from_text(model_text);
    hr_knobs_init(&knobs);
    (void)snprintf(pair, sizeof pair, "precision.policy=%s", policy);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, &err), HR_OK);
    (void)snprintf(pair, sizeof pair, "batch.size=%u", batch);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, &err), HR_OK);
    for (; pairs != NULL && *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(program_compile(model, &knobs, mode, batch, target, &p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static uint64_t elements(const tensor *t)
{
    uint64_t count = 0;
    ck_assert(shape_elements(&t->shape, &count));
    return count;
}

static uint64_t bytes_of(const program *p, hr_category category)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        sum += p->tensors[k].category == category ? p->tensors[k].bytes : 0;
    }
    return sum;
}

// ---- a batch --------------------------------------------------------------------------------------------------

// What the result is compared with is float32: a loss reads it.
static const char compared[] = "device: {vram: 1GiB}\n"
                               "model:\n"
                               "  name: compared\n"
                               "  input: {shape: [8, 8, 3]}\n"
                               "  loss: mean_squared_error\n"
                               "  layers:\n"
                               "    - {kind: flatten}\n"
                               "    - {kind: dense, units: 64}\n";

static const struct {
    const char *model, *policy, *mode, *fuse;
    hr_dtype input;
} batches[] = {
    {separable_cnn, "mixed_bfloat16", "graph", "on", HR_BF16},
    {separable_cnn, "mixed_float16", "graph", "on", HR_F16},
    {compared, "mixed_float16", "graph", "on", HR_F16}, // through a view
    {separable_cnn, "mixed_float16", "graph", "off", HR_F32},
    {separable_cnn, "mixed_float16", "eager", "on", HR_F32}, // as TensorFlow holds x
    {separable_cnn, "float16", "eager", "off", HR_F16},
    {separable_cnn, "float32", "graph", "on", HR_F32},
    {separable_cnn, "float64", "graph", "on", HR_F64},
};

static const tensor *input_of(const program *p, uint32_t slot)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if ((i->op == HR_OP_INPUT || i->op == HR_OP_PREFETCH) && i->attr.slot == (int32_t)slot) {
            return &p->tensors[i->out[0]];
        }
    }
    ck_abort_msg("no slot %u", slot);
}

// The batch that is evaluated and the one that is copied ahead take the same bytes: they share the slots.
START_TEST(a_batch_travels_in_the_type_that_its_readers_compute_in)
{
    char mode[32], fuse[32];
    (void)snprintf(mode, sizeof mode, "execution.mode=%s", batches[_i].mode);
    (void)snprintf(fuse, sizeof fuse, "execution.fuse=%s", batches[_i].fuse);
    const char *const pairs[] = {mode, fuse, "pipeline.device_prefetch=1", NULL};
    const program_mode modes[] = {PROGRAM_TRAIN, PROGRAM_EVALUATE, PROGRAM_FEED};
    for (size_t m = 0; m < 3; m++) {
        program *p = compile(batches[_i].model, batches[_i].policy, pairs, modes[m], 4, &native);
        ck_assert_uint_eq(input_of(p, 0)->dtype, batches[_i].input);
        if (batches[_i].model == compared) {
            ck_assert_uint_eq(input_of(p, 1)->dtype, HR_F32);
        }
        program_destroy(p);
    }
}
END_TEST

// ---- every policy ---------------------------------------------------------------------------------------------

START_TEST(every_policy_compiles_and_passes_the_checker)
{
    static const char *const settings[][3] = {{"execution.mode=eager"},
                                              {"execution.mode=graph"},
                                              {"execution.mode=graph", "precision.health=on"},
                                              {"execution.mode=eager", "precision.loss_scale=1024"}};
    for (size_t m = 0; m < 2; m++) {
        for (size_t s = 0; s < 4; s++) {
            for (program_mode mode = PROGRAM_TRAIN; mode <= PROGRAM_EVALUATE; mode++) {
                hr_err err = {0};
                program *p = compile(models[m], policies[_i], settings[s], mode, 8, &native);
                ck_assert_msg(program_check(p, &err) == HR_OK, "%s: %s", policies[_i], err.sentence);
                program_destroy(p);
            }
        }
    }
}
END_TEST

START_TEST(tensors_take_the_bytes_of_their_type)
{
    const bool pure = strcmp(policies[_i], "float16") == 0 || strcmp(policies[_i], "bfloat16") == 0;
    const bool mixed = strncmp(policies[_i], "mixed", 5) == 0;
    program *p = compile(normalised, policies[_i], NULL, PROGRAM_TRAIN, 8, &native);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const tensor *t = &p->tensors[k];
        ck_assert_uint_eq(t->bytes, elements(t) * dtype_bytes(t->dtype));
        const bool variable = t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_GRADIENTS ||
                              t->category == HR_CATEGORY_OPTIMIZER;
        if (variable) {
            ck_assert_msg(is_half(t->dtype) == pure, "%s is %s", t->name, dtype_name(t->dtype));
        } else if (t->category == HR_CATEGORY_STATE) {
            ck_assert_msg(!is_half(t->dtype), "%s is %s", t->name, dtype_name(t->dtype));
        } else if (t->category == HR_CATEGORY_CASTS) {
            ck_assert(mixed ? is_half(t->dtype) : t->dtype == HR_F32);
        }
        if (strstr(t->name, "/out") != NULL && t->category == HR_CATEGORY_ACTIVATIONS && t->dtype != HR_F32 &&
            t->dtype != HR_U8) {
            ck_assert(pure || mixed || t->dtype == HR_F64);
        }
    }
    program_destroy(p);
}
END_TEST

// Computed here from the model alone: no weight is read by an operation in another type than the activations', unless
// it normalises or judges.
START_TEST(only_losses_and_statistics_stay_float32)
{
    program *p = compile(normalised, policies[_i], NULL, PROGRAM_TRAIN, 8, &native);
    const bool half = _i >= 2;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool norm = i->op == HR_OP_BATCH_NORM || i->op == HR_OP_BATCH_NORM_BWD;
        if (i->op == HR_OP_CONV2D || i->op == HR_OP_DENSE || i->op == HR_OP_ADD || norm) {
            ck_assert(is_half(p->tensors[i->in[0]].dtype) == half &&
                      is_half(p->tensors[i->out[0]].dtype) == half);
        }
        if (norm) {
            ck_assert(!is_half(p->tensors[i->in[i->op == HR_OP_BATCH_NORM ? 1 : 2]].dtype));
        } else if (i->op == HR_OP_CONV2D || i->op == HR_OP_DENSE) {
            ck_assert(is_half(p->tensors[i->in[1]].dtype) == half);
        } else if (i->op == HR_OP_SOFTMAX_XENT) {
            ck_assert(!is_half(p->tensors[i->in[0]].dtype) && !is_half(p->tensors[i->out[0]].dtype));
        }
    }
    program_destroy(p);
}
END_TEST

START_TEST(every_weight_is_cast_once)
{
    program *p = compile(separable_cnn, "mixed_float16", NULL, PROGRAM_TRAIN, 8, &native);
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        uint32_t casts = 0;
        for (uint32_t n = 0; n < p->instr_count; n++) {
            casts += p->instrs[n].op == HR_OP_CAST && p->instrs[n].in[0] == k;
        }
        if (p->tensors[k].category == HR_CATEGORY_WEIGHTS) {
            ck_assert_msg(casts == 1, "%s is cast %u times", p->tensors[k].name, casts);
        }
    }
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_CASTS), 2 * PARAMETERS);
    program_destroy(p);
}
END_TEST

// ---- what mixed precision costs and saves (B1) ------------------------------------------------------------------

// Retained per sample: 58,080 numbers; logits and probabilities stand there as float32 copies of 10 beside the
// float16 logits, which is 60 bytes more than two bytes for each number.
enum { RETAINED = 58080, LOSS_EXTRA_BYTES = 60 };

START_TEST(a_sample_keeps_half_the_bytes)
{
    program *full = compile(separable_cnn, "float32", NULL, PROGRAM_TRAIN, 16, &native);
    program *mixed = compile(separable_cnn, "mixed_bfloat16", NULL, PROGRAM_TRAIN, 16, &native);
    ck_assert_uint_eq(full->saved_for_backward_bytes, 16u * 4u * RETAINED);
    ck_assert_uint_eq(mixed->saved_for_backward_bytes, 16u * (2u * RETAINED + LOSS_EXTRA_BYTES));
    ck_assert_uint_eq(full->static_bytes, 16u * PARAMETERS);
    ck_assert_uint_eq(mixed->static_bytes, 18u * PARAMETERS);
    program_destroy(full);
    program_destroy(mixed);
}
END_TEST

static double held(const char *policy, uint32_t batch)
{
    program *p = compile(separable_cnn, policy, NULL, PROGRAM_TRAIN, batch, &native);
    const double bytes = (double)(p->static_bytes + p->saved_for_backward_bytes);
    program_destroy(p);
    return bytes;
}

START_TEST(mixed_precision_breaks_even_at_batch_12)
{
    static const struct {
        uint32_t batch;
        double ratio;
    } expected[] = {{1, 1.112}, {12, 1.000}, {16, 0.969}, {128, 0.670}, {512, 0.554}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        const double ratio = held("mixed_float16", expected[k].batch) / held("float32", expected[k].batch);
        ck_assert_msg(fabs(ratio - expected[k].ratio) < 0.0005, "batch %u: %.5f", expected[k].batch, ratio);
    }
    ck_assert(held("mixed_bfloat16", 11) > held("float32", 11));
    ck_assert(held("mixed_bfloat16", 12) < held("float32", 12));
}
END_TEST

START_TEST(the_tape_does_not_keep_the_input_that_was_cast)
{
    program *p = compile(separable_cnn, "mixed_float16", NULL, PROGRAM_TRAIN, 8, &native);
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        ck_assert(p->tensors[k].category != HR_CATEGORY_INPUT || !p->tensors[k].saved);
    }
    program_destroy(p);
}
END_TEST

// ---- loss scaling ---------------------------------------------------------------------------------------------

START_TEST(a_dynamic_scale_judges_every_gradient_before_any_update)
{
    static const char *const graph[] = {"execution.mode=graph", NULL};
    program *p = compile(separable_cnn, "mixed_float16", graph, PROGRAM_TRAIN, 8, &native);
    uint32_t judged = 0, unscaled = 0, updates = 0, scaled_losses = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        judged += i->op == HR_OP_FINITE;
        unscaled += i->op == HR_OP_UNSCALE;
        scaled_losses += i->op == HR_OP_SOFTMAX_XENT_STREAM_BWD && i->in_count == 5;
        if (i->op == HR_OP_ADAM) {
            ck_assert_uint_eq(judged, 10);
            ck_assert_uint_eq(unscaled, 10);
            ck_assert_str_eq(p->tensors[i->in[i->in_count - 1]].name, "gradients_finite");
            updates++;
        }
        ck_assert(i->op != HR_OP_SCALE_UPDATE || updates == 10);
    }
    ck_assert_uint_eq(updates, 10);
    ck_assert_uint_eq(scaled_losses, 1);
    program_destroy(p);
}
END_TEST

START_TEST(a_fixed_scale_needs_no_verdict)
{
    static const char *const fixed[] = {"precision.loss_scale=1024", NULL};
    program *p = compile(separable_cnn, "mixed_float16", fixed, PROGRAM_TRAIN, 8, &native);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        ck_assert(i->op != HR_OP_FINITE && i->op != HR_OP_SCALE_UPDATE);
        if (i->op == HR_OP_SOFTMAX_XENT_BWD || i->op == HR_OP_UNSCALE) {
            ck_assert_double_eq(i->attr.scale, 1024);
        }
    }
    program_destroy(p);
}
END_TEST

typedef struct scaler {
    op_attr attr;
    float scale;
    int32_t clean;
} scaler;

static scaler scaler_with_floor(double floor_scale)
{
    return (scaler){.attr = {.count = OP_SCALE_GROWTH_STEPS, .epsilon = floor_scale},
                    .scale = OP_SCALE_INITIAL};
}

static void go(scaler *s, uint32_t steps, bool finite)
{
    for (uint32_t k = 0; k < steps; k++) {
        op_scale_update(&s->attr, finite, &s->scale, &s->clean);
    }
}

START_TEST(the_scale_follows_keras)
{
    scaler s = scaler_with_floor(0);
    go(&s, 1999, true);
    ck_assert_double_eq((double)s.scale, 32768);
    go(&s, 1, true);
    ck_assert_double_eq((double)s.scale, 65536);
    ck_assert_int_eq(s.clean, 0);
    s = scaler_with_floor(0);
    go(&s, 1999, true);
    go(&s, 3, false); // a count that was nearly full begins anew
    ck_assert_double_eq((double)s.scale, 4096);
    go(&s, 1999, true);
    ck_assert_double_eq((double)s.scale, 4096);
    go(&s, 1, true);
    ck_assert_double_eq((double)s.scale, 8192);
}
END_TEST

START_TEST(only_a_floor_keeps_the_scale_from_zero)
{
    scaler endless = scaler_with_floor(0), floored = scaler_with_floor(1);
    go(&endless, 200, false);
    go(&floored, 200, false);
    ck_assert_double_eq((double)endless.scale, 0);
    ck_assert_double_eq((double)floored.scale, 1);
    floored.scale = 0x1p127F;
    floored.clean = OP_SCALE_GROWTH_STEPS - 1;
    go(&floored, 1, true);
    ck_assert_double_eq((double)floored.scale, 0x1p127); // doubled it would be infinite
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("precision");
    TCase *tc = tcase_create("programs");
    tcase_add_loop_test(tc, a_batch_travels_in_the_type_that_its_readers_compute_in, 0,
                        (int)(sizeof batches / sizeof *batches));
    tcase_add_loop_test(tc, every_policy_compiles_and_passes_the_checker, 0, POLICIES);
    tcase_add_loop_test(tc, tensors_take_the_bytes_of_their_type, 0, POLICIES);
    tcase_add_loop_test(tc, only_losses_and_statistics_stay_float32, 0, POLICIES);
    tcase_add_test(tc, every_weight_is_cast_once);
    tcase_add_test(tc, a_sample_keeps_half_the_bytes);
    tcase_add_test(tc, mixed_precision_breaks_even_at_batch_12);
    tcase_add_test(tc, the_tape_does_not_keep_the_input_that_was_cast);
    tcase_add_test(tc, a_dynamic_scale_judges_every_gradient_before_any_update);
    tcase_add_test(tc, a_fixed_scale_needs_no_verdict);
    tcase_add_test(tc, the_scale_follows_keras);
    tcase_add_test(tc, only_a_floor_keeps_the_scale_from_zero);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
