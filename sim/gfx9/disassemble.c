/* Disassembles functions with LLVM in a child process. A damaged code object may contain bytes on
 * which LLVM crashes. In a child process, such a crash is only an error. */
#include "disassemble.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *(*create_fn)(const char *, const char *, const char *, void *, int, void *, void *);
typedef size_t (*disasm_fn)(void *, uint8_t *, uint64_t, uint64_t, char *, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static create_fn create;
static disasm_fn disassemble;

static bool open_llvm(char *error) {
    static const char *const inits[] = {"LLVMInitializeAMDGPUTargetInfo",
                                        "LLVMInitializeAMDGPUTargetMC",
                                        "LLVMInitializeAMDGPUDisassembler"};
    if (disassemble) return true;
    void *llvm = dlopen("libLLVM.so.22.1", RTLD_NOW | RTLD_LOCAL);
    if (!llvm)
        return snprintf(error, 256, "libLLVM.so.22.1 is not there: install Debian's libllvm22"),
               false;
    for (int i = 0; i < 3; i++) {
        void (*init)(void) = (void (*)(void))(uintptr_t)dlsym(llvm, inits[i]);
        if (!init) return snprintf(error, 256, "libLLVM.so.22.1 lacks %s", inits[i]), false;
        init();
    }
    create = (create_fn)(uintptr_t)dlsym(llvm, "LLVMCreateDisasmCPUFeatures");
    disassemble = (disasm_fn)(uintptr_t)dlsym(llvm, "LLVMDisasmInstruction");
    if (!create || !disassemble)
        return snprintf(error, 256, "libLLVM.so.22.1 lacks its disassembler"), false;
    return true;
}

/* The child process sends one such record before the text of each instruction. `length` is the
 * length of the text. `bytes` is 0 if LLVM does not know the instruction. */
typedef struct {
    uint64_t address;
    uint32_t bytes, length;
} record;

static void child(const gfx9_object *object, FILE *out) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    void *context = create("amdgcn-amd-amdhsa", object->arch == GFX950 ? "gfx950" : "gfx942", "",
                           NULL, 0, NULL, NULL);
    if (!context) _exit(1);
    for (uint32_t i = 0; i < object->function_count; i++) {
        const gfx9_function *f = &object->functions[i];
        for (uint64_t at = 0; at + 4 <= f->size;) {
            char text[512] = "";
            record r = {f->start + at, 0, 0};
            r.bytes = (uint32_t)disassemble(context, object->image + f->start + at, f->size - at,
                                            f->start + at, text, sizeof text);
            r.length = (uint32_t)strlen(text);
            fwrite(&r, sizeof r, 1, out), fwrite(text, 1, r.length, out);
            at += r.bytes ? r.bytes : 4;
        }
    }
    _exit(fflush(out) != 0);
}

static bool read_records(FILE *in, gfx9_take_text take, void *user) {
    record r;
    while (fread(&r, sizeof r, 1, in) == 1) {
        char text[512];
        if (r.length >= sizeof text || fread(text, 1, r.length, in) != r.length) return false;
        text[r.length] = 0;
        if (!take(user, r.address, r.bytes, text)) return false;
    }
    return true;
}

static bool run(const gfx9_object *object, gfx9_take_text take, void *user, char *error) {
    int ends[2], status = 0;
    if (!open_llvm(error)) return false;
    if (pipe(ends) != 0) return snprintf(error, 256, "pipe: %s", strerror(errno)), false;
    const pid_t pid = fork();
    if (pid == 0) {
        FILE *out = fdopen(ends[1], "wb");
        if (!out) _exit(1);
        child(object, out);
    }
    close(ends[1]);
    FILE *in = pid > 0 ? fdopen(ends[0], "rb") : NULL;
    const bool good = in && read_records(in, take, user);
    if (in)
        fclose(in);
    else
        close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!good || status != 0)
        return snprintf(error, 256, "code object: its functions cannot be disassembled"), false;
    return true;
}

bool gfx9_disassemble(const gfx9_object *object, gfx9_take_text take, void *user, char *error) {
    pthread_mutex_lock(&lock);
    const bool good = run(object, take, user, error);
    pthread_mutex_unlock(&lock);
    return good;
}
