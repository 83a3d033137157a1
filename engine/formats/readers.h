// SPDX-License-Identifier: Apache-2.0
// The rows of formats/formats.h whose readers have nothing else to say to others.
#ifndef FORMATS_READERS_H
#define FORMATS_READERS_H

#include "formats/formats.h"

extern const trace_format trace_format_csv; // own_csv.c
extern const trace_format trace_format_rmm; // rmm_csv.c

#endif
