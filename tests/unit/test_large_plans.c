// SPDX-License-Identifier: Apache-2.0
// Plans of models with thousands of layers and of updates with thousands of rounds: what they say, and that the work to
// say it does not grow with the rounds, nor with all that could be tried where it does not fit.
#include <inttypes.h>

#include "program/compile.h"
#include "train/engine_impl.h"

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: separable_conv2d, filters: 4, kernel: 3, stride: 2, activation: relu}\n"                   \
    "    - {kind: max_pool, size: 3}\n"                                                                      \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10}\n"
#include "unit/small_engine.h"

// ---- how much is compiled (linked in place of the compiler) -----------------------------------------------------

static uint64_t compiled_instrs;
static unsigned compiled_programs;

hr_status __real_program_compile(const hr_model *model, const hr_knobs *knobs, program_mode mode,
                                 uint32_t batch, const hr_target *target, program **out, hr_err *err);
hr_status __wrap_program_compile(const hr_model *model, const hr_knobs *knobs, program_mode mode,
                                 uint32_t batch, const hr_target *target, program **out, hr_err *err);

hr_status __wrap_program_compile(const hr_model *model, const hr_knobs *knobs, program_mode mode,
                                 uint32_t batch, const hr_target *target, program **out, hr_err *err)
{
    hr_status status = __real_program_compile(model, knobs, mode, batch, target, out, err);
    compiled_programs++;
    compiled_instrs += status == HR_OK ? (*out)->instr_count : 0;
    return status;
}

// ---- rounds -----------------------------------------------------------------------------------------------------

static void hear(void *context, const hr_event *event)
{
    *(uint64_t *)context += event->kind == HR_EVENT_ALLOC;
}

// Two steps of a plan of `rounds` rounds; with `heard`, somebody counts its allocations.
static hr_engine *plan_rounds(const char *const *pairs, unsigned rounds, uint64_t *heard)
{
    char accumulate[64];
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_engine_options options = {
        .plan_only = true, .sink = heard == NULL ? NULL : hear, .sink_context = heard};
    hr_engine *e = NULL;
    hr_err err = {0};
    (void)snprintf(accumulate, sizeof accumulate, "batch.accumulate=%u", rounds);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, accumulate, &err), HR_OK);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_engine_create(preset, &knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    run_steps(e, 2);
    return e;
}

static void compare(const hr_report *a, const hr_report *b, const char *what)
{
    const hr_report_memory *m = &a->memory, *n = &b->memory;
    ck_assert_msg(m->peak_pool_bytes == n->peak_pool_bytes && m->peak_in_use_bytes == n->peak_in_use_bytes &&
                      m->peak_requested_bytes == n->peak_requested_bytes &&
                      m->largest_free_bytes == n->largest_free_bytes && m->heap_hash == n->heap_hash &&
                      m->fragmentation == n->fragmentation,
                  "%s", what);
    ck_assert_msg(memcmp(&a->step.seconds, &b->step.seconds, sizeof a->step.seconds) == 0, "%s: %g %g", what,
                  a->step.seconds, b->step.seconds);
    ck_assert_uint_eq(a->train.updates, b->train.updates);
    ck_assert_int_eq((int)a->oom.cause, (int)b->oom.cause);
    ck_assert_str_eq(a->oom.tensor, b->oom.tensor);
}

static const char *const loops[][4] = {
    {"device.kind=plan"},
    {"device.kind=plan", "execution.mode=graph"},
    {"device.kind=plan", "execution.mode=graph", "allocator.kind=static"},
    {"device.kind=plan", "allocator.growth=on"},
    {"device.kind=plan", "allocator.kind=caching"},
    {"device.kind=plan", "allocator.kind=async"},
    {"device.kind=plan", "allocator.kind=direct", "device.vram=1GiB"},
    {"device.kind=plan", "pipeline.device_prefetch=2"},
    {"device.kind=plan", "offload.activations=on", "execution.mode=graph"},
    {"device.kind=plan", "checkpoint.strategy=sqrt"},
    {"device.kind=plan", "execution.retain=losses"},
    {"device.kind=plan", "precision.policy=mixed_float16"},
    {"device.kind=reference"},
};

