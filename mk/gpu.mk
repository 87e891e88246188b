# GPU code: Weft's kernels by nvcc, device functions as bitcode by clang, the examples in CUDA, and the pretended
# driver of the tests.

# Kernels are compiled once for all build folders, each file into one image with machine code for each supported GPU
# and PTX for later ones. libweft_cuda.so holds the images; the library opens it when a GPU is used.
NVCC    := $(if $(filter undefined,$(origin NVCC)),$(firstword \
             $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc)),$(NVCC))
ifneq ($(NO_GPU),)
override NVCC :=
endif
GPU_DEVICE := $(firstword $(wildcard /dev/nvidiactl /dev/dxg))
CUDA_BUILD := build/cuda
CUDA_SRC := $(wildcard src/*/*.cu)
CUDA_COMMON = -std=c++17 -O3 -Iinclude -Isrc -Werror all-warnings -Wno-deprecated-gpu-targets
# nvcc's front end, which takes half of the time, runs once for each compute_N: code for GPUs after Hopper is made of the
# PTX for Hopper, as a driver would.
CUDA_FLAGS = $(CUDA_COMMON) -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[compute_90,sm_90$(if \
             $(filter compute_100,$(shell $(NVCC) --list-gpu-arch)),$(comma)sm_100)]'
# Kernels for Hopper alone: the images for other GPUs have their names.
$(CUDA_BUILD)/fused/hopper.fatbin: private CUDA_FLAGS = $(CUDA_COMMON) -gencode arch=compute_90a,code=sm_90a \
    -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[compute_90$(if \
    $(filter compute_100,$(shell $(NVCC) --list-gpu-arch)),$(comma)sm_100)]'
KERNELS := $(if $(NVCC),$(BUILD)/lib/libweft_cuda.so)

# Device functions for languages other than CUDA C, as LLVM bitcode and as PTX (src/device/bitcode*.cc). LLVM reads
# bitcode of older versions only, so an old clang serves most readers. LLVM 14 does not know Hopper: a macro selects
# the code for it, and sed corrects the target that the PTX names.
CLANG := $(if $(filter undefined,$(origin CLANG)),$(shell \
           echo 'int none;' | clang --target=nvptx64-nvidia-cuda -c -emit-llvm -x c -o /dev/null - 2>/dev/null && \
           command -v clang),$(CLANG))
BITCODE_FLAGS = --target=nvptx64-nvidia-cuda -march=sm_80 -nogpulib -ffreestanding -x c++ -std=c++17 -O2 \
                -fno-exceptions -fno-rtti -Xclang -fconvergent-functions -Wall -Wextra -Werror -Iinclude
BITCODE := $(if $(and $(CLANG),$(if $(NO_GPU),,yes)),$(foreach sm,80 90,$(addprefix $(BUILD)/lib/libweft_, \
             device_sm$(sm).bc device_sm$(sm).ptx nvshmem_sm$(sm).bc)))

$(CUDA_BUILD)/%.fatbin: src/%.cu
	@mkdir -p $(@D)
	$(call quiet,NVCC,$<)$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:fatbin=d) -fatbin $< -o $@

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

.PHONY: without-gpu without-bitcode
without-bitcode:
	@echo 'make: $(if $(NO_GPU),WITHOUT_GPU is set,no clang for GPUs was found, or CLANG is empty): libweft_device.bc is left out'

without-gpu:
	@echo 'make: $(if $(NO_GPU),WITHOUT_GPU is set,no nvcc was found, or NVCC is empty): GPU support is left out'

# Examples in CUDA, compiled as docs/device.md says. PTX alone, from which the driver makes machine code, is fastest to
# build. Tensor maps need sm_90.
CUDA_EXAMPLES := $(if $(NVCC),$(patsubst %.cu,$(BUILD)/%,$(wildcard examples/cuda/*.cu)))
examples: $(CUDA_EXAMPLES)
$(BUILD)/examples/cuda/tensor_map: private SM := 90
$(CUDA_EXAMPLES): private SM ?= 80
$(CUDA_EXAMPLES): $(BUILD)/%: %.cu $(LIB) $(HEADERS) $(BUILD)/bin/oshc++
	@mkdir -p $(@D)
	$(call quiet,NVCC,$@)$(NVCC) -std=c++17 -Werror all-warnings -Wno-deprecated-gpu-targets -ccbin $(BUILD)/bin/oshc++ \
	    -gencode arch=compute_$(SM),code=compute_$(SM) -MMD -MP $(DEPENDS) $< -o $@

# The part of a C example that runs on a GPU, with CUDA's runtime. The demo has it where there is a GPU.
ifneq ($(if $(filter demo-program,$(MAKECMDGOALS)),$(and $(NVCC),$(GPU_DEVICE)),$(NVCC)),)
$(BUILD)/obj/examples/%/gpu.o: examples/%/gpu.cu
	@mkdir -p $(@D)
	$(call quiet,NVCC,$<)$(NVCC) -std=c++17 -O3 -Iinclude -Werror all-warnings -Wno-deprecated-gpu-targets \
	    -gencode arch=compute_80,code=compute_80 -MMD -MP -c $< -o $@
$(BUILD)/examples/minilm: $(BUILD)/obj/examples/minilm/gpu.o
$(BUILD)/examples/minilm: private GPU_LIBS := -L$(dir $(realpath $(NVCC)))../lib64 -lcudart_static -lrt -lstdc++
endif

# Kernels of tests that run on real GPUs: the image is beside the program. Drivers of GPUs other than Hopper compile
# the PTX. A machine without a GPU builds them only when they are asked for, as make check-all does.
TEST_CUDA_FLAGS = $(CUDA_COMMON) -gencode 'arch=compute_90,code=[compute_90,sm_90]' \
                  -gencode arch=compute_80,code=compute_80
TEST_KERNELS := $(if $(NVCC),$(patsubst %/kernels.cu,$(BUILD)/%.fatbin,$(wildcard tests/gpu/*/kernels.cu)))
tests: $(if $(GPU_DEVICE),$(TEST_KERNELS))
$(BUILD)/tests/gpu/%.fatbin: tests/gpu/%/kernels.cu
	@mkdir -p $(@D)
	$(call quiet,NVCC,$@)$(NVCC) $(TEST_CUDA_FLAGS) -Itests -MMD -MP -MF $(BUILD)/obj/tests-gpu-$*.fatbin.d -fatbin $< -o $@

