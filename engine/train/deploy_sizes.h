// SPDX-License-Identifier: Apache-2.0
// What weights weigh: in memory, in a file, and behind gzip and zstd.
#ifndef TRAIN_DEPLOY_SIZES_H
#define TRAIN_DEPLOY_SIZES_H

#include "headroom/deploy.h"

#include "base/text.h"
#include "train/store.h"

// Of a file that would have this header and these tensors. NOMEM error.
HR_MUST_CHECK hr_status deploy_weigh(const text *header, const store *s, hr_deploy_size *out, hr_err *err);
// Of a save that lies there. READ errors, too.
HR_MUST_CHECK hr_status deploy_weigh_file(const char *path, hr_deploy_size *out, hr_err *err);

#endif
