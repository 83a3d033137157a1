// SPDX-License-Identifier: Apache-2.0
// How batch normalisation is spread over a card (device/cuda/batch_norm_shape.h): every value has one place, every
// multiprocessor has work, shares are even, no part is empty; ResNet-50's shapes as a table.
#include <check.h>
#include <stdlib.h>

#include "device/cuda/batch_norm_shape.h"
#include "numeric/op_harness.h"

enum { PROCESSORS = 132, TRIALS = 600 }; // of an H100 and an H200

static op_operand rows_of(int64_t rows, int64_t channels, hr_dtype dtype)
{
    return (op_operand){.shape = shape_of(2, (const int64_t[]){rows, channels}), .dtype = dtype};
}

// ---- ResNet-50 in bfloat16 ---------------------------------------------------------------------------------------

// Of statistics and of the sums of gradients: blocks of 8 warps, and the steps of the one that takes most, where a step is
// 256 packs of 16 bytes. Then the join: threads of a channel, and blocks. At batch 32 multiprocessors are short of work.
typedef struct spread {
    uint32_t blocks;
    int64_t most;
    uint32_t sum_blocks;
    int64_t sum_most;
    uint32_t joined_by, join_blocks;
} spread;

static const struct {
    int64_t side, channels;
    uint32_t tiles;
    spread of[2]; // batch 256, 32
} table[] = {
    {112, 64, 1, {{528, 192, 528, 192, 128, 8}, {528, 24, 528, 24, 128, 8}}},
    {56, 64, 1, {{528, 48, 528, 48, 128, 8}, {264, 12, 396, 8, 128, 8}}},
    {56, 128, 1, {{528, 96, 528, 96, 128, 16}, {396, 16, 528, 12, 128, 16}}},
    {56, 256, 1, {{528, 192, 528, 192, 128, 32}, {528, 24, 528, 24, 128, 32}}},
    {28, 128, 1, {{528, 24, 528, 24, 128, 16}, {132, 12, 264, 6, 128, 16}}},
    {28, 256, 1, {{528, 48, 528, 48, 128, 32}, {264, 12, 396, 8, 128, 32}}},
    {28, 512, 2, {{528, 96, 528, 96, 128, 64}, {396, 16, 528, 12, 128, 64}}},
    {14, 256, 1, {{396, 16, 528, 12, 128, 32}, {131, 6, 132, 6, 128, 32}}},
    {14, 512, 2, {{528, 24, 528, 24, 128, 64}, {132, 12, 264, 6, 128, 64}}},
    {14, 1024, 4, {{528, 48, 528, 48, 128, 128}, {264, 12, 396, 8, 128, 128}}},
    {7, 512, 2, {{264, 12, 396, 8, 128, 64}, {132, 3, 132, 3, 128, 64}}},
    {7, 2048, 8, {{528, 24, 528, 24, 128, 256}, {136, 12, 264, 6, 32, 256}}},
};
enum { SHAPES = sizeof table / sizeof *table };

START_TEST(every_multiprocessor_has_work_at_every_shape)
{
    static const int64_t batches[] = {256, 32};
    for (int k = 0; k < 2; k++) {
        const int64_t rows = batches[k] * table[_i].side * table[_i].side;
        const op_operand t = rows_of(rows, table[_i].channels, HR_BF16);
        const batch_norm_division d = batch_norm_divide(&t);
        const batch_norm_parts p = batch_norm_parts_of(&d, PROCESSORS, BATCH_NORM_STEPS),
                               sums = batch_norm_parts_of(&d, PROCESSORS, BATCH_NORM_FLIGHT);
        const batch_norm_join j = batch_norm_join_of(&d, p.count, PROCESSORS);
        const spread *want = &table[_i].of[k];
        ck_assert_uint_eq(d.tiles, table[_i].tiles);
        ck_assert_uint_eq(p.count * d.tiles, want->blocks);
        ck_assert_int_eq(batch_norm_steps_most(&d, &p), want->most);
        ck_assert_uint_eq(sums.count * d.tiles, want->sum_blocks);
        ck_assert_int_eq(batch_norm_steps_most(&d, &sums), want->sum_most);
        ck_assert_uint_eq(j.threads / j.across, want->joined_by);
        ck_assert_uint_eq(j.blocks, want->join_blocks);
        // Three numbers of a part and channel against the image: an eighth at most, at batch 32 a third.
        ck_assert_uint_le((k == 0 ? 8u : 3u) * p.count * 12, (uint64_t)rows * 2);
        ck_assert_uint_ge(100 * p.count * d.tiles, 99 * PROCESSORS);
    }
}
END_TEST

