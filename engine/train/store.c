// SPDX-License-Identifier: Apache-2.0
#include "train/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "base/half.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "program/optimizer_rules.h"

enum { PART_NAME_BYTES = 256 };

void store_deinit(store *s)
{
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        hr_free(s->tensors.data[k].name);
        hr_free(s->tensors.data[k].data);
    }
    vec_deinit(&s->tensors);
    name_table_deinit(&s->places);
}

const stored_tensor *store_find(const store *s, const char *name)
{
    const uint32_t place = name_table_find(&s->places, name);
    return place == HR_NO_ID ? NULL : &s->tensors.data[place];
}

const stored_tensor *store_find_part(const store *s, const model_param *p, const held_parts *parts,
                                     uint32_t k)
{
    char name[PART_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s%s%s", p->name, k == 0 ? "" : ":", k == 0 ? "" : parts->suffix[k]);
    const stored_tensor *t = store_find(s, name);
    const op_operand *part = &parts->part[k];
    return t != NULL && t->dtype == part->dtype && shape_equal(&t->shape, &part->shape) ? t : NULL;
}

bool store_has_parts(const store *s, const model_param *p)
{
    held_parts parts;
    held_parts_of(&p->shape, p->held, &parts);
    bool all = true;
    for (uint32_t k = 0; k < parts.count; k++) {
        all = all && store_find_part(s, p, &parts, k) != NULL;
    }
    return all;
}

stored_tensor *store_add(store *s, const char *name, const hr_shape *shape, hr_dtype dtype,
                         hr_category category)
{
    op_operand o = {.shape = *shape, .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
    uint64_t bytes = 0;
    uint64_t padding = 0;
    if (!operand_bytes(&o, &bytes, &padding)) {
        return NULL;
    }
    stored_tensor made = {.name = hr_strdup(name),
                          .shape = *shape,
                          .dtype = dtype,
                          .category = category,
                          .bytes = bytes,
                          .data = hr_calloc(bytes, 1)};
    stored_tensor *place = made.name != NULL && made.data != NULL ? vec_push(&s->tensors) : NULL;
    if (place != NULL && !name_table_add(&s->places, made.name, s->tensors.count - 1)) {
        s->tensors.count--;
        place = NULL;
    }
    if (place == NULL) {
        hr_free(made.name);
        hr_free(made.data);
        return NULL;
    }
    *place = made;
    return place;
}

static bool is_filled(const tensor *t)
{
    return t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE ||
           t->category == HR_CATEGORY_OPTIMIZER;
}

// A teacher is what its own save says, whenever it is filled.
static bool is_kept(const tensor *t)
{
    return is_filled(t) && !t->of_teacher;
}

// What is offloaded lies in memory of the host, which nothing changes between two steps.
static hr_status read_tensor(const build *b, const tensor *t, uint64_t address, void *out, hr_err *err)
{
    if (tensor_on_host(t)) {
        memcpy(out, (const void *)(uintptr_t)address, t->bytes);
        return HR_OK;
    }
    return b->device->copy_out(b->context, address, out, t->bytes, err);
}

static hr_status write_tensor(build *b, const tensor *t, uint64_t address, const void *values, hr_err *err)
{
    if (tensor_on_host(t)) {
        memcpy((void *)(uintptr_t)address, values, t->bytes);
        return HR_OK;
    }
    return b->device->copy_in(b->context, address, values, t->bytes, err);
}

uint64_t store_bytes(const build *b)
{
    const program *p = b->programs[BUILD_TRAIN];
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        sum += is_kept(&p->tensors[k]) ? p->tensors[k].bytes : 0;
    }
    return sum;
}

static hr_status take(store *s, const build *b, uint32_t id, hr_err *err)
{
    const tensor *t = &b->programs[BUILD_TRAIN]->tensors[id];
    stored_tensor *copy = store_add(s, t->name, &t->shape, t->dtype, t->category);
    if (copy == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a copy of %s, needed %" PRIu64 " B", t->name,
                       t->bytes);
    }
    return read_tensor(b, t, executor_built_address(b->x, id), copy->data, err);
}

hr_status store_take(store *s, const build *b, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        HR_TRY(is_kept(&p->tensors[k]) ? take(s, b, k, err) : HR_OK);
    }
    return HR_OK;
}

hr_status store_take_one(store *s, const build *b, const char *name, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_kept(&p->tensors[k]) && strcmp(p->tensors[k].name, name) == 0) {
            return take(s, b, k, err);
        }
    }
    return HR_FAIL(err, STATE, "what is built has no %s", name);
}

