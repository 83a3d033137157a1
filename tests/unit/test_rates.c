// SPDX-License-Identifier: Apache-2.0
// What a machine was measured to do: the rates are found again, they never say that more takes less, and their file
// is taken whole or not at all.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "device/rates.h"
#include "device/rates_usual.h"
#include "insight/rate_fit.h"
#include "memory/heap.h"

enum { KINDS = 7 };
static char folder[64], path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/headroom-rates-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/cache/calibration", folder);
}

static void remove_folder(void)
{
    char command[160];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static double draw(uint64_t *state, double most)
{
    return (double)(next_random(state) >> 11) * 0x1p-53 * most;
}

static cost_rates draw_rates(uint64_t seed)
{
    cost_rates r;
    memset(&r, 0, sizeof r);
    for (int f = 0; f < COST_FAMILY_COUNT; f++) {
        for (int w = 0; w < RATE_WIDTHS; w++) {
            r.of[f][w] = (cost_rate){draw(&seed, 1e-3), draw(&seed, 1e-9), draw(&seed, 1e-9), seed % 100};
        }
    }
    r.line_seconds = draw(&seed, 1e-6);
    r.spread = 1 + draw(&seed, 1);
    r.kind_count = seed % KINDS;
    for (uint64_t k = 0; k < r.kind_count; k++) {
        r.kinds[k].kind = (k + 1) * 1000 + seed % 1000;
        r.kinds[k].rate = (cost_rate){draw(&seed, 1e-3), draw(&seed, 1e-9), draw(&seed, 1e-9), 1};
    }
    return r;
}

static bool holds(uint64_t key, uint64_t seed)
{
    cost_rates found, expected = draw_rates(seed);
    return rates_load(path, key, &found) && memcmp(&found, &expected, sizeof found) == 0;
}

// ---- what cores usually take ------------------------------------------------------------------------------------

static uint64_t usual_ns(double threads, double lanes, bool has_half, hr_op op, hr_dtype dtype, uint64_t work)
{
    cost_rates r;
    const tensor t = {.name = "t", .shape = shape_of(1, (const int64_t[]){1}), .dtype = dtype};
    const instr i = {.op = op, .in_count = 1, .out_count = 1, .flops = 64 * work, .bytes_moved = work};
    const program p = {.tensors = &t, .instrs = &i, .tensor_count = 1, .instr_count = 1, .batch = 1};
    rates_usual(&r, threads, lanes, has_half);
    return rates_ns(&r, &p, &i);
}

START_TEST(usual_cores_are_slower_with_more_to_do_and_faster_with_more_of_them)
{
    static const hr_op ops[] = {HR_OP_DENSE, HR_OP_CONV2D, HR_OP_RELU, HR_OP_ADAM, HR_OP_LAYER_NORM};
    const uint64_t work = 1 << 22;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        const uint64_t ns = usual_ns(2, 8, false, ops[k], HR_F32, work);
        ck_assert_uint_gt(ns, 0);
        ck_assert_uint_gt(usual_ns(2, 8, false, ops[k], HR_F32, 2 * work), ns);
        ck_assert_uint_gt(usual_ns(1, 8, false, ops[k], HR_F32, work), ns);
        ck_assert_uint_ge(usual_ns(2, 4, false, ops[k], HR_F32, work), ns);
        ck_assert_uint_eq(usual_ns(2, 8, true, ops[k], HR_BF16, work),
                          usual_ns(2, 8, true, ops[k], HR_F32, work));
    }
}
END_TEST

// What is product after product: half as many lanes take nearly twice as long, and two-byte types that are widened first longer too.
START_TEST(usual_products_are_faster_with_wide_registers_and_native_types)
{
    static const hr_op ops[] = {HR_OP_DENSE, HR_OP_CONV2D};
    const uint64_t work = 1 << 22;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        const double ns = (double)usual_ns(2, 8, false, ops[k], HR_F32, work);
        ck_assert_double_gt((double)usual_ns(2, 4, false, ops[k], HR_F32, work), 1.5 * ns);
        ck_assert_double_gt((double)usual_ns(2, 8, false, ops[k], HR_BF16, work), 1.2 * ns);
    }
}
END_TEST

// ---- the file -------------------------------------------------------------------------------------------------

