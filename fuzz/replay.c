/* Passes files to a fuzzer's entry point, for compilers without libFuzzer. The command line names
 * the files. Each input is an allocation of exactly its size, so that AddressSanitizer finds every
 * read past its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size);
    int failed = (size > 0 && !data) || fread(data, 1, size, file) != size;
    if (failed)
        perror(path);
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    fclose(file);
    return failed;
}

int main(int argc, char **argv) {
    int failures = argc < 2;
    for (int i = 1; i < argc; i++)
        failures += replay(argv[i]);
    printf("%d inputs replayed, %d failed\n", argc - 1, failures);
    return failures != 0;
}
