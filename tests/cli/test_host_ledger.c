// SPDX-License-Identifier: Apache-2.0
// What the host holds is planned to the byte: every kind of source with every value of the pipeline's knobs, and every two values
// of two knobs that are met in thousands of legal configurations. A new knob of the pipeline is in them by its row; a new kind of
// source has to say what files it reads.
#include <inttypes.h>
#include <stdint.h>
#include <sys/stat.h>

#include "headroom/preset.h"

#include "axes.h"
#include "data/image_tree.h"
#include "data/record_files.h"
#include "exactness.h"

enum { STRIDE = HEADROOM_SANITIZED ? 3 : 1 }; // drawn configurations that are played
enum { TRAIN = 70, FEWER = 61, HELD_OUT = 9, DRAWS = 6000, KEPT_MAX = 256, HOST_AXES_MAX = 32 };

static uint8_t train = TRAIN; // samples in the files below, at most TRAIN

// ---- sources --------------------------------------------------------------------------------------------------

static void write_nothing(const data_folder *f, char path[FILE_NAME_MAX])
{
    (void)f;
    path[0] = '\0';
}

static void write_cifar_folder(const data_folder *f, char path[FILE_NAME_MAX])
{
    cifar_write_set(f, train, HELD_OUT);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

static void write_cifar_archive(const data_folder *f, char path[FILE_NAME_MAX])
{
    cifar_pack_set(data_folder_file(f, "cifar-10-binary.tar.gz", path), PACK_TAR_GZIP, train, HELD_OUT);
}

static void write_mnist_folder(const data_folder *f, char path[FILE_NAME_MAX])
{
    mnist_write_set(f, false, train, HELD_OUT);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

static void write_mnist_packed(const data_folder *f, char path[FILE_NAME_MAX])
{
    mnist_write_set(f, true, train, HELD_OUT);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

// Windows of eight tokens and the one behind: more of them than a test takes.
static void write_tokens(const data_folder *f, char path[FILE_NAME_MAX])
{
    uint16_t tokens[9 * (TRAIN + HELD_OUT)];
    for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++) {
        tokens[k] = (uint16_t)(k * 7 % 256);
    }
    data_write(f, "train.bin", tokens, 9 * sizeof *tokens * ((size_t)train + HELD_OUT));
    (void)data_folder_file(f, "train.bin", path);
}

static void write_text(const data_folder *f, char path[FILE_NAME_MAX])
{
    char words[9 * (TRAIN + HELD_OUT)];
    memset(words, 'w', sizeof words);
    data_write(f, "train.txt", words, 9 * ((size_t)train + HELD_OUT));
    data_write(f, "val.txt", words, sizeof words / 2);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

static void write_table(const data_folder *f, char path[FILE_NAME_MAX])
{
    char rows[16 * (TRAIN + HELD_OUT) + 64];
    size_t used = (size_t)snprintf(rows, sizeof rows, "a,b,c,label\n");
    for (int k = 0; k < train + HELD_OUT; k++) {
        used += (size_t)snprintf(rows + used, sizeof rows - used, "%d,0.5,-1,%d\n", k, k % 10);
    }
    data_write(f, "table.csv", rows, used);
    (void)data_folder_file(f, "table.csv", path);
}

static void write_array(const data_folder *f, const char *leaf, const char *shape, size_t count)
{
    uint8_t *bytes = calloc(128 + count, 1);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(bytes + 10, ' ', 118);
    const int length =
        snprintf((char *)bytes + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape);
    bytes[10 + length] = ' ';
    bytes[127] = '\n';
    data_write(f, leaf, bytes, 128 + count);
    free(bytes);
}

static void write_arrays(const data_folder *f, char path[FILE_NAME_MAX])
{
    char shape[64];
    (void)snprintf(shape, sizeof shape, "%d, 32, 32, 3", train + HELD_OUT);
    write_array(f, "x_train.npy", shape, ((size_t)train + HELD_OUT) * 32 * 32 * 3);
    (void)snprintf(shape, sizeof shape, "%d,", train + HELD_OUT);
    write_array(f, "y_train.npy", shape, (size_t)train + HELD_OUT);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

static void write_images(const data_folder *f, char path[FILE_NAME_MAX])
{
    tree_write_set(f, "train", 10, 0, train);
    tree_write_set(f, "val", 10, train, HELD_OUT);
    (void)snprintf(path, FILE_NAME_MAX, "%s", f->path);
}

static void pack_images(const data_folder *f, const char *leaf, pack how, char path[FILE_NAME_MAX])
{
    char name[64];
    struct archive *a = pack_open(data_folder_file(f, leaf, path), how);
    for (uint32_t n = 0; n < (uint32_t)train + HELD_OUT; n++) {
        made image = tree_png(n, 6, 4);
        pack_add(a, tree_name("", 10, n, name), image.bytes, image.count);
        made_free(&image);
    }
    pack_close(a);
}

static void write_tar(const data_folder *f, char path[FILE_NAME_MAX])
{
    pack_images(f, "images.tar", PACK_TAR, path);
}

static void write_zip(const data_folder *f, char path[FILE_NAME_MAX])
{
    pack_images(f, "images.zip", PACK_ZIP, path);
}

static void write_records(const data_folder *f, char path[FILE_NAME_MAX])
{
    made file = {0};
    for (uint32_t n = 0; n < (uint32_t)train + HELD_OUT; n++) {
        const int64_t label = n % 10;
        made image = tree_png(n, 6, 4), features = {0};
        features_bytes(&features, "image/encoded", image.bytes, image.count);
        features_ints(&features, "image/class/label", &label, 1, true);
        example_add(&file, &features);
        made_free(&image);
    }
    data_write(f, "train.tfrecord", file.bytes, file.count);
    (void)data_folder_file(f, "train.tfrecord", path);
    made_free(&file);
}

#define OF_IMAGES                                                                                            \
    "  classes: 10\n  loss: softmax_cross_entropy\n"                                                         \
    "  layers:\n    - {kind: flatten}\n    - {kind: dense, units: 10}\n"
#define COLOUR "  input: {shape: [32, 32, 3]}\n" OF_IMAGES
#define GREY   "  input: {shape: [28, 28, 1]}\n" OF_IMAGES
#define FLAT   "  input: {shape: [784]}\n" OF_IMAGES
#define THREE  "  input: {shape: [3]}\n" OF_IMAGES
#define WORDS                                                                                                \
    "  input: {type: int32, classes: 256, shape: [8]}\n  classes: 256\n  loss: softmax_cross_entropy\n"      \
    "  layers:\n    - {kind: embedding, units: 8}\n    - {kind: dense, units: 256}\n"

static const struct subject {
    const char *source;
    void (*write)(const data_folder *f, char path[FILE_NAME_MAX]);
    const char *model;
    bool holds; // an index at least
} subjects[] = {
    {"auto", write_nothing, COLOUR, false},
    {"generated", write_nothing, FLAT, false},
    {"cifar10", write_cifar_folder, COLOUR, false},
    {"cifar10", write_cifar_archive, COLOUR, true},
    {"auto", write_cifar_archive, COLOUR, true},
    {"mnist", write_mnist_folder, GREY, true},
    {"mnist", write_mnist_packed, FLAT, true},
    {"auto", write_mnist_packed, GREY, true},
    {"generated", write_nothing, WORDS, false},
    {"tokens", write_tokens, WORDS, true},
    {"text", write_text, WORDS, true},
    {"csv", write_table, THREE, true},
    {"npy", write_arrays, COLOUR, false},
    {"images", write_images, COLOUR, true},
    {"images", write_tar, COLOUR, true},
    {"auto", write_zip, COLOUR, true},
    {"tfrecord", write_records, COLOUR, true},
    {"auto", write_text, WORDS, true},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

START_TEST(every_kind_of_source_is_looked_at)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[HR_KNOB_PIPELINE_SOURCE];
    for (size_t k = 0; row->choices[k] != NULL; k++) {
        size_t found = 0;
        for (size_t s = 0; s < SUBJECTS; s++) {
            found += strcmp(subjects[s].source, row->choices[k]) == 0;
        }
        ck_assert_msg(found > 0, "pipeline.source=%s has no files in this test", row->choices[k]);
    }
}
END_TEST

// ---- configurations -------------------------------------------------------------------------------------------

typedef struct drawn {
    uint8_t subject, value[HOST_AXES_MAX];
} drawn;

static const axis *host_axes[HOST_AXES_MAX];
static size_t host_axis_count;
static drawn kept[KEPT_MAX];
static size_t kept_count;
static bool met[HOST_AXES_MAX + 1][AXIS_VALUES_MAX][HOST_AXES_MAX]
               [AXIS_VALUES_MAX]; // the last first: subjects

// The pipeline's own, the batch it makes, and what decides the type that a batch has on the host.
static bool concerns_host(const axis *a)
{
    static const char *const others[] = {"batch.", "pipeline.", "precision.policy", "execution.mode",
                                         "offload.optimizer"};
    bool concerns = false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        concerns = concerns || strncmp(a->key, others[k], strlen(others[k])) == 0;
    }
    return concerns && a->id != HR_KNOB_PIPELINE_SOURCE;
}

static void choose_axes(void)
{
    const axis *all = NULL;
    const size_t count = axes_of_knobs(&all);
    for (size_t a = 1; a < count; a++) {
        if (concerns_host(&all[a]) && host_axis_count == HOST_AXES_MAX) {
            fprintf(stderr, "host ledger: no room for %s: HOST_AXES_MAX\n", all[a].key);
            exit(2);
        }
        if (concerns_host(&all[a])) {
            host_axes[host_axis_count++] = &all[a];
        }
    }
}

static bool apply(const drawn *d, hr_knobs *knobs)
{
    bool applied = true;
    for (size_t a = 0; a < host_axis_count; a++) {
        const char *value = host_axes[a]->values[d->value[a]];
        applied = applied && hr_knobs_set(knobs, host_axes[a]->id, value, NULL) == HR_OK;
    }
    return applied;
}

// The file of a cache lies among those of the test.
static void place_cache(const data_folder *f, hr_knobs *knobs)
{
    if (hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "file")) {
        ck_assert_int_eq(hr_knobs_set(knobs, HR_KNOB_PIPELINE_CACHE_PATH, f->path, NULL), HR_OK);
    }
}

static bool is_legal(const drawn *d)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    return hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "reference", NULL) == HR_OK && apply(d, &knobs) &&
           hr_knobs_validate(&knobs, NULL) == HR_OK;
}

