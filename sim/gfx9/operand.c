/* Reads the sources and writes the destinations of vector instructions. It applies the modifiers
 * DPP, SDWA, op_sel, neg, abs, omod and clamp, and the lane mask EXEC. */
#include "floats.h"
#include "sim.h"
#include <string.h>

static bool wide(int type) {
    return type == F64 || type == U64 || type == I64;
}
static bool half(int type) {
    return type == F16 || type == U16 || type == I16;
}
static bool real(int type) {
    return type == F16 || type == F32 || type == F64;
}

const uint32_t *gfx9_lane_masks(gfx9_wave *w) {
    const uint64_t exec = gfx9_exec(w) & w->dpp_lanes;
    if (exec != w->lane_exec) {
        for (uint32_t l = 0; l < LANES; l++)
            w->lane[l] = -(uint32_t)(exec >> l & 1);
        w->lane_exec = exec;
    }
    return w->lane;
}

uint64_t gfx9_scalar(const gfx9_wave *w, const gfx9_operand *o, int type) {
    if (o->place == CONSTANT) return gfx9_constant(o, type);
    if (o->place == SCC_BIT) return w->scc;
    if (o->place == VGPR) return w->v[o->reg][0];
    if (o->place != SGPR) return 0;
    return wide(type) && o->count > 1 ? gfx9_s64(w, o->reg) : w->s[o->reg];
}

void gfx9_write_scalar(gfx9_wave *w, const gfx9_operand *o, int bits, uint64_t value) {
    if (o->place != SGPR) return;
    w->s[o->reg] = (uint32_t)value;
    if (bits == 64) w->s[o->reg + 1] = (uint32_t)(value >> 32);
}

/* Returns the lane from which lane l reads with the DPP pattern `control`, or -1 if there is none.
 */
static int dpp_source(int32_t control, int l) {
    const int n = control >> 8, row = l & ~15, at = l & 15;
    switch (control & 255) {
    case DPP_QUAD:
        return (l & ~3) + (n >> 2 * (l & 3) & 3);
    case DPP_ROW_SHL:
        return at + n < 16 ? l + n : -1;
    case DPP_ROW_SHR:
        return at >= n ? l - n : -1;
    case DPP_ROW_ROR:
        return row + ((at - n) & 15);
    case DPP_WAVE_SHL:
        return l < 63 ? l + 1 : -1;
    case DPP_WAVE_ROL:
        return (l + 1) & 63;
    case DPP_WAVE_SHR:
        return l - 1;
    case DPP_WAVE_ROR:
        return (l - 1) & 63;
    case DPP_MIRROR:
        return row + 15 - at;
    case DPP_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case DPP_BCAST15:
        return row ? row - 1 : -1;
    case DPP_BCAST31:
        return l >= 32 ? 31 : -1;
    default:
        return row + (n & 15);
    }
}

static void permute(gfx9_wave *w, const gfx9_inst *i, const uint32_t *from, uint32_t *to) {
    const uint64_t exec = gfx9_exec(w);
    uint64_t lanes = 0;
    for (int l = 0; l < LANES; l++) {
        const int source = dpp_source(i->dpp_control, l);
        const bool valid = source >= 0 && (exec >> source & 1);
        const bool on = (i->dpp_rows >> (l / 16) & 1) && (i->dpp_banks >> (l / 4 % 4) & 1) &&
                        (valid || i->dpp_bound);
        to[l] = valid ? from[source] : 0;
        lanes |= (uint64_t)on << l;
    }
    w->dpp_lanes = lanes;
}

static void select_bits(const gfx9_operand *o, int type, uint32_t *u) {
    const uint32_t shift = o->sel < 4    ? 8u * o->sel
                           : o->sel == 5 ? 16
                                         : 0,
                   bits = o->sel < 4 ? 8 : 16;
    if (o->sel != SEL_DWORD)
        for (int l = 0; l < LANES; l++) {
            const uint32_t v = u[l] >> shift << (32 - bits);
            u[l] = o->sext ? (uint32_t)((int32_t)v >> (32 - bits)) : v >> (32 - bits);
        }
    if (o->half_lo && half(type))
        for (int l = 0; l < LANES; l++)
            u[l] >>= 16;
}

