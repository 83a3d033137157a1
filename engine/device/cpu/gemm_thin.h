// SPDX-License-Identifier: Apache-2.0
// Private to gemm*.c: few rows against a transposed B, C[m,n] = A[m,k] · B[n,k]ᵀ. Turning B over for a few
// rows costs as much as the product; here C is made the other way round, Cᵀ = B · Aᵀ, and only A and tiles of
// C are turned.
#ifndef DEVICE_CPU_GEMM_THIN_H
#define DEVICE_CPU_GEMM_THIN_H

#include <stdbool.h>
#include <stdint.h>

#include "gemm.h"

bool gemm_is_thin(const gemm *g);
uint64_t gemm_thin_scratch_bytes(const gemm *g);
void gemm_thin_run(const gemm *g, const gemm_operands *o, float *scratch);

#endif
