// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/card.h: the shipped cards, what a bad card says, and TensorFlow's limit.
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/machine.h"
#include "knobs/card_table.h"

static hr_knobs knobs;
static hr_card card;
static hr_err err;
static uint64_t limit_bytes;

static void setup(void)
{
    hr_knobs_init(&knobs);
    hr_preset_search_beside(".");
    setenv("XDG_DATA_HOME", "/nowhere", 1);
    unsetenv("HEADROOM_DATA");
    card = (hr_card){0};
    err = (hr_err){0};
}

static void set(const char *pair)
{
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, &err), HR_OK);
}

// ---- the shipped cards ----------------------------------------------------------------------------------------

START_TEST(each_card_of_the_table_loads_with_sane_numbers)
{
    size_t count = 0;
    const card_row *row = &card_rows(&count)[_i];
    ck_assert_msg(hr_card_load(row->name, &card, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(card.name, row->name);
    ck_assert_str_eq(card.family, row->family);
    ck_assert(strncmp(card.title, "NVIDIA ", 7) == 0);
    ck_assert_uint_gt(strlen(card.source), 10);
    ck_assert_uint_eq(card.vram_bytes, row->vram_mib * HR_MIB);
    ck_assert_uint_eq(card.compute_major * 10 + card.compute_minor, row->capability);
    ck_assert_uint_lt(card.context_bytes, 2 * HR_GIB);
    ck_assert_uint_eq(card.granularity_bytes, 2 * HR_MIB);
    ck_assert(card.launch_seconds > 0 && card.launch_seconds < 1e-4);
    ck_assert(card.link_bytes_per_second < card.memory_bytes_per_second);
    set("device.vram=none");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert(limit_bytes > card.vram_bytes / 2 && limit_bytes < card.vram_bytes - card.context_bytes);
}
END_TEST

START_TEST(cards_are_listed_by_name_and_title)
{
    hr_preset_entry *entries;
    size_t count;
    ck_assert_int_eq(hr_preset_list("cards", &entries, &count, &err), HR_OK);
    ck_assert_uint_ge(count, 40);
    ck_assert_str_eq(entries[0].name, "a10-24g");
    ck_assert_str_eq(entries[1].name, "a100-40g");
    ck_assert_str_eq(entries[1].title, "NVIDIA A100-SXM4-40GB");
    for (size_t k = 1; k < count; k++) {
        ck_assert(strcmp(entries[k - 1].name, entries[k].name) < 0);
    }
    hr_preset_list_free(entries);
}
END_TEST

START_TEST(an_unknown_card_gets_the_known_ones)
{
    ck_assert_int_eq(hr_card_load("rtx3700-8g", &card, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence,
                     "no card is called 'rtx3700-8g'; there are rtx3070-8g, rtx2070-8g, "
                     "rtx3050-8g, rtx3060-8g, rtx2080-8g, rtx3050-6g, rtx3070-ti-8g, rtx4060-8g, "
                     "rtx5050-8g, rtx5060-8g, …");
    ck_assert_str_eq(err.hint, "-s device.card=rtx3070-8g");
    ck_assert_int_eq(hr_card_load("rtx4090", &card, &err), HR_PRESET);
    ck_assert_str_eq(err.hint, "-s device.card=rtx4090-24g"); // it begins so
    static const char *const written[] = {"RTX4090", "RTX 4090", "rtx-4090", "Rtx 4090 24G"};
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        ck_assert_int_eq(hr_card_load(written[k], &card, &err), HR_PRESET);
        ck_assert_str_eq(err.hint, "-s device.card=rtx4090-24g");
    }
    ck_assert_int_eq(hr_card_load("a100", &card, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence, "no card is called 'a100'; there are a100-40g, a100-80g"); // and no other
    ck_assert_int_eq(hr_card_load("../cards/a100-80g", &card, &err), HR_READ);                // a path
    ck_assert_uint_eq(card.vram_bytes, 0);
}
END_TEST

// ---- bad cards ------------------------------------------------------------------------------------------------

#define GOOD                                                                                                 \
    "title: t\nvram: 8GiB\ncontext: 1GiB\ngranularity: 2MiB\ncompute_capability: 8.6\n"                      \
    "memory_bytes_per_second: 1e11\nlink_bytes_per_second: 1e10\nlaunch_seconds: 1e-6\n"

static const struct {
    const char *words;
    const char *sentence; // behind "FOLDER/cards/mine.yaml:"; NULL: good
} own[] = {
    {GOOD "float32_flops: 1e13\n", NULL},
    {GOOD, "8:17: up to here this card does not say its 'float32_flops'"},
    {GOOD "float32_flops: 0\n", "9:16: float32_flops: needs a number of 1e6 to 1e20 a second, had '0'"},
    {GOOD "float32_flops: 1e-300\n",
     "9:16: float32_flops: needs a number of 1e6 to 1e20 a second, had '1e-300'"},
    {GOOD "float32_flops: [1]\n", "9:16: float32_flops: needs one value, had 'a list or a mapping'"},
    {GOOD "float32_flops: 1e13\nfloat46_flops: 3\n", "10:1: a card has no 'float46_flops' — did you mean "
                                                     "'float16_flops'?"},
    {GOOD "float32_flops: 1e13\nvram: 9GiB\n",
     "10:1: key 'vram' stands twice in this mapping, on lines 2 and 10"},
    {"vram: 8Gi\n", "1:7: vram: needs a size such as 8GiB, had '8Gi'"},
    {"compute_capability: 8\n", "1:21: compute_capability: needs a compute capability such as 8.6, had '8'"},
    {"compute_capability: 8.66\n",
     "1:21: compute_capability: needs a compute capability such as 8.6, had '8.66'"},
    {"- a\n", "1:1: a card begins with keys, such as 'title:' and 'vram:'"},
    {"like: a100-80g\nvram: 8GiB\n", NULL},
    {"vram: 8GiB\nlike: a100-80g\n", NULL}, // in any order
    {"like: mine\nvram: 8GiB\n", "1:7: no card of `headroom cards` is called 'mine'"},
    {"like: [a]\nvram: 8GiB\n", "1:7: no card of `headroom cards` is called ''"},
    {"like: a100-80g\nvram: 1GiB\n", "1:1: context must be smaller than vram"},
};

START_TEST(a_card_of_ones_own_is_read_as_strictly)
{
    char folder[] = "/tmp/headroom-card-XXXXXX", path[128], wanted[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/cards", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/cards/mine.yaml", folder);
    FILE *f = fopen(path, "w");
    fputs(own[_i].words, f);
    fclose(f);
    setenv("HEADROOM_DATA", folder, 1);
    hr_status status = hr_card_load("mine", &card, &err);
    hr_card by_path;
    ck_assert_int_eq(hr_card_load(path, &by_path, NULL), status); // the same by its path
    ck_assert_uint_eq(by_path.vram_bytes, card.vram_bytes);
    remove(path);
    if (own[_i].sentence == NULL) {
        ck_assert_int_eq(status, HR_OK);
        ck_assert_uint_eq(card.vram_bytes, 8 * HR_GIB);
        return;
    }
    ck_assert_int_eq(status, HR_PRESET);
    char *problems = strstr(err.sentence, "mine.yaml:");
    snprintf(wanted, sizeof wanted, "mine.yaml:%s", own[_i].sentence);
    ck_assert_str_eq(problems, wanted);
    ck_assert_uint_eq(card.vram_bytes, 0);
    ck_assert_int_eq(hr_host_mem_live(), 0);
}
END_TEST

static void write_file(char path[160], const char *folder, const char *leaf, const char *words)
{
    (void)snprintf(path, 160, "%s/%s", folder, leaf);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(words, f);
    fclose(f);
}

// The parser of properties quotes what it does not understand: it must not be shown a file elsewhere.
START_TEST(properties_are_not_read_through_a_link_out_of_the_cards_folder)
{
    char home[] = "/tmp/headroom-card-XXXXXX", theirs[] = "/tmp/headroom-card-XXXXXX";
    char yaml[160], json[160], elsewhere[160], real[PATH_MAX];
    ck_assert(mkdtemp(home) != NULL && mkdtemp(theirs) != NULL);
    write_file(elsewhere, home, "elsewhere.json", "secret");
    write_file(yaml, theirs, "card.yaml", "like: a100-80g\n");
    (void)snprintf(json, sizeof json, "%s/card.json", theirs);
    ck_assert_int_eq(symlink(elsewhere, json), 0);
    ck_assert_int_eq(hr_card_load(yaml, &card, &err), HR_OK);
    ck_assert_str_eq(card.properties_path, "");
    ck_assert_int_eq(unlink(json), 0);
    write_file(json, theirs, "card.json", "{}");
    ck_assert_int_eq(hr_card_load(yaml, &card, &err), HR_OK);
    ck_assert_str_eq(card.properties_path, json);
    char linked_yaml[160], linked_json[160]; // both of one's own, kept elsewhere
    (void)snprintf(linked_yaml, sizeof linked_yaml, "%s/linked.yaml", home);
    (void)snprintf(linked_json, sizeof linked_json, "%s/linked.json", home);
    ck_assert(symlink(yaml, linked_yaml) == 0 && symlink(json, linked_json) == 0);
    ck_assert_int_eq(hr_card_load(linked_yaml, &card, &err), HR_OK);
    ck_assert_ptr_nonnull(realpath(card.properties_path, real));
    ck_assert_str_eq(real, json);
    ck_assert(unlink(yaml) == 0 && unlink(json) == 0 && unlink(linked_yaml) == 0 && unlink(linked_json) == 0);
    ck_assert(unlink(elsewhere) == 0 && rmdir(home) == 0 && rmdir(theirs) == 0);
}
END_TEST

// ---- the limit ------------------------------------------------------------------------------------------------

// The oracles of TensorFlow's formula, in MiB: a card without context, by size and compute capability.
static const struct {
    uint64_t vram_mib;
    unsigned major;
    uint64_t limit_mib;
} limits[] = {
    {8192, 7, 7142}, {24576, 8, 23040}, {81920, 9, 80120}, {14999, 7, 13949},
    {8192, 6, 7692}, {8192, 3, 7692},   {8192, 8, 6656},   {8192, 12, 6392},
    {2047, 9, 1822}, {2048, 9, 248},    {225, 7, 225},     {226, 7, 1},
};

START_TEST(the_limit_is_tensorflows)
{
    card = (hr_card){.vram_bytes = limits[_i].vram_mib * HR_MIB, .compute_major = limits[_i].major};
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, limits[_i].limit_mib * HR_MIB);
}
END_TEST

START_TEST(the_context_is_not_available)
{
    card = (hr_card){.vram_bytes = 15360 * HR_MIB, .context_bytes = 361 * HR_MIB, .compute_major = 7};
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, 13949 * HR_MIB); // the log line of a Tesla T4
}
END_TEST

START_TEST(a_fraction_is_of_the_whole_card)
{
    card = (hr_card){.vram_bytes = 8192 * HR_MIB, .context_bytes = 400 * HR_MIB, .compute_major = 8};
    set("allocator.fraction=0.5");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, 4096 * HR_MIB);
    set("allocator.fraction=0");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, (8192 - 400 - 1536) * HR_MIB);
}
END_TEST

