// SPDX-License-Identifier: Apache-2.0
// Convolutions through oneDNN, and the reorders that lower puts around them.
#include <string.h>

#include "cpu.h"

// Where the operands of a convolution's instruction stand: index of an input, OUTPUT | index of an output, or
// NONE.
typedef struct conv_places {
    uint8_t place[CONV_OPERANDS];
} conv_places;

enum { OUTPUT = 0x80, NONE = 0xff };

static conv_places places_of(const op_query *q)
{
    switch (q->op) {
    case HR_OP_CONV2D:
        return (conv_places){{0, 1, q->in_count > 2 ? 2 : NONE, OUTPUT}};
    case HR_OP_CONV2D_BWD_DATA:
    case HR_OP_CONV2D_TRANSPOSE: // its bias is not the library's, see conv_transpose.c
        return (conv_places){{OUTPUT, 1, NONE, 0}};
    case HR_OP_CONV2D_TRANSPOSE_BWD_DATA:
        return (conv_places){{0, 1, NONE, OUTPUT}};
    case HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS: // the two images exchanged
        return (conv_places){{1, OUTPUT, NONE, 0}};
    default:
        return (conv_places){{0, OUTPUT, q->out_count > 1 ? OUTPUT | 1 : NONE, 1}};
    }
}

static const op_operand *operand_at(const op_query *q, uint8_t place)
{
    return (place & OUTPUT) != 0 ? &q->out[place & ~OUTPUT] : &q->in[place];
}

static conv_kind kind_of(uint32_t op)
{
    switch (op) {
    case HR_OP_CONV2D:
    case HR_OP_CONV2D_TRANSPOSE_BWD_DATA:
        return CONV_FORWARD;
    case HR_OP_CONV2D_BWD_DATA:
    case HR_OP_CONV2D_TRANSPOSE:
        return CONV_BWD_DATA;
    default:
        return CONV_BWD_WEIGHTS;
    }
}

conv_shape cpu_conv_shape(const op_query *q)
{
    const conv_places at = places_of(q);
    const op_operand *x = operand_at(q, at.place[CONV_X]), *y = operand_at(q, at.place[CONV_Y]);
    const op_attr *a = &q->attr;
    return (conv_shape){.kind = kind_of(q->op),
                        .n = x->shape.dim[0],
                        .h = x->shape.dim[1],
                        .w = x->shape.dim[2],
                        .c = x->shape.dim[3],
                        .oh = y->shape.dim[1],
                        .ow = y->shape.dim[2],
                        .f = y->shape.dim[3],
                        .kernel_h = a->kernel_h,
                        .kernel_w = a->kernel_w,
                        .stride_h = a->stride_h,
                        .stride_w = a->stride_w,
                        .gap_h = a->gap_h,
                        .gap_w = a->gap_w,
                        .pad_top = a->pad_top,
                        .pad_left = a->pad_left,
                        .pad_bottom = a->pad_bottom,
                        .pad_right = a->pad_right,
                        .groups = a->groups < 1 ? 1 : a->groups,
                        .bf16 = x->dtype == HR_BF16,
                        .bias = at.place[CONV_BIAS] != NONE,
                        .relu = q->op == HR_OP_CONV2D && a->act != HR_ACT_NONE,
                        .ceiling = cpu_ceiling(a->act)};
}

// Short memory is no reason to take another kernel: a caller that asks for this one will be told.
static bool has_kernel(const cpu_device *device, const op_query *q)
{
    const conv_shape shape = cpu_conv_shape(q);
    onednn_conv *conv = NULL;
    const bool found = onednn_conv_choose(device->library, &shape, UINT64_MAX, &conv, NULL) != HR_DEVICE;
    onednn_conv_destroy(conv);
    return found;
}

static hr_status ask_conv(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                          hr_err *err)
{
    const conv_shape shape = cpu_conv_shape(q);
    const conv_places at = places_of(q);
    onednn_conv *conv = NULL;
    HR_TRY(onednn_conv_choose(device->library, &shape, limit, &conv, err));
    out->workspace_bytes = onednn_conv_scratch_bytes(conv);
    static const conv_operand copied[] = {CONV_X, CONV_WEIGHTS};
    for (uint32_t k = 0; k < sizeof copied / sizeof copied[0]; k++) {
        const uint64_t bytes = onednn_conv_library_bytes(conv, copied[k]);
        if (bytes > 0) {
            out->reorder[out->reorder_count].operand = at.place[copied[k]];
            out->reorder[out->reorder_count++].bytes = bytes;
        }
    }
    out->impl = target_impl_name(CPU_LIBRARY, onednn_conv_name(conv));
    onednn_conv_destroy(conv);
    return HR_OK;
}

