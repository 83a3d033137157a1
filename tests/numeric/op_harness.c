// SPDX-License-Identifier: Apache-2.0
#include "numeric/op_harness.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/event.h"

#include "base/half.h"

enum {
    GUARD_BYTES = 64,
    GUARD = 0xA5,
    POISON = 0xFF,
    MAX_TENSORS = OP_MAX_IN + OP_MAX_OUT + 4,
    MAX_INSTRS = 4,
    CARD_ALIGNMENT = 256
};
#define CARD_BYTES ((uint64_t)1 << 30)

// Check writes to its pipe for every assertion that holds; in these loops only those that do not may cost.
#define REQUIRE(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                       \
        }                                                                                                    \
    } while (0)

// ---- trials ---------------------------------------------------------------------------------------------------

// What a card is given and gives back as one range.
struct op_memory {
    backing source;
    uint64_t address, bytes;
};

static bool is_a_card(const device_ops *ops)
{
    return ops->outside != NULL;
}

op_device op_device_open(const device_ops *ops, uint32_t threads)
{
    return op_device_open_with(ops, &(device_options){.threads = threads});
}

op_device op_device_open_with(const device_ops *ops, const device_options *options)
{
    op_device device = {.ops = ops};
    hr_err err = {0};
    REQUIRE(ops->open(options, &device.context, &err) == HR_OK, "%s", err.sentence);
    if (is_a_card(ops)) {
        device.memory = calloc(1, sizeof *device.memory);
        REQUIRE(device.memory != NULL, "no memory for the test");
        REQUIRE(ops->memory(device.context, CARD_BYTES, false, &device.memory->source, &err) == HR_OK, "%s",
                err.sentence);
    }
    return device;
}

static void give_back(op_memory *m)
{
    if (m->bytes > 0) {
        m->source.give_back(m->source.context, m->address, m->bytes);
    }
    m->bytes = 0;
}

void op_device_close(op_device *device)
{
    if (device->memory != NULL) {
        give_back(device->memory);
        backing_close(&device->memory->source);
        free(device->memory);
    }
    device->ops->close(device->context);
}

const device_ops *test_device(const char *name)
{
    const device_ops *ops = NULL;
    hr_err err = {0};
    REQUIRE(device_find(name, &ops, &err) == HR_OK, "%s", err.sentence);
    return ops;
}

bool test_device_is_there(const device_ops *ops)
{
    // Open to the end where Check does not fork: what libraries keep in it serves every test.
    static void *context;
    hr_err err = {0};
    const char *forks = getenv("CK_FORK");
    if (forks != NULL && strcmp(forks, "no") == 0) {
        const hr_status status = ops->open(&(device_options){.threads = 1}, &context, &err);
        if (status != HR_OK) {
            (void)fprintf(stderr, "skipped: %s\n", err.sentence);
        }
        return status == HR_OK;
    }
    // In a process of its own: a card's context does not survive the forks of Check.
    const pid_t child = fork();
    if (child == 0) {
        const hr_status status = ops->open(&(device_options){.threads = 1}, &context, &err);
        if (status != HR_OK) {
            (void)fprintf(stderr, "skipped: %s\n", err.sentence);
        }
        _exit(status == HR_OK ? 0 : 1);
    }
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0;
}

op_trial op_trial_make(hr_op op, op_attr attr)
{
    return (op_trial){.query = {.op = (uint32_t)op, .attr = attr}};
}

void op_trial_deinit(op_trial *t)
{
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        free(t->in[k]);
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        free(t->out[k]);
    }
    *t = (op_trial){0};
}

