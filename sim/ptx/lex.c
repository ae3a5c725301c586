/* Splits PTX text into tokens: words, numbers, strings and single characters. */
#include "lex.h"
#include <stdlib.h>
#include <string.h>

void ptx_lex_start(ptx_lexer *x, const char *text, size_t size) {
    *x = (ptx_lexer){.at = text, .end = text + size, .line = 1};
    ptx_lex_next(x);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static char peek(const ptx_lexer *x, size_t ahead) {
    return (char)((size_t)(x->end - x->at) > ahead ? x->at[ahead] : 0);
}

static void skip_block_comment(ptx_lexer *x) {
    for (x->at += 2; x->at < x->end; x->at++) {
        if (*x->at == '\n') x->line++;
        if (*x->at != '*' || peek(x, 1) != '/') continue;
        x->at += 2;
        return;
    }
}

static void skip_space(ptx_lexer *x) {
    while (x->at < x->end) {
        const char c = *x->at;
        if (c == '/' && peek(x, 1) == '/') {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (c == '/' && peek(x, 1) == '*') {
            skip_block_comment(x);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            x->line += c == '\n';
            x->at++;
        } else {
            return;
        }
    }
}

/* Reads a word, which may contain dots and double colons, e.g. "ld.shared::cta.u32", "%tid.x" or
 * ".reg". */
static void take_word(ptx_lexer *x) {
    for (; x->at < x->end; x->at++) {
        if (is_letter(*x->at) || is_digit(*x->at) || *x->at == '.') continue;
        if (*x->at != ':' || peek(x, 1) != ':') return;
        x->at++;
    }
}

static uint32_t digit_of(char c) {
    if (is_digit(c)) return (uint32_t)(c - '0');
    if (c >= 'a' && c <= 'z') return (uint32_t)(c - 'a') + 10;
    return c >= 'A' && c <= 'Z' ? (uint32_t)(c - 'A') + 10 : 99;
}

static uint64_t take_digits(ptx_lexer *x, uint32_t base, uint32_t most) {
    uint64_t value = 0;
    for (uint32_t n = 0; n < most && x->at < x->end && digit_of(*x->at) < base; n++, x->at++)
        value = value * base + digit_of(*x->at);
    return value;
}

static void take_decimal(ptx_lexer *x) {
    char text[64] = "";
    const char *from = x->at;
    size_t n = 0;
    bool real = false;
    while (n + 1 < sizeof text && from + n < x->end) {
        const char c = from[n];
        const bool sign = n && (c == '-' || c == '+') && (text[n - 1] == 'e' || text[n - 1] == 'E');
        if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !sign) break;
        real |= !is_digit(c);
        text[n++] = c;
    }
    text[n] = 0;
    x->token.real = real;
    if (real) {
        x->token.number = strtod(text, NULL);
        x->at += n;
    } else {
        x->token.value = take_digits(x, *from == '0' ? 8 : 10, 64);
        if (x->at == from) x->at++;
    }
}

static void take_number(ptx_lexer *x) {
    ptx_token *t = &x->token;
    const char kind = peek(x, 1);
    t->kind = NUMBER;
    if (*x->at == '0' && (kind == 'x' || kind == 'X')) {
        x->at += 2, t->value = take_digits(x, 16, 64);
    } else if (*x->at == '0' && (kind == 'b' || kind == 'B')) {
        x->at += 2, t->value = take_digits(x, 2, 64);
    } else if (*x->at == '0' && (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D')) {
        const bool wide = kind == 'd' || kind == 'D';
        x->at += 2, t->real = true, t->bits = wide ? 64 : 32;
        t->value = take_digits(x, 16, wide ? 16 : 8);
    } else {
        take_decimal(x);
    }
    while (x->at < x->end && (*x->at == 'U' || *x->at == 'u'))
        x->at++;
    if (t->real || t->number != 0) return;
    t->number = (double)t->value;
}

static void take_string(ptx_lexer *x) {
    x->token.kind = STRING;
    for (x->at++; x->at < x->end && *x->at != '"'; x->at++) {
        if (*x->at == '\\' && x->at + 1 < x->end) x->at++;
        x->line += *x->at == '\n';
    }
    if (x->at < x->end) x->at++;
}

void ptx_lex_next(ptx_lexer *x) {
    skip_space(x);
    x->token = (ptx_token){.kind = END, .text = x->at, .line = x->line};
    if (x->at >= x->end) return;
    const char c = *x->at;
    if (is_letter(c) || (c == '.' && (is_letter(peek(x, 1)) || peek(x, 1) == 'b'))) {
        x->token.kind = WORD;
        take_word(x);
    } else if (is_digit(c)) {
        take_number(x);
    } else if (c == '"') {
        take_string(x);
    } else {
        x->token.kind = PUNCT, x->token.punct = c;
        x->at++;
    }
    x->token.length = (size_t)(x->at - x->token.text);
}