// Marks the pairs of values that it has; returns how many are new.
static size_t meet(const drawn *d)
{
    size_t fresh = 0;
    for (size_t a = 0; a < host_axis_count; a++) {
        for (size_t b = 0; b < a; b++) {
            bool *pair = &met[a][d->value[a]][b][d->value[b]];
            fresh += !*pair;
            *pair = true;
        }
        bool *with = &met[HOST_AXES_MAX][d->subject][a][d->value[a]];
        fresh += !*with;
        *with = true;
    }
    return fresh;
}

static void draw_all(void)
{
    uint64_t random = 7;
    choose_axes();
    for (int n = 0; n < DRAWS && kept_count < KEPT_MAX; n++) {
        drawn d = {.subject = (uint8_t)(n % SUBJECTS)};
        for (size_t a = 0; a < host_axis_count; a++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            d.value[a] = (uint8_t)((random >> 33) % axis_value_count(host_axes[a]));
        }
        if (is_legal(&d) && meet(&d) > 0) {
            kept[kept_count++] = d;
        }
    }
}

START_TEST(every_value_meets_every_source)
{
    ck_assert_uint_lt(kept_count, KEPT_MAX); // none that brought something new was left out
    for (size_t s = 0; s < SUBJECTS; s++) {
        for (size_t a = 0; a < host_axis_count; a++) {
            for (size_t v = 0; v < axis_value_count(host_axes[a]); v++) {
                ck_assert_msg(met[HOST_AXES_MAX][s][a][v], "no configuration has %s=%s with source %zu",
                              host_axes[a]->key, host_axes[a]->values[v], s);
            }
        }
    }
}
END_TEST

