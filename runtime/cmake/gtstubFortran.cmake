# _gtstub_add_fortran(<suffix>) adds the target gtstub::fortran<suffix> to a project, once. The suffix is that of the
# runtime, gtstub::gtstub<suffix>: empty or _static.
#
# Only the compiler that compiled a module can read it. So the module is installed as a source, which the project
# compiles if one of its targets links it, with the modules that it uses.

include(CheckIncludeFile)

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

# Finds the ISO_Fortran_binding.h of the Fortran compiler, and copies it into the folder gtstub_BINDING_DIR, with which
# stubs are compiled: the C compiler may have none, or that of another compiler, and beside it lie headers of gcc itself.
# The folder is empty for compilers whose header only their own C compilers find.
function(_gtstub_find_binding call)
  set(name ISO_Fortran_binding.h)
  if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU" AND CMAKE_Fortran_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "${call}: the Fortran compiler '${CMAKE_Fortran_COMPILER}' is gfortran "
      "${CMAKE_Fortran_COMPILER_VERSION}, which cannot compile the module of a stub: gfortran 12 and later can.")
  endif()
  if(NOT DEFINED gtstub_BINDING_DIR)
    set(folder)
    if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
      set(option -print-file-name=include/${name})
      set(below .)
    elseif(CMAKE_Fortran_COMPILER_ID STREQUAL "LLVMFlang")
      set(option -print-resource-dir)
      set(below include/${name} ../../../include/flang/${name})
    endif()
    if(option)
      execute_process(COMMAND "${CMAKE_Fortran_COMPILER}" ${option}
        OUTPUT_VARIABLE place ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      foreach(path IN LISTS below)
        get_filename_component(file "${place}/${path}" ABSOLUTE)
        if(IS_ABSOLUTE "${place}" AND EXISTS "${file}" AND NOT folder)
          set(folder "${CMAKE_BINARY_DIR}/gtstub_binding")
          configure_file("${file}" "${folder}/${name}" COPYONLY)
        endif()
      endforeach()
    endif()
    set(gtstub_BINDING_DIR "${folder}" CACHE PATH "The folder of the Fortran compiler's ISO_Fortran_binding.h")
  endif()
  set(CMAKE_REQUIRED_INCLUDES "${gtstub_BINDING_DIR}")
  check_include_file(${name} gtstub_HAS_FORTRAN_BINDING)
  if(NOT gtstub_HAS_FORTRAN_BINDING)
    message(FATAL_ERROR "${call}: the C compiler '${CMAKE_C_COMPILER}' does not find ${name}, which belongs to the "
      "Fortran compiler '${CMAKE_Fortran_COMPILER}': name compilers of one family in CC and FC, as gcc and gfortran, or "
      "the folder of the header in gtstub_BINDING_DIR.")
  endif()
  _gtstub_try_binding()
  if(gtstub_BINDING_FITS STREQUAL "no")
    message(FATAL_ERROR "${call}: the C compiler '${CMAKE_C_COMPILER}' reads arrays of the Fortran compiler "
      "'${CMAKE_Fortran_COMPILER}' wrongly, with the ISO_Fortran_binding.h that it finds: name compilers of one family "
      "in CC and FC, as gcc and gfortran, or the folder of the header in gtstub_BINDING_DIR.")
  endif()
endfunction()

# Sets gtstub_BINDING_FITS, once: whether C reads a section that Fortran passes. It is unknown where the program cannot
# be built or run.
function(_gtstub_try_binding)
  if(DEFINED gtstub_BINDING_FITS)
    return()
  endif()
  set(folder "${CMAKE_BINARY_DIR}/CMakeFiles/gtstub_try")
  file(WRITE "${folder}/read.c" [[
#include <ISO_Fortran_binding.h>
void gtstub_read(const CFI_cdesc_t *x, int *fits);
void gtstub_read(const CFI_cdesc_t *x, int *fits)
{
    *fits = x->version == CFI_VERSION && x->rank == 2 && x->type == CFI_type_double && x->elem_len == 8 &&
            x->dim[0].extent == 3 && x->dim[0].sm == 16 && x->dim[1].extent == 2 && x->dim[1].sm == 56;
}
]])
  file(WRITE "${folder}/pass.f90" [[
program pass
    use, intrinsic :: iso_c_binding, only: c_double, c_int
    implicit none
    interface
        subroutine gtstub_read(x, fits) bind(c)
            import
            real(c_double), intent(in) :: x(:, :)
            integer(c_int), intent(out) :: fits
        end subroutine
    end interface
    real(c_double) :: x(7, 4) = 0
    integer(c_int) :: fits
    call gtstub_read(x(1:5:2, 2:3), fits)
    if (fits == 1) print '(a)', 'yes'
    if (fits /= 1) print '(a)', 'no'
end program
]])
  try_compile(built "${folder}/build" SOURCES "${folder}/pass.f90" "${folder}/read.c"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${gtstub_BINDING_DIR}" COPY_FILE "${folder}/pass")
  set(fits "unknown")
  if(built AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} "${folder}/pass"
      OUTPUT_VARIABLE printed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(printed MATCHES "^(yes|no)$")
      set(fits "${printed}")
    endif()
  endif()
  set(gtstub_BINDING_FITS "${fits}" CACHE INTERNAL "Whether C reads the arrays of Fortran")
endfunction()
