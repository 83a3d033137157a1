// SPDX-License-Identifier: Apache-2.0
// Matrix products of the cuda device against three nested loops in double: every transpose, row strides, batches and
// outer loops, factors, what is fused, with any workspace down to none. Runs on a card, or on the emulated one
// (tests/card), whose library fills exactly the workspace that it asked for with rubbish.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/half.h"
#include "device/cuda/product.h"
#include "numeric/op_harness.h"

enum { TRIALS = 400, GUARD = 64, GUARD_BYTE = 0x5a };

// ---- a card ---------------------------------------------------------------------------------------------------------

static cuda_device *open_card(bool tf32)
{
    const device_options options = {.tf32 = tf32, .deterministic = true};
    void *context = NULL;
    hr_err err = {0};
    if (device_cuda.open(&options, &context, &err) != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return context;
}

static void close_card(cuda_device *device)
{
    device_cuda.close(device);
}

static CUdeviceptr upload(const void *host, uint64_t bytes)
{
    CUdeviceptr address = 0;
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&address, bytes + GUARD), CUDA_SUCCESS);
    unsigned char guard[GUARD];
    memset(guard, GUARD_BYTE, sizeof guard);
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(address + bytes, guard, GUARD), CUDA_SUCCESS);
    if (bytes > 0 && host != NULL) {
        ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(address, host, bytes), CUDA_SUCCESS);
    }
    return address;
}

// Brings it back and gives it up; nothing was written behind its end.
static void download(CUdeviceptr address, void *host, uint64_t bytes)
{
    unsigned char guard[GUARD];
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(guard, address + bytes, GUARD), CUDA_SUCCESS);
    for (int k = 0; k < GUARD; k++) {
        ck_assert_msg(guard[k] == GUARD_BYTE, "byte %d behind the end was written", k);
    }
    if (bytes > 0 && host != NULL) {
        ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(host, address, bytes), CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuda_driver.cuMemFree_v2(address), CUDA_SUCCESS);
}

// ---- numbers --------------------------------------------------------------------------------------------------------

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(next_random(state) % (uint64_t)(high - low + 1));
}

static bool flips(uint64_t *state)
{
    return (next_random(state) & 1) != 0;
}

static void put(uint32_t dtype, void *base, int64_t index, double value)
{
    const float single = (float)value;
    const uint16_t half = dtype == HR_F16 ? f16_of_float(single) : bf16_of_float(single);
    if (dtype == HR_F32) {
        memcpy((char *)base + index * 4, &single, sizeof single);
    } else {
        memcpy((char *)base + index * 2, &half, sizeof half);
    }
}

static double get(uint32_t dtype, const void *base, int64_t index)
{
    float single = 0;
    uint16_t half = 0;
    if (dtype == HR_F32) {
        memcpy(&single, (const char *)base + index * 4, sizeof single);
        return (double)single;
    }
    memcpy(&half, (const char *)base + index * 2, sizeof half);
    return (double)(dtype == HR_F16 ? float_of_f16(half) : float_of_bf16(half));
}

static void *random_numbers(uint32_t dtype, int64_t count, uint64_t *state)
{
    void *scratch = calloc((size_t)count, dtype_bytes((hr_dtype)dtype));
    ck_assert_ptr_nonnull(scratch);
    for (int64_t k = 0; k < count; k++) {
        put(dtype, scratch, k, (double)between(state, -1000, 1000) / 500.0);
    }
    return scratch;
}

// ---- a trial --------------------------------------------------------------------------------------------------------

typedef struct trial {
    product_shape shape;
    int64_t count_a, count_b, count_y, count_vector;
    void *a, *b, *y, *vector, *y_before;
} trial;

static int64_t extent(int64_t rows, int64_t columns, int64_t stride, const product_shape *s, int64_t batch,
                      int64_t outer)
{
    return (rows - 1) * stride + columns + (s->batch - 1) * batch + (s->outer - 1) * outer;
}

