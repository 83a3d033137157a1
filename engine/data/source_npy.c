// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: x_train.npy, y_train.npy and their held-out kin in a folder, or one .npz with such members. The first
// dimension counts samples. A model with further inputs or labels takes x_train_2, y_train_2 and so on.
//
//   one image, one class   u1 [samples, height, width(, channels)]: images, bytes 0 … 255. Labels of any whole type
//   float slots            any type, as the values are; bytes (u1) of an input are an image's, scaled to [0, 1]
//   ids and masks          whole types, in range
//
// Dimensions of 1 at the end come and go: [samples, 1] is [samples]. A model that takes its input flat takes any
// dimensions with as many values. Values are read in place, sample by sample; packed members of an .npz are held.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/arrays.h"
#include "data/listing.h"
#include "data/pixels.h"
#include "data/record.h"
#include "data/source.h"
#include "data/split.h"

enum {
    STEM_TEXT_MAX = 48,
    CHECKED_SAMPLES = 16,
    CHECKED_LABELS = 1 << 20, // of images, before the first step
    LABELS_AT_ONCE = 4096,
    MOST_SIDE = 1 << 16,
};

typedef struct npy_source {
    data_source base;
    array slot[DATA_SET_COUNT][DATA_MAX_SLOTS];
    uint64_t samples[DATA_SET_COUNT]; // as the files have them
    uint64_t bytes[DATA_MAX_SLOTS];   // of a sample of each slot, in the files
    bool is_split;                    // both sets are of the training arrays
} npy_source;

// ---- names ----------------------------------------------------------------------------------------------------

typedef struct stems {
    const char *x, *y;
} stems;

static const stems train_stems[] = {
    {"x_train", "y_train"}, {"X_train", "y_train"}, {"train_images", "train_labels"}, {"x", "y"}, {"X", "y"}};
static const stems eval_stems[] = {{"x_val", "y_val"},           {"X_val", "y_val"},
                                   {"x_test", "y_test"},         {"X_test", "y_test"},
                                   {"val_images", "val_labels"}, {"test_images", "test_labels"}};

enum {
    TRAIN_STEMS = sizeof train_stems / sizeof *train_stems,
    EVAL_STEMS = sizeof eval_stems / sizeof *eval_stems
};

// "x_train", "x_train_2": of the slot that is number `place`, from 0, among inputs or labels.
static void stem_of(const char *stem, uint32_t place, char text[STEM_TEXT_MAX])
{
    if (place == 0) {
        (void)snprintf(text, STEM_TEXT_MAX, "%s", stem);
    } else {
        (void)snprintf(text, STEM_TEXT_MAX, "%s_%u", stem, place + 1);
    }
}

// The arrays of one set, under the first of the names that is there. `found` is false when none is.
static hr_status take_set(npy_source *s, const array_store *store, const stems *names, data_set set,
                          bool *found, hr_err *err)
{
    uint32_t place[2] = {0};
    *found = true;
    for (uint32_t k = 0; k < s->base.form.count && *found; k++) {
        char stem[STEM_TEXT_MAX];
        const bool is_label = s->base.form.slot[k].is_label;
        array *a = &s->slot[set][k];
        stem_of(is_label ? names->y : names->x, place[is_label]++, stem);
        HR_TRY(arrays_take(store, stem, &s->base.held_bytes, a, err));
        if (!blob_is_open(&a->file)) {
            *found = k > 0;
            return k == 0 ? HR_OK
                          : HR_FAIL(err, DATA, "%s: needed %s.npy beside %s.npy, had none", store->path, stem,
                                    names->x);
        }
    }
    return HR_OK;
}

