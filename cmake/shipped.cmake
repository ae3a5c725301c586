# Takes the GPU images of a source archive (tools/make-dist.sh) from the folder images/, so that a
# build needs neither nvcc nor clang-22. If BSMM_CUDA or BSMM_AMDGPU is ON or OFF, the build treats
# the kernels as in a checkout instead. The images fit only the sources that made them, because host
# code and kernels share structs. A changed source is therefore an error.
set(shipped_images ${PROJECT_SOURCE_DIR}/images)
set(use_shipped_images OFF)
if(EXISTS ${shipped_images}/SOURCES AND NOT BSMM_IMAGES_FROM AND
   "${BSMM_CUDA}" MATCHES "^(AUTO)?$" AND "${BSMM_AMDGPU}" MATCHES "^(AUTO)?$")
  set(use_shipped_images ON)
endif()

# Stops if a source file differs from the one from which the GPU images were compiled.
function(check_shipped_images)
  file(STRINGS ${shipped_images}/SOURCES lines)
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9a-f]+)  (.+)$" matched "${line}")
    set(made_from ${CMAKE_MATCH_1})
    set(path ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2})
    set(now missing)
    if(EXISTS ${path})
      file(SHA256 ${path} now)
    endif()
    if(NOT now STREQUAL made_from)
      message(FATAL_ERROR "${CMAKE_MATCH_2} differs from the file that made the GPU images in images/: restore it, "
                          "or set BSMM_CUDA and BSMM_AMDGPU to ON (compile the kernels) or OFF (leave them out)")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
endfunction()

if(use_shipped_images)
  check_shipped_images()
  set(BSMM_CUDA OFF)
  set(BSMM_AMDGPU OFF)
endif()
