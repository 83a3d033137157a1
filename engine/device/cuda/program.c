// SPDX-License-Identifier: Apache-2.0
// A program's kernels, its pinned host memory and its events: everything that a step needs is made here.
#include <string.h>

#include "headroom/units.h"

#include "attention_pair.h"
#include "base/host_mem.h"
#include "graph_library.h"
#include "outside.h"
#include "step.h"

enum {
    HOST_ALIGNMENT = 256,
    NAME_BYTES = 192,
    ATTEMPTS = 3, // behind the first: a library has at most two forms of one operation
    CAPTURE_AFTER =
        2, // steps alike before one is captured: libraries have made then what they make at first use
};

typedef enum handing { AS_WANTED, ALL_PLAIN, NOT_AS_WANTED } handing;

// Does the program hand over in the library's order what the answer wants so, and nothing else? Where nothing is wanted so,
// the reorders copy.
static handing handing_of(const program *p, const instr *i, const target_answer *answer)
{
    uint32_t wanted = 0, given = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *r = &p->instrs[n];
        if (r->op != HR_OP_REORDER || r->attr.peer != i->id) {
            continue;
        }
        given++;
        for (uint8_t k = 0; k < answer->reorder_count; k++) {
            wanted += answer->reorder[k].operand == r->attr.peer_operand;
        }
    }
    return given == wanted && wanted == answer->reorder_count ? AS_WANTED
           : answer->reorder_count == 0                       ? ALL_PLAIN
                                                              : NOT_AS_WANTED;
}

// The program stands on the answer of its plan. An implementation that wants more now would write past its workspace, or
// read weights in another order.
static hr_status suits_plan(const cuda_loaded *l, const instr *i, cuda_prepared *k,
                            const target_answer *answer, hr_err *err)
{
    char name[NAME_BYTES];
    const handing handed = handing_of(l->source, i, answer);
    k->plain = handed == ALL_PLAIN;
    if (answer->workspace_bytes <= k->workspace_bytes && handed != NOT_AS_WANTED) {
        return HR_OK;
    }
    return HR_FAIL(err, DEVICE, "%s: this card would run '%s', which is not what was planned",
                   program_instr_name(l->source, i, name, sizeof name), answer->impl);
}

static hr_status pick(cuda_loaded *l, const instr *i, cuda_prepared *k, target_answer *answer, hr_err *err)
{
    HR_TRY(cuda_pick(l->device, &k->query, k->workspace_bytes, &k->impl, answer, err));
    return suits_plan(l, i, k, answer, err);
}

static hr_status find_kernels(cuda_loaded *l, cuda_prepared *k, hr_err *err)
{
    char name[CUDA_STAGES_MAX][CUDA_NAME_MAX];
    uint32_t count = 0;
    if (k->impl->kernel != NULL) {
        k->impl->kernel(&k->query, name[0]);
        count = 1;
    } else if (k->impl->stages != NULL) {
        count = k->impl->stages(&k->query, name);
    }
    for (uint32_t n = 0; n < count; n++) {
        HR_TRY(cuda_function(l->device, k->impl->module, name[n], &k->stage[n], err));
    }
    return HR_OK;
}

static hr_status make_ready(cuda_loaded *l, const instr *i, cuda_prepared *k, hr_err *err)
{
    HR_TRY(find_kernels(l, k, err));
    return k->impl->prepare == NULL
               ? HR_OK
               : k->impl->prepare(l->device, l->source, i, &k->query, k->workspace_bytes, &k->state, err);
}

// A program may be loaded again behind a knob change.
static const char *planned_of(const instr *i)
{
    return i->planned == NULL ? i->impl : i->planned;
}

// Not "own direct, not cudnn", which is the same with its reason.
static bool is_planned(const instr *i, const char *name)
{
    const size_t length = strlen(name);
    const char *planned = planned_of(i);
    return planned != NULL && strncmp(planned, name, length) == 0 &&
           (planned[length] == '\0' || planned[length] == ',');
}

// What runs is what is told. A refusal may be older than this load: then the library says it again.
static hr_status name_prepared(cuda_loaded *l, const instr *i, cuda_prepared *k, const target_answer *answer,
                               hr_err *why, hr_err *err)
{
    const char *chosen = k->impl->chosen == NULL ? NULL : k->impl->chosen(k->state);
    k->name = chosen == NULL ? answer->impl : target_impl_name(k->impl->name, chosen);
    if (is_planned(i, k->name)) {
        k->name = planned_of(i);
        return HR_OK;
    }
    if (why->status == HR_OK) {
        cuda_refusal(l->device, &k->query, k->workspace_bytes, k->impl, why);
    }
    k->reason = why->status == HR_OK ? NULL : hr_strdup(why->sentence);
    return why->status == HR_OK || k->reason != NULL
               ? HR_OK
               : HR_FAIL(err, NOMEM, "no host memory for what a library said");
}

