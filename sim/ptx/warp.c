/* Runs a warp. Lanes at the same instruction execute it together. If lanes are at different
 * instructions, those at the earliest one in the text run first, so that the lanes meet again after
 * a branch. Lanes that repeatedly test an mbarrier let other lanes run first. */
#include "fidelity.h"
#include "loading.h"
#include "races.h"
#include "time.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#else
#    include <fenv.h>
#endif

void ptx_stop(ptx_warp *w, const ptx_inst *i, const char *format, ...) {
    if (w->stop == STOP_ERROR) return;
    w->stop = STOP_ERROR;
    const ptx_module *m = w->block->launch->module;
    const char *file = i->file < m->file_count && m->files[i->file] ? m->files[i->file] : NULL;
    char what[400], place[300] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (file) snprintf(place, sizeof place, " (%.250s:%u)", file, i->source_line);
    snprintf(w->block->error, ERROR_BYTES,
             "%s: kernel %.128s, PTX line %u%s, block %u %u %u, warp %u: %.*s", what,
             w->block->launch->kernel->name, i->line, place, w->block->id[0], w->block->id[1],
             w->block->id[2], w->id, i->length > 120 ? 120 : (int)i->length, m->text + i->text);
}

/* Sets the host's rounding mode. Bits 0 and 1 of `mode` select nearest even (0), toward zero (1),
 * down (2) or up (3). Bit 2 flushes subnormals to 0. */
