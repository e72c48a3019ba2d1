# _gtstub_add_fortran() adds the target gtstub::fortran to a project, once.
#
# Only the compiler that compiled a module can read it. So the module is installed as a source, which the project
# compiles if one of its targets links it, with the modules that it uses.

function(_gtstub_add_fortran)
  if(TARGET gtstub::fortran)
    return()
  endif()
  set(modules "${CMAKE_BINARY_DIR}/gtstub_modules")
  add_library(gtstub_fortran STATIC EXCLUDE_FROM_ALL
    "${gtstub_FORTRAN_DIR}/gtstub_errors.f90"
    "${gtstub_FORTRAN_DIR}/gtstub_steps.f90"
    "${gtstub_FORTRAN_DIR}/gtstub_granules.f90"
    "${gtstub_FORTRAN_DIR}/gtstub.f90")
  add_library(gtstub::fortran ALIAS gtstub_fortran)
  set_target_properties(gtstub_fortran PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    Fortran_MODULE_DIRECTORY "${modules}")
  target_include_directories(gtstub_fortran INTERFACE "${modules}")
  target_link_libraries(gtstub_fortran PUBLIC gtstub::gtstub)
endfunction()
