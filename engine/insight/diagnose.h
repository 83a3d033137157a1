// SPDX-License-Identifier: Apache-2.0
// Why a request could not be served, from the numbers of the refusal alone.
#ifndef INSIGHT_DIAGNOSE_H
#define INSIGHT_DIAGNOSE_H

#include "headroom/knobs.h"
#include "headroom/report.h"

// Reads the facts of `oom` (requested, free, largest free, in use, pool, limit, categories) and fills cause,
// sentence and attempt.
//   fragmentation  enough bytes were free, but not in one piece
//   rounding       the tensors themselves would have fitted; what rounding and unsplit chunks waste would not
//   capacity       more bytes are needed than the limit leaves
void diagnose_oom(const hr_knobs *knobs, uint64_t waste_bytes, hr_report_oom *oom);

#endif