void ptx_set_mode(ptx_warp *w, unsigned mode) {
    w->mode = (uint8_t)mode;
#if defined(__x86_64__)
    static const uint32_t rounding[] = {0, 3, 1, 2};
    _mm_setcsr(0x1f80u | rounding[mode & 3] << 13 | (mode & 4 ? 0x8040u : 0));
#else
    static const int rounding[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    fesetround(rounding[mode & 3]);
#endif
}

void ptx_commit(ptx_warp *w, const ptx_operand *o, const void *value) {
    const uint32_t mask = w->mask;
    if (o->place != REG) return;
    w->written[o->at / 128] |= mask;
    if (o->width == 8) {
        uint64_t *to = ptx_u64(w, o);
        const uint64_t *from = value;
        if (mask == ~0u) {
            memcpy(to, from, sizeof *to * LANES);
            return;
        }
        for (uint32_t l = 0; l < LANES; l++)
            to[l] = mask >> l & 1 ? from[l] : to[l];
        return;
    }
    uint32_t *to = ptx_u32(w, o);
    const uint32_t *from = value;
    if (mask == ~0u) {
        memcpy(to, from, sizeof *to * LANES);
        return;
    }
    for (uint32_t l = 0; l < LANES; l++)
        to[l] = mask >> l & 1 ? from[l] : to[l];
}

static uint32_t waiting(const ptx_warp *w) {
    return w->live & ~w->blocked & ~w->active;
}

/* Each inactive lane waits at an instruction. Returns the lowest index of such an instruction that
 * is at least `from`, or UINT32_MAX if there is none. */
static uint32_t next_wait(const ptx_warp *w, uint32_t from) {
    uint32_t lowest = UINT32_MAX;
    for (uint32_t rest = waiting(w); rest; rest &= rest - 1) {
        const uint32_t pc = w->lane_pc[ptx_first(rest)];
        if (pc >= from && pc < lowest) lowest = pc;
    }
    return lowest;
}

void ptx_leave(ptx_warp *w, uint32_t pc) {
    for (uint32_t rest = w->active; rest; rest &= rest - 1)
        w->lane_pc[ptx_first(rest)] = pc;
    w->active = 0;
}

/* Activates all lanes that wait at the instruction `pc`. Some of them may still have to wait for
 * other lanes in their member mask; they execute the instruction again, which repeats the test. */
static void take(ptx_warp *w, uint32_t pc) {
    for (uint32_t rest = waiting(w); rest; rest &= rest - 1) {
        const uint32_t l = ptx_first(rest);
        if (w->lane_pc[l] == pc) w->active |= 1u << l;
    }
    w->parked &= ~w->active;
    w->pc = pc;
}

void ptx_schedule(ptx_warp *w, bool rotate) {
    const uint32_t from = w->pc;
    if (w->active) ptx_leave(w, w->pc);
    uint32_t lowest = UINT32_MAX, after = UINT32_MAX;
    for (uint32_t rest = waiting(w) & ~w->parked; rest; rest &= rest - 1) {
        const uint32_t pc = w->lane_pc[ptx_first(rest)];
        if (pc < lowest) lowest = pc;
        if (pc > from && pc < after) after = pc;
    }
    if (lowest == UINT32_MAX) {
        w->stop = w->live ? STOP_BLOCKED : STOP_END;
        return;
    }
    w->rotated = rotate && after != UINT32_MAX;
    take(w, w->rotated ? after : lowest);
    w->join = next_wait(w, w->pc + 1);
}

/* Chooses the lanes of a divergent warp that run next. The function is called when the active lanes
 * have reached an instruction at which other lanes wait, or have jumped past it. In the first case,
 * all these lanes usually go on together. */
static void reconverge(ptx_warp *w) {
    if (w->join == w->pc) {
        take(w, w->pc);
        w->join = next_wait(w, w->rotated ? w->pc + 1 : 0);
        if (w->join >= w->pc || w->rotated) return;
    }
    ptx_schedule(w, false);
}

/* The active lanes are about to execute an instruction. Activates the lanes that wait at the same
 * instruction, so that all of them execute it together. Returns true if there were such lanes. */
static bool join_here(ptx_warp *w) {
    const uint32_t before = w->active, here = w->pc - 1;
    w->pc = here;
    take(w, here);
    if (w->active != before) {
        w->join = next_wait(w, here + 1);
        return true;
    }
    w->pc = here + 1;
    return false;
}

bool ptx_together(ptx_warp *w, const ptx_inst *i, uint32_t members) {
    if ((w->mask & ~members) != 0) {
        ptx_stop(w, i, "lane %u executes this, but is not in its member mask 0x%x",
                 ptx_first(w->mask & ~members), members);
        return false;
    }
    if ((members & w->live & ~w->mask) == 0) return true;
    if (join_here(w)) return false;
    const uint32_t here = w->active;
    ptx_leave(w, w->pc - 1);
    w->parked |= here;
    ptx_schedule(w, false);
    return false;
}

void ptx_retire(ptx_warp *w, uint32_t lanes) {
    w->live &= ~lanes;
    w->active &= ~lanes;
    /* Some lanes have ended. Lanes that waited for them at an instruction with a member mask now
     * try again to execute it. */
    w->parked = 0;
    ptx_schedule(w, false);
}

/* `traced` is a constant in each call. The compiler therefore makes one version of this function
 * that records what the warp does, and one that does not. */
static inline __attribute__((always_inline)) void run(ptx_warp *w, uint64_t budget, bool traced) {
    const ptx_module *m = w->block->launch->module;
    w->stop = STOP_NO;
    if (!w->active) ptx_schedule(w, false);
    for (uint64_t n = 0; n < budget && !w->stop; n++) {
        if (w->pc >= m->code_count) {
            ptx_stop(w, &m->code[m->code_count - 1], "the code ends without ret");
            return;
        }
        const ptx_inst *i = &m->code[w->pc++];
        uint32_t mask = w->active;
        if (i->guard >= 0) mask &= i->guard_not ? ~w->preds[i->guard] : w->preds[i->guard];
        w->steps++;
        if (traced) ptx_time_step(w, i);
        if (mask) {
            w->mask = mask;
            sim_record_step(i->opcode->record);
            if (!w->loading_end || ptx_loading_check(w, i)) i->execute(w, i);
            if (w->block->cluster->races) ptx_races_settle(w);
        }
        if (w->pc >= w->join && !w->stop) reconverge(w);
    }
}

void ptx_run(ptx_warp *w, uint64_t budget) {
    if (w->trace)
        run(w, budget, true);
    else
        run(w, budget, false);
}
