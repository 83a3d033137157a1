// SPDX-License-Identifier: Apache-2.0
#include "data/example_slots.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/image.h"
#include "data/pixels.h"
#include "data/source.h"

enum { SLOT_TEXT_MAX = 64, HAD_TEXT_MAX = 200, FEATURE_TEXT_MAX = 80, NAME_TEXT_MAX = 40 };

static uint64_t size_of(wire_span s)
{
    return (uint64_t)(s.end - s.at);
}

// ---- for sentences --------------------------------------------------------------------------------------------

// What may be printed of a name.
static const char *name_text(wire_span name, char text[NAME_TEXT_MAX])
{
    uint32_t length = 0;
    for (; length < size_of(name) && length + 1 < NAME_TEXT_MAX; length++) {
        const uint8_t c = name.at[length];
        text[length] = (char)(c < ' ' || c > '~' ? '?' : c);
    }
    text[length] = '\0';
    return text;
}

// "label: 1 int64"
static const char *feature_text(const feature *f, char text[FEATURE_TEXT_MAX])
{
    char name[NAME_TEXT_MAX];
    static const char *const kinds[] = {[FEATURE_EMPTY] = "",
                                        [FEATURE_BYTES] = "bytes",
                                        [FEATURE_FLOATS] = "float",
                                        [FEATURE_INTS] = "int64"};
    name_text(f->name, name);
    if (f->kind == FEATURE_EMPTY) {
        (void)snprintf(text, FEATURE_TEXT_MAX, "%s: nothing", name);
    } else if (f->kind == FEATURE_BYTES && f->count == 1) {
        (void)snprintf(text, FEATURE_TEXT_MAX, "%s: 1 bytes of %" PRIu64, name, size_of(feature_bytes(f)));
    } else {
        (void)snprintf(text, FEATURE_TEXT_MAX, "%s: %u %s", name, f->count, kinds[f->kind]);
    }
    return text;
}

// All features, as far as there is room.
static const char *record_text(const example_record *record, char text[HAD_TEXT_MAX])
{
    example_cursor c = example_begin(record->bytes, record->count);
    uint32_t used = 0;
    feature f;
    bool good;
    (void)snprintf(text, HAD_TEXT_MAX, "no features");
    while (example_next(&c, &f, &good)) {
        char one[FEATURE_TEXT_MAX];
        const uint32_t left = HAD_TEXT_MAX - used;
        feature_text(&f, one);
        if (strlen(one) + sizeof ", …" >= left) {
            (void)snprintf(text + used, left, ", …");
            break;
        }
        used += (uint32_t)snprintf(text + used, left, used == 0 ? "%s" : ", %s", one);
    }
    return text;
}

static bool is_image_slot(const data_form *form, uint32_t k)
{
    data_shape shape;
    return k == 0 && data_form_is_image(form, &shape);
}

// "one feature of 784 floats or bytes": what fits.
static const char *needed_text(const data_form *form, uint32_t k, char text[SLOT_TEXT_MAX * 2])
{
    const data_slot *slot = &form->slot[k];
    char what[SLOT_TEXT_MAX];
    const char * or = is_image_slot(form, k)                     ? ", as many bytes, or a JPEG or PNG"
                      : slot->type == DATA_IDS || slot->is_label ? ""
                                                                 : ", or as many bytes";
    (void)snprintf(text, (size_t)SLOT_TEXT_MAX * 2, "%s%s", data_slot_text(slot, what, sizeof what), or);
    return text;
}

// ---- what fits ------------------------------------------------------------------------------------------------

static bool fits(const data_form *form, uint32_t k, const feature *f)
{
    const data_slot *slot = &form->slot[k];
    const uint64_t values = data_slot_values(slot);
    if (f->kind == FEATURE_BYTES && f->count == 1 && slot->type != DATA_IDS) {
        const wire_span bytes = feature_bytes(f);
        return (size_of(bytes) == values && (slot->type == DATA_MASK || !slot->is_label)) ||
               (is_image_slot(form, k) && image_is_likely(bytes.at, size_of(bytes)));
    }
    return f->count == values && f->kind == (data_slot_is_real(slot) ? FEATURE_FLOATS : FEATURE_INTS);
}

static bool is_taken(const example_slots *s, const feature *f)
{
    bool taken = false;
    for (uint32_t k = 0; k < s->form.count; k++) {
        taken = taken || (s->kind[k] != FEATURE_EMPTY && feature_is_named(f, s->name[k]));
    }
    return taken;
}

