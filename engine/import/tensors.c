// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"

enum { NAME_PIECE = 256, HASH_ALIKE_MAX = 16 };

hr_status tensors_open(tensors *t, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        const hr_status status = HR_FAIL(
            t->err, READ, "%.200s: needed a file, whose size says whether it is whole, had none", t->path);
        hr_err_try(t->err, "a copy of it in a file");
        return status;
    }
    t->file_bytes = (uint64_t)info.st_size;
    return HR_OK;
}

void tensors_deinit(tensors *t)
{
    vec_deinit(&t->places);
    vec_deinit(&t->aside);
}

// ---- what the file says is no weight --------------------------------------------------------------------------

hr_status tensors_set_aside(tensors *t, const char *name, uint32_t bytes)
{
    uint64_t *hash = vec_push(&t->aside);
    if (hash == NULL) {
        return HR_FAIL(t->err, NOMEM, "%.200s: no memory for the names of slots", t->path);
    }
    *hash = hash64(name, bytes, 0);
    return HR_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void tensors_sort_aside(tensors *t)
{
    if (t->aside.count > 1) {
        qsort(t->aside.data, t->aside.count, sizeof *t->aside.data, by_number);
    }
}

static bool is_aside(const tensors *t, uint64_t hash)
{
    return t->aside.count > 0 &&
           bsearch(&hash, t->aside.data, t->aside.count, sizeof *t->aside.data, by_number) != NULL;
}

const char *tensor_shown(const tensor_name *name, char out[TENSOR_NAME_SHOWN + 1])
{
    const size_t bytes = name->bytes < TENSOR_NAME_SHOWN ? name->bytes : TENSOR_NAME_SHOWN;
    for (size_t k = 0; k < bytes; k++) {
        const char c = name->text[k];
        out[k] = c < ' ' || c > '~' ? '?' : c;
    }
    out[bytes] = '\0';
    return out;
}

static void advise_whole_file(const tensors *t)
{
    hr_err_try(t->err, "the file as it was published: a part of a download looks like this");
}

hr_status tensors_elements(const tensors *t, const tensor_name *name, const uint64_t *sides, uint32_t rank,
                           uint64_t *elements)
{
    char shown[TENSOR_NAME_SHOWN + 1];
    bool fits = true, empty = false;
    *elements = 1;
    for (uint32_t k = 0; k < rank; k++) {
        empty = empty || sides[k] == 0;
    }
    for (uint32_t k = 0; k < rank && !empty; k++) {
        fits = fits && *elements <= TENSOR_ELEMENTS_MAX / sides[k];
        *elements = fits ? *elements * sides[k] : 0;
    }
    *elements = empty ? 0 : *elements;
    return fits ? HR_OK
                : HR_FAIL(t->err, PRESET,
                          "%.200s: tensor '%s' needs at most 2^56 elements, had sides that give more",
                          t->path, tensor_shown(name, shown));
}

// ---- one tensor -----------------------------------------------------------------------------------------------

// Masks, frequencies and running statistics, which some files have: no optimizer trains them.
static bool is_buffer(const tensor_name *name)
{
    static const char *const buffers[] = {".attn.bias",
                                          ".attn.masked_bias",
                                          "rotary_emb.inv_freq",
                                          "position_ids",
                                          "running_mean",
                                          "running_var",
                                          "rope_freqs.weight",
                                          "rope_factors_long.weight",
                                          "rope_factors_short.weight"};
    for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++) {
        const size_t length = strlen(buffers[k]);
        if (name->bytes >= length && memcmp(name->text + name->bytes - length, buffers[k], length) == 0) {
            return true;
        }
    }
    return false;
}

static tensor_sum *sum_of(tensors *t, const tensor_type *type)
{
    for (uint32_t k = 0; k < t->sum_count; k++) {
        if (t->sums[k].type == type) {
            return &t->sums[k];
        }
    }
    if (t->sum_count == TENSOR_TYPES) {
        return NULL; // a format has fewer types
    }
    t->sums[t->sum_count].type = type;
    return &t->sums[t->sum_count++];
}