START_TEST(what_is_kept_is_found_under_its_key)
{
    for (uint64_t key = 1; key <= 5; key++) {
        const cost_rates r = draw_rates(key);
        ck_assert(rates_save(path, key, &r));
    }
    const cost_rates other = draw_rates(77);
    ck_assert(rates_save(path, 3, &other)); // measured again
    for (uint64_t key = 1; key <= 5; key++) {
        ck_assert(holds(key, key == 3 ? 77 : key));
    }
    cost_rates found;
    ck_assert(!rates_load(path, 6, &found));
}
END_TEST

static char *whole_file(size_t *bytes)
{
    char *data = NULL;
    ck_assert_int_eq(file_read(path, 1 << 20, &data, bytes, NULL), HR_OK);
    return data;
}

static void write_file(const char *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_damaged_file_is_as_if_it_were_not_there)
{
    size_t bytes = 0;
    uint64_t seed = 9;
    cost_rates found, r = draw_rates(1);
    ck_assert(rates_save(path, 1, &r));
    char *data = whole_file(&bytes);
    for (int trial = 0; trial < 200; trial++) {
        const size_t at = next_random(&seed) % bytes;
        const char bit = (char)(1 << next_random(&seed) % 8);
        data[at] = (char)(data[at] ^ bit);
        write_file(data, bytes);
        ck_assert_msg(!rates_load(path, 1, &found), "byte %zu", at);
        data[at] = (char)(data[at] ^ bit);
        write_file(data, next_random(&seed) % bytes);
        ck_assert(!rates_load(path, 1, &found));
    }
    ck_assert(rates_save(path, 1, &r)); // over what is damaged
    ck_assert(holds(1, 1));
    hr_free(data);
}
END_TEST

START_TEST(numbers_that_no_machine_has_are_refused)
{
    const double wrong[] = {-1e-9, (double)NAN, (double)INFINITY, 1e9};
    for (int k = 0; k < 4; k++) {
        cost_rates found, r = draw_rates(1);
        r.of[COST_PRODUCT][RATE_FLOAT32].seconds_per_flop = wrong[k];
        ck_assert(rates_save(path, 1, &r));
        ck_assert(!rates_load(path, 1, &found));
    }
    cost_rates found, busy = draw_rates(1);
    busy.of[COST_UPDATE][RATE_FLOAT32].start_seconds = 0.157; // as a busy machine once seemed to need
    ck_assert(rates_save(path, 1, &busy));
    ck_assert(!rates_load(path, 1, &found));
}
END_TEST

START_TEST(a_file_operation_that_fails_leaves_the_old_file)
{
    const cost_rates first = draw_rates(1), second = draw_rates(2);
    bool saved = false;
    ck_assert(rates_save(path, 1, &first));
    for (uint64_t nth = 1; !saved; nth++) {
        (void)file_fail_at(nth);
        saved = rates_save(path, 1, &second);
        (void)file_fail_at(0);
        ck_assert(holds(1, 1) || holds(1, 2));
        ck_assert(!saved || holds(1, 2));
        ck_assert_uint_lt(nth, 100);
    }
}
END_TEST

START_TEST(a_request_for_host_memory_that_fails_leaves_the_old_file)
{
    const cost_rates first = draw_rates(1), second = draw_rates(2);
    const int64_t live = hr_host_mem_live();
    bool saved = false;
    ck_assert(rates_save(path, 1, &first));
    for (uint64_t nth = 1; !saved; nth++) {
        (void)hr_host_mem_fail_at(nth);
        saved = rates_save(path, 1, &second);
        (void)hr_host_mem_fail_at(0);
        ck_assert(holds(1, 1) || holds(1, 2));
        ck_assert_uint_lt(nth, 100);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// ---- the rates ------------------------------------------------------------------------------------------------

static uint64_t ns_of(const cost_rates *r, hr_op op, hr_dtype dtype, uint64_t flops, uint64_t bytes)
{
    const tensor t = {.name = "t", .dtype = dtype};
    const instr i = {.op = op, .in_count = 1, .flops = flops, .bytes_moved = bytes};
    const program p = {.tensors = &t, .instrs = &i, .tensor_count = 1, .instr_count = 1};
    return rates_ns(r, &p, &i);
}

START_TEST(more_work_never_takes_less)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        const cost_rates r = draw_rates(seed);
        for (int op = 0; op < HR_OP_COUNT; op++) {
            uint64_t last = 0;
            for (uint64_t amount = 1; amount < UINT64_C(1) << 40; amount *= 16) {
                const uint64_t ns = ns_of(&r, (hr_op)op, seed % 2 ? HR_F32 : HR_BF16, amount, 1000);
                const uint64_t by_bytes = ns_of(&r, (hr_op)op, seed % 2 ? HR_F32 : HR_BF16, amount, amount);
                ck_assert_uint_ge(ns, last);
                ck_assert_uint_ge(by_bytes, ns < 1 || amount < 1000 ? 0 : ns);
                last = ns;
            }
        }
    }
}
END_TEST

