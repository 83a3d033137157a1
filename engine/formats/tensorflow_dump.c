// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/tensorflow_bytes.h"
#include "formats/tensorflow_map.h"

enum { BINS = 21, SMALLEST_BIN_BYTES = 256 };

// What a line is, for the number of the source line that is said to have printed it.
typedef enum line_kind {
    LINE_REFUSED,
    LINE_HEADING,
    LINE_BIN,
    LINE_BIN_FOR,
    LINE_FREE,
    LINE_REGION,
    LINE_CHUNK,
    LINE_SUMMARY,
    LINE_SIZE,
    LINE_SUM,
    LINE_POOL,
    LINE_STATS,
    LINE_MAP,
    LINE_KERNEL,
    LINE_KINDS
} line_kind;

// From logs of 2.2.0, 2.9 and 2.13, and from 2.21 itself (tests/bench/peers/tensorflow_bfc), where these lines were seen; the others lie between their neighbours. No log of 2026
// was to be had: its numbers are those of 2.13.
static const struct {
    const char *path;
    uint16_t line[LINE_KINDS];
    bool has_heading;
    uint8_t stats;
} versions[TENSORFLOW_VERSIONS] = {
    [TENSORFLOW_2_13] = {"tensorflow/tsl/framework/bfc_allocator.cc",
                         {485, 1039, 1046, 1062, 1068, 1075, 1095, 1100, 1103, 1107, 1109, 1114, 497, 1828},
                         true,
                         8},
    [TENSORFLOW_2_2] = {"tensorflow/core/common_runtime/bfc_allocator.cc",
                        {419, 865, 869, 885, 891, 898, 905, 914, 917, 921, 923, 929, 424, 1622},
                        false,
                        5},
    [TENSORFLOW_2_4] = {"tensorflow/core/common_runtime/bfc_allocator.cc",
                        {479, 1033, 1040, 1056, 1062, 1069, 1089, 1094, 1097, 1101, 1103, 1109, 491, 1780},
                        true,
                        8},
    [TENSORFLOW_2_21] = {"external/local_xla/xla/tsl/framework/bfc_allocator.cc",
                         {502, 1049, 1056, 1072, 1078, 1085, 1105, 1110, 1113, 1117, 1119, 1128, 513, 1828},
                         true,
                         8},
    [TENSORFLOW_2026] = {"external/xla/xla/tsl/framework/bfc_allocator.cc",
                         {485, 1039, 1046, 1062, 1068, 1075, 1095, 1100, 1103, 1107, 1109, 1114, 497, 1828},
                         true,
                         8},
};

typedef struct dump {
    const heap_snapshot *p;
    const tensorflow_dump_options *o;
    const char *allocator;
    uint64_t rounded_bytes;
    text *out;
} dump;

// ---- lines ----------------------------------------------------------------------------------------------------

#define HR(bytes) tensorflow_bytes(bytes, (char[TENSORFLOW_BYTES_TEXT_MAX]){""})

static void begin(const dump *d, char level, line_kind kind)
{
    if (d->o->time != NULL) {
        const char *path =
            kind == LINE_KERNEL ? "tensorflow/core/framework/op_kernel.cc" : versions[d->o->version].path;
        text_append(d->out, "%s: %c %s:%u] ", d->o->time, level, path,
                    (unsigned)versions[d->o->version].line[kind]);
    }
}

static const char *or_nothing(const char *words)
{
    return words == NULL ? "" : words;
}

static void say_refused(const dump *d)
{
    begin(d, 'W', LINE_REFUSED);
    text_append(d->out, "Allocator (%s) ran out of memory trying to allocate %s (rounded to %" PRIu64 ")",
                d->allocator, HR(d->p->refusal.requested_bytes), d->rounded_bytes);
    switch (d->o->version) {
    case TENSORFLOW_2_2:
        text_append(d->out, ".  Current allocation summary follows.\n");
        return;
    case TENSORFLOW_2026:
        text_append(d->out,
                    " from the lower end requested by op %s\nIf this is caused by memory fragmentation, the "
                    "environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the "
                    "situation.\nCurrent allocation summary follows.\n",
                    or_nothing(d->o->op));
        return;
    case TENSORFLOW_2_4:
    case TENSORFLOW_2_13:
    case TENSORFLOW_2_21:
    case TENSORFLOW_VERSIONS:
        text_append(d->out,
                    "requested by op %s\nIf the cause is memory fragmentation maybe the environment variable "
                    "'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \nCurrent allocation "
                    "summary follows.\nCurrent allocation summary follows.\n",
                    or_nothing(d->o->op));
        return;
    }
}

