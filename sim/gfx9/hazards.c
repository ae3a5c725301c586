/* Finds instructions that follow another instruction too closely. Hardware does not stall there, so
 * the program must insert wait states. The tables have the numbers of LLVM's hazard recognizer
 * (llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp) for gfx940 and gfx950, whose functions are the
 * sources of the rows. Matrix instructions have a table of their own in mfma.c. */
#include "hazards.h"
#include <string.h>

/* Names what an instruction does to a register, as bits of a mask. */
enum { BY_VALU = 1, BY_TRANS = 2, BY_HALF = 4, BY_SALU = 8, BY_STORE = 16, BY_CMPX = 32 };
/* SETS_MODE marks s_setreg, which writes MODE. Its bit is the next one after the HAZARD_KINDS bits
 * of the enum above. */
enum { SETS_MODE = 1 << HAZARD_KINDS };
/* A row of the hazard table forbids that an instruction follows another one too closely if both
 * concern the same register. The enum `regs` names the registers of the later instruction to which
 * the row applies. */
enum regs { ALL, SOURCES, SOURCES_S, FIRST, LANE, RESULT, ONE };
/* Each row of the hazard table below has a mask of these bits. The mask says which instructions
 * must not follow the row's first instruction too soon. */
enum {
    TO_VALU = 1,
    TO_VMEM = 2,
    TO_DPP = 4,
    TO_FMAS = 8,
    TO_LANE = 16,
    TO_READLANE = 32,
    TO_MATRIX = 64,
    TO_M0 = 128,
    TO_GETREG = 256,
    TO_SETREG = 512,
    TO_SWAP = 1024,
    TO_OTHER = 2048 /* TO_OTHER marks a VALU instruction that is no transcendental function. */
};
/* MODE_REG is the number of the register MODE. It follows the numbers of all other registers. */
enum { MODE_REG = VGPRS + SGPRS };

/* MOST_STATES is the largest number of wait states in the table below. */
enum { MOST_STATES = 5 };
static const struct {
    const char *what, *source;
    /* Each row describes a hazard between two instructions. `by` is one of the bits BY_VALU to
     * BY_CMPX, which says what the first instruction did to a register. `to` is a mask of the bits
     * TO_VALU to TO_OTHER, which says which instructions must not access this register too soon
     * after. */
    uint16_t by, to;
    uint8_t states, regs;
    uint16_t reg; /* `reg` is the register, if `regs` is ONE. */
} rows[] = {
    {"an SGPR that a VALU instruction wrote", "checkVMEMHazards", BY_VALU, TO_VMEM, 5, SOURCES_S,
     0},
    {"a VGPR for DPP that a VALU instruction wrote", "checkDPPHazards", BY_VALU, TO_DPP, 2, FIRST,
     0},
    {"EXEC for DPP that a VALU instruction wrote", "checkDPPHazards", BY_VALU, TO_DPP, 5, ONE,
     VGPRS + EXEC},
    {"VCC that a VALU instruction wrote", "checkDivFMasHazards", BY_VALU, TO_FMAS, 4, ONE,
     VGPRS + VCC},
    {"a lane number that a VALU instruction wrote", "checkRWLaneHazards", BY_VALU, TO_LANE, 4, LANE,
     0},
    {"an SGPR that a VALU instruction wrote", "checkVALUHazards", BY_VALU, TO_VALU, 2, SOURCES_S,
     0},
    {"EXEC that a VALU instruction wrote", "checkVALUHazards", BY_VALU, TO_LANE | TO_READLANE, 4,
     ONE, VGPRS + EXEC},
    {"a VGPR that a VALU instruction wrote", "checkVALUHazards", BY_VALU, TO_READLANE, 1, FIRST, 0},
    {"the result of a transcendental function", "checkVALUHazards", BY_TRANS, TO_OTHER, 1, SOURCES,
     0},
    {"a VGPR of which a part was written", "checkVALUHazards", BY_HALF, TO_VALU, 1, SOURCES, 0},
    {"the data of a store of more than 8 bytes", "createsVALUHazard", BY_STORE, TO_VALU, 2, RESULT,
     0},
    {"a VGPR that a VALU instruction wrote", "checkMAIHazards90A", BY_VALU, TO_MATRIX, 2, SOURCES,
     0},
    {"EXEC that a VALU instruction wrote", "checkMAIHazards90A", BY_VALU, TO_MATRIX, 4, ONE,
     VGPRS + EXEC},
    {"a VGPR that a VALU instruction wrote", "checkPermlaneHazards", BY_VALU, TO_SWAP, 2, ALL, 0},
    {"EXEC that v_cmpx wrote", "checkPermlaneHazards", BY_CMPX, TO_SWAP, 4, ONE, VGPRS + EXEC},
    {"M0 that a SALU instruction wrote", "checkReadM0Hazards", BY_SALU, TO_M0, 1, ONE, VGPRS + M0},
    {"MODE that s_setreg wrote", "checkGetRegHazards", BY_SALU, TO_GETREG, 2, ONE, MODE_REG},
    {"MODE that s_setreg wrote", "checkSetRegHazards", BY_SALU, TO_SETREG, 2, ONE, MODE_REG},
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS <= 32, "an instruction has one bit for each row");

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_trans(const char *name) {
    static const char *const names[] = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                        "v_sqrt_", "v_sin_", "v_cos_"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (begins(name, names[k])) return true;
    return false;
}

