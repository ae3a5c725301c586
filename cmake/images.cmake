# Embeds compiled GPU kernels in the library, and writes the table of images (src/gpu/images.h). An
# image is one compiled kernel source for one kind of GPU, called its code (such as sm_90a). A pack
# is a file of several images with the same code, compressed with zstd. Kernels that are instances
# of the same source body are similar, so compressing them together takes a third of the space.
set(gpu_pack_files)
set(gpu_pack_bytes)
set(gpu_pack_rows)

# Adds a pack with the images of the sources in ARGN for one code. `pack` is a path in the build
# folder such as "cuda/sm90a/gemm.sm_90a". Its images are the files DIR/NAME.CODE.image, where DIR
# is the first folder of the path and NAME (e.g. "sm90a/gemm_bf16") is the image's name in the
# table.
function(add_gpu_pack pack code)
  find_program(BSMM_ZSTD zstd)
  if(NOT BSMM_ZSTD)
    message(FATAL_ERROR "GPU kernels are compressed by zstd: install it, or configure without them")
  endif()
  string(REGEX REPLACE "/.*" "" folder ${pack})
  string(MAKE_C_IDENTIFIER ${pack} symbol)
  set(file ${PROJECT_BINARY_DIR}/${pack}.pack)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_BINARY_DIR}/${folder}/\\1.${code}.image" OUTPUT_VARIABLE images)
  set(store_ptx -)
  set(store_ptx_target)
  if(code MATCHES "^compute_")
    set(store_ptx $<TARGET_FILE:bsmm_store_ptx>)
    set(store_ptx_target bsmm_store_ptx)
  endif()
  add_custom_command(OUTPUT ${file} ${file}.rows
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/pack-images.sh ${BSMM_ZSTD} ${store_ptx} ${file}
            bsmm_gpu_pack_${symbol} ${code} ${PROJECT_BINARY_DIR}/${folder} ${ARGN}
    DEPENDS ${images} ${store_ptx_target} ${PROJECT_SOURCE_DIR}/cmake/pack-images.sh
    COMMENT "packing ${pack}" VERBATIM)
  set(gpu_pack_files ${gpu_pack_files} ${file} ${file}.rows PARENT_SCOPE)
  set(gpu_pack_bytes "${gpu_pack_bytes}BSMM_GPU_PACK(${symbol}, \"${file}\");\n" PARENT_SCOPE)
  set(gpu_pack_rows "${gpu_pack_rows}#include \"${file}.rows\"\n" PARENT_SCOPE)
endfunction()

# Writes the table of images as a C file. Call it after all packs have been added.
function(write_gpu_images source)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"gpu/images.h\"\n\n${gpu_pack_bytes}
const bsmm_gpu_image bsmm_gpu_images[] = {\n${gpu_pack_rows}    {0},\n};\n")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${gpu_pack_files}")
endfunction()

# The functions from here on list and compile the kernels of a family of GPUs. FAMILY is a folder
# below src/, e.g. cuda. The variable FAMILY_names lists the kernels. FAMILY_source_NAME is the
# source of the kernel NAME, and FAMILY_pack_NAME (e.g. "sm90a/gemm") is its pack, i.e. the
# compressed file that holds the compiled kernel.

# Adds source files to a family's list. A kernel's name is the file's path below src/FAMILY without
# the extension.
function(add_gpu_sources family files)
  foreach(source ${files})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src/${family} ${source})
    string(REGEX REPLACE "\\.[a-z]+$" "" name ${name})
    list(APPEND ${family}_names ${name})
    set(${family}_source_${name} ${source} PARENT_SCOPE)
    set(${family}_pack_${name} ${name} PARENT_SCOPE)
  endforeach()
  set(${family}_names ${${family}_names} PARENT_SCOPE)
endfunction()

# Adds a kernel for each TILE(...) entry of a table such as src/cuda/sm90a/tiles.def. Its generated
# source defines the names in the table's COLUMNS(...) as macros with the values of the entry, and
# then includes `body`. `pack` is the pack of all these kernels, e.g. "sm90a/gemm". If it ends in a
# slash, each kernel is a pack of its own.
function(add_gpu_rows family table body pack extension)
  file(READ ${table} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  string(REGEX MATCH "\nCOLUMNS\\(([^)]*)\\)" found "${text}")
  string(REGEX MATCHALL "[A-Z_]+" columns "${CMAKE_MATCH_1}")
  string(REGEX MATCHALL "\nTILE\\([^)]*\\)" rows "${text}")
  string(REGEX REPLACE "/.*" "" arch ${pack})
  foreach(row ${rows})
    string(REGEX REPLACE "\nTILE\\(([^)]*)\\)" "\\1" row "${row}")
    string(REGEX MATCHALL "[A-Za-z0-9_.:\"]+" values "${row}")
    list(GET values 0 kernel)
    set(defines)
    foreach(column value IN ZIP_LISTS columns values)
      string(APPEND defines "#define ${column} ${value}\n")
    endforeach()
    set(source ${PROJECT_BINARY_DIR}/${family}/${arch}/${kernel}.${extension})
    file(CONFIGURE OUTPUT ${source} CONTENT "${defines}#include \"${body}\"\n" @ONLY)
    list(APPEND ${family}_names ${arch}/${kernel})
    set(${family}_source_${arch}/${kernel} ${source} PARENT_SCOPE)
    string(REGEX REPLACE "/$" "/${kernel}" pack_of_kernel ${pack})
    set(${family}_pack_${arch}/${kernel} ${pack_of_kernel} PARENT_SCOPE)
  endforeach()
  set(${family}_names ${${family}_names} PARENT_SCOPE)
endfunction()

# Compiles each kernel of a family for each code in FAMILY_codes_ARCH by calling
# compile_FAMILY(source code image), and packs the images.
macro(compile_gpu_images family)
  set(gpu_packs)
  foreach(name ${${family}_names})
    get_filename_component(arch ${name} DIRECTORY)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${family}/${arch})
    foreach(code ${${family}_codes_${arch}})
      set(image ${PROJECT_BINARY_DIR}/${family}/${name}.${code}.image)
      cmake_language(CALL compile_${family} ${${family}_source_${name}} ${code} ${image})
      set(pack ${${family}_pack_${name}}.${code})
      list(APPEND gpu_images_${pack} ${name})
      list(APPEND gpu_packs ${pack})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES gpu_packs)
  foreach(pack ${gpu_packs})
    string(REGEX REPLACE "^.*\\." "" code ${pack})
    add_gpu_pack(${family}/${pack} ${code} ${gpu_images_${pack}})
  endforeach()
endmacro()
