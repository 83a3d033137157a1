// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom plan` of a file of weights: of one that names its network the plan of a step; of another what training
// its weights takes at least, which is what a plan of the same network holds beside activations.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char known[] = "tests/data/weights/llama_q4_0.gguf";

static void write_file(char path[128], const char *leaf, const void *data, size_t bytes)
{
    (void)snprintf(path, 128, "%s/%s", program_home(), leaf);
    FILE *to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(data, 1, bytes, to), bytes);
    ck_assert_int_eq(fclose(to), 0);
}

// The known file with another word wherever one stands, in the program's home; how often.
static size_t write_changed(char path[128], const char *word, const char *other)
{
    static char data[65536];
    FILE *from = fopen(known, "r");
    ck_assert_ptr_nonnull(from);
    const size_t bytes = fread(data, 1, sizeof data, from), length = strlen(word);
    ck_assert_int_eq(fclose(from), 0);
    size_t changed = 0;
    for (size_t k = 0; k + length <= bytes; k++) {
        if (memcmp(data + k, word, length) == 0) {
            memcpy(data + k, other, length);
            changed++;
        }
    }
    write_file(path, "changed.gguf", data, bytes);
    return changed;
}

START_TEST(the_least_is_what_a_plan_holds_beside_activations)
{
    static const char *const kinds[] = {"sgd", "momentum", "adamw"};
    char path[128], words[256];
    ck_assert_uint_gt(write_changed(path, "llama", "lxama"), 5); // an architecture that there is not
    (void)snprintf(words, sizeof words, "plan %s --json", path);
    json_t *weights = program_json(words);
    ck_assert_str_eq(json_string_value(json_object_get(weights, "architecture")), "lxama");
    ck_assert_int_eq(json_integer_value(json_object_get(weights, "parameters")), 22688);
    for (size_t k = 0; k < 3; k++) {
        (void)snprintf(words, sizeof words, "plan %s -s precision.policy=float32 -s optimizer.kind=%s --json",
                       known, kinds[k]);
        json_t *plan = program_json(words);
        const json_t *held = json_object_get(json_object_get(plan, "memory"), "static_bytes");
        ck_assert(json_is_integer(held));
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_object_get(weights, "least_bytes"), kinds[k])),
            json_integer_value(held));
        json_decref(plan);
    }
    json_decref(weights);
}
END_TEST

static const struct {
    const char *words;
    int exit_code;
    const char *out, *err;
} said[] = {
    {"plan tests/data/weights/mixed.safetensors", 0, "It names no network, so there is no plan of a step.",
     ""},
    {"plan tests/data/weights/mixed.safetensors", 0, "safetensors, 6 tensors, 2,145 parameters", ""},
    {"plan tests/data/weights/unknown_q4_0.gguf", 0, "Its architecture 'deepseek2' is none that is read", ""},
    {"plan tests/data/weights/mixed.safetensors -s batch.size=2", 2, "",
     "names no network, and every option but --json"},
    {"plan tests/data/weights/missing.gguf", 5, "", "missing.gguf"},
    {"plan tests/data/weights/missing.safetensors", 5, "", "missing.safetensors"},
    {"config show tests/data/weights/mixed.safetensors", 2, "", "needed a config.json beside it"},
    {"config show tests/data/weights/unknown_q4_0.gguf", 2, "",
     "general.architecture says 'deepseek2', which is none"},
    {"config show tests/data/weights/experts_q8_0.gguf", 0, "kind: mixture_of_experts, experts: 4, top_k: 2",
     ""},
    {"plan tests/data/weights/make.py/a.gguf", 5, "", "a.gguf"},
};

START_TEST(what_is_said)
{
    outcome o = program_run(said[_i].words);
    assert_exit(&o, said[_i].words, said[_i].exit_code);
    ck_assert_msg(strstr(o.out, said[_i].out) != NULL, "%s: %s", said[_i].words, o.out);
    ck_assert_msg(strstr(o.err, said[_i].err) != NULL, "%s: %s", said[_i].words, o.err);
    outcome_deinit(&o);
}
END_TEST

