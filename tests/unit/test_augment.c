// SPDX-License-Identifier: Apache-2.0
// pipeline.augment: batches are those of a plain model, on any number of threads and through kills; what is drawn is as even as it
// should be; what is kept behind map stays as the first epoch had it; lists that are none are refused.
#include <math.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/philox.h"
#include "data/augment.h"
#include "data/cache.h"
#include "data/data_files.h"
#include "data/pipeline.h"

enum { TRAIN = 61, EVAL = 4, SIDE = 32, IMAGE = SIDE * SIDE * 3, BATCH = 7, VALUES_MOST = 4096, MARGIN = 64 };
enum { SEED = 77 };

static const data_form form = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {SIDE, SIDE, 3}},
                                        {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const pipeline_wire wire = {.train = {DATA_FLOAT}};
static data_folder folder;

static void make_folder(void)
{
    folder = data_folder_make();
    cifar_write_set(&folder, TRAIN, EVAL);
}

static void remove_folder(void)
{
    data_folder_remove(&folder);
}

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[128];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "%s=%s", key, value);
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_knobs knobs_with(const char *list)
{
    char text[16];
    hr_knobs knobs = data_knobs("cifar10", folder.path);
    (void)snprintf(text, sizeof text, "%d", SEED);
    set(&knobs, "train.seed", text);
    (void)snprintf(text, sizeof text, "%d", BATCH);
    set(&knobs, "batch.size", text);
    set(&knobs, "batch.remainder", "keep");
    set(&knobs, "pipeline.shuffle", "0");
    set(&knobs, "pipeline.augment", list);
    ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    return knobs;
}

// A random but reproducible number in [0, n).
static uint32_t pick(uint32_t seed, uint32_t which, uint32_t n)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    return word[0] % n;
}

// ---- the model ------------------------------------------------------------------------------------------------

typedef struct picture {
    int height, width, channels;
    uint8_t value[VALUES_MOST];
} picture;

typedef struct question {
    uint64_t seed, epoch;
    uint32_t sample;
} question;

// Number `nth` of what an operation draws, 0 … span - 1.
static int drawn(const question *q, const char *purpose, uint32_t nth, uint64_t span)
{
    uint32_t word[4];
    philox(philox_key_of(q->seed, purpose), ((uint64_t)q->sample << 32) + nth / 4, q->epoch, word);
    return (int)(word[nth % 4] * span >> 32);
}

static uint8_t *at(picture *p, int y, int x)
{
    return &p->value[(y * p->width + x) * p->channels];
}

static picture black(const picture *like)
{
    return (picture){.height = like->height, .width = like->width, .channels = like->channels};
}

static void copy_pixel(picture *to, int y, int x, picture *from, int from_y, int from_x)
{
    if (from_y >= 0 && from_y < from->height && from_x >= 0 && from_x < from->width) {
        memcpy(at(to, y, x), at(from, from_y, from_x), (size_t)from->channels);
    }
}

static void model_flip(picture *p, const question *q)
{
    picture from = *p;
    for (int y = 0; y < p->height && drawn(q, "augment/flip", 0, 2) == 1; y++) {
        for (int x = 0; x < p->width; x++) {
            copy_pixel(p, y, x, &from, y, p->width - 1 - x);
        }
    }
}

static void model_crop(picture *p, const question *q, int pixels)
{
    picture from = *p;
    const int top = drawn(q, "augment/crop", 0, 2 * (uint64_t)pixels + 1) - pixels;
    const int left = drawn(q, "augment/crop", 1, 2 * (uint64_t)pixels + 1) - pixels;
    *p = black(p);
    for (int y = 0; y < p->height; y++) {
        for (int x = 0; x < p->width; x++) {
            copy_pixel(p, y, x, &from, y + top, x + left);
        }
    }
}

static double model_grey(const uint8_t *pixel, int channels)
{
    return channels != 3 ? pixel[0]
                         : floor((19595.0 * pixel[0] + 38470.0 * pixel[1] + 7471.0 * pixel[2]) / 65536 + 0.5);
}

