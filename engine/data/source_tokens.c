// SPDX-License-Identifier: Apache-2.0
// Runs of tokens for models that predict each next one: a sample is as many tokens as the model takes, and the token
// behind them; the next sample begins where this one's input ended. Three kinds of file:
//
//   llm.c's .bin   256 numbers of 32 bits: magic 20240520, version 1, how many tokens, zeros; then 16 bits each.
//                  With magic 20240801 and version 7 32 bits each
//   plain .bin     16 bits each from the first byte on, as nanoGPT writes them
//   text           a token is a byte
//
// All little-endian. In a folder the files are one run, in the order of their names; those with val or test among the
// words of their name are held out, else windows of the run are (split.h). What is kept are names and sizes.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/parts.h"
#include "data/source.h"
#include "data/split.h"

enum {
    LLMC_HEADER_BYTES = 1024,
    CHECKED_SAMPLES = 16, // of each set, before the first step
};

typedef struct token_kind {
    const char *label, *ending, *one; // "tokens", ".bin", "token"
    bool has_header;
} token_kind;

static const token_kind kinds[] = {
    {.label = "tokens", .ending = ".bin", .one = "tokens", .has_header = true},
    {.label = "text", .ending = ".txt", .one = "bytes"},
};

enum { KIND_TOKENS, KIND_TEXT };

typedef struct token_source {
    data_source base;
    const token_kind *kind;
    parts parts[DATA_SET_COUNT];
    uint32_t width;   // bytes of a token
    uint32_t length;  // tokens that the model takes
    uint32_t classes; // that it knows
    uint64_t windows; // of the training run
    bool is_split;    // both sets are of that run
} token_source;

// ---- files ----------------------------------------------------------------------------------------------------