static hr_status take_all(npy_source *s, const array_store *store, hr_err *err)
{
    bool found = false;
    for (size_t k = 0; k < TRAIN_STEMS && !found; k++) {
        HR_TRY(take_set(s, store, &train_stems[k], DATA_TRAIN, &found, err));
    }
    if (!found) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed x_train.npy and y_train.npy, had neither", store->path);
        hr_err_try(err, "numpy.savez(\"data.npz\", x_train=x, y_train=y), then -s pipeline.path=data.npz");
        return status;
    }
    found = false;
    for (size_t k = 0; k < EVAL_STEMS && !found; k++) {
        HR_TRY(take_set(s, store, &eval_stems[k], DATA_EVAL, &found, err));
    }
    s->is_split = !found;
    return HR_OK;
}

// ---- what the arrays must be ----------------------------------------------------------------------------------

static uint32_t rank_without_ones(const npy *a)
{
    uint32_t rank = a->rank;
    while (rank > 1 && a->dim[rank - 1] == 1) {
        rank--;
    }
    return rank;
}

static bool has_shape_of(const npy *a, const data_slot *slot)
{
    uint32_t rank = slot->rank;
    uint64_t values = 0;
    while (rank > 0 && slot->dim[rank - 1] == 1) {
        rank--;
    }
    if (rank <= 1 && npy_item_values(a, &values) && values == data_slot_values(slot)) {
        return true; // flat
    }
    bool same = rank_without_ones(a) == rank + 1;
    for (uint32_t d = 0; d < rank && same; d++) {
        same = a->dim[d + 1] == slot->dim[d];
    }
    return same;
}

// Images of bytes with a class: the shape is theirs, and held against the model's by data_source_open.
static bool are_images(const npy_source *s)
{
    data_shape shape;
    const npy *x = &s->slot[DATA_TRAIN][0].npy;
    return data_form_is_image(&s->base.form, &shape) && x->type == NPY_U8 && x->rank >= 2 && x->rank <= 4;
}

static hr_status check_array(const npy_source *s, const array *a, uint32_t k, hr_err *err)
{
    const data_slot *slot = &s->base.form.slot[k];
    char had[128], needed[64];
    if (a->npy.rank == 0 || a->npy.dim[0] == 0 || a->npy.dim[0] > UINT32_MAX) {
        return HR_FAIL(err, DATA, "%s: needed a first dimension of 1 to 4294967295 samples, had %s",
                       a->file.name, npy_text(&a->npy, had, sizeof had));
    }
    const bool fits = (k == 0 && are_images(s)) || has_shape_of(&a->npy, slot);
    if (!fits || (!data_slot_is_real(slot) && !npy_is_whole(&a->npy))) {
        return HR_FAIL(err, DATA, "%s: needed %s a sample%s, had %s", a->file.name,
                       data_slot_text(slot, needed, sizeof needed), fits ? ", of a whole type" : "",
                       npy_text(&a->npy, had, sizeof had));
    }
    return HR_OK;
}

// That both sets are alike, and how many bytes a sample of the slot has.
static hr_status check_slot(npy_source *s, uint32_t k, hr_err *err)
{
    const array *train = &s->slot[DATA_TRAIN][k], *eval = &s->slot[DATA_EVAL][k];
    uint64_t values = 0;
    char had[128], needed[128];
    HR_TRY(check_array(s, train, k, err));
    (void)npy_item_values(&train->npy, &values); // within npy_data_bytes
    s->bytes[k] = values * npy_value_bytes(&train->npy);
    if (s->is_split) {
        return HR_OK;
    }
    const uint32_t rank = rank_without_ones(&train->npy);
    bool same = rank == rank_without_ones(&eval->npy) && train->npy.type == eval->npy.type &&
                train->npy.swapped == eval->npy.swapped;
    for (uint32_t d = 1; d < rank && same; d++) {
        same = train->npy.dim[d] == eval->npy.dim[d];
    }
    if (!same) {
        return HR_FAIL(err, DATA,
                       "%s: needed the type, byte order and shape of the training samples, %s, had %s",
                       eval->file.name, npy_text(&train->npy, needed, sizeof needed),
                       npy_text(&eval->npy, had, sizeof had));
    }
    return check_array(s, eval, k, err);
}