// ---- any shape, any card -----------------------------------------------------------------------------------------

// By the formula of the kernels: in how many places every pack is, and that a thread's channels stay the same.
static void check_places(const batch_norm_division *d)
{
    const batch_norm_walk *w = &d->walk;
    const int64_t v = w->rows * w->channels / w->packs;
    unsigned char *seen = calloc((size_t)w->packs, 1);
    ck_assert_ptr_nonnull(seen);
    ck_assert_int_eq(w->step * v % w->channels, 0);
    for (uint32_t y = 0; y < d->tiles; y++) {
        for (int64_t t = 0; t < w->width; t++) {
            const int64_t in_period = (int64_t)y * w->across + t % w->across;
            for (int64_t s = 0; s < w->steps && in_period < w->period; s++) {
                const int64_t p = s * w->step + t / w->across * w->period + in_period;
                if (p < w->packs) {
                    seen[p]++;
                }
            }
        }
    }
    bool once = true;
    for (int64_t p = 0; p < w->packs; p++) {
        once = once && seen[p] == 1;
    }
    ck_assert(once);
    free(seen);
}

static void check_parts(const batch_norm_division *d, uint32_t processors, uint32_t flight)
{
    const batch_norm_parts p = batch_norm_parts_of(d, processors, flight);
    const int64_t steps = d->walk.steps, blocks = (int64_t)p.count * d->tiles;
    const int64_t most = batch_norm_steps_most(d, &p), enough = steps * d->tiles;
    ck_assert_int_ge(p.chunk, 1);
    ck_assert_int_le(p.chunk, (int64_t)flight);
    ck_assert_int_ge(p.count, 1);
    ck_assert_int_le((p.count - 1) * (int64_t)p.chunk, steps - 1); // the last one has a step, too
    ck_assert_int_lt(blocks, 4 * (int64_t)processors + d->tiles);
    ck_assert_int_ge(3 * blocks, 2 * (enough < processors ? enough : processors)); // two thirds, at the worst
    ck_assert_int_le(most, 2 * ((steps + p.count - 1) / p.count));
    ck_assert_int_ge(most * p.count, steps);
}

static void check_join(const batch_norm_division *d, uint32_t processors, uint32_t parts)
{
    const batch_norm_join j = batch_norm_join_of(d, parts, processors);
    ck_assert_uint_eq(j.across & (j.across - 1), 0);
    ck_assert_uint_eq(j.threads & (j.threads - 1), 0);
    ck_assert_uint_ge(j.threads, 32);
    ck_assert_uint_le(j.threads, BATCH_NORM_JOIN_THREADS);
    ck_assert_int_ge((int64_t)j.blocks * j.across, d->walk.channels);
    ck_assert(j.across == 8 || j.blocks >= processors);
}

START_TEST(every_value_has_one_place_and_no_part_is_empty)
{
    static const uint32_t cards[] = {1, 2, 46, 108, 132, 170};
    static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
    uint64_t state = 11;
    for (int k = 0; k < TRIALS; k++) {
        const int64_t widest = k % 3 == 0 ? 20 : k % 3 == 1 ? 700 : 5000;
        const int64_t channels = op_random_int(&state, 1, widest);
        const op_operand t = rows_of(op_random_int(&state, 1, k % 7 == 0 ? 3 : 4000 / (1 + channels / 50)),
                                     k % 2 == 0 ? channels : (channels + 7) / 8 * 8, types[k % 3]);
        const batch_norm_division d = batch_norm_divide(&t);
        check_places(&d);
        for (size_t c = 0; c < sizeof cards / sizeof *cards; c++) {
            check_parts(&d, cards[c], BATCH_NORM_STEPS);
            check_parts(&d, cards[c], BATCH_NORM_FLIGHT);
            check_join(&d, cards[c], batch_norm_parts_of(&d, cards[c], BATCH_NORM_STEPS).count);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_norm_shape");
    TCase *c = tcase_create("spread");
    tcase_add_loop_test(c, every_multiprocessor_has_work_at_every_shape, 0, SHAPES);
    tcase_add_test(c, every_value_has_one_place_and_no_part_is_empty);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
