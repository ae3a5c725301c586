/* Declares functions that read ELF files, i.e. cubins and AMD's code objects, in memory. The fake
 * drivers find the sizes of a kernel's parameters in these files. */
#ifndef FAKE_ELF_H
#define FAKE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool fake_elf_is(const void *image);

/* Returns the size of an ELF file in bytes, which is the end of its last part. */
size_t fake_elf_bytes(const void *image);

/* Returns the contents of the section of this name and sets *bytes to its size. Returns NULL if
 * there is none. */
const uint8_t *fake_elf_section(const void *image, const char *name, size_t *bytes);

#endif
