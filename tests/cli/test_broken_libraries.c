// SPDX-License-Identifier: Apache-2.0
// Libraries of NVIDIA's that are cut off, are something else, or are not of one installation: the loader or they
// themselves end the process over it. The program says so in its own words, with exit code 4.
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

enum { PATH_BYTES = 512, SETTING_BYTES = 2048, KEPT_BYTES = 16384, ALL_BYTES = 64 << 20 };

#define RUN "run mlp_tiny -s device.kind=cuda -s device.card= -s device.vram=2GiB --steps 2"
#define PLAN                                                                                                 \
    "plan resnet18_cifar_tiny -s device.kind=cuda -s device.card=h200-141g -s device.vram=1GiB "             \
    "-s precision.policy=mixed_bfloat16"

// The first bytes of a library under its name or another's, in a folder of its own.
static const char *put(const char *from, const char *name, size_t bytes, char folder[PATH_BYTES])
{
    char path[PATH_BYTES + 64];
    char *content = malloc(ALL_BYTES);
    FILE *in = fopen(from, "rb");
    ck_assert_msg(content != NULL && in != NULL, "%s", from);
    const size_t length = fread(content, 1, bytes, in);
    (void)fclose(in);
    (void)snprintf(folder, PATH_BYTES, "%s/libraries-XXXXXX", program_home());
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    ck_assert(out != NULL && fwrite(content, 1, length, out) == length && fclose(out) == 0);
    free(content);
    return folder;
}

// Before `behind`, which has the rest; answers of earlier processes are not to be had.
static outcome run_before(const char *folder, const char *behind, const char *words)
{
    char settings[SETTING_BYTES];
    (void)snprintf(settings, sizeof settings,
                   "LD_LIBRARY_PATH=%s:%s\nASAN_OPTIONS=detect_leaks=0\nXDG_CACHE_HOME=%s", folder, behind,
                   folder);
    return program_run_with(settings, words);
}

static void expect(const outcome *o, const char *what, const char *sentence)
{
    ck_assert_msg(o->exit_code == 4, "%s: exit code %d\n%s", what, o->exit_code, o->err);
    ck_assert_msg(strstr(o->err, "headroom: dependency failed: ") != NULL && strstr(o->err, sentence) != NULL,
                  "%s: %s", what, o->err);
    ck_assert_msg(strstr(o->err, "\n  try: ") != NULL && strstr(o->err, "-s device.kind=plan") != NULL,
                  "%s: %s", what, o->err);
}

static const struct {
    const char *name, *from; // of the emulated card
    const char *sentence;
} cut[] = {
    {"libcuda.so.1", "libcuda.so.1", "libcuda.so.1, which ended the process: a file of it is cut off"},
    {"libcudnn.so.9", "libcudnn.so.9", "libcudnn.so.9, which ended the process: a file of it is cut off"},
    {"libcublasLt.so.13", "libcublasLt.so.13",
     "libcublasLt.so.13, which ended the process: a file of it is cut off"},
};
enum { CUT = sizeof cut / sizeof *cut };

START_TEST(a_library_that_is_cut_off_is_told)
{
    char folder[PATH_BYTES], from[PATH_BYTES];
    (void)snprintf(from, sizeof from, CARD_FOLDER "/%s", cut[_i].from);
    outcome o = run_before(put(from, cut[_i].name, KEPT_BYTES, folder), CARD_FOLDER, RUN);
    expect(&o, cut[_i].name, cut[_i].sentence);
    outcome_deinit(&o);
}
END_TEST

START_TEST(another_library_under_the_drivers_name_is_told)
{
    char folder[PATH_BYTES];
    outcome o = run_before(put(CARD_FOLDER "/libnvidia-ml.so.1", "libcuda.so.1", ALL_BYTES, folder),
                           CARD_FOLDER, RUN);
    expect(&o, "libcuda.so.1", "libcuda.so.1 has no such function");
    outcome_deinit(&o);
}
END_TEST

