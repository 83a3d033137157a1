// SPDX-License-Identifier: Apache-2.0
#include "onnx_numbers.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/half.h"

#define WORK_MAX (INT64_C(1) << 28)
enum { LATER_SAMPLE = 1000002 }; // as far from the first as samples are thought to reach

int64_t numbers_whole(double value)
{
    return value >= 9.2e18 ? INT64_MAX : value <= -9.2e18 ? INT64_MIN : value != value ? 0 : (int64_t)value;
}

int64_t numbers_count(const numbers *n)
{
    int64_t count = 1;
    bool many = false;
    for (uint32_t k = 0; k < n->rank; k++) {
        if (n->dims[k] == 0) {
            return 0;
        }
        many = many || __builtin_mul_overflow(count, n->dims[k], &count);
    }
    return many ? INT64_MAX : count;
}

double numbers_at(const numbers *n, int64_t k)
{
    int64_t place = 0;
    for (uint32_t d = n->rank; d-- > 0;) {
        place += k % n->dims[d] * n->strides[d];
        k /= n->dims[d];
    }
    return n->at[place];
}

double numbers_first(const numbers *n)
{
    return n->at[0];
}

bool numbers_is_one(const numbers *n)
{
    return numbers_count(n) == 1;
}

// Elements that lie in memory.
static int64_t held(const numbers *n)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < n->rank; k++) {
        if (n->strides[k] != 0 && __builtin_mul_overflow(count, n->dims[k], &count)) {
            return INT64_MAX;
        }
    }
    return count;
}

bool numbers_work(onnx_graph *g, int64_t count)
{
    if (g->status == HR_OK && (count > WORK_MAX || g->work > WORK_MAX - count)) {
        onnx_refuse(g, "what it computes of constant numbers is beyond the limit of %lld steps",
                    (long long)WORK_MAX);
    }
    g->work += g->status == HR_OK ? count : 0;
    return g->status == HR_OK;
}

bool numbers_alike(onnx_graph *g, const numbers *n)
{
    numbers small = *n;
    if (numbers_count(n) == 0 || !numbers_work(g, held(n))) {
        return false;
    }
    for (uint32_t k = 0; k < n->rank; k++) {
        small.dims[k] = n->strides[k] == 0 ? 1 : n->dims[k];
    }
    const int64_t count = held(n);
    for (int64_t k = 1; k < count; k++) {
        if (!(numbers_at(&small, k) == n->at[0])) {
            return false;
        }
    }
    return true;
}

// ---- making ---------------------------------------------------------------------------------------------------

numbers *numbers_blank(onnx_graph *g, uint32_t rank, const int64_t *dims, const bool *same, double **room)
{
    int64_t stride = 1;
    numbers *n = onnx_take(g, 1, sizeof *n);
    if (n == NULL) {
        return NULL;
    }
    n->rank = rank;
    for (uint32_t k = rank; k-- > 0;) {
        const bool once = (same != NULL && same[k]) || dims[k] == 1;
        n->dims[k] = dims[k];
        n->strides[k] = once ? 0 : stride;
        if (!once && (__builtin_mul_overflow(stride, dims[k], &stride) || stride > ONNX_NUMBERS)) {
            onnx_refuse(g, "a table of numbers in it has more than %d elements, which is the limit",
                        ONNX_NUMBERS);
            return NULL;
        }
    }
    *room = onnx_take(g, stride < 1 ? 1 : (size_t)stride, sizeof **room);
    n->at = *room;
    return *room == NULL ? NULL : n;
}

numbers *numbers_list(onnx_graph *g, const int64_t *values, uint32_t count)
{
    double *room = NULL;
    const int64_t dims[1] = {count};
    numbers *n = numbers_blank(g, 1, dims, NULL, &room);
    for (uint32_t k = 0; n != NULL && k < count; k++) {
        room[k] = (double)values[k];
    }
    return n;
}

numbers *numbers_scalar(onnx_graph *g, double value, bool real)
{
    double *room = NULL;
    numbers *n = numbers_blank(g, 0, NULL, NULL, &room);
    if (n != NULL) {
        room[0] = value;
        n->real = real;
    }
    return n;
}

numbers *numbers_again(onnx_graph *g, const numbers *n)
{
    numbers *more = onnx_take(g, 1, sizeof *more);
    if (more != NULL) {
        *more = *n;
    }
    return more;
}

// ---- computing ------------------------------------------------------------------------------------------------

