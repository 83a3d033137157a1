// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts (ops/experts.h).
#include "ops/experts.h"

#include <math.h>
#include <string.h>

#include "kernels.h"

// The sizes of a choice: samples, tokens of each, experts, experts of a token.
typedef struct choice {
    int64_t samples, tokens, experts, chosen;
} choice;

static choice choice_of(const op_operand *logits, const op_operand *slots)
{
    return (choice){logits->shape.dim[0], logits->shape.dim[1], logits->shape.dim[2], slots->shape.dim[2]};
}

// The largest logit that is none of those before.
static int32_t next_expert(const double *logits, int64_t experts, const int32_t *before, int64_t count)
{
    int32_t best = -1;
    for (int32_t e = 0; e < experts; e++) {
        bool taken = false;
        for (int64_t k = 0; k < count; k++) {
            taken = taken || before[k] == e;
        }
        best = !taken && (best < 0 || logits[e] > logits[best]) ? e : best;
    }
    return best;
}

static double exponentials(const double *logits, int64_t experts, double most)
{
    double sum = 0.0;
    for (int64_t e = 0; e < experts; e++) {
        sum += exp(logits[e] - most);
    }
    return sum;
}

static void choose(const reference_call *call, const choice *c, int64_t token)
{
    const double *logits = (const double *)call->in[0] + token * c->experts;
    double *gates = (double *)call->out[0] + token * c->chosen, sum = 0.0;
    int32_t *slots = (int32_t *)call->out[1] + token * c->chosen;
    for (int64_t k = 0; k < c->chosen; k++) {
        slots[k] = next_expert(logits, c->experts, slots, k);
        gates[k] = exp(logits[slots[k]] - logits[slots[0]]);
        sum += gates[k];
    }
    if ((call->query->attr.flags & OP_FLAG_SHARES) == 0) {
        sum = exponentials(logits, c->experts, logits[slots[0]]);
    }
    for (int64_t k = 0; k < c->chosen; k++) {
        gates[k] /= sum;
    }
}

// Experts become their slots.
static void place(const reference_call *call, const choice *c, int64_t sample)
{
    int32_t *slots = (int32_t *)call->out[1] + sample * c->tokens * c->chosen;
    int32_t used[OP_MAX_EXPERTS] = {0};
    for (int64_t k = 0; k < c->chosen; k++) {
        for (int64_t t = 0; t < c->tokens; t++) {
            int32_t *slot = &slots[t * c->chosen + k];
            const int32_t e = *slot;
            *slot = used[e] < call->query->attr.slots ? used[e] * (int32_t)c->experts + e : OP_DROPPED(e);
            used[e]++;
        }
    }
}

void reference_route(const reference_call *call)
{
    const choice c = choice_of(&call->query->in[0], &call->query->out[1]);
    for (int64_t n = 0; n < c.samples; n++) {
        for (int64_t t = 0; t < c.tokens; t++) {
            choose(call, &c, n * c.tokens + t);
        }
        place(call, &c, n);
    }
}

// dz = p * (dp − Σ p·dp) over those that the gates are a softmax of: all, or the chosen.
static void softmax_gradient(const double *logits, double *d, const bool *over, int64_t experts)
{
    double most = -INFINITY, sum = 0.0, along = 0.0;
    for (int64_t e = 0; e < experts; e++) {
        most = over[e] && logits[e] > most ? logits[e] : most;
    }
    for (int64_t e = 0; e < experts; e++) {
        sum += over[e] ? exp(logits[e] - most) : 0.0;
    }
    for (int64_t e = 0; e < experts; e++) {
        along += over[e] ? exp(logits[e] - most) / sum * d[e] : 0.0;
    }
    for (int64_t e = 0; e < experts; e++) {
        d[e] = over[e] ? exp(logits[e] - most) / sum * (d[e] - along) : 0.0;
    }
}

void reference_route_bwd(const reference_call *call)
{
    const choice c = choice_of(&call->query->in[0], &call->query->in[1]);
    const bool shares = (call->query->attr.flags & OP_FLAG_SHARES) != 0;
    for (int64_t t = 0; t < c.samples * c.tokens; t++) {
        double *d = (double *)call->out[0] + t * c.experts;
        bool over[OP_MAX_EXPERTS];
        for (int64_t e = 0; e < c.experts; e++) {
            over[e] = !shares;
            d[e] = 0.0;
        }
        for (int64_t k = t * c.chosen; k < (t + 1) * c.chosen; k++) {
            const int32_t e = op_expert_of(((const int32_t *)call->in[1])[k], (int32_t)c.experts);
            over[e] = true;
            d[e] = ((const double *)call->in[2])[k];
        }
        softmax_gradient((const double *)call->in[0] + t * c.experts, d, over, c.experts);
    }
}

// How many choices of the sample's tokens each expert is.
static void count_choices(const int32_t *slots, const choice *c, int64_t sample, double *count)
{
    memset(count, 0, (size_t)c->experts * sizeof *count);
    for (int64_t k = sample * c->tokens * c->chosen; k < (sample + 1) * c->tokens * c->chosen; k++) {
        count[op_expert_of(slots[k], (int32_t)c->experts)] += 1.0;
    }
}

