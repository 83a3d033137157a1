// SPDX-License-Identifier: Apache-2.0
// Folders and archives of images: which files are samples, of which class and of which set; what comes out is what was drawn; and what cannot
// be read is said in one sentence that names the file.
#include "data/image_tree.h"
#include "data/source_checks.h"
#include "data/split.h"

enum { SIDE = 4 };

static data_form form_of(uint32_t height, uint32_t width, uint32_t channels, uint32_t classes)
{
    return (data_form){.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {height, width, channels}},
                                {.type = DATA_IDS, .is_label = true, .classes = classes}}};
}

// Sample `index` is image n, of that class.
static void assert_is(const data_source *s, data_set set, uint32_t index, uint32_t n, uint32_t label)
{
    data_room room = sample_of(s, set, index);
    const float *values = room.slot[0];
    uint8_t colour[3];
    tree_colour(n, colour);
    for (size_t k = 0; k < SIDE * SIDE * 3; k++) {
        ck_assert(values[k] == (float)colour[k % 3] / 255.0f);
    }
    ck_assert_int_eq(*(const int32_t *)room.slot[1], (int32_t)label);
    data_room_give_back(&room);
}

static void assert_refused_sample(const data_source *s, uint32_t index, const char *begin, const char *rest)
{
    const hr_err err = sample_refused(s, DATA_TRAIN, index);
    assert_says(&err, begin, rest);
}

// ---- what is where ----------------------------------------------------------------------------------------------

// Without held-out files one image of ten is, of those in the order of class and name.
START_TEST(images_come_by_class_and_name_and_one_of_ten_is_held_out)
{
    enum { CLASSES = 3, IMAGES = 41 };
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, CLASSES);
    uint32_t order[IMAGES], count = 0;
    tree_write_set(&f, "", CLASSES, 0, IMAGES);
    tree_write(&f, "notes.txt", tree_text("of no class"));
    for (uint32_t c = 0; c < CLASSES; c++) {
        for (uint32_t n = c; n < IMAGES; n += CLASSES) {
            order[count++] = n;
        }
    }
    for (int by_name = 0; by_name < 2; by_name++) {
        data_source *s = source_at(by_name ? "images" : "auto", f.path, &form);
        ck_assert_uint_eq(s->info.classes, CLASSES);
        for (data_set set = 0; set < DATA_SET_COUNT; set++) {
            ck_assert_uint_eq(data_source_samples(s, set), split_count(IMAGES, set));
            for (uint32_t k = 0; k < data_source_samples(s, set); k++) {
                const uint32_t n = order[split_number(IMAGES, set, k)];
                assert_is(s, set, k, n, n % CLASSES);
            }
        }
        data_source_close(s);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(folders_for_training_and_validation_are_the_sets)
{
    static const char *const held_out[] = {"val", "test", "Validation"};
    const data_form form = form_of(SIDE, SIDE, 3, 10);
    for (size_t k = 0; k < sizeof held_out / sizeof *held_out; k++) {
        const data_folder f = data_folder_make();
        char name[64];
        tree_write_set(&f, "train", 2, 0, 8);
        tree_write_set(&f, held_out[k], 2, 20, 4);
        (void)snprintf(name, sizeof name, "%s/class_9/only.png", held_out[k]);
        tree_write(&f, name, tree_png(77, 3, 3)); // a class that is in one of them has its place in both
        data_source *s = source_at("auto", f.path, &form);
        ck_assert_uint_eq(s->info.classes, 3);
        ck_assert_uint_eq(s->info.train_samples, 8);
        ck_assert_uint_eq(s->info.eval_samples, 5);
        assert_is(s, DATA_TRAIN, 0, 0, 0);
        assert_is(s, DATA_TRAIN, 7, 7, 1);
        assert_is(s, DATA_EVAL, 0, 20, 0);
        assert_is(s, DATA_EVAL, 4, 77, 2);
        data_source_close(s);
        data_folder_remove(&f);
    }
}
END_TEST

// Names that end as images do are images, others where their bytes say so. Deeper folders are of their class.
START_TEST(the_bytes_of_a_file_say_what_it_is)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 3);
    tree_write(&f, "a/1.jpg", tree_png(1, 3, 3)); // a PNG
    tree_write(&f, "a/2", tree_png(2, 3, 3));
    tree_write(&f, "a/3.txt", tree_png(3, 3, 3));
    tree_write(&f, "a/Thumbs.db", tree_text("no image"));
    tree_write(&f, "a/.hidden.png", tree_png(9, 3, 3));
    tree_write(&f, "a/deep/er/4.PNG", tree_png(4, 3, 3));
    tree_write(&f, "b/list.csv", tree_text(""));
    tree_write(&f, "val/note.txt", tree_text("a class, without train beside it"));
    data_source *s = source_at("images", f.path, &form);
    ck_assert_uint_eq(s->info.classes, 3);
    ck_assert_uint_eq(s->info.train_samples + s->info.eval_samples, 4);
    for (uint32_t k = 0; k < 3; k++) {
        assert_is(s, DATA_TRAIN, k, 1 + (uint32_t)split_number(4, DATA_TRAIN, k), 0);
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// ---- what images become -----------------------------------------------------------------------------------------

START_TEST(resize_is_how_images_of_another_size_become_the_models)
{
    static const char *const filters[] = {"bilinear", "nearest", "area"};
    const data_folder f = data_folder_make();
    const data_form form = form_of(2, 2, 1, 2);
    float seen[3];
    uint16_t sample[5 * 5];
    for (size_t k = 0; k < 25; k++) {
        sample[k] = (uint16_t)(k * k % 251);
    }
    for (uint32_t n = 0; n < 2; n++) {
        const png_form grey = {.width = 5, .height = 5, .bits = 8};
        tree_write(&f, n == 0 ? "a/1.png" : "b/2.png", png_make(&grey, sample, NULL));
    }
    for (size_t k = 0; k < 3; k++) {
        hr_knobs knobs = data_knobs("images", f.path);
        data_source *s = NULL;
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_RESIZE, filters[k], NULL), HR_OK);
        ck_assert_int_eq(data_source_open(&knobs, &form, &s, NULL), HR_OK);
        data_room room = sample_of(s, DATA_TRAIN, 0);
        seen[k] = ((const float *)room.slot[0])[3];
        data_room_give_back(&room);
        data_source_close(s);
    }
    ck_assert(seen[0] != seen[1]);
    ck_assert(seen[1] != seen[2]);
    ck_assert(seen[0] != seen[2]);
    data_folder_remove(&f);
}
END_TEST

