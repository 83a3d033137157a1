# SPDX-License-Identifier: Apache-2.0
# The kernels of the cpu device are plain C that the compiler turns into vectors: it may fuse a product with the sum
# behind it, and need not keep errno. Nothing here lets it reorder sums.
target_compile_options(hr_device_cpu PRIVATE -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math)
# Which level a value is rounded to hangs on its last bit: here no product is fused with a sum.
set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/device/cpu/fake_quant.c PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
