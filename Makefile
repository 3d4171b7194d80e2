# The two commands of the README are `make run` and `make test`; both set up what they need.
.PHONY: run slapd chromium prometheus test tests-of test-slow lockcheck check bench lines page-frames free-threaded attacks proto soak drop-in mutants proofs verified-days planted-faults bad-input api oracle corpus suites pykka-contract pictures compiled test-compiled etcd cluster kustomize test-kubernetes test-ray notebooks door-pace verdicts sizes plugins kubernetes-kills kubernetes-pace wheels site clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LINKS := .typing/licorne/model

# Tests start some 400 processes of their own: where no bytecode may be kept, each of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

run: $(VENV)/.ready
	$(BIN)/licorne simulate examples/daily.yaml

test: $(VENV)/.ready $(LINKS) slapd chromium prometheus check pykka-contract
	$(BIN)/pytest -n 2 -q

# The test files that import what changed since the last commit, or `SINCE=main`, or `CHANGED=model/nodes/order.py`. The
# nearest come first, so that often some are enough: `.venv/bin/pytest -q $(make -s tests-of | head -20)`.
CHANGED = $(if $(SINCE),$(shell git diff --name-only $(SINCE)))
tests-of: $(VENV)/.ready
	@PYTHONPATH=tests $(BIN)/python -m support.nearest_tests $(CHANGED)

# The tests under a slow clock: all their processes are stopped at random, for up to 3 s each time. Takes three times as
# long; with `SLOW_TESTS=tests/proxy/wire/door SLOW=--slow-seed=7` it repeats a part.
SLOW_TESTS := tests
test-slow: $(VENV)/.ready $(LINKS) slapd chromium prometheus
	PYTHONPATH=tests $(BIN)/pytest -n 2 -q -p support.slow_clock --timeout 900 $(SLOW) $(SLOW_TESTS)

# All tests with every lock checked, then the certificate; ends within half an hour, in minutes as a rule.
LOCKS := .cache/lockcheck.json
lockcheck: $(VENV)/.ready slapd chromium prometheus
	mkdir -p .cache && rm -f $(LOCKS)
	timeout 1800 $(BIN)/pytest -n 2 -q --lockcheck=full --lockcheck-fail-on=R2,RB --lockcheck-json=$(LOCKS) \
		--lockcheck-order=licorne.actors.locks.guards:LOCK_ORDER --lockcheck-adopt=none
	$(BIN)/licorne lockcheck prove $(LOCKS)
	@echo 'lockcheck: nothing was found, and the certificate holds'

# The directory server that tests of LDAP run against. Only root on a Debian can install it here (as a program: at
# runlevel 1 no service is started). Others install it by hand, or have those tests skipped; in CI they are not.
slapd:
	@test -x /usr/sbin/slapd || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		apt-get -qq -o DPkg::Lock::Timeout=300 update && \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends slapd; } || echo 'slapd could not be installed: tests against it are skipped'

# The browser that pages are tested in, likewise.
chromium:
	@test -x /usr/bin/chromium || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		apt-get -qq -o DPkg::Lock::Timeout=300 update && \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends chromium; } || echo 'chromium could not be installed: its test is skipped'

# The program that metrics are for, likewise: it scrapes a server in a test.
prometheus:
	@test -x /usr/bin/prometheus || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		apt-get -qq -o DPkg::Lock::Timeout=300 update && \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends prometheus; } || echo 'prometheus could not be installed: its test is skipped'

# The data base of a real Kubernetes API server, likewise.
etcd:
	@test -x /usr/bin/etcd || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		apt-get -qq -o DPkg::Lock::Timeout=300 update && \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends etcd-server; } || echo 'etcd could not be installed: tests on a real cluster are skipped'

# The servers of Kubernetes, built by Go from their published modules: ten minutes of two cores, once a machine, as they
# are kept outside the checkout (tests/support/kubernetes/building.py).
cluster: $(VENV)/.ready etcd
	PYTHONPATH=tests $(BIN)/python -m support.kubernetes.building

# The kustomize that kubectl contains, for the test of the example of an overlay.
kustomize:
	mkdir -p .cache && cd tests/kustomize && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -o ../../.cache/kustomize .

# All tests of the scheduler of pods, also those on a real cluster, which `make test` leaves out.
test-kubernetes: $(LINKS) cluster kustomize
	$(BIN)/pytest -q -rs -m "not soak" tests/proxy/kubernetes

# The tests of workers that Ray starts, on a cluster of three nodes on this machine. Ray has an environment of its own:
# with its packages it takes 330 MB.
RAY_VENV := .venv-ray
test-ray: $(RAY_VENV)/.ready
	$(RAY_VENV)/bin/pytest -q -rs --tb=short --timeout 600 -m ray tests/proxy/wire/door/launchers/test_ray*.py

