// SPDX-License-Identifier: Apache-2.0
#include "train/decompose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "train/svd.h"

const char *factor_weights_name(const char *factor, char name[HR_NAME_MAX])
{
    const char *end = strrchr(factor, '_');
    (void)snprintf(name, HR_NAME_MAX, "%.*s", end == NULL ? 0 : (int)(end - factor), factor);
    return name;
}

double decomposed_error(const decomposed *d)
{
    return d->whole > 0 ? sqrt(d->lost / d->whole) : 0;
}

// Weights [area, m, n] and their factors, which the model has as parameters u, v and, where area is not 1, core.
typedef struct task {
    const stored_tensor *weights;
    const model_param *u, *v, *core;
    int64_t area, m, n, in, out; // ranks of u and v
    double *w, *a;               // [area * m * n] the weights; the same for LAPACK to take apart
    double *left, *s, *right;
    double *made[3]; // u, v, core
    double lost, whole;
} task;

static double *reals(int64_t a, int64_t b)
{
    return hr_calloc((size_t)(a * b), sizeof(double));
}

static void drop(task *t)
{
    hr_free(t->w);
    hr_free(t->a);
    hr_free(t->left);
    hr_free(t->s);
    hr_free(t->right);
    for (int k = 0; k < 3; k++) {
        hr_free(t->made[k]);
    }
}

// What the largest matrix of the two unfoldings needs.
static bool take_memory(task *t)
{
    const int64_t rows = t->area * t->m, columns = t->core != NULL ? t->area * t->n : t->n;
    const int64_t tall = rows < t->n ? rows : t->n, flat = t->m < columns ? t->m : columns;
    const int64_t left = rows * tall > t->m * flat ? rows * tall : t->m * flat;
    const int64_t right = tall * t->n > flat * columns ? tall * t->n : flat * columns;
    t->w = reals(rows, t->n);
    t->a = reals(rows, t->n);
    t->left = reals(left, 1);
    t->right = reals(right, 1);
    t->s = reals(tall > flat ? tall : flat, 1);
    t->made[0] = reals(t->m, t->in);
    t->made[1] = reals(t->out, t->n);
    t->made[2] = reals(t->area * t->in, t->out);
    return t->w && t->a && t->left && t->right && t->s && t->made[0] && t->made[1] && t->made[2];
}

static double squares(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        sum += x[k] * x[k];
    }
    return sum;
}

// ---- two factors ----------------------------------------------------------------------------------------------------

static hr_status make_two(task *t, hr_err *err)
{
    const int64_t k = t->m < t->n ? t->m : t->n;
    memcpy(t->a, t->w, (size_t)(t->m * t->n) * sizeof *t->a);
    HR_TRY(svd(t->a, t->m, t->n, t->left, t->s, t->right, err));
    for (int64_t r = 0; r < t->in; r++) {
        const double root = sqrt(t->s[r]);
        for (int64_t i = 0; i < t->m; i++) {
            t->made[0][i * t->in + r] = t->left[i * k + r] * root;
        }
        for (int64_t j = 0; j < t->n; j++) {
            t->made[1][r * t->n + j] = t->right[r * t->n + j] * root;
        }
    }
    t->lost = squares(t->s + t->in, k - t->in);
    return HR_OK;
}

// ---- three ------------------------------------------------------------------------------------------------------------

// Orthogonal columns for the channels that come in: [m, area * n] has them on the left.
static hr_status make_u(task *t, hr_err *err)
{
    const int64_t columns = t->area * t->n, k = t->m < columns ? t->m : columns;
    for (int64_t p = 0; p < t->area; p++) {
        for (int64_t i = 0; i < t->m; i++) {
            memcpy(t->a + i * columns + p * t->n, t->w + (p * t->m + i) * t->n, (size_t)t->n * sizeof *t->a);
        }
    }
    HR_TRY(svd(t->a, t->m, columns, t->left, t->s, t->right, err));
    for (int64_t i = 0; i < t->m; i++) {
        for (int64_t r = 0; r < t->in; r++) {
            t->made[0][i * t->in + r] = t->left[i * k + r];
        }
    }
    return HR_OK;
}

// Orthogonal rows for those that go out: [area * m, n] has them on the right.
static hr_status make_v(task *t, hr_err *err)
{
    memcpy(t->a, t->w, (size_t)(t->area * t->m * t->n) * sizeof *t->a);
    HR_TRY(svd(t->a, t->area * t->m, t->n, t->left, t->s, t->right, err));
    memcpy(t->made[1], t->right, (size_t)(t->out * t->n) * sizeof *t->right);
    return HR_OK;
}

// core[p] = uᵀ · w[p] · vᵀ; `a` holds w[p] · vᵀ.
static void make_core(task *t)
{
    const double *u = t->made[0], *v = t->made[1];
    for (int64_t row = 0; row < t->area * t->m; row++) {
        for (int64_t b = 0; b < t->out; b++) {
            double sum = 0;
            for (int64_t j = 0; j < t->n; j++) {
                sum += t->w[row * t->n + j] * v[b * t->n + j];
            }
            t->a[row * t->out + b] = sum;
        }
    }
    for (int64_t row = 0; row < t->area * t->m; row++) {
        double *core = t->made[2] + row / t->m * t->in * t->out;
        for (int64_t a = 0; a < t->in; a++) {
            for (int64_t b = 0; b < t->out; b++) {
                core[a * t->out + b] += u[row % t->m * t->in + a] * t->a[row * t->out + b];
            }
        }
    }
}

