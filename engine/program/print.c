// SPDX-License-Identifier: Apache-2.0
// The listing: one instruction a line, as people read assembly.
//
//   index  phase     live bytes  implementation             instruction  results <- operands
//   index  phase     live bytes    alloc  A       123 B     tensor
#include <inttypes.h>
#include <stdio.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "program/program.h"

enum { LOOP_INDENT = 2, IMPL_COLUMN = 25 }; // as wide as what stands before an allocated tensor

const char *tensor_type_name(const tensor *t)
{
    uint64_t elements = 0;
    const bool counted = !dtype_is_real(t->dtype) && shape_elements(&t->shape, &elements);
    const bool wide = counted && t->bytes == elements * sizeof(int64_t) &&
                      t->padding_bytes == t->bytes - elements * dtype_bytes(t->dtype) && t->padding_bytes > 0;
    return wide ? "int64" : dtype_name(t->dtype);
}

static void print_tensor(const program *p, uint32_t id, FILE *out)
{
    const tensor *t = &p->tensors[id];
    char shape[64];
    fprintf(out, "%s[%s %s", t->name, tensor_type_name(t), shape_text(&t->shape, shape, sizeof shape));
    if (t->layout == HR_LAYOUT_PADDED) {
        const op_operand o = {.shape = t->shape, .dtype = t->dtype, .layout = t->layout};
        fprintf(out, " in rows of %" PRId64, operand_pitch(&o));
    }
    fputc(']', out);
    if (t->storage != id) {
        uint32_t owner = id;
        while (p->tensors[owner].storage != owner) {
            owner = p->tensors[owner].storage;
        }
        fprintf(out, "@%s", p->tensors[owner].name);
        if (t->offset != 0) {
            fprintf(out, "+%" PRIu64, t->offset);
        }
    }
}

void program_print_persistent(const program *p, uint32_t id, FILE *out)
{
    const tensor *t = &p->tensors[id];
    char bytes[HR_BYTES_TEXT_MAX];
    fprintf(out, "%c %10s  ", hr_category_letter(t->category), hr_bytes_human(t->bytes, bytes));
    print_tensor(p, id, out);
    fputc('\n', out);
}

static void print_persistent(const program *p, FILE *out)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        sum += tensor_on_host(&p->tensors[k]) ? 0 : p->tensors[k].bytes;
        fputs("; ", out);
        program_print_persistent(p, k, out);
    }
    char bytes[HR_BYTES_TEXT_MAX];
    fprintf(out, "; persistent: %u tensors, %s\n", p->persistent_count, hr_bytes_human(sum, bytes));
}

static void print_memory_instr(const program *p, const instr *i, FILE *out)
{
    uint32_t id = i->op == HR_OP_ALLOC ? i->out[0] : i->in[0];
    const tensor *t = &p->tensors[id];
    fprintf(out, "  %-6s %c %12" PRIu64 " B  ", op_name(i->op), hr_category_letter(t->category), t->bytes);
    print_tensor(p, id, out);
    fputc('\n', out);
}

static void print_compute_instr(const program *p, const instr *i, FILE *out)
{
    char name[128];
    fprintf(out, "%s", program_instr_name(p, i, name, sizeof name));
    for (uint32_t k = 0; k < i->out_count; k++) {
        fputs(k == 0 ? "  " : ", ", out);
        print_tensor(p, i->out[k], out);
    }
    for (uint32_t k = 0; k < i->in_count; k++) {
        fputs(k == 0 ? " <- " : ", ", out);
        fputs(p->tensors[i->in[k]].name, out);
    }
    if (i->workspace != HR_NO_ID) {
        fprintf(out, "  {workspace %" PRIu64 " B}", p->tensors[i->workspace].bytes);
    }
    if (i->planned != NULL) {
        fprintf(out, "  {planned for %s}", i->planned);
    }
    fputc('\n', out);
}

static void print_order(const program *p, const instr *i, FILE *out)
{
    static const char *const lanes[] = {
        [HR_LANE_COMPUTE] = "compute", [HR_LANE_H2D] = "h2d", [HR_LANE_D2H] = "d2h"};
    fprintf(out, "  %s %s %d", lanes[i->lane], i->op == HR_OP_RECORD ? "records event" : "waits for event",
            i->attr.slot);
    if (i->in_count > 0) {
        fprintf(out, "  (%s)", p->tensors[i->in[0]].name);
    }
    fputc('\n', out);
}

static bool is_memory(hr_op op)
{
    return op == HR_OP_ALLOC || op == HR_OP_FREE || op == HR_OP_RETAIN;
}

void program_print_instr(const program *p, const instr *i, FILE *out)
{
    if (i->op == HR_OP_REPEAT) {
        fprintf(out, "repeat %d\n", i->attr.count);
    } else if (i->op == HR_OP_END) {
        fputs("end\n", out);
    } else if (op_row_of(i->op)->orders) {
        print_order(p, i, out);
    } else if (is_memory(i->op)) {
        print_memory_instr(p, i, out);
    } else {
        print_compute_instr(p, i, out);
    }
}

void program_print_impl(const instr *i, FILE *out)
{
    if (!op_row_of(i->op)->control && !op_row_of(i->op)->orders) {
        fprintf(out, "%-*s  ", IMPL_COLUMN, i->impl == NULL ? "" : i->impl);
    }
}

// The signs of a line, for a first reader.
static void print_legend(FILE *out)
{
    fputs(
        "; a line: number, phase, bytes alive behind it, who computes it, instruction, results <- operands\n"
        "; letters are categories (headroom terms); x@y is a view of y's bytes; {workspace N B} is scratch "
        "of that\n"
        "; instruction alone; rows of N: a row begins N elements behind the last; own: a kernel of "
        "headroom's\n",
        out);
}

void program_print(const program *p, FILE *out)
{
    static const char *const words[] = {
        [PROGRAM_TRAIN] = "training", [PROGRAM_EVALUATE] = "evaluation", [PROGRAM_FEED] = "feeding"};
    fprintf(out, "; %s step, batch %u", words[p->mode], p->batch);
    if (p->rounds > 1) {
        fprintf(out, " x %u = %" PRIu64, p->rounds, (uint64_t)p->batch * p->rounds);
    }
    fprintf(out, ": %u instructions, %.4g GFLOP, %" PRIu64 " B host to device\n", p->instr_count,
            (double)p->flops * 1e-9, p->h2d_bytes);
    if (p->resident) {
        fputs("; the batch stays in its slots, and its data does not change: pipeline.resident\n", out);
    }
    print_legend(out);
    print_persistent(p, out);
    uint64_t live = 0;
    int indent = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        char bytes[HR_BYTES_TEXT_MAX];
        live = program_live_after(p, i, live);
        indent -= i->op == HR_OP_END ? LOOP_INDENT : 0;
        fprintf(out, "%5u  %-8s  %10s  %*s", n, hr_phase_name((hr_phase)i->phase),
                hr_bytes_human(live, bytes), indent, "");
        indent += i->op == HR_OP_REPEAT ? LOOP_INDENT : 0;
        program_print_impl(i, out);
        program_print_instr(p, i, out);
    }
}
