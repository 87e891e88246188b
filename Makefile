# Weft. `make help` lists the targets; `make` builds everything below build/, usable in place.
VERSION := $(shell sed -n 's/^.define WEFT_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
             include/weft/version.h | paste -sd.)
comma   := ,
MAKEFLAGS += --no-builtin-rules
# All processors, unless a -j is given. A make below another one shares the jobs of that.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# WITHOUT_GPU=1: a library of the host's calls alone; those that want a GPU answer -ENOSYS.
NO_GPU  := $(filter-out 0,$(WITHOUT_GPU))

BUILD   ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(NO_GPU),/without-gpu)
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/weft
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CXX     := $(if $(filter default,$(origin CXX)),$(if $(filter clang%,$(CC)),clang++,g++),$(CXX))

CFLAGS  ?= -O2 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wstrict-prototypes -fPIC \
             -fvisibility=hidden -pthread -MMD -MP -Iinclude -Isrc \
             $(SANFLAGS) $(CFLAGS)
CXXFLAGS ?= $(CFLAGS)
ALL_CXXFLAGS = -std=c++17 -Wall -Wextra -Wpedantic -fPIC -pthread -MMD -MP -Iinclude $(SANFLAGS) \
               $(CXXFLAGS)
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all \
             $(if $(findstring thread,$(SAN)),-Wno-tsan))
LDLIBS   = -Wl,--as-needed -ldl -lpthread -lm

# A line for each file, `  CC    src/core/heap.c`; V=1 shows the commands themselves.
quiet = $(if $(filter-out 0,$(V)),,@printf '  %-5s %s\n' $(1) '$(2)';)

ROOMS   := base boot transport tcp core device coll ops api
GPU_SRC := $(wildcard src/device/*.c src/transport/gpu*.c src/*/on_stream*.c \
             $(addprefix src/coll/,stream_choice.c same_way.c ll.c marked.c push.c))
LIB_SRC := $(wildcard $(ROOMS:%=src/%/*.c))
ifneq ($(NO_GPU),)
LIB_SRC := $(filter-out $(GPU_SRC),$(LIB_SRC)) $(wildcard src/without_gpu/*.c)
endif
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
# The file has the whole version, programs look for the soname, and the linker for the plain name.
SONAME  := libweft.so.$(firstword $(subst ., ,$(VERSION)))
LIB     := $(BUILD)/lib/libweft.so.$(VERSION)
ARCHIVE := $(BUILD)/lib/libweft.a
HEADERS := $(patsubst %,$(BUILD)/%,$(shell find include -type f))

LAUNCH_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/launch/*.c src/base/*.c src/boot/*.c))
TOOLS   := $(addprefix $(BUILD)/bin/,oshcc oshc++ oshrun weft)
# How other builds find the library: for pkg-config and CMake.
PACKAGES := $(addprefix $(BUILD)/lib/,pkgconfig/weft.pc cmake/Weft/WeftConfig.cmake \
              cmake/Weft/WeftConfigVersion.cmake)

.PHONY: all without-ucx without-gpu without-bitcode demo check check-all bench bench-gpu install uninstall format help clean tests examples benches deps
.DELETE_ON_ERROR:
.SECONDARY:

# GPUs: kernels are compiled where nvcc is, once for all build folders, each file to an image of its
# own: machine code for each kind, and PTX for kinds to come. They lie in a library of their own, which
# is opened when a GPU is used.
NVCC    := $(if $(filter undefined,$(origin NVCC)),$(firstword \
             $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc)),$(NVCC))
ifneq ($(NO_GPU),)
override NVCC :=
endif
CUDA_BUILD := build/cuda
CUDA_SRC := $(wildcard src/*/*.cu)
CUDA_SMS  = 80 90 $(filter 100,$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)))
# Machine code for Hopper shares one run of the front end with the PTX.
CUDA_COMMON = -std=c++17 -O3 -Iinclude -Isrc -Werror all-warnings -Wno-deprecated-gpu-targets
CUDA_FLAGS = $(CUDA_COMMON) \
             -gencode 'arch=compute_90,code=[compute_90$(if $(filter 90,$(CUDA_SMS)),$(comma)sm_90)]' \
             $(foreach sm,$(filter-out 90,$(CUDA_SMS)),-gencode arch=compute_$(sm),code=sm_$(sm))
KERNELS := $(if $(NVCC),$(BUILD)/lib/libweft_cuda.so)

# Functions of kernels for other languages than CUDA C, as LLVM's bitcode and as PTX (src/device/bitcode*.cc). A
# reader's LLVM must not be older than the clang here, so an old one serves most. That of LLVM 14 knows no
# Hopper: it is told what to compile by a macro, and the PTX says afterwards what it is for.
CLANG := $(if $(filter undefined,$(origin CLANG)),$(shell \
           echo 'int none;' | clang --target=nvptx64-nvidia-cuda -c -emit-llvm -x c -o /dev/null - 2>/dev/null && \
           command -v clang),$(CLANG))
BITCODE_FLAGS = --target=nvptx64-nvidia-cuda -march=sm_80 -nogpulib -ffreestanding -x c++ -std=c++17 -O2 \
                -fno-exceptions -fno-rtti -Xclang -fconvergent-functions -Wall -Wextra -Werror -Iinclude
BITCODE := $(if $(and $(CLANG),$(if $(NO_GPU),,yes)),$(foreach sm,80 90,$(addprefix $(BUILD)/lib/libweft_, \
             device_sm$(sm).bc device_sm$(sm).ptx nvshmem_sm$(sm).bc)))

