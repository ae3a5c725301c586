#include "fake_parameters.h"

#include "fake_elf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_size(fake_kernel *k, uint32_t i, uint32_t bytes) {
    if (i >= FAKE_MOST_PARAMETERS) abort();
    k->sizes[i] = bytes;
    if (i >= k->count) k->count = i + 1;
}

/* Reads the section .nv.info.KERNEL of a cubin. It is a list of entries. An entry has a form (1
 * byte), an attribute (1 byte) and a number (2 bytes). If the form is 4, a value follows, and the
 * number is the size of this value. The attribute 0x17 describes a parameter. Its value is an index
 * (4 bytes), the number of the parameter (2 bytes), its offset (2 bytes), and a word whose bits
 * from 18 on are the size of the parameter in bytes. */
static void read_cubin(const void *image, fake_kernel *k) {
    enum { HAS_VALUE = 4, PARAMETER = 0x17, SIZE_SHIFT = 18 };
    char section[FAKE_MOST_KERNEL_NAME + 16];
    size_t bytes = 0, at = 0;
    snprintf(section, sizeof section, ".nv.info.%s", k->name);
    const uint8_t *const info = fake_elf_section(image, section, &bytes);
    while (info && at + 4 <= bytes) {
        uint16_t size, number;
        uint32_t word;
        memcpy(&size, info + at + 2, sizeof size);
        if (info[at] == HAS_VALUE && info[at + 1] == PARAMETER) {
            memcpy(&number, info + at + 8, sizeof number);
            memcpy(&word, info + at + 12, sizeof word);
            set_size(k, number, word >> SIZE_SHIFT);
        }
        at += 4 + (info[at] == HAS_VALUE ? (size_t)size : 0);
    }
}

/* Returns the size in bytes of a parameter from its declaration in PTX, such as `.param .u64 name`
 * or `.param .align 8 .b8 name[584]`. */
static uint32_t size_of_declared(const char *parameter) {
    const char *const array = strchr(parameter, '['), *const end = strpbrk(parameter, ",)");
    if (array && array < end) return (uint32_t)atoi(array + 1);
    const char *const type = strpbrk(parameter + 1, "usfb");
    return type ? (uint32_t)atoi(type + 1) / 8 : 0;
}

/* Reads `.entry KERNEL(` and the declarations that follow up to the closing parenthesis. */
static void read_ptx(const char *text, fake_kernel *k) {
    char head[FAKE_MOST_KERNEL_NAME + 16];
    snprintf(head, sizeof head, ".entry %s(", k->name);
    const char *at = strstr(text, head);
    const char *const end = at ? strchr(at + strlen(head), ')') : NULL;
    for (uint32_t i = 0; end && (at = strstr(at, ".param ")) && at < end; i++) {
        at += strlen(".param ");
        set_size(k, i, size_of_declared(at));
    }
}

/* Decodes the MessagePack number at `at`. The number must be below 2^32. */
static uint32_t packed_number(const uint8_t *at) {
    const uint32_t bytes = *at == 0xcc ? 1 : *at == 0xcd ? 2 : *at == 0xce ? 4 : 0;
    uint32_t value = bytes ? 0 : *at;
    for (uint32_t i = 1; i <= bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static bool is_key(const uint8_t *at, const uint8_t *end, const char *key) {
    const size_t count = strlen(key);
    return (size_t)(end - at) > count + 1 && *at == (0xa0 | count) &&
           memcmp(at + 1, key, count) == 0;
}

static bool is_text(const uint8_t *at, const uint8_t *end, const char *text) {
    const size_t count = strlen(text), head = count < 32 ? 1 : 2;
    return (size_t)(end - at) > count + head &&
           at[head - 1] == (count < 32 ? 0xa0 | count : count) &&
           memcmp(at + head, text, count) == 0;
}

/* Reads the metadata of a code object, which is MessagePack. The keys of a kernel are sorted, so
 * that the sizes of its arguments precede its name. */
static void read_code_object(const void *image, fake_kernel *k) {
    size_t bytes = 0;
    const uint8_t *at = fake_elf_section(image, ".note", &bytes);
    const uint8_t *const end = at + bytes;
    for (; at && at < end; at++) {
        if (is_key(at, end, ".args")) k->count = 0;
        if (is_key(at, end, ".size")) set_size(k, k->count, packed_number(at + 6));
        if (is_key(at, end, ".name") && is_text(at + 6, end, k->name)) return;
    }
    k->count = 0;
}

void fake_parameters_find(const void *image, fake_kernel *k) {
    size_t bytes;
    k->count = 0;
    if (!fake_elf_is(image))
        read_ptx(image, k);
    else if (fake_elf_section(image, ".note", &bytes) &&
             !fake_elf_section(image, ".nv.info", &bytes))
        read_code_object(image, k);
    else
        read_cubin(image, k);
}

fake_kernel *fake_kernel_new(const void *image, const char *name) {
    enum { MOST_KERNELS = 4096 };
    static fake_kernel kernels[MOST_KERNELS];
    static size_t count;
    if (count == MOST_KERNELS || strlen(name) >= FAKE_MOST_KERNEL_NAME) return NULL;
    fake_kernel *const k = &kernels[count++];
    snprintf(k->name, sizeof k->name, "%s", name);
    fake_parameters_find(image, k);
    return k;
}
