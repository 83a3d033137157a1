// SPDX-License-Identifier: Apache-2.0
// Saves: one safetensors file with weights, state and optimizer slots; step, update, data position and seed in
// its metadata. Written whole or not at all; a run resumed from it goes on bit-identically.
//
//   u64 LE header bytes | JSON header, padded with blanks to 8 | tensors, little-endian, in canonical order
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "train/engine_impl.h"
#include "train/held.h"
#include "train/quantized.h"
#include "train/save_header.h"
#include "train/save_write.h"
#include "train/shrink.h"

// Its checksum is of the tensors alone.
static const char save_schema_1[] = "headroom.save/1";

// A header of thousands of tensors has less, one of more as much as its parameters with slots and average need; what
// a parser makes of so much is bounded too.
enum { SAVE_HEADER_BYTES = 4 << 20, SAVE_HEADER_PARAM_BYTES = 2048 };
// Bytes of a save for each parameter of the model: a float64 with two float64 optimizer slots and an average.
enum { SAVE_PARAMETER_BYTES = 4 * 8 };

hr_status engine_check_save_path(const char *path, hr_err *err)
{
    file_writer *w = NULL;
    if (path[0] == '\0') {
        return HR_OK;
    }
    hr_status status = save_check_replaceable(path, err);
    if (status == HR_OK) {
        status = file_writer_open(path, &w, err);
        file_writer_abandon(w);
    }
    if (status == HR_WRITE) {
        hr_err_try(err, "-s train.save=ANOTHER.safetensors");
    }
    return status;
}

static hr_status write_store(hr_engine *e, const char *path, store *s, hr_err *err)
{
    text header = {0};
    HR_TRY(e->build != NULL ? store_take(s, e->build, err) : HR_OK);
    s = e->build != NULL ? s : &e->carried;
    json_t *metadata = save_make_metadata(e, s, &(save_kind){.mode = HR_QUANTIZE_NONE});
    hr_status status = save_make_header(metadata, s, &header, err);
    json_decref(metadata);
    if (status == HR_OK) {
        status = save_write(path, &header, s, err);
    }
    text_deinit(&header);
    return status;
}

bool engine_has_weights(const hr_engine *e)
{
    return e->build != NULL && e->build->arithmetic && !e->lost_step && !e->restored;
}

bool engine_carries_weights(const hr_engine *e)
{
    return e->build == NULL && e->carried.tensors.count > 0 && !e->lost_step && !e->restored;
}

uint64_t engine_save_bytes(const hr_engine *e)
{
    return engine_has_weights(e) ? store_bytes(e->build) : 0;
}

hr_status engine_save(hr_engine *e, const char *path, hr_err *err)
{
    store s = {0};
    if (!engine_has_weights(e) && !engine_carries_weights(e)) {
        (void)HR_FAIL(err, STATE, "%s: needed weights to save, had %s", path,
                      e->lost_step ? "those of a step that broke off" : "none yet");
        hr_err_try(err, "train a step, then save again");
        return HR_STATE;
    }
    if (e->quantized != HR_QUANTIZE_NONE) {
        (void)HR_FAIL(err, SAVE, "%s: needed weights that were trained, had %s ones", path,
                      hr_quantize_name(e->quantized));
        hr_err_try(err, "-s train.save= with the file that they were read from, which is a save already");
        return HR_SAVE;
    }
    hr_status status = save_check_replaceable(path, err);
    if (status != HR_OK) {
        hr_err_try(err, "-s train.save=ANOTHER.safetensors");
        return status;
    }
    status = write_store(e, path, &s, err);
    store_deinit(&s);
    if (status == HR_OK) {
        (void)text_copy(e->last_save, sizeof e->last_save, path);
        trace_note(&e->bus, HR_EVENT_SAVED, e->steps, path);
    }
    return status;
}

hr_status engine_save_session(hr_engine *e, const char *path, const save_origin *origin, hr_err *err)
{
    e->origin = origin;
    hr_status status = engine_save(e, path, err);
    e->origin = NULL;
    return status;
}

// ---- reading ----------------------------------------------------------------------------------------------

typedef struct save_file {
    const char *path;
    const char *data; // behind the header
    uint64_t data_bytes;
    const json_t *metadata;
    uint64_t read_bytes; // of data, by the tensors so far
    const hr_model *model;
    hr_quantize mode; // of its weights
    bool of_teacher;  // it shall have the parameters of the model's teacher
} save_file;