static product_shape random_shape(uint64_t *state)
{
    static const uint32_t types[] = {HR_F32, HR_F16, HR_BF16};
    product_shape s = {.dtype = types[next_random(state) % 3],
                       .m = between(state, 1, 20),
                       .n = between(state, 1, 20),
                       .k = between(state, 1, 24),
                       .transpose_a = flips(state),
                       .transpose_b = flips(state),
                       .batch = flips(state) ? 1 : between(state, 1, 3),
                       .outer = flips(state) ? 1 : between(state, 1, 3),
                       .alpha = flips(state) ? 1.0f : 0.5f,
                       .beta = flips(state) ? 0.0f : 1.0f};
    if (flips(state)) { // whole vectors
        s.m += -s.m & 7;
        s.n += -s.n & 7;
    }
    s.out_dtype = flips(state) ? s.dtype : (uint32_t)HR_F32;
    s.stride_a = (s.transpose_a ? s.m : s.k) + (flips(state) ? 0 : between(state, 0, 9));
    s.stride_b = (s.transpose_b ? s.k : s.n) + (flips(state) ? 0 : between(state, 0, 9));
    s.stride_y = s.n + (flips(state) ? 0 : between(state, 0, 9));
    return s;
}

static void random_steps(product_shape *s, uint64_t *state)
{
    const int64_t rows_a = s->transpose_a ? s->k : s->m, rows_b = s->transpose_b ? s->n : s->k;
    s->batch_a = flips(state) ? 0 : rows_a * s->stride_a;
    s->batch_b = rows_b * s->stride_b;
    s->batch_y = s->m * s->stride_y;
    s->outer_a = rows_a * s->stride_a * s->batch;
    s->outer_b = flips(state) ? 0 : rows_b * s->stride_b * s->batch;
    s->outer_y = s->m * s->stride_y * s->batch;
    if (s->batch > 1 && flips(state)) { // beside each other in wide rows, as heads are
        s->stride_y = s->n * s->batch;
        s->batch_y = s->n;
        s->outer_y = s->m * s->stride_y;
    }
}

static trial make_trial(product_shape s, uint64_t *state)
{
    trial t = {.shape = s};
    t.count_a = s.transpose_a ? extent(s.k, s.m, s.stride_a, &s, s.batch_a, s.outer_a)
                              : extent(s.m, s.k, s.stride_a, &s, s.batch_a, s.outer_a);
    t.count_b = s.transpose_b ? extent(s.n, s.k, s.stride_b, &s, s.batch_b, s.outer_b)
                              : extent(s.k, s.n, s.stride_b, &s, s.batch_b, s.outer_b);
    t.count_y = extent(s.m, s.n, s.stride_y, &s, s.batch_y, s.outer_y);
    t.count_vector = s.sums == PRODUCT_SUMS_A ? s.m : s.n;
    t.a = random_numbers(s.dtype, t.count_a, state);
    t.b = random_numbers(s.dtype, t.count_b, state);
    t.y = random_numbers(s.out_dtype, t.count_y, state);
    t.y_before = calloc((size_t)t.count_y, dtype_bytes((hr_dtype)s.out_dtype));
    memcpy(t.y_before, t.y, (size_t)t.count_y * dtype_bytes((hr_dtype)s.out_dtype));
    t.vector = random_numbers(s.out_dtype, t.count_vector, state);
    return t;
}

static void free_trial(trial *t)
{
    free(t->a);
    free(t->b);
    free(t->y);
    free(t->y_before);
    free(t->vector);
}

