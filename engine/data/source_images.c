// SPDX-License-Identifier: Apache-2.0
// Images of any size as JPEG and PNG files, one class each. A sample is fetched as its file's bytes, and decoded to the height,
// width and channels of the model.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/image.h"
#include "data/image_index.h"
#include "data/listing.h"
#include "data/resize_filter.h"
#include "data/source.h"
#include "data/split.h"

typedef struct images_source {
    data_source base;
    image_place place;
    image_want want;
} images_source;

// Without held-out files one image of ten is: both sets are then of the training files.
static const image_entry *entry_of(const images_source *s, data_set set, uint32_t index, data_set *of)
{
    const image_index *i = &s->place.index;
    const uint64_t train = i->count[DATA_TRAIN];
    *of = set;
    if (i->count[DATA_EVAL] == 0) {
        *of = DATA_TRAIN;
        return &i->entry[split_number(train, set, index)];
    }
    return &i->entry[(set == DATA_EVAL ? train : 0) + index];
}

static uint32_t usable_bytes(const image_entry *e)
{
    return e->size_bytes == IMAGE_TOO_LARGE ? 0 : e->size_bytes;
}

static uint64_t images_size(const data_source *base, data_set set, uint32_t index)
{
    data_set of;
    return usable_bytes(entry_of((const images_source *)base, set, index, &of));
}

static hr_status images_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                              data_raw *out, hr_err *err)
{
    const images_source *s = (const images_source *)base;
    const image_place *p = &s->place;
    data_set of;
    const image_entry *e = entry_of(s, set, index, &of);
    if (e->size_bytes == IMAGE_TOO_LARGE) {
        char name[IMAGE_PATH_MAX];
        return HR_FAIL(err, DATA, "%s: needed an image of at most %d bytes, had more",
                       p->ops->name(p->store, &p->index, of, e, name), IMAGE_FILE_MOST_BYTES);
    }
    *out = (data_raw){.size_bytes = e->size_bytes, .label = (int32_t)e->label, .set = set, .sample = index};
    return p->ops->fetch(p->store, &p->index, of, e, room, &out->bytes, err);
}

static hr_status images_label(const data_source *base, data_set set, uint32_t index, int32_t *out,
                              hr_err *err)
{
    (void)err;
    data_set of;
    *out = (int32_t)entry_of((const images_source *)base, set, index, &of)->label;
    return HR_OK;
}

static hr_status images_decode(const data_source *base, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                               hr_err *err)
{
    const images_source *s = (const images_source *)base;
    const image_place *p = &s->place;
    char name[IMAGE_PATH_MAX];
    data_set of;
    const image_entry *e = entry_of(s, raw->set, raw->sample, &of);
    const image_file file = {.bytes = raw->bytes,
                             .size_bytes = raw->size_bytes,
                             .name = p->ops->name(p->store, &p->index, of, e, name)};
    return image_decode(&file, &s->want, scratch, image, err);
}

static void images_close(data_source *base)
{
    images_source *s = (images_source *)base;
    image_place_close(&s->place);
    hr_free(s);
}

static const data_source_ops images_ops = {.fetch = images_fetch,
                                           .label = images_label,
                                           .decode = images_decode,
                                           .size = images_size,
                                           .close = images_close};

// ---- opening --------------------------------------------------------------------------------------------------

// What the model takes of an image; false when it is no image with height and width.
static bool want_of(const data_form *model, image_filter filter, image_want *want)
{
    data_shape shape;
    if (!data_form_is_image(model, &shape) || model->slot[0].rank != 3 ||
        (shape.channels != 1 && shape.channels != 3) || shape.height > IMAGE_WANT_SIDE_MOST ||
        shape.width > IMAGE_WANT_SIDE_MOST) {
        return false;
    }
    *want = (image_want){
        .height = shape.height, .width = shape.width, .channels = (uint8_t)shape.channels, .filter = filter};
    return true;
}

static uint32_t largest(const image_index *index)
{
    uint32_t most = 1; // rooms of no bytes are none
    for (uint64_t k = 0; k < index->count[DATA_TRAIN] + index->count[DATA_EVAL]; k++) {
        const uint32_t bytes = usable_bytes(&index->entry[k]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static hr_status describe(images_source *s, const char *path, hr_err *err)
{
    const image_index *index = &s->place.index;
    const uint64_t train = index->count[DATA_TRAIN], held_out = index->count[DATA_EVAL];
    const uint64_t needed = held_out > 0 ? 1 : 2;
    if (train < needed) {
        return HR_FAIL(err, DATA, "%s: needed %" PRIu64 " JPEG or PNG images to train on, had %" PRIu64, path,
                       needed, train);
    }
    data_source *base = &s->base;
    base->info =
        (pipeline_info){.height = s->want.height, .width = s->want.width, .channels = s->want.channels};
    base->info.classes = index->classes;
    base->info.train_samples = held_out > 0 ? train : split_count(train, DATA_TRAIN);
    base->info.eval_samples = held_out > 0 ? held_out : split_count(train, DATA_EVAL);
    base->held_bytes = index->held_bytes;
    base->left_out = index->left_out;
    base->raw_bytes = base->room_bytes = largest(index);
    // Of JPEGs of 500×375 and 47 KB.
    base->cost =
        (data_cost){.fetch_ns = 5000, .fetch_byte_ns = 0.05, .make_byte_ns = 13, .make_value_ns = 3.4};
    base->scratch_bytes = (uint32_t)image_scratch_bytes(&s->want);
    data_source_label(base->info.label, "images", path);
    return HR_OK;
}

static image_place_open *opener_of(const char *path)
{
    return image_tars_are_meant(path) ? image_tars_open
           : folder_is_at(path)       ? image_folder_open
                                      : image_packed_open;
}

static hr_status open_place(images_source *s, const char *path, const image_options *options, hr_err *err)
{
    HR_TRY(opener_of(path)(path, options, &s->place, err));
    return describe(s, path, err);
}

static hr_status refuse_model(const data_form *model, hr_err *err)
{
    char text[64];
    const hr_status status = HR_FAIL(err, DATA,
                                     "pipeline.source=images: needed a model that takes images of 1 or 3 "
                                     "channels and at most %dx%d, had one that takes %s",
                                     IMAGE_WANT_SIDE_MOST, IMAGE_WANT_SIDE_MOST,
                                     data_slot_text(&model->slot[0], text, sizeof text));
    hr_err_try(err, "-s pipeline.source=generated");
    return status;
}

hr_status source_images_open(const hr_knobs *knobs, const char *path, const data_form *model,
                             data_source **out, hr_err *err)
{
    const image_options options = {.leave_out = hr_knob_is(knobs, HR_KNOB_PIPELINE_BAD, "skip")};
    image_want want;
    *out = NULL;
    if (!want_of(model, resize_filter_of(knobs), &want)) {
        return refuse_model(model, err);
    }
    images_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    s->base.ops = &images_ops;
    s->want = want;
    const hr_status status = open_place(s, path, &options, err);
    if (status != HR_OK) {
        images_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

bool source_images_is_at(const char *path, const data_form *model)
{
    image_want want;
    return want_of(model, IMAGE_BILINEAR, &want) &&
           (image_folder_is_at(path) || image_tars_are_at(path) || image_packed_is_at(path));
}
