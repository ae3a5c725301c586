/* Executes AMD's LDS instructions, i.e. loads and stores at one or two addresses, atomics, data
 * exchange between lanes, and transposing loads. */
#include "access.h"
#include <string.h>

static bool outside(gfx9_wave *w, const gfx9_inst *i, uint32_t at, uint32_t bytes, int l) {
    const uint32_t size = w->group->lds_size;
    if (at <= size && bytes <= size - at) return false;
    gfx9_stop(w, i, "lane %d: %u bytes at LDS 0x%x lie outside the workgroup's %u bytes", l, bytes,
              at, size);
    return true;
}

static bool touch(gfx9_wave *w, const gfx9_inst *i, uint32_t at, uint32_t bytes, int l, int write,
                  const void *data) {
    if (outside(w, i, at, bytes, l)) return false;
    gfx9_lds_touch(w, i, at, bytes, (uint32_t)l, write, data);
    return w->stop == STOP_NO;
}

/* An LDS instruction has one or two addresses. Returns the byte offset that it adds to the first
 * (`place` is 0) or to the second (`place` is 1). If there are two addresses, the table entry's
 * `what` is the number of bytes by which the encoded offsets are multiplied. */
static uint32_t offset_of(const gfx9_inst *i, uint32_t place) {
    const uint32_t scale = (uint32_t)i->row->what;
    return scale == 0 ? (uint32_t)i->offset : scale * (uint32_t)(place ? i->offset1 : i->offset);
}

static void execute_read(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t bytes = (uint32_t)i->row->size, words = (bytes + 3) / 4,
                   counted = i->row->what ? 2 : 1;
    const uint32_t *address = w->v[i->op[1].reg];
    gfx9_loaded loaded;
    for (int l = 0; l < LANES; l++)
        for (uint32_t place = 0; place < counted && (exec >> l & 1); place++) {
            const uint32_t at = address[l] + offset_of(i, place);
            if (!touch(w, i, at, bytes, l, 0, NULL)) return;
            for (uint32_t k = 0; k < words; k++) {
                uint32_t word = 0;
                memcpy(&word, w->group->lds + at + (size_t)4 * k, bytes < 4 ? bytes : 4);
                loaded.data[place * words + k][l] =
                    gfx9_widened(word, bytes < 4 ? (int)bytes : 4, i->row->form);
            }
        }
    gfx9_result(w, i->op[0].reg, words * counted, exec, i->row->form, &loaded, false, true);
}

static void counts(gfx9_wave *w) {
    gfx9_pending *late = w->group->checks & CHECK_WAITS ? gfx9_postpone(w) : NULL;
    if (late) late->lgkm = 1;
}

static void execute_write(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t bytes = (uint32_t)i->row->size, counted = i->row->what ? 2 : 1;
    const uint32_t *address = w->v[i->op[0].reg];
    for (int l = 0; l < LANES; l++)
        for (uint32_t place = 0; place < counted && (exec >> l & 1); place++) {
            const uint32_t at = address[l] + offset_of(i, place);
            uint32_t words[4];
            for (uint32_t k = 0; k < (bytes + 3) / 4; k++)
                words[k] = w->v[i->op[1 + place].reg + k][l] >> (i->row->form & FORM_HIGH ? 16 : 0);
            if (!touch(w, i, at, bytes, l, 1, words)) return;
            memcpy(w->group->lds + at, words, bytes);
        }
    counts(w);
}

static uint64_t two_registers(const gfx9_wave *w, uint32_t reg, int l, uint32_t bytes) {
    return w->v[reg][l] | (bytes == 8 ? (uint64_t)w->v[reg + 1][l] << 32 : 0);
}

/* Executes an atomic on LDS. The table entry's `form` is 1 if the instruction returns the old
 * value. */
