// SPDX-License-Identifier: Apache-2.0
// One segment: its forward, what runs again, and its backward, instruction by instruction.
#include "program/checkpoint_segments.h"

typedef struct measured {
    const segments *s;
    uint32_t from_value, to_value, from, to; // forward instructions; values
    uint32_t back, back_end;
    uint32_t begin, end; // its first place, and the first behind it
    segment_keeps keeps;
    segment_needs *out;
} measured;

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool is_inside(const measured *m, uint32_t v)
{
    return v >= m->from_value && v < m->to_value;
}

static bool is_asked(const measured *m, const segment_value *v)
{
    return v->back != 0 || (m->s->d->eager && v->on_tape);
}

static bool is_dropped(const measured *m, uint32_t v)
{
    const segment_value *x = &m->s->values[v];
    const bool may = m->keeps == KEEPS_NOTHING ? x->droppable : m->keeps == KEEPS_COSTLY && x->cheap;
    return may && x->read_place < m->end;
}

static bool is_kept(const measured *m, uint32_t v)
{
    return m->s->again[v].kept;
}

static void find_kept(const measured *m)
{
    for (uint32_t v = m->from_value; v < m->to_value; v++) {
        const segment_value *x = &m->s->values[v];
        m->s->again[v].kept = x->read_place >= m->end || (is_asked(m, x) && !is_dropped(m, v));
    }
}

static void measure_forward(const measured *m)
{
    const segments *s = m->s;
    uint64_t alive = 0;
    uint32_t v = m->from_value;
    for (uint32_t n = m->from; n < m->to; n++) {
        const uint32_t over = s->over[n];
        const bool overwrites = over != HR_NO_ID && is_inside(m, over) && !is_kept(m, over);
        alive -= overwrites ? s->values[over].bytes : 0;
        for (; v < m->to_value && s->values[v].born == n; v++) {
            alive += s->values[v].bytes;
            m->out->kept_bytes += is_kept(m, v) ? s->values[v].bytes : 0;
        }
        m->out->forward_bytes = most(m->out->forward_bytes, alive);
        for (uint32_t x = s->dies[n]; x != HR_NO_ID; x = s->sibling[x]) {
            alive -= is_inside(m, x) && !is_kept(m, x) && !(overwrites && x == over) ? s->values[x].bytes : 0;
        }
    }
}

// What has to run again, from the last instruction to the first; returns the first backward instruction that asks.
static uint32_t find_again(const measured *m)
{
    const segments *s = m->s;
    uint32_t asked = HR_NO_ID;
    for (uint32_t v = m->from_value; v < m->to_value; v++) {
        const segment_value *x = &s->values[v];
        s->again[v].read = HR_NO_ID;
        s->again[v].wanted = is_dropped(m, v) && x->back != 0;
        asked = s->again[v].wanted && x->asked < asked ? x->asked : asked;
    }
    for (uint32_t n = m->to; n-- > m->from;) {
        const instr *i = &s->d->instrs.data[n];
        s->runs[n] = false;
        for (uint32_t k = 0; k < i->out_count; k++) {
            const uint32_t v = s->value_of[i->out[k]];
            s->runs[n] |= v != HR_NO_ID && is_inside(m, v) && s->again[v].wanted;
        }
        m->out->cost += s->runs[n] ? s->cost[n] : 0;
        for (uint32_t k = 0; s->runs[n] && k < i->in_count; k++) {
            const uint32_t v = s->value_of[i->in[k]];
            if (v != HR_NO_ID && is_inside(m, v) && is_dropped(m, v)) {
                s->again[v].wanted = true;
                s->again[v].read = s->again[v].read == HR_NO_ID ? n : s->again[v].read;
            }
        }
    }
    return asked;
}

