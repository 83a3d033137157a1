// SPDX-License-Identifier: Apache-2.0
// One walk over the fields of a record that writes them into a body or reads them out of it: what is written and what
// is read cannot drift apart. Reading checks every number that has a range; what is out of it makes the body bad.
#ifndef SESSION_CODEC_H
#define SESSION_CODEC_H

#include "session/wire.h"

typedef struct codec {
    wire_out *out; // NULL: reads
    wire_in *in;   // NULL: writes
} codec;

void codec_u64(codec *c, uint64_t *value);
void codec_u32(codec *c, uint32_t *value);
void codec_real(codec *c, double *value);
// Finite and 0 … most; whatever else comes is read as NaN: it does not apply.
void codec_amount(codec *c, double *value, double most);
void codec_bool(codec *c, bool *value);
void codec_text(codec *c, char *text, size_t size);
// A row of a table: 0 … count − 1.
void codec_row(codec *c, uint32_t *value, uint32_t count);
// The length of an array of which every record has at least `least_bytes` in the body; `records` is what it is to be
// read into: allocated here, the caller's to hr_free.
void codec_array(codec *c, size_t *count, void **records, size_t record_bytes, size_t least_bytes);
bool codec_is_bad(const codec *c);
// Whether a body was read whole and well: nothing left behind the last field.
bool wire_in_is_done(const wire_in *in);

#endif
