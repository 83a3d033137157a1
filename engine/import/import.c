// SPDX-License-Identifier: Apache-2.0
// Another program's file as a preset: which reader takes it, and what stands around the layers.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/preset.h"

#include "base/file_name.h"
#include "base/torch_file.h"
#include "families.h"
#include "gguf.h"
#include "importer.h"
#include "keras.h"
#include "knobs/preset_import.h"
#include "onnx.h"
#include "safetensors.h"
#include "weights.h"

// ---- the preset -----------------------------------------------------------------------------------------------

// Weights in two bytes are trained under the mixed policy of that type, with float32 weights beside them.
static const char *policy_of(importer *m)
{
    config *c = &m->c;
    const char *key = config_find(c, "dtype") != NULL ? "dtype" : "torch_dtype";
    const char *type = config_word(c, key, "float32");
    const char *plain = strncmp(type, "torch.", 6) == 0 ? type + 6 : type;
    const char *policy = strcmp(plain, "bfloat16") == 0  ? "mixed_bfloat16"
                         : strcmp(plain, "float16") == 0 ? "mixed_float16"
                                                         : "float32";
    if (policy[0] == 'f' && strcmp(plain, "float32") != 0) {
        config_refuse_value(c, key, "needs float32, float16 or bfloat16");
    }
    return policy;
}

