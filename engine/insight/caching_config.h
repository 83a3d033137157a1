// SPDX-License-Identifier: Apache-2.0
// From PyTorch's configuration (knobs/torch_conf.h) to the options of the caching allocator.
#ifndef INSIGHT_CACHING_CONFIG_H
#define INSIGHT_CACHING_CONFIG_H

#include "knobs/torch_conf.h"
#include "memory/allocator.h"

caching_options caching_options_of(const torch_conf *c);
// Of PyTorch's versions, as the words of allocator.version; that of the newest for any other.
caching_order caching_order_of_version(const char *version);

#endif