START_TEST(what_was_not_measured_counts_as_what_is_nearest)
{
    cost_rates r;
    memset(&r, 0, sizeof r);
    r.of[COST_ELEMENTWISE][RATE_FLOAT32] = (cost_rate){.start_seconds = 1e-6, .instructions = 1};
    r.of[COST_PRODUCT][RATE_FLOAT32] = (cost_rate){.start_seconds = 5e-6, .instructions = 1};
    ck_assert_uint_eq(ns_of(&r, HR_OP_DENSE, HR_F32, 1, 1), 5000);
    ck_assert_uint_eq(ns_of(&r, HR_OP_DENSE, HR_BF16, 1, 1), 5000);
    ck_assert_uint_eq(ns_of(&r, HR_OP_CONV2D, HR_F32, 1, 1), 1000);
    ck_assert_uint_eq(ns_of(&r, HR_OP_GELU, HR_F16, 1, 1), 1000);
    ck_assert_uint_eq(ns_of(&r, HR_OP_ALLOC, HR_F32, 1, 1), 0);
    ck_assert_uint_eq(ns_of(&r, HR_OP_RESHAPE, HR_F32, 1, 1), 0);
    ck_assert_uint_eq(ns_of(&r, HR_OP_RECORD, HR_F32, 1, 1), 0);
}
END_TEST

// Of the kernel first, then of the operation, then of the family.
START_TEST(what_was_measured_nearest_counts)
{
    const tensor t = {.name = "t", .dtype = HR_F32};
    instr i = {.op = HR_OP_GELU, .in_count = 1, .impl = "own lanes"};
    const program p = {.tensors = &t, .instrs = &i, .tensor_count = 1, .instr_count = 1};
    const rate_kinds kinds = rates_kinds_of(&p, &i);
    static cost_rates r;
    ck_assert_uint_ne(kinds.kernel, kinds.operation);
    r = (cost_rates){.spread = 1, .line_seconds = 1e-7};
    r.of[COST_ELEMENTWISE][RATE_FLOAT32] = (cost_rate){.start_seconds = 1e-6, .instructions = 1};
    ck_assert_uint_eq(rates_ns(&r, &p, &i), 1100);
    r.kinds[r.kind_count++] = (kind_rate){kinds.operation, {.start_seconds = 2e-6}};
    ck_assert_uint_eq(rates_ns(&r, &p, &i), 2100);
    const bool last = kinds.kernel > kinds.operation;
    r.kinds[last ? 1 : 0] = (kind_rate){kinds.kernel, {.start_seconds = 3e-6}};
    r.kinds[last ? 0 : 1] = (kind_rate){kinds.operation, {.start_seconds = 2e-6}};
    r.kind_count = 2;
    ck_assert_uint_eq(rates_ns(&r, &p, &i), 3100);
    i.impl = "another";
    ck_assert_uint_eq(rates_ns(&r, &p, &i), 2100);
    i.op = HR_OP_ALLOC;
    ck_assert_uint_eq(rates_ns(&r, &p, &i), 100);
}
END_TEST

enum { SAMPLES = 60 };

static void draw_samples(rate_sample *samples, const cost_rate *truth, uint64_t *seed, double noise)
{
    for (int k = 0; k < SAMPLES; k++) {
        const double flops = exp(draw(seed, 20)), bytes = exp(draw(seed, 16));
        const double exact =
            truth->start_seconds + flops * truth->seconds_per_flop + bytes * truth->seconds_per_byte;
        samples[k] = (rate_sample){.seconds = exact * (1 + draw(seed, 2 * noise) - noise),
                                   .flops = flops,
                                   .bytes = bytes,
                                   .family = k % 2 ? COST_NORM : COST_COPY};
    }
}

