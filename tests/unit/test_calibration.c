// SPDX-License-Identifier: Apache-2.0
// A whole calibration on a machine that is made up: its clock is ours, and each instruction takes what we say. The
// time limit holds whatever the machine does, what was measured in noise is refused, and what is good is said to be.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "device/cost.h"
#include "insight/calibrate.h"
#include "memory/heap.h"

// A machine: instructions take start + flops + bytes, and what disturbs them.
typedef struct machine {
    void *plan; // context of the plan device, which has targets and memory
    const program *loaded;
    uint64_t now_ns, seed, longest_ns;
    double slower;    // than 1e10 FLOP/s and 1e10 bytes/s
    unsigned disturb; // of 16 instructions
    double by;        // so many times as long
    cost_family odd;  // this family takes ten times as long in every other program
    unsigned programs;
} machine;

static uint64_t read_clock(void *context)
{
    return ((const machine *)context)->now_ns;
}

static void made_up_target(void *context, hr_target *out)
{
    device_plan.target(((const machine *)context)->plan, out);
}

static hr_status made_up_memory(void *context, uint64_t bytes, bool numbers, backing *out, hr_err *err)
{
    return device_plan.memory(((const machine *)context)->plan, bytes, numbers, out, err);
}

static hr_status made_up_load(void *context, const program *p, void **kernels, hr_err *err)
{
    machine *m = context;
    (void)err;
    m->loaded = p;
    m->programs++;
    *kernels = m;
    return HR_OK;
}

static void made_up_unload(void *context, void *kernels)
{
    (void)context, (void)kernels;
}

static hr_status made_up_run(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                             hr_err *err)
{
    machine *m = context;
    (void)kernels, (void)address, (void)io, (void)err;
    const instr *i = &m->loaded->instrs[at];
    double ns = (1000 + (double)i->flops * 0.1 + (double)i->bytes_moved * 0.1) * m->slower;
    ns *= next_random(&m->seed) % 16 < m->disturb ? m->by : 1;
    ns *= cost_family_of(i) == m->odd && m->odd != COST_NOTHING && m->programs % 2 == 0 ? 10 : 1;
    m->longest_ns = (uint64_t)ns > m->longest_ns ? (uint64_t)ns : m->longest_ns;
    m->now_ns += (uint64_t)ns;
    return HR_OK;
}

static hr_status made_up_copy(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)address, (void)host, (void)bytes, (void)err;
    return HR_OK;
}

static const device_ops made_up = {.name = "made up",
                                   .target = made_up_target,
                                   .memory = made_up_memory,
                                   .load = made_up_load,
                                   .unload = made_up_unload,
                                   .run = made_up_run,
                                   .copy_in = made_up_copy};

static hr_calibration result;
static cost_rates rates;

static void calibrate_once(machine *m, double seconds)
{
    calibration_time time = {.now_ns = read_clock, .context = m};
    const device_options options = {.threads = 1};
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    m->now_ns = 12345;
    m->slower = m->slower == 0 ? 1 : m->slower;
    ck_assert_int_eq(device_plan.open(&options, &m->plan, NULL), HR_OK);
    ck_assert_int_eq(calibrate_on(&made_up, m, &knobs, &time, seconds, &rates, &result, NULL), HR_OK);
    device_plan.close(m->plan);
}

static void calibrate(machine *m, double seconds)
{
    static bool is_warm; // names of implementations are kept for good
    if (!is_warm) {
        calibrate_once(&(machine){.seed = 9}, 60);
        is_warm = true;
    }
    const int64_t live = hr_host_mem_live();
    calibrate_once(m, seconds);
    ck_assert_int_eq(hr_host_mem_live(), live);
}

