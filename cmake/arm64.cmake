# Linux on arm64, compiled on Debian 12 for x86_64. `sh packaging/setup.sh --arm64` installs what this needs; qemu-user runs the
# programs that are built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# Debian's Rust is used, whatever else is installed, because it has the standard library for arm64.
set(FM_RUST_TARGET aarch64-unknown-linux-gnu)
set(FM_CARGO /usr/bin/cargo CACHE FILEPATH "builds the Rust library")
set(FM_RUSTC /usr/bin/rustc)
