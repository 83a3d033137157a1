// SPDX-License-Identifier: Apache-2.0
// MNIST and its kin (http://yann.lecun.com/exdb/mnist): a folder of four IDX files, plain or .gz.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/idx.h"
#include "data/record.h"
#include "data/source.h"

enum {
    MNIST_CLASSES = 10,
    IMAGE_DIMENSIONS = 3,
    LABEL_DIMENSIONS = 1,
};

typedef struct mnist_source {
    data_source base;
    idx images[DATA_SET_COUNT], labels[DATA_SET_COUNT];
} mnist_source;

static const char *const mnist_images[DATA_SET_COUNT] = {"train-images", "t10k-images"};
static const char *const mnist_labels[DATA_SET_COUNT] = {"train-labels", "t10k-labels"};

// Copies of the data set differ in these.
static const char mnist_separators[] = {'-', '.'};

static void mnist_leaf(char leaf[64], const char *stem, char separator, uint32_t dimensions)
{
    (void)snprintf(leaf, 64, "%s%cidx%u-ubyte", stem, separator, dimensions);
}

static hr_status mnist_open_file(const char *path, const char *stem, uint32_t dimensions,
                                 uint64_t *held_bytes, idx *f, hr_err *err)
{
    char leaf[64];
    for (size_t i = 0; i < sizeof mnist_separators; i++) {
        mnist_leaf(leaf, stem, mnist_separators[i], dimensions);
        HR_TRY(idx_open(path, leaf, dimensions, held_bytes, f, err));
        if (blob_is_open(&f->file)) {
            return HR_OK;
        }
    }
    mnist_leaf(leaf, stem, '-', dimensions);
    hr_status status = HR_FAIL(err, DATA, "%s: needed %s or %s.gz (MNIST), had neither", path, leaf, leaf);
    hr_err_try(err, "put the four IDX files of MNIST into that folder, or -s pipeline.source=generated");
    return status;
}

bool source_mnist_is_at(const char *path, const data_form *model)
{
    (void)model;
    bool found = false;
    for (size_t i = 0; i < sizeof mnist_separators && !found; i++) {
        for (data_set set = 0; set < DATA_SET_COUNT && !found; set++) {
            char leaf[64], packed_leaf[72];
            blob b;
            mnist_leaf(leaf, mnist_images[set], mnist_separators[i], IMAGE_DIMENSIONS);
            (void)snprintf(packed_leaf, sizeof packed_leaf, "%s.gz", leaf);
            found = blob_open(path, leaf, &b, NULL) != HR_OK || blob_is_open(&b);
            blob_close(&b);
            found = found || blob_open(path, packed_leaf, &b, NULL) != HR_OK || blob_is_open(&b);
            blob_close(&b);
        }
    }
    return found;
}

static hr_status mnist_label(const idx *f, uint32_t index, int32_t *label, hr_err *err)
{
    *label = f->file.held[f->header_bytes + index];
    return *label < MNIST_CLASSES
               ? HR_OK
               : HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a label from 0 to %d, had %d",
                         f->file.name, (uint64_t)f->header_bytes + index, MNIST_CLASSES - 1, *label);
}

static hr_status mnist_check_labels(const data_source *base, hr_err *err)
{
    const mnist_source *s = (const mnist_source *)base;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t k = 0; k < s->labels[set].dimension[0]; k++) {
            int32_t label;
            HR_TRY(mnist_label(&s->labels[set], k, &label, err));
        }
    }
    return HR_OK;
}

static hr_status mnist_open_set(mnist_source *s, data_set set, const char *path, hr_err *err)
{
    idx *images = &s->images[set], *labels = &s->labels[set];
    uint64_t *held = &s->base.held_bytes;
    HR_TRY(mnist_open_file(path, mnist_images[set], IMAGE_DIMENSIONS, held, images, err));
    HR_TRY(mnist_open_file(path, mnist_labels[set], LABEL_DIMENSIONS, held, labels, err));
    HR_TRY(labels->file.held == NULL ? idx_hold(labels, held, err) : HR_OK); // they are small
    if (images->dimension[0] != labels->dimension[0]) {
        return HR_FAIL(err, DATA, "%s, offset 4: needed a label for each of %u images, had %u",
                       labels->file.name, images->dimension[0], labels->dimension[0]);
    }
    return HR_OK;
}

static hr_status mnist_check_sides(mnist_source *s, hr_err *err)
{
    const idx *train = &s->images[DATA_TRAIN], *eval = &s->images[DATA_EVAL];
    if (train->dimension[1] != eval->dimension[1] || train->dimension[2] != eval->dimension[2]) {
        return HR_FAIL(err, DATA, "%s, offset 8: needed images of %ux%u as in the training set, had %ux%u",
                       eval->file.name, train->dimension[1], train->dimension[2], eval->dimension[1],
                       eval->dimension[2]);
    }
    s->base.info.train_samples = train->dimension[0];
    s->base.info.eval_samples = eval->dimension[0];
    s->base.info.height = train->dimension[1];
    s->base.info.width = train->dimension[2];
    s->base.info.channels = 1;
    s->base.info.classes = MNIST_CLASSES;
    s->base.raw_bytes = s->base.room_bytes = data_source_values(&s->base);
    return HR_OK;
}

static hr_status mnist_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const mnist_source *s = (const mnist_source *)base;
    const idx *images = &s->images[set], *labels = &s->labels[set];
    uint32_t values = data_source_values(base);
    uint64_t offset = images->header_bytes + (uint64_t)index * values;
    HR_TRY(blob_at(&images->file, offset, values, room, &out->bytes, err));
    out->size_bytes = values;
    return mnist_label(labels, index, &out->label, err);
}

static hr_status mnist_class(const data_source *base, data_set set, uint32_t index, int32_t *out, hr_err *err)
{
    (void)err;
    const idx *labels = &((const mnist_source *)base)->labels[set];
    *out = labels->file.held[labels->header_bytes + index];
    return HR_OK;
}

static void mnist_close(data_source *base)
{
    mnist_source *s = (mnist_source *)base;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        blob_close(&s->images[set].file);
        blob_close(&s->labels[set].file);
    }
    hr_free(s);
}

static const data_source_ops mnist_ops = {.check = mnist_check_labels,
                                          .fetch = mnist_fetch,
                                          .label = mnist_class,
                                          .decode = record_decode,
                                          .close = mnist_close};

hr_status source_mnist_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    (void)model;
    *out = NULL;
    mnist_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    s->base.ops = &mnist_ops;
    data_source_label(s->base.info.label, "MNIST", path);
    hr_status status = HR_OK;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        s->images[set].file = s->labels[set].file = BLOB_NONE;
    }
    for (data_set set = 0; set < DATA_SET_COUNT && status == HR_OK; set++) {
        status = mnist_open_set(s, set, path, err);
    }
    if (status == HR_OK) {
        status = mnist_check_sides(s, err);
    }
    if (status != HR_OK) {
        mnist_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}