static made jpeg_of(int format, const uint8_t *pixels)
{
    return jpeg_make(8, 8, format, pixels, format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444, 0);
}

START_TEST(cmyk_and_16_bits_are_images)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    uint8_t ink[8 * 8 * 4];
    uint16_t deep[3 * 3 * 3];
    memset(ink, 255, sizeof ink); // as Adobe writes it: no ink at all
    for (size_t k = 0; k < sizeof deep / sizeof *deep; k++) {
        deep[k] = 0xffff;
    }
    const png_form bits16 = {.width = 3, .height = 3, .bits = 16, .colour = 2};
    tree_write(&f, "a/1.jpg", jpeg_of(TJPF_CMYK, ink));
    tree_write(&f, "a/2.png", png_make(&bits16, deep, NULL));
    tree_write(&f, "a/3.png", png_make(&bits16, deep, NULL));
    tree_write(&f, "b/4.jpg", jpeg_of(TJPF_GRAY, ink));
    data_source *s = source_at("images", f.path, &form);
    for (uint32_t k = 0; k < 3; k++) {
        data_room room = sample_of(s, DATA_TRAIN, k);
        ck_assert(((const float *)room.slot[0])[0] > 0.95f);
        data_room_give_back(&room);
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// ---- what cannot be read ----------------------------------------------------------------------------------------

static const char *in(const data_folder *f, const char *name)
{
    static char path[FILE_NAME_MAX];
    return data_folder_file(f, name, path);
}

static hr_status open_skipping(const char *path, const data_form *form, data_source **s, hr_err *err)
{
    hr_knobs knobs = data_knobs("images", path);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_BAD, "skip", NULL), HR_OK);
    return data_source_open(&knobs, form, s, err);
}

