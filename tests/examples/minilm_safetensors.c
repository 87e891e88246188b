/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the example's safetensors reader: values of all float types, and a refusal that
 * names the file for every way in which a header can lie or a file can be cut.
 * PEs: 1 */
#include "../../examples/minilm/error.c"
#include "../../examples/minilm/json.c"
#include "../../examples/minilm/safetensors.c"
#include "tap.h"
#include <math.h>
#include <stdio.h>

static char path[] = "/tmp/minilm-test-XXXXXX";

/* A file of a header and `bytes` zero bytes, but the first `given` of them from `data`. */
static void write_file(const char *header, uint64_t header_bytes, const void *data, size_t given,
                       size_t bytes) {
    FILE *stream = fopen(path, "w");
    fwrite(&header_bytes, sizeof header_bytes, 1, stream);
    fputs(header, stream);
    fwrite(data, 1, given, stream);
    for (size_t i = given; i < bytes; i++)
        fputc(0, stream);
    fclose(stream);
}

static void expect_refused(const char *why, const char *header, size_t bytes) {
    struct safetensors file;
    write_file(header, strlen(header), "", 0, bytes);
    EXPECT(safetensors_open(&file, path) == -1, "%s was accepted", why);
    EXPECT(strstr(fail_text(), path), "%s: the error does not name the file: %s", why, fail_text());
}