static op_operand operand_of(hr_dtype dtype, const int64_t dims[OP_MAX_RANK])
{
    uint32_t rank = 0;
    while (rank < OP_MAX_RANK && dims[rank] != 0) {
        rank++;
    }
    return (op_operand){.shape = shape_of(rank, dims), .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
}

static uint64_t elements(const op_operand *operand)
{
    uint64_t count = 0;
    REQUIRE(shape_elements(&operand->shape, &count), "a shape overflows");
    return count;
}

static double *values_of(const op_operand *operand)
{
    double *values = calloc(elements(operand), sizeof *values);
    REQUIRE(values != NULL, "no memory for the test");
    return values;
}

static void add_in(op_trial *t, op_operand operand)
{
    REQUIRE(t->query.in_count < OP_MAX_IN, "more than %d", OP_MAX_IN);
    t->query.in[t->query.in_count] = operand;
    t->in[t->query.in_count++] = values_of(&operand);
}

static void add_out(op_trial *t, op_operand operand)
{
    REQUIRE(t->query.out_count < OP_MAX_OUT, "more than %d", OP_MAX_OUT);
    t->query.out[t->query.out_count] = operand;
    t->out[t->query.out_count++] = values_of(&operand);
}

void op_trial_add_in(op_trial *t, hr_dtype dtype, const int64_t dims[OP_MAX_RANK])
{
    add_in(t, operand_of(dtype, dims));
}

void op_trial_add_out(op_trial *t, hr_dtype dtype, const int64_t dims[OP_MAX_RANK])
{
    add_out(t, operand_of(dtype, dims));
}

void op_trial_infer_out(op_trial *t, uint32_t count)
{
    op_operand out[OP_MAX_OUT] = {0};
    hr_err err = {0};
    const op_row *row = op_row_of((hr_op)t->query.op);
    REQUIRE(row->shape(&t->query.attr, t->query.in, t->query.in_count, out, count, &err) == HR_OK, "%s",
            err.sentence);
    for (uint32_t k = 0; k < count; k++) {
        add_out(t, out[k]);
    }
}

static op_operand as_real(op_operand operand, hr_dtype real)
{
    operand.layout = HR_LAYOUT_PLAIN;
    if (operand.dtype == HR_F32 || operand.dtype == HR_F64) {
        operand.dtype = real;
    }
    return operand;
}

op_trial op_trial_copy(const op_trial *t, hr_dtype real)
{
    op_trial copy = op_trial_make((hr_op)t->query.op, t->query.attr);
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        add_in(&copy, as_real(t->query.in[k], real));
        memcpy(copy.in[k], t->in[k], elements(&t->query.in[k]) * sizeof *copy.in[k]);
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        add_out(&copy, as_real(t->query.out[k], real));
        memcpy(copy.out[k], t->out[k], elements(&t->query.out[k]) * sizeof *copy.out[k]);
    }
    return copy;
}

uint64_t op_trial_in_count(const op_trial *t, uint32_t k)
{
    return elements(&t->query.in[k]);
}

uint64_t op_trial_out_count(const op_trial *t, uint32_t k)
{
    return elements(&t->query.out[k]);
}

// ---- running --------------------------------------------------------------------------------------------------

// A program of one operation, lowered.
typedef struct one_op {
    program program;
    tensor tensors[MAX_TENSORS];
    instr instrs[MAX_INSTRS];
    void *address[MAX_TENSORS];
    uint64_t guarded_bytes[MAX_TENSORS]; // of the operand, before its guard
} one_op;

