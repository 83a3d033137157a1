// SPDX-License-Identifier: Apache-2.0
// The public door of the packer: files in, offsets out.
#include <inttypes.h>

#include "headroom/pack.h"

#include "base/host_mem.h"
#include "formats/lifetimes_csv.h"
#include "insight/replay.h"
#include "memory/pack.h"

struct hr_packing {
    lifetimes lifetimes;
    pack_buffer *buffers;
    uint64_t *offsets;
    uint32_t instants; // of all lifetimes together
    uint64_t alignment_bytes;
};

// ---- opening --------------------------------------------------------------------------------------------------

// The device that holds most at once: one packing is one block.
static hr_status take_trace(input *in, lifetimes *l, hr_err *err)
{
    trace t;
    hr_replay_about about;
    HR_TRY(trace_read_input(in, &t, err));
    replay_describe(&t, &about);
    hr_status status = lifetimes_of_trace(&t, (uint8_t)about.device, l, err);
    trace_deinit(&t);
    return status;
}

static hr_status read_lifetimes(const char *path, lifetimes *l, hr_err *err)
{
    input in;
    HR_TRY(input_open(&in, path, err));
    size_t bytes = input_ahead(&in, TRACE_SIGN_BYTES);
    hr_status status = trace_format_lifetimes.recognise(input_here(&in), bytes)
                           ? lifetimes_read_input(&in, l, err)
                           : take_trace(&in, l, err);
    input_close(&in);
    return status;
}

static hr_status find_alignment(hr_packing *p, hr_err *err)
{
    p->alignment_bytes = 1;
    for (uint32_t k = 0; k < p->lifetimes.list.count; k++) {
        uint64_t bytes = p->lifetimes.list.data[k].alignment_bytes;
        if (bytes == 0 || (bytes & (bytes - 1)) != 0) {
            return HR_FAIL(err, USAGE,
                           "pack: buffer %s: needed an alignment that is a power of two, had %" PRIu64,
                           hr_packing_id(p, k), bytes);
        }
        p->alignment_bytes = bytes > p->alignment_bytes ? bytes : p->alignment_bytes;
    }
    return HR_OK;
}

static hr_status no_memory(uint32_t count, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "pack: needed host memory for %u buffers, had none", count);
}

static hr_status take_buffers(hr_packing *p, const uint32_t *births, const uint32_t *deaths, hr_err *err)
{
    uint32_t count = p->lifetimes.list.count;
    p->buffers = hr_calloc((size_t)count + 1, sizeof *p->buffers);
    p->offsets = hr_calloc((size_t)count + 1, sizeof *p->offsets);
    if (p->buffers == NULL || p->offsets == NULL) {
        return no_memory(count, err);
    }
    for (uint32_t k = 0; k < count; k++) {
        p->buffers[k] = (pack_buffer){births[k], deaths[k], p->lifetimes.list.data[k].bytes};
        p->instants = deaths[k] > p->instants ? deaths[k] : p->instants;
    }
    return find_alignment(p, err);
}

static hr_status prepare(hr_packing *p, hr_err *err)
{
    uint32_t count = p->lifetimes.list.count;
    uint32_t *births = hr_calloc((size_t)count + 1, sizeof *births);
    uint32_t *deaths = hr_calloc((size_t)count + 1, sizeof *deaths);
    hr_status status = births == NULL || deaths == NULL
                           ? no_memory(count, err)
                           : lifetimes_instants(&p->lifetimes, births, deaths, err);
    if (status == HR_OK) {
        status = take_buffers(p, births, deaths, err);
    }
    hr_free(births);
    hr_free(deaths);
    return status;
}

hr_status hr_packing_open(const char *path, hr_packing **out, hr_err *err)
{
    *out = NULL;
    hr_packing *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return no_memory(0, err);
    }
    hr_status status = read_lifetimes(path, &p->lifetimes, err);
    if (status == HR_OK) {
        status = prepare(p, err);
    }
    if (status != HR_OK) {
        hr_packing_close(p);
        return status;
    }
    *out = p;
    return HR_OK;
}

