// SPDX-License-Identifier: Apache-2.0
// The beginning of a save: the length of its header in 8 bytes, then the header, JSON (safetensors). Any thread.
#ifndef TRAIN_SAVE_HEADER_H
#define TRAIN_SAVE_HEADER_H

#include <jansson.h>
#include <stdint.h>

#include "headroom/status.h"

#define SAVE_FAMILY "headroom.save/" // begins the format of every version

// *root is the caller's to decref; *fd stands behind the header and is the caller's to close (file_close). READ error; SAVE
// error where it is no save of headroom, or its header has more than `most_bytes`.
HR_MUST_CHECK hr_status save_open(const char *path, uint64_t most_bytes, int *fd, json_t **root, hr_err *err);

// Of a header's metadata; "" where it has none.
const char *save_text(const json_t *metadata, const char *key);

#endif
