/* Reads an AMDHSA code object, i.e. its segments, symbols, kernel descriptors, relocations and
 * metadata. The reader checks every offset in the file before it uses the offset, so that a
 * damaged file gives an error instead of a crash. */
#include "lines.h"
#include "sim.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_AMDGPU = 224, FLAG_MACH = 0xff, MACH_GFX942 = 0x4c, MACH_GFX950 = 0x4f };
enum { NOTE_METADATA = 32, R_RELATIVE64 = 13, R_ABS64 = 3, MAX_IMAGE = 1 << 28 };

typedef struct {
    const uint8_t *bytes;
    size_t size;
    const Elf64_Ehdr *head;
} file;

static bool inside(uint64_t size, uint64_t at, uint64_t bytes) {
    return at <= size && bytes <= size - at;
}

static const char *check_header(const file *f, enum gfx9_arch arch) {
    const Elf64_Ehdr *h = f->head;
    if (f->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != MACHINE_AMDGPU || h->e_type != ET_DYN)
        return "not a loadable 64-bit AMDGPU object";
    if ((h->e_flags & FLAG_MACH) != (arch == GFX950 ? MACH_GFX950 : MACH_GFX942))
        return "made for another processor than the device";
    if (h->e_phentsize != sizeof(Elf64_Phdr) ||
        !inside(f->size, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr)))
        return "its program headers lie outside the file";
    if (h->e_shnum && (h->e_shentsize != sizeof(Elf64_Shdr) ||
                       !inside(f->size, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))))
        return "its section headers lie outside the file";
    return NULL;
}

static Elf64_Phdr segment(const file *f, uint32_t i) {
    Elf64_Phdr p;
    memcpy(&p, f->bytes + f->head->e_phoff + i * sizeof p, sizeof p);
    return p;
}

static Elf64_Shdr section(const file *f, uint32_t i) {
    Elf64_Shdr s;
    memcpy(&s, f->bytes + f->head->e_shoff + i * sizeof s, sizeof s);
    return s;
}

static const char *load_segments(const file *f, gfx9_object *object) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < f->head->e_phnum; i++) {
        const Elf64_Phdr p = segment(f, i);
        if (p.p_type != PT_LOAD) continue;
        if (!inside(f->size, p.p_offset, p.p_filesz) || p.p_filesz > p.p_memsz ||
            !inside(MAX_IMAGE, p.p_vaddr, p.p_memsz))
            return "a segment lies outside the file";
        if (p.p_vaddr + p.p_memsz > end) end = p.p_vaddr + p.p_memsz;
    }
    if (end == 0) return "it has no segments";
    object->image_size = (end + 15) / 16 * 16;
    object->image = sim_memory_alloc(object->image_size);
    if (!object->image) return "out of memory";
    memset(object->image, 0, object->image_size);
    for (uint32_t i = 0; i < f->head->e_phnum; i++) {
        const Elf64_Phdr p = segment(f, i);
        if (p.p_type == PT_LOAD)
            memcpy(object->image + p.p_vaddr, f->bytes + p.p_offset, p.p_filesz);
    }
    return NULL;
}

static const char *load_notes(const file *f, gfx9_object *object) {
    for (uint32_t i = 0; i < f->head->e_phnum; i++) {
        const Elf64_Phdr p = segment(f, i);
        if (p.p_type != PT_NOTE || !inside(f->size, p.p_offset, p.p_filesz)) continue;
        for (uint64_t at = 0; inside(p.p_filesz, at, 12);) {
            uint32_t n[3];
            memcpy(n, f->bytes + p.p_offset + at, 12);
            const uint64_t name = at + 12, desc = name + (n[0] + 3ull) / 4 * 4;
            if (!inside(p.p_filesz, desc, n[1])) return "a note lies outside its segment";
            if (n[2] == NOTE_METADATA && n[0] == 7 &&
                memcmp(f->bytes + p.p_offset + name, "AMDGPU", 7) == 0)
                return gfx9_metadata(object, f->bytes + p.p_offset + desc, n[1])
                           ? NULL
                           : "its metadata is damaged";
            at = desc + (n[1] + 3ull) / 4 * 4;
        }
    }
    return "it has no AMDGPU metadata";
}

