# Builds and installs Weft. `make` builds everything below build/, usable in place; `make help` lists the targets.
# mk/gpu.mk builds the kernels, mk/python.mk the package, mk/tests.mk the tests, mk/bench.mk the benchmarks and the demo.
VERSION := $(shell sed -n 's/^.define WEFT_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
             include/weft/version.h | paste -sd.)
comma   := ,
MAKEFLAGS += --no-builtin-rules
# Use all processors unless -j is given. A make that another make starts shares its jobs.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# WITHOUT_GPU=1 builds a library without GPU support: calls that need a GPU return -ENOSYS.
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

# Lines for backtraces. CFLAGS='-O2 -g' also has variables for a debugger, and takes a tenth longer to build.
CFLAGS  ?= -O2 -g1
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wstrict-prototypes -fPIC \
             -fvisibility=hidden -pthread -MMD -MP -Iinclude -Isrc \
             $(SANFLAGS) $(CFLAGS)
CXXFLAGS ?= $(CFLAGS)
ALL_CXXFLAGS = -std=c++17 -Wall -Wextra -Wpedantic -fPIC -pthread -MMD -MP -Iinclude $(SANFLAGS) \
               $(CXXFLAGS)
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all \
             $(if $(findstring thread,$(SAN)),-Wno-tsan))
LDLIBS   = -Wl,--as-needed -ldl -lpthread -lm

# Prints one line per file, such as `  CC    src/core/heap.c`. V=1 prints the commands instead.
quiet = $(if $(filter-out 0,$(V)),,@printf '  %-5s %s\n' $(1) '$(2)';)

ROOMS   := base boot transport tcp job far core device coll fused ops api
GPU_SRC := $(wildcard src/device/*.c src/fused/*.c src/transport/gpu*.c src/*/on_stream*.c \
             $(addprefix src/coll/,stream_choice.c same_way.c ll.c marked.c push.c))
