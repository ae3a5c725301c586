/* Finds errors of a program that hardware does not report. The errors are a register that is used
 * before the wait for its load, LDS bytes that several waves access without a barrier, and reads
 * of registers or memory that were never written. */
#include "check.h"
#include "hazards.h"
#include <string.h>

static bool late(const gfx9_wave *w, const gfx9_operand *o) {
    for (uint32_t k = 0; k < o->count; k++)
        if (o->place == VGPR ? w->late_v[o->reg + k] : o->place == SGPR && w->late_s[o->reg + k])
            return true;
    return false;
}

/* Returns true if the operand is only the destination of a load. The register may then still be the
 * destination of an earlier load. That is no error: loads return in order, so the value of the
 * later load remains. */
static bool only_loads(const gfx9_inst *i, uint32_t operand) {
    const int cost = i->row->cost;
    return operand == 0 && (cost == COST_VMEM || cost == COST_LDS || cost == COST_SMEM);
}

/* Returns true if the instruction writes operand 0 and does not read it. Memory instructions that
 * load nothing have no such operand. */
static bool is_result(const gfx9_inst *i) {
    const bool memory = i->row->cost == COST_VMEM || i->row->cost == COST_LDS;
    return !memory || (i->accesses & ACCESS_LOADS);
}

/* Finds out from the opcode's name how the instruction accesses registers. The simulator does this
 * once for each instruction of a code object, because a search in each execution would be slow. */
void gfx9_accesses_of(gfx9_inst *i) {
    const char *name = i->row ? i->row->name : "";
    i->accesses = 0;
    if (strstr(name, "load") || strstr(name, "read")) i->accesses |= ACCESS_LOADS;
    if (strstr(name, "store") || strstr(name, "write")) i->accesses |= ACCESS_STORES;
    /* Compilers save whole registers in scratch memory, including lanes that no code has written.
     * The data of such a store, operand 1, is therefore not checked. */
    if (strncmp(name, "scratch_store", 13) == 0) i->accesses |= ACCESS_ADDRESS_ONLY;
}

static void check_written(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    const uint32_t count = i->accesses & ACCESS_ADDRESS_ONLY ? 1 : i->operand_count;
    for (uint32_t k = 0; k < count; k++) {
        const gfx9_operand *o = &i->op[k];
        for (uint32_t r = 0; o->place == VGPR && r < o->count; r++) {
            const uint64_t missing = exec & ~w->written[o->reg + r];
            if (!missing) continue;
            if (k == 0 && !(i->accesses & ACCESS_STORES)) continue;
            gfx9_stop(w, i, "lane %d: %c%d was never written", __builtin_ctzll(missing),
                      o->reg + r < 256 ? 'v' : 'a', (o->reg + r) & 255);
            return;
        }
    }
}

/* Returns the first wait state in which operand number k of an instruction may access its register
 * r. Operand 3 of a matrix instruction is C. If C is the whole result of an earlier matrix
 * instruction, it may be read much sooner than if C is only a part of that result. */
static uint64_t ready_at(const gfx9_wave *w, const gfx9_inst *i, uint32_t k, uint32_t r) {
    const bool matrix = i->row->cost == COST_MFMA, writes = k == 0 && !matrix;
    const uint32_t reg = i->op[k].reg + r;
    if (matrix && k == 0) return 0;
    if (matrix && k == 3)
        return w->result_of[reg] == i->op[k].reg ? w->ready_as_own_c[reg]
                                                 : w->ready_as_c[gfx9_is_xdl(i)][reg];
    return writes && is_result(i) ? w->free[reg] : w->ready[reg];
}

/* Reports an instruction that accesses the result of a matrix instruction, or overwrites its C, too
 * early. Hardware does not stall here, so the program must insert wait states. */
