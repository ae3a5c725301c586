/* Implements the compact form of packed weights, in which a matrix's codes and scales are stored in
 * another order (docs/PACKING.md).
 *
 * The matrix is divided into strips of 16 rows; the last strip may have fewer rows. Each row of a
 * strip is divided into pieces of 4 bytes of codes, or of 3 bytes if codes have 6 bits, so that no
 * code is split. The last piece of a row may be shorter. A strip stores piece 0 of all its rows,
 * then piece 1 of all its rows, and so on. Every code therefore still has an index in a packed
 * array: bsmm_operand_index computes the index, and bsmm_elem_load reads the code. */
#include "base/choices.h"
#include "base/threads.h"
#include "format/format.h"

#include <string.h>

enum { ROWS = BSMM_COMPACT_ROWS };
_Static_assert((int)BSMM_ORDER_COMPACT == (int)BSMM_ORDER_COUNT, "a caller's order is compact");

int64_t bsmm_compact_piece(uint32_t elem) {
    uint32_t bits = bsmm_elem_row(elem)->bits;
    return bits == 6 ? 4 : 32 / bits;
}

/* Returns the number of rows that are stored together with row `first`, the first row of a strip:
 * 16, or fewer in the last strip. */
static int64_t strip_rows(const bsmm_operand *o, int64_t first) {
    return bsmm_min_i64(ROWS, o->m.rows - first);
}

uint64_t bsmm_compact_index(const bsmm_operand *o, int64_t r, int64_t c) {
    int64_t piece = bsmm_compact_piece(o->m.format.elem), first = r / ROWS * ROWS;
    int64_t begin = c / piece * piece, length = bsmm_min_i64(piece, o->m.ld - begin);
    return (uint64_t)(first * o->m.ld + begin * strip_rows(o, first) + r % ROWS * length +
                      (c - begin));
}

static bsmm_status view_scales(const bsmm_operand *stored, bsmm_operand *to) {
    uint32_t bytes = bsmm_scale_row_of(stored->m.format.scale)->bytes;
    to->m.scale_layout = BSMM_LAYOUT_TILE_CONTIGUOUS;
    to->m.scale_tile_rows = (uint32_t)bsmm_min_i64(ROWS, stored->map.rows ? stored->map.rows : 1);
    to->m.scale_tile_cols = 1;
    BSMM_TRY(bsmm_scale_map_make(&to->m, "b, compact", &to->map));
    if (!bsmm_mul_u64(to->map.count, bytes, &to->scale_bytes) || to->scale_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID, "b.rows x cols: the scales' size overflows");
    to->m.scale_bytes = to->scale_bytes;
    return BSMM_OK;
}

bsmm_status bsmm_compact_view(const bsmm_operand *stored, bsmm_operand *to) {
    uint32_t elem = stored->m.format.elem;
    *to = *stored;
    to->m.order = BSMM_ORDER_COMPACT;
    to->m.ld = bsmm_round_up(stored->m.cols, bsmm_elem_group(elem));
    to->m.data = to->m.scales = NULL;
    to->m.global_scale = NULL;
    to->m.scale_ld = 0;
    uint64_t count;
    if (!bsmm_mul_u64((uint64_t)to->m.rows, (uint64_t)to->m.ld, &count) ||
        !bsmm_elem_bytes(elem, count, &to->data_bytes) || to->data_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID, "b.rows x cols: the size overflows");
    to->m.data_bytes = to->data_bytes;
    return stored->m.format.scale == BSMM_SCALE_NONE ? BSMM_OK : view_scales(stored, to);
}

/* Points to codes of one row in compact order. A row is stored in pieces of 4 bytes, or 3 bytes for
 * 6-bit codes. The first of `pieces` whole pieces is at `at`, and the stride between pieces is
 * `step` bytes. The last `rest` bytes of the codes, less than a piece, are at `tail`. */
typedef struct row_part {
    uint8_t *at, *tail;
    /* In compact order, a row is divided into pieces, each of which is stored together. `bytes` is
     * the size of a whole piece in bytes. */
    int64_t pieces, bytes, step;
    size_t rest;
} row_part;

static row_part part_of(const bsmm_operand *o, int64_t r, int64_t c, int64_t n) {
    uint64_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    int64_t piece = bsmm_compact_piece(o->m.format.elem);
    row_part p = {.pieces = n / piece, .bytes = piece * (int64_t)bits / 8};
    int64_t done = p.pieces * piece;
    p.step = p.bytes * strip_rows(o, r / ROWS * ROWS);
    p.rest = (size_t)(((uint64_t)(n - done) * bits + 7) / 8);
    p.at = (uint8_t *)o->m.data + bsmm_compact_index(o, r, c) * bits / 8;
    p.tail = p.at;
    if (p.rest) p.tail = (uint8_t *)o->m.data + bsmm_compact_index(o, r, c + done) * bits / 8;
    return p;
}

