// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_oom.h"

#include "headroom/units.h"

static const char tip[] = " If reserved but unallocated memory is large try setting "
                          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                          "to avoid fragmentation.  See documentation for Memory Management  "
                          "(https://docs.pytorch.org/docs/stable/notes/"
                          "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
static const char expandable_tip[] =
    " expandable_segments is enabled. If instead the process is running out of virtual address space (VSZ), "
    "expandable segments may be over-reserving VA (each segment reserves ~9/8 of device memory, times the "
    "number "
    "of streams); reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / "
    "expandable_segments_reserve_by_class.";

// Each unit up to and including one of the next.
static void write_size(text *out, uint64_t bytes)
{
    if (bytes <= HR_KIB) {
        text_append(out, "%llu bytes", (unsigned long long)bytes);
    } else if (bytes <= HR_MIB) {
        text_append(out, "%.2f KiB", (double)bytes / (double)HR_KIB);
    } else if (bytes <= HR_GIB) {
        text_append(out, "%.2f MiB", (double)bytes / (double)HR_MIB);
    } else {
        text_append(out, "%.2f GiB", (double)bytes / (double)HR_GIB);
    }
}

static void write_processes(text *out, const torch_driver *d)
{
    for (uint32_t k = 0; k < d->process_count; k++) {
        const torch_process *process = &d->processes[k];
        if (process->is_own) {
            text_append(out, "Including non-PyTorch memory, this process");
        } else {
            text_append(out, "Process %u", process->pid);
        }
        text_append(out, " has ");
        write_size(out, process->bytes);
        text_append(out, " memory in use. ");
    }
}

static uint64_t allocated_bytes(const heap_snapshot *p)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *chunk = &p->chunks.data[k];
        bytes += chunk->in_use && !chunk->pending ? chunk->size_bytes : 0;
    }
    return bytes;
}

// Refused before the driver was asked: below a fraction that is not done.
static bool is_early(const heap_snapshot *p, const torch_driver *d)
{
    const uint64_t pool_bytes = p->counters.pool_bytes;
    const uint64_t left_bytes = pool_bytes < d->total_bytes ? d->total_bytes - pool_bytes : 0;
    return d->refuses_early && d->allowed_bytes == 0 && p->refusal.driver_bytes > left_bytes;
}

void torch_oom_write(const heap_snapshot *p, const torch_driver *d, text *out)
{
    static const uint64_t exabyte = UINT64_C(1) << 60;
    const uint64_t allocated = allocated_bytes(p);
    if (p->refusal.requested_bytes >= exabyte) {
        text_append(out, "CUDA out of memory. Tried to allocate more than 1EB memory.");
        return;
    }
    if (is_early(p, d)) {
        text_append(out, "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                         "per_process_memory_fraction limit. Requested size: ");
        write_size(out, p->refusal.requested_bytes);
        return;
    }
    text_append(out, "CUDA out of memory. Tried to allocate ");
    write_size(out, p->refusal.driver_bytes != 0 ? p->refusal.driver_bytes : p->refusal.requested_bytes);
    text_append(out, ". GPU %u has a total capacity of ", d->device);
    write_size(out, d->total_bytes);
    text_append(out, " of which ");
    write_size(out, d->free_bytes);
    text_append(out, " is free. ");
    write_processes(out, d);
    if (d->allowed_bytes != 0) {
        write_size(out, d->allowed_bytes);
        text_append(out, " allowed; ");
    }
    text_append(out, "Of the allocated memory ");
    write_size(out, allocated);
    text_append(out, " is allocated by PyTorch, and ");
    write_size(out, p->counters.pool_bytes - allocated);
    text_append(out, " is reserved by PyTorch but unallocated.%s",
                d->expandable_segments ? expandable_tip : tip);
}
