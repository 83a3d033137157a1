// SPDX-License-Identifier: Apache-2.0
// Tiles of two-byte operands: widened, computed, narrowed.
#include "half.h"

#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "simd.h"

enum { LINE_FLOATS = 16, NONE = -1 };

// Where things lie in the workspace, in floats: what every item sees, then a scratch for each worker. NONE: where the
// operand lies itself.
typedef struct scratch_areas {
    int64_t shared[OP_MAX_IN], shared_floats;
    int64_t in[OP_MAX_IN], out[OP_MAX_OUT], total[OP_MAX_OUT]; // total: of a SUM, over a worker's tiles
    int64_t kernel;                                            // the float32 kernel's own workspace
    int64_t own_floats;
} scratch_areas;

typedef struct job {
    const cpu_run *r;
    const cpu_impl *impl;
    half_tile_plan cut;
    scratch_areas scratch_areas;
} job;

static bool is_two_bytes(const half_operand *o)
{
    return o->dtype == HR_F16 || o->dtype == HR_BF16;
}

static int64_t take(int64_t *floats, int64_t count)
{
    const int64_t at = *floats;
    *floats += (count + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    return at;
}

static scratch_areas scratch_areas_of(const half_tile_plan *cut)
{
    scratch_areas s = {0};
    for (uint32_t k = 0; k < cut->in_count; k++) {
        const half_operand *o = &cut->in[k];
        const bool whole = o->role == HALF_WHOLE;
        s.shared[k] = is_two_bytes(o) && whole ? take(&s.shared_floats, o->each) : NONE;
        s.in[k] = is_two_bytes(o) && !whole ? take(&s.own_floats, o->most) : NONE;
    }
    for (uint32_t k = 0; k < cut->out_count; k++) {
        const half_operand *o = &cut->out[k];
        const bool sum = o->role == HALF_SUM, own = is_two_bytes(o) && cut->updated == 0;
        s.total[k] = sum ? take(&s.own_floats, o->each) : NONE;
        s.out[k] = sum ? take(&s.own_floats, o->each) : own ? take(&s.own_floats, o->most) : NONE;
    }
    s.kernel = s.own_floats;
    return s;
}

// The kernel that computes a tile, and what it needs.
static bool kernel_of(const cpu_device *device, const half_tile_plan *cut, const op_query *q,
                      const cpu_impl **impl, uint64_t *workspace_bytes)
{
    cpu_device alone = *device;
    op_query tile;
    alone.workers = NULL;
    alone.threads = 1;
    alone.own = true;
    half_tile_query(cut, 0, cut->most, q, &tile);
    if (cpu_pick(&alone, &tile, impl, NULL) != HR_OK) {
        return false;
    }
    *workspace_bytes = (*impl)->workspace == NULL ? 0 : (*impl)->workspace(&alone, &tile);
    return true;
}

static bool prepare_job(const cpu_device *device, const op_query *q, job *j)
{
    uint64_t bytes = 0;
    if (!half_tile_plan_of(q, &j->cut) || !kernel_of(device, &j->cut, q, &j->impl, &bytes)) {
        return false;
    }
    j->scratch_areas = scratch_areas_of(&j->cut);
    (void)take(&j->scratch_areas.own_floats, (int64_t)((bytes + sizeof(float) - 1) / sizeof(float)));
    return true;
}

static bool fits(const cpu_device *device, const op_query *q)
{
    job j = {0};
    return prepare_job(device, q, &j);
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    job j = {0};
    (void)prepare_job(device, q, &j);
    return ((uint64_t)j.scratch_areas.shared_floats +
            (uint64_t)j.scratch_areas.own_floats * device->threads) *
           sizeof(float);
}

// ---- one tile ---------------------------------------------------------------------------------------------

// One tile: `count` items from `at` on.
typedef struct place {
    int64_t at, count;
    half_band band; // of rows of images
} place;

static int64_t row_of_image(const half_tile_plan *cut, const half_operand *o, const place *t)
{
    return o->role == HALF_LARGE ? t->band.image * cut->rows.large + t->band.large
                                 : t->band.image * cut->rows.small + t->band.small;
}

// Its first element.
static int64_t first_of(const half_tile_plan *cut, const half_operand *o, const place *t)
{
    switch ((int)o->role) {
    case HALF_ROWS:
        return t->at * o->each;
    case HALF_PERIODIC:
        return t->at % cut->group * o->each;
    case HALF_LARGE:
    case HALF_SMALL:
        return row_of_image(cut, o, t) * o->each;
    case HALF_HEAD:
        return attention_place(&cut->heads, t->at, o->each / cut->heads.features);
    default:
        return 0;
    }
}

static int64_t elements_of(const half_operand *o, const place *t)
{
    return o->role == HALF_LARGE   ? o->each * t->band.large_rows
           : o->role == HALF_SMALL ? o->each * t->band.small_rows
                                   : o->each * t->count;
}

// Between a tile in memory and in its scratch: heads are rows that lie apart.
static void move(const half_tile_plan *cut, const half_operand *o, char *half, float *scratch,
                 int64_t elements, bool widens)
{
    const bool head = o->role == HALF_HEAD;
    const int64_t row = head ? cut->heads.features : elements;
    const int64_t rows = head ? o->each / row : 1, apart = head ? cut->heads.width : 0;
    for (int64_t i = 0; i < rows; i++) {
        void *at = half + i * apart * (int64_t)sizeof(uint16_t);
        if (widens) {
            cast_widen(scratch + i * row, at, o->dtype, row);
        } else {
            cast_narrow(at, o->dtype, scratch + i * row, row);
        }
    }
}

static char *operand_at(const half_tile_plan *cut, const half_operand *o, void *base, const place *t)
{
    return (char *)base + first_of(cut, o, t) * (int64_t)dtype_bytes(o->dtype);
}

// Of the rows of an image that were computed those that are its result.
static void move_back(const half_tile_plan *cut, const half_operand *o, void *base, const place *t,
                      float *scratch)
{
    char *to = operand_at(cut, o, base, t);
    int64_t elements = elements_of(o, t), kept = 0;
    if (o->role == HALF_LARGE) {
        kept = o->each * t->band.kept;
        elements = o->each * t->band.kept_rows;
    }
    move(cut, o, to + kept * (int64_t)sizeof(uint16_t), scratch + kept, elements, false);
}

static void load(const job *j, float *own, const place *t, cpu_run *tile)
{
    for (uint32_t k = 0; k < j->cut.in_count; k++) {
        const half_operand *o = &j->cut.in[k];
        char *from = operand_at(&j->cut, o, j->r->in[k], t);
        if (j->scratch_areas.shared[k] != NONE) {
            tile->in[k] = (float *)j->r->workspace + j->scratch_areas.shared[k];
        } else if (j->scratch_areas.in[k] != NONE) {
            tile->in[k] = own + j->scratch_areas.in[k];
            move(&j->cut, o, from, tile->in[k], elements_of(o, t), true);
        } else {
            tile->in[k] = from;
        }
    }
    for (uint32_t k = 0; k < j->cut.out_count; k++) {
        tile->out[k] = j->scratch_areas.out[k] != NONE ? (char *)(own + j->scratch_areas.out[k])
                                                       : operand_at(&j->cut, &j->cut.out[k], j->r->out[k], t);
    }
}

CPU_HOT static void add_to(float *restrict total, const float *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        total[i] += part[i];
    }
}