void hr_packing_close(hr_packing *packing)
{
    if (packing != NULL) {
        lifetimes_deinit(&packing->lifetimes);
        hr_free(packing->buffers);
        hr_free(packing->offsets);
        hr_free(packing);
    }
}

size_t hr_packing_count(const hr_packing *packing)
{
    return packing->lifetimes.list.count;
}

const char *hr_packing_id(const hr_packing *packing, size_t buffer)
{
    return intern_text(&packing->lifetimes.ids, packing->lifetimes.list.data[buffer].id);
}

uint64_t hr_packing_offset(const hr_packing *packing, size_t buffer)
{
    return packing->offsets[buffer];
}

// ---- searching ------------------------------------------------------------------------------------------------

static hr_packing_result public_result(const pack_result *r)
{
    return (hr_packing_result){.height_bytes = r->height_bytes,
                               .lower_bound_bytes = r->lower_bound_bytes,
                               .optimal = r->optimal,
                               .nodes = r->nodes};
}

static bool ask_to_stop(void *context, const pack_result *so_far)
{
    const hr_packing_options *options = context;
    hr_packing_result seen = public_result(so_far);
    return options->stop(options->stop_context, &seen);
}

hr_status hr_packing_search(hr_packing *packing, const hr_packing_options *options, hr_packing_result *result,
                            hr_err *err)
{
    hr_packing_options asked = *options;
    pack_result found;
    pack_goal goal = {
        .capacity_bytes = options->capacity_bytes,
        .seed = options->seed,
        .stop = options->stop == NULL ? NULL : ask_to_stop,
        .stop_context = &asked,
    };
    uint32_t count = packing->lifetimes.list.count;
    *result = (hr_packing_result){0};
    HR_TRY(
        pack_search(packing->buffers, count, packing->alignment_bytes, &goal, packing->offsets, &found, err));
    HR_TRY(pack_check(packing->buffers, count, packing->alignment_bytes, packing->offsets, found.height_bytes,
                      err));
    *result = public_result(&found);
    result->alignment_bytes = packing->alignment_bytes;
    return HR_OK;
}

// ---- drawing --------------------------------------------------------------------------------------------------

typedef struct canvas {
    double *cells;
    size_t width, height;
    double cell_instants, cell_bytes;
} canvas;

static double overlap(double begin, double end, double low, double high)
{
    double bytes = (end < high ? end : high) - (begin > low ? begin : low);
    return bytes > 0 ? bytes : 0;
}

// The share of every cell that a rectangle covers. `low` and `high` count from the bottom of the block.
static void draw_buffer(const canvas *c, double birth, double death, double low, double high)
{
    for (size_t y = (size_t)(low / c->cell_bytes); y < c->height && (double)y * c->cell_bytes < high; y++) {
        double share = overlap(low, high, (double)y * c->cell_bytes, (double)(y + 1) * c->cell_bytes);
        double *row = c->cells + (c->height - 1 - y) * c->width;
        for (size_t x = (size_t)(birth / c->cell_instants);
             x < c->width && (double)x * c->cell_instants < death; x++) {
            double time =
                overlap(birth, death, (double)x * c->cell_instants, (double)(x + 1) * c->cell_instants);
            row[x] += share * time / (c->cell_bytes * c->cell_instants);
        }
    }
}

void hr_packing_draw(const hr_packing *packing, uint64_t height_bytes, size_t width, size_t height,
                     double *cells)
{
    canvas c = {cells, width, height, (double)packing->instants / (double)width,
                (double)height_bytes / (double)height};
    for (size_t k = 0; k < width * height; k++) {
        cells[k] = 0;
    }
    for (uint32_t k = 0; k < packing->lifetimes.list.count && height_bytes > 0 && packing->instants > 0;
         k++) {
        const pack_buffer *b = &packing->buffers[k];
        draw_buffer(&c, b->birth, b->death, (double)packing->offsets[k],
                    (double)packing->offsets[k] + (double)b->bytes);
    }
    for (size_t k = 0; k < width * height; k++) {
        cells[k] = cells[k] < 1 ? cells[k] : 1;
    }
}
