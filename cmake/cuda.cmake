# Compiles the CUDA kernels. The kernels are the files src/cuda/ARCH/FILE.cu, the entries of the
# tables src/cuda/ARCH/tiles.def, and the modules of the other tables src/cuda/sm90a/*.def. Each of
# them is compiled to one image (a cubin or PTX) for each code in cuda_codes_ARCH. Images with the
# same code and pack name form one pack, which is embedded in the library (cmake/images.cmake).
# ptxas's messages for an image are kept in IMAGE.txt, which tools/check-cuda-code.py reads.
set(BSMM_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE BSMM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BSMM_CUDA_FLAGS "" CACHE STRING "More flags for nvcc, such as -lineinfo")

if(BSMM_CUDA)
  # The last pattern finds NVIDIA's Python packages, which `tools/install-deps.sh cuda` installs.
  file(GLOB nvcc_folders /usr/local/cuda/bin /usr/local/cuda-*/bin
       ${PROJECT_SOURCE_DIR}/.cache/.venv/lib/python3*/site-packages/nvidia/cu*/bin)
  find_program(BSMM_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS ${nvcc_folders})
endif()

# These lists have the codes to which the kernels of each folder ARCH are compiled: sm_* is a cubin,
# compute_* is PTX. A device without a cubin of its own compiles sm80's PTX when it loads the kernel. The cubin
# of sm80 for sm_90 can use sm_90's conversion instructions and lets consecutive kernels overlap.
# PTX for compute_90a is for the simulator (docs/SIMULATOR.md), which runs no cubins. If PTX of the
# same architecture stands before a cubin in the list, the cubin is made from this PTX.
set(cuda_codes_sm80 compute_80 sm_90)
set(cuda_codes_sm90a compute_90a sm_90a)
# A cubin for sm_100f runs on Blackwell's data center GPUs (10.0 and 10.3). The PTX is for the
# simulator.
set(cuda_codes_sm100f compute_100f sm_100f)
# A cubin for sm_120f runs on GeForce RTX 50 (12.0) and DGX Spark (12.1). The PTX is for the
# simulator.
set(cuda_codes_sm120f compute_120f sm_120f)
# The compiler must not contract to FMA, so that the same C code gives the same bits on the host and
# on the GPU. Kernels that need a fused multiply-add call fmaf.
set(cuda_flags -O3 -std=c++17 -fmad=false --ptxas-options=-v,-warn-spills
    -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src ${BSMM_CUDA_FLAGS})

# The commands from here on make the list of kernels.

