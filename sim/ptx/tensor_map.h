/* Declares the simulator's own layout of the 128 bytes of a CUtensorMap. NVIDIA's layout is not
 * public. */
#ifndef SIM_PTX_TENSOR_MAP_H
#define SIM_PTX_TENSOR_MAP_H
#include <stdint.h>

#define TENSOR_MAP_MAGIC 0x70616d2d6d6d7362ull
enum { MAP_RANK = 5 };
typedef struct {
    uint64_t magic, address;
    /* `strides` holds the distances in bytes of neighboring elements in each dimension. strides[0]
     * is the size of an element. */
    uint64_t strides[MAP_RANK];
    uint32_t last[MAP_RANK]; /* `last` holds the largest index in each dimension. */
    uint16_t box[MAP_RANK];
    uint8_t element_strides[MAP_RANK];
    /* `bits` is the number of bits of an element in global memory. */
    uint8_t type, rank, interleave, swizzle, fill, bits;
} ptx_tensor_map;
_Static_assert(sizeof(ptx_tensor_map) <= 128, "a CUtensorMap has 128 bytes");
#endif
