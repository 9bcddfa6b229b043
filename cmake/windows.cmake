# The tools that build for Windows on x86_64, as Debian has them: gcc with POSIX threads. Programs that run during the build
# run under wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)

# json-c and SQLite of packaging/static-deps.sh, and no library of this system.
set(FM_STATIC_DEPS "${CMAKE_CURRENT_LIST_DIR}/../build/deps/static/windows")
set(CMAKE_FIND_ROOT_PATH "${FM_STATIC_DEPS}" /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${FM_STATIC_DEPS}/lib/pkgconfig")
