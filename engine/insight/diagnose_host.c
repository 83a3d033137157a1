// SPDX-License-Identifier: Apache-2.0
#include "insight/diagnose_host.h"

#include <stdio.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "base/text.h"

// Row 0 is what is offloaded.
static host_stage row_of(const host_outlook *o, uint32_t k)
{
    return k == 0 ? (host_stage){"offload", o->offloaded_bytes} : o->pipeline.stages[k - 1];
}

typedef struct excess {
    host_stage crossing, largest;
    uint64_t before_bytes; // of those in front of the one that crosses
} excess;

static excess excess_of(const host_outlook *o, uint64_t limit_bytes)
{
    excess x = {.crossing = {NULL, 0}, .largest = row_of(o, 0)};
    for (uint32_t k = 0; k <= o->pipeline.count; k++) {
        const host_stage stage = row_of(o, k);
        x.largest = stage.bytes > x.largest.bytes ? stage : x.largest;
        if (x.crossing.name == NULL && stage.bytes > limit_bytes - x.before_bytes) {
            x.crossing = stage;
        } else if (x.crossing.name == NULL) {
            x.before_bytes += stage.bytes;
        }
    }
    return x;
}

void diagnose_host(const host_outlook *outlook, uint64_t limit_bytes, hr_report_oom *oom)
{
    const excess x = excess_of(outlook, limit_bytes);
    char all[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], crossing[HR_BYTES_TEXT_MAX],
        largest[HR_BYTES_TEXT_MAX];
    char other[96] = " and is the largest of them";
    *oom = (hr_report_oom){.cause = HR_OOM_PIPELINE,
                           .of_host = true,
                           .instruction = HR_NO_ID,
                           .requested_bytes = x.crossing.bytes,
                           .free_bytes = limit_bytes - x.before_bytes,
                           .largest_free_bytes = limit_bytes - x.before_bytes,
                           .in_use_bytes = x.before_bytes,
                           .pool_bytes = x.before_bytes,
                           .limit_bytes = limit_bytes,
                           .needed_bytes = outlook->bytes};
    (void)text_copy(oom->tensor, sizeof oom->tensor, x.crossing.name);
    (void)text_copy(oom->instruction_name, sizeof oom->instruction_name, "pipeline");
    if (strcmp(x.largest.name, x.crossing.name) != 0) {
        (void)snprintf(other, sizeof other, ", and %s is the largest of them with %s", x.largest.name,
                       hr_bytes_human(x.largest.bytes, largest));
    }
    (void)snprintf(
        oom->sentence, sizeof oom->sentence,
        "pipeline: the host would hold %s for the data and what is offloaded, pipeline.ram_limit is %s; "
        "stage %s crosses it with %s%s",
        hr_bytes_human(outlook->bytes, all), hr_bytes_human(limit_bytes, limit), x.crossing.name,
        hr_bytes_human(x.crossing.bytes, crossing), other);
}
