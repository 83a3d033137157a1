// SPDX-License-Identifier: Apache-2.0
// TFRecord: samples are what an independent writer put into the records; a sum that is wrong is found wherever a file was
// damaged; what the model does not get is said in one sentence.
#include <inttypes.h>
#include <math.h>

#include "base/philox.h"
#include "data/image.h"
#include "data/record_files.h"
#include "data/source_checks.h"
#include "data/split.h"
#include "data/tfrecord.h"

static data_form image_form(uint32_t height, uint32_t width, uint32_t channels, uint32_t classes)
{
    return (data_form){.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {height, width, channels}},
                                {.type = DATA_IDS, .is_label = true, .classes = classes}}};
}

typedef struct random_words {
    uint64_t next;
} random_words;

static uint32_t word(random_words *r, uint32_t below)
{
    uint32_t words[4];
    philox(philox_key_of(6, "records"), r->next++, 0, words);
    return words[0] % below;
}

static void file_end(const data_folder *f, const char *leaf, made *file)
{
    data_replace(f, leaf, file->count > 0 ? (const void *)file->bytes : "", file->count);
    made_free(file);
}

// ---- images ---------------------------------------------------------------------------------------------------

enum { HEIGHT = 5, WIDTH = 6, CHANNELS = 3, IMAGE = HEIGHT * WIDTH * CHANNELS };

static void image_of(uint32_t number, uint8_t image[IMAGE])
{
    for (uint32_t k = 0; k < IMAGE; k++) {
        image[k] = (uint8_t)(number * 37 + k * 5);
    }
}

static made png_of(const uint8_t image[IMAGE])
{
    static const png_form form = {.width = WIDTH, .height = HEIGHT, .bits = 8, .colour = 2};
    uint16_t samples[IMAGE];
    for (uint32_t k = 0; k < IMAGE; k++) {
        samples[k] = image[k];
    }
    return png_make(&form, samples, NULL);
}

typedef enum image_as { AS_BYTES, AS_PNG, AS_JPEG } image_as;

// Sample `number` has the class number % 7, among features that nobody asks for.
static void image_add(made *file, uint32_t number, image_as as)
{
    uint8_t image[IMAGE];
    made features = {0}, encoded = {0};
    const int64_t label = number % 7, height = HEIGHT, other[3] = {-1, 2, 1 << 20};
    image_of(number, image);
    features_ints(&features, "image/height", &height, 1, false);
    features_ints(&features, "image/object/bbox", other, 3, true);
    if (as == AS_BYTES) {
        features_bytes(&features, "image_raw", image, IMAGE);
    } else {
        encoded = as == AS_PNG ? png_of(image) : jpeg_make(WIDTH, HEIGHT, TJPF_RGB, image, TJSAMP_444, 0);
        features_bytes(&features, "image/encoded", encoded.bytes, encoded.count);
    }
    features_bytes(&features, "image/filename", "n.jpg", number % 5);
    features_ints(&features, as == AS_BYTES ? "label" : "image/class/label", &label, 1, number % 2 == 0);
    example_add(file, &features);
    made_free(&encoded);
}

static void write_images(const data_folder *f, const char *leaf, uint32_t first, uint32_t count, image_as as)
{
    made file = {0};
    for (uint32_t k = 0; k < count; k++) {
        image_add(&file, first + k, as);
    }

    file_end(f, leaf, &file);
}

static void assert_image(const data_source *s, data_set set, uint32_t index, uint32_t number, image_as as)
{
    uint8_t image[IMAGE];
    data_room room = sample_of(s, set, index);
    const float *values = room.slot[0];
    image_of(number, image);
    if (as == AS_JPEG) { // is judged by what image_decode makes of it: tests/unit/test_image.c judges that
        const image_want want = {.height = HEIGHT, .width = WIDTH, .channels = CHANNELS};
        made encoded = jpeg_make(WIDTH, HEIGHT, TJPF_RGB, image, TJSAMP_444, 0);
        const image_file file = {.bytes = encoded.bytes, .size_bytes = encoded.count, .name = "test"};
        uint8_t *scratch = aligned_alloc(64, image_scratch_bytes(&want));
        ck_assert_int_eq(image_decode(&file, &want, scratch, image, NULL), HR_OK);
        free(scratch);
        made_free(&encoded);
    }
    for (uint32_t k = 0; k < IMAGE; k++) {
        ck_assert(values[k] == (float)image[k] / 255.0f);
    }
    ck_assert_int_eq(*(int32_t *)room.slot[1], (int32_t)(number % 7));
    data_room_give_back(&room);
}

