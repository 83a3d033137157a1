// SPDX-License-Identifier: Apache-2.0
#include "memory/pack_items.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "headroom/units.h"

#include "base/host_mem.h"

// ---- lifetimes ------------------------------------------------------------------------------------------------

static int by_time(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

// How many of the births lie before `instant`.
static uint32_t births_before(const uint32_t *births, uint32_t count, uint32_t instant)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (births[middle] < instant) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The buffers that take room, and their births.
static hr_status enter(pack_items *items, uint32_t *births, const pack_buffer *buffers, uint32_t count,
                       uint64_t alignment_bytes, hr_err *err)
{
    uint64_t sum_bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        const pack_buffer *b = &buffers[k];
        uint64_t padded_bytes = 0;
        if (b->birth >= b->death) {
            return HR_FAIL(err, CHECK, "buffer %u is born at %u and gone at %u", k, b->birth, b->death);
        }
        if (!hr_add_bytes(b->bytes, alignment_bytes - 1, &padded_bytes) ||
            !hr_add_bytes(sum_bytes, padded_bytes, &sum_bytes) || sum_bytes > INT64_MAX) {
            (void)HR_FAIL(err, CHECK, "buffer %u of %" PRIu64 " bytes: all of them need more than 63 bits", k,
                          b->bytes);
            hr_err_try(err, "sizes in bytes whose sum is below 8 EiB");
            return HR_CHECK;
        }
        if (b->bytes > 0) {
            births[items->count] = b->birth;
            items->list[items->count++] = (pack_item){
                .room_bytes = padded_bytes & ~(alignment_bytes - 1), .length = b->death - b->birth, .id = k};
        }
    }
    return HR_OK;
}

static void number_births(pack_items *items, uint32_t *births, const pack_buffer *buffers)
{
    qsort(births, items->count, sizeof *births, by_time);
    for (uint32_t k = 0; k < items->count; k++) {
        if (items->birth_count == 0 || births[k] != births[items->birth_count - 1]) {
            births[items->birth_count++] = births[k];
        }
    }
    for (uint32_t k = 0; k < items->count; k++) {
        const pack_buffer *b = &buffers[items->list[k].id];
        items->list[k].first = births_before(births, items->birth_count, b->birth);
        items->list[k].last = births_before(births, items->birth_count, b->death) - 1;
    }
}

// Differences modulo 2^64, of which every sum is a real one.
static void sum_loads(pack_items *items)
{
    for (uint32_t k = 0; k < items->count; k++) {
        const pack_item *i = &items->list[k];
        items->load_bytes[i->first] += i->room_bytes;
        items->load_bytes[i->last + 1] -= i->room_bytes;
    }
    for (uint32_t k = 0; k < items->birth_count; k++) {
        items->load_bytes[k] += k > 0 ? items->load_bytes[k - 1] : 0;
        items->most_bytes =
            items->load_bytes[k] > items->most_bytes ? items->load_bytes[k] : items->most_bytes;
    }
}

hr_status pack_items_init(pack_items *items, const pack_buffer *buffers, uint32_t count,
                          uint64_t alignment_bytes, hr_err *err)
{
    assert(alignment_bytes != 0 && (alignment_bytes & (alignment_bytes - 1)) == 0);
    *items = (pack_items){.list = hr_calloc(count, sizeof *items->list)};
    uint32_t *births = hr_calloc(count, sizeof *births);
    hr_status status = HR_OK;
    if (count > 0 && (items->list == NULL || births == NULL)) {
        status = HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", count);
    } else {
        status = enter(items, births, buffers, count, alignment_bytes, err);
    }
    if (status == HR_OK && items->count > 0) {
        number_births(items, births, buffers);
        items->load_bytes = hr_calloc((size_t)items->birth_count + 1, sizeof *items->load_bytes);
        if (items->load_bytes == NULL) {
            status = HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", count);
        } else {
            sum_loads(items);
        }
    }
    hr_free(births);
    return status;
}

void pack_items_deinit(pack_items *items)
{
    hr_free(items->list);
    hr_free(items->load_bytes);
    *items = (pack_items){0};
}

// ---- orders ---------------------------------------------------------------------------------------------------

static int earlier_buffer(const pack_item *left, const pack_item *right)
{
    return (left->id > right->id) - (left->id < right->id);
}

static int longer(const pack_item *left, const pack_item *right)
{
    return (left->length < right->length) - (left->length > right->length);
}

static int larger(const pack_item *left, const pack_item *right)
{
    return (left->room_bytes < right->room_bytes) - (left->room_bytes > right->room_bytes);
}

static int first_of(int order, int then, int at_last)
{
    return order != 0 ? order : then != 0 ? then : at_last;
}

static int by_size(const void *a, const void *b)
{
    return first_of(larger(a, b), longer(a, b), earlier_buffer(a, b));
}

static int by_area(const void *a, const void *b)
{
    const pack_item *left = a, *right = b;
    double areas[] = {(double)left->room_bytes * left->length, (double)right->room_bytes * right->length};
    return first_of((areas[0] < areas[1]) - (areas[0] > areas[1]), larger(a, b), earlier_buffer(a, b));
}

static int by_length(const void *a, const void *b)
{
    return first_of(longer(a, b), larger(a, b), earlier_buffer(a, b));
}

static int by_birth(const void *a, const void *b)
{
    const pack_item *left = a, *right = b;
    return first_of((left->first > right->first) - (left->first < right->first),
                    first_of(longer(a, b), larger(a, b), 0), earlier_buffer(a, b));
}

static int by_death(const void *a, const void *b)
{
    const pack_item *left = a, *right = b;
    return first_of((left->last < right->last) - (left->last > right->last),
                    first_of(longer(a, b), larger(a, b), 0), earlier_buffer(a, b));
}

void pack_items_sort(pack_items *items, pack_order order)
{
    static int (*const comparisons[])(const void *, const void *) = {
        [PACK_BY_SIZE] = by_size,   [PACK_BY_AREA] = by_area,   [PACK_BY_LENGTH] = by_length,
        [PACK_BY_BIRTH] = by_birth, [PACK_BY_DEATH] = by_death,
    };
    _Static_assert(sizeof comparisons / sizeof comparisons[0] == PACK_ORDERS, "one for each order");
    if (items->count > 0) {
        qsort(items->list, items->count, sizeof *items->list, comparisons[order]);
    }
}
