// SPDX-License-Identifier: Apache-2.0
// cuDNN: the true one, which PyTorch has loaded, answers what it can answer without a card: which engines it would take for a
// convolution, and how much workspace they need. A handle is a number; where PyTorch sets one in a descriptor of cuDNN's
// graphs, the card's properties are set instead (cuDNN 9.8 and later take them). Nothing is executed.
//
// Normalisations have no such way to ask: their workspace and reserve count as 0 bytes. Recurrent layers, CTC and spatial
// transformers are refused.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

typedef enum cudnn_status {
    CUDNN_OK = 0,
    CUDNN_NO_LIBRARY = 1001,
    CUDNN_REFUSED = 3000, // not supported
    CUDNN_NO_MEMORY = 4001,
} cudnn_status;

// Of cuDNN's graph API.
enum {
    TYPE_HANDLE = 0,
    TYPE_DESCRIPTOR = 15,
    TYPE_CHAR = 24,
    DESCRIPTOR_PROPERTIES = 38,
    HEURISTICS_GRAPH = 201,
    HEURISTICS_PROPERTIES = 204,
    PLAN_HANDLE = 400,
    PLAN_PROPERTIES = 407,
    GRAPH_HANDLE = 800,
    ENGINE_GRAPH = 1300,
    ENGINE_PROPERTIES = 1307,
    PROPERTIES_TEXT = 2702,
};

typedef struct cudnn_handle {
    void *stream;
} cudnn_handle;

// ---- the true one ---------------------------------------------------------------------------------------------------

typedef cudnn_status (*set_function)(void *descriptor, int name, int type, int64_t count,
                                     const void *elements);

static struct {
    cudnn_status (*create)(int type, void **out);
    cudnn_status (*finalize)(void *descriptor);
    set_function set;
    void *properties; // a descriptor; NULL: cuDNN does not take the card's
} cudnn;

// Behind our own functions of the same names. Data and functions are not one type in C.
static void *true_function(void *library, const char *name)
{
    return library == NULL ? NULL : dlsym(library, name);
}

static void describe_card(void)
{
    const char *text = the_card()->properties;
    void *made = NULL;
    if (text == NULL || cudnn.create(DESCRIPTOR_PROPERTIES, &made) != CUDNN_OK) {
        return;
    }
    if (cudnn.set(made, PROPERTIES_TEXT, TYPE_CHAR, (int64_t)strlen(text) + 1, text) == CUDNN_OK &&
        cudnn.finalize(made) == CUDNN_OK) {
        cudnn.properties = made;
    }
}

static void open_cudnn(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
    void *const functions[] = {true_function(library, "cudnnBackendCreateDescriptor"),
                               true_function(library, "cudnnBackendFinalize"),
                               true_function(library, "cudnnBackendSetAttribute")};
    memcpy(&cudnn.create, &functions[0], sizeof functions[0]);
    memcpy(&cudnn.finalize, &functions[1], sizeof functions[1]);
    memcpy(&cudnn.set, &functions[2], sizeof functions[2]);
    if (functions[0] != NULL && functions[1] != NULL && functions[2] != NULL) {
        describe_card();
    }
    if (cudnn.properties == NULL) {
        (void)fputs(
            "card of numbers: cuDNN 9.8 or later has to be loaded and to know the card of HEADROOM_NUMBERS\n",
            stderr);
    }
}

static bool opened(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_cudnn);
    return cudnn.properties != NULL;
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

static cudnn_status set_properties(void *descriptor, int name)
{
    return cudnn.set(descriptor, name, TYPE_DESCRIPTOR, 1, &cudnn.properties);
}

EXPORTED cudnn_status cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
                                               const void *elements)
{
    if (!opened()) {
        return CUDNN_NO_LIBRARY;
    }
    if (name == GRAPH_HANDLE && type == TYPE_HANDLE) {
        return CUDNN_OK; // a graph needs none
    }
    if (name == PLAN_HANDLE && type == TYPE_HANDLE) {
        return set_properties(descriptor, PLAN_PROPERTIES);
    }
    const cudnn_status status = cudnn.set(descriptor, name, type, count, elements);
    if (status == CUDNN_OK && name == HEURISTICS_GRAPH) {
        return set_properties(descriptor, HEURISTICS_PROPERTIES);
    }
    if (status == CUDNN_OK && name == ENGINE_GRAPH) {
        return set_properties(descriptor, ENGINE_PROPERTIES);
    }
    return status;
}

