// SPDX-License-Identifier: Apache-2.0
#include "train/failure_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"

#include "base/host_mem.h"
#include "insight/diagnose_heap.h"
#include "insight/replay.h"
#include "memory/heap_snapshot.h"
#include "train/engine_impl.h"

// While a dry run is told that did not fit, the heap is the dry run's.
static hr_status take_snapshot(hr_engine *e, heap_snapshot *out, hr_err *err)
{
    return e->refused != NULL ? build_failure_heap(e->refused, &e->knobs, out, err)
                              : heap_snapshot_of(e->build->heap, out, err);
}

void failure_heap_sink(void *engine, const hr_event *event)
{
    hr_engine *e = engine;
    if (event->kind != HR_EVENT_OOM || (e->refused == NULL && e->build == NULL)) {
        return;
    }
    hr_heap_destroy(e->failure_heap);
    e->failure_heap = hr_calloc(1, sizeof *e->failure_heap);
    if (e->failure_heap != NULL && take_snapshot(e, &e->failure_heap->snapshot, NULL) != HR_OK) {
        hr_heap_destroy(e->failure_heap);
        e->failure_heap = NULL;
    }
}

// TensorFlow's names of types.
static const char *tensorflow_type(hr_dtype type)
{
    static const char *const names[HR_DTYPE_COUNT] = {
        [HR_F32] = "float", [HR_F64] = "double", [HR_F16] = "half", [HR_BF16] = "bfloat16",
        [HR_I32] = "int32", [HR_U8] = "uint8",   [HR_I8] = "int8",
    };
    return names[type];
}

static uint32_t keep(hr_heap *heap, const char *words)
{
    return intern_add(&heap->snapshot.names, words, strlen(words));
}

// "128,30,30,32"
static uint32_t keep_shape(hr_heap *heap, const tensor *t)
{
    char words[160] = "";
    size_t used = 0;
    for (uint32_t k = 0; k < t->shape.rank && used < sizeof words; k++) {
        int length =
            snprintf(words + used, sizeof words - used, "%s%" PRId64, k == 0 ? "" : ",", t->shape.dim[k]);
        used += length > 0 ? (size_t)length : 0;
    }
    return keep(heap, words);
}

// Memory is taken for the computation that follows.
static uint32_t keep_op(hr_heap *heap, const program *p, uint32_t n)
{
    char name[HR_NAME_MAX] = "";
    while (n < p->instr_count && (p->instrs[n].op == HR_OP_ALLOC || p->instrs[n].op == HR_OP_FREE)) {
        n++;
    }
    return n < p->instr_count ? keep(heap, program_instr_name(p, &p->instrs[n], name, sizeof name))
                              : INTERN_NONE;
}

static void describe_card(const hr_engine *e, dump_facts *facts)
{
    const allocator_config config = play_allocator_config(&e->knobs, 0);
    const char *name = hr_knob_text(&e->knobs, HR_KNOB_DEVICE_CARD);
    hr_card card;
    if (name[0] != '\0' && hr_card_load(name, &card, NULL) == HR_OK) {
        facts->device_bytes = card.vram_bytes;
        facts->outside_bytes = card.context_bytes;
    }
    facts->limit_is_fraction = config.limit_is_fraction;
    facts->growth = config.growth;
    facts->expandable_segments = config.caching.expandable_segments;
}

void failure_heap_describe(hr_engine *e, const program *p, const executor_oom *facts)
{
    hr_heap *heap = e->failure_heap;
    if (heap == NULL) {
        return;
    }
    uint32_t shape = facts->block ? INTERN_NONE : keep_shape(heap, &p->tensors[facts->tensor]);
    uint32_t op = facts->instr == HR_NO_ID ? keep(heap, "build") : keep_op(heap, p, facts->instr);
    heap->facts = (dump_facts){.op = intern_text(&heap->snapshot.names, op), // texts no longer move
                               .shape = intern_text(&heap->snapshot.names, shape),
                               .type = tensorflow_type(p->tensors[facts->tensor].dtype)};
    describe_card(e, &heap->facts);
}

// While it steps a chunk has the number of its tensor, and in a dry run its name.
static const char *name_of(const void *context, const heap_chunk *c)
{
    const program *p = context;
    return c->tensor < p->tensor_count ? p->tensors[c->tensor].name : NULL;
}

void failure_heap_show(const hr_engine *e, const program *p, bool in_a_step, hr_report_oom *oom)
{
    const heap_snapshot *shown = e->failure_heap == NULL ? NULL : &e->failure_heap->snapshot;
    if (shown != NULL && in_a_step) {
        diagnose_heap(shown, name_of, p, oom);
    } else if (shown != NULL) {
        diagnose_heap(shown, heap_own_name, shown, oom);
    }
}

const hr_heap *hr_engine_failure_heap(const hr_engine *e)
{
    return e->state == HR_ENGINE_OOM && e->keeps_failure_heap ? e->failure_heap : NULL;
}

// The stream tells of an out-of-memory that a dry run found as of any other. The tensor is of a program that never
// became the current one: it has no number there.
void engine_tell_oom(hr_engine *e, const build *b, const play_result *played)
{
    const executor_oom *oom = &played->oom;
    hr_event event = {.kind = HR_EVENT_OOM,
                      .u.memory = {.requested_bytes = oom->requested_bytes,
                                   .in_use_bytes = oom->stats.in_use_bytes,
                                   .pool_bytes = oom->stats.pool_bytes,
                                   .largest_free_bytes = oom->stats.largest_free_bytes,
                                   .tensor = HR_NO_ID}};
    e->bus.category = (uint8_t)played->oom_program->tensors[oom->tensor].category;
    e->bus.instr = oom->instr;
    e->refused = b;
    trace_emit(&e->bus, &event);
    e->refused = NULL;
}
