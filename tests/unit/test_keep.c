// SPDX-License-Identifier: Apache-2.0
// What a chain keeps of samples on their way: whatever pipeline.stages, cache and shuffle_of say, the same batches come in the same
// order, also after a kill at any point; a cache reads each sample once; and the host ledger is its formula to the byte.
#include <time.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/philox.h"
#include "data/cache.h"
#include "data/data_files.h"
#include "data/pipeline.h"
#include "data/pool.h"

enum { TRAIN = 61, EVAL = 4, IMAGE = 32 * 32 * 3, PLACES = 9, MOST_ITEMS = 400 };

static const data_form form = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                        {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const pipeline_wire wire = {.train = {DATA_FLOAT}};
static data_folder folder, cache_folder;

static const char *const orders[] = {
    "cache, shuffle, map, batch, prefetch", "shuffle, cache, map, batch, prefetch",
    "cache, map, shuffle, batch, prefetch", "map, cache, shuffle, batch, prefetch",
    "shuffle, map, cache, batch, prefetch", "map, shuffle, cache, batch",
};
enum { ORDERS = sizeof orders / sizeof *orders };

static void make_folders(void)
{
    folder = data_folder_make();
    cache_folder = data_folder_make();
    cifar_write_set(&folder, TRAIN, EVAL);
}

static void remove_folders(void)
{
    data_folder_remove(&folder);
    data_folder_remove(&cache_folder);
}

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[128];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "pipeline.%s=%s", key, value);
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_knobs base_knobs(void)
{
    char places[16];
    hr_knobs knobs = data_knobs("cifar10", folder.path);
    (void)snprintf(places, sizeof places, "%d", PLACES);
    set(&knobs, "shuffle", places);
    set(&knobs, "cache_path", cache_folder.path);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=7", NULL), HR_OK);
    return knobs;
}

// A random but reproducible number in [0, n).
static uint32_t pick(uint32_t seed, uint32_t which, uint32_t n)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    return word[0] % n;
}

