// SPDX-License-Identifier: Apache-2.0
// The cheapest way to keep a budget, against all ways there are. The judge walks a chain's forward and backward value
// by value and knows nothing of segments.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "program/remat.h"

enum { LAYERS_MOST = 14, EXACT = 1 << 20, CHAINS = 60, RANDOM_CASES = 10000 };

// Layer k makes a value of value[k] bytes, which the gradient of the layer behind it reads; gradients are as large as values.
typedef struct chain {
    uint32_t layers;
    uint64_t value[LAYERS_MOST + 1], cost[LAYERS_MOST + 1]; // [0] is the input: it costs nothing and stays
} chain;

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

static chain draw_chain(uint64_t seed, uint32_t layers)
{
    chain c = {.layers = layers};
    uint64_t state = seed;
    for (uint32_t k = 1; k <= layers; k++) {
        c.value[k] = 1 + draw(&state, seed % 3 == 0 ? 4 : 1000);
        c.cost[k] = 1 + draw(&state, seed % 2 == 0 ? 3 : 100);
    }
    return c;
}

// ---- the judge --------------------------------------------------------------------------------------------------

typedef struct judged {
    uint64_t peak, cost;
} judged;

static void see(judged *j, const chain *c, const bool *there, uint64_t gradients)
{
    uint64_t sum = gradients;
    for (uint32_t k = 1; k <= c->layers; k++) {
        sum += there[k] ? c->value[k] : 0;
    }
    j->peak = sum > j->peak ? sum : j->peak;
}

// Values whose bit in `kept` is clear are dropped when the next one has been made; the last is the loss's and stays.
// The gradient of layer k reads value k - 1; before it everything back to the last value that is there is made again.
static judged judge(const chain *c, uint32_t kept)
{
    judged j = {0};
    bool there[LAYERS_MOST + 1] = {true};
    for (uint32_t k = 1; k <= c->layers; k++) {
        there[k] = true;
        see(&j, c, there, 0);
        there[k - 1] = k == 1 || (kept >> (k - 1) & 1) != 0;
    }
    for (uint32_t k = c->layers; k >= 1; k--) {
        const uint64_t gradient = c->value[k];
        there[k] = k == c->layers ? false : there[k];
        uint32_t from = k - 1;
        while (!there[from]) {
            from--;
        }
        for (uint32_t m = from + 1; m < k; m++) {
            there[m] = true;
            j.cost += c->cost[m];
            see(&j, c, there, gradient);
        }
        see(&j, c, there, gradient + (k > 1 ? c->value[k - 1] : 0));
        there[k - 1] = false;
    }
    return j;
}

// ---- the chain as segments ---------------------------------------------------------------------------------------

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Layers from + 1 … to, of which the last one's value is kept, unless it is the chain's last.
static remat_edge segment(const chain *c, uint32_t from, uint32_t to)
{
    remat_edge e = {.from = from, .to = to};
    uint64_t inside = 0;
    const bool last = to == c->layers;
    for (uint32_t k = from + 1; k <= to; k++) { // forward: a value and the one it is made of
        const uint64_t before = k == from + 1 ? 0 : c->value[k - 1];
        e.peak_bytes = most(e.peak_bytes, before + c->value[k]);
    }
    e.kept_bytes = last ? 0 : c->value[to];
    for (uint32_t k = from + 1; k < to; k++) {
        inside += c->value[k];
        e.cost += c->cost[k];
    }
    for (uint32_t k = to; k > from; k--) { // backward: what is below, value k's gradient, and that of k - 1
        const uint64_t below = k > 1 ? c->value[k - 1] : 0;
        e.peak_bytes = most(e.peak_bytes, inside + c->value[k] + below);
        inside -= k - 1 > from ? c->value[k - 1] : 0;
    }
    return e;
}

static remat_graph graph_of(const chain *c, remat_edge *edges)
{
    uint32_t count = 0;
    for (uint32_t from = 0; from < c->layers; from++) {
        for (uint32_t to = from + 1; to <= c->layers; to++) {
            edges[count++] = segment(c, from, to);
        }
    }
    return (remat_graph){edges, count, c->layers};
}

static int by_peak(const void *a, const void *b)
{
    const judged *x = a, *y = b;
    return x->peak != y->peak ? (x->peak < y->peak ? -1 : 1) : (x->cost > y->cost) - (x->cost < y->cost);
}

// At every peak that some choice has, and a byte below it.
START_TEST(chains_are_as_cheap_as_the_best_of_all_choices_at_every_budget)
{
    static judged all[1 << LAYERS_MOST];
    remat_edge edges[LAYERS_MOST * (LAYERS_MOST + 1) / 2];
    const chain c = draw_chain((uint64_t)_i + 1, 2 + (uint32_t)_i % (LAYERS_MOST - 1));
    const remat_graph g = graph_of(&c, edges);
    const uint32_t choices = 1U << (c.layers - 1);
    for (uint32_t kept = 0; kept < choices; kept++) {
        all[kept] = judge(&c, kept << 1);
    }
    qsort(all, choices, sizeof *all, by_peak);
    uint64_t best = UINT64_MAX;
    for (uint32_t k = 0; k < choices; k++) {
        remat_path path;
        if (k == 0 || all[k].peak != all[k - 1].peak) {
            ck_assert_int_eq(remat_solve(&g, all[k].peak - 1, EXACT, &path, NULL), HR_OK);
            ck_assert_int_eq(path.found, best != UINT64_MAX);
            ck_assert(!path.found || path.cost == best);
            hr_free(path.edges);
        }
        best = all[k].cost < best ? all[k].cost : best;
        if (k + 1 == choices || all[k + 1].peak != all[k].peak) {
            ck_assert_int_eq(remat_solve(&g, all[k].peak, EXACT, &path, NULL), HR_OK);
            ck_assert(path.found && path.cost == best && path.peak_bytes <= all[k].peak);
            hr_free(path.edges);
        }
    }
}
END_TEST

