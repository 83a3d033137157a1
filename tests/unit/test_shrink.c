// SPDX-License-Identifier: Apache-2.0
// Filters that were pruned are taken out of weights and preset: models drawn from a generator answer as before, and the smaller ones are
// planned, trained and evaluated like any other. Nothing half done is left where memory is short or a file cannot be written.
#include <math.h>
#include <sys/stat.h>

#include "headroom/deploy.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "train/engine_impl.h"
#include "unit/small_engine.h"

enum { TEXT_MAX = 8192, DRAWN = 24, IMAGES = 16, CLASSES = 10 };

static char images[160], save_path[128], out_path[128], yaml_path[128];
static char words[TEXT_MAX];
static uint64_t state;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static void add(const char *layer)
{
    const size_t length = strlen(words);
    ck_assert_int_lt(snprintf(words + length, sizeof words - length, "    - {%s}\n", layer),
                     (int)(sizeof words - length));
}

static const char *an_act(void)
{
    static const char *const acts[] = {"relu", "tanh", "gelu", "silu", "none", "relu6", "sigmoid"};
    return acts[draw(sizeof acts / sizeof *acts)];
}

static void add_conv(const char *kind, const char *more)
{
    char layer[256];
    (void)snprintf(layer, sizeof layer,
                   "kind: %s, filters: %u, kernel: %u, padding: same, bias: %s, activation: %s%s", kind,
                   2 + draw(5), 1 + 2 * draw(2), draw(2) == 0 ? "true" : "false", an_act(), more);
    add(layer);
}

// A residual block, or two branches that are joined; of what stands above.
static void add_block(int number)
{
    char layer[256];
    (void)snprintf(layer, sizeof layer, "name: begin%d, kind: conv2d, filters: 4, kernel: 1", number);
    add(layer);
    add_conv("conv2d", "");
    add("kind: batch_norm, activation: relu");
    (void)snprintf(layer, sizeof layer, "name: end%d, kind: conv2d, filters: 4, kernel: 3, padding: same",
                   number);
    add(layer);
    if (draw(2) == 0) {
        (void)snprintf(layer, sizeof layer, "kind: add, inputs: [begin%d, end%d]", number, number);
    } else {
        (void)snprintf(layer, sizeof layer, "kind: concat, inputs: [begin%d, end%d], axis: -1", number,
                       number);
    }
    add(layer);
}

static void add_one(int number)
{
    static const char *const others[] = {"kind: batch_norm, activation: relu",
                                         "kind: depthwise_conv2d, kernel: 3, padding: same, multiplier: 2",
                                         "kind: max_pool, size: 2, stride: 1",
                                         "kind: avg_pool, size: 2, stride: 1",
                                         "kind: dropout, rate: 0.3",
                                         "kind: upsample, size: 2",
                                         "kind: zero_pad, padding: 1"};
    switch (draw(4)) {
    case 0:
        add_conv("conv2d", "");
        return;
    case 1:
        add_conv("separable_conv2d", "");
        return;
    case 2:
        add_block(number);
        return;
    default:
        add(others[draw(sizeof others / sizeof *others)]);
    }
}

static void begin_model(void)
{
    (void)snprintf(words, sizeof words,
                   "device: {kind: reference, vram: 64MiB}\nbatch: {size: 8}\npipeline: {shuffle: 64}\n"
                   "optimizer: {kind: adam, learning_rate: 0.01}\n"
                   "compress: {prune: 'constant:0.5:0:-1:1', prune_structure: filter}\n"
                   "model:\n  name: drawn\n  input: {shape: [32, 32, 3]}\n  classes: 10\n"
                   "  loss: softmax_cross_entropy\n  layers:\n");
}

static void end_model(const char *act)
{
    char layer[128];
    (void)snprintf(layer, sizeof layer, "kind: conv2d, filters: 5, kernel: 1, activation: %s", act);
    add(layer);
    add(draw(2) == 0 ? "kind: flatten" : "kind: global_avg_pool");
    (void)snprintf(layer, sizeof layer, "kind: dense, units: 7, activation: %s", act);
    add(layer);
    add("kind: dense, units: 10");
}