# The engine over UCX, in a library of its own, which is opened when a PE is on another host. UCX itself is
# opened when it is run: only its headers are needed here.
UCX := $(if $(filter undefined,$(origin UCX)),$(shell \
         $(CC) $(CPPFLAGS) -E -include ucp/api/ucp.h -x c /dev/null >/dev/null 2>&1 && echo yes),$(UCX))
UCX_ENGINE := $(if $(UCX),$(BUILD)/lib/libweft_ucx.so)

WHAT_NEXT = make: Weft is built in $(BUILD). Next: "make demo", or compile the program of README.md: \
            $(BUILD)/bin/oshcc ring.c -o ring && $(BUILD)/bin/oshrun -n 4 ./ring
all: $(LIB) $(ARCHIVE) $(HEADERS) $(TOOLS) $(PACKAGES) examples $(or $(UCX_ENGINE),without-ucx) $(or $(KERNELS),without-gpu) $(or $(BITCODE),without-bitcode) ## build the library, its tools and the examples
	$(if $(filter-out all,$(MAKECMDGOALS)),,@echo '$(WHAT_NEXT)')

# Kernels of reductions want the vectoriser.
$(BUILD)/obj/src/coll/%.o: CFLAGS := $(CFLAGS) -O3

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(LIB): $(LIB_OBJ) src/weft.map
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -Wl,-soname,$(SONAME) -Wl,-z,relro -Wl,-z,nodelete \
	    $(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=src/weft.map -o $@ $(LIB_OBJ) $(LDLIBS)
	@ln -sf $(@F) $(@D)/$(SONAME) && ln -sf $(SONAME) $(@D)/libweft.so

# The archive has one object, in which what is hidden is local: a program may define any name but
# the public ones. Its code is a section of its own, by which base/place.c knows it.
ONE_OBJ := $(BUILD)/obj/weft.o
OBJCOPY ?= objcopy
$(ONE_OBJ): $(LIB_OBJ)
	$(call quiet,LD,$@)$(CC) $(CFLAGS) $(if $(findstring -flto,$(CFLAGS)),-flinker-output=nolto-rel) \
	    -r -nostdlib -o $@ $^ && $(OBJCOPY) --localize-hidden \
	    --rename-section .text=weft_text --rename-section .text.unlikely=weft_text $@

$(ARCHIVE): $(ONE_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $^

$(CUDA_BUILD)/%.fatbin: src/%.cu
	@mkdir -p $(@D)
	$(call quiet,NVCC,$<)$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:fatbin=d) -fatbin $< -o $@

comma := ,
$(BUILD)/lib/libweft_cuda.so: src/transport/gpu_image.S $(CUDA_SRC:src/%.cu=$(CUDA_BUILD)/%.fatbin)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared -nostdlib -Wl,-soname,libweft_cuda.so \
	    -DFATBINS='$(patsubst %,"%"$(comma),$(filter %.fatbin,$^))' -o $@ $<

$(BUILD)/lib/libweft_device_sm%.bc: src/device/bitcode.cc
	$(bitcode)
$(BUILD)/lib/libweft_nvshmem_sm%.bc: src/device/bitcode_nvshmem.cc
	$(bitcode)
define bitcode =
	@mkdir -p $(@D) $(BUILD)/obj
	$(call quiet,CLANG,$@)$(CLANG) $(BITCODE_FLAGS) -DWEFT_DEVICE_ARCH=$*0 -MMD -MP -MF $(BUILD)/obj/$(@F).d \
	    -emit-llvm -c $< -o $@
endef
$(BUILD)/lib/libweft_device_sm%.ptx: $(BUILD)/lib/libweft_device_sm%.bc
	@$(CLANG) --target=nvptx64-nvidia-cuda -march=sm_80 -O2 -S -x ir $< -o $@.new
	@sed -e 's/^\.version .*/.version 8.0/' -e 's/^\.target .*/.target sm_$*/' $@.new > $@ && rm $@.new

without-bitcode:
	@echo 'make: $(if $(NO_GPU),WITHOUT_GPU is set,no clang for GPUs was found, or CLANG is empty): libweft_device.bc is left out'

without-ucx:
	@echo 'make: no headers of UCX were found (libucx-dev), so libweft_ucx.so is left out. It is optional:' \
	    'jobs on several hosts use TCP without it'

without-gpu:
	@echo 'make: $(if $(NO_GPU),WITHOUT_GPU is set,no nvcc was found, or NVCC is empty): GPU support is left out'

$(BUILD)/include/%: include/%
	@mkdir -p $(@D)
	@cp $< $@

$(BUILD)/bin/oshrun: $(LAUNCH_OBJ)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/lib/libweft_ucx.so: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/ucx/*.c) src/transport/network.c)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -Wl,-soname,$(@F) -Wl,-z,relro -Wl,-z,nodelete \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(LDLIBS)

# The command's own kernels are in lib, or, in the Python package, beside bin.
WEFT_RPATH = -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/..'
WEFT_SRC := tools/weft.c $(wildcard tools/weft/*.c)
ifneq ($(NO_GPU),)
WEFT_SRC := $(filter-out tools/weft/gpus.c,$(WEFT_SRC)) tools/weft/without_gpu/gpus.c
endif
WEFT_OBJ := $(WEFT_SRC:%.c=$(BUILD)/obj/%.o)
$(BUILD)/bin/weft: $(WEFT_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) -o $@ $^ $(WEFT_RPATH) $(LDLIBS)

# What says where the library lies is written for its place, here and by install.
HERE     = $(BUILD)
HERE_LIB = $(HERE)/lib
FILL = PREFIX='$(BUILD)' BINDIR='$(BUILD)/bin' LIBDIR='$(HERE_LIB)' INCLUDEDIR='$(HERE)/include' \
       LINK='$(HERE_LINK)' VERSION='$(VERSION)' SANFLAGS='$(SANFLAGS)' CC='$(CC)' CXX='$(CXX)' tools/fill.sh
FILLED_BY = tools/fill.sh include/weft/version.h
$(BUILD)/%/oshcc: tools/oshcc.in $(FILLED_BY)
	@mkdir -p $(@D) && $(FILL) $< $(@D) > $@ && chmod +x $@
$(BUILD)/%/oshc++: tools/oshcc.in $(FILLED_BY)
	@mkdir -p $(@D) && $(FILL) $< $(@D) c++ > $@ && chmod +x $@
$(BUILD)/lib/pkgconfig/%: tools/%.in $(FILLED_BY)
	@mkdir -p $(@D) && $(FILL) $< $(@D) > $@
$(BUILD)/lib/cmake/Weft/%: tools/%.in $(FILLED_BY)
	@mkdir -p $(@D) && $(FILL) $< $(@D) > $@

# Examples: a folder of C is a program, and a file of CUDA. Tests: a C or C++ file is a program.
EXAMPLES := $(patsubst examples/%/,$(BUILD)/examples/%,$(filter-out %/python/ %/cuda/,$(wildcard examples/*/)))
CUDA_EXAMPLES := $(if $(NVCC),$(patsubst %.cu,$(BUILD)/%,$(wildcard examples/cuda/*.cu)))
examples: $(EXAMPLES) $(CUDA_EXAMPLES)
EXAMPLE_SRC = $(wildcard examples/$(1)/*.c)
# Dependencies of programs lie with those of objects, not beside what a person looks at.
DEPENDS = -MF $(BUILD)/obj/$(subst /,-,$(@:$(BUILD)/%=%)).d
# Each of several sources writes that file anew when it is compiled, so all are asked for theirs once more.
depends_of_all = $(if $(word 2,$(1)),&& $(CC) $(filter-out -MMD,$(PROGRAM_FLAGS)) -Itests -MM -MT $@ $(1) > $(word 2,$(DEPENDS)))
# A file stays in such a list when it is gone, and what it was for is made anew.
tests/%.c: ;
PROGRAM_FLAGS = $(ALL_CFLAGS) -fvisibility=default
PROGRAM_LIBS  = -L$(BUILD)/lib -lweft -Wl,-rpath,$(abspath $(BUILD)/lib) $(LDLIBS)
.SECONDEXPANSION:
$(EXAMPLES): $(BUILD)/examples/%: $$(call EXAMPLE_SRC,%) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(PROGRAM_FLAGS) $(DEPENDS) $(filter %.c,$^) -o $@ $(PROGRAM_LIBS) \
	    $(call depends_of_all,$(filter %.c,$^))

# As docs/device.md compiles them. PTX alone, which the driver makes machine code of, costs least here;
# tensor maps are there from sm_90 on.
$(BUILD)/examples/cuda/tensor_map: private SM := 90
$(CUDA_EXAMPLES): private SM ?= 80
$(CUDA_EXAMPLES): $(BUILD)/%: %.cu $(LIB) $(HEADERS) $(BUILD)/bin/oshc++
	@mkdir -p $(@D)
	$(call quiet,NVCC,$@)$(NVCC) -std=c++17 -Werror all-warnings -Wno-deprecated-gpu-targets -ccbin $(BUILD)/bin/oshc++ \
	    -gencode arch=compute_$(SM),code=compute_$(SM) -MMD -MP $(DEPENDS) $< -o $@

# The encoder's kernels want the vectoriser, too.
$(BUILD)/examples/minilm: private CFLAGS := $(CFLAGS) -O3

# Tests of the lower rooms see their insides, in the objects; all others are users of the library.
# What a test has in a folder of its own name is part of it.
TEST_ROOMS ?= *
TESTS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(if $(NO_GPU),tests/gpu/%),$(wildcard $(TEST_ROOMS:%=tests/%/*.c))))
CXX_TESTS := $(patsubst %.cc,$(BUILD)/%,$(filter-out $(if $(NO_GPU),tests/gpu/%),$(wildcard $(TEST_ROOMS:%=tests/%/*.cc))))
INNER_TESTS := $(filter $(addprefix $(BUILD)/tests/,base/% boot/% core/% coll/% gpu/% ops/partials tcp/% far/carriers far/engine far/fuzz far/letters far/levels far/meet far/texts),$(TESTS))
tests: $(TESTS) $(CXX_TESTS)
$(INNER_TESTS): PROGRAM_LIBS = $(LIB_OBJ) -Wl,-rpath,$(abspath $(BUILD)/lib) $(LDLIBS)
$(INNER_TESTS): $(LIB_OBJ)
LAUNCH_TESTS := $(filter $(BUILD)/tests/launch/%,$(TESTS))
$(LAUNCH_TESTS): PROGRAM_LIBS = $(filter-out %/oshrun.o,$(LAUNCH_OBJ)) $(LDLIBS)
$(LAUNCH_TESTS): $(LAUNCH_OBJ)
# Its connections and its writer are of its own.
$(BUILD)/tests/launch/fuzz: private LAUNCH_OBJ := $(filter-out %/boot/tls.o %/launch/uplink.o %/launch/writer.o,$(LAUNCH_OBJ))
$(TESTS): $(BUILD)/%: %.c $$(wildcard $$*/*.[ch]) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(PROGRAM_FLAGS) -Itests $(DEPENDS) $< $(wildcard $*/*.c) -o $@ $(PROGRAM_LIBS) \
	    $(call depends_of_all,$< $(wildcard $*/*.c))
$(BUILD)/tests/gpu/%: private ALL_CXXFLAGS += -Isrc -Wno-pedantic
$(CXX_TESTS): $(BUILD)/%: %.cc $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) $(ALL_CXXFLAGS) -Itests $(DEPENDS) $< -o $@ $(PROGRAM_LIBS)

