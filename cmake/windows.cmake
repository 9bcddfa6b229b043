# The tools that build for Windows on x86_64, as Debian has them: gcc with POSIX threads. Programs that run during the build
# run under wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)

# gcc aligns nothing on the stack to more than 16 bytes here, but uses aligned moves for vectors of 32 bytes (gcc's bug 54412).
# The assembler turns these into moves that need no alignment.
set(CMAKE_C_FLAGS_INIT -Wa,-muse-unaligned-vector-move)
set(CMAKE_CXX_FLAGS_INIT -Wa,-muse-unaligned-vector-move)

# The same sources give the same files, whenever they are built.
foreach(kind IN ITEMS EXE MODULE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -Wl,--no-insert-timestamp)
endforeach()

# json-c and SQLite are those of packaging/static-deps.sh. No library of this system is found.
set(FM_STATIC_DEPS "${CMAKE_CURRENT_LIST_DIR}/../build/deps/static/windows")
set(CMAKE_FIND_ROOT_PATH "${FM_STATIC_DEPS}" /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${FM_STATIC_DEPS}/lib/pkgconfig")

# Debian's Rust is used, whatever else is installed. It has the source of its standard library, from which one for Windows is
# built.
set(FM_RUST_TARGET x86_64-pc-windows-gnu)
set(FM_RUST_STD_SOURCE /usr/lib/rustlib/src/rust/library)
set(FM_CARGO /usr/bin/cargo CACHE FILEPATH "builds the Rust library")
set(FM_RUSTC /usr/bin/rustc)