static const char *read_descriptor(gfx9_object *object, gfx9_kernel *k, uint64_t at) {
    if (!inside(object->image_size, at, 64)) return "a kernel descriptor lies outside the image";
    const uint8_t *d = object->image + at;
    uint32_t rsrc3;
    int64_t entry;
    memcpy(&k->lds, d, 4), memcpy(&k->scratch, d + 4, 4), memcpy(&k->kernarg_size, d + 8, 4);
    memcpy(&entry, d + 16, 8), memcpy(&rsrc3, d + 44, 4), memcpy(&k->rsrc1, d + 48, 4);
    memcpy(&k->rsrc2, d + 52, 4), memcpy(&k->properties, d + 56, 2);
    memcpy(&k->preload, d + 58, 2);
    k->descriptor = at, k->entry = at + (uint64_t)entry;
    const uint32_t registers = 8 * ((k->rsrc1 & 63) + 1);
    k->vgprs = ((rsrc3 & 63) + 1) * 4;
    k->agprs = registers > k->vgprs ? registers - k->vgprs : 0;
    if (k->lds > MAX_LDS || k->scratch > 1 << 20 || k->kernarg_size > 1 << 16)
        return "a kernel descriptor is damaged";
    return k->entry % 4 || !inside(object->image_size, k->entry, 4)
               ? "a kernel's entry lies outside the image"
               : NULL;
}

/* Records a symbol if it names a function, a kernel or a variable. Returns an error message, or
 * NULL. `dynamic` tells if the symbol is from the dynamic symbol table. Only the full symbol table
 * has local functions. */
static const char *take_symbol(gfx9_object *object, const Elf64_Sym *s, const char *name,
                               bool dynamic) {
    const size_t length = strlen(name);
    const int type = ELF64_ST_TYPE(s->st_info);
    if (length >= 250) return "a symbol's name is too long";
    if (type == STT_FUNC) {
        for (uint32_t i = 0; i < object->function_count; i++)
            if (object->functions[i].start == s->st_value) return NULL;
        if (s->st_value % 4 || !inside(object->image_size, s->st_value, s->st_size))
            return "a function lies outside the image";
        gfx9_function *fn = &object->functions[object->function_count++];
        fn->start = s->st_value, fn->size = s->st_size;
        strcpy(fn->name, name);
    } else if (!dynamic) {
        return NULL;
    } else if (type == STT_OBJECT && length > 3 && strcmp(name + length - 3, ".kd") == 0) {
        for (uint32_t i = 0; i < object->kernel_count; i++) {
            gfx9_kernel *k = &object->kernels[i];
            if (strlen(k->name) == length - 3 && memcmp(k->name, name, length - 3) == 0)
                return read_descriptor(object, k, s->st_value);
        }
    } else if (type == STT_OBJECT && inside(object->image_size, s->st_value, s->st_size)) {
        strcpy(object->objects[object->object_count].name, name);
        object->objects[object->object_count].offset = s->st_value;
        object->objects[object->object_count++].size = s->st_size;
    }
    return NULL;
}

static const char *load_symbols(const file *f, gfx9_object *object, const Elf64_Shdr *table) {
    if (table->sh_link >= f->head->e_shnum || table->sh_entsize != sizeof(Elf64_Sym))
        return "its symbol table is damaged";
    const Elf64_Shdr names = section(f, table->sh_link);
    if (!inside(f->size, table->sh_offset, table->sh_size) ||
        !inside(f->size, names.sh_offset, names.sh_size) || names.sh_size == 0 ||
        f->bytes[names.sh_offset + names.sh_size - 1] != 0)
        return "its symbol table lies outside the file";
    const uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const bool dynamic = table->sh_type == SHT_DYNSYM;
    gfx9_function *more =
        realloc(object->functions, (object->function_count + count + 1) * sizeof *more);
    if (more) object->functions = more;
    if (dynamic && !object->objects) object->objects = calloc(count + 1, sizeof *object->objects);
    if (!more || !object->objects)
        return dynamic ? "out of memory" : "its full symbol table comes before the dynamic one";
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Sym s;
        memcpy(&s, f->bytes + table->sh_offset + i * sizeof s, sizeof s);
        if (s.st_name >= names.sh_size) return "a symbol's name lies outside its table";
        if (s.st_shndx == SHN_UNDEF) continue;
        const char *wrong =
            take_symbol(object, &s, (const char *)f->bytes + names.sh_offset + s.st_name, dynamic);
        if (wrong) return wrong;
    }
    /* The functions of a damaged file may overlap, or lie in a memory image that is far larger than
     * the file. A small file could then have a huge amount of code to decode. The code of all
     * functions may therefore not be larger than the file. */
    uint64_t code = 0;
    for (uint32_t i = 0; i < object->function_count; i++)
        code += object->functions[i].size;
    return code > f->size ? "its functions are larger than the file" : NULL;
}

