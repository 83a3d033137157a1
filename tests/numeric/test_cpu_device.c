// SPDX-License-Identifier: Apache-2.0
// What the cpu device promises beside its numbers: nothing is allocated while it runs, the same bits from the
// same threads, workspace limits are kept, denormal numbers are zero on every worker, memory that the machine
// does not have is refused, and a load that fails leaves nothing behind.
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/half.h"
#include "base/host_mem.h"
#include "device/executor.h"
#include "model/model.h"
#include "numeric/op_cases.h"
#include "program/compile.h"

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0};                                                                                   \
        hr_err *const err = &err_;                                                                           \
        if ((call) != HR_OK) {                                                                               \
            ck_abort_msg("%s", err_.sentence);                                                               \
        }                                                                                                    \
    } while (0)

// ---- every byte that anybody takes ------------------------------------------------------------------------

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHES_MALLOC 0
#else
#define WATCHES_MALLOC 1
#endif

static _Atomic uint64_t taken_bytes;

#if WATCHES_MALLOC
// glibc's own names of its allocator, for whoever stands in front of it.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    taken_bytes += bytes;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    taken_bytes += count * bytes;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    taken_bytes += bytes;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    taken_bytes += bytes;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    taken_bytes += bytes;
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? ENOMEM : 0;
}
#endif

// ---- a preset's training program on the cpu device --------------------------------------------------------

enum { ALLOWED_BYTES = 4096, STEPS = 3, MAX_PERSISTENT_BYTES = 64 << 20 };

typedef struct rig {
    hr_preset *preset;
    hr_knobs knobs;
    hr_model *model;
    void *context;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
    float *images;
    int32_t *labels;
} rig;

// The executor's device: the cpu device, with a look at what each instruction takes.
static struct {
    const program *p;
    uint64_t most_bytes;
    char most_name[128];
} watch;

static hr_status watched_run(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                             hr_err *err)
{
    const uint64_t before = taken_bytes;
    const hr_status status = device_cpu.run(context, kernels, at, address, io, err);
    const uint64_t taken = taken_bytes - before;
    if (taken > watch.most_bytes) {
        watch.most_bytes = taken;
        (void)program_instr_name(watch.p, &watch.p->instrs[at], watch.most_name, sizeof watch.most_name);
    }
    return status;
}

static device_ops watched_device(void)
{
    device_ops ops = device_cpu;
    ops.run = watched_run;
    return ops;
}

static void rig_compile(rig *r, const char *preset, const char *const *pairs)
{
    REQUIRE_OK(hr_preset_open(preset, false, &r->preset, NULL, err));
    r->knobs = *hr_preset_knobs(r->preset);
    for (; *pairs != NULL; pairs++) {
        REQUIRE_OK(hr_knobs_set_pair(&r->knobs, *pairs, err));
    }
    REQUIRE_OK(hr_knobs_validate(&r->knobs, err));
    REQUIRE_OK(model_create(r->preset, &r->knobs, &r->model, NULL, err));
    const device_options options = {.threads = (uint32_t)hr_knob_int(&r->knobs, HR_KNOB_THREADS_COUNT)};
    REQUIRE_OK(device_cpu.open(&options, &r->context, err));
    hr_target target;
    device_cpu.target(r->context, &target);
    const uint32_t batch = (uint32_t)hr_knob_int(&r->knobs, HR_KNOB_BATCH_SIZE);
    REQUIRE_OK(program_compile(r->model, &r->knobs, PROGRAM_TRAIN, batch, &target, &r->p, err));
}

static void rig_initialise(const rig *r)
{
    for (uint32_t k = 0; k < r->p->persistent_count; k++) {
        const tensor *t = &r->p->tensors[k];
        float *values = calloc(1, t->bytes);
        ck_assert_ptr_nonnull(values);
        if (t->param != HR_NO_ID && t->category != HR_CATEGORY_OPTIMIZER &&
            t->category != HR_CATEGORY_INPUT) {
            model_init_param(r->model, t->param, 1, values);
        }
        REQUIRE_OK(device_cpu.copy_in(r->context, executor_address(r->x, t->name), values, t->bytes, err));
        free(values);
    }
}

