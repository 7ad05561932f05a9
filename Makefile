# Each target sets up .venv when it is missing or older than pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HLOOPT_SHARED ?= ../shared

# What `make run` shows.
RUN_COMMAND ?= hloopt opt testdata/transformer_scan_8dev.after_spmd_partitioning.hlo \
	-p overlap -o build/transformer.overlap.hlo
# Expectation tables of the passes and rules that exist.
TABLES ?= algebraic_simplifier bfloat16_conversion_folding bfloat16_propagation \
	block_scaling_rewriter call_graph everyday_passes rematerialization \
	call_inliner call_parameter_cleanup call_splitter collective_pipeliner \
	conditional_code_motion copy_insertion float_normalization \
	flatten_call_graph fusion_operand_permutation hlo_computation_deduplicator hlo_cse hlo_dce \
	latency_hiding_scheduler memory_space_assignment reachability replication_analysis \
	reshape_mover tuple_simplifier unflatten_call_graph while_loop_all_reduce_code_motion \
	while_loop_simplifier while_loop_trip_count_annotator shape_inference verifier
PYTEST_WORKERS ?= 2
# Tests of a file share what they have read, so most run in one process; one without tests takes
# some over.
IN_PARALLEL = -n $(PYTEST_WORKERS) --dist worksteal
# Of the sweeps over random inputs: the same seed gives the same inputs.
SEED ?= 0
COUNT ?=
# A Python with XLA:GPU's compiler, for programs that are not recorded: oracle/XLA_GPU.md.
ASK ?=
# Rooms or paths that mutants are made of; all rooms unless told.
MODULES ?=
# Passes of pass-answers, separated by commas, by XLA's names; all it has programs for unless told.
PASS ?=
# The library of XLA:GPU's compiler, for tune-bench and isolatable-passes.
PLUGIN ?= cuda13
# Of dumps-bench: --without-verify.
BENCH_OPTIONS ?=

# The XLA that tests and benchmarks compare with: others write other texts.
XLA_VERSION := jax==0.10.2 jaxlib==0.10.2

DEV := $(VENV)/.dev
XLA := $(VENV)/.xla

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-21s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(DEV): pyproject.toml
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hloopt needs Python 3.11 or newer: make PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(XLA): $(DEV)
	@echo "adding XLA to $(VENV)"
	@$(BIN)/pip install -qq --disable-pip-version-check --editable '.[dev,xla]' $(XLA_VERSION)
	@touch $@

.PHONY: run
run: $(DEV) ## overlap the collectives of a transformer step, into build/, with a report
	@mkdir -p build
	PATH="$(CURDIR)/$(BIN):$$PATH" $(RUN_COMMAND)

.PHONY: test
test: $(DEV) ## the tests, without the slow ones and those that need XLA
	$(BIN)/python -m pytest $(IN_PARALLEL) -m 'not slow and not oracle'

.PHONY: test-clusters
test-clusters: ## --executor on clusters of Ray and Dask, in an environment of their own (600 MB)
	test -x build/clusters/bin/python || $(PYTHON) -m venv build/clusters
	build/clusters/bin/pip install -qq --disable-pip-version-check --editable '.[dev,ray,dask]'
	build/clusters/bin/python -m pytest tests/commands/files/test_clusters.py

.PHONY: test-slow
test-slow: $(XLA) ## the slow tests and those that compare with XLA; of large sets, samples by SEED
	$(BIN)/python -m pytest $(IN_PARALLEL) -m 'slow or oracle' --sample-seed $(SEED)

.PHONY: test-whole
test-whole: $(XLA) ## the slow tests of samples on all there is, and how many that is; resumes
	$(BIN)/python -m pytest $(IN_PARALLEL) -rP --whole build/test-whole.txt

.PHONY: lint
lint: $(DEV) ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(DEV) ## mypy, strict
	$(BIN)/mypy

.PHONY: format
format: $(DEV) ## format the code, mend what ruff can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(XLA) ## the benchmarks: ratios to XLA on this machine
	$(BIN)/python bench/run.py