// ---- types ----------------------------------------------------------------------------------------------------

static double read_f32(const void *from, uint64_t k)
{
    return (double)((const float *)from)[k];
}

static double read_f64(const void *from, uint64_t k)
{
    return ((const double *)from)[k];
}

static double read_f16(const void *from, uint64_t k)
{
    return (double)float_of_f16(((const uint16_t *)from)[k]);
}

static double read_bf16(const void *from, uint64_t k)
{
    return (double)float_of_bf16(((const uint16_t *)from)[k]);
}

static void write_f32(void *to, uint64_t k, double value)
{
    ((float *)to)[k] = (float)value;
}

static void write_f64(void *to, uint64_t k, double value)
{
    ((double *)to)[k] = value;
}

static void write_f16(void *to, uint64_t k, double value)
{
    ((uint16_t *)to)[k] = f16_of_float((float)value);
}

static void write_bf16(void *to, uint64_t k, double value)
{
    ((uint16_t *)to)[k] = bf16_of_float((float)value);
}

static double read_i32(const void *from, uint64_t k)
{
    return (double)((const int32_t *)from)[k];
}

static double read_u8(const void *from, uint64_t k)
{
    return (double)((const uint8_t *)from)[k];
}

static double read_i8(const void *from, uint64_t k)
{
    return (double)((const int8_t *)from)[k];
}

static void write_i32(void *to, uint64_t k, double value)
{
    ((int32_t *)to)[k] = (int32_t)value;
}

static void write_u8(void *to, uint64_t k, double value)
{
    ((uint8_t *)to)[k] = (uint8_t)value;
}

static void write_i8(void *to, uint64_t k, double value)
{
    ((int8_t *)to)[k] = (int8_t)value;
}

// How numbers of a type are read and written. Integers are codes and counts: no real goes on as one.
static const struct {
    double (*read)(const void *from, uint64_t k);
    void (*write)(void *to, uint64_t k, double value);
    bool real;
} types[HR_DTYPE_COUNT] = {
    [HR_F32] = {read_f32, write_f32, true},  [HR_F64] = {read_f64, write_f64, true},
    [HR_F16] = {read_f16, write_f16, true},  [HR_BF16] = {read_bf16, write_bf16, true},
    [HR_I32] = {read_i32, write_i32, false}, [HR_U8] = {read_u8, write_u8, false},
    [HR_I8] = {read_i8, write_i8, false},
};

static bool converts(hr_dtype to, hr_dtype from)
{
    return to == from || (types[to].real && types[from].real);
}

static void convert(void *to, hr_dtype to_type, const void *from, hr_dtype from_type, uint64_t elements)
{
    for (uint64_t k = 0; k < elements; k++) {
        types[to_type].write(to, k, types[from_type].read(from, k));
    }
}

stored_tensor *store_add_as(store *s, const char *name, const stored_tensor *from, hr_dtype dtype)
{
    uint64_t elements = 0;
    (void)shape_elements(&from->shape, &elements);
    stored_tensor *to =
        converts(dtype, from->dtype) ? store_add(s, name, &from->shape, dtype, from->category) : NULL;
    if (to != NULL && dtype == from->dtype) {
        memcpy(to->data, from->data, from->bytes);
    } else if (to != NULL) {
        convert(to->data, dtype, from->data, from->dtype, elements);
    }
    return to;
}

double store_value(const stored_tensor *t, uint64_t k)
{
    return types[t->dtype].read(t->data, k);
}

void store_values(const stored_tensor *t, double *values)
{
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    convert(values, HR_F64, t->data, t->dtype, elements);
}

// ---- one tensor at a time ---------------------------------------------------------------------------------------

hr_status store_add_squares(const build *b, const tensor *t, uint64_t address, double *sum, hr_err *err)
{
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    void *values = hr_calloc(t->bytes + 1, 1);
    if (values == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to look at %s, needed %" PRIu64 " B", t->name, t->bytes);
    }
    const hr_status status = read_tensor(b, t, address, values, err);
    for (uint64_t k = 0; k < elements && status == HR_OK; k++) {
        const double value = types[t->dtype].read(values, k);
        *sum += value * value;
    }
    hr_free(values);
    return status;
}

