// SPDX-License-Identifier: Apache-2.0
// The pipeline: every sample once an epoch, in an order that only the seed and the epoch decide; the same bytes
// after a seek as without it, with a producer thread as without; errors where they belong; memory as the ledger says.
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/philox.h"
#include "data/data_files.h"
#include "data/pipeline.h"

enum { TRAIN = 53, EVAL = 9, IMAGE = 32 * 32 * 3 };

static const data_form cifar_form = {.count = 2,
                                     .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                              {.type = DATA_IDS, .is_label = true, .classes = 10}}};

static const float *images_of(const data_item *item)
{
    return item->room.slot[0];
}

static const int32_t *labels_of(const data_item *item)
{
    return item->room.slot[1];
}

static data_folder folder;

static const pipeline_wire as_it_is = {.train = {DATA_FLOAT}};

static void make_folder(void)
{
    folder = data_folder_make();
    cifar_write_set(&folder, TRAIN, EVAL);
}

static void remove_folder(void)
{
    data_folder_remove(&folder);
}

typedef struct setting {
    int shuffle, batch, prefetch, seed, threads;
    const char *remainder;
} setting;

static hr_knobs knobs_of(setting c)
{
    char pair[64];
    hr_knobs knobs = data_knobs("cifar10", folder.path);
    (void)snprintf(pair, sizeof pair, "pipeline.shuffle=%d", c.shuffle);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "batch.size=%d", c.batch);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "pipeline.prefetch=%d", c.prefetch);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "pipeline.map_threads=%d", c.threads);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "train.seed=%d", c.seed);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "batch.remainder=%s", c.remainder);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static pipeline *open_pipeline(setting c)
{
    hr_knobs knobs = knobs_of(c);
    hr_err err = {0};
    pipeline *p = NULL;
    ck_assert_msg(pipeline_open(&knobs, &cifar_form, &as_it_is, &p, &err) == HR_OK, "%s", err.sentence);
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

// Which of the folder's samples stands at `place` of a batch, by its first two red pixels.
static uint32_t sample_at(const data_item *item, uint32_t place)
{
    const float *image = images_of(item) + (size_t)place * IMAGE;
    return (uint32_t)(image[0] * 255.0f + 0.5f) + ((uint32_t)(image[3] * 255.0f + 0.5f) << 8);
}

static uint64_t hash_of(const data_item *item)
{
    if (item->end) {
        return 1;
    }
    uint64_t hash = hash64(images_of(item), (size_t)item->count * IMAGE * sizeof(float), item->count);
    return hash64(labels_of(item), item->count * sizeof *labels_of(item), hash);
}

// A random but reproducible number in [0, n).
static uint32_t pick(uint32_t seed, uint32_t which, uint32_t n)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    return word[0] % n;
}

static setting random_setting(uint32_t seed)
{
    static const int shuffles[] = {0, 1, 7, TRAIN - 1, TRAIN, 10000};
    static const char *const remainders[] = {"drop", "keep", "pad"};
    return (setting){.shuffle = shuffles[pick(seed, 0, 6)],
                     .batch = 1 + (int)pick(seed, 1, 20),
                     .prefetch = (int)pick(seed, 2, 4),
                     .seed = (int)pick(seed, 3, 100),
                     .remainder = remainders[pick(seed, 4, 3)]};
}

// ---- what an epoch gives --------------------------------------------------------------------------------------

START_TEST(every_sample_comes_once_an_epoch)
{
    setting c = random_setting((uint32_t)_i);
    c.remainder = "keep";
    pipeline *p = open_pipeline(c);
    for (int epoch = 0; epoch < 3; epoch++) {
        uint32_t times[TRAIN] = {0}, count = 0;
        uint64_t steps = 0;
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            for (uint32_t i = 0; i < item.count; i++) {
                times[sample_at(&item, i)]++;
            }
            count += item.count;
            steps++;
        }
        ck_assert_uint_eq(count, TRAIN);
        ck_assert_uint_eq(steps, (TRAIN + (uint32_t)c.batch - 1) / (uint32_t)c.batch);
        for (int i = 0; i < TRAIN; i++) {
            ck_assert_uint_eq(times[i], 1);
        }
    }
    pipeline_close(p);
}
END_TEST