static void draw_model(int seed)
{
    state = (uint64_t)seed * 977 + 5;
    begin_model();
    add("kind: conv2d, filters: 6, kernel: 3, stride: 4, activation: relu"); // one that may go
    for (int k = 0; k < 4; k++) {
        add_one(k);
    }
    add_conv("conv2d", ", stride: 2");
    end_model("relu");
}

static hr_preset *opened(const char *path)
{
    hr_err err = {0};
    hr_preset *p = NULL;
    ck_assert_msg(hr_preset_open(path, false, &p, NULL, &err) == HR_OK, "%s\n%s", err.sentence, words);
    return p;
}

static void write_words(const char *path)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

// The fixture's preset becomes the one of `words`, and is trained for two steps.
static hr_knobs train_words(void)
{
    char path[128], save[160];
    hr_preset_close(preset);
    write_words(file_in("drawn.yaml", path));
    preset = opened(path);
    (void)file_in("out.safetensors", out_path);
    (void)file_in("out.yaml", yaml_path);
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("w.safetensors", save_path));
    hr_engine *e = create((const char *const[]){write_images(IMAGES, 24, images), save, NULL}, NULL);
    run_steps(e, 2);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s\n%s", hr_engine_error(e)->sentence, words);
    hr_engine_destroy(e);
    hr_err err = {0};
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, images, &err), HR_OK);
    return knobs;
}

static hr_deploy deployed(const hr_preset *of, const hr_knobs *knobs, const hr_deploy_request *request)
{
    hr_err err = {0};
    hr_deploy d;
    ck_assert_msg(hr_deploy_run(of, knobs, request, &d, &err) == HR_OK, "%s\n%s", err.sentence, words);
    return d;
}

START_TEST(a_smaller_model_gives_the_same_answers)
{
    draw_model(_i);
    const hr_knobs knobs = train_words();
    hr_deploy d = deployed(preset, &knobs, &(hr_deploy_request){.save = save_path, .out = out_path});
    ck_assert_uint_gt(d.layer_count, 1);
    ck_assert_uint_lt(d.deployed_parameters, d.parameters);
    ck_assert_uint_lt(d.deployed.ram_bytes, d.stripped.ram_bytes);
    ck_assert_msg(fabs(d.before.loss - d.after.loss) < 1e-5 * (1 + d.before.loss), "%.9g %.9g\n%s",
                  d.before.loss, d.after.loss, words);
    ck_assert_double_eq(d.before.accuracy, d.after.accuracy);
    for (size_t k = 0; k < d.layer_count; k++) { // half of them, to even, and at least one
        ck_assert_uint_le(d.layers[k].deployed_filters, d.layers[k].filters / 2 + 1);
        ck_assert_uint_ge(d.layers[k].deployed_filters, 1);
    }
    hr_deploy_deinit(&d);
}
END_TEST

// ---- logits ----------------------------------------------------------------------------------------------------

// One of each kind; how wide it is, and its activations, are drawn.
static void draw_of_kind(int kind)
{
    char layer[256];
    const unsigned groups = 1 + draw(2), wide = 2 * groups * (1 + draw(3));
    (void)snprintf(layer, sizeof layer, "kind: conv2d, filters: %u, kernel: 3, stride: 4, activation: tanh",
                   6 + draw(6));
    add(layer);
    switch (kind) {
    case 0: // plain
        add_conv("conv2d", "");
        break;
    case 1: // residual
        add("name: begin, kind: conv2d, filters: 5, kernel: 1");
        add_conv("conv2d", "");
        add("name: end, kind: conv2d, filters: 5, kernel: 3, padding: same");
        add("kind: add, inputs: [begin, end]");
        break;
    case 2:
        add("kind: depthwise_conv2d, kernel: 3, padding: same, multiplier: 2");
        break;
    case 3: // grouped, behind and in front of others
        (void)snprintf(layer, sizeof layer, "kind: conv2d, filters: %u, kernel: 1", wide);
        add(layer);
        (void)snprintf(layer, sizeof layer, "kind: conv2d, filters: %u, kernel: 3, padding: same, groups: %u",
                       wide, 2 * groups);
        add(layer);
        break;
    case 4:
        add("kind: batch_norm, activation: relu");
        break;
    case 5:
        add_conv("separable_conv2d", "");
        break;
    case 6: // joined
        add("name: begin, kind: conv2d, filters: 4, kernel: 1");
        add("name: end, kind: conv2d, filters: 3, kernel: 1");
        add("kind: concat, inputs: [begin, end], axis: -1");
        add("kind: batch_norm");
        break;
    default:
        add("kind: conv2d_transpose, filters: 5, kernel: 2, stride: 2");
        break;
    }
    add_conv("conv2d", "");
}

