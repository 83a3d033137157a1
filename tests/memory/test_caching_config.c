// SPDX-License-Identifier: Apache-2.0
// PYTORCH_ALLOC_CONF: PyTorch's own test vectors (c10 AllocatorConfig_test), every option, and every way to get one
// wrong.
#include <string.h>

#include "heap.h"
#include "insight/caching_config.h"

#define MIB HR_MIB

static torch_conf parsed(const char *text)
{
    torch_conf c;
    hr_err err;
    ck_assert_msg(torch_conf_parse(text, &c, &err) == HR_OK, "%s", err.sentence);
    return c;
}

static uint32_t divisions_at(const torch_conf *c, uint64_t mib)
{
    unsigned at = 0;
    while (at + 1 < TORCH_DIVISIONS && UINT64_C(2) << at <= mib) {
        at++;
    }
    return c->divisions[at];
}

START_TEST(nothing_said_is_pytorchs_default)
{
    const char *const texts[] = {"", " ", "backend:native"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        torch_conf c = parsed(texts[k]);
        allocator_config config = allocator_config_of("caching", HR_GIB);
        caching_options o = caching_options_of(&c);
        ck_assert_uint_eq(o.max_split_bytes, config.caching.max_split_bytes);
        ck_assert_uint_eq(o.max_non_split_rounding_bytes, config.caching.max_non_split_rounding_bytes);
        ck_assert_uint_eq(o.large_segment_bytes, config.caching.large_segment_bytes);
        ck_assert_mem_eq(o.roundup_divisions, config.caching.roundup_divisions, sizeof o.roundup_divisions);
        ck_assert(o.gc_threshold == 0 && !o.expandable_segments && !o.refuses_early);
        ck_assert_double_eq(c.fraction, 1);
    }
}
END_TEST

START_TEST(options_of_pytorchs_own_test)
{
    torch_conf c =
        parsed("max_split_size_mb:40,max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,"
               "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],"
               "expandable_segments:True,pinned_use_background_threads:True");
    ck_assert_uint_eq(c.max_split_bytes, 40 * MIB);
    ck_assert_uint_eq(c.max_non_split_rounding_bytes, 30 * MIB);
    ck_assert_uint_eq(c.large_segment_bytes, 20 * MIB);
    ck_assert_double_eq(c.gc_threshold, 0.5);
    ck_assert(c.expandable_segments);
    static const uint64_t expected[][2] = {{1, 8},   {32, 8},   {64, 8},   {128, 2},  {256, 4},
                                           {512, 2}, {1024, 4}, {2048, 1}, {4096, 1}, {8192, 1}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        ck_assert_uint_eq(divisions_at(&c, expected[k][0]), expected[k][1]);
    }
}
END_TEST

START_TEST(divisions_are_one_number_or_a_list)
{
    torch_conf c = parsed("roundup_power2_divisions:4");
    ck_assert_uint_eq(divisions_at(&c, 1), 4);
    ck_assert_uint_eq(divisions_at(&c, 100000), 4);
    c = parsed(" roundup_power2_divisions : [ 4:2, 16:0 ] ,"); // blanks and a last comma
    ck_assert_uint_eq(divisions_at(&c, 1), 2);
    ck_assert_uint_eq(divisions_at(&c, 4), 2);
    ck_assert_uint_eq(divisions_at(&c, 8), 0);
    ck_assert_uint_eq(divisions_at(&c, 16), 0);
    c = parsed("roundup_power2_divisions:[1048576:8]"); // beyond the last: all of them
    ck_assert_uint_eq(divisions_at(&c, 1), 8);
    ck_assert_uint_eq(divisions_at(&c, 32768), 8);
    c = parsed("roundup_power2_divisions:[>:2]"); // PyTorch fills behind the first
    ck_assert_uint_eq(divisions_at(&c, 1), 0);
    ck_assert_uint_eq(divisions_at(&c, 2), 2);
    uint32_t divisions[TORCH_DIVISIONS] = {7};
    ck_assert_int_eq(torch_conf_parse_divisions("", divisions, NULL), HR_OK);
    ck_assert_uint_eq(divisions[0], 0);
    ck_assert_int_eq(torch_conf_parse_divisions("[1:2,>:8]", divisions, NULL), HR_OK);
    ck_assert_uint_eq(divisions[0], 2);
    ck_assert_uint_eq(divisions[15], 8);
    ck_assert_int_eq(torch_conf_parse_divisions("4,2", divisions, NULL), HR_KNOB);
    ck_assert_uint_eq(divisions[0], 2);
}
END_TEST

