# Where llama.cpp comes from. Include it from the top CMakeLists.txt.
#
#   FM_LLAMA=prebuilt  (default) the libraries that packaging/setup.sh downloaded
#   FM_LLAMA=source    built here from the same release's source, for Windows, for other platforms and for packagers
#   FM_LLAMA=off       without the llama engine
#
#   FM_LLAMA_COMMON    how its C++ library of prebuilt libraries is linked: shared; static, built here of its source, where
#                      our C++ library is another one than theirs; or auto: shared where this system can load it
#
#   FM_DEPS_DIR        where packaging/setup.sh put them: llama/lib (libraries) and llama/src (source, headers)
#
# Provides, unless off: the targets fm::llama (the C API) and fm::llama-common (C++17: chat templates, schemas), and
# FM_LLAMA_LIB_DIR, the folder for ggml_backend_load_all_from_path().
include_guard(GLOBAL)

set(FM_LLAMA prebuilt CACHE STRING "where llama.cpp comes from: prebuilt, source or off")
set_property(CACHE FM_LLAMA PROPERTY STRINGS prebuilt source off)
set(FM_LLAMA_COMMON shared CACHE STRING "llama.cpp's C++ library, where the libraries are prebuilt: shared, static or auto")
set_property(CACHE FM_LLAMA_COMMON PROPERTY STRINGS shared static auto)
set(FM_DEPS_DIR "${CMAKE_SOURCE_DIR}/build/deps" CACHE PATH "what packaging/setup.sh downloaded")

function(fm_llama_require path)
  if(NOT EXISTS "${FM_DEPS_DIR}/llama/${path}")
    message(FATAL_ERROR "FM_LLAMA=${FM_LLAMA} needs ${FM_DEPS_DIR}/llama/${path}. Run `sh packaging/setup.sh --no-build` "
      "first, or set FM_DEPS_DIR, or build without the llama engine: -DFM_LLAMA=off")
  endif()
endfunction()