static void take(example_slots *s, uint32_t k, const feature *f)
{
    const uint64_t length = size_of(f->name);
    memcpy(s->name[k], f->name.at, length);
    s->name[k][length] = '\0';
    s->kind[k] = f->kind;
    if (is_image_slot(&s->form, k) && f->kind == FEATURE_BYTES) {
        const wire_span bytes = feature_bytes(f);
        s->has_image = true;
        s->is_encoded = size_of(bytes) != data_slot_values(&s->form.slot[k]);
    }
}

// Whether a feature may be asked for by its name.
static bool has_name(const feature *f)
{
    return size_of(f->name) < EXAMPLE_NAME_MAX && memchr(f->name.at, '\0', size_of(f->name)) == NULL;
}

// The feature of that name, NULL: of any; the last one, as protobuf has it. *count is how many there are that fit the slot.
static feature candidate(const example_slots *s, const example_record *record, uint32_t k, const char *name,
                         uint32_t *count)
{
    example_cursor c = example_begin(record->bytes, record->count);
    feature f, found = {.kind = FEATURE_EMPTY};
    bool good;
    *count = 0;
    while (example_next(&c, &f, &good)) {
        if ((name == NULL || feature_is_named(&f, name)) && has_name(&f) && !is_taken(s, &f) &&
            fits(&s->form, k, &f)) {
            found = f;
            (*count)++;
        }
    }
    return found;
}

static void take_usual_name(example_slots *s, const example_record *record, uint32_t k)
{
    static const char *const inputs[] = {"image/encoded", "image",  "image_raw", "input_ids", "inputs",
                                         "input",         "tokens", "features",  "x",         NULL};
    static const char *const labels[] = {
        "image/class/label", "label", "labels", "targets", "target", "class", "y", NULL};
    const char *const *names = s->form.slot[k].is_label ? labels : inputs;
    for (size_t n = 0; names[n] != NULL && s->kind[k] == FEATURE_EMPTY; n++) {
        uint32_t count;
        const feature f = candidate(s, record, k, names[n], &count);
        if (count > 0) {
            take(s, k, &f);
        }
    }
}

static hr_status take_only_one(example_slots *s, const example_record *record, uint32_t k, hr_err *err)
{
    char needed[SLOT_TEXT_MAX * 2], had[HAD_TEXT_MAX];
    uint32_t count;
    const feature f = candidate(s, record, k, NULL, &count);
    if (count == 1) {
        take(s, k, &f);
        return HR_OK;
    }
    const char *const role = s->form.slot[k].is_label ? "label" : "input";
    const hr_status status = HR_FAIL(err, DATA, "%s: needed %s feature of %s, had %s%s", record->place,
                                     count == 0 ? "a" : "only one", needed_text(&s->form, k, needed),
                                     count == 0 ? "" : "several: ", record_text(record, had));
    hr_err_try(err, "name the feature that is meant %s, or use a model that takes what is there", role);
    return status;
}

// ---- one record -----------------------------------------------------------------------------------------------

static hr_status check_whole(const example_record *record, hr_err *err)
{
    example_cursor c = example_begin(record->bytes, record->count);
    feature f;
    bool good;
    while (example_next(&c, &f, &good)) {
    }
    return good ? HR_OK
                : HR_FAIL(err, DATA, "%s: needed a tf.train.Example, had %u bytes of something else",
                          record->place, record->count);
}

hr_status example_slots_choose(const data_form *form, const example_record *record, example_slots *out,
                               hr_err *err)
{
    *out = (example_slots){.form = *form};
    HR_TRY(check_whole(record, err));
    for (uint32_t k = 0; k < form->count; k++) {
        take_usual_name(out, record, k);
    }
    for (uint32_t k = 0; k < form->count; k++) {
        HR_TRY(out->kind[k] == FEATURE_EMPTY ? take_only_one(out, record, k, err) : HR_OK);
    }
    return HR_OK;
}

void example_slots_look(const example_slots *s, const uint8_t *bytes, uint32_t count,
                        feature found[DATA_MAX_SLOTS])
{
    example_cursor c = example_begin(bytes, count);
    feature f;
    bool good;
    memset(found, 0, DATA_MAX_SLOTS * sizeof *found);
    while (example_next(&c, &f, &good)) {
        for (uint32_t k = 0; k < s->form.count; k++) {
            if (feature_is_named(&f, s->name[k])) {
                found[k] = f;
            }
        }
    }
}