static hr_status refuse_total(const tensors *t)
{
    return HR_FAIL(t->err, PRESET, "%.200s: needed tensors of at most 2^56 elements together, had more",
                   t->path);
}

hr_status tensors_add(tensors *t, const tensor_name *name, const tensor_type *type, uint64_t elements,
                      uint64_t begin, uint64_t *bytes)
{
    // an element has at most 64 bits, so that 2^56 of them have bytes that a uint64 holds
    const uint64_t blocks = elements / type->block;
    const uint64_t rest_bits = blocks % 8 * type->bits;
    const uint64_t of_blocks = blocks / 8 * type->bits + rest_bits / 8;
    char shown[TENSOR_NAME_SHOWN + 1];
    tensor_sum *sum = sum_of(t, type);
    if (elements % type->block != 0 || rest_bits % 8 != 0) {
        return HR_FAIL(t->err, PRESET,
                       "%.200s: tensor '%s' needs whole bytes, had %" PRIu64 " elements of %s", t->path,
                       tensor_shown(name, shown), elements, type->name);
    }
    if (t->places.count == TENSORS_MAX) {
        return HR_FAIL(t->err, PRESET, "%.200s: needed at most %d tensors, had more", t->path, TENSORS_MAX);
    }
    if (sum == NULL || t->bytes > (UINT64_C(1) << 62) - of_blocks ||
        sum->elements > TENSOR_ELEMENTS_MAX - elements || t->parameters > TENSOR_ELEMENTS_MAX - elements) {
        return refuse_total(t);
    }
    tensor_place *place = vec_push(&t->places);
    if (place == NULL) {
        return HR_FAIL(t->err, NOMEM, "%.200s: no memory for the places of %u tensors", t->path,
                       t->places.count);
    }
    *place = (tensor_place){.hash = hash64(name->text, name->bytes, 0),
                            .name_at = name->at,
                            .name_bytes = name->bytes,
                            .begin = begin,
                            .bytes = of_blocks};
    sum->tensors++;
    sum->elements += elements;
    sum->bytes += of_blocks;
    t->bytes += of_blocks;
    t->parameters += type->real && !is_buffer(name) && !is_aside(t, place->hash) ? elements : 0;
    *bytes = of_blocks;
    return HR_OK;
}

// ---- all of them ----------------------------------------------------------------------------------------------

static int by_hash(const void *a, const void *b)
{
    const tensor_place *x = a, *y = b;
    return x->hash == y->hash  ? (x->name_at > y->name_at) - (x->name_at < y->name_at)
           : x->hash < y->hash ? -1
                               : 1;
}

static int by_begin(const void *a, const void *b)
{
    const tensor_place *x = a, *y = b;
    return x->begin == y->begin  ? (x->bytes > y->bytes) - (x->bytes < y->bytes)
           : x->begin < y->begin ? -1
                                 : 1;
}

// The first letters of the name of a place, read again.
static hr_status shown_of(const tensors *t, const tensor_place *p, int fd, char out[TENSOR_NAME_SHOWN + 1])
{
    char letters[TENSOR_NAME_SHOWN];
    tensor_name name = {.text = letters,
                        .bytes = p->name_bytes < TENSOR_NAME_SHOWN ? p->name_bytes : TENSOR_NAME_SHOWN};
    HR_TRY(file_read_at(fd, p->name_at, letters, name.bytes, t->path, t->err));
    (void)tensor_shown(&name, out);
    return HR_OK;
}

static hr_status same_name(const tensors *t, const tensor_place *a, const tensor_place *b, int fd, bool *same)
{
    char one[NAME_PIECE], other[NAME_PIECE];
    *same = a->name_bytes == b->name_bytes;
    for (uint32_t k = 0; *same && k < a->name_bytes; k += NAME_PIECE) {
        const uint32_t piece = a->name_bytes - k < NAME_PIECE ? a->name_bytes - k : NAME_PIECE;
        HR_TRY(file_read_at(fd, a->name_at + k, one, piece, t->path, t->err));
        HR_TRY(file_read_at(fd, b->name_at + k, other, piece, t->path, t->err));
        *same = memcmp(one, other, piece) == 0;
    }
    return HR_OK;
}

