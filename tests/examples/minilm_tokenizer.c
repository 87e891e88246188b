/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the example's tokenizer on a small vocabulary: words, accents, punctuation, pieces,
 * what it does not know, and the limits on a word and on a text.
 * PEs: 1 */
#include "../../examples/minilm/error.c"
#include "../../examples/minilm/file.c"
#include "../../examples/minilm/tokenizer.c"
#include "../../examples/minilm/unicode.c"
#include "tap.h"
#include <unistd.h>

enum { ROOM = 64 };

static const char vocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\na\n##a\ncafe\n,\n!\n"
    "\xe4\xb8\xad\n\xe2\x80\x94\nnaive\nzoe\n\xc3\xa6\n##\xc3\xb8\nstrasse\n"
    "\xce\xb1\xce\xb2\nis\n-\n";

static struct tokenizer tokenizer;

/* Writes `bytes` to a file that is gone when the program ends; its name in `path`. */
static void write_file(char path[static 32], const char *bytes, size_t n) {
    strcpy(path, "/tmp/minilm-test-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

/* The pieces of a text, with spaces between. */
static const char *pieces(const char *text, size_t max_ids) {
    static char line[ROOM * 16];
    int32_t ids[ROOM];
    size_t count = tokenizer_encode(&tokenizer, text, ids, max_ids);
    line[0] = 0;
    for (size_t i = 0; i < count; i++)
        sprintf(line + strlen(line), "%s%s", i ? " " : "", tokenizer.pieces[ids[i]]);
    return line;
}

static void expect_pieces(const char *text, const char *expected) {
    const char *found = pieces(text, ROOM);
    EXPECT(!strcmp(found, expected), "\"%s\" gives %s, not %s", text, found, expected);
}

static void test_open(void) {
    char path[32];
    tap_case("a file that is no vocabulary is refused");
    write_file(path, "a\nb\n", 4);
    EXPECT(tokenizer_open(&tokenizer, path) == -1, "it was accepted");
    EXPECT(strstr(fail_text(), path), "the error does not name the file: %s", fail_text());
    unlink(path);
    EXPECT(tokenizer_open(&tokenizer, path) == -1, "a missing file was accepted");
    write_file(path, "", 0);
    EXPECT(tokenizer_open(&tokenizer, path) == -1, "an empty file was accepted");
    unlink(path);

    tap_case("a vocabulary is read, with its last line unfinished too");
    write_file(path, vocabulary, sizeof vocabulary - 2);
    EXPECT(tokenizer_open(&tokenizer, path) == 0, "%s", fail_text());
    EXPECT(tokenizer.pieces_count == 22, "%zu pieces", tokenizer.pieces_count);
    unlink(path);
}

static void test_words(void) {
    tap_case("an empty text is [CLS] [SEP]");
    expect_pieces("", "[CLS] [SEP]");
    expect_pieces(" \t\r\n\xc2\xa0\xe3\x80\x80", "[CLS] [SEP]");

    tap_case("the longest pieces are taken");
    expect_pieces("unaffable", "[CLS] un ##aff ##able [SEP]");
    expect_pieces("UNAFFABLE a", "[CLS] un ##aff ##able a [SEP]");

    tap_case("accents are taken off, composed or not");
    expect_pieces("Caf\xc3\xa9 CAFE\xcc\x81 na\xc3\xafve Zo\xc3\xab",
                  "[CLS] cafe cafe naive zoe [SEP]");
    expect_pieces("\xc3\x86 \xc3\x86\xc3\x98", "[CLS] \xc3\xa6 \xc3\xa6 ##\xc3\xb8 [SEP]");
    expect_pieces("\xce\x86\xce\x92", "[CLS] \xce\xb1\xce\xb2 [SEP]"); /* Greek */

    tap_case("punctuation and ideographs stand alone");
    expect_pieces("a,a!", "[CLS] a , a ! [SEP]");
    expect_pieces("cafe\xe2\x80\x94"
                  "cafe",
                  "[CLS] cafe \xe2\x80\x94 cafe [SEP]");
    expect_pieces("a\xe4\xb8\xad"
                  "a",
                  "[CLS] a \xe4\xb8\xad a [SEP]");
}

static void test_unknown(void) {
    tap_case("a word with an unknown rest is [UNK] as a whole");
    expect_pieces("unaffxyz a", "[CLS] [UNK] a [SEP]");
    expect_pieces("\xf0\x9f\x98\x80 a", "[CLS] [UNK] a [SEP]");

    tap_case("what is invisible or ill-formed vanishes");
    expect_pieces("c\xe2\x80\x8b"
                  "a\xc2\xad"
                  "f\x01"
                  "e",
                  "[CLS] cafe [SEP]");
    expect_pieces("caf\xff"
                  "e \xc3",
                  "[CLS] cafe [SEP]");
    expect_pieces("cafe\xe2\x80", "[CLS] cafe [SEP]");     /* cut off */
    expect_pieces("cafe\xed\xa0\x80", "[CLS] cafe [SEP]"); /* a surrogate */
    expect_pieces("cafe\xc0\xa1", "[CLS] cafe [SEP]");     /* an overlong '!' */
}

static void test_limits(void) {
    char word[2 * WORD_MAX + 1], text[4 * ROOM + 1] = "";
    tap_case("a word of 100 characters is cut, one of 101 is [UNK]");
    memset(word, 'a', sizeof word);
    word[WORD_MAX + 1] = 0;
    expect_pieces(word, "[CLS] [UNK] [SEP]");
    word[WORD_MAX] = 0;
    int32_t ids[2 * WORD_MAX];
    size_t count = tokenizer_encode(&tokenizer, word, ids, 2 * WORD_MAX);
    EXPECT(count == 2 + WORD_MAX, "%zu ids", count);

    tap_case("a long text loses its end, not its [SEP]");
    for (int i = 0; i < ROOM; i++)
        strcat(text, "is! ");
    EXPECT(!strcmp(pieces(text, 5), "[CLS] is ! is [SEP]"), "%s", pieces(text, 5));
    EXPECT(!strcmp(pieces("is un unaffable", 5), "[CLS] is un un [SEP]"), "%s",
           pieces("is un unaffable", 5));
    EXPECT(!strcmp(pieces("is is is zzz", 5), "[CLS] is is is [SEP]"), "%s",
           pieces("is is is zzz", 5));
    EXPECT(!strcmp(pieces(text, 2), "[CLS] [SEP]"), "%s", pieces(text, 2));
}

int main(void) {
    tap_start(0);
    test_open();
    test_words();
    test_unknown();
    test_limits();
    tokenizer_close(&tokenizer);
    return tap_finish();
}
