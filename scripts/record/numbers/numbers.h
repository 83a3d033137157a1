// SPDX-License-Identifier: Apache-2.0
// Private to the card of numbers: a CUDA runtime, cuBLAS and what cuDNN wants of a card, which own nothing but numbers, so
// that PyTorch's own CUDA build makes its real requests on a machine without a card. The library is loaded before
// PyTorch (LD_PRELOAD, or dlopen with RTLD_GLOBAL), and its functions are then found in place of the true ones; a function
// that it lacks is the true library's, which says that there is no card.
//
//   memory     a range of addresses that are never touched; no more of it than the card has
//   work       is done when it is enqueued, and does nothing: kernels, fills, products, convolutions
//   copies     to the host bring zeros; within the host they copy
//   cuDNN      is the true one, asked for the card's properties instead of for a card, and never executes
//
// Functions have CUDA's own names, numbers and arguments (docs.nvidia.com/cuda/cuda-runtime-api and cuda-driver-api, of CUDA
// 13), written without its headers, which a machine without a card need not have. Any thread may call.
#ifndef RECORD_NUMBERS_H
#define RECORD_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

// A function whose arguments do not matter takes none: a caller may pass more.
#define ANSWERS(status, name, answer)                                                                        \
    EXPORTED status name(void)                                                                               \
    {                                                                                                        \
        return answer;                                                                                       \
    }
#define HANDS_OUT(status, name)                                                                              \
    EXPORTED status name(void **out)                                                                         \
    {                                                                                                        \
        *out = new_handle();                                                                                 \
        return (status)0;                                                                                    \
    }

// Of the runtime; the driver's first three are the same.
typedef enum cuda_error {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_NO_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_SUPPORTED = 801,
} cuda_error;

// What a thread's last failure was is kept for cudaGetLastError. Returns it.
cuda_error failed(cuda_error error);

// ---- the card (card.c) ----------------------------------------------------------------------------------------------

// HEADROOM_NUMBERS: the text of a file like those of presets/cards. HEADROOM_NUMBERS_CONTEXT: bytes of its memory that a
// context keeps, 0 by default.
typedef struct numbers_card {
    const char *properties; // the text; NULL: there is no card, and standard error has said why
    char name[128];
    int64_t capability, multiprocessors, threads_per_sm, blocks_per_sm, shared_per_block, shared_optin,
        shared_reserved;
    int64_t registers_per_sm, registers_per_block, clock_khz, memory_clock_khz, l2_bytes;
    uint64_t memory_bytes, context_bytes;
} numbers_card;

// Read at the first call.
const numbers_card *the_card(void);

// ---- memory (memory.c) ----------------------------------------------------------------------------------------------

enum { GRANULE_BYTES = 2 << 20 }; // of a card's pages

#define MEMORY_MOST_BYTES (UINT64_C(1) << 46) // of a card: 64 TiB, for which there are addresses

bool is_of_card(const void *address);
uint64_t free_bytes(void);
uint64_t used_bytes(void);

// ---- handles (work.c) -----------------------------------------------------------------------------------------------

void *new_handle(void);

// ---- the driver's entry points (driver.c) ---------------------------------------------------------------------------

typedef void (*entry_point)(void);
entry_point driver_entry(const char *name); // NULL: none of that name

#endif
