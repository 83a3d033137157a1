// SPDX-License-Identifier: Apache-2.0
#include "device/card_time.h"

#include <math.h>
#include <string.h>

#include "headroom/event.h"

#include "device/cost.h"

static double first_known(double a, double b)
{
    return a > 0 ? a : b;
}

static double ratio(double amount, double per_second)
{
    return per_second > 0 ? amount / per_second : 0;
}

// ---- products -------------------------------------------------------------------------------------------------

// One or more products of m x k and k x n numbers.
typedef struct extent {
    double m, n, k, count;
} extent;

static double leading(const hr_shape *s, uint32_t dimensions)
{
    double product = 1;
    for (uint32_t k = 0; k < dimensions; k++) {
        product *= (double)s->dim[k];
    }
    return product;
}

static bool is_batched(hr_op op)
{
    return op == HR_OP_MATMUL || op == HR_OP_MATMUL_BWD_A || op == HR_OP_MATMUL_BWD_B ||
           (op >= HR_OP_ATTENTION_SCORES && op <= HR_OP_ATTENTION_VALUES_BWD_V);
}

// Of what is written: its last dimension is n, the others m; batched products write a matrix each. What the heads of an
// attention write lies side by side. k is what the FLOPs leave.
static extent extent_of(const program *p, const instr *i)
{
    const hr_shape *y = &p->tensors[i->out[0]].shape;
    const uint32_t inner = is_batched(i->op) && y->rank > 2 ? y->rank - 2 : 0;
    extent e = {.n = (double)y->dim[y->rank - 1], .count = 1};
    if (inner > 0) {
        const double heads = i->attr.heads > 0 && y->rank == 3 ? i->attr.heads : 1;
        e.count = leading(y, inner) * heads;
        e.m = (double)y->dim[inner];
        e.n /= heads;
    } else {
        e.m = leading(y, y->rank - 1);
    }
    e.k = fmax((double)i->flops / (2 * e.m * e.n * e.count), 1);
    return e;
}

// One multiprocessor computes a tile of the result; the smaller it is, the more often operands are read for it.
typedef struct tile {
    double rows, columns, share;
} tile;

static const tile tiles[] = {{256, 128, 1},  {128, 128, 0.97}, {256, 64, 0.92}, {128, 64, 0.85},
                             {64, 64, 0.75}, {64, 32, 0.55},   {32, 32, 0.40}};
enum { TILES = sizeof tiles / sizeof *tiles, SPLIT_DEPTH = 512, PIPELINE_DEPTH = 48 };

// The share of the card's units that work, on average, while tiles are computed in waves. Where there are fewer tiles
// than multiprocessors, a deep product is split into partial sums.
static double fill_of(const extent *e, double rows, double columns, double multiprocessors, bool splits)
{
    const double across = ceil(e->m / rows), down = ceil(e->n / columns), count = across * down * e->count;
    const double parts = splits ? fmax(fmin(e->k / SPLIT_DEPTH, multiprocessors / count), 1) : 1;
    const double waves = ceil(count * parts / multiprocessors);
    const double used = e->m * e->n / (across * rows * down * columns);
    const double depth = e->k / parts; // of a part: its first operands are waited for
    return used * (count * parts) / (waves * multiprocessors) * depth / (depth + PIPELINE_DEPTH);
}

// Of the rate that a large product reaches.
static double utilisation_of(const extent *e, double multiprocessors, bool splits)
{
    double best = 0;
    for (int k = 0; k < TILES; k++) {
        const tile *t = &tiles[k];
        best = fmax(best, t->share * fill_of(e, t->rows, t->columns, multiprocessors, splits));
        best = fmax(best, t->share * fill_of(e, t->columns, t->rows, multiprocessors, splits));
    }
    return best;
}

typedef struct unit_rate {
    double flops_per_second;
    bool tensor_cores;
    uint32_t bytes; // of an operand's number
} unit_rate;

static unit_rate products_rate(const card_time *t, hr_dtype dtype)
{
    const hr_card *c = &t->card;
    const double half = dtype == HR_F16 ? c->float16_flops : dtype == HR_BF16 ? c->bfloat16_flops : 0;
    if (half > 0) {
        return (unit_rate){half * (half > 1.5 * c->float32_flops ? t->rates->tensor : t->rates->vector),
                           half > 1.5 * c->float32_flops, 2};
    }
    if (dtype == HR_F64) {
        return (unit_rate){first_known(c->float64_flops, c->float32_flops) * t->rates->vector, false, 4};
    }
    if (dtype == HR_F32 && t->tf32 && c->tf32_flops > 0) {
        return (unit_rate){c->tf32_flops * t->rates->tensor32, true, 4};
    }
    return (unit_rate){c->float32_flops * t->rates->vector, false, 4};
}

