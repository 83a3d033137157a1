// SPDX-License-Identifier: Apache-2.0
#include "train/adapted.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "model/adapters.h"
#include "train/held.h"
#include "train/save_write.h"

static hr_status no_memory(const model_param *p, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for %s with its adapter", p->name);
}

// ---- merged ---------------------------------------------------------------------------------------------------

// w[rows, units] += scale·a[rows, rank]·b[rank, units]
static void add_product(const stored_tensor *a, const stored_tensor *b, double scale, stored_tensor *w)
{
    const uint64_t rank = (uint64_t)a->shape.dim[a->shape.rank - 1];
    const uint64_t units = (uint64_t)w->shape.dim[w->shape.rank - 1];
    uint64_t elements = 0;
    (void)shape_elements(&w->shape, &elements);
    for (uint64_t row = 0; row < elements / units; row++) {
        double *to = (double *)w->data + row * units;
        for (uint64_t r = 0; r < rank; r++) {
            const double factor = scale * ((const double *)a->data)[row * rank + r];
            const double *from = (const double *)b->data + r * units;
            for (uint64_t u = 0; u < units; u++) {
                to[u] += factor * from[u];
            }
        }
    }
}

// The weights as float64, whatever they are held as.
static hr_status add_wide(const store *weights, const model_param *p, store *to, stored_tensor *out,
                          hr_err *err)
{
    float *real = NULL;
    uint64_t elements = 0;
    const stored_tensor *from = store_find(weights, p->name);
    if (p->held != HELD_REAL) {
        HR_TRY(held_real(weights, p, &real, err));
    }
    stored_tensor *wide = store_add(to, p->name, &p->shape, HR_F64, p->category);
    (void)shape_elements(&p->shape, &elements);
    if (wide != NULL && real == NULL) {
        store_values(from, wide->data);
    }
    for (uint64_t k = 0; wide != NULL && real != NULL && k < elements; k++) {
        ((double *)wide->data)[k] = (double)real[k];
    }
    hr_free(real);
    if (wide == NULL) {
        return no_memory(p, err);
    }
    *out = *wide;
    return HR_OK;
}

// `wide` has room for the three tensors as float64; a stored_tensor is a handle of data that do not move.
static hr_status merge_one(const store *weights, const hr_model *m, const model_adapter *adapter, store *wide,
                           store *to, hr_err *err)
{
    const model_param *p = &m->params[adapter->weights];
    const hr_dtype dtype = store_find(weights, m->params[adapter->a].name)->dtype;
    stored_tensor w, a, b;
    HR_TRY(add_wide(weights, p, wide, &w, err));
    HR_TRY(add_wide(weights, &m->params[adapter->a], wide, &a, err));
    HR_TRY(add_wide(weights, &m->params[adapter->b], wide, &b, err));
    add_product(&a, &b, adapter->scale, &w);
    return store_add_as(to, p->name, &w, dtype) != NULL ? HR_OK : no_memory(p, err);
}

static hr_status check_alone(const hr_model *m, const model_adapter *adapter, hr_err *err)
{
    if (adapter->plain_node == HR_NO_ID) {
        return HR_OK;
    }
    const uint32_t layer = m->nodes[adapter->plain_node].layer;
    (void)HR_FAIL(err, MODEL, "%s has an adapter, and %s %.64s reads it without: they cannot be merged",
                  m->params[adapter->weights].name, layer == HR_NO_ID ? "model" : "layer",
                  layer == HR_NO_ID ? m->name : m->layers[layer].name);
    hr_err_try(err, "--adapters in place of --merge");
    return HR_MODEL;
}

static hr_status merge_or_copy(const store *weights, const hr_model *m, const model_adapter_list *adapters,
                               uint32_t param, store *to, hr_err *err)
{
    const model_param *p = &m->params[param];
    const model_adapter *adapter = model_adapter_of(adapters, param);
    if (p->adapter) {
        return HR_OK;
    }
    if (adapter == NULL) {
        const stored_tensor *t = store_find(weights, p->name);
        return store_add_as(to, p->name, t, t->dtype) != NULL ? HR_OK : no_memory(p, err);
    }
    store wide = {0};
    HR_TRY(check_alone(m, adapter, err));
    const hr_status status = merge_one(weights, m, adapter, &wide, to, err);
    store_deinit(&wide);
    return status;
}

hr_status adapted_merge(const store *weights, const hr_model *m, store *to, hr_err *err)
{
    model_adapter_list adapters;
    hr_status status = model_adapters_of(m, &adapters, err);
    for (uint32_t k = 0; k < m->own_params && status == HR_OK; k++) {
        status = merge_or_copy(weights, m, &adapters, k, to, err);
    }
    vec_deinit(&adapters);
    return status;
}

// ---- alone ----------------------------------------------------------------------------------------------------

hr_status adapted_alone(const store *weights, const hr_model *m, store *to, hr_err *err)
{
    for (uint32_t k = 0; k < m->own_params; k++) {
        const model_param *p = &m->params[k];
        const stored_tensor *t = store_find(weights, p->name);
        if ((p->adapter || p->category == HR_CATEGORY_STATE) &&
            store_add_as(to, p->name, t, t->dtype) == NULL) {
            return no_memory(p, err);
        }
    }
    return HR_OK;
}

static bool is_adapter(const hr_model *m, const char *name)
{
    bool is = false;
    for (uint32_t k = 0; k < m->own_params && !is; k++) {
        is = m->params[k].adapter && strcmp(m->params[k].name, name) == 0;
    }
    return is;
}

static void hash_base(const store *weights, const hr_model *m, char out[HR_SHA256_TEXT_MAX])
{
    sha256 hash;
    sha256_init(&hash);
    for (uint32_t k = 0; k < weights->tensors.count; k++) {
        const stored_tensor *t = &weights->tensors.data[k];
        if (t->category == HR_CATEGORY_WEIGHTS && !is_adapter(m, t->name)) {
            sha256_add(&hash, t->data, t->bytes);
        }
    }
    sha256_text(&hash, out);
}

static json_t *targets_of(const hr_model *m, const model_adapter_list *adapters)
{
    text names = {0};
    for (uint32_t k = 0; k < adapters->count; k++) {
        text_append(&names, "%s%s", k > 0 ? "," : "", m->params[adapters->data[k].weights].name);
    }
    json_t *all = names.failed || names.data == NULL ? NULL : json_string(names.data);
    text_deinit(&names);
    return all;
}

json_t *adapted_about(const store *weights, const hr_model *m)
{
    char sha[HR_SHA256_TEXT_MAX], rank[24], alpha[32];
    model_adapter_list adapters;
    json_t *about = NULL, *targets = NULL;
    if (model_adapters_of(m, &adapters, NULL) == HR_OK && adapters.count > 0) {
        const model_adapter *first = &adapters.data[0];
        const int64_t r = m->params[first->b].shape.dim[m->params[first->b].shape.rank - 2];
        (void)snprintf(rank, sizeof rank, "%lld", (long long)r);
        (void)snprintf(alpha, sizeof alpha, "%.9g", first->scale * (double)r);
        hash_base(weights, m, sha);
        targets = targets_of(m, &adapters);
        about = json_pack("{s:s, s:s, s:s, s:O, s:s, s:s}", SAVE_ADAPTERS_KEY, "1", "lora_rank", rank,
                          "lora_alpha", alpha, "lora_targets", targets, "base_held",
                          held_name(m->params[first->weights].held), "base_sha256", sha);
    }
    json_decref(targets);
    vec_deinit(&adapters);
    return about;
}