static void execute_atomic(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t bytes = (uint32_t)i->row->size;
    const gfx9_operand *o = &i->op[i->row->form];
    const int what = i->row->what;
    const bool compares = what == AT_CMPSWAP || what == AT_CMPSWAP_F32 || what == AT_CMPSWAP_F64,
               two = compares || what == AT_MSKOR;
    gfx9_loaded loaded;
    for (int l = 0; l < LANES; l++) {
        if (!(exec >> l & 1)) continue;
        const uint32_t at = w->v[o[0].reg][l] + (uint32_t)i->offset;
        uint64_t old = 0;
        if (!touch(w, i, at, bytes, l, 2, NULL)) return;
        memcpy(&old, w->group->lds + at, bytes);
        uint64_t data = two_registers(w, o[1].reg, l, bytes),
                 second = two ? two_registers(w, o[2].reg, l, bytes) : 0;
        /* The compare-and-swap instructions of LDS have the value to compare as their first
         * operand, and the new value as their second operand. */
        if (compares) {
            const uint64_t t = data;
            data = second, second = t;
        }
        const uint64_t value = gfx9_atomic_value(i->row->what, old, data, second, (int)bytes);
        memcpy(w->group->lds + at, &value, bytes);
        loaded.data[0][l] = (uint32_t)old, loaded.data[1][l] = (uint32_t)(old >> 32);
    }
    if (i->row->form)
        gfx9_result(w, i->op[0].reg, bytes / 4, exec, FORM_PLAIN, &loaded, false, true);
    else
        counts(w);
}

/* Stores the values of two registers at two LDS addresses, and returns both old values. */
static void execute_exchange2(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t bytes = (uint32_t)i->row->size, words = bytes / 4;
    gfx9_loaded loaded;
    for (int l = 0; l < LANES; l++)
        for (uint32_t place = 0; place < 2 && (exec >> l & 1); place++) {
            const uint32_t at = w->v[i->op[1].reg][l] + offset_of(i, place);
            if (!touch(w, i, at, bytes, l, 2, NULL)) return;
            for (uint32_t k = 0; k < words; k++) {
                memcpy(&loaded.data[place * words + k][l], w->group->lds + at + (size_t)4 * k, 4);
                memcpy(w->group->lds + at + (size_t)4 * k, &w->v[i->op[2 + place].reg + k][l], 4);
            }
        }
    gfx9_result(w, i->op[0].reg, 2 * words, exec, FORM_PLAIN, &loaded, false, true);
}

enum { BPERMUTE, PERMUTE, SWIZZLE };

static int swizzled(uint32_t offset, int l) {
    /* Offsets from 0xe000 on choose ds_swizzle's FFT modes. The simulator does not implement these
     * modes, so the caller stops the wave. */
    if (offset >= 0xe000) return l;
    if (offset & 0x8000) {
        if (offset & 0x4000) { /* ds_swizzle's rotation mode moves the values within 32 lanes. */
            const int n = (int)(offset >> 5 & 31), mask = (int)(offset & 31);
            return (l & 32) | (((offset & 0x400 ? l - n : l + n) & ~mask) & 31) | (l & mask);
        }
        return (l & ~3) + (int)(offset >> 2 * (l & 3) & 3);
    }
    return (l & 32) |
           ((((l & 31) & (int)(offset & 31)) | (int)(offset >> 5 & 31)) ^ (int)(offset >> 10 & 31));
}

static void execute_lanes(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t offset = i->word[0] & 0xffff;
    const uint32_t *address = w->v[i->op[1].reg],
                   *data = w->v[i->op[i->row->what == SWIZZLE ? 1 : 2].reg];
    gfx9_loaded loaded;
    memset(loaded.data[0], 0, sizeof loaded.data[0]);
    if (i->row->what == SWIZZLE && offset >= 0xe000) {
        gfx9_stop(w, i, "this mode of ds_swizzle is not executed");
        return;
    }
    for (int l = 0; l < LANES; l++) {
        const uint32_t other = (address[l] + offset) / 4 % LANES;
        if (i->row->what == PERMUTE) {
            if (exec >> l & 1) loaded.data[0][other] = data[l];
        } else {
            const uint32_t from = i->row->what == BPERMUTE ? other : (uint32_t)swizzled(offset, l);
            loaded.data[0][l] = exec >> from & 1 ? data[from] : 0;
        }
    }
    gfx9_result(w, i->op[0].reg, 1, exec, FORM_PLAIN, &loaded, false, true);
}

