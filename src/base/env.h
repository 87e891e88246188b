/* SPDX-License-Identifier: BSD-3-Clause */
/* Every environment variable that the library reads, in one table. Variables through which the
 * launcher passes descriptors to its PEs (boot/boot.h) are not settings, and are not listed. */
#ifndef WEFT_BASE_ENV_H
#define WEFT_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* X(kind, field, name, deprecated name or NULL, default, meaning). Kinds: flag, set by any value,
 * also an empty one (OpenSHMEM 1.6, "Environment Variables"); size, bytes as weft_env_parse_size
 * reads them; count, a whole number from 1 to WEFT_ENV_COUNT_MAX; seconds, from 0, with fractions;
 * text, checked by the code that uses it. */
#define WEFT_ENV(X)                                                                                \
    X(flag, version, "SHMEM_VERSION", "SMA_VERSION", false,                                        \
      "print the library's version at start-up")                                                   \
    X(flag, info, "SHMEM_INFO", "SMA_INFO", false, "print the version and this list at start-up")  \
    X(flag, debug, "SHMEM_DEBUG", "SMA_DEBUG", false, "look for all misuse that can be detected")  \
    X(size, symmetric_size, "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", 0,                       \
      "symmetric heap that each PE commits at start-up, a number and k, m, g or t; it grows")      \
    X(text, commit, "WEFT_COMMIT", NULL, "auto",                                                   \
      "when memory of the symmetric heap is committed: auto, as it is touched; now, as the heap "  \
      "grows")                                                                                     \
    X(seconds, hang_seconds, "WEFT_HANG_SECONDS", NULL, 10.0,                                      \
      "a call that has waited this long reports what it waits for; 0: never")                      \
    X(text, launcher, "WEFT_LAUNCHER", NULL, "auto",                                               \
      "what started the job: auto, oshrun, pmix, pmi, pmi2, torchrun, slurm, init_attr or none")   \
    X(text, pretend_hosts, "WEFT_PRETEND_HOSTS", NULL, "none",                                     \
      "for tests, how PEs pretend to be on several hosts: none; PEs of each, 2+1; cyclic:HOSTS; "  \
      "each PE its own, each; the host of every PE, list:0,0,1; the same on all PEs")              \
    X(text, far_engine, "WEFT_ENGINE", NULL, "auto",                                               \
      "the engine that reaches PEs on other hosts: tcp; ucx; a library, by name or path; auto: "   \
      "ucx where UCX_TLS or UCX_NET_DEVICES is set, else tcp; the same on all PEs")                \
    X(text, proxies, "WEFT_PROXIES", NULL, "auto",                                                 \
      "which process receives messages of other hosts: pe, each PE for itself; host, the "         \
      "first PE of a host for all PEs there; auto: host in large jobs, on hosts that have a "      \
      "processor to spare, else pe")                                                               \
    X(text, ssh, "WEFT_SSH", NULL, "ssh -x",                                                       \
      "the command with which oshrun starts another on a host; it is followed by the "             \
      "host's name and the words to run")                                                          \
    X(count, fan_out, "WEFT_FAN_OUT", NULL, 32,                                                    \
      "how many hosts oshrun starts itself; if there are more, each of these hosts starts "        \
      "that many others")                                                                          \
    X(seconds, start_timeout, "WEFT_START_TIMEOUT", NULL, 60.0,                                    \
      "how long oshrun waits for a host to answer at the start")                                   \
    X(seconds, host_timeout, "WEFT_HOST_TIMEOUT", NULL, 5.0,                                       \
      "a host that has been silent this long ends its job, if that has several hosts")             \
    X(text, interface, "WEFT_INTERFACE", NULL, "auto",                                             \
      "the network interface through which hosts of a job without oshrun reach each other: its "   \
      "name; auto: any that works")                                                                \
    X(text, far_network, "WEFT_FAR_NETWORK", NULL, "private",                                      \
      "private: messages, which are not encrypted, use no address that is public; trusted: "       \
      "they may")                                                                                  \
    X(text, bits, "WEFT_BITS", NULL, "same",                                                       \
      "sums of products over hosts: same, their bits are those of one host; any, a host adds its " \
      "own first, so that less is sent over the network; the same on all PEs")                     \
    X(text, exit, "WEFT_EXIT", NULL, "end",                                                        \
      "an exit with a status other than 0 and without shmem_finalize: end, it ends the job; "      \
      "wait, it waits for the other PEs as shmem_finalize does")                                   \
    X(text, backtrace, "WEFT_BACKTRACE", NULL, "1",                                                \
      "1: a PE that crashes or misuses a routine says where it was; 0: it does not")               \
    X(text, device, "SHMEMX_DEVICE", NULL, "auto",                                                 \
      "the GPU of this PE, a number as CUDA counts them; auto: the current one, or the PE's "      \
      "number on its host modulo GPUs")                                                            \
    X(text, engine, "SHMEMX_ENGINE", NULL, "auto",                                                 \
      "what copies GPU memory: auto, sm (multiprocessors) or copy (copy engines)")                 \
    X(text, algorithm, "SHMEMX_ALGORITHM", NULL, "auto",                                           \
      "the algorithm of collectives on streams: auto, by size; ll, marked, push or meet, "         \
      "where it applies; the same on all PEs")                                                     \
    X(text, sms, "SHMEMX_SMS", NULL, "auto",                                                       \
      "multiprocessors that a collective on a stream takes at most: auto, or 1 to 64; the "        \
      "same on all PEs")                                                                           \
    X(text, tf32, "WEFT_TF32", NULL, "0",                                                          \
      "products of f32 matrices on GPUs: 0, of all their bits; 1, of 19 bits, which is faster")    \
    X(text, deterministic, "WEFT_DETERMINISTIC", NULL, "0",                                        \
      "1: products on GPUs have the same bits on every machine of a kind, by the algorithm that "  \
      "cuBLASLt recommends; 0: by the fastest one in a trial, kept in "                            \
      "$XDG_CACHE_HOME/weft/products")                                                             \
    X(text, products, "WEFT_PRODUCTS", NULL, "auto",                                               \
      "bf16 and f16 matrices on Hopper GPUs: auto, a trial decides between cuBLASLt with copy "    \
      "engines and Weft's kernels; engines, copy engines always exchange; cublaslt, it also "      \
      "multiplies always; own, Weft's kernels always exchange; the same on all PEs")               \
    X(text, peer_access, "SHMEMX_PEER_ACCESS", NULL, "auto",                                       \
      "how a GPU accesses another one's memory: auto, directly where it can; off, always through " \
      "host memory")