// Against those before it of the same hash, of which a file has hardly ever one.
static hr_status check_name(const tensors *t, uint32_t at, int fd)
{
    char shown[TENSOR_NAME_SHOWN + 1];
    const tensor_place *b = &t->places.data[at];
    for (uint32_t k = at; k > 0 && t->places.data[k - 1].hash == b->hash; k--) {
        bool same = false;
        HR_TRY(same_name(t, &t->places.data[k - 1], b, fd, &same));
        if (same || at - k == HASH_ALIKE_MAX) {
            HR_TRY(shown_of(t, b, fd, shown));
            return HR_FAIL(t->err, PRESET, "%.200s: needed a name for each tensor, had '%s' %s", t->path,
                           shown, same ? "twice" : "among too many that hash alike");
        }
    }
    return HR_OK;
}

static hr_status check_names(tensors *t, int fd)
{
    qsort(t->places.data, t->places.count, sizeof *t->places.data, by_hash);
    for (uint32_t k = 1; k < t->places.count; k++) {
        HR_TRY(check_name(t, k, fd));
    }
    return HR_OK;
}

static hr_status refuse_place(const tensors *t, const tensor_place *p, int fd, uint64_t expected, bool packed)
{
    char shown[TENSOR_NAME_SHOWN + 1];
    HR_TRY(shown_of(t, p, fd, shown));
    return HR_FAIL(t->err, PRESET,
                   "%.200s: needed the data of tensor '%s' %s byte %" PRIu64
                   " of all data, where those before it end, had them at %" PRIu64,
                   t->path, shown, packed ? "at" : "from", expected, p->begin);
}

static hr_status refuse_outside(const tensors *t, const tensor_place *p, int fd, uint64_t room)
{
    char shown[TENSOR_NAME_SHOWN + 1];
    HR_TRY(shown_of(t, p, fd, shown));
    const hr_status status = HR_FAIL(t->err, PRESET,
                                     "%.200s: needed %" PRIu64 " bytes of data from byte %" PRIu64
                                     " on for tensor '%s', had %" PRIu64 " bytes of data in all",
                                     t->path, p->bytes, p->begin, shown, room);
    advise_whole_file(t);
    return status;
}

// A tensor beyond the end of the file lies where a cut file would have it, or nowhere.
static hr_status check_places(tensors *t, int fd, uint64_t room, uint64_t alignment)
{
    const bool packed = alignment == 1;
    uint64_t end = 0;
    if (t->places.count > 0) {
        qsort(t->places.data, t->places.count, sizeof *t->places.data, by_begin);
    }
    for (uint32_t k = 0; k < t->places.count; k++) {
        const tensor_place *p = &t->places.data[k];
        if (packed ? p->begin != end : p->begin < end) {
            return refuse_place(t, p, fd, end, packed);
        }
        const bool is_within = p->begin <= room && p->bytes <= room - p->begin;
        if (!is_within && p->begin - end >= alignment) {
            return refuse_outside(t, p, fd, room);
        }
        end = p->begin + p->bytes;
    }
    if (packed && end < room) {
        return HR_FAIL(t->err, PRESET,
                       "%.200s: needed %" PRIu64 " bytes of data, which its tensors have, had %" PRIu64,
                       t->path, end, room);
    }
    t->data_bytes = end;
    t->held_bytes = end < room ? end : room;
    return HR_OK;
}

hr_status tensors_check(tensors *t, int fd, uint64_t data_at, uint64_t alignment)
{
    if (t->places.count > 1) {
        HR_TRY(check_names(t, fd));
    }
    return check_places(t, fd, t->file_bytes > data_at ? t->file_bytes - data_at : 0, alignment);
}
