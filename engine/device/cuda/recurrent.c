// SPDX-License-Identifier: Apache-2.0
#include "cuda_device.h"

const cuda_family cuda_family_recurrent = {NULL, 0};