.PHONY: conformance
conformance: $(DEV) ## the tables of $HLOOPT_SHARED/conformance
	$(BIN)/python tools/conformance.py $(TABLES:%=$(HLOOPT_SHARED)/conformance/%.jsonl)

.PHONY: memory-agreement
memory-agreement: $(DEV) ## buffer assignments and schedules beside those that XLA made
	$(BIN)/python tools/memory_agreement.py --shared $(HLOOPT_SHARED)

.PHONY: copy-agreement
copy-agreement: $(XLA) ## our copies and XLA's in its own programs, and the temporaries of both
	$(BIN)/python tools/copy_agreement.py --shared $(HLOOPT_SHARED)

.PHONY: diff-agreement
diff-agreement: $(DEV) ## matchings of diff beside known maps: 180 pairs, seed 1
	$(BIN)/python tools/diff_agreement.py --shared $(HLOOPT_SHARED) --scale 3

.PHONY: sharding-agreement
sharding-agreement: $(XLA) ## origins of collectives beside those that XLA's partitioner tells
	$(BIN)/python tools/sharding_agreement.py --shared $(HLOOPT_SHARED) --own --exact

.PHONY: global-equivalence
global-equivalence: $(DEV) ## programs of XLA's tests beside what its partitioner made of them
	$(BIN)/python tools/global_equivalence.py --shared $(HLOOPT_SHARED)

.PHONY: schedule-agreement
schedule-agreement: $(DEV) ## schedules of asynchronous programs beside those that XLA made
	$(BIN)/python tools/schedule_agreement.py --shared $(HLOOPT_SHARED)

.PHONY: sol-agreement
sol-agreement: $(DEV) ## the speed-of-light cost model beside XLA's; renews tables in docs/
	$(BIN)/python tools/cost_model_agreement.py --shared $(HLOOPT_SHARED) --write

.PHONY: roofline-agreement
roofline-agreement: $(XLA) ## the roofline beside speed of light, and before beside after fusion
	$(BIN)/python tools/roofline_agreement.py --shared $(HLOOPT_SHARED) $(ASK:%=--ask %)

.PHONY: sol-questions
sol-questions: $(DEV) ## COUNT random products, all-reduces (300): ours, XLA:GPU's; needs XLA_GPU_PYTHON
	@for target in h100_sxm b200; do \
		$(BIN)/python tools/cost_model_agreement.py --shared $(HLOOPT_SHARED) \
			--ask $${XLA_GPU_PYTHON:?names no Python with XLA:GPU} --target $$target \
			--generated $(or $(COUNT),300) --seed $(SEED) --worst 3 --write || exit; done

.PHONY: search-table
search-table: $(DEV) ## searched schedules beside XLA's, into docs/: a minute for each of 15 modules
	$(BIN)/python tools/search_table.py --shared $(HLOOPT_SHARED) --write

.PHONY: schedule-gap
schedule-gap: $(DEV) ## searched schedules of COUNT random programs (200) beside proved bounds, into docs/; resumes
	$(BIN)/python tools/schedule_gap.py --seed $(SEED) --count $(or $(COUNT),200) --write

.PHONY: agreement
agreement: $(XLA) ## the interpreter and XLA:CPU on the corpus: an hour, or COUNT modules of it
	$(BIN)/python tools/agreement.py --shared $(HLOOPT_SHARED) --jobs $(PYTEST_WORKERS) \
		--seed $(SEED) $(COUNT:%=--sample %)

.PHONY: cost-agreement
cost-agreement: $(XLA) ## what modules cost, and what XLA says, on the whole corpus
	$(BIN)/python tools/cost_agreement.py --shared $(HLOOPT_SHARED) --jobs $(PYTEST_WORKERS)