static cost_rate fit(const rate_sample *samples, size_t count, cost_family family, rate_width width)
{
    rate_sample some[SAMPLES];
    size_t picked = 0;
    for (size_t k = 0; k < count; k++) {
        if (samples[k].family == family && samples[k].width == width) {
            some[picked++] = samples[k];
        }
    }
    return rate_fit(some, picked);
}

START_TEST(rates_that_explain_the_samples_are_found_again)
{
    static const cost_rate truths[] = {
        {1e-6, 1e-11, 1e-10, 0}, {0, 1e-11, 0, 0}, {2e-6, 0, 3e-10, 0}, {5e-6, 0, 0, 0}, {0, 0, 1e-10, 0}};
    for (size_t k = 0; k < sizeof truths / sizeof *truths; k++) {
        rate_sample samples[SAMPLES];
        uint64_t seed = k + 1;
        draw_samples(samples, &truths[k], &seed, 0);
        const cost_rate found = fit(samples, SAMPLES, COST_NORM, RATE_FLOAT32);
        ck_assert_uint_eq(found.instructions, SAMPLES / 2);
        ck_assert_double_eq_tol(found.start_seconds, truths[k].start_seconds, 1e-12);
        ck_assert_double_eq_tol(found.seconds_per_flop, truths[k].seconds_per_flop, 1e-17);
        ck_assert_double_eq_tol(found.seconds_per_byte, truths[k].seconds_per_byte, 1e-16);
    }
}
END_TEST

START_TEST(noisy_samples_are_explained_and_nothing_is_negative)
{
    for (uint64_t trial = 1; trial <= 200; trial++) {
        rate_sample samples[SAMPLES];
        uint64_t seed = trial;
        const cost_rate truth = {draw(&seed, 1e-5), draw(&seed, 1e-11), draw(&seed, 1e-10), 0};
        draw_samples(samples, &truth, &seed, 0.5);
        const cost_rate found = fit(samples, SAMPLES, COST_COPY, RATE_FLOAT32);
        double sum = 0, predicted = 0;
        ck_assert(found.start_seconds >= 0 && found.seconds_per_flop >= 0 && found.seconds_per_byte >= 0);
        for (int k = 0; k < SAMPLES; k++) {
            if (samples[k].family == COST_COPY) {
                sum += samples[k].seconds;
                predicted += found.start_seconds + samples[k].flops * found.seconds_per_flop +
                             samples[k].bytes * found.seconds_per_byte;
            }
        }
        ck_assert_double_eq_tol(predicted / sum, 1, 0.5); // each is off by up to half
    }
}
END_TEST

// As often half as twice as long: neither what is short nor what is long has the say.
START_TEST(what_scatters_is_foretold_in_its_middle)
{
    rate_sample samples[SAMPLES];
    const cost_rate truth = {1e-6, 1e-11, 1e-10, 0};
    uint64_t seed = 5;
    double middle = 0;
    draw_samples(samples, &truth, &seed, 0);
    for (int k = 0; k < SAMPLES; k++) {
        samples[k].family = COST_NORM;
        samples[k].seconds *= k % 2 ? 2 : 0.5;
    }
    const cost_rate found = rate_fit(samples, SAMPLES);
    for (int k = 0; k < SAMPLES; k++) {
        const double planned = found.start_seconds + samples[k].flops * found.seconds_per_flop +
                               samples[k].bytes * found.seconds_per_byte;
        middle += log(planned / samples[k].seconds) / SAMPLES;
    }
    ck_assert_double_eq_tol(middle, 0, 0.05);
}
END_TEST

