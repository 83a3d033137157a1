// SPDX-License-Identifier: Apache-2.0
// The emulated cuDNN of the tests against the judge, so that nothing trusts it blindly: convolutions forward and
// backward with groups, strides and one-sided padding, by every engine that its heuristics name; and what it refuses.
// It is spoken to through cuDNN's own interface: on a card, the real one answers the same.
#include <check.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "device/cuda/driver.h"
#include "device/reference/kernels.h"
#include "numeric/op_harness.h"

enum { TRIALS = 24, CONFIGS = 32, WORKSPACE_MOST = 1 << 28 };

static struct {
    __typeof__(cudnnCreate) *create;
    __typeof__(cudnnDestroy) *destroy;
    __typeof__(cudnnBackendCreateDescriptor) *make;
    __typeof__(cudnnBackendDestroyDescriptor) *drop;
    __typeof__(cudnnBackendSetAttribute) *set;
    __typeof__(cudnnBackendGetAttribute) *get;
    __typeof__(cudnnBackendFinalize) *finalize;
    __typeof__(cudnnBackendExecute) *execute;
} dnn;

static void find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    ck_assert_ptr_nonnull(symbol);
    memcpy(pointer, &symbol, sizeof symbol);
}

static void open_library(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(library);
    find(library, "cudnnCreate", &dnn.create);
    find(library, "cudnnDestroy", &dnn.destroy);
    find(library, "cudnnBackendCreateDescriptor", &dnn.make);
    find(library, "cudnnBackendDestroyDescriptor", &dnn.drop);
    find(library, "cudnnBackendSetAttribute", &dnn.set);
    find(library, "cudnnBackendGetAttribute", &dnn.get);
    find(library, "cudnnBackendFinalize", &dnn.finalize);
    find(library, "cudnnBackendExecute", &dnn.execute);
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

typedef cudnnBackendDescriptor_t descriptor;

static descriptor made(cudnnBackendDescriptorType_t kind)
{
    descriptor d = NULL;
    ck_assert_int_eq(dnn.make(kind, &d), CUDNN_STATUS_SUCCESS);
    return d;
}

static void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t count, const void *data)
{
    ck_assert_int_eq(dnn.set(d, name, type, count, data), CUDNN_STATUS_SUCCESS);
}

