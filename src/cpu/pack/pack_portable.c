/* These packing functions are plain C. They run on any processor, and tests compare the functions
 * of each instruction set with them. */
#include "cpu/pack/pack.h"

#include <string.h>

enum { RUN = BSMM_PACK_RUN };

/* Returns how many of the RUN codes from column k on exist. Packed rows consist of whole units,
 * i.e. ranges of K of a fixed length, and the last unit may extend past the end of K. There may
 * therefore be fewer than RUN codes, or none if k is past the end of K. */
static int64_t run_length(const bsmm_pack_codes *c, int64_t k) {
    return c->count < k ? 0 : bsmm_min_i64(RUN, c->count - k);
}

/* Reads codes [k, k + RUN) of a row, one per byte. The bytes after the row's last code are 0. */
static void unpack(const bsmm_pack_codes *c, int64_t lane, int64_t k, uint8_t *to) {
    int64_t n = run_length(c, k);
    const uint8_t *from = c->row[lane] + k * c->bits / 8;
    memset(to, 0, RUN);
    if (c->bits == 8) memcpy(to, from, (size_t)n);
    if (c->bits == 4) {
        for (int64_t i = 0; i < n / 2; i++) {
            to[2 * i] = from[i] & 0xf;
            to[2 * i + 1] = from[i] >> 4;
        }
        if (n % 2) to[n - 1] = from[n / 2] & 0xf;
    }
    if (c->bits != 6) return;
    for (int64_t i = 0; i < n; i += 4, from += 3) {
        uint32_t word = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        for (int64_t j = i; j < i + 4 && j < n; j++, word >>= 6)
            to[j] = word & 0x3f;
    }
}

static uint8_t *group_at(const bsmm_pack_place *at, int64_t group) {
    return at->to + group / at->unit_groups * at->unit_bytes + group % at->unit_groups * at->pitch;
}

/* Stores `bytes` bytes of row number `lane` of a panel. A panel is several packed rows, whose bytes
 * are interleaved in groups of 4: 4 bytes of the first row are followed by 4 bytes of the second
 * row, and so on. The function therefore copies 4 bytes at a time. The first 4 bytes are group
 * number `first` of the row. */
static void store_groups(const bsmm_pack_place *at, int64_t lane, int64_t first, const void *from,
                         int64_t bytes) {
    const uint8_t *group = from, *end = group + bsmm_min_i64(bytes, 4 * (at->groups - first));
    /* `left` is the number of groups of 4 bytes that still fit into the current packed unit (a
     * range of K) of the panel. */
    int64_t left = at->unit_groups - first % at->unit_groups;
    uint8_t *to = group_at(at, first) + 4 * lane;
    for (; group < end; group += 4, to += at->pitch) {
        memcpy(to, group, 4);
        if (--left) continue;
        left = at->unit_groups;
        to += at->unit_bytes - at->unit_groups * at->pitch;
    }
}

static int32_t sum_of_16(const int8_t *integers) {
    int32_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += integers[i];
    return sum;
}

static void store_begins(const bsmm_pack_place *at, int64_t lane, int64_t first,
                         const bsmm_pack_begin *begin, const int8_t *integers) {
    int64_t end = bsmm_min_i64(first + RUN / 4, at->groups);
    uint8_t *to = group_at(at, first) + at->unit_groups * at->pitch + 4 * lane;
    for (int64_t g = first; g < end; g += at->unit_groups, to += at->unit_bytes) {
        int32_t sum = 0;
        for (int64_t i = 0; i < at->unit_groups; i += 4, integers += 16)
            sum += sum_of_16(integers);
        sum = begin->plus - begin->factor * sum;
        memcpy(to, &sum, 4);
    }
}

static void integers(const bsmm_pack_codes *c, const int8_t *table, const bsmm_pack_begin *begin,
                     const bsmm_pack_place *at) {
    for (int64_t lane = 0; lane < at->lanes; lane++)
        for (int64_t first = 0; first < at->groups; first += RUN / 4) {
            uint8_t codes[RUN];
            int8_t values[RUN];
            unpack(c, lane, first * 4, codes);
            for (int64_t i = 0; i < RUN; i++)
                values[i] = table[codes[i]];
            store_groups(at, lane, first, values, RUN);
            if (begin->factor) store_begins(at, lane, first, begin, values);
        }
}

static void shift(uint16_t *bf16, int64_t n, int16_t by) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t exponent = bf16[i] & 0x7f80;
        bool stays = exponent == 0 || exponent == 0x7f80;
        uint16_t moved = (uint16_t)(stays ? bf16[i] : bf16[i] + by);
        bf16[i] = by == BSMM_PACK_NAN ? 0x7fc0 : moved;
    }
}

/* Returns bf16 * factor. The product is exact, because the operand's format was accepted only if
 * products have at most 8 significant bits. */
static uint16_t multiplied(uint16_t bf16, float factor) {
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, 4);
    value *= factor;
    memcpy(&bits, &value, 4);
    return (uint16_t)(bits >> 16);
}

static void load_halves(const bsmm_pack_codes *c, const bsmm_pack_table *t, int64_t lane, int64_t k,
                        uint16_t *to) {
    if (c->bits == 16) {
        int64_t n = run_length(c, k);
        memset(to, 0, RUN * sizeof *to);
        memcpy(to, c->row[lane] + k * 2, (size_t)n * sizeof *to);
        return;
    }
    uint8_t codes[RUN];
    unpack(c, lane, k, codes);
    for (int64_t i = 0; i < RUN; i++)
        to[i] = (uint16_t)(t->low[codes[i]] | t->high[codes[i]] << 8);
}

