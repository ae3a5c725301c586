/* Records the instructions of a wave for the time model. Bank conflicts and cache lines depend on
 * addresses, so this file computes them while the wave executes. */
#include "time.h"
#include <stdlib.h>
#include <string.h>

/* Enlarges an array if it has no room for `more` further elements of `size` bytes. */
static bool grow(void **array, size_t count, size_t *room, size_t more, size_t size) {
    if (count + more <= *room) return true;
    const size_t wanted = 2 * (count + more) + 1024;
    void *made = realloc(*array, wanted * size);
    if (!made) return false;
    *array = made, *room = wanted;
    return true;
}

/* LDS serves a wave's 128-bit read in several phases. This table gives the phase for each group of
 * four lanes on gfx942 and gfx950. The source is lds_summary.md of the nod-ai guide, which has
 * measurements. */
static const uint8_t wide_phases[2][16] = {{0, 2, 4, 6, 2, 0, 6, 4, 1, 3, 5, 7, 3, 1, 7, 5},
                                           {0, 2, 2, 0, 2, 0, 0, 2, 1, 3, 3, 1, 3, 1, 1, 3}};

static uint32_t phase_of(enum gfx9_arch arch, bool read, uint32_t words, uint32_t lane) {
    if (read && words > 2) return wide_phases[arch == GFX950][lane / 4];
    const uint32_t phases = read ? gfx9_device_of(arch)->lds_read_phases : 2;
    return lane * phases * (words > 2 ? 4 : words) / LANES;
}

/* Holds the addresses at which all lanes access LDS. A lane without a bit in `exec` is inactive. */
typedef struct {
    const uint32_t *address;
    uint64_t exec;
    uint32_t offset, words;
    bool read;
} lds_access;

/* Returns the cycles of one phase of an LDS access. A bank delivers one 32-bit word per cycle, to
 * all lanes that want this word. The phase therefore takes as many cycles as the largest number of
 * words that one bank delivers. */
static uint32_t phase_cycles(enum gfx9_arch arch, const lds_access *a, uint32_t phase) {
    const uint32_t banks = gfx9_device_of(arch)->lds_banks;
    uint32_t seen[64][LANES], count[64] = {0}, most = 1;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(a->exec >> l & 1) || phase_of(arch, a->read, a->words, l) != phase) continue;
        for (uint32_t k = 0; k < a->words; k++) {
            const uint32_t word = (a->address[l] + a->offset) / 4 + k, bank = word % banks;
            uint32_t n = 0;
            while (n < count[bank] && seen[bank][n] != word)
                n++;
            if (n == count[bank] && n < LANES) seen[bank][count[bank]++] = word;
            if (count[bank] > most) most = count[bank];
        }
    }
    return most;
}

static void add_cycles(enum gfx9_arch arch, const lds_access *a, gfx9_event *e) {
    const uint32_t phases = phase_of(arch, a->read, a->words, LANES - 1) + 1;
    const uint32_t all = a->read && a->words > 2 ? arch == GFX950 ? 4 : 8 : phases;
    for (uint32_t p = 0; p < all; p++) {
        const uint32_t cycles = phase_cycles(arch, a, p);
        e->low = (uint16_t)(e->low + cycles), e->high = (uint16_t)(e->high + cycles - 1);
    }
}

/* Computes the cycles of an LDS instruction. Instructions that move data between lanes access no
 * bank, so they count as a 32-bit access without conflicts. */
static void record_lds(const gfx9_wave *w, const gfx9_inst *i, gfx9_event *e) {
    const gfx9_row *row = i->row;
    const enum gfx9_arch arch = w->group->object->arch;
    const bool read = strncmp(row->name, "ds_read", 7) == 0,
               write = strncmp(row->name, "ds_write", 8) == 0;
    const gfx9_operand *o = &i->op[read ? 1 : write ? 0 : row->form & 1];
    lds_access a = {w->v[o->reg], gfx9_exec(w), 0, ((uint32_t)row->size + 3) / 4, read};
    if (strstr(row->name, "perm") || strstr(row->name, "swizzle") || row->size == 0) a.exec = 0;
    if (o->place != VGPR) a.exec = 0, a.address = w->v[0];
    const uint32_t scale = read || write ? (uint32_t)row->what : 0;
    a.offset = (uint32_t)i->offset * (scale ? scale : 1);
    add_cycles(arch, &a, e);
    a.offset = (uint32_t)i->offset1 * scale;
    if (scale) add_cycles(arch, &a, e);
}

void gfx9_trace_step(gfx9_wave *w, const gfx9_inst *i) {
    struct gfx9_trace *t = w->trace;
    if (!grow((void **)&t->events, t->count, &t->room, 1, sizeof *t->events)) {
        t->failed = true, w->trace = NULL;
        return;
    }
    gfx9_event *e = &t->events[t->count++];
    *e = (gfx9_event){(uint32_t)(i - w->group->object->code), 0, 0};
    if (i->row->cost == COST_LDS) record_lds(w, i, e);
}

/* Cache lines of scratch memory have numbers from scratch_lines on. The lines of device memory have
 * smaller numbers, because device memory is one range of 2^38 bytes. One 32-bit word of each lane
 * takes WORD_LINES cache lines. */
enum { WORD_LINES = LANES * 4 / LINE };
static const uint32_t scratch_lines = 1u << 31;

/* Returns the number of the cache line in which the byte `at` of lane `lane` lies. In scratch
 * memory, each lane has its own bytes, and the simulator stores them lane by lane. Hardware
 * interleaves the lanes: memory has the first 32-bit word of all lanes, then the second word of all
 * lanes, and so on. The function computes the line from the hardware's order. */
static uint32_t line_of(const gfx9_wave *w, const uint8_t *at, uint32_t lane) {
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)w->scratch;
    if (!w->scratch || offset >= (size_t)LANES * w->scratch_size)
        return (uint32_t)((uintptr_t)at / LINE) & (scratch_lines - 1);
    const uint32_t words = (w->scratch_size + 3) / 4,
                   word = (uint32_t)(offset - (size_t)lane * w->scratch_size) / 4;
    return scratch_lines |
           ((w->trace->number * words + word) * WORD_LINES + lane / (LANES / WORD_LINES));
}

static bool in_lds(const gfx9_wave *w, const uint8_t *at) {
    return (uintptr_t)at - (uintptr_t)w->group->lds < w->group->lds_size;
}

void gfx9_trace_lines(gfx9_wave *w, uint8_t *const at[LANES], uint64_t active, uint32_t bytes) {
    struct gfx9_trace *t = w->trace;
    uint32_t n = 0, total = 0;
    if (!grow((void **)&t->lines, t->line_count, &t->line_room, (size_t)4 * LANES,
              sizeof *t->lines)) {
        t->failed = true, w->trace = NULL;
        return;
    }
    uint32_t *lines = t->lines + t->line_count;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(active >> l & 1) || !at[l] || in_lds(w, at[l])) continue;
        total += bytes;
        for (uint32_t from = 0; from < bytes; from += 4) {
            const uint32_t line = line_of(w, at[l] + from, l);
            uint32_t k = n;
            while (k > 0 && lines[k - 1] != line)
                k--;
            if (k == 0) lines[n++] = line;
        }
    }
    t->line_count += n;
    t->events[t->count - 1].low = (uint16_t)n, t->events[t->count - 1].high = (uint16_t)total;
}