static void check_states(gfx9_wave *w, const gfx9_inst *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const gfx9_operand *o = &i->op[k];
        for (uint32_t r = 0; o->place == VGPR && r < o->count; r++) {
            const uint64_t ready = ready_at(w, i, k, r);
            if (ready <= w->issued) continue;
            gfx9_stop(w, i,
                      "operand %u is used %llu wait states too early after a matrix instruction", k,
                      (unsigned long long)(ready - w->issued));
            return;
        }
    }
}

void gfx9_check_registers(gfx9_wave *w, const gfx9_inst *i) {
    if (i->vgprs > w->vgprs || i->agprs > w->agprs) {
        const bool v = i->vgprs > w->vgprs;
        gfx9_stop(w, i, "%c%u lies outside the wave's %u registers", v ? 'v' : 'a',
                  (v ? i->vgprs : i->agprs) - 1u, v ? w->vgprs : w->agprs);
        return;
    }
    if (w->group->checks & CHECK_STATES) {
        if (w->issued < w->matrix_until) check_states(w, i);
        gfx9_check_hazards(w, i);
    }
    for (uint32_t k = 0; w->pending_count && k < i->operand_count; k++) {
        if (!late(w, &i->op[k]) || only_loads(i, k)) continue;
        gfx9_stop(w, i, "operand %u is used before the s_waitcnt of its load", k);
        return;
    }
    if ((w->group->checks & CHECK_UNWRITTEN) &&
        (i->row->cost == COST_VMEM || i->row->cost == COST_LDS))
        check_written(w, i);
}

void gfx9_lds_late(gfx9_wave *w, uint32_t at, uint32_t bytes, int change) {
    for (uint32_t k = 0; w->group->shadow && k < bytes; k++)
        w->group->shadow[at + k].late = (uint8_t)(w->group->shadow[at + k].late + change);
}

/* Checks an access of wave `wave` to a byte of LDS for a race with an access of another wave since
 * the last barrier. `s` describes the earlier accesses to the byte. `write` is 0 if the wave now
 * reads, 1 if it writes and 2 if it uses an atomic. There is no race if both waves read, if both
 * use atomics, or if the wave writes the value that the byte already has (`same`). Returns NULL if
 * there is no race, else a word for the error message that says what the other wave did. */
static const char *conflict(const gfx9_shadow *s, uint32_t epoch, uint8_t wave, int write,
                            bool same) {
    if (s->write_epoch == epoch && s->writer != wave && !(write == 2 && s->atomic) &&
        !(write == 1 && same))
        return write ? "also written" : "written";
    if (write && !same && s->read_epoch == epoch && (s->reader != wave || s->readers))
        return "read";
    return NULL;
}

void gfx9_lds_touch(gfx9_wave *w, const gfx9_inst *i, uint32_t at, uint32_t bytes, uint32_t lane,
                    int write, const void *data) {
    gfx9_group *g = w->group;
    if (!g->shadow) return;
    const uint8_t wave = (uint8_t)w->id;
    for (uint32_t k = 0; k < bytes; k++) {
        gfx9_shadow *s = &g->shadow[at + k];
        if (s->late) {
            gfx9_stop(w, i, "lane %u: LDS 0x%x is used before the s_waitcnt of its load to LDS",
                      lane, at + k);
            return;
        }
        const bool same = data && g->lds[at + k] == ((const uint8_t *)data)[k];
        const char *other =
            g->checks & CHECK_RACES ? conflict(s, g->epoch, wave, write, same) : NULL;
        if (other) {
            gfx9_stop(w, i, "lane %u: LDS 0x%x is %s by another wave without a barrier between",
                      lane, at + k, other);
            return;
        }
        if (write != 1 && s->write_epoch == 0 && (g->checks & CHECK_UNWRITTEN)) {
            gfx9_stop(w, i, "lane %u: LDS 0x%x was never written", lane, at + k);
            return;
        }
        if (write)
            s->write_epoch = g->epoch, s->writer = wave, s->atomic = write == 2;
        else
            s->readers = s->read_epoch == g->epoch && (s->readers || s->reader != wave),
            s->read_epoch = g->epoch, s->reader = wave;
    }
}
