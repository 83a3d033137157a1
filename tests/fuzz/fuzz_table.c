// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table of two floats and a class: its rows and its numbers. Rows must be found the same in pieces.
#include <string.h>

#include "data/rows.h"
#include "fuzz/fuzz_source.h"

enum { PIECE_BYTES = 5 };

// The offsets of rows, mixed into one number.
static uint64_t walk(const uint8_t *data, size_t size, size_t most)
{
    row_walk w = {0};
    uint64_t sum = 0;
    for (size_t at = 0; at < size;) {
        const size_t left = size - at;
        bool ended;
        const size_t passed = row_walk_on(&w, (const char *)data + at, left < most ? left : most, &ended);
        fuzz_must(passed > 0 && passed <= left, "a walk that stands still");
        at += passed;
        fuzz_must(w.offset == at && (!ended || w.begin < w.offset), "a row outside the text");
        sum = ended ? sum * 31 + w.begin * 7 + w.offset : sum;
    }
    return sum * 31 + row_walk_is_open(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const data_form form = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {2}},
                                     {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    fuzz_must(walk(data, size, size) == walk(data, size, PIECE_BYTES), "other rows in pieces than at once");
    fuzz_plain_source(source_csv_open, &form, data, size);
    return 0;
}
