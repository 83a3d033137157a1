// SPDX-License-Identifier: Apache-2.0
// checkpoint.strategy=budget: the step is compiled in one way after the other, the cheapest first, until one fits where it will be
// held and stays within the budget there. The ways are the same under every budget, and so is what each of them needs: therefore a
// peak never rises when the budget falls. Only levels that show far more than the budget are skipped, as they could not keep it.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "program/checkpoint_ways.h"
#include "program/costs.h"

// Strategies that are tried beside the ways: here and there one is cheaper, or lower, than what segments between layers can do.
static const char *const cuts[] = {"selective", "blocks", "sqrt", "every:2", "every:4"};

static hr_status judge_step(const draft_request *r, const program *p, target_judgement *out, hr_err *err)
{
    const target_judge *judge = r->target->judge;
    *out = (target_judgement){program_peak_bytes(p), true};
    return judge == NULL ? HR_OK : judge->judge(judge->context, p, out, err);
}

// A size that people can type and that is not below `bytes`.
static void rounded_up(uint64_t bytes, char text[HR_BYTES_TEXT_MAX])
{
    const uint64_t unit = bytes >= 64 * HR_MIB ? HR_MIB : bytes >= 64 * 1024 ? 1024 : 1;
    (void)hr_bytes_exact((bytes + unit - 1) / unit * unit, text);
}

typedef struct attempt {
    draft_request
        r; // what ways are compiled of: the asked one, but that first nothing is sent except what a way says
    bool may_send;
    draft_compiler compile;
    uint64_t budget_bytes;
    target_judgement least; // the smallest peak so far
    program *unfit;         // that has it, where it is within the budget and does not fit
    program *cut;           // of the cuts within the budget the cheapest
    uint64_t cut_cost;
    uint64_t floor_bytes;   // what one instruction of that step needs with what stays
    char widest[96];        // its name
    checkpoint_ways *finer; // of instructions
    uint32_t at;            // the first of them that was not tried
    uint64_t tried_instrs;  // of all that was compiled
} attempt;

static void note_floor(attempt *a, const program *p)
{
    const instr *widest;
    a->floor_bytes = program_floor_bytes(p, &widest);
    if (widest != NULL) {
        (void)program_instr_name(p, widest, a->widest, sizeof a->widest);
    }
}

// What recomputation does not reach: gradients that wait, and what may lie on the host, unless the device's memory is the host's. The
// first that these knobs lack and may have.
static const char *next_lever(const hr_knobs *asked)
{
    static const char *const levers[] = {"optimizer.fused_backward=on", "offload.activations=on",
                                         "offload.optimizer=on"};
    const bool is_host =
        hr_knob_is(asked, HR_KNOB_DEVICE_KIND, "cpu") || hr_knob_is(asked, HR_KNOB_DEVICE_KIND, "reference");
    const bool own_memory = !is_host || hr_knob_is_set(asked, HR_KNOB_DEVICE_CARD);
    for (size_t k = 0; k < sizeof levers / sizeof *levers && (k == 0 || own_memory); k++) {
        hr_knobs knobs = *asked;
        if (hr_knobs_set_pair(&knobs, levers[k], NULL) == HR_OK && memcmp(&knobs, asked, sizeof knobs) != 0 &&
            hr_knobs_validate(&knobs, NULL) == HR_OK) {
            return levers[k];
        }
    }
    return NULL;
}

