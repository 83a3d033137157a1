// SPDX-License-Identifier: Apache-2.0
// pipeline.bad=skip: in every order of stages and on any number of threads a sample that cannot be read is the next
// one in file order that can, also after a kill at any point, and as many are counted as were given out.
#include "base/philox.h"
#include "data/image_tree.h"
#include "data/pipeline.h"

enum { CLASSES = 3, TRAIN = 37, EVAL = 5, SIDE = 4, BATCH = 6, MOST_SAMPLES = 4 * TRAIN };

static const data_form form = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {SIDE, SIDE, 3}},
                                        {.type = DATA_IDS, .is_label = true, .classes = CLASSES}}};
static const pipeline_wire wire = {.train = {DATA_FLOAT}};
static data_folder whole, damaged;
static uint32_t image_at[TRAIN]; // the image that is sample n
static bool is_bad[TRAIN];

static void damage(uint32_t sample)
{
    static const char *const texts[] = {"", "not an image", "\xff\xd8\xff\xe0 cut"};
    char name[64];
    is_bad[sample] = true;
    tree_write(&damaged, tree_name("train", CLASSES, image_at[sample], name), tree_text(texts[sample % 3]));
}

static void make_folders(void)
{
    uint32_t count = 0;
    const data_folder *const both[] = {&whole, &damaged};
    whole = data_folder_make();
    damaged = data_folder_make();
    for (size_t k = 0; k < 2; k++) {
        tree_write_set(both[k], "train", CLASSES, 0, TRAIN);
        tree_write_set(both[k], "val", CLASSES, 100, EVAL);
    }
    for (uint32_t c = 0; c < CLASSES; c++) {
        for (uint32_t n = c; n < TRAIN; n += CLASSES) {
            image_at[count++] = n;
        }
    }
    memset(is_bad, 0, sizeof is_bad);
    for (uint32_t n = 3; n < TRAIN; n += 5) {
        damage(n);
    }
    damage(4);
    damage(TRAIN - 1); // the last: the first replaces it
    char name[64];
    tree_write(&damaged, tree_name("val", CLASSES, 101, name), tree_text("no"));
}

static void remove_folders(void)
{
    data_folder_remove(&whole);
    data_folder_remove(&damaged);
}

// The plain model.
static uint32_t replacement(uint32_t sample)
{
    while (is_bad[sample]) {
        sample = (sample + 1) % TRAIN;
    }
    return sample;
}

