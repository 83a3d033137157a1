// SPDX-License-Identifier: Apache-2.0
#include "insight/times.h"

#include <inttypes.h>

#include "headroom/event.h"

#include "device/cost.h"

// RFC 4180: names are untrusted.
static void print_quoted(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    }
    fputs("\",", out);
}

static void print_tensors(const program *p, const uint32_t *ids, uint32_t count, FILE *out)
{
    char shape[64];
    for (uint32_t k = 0; k < count; k++) {
        const tensor *t = &p->tensors[ids[k]];
        fprintf(out, "%s%s %s", k == 0 ? "" : "; ", dtype_name(t->dtype),
                shape_text(&t->shape, shape, sizeof shape));
    }
    fputc(',', out);
}

static void print_times(const program *p, uint32_t at, const instr_times *times, const device_ops *device,
                        void *context, FILE *out)
{
    const bool tells = cost_basis(device, context) != HR_TIME_UNKNOWN;
    const uint64_t steps = times->steps < 2 ? 0 : times->steps - 1;
    fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
            steps < INSTR_TIMES_STEPS ? steps : INSTR_TIMES_STEPS, instr_times_median_ns(times, at),
            instr_times_least_ns(times, at));
    if (tells) {
        fprintf(out, "%" PRIu64, device->duration_ns(context, p, &p->instrs[at]));
    }
    fputc('\n', out);
}

static void print_instr(const program *p, uint32_t at, FILE *out)
{
    const instr *i = &p->instrs[at];
    char name[192];
    fprintf(out, "%u,%s,", at, hr_phase_name((hr_phase)i->phase));
    print_quoted(program_instr_name(p, i, name, sizeof name), out);
    fprintf(out, "%s,%s,", cost_family_name(cost_family_of(i)), dtype_name(cost_type_of(p, i)));
    print_quoted(i->impl == NULL ? "" : i->impl, out);
    fprintf(out, "%u,", i->behind);
    print_tensors(p, i->out, i->out_count, out);
    print_tensors(p, i->in, i->in_count, out);
    fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", i->flops, i->bytes_moved,
            i->workspace == HR_NO_ID ? 0 : p->tensors[i->workspace].bytes);
}

void times_print(const program *p, const instr_times *times, const device_ops *device, void *context,
                 FILE *out)
{
    fputs(TIMES_HEADINGS, out);
    for (uint32_t at = 0; at < p->instr_count; at++) {
        if (cost_family_of(&p->instrs[at]) != COST_NOTHING) {
            print_instr(p, at, out);
            print_times(p, at, times, device, context, out);
        }
    }
}