// ---- bins -----------------------------------------------------------------------------------------------------

typedef struct bin_sums {
    uint64_t chunks, chunks_in_use, bytes, bytes_in_use, requested_bytes_in_use;
} bin_sums;

static unsigned bin_of(uint64_t bytes)
{
    uint64_t units = bytes / SMALLEST_BIN_BYTES;
    unsigned log2 = units == 0 ? 0 : 63u - (unsigned)__builtin_clzll(units);
    return log2 < BINS ? log2 : BINS - 1;
}

static void add_to_bin(bin_sums *sums, const heap_chunk *c)
{
    bin_sums *b = &sums[bin_of(c->size_bytes)];
    b->chunks++;
    b->bytes += c->size_bytes;
    if (c->in_use) {
        b->chunks_in_use++;
        b->bytes_in_use += c->size_bytes;
        b->requested_bytes_in_use += c->requested_bytes;
    }
}

static void say_bins(const dump *d)
{
    bin_sums sums[BINS] = {0};
    for (uint32_t k = 0; k < d->p->chunks.count; k++) {
        add_to_bin(sums, &d->p->chunks.data[k]);
    }
    for (unsigned i = 0; i < BINS; i++) {
        const bin_sums *b = &sums[i];
        begin(d, 'I', LINE_BIN);
        text_append(d->out,
                    "Bin (%" PRIu64 "): \tTotal Chunks: %" PRIu64 ", Chunks in use: %" PRIu64
                    ". %s allocated for chunks. %s in use in bin. %s client-requested in use in bin.\n",
                    (uint64_t)SMALLEST_BIN_BYTES << i, b->chunks, b->chunks_in_use, HR(b->bytes),
                    HR(b->bytes_in_use), HR(b->requested_bytes_in_use));
    }
}

// ---- the bin that should have served --------------------------------------------------------------------------

static bool goes_on(const heap_snapshot *p, uint32_t k) // chunk k is in the region of chunk k - 1
{
    return k > 0 && k < p->chunks.count &&
           p->chunks.data[k].region_address == p->chunks.data[k - 1].region_address;
}

static void say_state(const dump *d, const heap_chunk *c)
{
    text_append(d->out, "  Size: %s | Requested Size: %s | in_use: %d | bin_num: %d", HR(c->size_bytes),
                HR(c->requested_bytes), c->in_use, c->in_use ? -1 : (int)bin_of(c->size_bytes));
}

static void say_free_chunk(const dump *d, uint32_t k)
{
    const heap_chunk *chunks = d->p->chunks.data;
    begin(d, 'I', LINE_FREE);
    say_state(d, &chunks[k]);
    if (goes_on(d->p, k)) {
        text_append(d->out, ", prev: ");
        say_state(d, &chunks[k - 1]);
    }
    if (goes_on(d->p, k + 1)) {
        text_append(d->out, ", next: ");
        say_state(d, &chunks[k + 1]);
    }
    text_append(d->out, "\n");
}

typedef struct sized {
    uint64_t bytes, address;
    uint32_t at; // in the snapshot
} sized;

static int by_size_and_address(const void *left, const void *right)
{
    const sized *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes > b->bytes) - (a->bytes < b->bytes)
                                : (a->address > b->address) - (a->address < b->address);
}

// The chunks that are (or are not) in use, of one bin or, with BINS, of all, in the order of a bin. The caller's to
// free; NULL when host memory is short.
static sized *sort_chunks(const heap_snapshot *p, bool in_use, unsigned bin, uint32_t *count)
{
    sized *sorted = hr_calloc(p->chunks.count + 1u, sizeof *sorted);
    *count = 0;
    for (uint32_t k = 0; sorted != NULL && k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        if (c->in_use == in_use && (bin == BINS || bin_of(c->size_bytes) == bin)) {
            sorted[(*count)++] = (sized){.bytes = c->size_bytes, .address = c->address, .at = k};
        }
    }
    if (*count > 0) {
        qsort(sorted, *count, sizeof *sorted, by_size_and_address);
    }
    return sorted;
}

static void say_bin_for(const dump *d)
{
    unsigned bin = bin_of(d->rounded_bytes);
    uint32_t count;
    sized *free_chunks = sort_chunks(d->p, false, bin, &count);
    begin(d, 'I', LINE_BIN_FOR);
    text_append(d->out, "Bin for %s was %s, Chunk State: \n", HR(d->rounded_bytes),
                HR((uint64_t)SMALLEST_BIN_BYTES << bin));
    for (uint32_t k = 0; k < count; k++) {
        say_free_chunk(d, free_chunks[k].at);
    }
    d->out->failed |= free_chunks == NULL;
    hr_free(free_chunks);
}

