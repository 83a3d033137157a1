// SPDX-License-Identifier: Apache-2.0
// Which implementation an operation gets: the first row, family after family, that takes its types, fits, and has an
// answer within the limit. workspace.limit chooses: where nothing obeys it, the first of our own kernels that fits takes
// the scratch that it cannot do without (partial sums); an engine of a library is never taken above the limit.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "attention_pair.h"
#include "cuda_device.h"
#include "cudnn.h"
#include "gates.h"

#define X(name) &cuda_family_##name,
static const cuda_family *const families[] = {CUDA_FAMILY_MAP(X)};
#undef X

static const op_operand *operand_of(const op_query *q, uint32_t k)
{
    return k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
}

static uint32_t type_bit(const op_query *q)
{
    const uint32_t dtype = cuda_type(q);
    return dtype == HR_F16 ? CUDA_F16 : dtype == HR_BF16 ? CUDA_BF16 : CUDA_F32;
}

// What only copies takes any bytes.
static bool takes_padded(const op_query *q)
{
    return q->op == HR_OP_OFFLOAD || q->op == HR_OP_FETCH || cuda_pads_rows(q);
}

// A batch may come as float64; it is moved as it is and cast.
static bool takes_float64(const op_query *q, uint32_t k)
{
    return q->op == HR_OP_INPUT || q->op == HR_OP_PREFETCH || q->op == HR_OP_ADVANCE ||
           (q->op == HR_OP_CAST && k < q->in_count);
}

static hr_status check_operands(const op_query *q, hr_err *err)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = operand_of(q, k);
        if (t->dtype == HR_F64 && !takes_float64(q, k)) {
            (void)HR_FAIL(err, DEVICE,
                          "%s: the cuda device computes in float32 and two-byte types, the tensor is float64",
                          op_name((hr_op)q->op));
            hr_err_try(err, "-s device.kind=reference");
            return HR_DEVICE;
        }
        if (t->layout == HR_LAYOUT_PADDED && !takes_padded(q)) {
            return HR_FAIL(err, DEVICE, "%s on the cuda device needs plain layouts, had %s",
                           op_name((hr_op)q->op), layout_name((hr_layout)t->layout));
        }
    }
    return HR_OK;
}

static hr_status refuse_workspace(const op_query *q, uint64_t needed_bytes, uint64_t limit_bytes, hr_err *err)
{
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    (void)HR_FAIL(err, DEVICE, "%s needs %s of workspace, workspace.limit is %s", op_name((hr_op)q->op),
                  hr_bytes_human(needed_bytes, needed), hr_bytes_human(limit_bytes, had));
    hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(needed_bytes, needed));
    return HR_DEVICE;
}

// HR_DEVICE: this row has no answer.
static hr_status ask_row(cuda_device *device, const cuda_impl *impl, const op_query *q, uint64_t limit_bytes,
                         target_answer *answer, hr_err *err)
{
    *answer = (target_answer){0};
    if (impl->ask != NULL) {
        return impl->ask(device, q, limit_bytes, answer, err);
    }
    answer->impl = target_impl_name("own", impl->name);
    answer->workspace_bytes = impl->workspace == NULL ? 0 : impl->workspace(device, q);
    return answer->workspace_bytes <= limit_bytes
               ? HR_OK
               : refuse_workspace(q, answer->workspace_bytes, limit_bytes, err);
}

static bool suits(const cuda_device *device, const cuda_impl *impl, const op_query *q)
{
    return impl->op == (hr_op)q->op && (impl->types & type_bit(q)) != 0 &&
           (impl->fits == NULL || impl->fits(device, q));
}

// HR_DEVICE: no row has an answer.
static hr_status pick_within(cuda_device *device, const op_query *q, uint64_t workspace_limit, bool own,
                             const cuda_impl **out, target_answer *answer, hr_err *err)
{
    hr_status status = HR_OK;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (uint32_t k = 0; k < families[f]->count; k++) {
            const cuda_impl *impl = &families[f]->impls[k];
            if ((own && impl->ask != NULL) || !suits(device, impl, q)) {
                continue;
            }
            status = ask_row(device, impl, q, workspace_limit, answer, err);
            if (status != HR_DEVICE) {
                *out = status == HR_OK ? impl : NULL;
                return status;
            }
        }
    }
    return status != HR_OK
               ? status
               : HR_FAIL(err, DEVICE, "the cuda device has no kernel for %s", op_name((hr_op)q->op));
}