START_TEST(a_file_that_is_no_image_is_named)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    made cut = tree_png(3, 30, 30), bomb = tree_png(4, 3, 3);
    cut.count /= 2;
    bomb.bytes[16] = 0x7f; // a width of two thousand million
    tree_write(&f, "a/0.jpg", (made){0});
    tree_write(&f, "a/1.png", tree_text("<html>404</html>"));
    tree_write(&f, "a/2.png", cut);
    tree_write(&f, "a/3.gif", tree_text("GIF89a"));
    tree_write(&f, "a/4.png", bomb);
    for (int k = 5; k < 9; k++) {
        char name[24];
        (void)snprintf(name, sizeof name, "a/%d.png", k);
        tree_write(&f, name, tree_png(5, 2, 2));
    }
    tree_write(&f, "val/a/9.png", tree_png(5, 2, 2)); // no train beside it: a class
    data_source *s = source_at("images", f.path, &form);
    const char *said[] = {
        ": needed a JPEG or PNG image, had an empty file",
        ": needed a JPEG or PNG image, had 16 bytes of something else", ": needed a whole PNG image",
        ": needed a JPEG or PNG image, had 6 bytes of something else", ": needed at most 65500 pixels"};
    size_t refused = 0;
    for (uint32_t k = 0; k < s->info.train_samples; k++) {
        const uint64_t n = split_number(10, DATA_TRAIN, k);
        if (n < 5) {
            static const char *const names[] = {"a/0.jpg", "a/1.png", "a/2.png", "a/3.gif", "a/4.png"};
            char begin[FILE_NAME_MAX + 80];
            const hr_err err = sample_refused(s, DATA_TRAIN, k);
            (void)snprintf(begin, sizeof begin, "%s%s", in(&f, names[n]), said[n]);
            ck_assert_msg(strncmp(err.sentence, begin, strlen(begin)) == 0, "%s", err.sentence);
            refused++;
        }
    }
    ck_assert_uint_ge(refused, 4);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(files_that_vanish_or_change_are_errors)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    tree_write_set(&f, "train", 2, 0, 8);
    tree_write_set(&f, "val", 2, 8, 2);
    data_source *s = source_at("images", f.path, &form);
    ck_assert_int_eq(unlink(in(&f, "train/class_0/0000.png")), 0);
    assert_refused_sample(s, 0, in(&f, "train/class_0/0000.png"),
                          ": needed a file that can be read, had: No such file or directory");
    ck_assert_int_eq(unlink(in(&f, "train/class_0/0002.png")), 0);
    tree_write(&f, "train/class_0/0002.png", tree_png(2, 90, 90));
    const hr_err grown = sample_refused(s, DATA_TRAIN, 1);
    ck_assert_ptr_nonnull(strstr(grown.sentence, ": needed the file of "));
    ck_assert_int_eq(unlink(in(&f, "train/class_0/0004.png")), 0);
    ck_assert_int_eq(mkfifo(in(&f, "train/class_0/0004.png"), 0600), 0);
    assert_refused_sample(s, 2, in(&f, "train/class_0/0004.png"),
                          ": needed a plain file, had something else");
    assert_is(s, DATA_TRAIN, 3, 6, 0);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_holds_no_images_is_refused)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2),
                    flat = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {48}},
                                     {.type = DATA_IDS, .is_label = true, .classes = 2}}};
    tree_write(&f, "1.png", tree_png(1, 3, 3));
    assert_refused("images", f.path, &form, f.path,
                   ": needed one folder per class with images in it, had no folder");
    tree_write(&f, "a/1.png", tree_png(1, 3, 3));
    assert_refused("images", f.path, &form, f.path, ": needed 2 JPEG or PNG images to train on, had 1");
    tree_write(&f, "a/2.png", tree_png(1, 3, 3));
    tree_write(&f, "b/2.png", tree_png(1, 3, 3));
    tree_write(&f, "c/2.png", tree_png(1, 3, 3));
    const hr_err err = source_refused("images", f.path, &form);
    ck_assert_ptr_nonnull(strstr(err.sentence, ": needed a model with 3 classes, had 2"));
    assert_refused("images", f.path, &flat,
                   "pipeline.source=images: needed a model that takes images of 1 or 3 channels",
                   " and at most 8192x8192, had one that takes 48 floats");
    assert_refused("images", "/tmp/not-there", &form, "/tmp/not-there",
                   ": needed a file that can be read, had: No such file or directory");
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_folder_that_cannot_be_read_is_named)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    tree_write_set(&f, "", 2, 0, 8);
    ck_assert_int_eq(chmod(in(&f, "class_1"), 0), 0);
    if (access(in(&f, "class_1"), R_OK) != 0) { // root may read it
        data_source *s = NULL;
        ck_assert_int_eq(open_skipping(f.path, &form, &s, NULL), HR_OK);
        ck_assert_uint_eq(s->left_out, 1);
        ck_assert_uint_eq(s->info.classes, 2);
        data_source_close(s);
        assert_refused("images", f.path, &form, in(&f, "class_1"),
                       ": needed a folder that can be read, had: Permission denied");
    }
    ck_assert_int_eq(chmod(in(&f, "class_1"), 0700), 0);
    data_folder_remove(&f);
}
END_TEST