static void change_sign(const gfx9_operand *o, int type, gfx9_vector *v) {
    const uint32_t sign = type == F16 ? 0x8000 : 0x80000000u, keep = o->abs ? ~sign : ~0u,
                   flip = o->neg ? sign : 0;
    uint32_t *u = v->u[0];
    if (type == F64) {
        for (int l = 0; l < LANES; l++)
            v->u64[l] = (v->u64[l] & ((uint64_t)keep << 32 | 0xffffffff)) ^ (uint64_t)flip << 32;
        return;
    }
    for (int l = 0; l < LANES; l++)
        u[l] = (u[l] & keep) ^ flip;
}

static void fill(gfx9_wave *w, const gfx9_operand *o, int type, gfx9_vector *room) {
    const uint64_t s = gfx9_scalar(w, o, type);
    if (wide(type))
        for (int l = 0; l < LANES; l++)
            room->u64[l] = s;
    else
        for (int l = 0; l < LANES; l++)
            room->u[0][l] = (uint32_t)s;
}

/* Adds the index of s_set_gpr_idx to the register number of an operand. If the number changes, the
 * function returns a changed copy in *moved, otherwise `o` itself. */
static const gfx9_operand *indexed(const gfx9_wave *w, const gfx9_inst *i, const gfx9_operand *o,
                                   gfx9_operand *moved) {
    const bool own = o >= i->op && o < i->op + 8;
    const uint32_t bit = !own ? 0 : o == i->op ? 8 : 1u << (o - i->op - i->first);
    if (o->place != VGPR || !(w->indexed & bit)) return o;
    *moved = *o;
    moved->reg = (uint16_t)((o->reg + (w->s[M0] & 255)) % VGPRS);
    return moved;
}

const void *gfx9_fetch(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                       gfx9_vector *room) {
    const bool changed = (o->neg || o->abs) && real(type);
    const bool first = inst->dpp && o == &inst->op[inst->first];
    gfx9_operand moved;
    if (w->indexed) o = indexed(w, inst, o, &moved);
    if (o->place != VGPR) {
        fill(w, o, type, room);
    } else if (wide(type)) {
        const uint32_t *lo = w->v[o->reg], *hi = w->v[o->reg + 1];
        uint32_t p[2][LANES];
        if (first) permute(w, inst, lo, p[0]), permute(w, inst, hi, p[1]), lo = p[0], hi = p[1];
        for (int l = 0; l < LANES; l++)
            room->u64[l] = lo[l] | (uint64_t)hi[l] << 32;
    } else {
        if (!changed && !first && o->sel == SEL_DWORD && !(o->half_lo && half(type)))
            return w->v[o->reg];
        if (first)
            permute(w, inst, w->v[o->reg], room->u[0]);
        else
            memcpy(room->u[0], w->v[o->reg], sizeof room->u[0]);
    }
    if (!wide(type)) select_bits(o, type, room->u[0]);
    if (changed) change_sign(o, type, room);
    return room;
}

static void scale_f32(float *f, int omod, bool clamp) {
    const float by = omod == 1 ? 2 : omod == 2 ? 4 : omod == 3 ? 0.5f : 1;
    for (int l = 0; l < LANES; l++)
        f[l] *= by;
    if (clamp)
        for (int l = 0; l < LANES; l++)
            f[l] = f[l] > 0 ? f[l] < 1 ? f[l] : 1 : 0;
}

