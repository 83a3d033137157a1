// SPDX-License-Identifier: Apache-2.0
// An ONNX file as a preset: preset_import (knobs/preset_import.h) of a file that ends in .onnx.
#ifndef IMPORT_ONNX_H
#define IMPORT_ONNX_H

#include "headroom/status.h"

#include "base/text.h"

// `lets_pass`: what no layer computes is an opaque one. A refusal without it says so, where the file could be read with it.
HR_MUST_CHECK hr_status onnx_import(const char *path, const char *name, bool lets_pass, text *model,
                                    text *knobs, hr_err *err);

#endif
