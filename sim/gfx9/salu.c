/* Executes AMD's scalar ALU instructions, branches, waits and messages. */
#include "sim.h"

/* Defines helpers for the expressions of salu.def, in which r is the result and scc is the
 * condition code. */

static uint32_t high_sign(uint64_t v, int bits) {
    const uint64_t sign = v >> (bits - 1) & 1;
    for (int k = bits - 2; k >= 0; k--)
        if ((v >> k & 1) != sign) return (uint32_t)(bits - 1 - k);
    return ~0u;
}
static uint64_t reverse(uint64_t v, int bits) {
    uint64_t r = 0;
    for (int k = 0; k < bits; k++)
        r |= (v >> k & 1) << (bits - 1 - k);
    return r;
}
static uint64_t quads(uint64_t v, int whole) {
    uint64_t r = 0;
    for (int k = 0; k < 16; k++)
        if (v >> 4 * k & 15) r |= whole ? 15ull << 4 * k : 1ull << k;
    return r;
}
static int32_t i32(uint64_t v) {
    return (int32_t)(uint32_t)v;
}
static uint64_t field(uint64_t v, uint64_t at, uint64_t width) {
    return width >= 64 ? v >> at : (v >> at) & ((1ull << width) - 1);
}
static int64_t signed_field(uint64_t v, uint64_t at, uint64_t width, uint32_t bits) {
    if (width == 0) return 0;
    const int64_t wide = (bits == 32 ? (int64_t)i32(v) : (int64_t)v) >> at;
    return width >= 64 ? wide : (int64_t)((uint64_t)wide << (64 - width)) >> (64 - width);
}

#define R(name, D, A, B, ...)                                                                      \
    static void do_##name(gfx9_wave *w, const gfx9_inst *i, uint64_t a, uint64_t b) {              \
        uint64_t r = 0;                                                                            \
        uint32_t scc = w->scc;                                                                     \
        (void)a, (void)b;                                                                          \
        __VA_ARGS__;                                                                               \
        w->scc = scc;                                                                              \
        if (D) gfx9_write_scalar(w, &i->op[0], D, D == 32 ? (uint32_t)r : r);                      \
    }
#include "salu.def"
#undef R

static void execute(gfx9_wave *w, const gfx9_inst *i) {
    const gfx9_row *row = i->row;
    /* A comparison (result type 0) has no destination, so its first source is operand 0. */
    const uint32_t at = row->d == 0 ? 0 : 1;
    const uint64_t a = i->operand_count > at ? gfx9_scalar(w, &i->op[at], row->a) : 0;
    const uint64_t b = i->operand_count > at + 1 ? gfx9_scalar(w, &i->op[at + 1], row->b) : 0;
    row->scalar(w, i, row->a == U32 ? (uint32_t)a : a, row->b == U32 ? (uint32_t)b : b);
}

static void jump(gfx9_wave *w, const gfx9_inst *i, int64_t target) {
    if (target < 0 || (uint64_t)target >= w->group->object->code_count)
        gfx9_stop(w, i, "jump to an address that is no instruction");
    else
        w->pc = (uint32_t)target;
}

enum { ALWAYS, SCC0, SCC1, VCCZ, VCCNZ, EXECZ, EXECNZ };
static void execute_branch(gfx9_wave *w, const gfx9_inst *i) {
    const bool taken[] = {
        true,          !w->scc,          w->scc, !gfx9_s64(w, VCC), gfx9_s64(w, VCC) != 0,
        !gfx9_exec(w), gfx9_exec(w) != 0};
    if (taken[i->row->what]) jump(w, i, i->target);
}

static uint64_t address_of(const gfx9_wave *w, const gfx9_inst *i) {
    return (uint64_t)(uintptr_t)w->group->object->image + i->address + i->bytes;
}

enum { GETPC, SETPC, SWAPPC, CALL };
static void execute_pc(gfx9_wave *w, const gfx9_inst *i) {
    const gfx9_object *o = w->group->object;
    const int what = i->row->what;
    const uint64_t to = what == SETPC    ? gfx9_s64(w, i->op[0].reg)
                        : what == SWAPPC ? gfx9_s64(w, i->op[1].reg)
                                         : 0;
    if (what != SETPC) gfx9_set64(w, i->op[0].reg, address_of(w, i));
    if (what == GETPC) return;
    const uint64_t offset = to - (uint64_t)(uintptr_t)o->image;
    if (what == CALL)
        jump(w, i, i->target);
    else
        jump(w, i, offset < o->image_size && offset % 4 == 0 ? o->index[offset / 4] : -1);
}

