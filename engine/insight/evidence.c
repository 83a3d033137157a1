// SPDX-License-Identifier: Apache-2.0
#include "insight/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "insight/evidence_heap.h"
#include "insight/evidence_steps.h"
#include "insight/near_full.h"
#include "insight/retry_watch.h"

enum { QUEUE_STEPS = 2 };

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for what a record shows of its blocks");
}

// ---- what survives ---------------------------------------------------------------------------------------------

// Blocks of one size and name, which live at the refusal.
typedef struct block_class {
    uint64_t bytes;
    uint32_t name;
    uint32_t survivors, first, steady; // first: of the first step; steady: of the whole ones behind it
    uint32_t steps_with;               // of these steps, those of which some are left
    uint32_t last_step;                // with survivors
    uint32_t births_step, births,
        first_births;                    // the step of the last birth, how many it had; the step of the first
    uint32_t first_born, last_dead_born; // events
    uint32_t deaths, live, most;         // most: that ever live
    uint32_t all;                        // that live at the refusal
    uint32_t earlier;                    // of these for good, of the steps between the first and its own
    bool crossed,
        ordered; // every death but the first: behind the end of its step; every one in the order of births
    bool single; // at most one birth a step, behind the step of the first
} block_class;

typedef struct survivor {
    uint64_t bytes;
    uint32_t name, born, step;
} survivor;

typedef struct record {
    const trace *t;
    uint32_t device;
    uint32_t end; // of what is looked at
    uint32_t at;  // the refusal, which may lie before
    evidence_steps steps;
    uint32_t *born, *step; // [block_count]; born 1 + event, 0: dead
    VEC(survivor) survivors;
    VEC(block_class) classes;
} record;

static int by_class(const void *left, const void *right)
{
    const survivor *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? -1 : 1)
           : a->name != b->name ? (a->name < b->name ? -1 : 1)
           : a->born != b->born ? (a->born < b->born ? -1 : 1)
                                : 0;
}