bool onnx_broadcast(uint32_t a_rank, const int64_t *a, uint32_t b_rank, const int64_t *b, uint32_t *rank,
                    int64_t out[ONNX_RANK])
{
    *rank = a_rank > b_rank ? a_rank : b_rank;
    for (uint32_t k = 0; k < *rank; k++) {
        const int64_t x = k < a_rank ? a[a_rank - 1 - k] : 1, y = k < b_rank ? b[b_rank - 1 - k] : 1;
        if (x != y && x != 1 && y != 1) {
            return false;
        }
        out[*rank - 1 - k] = x == 1 ? y : x;
    }
    return true;
}

bool numbers_expand(numbers *n, uint32_t rank, const int64_t *dims)
{
    numbers out = {
        .at = n->at, .rank = rank, .real = n->real, .by_sample = n->by_sample, .missing = n->missing};
    if (rank < n->rank) {
        return false;
    }
    for (uint32_t k = 0; k < rank; k++) {
        const bool own = k >= rank - n->rank;
        const int64_t size = own ? n->dims[k - (rank - n->rank)] : 1;
        if (size != dims[k] && size != 1) {
            return false;
        }
        out.dims[k] = dims[k];
        out.strides[k] = own && size == dims[k] ? n->strides[k - (rank - n->rank)] : 0;
    }
    *n = out;
    return true;
}

// Up to three operands under one shape, walked over the places where any of them changes.
typedef struct operands {
    numbers of[3];
    uint32_t count;
} operands;

static numbers *blank_of(onnx_graph *g, operands *o, double **room)
{
    uint32_t rank = o->of[0].rank;
    int64_t dims[ONNX_RANK];
    bool same[ONNX_RANK];
    memcpy(dims, o->of[0].dims, sizeof dims);
    for (uint32_t k = 1; k < o->count; k++) {
        int64_t before[ONNX_RANK];
        memcpy(before, dims, sizeof before);
        if (!onnx_broadcast(rank, before, o->of[k].rank, o->of[k].dims, &rank, dims)) {
            onnx_refuse(g, "it computes with two tables of numbers whose shapes do not fit");
            return NULL;
        }
    }
    for (uint32_t k = 0; k < o->count; k++) {
        if (!numbers_expand(&o->of[k], rank, dims)) {
            return NULL;
        }
    }
    for (uint32_t d = 0; d < rank; d++) {
        same[d] = true;
        for (uint32_t k = 0; k < o->count; k++) {
            same[d] = same[d] && o->of[k].strides[d] == 0;
        }
    }
    return numbers_blank(g, rank, dims, same, room);
}

static void narrow_to(const numbers *out, operands *o)
{
    for (uint32_t k = 0; k < o->count; k++) {
        for (uint32_t d = 0; d < out->rank; d++) {
            o->of[k].dims[d] = out->strides[d] == 0 ? 1 : out->dims[d];
        }
    }
}

// The k-th of an operand in a later sample.
static double in_sample(const numbers *n, int64_t k, int64_t sample)
{
    return numbers_at(n, k) + (n->by_sample != 0 ? n->by_sample * (double)sample : 0);
}

// What all results grow by, as a near and a far sample say; NaN: not alike, or not evenly.
static double growth_of(const operands *o, const double *results, int64_t count, number_of_two f)
{
    double growth = 0;
    if (o->of[0].by_sample == 0 && o->of[1].by_sample == 0) {
        return 0;
    }
    for (int64_t k = 0; k < count; k++) {
        const double one = f(in_sample(&o->of[0], k, 1), in_sample(&o->of[1], k, 1)) - results[k];
        const double far =
            f(in_sample(&o->of[0], k, LATER_SAMPLE), in_sample(&o->of[1], k, LATER_SAMPLE)) - results[k];
        growth = k == 0 ? one : growth;
        if (!(one == growth && far == growth * LATER_SAMPLE)) {
            return (double)NAN;
        }
    }
    return growth;
}

numbers *numbers_map(onnx_graph *g, const numbers *a, const numbers *b, number_of_two f, bool real)
{
    double *room = NULL;
    operands o = {.of = {*a, *b}, .count = 2};
    numbers *n = blank_of(g, &o, &room);
    if (n == NULL) {
        return NULL;
    }
    narrow_to(n, &o);
    n->real = real;
    n->missing = a->missing != NULL ? a->missing : b->missing;
    const int64_t count = numbers_count(n) == 0 ? 0 : held(n);
    for (int64_t k = 0; k < count; k++) {
        room[k] = f(numbers_at(&o.of[0], k), numbers_at(&o.of[1], k));
    }
    n->by_sample = growth_of(&o, room, count, f);
    return n;
}

