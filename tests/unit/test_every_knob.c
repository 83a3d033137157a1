// SPDX-License-Identifier: Apache-2.0
// Every knob does something: in a situation where it applies, two of its values are told apart by what a run
// reports. Turned between two steps, a hot one needs no rebuild and every other one gets it.
#include <check.h>
#include <stdlib.h>

#include "headroom/devices.h"
#include "headroom/preset.h"

#include "base/text.h"
#include "data/image_tree.h"

// With a convolution whose kernels want scratch and whose images can be blocked.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 16, kernel: 3, stride: 4, activation: relu}\n"                            \
    "    - {kind: conv2d, filters: 16, kernel: 3, padding: same}\n"                                          \
    "    - {kind: batch_norm, activation: relu}\n"                                                           \
    "    - {kind: global_avg_pool}\n"                                                                        \
    "    - {kind: dense, units: 10}\n"
#include "unit/small_engine.h"

enum { PAIRS_MAX = 8, STEPS = 5 };

typedef struct turning {
    hr_knob_id id;
    const char *pairs[PAIRS_MAX]; // where it applies
    const char *before, *after;   // NULL: told apart elsewhere, or the table has one choice only
} turning;

#define CACHING "allocator.kind=caching", "device.kind=plan", "pipeline.source=generated"
#define CARD    "device.card=rtx3070-8g", "device.vram=none", "device.kind=plan"

static char images[160]; // "pipeline.path=…": 27 to train, 9 held out
static char save_path[128], old_save[128];
static data_folder tree; // beside them: images of another size

