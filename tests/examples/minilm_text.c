/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the example's sentences: re-flowed lines, sentence ends and what only looks like
 * one, titles, lists, and limits.
 * PEs: 1 */
#include "../../examples/minilm/error.c"
#include "../../examples/minilm/file.c"
#include "../../examples/minilm/text.c"
#include "tap.h"
#include <unistd.h>

static struct text text;

static int open_text(const char *words) {
    char path[] = "/tmp/minilm-test-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, words, strlen(words)) != (ssize_t)strlen(words))
        abort();
    close(fd);
    int error = text_open(&text, path);
    unlink(path);
    return error;
}

/* `expected`: "section|line|words" for each sentence, and a newline behind each. */
static void expect_sentences(const char *words, const char *expected) {
    char found[4096] = "";
    EXPECT(open_text(words) == 0, "%s", fail_text());
    for (size_t s = 0; s < text.count; s++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s|%zu|%s\n",
                 text.sentences[s].section, text.sentences[s].line, text.sentences[s].words);
    EXPECT(!strcmp(found, expected), "\n%snot\n%s", found, expected);
    text_close(&text);
}

static void test_sentences(void) {
    tap_case("lines flow together and are cut where sentences end");
    expect_sentences(
        "One two\n  three. Four\tfive six!\r\nSeven (eight nine.) Ten is it?",
        "|1|One two three.\n|2|Four five six!\n|3|Seven (eight nine.)\n|3|Ten is it?\n");

    tap_case("abbreviations, initials and numbers end nothing");
    expect_sentences("See Mr. Smith, e.g. John F. Kennedy, at 3.14 and v2.0 of it.",
                     "|1|See Mr. Smith, e.g. John F. Kennedy, at 3.14 and v2.0 of it.\n");
    expect_sentences("It ends here... but goes on so. Then it does stop.",
                     "|1|It ends here... but goes on so.\n|1|Then it does stop.\n");

    tap_case("a paragraph ends a sentence");
    expect_sentences("It has no full stop;\n\nand here begins another.\n",
                     "|1|It has no full stop;\n|3|and here begins another.\n");
}

static void test_titles(void) {
    tap_case("titles name the section and are no sentences");
    expect_sentences(
        "  1. The First Part.\n\nHere is some text.\n\n              CENTRED\n\nAnd here is more.",
        "1. The First Part.|3|Here is some text.\nCENTRED|7|And here is more.\n");
    expect_sentences("Title\n\nIts text is here.", "Title|3|Its text is here.\n");

    tap_case("a list's marks go");
    expect_sentences("a) the first thing;\n\n- the second thing.",
                     "|1|the first thing;\n|3|the second thing.\n");

    tap_case("fragments of two words go");
    expect_sentences("Oh yes. This one stays here.", "|1|This one stays here.\n");
}

static void test_limits(void) {
    char words[8192] = "";
    tap_case("an endless sentence is cut, at commas where it has some");
    for (int i = 0; i < 1000; i++)
        strcat(words, i % 20 == 19 ? "word, " : "word ");
    EXPECT(open_text(words) == 0, "%s", fail_text());
    for (size_t s = 0; s < text.count; s++) {
        size_t n = strlen(text.sentences[s].words);
        EXPECT(n <= SENTENCE_MAX + 8, "sentence %zu has %zu bytes", s, n);
        EXPECT(s + 1 == text.count || text.sentences[s].words[n - 1] == ',', "cut in %s",
               text.sentences[s].words);
    }
    text_close(&text);

    tap_case("a text without a sentence is refused");
    EXPECT(open_text("") == -1, "empty");
    EXPECT(open_text(" \n\n \t") == -1, "blank");
    EXPECT(open_text("Only\n\nTitles\n") == -1, "titles");
    EXPECT(text_open(&text, "/nonexistent") == -1 && strstr(fail_text(), "/nonexistent"), "%s",
           fail_text());
}

int main(void) {
    tap_start(0);
    test_sentences();
    test_titles();
    test_limits();
    return tap_finish();
}