START_TEST(an_idle_machine_is_believed_and_each_model_says_how_well)
{
    calibrate(&(machine){.seed = 1}, 60);
    ck_assert_str_eq(result.refusal, "");
    ck_assert_uint_eq(result.model_count, CALIBRATION_PROGRAMS);
    ck_assert_double_eq_tol(result.noise, 0, 1e-6);
    for (size_t k = 0; k < result.model_count; k++) {
        const hr_calibration_model *m = &result.models[k];
        ck_assert_msg(fabs(m->planned_seconds / m->measured_seconds - 1) < 0.01, "%s %u: %g of %g", m->name,
                      m->batch, m->planned_seconds, m->measured_seconds);
        ck_assert_uint_ge(m->steps, CALIBRATION_STEPS_LEAST);
    }
    ck_assert_uint_gt(result.row_count, 20);
    ck_assert_double_eq_tol(rates.of[COST_PRODUCT][RATE_FLOAT32].seconds_per_flop, 1e-10, 1e-12);
}
END_TEST

// Spikes in few instructions do not move a median.
START_TEST(a_little_noise_is_measured_and_borne)
{
    calibrate(&(machine){.seed = 2, .disturb = 1, .by = 10}, 3000);
    ck_assert_str_eq(result.refusal, "");
    ck_assert_double_lt(result.noise, CALIBRATION_NOISE_MOST);
    calibrate(&(machine){.seed = 2, .disturb = 10, .by = 1.1}, 600);
    ck_assert_str_eq(result.refusal, "");
    ck_assert_double_gt(result.noise, 0.05);
}
END_TEST

START_TEST(a_busy_machine_is_refused_with_its_noise)
{
    calibrate(&(machine){.seed = 3, .disturb = 9, .by = 20}, 600);
    ck_assert_uint_eq(result.model_count, CALIBRATION_PROGRAMS);
    ck_assert_double_gt(result.noise, 1);
    ck_assert_msg(strstr(result.refusal, "longer than their fastest time, 25 % are allowed") != NULL, "%s",
                  result.refusal);
}
END_TEST

START_TEST(rates_that_do_not_explain_the_models_are_refused)
{
    calibrate(&(machine){.seed = 4, .odd = COST_PRODUCT}, 600);
    ck_assert_double_lt(result.noise, CALIBRATION_NOISE_MOST);
    ck_assert_msg(strncmp(result.refusal, "the rates say ", 14) == 0, "%s", result.refusal);
    ck_assert_ptr_nonnull(strstr(result.refusal, "measure again"));
}
END_TEST

// However slow the machine is: no instruction begins after the time.
START_TEST(the_time_limit_holds)
{
    static const double seconds[] = {0.001, 0.3, 1, 8};
    for (double slower = 0.01; slower < 1e6; slower *= 10) {
        for (size_t k = 0; k < sizeof seconds / sizeof *seconds; k++) {
            machine m = {.seed = 5, .slower = slower, .disturb = 4, .by = 3};
            calibrate(&m, seconds[k]);
            ck_assert_double_le(result.seconds, seconds[k] + (double)m.longest_ns * 1e-9);
            if (result.model_count < CALIBRATION_PROGRAMS) {
                ck_assert_msg(strstr(result.refusal, "with --seconds") != NULL, "%s", result.refusal);
            }
        }
    }
}
END_TEST

START_TEST(a_slow_machine_has_smaller_batches_rather_than_no_time)
{
    calibrate(&(machine){.seed = 6}, 60);
    uint32_t large = 0, small = 0;
    for (size_t k = 0; k < result.model_count; k++) {
        large += result.models[k].batch;
    }
    calibrate(&(machine){.seed = 6}, 20);
    ck_assert_str_eq(result.refusal, "");
    for (size_t k = 0; k < result.model_count; k++) {
        small += result.models[k].batch;
    }
    ck_assert_uint_lt(small, large);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibration");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, an_idle_machine_is_believed_and_each_model_says_how_well);
    tcase_add_test(all, a_little_noise_is_measured_and_borne);
    tcase_add_test(all, a_busy_machine_is_refused_with_its_noise);
    tcase_add_test(all, rates_that_do_not_explain_the_models_are_refused);
    tcase_add_test(all, the_time_limit_holds);
    tcase_add_test(all, a_slow_machine_has_smaller_batches_rather_than_no_time);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