START_TEST(pytorch_keeps_nothing_back)
{
    card = (hr_card){.vram_bytes = 8192 * HR_MIB, .context_bytes = 400 * HR_MIB, .compute_major = 8};
    set("allocator.kind=caching");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, (8192 - 400) * HR_MIB);
    set("allocator.fraction=0.5");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, 4096 * HR_MIB);
    set("allocator.fraction=1");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, (8192 - 400) * HR_MIB);
}
END_TEST

START_TEST(vram_is_the_limit_itself_and_fits_the_card)
{
    set("device.vram=64MiB");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, NULL, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, 64 * HR_MIB);
    card = (hr_card){.name = "small", .vram_bytes = 32 * HR_MIB};
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_CONSTRAINT);
    ck_assert_str_eq(err.sentence, "device.vram: card small has 32MiB, wanted 64MiB");
    ck_assert_str_eq(err.hint,
                     "-s device.vram=32MiB; or such a card with more: -s device.card=small,vram=64MiB");
    ck_assert_uint_eq(limit_bytes, 0);
}
END_TEST

static void limit_must_be(uint64_t mib)
{
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, mib * HR_MIB);
}

static void limit_must_be_of_nobody(uint64_t bytes)
{
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_OK);
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, NULL, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, bytes);
}

START_TEST(the_first_logical_device_is_the_limit_and_all_fit_the_card)
{
    card = (hr_card){.vram_bytes = 8192 * HR_MIB, .context_bytes = 192 * HR_MIB, .compute_major = 8};
    set("device.logical=2GiB,4GiB");
    limit_must_be(2048);
    set("device.logical=8000MiB"); // as much as is available, beyond what the formula would leave
    limit_must_be(8000);
    set("device.logical=4GiB,4GiB");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_CONSTRAINT);
    ck_assert_str_eq(err.sentence, "device.logical: 2 logical devices need 8GiB together, had 8000MiB");
    ck_assert_str_eq(err.hint, "-s device.logical=none");
    ck_assert_uint_eq(limit_bytes, 0);
    set("device.vram=1GiB");
    set("device.logical=1GiB,256B");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_CONSTRAINT);
    set("device.logical=512MiB,256MiB,256MiB");
    limit_must_be(512);
    set("device.logical=none");
    limit_must_be(1024);
}
END_TEST