// What one instruction needs goes without saying where the judge counts less than the step asks for.
static hr_status refuse(const attempt *a, hr_err *err)
{
    char budget[HR_BYTES_TEXT_MAX], least[HR_BYTES_TEXT_MAX], text[HR_BYTES_TEXT_MAX], alone[192] = "";
    if (a->widest[0] != 0 && a->floor_bytes <= a->least.peak_bytes) {
        (void)snprintf(alone, sizeof alone,
                       ", and %s alone needs %s, weights, gradients and optimizer state included", a->widest,
                       hr_bytes_human(a->floor_bytes, text));
    }
    hr_status status =
        HR_FAIL(err, CONSTRAINT,
                "checkpoint.strategy=budget:%s cannot be kept: the smallest peak that was found is %s%s",
                hr_bytes_exact(a->budget_bytes, budget), hr_bytes_human(a->least.peak_bytes, least), alone);
    if (a->least.fits) {
        const char *lever = next_lever(a->r.knobs);
        rounded_up(a->least.peak_bytes, text);
        hr_err_try(err, "-s checkpoint.strategy=budget:%s,%s%s%s or a smaller batch.size", text,
                   lever == NULL ? "" : " -s ", lever == NULL ? "" : lever, lever == NULL ? "" : ",");
    } else {
        hr_err_try(err, "a smaller batch.size: no way of this step fits the device");
    }
    return status;
}

// Takes over the program, and gives it back in *fit where it fits and keeps the budget.
static void sift(attempt *a, program *p, const target_judgement *j, program **fit)
{
    const bool within = j->peak_bytes <= a->budget_bytes, least = j->peak_bytes < a->least.peak_bytes;
    a->least = least ? *j : a->least;
    *fit = within && j->fits ? p : NULL;
    if (within && !j->fits && least) {
        program_destroy(a->unfit);
        a->unfit = p;
    } else if (*fit == NULL) {
        program_destroy(p);
    }
}

static hr_status compile_one(attempt *a, const draft_request *r, program **fit, uint64_t *cost, hr_err *err)
{
    target_judgement seen;
    program *p = NULL;
    *fit = NULL;
    HR_TRY(a->compile(r, &p, err));
    const hr_status status = judge_step(r, p, &seen, err);
    if (status != HR_OK) {
        program_destroy(p);
        return status;
    }
    *cost = program_cost_again(r->target, p);
    a->tried_instrs += p->instr_count;
    if (seen.peak_bytes < a->least.peak_bytes) { // another way may fuse less, and need less at once
        note_floor(a, p);
    }
    sift(a, p, &seen, fit);
    return HR_OK;
}

static hr_status try_cut(attempt *a, const char *strategy, hr_err *err)
{
    hr_knobs knobs = *a->r.knobs;
    draft_request request = a->r;
    program *p;
    uint64_t cost;
    request.knobs = &knobs;
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategy, err));
    HR_TRY(compile_one(a, &request, &p, &cost, err));
    if (p != NULL && (a->cut == NULL || cost < a->cut_cost)) {
        program_destroy(a->cut);
        a->cut = p;
        a->cut_cost = cost;
    } else {
        program_destroy(p);
    }
    return HR_OK;
}

static void take_cut(attempt *a, program **out)
{
    *out = a->cut;
    a->cut = NULL;
}

// *out is NULL where it needs more. A cut comes before the first way that costs as much.
static hr_status try_way(attempt *a, const checkpoint_way *way, program **out, hr_err *err)
{
    draft_request request = a->r;
    uint64_t cost;
    request.way = way;
    HR_TRY(compile_one(a, &request, out, &cost, err));
    if (a->cut != NULL && a->cut_cost <= cost) {
        program_destroy(*out);
        take_cut(a, out);
    }
    return HR_OK;
}

// The ways of instructions that cost no more than `cost`, the cheapest first. What is far above the budget waits until all else failed.
static hr_status try_finer(attempt *a, uint64_t cost, bool far, program **out, hr_err *err)
{
    const checkpoint_ways *w = a->finer;
    while (*out == NULL && a->at < w->count && w->way[a->at].cost <= cost) {
        const checkpoint_way *way = &w->way[a->at++];
        if ((way->peak_bytes > w->at_most_bytes) == far) {
            HR_TRY(try_way(a, way, out, err));
        }
    }
    return HR_OK;
}

// The next ones. A step without backward has none.
static hr_status find_ways(attempt *a, checkpoint_ways *ways, hr_err *err)
{
    draft_request request = a->r;
    program *plain = NULL;
    request.ways = ways;
    const hr_status status = a->compile(&request, &plain, err);
    a->tried_instrs += plain == NULL ? 0 : plain->instr_count;
    program_destroy(plain);
    ways->done |= ways->count == 0;
    return status;
}