static double largest(const double *logits, int64_t experts)
{
    double most = logits[0];
    for (int64_t e = 1; e < experts; e++) {
        most = logits[e] > most ? logits[e] : most;
    }
    return most;
}

void reference_balance(const reference_call *call)
{
    const choice c = choice_of(&call->query->in[0], &call->query->in[1]);
    double total = 0.0, count[OP_MAX_EXPERTS];
    for (int64_t t = 0; t < c.samples * c.tokens; t++) {
        const double *logits = (const double *)call->in[0] + t * c.experts;
        const double most = largest(logits, c.experts), sum = exponentials(logits, c.experts, most);
        if (t % c.tokens == 0) {
            count_choices(call->in[1], &c, t / c.tokens, count);
        }
        for (int64_t e = 0; e < c.experts; e++) {
            total += count[e] * exp(logits[e] - most) / sum;
        }
    }
    *(double *)call->out[0] =
        (double)c.experts * total / ((double)c.tokens * (double)c.tokens * (double)c.samples);
}

void reference_balance_bwd(const reference_call *call)
{
    const choice c = choice_of(&call->query->in[0], &call->query->in[1]);
    const double weight = (call->query->attr.scale == 0.0 ? 1.0 : call->query->attr.scale) *
                          (call->query->in_count > 2 ? *(const double *)call->in[2] : 1.0);
    const double share =
        weight * (double)c.experts / ((double)c.tokens * (double)c.tokens * (double)c.samples);
    double count[OP_MAX_EXPERTS];
    bool over[OP_MAX_EXPERTS];
    for (int64_t t = 0; t < c.samples * c.tokens; t++) {
        double *d = (double *)call->out[0] + t * c.experts;
        if (t % c.tokens == 0) {
            count_choices(call->in[1], &c, t / c.tokens, count);
        }
        for (int64_t e = 0; e < c.experts; e++) {
            over[e] = true;
            d[e] = share * count[e];
        }
        softmax_gradient((const double *)call->in[0] + t * c.experts, d, over, c.experts);
    }
}

// ---- there and back ---------------------------------------------------------------------------------------

// A way between tokens [N,T,D] and slots [N,C,E,D].
typedef struct way {
    int64_t choices, chosen, tokens; // choices: of all samples
    int64_t features, slots;         // slots: of a sample
    const int32_t *slot;
} way;

static way way_of(const op_operand *in_slots, const op_operand *slots, const void *slot)
{
    const hr_shape *y = &in_slots->shape, *s = &slots->shape;
    return (way){.choices = s->dim[0] * s->dim[1] * s->dim[2],
                 .chosen = s->dim[2],
                 .tokens = s->dim[1],
                 .features = y->dim[3],
                 .slots = y->dim[1] * y->dim[2],
                 .slot = slot};
}

// Where the features of the choice's slot begin; −1: it has none.
static int64_t slot_at(const way *w, int64_t k)
{
    const int64_t sample = k / w->chosen / w->tokens;
    return w->slot[k] < 0 ? -1 : (sample * w->slots + w->slot[k]) * w->features;
}

static int64_t token_at(const way *w, int64_t k)
{
    return k / w->chosen * w->features;
}

void reference_dispatch(const reference_call *call)
{
    const way w = way_of(&call->query->out[0], &call->query->in[1], call->in[1]);
    const double *x = call->in[0];
    double *y = call->out[0];
    memset(y, 0, call->out_count[0] * sizeof *y);
    for (int64_t k = 0; k < w.choices; k++) {
        const int64_t at = slot_at(&w, k);
        for (int64_t d = 0; at >= 0 && d < w.features; d++) {
            y[at + d] = x[token_at(&w, k) + d];
        }
    }
}

// z += what the slots of each token have, times its gates where there are some.
static void add_slots(const way *w, const double *y, const double *gates, double *z)
{
    for (int64_t k = 0; k < w->choices; k++) {
        const int64_t at = slot_at(w, k);
        for (int64_t d = 0; at >= 0 && d < w->features; d++) {
            z[token_at(w, k) + d] += (gates != NULL ? gates[k] : 1.0) * y[at + d];
        }
    }
}

void reference_dispatch_bwd(const reference_call *call)
{
    const way w = way_of(&call->query->in[0], &call->query->in[1], call->in[1]);
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    add_slots(&w, call->in[0], NULL, call->out[0]);
}

void reference_gather(const reference_call *call)
{
    const way w = way_of(&call->query->in[0], &call->query->in[2], call->in[2]);
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    add_slots(&w, call->in[0], call->in[1], call->out[0]);
}

void reference_gather_bwd(const reference_call *call)
{
    const way w = way_of(&call->query->in[0], &call->query->in[2], call->in[2]);
    const double *y = call->in[0], *gates = call->in[1], *dz = call->in[3];
    double *dy = call->out[0], *dgates = call->out[1];
    memset(dy, 0, call->out_count[0] * sizeof *dy);
    for (int64_t k = 0; k < w.choices; k++) {
        const int64_t at = slot_at(&w, k), from = token_at(&w, k);
        double sum = 0.0;
        for (int64_t d = 0; at >= 0 && d < w.features; d++) {
            dy[at + d] = gates[k] * dz[from + d];
            sum += y[at + d] * dz[from + d];
        }
        dgates[k] = sum;
    }
}