// ---- archives
// ---------------------------------------------------------------------------------------------------

// A tar of our own, so that names and headers may be anything.
static void tar_add(made *tar, const char *name, char kind, const void *bytes, size_t count)
{
    static const uint8_t zeros[512];
    char block[512] = "";
    unsigned sum = 0;
    strncpy(block, name, 100);
    strcpy(block + 100, "0000644");
    (void)snprintf(block + 124, 12, "%011zo", count);
    strcpy(block + 136, "00000000000");
    memset(block + 148, ' ', 8);
    block[156] = kind;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t k = 0; k < sizeof block; k++) {
        sum += (uint8_t)block[k];
    }
    (void)snprintf(block + 148, 8, "%06o", sum);
    made_add(tar, block, sizeof block);
    made_add(tar, bytes, count);
    made_add(tar, zeros, (512 - count % 512) % 512);
}

static void tar_add_image(made *tar, const char *name, uint32_t n)
{
    made image = tree_png(n, 3 + n % 3, 4);
    tar_add(tar, name, '0', image.bytes, image.count);
    made_free(&image);
}

static void tar_end(const data_folder *f, const char *leaf, made *tar)
{
    static const uint8_t zeros[1024];
    made_add(tar, zeros, sizeof zeros);
    data_replace(f, leaf, tar->bytes, tar->count);
    made_free(tar);
}

static const char *image_name(uint32_t n, char name[64])
{
    (void)snprintf(name, 64, "flowers/%s/class_%u/%04u.jpg", n < 9 ? "train" : "val", n % 3, n);
    return name;
}

enum { PACKED_TRAIN = 9, PACKED = 12 };

static void pack_images(const data_folder *f, const char *leaf, pack how)
{
    char path[FILE_NAME_MAX], name[64];
    (void)unlink(data_folder_file(f, leaf, path));
    struct archive *a = pack_open(path, how);
    for (uint32_t n = 0; n < PACKED; n++) {
        made image = tree_png(n, 3 + n % 3, 4);
        pack_add(a, image_name(n, name), image.bytes, image.count);
        made_free(&image);
    }
    pack_close(a);
}

// The same samples out of every kind of archive, and in the order of the
// archive.
START_TEST(archives_are_read_in_place_or_held_whole)
{
    static const struct {
        const char *leaf;
        pack how;
    } kinds[] = {{"a.tar", PACK_TAR}, {"b.tar.gz", PACK_TAR_GZIP}, {"c.zip", PACK_ZIP}};
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 3);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char path[FILE_NAME_MAX];
        pack_images(&f, kinds[k].leaf, kinds[k].how);
        (void)data_folder_file(&f, kinds[k].leaf, path);
        data_source *s = source_at(k == 1 ? "auto" : "images", path, &form);
        ck_assert_uint_eq(s->info.train_samples, PACKED_TRAIN);
        ck_assert_uint_eq(s->info.eval_samples, PACKED - PACKED_TRAIN);
        for (uint32_t n = 0; n < PACKED_TRAIN; n++) {
            assert_is(s, DATA_TRAIN, n, n, n % 3);
        }
        assert_is(s, DATA_EVAL, 2, 11, 2);
        ck_assert(kinds[k].how == PACK_TAR ? s->held_bytes < 600 : s->held_bytes > PACKED * 100);
        data_source_close(s);
        assert_survives_short_memory("images", path, &form);
    }
    data_folder_remove(&f);
}
END_TEST

static void add_pair(made *tar, const char *key, const char *ending, uint32_t n, const char *label)
{
    char name[80];
    if (label != NULL) {
        (void)snprintf(name, sizeof name, "%s.cls", key);
        tar_add(tar, name, '0', label, strlen(label));
    }
    if (ending != NULL) {
        (void)snprintf(name, sizeof name, "%s.%s", key, ending);
        tar_add_image(tar, name, n);
    }
    (void)snprintf(name, sizeof name, "%s.json", key);
    tar_add(tar, name, '0', "{}", 2);
}