// clang-format off
static const turning turnings[] = {
    {HR_KNOB_DEVICE_KIND, {NULL}, "reference", "plan"},
    {HR_KNOB_DEVICE_CARD, {CARD}, "rtx3070-8g", "rtx4090-24g"},
    {HR_KNOB_DEVICE_VRAM, {NULL}, "8MiB", "16MiB"},
    {HR_KNOB_DEVICE_LOGICAL, {NULL}, "none", "5MiB,1MiB"},
    {HR_KNOB_ALLOCATOR_KIND, {"execution.mode=graph"}, "bfc", "static"},
    {HR_KNOB_ALLOCATOR_KIND, {NULL}, "async", "direct"},
    {HR_KNOB_ALLOCATOR_KIND, {NULL}, "caching", "bfc"},
    {HR_KNOB_ALLOCATOR_KIND, {NULL}, NULL, NULL}, // async_driver, tests/cli/test_cuda_program.c: needs a card, emulated
    {HR_KNOB_ALLOCATOR_GROWTH, {NULL}, "off", "on"},
    {HR_KNOB_ALLOCATOR_FRACTION, {CARD}, "none", "0.5"},
    {HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION, {NULL}, NULL, NULL}, // tests/memory/test_bfc.c: needs two free regions
    {HR_KNOB_ALLOCATOR_RELEASE_THRESHOLD,
     {"allocator.kind=async", "device.kind=plan", "pipeline.source=generated", "batch.size=256", "device.vram=1GiB"},
     "none", "0B"},
    {HR_KNOB_ALLOCATOR_MAX_SPLIT, {CACHING, "batch.size=2000", "device.vram=1GiB"}, "none", "20MiB"},
    {HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING, {NULL}, NULL, NULL}, // tests/memory/test_caching.c: needs odd sizes
    {HR_KNOB_ALLOCATOR_LARGE_SEGMENT, {CACHING, "batch.size=512", "device.vram=1GiB"}, "20MiB", "12MiB"},
    {HR_KNOB_ALLOCATOR_GC_THRESHOLD, {NULL}, NULL, NULL}, // tests/memory/test_caching.c: needs a pool that misses
    {HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, {CACHING, "batch.size=2000", "device.vram=1GiB"}, "off", "on"},
    {HR_KNOB_ALLOCATOR_ROUNDUP, {CACHING, "batch.size=500", "device.vram=1GiB"}, "", "2"},
    {HR_KNOB_ALLOCATOR_CONF, {CACHING, "batch.size=500", "device.vram=1GiB"}, "", "roundup_power2_divisions:4"},
    {HR_KNOB_ALLOCATOR_VERSION, {NULL}, NULL, NULL}, // tests/memory/test_caching_streams.c: needs a pool that was full
    {HR_KNOB_BATCH_SIZE, {NULL}, "8", "9"},
    {HR_KNOB_BATCH_ACCUMULATE, {NULL}, "1", "2"},
    {HR_KNOB_BATCH_REMAINDER, {NULL}, "drop", "keep"},
    {HR_KNOB_BATCH_REMAINDER, {NULL}, "pad", "keep"},
    {HR_KNOB_PRECISION_POLICY, {NULL}, "float32", "float64"},
    {HR_KNOB_PRECISION_POLICY, {NULL}, "mixed_float16", "float16"},
    {HR_KNOB_PRECISION_POLICY, {NULL}, "mixed_bfloat16", "bfloat16"},
    {HR_KNOB_PRECISION_LOSS_SCALE, {"precision.policy=mixed_float16"}, "", "none"},
    {HR_KNOB_PRECISION_LOSS_SCALE, {NULL}, "none", "3"},
    {HR_KNOB_PRECISION_LOSS_SCALE_FLOOR, {NULL}, NULL, NULL}, // tests/program/test_precision.c: needs a scale of 1
    {HR_KNOB_PRECISION_TF32, {NULL}, NULL, NULL}, // tests/unit/test_cudnn_plans.c: needs cuDNN
    {HR_KNOB_PRECISION_HEALTH, {NULL}, "off", "on"},
    {HR_KNOB_CHECKPOINT_STRATEGY, {NULL}, "none", "every:2"},
    {HR_KNOB_OFFLOAD_ACTIVATIONS, {"offload.prefetch=0"}, "off", "on"},
    {HR_KNOB_OFFLOAD_OPTIMIZER, {NULL}, "off", "on"},
    {HR_KNOB_OFFLOAD_PREFETCH, {"offload.optimizer=on"}, "0", "2"},
    {HR_KNOB_EXECUTION_AS, {NULL}, "headroom", "pytorch"},
    {HR_KNOB_EXECUTION_AS, {NULL}, "headroom", "tensorflow"},
    {HR_KNOB_EXECUTION_MODE, {NULL}, "eager", "graph"},
    {HR_KNOB_EXECUTION_FUSE, {"device.kind=plan"}, "on", "off"},
    {HR_KNOB_EXECUTION_INPLACE, {NULL}, "on", "off"},
    {HR_KNOB_EXECUTION_DETERMINISTIC, {NULL}, NULL, NULL}, // tests/unit/test_cudnn_attention.c: needs cuDNN
    {HR_KNOB_EXECUTION_CUDA_GRAPH, {NULL}, NULL, NULL},    // tests/unit/test_cuda_runtime.c: needs a card, emulated
    {HR_KNOB_EXECUTION_ANSWER, {"execution.as=pytorch"}, "named", "dropped"},
    {HR_KNOB_EXECUTION_MEMORY_FORMAT, {NULL}, NULL, NULL}, // tests/unit/test_cudnn_pytorch.c: needs cuDNN
    {HR_KNOB_EXECUTION_CUDNN_TF32, {NULL}, NULL, NULL},    // tests/unit/test_cudnn_pytorch.c: needs cuDNN
    {HR_KNOB_EXECUTION_TAPE, {NULL}, "once", "none"},
    {HR_KNOB_EXECUTION_TAPE, {NULL}, "once", "persistent"},
    {HR_KNOB_EXECUTION_RETAIN, {NULL}, "none", "losses"},
    {HR_KNOB_EXECUTION_RETAIN, {NULL}, "losses", "predictions"},
    {HR_KNOB_EXECUTION_RETAIN, {"device.kind=plan"}, "none", "variables"},
    {HR_KNOB_OPTIMIZER_KIND, {NULL}, "adam", "sgd"},
    {HR_KNOB_OPTIMIZER_KIND, {NULL}, "rmsprop", "lion"},
    {HR_KNOB_OPTIMIZER_KIND, {NULL}, "adafactor", "adafactor_keras"},
    {HR_KNOB_OPTIMIZER_KIND, {NULL}, "adamw", "adam8bit"},
    {HR_KNOB_OPTIMIZER_LEARNING_RATE, {NULL}, "0.001", "0.002"},
    {HR_KNOB_OPTIMIZER_MOMENTUM, {"optimizer.kind=momentum"}, "0.9", "0.5"},
    {HR_KNOB_OPTIMIZER_FORM, {NULL}, "keras", "torch"},
    {HR_KNOB_OPTIMIZER_FORM, {"optimizer.kind=adam8bit"}, "keras", "torch"},
    {HR_KNOB_OPTIMIZER_IMPLEMENTATION, {"execution.as=pytorch"}, "foreach", "fused"},
    {HR_KNOB_OPTIMIZER_IMPLEMENTATION, {"execution.as=pytorch"}, "loop", "fused"},
    {HR_KNOB_OPTIMIZER_BETA1, {NULL}, "none", "0.5"},
    {HR_KNOB_OPTIMIZER_BETA1, {"optimizer.kind=rmsprop"}, "none", "0.5"},
    {HR_KNOB_OPTIMIZER_BETA2, {NULL}, "none", "0.95"},
    {HR_KNOB_OPTIMIZER_BETA2, {"optimizer.kind=lion"}, "none", "0.5"},
    {HR_KNOB_OPTIMIZER_EPSILON, {NULL}, "none", "0.01"},
    {HR_KNOB_OPTIMIZER_EPSILON, {"optimizer.kind=rmsprop"}, "none", "0.01"},
    {HR_KNOB_OPTIMIZER_FUSED_BACKWARD, {NULL}, "off", "on"},
    {HR_KNOB_COMPRESS_QUANTIZE, {NULL}, "none", "qat"}, // in evaluations alone: tests/unit/test_quantized.c
    {HR_KNOB_OPTIMIZER_WEIGHT_DECAY, {NULL}, "none", "0.5"},
    {HR_KNOB_OPTIMIZER_WEIGHT_DECAY, {"optimizer.kind=adamw"}, "none", "0"},
    {HR_KNOB_OPTIMIZER_CLIP_NORM, {"optimizer.kind=sgd"}, "none", "0.01"},
    {HR_KNOB_OPTIMIZER_EMA, {NULL}, "none", "0.9"},
    {HR_KNOB_OPTIMIZER_SCHEDULE, {"optimizer.schedule_updates=3"}, "none", "cosine"},
    {HR_KNOB_OPTIMIZER_SCHEDULE, {"optimizer.schedule_updates=3"}, "linear", "step"},
    {HR_KNOB_OPTIMIZER_SCHEDULE_UPDATES, {"optimizer.schedule=linear"}, "4", "6"},
    {HR_KNOB_OPTIMIZER_SCHEDULE_FACTOR, {"optimizer.schedule=step", "optimizer.schedule_updates=2"}, "none", "0.5"},
    {HR_KNOB_OPTIMIZER_WARMUP, {NULL}, "0", "4"},
    {HR_KNOB_WORKSPACE_LIMIT, {"device.kind=plan"}, "none", "0B"},
    {HR_KNOB_WORKSPACE_SEARCH, {NULL}, NULL, NULL}, // tests/cli/test_cuda_search.c: needs a card, emulated
    {HR_KNOB_THREADS_COUNT, {"device.kind=cpu"}, "1", "2"},
    {HR_KNOB_PIPELINE_SOURCE, {NULL}, "cifar10", "generated"},
    {HR_KNOB_PIPELINE_PATH, {NULL}, "FOLDER", ""},
    {HR_KNOB_PIPELINE_RESIZE, {"pipeline.source=images", "pipeline.path=TREE"}, "bilinear", "nearest"},
    {HR_KNOB_PIPELINE_RESIZE, {"pipeline.source=images", "pipeline.path=TREE"}, "bilinear", "area"},
    {HR_KNOB_PIPELINE_BAD, {NULL}, NULL, NULL}, // tests/unit/test_bad.c: needs samples that cannot be read
    {HR_KNOB_PIPELINE_SAMPLES, {NULL}, "20", "9"},
    {HR_KNOB_PIPELINE_FILTER, {"batch.remainder=keep"}, "", "label:0,1,2,3,4,5,6,7"},
    {HR_KNOB_PIPELINE_ARRAY, {NULL}, "off", "uint8"},
    {HR_KNOB_PIPELINE_ARRAY, {NULL}, "float32", "float64"},
    {HR_KNOB_PIPELINE_MODE, {"pipeline.array=uint8"}, "stream", "eager_stack"},
    {HR_KNOB_PIPELINE_STAGES, {NULL}, "shuffle, map, batch, prefetch", "map, batch, prefetch"},
    {HR_KNOB_PIPELINE_INTERLEAVE, {NULL}, NULL, NULL},       // tests/unit/test_interleave.c: needs several files
    {HR_KNOB_PIPELINE_INTERLEAVE_BLOCK, {NULL}, NULL, NULL}, // the same
    {HR_KNOB_PIPELINE_AUGMENT, {NULL}, "none", "flip"},
    {HR_KNOB_PIPELINE_AUGMENT, {NULL}, "crop:1", "colour:0.4, erase"},
    {HR_KNOB_PIPELINE_AUGMENT_COPIES, {"pipeline.augment=flip"}, "0", "2"},
    {HR_KNOB_PIPELINE_CACHE, {NULL}, "none", "ram"},
    {HR_KNOB_PIPELINE_CACHE, {NULL}, "ram", "file"},
    {HR_KNOB_PIPELINE_CACHE_PATH, {NULL}, NULL, NULL}, // tests/unit/test_keep.c: needs a folder
    {HR_KNOB_PIPELINE_SHUFFLE, {NULL}, "0", "64"},
    {HR_KNOB_PIPELINE_SHUFFLE_OF, {NULL}, "indices", "elements"},
    {HR_KNOB_PIPELINE_MAP_THREADS, {NULL}, "1", "3"},
    {HR_KNOB_PIPELINE_NORMALISE, {NULL}, "host", "device"},
    {HR_KNOB_PIPELINE_TRANSFER, {NULL}, "auto", "float64"},
    {HR_KNOB_PIPELINE_TRANSFER, {"precision.policy=float16"}, "auto", "float32"},
    {HR_KNOB_PIPELINE_PREFETCH, {NULL}, "0", "2"},
    {HR_KNOB_PIPELINE_AUTOTUNE, {NULL}, "off", "headroom"},
    {HR_KNOB_PIPELINE_AUTOTUNE, {NULL}, "headroom", "tensorflow"},
    {HR_KNOB_PIPELINE_PINNED, {NULL}, NULL, NULL}, // tests/cli/test_cuda_program.c: needs a card, emulated
    {HR_KNOB_PIPELINE_DEVICE_PREFETCH, {NULL}, "0", "1"},
    {HR_KNOB_PIPELINE_RESIDENT, {NULL}, "off", "on"},
    {HR_KNOB_PIPELINE_RAM_LIMIT, {NULL}, "none", "1B"},
    {HR_KNOB_COMPRESS_PRUNE, {NULL}, "none", "constant:0.5"},
    {HR_KNOB_COMPRESS_PRUNE, {NULL}, "constant:0.5:0:-1:2", "polynomial:0:0.5:0:9:2"},
    {HR_KNOB_COMPRESS_PRUNE_STRUCTURE, {"compress.prune=constant:0.5:1:-1:2"}, "element", "2:4"},
    {HR_KNOB_COMPRESS_LORA, {NULL}, "none", "2"},
    {HR_KNOB_COMPRESS_LORA_ALPHA, {"compress.lora=2"}, "rank", "16"},
    {HR_KNOB_COMPRESS_LORA_TARGETS, {"compress.lora=2"}, "auto", "conv"},
    {HR_KNOB_COMPRESS_LORA_BASE, {"compress.lora=2"}, "none", "nf4"},
    {HR_KNOB_COMPRESS_DISTILL, {NULL}, "none", "TEACHER"},
    {HR_KNOB_COMPRESS_DISTILL_ALPHA, {"compress.distill=TEACHER"}, "0.5", "0.9"},
    {HR_KNOB_COMPRESS_DISTILL_TEMPERATURE, {"compress.distill=TEACHER"}, "3", "1"},
    {HR_KNOB_COMPRESS_DISTILL_WEIGHTS, {"compress.distill=TEACHER"}, "", "OLD"},
    {HR_KNOB_COMPRESS_LOW_RANK, {NULL}, "none", "2"},
    {HR_KNOB_COMPRESS_LOW_RANK, {NULL}, "ratio:0.3", "ratio:0.8"},
    {HR_KNOB_COMPRESS_DISTILL_CACHE, {"compress.distill=TEACHER"}, "off", "on"},
    {HR_KNOB_MODEL_SEQUENCE, {NULL}, NULL, NULL}, // tests/cli/test_model_sizes.c: this model has no sizes
    {HR_KNOB_MODEL_RESOLUTION, {NULL}, NULL, NULL},
    {HR_KNOB_MODEL_WIDTH, {NULL}, NULL, NULL},
    {HR_KNOB_MODEL_DEPTH, {NULL}, NULL, NULL},
    {HR_KNOB_TRAIN_STEPS, {NULL}, "3", "4"},
    {HR_KNOB_TRAIN_SEED, {NULL}, "1", "2"},
    {HR_KNOB_TRAIN_SAVE, {NULL}, "", "SAVE"},
    {HR_KNOB_TRAIN_SAVE_EVERY, {"train.save=SAVE"}, "0", "2"},
    {HR_KNOB_TRAIN_RESUME, {NULL}, "", "OLD"},
};
// clang-format on

