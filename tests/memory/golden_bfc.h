// SPDX-License-Identifier: Apache-2.0
// What TensorFlow 2.21.0's own tsl::BFCAllocator answers to bfc_streams.h; made by tests/bench/peers/tensorflow_bfc.
#ifndef TESTS_MEMORY_GOLDEN_BFC_H
#define TESTS_MEMORY_GOLDEN_BFC_H

#include <stdint.h>

typedef struct bfc_golden {
    const char *name;
    uint64_t hash;
    uint32_t served, failed;
    uint64_t peak_in_use_bytes, largest_allocation_bytes;
} bfc_golden;

// clang-format off
static const bfc_golden bfc_goldens[] = {
    {"small, one region", UINT64_C(0xa08ef1d29e28928b), 103046, 0, UINT64_C(2181376), UINT64_C(7936)},
    {"spread, one region", UINT64_C(0xae04f37d4b983c27), 101290, 1622, UINT64_C(1073741824), UINT64_C(128389376)},
    {"training, one region", UINT64_C(0x38dccf70f2369f8a), 102187, 891, UINT64_C(536869120), UINT64_C(21583872)},
    {"large, one region", UINT64_C(0xb549330d8a48d118), 44361, 11283, UINT64_C(4294967296), UINT64_C(339131648)},
    {"small, growth", UINT64_C(0x71e3e7c33af6248e), 102903, 0, UINT64_C(2264320), UINT64_C(7936)},
    {"spread, growth", UINT64_C(0x0a8d130a38d28b13), 50634, 650, UINT64_C(1073723648), UINT64_C(130120960)},
    {"spread, growth, collects", UINT64_C(0xedc99d8602ad4f31), 50582, 850, UINT64_C(1073741824), UINT64_C(126757376)},
    {"large, growth, collects", UINT64_C(0xc7be68040d80c6c5), 44310, 11384, UINT64_C(4294967296), UINT64_C(339205632)},
    {"large, growth, coalesces", UINT64_C(0x67aaba9bf03d6883), 44316, 11369, UINT64_C(4294967296), UINT64_C(341150976)},
    {"large, driver short", UINT64_C(0x51419edaba6e1e64), 1331, 341, UINT64_C(3259287040), UINT64_C(324794624)},
    {"one region, driver short", UINT64_C(0x255ce2827705a11b), 9672, 656, UINT64_C(14625124096), UINT64_C(337550080)},
    {"spread, collects: lowest gap", UINT64_C(0x2a6e94290f40a83e), 30007, 848, UINT64_C(733996032), UINT64_C(112040704)},
    {"spread, collects: last freed", UINT64_C(0x2a6e94290f40a83e), 30007, 848, UINT64_C(733996032), UINT64_C(112040704)},
    {"large, collects: lowest gap", UINT64_C(0x7b1bdb8bc5d5ee0a), 26635, 6731, UINT64_C(4294967296), UINT64_C(339315968)},
    {"large, collects: last freed", UINT64_C(0x7b1bdb8bc5d5ee0a), 26635, 6731, UINT64_C(4294967296), UINT64_C(339315968)},
    {"large, collects, driver short: lowest gap", UINT64_C(0xd32a874a87209a9e), 1305, 392, UINT64_C(3260794112), UINT64_C(333045248)},
    {"large, collects, driver short: last freed", UINT64_C(0x5cef4ec6a34a0a9e), 1305, 392, UINT64_C(3260794112), UINT64_C(333045248)},
    {"training, collects: lowest gap", UINT64_C(0x39205155280331e9), 50648, 992, UINT64_C(419424256), UINT64_C(21458432)},
    {"training, collects: last freed", UINT64_C(0x39205155280331e9), 50648, 992, UINT64_C(419424256), UINT64_C(21458432)},
    {"large, collects, coalesces: lowest gap", UINT64_C(0xaefa01b99cedfa55), 17716, 4571, UINT64_C(4294967296), UINT64_C(338327552)},
    {"large, collects, coalesces: last freed", UINT64_C(0xaefa01b99cedfa55), 17716, 4571, UINT64_C(4294967296), UINT64_C(338327552)},
};
// clang-format on

#endif
