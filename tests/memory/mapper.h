// SPDX-License-Identifier: Apache-2.0
// A backing that maps and believes nobody: it keeps every granule, and refuses the n-th mapping on demand.
#ifndef TESTS_MEMORY_MAPPER_H
#define TESTS_MEMORY_MAPPER_H

#include <string.h>

#include "heap.h"

enum { MAPPER_GRANULE_BYTES = 2 << 20, MAPPER_GRANULES = 4096, MAPPER_RESERVATIONS = 16 };

#define MAPPER_BASE (UINT64_C(1) << 40)

typedef struct mapper {
    bool mapped[MAPPER_GRANULES];
    struct {
        uint64_t address, bytes;
    } reservations[MAPPER_RESERVATIONS];
    uint32_t reservation_count;
    uint64_t capacity_bytes, held_bytes;
    uint64_t maps, unmaps;
    uint64_t fail_at;    // the n-th map (1-based) is refused; 0: none
    bool always_refuses; // from fail_at on
    bool no_addresses;   // refuses to reserve
} mapper;

static inline uint64_t mapper_reserve(void *context, uint64_t bytes)
{
    mapper *m = context;
    uint64_t address = MAPPER_BASE;
    for (uint32_t k = 0; k < m->reservation_count; k++) { // they grow upwards and are not reused
        address = m->reservations[k].address + m->reservations[k].bytes;
    }
    MUST(bytes > 0 && bytes % MAPPER_GRANULE_BYTES == 0);
    uint64_t room_bytes = MAPPER_BASE + MAPPER_GRANULES * (uint64_t)MAPPER_GRANULE_BYTES - address;
    if (m->no_addresses || bytes > room_bytes || m->reservation_count == MAPPER_RESERVATIONS) {
        return 0;
    }
    m->reservations[m->reservation_count].address = address;
    m->reservations[m->reservation_count++].bytes = bytes;
    return address;
}

static inline void mapper_must_own(const mapper *m, uint64_t address, uint64_t bytes)
{
    uint32_t k = 0;
    while (k < m->reservation_count &&
           !(address >= m->reservations[k].address &&
             address + bytes <= m->reservations[k].address + m->reservations[k].bytes)) {
        k++;
    }
    MUST(k < m->reservation_count);
    MUST(bytes > 0 && bytes % MAPPER_GRANULE_BYTES == 0 && address % MAPPER_GRANULE_BYTES == 0);
}

static inline void mapper_turn(mapper *m, uint64_t address, uint64_t bytes, bool mapped)
{
    mapper_must_own(m, address, bytes);
    uint64_t first = (address - MAPPER_BASE) / MAPPER_GRANULE_BYTES;
    for (uint64_t k = first; k < first + bytes / MAPPER_GRANULE_BYTES; k++) {
        MUST(m->mapped[k] != mapped);
        m->mapped[k] = mapped;
    }
}

static inline bool mapper_map(void *context, uint64_t address, uint64_t bytes)
{
    mapper *m = context;
    m->maps++;
    mapper_must_own(m, address, bytes);
    bool refused = m->fail_at != 0 && (m->maps == m->fail_at || (m->always_refuses && m->maps > m->fail_at));
    if (refused || bytes > m->capacity_bytes - m->held_bytes) {
        return false;
    }
    mapper_turn(m, address, bytes, true);
    m->held_bytes += bytes;
    return true;
}

static inline void mapper_unmap(void *context, uint64_t address, uint64_t bytes)
{
    mapper *m = context;
    m->unmaps++;
    mapper_turn(m, address, bytes, false);
    m->held_bytes -= bytes;
}

static inline void mapper_release(void *context, uint64_t address, uint64_t bytes)
{
    mapper *m = context;
    mapper_must_own(m, address, bytes);
    for (uint64_t at = address; at < address + bytes; at += MAPPER_GRANULE_BYTES) {
        MUST(!m->mapped[(at - MAPPER_BASE) / MAPPER_GRANULE_BYTES]);
    }
    for (uint32_t k = 0; k < m->reservation_count; k++) {
        if (m->reservations[k].address == address) {
            MUST(m->reservations[k].bytes == bytes);
            m->reservations[k].bytes = 0;
        }
    }
}

static inline backing mapper_backing(mapper *m, uint64_t capacity_bytes)
{
    m->capacity_bytes = capacity_bytes;
    return (backing){.context = m,
                     .granularity_bytes = 4096,
                     .alignment_bytes = 4096,
                     .mapping_bytes = MAPPER_GRANULE_BYTES,
                     .reserve = mapper_reserve,
                     .release = mapper_release,
                     .map = mapper_map,
                     .unmap = mapper_unmap};
}

#endif
