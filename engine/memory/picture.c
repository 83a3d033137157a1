// SPDX-License-Identifier: Apache-2.0
#include "memory/picture.h"

#include "base/text.h"

typedef struct painter {
    heap_picture *picture;
    bool failed;
} painter;

static bool add_chunk(void *context, const heap_chunk *c)
{
    painter *p = context;
    heap_chunk *added = vec_push(&p->picture->chunks);
    if (added == NULL) {
        p->failed = true;
        return false;
    }
    *added = *c;
    return true;
}

hr_status heap_picture_of(const allocator *a, heap_picture *out, hr_err *err)
{
    painter p = {.picture = out};
    *out = (heap_picture){.counters = allocator_get_stats(a), .refusal = a->refusal};
    (void)text_copy(out->source, sizeof out->source, a->ops->name);
    out->next_region_bytes = a->ops->next_region == NULL ? 0 : a->ops->next_region(a);
    a->ops->walk(a, add_chunk, &p);
    if (p.failed) {
        heap_picture_deinit(out);
        return HR_FAIL(err, NOMEM, "%s allocator: needed host memory to show its heap, had none",
                       a->ops->name);
    }
    return HR_OK;
}
