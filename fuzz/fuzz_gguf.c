/* Fuzzes the parser of GGUF files. The input always begins with the right magic number, because
 * the fuzzer would waste time to find it. */
#include "read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char magic[] = {'G', 'G', 'U', 'F'};
    uint8_t *copy = malloc(size + 1);
    require(copy != NULL);
    if (size) memcpy(copy, data, size);
    if (size >= sizeof magic) memcpy(copy, magic, sizeof magic);
    read_all(copy, size);
    free(copy);
    return 0;
}
