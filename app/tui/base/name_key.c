// SPDX-License-Identifier: Apache-2.0
#include "app/tui/base/name_key.h"

uint64_t name_key(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    }
    return hash;
}