static hr_status get_number(const save_file *f, const char *key, uint64_t *out, hr_err *err)
{
    const char *digits = json_string_value(json_object_get(f->metadata, key));
    int64_t number = 0;
    if (digits == NULL || !text_to_int(digits, &number) || number < 0) {
        return HR_FAIL(err, SAVE, "%s: metadata '%s' needs a count, had '%s'", f->path, key,
                       digits != NULL ? digits : "nothing");
    }
    *out = (uint64_t)number;
    return HR_OK;
}

static hr_category stored_category(const save_file *f, const char *name)
{
    char key[160];
    (void)snprintf(key, sizeof key, "%s%s", SAVE_CATEGORY_KEY, name);
    const char *word = json_string_value(json_object_get(f->metadata, key));
    bool slot = word != NULL && strcmp(word, hr_category_name(HR_CATEGORY_OPTIMIZER)) == 0;
    bool state = word != NULL && strcmp(word, hr_category_name(HR_CATEGORY_STATE)) == 0;
    return slot ? HR_CATEGORY_OPTIMIZER : state ? HR_CATEGORY_STATE : HR_CATEGORY_WEIGHTS;
}

static bool read_shape(const json_t *array, hr_shape *shape)
{
    *shape = (hr_shape){.rank = (uint32_t)json_array_size(array)};
    if (!json_is_array(array) || json_array_size(array) > OP_MAX_RANK) {
        return false;
    }
    for (uint32_t k = 0; k < shape->rank; k++) {
        shape->dim[k] = json_integer_value(json_array_get(array, k));
    }
    return true;
}

static hr_status read_tensor(save_file *f, const char *name, const json_t *entry, store *s, hr_err *err)
{
    hr_shape shape;
    hr_dtype dtype = HR_F32;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin = (uint64_t)json_integer_value(json_array_get(offsets, 0));
    uint64_t end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
    if (!read_shape(json_object_get(entry, "shape"), &shape) ||
        !save_type(json_string_value(json_object_get(entry, "dtype")), &dtype) || begin > end ||
        end > f->data_bytes) {
        return HR_FAIL(err, SAVE, "%s: the entry of tensor %s is broken (data ends at byte %" PRIu64 ")",
                       f->path, name, f->data_bytes);
    }
    op_operand o = {.shape = shape, .dtype = dtype};
    uint64_t bytes = 0;
    uint64_t padding = 0;
    if (!operand_bytes(&o, &bytes, &padding) || bytes != end - begin) {
        return HR_FAIL(err, SAVE, "%s: tensor %s needs %" PRIu64 " B, had %" PRIu64, f->path, name, bytes,
                       end - begin);
    }
    stored_tensor *t = store_add(s, name, &shape, dtype, stored_category(f, name));
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for tensor %s of %s", name, f->path);
    }
    memcpy(t->data, f->data + begin, t->bytes);
    f->read_bytes += t->bytes;
    return HR_OK;
}

// The parameters that the file is asked for are [first_param, end_param) of its model, under names without a prefix.
static uint32_t first_param(const save_file *f)
{
    return f->of_teacher ? f->model->own_params : 0;
}

static uint32_t end_param(const save_file *f)
{
    return f->of_teacher ? f->model->param_count : f->model->own_params;
}

static const char *name_of_param(const save_file *f, uint32_t k)
{
    return f->model->params[k].name + (f->of_teacher ? strlen(MODEL_TEACHER) : 0);
}

static bool has_param(const save_file *f, const char *name)
{
    bool has = false;
    for (uint32_t k = first_param(f); k < end_param(f) && !has; k++) {
        has = strcmp(name_of_param(f, k), name) == 0;
    }
    return has;
}

// What adapters learned is not left behind because the model has none there.
static hr_status check_adapters(const save_file *f, const store *s, hr_err *err)
{
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        const stored_tensor *t = &s->tensors.data[k];
        if (t->category != HR_CATEGORY_WEIGHTS || !model_is_adapter_name(t->name) || has_param(f, t->name)) {
            continue;
        }
        const long long rank = t->shape.rank > 0 ? (long long)t->shape.dim[t->shape.rank - 1] : 0;
        (void)HR_FAIL(err, SAVE, "%s has adapters of rank %lld (%s) that %s %s lacks", f->path, rank, t->name,
                      f->of_teacher ? "the teacher of" : "model", f->model->name);
        hr_err_try(err, "-s compress.lora=%lld, with the compress.lora_targets that it was trained with",
                   rank);
        return HR_SAVE;
    }
    return HR_OK;
}

