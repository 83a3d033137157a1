// SPDX-License-Identifier: Apache-2.0
#include "formats/live_names.h"

#include <string.h>

void live_names_note(live_names *n, const hr_event *event, const char *name)
{
    const hr_event_memory *m = &event->u.memory;
    live_entry entry = {.address = m->address, .bytes = m->requested_bytes, .device = event->device};
    if (event->kind == HR_EVENT_FREE) {
        (void)live_take(&n->live, event->device, m->address, &entry);
    } else if (event->kind == HR_EVENT_ALLOC && name != NULL) {
        entry.id = intern_add(&n->names, name, strlen(name));
        if (entry.id != INTERN_NONE) {
            (void)live_put(&n->live, &entry);
        }
    }
}

static hr_status give(const live_names *n, uint8_t device, heap_snapshot *p, heap_chunk *c, hr_err *err)
{
    const live_entry *known = live_find(&n->live, device, c->address);
    c->tensor = HR_NO_ID;
    if (!c->in_use || known == NULL) {
        return HR_OK;
    }
    const char *name = intern_text(&n->names, (uint32_t)known->id);
    c->tensor = intern_add(&p->names, name, strlen(name));
    return c->tensor != INTERN_NONE ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for the names of a heap");
}

hr_status live_names_give(const live_names *n, uint8_t device, heap_snapshot *p, hr_err *err)
{
    p->refusal.tensor = HR_NO_ID;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        HR_TRY(give(n, device, p, &p->chunks.data[k], err));
    }
    return HR_OK;
}

void live_names_deinit(live_names *n)
{
    live_deinit(&n->live);
    intern_deinit(&n->names);
    *n = (live_names){0};
}
