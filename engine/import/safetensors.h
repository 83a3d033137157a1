// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file, read as it comes: eight bytes with its length, then JSON of one form, which names each
// tensor with its type, shape and place (github.com/huggingface/safetensors, README and tensor.rs of 0.6, read in November
// 2026). Its length is at most 100,000,000 bytes, as the library has it; little of it is in memory at a time.
#ifndef IMPORT_SAFETENSORS_H
#define IMPORT_SAFETENSORS_H

#include "tensors.h"

// Into *t, which starts zeroed and is the caller's to deinit, also after a failure. READ, PRESET, NOMEM. Any thread.
HR_MUST_CHECK hr_status safetensors_read(const char *path, tensors *t, hr_err *err);

#endif