// ---- runs
// -------------------------------------------------------------------------------------------------------

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static pipeline *open_at(const data_folder *f, const hr_knobs *knobs)
{
    hr_knobs own = *knobs;
    pipeline *p = NULL;
    hr_err err = {0};
    ck_assert_int_eq(hr_knobs_set(&own, HR_KNOB_PIPELINE_PATH, f->path, NULL), HR_OK);
    ck_assert_msg(pipeline_open(&own, &form, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

// Which sample of the whole set has these values.
static uint32_t sample_of_values(const float *values)
{
    for (uint32_t n = 0; n < TRAIN; n++) {
        uint8_t colour[3];
        bool same = true;
        tree_colour(image_at[n], colour);
        for (int c = 0; c < 3; c++) {
            same = same && values[c] == (float)colour[c] / 255.0f;
        }
        if (same) {
            return n;
        }
    }
    ck_abort_msg("values of no image");
    return 0;
}

// Samples of the next `count` items; the ends of epochs are passed over. *bad: what the items say was replaced.
static size_t take(pipeline *p, size_t items, uint32_t samples[MOST_SAMPLES], uint64_t *bad)
{
    size_t taken = 0;
    *bad = 0;
    while (items > 0) {
        data_item item;
        uint64_t wait_ns;
        hr_err err = {0};
        ck_assert_msg(pipeline_next(p, &item, &wait_ns, &err) == HR_OK, "%s", err.sentence);
        items -= !item.end;
        for (uint32_t k = 0; k < item.count; k++) {
            ck_assert_uint_lt(taken, MOST_SAMPLES);
            samples[taken] = sample_of_values((const float *)item.room.slot[0] + k * SIDE * SIDE * 3);
            ck_assert_int_eq(((const int32_t *)item.room.slot[1])[k],
                             (int32_t)(image_at[samples[taken]] % CLASSES));
            taken++;
        }
        *bad += item.bad;
    }
    return taken;
}

static const char *const settings[][4] = {
    {"pipeline.shuffle=0"},
    {"pipeline.shuffle=11"},
    {"pipeline.shuffle=11", "pipeline.shuffle_of=elements"},
    {"pipeline.shuffle=11", "pipeline.shuffle_of=elements", "pipeline.stages=map,shuffle,batch,prefetch"},
    {"pipeline.shuffle=11", "pipeline.cache=ram"},
    {"pipeline.shuffle=11", "pipeline.cache=ram", "pipeline.stages=map,cache,shuffle,batch"},
    {"pipeline.shuffle=11", "pipeline.stages=slices,shuffle,map,batch"},
    {"pipeline.shuffle=11", "pipeline.array=uint8"},
    {"pipeline.shuffle=11", "pipeline.augment=flip", "pipeline.augment_copies=1"},
    {"pipeline.shuffle=11", "pipeline.array=float64", "pipeline.mode=eager_stack", "batch.remainder=pad"},
};
enum { SETTINGS = sizeof settings / sizeof *settings, THREADS = 2, ITEMS = 20 };

static hr_knobs knobs_of(int number)
{
    static const char *const threads[THREADS] = {"pipeline.map_threads=1", "pipeline.map_threads=3"};
    hr_knobs knobs = data_knobs("images", whole.path);
    char batch[24];
    (void)snprintf(batch, sizeof batch, "batch.size=%d", BATCH);
    set(&knobs, batch);
    set(&knobs, threads[number % THREADS]);
    for (int k = 0; k < 4 && settings[number / THREADS][k] != NULL; k++) {
        set(&knobs, settings[number / THREADS][k]);
    }
    set(&knobs, "pipeline.bad=skip");
    return knobs;
}

static uint64_t expect(uint32_t *samples, size_t count)
{
    uint64_t bad = 0;
    for (size_t k = 0; k < count; k++) {
        bad += is_bad[samples[k]];
        samples[k] = replacement(samples[k]);
    }
    return bad;
}

START_TEST(a_bad_sample_is_the_next_good_one)
{
    const hr_knobs knobs = knobs_of(_i);
    const bool ahead = _i / THREADS == 3; // samples are made when they enter the buffer
    uint32_t wanted[MOST_SAMPLES], had[MOST_SAMPLES];
    uint64_t none, bad;
    const char *why;
    pipeline *p = open_at(&whole, &knobs), *q = open_at(&damaged, &knobs);
    const size_t count = take(p, ITEMS, wanted, &none);
    ck_assert_uint_eq(none, 0);
    const uint64_t expected = expect(wanted, count);
    ck_assert_uint_eq(take(q, ITEMS, had, &bad), count);
    ck_assert_mem_eq(had, wanted, count * sizeof *had);
    ck_assert(ahead ? bad >= expected : bad == expected);
    ck_assert_uint_eq(pipeline_bad_samples(q, &why), bad);
    ck_assert_ptr_nonnull(why);
    ck_assert_uint_eq(pipeline_bad_samples(p, &why), 0);
    ck_assert_ptr_null(why);
    for (uint32_t n = 0; n < 6; n++) { // killed, and gone on with
        uint32_t words[4], rest[MOST_SAMPLES];
        philox(philox_key_of(16, "kill"), n, (uint64_t)_i, words);
        const uint64_t at = words[0] % (TRAIN / BATCH) * BATCH;
        pipeline_close(q);
        q = open_at(&damaged, &knobs);
        ck_assert_int_eq(pipeline_seek(q, (data_position){.samples = at}, NULL), HR_OK);
        const size_t left = take(q, 3, rest, &bad);
        ck_assert_mem_eq(rest, wanted + at, left * sizeof *rest);
    }
    pipeline_close(p);
    pipeline_close(q);
}
END_TEST

START_TEST(a_bad_held_out_sample_is_counted_too)
{
    hr_knobs knobs = knobs_of(0);
    set(&knobs, "pipeline.prefetch=0"); // nothing of the training set is read
    pipeline *p = open_at(&damaged, &knobs);
    uint32_t samples = 0;
    const char *why;
    for (data_item item = {0}; !item.end; samples += item.count) {
        ck_assert_int_eq(pipeline_next_eval(p, 2, &item, NULL), HR_OK);
    }
    ck_assert_uint_eq(samples, EVAL);
    ck_assert_uint_eq(pipeline_bad_samples(p, &why), 1);
    ck_assert_ptr_nonnull(
        strstr(why, "class_2/0101.png: needed a JPEG or PNG image, had 2 bytes of something else"));
    pipeline_close(p);
}
END_TEST

static uint64_t bad_of_an_epoch(const char *kind, const data_folder *f, uint32_t side, uint32_t channels)
{
    hr_knobs knobs = data_knobs(kind, f->path);
    const data_form images = {.count = 2,
                              .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {side, side, channels}},
                                       {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    pipeline *p = NULL;
    hr_err err = {0};
    uint64_t bad = 0, wait_ns;
    ck_assert_int_eq(pipeline_open(&knobs, &images, &wire, &p, NULL), HR_DATA);
    set(&knobs, "pipeline.bad=skip");
    set(&knobs, "batch.size=4");
    ck_assert_msg(pipeline_open(&knobs, &images, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    for (data_item item = {0}; !item.end; bad += item.bad) {
        ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_OK);
        for (uint32_t k = 0; k < item.count; k++) {
            ck_assert_int_lt(((const int32_t *)item.room.slot[1])[k], 10);
        }
    }
    pipeline_close(p);
    return bad;
}

// What stop finds when it opens, skip finds when it reads.
START_TEST(records_with_bad_labels_are_replaced_too)
{
    const data_folder cifar = data_folder_make(), mnist = data_folder_make();
    uint8_t *records = cifar_records(0, 8);
    records[2 * CIFAR_RECORD] = 10;
    records[5 * CIFAR_RECORD] = 255;
    cifar_write_set(&cifar, 16, 4);
    data_write(&cifar, "data_batch_1.bin", records, (size_t)8 * CIFAR_RECORD);
    free(records);
    ck_assert_uint_eq(bad_of_an_epoch("cifar10", &cifar, 32, 3), 2);
    uint8_t labels[8 + 12] = {0, 0, 8, 1, 0, 0, 0, 12, [8 + 3] = 77};
    mnist_write_set(&mnist, false, 12, 4);
    data_write(&mnist, "train-labels-idx1-ubyte", labels, sizeof labels);
    ck_assert_uint_eq(bad_of_an_epoch("mnist", &mnist, 28, 1), 1);
    data_folder_remove(&cifar);
    data_folder_remove(&mnist);
}
END_TEST

// Targets of losses of logits: from 0 to 1. Other floats are what they are.
START_TEST(targets_beyond_zero_and_one_are_bad_where_a_loss_takes_logits)
{
    static const char table[] = "a,b,label\n1,2,0\n3,4,0.25\n5,6,7\n7,8,1\n9,1,-0.5\n";
    data_form model = {.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {2}},
                                {.type = DATA_FLOAT, .is_label = true, .binary = true}}};
    const data_folder f = data_folder_make();
    uint64_t bad = 0, wait_ns;
    pipeline *p = NULL;
    data_item item;
    hr_err err = {0};
    data_write(&f, "train.csv", table, strlen(table));
    data_write(&f, "test.csv", table, strlen(table));
    hr_knobs knobs = data_knobs("csv", f.path);
    set(&knobs, "pipeline.shuffle=0");
    set(&knobs, "batch.size=5");
    ck_assert_msg(pipeline_open(&knobs, &model, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, &err), HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, ", training sample 2: needed a label from 0 to 1, had 7"));
    pipeline_close(p);
    set(&knobs, "pipeline.bad=skip");
    ck_assert_msg(pipeline_open(&knobs, &model, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    for (item = (data_item){0}; !item.end; bad += item.bad) {
        ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_OK);
        for (uint32_t k = 0; k < item.count; k++) {
            ck_assert(((const float *)item.room.slot[1])[k] >= 0 &&
                      ((const float *)item.room.slot[1])[k] <= 1);
        }
    }
    ck_assert_uint_eq(bad, 2);
    pipeline_close(p);
    model.slot[1].binary = false;
    set(&knobs, "pipeline.bad=stop");
    ck_assert_msg(pipeline_open(&knobs, &model, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_OK);
    ck_assert(((const float *)item.room.slot[1])[2] == 7);
    pipeline_close(p);
    data_folder_remove(&f);
}
END_TEST

// The batch that has it is the error, and no earlier one; the pipeline then tries it again.
START_TEST(stop_ends_at_the_first_bad_sample)
{
    hr_knobs knobs = knobs_of(0);
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    set(&knobs, "pipeline.bad=stop");
    set(&knobs, "batch.size=3");
    pipeline *p = open_at(&damaged, &knobs);
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_OK);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, &err), HR_DATA);
        ck_assert_ptr_nonnull(
            strstr(err.sentence, "class_0/0009.png: needed a JPEG or PNG image, had an empty file"));
    }
    pipeline_close(p);
}
END_TEST

START_TEST(a_set_without_any_good_sample_is_an_error)
{
    const hr_knobs knobs = knobs_of(_i);
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    for (uint32_t n = 0; n < TRAIN; n++) {
        damage(n);
    }
    pipeline *p = open_at(&damaged, &knobs);
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, &err), HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, ": needed a sample that can be read, had none among 37 ("));
    pipeline_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad");
    TCase *cases = tcase_create("bad");
    tcase_add_checked_fixture(cases, make_folders, remove_folders);
    tcase_add_loop_test(cases, a_bad_sample_is_the_next_good_one, 0, SETTINGS * THREADS);
    tcase_add_test(cases, a_bad_held_out_sample_is_counted_too);
    tcase_add_test(cases, records_with_bad_labels_are_replaced_too);
    tcase_add_test(cases, targets_beyond_zero_and_one_are_bad_where_a_loss_takes_logits);
    tcase_add_test(cases, stop_ends_at_the_first_bad_sample);
    tcase_add_loop_test(cases, a_set_without_any_good_sample_is_an_error, 0, SETTINGS * THREADS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
