// SPDX-License-Identifier: Apache-2.0
// Cases of mixtures of experts: one expert or several, as many choices as experts or fewer, room for all and for few.
#include "numeric/op_draw.h"
#include "ops/experts.h"

typedef struct expert_sizes {
    int64_t samples, tokens, experts, chosen, slots; // slots: of an expert
    int64_t idle;                                    // experts at the end that nobody chooses
} expert_sizes;

static expert_sizes draw_sizes(op_draw *d)
{
    expert_sizes s = {.samples = op_draw_int(d, 1, 3),
                      .tokens = op_draw_int(d, 1, 4 * d->size),
                      .experts = op_draw_int(d, 1, 2 * d->size)};
    s.chosen = op_draw_int(d, 1, s.experts < 4 ? s.experts : 4);
    s.slots = op_draw_int(d, 1, s.tokens);
    return s;
}

static int64_t slots_at(const expert_sizes *s, int64_t sample, int64_t token, int64_t k)
{
    return (sample * s->tokens + token) * s->chosen + k;
}

// Choices that somebody could have made: no expert twice for a token, no slot twice, some of them dropped.
static void draw_slots(op_draw *d, op_trial *t, const expert_sizes *s)
{
    const uint32_t at = t->query.in_count;
    op_trial_add_in(t, HR_I32, DIMS(s->samples, s->tokens, s->chosen));
    for (int64_t n = 0; n < s->samples; n++) {
        int64_t used[OP_MAX_EXPERTS] = {0};
        for (int64_t token = 0; token < s->tokens; token++) {
            const int64_t busy = s->experts - s->idle, first = op_draw_int(d, 0, busy - 1);
            for (int64_t k = 0; k < s->chosen; k++) {
                const int64_t e = (first + k) % busy;
                const bool drops = used[e] == s->slots || op_draw_int(d, 0, 5) == 0;
                const int64_t slot = drops ? OP_DROPPED(e) : used[e]++ * s->experts + e;
                t->in[at][slots_at(s, n, token, k)] = (double)slot;
            }
        }
    }
}

// Logits apart from each other: which are the largest does not hang on a step, or on a rounding.
static void draw_logits(op_draw *d, op_trial *t, const expert_sizes *s)
{
    const uint32_t at = t->query.in_count;
    op_trial_add_in(t, HR_F64, DIMS(s->samples, s->tokens, s->experts));
    op_fill_apart(t->in[at], op_trial_in_count(t, at), &d->state);
    for (uint64_t i = 0; i < op_trial_in_count(t, at); i++) {
        t->in[at][i] *= 2.0;
    }
}

op_trial op_case_route(hr_op op, op_draw *d)
{
    expert_sizes s = draw_sizes(d);
    op_trial t = op_trial_make(op, (op_attr){0});
    if (op == HR_OP_BALANCE) { // where all are chosen alike there is no gradient to compare
        s.idle = 1;
        s.experts++;
    }
    draw_logits(d, &t, &s);
    if (op == HR_OP_BALANCE) {
        t.query.attr.scale = op_draw_int(d, 0, 1) == 1 ? 0.25 : 0.0;
        draw_slots(d, &t, &s);
        op_trial_infer_out(&t, 1);
        return t;
    }
    t.query.attr.choices = (int32_t)s.chosen;
    t.query.attr.slots = (int32_t)s.slots;
    // Shares of a single choice are 1, and have no gradient to compare.
    t.query.attr.flags = s.chosen > 1 && op_draw_int(d, 0, 1) == 1 ? OP_FLAG_SHARES : 0;
    op_trial_infer_out(&t, 2);
    return t;
}

op_trial op_case_way(hr_op op, op_draw *d)
{
    const expert_sizes s = draw_sizes(d);
    const int64_t features =
        op_draw_int(d, 0, 1) == 1 ? 16 * op_draw_int(d, 1, 3) : op_draw_int(d, 1, 9 * d->size);
    op_trial t = op_trial_make(op, (op_attr){.slots = (int32_t)s.slots, .experts = (int32_t)s.experts});
    if (op == HR_OP_DISPATCH) {
        op_draw_in(d, &t, DIMS(s.samples, s.tokens, features), -1.0, 1.0);
    } else {
        op_draw_in(d, &t, DIMS(s.samples, s.slots, s.experts, features), -1.0, 1.0);
        op_draw_in(d, &t, DIMS(s.samples, s.tokens, s.chosen), 0.0, 1.0);
    }
    draw_slots(d, &t, &s);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_expert_dense(hr_op op, op_draw *d)
{
    const expert_sizes s = draw_sizes(d);
    const int64_t in = op_draw_int(d, 1, 3 * d->size), out = op_draw_int(d, 1, 3 * d->size);
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, DIMS(s.samples, s.slots, s.experts, in), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(s.experts, in, out), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}