// Weights that the save has as factors only.
static hr_status check_factors(const save_file *f, const store *s, const model_param *p, hr_err *err)
{
    char name[HR_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s_u", p->name);
    const stored_tensor *u = store_find(s, name);
    if (u == NULL || u->shape.rank == 0) {
        return HR_OK;
    }
    const long long rank = (long long)u->shape.dim[u->shape.rank - 1];
    (void)HR_FAIL(err, SAVE, "%s has factors of rank %lld for %s, trained under compress.low_rank", f->path,
                  rank, p->name);
    hr_err_try(err, "%s", save_text(f->metadata, SAVE_SHAPED_KEY));
    return HR_SAVE;
}

// Of a base that was trained with adapters as whole numbers.
static hr_status check_real(const save_file *f, const stored_tensor *t, hr_err *err)
{
    if (t == NULL || dtype_is_real(t->dtype)) {
        return HR_OK;
    }
    (void)HR_FAIL(err, SAVE, "%s has %s as whole numbers of another compress.lora_base than this model's",
                  f->path, t->name);
    if (!f->of_teacher) {
        hr_err_try(err, "%s", save_text(f->metadata, SAVE_SHAPED_KEY));
    }
    return HR_SAVE;
}

// One of the two is a stray: which, the file alone does not say.
static hr_status check_one_of_both(const save_file *f, const store *s, const model_param *p, hr_err *err)
{
    const char *beside = held_beside_real(s, p);
    if (beside == NULL) {
        return HR_OK;
    }
    return HR_FAIL(err, SAVE, "%s has %s as %s and %s of whole numbers beside it: needed one of the two",
                   f->path, p->name, dtype_name(store_find(s, p->name)->dtype), beside);
}

// Every weight and running statistic of the model, or of its teacher, must be there in its shape; adapters may be missing and then
// begin. Slots may be missing (another optimizer); tensors that the program has no use for are passed over.
static hr_status check_against_model(const save_file *f, const store *s, hr_err *err)
{
    const hr_model *m = f->model;
    for (uint32_t k = first_param(f); k < end_param(f); k++) {
        const char *name = name_of_param(f, k);
        const stored_tensor *t = store_find(s, name);
        if (t == NULL && m->params[k].factor == MODEL_FACTOR_NONE && !f->of_teacher) {
            HR_TRY(check_factors(f, s, &m->params[k], err));
        }
        if (!f->of_teacher) {
            HR_TRY(check_one_of_both(f, s, &m->params[k], err));
        }
        if (m->params[k].held != HELD_REAL && held_is_there(s, &m->params[k])) {
            continue;
        }
        HR_TRY(check_real(f, t, err));
        if (t == NULL ? !m->params[k].adapter : !shape_equal(&t->shape, &m->params[k].shape)) {
            char needed[64];
            char had[64] = "nothing";
            if (t != NULL) {
                (void)shape_text(&t->shape, had, sizeof had);
            }
            (void)HR_FAIL(err, SAVE, "%s does not fit %s %s: %s needs %s, had %s", f->path,
                          f->of_teacher ? "the teacher of" : "model", m->name, name,
                          shape_text(&m->params[k].shape, needed, sizeof needed), had);
            if (!f->of_teacher) {
                hr_err_try(err, "%s", save_text(f->metadata, SAVE_SHAPED_KEY));
                shrink_try_preset(f->path, "run", "-s train.resume=", err);
            }
            return HR_SAVE;
        }
    }
    return check_adapters(f, s, err);
}

static hr_status read_counters(hr_engine *e, const save_file *f, hr_err *err)
{
    uint64_t steps = 0;
    uint64_t updates = 0;
    uint64_t pruned_from = 0;
    uint64_t seed = 0;
    data_position position = {0, 0};
    HR_TRY(get_number(f, "steps", &steps, err));
    HR_TRY(get_number(f, "updates", &updates, err));
    if (json_object_get(f->metadata, SAVE_PRUNED_KEY) != NULL) {
        HR_TRY(get_number(f, SAVE_PRUNED_KEY, &pruned_from, err));
    }
    HR_TRY(get_number(f, "epoch", &position.epoch, err));
    HR_TRY(get_number(f, "epoch_samples", &position.samples, err));
    HR_TRY(get_number(f, "seed", &seed, err));
    if (seed != (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SEED)) {
        (void)HR_FAIL(err, SAVE, "%s was trained with seed %" PRIu64 ", train.seed is %" PRId64, f->path,
                      seed, hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SEED));
        hr_err_try(err, "-s train.seed=%" PRIu64, seed);
        return HR_SAVE;
    }
    e->steps = steps;
    e->updates = updates;
    e->pruned_from = pruned_from < updates ? pruned_from : updates;
    e->position = position;
    return HR_OK;
}

