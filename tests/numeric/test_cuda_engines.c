// SPDX-License-Identifier: Apache-2.0
// Every engine that a convolution may be given, against the judge, and not only the one that is taken: uneven padding, strides,
// gaps between taps, groups, channels that are no whole vectors. Runs on a card, or on the emulated one (tests/card). An
// engine that is wrong is one that must not be taken: what gates.c refuses is not asked for.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/half.h"
#include "device/cuda/conv_spec.h"
#include "device/cuda/gates.h"
#include "device/cuda/graph_impl.h"
#include "numeric/bf16_trial.h"
#include "numeric/op_tolerance.h"

enum { GUARD_BYTES = 256, GUARD_BYTE = 0x5a, WORDS_BYTES = 4096 };
static const uint64_t workspace_most_bytes = 256 * HR_MIB;
static const double tf32_rounding = 2e-3;

static hr_err err;

typedef struct shape {
    int64_t samples, rows, columns, in, out;
    int32_t kernel[2], stride[2], before[2], behind[2], gap, groups;
} shape;

static const shape shapes[] = {
    {3, 1, 4, 8, 8, {1, 3}, {1, 1}, {0, 0}, {0, 1}, 0, 1}, // nothing before, one behind
    {3, 1, 4, 8, 8, {1, 3}, {1, 1}, {0, 1}, {0, 1}, 0, 1},
    {2, 6, 7, 16, 8, {3, 3}, {1, 1}, {0, 0}, {2, 2}, 0, 1},
    {2, 8, 8, 64, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0, 1},
    {2, 9, 8, 32, 40, {3, 3}, {2, 2}, {0, 0}, {1, 1}, 0, 1},
    {3, 9, 5, 5, 21, {3, 2}, {2, 1}, {1, 0}, {0, 1}, 0, 1},
    {2, 12, 12, 3, 16, {7, 7}, {2, 2}, {2, 2}, {3, 3}, 0, 1},
    {2, 9, 9, 16, 16, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 1, 1},
    {2, 7, 7, 16, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0, 2},
};
static const hr_op directions[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { SHAPES = sizeof shapes / sizeof *shapes, DIRECTIONS = 3, TYPES = 3 };

// ---- a trial ----------------------------------------------------------------------------------------------------------

static void add_drawn(op_trial *t, const int64_t dims[OP_MAX_RANK], uint64_t *state)
{
    op_trial_add_in(t, HR_F64, dims);
    const uint32_t last = t->query.in_count - 1u;
    op_fill(t->in[last], op_trial_in_count(t, last), state, -1.0, 1.0);
}

static int64_t extent_of(const shape *s, int axis)
{
    const int64_t taps = (int64_t)(s->kernel[axis] - 1) * (s->gap + 1) + 1;
    return ((axis == 0 ? s->rows : s->columns) + s->before[axis] + s->behind[axis] - taps) / s->stride[axis] +
           1;
}

static op_trial trial_of(const shape *s, hr_op op)
{
    const int64_t x[OP_MAX_RANK] = {s->samples, s->rows, s->columns, s->in},
                  w[OP_MAX_RANK] = {s->kernel[0], s->kernel[1], s->in / s->groups, s->out},
                  y[OP_MAX_RANK] = {s->samples, extent_of(s, 0), extent_of(s, 1), s->out};
    uint64_t state = 17;
    op_trial t = op_trial_make(op, (op_attr){.kernel_h = s->kernel[0],
                                             .kernel_w = s->kernel[1],
                                             .stride_h = s->stride[0],
                                             .stride_w = s->stride[1],
                                             .pad_top = s->before[0],
                                             .pad_left = s->before[1],
                                             .pad_bottom = s->behind[0],
                                             .pad_right = s->behind[1],
                                             .gap_h = s->gap,
                                             .gap_w = s->gap,
                                             .groups = s->groups});
    add_drawn(&t, op == HR_OP_CONV2D_BWD_DATA ? y : x, &state);
    add_drawn(&t, op == HR_OP_CONV2D_BWD_WEIGHTS ? y : w, &state);
    op_trial_add_out(&t, HR_F64, op == HR_OP_CONV2D ? y : op == HR_OP_CONV2D_BWD_DATA ? x : w);
    return t;
}

// ---- numbers on the card ------------------------------------------------------------------------------------------------

static double rounded(hr_dtype dtype, double x)
{
    const float single = (float)x;
    return (double)(dtype == HR_F32   ? single
                    : dtype == HR_F16 ? float_of_f16(f16_of_float(single))
                                      : float_of_bf16(bf16_of_float(single)));
}

// Where element k of HWIO lies in the library's OHWI; images lie as they do here.
static uint64_t place_of(const op_operand *operand, bool is_weights, uint64_t k)
{
    const int64_t *dim = operand->shape.dim;
    const uint64_t window = (uint64_t)(dim[0] * dim[1] * dim[2]), filters = (uint64_t)dim[3];
    return is_weights ? k % filters * window + k / filters : k;
}

static CUdeviceptr take(uint64_t bytes)
{
    CUdeviceptr address = 0;
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&address, bytes + GUARD_BYTES), CUDA_SUCCESS);
    unsigned char *rubbish = malloc(bytes + GUARD_BYTES);
    memset(rubbish, GUARD_BYTE, bytes + GUARD_BYTES);
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(address, rubbish, bytes + GUARD_BYTES), CUDA_SUCCESS);
    free(rubbish);
    return address;
}

