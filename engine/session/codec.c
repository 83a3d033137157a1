// SPDX-License-Identifier: Apache-2.0
#include "session/codec.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"

static void plain(codec *c, void *value, size_t bytes)
{
    if (c->out != NULL) {
        wire_put(c->out, value, bytes);
    } else {
        wire_get(c->in, value, bytes);
    }
}

void codec_u64(codec *c, uint64_t *value)
{
    plain(c, value, sizeof *value);
}

void codec_u32(codec *c, uint32_t *value)
{
    plain(c, value, sizeof *value);
}

void codec_real(codec *c, double *value)
{
    plain(c, value, sizeof *value);
}

void codec_amount(codec *c, double *value, double most)
{
    codec_real(c, value);
    if (c->in != NULL && !(*value >= 0 && *value <= most)) {
        *value = (double)NAN;
    }
}

void codec_bool(codec *c, bool *value)
{
    uint32_t word = *value;
    codec_row(c, &word, 2);
    *value = word == 1;
}

void codec_text(codec *c, char *text, size_t size)
{
    if (c->out != NULL) {
        wire_put_text(c->out, text);
    } else {
        wire_get_text(c->in, text, size);
    }
}

void codec_row(codec *c, uint32_t *value, uint32_t count)
{
    codec_u32(c, value);
    if (c->in != NULL && *value >= count) {
        c->in->bad = true;
        *value = 0;
    }
}

void codec_array(codec *c, size_t *count, void **records, size_t record_bytes, size_t least_bytes)
{
    uint64_t length = *count;
    codec_u64(c, &length);
    if (c->in == NULL) {
        return;
    }
    *count = 0;
    *records = NULL;
    if (c->in->bad || length > (c->in->bytes - c->in->at) / least_bytes) {
        c->in->bad = true;
        return;
    }
    *records = hr_calloc((size_t)length, record_bytes);
    c->in->bad = *records == NULL && length > 0;
    *count = *records == NULL ? 0 : (size_t)length;
}

bool codec_is_bad(const codec *c)
{
    return c->out != NULL ? c->out->bad : c->in->bad;
}

bool wire_in_is_done(const wire_in *in)
{
    return !in->bad && in->at == in->bytes;
}