# The pretended CUDA driver (tests/gpu/driver/call.h) runs kernels that are compiled for the host. The library finds a
# stand-in for libweft_cuda.so beside it.
DRIVER_DIR := $(BUILD)/tests/gpu/driver
DRIVER     := $(addprefix $(DRIVER_DIR)/,libcuda.so.1 libweft_cuda.so libcublasLt.so.13)
DRIVER_INCLUDES := -I. -Isrc -Itests -Itests/gpu/driver
DRIVER_CU  := $(wildcard src/*/*.cu tests/gpu/driver/*.cu tests/gpu/*/kernels.cu)
DRIVER_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/gpu/driver/*.c)) \
              $(DRIVER_CU:%.cu=$(BUILD)/obj/tests/gpu/driver/%.o)
tests: $(if $(NO_GPU),,$(DRIVER))
$(BUILD)/obj/tests/gpu/driver/%.cc: %.cu src/transport/gpu_fold.h src/transport/gpu_tile.h mk/gpu.mk
	@mkdir -p $(@D)
	@printf '#include "%s"\n' device.h $< > $@
	@$(CXX) $(filter-out -MMD -MP,$(ALL_CXXFLAGS)) $(DRIVER_INCLUDES) -D__global__=KERNEL -E -P $@ | \
	    tr '\n' ' ' | grep -o 'KERNEL *void *\w*' | \
	    sed -e '1i #include "kernel.h"' -e 's/.* \(\w*\)/KERNEL(\1)/' >> $@
$(BUILD)/obj/tests/gpu/driver/%.o: $(BUILD)/obj/tests/gpu/driver/%.cc
	$(call quiet,CXX,$<)$(CXX) $(filter-out -Wpedantic,$(ALL_CXXFLAGS)) -Wno-psabi -fvisibility=hidden -ffp-contract=off \
	    $(DRIVER_INCLUDES) -c $< -o $@
$(DRIVER_DIR)/libcuda.so.1: $(DRIVER_OBJ)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CXX) -shared $(SANFLAGS) -Wl,-soname,libcuda.so.1 $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(LDLIBS)
	@echo $^ > $(@D)/objects # for tests/gpu/mutations.t
$(DRIVER_DIR)/libcublasLt.so.13: tests/gpu/cublaslt/cublaslt.c mk/gpu.mk
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(filter-out -MMD -MP -fvisibility=hidden,$(ALL_CFLAGS)) $(DRIVER_INCLUDES) -shared \
	    -Wl,-soname,libcublasLt.so.13 -o $@ $< $(LDLIBS)
$(DRIVER_DIR)/libweft_cuda.so: mk/gpu.mk
	@mkdir -p $(@D)
	$(call quiet,CC,$@)echo 'const long weft_cuda_images[] = {32, 32, 32, 0, 0};' | $(CC) -shared -fPIC -x c - -o $@

# The examples in CUDA compiled for the host, to run on the pretended driver (tests/gpu/runtime). The example of tensor
# maps needs a real GPU.
HOST_EXAMPLES := $(patsubst examples/cuda/%.cu,$(BUILD)/tests/gpu/examples/%, \
                   $(filter-out %/tensor_map.cu,$(wildcard examples/cuda/*.cu)))
tests: $(if $(NO_GPU),,$(HOST_EXAMPLES))
$(BUILD)/obj/tests/gpu/examples/%.cc: examples/cuda/%.cu mk/gpu.mk
	$(for_the_host)
$(BUILD)/obj/tests/gpu/examples/minilm.cc: examples/minilm/gpu.cu mk/gpu.mk
	$(for_the_host)
define for_the_host =
	@mkdir -p $(@D)
	@(sed -e 's/\(\w*\)<<<\(.*\)>>>(/runtime_launch("\1", \1, \2, /' \
	    -e 's/__shared__ \(\w*\) \(\w*\)\[\(.*\)\];/WEFT_SHARED(\1, \2, \3);/' $<; sed -n 's/^__global__ void \(\w*\).*/KERNEL(\1)/p' $< $(wildcard $(<:.cu=_kernels.cuh))) > $@