/* Executes a transposing load from LDS. Each 16 lanes load a row-major matrix of 16 columns, with
 * elements of `bits` bits. Lane i of the 16 lanes receives column i. */
static void execute_transpose(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t bits = (uint32_t)i->row->form, bytes = (uint32_t)i->row->size,
                   elements = 8 * bytes / bits;
    const uint32_t mask = (1u << bits) - 1;
    uint8_t rows[LANES][16] = {{0}};
    gfx9_loaded loaded = {0};
    for (int l = 0; l < LANES; l++) {
        const uint32_t at = w->v[i->op[1].reg][l] + (uint32_t)i->offset;
        if (!(exec >> l & 1)) continue;
        if (!touch(w, i, at, bytes, l, 0, NULL)) return;
        memcpy(rows[l], w->group->lds + at, bytes);
    }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t j = 0; j < elements; j++) {
            const uint32_t lane = (l & ~15u) + (16 / elements) * j + l % 16 / elements,
                           from = l % elements * bits;
            uint32_t word;
            memcpy(&word, rows[lane] + from / 8, 4);
            const uint32_t v = word >> from % 8 & mask, to = j * bits;
            loaded.data[to / 32][l] |= v << to % 32;
            if (to % 32 + bits > 32) loaded.data[to / 32 + 1][l] |= v >> (32 - to % 32);
        }
    gfx9_result(w, i->op[0].reg, bytes / 4, exec, FORM_PLAIN, &loaded, false, true);
}

static void execute_nothing(gfx9_wave *w, const gfx9_inst *i) {
    (void)w, (void)i;
}

#define READ(name, bytes, form)                                                                    \
    { "ds_read_" name, execute_read, {.what = 0}, N, N, N, N, COST_LDS, bytes, form }
#define WRITE(name, bytes, form)                                                                   \
    { "ds_write_" name, execute_write, {.what = 0}, N, N, N, N, COST_LDS, bytes, form }
#define TWO(name, scale, bytes)                                                                    \
    {"ds_read" name, execute_read, {.what = scale}, N, N, N, N, COST_LDS, bytes, 0}, {             \
        "ds_write" name, execute_write, {.what = scale}, N, N, N, N, COST_LDS, bytes, 0            \
    }
#define ATOMIC(name, rtn, value, bytes)                                                            \
    {"ds_" name, execute_atomic, {.what = value}, N, N, N, N, COST_LDS, bytes, 0}, {               \
        "ds_" rtn, execute_atomic, {.what = value}, N, N, N, N, COST_LDS, bytes, 1                 \
    }
#define BOTH(name, s, value)                                                                       \
    ATOMIC(name "_" s "32", name "_rtn_" s "32", value, 4),                                        \
        ATOMIC(name "_" s "64", name "_rtn_" s "64", value, 8)
#define TRANSPOSE(name, bytes, bits)                                                               \
    { name, execute_transpose, {0}, N, N, N, N, COST_LDS, bytes, bits }
#define LANE(name, value)                                                                          \
    { name, execute_lanes, {.what = value}, N, N, N, N, COST_LDS, 4, 0 }