// ---- regions --------------------------------------------------------------------------------------------------

// The number of the chunk behind k. A snapshot without numbers counts from 0.
static uint64_t next_handle(const heap_snapshot *p, uint32_t k)
{
    if (!goes_on(p, k + 1)) {
        return UINT64_MAX;
    }
    uint32_t handle = p->chunks.data[k + 1].handle;
    return handle == HR_NO_ID ? k + 1 : handle;
}

static void say_owner(const dump *d, const heap_chunk *c)
{
    if (d->o->by_op) {
        const char *name = intern_text(&d->p->names, c->tensor);
        text_append(d->out, " by op %s action_count %" PRIu64 " step 0", name == NULL ? "UNUSED" : name,
                    c->since);
    }
}

static void say_chunk(const dump *d, uint32_t k)
{
    const heap_chunk *c = &d->p->chunks.data[k];
    const char *state = c->in_use ? "InUse" : "Free ";
    uint64_t next = next_handle(d->p, k);
    begin(d, 'I', LINE_CHUNK);
    if (d->o->version == TENSORFLOW_2_2) {
        text_append(d->out, "%s at 0x%" PRIx64 " next %" PRIu64 " of size %" PRIu64, state, c->address, next,
                    c->size_bytes);
        say_owner(d, c);
    } else {
        text_append(d->out, "%s at %" PRIx64 " of size %" PRIu64 "%s", state, c->address, c->size_bytes,
                    d->o->version == TENSORFLOW_2026 ? " tag lower" : "");
        say_owner(d, c);
        text_append(d->out, " next %" PRIu64, next);
    }
    if (d->o->timestamped) {
        text_append(d->out, " freed_at_count %" PRIu64, c->freed_at);
    }
    text_append(d->out, "\n");
}

static void say_regions(const dump *d)
{
    for (uint32_t k = 0; k < d->p->chunks.count; k++) {
        if (!goes_on(d->p, k)) {
            begin(d, 'I', LINE_REGION);
            text_append(d->out, "Next region of size %" PRIu64 "\n", d->p->chunks.data[k].region_bytes);
        }
        say_chunk(d, k);
    }
}

// ---- sums -----------------------------------------------------------------------------------------------------

static void say_sizes(const dump *d)
{
    uint32_t count;
    sized *used = sort_chunks(d->p, true, BINS, &count);
    begin(d, 'I', LINE_SUMMARY);
    text_append(d->out, "     Summary of in-use Chunks by size: \n");
    for (uint32_t k = 0, same; k < count; k += same) {
        for (same = 1; k + same < count && used[k + same].bytes == used[k].bytes;) {
            same++;
        }
        begin(d, 'I', LINE_SIZE);
        text_append(d->out, "%" PRIu32 " Chunks of size %" PRIu64 " totalling %s\n", same, used[k].bytes,
                    HR(same * used[k].bytes));
    }
    d->out->failed |= used == NULL;
    hr_free(used);
    begin(d, 'I', LINE_SUM);
    text_append(d->out, "Sum Total of in-use chunks: %s\n", HR(d->p->counters.in_use_bytes));
}

static uint64_t unallocated_bytes(const heap_counters *c)
{
    return c->limit_bytes > c->pool_bytes ? c->limit_bytes - c->pool_bytes : 0;
}

static void say_pool_2026(const dump *d)
{
    const heap_counters *c = &d->p->counters;
    begin(d, 'I', LINE_POOL);
    text_append(d->out,
                "Allocator memory summary: rounded request %s, total free in pool %s, largest free chunk "
                "usable by lower end %s, unallocated bytes %s, pool size %s, pool limit %s\n",
                HR(d->rounded_bytes), HR(c->pool_bytes - c->in_use_bytes), HR(c->largest_free_bytes),
                HR(unallocated_bytes(c)), HR(c->pool_bytes), HR(c->limit_bytes));
    begin(d, 'I', LINE_POOL);
    text_append(d->out, "Allocator region growth hint: next region allocation target %s%s\n",
                HR(d->p->next_region_bytes),
                d->o->growth ? " (growth enabled)."
                             : " (growth disabled; fixed-size pool; not an attempted allocation).");
}