START_TEST(images_are_interleaved_and_between_zero_and_one)
{
    pipeline *p = open_pipeline((setting){.batch = 8, .remainder = "keep"});
    data_item item = next_item(p);
    ck_assert_uint_eq(item.count, 8);
    for (uint32_t i = 0; i < item.count; i++) {
        uint8_t record[CIFAR_RECORD];
        cifar_record(i, record);
        ck_assert_int_eq(labels_of(&item)[i], record[0]);
        for (uint32_t k = 0; k < IMAGE; k++) {
            uint32_t channel = k % 3, pixel = k / 3;
            float wanted = (float)record[1 + channel * 1024 + pixel] / 255.0f;
            ck_assert(images_of(&item)[i * IMAGE + k] == wanted);
        }
    }
    pipeline_close(p);
}
END_TEST

START_TEST(the_remainder_is_dropped_kept_or_padded)
{
    static const setting settings[] = {{.batch = 10, .remainder = "drop"},
                                       {.batch = 10, .remainder = "keep"},
                                       {.batch = 10, .remainder = "pad"}};
    static const uint32_t steps[] = {5, 6, 6}, last[] = {10, 3, 10};
    static const uint64_t samples[] = {50, 53, 53};
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        setting c = settings[_i];
        c.prefetch = prefetch;
        pipeline *p = open_pipeline(c);
        uint32_t count = 0, begun_with[10];
        for (uint32_t step = 0; step < steps[_i]; step++) {
            data_item item = next_item(p);
            for (uint32_t i = 0; step == 0 && i < 10; i++) {
                begun_with[i] = sample_at(&item, i);
            }
            for (uint32_t i = 3; _i == 2 && step == 5 && i < 10; i++) {
                ck_assert_uint_eq(sample_at(&item, i), begun_with[i - 3]);
            }
            count = item.count;
        }
        ck_assert_uint_eq(count, last[_i]);
        ck_assert_uint_eq(pipeline_position(p).samples, samples[_i]);
        ck_assert_uint_eq(pipeline_position(p).epoch, 0);
        ck_assert(next_item(p).end);
        ck_assert_uint_eq(pipeline_position(p).samples, 0);
        ck_assert_uint_eq(pipeline_position(p).epoch, 1);
        pipeline_close(p);
    }
}
END_TEST

