// SPDX-License-Identifier: Apache-2.0
#include "program/remat.h"

#include <stdlib.h>

#include "base/host_mem.h"
#include "base/vec.h"

enum { CROWDED = 4 }; // times labels_max

typedef struct label {
    uint64_t kept_bytes, cost;
    uint32_t before; // label that it goes on from
    uint32_t edge;   // by which
} label;

typedef VEC(label) label_list;

typedef struct solver {
    const remat_graph *g;
    uint64_t budget_bytes;
    uint32_t labels_max;
    label_list *arrived; // [nodes] as they come, until the node is settled
    label_list all;      // of the settled nodes
    label *parts;        // [labels_max] while a node's labels are thinned out
} solver;

static hr_status no_memory(const solver *s, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory to choose among %u segments", s->g->edge_count);
}

// By what they keep, then by cost, then by where they come from, so that the same graph always has the same path.
static int by_kept(const void *a, const void *b)
{
    const label *x = a, *y = b;
    if (x->kept_bytes != y->kept_bytes) {
        return x->kept_bytes < y->kept_bytes ? -1 : 1;
    }
    if (x->cost != y->cost) {
        return x->cost < y->cost ? -1 : 1;
    }
    return x->edge != y->edge ? (x->edge < y->edge ? -1 : 1)
                              : (x->before > y->before) - (x->before < y->before);
}

// Labels that keep more cost less: what is left rises in the one and falls in the other.
static uint32_t drop_beaten(label *labels, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (left == 0 || labels[k].cost < labels[left - 1].cost) {
            labels[left++] = labels[k];
        }
    }
    return left;
}

// parts[]: of each part of the budget the cheapest label, of equally cheap ones that which keeps less.
static void fill_parts(const solver *s, const label_list *l)
{
    const double part = ((double)s->budget_bytes + 1) / s->labels_max;
    for (uint32_t k = 0; k < s->labels_max; k++) {
        s->parts[k].cost = UINT64_MAX;
    }
    for (uint32_t k = 0; k < l->count; k++) {
        const label *a = &l->data[k];
        const uint32_t at = (uint32_t)((double)a->kept_bytes / part);
        label *b = &s->parts[at < s->labels_max ? at : s->labels_max - 1];
        if (a->cost < b->cost || (a->cost == b->cost && a->kept_bytes < b->kept_bytes)) {
            *b = *a;
        }
    }
}

// Those of the parts stay, and that which keeps least: it may be the only one that can go on.
static hr_status thin_out(solver *s, label_list *l, hr_err *err)
{
    if (s->parts == NULL) {
        s->parts = hr_calloc(s->labels_max, sizeof *s->parts);
    }
    if (s->parts == NULL) {
        return no_memory(s, err);
    }
    fill_parts(s, l);
    label least = l->data[0];
    for (uint32_t k = 1; k < l->count; k++) {
        least = by_kept(&l->data[k], &least) < 0 ? l->data[k] : least;
    }
    l->count = 0;
    l->data[l->count++] = least;
    for (uint32_t k = 0; k < s->labels_max; k++) {
        if (s->parts[k].cost < l->data[l->count - 1].cost) {
            l->data[l->count++] = s->parts[k];
        }
    }
    return HR_OK;
}

static hr_status settle(solver *s, uint32_t node, hr_err *err)
{
    label_list *l = &s->arrived[node];
    if (l->count == 0) {
        return HR_OK;
    }
    if (l->count > s->labels_max) {
        HR_TRY(thin_out(s, l, err));
    }
    qsort(l->data, l->count, sizeof *l->data, by_kept);
    l->count = drop_beaten(l->data, l->count);
    for (uint32_t k = 0; k < l->count; k++) {
        label *kept = vec_push(&s->all);
        if (kept == NULL) {
            return no_memory(s, err);
        }
        *kept = l->data[k];
    }
    return HR_OK;
}

static hr_status go_on(solver *s, uint32_t edge, uint32_t first, uint32_t end, hr_err *err)
{
    const remat_edge *e = &s->g->edges[edge];
    if (e->peak_bytes > s->budget_bytes) {
        return HR_OK;
    }
    label_list *to = &s->arrived[e->to];
    if (to->count / CROWDED >= s->labels_max) {
        HR_TRY(thin_out(s, to, err));
    }
    for (uint32_t k = first; k < end && s->all.data[k].kept_bytes <= s->budget_bytes - e->peak_bytes; k++) {
        label *next = vec_push(to);
        if (next == NULL) {
            return no_memory(s, err);
        }
        *next = (label){.kept_bytes = s->all.data[k].kept_bytes + e->kept_bytes,
                        .cost = s->all.data[k].cost + e->cost,
                        .before = k,
                        .edge = edge};
    }
    return HR_OK;
}

// `first` to `end` are the labels of the last node: the cheapest is the last of them.
static hr_status trace(const solver *s, uint32_t first, remat_path *out, hr_err *err)
{
    const uint32_t end = s->all.count;
    if (first == end) {
        return HR_OK;
    }
    for (uint32_t k = end - 1; k != 0; k = s->all.data[k].before) {
        out->count++;
    }
    out->edges = hr_calloc(out->count, sizeof *out->edges);
    if (out->edges == NULL && out->count > 0) {
        *out = (remat_path){0};
        return no_memory(s, err);
    }
    out->found = true;
    out->cost = s->all.data[end - 1].cost;
    uint32_t at = out->count;
    for (uint32_t k = end - 1; k != 0; k = s->all.data[k].before) {
        const label *l = &s->all.data[k];
        const uint64_t peak = s->all.data[l->before].kept_bytes + s->g->edges[l->edge].peak_bytes;
        out->peak_bytes = peak > out->peak_bytes ? peak : out->peak_bytes;
        out->edges[--at] = l->edge;
    }
    return HR_OK;
}

static hr_status solve(solver *s, remat_path *out, hr_err *err)
{
    label *start = vec_push(&s->arrived[0]);
    uint32_t edge = 0, first = 0;
    if (start == NULL) {
        return no_memory(s, err);
    }
    for (uint32_t node = 0; node <= s->g->last; node++) {
        first = s->all.count;
        HR_TRY(settle(s, node, err));
        vec_deinit(&s->arrived[node]);
        for (; edge < s->g->edge_count && s->g->edges[edge].from == node; edge++) {
            HR_TRY(go_on(s, edge, first, s->all.count, err));
        }
    }
    return trace(s, first, out, err);
}

hr_status remat_solve(const remat_graph *g, uint64_t budget_bytes, uint32_t labels_max, remat_path *out,
                      hr_err *err)
{
    solver s = {.g = g,
                .budget_bytes = budget_bytes,
                .labels_max = labels_max < 2 ? 2 : labels_max,
                .arrived = hr_calloc(g->last + 1u, sizeof *s.arrived)};
    *out = (remat_path){0};
    hr_status status = s.arrived == NULL ? no_memory(&s, err) : solve(&s, out, err);
    for (uint32_t node = 0; s.arrived != NULL && node <= g->last; node++) {
        vec_deinit(&s.arrived[node]);
    }
    hr_free(s.arrived);
    hr_free(s.parts);
    vec_deinit(&s.all);
    return status;
}
