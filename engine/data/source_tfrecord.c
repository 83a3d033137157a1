// SPDX-License-Identifier: Apache-2.0
// TFRecord files of tf.train.Example: a record is a sample. Images are decoded to the size that the model takes, or are its
// bytes as they stand; all else goes into the model's slots by type and size (example_slots.h).
//
// In a folder the files are one run, in the order of their names; those with val or test among the words of their name are held
// out, else records of the run are (split.h).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/example_slots.h"
#include "data/resize_filter.h"
#include "data/source.h"
#include "data/split.h"
#include "data/tfrecord.h"

enum { CHECKED_RECORDS = 16 }; // of each set, before the first step

typedef struct record_source {
    data_source base;
    tfrecords files[DATA_SET_COUNT];
    example_slots slots;
    image_want want; // of encoded images
    image_filter filter;
    bool is_split; // both sets are of the training files
} record_source;

// ---- samples --------------------------------------------------------------------------------------------------

// Which record that is: its files, its number there.
static const tfrecords *record_of(const record_source *s, data_set set, uint32_t *index)
{
    if (s->is_split) {
        *index = (uint32_t)split_number(s->files[DATA_TRAIN].count, set, *index);
    }
    return &s->files[s->is_split ? DATA_TRAIN : set];
}

static uint64_t record_size(const data_source *base, data_set set, uint32_t index)
{
    const tfrecords *files = record_of((const record_source *)base, set, &index);
    return tfrecords_bytes(files, index);
}

static uint64_t records_part_begin(const data_source *base, uint32_t file)
{
    const record_source *s = (const record_source *)base;
    const tfrecords *files = &s->files[DATA_TRAIN];
    const uint32_t number = tfrecords_from(files, files->files.part[file].start);
    return s->is_split ? split_train_before(files->count, number) : number;
}

static hr_status check_image(const example_record *record, const feature *f, hr_err *err)
{
    const wire_span bytes = feature_bytes(f);
    const image_file file = {
        .bytes = bytes.at, .size_bytes = (uint64_t)(bytes.end - bytes.at), .name = record->place};
    image_facts facts;
    return image_probe(&file, &facts, err);
}

static hr_status record_fetch(const data_source *base, data_set set, uint32_t sample, uint8_t *room,
                              data_raw *out, hr_err *err)
{
    const record_source *s = (const record_source *)base;
    uint32_t index = sample;
    const tfrecords *files = record_of(s, set, &index);
    char place[PARTS_PLACE_MAX];
    example_record record = {.count = tfrecords_bytes(files, index),
                             .place = tfrecords_place(files, index, place)};
    feature found[DATA_MAX_SLOTS];
    HR_TRY(tfrecords_read(files, index, room, &record.bytes, err));
    HR_TRY(example_slots_find(&s->slots, &record, found, err));
    HR_TRY(s->slots.is_encoded ? check_image(&record, &found[0], err) : HR_OK);
    *out = (data_raw){.bytes = record.bytes,
                      .size_bytes = record.count,
                      .set = set,
                      .sample = sample,
                      .label = s->slots.has_image ? example_class(&found[1]) : 0};
    return HR_OK;
}

static hr_status image_of_record(const data_source *base, const data_raw *raw, uint8_t *scratch,
                                 uint8_t *image, hr_err *err)
{
    const record_source *s = (const record_source *)base;
    feature found[DATA_MAX_SLOTS];
    example_slots_look(&s->slots, raw->bytes, (uint32_t)raw->size_bytes, found);
    const wire_span bytes = feature_bytes(&found[0]);
    uint32_t index = raw->sample;
    const tfrecords *files = record_of(s, raw->set, &index);
    char place[PARTS_PLACE_MAX];
    const image_file file = {.bytes = bytes.at,
                             .size_bytes = (uint64_t)(bytes.end - bytes.at),
                             .name = tfrecords_place(files, index, place)};
    if (s->slots.is_encoded) {
        return image_decode(&file, &s->want, scratch, image, err);
    }
    memcpy(image, bytes.at, data_source_values(base));
    return HR_OK;
}

static hr_status values_of_record(const data_source *base, const data_raw *raw, uint8_t *scratch,
                                  const data_room *to, hr_err *err)
{
    (void)scratch;
    (void)err;
    const record_source *s = (const record_source *)base;
    feature found[DATA_MAX_SLOTS];
    example_slots_look(&s->slots, raw->bytes, (uint32_t)raw->size_bytes, found);
    example_slots_write(&s->slots, found, to);
    return HR_OK;
}

static hr_status records_check(const data_source *base, hr_err *err)
{
    return data_source_check_first(base, CHECKED_RECORDS, err);
}

static void records_close(data_source *base)
{
    record_source *s = (record_source *)base;
    tfrecords_close(&s->files[DATA_TRAIN]);
    tfrecords_close(&s->files[DATA_EVAL]);
    hr_free(s);
}

static const data_source_ops image_ops = {.check = records_check,
                                          .fetch = record_fetch,
                                          .decode = image_of_record,
                                          .part_begin = records_part_begin,
                                          .size = record_size,
                                          .close = records_close};
static const data_source_ops slots_ops = {.check = records_check,
                                          .fetch = record_fetch,
                                          .write = values_of_record,
                                          .part_begin = records_part_begin,
                                          .size = record_size,
                                          .close = records_close};

// ---- opening --------------------------------------------------------------------------------------------------