static hr_status run_trial(cuda_device *device, trial *t, uint64_t limit)
{
    const product_shape *s = &t->shape;
    const uint64_t in = dtype_bytes((hr_dtype)s->dtype), out = dtype_bytes((hr_dtype)s->out_dtype);
    const uint64_t bytes = product_workspace_bytes(device, s, limit);
    product *p = NULL;
    hr_err err = {0};
    const hr_status status = product_prepare(device, s, bytes, &p, &err);
    if (status != HR_OK) {
        return status;
    }
    const CUdeviceptr a = upload(t->a, (uint64_t)t->count_a * in),
                      b = upload(t->b, (uint64_t)t->count_b * in),
                      y = upload(t->y, (uint64_t)t->count_y * out),
                      vector = upload(t->vector, (uint64_t)t->count_vector * out),
                      workspace = upload(NULL, bytes);
    const product_places at = {.a = a, .b = b, .y = y, .vector = vector, .workspace = workspace};
    ck_assert_msg(product_run(p, NULL, &at, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_SUCCESS);
    download(a, NULL, (uint64_t)t->count_a * in);
    download(b, NULL, (uint64_t)t->count_b * in);
    download(y, t->y, (uint64_t)t->count_y * out);
    download(vector, t->vector, (uint64_t)t->count_vector * out);
    download(workspace, NULL, bytes);
    product_destroy(p);
    return HR_OK;
}

// ---- the judge ------------------------------------------------------------------------------------------------------

static double element_a(const trial *t, int64_t base, int64_t i, int64_t k)
{
    const product_shape *s = &t->shape;
    return get(s->dtype, t->a, base + (s->transpose_a ? k * s->stride_a + i : i * s->stride_a + k));
}

static double element_b(const trial *t, int64_t base, int64_t k, int64_t j)
{
    const product_shape *s = &t->shape;
    return get(s->dtype, t->b, base + (s->transpose_b ? j * s->stride_b + k : k * s->stride_b + j));
}

static double activated(int32_t act, double x)
{
    if (act == HR_ACT_RELU) {
        return x > 0 ? x : 0;
    }
    return act == HR_ACT_GELU ? 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)))
                              : x;
}

static double rounding(uint32_t dtype)
{
    return dtype == HR_BF16 ? 0x1p-8 : dtype == HR_F16 ? 0x1p-11 : 0x1p-23;
}

// The value at (i, j) of one product, the size of what was added up, and what the library may lose on the way: some kernels
// (an H100, CUDA 13.0, k no multiple of 8) round the product to y's type before a bias, a sum or an activation, as they
// would lie in memory apart, and tanh of float32 is good to about 2^-16. GELU is at most 1.13 times as steep as a line.
static double judged(const trial *t, int64_t item, int64_t round, int64_t i, int64_t j, double *size,
                     double *lost)
{
    const product_shape *s = &t->shape;
    const int64_t base_a = item * s->batch_a + round * s->outer_a,
                  base_b = item * s->batch_b + round * s->outer_b;
    double sum = 0;
    *size = 0;
    for (int64_t k = 0; k < s->k; k++) {
        const double term = element_a(t, base_a, i, k) * element_b(t, base_b, k, j);
        sum += term;
        *size += fabs(term);
    }
    const int64_t at = item * s->batch_y + round * s->outer_y + i * s->stride_y + j;
    const double old = s->beta == 0.0f ? 0 : (double)s->beta * get(s->out_dtype, t->y_before, at);
    const double bias = s->bias ? get(s->out_dtype, t->vector, j) : 0;
    *size += fabs(old) + fabs(bias);
    const double multiplied = (double)s->alpha * sum, given = multiplied + old + bias;
    const bool alone = s->beta == 0.0f && !s->bias && s->act == HR_ACT_NONE;
    *lost = alone ? 0 : 1.13 * fabs(multiplied) * rounding(s->out_dtype);
    *lost += s->act == HR_ACT_GELU && s->out_dtype == HR_F32 ? fabs(given) * 0x1p-16 : 0;
    return activated(s->act, given);
}

static void compare(const trial *t, double trust, bool *touched)
{
    const product_shape *s = &t->shape;
    for (int64_t item = 0; item < s->batch * s->outer; item++) {
        for (int64_t cell = 0; cell < s->m * s->n; cell++) {
            const int64_t i = cell / s->n, j = cell % s->n, inner = item % s->batch, round = item / s->batch;
            const int64_t at = inner * s->batch_y + round * s->outer_y + i * s->stride_y + j;
            double size = 0, lost = 0;
            const double want = judged(t, inner, round, i, j, &size, &lost),
                         had = get(s->out_dtype, t->y, at);
            const double most = size * trust + lost + fabs(want) * rounding(s->out_dtype) + 1e-7;
            ck_assert_msg(fabs(want - had) <= most, "y[%lld,%lld] of product %lld is %g, not %g",
                          (long long)i, (long long)j, (long long)item, had, want);
            touched[at] = true;
        }
    }
    for (int64_t at = 0; at < t->count_y; at++) {
        ck_assert_msg(touched[at] || get(s->out_dtype, t->y, at) == get(s->out_dtype, t->y_before, at),
                      "between the rows of y something was written");
    }
}

static void check_trial(const trial *t, double trust)
{
    bool *touched = calloc((size_t)t->count_y, sizeof *touched);
    compare(t, trust, touched);
    free(touched);
}

