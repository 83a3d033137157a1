// SPDX-License-Identifier: Apache-2.0
// Files of other programs that say what a model is, read as presets. A reader turns such a file into the text of a preset;
// preset.c knows this declaration alone, and engine/import defines it.
#ifndef KNOBS_PRESET_IMPORT_H
#define KNOBS_PRESET_IMPORT_H

#include "headroom/file_kind.h"
#include "headroom/status.h"

#include "base/text.h"

// An ONNX file (a path that ends in .onnx; weights are not read), the header of a GGUF file (.gguf), safetensors (.safetensors) with a config.json beside them, a model of Keras (a .keras archive, or JSON that has class_name
// and config; weights are not read), or a Hugging Face config.json (and, for its count of parameters, the index or the header of the safetensors beside it) as a
// preset of our own: into *model the keys title, description, note and model, into *knobs the groups, which a preset has
// behind them. `name` is what the model is called. READ error when the file cannot be read, DATA where a .keras is no archive; PRESET error, one sentence with
// the key, the node or the layer, where it is no such file or says what our layers cannot hold; NOMEM. The texts are the caller's to free, also
// after a failure. Any thread.
// `lets_pass`: a node of ONNX that no layer computes is an opaque layer.
HR_MUST_CHECK hr_status preset_import(const char *path, const char *name, bool lets_pass, text *model,
                                      text *knobs, hr_err *err);
// Of a file of JSON by what is in it: KERAS, CONFIG, REPORT or JSON.
hr_file_kind preset_import_json_kind(const char *path);

#endif
