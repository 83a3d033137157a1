// SPDX-License-Identifier: Apache-2.0
// Promises of what a word is (headroom/file_kind.h): what is in a file decides before how it is called, and memory that ends
// leaves what the name says.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/file_kind.h"

#include "base/host_mem.h"

#define OF(DATA)   DATA, sizeof(DATA) - 1
#define CHECKPOINT "\x80\2\x8a\12l\xfc\x9c\x46\xf9 j\xa8P\31.\x80\2M\xe9\3."
#define REPORT     "{\"memory\": 1, \"schema\": \"headroom.report/1\"}"
#define KERAS      "{\"class_name\": \"Sequential\", \"config\": {}}"
#define TRACE      "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n1,1,alloc,0,4,256,a\n"

static const struct {
    const char *leaf, *data;
    size_t bytes;
    hr_file_kind kind, named; // named: where nothing of it can be read
} files[] = {
    {"net.yaml", OF("model: mlp\n"), HR_FILE_PRESET, HR_FILE_PRESET},
    {"net.onnx", OF("\10\7"), HR_FILE_ONNX, HR_FILE_ONNX},
    {"net.gguf", OF("GGUF\3\0\0\0"), HR_FILE_GGUF, HR_FILE_GGUF},
    {"net.safetensors", OF("\2\0\0\0\0\0\0\0{}"), HR_FILE_SAFETENSORS, HR_FILE_SAFETENSORS},
    {"net.keras", OF("PK\3\4"), HR_FILE_KERAS, HR_FILE_KERAS},
    {"net.json", OF(KERAS), HR_FILE_KERAS, HR_FILE_JSON},
    {"net.json", OF("{\"architectures\": [\"LlamaForCausalLM\"]}"), HR_FILE_CONFIG, HR_FILE_JSON},
    {"net.json", OF("{\"model_type\": \"llama\"}"), HR_FILE_CONFIG, HR_FILE_JSON},
    {"net.json", OF(REPORT), HR_FILE_REPORT, HR_FILE_JSON},
    {"net.json", OF("{\"some\": \"thing\"}"), HR_FILE_JSON, HR_FILE_JSON},
    {"net.json", OF("{\"model_type\": "), HR_FILE_JSON, HR_FILE_JSON}, // cut
    {"config.json", OF("{}"), HR_FILE_CONFIG, HR_FILE_CONFIG},
    {"config.json", OF("no JSON"), HR_FILE_CONFIG, HR_FILE_CONFIG},
    {"config.json", OF(KERAS), HR_FILE_KERAS, HR_FILE_CONFIG},
    {"config.json", OF(REPORT), HR_FILE_REPORT, HR_FILE_CONFIG},
    {"net.pt", OF(CHECKPOINT), HR_FILE_CHECKPOINT, HR_FILE_CHECKPOINT},
    {"net.bin", OF("anything"), HR_FILE_CHECKPOINT, HR_FILE_CHECKPOINT},
    {"checkpoint", OF(CHECKPOINT), HR_FILE_CHECKPOINT, HR_FILE_PRESET},
    {"step.csv", OF(TRACE), HR_FILE_TRACE, HR_FILE_TRACE},
    {"step.txt", OF(TRACE), HR_FILE_TRACE, HR_FILE_PRESET},
    {"step.json", OF(TRACE), HR_FILE_TRACE, HR_FILE_JSON},
    {"step.yaml", OF(TRACE), HR_FILE_TRACE, HR_FILE_PRESET},
    {"step.csv", OF("a,b\n"), HR_FILE_TRACE, HR_FILE_TRACE}, // called as nothing else is
    {"notes.txt", OF("hello\n"), HR_FILE_PRESET, HR_FILE_PRESET},
};

static const struct {
    const char *word;
    hr_file_kind kind;
} absent[] = {
    {"resnet50", HR_FILE_PRESET},
    {"nowhere/net.yaml", HR_FILE_PRESET},
    {"nowhere/net", HR_FILE_PRESET},
    {".", HR_FILE_PRESET},
    {"", HR_FILE_PRESET},
    {"nowhere.onnx", HR_FILE_ONNX},
    {"nowhere.gguf", HR_FILE_GGUF},
    {"nowhere.json", HR_FILE_JSON},
    {"nowhere/config.json", HR_FILE_CONFIG},
    {"nowhere.pth", HR_FILE_CHECKPOINT},
    {"nowhere.hrt", HR_FILE_TRACE},
    {"nowhere.log", HR_FILE_TRACE},
};

static char folder[64], path[128];

static void write_file(const char *leaf, const char *data, size_t bytes)
{
    (void)strcpy(folder, "/tmp/headroom-kind-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, leaf);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

static void remove_file(void)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(what_is_in_a_file_decides)
{
    write_file(files[_i].leaf, files[_i].data, files[_i].bytes);
    const hr_file_kind kind = hr_file_kind_of(path);
    remove_file();
    ck_assert_int_eq(kind, files[_i].kind);
    ck_assert_int_eq(hr_host_mem_live(), 0);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_what_its_name_says)
{
    ck_assert_int_eq(hr_file_kind_of(absent[_i].word), absent[_i].kind);
}
END_TEST

START_TEST(a_folder_is_a_preset_whatever_it_is_called)
{
    char name[96];
    ck_assert_ptr_nonnull(mkdtemp(strcpy(folder, "/tmp/headroom-kind-XXXXXX")));
    (void)snprintf(name, sizeof name, "%s/exp.log", folder);
    ck_assert_int_eq(mkdir(name, 0700), 0);
    ck_assert_int_eq(hr_file_kind_of(name), HR_FILE_PRESET);
    ck_assert_int_eq(rmdir(name), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(memory_that_ends_leaves_the_name)
{
    uint64_t asked = 1;
    write_file(files[_i].leaf, files[_i].data, files[_i].bytes);
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        const hr_file_kind kind = hr_file_kind_of(path);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(kind == files[_i].kind || kind == files[_i].named, "request %d: %d", (int)nth,
                      (int)kind);
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    remove_file();
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    Suite *s = suite_create("file_kind");
    TCase *t = tcase_create("file_kind");
    tcase_add_loop_test(t, what_is_in_a_file_decides, 0, ROWS(files));
    tcase_add_loop_test(t, a_file_that_is_not_there_is_what_its_name_says, 0, ROWS(absent));
    tcase_add_test(t, a_folder_is_a_preset_whatever_it_is_called);
    tcase_add_loop_test(t, memory_that_ends_leaves_the_name, 0, ROWS(files));
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
