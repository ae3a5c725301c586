/* The vocabulary of a byte-level BPE tokenizer. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "llm.h"

/* Two neighbouring tokens that become one. */
typedef struct merge {
    uint64_t pair;    /* left token in the upper 32 bits, right token in the lower */
    int32_t rank, id; /* place in the file's list of merges; the token that replaces the pair */
} merge;

struct llm_tokenizer {
    int64_t count;
    bsmm_value *names; /* the tokens as the file spells them; their bytes are in `spellings` */
    char *spellings;
    size_t slots;          /* slots of each of the two hash tables; a power of two */
    int32_t *ids;          /* hash table of the tokens; -1: a free slot */
    merge *merges;         /* hash table of the merges; id is -1 in a free slot */
    int32_t byte_ids[256]; /* token of each byte; -1 if there is none */
    int32_t *special;      /* tokens whose names are not split */
    int64_t special_count;
    int32_t unknown, end; /* token of bytes without a token; token that ends an answer; or -1 */
};

/* Returns the merge of two tokens, or NULL if there is none. */
const merge *vocabulary_merge(const llm_tokenizer *t, int32_t left, int32_t right);
/* Returns the byte that a code point of a token's name stands for, or -1. */
int32_t vocabulary_byte(uint32_t point);

#endif
