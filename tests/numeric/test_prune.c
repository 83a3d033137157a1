// SPDX-License-Identifier: Apache-2.0
// Pruning: the schedule against its formula and the values that tfmot's documentation of it has; sparsity, masks and whole
// runs against the published package (make_prune_fixtures.py), and masks of every structure and type against a naive model
// that sorts, ties included. On the judge and on a device: the cpu here; another file that includes this one may name another.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "knobs/prune.h"
#include "numeric/fixture.h"
#include "numeric/op_harness.h"
#include "ops/prune.h"

#if !defined TEST_DEVICE && HEADROOM_HAVE_ONEDNN
#define TEST_DEVICE "cpu"
#endif

enum { WEIGHTS_MAX = 4096, SEEDS = 60, LEARNED = 40 }; // updates in front of the first

static const hr_dtype types[] = {HR_F32, HR_F64, HR_F16, HR_BF16};
enum { TYPES = sizeof types / sizeof *types };

static op_attr attr_of(const char *prune, const char *structure, int32_t axis)
{
    hr_knobs knobs;
    prune_choice c;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE, prune, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE_STRUCTURE, structure, NULL), HR_OK);
    ck_assert_int_eq(prune_choice_of(&knobs, &c), PRUNE_FINE);
    return (op_attr){.offset = c.begin,
                     .count = c.end,
                     .stride_h = c.frequency,
                     .epsilon = c.from,
                     .momentum = c.to,
                     .base = c.power,
                     .rule = c.structure == PRUNE_BY_BLOCK   ? PRUNE_BLOCKS
                             : c.structure == PRUNE_BY_GROUP ? PRUNE_GROUPS
                                                             : PRUNE_ELEMENTS,
                     .kernel_h = c.rows,
                     .kernel_w = c.columns,
                     .axis = axis};
}

// ---- the schedule -----------------------------------------------------------------------------------------------

START_TEST(the_schedule_is_its_formula)
{
    static const struct {
        uint64_t t;
        double printed;
    } rows[] = {{0, .5000}, {100, .5813}, {250, .6734}, {500, .7625}, {750, .7953}, {1000, .8000}};
    const op_attr a = attr_of("polynomial:0.5:0.8:0:1000", "element", 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const double left = 1.0 - (double)rows[k].t / 1000.0;
        const double closed = 0.8 + (0.5 - 0.8) * left * left * left, ours = prune_sparsity(&a, rows[k].t);
        ck_assert_double_eq_tol(ours, closed, 1e-12);
        ck_assert_double_eq_tol(ours, rows[k].printed, 5.0001e-5);
    }
    ck_assert_double_eq(prune_sparsity(&a, 5000), 0.8);
}
END_TEST

START_TEST(defaults_are_the_packages)
{
    const op_attr constant = attr_of("constant:0.3", "element", 0);
    ck_assert_int_eq(constant.offset, 0);
    ck_assert_int_eq(constant.count, -1);
    ck_assert_int_eq(constant.stride_h, 100);
    const op_attr polynomial = attr_of("polynomial:0.1:0.3:5:50", "element", 0);
    ck_assert_int_eq(polynomial.stride_h, 100);
    ck_assert_double_eq(polynomial.base, 3.0);
}
END_TEST

START_TEST(the_first_masks_are_foretold)
{
    static const char *const schedules[] = {
        "constant:0.5",   "constant:0.5:7",          "constant:0.5:0:40",     "constant:0.5:0:-1:3",
        "constant:0.5:1", "polynomial:0:0.8:0:1000", "polynomial:0:0.8:0:50", "polynomial:0:0.8:20:90:30"};
    static const char *const structures[] = {"element", "2:4"};
    for (size_t k = 0; k < 2 * sizeof schedules / sizeof *schedules; k++) {
        const char *schedule = schedules[k / 2], *structure = structures[k % 2];
        op_attr a = attr_of(schedule, structure, 0);
        hr_knobs knobs;
        uint64_t first = 1;
        while (first < 2000 && prune_act_at(&a, first) != PRUNE_MAKE) {
            first++;
        }
        hr_knobs_init(&knobs);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE, schedule, NULL), HR_OK);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE_STRUCTURE, structure, NULL), HR_OK);
        ck_assert_uint_eq(prune_first_update(&knobs), first < 2000 ? first : 0);
    }
}
END_TEST