/* Stores pairs of bf16 of one row in its lane of a panel, and expands each pair to two fp32 values.
 * `first` is the number of the first pair. */
static void store_widened(const bsmm_pack_place *at, int64_t lane, int64_t first,
                          const uint16_t *values) {
    int64_t end = bsmm_min_i64(first + RUN / 2, at->groups);
    for (int64_t g = first; g < end; g++, values += 2) {
        uint32_t odd = (uint32_t)values[1] << 16, even = (uint32_t)values[0] << 16;
        uint8_t *to = group_at(at, g) + 4 * lane;
        memcpy(to, &odd, 4);
        memcpy(to + at->pitch / 2, &even, 4);
    }
}

void bsmm_pack_portable_halves(const bsmm_pack_codes *c, const bsmm_pack_table *t,
                               const bsmm_pack_scaling *scaling, const bsmm_pack_place *at) {
    for (int64_t lane = 0; lane < at->lanes; lane++)
        for (int64_t first = 0; first < at->groups; first += RUN / 2) {
            uint16_t values[RUN];
            int64_t k = first * 2, n = run_length(c, k);
            load_halves(c, t, lane, k, values);
            if (scaling->shifts)
                for (int64_t i = 0; i < n; i += 32)
                    shift(values + i, bsmm_min_i64(32, n - i), scaling->shifts[lane][(k + i) / 32]);
            if (scaling->factors)
                for (int64_t i = 0; i < n; i++)
                    values[i] = multiplied(values[i], scaling->factors[lane][(k + i) / 16]);
            if (at->widened)
                store_widened(at, lane, first, values);
            else
                store_groups(at, lane, first, values, sizeof values);
        }
}

void bsmm_pack_portable_extent(const uint16_t *codes, int64_t n, int16_t *largest,
                               int16_t *smallest) {
    *largest = 0;
    *smallest = INT16_MAX;
    for (int64_t i = 0; i < n; i++) {
        int16_t magnitude = (int16_t)(codes[i] & 0x7fff);
        if (magnitude == 0 || magnitude >= 0x7f80) continue;
        if (magnitude > *largest) *largest = magnitude;
        if (magnitude < *smallest) *smallest = magnitude;
    }
}

/* Converts f16 to the bits of fp32. A subnormal f16 is an integer times 2^-24. Inf and NaN get
 * fp32's largest exponent and keep their mantissas. */
static uint32_t from_f16(uint32_t code) {
    uint32_t magnitude = code & 0x7fff, sign = (code & 0x8000) << 16, subnormal;
    float value = (float)(int32_t)magnitude * 0x1p-24f;
    memcpy(&subnormal, &value, sizeof subnormal);
    uint32_t rebias = magnitude < 0x7c00 ? 112u << 23 : 224u << 23;
    return (magnitude < 0x400 ? subnormal : (magnitude << 13) + rebias) | sign;
}

void bsmm_pack_portable_floats(const bsmm_pack_codes *c, const bsmm_pack_table *t, int64_t lane,
                               int64_t k, const float *factors, float *to) {
    uint32_t bits[RUN];
    if (c->bits == 32) {
        uint8_t room[RUN * 4];
        memcpy(bits, bsmm_pack_run_at(c, lane, k, room), sizeof bits);
    } else {
        uint16_t halves[RUN];
        load_halves(c, t, lane, k, halves);
        for (int i = 0; i < RUN; i++)
            bits[i] = t->elem == BSMM_ELEM_F16 ? from_f16(halves[i]) : (uint32_t)halves[i] << 16;
    }
    memcpy(to, bits, sizeof bits);
    for (int i = 0; i < RUN && factors; i++)
        to[i] *= factors[i / BSMM_PACK_STEP];
}

/* Sets *largest to the bits of the largest magnitude of n values, and *smallest_less_1 to the bits
 * of their smallest nonzero magnitude, minus 1. The bits of magnitudes are compared as integers.
 * For a zero, the subtraction of 1 wraps around to the largest integer, so zeros are ignored. */
void bsmm_pack_portable_reach(const float *values, int64_t n, int32_t *largest,
                              int32_t *smallest_less_1) {
    int32_t most = 0, least = INT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude;
        memcpy(&magnitude, &values[i], sizeof magnitude);
        magnitude &= INT32_MAX;
        int32_t less_1 = (magnitude - 1) & INT32_MAX;
        most = magnitude > most ? magnitude : most;
        least = less_1 < least ? less_1 : least;
    }
    *largest = most;
    *smallest_less_1 = least;
}

static void words(const int32_t (*from)[BSMM_PACK_STEPS], int64_t count, int64_t lanes, uint8_t *to,
                  int64_t pitch) {
    for (int64_t i = 0; i < count; i++, to += pitch)
        for (int64_t lane = 0; lane < lanes; lane++)
            memcpy(to + 4 * lane, &from[lane][i], 4);
}

const bsmm_pack_isa bsmm_pack_portable = {
    .columns = bsmm_pack_portable_columns,
    .integers = integers,
    .halves = bsmm_pack_portable_halves,
    .words = words,
    .extent = bsmm_pack_portable_extent,
    .floats = bsmm_pack_portable_floats,
    .reach = bsmm_pack_portable_reach,
};

const bsmm_pack_isa *bsmm_pack_best(void) {
    const bsmm_pack_isa *const found[] = {bsmm_pack_avx512(), bsmm_pack_avx2(),
                                          &bsmm_pack_portable};
    int i = 0;
    while (!found[i])
        i++;
    return found[i];
}