// Turns by which parameters would come, go or have another shape: refused once something was learned.
static const struct {
    hr_knob_id id;
    const char *after;
} losing[] = {
    {HR_KNOB_COMPRESS_LORA_TARGETS, "conv"},
    {HR_KNOB_COMPRESS_LOW_RANK, "2"},
    {HR_KNOB_COMPRESS_LOW_RANK, "ratio:0.8"},
};

enum { TURNINGS = sizeof turnings / sizeof *turnings, STRIDE = HEADROOM_SANITIZED ? 3 : 1 };

static bool would_lose(const turning *t)
{
    bool loses = false;
    for (size_t k = 0; k < sizeof losing / sizeof *losing && t->after != NULL; k++) {
        loses = loses || (losing[k].id == t->id && strcmp(losing[k].after, t->after) == 0);
    }
    return loses;
}

static const char *value_of(const char *word)
{
    return strcmp(word, "FOLDER") == 0    ? folder
           : strcmp(word, "SAVE") == 0    ? save_path
           : strcmp(word, "OLD") == 0     ? old_save
           : strcmp(word, "TREE") == 0    ? tree.path
           : strcmp(word, "TEACHER") == 0 ? hr_preset_path(preset)
                                          : word;
}

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[HR_KNOB_TEXT_MAX + 64];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "%s=%s", key, value_of(value));
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

