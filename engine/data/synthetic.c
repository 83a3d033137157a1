// SPDX-License-Identifier: Apache-2.0
// Generated data for models that are not "one image, one class": token ids, masks, float targets, several inputs.
// Every sample has a class that is drawn for it; each slot shows or names that class, so that there is something to
// learn, whatever the form:
//
//   input   float image   the class's figure, as in the generated images
//           other floats    the class's own values under noise
//           ids             a chain of tokens whose step the class decides; ids of two or three kinds: segments
//   label   ids, one        the class
//           ids, many       the chain one token further on, when an input has as many; else the class everywhere
//           mask            the figure's place
//           floats          values of the class's own; zeros and ones where the loss is of those
//
// As with the images, a record is made when it is asked for, and nothing is held.
#include <string.h>

#include "base/host_mem.h"
#include "base/philox.h"
#include "data/generated.h"
#include "data/pixels.h"
#include "data/record.h"
#include "data/source.h"

enum {
    INVENTED_SEED = 11,
    VOCABULARY = 64,   // tokens in use, of as many as the model knows
    MOST_SEGMENTS = 4, // ids of so few kinds are segments
    SURPRISE = 8,      // one token in so many does not follow the chain

    WORDS_PER_VALUE = 4 // one Philox call
};

typedef struct sample {
    uint64_t record;
    uint32_t class;
    data_shape figure; // height 0: the form has neither image nor mask
    uint8_t *scratch, *planes, *image;
} sample;

// Uniform in [-1, 1): value `at` of what belongs to `class` in slot `slot`.
static float own_value(uint32_t class, uint32_t slot, uint64_t at)
{
    uint32_t words[WORDS_PER_VALUE];
    philox(philox_key_of(INVENTED_SEED, "class"), at, (uint64_t)slot << 32 | class, words);
    return 2 * philox_uniform(words[0]) - 1;
}

static uint32_t token_count(const data_slot *slot)
{
    return slot->classes < VOCABULARY ? slot->classes : VOCABULARY;
}

// Tokens begin … begin + count of the sample's chain.
static void write_chain(const sample *s, const data_slot *slot, uint64_t begin, int32_t *ids)
{
    draws d = draws_of(philox_key_of(INVENTED_SEED, "tokens"), s->record);
    const uint32_t tokens = token_count(slot);
    const uint64_t count = data_slot_values(slot);
    uint32_t token = draw(&d) % tokens;
    for (uint64_t t = 0; t < begin + count; t++) {
        if (t >= begin) {
            ids[t - begin] = (int32_t)token;
        }
        const uint32_t surprise = draw(&d);
        token =
            surprise % SURPRISE == 0 ? surprise / SURPRISE % tokens : (5 * token + 2 * s->class + 1) % tokens;
    }
}

static void write_segments(const data_slot *slot, int32_t *ids)
{
    const uint64_t count = data_slot_values(slot);
    for (uint64_t t = 0; t < count; t++) {
        ids[t] = t < count / 2 ? 0 : (int32_t)(1 % slot->classes);
    }
}

static void write_floats(const sample *s, const data_slot *slot, uint32_t k, float *values)
{
    draws d = draws_of(philox_key_of(INVENTED_SEED, "noise"), s->record);
    const uint64_t count = data_slot_values(slot);
    for (uint64_t i = 0; i < count; i++) {
        const float noise = slot->is_label ? 0 : philox_uniform(draw(&d)) - 0.5f;
        const float own = own_value(s->class, k, i);
        values[i] = slot->binary ? (float)(own > 0) : own + noise;
    }
}

// [height, width, …]: every value of a pixel is the pixel's.
static void write_mask(const sample *s, const data_slot *slot, uint8_t *values)
{
    const uint64_t count = data_slot_values(slot);
    const uint64_t depth = count / ((uint64_t)s->figure.height * s->figure.width);
    const uint8_t here = (uint8_t)(slot->classes > 1 ? 1 + s->class % (slot->classes - 1) : 0);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = s->scratch[i / depth] != 0 ? here : 0;
    }
}

static bool is_image(const data_slot *slot)
{
    return slot->type == DATA_FLOAT && slot->rank == 3 && !slot->is_label;
}

static void write_ids(const data_source *source, const sample *s, uint32_t k, int32_t *ids)
{
    const data_form *form = &source->form;
    const data_slot *slot = &form->slot[k];
    bool follows = false;
    for (uint32_t i = 0; i < form->count; i++) {
        follows |= data_slot_continues(&form->slot[i], slot);
    }
    if (slot->is_label && !follows) {
        for (uint64_t i = 0, count = data_slot_values(slot); i < count; i++) {
            ids[i] = (int32_t)(s->class % slot->classes);
        }
    } else if (slot->classes <= MOST_SEGMENTS) {
        write_segments(slot, ids);
    } else {
        write_chain(s, slot, slot->is_label, ids);
    }
}