static void draw_kind(int kind)
{
    state = (uint64_t)kind * 3931 + 17;
    begin_model();
    draw_of_kind(kind);
    end_model("tanh"); // which leaves no model without an answer
}

// Of each training image, as a teacher of that preset and save answers.
static void logits_of(const char *of, const char *weights, float logits[IMAGES * CLASSES])
{
    char teacher[160], save[200];
    (void)snprintf(teacher, sizeof teacher, "compress.distill=%s", of);
    (void)snprintf(save, sizeof save, "compress.distill_weights=%s", weights);
    hr_engine *e = create((const char *const[]){images, teacher, save, "compress.distill_cache=on",
                                                "compress.prune=none", "device.kind=cpu", NULL},
                          NULL);
    run_steps(e, 1);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s\n%s", hr_engine_error(e)->sentence, words);
    ck_assert_ptr_nonnull(e->answers);
    memcpy(logits, e->answers, IMAGES * CLASSES * sizeof *logits);
    hr_engine_destroy(e);
}

START_TEST(each_logit_of_a_smaller_model_is_that_of_the_masked_one)
{
    static float masked[IMAGES * CLASSES], narrow[IMAGES * CLASSES];
    char path[128];
    double largest = 0, apart = 0, among = 0;
    draw_kind(_i);
    const hr_knobs knobs = train_words();
    hr_deploy d = deployed(preset, &knobs, &(hr_deploy_request){.save = save_path, .out = out_path});
    ck_assert_uint_gt(d.layer_count, 0);
    hr_deploy_deinit(&d);
    logits_of(file_in("drawn.yaml", path), save_path, masked);
    logits_of(yaml_path, out_path, narrow);
    for (int k = 0; k < IMAGES * CLASSES; k++) {
        largest = fmax(largest, fabs((double)masked[k]));
        apart = fmax(apart, fabs((double)masked[k] - (double)narrow[k]));
        among = fmax(among, fabs((double)masked[k] - (double)masked[k % CLASSES])); // to the first image's
    }
    ck_assert_double_gt(among, 1e-3 * largest);
    ck_assert_msg(apart <= 1e-4 * largest, "%g of %g\n%s", apart, largest, words);
}
END_TEST

// ---- the smaller model ----------------------------------------------------------------------------------------

// What was written is an ordinary preset and a save of it.
START_TEST(a_smaller_model_is_one_like_any_other)
{
    const hr_engine_options plan_only = {.plan_only = true};
    hr_err err = {0};
    hr_engine *e = NULL;
    draw_model(_i);
    hr_knobs knobs = train_words();
    hr_deploy d = deployed(preset, &knobs, &(hr_deploy_request){.save = save_path, .out = out_path});
    hr_preset *narrower = opened(yaml_path);
    knobs = *hr_preset_knobs(narrower);
    ck_assert_str_eq(hr_knob_text(&knobs, HR_KNOB_PIPELINE_PATH), folder); // as it was turned
    hr_deploy again = deployed(narrower, &knobs, &(hr_deploy_request){.save = out_path});
    ck_assert_double_eq(again.before.loss, d.after.loss);
    ck_assert_uint_eq(again.stripped.ram_bytes, d.deployed.ram_bytes);
    ck_assert_uint_eq(again.layer_count, 0);
    ck_assert_int_eq(hr_engine_create(narrower, &knobs, &plan_only, &e, &err), HR_OK);
    run_steps(e, 1);
    hr_report plan = report_of(e);
    hr_engine_destroy(e);
    ck_assert_uint_eq(plan.model.parameters, d.deployed_parameters);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_TRAIN_RESUME, out_path, &err), HR_OK);
    ck_assert_int_eq(hr_engine_create(narrower, &knobs, NULL, &e, &err), HR_OK);
    run_steps(e, 4);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report run = report_of(e);
    ck_assert_uint_eq(run.train.steps, 4);
    ck_assert_uint_eq(run.memory.peak_in_use_bytes, plan.memory.peak_in_use_bytes);
    hr_report_deinit(&plan);
    hr_report_deinit(&run);
    hr_engine_destroy(e);
    hr_preset_close(narrower);
    hr_deploy_deinit(&d);
    hr_deploy_deinit(&again);
}
END_TEST

