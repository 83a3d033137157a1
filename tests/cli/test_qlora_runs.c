// SPDX-License-Identifier: Apache-2.0
// compress.lora_base in runs: adapters learn beside whole numbers on both devices, which stay what they were; saves hold them and go on
// bit for bit; real weights of a save become them; and they become nothing else.
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/deploy.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "short_runs.h"
#include "train/save_write.h"

static const char *const bases[] = {"compress.lora_base=int8", "compress.lora_base=int4",
                                    "compress.lora_base=nf4"};
enum { BASES = sizeof bases / sizeof *bases };

static char save[64], save_pair[96], resume_pair[96];

static void name_save(void)
{
    (void)snprintf(save, sizeof save, "/tmp/headroom-qlora-%ld.safetensors", (long)getpid());
    (void)snprintf(save_pair, sizeof save_pair, "train.save=%s", save);
    (void)snprintf(resume_pair, sizeof resume_pair, "train.resume=%s", save);
}

static void remove_save(void)
{
    unlink(save);
}

// Fewer bytes of weights, nearly the base's loss at first, less of it at last, and the same on the judge.
START_TEST(adapters_learn_beside_whole_numbers)
{
    const char *const pairs[] = {"compress.lora=4",
                                 "compress.lora_targets=all",
                                 "optimizer.learning_rate=0.01",
                                 "pipeline.resident=on",
                                 bases[_i],
                                 NULL};
    const char *const judge[] = {"compress.lora=4",
                                 "compress.lora_targets=all",
                                 "optimizer.learning_rate=0.01",
                                 "pipeline.resident=on",
                                 bases[_i],
                                 "device.kind=reference",
                                 NULL};
    const char *const real[] = {"compress.lora=4", "compress.lora_targets=all", NULL};
    hr_report held = train("gpt2_124m_tiny", 12, pairs), judged = train("gpt2_124m_tiny", 12, judge);
    hr_report plain = train("gpt2_124m_tiny", 1, real);
    ck_assert_double_lt(fabs(held.train.loss_first - plain.train.loss_first), 0.02);
    ck_assert_double_ne(held.train.loss_first, plain.train.loss_first);
    ck_assert_double_lt(held.train.loss_last, 0.98 * held.train.loss_first);
    ck_assert_double_lt(fabs(held.train.loss_last - judged.train.loss_last), 1e-4);
    ck_assert_uint_lt(held.memory.static_bytes, plain.memory.static_bytes);
    ck_assert_uint_eq(held.model.parameters, plain.model.parameters);
    hr_report_deinit(&held);
    hr_report_deinit(&judged);
    hr_report_deinit(&plain);
}
END_TEST

START_TEST(a_run_beside_whole_numbers_goes_on_bit_for_bit)
{
    hr_report half =
        train("gpt2_124m_tiny", 3, (const char *[]){save_pair, "compress.lora=4", bases[_i], NULL});
    hr_report on =
        train("gpt2_124m_tiny", 6, (const char *[]){resume_pair, "compress.lora=4", bases[_i], NULL});
    hr_report whole = train("gpt2_124m_tiny", 6, (const char *[]){"compress.lora=4", bases[_i], NULL});
    ck_assert_str_eq(on.train.weights_sha256, whole.train.weights_sha256);
    hr_report_deinit(&half);
    hr_report_deinit(&on);
    hr_report_deinit(&whole);
}
END_TEST

START_TEST(whole_numbers_become_nothing_else)
{
    hr_report had =
        train("gpt2_124m_tiny", 2, (const char *[]){save_pair, "compress.lora=4", bases[_i], NULL});
    hr_report_deinit(&had);
    for (int other = -1; other < BASES; other++) {
        if (other == _i) {
            continue;
        }
        const char *word = other < 0 ? "compress.lora_base=none" : bases[other];
        hr_engine *e = start("gpt2_124m_tiny", (const char *[]){resume_pair, "compress.lora=4", word, NULL});
        advance(e, 1);
        const hr_err *err = hr_engine_error(e);
        ck_assert_int_eq(err->status, HR_SAVE);
        ck_assert_msg(strstr(err->sentence, "as whole numbers of another compress.lora_base") != NULL, "%s",
                      err->sentence);
        ck_assert_msg(strstr(err->hint, bases[_i]) != NULL, "%s", err->hint);
        hr_engine_destroy(e);
    }
}
END_TEST

// What a save of the base has is what is made whole numbers of: not the seeded values.
START_TEST(real_weights_of_a_save_become_whole_numbers)
{
    hr_report base =
        train("gpt2_124m_tiny", 20, (const char *[]){save_pair, "optimizer.learning_rate=0.01", NULL});
    hr_report real = train("gpt2_124m_tiny", 21, (const char *[]){resume_pair, "compress.lora=4", NULL});
    hr_report held =
        train("gpt2_124m_tiny", 21, (const char *[]){resume_pair, "compress.lora=4", bases[_i], NULL});
    ck_assert_double_lt(fabs(held.train.loss_first - real.train.loss_first), 0.05);
    ck_assert_double_ne(held.train.loss_first, real.train.loss_first);
    hr_report_deinit(&base);
    hr_report_deinit(&real);
    hr_report_deinit(&held);
}
END_TEST

