#include "cuda/host/scaled_operands.h"

#include "cuda/host/scaled_tiles.h"

const char *bsmm_scaled_operands_begin(const bsmm_product *p, bsmm_scaled_operands *s, char *why,
                                       size_t size) {
    const char *reason = bsmm_scaled_refuse(p, &s->kind, why, size);
    if (reason) return reason;
    const bsmm_scaled_format *x = &bsmm_scaled_formats[s->kind];
    for (int i = 0; i < 2; i++) {
        bsmm_tma_rows_begin(bsmm_cuda_side(p, i), x->packed, &s->rows[i]);
        /* The kernel reads scales where the caller stores them only if the number of scales of a
         * row is a multiple of x->scale_tiles. Otherwise an instruction at the end of K could read
         * padding as scales. Padding may hold NaN. All results of the row would then be NaN and
         * would be recomputed in double. */
        if (bsmm_scaled_scales_begin(bsmm_cuda_side(p, i), x->scale_tiles, &s->scales[i]) !=
            BSMM_OK)
            return bsmm_scaled_refuse_scales(p, i, why, size);
        if (s->scales[i].map.count / BSMM_SCALED_SCALE_BOX > INT32_MAX)
            return bsmm_reason(why, size, "%c has %llu scales; TMA addresses fewer than %llu",
                               "AB"[i], (unsigned long long)s -> scales[i].map.count,
                               (INT32_MAX + 1ull) * BSMM_SCALED_SCALE_BOX);
    }
    return NULL;
}

uint64_t bsmm_scaled_operands_bytes(const bsmm_scaled_operands *s) {
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        bytes += s->rows[i].bytes + s->scales[i].bytes;
    return bytes;
}

/* Makes the tensor map by which TMA loads an operand's scales. They have the layout nv_128x4, which
 * stores the scales of 128 rows by 4 scale blocks in 512 consecutive bytes (a scale tile). The map
 * describes the buffer as a matrix with rows of 256 bytes, because 256 elements are the most that
 * TMA copies along one dimension. A scale tile is two such rows. */
static void map_scales(const bsmm_product *p, bsmm_scaled_operands *s, int side) {
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
            .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            .rank = 2,
            .extents = {BSMM_SCALED_SCALE_BOX, s->scales[side].map.count / BSMM_SCALED_SCALE_BOX},
            .strides = {BSMM_SCALED_SCALE_BOX},
            .box = {BSMM_SCALED_SCALE_BOX, bsmm_scaled_formats[s->kind].scale_tiles *
                                               BSMM_SCALED_SCALE_TILE / BSMM_SCALED_SCALE_BOX},
        },
        &s->scale_maps[side]);
}

bsmm_status bsmm_scaled_operands_make(const bsmm_product *p, uint32_t a_rows, uint32_t b_rows,
                                      bsmm_scaled_operands *s) {
    for (int i = 0; i < 2; i++) {
        BSMM_TRY(
            bsmm_tma_rows_make(p->device, bsmm_cuda_side(p, i), i ? b_rows : a_rows, &s->rows[i]));
        map_scales(p, s, i);
    }
    return bsmm_scaled_scales_make(p, s->scales, &s->copies);
}

bsmm_status bsmm_scaled_operands_bind(const bsmm_product *p, const bsmm_scaled_operands *s,
                                      uint8_t *room, const bsmm_scaled_slot slots[2]) {
    const uint8_t *scales[2];
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        bsmm_gpu_operand_bind(o, slots[i].side);
        BSMM_TRY(bsmm_tma_rows_bind(p, o, &s->rows[i], &room, slots[i].elements));
    }
    BSMM_TRY(bsmm_scaled_scales_bind(p, s->scales, &s->copies, room, scales));
    for (int i = 0; i < 2; i++)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->scale_maps[i], scales[i], slots[i].scales));
    return BSMM_OK;
}

/* Gives each element type the number that it has in the instruction descriptor of the kind mxf8f6f4
 * (PTX ISA, "Instruction descriptor"). The instructions of other kinds have only one element type
 * and need no number. */
static const struct {
    uint32_t elem, number;
} types[] = {{BSMM_ELEM_E4M3, 0},
             {BSMM_ELEM_E5M2, 1},
             {BSMM_ELEM_E2M3, 3},
             {BSMM_ELEM_E3M2, 4},
             {BSMM_ELEM_E2M1, 5}};
enum { PACKED_E2M1 = 1 };

static uint32_t type_of(bsmm_scaled_kind kind, const bsmm_operand *o) {
    if (bsmm_scaled_formats[kind].packed) return PACKED_E2M1;
    size_t i = 0;
    while (types[i].elem != o->m.format.elem)
        i++;
    return types[i].number;
}

uint32_t bsmm_scaled_form_of(const bsmm_scaled_operands *s, const bsmm_operand *first,
                             const bsmm_operand *second, uint32_t rows, uint32_t cols) {
    return type_of(s->kind, first) << 7 | type_of(s->kind, second) << 10 | cols / 8 << 17 |
           (bsmm_scaled_formats[s->kind].scale == BSMM_SCALE_E8M0 ? 1u << 23 : 0) | rows / 16 << 24;
}

static bool has_bytes(const bsmm_operand *o) {
    return bsmm_elem_row(o->m.format.elem)->bits == 8;
}

void bsmm_scaled_params_set(const bsmm_product *p, const bsmm_scaled_operands *s, uint32_t a_rows,
                            uint32_t b_rows, bsmm_scaled_params *params) {
    const bsmm_scaled_format *x = &bsmm_scaled_formats[s->kind];
    const int64_t scales = bsmm_ceil_div(p->a.m.cols, x->block);
    params->epilogue = bsmm_gpu_epilogue_of(p);
    params->store = bsmm_scaled_store_of(p);
    params->k = (uint32_t)p->a.m.cols;
    params->k_blocks = (uint32_t)bsmm_ceil_div(scales, (int64_t)4 * x->scale_tiles);
    params->scale_tiles = (uint32_t)bsmm_ceil_div(scales, 4);
    params->spreads = !x->packed && !(has_bytes(&p->a) && has_bytes(&p->b));
    params->element_bytes = a_rows * bsmm_tma_rows_bytes(&p->a, &s->rows[0]) +
                            b_rows * bsmm_tma_rows_bytes(&p->b, &s->rows[1]);
}

double bsmm_scaled_bound(const bsmm_product *p) {
    return 2.1 * ((double)p->a.m.cols + 64) * 0x1p-24;
}