// Whole combinations, the order given.
static hr_knobs random_knobs(uint32_t seed, const char *order)
{
    static const char *const caches[] = {"none", "ram", "file"}, *const counts[] = {"0", "1", "2", "3"},
                             *const remainders[] = {"drop", "keep", "pad"};
    char pair[64];
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", order);
    set(&knobs, "cache", strstr(order, "cache") != NULL ? caches[pick(seed, 0, 3)] : "none");
    set(&knobs, "shuffle_of", pick(seed, 1, 3) > 0 ? "elements" : "indices");
    set(&knobs, "prefetch", counts[pick(seed, 2, 4)]);
    set(&knobs, "map_threads", counts[1 + pick(seed, 3, 3)]);
    (void)snprintf(pair, sizeof pair, "batch.remainder=%s", remainders[pick(seed, 4, 3)]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static pipeline *open_pipeline(const hr_knobs *knobs)
{
    hr_err err = {0};
    pipeline *p = NULL;
    ck_assert_msg(pipeline_open(knobs, &form, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static data_item next_item(pipeline *p)
{
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    ck_assert_msg(pipeline_next(p, &item, &wait_ns, &err) == HR_OK, "%s", err.sentence);
    return item;
}

static uint64_t hash_of(const data_item *item)
{
    if (item->end) {
        return 1;
    }
    uint64_t hash = hash64(item->room.slot[0], (size_t)item->count * IMAGE * sizeof(float), item->count);
    return hash64(item->room.slot[1], item->count * sizeof(int32_t), hash);
}

static uint32_t sample_at(const data_item *item, uint32_t place)
{
    const float *image = (const float *)item->room.slot[0] + (size_t)place * IMAGE;
    return (uint32_t)(image[0] * 255.0f + 0.5f) + ((uint32_t)(image[3] * 255.0f + 0.5f) << 8);
}

static uint64_t stage_bytes(const pipeline *p, const char *name)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(p, info);
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(info[k].name, name) == 0) {
            ck_assert_uint_eq(info[k].host_bytes, info[k].peak_host_bytes);
            return info[k].host_bytes;
        }
    }
    return 0;
}

// ---- what comes -----------------------------------------------------------------------------------------------

// The plain chain of the same knobs: nothing kept, one thread, nothing ahead. A shuffle in front of a cache is drawn once.
static hr_knobs plain_of(const hr_knobs *knobs)
{
    hr_knobs plain = *knobs;
    set(&plain, "stages", "cache, shuffle, map, batch, prefetch");
    set(&plain, "cache", "none");
    set(&plain, "shuffle_of", "indices");
    set(&plain, "prefetch", "0");
    set(&plain, "map_threads", "1");
    return plain;
}

static bool is_drawn_once(const hr_knobs *knobs)
{
    const char *order = hr_knob_text(knobs, HR_KNOB_PIPELINE_STAGES);
    return !hr_knob_is(knobs, HR_KNOB_PIPELINE_CACHE, "none") &&
           strstr(order, "cache") > strstr(order, "shuffle");
}

START_TEST(whatever_is_kept_the_same_batches_come_in_the_same_order)
{
    for (uint32_t k = 0; k < ORDERS; k++) {
        const hr_knobs knobs = random_knobs((uint32_t)_i, orders[k]), plain = plain_of(&knobs);
        pipeline *p = open_pipeline(&knobs), *q = open_pipeline(&plain);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            if (is_drawn_once(&knobs)) {
                ck_assert_int_eq(pipeline_seek(q, (data_position){0}, NULL), HR_OK);
            }
            for (data_item b = {0}; !b.end;) {
                b = next_item(q);
                const uint64_t expected = hash_of(&b);
                const data_item a = next_item(p);
                ck_assert_uint_eq(hash_of(&a), expected);
            }
        }
        pipeline_close(p);
        pipeline_close(q);
    }
}
END_TEST

// Killed anywhere and gone on with, as a save does it: every sample once an epoch, none twice.
START_TEST(every_sample_comes_once_an_epoch_through_kills_at_any_point)
{
    hr_knobs knobs = random_knobs((uint32_t)_i, orders[_i % ORDERS]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.remainder=keep", NULL), HR_OK);
    pipeline *p = open_pipeline(&knobs);
    for (uint32_t epoch = 0, kills = 0; epoch < 3; epoch++) {
        uint32_t times[TRAIN] = {0};
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            for (uint32_t k = 0; k < item.count; k++) {
                times[sample_at(&item, k)]++;
            }
            if (pick((uint32_t)_i, 100 + kills++, 3) == 0) {
                const data_position position = pipeline_position(p);
                pipeline_close(p);
                p = open_pipeline(&knobs);
                ck_assert_int_eq(pipeline_seek(p, position, NULL), HR_OK);
            }
        }
        for (uint32_t k = 0; k < TRAIN; k++) {
            ck_assert_uint_eq(times[k], 1);
        }
    }
    pipeline_close(p);
}
END_TEST

// The files are emptied behind the first epoch: what comes then was kept.
START_TEST(a_cache_reads_each_sample_once)
{
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", orders[_i % ORDERS]);
    set(&knobs, "cache", _i < ORDERS ? "ram" : "file");
    set(&knobs, "shuffle_of", "indices"); // elements are read ahead, also of the next epoch
    set(&knobs, "prefetch", "0");
    pipeline *p = open_pipeline(&knobs);
    while (!next_item(p).end) {
    }
    char path[FILE_NAME_MAX];
    ck_assert_int_eq(truncate(data_folder_file(&folder, "data_batch_1.bin", path), 0), 0);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        uint32_t times[TRAIN] = {0};
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            for (uint32_t k = 0; k < item.count; k++) {
                times[sample_at(&item, k)]++;
            }
        }
        for (uint32_t k = 0; k < TRAIN - TRAIN % 7; k++) {
            ck_assert_uint_le(times[k], 1);
        }
    }
    pipeline_close(p);
    cifar_write_set(&folder, TRAIN, EVAL);
}
END_TEST

