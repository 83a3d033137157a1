// SPDX-License-Identifier: Apache-2.0
// Written for oneDNN 2.x (operation descriptors, value memory descriptors).
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "base/workers.h"
#include "onednn_impl.h"

enum { NAME_MAX_BYTES = 40, MAX_RANK = 5 };

struct onednn_conv {
    const onednn *library;
    conv_shape shape;
    dnnl_primitive_desc_t desc;
    dnnl_memory_desc_t plain[CONV_OPERANDS]; // as our tensors lie
    uint64_t library_bytes[CONV_OPERANDS];   // 0: plain
    uint64_t scratch_bytes;
    char name[NAME_MAX_BYTES];
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[CONV_OPERANDS], scratch;
};

struct onednn_reorder {
    const onednn *library;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_memory_t from, to;
};

hr_status onednn_failed(hr_err *err, const char *call, dnnl_status_t status)
{
    if (status == dnnl_out_of_memory) {
        return HR_FAIL(err, NOMEM, "oneDNN needed host memory for %s and had none", call);
    }
    const dnnl_version_t *v = dnnl.version();
    return HR_FAIL(err, DEVICE, "oneDNN %d.%d.%d refused %s with status %d", v->major, v->minor, v->patch,
                   call, (int)status);
}

void onednn_ask_for_threads(uint32_t threads)
{
    static _Thread_local uint32_t asked;
    if (asked != threads) {
        dnnl.omp_set_dynamic(0);
        dnnl.omp_set_num_threads((int)threads);
        asked = threads;
    }
}

static void flush_denormals(void *nothing)
{
    (void)nothing;
    (void)workers_flush_denormals();
}

void onednn_settle_threads(uint32_t threads)
{
    onednn_ask_for_threads(threads);
    dnnl.GOMP_parallel(flush_denormals, NULL, threads, 0);
}

hr_status onednn_open(onednn **out, hr_err *err)
{
    *out = NULL;
    onednn *library = hr_calloc(1, sizeof *library);
    if (library == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the oneDNN engine");
    }
    dnnl_status_t status = dnnl.engine_create(&library->engine, dnnl_cpu, 0);
    if (status == dnnl_success) {
        status = dnnl.stream_create(&library->stream, library->engine, dnnl_stream_default_flags);
    }
    if (status != dnnl_success) {
        onednn_close(library);
        return onednn_failed(err, "a CPU engine", status);
    }
    *out = library;
    return HR_OK;
}

void onednn_close(onednn *library)
{
    if (library == NULL) {
        return;
    }
    if (library->stream != NULL) {
        dnnl.stream_destroy(library->stream);
    }
    if (library->engine != NULL) {
        dnnl.engine_destroy(library->engine);
    }
    hr_free(library);
}

uint64_t onednn_version(void)
{
    const dnnl_version_t *v = dnnl.version();
    return ((uint64_t)v->major << 32) | ((uint64_t)v->minor << 16) | (uint64_t)v->patch;
}

