// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_log_dump.h"

#include <string.h>

#include "formats/heap_trace.h"

void log_dump_deinit(log_dump *d)
{
    heap_snapshot_deinit(&d->snapshot);
    vec_deinit(&d->regions);
    *d = (log_dump){0};
}

bool log_dump_region(log_dump *d, uint64_t bytes)
{
    heap_said *last = d->regions.count == 0 ? NULL : &d->regions.data[d->regions.count - 1];
    if (bytes == 0 || (last != NULL && last->runs == 0 && last->bytes == bytes)) { // every line stands twice
        return true;
    }
    heap_said *added = vec_push(&d->regions);
    if (added != NULL) {
        added->bytes = bytes;
    }
    return added != NULL;
}

// Until the dump ends, a chunk's handle is that of its neighbour, which is what the line says, and its region's address
// is the region's number (heap_tile).
bool log_dump_chunk(log_dump *d, const log_chunk *said)
{
    heap_chunk chunk = {.address = said->address,
                        .size_bytes = said->size_bytes,
                        .requested_bytes = said->in_use ? said->size_bytes : 0,
                        .region_address = d->regions.count,
                        .since = said->action_count,
                        .freed_at = said->in_use ? 0 : said->freed_at,
                        .tensor = HR_NO_ID,
                        .handle = said->next < HR_NO_ID ? (uint32_t)said->next : HR_NO_ID,
                        .in_use = said->in_use};
    if (said->in_use && said->name.length > 0) {
        chunk.tensor = intern_add(&d->snapshot.names, said->name.text, said->name.length);
        if (chunk.tensor == INTERN_NONE) {
            return false;
        }
    }
    heap_chunk *added = vec_push(&d->snapshot.chunks);
    if (added == NULL) {
        return false;
    }
    *added = chunk;
    if (d->regions.count > 0) {
        d->regions.data[d->regions.count - 1].runs = 1; // it has a chunk; heap_tile counts anew
    }
    return true;
}

// ---- the result -----------------------------------------------------------------------------------------------

// A line names the handle of the next chunk.
static void shift_handles(heap_snapshot *p)
{
    for (uint32_t k = p->chunks.count; k-- > 0;) {
        heap_chunk *chunks = p->chunks.data;
        const bool is_first = k == 0 || chunks[k].region_address != chunks[k - 1].region_address;
        chunks[k].handle = is_first ? HR_NO_ID : chunks[k - 1].handle;
    }
}

static hr_status set_refusal(heap_snapshot *p, const log_request *request, hr_err *err)
{
    heap_refusal *refusal = &p->refusal;
    const uint64_t requested = request->requested_bytes;
    *refusal = (heap_refusal){.any = request->any,
                              .requested_bytes = requested,
                              .tensor = HR_NO_ID,
                              .recorded = true,
                              .device_bytes = refusal->device_bytes};
    refusal->rounded_bytes = request->rounded_bytes;
    if (refusal->rounded_bytes == 0 && requested <= UINT64_MAX - LOG_ROUNDING_BYTES) {
        refusal->rounded_bytes =
            (requested + LOG_ROUNDING_BYTES - 1) / LOG_ROUNDING_BYTES * LOG_ROUNDING_BYTES;
    }
    if (request->op[0] != '\0') {
        refusal->tensor = intern_add(&p->names, request->op, strlen(request->op));
        if (refusal->tensor == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "%s: needed host memory for the name of an operation, had none",
                           p->source);
        }
    }
    return HR_OK;
}

hr_status log_dump_finish(log_dump *d, const char *file, trace *t, hr_err *err)
{
    heap_snapshot *p = &d->snapshot;
    HR_TRY(heap_tile(p, d->regions.data, d->regions.count, file, err));
    shift_handles(p);
    heap_counters *c = &p->counters;
    if (c->limit_bytes > 0 && c->limit_bytes < c->pool_bytes) { // one for people, cut off
        c->limit_bytes = c->pool_bytes;
    }
    c->peak_pool_bytes =
        c->peak_pool_bytes < c->peak_in_use_bytes ? c->peak_in_use_bytes : c->peak_pool_bytes;
    HR_TRY(set_refusal(p, &d->request, err));
    return trace_of_heap(t, p, err);
}