void cuda_prepared_of(void *kernels, uint32_t at, device_prepared *out)
{
    const cuda_prepared *k = &((const cuda_loaded *)kernels)->instrs[at];
    *out = (device_prepared){.impl = k->name, .reason = k->reason};
}

// cuBLASLt cannot be asked before a card is there, and promises again what it refused: then our own kernels do it, where there are
// any and the workspace is theirs, too. `why` stays what the library said.
static hr_status make_own(cuda_loaded *l, const instr *i, cuda_prepared *k, target_answer *answer)
{
    HR_TRY(cuda_pick_own(l->device, &k->query, &k->impl, answer, NULL));
    HR_TRY(suits_plan(l, i, k, answer, NULL));
    return make_ready(l, i, k, NULL);
}

// What a library promised and cannot make on this card it does not promise again: the next implementation is taken.
static hr_status prepare_one(cuda_loaded *l, const instr *i, cuda_prepared *k, hr_err *err)
{
    target_answer answer = {0};
    hr_err why = {.status = HR_OK}; // what was planned was refused
    k->scalar_slot = HR_NO_ID;
    if (!op_needs_kernel(i->op)) {
        return HR_OK;
    }
    program_query(l->source, i, &k->query);
    k->workspace_bytes = program_scratch_bytes(l->source, i);
    HR_TRY(pick(l, i, k, &answer, err));
    hr_status status = make_ready(l, i, k, &why);
    for (int n = 0; n < ATTEMPTS && status == HR_DEVICE && pick(l, i, k, &answer, NULL) == HR_OK; n++) {
        status = make_ready(l, i, k, &why);
    }
    if (status == HR_DEVICE) {
        status = make_own(l, i, k, &answer);
    }
    if (status != HR_OK) {
        if (err != NULL) {
            *err = why;
        }
        return status;
    }
    if (k->impl->scalars != NULL) {
        k->scalar_slot = l->scalar_count++;
    }
    HR_TRY(name_prepared(l, i, k, &answer, &why, err));
    k->workspace_bytes = answer.workspace_bytes; // our own kernels cut their parts by it
    return HR_OK;
}

// ---- one mask for both passes -----------------------------------------------------------------------------------

static bool draws(const cuda_prepared *k, bool library)
{
    return k->impl != NULL && attention_drops(&k->query) && (k->impl->ask != NULL) == library;
}

// Our own kernels compute another pass of what `k` drops; NULL: they do not.
static const cuda_prepared *own_pass_of(const cuda_loaded *l, const cuda_prepared *k)
{
    for (uint32_t n = 0; n < l->source->instr_count; n++) {
        const cuda_prepared *other = &l->instrs[n];
        if (draws(other, false) && other->query.attr.salt == k->query.attr.salt) {
            return other;
        }
    }
    return NULL;
}

static void release_state(const cuda_loaded *l, cuda_prepared *k)
{
    if (k->state != NULL && k->impl->release != NULL) {
        k->impl->release(l->device, k->state);
    }
    hr_free(k->reason);
    k->state = NULL;
    k->reason = NULL;
}

static hr_status refuse_masks(const cuda_loaded *l, const instr *i, hr_err *err)
{
    char name[NAME_BYTES];
    (void)HR_FAIL(err, DEVICE,
                  "%s: cuDNN computes one pass only, and our own kernels have no workspace for the other",
                  program_instr_name(l->source, i, name, sizeof name));
    hr_err_try(err, "-s execution.deterministic=on");
    return HR_DEVICE;
}

// What cuDNN computes of an attention whose other pass it refused on this card: its mask would be another.
static hr_status prepare_own(cuda_loaded *l, const instr *i, cuda_prepared *k, const cuda_prepared *other,
                             hr_err *err)
{
    target_answer answer = {0};
    hr_err why = {.status = HR_OK};
    const uint64_t room_bytes = program_scratch_bytes(l->source, i);
    if (other->reason != NULL) {
        (void)HR_FAIL(&why, DEVICE, "the mask of the other pass: %s", other->reason);
    }
    release_state(l, k);
    HR_TRY(cuda_pick_own(l->device, &k->query, &k->impl, &answer, err));
    if (answer.workspace_bytes > room_bytes) {
        return refuse_masks(l, i, err);
    }
    k->workspace_bytes = answer.workspace_bytes;
    HR_TRY(make_ready(l, i, k, err));
    return name_prepared(l, i, k, &answer, &why, err);
}