// 7 and 70 of a set of 53 are 7 and 53; generated ones are as many as are wanted.
START_TEST(an_epoch_has_the_samples_that_are_taken)
{
    static const struct {
        const char *source, *pair;
        uint32_t samples;
    } cases[] = {{"cifar10", "pipeline.samples=7", 7},
                 {"cifar10", "pipeline.samples=70", TRAIN},
                 {"generated", "pipeline.samples=7", 7},
                 {"generated", "pipeline.samples=10009", 10009}};
    hr_knobs knobs = data_knobs(cases[_i].source, folder.path);
    hr_err err = {0};
    pipeline *p = NULL;
    uint32_t count = 0;
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, cases[_i].pair, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.remainder=keep", NULL), HR_OK);
    ck_assert_msg(pipeline_open(&knobs, &cifar_form, &as_it_is, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(pipeline_get_info(p)->train_samples, cases[_i].samples);
    for (data_item item = next_item(p); !item.end; item = next_item(p)) {
        count += item.count;
    }
    ck_assert_uint_eq(count, cases[_i].samples);
    pipeline_close(p);
}
END_TEST

START_TEST(a_batch_larger_than_the_set)
{
    pipeline *p = open_pipeline((setting){.batch = 128, .remainder = "pad", .shuffle = 10});
    data_item item = next_item(p);
    ck_assert_uint_eq(item.count, 128);
    for (uint32_t i = TRAIN; i < 128; i++) {
        ck_assert_uint_eq(sample_at(&item, i), sample_at(&item, i % TRAIN));
    }
    ck_assert(next_item(p).end);
    pipeline_close(p);
    p = open_pipeline((setting){.batch = 128, .remainder = "keep"});
    ck_assert_uint_eq(next_item(p).count, TRAIN);
    ck_assert(next_item(p).end);
    pipeline_close(p);

    hr_knobs knobs = knobs_of((setting){.batch = 128, .remainder = "drop"});
    hr_err err = {0};
    ck_assert_int_eq(pipeline_open(&knobs, &cifar_form, &as_it_is, &p, &err), HR_DATA);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(err.sentence, ": needed 128 samples for a batch, had 53"));
    ck_assert_str_eq(err.hint, "-s batch.remainder=keep, or -s batch.size=53");
}
END_TEST

// ---- shuffle --------------------------------------------------------------------------------------------------

static void epoch_order(pipeline *p, uint32_t order[TRAIN])
{
    uint32_t count = 0;
    for (data_item item = next_item(p); !item.end; item = next_item(p)) {
        for (uint32_t i = 0; i < item.count; i++) {
            order[count++] = sample_at(&item, i);
        }
    }
    ck_assert_uint_eq(count, TRAIN);
}

START_TEST(a_sample_comes_no_earlier_than_the_buffer_reaches)
{
    pipeline *p = open_pipeline((setting){.shuffle = 7, .batch = 5, .remainder = "keep", .seed = _i});
    uint32_t order[TRAIN], moved = 0;
    epoch_order(p, order);
    for (uint32_t k = 0; k < TRAIN; k++) {
        ck_assert_uint_lt(order[k], k + 7);
        moved += order[k] != k;
    }
    ck_assert_uint_gt(moved, TRAIN / 2);
    pipeline_close(p);
}
END_TEST

START_TEST(seed_and_epoch_decide_the_order)
{
    setting c = {.shuffle = 1000, .batch = 5, .remainder = "keep", .seed = 1};
    uint32_t first[TRAIN], second[TRAIN], other[TRAIN];
    pipeline *p = open_pipeline(c);
    epoch_order(p, first);
    epoch_order(p, second);
    ck_assert_mem_ne(first, second, sizeof first);
    pipeline_close(p);
    c.seed = 2;
    p = open_pipeline(c);
    epoch_order(p, other);
    ck_assert_mem_ne(first, other, sizeof first);
    pipeline_close(p);
    c = (setting){.shuffle = 1000, .batch = 11, .remainder = "keep", .seed = 1, .prefetch = 2};
    p = open_pipeline(c);
    epoch_order(p, other);
    ck_assert_mem_eq(first, other, sizeof first);
    pipeline_close(p);
}
END_TEST

START_TEST(without_a_buffer_samples_come_in_file_order)
{
    pipeline *p = open_pipeline((setting){.batch = 5, .remainder = "keep", .prefetch = 1});
    for (int epoch = 0; epoch < 2; epoch++) {
        uint32_t order[TRAIN];
        epoch_order(p, order);
        for (uint32_t k = 0; k < TRAIN; k++) {
            ck_assert_uint_eq(order[k], k);
        }
    }
    pipeline_close(p);
}
END_TEST

// The first place of every sample is equally likely: 8 samples, 400 epochs, 50 expected each.
START_TEST(a_full_buffer_has_no_favourites)
{
    cifar_write_set(&folder, 8, 1);
    pipeline *p = open_pipeline((setting){.shuffle = 8, .batch = 1, .remainder = "keep", .seed = 3});
    uint32_t times[8][8] = {{0}};
    for (int epoch = 0; epoch < 400; epoch++) {
        for (uint32_t place = 0; place < 8; place++) {
            data_item item = next_item(p);
            times[sample_at(&item, 0)][place]++;
        }
        ck_assert(next_item(p).end);
    }
    for (int sample = 0; sample < 8; sample++) {
        for (int place = 0; place < 8; place++) {
            ck_assert_uint_gt(times[sample][place], 20);
            ck_assert_uint_lt(times[sample][place], 80);
        }
    }
    pipeline_close(p);
}
END_TEST

// ---- position -------------------------------------------------------------------------------------------------

START_TEST(going_on_from_a_position_gives_the_same_bytes)
{
    setting c = random_setting((uint32_t)_i);
    setting d = c;
    d.prefetch = (int)pick((uint32_t)_i, 5, 4);
    d.threads = 2 + _i % 4;
    uint32_t taken = pick((uint32_t)_i, 6, 80);
    pipeline *p = open_pipeline(c), *q = open_pipeline(d), *r = open_pipeline(c);
    for (uint32_t i = 0; i < taken; i++) {
        (void)next_item(p);
    }
    data_position position = pipeline_position(p);
    ck_assert_int_eq(pipeline_seek(q, position, NULL), HR_OK);
    for (uint32_t i = 0; i < pick((uint32_t)_i, 7, 40); i++) {
        (void)next_item(r);
    }
    ck_assert_int_eq(pipeline_seek(r, position, NULL), HR_OK);
    for (int i = 0; i < 40; i++) {
        data_item a = next_item(p), b = next_item(q), c2 = next_item(r);
        ck_assert_uint_eq(hash_of(&a), hash_of(&b));
        ck_assert_uint_eq(hash_of(&a), hash_of(&c2));
        data_position now = pipeline_position(p), then = pipeline_position(q);
        ck_assert_mem_eq(&now, &then, sizeof now);
    }
    pipeline_close(p);
    pipeline_close(q);
    pipeline_close(r);
}
END_TEST

// Chained anew with other settings over the data set that is open, it is the pipeline of those settings.
START_TEST(a_chain_made_anew_gives_what_a_fresh_one_gives)
{
    setting c = random_setting((uint32_t)_i), d = random_setting((uint32_t)_i + 1000);
    pipeline *p = open_pipeline(c), *q = open_pipeline(d);
    for (uint32_t i = 0; i < pick((uint32_t)_i, 8, 20); i++) {
        (void)next_item(p);
    }
    hr_knobs knobs = knobs_of(d);
    data_position position = pipeline_position(p);
    ck_assert_int_eq(pipeline_rechain(p, &knobs, &as_it_is, NULL), HR_OK);
    ck_assert_int_eq(pipeline_seek(p, position, NULL), HR_OK);
    ck_assert_int_eq(pipeline_seek(q, position, NULL), HR_OK);
    for (int i = 0; i < 20; i++) {
        data_item a = next_item(p), b = next_item(q);
        ck_assert_uint_eq(hash_of(&a), hash_of(&b));
    }
    pipeline_close(p);
    pipeline_close(q);
}
END_TEST

START_TEST(a_chain_that_cannot_be_made_anew_stays)
{
    setting c = {.shuffle = 10, .batch = 4, .prefetch = 0, .remainder = "pad"};
    hr_knobs knobs = knobs_of((setting){.shuffle = 5, .batch = 3, .prefetch = 2, .remainder = "keep"});
    pipeline *p = open_pipeline(c), *q = open_pipeline(c);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        hr_status status = pipeline_rechain(p, &knobs, &as_it_is, NULL);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        if (failed) {
            data_item a = next_item(p), b = next_item(q);
            ck_assert_uint_eq(hash_of(&a), hash_of(&b));
        }
    }
    pipeline_close(p);
    pipeline_close(q);
}
END_TEST

