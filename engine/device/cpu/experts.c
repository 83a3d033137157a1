// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts (ops/experts.h): who computes a token, the balance of that, and the ways to the slots and back. Rows
// move in any type; sums of rows and their products are in float32, rounded once.
#include "ops/experts.h"

#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { STRIP = 512, GRAIN_FLOATS = 16384 };

// ---- choice -----------------------------------------------------------------------------------------------

typedef struct choice_job {
    const float *logits;
    float *gates, *dlogits;
    const float *dgates;
    int32_t *slots;
    double *partial;
    int64_t samples, tokens, experts, chosen, capacity;
    bool shares;
    float share; // of a choice, in the gradient of the balance
} choice_job;

static choice_job job_of(const cpu_run *r, const op_operand *slots)
{
    const op_query *q = r->query;
    const int64_t *d = q->in[0].shape.dim;
    return (choice_job){.logits = r->in[0],
                        .samples = d[0],
                        .tokens = d[1],
                        .experts = d[2],
                        .chosen = slots->shape.dim[2],
                        .capacity = q->attr.slots,
                        .shares = (q->attr.flags & OP_FLAG_SHARES) != 0};
}

static int64_t grain_of(const choice_job *j)
{
    return j->experts >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / j->experts;
}

static float largest(const float *logits, int64_t experts)
{
    float most = logits[0];
    for (int64_t e = 1; e < experts; e++) {
        most = logits[e] > most ? logits[e] : most;
    }
    return most;
}

static float exponentials(const float *logits, int64_t experts, float most)
{
    float sum = 0.0f;
    for (int64_t e = 0; e < experts; e++) {
        sum += expf(logits[e] - most);
    }
    return sum;
}

// The largest logit behind the one of `before`: smaller, or as large and further on; −1 before the first.
static int32_t next_expert(const float *logits, int32_t experts, int32_t before)
{
    int32_t best = -1;
    for (int32_t e = 0; e < experts; e++) {
        const bool behind =
            before < 0 || logits[e] < logits[before] || (logits[e] == logits[before] && e > before);
        best = behind && (best < 0 || logits[e] > logits[best]) ? e : best;
    }
    return best;
}

static void choose(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const choice_job *j = argument;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const float *logits = j->logits + t * j->experts;
        float *gates = j->gates + t * j->chosen, sum = 0.0f;
        int32_t *slots = j->slots + t * j->chosen;
        for (int64_t k = 0; k < j->chosen; k++) {
            const int32_t next = next_expert(logits, (int32_t)j->experts, k > 0 ? slots[k - 1] : -1);
            slots[k] = next < 0 ? 0 : next; // logits that are not numbers
            gates[k] = expf(logits[slots[k]] - logits[slots[0]]);
            sum += gates[k];
        }
        sum = j->shares ? sum : exponentials(logits, j->experts, logits[slots[0]]);
        for (int64_t k = 0; k < j->chosen; k++) {
            gates[k] /= sum;
        }
    }
}

static void place(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const choice_job *j = argument;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        int32_t used[OP_MAX_EXPERTS] = {0};
        int32_t *slots = j->slots + n * j->tokens * j->chosen;
        for (int64_t k = 0; k < j->chosen; k++) {
            for (int64_t t = 0; t < j->tokens; t++) {
                int32_t *slot = &slots[t * j->chosen + k];
                const int32_t e = *slot;
                *slot = used[e] < j->capacity ? used[e] * (int32_t)j->experts + e : OP_DROPPED(e);
                used[e]++;
            }
        }
    }
}

static void run_route(const cpu_run *r)
{
    choice_job j = job_of(r, &r->query->out[1]);
    j.gates = r->out[0];
    j.slots = r->out[1];
    workers_for(r->device->workers, j.samples * j.tokens, grain_of(&j), choose, &j);
    workers_for(r->device->workers, j.samples, 1, place, &j);
}

const cpu_impl cpu_route = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_route};

static void route_back(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const choice_job *j = argument;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const float *logits = j->logits + t * j->experts, *dgates = j->dgates + t * j->chosen;
        float *d = j->dlogits + t * j->experts, gate[OP_MAX_CHOICES], sum = 0.0f, along = 0.0f;
        int32_t expert[OP_MAX_CHOICES];
        const float most = largest(logits, j->experts);
        for (int64_t k = 0; k < j->chosen; k++) {
            expert[k] = op_expert_of(j->slots[t * j->chosen + k], (int32_t)j->experts);
            gate[k] = expf(logits[expert[k]] - most);
            sum += gate[k];
        }
        sum = j->shares ? sum : exponentials(logits, j->experts, most);
        for (int64_t k = 0; k < j->chosen; k++) {
            along += gate[k] / sum * dgates[k];
        }
        for (int64_t e = 0; e < j->experts; e++) {
            d[e] = j->shares ? 0.0f : -expf(logits[e] - most) / sum * along;
        }
        for (int64_t k = 0; k < j->chosen; k++) {
            d[expert[k]] = gate[k] / sum * (dgates[k] - along);
        }
    }
}

