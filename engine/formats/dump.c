// SPDX-License-Identifier: Apache-2.0
#include "formats/dump.h"

#include <stdio.h>
#include <string.h>

#include "formats/tensorflow_async.h"
#include "formats/tensorflow_dump.h"
#include "formats/torch_oom.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t card_bytes(const heap_snapshot *p, const dump_facts *facts)
{
    return facts->device_bytes == 0 ? p->counters.limit_bytes : facts->device_bytes;
}

// Of the card, by what neither the pool nor another process has taken.
static uint64_t free_of_card(const heap_snapshot *p, const dump_facts *facts)
{
    return less(less(card_bytes(p, facts), facts->outside_bytes), p->counters.pool_bytes);
}

static void write_tensorflow(const heap_snapshot *p, const dump_facts *facts, text *out)
{
    char allocator[32], device[80];
    bool is_bfc = strcmp(p->source, "bfc") == 0; // of ours: TensorFlow names it by its card
    (void)snprintf(allocator, sizeof allocator, "GPU_%u_bfc", facts->device);
    (void)snprintf(device, sizeof device, "/job:localhost/replica:0/task:0/device:GPU:%u", facts->device);
    if (strcmp(p->source, "async") == 0) {
        tensorflow_async_dump(p,
                              &(tensorflow_async_options){.device = facts->device,
                                                          .total_bytes = card_bytes(p, facts),
                                                          .free_bytes = free_of_card(p, facts),
                                                          .shape = facts->shape,
                                                          .type = facts->type,
                                                          .where = device},
                              out);
        return;
    }
    tensorflow_dump(p,
                    &(tensorflow_dump_options){.allocator = is_bfc ? allocator : NULL,
                                               .op = facts->op,
                                               .shape = facts->shape,
                                               .type = facts->type,
                                               .device = device,
                                               .growth = facts->growth},
                    out);
}

static void write_pytorch(const heap_snapshot *p, const dump_facts *facts, text *out)
{
    const heap_counters *c = &p->counters;
    heap_snapshot asked = *p;              // borrows
    if (asked.refusal.driver_bytes == 0) { // PyTorch would have asked its driver before it failed
        asked.refusal.driver_bytes = p->refusal.rounded_bytes;
    }
    torch_oom_write(&asked,
                    &(torch_driver){.device = facts->device,
                                    .total_bytes = card_bytes(p, facts),
                                    .free_bytes = free_of_card(p, facts),
                                    .allowed_bytes = facts->limit_is_fraction ? c->limit_bytes : 0,
                                    .expandable_segments = facts->expandable_segments},
                    out);
    text_append(out, "\n");
}

const dump_style dump_styles[] = {
    {"tensorflow", "the best-fit allocator's dump: bins, every chunk, statistics, map; of async its log",
     write_tensorflow},
    {"pytorch", "the sentence of torch.OutOfMemoryError", write_pytorch},
    {NULL, NULL, NULL},
};

const dump_style *dump_style_find(const char *name)
{
    const dump_style *style = dump_styles;
    while (style->name != NULL && strcmp(style->name, name) != 0) {
        style++;
    }
    return style->name == NULL ? NULL : style;
}