static hr_status draw_one_mask(cuda_loaded *l, hr_err *err)
{
    for (uint32_t n = 0; n < l->source->instr_count; n++) {
        cuda_prepared *k = &l->instrs[n];
        const cuda_prepared *other = draws(k, true) ? own_pass_of(l, k) : NULL;
        if (other != NULL) {
            HR_TRY(prepare_own(l, &l->source->instrs[n], k, other, err));
        }
    }
    return HR_OK;
}

// Behind a convolution that our own kernel computes after all, which knows plain weights alone.
static void mark_reorders(cuda_loaded *l)
{
    const program *p = l->source;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        for (uint32_t r = 0; l->instrs[n].plain && r < p->instr_count; r++) {
            l->instrs[r].as_is = l->instrs[r].as_is || (p->instrs[r].op == HR_OP_REORDER &&
                                                        p->instrs[r].attr.peer == p->instrs[n].id);
        }
    }
}

static hr_status prepare_all(cuda_loaded *l, hr_err *err)
{
    const program *p = l->source;
    l->instrs = hr_calloc(p->instr_count, sizeof *l->instrs);
    if (l->instrs == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the kernels of %u instructions", p->instr_count);
    }
    for (uint32_t n = 0; n < p->instr_count; n++) {
        HR_TRY(prepare_one(l, &p->instrs[n], &l->instrs[n], err));
    }
    HR_TRY(draw_one_mask(l, err));
    mark_reorders(l);
    return HR_OK;
}

// ---- host memory ------------------------------------------------------------------------------------------------

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + HOST_ALIGNMENT - 1) & ~(uint64_t)(HOST_ALIGNMENT - 1);
}

static hr_status find_host_memory(cuda_loaded *l, hr_err *err)
{
    uint64_t bytes = 0;
    l->round_bytes = aligned((uint64_t)l->scalar_count * CUDA_SCALAR_BYTES);
    if (l->round_bytes > CUDA_SMALL_BYTES) {
        return HR_FAIL(err, DEVICE, "the program has %u instructions that read scalars, needed at most %d",
                       l->scalar_count, CUDA_SMALL_BYTES / CUDA_SCALAR_BYTES);
    }
    for (uint32_t n = 0; n < l->source->instr_count; n++) {
        cuda_prepared *k = &l->instrs[n];
        if (k->impl != NULL && k->impl->host_bytes != NULL && (l->stages || !k->impl->is_batch)) {
            k->host_at = l->round_bytes;
            l->round_bytes += aligned(k->impl->host_bytes(&k->query));
        }
    }
    if (!hr_mul_bytes(l->round_bytes, l->rounds, &bytes) || bytes == 0) {
        return bytes == 0 ? HR_OK : HR_FAIL(err, DEVICE, "the batches of %u rounds overflow", l->rounds);
    }
    void *pinned = NULL;
    HR_TRY(cuda_host_take(l->device, bytes, &pinned, err));
    l->pinned = pinned;
    return HR_OK;
}

// ---- events and calls ---------------------------------------------------------------------------------------------

static hr_status survey(cuda_loaded *l, hr_err *err)
{
    uint32_t inside = 0, outside = 0;
    bool repeats = false;
    for (uint32_t n = 0; n < l->source->instr_count; n++) {
        const instr *i = &l->source->instrs[n];
        repeats = i->op == HR_OP_REPEAT || (repeats && i->op != HR_OP_END);
        *(repeats ? &inside : &outside) += l->instrs[n].impl != NULL;
        if (i->op == HR_OP_RECORD || i->op == HR_OP_WAIT) {
            const uint32_t needed = (uint32_t)i->attr.slot + 1;
            l->event_count = needed > l->event_count ? needed : l->event_count;
        }
        if (l->instrs[n].impl != NULL) {
            l->uses[cuda_lane_of(i)] = true;
            l->brings = l->brings || l->instrs[n].impl->is_batch;
        }
    }
    const uint64_t calls = (uint64_t)inside * l->rounds + outside + l->rounds;
    if (calls > UINT32_MAX) {
        (void)HR_FAIL(err, DEVICE, "a step of %llu calls is more than a card is handed",
                      (unsigned long long)calls);
        hr_err_try(err, "-s batch.accumulate=%u", l->rounds / 2);
        return HR_DEVICE;
    }
    l->call_room = (uint32_t)calls;
    return HR_OK;
}