static void model_blend(uint8_t *value, double factor, double level)
{
    const double mixed = floor(factor * *value + (1 - factor) * level);
    *value = (uint8_t)(mixed < 0 ? 0 : mixed > 255 ? 255 : mixed);
}

// `what`: 0 brightness, 1 contrast, 2 saturation.
static void model_change(picture *p, int what, double factor)
{
    const int values = p->height * p->width * p->channels, each = p->channels == 3 ? 3 : 1;
    double sum = 0;
    for (int k = 0; k < values; k += each) {
        sum += model_grey(&p->value[k], p->channels);
    }
    const double mean = floor(sum * each / values + 0.5);
    for (int k = 0; k < values; k += each) {
        const double grey = model_grey(&p->value[k], p->channels);
        for (int c = 0; c < each && (what < 2 || each == 3); c++) {
            model_blend(&p->value[k + c], factor, what == 0 ? 0 : what == 1 ? mean : grey);
        }
    }
}

static void model_colour(picture *p, const question *q, double strength)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int *order = orders[drawn(q, "augment/colour", 0, 6)];
    const int most = (int)floor(strength * 65536 + 1e-9);
    for (uint32_t k = 0; k < 3; k++) {
        const int parts = drawn(q, "augment/colour", k + 1, 2 * (uint64_t)most + 1) - most;
        model_change(p, order[k], 1 + parts / 65536.0);
    }
}

static void model_rotate(picture *p, const question *q, int degrees)
{
    picture from = *p;
    const int most = degrees * 65536;
    const double angle =
        (drawn(q, "augment/rotate", 0, 2 * (uint64_t)most + 1) - most) / 65536.0 * acos(-1.0) / 180;
    *p = black(p);
    for (int y = 0; y < p->height; y++) {
        for (int x = 0; x < p->width; x++) {
            const double right = x + 0.5 - p->width / 2.0, up = p->height / 2.0 - y - 0.5;
            const double from_right = right * cos(angle) + up * sin(angle),
                         from_up = up * cos(angle) - right * sin(angle);
            copy_pixel(p, y, x, &from, (int)floor(p->height / 2.0 - from_up),
                       (int)floor(p->width / 2.0 + from_right));
        }
    }
}

static int model_side(double square, int most)
{
    const int side = (int)floor(sqrt(floor(square)) + 1e-9);
    return side < 1 ? 1 : side > most ? most : side;
}

static void model_erase(picture *p, const question *q)
{
    static const char op[] = "augment/erase";
    const int pixels = p->height * p->width, least = pixels * 2 / 100, most = pixels * 33 / 100;
    const double area = least + drawn(q, op, 1, (uint64_t)(most - least) + 1);
    const double ratio = (256 + drawn(q, op, 2, 845 - 256 + 1)) / 256.0;
    const bool upright = drawn(q, op, 3, 2) == 1;
    const int height = model_side(upright ? area * ratio : area / ratio, p->height);
    const int width = model_side(upright ? area / ratio : area * ratio, p->width);
    const int top = drawn(q, op, 4, (uint64_t)(p->height - height) + 1);
    const int left = drawn(q, op, 5, (uint64_t)(p->width - width) + 1);
    for (int y = top; y < top + height && drawn(q, op, 0, 2) == 1; y++) {
        memset(at(p, y, left), 0, (size_t)width * (size_t)p->channels);
    }
}

// By the words of the list, one after the other.
static void model_augment(picture *p, const question *q, const char *list)
{
    while (*list != '\0' && strcmp(list, "none") != 0) {
        const char *amount = list + strcspn(list, ":,");
        const double number = *amount == ':' ? strtod(amount + 1, NULL) : 0;
        switch (*list) {
        case 'f':
            model_flip(p, q);
            break;
        case 'e':
            model_erase(p, q);
            break;
        case 'r':
            model_rotate(p, q, (int)number);
            break;
        case 'c':
            if (list[1] == 'r') {
                model_crop(p, q, (int)number);
            } else {
                model_colour(p, q, number);
            }
            break;
        default:
            ck_abort_msg("%s", list);
        }
        list += strcspn(list, ",");
        list += strspn(list, ",");
    }
}

