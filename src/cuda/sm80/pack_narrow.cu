/* Defines kernels that pack elements of 4, 6 and 8 bits to bf16 (gpu/pack.h explains packing).
 * Memory bandwidth limits their speed: they read and write 20 to 24 bytes for 8 elements. */
#include "cuda/sm80/pack_bf16.h"

#define NAME    pack_rows_4_bf16
#define BITS    4
#define OUT     16
#define BY_ROWS 1
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_rows_6_bf16
#define BITS    6
#define OUT     16
#define BY_ROWS 1
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_rows_8_bf16
#define BITS    8
#define OUT     16
#define BY_ROWS 1
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_4_bf16
#define BITS    4
#define OUT     16
#define BY_ROWS 0
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_4_bf16_e8m0
#define BITS    4
#define OUT     16
#define BY_ROWS 0
#define E8M0    1
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_6_bf16
#define BITS    6
#define OUT     16
#define BY_ROWS 0
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_6_bf16_e8m0
#define BITS    6
#define OUT     16
#define BY_ROWS 0
#define E8M0    1
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_8_bf16
#define BITS    8
#define OUT     16
#define BY_ROWS 0
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_8_bf16_e8m0
#define BITS    8
#define OUT     16
#define BY_ROWS 0
#define E8M0    1
#include "cuda/sm80/pack_narrow_body.h"

#define NAME  pack_rows_4_bf16_e8m0
#define BITS  4
#define SCALE 1
#define HALF  0
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_6_bf16_e8m0
#define BITS  6
#define SCALE 1
#define HALF  0
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_8_bf16_e8m0
#define BITS  8
#define SCALE 1
#define HALF  0
#include "cuda/sm80/pack_bf16_body.h"

/* This kernel is for fp32 scales and for operands without scales. */
#define NAME  pack_rows_8_bf16_f32
#define BITS  8
#define SCALE 3
#define HALF  0
#include "cuda/sm80/pack_bf16_body.h"

#define NAME  pack_rows_4_bf16_e4m3
#define BITS  4
#define SCALE 2
#define HALF  0
#include "cuda/sm80/pack_bf16_body.h"
