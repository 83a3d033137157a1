// SPDX-License-Identifier: Apache-2.0
#include "device/rates.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"

// ---- time -----------------------------------------------------------------------------------------------------

rate_width rates_width_of(const program *p, const instr *i)
{
    const hr_dtype dtype = cost_type_of(p, i);
    return dtype == HR_F16 || dtype == HR_BF16 ? RATE_HALF : RATE_FLOAT32;
}

rate_kinds rates_kinds_of(const program *p, const instr *i)
{
    const char *name = op_row_of(i->op)->name, *impl = i->impl == NULL ? "" : i->impl;
    const uint64_t width = (uint64_t)rates_width_of(p, i) << 1 | (i->attr.groups > 1);
    const uint64_t operation = hash64(name, strlen(name), width);
    return (rate_kinds){.kernel = hash64(impl, strlen(impl), operation), .operation = operation};
}

static const cost_rate *find_kind(const cost_rates *r, uint64_t kind)
{
    uint64_t low = 0, high = r->kind_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (r->kinds[middle].kind < kind) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->kind_count && r->kinds[low].kind == kind ? &r->kinds[low].rate : NULL;
}

static const cost_rate *rate_of_family(const cost_rates *r, cost_family family, rate_width width)
{
    const cost_rate *own = r->of[family];
    if (own[width].instructions == 0) {
        width = RATE_FLOAT32;
    }
    return own[width].instructions > 0 ? &own[width] : &r->of[COST_ELEMENTWISE][RATE_FLOAT32];
}

const cost_rate *rates_find(const cost_rates *r, cost_family family, rate_width width, rate_kinds kinds)
{
    const cost_rate *found = find_kind(r, kinds.kernel);
    found = found != NULL ? found : find_kind(r, kinds.operation);
    return found != NULL ? found : rate_of_family(r, family, width);
}

uint64_t rates_ns(const cost_rates *r, const program *p, const instr *i)
{
    const cost_family family = cost_family_of(i);
    double seconds = r->line_seconds;
    if (family != COST_NOTHING) {
        const cost_rate *own = rates_find(r, family, rates_width_of(p, i), rates_kinds_of(p, i));
        seconds += own->start_seconds + (double)i->flops * own->seconds_per_flop +
                   (double)i->bytes_moved * own->seconds_per_byte;
    }
    return (uint64_t)llround(seconds * 1e9);
}

// ---- the file -------------------------------------------------------------------------------------------------
//
// head, then `count` records.

enum { RECORDS_MAX = 64 };

typedef struct rates_head {
    char magic[16];
    uint64_t record_bytes, count;
    uint64_t hash; // of the records
} rates_head;

typedef struct rates_record {
    uint64_t key;
    cost_rates rates;
} rates_record;

static const char magic[16] = "headroom.rates2";

bool rates_path(char *path, size_t size)
{
    return hr_file_xdg("XDG_CACHE_HOME", ".cache", "calibration", path, size);
}

// Above what any machine needs, and far below what would overflow a sum of nanoseconds.
static bool is_sound(double seconds, double most)
{
    return isfinite(seconds) && seconds >= 0 && seconds <= most;
}

static bool is_sound_rate(const cost_rate *one)
{
    return is_sound(one->start_seconds, 1e-2) && is_sound(one->seconds_per_flop, 1e-3) &&
           is_sound(one->seconds_per_byte, 1e-3);
}

static bool are_sound(const cost_rates *r)
{
    bool sound = is_sound(r->line_seconds, 1e-2) && is_sound(r->spread, 1e3) && r->spread >= 1 &&
                 r->kind_count <= RATE_KINDS_MAX;
    for (int f = 0; f < COST_FAMILY_COUNT; f++) {
        for (int w = 0; w < RATE_WIDTHS; w++) {
            sound = sound && is_sound_rate(&r->of[f][w]);
        }
    }
    for (uint64_t k = 0; sound && k < r->kind_count; k++) {
        sound = is_sound_rate(&r->kinds[k].rate) && (k == 0 || r->kinds[k - 1].kind < r->kinds[k].kind);
    }
    return sound;
}

// The records of a whole file in `data`; NULL when it is not one.
static const char *records_of(const char *data, size_t bytes, uint64_t *count)
{
    rates_head head;
    if (bytes < sizeof head) {
        return NULL;
    }
    memcpy(&head, data, sizeof head);
    const size_t left = bytes - sizeof head;
    *count = head.count;
    const bool whole = memcmp(head.magic, magic, sizeof magic) == 0 &&
                       head.record_bytes == sizeof(rates_record) && left % sizeof(rates_record) == 0 &&
                       head.count == left / sizeof(rates_record) &&
                       hash64(data + sizeof head, left, 0) == head.hash;
    return whole ? data + sizeof head : NULL;
}

static hr_status read_file(const char *path, char **data, size_t *bytes)
{
    return file_read(path, sizeof(rates_head) + RECORDS_MAX * sizeof(rates_record), data, bytes, NULL);
}

bool rates_load(const char *path, uint64_t key, cost_rates *out)
{
    char *data = NULL;
    size_t bytes = 0;
    uint64_t count = 0;
    bool found = false;
    if (read_file(path, &data, &bytes) != HR_OK) {
        return false;
    }
    const char *records = records_of(data, bytes, &count);
    for (uint64_t k = 0; records != NULL && k < count && !found; k++) {
        rates_record r;
        memcpy(&r, records + k * sizeof r, sizeof r);
        found = r.key == key && are_sound(&r.rates);
        *out = found ? r.rates : *out;
    }
    hr_free(data);
    return found;
}

static hr_status write_records(file_writer *w, const rates_record *records, uint64_t count)
{
    rates_head head = {.record_bytes = sizeof *records, .count = count};
    memcpy(head.magic, magic, sizeof magic);
    head.hash = hash64(records, count * sizeof *records, 0);
    HR_TRY(file_writer_add(w, &head, sizeof head, NULL));
    return file_writer_add(w, records, count * sizeof *records, NULL);
}

// The other records of the file that is there, behind room for one more. NULL: no host memory.
static rates_record *collect(const char *path, uint64_t key, uint64_t *count)
{
    char *data = NULL;
    size_t bytes = 0;
    uint64_t held = 0;
    const hr_status status = read_file(path, &data, &bytes);
    if (status == HR_NOMEM) {
        return NULL;
    }
    const char *from = status == HR_OK ? records_of(data, bytes, &held) : NULL;
    held = from == NULL ? 0 : held;
    rates_record *records = hr_calloc(held + 1, sizeof *records);
    *count = 1;
    for (uint64_t k = 0; records != NULL && k < held && *count < RECORDS_MAX; k++) {
        rates_record *to = &records[*count];
        memcpy(to, from + k * sizeof *to, sizeof *to);
        *count += to->key != key;
    }
    hr_free(data);
    return records;
}

bool rates_save(const char *path, uint64_t key, const cost_rates *r)
{
    uint64_t count = 0;
    file_writer *w = NULL;
    bool written = false;
    rates_record *records = collect(path, key, &count);
    if (records == NULL) {
        return false;
    }
    records[0] = (rates_record){.key = key, .rates = *r};
    if (hr_file_make_folders(path) && file_writer_open(path, &w, NULL) == HR_OK) {
        written = write_records(w, records, count) == HR_OK;
        if (written) {
            written = file_writer_commit(w, NULL) == HR_OK;
        } else {
            file_writer_abandon(w);
        }
    }
    hr_free(records);
    return written;
}