// ---- the ledger -----------------------------------------------------------------------------------------------

static hr_preset *open_model(const data_folder *f, const char *model)
{
    char path[FILE_NAME_MAX], text[640];
    hr_preset *preset = NULL;
    hr_err err = {0};
    const int length = snprintf(text, sizeof text,
                                "device: {kind: reference, vram: 64MiB}\nmodel:\n  name: small\n%s", model);
    data_write(f, "small.yaml", text, (size_t)length);
    ck_assert_msg(hr_preset_open(data_folder_file(f, "small.yaml", path), false, &preset, NULL, &err) ==
                      HR_OK,
                  "%s", err.sentence);
    return preset;
}

static const char *text_of(const drawn *d, char text[1024])
{
    size_t used = (size_t)snprintf(text, 1024, "source %u:", d->subject);
    for (size_t a = 0; a < host_axis_count && used < 1024; a++) {
        used += (size_t)snprintf(text + used, 1024 - used, " %s=%s", host_axes[a]->key,
                                 host_axes[a]->values[d->value[a]]);
    }
    return text;
}

START_TEST(what_the_host_holds_is_what_was_planned)
{
    const drawn *d = &kept[STRIDE * _i];
    const struct subject *s = &subjects[d->subject];
    char path[FILE_NAME_MAX], why[512] = "", text[1024];
    uint64_t peak_bytes = 0;
    const data_folder files = data_folder_make(), models = data_folder_make();
    s->write(&files, path);
    hr_preset *preset = open_model(&models, s->model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, s->source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    ck_assert(apply(d, &knobs));
    place_cache(&models, &knobs);
    const exactness found = exactness_of(preset, &knobs, &peak_bytes, why, sizeof why);
    ck_assert_msg(found == EXACTNESS_HOLDS, "%s: %s", text_of(d, text), why);
    hr_preset_close(preset);
    data_folder_remove(&files);
    data_folder_remove(&models);
}
END_TEST

// One step, planned or run, and how it ended.
static hr_engine_state one_step(const hr_preset *preset, const hr_knobs *knobs, bool plan_only,
                                hr_report *out)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
    const hr_engine_options options = {.plan_only = plan_only};
    hr_engine *e = NULL;
    ck_assert_int_eq(hr_engine_create(preset, knobs, &options, &e, NULL), HR_OK);
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(e, &idle);
    }
    const hr_engine_state state = hr_engine_get_state(e);
    ck_assert_int_eq(hr_engine_report(e, out, NULL), HR_OK);
    hr_engine_destroy(e);
    return state;
}

