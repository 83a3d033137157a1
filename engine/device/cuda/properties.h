// SPDX-License-Identifier: Apache-2.0
// Device properties as cuDNN takes them to plan without a card: a JSON object of 23 fields (presets/cards/NAME.json), the
// same text that cuDNN gives of a card that is there. Any field may be hostile.
#ifndef DEVICE_CUDA_PROPERTIES_H
#define DEVICE_CUDA_PROPERTIES_H

#include "cuda_device.h"

enum { CUDA_PROPERTIES_MAX = 4096, CUDA_DEVICE_NAME_MAX = 128 };

typedef struct cuda_properties {
    cuda_traits traits;
    char name[CUDA_DEVICE_NAME_MAX]; // "NVIDIA H200"
    char text[CUDA_PROPERTIES_MAX];  // the fields in one order, without what a file may have beside them
    uint64_t memory_bytes;           // of the card; 0: unknown
    uint64_t hash;                   // equal for two cards of one kind: without driver, ordinal and PCI slot
} cuda_properties;

// READ error when the file cannot be read; PRESET error names what is missing or of the wrong kind. `path` is for the
// sentence.
HR_MUST_CHECK hr_status cuda_properties_read(const char *path, cuda_properties *out, hr_err *err);
HR_MUST_CHECK hr_status cuda_properties_parse(const char *json, size_t bytes, const char *path,
                                              cuda_properties *out, hr_err *err);

#endif