// ---- convolutions ---------------------------------------------------------------------------------------------

// Of a product of the same extent: the operands are gathered from an image, which only units that wait for nothing else
// feel. The weight gradient sums over all pixels.
static double conv_share(const card_time *t, cost_family family, const unit_rate *r)
{
    static const double of_direction[COST_FAMILY_COUNT] = {
        [COST_CONV] = 1, [COST_CONV_DATA] = 0.9, [COST_CONV_WEIGHTS] = 0.8};
    const double of_unit = !r->tensor_cores ? 1 : r->bytes == 4 ? t->rates->conv32 : t->rates->conv;
    return of_direction[family] * of_unit;
}

// Tensor cores take channels in fours at least.
static double padding_share(const program *p, const instr *i)
{
    const hr_shape *x = &p->tensors[i->in[0]].shape;
    const double channels = (double)x->dim[x->rank - 1];
    return channels / (4 * ceil(channels / 4));
}

// ---- implementations ------------------------------------------------------------------------------------------

static bool is_computed_by(const instr *i, const char *library)
{
    return i->impl != NULL && strncmp(i->impl, library, strlen(library)) == 0;
}

// Kernels of our own multiply on the ordinary units, and are no library's.
static const double own_share = 0.35;

// What a library's heuristics order behind its first choice is slower; by how much they do not say. This much for each
// that was passed over for its workspace, up to twice the time.
static const double slower_each = 0.2, slower_most = 2;

static double slower_by(const instr *i)
{
    return fmin(1 + slower_each * i->behind, slower_most);
}

static double product_seconds(const card_time *t, const program *p, const instr *i)
{
    const cost_family family = cost_family_of(i);
    const bool own = is_computed_by(i, "own ");
    const unit_rate plain = {t->card.float32_flops * t->rates->vector * own_share, false, 4};
    const unit_rate rate = own ? plain : products_rate(t, cost_type_of(p, i));
    if (family == COST_ATTENTION) {
        const double share = rate.tensor_cores ? t->rates->attention / t->rates->tensor : 0.5;
        return ratio((double)i->flops, rate.flops_per_second * share);
    }
    const extent e = extent_of(p, i);
    // cuBLASLt keeps the partial sums of a split product in its workspace.
    const bool splits = i->workspace != HR_NO_ID || !is_computed_by(i, "cublaslt");
    double share = utilisation_of(&e, t->multiprocessors, splits);
    if (family != COST_PRODUCT) {
        const bool pointwise = i->attr.kernel_h == 1 && i->attr.kernel_w == 1;
        share *= pointwise ? 1 : conv_share(t, family, &rate);
        share *= rate.tensor_cores ? padding_share(p, i) : 1;
    }
    return ratio((double)i->flops, rate.flops_per_second * share);
}

// ---- memory ---------------------------------------------------------------------------------------------------

// How often the bytes that an operation's row counts are moved, and what share of the bandwidth a simple kernel reaches
// its own do.
typedef struct traffic {
    double passes, share;
} traffic;

static const traffic of_family[COST_FAMILY_COUNT] = {
    [COST_NORM] = {1, 0.9},
    [COST_REDUCTION] = {1, 0.8},
    [COST_EMBEDDING] = {1, 0.5},
};

// Operations that their family does not stand for. What is not named in either moves its bytes once.
static const traffic of_op[HR_OP_COUNT] = {
    [HR_OP_BATCH_NORM] = {1.5, 0.9},         // x is read for its statistics, and again
    [HR_OP_BATCH_NORM_BWD] = {5.0 / 3, 0.9}, // so are x and dy
    [HR_OP_LAYER_NORM_BWD] = {5.0 / 3, 0.9},
    [HR_OP_RMS_NORM_BWD] = {5.0 / 3, 0.9},
};

static traffic traffic_of(const instr *i)
{
    const traffic once = {1, 1}, own = of_op[i->op], of_kin = of_family[cost_family_of(i)];
    return own.passes > 0 ? own : of_kin.passes > 0 ? of_kin : once;
}

static double memory_seconds(const card_time *t, const instr *i)
{
    const traffic r = traffic_of(i);
    return ratio((double)i->bytes_moved * r.passes,
                 t->card.memory_bytes_per_second * t->rates->memory * r.share);
}

// A depthwise convolution multiplies on the ordinary units and fetches as often: fitted, as in docs/published_throughput.md.
static const double depthwise_share = 0.05;