// A workspace has nothing behind it that was written; what it holds is lost.
static void give_back(CUdeviceptr address, uint64_t bytes, const char *name)
{
    unsigned char guard[GUARD_BYTES];
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(guard, address + bytes, GUARD_BYTES), CUDA_SUCCESS);
    for (int k = 0; k < GUARD_BYTES; k++) {
        ck_assert_msg(guard[k] == GUARD_BYTE, "%s wrote %d bytes behind the end", name, k);
    }
    ck_assert_int_eq(cuda_driver.cuMemFree_v2(address), CUDA_SUCCESS);
}

static CUdeviceptr upload(const op_operand *operand, hr_dtype dtype, bool is_weights, const double *values)
{
    uint64_t count = 0;
    ck_assert(shape_elements(&operand->shape, &count));
    char *typed = calloc(count, dtype_bytes(dtype));
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t place = place_of(operand, is_weights, k);
        const float single = (float)values[k];
        const uint16_t half = dtype == HR_F16 ? f16_of_float(single) : bf16_of_float(single);
        memcpy(typed + place * dtype_bytes(dtype),
               dtype == HR_F32 ? (const void *)&single : (const void *)&half, dtype_bytes(dtype));
    }
    const CUdeviceptr address = take(count * dtype_bytes(dtype));
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(address, typed, count * dtype_bytes(dtype)), CUDA_SUCCESS);
    free(typed);
    return address;
}

static void download(CUdeviceptr address, const op_operand *operand, hr_dtype dtype, bool is_weights,
                     double *values)
{
    uint64_t count = 0;
    ck_assert(shape_elements(&operand->shape, &count));
    char *typed = calloc(count, dtype_bytes(dtype));
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(typed, address, count * dtype_bytes(dtype)), CUDA_SUCCESS);
    for (uint64_t k = 0; k < count; k++) {
        const char *from = typed + place_of(operand, is_weights, k) * dtype_bytes(dtype);
        float single = 0;
        uint16_t half = 0;
        memcpy(dtype == HR_F32 ? (void *)&single : (void *)&half, from, dtype_bytes(dtype));
        values[k] = (double)(dtype == HR_F32   ? single
                             : dtype == HR_F16 ? float_of_f16(half)
                                               : float_of_bf16(half));
    }
    free(typed);
}

// ---- one engine ---------------------------------------------------------------------------------------------------------

typedef struct subject {
    cuda_device *device;
    op_trial trial; // float64 that the type can hold, judged
    hr_dtype dtype;
    graph_spec spec;
    uint8_t result;
    bool refused; // as a whole: gates.h
    unsigned ran;
    char wrong[WORDS_BYTES];
} subject;

static bool is_weights(const subject *s, bool out, uint32_t k)
{
    return out ? s->trial.query.op == HR_OP_CONV2D_BWD_WEIGHTS
               : k == 1 && s->trial.query.op != HR_OP_CONV2D_BWD_WEIGHTS;
}