START_TEST(rounds_that_nobody_hears_come_to_what_all_of_them_come_to)
{
    uint64_t heard = 0;
    hr_engine *silent = plan_rounds(loops[_i], 37, NULL);
    hr_engine *told = plan_rounds(loops[_i], 37, &heard);
    hr_report a = report_of(silent), b = report_of(told);
    compare(&a, &b, loops[_i][1] == NULL ? loops[_i][0] : loops[_i][1]);
    ck_assert_uint_gt(heard, 37);
    hr_report_deinit(&a);
    hr_report_deinit(&b);
    hr_engine_destroy(silent);
    hr_engine_destroy(told);
}
END_TEST

START_TEST(a_plan_takes_the_same_work_for_many_rounds_as_for_few)
{
    hr_engine *few = plan_rounds(loops[_i], 100, NULL);
    hr_engine *many = plan_rounds(loops[_i], 65536, NULL);
    ck_assert_uint_eq(few->build->heap->counters.allocations, many->build->heap->counters.allocations);
    hr_report a = report_of(few), b = report_of(many);
    ck_assert_uint_eq(a.memory.peak_in_use_bytes, b.memory.peak_in_use_bytes);
    ck_assert(isnan(a.step.seconds) || b.step.seconds > 100 * a.step.seconds);
    hr_report_deinit(&a);
    hr_report_deinit(&b);
    hr_engine_destroy(few);
    hr_engine_destroy(many);
}
END_TEST

// ---- a step that is left ----------------------------------------------------------------------------------------

// Calls off the step in which it is asked for the `at`-th time.
typedef struct caller {
    unsigned asked, at;
    uint32_t done, rounds; // as it heard last
} caller;

static bool goes_on(void *context, uint32_t done, uint32_t rounds)
{
    caller *c = context;
    c->done = done;
    c->rounds = rounds;
    return ++c->asked != c->at;
}

static hr_engine *train_rounds(const char *kind, caller *c, uint64_t steps)
{
    char device[64];
    (void)snprintf(device, sizeof device, "device.kind=%s", kind);
    hr_engine_options options = {.goes_on = goes_on, .goes_on_context = c};
    hr_engine *e =
        create((const char *[]){device, "batch.accumulate=10", "device.vram=1GiB", NULL}, &options);
    run_steps(e, steps);
    ck_assert_uint_eq(hr_engine_steps(e), steps);
    return e;
}

START_TEST(a_step_that_is_left_between_two_rounds_has_never_been)
{
    char whole[HR_SHA256_TEXT_MAX], left[HR_SHA256_TEXT_MAX];
    caller nobody = {0}, somebody = {.at = 9 + 3}; // nine times between the rounds of the first step
    hr_engine *a = train_rounds("reference", &nobody, 2), *b = train_rounds("reference", &somebody, 2);
    weights_of(a, whole);
    weights_of(b, left);
    ck_assert_str_eq(left, whole);
    ck_assert_uint_eq(nobody.asked, 2 * 9);
    ck_assert_uint_eq(somebody.asked, 2 * 9 + 3);
    ck_assert_uint_eq(nobody.done, 9);
    ck_assert_uint_eq(nobody.rounds, 10);
    hr_engine_destroy(a);
    hr_engine_destroy(b);
}
END_TEST

START_TEST(a_step_that_is_left_holds_nothing)
{
    caller somebody = {.at = 3};
    hr_engine_options options = {
        .sink = hear, .sink_context = &(uint64_t){0}, .goes_on = goes_on, .goes_on_context = &somebody};
    hr_engine *e = create(
        (const char *[]){"device.kind=plan", "batch.accumulate=65536", "device.vram=1GiB", NULL}, &options);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
    bool idle = false;
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    while (!idle && somebody.asked < 3) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_uint_eq(hr_engine_steps(e), 0);
    ck_assert_int_eq((int)hr_engine_get_state(e), (int)HR_ENGINE_RUNNING);
    const program *p = e->build->programs[BUILD_TRAIN];
    uint64_t built_bytes = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        built_bytes += p->tensors[k].bytes;
    }
    ck_assert_uint_eq(e->build->heap->counters.requested_bytes, built_bytes);
    run.kind = HR_COMMAND_STOP;
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    hr_engine_destroy(e);
}
END_TEST

