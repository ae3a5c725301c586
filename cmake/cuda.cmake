# Compiles the CUDA kernels. Each src/cuda/ARCH/FILE.cu, and each row of a table of kernels, is
# compiled to one image (a cubin or PTX) for each code that the devices of ARCH run. The images of
# one source form one pack, which is embedded in the library (cmake/images.cmake). The messages of
# ptxas for each image are kept as IMAGE.txt, which tools/check-cuda-code.py reads.
set(BSMM_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE BSMM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BSMM_CUDA_FLAGS "" CACHE STRING "More flags for nvcc, such as -lineinfo")

if(BSMM_CUDA)
  # The second pattern finds NVIDIA's packages for Python, which tools/install-deps.sh cuda
  # installs.
  file(GLOB nvcc_folders /usr/local/cuda/bin /usr/local/cuda-*/bin
       ${PROJECT_SOURCE_DIR}/.cache/.venv/lib/python3*/site-packages/nvidia/cu*/bin)
  find_program(BSMM_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS ${nvcc_folders})
endif()

# The codes that an architecture's kernels are compiled to: sm_* is a cubin, compute_* is PTX.
# Devices without a cubin run sm80's PTX. On sm_90 the cubin of sm80 uses that device's conversion
# instructions and lets consecutive kernels overlap.
set(cuda_codes_sm80 compute_80 sm_90)
set(cuda_codes_sm90a sm_90a)
# The compiler must not contract to FMA, so that the same C code gives the same bits on the host and
# on the GPU. Kernels that need a fused multiply-add call fmaf.
set(cuda_flags -O3 -std=c++17 -fmad=false --ptxas-options=-v,-warn-spills
    -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src ${BSMM_CUDA_FLAGS})

# ---- the list of sources: cuda_names, with cuda_source_NAME and cuda_pack_NAME ("sm90a/gemm") of
# each ----

set(cuda_names)
file(GLOB cuda_files CONFIGURE_DEPENDS src/cuda/*/*.cu)
foreach(source ${cuda_files})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src/cuda ${source})
  string(REGEX REPLACE "\\.cu$" "" name ${name})
  list(APPEND cuda_names ${name})
  set(cuda_source_${name} ${source})
  set(cuda_pack_${name} ${name})
endforeach()

# Writes one .cu for each row of a table: the columns of the row as macros, then an include of the
# body.
function(add_cuda_rows table body pack)
  file(READ ${table} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  string(REGEX MATCH "\nCOLUMNS\\(([^)]*)\\)" found "${text}")
  string(REGEX MATCHALL "[A-Z_]+" columns "${CMAKE_MATCH_1}")
  string(REGEX MATCHALL "\nTILE\\([^)]*\\)" rows "${text}")
  get_filename_component(arch ${pack} DIRECTORY)
  foreach(row ${rows})
    string(REGEX REPLACE "\nTILE\\(([^)]*)\\)" "\\1" row "${row}")
    string(REGEX MATCHALL "[A-Za-z0-9_]+" values "${row}")
    list(GET values 0 kernel)
    set(defines)
    foreach(column value IN ZIP_LISTS columns values)
      string(APPEND defines "#define ${column} ${value}\n")
    endforeach()
    set(source ${PROJECT_BINARY_DIR}/cuda/${arch}/${kernel}.cu)
    file(CONFIGURE OUTPUT ${source} CONTENT "${defines}#include \"${body}\"\n" @ONLY)
    list(APPEND cuda_names ${arch}/${kernel})
    set(cuda_source_${arch}/${kernel} ${source} PARENT_SCOPE)
    set(cuda_pack_${arch}/${kernel} ${pack} PARENT_SCOPE)
  endforeach()
  set(cuda_names ${cuda_names} PARENT_SCOPE)
endfunction()
add_cuda_rows(${PROJECT_SOURCE_DIR}/src/cuda/sm90a/tiles.def cuda/sm90a/gemm_body.h sm90a/gemm)

# ---- images and packs ----

function(compile_cuda source code image)
  set(form -ptx)
  if(code MATCHES "^sm_")
    set(form -cubin)
  endif()
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh ${image}.txt ${BSMM_NVCC}
            ${cuda_flags} ${form} -arch=${code} -MD -MF ${image}.d -o ${image} ${source}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh DEPFILE ${image}.d
    COMMENT "nvcc ${code}" VERBATIM)
endfunction()

if(BSMM_NVCC AND BSMM_CUDA)
  set(cuda_packs)
  foreach(name ${cuda_names})
    get_filename_component(arch ${name} DIRECTORY)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda/${arch})
    foreach(code ${cuda_codes_${arch}})
      compile_cuda(${cuda_source_${name}} ${code} ${PROJECT_BINARY_DIR}/cuda/${name}.${code}.image)
      list(APPEND cuda_images_${cuda_pack_${name}}.${code} ${name})
      list(APPEND cuda_packs ${cuda_pack_${name}}.${code})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES cuda_packs)
  foreach(pack ${cuda_packs})
    string(REGEX REPLACE "^.*\\." "" code ${pack})
    add_gpu_pack(cuda/${pack} ${code} ${cuda_images_${pack}})
  endforeach()
  message(STATUS "CUDA kernels: compiled by ${BSMM_NVCC}")
elseif(BSMM_CUDA STREQUAL "ON")
  message(FATAL_ERROR "BSMM_CUDA is ON, but there is no nvcc: set BSMM_NVCC or PATH, or run "
                      "tools/install-deps.sh cuda")
else()
  set(cuda_names)
  message(STATUS "CUDA kernels: left out (no nvcc, or BSMM_CUDA=OFF); cuda devices will be refused")
endif()