numbers *numbers_each(onnx_graph *g, const numbers *a, number_of_one f, bool real)
{
    double *room = NULL;
    operands o = {.of = {*a}, .count = 1};
    numbers *n = blank_of(g, &o, &room);
    if (n == NULL) {
        return NULL;
    }
    narrow_to(n, &o);
    n->real = real;
    n->missing = a->missing;
    const int64_t count = numbers_count(n) == 0 ? 0 : held(n);
    for (int64_t k = 0; k < count; k++) {
        room[k] = f(numbers_at(&o.of[0], k));
    }
    n->by_sample = a->by_sample == 0 ? 0 : (double)NAN;
    return n;
}

numbers *numbers_choose(onnx_graph *g, const numbers *c, const numbers *a, const numbers *b)
{
    double *room = NULL;
    operands o = {.of = {*c, *a, *b}, .count = 3};
    numbers *n = blank_of(g, &o, &room);
    if (n == NULL) {
        return NULL;
    }
    narrow_to(n, &o);
    n->real = a->real || b->real;
    n->by_sample = c->by_sample == 0 && a->by_sample == 0 && b->by_sample == 0 ? 0 : (double)NAN;
    const int64_t count = numbers_count(n) == 0 ? 0 : held(n);
    for (int64_t k = 0; k < count; k++) {
        room[k] = numbers_at(&o.of[0], k) != 0 ? numbers_at(&o.of[1], k) : numbers_at(&o.of[2], k);
    }
    return n;
}

numbers *numbers_plain(onnx_graph *g, const numbers *n)
{
    double *room = NULL;
    numbers *out = numbers_blank(g, n->rank, n->dims, NULL, &room);
    const int64_t count = out == NULL ? 0 : numbers_count(n);
    for (int64_t k = 0; k < count; k++) {
        room[k] = numbers_at(n, k);
    }
    if (out != NULL) {
        out->real = n->real;
        out->by_sample = n->by_sample;
        out->missing = n->missing;
    }
    return out;
}

// ---- values of the file ---------------------------------------------------------------------------------------

static uint32_t bytes_of(int32_t type)
{
    switch (type) {
    case ONNX_UINT8:
    case ONNX_INT8:
    case ONNX_BOOL:
        return 1;
    case ONNX_UINT16:
    case ONNX_INT16:
    case ONNX_FLOAT16:
    case ONNX_BFLOAT16:
        return 2;
    case ONNX_FLOAT:
    case ONNX_INT32:
    case ONNX_UINT32:
        return 4;
    case ONNX_INT64:
    case ONNX_UINT64:
    case ONNX_DOUBLE:
        return 8;
    default:
        return 0;
    }
}

static double raw_at(const unsigned char *raw, int32_t type)
{
    uint64_t bits = 0;
    for (uint32_t k = bytes_of(type); k-- > 0;) { // little endian, wherever this runs
        bits = bits << 8 | raw[k];
    }
    const uint32_t low = (uint32_t)bits;
    float single;
    double twice;
    switch (type) {
    case ONNX_INT8:
        return (double)(int8_t)bits;
    case ONNX_INT16:
        return (double)(int16_t)bits;
    case ONNX_INT32:
        return (double)(int32_t)bits;
    case ONNX_INT64:
        return (double)(int64_t)bits;
    case ONNX_FLOAT:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    case ONNX_DOUBLE:
        memcpy(&twice, &bits, sizeof twice);
        return twice;
    default:
        return (double)bits;
    }
}

// Bytes of a packed varint, from raw[*at]; false at the end.
static bool varint_at(const unsigned char *raw, uint64_t bytes, uint64_t *at, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < bytes && shift < 64; shift += 7) {
        const unsigned char c = raw[(*at)++];
        *out |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) {
            return true;
        }
    }
    return false;
}