START_TEST(logical_devices_are_sizes_with_commas_between)
{
    static const char *const wrong[] = {"1GiB,",
                                        ",1GiB",
                                        "1GiB;2GiB",
                                        "255B",
                                        "all",
                                        "1GiB,,1GiB",
                                        "16777215TiB,8EiB",
                                        "1GiB,none",
                                        "-1GiB,1GiB",
                                        "1000000000000000000000000000000000000GiB"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_LOGICAL, wrong[k], &err), HR_OK);
        set("device.vram=64GiB");
        ck_assert_msg(hr_knobs_validate(&knobs, &err) == HR_CONSTRAINT, "%s passes", wrong[k]);
        ck_assert_str_eq(err.hint, "-s device.logical=none");
    }
}
END_TEST

START_TEST(without_card_and_vram_a_plan_has_no_limit_and_a_computation_that_of_the_machine)
{
    set("device.kind=plan");
    ck_assert_str_eq(hr_card_of(&knobs), "unlimited");
    limit_must_be_of_nobody(HR_UNLIMITED_BYTES);
    set("device.vram=1GiB");
    ck_assert_str_eq(hr_card_of(&knobs), "");
    set("device.vram=none");
    set("device.kind=cpu");
    ck_assert_str_eq(hr_card_of(&knobs), "");
    limit_must_be_of_nobody(machine_share_bytes());
    set("device.kind=cuda");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    ck_assert_msg(strstr(err.sentence, "name a card in device.card") != NULL, "%s", err.sentence);
    set("device.card=rtx3070-8g");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_OK);
}
END_TEST

