// SPDX-License-Identifier: Apache-2.0
// What PyTorch 2.15.0's own CUDACachingAllocator answers to caching_streams.h; made by tests/bench/peers/pytorch_caching.
#ifndef TESTS_MEMORY_GOLDEN_CACHING_H
#define TESTS_MEMORY_GOLDEN_CACHING_H

#include <stdint.h>

typedef struct caching_golden {
    const char *name;
    uint64_t hash;
    uint32_t served, failed;
    uint64_t peak_allocated_bytes, peak_reserved_bytes, peak_requested_bytes;
    uint32_t retries, device_allocs;
} caching_golden;

// clang-format off
static const caching_golden caching_goldens[] = {
    {"small", UINT64_C(0x2ede7140c867a1d5), 102896, 0, UINT64_C(1896448), UINT64_C(2097152), UINT64_C(1689198), 0, 1},
    {"spread", UINT64_C(0x014e4c1b543ce465), 51152, 2, UINT64_C(1852185088), UINT64_C(2139095040), UINT64_C(1828501764), 3, 83},
    {"training", UINT64_C(0xe3dc8f32430fb12b), 102822, 0, UINT64_C(858629120), UINT64_C(937426944), UINT64_C(833034507), 0, 80},
    {"large", UINT64_C(0x5620ab1126c0e5a9), 22314, 5375, UINT64_C(4122299904), UINT64_C(4294967296), UINT64_C(4117981774), 5503, 405},
    {"three streams", UINT64_C(0xb7d138f20b440265), 51140, 11, UINT64_C(1840978944), UINT64_C(2147483648), UINT64_C(1819737970), 61, 373},
    {"fraction", UINT64_C(0x1faa1c3b4fb72e43), 25634, 5, UINT64_C(1897619456), UINT64_C(2141192192), UINT64_C(1867559099), 12, 105},
    {"max_split", UINT64_C(0x09cf8f47e0ee239c), 22253, 5495, UINT64_C(4282161152), UINT64_C(4294967296), UINT64_C(4220540190), 6510, 7396},
    {"max_split and rounding", UINT64_C(0x853667acc5bc848a), 22239, 5527, UINT64_C(4291737600), UINT64_C(4294967296), UINT64_C(4204018714), 7465, 7953},
    {"collects", UINT64_C(0x36d5e0bd809f2c61), 25260, 0, UINT64_C(1019394048), UINT64_C(1151336448), UINT64_C(1008923924), 0, 52},
    {"collects, max_split", UINT64_C(0x06d36c623cf35eca), 22031, 5943, UINT64_C(3207778816), UINT64_C(3221225472), UINT64_C(3184854269), 5945, 12914},
    {"divisions", UINT64_C(0x1041888681c416ea), 25607, 7, UINT64_C(1976009728), UINT64_C(2128609280), UINT64_C(1823976929), 9, 70},
    {"divisions by size", UINT64_C(0x509f26feac79b00b), 25606, 0, UINT64_C(1849761280), UINT64_C(2136997888), UINT64_C(1755664342), 1, 71},
    {"larger segments", UINT64_C(0xacd106a1d45c0126), 25575, 1, UINT64_C(1956544000), UINT64_C(2139095040), UINT64_C(1939681333), 2, 70},
    {"expandable, small", UINT64_C(0xce881bd4ab9ec850), 51581, 0, UINT64_C(2223104), UINT64_C(4194304), UINT64_C(1980812), 0, 2},
    {"expandable, spread", UINT64_C(0xaa492e80bc5aaa99), 25604, 0, UINT64_C(1718892032), UINT64_C(1912602624), UINT64_C(1718696765), 0, 72},
    {"expandable, large", UINT64_C(0x12aa39fb2346dee2), 22199, 5604, UINT64_C(4176897536), UINT64_C(4280287232), UINT64_C(4176886381), 6732, 3277},
    {"expandable, two streams", UINT64_C(0xa305c6c2952b7226), 25247, 0, UINT64_C(990339072), UINT64_C(1375731712), UINT64_C(990241147), 0, 54},
    {"expandable, fraction", UINT64_C(0x2003a112b1a5be6d), 25256, 0, UINT64_C(1165548032), UINT64_C(1306525696), UINT64_C(1165451001), 0, 52},
};
// clang-format on

#endif
