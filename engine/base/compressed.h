// SPDX-License-Identifier: Apache-2.0
// How many bytes a file of some bytes would be once gzip or zstd has compressed it, as their programs do by default. Nothing of it is kept.
// Any thread.
#ifndef BASE_COMPRESSED_H
#define BASE_COMPRESSED_H

#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

typedef enum compressed_kind { COMPRESSED_GZIP, COMPRESSED_ZSTD } compressed_kind;

typedef struct compressed compressed;

// DEPENDENCY error without libarchive, or where it was built without that kind.
HR_MUST_CHECK hr_status compressed_open(compressed_kind kind, compressed **out, hr_err *err);
HR_MUST_CHECK hr_status compressed_add(compressed *c, const void *data, size_t bytes, hr_err *err);
// Frees c in every case.
HR_MUST_CHECK hr_status compressed_end(compressed *c, uint64_t *bytes, hr_err *err);
void compressed_abandon(compressed *c); // NULL is fine

#endif
