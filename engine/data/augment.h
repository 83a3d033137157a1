// SPDX-License-Identifier: Apache-2.0
// pipeline.augment: what becomes of a training image between decoding and the batch. Which way each operation goes is drawn from
// Philox(train.seed, "augment/" and its word), counted by epoch and sample: the same on any number of threads, in any order, and
// after a restart. Of images with one class each; other data stays as it is.
//
//   flip       half of all images
//   crop:N     torchvision's RandomCrop(padding=N): black on every side, then a piece of the image's size, all of them alike likely
//   colour:S   torchvision's ColorJitter(S, S, S): factors from 1 - S to 1 + S, in random order
//   rotate:D   torchvision's RandomRotation(D): the nearest pixel, black outside
//   erase      half of all images: a rectangle of 2 to 33 % of the area, its sides at most 3.3 : 1, becomes black
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "headroom/knobs.h"

#include "base/philox.h"
#include "data/image_ops.h"
#include "knobs/augment.h"

typedef struct data_augment {
    augment_list list; // count 0: nothing is done
    philox_key key[AUGMENT_KINDS];
} data_augment;

data_augment data_augment_of(const hr_knobs *knobs);
// Does it all to an image, with `spare` of the same size. Returns which of the two has the result; the other is undefined.
uint8_t *data_augment_image(const data_augment *a, uint64_t epoch, uint32_t sample, const image_size *size,
                            uint8_t *image, uint8_t *spare);

#endif
