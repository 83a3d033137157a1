// SPDX-License-Identifier: Apache-2.0
// The implementations of a step, what a library was asked for in vain, and which workspaces are the largest.
#ifndef INSIGHT_IMPLEMENTATIONS_H
#define INSIGHT_IMPLEMENTATIONS_H

#include "headroom/report.h"

#include "program/program.h"
#include "program/target.h"

// Fills step.implementations and step.fallbacks.
void implementations_count(const program *p, hr_report *r);
// Adds instruction n to step.prepared where it is not what was planned.
void implementations_prepared(const program *p, uint32_t n, const char *reason, hr_report *r);
// Fills memory.workspaces and, where one is alive once instruction `peak` has been executed (HR_NO_ID: none is),
// memory.at_peak.workspace. For that one the target is asked for one that needs less; NULL: nobody is.
void implementations_workspaces(const program *p, const hr_target *target, uint32_t peak,
                                hr_report_memory *m);

#endif