// Under a schedule that is over.
START_TEST(a_plan_says_what_is_left)
{
    const hr_engine_options options = {.plan_only = true};
    draw_model(_i);
    hr_knobs knobs = train_words();
    for (int mode = 0; mode < HR_QUANTIZE_COUNT; mode++) {
        hr_err err = {0};
        hr_engine *e = NULL;
        const hr_quantize quantize = (hr_quantize)mode;
        hr_deploy d = deployed(preset, &knobs, &(hr_deploy_request){.save = save_path, .quantize = quantize});
        hr_knobs planned = knobs;
        ck_assert_int_eq(hr_knobs_set(&planned, HR_KNOB_COMPRESS_QUANTIZE, hr_quantize_name(quantize), &err),
                         HR_OK);
        ck_assert_msg(hr_engine_create(preset, &planned, &options, &e, &err) == HR_OK, "%s", err.sentence);
        hr_report r = report_of(e);
        ck_assert_uint_eq(r.deploy.stripped_bytes, d.stripped.ram_bytes);
        ck_assert_uint_eq(r.deploy.deployed_bytes, d.deployed.ram_bytes);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
        hr_deploy_deinit(&d);
    }
}
END_TEST

START_TEST(whole_numbers_are_made_of_what_is_left)
{
    draw_model(1);
    const hr_knobs knobs = train_words();
    for (int mode = 1; mode < HR_QUANTIZE_COUNT; mode++) {
        hr_deploy d =
            deployed(preset, &knobs,
                     &(hr_deploy_request){.save = save_path, .out = out_path, .quantize = (hr_quantize)mode});
        ck_assert_uint_gt(d.layer_count, 0);
        ck_assert_uint_lt(d.deployed.ram_bytes, d.stripped.ram_bytes / 2);
        hr_preset *narrower = opened(yaml_path);
        hr_deploy again =
            deployed(narrower, hr_preset_knobs(narrower), &(hr_deploy_request){.save = out_path});
        ck_assert(again.was_quantized);
        ck_assert_double_eq(again.before.loss, d.after.loss);
        hr_preset_close(narrower);
        hr_deploy_deinit(&d);
        hr_deploy_deinit(&again);
    }
}
END_TEST

// Read as the whole model they do not fit: their own preset is what helps, as whole numbers too.
START_TEST(narrower_weights_without_their_preset_are_told_it)
{
    char hint[400], resume[160];
    hr_err err = {0};
    hr_deploy d;
    draw_model(1);
    const hr_knobs knobs = train_words();
    for (int mode = 0; mode < HR_QUANTIZE_COUNT; mode++) {
        d = deployed(preset, &knobs,
                     &(hr_deploy_request){.save = save_path, .out = out_path, .quantize = (hr_quantize)mode});
        hr_deploy_deinit(&d);
        ck_assert_int_eq(hr_deploy_run(preset, &knobs, &(hr_deploy_request){.save = out_path}, &d, &err),
                         HR_SAVE);
        (void)snprintf(hint, sizeof hint, "headroom export %s --save %s", yaml_path, out_path);
        ck_assert_str_eq(err.hint, hint);
        (void)snprintf(resume, sizeof resume, "train.resume=%s", out_path);
        hr_engine *e = create((const char *const[]){images, resume, NULL}, NULL);
        run_steps(e, 1);
        (void)snprintf(hint, sizeof hint, "headroom run %s -s train.resume=%s", yaml_path, out_path);
        ck_assert_str_eq(hr_engine_error(e)->hint, hint);
        hr_engine_destroy(e);
    }
}
END_TEST

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

