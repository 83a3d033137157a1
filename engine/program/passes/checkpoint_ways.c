// SPDX-License-Identifier: Apache-2.0
#include "program/checkpoint_ways.h"

#include "program/remat.h"

enum {
    FEW_NODES = 16,
    LABELS_FEW = 1 << 16,
    LABELS = 64,
    LABELS_EAGER = 32,
    WIDTHS = 8,
    LEVELS = 256,
    LOWEST = 4,
    OFFLOADED_STEP = 8
};

typedef struct finder {
    const draft *d;
    const segments *s;
    segment_needs *needs; // [edges]
    remat_edge *edges, *narrow;
    uint32_t edge_count, nodes;
    checkpoint_ways *out;
} finder;

static hr_status no_memory(const finder *f, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the ways to checkpoint %u layers",
                   f->d->model->own_layers);
}

static void measure_all(finder *f)
{
    for (uint32_t from = 0; from < f->nodes; from++) {
        for (uint32_t to = from + 1; to <= f->nodes; to++) {
            for (int keeps = 0; keeps < SEGMENT_KEEPS_COUNT; keeps++) {
                segment_needs *n = &f->needs[f->edge_count];
                segments_measure(f->s, from, to, (segment_keeps)keeps, n);
                if (keeps != KEEPS_ALL && n->cost == 0) {
                    continue;
                }
                const uint64_t peak =
                    n->forward_bytes > n->together_bytes ? n->forward_bytes : n->together_bytes;
                f->edges[f->edge_count++] = (remat_edge){.from = from,
                                                         .to = to,
                                                         .choice = (uint32_t)keeps,
                                                         .kept_bytes = n->kept_bytes,
                                                         .peak_bytes = peak,
                                                         .cost = n->cost};
            }
        }
    }
}

// ---- eager --------------------------------------------------------------------------------------------------------
//
// The tape lets go of nothing before backward is over: in each segment's backward all is there that any segment keeps. So
// what a segment needs beside that is bounded first, by a few widths in turn, and what is kept by the rest of the budget.

static uint64_t widest(const finder *f)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < f->edge_count; k++) {
        most = f->needs[k].backward_bytes > most ? f->needs[k].backward_bytes : most;
    }
    return most;
}

static uint64_t narrowest(const finder *f)
{
    uint64_t least = 0; // the most that the smallest segments need
    for (uint32_t k = 0; k < f->edge_count; k++) {
        const bool unit = f->edges[k].choice == KEEPS_ALL && f->edges[k].to == f->edges[k].from + 1;
        least = unit && f->needs[k].backward_bytes > least ? f->needs[k].backward_bytes : least;
    }
    return least;
}

static hr_status solve_narrow(const finder *f, uint64_t width, uint64_t budget, uint32_t labels,
                              remat_path *out, hr_err *err)
{
    remat_graph g = {f->narrow, 0, f->nodes};
    *out = (remat_path){0};
    for (uint32_t k = 0; k < f->edge_count; k++) {
        const segment_needs *n = &f->needs[k];
        if (n->backward_bytes <= width) {
            const uint64_t first = n->forward_bytes > width ? n->forward_bytes - width : 0;
            remat_edge *e = &f->narrow[g.edge_count++];
            *e = f->edges[k];
            e->choice = k;
            e->peak_bytes = first > e->kept_bytes ? first : e->kept_bytes;
        }
    }
    HR_TRY(remat_solve(&g, budget - width, labels, out, err));
    out->peak_bytes += width;
    for (uint32_t k = 0; k < out->count; k++) {
        out->edges[k] = f->narrow[out->edges[k]].choice;
    }
    return HR_OK;
}

static bool is_better(const remat_path *a, const remat_path *b)
{
    return a->found &&
           (!b->found || a->cost < b->cost || (a->cost == b->cost && a->peak_bytes < b->peak_bytes));
}

static hr_status solve_eager(const finder *f, uint64_t budget, remat_path *out, hr_err *err)
{
    const uint64_t least = narrowest(f), range = widest(f) - least;
    const uint32_t labels = f->nodes <= FEW_NODES ? LABELS_FEW : LABELS_EAGER;
    *out = (remat_path){0};
    for (uint32_t k = 0; k <= WIDTHS; k++) {
        const uint64_t width = least + range / (WIDTHS * WIDTHS) * k * k;
        remat_path path;
        if (width > budget) {
            break;
        }
        const hr_status status = solve_narrow(f, width, budget, labels, &path, err);
        if (status != HR_OK) {
            hr_free(out->edges);
            *out = (remat_path){0};
            return status;
        }
        if (is_better(&path, out)) {
            hr_free(out->edges);
            *out = path;
        } else {
            hr_free(path.edges);
        }
    }
    return HR_OK;
}

// ---- ways ---------------------------------------------------------------------------------------------------------

static hr_status solve(const finder *f, uint64_t budget, remat_path *out, hr_err *err)
{
    const remat_graph g = {f->edges, f->edge_count, f->nodes};
    return f->d->eager ? solve_eager(f, budget, out, err)
                       : remat_solve(&g, budget, f->nodes <= FEW_NODES ? LABELS_FEW : LABELS, out, err);
}

