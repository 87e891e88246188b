/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSSL 3, opened at run time: Weft does not link it, needs none of its headers to be built, and
 * never opens it in jobs within one host.
 *
 * Like base/cuda.h for CUDA, this file declares the part that Weft uses under OpenSSL's own names:
 * about forty functions, whose signatures are stable in all of OpenSSL's version 3 (the version is
 * checked when the library is opened). tests/base/openssl.c compares them with OpenSSL's headers
 * where those are installed. Some calls of the manual are macros over SSL_CTX_ctrl and
 * BIO_set_flags: their numbers are the ABI. */
#ifndef WEFT_BASE_OPENSSL_H
#define WEFT_BASE_OPENSSL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ssl_st weft_ssl;
typedef struct ssl_ctx_st weft_ssl_context;
typedef struct ssl_method_st weft_ssl_method;
typedef struct ssl_session_st weft_ssl_session;
typedef struct ssl_cipher_st weft_ssl_cipher;
typedef struct bio_st weft_bio;
typedef struct bio_method_st weft_bio_method;
typedef struct evp_md_st weft_evp_md;
typedef struct x509_store_ctx_st weft_x509_store_context;

typedef int weft_ssl_verify(int ok, weft_x509_store_context *store);
typedef int weft_ssl_find_session(weft_ssl *ssl, const unsigned char *identity, size_t bytes,
                                  weft_ssl_session **session);
typedef int weft_ssl_use_session(weft_ssl *ssl, const weft_evp_md *digest,
                                 const unsigned char **identity, size_t *bytes,
                                 weft_ssl_session **session);
typedef int weft_bio_read(weft_bio *bio, char *to, int bytes);
typedef int weft_bio_write(weft_bio *bio, const char *from, int bytes);
typedef long weft_bio_ctrl(weft_bio *bio, int command, long number, void *pointer);

enum {
    WEFT_SSL_TLS_1_3 = 0x0304,
    WEFT_SSL_VERIFY_PEER = 1,
    WEFT_SSL_CTRL_MODE = 33,
    WEFT_SSL_CTRL_SESSION_CACHE = 44,
    WEFT_SSL_CTRL_GROUPS_LIST = 92,
    WEFT_SSL_CTRL_MIN_VERSION = 123,
    WEFT_SSL_MODE_PARTIAL_WRITE = 1,
    WEFT_SSL_MODE_MOVING_WRITE_BUFFER = 2,
    WEFT_SSL_MODE_RELEASE_BUFFERS = 16,
    WEFT_SSL_CACHE_OFF = 0,
    WEFT_SSL_OP_NO_TICKET = 1 << 14,
    WEFT_SSL_OP_NO_RENEGOTIATION = 1 << 30,
    WEFT_SSL_KEY_UPDATE = 0, /* of the sending direction */
    WEFT_SSL_ERROR_SSL = 1,
    WEFT_SSL_ERROR_WANT_READ = 2,
    WEFT_SSL_ERROR_WANT_WRITE = 3,
    WEFT_SSL_REASON_BITS = (1 << 23) - 1, /* the part of an error number that is its reason */
    WEFT_SSL_REASON_BINDER = 253,
    WEFT_SSL_REASON_EOF = 294,
    WEFT_SSL_REASON_ALERT = 1000, /* plus the number of the alert that the other side sent */
    WEFT_BIO_SOURCE_SINK = 0x400,
    WEFT_BIO_CTRL_FLUSH = 11,
    WEFT_BIO_READ = 1,
    WEFT_BIO_WRITE = 2,
    WEFT_BIO_RETRY = 8,
};