START_TEST(the_position_is_of_what_was_taken_not_of_what_was_made)
{
    pipeline *p = open_pipeline((setting){.batch = 5, .prefetch = 4, .remainder = "keep"});
    ck_assert_uint_eq(pipeline_position(p).samples, 0);
    (void)next_item(p);
    ck_assert_uint_eq(pipeline_position(p).samples, 5);
    pipeline_close(p);
}
END_TEST

START_TEST(a_position_beyond_the_set_is_refused)
{
    pipeline *p = open_pipeline((setting){.batch = 5, .prefetch = 1, .remainder = "keep"});
    hr_err err = {0};
    (void)next_item(p);
    ck_assert_int_eq(pipeline_seek(p, (data_position){.samples = TRAIN + 1}, &err), HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, ": needed a position of at most 53 samples, had 54"));
    data_item item = next_item(p);
    ck_assert_uint_eq(sample_at(&item, 0), 5);
    pipeline_close(p);
}
END_TEST

// ---- held-out samples -----------------------------------------------------------------------------------------

START_TEST(held_out_samples_come_in_file_order_and_again)
{
    pipeline *p = open_pipeline((setting){.batch = 5, .prefetch = 2, .shuffle = 10, .remainder = "drop"});
    ck_assert_uint_eq(pipeline_get_info(p)->eval_samples, EVAL);
    for (uint32_t batch = 1; batch <= EVAL + 1; batch++) {
        uint32_t count = 0;
        data_item item;
        for (;;) {
            (void)next_item(p); // training goes on beside it
            ck_assert_int_eq(pipeline_next_eval(p, batch, &item, NULL), HR_OK);
            if (item.end) {
                break;
            }
            ck_assert_uint_eq(item.count, EVAL - count < batch ? EVAL - count : batch);
            for (uint32_t i = 0; i < item.count; i++) {
                ck_assert_uint_eq(sample_at(&item, i), TRAIN + count + i);
            }
            count += item.count;
        }
        ck_assert_uint_eq(count, EVAL);
    }
    pipeline_close(p);
}
END_TEST