START_TEST(sparsity_and_turns_are_the_packages)
{
    json_t *root = fixture_open("prune.json"), *c = NULL;
    size_t n = 0;
    ck_assert_uint_gt(json_array_size(json_object_get(root, "sparsity")), 0);
    json_array_foreach(json_object_get(root, "sparsity"), n, c)
    {
        op_attr a = attr_of(json_string_value(json_object_get(c, "prune")), "element", 0);
        const json_t *steps = json_object_get(c, "steps");
        for (size_t k = 0; k < json_array_size(steps); k++) {
            const uint64_t t = (uint64_t)json_integer_value(json_array_get(steps, k));
            const double theirs = json_real_value(json_array_get(json_object_get(c, "sparsity"), k));
            ck_assert_double_eq((double)prune_sparsity32(&a, t), theirs);
            ck_assert_double_eq_tol(prune_sparsity(&a, t), theirs, 1e-7);
            ck_assert_int_eq(prune_act_at(&a, t) == PRUNE_MAKE,
                             json_is_true(json_array_get(json_object_get(c, "turns"), k)));
        }
    }
    json_decref(root);
}
END_TEST

// ---- one PRUNE on a device --------------------------------------------------------------------------------------

typedef struct kernel {
    op_trial t;
    uint64_t count;
} kernel;

static kernel kernel_of(const op_attr *attr, const int64_t dims[OP_MAX_RANK], hr_dtype type)
{
    kernel k = {.t = op_trial_make(HR_OP_PRUNE, *attr)};
    for (int n = 0; n < 2; n++) {
        op_trial_add_in(&k.t, type, dims);
        op_trial_add_out(&k.t, type, dims);
    }
    k.count = op_trial_in_count(&k.t, 0);
    ck_assert_uint_le(k.count, WEIGHTS_MAX);
    for (uint64_t i = 0; i < k.count; i++) {
        k.t.in[1][i] = 1.0;
    }
    return k;
}

static void prune(kernel *k, op_device device, uint64_t update)
{
    step_io io = {.update = LEARNED + update, .pruned_from = LEARNED};
    op_trial_run(&k->t, device, &io);
}

static void check_masked(const kernel *k, const double *before, const bool *stays)
{
    for (uint64_t i = 0; i < k->count; i++) {
        ck_assert_msg(k->t.in[1][i] == (stays[i] ? 1.0 : 0.0), "mask of weight %u (%g) is %g", (unsigned)i,
                      before[i], k->t.in[1][i]);
        ck_assert_double_eq(k->t.in[0][i], stays[i] ? before[i] : 0.0);
        ck_assert(stays[i] || !signbit(k->t.in[0][i]));
    }
}

// ---- the naive model: sorts ---------------------------------------------------------------------------------------

