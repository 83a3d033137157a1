// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "onednn_impl.h"

typedef enum part { PART_A, PART_B, PART_BIAS, PART_C, PARTS } part;

enum { NAME_MAX_BYTES = 40 };

struct onednn_product {
    const onednn *library;
    product_shape shape;
    dnnl_memory_desc_t desc[PARTS];
    dnnl_primitive_desc_t chosen;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[PARTS], scratch;
    uint64_t scratch_bytes;
    char name[NAME_MAX_BYTES];
};

typedef struct matrix {
    int64_t rows, columns;
    bool transposed; // stored as [columns, rows]
    dnnl_data_type_t type;
    product_steps steps;
} matrix;

static dnnl_status_t describe(const product_shape *s, dnnl_memory_desc_t *md, const matrix *m)
{
    const int64_t close = m->transposed ? m->rows : m->columns;
    const int64_t row = m->steps.row == 0 ? close : m->steps.row;
    const dnnl_dims_t dims = {s->outer, s->inner, m->rows, m->columns};
    const int64_t inner = s->inner == 1 ? m->steps.outer : m->steps.inner; // of one: as if it were there
    const dnnl_dims_t strides = {m->steps.outer, inner, m->transposed ? 1 : row, m->transposed ? row : 1};
    const int skipped = s->outer == 0 ? 2 : 0; // one product is two-dimensional
    return dnnl.memory_desc_init_by_strides(md, 4 - skipped, dims + skipped, m->type, strides + skipped);
}

static dnnl_status_t describe_all(onednn_product *p)
{
    const product_shape *s = &p->shape;
    const dnnl_data_type_t to = s->wide ? dnnl_f32 : dnnl_bf16;
    const matrix matrices[PARTS] = {[PART_A] = {s->m, s->k, s->a_transposed, dnnl_bf16, s->a},
                                    [PART_B] = {s->k, s->n, s->b_transposed, dnnl_bf16, s->b},
                                    [PART_BIAS] = {1, s->n, false, dnnl_bf16, {0}},
                                    [PART_C] = {s->m, s->n, false, to, s->c}};
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < PARTS && status == dnnl_success; k++) {
        if (k != PART_BIAS || s->bias) {
            status = describe(s, &p->desc[k], &matrices[k]);
        }
    }
    return status;
}

static dnnl_status_t make_attributes(const product_shape *s, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t after = NULL;
    dnnl_status_t status = dnnl.primitive_attr_create(out);
    if (status != dnnl_success) {
        return status;
    }
    status = dnnl.primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && s->scale != 0.0f) {
        status = dnnl.primitive_attr_set_output_scales(*out, 1, 0, &s->scale);
    }
    if (status == dnnl_success && s->relu) {
        status = dnnl.post_ops_create(&after);
        if (status == dnnl_success) {
            if (isinf(s->ceiling)) {
                dnnl.post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
            } else {
                dnnl.post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_clip, 0.0f, s->ceiling);
            }
            status = dnnl.primitive_attr_set_post_ops(*out, after); // copies
            dnnl.post_ops_destroy(after);
        }
    }
    return status;
}

static bool take(onednn_product *p, dnnl_primitive_desc_iterator_t it, uint64_t limit_bytes, uint64_t *least)
{
    do {
        const char *name = "";
        p->chosen = dnnl.primitive_desc_iterator_fetch(it);
        if (p->chosen == NULL) {
            return false;
        }
        dnnl.primitive_desc_query(p->chosen, dnnl_query_impl_info_str, 0, &name);
        (void)text_copy(p->name, sizeof p->name, name);
        const dnnl_memory_desc_t *scratch =
            dnnl.primitive_desc_query_md(p->chosen, dnnl_query_scratchpad_md, 0);
        p->scratch_bytes = scratch == NULL ? 0 : dnnl.memory_desc_get_size(scratch);
        const bool good = onednn_is_acceptable(p->name);
        if (good && p->scratch_bytes <= limit_bytes) {
            return true;
        }
        *least = good && p->scratch_bytes < *least ? p->scratch_bytes : *least;
        dnnl.primitive_desc_destroy(p->chosen);
        p->chosen = NULL;
    } while (dnnl.primitive_desc_iterator_next(it) == dnnl_success);
    return false;
}