START_TEST(a_folder_of_shards_is_one_run_and_its_validation_is_held_out)
{
    const image_as as = (image_as)_i;
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    write_images(&f, "a-train.tfrecord-00001-of-00003", 4, 9, as);
    write_images(&f, "a-train.tfrecord-00000-of-00003", 0, 4, as);
    write_images(&f, "a-train.tfrecord-00002-of-00003", 13, 0, as);
    write_images(&f, "z.TFRecords", 13, 2, as);
    write_images(&f, "validation-00000-of-00001", 15, 3, as);
    write_images(&f, "a-test.tfrecord", 18, 1, as);
    data_write(&f, "labels.txt", "x", 1);
    data_source *s = source_at("auto", f.path, &form);
    ck_assert_uint_eq(s->info.train_samples, 15);
    ck_assert_uint_eq(s->info.eval_samples, 3);
    for (uint32_t k = 0; k < 15; k++) {
        assert_image(s, DATA_TRAIN, k, k, as);
    }
    for (uint32_t k = 0; k < 3; k++) {
        assert_image(s, DATA_EVAL, k, 15 + k, as);
    }
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < 15; k++) {
        bytes += data_source_size(s, DATA_TRAIN, k);
        ck_assert_uint_le(data_source_size(s, DATA_TRAIN, k), s->raw_bytes);
    }
    ck_assert_uint_eq(bytes, data_source_set_bytes(s, DATA_TRAIN));
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(records_of_one_file_are_split)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_images(&f, "mine.tfrecord", 0, 37, AS_PNG);
    data_source *s = source_at("auto", data_folder_file(&f, "mine.tfrecord", path), &form);
    ck_assert_str_eq(s->info.label, "TFRecord (mine.tfrecord)");
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        ck_assert_uint_eq(data_source_samples(s, set), split_count(37, set));
        for (uint32_t k = 0; k < data_source_samples(s, set); k++) {
            assert_image(s, set, k, (uint32_t)split_number(37, set, k), AS_PNG);
        }
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(images_get_the_size_of_the_model)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_images(&f, "a.tfrecord", 0, 3, AS_PNG);
    data_form form = image_form(3, 4, 1, 7);
    data_source *s = source_at("tfrecord", data_folder_file(&f, "a.tfrecord", path), &form);
    data_room room = sample_of(s, DATA_TRAIN, 0);
    const image_want want = {.height = 3, .width = 4, .channels = 1, .filter = IMAGE_BILINEAR};
    uint8_t image[IMAGE], small[12], *scratch = aligned_alloc(64, image_scratch_bytes(&want));
    image_of((uint32_t)split_number(3, DATA_TRAIN, 0), image);
    made png = png_of(image);
    const image_file file = {.bytes = png.bytes, .size_bytes = png.count, .name = "test"};
    ck_assert_int_eq(image_decode(&file, &want, scratch, small, NULL), HR_OK);
    for (uint32_t k = 0; k < 12; k++) {
        ck_assert(((float *)room.slot[0])[k] == (float)small[k] / 255.0f);
    }
    data_room_give_back(&room);
    data_source_close(s);
    form = (data_form){.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {IMAGE}},
                                {.type = DATA_IDS, .is_label = true, .classes = 7}}};
    s = source_at("tfrecord", path, &form); // flat: the first image says how high and wide they are
    ck_assert_uint_eq(s->info.height, HEIGHT);
    ck_assert_uint_eq(s->info.width, WIDTH);
    assert_image(s, DATA_TRAIN, 1, (uint32_t)split_number(3, DATA_TRAIN, 1), AS_PNG);
    data_source_close(s);
    form.slot[0].dim[0]++;
    const hr_err err = source_refused("tfrecord", path, &form);
    assert_says(&err, "TFRecord (a.tfrecord)", ": needed images of 1x1x91 for this model, had 5x6x3");
    form = image_form(4, 4, 4, 7);
    assert_refused(
        "tfrecord", path, &form, path,
        ", offset 0: needed a model that takes 1 or 3 channels and at most 8192 pixels a side for JPEG "
        "and PNG, had 4x4x4");
    free(scratch);
    made_free(&png);
    data_folder_remove(&f);
}
END_TEST

// ---- other models ---------------------------------------------------------------------------------------------

