/* SPDX-License-Identifier: BSD-3-Clause */
/* Unicode for a tokenizer, from Unicode 14's categories and canonical decompositions. */
#include "unicode.h"
#include <string.h>

struct range {
    uint32_t first, last;
};

/* Ranges are sorted, so the first one that ends at or after `code` decides. */
static bool within(const struct range *ranges, size_t count, uint32_t code) {
    size_t i = 0;
    while (i < count && ranges[i].last < code)
        i++;
    return i < count && ranges[i].first <= code;
}

#define WITHIN(ranges, code) within(ranges, sizeof(ranges) / sizeof *(ranges), code)

/* The number of continuation bytes for each lead byte; -1 if the byte starts no sequence. */
static int continuation_bytes(unsigned char lead) {
    return lead < 0x80   ? 0
           : lead < 0xC2 ? -1
           : lead < 0xE0 ? 1
           : lead < 0xF0 ? 2
           : lead < 0xF5 ? 3
                         : -1;
}

uint32_t unicode_next(const char **text) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)*text;
    int n = continuation_bytes(bytes[0]);
    if (n <= 0) {
        *text += bytes[0] != 0;
        return n == 0 ? bytes[0] : 0xFFFD;
    }
    uint32_t code = bytes[0] & (0x3Fu >> n);
    for (int i = 1; i <= n; i++) {
        if ((bytes[i] & 0xC0) != 0x80) { /* also the end of the text */
            *text += 1;
            return 0xFFFD;
        }
        code = code << 6 | (bytes[i] & 0x3F);
    }
    bool valid = code >= least[n] && code < 0x110000 && code - 0xD800 >= 0x800;
    *text += valid ? n + 1 : 1;
    return valid ? code : 0xFFFD;
}

size_t unicode_put(uint32_t code, char *dest) {
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        dest[i] = (char)(0x80 | (code & 0x3F));
    dest[0] = (char)(lead[n] | code);
    return n;
}