// The host's images have the type of the tensor that INPUT writes.
static void rig_narrow_images(rig *r, uint64_t count)
{
    hr_dtype dtype = HR_F32;
    for (uint32_t n = 0; n < r->p->instr_count; n++) {
        const instr *i = &r->p->instrs[n];
        dtype = i->op == HR_OP_INPUT && i->attr.slot == 0 ? r->p->tensors[i->out[0]].dtype : dtype;
    }
    uint16_t *halves = (uint16_t *)(void *)r->images;
    for (uint64_t i = 0; dtype != HR_F32 && i < count; i++) {
        halves[i] = dtype == HR_F16 ? f16_of_float(r->images[i]) : bf16_of_float(r->images[i]);
    }
}

static void rig_batch(rig *r)
{
    uint64_t pixels = 0, state = 1;
    ck_assert(shape_elements(&r->model->values[r->model->slots[0].value].shape, &pixels));
    r->images = calloc(pixels * r->p->batch, sizeof *r->images);
    r->labels = calloc(r->p->batch, sizeof *r->labels);
    ck_assert(r->images != NULL && r->labels != NULL);
    for (uint64_t i = 0; i < pixels * r->p->batch; i++) {
        r->images[i] = (float)op_random(&state, -1.0, 1.0);
    }
    rig_narrow_images(r, pixels * r->p->batch);
    for (uint32_t n = 0; n < r->p->batch; n++) {
        r->labels[n] = (int32_t)(n % r->model->slots[1].classes);
    }
}

// In place: the heap keeps the address of the backing.
static void rig_open(rig *r, const char *preset, const char *const *pairs, const device_ops *ops)
{
    *r = (rig){0};
    const allocator_config config = {.kind = "bfc", .limit_bytes = HR_GIB, .growth = true};
    rig_compile(r, preset, pairs);
    REQUIRE_OK(device_cpu.memory(r->context, HR_GIB, false, &r->source, err));
    REQUIRE_OK(allocator_create(&config, &r->source, NULL, &r->heap, err));
    REQUIRE_OK(executor_create(ops, r->context, r->heap, NULL, &r->x, err));
    REQUIRE_OK(executor_build(r->x, r->p, err));
    rig_initialise(r);
    REQUIRE_OK(executor_attach(r->x, r->p, &r->slot, err));
    rig_batch(r);
}

static double rig_steps(const rig *r)
{
    double loss = 0.0;
    for (uint64_t n = 1; n <= STEPS; n++) {
        step_io io = {.slot = {r->images, r->labels}, .learning_rate = 0.01, .update = n};
        REQUIRE_OK(executor_step(r->x, r->slot, &io, err));
        loss = io.loss;
    }
    return loss;
}

static void rig_close(rig *r)
{
    executor_destroy(r->x);
    allocator_destroy(r->heap);
    backing_close(&r->source);
    program_destroy(r->p);
    device_cpu.close(r->context);
    model_destroy(r->model);
    hr_preset_close(r->preset);
    free(r->images);
    free(r->labels);
}

// Every shape of work there is: products, depthwise and direct convolutions, Winograd.
static const struct {
    const char *preset;
    const char *pairs[6];
} runs[] = {
    {"presets/models/cifar10_separable_cnn.yaml",
     {"batch.size=16", "execution.mode=eager", "threads.count=2"}},
    {"presets/models/cifar10_separable_cnn.yaml",
     {"batch.size=5", "execution.mode=graph", "threads.count=1"}},
    {"presets/models/resnet18_cifar.yaml", {"batch.size=2", "threads.count=2"}},
    {"presets/models/cifar10_separable_cnn.yaml",
     {"batch.size=16", "precision.policy=mixed_bfloat16", "threads.count=2"}},
    {"presets/models/cifar10_separable_cnn.yaml",
     {"batch.size=5", "precision.policy=mixed_float16", "precision.loss_scale=1024", "threads.count=2"}},
    {"presets/models/resnet18_cifar.yaml",
     {"batch.size=2", "precision.policy=mixed_bfloat16", "execution.mode=graph", "threads.count=1"}},
};

