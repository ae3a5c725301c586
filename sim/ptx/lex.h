/* Declares the lexer, which splits PTX text into tokens. */
#ifndef SIM_PTX_LEX_H
#define SIM_PTX_LEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind { END, WORD, NUMBER, STRING, PUNCT };
typedef struct {
    uint8_t kind;
    char punct;
    /* `real` is true if a NUMBER token is a floating-point literal, in decimal or as hexadecimal
     * bits (0f..., 0d...). */
    bool real;
    uint8_t bits;   /* `bits` is 32 for a literal 0f..., 64 for a literal 0d..., else 0. */
    uint64_t value; /* `value` is the integer, or the bits of a literal 0f... or 0d.... */
    double number;
    const char *text;
    size_t length;
    uint32_t line;
} ptx_token;

typedef struct {
    const char *at, *end;
    uint32_t line;
    ptx_token token; /* `token` is the token that the parser examines now. */
} ptx_lexer;

void ptx_lex_start(ptx_lexer *x, const char *text, size_t size);
/* Advances to the next token. A byte that begins no other token becomes a PUNCT token. */
void ptx_lex_next(ptx_lexer *x);
static inline bool ptx_lex_is(const ptx_lexer *lexer, char punct) {
    return lexer->token.kind == PUNCT && lexer->token.punct == punct;
}
#endif