static bool is_valu(const gfx9_inst *i) {
    const uint8_t cost = i->row->cost;
    return cost == COST_VALU || cost == COST_VALU64 || cost == COST_TRANS;
}

static uint32_t uses_of(const gfx9_inst *i) {
    const char *name = i->row->name;
    const bool valu = is_valu(i), lane = begins(name, "v_readlane") || begins(name, "v_writelane"),
               read = begins(name, "v_readlane") || begins(name, "v_readfirstlane"),
               moves = begins(name, "s_movrel") || begins(name, "s_sendmsg");
    return (valu || i->row->cost == COST_MFMA ? TO_VALU : 0) | (valu && i->dpp ? TO_DPP : 0) |
           (valu && !is_trans(name) ? TO_OTHER : 0) | (i->row->cost == COST_VMEM ? TO_VMEM : 0) |
           (begins(name, "v_div_fmas") ? TO_FMAS : 0) | (lane ? TO_LANE : 0) |
           (read ? TO_READLANE : 0) | (i->row->cost == COST_MFMA ? TO_MATRIX : 0) |
           (moves || i->lds || strstr(name, "load_lds") ? TO_M0 : 0) |
           (begins(name, "s_getreg") ? TO_GETREG : 0) | (begins(name, "s_setreg") ? TO_SETREG : 0) |
           (begins(name, "v_permlane") ? TO_SWAP : 0);
}

static uint32_t effects_of(const gfx9_inst *i) {
    const char *name = i->row->name;
    if (is_valu(i)) {
        const bool half = (i->sdwa && i->dst_sel != SEL_DWORD) || i->op[0].half_lo;
        return BY_VALU | (is_trans(name) ? BY_TRANS : 0) | (half ? BY_HALF : 0) |
               (begins(name, "v_cmpx") ? BY_CMPX : 0);
    }
    if (begins(name, "s_setreg")) return BY_SALU | SETS_MODE;
    return i->row->cost == COST_SALU                                   ? BY_SALU
           : i->row->cost == COST_VMEM && strstr(name, "store_dwordx") ? BY_STORE
                                                                       : 0;
}

/* Returns the number of wait states since the last instruction that had the effect `by` (BY_...) on
 * any register. Returns ~0 if there was none. */
static uint64_t shortest_distance(const gfx9_wave *w, uint32_t by) {
    const uint64_t last = w->last_effect[__builtin_ctz(by)];
    return last ? w->issued - last - 1 : ~0ull;
}

/* Returns the number of wait states since the last instruction that had the effect `by` (BY_...) on
 * this register. Returns ~0 if there was none. */
static uint64_t distance(const gfx9_wave *w, uint32_t reg, uint32_t by) {
    const uint64_t last = w->touched[__builtin_ctz(by)][reg];
    return last ? w->issued - last - 1 : ~0ull;
}

/* VGPRs, SGPRs and MODE are numbered in one sequence. Returns the number of the operand's first
 * register in this sequence. */
static uint32_t number_of(const gfx9_operand *o) {
    return o->place == SGPR ? (uint32_t)VGPRS + o->reg : o->reg;
}

/* Returns the number of wait states since the last instruction that had the effect `by` (BY_...) on
 * one of the operand's registers. Returns ~0 if there was none, or if the operand is not in the
 * register file `place`. */
static uint64_t operand_distance(const gfx9_wave *w, const gfx9_operand *o, int place,
                                 uint32_t by) {
    uint64_t least = ~0ull;
    for (uint32_t r = 0; o->place == place && r < o->count; r++) {
        const uint64_t d = distance(w, number_of(o) + r, by);
        least = d < least ? d : least;
    }
    return least;
}

/* Describes some operands of an instruction: those of the operands `begin` to `end` - 1 that are
 * registers of the register file `place` (SGPR or VGPR). */
typedef struct {
    uint32_t begin, end;
    int place;
} range;

/* Returns the range of those operands of the instruction that row number `row` of the hazard table
 * concerns. The row must not have `regs` = ONE, which stands for one fixed register instead of
 * operands. */
static range operands_of(const gfx9_inst *i, uint32_t row) {
    const enum regs regs = (enum regs)rows[row].regs;
    /* A search looks at operands `begin` to `end` - 1. Usually the sources of an instruction begin
     * with operand number i->first, and the operands before it are results. In a store to memory,
     * however, operand 0 is a source, so the search of a memory instruction begins with operand 0.
     * In a load, operand 0 is the result. Searching it too does no harm: it is a VGPR, and the only
     * row of the table for which a memory instruction comes here looks for SGPRs. */
    const uint32_t end = regs == RESULT ? 1 : regs == FIRST ? i->first + 1u : i->operand_count;
    const bool from_0 = regs == RESULT || regs == ALL || i->row->cost == COST_VMEM;
    return (range){regs == LANE ? 2
                   : from_0     ? 0
                                : i->first,
                   end, regs == SOURCES_S || regs == LANE ? SGPR : VGPR};
}