const char *onednn_isa(void)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_sse41, "sse41"},
        {dnnl_cpu_isa_avx, "avx"},
        {dnnl_cpu_isa_avx2, "avx2"},
        {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
        {dnnl_cpu_isa_avx512_mic, "avx512_mic"},
        {dnnl_cpu_isa_avx512_mic_4ops, "avx512_mic_4ops"},
        {dnnl_cpu_isa_avx512_core, "avx512_core"},
        {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
        {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
        {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
    };
    dnnl_cpu_isa_t isa = dnnl.get_effective_cpu_isa();
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        if (names[k].isa == isa) {
            return names[k].name;
        }
    }
    return "generic";
}

static bool reaches(dnnl_cpu_isa_t isa)
{
    return ((unsigned)dnnl.get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

uint32_t onednn_lanes(void)
{
    return reaches(dnnl_cpu_isa_avx512_core) ? 16 : reaches(dnnl_cpu_isa_avx2) ? 8 : 4;
}

// ---- choosing a convolution -------------------------------------------------------------------------------

// The three descriptors of one convolution, as oneDNN wants to be asked.
typedef struct request {
    dnnl_memory_desc_t x, weights, bias, y;
} request;

static bool is_grouped(const conv_shape *s)
{
    return s->groups > 1;
}

static dnnl_data_type_t type_of(const conv_shape *s)
{
    return s->bf16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t describe_image(dnnl_memory_desc_t *md, dnnl_data_type_t type, int64_t n, int64_t c,
                                    int64_t h, int64_t w)
{
    const dnnl_dims_t dims = {n, c, h, w};
    return dnnl.memory_desc_init_by_tag(md, 4, dims, type, dnnl_nhwc);
}

// Our weights lie [kh, kw, C/groups, F]; oneDNN's logical order is [groups,] F/groups, C/groups, kh, kw.
static dnnl_status_t describe_weights(dnnl_memory_desc_t *md, const conv_shape *s, bool any)
{
    const int64_t g = s->groups, c = s->c / g, f = s->f / g;
    const dnnl_dims_t dims = {g, f, c, s->kernel_h, s->kernel_w};
    const dnnl_dims_t strides = {f, 1, s->f, s->kernel_w * c * s->f, c * s->f};
    const int skip = is_grouped(s) ? 0 : 1, rank = MAX_RANK - skip;
    if (any) {
        return dnnl.memory_desc_init_by_tag(md, rank, dims + skip, type_of(s), dnnl_format_tag_any);
    }
    return dnnl.memory_desc_init_by_strides(md, rank, dims + skip, type_of(s), strides + skip);
}

static dnnl_status_t describe_plain(dnnl_memory_desc_t plain[CONV_OPERANDS], const conv_shape *s)
{
    const dnnl_dims_t filters = {s->f};
    dnnl_status_t status = describe_image(&plain[CONV_X], type_of(s), s->n, s->c, s->h, s->w);
    status = status != dnnl_success ? status : describe_weights(&plain[CONV_WEIGHTS], s, false);
    status = status != dnnl_success
                 ? status
                 : dnnl.memory_desc_init_by_tag(&plain[CONV_BIAS], 1, filters, type_of(s), dnnl_x);
    return status != dnnl_success ? status
                                  : describe_image(&plain[CONV_Y], type_of(s), s->n, s->f, s->oh, s->ow);
}

static dnnl_status_t fill_request(request *r, const onednn_conv *c)
{
    const conv_shape *s = &c->shape;
    r->x = c->plain[CONV_X];
    r->y = c->plain[CONV_Y];
    r->bias = s->bias ? c->plain[CONV_BIAS] : (dnnl_memory_desc_t){0};
    return describe_weights(&r->weights, s, true);
}

static dnnl_status_t make_attributes(const conv_shape *s, dnnl_primitive_attr_t *out)
{
    dnnl_status_t status = dnnl.primitive_attr_create(out);
    if (status != dnnl_success) {
        return status;
    }
    status = dnnl.primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    dnnl_post_ops_t after = NULL;
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

static dnnl_status_t describe_conv(dnnl_convolution_desc_t *d, const conv_shape *s, conv_kind kind,
                                   const request *r)
{
    const dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
    const dnnl_dims_t strides = {s->stride_h, s->stride_w}, gaps = {s->gap_h, s->gap_w};
    const dnnl_dims_t before = {s->pad_top, s->pad_left}, behind = {s->pad_bottom, s->pad_right};
    const dnnl_memory_desc_t *bias = s->bias ? &r->bias : NULL;
    switch (kind) {
    case CONV_FORWARD:
        return dnnl.dilated_convolution_forward_desc_init(d, dnnl_forward_training, algorithm, &r->x,
                                                          &r->weights, bias, &r->y, strides, gaps, before,
                                                          behind);
    case CONV_BWD_DATA:
        return dnnl.dilated_convolution_backward_data_desc_init(d, algorithm, &r->x, &r->weights, &r->y,
                                                                strides, gaps, before, behind);
    case CONV_BWD_WEIGHTS:
        return dnnl.dilated_convolution_backward_weights_desc_init(d, algorithm, &r->x, &r->weights, bias,
                                                                   &r->y, strides, gaps, before, behind);
    }
    return dnnl_invalid_arguments;
}

bool onednn_is_acceptable(const char *name)
{
    return strstr(name, "ref") == NULL && strstr(name, "gemm") == NULL;
}

// Batched products of tiles (`brg`) sum all input channels in one chain: as fast as the direct kernel, with
// two to four times its rounding error (measured on 64 to 512 channels). Taken only where there is no other.
static bool sums_in_one_chain(const char *name)
{
    return strstr(name, "brg") != NULL;
}

// oneDNN's 1x1 kernels for the weights' gradient at a stride write beyond the scratch they ask for: 384 to 3968 bytes
// were seen behind 5 to 43 KiB (2.6.3, AVX-512, two threads, ResNet's shortcuts).
static bool overruns_its_scratch(const onednn_conv *c)
{
    return c->shape.kind == CONV_BWD_WEIGHTS && (c->shape.stride_h > 1 || c->shape.stride_w > 1) &&
           strstr(c->name, "1x1") != NULL;
}

static const dnnl_memory_desc_t *wanted(const onednn_conv *c, conv_operand operand)
{
    static const dnnl_query_t forward[CONV_OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                        dnnl_query_weights_md, dnnl_query_dst_md};
    static const dnnl_query_t bwd_data[CONV_OPERANDS] = {dnnl_query_diff_src_md, dnnl_query_weights_md,
                                                         dnnl_query_weights_md, dnnl_query_diff_dst_md};
    static const dnnl_query_t bwd_weights[CONV_OPERANDS] = {
        dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md};
    const dnnl_query_t *table = c->shape.kind == CONV_FORWARD    ? forward
                                : c->shape.kind == CONV_BWD_DATA ? bwd_data
                                                                 : bwd_weights;
    return dnnl.primitive_desc_query_md(c->desc, table[operand], operand == CONV_BIAS ? 1 : 0);
}

// Fills what people and planners want to know of c->desc.
static void read_choice(onednn_conv *c)
{
    const char *name = "";
    dnnl.primitive_desc_query(c->desc, dnnl_query_impl_info_str, 0, &name);
    (void)text_copy(c->name, sizeof c->name, name);
    const dnnl_memory_desc_t *scratch = dnnl.primitive_desc_query_md(c->desc, dnnl_query_scratchpad_md, 0);
    c->scratch_bytes = scratch == NULL ? 0 : dnnl.memory_desc_get_size(scratch);
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        const dnnl_memory_desc_t *md = wanted(c, k);
        bool differs = (k == CONV_X || k == CONV_WEIGHTS) && !dnnl.memory_desc_equal(md, &c->plain[k]);
        c->library_bytes[k] = differs ? dnnl.memory_desc_get_size(md) : 0;
    }
}

static uint64_t temporary_bytes(const onednn_conv *c)
{
    return c->scratch_bytes + c->library_bytes[CONV_X] + c->library_bytes[CONV_WEIGHTS];
}

// Walks the implementations; true when c->desc holds an acceptable one within the limit.
// *least is the smallest that was turned away for its size.
static bool choose_among(onednn_conv *c, dnnl_primitive_desc_iterator_t it, bool one_chain,
                         uint64_t limit_bytes, uint64_t *least)
{
    do {
        c->desc = dnnl.primitive_desc_iterator_fetch(it);
        if (c->desc == NULL) {
            return false;
        }
        read_choice(c);
        // Beside the rounding of bfloat16 that of a long chain is nothing.
        bool good = onednn_is_acceptable(c->name) && !overruns_its_scratch(c) &&
                    (c->shape.bf16 || sums_in_one_chain(c->name) == one_chain);
        if (good && temporary_bytes(c) <= limit_bytes) {
            return true;
        }
        if (good && temporary_bytes(c) < *least) {
            *least = temporary_bytes(c);
        }
        dnnl.primitive_desc_destroy(c->desc);
        c->desc = NULL;
    } while (dnnl.primitive_desc_iterator_next(it) == dnnl_success);
    return false;
}

static bool choose_algorithm(onednn_conv *c, const request *r, bool one_chain, uint64_t limit_bytes,
                             uint64_t *least)
{
    dnnl_convolution_desc_t forward, backward;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_primitive_desc_iterator_t it = NULL;
    const bool is_forward = c->shape.kind == CONV_FORWARD;
    bool chosen = false;
    if (describe_conv(&forward, &c->shape, CONV_FORWARD, r) == dnnl_success &&
        describe_conv(&backward, &c->shape, c->shape.kind, r) == dnnl_success &&
        make_attributes(&c->shape, &attributes) == dnnl_success &&
        (is_forward ||
         dnnl.primitive_desc_create(&hint, &forward, attributes, c->library->engine, NULL) == dnnl_success) &&
        dnnl.primitive_desc_iterator_create(&it, is_forward ? &forward : &backward, attributes,
                                            c->library->engine, hint) == dnnl_success) {
        chosen = choose_among(c, it, one_chain, limit_bytes, least);
    }
    if (it != NULL) {
        dnnl.primitive_desc_iterator_destroy(it);
    }
    if (hint != NULL) {
        dnnl.primitive_desc_destroy(hint);
    }
    if (attributes != NULL) {
        dnnl.primitive_attr_destroy(attributes);
    }
    return chosen;
}

static hr_status choose(onednn_conv *c, uint64_t limit_bytes, hr_err *err)
{
    request r;
    uint64_t least = UINT64_MAX;
    TRY_LIBRARY(err, describe_plain(c->plain, &c->shape));
    TRY_LIBRARY(err, fill_request(&r, c));
    if (choose_algorithm(c, &r, false, limit_bytes, &least) ||
        choose_algorithm(c, &r, true, limit_bytes, &least)) {
        return HR_OK;
    }
    if (least != UINT64_MAX) {
        char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
        (void)HR_FAIL(err, DEVICE, "a convolution needs %s of workspace, workspace.limit is %s",
                      hr_bytes_human(least, needed), hr_bytes_human(limit_bytes, had));
        hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(least, needed));
        return HR_DEVICE;
    }
    return HR_FAIL(err, DEVICE,
                   "oneDNN has no compiled kernel for a %" PRId64 "x%" PRId64 " convolution of %" PRId64
                   " into %" PRId64 " channels on %s",
                   c->shape.kernel_h, c->shape.kernel_w, c->shape.c, c->shape.f, onednn_isa());
}

hr_status onednn_conv_choose(onednn *library, const conv_shape *shape, uint64_t limit_bytes,
                             onednn_conv **out, hr_err *err)
{
    *out = NULL;
    onednn_conv *c = hr_calloc(1, sizeof *c);
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a convolution");
    }
    c->library = library;
    c->shape = *shape;
    hr_status status = choose(c, limit_bytes, err);
    if (status != HR_OK) {
        onednn_conv_destroy(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

static void destroy_memory(dnnl_memory_t memory)
{
    if (memory != NULL) {
        dnnl.memory_destroy(memory);
    }
}

void onednn_conv_destroy(onednn_conv *c)
{
    if (c == NULL) {
        return;
    }
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        destroy_memory(c->memory[k]);
    }
    destroy_memory(c->scratch);
    if (c->primitive != NULL) {
        dnnl.primitive_destroy(c->primitive);
    }
    if (c->desc != NULL) {
        dnnl.primitive_desc_destroy(c->desc);
    }
    hr_free(c);
}

uint64_t onednn_conv_scratch_bytes(const onednn_conv *c)
{
    return c->scratch_bytes;
}

const char *onednn_conv_name(const onednn_conv *c)
{
    return c->name;
}

uint64_t onednn_conv_library_bytes(const onednn_conv *c, conv_operand operand)
{
    return c->library_bytes[operand];
}

// ---- running ----------------------------------------------------------------------------------------------

hr_status onednn_conv_prepare(onednn_conv *c, hr_err *err)
{
    dnnl_engine_t engine = c->library->engine;
    TRY_LIBRARY(err, dnnl.primitive_create(&c->primitive, c->desc));
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        if (k != CONV_BIAS || (c->shape.bias && c->shape.kind != CONV_BWD_DATA)) {
            TRY_LIBRARY(err, dnnl.memory_create(&c->memory[k], wanted(c, k), engine, DNNL_MEMORY_NONE));
        }
    }
    const dnnl_memory_desc_t *scratch = dnnl.primitive_desc_query_md(c->desc, dnnl_query_scratchpad_md, 0);
    TRY_LIBRARY(err, dnnl.memory_create(&c->scratch, scratch, engine, DNNL_MEMORY_NONE));
    return HR_OK;
}

static const int *arguments_of(conv_kind kind)
{
    static const int forward[CONV_OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    static const int bwd_data[CONV_OPERANDS] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                                DNNL_ARG_DIFF_DST};
    static const int bwd_weights[CONV_OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
                                                   DNNL_ARG_DIFF_DST};
    return kind == CONV_FORWARD ? forward : kind == CONV_BWD_DATA ? bwd_data : bwd_weights;
}

hr_status onednn_conv_run(onednn_conv *c, void *const operand[CONV_OPERANDS], void *scratch, hr_err *err)
{
    dnnl_exec_arg_t arguments[CONV_OPERANDS + 1];
    const int *names = arguments_of(c->shape.kind);
    int count = 0;
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        if (c->memory[k] != NULL) {
            TRY_LIBRARY(err, dnnl.memory_set_data_handle(c->memory[k], operand[k]));
            arguments[count++] = (dnnl_exec_arg_t){names[k], c->memory[k]};
        }
    }
    TRY_LIBRARY(err, dnnl.memory_set_data_handle(c->scratch, scratch));
    arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, c->scratch};
    TRY_LIBRARY(err, dnnl.primitive_execute(c->primitive, c->library->stream, count, arguments));
    return HR_OK;
}

// ---- reorders ---------------------------------------------------------------------------------------------

static hr_status make_reorder(onednn_reorder *r, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                              hr_err *err)
{
    dnnl_engine_t engine = r->library->engine;
    dnnl_primitive_attr_t attributes = NULL;
    TRY_LIBRARY(err, dnnl.primitive_attr_create(&attributes));
    dnnl.primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    dnnl_status_t status = dnnl.reorder_primitive_desc_create(&r->desc, from, engine, to, engine, attributes);
    dnnl.primitive_attr_destroy(attributes);
    TRY_LIBRARY(err, status);
    const dnnl_memory_desc_t *scratch = dnnl.primitive_desc_query_md(r->desc, dnnl_query_scratchpad_md, 0);
    if (scratch != NULL && dnnl.memory_desc_get_size(scratch) > 0) {
        return HR_FAIL(err, DEVICE, "oneDNN's %s reorder needs %zu bytes of scratch, a reorder has none",
                       onednn_reorder_name(r), dnnl.memory_desc_get_size(scratch));
    }
    TRY_LIBRARY(err, dnnl.primitive_create(&r->primitive, r->desc));
    TRY_LIBRARY(err, dnnl.memory_create(&r->from, from, engine, DNNL_MEMORY_NONE));
    TRY_LIBRARY(err, dnnl.memory_create(&r->to, to, engine, DNNL_MEMORY_NONE));
    return HR_OK;
}

hr_status onednn_reorder_create(onednn *library, const onednn_conv *peer, conv_operand operand,
                                bool to_library, onednn_reorder **out, hr_err *err)
{
    *out = NULL;
    onednn_reorder *r = hr_calloc(1, sizeof *r);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a reorder");
    }
    r->library = library;
    const dnnl_memory_desc_t *plain = &peer->plain[operand], *theirs = wanted(peer, operand);
    hr_status status = make_reorder(r, to_library ? plain : theirs, to_library ? theirs : plain, err);
    if (status != HR_OK) {
        onednn_reorder_destroy(r);
        return status;
    }
    *out = r;
    return HR_OK;
}

void onednn_reorder_destroy(onednn_reorder *r)
{
    if (r == NULL) {
        return;
    }
    destroy_memory(r->from);
    destroy_memory(r->to);
    if (r->primitive != NULL) {
        dnnl.primitive_destroy(r->primitive);
    }
    if (r->desc != NULL) {
        dnnl.primitive_desc_destroy(r->desc);
    }
    hr_free(r);
}

hr_status onednn_reorder_run(onednn_reorder *r, void *from, void *to, hr_err *err)
{
    TRY_LIBRARY(err, dnnl.memory_set_data_handle(r->from, from));
    TRY_LIBRARY(err, dnnl.memory_set_data_handle(r->to, to));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}};
    TRY_LIBRARY(err, dnnl.primitive_execute(r->primitive, r->library->stream, 2, arguments));
    return HR_OK;
}

const char *onednn_reorder_name(const onednn_reorder *r)
{
    const char *name = "";
    dnnl.primitive_desc_query(r->desc, dnnl_query_impl_info_str, 0, &name);
    return name;
}
