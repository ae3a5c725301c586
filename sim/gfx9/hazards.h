/* Declares the check of wait states between instructions that are no matrix instructions. */
#ifndef SIM_GFX9_HAZARDS_H
#define SIM_GFX9_HAZARDS_H
#include "sim.h"

/* Sets inst->hazards, which tells which rows of the table of hazards apply to the instruction, and
 * inst->effects, which tells how the instruction accesses registers. */
void gfx9_hazards_of(gfx9_inst *inst);
/* Stops the wave if the instruction follows another one too closely. Otherwise records what the
 * instruction does to registers. */
void gfx9_check_hazards(gfx9_wave *wave, const gfx9_inst *inst);
#endif
