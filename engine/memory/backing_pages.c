// SPDX-License-Identifier: Apache-2.0
// Host pages: the cpu device's memory. All addresses are reserved without access; what is taken or mapped becomes
// readable and writable (the kernel finds pages at the first touch), what is returned or unmapped is mapped anew
// without access, which gives pages and commit charge back.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/address_space.h"
#include "memory/backing.h"

enum { PAGE_BYTES = 4096, RESERVABLE = 16 }; // capacities: seven streams with expandable segments

typedef struct pages {
    address_space space;
    void *mapping;
    size_t mapping_bytes;
} pages;

static void *pointer_of(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

// Large pages where the system has them to give: a step walks through all of its memory, and with small ones its time
// depends on where the kernel happened to find each of thousands. Refused, it stays as it was.
static bool open_range(uint64_t address, uint64_t bytes)
{
    if (mprotect(pointer_of(address), bytes, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    (void)madvise(pointer_of(address), bytes, MADV_HUGEPAGE);
    return true;
}

static void shut_range(uint64_t address, uint64_t bytes)
{
    void *again = mmap(pointer_of(address), bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (again == MAP_FAILED) { // too many mappings: the pages can still go, the access stays
        (void)madvise(pointer_of(address), bytes, MADV_DONTNEED);
    }
}

static uint64_t take(void *context, uint64_t bytes)
{
    pages *p = context;
    uint64_t address = address_space_take(&p->space, bytes);
    if (address != 0 && !open_range(address, bytes)) {
        (void)address_space_give_back(&p->space, address, bytes);
        return 0;
    }
    return address;
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    pages *p = context;
    range_node range = address_space_give_back(&p->space, address, bytes);
    shut_range(range.address, range.bytes);
}

static uint64_t reserve(void *context, uint64_t bytes)
{
    pages *p = context;
    return address_space_reserve(&p->space, bytes);
}

static void release(void *context, uint64_t address, uint64_t bytes)
{
    pages *p = context;
    (void)address_space_release(&p->space, address, bytes);
}

static bool map(void *context, uint64_t address, uint64_t bytes)
{
    pages *p = context;
    if (!address_space_map(&p->space, address, bytes)) {
        return false;
    }
    if (!open_range(address, bytes)) {
        address_space_unmap(&p->space, address, bytes);
        return false;
    }
    return true;
}

static void unmap(void *context, uint64_t address, uint64_t bytes)
{
    pages *p = context;
    address_space_unmap(&p->space, address, bytes);
    shut_range(address, bytes);
}

static void close_pages(void *context)
{
    pages *p = context;
    munmap(p->mapping, p->mapping_bytes);
    address_space_deinit(&p->space);
    hr_free(p);
}

// The addresses, at the boundary of a mapping granule.
static hr_status find_addresses(pages *p, hr_err *err)
{
    const uint64_t granule_bytes = p->space.mapping_bytes;
    p->mapping_bytes = address_space_bytes(&p->space) + granule_bytes;
    p->mapping = mmap(NULL, p->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->mapping == MAP_FAILED) {
        char text[HR_BYTES_TEXT_MAX];
        return HR_FAIL(err, HOST_LIMIT, "virtual card: needed %s of address space, the system gave none (%s)",
                       hr_bytes_human(p->mapping_bytes, text), strerror(errno));
    }
    address_space_place(&p->space,
                        ((uint64_t)(uintptr_t)p->mapping + granule_bytes - 1) & ~(granule_bytes - 1));
    return HR_OK;
}

hr_status backing_pages_open(uint64_t capacity_bytes, backing *out, hr_err *err)
{
    *out = (backing){0};
    pages *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "virtual card: needed %zu bytes for its bookkeeping, had none", sizeof *p);
    }
    hr_status status = HR_OK;
    if (!address_space_init(&p->space, capacity_bytes, PAGE_BYTES, RESERVABLE)) {
        char text[HR_BYTES_TEXT_MAX];
        status = HR_FAIL(err, HOST_LIMIT, "virtual card: needed at most 2 EiB, had %s",
                         hr_bytes_human(capacity_bytes, text));
    } else {
        status = find_addresses(p, err);
    }
    if (status != HR_OK) {
        hr_free(p);
        return status;
    }
    *out = (backing){
        .context = p,
        .granularity_bytes = PAGE_BYTES,
        .alignment_bytes = PAGE_BYTES,
        .mapping_bytes = p->space.mapping_bytes,
        .take = take,
        .give_back = give_back,
        .reserve = reserve,
        .release = release,
        .map = map,
        .unmap = unmap,
        .close = close_pages,
    };
    return HR_OK;
}