// Which calls a graph takes: see step.h.
static void survey_ends(cuda_loaded *l)
{
    uint32_t call = l->scalar_count > 0; // the upload of scalars is the first
    l->first = 0;
    l->last = UINT32_MAX;
    for (uint32_t n = 0; l->rounds == 1 && n < l->source->instr_count; n++) {
        const instr *i = &l->source->instrs[n];
        const bool orders_input = op_row_of(i->op)->orders && i->phase == HR_PHASE_INPUT;
        const bool brings_batch = i->op == HR_OP_INPUT || i->op == HR_OP_ADVANCE;
        if (l->instrs[n].impl == NULL) {
            continue;
        }
        if (i->op == HR_OP_PREFETCH && l->last == UINT32_MAX) {
            l->last = call;
        }
        call++;
        if (brings_batch || (orders_input && l->last == UINT32_MAX)) {
            l->first = call;
        }
    }
    l->never = l->first >= l->last; // what only feeds
}

static hr_status make_event(CUevent *event, hr_err *err)
{
    const hr_status status = CUDA_CALL(err, cuEventCreate, event, CU_EVENT_DISABLE_TIMING);
    if (status != HR_OK) {
        *event = NULL;
    }
    return status;
}

static hr_status make_events(cuda_loaded *l, hr_err *err)
{
    l->calls = hr_calloc(l->call_room, sizeof *l->calls);
    l->events = hr_calloc(l->event_count + 1u, sizeof *l->events);
    if (l->calls == NULL || l->events == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the %u calls of a step", l->call_room);
    }
    for (uint32_t k = 0; k < l->event_count; k++) {
        HR_TRY(make_event(&l->events[k], err));
    }
    HR_TRY(make_event(&l->fork, err));
    if (l->brings && l->rounds > 1 && !l->stages) {
        HR_TRY(make_event(&l->read, err));
    }
    for (uint32_t k = 0; k < HR_LANE_COUNT; k++) {
        if (l->uses[k]) {
            HR_TRY(make_event(&l->join[k], err));
        }
    }
    return HR_OK;
}

// ---- load and unload ----------------------------------------------------------------------------------------------

static void drop_event(CUevent event)
{
    if (event != NULL) {
        (void)cuda_driver.cuEventDestroy_v2(event);
    }
}

static void drop_events(cuda_loaded *l)
{
    for (uint32_t k = 0; l->events != NULL && k < l->event_count; k++) {
        drop_event(l->events[k]);
    }
    drop_event(l->fork);
    drop_event(l->read);
    for (uint32_t k = 0; k < HR_LANE_COUNT; k++) {
        drop_event(l->join[k]);
    }
    cuda_host_give_back(l->device, l->pinned);
}

void cuda_unload(void *context, void *kernels)
{
    cuda_device *device = context;
    cuda_loaded *l = kernels;
    if (l == NULL) {
        return;
    }
    (void)cuda_enter(device, NULL);
    cuda_forget_graph(l);
    for (uint32_t n = 0; l->instrs != NULL && n < l->source->instr_count; n++) {
        release_state(l, &l->instrs[n]);
    }
    drop_events(l);
    cuda_drop_times(l);
    hr_free(l->events);
    hr_free(l->calls);
    hr_free(l->instrs);
    hr_free(l);
}

static hr_status make(cuda_loaded *l, hr_err *err)
{
    HR_TRY(prepare_all(l, err));
    HR_TRY(find_host_memory(l, err));
    HR_TRY(survey(l, err));
    survey_ends(l);
    return make_events(l, err);
}

hr_status cuda_load(void *context, const program *p, void **kernels, hr_err *err)
{
    cuda_device *device = context;
    *kernels = NULL;
    HR_TRY(cuda_enter(device, err));
    cuda_loaded *l = hr_calloc(1, sizeof *l);
    if (l == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a program's kernels");
    }
    l->device = device;
    l->source = p;
    l->capture_after = CAPTURE_AFTER;
    l->moved = HR_NO_ID;
    l->rounds = p->rounds == 0 ? 1 : p->rounds;
    l->stages = device->capture && l->rounds > 1;
    const uint64_t before_bytes = cuda_free_bytes();
    const hr_status status = make(l, err);
    cuda_count_context(device, before_bytes);
    if (status != HR_OK) {
        cuda_unload(device, l);
        return cuda_noted(device, status);
    }
    graph_library_keep(device->graphs);
    *kernels = l;
    return HR_OK;
}
