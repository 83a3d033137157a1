// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_async.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/host_mem.h"

static void say_stats(const heap_counters *c, text *out)
{
    const struct {
        const char *name;
        uint64_t value;
    } stats[] = {
        {"Limit:", c->limit_bytes},
        {"InUse:", c->requested_bytes},
        {"MaxInUse:", c->peak_requested_bytes},
        {"NumAllocs:", c->allocations},
        {"MaxAllocSize:", c->largest_allocation_bytes},
        {"Reserved:", 0}, // these three it never fills in
        {"PeakReserved:", 0},
        {"LargestFreeBlock:", 0},
    };
    text_append(out, "Stats: ");
    for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
        text_append(out, "%-18s%20" PRIu64 "\n", stats[k].name, stats[k].value);
    }
    text_append(out, "\n");
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void say_sizes(const heap_snapshot *p, text *out)
{
    uint32_t count = 0, from = 0;
    uint64_t *sizes = hr_calloc((size_t)p->chunks.count + 1, sizeof *sizes);
    if (sizes == NULL) {
        out->failed = true;
        return;
    }
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        if (p->chunks.data[k].in_use) {
            sizes[count++] = p->chunks.data[k].requested_bytes;
        }
    }
    qsort(sizes, count, sizeof *sizes, by_number);
    text_append(out, "Histogram of current allocation: (allocation_size_in_bytes, "
                     "nb_allocation_of_that_sizes), ...;\n");
    for (uint32_t k = 1; k <= count; k++) {
        if (k == count || sizes[k] != sizes[from]) {
            text_append(out, "%" PRIu64 ", %" PRIu32 "\n", sizes[from], k - from);
            from = k;
        }
    }
    hr_free(sizes);
}

static void say_pool(const heap_counters *c, text *out)
{
    text_append(out, "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: %" PRIu64 "\n", c->pool_bytes);
    text_append(out, "CU_MEMPOOL_ATTR_USED_MEM_CURRENT: %" PRIu64 "\n", c->in_use_bytes);
    text_append(out, "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: %" PRIu64 "\n", c->peak_pool_bytes);
    text_append(out, "CU_MEMPOOL_ATTR_USED_MEM_HIGH: %" PRIu64 "\n", c->peak_in_use_bytes);
}

void tensorflow_async_dump(const heap_snapshot *p, const tensorflow_async_options *o, text *out)
{
    text_append(out,
                "gpu_async_%" PRIu32 " cuMemAllocAsync failed to allocate %" PRIu64
                " bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n"
                " Reported by CUDA: Free memory/Total memory: %" PRIu64 "/%" PRIu64 "\n",
                o->device, p->refusal.requested_bytes, o->free_bytes, o->total_bytes);
    say_stats(&p->counters, out);
    say_sizes(p, out);
    say_pool(&p->counters, out);
    if (o->shape != NULL) {
        text_append(
            out,
            "OOM when allocating tensor with shape[%s] and type %s on %s by allocator gpu_async_%" PRIu32
            "\n",
            o->shape, o->type == NULL ? "" : o->type, o->where, o->device);
    }
}
