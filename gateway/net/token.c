/* The token's file: one line, mode 0600. A token is never empty, and no error shows it. */
#include "net/token.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/platform.h"
#include "base/secret.h"
#include "config/paths.h"
#include "net/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

enum fm_code gw_token_renew(const char *path, struct fm_error *error) {
    unsigned char bytes[GW_TOKEN_DIGITS / 2];
    char text[GW_TOKEN_DIGITS + 2];
    fm_random(bytes, sizeof bytes);
    fm_hex(text, bytes, sizeof bytes);
    text[GW_TOKEN_DIGITS] = '\n';
    enum fm_code code = gw_file_replace(path, text, GW_TOKEN_DIGITS + 1, error);
    OPENSSL_cleanse(bytes, sizeof bytes);
    OPENSSL_cleanse(text, sizeof text);
    return code;
}

enum fm_code gw_token_read(const char *path, bool make, char **token, struct fm_error *error) {
    struct fm_file_info info;
    struct fm_buf text;
    enum fm_code code = FM_OK;
    if (make && fm_file_examine(path, &info) == ENOENT) {
        code = gw_token_renew(path, error);
    }
    fm_buf_init(&text, GW_TOKEN_MAX + 2);
    if (make && code == FM_OK) { /* only at the start: the change makes programs that watch the file read it again */
        code = fm_file_make_private(path, error);
    }
    code = code == FM_OK ? fm_file_read(path, &text, error) : code;
    if (code == FM_OK) {
        size_t len = text.len;
        while (len && (text.data[len - 1] == '\n' || text.data[len - 1] == '\r' || text.data[len - 1] == ' ')) {
            len--;
        }
        if (len == 0 || len > GW_TOKEN_MAX || memchr(text.data, '\n', len) || memchr(text.data, 0, len)) {
            code = fm_fail(error, FM_INVALID_REQUEST,
                           "%s must hold the token, in one line of up to %u bytes; delete it to have a new one made",
                           path, GW_TOKEN_MAX);
        } else if (!(*token = fm_secret_copy(text.data, len))) {
            code = fm_fail_no_memory(error);
        }
        OPENSSL_cleanse(text.data, text.len);
    }
    fm_buf_free(&text);
    return code;
}
