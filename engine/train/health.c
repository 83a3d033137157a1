// SPDX-License-Identifier: Apache-2.0
// What loss scaling did in a step, and which layers' gradients float16 would not hold, as events (reference
// tensorflow.md B2, B4).
#include <stdio.h>

#include "base/text.h"
#include "train/engine_impl.h"

static void tell_scale(hr_engine *e, const step_io *io)
{
    const bool first = e->loss_scale <= 0, changed = io->loss_scale != e->loss_scale;
    e->skipped += io->nonfinite ? 1 : 0;
    e->loss_scale = io->loss_scale;
    if (!changed && !io->nonfinite) {
        return;
    }
    hr_event event = {.kind = HR_EVENT_SCALE,
                      .u.scale = {.scale = (double)io->loss_scale,
                                  .skipped = e->skipped,
                                  .happened = io->nonfinite ? 0 : 1}};
    trace_emit(&e->bus, &event);
    if (!first || io->nonfinite) {
        char line[96];
        (void)snprintf(line, sizeof line, "%sloss scale is now %g",
                       io->nonfinite ? "step skipped, gradients overflow; " : "", (double)io->loss_scale);
        trace_note(&e->bus, HR_EVENT_LOG, 0, line);
    }
}

// Rows of the parameters of one layer stand side by side.
static void tell_layer(hr_engine *e, uint32_t layer, const double sum[3])
{
    if (sum[2] <= 0 || sum[0] + sum[1] <= 0) {
        return;
    }
    hr_event event = {.kind = HR_EVENT_HEALTH,
                      .u.health = {.flushed = (float)(sum[0] / sum[2]),
                                   .overflowing = (float)(sum[1] / sum[2]),
                                   .elements = (uint64_t)sum[2]}};
    (void)text_copy(event.u.health.layer, sizeof event.u.health.layer,
                    layer < e->model->layer_count ? e->model->layers[layer].name : "step");
    trace_emit(&e->bus, &event);
}

static void tell_health(hr_engine *e, const float *rows)
{
    const hr_model *m = e->model;
    for (uint32_t k = 0; k < m->param_count;) {
        const uint32_t layer = m->params[k].layer;
        double sum[3] = {0};
        for (; k < m->param_count && m->params[k].layer == layer; k++) {
            for (uint32_t c = 0; c < 3; c++) {
                sum[c] += (double)rows[3 * k + c];
            }
        }
        tell_layer(e, layer, sum);
    }
}

void engine_tell_scaling(hr_engine *e, const step_io *io)
{
    if (io->loss_scale > 0) {
        tell_scale(e, io);
    }
    if (io->health != NULL) {
        tell_health(e, io->health);
    }
}
