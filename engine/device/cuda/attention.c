// SPDX-License-Identifier: Apache-2.0
// Streaming attention of two-byte types through cuDNN. What the library does not take (float32, heads of odd size, cards
// before Ampere, a mask over unequal lengths) the row behind takes.
//
// Backward takes 4·d bytes a query and head where blocks may add to dq in any order, 2·Lk where they may not. Our own parts
// of the workspace come first, the library's behind them; its bytes, taken as the limit, give the same again.
#include <stddef.h>
#include <string.h>

#include "headroom/units.h"

#include "attention_places.h"
#include "attention_spec.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "gates.h"
#include "ops/dropout.h"

enum { PART_ALIGNMENT = 256, FEATURES_STEP = 8, FEATURES_MAX = 256 };

static bool suits(const cuda_device *device, const op_query *q)
{
    const op_attention a = op_attention_of(q);
    const bool causal = (q->attr.flags & OP_FLAG_CAUSAL) != 0;
    return cuda_device_traits(device)->compute_major >= 8 && a.features % FEATURES_STEP == 0 &&
           a.features <= FEATURES_MAX && (!causal || a.queries == a.keys);
}

static bool fits(const cuda_device *device, const op_query *q)
{
    return q->attr.rate == 0.0 && suits(device, q);
}

// The library draws masks of its own, of a batch as a whole: another split into micro-batches has others. Who asks for the
// same bits every time gets those of ops/dropout.h.
static bool fits_dropping(const cuda_device *device, const op_query *q)
{
    return q->attr.rate > 0.0 && !cuda_device_deterministic(device) && suits(device, q);
}

// ---- the choice ------------------------------------------------------------------------------------------------

typedef struct attention_choice {
    graph_spec spec;
    attention_seed seed;
    graph_choice library;
    attention_dq dq;
    uint64_t sum_bytes, dq_sum_bytes; // of our own parts, rounded up
    uint64_t own_bytes;
} attention_choice;

static bool is_backward(const op_query *q)
{
    return q->op == HR_OP_ATTENTION_BWD;
}

static bool part_bytes(uint64_t elements, uint64_t *bytes)
{
    if (!hr_mul_bytes(elements, sizeof(float), bytes) || !hr_add_bytes(*bytes, PART_ALIGNMENT - 1, bytes)) {
        return false;
    }
    *bytes -= *bytes % PART_ALIGNMENT;
    return true;
}

// False when the parts cannot be counted.
static bool measure_parts(const op_query *q, attention_choice *c)
{
    const op_attention a = op_attention_of(q);
    c->sum_bytes = c->dq_sum_bytes = 0;
    return !is_backward(q) ||
           (part_bytes(cuda_elements(&q->in[a.lse]), &c->sum_bytes) &&
            (c->dq != ATTENTION_DQ_OURS || part_bytes(cuda_elements(&q->in[a.y]), &c->dq_sum_bytes)) &&
            hr_add_bytes(c->sum_bytes, c->dq_sum_bytes, &c->own_bytes));
}

static hr_status choose_form(cuda_device *device, const op_query *q, uint64_t limit, attention_choice *c,
                             hr_err *err)
{
    if (!measure_parts(q, c) || c->own_bytes > limit) {
        return HR_FAIL(err, DEVICE, "%s needs more workspace than workspace.limit for its sums",
                       op_name((hr_op)q->op));
    }
    if (is_backward(q)) {
        attention_bwd_spec(q, c->dq, &c->spec, &c->seed);
    } else {
        attention_spec(q, &c->spec, &c->seed);
    }
    return graph_choose(device, &c->spec, limit - c->own_bytes, &c->library, err);
}

// Engines for Hopper and data-centre Blackwell add to a sum that is given to them, the others have one inside.
static attention_dq preferred_dq(const cuda_device *device)
{
    const uint32_t major = cuda_device_traits(device)->compute_major;
    return cuda_device_deterministic(device) ? ATTENTION_DQ_WHOLE
           : major == 9 || major == 10       ? ATTENTION_DQ_OURS
                                             : ATTENTION_DQ_THEIRS;
}

static hr_status choose(cuda_device *device, const op_query *q, uint64_t limit, attention_choice *c,
                        hr_err *err)
{
    *c = (attention_choice){.dq = preferred_dq(device)};
    if (cudnn_gate_query(device, q, err) == HR_DEVICE) {
        return HR_DEVICE;
    }
    const hr_status status = choose_form(device, q, limit, c, err);
    if (status != HR_DEVICE || !is_backward(q) || c->dq == ATTENTION_DQ_WHOLE) {
        return status;
    }
    *c = (attention_choice){.dq = ATTENTION_DQ_WHOLE};
    return choose_form(device, q, limit, c, err);
}