static int by_size_down(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// The rule on scores: units as large as the kept-largest stay.
static void naive_units(const double *score, uint64_t units, double kept_share, bool *stays)
{
    static double sorted[WEIGHTS_MAX];
    memcpy(sorted, score, units * sizeof *score);
    qsort(sorted, units, sizeof *sorted, by_size_down);
    double kept = nearbyint((double)((float)units * (float)kept_share));
    kept = kept < 1.0 ? 1.0 : kept;
    for (uint64_t k = 0; k < units; k++) {
        stays[k] = score[k] >= sorted[(uint64_t)kept - 1];
    }
}

static double naive_mean(const double *w, const int64_t dims[2], const int64_t size[2], int64_t row,
                         int64_t column)
{
    int64_t first[2], last[2];
    const int64_t index[2] = {row, column};
    for (int k = 0; k < 2; k++) { // TensorFlow's SAME: what is missing is half in front, the smaller half
        const int64_t blocks = (dims[k] + size[k] - 1) / size[k], missing = blocks * size[k] - dims[k];
        first[k] = index[k] * size[k] - missing / 2;
        last[k] = first[k] + size[k];
        first[k] = first[k] < 0 ? 0 : first[k];
        last[k] = last[k] > dims[k] ? dims[k] : last[k];
    }
    double sum = 0.0;
    for (int64_t i = first[0]; i < last[0]; i++) {
        for (int64_t j = first[1]; j < last[1]; j++) {
            sum += fabs(w[i * dims[1] + j]);
        }
    }
    return sum / (double)((last[0] - first[0]) * (last[1] - first[1]));
}

static void naive_blocks(const double *w, const int64_t dims[2], const op_attr *a, double kept_share,
                         bool *stays)
{
    static double score[WEIGHTS_MAX];
    static bool block_stays[WEIGHTS_MAX];
    const int64_t size[2] = {a->kernel_h, a->kernel_w};
    const int64_t down = (dims[0] + size[0] - 1) / size[0], across = (dims[1] + size[1] - 1) / size[1];
    for (int64_t b = 0; b < down * across; b++) {
        score[b] = naive_mean(w, dims, size, b / across, b % across);
    }
    naive_units(score, (uint64_t)(down * across), kept_share, block_stays);
    for (int64_t i = 0; i < dims[0]; i++) {
        for (int64_t j = 0; j < dims[1]; j++) {
            stays[i * dims[1] + j] = block_stays[i / size[0] * across + j / size[1]];
        }
    }
}

// The smallest go one after another, of equal ones the last.
static void naive_run(const double *w, int64_t step, int64_t size, int64_t zeros, bool *stays)
{
    for (int64_t k = 0; k < size; k++) {
        stays[k * step] = true;
    }
    for (; zeros > 0; zeros--) {
        int64_t least = -1;
        for (int64_t k = 0; k < size; k++) {
            if (stays[k * step] && (least < 0 || fabs(w[k * step]) <= fabs(w[least * step]))) {
                least = k;
            }
        }
        stays[least * step] = false;
    }
}

static void naive_groups(const double *w, const int64_t *dims, uint32_t rank, const op_attr *a, bool *stays)
{
    int64_t step = 1, lines = 1;
    for (uint32_t k = 0; k < rank; k++) {
        step *= k > (uint32_t)a->axis ? dims[k] : 1;
        lines *= k < (uint32_t)a->axis ? dims[k] : 1;
    }
    const int64_t side = dims[a->axis];
    for (int64_t line = 0; line < lines * step; line++) {
        const int64_t at = line / step * side * step + line % step;
        for (int64_t first = 0; first < side; first += a->kernel_w) {
            const int64_t size = side - first < a->kernel_w ? side - first : a->kernel_w;
            const int64_t missing = a->kernel_w - size; // these are smaller than all
            const int64_t zeros = a->kernel_h > missing ? a->kernel_h - missing : 0;
            naive_run(w + at + first * step, step, size, zeros, stays + at + first * step);
        }
    }
}

static void naive_filters(const double *w, const int64_t *dims, uint32_t rank, int32_t axis,
                          double kept_share, bool *stays)
{
    static double score[WEIGHTS_MAX];
    static bool filter_stays[WEIGHTS_MAX];
    int64_t count = 1, step = 1;
    for (uint32_t k = 0; k < rank; k++) {
        count *= dims[k];
        step *= k > (uint32_t)axis ? dims[k] : 1;
    }
    memset(score, 0, sizeof score);
    for (int64_t i = 0; i < count; i++) {
        score[i / step % dims[axis]] += fabs(w[i]);
    }
    naive_units(score, (uint64_t)dims[axis], kept_share, filter_stays);
    for (int64_t i = 0; i < count; i++) {
        stays[i] = filter_stays[i / step % dims[axis]];
    }
}

// ---- masks of random kernels --------------------------------------------------------------------------------------

// Whole numbers of eighths in two of three, so that many are equal and their sums exact in every type.
static void draw_weights(double *w, uint64_t count, uint64_t *state, hr_dtype type)
{
    const int64_t most = op_random_int(state, 0, 2) == 0 ? 2 : 15;
    for (uint64_t i = 0; i < count; i++) {
        w[i] = (double)op_random_int(state, -most, most) / 8.0;
    }
    if (most == 15 && type == HR_F32 && op_random_int(state, 0, 1) == 0) {
        for (uint64_t i = 0; i < count; i++) {
            w[i] = (double)(float)op_random(state, -1.0, 1.0);
        }
    }
}

// Blocks of powers of two: means of means are exact.
static void draw_shape(uint64_t *state, op_attr *a, int64_t dims[OP_MAX_RANK])
{
    dims[0] = op_random_int(state, 1, 24), dims[1] = op_random_int(state, 1, 24);
    if (a->rule == PRUNE_BLOCKS) {
        a->kernel_h = 1 << op_random_int(state, 0, 2), a->kernel_w = 1 << op_random_int(state, 0, 3);
        dims[0] = dims[0] / a->kernel_h * a->kernel_h + a->kernel_h * (op_random_int(state, 0, 1) + 1);
        dims[1] = (dims[1] / a->kernel_w + 1) * a->kernel_w;
        return;
    }
    a->kernel_w = (int32_t)op_random_int(state, 2, 6);
    a->kernel_h = (int32_t)op_random_int(state, 1, a->kernel_w - 1);
    a->axis = (int32_t)op_random_int(state, 0, 1);
    if (op_random_int(state, 0, 1) == 1) {
        dims[0] = 3, dims[2] = dims[1], dims[1] = 2, dims[3] = op_random_int(state, 1, 9);
        a->axis = (int32_t)op_random_int(state, 2, 3);
    }
}

static void judge(const op_attr *a, const double *w, uint64_t count, const int64_t *dims, uint32_t rank,
                  bool *stays)
{
    static double score[WEIGHTS_MAX];
    const double kept = (double)(1.0f - (float)a->momentum);
    switch ((op_prune_rule)a->rule) {
    case PRUNE_ELEMENTS:
        for (uint64_t i = 0; i < count; i++) {
            score[i] = fabs(w[i]);
        }
        naive_units(score, count, kept, stays);
        break;
    case PRUNE_BLOCKS:
        naive_blocks(w, dims, a, kept, stays);
        break;
    case PRUNE_GROUPS:
        naive_groups(w, dims, rank, a, stays);
        break;
    case PRUNE_FILTERS:
    case PRUNE_RULES:
        naive_filters(w, dims, rank, a->axis, kept, stays);
    }
}

static void check_random(op_device device, op_prune_rule rule, hr_dtype type, uint64_t seed)
{
    static double before[WEIGHTS_MAX];
    static bool stays[WEIGHTS_MAX];
    uint64_t state = seed * 977 + rule;
    int64_t dims[OP_MAX_RANK] = {0};
    op_attr a = {.offset = 0, .count = -1, .stride_h = 1, .base = 1.0, .rule = (int32_t)rule};
    a.epsilon = a.momentum = (double)op_random_int(&state, 0, 19) / 20.0;
    draw_shape(&state, &a, dims);
    kernel k = kernel_of(&a, dims, type);
    draw_weights(k.t.in[0], k.count, &state, type);
    memcpy(before, k.t.in[0], k.count * sizeof *before);
    judge(&a, before, k.count, dims, k.t.query.in[0].shape.rank, stays);
    prune(&k, device, 1);
    check_masked(&k, before, stays);
    op_trial_deinit(&k.t);
}

static void check_all_random(op_device device, int n, size_t type_count)
{
    for (size_t t = 0; t < type_count; t++) {
        for (op_prune_rule rule = 0; rule < PRUNE_RULES; rule++) {
            check_random(device, rule, types[t], (uint64_t)n + 1);
        }
    }
    op_device_close(&device);
}

START_TEST(masks_are_the_naive_models)
{
    check_all_random(op_device_open(&device_reference, 1), _i, TYPES);
}
END_TEST

// ---- the published package ----------------------------------------------------------------------------------------

static void take_dims(const json_t *c, int64_t dims[OP_MAX_RANK])
{
    const json_t *shape = json_object_get(c, "shape");
    memset(dims, 0, OP_MAX_RANK * sizeof *dims);
    for (size_t k = 0; k < json_array_size(shape); k++) {
        dims[k] = json_integer_value(json_array_get(shape, k));
    }
}

static void take_numbers(const json_t *c, const char *key, double unit, double *out)
{
    const json_t *numbers = json_object_get(c, key);
    for (size_t k = 0; k < json_array_size(numbers); k++) {
        out[k] = (double)json_integer_value(json_array_get(numbers, k)) / unit;
    }
}

static void take_mask(const json_t *c, bool *stays)
{
    const char *mask = json_string_value(json_object_get(c, "mask"));
    for (size_t k = 0; mask[k] != '\0'; k++) {
        stays[k] = mask[k] == '1';
    }
}

static kernel kernel_of_case(const json_t *c)
{
    int64_t dims[OP_MAX_RANK];
    take_dims(c, dims);
    const op_attr a = attr_of(json_string_value(json_object_get(c, "prune")),
                              json_string_value(json_object_get(c, "structure")), dims[2] == 0 ? 0 : 2);
    return kernel_of(&a, dims, HR_F32);
}

static void check_published_masks(op_device device)
{
    static double before[WEIGHTS_MAX];
    static bool stays[WEIGHTS_MAX];
    json_t *root = fixture_open("prune.json"), *c = NULL;
    const double unit = json_number_value(json_object_get(root, "unit"));
    size_t n = 0;
    ck_assert_uint_gt(json_array_size(json_object_get(root, "masks")), 0);
    json_array_foreach(json_object_get(root, "masks"), n, c)
    {
        kernel k = kernel_of_case(c);
        take_numbers(c, "weights", unit, k.t.in[0]);
        take_mask(c, stays);
        memcpy(before, k.t.in[0], k.count * sizeof *before);
        prune(&k, device, (uint64_t)json_integer_value(json_object_get(c, "step")));
        check_masked(&k, before, stays);
        op_trial_deinit(&k.t);
    }
    json_decref(root);
    op_device_close(&device);
}

// What a program does: in front of update 1, then behind every update what comes before the next one.
static void check_published_run(const json_t *c, double unit, op_device device)
{
    static double numbers[WEIGHTS_MAX];
    static bool stays[WEIGHTS_MAX];
    json_t *step = NULL;
    size_t n = 0;
    kernel k = kernel_of_case(c);
    take_numbers(c, "weights", unit, k.t.in[0]);
    if (prune_act_at(&k.t.query.attr, 1) == PRUNE_MAKE) {
        prune(&k, device, 1);
    }
    k.t.query.attr.slot = 1;
    json_array_foreach(json_object_get(c, "steps"), n, step)
    {
        take_mask(step, stays);
        take_numbers(step, "seen", unit, numbers);
        check_masked(&k, numbers, stays);
        take_numbers(step, "gradient", unit, numbers);
        for (uint64_t i = 0; i < k.count; i++) {
            k.t.in[0][i] -= numbers[i];
        }
        prune(&k, device, (uint64_t)n + 1);
    }
    op_trial_deinit(&k.t);
}

static void check_published_runs(op_device device)
{
    json_t *root = fixture_open("prune.json"), *c = NULL;
    size_t n = 0;
    ck_assert_uint_gt(json_array_size(json_object_get(root, "runs")), 0);
    json_array_foreach(json_object_get(root, "runs"), n, c)
    {
        check_published_run(c, json_number_value(json_object_get(root, "unit")), device);
    }
    json_decref(root);
    op_device_close(&device);
}

START_TEST(masks_are_the_packages)
{
    check_published_masks(op_device_open(&device_reference, 1));
}
END_TEST

START_TEST(every_step_of_a_run_sees_the_packages_weights)
{
    check_published_runs(op_device_open(&device_reference, 1));
}
END_TEST

// ---- what forbids and what stays ----------------------------------------------------------------------------------

static void check_forbidden(op_device device)
{
    const op_attr a = attr_of("constant:0.5:0:-1:1", "element", 0);
    kernel k = kernel_of(&a, (const int64_t[OP_MAX_RANK]){4, 4}, HR_F32);
    op_trial_add_in(&k.t, HR_I32, (const int64_t[OP_MAX_RANK]){1});
    for (uint64_t i = 0; i < k.count; i++) {
        k.t.in[0][i] = (double)i - 7.5;
        k.t.in[1][i] = i % 2 == 0 ? 1.0 : 0.0;
    }
    prune(&k, device, 3); // gradients were not finite: the last operand is 0
    for (uint64_t i = 0; i < k.count; i++) {
        ck_assert_double_eq(k.t.in[0][i], (double)i - 7.5);
        ck_assert_double_eq(k.t.in[1][i], i % 2 == 0 ? 1.0 : 0.0);
    }
    op_trial_deinit(&k.t);
    op_device_close(&device);
}

START_TEST(an_update_that_is_left_out_prunes_nothing)
{
    check_forbidden(op_device_open(&device_reference, 1));
}
END_TEST

// ---- updates that mask as they write ----------------------------------------------------------------------------

static const hr_op masking[] = {HR_OP_SGD, HR_OP_MOMENTUM, HR_OP_RMSPROP, HR_OP_ADAM, HR_OP_LION};
enum { MASKING = sizeof masking / sizeof *masking, MASKED_WEIGHTS = 1027 };

// Variable, gradient, slots, [mask], [finite].
static op_trial update_of(hr_op op, hr_dtype type, const op_attr *schedule, bool masked, bool forbidden)
{
    const int64_t dims[OP_MAX_RANK] = {MASKED_WEIGHTS};
    uint64_t state = 5;
    op_attr a = {.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7, .rate = 0.01};
    if (masked) {
        a.offset = schedule->offset, a.count = schedule->count, a.stride_h = schedule->stride_h;
        a.rule = schedule->rule, a.slot = 1, a.flags = OP_FLAG_MASKED;
    }
    op_trial t = op_trial_make(op, a);
    for (uint32_t k = 0; k < op_row_of(op)->min_in + (masked ? 1u : 0u); k++) {
        op_trial_add_in(&t, type, dims);
        op_fill(t.in[k], MASKED_WEIGHTS, &state, k < 2 ? -1.0 : 0.0, 1.0);
        if (k != 1 && k < op_row_of(op)->min_in) {
            op_trial_add_out(&t, type, dims);
        }
    }
    for (uint64_t i = 0; masked && i < MASKED_WEIGHTS; i++) {
        t.in[t.query.in_count - 1][i] = i % 3 == 0 ? 0.0 : 1.0;
    }
    if (forbidden) {
        op_trial_add_in(&t, HR_I32, (const int64_t[OP_MAX_RANK]){1});
    }
    return t;
}

// The mask is made after every third update, and those before it are masked.
static void check_masked_update(op_device device, hr_op op, hr_dtype type, uint64_t update, bool forbidden)
{
    const op_attr schedule = {.count = -1, .stride_h = 3, .rule = PRUNE_ELEMENTS, .slot = 1};
    op_trial whole = update_of(op, type, &schedule, false, forbidden),
             masked = update_of(op, type, &schedule, true, forbidden);
    step_io io = {.update = LEARNED + update, .pruned_from = LEARNED, .learning_rate = 0.01}, same = io;
    const double *mask = masked.in[update_mask_operand(&masked.query)];
    op_trial_run(&whole, device, &io);
    op_trial_run(&masked, device, &same);
    for (uint64_t i = 0; i < MASKED_WEIGHTS; i++) {
        const bool zero = mask[i] == 0.0 && !forbidden && update_masks_at(&masked.query.attr, update);
        ck_assert_double_eq(masked.in[0][i], zero ? 0.0 : whole.in[0][i]);
        ck_assert(!zero || !signbit(masked.in[0][i]));
        for (uint32_t k = 2; k < op_row_of(op)->min_in; k++) {
            ck_assert_double_eq(masked.in[k][i], whole.in[k][i]);
        }
    }
    op_trial_deinit(&whole);
    op_trial_deinit(&masked);
}

static void check_masked_updates(op_device device, hr_dtype type)
{
    for (size_t k = 0; k < MASKING; k++) {
        for (uint64_t update = 1; update <= 3; update++) {
            check_masked_update(device, masking[k], type, update, false);
            check_masked_update(device, masking[k], type, update, true);
        }
    }
}

START_TEST(an_update_masks_what_it_writes)
{
    op_device judge = op_device_open(&device_reference, 1);
    check_masked_updates(judge, HR_F32);
    op_device_close(&judge);
}
END_TEST

#ifdef TEST_DEVICE
static op_device device_here(void)
{
    return op_device_open(test_device(TEST_DEVICE), 2);
}

START_TEST(masks_of_the_device_are_the_naive_models)
{
    static const hr_dtype here[] = {HR_F32, HR_F16, HR_BF16};
    op_device device = device_here();
    for (size_t t = 0; t < sizeof here / sizeof *here; t++) {
        for (op_prune_rule rule = 0; rule < PRUNE_RULES; rule++) {
            check_random(device, rule, here[t], (uint64_t)_i + 1);
        }
    }
    op_device_close(&device);
}
END_TEST

START_TEST(the_device_agrees_with_the_package)
{
    check_published_masks(device_here());
    check_published_runs(device_here());
    check_forbidden(device_here());
}
END_TEST

START_TEST(an_update_of_the_device_masks_what_it_writes)
{
    op_device device = device_here();
    hr_target target;
    device.ops->target(device.context, &target);
    for (size_t k = 0; k < MASKING; k++) {
        ck_assert(target.absorbs(target.context, TARGET_MASKS, masking[k]));
    }
    check_masked_updates(device, HR_F32);
    check_masked_updates(device, HR_F16);
    check_masked_updates(device, HR_BF16);
    op_device_close(&device);
}
END_TEST
#endif

int main(void)
{
#ifdef TEST_DEVICE
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
#endif
    Suite *suite = suite_create("prune");
    TCase *all = tcase_create("prune");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, the_schedule_is_its_formula);
    tcase_add_test(all, defaults_are_the_packages);
    tcase_add_test(all, the_first_masks_are_foretold);
    tcase_add_test(all, sparsity_and_turns_are_the_packages);
    tcase_add_loop_test(all, masks_are_the_naive_models, 0, SEEDS);
    tcase_add_test(all, masks_are_the_packages);
    tcase_add_test(all, every_step_of_a_run_sees_the_packages_weights);
    tcase_add_test(all, an_update_that_is_left_out_prunes_nothing);
    tcase_add_test(all, an_update_masks_what_it_writes);
#ifdef TEST_DEVICE
    tcase_add_loop_test(all, masks_of_the_device_are_the_naive_models, 0, SEEDS);
    tcase_add_test(all, the_device_agrees_with_the_package);
    tcase_add_test(all, an_update_of_the_device_masks_what_it_writes);
#endif
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