// Runs again; returns what is left behind it, and in *peak what was there at most.
static uint64_t measure_again(const measured *m, uint64_t *peak)
{
    const segments *s = m->s;
    uint64_t alive = 0;
    uint32_t v = m->from_value;
    *peak = 0;
    for (uint32_t n = m->from; n < m->to; n++) {
        for (; v < m->to_value && s->values[v].born == n; v++) {
            alive += s->again[v].wanted ? s->values[v].bytes : 0;
        }
        const uint32_t over = s->runs[n] ? s->over[n] : HR_NO_ID;
        const bool overwrites =
            over != HR_NO_ID && is_inside(m, over) && s->again[over].wanted && !is_asked(m, &s->values[over]);
        *peak = most(*peak, alive - (overwrites ? s->values[over].bytes : 0));
        const instr *i = &s->d->instrs.data[n];
        for (uint32_t k = 0; s->runs[n] && k < i->in_count; k++) {
            const uint32_t x = s->value_of[i->in[k]];
            const bool inside = x != HR_NO_ID && is_inside(m, x);
            if (inside && s->again[x].wanted && s->again[x].read == n && !is_asked(m, &s->values[x])) {
                s->again[x].wanted = false; // once, if it is read twice
                alive -= s->values[x].bytes;
            }
        }
    }
    return alive;
}

// Of what is kept, what the backward of later segments was not the last to read.
static uint64_t left_of_kept(const measured *m)
{
    uint64_t sum = 0;
    for (uint32_t v = m->from_value; v < m->to_value; v++) {
        const segment_value *x = &m->s->values[v];
        const bool left = m->s->d->eager || x->back >= m->back || x->first_place < m->end;
        sum += left && is_kept(m, v) ? m->s->values[v].bytes : 0;
    }
    return sum;
}

// A segment's backward as it goes on.
typedef struct going {
    uint64_t kept, made; // of its own
    uint64_t gone;       // of what segments before it keep: it was the last to read that
    uint64_t going;      // the same, but what runs again may read it
    bool runs, ran;
} going;

static uint64_t beside(uint64_t sum, uint64_t gone)
{
    return sum > gone ? sum - gone : 0;
}

static void let_go(const measured *m, uint32_t n, going *g)
{
    const segments *s = m->s;
    for (uint32_t x = s->dies[n]; x != HR_NO_ID; x = s->sibling[s->value_count + x]) {
        const uint64_t bytes = s->values[x].bytes;
        if (!is_inside(m, x)) {
            const bool last = x < m->from_value && s->values[x].first_place >= m->begin;
            *(g->runs && !g->ran ? &g->going : &g->gone) += last ? bytes : 0;
        } else if (is_kept(m, x)) {
            g->kept -= bytes;
        } else if (g->ran && s->again[x].wanted) {
            g->made -= bytes;
        }
    }
}

static void measure_backward(const measured *m)
{
    const segments *s = m->s;
    const uint32_t asked = find_again(m);
    going g = {.kept = left_of_kept(m), .runs = asked != HR_NO_ID};
    for (uint32_t n = m->back; n < m->back_end; n++) {
        if (g.runs && !g.ran && n >= asked) {
            uint64_t peak;
            g.ran = true;
            g.made = measure_again(m, &peak);
            m->out->backward_bytes = most(m->out->backward_bytes, s->before[n] + peak);
            m->out->together_bytes =
                most(m->out->together_bytes, beside(s->before[n] + peak + g.kept, g.gone));
            g.gone += g.going;
        }
        m->out->backward_bytes = most(m->out->backward_bytes, s->base[n] + g.made);
        m->out->together_bytes = most(m->out->together_bytes, beside(s->base[n] + g.made + g.kept, g.gone));
        if (!s->d->eager) {
            let_go(m, n, &g);
        }
    }
}

void segments_measure(const segments *s, uint32_t from, uint32_t to, segment_keeps keeps, segment_needs *out)
{
    const measured m = {.s = s,
                        .from_value = s->first_value[from],
                        .to_value = s->first_value[to],
                        .from = s->first_forward[from],
                        .to = s->first_forward[to],
                        .back = s->first_backward[to],
                        .back_end = s->first_backward[from],
                        .begin = s->begin[from],
                        .end = to == s->node_count ? UINT32_MAX : s->begin[to],
                        .keeps = keeps,
                        .out = out};
    *out = (segment_needs){0};
    find_kept(&m);
    measure_forward(&m);
    measure_backward(&m);
}
