// SPDX-License-Identifier: Apache-2.0
// pipeline.ram_limit: the host's out-of-memory, found by the ledger of a plan before a pipeline is opened. And what a teacher's
// answers take of this machine, before they are made.
#include <string.h>

#include "headroom/replay.h"
#include "headroom/units.h"

#include "base/machine.h"
#include "insight/diagnose_host.h"
#include "train/failure_heap.h"
#include "train/wire.h"

static hr_status refuse(hr_engine *e, const build *fresh, hr_err *err)
{
    e->refused_limit_bytes = hr_limit_is_none(fresh->limit_bytes) ? HR_NONE : fresh->limit_bytes;
    diagnose_host(&e->refused_host, hr_knob_bytes(&e->knobs, HR_KNOB_PIPELINE_RAM_LIMIT, HR_NONE), &e->oom);
    hr_heap_destroy(e->failure_heap); // it is another one's
    e->failure_heap = NULL;
    engine_find_remedy(e, fresh, &e->oom);
    (void)HR_FAIL(err, OOM, "%s", e->oom.sentence);
    engine_say_remedies(&e->oom, err);
    return HR_OOM;
}

hr_status engine_check_host(hr_engine *e, const build *fresh, hr_err *err)
{
    host_outlook outlook;
    if (!hr_knob_is_set(&e->knobs, HR_KNOB_PIPELINE_RAM_LIMIT)) {
        return HR_OK;
    }
    wire_foresee(fresh, e->model, &e->knobs, &outlook);
    if (host_outlook_beyond(&outlook, &e->knobs) == 0) {
        return HR_OK;
    }
    if (e->rehearses) { // why, and what would fit, is asked of one that trains
        return HR_FAIL(err, OOM, "the host may not hold it");
    }
    e->refused_host = outlook;
    return refuse(e, fresh, err);
}

static uint64_t answers_bytes(const host_outlook *outlook)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; outlook->known && k < outlook->pipeline.count; k++) {
        const host_stage *stage = &outlook->pipeline.stages[k];
        bytes = strcmp(stage->name, "answers") == 0 ? stage->bytes : bytes;
    }
    return bytes;
}

hr_status engine_admit_answers(const hr_engine *e, const build *fresh, hr_err *err)
{
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    host_outlook outlook;
    const uint64_t available = hr_machine_available_bytes();
    const uint64_t most = available / 100 * MACHINE_SHARE_PCT + e->answers_bytes; // those give way
    wire_foresee(fresh, e->model, &e->knobs, &outlook);
    const uint64_t bytes = answers_bytes(&outlook);
    if (available == UINT64_MAX || bytes <= most) {
        return HR_OK;
    }
    (void)HR_FAIL(err, HOST_LIMIT,
                  "compress.distill_cache: the teacher's answers take %s of host memory, %d %% of what this "
                  "machine has available is %s",
                  hr_bytes_human(bytes, needed), MACHINE_SHARE_PCT, hr_bytes_human(most, had));
    hr_err_try(err, "-s compress.distill_cache=off");
    return HR_HOST_LIMIT;
}