START_TEST(a_preset_of_ones_own_is_not_written_over)
{
    hr_err err = {0};
    hr_deploy d;
    char over[128];
    draw_model(2);
    const hr_knobs knobs = train_words();
    write_words(yaml_path);
    hr_deploy_request request = {.save = save_path, .out = out_path};
    ck_assert_int_eq(hr_deploy_run(preset, &knobs, &request, &d, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "out.yaml: needed a preset that export wrote or no file"));
    ck_assert_str_eq(err.hint, "-o ANOTHER.safetensors, or --force to replace it");
    ck_assert(!is_there(out_path));
    request.replaces = true;
    d = deployed(preset, &knobs, &request);
    hr_deploy_deinit(&d);
    request.replaces = false; // what it wrote it replaces
    d = deployed(preset, &knobs, &request);
    hr_deploy_deinit(&d);
    hr_knobs narrow =
        knobs; // of what it wrote: nothing is left to take out, and its preset would be another's
    hr_preset *narrower = opened(yaml_path);
    request =
        (hr_deploy_request){.save = out_path, .out = file_in("again.safetensors", over), .replaces = true};
    char beside[128];
    ck_assert_int_eq(rename(yaml_path, file_in("again.yaml", beside)), 0);
    ck_assert_int_eq(hr_knobs_set(&narrow, HR_KNOB_COMPRESS_PRUNE, "none", NULL), HR_OK);
    ck_assert_int_eq(hr_deploy_run(narrower, &narrow, &request, &d, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "again.yaml is of narrower weights than these"));
    hr_preset_close(narrower);
    unlink(beside);
    request =
        (hr_deploy_request){.save = save_path, .out = file_in("drawn.safetensors", over), .replaces = true};
    ck_assert_int_eq(hr_deploy_run(preset, &knobs, &request, &d, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "drawn.yaml: needed a file beside those"));
    ck_assert(is_there(save_path));
}

START_TEST(a_narrower_preset_is_none_of_what_is_read)
{
    hr_err err = {0};
    hr_deploy d;
    char kept[128], out[128], path[128];
    draw_model(2);
    const hr_knobs knobs = train_words();
    ck_assert_int_eq(rename(save_path, file_in("kept.yaml", kept)), 0);
    hr_deploy_request request = {.save = kept, .out = file_in("kept.safetensors", out), .replaces = true};
    ck_assert_int_eq(hr_deploy_run(preset, &knobs, &request, &d, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "kept.yaml: needed a file beside those"));
    ck_assert(is_there(kept) && !is_there(out));
    (void)snprintf(words, sizeof words, "extends: ./drawn.yaml\n");
    write_words(file_in("derived.yaml", path));
    hr_preset_close(preset);
    preset = opened(path);
    request.out = file_in("drawn.safetensors", out);
    ck_assert_int_eq(hr_deploy_run(preset, &knobs, &request, &d, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "drawn.yaml: needed a file beside those"));
    ck_assert(!is_there(out));
    unlink(kept);
    unlink(path);
}
END_TEST

// Both files are there, or neither.
static void fail_each(uint64_t (*fail_at)(uint64_t))
{
    draw_model(3);
    const hr_knobs knobs = train_words();
    const hr_deploy_request request = {.save = save_path, .out = out_path};
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK && nth < 100000; nth += 1 + nth / 16) {
        hr_err err = {0};
        hr_deploy d;
        const int64_t live = hr_host_mem_live();
        (void)fail_at(nth);
        status = hr_deploy_run(preset, &knobs, &request, &d, &err);
        (void)fail_at(0);
        if (status == HR_OK) {
            hr_deploy_deinit(&d);
        }
        ck_assert_msg(is_there(out_path) == (status == HR_OK), "request %d: %s", (int)nth, err.sentence);
        ck_assert_msg(is_there(yaml_path) == (status == HR_OK), "request %d: %s", (int)nth, err.sentence);
        ck_assert_msg(hr_host_mem_live() == live, "request %d leaves something", (int)nth);
    }
    ck_assert_int_eq(status, HR_OK);
}