START_TEST(the_card_unlimited_has_an_a100s_times_and_no_end)
{
    hr_card a100;
    ck_assert_int_eq(hr_card_load("unlimited", &card, &err), HR_OK);
    ck_assert_int_eq(hr_card_load("a100-80g", &a100, &err), HR_OK);
    ck_assert_str_eq(card.name, "unlimited");
    ck_assert_double_eq(card.float16_flops, a100.float16_flops);
    ck_assert_double_eq(card.memory_bytes_per_second, a100.memory_bytes_per_second);
    set("device.kind=plan");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert(hr_limit_is_none(limit_bytes));
    set("device.card=unlimited");
    set("allocator.fraction=0.5");
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_CONSTRAINT);
    set("allocator.fraction=none");
    set("device.vram=1GiB"); // within it
    ck_assert_int_eq(hr_device_limit_bytes(&knobs, &card, &limit_bytes, &err), HR_OK);
    ck_assert_uint_eq(limit_bytes, HR_GIB);
}
END_TEST

// ---- what differs -----------------------------------------------------------------------------------------------

// What cuDNN answers is asked by them: where they go, other kernels and other times come.
START_TEST(the_properties_stay_while_the_processor_is_the_same)
{
    static const char *const same[] = {"vram=40GiB",          "context=1GiB",
                                       "granularity=4MiB",    "link_bytes_per_second=1e10",
                                       "launch_seconds=1e-5", "vram=40GiB,context=1GiB"};
    static const char *const other[] = {"multiprocessors=64",
                                        "compute_capability=8.6",
                                        "title=mine",
                                        "float32_flops=1e12",
                                        "tf32_flops=1e12",
                                        "memory_bytes_per_second=1e12",
                                        "vram=40GiB,float16_flops=1e12",
                                        "float16_flops=1e12,vram=40GiB"};
    hr_card whole;
    char words[128];
    ck_assert_int_eq(hr_card_load("a100-80g", &whole, &err), HR_OK);
    ck_assert_str_ne(whole.properties_path, "");
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        (void)snprintf(words, sizeof words, "a100-80g,%s", same[k]);
        ck_assert_int_eq(hr_card_load(words, &card, &err), HR_OK);
        ck_assert_msg(strcmp(card.properties_path, whole.properties_path) == 0, "%s", words);
    }
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        (void)snprintf(words, sizeof words, "a100-80g,%s", other[k]);
        ck_assert_int_eq(hr_card_load(words, &card, &err), HR_OK);
        ck_assert_msg(card.properties_path[0] == '\0', "%s", words);
    }
}
END_TEST