// Keys of any family that change parameters in a way that is not in the layer language, and the word that does not.
static void refuse_what_changes_parameters(config *c)
{
    static const struct {
        const char *key, *harmless, *instead;
    } rows[] = {
        {"per_layer_config", NULL, "needs to be empty: layers that differ from one another are not read"},
        {"pruned_heads", NULL, "needs to be empty: heads that are missing in single layers are not read"},
        {"position_embedding_type", "absolute",
         "needs absolute: relative positions are not in the layer language"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const json_t *value = config_find(c, rows[k].key);
        const bool empty = value == NULL || (json_is_object(value) && json_object_size(value) == 0);
        const bool harmless = rows[k].harmless != NULL && json_is_string(value) &&
                              strcmp(json_string_value(value), rows[k].harmless) == 0;
        if (!empty && !harmless) {
            config_refuse_value(c, rows[k].key, "%s", rows[k].instead);
        }
    }
    if (config_flag(c, "sinusoidal_pos_embds", false)) {
        config_refuse(c, "sinusoidal_pos_embds",
                      "needs to be false: a table that is not trained is not in the layer language");
    }
}

static void put_model(const importer *m, const char *name, text *model)
{
    char parameters[32], length[48] = "";
    model_number(m->t.parameters, parameters);
    if (m->sequence > 0) {
        (void)snprintf(length, sizeof length, ", %" PRId64 " tokens", m->sequence);
    }
    text_append(model, "title: \"%s: %s%s\"\n", name, m->architecture, length);
    text_append(model, "description: \"%s as its %s says it: %s parameters.\"\n", name, m->file, parameters);
    if (m->t.notes.length > 0) {
        text_append(model, "note: \"%s\"\n", m->t.notes.data);
    }
    text_append(model, "model:\n  name: %s\n", name);
    text_append_bytes(model, m->t.head.data, m->t.head.length);
    text_append(model, "  layers:\n");
    text_append_bytes(model, m->t.layers.data, m->t.layers.length);
}

// The groups of a preset, and what any family says of them.
static hr_status read_around(importer *m, text *knobs)
{
    if (config_status(&m->c) != HR_OK) {
        return config_status(&m->c);
    }
    const char *policy = policy_of(m);
    refuse_what_changes_parameters(&m->c);
    if (config_find(&m->c, "quantization_config") != NULL) {
        model_note(&m->t, "quantization_config is left out: weights are as precision.policy has them.");
    }
    if (m->t.large[0] > 0) {
        config_refuse(&m->c, "it",
                      "says a tensor of %" PRId64 " x %" PRId64
                      ", beyond the largest tensor of 2^40 elements",
                      m->t.large[0], m->t.large[1]);
    }
    HR_TRY(config_status(&m->c));
    if (m->c.absent[0] != '\0') {
        model_note(&m->t, "The file leaves sizes out, which are then the library's defaults: %s.",
                   m->c.absent);
    }
    HR_TRY(m->weights != NULL ? weights_compare_file(m->weights, &m->t)
                              : weights_compare(&m->c, m->weights_named, &m->t));
    text_append(knobs, "device: {kind: plan}\nprecision: {policy: %s}\n%s", policy, m->knobs);
    return HR_OK;
}

static hr_status finish(const importer *m, const char *name, text *model, const text *knobs, hr_err *err)
{
    char plain[MODEL_NAME + 1];
    model_name(name, plain);
    if (!model_text_failed(&m->t)) {
        put_model(m, plain, model);
    }
    if (model_text_failed(&m->t) || model->failed || knobs->failed) {
        return HR_FAIL(err, NOMEM, "%s: no memory to make a preset of it", m->c.path);
    }
    return HR_OK;
}

// ---- which reader ---------------------------------------------------------------------------------------------

static hr_status import_hugging_face(importer *m, text *knobs)
{
    const import_family write = family_of_config(m);
    if (write != NULL) {
        write(m);
    }
    return read_around(m, knobs);
}

static bool is_keras(const config *c)
{
    return json_is_string(json_object_get(c->root, "class_name")) &&
           json_object_get(c->root, "config") != NULL;
}

// What headroom itself writes behind --json.
static bool is_own(const config *c)
{
    const char *schema = json_string_value(json_object_get(c->root, "schema"));
    return schema != NULL && strncmp(schema, "headroom.", strlen("headroom.")) == 0;
}

static hr_status refuse_own(importer *m, text *knobs)
{
    (void)knobs;
    config_refuse_value(&m->c, "schema", "says that this is no network but what headroom writes");
    hr_err_try(m->c.err, "headroom compare '%.200s' PRESET, for a report", m->c.path);
    return config_status(&m->c);
}

static hr_file_kind by_name(const char *path)
{
    return file_kind_named(path) == HR_FILE_CONFIG ? HR_FILE_CONFIG : HR_FILE_JSON;
}

static hr_file_kind kind_of(const char *path, const config *c)
{
    return is_own(c)     ? HR_FILE_REPORT
           : is_keras(c) ? HR_FILE_KERAS
           : json_object_get(c->root, "architectures") != NULL ||
                   json_object_get(c->root, "model_type") != NULL
               ? HR_FILE_CONFIG
               : by_name(path);
}

hr_file_kind preset_import_json_kind(const char *path)
{
    config c = {0};
    hr_err err;
    const bool is_read = config_open(path, &c, &err) == HR_OK;
    const hr_file_kind kind = is_read ? kind_of(path, &c) : by_name(path);
    config_close(&c);
    return kind;
}

static const struct {
    hr_status (*read)(importer *m, text *knobs);
    const char *file; // what the file is called in a description
} json_readers[] = {
    [HR_FILE_KERAS] = {import_keras, "Keras file"},
    [HR_FILE_REPORT] = {refuse_own, ""},
    [HR_FILE_CONFIG] = {import_hugging_face, "Hugging Face config.json"},
    [HR_FILE_JSON] = {import_hugging_face, "Hugging Face config.json"},
};

// `weights`: of the file beside the config.json that was named instead of it; NULL: none was.
static hr_status import_json(const char *path, const tensors *weights, const char *name, text *model,
                             text *knobs, hr_err *err)
{
    importer m = {.knobs = "", .weights_named = weights};
    const bool is_archive = file_kind_named(path) == HR_FILE_KERAS;
    hr_status status = is_archive ? keras_open(path, &m.c, err) : config_open(path, &m.c, err);
    if (status == HR_OK) {
        const hr_file_kind kind = kind_of(path, &m.c);
        m.file = json_readers[kind].file;
        status = json_readers[kind].read(&m, knobs);
    }
    status = status == HR_OK ? finish(&m, name, model, knobs, err) : status;
    model_text_deinit(&m.t);
    config_close(&m.c);
    return status;
}

// ---- headers of weights ---------------------------------------------------------------------------------------

static hr_status read_gguf(importer *m, const gguf *g, text *knobs)
{
    const import_family write =
        family_of_gguf(m, gguf_word(g, "general.architecture"), gguf_expert_count(g) > 0);
    hr_status status = config_status(&m->c);
    m->c.root = status == HR_OK ? gguf_config(g, &status) : NULL;
    HR_TRY(status);
    write(m);
    if (gguf_split_count(g) > 1) {
        model_note(&m->t, "It is one of %" PRId64 " files: its parameters are not compared.",
                   gguf_split_count(g));
        m->weights = NULL;
    }
    return read_around(m, knobs);
}

static hr_status import_gguf(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    gguf g = {0};
    importer m = {.c = {.path = path, .err = err}, .knobs = "", .file = "GGUF header", .weights = &g.list};
    hr_status status = gguf_read(path, &g, err);
    status = status == HR_OK ? read_gguf(&m, &g, knobs) : status;
    status = status == HR_OK ? finish(&m, name, model, knobs, err) : status;
    model_text_deinit(&m.t);
    config_close(&m.c);
    gguf_close(&g);
    return status;
}

// A file that names no network, with what it is.
static hr_status refuse_weights(const char *path, const tensors *t, hr_err *err)
{
    char parameters[32];
    model_number(t->parameters, parameters);
    const hr_status status =
        HR_FAIL(err, PRESET,
                "%.200s: needed a config.json beside it, which says the network, had %s parameters alone",
                path, parameters);
    hr_err_try(err, "headroom plan '%.200s', for what they take", path);
    return status;
}

// The config.json beside it says the network.
static hr_status import_safetensors(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    char beside[WEIGHTS_PATH_BYTES];
    tensors t = {0};
    hr_status status = safetensors_read(path, &t, err);
    if (status == HR_OK) {
        status = weights_config_beside(path, beside) ? import_json(beside, &t, name, model, knobs, err)
                                                     : refuse_weights(path, &t, err);
    }
    tensors_deinit(&t);
    return status;
}

static hr_status import_json_alone(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    return import_json(path, NULL, name, model, knobs, err);
}

static hr_status refuse_checkpoint(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    (void)name, (void)model, (void)knobs;
    return torch_file_as_network(path, err);
}

hr_status preset_import(const char *path, const char *name, bool lets_pass, text *model, text *knobs,
                        hr_err *err)
{
    typedef hr_status (*reader)(const char *path, const char *name, text *model, text *knobs, hr_err *err);
    static const reader readers[] = {
        [HR_FILE_GGUF] = import_gguf,
        [HR_FILE_KERAS] = import_json_alone,
        [HR_FILE_SAFETENSORS] = import_safetensors,
        [HR_FILE_CONFIG] = import_json_alone,
        [HR_FILE_JSON] = import_json_alone,
        [HR_FILE_CHECKPOINT] = refuse_checkpoint,
    };
    const hr_file_kind named = file_kind_named(path);
    if (named == HR_FILE_ONNX) {
        return onnx_import(path, name, lets_pass, model, knobs, err);
    }
    return readers[file_kind_is_import(named) ? named : HR_FILE_JSON](path, name, model, knobs, err);
}