// A random list, of every kind at most one.
static const char *random_list(uint32_t seed, char text[128])
{
    static const char *const words[AUGMENT_KINDS][3] = {{"flip", "flip", "flip"},
                                                        {"crop:4", "crop:1", "crop:40"},
                                                        {"colour:0.4", "colour:1", "colour:0.05"},
                                                        {"rotate:10", "rotate:180", "rotate:90"},
                                                        {"erase", "erase", "erase"}};
    bool used[AUGMENT_KINDS] = {false};
    size_t length = 0;
    for (uint32_t k = 0, count = 1 + pick(seed, 0, AUGMENT_KINDS); k < count; k++) {
        const uint32_t kind = pick(seed, 1 + k, AUGMENT_KINDS);
        if (!used[kind]) {
            length += (size_t)snprintf(text + length, 128 - length, "%s%s", length > 0 ? "," : "",
                                       words[kind][pick(seed, 10 + k, 3)]);
            used[kind] = true;
        }
    }
    return text;
}

// ---- one image ------------------------------------------------------------------------------------------------

static data_augment augment_with(const char *list)
{
    hr_knobs knobs;
    char text[16];
    hr_knobs_init(&knobs);
    (void)snprintf(text, sizeof text, "%d", SEED);
    set(&knobs, "train.seed", text);
    set(&knobs, "pipeline.augment", list);
    return data_augment_of(&knobs);
}

START_TEST(an_image_of_any_shape_becomes_the_models)
{
    static const int shapes[][3] = {{1, 1, 1},   {1, 1, 3},   {1, 2, 3}, {2, 1, 3}, {7, 5, 1},   {5, 9, 3},
                                    {32, 32, 3}, {28, 28, 1}, {3, 4, 2}, {6, 6, 4}, {1, 784, 1}, {33, 31, 3}};
    const int *shape = shapes[_i % 12];
    static uint8_t room[2][MARGIN + VALUES_MOST + MARGIN];
    char list[128];
    const data_augment a = augment_with(random_list((uint32_t)_i, list));
    const image_size size = {(uint32_t)shape[0], (uint32_t)shape[1], (uint32_t)shape[2]};
    const size_t bytes = (size_t)image_bytes(&size);
    picture p = {.height = shape[0], .width = shape[1], .channels = shape[2]};
    for (uint32_t sample = 0; sample < 6; sample++) {
        const question q = {SEED, 3 * sample, 1000 * sample};
        memset(room, 0xa5, sizeof room);
        for (size_t k = 0; k < bytes; k++) {
            p.value[k] = (uint8_t)pick((uint32_t)_i, (uint32_t)k, 256);
        }
        memcpy(room[0] + MARGIN, p.value, bytes);
        const uint8_t *out =
            data_augment_image(&a, q.epoch, q.sample, &size, room[0] + MARGIN, room[1] + MARGIN);
        model_augment(&p, &q, list);
        ck_assert_msg(memcmp(out, p.value, bytes) == 0, "%s of %dx%dx%d", list, shape[0], shape[1], shape[2]);
        for (int k = 0; k < 2 * MARGIN; k++) {
            ck_assert_uint_eq(room[k % 2][k / 2], 0xa5);
            ck_assert_uint_eq(room[k % 2][MARGIN + bytes + (size_t)k / 2], 0xa5);
        }
    }
}
END_TEST

// ---- batches --------------------------------------------------------------------------------------------------

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

// Record `sample` of the files, pixel by pixel.
static picture record(uint32_t sample)
{
    uint8_t bytes[CIFAR_RECORD];
    picture p = {.height = SIDE, .width = SIDE, .channels = 3};
    cifar_record(sample, bytes);
    for (int k = 0; k < IMAGE; k++) {
        p.value[k] = bytes[1 + k % 3 * SIDE * SIDE + k / 3];
    }
    return p;
}

static void check_item(const data_item *item, uint64_t epoch, uint32_t first, const char *list)
{
    for (uint32_t k = 0; k < item->count; k++) {
        const question q = {SEED, epoch, first + k};
        const float *values = (const float *)item->room.slot[0] + (size_t)k * IMAGE;
        picture p = record(first + k);
        model_augment(&p, &q, list);
        for (int v = 0; v < IMAGE; v++) {
            ck_assert_msg(values[v] == (float)p.value[v] / 255.0f, "%s: sample %u, value %d", list, first + k,
                          v);
        }
        ck_assert_int_eq(((const int32_t *)item->room.slot[1])[k], (int32_t)(first + k) % 10);
    }
}