static hr_status check_counts(npy_source *s, data_set set, hr_err *err)
{
    const array *x = &s->slot[set][0];
    s->samples[set] = x->npy.dim[0];
    for (uint32_t k = 1; k < s->base.form.count; k++) {
        const array *a = &s->slot[set][k];
        if (a->npy.dim[0] != x->npy.dim[0]) {
            return HR_FAIL(err, DATA, "%s: needed %" PRIu64 " samples as in %s, had %" PRIu64, a->file.name,
                           x->npy.dim[0], x->file.name, a->npy.dim[0]);
        }
    }
    return HR_OK;
}

static hr_status check_sets(npy_source *s, hr_err *err)
{
    for (uint32_t k = 0; k < s->base.form.count; k++) {
        HR_TRY(check_slot(s, k, err));
    }
    HR_TRY(check_counts(s, DATA_TRAIN, err));
    if (!s->is_split) {
        HR_TRY(check_counts(s, DATA_EVAL, err));
    } else if (s->samples[DATA_TRAIN] < 2) {
        return HR_FAIL(err, DATA, "%s: needed 2 samples, one of them to hold out, had 1",
                       s->slot[DATA_TRAIN][0].file.name);
    }
    const uint64_t train = s->samples[DATA_TRAIN];
    s->base.info.train_samples = s->is_split ? split_count(train, DATA_TRAIN) : train;
    s->base.info.eval_samples = s->is_split ? split_count(train, DATA_EVAL) : s->samples[DATA_EVAL];
    return HR_OK;
}

// ---- samples --------------------------------------------------------------------------------------------------

static hr_status refuse_value(const array *a, uint64_t at, uint32_t below, int64_t had, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a whole number from 0 to %u, had %" PRId64,
                   a->file.name, a->offset + at * npy_value_bytes(&a->npy), below - 1, had);
}

// The values of slot k of sample `number`; *out in the file, or in room.
static hr_status fetch_slot(const npy_source *s, data_set set, uint64_t number, uint32_t k, uint8_t *room,
                            const uint8_t **out, hr_err *err)
{
    const array *a = &s->slot[set][k];
    const data_slot *slot = &s->base.form.slot[k];
    HR_TRY(blob_check_same(&a->file, err));
    HR_TRY(blob_at(&a->file, a->offset + number * s->bytes[k], (uint32_t)s->bytes[k], room, out, err));
    if (!data_slot_is_real(slot)) {
        int64_t value;
        const uint64_t values = s->bytes[k] / npy_value_bytes(&a->npy);
        const uint64_t at = npy_find_beyond(&a->npy, *out, values, slot->classes, &value);
        if (at < values) {
            return refuse_value(a, number * values + at, slot->classes, value, err);
        }
    }
    return HR_OK;
}

static uint64_t place_of(const npy_source *s, data_set *set, uint32_t index)
{
    if (!s->is_split) {
        return index;
    }
    const uint64_t number = split_number(s->samples[DATA_TRAIN], *set, index);
    *set = DATA_TRAIN;
    return number;
}

static hr_status image_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const npy_source *s = (const npy_source *)base;
    const uint64_t number = place_of(s, &set, index);
    uint8_t label_room[sizeof(uint64_t)];
    const uint8_t *label;
    HR_TRY(fetch_slot(s, set, number, 1, label_room, &label, err));
    npy_to_ids(&s->slot[set][1].npy, label, 1, &out->label);
    out->size_bytes = s->bytes[0];
    return fetch_slot(s, set, number, 0, room, &out->bytes, err);
}

static hr_status image_label(const data_source *base, data_set set, uint32_t index, int32_t *out, hr_err *err)
{
    const npy_source *s = (const npy_source *)base;
    const uint64_t number = place_of(s, &set, index);
    uint8_t room[sizeof(uint64_t)];
    const uint8_t *label;
    HR_TRY(fetch_slot(s, set, number, 1, room, &label, err));
    npy_to_ids(&s->slot[set][1].npy, label, 1, out);
    return HR_OK;
}