static hr_status choose(onednn_product *p, uint64_t limit_bytes, hr_err *err)
{
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_iterator_t it = NULL;
    uint64_t least = UINT64_MAX;
    bool chosen = false;
    TRY_LIBRARY(err, describe_all(p));
    if (dnnl.matmul_desc_init(&desc, &p->desc[PART_A], &p->desc[PART_B],
                              p->shape.bias ? &p->desc[PART_BIAS] : NULL, &p->desc[PART_C]) == dnnl_success &&
        make_attributes(&p->shape, &attributes) == dnnl_success &&
        dnnl.primitive_desc_iterator_create(&it, &desc, attributes, p->library->engine, NULL) ==
            dnnl_success) {
        chosen = take(p, it, limit_bytes, &least);
    }
    if (it != NULL) {
        dnnl.primitive_desc_iterator_destroy(it);
    }
    if (attributes != NULL) {
        dnnl.primitive_attr_destroy(attributes);
    }
    if (!chosen && least != UINT64_MAX) {
        char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
        (void)HR_FAIL(err, DEVICE, "a product needs %s of workspace, workspace.limit is %s",
                      hr_bytes_human(least, needed), hr_bytes_human(limit_bytes, had));
        hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(least, needed));
        return HR_DEVICE;
    }
    return chosen ? HR_OK
                  : HR_FAIL(err, DEVICE,
                            "oneDNN has no compiled bfloat16 product of %" PRId64 "x%" PRId64 "x%" PRId64,
                            p->shape.m, p->shape.n, p->shape.k);
}

hr_status onednn_product_choose(onednn *library, const product_shape *shape, uint64_t limit_bytes,
                                onednn_product **out, hr_err *err)
{
    *out = NULL;
    onednn_product *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a product");
    }
    p->library = library;
    p->shape = *shape;
    const hr_status status = choose(p, limit_bytes, err);
    if (status != HR_OK) {
        onednn_product_destroy(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

void onednn_product_destroy(onednn_product *p)
{
    if (p == NULL) {
        return;
    }
    for (part k = 0; k < PARTS; k++) {
        if (p->memory[k] != NULL) {
            dnnl.memory_destroy(p->memory[k]);
        }
    }
    if (p->scratch != NULL) {
        dnnl.memory_destroy(p->scratch);
    }
    if (p->primitive != NULL) {
        dnnl.primitive_destroy(p->primitive);
    }
    if (p->chosen != NULL) {
        dnnl.primitive_desc_destroy(p->chosen);
    }
    hr_free(p);
}

uint64_t onednn_product_scratch_bytes(const onednn_product *p)
{
    return p->scratch_bytes;
}

const char *onednn_product_name(const onednn_product *p)
{
    return p->name;
}

hr_status onednn_product_prepare(onednn_product *p, hr_err *err)
{
    dnnl_engine_t engine = p->library->engine;
    TRY_LIBRARY(err, dnnl.primitive_create(&p->primitive, p->chosen));
    for (part k = 0; k < PARTS; k++) {
        if (k != PART_BIAS || p->shape.bias) {
            TRY_LIBRARY(err, dnnl.memory_create(&p->memory[k], &p->desc[k], engine, DNNL_MEMORY_NONE));
        }
    }
    const dnnl_memory_desc_t *scratch = dnnl.primitive_desc_query_md(p->chosen, dnnl_query_scratchpad_md, 0);
    TRY_LIBRARY(err, dnnl.memory_create(&p->scratch, scratch, engine, DNNL_MEMORY_NONE));
    return HR_OK;
}

hr_status onednn_product_run(onednn_product *p, void *a, void *b, void *bias, void *c, void *scratch,
                             hr_err *err)
{
    static const int names[PARTS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    void *const place[PARTS] = {a, b, bias, c};
    dnnl_exec_arg_t arguments[PARTS + 1];
    int count = 0;
    for (part k = 0; k < PARTS; k++) {
        if (p->memory[k] != NULL) {
            TRY_LIBRARY(err, dnnl.memory_set_data_handle(p->memory[k], place[k]));
            arguments[count++] = (dnnl_exec_arg_t){names[k], p->memory[k]};
        }
    }
    TRY_LIBRARY(err, dnnl.memory_set_data_handle(p->scratch, scratch));
    arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->scratch};
    TRY_LIBRARY(err, dnnl.primitive_execute(p->primitive, p->library->stream, count, arguments));
    return HR_OK;
}
