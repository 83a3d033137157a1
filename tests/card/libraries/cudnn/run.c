// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver_calls.h"

bool cursor_next(const graph_tensor *shape, cursor *c)
{
    for (int32_t k = shape->rank - 1; k >= 0; k--) {
        if (++c->index[k] < shape->dim[k]) {
            return true;
        }
        c->index[k] = 0;
    }
    return false;
}

int64_t cursor_place(const graph_tensor *t, const cursor *c)
{
    int64_t place = 0;
    for (int32_t k = 0; k < t->rank; k++) {
        place += t->dim[k] == 1 ? 0 : c->index[k] * t->stride[k];
    }
    return place;
}

static void *room_for(int64_t count, size_t size)
{
    void *room = calloc((size_t)count, size);
    if (room == NULL) {
        (void)fputs("emulated cuDNN: no host memory\n", stderr);
        abort();
    }
    return room;
}

double *run_sums(int64_t count)
{
    return room_for(count, sizeof(double));
}

void run_sums_free(double *sum)
{
    free(sum);
}

double run_shaken(const runner *r, double sum)
{
    static atomic_uint turn;
    if (!r->in_any_order) {
        return sum;
    }
    return sum * (1.0 + ldexp((double)(atomic_fetch_add(&turn, 1) % 5) - 2.0, -23));
}

double run_operand(const runner *r, const image *t, int64_t place)
{
    const double value = (double)t->at[place];
    return r->tf32 && t->shape->type == NUMBER_F32 ? number_tf32(value) : value;
}

static void read_image(const graph_call *call, int32_t k, image *out)
{
    const graph_tensor *t = out->shape;
    if (t->by_value) {
        out->at[0] = call->value[k];
        return;
    }
    cursor c = {{0}};
    do {
        const int64_t place = cursor_place(t, &c);
        out->at[place] = (float)number_read(t->type, call->data[k], place);
    } while (cursor_next(t, &c));
}

static bool is_read(const graph_data *p, int32_t tensor)
{
    for (int32_t k = 0; k < p->node_count; k++) {
        for (int32_t i = 0; i < p->node[k].in_count; i++) {
            if (p->node[k].in[i] == tensor) {
                return true;
            }
        }
    }
    return false;
}

static bool adds_to(const graph_data *p, int32_t tensor)
{
    for (int32_t k = 0; k < p->node_count; k++) {
        if (p->node[k].out == tensor && p->node[k].beta != 0.0f) {
            return true;
        }
    }
    return false;
}

static void open_images(runner *r)
{
    const graph_data *p = &r->call->graph;
    for (int32_t k = 0; k < p->tensor_count; k++) {
        r->image[k].shape = &p->tensor[k];
        r->image[k].at = room_for(graph_extent(&p->tensor[k]), sizeof(float));
        if (!p->tensor[k].inside && (is_read(p, k) || adds_to(p, k))) {
            read_image(r->call, k, &r->image[k]);
        }
    }
}

static void close_images(runner *r)
{
    for (int32_t k = 0; k < r->call->graph.tensor_count; k++) {
        if (!r->image[k].borrowed) {
            free(r->image[k].at);
        }
    }
}

// The same memory under other dimensions.
static void run_reshape(runner *r, const graph_node *n)
{
    image *x = &r->image[n->in[0]], *y = &r->image[n->out];
    if (y->shape->inside) {
        free(y->at);
        y->at = x->at;
        y->borrowed = true;
        return;
    }
    cursor from = {{0}}, to = {{0}};
    do {
        y->at[cursor_place(y->shape, &to)] = x->at[cursor_place(x->shape, &from)];
    } while (cursor_next(y->shape, &to) && cursor_next(x->shape, &from));
}

// Rounds to the tensor's type, and brings it where it lies when it lies anywhere.
static void write_image(const runner *r, int32_t k)
{
    const image *y = &r->image[k];
    cursor c = {{0}};
    do {
        const int64_t place = cursor_place(y->shape, &c);
        unsigned char room[8];
        number_write(y->shape->type, room, 0, (double)y->at[place]);
        y->at[place] = (float)number_read(y->shape->type, room, 0);
        if (!y->shape->inside) {
            number_write(y->shape->type, r->call->data[k], place, (double)y->at[place]);
        }
    } while (cursor_next(y->shape, &c));
}

static void run_node(runner *r, const graph_node *n)
{
    switch ((int)n->kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        run_matmul(r, n);
        break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        run_pointwise(r, n);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        run_reduction(r, n);
        break;
    case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
        run_random(r, n);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        run_reshape(r, n);
        return;
    default:
        run_convolution(r, n);
    }
}

// The workspace is rubbish before and after: what lies in it is lost, be it operand or result.
static void spoil(const graph_call *call)
{
    if (call->workspace_bytes > 0) {
        memset(call->workspace, NUMBER_RUBBISH, call->workspace_bytes);
    }
}

static double seconds_of(engine_choice choice)
{
    const char *text = getenv("CARD_ENGINE_SECONDS");
    int engine = 0, tile = 0, length = 0;
    double seconds = 0;
    while (text != NULL && sscanf(text, "%d.%d:%lf%n", &engine, &tile, &seconds, &length) == 3) {
        if (engine == choice.engine && tile == choice.tile) {
            return seconds;
        }
        text += length + (text[length] == ',');
    }
    return 0;
}

void graph_run(void *argument)
{
    const graph_call *call = argument;
    cudnnBackendNumericalNote_t note[4];
    runner r = {.call = call};
    const int32_t notes = engine_numerical_notes(&call->graph, call->choice.engine, note);
    for (int32_t k = 0; k < notes; k++) {
        r.tf32 = r.tf32 || note[k] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        r.in_any_order = r.in_any_order || note[k] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    spoil(call);
    open_images(&r);
    for (int32_t k = 0; k < call->graph.node_count; k++) {
        run_node(&r, &call->graph.node[k]);
        write_image(&r, call->graph.node[k].out);
    }
    close_images(&r);
    spoil(call);
    driver_calls_get()->take(seconds_of(call->choice) * 1e3);
}
