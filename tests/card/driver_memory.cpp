// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated card. A granule is a private mapping of a file of NaN bytes: it holds rubbish without taking
// memory of this machine until it is written. What is not mapped has no access, so that a stray address is caught; what
// is mapped has none either while nothing of the card runs, so that host code that uses a device address is caught too.
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.hpp"

namespace card
{
namespace
{

enum : uint64_t { PAGE = 4096, ALIGN = 512, GUARDED_GRANULES_MAX = 256 };

struct piece { // of memory
    uint64_t bytes;
    bool mapped, released;
    CUdeviceptr at;   // where it is mapped
    CUdeviceptr kept; // where its content waits for being mapped again; 0: nothing was ever written
};

struct area { // that can be used
    uint64_t bytes;
    bool access;
    CUmemGenericAllocationHandle of; // 0: of allocate
    uint64_t region, region_bytes;   // of allocate
};

std::map<uint64_t, area> areas;
std::map<uint64_t, uint64_t> reservations, host;
std::map<CUmemGenericAllocationHandle, piece> pieces;
CUmemGenericAllocationHandle last_piece;
uint64_t granules;
int openings;
bool shut = true; // what is mapped has no access now

[[noreturn]] void give_up(const char *what)
{
    perror(what);
    abort();
}

int rubbish()
{
    static int file = -1;
    if (file < 0) {
        file = memfd_create("card", MFD_CLOEXEC);
        const std::string bytes(GRANULE, '\xff');
        if (file < 0 || write(file, bytes.data(), GRANULE) != (ssize_t)GRANULE) {
            give_up("card: rubbish");
        }
    }
    return file;
}

void fill_with_rubbish(uint64_t at, uint64_t bytes, int access)
{
    for (uint64_t done = 0; done < bytes; done += GRANULE) {
        if (mmap((void *)(at + done), GRANULE, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, rubbish(),
                 0) == MAP_FAILED) {
            give_up("card: memory");
        }
    }
}

uint64_t reserve(uint64_t bytes, uint64_t alignment)
{
    const uint64_t room = bytes + alignment;
    void *at = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return 0;
    }
    const uint64_t begin = (uint64_t)at, first = (begin + alignment - 1) / alignment * alignment;
    if (first > begin) {
        (void)munmap(at, first - begin);
    }
    if (begin + room > first + bytes) {
        (void)munmap((void *)(first + bytes), begin + room - first - bytes);
    }
    return first;
}

// Takes the memory away and leaves the addresses.
void vacate(uint64_t at, uint64_t bytes)
{
    if (mmap((void *)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
        MAP_FAILED) {
        give_up("card: memory");
    }
}

void protect(uint64_t at, uint64_t bytes, int access)
{
    const uint64_t first = at / PAGE * PAGE, end = (at + bytes + PAGE - 1) / PAGE * PAGE;
    if (mprotect((void *)first, end - first, access) != 0) {
        give_up("card: access");
    }
}

void protect_all(int access)
{
    for (const auto &[at, a] : areas) {
        if (a.access) {
            protect(at, a.bytes, access);
        }
    }
    shut = access == PROT_NONE;
}

int access_now()
{
    return shut ? PROT_NONE : PROT_READ | PROT_WRITE;
}

// What is too much to protect at every turn stays open.
void count_granules(int64_t more)
{
    granules += (uint64_t)more;
    const bool guards = the().set.guard && granules <= GUARDED_GRANULES_MAX;
    if (openings == 0 && guards != shut) {
        protect_all(guards ? PROT_NONE : PROT_READ | PROT_WRITE);
    }
}

uint64_t whole(uint64_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

// The content goes where it waits, the addresses stay behind without memory.
void keep(piece &p)
{
    p.kept = reserve(p.bytes, GRANULE);
    for (uint64_t done = 0; done < p.bytes; done += GRANULE) {
        if (mremap((void *)(p.at + done), GRANULE, GRANULE, MREMAP_MAYMOVE | MREMAP_FIXED,
                   (void *)(p.kept + done)) == MAP_FAILED) {
            give_up("card: unmap");
        }
        if (mmap((void *)(p.at + done), GRANULE, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
            give_up("card: unmap");
        }
    }
}

void bring_back(piece &p)
{
    for (uint64_t done = 0; done < p.bytes; done += GRANULE) {
        (void)mprotect((void *)(p.kept + done), GRANULE, PROT_NONE);
        if (mremap((void *)(p.kept + done), GRANULE, GRANULE, MREMAP_MAYMOVE | MREMAP_FIXED,
                   (void *)(p.at + done)) == MAP_FAILED) {
            give_up("card: map");
        }
    }
    p.kept = 0;
}

void forget_piece(CUmemGenericAllocationHandle handle)
{
    piece &p = pieces[handle];
    if (p.kept != 0) {
        (void)munmap((void *)p.kept, p.bytes);
    }
    the().used_bytes -= p.bytes;
    pieces.erase(handle);
}

bool covered(const std::map<uint64_t, uint64_t> &ranges, uint64_t at, uint64_t bytes)
{
    auto range = ranges.upper_bound(at);
    return range != ranges.begin() && (--range)->first + range->second >= at + bytes;
}

bool overlaps_area(uint64_t at, uint64_t bytes)
{
    const auto next = areas.lower_bound(at + bytes);
    return next != areas.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at;
}

} // namespace

uint64_t others_bytes()
{
    const settings &set = the().set;
    return set.others_at != 0 && the().launches_begun >= set.others_at ? set.others_later : set.others;
}

uint64_t free_bytes()
{
    const state &s = the();
    const uint64_t taken = s.used_bytes + others_bytes() + (s.contexts > 0 ? s.set.context_bytes : 0);
    return taken < s.set.vram ? s.set.vram - taken : 0;
}

bool holds(CUdeviceptr address, uint64_t bytes)
{
    uint64_t at = address;
    while (at < address + bytes) {
        auto a = areas.upper_bound(at);
        if (a == areas.begin() || !(--a)->second.access || a->first + a->second.bytes <= at) {
            return false;
        }
        at = a->first + a->second.bytes;
    }
    return true;
}

bool pinned(const void *address, uint64_t bytes)
{
    return covered(host, (uint64_t)address, bytes);
}

CUresult allocate(CUdeviceptr *out, uint64_t bytes)
{
    const uint64_t taken = whole(bytes);
    *out = 0;
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (taken > free_bytes()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // A granule without access stands behind; what is asked for ends where it begins.
    const uint64_t region = reserve(taken + GRANULE, GRANULE);
    const uint64_t at = region + taken - (bytes + ALIGN - 1) / ALIGN * ALIGN;
    fill_with_rubbish(region, taken, access_now());
    areas[at] = {bytes, true, 0, region, taken + GRANULE};
    the().used_bytes += taken;
    the().totals.allocations++;
    count_granules((int64_t)(taken / GRANULE));
    *out = at;
    return CUDA_SUCCESS;
}

void deallocate(CUdeviceptr address)
{
    const area a = areas[address];
    (void)munmap((void *)a.region, a.region_bytes);
    areas.erase(address);
    the().used_bytes -= a.region_bytes - GRANULE;
    count_granules(-(int64_t)(a.region_bytes / GRANULE - 1));
}

opened::opened()
{
    if (openings++ == 0 && shut) {
        protect_all(PROT_READ | PROT_WRITE);
    }
}

opened::~opened()
{
    if (--openings == 0) {
        count_granules(0);
    }
}

} // namespace card

using namespace card;

EXPORTED bool card_holds(CUdeviceptr address, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> held(the().lock);
    return holds(address, bytes);
}

EXPORTED CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    ENTER(cuMemGetInfo_v2, 0)
    *free = free_bytes();
    *total = the().set.vram;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    ENTER(cuMemAlloc_v2, NOT_IN_CAPTURE)
    return allocate(out, bytes);
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr address)
{
    ENTER(cuMemFree_v2, NOT_IN_CAPTURE)
    const auto a = areas.find(address);
    if (address == 0) {
        return CUDA_SUCCESS;
    }
    if (a == areas.end() || a->second.of != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    the().totals.synchronisations++; // the driver waits for what may still use it
    wait_for_all();
    deallocate(address);
    return the().lost;
}

EXPORTED CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned)
{
    ENTER(cuMemHostAlloc, NOT_IN_CAPTURE)
    const uint64_t taken = whole(bytes), at = bytes == 0 ? 0 : reserve(taken, GRANULE);
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fill_with_rubbish(at, taken, PROT_READ | PROT_WRITE);
    host[at] = bytes;
    the().totals.allocations++;
    *out = (void *)at;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemFreeHost(void *address)
{
    ENTER(cuMemFreeHost, NOT_IN_CAPTURE | WHEN_LOST)
    const auto range = host.find((uint64_t)address);
    if (range == host.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    the().totals.synchronisations++;
    wait_for_all();
    (void)munmap(address, whole(range->second));
    host.erase(range);
    return the().lost;
}

// ---- addresses apart from memory ------------------------------------------------------------------------------------

static bool is_whole(uint64_t bytes)
{
    return bytes > 0 && bytes % GRANULE == 0;
}

EXPORTED CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *,
                                                CUmemAllocationGranularity_flags)
{
    ENTER(cuMemGetAllocationGranularity, WITHOUT_CONTEXT)
    *out = the().set.piece_bytes;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish,
                                      unsigned long long flags)
{
    ENTER(cuMemAddressReserve, WITHOUT_CONTEXT)
    (void)wish; // a hint
    if (!is_whole(bytes) || flags != 0 || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const uint64_t at = reserve(bytes, std::max<uint64_t>(alignment, GRANULE));
    if (at == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reservations[at] = bytes;
    *out = at;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    ENTER(cuMemAddressFree, WITHOUT_CONTEXT | WHEN_LOST)
    const auto range = reservations.find(at);
    if (range == reservations.end() || range->second != bytes || overlaps_area(at, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    (void)munmap((void *)at, bytes);
    reservations.erase(range);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                              const CUmemAllocationProp *prop, unsigned long long flags)
{
    ENTER(cuMemCreate, WITHOUT_CONTEXT | NOT_IN_CAPTURE)
    if (!is_whole(bytes) || flags != 0 || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > free_bytes()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    the().used_bytes += bytes;
    the().totals.allocations++;
    pieces[ *out = ++last_piece] = {bytes, false, false, 0, 0};
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(cuMemRelease, WITHOUT_CONTEXT | WHEN_LOST)
    const auto p = pieces.find(handle);
    if (p == pieces.end() || p->second.released) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    p->second.released = true; // mapped memory lives until it is unmapped
    if (!p->second.mapped) {
        forget_piece(handle);
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags)
{
    ENTER(cuMemMap, WITHOUT_CONTEXT)
    const auto p = pieces.find(handle);
    if (p == pieces.end() || p->second.released || p->second.bytes != bytes || at % GRANULE != 0 ||
        offset != 0 || flags != 0 || !covered(reservations, at, bytes) || overlaps_area(at, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (p->second.mapped) {
        return CUDA_ERROR_NOT_SUPPORTED; // of this card
    }
    p->second.mapped = true;
    p->second.at = at;
    if (p->second.kept != 0) {
        bring_back(p->second);
    } else {
        fill_with_rubbish(at, bytes, PROT_NONE);
    }
    areas[at] = {bytes, false, handle, 0, 0};
    count_granules((int64_t)(bytes / GRANULE));
    return CUDA_SUCCESS;
}

// The areas that are exactly [at, at + bytes); none when an end lies inside of one or a place is empty.
static std::vector<uint64_t> areas_of(uint64_t at, uint64_t bytes)
{
    std::vector<uint64_t> found;
    uint64_t end = at;
    for (auto a = areas.find(at); a != areas.end() && a->first == end && end < at + bytes; ++a) {
        if (a->second.of == 0) {
            break;
        }
        found.push_back(a->first);
        end += a->second.bytes;
    }
    return end == at + bytes ? found : std::vector<uint64_t>();
}

EXPORTED CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *how, size_t count)
{
    ENTER(cuMemSetAccess, WITHOUT_CONTEXT)
    const std::vector<uint64_t> found = areas_of(at, bytes);
    if (found.empty() || count != 1 || how->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        how->location.id != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const uint64_t place : found) {
        area &a = areas[place];
        a.access = how->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        protect(place, a.bytes, a.access ? access_now() : PROT_NONE);
    }
    return CUDA_SUCCESS;
}

// Does not wait: what still uses these addresses is lost.
EXPORTED CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    ENTER(cuMemUnmap, WITHOUT_CONTEXT | WHEN_LOST)
    const std::vector<uint64_t> found = areas_of(at, bytes);
    if (found.empty()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const uint64_t place : found) {
        const area a = areas[place];
        piece &p = pieces[a.of];
        areas.erase(place);
        p.mapped = false;
        if (p.released) {
            vacate(place, a.bytes);
            forget_piece(a.of);
        } else {
            keep(p);
        }
    }
    count_granules(-(int64_t)(bytes / GRANULE));
    return CUDA_SUCCESS;
}
