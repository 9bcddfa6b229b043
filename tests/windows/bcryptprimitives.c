/*
 * bcryptprimitives.dll for wine 8, which has none: Rust's standard library takes its random bytes from there.
 * packaging/windows.sh puts it where wine looks.
 */
#include <windows.h>

#include <bcrypt.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T len);

BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T len) {
    return BCryptGenRandom(NULL, data, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG) >= 0;
}
