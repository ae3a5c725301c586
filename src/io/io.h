/* Files: mapped bytes, the tensors that they hold, and the weights recognised among them. */
#ifndef BSMM_IO_H
#define BSMM_IO_H

#include "format/format.h"

/* Headers longer than this are refused, as the reference implementation of safetensors does. */
#define BSMM_HEADER_LIMIT 100000000u

/* ---- memory that lives as long as a file or a writer (arena.c) ---- */

typedef struct bsmm_arena {
    struct bsmm_arena_chunk *head;
} bsmm_arena;
void *bsmm_arena_take(bsmm_arena *arena, size_t bytes); /* aligned to 16, zeroed; NULL: no memory */
char *bsmm_arena_text(bsmm_arena *arena, const char *text, size_t length); /* NULL: no memory */
char *bsmm_arena_join(bsmm_arena *arena, const char *a, size_t a_length, const char *b);
void bsmm_arena_free(bsmm_arena *arena);

/* MEMORY, "out of memory". */
bsmm_status bsmm_fail_memory(void);

/* Grows *items (of item_bytes each) so that it holds count + 1. */
bsmm_status bsmm_grow(void **items, uint64_t count, uint64_t *room, size_t item_bytes);

/* ---- the operating system (map.c) ---- */

typedef struct bsmm_map {
    const char *path; /* the caller's, not copied */
    const uint8_t *data;
    size_t bytes;
} bsmm_map;
bsmm_status bsmm_map_open(const char *path, bsmm_map *map); /* a regular file, read-only */
void bsmm_map_close(bsmm_map *map);
/* Lets go of the pages that were read; they come back when they are read again. */
void bsmm_map_release(const bsmm_map *map);

/* IO: "path: cannot <verb>: <the system's reason for `error`>". */
bsmm_status bsmm_fail_system(const char *path, const char *verb, int error);

/* Little-endian values at any address. */
uint32_t bsmm_load_u32(const uint8_t *from);
uint64_t bsmm_load_u64(const uint8_t *from);

/* ---- types (dtype.c) ---- */

typedef struct bsmm_dtype {
    const char *name; /* as safetensors spells it */
    uint32_t bits;
    uint32_t elem;   /* bsmm_elem, E8M0 included; NONE: not a float of this library */
    const char *npy; /* as numpy spells it, NULL: numpy has none */
} bsmm_dtype;
/* Rows are in the reference writer's order of types. */
const bsmm_dtype *bsmm_dtype_at(size_t index);         /* NULL past the last */
const bsmm_dtype *bsmm_dtype_find(const char *name);   /* NULL if there is none */
const bsmm_dtype *bsmm_dtype_of_elem(uint32_t elem);   /* NULL if there is none */
const bsmm_dtype *bsmm_dtype_of_scale(uint32_t scale); /* NULL if there is none */

/* Checks ndim (at most BSMM_MAX_DIMS) and shape, and gives the product and the bytes that so many
 * elements take. `status` is what a failure returns; `what` names the tensor. */
bsmm_status bsmm_shape_bytes(bsmm_status status, const char *what, const bsmm_dtype *dtype,
                             uint32_t ndim, const int64_t *shape, uint64_t *bytes);

/* "[2, 3]" into text, shortened to fit. */
void bsmm_shape_text(uint32_t ndim, const int64_t *shape, char *text, size_t size);

/* ---- text ---- */

bool bsmm_text_is_utf8(const char *text, size_t length); /* and holds no NUL */
bool bsmm_text_ends(const char *text, const char *suffix);

/* ---- an open file (file.c) ---- */

/* Something with a name in a list sorted by name. */
typedef struct bsmm_name {
    const char *name;
    uint64_t index;
} bsmm_name;
bsmm_status bsmm_names_sort(bsmm_name *names, uint64_t count); /* equal names by index */
/* The first that is not before the first `base` characters of a name and a suffix. */
uint64_t bsmm_names_find(const bsmm_name *names, uint64_t count, const char *name, size_t base,
                         const char *suffix);
