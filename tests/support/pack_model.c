#include "pack_model.h"

#include "gpu/pack_lane.h"

#include <math.h>
#include <string.h>

typedef struct item {
    uint32_t codes[4];
    float values[8];
    bsmm_lane_scale scale;
    bool inexact;
} item;

static bool is_wide(const bsmm_operand *o) {
    return bsmm_elem_is_wide(o->m.format.elem);
}

static uint32_t item_count(const bsmm_pack_job *job) {
    return job->route == BSMM_PACK_BF16 ? 8 : 16;
}

static void fetch(const bsmm_pack_job *job, const bsmm_operand *o, int64_t r, int64_t k, item *to) {
    uint32_t elem = o->m.format.elem, n = item_count(job), scale_code = 0;
    bool there = k < o->m.cols;
    *to = (item){.inexact = false};
    for (uint32_t i = 0; i < n && k + i < o->m.cols; i++) {
        uint32_t code = bsmm_elem_load(elem, o->m.data, bsmm_operand_index(o, r, k + i));
        if (is_wide(o))
            to->values[i] = (float)bsmm_elem_decode(elem, code);
        else
            to->codes[i / 4] |= code << 8 * (i % 4);
    }
    if (there && job->scale)
        scale_code = bsmm_scale_load_code(job->scale, o->m.scales,
                                          bsmm_axis_at(&job->row_map, (uint32_t)r) +
                                              bsmm_axis_at(&job->col_map, (uint32_t)k));
    to->scale = bsmm_lane_scale_of(there ? job->scale : 0, scale_code);
}

static uint32_t look(const bsmm_pack_job *job, bool wide, item *i) {
    if (wide) return bsmm_lane_look_wide(i->values, &i->inexact);
    return bsmm_lane_look(job, &i->scale, i->codes, (int)item_count(job) / 4);
}

static void tell(bsmm_pack_header *header, const bsmm_lane_group *g) {
    header->flags |= g->flags;
    header->high = bsmm_max_u32(header->high, g->high);
    header->low = bsmm_max_u32(header->low, g->low);
    header->inner = bsmm_max_u32(header->inner, g->inner);
}

static int bits_of(const bsmm_operand *o) {
    return (int)bsmm_elem_row(o->m.format.elem)->bits;
}

/* Returns the largest exponent among the first four block scales of row r. */
static int first_top(const bsmm_pack_job *job, const bsmm_operand *o, int64_t r) {
    int top = -127;
    for (int64_t k = 0; k < bsmm_min_i64(BSMM_PACK_GROUP, o->m.cols); k += 32) {
        item first;
        fetch(job, o, r, k, &first);
        if (!first.scale.is_nan && first.scale.exponent > top) top = first.scale.exponent;
    }
    return top;
}

static void pack_group(const bsmm_pack_job *job, const bsmm_operand *o, int64_t r, int64_t k) {
    enum { MOST = BSMM_PACK_GROUP / 8 };
    item items[MOST];
    uint32_t maxima = 0, n = item_count(job);
    for (uint32_t i = 0; i < BSMM_PACK_GROUP / n; i++) {
        fetch(job, o, r, k + i * n, &items[i]);
        maxima = bsmm_max_halves(maxima, look(job, is_wide(o), &items[i]));
    }
    uint8_t *to =
        (uint8_t *)job->elements + (uint64_t)r * job->element_pitch + (uint64_t)k * (16 / n);
    const bool folds = job->route != BSMM_PACK_BF16 && job->scale == BSMM_SCALE_E8M0;
    const int row_top = folds ? bsmm_lane_row_top(job, first_top(job, o, r)) : 0;
    float scale = 1;
    for (uint32_t i = 0; i < BSMM_PACK_GROUP / n; i++) {
        uint32_t out[4];
        bsmm_lane_scale s = items[i].scale;
        s.factor = job->scale == BSMM_SCALE_F32 ? items[0].scale.factor : s.factor;
        bsmm_lane_group g = is_wide(o) ? bsmm_lane_decide_wide(job, maxima, items[i].inexact)
                                       : bsmm_lane_decide(job, &s, maxima, row_top);
        if (is_wide(o))
            bsmm_lane_emit_wide(items[i].values, g.exponent, out);
        else
            bsmm_lane_item(job, &items[i].scale, &g, items[i].codes, bits_of(o), n == 8 ? 16 : 8,
                           out);
        if (!is_wide(o)) g.flags |= bsmm_lane_fast_flags(job, &items[i].scale, items[i].codes);
        tell(job->header, &g);
        memcpy(to + 16 * i, out, sizeof out);
        scale = g.scale;
    }
    if (job->group_scales)
        job->group_scales[(uint64_t)k / 128 * job->group_pitch + (uint64_t)r] = scale;
}

