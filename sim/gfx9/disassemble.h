/* Declares the disassembler, which translates machine code to the text of its instructions. */
#ifndef SIM_GFX9_DISASSEMBLE_H
#define SIM_GFX9_DISASSEMBLE_H
#include "sim.h"

/* A function of this type receives each instruction from the disassembler, in order. `bytes` is 0
 * if the code at `address` is no instruction. The disassembly stops if the function returns
 * false. */
typedef bool (*gfx9_take_text)(void *user, uint64_t address, uint32_t bytes, const char *text);
bool gfx9_disassemble(const gfx9_object *object, gfx9_take_text take, void *user, char *error);
#endif