// ---- any graph ---------------------------------------------------------------------------------------------------

enum { NODES = 24, EDGES_MOST = 200 };

static uint32_t draw_edges(uint64_t *state, uint32_t last, remat_edge *edges)
{
    uint32_t count = 0;
    for (uint32_t from = 0; from < last; from++) {
        const uint32_t choices = 1 + (uint32_t)draw(state, 6);
        for (uint32_t k = 0; k < choices; k++) {
            const uint64_t kept = draw(state, 500);
            edges[count++] = (remat_edge){.from = from,
                                          .to = from + 1 + (uint32_t)draw(state, last - from),
                                          .kept_bytes = kept,
                                          .peak_bytes = kept + draw(state, 500),
                                          .cost = draw(state, 50)};
        }
    }
    return count;
}

// The path as it is written: does it lead from the first node to the last, and what does it need?
static judged walk(const remat_graph *g, const remat_path *path)
{
    judged j = {0};
    uint64_t kept = 0;
    uint32_t node = 0;
    for (uint32_t k = 0; k < path->count; k++) {
        const remat_edge *e = &g->edges[path->edges[k]];
        ck_assert_uint_eq(e->from, node);
        j.peak = most(j.peak, kept + e->peak_bytes);
        j.cost += e->cost;
        kept += e->kept_bytes;
        node = e->to;
    }
    ck_assert_uint_eq(node, g->last);
    return j;
}

START_TEST(no_path_is_above_its_budget_and_a_smaller_budget_never_costs_less)
{
    uint64_t state = 77;
    for (uint32_t n = 0; n < RANDOM_CASES; n++) {
        remat_edge edges[EDGES_MOST];
        const uint32_t last = 1 + (uint32_t)draw(&state, NODES);
        const remat_graph g = {edges, draw_edges(&state, last, edges), last};
        const uint32_t labels = n % 2 == 0 ? EXACT : 2 + (uint32_t)draw(&state, 20);
        judged before = {UINT64_MAX, 0};
        for (uint64_t budget = 6000; budget > 0; budget = budget > 400 ? budget - 400 : 0) {
            remat_path path;
            ck_assert_int_eq(remat_solve(&g, budget, labels, &path, NULL), HR_OK);
            if (path.found) {
                const judged now = walk(&g, &path);
                ck_assert_uint_eq(now.peak, path.peak_bytes);
                ck_assert_uint_eq(now.cost, path.cost);
                ck_assert_uint_le(now.peak, budget);
                ck_assert(labels != EXACT || now.cost >= before.cost);
                before = now;
            } else {
                ck_assert_ptr_null(path.edges);
            }
            hr_free(path.edges);
        }
    }
}
END_TEST

START_TEST(few_labels_find_a_path_wherever_there_is_one)
{
    uint64_t state = 78;
    for (uint32_t n = 0; n < RANDOM_CASES / 10; n++) {
        remat_edge edges[EDGES_MOST];
        const uint32_t last = 1 + (uint32_t)draw(&state, NODES);
        const remat_graph g = {edges, draw_edges(&state, last, edges), last};
        const uint32_t labels = 2 + (uint32_t)draw(&state, 4);
        for (uint64_t budget = 3000; budget > 0; budget -= 100) {
            remat_path all, few;
            ck_assert_int_eq(remat_solve(&g, budget, EXACT, &all, NULL), HR_OK);
            ck_assert_int_eq(remat_solve(&g, budget, labels, &few, NULL), HR_OK);
            ck_assert_int_eq(few.found, all.found);
            hr_free(all.edges);
            hr_free(few.edges);
        }
    }
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    remat_edge edges[LAYERS_MOST * (LAYERS_MOST + 1) / 2];
    const chain c = draw_chain(5, LAYERS_MOST);
    const remat_graph g = graph_of(&c, edges);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        remat_path path;
        hr_host_mem_fail_at(nth);
        status = remat_solve(&g, UINT64_MAX, EXACT, &path, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        hr_free(path.edges);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("remat");
    TCase *tests = tcase_create("remat");
    tcase_add_loop_test(tests, chains_are_as_cheap_as_the_best_of_all_choices_at_every_budget, 0, CHAINS);
    tcase_add_test(tests, no_path_is_above_its_budget_and_a_smaller_budget_never_costs_less);
    tcase_add_test(tests, few_labels_find_a_path_wherever_there_is_one);
    tcase_add_test(tests, every_allocation_may_fail_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