# Makes the target fm::NAME for the shared library of that name, whatever version its file name has.
function(fm_llama_import name)
  file(GLOB found "${FM_LLAMA_LIB_DIR}/lib${name}.so" "${FM_LLAMA_LIB_DIR}/lib${name}.v*.so"
    "${FM_LLAMA_LIB_DIR}/lib${name}.dylib" "${FM_LLAMA_LIB_DIR}/lib${name}.metal.v*.dylib")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "expected one lib${name} in ${FM_LLAMA_LIB_DIR}, found ${count}. Delete that folder and run "
      "`sh packaging/setup.sh --no-build`")
  endif()
  get_filename_component(soname "${found}" NAME)
  add_library(fm::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(fm::${name} PROPERTIES IMPORTED_LOCATION "${found}" IMPORTED_SONAME "${soname}")
  target_link_libraries(fm::${name} INTERFACE ${ARGN})
endfunction()

macro(fm_llama_prebuilt)
  fm_llama_require(lib)
  fm_llama_require(src/include/llama.h)
  set(FM_LLAMA_LIB_DIR "${FM_DEPS_DIR}/llama/lib")
  fm_llama_import(ggml-base)
  fm_llama_import(ggml fm::ggml-base)
  fm_llama_import(llama fm::ggml)
  if(FM_LLAMA_COMMON STREQUAL "auto")
    execute_process(COMMAND ldd "${FM_LLAMA_LIB_DIR}/libllama-common.so" OUTPUT_VARIABLE fm_loads ERROR_VARIABLE fm_lacks)
    set(FM_LLAMA_COMMON shared)
    if(NOT fm_loads OR "${fm_loads}${fm_lacks}" MATCHES "not found")
      set(FM_LLAMA_COMMON static)
    endif()
  endif()
  if(FM_LLAMA_COMMON STREQUAL "static")
    include(${CMAKE_SOURCE_DIR}/cmake/common.cmake)
  else()
    fm_llama_import(llama-common fm::llama)
    target_compile_definitions(fm::llama-common INTERFACE LLAMA_SUBPROCESS) # as it was built
  endif()
  target_include_directories(fm::llama INTERFACE
    "${FM_DEPS_DIR}/llama/src/include" "${FM_DEPS_DIR}/llama/src/ggml/include")
  target_include_directories(fm::llama-common INTERFACE
    "${FM_DEPS_DIR}/llama/src/common" "${FM_DEPS_DIR}/llama/src/vendor")
  target_compile_features(fm::llama-common INTERFACE cxx_std_17)
  # These definitions are those with which the libraries were built.
  target_compile_definitions(fm::llama INTERFACE GGML_SHARED GGML_BACKEND_SHARED LLAMA_SHARED)
endmacro()

# This is a function, so that the variables set for llama.cpp's build do not affect ours.
function(fm_llama_add_source lib_dir)
  enable_language(CXX)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # the variables below win over llama.cpp's options
  set(BUILD_SHARED_LIBS ON)
  set(LLAMA_BUILD_COMMON ON)
  set(LLAMA_BUILD_IS_DEV OFF)
  set(LLAMA_OPENSSL OFF)
  foreach(part TESTS TOOLS EXAMPLES SERVER APP UI)
    set(LLAMA_BUILD_${part} OFF)
  endforeach()
  # Each microarchitecture gets a CPU library, as in the prebuilt release, so the result runs on every machine of this platform.
  set(GGML_NATIVE OFF)
  set(GGML_BACKEND_DL ON)
  set(GGML_CPU_ALL_VARIANTS ON)
  set(GGML_OPENMP OFF)
  set(GGML_CCACHE OFF)
  set(CMAKE_WARN_DEPRECATED OFF)
  unset(CMAKE_C_STANDARD)
  unset(CMAKE_CXX_STANDARD)
  unset(CMAKE_CXX_EXTENSIONS)
  if(MINGW)
    string(APPEND CMAKE_C_FLAGS " -include \"${CMAKE_SOURCE_DIR}/cmake/windows_threads.h\"")
    foreach(kind IN ITEMS C CXX)
      string(APPEND CMAKE_${kind}_FLAGS " \"-ffile-prefix-map=${FM_DEPS_DIR}/llama/src=llama.cpp\"")
    endforeach()
    foreach(kind IN ITEMS MODULE SHARED) # gcc's libraries are in each, and not seen from outside; no symbols
      string(APPEND CMAKE_${kind}_LINKER_FLAGS " -static -s -Wl,--exclude-libs,ALL")
    endforeach()
  endif()
  add_subdirectory("${FM_DEPS_DIR}/llama/src" "${CMAKE_BINARY_DIR}/llama" EXCLUDE_FROM_ALL)
  if(MINGW AND TARGET ggml-cpu-sapphirerapids)
    # gcc 12 uses only half of an address in the instructions for tiles, so they are off. The library is then the same as zen4's,
    # and it is not installed.
    target_compile_options(ggml-cpu-sapphirerapids PRIVATE -mno-amx-tile -mno-amx-int8)
  endif()
  foreach(dir ggml/src src common)
    get_property(targets DIRECTORY "${FM_DEPS_DIR}/llama/src/${dir}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      set_target_properties(${target} PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${lib_dir}" RUNTIME_OUTPUT_DIRECTORY "${lib_dir}" BUILD_RPATH_USE_ORIGIN ON)
    endforeach()
  endforeach()
endfunction()

macro(fm_llama_source)
  fm_llama_require(src/CMakeLists.txt)
  set(FM_LLAMA_LIB_DIR "${CMAKE_BINARY_DIR}/llama/lib")
  if(WIN32)
    set(FM_LLAMA_LIB_DIR "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}") # Windows looks for libraries beside the program
  endif()
  fm_llama_add_source("${FM_LLAMA_LIB_DIR}")
  add_library(fm::llama ALIAS llama)
  add_library(fm::llama-common ALIAS llama-common)
endmacro()

string(TOLOWER "${FM_LLAMA}" fm_llama_mode)
if(fm_llama_mode STREQUAL "prebuilt")
  fm_llama_prebuilt()
elseif(fm_llama_mode STREQUAL "source")
  fm_llama_source()
elseif(NOT fm_llama_mode STREQUAL "off")
  message(FATAL_ERROR "FM_LLAMA is \"${FM_LLAMA}\"; it must be prebuilt, source or off")
endif()