static uint32_t add_tensor(one_op *p, const op_operand *operand, uint64_t bytes, hr_layout layout)
{
    const uint32_t id = p->program.tensor_count++;
    REQUIRE(id < MAX_TENSORS, "more than %d", MAX_TENSORS);
    p->tensors[id] = (tensor){.name = "operand",
                              .shape = operand->shape,
                              .dtype = (hr_dtype)operand->dtype,
                              .layout = layout,
                              .category = HR_CATEGORY_ACTIVATIONS,
                              .bytes = bytes,
                              .storage = id,
                              .layer = HR_NO_ID,
                              .param = HR_NO_ID};
    const uint64_t scratch = (bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    char *memory = aligned_alloc(GUARD_BYTES, scratch + GUARD_BYTES);
    REQUIRE(memory != NULL, "no memory for the test");
    memset(memory, POISON, bytes);
    memset(memory + bytes, GUARD, GUARD_BYTES);
    p->address[id] = memory;
    p->guarded_bytes[id] = bytes;
    return id;
}

static uint32_t add_operand(one_op *p, const op_operand *operand)
{
    uint64_t bytes = 0, padding_bytes = 0;
    REQUIRE(operand_bytes(operand, &bytes, &padding_bytes), "an operand overflows");
    return add_tensor(p, operand, bytes, (hr_layout)operand->layout);
}

static instr *add_instr(one_op *p, hr_op op)
{
    const uint32_t at = p->program.instr_count++;
    REQUIRE(at < MAX_INSTRS, "more than %d", MAX_INSTRS);
    p->instrs[at] =
        (instr){.id = at, .op = op, .phase = HR_PHASE_FORWARD, .layer = HR_NO_ID, .workspace = HR_NO_ID};
    return &p->instrs[at];
}

static void add_reorder(one_op *p, const instr *main_instr, uint8_t operand, uint32_t from, uint32_t to)
{
    instr *r = add_instr(p, HR_OP_REORDER);
    r->attr.peer = main_instr->id;
    r->attr.peer_operand = operand;
    r->in[r->in_count++] = from;
    r->out[r->out_count++] = to;
}

// Input that output k is, OP_MAX_IN when it is none.
static uint32_t updated_input(hr_op op, uint32_t k)
{
    uint32_t input = 0;
    while (input < OP_MAX_IN && ((op_row_of(op)->updates >> input & 1) == 0 || k-- > 0)) {
        input++;
    }
    return input;
}

// The instruction over its own operands: ids of inputs, then of outputs that are not inputs.
static instr first_instr(one_op *p, const op_trial *t)
{
    instr i = {.id = 100,
               .op = (hr_op)t->query.op,
               .attr = t->query.attr,
               .phase = HR_PHASE_FORWARD,
               .layer = HR_NO_ID,
               .workspace = HR_NO_ID};
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        i.in[i.in_count++] = add_operand(p, &t->query.in[k]);
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const uint32_t input = updated_input(i.op, k);
        i.out[i.out_count++] = input < i.in_count ? i.in[input] : add_operand(p, &t->query.out[k]);
    }
    return i;
}

static void lower(one_op *p, instr i, op_device device, const op_query *q)
{
    hr_target target;
    target_answer answer = {0};
    hr_err err = {0};
    device.ops->target(device.context, &target);
    const uint64_t usual = device.memory != NULL ? CARD_BYTES / 4 : UINT64_MAX;
    const uint64_t limit = device.workspace_limit != 0 ? device.workspace_limit : usual;
    REQUIRE(target.ask(target.context, q, limit, &answer, &err) == HR_OK, "%s", err.sentence);
    instr lowered = i;
    for (uint32_t k = 0; k < answer.reorder_count; k++) {
        const uint8_t operand = answer.reorder[k].operand;
        const bool is_in = (operand & 0x80) == 0;
        const op_operand *of = is_in ? &q->in[operand] : &q->out[operand & 0x7f];
        const uint32_t copy = add_tensor(p, of, answer.reorder[k].bytes, HR_LAYOUT_LIBRARY);
        if (is_in) {
            add_reorder(p, &i, operand, i.in[operand], copy);
            lowered.in[operand] = copy;
        } else {
            lowered.out[operand & 0x7f] = copy;
        }
    }
    if (answer.workspace_bytes > 0) {
        const op_operand bytes = {.shape = shape_of(1, (const int64_t[]){(int64_t)answer.workspace_bytes}),
                                  .dtype = HR_U8};
        lowered.workspace = add_operand(p, &bytes);
    }
    *add_instr(p, i.op) = lowered;
    for (uint32_t k = 0; k < answer.reorder_count; k++) {
        const uint8_t operand = answer.reorder[k].operand;
        if ((operand & 0x80) != 0) {
            add_reorder(p, &i, operand, lowered.out[operand & 0x7f], i.out[operand & 0x7f]);
        }
    }
}