// Errors are headroom.error/1 there too.
START_TEST(it_is_told_in_json)
{
    char folder[PATH_BYTES];
    outcome o = run_before(put(CARD_FOLDER "/libcudnn.so.9", "libcudnn.so.9", KEPT_BYTES, folder),
                           CARD_FOLDER, PLAN " --json");
    expect(&o, "libcudnn.so.9", "cut off");
    json_t *error = assert_json(&o, "plan --json");
    ck_assert_str_eq(json_string_value(json_object_get(error, "schema")), "headroom.error/1");
    ck_assert_int_eq(json_integer_value(json_object_get(error, "exit_code")), 4);
    json_decref(error);
    outcome_deinit(&o);
}
END_TEST

// The cuDNN that the build found opens libraries of its own when it is first asked.
static const struct {
    const char *name;
    size_t bytes; // 0: another library
    const char *sentence;
} parts[] = {
    {"libcudnn_graph.so.9", KEPT_BYTES, "libcudnn.so.9, which ended the process: a file of it is cut off"},
    {"libcudnn_graph.so.9", 0, "libcudnn.so.9, which ended the process: it gave up (SIGABRT)"},
    {"libcudnn_heuristic.so.9", KEPT_BYTES, "asked cuDNN, which ended the process: a file of it is cut off"},
    {"libcudnn_heuristic.so.9", 0, "needed the libraries of one cuDNN"},
    {"libcudnn_engines_precompiled.so.9", KEPT_BYTES,
     "asked cuDNN, which ended the process: a file of it is cut off"},
    {"libcudnn_engines_precompiled.so.9", 0, "needed the libraries of one cuDNN"},
    {"libcudnn_engines_runtime_compiled.so.9", 0, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"},
    {"libcublasLt.so.13", 0, "asked cuDNN, which ended the process: it gave up (SIGABRT)"},
};
enum { PARTS = sizeof parts / sizeof *parts };

static const char *cudnn_folder(void)
{
    static char folder[] = CUDNN_FILE;
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    return folder;
}

START_TEST(a_part_of_cudnn_that_is_broken_is_told)
{
    char folder[PATH_BYTES], from[PATH_BYTES];
    (void)snprintf(from, sizeof from, "%s/%s", cudnn_folder(), parts[_i].name);
    if (access(from, R_OK) != 0) {
        (void)printf("not looked at: %s is not there\n", from);
        return;
    }
    outcome o = run_before(put(parts[_i].bytes != 0 ? from : CARD_FOLDER "/libnvidia-ml.so.1", parts[_i].name,
                               parts[_i].bytes != 0 ? parts[_i].bytes : ALL_BYTES, folder),
                           "/nowhere", PLAN);
    expect(&o, parts[_i].name, parts[_i].sentence);
    // A plan may be for a card that cuDNN does not survive beside the one that is there.
    ck_assert(strncmp(parts[_i].sentence, "asked cuDNN", 11) != 0 ||
              strstr(o.err, "env CUDA_VISIBLE_DEVICES= with the same command") != NULL);
    outcome_deinit(&o);
}
END_TEST

// The same part of another folder, whole: nobody can know of what version it is.
START_TEST(a_part_of_another_installation_is_told)
{
    char folder[PATH_BYTES], from[PATH_BYTES];
    (void)snprintf(from, sizeof from, "%s/libcudnn_heuristic.so.9", cudnn_folder());
    if (access(from, R_OK) != 0) {
        (void)printf("not looked at: %s is not there\n", from);
        return;
    }
    outcome o = run_before(put(from, "libcudnn_heuristic.so.9", ALL_BYTES, folder), "/nowhere", PLAN);
    expect(&o, "libcudnn_heuristic.so.9", "is of another than ");
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("broken libraries");
    TCase *tests = tcase_create("the program");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, a_library_that_is_cut_off_is_told, 0, CUT);
    tcase_add_test(tests, another_library_under_the_drivers_name_is_told);
    tcase_add_test(tests, it_is_told_in_json);
    tcase_add_loop_test(tests, a_part_of_cudnn_that_is_broken_is_told, 0, PARTS);
    tcase_add_test(tests, a_part_of_another_installation_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