static hr_status set_tensor(build *b, uint32_t id, const double *values, uint64_t count, hr_err *err)
{
    const tensor *t = &b->programs[BUILD_TRAIN]->tensors[id];
    char shape[HR_SHAPE_TEXT_MAX];
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    if (!types[t->dtype].real) {
        return HR_FAIL(err, STATE, "%s is held as whole numbers (%s), which are set by no one", t->name,
                       dtype_name(t->dtype));
    }
    if (count != elements) {
        return HR_FAIL(err, STATE, "%s needed %" PRIu64 " numbers (%s), had %" PRIu64, t->name, elements,
                       shape_text(&t->shape, shape, sizeof shape), count);
    }
    void *bytes = hr_calloc(t->bytes + 1, 1);
    if (bytes == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to set %s, needed %" PRIu64 " B", t->name, t->bytes);
    }
    convert(bytes, t->dtype, values, HR_F64, elements);
    const hr_status status = write_tensor(b, t, executor_built_address(b->x, id), bytes, err);
    hr_free(bytes);
    return status;
}

hr_status store_set_one(build *b, const char *name, const double *values, uint64_t count, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_kept(&p->tensors[k]) && strcmp(p->tensors[k].name, name) == 0) {
            return set_tensor(b, k, values, count, err);
        }
    }
    return HR_FAIL(err, STATE, "what is built has no %s", name);
}

// ---- filling --------------------------------------------------------------------------------------------------

static bool is_average(const tensor *t)
{
    static const char suffix[] = ":" OPTIMIZER_EMA_SLOT;
    const size_t length = strlen(t->name);
    return t->category == HR_CATEGORY_OPTIMIZER && length >= sizeof suffix &&
           strcmp(t->name + length - (sizeof suffix - 1), suffix) == 0;
}

static const stored_tensor *find_usable(const store *s, const char *name, const tensor *t)
{
    const stored_tensor *kept = store_find(s, name);
    bool usable = kept != NULL && shape_equal(&kept->shape, &t->shape) && converts(t->dtype, kept->dtype);
    return usable ? kept : NULL;
}

// What tensor t goes on from: itself, or, for an average that is new, its variable. NULL: nothing. Of weights that are held as
// whole numbers all parts are there, or none counts.
static const stored_tensor *source_of(const store *s, const hr_model *model, const tensor *t)
{
    if (t->held != HR_NO_ID && !store_has_parts(s, &model->params[t->held])) {
        return NULL;
    }
    const stored_tensor *kept = find_usable(s, t->name + (t->of_teacher ? strlen(MODEL_TEACHER) : 0), t);
    return kept == NULL && is_average(t) ? find_usable(s, model->params[t->param].name, t) : kept;
}

// The initial values of tensor t: a parameter's own, of which an average is one; else what its tensor says.
static hr_status initial_values(const hr_model *model, const tensor *t, uint64_t seed, void *out, hr_err *err)
{
    const bool seeded = t->param != HR_NO_ID && (t->category != HR_CATEGORY_OPTIMIZER || is_average(t));
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    float *initial = hr_calloc(elements, sizeof *initial);
    if (initial == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the initial values of %s", t->name);
    }
    if (seeded) {
        model_init_param(model, t->param, seed, initial);
    }
    for (uint64_t k = 0; !seeded && k < elements; k++) {
        initial[k] = t->initial;
    }
    convert(out, t->dtype, initial, HR_F32, elements);
    hr_free(initial);
    return HR_OK;
}

static hr_status fill_one(const store *s, build *b, const hr_model *model, uint64_t seed, uint32_t id,
                          hr_err *err)
{
    const tensor *t = &b->programs[BUILD_TRAIN]->tensors[id];
    const stored_tensor *kept = source_of(s, model, t);
    const uint64_t address = executor_built_address(b->x, id);
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    if (kept != NULL && kept->dtype == t->dtype) {
        return write_tensor(b, t, address, kept->data, err);
    }
    void *values = hr_calloc(t->bytes, 1);
    if (values == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the values of %s", t->name);
    }
    hr_status status = HR_OK;
    if (kept != NULL) {
        convert(values, t->dtype, kept->data, kept->dtype, elements);
    } else {
        status = initial_values(model, t, seed, values, err);
    }
    if (status == HR_OK) {
        status = write_tensor(b, t, address, values, err);
    }
    hr_free(values);
    return status;
}

// ---- filling what is held as whole numbers (compress.lora_base) -------------------------------------------------

// A parameter's weights as the store has them, else the seeded ones.
static void real_values(const store *s, const hr_model *model, uint32_t param, uint64_t seed, float *w)
{
    const model_param *p = &model->params[param];
    const stored_tensor *from = store_find(s, p->name);
    uint64_t elements = 0;
    (void)shape_elements(&p->shape, &elements);
    if (from != NULL && types[from->dtype].real && shape_equal(&from->shape, &p->shape)) {
        convert(w, HR_F32, from->data, from->dtype, elements);
    } else {
        model_init_param(model, param, seed, w);
    }
}

