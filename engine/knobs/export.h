// SPDX-License-Identifier: Apache-2.0
// The forms of headroom/knob_export.h, one file each.
#ifndef KNOBS_EXPORT_H
#define KNOBS_EXPORT_H

#include "headroom/preset.h"

#include "base/text.h"

// `path` may be NULL. What fails is kept in out->failed.
void export_preset(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out);
void export_pytorch(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out);
void export_keras(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out);

#endif