static hr_status ask(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    attention_choice c;
    HR_TRY(choose(device, q, limit, &c, err));
    if (!hr_add_bytes(c.own_bytes, c.library.workspace_bytes, &out->workspace_bytes)) {
        return HR_FAIL(err, DEVICE, "%s needs more workspace than can be counted", op_name((hr_op)q->op));
    }
    out->impl = target_impl_name(CUDA_CUDNN, c.library.name);
    out->behind = c.library.behind;
    return HR_OK;
}

// ---- prepare and run -------------------------------------------------------------------------------------------

typedef struct attention_state {
    graph *graph;
    attention_seed seed;
    uint64_t sum_bytes, dq_sum_bytes;
} attention_state;

static hr_status prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i;
    attention_choice c;
    HR_TRY(choose(device, q, workspace_bytes, &c, err));
    attention_state *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for the plan of %s", op_name((hr_op)q->op));
    }
    *s = (attention_state){.seed = c.seed, .sum_bytes = c.sum_bytes, .dq_sum_bytes = c.dq_sum_bytes};
    const hr_status status = graph_prepare(device, &c.spec, workspace_bytes - c.own_bytes, &s->graph, err);
    if (status != HR_OK) {
        hr_free(s);
        return status;
    }
    *state = s;
    return HR_OK;
}

static void release(cuda_device *device, void *state)
{
    (void)device;
    attention_state *s = state;
    if (s != NULL) {
        graph_destroy(s->graph);
        hr_free(s);
    }
}

static const char *chosen(const void *state)
{
    return graph_name(((const attention_state *)state)->graph);
}

// What a step's slot of scalars holds: two tensors, aligned as all are.
typedef struct seed_scalars {
    uint64_t seed, unused, offset, unused_too;
} seed_scalars;

static void fill_seed(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const dropout_draw d = dropout_begin(&q->attr, io->seed, io->update);
    const uint64_t key = (uint64_t)d.key.word[1] << 32 | d.key.word[0];
    const seed_scalars s = {.seed = hash64_mix(key, io->first_sample)};
    _Static_assert(sizeof s <= CUDA_SCALAR_BYTES, "a slot holds the scalars");
    memcpy(slot, &s, sizeof s);
}

static void add_seed_addresses(const cuda_run *r, CUdeviceptr address[GRAPH_TENSORS_MAX])
{
    const attention_seed at = ((const attention_state *)r->state)->seed;
    if (r->query->attr.rate > 0.0) {
        address[at.seed] = r->scalars + offsetof(seed_scalars, seed);
        address[at.offset] = r->scalars + offsetof(seed_scalars, offset);
    }
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const attention_state *s = r->state;
    const attention_places at = attention_places_of(r->query, r->in, r->out);
    CUdeviceptr address[GRAPH_TENSORS_MAX] = {
        [ATTENTION_Q] = at.q,      [ATTENTION_K] = at.k,        [ATTENTION_V] = at.v,
        [ATTENTION_Y] = r->out[0], [ATTENTION_LSE] = r->out[1],
    };
    add_seed_addresses(r, address);
    return graph_run(s->graph, r->stream, address, r->workspace, err);
}

static hr_status run_backward(const cuda_run *r, hr_err *err)
{
    const attention_state *s = r->state;
    const attention_places at = attention_places_of(r->query, r->in, r->out);
    const CUdeviceptr dq_sum = r->workspace + s->sum_bytes, library = dq_sum + s->dq_sum_bytes;
    CUdeviceptr address[GRAPH_TENSORS_MAX] = {
        [ATTENTION_BWD_Q] = at.q,           [ATTENTION_BWD_K] = at.k,   [ATTENTION_BWD_V] = at.v,
        [ATTENTION_BWD_Y] = at.y,           [ATTENTION_BWD_DY] = at.dy, [ATTENTION_BWD_LSE] = at.lse,
        [ATTENTION_BWD_DQ] = at.dq,         [ATTENTION_BWD_DK] = at.dk, [ATTENTION_BWD_DV] = at.dv,
        [ATTENTION_BWD_SUM] = r->workspace,
    };
    if (s->dq_sum_bytes > 0) {
        address[ATTENTION_BWD_REAL] = dq_sum;
    }
    add_seed_addresses(r, address);
    return graph_run(s->graph, r->stream, address, library, err);
}

#define STREAMING(OP, run_of, fits_of, scalars_of)                                                           \
    {                                                                                                        \
        .op = (OP), .types = CUDA_HALF, .name = CUDA_CUDNN, .fits = (fits_of), .ask = ask,                   \
        .prepare = prepare, .release = release, .chosen = chosen, .scalars = (scalars_of), .run = (run_of)   \
    }

static const cuda_impl impls[] = {
    STREAMING(HR_OP_ATTENTION, run_forward, fits, NULL),
    STREAMING(HR_OP_ATTENTION, run_forward, fits_dropping, fill_seed),
    STREAMING(HR_OP_ATTENTION_BWD, run_backward, fits, NULL),
    STREAMING(HR_OP_ATTENTION_BWD, run_backward, fits_dropping, fill_seed),
};

const cuda_family cuda_family_attention = CUDA_FAMILY(impls);
