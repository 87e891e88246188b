# Tests. A C or C++ file in tests/<room>/ is a program; the C files in a folder with its name are part of it. Programs
# of the lower rooms link the library's objects, so that they see its insides; all others link the library.
.PHONY: tests test check check-all check-far check-hosts check-torch check-gpu check-gpu-all fuzz
TESTS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(if $(NO_GPU),tests/gpu/%),$(wildcard tests/*/*.c)))
CXX_TESTS := $(patsubst %.cc,$(BUILD)/%,$(filter-out $(if $(NO_GPU),tests/gpu/%),$(wildcard tests/*/*.cc)))
INNER_TESTS := $(filter $(addprefix $(BUILD)/tests/,base/% boot/% job/% core/% coll/% gpu/% ops/partials tcp/% far/proxies \
                 far/engine far/fuzz far/messages far/levels far/protocol),$(TESTS))
tests: $(TESTS) $(CXX_TESTS)
$(INNER_TESTS): PROGRAM_LIBS = $(LIB_OBJ) -Wl,-rpath,$(abspath $(BUILD)/lib) $(LDLIBS)
$(INNER_TESTS): $(LIB_OBJ)
LAUNCH_TESTS := $(filter $(BUILD)/tests/launch/%,$(TESTS))
$(LAUNCH_TESTS): PROGRAM_LIBS = $(filter-out %/oshrun.o,$(LAUNCH_OBJ)) $(LDLIBS)
$(LAUNCH_TESTS): $(LAUNCH_OBJ)
# It brings its own connections and its own writer.
$(BUILD)/tests/launch/fuzz: private LAUNCH_OBJ := $(filter-out %/boot/tls.o %/launch/writer.o,$(LAUNCH_OBJ))
# Unoptimised programs take a quarter of the time to compile. Those that compute much are optimised a little.
$(TESTS): private CFLAGS := -O0 -g1
$(filter $(addprefix $(BUILD)/tests/,api/collective% api/reduce coll/% core/% gpu/% ops/% random/%),$(TESTS)): private CFLAGS := -O1 -g1
$(TESTS): $(BUILD)/%: %.c $$(wildcard $$*/*.[ch]) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(PROGRAM_FLAGS) -Itests $(DEPENDS) $< $(wildcard $*/*.c) -o $@ $(PROGRAM_LIBS) \
	    $(call depends_of_all,$< $(wildcard $*/*.c))
$(BUILD)/tests/gpu/%: private ALL_CXXFLAGS += -Isrc -Wno-pedantic
$(CXX_TESTS): $(BUILD)/%: %.cc $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) $(ALL_CXXFLAGS) -Itests $(DEPENDS) $< -o $@ $(PROGRAM_LIBS)

# The engine that carries messages between PEs that pretend to be on several hosts (tests/far/engine/engine.h).
FAR_ENGINE := $(BUILD)/tests/far/libweft_fake_engine.so
tests: $(FAR_ENGINE) $(BUILD)/tests/far/objects
$(BUILD)/tests/far/objects: $(LIB)
	@mkdir -p $(@D)
	@echo $(LIB_OBJ) $(SANFLAGS) > $@ # for tests/far/mutations.t
$(FAR_ENGINE): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/far/engine/*.c))
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -o $@ $^ $(LDLIBS)

# make check builds four times: everything with gcc, and with clang and the sanitizers what the rows of tests/matrix.txt
# for that build run. Optimising code for AddressSanitizer takes three times as long to build and finds less; without
# optimisation gcc warns of branches that a constant size rules out.
CLANG_BUILD  := build/clang
SAN_BUILD    := build/san-address-undefined
THREAD_BUILD := build/san-thread
SAN_CFLAGS   := -O0 -g1 -Wno-stringop-overflow
# nvcc and clang's bitcode do not depend on CC, so one build has them.
COMPILED_ONCE := NVCC= CLANG=
# Lines with this begin with "+": make sees no $(MAKE) inside a variable, and would allow that make one job only.
PARALLEL = $(MAKE) --no-print-directory --output-sync
# The goal whose rows are run.
GOAL := check
check-all: GOAL := check-all
RUN = tests/run.py $(GOAL) -b $(BUILD)

# With -j, since make cannot share its jobs through Python.
test: ## build what one test needs and run it: T=core/sync, on 2 PEs alone with N=2, far with FAR=each
	+@tests/run.py -b '$(BUILD)' test -- '$(T)' '$(N)' '$(FAR)' $(PARALLEL) $(filter -j%,$(MAKEFLAGS))

check: check-gcc check-clang check-asan check-tsan ## install what the tests need, build with gcc, clang and sanitizers, and run all tests
	@$(RUN) $(if $(CHECK_PART),-p $(CHECK_PART))

# The four builds share the jobs of one make, so that none waits for the end of another.
.PHONY: check-begin check-gcc check-clang check-asan check-tsan
check-gcc check-clang check-asan check-tsan: check-begin
check-begin:
	@echo 'make check: installs packages that the tests lack, builds the library four times and runs 964 tests with 6,590 cases:'\
	    '13 to 23 minutes on two idle processors'
	@tools/setup.sh check
check-gcc:
	+@$(PARALLEL) all tests benches python $(if $(filter check-all,$(GOAL)),$(TEST_KERNELS))
check-clang:
	+@$(PARALLEL) CC=clang BUILD=$(CLANG_BUILD) CFLAGS='-O1 -g1' $(COMPILED_ONCE) all $$(tests/matrix.py $(GOAL) clang)
check-asan:
	+@$(PARALLEL) SAN=address,undefined BUILD=$(SAN_BUILD) CFLAGS='$(SAN_CFLAGS)' $(COMPILED_ONCE) $(SAN_BUILD)/bin/oshrun \
	    python $$(tests/matrix.py $(GOAL) asan)
check-tsan:
	+@$(PARALLEL) SAN=thread BUILD=$(THREAD_BUILD) CFLAGS='$(SAN_CFLAGS)' $(THREAD_BUILD)/bin/oshrun \
	    $$(tests/matrix.py $(GOAL) tsan)

# Each part takes at most 60 minutes on two idle processors, builds included (tests/costs.txt).
CHECK_PARTS := 1 2 3 4 5 6
ifneq ($(and $(filter check-all,$(MAKECMDGOALS)),$(filter-out file,$(origin PART))),)
$(if $(filter 1,$(words $(filter $(PART),$(CHECK_PARTS)))),,$(error check-all has the parts $(CHECK_PARTS), not PART=$(PART)))
CHECK_PART := $(PART)/$(words $(CHECK_PARTS))
endif
check-all: check ## the same with the long forms of tests, and at 5 and 8 PEs: hours; PART=1 (to 6) runs a part, an hour at most

FAR_TESTS ?=
FAR_RUNS  ?=
check-far: GOAL := check-far
check-far: ## run the tests of far PEs, and others far; FAR_TESTS='core/ coll/' FAR_RUNS='3:2+1' names which
	+$(PARALLEL) all tests
	@$(RUN) -t '$(FAR_TESTS)' -r '$(FAR_RUNS)'

HOST_TESTS ?=
HOST_RUNS  ?=
check-hosts: GOAL := check-hosts
check-hosts: ## run the tests of hosts, and others over hosts; HOST_TESTS='core/ coll/' HOST_RUNS='3:hosts:3x1' name which
	@tools/setup.sh check
	+$(PARALLEL) all tests python
	@$(RUN) -t '$(HOST_TESTS)' -r '$(HOST_RUNS)'

# Installs PyTorch as a user does: 3 GB to download and 6 GB in $(BUILD) for each version, of which one is installed at a
# time: TORCH='2.11.0 2.13.0 newest'. RANKS=2 runs on 2 ranks only, which takes half the time.
TORCH ?= newest
RANKS ?= 1 2 3 4
check-torch: all python $(BUILD)/tests/hosts/starts ## install PyTorch and run Python's tests of it; TORCH='2.11.0 newest' names versions
	@WEFT_TEST_RANKS='$(RANKS)' $(PYTHON) tests/python/check_torch.py $(BUILD) $(TORCH)

# Part n runs the tests of GPUs on n PEs, which takes at most 8 minutes.
PART ?= 1 2 3 4
check-gpu: GOAL := check-gpu
check-gpu: ## run the tests of GPUs with this machine's CUDA driver; PART=2 runs one part
	+$(PARALLEL) all tests
	@timeout $$((480 * $(words $(PART)))) $(RUN) -r '$(PART:%=%:gpu)'

# Three minutes with a GPU for each of PES. STRESS and DEVICE_STRESS say what to run and how often (see the heads of
# tests/gpu/stress.c and device_stress.c).
STRESS ?= all_reduce:2e6 all_reduce_graphs:8e6 all_reduce:1e5:4:4M all_reduce:1e3:4:256M \
          $(foreach what,all_gather reduce_scatter all_to_all broadcast,$(what):1e5:4:4M) \
          mixed:5e5:4:4M mixed_graphs:5e5:4:4M mixed_wrap:1e5 torn:1e10 torn8:1e10
DEVICE_STRESS ?= 2e5
check-gpu-all: check-gpu ## the same, and collectives by the million and 10^10 packets, checked by the GPUs
	@$(BUILD)/bin/oshrun -n $(PES) $(BUILD)/tests/gpu/stress $(STRESS)
	@$(BUILD)/bin/oshrun -n $(PES) $(BUILD)/tests/gpu/device_stress $(DEVICE_STRESS)

# clang's libFuzzer looks for inputs that reach new code and do harm: messages of far PEs (tests/far/fuzz.c), or frames
# of hosts (tests/launch/fuzz.c). It keeps its inputs in $(FUZZ_BUILD)/messages or frames; tests/fuzz.py converts them to
# and from lines of the corpus.
FUZZ_BUILD := build/fuzz
FUZZ       ?= messages
SECONDS    ?= 60
FUZZ_TEST   = $(or $(FUZZ_$(FUZZ)),$(error FUZZ is messages or frames, not $(FUZZ)))
FUZZ_messages := tests/far/fuzz
FUZZ_frames  := tests/launch/fuzz
fuzz: ## look for harmful input with clang's libFuzzer: FUZZ=messages, or frames; SECONDS=60
	+$(PARALLEL) CC=clang SAN=address,undefined,fuzzer-no-link BUILD=$(FUZZ_BUILD) CFLAGS='-O1 -g' \
	    PROGRAM_FLAGS='$$(ALL_CFLAGS) -fsanitize=fuzzer -DWEFT_LIBFUZZER' $(FUZZ_BUILD)/$(FUZZ_TEST)
	@tests/fuzz.py read $(FUZZ_TEST)/corpus.txt $(FUZZ_BUILD)/$(FUZZ)-corpus
	@mkdir -p $(FUZZ_BUILD)/$(FUZZ)
	$(FUZZ_BUILD)/$(FUZZ_TEST) -max_total_time=$(SECONDS) -max_len=4096 -use_value_profile=1 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ_BUILD)/$(FUZZ)-wrong- $(FUZZ_BUILD)/$(FUZZ) $(FUZZ_BUILD)/$(FUZZ)-corpus