enum { RUNS = sizeof runs / sizeof runs[0] };

START_TEST(nothing_is_allocated_while_it_runs)
{
    const device_ops ops = watched_device();
    rig r;
    rig_open(&r, runs[_i].preset, runs[_i].pairs, &ops);
    memset(&watch, 0, sizeof watch);
    watch.p = r.p;
    ck_assert(rig_steps(&r) > 0.0);
    ck_assert_msg(watch.most_bytes <= ALLOWED_BYTES, "%s took %llu bytes while it ran", watch.most_name,
                  (unsigned long long)watch.most_bytes);
    rig_close(&r);
}
END_TEST

// All weights, statistics and slots after the steps, one behind the other.
static uint64_t rig_state(const rig *r, char *state)
{
    uint64_t used = 0;
    for (uint32_t k = 0; k < r->p->persistent_count; k++) {
        const tensor *t = &r->p->tensors[k];
        ck_assert_uint_le(used + t->bytes, (uint64_t)MAX_PERSISTENT_BYTES * 4);
        REQUIRE_OK(
            device_cpu.copy_out(r->context, executor_address(r->x, t->name), state + used, t->bytes, err));
        used += t->bytes;
    }
    return used;
}

START_TEST(same_threads_give_the_same_bits)
{
    char *state[2];
    uint64_t bytes[2];
    double loss[2];
    for (int k = 0; k < 2; k++) {
        rig r;
        rig_open(&r, runs[_i].preset, runs[_i].pairs, &device_cpu);
        loss[k] = rig_steps(&r);
        state[k] = malloc((size_t)MAX_PERSISTENT_BYTES * 4);
        ck_assert_ptr_nonnull(state[k]);
        bytes[k] = rig_state(&r, state[k]);
        rig_close(&r);
    }
    ck_assert(memcmp(&loss[0], &loss[1], sizeof loss[0]) == 0);
    ck_assert_uint_eq(bytes[0], bytes[1]);
    ck_assert(memcmp(state[0], state[1], bytes[0]) == 0);
    free(state[0]);
    free(state[1]);
}
END_TEST

// ---- the target -------------------------------------------------------------------------------------------

static uint64_t temporary_bytes(const target_answer *a)
{
    uint64_t bytes = a->workspace_bytes;
    for (uint32_t k = 0; k < a->reorder_count; k++) {
        bytes += a->reorder[k].bytes;
    }
    return bytes;
}

// Below what the chosen kernel takes another one is chosen, or the refusal names a limit that does.
static void check_below(const hr_target *target, const op_query *q, unsigned *smaller, unsigned *refused)
{
    target_answer large = {0}, small = {0};
    hr_err refusal = {0};
    uint64_t limit_bytes = 0;
    REQUIRE_OK(target->ask(target->context, q, UINT64_MAX, &large, err));
    if (temporary_bytes(&large) == 0) {
        return;
    }
    if (target->ask(target->context, q, temporary_bytes(&large) - 1, &small, &refusal) == HR_OK) {
        ck_assert_uint_lt(temporary_bytes(&small), temporary_bytes(&large));
        ++*smaller;
        return;
    }
    static const char before[] = "-s workspace.limit=";
    ck_assert_msg(strncmp(refusal.hint, before, sizeof before - 1) == 0, "%s", refusal.hint);
    ck_assert(hr_bytes_parse(refusal.hint + sizeof before - 1, &limit_bytes));
    REQUIRE_OK(target->ask(target->context, q, limit_bytes, &small, err));
    ck_assert_uint_le(temporary_bytes(&small), limit_bytes);
    ++*refused;
}