typedef struct counts {
    uint64_t builds, saves, given_back;
} counts;

static void count(void *context, const hr_event *event)
{
    counts *c = context;
    c->builds += event->kind == HR_EVENT_BUILD;
    c->saves += event->kind == HR_EVENT_SAVED;
    c->given_back += event->kind == HR_EVENT_SHRINK;
}

static hr_engine *create_for(const turning *t, const char *value, counts *c)
{
    hr_err err = {0};
    hr_engine *e = NULL;
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, images, &err), HR_OK);
    for (int k = 0; k < PAIRS_MAX && t->pairs[k] != NULL; k++) {
        char key[64];
        const char *equals = strchr(t->pairs[k], '=');
        (void)snprintf(key, sizeof key, "%.*s", (int)(equals - t->pairs[k]), t->pairs[k]);
        set(&knobs, key, equals + 1);
    }
    set(&knobs, hr_knob_rows(NULL)[t->id].key, value);
    hr_engine_options options = {.sink = count, .sink_context = c};
    ck_assert_msg(hr_engine_create(preset, &knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    return e;
}

// What a run has to say, but for times, and the listing, which alone tells some of them.
static void observe(hr_engine *e, const counts *c, text *out)
{
    char *listing = NULL;
    size_t bytes = 0;
    hr_report r = report_of(e);
    text_append(out, "%s %s %u %d|%s|", r.device.kind, r.device.card, r.device.threads,
                (int)hr_engine_get_state(e), r.train.data);
    text_append(out, "%llu %llu %llu %llu|", (unsigned long long)r.memory.limit_bytes,
                (unsigned long long)r.memory.peak_pool_bytes, (unsigned long long)r.memory.peak_in_use_bytes,
                (unsigned long long)r.memory.static_bytes);
    text_append(out, "%llu %.9g %s|%u %llu|", (unsigned long long)r.train.steps, r.train.loss_last,
                r.train.weights_sha256, r.host.stage_count, (unsigned long long)r.host.peak_bytes);
    text_append(out, "%llu %llu|", (unsigned long long)c->saves, (unsigned long long)c->given_back);
    hr_report_deinit(&r);
    if (hr_engine_get_state(e) == HR_ENGINE_IDLE) {
        FILE *f = open_memstream(&listing, &bytes);
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(hr_engine_listing(e, f, NULL), HR_OK);
        ck_assert_int_eq(fclose(f), 0);
        text_append(out, "%s", listing);
        free(listing);
    }
    ck_assert(!out->failed);
}

static void run_for(hr_engine *e)
{
    run_steps(e, hr_knob_int(hr_engine_knobs(e), HR_KNOB_TRAIN_STEPS) > 0 ? 0 : STEPS);
}

static bool is_absent(const turning *t)
{
    bool needs_cpu = t->pairs[0] != NULL && strcmp(t->pairs[0], "device.kind=cpu") == 0;
    return t->before == NULL || (needs_cpu && HEADROOM_HAVE_ONEDNN == 0);
}

static void write_old_save(void)
{
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 3);
    hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(save.text, sizeof save.text, "%s", file_in("old.safetensors", old_save));
    ck_assert_int_eq(hr_engine_command(e, &save, NULL), HR_OK);
    hr_engine_destroy(e);
}