// Another batch size is another chain over the same samples: slices and what a cache has of them stay, and none is read again.
START_TEST(a_chain_made_anew_keeps_what_was_fetched)
{
    static const char *const raw_orders[] = {
        "cache, shuffle, map, batch, prefetch", "shuffle, cache, map, batch, prefetch",
        "slices, shuffle, map, batch, prefetch", "slices, cache, shuffle, map, batch"};
    const char *order = raw_orders[_i % 4];
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", order);
    set(&knobs, "cache", strstr(order, "cache") == NULL ? "none" : _i < 4 ? "ram" : "file");
    pipeline *p = open_pipeline(&knobs);
    while (!next_item(p).end) {
    }
    char path[FILE_NAME_MAX];
    ck_assert_int_eq(truncate(data_folder_file(&folder, "data_batch_1.bin", path), 0), 0);
    hr_knobs turned = knobs;
    ck_assert_int_eq(hr_knobs_set_pair(&turned, "batch.size=5", NULL), HR_OK);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) { // and when there is no memory it is the old one that goes on
        hr_host_mem_fail_at(nth);
        const hr_status status = pipeline_rechain(p, &turned, &wire, NULL);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(pipeline_seek(p, (data_position){0}, NULL), HR_OK);
        uint32_t samples = 0;
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            samples += item.count;
        }
        ck_assert_uint_eq(samples, failed ? TRAIN / 7 * 7 : TRAIN / 5 * 5);
    }
    pipeline_close(p);
    cifar_write_set(&folder, TRAIN, EVAL);
}
END_TEST

// A file in another folder, in place of memory, or of samples that are made: such a cache is another one.
START_TEST(another_cache_begins_empty)
{
    static const char *const turns[][2] = {{"cache", "file"},
                                           {"stages", "map, cache, shuffle, batch"},
                                           {"stages", "slices, cache, shuffle, map, batch"}};
    hr_knobs knobs = base_knobs();
    set(&knobs, "cache", "ram");
    set(&knobs, "prefetch", "0");
    pipeline *p = open_pipeline(&knobs);
    while (!next_item(p).end) {
    }
    set(&knobs, turns[_i][0], turns[_i][1]);
    if (_i == 2) {
        set(&knobs, "cache", "none");
        set(&knobs, "stages", "slices, shuffle, map, batch");
    }
    ck_assert_int_eq(pipeline_rechain(p, &knobs, &wire, NULL), HR_OK);
    pipeline *q = open_pipeline(&knobs);
    for (data_item b = {0}; !b.end;) {
        b = next_item(q);
        const uint64_t expected = hash_of(&b);
        const data_item a = next_item(p);
        ck_assert_uint_eq(hash_of(&a), expected);
    }
    pipeline_close(p);
    pipeline_close(q);
}
END_TEST

// ---- the ledger -----------------------------------------------------------------------------------------------

// C5 and C6 of what tf.data keeps: n elements as they are upstream of the stage.
START_TEST(host_bytes_are_the_formula)
{
    const uint64_t file_bytes = IMAGE, made_bytes = IMAGE * sizeof(float) + 8; // the label lies in 8
    for (uint32_t k = 0; k < ORDERS; k++) {
        const char *order = orders[k];
        const bool made = strstr(order, "cache") > strstr(order, "map"),
                   mapped = strstr(order, "shuffle") > strstr(order, "map");
        hr_knobs knobs = base_knobs();
        set(&knobs, "stages", order);
        set(&knobs, "cache", "ram");
        set(&knobs, "shuffle_of", "elements");
        pipeline *p = open_pipeline(&knobs);
        ck_assert_uint_eq(stage_bytes(p, "cache"),
                          TRAIN * ((made ? made_bytes : file_bytes) + DATA_CACHE_ENTRY_BYTES));
        ck_assert_uint_eq(stage_bytes(p, "shuffle"),
                          PLACES * ((mapped ? made_bytes : file_bytes) + DATA_POOL_ENTRY_BYTES + 8));
        pipeline_close(p);
        set(&knobs, "cache", "file");
        set(&knobs, "shuffle_of", "indices");
        p = open_pipeline(&knobs);
        ck_assert_uint_eq(stage_bytes(p, "cache"), TRAIN * DATA_CACHE_ENTRY_BYTES);
        ck_assert_uint_eq(stage_bytes(p, "shuffle"), PLACES * sizeof(uint32_t));
        pipeline_close(p);
    }
}
END_TEST