/* X(result, name, arguments) */
#define WEFT_OPENSSL_CALLS(X)                                                                    \
    X(unsigned long, OpenSSL_version_num, (void))                                                \
    X(const char *, OpenSSL_version, (int which))                                                \
    X(const weft_ssl_method *, TLS_client_method, (void))                                        \
    X(const weft_ssl_method *, TLS_server_method, (void))                                        \
    X(weft_ssl_context *, SSL_CTX_new, (const weft_ssl_method *method))                          \
    X(void, SSL_CTX_free, (weft_ssl_context * context))                                          \
    X(long, SSL_CTX_ctrl, (weft_ssl_context * context, int command, long number, void *pointer)) \
    X(int, SSL_CTX_set_ciphersuites, (weft_ssl_context * context, const char *names))            \
    X(int, SSL_CTX_set_num_tickets, (weft_ssl_context * context, size_t count))                  \
    X(uint64_t, SSL_CTX_set_options, (weft_ssl_context * context, uint64_t options))             \
    X(void, SSL_CTX_set_verify, (weft_ssl_context * context, int mode, weft_ssl_verify *verify)) \
    X(void, SSL_CTX_set_psk_find_session_callback,                                               \
      (weft_ssl_context * context, weft_ssl_find_session * find))                                \
    X(void, SSL_CTX_set_psk_use_session_callback,                                                \
      (weft_ssl_context * context, weft_ssl_use_session * use))                                  \
    X(weft_ssl *, SSL_new, (weft_ssl_context * context))                                         \
    X(void, SSL_free, (weft_ssl * ssl))                                                          \
    X(void, SSL_set_bio, (weft_ssl * ssl, weft_bio * from, weft_bio * to))                       \
    X(int, SSL_set_ex_data, (weft_ssl * ssl, int index, void *data))                             \
    X(void *, SSL_get_ex_data, (const weft_ssl *ssl, int index))                                 \
    X(void, SSL_set_connect_state, (weft_ssl * ssl))                                             \
    X(void, SSL_set_accept_state, (weft_ssl * ssl))                                              \
    X(int, SSL_do_handshake, (weft_ssl * ssl))                                                   \
    X(int, SSL_session_reused, (const weft_ssl *ssl))                                            \
    X(int, SSL_read, (weft_ssl * ssl, void *to, int bytes))                                      \
    X(int, SSL_write, (weft_ssl * ssl, const void *from, int bytes))                             \
    X(int, SSL_key_update, (weft_ssl * ssl, int which))                                          \
    X(int, SSL_shutdown, (weft_ssl * ssl))                                                       \
    X(int, SSL_get_error, (const weft_ssl *ssl, int result))                                     \
    X(const weft_ssl_cipher *, SSL_CIPHER_find, (weft_ssl * ssl, const unsigned char *number))   \
    X(weft_ssl_session *, SSL_SESSION_new, (void))                                               \
    X(void, SSL_SESSION_free, (weft_ssl_session * session))                                      \
    X(int, SSL_SESSION_set1_master_key,                                                          \
      (weft_ssl_session * session, const unsigned char *key, size_t bytes))                      \
    X(int, SSL_SESSION_set_cipher, (weft_ssl_session * session, const weft_ssl_cipher *cipher))  \
    X(int, SSL_SESSION_set_protocol_version, (weft_ssl_session * session, int version))          \
    X(weft_bio_method *, BIO_meth_new, (int type, const char *name))                             \
    X(int, BIO_meth_set_read, (weft_bio_method * method, weft_bio_read * read))                  \
    X(int, BIO_meth_set_write, (weft_bio_method * method, weft_bio_write * write))               \
    X(int, BIO_meth_set_ctrl, (weft_bio_method * method, weft_bio_ctrl * ctrl))                  \
    X(weft_bio *, BIO_new, (const weft_bio_method *method))                                      \
    X(int, BIO_free, (weft_bio * bio))                                                           \
    X(void, BIO_set_init, (weft_bio * bio, int init))                                            \
    X(void, BIO_set_data, (weft_bio * bio, void *data))                                          \
    X(void *, BIO_get_data, (weft_bio * bio))                                                    \
    X(void, BIO_set_flags, (weft_bio * bio, int flags))                                          \
    X(void, BIO_clear_flags, (weft_bio * bio, int flags))                                        \
    X(void, ERR_clear_error, (void))                                                             \
    X(unsigned long, ERR_peek_error, (void))                                                     \
    X(const char *, ERR_reason_error_string, (unsigned long error))                              \
    X(const weft_evp_md *, EVP_sha256, (void))                                                   \
    X(unsigned char *, HMAC,                                                                     \
      (const weft_evp_md *digest, const void *key, int key_bytes, const unsigned char *data,     \
       size_t bytes, unsigned char *sum, unsigned *sum_bytes))

struct weft_openssl {
#define WEFT_OPENSSL_FIELD(result, name, arguments) result(*name) arguments;
    WEFT_OPENSSL_CALLS(WEFT_OPENSSL_FIELD)
#undef WEFT_OPENSSL_FIELD
};

/* OpenSSL's functions; valid after weft_openssl_load has returned 0. */
extern struct weft_openssl weft_openssl;

/* Opens OpenSSL once. Returns 0, -ENOENT if it is not installed, or -ENOSYS if it is not version 3;
 * weft_fail_text then says what to install. */
int weft_openssl_load(void);

#endif