static hr_status read_mode(const save_file *f, hr_quantize *mode, hr_err *err)
{
    const char *word = json_string_value(json_object_get(f->metadata, SAVE_QUANTIZE_KEY));
    for (int k = 0; word != NULL && k < HR_QUANTIZE_COUNT; k++) {
        if (strcmp(word, hr_quantize_name((hr_quantize)k)) == 0) {
            *mode = (hr_quantize)k;
            return HR_OK;
        }
    }
    return word == NULL
               ? HR_OK
               : HR_FAIL(err, SAVE, "%s: needed weights of a kind that is known, had '%.64s'", f->path, word);
}

static bool is_format(const save_file *f, const char *schema)
{
    const char *format = json_string_value(json_object_get(f->metadata, "format"));
    return format != NULL && strcmp(format, schema) == 0;
}

static hr_status check_contents(const save_file *f, const store *s, hr_err *err)
{
    uint64_t written = 0;
    HR_TRY(get_number(f, SAVE_CHECKSUM_KEY, &written, err));
    if (f->read_bytes != f->data_bytes) {
        return HR_FAIL(err, SAVE,
                       "%s is damaged: its tensors are %" PRIu64 " B, behind the header are %" PRIu64,
                       f->path, f->read_bytes, f->data_bytes);
    }
    const uint64_t found = save_checksum(s, is_format(f, save_schema_1) ? NULL : f->metadata);
    return found == written
               ? HR_OK
               : HR_FAIL(err, SAVE,
                         "%s is damaged: its tensors and counters need checksum %" PRIu64 ", had %" PRIu64,
                         f->path, written, found);
}

// What a model under compress.low_rank takes of a save without, and says of each layer.
static hr_status decompose_save(hr_engine *e, store *s, hr_err *err)
{
    e->decomposed.count = 0;
    HR_TRY(decompose_store(s, e->model, &e->decomposed, err));
    for (uint32_t k = 0; k < e->decomposed.count; k++) {
        const decomposed *d = &e->decomposed.data[k];
        char line[HR_EVENT_TEXT_MAX];
        (void)snprintf(line, sizeof line, "%.32s: factors are %.2f %% off", d->name,
                       100 * decomposed_error(d));
        trace_note(&e->bus, HR_EVENT_LOG, 0, line);
    }
    return HR_OK;
}

// Whole numbers stand for the weights of the model itself, of a student.
static hr_status check_quantized(const hr_engine *e, const save_file *f, hr_err *err)
{
    const char *mode = hr_quantize_name(f->mode);
    const bool shaped = hr_knob_is_set(&e->knobs, HR_KNOB_COMPRESS_LORA) ||
                        strcmp(hr_knob_text(&e->knobs, HR_KNOB_COMPRESS_LOW_RANK), "none") != 0;
    if (f->of_teacher) {
        return HR_FAIL(err, SAVE, "%s has %s weights: a teacher needs those that were trained", f->path,
                       mode);
    }
    if (shaped) {
        (void)HR_FAIL(
            err, SAVE,
            "%s has %s weights of the whole model: adapters and factors need those that were trained",
            f->path, mode);
        hr_err_try(err, "-s compress.lora=none -s compress.low_rank=none");
        return HR_SAVE;
    }
    return HR_OK;
}

// Whole numbers become what a product with them computes with, weights the factors that the model has in their place. The
// checksum is of them as they are written.
static hr_status take_tensors(hr_engine *e, const save_file *f, store *s, hr_err *err)
{
    HR_TRY(check_contents(f, s, err));
    if (f->mode != HR_QUANTIZE_NONE) {
        HR_TRY(check_quantized(e, f, err));
        store back = {0};
        const hr_status status = quantized_back(s, f->model, f->mode, f->path, &back, err);
        store_deinit(s);
        *s = back;
        if (status == HR_SAVE) {
            shrink_try_preset(f->path, "run", "-s train.resume=", err);
        }
        HR_TRY(status);
    }
    HR_TRY(f->of_teacher ? HR_OK : decompose_save(e, s, err));
    return check_against_model(f, s, err);
}

