/* Fills the parameter structs of GPU kernels from a product, which is the validated description of
 * a GEMM. */
#ifndef BSMM_GPU_PARAMS_H
#define BSMM_GPU_PARAMS_H

#include "core/kernel.h"
#include "gpu/epilogue.h"
#include "gpu/pack.h"

bsmm_gpu_operand bsmm_gpu_operand_of(const bsmm_operand *o);

/* Sets the pointers in *to to the memory of the operand `o`. bsmm_gpu_operand_of has made *to when
 * the plan was made, and the memory of an operand is known only when the plan runs. */
void bsmm_gpu_operand_bind(const bsmm_operand *o, bsmm_gpu_operand *to);

/* Returns the parameters of the epilogue (gpu/epilogue.h) for a product whose D has no block
 * scales. */
bsmm_gpu_epilogue bsmm_gpu_epilogue_of(const bsmm_product *p);
void bsmm_gpu_epilogue_bind(const bsmm_product *p, bsmm_gpu_epilogue *e);

/* Returns NULL if the device code supports the element formats of A, B and D. Otherwise writes the
 * reason to `why` and returns it. */
const char *bsmm_gpu_refuse_elements(const bsmm_product *p, char *why, size_t size);

/* Returns true if the device code supports an element format. Kernels and conversions refuse all
 * other formats. */
bool bsmm_gpu_knows_elem(uint32_t elem);

/* Returns the constants that encode and decode an element format, which must have at most 8
 * bits. */
bsmm_narrow_codec bsmm_narrow_codec_of(uint32_t elem);

/* Returns the constants that decode two elements at a time, to bf16 or f16. The element format must
 * have at most 8 bits. */
bsmm_pair_codec bsmm_pair_codec_of(uint32_t elem, bool to_bf16);

/* Returns the map from an index on axis 0 (rows) or axis 1 (columns) to the part of a scale's
 * offset that depends on this axis. The index counts elements. `block` elements along the axis
 * share one scale. */
bsmm_axis_map bsmm_axis_map_of(const bsmm_scale_map *map, uint32_t axis, uint32_t block);

/* Returns true if the offsets of indices 0, step, 2 * step, ... (count - 1) * step are 0, d, 2 * d,
 * ... for one distance d. The map must come from bsmm_axis_map_of. The time does not grow with
 * `count` if `step` is the size of a scale block or of a tile of the layout. */
bool bsmm_axis_is_linear(const bsmm_axis_map *map, int64_t step, int64_t count);

/* Returns true if four consecutive scale codes of one byte, beginning at a multiple of 4, always
 * form one aligned uint32. `down` is the map from rows to offsets, and `across` is the map from
 * columns to offsets. A map splits its index into mixed-radix digits. `number` is the index of the
 * first digit of `across` that counts scales. The digits before it count elements of a block. */
bool bsmm_axis_fours(const void *scales, const bsmm_axis_map *down, const bsmm_axis_map *across,
                     uint32_t number);

/* Four scale codes of a row that are consecutive along K may form an aligned uint32 word. Stores in
 * *words how to compute the addresses of these words. `down` maps a row to its part of a scale's
 * offset, and `across` maps a column to its part. Each scale block has one row and several columns.
 * Returns false if the layout has no such words, i.e. unless it is row-major or has tiles of 128
 * rows by 4 scales. */
bool bsmm_words_of(const bsmm_axis_map *down, const bsmm_axis_map *across, bsmm_pack_words *words);

#endif