.PHONY: fuzz
fuzz: $(DEV) ## COUNT broken texts, protos, pipelines, command lines (100000): nothing else breaks
	$(BIN)/python tools/fuzz.py --seed $(SEED) --count $(or $(COUNT),100000) \
		--jobs $(PYTEST_WORKERS) \
		$(if $(wildcard $(HLOOPT_SHARED)/corpus),--shared $(HLOOPT_SHARED))

.PHONY: planted-miscompiles
planted-miscompiles: $(DEV) ## plant miscompiles, see that --validate finds them; right rewrites, too
	$(BIN)/python tools/planted_miscompiles.py

.PHONY: precision-tolerance
precision-tolerance: $(DEV) ## the tolerance of changes of precision beside errors, COUNT planted ones (20)
	$(BIN)/python tools/precision_tolerance.py --shared $(HLOOPT_SHARED) --seed $(SEED) \
		--count $(or $(COUNT),20)

.PHONY: pass-sweep
pass-sweep: $(DEV) ## each pass alone, each pipeline, on COUNT modules (all) of the corpus, validated on 1, 2, 4 devices; resumes
	$(BIN)/python tools/pass_sweep.py --seed $(SEED) $(COUNT:%=--count %) --jobs $(PYTEST_WORKERS) \
		$(if $(wildcard $(HLOOPT_SHARED)/corpus),--shared $(HLOOPT_SHARED))

.PHONY: dumps-bench
dumps-bench: $(DEV) ## hloopt dumps on COUNT files (2000, 1 GB) in FOLDER, beside verify: seconds, memory
	$(BIN)/python tools/dumps_bench.py --files $(or $(COUNT),2000) \
		--folder $(or $(FOLDER),build/dumps-$(or $(COUNT),2000)) $(BENCH_OPTIONS)

.PHONY: tune-bench
tune-bench: $(DEV) ## hloopt tune beside all combinations of five flags on four steps; PLUGIN=PATH of XLA:GPU
	@mkdir -p build
	$(BIN)/python tools/tune_bench.py --shared $(HLOOPT_SHARED) --plugin $(PLUGIN) \
		--results build/tune_bench.jsonl

.PHONY: isolatable-passes
isolatable-passes: $(XLA) ## which of XLA's passes hloopt xla isolate can run, into docs/; PLUGIN=PATH of XLA:GPU
	$(BIN)/python tools/isolatable_passes.py --plugin $(PLUGIN) --jobs $(PYTEST_WORKERS)

.PHONY: planted-failures
planted-failures: $(DEV) ## the 40 failures that reduce and bisect are measured with are as written down
	$(BIN)/python tools/planted_failures.py --check

.PHONY: planted-reductions
planted-reductions: $(DEV) ## reduce and bisect the 40 failures: size, time, culprit; goes on where it was
	@mkdir -p build
	$(BIN)/python tools/planted_reductions.py --results build/planted_reductions.jsonl

.PHONY: random-differential
random-differential: $(DEV) ## random passes on COUNT random programs (20000) keep what these compute
	$(BIN)/python tools/random_differential.py --seed $(SEED) --count $(or $(COUNT),20000) \
		--jobs $(PYTEST_WORKERS)

.PHONY: algsimp-fuzz
algsimp-fuzz: $(DEV) ## algsimp, with random options, on COUNT random programs (20000) keeps what these compute; resumes
	$(BIN)/python tools/random_differential.py --only algsimp --save build/algsimp-fuzz \
		--seed $(SEED) --count $(or $(COUNT),20000) --jobs $(PYTEST_WORKERS)

.PHONY: schedule-fuzz
schedule-fuzz: $(DEV) ## orders of COUNT random programs (1000) beside XLA:GPU's; needs ASK
	$(BIN)/python tools/schedule_fuzz.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--seed $(SEED) --count $(or $(COUNT),1000)

.PHONY: memory-fuzz
memory-fuzz: $(DEV) ## buffers of COUNT random programs (1000) beside XLA:GPU's; needs ASK
	$(BIN)/python tools/memory_fuzz.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--seed $(SEED) --count $(or $(COUNT),1000)

