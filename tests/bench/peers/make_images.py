# SPDX-License-Identifier: Apache-2.0
"""JPEG files that compress as pictures do: gradients, soft shapes and grain. In FOLDER/train and FOLDER/val, a folder a
class.

usage: make_images.py FOLDER IMAGES CLASSES: so many to train on, and one of a class held out
500 x 375 or 375 x 500 pixels, quality 85, 4:2:0, 40 to 60 KB each; the same files from every run.
"""
import itertools
import os
import sys

import numpy
from PIL import Image

WIDTH, HEIGHT, QUALITY = 500, 375, 85
# Cells of noise, in pixels, and how many levels they stand out.
OCTAVES = ((96, 60), (32, 34), (12, 22), (4, 15), (2, 8))
GRAIN = (5.5, 10.0)


def noise(dice, height, width, cell):
    """Random levels a cell apart, with smooth ways between them."""
    small = dice.uniform(-1, 1, (height // cell + 3, width // cell + 3)).astype(numpy.float32)
    image = Image.fromarray(small, mode="F").resize(((small.shape[1]) * cell, (small.shape[0]) * cell), Image.BICUBIC)
    return numpy.asarray(image)[cell:cell + height, cell:cell + width]


def picture(dice, height, width):
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    light = dice.uniform(-60, 60) * x / width + dice.uniform(-60, 60) * y / height + dice.uniform(90, 160)
    common = sum(levels * noise(dice, height, width, cell) for cell, levels in OCTAVES)
    grain = dice.uniform(*GRAIN)
    planes = []
    for _ in range(3):
        own = sum(0.5 * levels * noise(dice, height, width, cell) for cell, levels in OCTAVES[:3])
        planes.append(light + common + own + dice.normal(0, grain, (height, width)).astype(numpy.float32))
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def pictures():
    """Without end; four of each: as it is, mirrored, upside down, and its negative."""
    for number in itertools.count():
        dice = numpy.random.default_rng(number)
        upright = dice.random() < 0.25
        pixels = picture(dice, *((WIDTH, HEIGHT) if upright else (HEIGHT, WIDTH)))
        yield from (pixels, pixels[:, ::-1], pixels[::-1], 255 - pixels)


def main():
    folder, images, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for number, pixels in enumerate(itertools.islice(pictures(), images + classes)):
        name = "class%02d/image%05d.jpg" % (number % classes, number)
        path = os.path.join(folder, "train" if number < images else "val", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.fromarray(numpy.ascontiguousarray(pixels)).save(path, quality=QUALITY)


main()
