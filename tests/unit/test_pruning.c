// SPDX-License-Identifier: Apache-2.0
// Training under compress.prune: the plan is the run, masks cost what they weigh, a save carries them, weights lie
// there with zeros where the masks have them, every way through the step prunes alike, and the loss falls.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: separable_conv2d, filters: 8, kernel: 3, stride: 4, activation: relu}\n"                   \
    "    - {kind: batch_norm}\n"                                                                             \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 24, activation: relu}\n"                                                     \
    "    - {kind: dense, units: 10}\n"
#include "unit/small_engine.h"

enum { PAIRS_MAX = 9, FILE_MAX = 1 << 20, ALL_STEPS = 6 };

// Of the three kernels that are pruned: pointwise 3x8, 512x24 behind 8x8x8, 24x10. Not depthwise, scales and biases.
enum { PRUNABLE = 3 * 8 + 512 * 24 + 24 * 10 };

static const char *const prunings[][2] = {
    {"compress.prune=constant:0.5:0:-1:2", "compress.prune_structure=element"},
    {"compress.prune=constant:0.6:1:-1:1", "compress.prune_structure=element"},
    {"compress.prune=polynomial:0.2:0.8:1:5:1", "compress.prune_structure=element"},
    {"compress.prune=constant:0.5", "compress.prune_structure=2:4"},
    {"compress.prune=constant:0.5:3", "compress.prune_structure=1:3"},
};
enum { PRUNINGS = sizeof prunings / sizeof *prunings };

static hr_engine *trained(const char *const pruning[2], const char *const *more, bool plan_only,
                          uint64_t steps)
{
    char until[40];
    const char *pairs[PAIRS_MAX] = {pruning[0], pruning[1], until};
    (void)snprintf(until, sizeof until, "train.steps=%llu", (unsigned long long)steps);
    for (size_t k = 3; *more != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        pairs[k] = *more++;
    }
    hr_engine *e = create(pairs, &(hr_engine_options){.plan_only = plan_only});
    run_steps(e, 0);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    return e;
}

#define NONE      ((const char *const[]){NULL})
#define WITH(...) ((const char *const[]){__VA_ARGS__, NULL})