static double depthwise_seconds(const card_time *t, const instr *i)
{
    return ratio((double)i->flops, t->card.float32_flops * depthwise_share);
}

static double vector_seconds(const card_time *t, const program *p, const instr *i)
{
    const hr_card *c = &t->card;
    const hr_dtype dtype = cost_type_of(p, i);
    const double own = dtype == HR_F16    ? c->vector_float16_flops
                       : dtype == HR_BF16 ? c->vector_bfloat16_flops
                       : dtype == HR_F64  ? first_known(c->vector_float64_flops, c->float64_flops)
                                          : 0;
    return ratio((double)i->flops, first_known(own, c->float32_flops) * t->rates->vector);
}

// ---- an instruction -------------------------------------------------------------------------------------------

// A kernel's blocks are handed out and the last of them waited for. In a captured step it is handed out by the card
// itself (NVIDIA, "Getting Started with CUDA Graphs": 3.4 us a kernel of 2.9 us against 3.8 us issued one by one).
static const double start_seconds = 1.5e-6, captured_start_seconds = 1e-6;
// An interpreter looks up the operation, records it for the gradients and allocates its results: 5 to 25 us in PyTorch,
// against the launch alone.
static const double interpreted_launches = 5;
// Arithmetic and traffic overlap but for this share of the shorter.
static const double apart = 0.2;

static double seconds_of(const card_time *t, const program *p, const instr *i)
{
    if (i->lane != HR_LANE_COMPUTE && i->op != HR_OP_ADVANCE) { // which stays on the card, whatever its lane
        return t->card.launch_seconds + ratio((double)i->bytes_moved, t->card.link_bytes_per_second);
    }
    const cost_family family = cost_family_of(i);
    const double arithmetic = cost_is_product(family)    ? product_seconds(t, p, i)
                              : family == COST_DEPTHWISE ? depthwise_seconds(t, i)
                                                         : vector_seconds(t, p, i);
    const double memory = memory_seconds(t, i);
    const double start = t->captured ? captured_start_seconds : start_seconds;
    return start + (fmax(arithmetic, memory) + apart * fmin(arithmetic, memory)) * slower_by(i);
}

void card_time_init(card_time *t, const hr_card *card, bool tf32, bool captured)
{
    *t = (card_time){.card = *card,
                     .rates = card_rates_of(card),
                     .multiprocessors = card_multiprocessors(card),
                     .tf32 = tf32,
                     .captured = captured};
}

hr_status card_time_open(card_time *t, const hr_card *card, bool tf32, bool captured, hr_err *err)
{
    hr_card usual = {0};
    if (card == NULL) {
        HR_TRY(hr_card_load(HR_CARD_UNLIMITED, &usual, err));
    }
    card_time_init(t, card != NULL ? card : &usual, tf32, captured);
    return HR_OK;
}

hr_time_basis card_time_basis(const card_time *t)
{
    return strcmp(t->card.name, HR_CARD_UNLIMITED) == 0 ? HR_TIME_USUAL_CARD : HR_TIME_DATASHEET;
}

uint64_t card_time_ns(const card_time *t, const program *p, const instr *i)
{
    return cost_family_of(i) == COST_NOTHING ? 0 : (uint64_t)llround(seconds_of(t, p, i) * 1e9);
}

uint64_t card_issue_ns(const card_time *t, const program *p, const instr *i)
{
    if (t->captured || cost_family_of(i) == COST_NOTHING || i->op == HR_OP_PREFETCH) { // of another step
        return 0;
    }
    return (uint64_t)llround(t->card.launch_seconds * (p->eager ? interpreted_launches : 1) * 1e9);
}

// By how much published figures for like kernels differ, from library to library and shape to shape.
static const double spread_of[COST_FAMILY_COUNT] = {
    [COST_NOTHING] = 1,        [COST_PRODUCT] = 1.15,   [COST_CONV] = 1.25,     [COST_CONV_DATA] = 1.25,
    [COST_CONV_WEIGHTS] = 1.3, [COST_DEPTHWISE] = 1.5,  [COST_ATTENTION] = 1.3, [COST_NORM] = 1.2,
    [COST_ELEMENTWISE] = 1.15, [COST_REDUCTION] = 1.25, [COST_EMBEDDING] = 1.5, [COST_UPDATE] = 1.2,
    [COST_COPY] = 1.15,
};

double card_time_spread(const instr *i)
{
    return spread_of[cost_family_of(i)] * (i->behind > 0 ? 1.2 : 1);
}
