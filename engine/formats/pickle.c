// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/pickle_machine.h"

// ---- errors ---------------------------------------------------------------------------------------------------

hr_status pickle_fail(const pickle *p, hr_err *err, const char *format, ...)
{
    char text[HR_ERR_TEXT_MAX / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return HR_FAIL(err, READ, "%s: byte %" PRIu64 ": %s", p->in->name, p->offset, text);
}

hr_status pickle_no_memory(const pickle *p, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s: needed host memory to read on at byte %" PRIu64 ", had none", p->in->name,
                   p->offset);
}

hr_status pickle_cut_short(const pickle *p, hr_err *err)
{
    HR_TRY(input_status(p->in, err));
    return pickle_fail(p, err, "the file ends within the pickle");
}

const char *pickle_kind_name(uint8_t kind)
{
    static const char *const names[] = {
        [PICKLE_NONE] = "None",     [PICKLE_BOOL] = "a truth value", [PICKLE_WHOLE] = "a whole number",
        [PICKLE_REAL] = "a number", [PICKLE_TEXT] = "a text",        [PICKLE_BYTES] = "bytes",
        [PICKLE_TUPLE] = "a tuple", [PICKLE_LIST] = "a list",        [PICKLE_DICT] = "a dictionary",
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "nothing known";
}

// ---- the stack ------------------------------------------------------------------------------------------------

hr_status pickle_fill(pickle *p, pickle_value *into, const pickle_value *items, uint32_t count, hr_err *err)
{
    if (count == 0) {
        return HR_OK;
    }
    if (into->kind == PICKLE_DICT && count % 2 != 0) {
        return pickle_fail(p, err, "needed a value for every key, had %" PRIu32 " of both", count);
    }
    if (into->again) {
        return pickle_fail(p, err, "%s is filled again that was handed on before",
                           pickle_kind_name(into->kind));
    }
    HR_TRY(p->visitor->fill(p->visitor->context, p, into, items, count, err));
    if (into->kind != PICKLE_TUPLE && into->u.memo != 0) {
        uint32_t word = into->lasting ? into->word : 0;
        *pickle_memo_at(&p->memo, into->u.memo - 1) = (uint32_t)into->kind << PICKLE_KIND_SHIFT | word;
    }
    return HR_OK;
}

// A list whose items wait behind a mark gets them as they come: writers there are that put a million between two marks.
// The youngest stay: they may be parts of an item that is not whole yet.
static hr_status hand_on(pickle *p, hr_err *err)
{
    pickle_value *list = &p->stack.data[p->floor - 1], *items = list + 1;
    uint32_t count = p->stack.count - p->floor - PICKLE_PARTS;
    HR_TRY(pickle_fill(p, list, items, count, err));
    memmove(items, items + count, PICKLE_PARTS * sizeof *items);
    p->stack.count -= count;
    p->marks.data[p->marks.count - 1].handed_on = true;
    return HR_OK;
}

hr_status pickle_make_room(pickle *p, hr_err *err)
{
    if (p->floor > 0 && p->stack.count - p->floor >= PICKLE_HAND_ON + PICKLE_PARTS &&
        p->stack.data[p->floor - 1].kind == PICKLE_LIST) {
        return hand_on(p, err);
    }
    if (p->stack.count == PICKLE_STACK_MAX) {
        return pickle_fail(p, err, "needed at most %d values at once, has more", PICKLE_STACK_MAX);
    }
    return vec_reserve_((void **)&p->stack.data, &p->stack.capacity, p->stack.count + 1,
                        sizeof *p->stack.data)
               ? HR_OK
               : pickle_no_memory(p, err);
}

hr_status pickle_below(pickle *p, uint32_t depth, pickle_value **out, hr_err *err)
{
    if (p->stack.count - p->floor <= depth) {
        return pickle_fail(p, err, "needed %" PRIu32 " values, had %" PRIu32, depth + 1,
                           p->stack.count - p->floor);
    }
    *out = &p->stack.data[p->stack.count - 1 - depth];
    return HR_OK;
}

hr_status pickle_pop_mark(pickle *p, bool of_list, uint32_t *count, hr_err *err)
{
    if (p->marks.count == 0) {
        return pickle_fail(p, err, "needed a MARK, had none");
    }
    pickle_mark last = p->marks.data[--p->marks.count];
    p->floor = p->marks.count == 0 ? 0 : p->marks.data[p->marks.count - 1].at;
    if (last.handed_on && !of_list) {
        return pickle_fail(p, err, "needed at most %d items, had more", PICKLE_HAND_ON);
    }
    *count = p->stack.count - last.at;
    return HR_OK;
}

// ---- reading --------------------------------------------------------------------------------------------------

static hr_status run(pickle *p, hr_err *err)
{
    while (!p->stopped) {
        size_t ahead = p->in->end - p->in->at;
        if (ahead < PICKLE_OPCODE_BYTES) {
            ahead = input_ahead(p->in, PICKLE_OPCODE_BYTES);
        }
        p->offset = input_offset(p->in);
        const uint8_t *here = (const uint8_t *)input_here(p->in);
        const pickle_opcode *op = ahead == 0 ? NULL : &pickle_opcodes[here[0]];
        if (op == NULL || ahead < 1u + op->argument_bytes) {
            return pickle_cut_short(p, err);
        }
        if (op->run == NULL) {
            return pickle_refuse(p, here[0], err);
        }
        input_pass(p->in, 1u + op->argument_bytes);
        HR_TRY(op->run(p, here + 1, err));
    }
    if (p->stack.count != 1 || p->marks.count != 0) {
        return pickle_fail(p, err, "needed one value at the end, had %" PRIu32, p->stack.count);
    }
    return HR_OK;
}

hr_status pickle_read(input *in, const pickle_visitor *visitor, pickle_value *top, hr_err *err)
{
    pickle *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to read it", in->name, sizeof *p);
    }
    p->in = in;
    p->visitor = visitor;
    hr_status status = run(p, err);
    if (status == HR_OK) {
        *top = p->stack.data[0];
    }
    vec_deinit(&p->stack);
    vec_deinit(&p->marks);
    pickle_memo_deinit(&p->memo);
    hr_free(p);
    return status;
}

bool pickle_is_pickle(const char *start, size_t bytes)
{
    return bytes >= 2 && (uint8_t)start[0] == 0x80 && start[1] >= 2 && start[1] <= 5;
}