static void test_values(void) {
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"x\":[1,-2.5e3,{\"y\":null}]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"b\\u00e4\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
        "\"h\" : {\"shape\" : [ 5 ], \"data_offsets\":[12,22],\"dtype\":\"F16\"},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[22,22]},"
        "\"i\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[22,23]}}   ";
    unsigned char data[23] = {0};
    const float f[2] = {1.5f, -3};
    const uint16_t b[2] = {0x3F80, 0xC000}, h[5] = {0x3C00, 0xC000, 0x0001, 0x7C00, 0x83FF};
    const float expected[5] = {1, -2, 0x1p-24f, INFINITY, -1023 * 0x1p-24f};
    struct safetensors file;
    float values[5];
    memcpy(data, f, 8);
    memcpy(data + 8, b, 4);
    memcpy(data + 12, h, 10);
    write_file(header, strlen(header), data, sizeof data, sizeof data);

    tap_case("F32, BF16 and F16 are read");
    EXPECT(safetensors_open(&file, path) == 0, "%s", fail_text());
    const struct tensor *tensor = safetensors_find(&file, "f", 1, 2);
    EXPECT(tensor, "%s", fail_text());
    safetensors_read(&file, tensor, 1, 1, values);
    EXPECT(values[0] == -3, "%g", (double)values[0]);
    tensor = safetensors_find(&file, "b\xc3\xa4", 2, 0);
    EXPECT(tensor, "%s", fail_text());
    safetensors_read(&file, tensor, 0, 2, values);
    EXPECT(values[0] == 1 && values[1] == -2, "%g %g", (double)values[0], (double)values[1]);
    tensor = safetensors_find(&file, "h", 5, 0);
    EXPECT(tensor, "%s", fail_text());
    safetensors_read(&file, tensor, 0, 5, values);
    for (int i = 0; i < 5; i++)
        EXPECT(values[i] == expected[i], "%d: %g, not %g", i, (double)values[i],
               (double)expected[i]);

    tap_case("a tensor of another name, shape or type is refused by name");
    EXPECT(!safetensors_find(&file, "g", 1, 2) && strstr(fail_text(), "g is missing"), "%s",
           fail_text());
    EXPECT(!safetensors_find(&file, "f", 2, 1) && strstr(fail_text(), "tensor f"), "%s",
           fail_text());
    EXPECT(!safetensors_find(&file, "f", 2, 0), "a matrix passed for a vector");
    EXPECT(!safetensors_find(&file, "i", 1, 0), "a scalar passed for a vector");
    safetensors_close(&file);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_headers(void) {
    tap_case("a header that is no JSON object is refused");
    expect_refused("an empty header", "", 0);
    expect_refused("an array", "[]", 0);
    expect_refused("an object without end", "{", 0);
    expect_refused("a name without end", "{\"a", 0);
    expect_refused("a bare word", "{\"a\":nul}", 0);
    expect_refused("a comma too many", "{" TENSOR("a", "U8", "[1]", "[0,1]") ",}", 1);
    expect_refused("a missing comma",
                   "{" TENSOR("a", "U8", "[1]", "[0,1]") TENSOR("b", "U8", "[1]", "[1,2]") "}", 2);
    expect_refused("text behind it", "{} x", 0);
    expect_refused("a lone surrogate", "{\"\\ud800\":1}", 0);
    expect_refused("a control character", "{\"a\n\":1}", 0);
    expect_refused("deep nesting",
                   "{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0);

    tap_case("a tensor's entry has to be complete and known");
    expect_refused("no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    expect_refused("a shape twice",
                   "{\"a\":{\"shape\":[1],\"shape\":[1],\"dtype\":\"U8\",\"data_offsets\":[0,1]}}",
                   1);
    expect_refused("another key", "{\"a\":{\"stride\":[1]}}", 1);
    expect_refused("an unknown type", "{" TENSOR("a", "F31", "[1]", "[0,4]") "}", 4);
    expect_refused("one offset", "{" TENSOR("a", "U8", "[1]", "[0]") "}", 1);
    expect_refused("three offsets", "{" TENSOR("a", "U8", "[1]", "[0,1,1]") "}", 1);
    expect_refused("a negative extent", "{" TENSOR("a", "U8", "[-1]", "[0,1]") "}", 1);
    expect_refused("nine dimensions", "{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1);
    expect_refused("a number beyond 64 bits",
                   "{" TENSOR("a", "U8", "[18446744073709551616]", "[0,0]") "}", 0);
}

static void test_layout(void) {
    tap_case("shapes and offsets have to fit the file");
    expect_refused("a shape larger than its bytes", "{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4);
    expect_refused("a product that overflows",
                   "{" TENSOR("a", "F32", "[4611686018427387904,4]", "[0,0]") "}", 0);
    expect_refused("an end before the beginning", "{" TENSOR("a", "U8", "[1]", "[1,0]") "}", 1);
    expect_refused("an end beyond the file", "{" TENSOR("a", "U8", "[9]", "[0,9]") "}", 8);
    expect_refused("a hole", "{" TENSOR("a", "U8", "[1]", "[1,2]") "}", 2);
    expect_refused("an overlap",
                   "{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[2]", "[1,3]") "}",
                   3);
    expect_refused("bytes left over", "{" TENSOR("a", "U8", "[1]", "[0,1]") "}", 2);
    expect_refused("a name twice",
                   "{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}",
                   2);
}

static void test_truncated(void) {
    static const char header[] = "{" TENSOR("a", "F32", "[2]", "[0,8]") "}";
    struct safetensors file;
    tap_case("a file cut anywhere is refused");
    for (off_t bytes = 0; bytes < (off_t)(8 + strlen(header) + 8); bytes++) {
        write_file(header, strlen(header), "", 0, 8);
        EXPECT(truncate(path, bytes) == 0, "truncate");
        EXPECT(safetensors_open(&file, path) == -1, "%jd bytes were accepted", (intmax_t)bytes);
    }

    tap_case("a header length beyond the file is refused");
    for (int bit = 8; bit < 64; bit++) {
        write_file(header, UINT64_C(1) << bit, "", 0, 8);
        EXPECT(safetensors_open(&file, path) == -1, "2^%d bytes were accepted", bit);
    }
    EXPECT(safetensors_open(&file, "/nonexistent") == -1, "a missing file was accepted");
    EXPECT(strstr(fail_text(), "/nonexistent: No such file"), "%s", fail_text());
}

int main(void) {
    tap_start(0);
    close(mkstemp(path));
    test_values();
    test_headers();
    test_layout();
    test_truncated();
    unlink(path);
    return tap_finish();
}
