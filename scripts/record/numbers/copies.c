// SPDX-License-Identifier: Apache-2.0
// Copies and fills. What lies on the card is nothing: what comes from there are zeros.
#include <string.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

static cuda_error copy(void *to, const void *from, size_t bytes)
{
    if (is_of_card(to) || bytes == 0) {
        return CUDA_OK;
    }
    if (is_of_card(from)) {
        memset(to, 0, bytes);
    } else {
        memmove(to, from, bytes);
    }
    return CUDA_OK;
}

EXPORTED cuda_error cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    (void)kind;
    return copy(to, from, bytes);
}

EXPORTED cuda_error cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    (void)kind, (void)stream;
    return copy(to, from, bytes);
}

EXPORTED cuda_error cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                        size_t bytes, void *stream)
{
    (void)to_device, (void)from_device, (void)stream;
    return copy(to, from, bytes);
}

EXPORTED cuda_error cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                      size_t width, size_t rows, int kind,
                                      void *stream) // NOLINT: CUDA's own arguments
{
    (void)kind, (void)stream;
    for (size_t k = 0; k < rows; k++) {
        (void)copy((char *)to + k * to_pitch, (const char *)from + k * from_pitch, width);
    }
    return CUDA_OK;
}

EXPORTED cuda_error cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                       int kind)
{
    (void)symbol, (void)from, (void)bytes, (void)offset, (void)kind;
    return CUDA_OK;
}

static cuda_error fill(void *to, int value, size_t bytes)
{
    if (!is_of_card(to)) {
        memset(to, value, bytes);
    }
    return CUDA_OK;
}

EXPORTED cuda_error cudaMemset(void *to, int value, size_t bytes)
{
    return fill(to, value, bytes);
}

EXPORTED cuda_error cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    (void)stream;
    return fill(to, value, bytes);
}

// NOLINTEND(readability-identifier-naming)