START_TEST(below_a_workspace_limit_stands_a_smaller_kernel_or_what_would_do)
{
    static const hr_op ops[] = {HR_OP_CONV2D, HR_OP_DENSE, HR_OP_BATCH_NORM, HR_OP_CONV2D_TRANSPOSE};
    op_device device = op_device_open(&device_cpu, 2);
    hr_target target;
    unsigned smaller = 0, refused = 0;
    device.ops->target(device.context, &target);
    for (uint64_t seed = 0; seed < 120; seed++) {
        const hr_op op = ops[seed % (sizeof ops / sizeof ops[0])];
        op_trial made = seed % 3 == 0 ? op_case_wide(op, seed, 20) : op_case(op, seed, 20);
        op_trial t = op_trial_copy(&made, HR_F32);
        check_below(&target, &t.query, &smaller, &refused);
        op_trial_deinit(&made);
        op_trial_deinit(&t);
    }
    ck_assert_uint_gt(refused, 0);
    op_device_close(&device);
}
END_TEST

START_TEST(a_workspace_that_is_too_small_is_refused_with_what_would_do)
{
    op_device device = op_device_open(&device_cpu, 2);
    op_trial t = op_trial_make(HR_OP_DENSE, (op_attr){0});
    op_trial_add_in(&t, HR_F32, DIMS(64, 512));
    op_trial_add_in(&t, HR_F32, DIMS(512, 512));
    op_trial_infer_out(&t, 1);
    hr_target target;
    target_answer answer;
    hr_err refusal = {0};
    device.ops->target(device.context, &target);
    REQUIRE_OK(target.ask(target.context, &t.query, UINT64_MAX, &answer, err));
    ck_assert_int_eq(target.ask(target.context, &t.query, 1, &answer, &refusal), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(refusal.sentence, "workspace.limit is 1 B"));
    ck_assert_ptr_nonnull(strstr(refusal.hint, "-s workspace.limit="));
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(answers_are_for_one_number_of_threads)
{
    op_device one = op_device_open(&device_cpu, 1);
    hr_target target[2];
    one.ops->target(one.context, &target[0]);
    const uint64_t key = target[0].key;
    op_device_close(&one);
    op_device two = op_device_open(&device_cpu, 2);
    two.ops->target(two.context, &target[1]);
    ck_assert_uint_ne(key, target[1].key);
    op_device_close(&two);
}
END_TEST

START_TEST(float64_is_sent_to_the_judge)
{
    op_device device = op_device_open(&device_cpu, 1);
    op_trial t = op_case(HR_OP_RELU, 1, 3);
    hr_target target;
    target_answer answer;
    hr_err refusal = {0};
    device.ops->target(device.context, &target);
    ck_assert_int_eq(target.ask(target.context, &t.query, UINT64_MAX, &answer, &refusal), HR_DEVICE);
    ck_assert_str_eq(refusal.sentence, "relu: the cpu device computes in float32, the tensor is float64");
    ck_assert_str_eq(refusal.hint, "-s device.kind=reference");
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

// ---- numbers ----------------------------------------------------------------------------------------------

START_TEST(denormal_numbers_are_zero_on_every_worker)
{
    op_device device = op_device_open(&device_cpu, 2);
    const int64_t count = 1 << 17; // enough for every worker to have a share
    op_trial t = op_trial_make(HR_OP_ADD, (op_attr){0});
    op_trial_add_in(&t, HR_F32, DIMS(1, count));
    op_trial_add_in(&t, HR_F32, DIMS(1, count));
    op_trial_infer_out(&t, 1);
    for (int64_t i = 0; i < count; i++) {
        t.in[0][i] = 1.5e-38; // their difference is below the smallest normal number
        t.in[1][i] = -1.2e-38;
    }
    op_trial_run(&t, device, NULL);
    for (int64_t i = 0; i < count; i++) {
        if (t.out[0][i] != 0.0) {
            ck_abort_msg("element %lld is %g", (long long)i, t.out[0][i]);
        }
    }
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(not_a_number_is_not_hidden_by_an_activation)
{
    op_device device = op_device_open(&device_cpu, 1);
    op_trial t = op_trial_make(HR_OP_DENSE, (op_attr){.act = HR_ACT_RELU});
    op_trial_add_in(&t, HR_F32, DIMS(3, 20));
    op_trial_add_in(&t, HR_F32, DIMS(20, 17));
    op_trial_infer_out(&t, 1);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 0); i++) {
        t.in[0][i] = i == 25 ? (double)NAN : 1.0; // in the second row
    }
    op_trial_run(&t, device, NULL);
    for (uint64_t i = 0; i < op_trial_out_count(&t, 0); i++) {
        ck_assert_msg((t.out[0][i] != t.out[0][i]) == (i / 17 == 1), "element %u", (unsigned)i);
    }
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

// ---- memory -----------------------------------------------------------------------------------------------

START_TEST(memory_that_the_machine_does_not_have_is_refused)
{
    op_device device = op_device_open(&device_cpu, 1);
    backing b;
    hr_err refusal = {0};
    ck_assert_int_eq(device.ops->admit(device.context, UINT64_C(1) << 46, 0, &refusal), HR_HOST_LIMIT);
    REQUIRE_OK(device.ops->admit(device.context, HR_MIB, UINT64_C(1) << 46, err));
    ck_assert_ptr_nonnull(strstr(refusal.sentence, "80 %"));
    REQUIRE_OK(device.ops->memory(device.context, UINT64_C(1) << 46, true, &b, err));
    const uint64_t granularity = b.granularity_bytes, alignment = b.alignment_bytes;
    backing_close(&b);
    REQUIRE_OK(device.ops->memory(device.context, HR_MIB, false, &b, err));
    ck_assert_uint_eq(granularity, b.granularity_bytes);
    ck_assert_uint_eq(alignment, b.alignment_bytes);
    backing_close(&b);
    op_device_close(&device);
}
END_TEST

START_TEST(a_load_that_fails_leaves_nothing_behind)
{
    rig r = {0};
    rig_compile(&r, runs[_i].preset, runs[_i].pairs);
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1;; nth++) {
        void *kernels = NULL;
        hr_err failure = {0};
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = device_cpu.load(r.context, r.p, &kernels, &failure);
        (void)hr_host_mem_fail_at(0);
        if (status == HR_OK) {
            ck_assert_uint_gt(nth, 2);
            device_cpu.unload(r.context, kernels);
            break;
        }
        ck_assert_int_eq(status, HR_NOMEM);
        ck_assert_ptr_null(kernels);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
    program_destroy(r.p);
    device_cpu.close(r.context);
    model_destroy(r.model);
    hr_preset_close(r.preset);
}
END_TEST

START_TEST(a_device_that_does_not_open_leaves_nothing_behind)
{
    const int64_t live = hr_host_mem_live();
    const device_options options = {.threads = 1};
    for (uint64_t nth = 1;; nth++) {
        void *context = NULL;
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = device_cpu.open(&options, &context, NULL);
        (void)hr_host_mem_fail_at(0);
        if (status == HR_OK) {
            device_cpu.close(context);
            break;
        }
        ck_assert_int_eq(status, HR_NOMEM);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_device");
    TCase *all = tcase_create("promises");
    tcase_set_timeout(all, 60);
    if (WATCHES_MALLOC) {
        tcase_add_loop_test(all, nothing_is_allocated_while_it_runs, 0, RUNS);
    }
    tcase_add_loop_test(all, same_threads_give_the_same_bits, 0, RUNS);
    tcase_add_test(all, below_a_workspace_limit_stands_a_smaller_kernel_or_what_would_do);
    tcase_add_test(all, a_workspace_that_is_too_small_is_refused_with_what_would_do);
    tcase_add_test(all, answers_are_for_one_number_of_threads);
    tcase_add_test(all, float64_is_sent_to_the_judge);
    tcase_add_test(all, denormal_numbers_are_zero_on_every_worker);
    tcase_add_test(all, not_a_number_is_not_hidden_by_an_activation);
    tcase_add_test(all, memory_that_the_machine_does_not_have_is_refused);
    tcase_add_loop_test(all, a_load_that_fails_leaves_nothing_behind, 0, RUNS);
    tcase_add_test(all, a_device_that_does_not_open_leaves_nothing_behind);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