START_TEST(a_card_is_a_name_and_what_differs)
{
    hr_card a100;
    ck_assert_int_eq(hr_card_load("a100-80g", &a100, &err), HR_OK);
    ck_assert_int_eq(hr_card_load("a100-80g,vram=40GiB,memory_bytes_per_second=1.5e12", &card, &err), HR_OK);
    ck_assert_str_eq(card.name, "a100-80g");
    ck_assert_uint_eq(card.vram_bytes, 40 * HR_GIB);
    ck_assert_double_eq(card.memory_bytes_per_second, 1.5e12);
    ck_assert_double_eq(card.float32_flops, a100.float32_flops);
    ck_assert_str_ne(a100.properties_path, "");
    ck_assert_str_eq(card.properties_path, ""); // it is no longer that card
    ck_assert_int_eq(hr_card_load("h200-141g,vram=unlimited", &card, &err), HR_OK);
    ck_assert(hr_limit_is_none(card.vram_bytes));
    ck_assert_int_eq(hr_card_load("a100-80g,vram=40GiB,vram=50GiB", &card, &err), HR_OK); // the last one
    ck_assert_uint_eq(card.vram_bytes, 50 * HR_GIB);
}
END_TEST

#define FIELDS_OF_A100 "headroom cards a100-80g # every field with a value"
static const struct {
    const char *words, *sentence, *hint;
} differs_wrongly[] = {
    {"a100-80g,vrm=40GiB", "device.card: a card has no 'vrm' — did you mean 'vram'?",
     "-s device.card=a100-80g,vram=40GiB"},
    {"a100-80g,context=1GiB,vrm=8GiB,year=3", "device.card: a card has no 'vrm' — did you mean 'vram'?",
     "-s device.card=a100-80g,context=1GiB,vram=8GiB,year=3"},
    {"a100-80g,40GiB", "device.card: a card has no '40GiB'", FIELDS_OF_A100},
    {"a100-80g,vram=much", "device.card: vram needs a size such as 8GiB, had 'much'", FIELDS_OF_A100},
    {"a100-80g,vram=0B", "device.card: vram needs a size such as 8GiB, had '0B'", FIELDS_OF_A100},
    {"a100-80g,float32_flops=-1",
     "device.card: float32_flops needs a number of 1e6 to 1e20 a second, had '-1'", FIELDS_OF_A100},
    {"a100-80g,launch_seconds=1e300", "device.card: launch_seconds needs seconds, of 1e-9 to 1, had '1e300'",
     FIELDS_OF_A100},
    {"a100-80g,context=90GiB", "device.card: context must be smaller than vram", FIELDS_OF_A100},
    {"a100-80g,compute_capability=x",
     "device.card: compute_capability needs a compute capability such as 8.6, had 'x'", FIELDS_OF_A100},
};

START_TEST(what_differs_wrongly_is_said)
{
    ck_assert_int_eq(hr_card_load(differs_wrongly[_i].words, &card, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence, differs_wrongly[_i].sentence);
    ck_assert_str_eq(err.hint, differs_wrongly[_i].hint);
    ck_assert_uint_eq(card.vram_bytes, 0);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        hr_status status = hr_card_load(_i == 0 ? "a100-80g" : "unknown", &card, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : _i == 0 ? HR_OK : HR_PRESET);
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("card");
    TCase *tc = tcase_create("cards and limits");
    tcase_add_checked_fixture(tc, setup, NULL);
    size_t count = 0;
    (void)card_rows(&count);
    tcase_add_loop_test(tc, each_card_of_the_table_loads_with_sane_numbers, 0, (int)count);
    tcase_add_test(tc, cards_are_listed_by_name_and_title);
    tcase_add_test(tc, an_unknown_card_gets_the_known_ones);
    tcase_add_loop_test(tc, a_card_of_ones_own_is_read_as_strictly, 0, (int)(sizeof own / sizeof *own));
    tcase_add_test(tc, properties_are_not_read_through_a_link_out_of_the_cards_folder);
    tcase_add_loop_test(tc, the_limit_is_tensorflows, 0, (int)(sizeof limits / sizeof *limits));
    tcase_add_test(tc, the_context_is_not_available);
    tcase_add_test(tc, a_fraction_is_of_the_whole_card);
    tcase_add_test(tc, pytorch_keeps_nothing_back);
    tcase_add_test(tc, vram_is_the_limit_itself_and_fits_the_card);
    tcase_add_test(tc, the_first_logical_device_is_the_limit_and_all_fit_the_card);
    tcase_add_test(tc, logical_devices_are_sizes_with_commas_between);
    tcase_add_test(tc, without_card_and_vram_a_plan_has_no_limit_and_a_computation_that_of_the_machine);
    tcase_add_test(tc, the_card_unlimited_has_an_a100s_times_and_no_end);
    tcase_add_test(tc, the_properties_stay_while_the_processor_is_the_same);
    tcase_add_test(tc, a_card_is_a_name_and_what_differs);
    tcase_add_loop_test(tc, what_differs_wrongly_is_said, 0,
                        (int)(sizeof differs_wrongly / sizeof *differs_wrongly));
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