# Generates one .cu file for each module of the table src/cuda/sm90a/TABLE.def and each folder ARCH
# that has kernels of the module. An entry has the name of the module, a number for each further
# argument of the function, and the values of the table's COLUMNS(...). The further arguments are
# folders besides sm90a, and the number is 1 if the kernel is also compiled for this folder. The
# file includes ARCH/TABLE_kernels.h. For each entry it then defines the columns as macros with the
# values of the entry, and includes TABLE_body.h.
function(add_cuda_modules table)
  set(file ${PROJECT_SOURCE_DIR}/src/cuda/sm90a/${table}.def)
  file(READ ${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  string(REGEX MATCH "\nCOLUMNS\\(([^)]*)\\)" found "${text}")
  string(REGEX MATCHALL "[A-Z0-9_]+" columns "${CMAKE_MATCH_1}")
  string(REGEX MATCHALL "\nKERNEL\\([^)]*\\)" rows "${text}")
  string(TOUPPER ${table} prefix)
  set(names)
  foreach(row ${rows})
    string(REGEX REPLACE "\nKERNEL\\(([^)]*)\\)" "\\1" row "${row}")
    string(REGEX MATCHALL "[A-Za-z0-9_]+" values "${row}")
    list(POP_FRONT values module)
    set(archs sm90a)
    foreach(arch ${ARGN})
      list(POP_FRONT values exists)
      if(exists)
        list(APPEND archs ${arch})
      endif()
    endforeach()
    set(kernel)
    foreach(column value IN ZIP_LISTS columns values)
      string(APPEND kernel "#define ${column} ${value}\n")
    endforeach()
    foreach(arch ${archs})
      set(name ${arch}/${module})
      if(NOT name IN_LIST names)
        list(APPEND names ${name})
        set(text_${name} "#define ${prefix}_IN_${module}\n")
        string(APPEND text_${name} "#include \"cuda/${arch}/${table}_kernels.h\"\n")
      endif()
      string(APPEND text_${name} "${kernel}#include \"cuda/sm90a/${table}_body.h\"\n")
    endforeach()
  endforeach()
  foreach(name ${names})
    set(source ${PROJECT_BINARY_DIR}/cuda/${name}.cu)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_${name}}" @ONLY)
    set(cuda_source_${name} ${source} PARENT_SCOPE)
    set(cuda_pack_${name} ${name} PARENT_SCOPE)
  endforeach()
  set(cuda_names ${cuda_names} ${names} PARENT_SCOPE)
endfunction()

set(cuda_names)
file(GLOB cuda_files CONFIGURE_DEPENDS src/cuda/*/*.cu)
add_gpu_sources(cuda "${cuda_files}")
add_gpu_rows(cuda ${PROJECT_SOURCE_DIR}/src/cuda/sm90a/tiles.def cuda/sm90a/gemm_body.h sm90a/gemm cu)
foreach(arch sm100f sm120f)
  add_gpu_rows(cuda ${PROJECT_SOURCE_DIR}/src/cuda/${arch}/tiles.def cuda/${arch}/scaled_body.h ${arch}/ cu)
endforeach()
add_cuda_modules(fp8_small_m)
add_cuda_modules(mixed)
add_cuda_modules(pack_fp8)
add_cuda_modules(small_m sm100f)
# A pack is one compressed file of compiled kernels. The kernels for few rows share most of their
# source, so one pack for all of them is smaller.
foreach(name small_m small_m_6bit small_m_64 mixed mixed_f16 fp8_small_m)
  set(cuda_pack_sm90a/${name} sm90a/small_m)
  set(cuda_pack_sm100f/${name} sm100f/small_m)
endforeach()

# The commands from here on compile images (GPU code) and packs of images.

set(keep_report ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh)
set(cuda_ptx_images)

# Compiles a source to PTX with line information, so that the simulator's error messages name source
# lines.
function(compile_cuda_ptx source code image)
  set(trim ${PROJECT_SOURCE_DIR}/cmake/trim-ptx.sh)
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${keep_report} ${image}.txt ${BSMM_NVCC} ${cuda_flags} -ptx -lineinfo -arch=${code}
            -MD -MT ${image} -MF ${image}.d -o ${image}.full ${source}
    COMMAND sh ${trim} ${PROJECT_SOURCE_DIR} ${image}.full ${image}
    COMMAND ${CMAKE_COMMAND} -E rm ${image}.full
    DEPENDS ${source} ${keep_report} ${trim} DEPFILE ${image}.d COMMENT "nvcc ${code}" VERBATIM)
endfunction()

# Makes a cubin from PTX that compile_cuda_ptx made. ptxas gets the PTX without line information,
# because ptxas would copy the information into the cubin.
function(assemble_cuda ptx code image)
  set(strip ${PROJECT_SOURCE_DIR}/cmake/strip-ptx.sh)
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${strip} ${ptx} ${image}.ptx
    COMMAND sh ${keep_report} ${image}.txt ${BSMM_NVCC} ${cuda_flags} -cubin -arch=${code} -o ${image} ${image}.ptx
    COMMAND ${CMAKE_COMMAND} -E rm ${image}.ptx
    DEPENDS ${ptx} ${keep_report} ${strip} COMMENT "ptxas ${code}" VERBATIM)
endfunction()

function(compile_cuda_cubin source code image)
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${keep_report} ${image}.txt ${BSMM_NVCC} ${cuda_flags} -cubin -arch=${code}
            -MD -MT ${image} -MF ${image}.d -o ${image} ${source}
    DEPENDS ${source} ${keep_report} DEPFILE ${image}.d COMMENT "nvcc ${code}" VERBATIM)
endfunction()

# Compiles a source to one image, i.e. a cubin or PTX.
function(compile_cuda source code image)
  string(REPLACE ".sm_" ".compute_" ptx ${image})
  if(code MATCHES "^compute_")
    compile_cuda_ptx(${source} ${code} ${image})
    set(cuda_ptx_images ${cuda_ptx_images} ${image} PARENT_SCOPE)
  elseif(ptx IN_LIST cuda_ptx_images)
    assemble_cuda(${ptx} ${code} ${image})
  else()
    compile_cuda_cubin(${source} ${code} ${image})
  endif()
endfunction()

if(BSMM_NVCC AND BSMM_CUDA)
  add_executable(bsmm_store_ptx cmake/store-ptx.c src/gpu/ptx_text.c)
  target_include_directories(bsmm_store_ptx PRIVATE src)
  target_link_libraries(bsmm_store_ptx PRIVATE bsmm_warnings)
  compile_gpu_images(cuda)
  message(STATUS "CUDA kernels: compiled by ${BSMM_NVCC}")
elseif(BSMM_CUDA STREQUAL "ON")
  message(FATAL_ERROR "BSMM_CUDA is ON, but there is no nvcc: set BSMM_NVCC or PATH, or run "
                      "tools/install-deps.sh cuda")
else()
  set(cuda_names)
  if(NOT use_shipped_images)
    message(STATUS "CUDA kernels: left out (no nvcc, or BSMM_CUDA=OFF); cuda and sim:sm devices will be refused")
  endif()
endif()