static void write_tree(void)
{
    char name[64];
    (void)snprintf(tree.path, sizeof tree.path, "%s", folder);
    for (uint32_t n = 0; n < 9; n++) {
        tree_write(&tree, tree_name("tree", 3, n, name), tree_noise(n, 45, 60));
    }
    (void)strcat(tree.path, "/tree");
}

static void open_all(void)
{
    hr_preset_search_beside(".");
    open_preset();
    (void)write_images(27, 9, images);
    (void)file_in("new.safetensors", save_path);
    write_tree();
    write_old_save();
}

START_TEST(two_values_are_told_apart)
{
    const turning *t = &turnings[STRIDE * _i];
    const char *values[] = {t->before, t->after};
    text seen[2] = {{0}};
    for (int k = 0; k < 2 && !is_absent(t); k++) {
        counts c = {0};
        hr_engine *e = create_for(t, values[k], &c);
        run_for(e);
        ck_assert_msg(hr_engine_get_state(e) != HR_ENGINE_FAILED, "%s", hr_engine_error(e)->sentence);
        observe(e, &c, &seen[k]);
        hr_engine_destroy(e);
    }
    ck_assert_msg(is_absent(t) || strcmp(seen[0].data, seen[1].data) != 0,
                  "%s: %s and %s give the same: %.200s", hr_knob_rows(NULL)[t->id].key, t->before, t->after,
                  seen[0].data);
    text_deinit(&seen[0]);
    text_deinit(&seen[1]);
}
END_TEST

