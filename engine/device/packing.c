// SPDX-License-Identifier: Apache-2.0
#include "device/packing.h"

#include "base/host_mem.h"

// One list of requests, owned.
typedef struct requests {
    pack_buffer *buffers;
    uint32_t *tensors;
    uint32_t count;
} requests;

static hr_status requests_init(requests *r, uint32_t most, hr_err *err)
{
    r->buffers = hr_calloc(most, sizeof *r->buffers);
    r->tensors = hr_calloc(most, sizeof *r->tensors);
    if (most > 0 && (r->buffers == NULL || r->tensors == NULL)) {
        return HR_FAIL(err, NOMEM, "no host memory for the lifetimes of %u tensors", most);
    }
    return HR_OK;
}

static void requests_deinit(requests *r)
{
    hr_free(r->buffers);
    hr_free(r->tensors);
}

static void add(requests *r, const program *p, uint32_t id, uint32_t birth, uint32_t death)
{
    if (p->tensors[id].bytes > 0 && !tensor_on_host(&p->tensors[id])) { // no bytes, no request
        r->tensors[r->count] = id;
        r->buffers[r->count++] = (pack_buffer){birth, death, p->tensors[id].bytes};
    }
}

// A tensor that is allocated more than once keeps one place from its first birth to its last end.
static void find_lifetimes(const program *p, uint32_t *birth, uint32_t *death)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_ALLOC) {
            birth[i->out[0]] = birth[i->out[0]] == 0 ? n + 1 : birth[i->out[0]];
            death[i->out[0]] = 0;
        } else if (i->op == HR_OP_FREE) {
            death[i->in[0]] = n + 1;
        }
    }
}

static hr_status collect_step(const program *p, requests *r, uint32_t *birth, uint32_t *death, hr_err *err)
{
    HR_TRY(requests_init(r, p->tensor_count, err));
    find_lifetimes(p, birth, death);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (birth[k] != 0 && death[k] == 0) {
            hr_status status = HR_FAIL(err, CHECK, "%s is never freed: needed allocator.kind bfc, had static",
                                       p->tensors[k].name);
            hr_err_try(err, "-s allocator.kind=bfc");
            return status;
        }
        if (birth[k] != 0) {
            add(r, p, k, birth[k], death[k]);
        }
    }
    return HR_OK;
}

static hr_status step_requests(const program *p, requests *r, hr_err *err)
{
    uint32_t *birth = hr_calloc(p->tensor_count, sizeof *birth);
    uint32_t *death = hr_calloc(p->tensor_count, sizeof *death);
    hr_status status = HR_OK;
    if (p->tensor_count > 0 && (birth == NULL || death == NULL)) {
        status = HR_FAIL(err, NOMEM, "no host memory for the lifetimes of %u tensors", p->tensor_count);
    } else {
        status = collect_step(p, r, birth, death, err);
    }
    hr_free(birth);
    hr_free(death);
    return status;
}

static hr_status resident_requests(const program *p, requests *r, hr_err *err)
{
    HR_TRY(requests_init(r, p->persistent_count, err));
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        add(r, p, k, 0, 1);
    }
    return HR_OK;
}

static allocator_requests borrowed(const requests *r)
{
    return (allocator_requests){.buffers = r->buffers, .tensors = r->tensors, .count = r->count};
}

// lists[0] is what is resident, lists[k + 1] and steps[k] the step of programs[k].
static hr_status announce(allocator *heap, const program *const *programs, uint32_t count, requests *lists,
                          allocator_requests *steps, uint64_t *needed_bytes, hr_err *err)
{
    HR_TRY(resident_requests(programs[0], &lists[0], err));
    for (uint32_t k = 0; k < count; k++) {
        if (programs[k] != NULL) {
            HR_TRY(step_requests(programs[k], &lists[k + 1], err));
        }
        steps[k] = borrowed(&lists[k + 1]);
    }
    allocator_plan plan = {.resident = borrowed(&lists[0]), .steps = steps, .step_count = count};
    return allocator_plan_ahead(heap, &plan, needed_bytes, err);
}

hr_status packing_announce(allocator *heap, const program *const *programs, uint32_t count,
                           uint64_t *needed_bytes, hr_err *err)
{
    *needed_bytes = 0;
    if (!allocator_plans(heap)) {
        return HR_OK;
    }
    requests *lists = hr_calloc((size_t)count + 1, sizeof *lists);
    allocator_requests *steps = hr_calloc(count, sizeof *steps);
    hr_status status = HR_OK;
    if (lists == NULL || steps == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the lifetimes of %u programs", count);
    } else {
        status = announce(heap, programs, count, lists, steps, needed_bytes, err);
    }
    for (uint32_t k = 0; lists != NULL && k <= count; k++) {
        requests_deinit(&lists[k]);
    }
    hr_free(lists);
    hr_free(steps);
    return status;
}
