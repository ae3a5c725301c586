/* Runs a wave: executes its decoded instructions until the wave ends, waits or fails. */
#include "lines.h"
#include "time.h"
#include <stdarg.h>
#include <stdio.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

void gfx9_stop(gfx9_wave *w, const gfx9_inst *i, const char *format, ...) {
    if (w->stop == STOP_ERROR) return;
    w->stop = STOP_ERROR;
    char what[160];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    char line[64];
    const bool known = gfx9_line_of(w->group->object->lines, i->address, line, sizeof line);
    snprintf(w->group->error, 512, "%s: %.128s: at 0x%llx%s%s, wave %u: %.110s", what,
             w->group->kernel->name, (unsigned long long)i->address, known ? ", " : "",
             known ? line : "", w->id, i->text);
}

#if defined(__x86_64__)
/* Sets the host's rounding mode and its handling of subnormals as the wave's MODE register says,
 * for f32 or f64 instructions. */
static void set_host_mode(uint32_t mode, bool f64) {
    /* Maps the rounding modes of GFX9 (0 is nearest even, 1 is up, 2 is down, 3 is toward zero) to
     * the rounding modes of the x86 register MXCSR. */
    static const uint32_t rounding[] = {0, 2, 1, 3};
    const uint32_t round = mode >> (f64 ? 2 : 0) & 3, denormals = mode >> (f64 ? 6 : 4) & 3;
    const uint32_t flush = (denormals & 1 ? 0 : 0x40u) | (denormals & 2 ? 0 : 0x8000u);
    _mm_setcsr(0x1f80u | rounding[round] << 13 | flush);
}
#else
static void set_host_mode(uint32_t mode, bool f64) {
    (void)mode, (void)f64;
}
#endif

static bool uses_f64(const gfx9_row *row) {
    return row->cost == COST_VALU64 || row->a == F64;
}

enum { PLAIN_MODE = 0xf0 };

static void step(gfx9_wave *w, const gfx9_inst *i) {
    if (!i->row) {
        gfx9_stop(w, i, "this instruction is not executed: no row of the tables has it");
        return;
    }
    if (w->group->checks) gfx9_check_registers(w, i);
    if (w->stop) return;
    if ((w->mode & 0xff) != PLAIN_MODE) set_host_mode(w->mode, uses_f64(i->row));
    sim_record_step(i->record);
    i->row->execute(w, i);
    if ((w->mode & 0xff) != PLAIN_MODE) set_host_mode(PLAIN_MODE, false);
}

void gfx9_run(gfx9_wave *w, uint64_t budget) {
    const gfx9_object *object = w->group->object;
    w->stop = STOP_NO;
    for (uint64_t n = 0; n < budget && !w->stop; n++) {
        const gfx9_inst *i = &object->code[w->pc++];
        w->steps++, w->issued++;
        if (w->trace && i->row) gfx9_trace_step(w, i);
        step(w, i);
        if (w->pc >= object->code_count && !w->stop)
            gfx9_stop(w, i, "the code ends without s_endpgm");
    }
}