// Classes and mask values are ones that the model knows.
static hr_status check_ints(const example_slots *s, const example_record *record, uint32_t k,
                            const feature *f, hr_err *err)
{
    const uint32_t classes = s->form.slot[k].classes;
    feature_ints ints = feature_ints_begin(f);
    int64_t value;
    while (feature_ints_next(&ints, &value)) {
        if (value < 0 || value >= classes) {
            char name[NAME_TEXT_MAX];
            const hr_status status = HR_FAIL(err, DATA, "%s: needed a %s from 0 to %u, had %" PRId64,
                                             record->place, name_text(f->name, name), classes - 1, value);
            if (value >= classes) {
                hr_err_try(err, "a model with at least %" PRId64 " classes", value + 1);
            }
            return status;
        }
    }
    return HR_OK;
}

static hr_status check_mask(const example_slots *s, const example_record *record, uint32_t k,
                            const feature *f, hr_err *err)
{
    const wire_span bytes = feature_bytes(f);
    for (const uint8_t *b = bytes.at; b < bytes.end; b++) {
        if (*b >= s->form.slot[k].classes) {
            char name[NAME_TEXT_MAX];
            return HR_FAIL(err, DATA, "%s: needed a %s from 0 to %u, had %u", record->place,
                           name_text(f->name, name), s->form.slot[k].classes - 1, *b);
        }
    }
    return HR_OK;
}

static hr_status check_feature(const example_slots *s, const example_record *record, uint32_t k,
                               const feature *f, hr_err *err)
{
    const uint64_t values = data_slot_values(&s->form.slot[k]);
    char had[FEATURE_TEXT_MAX], needed[SLOT_TEXT_MAX];
    bool good = f->kind == s->kind[k] && f->count == (s->kind[k] == FEATURE_BYTES ? 1 : values);
    if (good && f->kind == FEATURE_BYTES && !(s->is_encoded && k == 0)) {
        good = size_of(feature_bytes(f)) == values;
    }
    if (!good) {
        return HR_FAIL(err, DATA, "%s: needed %s as in the first record, %s%s, had %s", record->place,
                       s->name[k], s->kind[k] == FEATURE_BYTES ? "bytes for " : "",
                       data_slot_text(&s->form.slot[k], needed, sizeof needed),
                       f->kind == FEATURE_EMPTY && size_of(f->name) == 0 ? "none" : feature_text(f, had));
    }
    return f->kind == FEATURE_INTS                                         ? check_ints(s, record, k, f, err)
           : f->kind == FEATURE_BYTES && s->form.slot[k].type == DATA_MASK ? check_mask(s, record, k, f, err)
                                                                           : HR_OK;
}

hr_status example_slots_find(const example_slots *s, const example_record *record,
                             feature found[DATA_MAX_SLOTS], hr_err *err)
{
    HR_TRY(check_whole(record, err));
    example_slots_look(s, record->bytes, record->count, found);
    for (uint32_t k = 0; k < s->form.count; k++) {
        HR_TRY(check_feature(s, record, k, &found[k], err));
    }
    return HR_OK;
}

// ---- values ---------------------------------------------------------------------------------------------------

int32_t example_class(const feature *f)
{
    feature_ints ints = feature_ints_begin(f);
    int64_t value = 0;
    (void)feature_ints_next(&ints, &value);
    return (int32_t)value;
}

static void write_ints(const data_slot *slot, const feature *f, void *to)
{
    feature_ints ints = feature_ints_begin(f);
    int64_t value;
    for (uint64_t k = 0; feature_ints_next(&ints, &value); k++) {
        if (slot->type == DATA_IDS) {
            ((int32_t *)to)[k] = (int32_t)value;
        } else {
            ((uint8_t *)to)[k] = (uint8_t)value;
        }
    }
}

void example_slots_write(const example_slots *s, const feature found[DATA_MAX_SLOTS], const data_room *to)
{
    for (uint32_t k = 0; k < s->form.count; k++) {
        const data_slot *slot = &s->form.slot[k];
        if (found[k].kind == FEATURE_FLOATS) {
            feature_floats(&found[k], to->slot[k]);
        } else if (found[k].kind == FEATURE_INTS) {
            write_ints(slot, &found[k], to->slot[k]);
        } else if (slot->type == DATA_MASK) {
            memcpy(to->slot[k], feature_bytes(&found[k]).at, data_slot_values(slot));
        } else {
            pixels_write(to->slot[k], PIXELS_F32, feature_bytes(&found[k]).at, data_slot_values(slot), false);
        }
    }
}