static hr_status open_files(record_source *s, const char *path, hr_err *err)
{
    tfrecords *train = &s->files[DATA_TRAIN], *eval = &s->files[DATA_EVAL];
    if (!folder_is_at(path)) {
        return tfrecords_open(path, NULL, NAME_TRAIN, train, err);
    }
    listing names;
    HR_TRY(listing_read(path, TFRECORD_ENDINGS, &names, err));
    hr_status status = tfrecords_open(path, &names, NAME_TRAIN, train, err);
    if (status == HR_OK) {
        status = tfrecords_open(path, &names, listing_held_out_use(&names), eval, err);
    }
    if (status == HR_OK && train->files.count == 0) {
        status = HR_FAIL(err, DATA, "%s: needed files *.tfrecord, or *-00000-of-00010, to train on, had %s",
                         path, names.count == 0 ? "none" : "only such as are held out by their names");
    }
    listing_free(&names);
    return status;
}

static hr_status count_samples(record_source *s, const char *path, hr_err *err)
{
    const tfrecords *train = &s->files[DATA_TRAIN], *eval = &s->files[DATA_EVAL];
    s->is_split = eval->files.count == 0;
    const uint32_t least = s->is_split ? 2 : 1;
    if (train->count < least || (!s->is_split && eval->count == 0)) {
        const bool few = train->count < least;
        return HR_FAIL(err, DATA, "%s: needed at least %u records to %s, had %u", path, few ? least : 1,
                       few && s->is_split ? "train on, one of them to hold out"
                       : few              ? "train on"
                                          : "hold out",
                       few ? train->count : eval->count);
    }
    s->base.info.train_samples = s->is_split ? split_count(train->count, DATA_TRAIN) : train->count;
    s->base.info.eval_samples = s->is_split ? split_count(train->count, DATA_EVAL) : eval->count;
    const uint32_t most = train->most_bytes > eval->most_bytes ? train->most_bytes : eval->most_bytes;
    s->base.held_bytes = train->held_bytes + eval->held_bytes;
    s->base.raw_bytes = most;
    s->base.parts = train->files.count;
    s->base.room_bytes = most + TFRECORD_FRAME_BYTES;
    return HR_OK;
}

// A model that takes images flat does not say how high and wide they are: the first one does.
static hr_status shape_of_first(const example_record *record, const feature *f, data_shape *shape,
                                hr_err *err)
{
    const wire_span bytes = feature_bytes(f);
    const image_file file = {
        .bytes = bytes.at, .size_bytes = (uint64_t)(bytes.end - bytes.at), .name = record->place};
    image_facts facts;
    HR_TRY(image_probe(&file, &facts, err));
    const uint64_t pixels = (uint64_t)facts.width * facts.height;
    const bool is_grey = facts.components <= 2 && shape->channels != 3 * pixels;
    *shape = (data_shape){facts.height, facts.width, is_grey || shape->channels == pixels ? 1 : 3, 0};
    return HR_OK;
}

static hr_status describe_images(record_source *s, const example_record *record, const feature *f,
                                 hr_err *err)
{
    data_shape shape;
    (void)data_form_is_image(&s->base.form, &shape);
    if (s->slots.is_encoded) {
        HR_TRY(shape.height == 1 && shape.width == 1 ? shape_of_first(record, f, &shape, err) : HR_OK);
        if ((shape.channels != 1 && shape.channels != 3) || shape.height > IMAGE_WANT_SIDE_MOST ||
            shape.width > IMAGE_WANT_SIDE_MOST) {
            return HR_FAIL(
                err, DATA,
                "%s: needed a model that takes 1 or 3 channels and at most %d pixels a side for JPEG and "
                "PNG, had %ux%ux%u",
                record->place, IMAGE_WANT_SIDE_MOST, shape.height, shape.width, shape.channels);
        }
        s->want = (image_want){.height = shape.height,
                               .width = shape.width,
                               .channels = (uint8_t)shape.channels,
                               .filter = s->filter};
        s->base.scratch_bytes = (uint32_t)image_scratch_bytes(&s->want);
    }
    s->base.ops = &image_ops;
    s->base.info.height = shape.height;
    s->base.info.width = shape.width;
    s->base.info.channels = shape.channels;
    return HR_OK;
}

// What the first record holds says what all of them do.
static hr_status describe(record_source *s, uint8_t *room, hr_err *err)
{
    const tfrecords *files = &s->files[DATA_TRAIN];
    char place[PARTS_PLACE_MAX];
    example_record record = {.count = tfrecords_bytes(files, 0), .place = tfrecords_place(files, 0, place)};
    feature found[DATA_MAX_SLOTS];
    HR_TRY(tfrecords_read(files, 0, room, &record.bytes, err));
    HR_TRY(example_slots_choose(&s->base.form, &record, &s->slots, err));
    if (!s->slots.has_image) {
        s->base.ops = &slots_ops;
        return HR_OK;
    }
    HR_TRY(example_slots_find(&s->slots, &record, found, err));
    return describe_images(s, &record, &found[0], err);
}

static hr_status open_all(record_source *s, const char *path, hr_err *err)
{
    HR_TRY(open_files(s, path, err));
    HR_TRY(count_samples(s, path, err));
    uint8_t *room = hr_calloc(s->base.room_bytes, 1);
    if (room == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %u bytes, had less", s->base.info.label, s->base.room_bytes);
    }
    const hr_status status = describe(s, room, err);
    hr_free(room);
    return status;
}

hr_status source_tfrecord_open(const hr_knobs *knobs, const char *path, const data_form *model,
                               data_source **out, hr_err *err)
{
    *out = NULL;
    record_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    s->base = (data_source){
        .ops = &slots_ops, .form = *model, .info = {.classes = data_form_label(model)->classes}};
    s->filter = resize_filter_of(knobs);
    data_source_label(s->base.info.label, "TFRecord", path);
    const hr_status status = open_all(s, path, err);
    if (status != HR_OK) {
        records_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

bool source_tfrecord_is_at(const char *path, const data_form *model)
{
    (void)model;
    return files_are_at(path, TFRECORD_ENDINGS);
}
