/* Declares the check of wait states between instructions that are no matrix instructions. */
#ifndef SIM_GFX9_HAZARDS_H
#define SIM_GFX9_HAZARDS_H
#include "sim.h"

/* Sets inst->hazards, which tells which rows of the table of hazards apply to the instruction, and
 * inst->effects, which tells how the instruction accesses registers. */
void gfx9_hazards_of(gfx9_inst *inst);
/* Stops the wave with an error if the instruction follows an instruction with which it has a hazard
 * without the wait states that hardware needs between the two. Otherwise records which registers
 * the instruction reads and writes. */
void gfx9_check_hazards(gfx9_wave *wave, const gfx9_inst *inst);
#endif
