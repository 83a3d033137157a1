// SPDX-License-Identifier: Apache-2.0
// pipeline.ram_limit: the host's out-of-memory, found by the ledger of a plan before a pipeline is opened.
#include "headroom/replay.h"

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
