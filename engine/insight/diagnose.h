// SPDX-License-Identifier: Apache-2.0
// Why a request could not be served, from the numbers of the refusal alone.
#ifndef INSIGHT_DIAGNOSE_H
#define INSIGHT_DIAGNOSE_H

#include "headroom/report.h"

// Reads the facts of `oom` (requested, free, largest free, in use, pool, limit, categories) and fills cause
// and sentence. `needed_bytes` is what the whole step asks for at its own peak (program_peak_bytes),
// `waste_bytes` what rounding and unsplit chunks held at the refusal.
//   capacity       the step asks for more than the limit, whatever the allocator does
//   fragmentation  it would fit, and at the refusal enough bytes were free, but not in one piece
//   rounding       it would fit, but for what rounding and unsplit chunks waste
void diagnose_oom(uint64_t needed_bytes, uint64_t waste_bytes, hr_report_oom *oom);

// The same for an allocator that plans: what was refused is the one block of the whole step.
void diagnose_block(uint64_t needed_bytes, hr_report_oom *oom);

#endif