static hr_report planned(const hr_preset *preset, const hr_knobs *knobs)
{
    hr_report r;
    (void)one_step(preset, knobs, true, &r);
    return r;
}

static uint64_t source_bytes(const hr_report *r)
{
    ck_assert_uint_gt(r->host.stage_count, 0);
    ck_assert_str_eq(r->host.stages[0].name, "source");
    return r->host.stages[0].peak_bytes;
}

// What the workbench shows beside a knob is what the plan says, of one program and of both.
START_TEST(a_what_if_has_the_plans_host_bytes)
{
    const drawn *d = &kept[STRIDE * _i];
    const struct subject *s = &subjects[d->subject];
    char path[FILE_NAME_MAX];
    const data_folder files = data_folder_make(), models = data_folder_make();
    hr_planner *planner = NULL;
    hr_whatif whatif;
    s->write(&files, path);
    hr_preset *preset = open_model(&models, s->model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, s->source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    ck_assert(apply(d, &knobs));
    place_cache(&models, &knobs);
    hr_report r = planned(preset, &knobs);
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_plan(planner, &knobs, &whatif, NULL), HR_OK);
    ck_assert_uint_eq(whatif.host_bytes, r.host.peak_bytes);
    ck_assert_uint_eq(whatif.h2d_bytes, r.h2d_bytes_per_step);
    hr_planner_close(planner);
    hr_report_deinit(&r);
    hr_preset_close(preset);
    data_folder_remove(&files);
    data_folder_remove(&models);
}
END_TEST

// ---- its limit ------------------------------------------------------------------------------------------------

static void set_limit(hr_knobs *knobs, uint64_t bytes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64 "B", bytes);
    ck_assert_int_eq(hr_knobs_set(knobs, HR_KNOB_PIPELINE_RAM_LIMIT, text, NULL), HR_OK);
}