START_TEST(memory_that_is_short_leaves_nothing_behind)
{
    fail_each(hr_host_mem_fail_at);
}
END_TEST

START_TEST(files_that_fail_leave_nothing_behind)
{
    fail_each(file_fail_at);
}
END_TEST

static void read_into(const char *path, char to[TEXT_MAX])
{
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    to[fread(to, 1, TEXT_MAX - 1, f)] = '\0';
    ck_assert_int_eq(fclose(f), 0);
}

// Other words and other weights than what stands there.
static hr_status deploy_another(hr_knobs *knobs, int number)
{
    hr_err err = {0};
    hr_deploy d;
    const hr_deploy_request request = {.save = save_path,
                                       .out = out_path,
                                       .quantize = number % 2 == 0 ? HR_QUANTIZE_NONE : HR_QUANTIZE_INT8};
    ck_assert_int_eq(
        hr_knobs_set(knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE, number % 2 == 0 ? "0.5" : "0.25", &err), HR_OK);
    const hr_status status = hr_deploy_run(preset, knobs, &request, &d, &err);
    if (status == HR_OK) {
        hr_deploy_deinit(&d);
    }
    return status;
}

// Where the second of two renames fails, too: what stands there is a preset with its own weights.
START_TEST(a_preset_never_stands_beside_weights_it_does_not_fit)
{
    enum { LAST_OPERATIONS = 12 };
    static char words_before[TEXT_MAX], before[TEXT_MAX], words_after[TEXT_MAX], after[TEXT_MAX];
    draw_model(3);
    hr_knobs knobs = train_words();
    (void)file_fail_at(0);
    ck_assert_int_eq(deploy_another(&knobs, 0), HR_OK);
    const uint64_t count = file_fail_at(0);
    int refused = 0, passed = 1;
    for (uint64_t nth = count - LAST_OPERATIONS; nth <= count + LAST_OPERATIONS; nth++) {
        read_into(yaml_path, words_before);
        read_into(out_path, before);
        (void)file_fail_at(nth);
        const hr_status status = deploy_another(&knobs, passed);
        (void)file_fail_at(0);
        read_into(yaml_path, words_after);
        read_into(out_path, after);
        ck_assert_int_eq(strcmp(words_before, words_after) == 0, status != HR_OK);
        ck_assert_int_eq(memcmp(before, after, sizeof before) == 0, status != HR_OK);
        passed += status == HR_OK;
        refused += status != HR_OK;
    }
    ck_assert_int_ge(refused, 8);
    ck_assert_int_ge(passed, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shrink");
    TCase *tests = tcase_create("models");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_loop_test(tests, a_smaller_model_gives_the_same_answers, 0, DRAWN);
    tcase_add_loop_test(tests, each_logit_of_a_smaller_model_is_that_of_the_masked_one, 0, 8);
    tcase_add_loop_test(tests, a_smaller_model_is_one_like_any_other, 0, DRAWN / 4);
    tcase_add_loop_test(tests, a_plan_says_what_is_left, 0, DRAWN / 4);
    tcase_add_test(tests, whole_numbers_are_made_of_what_is_left);
    tcase_add_test(tests, narrower_weights_without_their_preset_are_told_it);
    tcase_add_test(tests, a_preset_of_ones_own_is_not_written_over);
    tcase_add_test(tests, a_narrower_preset_is_none_of_what_is_read);
    tcase_add_test(tests, memory_that_is_short_leaves_nothing_behind);
    tcase_add_test(tests, files_that_fail_leave_nothing_behind);
    tcase_add_test(tests, a_preset_never_stands_beside_weights_it_does_not_fit);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