START_TEST(webdatasets_come_in_shards_and_say_their_classes)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 6);
    made a = {0}, b = {0}, v = {0};
    add_pair(&a, "0001", "jpg", 1, "3");
    add_pair(&a, "0002", "PNG", 2, " 0\n");
    tar_add_image(&a, "0002.seg.png", 9); // of another column
    add_pair(&b, "0001", "jpeg", 3, "5");
    add_pair(&v, "x/0001", "jpg", 4, "1");
    tar_end(&f, "set-train-000.tar", &a);
    tar_end(&f, "set-train-001.tar", &b);
    tar_end(&f, "set-val-000.tar", &v);
    data_source *s = source_at("auto", f.path, &form);
    ck_assert_uint_eq(s->info.classes, 6);
    ck_assert_uint_eq(s->info.train_samples, 3);
    ck_assert_uint_eq(s->info.eval_samples, 1);
    assert_is(s, DATA_TRAIN, 0, 1, 3);
    assert_is(s, DATA_TRAIN, 1, 2, 0);
    assert_is(s, DATA_TRAIN, 2, 3, 5);
    assert_is(s, DATA_EVAL, 0, 4, 1);
    data_source_close(s);
    assert_survives_short_memory("images", f.path, &form);
    data_folder_remove(&f);
}
END_TEST

START_TEST(halves_of_samples_are_refused_or_left_out)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 6);
    made a = {0};
    data_source *s = NULL;
    add_pair(&a, "0001", "jpg", 1, "3");
    add_pair(&a, "0002", "jpg", 2, NULL);
    add_pair(&a, "0003", NULL, 3, "2");
    add_pair(&a, "0004", "jpg", 4, "two");
    add_pair(&a, "0005", "jpg", 5, "2");
    tar_end(&f, "a.tar", &a);
    assert_refused("images", in(&f, "a.tar"), &form, in(&f, "a.tar"),
                   ": needed an image and a .cls of 0002, had only the image");
    ck_assert_int_eq(open_skipping(in(&f, "a.tar"), &form, &s, NULL), HR_OK);
    ck_assert_uint_eq(s->info.train_samples + s->info.eval_samples, 2);
    ck_assert_uint_eq(s->left_out,
                      4); // the last but one is told twice: its number, and that it has none
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(names_outside_of_the_archive_are_refused_or_left_out)
{
    static const char *const names[] = {"/etc/a.png", "a/../../b.png", "../c/d.png", "a/.."};
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 6);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        made a = {0};
        data_source *s = NULL;
        char rest[80];
        tar_add(&a, "a/", '5', "", 0);
        tar_add_image(&a, "a/1..2.png", 1);
        tar_add_image(&a, names[k], 2);
        tar_add_image(&a, "./b/3.png", 3);
        tar_add_image(&a, "b/.hidden.png", 3);
        tar_end(&f, "a.tar", &a);
        (void)snprintf(rest, sizeof rest, ": needed names below it, had %s", names[k]);
        assert_refused("images", in(&f, "a.tar"), &form, in(&f, "a.tar"), rest);
        ck_assert_int_eq(open_skipping(in(&f, "a.tar"), &form, &s, NULL), HR_OK);
        ck_assert_uint_eq(s->left_out, 1);
        ck_assert_uint_eq(s->info.train_samples + s->info.eval_samples, 2);
        data_source_close(s);
    }
    data_folder_remove(&f);
}
END_TEST

