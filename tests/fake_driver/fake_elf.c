#include "fake_elf.h"

#include <elf.h>
#include <string.h>

bool fake_elf_is(const void *image) {
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

static const Elf64_Shdr *section_at(const void *image, size_t i) {
    const Elf64_Ehdr *const head = image;
    const uint8_t *const first = (const uint8_t *)image + head->e_shoff;
    return i < head->e_shnum ? (const Elf64_Shdr *)(const void *)first + i : NULL;
}

size_t fake_elf_bytes(const void *image) {
    const Elf64_Ehdr *const head = image;
    const size_t sections = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    const size_t programs = head->e_phoff + (size_t)head->e_phnum * head->e_phentsize;
    size_t bytes = sections > programs ? sections : programs;
    const Elf64_Shdr *s;
    for (size_t i = 0; (s = section_at(image, i)); i++)
        if (s->sh_type != SHT_NOBITS && s->sh_offset + s->sh_size > bytes)
            bytes = s->sh_offset + s->sh_size;
    return bytes;
}

static const Elf64_Shdr *find_section(const void *image, const char *name) {
    const Elf64_Ehdr *const head = image;
    const Elf64_Shdr *s;
    const char *const names = (const char *)image + section_at(image, head->e_shstrndx)->sh_offset;
    for (size_t i = 0; (s = section_at(image, i)); i++)
        if (strcmp(names + s->sh_name, name) == 0) return s;
    return NULL;
}

const uint8_t *fake_elf_section(const void *image, const char *name, size_t *bytes) {
    const Elf64_Shdr *const s = find_section(image, name);
    if (!s) return NULL;
    *bytes = s->sh_size;
    return (const uint8_t *)image + s->sh_offset;
}
