/* Declares the vocabulary of a byte-level BPE tokenizer. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "llm.h"

/* Describes two adjacent tokens that may be merged into one token. */
typedef struct merge {
    /* Holds the left token in the upper 32 bits and the right token in the lower 32 bits. */
    uint64_t pair;
    /* `rank` is the position in the file's list of merges. `id` is the token that replaces the
     * pair. */
    int32_t rank, id;
} merge;

struct llm_tokenizer {
    int64_t count;
    /* The tokens as the file spells them. `spellings` contains their bytes. */
    bsmm_value *names;
    char *spellings;
    size_t slots;  /* The number of slots of each of the two hash tables. It is a power of two. */
    int32_t *ids;  /* The hash table of the tokens. A free slot contains -1. */
    merge *merges; /* The hash table of the merges. The id of a free slot is -1. */
    int32_t byte_ids[256]; /* The token of each byte, or -1 if there is none. */
    int32_t *special;      /* Lists the special tokens, whose names are not split. */
    int64_t special_count;
    /* `unknown` is the token for bytes without a token. `end` is the token that ends an answer.
     * Either is -1 if the vocabulary lacks it. */
    int32_t unknown, end;
};

/* Returns the merge of two tokens, or NULL if there is none. */
const merge *vocabulary_merge(const llm_tokenizer *t, int32_t left, int32_t right);
/* Returns the byte that a code point of a token's name stands for, or -1. */
int32_t vocabulary_byte(uint32_t point);

#endif
