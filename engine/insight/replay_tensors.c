// SPDX-License-Identifier: Apache-2.0
#include "base/host_mem.h"
#include "insight/replay_plan.h"

static bool asks(const trace_event *e)
{
    return e->kind == TRACE_ALLOC || e->kind == TRACE_REFUSED;
}

static uint32_t count_requests(const hr_replay *r)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < r->trace.events.count; k++) {
        const trace_event *e = &r->trace.events.data[k];
        count += asks(e) && e->device == r->about.device;
    }
    return count;
}

// living[block] is the tensor that the block is now.
static void find(const hr_replay *r, uint32_t *living, replay_tensors *out)
{
    for (uint32_t k = 0; k < r->trace.events.count; k++) {
        const trace_event *e = &r->trace.events.data[k];
        out->of_event[k] = HR_NO_ID;
        if (e->device != r->about.device) {
            continue;
        }
        if (asks(e)) {
            out->of_event[k] = out->count;
            out->rows[out->count] =
                (replay_tensor){.born = k, .died = e->kind == TRACE_REFUSED ? k : HR_NO_ID};
            if (e->kind == TRACE_ALLOC) {
                living[e->block] = out->count;
            }
            out->count++;
        } else if (e->kind == TRACE_FREE) {
            out->of_event[k] = living[e->block];
            out->rows[living[e->block]].died = k;
        }
    }
}

// What stood before the record began is there when it does.
static void number_instrs(const trace *t, replay_tensors *out)
{
    for (uint32_t k = 0; k < t->events.count; k++) {
        const bool is_instr = out->of_event[k] != HR_NO_ID && t->events.data[k].row != TRACE_BEFORE;
        out->instr_of[k] = is_instr ? out->instr_count++ : HR_NO_ID;
    }
}

hr_status replay_tensors_of(const hr_replay *r, replay_tensors *out, hr_err *err)
{
    const uint32_t requests = count_requests(r);
    uint32_t *living = hr_calloc((size_t)r->trace.block_count + 1, sizeof *living);
    *out = (replay_tensors){.of_event = hr_calloc((size_t)r->trace.events.count + 1, sizeof *out->of_event),
                            .instr_of = hr_calloc((size_t)r->trace.events.count + 1, sizeof *out->instr_of),
                            .rows = hr_calloc((size_t)requests + 1, sizeof *out->rows)};
    if (living == NULL || out->of_event == NULL || out->instr_of == NULL || out->rows == NULL) {
        hr_free(living);
        return HR_FAIL(err, NOMEM, "replay: needed host memory for %u requests, had none", requests);
    }
    find(r, living, out);
    number_instrs(&r->trace, out);
    hr_free(living);
    return HR_OK;
}

void replay_tensors_deinit(replay_tensors *t)
{
    hr_free(t->of_event);
    hr_free(t->instr_of);
    hr_free(t->rows);
    *t = (replay_tensors){0};
}

void replay_tensors_name(const replay_tensors *t, const trace *of, hr_event *event)
{
    const uint32_t tag = event->u.memory.tensor;
    event->u.memory.tensor = tag < of->events.count ? t->of_event[tag] : HR_NO_ID;
}
