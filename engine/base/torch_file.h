// SPDX-License-Identifier: Apache-2.0
// A checkpoint of PyTorch, which is asked about as if it were a network: known by its first bytes and refused with the ways to
// a plan. What is in it is never read. Facts: torch/serialization.py of github.com/pytorch/pytorch (a zip whose members lie
// below one folder: data.pkl, data/0 and so on; before 1.6 pickles behind each other, the first of them MAGIC_NUMBER).
#ifndef BASE_TORCH_FILE_H
#define BASE_TORCH_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

enum { TORCH_FILE_SIGN_BYTES = 512 }; // of its beginning, to know it by

// Whether a file that begins so is one: what torch.save or torch.jit.save writes.
bool torch_file_begins(const char *start, size_t bytes);
// Whether there is such a file and it begins so.
bool torch_file_is_one(const char *path);
// The sentence: `status` is the caller's.
hr_status torch_file_refuse(hr_status status, const char *path, hr_err *err);

// Such a file as a network: READ error where it cannot be read, PRESET error otherwise.
HR_MUST_CHECK hr_status torch_file_as_network(const char *path, hr_err *err);

#endif
