#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a log as TensorFlow 2.20 writes it to stderr when memory ran out: progress of the training, then the dump of
the allocator's heap, to the byte the heap that the numbers say.

  make_log.py FILE --bytes N [--chunks C] [--seed S]

Lines of the training fill what the C chunks of the dump leave of N bytes; without --chunks there is only the dump, as
long as it takes.
"""
import argparse
import random

MIB = 1 << 20
HEAD = "2026-03-05 10:11:12.%06d: I external/local_xla/xla/tsl/framework/bfc_allocator.cc:%d] "
CHUNK_BYTES = 211  # of a line, about
REGION_CHUNKS = 4000
OPS = ["model/block%d/conv%d/Conv2D", "gradient_tape/model/block%d/conv%d/Conv2DBackpropFilter",
       "model/block%d/bn%d/FusedBatchNormV3", "gradient_tape/model/block%d/add%d/Reshape"]


def progress(out, room, dice):
    step = 0
    while out.tell() < room:
        step += 1
        out.write("%5d/781 ━━━━━━━━━━━━━━━━━━━━ 1:%02d 104ms/step - accuracy: %.4f - loss: %.4f\n"
                  % (step % 782, step % 60, dice.random(), dice.random() * 3))


def chunks_of(count, dice):
    """(state, bytes): no two free ones touch."""
    was_free = True
    for _ in range(count):
        free = not was_free and dice.random() < 0.2
        was_free = free
        yield "Free" if free else "InUse", dice.randint(1, 1 << dice.randint(1, 12)) * 256


def dump(out, count, dice):
    out.write("2026-03-05 10:11:12.000001: W external/local_xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator "
              "(GPU_0_bfc) ran out of memory trying to allocate 392.00MiB (rounded to 411041792)requested by op "
              "model/block9/conv1/Conv2D\n")
    out.write(HEAD % (2, 1049) + "BFCAllocator dump for GPU_0_bfc\n")
    for k in range(21):
        out.write(HEAD % (3, 1056) + "Bin (%d): \tTotal Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use "
                                     "in bin. 0B client-requested in use in bin.\n" % (256 << k))
    chunks = list(chunks_of(count, dice))
    address, number = 0x7f12c0000000, 0
    for begin in range(0, count, REGION_CHUNKS):
        region = chunks[begin:begin + REGION_CHUNKS]
        out.write(HEAD % (4, 1095) + "Next region of size %d\n" % sum(size for _, size in region))
        for k, (state, size) in enumerate(region):
            number += 1
            after = number if k + 1 < len(region) else (1 << 64) - 1
            out.write(HEAD % (5 + k, 1109) + "%s at %x of size %d by op %s action_count %d step %d next %d\n" % (
                state, address, size, dice.choice(OPS) % (dice.randrange(48), dice.randrange(9)), number, 781, after))
            address += size
        address += 2 * MIB
    used, total = (sum(size for state, size in chunks if state == "InUse" or every) for every in (False, True))
    out.write(HEAD % (6, 1120) + "Sum Total of in-use chunks: %.2fGiB\n" % (used / (1 << 30)))
    out.write(HEAD % (7, 1122) + "Total bytes in pool: %d memory_limit_: %d available bytes: %d "
                                 "curr_region_allocation_bytes_: %d\n" % (total, total + MIB, MIB, 2 * total))
    out.write(HEAD % (8, 1127) + "Stats: \nLimit: %28d\nInUse: %28d\nMaxInUse: %25d\nNumAllocs: %24d\n"
                                 "MaxAllocSize: %21d\nReserved: 0\nPeakReserved: 0\nLargestFreeBlock: 0\n\n"
              % (total + MIB, used, used, 10 * count, 256 << 12))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--chunks", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    chunks = args.bytes // CHUNK_BYTES if args.chunks is None else args.chunks
    with open(args.file, "w", encoding="utf-8") as out:
        progress(out, args.bytes - chunks * CHUNK_BYTES, dice)
        dump(out, chunks, dice)


if __name__ == "__main__":
    main()