static void say_pool(const dump *d)
{
    const heap_counters *c = &d->p->counters;
    if (d->o->version == TENSORFLOW_2026) {
        say_pool_2026(d);
        return;
    }
    if (d->o->version == TENSORFLOW_2_21) {
        begin(d, 'I', LINE_POOL);
        text_append(
            d->out,
            "Total size in pool: %s memory_limit_: %s available size: %s curr_region_allocation_bytes_: %s\n",
            HR(c->pool_bytes), HR(c->limit_bytes), HR(unallocated_bytes(c)), HR(d->p->next_region_bytes));
        return;
    }
    begin(d, 'I', LINE_POOL);
    text_append(d->out,
                "%s: %" PRIu64 " memory_limit_: %" PRIu64 " available bytes: %" PRIu64
                " curr_region_allocation_bytes_: %" PRIu64 "\n",
                d->o->version == TENSORFLOW_2_13 ? "Total bytes in pool" : "total_region_allocated_bytes_",
                c->pool_bytes, c->limit_bytes, unallocated_bytes(c), d->p->next_region_bytes);
}

// Nothing is reserved. Up to 2.21 the allocator does not fill the last line in for its own dump.
static void say_stats(const dump *d)
{
    const heap_counters *c = &d->p->counters;
    const bool for_people = d->o->version == TENSORFLOW_2026 || d->o->version == TENSORFLOW_2_21;
    const struct {
        const char *name;
        uint64_t value;
        bool is_bytes;
    } stats[] = {
        {"Limit:", c->limit_bytes, true},
        {"InUse:", c->in_use_bytes, true},
        {"MaxInUse:", c->peak_in_use_bytes, true},
        {"NumAllocs:", c->allocations, false},
        {"MaxAllocSize:", c->largest_allocation_bytes, true},
        {"Reserved:", 0, true},
        {"PeakReserved:", 0, true},
        {"LargestFreeBlock:", d->o->version == TENSORFLOW_2026 ? c->largest_free_bytes : 0, true},
    };
    begin(d, 'I', LINE_STATS);
    text_append(d->out, "Stats: \n");
    for (unsigned k = 0; k < versions[d->o->version].stats; k++) {
        if (for_people && stats[k].is_bytes) {
            text_append(d->out, "%-18s%20s\n", stats[k].name, HR(stats[k].value));
        } else {
            text_append(d->out, "%-18s%20" PRIu64 "\n", stats[k].name, stats[k].value);
        }
    }
    text_append(d->out, "\n");
}

static void say_map(const dump *d)
{
    char map[TENSORFLOW_MAP_COLUMNS + 1];
    begin(d, 'W', LINE_MAP);
    text_append(d->out, "%s\n", tensorflow_map(d->p, map) ? map : "<allocator contains no memory>");
}

static void say_tensor(const dump *d)
{
    const char *device = d->o->device;
    if (d->o->shape == NULL) {
        return;
    }
    begin(d, 'W', LINE_KERNEL);
    if (d->o->kernel != NULL) {
        text_append(d->out, "OP_REQUIRES failed at %s : %s: ", d->o->kernel,
                    d->o->version == TENSORFLOW_2_2 || d->o->version == TENSORFLOW_2_4
                        ? "Resource exhausted"
                        : "RESOURCE_EXHAUSTED");
    }
    text_append(d->out, "OOM when allocating tensor with shape[%s] and type %s on %s by allocator %s\n",
                d->o->shape, or_nothing(d->o->type),
                device == NULL ? "/job:localhost/replica:0/task:0/device:GPU:0" : device, d->allocator);
}

void tensorflow_dump(const heap_snapshot *p, const tensorflow_dump_options *options, text *out)
{
    dump d = {.p = p, .o = options, .out = out, .allocator = options->allocator};
    d.allocator = d.allocator == NULL ? p->source : d.allocator;
    d.rounded_bytes = p->refusal.rounded_bytes;
    if (d.rounded_bytes == 0) {
        d.rounded_bytes = (p->refusal.requested_bytes + SMALLEST_BIN_BYTES - 1) & ~UINT64_C(255);
    }
    say_refused(&d);
    if (versions[options->version].has_heading) {
        begin(&d, 'I', LINE_HEADING);
        text_append(out, "BFCAllocator dump for %s\n", d.allocator);
    }
    say_bins(&d);
    say_bin_for(&d);
    say_regions(&d);
    say_sizes(&d);
    say_pool(&d);
    say_stats(&d);
    say_map(&d);
    say_tensor(&d);
}