// What is named to be tried is planned again, and keeps the limit it is under.
static void judge_fixes(const hr_preset *preset, const hr_knobs *knobs, const hr_report_oom *oom)
{
    ck_assert_uint_gt(oom->fix_count, 0); // the limit itself, at least
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        char pairs[sizeof oom->fixes[k].knobs], *rest = NULL;
        hr_knobs turned = *knobs;
        hr_report r;
        (void)snprintf(pairs, sizeof pairs, "%s", oom->fixes[k].knobs);
        for (char *pair = strtok_r(pairs, " ", &rest); pair != NULL; pair = strtok_r(NULL, " ", &rest)) {
            ck_assert_msg(hr_knobs_set_pair(&turned, pair, NULL) == HR_OK, "%s", oom->fixes[k].knobs);
        }
        ck_assert_msg(one_step(preset, &turned, true, &r) == HR_ENGINE_IDLE, "%s", oom->fixes[k].knobs);
        ck_assert_uint_eq(r.host.peak_bytes, oom->fixes[k].host_bytes);
        ck_assert_uint_eq(r.memory.peak_in_use_bytes, oom->fixes[k].peak_bytes);
        ck_assert_uint_le(r.host.peak_bytes, hr_knob_bytes(&turned, HR_KNOB_PIPELINE_RAM_LIMIT, UINT64_MAX));
        hr_report_deinit(&r);
    }
}

// The first stage with which the sum is beyond the limit.
static const char *crossing(const hr_report *ledger, uint64_t limit_bytes)
{
    uint64_t sum_bytes = 0;
    for (uint32_t k = 0; k < ledger->host.stage_count; k++) {
        sum_bytes += ledger->host.stages[k].peak_bytes;
        if (sum_bytes > limit_bytes) {
            return ledger->host.stages[k].name;
        }
    }
    return "none";
}

// Plan and run say the same of a limit: kept it is as if there were none, else both refuse in the same words, and the report has
// the ledger that was refused.
static void judge_limit(const hr_preset *preset, const hr_knobs *knobs, const hr_report *free,
                        uint64_t limit_bytes)
{
    const bool keeps = free->host.peak_bytes <= limit_bytes;
    hr_knobs limited = *knobs;
    hr_report r[2];
    set_limit(&limited, limit_bytes);
    for (int k = 0; k < 2; k++) {
        const hr_engine_state state = one_step(preset, &limited, k == 0, &r[k]);
        ck_assert_msg(state == (keeps ? HR_ENGINE_IDLE : HR_ENGINE_OOM), "%s of %" PRIu64 " under %" PRIu64,
                      k == 0 ? "plan" : "run", free->host.peak_bytes, limit_bytes);
        ck_assert_uint_eq(r[k].host.peak_bytes, free->host.peak_bytes);
        ck_assert_int_eq(r[k].oom.cause, keeps ? HR_OOM_NONE : HR_OOM_PIPELINE);
        ck_assert_str_eq(r[k].oom.tensor, keeps ? "" : crossing(free, limit_bytes));
    }
    ck_assert_str_eq(r[0].oom.sentence, r[1].oom.sentence);
    ck_assert_str_eq(r[0].oom.hint, r[1].oom.hint);
    if (!keeps) {
        judge_fixes(preset, &limited, &r[0].oom);
    }
    hr_report_deinit(&r[0]);
    hr_report_deinit(&r[1]);
}

START_TEST(a_limit_that_is_the_ledger_holds_and_one_byte_less_does_not)
{
    const drawn *d = &kept[STRIDE * _i];
    const struct subject *s = &subjects[d->subject];
    char path[FILE_NAME_MAX];
    const data_folder files = data_folder_make(), models = data_folder_make();
    s->write(&files, path);
    hr_preset *preset = open_model(&models, s->model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, s->source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    ck_assert(apply(d, &knobs));
    place_cache(&models, &knobs);
    // Under a limit autotune takes less instead: tests/unit/test_pipeline.c.
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_AUTOTUNE, "off", NULL), HR_OK);
    hr_report r = planned(preset, &knobs);
    judge_limit(preset, &knobs, &r, r.host.peak_bytes);
    judge_limit(preset, &knobs, &r, r.host.peak_bytes - 1);
    judge_limit(preset, &knobs, &r, r.host.peak_bytes / 128 * (uint64_t)(_i % 160));
    hr_report_deinit(&r);
    hr_preset_close(preset);
    data_folder_remove(&files);
    data_folder_remove(&models);
}
END_TEST