static void check_sums(const trial *t)
{
    const product_shape *s = &t->shape;
    for (int64_t c = 0; c < t->count_vector; c++) {
        double want = 0, size = 0;
        for (int64_t k = 0; k < s->k; k++) {
            const double x = s->sums == PRODUCT_SUMS_A ? element_a(t, 0, c, k) : element_b(t, 0, k, c);
            want += x;
            size += fabs(x);
        }
        const double had = get(s->out_dtype, t->vector, c);
        ck_assert_msg(fabs(want - had) <= size * 0x1p-22 + fabs(want) * rounding(s->out_dtype),
                      "sum %lld is %g, not %g", (long long)c, had, want);
    }
}

// ---- tests ----------------------------------------------------------------------------------------------------------

static uint64_t some_limit(uint64_t *state)
{
    const uint64_t limits[] = {0, 1, 100, 4096, (uint64_t)1 << 30};
    return limits[next_random(state) % (sizeof limits / sizeof *limits)];
}

START_TEST(any_product_is_the_one_of_three_loops)
{
    cuda_device *device = open_card(false);
    uint64_t state = 7;
    for (int k = 0; k < TRIALS; k++) {
        product_shape s = random_shape(&state);
        random_steps(&s, &state);
        trial t = make_trial(s, &state);
        ck_assert_int_eq(run_trial(device, &t, some_limit(&state)), HR_OK);
        check_trial(&t, 0x1p-22);
        free_trial(&t);
    }
    close_card(device);
}
END_TEST

START_TEST(more_products_than_the_library_takes_are_rounds)
{
    cuda_device *device = open_card(false);
    uint64_t state = 13;
    const int64_t batches[] = {65535, 65536, 3 * 30011};
    for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
        const product_shape s = {.dtype = HR_BF16,
                                 .out_dtype = HR_BF16,
                                 .m = 1,
                                 .n = 3,
                                 .k = 2,
                                 .stride_a = 2,
                                 .stride_b = 3,
                                 .stride_y = 3,
                                 .batch = batches[k],
                                 .batch_a = 2,
                                 .batch_b = 6,
                                 .batch_y = 3,
                                 .outer = 1,
                                 .alpha = 1.0f};
        trial t = make_trial(s, &state);
        ck_assert_int_eq(run_trial(device, &t, 4096), HR_OK);
        check_trial(&t, 0x1p-22);
        free_trial(&t);
    }
    close_card(device);
}
END_TEST

START_TEST(bias_activation_and_sums_ride_on_the_product_or_are_refused_as_a_whole)
{
    cuda_device *device = open_card(false);
    uint64_t state = 11;
    int served = 0, refused = 0;
    for (int k = 0; k < TRIALS; k++) {
        static const int32_t acts[] = {HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU};
        product_shape s = random_shape(&state);
        s.batch = s.outer = 1;
        s.beta = 0.0f;
        s.alpha = 1.0f;
        s.sums = (product_sums)(k % 3);
        s.bias = s.sums == PRODUCT_SUMS_NONE && flips(&state);
        s.act = s.sums == PRODUCT_SUMS_NONE ? acts[next_random(&state) % 3] : HR_ACT_NONE;
        trial t = make_trial(s, &state);
        const hr_status status = run_trial(device, &t, some_limit(&state));
        ck_assert(status == HR_OK || status == HR_DEVICE);
        served += status == HR_OK;
        refused += status != HR_OK;
        if (status == HR_OK) {
            check_trial(&t, 0x1p-22);
        }
        if (status == HR_OK && s.sums != PRODUCT_SUMS_NONE) {
            check_sums(&t);
        }
        free_trial(&t);
    }
    ck_assert_int_gt(served, 50);
    (void)refused; // how many is the library's affair
    close_card(device);
}
END_TEST