static bool add_parts(const held_parts *parts, void *part[HELD_PARTS])
{
    bool complete = true;
    for (uint32_t k = 0; k < parts->count; k++) {
        uint64_t bytes = 0, padding_bytes = 0;
        (void)operand_bytes(&parts->part[k], &bytes, &padding_bytes);
        part[k] = hr_calloc(bytes, 1);
        complete = complete && part[k] != NULL;
    }
    return complete;
}

// Whole numbers, scales and zero points from tensor `first` on, all made of the same weights.
static hr_status make_held(const store *s, build *b, const hr_model *model, uint64_t seed, uint32_t first,
                           hr_err *err)
{
    const tensor *t = &b->programs[BUILD_TRAIN]->tensors[first];
    const model_param *p = &model->params[t->held];
    uint64_t elements = 0;
    held_parts parts;
    void *part[HELD_PARTS] = {NULL};
    (void)shape_elements(&p->shape, &elements);
    held_parts_of(&p->shape, p->held, &parts);
    float *w = hr_calloc(elements, sizeof *w);
    hr_status status = HR_OK;
    if (!add_parts(&parts, part) || w == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for %s as whole numbers", p->name);
    } else {
        real_values(s, model, t->held, seed, w);
        held_make(&p->shape, p->held, w, part);
    }
    for (uint32_t k = 0; k < parts.count && status == HR_OK; k++) {
        status = write_tensor(b, &t[k], executor_built_address(b->x, first + k), part[k], err);
    }
    hr_free(w);
    for (uint32_t k = 0; k < parts.count; k++) {
        hr_free(part[k]);
    }
    return status;
}

// The store's parts where it has all of them: a scale that strayed in beside real weights is none of theirs.
static hr_status fill_held(const store *s, build *b, const hr_model *model, uint64_t seed, uint32_t first,
                           hr_err *err)
{
    const tensor *t = &b->programs[BUILD_TRAIN]->tensors[first];
    held_parts parts;
    held_parts_of(&model->params[t->held].shape, model->params[t->held].held, &parts);
    bool all = true;
    for (uint32_t k = 0; k < parts.count; k++) {
        all = all && find_usable(s, t[k].name, &t[k]) != NULL;
    }
    if (!all) {
        return make_held(s, b, model, seed, first, err);
    }
    for (uint32_t k = 0; k < parts.count; k++) {
        HR_TRY(fill_one(s, b, model, seed, first + k, err));
    }
    return HR_OK;
}

hr_status store_fill(const store *s, const store *teacher, build *b, const hr_model *model, uint64_t seed,
                     hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        if (t->held != HR_NO_ID) { // its parts follow one another
            HR_TRY(k == 0 || t[-1].held != t->held ? fill_held(s, b, model, seed, k, err) : HR_OK);
        } else if (is_filled(t)) {
            HR_TRY(fill_one(t->of_teacher ? teacher : s, b, model, seed, k, err));
        }
    }
    return HR_OK;
}

// The weights that tensor t is the mask of; NULL: it is none.
static const stored_tensor *masked_by(const store *s, const stored_tensor *t)
{
    static const char suffix[] = ":mask";
    char name[HR_NAME_MAX + sizeof suffix];
    const size_t length = strlen(t->name), end = sizeof suffix - 1;
    if (t->category != HR_CATEGORY_STATE || length <= end || length >= sizeof name ||
        strcmp(t->name + length - end, suffix) != 0) {
        return NULL;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(length - end), t->name);
    return store_find(s, name);
}

double store_sparsity(const store *s)
{
    uint64_t zeros = 0, all = 0;
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        const stored_tensor *w = masked_by(s, &s->tensors.data[k]);
        uint64_t elements = 0;
        if (w != NULL && shape_elements(&w->shape, &elements)) {
            for (uint64_t i = 0; i < elements; i++) {
                zeros += store_value(w, i) == 0.0;
            }
            all += elements;
        }
    }
    return all == 0 ? (double)NAN : (double)zeros / (double)all;
}

void store_sha256(const store *s, char out[HR_SHA256_TEXT_MAX])
{
    sha256 hash;
    sha256_init(&hash);
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        if (s->tensors.data[k].category == HR_CATEGORY_WEIGHTS) {
            sha256_add(&hash, s->tensors.data[k].data, s->tensors.data[k].bytes);
        }
    }
    sha256_text(&hash, out);
}
