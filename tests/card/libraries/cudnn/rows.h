// SPDX-License-Identifier: Apache-2.0
#ifndef CARD_CUDNN_ROWS_H
#define CARD_CUDNN_ROWS_H

#include "bag.h"

// Instead of a kind: every operation.
#define BAG_ANY_OPERATION ((cudnnBackendDescriptorType_t)1000)

const bag_row *bag_rows(uint32_t *count);

#endif
