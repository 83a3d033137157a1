// SPDX-License-Identifier: Apache-2.0
#include "data/cache.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "headroom/units.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"

typedef enum entry_state { ENTRY_EMPTY, ENTRY_COMES, ENTRY_KEPT } entry_state;

struct data_cache {
    data_cache_plan plan; // without its folder
    uint64_t folder_hash;
    uint8_t *held;    // all samples; NULL: they are in the file
    int fd;           // -1: none
    uint64_t *offset; // of each sample and of the end; NULL: all are as large
    int32_t *label;
    atomic_uchar *state;
};

uint64_t data_cache_host_bytes(const data_cache_plan *plan)
{
    uint64_t bytes = plan->in_file ? 0 : plan->bytes, part;
    (void)hr_mul_bytes(plan->samples, DATA_CACHE_ENTRY_BYTES, &part);
    (void)hr_add_bytes(bytes, part, &bytes);
    if (plan->is_uneven) {
        (void)hr_mul_bytes(plan->samples + 1, DATA_CACHE_OFFSET_BYTES, &part);
        (void)hr_add_bytes(bytes, part, &bytes);
    }
    return bytes;
}

uint64_t data_cache_file_bytes(const data_cache_plan *plan)
{
    return plan->in_file ? plan->bytes : 0;
}

static hr_status short_of(const data_cache *c, hr_err *err)
{
    const hr_status status =
        HR_FAIL(err, NOMEM, "%s of %" PRIu64 " samples: needed %" PRIu64 " bytes, had less", c->plan.name,
                c->plan.samples, data_cache_host_bytes(&c->plan));
    hr_err_try(err, "%s", c->plan.instead);
    return status;
}

static hr_status take(data_cache *c, hr_err *err)
{
    const uint64_t samples = c->plan.samples;
    c->label = hr_calloc(samples, sizeof *c->label);
    c->state = hr_calloc(samples, sizeof *c->state);
    c->offset = c->plan.is_uneven ? hr_calloc(samples + 1, sizeof *c->offset) : NULL;
    c->held = c->plan.in_file ? NULL : hr_calloc(c->plan.bytes, 1);
    if (c->label == NULL || c->state == NULL || (c->offset == NULL && c->plan.is_uneven) ||
        (c->held == NULL && !c->plan.in_file)) {
        return short_of(c, err);
    }
    for (uint64_t k = 0; k < samples && c->offset != NULL; k++) {
        c->offset[k + 1] = c->offset[k] + data_source_size(c->plan.source, DATA_TRAIN, (uint32_t)k);
    }
    return c->plan.in_file ? file_open_nameless(c->plan.folder, c->plan.bytes, &c->fd, err) : HR_OK;
}

static uint64_t folder_hash(const data_cache_plan *plan)
{
    return plan->in_file ? hash64(plan->folder, strlen(plan->folder), 0) : 0;
}

bool data_cache_is_of(const data_cache *c, const data_cache_plan *plan)
{
    return c->plan.samples == plan->samples && c->plan.bytes == plan->bytes &&
           c->plan.is_uneven == plan->is_uneven && c->plan.source == plan->source &&
           c->plan.in_file == plan->in_file && c->folder_hash == folder_hash(plan);
}

hr_status data_cache_open(const data_cache_plan *plan, data_cache **out, hr_err *err)
{
    *out = NULL;
    data_cache *c = hr_calloc(1, sizeof *c);
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "cache: needed %zu bytes, had less", sizeof *c);
    }
    *c = (data_cache){.plan = *plan, .folder_hash = folder_hash(plan), .fd = -1};
    const hr_status status = take(c, err);
    c->plan.folder = NULL;
    if (status != HR_OK) {
        data_cache_close(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

void data_cache_close(data_cache *c)
{
    if (c == NULL) {
        return;
    }
    if (c->fd >= 0) {
        file_close(c->fd);
    }
    hr_free(c->held);
    hr_free(c->offset);
    hr_free(c->label);
    hr_free(c->state);
    hr_free(c);
}

static uint64_t begin_of(const data_cache *c, uint32_t sample)
{
    return c->offset != NULL ? c->offset[sample] : (uint64_t)sample * (c->plan.bytes / c->plan.samples);
}

bool data_cache_has(const data_cache *c, uint32_t sample)
{
    return atomic_load_explicit(&c->state[sample], memory_order_acquire) == ENTRY_KEPT;
}

hr_status data_cache_find(const data_cache *c, uint32_t sample, uint8_t *room, bool *found, data_raw *out,
                          hr_err *err)
{
    *found = data_cache_has(c, sample);
    if (!*found) {
        return HR_OK;
    }
    const uint64_t begin = begin_of(c, sample), size_bytes = begin_of(c, sample + 1) - begin;
    *out = (data_raw){.bytes = room, .size_bytes = size_bytes, .label = c->label[sample]};
    if (c->held != NULL) {
        out->bytes = c->held + begin;
        return HR_OK;
    }
    const hr_status status = file_read_at(c->fd, begin, room, size_bytes, "the cache's file", err);
    if (status != HR_OK) { // it has no name that could be looked at
        hr_err_try(err, "%s", c->plan.instead);
    }
    return status;
}

hr_status data_cache_keep(data_cache *c, uint32_t sample, const data_raw *raw, hr_err *err)
{
    unsigned char empty = ENTRY_EMPTY;
    if (!atomic_compare_exchange_strong(&c->state[sample], &empty, ENTRY_COMES)) {
        return HR_OK;
    }
    const uint64_t begin = begin_of(c, sample);
    hr_status status = HR_OK;
    if (begin_of(c, sample + 1) - begin != raw->size_bytes) {
        status = HR_FAIL(err, DATA, "sample %" PRIu32 ": needed %" PRIu64 " bytes as before, had %" PRIu64,
                         sample, begin_of(c, sample + 1) - begin, raw->size_bytes);
    } else if (c->held != NULL) {
        memcpy(c->held + begin, raw->bytes, raw->size_bytes);
    } else {
        status = file_write_at(c->fd, begin, raw->bytes, raw->size_bytes, "the cache's file", err);
        if (status != HR_OK) {
            hr_err_try(err, "%s", c->plan.instead);
        }
    }
    c->label[sample] = raw->label;
    atomic_store_explicit(&c->state[sample], status == HR_OK ? ENTRY_KEPT : ENTRY_EMPTY,
                          memory_order_release);
    return status;
}
