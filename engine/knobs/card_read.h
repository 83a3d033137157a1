// SPDX-License-Identifier: Apache-2.0
// A card from where it is written: a row of the table, a file of one's own, or what differs from one of them.
#ifndef KNOBS_CARD_READ_H
#define KNOBS_CARD_READ_H

#include <stdbool.h>

#include "headroom/card.h"

// `title:`, `vram:`, … one a line, all that is needed or `like: NAME`. READ and PRESET errors; then *card is unchanged.
HR_MUST_CHECK hr_status card_read_file(const char *path, hr_card *card, hr_err *err);
// What stands behind the first comma of "CARD,key=value,key=value", over *card. PRESET error; then *card is unchanged.
// `words` is all that was said, card and changes. Its properties stay those of the card while only its memory's size and
// what is around it differ.
HR_MUST_CHECK hr_status card_change(hr_card *card, const char *words, hr_err *err);

#endif