START_TEST(the_rest_of_the_options)
{
    torch_conf c = parsed("large_segment_size_mb:32");
    ck_assert_uint_eq(c.large_segment_bytes, 32 * MIB);
    ck_assert_uint_eq(c.max_non_split_rounding_bytes, 32 * MIB); // follows
    c = parsed("max_split_size_mb:25,large_segment_size_mb:25"); // whatever the order
    ck_assert_uint_eq(c.max_split_bytes, 25 * MIB);
    c = parsed("max_split_size_mb:-1");
    ck_assert_uint_eq(c.max_split_bytes, UINT64_MAX);
    c = parsed("max_split_size_mb:9000000000000000000");
    ck_assert_uint_eq(c.max_split_bytes, UINT64_MAX);
    c = parsed("per_process_memory_fraction:0.75,throw_on_cudamalloc_oom:True");
    ck_assert_double_eq(c.fraction, 0.75);
    ck_assert(c.throws_early && torch_conf_says(&c, TORCH_THROW_ON_CUDAMALLOC_OOM));
    ck_assert(!torch_conf_says(&c, TORCH_MAX_SPLIT_SIZE));
    c = parsed("expandable_segments:True,expandable_segments:False");
    ck_assert(!c.expandable_segments);
}
END_TEST

START_TEST(options_without_effect_are_checked_and_named)
{
    torch_conf c =
        parsed("release_lock_on_cudamalloc:True,max_split_size_mb:40,"
               "graph_capture_record_stream_reuse:False,pinned_use_cuda_host_register:True,"
               "pinned_num_register_threads:8,pinned_reserve_segment_size_mb:64,"
               "pinned_use_background_threads:True,pinned_free_catch_all:True,"
               "expandable_segments_reserve:0.5,expandable_segments_reserve_by_class:[a:40G,b:1.125]");
    static const char *const names[] = {
        "expandable_segments_reserve",       "expandable_segments_reserve_by_class",
        "graph_capture_record_stream_reuse", "pinned_free_catch_all",
        "pinned_num_register_threads",       "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",     "pinned_use_cuda_host_register",
        "release_lock_on_cudamalloc"};
    int next = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        ck_assert_pstr_eq(torch_conf_without_effect(&c, &next), names[k]);
    }
    ck_assert_ptr_null(torch_conf_without_effect(&c, &next));
}
END_TEST