START_TEST(a_seek_begins_the_held_out_samples_anew)
{
    pipeline *p = open_pipeline((setting){.batch = 5, .remainder = "drop"});
    data_item item;
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_OK);
    ck_assert_int_eq(pipeline_seek(p, (data_position){0}, NULL), HR_OK);
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_OK);
    ck_assert_uint_eq(sample_at(&item, 0), TRAIN);
    pipeline_close(p);
}
END_TEST

// ---- errors ---------------------------------------------------------------------------------------------------

// Files are cut under the pipeline and made whole again: what was ready is given, then the error with its offset as
// often as one asks, then the batch that failed.
START_TEST(an_error_of_the_producer_reaches_the_caller_and_can_be_mended)
{
    char path[FILE_NAME_MAX];
    pipeline *p =
        open_pipeline((setting){.batch = 4, .prefetch = _i, .remainder = "keep", .threads = 1 + _i});
    (void)next_item(p);
    ck_assert_int_eq(truncate(data_folder_file(&folder, "data_batch_2.bin", path), 100), 0);
    data_item item;
    uint64_t wait_ns, given = 4;
    hr_err err = {0};
    while (pipeline_next(p, &item, &wait_ns, &err) == HR_OK) {
        ck_assert(!item.end);
        ck_assert_uint_eq(sample_at(&item, 0), given);
        given += item.count;
    }
    ck_assert_int_eq(err.status, HR_DATA);
    ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed 3073 bytes, had "));
    ck_assert_uint_eq(given, 24);
    ck_assert_uint_eq(pipeline_position(p).samples, given);
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_DATA);
    cifar_write_set(&folder, TRAIN, EVAL);
    item = next_item(p);
    ck_assert_uint_eq(sample_at(&item, 0), given);
    pipeline_close(p);
}
END_TEST

// The words of the first error of an epoch over a set whose second file is cut under it.
static hr_err first_error(int threads)
{
    char path[FILE_NAME_MAX];
    cifar_write_set(&folder, TRAIN, EVAL);
    pipeline *p =
        open_pipeline((setting){.shuffle = 53, .batch = 40, .remainder = "keep", .threads = threads});
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    ck_assert_int_eq(truncate(data_folder_file(&folder, "data_batch_2.bin", path), 100), 0);
    while (pipeline_next(p, &item, &wait_ns, &err) == HR_OK) {
        ck_assert(!item.end);
    }
    pipeline_close(p);
    return err;
}

// Whoever came upon one first.
START_TEST(of_several_errors_the_first_in_the_batch_is_told)
{
    const hr_err alone = first_error(1);
    ck_assert_int_eq(alone.status, HR_DATA);
    for (int threads = 2; threads < 7; threads++) {
        ck_assert_str_eq(first_error(threads).sentence, alone.sentence);
    }
}
END_TEST

