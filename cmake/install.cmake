# Lists the files that `cmake --install` copies: libraries, header, CMake package, pkg-config file,
# command, man page and shell completion.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bsmm)

# Each file belongs to a component, because Debian has a package for each of them (package.cmake).
set(runtime COMPONENT runtime)
set(development COMPONENT development)
set(tools COMPONENT tools)
install(TARGETS bsmm bsmm_static EXPORT bsmm-targets
        LIBRARY ${runtime} NAMELINK_COMPONENT development ARCHIVE ${development})
install(FILES include/bsmm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development})
install(EXPORT bsmm-targets NAMESPACE bsmm:: DESTINATION ${package_dir} FILE bsmm-config.cmake ${development})
# Before version 1.0 a new minor version may break programs that use the library.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bsmm-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bsmm-config-version.cmake DESTINATION ${package_dir} ${development})

list(TRANSFORM openmp_libraries PREPEND "-l" REGEX "^[^/]" OUTPUT_VARIABLE openmp_flags)
list(JOIN openmp_flags " " openmp_flags)
file(RELATIVE_PATH pc_to_prefix
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/bsmm.pc.in ${PROJECT_BINARY_DIR}/bsmm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/bsmm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${development})

foreach(simulator sim_gfx9 sim_ptx)
  if(TARGET ${simulator})
    install(TARGETS ${simulator} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/bsmm ${tools})
  endif()
endforeach()

if(TARGET bsmm_cli)
  install(TARGETS bsmm_cli ${tools})
  install(FILES ${PROJECT_BINARY_DIR}/bsmm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 ${tools})
  install(FILES completions/bsmm.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME bsmm ${tools})
endif()

if(PROJECT_IS_TOP_LEVEL)
  include(cmake/package.cmake)
endif()
