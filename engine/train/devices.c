// SPDX-License-Identifier: Apache-2.0
#include "headroom/devices.h"

#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "train/keep_card.h"

static void look_at(const device_ops *device, hr_device_info *out)
{
    void *context = NULL;
    device_facts facts;
    device_options options = {0};
    *out = (hr_device_info){.name = device->name, .line = device->line, .simulated = device->simulated};
    out->available = device->open(&options, &context, &out->reason) == HR_OK;
    if (!out->available) {
        options.plan_only = true;
        out->plans = device->open(&options, &context, NULL) == HR_OK;
    }
    if (out->available) {
        device->isa(context, out->isa, sizeof out->isa);
        (void)text_copy(out->remark, sizeof out->remark,
                        device->remark == NULL ? "" : device->remark(context));
        if (device->facts != NULL && device->facts(context, &facts)) {
            keep_card(&facts, out->remark, sizeof out->remark);
        }
        out->calibrated = device->time_basis != NULL && device->time_basis(context) == HR_TIME_CALIBRATION;
    }
    if (out->available || out->plans) {
        device->close(context);
    }
}

size_t hr_devices(hr_device_info out[HR_DEVICES_MAX])
{
    uint32_t count = 0;
    const device_ops *const *rows = device_rows(&count);
    count = count < HR_DEVICES_MAX ? count : HR_DEVICES_MAX;
    for (uint32_t k = 0; k < count; k++) {
        look_at(rows[k], &out[k]);
    }
    return count;
}

const char *hr_devices_isa_below(const char *isa)
{
    static const struct {
        const char *isa, *below;
    } rows[] = {// the newest first: its name holds those of the older ones
                {"avx512_core_amx", "AVX512_CORE_BF16"},
                {"avx512_core_bf16", "AVX512_CORE"},
                {"avx512_core_vnni", "AVX512_CORE"},
                {"avx512", "AVX2"},
                {"avx2_vnni", "AVX2"},
                {"avx2", "AVX"},
                {"avx", "SSE41"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strstr(isa, rows[k].isa) != NULL) {
            return rows[k].below;
        }
    }
    return NULL;
}