static void run_route_bwd(const cpu_run *r)
{
    choice_job j = job_of(r, &r->query->in[1]);
    j.slots = r->in[1];
    j.dgates = r->in[2];
    j.dlogits = r->out[0];
    workers_for(r->device->workers, j.samples * j.tokens, grain_of(&j), route_back, &j);
}

const cpu_impl cpu_route_bwd = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_route_bwd};

// ---- balance ----------------------------------------------------------------------------------------------

static void count_choices(const choice_job *j, int64_t sample, float *count)
{
    memset(count, 0, (size_t)j->experts * sizeof *count);
    for (int64_t k = sample * j->tokens * j->chosen; k < (sample + 1) * j->tokens * j->chosen; k++) {
        count[op_expert_of(j->slots[k], (int32_t)j->experts)] += 1.0f;
    }
}

// Of samples; the sum of each into its place.
static void balance(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const choice_job *j = argument;
    float count[OP_MAX_EXPERTS];
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        double total = 0.0;
        count_choices(j, n, count);
        for (int64_t t = n * j->tokens; t < (n + 1) * j->tokens; t++) {
            const float *logits = j->logits + t * j->experts, most = largest(logits, j->experts);
            float sum = 0.0f, chosen = 0.0f;
            for (int64_t e = 0; e < j->experts; e++) {
                const float p = expf(logits[e] - most);
                sum += p;
                chosen += p * count[e];
            }
            total += (double)(chosen / sum);
        }
        j->partial[n] = total;
    }
}

static double mean_factor(const choice_job *j)
{
    return (double)j->experts / ((double)j->tokens * (double)j->tokens * (double)j->samples);
}

static uint64_t sample_bytes(const cpu_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)q->in[0].shape.dim[0] * sizeof(double);
}

static void run_balance(const cpu_run *r)
{
    choice_job j = job_of(r, &r->query->in[1]);
    double total = 0.0;
    j.slots = r->in[1];
    j.partial = r->workspace;
    workers_for(r->device->workers, j.samples, 1, balance, &j);
    for (int64_t n = 0; n < j.samples; n++) {
        total += j.partial[n];
    }
    *(float *)r->out[0] = (float)(mean_factor(&j) * total);
}

const cpu_impl cpu_balance = {
    .name = "by samples", .types = CPU_ANY_TYPE, .workspace = sample_bytes, .run = run_balance};

static void balance_back(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const choice_job *j = argument;
    float count[OP_MAX_EXPERTS];
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        count_choices(j, n, count);
        for (int64_t t = n * j->tokens; t < (n + 1) * j->tokens; t++) {
            const float *logits = j->logits + t * j->experts, most = largest(logits, j->experts);
            float *d = j->dlogits + t * j->experts, sum = 0.0f, along = 0.0f;
            for (int64_t e = 0; e < j->experts; e++) {
                d[e] = expf(logits[e] - most);
                sum += d[e];
                along += d[e] * count[e];
            }
            for (int64_t e = 0; e < j->experts; e++) {
                d[e] = j->share * (d[e] / sum) * (count[e] - along / sum);
            }
        }
    }
}

static void run_balance_bwd(const cpu_run *r)
{
    const op_query *q = r->query;
    choice_job j = job_of(r, &q->in[1]);
    const double weight = (q->attr.scale == 0.0 ? 1.0 : q->attr.scale) *
                          (q->in_count > 2 ? (double)*(const float *)r->in[2] : 1.0);
    j.slots = r->in[1];
    j.dlogits = r->out[0];
    j.share = (float)(weight * mean_factor(&j));
    workers_for(r->device->workers, j.samples, 1, balance_back, &j);
}

const cpu_impl cpu_balance_bwd = {.name = "by samples", .types = CPU_ANY_TYPE, .run = run_balance_bwd};

// ---- there and back ---------------------------------------------------------------------------------------

// Between tokens [N,T,D] and slots [N,C,E,D].
typedef struct way {
    const char *from, *dz; // dz: of the gradient of a gathering
    const float *gates;    // NULL: all are 1
    const int32_t *slots;
    char *to;
    float *dgates;
    int64_t tokens, chosen, features, room, bytes; // tokens, room: of a sample; bytes: of a feature
    hr_dtype type;
} way;

static way way_of(const op_operand *in_slots, const op_operand *slots)
{
    const hr_shape *y = &in_slots->shape, *s = &slots->shape;
    return (way){.tokens = s->dim[1],
                 .chosen = s->dim[2],
                 .features = y->dim[3],
                 .room = y->dim[1] * y->dim[2],
                 .bytes = (int64_t)dtype_bytes((hr_dtype)in_slots->dtype),
                 .type = (hr_dtype)in_slots->dtype};
}

static int64_t rows_grain(const way *w)
{
    return w->features >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / w->features;
}

// The row of the slot that choice k of a token has; −1: none.
static int64_t row_of(const way *w, int64_t token, int64_t k)
{
    const int32_t slot = w->slots[token * w->chosen + k];
    return slot < 0 ? -1 : token / w->tokens * w->room + slot;
}

