# llama.cpp's C++ library (chat templates), as a static library. It is built from the same source as the prebuilt libraries. On
# Linux the prebuilt library needs GLIBCXX_3.4.30, but RHEL 9 has 3.4.29. On macOS our compiler's C++ library is another one than
# that of llama.cpp's libraries. So only C functions are called across the two, and one C++ function that fit.cpp calls. Our code
# does not know the types of their exceptions: it can catch one, but can't read its reason. cmake/llama.cmake includes this where
# FM_LLAMA_COMMON is static.
#
#   FM_DEPS_DIR     its folder llama/src holds the source, and its folder common gets the result
#
# Provides the target fm::llama-common.
include_guard(GLOBAL)

set(fm_common_src "${FM_DEPS_DIR}/llama/src")
set(fm_common_dir "${FM_DEPS_DIR}/common")
set(fm_common_library "${fm_common_dir}/libfm_common.a")
set(fm_common_project "${CMAKE_SOURCE_DIR}/cmake/common")
set(fm_common_log "${CMAKE_SOURCE_DIR}/helper/engine/llama/log_none.cpp")
add_custom_command(
  OUTPUT "${fm_common_library}"
  COMMAND "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}" -S "${fm_common_project}" -B "${fm_common_dir}"
    "-DFM_LLAMA_SRC=${fm_common_src}" "-DFM_LOG=${fm_common_log}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE}"
    "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}" -DCMAKE_BUILD_TYPE= --log-level=WARNING
  COMMAND "${CMAKE_COMMAND}" --build "${fm_common_dir}" --target fm_common
  COMMAND "${CMAKE_COMMAND}" -E touch "${fm_common_library}"
  DEPENDS "${fm_common_project}/CMakeLists.txt" "${fm_common_log}" "${fm_common_src}/common/chat.h"
  COMMENT "building llama.cpp's chat templates (some minutes, once)"
  VERBATIM)
add_custom_target(fm_common_build DEPENDS "${fm_common_library}")
add_library(fm::llama-common STATIC IMPORTED GLOBAL)
add_dependencies(fm::llama-common fm_common_build)
set_target_properties(fm::llama-common PROPERTIES
  IMPORTED_LOCATION "${fm_common_library}" IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
target_link_libraries(fm::llama-common INTERFACE fm::llama Threads::Threads)
# Some functions call functions of files that are left out. The engine does not use these functions, so the linker drops them.
target_link_options(fm::llama-common INTERFACE "-Wl,$<IF:$<BOOL:${APPLE}>,-dead_strip,--gc-sections>")
