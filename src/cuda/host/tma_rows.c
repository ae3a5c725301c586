#include "cuda/host/tma_rows.h"

#include <string.h>

static int64_t bits_of(const bsmm_operand *o) {
    return bsmm_elem_row(o->m.format.elem)->bits;
}

/* Returns true if TMA can read the operand's elements where the caller stores them. The distance
 * between rows must be a multiple of 16 bytes. If TMA spreads elements of 4 or 6 bits to one byte
 * each (`spread`), the distance must be a multiple of 32 bytes, and the number of elements in a row
 * a multiple of 128. A row must end at the end of a byte, because TMA would read the remaining bits
 * of the byte as elements. */
static bool is_readable(const bsmm_operand *o, bool spread) {
    const int64_t pitch = o->m.ld * bits_of(o) / 8;
    return spread ? pitch % 32 == 0 && o->m.cols % 128 == 0
                  : pitch % 16 == 0 && o->m.cols * bits_of(o) % 8 == 0;
}

/* Returns the distance between rows, in bytes, in a copy of the elements that TMA can read. */
static int64_t padded_pitch(const bsmm_operand *o, bool spread) {
    return spread ? bsmm_round_up(o->m.cols, 128) * bits_of(o) / 8
                  : bsmm_round_up(bsmm_ceil_div(o->m.cols * bits_of(o), 8), 16);
}

void bsmm_tma_rows_begin(const bsmm_operand *o, bool packed, bsmm_tma_rows *s) {
    s->spread = !packed && bits_of(o) < 8;
    s->stored = is_readable(o, s->spread);
    s->pitch = (uint64_t)(s->stored ? o->m.ld * bits_of(o) / 8 : padded_pitch(o, s->spread));
    s->bytes = s->stored ? 0 : (uint64_t)bsmm_round_up(o->m.rows * (int64_t)s->pitch, 256);
}

/* TMA counts the bytes of 4-bit and 6-bit elements as they are in global memory, before it spreads
 * each element to one byte. */
uint32_t bsmm_tma_rows_bytes(const bsmm_operand *o, const bsmm_tma_rows *s) {
    return s->spread ? BSMM_SCALED_ROW_BYTES * (uint32_t)bits_of(o) / 8 : BSMM_SCALED_ROW_BYTES;
}

static int map_type(const bsmm_operand *o, bool spread) {
    if (!spread) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    return bits_of(o) == 4 ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
                           : CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static void map_rows(const bsmm_cuda_device *device, const bsmm_operand *o, uint32_t tile_rows,
                     bsmm_tma_rows *s) {
    const int64_t cols =
        s->spread ? bsmm_round_up(o->m.cols, 128) : bsmm_ceil_div(o->m.cols * bits_of(o), 8);
    bsmm_cuda_ready_map_make(device,
                             &(bsmm_cuda_tensor_desc){
                                 .type = map_type(o, s->spread),
                                 .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                                 .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 .rank = 2,
                                 .extents = {(uint64_t)cols, (uint64_t)o->m.rows},
                                 .strides = {s->pitch},
                                 .box = {BSMM_SCALED_ROW_BYTES, BSMM_SCALED_BOX_ROWS(tile_rows)},
                             },
                             &s->map);
}

bsmm_status bsmm_tma_rows_make(const bsmm_cuda_device *device, const bsmm_operand *o,
                               uint32_t tile_rows, bsmm_tma_rows *s) {
    static const bsmm_cuda_function pad_rows = {"sm100f/pad_rows", "pad_rows", 0};
    enum { THREADS = 256, BYTES = 16 * THREADS, MOST_DOWN = 65535 };
    map_rows(device, o, tile_rows, s);
    if (s->stored) return BSMM_OK;
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &pad_rows,
                                    .grid = {(uint32_t)bsmm_ceil_div((int64_t)s->pitch, BYTES),
                                             (uint32_t)bsmm_min_i64(o->m.rows, MOST_DOWN)},
                                    .block = {THREADS},
                                },
                                &s->pad);
}

static bsmm_status pad(const bsmm_product *p, const bsmm_operand *o, const bsmm_tma_rows *s,
                       uint8_t *to) {
    bsmm_scaled_pad job;
    memset(&job, 0, sizeof job); /* The padding of the struct is zero, too (test_golden_gpu). */
    job.from = o->m.data;
    job.to = to;
    job.from_pitch = (uint64_t)(o->m.ld * bits_of(o) / 8);
    job.to_pitch = s->pitch;
    job.rows = (uint32_t)o->m.rows;
    job.row_bits = (uint64_t)(o->m.cols * bits_of(o));
    return bsmm_cuda_ready_launch(p->device, &s->pad, p->stream, BSMM_CUDA_ARGUMENTS(&job));
}

bsmm_status bsmm_tma_rows_bind(const bsmm_product *p, const bsmm_operand *o, const bsmm_tma_rows *s,
                               uint8_t **room, CUtensorMap *map) {
    uint8_t *const padded = *room;
    *room += s->bytes;
    if (!s->stored) BSMM_TRY(pad(p, o, s, padded));
    return bsmm_cuda_ready_map_at(p->device, &s->map, s->stored ? o->m.data : padded, map);
}