// Columns and rows are orthogonal: what the core does not have is lost.
static hr_status make_three(task *t, hr_err *err)
{
    HR_TRY(make_u(t, err));
    HR_TRY(make_v(t, err));
    make_core(t);
    t->lost = fmax(t->whole - squares(t->made[2], t->area * t->in * t->out), 0);
    return HR_OK;
}

// ---- the store --------------------------------------------------------------------------------------------------------

static hr_status put(store *s, const model_param *p, const double *values, hr_err *err)
{
    stored_tensor *t = store_add(s, p->name, &p->shape, HR_F64, HR_CATEGORY_WEIGHTS);
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %s", p->name);
    }
    memcpy(t->data, values, t->bytes);
    return HR_OK;
}

static hr_status decompose(store *s, task *t, hr_err *err)
{
    if (!take_memory(t)) {
        return HR_FAIL(err, NOMEM, "no host memory to decompose %s", t->weights->name);
    }
    store_values(t->weights, t->w);
    t->whole = squares(t->w, t->area * t->m * t->n);
    HR_TRY((t->core != NULL ? make_three : make_two)(t, err));
    HR_TRY(put(s, t->u, t->made[0], err));
    HR_TRY(t->core != NULL ? put(s, t->core, t->made[2], err) : HR_OK);
    return put(s, t->v, t->made[1], err);
}

static bool is_factor_of(const model_param *p, const model_param *u)
{
    char a[HR_NAME_MAX], b[HR_NAME_MAX];
    return p->factor != MODEL_FACTOR_NONE && p->layer == u->layer &&
           strcmp(factor_weights_name(p->name, a), factor_weights_name(u->name, b)) == 0;
}

// The weights' own shape must be there.
static bool fits(const task *t)
{
    const hr_shape *w = &t->weights->shape;
    const hr_shape *kernel = t->core != NULL ? &t->core->shape : &t->u->shape;
    bool same = w->rank == t->u->shape.rank && w->dim[w->rank - 2] == t->m && w->dim[w->rank - 1] == t->n;
    for (uint32_t k = 0; k + 2 < w->rank && same; k++) {
        same = w->dim[k] == kernel->dim[k];
    }
    return same;
}

// Factors of one parameter stand one behind the other: u, core, v. False: there is nothing to do.
static bool find_task(const store *s, const hr_model *m, uint32_t first, task *t)
{
    char name[HR_NAME_MAX];
    *t = (task){.u = &m->params[first], .area = 1};
    for (uint32_t k = first; k < m->param_count && is_factor_of(&m->params[k], t->u); k++) {
        t->v = m->params[k].factor == MODEL_FACTOR_V ? &m->params[k] : t->v;
        t->core = m->params[k].factor == MODEL_FACTOR_CORE ? &m->params[k] : t->core;
    }
    t->weights = store_find(s, factor_weights_name(t->u->name, name));
    if (t->u->factor != MODEL_FACTOR_U || t->v == NULL || t->weights == NULL ||
        store_find(s, t->u->name) != NULL) {
        return false;
    }
    const hr_shape *u = &t->u->shape, *v = &t->v->shape;
    t->m = u->dim[u->rank - 2];
    t->in = u->dim[u->rank - 1];
    t->out = v->dim[v->rank - 2];
    t->n = v->dim[v->rank - 1];
    t->area = t->core != NULL ? t->core->shape.dim[0] * t->core->shape.dim[1] : 1;
    return fits(t);
}

static hr_status note(decomposed_list *list, const char *layer, const task *t, hr_err *err)
{
    decomposed *last = list->count > 0 ? &list->data[list->count - 1] : NULL;
    if (last == NULL || strcmp(last->name, layer) != 0) {
        last = vec_push(list);
        if (last == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the errors of factors");
        }
        (void)text_copy(last->name, sizeof last->name, layer);
    }
    last->lost += t->lost;
    last->whole += t->whole;
    return HR_OK;
}

hr_status decompose_store(store *s, const hr_model *m, decomposed_list *list, hr_err *err)
{
    hr_status status = HR_OK;
    for (uint32_t k = 0; k < m->param_count && status == HR_OK; k++) {
        task t;
        if (find_task(s, m, k, &t)) {
            const stored_tensor weights = *t.weights; // the store's own may move
            t.weights = &weights;
            status = decompose(s, &t, err);
            drop(&t);
            status = status == HR_OK ? note(list, m->layers[t.u->layer].name, &t, err) : status;
        }
    }
    return status;
}

hr_status decompose_energy(const stored_tensor *weights, int64_t ranks, double *energy, hr_err *err)
{
    const int64_t *dim = weights->shape.dim;
    const model_param core = {.name = weights->name};
    task t = {.weights = weights,
              .core = &core,
              .area = dim[0] * dim[1],
              .m = dim[2],
              .n = dim[3],
              .in = ranks,
              .out = ranks};
    hr_status status = HR_OK;
    if (take_memory(&t)) {
        store_values(weights, t.w);
        status = make_three(&t, err);
    } else {
        status = HR_FAIL(err, NOMEM, "no host memory to decompose %s", weights->name);
    }
    memset(energy, 0, (size_t)(ranks * ranks) * sizeof *energy);
    for (int64_t k = 0; status == HR_OK && k < t.area * ranks * ranks; k++) {
        energy[k % (ranks * ranks)] += t.made[2][k] * t.made[2][k];
    }
    drop(&t);
    return status;
}
