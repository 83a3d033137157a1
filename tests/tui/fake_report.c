// SPDX-License-Identifier: Apache-2.0
// What the scripted engine says of itself: its report, and the ranks of a layer's weights.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "tests/tui/fake_engine_inside.h"

static int by_bytes(const void *a, const void *b)
{
    const hr_report_tensor *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

static void report_memory(const hr_session *h, hr_report_memory *m)
{
    *m = (hr_report_memory){.limit_bytes = h->limit,
                            .peak_pool_bytes = h->pool,
                            .peak_in_use_bytes = h->peak,
                            .peak_requested_bytes = h->peak_requested,
                            .waste_bytes = h->peak - h->peak_requested,
                            .saved_for_backward_bytes =
                                232320 * (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE),
                            .static_bytes = 11127888,
                            .largest_free_bytes = h->pool - h->peak};
    m->at_peak.phase = h->peak_phase;
    snprintf(m->at_peak.name, sizeof m->at_peak.name, "%s", h->peak_name);
    m->at_peak.tensors = hr_calloc(h->at_peak_count + 1, sizeof *m->at_peak.tensors);
    for (size_t i = 0; m->at_peak.tensors != NULL && i < h->at_peak_count; i++) {
        hr_report_tensor *t = &m->at_peak.tensors[m->at_peak.tensor_count++];
        snprintf(t->name, sizeof t->name, "%s", h->at_peak[i].name);
        snprintf(t->dtype, sizeof t->dtype, "float32");
        snprintf(t->shape, sizeof t->shape, "%s", h->at_peak[i].shape);
        t->category = h->at_peak[i].category;
        t->bytes = h->at_peak[i].requested_bytes;
        m->at_peak.by_category[t->category] += t->bytes;
    }
    if (m->at_peak.tensors != NULL) {
        qsort(m->at_peak.tensors, m->at_peak.tensor_count, sizeof *m->at_peak.tensors, by_bytes);
    }
}

static void report_oom(const hr_session *h, hr_report_oom *oom)
{
    char asked[HR_BYTES_TEXT_MAX], free_text[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    *oom = (hr_report_oom){.cause = HR_OOM_CAPACITY,
                           .requested_bytes = h->failing.requested_bytes,
                           .free_bytes = h->limit - h->in_use,
                           .largest_free_bytes = h->limit - h->in_use,
                           .in_use_bytes = h->in_use,
                           .pool_bytes = h->pool,
                           .limit_bytes = h->limit,
                           .needed_bytes = 2 * h->limit};
    snprintf(oom->tensor, sizeof oom->tensor, "%s", h->failing.name);
    for (size_t i = 0; i < h->tensor_count; i++) {
        oom->by_category[h->tensors[i].category] += h->tensors[i].alive ? h->tensors[i].requested_bytes : 0;
    }
    snprintf(oom->sentence, sizeof oom->sentence,
             "%s asked for %s, but %s of %s are free: all of it together is not enough.", oom->tensor,
             hr_bytes_human(oom->requested_bytes, asked), hr_bytes_human(oom->free_bytes, free_text),
             hr_bytes_human(oom->limit_bytes, limit));
    const long long half = (long long)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE) / 2;
    oom->fix_count = 2;
    oom->fixes[0] = (hr_report_fix){
        .peak_bytes = oom->limit_bytes / 8 * 5, .limit_bytes = oom->limit_bytes, .seconds = 0.0124};
    oom->fixes[1] = (hr_report_fix){
        .peak_bytes = oom->limit_bytes / 2, .limit_bytes = oom->limit_bytes, .seconds = (double)NAN};
    snprintf(oom->fixes[0].knobs, sizeof oom->fixes[0].knobs, "execution.mode=graph");
    snprintf(oom->fixes[1].knobs, sizeof oom->fixes[1].knobs, "batch.size=%lld batch.accumulate=2", half);
    snprintf(oom->fixes[0].cost, sizeof oom->fixes[0].cost, "same numbers, +8 %% step time");
    snprintf(oom->fixes[1].cost, sizeof oom->fixes[1].cost, "other last digits");
    snprintf(oom->hint, sizeof oom->hint, "-s execution.mode=graph");
}

static void report_deploy(const hr_session *h, hr_report *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof fake_layers / sizeof *fake_layers; i++) {
        bytes += fake_layers[i].weights_bytes;
    }
    r->deploy.stripped_bytes = bytes;
    r->deploy.deployed_bytes = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_QUANTIZE, "none") ? bytes : bytes / 4;
    r->train.sparsity = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_PRUNE, "none") ? (double)NAN : 0.625;
}

void fake_publish_report(hr_session *h)
{
    hr_report *r = &h->report;
    hr_report_deinit(r);
    snprintf(r->device.kind, sizeof r->device.kind, "cpu");
    snprintf(r->device.isa, sizeof r->device.isa, "avx2");
    snprintf(r->train.data, sizeof r->train.data, "generated");
    r->device.threads = 2;
    report_memory(h, &r->memory);
    report_deploy(h, r);
    if (h->state == HR_ENGINE_OOM) {
        report_oom(h, &r->oom);
    }
    h->report_version++;
}

void fake_put_ranks(hr_session *h, const char *name)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63, 64};
    const uint32_t count = sizeof ranks / sizeof *ranks, full = ranks[count - 1];
    for (uint32_t i = 0; i < FAKE_LAYERS; i++) {
        for (uint32_t k = 0; k < count && strcmp(fake_layers[i].name, name) == 0; k++) {
            const uint64_t bytes = fake_layers[i].weights_bytes * ranks[k] / full;
            hr_event e = {.kind = HR_EVENT_RANK, .instr = HR_NO_ID};
            e.u.rank =
                (hr_event_rank){.bytes = bytes,
                                .dense_bytes = fake_layers[i].weights_bytes,
                                .error = sqrt(1 - (double)ranks[k] / full),
                                .break_even = 63.6,
                                .zeros = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_PRUNE, "none") ? 0 : 0.4375,
                                .layer = i,
                                .rank = ranks[k],
                                .full = full,
                                .point = k,
                                .points = count};
            fake_put(h, e);
        }
    }
}
