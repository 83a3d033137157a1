// SPDX-License-Identifier: Apache-2.0
// Causes that no heap tells by itself: what a record shows beside it, and what its driver said.
#ifndef INSIGHT_DIAGNOSE_EVIDENCE_H
#define INSIGHT_DIAGNOSE_EVIDENCE_H

#include "headroom/units.h"

#include "insight/evidence.h"

// Bytes as people read them, in one expression.
typedef struct byte_words {
    char text[HR_BYTES_TEXT_MAX];
} byte_words;

static inline byte_words human(uint64_t bytes)
{
    byte_words w;
    (void)hr_bytes_human(bytes, w.text);
    return w;
}

//   limit         the device had enough, and something of one's own kept the pool from it
//   outside       the limit would allow it, and the device had no more: others have it
//   leak          what stays of every step is at least what was missing
//   pipeline      so is what waits on the device beyond the batch that is used
//   double_copy   so is the other copy of what was asked for
//   retries       nothing was refused, but the pool went back to the device again and again
//
// Of leak, pipeline and double_copy the one that holds most. None where what rounding wastes is more.

// `short_bytes`: what was missing at least, where more is known than the heap's own shortage; 0: no more is. Fills cause and
// sentence of `oom`, whose tensor and numbers stand already. False: none of them.
bool diagnose_evidence(const oom_evidence *shown, const heap_room *room, uint64_t short_bytes,
                       hr_report_oom *oom);
// What the record's own driver says of the refusal. False: nothing.
bool diagnose_driver(const heap_snapshot *p, const heap_room *room, hr_report_oom *oom);
// The heap at the peak of what fits: nothing was refused there, and nothing asked for.
hr_report_oom diagnose_nothing(const hr_report_memory *m);
// Of what went through. False where there were no retries.
bool diagnose_retries(const oom_evidence *shown, hr_report_oom *oom);
// Of what fits. The steps are a bound as long as each leaves as much: what is asked for fills the limit then, if not before. False
// where nothing stays of each step, or next to nothing.
bool diagnose_near_full(const oom_evidence *shown, const hr_report_memory *memory, hr_report_oom *oom);
// One line more of oom->evidence; left out where there is no room.
void diagnose_add(hr_report_oom *oom, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The numbers of the refusal, growth, queue and retries, as lines.
void diagnose_lines(const oom_evidence *shown, const heap_room *room, hr_report_oom *oom);
// What was held when it ran out, by kind.
void diagnose_categories(hr_report_oom *oom);

#endif
