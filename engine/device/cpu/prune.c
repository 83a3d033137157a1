// SPDX-License-Identifier: Apache-2.0
// Pruning by magnitude (ops/prune.h). In most updates one pass zeroes what is masked, as bits: a pruned weight is +0. Where the mask is
// made, the score of the last unit that stays is found by counting, 11, 10 and 10 bits of the scores at a time, on one thread: no
// workspace, and a few passes every hundred updates.
#include "ops/prune.h"

#include <math.h>
#include <string.h>

#include "cast.h"
#include "cpu.h"
#include "simd.h"
#include "update.h"

enum { GRAIN = 16384, DIGITS_MAX = 2048 };

static const uint32_t sign_off = UINT32_MAX >> 1;

typedef struct job {
    const op_query *query;
    hr_dtype type;
    void *w, *mask;
    uint32_t one;       // of the mask, as bits
    uint32_t threshold; // the least score that stays
    int64_t step;       // GROUPS: from one of a run to the next
} job;

static bool is_half(const job *j)
{
    return j->type != HR_F32;
}

// Bits that are in the order of the absolute values: those of float32, or of two bytes in front of zeros.
CPU_INLINE uint32_t score_of(const void *w, bool half, int64_t i)
{
    return (half ? (uint32_t)((const uint16_t *)w)[i] << 16 : ((const uint32_t *)w)[i]) & sign_off;
}

static uint32_t score_at(const job *j, int64_t i)
{
    return score_of(j->w, is_half(j), i);
}

static float weight_at(const job *j, int64_t i)
{
    float x = 0.0f;
    cast_widen(&x, (const char *)j->w + (uint64_t)i * dtype_bytes(j->type), j->type, 1);
    return x;
}

static void put_mask(const job *j, int64_t i, bool stays)
{
    if (is_half(j)) {
        ((uint16_t *)j->mask)[i] = stays ? (uint16_t)j->one : 0;
    } else {
        ((uint32_t *)j->mask)[i] = stays ? j->one : 0;
    }
}

// ---- scores of units ------------------------------------------------------------------------------------------

static uint32_t block_score(const job *j, int64_t row, int64_t column)
{
    const op_query *q = j->query;
    const int64_t columns = q->in[0].shape.dim[1];
    const prune_span high = prune_window(q->in[0].shape.dim[0], q->attr.kernel_h, row);
    const prune_span wide = prune_window(columns, q->attr.kernel_w, column);
    float sum = 0.0f;
    for (int64_t k = wide.begin; k < wide.end; k++) {
        float down = 0.0f;
        for (int64_t i = high.begin; i < high.end; i++) {
            down += fabsf(weight_at(j, i * columns + k));
        }
        sum += down / (float)(high.end - high.begin);
    }
    const float mean = sum / (float)(wide.end - wide.begin);
    uint32_t bits = 0;
    memcpy(&bits, &mean, sizeof bits);
    return bits & sign_off;
}

static uint32_t filter_score(const job *j, int64_t filter)
{
    const prune_region r = prune_region_of(j->query, filter);
    float sum = 0.0f;
    for (int64_t n = 0; n < r.lines; n++) {
        for (int64_t i = 0; i < r.width; i++) {
            sum += fabsf(weight_at(j, r.first + n * r.pitch + i));
        }
    }
    uint32_t bits = 0;
    memcpy(&bits, &sum, sizeof bits);
    return bits & sign_off;
}

static int64_t blocks_across(const op_query *q)
{
    return (q->in[0].shape.dim[1] + q->attr.kernel_w - 1) / q->attr.kernel_w;
}

// Of what is more than an element.
static uint32_t unit_score(const job *j, int64_t unit)
{
    if (j->query->attr.rule == PRUNE_FILTERS) {
        return filter_score(j, unit);
    }
    const int64_t across = blocks_across(j->query);
    return block_score(j, unit / across, unit % across);
}

// Some bits of a score, and what stands above them.
typedef struct digit {
    int shift, bits;
    uint32_t above;
} digit;

CPU_INLINE void count_score(uint32_t score, digit d, uint32_t *count)
{
    if ((uint64_t)score >> (d.shift + d.bits) == d.above) {
        count[score >> d.shift & ((1u << d.bits) - 1)]++;
    }
}

CPU_INLINE void count_elements(const job *j, int64_t units, bool half, digit d, uint32_t *count)
{
    const void *w = j->w;
    for (int64_t k = 0; k < units; k++) {
        count_score(score_of(w, half, k), d, count);
    }
}

// Counts the units that have the bits above a digit by what they have there.
static void count_digits(const job *j, int64_t units, digit d, uint32_t count[DIGITS_MAX])
{
    memset(count, 0, DIGITS_MAX * sizeof *count);
    if (j->query->attr.rule == PRUNE_ELEMENTS && is_half(j)) {
        count_elements(j, units, true, d, count);
    } else if (j->query->attr.rule == PRUNE_ELEMENTS) {
        count_elements(j, units, false, d, count);
    } else {
        for (int64_t k = 0; k < units; k++) {
            count_score(unit_score(j, k), d, count);
        }
    }
}

// The kept-largest score, digit by digit from above.
static uint32_t threshold_of(const job *j, int64_t units, uint64_t kept)
{
    static const int shifts[] = {20, 10, 0}, bits[] = {11, 10, 10};
    uint32_t count[DIGITS_MAX], threshold = 0;
    for (size_t k = 0; k < sizeof shifts / sizeof *shifts; k++) {
        const digit d = {shifts[k], bits[k], (uint32_t)((uint64_t)threshold >> (shifts[k] + bits[k]))};
        count_digits(j, units, d, count);
        uint32_t value = (1u << d.bits) - 1;
        for (; value > 0 && count[value] < kept; value--) {
            kept -= count[value];
        }
        threshold |= value << d.shift;
    }
    return threshold;
}

