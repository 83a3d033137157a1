// SPDX-License-Identifier: Apache-2.0
// Why the host may not hold a pipeline: which stage crosses its limit, and which is the largest.
#ifndef INSIGHT_DIAGNOSE_HOST_H
#define INSIGHT_DIAGNOSE_HOST_H

#include "headroom/report.h"

#include "insight/host_outlook.h"

// The ledger is beyond `limit_bytes`. Fills all of `oom` but its fixes; stages count in their order, behind what is offloaded.
void diagnose_host(const host_outlook *outlook, uint64_t limit_bytes, hr_report_oom *oom);

#endif