static uint64_t row_distance(const gfx9_wave *w, const gfx9_inst *i, uint32_t row) {
    const uint32_t by = rows[row].by;
    if (rows[row].regs == ONE) return distance(w, rows[row].reg, by);
    const range operands = operands_of(i, row);
    uint64_t least = ~0ull;
    for (uint32_t k = operands.begin; k < operands.end; k++) {
        const uint64_t d = operand_distance(w, &i->op[k], operands.place, by);
        least = d < least ? d : least;
    }
    return least;
}

/* Returns false if the instruction has none of the registers that a row of the hazard table
 * concerns, for example if it has no SGPR as a source. */
static bool concerns(const gfx9_inst *i, uint32_t row) {
    if (rows[row].regs == ONE) return true;
    const range operands = operands_of(i, row);
    for (uint32_t k = operands.begin; k < operands.end; k++)
        if (i->op[k].place == operands.place && i->op[k].count) return true;
    return false;
}

void gfx9_hazards_of(gfx9_inst *i) {
    const uint32_t uses = i->row ? uses_of(i) : 0;
    i->hazards = 0, i->effects = i->row ? (uint8_t)effects_of(i) : 0;
    for (uint32_t k = 0; k < ROWS; k++)
        if ((rows[k].to & uses) && concerns(i, k)) i->hazards |= 1u << k;
}

/* Records what an instruction does to a register. w->touched tells, for each kind of effect, when
 * an instruction last had this effect on the register. The kinds in the mask `effects` are recorded
 * with the current time, w->issued. The kinds in the mask `ended` are deleted, because a write
 * makes earlier writes irrelevant. For example, after a SALU instruction has overwritten an SGPR,
 * it no longer matters that a VALU instruction wrote the SGPR earlier. Effects that are more than
 * MOST_STATES wait states old matter to no instruction, so the simulator does not need to delete
 * them. */
static void touch(gfx9_wave *w, uint32_t effects, uint32_t ended, uint32_t reg) {
    for (uint32_t left = effects; left; left &= left - 1) {
        const uint32_t k = (uint32_t)__builtin_ctz(left);
        w->touched[k][reg] = w->last_effect[k] = w->issued;
    }
    for (uint32_t left = ended; left; left &= left - 1)
        w->touched[__builtin_ctz(left)][reg] = 0;
}

/* Returns the kinds of effects (a mask of BY_...) that end when an instruction with the effects
 * `effects` writes a register: earlier instructions with these kinds of effects on the register no
 * longer matter. The instruction's own effects do not end. The mask omits kinds whose last effect
 * is so old that it matters to no instruction. */
static uint32_t ended_by(const gfx9_wave *w, uint32_t effects) {
    uint32_t kinds = 0;
    for (uint32_t k = 0; k < HAZARD_KINDS && effects != BY_STORE; k++)
        if (shortest_distance(w, 1u << k) < MOST_STATES) kinds |= 1u << k;
    return kinds & ~effects;
}

void gfx9_check_hazards(gfx9_wave *w, const gfx9_inst *i) {
    for (uint32_t left = i->hazards; left; left &= left - 1) {
        const uint32_t row = (uint32_t)__builtin_ctz(left);
        if (shortest_distance(w, rows[row].by) >= rows[row].states) continue;
        const uint64_t d = row_distance(w, i, row);
        if (d >= rows[row].states) continue;
        gfx9_stop(w, i, "%s is used after %u wait states instead of %u (LLVM's %s)", rows[row].what,
                  (unsigned)d, rows[row].states, rows[row].source);
        return;
    }
    if (!i->effects) return;
    const uint32_t ended = ended_by(w, i->effects),
                   effects = i->effects & ((1u << HAZARD_KINDS) - 1);
    /* Finds the registers that hold the results of the instruction. In most instructions, these are
     * the operands before the first source. There may be two of them, because some instructions
     * also write a carry. A store has no results; here it touches the register that holds its data,
     * which is operand 0 in buffer stores and operand 1 in other stores. */
    for (uint32_t k = 0; k < (i->effects == BY_STORE ? 2u : i->first) && k < i->operand_count;
         k++) {
        const gfx9_operand *o = &i->op[k];
        const bool in_file = o->place == VGPR || o->place == SGPR;
        if (i->effects == BY_STORE && (o->place != VGPR || o->count < 3)) continue;
        for (uint32_t r = 0; in_file && r < o->count; r++)
            touch(w, effects, ended, number_of(o) + r);
    }
    if (i->effects & BY_CMPX)
        touch(w, effects, ended, VGPRS + EXEC), touch(w, effects, ended, VGPRS + EXEC + 1);
    if (i->effects & SETS_MODE) touch(w, effects, ended, MODE_REG);
}
