// SPDX-License-Identifier: Apache-2.0
// What adapters learned, merged into the weights: W + alpha / R · A·B in double, of every tiny model, read from the files by
// ourselves; the same loss, whatever the base was held as; a file that is a save of the model without compress.lora. And adapters alone.
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/deploy.h"

#include "short_runs.h"

static char save[64], out[96], more[96], save_pair[96], resume_out[128];

static void name_files(void)
{
    (void)snprintf(save, sizeof save, "/tmp/headroom-merge-%ld.safetensors", (long)getpid());
    (void)snprintf(out, sizeof out, "%s.out.safetensors", save);
    (void)snprintf(more, sizeof more, "%s.more.safetensors", save);
    (void)snprintf(save_pair, sizeof save_pair, "train.save=%s", save);
    (void)snprintf(resume_out, sizeof resume_out, "train.resume=%s", out);
}

static void remove_files(void)
{
    unlink(save);
    unlink(out);
    unlink(more);
}

// ---- files, read by ourselves -----------------------------------------------------------------------------------

typedef struct file {
    char *bytes;
    const char *data;
    json_t *header;
} file;

static file read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    const size_t length = (size_t)ftell(f);
    file made = {.bytes = malloc(length)};
    rewind(f);
    ck_assert_uint_eq(fread(made.bytes, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
    uint64_t header = 0;
    memcpy(&header, made.bytes, 8);
    made.data = made.bytes + 8 + header;
    made.header = json_loadb(made.bytes + 8, header, 0, NULL);
    ck_assert_ptr_nonnull(made.header);
    return made;
}

static void close_file(file *f)
{
    json_decref(f->header);
    free(f->bytes);
}

static const char *fact(const file *f, const char *key)
{
    return json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
}

// Float32 alone. NULL: it has none of that name.
static const float *tensor(const file *f, const char *name, size_t *rows, size_t *columns)
{
    const json_t *entry = json_object_get(f->header, name);
    const json_t *shape = json_object_get(entry, "shape");
    const size_t rank = json_array_size(shape);
    if (entry == NULL) {
        return NULL;
    }
    ck_assert_msg(strcmp(json_string_value(json_object_get(entry, "dtype")), "F32") == 0, "%s", name);
    *rows = 1;
    for (size_t k = 0; k + 1 < rank; k++) {
        *rows *= (size_t)json_integer_value(json_array_get(shape, k));
    }
    *columns = (size_t)json_integer_value(json_array_get(shape, rank - 1));
    return (const float *)(const void *)(f->data + json_integer_value(json_array_get(
                                                       json_object_get(entry, "data_offsets"), 0)));
}

static bool ends(const char *name, const char *with)
{
    const size_t length = strlen(name), least = strlen(with);
    return length >= least && strcmp(name + length - least, with) == 0;
}

// "h0_attn/query_weights" or "conv/kernel", of "h0_attn/query_lora_a" or "conv/kernellora_a".
static void name_weights(const file *f, const char *a, char name[192])
{
    const int length = (int)(strlen(a) - strlen("lora_a"));
    (void)snprintf(name, 192, "%.*sweights", length, a);
    if (json_object_get(f->header, name) == NULL) {
        (void)snprintf(name, 192, "%.*s", length, a);
    }
}

// ---- exports ----------------------------------------------------------------------------------------------------

static hr_status deploy(const char *model, const char *const *pairs, const hr_deploy_request *request,
                        hr_deploy *d, hr_err *err)
{
    hr_preset *preset = open_model(model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    set_all(&knobs, pairs);
    const hr_status status = hr_deploy_run(preset, &knobs, request, d, err);
    hr_preset_close(preset);
    return status;
}

static hr_deploy deployed(const char *model, const char *const *pairs, const hr_deploy_request *request)
{
    hr_err err = {0};
    hr_deploy d = {.tensors = NULL};
    ck_assert_msg(deploy(model, pairs, request, &d, &err) == HR_OK, "%s: %s", model, err.sentence);
    return d;
}

static void refused(const char *model, const char *const *pairs, const hr_deploy_request *request,
                    const char *sentence, const char *hint)
{
    hr_err err = {0};
    hr_deploy d = {.tensors = NULL};
    ck_assert_int_ne(deploy(model, pairs, request, &d, &err), HR_OK);
    ck_assert_msg(strstr(err.sentence, sentence) != NULL, "'%s' lacks '%s'", err.sentence, sentence);
    ck_assert_msg(strstr(err.hint, hint) != NULL, "'%s' lacks '%s'", err.hint, hint);
    ck_assert_ptr_null(d.tensors);
}

static void assert_near(double a, double b, const char *what)
{
    ck_assert_msg(fabs(a - b) <= 1e-5 * fabs(a), "%s: %.9g, then %.9g", what, a, b);
}

// ---- W + s·A·B --------------------------------------------------------------------------------------------------

// One weight of W + scale·A·B, and how much of it adapters are.
static double merged_at(const float *w, const float *a, const float *b, const size_t at[2],
                        const size_t sizes[2], double scale)
{
    double sum = 0;
    for (size_t r = 0; r < sizes[0]; r++) {
        sum += (double)a[at[0] * sizes[0] + r] * (double)b[r * sizes[1] + at[1]];
    }
    return (double)w[at[0] * sizes[1] + at[1]] + scale * sum;
}

// Returns how many weights are another number than they were.
static size_t check_product(const file *from, const file *to, const char *a_name, const char *average,
                            double scale)
{
    char name[192], b_name[192], a_whole[208], b_whole[208];
    size_t rows, columns, rank, units, changed = 0;
    name_weights(from, a_name, name);
    (void)snprintf(b_name, sizeof b_name, "%.*sb", (int)strlen(a_name) - 1, a_name);
    (void)snprintf(a_whole, sizeof a_whole, "%s%s", a_name, average);
    (void)snprintf(b_whole, sizeof b_whole, "%s%s", b_name, average);
    const float *a = tensor(from, a_whole, &rows, &rank), *b = tensor(from, b_whole, &rank, &units);
    const float *w = tensor(from, name, &rows, &columns), *merged = tensor(to, name, &rows, &columns);
    ck_assert_msg(a != NULL && b != NULL && w != NULL && merged != NULL, "%s", name);
    ck_assert_uint_eq(units, columns);
    for (size_t k = 0; k < rows * columns; k++) {
        const double is = merged_at(w, a, b, (const size_t[]){k / columns, k % columns},
                                    (const size_t[]){rank, columns}, scale);
        ck_assert_msg(fabs((double)merged[k] - is) <= 1.2e-7 * fabs(is) + 1e-30, "%s at %zu: %.9g, not %.9g",
                      name, k, (double)merged[k], is);
        changed += merged[k] < w[k] || merged[k] > w[k];
    }
    return changed;
}

static void check_products(const char *model, const char *average, double scale)
{
    file from = read_file(save), to = read_file(out);
    size_t changed = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(from.header, name, entry)
    {
        changed += ends(name, "lora_a") ? check_product(&from, &to, name, average, scale) : 0;
    }
    json_object_foreach(to.header, name, entry)
    {
        ck_assert_msg(strstr(name, "lora_") == NULL, "%s", name);
    }
    ck_assert_msg(changed > 0, "%s: adapters add nothing", model);
    ck_assert_ptr_null(fact(&to, "shaped_by"));
    close_file(&from);
    close_file(&to);
}

static void check_model(const char *model)
{
    const char *const pairs[] = {"compress.lora=3",
                                 "compress.lora_alpha=16",
                                 "compress.lora_targets=all",
                                 "optimizer.kind=adam",
                                 "optimizer.learning_rate=0.01",
                                 "batch.size=16",
                                 save_pair,
                                 NULL};
    const char *const plain[] = {"batch.size=16", NULL};
    hr_report had = train(model, 2, pairs);
    hr_deploy d = deployed(model, pairs,
                           &(hr_deploy_request){.save = save, .out = out, .merges = true, .replaces = true});
    hr_deploy again = deployed(model, plain, &(hr_deploy_request){.save = out});
    check_products(model, "", 16.0 / 3.0);
    assert_near(d.before.loss, d.after.loss, model);
    ck_assert_double_eq(d.after.loss, d.after_merge.loss);
    assert_near(d.after.loss, again.before.loss, model);
    ck_assert_uint_lt(d.deployed.ram_bytes, d.stripped.ram_bytes);
    ck_assert_uint_eq(d.with_adapters.ram_bytes, again.stripped.ram_bytes);
    hr_deploy_deinit(&d);
    hr_deploy_deinit(&again);
    hr_report_deinit(&had);
}

// The small models of the shelf.
static char tiny[64][64];
static int tiny_count;

static void list_models(void)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_preset_search_beside(".");
    const bool listed = hr_preset_list("models", &entries, &count, NULL) == HR_OK;
    for (size_t k = 0; listed && k < count && tiny_count < 64; k++) {
        if (strstr(entries[k].name, "_tiny") != NULL) {
            (void)snprintf(tiny[tiny_count++], sizeof *tiny, "%s", entries[k].name);
        }
    }
    hr_preset_list_free(entries);
}

START_TEST(merged_weights_are_the_sum_in_double_of_every_model)
{
    ck_assert_int_ge(tiny_count, 16);
    check_model(tiny[_i]);
}
END_TEST

static const char model[] = "gpt2_124m_tiny";

START_TEST(averages_of_adapters_are_merged)
{
    const char *const pairs[] = {"compress.lora=4", "optimizer.ema=0.5", "optimizer.learning_rate=0.01",
                                 save_pair, NULL};
    hr_report had = train(model, 4, pairs);
    hr_deploy d = deployed(model, pairs,
                           &(hr_deploy_request){.save = save, .out = out, .merges = true, .replaces = true});
    check_products(model, ":ema", 1);
    ck_assert(d.averaged && d.merged);
    hr_deploy_deinit(&d);
    hr_report_deinit(&had);
}
END_TEST

// ---- a save of the model without --------------------------------------------------------------------------------

START_TEST(a_merged_file_trains_on_plans_and_evaluates_without_adapters)
{
    const char *const pairs[] = {"compress.lora=4", "optimizer.learning_rate=0.01", save_pair, NULL};
    hr_report had = train(model, 6, pairs), planned;
    hr_deploy d = deployed(model, pairs,
                           &(hr_deploy_request){.save = save, .out = out, .merges = true, .replaces = true});
    hr_report on = train(model, 8, (const char *[]){"compress.lora=none", resume_out, NULL});
    hr_report off = train(model, 8, (const char *[]){NULL});
    ck_assert_double_lt(fabs(on.train.loss_first - had.train.loss_last), 0.2);
    ck_assert_uint_eq(on.model.parameters, off.model.parameters);
    hr_engine *e = start(model, (const char *[]){"device.kind=plan", resume_out, NULL});
    ck_assert_int_eq(hr_engine_report(e, &planned, NULL), HR_OK);
    ck_assert_uint_eq(planned.deploy.stripped_bytes, d.deployed.ram_bytes);
    hr_engine_destroy(e);
    hr_deploy_deinit(&d);
    hr_report_deinit(&had);
    hr_report_deinit(&planned);
    hr_report_deinit(&on);
    hr_report_deinit(&off);
}
END_TEST

static const char *const bases[] = {"compress.lora_base=int8", "compress.lora_base=int4",
                                    "compress.lora_base=nf4"};
enum { BASES = sizeof bases / sizeof *bases };

// And whole numbers are made of the sum afterwards: as of the merged file.
START_TEST(a_base_of_whole_numbers_is_made_real)
{
    const char *const pairs[] = {"compress.lora=4",
                                 "compress.lora_targets=all",
                                 "optimizer.learning_rate=0.01",
                                 bases[_i],
                                 save_pair,
                                 NULL};
    hr_report had = train(model, 6, pairs);
    hr_deploy d = deployed(model, pairs,
                           &(hr_deploy_request){.save = save, .out = out, .merges = true, .replaces = true});
    hr_deploy whole = deployed(
        model, pairs,
        &(hr_deploy_request){
            .save = save, .out = more, .merges = true, .replaces = true, .quantize = HR_QUANTIZE_INT8});
    hr_deploy of_file = deployed(model, (const char *[]){NULL},
                                 &(hr_deploy_request){.save = out, .quantize = HR_QUANTIZE_INT8});
    ck_assert_str_eq(d.base, bases[_i] + strlen("compress.lora_base="));
    assert_near(d.before.loss, d.after.loss, bases[_i]);
    ck_assert_uint_gt(d.deployed.ram_bytes, d.stripped.ram_bytes);
    ck_assert_double_eq(whole.after.loss, of_file.after.loss);
    ck_assert_double_eq(whole.after_merge.loss, d.after.loss);
    ck_assert_uint_eq(whole.deployed.ram_bytes, of_file.deployed.ram_bytes);
    ck_assert_uint_eq(whole.with_adapters.ram_bytes, d.deployed.ram_bytes);
    hr_deploy_deinit(&d);
    hr_deploy_deinit(&whole);
    hr_deploy_deinit(&of_file);
    hr_report_deinit(&had);
}
END_TEST

// ---- adapters alone ---------------------------------------------------------------------------------------------

// Of a model with running statistics these too: they moved.
START_TEST(adapters_alone_say_what_they_go_with)
{
    static const char *const names[] = {"gpt2_124m_tiny", "resnet18_cifar_tiny"};
    const char *of = names[_i];
    char resume[128];
    (void)snprintf(resume, sizeof resume, "train.resume=%s", save);
    hr_report base = train(of, 2, (const char *[]){"batch.size=4", save_pair, NULL});
    const char *const pairs[] = {"batch.size=4", "compress.lora=4", "compress.lora_alpha=8",
                                 resume,         save_pair,         NULL};
    hr_report had = train(of, 4, pairs);
    const char *const again[] = {"compress.lora=4", "compress.lora_alpha=8", NULL};
    hr_deploy d = deployed(
        of, again, &(hr_deploy_request){.save = save, .out = out, .adapters = true, .replaces = true});
    file from = read_file(save), to = read_file(out);
    size_t adapters = 0, states = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(to.header, name, entry)
    {
        size_t rows, columns;
        char key[192];
        (void)snprintf(key, sizeof key, "category:%s", name);
        if (strcmp(name, "__metadata__") != 0) {
            const float *is = tensor(&to, name, &rows, &columns), *was = tensor(&from, name, &rows, &columns);
            ck_assert_int_eq(memcmp(is, was, rows * columns * sizeof *is), 0);
            adapters += ends(name, "lora_a") || ends(name, "lora_b");
            states += fact(&to, key) != NULL;
        }
    }
    ck_assert_uint_eq(adapters + states, json_object_size(to.header) - 1);
    ck_assert_uint_eq(d.tensor_count, adapters + states);
    ck_assert((states > 0) == (_i == 1));
    ck_assert_uint_gt(adapters, 0);
    ck_assert_str_eq(fact(&to, "lora_rank"), "4");
    ck_assert_str_eq(fact(&to, "lora_alpha"), "8");
    ck_assert_str_eq(fact(&to, "base_held"), "real");
    ck_assert_str_eq(fact(&to, "base_sha256"), base.train.weights_sha256);
    ck_assert_ptr_nonnull(strstr(fact(&to, "lora_targets"), "weights"));
    ck_assert_uint_lt(d.deployed.file_bytes, d.stripped.file_bytes);
    close_file(&from);
    close_file(&to);
    hr_deploy_deinit(&d);
    hr_report_deinit(&base);
    hr_report_deinit(&had);
}
END_TEST

START_TEST(adapters_alone_are_no_save_to_go_on_from)
{
    const char *const pairs[] = {"compress.lora=4", save_pair, NULL};
    hr_report had = train(model, 2, pairs);
    hr_deploy d = deployed(
        model, pairs, &(hr_deploy_request){.save = save, .out = out, .adapters = true, .replaces = true});
    refused(model, pairs, &(hr_deploy_request){.save = out}, "has adapters alone",
            "that it was exported from");
    hr_engine *e = start(model, (const char *[]){"compress.lora=4", resume_out, NULL});
    advance(e, 3);
    ck_assert_msg(strstr(hr_engine_error(e)->sentence, "has adapters alone") != NULL, "%s",
                  hr_engine_error(e)->sentence);
    hr_engine_destroy(e);
    hr_deploy_deinit(&d);
    hr_report_deinit(&had);
}
END_TEST

// ---- what cannot be ---------------------------------------------------------------------------------------------

START_TEST(what_cannot_be_merged_is_said)
{
    const char *const lora[] = {"compress.lora=4", "compress.lora_alpha=8", NULL}, *const none[] = {NULL};
    const char *const other[] = {"compress.lora=4", NULL};
    const hr_deploy_request merges = {.save = save, .merges = true}, alone = {.save = save, .adapters = true};
    hr_report plain = train(model, 2, (const char *[]){save_pair, NULL});
    refused(model, none, &merges, "has no adapters: --merge needed", "export without --merge");
    refused(model, lora, &merges, "has no adapters: --merge needed", "compress.lora=RANK");
    refused(model, lora, &alone, "has no adapters: --adapters needed", "export without --adapters");
    hr_report had = train(model, 2, (const char *[]){lora[0], lora[1], save_pair, NULL});
    refused(model, none, &merges, "has adapters of rank 4", "-s compress.lora=4");
    refused(model, other, &merges, "with an adapter's factor of 2: needed the same, had 1",
            "-s compress.lora=4 -s compress.lora_alpha=8");
    refused(model, other, &alone, "with an adapter's factor of 2", "-s compress.lora_alpha=8");
    refused(model, lora, &(hr_deploy_request){.save = save, .merges = true, .adapters = true},
            "needed no --merge", "--merge, or --adapters");
    refused(model, lora,
            &(hr_deploy_request){.save = save, .adapters = true, .quantize = HR_QUANTIZE_INT4_WEIGHTS},
            "needed no --quantize", "--merge --quantize int4_weights, or --adapters");
    const char *const held[] = {"compress.lora=4", bases[0], save_pair, NULL};
    hr_report numbers = train(model, 2, held);
    refused(model, held, &(hr_deploy_request){.save = save, .quantize = HR_QUANTIZE_INT8},
            "the base of its adapters as int8", "--merge --quantize int8");
    hr_report_deinit(&plain);
    hr_report_deinit(&had);
    hr_report_deinit(&numbers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge runs");
    TCase *tc = tcase_create("runs");
    tcase_set_timeout(tc, 300);
    tcase_add_unchecked_fixture(tc, name_files, remove_files);
    list_models();
    tcase_add_loop_test(tc, merged_weights_are_the_sum_in_double_of_every_model, 0,
                        HEADROOM_SANITIZED ? 6 : (int)(tiny_count > 0 ? tiny_count : 1));
    tcase_add_test(tc, averages_of_adapters_are_merged);
    tcase_add_test(tc, a_merged_file_trains_on_plans_and_evaluates_without_adapters);
    tcase_add_loop_test(tc, a_base_of_whole_numbers_is_made_real, 0, BASES);
    tcase_add_loop_test(tc, adapters_alone_say_what_they_go_with, 0, 2);
    tcase_add_test(tc, adapters_alone_are_no_save_to_go_on_from);
    tcase_add_test(tc, what_cannot_be_merged_is_said);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
