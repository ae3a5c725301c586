# Lists the files that `cmake --install` copies: libraries, header, CMake package, pkg-config file,
# command, man page and shell completion.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bsmm)

install(TARGETS bsmm bsmm_static EXPORT bsmm-targets)
install(FILES include/bsmm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT bsmm-targets NAMESPACE bsmm:: DESTINATION ${package_dir} FILE bsmm-config.cmake)
# Before version 1.0 a new minor version may break programs that use the library.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bsmm-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bsmm-config-version.cmake DESTINATION ${package_dir})

list(TRANSFORM openmp_libraries PREPEND "-l" REGEX "^[^/]" OUTPUT_VARIABLE openmp_flags)
list(JOIN openmp_flags " " openmp_flags)
file(RELATIVE_PATH pc_to_prefix
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/bsmm.pc.in ${PROJECT_BINARY_DIR}/bsmm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/bsmm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(simulator sim_gfx9 sim_ptx)
  if(TARGET ${simulator})
    install(TARGETS ${simulator} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/bsmm)
  endif()
endforeach()

if(TARGET bsmm_cli)
  install(TARGETS bsmm_cli)
  install(FILES ${PROJECT_BINARY_DIR}/bsmm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES completions/bsmm.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME bsmm)
endif()