static void scale_f64(double *f, int omod, bool clamp) {
    const double by = omod == 1 ? 2 : omod == 2 ? 4 : omod == 3 ? 0.5 : 1;
    for (int l = 0; l < LANES; l++)
        f[l] *= by;
    if (clamp)
        for (int l = 0; l < LANES; l++)
            f[l] = f[l] > 0 ? f[l] < 1 ? f[l] : 1 : 0;
}

/* Applies the modifiers omod and clamp to f16 values. The function converts them to f32 and back.
 */
static void scale_f16(uint32_t *u, int omod, bool clamp) {
    float f[LANES];
    for (int l = 0; l < LANES; l++)
        f[l] = gfx9_f16_to_f32(u[l]);
    scale_f32(f, omod, clamp);
    for (int l = 0; l < LANES; l++)
        u[l] = gfx9_f32_to_f16(f[l]);
}

static void merge(gfx9_wave *w, const gfx9_inst *inst, uint32_t *to, uint32_t *value) {
    const uint32_t shift = inst->dst_sel < 4 ? 8u * inst->dst_sel : inst->dst_sel == 5 ? 16 : 0;
    const uint32_t mask = (inst->dst_sel < 4 ? 0xffu : 0xffffu) << shift;
    const uint32_t bits = inst->dst_sel < 4 ? 8 : 16;
    for (int l = 0; l < LANES; l++) {
        uint32_t v = value[l] << shift & mask;
        if (inst->dst_unused == 2) v |= to[l] & ~mask;
        if (inst->dst_unused == 1)
            v |= (uint32_t)((int32_t)(value[l] << (32 - bits)) >> (32 - bits)) << shift &
                 ~((1u << shift) - 1);
        value[l] = v;
    }
    (void)w;
}

void gfx9_store(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                gfx9_vector *value) {
    if (inst->omod || (inst->clamp && real(type))) {
        if (type == F32) scale_f32((float *)value->u[0], inst->omod, inst->clamp);
        if (type == F64) scale_f64((double *)value->u64, inst->omod, inst->clamp);
        if (type == F16) scale_f16(value->u[0], inst->omod, inst->clamp);
    }
    gfx9_operand moved;
    if (w->indexed) o = indexed(w, inst, o, &moved);
    const uint32_t *mask = gfx9_lane_masks(w);
    uint32_t *to = w->v[o->reg];
    w->written[o->reg] |= w->lane_exec;
    const bool whole = w->lane_exec == ~0ull && !half(type) && inst->dst_sel == SEL_DWORD;
    if (whole && !wide(type)) {
        memcpy(to, value->u[0], sizeof value->u[0]);
    } else if (wide(type)) {
        uint32_t *hi = w->v[o->reg + 1];
        w->written[o->reg + 1] |= w->lane_exec;
        if (w->lane_exec == ~0ull)
            for (int l = 0; l < LANES; l++) {
                to[l] = (uint32_t)value->u64[l];
                hi[l] = (uint32_t)(value->u64[l] >> 32);
            }
        else
            for (int l = 0; l < LANES; l++) {
                to[l] = (to[l] & ~mask[l]) | ((uint32_t)value->u64[l] & mask[l]);
                hi[l] = (hi[l] & ~mask[l]) | ((uint32_t)(value->u64[l] >> 32) & mask[l]);
            }
    } else {
        if (half(type))
            for (int l = 0; l < LANES; l++)
                value->u[0][l] &= 0xffff;
        if (inst->dst_sel != SEL_DWORD) merge(w, inst, to, value->u[0]);
        if (half(type) && inst->op[0].half_lo)
            for (int l = 0; l < LANES; l++)
                value->u[0][l] = value->u[0][l] << 16 | (to[l] & 0xffff);
        else if (half(type) && inst->row->form)
            for (int l = 0; l < LANES; l++)
                value->u[0][l] |= to[l] & 0xffff0000;
        for (int l = 0; l < LANES; l++)
            to[l] = (to[l] & ~mask[l]) | (value->u[0][l] & mask[l]);
    }
    w->dpp_lanes = ~0ull;
}