// Long names of GNU and of pax, and numbers of GNU, as libarchive reads them.
START_TEST(long_names_are_whole)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    char deep[400], pax[440];
    made a = {0};
    memset(deep, 'd', sizeof deep);
    deep[200] = '/';
    strcpy(deep + 380, ".png");
    tar_add(&a, "././@LongLink", 'L', deep, strlen(deep) + 1);
    tar_add_image(&a, "dddd", 1);
    const int length = snprintf(pax, sizeof pax, "%zu path=%s\n", strlen(deep) + 10, deep);
    tar_add(&a, "pax", 'x', pax, (size_t)length);
    tar_add_image(&a, "other/2.png", 2);
    tar_add_image(&a, "z/3.png", 3);
    tar_end(&f, "a.tar", &a);
    data_source *s = source_at("images", in(&f, "a.tar"), &form);
    ck_assert_uint_eq(s->info.classes, 2); // dd…d and z
    ck_assert_uint_eq(s->info.train_samples, 2);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(tars_that_are_cut_or_change_are_named)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    made a = {0}, b = {0};
    for (uint32_t n = 0; n < 4; n++) {
        char name[16];
        (void)snprintf(name, sizeof name, "c/%u.png", n);
        tar_add_image(&a, name, n);
    }
    made_add(&b, a.bytes, a.count);
    tar_end(&f, "a.tar", &a);
    data_source *s = source_at("images", in(&f, "a.tar"), &form);
    data_write(&f, "a.tar", b.bytes, b.count);
    hr_err err = sample_refused(s, DATA_TRAIN, 0);
    ck_assert_ptr_nonnull(strstr(err.sentence, "a.tar: needed the file of "));
    ck_assert_int_eq(unlink(in(&f, "a.tar")), 0);
    err = sample_refused(s, DATA_TRAIN, 1);
    ck_assert_ptr_nonnull(strstr(err.sentence, "a.tar: needed a file that can be read, had: No such file"));
    data_source_close(s);
    for (size_t cut = 0; cut <= b.count; cut += 128) {
        hr_knobs knobs = data_knobs("images", in(&f, "b.tar"));
        s = NULL;
        err = (hr_err){0};
        data_replace(&f, "b.tar", b.bytes, cut);
        if (data_source_open(&knobs, &form, &s, &err) == HR_OK) {
            ck_assert(cut % 1024 == 0 ||
                      cut % 1024 >= 640); // between two members, or in what fills up a block
        } else {
            ck_assert_int_eq(err.status, HR_DATA);
            ck_assert_msg(strstr(err.sentence, "b.tar") != NULL, "%s", err.sentence);
        }
        data_source_close(s);
    }
    made_free(&b);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_bad_image_of_an_archive_is_named)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    made a = {0};
    tar_add(&a, "c/0.png", '0', "no", 2);
    tar_add(&a, "c/1.png", '0', "no", 2);
    tar_end(&f, "a.tar", &a);
    data_source *s = source_at("images", in(&f, "a.tar"), &form);
    const hr_err err = sample_refused(s, DATA_TRAIN, 0);
    ck_assert_ptr_nonnull(strstr(err.sentence, "a.tar, offset "));
    ck_assert_ptr_nonnull(strstr(err.sentence, ", c/"));
    ck_assert_ptr_nonnull(
        strstr(err.sentence, ": needed a JPEG or PNG image, had 2 bytes of something else"));
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(short_memory_leaves_nothing_behind)
{
    const data_folder f = data_folder_make();
    const data_form form = form_of(SIDE, SIDE, 3, 2);
    tree_write_set(&f, "train", 2, 0, 8);
    tree_write_set(&f, "val", 2, 8, 2);
    assert_survives_short_memory("images", f.path, &form);
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources_images");
    TCase *cases = tcase_create("sources_images");
    tcase_add_test(cases, images_come_by_class_and_name_and_one_of_ten_is_held_out);
    tcase_add_test(cases, folders_for_training_and_validation_are_the_sets);
    tcase_add_test(cases, the_bytes_of_a_file_say_what_it_is);
    tcase_add_test(cases, resize_is_how_images_of_another_size_become_the_models);
    tcase_add_test(cases, cmyk_and_16_bits_are_images);
    tcase_add_test(cases, a_file_that_is_no_image_is_named);
    tcase_add_test(cases, files_that_vanish_or_change_are_errors);
    tcase_add_test(cases, what_holds_no_images_is_refused);
    tcase_add_test(cases, a_folder_that_cannot_be_read_is_named);
    tcase_add_test(cases, archives_are_read_in_place_or_held_whole);
    tcase_add_test(cases, webdatasets_come_in_shards_and_say_their_classes);
    tcase_add_test(cases, halves_of_samples_are_refused_or_left_out);
    tcase_add_test(cases, names_outside_of_the_archive_are_refused_or_left_out);
    tcase_add_test(cases, long_names_are_whole);
    tcase_add_test(cases, tars_that_are_cut_or_change_are_named);
    tcase_add_test(cases, a_bad_image_of_an_archive_is_named);
    tcase_add_test(cases, short_memory_leaves_nothing_behind);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