START_TEST(other_slots_are_filled_by_name_or_by_type_and_size)
{
    static const data_form form = {
        .count = 3,
        .slot = {{.type = DATA_FLOAT, .rank = 2, .dim = {2, 3}},
                 {.type = DATA_IDS, .rank = 1, .dim = {4}, .classes = 100},
                 {.type = DATA_MASK, .is_label = true, .rank = 1, .dim = {4}, .classes = 3}}};
    data_folder f = data_folder_make();
    made file = {0};
    for (uint32_t k = 0; k < 10; k++) {
        const float floats[6] = {(float)k, -1, 0.5f, 3, 4, 5e20f};
        const int64_t ids[4] = {k, 99, 0, 1}, mask[4] = {k % 3, 2, 1, 0};
        const uint8_t bytes[4] = {(uint8_t)(k % 3), 2, 1, 0};
        made features = {0};
        features_ints(&features, "input_mask", mask, 4, k % 2 == 0); // as large as what is meant
        features_ints(&features, "input_ids", ids, 4, k % 3 == 0);
        features_floats(&features, "whatever", floats, 6, k % 2 == 0);
        if (_i == 0) {
            features_ints(&features, "labels", mask, 4, k % 2 == 0);
        } else {
            features_bytes(&features, "labels", bytes, 4);
        }
        example_add(&file, &features);
    }
    file_end(&f, "a.tfrecord", &file);
    char path[FILE_NAME_MAX];
    data_source *s = source_at("auto", data_folder_file(&f, "a.tfrecord", path), &form);
    for (uint32_t k = 0; k < s->info.train_samples; k++) {
        const uint32_t n = (uint32_t)split_number(10, DATA_TRAIN, k);
        data_room room = sample_of(s, DATA_TRAIN, k);
        ck_assert_mem_eq(room.slot[0], ((const float[]){(float)n, -1, 0.5f, 3, 4, 5e20f}), 24);
        ck_assert_mem_eq(room.slot[1], ((const int32_t[]){(int32_t)n, 99, 0, 1}), 16);
        ck_assert_mem_eq(room.slot[2], ((const uint8_t[]){(uint8_t)(n % 3), 2, 1, 0}), 4);
        data_room_give_back(&room);
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(floats_of_an_image_are_taken_as_they_are_and_bytes_as_pixels)
{
    const data_form form = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {3}},
                                     {.type = DATA_FLOAT, .is_label = true, .rank = 0}}};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    for (int bytes = 0; bytes < 2; bytes++) {
        made file = {0};
        for (int k = 0; k < 2; k++) {
            made features = {0};
            features_floats(&features, "y", (const float[]){-2.5f}, 1, true);
            if (bytes != 0) {
                features_bytes(&features, "pixels", "\x00\xff\x33", 3);
            } else {
                features_floats(&features, "x", (const float[]){0, 255, 51}, 3, true);
            }
            example_add(&file, &features);
        }
        file_end(&f, "a.tfrecord", &file);
        data_source *s = source_at("tfrecord", data_folder_file(&f, "a.tfrecord", path), &form);
        data_room room = sample_of(s, DATA_EVAL, 0);
        const float scale = bytes != 0 ? 255.0f : 1.0f;
        ck_assert_mem_eq(room.slot[0], ((const float[]){0, 255 / scale, 51 / scale}), 12);
        ck_assert(*(float *)room.slot[1] == -2.5f);
        data_room_give_back(&room);
        data_source_close(s);
    }
    data_folder_remove(&f);
}
END_TEST

// ---- what is wrong --------------------------------------------------------------------------------------------

// Two records with the features that `add` puts into the k-th.
static void write_two(const data_folder *f, void (*add)(made *features, uint32_t k))
{
    made file = {0};
    for (uint32_t k = 0; k < 2; k++) {
        made features = {0};
        add(&features, k);
        example_add(&file, &features);
    }
    file_end(f, "a.tfrecord", &file);
}

static const float two[2] = {1, 2};
static const int64_t classes[2] = {1, 9};

static void add_nothing(made *features, uint32_t k)
{
    (void)features;
    (void)k;
}

static void add_no_label(made *features, uint32_t k)
{
    (void)k;
    features_floats(features, "x", two, 2, true);
    features_bytes(features, "no\nte", "ab", 2);
}

static void add_two_inputs(made *features, uint32_t k)
{
    (void)k;
    features_floats(features, "a", two, 2, true);
    features_floats(features, "b", two, 2, true);
    features_ints(features, "label", classes, 1, true);
}

static void add_missing(made *features, uint32_t k)
{
    features_floats(features, "x", two, 2, true);
    if (k == 0) {
        features_ints(features, "label", classes, 1, true);
    }
}

static void add_other_size(made *features, uint32_t k)
{
    features_floats(features, "x", two, k == 0 ? 2 : 1, true);
    features_ints(features, "label", classes, 1, true);
}

