// SPDX-License-Identifier: Apache-2.0
// What export says of --ranks: layer by layer, what compress.low_rank would make of the weights of a save.
#ifndef CLI_EXPORT_RANKS_H
#define CLI_EXPORT_RANKS_H

#include "headroom/deploy.h"

#include "app/cli/emit.h"

void export_emit_ranks(emitter *e, const hr_deploy *d); // every point
void export_print_ranks(const hr_deploy *d); // of the largest layers, those of powers of two below break-even

#endif