START_TEST(batches_are_the_models_on_any_threads_and_through_kills)
{
    static const char *const counts[] = {"0", "1", "2", "3"};
    char list[128];
    hr_knobs knobs = knobs_with(random_list((uint32_t)_i, list));
    set(&knobs, "pipeline.prefetch", counts[pick((uint32_t)_i, 30, 4)]);
    set(&knobs, "pipeline.map_threads", counts[1 + pick((uint32_t)_i, 31, 3)]);
    set(&knobs, "pipeline.array", pick((uint32_t)_i, 32, 2) == 0 ? "off" : "uint8");
    pipeline *p = open_pipeline(&knobs);
    for (uint32_t epoch = 0, kills = 0; epoch < 2; epoch++) {
        uint32_t first = 0;
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            check_item(&item, epoch, first, list);
            first += item.count;
            if (pick((uint32_t)_i, 100 + kills++, 5) == 0) {
                const data_position position = pipeline_position(p);
                pipeline_close(p);
                p = open_pipeline(&knobs);
                ck_assert_int_eq(pipeline_seek(p, position, NULL), HR_OK);
            }
        }
        ck_assert_uint_eq(first, TRAIN);
    }
    pipeline_close(p);
}
END_TEST

static uint64_t hash_of(const data_item *item)
{
    if (item->end) {
        return 1;
    }
    uint64_t hash = hash64(item->room.slot[0], (size_t)item->count * IMAGE * sizeof(float), item->count);
    return hash64(item->room.slot[1], item->count * sizeof(int32_t), hash);
}

// A cache in front of map and elements that wait, raw or made: no more than another way to the same batches.
START_TEST(whatever_waits_where_the_same_images_come)
{
    static const char *const orders[] = {"cache,shuffle,map,batch", "shuffle,map,batch,prefetch",
                                         "map,shuffle,batch", "slices,cache,map,shuffle,batch,prefetch"};
    hr_knobs plain = knobs_with("crop:4,flip,colour:0.3"), knobs;
    set(&plain, "pipeline.shuffle", "9");
    set(&plain, "pipeline.augment_copies", _i % 8 < 4 ? "0" : "1");
    knobs = plain;
    set(&knobs, "pipeline.stages", orders[_i % 4]);
    set(&knobs, "pipeline.cache", strstr(orders[_i % 4], "cache") == NULL ? "none" : "ram");
    set(&knobs, "pipeline.shuffle_of", "elements");
    pipeline *p = open_pipeline(&knobs), *q = open_pipeline(&plain);
    for (uint32_t ends = 0; ends < 3;) {
        const data_item b = next_item(q);
        const uint64_t expected = hash_of(&b);
        const data_item a = next_item(p);
        ck_assert_uint_eq(hash_of(&a), expected);
        ends += b.end;
    }
    pipeline_close(p);
    pipeline_close(q);
}
END_TEST

// As of epoch 0, also after a kill in a later epoch.
START_TEST(what_is_kept_behind_map_stays_as_the_first_epoch_had_it)
{
    static const char list[] = "flip,crop:4,erase";
    hr_knobs knobs = knobs_with(list);
    set(&knobs, "pipeline.stages", "map,cache,batch");
    set(&knobs, "pipeline.cache", "ram");
    pipeline *p = open_pipeline(&knobs);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        uint32_t first = 0;
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            check_item(&item, 0, first, list);
            first += item.count;
        }
        pipeline_close(p);
        p = open_pipeline(&knobs);
        ck_assert_int_eq(pipeline_seek(p, (data_position){epoch + 1, 0}, NULL), HR_OK);
    }
    pipeline_close(p);
}
END_TEST

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

static hr_knobs copies_knobs(const char *list, uint32_t copies)
{
    char text[16];
    hr_knobs knobs = knobs_with(list);
    (void)snprintf(text, sizeof text, "%u", copies);
    set(&knobs, "pipeline.augment_copies", text);
    ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    return knobs;
}

