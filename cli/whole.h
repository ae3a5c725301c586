/* Names the formats that have one f32 scale for a row or for a whole weight. The size of their
 * blocks depends on the weight, so the library has no preset for them. */
#ifndef CLI_WHOLE_H
#define CLI_WHOLE_H

#include "command.h"

bool cli_same_format(bsmm_format a, bsmm_format b);
/* A table has the names of the formats with one scale for a whole row or a whole weight. Returns
 * entry `index` of this table, or NULL after the last entry. */
const char *cli_whole_at(uint32_t index);
/* Reads the name of a preset, of an element format, or of a format with one scale for a row or a
 * weight. A block size that depends on the weight is set to 0. On failure the function returns
 * false, and cli_parse_error gives the reason. */
bool cli_parse_weight_format(const char *text, bsmm_format *format);
/* Tells whether a block size of the format depends on the weight. */
bool cli_is_whole(bsmm_format format);
/* Returns `format` after filling in the block sizes that depend on the size of the weight. */
bsmm_format cli_whole_format(bsmm_format format, int64_t rows, int64_t cols);
/* Returns the name of the format of a rows x cols weight. The format may have one scale for each
 * row, or one scale for the whole weight. Returns "custom" if the format has no name. */
const char *cli_whole_name(bsmm_format format, int64_t rows, int64_t cols);
/* Returns the name of the format in which a file stores a weight. For a weight of this size, two
 * formats may have the same blocks: for example, a weight of one row has a single block if it has
 * one scale per row, and also if it has one scale for the whole weight. In that case the number of
 * dimensions of the scale tensor decides which name is right. */
const char *cli_stored_name(const bsmm_file *file, uint64_t index, const bsmm_weight *weight);
/* Returns the name by which a checkpoint family knows the format of a matrix. The result is `name`,
 * with one exception: if the matrix is a single block of 128 x 128 elements and the family has
 * fp8_block128, the result is "fp8_block128". */
const char *cli_written_name(const char *family, const char *name, bsmm_format format);

#endif