// Of its family others start slowly.
START_TEST(a_kernel_starts_no_later_than_its_fastest_sample_ends)
{
    rate_sample samples[SAMPLES];
    static cost_rates found;
    for (int k = 0; k < SAMPLES; k++) {
        const bool is_quick = k >= SAMPLES / 2;
        const double bytes = is_quick ? 1e4 * k : 100.0 * k;
        samples[k] = (rate_sample){.seconds = (is_quick ? 1e-7 : 1e-5) + bytes * 2e-11,
                                   .bytes = bytes,
                                   .kinds = {.kernel = is_quick ? 2 : 1, .operation = is_quick ? 4 : 3},
                                   .family = COST_EMBEDDING,
                                   .program = (uint64_t)k};
    }
    ck_assert_int_eq(rate_fit_all(samples, SAMPLES, RATE_WITHOUT_NONE, &found, NULL), HR_OK);
    ck_assert_double_lt(found.kinds[1].rate.start_seconds, samples[SAMPLES / 2].seconds);
    ck_assert_double_ge(found.kinds[0].rate.start_seconds, 0.9e-5);
}
END_TEST

// Two large ones lie on a line that begins far above what it costs to start.
START_TEST(a_kernel_of_large_samples_starts_as_its_family_does)
{
    rate_sample samples[SAMPLES];
    static cost_rates found;
    for (int k = 0; k < SAMPLES; k++) {
        const bool is_large = k >= SAMPLES - 4;
        const double flops = is_large ? 1e6 * (1 + k % 2) : 100.0 * k;
        samples[k] = (rate_sample){.seconds = is_large ? (200 + flops * 1e-4) * 1e-6 : 1e-6 + flops * 1e-10,
                                   .flops = flops,
                                   .bytes = 4 * flops,
                                   .kinds = {.kernel = is_large ? 2 : 1, .operation = is_large ? 4 : 3},
                                   .family = COST_ELEMENTWISE,
                                   .program = (uint64_t)k};
    }
    ck_assert_int_eq(rate_fit_all(samples, SAMPLES, RATE_WITHOUT_NONE, &found, NULL), HR_OK);
    ck_assert_uint_eq(found.kind_count, 4);
    ck_assert_double_lt(found.kinds[1].rate.start_seconds, 2e-5);
    ck_assert_uint_eq(found.kinds[1].rate.instructions, 4);
    const cost_rate *large = &found.kinds[1].rate;
    ck_assert_double_eq_tol(large->seconds_per_flop + 4 * large->seconds_per_byte, 2.4e-10, 0.6e-10);
    ck_assert_int_eq(rate_fit_all(samples, SAMPLES, SAMPLES - 1, &found, NULL), HR_OK); // only its kinds
    ck_assert_uint_eq(found.kind_count, 2);
}
END_TEST

START_TEST(no_samples_are_no_rate)
{
    const rate_sample other = {.seconds = 1, .family = COST_NORM};
    const cost_rate none = fit(&other, 1, COST_NORM, RATE_HALF);
    ck_assert_uint_eq(none.instructions, 0);
    ck_assert_double_eq(none.start_seconds + none.seconds_per_flop + none.seconds_per_byte, 0);
    const cost_rate one = fit(&other, 1, COST_NORM, RATE_FLOAT32);
    ck_assert_double_eq_tol(one.start_seconds, 1, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rates");
    TCase *all = tcase_create("promises");
    tcase_add_checked_fixture(all, make_folder, remove_folder);
    tcase_add_test(all, what_is_kept_is_found_under_its_key);
    tcase_add_test(all, usual_cores_are_slower_with_more_to_do_and_faster_with_more_of_them);
    tcase_add_test(all, usual_products_are_faster_with_wide_registers_and_native_types);
    tcase_add_test(all, a_damaged_file_is_as_if_it_were_not_there);
    tcase_add_test(all, numbers_that_no_machine_has_are_refused);
    tcase_add_test(all, a_file_operation_that_fails_leaves_the_old_file);
    tcase_add_test(all, a_request_for_host_memory_that_fails_leaves_the_old_file);
    tcase_add_test(all, more_work_never_takes_less);
    tcase_add_test(all, what_was_not_measured_counts_as_what_is_nearest);
    tcase_add_test(all, what_was_measured_nearest_counts);
    tcase_add_test(all, rates_that_explain_the_samples_are_found_again);
    tcase_add_test(all, noisy_samples_are_explained_and_nothing_is_negative);
    tcase_add_test(all, a_kernel_of_large_samples_starts_as_its_family_does);
    tcase_add_test(all, what_scatters_is_foretold_in_its_middle);
    tcase_add_test(all, a_kernel_starts_no_later_than_its_fastest_sample_ends);
    tcase_add_test(all, no_samples_are_no_rate);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