static void set_bag(descriptor d, cudnnBackendAttributeName_t name, descriptor other)
{
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

static descriptor finished(descriptor d)
{
    ck_assert_int_eq(dnn.finalize(d), CUDNN_STATUS_SUCCESS);
    return d;
}

static descriptor tensor_of(int64_t uid, uint32_t dtype, const int64_t dim[4], const int64_t stride[4])
{
    const int64_t alignment = 16;
    const cudnnDataType_t type = dtype == HR_F32   ? CUDNN_DATA_FLOAT
                                 : dtype == HR_F16 ? CUDNN_DATA_HALF
                                                   : CUDNN_DATA_BFLOAT16;
    descriptor d = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    return finished(d);
}

static descriptor image(int64_t uid, uint32_t dtype, const hr_shape *s) // NHWC
{
    const int64_t n = s->dim[0], h = s->dim[1], w = s->dim[2], c = s->dim[3];
    return tensor_of(uid, dtype, (const int64_t[]){n, c, h, w}, (const int64_t[]){h * w * c, 1, w * c, c});
}

static descriptor filters(int64_t uid, uint32_t dtype, const hr_shape *s) // HWIO
{
    const int64_t h = s->dim[0], w = s->dim[1], c = s->dim[2], f = s->dim[3];
    return tensor_of(uid, dtype, (const int64_t[]){f, c, h, w}, (const int64_t[]){1, f, w * c * f, c * f});
}

// ---- a trial --------------------------------------------------------------------------------------------------------

typedef struct trial {
    op_query query;
    hr_op op;
    uint32_t dtype;
    hr_shape shape[3];       // x, w, y
    uint64_t count[3];       // of elements
    double *value[3], *want; // of operands; of the one that is computed
    int result;              // which one that is
} trial;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int32_t upto(uint64_t *state, int32_t most)
{
    return 1 + (int32_t)(next_random(state) % (uint64_t)most);
}

static float rounded(uint32_t dtype, double x)
{
    return dtype == HR_F32   ? (float)x
           : dtype == HR_F16 ? float_of_f16(f16_of_float((float)x))
                             : float_of_bf16(bf16_of_float((float)x));
}

static void draw_shapes(trial *t, uint64_t *state)
{
    op_attr *a = &t->query.attr;
    const int32_t groups = upto(state, 3), c = groups * upto(state, 4), f = groups * upto(state, 4);
    *a = (op_attr){.kernel_h = upto(state, 3),
                   .kernel_w = upto(state, 3),
                   .stride_h = upto(state, 2),
                   .stride_w = upto(state, 2),
                   .pad_top = upto(state, 2) - 1,
                   .pad_left = upto(state, 2) - 1,
                   .pad_bottom = upto(state, 2) - 1,
                   .pad_right = upto(state, 2) - 1,
                   .groups = groups};
    if (t->dtype == HR_F32 && t->op != HR_OP_CONV2D) { // the emulated library has the fault of gates.c there
        a->pad_bottom = a->pad_top;
        a->pad_right = a->pad_left;
    }
    const int64_t n = upto(state, 2), h = 2 + upto(state, 5), w = 2 + upto(state, 5);
    const int64_t oh = (h + a->pad_top + a->pad_bottom - a->kernel_h) / a->stride_h + 1,
                  ow = (w + a->pad_left + a->pad_right - a->kernel_w) / a->stride_w + 1;
    t->shape[0] = shape_of(4, (const int64_t[]){n, h, w, c});
    t->shape[1] = shape_of(4, (const int64_t[]){a->kernel_h, a->kernel_w, c / groups, f});
    t->shape[2] = shape_of(4, (const int64_t[]){n, oh, ow, f});
}

static void judge(trial *t)
{
    step_io io = {0};
    const int first = t->result == 0 ? 2 : 0, second = t->result == 1 ? 2 : 1;
    t->query.op = (uint32_t)t->op;
    t->query.in_count = 2;
    t->query.out_count = 1;
    t->query.in[0].shape = t->shape[first];
    t->query.in[1].shape = t->shape[second];
    t->query.out[0].shape = t->shape[t->result];
    const reference_call call = {.query = &t->query,
                                 .in = {t->value[first], t->value[second]},
                                 .out = {t->want},
                                 .in_count = {t->count[first], t->count[second]},
                                 .out_count = {t->count[t->result]},
                                 .io = &io};
    static const reference_kernel kernels[] = {reference_conv2d_bwd_data, reference_conv2d_bwd_weights,
                                               reference_conv2d};
    kernels[t->result](&call);
}

static trial make_trial(int k, uint64_t *state)
{
    static const uint32_t types[] = {HR_F32, HR_F16, HR_BF16};
    static const hr_op ops[] = {HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS, HR_OP_CONV2D};
    trial t = {.dtype = types[k % 3], .result = k / 3 % 3, .op = ops[k / 3 % 3]};
    draw_shapes(&t, state);
    for (int i = 0; i < 3; i++) {
        ck_assert(shape_elements(&t.shape[i], &t.count[i]));
        t.value[i] = calloc(t.count[i], sizeof(double));
        for (uint64_t e = 0; e < t.count[i]; e++) {
            t.value[i][e] = (double)rounded(t.dtype, (double)(next_random(state) % 2001) / 1000.0 - 1.0);
        }
    }
    t.want = calloc(t.count[t.result], sizeof(double));
    judge(&t);
    return t;
}

static void free_trial(trial *t)
{
    for (int i = 0; i < 3; i++) {
        free(t->value[i]);
    }
    free(t->want);
}

// ---- the graph ------------------------------------------------------------------------------------------------------

static descriptor convolution_of(const op_attr *a)
{
    const int64_t spatial = 2, one[] = {1, 1}, stride[] = {a->stride_h, a->stride_w},
                  pre[] = {a->pad_top, a->pad_left}, post[] = {a->pad_bottom, a->pad_right};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    descriptor d = made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pre);
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, post);
    return finished(d);
}

