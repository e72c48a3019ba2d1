# gtstub_add_program(<target> ENTRY <name or directory> [CACHE <directory>]
#                    [SDFG_SIGNATURE <file>] [PROGRAM_SIGNATURE <file>] [LIBRARY <file>]
#                    [NAME <name>] [LANGUAGES <C and Fortran>] [COMMITTED] [STATIC])
#
# Adds the target <target>: the library <name>_stub.so of a program, with the program's header and Fortran module; with
# STATIC <name>_stub.a, which hosts link together with the runtime. The library has a folder of its own,
# $<TARGET_FILE_DIR:<target>>. docs/cmake.md explains the arguments.

function(gtstub_add_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMMITTED;STATIC"
    "ENTRY;CACHE;SDFG_SIGNATURE;PROGRAM_SIGNATURE;NAME;LIBRARY" "LANGUAGES")
  set(call "gtstub_add_program(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${call}: there is no argument '${arg_UNPARSED_ARGUMENTS}'.")
  endif()
  foreach(argument IN ITEMS ENTRY CACHE)
    if(argument IN_LIST arg_KEYWORDS_MISSING_VALUES)
      message(FATAL_ERROR "${call}: ${argument} needs a value.")
    endif()
  endforeach()
  if(arg_ENTRY)
    _gtstub_find_entry("${call}" "${arg_ENTRY}" "${arg_CACHE}" entry)
    _gtstub_take_files("${entry}")
  elseif(arg_CACHE)
    message(FATAL_ERROR "${call}: CACHE needs an ENTRY.")
  endif()
  foreach(argument IN ITEMS SDFG_SIGNATURE PROGRAM_SIGNATURE LIBRARY)
    if(NOT arg_${argument})
      if(argument STREQUAL "LIBRARY" AND NOT argument IN_LIST arg_KEYWORDS_MISSING_VALUES)
        continue()
      endif()
      message(FATAL_ERROR "${call}: ${argument} needs a file, unless ENTRY has the name of a program.")
    endif()
    get_filename_component(arg_${argument} "${arg_${argument}}" ABSOLUTE)
    if(NOT EXISTS "${arg_${argument}}")
      message(FATAL_ERROR "${call}: ${argument} '${arg_${argument}}' does not exist.")
    endif()
  endforeach()
  _gtstub_check_languages("${call}" "${arg_LANGUAGES}")

  set(name "${arg_NAME}")
  if(NOT name)
    _gtstub_read("${call}" PROGRAM_SIGNATURE "program signature" "${arg_PROGRAM_SIGNATURE}" name name)
  endif()
  set(extensions h c)
  if("Fortran" IN_LIST arg_LANGUAGES)
    list(APPEND extensions f90)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  set(sources "${folder}")
  if(arg_COMMITTED)
    get_filename_component(sources "${arg_PROGRAM_SIGNATURE}" DIRECTORY)
  endif()
  list(TRANSFORM extensions PREPEND "${sources}/${name}_stub." OUTPUT_VARIABLE files)
  if(arg_COMMITTED)
    foreach(file IN LISTS files)
      if(NOT EXISTS "${file}")
        message(FATAL_ERROR "${call}: the committed source '${file}' does not exist: "
          "make it with 'gtstub generate', or leave COMMITTED out.")
      endif()
      _gtstub_check_head("${call}" "${file}" SDFG_SIGNATURE "SDFG signature" "${arg_SDFG_SIGNATURE}")
      _gtstub_check_head("${call}" "${file}" PROGRAM_SIGNATURE "program signature" "${arg_PROGRAM_SIGNATURE}")
    endforeach()
  else()
    _gtstub_generate("${call}" "${arg_SDFG_SIGNATURE}" "${arg_PROGRAM_SIGNATURE}" ${name} "${folder}" "${files}"
      "${arg_LANGUAGES}")
  endif()

  if(arg_STATIC)
    set(runtime_suffix _static)
    add_library(${target} STATIC ${files})
    set_target_properties(${target} PROPERTIES SUFFIX .a POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:GTS_LINKED=${name}>)
  else()
    set(runtime_suffix)
    add_library(${target} SHARED ${files})
    set_target_properties(${target} PROPERTIES SUFFIX .so)
  endif()
  set_target_properties(${target} PROPERTIES
    gtstub_IS_PROGRAM ON
    PREFIX ""
    OUTPUT_NAME "${name}_stub"
    ARCHIVE_OUTPUT_DIRECTORY "${folder}"
    LIBRARY_OUTPUT_DIRECTORY "${folder}"
    C_STANDARD 11
    C_STANDARD_REQUIRED ON
    C_VISIBILITY_PRESET hidden)
  _gtstub_keep_place(${target})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${sources}>")
  target_link_libraries(${target} PUBLIC gtstub::gtstub${runtime_suffix})
  if("Fortran" IN_LIST arg_LANGUAGES)
    _gtstub_add_fortran("${runtime_suffix}")
    set_target_properties(${target} PROPERTIES Fortran_MODULE_DIRECTORY "${folder}")
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>")
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:GTS_FORTRAN>)
    target_include_directories(${target} BEFORE PRIVATE "${gtstub_BINDING_DIR}")
    target_link_libraries(${target} PUBLIC "$<BUILD_INTERFACE:gtstub::fortran${runtime_suffix}>")
  endif()
  if(arg_LIBRARY)
    _gtstub_lay_beside(${target} "${call}" "${arg_LIBRARY}" "${arg_SDFG_SIGNATURE}")
  endif()
endfunction()