START_TEST(a_turn_rebuilds_unless_the_knob_is_hot)
{
    const turning *t = &turnings[STRIDE * _i];
    if (is_absent(t)) {
        return;
    }
    counts c = {0};
    const hr_knob_row *row = &hr_knob_rows(NULL)[t->id];
    hr_engine *e = create_for(t, t->before, &c);
    run_steps(e, 2);
    uint64_t builds = c.builds;
    const hr_status status = turn(e, t->id, value_of(t->after));
    ck_assert_msg(status == (would_lose(t) ? HR_STATE : HR_OK), "%s=%s: %d", row->key, t->after, status);
    ck_assert(row->models || !would_lose(t));
    run_steps(e, 1);
    if (status == HR_STATE) {
        ck_assert_uint_eq(c.builds, builds);
    } else if (hr_engine_get_state(e) == HR_ENGINE_IDLE) {
        ck_assert_msg(c.builds - builds == (row->hot ? 0 : 1), "%s", row->key);
    } else {
        ck_assert(!row->hot); // a rebuild that found that it would not fit
    }
    hr_engine_destroy(e);
}
END_TEST

START_TEST(every_knob_is_in_the_table)
{
    bool seen[HR_KNOB_COUNT] = {false};
    for (size_t k = 0; k < TURNINGS; k++) {
        seen[turnings[k].id] = true;
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert_msg(seen[id], "%s is turned by no test", hr_knob_rows(NULL)[id].key);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("every_knob");
    TCase *cases = tcase_create("every_knob");
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_loop_test(cases, two_values_are_told_apart, 0, TURNINGS / STRIDE);
    tcase_add_loop_test(cases, a_turn_rebuilds_unless_the_knob_is_hot, 0, TURNINGS / STRIDE);
    tcase_add_test(cases, every_knob_is_in_the_table);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