typedef struct operation_row {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t details, x, w, y, alpha, beta;
} operation_row;

#define OPERATION(kind, prefix, x, w, y)                                                                     \
    {                                                                                                        \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                             \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC,                                           \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##x,                                                 \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##w,                                                 \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##y,                                                 \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA,                                               \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA                                                 \
    }
static const operation_row operations[] = {OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                                           OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
                                           OPERATION(FORWARD, FORWARD, X, W, Y)};

static descriptor graph_of(const trial *t, cudnnHandle_t handle)
{
    const operation_row *row = &operations[t->result];
    const float one = 1.0f, zero = 0.0f;
    descriptor parts[] = {convolution_of(&t->query.attr), image(1, t->dtype, &t->shape[0]),
                          filters(2, t->dtype, &t->shape[1]), image(3, t->dtype, &t->shape[2])};
    descriptor operation = made(row->kind), graph = made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set_bag(operation, row->details, parts[0]);
    set_bag(operation, row->x, parts[1]);
    set_bag(operation, row->w, parts[2]);
    set_bag(operation, row->y, parts[3]);
    set(operation, row->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(operation, row->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    set_bag(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, finished(operation));
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    (void)finished(graph);
    for (int k = 0; k < 4; k++) {
        (void)dnn.drop(parts[k]); // the graph has them
    }
    (void)dnn.drop(operation);
    return graph;
}

static int64_t configs_of(descriptor graph, descriptor config[CONFIGS])
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t upper = 0, count = 0;
    descriptor heuristics = made(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_bag(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    (void)finished(heuristics);
    for (int k = 0; k < CONFIGS; k++) {
        config[k] = made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    ck_assert_int_eq(
        dnn.get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &upper, NULL),
        CUDNN_STATUS_SUCCESS);
    ck_assert_int_eq(dnn.get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                             upper < CONFIGS ? upper : CONFIGS, &count, config),
                     CUDNN_STATUS_SUCCESS);
    ck_assert_int_le(count, upper);
    (void)dnn.drop(heuristics);
    return count;
}

static int64_t workspace_of(descriptor plan)
{
    int64_t bytes = -1, count = 0;
    ck_assert_int_eq(
        dnn.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
        CUDNN_STATUS_SUCCESS);
    return bytes;
}

// ---- running --------------------------------------------------------------------------------------------------------

static CUdeviceptr upload(const trial *t, int k)
{
    CUdeviceptr address = 0;
    const uint64_t bytes = t->count[k] * dtype_bytes((hr_dtype)t->dtype);
    unsigned char *host = calloc(t->count[k], 4);
    for (uint64_t e = 0; e < t->count[k]; e++) {
        const float single = (float)t->value[k][e];
        const uint16_t half = t->dtype == HR_F16 ? f16_of_float(single) : bf16_of_float(single);
        if (t->dtype == HR_F32) {
            memcpy(host + 4 * e, &single, 4);
        } else {
            memcpy(host + 2 * e, &half, 2);
        }
    }
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    ck_assert_int_eq(cuda_driver.cuMemcpyHtoD_v2(address, host, bytes), CUDA_SUCCESS);
    free(host);
    return address;
}

static double worst_of(const trial *t, CUdeviceptr address)
{
    const uint64_t size = dtype_bytes((hr_dtype)t->dtype), count = t->count[t->result];
    unsigned char *host = calloc(count, 4);
    double worst = 0, largest = 1;
    ck_assert_int_eq(cuda_driver.cuMemcpyDtoH_v2(host, address, count * size), CUDA_SUCCESS);
    for (uint64_t e = 0; e < count; e++) {
        float single = 0;
        uint16_t half = 0;
        memcpy(&half, host + size * e, 2);
        memcpy(&single, host + size * e, size);
        single = t->dtype == HR_F32 ? single : t->dtype == HR_F16 ? float_of_f16(half) : float_of_bf16(half);
        worst = fmax(worst, fabs((double)single - t->want[e]));
        largest = fmax(largest, fabs(t->want[e]));
    }
    free(host);
    return worst / largest;
}

// Right, with exactly the workspace that the plan asks for.
static void run_plan(const trial *t, cudnnHandle_t handle, descriptor plan, int64_t workspace_bytes)
{
    const int64_t ids[] = {1, 2, 3};
    CUdeviceptr address[3], workspace = 0;
    descriptor pack = made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    for (int k = 0; k < 3; k++) {
        address[k] = upload(t, k);
    }
    ck_assert_int_eq(cuda_driver.cuMemAlloc_v2(&workspace, (size_t)workspace_bytes + 1), CUDA_SUCCESS);
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, address);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    ck_assert_int_eq(dnn.execute(handle, plan, finished(pack)), CUDNN_STATUS_SUCCESS);
    ck_assert_int_eq(cuda_driver.cuCtxSynchronize(), CUDA_SUCCESS);
    const double most = t->dtype == HR_BF16 ? 0x1p-7 : 0x1p-9; // TF32 has as many bits as float16
    const double worst = worst_of(t, address[t->result]);
    ck_assert_msg(worst <= most, "%s of %s is %g from the judge's", op_name(t->op),
                  dtype_name((hr_dtype)t->dtype), worst);
    for (int k = 0; k < 3; k++) {
        (void)cuda_driver.cuMemFree_v2(address[k]);
    }
    (void)cuda_driver.cuMemFree_v2(workspace);
    (void)dnn.drop(pack);
}

static void *open_card(cudnnHandle_t *handle)
{
    const device_options options = {.threads = 1};
    void *context = NULL;
    hr_err err = {0};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    open_library();
    ck_assert_int_eq(dnn.create(handle), CUDNN_STATUS_SUCCESS);
    return context;
}

START_TEST(every_engine_of_a_convolution_agrees_with_the_judge)
{
    cudnnHandle_t handle = NULL;
    void *context = open_card(&handle);
    uint64_t state = 17;
    for (int k = 0; k < TRIALS; k++) {
        trial t = make_trial(k, &state);
        descriptor config[CONFIGS], graph = graph_of(&t, handle);
        const int64_t count = configs_of(graph, config);
        ck_assert_int_gt(count, 1);
        for (int64_t c = 0; c < count; c++) {
            descriptor plan = made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
            set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
            set_bag(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config[c]);
            const bool plans = dnn.finalize(plan) == CUDNN_STATUS_SUCCESS;
            if (plans && workspace_of(plan) <= WORKSPACE_MOST) {
                run_plan(&t, handle, plan, workspace_of(plan));
            }
            (void)dnn.drop(plan);
        }
        for (int c = 0; c < CONFIGS; c++) {
            (void)dnn.drop(config[c]);
        }
        (void)dnn.drop(graph);
        free_trial(&t);
    }
    (void)dnn.destroy(handle);
    device_cuda.close(context);
}
END_TEST

START_TEST(what_is_missing_of_the_wrong_type_or_too_late_is_refused)
{
    open_library();
    const int64_t uid = 1, dims[] = {1, 2, 3, 4};
    const float wrong = 1.0f;
    descriptor d = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    ck_assert_int_ne(dnn.finalize(d), CUDNN_STATUS_SUCCESS);
    ck_assert_int_ne(dnn.set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_FLOAT, 1, &wrong),
                     CUDNN_STATUS_SUCCESS);
    ck_assert_int_ne(dnn.set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &uid),
                     CUDNN_STATUS_SUCCESS);
    (void)dnn.drop(d);
    descriptor whole = tensor_of(1, HR_F32, dims, (const int64_t[]){24, 12, 4, 1});
    ck_assert_int_ne(dnn.set(whole, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid),
                     CUDNN_STATUS_SUCCESS);
    (void)dnn.drop(whole);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_card_cudnn");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, every_engine_of_a_convolution_agrees_with_the_judge);
    tcase_add_test(tests, what_is_missing_of_the_wrong_type_or_too_late_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
