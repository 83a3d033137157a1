// SPDX-License-Identifier: Apache-2.0
// A card that is there and has no property file is kept for plans without it: its properties as NAME.json below presets/cards in
// the user's data folder and, where the table has no row of its title, NAME.yaml beside it, with the rates of the row that is
// most like it. A file that is there is never replaced.
#ifndef TRAIN_KEEP_CARD_H
#define TRAIN_KEEP_CARD_H

#include "device/device.h"

// What was kept and how it is used, or why it could not be; "" where there is nothing to keep.
void keep_card(const device_facts *facts, char *remark, size_t size);

#endif
