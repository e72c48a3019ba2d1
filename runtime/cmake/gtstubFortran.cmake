# _gtstub_add_fortran(<suffix>) adds the target gtstub::fortran<suffix> to a project, once. The suffix is that of the
# runtime, gtstub::gtstub<suffix>: empty or _static.
#
# Only the compiler that compiled a module can read it. So the module is installed as a source, which the project
# compiles if one of its targets links it, with the modules that it uses.

function(_gtstub_add_fortran suffix)
  if(TARGET gtstub::fortran${suffix})
    return()
  endif()
  set(target gtstub_fortran${suffix})
  set(modules "${CMAKE_BINARY_DIR}/gtstub_modules${suffix}")
  add_library(${target} STATIC EXCLUDE_FROM_ALL
    "${gtstub_FORTRAN_DIR}/gtstub_errors.f90"
    "${gtstub_FORTRAN_DIR}/gtstub_steps.f90"
    "${gtstub_FORTRAN_DIR}/gtstub_granules.f90"
    "${gtstub_FORTRAN_DIR}/gtstub.f90")
  add_library(gtstub::fortran${suffix} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    Fortran_MODULE_DIRECTORY "${modules}")
  target_include_directories(${target} INTERFACE "${modules}")
  target_link_libraries(${target} PUBLIC gtstub::gtstub${suffix})
endfunction()