static void add_other_class(made *features, uint32_t k)
{
    features_floats(features, "x", two, 2, true);
    features_ints(features, "label", &classes[k], 1, true);
}

START_TEST(what_is_missing_is_said)
{
    static const struct {
        void (*add)(made *features, uint32_t k);
        const char *sentence;
    } cases[] = {
        {add_nothing,
         ", offset 0: needed a feature of 2 floats, as many bytes, or a JPEG or PNG, had no features"},
        {add_no_label, ", offset 0: needed a feature of 1 ids below 5, had x: 2 float, no?te: 1 bytes of 2"},
        {add_two_inputs,
         ", offset 0: needed only one feature of 2 floats, as many bytes, or a JPEG or PNG, had "
         "several: a: 2 float, b: 2 float, label: 1 int64"},
        {add_missing, ", offset 53: needed label as in the first record, 1 ids below 5, had none"},
        {add_other_size, ", offset 53: needed x as in the first record, 2 floats, had x: 1 float"},
        {add_other_class, ", offset 53: needed a label from 0 to 4, had 9"},
    };
    const data_form form = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {2}},
                                     {.type = DATA_IDS, .is_label = true, .classes = 5}}};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_folder_file(&f, "a.tfrecord", path);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        write_two(&f, cases[k].add);
        assert_refused("tfrecord", path, &form, path, cases[k].sentence);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(files_that_are_no_records_are_refused)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    assert_refused("tfrecord", f.path, &form, f.path,
                   ": needed files *.tfrecord, or *-00000-of-00010, to train on, had none");
    write_images(&f, "a-val.tfrecord", 0, 2, AS_BYTES);
    assert_refused(
        "tfrecord", f.path, &form, f.path,
        ": needed files *.tfrecord, or *-00000-of-00010, to train on, had only such as are held out by "
        "their names");
    write_images(&f, "a.tfrecord", 0, 0, AS_BYTES);
    assert_refused("tfrecord", f.path, &form, f.path, ": needed at least 1 records to train on, had 0");
    data_folder_file(&f, "a.tfrecord", path);
    assert_refused("tfrecord", path, &form, path,
                   ": needed at least 2 records to train on, one of them to hold out, had 0");
    data_replace(&f, "a.tfrecord", "not a record at all", 19);
    assert_refused(
        "tfrecord", path, &form, path,
        ", offset 0: needed the head of a record, with the sum 01570b8c of its length, had 64726f63");
    made data = {0}, file = {0};
    made_add(&data, "no Example", 10);
    record_add(&file, &data);
    record_add(&file, &data);
    file_end(&f, "a.tfrecord", &file);
    assert_refused("tfrecord", path, &form, path,
                   ", offset 0: needed a tf.train.Example, had 10 bytes of something else");
    made_free(&data);
    made_little(&file, UINT64_C(1) << 40, 8);
    record_sum(&file, file.bytes, 8);
    made_little(&file, 0, 4);
    data_replace(&f, "a.tfrecord", file.bytes, file.count);
    made_free(&file);
    assert_refused("tfrecord", path, &form, path,
                   ", offset 0: needed records of at most 268435456 bytes, had 1099511627776");
    data_replace(&f, "b.tfrecord.gz", "\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    (void)unlink(path);
    assert_refused("tfrecord", f.path, &form, data_folder_file(&f, "b.tfrecord.gz", path),
                   ": needed records as they are, had them compressed (GZIP)");
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_file_truncated_anywhere_is_refused_or_shorter)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    write_images(&f, "a.tfrecord", 0, 5, AS_BYTES);
    uint8_t *bytes = data_read(data_folder_file(&f, "a.tfrecord", path), &count);
    hr_knobs knobs = data_knobs("tfrecord", path);
    uint32_t opened = 0;
    for (size_t cut = 0; cut < count; cut++) {
        data_source *s = NULL;
        hr_err err = {0};
        data_replace(&f, "a.tfrecord", bytes, cut);
        if (data_source_open(&knobs, &form, &s, &err) == HR_OK) {
            ck_assert_uint_eq(s->info.train_samples + s->info.eval_samples, 2 + opened++); // cut between two
        } else {
            ck_assert_int_eq(err.status, HR_DATA);
            ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
        }
        data_source_close(s);
        ck_assert_uint_eq(other_blocks_bytes(NULL), 0);
    }
    ck_assert_uint_eq(opened, 3);
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_changed_byte_is_always_found)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    write_images(&f, "a.tfrecord", 0, 3, AS_BYTES);
    uint8_t *bytes = data_read(data_folder_file(&f, "a.tfrecord", path), &count);
    for (size_t at = 0; at < count; at++) {
        bytes[at] ^= (uint8_t)(1 << at % 8);
        data_replace(&f, "a.tfrecord", bytes, count);
        bytes[at] ^= (uint8_t)(1 << at % 8);
        const hr_err err = source_refused("tfrecord", path, &form);
        ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_file_cut_or_changed_while_in_use_is_an_error)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    write_images(&f, "a.tfrecord", 0, 30, AS_BYTES);
    write_images(&f, "b-test.tfrecord", 0, 1, AS_BYTES);
    uint8_t *bytes = data_read(data_folder_file(&f, "a.tfrecord", path), &count);
    bytes[count - 10] ^= 1; // in the last record, which is not looked at before it is asked for
    data_replace(&f, "a.tfrecord", bytes, count);
    data_source *s = source_at("tfrecord", f.path, &form);
    hr_err err = sample_refused(s, DATA_TRAIN, 29);
    ck_assert_msg(strstr(err.sentence, ": needed data with the sum ") != NULL, "%s", err.sentence);
    ck_assert_int_eq(truncate(path, (off_t)count - 1), 0);
    err = sample_refused(s, DATA_TRAIN, 0);
    char sentence[128];
    (void)snprintf(sentence, sizeof sentence,
                   ": needed the file of %zu bytes that was opened, had one of %zu bytes", count, count - 1);
    assert_says(&err, path, sentence);
    data_source_close(s);
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const data_form form = image_form(HEIGHT, WIDTH, CHANNELS, 7);
    data_folder f = data_folder_make();
    write_images(&f, "a.tfrecord", 0, 3, AS_PNG);
    write_images(&f, "a-test.tfrecord", 0, 3, AS_PNG);
    assert_survives_short_memory("tfrecord", f.path, &form);
    data_folder_remove(&f);
}
END_TEST