bool unicode_is_space(uint32_t code) {
    static const struct range spaces[] = {
        {'\t', '\n'},     {'\r', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
    return WITHIN(spaces, code);
}

bool unicode_is_control(uint32_t code) {
    static const struct range controls[] = {
        {0, 8},           {0xB, 0xC},         {0xE, 0x1F},        {0x7F, 0x9F},
        {0xAD, 0xAD},     {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
        {0x70F, 0x70F},   {0x180E, 0x180E},   {0x200B, 0x200F},   {0x202A, 0x202E},
        {0x2060, 0x206F}, {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},
        {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF}};
    return WITHIN(controls, code);
}

bool unicode_is_punctuation(uint32_t code) {
    static const struct range marks[] = {
        /* BERT counts every visible ASCII character that is not a letter or digit */
        {'!', '/'},       {':', '@'},       {'[', '`'},       {'{', '~'},       {0xA1, 0xA1},
        {0xA7, 0xA7},     {0xAB, 0xAB},     {0xB6, 0xB7},     {0xBB, 0xBB},     {0xBF, 0xBF},
        {0x37E, 0x37E},   {0x387, 0x387},   {0x55A, 0x55F},   {0x589, 0x58A},   {0x5BE, 0x5BE},
        {0x5C0, 0x5C0},   {0x5C3, 0x5C3},   {0x5C6, 0x5C6},   {0x5F3, 0x5F4},   {0x609, 0x60A},
        {0x60C, 0x60D},   {0x61B, 0x61B},   {0x61D, 0x61F},   {0x66A, 0x66D},   {0x6D4, 0x6D4},
        {0x964, 0x965},   {0x970, 0x970},   {0x2010, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x2051},
        {0x2053, 0x205E}, {0x207D, 0x207E}, {0x208D, 0x208E}, {0x2308, 0x230B}, {0x2329, 0x232A},
        {0x2768, 0x2775}, {0x27C5, 0x27C6}, {0x27E6, 0x27EF}, {0x2983, 0x2998}, {0x29D8, 0x29DB},
        {0x29FC, 0x29FD}, {0x2E00, 0x2E2E}, {0x2E30, 0x2E4F}, {0x2E52, 0x2E5D}, {0x3001, 0x3003},
        {0x3008, 0x3011}, {0x3014, 0x301F}, {0x3030, 0x3030}, {0x303D, 0x303D}, {0x30A0, 0x30A0},
        {0x30FB, 0x30FB}, {0xFE10, 0xFE19}, {0xFE30, 0xFE52}, {0xFE54, 0xFE61}, {0xFE63, 0xFE63},
        {0xFE68, 0xFE68}, {0xFE6A, 0xFE6B}, {0xFF01, 0xFF03}, {0xFF05, 0xFF0A}, {0xFF0C, 0xFF0F},
        {0xFF1A, 0xFF1B}, {0xFF1F, 0xFF20}, {0xFF3B, 0xFF3D}, {0xFF3F, 0xFF3F}, {0xFF5B, 0xFF5B},
        {0xFF5D, 0xFF5D}, {0xFF5F, 0xFF65}};
    return WITHIN(marks, code);
}

bool unicode_is_cjk(uint32_t code) {
    static const struct range ideographs[] = {
        {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
        {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    return WITHIN(ideographs, code);
}

bool unicode_is_accent(uint32_t code) {
    static const struct range accents[] = {{0x300, 0x36F},   {0x483, 0x487},   {0x1AB0, 0x1ABD},
                                           {0x1ABF, 0x1ACE}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20DC},
                                           {0x20E1, 0x20E1}, {0x20E5, 0x20F0}, {0xFE20, 0xFE2F}};
    return WITHIN(accents, code);
}

/* The ASCII base letter of accented letters, block by block; '.' if there is none. */
static char latin_base(uint32_t code) {
    static const char supplement_and_extended[] = /* U+00C0 to U+024F */
        "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
        "aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll."
        "...nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzz."
        "................................oo.............uu..............."
        ".............aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa...."
        "aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............"
        "................";
    static const char extended_additional[] = /* U+1E00 to U+1EFF */
        "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"
        "mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"
        "wwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
        "eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";
    if (code - 0xC0 < sizeof supplement_and_extended - 1)
        return supplement_and_extended[code - 0xC0];
    if (code - 0x1E00 < sizeof extended_additional - 1)
        return extended_additional[code - 0x1E00];
    return '.';
}

/* Letters without an ASCII base or a fixed distance; sorted by the first column. */
static uint32_t irregular(uint32_t code) {
    static const uint16_t folds[][2] = {
        {0x110, 0x111}, {0x126, 0x127},   {0x132, 0x133},   {0x13F, 0x140},  {0x141, 0x142},
        {0x14A, 0x14B}, {0x152, 0x153},   {0x166, 0x167},   {0x186, 0x254},  {0x18F, 0x259},
        {0x190, 0x25B}, {0x1E2, 0xE6},    {0x1E3, 0xE6},    {0x1FC, 0xE6},   {0x1FD, 0xE6},
        {0x1FE, 0xF8},  {0x1FF, 0xF8},    {0x386, 0x3B1},   {0x388, 0x3B5},  {0x389, 0x3B7},
        {0x38A, 0x3B9}, {0x38C, 0x3BF},   {0x38E, 0x3C5},   {0x38F, 0x3C9},  {0x390, 0x3B9},
        {0x3AA, 0x3B9}, {0x3AB, 0x3C5},   {0x3AC, 0x3B1},   {0x3AD, 0x3B5},  {0x3AE, 0x3B7},
        {0x3AF, 0x3B9}, {0x3B0, 0x3C5},   {0x3CA, 0x3B9},   {0x3CB, 0x3C5},  {0x3CC, 0x3BF},
        {0x3CD, 0x3C5}, {0x3CE, 0x3C9},   {0x400, 0x435},   {0x401, 0x435},  {0x403, 0x433},
        {0x407, 0x456}, {0x40C, 0x43A},   {0x40D, 0x438},   {0x40E, 0x443},  {0x419, 0x438},
        {0x439, 0x438}, {0x450, 0x435},   {0x451, 0x435},   {0x453, 0x433},  {0x457, 0x456},
        {0x45C, 0x43A}, {0x45D, 0x438},   {0x45E, 0x443},   {0x490, 0x491},  {0x1E9B, 0x17F},
        {0x1E9E, 0xDF}, {0x1EFA, 0x1EFB}, {0x1EFC, 0x1EFD}, {0x1EFE, 0x1EFF}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds && folds[i][0] <= code; i++)
        if (folds[i][0] == code)
            return folds[i][1];
    return code;
}

uint32_t unicode_fold(uint32_t code) {
    if (code < 0x80)
        return code - 'A' < 26 ? code + 0x20 : code;
    if (latin_base(code) != '.')
        return (uint32_t)latin_base(code);
    if (irregular(code) != code)
        return irregular(code);
    if (code - 0x400 < 0x10) /* Cyrillic: Ѐ to Џ */
        return code + 0x50;
    bool capital = (code - 0xC0 < 0x1F && code != 0xD7) || (code - 0x391 < 0x19 && code != 0x3A2) ||
                   code - 0x410 < 0x20; /* Latin-1, Greek, Cyrillic */
    return capital ? code + 0x20 : code;
}