void bsmm_compact_read(const bsmm_operand *o, int64_t r, int64_t c, int64_t n, void *to) {
    const row_part p = part_of(o, r, c, n);
    uint8_t *codes = to;
    /* The two loops differ only in the constant size of the copied pieces. A compiler turns a
     * memcpy of a constant size into one load and one store, but a memcpy of a variable size into a
     * function call. */
    if (p.bytes == 4)
        for (int64_t i = 0; i < p.pieces; i++)
            memcpy(codes + 4 * i, p.at + i * p.step, 4);
    else
        for (int64_t i = 0; i < p.pieces; i++)
            memcpy(codes + 3 * i, p.at + i * p.step, 3);
    memcpy(codes + p.pieces * p.bytes, p.tail, p.rest);
}

static void write_codes(const bsmm_operand *o, int64_t r, int64_t c, int64_t n,
                        const uint8_t *codes) {
    const row_part p = part_of(o, r, c, n);
    for (int64_t i = 0; i < p.pieces; i++)
        memcpy(p.at + i * p.step, codes + i * p.bytes, (size_t)p.bytes);
    memcpy(p.tail, codes + p.pieces * p.bytes, p.rest);
}

/* RUN is the number of columns that move_strips copies at once. */
enum { RUN = 512, RUN_BYTES = RUN * 4 };

/* Copies the codes of row r, columns [c, c + n), to `codes`, one after another without gaps. If the
 * last codes do not fill a byte, the rest of the byte is 0. */
static void load_codes(const bsmm_operand *o, int64_t r, int64_t c, int64_t n,
                       uint8_t codes[RUN_BYTES]) {
    uint32_t elem = o->m.format.elem, bits = bsmm_elem_row(elem)->bits;
    if (o->m.order == BSMM_ORDER_ROW && n % bsmm_elem_group(elem) == 0) {
        memcpy(codes, (const uint8_t *)o->m.data + bsmm_operand_index(o, r, c) * bits / 8,
               (size_t)n * bits / 8);
        return;
    }
    memset(codes, 0, RUN_BYTES);
    for (int64_t i = 0; i < n; i++)
        bsmm_elem_store(elem, codes, (uint64_t)i,
                        bsmm_elem_load(elem, o->m.data, bsmm_operand_index(o, r, c + i)));
}

typedef struct move {
    const bsmm_operand *from, *to;
} move;

/* Copies rows `first` to end - 1 of the scale matrix of `from` to that of `to`. */
static void move_scales(const void *context, int64_t first, int64_t end, int worker) {
    const bsmm_operand *from = ((const move *)context)->from, *to = ((const move *)context)->to;
    uint32_t scale = from->m.format.scale;
    (void)worker;
    for (int64_t r = first; r < end; r++)
        for (int64_t c = 0; c < from->map.cols; c++)
            bsmm_scale_store_code(
                scale, to->m.scales, bsmm_scale_map_at(&to->map, r, c),
                bsmm_scale_load_code(scale, from->m.scales, bsmm_scale_map_at(&from->map, r, c)));
}

/* Copies the codes of strips `first` to end - 1 of the matrix `from` to `to`. A strip is 16 rows.
 */
static void move_strips(const void *context, int64_t first, int64_t end, int worker) {
    const bsmm_operand *from = ((const move *)context)->from, *to = ((const move *)context)->to;
    int64_t group = bsmm_elem_group(from->m.format.elem), cols = from->m.cols;
    (void)worker;
    for (int64_t r = first * ROWS; r < bsmm_min_i64(from->m.rows, end * ROWS); r++)
        for (int64_t c = 0; c < cols; c += RUN) {
            uint8_t codes[RUN_BYTES];
            int64_t n = bsmm_min_i64(RUN, cols - c);
            load_codes(from, r, c, n, codes);
            write_codes(to, r, c, bsmm_round_up(n, group), codes);
        }
}

bsmm_status bsmm_compact_pack(const bsmm_operand *from, const bsmm_operand *to, int threads,
                              const bsmm_pool *pool) {
    const move both = {from, to};
    bsmm_loop loop = {.threads = threads,
                      .count = bsmm_ceil_div(from->m.rows, ROWS),
                      .body = move_strips,
                      .context = &both};
    BSMM_TRY(bsmm_loop_run(&loop, pool));
    if (from->m.format.scale == BSMM_SCALE_NONE) return BSMM_OK;
    memset(to->m.scales, 0, to->scale_bytes);
    loop.count = from->map.rows;
    loop.body = move_scales;
    return bsmm_loop_run(&loop, pool);
}

void bsmm_compact_unpack(const bsmm_operand *from, const bsmm_operand *to) {
    uint32_t elem = from->m.format.elem;
    for (int64_t r = 0; r < from->m.rows; r++)
        for (int64_t c = 0; c < from->m.cols; c++)
            bsmm_elem_store(elem, to->m.data, bsmm_operand_index(to, r, c),
                            bsmm_elem_load(elem, from->m.data, bsmm_operand_index(from, r, c)));
    const move both = {from, to};
    if (from->m.format.scale != BSMM_SCALE_NONE) move_scales(&both, 0, from->map.rows, 0);
}
