# The Python package, usable in place with PYTHONPATH=$(BUILD)/python. One binary, which uses the limited API, serves
# every Python from 3.11 on, so any interpreter with headers can build it. The limited API of 3.10 has no buffer
# protocol: 3.10 needs a binary of its own.
HAS_HEADERS := import os, sys, sysconfig; sys.exit(sys.version_info < (3, 10) or \
                not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
first_python = $(firstword $(foreach python,python3 /usr/bin/python3,$(shell \
                 $(python) -c '$(HAS_HEADERS)' 2>/dev/null && echo $(python))) python3)
# Each of these variables is computed once, and only if a target needs it.
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
# Expanded late ($$), so that make runs no Python unless it builds the package.
python: $$(EXTENSION) $(PYTHON_PURE) ## build the Python package in place: PYTHONPATH=build/python
# CPython's tables store functions as void *, of which -Wpedantic warns.
$(BUILD)/obj/python/%.o: ALL_CFLAGS += -isystem $(PYTHON_INCLUDE) -Wno-pedantic
# The library is beside the extension in an installed package, and in ../../lib here.
$(PYTHON_DIR)/_core.abi3.so: $(PYTHON_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -shared $(SANFLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../lib' -o $@ $(PYTHON_OBJ) \
	    -L$(BUILD)/lib -lweft $(LDLIBS)
$(PYTHON_DIR)/_core.cpython-%.so: $(wildcard python/weft/*.[ch]) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) -shared $(filter-out -MMD -MP,$(ALL_CFLAGS)) -isystem $(PYTHON_INCLUDE) -Wno-pedantic \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../lib' -o $@ $(filter %.c,$^) -L$(BUILD)/lib -lweft $(LDLIBS)
# Everything that setup.py packs.
.PHONY: python-package wheel
# In a wheel, the library is beside bin and has only its soname, because wheels cannot contain links.
PACKAGE_WRAPPERS := $(addprefix $(BUILD)/package/bin/,oshcc oshc++)
$(PACKAGE_WRAPPERS): HERE = $(BUILD)/package
$(PACKAGE_WRAPPERS): HERE_LIB = $(HERE)
$(PACKAGE_WRAPPERS): HERE_LINK = -l:$(SONAME)
python-package: $$(EXTENSION) $(HEADERS) $(UCX_ENGINE) $(KERNELS) $(BITCODE) $(BUILD)/bin/oshrun $(BUILD)/bin/weft \
                $(PACKAGE_WRAPPERS)
# Use the build tools of $(PYTHON) if it has them. Otherwise pip fetches them.
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