# Kernels of tests that run on real GPUs: the image lies beside the program. Drivers of other GPUs than Hopper
# compile the PTX.
TEST_CUDA_FLAGS = $(CUDA_COMMON) -gencode 'arch=compute_90,code=[compute_90,sm_90]' \
                  -gencode arch=compute_80,code=compute_80
TEST_KERNELS := $(if $(NVCC),$(patsubst %/kernels.cu,$(BUILD)/%.fatbin,$(wildcard tests/gpu/*/kernels.cu)))
tests: $(if $(filter * gpu,$(TEST_ROOMS)),$(TEST_KERNELS))
$(BUILD)/tests/gpu/%.fatbin: tests/gpu/%/kernels.cu
	@mkdir -p $(@D)
	$(call quiet,NVCC,$@)$(NVCC) $(TEST_CUDA_FLAGS) -Itests -MMD -MP -MF $(BUILD)/obj/tests-gpu-$*.fatbin.d -fatbin $< -o $@

# The pretended CUDA driver (tests/gpu/driver/call.h): beside it the library finds kernels where no
# CUDA compiler has made any. Kernels are compiled for the host, and made known to the driver.
DRIVER_DIR := $(BUILD)/tests/gpu/driver
DRIVER     := $(DRIVER_DIR)/libcuda.so.1 $(DRIVER_DIR)/libweft_cuda.so
DRIVER_INCLUDES := -I. -Isrc -Itests -Itests/gpu/driver
DRIVER_CU  := $(wildcard src/*/*.cu tests/gpu/driver/*.cu tests/gpu/*/kernels.cu)
DRIVER_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/gpu/driver/*.c)) \
              $(DRIVER_CU:%.cu=$(BUILD)/obj/tests/gpu/driver/%.o)
tests: $(if $(NO_GPU),,$(if $(filter * gpu,$(TEST_ROOMS)),$(DRIVER)))
$(BUILD)/obj/tests/gpu/driver/%.cc: %.cu src/transport/gpu_fold.h Makefile
	@mkdir -p $(@D)
	@printf '#include "%s"\n' device.h $< > $@
	@$(CXX) $(filter-out -MMD -MP,$(ALL_CXXFLAGS)) $(DRIVER_INCLUDES) -D__global__=KERNEL -E -P $@ | \
	    tr '\n' ' ' | grep -o 'KERNEL *void *\w*' | \
	    sed -e '1i #include "kernel.h"' -e 's/.* \(\w*\)/KERNEL(\1)/' >> $@
$(BUILD)/obj/tests/gpu/driver/%.o: $(BUILD)/obj/tests/gpu/driver/%.cc
	$(call quiet,CXX,$<)$(CXX) $(filter-out -Wpedantic,$(ALL_CXXFLAGS)) -fvisibility=hidden -ffp-contract=off \
	    $(DRIVER_INCLUDES) -c $< -o $@
$(DRIVER_DIR)/libcuda.so.1: $(DRIVER_OBJ)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CXX) -shared $(SANFLAGS) -Wl,-soname,libcuda.so.1 $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(LDLIBS)
	@echo $^ > $(@D)/objects # for tests/gpu/mutations.t
$(DRIVER_DIR)/libweft_cuda.so: Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)echo 'const long weft_cuda_images[] = {32, 32, 32, 0, 0};' | $(CC) -shared -fPIC -x c - -o $@

# The engine of tests between PEs that pretend to be on several hosts (tests/far/engine/engine.h).
FAR_ENGINE := $(BUILD)/tests/far/libweft_fake_engine.so
tests: $(FAR_ENGINE) $(BUILD)/tests/far/objects
$(BUILD)/tests/far/objects: $(LIB)
	@mkdir -p $(@D)
	@echo $(LIB_OBJ) $(SANFLAGS) > $@ # for tests/far/mutations.t
$(FAR_ENGINE): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/far/engine/*.c))
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -o $@ $^ $(LDLIBS)

# The examples for GPUs, compiled for the host, on the pretended driver (tests/gpu/runtime); but for
# the one of tensor maps.
HOST_EXAMPLES := $(patsubst examples/cuda/%.cu,$(BUILD)/tests/gpu/examples/%, \
                   $(filter-out %/tensor_map.cu,$(wildcard examples/cuda/*.cu)))
tests: $(if $(NO_GPU),,$(if $(filter * gpu,$(TEST_ROOMS)),$(HOST_EXAMPLES)))
$(BUILD)/obj/tests/gpu/examples/%.cc: examples/cuda/%.cu Makefile
	@mkdir -p $(@D)
	@(sed 's/\(\w*\)<<<\(.*\)>>>(/runtime_launch("\1", \1, \2, /' $<; sed -n 's/^__global__ void \(\w*\).*/KERNEL(\1)/p' $<) > $@
$(BUILD)/tests/gpu/examples/%: $(BUILD)/obj/tests/gpu/examples/%.cc $(LIB) $(DRIVER)
	@mkdir -p $(@D)
	$(call quiet,CXX,$@)$(CXX) $(filter-out -Wpedantic,$(ALL_CXXFLAGS)) -ffp-contract=off -Itests/gpu/runtime \
	    $(DRIVER_INCLUDES) -Iexamples/cuda $(DEPENDS) $< -o $@ -L$(DRIVER_DIR) -l:libcuda.so.1 $(PROGRAM_LIBS)

# The Python package, in place: PYTHONPATH=$(BUILD)/python. One binary serves every Python from 3.11
# on (the limited API), so any interpreter that has its headers will do for the build. 3.10, whose
# limited API has no buffer protocol, has a binary of its own beside it.
HAS_HEADERS := import os, sys, sysconfig; sys.exit(sys.version_info < (3, 10) or \
                not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
first_python = $(firstword $(foreach python,python3 /usr/bin/python3,$(shell \
                 $(python) -c '$(HAS_HEADERS)' 2>/dev/null && echo $(python))) python3)
# Asked once, and only where they are needed.
ifeq ($(origin PYTHON),undefined)
PYTHON = $(eval PYTHON := $(first_python))$(PYTHON)
endif
PYTHON_INCLUDE = $(eval PYTHON_INCLUDE := $(shell \
    $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))'))$(PYTHON_INCLUDE)
PYTHON_SUFFIX = $(eval PYTHON_SUFFIX := $(shell $(PYTHON) -c 'import sys, sysconfig; \
    print(".abi3.so" if sys.version_info >= (3, 11) else sysconfig.get_config_var("EXT_SUFFIX"))'))$(PYTHON_SUFFIX)
PYTHON_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard python/weft/*.c))
PYTHON_DIR := $(BUILD)/python/weft
EXTENSION = $(PYTHON_DIR)/_core$(PYTHON_SUFFIX)
PYTHON_PURE := $(patsubst python/weft/%,$(PYTHON_DIR)/%,$(filter-out %.c %.h %/__pycache__,$(wildcard python/weft/*)))
.PHONY: python
.SECONDEXPANSION: # so that Python is not asked by those who build no package
python: $$(EXTENSION) $(PYTHON_PURE) ## build the Python package in place: PYTHONPATH=build/python
# Tables of CPython's keep functions as void *, which pedants forbid.
$(BUILD)/obj/python/%.o: ALL_CFLAGS += -isystem $(PYTHON_INCLUDE) -Wno-pedantic
# The library lies beside the extension when installed, and two folders up here.
$(PYTHON_DIR)/_core.abi3.so: $(PYTHON_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../lib' -o $@ $(PYTHON_OBJ) \
	    -L$(BUILD)/lib -lweft $(LDLIBS)
$(PYTHON_DIR)/_core.cpython-%.so: $(wildcard python/weft/*.[ch]) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) -shared $(filter-out -MMD -MP,$(ALL_CFLAGS)) -isystem $(PYTHON_INCLUDE) -Wno-pedantic \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../lib' -o $@ $(filter %.c,$^) -L$(BUILD)/lib -lweft $(LDLIBS)
# What the package has of ours, for setup.py.
.PHONY: python-package wheel
# There the library lies beside bin, and, as wheels have no links, by its soname alone.
PACKAGE_WRAPPERS := $(addprefix $(BUILD)/package/bin/,oshcc oshc++)
$(PACKAGE_WRAPPERS): HERE = $(BUILD)/package
$(PACKAGE_WRAPPERS): HERE_LIB = $(HERE)
$(PACKAGE_WRAPPERS): HERE_LINK = -l:$(SONAME)
python-package: $$(EXTENSION) $(HEADERS) $(UCX_ENGINE) $(KERNELS) $(BITCODE) $(BUILD)/bin/oshrun $(BUILD)/bin/weft \
                $(PACKAGE_WRAPPERS)
# With the tools that $(PYTHON) has. A fresh environment lacks some: pip fetches them then.
MAKES_WHEELS := import setuptools, importlib.util as u, sys; \
                sys.exit(not (u.find_spec("wheel") or u.find_spec("setuptools.command.bdist_wheel")))
isolation = $(eval isolation := $(shell \
                $(PYTHON) -c '$(MAKES_WHEELS)' 2>/dev/null && echo --no-build-isolation))$(isolation)
wheel: ## build the Python package as a wheel in build/wheel
	$(if $(isolation),,@echo 'make wheel: $(PYTHON) has no setuptools that makes wheels: pip fetches one')
	$(PYTHON) -m pip wheel --no-deps $(isolation) -w $(BUILD)/wheel .
$(PYTHON_PURE): $(PYTHON_DIR)/%: | python/weft/%
	@mkdir -p $(@D)
	@ln -sfn $(abspath $(firstword $|)) $@

BENCHES := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
benches: $(BENCHES)
$(BENCHES): $(BUILD)/%: %.c $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(PROGRAM_FLAGS) $(DEPENDS) $< -o $@ $(PROGRAM_LIBS)

# The demo: PES=4 runs it on four PEs, HOSTS=2 over as many hosts of the rig; ARGS='--question "..."' asks
# something else.
HOSTS ?=
PES   ?= $(or $(HOSTS),2)
PES_OF_HOST = $(shell echo $$((($(PES) + $(HOSTS) - 1) / $(HOSTS))))
ON_HOSTS = --hosts $(subst $() ,$(comma),$(patsubst %,h%:$(PES_OF_HOST),$(shell seq 0 $$(($(HOSTS) - 1)))))
MODEL ?= build/models/all-MiniLM-L6-v2
# The demo computes on processors; kernels for GPUs take longer to compile than all the rest.
GPU_DEVICE := $(firstword $(wildcard /dev/nvidiactl /dev/dxg))
.PHONY: demo-program
demo-program: $(BUILD)/bin/oshrun $(BUILD)/examples/minilm $(if $(GPU_DEVICE),$(KERNELS))
	@: # else make says that there is nothing to be done
deps:
	@tools/setup.sh $(if $(HOSTS),hosts,demo)
demo: deps ## ask a licence a question: a sentence encoder on PES=2 PEs, HOSTS=2 hosts; installs what it needs
	@$(MAKE) --no-print-directory demo-program
	@examples/minilm/fetch.sh $(MODEL)
	@$(if $(HOSTS),tests/hosts/rig.py -n $(HOSTS) env WEFT_SSH=fakessh) \
	    $(BUILD)/bin/oshrun $(if $(HOSTS),$(ON_HOSTS)) -n $(PES) $(BUILD)/examples/minilm --model $(MODEL) $(ARGS)

# Three runs of everything, beside another OpenSHMEM library if one is installed (bench/run.sh), as
# JSON lines below $(RESULTS); one table of their medians, and plots.
RESULTS := $(BUILD)/results
bench: all benches $(FAR_ENGINE) ## measure everything, beside other libraries; table and plots land in build/results
	@bench/run.sh $(BUILD) $(RESULTS)
	@bench/table.py $(RESULTS)/*.jsonl | tee $(RESULTS)/table.md
	@bench/plot.py $(RESULTS) $(RESULTS)/*.jsonl

.PHONY: bench-hosts
bench-hosts: all benches ## two hosts of the rig, beside TCP, UCX and Open MPI; ROUNDS=5; or SCALE=1: 64 PEs on eight
ifdef SCALE
	@tests/hosts/rig.py -n 8 bench/hosts/scale.py $(BUILD) $(RESULTS) | tee $(RESULTS)/scale.md
else
	@rm -f $(RESULTS)/hosts-*.jsonl
	@tests/hosts/rig.py bench/hosts/run.py $(BUILD) $(RESULTS) $(ROUNDS)
	@bench/table.py $(RESULTS)/hosts-*.jsonl | tee $(RESULTS)/hosts.md
endif

.PHONY: bench-operators
bench-operators: all benches ## how much of what goes between two hosts fused products hide; ROUNDS=3
	@tests/hosts/rig.py bench/hosts/operators.py $(BUILD) $(RESULTS) $(ROUNDS)

.PHONY: bench-python
bench-python: all python ## what a call from Python costs, beside ctypes, numpy and torch
	@PYTHONPATH=$(BUILD)/python $(BUILD)/bin/oshrun -n 2 $(PYTHON) bench/python.py

bench-gpu: all ## the same on 2 and 4 GPUs, beside NVSHMEM, NCCL and PyTorch, where they are installed
	@bench/gpu/run.sh $(BUILD) $(RESULTS)/gpu

# The tests: everything with the compiler in use, the library's behaviour once more with the other
# compiler, what touches memory most under the sanitizers, and threads under theirs. Optimising what
# the sanitizers look at takes three times as long to build and finds less; unoptimised, gcc warns of
# branches that a constant size rules out.
CLANG_BUILD := build/clang
SAN_BUILD   := build/san-address-undefined
THREAD_BUILD := build/san-thread
# In lines that begin with +, for make sees no $(MAKE) in a variable, and would give that make one job.
PARALLEL = $(MAKE) --no-print-directory --output-sync
SAN_CFLAGS   := -O0 -g1 -Wno-stringop-overflow
CLANG_ROOMS  := core api ops conformance
SAN_ROOMS    := core api coll ops conformance random gpu
# On how many PEs these run, and which on 3, too: what cannot on 2, and under the sanitizers what makes trees and rings of
# PEs. make check-all has all on 2 and 3.
CLANG_PES    := 2
CLANG_ON_3   := core/sleepers
SAN_PES      := 2
SAN_ON_3     := core/ coll/ random/ gpu/lists
one_of        = $(subst $() ,|,$(1))
THREAD_TESTS := boot/subset api/threads api/ctx api/share api/team_create api/pad conformance/threads core/lock core/sync
.PHONY: test
test: ## build what one test needs and run it: T=core/sync, on 2 PEs alone with N=2, far with FAR=each
	+@tests/one.py '$(T)' '$(N)' '$(FAR)' '$(BUILD)' $(PARALLEL) $(filter -j%,$(MAKEFLAGS)) # shares no jobs through Python

# Kernels and bitcode have one compiler, whatever CC is and whatever it adds.
COMPILED_ONCE := NVCC= CLANG=
check: ## install what the tests need, build with gcc, clang and sanitizers, and run all tests
	@echo 'make check: installs packages that the tests lack, builds the library four times and runs some 7,000 tests:'\
	    'about 20 minutes on two idle processors'
	@tools/setup.sh check
	+$(PARALLEL) all tests benches python
	+$(PARALLEL) CC=clang BUILD=$(CLANG_BUILD) TEST_ROOMS='$(CLANG_ROOMS)' CFLAGS='-O2 -g1' $(COMPILED_ONCE) all tests
	+$(PARALLEL) SAN=address,undefined BUILD=$(SAN_BUILD) TEST_ROOMS='$(SAN_ROOMS)' \
	    CFLAGS='$(SAN_CFLAGS)' $(COMPILED_ONCE) $(SAN_BUILD)/bin/oshrun tests python
	+$(PARALLEL) SAN=thread BUILD=$(THREAD_BUILD) CFLAGS='-O1 -g1' $(THREAD_BUILD)/bin/oshrun \
	    $(THREAD_BUILD)/tests/far/libweft_fake_engine.so \
	    $(addprefix $(THREAD_BUILD)/tests/,$(sort $(THREAD_TESTS) $(THREAD_FAR)))
	@tests/prove.sh $(BUILD) $(CLANG_BUILD):$(CLANG_PES):'^($(call one_of,$(CLANG_ROOMS)))/' \
	    $(CLANG_BUILD):3:'^($(call one_of,$(CLANG_ON_3)))' \
	    $(SAN_BUILD):$(SAN_PES):'^($(call one_of,$(SAN_ROOMS)))/' $(SAN_BUILD):3:'^($(call one_of,$(SAN_ON_3)))' \
	    $(THREAD_BUILD):2,3:'^($(call one_of,$(THREAD_TESTS)))$$' $(CHECK_FAR) $(CHECK_HOSTS)

# The same tests far, which pretend to be on several hosts (tests/prove.sh): PE counts and placements.
FAR_TESTS ?= api/ random/ coll/bits
FAR_RUNS  ?= 3:each 4:cyclic:2
count_of   = $(firstword $(subst :, ,$(1)))
far_items  = $(foreach run,$(3),$(1):$(call count_of,$(run)):'^($(call one_of,$(2)))':$(run:$(call count_of,$(run)):%=%))
CHECK_FAR  = $(call far_items,$(BUILD),$(FAR_TESTS),$(FAR_RUNS)) \
             $(call far_items,$(SAN_BUILD),random/,2:each) $(call far_items,$(THREAD_BUILD),$(THREAD_FAR),2:each)
THREAD_FAR := api/threads
.PHONY: check-far
check-far: ## run the tests of far PEs, and others far; FAR_TESTS='core/ coll/' FAR_RUNS='3:2+1' names which
	+$(PARALLEL) all tests
	@tests/prove.sh $(BUILD)::'^far/' $(call far_items,$(BUILD),$(FAR_TESTS),$(FAR_RUNS))

# What others may send, by clang's libFuzzer, which looks for inputs that reach code none has reached before: letters
# of far PEs (tests/far/fuzz.c), or frames of hosts (tests/launch/fuzz.c). Those that it finds stay in
# $(FUZZ_BUILD)/letters or frames; tests/fuzz.py writes them as lines of the corpus.
FUZZ_BUILD := build/fuzz
FUZZ       ?= letters
SECONDS    ?= 60
FUZZ_TEST   = $(or $(FUZZ_$(FUZZ)),$(error FUZZ is letters or frames, not $(FUZZ)))
FUZZ_letters := tests/far/fuzz
FUZZ_frames  := tests/launch/fuzz
.PHONY: fuzz
fuzz: ## look for what harms those who get it, with clang's libFuzzer: FUZZ=letters, or frames; SECONDS=60
	+$(PARALLEL) CC=clang SAN=address,undefined,fuzzer-no-link BUILD=$(FUZZ_BUILD) CFLAGS='-O1 -g' \
	    PROGRAM_FLAGS='$$(ALL_CFLAGS) -fsanitize=fuzzer -DWEFT_LIBFUZZER' $(FUZZ_BUILD)/$(FUZZ_TEST)
	@tests/fuzz.py read $(FUZZ_TEST)/corpus.txt $(FUZZ_BUILD)/$(FUZZ)-corpus
	@mkdir -p $(FUZZ_BUILD)/$(FUZZ)
	$(FUZZ_BUILD)/$(FUZZ_TEST) -max_total_time=$(SECONDS) -max_len=4096 -use_value_profile=1 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ_BUILD)/$(FUZZ)-wrong- $(FUZZ_BUILD)/$(FUZZ) $(FUZZ_BUILD)/$(FUZZ)-corpus

# The same over hosts of the rig in tests/hosts, 2 x 2 PEs and so on, by the engine for networks. make check has
# a minute of that.
HOST_TESTS ?= api/ conformance/ coll/ ops/ random/
HOST_SHORT := api/rma api/amo api/signal api/team api/collective$$ coll/bits conformance/(global|life|ordering|progress|waiting)
CHECK_HOSTS = $(call far_items,$(BUILD),$(HOST_SHORT),4:hosts:2x2:cyclic) $(call far_items,$(BUILD),random/,4:hosts:2x2) \
              $(call far_items,$(BUILD),$(HOST_WAYS),4:hosts:2x2:ucx 4:hosts:2x2:carrier)
HOST_WAYS  := api/rma api/amo conformance/ordering
HOST_RUNS  ?= 3:hosts:3x1 4:hosts:2x2 4:hosts:2x2:ucx 4:hosts:2x2:carrier 4:hosts:2x2:cyclic 6:hosts:2x3 6:hosts:2x3:cyclic
.PHONY: check-hosts
check-hosts: ## run the tests of hosts, and others over hosts; HOST_TESTS='core/ coll/' HOST_RUNS='3:hosts:3x1' name which
	@tools/setup.sh check
	+$(PARALLEL) all tests python
	@tests/prove.sh $(BUILD)::'^hosts/' $(call far_items,$(BUILD),$(HOST_TESTS),$(HOST_RUNS))

# As a user installs it, with all that it depends on: 3 GB down and 6 GB below $(BUILD) for each version, one
# at a time: TORCH='2.11.0 2.13.0 newest'. RANKS=2 runs no other number of ranks, in half the time.
TORCH ?= newest
RANKS ?= 1 2 3 4
.PHONY: check-torch
check-torch: all python ## install PyTorch and run Python's tests of it; TORCH='2.11.0 newest' names versions
	@WEFT_TEST_RANKS='$(RANKS)' $(PYTHON) tests/python/check_torch.py $(BUILD) $(TORCH)

# Part n: the tests of GPUs on n PEs, which takes 8 minutes at most. PART=2 runs that one alone.
PART ?= 1 2 3 4
.PHONY: check-gpu
check-gpu: ## run the tests of GPUs with this machine's CUDA driver; PART=2 runs one part
	+$(PARALLEL) all tests
	@timeout $$((480 * $(words $(PART)))) tests/prove.sh -g $(PART:%=$(BUILD):%)

# Three minutes with a GPU for each of PES; STRESS and DEVICE_STRESS say what and how often (the heads of
# tests/gpu/stress.c and device_stress.c).
STRESS ?= all_reduce:2e6 all_reduce_graphs:8e6 all_reduce:1e5:4:4M all_reduce:1e3:4:256M \
          $(foreach what,all_gather reduce_scatter all_to_all broadcast,$(what):1e5:4:4M) \
          mixed:5e5:4:4M mixed_graphs:5e5:4:4M mixed_wrap:1e5 torn:1e10 torn8:1e10
DEVICE_STRESS ?= 2e5
.PHONY: check-gpu-all
check-gpu-all: check-gpu ## the same, and collectives by the million and 10^10 packets, checked by the GPUs
	@$(BUILD)/bin/oshrun -n $(PES) $(BUILD)/tests/gpu/stress $(STRESS)
	@$(BUILD)/bin/oshrun -n $(PES) $(BUILD)/tests/gpu/device_stress $(DEVICE_STRESS)

# The long forms (WEFT_TEST_LONG=1), and every test that names no PE counts at 5 and 8 PEs, too; far all
# that users call, and what it stands on, in more placements, random programs also with sanitizers. Each
# of the parts takes at most 60 minutes on two idle processors, builds included (tests/costs.txt).
CHECK_PARTS := 1 2 3 4 5 6
check-all: export WEFT_TEST_LONG := 1
check-all: FAR_TESTS := api/ core/ coll/ ops/ conformance/ random/
check-all: FAR_RUNS  := 2:1+1 3:each 3:2+1 4:2+2 4:cyclic:2 4:list:0,0,1,0
check-all: CHECK_FAR += $(call far_items,$(SAN_BUILD),api/ coll/ conformance/ random/,3:each 4:each) \
                        $(call far_items,$(THREAD_BUILD),random/,3:each 4:each)
check-all: THREAD_FAR += random/random
check-all: SAN_ROOMS += far boot launch
check-all: CLANG_PES := 2,3
check-all: SAN_PES := 2,3
check-all: CHECK_FAR += $(SAN_BUILD):1:'^(far/fuzz|boot/(door|frames|hub|tls)|launch/.*)$$'
# Threads where no PE has a near one: what is ordered by memory of another process the sanitizer does not see.
check-all: CHECK_HOSTS = $(call far_items,$(BUILD),$(HOST_TESTS),$(HOST_RUNS)) \
                         $(call far_items,$(SAN_BUILD),$(HOST_SHORT) random/,4:hosts:2x2:carrier) \
                         $(call far_items,$(THREAD_BUILD),$(THREAD_FAR),3:hosts:3x1 3:hosts:3x1:carrier)
ifneq ($(and $(filter check-all,$(MAKECMDGOALS)),$(filter-out file,$(origin PART))),)
$(if $(filter 1,$(words $(filter $(PART),$(CHECK_PARTS)))),,$(error check-all has the parts $(CHECK_PARTS), not PART=$(PART)))
check-all: export WEFT_TEST_PART := $(PART)/$(words $(CHECK_PARTS))
endif
check-all: check ## the same with the long forms of tests, and at 5 and 8 PEs: hours; PART=1 (to 6) runs a part, an hour at most

# tools/install.sh copies, and keeps the list by which uninstall removes.
PLACES = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' \
         INCLUDEDIR='$(INCLUDEDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' BUILD='$(BUILD)' \
         VERSION='$(VERSION)' SANFLAGS='$(SANFLAGS)' CC='$(CC)' CXX='$(CXX)'
STRIP ?= strip
.PHONY: install-debug
install install-debug: all install-weft $(BUILD)/man/made
	@$(PLACES) STRIP='$(if $(filter install,$@),$(STRIP))' tools/install.sh install
install: ## copy library, headers, tools, manual and examples to PREFIX (/usr/local), LIBDIR, ...
install-debug: ## the same with the symbols of a debugger

uninstall: ## remove what make install has put there
	@$(PLACES) tools/install.sh uninstall

# A routine is found by its own name: a link to its page.
PAGES := $(wildcard docs/man/*.[1-9])
$(BUILD)/man/made: $(PAGES) tools/man-links.sh $(LIB)
	@rm -rf $(@D) && for page in $(PAGES); do \
	    install -D -m 644 -t $(@D)/man$${page##*.} $$page || exit; done
	@nm -D --defined-only $(LIB) | awk '$$3 !~ /^p/ { print $$3 }' | tools/man-links.sh $(PAGES) | \
	    while read -r link page; do ln -sf $$page $(@D)/man$${page##*.}/$$link || exit; done
	@touch $@

# The command once more, for LIBDIR.
.PHONY: install-weft
install-weft: WEFT_RPATH = -Wl,-rpath,"\$$ORIGIN/$$(realpath -ms --relative-to='$(BINDIR)' '$(LIBDIR)')"
install-weft: $(WEFT_OBJ) $(LIB_OBJ)
	@mkdir -p $(BUILD)/install
	@$(CC) $(SANFLAGS) -o $(BUILD)/install/weft $^ $(WEFT_RPATH) $(LDLIBS)

format: ## lay out all C sources with clang-format 14
	clang-format -i $(shell find src include examples tests bench python -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')

clean: ## remove everything that make built
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo '  SAN=address,undefined   build and test with sanitizers;  CC=clang, BUILD=dir, PREFIX=dir, NVCC=file;  V=1 shows commands'
	@echo '  WITHOUT_GPU=1           build a library of the host alone, in build/without-gpu'

-include $(shell find $(BUILD) $(CUDA_BUILD) -name '*.d' 2>/dev/null)
