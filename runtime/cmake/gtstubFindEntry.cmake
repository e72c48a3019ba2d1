# Finds the command 'gtstub'; `purpose` ends the sentence about what it does.
function(_gtstub_find_command call purpose)
  find_program(GTSTUB_EXECUTABLE gtstub HINTS ${gtstub_PROGRAM_HINTS} DOC "Generates stubs, and finds cache entries")
  if(NOT GTSTUB_EXECUTABLE)
    message(FATAL_ERROR "${call}: the program 'gtstub', which ${purpose}")
  endif()
endfunction()

# Sets `directory` to that of a cache entry: to `entry` itself, or to what 'gtstub cache path' prints for this name, in the
# cache `cache` or, if this is empty, in the one of the environment. CMake runs again when the cache has got or lost entries.
function(_gtstub_find_entry call entry cache directory)
  get_filename_component(path "${entry}" ABSOLUTE)
  if(EXISTS "${path}/sdfg.json")
    set(${directory} "${path}" PARENT_SCOPE)
    return()
  endif()
  _gtstub_find_command("${call}" "finds the entry '${entry}', was not found: put the 'bin' of its Python environment on \
PATH, name it in GTSTUB_EXECUTABLE, or name the directory of the entry.")
  set(in_cache)
  if(cache)
    get_filename_component(cache "${cache}" ABSOLUTE)
    set(in_cache --cache "${cache}")
  endif()
  execute_process(COMMAND "${GTSTUB_EXECUTABLE}" cache path "${entry}" ${in_cache}
    RESULT_VARIABLE status OUTPUT_VARIABLE found ERROR_VARIABLE said
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" "\n  " said "${said}") # message() leaves such lines as they are
  if(said MATCHES " has [0-9]+ entries")
    message(FATAL_ERROR "${call}: ENTRY '${entry}' fits several entries. 'gtstub cache path' prints:\n  ${said}\n"
      "Name one of them in ENTRY, by a value that was compiled in (${entry}@Edge.size=753) or by its key.")
  endif()
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${call}: ENTRY '${entry}' was not found. 'gtstub cache path' prints:\n  ${said}\n"
      "Build the program with 'gtstub build' or by a run of its model, or name its cache in CACHE or in the environment "
      "variable GTSTUB_CACHE_DIR. Then configure again.")
  endif()
  get_filename_component(root "${found}" DIRECTORY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${root}")
  message(STATUS "${call}: ENTRY '${entry}' is ${found}")
  set(${directory} "${found}" PARENT_SCOPE)
endfunction()
