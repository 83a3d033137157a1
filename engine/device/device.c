// SPDX-License-Identifier: Apache-2.0
// The devices that were built in.
#include "device/device.h"

#include <string.h>

static const device_ops *const rows[] = {
#if HEADROOM_HAVE_ONEDNN
    &device_cpu,
#endif
#if HEADROOM_HAVE_CUDA
    &device_cuda,
#endif
    &device_plan,
    &device_reference,
};

const device_ops *const *device_rows(uint32_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}

hr_status device_find(const char *kind, const device_ops **out, hr_err *err)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k]->name, kind) == 0) {
            *out = rows[k];
            return HR_OK;
        }
    }
    *out = NULL;
    (void)HR_FAIL(err, DEPENDENCY, "needed device '%s', this build has plan, reference%s%s", kind,
                  HEADROOM_HAVE_ONEDNN ? ", cpu" : "", HEADROOM_HAVE_CUDA ? ", cuda" : "");
    hr_err_try(err, "-s device.kind=plan, or for cpu: apt install libdnnl-dev; for cuda: the CUDA Toolkit "
                    "with cuDNN 9; and build again");
    return HR_DEPENDENCY;
}