endef
HOST_CXX = $(CXX) $(filter-out -Wpedantic,$(ALL_CXXFLAGS)) -ffp-contract=off -Itests/gpu/runtime $(DRIVER_INCLUDES)
$(BUILD)/tests/gpu/examples/%: $(BUILD)/obj/tests/gpu/examples/%.cc $(LIB) $(DRIVER)
	@mkdir -p $(@D)
	$(call quiet,CXX,$@)$(HOST_CXX) -Iexamples/cuda $(DEPENDS) $< -o $@ -L$(DRIVER_DIR) -l:libcuda.so.1 $(PROGRAM_LIBS)

# The sentence encoder with its part for a GPU, in the same way.
HOST_ENCODER := $(BUILD)/tests/gpu/minilm
tests: $(if $(NO_GPU),,$(HOST_ENCODER))
$(BUILD)/obj/tests/gpu/examples/minilm.o: $(BUILD)/obj/tests/gpu/examples/minilm.cc
	$(call quiet,CXX,$<)$(HOST_CXX) -Iexamples/minilm -c $< -o $@
$(HOST_ENCODER): private CFLAGS := $(CFLAGS) -O3
$(HOST_ENCODER): $(BUILD)/obj/tests/gpu/examples/minilm.o $(wildcard examples/minilm/*.[ch]) $(LIB) $(DRIVER)
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(PROGRAM_FLAGS) $(DEPENDS) $(filter %.c %/minilm.o,$^) -o $@ -L$(DRIVER_DIR) -l:libcuda.so.1 \
	    $(PROGRAM_LIBS) -lstdc++
