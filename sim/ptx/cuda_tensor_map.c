/* Encodes tensor maps, which describe tensors to TMA. Checks the rules of cuTensorMapEncodeTiled
 * in the CUDA Driver API reference. */
#include "cuda.h"
#include "tensor_map.h"
#include <string.h>

/* bits_of[t] is the number of bits of an element of type t (CUtensorMapDataType) in global
 * memory. Elements of the last three types have 4 or 6 bits there, and may take more bits in
 * shared memory. */
static const uint8_t bits_of[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
enum { ALIGN8 = 13, ALIGN16 = 14, PACKED6 = 15, SWIZZLE_128 = 3, INTERLEAVE_32 = 2 };

typedef struct {
    int type, interleave, swizzle;
    uint32_t rank;
    const uint64_t *extents, *strides;
    const uint32_t *box, *element_strides;
} request;

static const char *check_strides(const request *r, uint64_t align) {
    for (uint32_t d = 0; d + 1 < r->rank; d++) {
        if (r->strides[d] % align) return "a stride is no multiple of 16 bytes (32 for some types)";
        if (r->strides[d] >= 1ull << 40) return "a stride is 2^40 bytes or more";
    }
    return NULL;
}

static const char *check_box(const request *r) {
    static const uint32_t span[] = {UINT32_MAX, 32, 64, 128, 128, 128, 128};
    const uint32_t bits = bits_of[r->type],
                   unpacked = r->type == ALIGN16 || r->type == PACKED6 ? 8 : bits;
    for (uint32_t d = 0; d < r->rank; d++) {
        if (r->box[d] == 0 || r->box[d] > 256) return "a box's extent is not 1 to 256";
        if (r->extents[d] == 0 || r->extents[d] > 1ull << 32) return "an extent is not 1 to 2^32";
        if (r->element_strides[d] == 0 || r->element_strides[d] > 8)
            return "an element stride is not 1 to 8";
    }
    const uint32_t bytes = r->box[0] * unpacked / 8;
    if (r->interleave == 0 && bytes % 16) return "a box's rows are no multiple of 16 bytes";
    if (r->swizzle > 6) return "there is no such swizzle";
    if (r->interleave == 0 && bytes > span[r->swizzle])
        return "a box's rows are longer than the swizzle";
    return NULL;
}

static const char *check(const request *r, uint64_t at) {
    if (r->type < 0 || r->type > PACKED6) return "there is no such type";
    if (r->rank == 0 || r->rank > MAP_RANK) return "the rank is not 1 to 5";
    const uint64_t align =
        r->type == ALIGN16 || r->type == PACKED6 || r->interleave == INTERLEAVE_32 ? 32 : 16;
    if (at % align) return "the address is not aligned to 16 bytes (32 for some types)";
    const char *wrong = check_strides(r, align);
    return wrong ? wrong : check_box(r);
}

/* NOLINTNEXTLINE(readability-function-size): CUDA's signature */
CU CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *at,
                                   const uint64_t *extents, const uint64_t *strides,
                                   const uint32_t *box, const uint32_t *element_strides,
                                   int interleave, int swizzle, int l2_promotion, int fill) {
    const request r = {type, interleave, swizzle, rank, extents, strides, box, element_strides};
    (void)l2_promotion;
    if (!map || !extents || !box || !element_strides || (rank > 1 && !strides))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "a tensor map: a pointer is NULL");
    const char *wrong = check(&r, (uintptr_t)at);
    if (wrong) return sim_fail(CUDA_ERROR_INVALID_VALUE, "a tensor map: %s", wrong);
    ptx_tensor_map m = {.magic = TENSOR_MAP_MAGIC,
                        .address = (uintptr_t)at,
                        .type = (uint8_t)type,
                        .rank = (uint8_t)rank};
    m.interleave = (uint8_t)interleave, m.swizzle = (uint8_t)swizzle, m.fill = (uint8_t)fill,
    m.bits = bits_of[type];
    for (uint32_t d = 0; d < MAP_RANK; d++) {
        m.last[d] = d < rank ? (uint32_t)(extents[d] - 1) : 0;
        m.box[d] = d < rank ? (uint16_t)box[d] : 1;
        m.element_strides[d] = d < rank ? (uint8_t)element_strides[d] : 1;
        m.strides[d] = d > 0 && d < rank ? strides[d - 1] : 0;
    }
    memset(map, 0, 128);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

CU CUresult cuTensorMapReplaceAddress(void *map, void *at) {
    ptx_tensor_map m;
    if (!map) return sim_fail(CUDA_ERROR_INVALID_VALUE, "map is NULL");
    memcpy(&m, map, sizeof m);
    if (m.magic != TENSOR_MAP_MAGIC || (uintptr_t)at % 16)
        return sim_fail(CUDA_ERROR_INVALID_VALUE,
                        "map was not encoded, or the address is not aligned to 16 bytes");
    m.address = (uintptr_t)at;
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}
