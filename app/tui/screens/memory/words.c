// SPDX-License-Identifier: Apache-2.0
// What the panes of the Memory screen call a tensor, a category and a step.
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/screens/memory/memory.h"

char memory_letter(uint8_t category)
{
    return category < HR_CATEGORY_COUNT ? hr_category_letter((hr_category)category) : '?';
}

// The step plan may be of other knobs than what runs: a tensor of it is the same one where category and bytes are.
const hr_step_plan_tensor *memory_tensor(const feed *f, uint32_t tensor, uint8_t category,
                                         uint64_t requested_bytes)
{
    const hr_step_plan *p = feed_step_plan(f);
    if (p == NULL || tensor >= p->tensor_count) {
        return NULL;
    }
    const hr_step_plan_tensor *t = &p->tensors[tensor];
    return t->category == category && t->bytes == requested_bytes ? t : NULL;
}

const char *memory_tensor_name(const feed *f, uint32_t tensor, uint8_t category, uint64_t requested_bytes,
                               char text[HR_NAME_MAX])
{
    const hr_step_plan_tensor *t = memory_tensor(f, tensor, category, requested_bytes);
    if (t != NULL) {
        snprintf(text, HR_NAME_MAX, "%s", hr_step_plan_text(feed_step_plan(f), t->name));
    } else if (tensor != HR_NO_ID) {
        snprintf(text, HR_NAME_MAX, "tensor %" PRIu32, tensor);
    } else {
        snprintf(text, HR_NAME_MAX, "%s",
                 category < HR_CATEGORY_COUNT ? hr_category_name((hr_category)category) : "unknown");
    }
    return text;
}

const char *memory_step_text(const heap_scene *v, char text[MEMORY_TEXT])
{
    switch (v->step.kind) {
    case HEAP_STEP_BUILD:
        snprintf(text, MEMORY_TEXT, "build");
        break;
    case HEAP_STEP_TRAINED:
        snprintf(text, MEMORY_TEXT, "step %" PRIu64, v->step.number);
        break;
    case HEAP_STEP_REFUSED:
        snprintf(text, MEMORY_TEXT, "refused in step %" PRIu64, v->step.number + 1);
        break;
    case HEAP_STEP_PLANNED:
        snprintf(text, MEMORY_TEXT, "refused, planned");
        break;
    case HEAP_STEP_NONE:
        snprintf(text, MEMORY_TEXT, "no step yet");
        break;
    }
    return text;
}
