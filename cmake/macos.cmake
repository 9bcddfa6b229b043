# The tools that build for macOS 14 and later on Apple silicon: zig brings clang, a linker, libc++, and two parts of macOS's SDK:
# the headers, and the list of libSystem's symbols. It brings no framework. `sh packaging/macos.sh` installs what this needs.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
get_filename_component(fm_deps "${CMAKE_CURRENT_LIST_DIR}/../build/deps" ABSOLUTE)
set(CMAKE_C_COMPILER "${fm_deps}/zig/bin/cc")
set(CMAKE_CXX_COMPILER "${fm_deps}/zig/bin/c++")
set(CMAKE_AR "${fm_deps}/zig/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${fm_deps}/zig/bin/ranlib" CACHE FILEPATH "")
# CMake wants to have Apple's tool. Nothing has to be renamed, because the built files have their final paths from the start.
set(CMAKE_INSTALL_NAME_TOOL true CACHE STRING "")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_STRIP true CACHE STRING "")
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
set(CMAKE_EXE_LINKER_FLAGS_INIT -s) # no symbols: they name files of this machine

# Only json-c and SQLite of packaging/static-deps.sh are found, and no library of this system.
set(FM_STATIC_DEPS "${fm_deps}/static/macos")
set(CMAKE_FIND_ROOT_PATH "${FM_STATIC_DEPS}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${FM_STATIC_DEPS}/lib/pkgconfig")

# Debian's Rust is used, whatever else is installed. It has the source of its standard library, from which one for macOS is built.
set(FM_RUST_TARGET aarch64-apple-darwin)
set(FM_RUST_STD_SOURCE /usr/lib/rustlib/src/rust/library)
set(FM_CARGO /usr/bin/cargo CACHE FILEPATH "builds the Rust library")
set(FM_RUSTC /usr/bin/rustc)
