// SPDX-License-Identifier: Apache-2.0
// Folders of small images made where a test runs: each of one colour, which says which it is.
#ifndef TESTS_IMAGE_TREE_H
#define TESTS_IMAGE_TREE_H

#include <sys/stat.h>

#include "data/data_files.h"
#include "data/image_files.h"

// The colour of image number `n`.
static inline void tree_colour(uint32_t n, uint8_t colour[3])
{
    colour[0] = (uint8_t)(40 + n * 37 % 200);
    colour[1] = (uint8_t)(n * 11 % 250);
    colour[2] = (uint8_t)(n / 7 * 5 % 250);
}

static inline made tree_png(uint32_t n, uint32_t width, uint32_t height)
{
    const png_form form = {.width = width, .height = height, .bits = 8, .colour = 2};
    uint16_t *sample = calloc((size_t)width * height * 3, sizeof *sample);
    uint8_t colour[3];
    ck_assert_ptr_nonnull(sample);
    tree_colour(n, colour);
    for (size_t k = 0; k < (size_t)width * height * 3; k++) {
        sample[k] = colour[k % 3];
    }
    const made m = png_make(&form, sample, NULL);
    free(sample);
    return m;
}

// No two pixels alike.
static inline made tree_noise(uint32_t n, uint32_t width, uint32_t height)
{
    const png_form form = {.width = width, .height = height, .bits = 8, .colour = 2};
    uint16_t *sample = calloc((size_t)width * height * 3, sizeof *sample);
    ck_assert_ptr_nonnull(sample);
    for (size_t k = 0; k < (size_t)width * height * 3; k++) {
        sample[k] = (uint16_t)((k * k + k / 3 * 29 + n) % 251);
    }
    const made m = png_make(&form, sample, NULL);
    free(sample);
    return m;
}

// Makes the folders that `name` is in, and the file. Its own bytes are freed.
static inline void tree_write(const data_folder *f, const char *name, made bytes)
{
    char path[FILE_NAME_MAX];
    (void)data_folder_file(f, name, path);
    for (char *slash = strchr(path + strlen(f->path) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    data_write(f, name, bytes.count > 0 ? (const void *)bytes.bytes : "", bytes.count);
    made_free(&bytes);
}

static inline made tree_text(const char *words)
{
    made m = {0};
    made_add(&m, words, strlen(words));
    return m;
}

// Image n of class n % classes, as PREFIX/class_C/NNNN.png, 6x4 or 5x7.
static inline const char *tree_name(const char *prefix, uint32_t classes, uint32_t n, char name[64])
{
    (void)snprintf(name, 64, "%s%sclass_%u/%04u.png", prefix, *prefix == '\0' ? "" : "/", n % classes, n);
    return name;
}

static inline void tree_write_set(const data_folder *f, const char *prefix, uint32_t classes, uint32_t first,
                                  uint32_t count)
{
    char name[64];
    for (uint32_t n = first; n < first + count; n++) {
        tree_write(f, tree_name(prefix, classes, n, name),
                   n % 2 == 0 ? tree_png(n, 6, 4) : tree_png(n, 5, 7));
    }
}

#endif
