// SPDX-License-Identifier: Apache-2.0
// Every function that this device takes from oneDNN and from the OpenMP runtime behind it: the names alone, so that a
// test can make a library of its own out of them.
#ifndef DEVICE_CPU_ONEDNN_CALLS_H
#define DEVICE_CPU_ONEDNN_CALLS_H

// X(name), without the library's `dnnl_`
#define ONEDNN_CALL_MAP(X)                                                                                   \
    X(version)                                                                                               \
    X(set_max_cpu_isa)                                                                                       \
    X(get_effective_cpu_isa)                                                                                 \
    X(engine_create)                                                                                         \
    X(engine_destroy)                                                                                        \
    X(stream_create)                                                                                         \
    X(stream_destroy)                                                                                        \
    X(memory_desc_init_by_tag)                                                                               \
    X(memory_desc_init_by_strides)                                                                           \
    X(memory_desc_equal)                                                                                     \
    X(memory_desc_get_size)                                                                                  \
    X(memory_create)                                                                                         \
    X(memory_destroy)                                                                                        \
    X(memory_set_data_handle)                                                                                \
    X(post_ops_create)                                                                                       \
    X(post_ops_destroy)                                                                                      \
    X(post_ops_append_eltwise)                                                                               \
    X(primitive_attr_create)                                                                                 \
    X(primitive_attr_destroy)                                                                                \
    X(primitive_attr_set_output_scales)                                                                      \
    X(primitive_attr_set_post_ops)                                                                           \
    X(primitive_attr_set_scratchpad_mode)                                                                    \
    X(dilated_convolution_forward_desc_init)                                                                 \
    X(dilated_convolution_backward_data_desc_init)                                                           \
    X(dilated_convolution_backward_weights_desc_init)                                                        \
    X(matmul_desc_init)                                                                                      \
    X(reorder_primitive_desc_create)                                                                         \
    X(primitive_desc_create)                                                                                 \
    X(primitive_desc_destroy)                                                                                \
    X(primitive_desc_query)                                                                                  \
    X(primitive_desc_query_md)                                                                               \
    X(primitive_desc_iterator_create)                                                                        \
    X(primitive_desc_iterator_destroy)                                                                       \
    X(primitive_desc_iterator_fetch)                                                                         \
    X(primitive_desc_iterator_next)                                                                          \
    X(primitive_create)                                                                                      \
    X(primitive_destroy)                                                                                     \
    X(primitive_execute)

// X(symbol, parameters). GOMP_parallel is what GCC makes of a parallel region (libgomp/libgomp_g.h); LLVM's runtime
// has it too.
#define ONEDNN_OPENMP_MAP(X)                                                                                 \
    X(omp_set_dynamic, (int is_dynamic))                                                                     \
    X(omp_set_num_threads, (int threads))                                                                    \
    X(GOMP_parallel, (void (*body)(void *), void *data, unsigned threads, unsigned flags))

#endif
