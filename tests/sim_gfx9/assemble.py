"""Builds code objects from assembly or C with Debian's clang-22."""
import pathlib
import subprocess
import tempfile

CLANG = "clang-22"
KERNEL = """
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
s_endpgm
.L{name}_end:
.size {name}, .L{name}_end-{name}
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_count 2
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 512
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset {vgprs}
  .amdhsa_kernarg_size {kernarg}
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_ieee_mode 0
.end_amdhsa_kernel
.section .text
"""
METADATA = """  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: {kernarg}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 512
    .max_flat_workgroup_size: 1024
    .args:
{args}"""
ARG = "      - {{ .offset: {offset}, .size: 8, .value_kind: global_buffer, .address_space: global }}\n"


def clang(arch, source, language, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path, out = pathlib.Path(folder) / "k.src", pathlib.Path(folder) / "k.co"
        path.write_text(source)
        done = subprocess.run([CLANG, "-x", language, "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", *flags, "-o", out, path],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[:2000])
        return out.read_bytes()


def assembly_text(kernels, arguments=2, lds=0, scratch=0, vgprs=256):
    """Returns the source of an assembly file with several kernels. The dictionary `kernels`
    maps each kernel's name to its instructions. Every kernel takes `arguments` pointers: s[0:1]
    points to them, and v0 is the number of the thread. A wave has `vgprs` VGPRs."""
    args = "".join(ARG.format(offset=8 * k) for k in range(arguments))
    values = dict(lds=lds, scratch=scratch, vgprs=vgprs, kernarg=8 * arguments, args=args)
    source = ".text\n" + "".join(KERNEL.format(name=n, body=b, **values) for n, b in kernels.items())
    source += ".amdgpu_metadata\n---\namdhsa.version: [ 1, 2 ]\namdhsa.kernels:\n"
    source += "".join(METADATA.format(name=n, **values) for n in kernels) + "...\n.end_amdgpu_metadata\n"
    return source


def assembly(arch, kernels, arguments=2, lds=0, scratch=0, vgprs=256):
    """Returns a code object with the kernels that assembly_text describes."""
    return clang(arch, assembly_text(kernels, arguments, lds, scratch, vgprs), "assembler")


def c(arch, source):
    return clang(arch, source, "c", "-std=c11", "-O2", "-g", "-ffreestanding")


def accepted(arch, lines):
    """Returns those lines of assembly that the architecture can execute."""
    done = subprocess.run(["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=null"], input="\n".join(lines) + "\n",
                          capture_output=True, text=True)
    bad = {int(line.split(":")[1]) for line in done.stderr.splitlines() if line.startswith("<stdin>") and "error:" in line}
    return [k + 1 not in bad for k in range(len(lines))]