static const struct {
    const char *text, *sentence;
} wrong[] = {
    {"foo:123", "PyTorch has no option 'foo'"},
    {"expandable_segment:True",
     "PyTorch has no option 'expandable_segment' — did you mean 'expandable_segments'?"},
    {"expandable_segments:true", "expandable_segments: needed True or False, spelt like that, had 'true'"},
    {"expandable_segments:1", "expandable_segments: needed True or False, spelt like that, had '1'"},
    {"expandable_segments:", "expandable_segments: needed True or False, spelt like that, had ''"},
    {"expandable_segments", "expandable_segments: needed ':', had ''"},
    {"expandable_segments=True",
     "PyTorch has no option 'expandable_segments=True' — did you mean 'expandable_segments'?"},
    {"expandable_segments:True;max_split_size_mb:40",
     "expandable_segments: needed True or False, spelt like that, had 'True;max_split_size_mb'"},
    {"expandable_segments:True:", "expandable_segments: needed ',', had ':'"},
    {",expandable_segments:True", "PyTorch has no option ','"},
    {"max_split_size_mb:20,large_segment_size_mb:25",
     "max_split_size_mb: needed at least 25 (large_segment_size_mb), had 20"},
    {"max_split_size_mb:19", "max_split_size_mb: needed at least 20 (large_segment_size_mb), had 19"},
    {"max_split_size_mb:20MB", "max_split_size_mb: needed a whole number, had '20MB'"},
    {"max_non_split_rounding_mb:19",
     "max_non_split_rounding_mb: needed at least 20 (large_segment_size_mb), had 19"},
    {"max_non_split_rounding_mb:-1", "max_non_split_rounding_mb: needed a whole number, had '-1'"},
    {"large_segment_size_mb:10", "large_segment_size_mb: needed more than 10, had 10"},
    {"garbage_collection_threshold:0",
     "garbage_collection_threshold: needed a number between 0 and 1, both left out, had '0'"},
    {"garbage_collection_threshold:1.0",
     "garbage_collection_threshold: needed a number between 0 and 1, both left out, had '1.0'"},
    {"garbage_collection_threshold:nan",
     "garbage_collection_threshold: needed a number between 0 and 1, both left out, had 'nan'"},
    {"per_process_memory_fraction:0",
     "per_process_memory_fraction: 0 leaves no memory at all: needed more, or 1 for all"},
    {"per_process_memory_fraction:1.5",
     "per_process_memory_fraction: needed a number from 0 to 1, had '1.5'"},
    {"roundup_power2_divisions:3",
     "roundup_power2_divisions: the number of divisions must be a power of two, had 3"},
    {"roundup_power2_divisions:0",
     "roundup_power2_divisions: the number of divisions must be a power of two, had 0"},
    {"roundup_power2_divisions:[64:3]",
     "roundup_power2_divisions: the number of divisions must be a power of two or 0 (none), had 3"},
    {"roundup_power2_divisions:[100:4]", "roundup_power2_divisions: sizes are powers of two in MiB, had 100"},
    {"roundup_power2_divisions:[64:4", "roundup_power2_divisions: needed ',', had ''"},
    {"roundup_power2_divisions:[64;4]", "roundup_power2_divisions: needed a whole number, had '64;4'"},
    {"roundup_power2_divisions:[64:4 128:2]",
     "roundup_power2_divisions: the number of divisions must be a power of two or 0 (none), had 4128"},
    {"roundup_power2_divisions:4294967296",
     "roundup_power2_divisions: needed at most 2147483648 divisions, had 4294967296"},
    {"backend:cudaMallocAsync",
     "backend:cudaMallocAsync is another allocator, which has none of these options: needed backend:native "
     "here, or allocator.kind=async and no configuration"},
    {"backend:jemalloc", "backend: needed native or cudaMallocAsync, had 'jemalloc'"},
    {"pinned_num_register_threads:3",
     "pinned_num_register_threads: needed a power of two, at most 128, had 3"},
    {"pinned_num_register_threads:256",
     "pinned_num_register_threads: needed a power of two, at most 128, had 256"},
    {"expandable_segments_reserve:0",
     "expandable_segments_reserve: needed a share of the card such as 0.5, or a size such as 40G, had '0'"},
    {"expandable_segments_reserve_by_class:[a:40M]", "expandable_segments_reserve_by_class: needed a share "
                                                     "of the card such as 0.5, or a size such as 40G, had "
                                                     "'40M'"},
    {"expandable_segments_reserve_by_class:[a:40G",
     "expandable_segments_reserve_by_class: needed ',', had ''"},
    {"pinned_reserve_segment_size_mb:0", "pinned_reserve_segment_size_mb: needed more than 0, had 0"},
};

START_TEST(what_is_wrong_is_said)
{
    torch_conf c = {.said = 77};
    hr_err err = {0};
    ck_assert_int_eq(torch_conf_parse(wrong[_i].text, &c, &err), HR_KNOB);
    ck_assert_str_eq(err.sentence, wrong[_i].sentence);
    ck_assert_uint_eq(c.said, 77);
}
END_TEST

// Whatever the letters: an answer, and no more than that.
START_TEST(any_text_is_answered)
{
    static const char letters[] = "a:[],> 1-.Truexpandable_segments";
    uint64_t seed = 17;
    for (int k = 0; k < 20000; k++) {
        char text[300];
        size_t length = random_between(&seed, 0, sizeof text - 1);
        for (size_t i = 0; i < length; i++) {
            text[i] = letters[random_between(&seed, 0, sizeof letters - 2)];
        }
        text[length] = '\0';
        torch_conf c;
        hr_err err;
        hr_status status = torch_conf_parse(text, &c, &err);
        MUST(status == HR_OK || (status == HR_KNOB && err.sentence[0] != '\0'));
    }
}
END_TEST

static Suite *config_suite(void)
{
    Suite *suite = suite_create("caching configuration");
    TCase *texts = tcase_create("texts");
    tcase_add_test(texts, nothing_said_is_pytorchs_default);
    tcase_add_test(texts, options_of_pytorchs_own_test);
    tcase_add_test(texts, divisions_are_one_number_or_a_list);
    tcase_add_test(texts, the_rest_of_the_options);
    tcase_add_test(texts, options_without_effect_are_checked_and_named);
    tcase_add_loop_test(texts, what_is_wrong_is_said, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(texts, any_text_is_answered);
    suite_add_tcase(suite, texts);
    return suite;
}

TEST_MAIN(config_suite())