static bool is_real(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

static bool decode(const onnx_tensor *t, const unsigned char *raw, int64_t count, double *room)
{
    const bool varints = t->field == 5 || t->field == 7 || t->field == 11;
    const int32_t type = t->field == 4 ? ONNX_FLOAT : t->field == 10 ? ONNX_DOUBLE : t->type;
    const uint32_t width = bytes_of(type);
    uint64_t at = 0, bits = 0;
    if (width == 0 || (!varints && t->bytes != (uint64_t)count * width)) {
        return false;
    }
    for (int64_t k = 0; k < count; k++) {
        if (varints && !varint_at(raw, t->bytes, &at, &bits)) {
            return false;
        }
        room[k] = varints ? (double)(int64_t)bits : raw_at(raw + (uint64_t)k * width, type);
    }
    return true;
}

// float16 and bfloat16 come as their bits.
static void widen(int32_t type, int64_t count, double *room)
{
    for (int64_t k = 0; k < count; k++) {
        if (type == ONNX_FLOAT16) {
            room[k] = (double)float_of_f16((uint16_t)room[k]);
        } else if (type == ONNX_BFLOAT16) {
            room[k] = (double)float_of_bf16((uint16_t)room[k]);
        }
    }
}

// Of values that are in another file: one that is no number all over.
static numbers *missing(onnx_graph *g, const onnx_tensor *t)
{
    double *room = NULL;
    bool same[ONNX_RANK];
    for (uint32_t k = 0; k < ONNX_RANK; k++) {
        same[k] = true;
    }
    numbers *n = numbers_blank(g, t->rank, t->dims, same, &room);
    if (n != NULL) {
        room[0] = nan("");
        n->real = is_real(t->type);
        n->missing = t->name;
    }
    return n;
}

numbers *numbers_of(onnx_graph *g, const onnx_tensor *t)
{
    double *room = NULL;
    if (t->external) {
        return missing(g, t);
    }
    if (t->field == 0 && t->rank != 0) {
        onnx_refuse(g, "the values of '%s' are needed here, and are not in the file", t->name);
        return NULL;
    }
    numbers *n = numbers_blank(g, t->rank, t->dims, NULL, &room);
    const int64_t count = n == NULL ? 0 : numbers_count(n);
    if (n == NULL || t->bytes > (uint64_t)count * 10) { // no packed number is longer
        if (n != NULL) {
            onnx_refuse(g, "'%s' has more bytes than its shape needs", t->name);
        }
        return NULL;
    }
    unsigned char *raw = hr_calloc((size_t)t->bytes + 1, 1);
    hr_status status = raw == NULL ? HR_FAIL(g->err, NOMEM, "%.160s: no memory to read it", g->path)
                                   : file_read_at(g->fd, t->at, raw, t->bytes, g->path, g->err);
    if (status != HR_OK) {
        g->status = status;
    } else if (!decode(t, raw, count, room)) {
        onnx_refuse(g, "'%s' has not the %lld numbers of a type that is read which its shape says", t->name,
                    (long long)count);
    }
    hr_free(raw);
    n->real = is_real(t->type);
    if (g->status == HR_OK) {
        widen(t->type, count, room);
    }
    return g->status == HR_OK ? n : NULL;
}

static bool is_at_hand(const onnx_tensor *t)
{
    return t->rank == 2 && t->type == ONNX_FLOAT && t->field == 9 && !t->external &&
           t->bytes == (uint64_t)(t->dims[0] * t->dims[1]) * 4;
}

bool numbers_are_turned(onnx_graph *g, const onnx_tensor *a, const onnx_tensor *b)
{
    enum { PLACES = 64, PLACE_WORK = 512 }; // a place: about as long as so many numbers that are computed
    if (!is_at_hand(a) || !is_at_hand(b) || a->dims[0] != b->dims[1] || a->dims[1] != b->dims[0] ||
        a->bytes == 0) {
        return false;
    }
    const int64_t rows = a->dims[0], columns = a->dims[1], last = rows * columns - 1;
    for (int64_t k = 0; k < PLACES; k++) {
        if (!numbers_work(g, PLACE_WORK)) {
            return false;
        }
        const int64_t at = last / PLACES * k + last % PLACES * k / PLACES;
        const uint64_t other = (uint64_t)(at % columns * rows + at / columns);
        unsigned char one[4], two[4];
        hr_status status = file_read_at(g->fd, a->at + (uint64_t)at * 4, one, sizeof one, g->path, g->err);
        status = status != HR_OK ? status
                                 : file_read_at(g->fd, b->at + other * 4, two, sizeof two, g->path, g->err);
        if (status != HR_OK) {
            g->status = status;
            return false;
        }
        if (memcmp(one, two, sizeof one) != 0) {
            return false;
        }
    }
    return true;
}
