/* Translates machine code to the text of its instructions. */
#ifndef SIM_GFX9_DISASSEMBLE_H
#define SIM_GFX9_DISASSEMBLE_H
#include "sim.h"

/* A callback that receives each instruction, in order. `bytes` is 0 if the code at `address` is no
 * instruction. If the callback returns false, the disassembly stops. */
typedef bool (*gfx9_take_text)(void *user, uint64_t address, uint32_t bytes, const char *text);
bool gfx9_disassemble(const gfx9_object *object, gfx9_take_text take, void *user, char *error);
#endif