static void run_graph(subject *s, graph *g, uint64_t bytes, const char *name, double *got)
{
    const op_query *q = &s->trial.query;
    const CUdeviceptr in[2] = {upload(&q->in[0], s->dtype, is_weights(s, false, 0), s->trial.in[0]),
                               upload(&q->in[1], s->dtype, is_weights(s, false, 1), s->trial.in[1])};
    const CUdeviceptr out = take(op_trial_out_count(&s->trial, 0) * dtype_bytes(s->dtype)),
                      workspace = take(bytes);
    CUdeviceptr address[GRAPH_TENSORS_MAX] = {0};
    for (int k = CONV_X; k <= CONV_Y; k++) {
        const uint8_t place = conv_places_of(q).place[k];
        address[k] = (place & CONV_OUTPUT) != 0 ? out : in[place];
    }
    ck_assert_msg(graph_run_locked(g, NULL, address, workspace, &err) == HR_OK, "%s: %s", name, err.sentence);
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_SUCCESS);
    download(out, &q->out[0], s->dtype, is_weights(s, true, 0), got);
    give_back(workspace, bytes, name);
    give_back(out, op_trial_out_count(&s->trial, 0) * dtype_bytes(s->dtype), name);
    give_back(in[0], op_trial_in_count(&s->trial, 0) * dtype_bytes(s->dtype), name);
    give_back(in[1], op_trial_in_count(&s->trial, 1) * dtype_bytes(s->dtype), name);
}

static void check_engine(subject *s, graph_list *list, uint32_t position)
{
    graph_library *l = cuda_device_graphs(s->device);
    const graph_config *c = &list->config[position];
    const uint64_t count = op_trial_out_count(&s->trial, 0);
    char name[GRAPH_NAME_MAX];
    graph *g = NULL;
    if (c->compiled || c->narrow_sums || c->workspace_bytes > workspace_most_bytes ||
        graph_of_config(l, &s->spec, list, position, &g, &err) != HR_OK) {
        return;
    }
    graph_config_name(c, name, sizeof name);
    double *got = calloc(count, sizeof *got);
    run_graph(s, g, c->workspace_bytes, name, got);
    const double distance = op_distance(got, s->trial.out[0], count);
    const double most = s->dtype == HR_F32 && c->tensor_cores
                            ? tf32_rounding
                            : op_tolerance((hr_op)s->trial.query.op, s->dtype);
    if (!(distance <= most)) {
        const size_t used = strlen(s->wrong);
        (void)snprintf(s->wrong + used, sizeof s->wrong - used, "; %s is %g from the judge's", name,
                       distance);
    }
    s->ran++;
    graph_drop(g);
    free(got);
}

static void check_engines(subject *s)
{
    graph_library *l = cuda_device_graphs(s->device);
    graph_list *list = NULL;
    uint32_t position = 0;
    last_words last;
    op_query typed = s->trial.query;
    for (int k = 0; k < 2; k++) {
        typed.in[k].dtype = (uint8_t)s->dtype;
    }
    typed.out[0].dtype = (uint8_t)s->dtype;
    s->refused = cudnn_gate_query(s->device, &typed, &err) == HR_DEVICE;
    if (s->refused) {
        return;
    }
    conv_spec(&typed, &s->spec, &s->result);
    graph_enter(l, &last);
    if (graph_find(l, &s->spec, workspace_most_bytes, &list, &position, &err) == HR_OK) {
        for (uint32_t k = 0; k < list->count; k++) {
            check_engine(s, list, k);
        }
    }
    graph_leave(l, &last);
}

static void check_one(op_device card, op_device judge, int shape_at, hr_op op, hr_dtype dtype)
{
    static subject s;
    s = (subject){.device = card.context, .trial = trial_of(&shapes[shape_at], op), .dtype = dtype};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint64_t n = 0; n < op_trial_in_count(&s.trial, k); n++) {
            s.trial.in[k][n] = rounded(dtype, s.trial.in[k][n]);
        }
    }
    op_trial_run(&s.trial, judge, NULL);
    check_engines(&s);
    ck_assert_msg(s.wrong[0] == '\0', "%s of %s, shape %d%s", op_name(op), dtype_name(dtype), shape_at,
                  s.wrong);
    ck_assert(s.ran > 0 || s.refused);
    op_trial_deinit(&s.trial);
}

START_TEST(every_engine_agrees_with_the_judge)
{
    op_device judge = op_device_open(&device_reference, 1), card = op_device_open(&device_cuda, 1);
    for (int k = 0; k < TYPES; k++) {
        check_one(card, judge, _i / DIRECTIONS, directions[_i % DIRECTIONS], types[k]);
    }
    op_device_close(&card);
    op_device_close(&judge);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_engines");
    TCase *c = tcase_create("against the judge");
    tcase_add_loop_test(c, every_engine_agrees_with_the_judge, 0, SHAPES * DIRECTIONS);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
