# SPDX-License-Identifier: Apache-2.0
# The cuda device: found, never required. Needed at build time: nvcc, cuda.h, cuDNN's and cuBLASLt's headers; at run time
# the driver, libcudnn and libcublasLt are opened when they are first needed.
#
#   HEADROOM_CUDA                AUTO | ON | OFF
#   HEADROOM_CUDA_ARCHITECTURES  AUTO | ALL | 80;86;…: of the kernels' machine code; PTX of the last one serves later cards.
#                                AUTO is the card at hand, or the newest: each takes half a minute of two cores
set(HEADROOM_CUDA AUTO CACHE STRING "NVIDIA cards through CUDA, cuDNN and cuBLASLt: AUTO, ON, OFF")
set(HEADROOM_CUDA_ARCHITECTURES AUTO CACHE STRING "Compute capabilities that kernels are compiled for: AUTO, ALL, a list")
set(hr_cuda_all "80;86;89;90")
set(HEADROOM_HAVE_CUDA OFF)
if(NOT HEADROOM_CUDA STREQUAL "OFF")
  # Where they may be, first found first: beside nvcc, a toolkit as NVIDIA installs it, and the wheels of a Python
  # (nvidia-cuda-nvcc, nvidia-cuda-runtime, nvidia-cublas: nvidia/cu13; nvidia-cudnn-cu13: nvidia/cudnn). Debian's paths
  # and those of the linker are CMake's own.
  find_program(HEADROOM_PYTHON python3)
  set(hr_wheels "")
  if(HEADROOM_PYTHON)
    execute_process(COMMAND ${HEADROOM_PYTHON} -c "import nvidia; print(';'.join(nvidia.__path__))"
      OUTPUT_VARIABLE hr_wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(hr_cuda_roots "")
  foreach(folder IN LISTS hr_wheels)
    list(APPEND hr_cuda_roots ${folder}/cu13 ${folder}/cudnn)
  endforeach()
  find_program(HEADROOM_NVCC nvcc PATHS /usr/local/cuda/bin HINTS ${hr_cuda_roots} PATH_SUFFIXES bin)
  if(HEADROOM_NVCC)
    get_filename_component(hr_nvcc_real ${HEADROOM_NVCC} REALPATH)
    get_filename_component(hr_cuda_bin ${hr_nvcc_real} DIRECTORY)
    get_filename_component(hr_cuda_root ${hr_cuda_bin} DIRECTORY)
    list(PREPEND hr_cuda_roots ${hr_cuda_root} ${hr_cuda_root}/targets/x86_64-linux)
  endif()
  find_path(HEADROOM_CUDA_INCLUDE cuda.h HINTS ${hr_cuda_roots} PATH_SUFFIXES include)
  find_path(HEADROOM_CUDNN_INCLUDE cudnn_graph.h HINTS ${hr_cuda_roots} PATH_SUFFIXES include)
  find_path(HEADROOM_CUBLASLT_INCLUDE cublasLt.h HINTS ${hr_cuda_roots} PATH_SUFFIXES include)
  find_library(HEADROOM_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${hr_cuda_roots} PATH_SUFFIXES lib64 lib)
  find_library(HEADROOM_CUBLASLT_LIBRARY NAMES cublasLt libcublasLt.so.13 HINTS ${hr_cuda_roots} PATH_SUFFIXES lib64 lib)
  if(HEADROOM_NVCC AND HEADROOM_CUDA_INCLUDE AND HEADROOM_CUDNN_INCLUDE AND HEADROOM_CUBLASLT_INCLUDE
     AND HEADROOM_CUDNN_LIBRARY AND HEADROOM_CUBLASLT_LIBRARY)
    set(HEADROOM_HAVE_CUDA ON)
  elseif(HEADROOM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HEADROOM_CUDA=ON needs nvcc, cuda.h, cudnn_graph.h, cublasLt.h and the libraries of cuDNN 9 and cuBLASLt; found: "
      "nvcc ${HEADROOM_NVCC}, ${HEADROOM_CUDA_INCLUDE}, ${HEADROOM_CUDNN_INCLUDE}, ${HEADROOM_CUBLASLT_INCLUDE}, "
      "${HEADROOM_CUDNN_LIBRARY}, ${HEADROOM_CUBLASLT_LIBRARY}")
  endif()
endif()

# Sets hr_cuda_architectures, in ascending order.
function(hr_choose_architectures)
  set(chosen ${HEADROOM_CUDA_ARCHITECTURES})
  if(chosen STREQUAL "ALL")
    set(chosen ${hr_cuda_all})
  elseif(chosen STREQUAL "AUTO")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE cards OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" chosen "${cards}")
    list(TRANSFORM chosen REPLACE "\\." "")
    list(REMOVE_DUPLICATES chosen)
    list(SORT chosen COMPARE NATURAL)
    if(failed OR NOT chosen)
      list(GET hr_cuda_all -1 chosen)
    endif()
  endif()
  set(hr_cuda_architectures ${chosen} PARENT_SCOPE)
endfunction()

# hr_fat_binary(IMAGE SOURCE): machine code of a source for every architecture, and PTX of the last one. Compressed, which
# every driver reads, it is a third: 19 MiB of an executable are 6.
function(hr_fat_binary image source)
  set(gencode)
  foreach(arch IN LISTS hr_cuda_architectures)
    list(APPEND gencode -gencode=arch=compute_${arch},code=sm_${arch})
    set(newest ${arch})
  endforeach()
  list(APPEND gencode -gencode=arch=compute_${newest},code=compute_${newest})
  set(strict)
  if(HEADROOM_WERROR)
    set(strict -Werror all-warnings)
  endif()
  get_filename_component(name ${source} NAME_WE)
  add_custom_command(OUTPUT ${image}
    COMMAND ${HEADROOM_NVCC} -std=c++17 -O3 ${gencode} ${strict} -MMD -MF ${image}.d -MT ${image}
            -Xfatbin=-compress-all -fatbin -o ${image} ${source}
    DEPENDS ${source} DEPFILE ${image}.d VERBATIM COMMENT "nvcc ${name}")
endfunction()

# hr_cuda_kernels(TARGET): every kernels/*.cu of the target's folder as a fat binary inside the target, and the table
# of them that kernels.c includes. What a sanitizer looks at runs on the processor: there, all are one that is empty.
function(hr_cuda_kernels target)
  set(folder ${CMAKE_SOURCE_DIR}/engine/device/cuda/kernels)
  set(out ${CMAKE_BINARY_DIR}/cuda)
  file(MAKE_DIRECTORY ${out})
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)
  if(HEADROOM_SANITIZE)
    file(CONFIGURE OUTPUT ${out}/empty.cu CONTENT "")
    hr_fat_binary(${out}/empty.fatbin ${out}/empty.cu)
  endif()
  set(table "")
  set(assembly "")
  foreach(kernel IN LISTS kernels)
    get_filename_component(name ${kernel} NAME_WE)
    if(HEADROOM_SANITIZE)
      set(image ${out}/empty.fatbin)
    else()
      set(image ${out}/${name}.fatbin)
      hr_fat_binary(${image} ${kernel})
    endif()
    list(APPEND images ${image})
    string(APPEND table "X(${name})\n")
    string(APPEND assembly ".global hr_cuda_${name}\n.balign 64\nhr_cuda_${name}:\n.incbin \"${image}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out}/cuda_modules.inc CONTENT "${table}")
  file(CONFIGURE OUTPUT ${out}/cuda_modules.S CONTENT
    ".section .rodata\n${assembly}.section .note.GNU-stack,\"\",@progbits\n")
  set_source_files_properties(${out}/cuda_modules.S PROPERTIES OBJECT_DEPENDS "${images}")
  target_sources(${target} PRIVATE ${out}/cuda_modules.S)
  target_include_directories(${target} PRIVATE ${out})
endfunction()

if(HEADROOM_HAVE_CUDA)
  enable_language(ASM)
  hr_choose_architectures()
  hr_folder(device_cuda PATH device/cuda KNOWS device program ops memory events base USES PkgConfig::JANSSON Threads::Threads m)
  target_include_directories(hr_device_cuda SYSTEM PRIVATE ${HEADROOM_CUDA_INCLUDE})
  hr_opens(hr_device_cuda CUDNN ${HEADROOM_CUDNN_LIBRARY} ${HEADROOM_CUDNN_INCLUDE})
  # Where there is no driver, cuDNN shows the engines that it would compile only beside the toolkit's stub of one.
  get_filename_component(hr_cublaslt_folder ${HEADROOM_CUBLASLT_LIBRARY} DIRECTORY)
  find_file(HEADROOM_CUDA_STUB libcuda.so HINTS ${hr_cuda_root}/lib64/stubs ${hr_cuda_root}/lib/stubs ${hr_cublaslt_folder}/stubs
    NO_DEFAULT_PATH)
  get_filename_component(hr_cudnn_file ${HEADROOM_CUDNN_LIBRARY} REALPATH)
  target_compile_definitions(hr_device_cuda PRIVATE HEADROOM_CUDNN_FILE="${hr_cudnn_file}"
    HEADROOM_CUDA_STUB="$<$<BOOL:${HEADROOM_CUDA_STUB}>:${HEADROOM_CUDA_STUB}>")
  hr_opens(hr_device_cuda CUBLASLT ${HEADROOM_CUBLASLT_LIBRARY} ${HEADROOM_CUBLASLT_INCLUDE})
  get_filename_component(hr_cublaslt_file ${HEADROOM_CUBLASLT_LIBRARY} REALPATH)
  target_compile_definitions(hr_device_cuda PRIVATE HEADROOM_CUBLASLT_FILE="${hr_cublaslt_file}")
  hr_cuda_kernels(hr_device_cuda)
  target_compile_definitions(hr_flags INTERFACE HEADROOM_HAVE_CUDA=1)
  message(STATUS "cuda device: ${HEADROOM_NVCC}, kernels for ${hr_cuda_architectures}")
else()
  target_compile_definitions(hr_flags INTERFACE HEADROOM_HAVE_CUDA=0)
  message(STATUS "cuda device: not built (nvcc, cuDNN or cuBLASLt absent, or HEADROOM_CUDA=OFF)")
endif()