$(RAY_VENV)/.ready: pyproject.toml
	test -x $(RAY_VENV)/bin/python || $(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]' \
		pytest pytest-timeout
	touch $@

# Executes the notebooks from their first cell to the last, and stores nothing of it. They have an environment of their own.
NOTEBOOKS_VENV := .venv-notebooks
notebooks: $(NOTEBOOKS_VENV)/.ready
	$(NOTEBOOKS_VENV)/bin/python tests/support/executed_notebooks.py examples/notebooks/*.ipynb

$(NOTEBOOKS_VENV)/.ready: pyproject.toml
	test -x $(NOTEBOOKS_VENV)/bin/python || $(PYTHON) -m venv $(NOTEBOOKS_VENV)
	$(NOTEBOOKS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(NOTEBOOKS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[notebooks]'
	touch $@

# Rounds of pods in which the scheduler, the API server or both are killed; then the accounts. A few minutes.
kubernetes-kills: cluster
	PYTHONPATH=tests $(BIN)/python -m support.kubernetes.kill_rounds 30

# The packages of a release, in dist/: the source distribution, and from it the pure wheel and the one with compiled modules
# (`COMPILE=` leaves it out). Each wheel is installed in a fresh environment, in which both commands and lockcheck run.
WHEELS_VENV := .venv-wheels
COMPILE := 1
wheels: $(WHEELS_VENV)/.ready
	rm -rf dist build
	$(WHEELS_VENV)/bin/python -m build --outdir dist .
	test -z "$(COMPILE)" || LICORNE_COMPILE=1 $(WHEELS_VENV)/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz
	$(WHEELS_VENV)/bin/twine check --strict dist/*
	set -e; for wheel in dist/*.whl; do \
		$(PYTHON) -m venv --clear .cache/wheel; \
		.cache/wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$wheel"; \
		.cache/wheel/bin/licorne --version; \
		.cache/wheel/bin/python -m licorne simulate examples/daily.yaml > /dev/null; \
		.cache/wheel/bin/python -m licorne.lockcheck --help > /dev/null; \
	done

$(WHEELS_VENV)/.ready:
	test -x $(WHEELS_VENV)/bin/python || $(PYTHON) -m venv $(WHEELS_VENV)
	$(WHEELS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "build>=1.2" "twine>=6.1" "readme-renderer[md]>=44"
	touch $@

# The site of the pages in docs/ and of the docstrings of public names, in .cache/site: a link that leads nowhere is an error.
SITE_VENV := .venv-site
site: $(SITE_VENV)/.ready
	$(SITE_VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -b html -d .cache/doctrees docs .cache/site
	cp .cache/site/README.html .cache/site/index.html

$(SITE_VENV)/.ready: pyproject.toml
	test -x $(SITE_VENV)/bin/python || $(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[server]' \
		"sphinx>=8.1" "myst-parser>=4" "furo>=2024.8" "sphinxcontrib-mermaid>=1"
	touch $@

# What a door costs: the same work in one process and over workers, with 1, 2 and 4 partitions.
door-pace: $(VENV)/.ready
	cd tests && ../$(BIN)/python -m support.door.pace

# The pace of binds, and that of kube-scheduler on the same pods, in turns.
kubernetes-pace: cluster
	PYTHONPATH=tests $(BIN)/python -m support.kubernetes.pace 100 2000 3

# Whether the filters of pods refuse what those of kube-scheduler refuse, on 100,000 random pairs of a pod and a node; needs
# Go, and a minute, but for the first build.
verdicts: $(VENV)/.ready
	mkdir -p .cache && cd tests/cluster && CGO_ENABLED=0 GOFLAGS=-mod=readonly nice go build -p 2 -trimpath -ldflags "-X k8s.io/component-base/version.gitVersion=v1.37.2" -o ../../.cache/ ./verdicts
	PYTHONPATH=tests nice $(BIN)/python -m support.kubernetes.verdicts .cache/verdicts

# Whether pods need what Kubernetes counts, on 100,000 random pods, also while they are resized; needs Go.
sizes: $(VENV)/.ready
	mkdir -p .cache && cd tests/cluster && CGO_ENABLED=0 GOFLAGS=-mod=readonly nice go build -p 2 -trimpath -o ../../.cache/ ./sizes
	PYTHONPATH=tests nice $(BIN)/python -m support.kubernetes.sizes .cache/sizes

# The default plugins of kube-scheduler and their gates, by which a test checks the table of docs/kubernetes-plugins.md.
plugins: $(VENV)/.ready
	mkdir -p .cache && cd tests/cluster && CGO_ENABLED=0 GOFLAGS=-mod=readonly nice go build -p 2 -trimpath -o ../../.cache/ ./plugins
	.cache/plugins > tests/data/kubernetes/plugins.json

check: $(VENV)/.ready $(LINKS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ready
	mkdir -p .cache && $(BIN)/python tests/bench/lit_run.py > .cache/bench.jsonl
	$(BIN)/python tests/bench/targets.py .cache/bench.jsonl

# Lines and calls of Python of a cycle and of a whole ask, for workloads of the bench: exact. Five minutes.
lines: $(VENV)/.ready
	PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python tests/bench/line_counts.py

attacks: $(VENV)/.ready
	$(BIN)/python tests/bench/attacks.py

soak: $(VENV)/.ready
	$(BIN)/pytest -q -m soak --timeout 0

# CPython's own tests of threads, with all locks adopted at each level as without: about five minutes.
drop-in: $(VENV)/.ready
	$(BIN)/pytest -q -m soak --timeout 0 -rs tests/lockcheck/adoption/test_interpreter_tests.py

# Lockcheck against a search through all schedules, for all small programs; goes on where it was stopped.
oracle: $(VENV)/.ready
	nice -n 15 env PYTHONPATH=tests $(BIN)/python -m support.lockcheck.oracle_run

# The known bugs and false alarms of locks: which case stands for which, and how many come out as they have to.
corpus: $(VENV)/.ready
	$(BIN)/python tests/lockcheck/corpus/counting.py

# The tests of published packages, fetched from the package index, without and with checked locks; takes an hour.
suites: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.lockcheck.suite_run

# Mutants of how the engine `threads` takes its locks, and whether the tests kill them; takes most of an hour.
mutants: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.actors.lock_mutation_run

# Changed input for every door through which strangers' bytes come in: ten minutes by chance.
bad-input: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.fuzz.bad_input

# Preemption in all small worlds, in every order of what may happen; then faults of it that this alone must find: half an
# hour of CPU.
proofs: $(VENV)/.ready
	PYTHONPATH=tests nice $(BIN)/python -m support.proofs.run
	PYTHONPATH=tests nice $(BIN)/python -m support.proofs.planted

# Verifies 400 recorded days of the simulator, and as many random ones in which much is preempted: half an hour.
verified-days: $(VENV)/.ready
	PYTHONPATH=tests nice $(BIN)/python -m support.verify.days 400

# Faults that are planted one by one, each of which the simulator alone must find: an hour, as a rule.
planted-faults: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.fuzz.planting

# Pykka's own tests, fetched from its source distribution, on our runtime.
pykka-contract: $(VENV)/.ready
	$(BIN)/python tests/actors/pykka_contract.py

# Notes the public interface anew: names with signatures, paths and documents; the difference shows what users lose.
api: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.public_api

# The pictures of the README and of pages, by what they show.
pictures: $(VENV)/.ready chromium
	$(BIN)/python docs/pictures/draw_policies.py
	PYTHONPATH=tests $(BIN)/python docs/pictures/draw.py

# How fluid the page is with 10,000 nodes and 5,000 applications, and what its live data costs the scheduler.
page-frames: $(VENV)/.ready chromium
	PYTHONPATH=tests $(BIN)/python -m support.proxy.page_frames

# The same package with the hot modules compiled by mypyc, in a folder of its own (docs/compiled.md); a few minutes.
COMPILED := .compiled
compiled: $(COMPILED)/.ready

$(COMPILED)/.ready: $(VENV)/.ready setup.py $(shell find model proxy/si actors -name "*.py")
	rm -rf $(COMPILED) build
	LICORNE_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --target $(COMPILED) .
	touch $@

# Ten minutes; CI names those that run compiled modules most.
COMPILED_TESTS := tests
test-compiled: compiled
	PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/pytest -n 2 -q $(COMPILED_TESTS)

# The tests of threads on a CPython without a global interpreter lock, which is built on the first run: some minutes on 2
# cores, from the source package of a Debian, so on a Debian with root's rights and a compiler. One test is left out: it
# waits for nestings of locks that need a thread to be interrupted where a global lock changes hands.
FREE := .cache/free-threaded
free-threaded:
	tests/support/interpreter.sh $(FREE) 3.13 trixie --disable-gil
	PYTHON_GIL=0 $(FREE)/venv/bin/pytest -q tests/actors tests/proxy/automatic tests/lockcheck/locks \
		tests/lockcheck/checking tests/lockcheck/adoption \
		--deselect tests/actors/test_threads_engine.py::test_every_declared_nesting_is_made

proto: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m support.si_generator

$(VENV)/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

# mypy, pyright and editors find the name `licorne` through these links (layout.md).
$(LINKS): $(VENV)/.ready
	mkdir -p .typing/licorne
	cd .typing/licorne && ln -sfn ../../__init__.py ../../__main__.py ../../py.typed ../../actors ../../lockcheck ../../model ../../proxy .

clean:
	rm -rf $(VENV) $(RAY_VENV) $(NOTEBOOKS_VENV) $(WHEELS_VENV) $(SITE_VENV) .typing .cache .compiled build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
