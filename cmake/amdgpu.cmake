# Compiles the kernels for AMD GPUs. clang compiles each src/amdgpu/ARCH/FILE.c to one code object
# for each processor of ARCH. The code objects of one source for a processor form a pack, which is
# embedded in the library (cmake/images.cmake). A code object's metadata lists the registers and
# memory of each kernel, and tools/check-amdgpu-code.py compares them with src/amdgpu/limits.txt.
set(BSMM_AMDGPU AUTO CACHE STRING "AMD kernels: AUTO (where clang-22 is found), ON or OFF")
set_property(CACHE BSMM_AMDGPU PROPERTY STRINGS AUTO ON OFF)
set(BSMM_AMDGPU_FLAGS "" CACHE STRING "More flags for clang where it compiles AMD kernels, such as -g")

if(BSMM_AMDGPU)
  find_program(BSMM_AMDGPU_CLANG clang-22)
  find_program(BSMM_AMDGPU_LLD ld.lld-22) # clang calls this linker
endif()

# These are the processors for which the kernels of each folder ARCH are compiled.
set(amdgpu_codes_cdna gfx942 gfx950)
set(amdgpu_codes_gfx942 gfx942)
set(amdgpu_codes_gfx950 gfx950)
# The compiler must not contract multiplications and additions to FMA, so that the same C code gives
# the same bits on the host and on the GPU. Drivers since ROCm 5.7 load code objects of version 5.
set(amdgpu_target -target amdgcn-amd-amdhsa)
set(amdgpu_flags ${amdgpu_target} -x c -std=c17 -O3 -nogpulib -ffreestanding -ffp-contract=off
    -mcode-object-version=5 -Wall -Wextra -Wshadow -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
    ${BSMM_AMDGPU_FLAGS})

set(amdgpu_names) # stays empty if there is no compiler
foreach(arch cdna gfx942 gfx950)
  file(GLOB amdgpu_files CONFIGURE_DEPENDS src/amdgpu/${arch}/*.c)
  add_gpu_sources(amdgpu "${amdgpu_files}")
endforeach()

# Compiling and linking are two commands, because ccache does not cache a command that links. All
# builds with the same compiler launcher therefore share the compiled kernels.
function(compile_amdgpu source code image)
  add_custom_command(OUTPUT ${image}
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh ${image}.txt
            ${CMAKE_C_COMPILER_LAUNCHER} ${BSMM_AMDGPU_CLANG} ${amdgpu_flags} -mcpu=${code}
            -MD -MF ${image}.d -MT ${image} -c -o ${image}.o ${source}
    COMMAND ${BSMM_AMDGPU_CLANG} ${amdgpu_target} -mcpu=${code} -o ${image} ${image}.o
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/keep-report.sh DEPFILE ${image}.d
    COMMENT "clang ${code} ${image}" VERBATIM)
endfunction()

if(BSMM_AMDGPU_CLANG AND BSMM_AMDGPU_LLD AND BSMM_AMDGPU)
  compile_gpu_images(amdgpu)
  message(STATUS "AMD kernels: compiled by ${BSMM_AMDGPU_CLANG}")
elseif(BSMM_AMDGPU STREQUAL "ON")
  message(FATAL_ERROR "BSMM_AMDGPU is ON, but there is no clang-22 or no ld.lld-22: set BSMM_AMDGPU_CLANG or "
                      "PATH, or run tools/install-deps.sh amdgpu")
else()
  set(amdgpu_names)
  if(NOT use_shipped_images)
    message(STATUS "AMD kernels: left out (no clang-22, or BSMM_AMDGPU=OFF); hip and sim:gfx devices will be refused")
  endif()
endif()