.PHONY: memory-space-validity
memory-space-validity: $(DEV) ## places in VMEM: benchmarks, also run, COUNT random programs (500): 30 minutes
	$(BIN)/python tools/memory_space_validity.py --shared $(HLOOPT_SHARED)
	$(BIN)/python tools/memory_space_validity.py --shared $(HLOOPT_SHARED) --run
	$(BIN)/python tools/memory_space_validity.py --seed $(SEED) --random $(or $(COUNT),500)

.PHONY: memory-space-times
memory-space-times: $(DEV) ## searched memory spaces beside the heuristic's and the bound, into docs/: 20 minutes
	$(BIN)/python tools/memory_space_times.py --shared $(HLOOPT_SHARED) --write

.PHONY: pipeliner-fuzz
pipeliner-fuzz: $(DEV) ## COUNT random loops (500): collectives pipelined, ours and XLA:GPU's; needs ASK
	$(BIN)/python tools/pipeliner_fuzz.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--seed $(SEED) --count $(or $(COUNT),500)

.PHONY: overlap-fuzz
overlap-fuzz: $(DEV) ## overlap-search on COUNT random loops (1000) keeps what these compute; resumes
	$(BIN)/python tools/overlap_fuzz.py --seed $(SEED) --count $(or $(COUNT),1000) \
		--jobs $(PYTEST_WORKERS)

.PHONY: overlap-table
overlap-table: $(DEV) ## recorded training steps made shorter by COUNT trials (200), XLA:GPU's judgement into docs/; needs ASK; resumes
	$(BIN)/python tools/overlap_table.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--iterations $(or $(COUNT),200) --write

.PHONY: memory-search-table
memory-search-table: $(DEV) ## recorded training steps of at most COUNT instructions (10,000) made to fit in three quarters of their memory, into docs/
	$(BIN)/python tools/memory_search_table.py --shared $(HLOOPT_SHARED) --most $(or $(COUNT),10000) --write

.PHONY: pass-agreement
pass-agreement: $(DEV) ## passes beside XLA:GPU's on COUNT modules of the corpus (400), into docs/; needs ASK; resumes
	$(BIN)/python tools/pass_agreement.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--seed $(SEED) --count $(or $(COUNT),400)

.PHONY: pass-answers
pass-answers: $(DEV) ## PASS (all) beside XLA's on COUNT programs made for it (200), into docs/; needs ASK; resumes
	$(BIN)/python tools/pass_answers.py --shared $(HLOOPT_SHARED) \
		--ask $(or $(ASK),$${XLA_GPU_PYTHON:?ASK= names no Python with XLA:GPU}) \
		--seed $(SEED) --count $(or $(COUNT),200) $(PASS:%=--passes %)

.PHONY: mutants
mutants: $(DEV) ## COUNT small changes (200) of MODULES, rooms or paths: does a test fail on each?
	$(BIN)/python tools/mutants.py --seed $(SEED) --count $(or $(COUNT),200) \
		--jobs $(PYTEST_WORKERS) $(MODULES)

.PHONY: same-outputs
same-outputs: $(DEV) ## what all commands write for testdata/, and what commit REF writes (main): equal
	$(BIN)/python tools/recorded_outputs.py --against $(or $(REF),main) --jobs $(PYTEST_WORKERS)

.PHONY: golden-update
golden-update: $(DEV) ## write the CHECK lines of golden tests again
	$(BIN)/hloopt test tests/golden --update

.PHONY: testdata
testdata: $(XLA) ## make testdata/ again with JAX and XLA
	$(BIN)/python tools/make_testdata.py

.PHONY: docs
docs: $(DEV) ## write the reference pages of docs/ from the code
	$(BIN)/python tools/make_docs.py

.PHONY: layout-library
layout-library: $(DEV) ## fetch the library that lays out graphs in pages, as its record says
	$(BIN)/python tools/fetch_layout_library.py

.PHONY: gallery
gallery: $(DEV) ## write docs/gallery.md and its pictures; those of pages need Chromium
	$(BIN)/python tools/make_gallery.py

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