# Takes the files of a cache entry for the arguments of gtstub_add_program() that were not given.
macro(_gtstub_take_files entry)
  if(NOT arg_SDFG_SIGNATURE)
    set(arg_SDFG_SIGNATURE "${entry}/sdfg.json")
  endif()
  if(NOT arg_PROGRAM_SIGNATURE)
    set(arg_PROGRAM_SIGNATURE "${entry}/program.json")
  endif()
  if(NOT arg_LIBRARY)
    _gtstub_read("${call}" SDFG_SIGNATURE "SDFG signature" "${entry}/sdfg.json" library arg_LIBRARY)
    set(arg_LIBRARY "${entry}/${arg_LIBRARY}")
  endif()
endmacro()

function(_gtstub_check_languages call wanted)
  get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(language IN LISTS wanted ITEMS C)
    if(NOT language MATCHES "^(C|Fortran)$")
      message(FATAL_ERROR "${call}: there are stubs for C and Fortran, not for '${language}'. A C++ host takes C.")
    endif()
    if(NOT language IN_LIST enabled)
      message(FATAL_ERROR "${call}: the project needs the language ${language}: say project(... LANGUAGES ${language}).")
    endif()
  endforeach()
  if("Fortran" IN_LIST wanted)
    _gtstub_find_binding("${call}")
  endif()
endfunction()

# Reads a member of a JSON document of some kind. CMake runs again when the file changes.
function(_gtstub_read call argument kind file member value)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" text)
  string(JSON found ERROR_VARIABLE error GET "${text}" ${member})
  if(error)
    message(FATAL_ERROR "${call}: ${argument} '${file}' is no ${kind} (${error}).")
  endif()
  set(${value} "${found}" PARENT_SCOPE)
endfunction()

# Compares a signature with the one that a committed source was generated from, whose SHA-256 is in the head of the
# source. No other check would detect a different one: a stub finds the functions of the SDFG by name, and the names do
# not change with arguments and with sizes that are compiled in.
function(_gtstub_check_head call source argument kind signature)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}" "${signature}")
  file(READ "${source}" head LIMIT 4096)
  if(NOT head MATCHES "${kind} +sha256 ([0-9a-f]+)")
    message(FATAL_ERROR "${call}: the committed source '${source}' does not say which ${kind} it was generated from: "
      "make it with 'gtstub generate'.")
  endif()
  set(generated_from "${CMAKE_MATCH_1}")
  file(SHA256 "${signature}" given)
  if(NOT given STREQUAL generated_from)
    message(FATAL_ERROR "${call}: the committed source '${source}' was generated from another ${kind}: from one with "
      "SHA-256 ${generated_from}, and ${argument} '${signature}' has ${given}. Name the signature that belongs to the "
      "source, or generate the source again with 'gtstub generate'. Another formatting, as line ends that git changed "
      "(core.autocrlf), makes another file, too.")
  endif()
endfunction()

# Resets what a project sets for all of its libraries, because gts_open() searches <name>_stub.so and the SDFG library
# in one folder.
function(_gtstub_keep_place target)
  foreach(config IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
    string(TOUPPER "${config}" config)
    set_property(TARGET ${target} PROPERTY ${config}_POSTFIX)
    set_property(TARGET ${target} PROPERTY ARCHIVE_OUTPUT_DIRECTORY_${config})
    set_property(TARGET ${target} PROPERTY LIBRARY_OUTPUT_DIRECTORY_${config})
  endforeach()
endfunction()

# Generates the stub at build time, and again when a signature or gtstub has changed.
function(_gtstub_generate call sdfg program name folder files languages)
  _gtstub_find_command("${call}" "generates the stub, was not found: put the 'bin' of its Python environment on PATH, \
name it in GTSTUB_EXECUTABLE, or say COMMITTED and take sources that are there.")
  set(fortran)
  if("Fortran" IN_LIST languages)
    set(fortran --fortran)
  endif()
  add_custom_command(
    OUTPUT ${files}
    COMMAND "${GTSTUB_EXECUTABLE}" generate "${sdfg}" "${program}" -o "${folder}" --name ${name} --force ${fortran}
    COMMAND "${CMAKE_COMMAND}" -E touch ${files} # gtstub does not write files that would not change
    DEPENDS "${sdfg}" "${program}" "${GTSTUB_EXECUTABLE}"
    COMMENT "Generating the stub of ${name}"
    VERBATIM)
endfunction()

# Copies the SDFG library to the folder of the stub, under the name that gts_open() searches.
function(_gtstub_lay_beside target call library signature)
  _gtstub_read("${call}" SDFG_SIGNATURE "SDFG signature" "${signature}" library name)
  get_filename_component(entry "${library}" DIRECTORY)
  if(EXISTS "${entry}/sdfg.json")
    _gtstub_check_entry("${call}" "${library}" "${entry}/sdfg.json" "${signature}")
  endif()
  set_target_properties(${target} PROPERTIES gtstub_LIBRARY "${library}" gtstub_LIBRARY_NAME "${name}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${library}")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E copy "${library}" "$<TARGET_FILE_DIR:${target}>/${name}"
    VERBATIM)
endfunction()

# Compares the SDFG signature with the one in the cache entry of the SDFG library.
function(_gtstub_check_entry call library built_from signature)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${built_from}" "${signature}")
  file(SHA256 "${built_from}" built)
  file(SHA256 "${signature}" given)
  if(NOT built STREQUAL given)
    message(FATAL_ERROR "${call}: LIBRARY '${library}' was built from another SDFG: 'sdfg.json' beside it has SHA-256 "
      "${built}, and SDFG_SIGNATURE '${signature}' has ${given}. Name the library that was built from this signature, "
      "or make the stub of that 'sdfg.json' and the 'program.json' beside it.")
  endif()
endfunction()
