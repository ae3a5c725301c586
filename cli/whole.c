#include "whole.h"
#include "common.h"
#include "words.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_COLUMNS = 2 }; /* LEAST_COLUMNS is the smallest number of columns of a block. */

static const struct {
    const char *name;
    bsmm_format format;
} formats[] = {
    {"fp8_channel", {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 0}},
    {"fp8_tensor", {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 0, 0}},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

bool cli_same_format(bsmm_format a, bsmm_format b) {
    return a.elem == b.elem && a.scale == b.scale && a.block_rows == b.block_rows &&
           a.block_cols == b.block_cols;
}

static uint32_t size_of(uint32_t size, int64_t extent, uint32_t least) {
    if (size) return size;
    return extent < least ? least : extent > UINT32_MAX ? UINT32_MAX : (uint32_t)extent;
}

const char *cli_whole_at(uint32_t index) {
    return index < FORMATS ? formats[index].name : NULL;
}

static bool refuse(const char *text) {
    char rule[400], *words = cli_words_rule("TARGET", text);
    snprintf(rule, sizeof rule, "must be one of %s", words);
    free(words);
    return cli_parse_refuse(text, rule);
}

bool cli_parse_weight_format(const char *text, bsmm_format *format) {
    for (uint32_t i = 0; i < FORMATS; i++)
        if (!strcmp(formats[i].name, text)) {
            *format = formats[i].format;
            return true;
        }
    return cli_parse_format(text, format) || refuse(text);
}

bool cli_is_whole(bsmm_format format) {
    return format.scale != BSMM_SCALE_NONE && (!format.block_rows || !format.block_cols);
}

bsmm_format cli_whole_format(bsmm_format format, int64_t rows, int64_t cols) {
    if (!cli_is_whole(format)) return format;
    format.block_rows = size_of(format.block_rows, rows, 1);
    format.block_cols = size_of(format.block_cols, cols, LEAST_COLUMNS);
    return format;
}

const char *cli_whole_name(bsmm_format format, int64_t rows, int64_t cols) {
    const char *name = bsmm_format_name(format);
    for (uint32_t i = 0; i < FORMATS && !strcmp(name, "custom"); i++)
        if (cli_same_format(format, formats[i].format) ||
            cli_same_format(format, cli_whole_format(formats[i].format, rows, cols)))
            name = formats[i].name;
    return name;
}

const char *cli_stored_name(const bsmm_file *file, uint64_t index, const bsmm_weight *weight) {
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    bsmm_tensor scale = BSMM_INIT(bsmm_tensor);
    const bool fp32 = weight->format.scale == BSMM_SCALE_F32 && strcmp(weight->family, "bsmm") != 0;
    if (!fp32 || bsmm_weight_tensors(file, index, tensors) ||
        bsmm_file_tensor_at(file, tensors[1], &scale))
        return bsmm_format_name(weight->format);
    if (scale.ndim < 2) return "fp8_tensor";
    return weight->format.block_rows == 1 ? "fp8_channel" : bsmm_format_name(weight->format);
}

const char *cli_written_name(const char *family, const char *name, bsmm_format format) {
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    const char *preset = bsmm_format_name(format);
    for (uint32_t i = 0; !bsmm_family_at(i, &info); i++)
        if (!strcmp(info.name, family) && cli_has_word(info.written, preset)) return preset;
    return name;
}
