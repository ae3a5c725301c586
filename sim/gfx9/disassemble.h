/* Translates machine code to the text of its instructions. */
#ifndef SIM_GFX9_DISASSEMBLE_H
#define SIM_GFX9_DISASSEMBLE_H
#include "sim.h"

/* Receives each instruction, in order. `bytes` is 0 if there is no instruction. Returns false to
 * stop the disassembly. */
typedef bool (*gfx9_take_text)(void *user, uint64_t address, uint32_t bytes, const char *text);
bool gfx9_disassemble(const gfx9_object *object, gfx9_take_text take, void *user, char *error);
#endif
