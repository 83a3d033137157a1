// SPDX-License-Identifier: Apache-2.0
// The machine that a pickle is a programme for: what pickle.c and pickle_opcodes.c share, nobody else's.
#ifndef FORMATS_PICKLE_MACHINE_H
#define FORMATS_PICKLE_MACHINE_H

#include "base/vec.h"
#include "formats/pickle.h"
#include "formats/pickle_memo.h"

enum {
    PICKLE_STACK_MAX = 1 << 16,
    PICKLE_MARKS_MAX = 1000,
    PICKLE_HAND_ON = 1024,   // items of a list that may wait for their APPENDS
    PICKLE_PARTS = 64,       // … and that an item may consist of before it is put together
    PICKLE_OPCODE_BYTES = 9, // the longest with its argument, texts not counted
    PICKLE_KIND_SHIFT = 28   // in the memo: kind and word
};

typedef struct pickle_mark {
    uint32_t at;    // in the stack
    bool handed_on; // items of a list went on already: only APPENDS can follow
} pickle_mark;

struct pickle {
    input *in;
    const pickle_visitor *visitor;
    VEC(pickle_value) stack;
    VEC(pickle_mark) marks;
    uint32_t floor; // below it lies what was there before the last mark
    pickle_memo memo;
    uint64_t offset; // of the opcode that is running
    bool stopped;
};

typedef struct pickle_opcode {
    const char *name; // NULL: there is none
    uint8_t argument_bytes;
    bool could_run_code;                                               // run is NULL then
    hr_status (*run)(pickle *p, const uint8_t *argument, hr_err *err); // NULL: refused
} pickle_opcode;

extern const pickle_opcode pickle_opcodes[256];

hr_status pickle_refuse(const pickle *p, uint8_t byte, hr_err *err);
hr_status pickle_no_memory(const pickle *p, hr_err *err);
hr_status pickle_cut_short(const pickle *p, hr_err *err); // the input's error, or that it ended
// For one value more, where the stack is full or has many that wait for their list.
HR_MUST_CHECK hr_status pickle_make_room(pickle *p, hr_err *err);
HR_MUST_CHECK static inline hr_status pickle_push(pickle *p, pickle_value value, hr_err *err)
{
    if (p->stack.count == p->stack.capacity || p->stack.count - p->floor >= PICKLE_HAND_ON + PICKLE_PARTS) {
        HR_TRY(pickle_make_room(p, err));
    }
    p->stack.data[p->stack.count++] = value;
    return HR_OK;
}
// The value `depth` below the top, which has to be there since the last mark.
HR_MUST_CHECK hr_status pickle_below(pickle *p, uint32_t depth, pickle_value **out, hr_err *err);
// Takes the last mark away and says how many values stand behind it; they stay.
HR_MUST_CHECK hr_status pickle_pop_mark(pickle *p, bool of_list, uint32_t *count, hr_err *err);
// Hands items to the visitor, and keeps the container's word where the memo has it.
HR_MUST_CHECK hr_status pickle_fill(pickle *p, pickle_value *into, const pickle_value *items, uint32_t count,
                                    hr_err *err);

#endif
