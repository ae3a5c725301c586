/* Reads typed metadata values in the form in which GGUF stores them. Source: ggml's docs/gguf.md,
 * gguf_metadata_value_type. */
#include "io/io.h"

#include <string.h>

static const struct {
    /* `bytes` is the size of a value in bytes. 0 means that the size varies. */
    uint32_t type, bytes;
} rows[] = {
    {BSMM_VALUE_UNSIGNED, 1},
    {BSMM_VALUE_INTEGER, 1},
    {BSMM_VALUE_UNSIGNED, 2},
    {BSMM_VALUE_INTEGER, 2},
    {BSMM_VALUE_UNSIGNED, 4},
    {BSMM_VALUE_INTEGER, 4},
    {BSMM_VALUE_FLOAT, 4},
    {BSMM_VALUE_BOOL, 1},
    [BSMM_GGUF_STRING] = {BSMM_VALUE_STRING, 0},
    [BSMM_GGUF_ARRAY] = {BSMM_VALUE_ARRAY, 0},
    {BSMM_VALUE_UNSIGNED, 8},
    {BSMM_VALUE_INTEGER, 8},
    {BSMM_VALUE_FLOAT, 8},
};

uint32_t bsmm_gguf_number_bytes(uint32_t type) {
    return type < BSMM_COUNT(rows) ? rows[type].bytes : 0;
}

static uint64_t load(const uint8_t *at, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static int64_t sign_extend(uint64_t bits, uint32_t bytes) {
    if (bytes == 0) return 0;
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return (int64_t)((bits ^ sign) - sign);
}

static double real_of(uint64_t bits, uint32_t bytes) {
    double wide;
    float narrow;
    uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return bytes == sizeof narrow ? (double)narrow : wide;
}

static bsmm_value number_at(const uint8_t *at, uint32_t stored_type) {
    const uint32_t type = rows[stored_type].type, bytes = rows[stored_type].bytes;
    const uint64_t bits = load(at, bytes);
    bsmm_value value = {.type = type, .bits = 8 * bytes, .count = 1};
    if (type == BSMM_VALUE_INTEGER)
        value.integer = sign_extend(bits, bytes);
    else if (type == BSMM_VALUE_FLOAT)
        value.real = real_of(bits, bytes);
    else
        value.natural = type == BSMM_VALUE_BOOL ? bits != 0 : bits;
    return value;
}

uint64_t bsmm_gguf_whole_number(const bsmm_stored_value *stored, uint64_t otherwise) {
    if (!bsmm_gguf_number_bytes(stored->type)) return otherwise;
    const bsmm_value value = number_at(stored->at, stored->type);
    if (value.type == BSMM_VALUE_UNSIGNED) return value.natural;
    bool whole = value.type == BSMM_VALUE_INTEGER && value.integer >= 0;
    return whole ? (uint64_t)value.integer : otherwise;
}

static bsmm_value string_at(const uint8_t *at, uint64_t length) {
    return (bsmm_value){.type = BSMM_VALUE_STRING, .count = length, .text = (const char *)at};
}

static bsmm_value value_of(const bsmm_stored_value *s) {
    if (s->type == BSMM_GGUF_STRING) return string_at(s->at, s->count);
    if (s->type != BSMM_GGUF_ARRAY) return number_at(s->at, s->type);
    return (bsmm_value){.type = BSMM_VALUE_ARRAY,
                        .item_type = rows[s->item_type].type,
                        .bits = 8 * rows[s->item_type].bytes,
                        .count = s->count};
}

/* Fails with the reason why bsmm_file_pair found no value: an argument is NULL, or the file has no
 * such key. */
static bsmm_status fail_absent(const bsmm_file *file, const char *key) {
    if (!file || !key)
        return bsmm_fail(BSMM_E_INVALID, "file, key: one is NULL; both must be given");
    return bsmm_fail(BSMM_E_NOT_FOUND, "key: value is \"%.200s\"; the file has no such metadata",
                     key);
}

bsmm_status bsmm_file_value(const bsmm_file *file, const char *key, bsmm_value *value) {
    const bsmm_pair *pair = bsmm_file_pair(file, key);
    if (!pair) return fail_absent(file, key);
    const bsmm_value found = value_of(&pair->stored);
    return bsmm_give_struct(value, &found, sizeof found, "value");
}

/* Reads a string item of an array and returns the address after it. The length of the string
 * precedes its bytes. The parser has already checked that the length and the bytes lie inside the
 * file. */
static const uint8_t *skip_string(const uint8_t *at, bsmm_value *value) {
    uint64_t length = load(at, 8);
    *value = string_at(at + 8, length);
    return at + 8 + length;
}

static bsmm_status give_item(const bsmm_value *item, uint64_t index, bsmm_value *values,
                             uint32_t stride) {
    bsmm_value *to = (bsmm_value *)(void *)((uint8_t *)values + index * stride);
    to->struct_size = stride;
    return bsmm_give_struct(to, item, sizeof *item, "values");
}

static bsmm_status give_strings(const bsmm_stored_value *s, uint64_t first, uint64_t count,
                                bsmm_value *values, uint32_t stride) {
    bsmm_value item;
    const uint8_t *at = s->at;
    for (uint64_t i = 0; i < first; i++)
        at = skip_string(at, &item);
    for (uint64_t i = 0; i < count; i++) {
        at = skip_string(at, &item);
        BSMM_TRY(give_item(&item, i, values, stride));
    }
    return BSMM_OK;
}

static bsmm_status give_numbers(const bsmm_stored_value *s, uint64_t first, uint64_t count,
                                bsmm_value *values, uint32_t stride) {
    const uint32_t bytes = rows[s->item_type].bytes;
    for (uint64_t i = 0; i < count; i++) {
        const bsmm_value item = number_at(s->at + (first + i) * bytes, s->item_type);
        BSMM_TRY(give_item(&item, i, values, stride));
    }
    return BSMM_OK;
}

bsmm_status bsmm_file_value_items(const bsmm_file *file, const char *key, uint64_t first,
                                  uint64_t count, bsmm_value *values) {
    const bsmm_pair *pair = bsmm_file_pair(file, key);
    if (!pair) return fail_absent(file, key);
    const bsmm_stored_value *s = &pair->stored;
    if (s->type != BSMM_GGUF_ARRAY)
        return bsmm_fail(BSMM_E_INVALID, "key: value is \"%.200s\"; its value is no array", key);
    if (first > s->count || count > s->count - first)
        return bsmm_fail(
            BSMM_E_NOT_FOUND, "first + count: value is %llu + %llu; the array has %llu items",
            (unsigned long long)first, (unsigned long long)count, (unsigned long long)s->count);
    if (count == 0) return BSMM_OK;
    if (!values) return bsmm_fail(BSMM_E_INVALID, "values: value is NULL; must be given");
    return (s->item_type == BSMM_GGUF_STRING ? give_strings : give_numbers)(s, first, count, values,
                                                                            values->struct_size);
}
