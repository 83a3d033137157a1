// SPDX-License-Identifier: Apache-2.0
// --style: after our own words, the heap that ran out of memory in a framework's.
#ifndef APP_CLI_STYLE_H
#define APP_CLI_STYLE_H

#include "headroom/engine.h"

#include "app/cli/options.h"

// What --style says; NULL: our own words alone ("headroom", or nothing). USAGE error when there is no such style.
HR_MUST_CHECK hr_status style_of(const cli_args *args, const char **style, hr_err *err);
// The same for a command whose --json prints one document: USAGE error with both.
HR_MUST_CHECK hr_status style_beside_report(const cli_args *args, const char **style, hr_err *err);
// When the engine is out of memory, its heap in that style, on stdout; style may be NULL. NOMEM.
HR_MUST_CHECK hr_status style_write(const hr_engine *engine, const char *style, hr_err *err);

#endif