uint64_t cpu_temporary_bytes(const program *p, const instr *i)
{
    uint64_t bytes = i->workspace == HR_NO_ID ? 0 : p->tensors[i->workspace].bytes;
    for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
        const tensor *t = &p->tensors[k < i->in_count ? i->in[k] : i->out[k - i->in_count]];
        bytes += t->layout == HR_LAYOUT_LIBRARY ? t->bytes : 0;
    }
    return bytes;
}

// The convolution that ask chose: what it turned away for its size is larger than what the instruction has.
static hr_status choose_again(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                              onednn_conv **out, hr_err *err)
{
    const conv_shape shape = cpu_conv_shape(q);
    return onednn_conv_choose(device->library, &shape, cpu_temporary_bytes(p, i), out, err);
}

static hr_status prepare_conv(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                              void **state, hr_err *err)
{
    onednn_conv *conv = NULL;
    HR_TRY(choose_again(device, p, i, q, &conv, err));
    hr_status status = onednn_conv_prepare(conv, err);
    if (status != HR_OK) {
        onednn_conv_destroy(conv);
        return status;
    }
    *state = conv;
    return HR_OK;
}

static void release_conv(void *state)
{
    onednn_conv_destroy(state);
}

static hr_status run_conv(const cpu_run *r, hr_err *err)
{
    const conv_places at = places_of(r->query);
    void *operand[CONV_OPERANDS] = {0};
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        const uint8_t place = at.place[k];
        if (place != NONE) {
            operand[k] = (place & OUTPUT) != 0 ? r->out[place & ~OUTPUT] : r->in[place];
        }
    }
    return onednn_conv_run(r->state, operand, r->workspace, err);
}

// ---- reorders ---------------------------------------------------------------------------------------------

static bool serves_instruction(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->attr.peer != HR_NO_ID;
}

// Reorders stand next to the instruction they serve, so the search goes outwards from them.
static const instr *find_peer(const program *p, const instr *reorder)
{
    const uint32_t at = (uint32_t)(reorder - p->instrs);
    for (uint32_t apart = 1; apart < p->instr_count; apart++) {
        if (at + apart < p->instr_count && p->instrs[at + apart].id == reorder->attr.peer) {
            return &p->instrs[at + apart];
        }
        if (apart <= at && p->instrs[at - apart].id == reorder->attr.peer) {
            return &p->instrs[at - apart];
        }
    }
    return NULL;
}

static conv_operand operand_of_place(const op_query *q, uint32_t place)
{
    const conv_places at = places_of(q);
    return at.place[CONV_X] == place ? CONV_X : CONV_WEIGHTS;
}

static hr_status prepare_reorder(const cpu_device *device, const program *p, const instr *i,
                                 const op_query *q, void **state, hr_err *err)
{
    const instr *peer = find_peer(p, i);
    if (peer == NULL) {
        return HR_FAIL(err, CHECK, "a reorder serves instruction %u, which the program does not have",
                       q->attr.peer);
    }
    op_query peer_query;
    onednn_conv *conv = NULL;
    onednn_reorder *reorder = NULL;
    program_query(p, peer, &peer_query);
    HR_TRY(choose_again(device, p, peer, &peer_query, &conv, err));
    const bool to_library = (q->attr.peer_operand & OUTPUT) == 0;
    const hr_status status =
        onednn_reorder_create(device->library, conv, operand_of_place(&peer_query, q->attr.peer_operand),
                              to_library, &reorder, err);
    onednn_conv_destroy(conv);
    *state = reorder;
    return status;
}

static void release_reorder(void *state)
{
    onednn_reorder_destroy(state);
}

static hr_status run_reorder(const cpu_run *r, hr_err *err)
{
    return onednn_reorder_run(r->state, r->in[0], r->out[0], err);
}

const cpu_impl cpu_onednn_conv = {.name = CPU_LIBRARY,
                                  .fits = has_kernel,
                                  .ask = ask_conv,
                                  .prepare = prepare_conv,
                                  .release = release_conv,
                                  .call = run_conv};
const cpu_impl cpu_onednn_conv_bf16 = {.name = CPU_LIBRARY,
                                       .types = CPU_BF16,
                                       .fits = has_kernel,
                                       .ask = ask_conv,
                                       .prepare = prepare_conv,
                                       .release = release_conv,
                                       .call = run_conv};
const cpu_impl cpu_reorder_library = {.name = CPU_LIBRARY,
                                      .types = CPU_ANY_TYPE,
                                      .fits = serves_instruction,
                                      .prepare = prepare_reorder,
                                      .release = release_reorder,
                                      .call = run_reorder};
