// SPDX-License-Identifier: Apache-2.0
// Statistics of the weights at hand, one tensor at a time, so that only one is on the host.
#include "headroom/weight_stats.h"

#include <math.h>

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

hr_status hr_engine_weight_stats(const hr_engine *e, hr_weight_stats *out, hr_err *err)
{
    *out = (hr_weight_stats){NULL, 0};
    if (!engine_has_weights(e)) {
        const hr_status status = HR_FAIL(err, STATE, "there are no weights before a run that computes");
        hr_err_try(err, "-s device.kind=cpu");
        return status;
    }
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