START_TEST(an_error_in_the_held_out_set_begins_it_anew)
{
    char path[FILE_NAME_MAX];
    pipeline *p = open_pipeline((setting){.batch = 4, .remainder = "keep"});
    data_item item;
    ck_assert_int_eq(truncate(data_folder_file(&folder, "test_batch.bin", path), 6 * CIFAR_RECORD), 0);
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_OK);
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_DATA);
    cifar_write_set(&folder, TRAIN, EVAL);
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_OK);
    ck_assert_uint_eq(sample_at(&item, 0), TRAIN);
    pipeline_close(p);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    setting c = {.shuffle = 10, .batch = 4, .prefetch = _i % 2, .remainder = "pad", .threads = 1 + _i};
    hr_knobs knobs = knobs_of(c);
    int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        pipeline *p = NULL;
        data_item item;
        uint64_t wait_ns;
        hr_host_mem_fail_at(nth);
        hr_status status = pipeline_open(&knobs, &cifar_form, &as_it_is, &p, NULL);
        if (status == HR_OK) {
            status = pipeline_next(p, &item, &wait_ns, NULL);
        }
        if (status == HR_OK) {
            status = pipeline_next_eval(p, 4, &item, NULL);
        }
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        pipeline_close(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

// ---- the producer thread --------------------------------------------------------------------------------------

START_TEST(a_pipeline_closes_and_seeks_whatever_its_producer_is_at)
{
    setting c = {.shuffle = 20, .batch = 7, .prefetch = 1 + _i % 3, .remainder = "keep"};
    int64_t live = hr_host_mem_live();
    pipeline *p = open_pipeline(c);
    for (uint32_t i = 0; i < pick((uint32_t)_i, 8, 6); i++) {
        ck_assert_int_eq(pipeline_seek(p, (data_position){i, i * 5}, NULL), HR_OK);
        for (uint32_t k = 0; k < pick((uint32_t)_i, 9 + i, 5); k++) {
            (void)next_item(p);
        }
    }
    pipeline_close(p);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

static pipeline_stage_info stage_named(const pipeline *p, const char *name)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    uint32_t count = pipeline_stages(p, info);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(info[i].name, name) == 0) {
            return info[i];
        }
    }
    return (pipeline_stage_info){.name = ""};
}

START_TEST(the_queue_fills_up_to_its_capacity)
{
    pipeline *p = open_pipeline((setting){.batch = 4, .prefetch = 3, .remainder = "keep"});
    pipeline_stage_info queue = stage_named(p, "prefetch");
    while (queue.queue_length < 3) { // the test's own time limit ends this
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        queue = stage_named(p, "prefetch");
    }
    ck_assert_uint_eq(queue.queue_length, 3);
    ck_assert_uint_eq(queue.queue_capacity, 3);
    pipeline_close(p);
}
END_TEST

// Items are counted exactly; times grow and stay below what has passed, and no stage works longer than all of its threads.
START_TEST(each_stage_says_what_it_costs)
{
    enum { TAKEN = 6, THREADS = 2 };
    pipeline *p = open_pipeline(
        (setting){.shuffle = 20, .batch = 4, .prefetch = 3, .threads = THREADS, .remainder = "keep"});
    for (int k = 0; k < TAKEN; k++) {
        ck_assert(!next_item(p).end);
    }
    pipeline_stage_info map = stage_named(p, "map"), batch = stage_named(p, "batch");
    const pipeline_stage_info queue = stage_named(p, "prefetch");
    ck_assert_uint_ge(map.items, TAKEN * 4);
    ck_assert_uint_eq(map.items % 4, 0);
    ck_assert_uint_ge(batch.items, TAKEN);
    ck_assert_uint_le(queue.items, TAKEN + 3 + 1);
    ck_assert_uint_ge(queue.items, TAKEN);
    ck_assert_uint_gt(map.busy_ns, 0);
    ck_assert_uint_eq(map.threads, THREADS);
    ck_assert_uint_ge(map.cores, 1);
    ck_assert_uint_eq(map.wait_ns, 0); // only a queue waits for room
    pipeline_close(p);
    p = open_pipeline((setting){.batch = 4, .remainder = "keep"});
    const uint64_t alone_ns = clock_now_ns();
    (void)next_item(p);
    map = stage_named(p, "map");
    batch = stage_named(p, "batch");
    ck_assert_uint_eq(map.items, 4);
    ck_assert_uint_eq(batch.items, 1);
    ck_assert_uint_le(map.busy_ns + batch.busy_ns, clock_now_ns() - alone_ns);
    pipeline_close(p);
}
END_TEST

