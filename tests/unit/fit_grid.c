// SPDX-License-Identifier: Apache-2.0
#include "unit/fit_grid.h"

#include <math.h>
#include <stdio.h>

#include "headroom/preset.h"

#include "base/hash.h"

static const char *const presets[] = {"demo",
                                      "gpt2_124m_tiny",
                                      "unet_tiny",
                                      "mobilenet_v2_tiny",
                                      "lstm_lm_medium_tiny",
                                      "resnet18_tiny",
                                      "mlp_tiny",
                                      "vit_b16_tiny",
                                      "mixtral_8x7b_tiny",
                                      "densenet121_tiny",
                                      "llama3_2_1b_tiny"};
static const char *const cards[] = {"rtx3070-8g", "t4-16g", "a100-40g", "h100-80g", "rtx4090-24g"};
static const hr_knob_id turned[] = {
    HR_KNOB_EXECUTION_MODE,    HR_KNOB_CHECKPOINT_STRATEGY, HR_KNOB_PRECISION_POLICY,
    HR_KNOB_OPTIMIZER_KIND,    HR_KNOB_OFFLOAD_ACTIVATIONS, HR_KNOB_ALLOCATOR_KIND,
    HR_KNOB_BATCH_SIZE,        HR_KNOB_WORKSPACE_LIMIT,     HR_KNOB_EXECUTION_FUSE,
    HR_KNOB_OFFLOAD_OPTIMIZER, HR_KNOB_OFFLOAD_PREFETCH,    HR_KNOB_OPTIMIZER_FUSED_BACKWARD,
    HR_KNOB_EXECUTION_INPLACE, HR_KNOB_ALLOCATOR_GROWTH,    HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS};
static const char *const other[] = {"execution.mode=eager",
                                    "execution.mode=graph",
                                    "checkpoint.strategy=sqrt",
                                    "checkpoint.strategy=blocks",
                                    "optimizer.kind=adam",
                                    "optimizer.kind=momentum",
                                    "allocator.kind=caching",
                                    "allocator.kind=static",
                                    "precision.policy=mixed_float16",
                                    "offload.activations=on",
                                    "offload.optimizer=on",
                                    "optimizer.fused_backward=on",
                                    "batch.accumulate=4",
                                    "workspace.limit=0B",
                                    "execution.fuse=on",
                                    "batch.size=6",
                                    "allocator.kind=async",
                                    "execution.as=pytorch"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

uint32_t fit_grid_draw(fit_grid *g, uint32_t below)
{
    g->seed = hash64_mix(g->seed, 1);
    return (uint32_t)((g->seed >> 32) % below);
}

bool fit_grid_open(fit_grid *g, char *why, size_t size)
{
    char card[64];
    hr_preset *preset = NULL;
    hr_err err = {0};
    g->preset = g->preset == NULL ? presets[fit_grid_draw(g, COUNT(presets))] : g->preset;
    (void)snprintf(card, sizeof card, "device.card=%s", cards[fit_grid_draw(g, COUNT(cards))]);
    const char *const pairs[] = {"device.kind=plan", card, "device.vram=", "batch.size=16"};
    hr_status status = hr_preset_open(g->preset, false, &preset, NULL, &err);
    if (status == HR_OK) {
        g->asked = *hr_preset_knobs(preset);
        for (size_t k = 0; status == HR_OK && k < COUNT(pairs); k++) {
            status = hr_knobs_set_pair(&g->asked, pairs[k], &err);
        }
        status = status == HR_OK ? hr_planner_open(preset, &g->planner, &err) : status;
    }
    hr_preset_close(preset);
    (void)snprintf(why, size, "%s", err.sentence);
    return status == HR_OK;
}

void fit_grid_turn_asked(fit_grid *g)
{
    for (uint32_t left = fit_grid_draw(g, 4); left > 0; left--) {
        hr_knobs knobs = g->asked;
        hr_whatif plan;
        if (hr_knobs_set_pair(&knobs, other[fit_grid_draw(g, COUNT(other))], NULL) == HR_OK &&
            hr_planner_plan(g->planner, &knobs, &plan, NULL) == HR_OK) {
            g->asked = knobs;
        }
    }
}

static bool plan_from(fit_grid *g, fit_combination *c, int dimension, int most)
{
    if (dimension == FIT_DIMENSIONS) {
        hr_knobs knobs;
        char pairs[256];
        if (g->count == most) {
            return false;
        }
        g->combinations[g->count] = *c;
        g->count += fit_turn(&g->asked, c, &knobs, pairs, sizeof pairs) &&
                    hr_planner_plan(g->planner, &knobs, &g->plans[g->count], NULL) == HR_OK;
        return true;
    }
    bool all = true;
    for (int word = FIT_AS_ASKED; all && word < fit_words(&g->asked, &g->wish, dimension); word++) {
        c->word[dimension] = (int8_t)word;
        all = plan_from(g, c, dimension + 1, most);
    }
    c->word[dimension] = FIT_AS_ASKED;
    return all;
}

bool fit_grid_plan(fit_grid *g, int most)
{
    fit_combination c = fit_as_asked();
    g->count = 0;
    return plan_from(g, &c, 0, most);
}

void fit_grid_draw_wish(fit_grid *g, int free, int most)
{
    do {
        g->wish.permission = (hr_fit_permission)fit_grid_draw(g, HR_PERMISSION_COUNT);
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            g->wish.keeps[id] = true;
        }
        for (int k = 0; k < free; k++) {
            g->wish.keeps[turned[fit_grid_draw(g, COUNT(turned))]] = false;
        }
        g->wish.keeps[HR_KNOB_BATCH_ACCUMULATE] = g->wish.keeps[HR_KNOB_BATCH_SIZE];
        free -= free > 3;
    } while (!fit_grid_plan(g, most));
}

void fit_grid_close(fit_grid *g)
{
    hr_planner_close(g->planner);
    g->planner = NULL;
}

// ---- against what was found -------------------------------------------------------------------------------------

int fit_grid_fastest(const fit_grid *g, uint64_t peak_bytes)
{
    int best = -1;
    for (int k = 0; k < g->count; k++) {
        if (g->plans[k].peak_in_use_bytes <= peak_bytes &&
            (best < 0 || g->plans[k].step_seconds < g->plans[best].step_seconds)) {
            best = k;
        }
    }
    return best;
}

double fit_grid_found(const hr_fit_found *found, uint64_t peak_bytes)
{
    double seconds = INFINITY;
    for (size_t k = 0; k < found->count; k++) {
        const hr_whatif *w = &found->ways[k].point.plan;
        seconds = w->peak_in_use_bytes <= peak_bytes ? fmin(seconds, w->step_seconds) : seconds;
    }
    return seconds;
}

int fit_grid_missed(const fit_grid *g, const hr_fit_found *found, double share)
{
    for (int k = 0; k < g->count; k++) {
        const uint64_t peak_bytes = g->plans[k].peak_in_use_bytes;
        const int best = fit_grid_fastest(g, peak_bytes);
        if (fit_grid_found(found, peak_bytes) > (1 + share) * g->plans[best].step_seconds) {
            return best;
        }
    }
    return -1;
}
