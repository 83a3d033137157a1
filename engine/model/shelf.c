// SPDX-License-Identifier: Apache-2.0
#include "model/shelf.h"

#include <pthread.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/vec.h"
#include "knobs/preset_model.h"

// Models that nobody has are kept for the next question, the latest of them.
enum { IDLE_MAX = 8 };

typedef struct shelf_row {
    hr_model *model;
    hr_knobs knobs; // of which count what shapes a model
    uint32_t holders;
    uint64_t taken; // when last, in takes
} shelf_row;

struct model_shelf {
    pthread_mutex_t lock;
    hr_preset *preset;
    VEC(shelf_row *) rows;
    uint64_t takes;
};

static void free_row(shelf_row *row)
{
    model_destroy(row->model);
    hr_free(row);
}

// The row that was idle for the longest time goes, while there are more than IDLE_MAX.
static void drop_idle(model_shelf *shelf)
{
    uint32_t idle = 0, oldest = 0;
    for (uint32_t k = 0; k < shelf->rows.count; k++) {
        const shelf_row *row = shelf->rows.data[k];
        if (row->holders == 0) {
            const bool older = idle == 0 || row->taken < shelf->rows.data[oldest]->taken;
            oldest = older ? k : oldest;
            idle++;
        }
    }
    if (idle > IDLE_MAX) {
        free_row(shelf->rows.data[oldest]);
        shelf->rows.data[oldest] = shelf->rows.data[--shelf->rows.count];
    }
}

static shelf_row *find_row(const model_shelf *shelf, const hr_knobs *knobs)
{
    for (uint32_t k = 0; k < shelf->rows.count; k++) {
        if (hr_knobs_same_model(&shelf->rows.data[k]->knobs, knobs)) {
            return shelf->rows.data[k];
        }
    }
    return NULL;
}

static hr_status add_row(model_shelf *shelf, const hr_knobs *knobs, shelf_row **out, hr_err *err)
{
    shelf_row *row = hr_calloc(1, sizeof *row);
    shelf_row **place = row == NULL ? NULL : vec_push(&shelf->rows);
    if (place == NULL) {
        hr_free(row);
        return HR_FAIL(err, NOMEM, "no host memory for another size of the model");
    }
    *place = row;
    row->knobs = *knobs;
    const hr_status status = model_create(shelf->preset, knobs, &row->model, NULL, err);
    if (status != HR_OK) {
        shelf->rows.count--;
        hr_free(row);
        return status;
    }
    *out = row;
    return HR_OK;
}

hr_status model_shelf_open(const hr_preset *preset, model_shelf **out, hr_err *err)
{
    model_shelf *shelf = hr_calloc(1, sizeof *shelf);
    *out = NULL;
    if (shelf == NULL || pthread_mutex_init(&shelf->lock, NULL) != 0) {
        hr_free(shelf);
        return HR_FAIL(err, NOMEM, "no host memory for the models of preset '%s'", hr_preset_name(preset));
    }
    shelf->preset = preset_hold(preset);
    *out = shelf;
    return HR_OK;
}

void model_shelf_close(model_shelf *shelf)
{
    if (shelf == NULL) {
        return;
    }
    for (uint32_t k = 0; k < shelf->rows.count; k++) {
        free_row(shelf->rows.data[k]);
    }
    vec_deinit(&shelf->rows);
    hr_preset_close(shelf->preset);
    (void)pthread_mutex_destroy(&shelf->lock);
    hr_free(shelf);
}

hr_status model_shelf_take(model_shelf *shelf, const hr_knobs *knobs, const hr_model **out, hr_err *err)
{
    *out = NULL;
    pthread_mutex_lock(&shelf->lock);
    shelf_row *row = find_row(shelf, knobs);
    const hr_status status = row == NULL ? add_row(shelf, knobs, &row, err) : HR_OK;
    if (row != NULL) {
        row->holders++;
        row->taken = ++shelf->takes;
        *out = row->model;
    }
    pthread_mutex_unlock(&shelf->lock);
    return status;
}

void model_shelf_give_back(model_shelf *shelf, const hr_model *model)
{
    if (model == NULL) {
        return;
    }
    pthread_mutex_lock(&shelf->lock);
    for (uint32_t k = 0; k < shelf->rows.count; k++) {
        shelf->rows.data[k]->holders -= shelf->rows.data[k]->model == model;
    }
    drop_idle(shelf);
    pthread_mutex_unlock(&shelf->lock);
}

// ---- weights of one and of the other ----------------------------------------------------------------------------

// Real weights go on as whole numbers, and whole numbers as what they are.
static bool goes_on_as(held_as from, held_as to)
{
    return from == HELD_REAL || from == to;
}

// With `begins` it is `m` that is gone on from.
static bool has_param(const hr_model *m, const model_param *wanted, bool begins)
{
    bool has = false;
    for (uint32_t k = 0; k < m->own_params && !has; k++) {
        const model_param *p = &m->params[k];
        has = strcmp(p->name, wanted->name) == 0 && p->shape.rank == wanted->shape.rank &&
              memcmp(p->shape.dim, wanted->shape.dim, p->shape.rank * sizeof p->shape.dim[0]) == 0 &&
              (begins ? goes_on_as(p->held, wanted->held) : goes_on_as(wanted->held, p->held));
    }
    return has;
}

// With `begin` adapters may be missing.
static const char *first_lacking(const hr_model *from, const hr_model *to, bool begin)
{
    for (uint32_t k = 0; k < from->own_params; k++) {
        const model_param *p = &from->params[k];
        if (!(begin && p->adapter) && !has_param(to, p, begin)) {
            return p->name;
        }
    }
    return NULL;
}

const char *model_first_other_param(const hr_model *from, const hr_model *to)
{
    const char *name = first_lacking(from, to, false);
    return name != NULL ? name : first_lacking(to, from, true);
}