static hr_status image_decode(const data_source *s, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                              hr_err *err)
{
    (void)s;
    (void)scratch;
    (void)err;
    memcpy(image, raw->bytes, raw->size_bytes);
    return HR_OK;
}

// All slots of a sample one behind the other, as the files have them.
static hr_status slots_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const npy_source *s = (const npy_source *)base;
    const uint64_t number = place_of(s, &set, index);
    uint8_t *at = room;
    for (uint32_t k = 0; k < base->form.count; k++) {
        const uint8_t *bytes;
        HR_TRY(fetch_slot(s, set, number, k, at, &bytes, err));
        if (bytes != at) {
            memcpy(at, bytes, s->bytes[k]);
        }
        at += s->bytes[k];
    }
    *out = (data_raw){.bytes = room, .size_bytes = base->raw_bytes};
    return HR_OK;
}

static hr_status slots_write(const data_source *base, const data_raw *raw, uint8_t *scratch,
                             const data_room *to, hr_err *err)
{
    (void)scratch;
    (void)err;
    const npy_source *s = (const npy_source *)base;
    const uint8_t *from = raw->bytes;
    for (uint32_t k = 0; k < base->form.count; k++) {
        const npy *a = &s->slot[DATA_TRAIN][k].npy;
        const data_slot *slot = &base->form.slot[k];
        const uint64_t values = data_slot_values(slot);
        if (slot->type == DATA_IDS) {
            npy_to_ids(a, from, values, to->slot[k]);
        } else if (slot->type == DATA_MASK) {
            npy_to_mask(a, from, values, to->slot[k]);
        } else if (a->type == NPY_U8 && !slot->is_label) {
            pixels_write(to->slot[k], PIXELS_F32, from, values, false);
        } else {
            npy_to_floats(a, from, values, to->slot[k]);
        }
        from += s->bytes[k];
    }
    return HR_OK;
}

static void npy_close(data_source *base)
{
    npy_source *s = (npy_source *)base;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t k = 0; k < DATA_MAX_SLOTS; k++) {
            blob_close(&s->slot[set][k].file);
        }
    }
    hr_free(s);
}

static const data_source_ops image_ops = {
    .fetch = image_fetch, .label = image_label, .decode = image_decode, .close = npy_close};
static const data_source_ops slots_ops = {.fetch = slots_fetch, .write = slots_write, .close = npy_close};

// ---- opening --------------------------------------------------------------------------------------------------

// One dimension is a width, two are height and width, three have channels too.
static hr_status describe_images(npy_source *s, hr_err *err)
{
    const array *x = &s->slot[DATA_TRAIN][0];
    const npy *a = &x->npy;
    const uint64_t height = a->rank > 2 ? a->dim[1] : 1, width = a->rank > 2 ? a->dim[2] : 1;
    const uint64_t channels = a->rank == 4 ? a->dim[3] : a->rank == 2 ? a->dim[1] : 1;
    if (height - 1 >= MOST_SIDE || width - 1 >= MOST_SIDE || s->bytes[0] == 0 || s->bytes[0] > INT32_MAX) {
        char had[128];
        return HR_FAIL(err, DATA, "%s: needed images of 1 to %d pixels a side and below 2 GiB, had %s",
                       x->file.name, MOST_SIDE, npy_text(a, had, sizeof had));
    }
    s->base.ops = &image_ops;
    s->base.info.height = (uint32_t)height;
    s->base.info.width = (uint32_t)width;
    s->base.info.channels = (uint32_t)channels;
    s->base.raw_bytes = s->base.room_bytes = (uint32_t)s->bytes[0];
    s->base.cost = (data_cost){.fetch_ns = 700, .fetch_byte_ns = 0.05, .make_value_ns = 0.25};
    return HR_OK;
}