/* X(name). Variables of Weft and of the libraries that it opens that name a file, a library or a
 * program. A privileged program removes them before main (base/privilege.c), so every such variable
 * of Weft must be listed here, too. */
#define WEFT_ENV_FILES(X)        \
    X("WEFT_ENGINE")             \
    X("WEFT_SSH")                \
    X("UCX_MODULE_DIR")          \
    X("UCX_LOG_FILE")            \
    X("UCX_STATS_DEST")          \
    X("UCX_MEMTRACK_DEST")       \
    X("UCX_PROFILE_FILE")        \
    X("UCX_GDB_COMMAND")         \
    X("UCX_ERROR_MAIL_TO")       \
    X("CUDA_INJECTION64_PATH")   \
    X("CUDA_INJECTION32_PATH")   \
    X("CUDA_CACHE_PATH")         \
    X("CUDA_COREDUMP_FILE")      \
    X("CUDA_COREDUMP_PIPE")      \
    X("CUDA_LOG_FILE")           \
    X("CUBLASLT_LOG_FILE")       \
    X("CUDA_MPS_PIPE_DIRECTORY") \
    X("CUDA_MPS_LOG_DIRECTORY")  \
    X("ONEDNN_JIT_DUMP")         \
    X("ONEDNN_JIT_PROFILE")      \
    X("DNNL_JIT_DUMP")           \
    X("DNNL_JIT_PROFILE")        \
    X("JITDUMPDIR")

enum { WEFT_ENV_COUNT_MAX = 1024 };

typedef bool weft_env_flag;
typedef size_t weft_env_size;
typedef int weft_env_count;
typedef double weft_env_seconds;
typedef const char *weft_env_text;

struct weft_env {
#define WEFT_ENV_FIELD(kind, field, name, old, preset, meaning) weft_env_##kind field;
    WEFT_ENV(WEFT_ENV_FIELD)
#undef WEFT_ENV_FIELD
};

/* The settings in force: what weft_env_read found, or the defaults. */
extern struct weft_env weft_env;

/* Reads the environment. Returns 0, or -EINVAL after logging the variable, its value and the
 * remedy. */
int weft_env_read(void);

/* Writes the table to stdout: each setting, its origin, its default and its meaning. */
void weft_env_print(void);

/* Parses a size in bytes such as "512", "1.5g", ".5m", "2e3k", "0x10" or "20kk" (characters after
 * the suffix are ignored), and rounds up. k, m, g and t, of either case, are powers of 1024. The
 * result does not depend on the locale. Returns 0 or -EINVAL. */
int weft_env_parse_size(const char *text, size_t *bytes);

#endif