// Epoch e takes variant e mod (k + 1), which is what epoch e would make; through kills. C11: k + 1 times the data.
START_TEST(copies_are_made_once_and_come_in_turn)
{
    static const char *const counts[] = {"1", "2", "3"};
    const uint32_t copies = 1 + (uint32_t)_i % 3;
    char list[128];
    hr_knobs knobs = copies_knobs(random_list((uint32_t)_i, list), copies);
    set(&knobs, "pipeline.map_threads", counts[pick((uint32_t)_i, 40, 3)]);
    set(&knobs, "pipeline.array", pick((uint32_t)_i, 41, 2) == 0 ? "off" : "uint8");
    pipeline *p = open_pipeline(&knobs);
    ck_assert_uint_eq(stage_bytes(p, "copies"), copies * TRAIN * (IMAGE + DATA_CACHE_ENTRY_BYTES));
    for (uint32_t epoch = 0, kills = 0; epoch < 2 * copies + 2; epoch++) {
        const uint32_t variant = epoch % (copies + 1);
        uint32_t first = 0;
        for (data_item item = next_item(p); !item.end; item = next_item(p)) {
            check_item(&item, variant, first, variant == 0 ? "none" : list);
            first += item.count;
            if (pick((uint32_t)_i, 100 + kills++, 9) == 0) {
                const data_position position = pipeline_position(p);
                pipeline_close(p);
                p = open_pipeline(&knobs);
                ck_assert_int_eq(pipeline_seek(p, position, NULL), HR_OK);
            }
        }
    }
    pipeline_close(p);
}
END_TEST

static hr_status two_epochs(const hr_knobs *knobs)
{
    pipeline *p = NULL;
    hr_status status = pipeline_open(knobs, &form, &wire, &p, NULL);
    for (uint32_t ends = 0; status == HR_OK && ends < 2;) {
        data_item item;
        uint64_t wait_ns;
        status = pipeline_next(p, &item, &wait_ns, NULL);
        ends += status == HR_OK && item.end;
    }
    pipeline_close(p);
    return status;
}

START_TEST(every_allocation_for_copies_may_fail_once)
{
    hr_knobs knobs = copies_knobs("flip,crop:2", 2);
    set(&knobs, "pipeline.map_threads", _i == 0 ? "1" : "2");
    set(&knobs, "pipeline.prefetch", "0");
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

START_TEST(copies_that_nothing_makes_or_nobody_takes_are_refused)
{
    hr_knobs knobs = copies_knobs("flip", 2);
    hr_err err = {0};
    set(&knobs, "pipeline.augment", "none");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed a list of operations there, had none"));
    set(&knobs, "pipeline.augment", "flip");
    set(&knobs, "pipeline.cache", "ram");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_OK);
    set(&knobs, "pipeline.stages", "map,cache,batch");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "a cache behind map keeps the first epoch's"));
    ck_assert_str_eq(err.hint, "-s pipeline.augment_copies=0");
}
END_TEST

START_TEST(held_out_images_stay_as_they_are)
{
    const hr_knobs knobs = knobs_with("flip,crop:4,colour:1,rotate:90,erase");
    pipeline *p = open_pipeline(&knobs);
    data_item item;
    ck_assert_int_eq(pipeline_next_eval(p, EVAL, &item, NULL), HR_OK);
    ck_assert_uint_eq(item.count, EVAL);
    check_item(&item, 0, TRAIN, "none");
    pipeline_close(p);
}
END_TEST

// ---- chance ---------------------------------------------------------------------------------------------------

enum { CODED = 15, DRAWS = 16200 };

// Pixel (y, x) of 15 × 15 has the number 1 + 15 y + x.
static void coded_image(uint8_t image[CODED * CODED])
{
    for (uint32_t k = 0; k < CODED * CODED; k++) {
        image[k] = (uint8_t)(k + 1);
    }
}

static double chi_square(const uint32_t *count, uint32_t cells, double expected)
{
    double sum = 0;
    for (uint32_t k = 0; k < cells; k++) {
        sum += (count[k] - expected) * (count[k] - expected) / expected;
    }
    return sum;
}

