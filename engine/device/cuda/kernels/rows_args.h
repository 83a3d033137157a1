// SPDX-License-Identifier: Apache-2.0
// How long a row may be for a warp, and for a block, to hold it in registers. Read by C and by CUDA C++.
//
// Rows whose every first element is aligned to sixteen bytes are held in vectors, others element by element.
#ifndef KERNELS_ROWS_ARGS_H
#define KERNELS_ROWS_ARGS_H

#define ROWS_WARP_THREADS  256 // eight rows at once
#define ROWS_BLOCK_THREADS 512
#define ROWS_LONG_THREADS  1024

#define ROWS_WARP_ELEMENTS  1024
#define ROWS_WARP_SINGLES   256
#define ROWS_BLOCK_ELEMENTS 8192
#define ROWS_BLOCK_SINGLES  2048

#endif
