# Embeds compiled GPU kernels in the library: packs of images, compressed by zstd, and the table of
# images (src/gpu/images.h). A pack holds the images of one source for one code. Kernels that are
# instances of the same body are alike, so compressing them together takes a third of the space.
set(gpu_pack_files)
set(gpu_pack_bytes)
set(gpu_pack_rows)

# Adds a pack, named by a path in the build folder such as "cuda/sm90a/gemm.sm_90a". Its images are
# DIR/NAME.CODE.image. DIR is the first folder of the path, and NAME ("sm90a/gemm_bf16") is the
# image's name in the table.
function(add_gpu_pack pack code)
  find_program(BSMM_ZSTD zstd)
  if(NOT BSMM_ZSTD)
    message(FATAL_ERROR "GPU kernels are compressed by zstd: install it, or configure without them")
  endif()
  string(REGEX REPLACE "/.*" "" folder ${pack})
  string(MAKE_C_IDENTIFIER ${pack} symbol)
  set(file ${PROJECT_BINARY_DIR}/${pack}.pack)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_BINARY_DIR}/${folder}/\\1.${code}.image" OUTPUT_VARIABLE images)
  add_custom_command(OUTPUT ${file} ${file}.rows
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/pack-images.sh ${BSMM_ZSTD} ${file} bsmm_gpu_pack_${symbol}
            ${code} ${PROJECT_BINARY_DIR}/${folder} ${ARGN}
    DEPENDS ${images} ${PROJECT_SOURCE_DIR}/cmake/pack-images.sh COMMENT "packing ${pack}" VERBATIM)
  set(gpu_pack_files ${gpu_pack_files} ${file} ${file}.rows PARENT_SCOPE)
  set(gpu_pack_bytes "${gpu_pack_bytes}BSMM_GPU_PACK(${symbol}, \"${file}\");\n" PARENT_SCOPE)
  set(gpu_pack_rows "${gpu_pack_rows}#include \"${file}.rows\"\n" PARENT_SCOPE)
endfunction()

# Writes the table of images as a C file. It must be called after the last pack is added.
function(write_gpu_images source)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"gpu/images.h\"\n\n${gpu_pack_bytes}
const bsmm_gpu_image bsmm_gpu_images[] = {\n${gpu_pack_rows}    {0},\n};\n")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${gpu_pack_files}")
endfunction()