static void send(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const way *w = argument;
    const int64_t row_bytes = w->features * w->bytes;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        memset(w->to + n * w->room * row_bytes, 0, (size_t)(w->room * row_bytes));
        for (int64_t k = 0; k < w->tokens * w->chosen; k++) {
            const int64_t token = n * w->tokens + k / w->chosen, row = row_of(w, token, k % w->chosen);
            if (row >= 0) {
                memcpy(w->to + row * row_bytes, w->from + token * row_bytes, (size_t)row_bytes);
            }
        }
    }
}

static void run_dispatch(const cpu_run *r)
{
    way w = way_of(&r->query->out[0], &r->query->in[1]);
    w.from = r->in[0];
    w.slots = r->in[1];
    w.to = r->out[0];
    workers_for(r->device->workers, r->query->in[0].shape.dim[0], 1, send, &w);
}

const cpu_impl cpu_dispatch = {.name = "by samples", .types = CPU_ANY_TYPE, .run = run_dispatch};

CPU_HOT static void add_scaled(float *sum, const float *x, float gate, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] += gate * x[i];
    }
}

static void store(void *to, hr_dtype type, const float *from, int64_t count)
{
    if (type == HR_F32) {
        memcpy(to, from, (size_t)count * sizeof *from);
    } else {
        cast_narrow(to, type, from, count);
    }
}

static void collect(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const way *w = argument;
    float sum[STRIP], x[STRIP];
    (void)worker;
    for (int64_t token = begin; token < end; token++) {
        for (int64_t first = 0; first < w->features; first += STRIP) {
            const int64_t left = w->features - first, count = left < STRIP ? left : STRIP;
            memset(sum, 0, (size_t)count * sizeof *sum);
            for (int64_t k = 0; k < w->chosen; k++) {
                const int64_t row = row_of(w, token, k);
                if (row >= 0) {
                    cast_widen(x, w->from + (row * w->features + first) * w->bytes, w->type, count);
                    add_scaled(sum, x, w->gates != NULL ? w->gates[token * w->chosen + k] : 1.0f, count);
                }
            }
            store(w->to + (token * w->features + first) * w->bytes, w->type, sum, count);
        }
    }
}

// The gradient of a dispatch is a gathering without gates.
static void run_gather(const cpu_run *r)
{
    const bool gated = r->query->op == HR_OP_GATHER;
    const uint32_t at = gated ? 2 : 1;
    way w = way_of(&r->query->in[0], &r->query->in[at]);
    w.from = r->in[0];
    w.gates = gated ? r->in[1] : NULL;
    w.slots = r->in[at];
    w.to = r->out[0];
    workers_for(r->device->workers, r->query->out[0].shape.dim[0] * w.tokens, rows_grain(&w), collect, &w);
}

const cpu_impl cpu_gather = {.name = "by tokens", .types = CPU_ANY_TYPE, .run = run_gather};

CPU_HOT static float dot(const float *a, const float *b, int64_t count)
{
    f32x16 lanes = {0};
    float sum = 0.0f;
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        lanes += F32X16(a + i) * F32X16(b + i);
    }
    for (; i < count; i++) {
        sum += a[i] * b[i];
    }
    for (int lane = 0; lane < CPU_LANES; lane++) {
        sum += lanes[lane];
    }
    return sum;
}

// One choice: what it gives its slot, and the gradient of its gate.
static void give_back(const way *w, int64_t token, int64_t k, int64_t row)
{
    float y[STRIP], dz[STRIP];
    const int64_t at = token * w->chosen + k;
    double total = 0.0;
    for (int64_t first = 0; row >= 0 && first < w->features; first += STRIP) {
        const int64_t left = w->features - first, count = left < STRIP ? left : STRIP;
        const int64_t place = (row * w->features + first) * w->bytes;
        cast_widen(y, w->from + place, w->type, count);
        cast_widen(dz, w->dz + (token * w->features + first) * w->bytes, w->type, count);
        total += (double)dot(y, dz, count);
        memset(y, 0, (size_t)count * sizeof *y);
        add_scaled(y, dz, w->gates[at], count);
        store(w->to + place, w->type, y, count);
    }
    w->dgates[at] = (float)total;
}

static void give_all_back(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const way *w = argument;
    const int64_t room_bytes = w->room * w->features * w->bytes;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        memset(w->to + n * room_bytes, 0, (size_t)room_bytes);
        for (int64_t k = 0; k < w->tokens * w->chosen; k++) {
            const int64_t token = n * w->tokens + k / w->chosen;
            give_back(w, token, k % w->chosen, row_of(w, token, k % w->chosen));
        }
    }
}

static void run_gather_bwd(const cpu_run *r)
{
    way w = way_of(&r->query->in[0], &r->query->in[2]);
    w.from = r->in[0];
    w.gates = r->in[1];
    w.slots = r->in[2];
    w.dz = r->in[3];
    w.to = r->out[0];
    w.dgates = r->out[1];
    workers_for(r->device->workers, r->query->in[0].shape.dim[0], 1, give_all_back, &w);
}

const cpu_impl cpu_gather_bwd = {.name = "by samples", .types = CPU_ANY_TYPE, .run = run_gather_bwd};