// The header is read and its network is not: the refusal, and what is known.
START_TEST(what_a_refused_network_takes_is_said_beside_it)
{
    char path[128], words[256];
    ck_assert_uint_eq(write_changed(path, "llama.block_count", "llama.block_xount"), 1);
    (void)snprintf(words, sizeof words, "plan %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, "llama.block_count is needed, and is not in its metadata") != NULL, "%s",
                  o.err);
    ck_assert_msg(strstr(o.out, "22,688 parameters") != NULL &&
                      strstr(o.out, "Training all of them takes at least") != NULL &&
                      strstr(o.out, "no plan of a step") == NULL,
                  "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

// Whose metadata lie in the first of its files.
START_TEST(a_later_part_names_the_first)
{
    static const char shard[128] =
        "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"                        // one tensor, one key
        "\13\0\0\0\0\0\0\0split.count\2\0\0\0\3\0"                            // 3, of 16 bits
        "\1\0\0\0\0\0\0\0a\1\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"; // 8 floats
    char path[128], words[256];
    write_file(path, "net-00002-of-00003.gguf", shard, sizeof shard);
    (void)snprintf(words, sizeof words, "plan %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.out, "Training what is in this part takes at least") != NULL, "%s", o.out);
    ck_assert_msg(strstr(o.out, "/net-00001-of-00003.gguf'\n") != NULL &&
                      strstr(o.out, "config.json") == NULL,
                  "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

// A header is gone through once, and the sentence is its reader's.
START_TEST(a_broken_header_is_said_before_options)
{
    char path[128], words[256];
    write_file(path, "broken.gguf", "GGUF\3\0\0\0", 8);
    (void)snprintf(words, sizeof words, "plan %s --diff nosuch", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, "broken.gguf: byte 8: needed 8 bytes more") != NULL, "%s", o.err);
    outcome_deinit(&o);
    write_file(path, "broken.gguf", "GGUF", 4);
    (void)snprintf(words, sizeof words, "plan %s", path);
    o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, "needed 4 bytes more of its header, had 0 to the end of the file") != NULL &&
                      strstr(o.err, "a part of a download looks like this") != NULL,
                  "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

static size_t bytes_of(const char *from, char *to, size_t room)
{
    FILE *file = fopen(from, "r");
    ck_assert_msg(file != NULL, "%s", from);
    const size_t bytes = fread(to, 1, room, file);
    ck_assert_int_eq(fclose(file), 0);
    return bytes;
}

// A range of a download is enough, and how much of the data it has is said: with a network and without.
START_TEST(the_header_alone_is_planned)
{
    static char data[65536];
    char path[128], words[256];
    ck_assert_uint_gt(bytes_of(known, data, sizeof data), 4096);
    write_file(path, "part.gguf", data, 4096);
    (void)snprintf(words, sizeof words, "plan %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.err, "note: ") != NULL && strstr(o.err, "of the 13,344 bytes of its data") != NULL,
                  "%s", o.err);
    outcome_deinit(&o);
    ck_assert_uint_gt(bytes_of("tests/data/weights/mixed.safetensors", data, sizeof data), 544);
    write_file(path, "part.safetensors", data, 544); // its header
    (void)snprintf(words, sizeof words, "plan %s", path);
    o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.out, "a header with 0 of its 4,420 bytes of data\n") != NULL, "%s", o.out);
    outcome_deinit(&o);
    (void)snprintf(words, sizeof words, "plan %s --json", path);
    json_t *document = program_json(words);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "data_bytes")), 4420);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "held_bytes")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "parameters")), 2145);
    json_decref(document);
}
END_TEST

// ---- checkpoints of PyTorch -----------------------------------------------------------------------------------

#define ZIPPED(LENGTH, NAME)                                                                                 \
    "PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" LENGTH "\0\26\0" NAME "FB\22"
#define OF(DATA) DATA, sizeof(DATA) - 1

static const struct {
    const char *leaf, *data;
    size_t bytes;
    const char *of_plan, *of_replay;
} checkpoints[] = {
    {"net.pth", OF(ZIPPED("\14", "net/data.pkl")),
     "had a PyTorch checkpoint, which holds weights and no network", "had a PyTorch checkpoint"},
    {"net.pickle", OF(ZIPPED("\14", "net/data.pkl")), "torch_to_headroom.py", "torch_record.py"},
    {"noending", OF(ZIPPED("\14", "net/data.pkl")), "FOLDER/config.json", "no allocations"},
    {"script.pt", OF(ZIPPED("\13", "net/data/12")), "had a PyTorch checkpoint", "had a PyTorch checkpoint"},
    {"old.bin", OF("\x80\2\x8a\12l\xfc\x9c\x46\xf9 j\xa8P\31.\x80\2M\xe9\3."), "had a PyTorch checkpoint",
     "had a PyTorch checkpoint"},
    {"other.pt", OF(ZIPPED("\14", "net/data.txt")),
     "needed a network, or a PyTorch memory snapshot, had neither", "looks like none of them"},
    {"cut.pt", OF("PK\3\4\0\0"), "had neither", "looks like none of them"},
    {"text.pickle", OF("(dp0\nVa\np1\nI1\ns."), "or a PyTorch memory snapshot, had neither",
     "looks like none of them"},
    {"any.pkl", OF("\x80\2}q\0."), "needed a memory snapshot with 'segments'", "needed a memory snapshot"},
};

// Nothing of YAML, and the ways to a plan.
START_TEST(a_checkpoint_is_called_one)
{
    char path[128], words[256];
    static const char *const commands[] = {"plan", "cards --fit", "replay"};
    write_file(path, checkpoints[_i].leaf, checkpoints[_i].data, checkpoints[_i].bytes);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        const char *expected = k == 2 ? checkpoints[_i].of_replay : checkpoints[_i].of_plan;
        (void)snprintf(words, sizeof words, "%s %s", commands[k], path);
        outcome o = program_run(words);
        ck_assert_msg(o.exit_code != 0 && strstr(o.err, expected) != NULL, "%s: %s", words, o.err);
        ck_assert_msg(strstr(o.err, "control character") == NULL && strstr(o.err, "YAML") == NULL, "%s",
                      o.err);
        outcome_deinit(&o);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("weights_command");
    TCase *t = tcase_create("weights_command");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_least_is_what_a_plan_holds_beside_activations);
    tcase_add_test(t, what_a_refused_network_takes_is_said_beside_it);
    tcase_add_test(t, a_later_part_names_the_first);
    tcase_add_test(t, a_broken_header_is_said_before_options);
    tcase_add_test(t, the_header_alone_is_planned);
    tcase_add_loop_test(t, what_is_said, 0, sizeof said / sizeof *said);
    tcase_add_loop_test(t, a_checkpoint_is_called_one, 0, (int)(sizeof checkpoints / sizeof *checkpoints));
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