static uint32_t u32_at(const uint8_t *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static const struct {
    uint32_t magic, version, width;
} headers[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// Reads llm.c's header. *width is 0 when the file has none.
static hr_status read_header(const char *name, const uint8_t *bytes, uint32_t count, const part *p,
                             uint32_t *width, hr_err *err)
{
    *width = 0;
    for (size_t k = 0; k < sizeof headers / sizeof *headers && count >= 4; k++) {
        if (u32_at(bytes) != headers[k].magic) {
            continue;
        }
        if (count < LLMC_HEADER_BYTES || u32_at(bytes + 4) != headers[k].version) {
            return HR_FAIL(err, DATA,
                           "%s, offset 4: needed version %u and a header of %d bytes, had %u and %u", name,
                           headers[k].version, LLMC_HEADER_BYTES, count < 8 ? 0 : u32_at(bytes + 4), count);
        }
        *width = headers[k].width;
        const uint64_t needed = LLMC_HEADER_BYTES + (uint64_t)u32_at(bytes + 8) * *width;
        if (p->facts.size_bytes != needed) {
            return HR_FAIL(err, DATA,
                           "%s, offset 8: needed %" PRIu64 " bytes for %u tokens of %u, had %" PRIu64, name,
                           needed, u32_at(bytes + 8), *width, p->facts.size_bytes);
        }
    }
    return HR_OK;
}

static hr_status read_beginning(void *context, const char *name, const uint8_t *bytes, uint32_t count,
                                part *p, hr_err *err)
{
    token_source *s = context;
    uint32_t width = 1;
    if (s->kind->has_header) {
        HR_TRY(read_header(name, bytes, count, p, &width, err));
        p->skip_bytes = width > 0 ? LLMC_HEADER_BYTES : 0;
        width = width > 0 ? width : 2;
    }
    if (s->width != 0 && s->width != width) {
        return HR_FAIL(err, DATA, "%s: needed tokens of %u bytes as in the other files, had %u", name,
                       s->width, width);
    }
    s->width = width;
    if (p->facts.size_bytes % width != 0) {
        return HR_FAIL(err, DATA, "%s: needed whole tokens of %u bytes, had %" PRIu64 " bytes", name, width,
                       p->facts.size_bytes);
    }
    return HR_OK;
}

static hr_status open_parts(token_source *s, const char *path, hr_err *err)
{
    parts *train = &s->parts[DATA_TRAIN], *eval = &s->parts[DATA_EVAL];
    if (!folder_is_at(path)) {
        return parts_open(path, NULL, NAME_TRAIN, read_beginning, s, train, err);
    }
    listing files;
    HR_TRY(listing_read(path, s->kind->ending, &files, err));
    hr_status status = parts_open(path, &files, NAME_TRAIN, read_beginning, s, train, err);
    if (status == HR_OK) {
        status = parts_open(path, &files, listing_held_out_use(&files), read_beginning, s, eval, err);
    }
    if (status == HR_OK && train->count == 0) {
        status = HR_FAIL(err, DATA, "%s: needed files *%s to train on, had %s", path, s->kind->ending,
                         files.count == 0 ? "none" : "only such as are held out by their names");
    }
    listing_free(&files);
    return status;
}

// ---- samples --------------------------------------------------------------------------------------------------

static uint64_t windows_of(const token_source *s, const parts *p)
{
    const uint64_t tokens = p->size_bytes / s->width;
    return tokens > 0 ? (tokens - 1) / s->length : 0;
}

static hr_status count_samples(token_source *s, const char *path, hr_err *err)
{
    const parts *train = &s->parts[DATA_TRAIN], *eval = &s->parts[DATA_EVAL];
    s->is_split = eval->count == 0;
    s->windows = windows_of(s, train);
    const uint64_t held_out = s->is_split ? 0 : windows_of(s, eval);
    if (s->windows < (s->is_split ? 2 : 1) || (!s->is_split && held_out == 0)) {
        const bool few = s->windows < (s->is_split ? 2 : 1);
        return HR_FAIL(err, DATA,
                       "%s: needed at least %u %s to %s (%u a sample, and the one behind), had %" PRIu64,
                       path, (few && s->is_split ? 2 : 1) * s->length + 1, s->kind->one,
                       few ? "train on" : "hold out", s->length, (few ? train : eval)->size_bytes / s->width);
    }
    if (s->windows > UINT32_MAX || held_out > UINT32_MAX) {
        return HR_FAIL(err, DATA, "%s: needed fewer than 4294967296 samples, had more", path);
    }
    s->base.info.train_samples = s->is_split ? split_count(s->windows, DATA_TRAIN) : s->windows;
    s->base.info.eval_samples = s->is_split ? split_count(s->windows, DATA_EVAL) : held_out;
    return HR_OK;
}

static uint32_t token_at(const uint8_t *bytes, uint32_t width, uint64_t k)
{
    switch (width) {
    case 1:
        return bytes[k];
    case 2:
        return bytes[2 * k] | (uint32_t)bytes[2 * k + 1] << 8;
    default:
        return u32_at(bytes + 4 * k);
    }
}

static hr_status check_tokens(const token_source *s, const parts *p, uint64_t offset, const uint8_t *bytes,
                              hr_err *err)
{
    uint32_t largest = 0;
    uint64_t place = 0;
    for (uint64_t k = 0; k <= s->length; k++) {
        const uint32_t token = token_at(bytes, s->width, k);
        place = token > largest ? k : place;
        largest = token > largest ? token : largest;
    }
    if (largest < s->classes) {
        return HR_OK;
    }
    char text[PARTS_PLACE_MAX];
    const hr_status status =
        HR_FAIL(err, DATA, "%s: needed tokens below %u, as many as the model knows, had up to %u",
                parts_place(p, offset + place * s->width, text, sizeof text), s->classes, largest);
    hr_err_try(err, "-s pipeline.source=generated, or a model of at least %" PRIu64 " classes",
               (uint64_t)largest + 1);
    return status;
}

static hr_status tokens_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                              data_raw *out, hr_err *err)
{
    const token_source *s = (const token_source *)base;
    const uint64_t number = s->is_split ? split_number(s->windows, set, index) : index;
    const parts *p = &s->parts[s->is_split ? DATA_TRAIN : set];
    const uint64_t offset = number * s->length * s->width;
    HR_TRY(parts_at(p, offset, base->raw_bytes, room, err));
    HR_TRY(check_tokens(s, p, offset, room, err));
    *out = (data_raw){.bytes = room, .size_bytes = base->raw_bytes};
    return HR_OK;
}

static hr_status tokens_write(const data_source *base, const data_raw *raw, uint8_t *scratch,
                              const data_room *to, hr_err *err)
{
    (void)scratch;
    (void)err;
    const token_source *s = (const token_source *)base;
    int32_t *input = to->slot[0], *label = to->slot[1];
    for (uint32_t k = 0; k < s->length; k++) {
        input[k] = (int32_t)token_at(raw->bytes, s->width, k);
        label[k] = (int32_t)token_at(raw->bytes, s->width, k + UINT64_C(1));
    }
    return HR_OK;
}

static void tokens_close(data_source *base)
{
    token_source *s = (token_source *)base;
    parts_close(&s->parts[DATA_TRAIN]);
    parts_close(&s->parts[DATA_EVAL]);
    hr_free(s);
}

// A sample is of the file that it begins in.
static uint64_t tokens_part_begin(const data_source *base, uint32_t file)
{
    const token_source *s = (const token_source *)base;
    const uint64_t tokens = s->parts[DATA_TRAIN].part[file].start / s->width;
    const uint64_t window = tokens / s->length + (tokens % s->length > 0);
    const uint64_t number = window < s->windows ? window : s->windows;
    return s->is_split ? split_train_before(s->windows, number) : number;
}

static const data_source_ops tokens_ops = {
    .fetch = tokens_fetch, .write = tokens_write, .part_begin = tokens_part_begin, .close = tokens_close};

// ---- opening --------------------------------------------------------------------------------------------------

static hr_status open_all(token_source *s, const char *path, hr_err *err)
{
    HR_TRY(open_parts(s, path, err));
    HR_TRY(count_samples(s, path, err));
    s->base.held_bytes = s->parts[DATA_TRAIN].held_bytes + s->parts[DATA_EVAL].held_bytes;
    s->base.raw_bytes = s->base.room_bytes = (s->length + 1) * s->width;
    s->base.parts = s->parts[DATA_TRAIN].count;
    // A vocabulary that is too large is found before the first step.
    return data_source_check_first(&s->base, CHECKED_SAMPLES, err);
}

static bool takes_tokens(const data_form *model)
{
    return model->count == 2 && data_slot_continues(&model->slot[0], &model->slot[1]);
}

static hr_status check_model(const token_kind *kind, const data_form *model, hr_err *err)
{
    char text[64];
    if (!takes_tokens(model)) {
        const hr_status status =
            HR_FAIL(err, DATA, "pipeline.source=%s has ids and the same one further on as labels: needed %s",
                    kind->label, data_slot_text(&model->slot[0], text, sizeof text));
        hr_err_try(err, "-s pipeline.source=generated, or a language model: headroom run gpt2_124m_tiny");
        return status;
    }
    const uint64_t values = data_slot_values(&model->slot[0]);
    return values < UINT32_MAX / 8
               ? HR_OK
               : HR_FAIL(err, DATA, "pipeline.source=%s: needed a model of fewer tokens, had %s", kind->label,
                         data_slot_text(&model->slot[0], text, sizeof text));
}

static hr_status open_kind(const token_kind *kind, const char *path, const data_form *model,
                           data_source **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(check_model(kind, model, err));
    token_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    *s = (token_source){.base = {.ops = &tokens_ops, .info = {.classes = model->slot[0].classes}},
                        .kind = kind,
                        .length = (uint32_t)data_slot_values(&model->slot[0]),
                        .classes = model->slot[0].classes};
    data_source_label(s->base.info.label, kind->label, path);
    const hr_status status = open_all(s, path, err);
    if (status != HR_OK) {
        tokens_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

hr_status source_tokens_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    return open_kind(&kinds[KIND_TOKENS], path, model, out, err);
}

hr_status source_text_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    return open_kind(&kinds[KIND_TEXT], path, model, out, err);
}

bool source_tokens_is_at(const char *path, const data_form *model)
{
    return takes_tokens(model) && files_are_at(path, kinds[KIND_TOKENS].ending);
}

bool source_text_is_at(const char *path, const data_form *model)
{
    return takes_tokens(model) && files_are_at(path, kinds[KIND_TEXT].ending);
}