static const char *relocate(const file *f, gfx9_object *object, const Elf64_Shdr *table) {
    if (!inside(f->size, table->sh_offset, table->sh_size))
        return "its relocations lie outside the file";
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table->sh_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        memcpy(&r, f->bytes + table->sh_offset + at, sizeof r);
        if (ELF64_R_TYPE(r.r_info) != R_RELATIVE64 || !inside(object->image_size, r.r_offset, 8))
            return "it has a relocation that is not relative";
        const uint64_t value = (uint64_t)(uintptr_t)object->image + (uint64_t)r.r_addend;
        memcpy(object->image + r.r_offset, &value, 8);
    }
    return NULL;
}

/* Reads the line table from the debug sections. If the code object has no line table, or a damaged
 * one, its instructions have no lines. This is no error. */
static void load_lines(const file *f, gfx9_object *object) {
    gfx9_debug d = {0};
    const struct {
        const char *name;
        const uint8_t **bytes;
        size_t *size;
    } wanted[] = {{".debug_line", &d.line, &d.line_size},
                  {".debug_line_str", &d.line_str, &d.line_str_size},
                  {".debug_str", &d.str, &d.str_size}};
    if (f->head->e_shstrndx >= f->head->e_shnum) return;
    const Elf64_Shdr names = section(f, f->head->e_shstrndx);
    if (!inside(f->size, names.sh_offset, names.sh_size)) return;
    for (uint32_t i = 0; i < f->head->e_shnum; i++) {
        const Elf64_Shdr s = section(f, i);
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            const size_t length = strlen(wanted[k].name) + 1;
            if (s.sh_type == SHT_PROGBITS && !(s.sh_flags & SHF_COMPRESSED) &&
                inside(names.sh_size, s.sh_name, length) &&
                memcmp(f->bytes + names.sh_offset + s.sh_name, wanted[k].name, length) == 0 &&
                inside(f->size, s.sh_offset, s.sh_size))
                *wanted[k].bytes = f->bytes + s.sh_offset, *wanted[k].size = s.sh_size;
        }
    }
    object->lines = gfx9_lines_read(&d);
}

static const char *load(const file *f, gfx9_object *object) {
    const char *wrong = check_header(f, object->arch);
    if (!wrong) wrong = load_segments(f, object);
    if (!wrong) wrong = load_notes(f, object);
    bool symbols = false, full = false;
    for (uint32_t i = 0; !wrong && i < f->head->e_shnum; i++) {
        const Elf64_Shdr s = section(f, i);
        if (s.sh_type == SHT_DYNSYM ? !symbols : s.sh_type == SHT_SYMTAB && symbols && !full)
            full = s.sh_type == SHT_SYMTAB, symbols = true, wrong = load_symbols(f, object, &s);
        if (!wrong && s.sh_type == SHT_RELA && (s.sh_flags & SHF_ALLOC))
            wrong = relocate(f, object, &s);
    }
    for (uint32_t i = 0; !wrong && i < object->kernel_count; i++)
        if (object->kernels[i].entry == 0) wrong = "a kernel has no descriptor";
    return wrong ? wrong : symbols ? NULL : "it has no dynamic symbols";
}

gfx9_object *gfx9_load(const void *bytes, size_t size, enum gfx9_arch arch, char *error) {
    gfx9_object *object = calloc(1, sizeof *object);
    Elf64_Ehdr head = {0};
    if (!object) return NULL;
    memcpy(&head, bytes, size < sizeof head ? size : sizeof head);
    const file f = {bytes, size, &head};
    object->arch = arch;
    const char *wrong = load(&f, object);
    if (wrong) snprintf(error, 256, "code object: %s", wrong);
    if (!wrong) load_lines(&f, object);
    if (!wrong && gfx9_decode(object, error)) return object;
    gfx9_unload(object);
    return NULL;
}

void gfx9_unload(gfx9_object *object) {
    for (uint32_t i = 0; i < object->code_count; i++)
        free(object->code[i].text);
    for (uint32_t i = 0; i < object->kernel_count; i++)
        free(object->kernels[i].args);
    if (object->image) sim_memory_free(object->image);
    gfx9_lines_free(object->lines);
    free(object->kernels), free(object->functions), free(object->objects), free(object->code),
        free(object->index);
    free(object);
}
