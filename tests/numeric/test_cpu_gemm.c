// SPDX-License-Identifier: Apache-2.0
// The matrix product of the cpu device, alone and in batches, against sums in double, over sizes on both sides
// of every cut that it makes (tiles, panels, passes over k, blocks of rows, bands, threads that share k), and the
// threads it runs on.
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/workers.h"
#include "device_cpu/gemm.h"
#include "device_cpu/sums.h"
#include "numeric/op_harness.h"

enum { SEEDS = HEADROOM_SANITIZED ? 20 : 60, GUARD_BYTES = 64, GUARD = 0xA5, SAMPLES = 400, LINE_BYTES = 64 };

static workers *threads_of(uint32_t count)
{
    workers *w = NULL;
    hr_err err = {0};
    ck_assert_msg(workers_create(count, &w, &err) == HR_OK, "%s", err.sentence);
    return w;
}

// Room with a guard behind it.
static void *guarded(uint64_t bytes)
{
    char *memory =
        aligned_alloc(LINE_BYTES, (bytes + GUARD_BYTES + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xFF, bytes); // not a number, wherever it is read unwritten
    memset(memory + bytes, GUARD, GUARD_BYTES);
    return memory;
}

static void check_guard(const void *memory, uint64_t bytes)
{
    for (uint32_t k = 0; k < GUARD_BYTES; k++) {
        ck_assert_uint_eq(((const uint8_t *)memory)[bytes + k], GUARD);
    }
}

static float *random_floats(int64_t count, uint64_t *state)
{
    float *values = guarded((uint64_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)op_random(state, -1.0, 1.0);
    }
    return values;
}

// One product with all its operands.
typedef struct trial {
    gemm g;
    int64_t a_row, b_row, c_row; // as stored, also where g leaves them 0
    float *a, *b, *bias, *c, *b_sums, *scratch;
} trial;

static double element(const trial *t, int64_t i, int64_t n, double *magnitude)
{
    double sum = t->bias != NULL ? (double)t->bias[n] : 0.0;
    *magnitude = fabs(sum);
    for (int64_t k = 0; k < t->g.k; k++) {
        const float a = t->g.a_transposed ? t->a[k * t->a_row + i] : t->a[i * t->a_row + k];
        const float b = t->g.b_transposed ? t->b[n * t->b_row + k] : t->b[k * t->b_row + n];
        const double product = (double)a * (double)b * (t->g.scale == 0 ? 1.0 : (double)t->g.scale);
        sum += product;
        *magnitude += fabs(product);
    }
    return t->g.relu && sum < 0.0 ? 0.0 : sum;
}

static void check_element(const trial *t, int64_t i, int64_t n)
{
    double magnitude = 0.0;
    const double expected = element(t, i, n, &magnitude), got = (double)t->c[i * t->c_row + n];
    ck_assert_msg(fabs(got - expected) <= 1e-6 * magnitude + 1e-30,
                  "%lldx%lldx%lld%s%s: element %lld,%lld is %.9g, not %.9g", (long long)t->g.m,
                  (long long)t->g.n, (long long)t->g.k, t->g.a_transposed ? " Aᵀ" : "",
                  t->g.b_transposed ? " Bᵀ" : "", (long long)i, (long long)n, got, expected);
}

static void check_sums(const trial *t)
{
    for (int64_t n = 0; t->g.sum_b && n < t->g.n; n++) {
        double sum = 0.0;
        for (int64_t k = 0; k < t->g.k; k++) {
            sum += (double)t->b[k * t->b_row + n];
        }
        ck_assert_double_le(fabs((double)t->b_sums[n] - sum), 1e-6 * (double)t->g.k);
    }
}

// What lies between the rows of C is not touched.
static void check_gaps(const trial *t)
{
    for (int64_t i = 0; i + 1 < t->g.m; i++) {
        for (int64_t n = t->g.n; n < t->c_row; n++) {
            ck_assert(isnan(t->c[i * t->c_row + n]));
        }
    }
}

static void set_rows(trial *t)
{
    const gemm *g = &t->g;
    t->a_row = g->a_row != 0 ? g->a_row : g->a_transposed ? g->m : g->k;
    t->b_row = g->b_row != 0 ? g->b_row : g->b_transposed ? g->k : g->n;
    t->c_row = g->c_row != 0 ? g->c_row : g->n;
}

static void run(trial *t, uint64_t *state)
{
    const int64_t m = t->g.m, n = t->g.n, k = t->g.k;
    set_rows(t);
    const int64_t last_row = (m - 1) * t->c_row;
    const uint64_t scratch_bytes = gemm_scratch_bytes(&t->g),
                   c_bytes = (uint64_t)(last_row + n) * sizeof(float);
    t->a = random_floats((t->g.a_transposed ? k : m) * t->a_row, state);
    t->b = random_floats((t->g.b_transposed ? n : k) * t->b_row, state);
    t->c = guarded(c_bytes);
    t->b_sums = t->g.sum_b ? guarded((uint64_t)n * sizeof(float)) : NULL;
    t->scratch = guarded(scratch_bytes);
    const uint64_t packed_bytes = gemm_packed_bytes(&t->g);
    float *packed = t->g.b_packed ? guarded(packed_bytes) : NULL;
    if (packed != NULL) {
        gemm_pack_right(&t->g, t->b, packed);
        check_guard(packed, packed_bytes);
    }
    const gemm_operands o = {t->a, packed != NULL ? packed : t->b, t->bias, t->c, t->b_sums};
    gemm_run(&t->g, &o, t->scratch);
    free(packed);
    check_guard(t->scratch, scratch_bytes);
    check_guard(t->c, c_bytes);
    for (int s = 0; s < SAMPLES; s++) {
        check_element(t, op_random_int(state, 0, m - 1), op_random_int(state, 0, n - 1));
    }
    check_element(t, 0, 0);
    check_element(t, m - 1, n - 1);
    check_sums(t);
    check_gaps(t);
    free(t->a);
    free(t->b);
    free(t->bias);
    free(t->c);
    free(t->b_sums);
    free(t->scratch);
}

// Mostly small, now and then beyond the blocks.
static int64_t random_size(uint64_t *state, int64_t large)
{
    const int64_t limits[] = {9, 40, 150, large};
    return op_random_int(state, 1, limits[op_random_int(state, 0, 3)]);
}

START_TEST(a_product_is_the_sum_of_products)
{
    uint64_t state = (uint64_t)_i;
    workers *w = threads_of(1 + (uint32_t)_i % 3);
    trial t = {.g = {.m = random_size(&state, 700),
                     .n = random_size(&state, 700),
                     .k = random_size(&state, 700),
                     .a_transposed = op_random_int(&state, 0, 1) == 1,
                     .b_transposed = op_random_int(&state, 0, 1) == 1,
                     .relu = op_random_int(&state, 0, 1) == 1,
                     .workers = w}};
    t.g.b_packed = op_random_int(&state, 0, 3) == 0;
    t.g.sum_b = !t.g.b_transposed && !t.g.b_packed && op_random_int(&state, 0, 1) == 1;
    t.bias = op_random_int(&state, 0, 1) == 1 ? random_floats(t.g.n, &state) : NULL;
    run(&t, &state);
    workers_destroy(w);
}
END_TEST

// Matrices that lie within wider ones, with a factor, on one worker or several.
START_TEST(a_product_of_parts_is_the_sum_of_products)
{
    uint64_t state = (uint64_t)_i;
    workers *w = threads_of(1 + (uint32_t)_i % 3);
    trial t = {.g = {.m = random_size(&state, 300),
                     .n = random_size(&state, 300),
                     .k = random_size(&state, 1100),
                     .a_transposed = op_random_int(&state, 0, 1) == 1,
                     .b_transposed = op_random_int(&state, 0, 1) == 1,
                     .scale = (float)op_random(&state, -2.0, 2.0),
                     .workers = _i % 4 == 0 ? NULL : w}};
    t.g.a_row = (t.g.a_transposed ? t.g.m : t.g.k) + op_random_int(&state, 0, 40);
    t.g.b_row = (t.g.b_transposed ? t.g.k : t.g.n) + op_random_int(&state, 0, 40);
    t.g.c_row = t.g.n + op_random_int(&state, 0, 40);
    t.g.b_packed = op_random_int(&state, 0, 3) == 0;
    t.bias = op_random_int(&state, 0, 1) == 1 ? random_floats(t.g.n, &state) : NULL;
    run(&t, &state);
    workers_destroy(w);
}
END_TEST

static int64_t batch_place(const gemm_batch *b, gemm_steps steps, int64_t item)
{
    return item / b->inner * steps.outer + item % b->inner * steps.inner;
}

// A batch gives the bits that its products give one by one: heads side by side against matrices that lie close.
START_TEST(a_batch_is_its_products)
{
    uint64_t state = (uint64_t)_i;
    workers *w = threads_of(1 + (uint32_t)_i % 3);
    const int64_t m = random_size(&state, 90), n = random_size(&state, 90), k = random_size(&state, 90);
    gemm_batch b = {.outer = op_random_int(&state, 1, 3), .inner = op_random_int(&state, 1, 4)};
    b.each = (gemm){.m = m, .n = n, .k = k, .b_transposed = _i % 2 == 1, .scale = 0.5f, .workers = w};
    b.each.a_row = b.inner * k;
    b.each.c_row = b.inner * n;
    b.a = (gemm_steps){m * b.each.a_row, k};
    b.b = (gemm_steps){b.inner * k * n, k * n};
    b.c = (gemm_steps){m * b.each.c_row, n};
    const int64_t items = b.outer * b.inner;
    const uint64_t c_bytes = (uint64_t)(items * m * n) * sizeof(float), room = gemm_batch_scratch_bytes(&b);
    float *left = random_floats(items * m * k, &state), *right = random_floats(items * k * n, &state);
    float *c = guarded(c_bytes), *expected = guarded(c_bytes), *scratch = guarded(room);
    gemm_batch_run(&b, left, right, c, scratch);
    check_guard(scratch, room);
    check_guard(c, c_bytes);
    free(scratch);
    gemm one = b.each;
    one.workers = items >= workers_count(w) ? NULL : w;
    scratch = guarded(gemm_scratch_bytes(&one));
    for (int64_t i = 0; i < items; i++) {
        const gemm_operands o = {.a = left + batch_place(&b, b.a, i),
                                 .b = right + batch_place(&b, b.b, i),
                                 .c = expected + batch_place(&b, b.c, i)};
        gemm_run(&one, &o, scratch);
    }
    ck_assert(memcmp(c, expected, c_bytes) == 0);
    free(left);
    free(right);
    free(c);
    free(expected);
    free(scratch);
    workers_destroy(w);
}
END_TEST

// Sizes that real layers have: long k shared by threads, tall and wide results.
static const struct {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
} layers[] = {{16, 64, 10816, false, false},  {10816, 64, 16, true, false},  {16, 10816, 64, false, true},
              {5408, 32, 3, false, false},    {3, 32, 5408, true, false},    {32, 64, 5408, true, false},
              {128, 10, 2048, false, false},  {128, 2048, 10, false, true},  {128, 520, 2048, false, false},
              {1030, 1030, 128, true, false}, {33, 2050, 300, false, false}, {700, 1700, 650, false, false},
              {700, 650, 1700, false, true},  {2100, 1100, 600, true, false}};

START_TEST(products_of_layers)
{
    uint64_t state = (uint64_t)_i;
    workers *w = threads_of(2);
    trial t = {.g = {.m = layers[_i].m,
                     .n = layers[_i].n,
                     .k = layers[_i].k,
                     .a_transposed = layers[_i].a_transposed,
                     .b_transposed = layers[_i].b_transposed,
                     .sum_b = !layers[_i].b_transposed,
                     .workers = w}};
    t.bias = random_floats(t.g.n, &state);
    run(&t, &state);
    workers_destroy(w);
}
END_TEST

// ---- threads ----------------------------------------------------------------------------------------------

enum { ITEMS = 1000, TURNS = 2000 };

typedef struct tally {
    uint8_t *seen; // [ITEMS] how often
    uint32_t *by;  // [ITEMS] which worker
} tally;

static void count_items(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const tally *t = argument;
    for (int64_t i = begin; i < end; i++) {
        t->seen[i]++;
        t->by[i] = worker;
    }
}

START_TEST(every_item_is_done_once_in_the_same_cuts)
{
    uint8_t seen[ITEMS];
    uint32_t by[ITEMS], first[ITEMS];
    uint64_t state = (uint64_t)_i;
    workers *w = threads_of(1 + (uint32_t)_i);
    const tally t = {seen, by};
    for (int turn = 0; turn < TURNS; turn++) {
        const int64_t items = op_random_int(&state, 1, ITEMS), grain = op_random_int(&state, 1, 50);
        const uint32_t ranges = workers_for_ranges(w, items, grain);
        memset(seen, 0, sizeof seen);
        workers_for(w, items, grain, count_items, &t);
        for (int64_t i = 0; i < items; i++) {
            ck_assert(seen[i] == 1 && by[i] < ranges && (i == 0 || by[i] == by[i - 1] || i % grain == 0));
        }
        ck_assert_uint_eq(by[items - 1], ranges - 1);
        memcpy(first, by, sizeof first);
        workers_for(w, items, grain, count_items, &t);
        ck_assert(memcmp(first, by, (size_t)items * sizeof by[0]) == 0);
        memset(seen, 0, sizeof seen);
        workers_for_pieces(w, items, grain, count_items, &t);
        ck_assert(memchr(seen, 0, (size_t)items) == NULL && memchr(seen, 2, (size_t)items) == NULL);
    }
    workers_destroy(w);
}
END_TEST

enum { PIECES = 8, TIMEOUT_SECONDS = 20 };

// A thread that begins a piece and stands still there until all the others are done.
typedef struct standstill {
    pthread_t caller;
    bool of_caller; // who stands still
    _Atomic uint32_t done;
    _Atomic bool stands, given_up;
} standstill;

static void stand_still(standstill *s)
{
    const time_t begin = time(NULL);
    while (atomic_load(&s->done) < PIECES - 1 && !atomic_load(&s->given_up)) {
        if (time(NULL) - begin > TIMEOUT_SECONDS) {
            atomic_store(&s->given_up, true);
        }
        (void)sched_yield();
    }
}

static void stand_or_work(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    standstill *s = *(standstill *const *)argument;
    (void)worker;
    ck_assert_int_eq(end, begin + 1);
    const bool mine = (pthread_equal(pthread_self(), s->caller) != 0) == s->of_caller;
    if (mine && !atomic_exchange(&s->stands, true)) {
        stand_still(s);
    }
    atomic_fetch_add(&s->done, 1);
}

START_TEST(a_thread_that_stands_still_holds_up_one_piece)
{
    workers *w = threads_of(2);
    standstill s = {.caller = pthread_self(), .of_caller = _i == 1}, *argument = &s;
    workers_for_pieces(w, PIECES, 1, stand_or_work, &argument);
    ck_assert_uint_eq(atomic_load(&s.done), PIECES);
    ck_assert(!atomic_load(&s.given_up));
    workers_destroy(w);
}
END_TEST

START_TEST(long_columns_lose_no_digits)
{
    const int64_t rows = 200000, f = 19;
    workers *w = threads_of(2);
    float *y = malloc((size_t)(rows * f) * sizeof *y), sum[19];
    float *scratch = guarded(sums_scratch_bytes(w, f));
    ck_assert_ptr_nonnull(y);
    for (int64_t i = 0; i < rows * f; i++) {
        y[i] = 0.1f;
    }
    sums_columns(w, y, rows, f, sum, scratch);
    check_guard(scratch, sums_scratch_bytes(w, f));
    for (int64_t c = 0; c < f; c++) {
        ck_assert_double_le(fabs((double)sum[c] / ((double)0.1f * (double)rows) - 1.0), 1e-5);
    }
    free(y);
    free(scratch);
    workers_destroy(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_gemm");
    TCase *all = tcase_create("products and threads");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, a_product_is_the_sum_of_products, 0, SEEDS);
    tcase_add_loop_test(all, a_product_of_parts_is_the_sum_of_products, 0, SEEDS);
    tcase_add_loop_test(all, a_batch_is_its_products, 0, SEEDS / 2);
    tcase_add_loop_test(all, products_of_layers, 0, (int)(sizeof layers / sizeof layers[0]));
    tcase_add_loop_test(all, every_item_is_done_once_in_the_same_cuts, 0, 4);
    tcase_add_loop_test(all, a_thread_that_stands_still_holds_up_one_piece, 0, 2);
    tcase_add_test(all, long_columns_lose_no_digits);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
