/*
 * bcryptprimitives.dll for wine 8, which does not have it: Rust's standard library gets its random bytes from it.
 * packaging/windows.sh puts it where wine looks for it.
 */
#include <windows.h>

#include <bcrypt.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T len);

BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T len) {
    return BCryptGenRandom(NULL, data, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG) >= 0;
}