static void write_slot(const data_source *source, const sample *s, uint32_t k, void *to)
{
    const data_slot *slot = &source->form.slot[k];
    switch (slot->type) {
    case DATA_IDS:
        write_ids(source, s, k, to);
        break;
    case DATA_MASK:
        write_mask(s, slot, to);
        break;
    case DATA_FLOAT:
        if (is_image(slot)) {
            const uint64_t pixels = (uint64_t)s->figure.height * s->figure.width;
            pixels_of_planes(s->image, s->planes, pixels, s->figure.channels);
            pixels_write(to, PIXELS_F32, s->image, data_slot_values(slot), false);
        } else {
            write_floats(s, slot, k, to);
        }
        break;
    case DATA_F16: // of batches
    case DATA_BF16:
    case DATA_F64:
    case DATA_BYTES:
        break;
    }
}

// In the room: the slots side by side, then the figure's planes and the image of them.
static hr_status synthetic_fetch(const data_source *s, data_set set, uint32_t index, uint8_t *room,
                                 data_raw *out, hr_err *err)
{
    (void)err;
    const data_shape figure = {s->info.height, s->info.width, s->info.channels, 1};
    const data_room to = data_room_packed(&s->form, room);
    sample one = {.record = (uint64_t)set << 32 | index,
                  .figure = figure,
                  .scratch = room + s->raw_bytes,
                  .image = room + s->room_bytes - data_source_values(s)};
    draws d = draws_of(philox_key_of(INVENTED_SEED, "invented"), one.record);
    one.class = draw(&d) % s->info.classes;
    if (figure.height > 0) {
        generated_figure(&d, one.class, &figure, one.scratch, &one.planes);
    }
    for (uint32_t k = 0; k < s->form.count; k++) {
        write_slot(s, &one, k, to.slot[k]);
    }
    *out = (data_raw){.bytes = room, .size_bytes = s->raw_bytes};
    return HR_OK;
}

static void synthetic_close(data_source *s)
{
    hr_free(s);
}

static const data_source_ops synthetic_ops = {
    .fetch = synthetic_fetch, .write = record_write_packed, .close = synthetic_close};

// Sides are of images and masks, channels of images; 0 where unknown so far.
static bool shows(const data_slot *slot, const data_shape *figure)
{
    const bool same_sides =
        slot->rank >= 2 &&
        (figure->height == 0 || (figure->height == slot->dim[0] && figure->width == slot->dim[1]));
    return same_sides && (!is_image(slot) || figure->channels == 0 || figure->channels == slot->dim[2]);
}

// The figure that images and masks show. DATA error when they do not agree.
static hr_status figure_of(const data_form *model, data_shape *figure, hr_err *err)
{
    *figure = (data_shape){0};
    for (uint32_t k = 0; k < model->count; k++) {
        const data_slot *slot = &model->slot[k];
        if (!is_image(slot) && slot->type != DATA_MASK) {
            continue;
        }
        if (!shows(slot, figure)) {
            char text[64];
            return HR_FAIL(err, DATA, "generated data: needed images and masks of one size, had %s",
                           data_slot_text(slot, text, sizeof text));
        }
        const uint32_t channels = is_image(slot) ? slot->dim[2] : figure->channels;
        *figure = (data_shape){slot->dim[0], slot->dim[1], channels, 1};
    }
    if (figure->height == 0) {
        return HR_OK;
    }
    figure->channels = figure->channels == 0 ? 1 : figure->channels;
    return generated_check(figure, err);
}

// As many classes as figures, or as the label that names them has.
static uint32_t class_count(const data_form *model)
{
    uint32_t classes = GENERATED_FIGURES;
    for (uint32_t k = 0; k < model->count; k++) {
        const data_slot *slot = &model->slot[k];
        if (slot->is_label && slot->type == DATA_IDS && slot->rank == 0 && slot->classes < classes) {
            classes = slot->classes;
        }
    }
    return classes;
}

static uint64_t figure_room(const data_shape *figure)
{
    const uint64_t values = (uint64_t)figure->height * figure->width * figure->channels;
    return values == 0 ? 0 : generated_scratch_bytes(figure) + values;
}

hr_status source_synthetic_open(const data_form *model, data_source **out, hr_err *err)
{
    data_shape figure;
    *out = NULL;
    HR_TRY(figure_of(model, &figure, err));
    data_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "generated data: needed %zu bytes, had less", sizeof *s);
    }
    *s = (data_source){
        .ops = &synthetic_ops,
        .form = *model,
        .info = {.label = "generated",
                 .height = figure.height,
                 .width = figure.width,
                 .channels = figure.channels,
                 .classes = class_count(model),
                 .train_samples = GENERATED_TRAIN_SAMPLES,
                 .eval_samples = GENERATED_EVAL_SAMPLES},
        .raw_bytes = (uint32_t)data_form_packed_bytes(model),
        .room_bytes = (uint32_t)(data_form_packed_bytes(model) + figure_room(&figure)),
        .is_endless = true,
    };
    *out = s;
    return HR_OK;
}
