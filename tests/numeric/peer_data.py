# SPDX-License-Identifier: Apache-2.0
"""The generated training set, repeated: engine/data/generated.c (images) and invented.c (chains of tokens)."""
import numpy as np

from make_fixtures import philox, philox_key

GENERATED_SEED, INVENTED_SEED = 10, 11
SUBPIXELS, NOISE_PER_DRAW, FIGURES, VOCABULARY, SURPRISE = 8, 16, 10, 64, 8


class Draws:
    """engine/data/draws.h"""

    def __init__(self, key, record):
        self.key, self.record, self.block, self.words = key, record, 0, []

    def noise(self, count):
        """Bytes of calls of their own."""
        blocks = -(-count // NOISE_PER_DRAW)
        words = philox(self.key, self.block + np.arange(blocks, dtype=np.uint64), self.record)
        self.block += blocks
        return words.astype("<u4").reshape(-1).view(np.uint8)[:count].astype(int)

    def draw(self):
        if not self.words:
            self.words = [int(w) for w in philox(self.key, self.block, self.record)]
            self.block += 1
        return self.words.pop(0)

    def between(self, low, high):
        return low + (self.draw() * (high - low + 1) >> 32)


def over(a, b):
    """C's division of integers, b > 0."""
    return np.sign(a) * (np.abs(a) // b)


def plus(x, y, r):
    return (np.minimum(abs(x), abs(y)) < r * 2 // 7) & (np.maximum(abs(x), abs(y)) < r)


def rows(x, y, r):
    return (np.maximum(abs(x), abs(y)) < r) & (over((y + r) * 5, 2 * r) % 2 == 0)


def chequers(x, y, r):
    return (np.maximum(abs(x), abs(y)) < r) & ((over((x + r) * 2, r) + over((y + r) * 2, r)) % 2 == 0)


FIGURE = [
    lambda x, y, r: x * x + y * y < r * r,
    lambda x, y, r: (x * x + y * y < r * r) & (3 * (x * x + y * y) > r * r),
    lambda x, y, r: np.maximum(abs(x), abs(y)) < r * 7 // 8,
    lambda x, y, r: (np.maximum(abs(x), abs(y)) < r * 7 // 8) & (np.maximum(abs(x), abs(y)) > r // 2),
    lambda x, y, r: (y < r * 3 // 4) & (2 * abs(x) < y + r),
    plus,
    lambda x, y, r: plus(over((x + y) * 5, 7), over((x - y) * 5, 7), r),
    rows,
    lambda x, y, r: rows(y, x, r),
    chequers,
]


def mask_of(d, figure, height, width):
    h, w = height * SUBPIXELS, width * SUBPIXELS
    side = min(h, w)
    r = max(d.between(side * 2 // 7, side * 3 // 7), 1)
    centre_x = d.between(min(r, w // 2), max(w - r, w // 2))
    centre_y = d.between(min(r, h // 2), max(h - r, h // 2))
    top, left = max(centre_y - r, 0) // SUBPIXELS, max(centre_x - r, 0) // SUBPIXELS
    bottom = min((centre_y + r) // SUBPIXELS + 1, height)
    right = min((centre_x + r) // SUBPIXELS + 1, width)
    y, x = np.mgrid[top:bottom, left:right] * SUBPIXELS
    mask = np.zeros((height, width), dtype=int)
    mask[top:bottom, left:right] = figure(x - centre_x, y - centre_y, r)
    return mask.reshape(-1)


def plane_of(d, mask, dark_ground):
    ground = d.between(16, 96) if dark_ground else d.between(160, 240)
    contrast = d.between(32, 144) * (1 if dark_ground else -1)
    noise = d.noise(mask.size)
    return np.clip(ground + contrast * mask + noise // 4 - 32, 0, 255)


def images(first, count, shape, classes):
    """Training samples first … first + count: float32 NHWC in [0, 1], and their labels."""
    height, width, channels = shape
    images, labels = np.empty((count, height * width, channels), np.float32), np.empty(count, np.int64)
    key = philox_key(GENERATED_SEED, "generated")
    for n in range(count):
        d = Draws(key, first + n)
        labels[n] = d.between(0, min(classes, FIGURES) - 1)
        mask = mask_of(d, FIGURE[labels[n]], height, width)
        dark_ground = d.draw() % 2 == 0
        for c in range(channels):
            images[n, :, c] = plane_of(d, mask, dark_ground).astype(np.float32) / np.float32(255)
    return images.reshape(count, height, width, channels), labels


def chains(first, count, places, classes):
    """Training samples: ids [count, places], and the same chains one token further on."""
    tokens_key, kind_key = philox_key(INVENTED_SEED, "tokens"), philox_key(INVENTED_SEED, "invented")
    records = first + np.arange(count, dtype=np.uint64)
    kind = philox(kind_key, 0, records)[:, 0] % np.uint64(FIGURES)
    blocks = np.arange(places // 4 + 1, dtype=np.uint64)
    words = philox(tokens_key, blocks[None, :], records[:, None]).reshape(count, -1)
    tokens = np.uint64(min(classes, VOCABULARY))
    chain = np.empty((count, places + 1), np.uint64)
    chain[:, 0] = words[:, 0] % tokens
    for t in range(places):
        surprise = words[:, t + 1]
        follows = (np.uint64(5) * chain[:, t] + np.uint64(2) * kind + np.uint64(1)) % tokens
        chain[:, t + 1] = np.where(surprise % SURPRISE == 0, surprise // SURPRISE % tokens, follows)
    chain = chain.astype(np.int64)
    return chain[:, :-1], chain[:, 1:]
