// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_CALIBRATE_H
#define APP_CLI_CALIBRATE_H

#include "app/cli/options.h"

// doctor --calibrate: measures, keeps, prints. Returns the exit code.
int calibrate(const cli_args *args);

#endif