// Where element i of a plain tensor lies in storage.
static uint64_t place(const op_operand *t, uint64_t i)
{
    const uint64_t columns = t->shape.rank == 0 ? 1 : (uint64_t)t->shape.dim[t->shape.rank - 1];
    return i / columns * (uint64_t)operand_pitch(t) + i % columns;
}

static void put(void *memory, const op_operand *t, const double *values)
{
    const uint64_t count = elements(t);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = place(t, i);
        switch ((hr_dtype)t->dtype) {
        case HR_F32:
            ((float *)memory)[at] = (float)values[i];
            break;
        case HR_F64:
            ((double *)memory)[at] = values[i];
            break;
        case HR_I32:
            ((int32_t *)memory)[at] = (int32_t)values[i];
            break;
        case HR_U8:
            ((uint8_t *)memory)[at] = (uint8_t)values[i];
            break;
        case HR_I8:
            ((int8_t *)memory)[at] = (int8_t)values[i];
            break;
        case HR_F16:
            ((uint16_t *)memory)[at] = f16_of_float((float)values[i]);
            break;
        case HR_BF16:
            ((uint16_t *)memory)[at] = bf16_of_float((float)values[i]);
            break;
        case HR_DTYPE_COUNT:
            ck_abort_msg("no such type");
        }
    }
}

static void get(const void *memory, const op_operand *t, double *values)
{
    const uint64_t count = elements(t);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = place(t, i);
        switch ((hr_dtype)t->dtype) {
        case HR_F32:
            values[i] = (double)((const float *)memory)[at];
            break;
        case HR_F64:
            values[i] = ((const double *)memory)[at];
            break;
        case HR_I32:
            values[i] = ((const int32_t *)memory)[at];
            break;
        case HR_U8:
            values[i] = ((const uint8_t *)memory)[at];
            break;
        case HR_I8:
            values[i] = ((const int8_t *)memory)[at];
            break;
        case HR_F16:
            values[i] = (double)float_of_f16(((const uint16_t *)memory)[at]);
            break;
        case HR_BF16:
            values[i] = (double)float_of_bf16(((const uint16_t *)memory)[at]);
            break;
        case HR_DTYPE_COUNT:
            ck_abort_msg("no such type");
        }
    }
}

static void check_guards(const one_op *p)
{
    for (uint32_t id = 0; id < p->program.tensor_count; id++) {
        const uint8_t *guard = (const uint8_t *)p->address[id] + p->guarded_bytes[id];
        for (uint32_t k = 0; k < GUARD_BYTES; k++) {
            REQUIRE(guard[k] == GUARD, "tensor %u was written beyond its end", id);
        }
    }
}

// ---- on a card --------------------------------------------------------------------------------------------------

static uint64_t guarded(const one_op *p, uint32_t id)
{
    return p->guarded_bytes[id] + GUARD_BYTES;
}

// The operand that lies in the same place and comes first; `id` when that is this one.
static uint32_t first_there(const one_op *p, uint32_t id)
{
    uint32_t first = 0;
    while (p->address[first] != p->address[id]) {
        first++;
    }
    return first;
}

static void make_room(op_memory *m, uint64_t bytes)
{
    if (m->bytes >= bytes) {
        return;
    }
    give_back(m);
    const uint64_t granule = m->source.granularity_bytes;
    m->bytes = (bytes + granule - 1) / granule * granule;
    m->address = m->source.take(m->source.context, m->bytes);
    REQUIRE(m->address != 0, "no memory on the card for %llu bytes", (unsigned long long)m->bytes);
}