static pipeline *open_tuned(const char *by, const char *limit)
{
    hr_knobs knobs = knobs_of((setting){.shuffle = 20, .batch = 4, .remainder = "keep"});
    const char *const pairs[] = {"pipeline.prefetch=auto", "pipeline.map_threads=auto", by, limit};
    pipeline *p = NULL;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[k], NULL), HR_OK);
    }
    ck_assert_int_eq(pipeline_open(&knobs, &cifar_form, &as_it_is, &p, NULL), HR_OK);
    return p;
}

// Whoever decides, whatever is decided meanwhile.
START_TEST(autotune_changes_no_batch_and_holds_the_most_it_may_take)
{
    const uint64_t batch_bytes = 4 * (IMAGE * sizeof(float) + sizeof(int32_t));
    static const struct {
        const char *by;
        uint32_t most;
    } rows[] = {{"pipeline.autotune=headroom", 8}, {"pipeline.autotune=tensorflow", 64}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        pipeline *p = open_tuned(rows[k].by, "pipeline.ram_limit=1GiB"),
                 *q = open_pipeline((setting){.shuffle = 20, .batch = 4, .remainder = "keep"});
        hr_event_tune decided[PIPELINE_MAX_DECISIONS];
        ck_assert_uint_eq(stage_named(p, "prefetch").host_bytes, (rows[k].most + 1) * batch_bytes);
        ck_assert_uint_eq(stage_named(p, "prefetch").queue_capacity, 1); // of them so many are used as yet
        ck_assert_uint_eq(stage_named(p, "map").threads, 1);
        for (int n = 0; n < 40; n++) {
            const data_item a = next_item(p), b = next_item(q);
            ck_assert_int_eq(a.end, b.end);
            ck_assert_uint_eq(a.count, b.count);
            ck_assert(a.end || memcmp(a.room.slot[0], b.room.slot[0], a.count * IMAGE * sizeof(float)) == 0);
            ck_assert_uint_le(stage_named(p, "prefetch").queue_capacity, rows[k].most);
        }
        ck_assert_uint_eq(stage_named(p, "prefetch").peak_host_bytes, (rows[k].most + 1) * batch_bytes);
        ck_assert_uint_le(pipeline_decisions(p, decided), PIPELINE_MAX_DECISIONS);
        pipeline_close(p);
        pipeline_close(q);
    }
}
END_TEST

// Within the limit stands all that is held, not only what autotune takes; two batches and one thread are the least.
START_TEST(autotune_takes_no_more_than_the_budget)
{
    const uint64_t batch_bytes = 4 * (IMAGE * sizeof(float) + sizeof(int32_t));
    for (uint64_t batches = 4; batches < 24; batches++) {
        char limit[64];
        uint64_t held = 0;
        pipeline_stage_info info[PIPELINE_MAX_STAGES];
        (void)snprintf(limit, sizeof limit, "pipeline.ram_limit=%lluB",
                       (unsigned long long)(batches * batch_bytes));
        pipeline *p = open_tuned(
            batches % 2 == 0 ? "pipeline.autotune=tensorflow" : "pipeline.autotune=headroom", limit);
        (void)next_item(p);
        const uint32_t count = pipeline_stages(p, info);
        for (uint32_t k = 0; k < count; k++) {
            held += info[k].peak_host_bytes;
        }
        ck_assert_uint_le(held, batches * batch_bytes);
        ck_assert_uint_gt(held + 3 * batch_bytes,
                          batches % 2 == 0 || batches < 8 ? batches * batch_bytes : 0); // and uses it
        pipeline_close(p);
    }
}
END_TEST

// ---- the ledger -----------------------------------------------------------------------------------------------