// Of as many samples, a cache is in it.
static uint64_t host_bytes_of(const hr_preset *preset, const hr_knobs *knobs)
{
    hr_report r = planned(preset, knobs);
    ck_assert_str_eq(r.host.unknown, "");
    const uint64_t bytes = r.host.peak_bytes;
    hr_report_deinit(&r);
    return bytes;
}

// pipeline.normalise says in its row for which sources it is: those of images are among them.
START_TEST(whoever_has_images_can_send_their_bytes)
{
    const struct subject *s = &subjects[_i];
    const bool images =
        strcmp(s->model, COLOUR) == 0 || strcmp(s->model, GREY) == 0 || strcmp(s->model, FLAT) == 0;
    static const char *const places[] = {"host", "device"};
    char path[FILE_NAME_MAX];
    uint64_t image_bytes[2];
    const data_folder files = data_folder_make(), models = data_folder_make();
    s->write(&files, path);
    hr_preset *preset = open_model(&models, s->model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, s->source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_NORMALISE, places[k], NULL), HR_OK);
        hr_report r = planned(preset, &knobs);
        ck_assert_str_eq(r.host.unknown, "");
        image_bytes[k] =
            r.h2d_bytes_per_step - (uint64_t)hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE) * sizeof(int32_t);
        hr_report_deinit(&r);
    }
    ck_assert_msg(images ? image_bytes[0] == 4 * image_bytes[1] : image_bytes[0] == image_bytes[1],
                  "source %s", s->source);
    hr_preset_close(preset);
    data_folder_remove(&files);
    data_folder_remove(&models);
}
END_TEST

// Packed or not: an archive is held whole, plain files of records are not held. Another data set under the same names is another
// plan, none is no plan, and the first again is the first plan.
START_TEST(a_plan_reads_its_files_anew_when_they_change)
{
    const struct subject *s = &subjects[_i];
    char path[FILE_NAME_MAX];
    const data_folder files = data_folder_make(), models = data_folder_make();
    hr_preset *preset = open_model(&models, s->model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, s->source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_CACHE, "ram", NULL), HR_OK);
    s->write(&files, path);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    hr_report r = planned(preset, &knobs);
    ck_assert_str_eq(r.host.unknown, "");
    ck_assert_uint_eq(source_bytes(&r) > 0, s->holds);
    hr_report_deinit(&r);
    if (path[0] != '\0') {
        const uint64_t bytes = host_bytes_of(preset, &knobs);
        data_folder_remove(&files);
        r = planned(preset, &knobs);
        ck_assert_uint_eq(r.host.stage_count, 0);
        ck_assert_uint_gt(strlen(r.host.unknown), 10);
        hr_report_deinit(&r);
        ck_assert_int_eq(mkdir(files.path, 0700), 0);
        train = FEWER;
        s->write(&files, path);
        ck_assert_uint_lt(host_bytes_of(preset, &knobs), bytes);
        data_folder_remove(&files);
        ck_assert_int_eq(mkdir(files.path, 0700), 0);
        train = TRAIN;
        s->write(&files, path);
        ck_assert_uint_eq(host_bytes_of(preset, &knobs), bytes);
    }
    hr_preset_close(preset);
    data_folder_remove(&files);
    data_folder_remove(&models);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    axes_have_whole_sets = true; // these are small
    draw_all();
    printf("%zu configurations of %zu axes and %d sources\n", kept_count, host_axis_count, (int)SUBJECTS);
    fflush(stdout);
    TCase *tests = tcase_create("host ledger");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_kind_of_source_is_looked_at);
    tcase_add_test(tests, every_value_meets_every_source);
    tcase_add_loop_test(tests, what_the_host_holds_is_what_was_planned, 0, (int)kept_count / STRIDE);
    tcase_add_loop_test(tests, a_what_if_has_the_plans_host_bytes, 0, (int)kept_count / STRIDE);
    tcase_add_loop_test(tests, a_limit_that_is_the_ledger_holds_and_one_byte_less_does_not, 0,
                        (int)kept_count / STRIDE);
    tcase_add_loop_test(tests, whoever_has_images_can_send_their_bytes, 0, SUBJECTS);
    tcase_add_loop_test(tests, a_plan_reads_its_files_anew_when_they_change, 0, SUBJECTS);
    Suite *suite = suite_create("host ledger");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