static void store(const job *j, float *own, const place *t, const cpu_run *tile)
{
    for (uint32_t k = 0; k < j->cut.in_count; k++) {
        if ((j->cut.updated >> k & 1) != 0 && j->scratch_areas.in[k] != NONE) {
            move_back(&j->cut, &j->cut.in[k], j->r->in[k], t, tile->in[k]);
        }
    }
    for (uint32_t k = 0; k < j->cut.out_count; k++) {
        const half_operand *o = &j->cut.out[k];
        if (o->role == HALF_SUM) {
            add_to(own + j->scratch_areas.total[k], tile->out[k], o->each);
        } else if (j->scratch_areas.out[k] != NONE) {
            move_back(&j->cut, o, j->r->out[k], t, tile->out[k]);
        }
    }
}

static int64_t tile_length(const half_tile_plan *cut, int64_t at, int64_t end)
{
    const int64_t left = cut->group > 0 ? cut->group - at % cut->group : end - at;
    const int64_t most = left < cut->most ? left : cut->most;
    return most < end - at ? most : end - at;
}

static float *own_scratch(const job *j, uint32_t worker)
{
    return (float *)j->r->workspace + j->scratch_areas.shared_floats + j->scratch_areas.own_floats * worker;
}

static void tile_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *own = own_scratch(j, worker);
    cpu_device alone = *j->r->device;
    op_query query;
    cpu_run tile = {
        .device = &alone, .query = &query, .workspace = own + j->scratch_areas.kernel, .io = j->r->io};
    alone.workers = NULL;
    alone.threads = 1;
    for (uint32_t k = 0; k < j->cut.out_count; k++) {
        if (j->scratch_areas.total[k] != NONE) {
            memset(own + j->scratch_areas.total[k], 0, (size_t)j->cut.out[k].each * sizeof *own);
        }
    }
    for (place t = {.at = begin}; t.at < end; t.at += t.count) {
        t.count = tile_length(&j->cut, t.at, end);
        t.band = j->cut.by_rows ? half_band_of(&j->cut, t.at, t.count) : t.band;
        half_tile_query(&j->cut, t.at, t.count, j->r->query, &query);
        load(j, own, &t, &tile);
        j->impl->run(&tile);
        store(j, own, &t, &tile);
    }
}

// ---- all tiles --------------------------------------------------------------------------------------------

static void widen_shared(const job *j)
{
    for (uint32_t k = 0; k < j->cut.in_count; k++) {
        const half_operand *o = &j->cut.in[k];
        if (j->scratch_areas.shared[k] != NONE) {
            cast_widen((float *)j->r->workspace + j->scratch_areas.shared[k], j->r->in[k], o->dtype, o->each);
        }
    }
}

// Totals in the order of the workers, into the first one's.
static void finish_sums(const job *j, uint32_t parts)
{
    for (uint32_t k = 0; k < j->cut.out_count; k++) {
        const half_operand *o = &j->cut.out[k];
        if (o->role != HALF_SUM) {
            continue;
        }
        float *total = own_scratch(j, 0) + j->scratch_areas.total[k];
        for (uint32_t part = 1; part < parts; part++) {
            add_to(total, own_scratch(j, part) + j->scratch_areas.total[k], o->each);
        }
        if (is_two_bytes(o)) {
            cast_narrow(j->r->out[k], o->dtype, total, o->each);
        } else {
            memcpy(j->r->out[k], total, (size_t)o->each * sizeof *total);
        }
    }
}

static void run(const cpu_run *r)
{
    job j = {.r = r};
    workers *w = r->device->workers;
    (void)prepare_job(r->device, r->query, &j); // the target's choice was this one
    widen_shared(&j);
    workers_for(w, j.cut.items, j.cut.most, tile_body, &j);
    finish_sums(&j, workers_for_ranges(w, j.cut.items, j.cut.most));
}

const cpu_impl cpu_half_tiles = {
    .name = "tiles of float32", .types = CPU_HALF, .fits = fits, .workspace = workspace, .run = run};
