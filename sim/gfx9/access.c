/* Implements functions that all memory instructions of the AMD simulator share: atomics, the
 * extension of loaded bytes, and delayed results of loads. f16 and bf16 additions of atomics round
 * to nearest even. */
#include "access.h"
#include "floats.h"

static uint32_t add_halves(uint32_t a, uint32_t b, bool brain) {
    uint32_t r = 0;
    for (int k = 0; k < 32; k += 16) {
        const uint32_t x = a >> k & 0xffff, y = b >> k & 0xffff;
        r |= (brain ? gfx9_f32_to_bf16(gfx9_bf16_to_f32(x) + gfx9_bf16_to_f32(y))
                    : gfx9_f32_to_f16(gfx9_f16_to_f32(x) + gfx9_f16_to_f32(y)))
             << k;
    }
    return r;
}

static int64_t extended(uint64_t v, int bytes) {
    return bytes == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
}

uint64_t gfx9_atomic_value(int what, uint64_t old, uint64_t data, uint64_t data2, int bytes) {
    const int64_t a = extended(old, bytes), b = extended(data, bytes);
    const uint32_t fa = (uint32_t)old, fb = (uint32_t)data;
    switch (what) {
    case AT_SWAP:
        return data;
    case AT_CMPSWAP:
        return old == data2 ? data : old;
    case AT_ADD:
        return old + data;
    case AT_SUB:
        return old - data;
    case AT_RSUB:
        return data - old;
    case AT_SMIN:
        return a < b ? old : data;
    case AT_SMAX:
        return a > b ? old : data;
    case AT_UMIN:
        return old < data ? old : data;
    case AT_UMAX:
        return old > data ? old : data;
    case AT_AND:
        return old & data;
    case AT_OR:
        return old | data;
    case AT_XOR:
        return old ^ data;
    case AT_INC:
        return old >= data ? 0 : old + 1;
    case AT_DEC:
        return old == 0 || old > data ? data : old - 1;
    case AT_ADD_F32:
        return sim_bits(sim_float(fa) + sim_float(fb));
    case AT_MIN_F32:
        return sim_bits(fminf(sim_float(fa), sim_float(fb)));
    case AT_MAX_F32:
        return sim_bits(fmaxf(sim_float(fa), sim_float(fb)));
    case AT_ADD_F64:
        return sim_bits64(sim_double(old) + sim_double(data));
    case AT_MIN_F64:
        return sim_bits64(fmin(sim_double(old), sim_double(data)));
    case AT_MAX_F64:
        return sim_bits64(fmax(sim_double(old), sim_double(data)));
    case AT_CMPSWAP_F32:
        return sim_float(fa) == sim_float((uint32_t)data2) ? data : old;
    case AT_CMPSWAP_F64:
        return sim_double(old) == sim_double(data2) ? data : old;
    case AT_MSKOR:
        return (old & ~data) | data2;
    default:
        return add_halves(fa, fb, what == AT_PK_ADD_BF16);
    }
}

static uint32_t bits_of(int form) {
    return form & FORM_HIGH ? 0xffff0000 : form & FORM_LOW ? 0xffff : ~0u;
}

static void write_rows(gfx9_wave *w, uint32_t reg, uint32_t count, uint64_t exec, uint32_t bits,
                       const uint32_t (*data)[LANES]) {
    for (uint32_t k = 0; k < count; k++) {
        uint32_t *to = w->v[reg + k];
        w->written[reg + k] |= exec;
        for (int l = 0; l < LANES; l++) {
            const uint32_t m = -(uint32_t)(exec >> l & 1) & bits;
            to[l] = (to[l] & ~m) | (data[k][l] & m);
        }
    }
}

