// SPDX-License-Identifier: Apache-2.0
// Statistics of the weights at hand, one tensor at a time, so that only one is on the host; their elements, and the norm of their
// gradients.
#include "headroom/weight_stats.h"

#include <math.h>
#include <string.h>

#include "headroom/words.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "train/engine_impl.h"

static void note_extremes(hr_weight *w, const double *values)
{
    double sum = 0, squares = 0;
    uint64_t zeros = 0;
    w->least = w->most = w->mean = (double)NAN;
    for (uint64_t k = 0; k < w->elements; k++) {
        const double value = values[k];
        if (!isfinite(value)) {
            w->nonfinite++;
            continue;
        }
        w->least = value > w->least ? w->least : value; // also from NaN
        w->most = value < w->most ? w->most : value;
        sum += value;
        squares += value * value;
        zeros += value == 0;
    }
    w->norm = sqrt(squares);
    w->mean = w->elements > w->nonfinite ? sum / (double)(w->elements - w->nonfinite) : (double)NAN;
    w->zeros = w->elements > 0 ? (double)zeros / (double)w->elements : (double)NAN;
}

static void fill_histogram(hr_weight *w, const double *values)
{
    const double width = (w->most - w->least) / HR_WEIGHT_BINS;
    for (uint64_t k = 0; k < w->elements; k++) {
        if (isfinite(values[k])) {
            const double at = width > 0 ? (values[k] - w->least) / width : 0;
            w->histogram[at < HR_WEIGHT_BINS - 1 ? (size_t)at : HR_WEIGHT_BINS - 1]++;
        }
    }
}

static hr_status describe(const stored_tensor *t, hr_weight *w, hr_err *err)
{
    (void)text_copy(w->name, sizeof w->name, t->name);
    (void)text_copy(w->dtype, sizeof w->dtype, dtype_name(t->dtype));
    (void)shape_text(&t->shape, w->shape, sizeof w->shape);
    (void)shape_elements(&t->shape, &w->elements);
    double *values = hr_calloc(w->elements + 1, sizeof *values);
    if (values == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to look at %s", t->name);
    }
    store_values(t, values);
    note_extremes(w, values);
    fill_histogram(w, values);
    hr_free(values);
    return HR_OK;
}

// A teacher's are not the model's own: the store has none of them.
static hr_status look_at(const hr_engine *e, const tensor *t, hr_weight_stats *out, hr_err *err)
{
    store one = {0};
    hr_status status = store_take_one(&one, e->build, t->name, err);
    if (status == HR_OK) {
        status = describe(&one.tensors.data[0], &out->weights[out->count], err);
        out->count += status == HR_OK;
    }
    store_deinit(&one);
    return status == HR_STATE ? HR_OK : status;
}

static hr_status check_weights(const hr_engine *e, hr_err *err)
{
    if (engine_has_weights(e)) {
        return HR_OK;
    }
    (void)HR_FAIL(err, STATE, "there are no weights before a run that computes");
    hr_err_try(err, "-s device.kind=cpu");
    return HR_STATE;
}

hr_status hr_engine_weight_stats(const hr_engine *e, hr_weight_stats *out, hr_err *err)
{
    *out = (hr_weight_stats){NULL, 0};
    HR_TRY(check_weights(e, err));
    const program *p = e->build->programs[BUILD_TRAIN];
    out->weights = hr_calloc(p->persistent_count + 1, sizeof *out->weights);
    hr_status status = out->weights != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the weights");
    for (uint32_t k = 0; k < p->persistent_count && status == HR_OK; k++) {
        if (p->tensors[k].category == HR_CATEGORY_WEIGHTS) {
            status = look_at(e, &p->tensors[k], out, err);
        }
    }
    if (status != HR_OK) {
        hr_weight_stats_deinit(out);
    }
    return status;
}

void hr_weight_stats_deinit(hr_weight_stats *w)
{
    hr_free(w->weights);
    *w = (hr_weight_stats){NULL, 0};
}

// ---- elements -------------------------------------------------------------------------------------------------------

static bool is_weight(const tensor *t)
{
    return t->category == HR_CATEGORY_WEIGHTS && !t->of_teacher;
}

static hr_status refuse_name(const program *p, const char *name, hr_err *err)
{
    const char **names = hr_calloc(p->persistent_count + 1, sizeof *names);
    size_t count = 0;
    for (uint32_t k = 0; names != NULL && k < p->persistent_count; k++) {
        if (is_weight(&p->tensors[k])) {
            names[count++] = p->tensors[k].name;
        }
    }
    const char *near = names == NULL ? NULL : hr_word_nearest(name, names, count);
    (void)HR_FAIL(err, STATE, "no weight is called '%.96s'%s%s%s", name,
                  near == NULL ? "" : " — did you mean '", near == NULL ? "" : near,
                  near == NULL ? "" : "'?");
    hr_free(names);
    return HR_STATE;
}

static hr_status check_name(const hr_engine *e, const char *name, hr_err *err)
{
    HR_TRY(check_weights(e, err));
    const program *p = e->build->programs[BUILD_TRAIN];
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_weight(&p->tensors[k]) && strcmp(p->tensors[k].name, name) == 0) {
            return HR_OK;
        }
    }
    return refuse_name(p, name, err);
}

hr_status hr_engine_weight_values(const hr_engine *e, const char *name, hr_weight_values *out, hr_err *err)
{
    store one = {0};
    *out = (hr_weight_values){NULL, 0};
    HR_TRY(check_name(e, name, err));
    hr_status status = store_take_one(&one, e->build, name, err);
    if (status == HR_OK) {
        uint64_t count = 0;
        (void)shape_elements(&one.tensors.data[0].shape, &count);
        out->values = hr_calloc(count + 1, sizeof *out->values);
        status = out->values != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory to look at %s", name);
        out->count = status == HR_OK ? count : 0;
    }
    if (status == HR_OK) {
        store_values(&one.tensors.data[0], out->values);
    }
    store_deinit(&one);
    return status;
}

void hr_weight_values_deinit(hr_weight_values *values)
{
    hr_free(values->values);
    *values = (hr_weight_values){NULL, 0};
}

hr_status hr_engine_set_weight(hr_engine *e, const char *name, const double *values, uint64_t count,
                               hr_err *err)
{
    HR_TRY(check_name(e, name, err));
    HR_TRY(store_set_one(e->build, name, values, count, err));
    e->sha_steps = UINT64_MAX; // the hash of this step is another one now
    return HR_OK;
}

// ---- gradients ------------------------------------------------------------------------------------------------------

hr_status hr_engine_gradient_norm(const hr_engine *e, double *norm, hr_err *err)
{
    executor_tensor gradient;
    uint32_t at = 0, count = 0;
    double squares = 0;
    *norm = (double)NAN;
    while (e->build != NULL && e->build->arithmetic && executor_gradient(e->build->x, &at, &gradient)) {
        HR_TRY(store_add_squares(e->build, gradient.t, gradient.address, &squares, err));
        count++;
    }
    *norm = count > 0 ? sqrt(squares) : (double)NAN;
    return HR_OK;
}
