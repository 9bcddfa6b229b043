/* The declarations of curl.h agree with libcurl's own headers, if these are installed. */
#include "engine/remote/curl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>

#define SAME(name) assert_int_equal((int)FM_##name, (int)(name))

static void numbers(void **state) {
    (void)state;
    SAME(CURLOPT_SSLVERSION);
    SAME(CURLOPT_POST);
    SAME(CURLOPT_FOLLOWLOCATION);
    SAME(CURLOPT_HTTP_VERSION);
    SAME(CURLOPT_NOSIGNAL);
    SAME(CURLOPT_CONNECTTIMEOUT_MS);
    assert_int_equal(FM_CURLOPT_PROTOCOLS, 181); /* deprecated, not removed: the compiler would warn about its name */
    SAME(CURLOPT_TCP_KEEPALIVE);
    SAME(CURLOPT_SUPPRESS_CONNECT_HEADERS);
    SAME(CURLOPT_WRITEDATA);
    SAME(CURLOPT_URL);
    SAME(CURLOPT_PROXY);
    SAME(CURLOPT_ERRORBUFFER);
    SAME(CURLOPT_POSTFIELDS);
    SAME(CURLOPT_HTTPHEADER);
    SAME(CURLOPT_HEADERDATA);
    SAME(CURLOPT_CAINFO);
    SAME(CURLOPT_PRIVATE);
    SAME(CURLOPT_NOPROXY);
    SAME(CURLOPT_WRITEFUNCTION);
    SAME(CURLOPT_HEADERFUNCTION);
    SAME(CURLOPT_POSTFIELDSIZE_LARGE);
    SAME(CURL_HTTP_VERSION_1_1);
    assert_int_equal(FM_CURL_SSLVERSION_TLSV1_2, CURL_SSLVERSION_TLSv1_2);
    assert_int_equal(FM_CURLPROTO_HTTP_AND_HTTPS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    SAME(CURL_GLOBAL_ALL);
    SAME(CURLMOPT_MAXCONNECTS);
    SAME(CURLMSG_DONE);
    SAME(CURLE_OK);
    SAME(CURLE_WRITE_ERROR);
    SAME(CURLE_OPERATION_TIMEDOUT);
    SAME(CURLE_GOT_NOTHING);
    SAME(CURL_ERROR_SIZE);
    SAME(CURLINFO_PRIVATE);
    SAME(CURLINFO_RESPONSE_CODE);
    SAME(CURLINFO_PRETRANSFER_TIME);
    assert_int_equal(sizeof(struct fm_curl_message), sizeof(CURLMsg));
    assert_int_equal(offsetof(struct fm_curl_message, data), offsetof(CURLMsg, data));
    assert_int_equal(offsetof(struct fm_curl_version, number), offsetof(curl_version_info_data, version_num));
}
#else
static void numbers(void **state) {
    (void)state;
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
