// SPDX-License-Identifier: Apache-2.0
// A configuration that is to be kept: as a preset of its own, or as the lines of a framework that do the same.
#ifndef HEADROOM_KNOB_EXPORT_H
#define HEADROOM_KNOB_EXPORT_H

#include "headroom/knobs.h"
#include "headroom/preset.h"

// "preset", "pytorch", "keras"; NULL behind the last.
const char *hr_knob_export_form(size_t index);

// The text of `form` (one of those): a preset that extends `preset` with what `knobs` set otherwise, or Python with a comment
// for every knob that is not at its default, those without a counterpart too. `path` is where it will stand, or NULL: what
// a preset extends is found from there. *text is the caller's (hr_knob_export_free). USAGE for another form, NOMEM.
HR_MUST_CHECK hr_status hr_knob_export(const char *form, const hr_preset *preset, const hr_knobs *knobs,
                                       const char *path, char **text, hr_err *err);
void hr_knob_export_free(char *text);

// Writes that text to a file. One that is there is a WRITE error, unless it `replaces`.
HR_MUST_CHECK hr_status hr_knob_export_file(const char *form, const hr_preset *preset, const hr_knobs *knobs,
                                            const char *path, bool replaces, hr_err *err);

#endif