START_TEST(host_bytes_are_what_the_stages_hold)
{
    const uint64_t batch_bytes = 4 * (IMAGE * sizeof(float) + sizeof(int32_t));
    const uint64_t in_flight_bytes = (CIFAR_RECORD + 63) / 64 * 64 + IMAGE; // a record, and the image of it
    pipeline *p = open_pipeline((setting){.shuffle = 20, .batch = 4, .prefetch = 3, .remainder = "keep"});
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    data_item item;
    ck_assert_uint_eq(pipeline_stages(p, info), 6);
    ck_assert_uint_eq(stage_named(p, "source").host_bytes, 0);
    ck_assert_uint_eq(stage_named(p, "shuffle").host_bytes, 20 * 4);
    ck_assert_uint_eq(stage_named(p, "map").host_bytes, in_flight_bytes);
    ck_assert_uint_eq(stage_named(p, "batch").host_bytes, 4 * 4);
    ck_assert_uint_eq(stage_named(p, "prefetch").host_bytes, 4 * batch_bytes);
    ck_assert_uint_eq(stage_named(p, "evaluate").host_bytes, in_flight_bytes + 4 * 4 + batch_bytes);
    ck_assert_int_eq(pipeline_next_eval(p, 8, &item, NULL), HR_OK);
    ck_assert_uint_eq(stage_named(p, "evaluate").host_bytes, in_flight_bytes + 8 * 4 + 2 * batch_bytes);
    ck_assert_int_eq(pipeline_next_eval(p, 4, &item, NULL), HR_OK);
    ck_assert_uint_eq(stage_named(p, "evaluate").host_bytes, in_flight_bytes + 4 * 4 + batch_bytes);
    ck_assert_uint_eq(stage_named(p, "evaluate").peak_host_bytes, in_flight_bytes + 8 * 4 + 2 * batch_bytes);
    pipeline_close(p);
    p = open_pipeline((setting){.batch = 4, .remainder = "keep"});
    ck_assert_uint_eq(pipeline_stages(p, info), 4);
    ck_assert_uint_eq(stage_named(p, "map").host_bytes, in_flight_bytes);
    ck_assert_uint_eq(stage_named(p, "batch").host_bytes, 4 * 4);
    (void)next_item(p);
    ck_assert_uint_eq(stage_named(p, "batch").host_bytes, 4 * 4 + batch_bytes);
    pipeline_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline");
    TCase *c = tcase_create("pipeline");
    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_loop_test(c, every_sample_comes_once_an_epoch, 0, 12);
    tcase_add_test(c, images_are_interleaved_and_between_zero_and_one);
    tcase_add_loop_test(c, the_remainder_is_dropped_kept_or_padded, 0, 3);
    tcase_add_loop_test(c, an_epoch_has_the_samples_that_are_taken, 0, 4);
    tcase_add_test(c, a_batch_larger_than_the_set);
    tcase_add_loop_test(c, a_sample_comes_no_earlier_than_the_buffer_reaches, 0, 3);
    tcase_add_test(c, seed_and_epoch_decide_the_order);
    tcase_add_test(c, without_a_buffer_samples_come_in_file_order);
    tcase_add_test(c, a_full_buffer_has_no_favourites);
    tcase_add_loop_test(c, going_on_from_a_position_gives_the_same_bytes, 0, 40);
    tcase_add_loop_test(c, a_chain_made_anew_gives_what_a_fresh_one_gives, 0, 20);
    tcase_add_test(c, a_chain_that_cannot_be_made_anew_stays);
    tcase_add_test(c, the_position_is_of_what_was_taken_not_of_what_was_made);
    tcase_add_test(c, a_position_beyond_the_set_is_refused);
    tcase_add_test(c, held_out_samples_come_in_file_order_and_again);
    tcase_add_test(c, a_seek_begins_the_held_out_samples_anew);
    tcase_add_loop_test(c, an_error_of_the_producer_reaches_the_caller_and_can_be_mended, 0, 4);
    tcase_add_test(c, of_several_errors_the_first_in_the_batch_is_told);
    tcase_add_test(c, an_error_in_the_held_out_set_begins_it_anew);
    tcase_add_loop_test(c, every_allocation_may_fail_once, 0, 4);
    tcase_add_loop_test(c, a_pipeline_closes_and_seeks_whatever_its_producer_is_at, 0, 20);
    tcase_add_test(c, the_queue_fills_up_to_its_capacity);
    tcase_add_test(c, each_stage_says_what_it_costs);
    tcase_add_test(c, autotune_changes_no_batch_and_holds_the_most_it_may_take);
    tcase_add_test(c, autotune_takes_no_more_than_the_budget);
    tcase_add_test(c, host_bytes_are_what_the_stages_hold);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