// ---- masks ----------------------------------------------------------------------------------------------------

CPU_HOT static void mask_words(uint32_t *restrict mask, const uint32_t *restrict w, uint32_t threshold,
                               uint32_t one, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        mask[i] = (w[i] & sign_off) >= threshold ? one : 0;
    }
}

static void elements_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (!is_half(j)) {
        mask_words(j->mask, j->w, j->threshold, j->one, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        put_mask(j, i, score_at(j, i) >= j->threshold);
    }
}

// What a unit has is what all of its elements have.
static void units_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        const prune_region r = prune_region_of(j->query, unit);
        const bool stays = unit_score(j, unit) >= j->threshold;
        for (int64_t n = 0; n < r.lines; n++) {
            for (int64_t i = 0; i < r.width; i++) {
                put_mask(j, r.first + n * r.pitch + i, stays);
            }
        }
    }
}

// Of equal ones the first comes first.
static bool stays_in_run(const job *j, int64_t first, int64_t size, int64_t place)
{
    const uint32_t own = score_at(j, first + place * j->step);
    int64_t before = 0;
    for (int64_t k = 0; k < size; k++) {
        const uint32_t other = score_at(j, first + k * j->step);
        before += other > own || (other == own && k < place);
    }
    return before < j->query->attr.kernel_w - j->query->attr.kernel_h;
}

static void groups_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const op_attr *a = &j->query->attr;
    const int64_t side = j->query->in[0].shape.dim[a->axis];
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = i / j->step % side, in_run = place % a->kernel_w;
        const int64_t left = side - (place - in_run), size = left < a->kernel_w ? left : a->kernel_w;
        put_mask(j, i, stays_in_run(j, i - in_run * j->step, size, in_run));
    }
}

static void make_mask(const cpu_run *r, job *j)
{
    workers *team = r->device->workers;
    const op_attr *a = &r->query->attr;
    const int64_t elements = cpu_elements_of(&r->query->in[0]);
    if (a->rule == PRUNE_GROUPS) {
        j->step = prune_axis_step(r->query);
        workers_for_pieces(team, elements, GRAIN, groups_body, j);
        return;
    }
    const uint64_t units = prune_units(r->query);
    j->threshold = threshold_of(j, (int64_t)units, prune_kept(a, units, prune_update(r->io)));
    workers_for_pieces(team, (int64_t)units, 1 + GRAIN * (int64_t)units / elements,
                       a->rule == PRUNE_ELEMENTS ? elements_body : units_body, j);
}

// ---- what is masked -------------------------------------------------------------------------------------------

CPU_HOT static void zero_words(uint32_t *restrict w, const uint32_t *restrict mask, int64_t begin,
                               int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        w[i] = mask[i] != 0 ? w[i] : 0;
    }
}

CPU_HOT static void zero_halves(uint16_t *restrict w, const uint16_t *restrict mask, int64_t begin,
                                int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        w[i] = mask[i] != 0 ? w[i] : 0;
    }
}

void update_zero_masked(uint32_t *restrict w, const uint32_t *restrict mask, int64_t begin, int64_t end)
{
    zero_words(w, mask, begin, end);
}

static void zero_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (is_half(j)) {
        zero_halves(j->w, j->mask, begin, end);
    } else {
        zero_words(j->w, j->mask, begin, end);
    }
}

static void run_prune(const cpu_run *r)
{
    const op_query *q = r->query;
    const prune_act act = prune_act_at(&q->attr, prune_update(r->io));
    job j = {.query = q, .type = (hr_dtype)q->in[0].dtype, .w = r->in[0], .mask = r->in[1]};
    const float one = 1.0f;
    cast_narrow(&j.one, j.type, &one, 1);
    if (act == PRUNE_NOTHING || (q->in_count > 2 && *(const int32_t *)r->in[2] == 0)) {
        return;
    }
    if (act == PRUNE_MAKE) {
        make_mask(r, &j);
    }
    workers_for_pieces(r->device->workers, cpu_elements_of(&q->in[0]), GRAIN, zero_body, &j);
}

const cpu_impl cpu_prune = {.name = "counted", .types = CPU_ANY_TYPE, .run = run_prune};

// ---- what follows a kernel ------------------------------------------------------------------------------------

static void run_channels(const cpu_run *r)
{
    const op_query *q = r->query;
    const int64_t last = q->in[0].shape.dim[q->in[0].shape.rank - 1], step = prune_axis_step(q);
    const int64_t elements = cpu_elements_of(&q->in[0]),
                  bytes = (int64_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    char *w = r->in[0];
    const char *mask = r->in[1], zero[sizeof(double)] = {0};
    for (int64_t place = 0; place < last; place++) {
        const int64_t at = prune_channel_at(q, step, place);
        if (at < 0 || memcmp(mask + at * bytes, zero, (size_t)bytes) != 0) {
            continue;
        }
        for (int64_t i = place; i < elements; i += last) {
            memset(w + i * bytes, 0, (size_t)bytes);
        }
    }
}

const cpu_impl cpu_prune_channels = {.name = "plain", .types = CPU_ANY_TYPE, .run = run_channels};