// Every operand with its guard; `there` gets its address on the card.
static void send(const one_op *p, op_device device, void *there[MAX_TENSORS])
{
    uint64_t offset[MAX_TENSORS] = {0}, bytes = 0;
    hr_err err = {0};
    for (uint32_t id = 0; id < p->program.tensor_count; id++) {
        offset[id] = bytes;
        bytes += (guarded(p, id) + CARD_ALIGNMENT - 1) / CARD_ALIGNMENT * CARD_ALIGNMENT;
    }
    make_room(device.memory, bytes);
    for (uint32_t id = 0; id < p->program.tensor_count; id++) {
        const uint64_t at = device.memory->address + offset[first_there(p, id)];
        there[id] = (void *)at;
        REQUIRE(device.ops->copy_in(device.context, at, p->address[id], guarded(p, id), &err) == HR_OK, "%s",
                err.sentence);
    }
}

static void bring(const one_op *p, op_device device, void *const there[MAX_TENSORS])
{
    hr_err err = {0};
    for (uint32_t id = 0; id < p->program.tensor_count; id++) {
        REQUIRE(device.ops->copy_out(device.context, (uint64_t)there[id], p->address[id], guarded(p, id),
                                     &err) == HR_OK,
                "%s", err.sentence);
    }
}

// ---- one step ---------------------------------------------------------------------------------------------------

static void run_instrs(const one_op *p, op_device device, void *kernels, void *const *address, step_io *io)
{
    const device_ops *ops = device.ops;
    hr_err err = {0};
    REQUIRE(ops->begin_round == NULL || ops->begin_round(device.context, kernels, 0, io, &err) == HR_OK, "%s",
            err.sentence);
    for (uint32_t i = 0; i < p->program.instr_count; i++) {
        REQUIRE(ops->run(device.context, kernels, i, address, io, &err) == HR_OK, "%s", err.sentence);
    }
    REQUIRE(ops->end_step == NULL || ops->end_step(device.context, kernels, io, &err) == HR_OK, "%s",
            err.sentence);
}

static void execute(one_op *p, op_device device, step_io *io)
{
    void *kernels = NULL;
    hr_err err = {0};
    p->program.tensors = p->tensors;
    p->program.instrs = p->instrs;
    REQUIRE(device.ops->load(device.context, &p->program, &kernels, &err) == HR_OK, "%s", err.sentence);
    if (device.memory != NULL) {
        void *there[MAX_TENSORS];
        send(p, device, there);
        run_instrs(p, device, kernels, there, io);
        bring(p, device, there);
    } else {
        run_instrs(p, device, kernels, p->address, io);
    }
    device.ops->unload(device.context, kernels);
    check_guards(p);
}

// Output 0 takes the place of the input that the row names.
static void share(one_op *p, const instr *i)
{
    const uint32_t from = i->in[op_row_of(i->op)->in_place], to = i->out[0];
    REQUIRE(p->guarded_bytes[from] == p->guarded_bytes[to], "what shares storage has one size");
    if (from != to) {
        free(p->address[to]);
        p->address[to] = p->address[from];
    }
}

static void run_trial(op_trial *t, op_device device, step_io *io, bool in_place)
{
    one_op p = {0};
    step_io nothing = {0};
    const instr i = first_instr(&p, t);
    if (in_place) {
        share(&p, &i);
    }
    p.program.batch = t->query.in_count > 0 ? (uint32_t)t->query.in[0].shape.dim[0] : 1;
    for (uint32_t k = 0; k < i.in_count; k++) {
        put(p.address[i.in[k]], &t->query.in[k], t->in[k]);
    }
    lower(&p, i, device, &t->query);
    execute(&p, device, io != NULL ? io : &nothing);
    for (uint32_t k = 0; k < i.in_count; k++) {
        get(p.address[i.in[k]], &t->query.in[k], t->in[k]);
    }
    for (uint32_t k = 0; k < i.out_count; k++) {
        get(p.address[i.out[k]], &t->query.out[k], t->out[k]);
    }
    for (uint32_t id = 0; id < p.program.tensor_count; id++) {
        if (!in_place || id == i.in[op_row_of(i.op)->in_place] ||
            p.address[id] != p.address[i.in[op_row_of(i.op)->in_place]]) {
            free(p.address[id]);
        }
    }
}

