// SPDX-License-Identifier: Apache-2.0
// A whole calibration on a machine that is made up: its clock is ours, and each instruction takes what we say. The
// time limit holds whatever the machine does, what was measured in noise is refused, and what is good is said to be.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "device/cost.h"
#include "insight/calibrate.h"
#include "insight/calibrate_part.h"
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
static const char *part, *rates_file; // NULL: none
static uint64_t part_key;

static void calibrate_once(machine *m, double seconds)
{
    calibration_time time = {.now_ns = read_clock, .context = m};
    const device_options options = {.threads = 1};
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    m->now_ns = 12345;
    m->slower = m->slower == 0 ? 1 : m->slower;
    ck_assert_int_eq(device_plan.open(&options, &m->plan, NULL), HR_OK);
    const calibration_task task = {.device = &made_up,
                                   .context = m,
                                   .knobs = &knobs,
                                   .time = &time,
                                   .seconds = seconds,
                                   .part = part,
                                   .rates = rates_file,
                                   .key = part_key};
    ck_assert_int_eq(calibrate_on(&task, &rates, &result, NULL), HR_OK);
    device_plan.close(m->plan);
}

// Names of implementations are kept for good.
static void warm_up(void)
{
    calibrate_once(&(machine){.seed = 9}, 300);
}

static void calibrate(machine *m, double seconds)
{
    const int64_t live = hr_host_mem_live();
    calibrate_once(m, seconds);
    ck_assert_int_eq(hr_host_mem_live(), live);
}