hr_status cuda_pick(cuda_device *device, const op_query *q, uint64_t workspace_limit, const cuda_impl **out,
                    target_answer *answer, hr_err *err)
{
    hr_err refusal; // of rows that were passed over
    *out = NULL;
    HR_TRY(check_operands(q, err));
    const hr_status status = pick_within(device, q, workspace_limit, false, out, answer, &refusal);
    if (status == HR_OK ||
        (status == HR_DEVICE && pick_within(device, q, UINT64_MAX, true, out, answer, NULL) == HR_OK)) {
        return HR_OK;
    }
    if (err != NULL) {
        *err = refusal;
    }
    return status;
}

static bool is_of_a_library(const cuda_impl *impl)
{
    return strcmp(impl->name, CUDA_CUDNN) == 0 || strcmp(impl->name, CUDA_CUBLASLT) == 0;
}

hr_status cuda_pick_own(cuda_device *device, const op_query *q, const cuda_impl **out, target_answer *answer,
                        hr_err *err)
{
    *out = NULL;
    return pick_within(device, q, UINT64_MAX, true, out, answer, err);
}

hr_status cuda_pick_planned(cuda_device *device, const op_query *q, uint64_t workspace_limit,
                            const cuda_impl **out, target_answer *answer, hr_err *err)
{
    const cuda_impl *of_other = NULL;
    target_answer unused;
    HR_TRY(cuda_pick(device, q, workspace_limit, out, answer, err));
    if (!attention_drops(q) || !is_of_a_library(*out)) {
        return HR_OK;
    }
    const op_query other = attention_other_pass(q);
    HR_TRY(cuda_pick(device, &other, workspace_limit, &of_other, &unused, err));
    return is_of_a_library(of_other) ? HR_OK : cuda_pick_own(device, q, out, answer, err);
}

// ---- what a library was asked for in vain ------------------------------------------------------------------------

// The library's row that was asked and refused before `taken` was; NULL: none.
static const cuda_impl *refused_before(const cuda_device *device, const op_query *q, const cuda_impl *taken,
                                       bool within_limit)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (uint32_t k = 0; k < families[f]->count; k++) {
            const cuda_impl *impl = &families[f]->impls[k];
            if (impl == taken && within_limit) {
                return NULL;
            }
            if (is_of_a_library(impl) && suits(device, impl, q)) {
                return impl;
            }
        }
    }
    return NULL;
}

static hr_status why_not(cuda_device *device, const cuda_impl *refused, const op_query *q, uint8_t *why,
                         hr_err *err)
{
    hr_err refusal;
    target_answer unlimited;
    const bool is_cudnn = strcmp(refused->name, CUDA_CUDNN) == 0;
    if (is_cudnn && cudnn_need(NULL) != HR_OK) {
        *why = TARGET_INSTEAD_LIBRARY;
        return HR_OK;
    }
    if (is_cudnn && cudnn_gate_query(device, q, NULL) == HR_DEVICE) {
        *why = TARGET_INSTEAD_FAULT;
        return HR_OK;
    }
    const hr_status status = ask_row(device, refused, q, UINT64_MAX, &unlimited, &refusal);
    *why = status == HR_OK          ? TARGET_INSTEAD_LIMIT
           : cudnn_shows_compiled() ? TARGET_INSTEAD_ENGINE
                                    : TARGET_INSTEAD_DRIVER;
    if (status != HR_OK && status != HR_DEVICE && err != NULL) {
        *err = refusal;
    }
    return status == HR_DEVICE ? HR_OK : status;
}

hr_status cuda_say_instead(cuda_device *device, const op_query *q, uint64_t workspace_limit,
                           const cuda_impl *taken, target_answer *answer, hr_err *err)
{
    const bool within_limit = answer->workspace_bytes <= workspace_limit;
    target_answer unused;
    const cuda_impl *refused = is_of_a_library(taken) ? NULL : refused_before(device, q, taken, within_limit);
    if (refused == NULL) {
        return HR_OK;
    }
    const op_query other = attention_drops(q) ? attention_other_pass(q) : *q;
    if (attention_drops(q) && ask_row(device, refused, q, workspace_limit, &unused, NULL) == HR_OK) {
        q = &other; // this pass alone it would compute
        refused = refused_before(device, q, NULL, true);
    }
    char name[TARGET_IMPL_MAX];
    (void)snprintf(name, sizeof name, "%s, not %s", answer->impl, refused->name);
    answer->impl = target_impl_name("", name);
    return refused == NULL ? HR_OK : why_not(device, refused, q, &answer->instead, err);
}

void cuda_refusal(cuda_device *device, const op_query *q, uint64_t workspace_limit, const cuda_impl *taken,
                  hr_err *out)
{
    target_answer answer;
    const cuda_impl *refused = is_of_a_library(taken) ? NULL : refused_before(device, q, taken, true);
    *out = (hr_err){.status = HR_OK};
    if (refused != NULL) {
        (void)ask_row(device, refused, q, workspace_limit, &answer, out);
    }
}
