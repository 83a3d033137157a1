// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_PLAN_TRACE_H
#define APP_CLI_PLAN_TRACE_H

#include "app/cli/options.h"

// plan TRACE: whether what was recorded fits, with how much left, and what the trace takes on one allocator: the one that is named,
// or that of the framework that recorded it. The exit code: 1 when it does not fit.
int plan_trace(const cli_args *args);

#endif
