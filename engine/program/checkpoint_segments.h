// SPDX-License-Identifier: Apache-2.0
// What a segment of layers keeps, needs at once and costs to compute again, on a draft behind autodiff. Private to program/.
//
// Places: forward instructions lie in their layers, in order; a backward instruction in that of the one whose gradient it takes. So
// a segment's backward is one piece of the list, and what lives in it falls in two: gradients, which are the same whatever is
// dropped (base), and what its own layers made.
#ifndef PROGRAM_CHECKPOINT_SEGMENTS_H
#define PROGRAM_CHECKPOINT_SEGMENTS_H

#include "program/draft.h"

typedef enum segment_keeps { KEEPS_NOTHING, KEEPS_ALL, KEEPS_COSTLY, SEGMENT_KEEPS_COUNT } segment_keeps;

// A storage that a forward instruction writes.
typedef struct segment_value {
    uint32_t born, read;            // forward instructions that write it, and read it last
    uint32_t first_place;           // of its first forward reader
    uint32_t read_place;            // of its last forward reader; UINT32_MAX: read behind all layers
    uint32_t asked, back;           // backward instructions that read it first and last; 0: none
    bool droppable, cheap, on_tape; // on_tape: eager keeps it whether backward reads it or not
    uint64_t bytes;
} segment_value;

// Of a segment that is being measured, by value.
typedef struct segment_again {
    uint32_t read; // the last instruction run again that reads it; HR_NO_ID: none
    bool wanted;   // it runs again
    bool kept;     // from forward to backward
} segment_again;

typedef struct segments {
    const draft *d;
    uint32_t forward_count, node_count, value_count;
    uint32_t *value_of;    // [tensors] that of its owner, HR_NO_ID
    segment_value *values; // in the order of their birth
    segment_again *again;  // [values]
    bool *runs;            // [forward instructions] again
    uint32_t *place;       // [instructions]
    uint32_t *over;        // [forward instructions] the value that its result may be written over, HR_NO_ID
    uint32_t *dies,
        *sibling;   // [instructions] a value that is read there last; [values × 2] the next such one
    uint64_t *cost; // [forward instructions]
    uint64_t *base, *before; // [instructions] gradients with and without the results of the instruction
    uint32_t *begin;         // [nodes + 1] layers
    uint32_t *first_forward, *first_backward, *first_value; // [nodes + 1]
} segments;

// What a segment may drop and what it costs, measured on the draft behind autodiff, of which the first
// forward_count instructions come before backward. may_drop and cheap, [tensors]: what can be made again at all, and what
// with little work of what is kept for its own sake.
HR_MUST_CHECK hr_status segments_create(const draft *d, uint32_t forward_count, const bool *may_drop,
                                        const bool *cheap, segments **out, hr_err *err);
void segments_destroy(segments *s);
uint32_t
segments_count(const segments *s); // of places between layers but the first: node k begins with layer
uint32_t segments_begin(const segments *s, uint32_t node);

typedef struct segment_needs {
    uint64_t kept_bytes;     // from forward to its backward
    uint64_t forward_bytes;  // at most while it is computed first
    uint64_t backward_bytes; // at most in its backward, beside what is kept
    uint64_t together_bytes; // at most in its backward, with what of its own is still kept then
    uint64_t cost;
} segment_needs;

void segments_measure(const segments *s, uint32_t from, uint32_t to, segment_keeps keeps, segment_needs *out);

#endif
