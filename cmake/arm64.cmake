# Cross-compiles for 64-bit Arm with Debian's cross-compiler. Libraries come from Debian's arm64
# packages, which multiarch installs beside the native ones. The headers in /usr/include serve both
# architectures. The programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
# Only zlib's runtime library for Arm is installed. Its development package would also install the
# headers of a second C library.
set(ZLIB_LIBRARY /usr/lib/aarch64-linux-gnu/libz.so.1 CACHE FILEPATH "")
