// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/step_read.h"

#include <stdio.h>
#include <string.h>

const char *step_line(const hr_step_plan *p, uint32_t instr)
{
    const char *line = instr < p->instr_count ? hr_step_plan_text(p, p->instrs[instr].line) : "";
    return line + strspn(line, " ");
}

const char *step_short_line(const hr_step_plan *p, uint32_t instr, char *text, size_t size)
{
    const hr_step_plan_instr *i = &p->instrs[instr];
    if (i->is_alloc || i->is_free) {
        const hr_step_plan_tensor *t = &p->tensors[i->tensor];
        const char *dtype = hr_step_plan_text(p, t->dtype), *shape = hr_step_plan_text(p, t->shape);
        const bool typed = dtype[0] != '\0'; // of a recorded step bytes are bytes
        snprintf(text, size, "%s %s%s%s%s%s%s", i->is_alloc ? "alloc" : "free", hr_step_plan_text(p, t->name),
                 typed ? "[" : "", dtype, typed ? " " : "", typed ? shape : "", typed ? "]" : "");
    } else {
        snprintf(text, size, "%s%s", i->again ? "again: " : "", step_line(p, instr));
    }
    return text;
}

const char *step_name(const hr_step_plan *p, uint32_t instr)
{
    const hr_step_plan_instr *i = &p->instrs[instr];
    return i->is_alloc || i->is_free ? step_tensor_name(p, i->tensor) : hr_step_plan_text(p, i->name);
}

const char *step_tensor_name(const hr_step_plan *p, uint32_t tensor)
{
    return tensor < p->tensor_count ? hr_step_plan_text(p, p->tensors[tensor].name) : "";
}

const char *step_layer_name(const hr_step_plan *p, uint32_t layer)
{
    return layer < p->layer_count ? hr_step_plan_text(p, p->layers[layer].name) : "—";
}

bool step_tells_categories(const hr_step_plan *p)
{
    return p->tensor_count == 0 || p->tensors[0].category < HR_CATEGORY_COUNT;
}

bool step_is_reached(const hr_step_plan *p, uint32_t instr)
{
    return p->fits || (p->refused_instr != HR_NO_ID && instr < p->refused_instr);
}

double step_change_bytes(const hr_step_plan *p, uint32_t instr)
{
    const hr_step_plan_instr *i = &p->instrs[instr];
    double bytes = i->tensor < p->tensor_count ? (double)p->tensors[i->tensor].bytes : 0;
    return i->is_alloc ? bytes : i->is_free ? -bytes : 0;
}
