# Makes Debian packages by CPack: libbsmm0 (the shared library), libbsmm-dev (header, static library,
# CMake package, pkg-config file) and bsmm-tools (command, man page, completion, simulators).
# tools/make-deb.sh configures with the prefix /usr and runs CPack.
set(BSMM_DEB_MAINTAINER "bsmm maintainers <maintainers@bsmm.invalid>" CACHE STRING "Maintainer of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bsmm)
set(CPACK_PACKAGE_CONTACT ${BSMM_DEB_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "block-scaled matrix multiplication")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/deb)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_COMPONENTS_GROUPING IGNORE) # one package for each component
set(CPACK_DEB_COMPONENT_INSTALL ON)
# Debian's policy demands mode 755 for the directories of a package.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Adds the documents that every Debian package has, after CPack has copied the installed files.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/deb/prepare.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# CPack itself indents the lines of a description, and writes " ." for empty lines.
set(about "bsmm multiplies matrices whose small floats share scales in blocks: the OCP MX
formats, NVFP4, and FP8 with blocks of 128. It runs on CPUs, NVIDIA GPUs and
AMD GPUs, and needs no framework.
")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libbsmm${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# A program needs a library that is at least as new as the one with which it was linked (shlibs).
# The trigger runs ldconfig, as Debian's policy demands.
file(CONFIGURE OUTPUT deb-control/shlibs CONTENT
     "libbsmm ${PROJECT_VERSION_MAJOR} libbsmm${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT deb-control/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    "${PROJECT_BINARY_DIR}/deb-control/shlibs;${PROJECT_BINARY_DIR}/deb-control/triggers")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "block-scaled matrix multiplication - shared library
${about}
This package has the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbsmm-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libbsmm${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}-1), libjansson-dev, libzstd-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "block-scaled matrix multiplication - development files
${about}
This package has the header, the static library, and the files for CMake and
pkg-config.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME bsmm-tools)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "block-scaled matrix multiplication - command line tools
${about}
This package has the command bsmm, which quantizes checkpoints, converts
their formats, multiplies and measures speed. It also has simulated GPUs, on
which the kernels for NVIDIA and AMD GPUs run on a CPU.")
include(CPack)