// The tensors, which are the caller's in any case.
static hr_status read_store(hr_engine *e, save_file *f, json_t *root, store *s, hr_err *err)
{
    const char *name = NULL;
    json_t *entry = NULL;
    hr_status status = HR_OK;
    f->metadata = json_object_get(root, "__metadata__");
    if (!is_format(f, SAVE_SCHEMA) && !is_format(f, save_schema_1)) {
        const char *format = json_string_value(json_object_get(f->metadata, "format"));
        return HR_FAIL(err, SAVE, "%s is no save of headroom: format needs %s, had %s", f->path, SAVE_SCHEMA,
                       format != NULL ? format : "nothing");
    }
    if (json_object_get(f->metadata, SAVE_ADAPTERS_KEY) != NULL) {
        (void)HR_FAIL(err, SAVE, "%s has adapters alone: needed a save that has what they stand beside, too",
                      f->path);
        hr_err_try(err, "the save that it was exported from");
        return HR_SAVE;
    }
    json_object_foreach(root, name, entry)
    {
        if (status == HR_OK && strcmp(name, "__metadata__") != 0) {
            status = read_tensor(f, name, entry, s, err);
        }
    }
    if (status == HR_OK) {
        status = read_mode(f, &f->mode, err);
    }
    return status == HR_OK ? take_tensors(e, f, s, err) : status;
}

static hr_status read_all(hr_engine *e, save_file *f, json_t *root, hr_err *err)
{
    store s = {0};
    hr_status status = read_store(e, f, root, &s, err);
    if (status == HR_OK && !f->of_teacher) {
        status = read_counters(e, f, err);
    }
    if (status != HR_OK) {
        store_deinit(&s);
        return status;
    }
    store *to = f->of_teacher ? &e->teacher : &e->carried;
    store_deinit(to);
    *to = s;
    if (!f->of_teacher) {
        e->quantized = f->mode;
        e->stripped = json_object_get(f->metadata, SAVE_STRIPPED_KEY) != NULL;
        (void)text_copy(e->pruned_by, sizeof e->pruned_by, save_text(f->metadata, SAVE_PRUNES_KEY));
    }
    return HR_OK;
}

static uint64_t parameters_of(const hr_model *m, bool teacher)
{
    uint64_t sum = 0;
    for (uint32_t l = m->own_layers; teacher && l < m->layer_count; l++) {
        sum += m->layers[l].parameters;
    }
    return teacher ? sum : m->most_parameters;
}

// Of a file that is larger than the model's could be: which tensor says that it is another's.
static hr_status say_other_model(const char *path, const json_t *root, const hr_model *m, hr_status status,
                                 hr_err *err)
{
    const bool has_tensors = json_object_size(root) > 1;
    for (uint32_t k = 0; has_tensors && k < m->param_count; k++) {
        hr_shape shape;
        char needed[64];
        const model_param *p = &m->params[k];
        const json_t *entry = json_object_get(root, p->name);
        if (!read_shape(json_object_get(entry, "shape"), &shape) || !shape_equal(&shape, &p->shape)) {
            return HR_FAIL(err, SAVE, "%s does not fit model %s, but '%.64s': it has no %s %s", path, m->name,
                           save_text(json_object_get(root, "__metadata__"), "model"), p->name,
                           shape_text(&p->shape, needed, sizeof needed));
        }
    }
    return status;
}

static hr_status load(hr_engine *e, const hr_model *m, const char *path, bool teacher, hr_err *err)
{
    char *data = NULL;
    size_t bytes = 0;
    int fd = -1;
    json_t *root = NULL;
    const uint64_t most_header_bytes = SAVE_HEADER_BYTES + (uint64_t)m->param_count * SAVE_HEADER_PARAM_BYTES;
    HR_TRY(save_open(path, most_header_bytes, &fd, &root, err));
    const uint64_t limit_bytes = most_header_bytes + parameters_of(m, teacher) * SAVE_PARAMETER_BYTES;
    hr_status status = file_read_rest(fd, path, limit_bytes, &data, &bytes, err);
    status = status == HR_READ && !teacher ? say_other_model(path, root, e->model, status, err) : status;
    save_file f = {.path = path, .data = data, .data_bytes = bytes, .model = m, .of_teacher = teacher};
    status = status == HR_OK ? read_all(e, &f, root, err) : status;
    if (status == HR_SAVE && teacher) {
        hr_err_try(err, "-s compress.distill_weights=FILE, a save of the teacher's own training");
    }
    file_close(fd);
    json_decref(root);
    hr_free(data);
    return status;
}

hr_status engine_load(hr_engine *e, const char *path, hr_err *err)
{
    return load(e, e->model, path, false, err);
}

hr_status engine_load_teacher(hr_engine *e, const hr_model *m, hr_err *err)
{
    const char *own = hr_knob_text(&e->knobs, HR_KNOB_COMPRESS_DISTILL_WEIGHTS);
    const char *path = own[0] != '\0' ? own : m->teacher_weights;
    const bool has_teacher = m->own_params < m->param_count;
    store_deinit(&e->teacher);
    return has_teacher && path != NULL && !e->plan_only ? load(e, m, path, true, err) : HR_OK;
}
