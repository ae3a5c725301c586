#include "fit.h"
#include "common.h"
#include "files.h"
#include "whole.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the description of a small matrix of a format. Its size is a whole number of blocks. */
static bsmm_matrix blocks_of(bsmm_format format) {
    enum { BLOCKS = 64 };
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format = format;
    matrix.rows = format.block_rows ? format.block_rows : 1;
    matrix.cols = (int64_t)BLOCKS * (format.block_cols ? format.block_cols : 1);
    matrix.format = cli_whole_format(format, matrix.rows, matrix.cols);
    return matrix;
}

const char *cli_recipe_refusal(const char *recipe, bsmm_format format, uint32_t global_kind) {
    bsmm_matrix target = blocks_of(format), source = target;
    float global = 1;
    source.format = (bsmm_format){.elem = BSMM_ELEM_F32};
    target.global_kind = global_kind;
    target.global_scale = &global;
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &source;
    desc.dst = &target;
    desc.recipe = recipe;
    void *source_memory = cli_matrix_allocate(&source);
    void *target_memory = cli_matrix_allocate(&target);
    bool writes = source_memory && target_memory && !bsmm_quantize(&desc, NULL);
    free(source_memory);
    free(target_memory);
    return writes ? NULL : cli_reason_without("recipe");
}

/* Adds a small matrix to a writer, which reports whether the checkpoint family can store it. The
 * writer is then aborted, so that it creates no file. */
const char *cli_family_refusal(const char *family, const bsmm_matrix *matrix, const char *out) {
    bsmm_writer *writer;
    bsmm_matrix blocks = blocks_of(matrix->format);
    blocks.order = matrix->order;
    blocks.scale_layout = matrix->scale_layout;
    blocks.scale_tile_rows = matrix->scale_tile_rows;
    blocks.scale_tile_cols = matrix->scale_tile_cols;
    blocks.global_kind = matrix->global_kind;
    if (bsmm_writer_create("nothing", cli_kind_of(out), &writer)) return NULL;
    bool holds = !bsmm_writer_add_weight(writer, family, "nothing", &blocks, 1, NULL);
    bsmm_writer_abort(writer);
    return holds ? NULL : cli_reason_without("family");
}

bool cli_is_family(const char *name) {
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    for (uint32_t i = 0; !bsmm_family_at(i, &info); i++)
        if (!strcmp(info.name, name)) return true;
    return false;
}

char *cli_families_for(const bsmm_matrix *matrix, const char *out) {
    char *text = NULL;
    size_t size = 0;
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    FILE *stream = open_memstream(&text, &size);
    for (uint32_t i = 0; stream && !bsmm_family_at(i, &info); i++)
        if (!cli_family_refusal(info.name, matrix, out))
            fprintf(stream, "%s%s", ftell(stream) ? ", " : "", info.name);
    if (!stream || fclose(stream) || !text) exit(cli_fail("no memory for a message"));
    return text;
}
