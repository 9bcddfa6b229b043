# libmtmd, llama.cpp's library for models that see. It is built into one static library, from the same source as the other
# libraries.
#
#   FM_VISION=auto  (default) where packaging/setup.sh has brought the source
#   FM_VISION=on    the same, and an error where it can't be had
#   FM_VISION=off   without: --mmproj is an error then, and requests with images are refused
#
#   FM_DEPS_DIR     its folder llama/src holds the source, and mtmd the result
#
# Provides, unless off: the target fm::mtmd. FM_VISION is on or off afterwards.
include_guard(GLOBAL)

set(FM_VISION auto CACHE STRING "models that see, by libmtmd: auto, on or off")
set_property(CACHE FM_VISION PROPERTY STRINGS auto on off)

set(fm_mtmd_src "${FM_DEPS_DIR}/llama/src")
string(TOLOWER "${FM_VISION}" fm_vision_mode)
if(NOT fm_vision_mode MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "FM_VISION is \"${FM_VISION}\"; it must be auto, on or off")
endif()
if(NOT fm_vision_mode STREQUAL "off" AND NOT EXISTS "${fm_mtmd_src}/tools/mtmd/mtmd.h")
  if(fm_vision_mode STREQUAL "on")
    message(FATAL_ERROR "FM_VISION=on needs ${fm_mtmd_src}/tools/mtmd. Run `sh packaging/setup.sh --no-build` first")
  endif()
  message(WARNING "without libmtmd (no ${fm_mtmd_src}/tools/mtmd): requests with images will be refused")
  set(fm_vision_mode off)
endif()

if(NOT fm_vision_mode STREQUAL "off")
  # All presets of a checkout share one library, because its code is the same in each.
  set(fm_mtmd_dir "${FM_DEPS_DIR}/mtmd")
  set(fm_mtmd_library "${fm_mtmd_dir}/libfm_mtmd.a")
  set(fm_mtmd_project "${CMAKE_SOURCE_DIR}/cmake/mtmd")
  add_custom_command(
    OUTPUT "${fm_mtmd_library}"
    COMMAND "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}" -S "${fm_mtmd_project}" -B "${fm_mtmd_dir}"
      "-DFM_LLAMA_SRC=${fm_mtmd_src}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
      "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE}"
      "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}" -DCMAKE_BUILD_TYPE= --log-level=WARNING
    COMMAND "${CMAKE_COMMAND}" --build "${fm_mtmd_dir}" --target fm_mtmd
    COMMAND "${CMAKE_COMMAND}" -E touch "${fm_mtmd_library}"
    DEPENDS "${fm_mtmd_project}/CMakeLists.txt" "${fm_mtmd_src}/tools/mtmd/mtmd.h"
    COMMENT "building libmtmd (some minutes, once)"
    VERBATIM)
  add_custom_target(fm_mtmd_build DEPENDS "${fm_mtmd_library}")
  add_library(fm::mtmd STATIC IMPORTED GLOBAL)
  add_dependencies(fm::mtmd fm_mtmd_build)
  set_target_properties(fm::mtmd PROPERTIES IMPORTED_LOCATION "${fm_mtmd_library}" IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
  target_include_directories(fm::mtmd INTERFACE "${fm_mtmd_src}/tools/mtmd" "${fm_mtmd_src}/vendor"
    "${fm_mtmd_src}/vendor/stb")
  target_link_libraries(fm::mtmd INTERFACE fm::llama Threads::Threads m)
endif()
