/* Validates text from files, such as names, because files are untrusted. */
#include "io/io.h"

#include <string.h>

/* Returns the length of the UTF-8 sequence whose first byte is `first`, or 0 if no sequence begins
 * with it. */
static size_t sequence_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first < 0xE0) return 2;
    if (first >= 0xE0 && first < 0xF0) return 3;
    return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

/* Checks the second byte of a UTF-8 sequence. The second byte shows whether the sequence is
 * overlong, a surrogate, or above U+10FFFF; these are invalid. */
static bool second_is_valid(unsigned char first, unsigned char second) {
    switch (first) {
    case 0xE0:
        return second >= 0xA0;
    case 0xED:
        return second < 0xA0;
    case 0xF0:
        return second >= 0x90;
    case 0xF4:
        return second < 0x90;
    default:
        return true;
    }
}

bool bsmm_text_is_utf8(const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t bytes = sequence_length(at[0]);
        if (at[0] == 0 || bytes == 0 || bytes > length - i) return false;
        for (size_t k = 1; k < bytes; k++)
            if ((at[k] & 0xC0) != 0x80) return false;
        if (bytes > 1 && !second_is_valid(at[0], at[1])) return false;
        i += bytes;
    }
    return true;
}

bool bsmm_text_ends(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}
