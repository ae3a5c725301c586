# The CUDA kernels: each src/cuda/ARCH/FILE.cu becomes one image, embedded in the library by a
# generated table (src/gpu/images.h). What ptxas says of each is kept as cuda/ARCH_FILE.txt in the
# build folder, where tools/check-cuda-code.py reads it.
set(BSMM_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE BSMM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BSMM_CUDA_FLAGS "" CACHE STRING "More flags for nvcc, such as -lineinfo")

if(BSMM_CUDA)
  # The second pattern: NVIDIA's packages for Python, as tools/install-deps.sh cuda installs them.
  file(GLOB nvcc_folders /usr/local/cuda/bin /usr/local/cuda-*/bin
       ${PROJECT_SOURCE_DIR}/.cache/.venv/lib/python3*/site-packages/nvidia/cu*/bin)
  find_program(BSMM_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS ${nvcc_folders})
endif()

# What an architecture's kernels are compiled to. sm80's PTX serves whatever has no cubin; the sm_90
# cubin has that device's own conversions and kernels that overlap.
set(cuda_code_sm90a -cubin -gencode arch=compute_90a,code=sm_90a)
set(cuda_code_sm80 -fatbin -gencode arch=compute_80,code=compute_80
    -gencode arch=compute_90,code=sm_90)
# Contraction into FMA is off as on the host: what the same C gives there it gives here. Kernels
# that want a fused multiply-add write fmaf.
set(cuda_flags -O3 -std=c++17 -fmad=false --ptxas-options=-v,-warn-spills
    -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src ${BSMM_CUDA_FLAGS})

function(compile_cuda source image)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(arch ${folder} NAME)
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh ${image}.txt ${BSMM_NVCC}
            ${cuda_flags} ${cuda_code_${arch}} -MD -MF ${image}.d -o ${image} ${source}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh DEPFILE ${image}.d
    COMMENT "nvcc ${arch}" VERBATIM)
endfunction()

file(GLOB cuda_sources CONFIGURE_DEPENDS src/cuda/*/*.cu)
set(cuda_images)
set(cuda_table "#include \"gpu/images.h\"\n\n")
set(cuda_rows)
if(BSMM_NVCC AND BSMM_CUDA)
  foreach(source ${cuda_sources})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src/cuda ${source})
    string(REGEX REPLACE "\\.cu$" "" name ${name})
    string(REPLACE "/" "_" symbol ${name})
    set(image ${PROJECT_BINARY_DIR}/cuda/${symbol}.image)
    compile_cuda(${source} ${image})
    list(APPEND cuda_images ${image})
    string(APPEND cuda_table "BSMM_GPU_IMAGE(${symbol}, \"${image}\");\n")
    string(APPEND cuda_rows "    {\"${name}\", bsmm_gpu_image_${symbol}},\n")
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
  message(STATUS "CUDA kernels: compiled by ${BSMM_NVCC}")
elseif(BSMM_CUDA STREQUAL "ON")
  message(FATAL_ERROR "BSMM_CUDA is ON, but there is no nvcc: set BSMM_NVCC or PATH, or run "
                      "tools/install-deps.sh cuda")
else()
  message(STATUS "CUDA kernels: left out (no nvcc, or BSMM_CUDA=OFF); cuda devices will be refused")
endif()
string(APPEND cuda_table "\nconst bsmm_gpu_image bsmm_gpu_images[] = {\n${cuda_rows}    {0},\n};\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda_images.c CONTENT "${cuda_table}" @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/cuda_images.c PROPERTIES
                            OBJECT_DEPENDS "${cuda_images}")