START_TEST(an_idle_machine_is_believed_and_each_model_says_how_well)
{
    calibrate(&(machine){.seed = 1}, 100);
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

// Spikes in few instructions do not move a quartile.
START_TEST(a_little_noise_is_measured_and_borne)
{
    calibrate(&(machine){.seed = 2, .disturb = 1, .by = 10}, 3000);
    ck_assert_str_eq(result.refusal, "");
    ck_assert_double_lt(result.noise, CALIBRATION_NOISE_MOST);
    calibrate(&(machine){.seed = 2, .disturb = 15, .by = 1.1}, 600);
    ck_assert_str_eq(result.refusal, "");
    ck_assert_double_gt(result.noise, 0.05);
}
END_TEST

START_TEST(a_busy_machine_is_refused_with_its_noise)
{
    calibrate(&(machine){.seed = 3, .disturb = 14, .by = 20}, 4000);
    ck_assert_uint_eq(result.model_count, CALIBRATION_PROGRAMS);
    ck_assert_double_gt(result.noise, CALIBRATION_NOISE_MOST);
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

#if HEADROOM_SANITIZED
enum { TIMES_SLOWER = 100000 };
#else
enum { TIMES_SLOWER = 100 };
#endif

// However slow the machine is: no instruction begins after the time.
START_TEST(the_time_limit_holds)
{
    static const double seconds[] = {0.001, 8};
    for (double slower = 0.01; slower < 1e6; slower *= TIMES_SLOWER) {
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
    calibrate(&(machine){.seed = 6}, 200);
    uint32_t large = 0, small = 0;
    for (size_t k = 0; k < result.model_count; k++) {
        large += result.models[k].batch;
    }
    calibrate(&(machine){.seed = 6}, 50);
    ck_assert_str_eq(result.refusal, "");
    for (size_t k = 0; k < result.model_count; k++) {
        small += result.models[k].batch;
    }
    ck_assert_uint_lt(small, large);
}
END_TEST

// ---- what is cut short ----------------------------------------------------------------------------------------

static char folder[64], part_path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/headroom-part-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(part_path, sizeof part_path, "%s/headroom/calibration.part", folder);
    part = part_path;
    part_key = 7;
}

static void remove_folder(void)
{
    char command[160];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    part = NULL;
}

START_TEST(what_was_cut_short_goes_on_and_ends_as_if_it_had_not_been)
{
    static hr_calibration whole;
    calibrate(&(machine){.seed = 1}, 200);
    ck_assert_uint_eq(result.model_count, CALIBRATION_PROGRAMS);
    ck_assert_int_ne(access(part, F_OK), 0); // nothing is left of one that ended
    whole = result;
    size_t before = 0;
    for (int turn = 0; before < CALIBRATION_PROGRAMS; turn++) {
        calibrate(&(machine){.seed = 1}, 25);
        ck_assert_uint_eq(result.resumed_count, before);
        ck_assert_uint_gt(result.model_count, before);
        before = result.model_count;
        ck_assert_int_eq(result.goes_on, before < CALIBRATION_PROGRAMS);
        ck_assert_int_eq(result.goes_on, strstr(result.refusal, "goes on from there") != NULL);
        ck_assert_int_eq(result.goes_on, access(part, F_OK) == 0);
        ck_assert_int_lt(turn, CALIBRATION_PROGRAMS);
    }
    ck_assert_str_eq(result.refusal, "");
    ck_assert_uint_eq(result.row_count, whole.row_count);
    for (size_t k = 0; k < whole.row_count; k++) {
        ck_assert_double_eq_tol(result.rows[k].start_seconds, whole.rows[k].start_seconds, 1e-8);
    }
}
END_TEST

START_TEST(what_was_measured_stays_where_its_rates_could_not_be_kept)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/headroom/calibration", folder);
    rates_file = "/dev/null/calibration";
    calibrate(&(machine){.seed = 1}, 200);
    ck_assert_str_eq(result.refusal, "");
    ck_assert(!result.kept);
    ck_assert_int_eq(access(part, F_OK), 0);
    rates_file = path;
    calibrate(&(machine){.seed = 1}, 200);
    ck_assert_uint_eq(result.resumed_count, CALIBRATION_PROGRAMS);
    ck_assert(result.kept);
    ck_assert_int_ne(access(part, F_OK), 0);
    calibrate(&(machine){.seed = 3, .disturb = 14, .by = 20}, 4000);
    ck_assert_str_ne(result.refusal, "");
    ck_assert(!result.kept);
    ck_assert_int_ne(access(part, F_OK), 0);
    rates_file = NULL;
}
END_TEST

// Measures few programs, and leaves their part, of which *bytes are given.
static char *leave_part(size_t *bytes)
{
    char *data = NULL;
    calibrate(&(machine){.seed = 1}, 4);
    ck_assert(result.goes_on);
    ck_assert_int_eq(file_read(part, 1 << 24, &data, bytes, NULL), HR_OK);
    return data;
}

static void write_part(const char *data, size_t bytes)
{
    FILE *f = fopen(part, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

static size_t resumed(void)
{
    static calibration_part found;
    calibration_part_load(part, part_key, &found);
    const size_t done = found.done;
    calibration_part_deinit(&found);
    return done;
}

START_TEST(a_part_that_is_wrong_is_as_if_it_were_not_there)
{
    size_t bytes = 0;
    uint64_t seed = 3;
    char *data = leave_part(&bytes);
    const size_t done = result.model_count;
    ck_assert_uint_eq(resumed(), done);
    part_key = 8; // another library, ISA or number of threads
    ck_assert_uint_eq(resumed(), 0);
    part_key = 7;
    const int64_t live = hr_host_mem_live();
    for (int trial = 0; trial < 300; trial++) {
        const size_t at = trial < 100 ? (size_t)trial % 72 : next_random(&seed) % bytes;
        const char bit = (char)(1 << next_random(&seed) % 8);
        data[at] = (char)(data[at] ^ bit);
        write_part(data, bytes);
        ck_assert_msg(resumed() == 0, "byte %zu", at);
        data[at] = (char)(data[at] ^ bit);
        write_part(data, next_random(&seed) % bytes);
        ck_assert_uint_eq(resumed(), 0);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
    calibrate(&(machine){.seed = 1}, 4); // over what is damaged
    ck_assert_uint_eq(result.resumed_count, 0);
    ck_assert_uint_eq(resumed(), result.model_count);
    hr_free(data);
}
END_TEST

START_TEST(a_request_for_host_memory_that_fails_leaves_the_part_whole)
{
    size_t bytes = 0, done = 0;
    char *data = leave_part(&bytes);
    hr_free(data);
    const size_t before = result.model_count;
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1; done != before; nth++) {
        (void)hr_host_mem_fail_at(nth);
        done = resumed();
        (void)hr_host_mem_fail_at(0);
        ck_assert(done == 0 || done == before);
        ck_assert_int_eq(hr_host_mem_live(), live);
        ck_assert_uint_lt(nth, 1000);
    }
}
END_TEST

START_TEST(only_one_measures_at_a_time)
{
    char lock[96];
    int first = -1, second = -1;
    hr_err err = {0};
    (void)snprintf(lock, sizeof lock, "%s/headroom/calibration.lock", folder);
    ck_assert_int_eq(calibration_lock(lock, &first, &err), HR_OK);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(calibration_lock(lock, &second, &err), HR_STATE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "another calibration"));
    calibration_unlock(first);
    ck_assert_int_eq(calibration_lock(lock, &second, &err), HR_OK);
    calibration_unlock(second);
    ck_assert_int_eq(calibration_lock("/proc/none/calibration.lock", &first, &err),
                     HR_OK); // nobody is kept out
    ck_assert_int_eq(first, -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibration");
    TCase *all = tcase_create("promises");
    tcase_add_unchecked_fixture(all, warm_up, NULL);
    tcase_add_test(all, an_idle_machine_is_believed_and_each_model_says_how_well);
    tcase_add_test(all, a_little_noise_is_measured_and_borne);
    tcase_add_test(all, a_busy_machine_is_refused_with_its_noise);
    tcase_add_test(all, rates_that_do_not_explain_the_models_are_refused);
    tcase_add_test(all, the_time_limit_holds);
    tcase_add_test(all, a_slow_machine_has_smaller_batches_rather_than_no_time);
    suite_add_tcase(suite, all);
    TCase *parts = tcase_create("what is cut short");
    tcase_add_unchecked_fixture(parts, warm_up, NULL);
    tcase_add_checked_fixture(parts, make_folder, remove_folder);
    tcase_add_test(parts, what_was_cut_short_goes_on_and_ends_as_if_it_had_not_been);
    tcase_add_test(parts, what_was_measured_stays_where_its_rates_could_not_be_kept);
    tcase_add_test(parts, a_part_that_is_wrong_is_as_if_it_were_not_there);
    tcase_add_test(parts, a_request_for_host_memory_that_fails_leaves_the_part_whole);
    tcase_add_test(parts, only_one_measures_at_a_time);
    suite_add_tcase(suite, parts);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
