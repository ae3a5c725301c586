/* Registers the emulated kernels and finds them by name. */
#include "machine.h"

#include <map>
#include <string>

static std::map<std::string, emulated_kernel> &kernels() {
    static std::map<std::string, emulated_kernel> all;
    return all;
}

extern "C" void *emulated_find(const char *name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : reinterpret_cast<void *>(found->second);
}

emulated_registration::emulated_registration(const char *name, emulated_kernel kernel) {
    kernels()[name] = kernel;
}