static block_class *class_of(const record *r, uint64_t bytes, uint32_t name)
{
    uint32_t low = 0, high = r->classes.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        block_class *c = &r->classes.data[middle];
        if (c->bytes == bytes && c->name == name) {
            return c;
        }
        if (c->bytes < bytes || (c->bytes == bytes && c->name < name)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

// The step that is not over yet, or the first, makes none of it sure.
static void count_survivor(const record *r, block_class *c, const survivor *s)
{
    c->survivors++;
    c->first += s->step == 0;
    if (s->step == 0 || s->step >= r->steps.count) {
        return;
    }
    c->steady++;
    c->steps_with += c->last_step != s->step;
    c->last_step = s->step;
}

static hr_status make_classes(record *r, hr_err *err)
{
    if (r->survivors.count > 0) {
        qsort(r->survivors.data, r->survivors.count, sizeof *r->survivors.data, by_class);
    }
    for (uint32_t k = 0; k < r->survivors.count; k++) {
        const survivor *s = &r->survivors.data[k];
        block_class *c = r->classes.count == 0 ? NULL : &r->classes.data[r->classes.count - 1];
        if (c == NULL || c->bytes != s->bytes || c->name != s->name) {
            c = vec_push(&r->classes);
            if (c == NULL) {
                return no_memory(err);
            }
            *c = (block_class){.bytes = s->bytes,
                               .name = s->name,
                               .first_born = s->born,
                               .births_step = HR_NO_ID,
                               .first_births = HR_NO_ID,
                               .crossed = true,
                               .ordered = true,
                               .single = true};
        }
        count_survivor(r, c, s);
    }
    return HR_OK;
}

static hr_status find_survivors(record *r, hr_err *err)
{
    const trace *t = r->t;
    for (uint32_t k = 0, step = 0; k < r->end; k++) {
        const trace_event *e = &t->events.data[k];
        step += step < r->steps.count && r->steps.ends[step] == k;
        if (e->device != r->device || (e->kind != TRACE_ALLOC && e->kind != TRACE_FREE)) {
            continue;
        }
        r->born[e->block] = e->kind == TRACE_ALLOC ? k + 1 : 0;
        r->step[e->block] = step;
    }
    for (uint32_t b = 0; b < t->block_count; b++) {
        if (r->born[b] == 0) {
            continue;
        }
        const trace_event *e = &t->events.data[r->born[b] - 1];
        survivor *s = vec_push(&r->survivors);
        if (s == NULL) {
            return no_memory(err);
        }
        *s = (survivor){e->bytes, e->name, r->born[b] - 1, r->step[b]};
    }
    return make_classes(r, err);
}

static void note_birth(block_class *c, uint32_t step)
{
    c->first_births = c->first_births == HR_NO_ID ? step : c->first_births;
    c->births = c->births_step == step ? c->births + 1 : 1;
    c->births_step = step;
    c->single = c->single && (c->births == 1 || step == c->first_births);
    c->live++;
    c->most = c->live > c->most ? c->live : c->most;
}

static void note_death(block_class *c, uint32_t born, bool crossed)
{
    c->crossed = c->crossed && (crossed || c->deaths == 0);
    c->ordered = c->ordered && (c->deaths == 0 || born > c->last_dead_born);
    c->last_dead_born = born;
    c->deaths++;
    c->live--;
}

// What the first step left may be weights: of it as much as a later step leaves is taken for leaked.
static uint32_t leaked_first(const record *r, const block_class *c)
{
    const uint32_t steps = r->steps.count > 1 ? r->steps.count - 1 : 1,
                   each = (c->steady + steps - 1) / steps;
    return c->first < each ? c->first : each;
}

// What goes later is no leak. That of the first step counts where none of a later one stands there yet.
static void note_refusal(record *r, uint32_t step)
{
    for (uint32_t k = 0; k < r->classes.count; k++) {
        r->classes.data[k].all = r->classes.data[k].live;
    }
    for (uint32_t k = 0; k < r->survivors.count; k++) {
        const survivor *s = &r->survivors.data[k];
        block_class *c = s->step > 0 && s->step < step ? class_of(r, s->bytes, s->name) : NULL;
        if (c != NULL) {
            c->earlier++;
        }
    }
    for (uint32_t k = 0; k < r->classes.count && step > 0; k++) {
        block_class *c = &r->classes.data[k];
        c->earlier = c->earlier > 0 ? c->earlier : leaked_first(r, c);
    }
}

static void follow_event(record *r, uint32_t k, uint32_t step)
{
    const trace *t = r->t;
    const trace_event *e = &t->events.data[k];
    if (e->kind == TRACE_ALLOC) {
        block_class *c = class_of(r, e->bytes, e->name);
        r->born[e->block] = k + 1;
        r->step[e->block] = step;
        if (c != NULL) {
            note_birth(c, step);
        }
    } else if (e->kind == TRACE_FREE && r->born[e->block] > 0) {
        const uint32_t born = r->born[e->block] - 1;
        block_class *c = class_of(r, t->events.data[born].bytes, t->events.data[born].name);
        if (c != NULL) {
            note_death(c, born, r->step[e->block] < step);
        }
    }
}

// Of the classes that survive, those that do not.
static void follow_classes(record *r)
{
    uint32_t step = 0;
    for (uint32_t k = 0; r->classes.count > 0 && k < r->end; k++) {
        if (k == r->at) {
            note_refusal(r, step);
        }
        step += step < r->steps.count && r->steps.ends[step] == k;
        if (r->t->events.data[k].device == r->device) {
            follow_event(r, k, step);
        }
    }
    if (r->at >= r->end) {
        note_refusal(r, step);
    }
}

// ---- parts -----------------------------------------------------------------------------------------------------

// How many chunks of one size and name go.
typedef struct quota {
    uint64_t bytes;
    uint32_t name; // in the heap's names; HR_NO_ID: none
    uint32_t left;
} quota;

typedef VEC(quota) quotas; // by bytes: classes are

static uint32_t first_of_bytes(const quotas *q, uint64_t bytes)
{
    uint32_t low = 0, high = q->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (q->data[middle].bytes < bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool goes(void *context, const heap_chunk *c)
{
    quotas *q = context;
    for (uint32_t k = first_of_bytes(q, c->requested_bytes);
         k < q->count && q->data[k].bytes == c->requested_bytes; k++) {
        quota *one = &q->data[k];
        if (one->left > 0 && one->name == c->tensor && !c->pending) {
            one->left--;
            return true;
        }
    }
    return false;
}

static uint32_t name_in_heap(const heap_snapshot *p, const char *name)
{
    const uint32_t found = name == NULL ? INTERN_NONE : intern_find(&p->names, name, strlen(name));
    return found == INTERN_NONE ? HR_NO_ID : found;
}

static bool add_quota(quotas *q, const record *r, const heap_snapshot *p, const block_class *c,
                      uint32_t count, oom_part *part)
{
    const char *name = intern_text(&r->t->names, c->name);
    quota *one = vec_push(q);
    if (one == NULL) {
        return false;
    }
    *one = (quota){c->bytes, name_in_heap(p, name), count};
    part->blocks += count;
    part->largest += c->bytes == part->block_bytes ? count : 0;
    if (c->bytes > part->block_bytes) {
        part->block_bytes = c->bytes;
        part->largest = count;
        (void)text_copy(part->name, sizeof part->name, name == NULL ? "" : name);
    }
    return true;
}

static bool is_queue(const record *r, const block_class *c)
{
    return r->steps.count >= QUEUE_STEPS && c->all >= 2 && c->deaths > 1 && c->crossed && c->ordered &&
           c->single && c->first_born > c->last_dead_born;
}

static bool is_leak(const record *r, const block_class *c)
{
    return r->steps.count > LEAK_STEPS && c->steps_with == r->steps.count - 1;
}

static hr_status find_parts(const record *r, const heap_snapshot *p, oom_evidence *out, hr_err *err)
{
    quotas leaks = {0}, queues = {0};
    bool done = true;
    uint64_t steady_bytes = 0;
    for (uint32_t k = 0; k < r->classes.count && done; k++) {
        const block_class *c = &r->classes.data[k];
        if (is_queue(r, c)) {
            done = add_quota(&queues, r, p, c, c->all - 1, &out->queue);
            out->queue.most_bytes += c->bytes * (c->most - 1);
        } else if (is_leak(r, c)) {
            done = c->earlier == 0 || add_quota(&leaks, r, p, c, c->earlier, &out->leak);
            out->leak.most_bytes += c->bytes * (c->survivors - c->first + leaked_first(r, c));
            steady_bytes += c->bytes * c->steady; // over the whole steps
        }
    }
    if (done && leaks.count > 0) {
        out->leak.step_bytes = steady_bytes / (r->steps.count - 1);
        out->leak.without = heap_without_them(p, goes, &leaks);
    }
    if (done && queues.count > 0) {
        out->queue.without = heap_without_them(p, goes, &queues);
    }
    vec_deinit(&leaks);
    vec_deinit(&queues);
    return done ? HR_OK : no_memory(err);
}

static hr_status read_record(record *r, const heap_snapshot *p, oom_evidence *out, hr_err *err)
{
    r->born = hr_calloc((size_t)r->t->block_count + 1, sizeof *r->born);
    r->step = hr_calloc((size_t)r->t->block_count + 1, sizeof *r->step);
    if (r->born == NULL || r->step == NULL) {
        return no_memory(err);
    }
    HR_TRY(evidence_find_steps(r->t, r->device, r->end, &r->steps, err));
    out->steps = r->steps.count;
    out->steps_marked = r->steps.marked;
    out->last_peak_bytes = r->steps.last_peak_bytes;
    if (r->steps.count < QUEUE_STEPS) { // too few for a leak or a queue
        return HR_OK;
    }
    HR_TRY(find_survivors(r, err));
    memset(r->born, 0, ((size_t)r->t->block_count + 1) * sizeof *r->born);
    follow_classes(r);
    return find_parts(r, p, out, err);
}

// ---- the whole -------------------------------------------------------------------------------------------------

static void find_retries(const trace *t, uint32_t device, uint32_t end, oom_evidence *out)
{
    retry_watch watch = {.retries = 0};
    for (uint32_t k = 0; k < end; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->device != device) {
            continue;
        }
        if (e->kind == TRACE_SHRINK) {
            retry_watch_shrink(&watch, e->bytes, e->time_ns);
        } else {
            retry_watch_other(&watch, e->kind == TRACE_GROW, e->time_ns);
        }
    }
    out->retries = watch.retries;
    out->retry_bytes = watch.retry_bytes;
    out->retry_ns = watch.retry_ns;
}

hr_status evidence_of(const trace *t, uint32_t device, uint32_t end, const heap_snapshot *p,
                      oom_evidence *out, hr_err *err)
{
    *out = (oom_evidence){0};
    if (t != NULL) {
        record r = {.t = t, .device = device, .end = t->events.count, .at = end};
        const hr_status status = read_record(&r, p, out, err);
        find_retries(t, device, end < r.end ? end : r.end, out);
        evidence_steps_deinit(&r.steps);
        hr_free(r.born);
        hr_free(r.step);
        vec_deinit(&r.survivors);
        vec_deinit(&r.classes);
        HR_TRY(status);
    }
    if (p->refusal.any) {
        evidence_of_heap(p, out);
    }
    return HR_OK;
}
