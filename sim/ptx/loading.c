/* Finds kernels that use the result of a tcgen05.ld before they have waited for it. A GPU writes
 * the registers of a tcgen05.ld at any time before the next tcgen05.wait::ld. The simulator writes
 * them at once, so its results would be right even if the wait is missing. It therefore marks the
 * registers as pending until the wait, and stops a warp that reads a pending register with an error
 * message. */
#include "loading.h"
#include <string.h>

void ptx_loading_mark(ptx_warp *w, const ptx_inst *i, const ptx_operand *o) {
    const uint32_t number = o->at / 128;
    if (o->place != REG || !(w->block->launch->checks & CHECK_LOADING)) return;
    w->loading[number] = i->line;
    if (w->loading_end == 0 || number < w->loading_begin) w->loading_begin = number;
    if (number >= w->loading_end) w->loading_end = number + 1;
}

void ptx_loading_end(ptx_warp *w) {
    if (w->loading_end)
        memset(w->loading + w->loading_begin, 0,
               (w->loading_end - w->loading_begin) * sizeof *w->loading);
    w->loading_begin = w->loading_end = 0;
}

/* Returns the PTX line of the pending tcgen05.ld that loads a register of the operand, or 0 if
 * there is none. */
static uint32_t line_of(const ptx_warp *w, const ptx_operand *o) {
    uint32_t line = o->place == REG || o->place == ADDRESS ? w->loading[o->at / 128] : 0;
    if (o->place != VECTOR && o->place != ADDRESS) return line;
    for (uint32_t k = 0; k < o->count && !line; k++)
        line = line_of(w, &o->elements[k]);
    return line;
}

/* Returns true if an instruction reads its operand number `number`. The letters of a table entry
 * are explained in bind.c. */
static bool is_read(const ptx_row *row, uint32_t number) {
    if (!row->operands) return number > 0;
    for (const char *s = row->operands; *s; s++) {
        if (*s == '|' || *s == '?') continue;
        if (number-- == 0) return (*s >= 'A' && *s <= 'Z') || *s == 'm';
    }
    return false;
}

static bool is_mov(const ptx_inst *i) {
    return strncmp(i->opcode->text, "mov.", 4) == 0;
}

/* A marked register is one that a tcgen05.ld is still loading. Marks the results of a mov if a
 * source is marked, and unmarks them otherwise. */
static void pass_on(ptx_warp *w, const ptx_inst *i) {
    const ptx_operand *to = &i->op[0], *from = &i->op[1];
    const uint32_t count = to->place == VECTOR ? to->count : 1;
    const uint32_t line = line_of(w, from);
    for (uint32_t k = 0; k < count; k++) {
        const ptx_operand *o = ptx_element(to, k);
        if (o->place != REG) continue;
        if (line)
            ptx_loading_mark(w, i, o);
        else
            w->loading[o->at / 128] = 0;
    }
}

bool ptx_loading_check(ptx_warp *w, const ptx_inst *i) {
    if (is_mov(i)) {
        pass_on(w, i);
        return true;
    }
    for (uint32_t k = 0; k < i->count; k++) {
        const uint32_t line = is_read(i->opcode->row, k) ? line_of(w, &i->op[k]) : 0;
        if (!line) continue;
        ptx_stop(w, i, "a register that PTX line %u loads is read before tcgen05.wait::ld", line);
        return false;
    }
    return true;
}
