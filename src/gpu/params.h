/* From a product to what kernels are given of it. */
#ifndef BSMM_GPU_PARAMS_H
#define BSMM_GPU_PARAMS_H

#include "core/kernel.h"
#include "gpu/epilogue.h"
#include "gpu/pack.h"

bsmm_gpu_operand bsmm_gpu_operand_of(const bsmm_operand *o);

/* Sets the memory of what was made of the same operand when it had none. */
void bsmm_gpu_operand_bind(const bsmm_operand *o, bsmm_gpu_operand *to);

/* D is unscaled. */
bsmm_gpu_epilogue bsmm_gpu_epilogue_of(const bsmm_product *p);
void bsmm_gpu_epilogue_bind(const bsmm_product *p, bsmm_gpu_epilogue *e);

/* Whether all extents fit the 32-bit indices of kernels. */
bool bsmm_gpu_is_small(const bsmm_product *p);

/* ---- formats and layouts ---- */

/* Whether the device code was written for an element format; kernels and conversions refuse others.
 */
bool bsmm_gpu_knows_elem(uint32_t elem);

/* An element format of 8 bits and fewer. */
bsmm_narrow_codec bsmm_narrow_codec_of(uint32_t elem);

/* The same two at a time, to bf16 or f16. */
bsmm_pair_codec bsmm_pair_codec_of(uint32_t elem, bool to_bf16);

/* What the index on axis 0 (rows) or 1 (columns) adds to an offset of the map, counted in units of
 * which `block` make a block of the map. */
bsmm_axis_map bsmm_axis_map_of(const bsmm_scale_map *map, uint32_t axis, uint32_t block);

/* Whether each four scale codes of a byte, from a multiple of 4 on, are the bytes of an aligned
 * word; digit `number` of `across` is the first of a scale's column. */
bool bsmm_axis_fours(const void *scales, const bsmm_axis_map *down, const bsmm_axis_map *across,
                     uint32_t number);

/* Words of four such codes, where both maps begin with a block's digit along K and none down: row
 * major, or in tiles of 128 x 4 with the words of rows 0, 32, 64 and 96 side by side or apart. */
bool bsmm_words_of(const bsmm_axis_map *down, const bsmm_axis_map *across, bsmm_pack_words *words);

#endif