void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o) {
    const bsmm_pack_job *job = &launch->job;
    memset(job->header, 0, BSMM_PACK_HEADER_BYTES);
    for (int64_t k = 0; k < o->m.cols; k += BSMM_PACK_GROUP) {
        for (int64_t r = 0; r < o->m.rows; r++)
            pack_group(job, o, r, k);
        for (uint64_t r = (uint64_t)o->m.rows; job->group_scales && r < job->group_pitch; r++)
            job->group_scales[(uint64_t)k / 128 * job->group_pitch + r] = 0;
    }
}

static double packed_value(const bsmm_pack_job *job, const bsmm_operand *o, int64_t r, int64_t k) {
    const uint8_t *row = (uint8_t *)job->elements + (uint64_t)r * job->element_pitch;
    uint32_t elem = job->route == BSMM_PACK_BF16         ? BSMM_ELEM_BF16
                    : o->m.format.elem == BSMM_ELEM_E5M2 ? BSMM_ELEM_E5M2
                                                         : BSMM_ELEM_E4M3;
    return bsmm_elem_decode(elem, bsmm_elem_load(elem, row, (uint64_t)k));
}

static void complain(pack_verdict *v, int64_t r, int64_t k, double expected, double got) {
    if (v->wrong++) return;
    v->row = r, v->col = k, v->expected = expected, v->got = got;
}

/* Returns the largest allowed error of a packed value. `scale` is the scale in the packed format of
 * the 128 elements to which the value belongs. Only BSMM_PACK_FAST, which packs mxfp8 to 8 bits,
 * may round, and only values that become subnormal. */
static double slack(const bsmm_pack_job *job, const bsmm_operand *o, double expected,
                    double scale) {
    bool e4m3 = o->m.format.elem == BSMM_ELEM_E4M3;
    if (job->route != BSMM_PACK_FAST) return 0;
    if (fabs(expected) >= scale * exp2(e4m3 ? -6 : -14)) return 0;
    return scale * exp2(e4m3 ? -10 : -17);
}

/* A scale that is larger than necessary makes packed elements small, and rounding costs them more
 * bits. Returns true if the packed scale of a group of 128 elements is too large in this sense.
 * `amax` is the largest magnitude of the group. Only BSMM_PACK_FAST, which packs mxfp8 with
 * rounding, can choose such a scale. */
static bool is_coarse(const bsmm_pack_job *job, const bsmm_operand *o, double scale, double amax) {
    double normal = o->m.format.elem == BSMM_ELEM_E4M3 ? 240 : exp2(15);
    if (job->route != BSMM_PACK_FAST || !job->group_scales || amax == 0) return false;
    return scale > exp2(-149) && scale * normal > amax * exp2(8);
}

static void check_extent(const bsmm_pack_header *h, int64_t r, int64_t k, double expected,
                         double packed, pack_verdict *v) {
    bool outside = fabs(expected) >= ldexp(1, (int)h->high - 512) ||
                   fabs(expected) < ldexp(1, 512 - (int)h->low) ||
                   (packed != 0 && fabs(packed) < ldexp(1, 512 - (int)h->inner));
    if (isfinite(expected) && expected != 0 && outside) complain(v, r, k, expected, packed);
}

static void check_group(const bsmm_pack_job *job, const bsmm_operand *o, int64_t r, int64_t k,
                        pack_verdict *v) {
    double expected[BSMM_PACK_GROUP] = {0}, amax = 0;
    int64_t n = bsmm_min_i64(BSMM_PACK_GROUP, o->m.cols - k);
    float scale = job->group_scales
                      ? job->group_scales[(uint64_t)k / 128 * job->group_pitch + (uint64_t)r]
                      : 1;
    bsmm_operand_decode_row(o, r, k, n, expected);
    for (int64_t i = 0; i < n; i++)
        if (isfinite(expected[i])) amax = fmax(amax, fabs(expected[i]));
    if (is_coarse(job, o, (double)scale, amax)) complain(v, r, k, amax, (double)scale);
    for (int64_t i = 0; i < BSMM_PACK_GROUP; i++) {
        double packed = packed_value(job, o, r, k + i), got = packed * (double)scale;
        bool same =
            got == expected[i] || (isnan(got) && isnan(expected[i])) || (i >= n && isnan(got));
        if (!same && !(fabs(got - expected[i]) <= slack(job, o, expected[i], (double)scale)))
            complain(v, r, k + i, expected[i], got);
        check_extent(job->header, r, k + i, expected[i], packed, v);
    }
}

pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o) {
    const bsmm_pack_job *job = &launch->job;
    pack_verdict v = {.flags = job->header->flags};
    if (v.flags & BSMM_PACK_WIDE) return v;
    for (int64_t r = 0; r < o->m.rows; r++)
        for (int64_t k = 0; k < o->m.cols; k += BSMM_PACK_GROUP)
            check_group(job, o, r, k, &v);
    return v;
}