// Every tensor of a save, and its metadata, which the caller frees.
static json_t *read_save(store *s)
{
    int fd = -1;
    json_t *root = NULL, *entry = NULL;
    char *data = NULL;
    size_t bytes = 0;
    hr_err err = {0};
    const char *name = NULL;
    ck_assert_int_eq(save_open_any(save, &fd, &root, &err), HR_OK);
    ck_assert_int_eq(file_read_rest(fd, save, UINT64_C(1) << 30, &data, &bytes, &err), HR_OK);
    file_close(fd);
    json_object_foreach(root, name, entry)
    {
        hr_dtype dtype = HR_F32;
        const json_t *sides = json_object_get(entry, "shape");
        hr_shape shape = {.rank = (uint32_t)json_array_size(sides)};
        const json_int_t at = json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
        if (!save_type(json_string_value(json_object_get(entry, "dtype")), &dtype)) {
            continue; // the metadata
        }
        for (uint32_t k = 0; k < shape.rank; k++) {
            shape.dim[k] = json_integer_value(json_array_get(sides, k));
        }
        stored_tensor *t = store_add(s, name, &shape, dtype, HR_CATEGORY_WEIGHTS);
        ck_assert_ptr_nonnull(t);
        memcpy(t->data, data + at, t->bytes);
    }
    json_t *metadata = json_incref(json_object_get(root, "__metadata__"));
    json_decref(root);
    hr_free(data);
    return metadata;
}

// One tensor more beside one that is there.
static void add_to_save(const char *beside, const char *suffix)
{
    char name[128], digits[32];
    store s = {0};
    hr_err err = {0};
    text header = {0};
    const hr_shape one = {.rank = 1, .dim = {1}};
    json_t *metadata = read_save(&s);
    ck_assert_ptr_nonnull(store_find(&s, beside));
    (void)snprintf(name, sizeof name, "%s:%s", beside, suffix);
    ck_assert_ptr_nonnull(store_add(&s, name, &one, HR_F32, HR_CATEGORY_WEIGHTS));
    (void)snprintf(digits, sizeof digits, "%" PRIu64, save_checksum(&s, metadata));
    ck_assert_int_eq(json_object_set_new(metadata, SAVE_CHECKSUM_KEY, json_string(digits)), 0);
    ck_assert_int_eq(save_make_header(metadata, &s, &header, &err), HR_OK);
    ck_assert_int_eq(save_write(save, &header, &s, &err), HR_OK);
    text_deinit(&header);
    store_deinit(&s);
    json_decref(metadata);
}

// Nobody could say which of the two the weights are, under a base of whole numbers and without.
START_TEST(a_save_with_both_is_refused)
{
    static const char *const more[] = {"compress.lora=none", "compress.lora=4"};
    hr_report had = train("gpt2_124m_tiny", 2, (const char *[]){save_pair, NULL});
    hr_report_deinit(&had);
    add_to_save("h0_mlp_fc/weights", "scale");
    for (int k = 0; k < 2; k++) {
        hr_engine *e =
            start("gpt2_124m_tiny", (const char *[]){resume_pair, more[k],
                                                     k == 0 ? "compress.lora_base=none" : bases[_i], NULL});
        advance(e, 1);
        const hr_err *err = hr_engine_error(e);
        ck_assert_int_eq(err->status, HR_SAVE);
        ck_assert_msg(strstr(err->sentence, "has h0_mlp_fc/weights as float32 and h0_mlp_fc/weights:scale "
                                            "of whole numbers beside it: needed one of the two") != NULL,
                      "%s", err->sentence);
        hr_engine_destroy(e);
    }
}
END_TEST

static hr_deploy deployed(const char *from, const char *to, const char *base, bool ranks)
{
    const hr_deploy_request request = {.save = from, .out = to, .ranks = ranks, .replaces = true};
    hr_deploy d = {.tensors = NULL};
    hr_err err = {0};
    hr_preset *preset = open_model("gpt2_124m_tiny");
    hr_knobs knobs = *hr_preset_knobs(preset);
    set_all(&knobs, (const char *[]){"compress.lora=4", base, NULL});
    ck_assert_msg(hr_deploy_run(preset, &knobs, &request, &d, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset);
    return d;
}

// Whole numbers are deployed with their scales: the same loss, fewer bytes, and of what is real alone ranks are told.
START_TEST(whole_numbers_are_deployed_as_they_are_held)
{
    char stripped[96];
    (void)snprintf(stripped, sizeof stripped, "%s.stripped.safetensors", save);
    hr_report had =
        train("gpt2_124m_tiny", 2, (const char *[]){save_pair, "compress.lora=4", bases[_i], NULL});
    hr_deploy first = deployed(save, stripped, bases[_i], true);
    hr_deploy again = deployed(stripped, NULL, bases[_i], false);
    ck_assert_double_eq(first.before.loss, again.before.loss);
    ck_assert_uint_eq(first.stripped.ram_bytes, had.deploy.stripped_bytes);
    ck_assert_uint_eq(again.save.ram_bytes, first.stripped.ram_bytes);
    ck_assert_uint_gt(first.rank_count, 0);
    hr_report on =
        train("gpt2_124m_tiny", 4, (const char *[]){"compress.lora=4", bases[_i], resume_pair, NULL});
    ck_assert(isfinite(on.train.loss_last));
    unlink(stripped);
    hr_deploy_deinit(&first);
    hr_deploy_deinit(&again);
    hr_report_deinit(&had);
    hr_report_deinit(&on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("qlora runs");
    TCase *tc = tcase_create("runs");
    tcase_set_timeout(tc, 300);
    tcase_add_unchecked_fixture(tc, name_save, remove_save);
    tcase_add_loop_test(tc, adapters_learn_beside_whole_numbers, 0, BASES);
    tcase_add_loop_test(tc, a_run_beside_whole_numbers_goes_on_bit_for_bit, 0, BASES);
    tcase_add_loop_test(tc, whole_numbers_become_nothing_else, 0, BASES);
    tcase_add_loop_test(tc, real_weights_of_a_save_become_whole_numbers, 0, BASES);
    tcase_add_loop_test(tc, a_save_with_both_is_refused, 0, BASES);
    tcase_add_loop_test(tc, whole_numbers_are_deployed_as_they_are_held, 0, BASES);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
