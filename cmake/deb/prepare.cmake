# CPack runs this script after it has copied the installed files of each component, and before it
# makes the packages. The script adds each package's copyright and changelogs, and compresses
# changelogs and man pages as Debian's policy demands.
set(packages_runtime ${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME})
set(packages_development ${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME})
set(packages_tools ${CPACK_DEBIAN_TOOLS_PACKAGE_NAME})
set(sources ${CMAKE_CURRENT_LIST_DIR})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The option -n leaves out the time, so that the same sources give the same bytes.
function(compress file)
  run(gzip -9nf ${file})
endfunction()

# file(INSTALL) would prepend the variable DESTDIR, which CPack sets.
function(add source folder name)
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${source} ${folder}/${name})
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  set(package ${packages_${component}})
  set(documents ${usr}/share/doc/${package})
  add(${sources}/copyright ${documents} copyright)
  add(${sources}/changelog ${documents} changelog.Debian)
  add(${sources}/../../CHANGELOG.md ${documents} changelog)
  compress(${documents}/changelog.Debian)
  compress(${documents}/changelog)
  file(GLOB pages ${usr}/share/man/*/*.[1-9])
  foreach(page ${pages})
    compress(${page})
  endforeach()
  file(GLOB archives ${usr}/lib/*/*.a)
  foreach(archive ${archives})
    run(strip --strip-debug --remove-section=.comment --remove-section=.note ${archive})
  endforeach()
  # Debian has no bug report that asks for this package, so the first entry of the changelog closes no
  # bug.
  set(overrides "${package}: initial-upload-closes-no-bugs\n")
  # CPack 3.25 adds scripts that call ldconfig to a package with a shared library, and has no option
  # against it. The package's trigger already runs ldconfig, so the scripts do no harm, and this
  # override makes lintian accept them.
  if(component STREQUAL "runtime")
    string(APPEND overrides "${package}: maintscript-calls-ldconfig\n")
  endif()
  file(WRITE ${usr}/share/lintian/overrides/${package} "${overrides}")
endforeach()