START_TEST(many_records_are_indexed_as_they_lie)
{
    data_folder f = data_folder_make();
    random_words r = {.next = 2 << 24};
    made file = {0};
    static uint64_t offset[5000];
    for (uint32_t k = 0; k < 5000; k++) {
        made data = {0};
        for (uint32_t bytes = word(&r, k % 100 == 0 ? 9000 : 90); bytes > 0; bytes--) {
            made_byte(&data, bytes & 255);
        }
        offset[k] = file.count;
        record_add(&file, &data);
        made_free(&data);
    }
    const size_t size = file.count;
    char path[FILE_NAME_MAX];
    tfrecords t;
    file_end(&f, "a.tfrecord", &file);
    ck_assert_int_eq(tfrecords_open(data_folder_file(&f, "a.tfrecord", path), NULL, NAME_TRAIN, &t, NULL),
                     HR_OK);
    ck_assert_uint_eq(t.count, 5000);
    ck_assert_uint_eq(other_blocks_bytes(NULL), t.held_bytes);
    for (uint32_t k = 0; k < 5000; k++) {
        ck_assert_uint_eq(t.offset[k], offset[k]);
        ck_assert_uint_eq(tfrecords_bytes(&t, k), (k < 4999 ? offset[k + 1] : size) - offset[k] - 16);
    }
    tfrecords_close(&t);
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources_tfrecord");
    TCase *formats = tcase_create("formats");
    tcase_add_test(formats, many_records_are_indexed_as_they_lie);
    suite_add_tcase(suite, formats);
    TCase *samples = tcase_create("samples");
    tcase_add_loop_test(samples, a_folder_of_shards_is_one_run_and_its_validation_is_held_out, AS_BYTES,
                        AS_JPEG + 1);
    tcase_add_test(samples, records_of_one_file_are_split);
    tcase_add_test(samples, images_get_the_size_of_the_model);
    tcase_add_loop_test(samples, other_slots_are_filled_by_name_or_by_type_and_size, 0, 2);
    tcase_add_test(samples, floats_of_an_image_are_taken_as_they_are_and_bytes_as_pixels);
    suite_add_tcase(suite, samples);
    TCase *wrong = tcase_create("wrong");
    tcase_add_test(wrong, what_is_missing_is_said);
    tcase_add_test(wrong, files_that_are_no_records_are_refused);
    tcase_add_test(wrong, a_file_truncated_anywhere_is_refused_or_shorter);
    tcase_add_test(wrong, a_changed_byte_is_always_found);
    tcase_add_test(wrong, a_file_cut_or_changed_while_in_use_is_an_error);
    tcase_add_test(wrong, every_allocation_may_fail_once);
    suite_add_tcase(suite, wrong);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