// ---- arrays in memory -----------------------------------------------------------------------------------------

// C1, C10 and K11: a script that reads everything first holds everything, twice once from_tensor_slices has it.
START_TEST(an_array_takes_its_bytes_and_gives_the_same_samples)
{
    static const struct {
        const char *type;
        uint64_t bytes;
    } types[] = {{"uint8", 1}, {"float32", 4}, {"float64", 8}};
    const uint64_t array = TRAIN * (IMAGE * types[_i].bytes + 4), slices = array + TRAIN;
    hr_knobs plain = base_knobs(), knobs = plain;
    set(&knobs, "array", types[_i].type);
    set(&knobs, "stages", "slices,shuffle,map,batch,prefetch");
    pipeline *q = open_pipeline(&plain);
    for (uint32_t stacked = 0; stacked < 2; stacked++) {
        pipeline_stage_info info[PIPELINE_MAX_STAGES];
        set(&knobs, "mode", stacked ? "eager_stack" : "stream");
        pipeline *p = open_pipeline(&knobs);
        ck_assert_uint_ge(pipeline_stages(p, info), 5);
        ck_assert_str_eq(info[0].name, "source");
        ck_assert_uint_eq(info[0].host_bytes, array);
        ck_assert_uint_eq(info[0].peak_host_bytes,
                          array + (stacked ? TRAIN * (IMAGE * types[_i].bytes + sizeof(void *)) : 0));
        ck_assert_uint_eq(stage_bytes(p, "slices"), slices);
        ck_assert_int_eq(pipeline_seek(q, (data_position){0}, NULL), HR_OK);
        for (data_item b = {0}; !b.end;) {
            b = next_item(q);
            const uint64_t expected = hash_of(&b);
            const data_item a = next_item(p);
            ck_assert_uint_eq(hash_of(&a), expected);
        }
        data_item a, b;
        ck_assert_int_eq(pipeline_next_eval(p, EVAL, &a, NULL), HR_OK);
        const uint64_t held_out = hash_of(&a);
        ck_assert_int_eq(pipeline_next_eval(q, EVAL, &b, NULL), HR_OK);
        ck_assert_uint_eq(hash_of(&b), held_out);
        pipeline_close(p);
    }
    pipeline_close(q);
}
END_TEST

static hr_status decode_nothing(const data_source *s, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                                hr_err *err)
{
    (void)s, (void)raw, (void)scratch, (void)image, (void)err;
    return HR_OK;
}

// 18000 x 10000 pixels of three bytes have 4.3 GB as doubles: 25 MB of them are left in 32 bits.
START_TEST(an_array_of_samples_beyond_two_gigabytes_is_refused)
{
    static const data_source_ops ops = {.decode = decode_nothing};
    data_source images = {.ops = &ops,
                          .info = {.label = "giant", .height = 18000, .width = 10000, .channels = 3},
                          .room_bytes = 540000000};
    images.info.train_samples = 2;
    for (uint32_t value_bytes = 1; value_bytes <= 8; value_bytes += value_bytes == 1 ? 3 : 4) {
        data_source *array = NULL;
        hr_err err = {0};
        const hr_status status = source_array_open(&images, value_bytes, false, &array, &err);
        if (value_bytes == 1) {
            ck_assert_int_eq(status, HR_OK);
            ck_assert_uint_eq(array->raw_bytes, 540000000);
            ck_assert_uint_ge(array->room_bytes, 3u * 540000000);
            hr_free(array);
        } else {
            ck_assert_int_eq(status, HR_DATA);
            ck_assert_ptr_null(array);
            ck_assert_ptr_nonnull(strstr(err.sentence, "pipeline.array of giant: needed samples"));
        }
    }
}
END_TEST

// ---- what goes wrong ------------------------------------------------------------------------------------------