#define SUCCEEDS(name) ANSWERS(cudnn_status, name, CUDNN_OK)
#define REFUSES(name)                                                                                        \
    EXPORTED cudnn_status name(void)                                                                         \
    {                                                                                                        \
        (void)fputs("card of numbers: " #name " is refused; try: torch.backends.cudnn.enabled = False\n",    \
                    stderr);                                                                                 \
        return CUDNN_REFUSED;                                                                                \
    }

SUCCEEDS(cudnnBackendExecute)

// ---- handles --------------------------------------------------------------------------------------------------------

EXPORTED cudnn_status cudnnCreate(cudnn_handle **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? CUDNN_OK : CUDNN_NO_MEMORY;
}

EXPORTED cudnn_status cudnnDestroy(cudnn_handle *h)
{
    free(h);
    return CUDNN_OK;
}

EXPORTED cudnn_status cudnnSetStream(cudnn_handle *h, void *stream)
{
    h->stream = stream;
    return CUDNN_OK;
}

EXPORTED cudnn_status cudnnGetStream(const cudnn_handle *h, void **stream)
{
    *stream = h->stream;
    return CUDNN_OK;
}

// ---- normalisations -------------------------------------------------------------------------------------------------

EXPORTED cudnn_status cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *h, int mode,
                                                                               int operations, void *x,
                                                                               void *z, void *y, void *scale,
                                                                               void *activation,
                                                                               size_t *bytes)
{
    (void)h, (void)mode, (void)operations, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = 0;
    return CUDNN_OK;
}

// NOLINTNEXTLINE(readability-function-size): cuDNN's arguments
EXPORTED cudnn_status cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *h, int mode, int operations,
                                                                        void *x, void *y, void *dy, void *dz,
                                                                        void *dx, void *scale,
                                                                        void *activation, size_t *bytes)
{
    (void)h, (void)mode, (void)operations, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)scale,
        (void)activation;
    *bytes = 0;
    return CUDNN_OK;
}

EXPORTED cudnn_status cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *h, int mode, int operations,
                                                                           void *activation, void *x,
                                                                           size_t *bytes)
{
    (void)h, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = 0;
    return CUDNN_OK;
}

SUCCEEDS(cudnnBatchNormalizationForwardTrainingEx)
SUCCEEDS(cudnnBatchNormalizationForwardInference)
SUCCEEDS(cudnnBatchNormalizationBackwardEx)
SUCCEEDS(cudnnPoolingForward)

// ---- what needs a card to answer ------------------------------------------------------------------------------------

REFUSES(cudnnConvolutionForward)
REFUSES(cudnnConvolutionBackwardData)
REFUSES(cudnnConvolutionBackwardFilter)
REFUSES(cudnnConvolutionBiasActivationForward)
REFUSES(cudnnFindConvolutionForwardAlgorithmEx)
REFUSES(cudnnFindConvolutionBackwardDataAlgorithmEx)
REFUSES(cudnnFindConvolutionBackwardFilterAlgorithmEx)
REFUSES(cudnnGetConvolutionForwardAlgorithm_v7)
REFUSES(cudnnGetConvolutionBackwardDataAlgorithm_v7)
REFUSES(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
REFUSES(cudnnGetConvolutionForwardWorkspaceSize)
REFUSES(cudnnGetConvolutionBackwardDataWorkspaceSize)
REFUSES(cudnnGetConvolutionBackwardFilterWorkspaceSize)
REFUSES(cudnnDropoutGetStatesSize)
REFUSES(cudnnSetDropoutDescriptor)
REFUSES(cudnnRestoreDropoutDescriptor)
REFUSES(cudnnGetRNNTempSpaceSizes)
REFUSES(cudnnGetRNNWeightSpaceSize)
REFUSES(cudnnGetRNNWeightParams)
REFUSES(cudnnRNNForward)
REFUSES(cudnnRNNBackwardData_v8)
REFUSES(cudnnRNNBackwardWeights_v8)
REFUSES(cudnnGetCTCLossWorkspaceSize)
REFUSES(cudnnGetCTCLossWorkspaceSize_v8)
REFUSES(cudnnCTCLoss)
REFUSES(cudnnCTCLoss_v8)
REFUSES(cudnnSpatialTfGridGeneratorForward)
REFUSES(cudnnSpatialTfGridGeneratorBackward)
REFUSES(cudnnSpatialTfSamplerForward)
REFUSES(cudnnSpatialTfSamplerBackward)

// NOLINTEND(readability-identifier-naming)
