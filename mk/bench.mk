# Benchmarks, and the demo.
.PHONY: benches bench bench-gpu demo deps
BENCHES := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
benches: $(BENCHES)
$(BENCHES): $(BUILD)/%: %.c $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(PROGRAM_FLAGS) $(DEPENDS) $< -o $@ $(PROGRAM_LIBS)

# The demo. PES=4 runs it on four PEs, HOSTS=2 over two hosts of the rig; ARGS='--question "..."' asks another question.
HOSTS ?=
PES   ?= $(or $(HOSTS),2)
PES_OF_HOST = $(shell echo $$((($(PES) + $(HOSTS) - 1) / $(HOSTS))))
ON_HOSTS = --hosts $(subst $() ,$(comma),$(patsubst %,h%:$(PES_OF_HOST),$(shell seq 0 $$(($(HOSTS) - 1)))))
MODEL ?= build/models/all-MiniLM-L6-v2
# The demo builds the kernels for GPUs only if there is a GPU: they take longer to compile than everything else.
.PHONY: demo-program
demo-program: $(BUILD)/bin/oshrun $(BUILD)/examples/minilm $(if $(GPU_DEVICE),$(KERNELS))
	@: # without a command, make prints that there is nothing to be done
deps:
	@tools/setup.sh $(if $(HOSTS),hosts,demo)
demo: deps ## ask a licence a question: a sentence encoder on PES=2 PEs and GPUs, HOSTS=2 hosts, DEVICE=cpu; installs what it needs
	@$(MAKE) --no-print-directory demo-program
	@examples/minilm/fetch.sh $(MODEL)
	@$(if $(HOSTS),tests/hosts/rig.py -n $(HOSTS) env WEFT_SSH=fakessh) \
	    $(BUILD)/bin/oshrun $(if $(HOSTS),$(ON_HOSTS)) -n $(PES) $(BUILD)/examples/minilm --model $(MODEL) $(DEVICE:%=--device %) $(ARGS)

# Three runs of everything, in turns with another OpenSHMEM library if one is installed (bench/run.sh), as JSON lines
# below $(RESULTS); then a table of medians, and plots.
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
bench-operators: all benches ## how much communication between two hosts the fused products hide; ROUNDS=3
	@tests/hosts/rig.py bench/hosts/operators.py $(BUILD) $(RESULTS) $(ROUNDS)

.PHONY: bench-python
bench-python: all python ## what a call from Python costs, beside ctypes, numpy and torch
	@PYTHONPATH=$(BUILD)/python $(BUILD)/bin/oshrun -n 2 $(PYTHON) bench/python.py

bench-gpu: all ## the same on 2 and 4 GPUs, beside NVSHMEM, NCCL and PyTorch, where they are installed
	@bench/gpu/run.sh $(BUILD) $(RESULTS)/gpu