/* Whether it is that name. */
bool bsmm_name_is(const char *candidate, const char *name, size_t base, const char *suffix);

/* A value as it lies in the file. Types are GGUF's numbers (value.c). */
typedef struct bsmm_stored_value {
    const uint8_t *at; /* a number, the bytes of a string, the first item of an array */
    uint64_t count;    /* bytes of a string, items of an array, else 1 */
    uint32_t type, item_type;
} bsmm_stored_value;

enum { BSMM_GGUF_STRING = 8, BSMM_GGUF_ARRAY = 9 };

/* Bytes of a number of a GGUF type; 0 for strings, arrays and unknown types. */
uint32_t bsmm_gguf_number_bytes(uint32_t type);

typedef struct bsmm_pair {
    const char *key, *value; /* value NULL: no text without NUL */
    bsmm_stored_value stored;
} bsmm_pair;

struct bsmm_record; /* family.h */

struct bsmm_file {
    const char *kind;
    const char *folder; /* where the file lies; NULL when it came from memory */
    bool merged;        /* several headers: of equal metadata keys the first stays */
    bsmm_arena arena;
    bsmm_map *maps;
    uint64_t map_count, map_room;
    bsmm_tensor *tensors; /* in the order of their bytes, empty ones as the header has them */
    uint64_t tensor_count, tensor_room;
    bsmm_name *by_name;  /* of tensors */
    bsmm_pair *metadata; /* value NULL: a key whose value is no text */
    uint64_t metadata_count, metadata_room;
    struct bsmm_record *weights; /* in the order of their element tensors */
    uint64_t weight_count, weight_room;
    bsmm_name *weights_by_name;
};

void bsmm_file_clear(bsmm_file *file); /* frees what it holds */
bsmm_status bsmm_file_map(bsmm_file *file, const char *path,
                          bsmm_map *map); /* also in file->maps */
bsmm_status bsmm_file_add_tensor(bsmm_file *file, const bsmm_tensor *tensor); /* its name stays */
/* Sorts the tensors by their bytes; those that begin and end together keep their order. */
bsmm_status bsmm_file_order(bsmm_file *file);
/* Copies the key, and a text that is UTF-8 without NUL. Other values stay where they lie; they must
 * live as long as the file. */
bsmm_status bsmm_file_add_metadata(bsmm_file *file, const char *key, size_t key_length,
                                   const bsmm_stored_value *value);
bsmm_status bsmm_file_add_text(bsmm_file *file, const char *key, const char *text, size_t length);
const bsmm_pair *bsmm_file_pair(const bsmm_file *file, const char *key); /* NULL if absent */
/* Sorts names and keys and refuses duplicates. */
bsmm_status bsmm_file_index(bsmm_file *file);
/* The tensor of a name, or of the first `base` characters of a name and a suffix;
 * BSMM_NO_TENSOR: none. */
uint64_t bsmm_file_lookup(const bsmm_file *file, const char *name);
uint64_t bsmm_file_sibling(const bsmm_file *file, const char *name, size_t base,
                           const char *suffix);

/* ---- formats: each adds the tensors and metadata that it finds in a range of memory ---- */

bsmm_status bsmm_safetensors_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
bsmm_status bsmm_gguf_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
bsmm_status bsmm_npy_parse(const uint8_t *data, size_t bytes, const char *name, bsmm_file *file);

/* The header of a .npy file for a tensor: bytes written into text, or needed when text is NULL. */
size_t bsmm_npy_header(const bsmm_dtype *dtype, uint32_t ndim, const int64_t *shape, char *text);

/* A sharded model by its index file's text; maps the shards, which lie in file->folder. */
bool bsmm_shards_detect(const uint8_t *data, size_t bytes);
bsmm_status bsmm_shards_open(const uint8_t *data, size_t bytes, bsmm_file *file);

/* Opens what a range of memory holds (kind decided by its content); the memory must outlive the
 * file. Sharded models need bsmm_file_open. */
bsmm_status bsmm_file_from_memory(const uint8_t *data, size_t bytes, bsmm_file **file);

#endif