void gfx9_result(gfx9_wave *w, uint32_t reg, uint32_t count, uint64_t exec, int form,
                 const gfx9_loaded *loaded, bool vm, bool lgkm) {
    gfx9_pending *p = w->group->checks & CHECK_WAITS ? gfx9_postpone(w) : NULL;
    if (!p) {
        write_rows(w, reg, count, exec, bits_of(form), loaded->data);
        return;
    }
    p->vm = vm, p->lgkm = lgkm, p->reg = (uint16_t)reg, p->count = (uint16_t)count, p->exec = exec,
    p->mask = bits_of(form);
    memcpy(p->data, loaded->data, count * sizeof loaded->data[0]);
    for (uint32_t k = 0; k < count; k++)
        w->late_v[reg + k]++;
}

static void arrive(gfx9_wave *w, gfx9_pending *p) {
    if (p->smem) {
        for (uint32_t k = 0; k < p->count; k++)
            w->s[p->reg + k] = p->data[0][k], w->late_s[p->reg + k]--;
    } else if (p->to_lds) {
        for (uint32_t l = 0; l < LANES; l++) {
            if (!(p->exec >> l & 1)) continue;
            const uint32_t *from = &p->data[0][0] + (size_t)l * p->count;
            gfx9_lds_late(w, p->lds_at[l], 4u * p->count, -1);
            gfx9_lds_touch(w, p->inst, p->lds_at[l], 4u * p->count, l, 1, from);
            memcpy(w->group->lds + p->lds_at[l], from, (size_t)4 * p->count);
        }
    } else if (p->count) {
        write_rows(w, p->reg, p->count, p->exec, p->mask, (const uint32_t(*)[LANES])p->data);
        for (uint32_t k = 0; k < p->count; k++)
            w->late_v[p->reg + k]--;
    }
}

/* Returns the pending operation with number n, counted from the oldest. */
static gfx9_pending *pending_at(const gfx9_wave *w, uint32_t n) {
    return &w->pending[w->pending_order[n]];
}

static void remove_pending(gfx9_wave *w, uint32_t n) {
    const uint8_t removed = w->pending_order[n];
    arrive(w, &w->pending[removed]);
    w->pending_count--;
    memmove(&w->pending_order[n], &w->pending_order[n + 1], w->pending_count - n);
    w->pending_order[w->pending_count] = removed;
}

static uint32_t random_below(gfx9_wave *w, uint32_t n) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % n);
}

/* Completes the oldest pending memory operations of a wave until at most `vm` (counter vmcnt) and
 * `lgkm` (counter lgkmcnt) of them remain. Vector memory operations complete in order, and so do
 * LDS operations. Scalar loads may complete in any order. */
void gfx9_deliver(gfx9_wave *w, uint32_t vm, uint32_t lgkm) {
    while (w->pending_count) {
        uint32_t in_vm = 0, in_lgkm = 0, smem = 0, first_vm = ~0u, first_lds = ~0u, first_smem = 0;
        for (uint32_t k = w->pending_count; k-- > 0;) {
            const gfx9_pending *p = pending_at(w, k);
            in_vm += p->vm, in_lgkm += p->lgkm, smem += p->smem;
            if (p->vm) first_vm = k;
            if (p->lgkm && !p->smem) first_lds = k;
        }
        if (in_vm > vm) {
            remove_pending(w, first_vm);
            continue;
        }
        if (in_lgkm <= lgkm) return;
        uint32_t choice = smem ? random_below(w, smem + (first_lds != ~0u)) : ~0u;
        if (choice >= smem) {
            remove_pending(w, first_lds);
            continue;
        }
        while (!pending_at(w, first_smem)->smem || choice-- > 0)
            first_smem++;
        remove_pending(w, first_smem);
    }
}

gfx9_pending *gfx9_postpone(gfx9_wave *w) {
    /* The wait counters limit the number of pending operations to 63, so the list is never full.
     * Its room is 0 if its allocation failed. */
    if (w->pending_count == w->pending_room) return NULL;
    gfx9_pending *p = pending_at(w, w->pending_count++);
    p->vm = p->lgkm = p->smem = p->to_lds = 0, p->count = 0, p->mask = ~0u;
    return p;
}
