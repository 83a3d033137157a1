// SPDX-License-Identifier: Apache-2.0
#include "app/cli/export_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cli/say.h"

enum { LAYERS_SHOWN = 12, POINTS_SHOWN = 4 };

static bool begins_layer(const hr_deploy *d, size_t k)
{
    return d->ranks[k].at.point == 0;
}

void export_emit_ranks(emitter *e, const hr_deploy *d)
{
    emit_array(e, "ranks");
    for (size_t k = 0; k < d->rank_count; k++) {
        const hr_event_rank *at = &d->ranks[k].at;
        emit_row(e, NULL);
        emit_text(e, "layer", d->ranks[k].layer);
        emit_count(e, "rank", at->rank);
        emit_count(e, "bytes", at->bytes);
        emit_count(e, "dense_bytes", at->dense_bytes);
        emit_real(e, "break_even", at->break_even, 6);
        emit_real(e, "reconstruction_error", at->error, 9);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static uint64_t dense_bytes(const hr_deploy *d, size_t k)
{
    return d->ranks[k].at.dense_bytes;
}

// How many layers are larger than the one whose first point is k.
static size_t place_of(const hr_deploy *d, size_t k)
{
    size_t larger = 0;
    for (size_t i = 0; i < d->rank_count; i++) {
        larger += begins_layer(d, i) && (dense_bytes(d, i) > dense_bytes(d, k) ||
                                         (dense_bytes(d, i) == dense_bytes(d, k) && i < k));
    }
    return larger;
}

// A power of two, one of the largest below break-even.
static bool is_shown(const hr_event_rank *at)
{
    const bool power = (at->rank & (at->rank - 1)) == 0;
    return power && at->bytes < at->dense_bytes && at->rank < at->break_even &&
           (double)at->rank * (1 << POINTS_SHOWN) >= at->break_even;
}

static void print_layer(const hr_deploy *d, size_t first)
{
    char bytes[SAY_COUNT_TEXT_MAX];
    const hr_event_rank *begin = &d->ranks[first].at;
    printf("  %-27.27s %8s %11s %11.1f\n", d->ranks[first].layer, "as it is",
           say_count(begin->dense_bytes, bytes), begin->break_even);
    for (size_t k = first; k < first + begin->points && k < d->rank_count; k++) {
        const hr_event_rank *at = &d->ranks[k].at;
        if (is_shown(at)) {
            printf("  %-27s %8" PRIu32 " %11s %11s %14.2f %%\n", "", at->rank, say_count(at->bytes, bytes),
                   "", 100 * at->error);
        }
    }
}

void export_print_ranks(const hr_deploy *d)
{
    size_t layers = 0;
    printf("\n  %-27s %8s %11s %11s %16s\n", "layer", "rank", "bytes", "break_even", "error of weights");
    for (size_t k = 0; k < d->rank_count; k++) {
        layers += begins_layer(d, k);
        if (begins_layer(d, k) && place_of(d, k) < LAYERS_SHOWN) {
            print_layer(d, k);
        }
    }
    if (layers == 0) {
        puts("  no layer has weights that a product could stand for");
    } else if (layers > LAYERS_SHOWN) {
        printf("  %zu smaller layers: --json has all, and every rank\n", layers - LAYERS_SHOWN);
    }
    puts("  compress.low_rank=RANK makes them: it is one rank for the whole model.");
}
