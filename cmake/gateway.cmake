# The libraries of fm-gateway. This file sets FM_GATEWAY_BUILT. If that is ON, these targets exist:
#
#   fm_llhttp            the HTTP parser, built of the C files that packaging/setup.sh brings
#   fm_wslay             WebSocket frames
#   PkgConfig::LIBUV, PkgConfig::CRYPTO, PkgConfig::UTF8PROC
#   fm_sqlite_vec        vectors in SQLite, built of one C file; only where setup.sh could bring it (it needs cargo)
#
# There is a gateway only on Linux and macOS, because its sockets and signals are POSIX.
set(FM_DEPS_DIR "${CMAKE_SOURCE_DIR}/build/deps" CACHE PATH "what packaging/setup.sh downloaded")
set(FM_GATEWAY_BUILT OFF)
if(FM_GATEWAY STREQUAL "off" OR WIN32 OR (CMAKE_CROSSCOMPILING AND NOT FM_GATEWAY STREQUAL "on"))
  return()
endif()

set(missing "")
pkg_check_modules(LIBUV QUIET IMPORTED_TARGET libuv>=1.42)
pkg_check_modules(CRYPTO QUIET IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc>=2.5)
if(NOT UTF8PROC_FOUND)
  string(APPEND missing " libutf8proc>=2.5")
endif()
if(NOT LIBUV_FOUND)
  string(APPEND missing " libuv>=1.42")
endif()
if(NOT CRYPTO_FOUND)
  string(APPEND missing " libcrypto>=3.0")
endif()
find_path(FM_WSLAY_HEADERS wslay/wslay.h) # Debian's package has no file for pkg-config
find_library(FM_WSLAY_LIBRARY wslay)
if(NOT FM_WSLAY_HEADERS OR NOT FM_WSLAY_LIBRARY)
  string(APPEND missing " wslay>=1.1")
endif()
if(NOT EXISTS "${FM_DEPS_DIR}/llhttp/llhttp.c")
  string(APPEND missing " ${FM_DEPS_DIR}/llhttp")
endif()
if(missing)
  if(FM_GATEWAY STREQUAL "on")
    message(FATAL_ERROR "FM_GATEWAY=on needs${missing}. `sh packaging/setup.sh --gateway --no-build` brings them")
  endif()
  message(STATUS "no fm-gateway: it needs${missing}. `sh packaging/setup.sh --gateway` brings them")
  return()
endif()
set(FM_GATEWAY_BUILT ON)

add_library(fm_wslay INTERFACE)
target_include_directories(fm_wslay SYSTEM INTERFACE "${FM_WSLAY_HEADERS}")
target_link_libraries(fm_wslay INTERFACE "${FM_WSLAY_LIBRARY}")

add_library(fm_llhttp STATIC
  "${FM_DEPS_DIR}/llhttp/api.c" "${FM_DEPS_DIR}/llhttp/http.c" "${FM_DEPS_DIR}/llhttp/llhttp.c")
target_include_directories(fm_llhttp SYSTEM PUBLIC "${FM_DEPS_DIR}/llhttp")
if(FM_SANITIZE)
  target_compile_options(fm_llhttp PRIVATE -fsanitize=${FM_SANITIZE} -g)
endif()

if(EXISTS "${FM_DEPS_DIR}/sqlite-vec/sqlite-vec.c")
  add_library(fm_sqlite_vec STATIC "${FM_DEPS_DIR}/sqlite-vec/sqlite-vec.c")
  target_include_directories(fm_sqlite_vec SYSTEM PUBLIC "${FM_DEPS_DIR}/sqlite-vec")
  target_compile_definitions(fm_sqlite_vec PUBLIC SQLITE_CORE PRIVATE _GNU_SOURCE)
  # A distance is a sum. If the order of the additions is fixed, each one waits for the one before. In any order, a search takes
  # half the time.
  target_compile_options(fm_sqlite_vec PRIVATE
    -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno)
  target_link_libraries(fm_sqlite_vec PUBLIC PkgConfig::SQLITE m)
  if(FM_SANITIZE)
    target_compile_options(fm_sqlite_vec PRIVATE -g)
  endif()
endif()