static void sha_after(const char *const pruning[2], const char *const *more, uint64_t steps,
                      char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = trained(pruning, more, false, steps);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

// ---- what a save holds ------------------------------------------------------------------------------------------

static char save_bytes[FILE_MAX];
static size_t save_size;

static void read_save(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    save_size = fread(save_bytes, 1, sizeof save_bytes - 1, f);
    ck_assert_uint_gt(save_size, 8);
    ck_assert_int_eq(fclose(f), 0);
}

// The float32 tensor of that name; *count is 0 where the save has none.
static const float *saved(const char *name, size_t *count)
{
    char key[128];
    unsigned long long header = 0, begin = 0, end = 0;
    memcpy(&header, save_bytes, 8);
    ck_assert_uint_lt(header, save_size);
    char *text = strndup(save_bytes + 8, header);
    (void)snprintf(key, sizeof key, "\"%s\":{", name);
    const char *at = strstr(text, key), *offsets = at == NULL ? NULL : strstr(at, "\"data_offsets\":[");
    if (offsets != NULL) {
        ck_assert_int_eq(sscanf(offsets, "\"data_offsets\":[%llu,%llu]", &begin, &end), 2);
    }
    free(text);
    *count = (end - begin) / sizeof(float);
    return (const float *)(const void *)(save_bytes + 8 + header + begin);
}

static const char *const kernels[] = {"separable_conv2d/pointwise_weights", "dense/weights",
                                      "dense_1/weights"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void save_into(hr_engine *e)
{
    char path[128];
    hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(save.text, sizeof save.text, "%s", file_in("pruned.safetensors", path));
    ck_assert_int_eq(hr_engine_command(e, &save, NULL), HR_OK);
    read_save(path);
}

// Zeros of a tensor; each stands where the mask has one.
static size_t masked_zeros(const char *name, const char *of)
{
    char mask_name[128];
    size_t count = 0, masks = 0, zeros = 0;
    (void)snprintf(mask_name, sizeof mask_name, "%s:mask", of);
    const float *w = saved(name, &count), *mask = saved(mask_name, &masks);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(count, masks);
    for (size_t i = 0; i < count; i++) {
        ck_assert(mask[i] == 0.0f || mask[i] == 1.0f);
        ck_assert(mask[i] == 1.0f || w[i] == 0.0f);
        zeros += mask[i] == 0.0f;
    }
    return zeros;
}

START_TEST(what_lies_there_after_training_has_exactly_the_zeros)
{
    hr_engine *e = trained(prunings[_i], NONE, false, ALL_STEPS);
    hr_report r;
    size_t all = 0, all_zeros = 0;
    save_into(e);
    for (size_t k = 0; k < KERNELS; k++) {
        size_t count = 0;
        (void)saved(kernels[k], &count);
        const size_t zeros = masked_zeros(kernels[k], kernels[k]);
        const double share = (double)zeros / (double)count;
        all += count;
        all_zeros += zeros;
        const double wanted[PRUNINGS] = {0.5, 0.6, 0.8, 0.5, 1.0 / 3};
        // 3 channels in lack one of a run of four, and the mask of 24 ends in whole runs.
        const bool short_runs = strstr(prunings[_i][1], ":4") != NULL && k == 0;
        ck_assert_double_eq_tol(share, short_runs ? 1.0 / 3 : wanted[_i], k == 0 ? 0.05 : 0.003);
    }
    ck_assert_int_eq(hr_engine_report(e, &r, NULL), HR_OK);
    ck_assert_msg(r.train.sparsity == (double)all_zeros / (double)all, "%g", r.train.sparsity);
    hr_report_deinit(&r);
    size_t none = 0;
    (void)saved("separable_conv2d/depthwise_weights:mask", &none);
    ck_assert_uint_eq(none, 0);
    (void)saved("dense/bias:mask", &none);
    ck_assert_uint_eq(none, 0);
    hr_engine_destroy(e);
}
END_TEST

// Half of the units of a layer go whole; what gives the answer has no mask.
START_TEST(filters_go_whole)
{
    static const char *const filters[2] = {"compress.prune=constant:0.5:0:-1:2",
                                           "compress.prune_structure=filter"};
    enum { UNITS = 24, INPUTS = 512 };
    hr_engine *e = trained(filters, NONE, false, ALL_STEPS);
    size_t count = 0, units = 0;
    save_into(e);
    ck_assert_uint_eq(masked_zeros("dense/weights", "dense/weights"), INPUTS * UNITS / 2);
    ck_assert_uint_eq(masked_zeros(kernels[0], kernels[0]), 3 * 8 / 2);
    const float *mask = saved("dense/weights:mask", &count);
    for (size_t u = 0; u < UNITS; u++) {
        units += mask[u] != 0.0f;
        for (size_t i = 1; i < INPUTS; i++) {
            ck_assert(mask[i * UNITS + u] == mask[u]);
        }
    }
    ck_assert_uint_eq(units, UNITS / 2);
    (void)saved("dense_1/weights:mask", &count);
    ck_assert_uint_eq(count, 0);
    hr_engine_destroy(e);
}
END_TEST

// Evaluation looks at the average: it has the mask of its weight.
START_TEST(averages_have_the_zeros_too)
{
    hr_engine *e = trained(prunings[0], WITH("optimizer.ema=0.9"), false, ALL_STEPS);
    save_into(e);
    ck_assert_uint_gt(masked_zeros("dense/weights:ema", "dense/weights"), 512 * 24 / 3);
    hr_engine_destroy(e);
}
END_TEST

// Saves after one step or four, resumes in another engine, and compares with a run that was never interrupted.
START_TEST(a_save_carries_masks_and_their_step)
{
    const char *const *pruning = prunings[_i % PRUNINGS];
    char path[128], save[160], resume[160], whole[HR_SHA256_TEXT_MAX], resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    sha_after(pruning, NONE, ALL_STEPS, whole);
    sha_after(pruning, WITH(save), _i < PRUNINGS ? 1 : 4, resumed);
    sha_after(pruning, WITH(resume), ALL_STEPS, resumed);
    ck_assert_str_eq(whole, resumed);
}
END_TEST

// A save without masks goes on with whole ones, and one with masks trains on without them.
START_TEST(saves_of_both_kinds_are_taken)
{
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"};
    char path[128], save[160], resume[160], sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("b.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    sha_after(off, WITH(save), 2, sha);
    sha_after(prunings[0], WITH(resume, save), 4, sha);
    read_save(path);
    ck_assert_uint_gt(masked_zeros("dense/weights", "dense/weights"), 0);
    sha_after(off, WITH(resume), ALL_STEPS, sha);
}
END_TEST

// ---- a model that has learned ---------------------------------------------------------------------------------

static const struct {
    const char *words[2];
    size_t zeros; // of 512x24 after two updates of pruning
} late[] = {
    {{"compress.prune=constant:0.5:1:4:1", "compress.prune_structure=element"}, 6144},
    {{"compress.prune=constant:0.25:0:2:1", "compress.prune_structure=element"}, 3072},
    {{"compress.prune=polynomial:0.25:0.75:1:3:1:1", "compress.prune_structure=element"}, 9216},
    {{"compress.prune=constant:0.5", "compress.prune_structure=2:4"}, 6144},
};
enum { LATE = sizeof late / sizeof *late, LEARNED = 5 };

static size_t zeros_of_dense(void)
{
    return masked_zeros("dense/weights", "dense/weights");
}

// The schedule of masks that are new counts from the update at which they are: turns that the save is beyond are not over.
START_TEST(a_trained_save_is_pruned_by_the_whole_schedule)
{
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"};
    char path[128], save[160], resume[160], goes_on[160], sha[HR_SHA256_TEXT_MAX];
    char whole[HR_SHA256_TEXT_MAX], resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("learned.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    sha_after(off, WITH(save), LEARNED, sha);
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("pruned_late.safetensors", path));
    (void)snprintf(goes_on, sizeof goes_on, "train.resume=%s", path);
    sha_after(late[_i].words, WITH(resume, save), LEARNED + 2, sha);
    read_save(path);
    ck_assert_uint_eq(zeros_of_dense(), late[_i].zeros);
    sha_after(late[_i].words, WITH(goes_on, save), LEARNED + 4, resumed);
    read_save(path);
    ck_assert_uint_eq(zeros_of_dense(), late[_i].zeros);
    sha_after(late[_i].words, WITH(resume), LEARNED + 4, whole);
    ck_assert_str_eq(whole, resumed);
}
END_TEST

// In one engine too, where pruning is turned on behind updates that are done.
START_TEST(pruning_that_is_turned_on_later_counts_from_there)
{
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"};
    hr_engine *e = trained(off, NONE, false, LEARNED);
    ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_PRUNE, "constant:0.5:0:2:1"), HR_OK);
    run_steps(e, 3);
    ck_assert_msg(hr_engine_error(e)->status == HR_OK, "%s", hr_engine_error(e)->sentence);
    save_into(e);
    ck_assert_uint_eq(zeros_of_dense(), 6144);
    hr_engine_destroy(e);
}
END_TEST

// What an engine notes, a line each.
typedef struct heard {
    char notes[512];
} heard;

static void hear(void *context, const hr_event *event)
{
    heard *h = context;
    if (event->kind == HR_EVENT_LOG && event->u.note.count == 1) {
        const size_t length = strlen(h->notes);
        (void)snprintf(h->notes + length, sizeof h->notes - length, "%s\n", event->u.note.text);
    }
}

static void resume_noting(const char *const pruning[2], const char *resume, heard *h)
{
    const hr_engine_options options = {.sink = hear, .sink_context = h};
    *h = (heard){.notes = ""};
    hr_engine *e = create((const char *[]){pruning[0], pruning[1], resume, NULL}, &options);
    run_steps(e, LEARNED + 1);
    ck_assert_msg(hr_engine_error(e)->status == HR_OK, "%s", hr_engine_error(e)->sentence);
    hr_engine_destroy(e);
}

// A save that was not pruned, by filter, and by element.
START_TEST(zeros_do_not_grow_back_without_a_word)
{
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"},
                             *const filters[2] = {"compress.prune=constant:0.5:0:-1:1",
                                                  "compress.prune_structure=filter"};
    static const char lost[] = "a pruned save without compress.prune: zeros grow back\n";
    char path[128], save[160], resume[160], all[256], sha[HR_SHA256_TEXT_MAX];
    heard h;
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("masked.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    sha_after(off, WITH(save), LEARNED, sha);
    resume_noting(off, resume, &h);
    ck_assert_str_eq(h.notes, "");
    sha_after(filters, WITH(save), LEARNED, sha);
    resume_noting(filters, resume, &h);
    ck_assert_str_eq(h.notes, "");
    resume_noting(off, resume, &h);
    (void)snprintf(all, sizeof all, "%stry: -s %s\ntry: -s %s\n", lost, filters[0], filters[1]);
    ck_assert_str_eq(h.notes, all);
    sha_after(prunings[0], WITH(save), LEARNED, sha);
    resume_noting((const char *const[]){"compress.prune=none", "compress.lora=2"}, resume, &h);
    ck_assert_str_eq(h.notes, ""); // a frozen base keeps its zeros
    resume_noting(off, resume, &h);
    (void)snprintf(all, sizeof all, "%stry: -s %s\n", lost, prunings[0][0]);
    ck_assert_str_eq(h.notes, all);
}
END_TEST

// ---- memory -----------------------------------------------------------------------------------------------------

START_TEST(the_plan_is_the_run_and_masks_weigh_what_kernels_weigh)
{
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"};
    hr_engine *plan = trained(prunings[_i], NONE, true, 3), *run = trained(prunings[_i], NONE, false, 3);
    hr_engine *without = trained(off, NONE, true, 3);
    hr_report planned = report_of(plan), measured = report_of(run), plain = report_of(without);
    ck_assert_uint_eq(planned.memory.peak_in_use_bytes, measured.memory.peak_in_use_bytes);
    ck_assert_uint_eq(planned.memory.static_bytes, measured.memory.static_bytes);
    ck_assert_uint_eq(planned.memory.heap_hash, measured.memory.heap_hash);
    ck_assert_uint_eq(planned.memory.static_bytes, plain.memory.static_bytes + 4 * PRUNABLE);
    ck_assert_uint_eq(planned.memory.peak_requested_bytes, plain.memory.peak_requested_bytes + 4 * PRUNABLE);
    hr_report_deinit(&planned);
    hr_report_deinit(&measured);
    hr_report_deinit(&plain);
    hr_engine_destroy(plan);
    hr_engine_destroy(run);
    hr_engine_destroy(without);
}
END_TEST

// ---- ways through the step --------------------------------------------------------------------------------------

START_TEST(every_way_through_a_step_prunes_alike)
{
    static const char *const ways[] = {"execution.mode=graph",     "optimizer.fused_backward=on",
                                       "checkpoint.strategy=sqrt", "offload.optimizer=on",
                                       "execution.as=tensorflow",  "execution.tape=persistent"};
    char plain[HR_SHA256_TEXT_MAX], other[HR_SHA256_TEXT_MAX];
    sha_after(prunings[_i], WITH("execution.mode=eager"), ALL_STEPS, plain);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        sha_after(prunings[_i], WITH(ways[k]), ALL_STEPS, other);
        ck_assert_msg(strcmp(plain, other) == 0, "%s: other weights", ways[k]);
    }
}
END_TEST

// A mask is made once an update, whatever the rounds: as many zeros, and the loss of the large batch.
START_TEST(rounds_of_an_update_share_its_mask)
{
    hr_engine *e = trained(prunings[2], WITH("batch.accumulate=2", "batch.size=4"), false, ALL_STEPS);
    save_into(e);
    ck_assert_uint_eq(masked_zeros("dense/weights", "dense/weights"), 512 * 24 - 2458); // round(12288 * 0.2)
    hr_engine_destroy(e);
}
END_TEST

START_TEST(the_loss_falls)
{
    char images[160];
    hr_engine *e =
        trained(prunings[_i], WITH(write_images(8, 8, images), "optimizer.learning_rate=0.01"), false, 30);
    hr_report r = report_of(e);
    ck_assert_double_lt(r.train.loss_last, r.train.loss_first / 2);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// Overflowing gradients leave an update out, and with it its pruning: the counter of updates stands.
START_TEST(half_policies_prune)
{
    static const char *const policies[] = {"precision.policy=mixed_float16", "precision.policy=float16",
                                           "precision.policy=bfloat16", "precision.policy=float64"};
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        char first[HR_SHA256_TEXT_MAX], second[HR_SHA256_TEXT_MAX];
        sha_after(prunings[_i], WITH(policies[k]), 3, first);
        sha_after(prunings[_i], WITH(policies[k], "execution.mode=graph"), 3, second);
        ck_assert_str_eq(first, second);
    }
}
END_TEST

// Before the first masks are made nothing is masked: training is as without them.
START_TEST(masks_are_whole_until_the_first_are_made)
{
    static const char *const policies[] = {"precision.policy=float32", "precision.policy=mixed_bfloat16",
                                           "precision.policy=float16", "precision.policy=bfloat16"};
    static const char *const off[2] = {"compress.prune=none", "compress.prune_structure=element"};
    static const char *const later[2] = {"compress.prune=constant:0.5:100:-1:100",
                                         "compress.prune_structure=element"};
    static const char *const devices[] = {"device.kind=reference", "device.kind=cpu"};
    const char *device = devices[HEADROOM_HAVE_ONEDNN ? _i % 2 : 0], *policy = policies[_i / 2];
    double loss[2];
    for (int k = 0; k < 2; k++) {
        hr_engine *e = trained(k == 0 ? off : later, WITH(device, policy), false, 5);
        hr_report r = report_of(e);
        loss[k] = r.train.loss_last;
        ck_assert(k == 0 || r.train.sparsity == 0);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert(loss[0] == loss[1]);
}
END_TEST

// ---- updates that mask as they write ----------------------------------------------------------------------------

static const char *const updates[][3] = {
    {"optimizer.kind=sgd"},
    {"optimizer.kind=momentum"},
    {"optimizer.kind=rmsprop"},
    {"optimizer.kind=adam"},
    {"optimizer.kind=adamw"},
    {"optimizer.kind=lion"},
    {"optimizer.kind=adafactor"},
    {"optimizer.kind=adam8bit"},
    {"optimizer.kind=adam", "optimizer.ema=0.9"},
    {"optimizer.kind=adam", "optimizer.fused_backward=on"},
    {"optimizer.kind=adam", "offload.optimizer=on"},
    {"optimizer.kind=adam", "precision.policy=mixed_float16"},
    {"optimizer.kind=adam", "precision.policy=bfloat16"},
    {"optimizer.kind=sgd", "precision.policy=bfloat16"},
    {"optimizer.kind=momentum", "precision.policy=float16"},
    {"optimizer.kind=rmsprop", "precision.policy=bfloat16"},
    {"optimizer.kind=lion", "precision.policy=float16"},
    {"optimizer.kind=adam", "precision.policy=float16", "optimizer.form=torch"},
    {"optimizer.kind=adam", "precision.policy=bfloat16", "threads.count=2"},
};
enum { UPDATES = sizeof updates / sizeof *updates, CAPS = 4 };

// Masks come and grow in some updates, and lie still in others. execution.fuse=off has a PRUNE for both. With every set of
// instructions that oneDNN may be kept to.
START_TEST(an_update_that_masks_leaves_what_masking_behind_it_would)
{
    static const char *const pruning[2] = {"compress.prune=polynomial:0.2:0.8:1:9:3",
                                           "compress.prune_structure=element"};
    static const char *const fuses[2] = {"execution.fuse=on", "execution.fuse=off"};
    static const char *const caps[] = {"", "SSE41", "AVX", "AVX2"};
    const char *const *u = updates[_i / CAPS];
    char sha[2][HR_SHA256_TEXT_MAX];
    if (_i % CAPS > 0) {
        ck_assert_int_eq(setenv("ONEDNN_MAX_CPU_ISA", caps[_i % CAPS], 1), 0);
    }
    for (int k = 0; k < 2; k++) {
        sha_after(pruning, WITH("device.kind=cpu", fuses[k], u[0], u[1], u[1] == NULL ? NULL : u[2]),
                  ALL_STEPS, sha[k]);
    }
    ck_assert_str_eq(sha[0], sha[1]);
}
END_TEST

// ---- what is refused --------------------------------------------------------------------------------------------

static void check_refused(const char *structure, const char *sentence)
{
    hr_engine *e = create((const char *[]){"compress.prune=constant:0.5", structure, NULL}, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_error(e)->status, HR_CONSTRAINT);
    ck_assert_str_eq(hr_engine_error(e)->sentence, sentence);
    ck_assert_str_eq(hr_engine_error(e)->hint, "-s compress.prune_structure=element");
    hr_engine_destroy(e);
}

START_TEST(a_structure_that_a_kernel_cannot_have_is_refused)
{
    check_refused("compress.prune_structure=block:2x2",
                  "compress.prune_structure block:2x2 needs kernels that are matrices, and "
                  "separable_conv2d/pointwise_weights is 1x1x3x8");
}
END_TEST

// Not the model is to blame, which has filters without factors. Each knob that is advised helps.
START_TEST(factors_and_filters_blame_the_knobs)
{
    const char *pairs[] = {"compress.prune=constant:0.5", "compress.prune_structure=filter",
                           "compress.low_rank=2", NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_error(e)->status, HR_CONSTRAINT);
    ck_assert_str_eq(hr_engine_error(e)->sentence,
                     "compress.prune_structure=filter prunes filters that only other kernels read, and "
                     "factors keep theirs: under compress.low_rank=2 small has none");
    ck_assert_str_eq(hr_engine_error(e)->hint,
                     "-s compress.low_rank=none, or -s compress.prune_structure=element");
    hr_engine_destroy(e);
    for (int k = 0; k < 2; k++) {
        const char *mended[] = {pairs[0], k == 0 ? pairs[1] : "compress.prune_structure=element",
                                k == 0 ? "compress.low_rank=none" : pairs[2], NULL};
        e = create(mended, NULL);
        run_steps(e, 1);
        ck_assert_msg(hr_engine_error(e)->status == HR_OK, "%s", hr_engine_error(e)->sentence);
        hr_engine_destroy(e);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pruning");
    TCase *all = tcase_create("pruning");
    tcase_set_timeout(all, 240);
    tcase_add_checked_fixture(all, open_preset, close_preset);
    tcase_add_loop_test(all, what_lies_there_after_training_has_exactly_the_zeros, 0, PRUNINGS);
    tcase_add_test(all, filters_go_whole);
    tcase_add_test(all, factors_and_filters_blame_the_knobs);
    tcase_add_test(all, averages_have_the_zeros_too);
    tcase_add_loop_test(all, a_save_carries_masks_and_their_step, 0, 2 * PRUNINGS);
    tcase_add_test(all, saves_of_both_kinds_are_taken);
    tcase_add_loop_test(all, a_trained_save_is_pruned_by_the_whole_schedule, 0, LATE);
    tcase_add_test(all, pruning_that_is_turned_on_later_counts_from_there);
    tcase_add_test(all, zeros_do_not_grow_back_without_a_word);
    tcase_add_loop_test(all, the_plan_is_the_run_and_masks_weigh_what_kernels_weigh, 0, PRUNINGS);
    tcase_add_loop_test(all, every_way_through_a_step_prunes_alike, 0, PRUNINGS);
    tcase_add_test(all, rounds_of_an_update_share_its_mask);
    tcase_add_loop_test(all, the_loss_falls, 0, PRUNINGS);
    tcase_add_loop_test(all, half_policies_prune, 0, PRUNINGS);
    tcase_add_loop_test(all, masks_are_whole_until_the_first_are_made, 0, 8);
    tcase_add_loop_test(all, an_update_that_masks_leaves_what_masking_behind_it_would, 0, UPDATES * CAPS);
    tcase_add_test(all, a_structure_that_a_kernel_cannot_have_is_refused);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