// 80 degrees of freedom: above 124.8 once in a thousand.
START_TEST(every_crop_is_alike_likely)
{
    const data_augment a = augment_with("crop:4");
    const image_size size = {CODED, CODED, 1};
    uint8_t image[CODED * CODED], spare[CODED * CODED];
    uint32_t count[81] = {0}, steps[81] = {0}, before = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        coded_image(image);
        const uint8_t *out = data_augment_image(&a, _i == 0 ? k : 0, _i == 0 ? 0 : k, &size, image, spare);
        const uint32_t centre = out[CODED * CODED / 2] - 1u;
        const uint32_t cell = (centre / CODED - 3) * 9 + centre % CODED - 3;
        ck_assert_uint_lt(cell, 81);
        count[cell]++;
        steps[(cell + 81 - before) % 81]++;
        before = cell;
    }
    ck_assert_msg(chi_square(count, 81, DRAWS / 81.0) < 124.8, "%f", chi_square(count, 81, DRAWS / 81.0));
    ck_assert_msg(chi_square(steps, 81, DRAWS / 81.0) < 124.8, "%f", chi_square(steps, 81, DRAWS / 81.0));
}
END_TEST

// Flips and crops of one image, and flips of epochs that follow, have nothing to do with each other. 7 degrees of freedom.
START_TEST(operations_and_epochs_are_independent)
{
    const data_augment a = augment_with("crop:4,flip");
    const image_size size = {CODED, CODED, 1};
    uint8_t image[CODED * CODED], spare[CODED * CODED];
    uint32_t count[8] = {0}, flipped[2] = {0};
    for (uint32_t k = 0; k < DRAWS; k++) {
        bool is_flipped[2], is_low = false;
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            coded_image(image);
            const uint8_t *out = data_augment_image(&a, epoch, k, &size, image, spare);
            const uint8_t *centre = out + CODED * CODED / 2;
            is_flipped[epoch] = centre[0] > centre[1];
            is_low = (centre[0] - 1u) / CODED == 3 || (centre[0] - 1u) / CODED == 4;
        }
        count[(is_flipped[0] ? 4 : 0) + (is_flipped[1] ? 2 : 0) + (is_low ? 1 : 0)]++;
        flipped[is_flipped[0]]++;
    }
    double sum = 0;
    for (uint32_t k = 0; k < 8; k++) { // low is two of nine rows
        const double expected = DRAWS / 4.0 * (k % 2 == 1 ? 2 : 7) / 9;
        sum += (count[k] - expected) * (count[k] - expected) / expected;
    }
    ck_assert_msg(sum < 24.3, "%f", sum);
    ck_assert_msg(chi_square(flipped, 2, DRAWS / 2.0) < 10.8, "%u flipped", flipped[1]);
}
END_TEST

// Between 2 and 33 % of the image are black, in half of all.
START_TEST(half_of_all_images_lose_a_rectangle)
{
    const data_augment a = augment_with("erase");
    const image_size size = {CODED, CODED, 1};
    uint8_t image[CODED * CODED], spare[CODED * CODED];
    uint32_t erased = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t gone = 0;
        coded_image(image);
        const uint8_t *out = data_augment_image(&a, 0, k, &size, image, spare);
        for (uint32_t v = 0; v < CODED * CODED; v++) {
            gone += out[v] == 0;
        }
        ck_assert_uint_le(gone, CODED * CODED * 33 / 100);
        erased += gone > 0;
    }
    ck_assert_double_lt(fabs(erased - DRAWS / 2.0), 3.3 * sqrt(DRAWS / 4.0));
}
END_TEST

// ---- words ----------------------------------------------------------------------------------------------------

