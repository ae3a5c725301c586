/* Declares the reader of a code object's line table, which maps instructions to lines of source. */
#ifndef SIM_GFX9_LINES_H
#define SIM_GFX9_LINES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds the sections .debug_line, .debug_line_str and .debug_str. A missing section has size 0. */
typedef struct {
    const uint8_t *line, *line_str, *str;
    size_t line_size, line_str_size, str_size;
} gfx9_debug;

typedef struct gfx9_lines gfx9_lines;
/* Reads the line table, which maps addresses of instructions to source lines, from the debug
 * sections of a code object. Returns NULL if memory runs out. */
gfx9_lines *gfx9_lines_read(const gfx9_debug *debug);
void gfx9_lines_free(gfx9_lines *lines);
/* Writes the source line of the instruction at `address` as text, such as "gemm.c:12". Returns
 * false if the table has no line for it. `lines` may be NULL. */
bool gfx9_line_of(const gfx9_lines *lines, uint64_t address, char *to, size_t room);
#endif
