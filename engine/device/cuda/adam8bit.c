// SPDX-License-Identifier: Apache-2.0
// Adam with moments of one byte each: codes of blocks of 256 weights, with a scale for each block.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/code8.h"
#include "base/host_mem.h"
#include "kernels/adam8bit_args.h"
#include "ops/adam.h"
#include "update.h"

enum { LANES = 32 };

_Static_assert(sizeof(adam8bit_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");
_Static_assert((int)ADAM8BIT_VALUES == CODE8_VALUES, "codes of a byte");

// ---- codes --------------------------------------------------------------------------------------

enum { DECADES = 7, ZERO_RUN = 0 };

// Of the codes above zero: decade d holds `cells` of them from code `first` on (base/code8.c).
typedef struct decade {
    int32_t cells, first;
    double unit; // what the decade ends at
} decade;

static decade decade_of(code8_kind kind, int d)
{
    const bool is_signed = kind == CODE8_SIGNED;
    return (decade){is_signed ? 1 << d : 2 << d, is_signed ? 1 << d : (2 << d) - 1,
                    pow(10.0, d + 1 - DECADES)};
}

// A decade's middles lie half a cell above its edges, so that the nearest code follows from the cell. A hundredth of a
// cell is taken off, so that rounding never leads to the code above; half a cell because adding INTEGER_BITS rounds.
static code_run run_of(const decade *d)
{
    const double slope = (double)d->cells / (0.9 * d->unit);
    return (code_run){(float)slope, (float)((double)d->first - slope * 0.1 * d->unit - 0.51),
                      (float)(d->first + d->cells - 1), 0.0F};
}

// No octave has two thresholds: they lie more than seven times apart.
static void make_finder(code8_kind kind, const float *value, code_finder *out)
{
    out->run[ZERO_RUN] = (code_run){0};
    for (uint32_t k = 0; k < ADAM8BIT_OCTAVES; k++) {
        out->octave[k] = (code_octave){INFINITY, 0};
    }
    for (int d = 0; d < DECADES; d++) {
        const decade own = decade_of(kind, d);
        const float threshold = (value[own.first - 1] + value[own.first]) / 2;
        out->run[d + 1] = run_of(&own);
        for (int k = 0; k < ADAM8BIT_OCTAVES; k++) {
            const float begin = ldexpf(1.0F, k - ADAM8BIT_OCTAVES);
            out->octave[k].below += threshold < begin;
            out->octave[k].threshold =
                threshold >= begin && threshold < 2 * begin ? threshold : out->octave[k].threshold;
        }
    }
}

static void make_codes(adam8bit_args *a)
{
    enum { ZERO = CODE8_VALUES / 2 - 1 };
    float values[CODE8_VALUES];
    code8_table(CODE8_SIGNED, values);
    memcpy(a->m_value, values + ZERO, sizeof a->m_value);
    code8_table(CODE8_UNSIGNED, a->v_value);
    make_finder(CODE8_SIGNED, a->m_value, &a->m_finder);
    make_finder(CODE8_UNSIGNED, a->v_value, &a->v_finder);
}

// ---- kernel -------------------------------------------------------------------------------------

static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].dtype == q->in[0].dtype && q->in[2].dtype == HR_U8 && q->in[3].dtype == HR_U8 &&
           q->in[4].dtype == HR_F32;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "adam8bit_%s", cuda_suffix(cuda_type(q)));
}

static hr_status prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)device, (void)p, (void)i, (void)workspace_bytes;
    const op_attr *attr = &q->attr;
    adam8bit_args *a = hr_calloc(1, sizeof *a);
    if (a == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the codes of adam8bit");
    }
    *a = (adam8bit_args){.elements = (int64_t)cuda_elements(&q->in[0]),
                         .blocks = (int64_t)cuda_elements(&q->in[4]) / 2,
                         .keep1 = (float)(1.0 - attr->beta1),
                         .keep2 = (float)(1.0 - attr->beta2)};
    make_codes(a);
    *state = a;
    return HR_OK;
}

static void release(cuda_device *device, void *state)
{
    (void)device;
    hr_free(state);
}

static void fill(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const adam_step step = adam_step_of(&q->attr, io->learning_rate, io->update);
    const adam8bit_scalars s = {(float)step.rate, (float)step.epsilon, (float)cuda_kept_of(q, io)};
    memcpy(slot, &s, sizeof s);
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    adam8bit_args a = *(const adam8bit_args *)r->state;
    a.w = (void *)r->in[0];
    a.g = (const void *)r->in[1];
    a.m = (uint8_t *)r->in[2];
    a.v = (uint8_t *)r->in[3];
    a.scales = (float *)r->in[4];
    a.finite = (const int32_t *)cuda_verdict_of(r);
    a.scalars = (const adam8bit_scalars *)r->scalars;
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)a.blocks * LANES, 1, ADAM8BIT_THREADS);
    return cuda_launch(r, r->function, grid, &a, sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_ADAM8BIT,
     .types = CUDA_REAL,
     .name = "blocks of 256",
     .fits = fits,
     .module = "adam8bit",
     .kernel = name_of,
     .prepare = prepare,
     .release = release,
     .scalars = fill,
     .run = run},
};

const cuda_family cuda_family_adam8bit = CUDA_FAMILY(impls);
