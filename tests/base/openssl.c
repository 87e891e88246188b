/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: compares the calls and numbers in base/openssl.h with OpenSSL's own headers, where
 * they are installed: that this file compiles is most of the test. PEs: 1 */
#include "base/openssl.h"
#include <stdbool.h>
#include "tap.h"

#if __has_include(<openssl/ssl.h>)
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#define ALIKE(result, name, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) arguments), #name);
WEFT_OPENSSL_CALLS(ALIKE)

#define SAME(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #theirs)
SAME(WEFT_SSL_TLS_1_3, TLS1_3_VERSION);
SAME(WEFT_SSL_VERIFY_PEER, SSL_VERIFY_PEER);
SAME(WEFT_SSL_CTRL_MODE, SSL_CTRL_MODE);
SAME(WEFT_SSL_CTRL_SESSION_CACHE, SSL_CTRL_SET_SESS_CACHE_MODE);
SAME(WEFT_SSL_CTRL_GROUPS_LIST, SSL_CTRL_SET_GROUPS_LIST);
SAME(WEFT_SSL_CTRL_MIN_VERSION, SSL_CTRL_SET_MIN_PROTO_VERSION);
SAME(WEFT_SSL_MODE_PARTIAL_WRITE, SSL_MODE_ENABLE_PARTIAL_WRITE);
SAME(WEFT_SSL_MODE_MOVING_WRITE_BUFFER, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
SAME(WEFT_SSL_MODE_RELEASE_BUFFERS, SSL_MODE_RELEASE_BUFFERS);
SAME(WEFT_SSL_CACHE_OFF, SSL_SESS_CACHE_OFF);
SAME(WEFT_SSL_OP_NO_TICKET, SSL_OP_NO_TICKET);
SAME(WEFT_SSL_OP_NO_RENEGOTIATION, SSL_OP_NO_RENEGOTIATION);
SAME(WEFT_SSL_KEY_UPDATE, SSL_KEY_UPDATE_NOT_REQUESTED);
SAME(WEFT_SSL_ERROR_SSL, SSL_ERROR_SSL);
SAME(WEFT_SSL_ERROR_WANT_READ, SSL_ERROR_WANT_READ);
SAME(WEFT_SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_WRITE);
SAME(WEFT_SSL_REASON_BITS, ERR_REASON_MASK);
SAME(WEFT_SSL_REASON_BINDER, SSL_R_BINDER_DOES_NOT_VERIFY);
SAME(WEFT_SSL_REASON_EOF, SSL_R_UNEXPECTED_EOF_WHILE_READING);
SAME(WEFT_SSL_REASON_ALERT, SSL_AD_REASON_OFFSET);
SAME(WEFT_BIO_SOURCE_SINK, BIO_TYPE_SOURCE_SINK);
SAME(WEFT_BIO_CTRL_FLUSH, BIO_CTRL_FLUSH);
SAME(WEFT_BIO_READ, BIO_FLAGS_READ);
SAME(WEFT_BIO_WRITE, BIO_FLAGS_WRITE);
SAME(WEFT_BIO_RETRY, BIO_FLAGS_SHOULD_RETRY);
#define COMPARED ""
#else
#define COMPARED " # SKIP OpenSSL's headers (libssl-dev) are not installed"
#endif

int main(void) {
    tap_start(0);
    tap_case("calls and numbers are those of OpenSSL's headers" COMPARED);
    tap_case("OpenSSL is opened, as often as asked for");
    EXPECT(weft_openssl_load() == 0 && weft_openssl_load() == 0, "load");
    EXPECT(weft_openssl.OpenSSL_version_num() >> 28 == 3, "version");
    return tap_finish();
}
