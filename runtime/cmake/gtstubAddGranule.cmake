# gtstub_add_granule(<target> FOLDER <dir> [LANGUAGES <C and Fortran>])
#
# Adds the target <target>: a static library with the generated code of a granule, with its header and Fortran module.
# The granule's programs and kept arrays are opened when the host runs. docs/cmake.md explains the arguments.

function(gtstub_add_granule target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "LANGUAGES")
  set(call "gtstub_add_granule(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${call}: there is no argument '${arg_UNPARSED_ARGUMENTS}'.")
  endif()
  if(NOT arg_FOLDER)
    message(FATAL_ERROR "${call}: FOLDER needs a folder that gtstub.Granule.export() has written.")
  endif()
  get_filename_component(folder "${arg_FOLDER}" ABSOLUTE)
  if(NOT EXISTS "${folder}/granule.json")
    message(FATAL_ERROR "${call}: FOLDER '${folder}' has no granule.json.")
  endif()
  _gtstub_check_languages("${call}" "${arg_LANGUAGES}")
  _gtstub_read_name("${call}" "${folder}/granule.json" name)

  set(extensions h c)
  if("Fortran" IN_LIST arg_LANGUAGES)
    list(APPEND extensions f90)
  endif()
  list(TRANSFORM extensions PREPEND "${folder}/${name}_granule." OUTPUT_VARIABLE files)
  foreach(file IN LISTS files)
    if(NOT EXISTS "${file}")
      message(FATAL_ERROR "${call}: the source '${file}' does not exist: export the granule again.")
    endif()
    _gtstub_check_granule("${call}" "${file}" "${folder}/granule.json")
  endforeach()

  add_library(${target} STATIC ${files})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_STANDARD 11
    C_STANDARD_REQUIRED ON
    C_VISIBILITY_PRESET hidden)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>")
  target_link_libraries(${target} PUBLIC gtstub::gtstub)
  if("Fortran" IN_LIST arg_LANGUAGES)
    _gtstub_add_fortran()
    set(modules "${CMAKE_CURRENT_BINARY_DIR}/${target}")
    set_target_properties(${target} PROPERTIES Fortran_MODULE_DIRECTORY "${modules}")
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${modules}>")
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:GTS_FORTRAN>)
    target_link_libraries(${target} PUBLIC "$<BUILD_INTERFACE:gtstub::fortran>")
  endif()
endfunction()

# Compares the description with the one that a source was generated from, whose SHA-256 is in the head of the source.
function(_gtstub_check_granule call source description)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}" "${description}")
  file(READ "${source}" head LIMIT 4096)
  file(SHA256 "${description}" digest)
  string(FIND "${head}" "${digest}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${call}: the source '${source}' was not generated from '${description}': export the granule "
      "again. Another formatting, as line ends that git changed (core.autocrlf), makes another file, too.")
  endif()
endfunction()