static hr_status describe_slots(npy_source *s, hr_err *err)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < s->base.form.count; k++) {
        bytes += s->bytes[k]; // each as many values as a slot of the model
    }
    if (bytes > INT32_MAX) {
        return HR_FAIL(err, DATA, "%s: needed samples below 2 GiB, had %" PRIu64 " bytes",
                       s->slot[DATA_TRAIN][0].file.name, bytes);
    }
    s->base.ops = &slots_ops;
    s->base.raw_bytes = s->base.room_bytes = (uint32_t)bytes;
    s->base.cost = (data_cost){.fetch_ns = 700, .fetch_byte_ns = 0.05, .make_value_ns = 0.6};
    return HR_OK;
}

// Labels up front, the first million: a bad one is found before the first step.
static hr_status check_labels(const npy_source *s, data_set set, uint8_t *room, hr_err *err)
{
    const array *a = &s->slot[set][1];
    const uint32_t classes = s->base.form.slot[1].classes;
    for (uint64_t first = 0; first < s->samples[set] && first < CHECKED_LABELS; first += LABELS_AT_ONCE) {
        const uint64_t left = s->samples[set] - first;
        const uint64_t count = left < LABELS_AT_ONCE ? left : LABELS_AT_ONCE;
        const uint8_t *bytes;
        int64_t value;
        HR_TRY(blob_at(&a->file, a->offset + first * s->bytes[1], (uint32_t)(count * s->bytes[1]), room,
                       &bytes, err));
        const uint64_t at = npy_find_beyond(&a->npy, bytes, count, classes, &value);
        if (at < count) {
            return refuse_value(a, first + at, classes, value, err);
        }
    }
    return HR_OK;
}

static hr_status check_all_labels(const npy_source *s, hr_err *err)
{
    const size_t bytes = (size_t)LABELS_AT_ONCE * sizeof(uint64_t);
    hr_status status = HR_OK;
    uint8_t *room = hr_calloc(bytes, 1);
    if (room == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", s->base.info.label, bytes);
    }
    for (data_set set = 0; set < DATA_SET_COUNT && status == HR_OK; set++) {
        status = check_labels(s, set, room, err);
    }
    hr_free(room);
    return status;
}

static hr_status check_first(const npy_source *s, hr_err *err)
{
    if (s->base.ops == &image_ops) {
        HR_TRY(check_all_labels(s, err));
    }
    return data_source_check_first(&s->base, CHECKED_SAMPLES, err);
}

static hr_status open_all(npy_source *s, const char *path, hr_err *err)
{
    array_store store;
    hr_status status = arrays_open(path, &store, err);
    if (status == HR_OK) {
        status = take_all(s, &store, err);
    }
    arrays_close(&store);
    HR_TRY(status);
    HR_TRY(check_sets(s, err));
    HR_TRY(are_images(s) ? describe_images(s, err) : describe_slots(s, err));
    // data_source_open refuses images of another size: they may be of gigabytes, and nothing of them is read.
    const bool others = s->base.ops == &image_ops && s->bytes[0] != data_slot_values(&s->base.form.slot[0]);
    return others ? HR_OK : check_first(s, err);
}

hr_status source_npy_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    *out = NULL;
    npy_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    s->base = (data_source){.form = *model, .info = {.classes = data_form_label(model)->classes}};
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t k = 0; k < DATA_MAX_SLOTS; k++) {
            s->slot[set][k].file = BLOB_NONE;
        }
    }
    data_source_label(s->base.info.label, "arrays", path);
    const hr_status status = open_all(s, path, err);
    if (status != HR_OK) {
        npy_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

bool source_npy_is_at(const char *path, const data_form *model)
{
    (void)model;
    return folder_is_at(path) ? files_are_at(path, ".npy") : name_ends_in(path, ".npz");
}