START_TEST(float32_operands_are_rounded_to_tf32_only_when_the_knob_says_so)
{
    const product_shape s = {.dtype = HR_F32, .out_dtype = HR_F32, .m = 16, .n = 16, .k = 64, .alpha = 1.0f};
    product_shape full = s;
    full.stride_a = full.k;
    full.stride_b = full.stride_y = full.n;
    full.batch = full.outer = 1;
    double worst[2] = {0, 0};
    for (int rounded = 0; rounded < 2; rounded++) {
        cuda_device *device = open_card(rounded != 0);
        uint64_t state = 3;
        trial t = make_trial(full, &state);
        ck_assert_int_eq(run_trial(device, &t, 1 << 20), HR_OK);
        check_trial(&t, rounded != 0 ? 0x1p-9 : 0x1p-22);
        for (int64_t cell = 0; cell < full.m * full.n; cell++) {
            double size = 0, lost = 0;
            const double want = judged(&t, 0, 0, cell / full.n, cell % full.n, &size, &lost);
            const double distance = fabs(want - get(HR_F32, t.y, cell)) / size;
            worst[rounded] = distance > worst[rounded] ? distance : worst[rounded];
        }
        free_trial(&t);
        close_card(device);
    }
    ck_assert(worst[1] > 8 * worst[0]);
}
END_TEST

START_TEST(a_workspace_that_was_answered_is_answered_again)
{
    cuda_device *device = open_card(false);
    uint64_t state = 5;
    for (int k = 0; k < TRIALS; k++) {
        product_shape s = random_shape(&state);
        s.m *= between(&state, 1, 4000);
        s.k *= between(&state, 1, 4000);
        const uint64_t limit = (uint64_t)between(&state, 0, 1 << 26);
        const uint64_t bytes = product_workspace_bytes(device, &s, limit);
        ck_assert_uint_le(bytes, limit);
        ck_assert_uint_le(bytes, 32 * HR_MIB);
        ck_assert_uint_eq(product_workspace_bytes(device, &s, bytes), bytes);
        const uint64_t most = product_workspace_bytes(device, &s, UINT64_MAX);
        ck_assert(bytes == most || bytes == limit);
    }
    close_card(device);
}
END_TEST

// Parts of k are summed side by side: a short k has few of them, and the card's generation is the cap of all.
START_TEST(a_short_k_wants_few_sums)
{
    static const struct {
        int64_t k;
        uint64_t sums;
    } rows[] = {{3, 1}, {32, 1}, {33, 2}, {64, 2}, {224, 7}, {225, 8}, {256, 8}, {2048, 8}};
    cuda_device *device = open_card(false);
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        const product_shape s = {.dtype = HR_F32, .out_dtype = HR_F32, .m = 256, .n = 320, .k = rows[n].k},
                            large = {.dtype = HR_F32,
                                     .out_dtype = HR_F32,
                                     .m = 1 << 16,
                                     .n = 1 << 10,
                                     .k = rows[n].k};
        const uint64_t sum_bytes = 256 * 320 * sizeof(float);
        ck_assert_uint_eq(product_workspace_bytes(device, &s, UINT64_MAX), rows[n].sums * sum_bytes);
        ck_assert_uint_eq(product_workspace_bytes(device, &large, UINT64_MAX),
                          cuda_device_traits(device)->compute_major >= 9 ? 32 * HR_MIB : 4 * HR_MIB);
    }
    close_card(device);
}
END_TEST

START_TEST(products_of_two_devices_and_of_one_that_was_opened_again_have_handles)
{
    uint64_t state = 9;
    cuda_device *first = open_card(false), *second = open_card(false);
    cuda_device *const order[] = {first, second, first};
    for (int k = 0; k < 3; k++) {
        product_shape s = random_shape(&state);
        random_steps(&s, &state);
        trial t = make_trial(s, &state);
        ck_assert_int_eq(run_trial(order[k], &t, 4096), HR_OK);
        check_trial(&t, 0x1p-22);
        free_trial(&t);
    }
    close_card(first);
    close_card(second);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_products");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, a_short_k_wants_few_sums);
    tcase_add_test(tests, any_product_is_the_one_of_three_loops);
    tcase_add_test(tests, more_products_than_the_library_takes_are_rounds);
    tcase_add_test(tests, bias_activation_and_sums_ride_on_the_product_or_are_refused_as_a_whole);
    tcase_add_test(tests, float32_operands_are_rounded_to_tf32_only_when_the_knob_says_so);
    tcase_add_test(tests, a_workspace_that_was_answered_is_answered_again);
    tcase_add_test(tests, products_of_two_devices_and_of_one_that_was_opened_again_have_handles);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