// ---- layers -----------------------------------------------------------------------------------------------------

static hr_preset *deep_preset(unsigned layers, const char *vram)
{
    char path[128];
    hr_preset *deep = NULL;
    hr_err err = {0};
    FILE *f = fopen(file_in("deep.yaml", path), "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "device: {kind: plan, vram: %s}\n"
            "batch: {size: 8}\n"
            "model:\n"
            "  input: {shape: [16]}\n"
            "  classes: 10\n"
            "  loss: softmax_cross_entropy\n"
            "  layers:\n"
            "    - repeat: %u\n"
            "      index: i\n"
            "      layers:\n"
            "        - {name: \"d{i}\", kind: dense, units: 16}\n"
            "    - {name: last, kind: dense, units: 10}\n",
            vram, layers);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_msg(hr_preset_open(path, false, &deep, NULL, &err) == HR_OK, "%s", err.sentence);
    return deep;
}

static hr_report plan_deep(unsigned layers, const char *vram)
{
    const hr_engine_options options = {.plan_only = true};
    hr_preset *deep = deep_preset(layers, vram);
    hr_engine *e = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_engine_create(deep, hr_preset_knobs(deep), &options, &e, &err) == HR_OK, "%s",
                  err.sentence);
    compiled_instrs = 0;
    compiled_programs = 0;
    run_steps(e, 1);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    hr_preset_close(deep);
    return r;
}

START_TEST(weights_that_do_not_fit_are_refused_without_trying_what_leaves_them)
{
    hr_report r = plan_deep(2000, "1GiB");
    const unsigned once = compiled_programs;
    ck_assert_int_eq((int)r.oom.cause, (int)HR_OOM_NONE);
    hr_report_deinit(&r);
    r = plan_deep(2000, "2MiB"); // the weights alone take more
    ck_assert_int_eq((int)r.oom.cause, (int)HR_OOM_CAPACITY);
    ck_assert_int_eq(strncmp(r.oom.fixes[0].knobs, "device.vram=", 12), 0);
    ck_assert_uint_eq(compiled_programs, once);
    hr_report_deinit(&r);
}
END_TEST

START_TEST(of_a_very_large_model_only_some_changes_are_tried)
{
    hr_report r = plan_deep(8000, "1GiB");
    const uint64_t once = compiled_instrs;
    hr_report_deinit(&r);
    r = plan_deep(8000, "28MiB"); // weights and optimizer take 25
    ck_assert_int_eq((int)r.oom.cause, (int)HR_OOM_CAPACITY);
    ck_assert_uint_ge(r.oom.fix_count, 1);
    ck_assert_uint_gt(compiled_instrs, once);
    ck_assert_uint_lt(compiled_instrs - once, (1 << 19) + 2 * once);
    hr_report_deinit(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("large_plans");
    TCase *cases = tcase_create("large_plans");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_loop_test(cases, rounds_that_nobody_hears_come_to_what_all_of_them_come_to, 0,
                        (int)(sizeof loops / sizeof *loops));
    tcase_add_loop_test(cases, a_plan_takes_the_same_work_for_many_rounds_as_for_few, 0, 5);
    tcase_add_test(cases, a_step_that_is_left_between_two_rounds_has_never_been);
    tcase_add_test(cases, a_step_that_is_left_holds_nothing);
    tcase_add_test(cases, weights_that_do_not_fit_are_refused_without_trying_what_leaves_them);
    tcase_add_test(cases, of_a_very_large_model_only_some_changes_are_tried);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