// Levels between may need more than the lowest do, and a way that is left out as far above the budget may be within it after all.
static hr_status try_lowest(attempt *a, checkpoint_ways *ways, program **out, hr_err *err)
{
    a->at = 0;
    HR_TRY(try_finer(a, UINT64_MAX, true, out, err));
    if (*out != NULL) {
        return HR_OK;
    }
    checkpoint_ways_deinit(ways);
    ways->lowest = true;
    HR_TRY(find_ways(a, ways, err));
    for (uint32_t k = 0; k < ways->count && *out == NULL; k++) {
        HR_TRY(try_way(a, &ways->way[k], out, err));
    }
    return HR_OK;
}

static hr_status try_ladder(attempt *a, checkpoint_ways *ways, program **out, hr_err *err)
{
    for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
        HR_TRY(try_cut(a, cuts[k], err));
    }
    HR_TRY(find_ways(a, a->finer, err));
    while (*out == NULL && !ways->done) {
        checkpoint_ways_deinit(ways);
        HR_TRY(find_ways(a, ways, err));
        for (uint32_t k = 0; k < ways->count && *out == NULL; k++) {
            HR_TRY(try_finer(a, ways->way[k].cost, false, out, err));
            if (*out == NULL) {
                HR_TRY(try_way(a, &ways->way[k], out, err));
            }
        }
    }
    HR_TRY(try_finer(a, UINT64_MAX, false, out, err));
    if (*out == NULL) {
        take_cut(a, out);
    }
    return HR_OK;
}

// Ways that recompute and send what is worth it; where none keeps the budget, all that waits goes to the host.
static hr_status try_ways(attempt *a, checkpoint_ways *ways, program **out, hr_err *err)
{
    HR_TRY(try_way(a, NULL, out, err));
    if (*out == NULL) {
        HR_TRY(try_ladder(a, ways, out, err));
    }
    return *out == NULL ? try_lowest(a, ways, out, err) : HR_OK;
}

static void begin_anew(attempt *a, checkpoint_ways *ways)
{
    checkpoint_ways_deinit(ways);
    checkpoint_ways_deinit(a->finer);
    *ways = (checkpoint_ways){.count = 0};
    *a->finer = (checkpoint_ways){.by_value = true};
    a->at = 0;
}

static hr_status try_all(attempt *a, checkpoint_ways *ways, program **out, hr_err *err)
{
    HR_TRY(try_ways(a, ways, out, err));
    if (*out == NULL && a->may_send) {
        begin_anew(a, ways);
        a->r.sends_all = true;
        HR_TRY(try_ways(a, ways, out, err));
    }
    if (*out == NULL && a->unfit != NULL) {
        *out = a->unfit; // who holds it says by how much it does not fit
        a->unfit = NULL;
    }
    if (*out == NULL) {
        return refuse(a, err);
    }
    (*out)->tried_instrs = a->tried_instrs - (*out)->instr_count;
    return HR_OK;
}

hr_status draft_compile_within(const draft_request *r, draft_compiler compile, uint64_t budget_bytes,
                               program **out, hr_err *err)
{
    checkpoint_ways *ways = hr_calloc(1, sizeof *ways);
    checkpoint_ways *finer = hr_calloc(1, sizeof *finer);
    attempt a = {.r = *r,
                 .may_send = r->sends_all,
                 .compile = compile,
                 .budget_bytes = budget_bytes,
                 .least = {UINT64_MAX, false},
                 .finer = finer};
    *out = NULL;
    if (ways == NULL || finer == NULL) {
        hr_free(ways);
        hr_free(finer);
        return HR_FAIL(err, NOMEM, "no host memory for the ways to stay within a budget");
    }
    a.r.sends_all = false;
    finer->by_value = true;
    const hr_status status = try_all(&a, ways, out, err);
    program_destroy(a.unfit);
    program_destroy(a.cut);
    checkpoint_ways_deinit(ways);
    checkpoint_ways_deinit(finer);
    hr_free(ways);
    hr_free(finer);
    return status;
}