static hr_status two_epochs(const hr_knobs *knobs)
{
    pipeline *p = NULL;
    hr_status status = pipeline_open(knobs, &form, &wire, &p, NULL);
    for (uint32_t ends = 0, k = 0; status == HR_OK && ends < 2 && k < MOST_ITEMS; k++) {
        data_item item;
        uint64_t wait_ns;
        status = pipeline_next(p, &item, &wait_ns, NULL);
        ends += status == HR_OK && item.end;
    }
    pipeline_close(p);
    return status;
}

START_TEST(every_allocation_may_fail_once)
{
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", orders[_i % ORDERS]);
    set(&knobs, "cache", _i < ORDERS ? "ram" : "file");
    set(&knobs, "shuffle_of", "elements");
    set(&knobs, "array", _i % 2 == 0 ? "off" : "float64");
    set(&knobs, "mode", _i % 4 < 2 ? "stream" : "eager_stack");
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        const hr_status status = two_epochs(&knobs);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(every_operation_on_the_caches_file_may_fail_once)
{
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", orders[_i % ORDERS]);
    set(&knobs, "cache", "file");
    set(&knobs, "prefetch", "0"); // nothing is made that the test does not take
    bool failed = true;
    uint64_t failures = 0;
    for (uint64_t nth = 1; failed; nth++) {
        file_fail_at(nth);
        const hr_status status = two_epochs(&knobs);
        failed = file_fail_at(0) >= nth;
        ck_assert(failed ? status == HR_READ || status == HR_WRITE : status == HR_OK);
        failures += failed;
    }
    ck_assert_uint_ge(failures, 2 + TRAIN); // it is made, its room is taken, and samples are written and read
}
END_TEST

// What is said to do instead is typed as it stands, and then it works.
static void assert_typed(const hr_knobs *knobs, const hr_err *err)
{
    hr_knobs other = *knobs;
    ck_assert_msg(strncmp(err->hint, "-s ", 3) == 0, "%s: %s", err->sentence, err->hint);
    ck_assert_int_eq(hr_knobs_set_pair(&other, err->hint + 3, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_validate(&other, NULL), HR_OK);
    ck_assert_int_eq(two_epochs(&other), HR_OK);
}

START_TEST(the_way_out_can_be_typed)
{
    static const char *const orders_of[] = {"cache, shuffle, map, batch, prefetch",
                                            "slices, shuffle, map, batch, prefetch"};
    static const char *const begins[] = {"cache of ", "slices of "};
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", orders_of[_i == 1]);
    set(&knobs, "cache", _i == 0 ? "ram" : _i == 1 ? "none" : "file");
    uint32_t said = 0;
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_err err = {0};
        pipeline *p = NULL;
        hr_host_mem_fail_at(nth);
        (void)!pipeline_open(&knobs, &form, &wire, &p, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        if (strncmp(err.sentence, begins[_i == 1], strlen(begins[_i == 1])) == 0) {
            assert_typed(&knobs, &err);
            said++;
        }
        pipeline_close(p);
    }
    ck_assert_uint_ge(said, 2);
    for (uint64_t nth = 3; _i == 2 && nth < 6; nth++) { // of its file, once there is one
        hr_err err = {0};
        data_item item;
        uint64_t wait_ns;
        set(&knobs, "prefetch", "0");
        pipeline *p = open_pipeline(&knobs);
        file_fail_at(nth);
        hr_status status = HR_OK;
        for (int k = 0; k < MOST_ITEMS && status == HR_OK; k++) {
            status = pipeline_next(p, &item, &wait_ns, &err);
        }
        file_fail_at(0);
        ck_assert_int_ne(status, HR_OK);
        assert_typed(&knobs, &err);
        pipeline_close(p);
    }
}
END_TEST

START_TEST(what_no_64_bits_hold_is_short_memory)
{
    const data_cache_plan giant = {
        .name = "cache", .instead = "-s pipeline.cache=none", .samples = 2, .bytes = UINT64_MAX - 3};
    data_cache *cache = NULL;
    hr_err err = {0};
    ck_assert_uint_eq(data_cache_host_bytes(&giant), UINT64_MAX);
    ck_assert_int_eq(data_cache_open(&giant, &cache, &err), HR_NOMEM);
    ck_assert_ptr_null(cache);
    static const data_source_ops ops = {.decode = decode_nothing};
    const data_source source = {
        .ops = &ops, .raw_bytes = UINT32_MAX, .info = {.train_samples = UINT64_MAX / 4}};
    ck_assert_uint_eq(data_source_set_bytes(&source, DATA_TRAIN), UINT64_MAX);
}
END_TEST

START_TEST(what_succeeds_says_nothing)
{
    hr_knobs knobs = base_knobs();
    hr_err err = {0};
    pipeline *p = NULL;
    set(&knobs, "map_threads", "2");
    ck_assert_int_eq(pipeline_open(&knobs, &form, &wire, &p, &err), HR_OK);
    ck_assert_str_eq(err.hint, "");
    pipeline_close(p);
}
END_TEST

START_TEST(a_folder_that_takes_no_file_is_said)
{
    hr_knobs knobs = base_knobs();
    hr_err err = {0};
    pipeline *p = NULL;
    set(&knobs, "cache", "file");
    set(&knobs, "cache_path", "/nowhere");
    ck_assert_int_eq(pipeline_open(&knobs, &form, &wire, &p, &err), HR_WRITE);
    ck_assert_str_eq(err.sentence,
                     "/nowhere: needed a folder that takes files, had: No such file or directory");
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(an_order_of_stages_that_is_none_is_refused)
{
    static const char *const strange[] = {"",
                                          "map",
                                          "batch, map",
                                          "map, batch, batch",
                                          "map, bath",
                                          "batch, shuffle, map",
                                          "map, batch, cache",
                                          "prefetch, map, batch",
                                          "map, batch, prefetch, shuffle",
                                          "repeat, cache, map, batch",
                                          "map, repeat, repeat, batch",
                                          "repeat, slices, map, batch"};
    for (size_t k = 0; k < sizeof strange / sizeof *strange; k++) {
        hr_knobs knobs = base_knobs();
        hr_err err = {0};
        set(&knobs, "stages", strange[k]);
        ck_assert_int_ne(hr_knobs_validate(&knobs, &err), HR_OK);
        ck_assert_ptr_nonnull(strstr(err.sentence, "pipeline.stages must name map"));
    }
    hr_knobs knobs = base_knobs();
    set(&knobs, "stages", "map, batch");
    ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    set(&knobs, "cache", "ram");
    ck_assert_int_ne(hr_knobs_validate(&knobs, NULL), HR_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keep");
    TCase *c = tcase_create("keep");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, make_folders, remove_folders);
    tcase_add_loop_test(c, whatever_is_kept_the_same_batches_come_in_the_same_order, 0, 12);
    tcase_add_loop_test(c, every_sample_comes_once_an_epoch_through_kills_at_any_point, 0, 114);
    tcase_add_loop_test(c, a_cache_reads_each_sample_once, 0, 2 * ORDERS);
    tcase_add_loop_test(c, a_chain_made_anew_keeps_what_was_fetched, 0, 8);
    tcase_add_loop_test(c, another_cache_begins_empty, 0, 3);
    tcase_add_test(c, host_bytes_are_the_formula);
    tcase_add_loop_test(c, an_array_takes_its_bytes_and_gives_the_same_samples, 0, 3);
    tcase_add_test(c, an_array_of_samples_beyond_two_gigabytes_is_refused);
    tcase_add_loop_test(c, every_allocation_may_fail_once, 0, 2 * ORDERS);
    tcase_add_loop_test(c, every_operation_on_the_caches_file_may_fail_once, 0, ORDERS);
    tcase_add_loop_test(c, the_way_out_can_be_typed, 0, 3);
    tcase_add_test(c, what_no_64_bits_hold_is_short_memory);
    tcase_add_test(c, what_succeeds_says_nothing);
    tcase_add_test(c, a_folder_that_takes_no_file_is_said);
    tcase_add_test(c, an_order_of_stages_that_is_none_is_refused);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
