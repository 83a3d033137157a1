// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_PLAN_WEIGHTS_H
#define APP_CLI_PLAN_WEIGHTS_H

#include "headroom/weights.h"

#include "app/cli/options.h"

// plan FILE of weights that name no network: what they are, what training them takes at least, and how to come to a plan. The exit
// code.
int plan_weights(const cli_args *args, const hr_weights *w);
// The same without a way, beside a refusal of the network that they name.
void plan_weights_alone(const cli_args *args, const hr_weights *w);

#endif
