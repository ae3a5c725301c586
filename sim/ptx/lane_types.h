/* Defines macros that access lane l of a register, for each PTX type. LOAD_* reads the lane's
 * value, TYPE_* is the C type of the value, and SAVE_* writes the value. */
#ifndef SIM_PTX_LANE_TYPES_H
#define SIM_PTX_LANE_TYPES_H
#include "lane_math.h"

#define LOAD_none(p) 0
#define LOAD_pred(p) (*(const uint32_t *)p >> l & 1)
#define LOAD_b16(p)  ((const uint32_t *)p)[l]
#define LOAD_b32(p)  ((const uint32_t *)p)[l]
#define LOAD_b64(p)  ((const uint64_t *)p)[l]
#define LOAD_u8(p)   (uint8_t)((const uint32_t *)p)[l]
#define LOAD_s8(p)   (int8_t)((const uint32_t *)p)[l]
#define LOAD_u16(p)  (uint16_t)((const uint32_t *)p)[l]
#define LOAD_s16(p)  (int16_t)((const uint32_t *)p)[l]
#define LOAD_u32(p)  ((const uint32_t *)p)[l]
#define LOAD_s32(p)  ((const int32_t *)p)[l]
#define LOAD_u64(p)  ((const uint64_t *)p)[l]
#define LOAD_s64(p)  ((const int64_t *)p)[l]
#define LOAD_f16(p)  ptx_f16_to_f32(((const uint32_t *)p)[l])
#define LOAD_bf16(p) ptx_bf16_to_f32(((const uint32_t *)p)[l])
#define LOAD_f32(p)  ((const float *)p)[l]
#define LOAD_f64(p)  ((const double *)p)[l]

#define TYPE_none int
#define TYPE_pred uint32_t
#define TYPE_b16  uint32_t
#define TYPE_b32  uint32_t
#define TYPE_b64  uint64_t
#define TYPE_u8   uint8_t
#define TYPE_s8   int8_t
#define TYPE_u16  uint16_t
#define TYPE_s16  int16_t
#define TYPE_u32  uint32_t
#define TYPE_s32  int32_t
#define TYPE_u64  uint64_t
#define TYPE_s64  int64_t
#define TYPE_f16  float
#define TYPE_bf16 float
#define TYPE_f32  float
#define TYPE_f64  double

/* SAVE_pred writes a predicate result as one word per lane. The caller turns the 32 words into a
 * mask of lanes. */
#define SAVE_pred(v) ((uint32_t *)d)[l] = (v)
#define SAVE_b16(v)  ((uint32_t *)d)[l] = (uint16_t)(v)
#define SAVE_b32(v)  ((uint32_t *)d)[l] = (v)
#define SAVE_b64(v)  ((uint64_t *)d)[l] = (v)
#define SAVE_u16(v)  ((uint32_t *)d)[l] = (uint32_t)(uint16_t)(v)
#define SAVE_s16(v)  ((uint32_t *)d)[l] = (uint32_t)(uint16_t)(v)
#define SAVE_u32(v)  ((uint32_t *)d)[l] = (v)
#define SAVE_s32(v)  ((int32_t *)d)[l] = (v)
#define SAVE_u64(v)  ((uint64_t *)d)[l] = (v)
#define SAVE_s64(v)  ((int64_t *)d)[l] = (v)
#define SAVE_f16(v)  ((uint32_t *)d)[l] = ptx_f32_to_f16(v)
#define SAVE_bf16(v) ((uint32_t *)d)[l] = ptx_f32_to_bf16(v)
#define SAVE_f32(v)  ((float *)d)[l] = (v)
#define SAVE_f64(v)  ((double *)d)[l] = (v)

/* Defines a function `name` that computes the expression `value` for all 32 lanes. D is the type of
 * the result. A, B and C are the types of the sources a, b and c, which `value` uses. */
#define LANES_FUNCTION(name, D, A, B, C, value)                                                    \
    static void name(void *restrict d, const void *pa, const void *pb, const void *pc) {           \
        for (int l = 0; l < LANES; l++) {                                                          \
            const TYPE_##A a = LOAD_##A(pa);                                                       \
            const TYPE_##B b = LOAD_##B(pb);                                                       \
            const TYPE_##C c = LOAD_##C(pc);                                                       \
            (void)a, (void)b, (void)c;                                                             \
            SAVE_##D((TYPE_##D)(value));                                                           \
        }                                                                                          \
        (void)pa, (void)pb, (void)pc;                                                              \
    }
#endif
