/* Tokens of PTX text. */
#ifndef SIM_PTX_LEX_H
#define SIM_PTX_LEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind { END, WORD, NUMBER, STRING, PUNCT };
typedef struct {
    uint8_t kind;
    char punct;
    bool real;      /* NUMBER: a decimal floating-point literal, or 0f and 0d */
    uint8_t bits;   /* of 0f and 0d: 32, 64; 0 for others */
    uint64_t value; /* NUMBER: an integer or the bits of 0f and 0d */
    double number;
    const char *text;
    size_t length;
    uint32_t line;
} ptx_token;

typedef struct {
    const char *at, *end;
    uint32_t line;
    ptx_token token; /* the current one */
} ptx_lexer;

void ptx_lex_start(ptx_lexer *x, const char *text, size_t size);
/* Moves on to the next token. Bytes that begin none are tokens of their own, as PUNCT. */
void ptx_lex_next(ptx_lexer *x);
static inline bool ptx_lex_is(const ptx_lexer *lexer, char punct) {
    return lexer->token.kind == PUNCT && lexer->token.punct == punct;
}
#endif
