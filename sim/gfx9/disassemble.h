/* Bytes of code to text. */
#ifndef SIM_GFX9_DISASSEMBLE_H
#define SIM_GFX9_DISASSEMBLE_H
#include "sim.h"

/* Is given each instruction in order; `bytes` is 0 where there is none. Returns false to end. */
typedef bool (*gfx9_take_text)(void *user, uint64_t address, uint32_t bytes, const char *text);
bool gfx9_disassemble(const gfx9_object *object, gfx9_take_text take, void *user, char *error);
#endif
