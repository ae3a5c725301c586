/* Defines kernels that pack row-major elements of 4, 6 and 8 bits to f16 (gpu/pack.h explains
 * packing). Each reads the elements and scales once and writes the f16 numbers once. Other operands
 * are packed to bf16 first, and pack_half.cu then converts them to f16. */
#include "cuda/sm80/pack_bf16.h"

#define NAME  pack_rows_4_f16_e8m0
#define BITS  4
#define SCALE 1
#define HALF  1
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_6_f16_e8m0
#define BITS  6
#define SCALE 1
#define HALF  1
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_8_f16_e8m0
#define BITS  8
#define SCALE 1
#define HALF  1
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_4_f16_e4m3
#define BITS  4
#define SCALE 2
#define HALF  1
#include "cuda/sm80/pack_bf16_body.h"

/* This kernel is for fp32 scales and for operands without scales. */
#define NAME  pack_rows_8_f16
#define BITS  8
#define SCALE 3
#define HALF  1
#include "cuda/sm80/pack_bf16_body.h"
