/* Moves k blocks of both operands from global memory through registers to a stage of shared memory.
 * scaled_body.h includes this file. The rows of a k block are moved in units of 16 bytes. A thread
 * moves the same unit of several rows, which lie UNIT_ROWS rows apart, and the scales of one row.
 */

enum { UNITS = ROW_BYTES / 16, THREAD_UNITS = ROWS * UNITS / THREADS, UNIT_ROWS = THREADS / UNITS };

/* Holds the first row and the first column of a tile of D. */
typedef struct corner {
    uint32_t row, col;
} corner;

/* Holds, in registers, the part of a k block that a thread moves to shared memory. */
typedef struct block_part {
    uint32_t units[THREAD_UNITS][4];
    uint32_t scales[SCALE_TILES];
} block_part;

/* The functions from here on load elements and scales to registers. */

/* Loads a unit (up to 16 bytes of a row) byte by byte, for units that are not aligned or in which
 * the row ends. Bits after the row's last element become 0. */
static __device__ __noinline__ uint4 load_ragged(const uint8_t *from, uint32_t bytes,
                                                 uint32_t bits) {
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        if (i >= bytes || 8 * i >= bits) continue;
        const uint32_t left = bits - 8 * i, byte = from[i] & (left < 8 ? (1u << left) - 1 : 0xff);
        words[i / 4] |= byte << 8 * (i % 4);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Loads the elements of unit `unit` of a row. A unit is up to 16 bytes. Elements outside the
 * operand are 0. */
static __device__ __forceinline__ void load_unit(const bsmm_sm120_side *s, uint32_t row,
                                                 uint32_t unit, uint32_t to[4]) {
    const uint32_t bytes = s->unit_bytes;
    const uint64_t begin = (uint64_t)unit * bytes, first_bit = 8 * begin;
    to[0] = to[1] = to[2] = to[3] = 0;
    if (row >= s->rows || first_bit >= s->row_bits) return;
    const uint8_t *const from = s->o.data + row * s->pitch + begin;
    const uint64_t left = s->row_bits - first_bit;
    if (!s->aligned || left < 8 * bytes) {
        const uint4 w = load_ragged(from, bytes, (uint32_t)min((uint64_t)128, left));
        to[0] = w.x, to[1] = w.y, to[2] = w.z, to[3] = w.w;
    } else if (bytes == 16) {
        const uint4 w = *(const uint4 *)from;
        to[0] = w.x, to[1] = w.y, to[2] = w.z, to[3] = w.w;
    } else if (bytes == 8) {
        const uint2 w = *(const uint2 *)from;
        to[0] = w.x, to[1] = w.y;
    } else {
        const uint32_t *const w = (const uint32_t *)from;
        to[0] = w[0], to[1] = w[1], to[2] = w[2];
    }
}

/* Loads word number `word` of the scales of a row. A word holds four scales of one byte. The last
 * word of a row may have fewer scales, followed by padding. Padding may be any bytes, e.g. codes of
 * NaN, so the function sets it to 0. */
static __device__ __forceinline__ uint32_t load_scales(const bsmm_sm120_params *p,
                                                       const bsmm_sm120_side *s, uint32_t row,
                                                       uint32_t word) {
    if (row >= s->rows || word >= p->scale_tiles) return 0;
    const uint64_t tile = (uint64_t)(row / 128) * p->scale_tiles + word;
    const uint32_t four =
        *(const uint32_t *)(s->scales + tile * 512 + row % 32 * 16 + row % 128 / 32 * 4);
    const uint32_t left = p->row_scales - 4 * word;
    return left >= 4 ? four : four & ((1u << 8 * left) - 1);
}

static __device__ __forceinline__ void load_part(const bsmm_sm120_params *p, corner at,
                                                 uint32_t block, block_part *part) {
    const uint32_t unit = block * UNITS + threadIdx.x % UNITS, first = threadIdx.x / UNITS;
#pragma unroll
    for (uint32_t i = 0; i < THREAD_UNITS; i++) {
        const uint32_t row = first + i * UNIT_ROWS;
        if (row < TILE)
            load_unit(&p->sides[0], at.row + row, unit, part->units[i]);
        else
            load_unit(&p->sides[1], at.col + row - TILE, unit, part->units[i]);
    }
    const bool is_b = threadIdx.x >= TILE;
    const uint32_t row = (is_b ? at.col : at.row) + threadIdx.x % TILE;
#pragma unroll
    for (uint32_t t = 0; t < SCALE_TILES; t++)
        part->scales[t] = load_scales(p, &p->sides[is_b], row, block * SCALE_TILES + t);
}

/* The functions from here on store elements and scales to shared memory. */

/* Spreads 16 elements of 4 or 6 bits so that each takes a byte. Elements of 4 bits go to bits 2 to
 * 5 of their byte, and elements of 6 bits go to bits 0 to 5. */
static __device__ __forceinline__ void spread_4(uint32_t w[4]) {
    const uint32_t halves[4] = {w[0], w[0] >> 16, w[1], w[1] >> 16};
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = (halves[i] & 0xf) << 2 | (halves[i] & 0xf0) << 6 | (halves[i] & 0xf00) << 10 |
               (halves[i] & 0xf000) << 14;
}
static __device__ __forceinline__ void spread_6(uint32_t w[4]) {
    const uint32_t groups[4] = {w[0], w[0] >> 24 | w[1] << 8, w[1] >> 16 | w[2] << 16, w[2] >> 8};
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = (groups[i] & 0x3f) | (groups[i] & 0xfc0) << 2 | (groups[i] & 0x3f000) << 4 |
               (groups[i] & 0xfc0000) << 6;
}

static __device__ __forceinline__ void store_unit(const bsmm_sm120_side *s, uint32_t w[4],
                                                  uint8_t *to, uint32_t *nonzero) {
    if (s->unit_bytes == 8) spread_4(w);
    if (s->unit_bytes == 12) spread_6(w);
    if ((w[0] | w[1] | w[2] | w[3]) & s->magnitudes) *nonzero = 1;
    *(uint4 *)to = make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ __forceinline__ void store_part(const bsmm_sm120_params *p, block_part *part,
                                                  uint8_t *stage, findings *found) {
    const uint32_t unit = threadIdx.x % UNITS, first = threadIdx.x / UNITS;
#pragma unroll
    for (uint32_t i = 0; i < THREAD_UNITS; i++) {
        const uint32_t row = first + i * UNIT_ROWS;
        store_unit(&p->sides[row >= TILE], part->units[i],
                   stage + row * ROW_BYTES + (unit ^ row % 8) * 16, &found->nonzero[row]);
    }
    uint32_t *const words = (uint32_t *)(stage + ROWS * ROW_BYTES) + threadIdx.x * SCALE_TILES;
    uint32_t all = 0;
#pragma unroll
    for (uint32_t t = 0; t < SCALE_TILES; t++)
        all |= words[t] = part->scales[t];
    if (SCALED_SIGNED && all & 0x80808080u) found->negative = 1;
}