START_TEST(a_list_that_is_none_is_refused)
{
    static const char *const strange[] = {
        "flip:1",           "crop",       "crop:",    "crop:0",     "crop:1001",  "crop:4.5",
        "crop:-1",          "colour",     "colour:0", "colour:1.1", "colour:.5",  "colour:1.",
        "colour:0.0001",    "rotate:181", "rotate:0", "rotate:9x",  "erase:1",    "flip,flip",
        "crop:4,crop:5",    "flips",      "fli",      "mixup",      "flip;erase", "flip,none",
        "crop:99999999999", "crop:4:4"};
    for (size_t k = 0; k < sizeof strange / sizeof *strange; k++) {
        hr_knobs knobs;
        hr_err err = {0};
        hr_knobs_init(&knobs);
        set(&knobs, "pipeline.augment", strange[k]);
        ck_assert_msg(hr_knobs_validate(&knobs, &err) == HR_CONSTRAINT, "%s", strange[k]);
        ck_assert_ptr_nonnull(strstr(err.sentence, "pipeline.augment is none, or some of flip, crop:PIXELS"));
        ck_assert_str_eq(err.hint, "-s pipeline.augment=flip,crop:4");
    }
}
END_TEST

START_TEST(lists_are_read_as_they_are_written)
{
    static const struct {
        const char *text;
        augment_list list;
    } lists[] = {
        {"none", {0}},
        {"", {0}},
        {"flip", {1, {{AUGMENT_FLIP, 0}}}},
        {"crop:1000, flip", {2, {{AUGMENT_CROP, 1000}, {AUGMENT_FLIP, 0}}}},
        {"colour:0.001", {1, {{AUGMENT_COLOUR, 1}}}},
        {"colour:1", {1, {{AUGMENT_COLOUR, 1000}}}},
        {"colour:0.25,rotate:180,erase",
         {3, {{AUGMENT_COLOUR, 250}, {AUGMENT_ROTATE, 180}, {AUGMENT_ERASE, 0}}}},
    };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        hr_knobs knobs;
        augment_list list;
        hr_knobs_init(&knobs);
        set(&knobs, "pipeline.augment", lists[k].text);
        ck_assert(augment_list_of(&knobs, &list));
        ck_assert_uint_eq(list.count, lists[k].list.count);
        for (uint32_t n = 0; n < list.count; n++) {
            ck_assert_int_eq(list.step[n].kind, lists[k].list.step[n].kind);
            ck_assert_uint_eq(list.step[n].amount, lists[k].list.step[n].amount);
        }
    }
}
END_TEST

START_TEST(an_array_of_values_is_not_augmented)
{
    hr_knobs knobs = knobs_with("flip");
    hr_err err = {0};
    set(&knobs, "pipeline.array", "float64");
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "pipeline.augment changes the bytes of images"));
    ck_assert_str_eq(err.hint, "-s pipeline.array=uint8");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("augment");
    TCase *images = tcase_create("images"), *batches = tcase_create("batches");
    tcase_set_timeout(batches, 60);
    tcase_add_loop_test(images, an_image_of_any_shape_becomes_the_models, 0, HEADROOM_SANITIZED ? 15 : 60);
    tcase_add_loop_test(images, every_crop_is_alike_likely, 0, HEADROOM_SANITIZED ? 1 : 2);
    tcase_add_test(images, operations_and_epochs_are_independent);
    tcase_add_test(images, half_of_all_images_lose_a_rectangle);
    tcase_add_test(images, a_list_that_is_none_is_refused);
    tcase_add_test(images, lists_are_read_as_they_are_written);
    tcase_add_checked_fixture(batches, make_folder, remove_folder);
    tcase_add_loop_test(batches, batches_are_the_models_on_any_threads_and_through_kills, 0,
                        HEADROOM_SANITIZED ? 4 : 12);
    tcase_add_loop_test(batches, whatever_waits_where_the_same_images_come, 0, HEADROOM_SANITIZED ? 3 : 8);
    tcase_add_test(batches, what_is_kept_behind_map_stays_as_the_first_epoch_had_it);
    tcase_add_loop_test(batches, copies_are_made_once_and_come_in_turn, 0, HEADROOM_SANITIZED ? 2 : 6);
    tcase_add_loop_test(batches, every_allocation_for_copies_may_fail_once, 0, 2);
    tcase_add_test(batches, copies_that_nothing_makes_or_nobody_takes_are_refused);
    tcase_add_test(batches, held_out_images_stay_as_they_are);
    tcase_add_test(batches, an_array_of_values_is_not_augmented);
    suite_add_tcase(suite, images);
    suite_add_tcase(suite, batches);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