static void execute_end(gfx9_wave *w, const gfx9_inst *i) {
    (void)i;
    gfx9_deliver(w, 0, 0);
    w->stop = STOP_END;
}

static void execute_barrier(gfx9_wave *w, const gfx9_inst *i) {
    (void)i;
    w->stop = STOP_BARRIER;
}

static void execute_waitcnt(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t n = i->word[0] & 0xffff;
    gfx9_deliver(w, (n & 15) | (n >> 10 & 48), n >> 8 & 15);
}

static void execute_nothing(gfx9_wave *w, const gfx9_inst *i) {
    (void)w, (void)i;
}

/* Executes s_sleep: it lets the other waves of the workgroup run. A wave that sleeps may poll a
 * value that another wave will write. */
static void execute_sleep(gfx9_wave *w, const gfx9_inst *i) {
    (void)i;
    w->stop = STOP_YIELD;
}

static void execute_trap(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_stop(w, i, "s_trap: the kernel stopped itself");
}

/* Returns the hardware register that the instruction names. The simulator implements only MODE,
 * register number 1. Any other register stops the wave with an error. */
static uint32_t *hardware_register(gfx9_wave *w, const gfx9_inst *i) {
    if ((i->word[0] & 63) == 1) return &w->mode;
    gfx9_stop(w, i, "hardware register %u is not executed", i->word[0] & 63);
    return NULL;
}

static void execute_setreg(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t at = i->word[0] >> 6 & 31, size = (i->word[0] >> 11 & 31) + 1;
    const uint32_t mask = (size == 32 ? ~0u : (1u << size) - 1) << at;
    const uint32_t value = i->row->what ? i->word[1] : (uint32_t)gfx9_scalar(w, &i->op[0], U32);
    uint32_t *reg = hardware_register(w, i);
    if (reg) *reg = (*reg & ~mask) | (value << at & mask);
}

static void execute_getreg(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t at = i->word[0] >> 6 & 31, size = (i->word[0] >> 11 & 31) + 1;
    if ((i->word[0] & 63) != 1) { /* All registers other than MODE, such as HW_ID, read as 0. */
        gfx9_write_scalar(w, &i->op[0], 32, 0);
        return;
    }
    gfx9_write_scalar(w, &i->op[0], 32, w->mode >> at & (size == 32 ? ~0u : (1u << size) - 1));
}

/* Executes the s_set_gpr_idx instructions, which enable indexed access to VGPRs. Bits 0 to 7 of M0
 * are the index. An immediate selects the operands to which the index applies. */
enum { INDEX_ON, INDEX_OFF, INDEX_MODE, INDEX_INDEX };
static void execute_index(gfx9_wave *w, const gfx9_inst *i) {
    const int what = i->row->what;
    const uint32_t mode = what == INDEX_MODE ? i->word[0] & 15 : i->word[0] >> 8 & 15;
    if (what == INDEX_ON || what == INDEX_INDEX)
        w->s[M0] = (w->s[M0] & ~0xffu) | ((uint32_t)gfx9_scalar(w, &i->op[0], U32) & 255);
    if (what != INDEX_INDEX) w->indexed = what == INDEX_OFF ? 0 : mode;
}

/* Executes s_movrels and s_movreld, which add M0 to the register number of the source or of the
 * destination. */
static void execute_move_indexed(gfx9_wave *w, const gfx9_inst *i) {
    const bool from = i->row->what & 1;
    gfx9_operand a = i->op[1], d = i->op[0];
    if (from)
        a.reg = (uint16_t)((a.reg + w->s[M0]) % 106);
    else
        d.reg = (uint16_t)((d.reg + w->s[M0]) % 106);
    gfx9_write_scalar(w, &d, i->row->form, gfx9_scalar(w, &a, i->row->form == 64 ? U64 : U32));
}

