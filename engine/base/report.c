// SPDX-License-Identifier: Apache-2.0
#include "headroom/report.h"

#include "base/host_mem.h"

void hr_report_deinit(hr_report *report)
{
    if (report == NULL) {
        return;
    }
    hr_free(report->model.layers);
    hr_free(report->memory.at_peak.tensors);
    *report = (hr_report){0};
}