static const gfx9_row rows[] = {
    READ("b32", 4, 0),
    READ("b64", 8, 0),
    READ("b96", 12, 0),
    READ("b128", 16, 0),
    READ("u8", 1, 0),
    READ("i8", 1, FORM_SIGNED),
    READ("u16", 2, 0),
    READ("i16", 2, FORM_SIGNED),
    READ("u8_d16", 1, FORM_LOW),
    READ("u8_d16_hi", 1, FORM_HIGH),
    READ("i8_d16", 1, FORM_LOW | FORM_SIGNED),
    READ("i8_d16_hi", 1, FORM_HIGH | FORM_SIGNED),
    READ("u16_d16", 2, FORM_LOW),
    READ("u16_d16_hi", 2, FORM_HIGH),
    WRITE("b32", 4, 0),
    WRITE("b64", 8, 0),
    WRITE("b96", 12, 0),
    WRITE("b128", 16, 0),
    WRITE("b8", 1, 0),
    WRITE("b16", 2, 0),
    WRITE("b8_d16_hi", 1, FORM_HIGH),
    WRITE("b16_d16_hi", 2, FORM_HIGH),
    TWO("2_b32", 4, 4),
    TWO("2_b64", 8, 8),
    TWO("2st64_b32", 256, 4),
    TWO("2st64_b64", 512, 8),
    BOTH("add", "u", AT_ADD),
    BOTH("sub", "u", AT_SUB),
    BOTH("rsub", "u", AT_RSUB),
    BOTH("inc", "u", AT_INC),
    BOTH("dec", "u", AT_DEC),
    BOTH("min", "i", AT_SMIN),
    BOTH("max", "i", AT_SMAX),
    BOTH("min", "u", AT_UMIN),
    BOTH("max", "u", AT_UMAX),
    BOTH("and", "b", AT_AND),
    BOTH("or", "b", AT_OR),
    BOTH("xor", "b", AT_XOR),
    BOTH("mskor", "b", AT_MSKOR),
    BOTH("cmpst", "b", AT_CMPSWAP),
    ATOMIC("add_f32", "add_rtn_f32", AT_ADD_F32, 4),
    ATOMIC("add_f64", "add_rtn_f64", AT_ADD_F64, 8),
    ATOMIC("min_f32", "min_rtn_f32", AT_MIN_F32, 4),
    ATOMIC("max_f32", "max_rtn_f32", AT_MAX_F32, 4),
    ATOMIC("min_f64", "min_rtn_f64", AT_MIN_F64, 8),
    ATOMIC("max_f64", "max_rtn_f64", AT_MAX_F64, 8),
    ATOMIC("pk_add_f16", "pk_add_rtn_f16", AT_PK_ADD_F16, 4),
    ATOMIC("pk_add_bf16", "pk_add_rtn_bf16", AT_PK_ADD_BF16, 4),
    {"ds_wrxchg_rtn_b32", execute_atomic, {.what = AT_SWAP}, N, N, N, N, COST_LDS, 4, 1},
    {"ds_wrxchg_rtn_b64", execute_atomic, {.what = AT_SWAP}, N, N, N, N, COST_LDS, 8, 1},
    ATOMIC("cmpst_f32", "cmpst_rtn_f32", AT_CMPSWAP_F32, 4),
    ATOMIC("cmpst_f64", "cmpst_rtn_f64", AT_CMPSWAP_F64, 8),
    {"ds_wrxchg2_rtn_b32", execute_exchange2, {.what = 4}, N, N, N, N, COST_LDS, 4, 0},
    {"ds_wrxchg2_rtn_b64", execute_exchange2, {.what = 8}, N, N, N, N, COST_LDS, 8, 0},
    {"ds_wrxchg2st64_rtn_b32", execute_exchange2, {.what = 256}, N, N, N, N, COST_LDS, 4, 0},
    {"ds_wrxchg2st64_rtn_b64", execute_exchange2, {.what = 512}, N, N, N, N, COST_LDS, 8, 0},
    LANE("ds_bpermute_b32", BPERMUTE),
    LANE("ds_permute_b32", PERMUTE),
    LANE("ds_swizzle_b32", SWIZZLE),
    TRANSPOSE("ds_read_b64_tr_b16", 8, 16),
    TRANSPOSE("ds_read_b64_tr_b8", 8, 8),
    TRANSPOSE("ds_read_b64_tr_b4", 8, 4),
    TRANSPOSE("ds_read_b96_tr_b6", 12, 6),
    {"ds_nop", execute_nothing, {0}, N, N, N, N, COST_LDS, 0, 0},
};
const gfx9_table gfx9_lds_table = {rows, sizeof rows / sizeof *rows};