static void execute_nop(gfx9_wave *w, const gfx9_inst *i) {
    w->issued += i->word[0] & 15;
}

static void execute_memtime(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_write_scalar(w, &i->op[0], 64, w->steps);
}

#define R(name, D, A, B, ...)                                                                      \
    {#name,                                                                                        \
     execute,                                                                                      \
     {.scalar = do_##name},                                                                        \
     D,                                                                                            \
     A == 64 ? U64 : U32,                                                                          \
     B == 64 ? U64 : U32,                                                                          \
     N,                                                                                            \
     COST_SALU,                                                                                    \
     0,                                                                                            \
     0},
#define CONTROL(name, execute, value, cost)                                                        \
    { name, execute, {.what = value}, N, U32, N, N, COST_##cost, 0, 0 }
#define MOVE(name, from, bits)                                                                     \
    { name, execute_move_indexed, {.what = from}, N, U32, N, N, COST_SALU, 0, bits }
static const gfx9_row rows[] = {
#include "salu.def"
    CONTROL("s_branch", execute_branch, ALWAYS, BRANCH),
    CONTROL("s_cbranch_scc0", execute_branch, SCC0, BRANCH),
    CONTROL("s_cbranch_scc1", execute_branch, SCC1, BRANCH),
    CONTROL("s_cbranch_vccz", execute_branch, VCCZ, BRANCH),
    CONTROL("s_cbranch_vccnz", execute_branch, VCCNZ, BRANCH),
    CONTROL("s_cbranch_execz", execute_branch, EXECZ, BRANCH),
    CONTROL("s_cbranch_execnz", execute_branch, EXECNZ, BRANCH),
    CONTROL("s_getpc_b64", execute_pc, GETPC, SALU),
    CONTROL("s_setpc_b64", execute_pc, SETPC, SALU),
    CONTROL("s_swappc_b64", execute_pc, SWAPPC, SALU),
    CONTROL("s_call_b64", execute_pc, CALL, BRANCH),
    CONTROL("s_endpgm", execute_end, 0, SALU),
    CONTROL("s_barrier", execute_barrier, 0, SALU),
    CONTROL("s_waitcnt", execute_waitcnt, 0, SALU),
    CONTROL("s_nop", execute_nop, 0, SALU),
    CONTROL("s_setprio", execute_nothing, 0, SALU),
    CONTROL("s_sleep", execute_sleep, 0, SALU),
    CONTROL("s_sethalt", execute_nothing, 0, SALU),
    CONTROL("s_icache_inv", execute_nothing, 0, SALU),
    CONTROL("s_dcache_inv", execute_nothing, 0, SMEM),
    CONTROL("s_dcache_wb", execute_nothing, 0, SMEM),
    CONTROL("s_dcache_inv_vol", execute_nothing, 0, SMEM),
    CONTROL("s_sendmsg", execute_nothing, 0, SALU),
    CONTROL("s_ttracedata", execute_nothing, 0, SALU),
    CONTROL("s_incperflevel", execute_nothing, 0, SALU),
    CONTROL("s_decperflevel", execute_nothing, 0, SALU),
    CONTROL("s_trap", execute_trap, 0, SALU),
    CONTROL("s_setreg_b32", execute_setreg, 0, SALU),
    CONTROL("s_setreg_imm32_b32", execute_setreg, 1, SALU),
    CONTROL("s_getreg_b32", execute_getreg, 0, SALU),
    CONTROL("s_set_gpr_idx_on", execute_index, INDEX_ON, SALU),
    CONTROL("s_set_gpr_idx_off", execute_index, INDEX_OFF, SALU),
    CONTROL("s_set_gpr_idx_mode", execute_index, INDEX_MODE, SALU),
    CONTROL("s_set_gpr_idx_idx", execute_index, INDEX_INDEX, SALU),
    MOVE("s_movrels_b32", 1, 32),
    MOVE("s_movreld_b32", 0, 32),
    MOVE("s_movrels_b64", 1, 64),
    MOVE("s_movreld_b64", 0, 64),
    CONTROL("s_memtime", execute_memtime, 0, SMEM),
    CONTROL("s_memrealtime", execute_memtime, 0, SMEM),
};
const gfx9_table gfx9_salu_table = {rows, sizeof rows / sizeof *rows};