static hr_status add_way(finder *f, const remat_path *path, hr_err *err)
{
    const uint32_t layers = f->d->model->own_layers;
    checkpoint_way *w = &f->out->way[f->out->count];
    *w = (checkpoint_way){.cost = path->cost,
                          .peak_bytes = path->peak_bytes,
                          .segment = arena_take(&f->out->memory, layers, sizeof *w->segment),
                          .keeps = arena_take(&f->out->memory, layers, sizeof *w->keeps)};
    if (w->segment == NULL || w->keeps == NULL) {
        return no_memory(f, err);
    }
    for (uint32_t k = 0; k < path->count; k++) {
        const remat_edge *e = &f->edges[path->edges[k]];
        for (uint32_t l = segments_begin(f->s, e->from); l < segments_begin(f->s, e->to); l++) {
            w->segment[l] = k + 1;
            w->keeps[l] = (uint8_t)e->choice;
        }
    }
    f->out->count++;
    return HR_OK;
}

// What the step needs when nothing is dropped.
static uint64_t whole(const finder *f)
{
    for (uint32_t k = 0; k < f->edge_count; k++) {
        const remat_edge *e = &f->edges[k];
        if (e->choice == KEEPS_ALL && e->from == 0 && e->to == f->nodes) {
            return f->d->eager ? e->kept_bytes + f->needs[k].backward_bytes + f->needs[k].forward_bytes
                               : e->peak_bytes;
        }
    }
    return 0;
}

// Of few layers every way there is: the budget of each is a byte less than the last one needs.
static hr_status find_all(finder *f, hr_err *err)
{
    uint64_t budget = whole(f);
    while (f->out->count < CHECKPOINT_WAYS_MOST && budget > 0) {
        remat_path path;
        HR_TRY(solve(f, budget, &path, err));
        if (!path.found) {
            break;
        }
        const hr_status status = add_way(f, &path, err);
        hr_free(path.edges);
        HR_TRY(status);
        budget = path.peak_bytes - 1;
    }
    f->out->done = true;
    return HR_OK;
}

static bool is_last(const finder *f, const remat_path *path)
{
    const checkpoint_ways *w = f->out;
    return w->count > 0 && w->way[w->count - 1].cost == path->cost &&
           w->way[w->count - 1].peak_bytes == path->peak_bytes;
}

static uint64_t at_level(const finder *f, uint32_t level)
{
    uint64_t budget = whole(f);
    for (uint32_t k = 0; k < level; k++) {
        budget -= budget / 32 + 1 < budget ? budget / 32 + 1 : budget;
    }
    return budget;
}

// Adds the level's way, unless it is the last one again; says whether it has one.
static hr_status try_level(finder *f, uint32_t level, bool *found, hr_err *err)
{
    remat_path path;
    HR_TRY(solve(f, at_level(f, level), &path, err));
    *found = path.found;
    const hr_status status = path.found && !is_last(f, &path) ? add_way(f, &path, err) : HR_OK;
    hr_free(path.edges);
    return status;
}

// The lowest levels that have a way.
static hr_status find_lowest(finder *f, hr_err *err)
{
    uint32_t above = 0, below = LEVELS;
    while (below - above > 1) {
        const uint32_t middle = above + (below - above) / 2;
        remat_path path;
        HR_TRY(solve(f, at_level(f, middle), &path, err));
        hr_free(path.edges);
        *(path.found ? &above : &below) = middle;
    }
    for (uint32_t k = 0; k < LOWEST && k <= above; k++) {
        bool found;
        HR_TRY(try_level(f, above - k, &found, err));
    }
    f->out->done = true;
    return HR_OK;
}

// Of many layers those of the next levels of a ladder, each a 32nd below the one above it. Levels far above the budget are not
// looked at; where none is, as activations go to the host, few are.
static hr_status find_next(finder *f, uint64_t at_most, hr_err *err)
{
    const uint32_t step = at_most == UINT64_MAX ? OFFLOADED_STEP : 1;
    while (f->out->count < CHECKPOINT_WAYS_AT_ONCE && !f->out->done) {
        bool found = f->out->level < LEVELS;
        if (found && at_level(f, f->out->level) <= at_most) {
            HR_TRY(try_level(f, f->out->level, &found, err));
        }
        f->out->done = !found;
        f->out->level += step;
    }
    return HR_OK;
}

uint64_t checkpoint_ways_at_most(const draft *d, uint64_t budget_bytes)
{
    uint64_t stays = 0;
    if (d->sends_all) {
        return UINT64_MAX;
    }
    for (uint32_t t = 0; t < d->persistent_count; t++) {
        stays += tensor_on_host(&d->tensors.data[t]) ? 0 : d->tensors.data[t].bytes;
    }
    const uint64_t seen = budget_bytes + budget_bytes / 7;
    return seen > stays ? seen - stays : 0;
}

hr_status checkpoint_ways_find(const draft *d, const segments *s, uint64_t budget_bytes, checkpoint_ways *out,
                               hr_err *err)
{
    const uint32_t nodes = segments_count(s), edges = SEGMENT_KEEPS_COUNT * (nodes * (nodes + 1) / 2) + 1;
    finder f = {.d = d,
                .s = s,
                .needs = hr_calloc(edges, sizeof *f.needs),
                .edges = hr_calloc(edges, sizeof *f.edges),
                .narrow = hr_calloc(edges, sizeof *f.narrow),
                .nodes = nodes,
                .out = out};
    hr_status status;
    if (f.needs == NULL || f.edges == NULL || f.narrow == NULL) {
        status = no_memory(&f, err);
    } else {
        measure_all(&f);
        status = nodes <= FEW_NODES ? find_all(&f, err)
                 : out->lowest      ? find_lowest(&f, err)
                                    : find_next(&f, checkpoint_ways_at_most(d, budget_bytes), err);
    }
    hr_free(f.needs);
    hr_free(f.edges);
    hr_free(f.narrow);
    return status;
}

void checkpoint_ways_deinit(checkpoint_ways *w)
{
    arena_deinit(&w->memory);
    w->memory = (arena){NULL};
    w->count = 0;
}