void op_trial_run(op_trial *t, op_device device, step_io *io)
{
    run_trial(t, device, io, false);
}

bool op_trial_may_share(const op_trial *t)
{
    const op_query *q = &t->query;
    const int8_t k = op_row_of((hr_op)q->op)->in_place;
    return k >= 0 && k < q->in_count && q->in[k].dtype == q->out[0].dtype &&
           op_trial_in_count(t, (uint32_t)k) == op_trial_out_count(t, 0);
}

void op_trial_run_in_place(op_trial *t, op_device device, step_io *io)
{
    run_trial(t, device, io, true);
}

// ---- gradients ------------------------------------------------------------------------------------------------

bool op_trial_has_gradient(const op_trial *forward, uint32_t g)
{
    const op_grad *rule = &op_row_of((hr_op)forward->query.op)->grad[g];
    return (rule->when_outputs == 0 || rule->when_outputs == forward->query.out_count) &&
           rule->result[0] < forward->query.in_count;
}

op_trial op_trial_backward(const op_trial *forward, uint32_t g, const double *dy)
{
    const op_query *q = &forward->query;
    const op_grad *rule = &op_row_of((hr_op)q->op)->grad[g];
    op_trial t = op_trial_make(rule->op, q->attr);
    if (rule->attr != NULL) {
        rule->attr(q, &t.query.attr);
    }
    for (uint32_t k = 0; k < rule->operand_count; k++) {
        const op_grad_operand from = rule->operand[k];
        const bool is_in = from.source == OP_SRC_IN;
        if (is_in && from.index >= q->in_count) {
            continue; // optional
        }
        const double *values = is_in                       ? forward->in[from.index]
                               : from.source == OP_SRC_OUT ? forward->out[from.index]
                                                           : dy;
        add_in(&t, is_in ? q->in[from.index] : q->out[from.index]);
        const uint32_t last = t.query.in_count - 1u;
        memcpy(t.in[last], values, op_trial_in_count(&t, last) * sizeof *values);
    }
    for (uint32_t k = 0; k < rule->result_count && rule->result[k] < q->in_count; k++) {
        add_out(&t, q->in[rule->result[k]]);
    }
    return t;
}

double op_distance(const double *a, const double *b, uint64_t count)
{
    double difference = 0.0, norm = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    if (difference == 0.0) {
        return 0.0;
    }
    return sqrt(difference) / sqrt(norm); // infinite when b is zero and a is not
}

// ---- values ---------------------------------------------------------------------------------------------------

// splitmix64 (Steele, Lea, Flood 2014): the tests' own generator, independent of the engine's.
static uint64_t next_word(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

double op_random(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(next_word(state) >> 11) * 0x1p-53;
}

int64_t op_random_int(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(next_word(state) % (uint64_t)(high - low + 1));
}

void op_fill(double *values, uint64_t count, uint64_t *state, double low, double high)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = op_random(state, low, high);
    }
}

void op_fill_apart(double *values, uint64_t count, uint64_t *state)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t j = (uint64_t)op_random_int(state, 0, (int64_t)i); // inside-out shuffle
        values[i] = values[j];
        values[j] = 2.0 * ((double)i + 0.5) / (double)count - 1.0;
    }
}

void op_fill_nonzero(double *values, uint64_t count, uint64_t *state)
{
    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = op_random(state, 0.1, 1.0);
        values[i] = next_word(state) % 2 == 0 ? magnitude : -magnitude;
    }
}