LIB_SRC := $(wildcard $(ROOMS:%=src/%/*.c))
ifneq ($(NO_GPU),)
LIB_SRC := $(filter-out $(GPU_SRC),$(LIB_SRC)) $(wildcard src/without_gpu/*.c)
endif
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
# The file name carries the full version. Programs look for the soname, the linker for the plain name.
SONAME  := libweft.so.$(firstword $(subst ., ,$(VERSION)))
LIB     := $(BUILD)/lib/libweft.so.$(VERSION)
ARCHIVE := $(BUILD)/lib/libweft.a
HEADERS := $(patsubst %,$(BUILD)/%,$(shell find include -type f))

LAUNCH_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/launch/*.c src/base/*.c src/boot/*.c))
TOOLS   := $(addprefix $(BUILD)/bin/,oshcc oshc++ oshrun weft)
# Descriptions of the library for pkg-config and CMake.
PACKAGES := $(addprefix $(BUILD)/lib/,pkgconfig/weft.pc cmake/Weft/WeftConfig.cmake \
              cmake/Weft/WeftConfigVersion.cmake)

.PHONY: all without-ucx install uninstall format help clean examples
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:

include mk/gpu.mk

# The UCX engine is a separate library, which is opened when a PE is on another host. The build needs only the
# headers of UCX: the engine opens UCX itself at run time.
UCX := $(if $(filter undefined,$(origin UCX)),$(shell \
         $(CC) $(CPPFLAGS) -E -include ucp/api/ucp.h -x c /dev/null >/dev/null 2>&1 && echo yes),$(UCX))
UCX_ENGINE := $(if $(UCX),$(BUILD)/lib/libweft_ucx.so)

WHAT_NEXT = make: Weft is built in $(BUILD). Next: "make demo", or compile the program of README.md: \
            $(BUILD)/bin/oshcc ring.c -o ring && $(BUILD)/bin/oshrun -n 4 ./ring
all: $(LIB) $(ARCHIVE) $(HEADERS) $(TOOLS) $(PACKAGES) examples $(or $(UCX_ENGINE),without-ucx) $(or $(KERNELS),without-gpu) $(or $(BITCODE),without-bitcode) ## build the library, its tools and the examples
	$(if $(filter-out all,$(MAKECMDGOALS)),,@echo '$(WHAT_NEXT)')

# The loops of reductions need the vectoriser.
$(BUILD)/obj/src/coll/%.o: CFLAGS := $(CFLAGS) -O3

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(LIB): $(LIB_OBJ) src/weft.map
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -Wl,-soname,$(SONAME) -Wl,-z,relro -Wl,-z,nodelete \
	    $(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=src/weft.map -o $@ $(LIB_OBJ) $(LDLIBS)
	@ln -sf $(@F) $(@D)/$(SONAME) && ln -sf $(SONAME) $(@D)/libweft.so

# The archive has one object, in which hidden symbols are local: a program may define any name except the public
# ones. The code is in a section of its own, by which base/place.c recognizes it.
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

without-ucx:
	@echo 'make: no headers of UCX were found (libucx-dev), so libweft_ucx.so is left out. It is optional:' \
	    'jobs on several hosts use TCP without it'

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

# The weft command finds libweft_cuda.so in ../lib, or in .. when it is in the Python package.
WEFT_RPATH = -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/..'
WEFT_SRC := tools/weft.c $(wildcard tools/weft/*.c)
ifneq ($(NO_GPU),)
WEFT_SRC := $(filter-out tools/weft/gpus.c tools/weft/plan.c,$(WEFT_SRC)) tools/weft/without_gpu/gpus.c
endif
WEFT_OBJ := $(WEFT_SRC:%.c=$(BUILD)/obj/%.o)
$(BUILD)/bin/weft: $(WEFT_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(SANFLAGS) -o $@ $^ $(WEFT_RPATH) $(LDLIBS)

# Files that contain the place of the library are filled in for build/ here, and for PREFIX by tools/install.sh.
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

# Examples: each folder of C files is one program.
EXAMPLES := $(patsubst examples/%/,$(BUILD)/examples/%,$(filter-out %/python/ %/cuda/,$(wildcard examples/*/)))
examples: $(EXAMPLES) $(CUDA_EXAMPLES)
EXAMPLE_SRC = $(wildcard examples/$(1)/*.c)
# Dependency files of programs are in $(BUILD)/obj, beside those of objects.
DEPENDS = -MF $(BUILD)/obj/$(subst /,-,$(@:$(BUILD)/%=%)).d
# The compiler overwrites the dependency file for each of several sources, so one more run lists those of all.
depends_of_all = $(if $(word 2,$(1)),&& $(CC) $(filter-out -MMD,$(PROGRAM_FLAGS)) -Itests -MM -MT $@ $(1) > $(word 2,$(DEPENDS)))
# A source that was deleted may still be in a dependency file: this rule makes its program be built again.
tests/%.c: ;
PROGRAM_FLAGS = $(ALL_CFLAGS) -fvisibility=default
PROGRAM_LIBS  = -L$(BUILD)/lib -lweft -Wl,-rpath,$(abspath $(BUILD)/lib) $(LDLIBS)
$(EXAMPLES): $(BUILD)/examples/%: $$(call EXAMPLE_SRC,%) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(PROGRAM_FLAGS) $(DEPENDS) $(filter %.c %.o,$^) -o $@ $(PROGRAM_LIBS) $(GPU_LIBS) \
	    $(call depends_of_all,$(filter %.c,$^))

# The loops of the encoder need the vectoriser, too.
$(BUILD)/examples/minilm: private CFLAGS := $(CFLAGS) -O3

include mk/python.mk mk/tests.mk mk/bench.mk

# tools/install.sh copies the files and writes the list from which uninstall removes them.
PLACES = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' \
         INCLUDEDIR='$(INCLUDEDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' BUILD='$(BUILD)' \
         VERSION='$(VERSION)' SANFLAGS='$(SANFLAGS)' CC='$(CC)' CXX='$(CXX)'
STRIP ?= strip
.PHONY: install-debug
install install-debug: all install-weft $(BUILD)/man/made
	@$(PLACES) STRIP='$(if $(filter install,$@),$(STRIP))' tools/install.sh install
install: ## copy library, headers, tools, manual and examples to PREFIX (/usr/local), LIBDIR, ...
install-debug: ## the same with symbols for debuggers

uninstall: ## remove what make install has put there
	@$(PLACES) tools/install.sh uninstall

# `man shmem_put` works for each routine by a link to the page that describes it.
PAGES := $(wildcard docs/man/*.[1-9])
$(BUILD)/man/made: $(PAGES) tools/man-links.sh $(LIB)
	@rm -rf $(@D) && for page in $(PAGES); do \
	    install -D -m 644 -t $(@D)/man$${page##*.} $$page || exit; done
	@nm -D --defined-only $(LIB) | awk '$$3 !~ /^p/ { print $$3 }' | tools/man-links.sh $(PAGES) | \
	    while read -r link page; do ln -sf $$page $(@D)/man$${page##*.}/$$link || exit; done
	@touch $@

# Links the weft command again with a run path to LIBDIR.
.PHONY: install-weft
install-weft: WEFT_RPATH = -Wl,-rpath,"\$$ORIGIN/$$(realpath -ms --relative-to='$(BINDIR)' '$(LIBDIR)')"
install-weft: $(WEFT_OBJ) $(LIB_OBJ)
	@mkdir -p $(BUILD)/install
	@$(CC) $(SANFLAGS) -o $(BUILD)/install/weft $^ $(WEFT_RPATH) $(LDLIBS)

format: ## lay out all C sources with clang-format 14
	clang-format -i $(shell find src include examples tests bench python -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')

clean: ## remove everything that make built
	rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo '  SAN=address,undefined   build and test with sanitizers;  CC=clang, BUILD=dir, PREFIX=dir, NVCC=file;  V=1 shows commands'
	@echo '  WITHOUT_GPU=1           build a library of the host alone, in build/without-gpu'

-include $(shell find $(BUILD) $(CUDA_BUILD) -name '*.d' 2>/dev/null)
